/* A session's sequences without a device: a cache whose pages lie in plain memory. */
#ifndef FUZZ_SEQUENCE_H
#define FUZZ_SEQUENCE_H

#include "harness.h"

#include "engine/sequence/sequence.h"

enum { FUZZ_N_PIECES = 200 };

struct fuzz_session {
    struct pd_model model;
    struct pd_sequence_set set;
};

/* Made once, for ever. */
struct fuzz_session *fuzz_session(void);
/* Of all kinds. */
uint32_t fuzz_n_free_pages(const struct fuzz_session *s);

#endif

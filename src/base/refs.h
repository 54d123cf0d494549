/* A count of owners, for what threads may share. Zeroed, it has one. */
#ifndef PD_BASE_REFS_H
#define PD_BASE_REFS_H

#include <stdatomic.h>
#include <stdbool.h>

struct pd_refs {
    atomic_uint n_more;    /* owners beside the first */
};

static inline void pd_refs_add(struct pd_refs *r) { atomic_fetch_add(&r->n_more, 1); }
static inline bool pd_refs_has_one(struct pd_refs *r) { return atomic_load(&r->n_more) == 0; }
/* An owner has gone; true: it was the last, who frees. */
static inline bool pd_refs_drop(struct pd_refs *r) { return atomic_fetch_sub(&r->n_more, 1) == 0; }

#endif

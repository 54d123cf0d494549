/* A made-up vocabulary of the right size for a synthetic model: control tokens and turn markers at their real ids, 256
 * bytes, the printable ASCII characters, and then strings of letters, with and without a space before them, shortest
 * first. sentencepiece splits any text with it. */
#ifndef PD_OFFLINE_SYNTHETIC_VOCAB_H
#define PD_OFFLINE_SYNTHETIC_VOCAB_H

#include "arch/shapes.h"
#include "format/arena.h"
#include "format/meta.h"

/* tokenizer.ggml.token_type */
enum pd_token_type {
    PD_TOKEN_NORMAL = 1, PD_TOKEN_UNKNOWN, PD_TOKEN_CONTROL, PD_TOKEN_USER_DEFINED, PD_TOKEN_UNUSED, PD_TOKEN_BYTE
};

struct pd_synthetic_vocab {
    struct pd_arena arena;
    uint32_t n, capacity;
    struct pd_string *tokens;
    float *scores;
    int32_t *types;
    uint32_t bos, eos, unknown, end_of_turn;   /* end_of_turn: 0 when there is none */
    bool has_pad;                              /* pad is id 0 */
    bool failed;                               /* out of memory on the way */
};

peridot_status pd_synthetic_vocab_create(struct pd_synthetic_vocab *out, const struct pd_shape *shape);
void pd_synthetic_vocab_free(struct pd_synthetic_vocab *v);

#endif

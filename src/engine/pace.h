/* What evaluating tokens costs, and how many of a prompt a device does in a given time: a chunk takes a time of its
 * own, mostly to read the weights, and one for each multiplication. */
#ifndef PD_ENGINE_PACE_H
#define PD_ENGINE_PACE_H

#include "engine/model.h"

/* Keys that a token at `pos` looks at in a layer. */
uint64_t pd_n_keys(const struct pd_layer *layer, uint32_t pos);
/* Multiplications and additions for one token at `pos`; head: with its logits. */
double pd_token_flop(const struct pd_model *model, uint32_t pos, bool head);

struct pd_pace {
    struct pd_timed_work { double flop, seconds; } last, other;   /* chunks: `other` was before, of another size */
};

void pd_pace_took(struct pd_pace *p, double flop, double seconds);
/* Tokens, of `token` flop each, of the next submit: as many as fit 0.2 s. Where reading the weights takes longest, a
 * token more costs little: some may take longer than many. */
uint32_t pd_next_chunk(const struct pd_pace *p, double token);
/* The same where others wait for it: as many as fit the time, at least one. */
uint32_t pd_next_shared_chunk(const struct pd_pace *p, double token);

#endif

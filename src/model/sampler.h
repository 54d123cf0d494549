/* Drawing a token from the best candidates. The chain: repeat penalty, top-k, temperature, top-p, min-p, draw. */
#ifndef PD_MODEL_SAMPLER_H
#define PD_MODEL_SAMPLER_H

#include "base/status.h"
#include "params.h"

#include <stddef.h>

#define PD_REPEAT_WINDOW 64   /* tokens that the repeat penalty looks back */

struct pd_sampler {
    peridot_sampling p;
    uint64_t rng;
    int32_t recent[PD_REPEAT_WINDOW];   /* a ring */
    uint64_t n_seen;
};

void pd_sampler_set(struct pd_sampler *s, const peridot_sampling *p);
/* Remembers an evaluated token for the repeat penalty. */
void pd_sampler_accept(struct pd_sampler *s, int32_t token);
/* Candidates that a draw must see to be exact, best first; 0: the whole vocabulary. A penalty can push down at most as many
 * candidates as it remembers. */
uint32_t pd_sampler_needs(const struct pd_sampler *s);
/* Draws from n >= 1 candidates, best first (value, then lower id), which it changes. */
int32_t pd_sampler_draw(struct pd_sampler *s, struct pd_candidate *candidates, size_t n);
/* Best first. */
void pd_candidates_sort(struct pd_candidate *candidates, size_t n);

#endif

/* Drawing a token from the best candidates. The chain: logit bias, penalties, top-k, temperature, top-p, min-p, draw. */
#ifndef PD_MODEL_SAMPLER_H
#define PD_MODEL_SAMPLER_H

#include "base/status.h"
#include "params.h"

#include <stddef.h>

#define PD_REPEAT_WINDOW 64   /* tokens that penalties look back */

struct pd_sampler {
    peridot_sampling p;
    uint64_t rng;
    int32_t recent[PD_REPEAT_WINDOW];   /* a ring */
    uint64_t n_seen;
};

void pd_sampler_set(struct pd_sampler *s, const peridot_sampling *p);
/* Remembers an evaluated token for the penalties. */
void pd_sampler_accept(struct pd_sampler *s, int32_t token);
/* Candidates that a draw must see to be exact, best first; 0: the whole vocabulary. Penalties push down at most as many
 * candidates as they remember, and a bias one; what pulls candidates up may reach any. */
uint32_t pd_sampler_needs(const struct pd_sampler *s);
/* The chain changes logits before it cuts: candidates come to it in any order. */
bool pd_sampler_adjusts(const struct pd_sampler *s);
/* Draws from n >= 1 candidates, best first (value, then lower id) unless the chain adjusts them; it changes them. */
int32_t pd_sampler_draw(struct pd_sampler *s, struct pd_candidate *candidates, size_t n);
/* Best first. */
void pd_candidates_sort(struct pd_candidate *candidates, size_t n);

#endif

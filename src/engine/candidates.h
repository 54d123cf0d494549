/* Candidates for the next token: their order, and drawing one of them. The chain that says how is in sampler.h. */
#ifndef PD_ENGINE_CANDIDATES_H
#define PD_ENGINE_CANDIDATES_H

#include "params.h"

#include <stddef.h>

/* Of candidates [draw->n], best first: the id. What sample.comp does. */
uint32_t pd_draw_from(const struct pd_draw *draw, const struct pd_candidate *candidates);
/* Best first: by logit, then by lower id. */
void pd_candidates_sort(struct pd_candidate *candidates, size_t n);

#endif

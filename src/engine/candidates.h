/* Candidates for the next token: their order, and drawing one of them. The chain that says how is in sampler.h. */
#ifndef PD_ENGINE_CANDIDATES_H
#define PD_ENGINE_CANDIDATES_H

#include "params.h"

#include <stddef.h>
#include <stdint.h>

/* Of candidates [draw->n], best first: the id. What sample.comp does. */
uint32_t pd_draw_from(const struct pd_draw *draw, const struct pd_candidate *candidates);
/* The same token from n candidates in any order, of which draw->n are not yet the best ones. They are divided by their
 * distance from the best one, and only those are sorted among which a limit or the token lies: O(n). Their order
 * changes. */
uint32_t pd_draw_from_all(const struct pd_draw *draw, struct pd_candidate *candidates, uint32_t n);
/* Best first: by logit, then by lower id. */
void pd_candidates_sort(struct pd_candidate *candidates, size_t n);

#endif

/* The pages of a sequence as it grows, goes back and forks. Layers with windows give back pages that no later position
 * can see. A page that several hold is copied before one of them writes it. */
#ifndef PD_ENGINE_PAGES_H
#define PD_ENGINE_PAGES_H

#include "engine/cache.h"

/* Number in the cache of page i of the sequence, begin <= i < end. */
uint32_t pd_pages_number(const struct pd_cache *cache, const struct pd_pages *pages, uint32_t kind, uint32_t i);
/* Of a sequence without pages: those before begin[kind] are never taken. */
void pd_pages_skip(const struct pd_cache *cache, struct pd_pages *pages, const uint32_t begin[PD_MAX_LAYER_KINDS]);
/* First slot of the sequence: see pd_place. */
uint32_t pd_pages_text(const struct pd_cache *cache, const struct pd_pages *pages);
/* Takes pages for all positions below n. Where too few are left, pages that only snapshots have go to the host's
 * memory, those of the oldest first; PERIDOT_ERROR_MEMORY (no sequence is changed) where these are too few as well. */
peridot_status pd_pages_extend(struct pd_cache *cache, struct pd_pages *pages, uint32_t n);
/* Gives back pages that positions from `pos` on do not see, but for `slack` positions before them. */
void pd_pages_release(struct pd_cache *cache, struct pd_pages *pages, uint32_t pos, uint32_t slack);
/* Keeps the pages of the first n positions; 0: none. A page that is to be written again, and is shared, is copied. */
peridot_status pd_pages_truncate(struct pd_cache *cache, struct pd_pages *pages, uint32_t n);
/* Makes `to`, which has none, share the pages of the first n positions, as far as `from` has them; the last one is
 * copied unless it is full. */
peridot_status pd_pages_fork(struct pd_cache *cache, struct pd_pages *to, const struct pd_pages *from, uint32_t n);
/* Least number of positions, beside none, to which a sequence can go back: the next one sees only keys that are still
 * there. */
uint32_t pd_pages_least(const struct pd_cache *cache, const struct pd_pages *pages);

#endif

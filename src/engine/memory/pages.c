/* The pages of a sequence as it grows, goes back and forks. Layers with windows give back pages that no later position
 * can see. A page that several hold is copied before one of them writes it. Where a copy fails on the way back, some
 * kinds are there and others not: its sequence then gives up all of them (sequence.c). */
#include "engine/memory/memory.h"

#include "base/base.h"

uint32_t pd_pages_number(const struct pd_cache *cache, const struct pd_pages *pages, uint32_t kind, uint32_t i)
{
    return pd_pages_table(cache, kind, pages)[i];
}

void pd_pages_skip(const struct pd_cache *cache, struct pd_pages *pages, const uint32_t begin[PD_MAX_LAYER_KINDS])
{
    for (uint32_t kind = 0; kind < cache->n_kinds; kind++)
        if (cache->pools[kind].n_pages) pages->begin[kind] = pages->end[kind] = begin[kind];
}

uint32_t pd_pages_text(const struct pd_cache *cache, const struct pd_pages *pages)
{
    return pages->table * cache->table_pages * PD_PAGE;
}

peridot_status pd_pages_extend(struct pd_cache *cache, struct pd_pages *pages, uint32_t n)
{
    uint32_t end = (uint32_t)pd_div_up(n, PD_PAGE);
    for (uint32_t kind = 0; kind < cache->n_kinds; kind++)
        if (cache->pools[kind].n_pages && end > pages->end[kind])
            PD_TRY(pd_cache_make_room(cache, kind, end - pages->end[kind]));
    for (uint32_t kind = 0; kind < cache->n_kinds; kind++) {
        struct pd_page_pool *pool = &cache->pools[kind];
        for (; pool->n_pages && pages->end[kind] < end; pages->end[kind]++) {
            pd_pages_table(cache, kind, pages)[pages->end[kind]] = pd_page_take(pool);
        }
    }
    return PERIDOT_OK;
}

void pd_pages_release(struct pd_cache *cache, struct pd_pages *pages, uint32_t pos, uint32_t slack)
{
    for (uint32_t kind = 0; kind < cache->n_kinds; kind++) {
        struct pd_page_pool *pool = &cache->pools[kind];
        uint64_t kept = (uint64_t)pool->window - 1 + slack;
        if (!pool->window || pos <= kept) continue;
        for (; pool->n_pages && pages->begin[kind] < (pos - kept) / PD_PAGE; pages->begin[kind]++)
            pd_page_give_back(pool, pd_pages_table(cache, kind, pages)[pages->begin[kind]]);
    }
}

/* Page `at` of the table of a kind becomes a copy of page `from` in all layers of the kind. */
static peridot_status take_copy(struct pd_cache *cache, uint32_t kind, uint32_t *at, uint32_t from)
{
    struct pd_page_pool *pool = &cache->pools[kind];
    PD_TRY(pd_cache_make_room(cache, kind, 1));
    uint32_t page = pd_page_take(pool);
    peridot_status status = pd_page_copy(cache, kind, page, from);
    if (status == PERIDOT_OK) *at = page;
    else pd_page_give_back(pool, page);
    return status;
}

peridot_status pd_pages_truncate(struct pd_cache *cache, struct pd_pages *pages, uint32_t n)
{
    pd_states_truncate(cache, pages, n);
    for (uint32_t kind = 0; kind < cache->n_kinds; kind++) {
        struct pd_page_pool *pool = &cache->pools[kind];
        uint32_t end = (uint32_t)pd_div_up(n, PD_PAGE), *table = pd_pages_table(cache, kind, pages);
        if (n == 0) pd_pages_clear(cache, pages, kind);
        while (pages->end[kind] > pd_max(end, pages->begin[kind])) pd_page_give_back(pool, table[--pages->end[kind]]);
        if (n % PD_PAGE == 0 || pages->end[kind] < end || pages->begin[kind] >= end) continue;
        uint32_t last = table[end - 1];
        while (pool->n_references[last] > 1 && cache->snapshots && pd_cache_make_room(cache, kind, 1) != PERIDOT_OK)
            pd_snapshots_drop_oldest(cache);   /* it may be what the page is shared with */
        if (pool->n_references[last] == 1) continue;
        PD_TRY(take_copy(cache, kind, &table[end - 1], last));
        pd_page_give_back(pool, last);
    }
    return PERIDOT_OK;
}

peridot_status pd_pages_fork(struct pd_cache *cache, struct pd_pages *to, const struct pd_pages *from, uint32_t n)
{
    for (uint32_t kind = 0; kind < cache->n_kinds; kind++) {
        struct pd_page_pool *pool = &cache->pools[kind];
        const uint32_t *source = pd_pages_table(cache, kind, from);
        uint32_t *table = pd_pages_table(cache, kind, to), n_full = n / PD_PAGE, end = (uint32_t)pd_div_up(n, PD_PAGE);
        if (!pool->n_pages) continue;
        to->begin[kind] = (uint32_t)pd_min(from->begin[kind], end);
        for (to->end[kind] = to->begin[kind]; to->end[kind] < n_full; to->end[kind]++)
            pool->n_references[table[to->end[kind]] = source[to->end[kind]]]++;
        if (to->end[kind] == end) continue;
        PD_TRY(take_copy(cache, kind, &table[n_full], source[n_full]));
        to->end[kind]++;
    }
    if (n && pd_cache_has_states(cache) && pd_states_have(cache, from, n))
        pd_states_put(cache, to, n, pd_states_number(from, n));
    return PERIDOT_OK;
}

/* Least number of positions, beside none, after which the next one sees only keys that are still there. */
static uint32_t least_of(const struct pd_cache *cache, const struct pd_pages *pages)
{
    uint32_t least = 0;
    for (uint32_t kind = 0; kind < cache->n_kinds; kind++)
        if (pages->begin[kind])
            least = (uint32_t)pd_max(least, pages->begin[kind] * PD_PAGE + cache->pools[kind].window - 1);
    return least;
}

bool pd_pages_reach(const struct pd_cache *cache, const struct pd_pages *pages, uint32_t n)
{
    return n == 0 || (n >= least_of(cache, pages) && pd_states_have(cache, pages, n));
}

uint32_t pd_pages_before(const struct pd_cache *cache, const struct pd_pages *pages, uint32_t n)
{
    if (pd_pages_reach(cache, pages, n)) return n;
    uint32_t at = pd_cache_has_states(cache) ? pd_states_before(pages, n) : 0;
    if (!pd_pages_reach(cache, pages, at)) at = 0;
    return (uint32_t)pd_max(at, pd_snapshot_before(cache, pages, n));
}

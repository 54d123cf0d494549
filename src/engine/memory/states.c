/* States of sequences: of each its latest few, which steps and chunks read and write. A page is written once, by the
 * pass whose end it is of, so that forks and snapshots have it by reference. There are always pages enough: each table
 * has n_states of its own, and what snapshots hold beyond that moves to the host or goes. */
#include "engine/memory/memory.h"

#include "base/base.h"

/* ---- finding ---- */

bool pd_cache_has_states(const struct pd_cache *cache) { return cache->pools[PD_STATE_KIND].n_pages != 0; }

enum { N_ENTRIES = PD_N_STATES + PD_MAX_DRAFT };   /* those from n_states on are empty */

/* The entry with the state after n positions, n > 0; N_ENTRIES: there is none. */
static uint32_t find(const struct pd_pages *pages, uint32_t n)
{
    uint32_t i = 0;
    while (i < N_ENTRIES && pages->states[i].pos != n) i++;
    return i;
}

bool pd_states_have(const struct pd_cache *cache, const struct pd_pages *pages, uint32_t n)
{
    return n == 0 || !pd_cache_has_states(cache) || find(pages, n) < N_ENTRIES;
}

uint32_t pd_states_before(const struct pd_pages *pages, uint32_t n)
{
    uint32_t pos = 0;
    for (uint32_t i = 0; i < N_ENTRIES; i++)
        if (pages->states[i].pos <= n) pos = (uint32_t)pd_max(pos, pages->states[i].pos);
    return pos;
}

uint32_t pd_states_number(const struct pd_pages *pages, uint32_t n) { return pages->states[find(pages, n)].page; }

uint32_t pd_states_room(const struct pd_cache *cache, uint32_t pos)
{
    return pd_cache_has_states(cache) ? PD_STATE_INTERVAL - pos % PD_STATE_INTERVAL : UINT32_MAX;
}

/* ---- changing ---- */

static void drop(struct pd_cache *cache, struct pd_state_entry *s)
{
    if (s->pos) pd_page_give_back(&cache->pools[PD_STATE_KIND], s->page);
    *s = (struct pd_state_entry){0};
}

void pd_states_truncate(struct pd_cache *cache, struct pd_pages *pages, uint32_t n)
{
    for (uint32_t i = 0; i < N_ENTRIES; i++)
        if (pages->states[i].pos > n || n == 0) drop(cache, &pages->states[i]);
}

/* One that has none, or the state of the earliest position. */
static struct pd_state_entry *free_entry(struct pd_cache *cache, struct pd_pages *pages)
{
    struct pd_state_entry *least = &pages->states[0];
    for (uint32_t i = 1; i < cache->n_states; i++)
        if (pages->states[i].pos < least->pos) least = &pages->states[i];
    drop(cache, least);
    return least;
}

void pd_states_put(struct pd_cache *cache, struct pd_pages *pages, uint32_t n, uint32_t page)
{
    if (find(pages, n) < N_ENTRIES) return;
    cache->pools[PD_STATE_KIND].n_references[page]++;
    *free_entry(cache, pages) = (struct pd_state_entry){n, page};
}

peridot_status pd_states_add(struct pd_cache *cache, struct pd_pages *pages, uint32_t n)
{
    struct pd_state_entry *entry = free_entry(cache, pages);
    PD_TRY(pd_cache_make_room(cache, PD_STATE_KIND, 1));
    *entry = (struct pd_state_entry){n, pd_page_take(&cache->pools[PD_STATE_KIND])};
    return PERIDOT_OK;
}

peridot_status pd_states_step(struct pd_state_run *out, uint32_t *each, struct pd_cache *cache, struct pd_pages *pages,
                              uint32_t pos)
{
    uint32_t end = pos + out->n;
    pd_states_truncate(cache, pages, pos);
    if (!pd_states_have(cache, pages, pos))
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "the state of the first %u tokens is gone", pos);
    for (uint32_t n = each ? pos + 1 : end; n <= end; n++) {
        PD_TRY(pd_states_add(cache, pages, n));
        if (each) each[n - pos - 1] = pd_states_number(pages, n);
    }
    out->from = pos ? pd_states_number(pages, pos) : PD_NO_STATE;
    out->to = pd_states_number(pages, end);
    return PERIDOT_OK;
}

/* A snapshot keeps the pages of layers with windows that a position sees, and the state of recurrences after those
 * before it, so that its sequence can go back there. Which sequence that is, its table says. The end of a prompt or of
 * a turn is such a position, and every PD_STATE_INTERVAL where there are states: of those a pass leaves one at its end,
 * and no keys from which others could be had. Where sequences need pages that only snapshots hold, these go to the
 * host's memory, or are dropped.
 *
 * They are counted by reference, as forks go back to the places of what they are forks of. Without them a turn of a
 * model with windows could not be retried but by evaluating the conversation again. */
#include "engine/memory/memory.h"

#include "base/base.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct pd_snapshot {
    struct pd_snapshot *next;          /* the next newer one */
    uint32_t table, pos;
    /* See pd_pages; of layers with windows only, and where there are states of one page. */
    uint32_t begin[PD_STATE_KIND + 1], end[PD_STATE_KIND + 1];
    struct pd_kept_page *pages[];      /* of all kinds, one after the other */
};

static void drop_kept(struct pd_cache *cache, uint32_t kind, struct pd_kept_page *kept)
{
    struct pd_page_pool *pool = &cache->pools[kind];
    if (!kept || --kept->n_snapshots) return;
    if (kept->host) {
        cache->host_size -= pd_page_full_size(cache, kind);
        if (cache->link) pd_link_tell(cache->link, PD_OP_DROP_PAGE, kept->id, 0, 0);
    } else {
        pool->kept[kept->number] = NULL;
        pd_page_give_back(pool, kept->number);
    }
    free(kept->host);
    free(kept);
}

static void drop_snapshot(struct pd_cache *cache, struct pd_snapshot **at)
{
    struct pd_snapshot *s = *at;
    size_t k = 0;
    *at = s->next;
    for (uint32_t kind = 0; kind <= PD_STATE_KIND; kind++)
        for (uint32_t i = s->begin[kind]; i < s->end[kind]; i++) drop_kept(cache, kind, s->pages[k++]);
    free(s);
}

/* ---- room ---- */

static peridot_status move_to_host(struct pd_cache *cache, uint32_t kind, struct pd_kept_page *kept)
{
    struct pd_page_pool *pool = &cache->pools[kind];
    PD_TRY(pd_page_read(&kept->host, cache, kind, kept->number));
    kept->id = ++cache->n_kept;
    if (cache->link) pd_link_tell(cache->link, PD_OP_KEEP_PAGE, kind, kept->number, kept->id);
    cache->host_size += pd_page_full_size(cache, kind);
    pool->kept[kept->number] = NULL;
    pd_page_give_back(pool, kept->number);
    return PERIDOT_OK;
}

/* Of the oldest snapshot that has any, a page on the device that no sequence has; NULL: there is none. */
static struct pd_kept_page *find_movable(const struct pd_cache *cache, uint32_t kind)
{
    for (struct pd_snapshot *s = cache->snapshots; s; s = s->next) {
        struct pd_kept_page **pages = s->pages;
        for (uint32_t i = 0; i < kind; i++) pages += s->end[i] - s->begin[i];
        for (uint32_t i = 0; i < s->end[kind] - s->begin[kind]; i++)
            if (!pages[i]->host && cache->pools[kind].n_references[pages[i]->number] == 1) return pages[i];
    }
    return NULL;
}

void pd_snapshots_drop_oldest(struct pd_cache *cache) { drop_snapshot(cache, &cache->snapshots); }

peridot_status pd_cache_make_room(struct pd_cache *cache, uint32_t kind, uint32_t n)
{
    struct pd_page_pool *pool = &cache->pools[kind];
    while (pool->n_free < n) {
        struct pd_kept_page *kept = find_movable(cache, kind);
        if (!kept && kind == PD_STATE_KIND)
            return pd_fail(PERIDOT_ERROR_MEMORY, "the KV cache has no room for one more state of a sequence");
        if (!kept)
            return pd_fail(PERIDOT_ERROR_MEMORY,
                           "the KV cache is full: %u more positions are needed, %u of %u are free",
                           n * PD_PAGE, pool->n_free * PD_PAGE, pool->n_pages * PD_PAGE);
        bool fits = cache->host_size + pd_page_full_size(cache, kind) <= cache->host_max;
        peridot_status status = fits ? move_to_host(cache, kind, kept) : PERIDOT_ERROR_MEMORY;
        if (status == PERIDOT_ERROR_DEVICE_LOST) return status;   /* those that are the host's are of use elsewhere */
        if (status != PERIDOT_OK) pd_snapshots_drop_oldest(cache);
    }
    return PERIDOT_OK;
}

/* ---- taking, sharing, dropping ---- */

/* Of n snapshots of states, by position, the one that is missed least: what would be read again without it, by how far
 * back it is. Prompts and replies seldom end at a PD_STATE_INTERVAL. */
static const struct pd_snapshot *least_missed(struct pd_snapshot *const *at, uint32_t n)
{
    enum { N_ENDS = 4 };
    const struct pd_snapshot *least = at[0];
    double least_part = INFINITY;
    uint32_t n_ends = at[n - 1]->pos % PD_STATE_INTERVAL != 0;
    for (uint32_t i = n - 1; i-- > 0;) {
        bool is_end = at[i]->pos % PD_STATE_INTERVAL != 0, before_end = at[i + 1]->pos % PD_STATE_INTERVAL != 0;
        n_ends += is_end;
        if (n_ends <= N_ENDS && (is_end || before_end)) continue;
        double gap = at[i + 1]->pos - (i ? at[i - 1]->pos : 0), part = gap / (at[n - 1]->pos - at[i]->pos);
        if (part >= least_part) continue;
        least_part = part;
        least = at[i];
    }
    return least;
}

/* One of a sequence that has too many: the oldest, or of states the least missed. */
static void drop_surplus(struct pd_cache *cache, uint32_t table)
{
    struct pd_snapshot *own[PD_N_SNAPSHOTS + 1];
    uint32_t n = 0;
    for (struct pd_snapshot *s = cache->snapshots; s; s = s->next) {
        if (s->table != table) continue;
        uint32_t i = n++;
        for (; pd_cache_has_states(cache) && i > 0 && own[i - 1]->pos > s->pos; i--) own[i] = own[i - 1];
        own[i] = s;
    }
    if (n <= PD_N_SNAPSHOTS) return;
    const struct pd_snapshot *least = pd_cache_has_states(cache) ? least_missed(own, n) : own[0];
    struct pd_snapshot **at = &cache->snapshots;
    while (*at != least) at = &(*at)->next;
    drop_snapshot(cache, at);
}

static void append(struct pd_cache *cache, struct pd_snapshot *s)
{
    struct pd_snapshot **at = &cache->snapshots;
    while (*at) at = &(*at)->next;
    *at = s;
    s->next = NULL;
}

static struct pd_kept_page *keep(struct pd_page_pool *pool, uint32_t number)
{
    struct pd_kept_page *kept = pool->kept[number];
    if (!kept) kept = calloc(1, sizeof *kept);
    if (!kept) return NULL;
    if (kept->n_snapshots++ == 0) pool->n_references[number]++;
    kept->number = number;
    return pool->kept[number] = kept;
}

peridot_status pd_snapshot_take(struct pd_cache *cache, const struct pd_pages *pages, uint32_t pos)
{
    struct pd_snapshot shape = {.table = pages->table, .pos = pos};
    size_t n = 0, k = 0;
    for (uint32_t kind = 0; kind < cache->n_kinds; kind++) {
        const struct pd_page_pool *pool = &cache->pools[kind];
        if (!pool->window || !pool->n_pages) continue;
        shape.begin[kind] = (pos + 1 > pool->window ? pos + 1 - pool->window : 0) / PD_PAGE;
        shape.end[kind] = (uint32_t)pd_div_up(pos, PD_PAGE);
        n += shape.end[kind] - shape.begin[kind];
    }
    bool has_state = pos && pd_cache_has_states(cache);
    if (has_state && !pd_states_have(cache, pages, pos)) return PERIDOT_OK;
    shape.end[PD_STATE_KIND] = has_state;
    n += has_state;
    if (n == 0) return PERIDOT_OK;
    struct pd_snapshot *s = calloc(1, sizeof *s + n * sizeof *s->pages);
    if (!s) return pd_fail_alloc(n * sizeof *s->pages, "a snapshot");
    *s = shape;
    append(cache, s);
    for (uint32_t kind = 0; kind <= PD_STATE_KIND; kind++)
        for (uint32_t i = s->begin[kind]; i < s->end[kind]; i++) {
            s->pages[k] = keep(&cache->pools[kind], kind == PD_STATE_KIND ? pd_states_number(pages, pos)
                                                                          : pd_pages_table(cache, kind, pages)[i]);
            if (!s->pages[k++]) {
                pd_snapshots_drop(cache, pages, pos - 1);
                return pd_fail_alloc(sizeof(struct pd_kept_page), "a snapshot");
            }
        }
    drop_surplus(cache, pages->table);
    return PERIDOT_OK;
}

/* Pages of a snapshot, of all kinds. */
static size_t count_pages(const struct pd_snapshot *s)
{
    size_t n = 0;
    for (uint32_t kind = 0; kind <= PD_STATE_KIND; kind++) n += s->end[kind] - s->begin[kind];
    return n;
}

peridot_status pd_snapshots_share(struct pd_cache *cache, const struct pd_pages *to, const struct pd_pages *from,
                                  uint32_t pos)
{
    const struct pd_snapshot *last = cache->snapshots;
    while (last && last->next) last = last->next;
    for (const struct pd_snapshot *s = cache->snapshots; last; s = s->next) {
        size_t n = count_pages(s), size = sizeof *s + n * sizeof *s->pages;
        if (s->table == from->table && s->pos <= pos) {
            struct pd_snapshot *copy = malloc(size);
            if (!copy) return pd_fail_alloc(size, "a snapshot");
            memcpy(copy, s, size);
            copy->table = to->table;
            for (size_t i = 0; i < n; i++) copy->pages[i]->n_snapshots++;
            append(cache, copy);
        }
        if (s == last) break;
    }
    return PERIDOT_OK;
}

uint32_t pd_snapshot_before(const struct pd_cache *cache, const struct pd_pages *pages, uint32_t n)
{
    uint32_t pos = 0;
    for (const struct pd_snapshot *s = cache->snapshots; s; s = s->next)
        if (s->table == pages->table && s->pos <= n) pos = (uint32_t)pd_max(pos, s->pos);
    return pos;
}

void pd_snapshots_drop(struct pd_cache *cache, const struct pd_pages *pages, uint32_t pos)
{
    for (struct pd_snapshot **at = &cache->snapshots; *at;)
        if ((*at)->table == pages->table && (*at)->pos > pos) drop_snapshot(cache, at);
        else at = &(*at)->next;
}

static peridot_status move_to_device(struct pd_cache *cache, uint32_t kind, struct pd_kept_page *kept)
{
    struct pd_page_pool *pool = &cache->pools[kind];
    uint64_t size = pd_page_full_size(cache, kind);
    PD_TRY(pd_cache_make_room(cache, kind, 1));
    uint32_t page = pd_page_take(pool);
    peridot_status status = pd_page_write(cache, kind, page, kept->host);
    if (status == PERIDOT_OK && cache->link)
        status = pd_link_tell(cache->link, PD_OP_RESTORE_PAGE, kind, page, kept->id);
    if (status != PERIDOT_OK) {
        pd_page_give_back(pool, page);
        return status;
    }
    free(kept->host);
    *kept = (struct pd_kept_page){.n_snapshots = kept->n_snapshots, .number = page};
    pool->kept[page] = kept;
    cache->host_size -= size;
    return PERIDOT_OK;
}

static peridot_status restore(struct pd_cache *cache, struct pd_pages *pages, const struct pd_snapshot *s)
{
    size_t k = 0;
    for (uint32_t kind = 0; kind < cache->n_kinds; kind++) {
        struct pd_page_pool *pool = &cache->pools[kind];
        if (!pool->window || !pool->n_pages) continue;
        pd_pages_clear(cache, pages, kind);
        pages->begin[kind] = pages->end[kind] = s->begin[kind];
        for (; pages->end[kind] < s->end[kind]; pages->end[kind]++, k++) {
            if (s->pages[k]->host) PD_TRY(move_to_device(cache, kind, s->pages[k]));
            pd_pages_table(cache, kind, pages)[pages->end[kind]] = s->pages[k]->number;
            pool->n_references[s->pages[k]->number]++;
        }
    }
    if (s->end[PD_STATE_KIND] == 0 || pd_states_have(cache, pages, s->pos)) return PERIDOT_OK;
    if (s->pages[k]->host) PD_TRY(move_to_device(cache, PD_STATE_KIND, s->pages[k]));
    pd_states_put(cache, pages, s->pos, s->pages[k]->number);
    return PERIDOT_OK;
}

/* Out of the list in the meantime, so that room is not made by dropping it. */
peridot_status pd_snapshot_restore(struct pd_cache *cache, struct pd_pages *pages, uint32_t pos)
{
    struct pd_snapshot **at = &cache->snapshots;
    while (*at && ((*at)->table != pages->table || (*at)->pos != pos)) at = &(*at)->next;
    struct pd_snapshot *s = *at;
    if (!s) return pd_fail(PERIDOT_ERROR_ARGUMENT, "there is no snapshot at position %u", pos);
    *at = s->next;
    peridot_status status = restore(cache, pages, s);
    append(cache, s);
    return status;
}

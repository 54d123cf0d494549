#include "engine/cache.h"

#include "arch/layers.h"
#include "base/num.h"

#include <stdlib.h>
#include <string.h>

/* ---- sizes ---- */

/* Pages of a kind: a sequence that goes on never has more of a window than what it sees and the slack, at both ends in
 * part. */
static uint32_t pages_needed(uint32_t window, const struct pd_cache_shape *shape)
{
    uint64_t all = pd_div_up(shape->n_positions, PD_PAGE) + shape->n_tables - 1;
    uint64_t each = pd_min(pd_div_up(shape->ctx, PD_PAGE), pd_div_up((uint64_t)window + shape->slack, PD_PAGE) + 1);
    each += shape->n_snapshots * (pd_div_up(window, PD_PAGE) + 1);
    return (uint32_t)(window ? pd_min(all, each * shape->n_tables) : all);
}

static void make_pools(struct pd_cache *cache, const struct pd_config *c, const struct pd_cache_shape *shape)
{
    cache->n_kinds = c->n_kinds;
    for (uint32_t i = 0; i < c->n_layers; i++) {
        const struct pd_layer *layer = &c->layers[i];
        struct pd_page_pool *pool = &cache->pools[layer->kind];
        pool->window = layer->window;
        pool->kv_dim = pd_layer_kv_dim(layer);
        if (pd_layer_owns_kv(c, i)) pool->n_pages = pages_needed(layer->window, shape);
    }
}

/* Bytes of one layer's keys; values take as many. */
static uint64_t half_size(const struct pd_page_pool *pool, peridot_kv_type type)
{
    return (uint64_t)pool->n_pages * PD_PAGE * pool->kv_dim * (type == PERIDOT_KV_F16 ? 2 : 4);
}

uint64_t pd_cache_size(const struct pd_config *config, const struct pd_cache_shape *shape)
{
    struct pd_cache cache = {0};
    uint64_t size = 0;
    make_pools(&cache, config, shape);
    for (uint32_t i = 0; i < config->n_layers; i++)
        if (pd_layer_owns_kv(config, i))
            size += 2 * pd_align(half_size(&cache.pools[config->layers[i].kind], shape->type), 256);
    return size;
}

/* ---- creating ---- */

static peridot_status create_pool(struct pd_page_pool *pool, const struct pd_cache *cache, struct pd_heap *tables)
{
    uint64_t n = (uint64_t)pool->n_pages * PD_PAGE * pool->kv_dim;
    if (n == 0) return PERIDOT_OK;
    if (n > UINT32_MAX)   /* kernels count elements in 32 bits */
        return pd_fail(PERIDOT_ERROR_ARGUMENT,
                       "%u positions have %llu numbers in a layer's keys, and 2^32 - 1 are the most",
                       pool->n_pages * PD_PAGE, (unsigned long long)n);
    pool->free_pages = malloc(pool->n_pages * sizeof *pool->free_pages);
    pool->n_references = calloc(pool->n_pages, sizeof *pool->n_references);
    if (!pool->free_pages || !pool->n_references)
        return pd_fail_alloc(pool->n_pages * sizeof *pool->free_pages, "pages");
    while (pool->n_free < pool->n_pages) {
        pool->free_pages[pool->n_free] = pool->n_pages - 1 - pool->n_free;   /* the first page is taken first */
        pool->n_free++;
    }
    return pd_heap_alloc(&pool->tables, tables, sizeof(uint32_t) * cache->n_tables * cache->table_pages,
                         "tables of pages");
}

static peridot_status create(struct pd_cache *cache, struct pd_gpu *gpu, const struct pd_config *config,
                             struct pd_heap *tables)
{
    cache->layers = calloc(config->n_layers, sizeof *cache->layers);
    cache->spans = calloc(config->n_layers, sizeof *cache->spans);
    cache->kinds = calloc(config->n_layers, sizeof *cache->kinds);
    if (!cache->layers || !cache->spans || !cache->kinds)
        return pd_fail_alloc(config->n_layers * sizeof *cache->spans, "KV cache");
    PD_TRY(pd_heap_create(&cache->heap, gpu, PD_HEAP_DEVICE, pd_min(cache->size, 256u << 20)));
    PD_TRY(pd_commands_create(&cache->commands, gpu));
    for (uint32_t kind = 0; kind < cache->n_kinds; kind++) PD_TRY(create_pool(&cache->pools[kind], cache, tables));
    for (uint32_t i = 0; i < config->n_layers; i++) {
        const struct pd_layer *layer = &config->layers[i];
        const struct pd_page_pool *pool = &cache->pools[layer->kind];
        cache->kinds[i] = layer->kind;
        if (!pd_layer_owns_kv(config, i)) {
            cache->layers[i] = cache->layers[layer->kv_layer];
            continue;
        }
        for (int half = 0; half < 2; half++)
            PD_TRY(pd_heap_alloc(&cache->spans[i][half], cache->heap, half_size(pool, cache->type), "the KV cache"));
        cache->layers[i] = (struct pd_kv){.k = cache->spans[i][0].address, .v = cache->spans[i][1].address,
            .pages = pool->tables.address, .type = cache->type};
    }
    return PERIDOT_OK;
}

peridot_status pd_cache_create(struct pd_cache *out, struct pd_gpu *gpu, const struct pd_config *config,
                               const struct pd_cache_shape *shape, struct pd_heap *tables)
{
    *out = (struct pd_cache){.size = pd_cache_size(config, shape), .type = shape->type, .n_tables = shape->n_tables,
        .n_layers = config->n_layers, .table_pages = (uint32_t)pd_div_up(shape->ctx, PD_PAGE)};
    make_pools(out, config, shape);
    PD_TRY(pd_gpu_check_budget(gpu, out->size, "the KV cache"));
    peridot_status status = create(out, gpu, config, tables);
    if (status != PERIDOT_OK) pd_cache_free(out);
    return status;
}

void pd_cache_free(struct pd_cache *cache)
{
    for (uint32_t kind = 0; kind < cache->n_kinds; kind++) {
        free(cache->pools[kind].free_pages);
        free(cache->pools[kind].n_references);
    }
    pd_commands_free(cache->commands);
    pd_heap_free(cache->heap);
    free(cache->layers);
    free(cache->spans);
    free(cache->kinds);
    *cache = (struct pd_cache){0};
}

/* ---- pages of a sequence ---- */

static uint32_t *table_of(const struct pd_cache *cache, uint32_t kind, const struct pd_pages *pages)
{
    return (uint32_t *)cache->pools[kind].tables.host + (size_t)pages->table * cache->table_pages;
}

static uint32_t take(struct pd_page_pool *pool)
{
    uint32_t page = pool->free_pages[--pool->n_free];
    pool->n_references[page] = 1;
    return page;
}

static void give_back(struct pd_page_pool *pool, uint32_t page)
{
    if (--pool->n_references[page] == 0) pool->free_pages[pool->n_free++] = page;
}

/* Page `at` of the table of a kind becomes a copy of page `from` in all layers of the kind. */
static peridot_status take_copy(struct pd_cache *cache, uint32_t kind, uint32_t *at, uint32_t from)
{
    struct pd_page_pool *pool = &cache->pools[kind];
    uint64_t size = (uint64_t)PD_PAGE * pool->kv_dim * (cache->type == PERIDOT_KV_F16 ? 2 : 4);
    if (pool->n_free == 0)
        return pd_fail(PERIDOT_ERROR_MEMORY, "the KV cache is full: all of its %u pages are taken", pool->n_pages);
    uint32_t page = take(pool);
    PD_TRY(pd_commands_begin(cache->commands));
    for (uint32_t i = 0; i < cache->n_layers; i++)
        for (int half = 0; half < 2 && cache->kinds[i] == kind && cache->spans[i][0].size; half++)
            pd_copy(cache->commands, cache->spans[i][half], page * size, cache->spans[i][half], from * size, size);
    peridot_status status = pd_commands_end(cache->commands);
    if (status == PERIDOT_OK) status = pd_commands_run(cache->commands);
    if (status == PERIDOT_OK) *at = page;
    else give_back(pool, page);
    return status;
}

uint32_t pd_pages_number(const struct pd_cache *cache, const struct pd_pages *pages, uint32_t kind, uint32_t i)
{
    return table_of(cache, kind, pages)[i];
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
    for (uint32_t kind = 0; kind < cache->n_kinds; kind++) {
        const struct pd_page_pool *pool = &cache->pools[kind];
        if (pool->n_pages && end > pages->end[kind] && end - pages->end[kind] > pool->n_free)
            return pd_fail(PERIDOT_ERROR_MEMORY,
                           "the KV cache is full: %u positions more do not fit the %u that are left of %u",
                           n - pages->end[kind] * PD_PAGE, pool->n_free * PD_PAGE, pool->n_pages * PD_PAGE);
    }
    for (uint32_t kind = 0; kind < cache->n_kinds; kind++) {
        struct pd_page_pool *pool = &cache->pools[kind];
        for (; pool->n_pages && pages->end[kind] < end; pages->end[kind]++) {
            table_of(cache, kind, pages)[pages->end[kind]] = take(pool);
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
            give_back(pool, table_of(cache, kind, pages)[pages->begin[kind]]);
    }
}

static void release_all(struct pd_cache *cache, struct pd_pages *pages, uint32_t kind)
{
    while (pages->end[kind] > pages->begin[kind])
        give_back(&cache->pools[kind], table_of(cache, kind, pages)[--pages->end[kind]]);
    pages->begin[kind] = pages->end[kind] = 0;
}

peridot_status pd_pages_truncate(struct pd_cache *cache, struct pd_pages *pages, uint32_t n)
{
    for (uint32_t kind = 0; kind < cache->n_kinds; kind++) {
        struct pd_page_pool *pool = &cache->pools[kind];
        uint32_t end = (uint32_t)pd_div_up(n, PD_PAGE), *table = table_of(cache, kind, pages);
        if (n == 0) release_all(cache, pages, kind);
        while (pages->end[kind] > pd_max(end, pages->begin[kind])) give_back(pool, table[--pages->end[kind]]);
        if (n % PD_PAGE == 0 || pages->end[kind] < end || pages->begin[kind] >= end) continue;
        uint32_t last = table[end - 1];
        if (pool->n_references[last] == 1) continue;
        PD_TRY(take_copy(cache, kind, &table[end - 1], last));
        give_back(pool, last);
    }
    return PERIDOT_OK;
}

peridot_status pd_pages_fork(struct pd_cache *cache, struct pd_pages *to, const struct pd_pages *from, uint32_t n)
{
    for (uint32_t kind = 0; kind < cache->n_kinds; kind++) {
        struct pd_page_pool *pool = &cache->pools[kind];
        const uint32_t *source = table_of(cache, kind, from);
        uint32_t *table = table_of(cache, kind, to), n_full = n / PD_PAGE, end = (uint32_t)pd_div_up(n, PD_PAGE);
        if (!pool->n_pages) continue;
        to->begin[kind] = (uint32_t)pd_min(from->begin[kind], end);
        for (to->end[kind] = to->begin[kind]; to->end[kind] < n_full; to->end[kind]++)
            pool->n_references[table[to->end[kind]] = source[to->end[kind]]]++;
        if (to->end[kind] == end) continue;
        PD_TRY(take_copy(cache, kind, &table[n_full], source[n_full]));
        to->end[kind]++;
    }
    return PERIDOT_OK;
}

/* ---- snapshots ---- */

peridot_status pd_snapshot_take(struct pd_snapshot *out, struct pd_cache *cache, const struct pd_pages *pages,
                                uint32_t pos)
{
    size_t n = 0, at = 0;
    *out = (struct pd_snapshot){.pos = pos};
    for (uint32_t kind = 0; kind < cache->n_kinds; kind++) {
        const struct pd_page_pool *pool = &cache->pools[kind];
        if (!pool->window || !pool->n_pages) continue;
        out->begin[kind] = (pos + 1 > pool->window ? pos + 1 - pool->window : 0) / PD_PAGE;
        out->end[kind] = (uint32_t)pd_div_up(pos, PD_PAGE);
        n += out->end[kind] - out->begin[kind];
    }
    out->pages = malloc(pd_max(n, 1) * sizeof *out->pages);
    if (!out->pages) return pd_fail_alloc(n * sizeof *out->pages, "a snapshot");
    for (uint32_t kind = 0; kind < cache->n_kinds; kind++)
        for (uint32_t i = out->begin[kind]; i < out->end[kind]; i++, at++) {
            out->pages[at] = table_of(cache, kind, pages)[i];
            cache->pools[kind].n_references[out->pages[at]]++;
        }
    return PERIDOT_OK;
}

void pd_snapshot_free(struct pd_snapshot *snapshot, struct pd_cache *cache)
{
    size_t at = 0;
    for (uint32_t kind = 0; snapshot->pos && kind < cache->n_kinds; kind++)
        for (uint32_t i = snapshot->begin[kind]; i < snapshot->end[kind]; i++)
            give_back(&cache->pools[kind], snapshot->pages[at++]);
    free(snapshot->pages);
    *snapshot = (struct pd_snapshot){0};
}

void pd_snapshot_restore(const struct pd_snapshot *snapshot, struct pd_cache *cache, struct pd_pages *pages)
{
    size_t at = 0;
    for (uint32_t kind = 0; kind < cache->n_kinds; kind++) {
        struct pd_page_pool *pool = &cache->pools[kind];
        if (!pool->window || !pool->n_pages) continue;
        release_all(cache, pages, kind);
        for (uint32_t i = snapshot->begin[kind]; i < snapshot->end[kind]; i++) {
            pool->n_references[snapshot->pages[at]]++;
            table_of(cache, kind, pages)[i] = snapshot->pages[at++];
        }
        pages->begin[kind] = snapshot->begin[kind];
        pages->end[kind] = snapshot->end[kind];
    }
}

uint32_t pd_pages_least(const struct pd_cache *cache, const struct pd_pages *pages)
{
    uint32_t least = 0;
    for (uint32_t kind = 0; kind < cache->n_kinds; kind++)
        if (pages->begin[kind])
            least = (uint32_t)pd_max(least, pages->begin[kind] * PD_PAGE + cache->pools[kind].window - 1);
    return least;
}

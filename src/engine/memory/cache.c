/* The KV cache: pages of PD_PAGE positions, which sequences take as they grow and share by reference. Layers whose
 * attention has one shape are of one kind: they have the same page numbers, each with buffers of its own, so that a
 * table of pages per sequence and kind serves them all. Here are the memory of the pages, their counts of references
 * and the sequences' tables; pages.c is what sequences do with pages, snapshots.c what is kept to go back.
 *
 * Pages and not a ring for each sequence: a sequence takes memory as it grows, a prefix is shared and not copied, and
 * kernels read a page's number per tile of keys, where a ring takes a remainder for each. */
#include "engine/memory/memory.h"

#include "arch/arch.h"
#include "base/base.h"

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

/* Bytes of a layer's state and of its convolution's tail, or of the tail alone; false: no layer has one. */
static bool measure_state(uint64_t size[2], const struct pd_config *c)
{
    const struct pd_layer *layer = pd_layers_recurrence(c);
    if (!layer) return false;
    const struct pd_delta *d = &layer->delta;
    uint64_t tail_size = pd_tail_size(pd_delta_conv_dim(d), d->conv);
    size[0] = d->n_v ? pd_state_size(d->n_v, d->d_k, d->d_v) : tail_size;
    size[1] = d->n_v ? tail_size : 0;
    return true;
}

static void make_pools(struct pd_cache *cache, const struct pd_config *c, const struct pd_cache_shape *shape)
{
    cache->n_kinds = c->n_kinds;
    for (uint32_t i = 0; i < c->n_layers; i++) {
        const struct pd_layer *layer = &c->layers[i];
        struct pd_page_pool *pool = &cache->pools[layer->kind];
        pool->window = layer->window;
        pool->kv_dim = pd_layer_kv_dim(layer);
        for (int side = 0; side < 2; side++)
            pool->page_size[side] =
                (uint64_t)PD_PAGE * layer->n_kv_heads * pd_kv_head_size(shape->type, side, layer->head_dim);
        if (pd_layer_owns_kv(c, i) && !pd_layer_recurs(layer)) pool->n_pages = pages_needed(layer->window, shape);
    }
    struct pd_page_pool *states = &cache->pools[PD_STATE_KIND];
    if (measure_state(states->page_size, c))
        states->n_pages = shape->n_tables * (PD_N_STATES + shape->n_draft) + shape->n_snapshots;
}

uint64_t pd_states_size(const struct pd_config *c)
{
    uint64_t size[2], all = 0;
    if (!measure_state(size, c)) return 0;
    for (uint32_t i = 0; i < c->n_layers; i++) all += pd_layer_recurs(&c->layers[i]) ? size[0] + size[1] : 0;
    return PD_N_STATES * all;
}

/* Bytes of one layer's keys, or of its values. */
static uint64_t half_size(const struct pd_page_pool *pool, int half) { return pool->n_pages * pool->page_size[half]; }

static uint32_t kind_of(const struct pd_layer *layer) { return pd_layer_recurs(layer) ? PD_STATE_KIND : layer->kind; }

/* Whether the layer has keys and values of its own, here. */
static bool is_here(const struct pd_config *config, const struct pd_cache_shape *shape, uint32_t layer)
{
    return pd_layer_owns_kv(config, layer) && layer >= shape->first_layer
        && (shape->end_layer == 0 || layer < shape->end_layer);
}

uint64_t pd_cache_size(const struct pd_config *config, const struct pd_cache_shape *shape)
{
    struct pd_cache cache = {0};
    uint64_t size = 0;
    make_pools(&cache, config, shape);
    for (uint32_t i = 0; i < config->n_layers; i++)
        for (int half = 0; half < 2 && is_here(config, shape, i); half++)
            size += pd_align(half_size(&cache.pools[kind_of(&config->layers[i])], half), 256);
    return size;
}

/* ---- creating ---- */

static peridot_status create_pool(struct pd_page_pool *pool, const struct pd_cache *cache, struct pd_heap *tables)
{
    bool states = pool == &cache->pools[PD_STATE_KIND], keeps = pool->window || states;
    uint64_t n = (uint64_t)pool->n_pages * PD_PAGE * pool->kv_dim;
    if (pool->n_pages == 0 || (n == 0 && !states)) return PERIDOT_OK;
    if (n > UINT32_MAX)   /* kernels count elements in 32 bits */
        return pd_fail(PERIDOT_ERROR_ARGUMENT,
                       "%u positions have %llu numbers in a layer's keys, and at most 2^32 - 1 are supported",
                       pool->n_pages * PD_PAGE, (unsigned long long)n);
    pool->free_pages = malloc(pool->n_pages * sizeof *pool->free_pages);
    pool->n_references = calloc(pool->n_pages, sizeof *pool->n_references);
    if (keeps) pool->kept = calloc(pool->n_pages, sizeof *pool->kept);
    if (!pool->free_pages || !pool->n_references || (keeps && !pool->kept))
        return pd_fail_alloc(pool->n_pages * sizeof *pool->free_pages, "pages");
    while (pool->n_free < pool->n_pages) {
        pool->free_pages[pool->n_free] = pool->n_pages - 1 - pool->n_free;   /* the first page is taken first */
        pool->n_free++;
    }
    if (states) return PERIDOT_OK;   /* passes are told which */
    return pd_heap_alloc(&pool->tables, tables, sizeof(uint32_t) * cache->n_tables * cache->table_pages,
                         "tables of pages");
}

static peridot_status cache_create(struct pd_cache *cache, const struct pd_config *config,
                                   const struct pd_cache_shape *shape, struct pd_heap *tables)
{
    struct pd_gpu *gpu = cache->gpu;
    cache->layers = calloc(config->n_layers, sizeof *cache->layers);
    cache->spans = calloc(config->n_layers, sizeof *cache->spans);
    cache->kinds = calloc(config->n_layers, sizeof *cache->kinds);
    if (!cache->layers || !cache->spans || !cache->kinds)
        return pd_fail_alloc(config->n_layers * sizeof *cache->spans, "KV cache");
    PD_TRY(pd_heap_create(&cache->heap, gpu, PD_HEAP_DEVICE, pd_min(cache->size, 256u << 20)));
    PD_TRY(pd_commands_create(&cache->commands, gpu));
    for (uint32_t kind = 0; kind <= PD_STATE_KIND; kind++) PD_TRY(create_pool(&cache->pools[kind], cache, tables));
    for (uint32_t i = 0; i < config->n_layers; i++) {
        const struct pd_layer *layer = &config->layers[i];
        const struct pd_page_pool *pool = &cache->pools[kind_of(layer)];
        cache->kinds[i] = kind_of(layer);
        if (!pd_layer_owns_kv(config, i)) {
            cache->layers[i] = cache->layers[layer->kv_layer];
            continue;
        }
        if (!is_here(config, shape, i)) continue;
        for (int half = 0; half < 2; half++)
            if (half_size(pool, half))
                PD_TRY(pd_heap_alloc(&cache->spans[i][half], cache->heap, half_size(pool, half), "the KV cache"));
        cache->layers[i] = (struct pd_kv){.k = cache->spans[i][0].address, .v = cache->spans[i][1].address,
            .pages = pool->tables.address, .type = cache->type};
    }
    return PERIDOT_OK;
}

peridot_status pd_cache_create(struct pd_cache *out, struct pd_gpu *gpu, const struct pd_config *config,
                               const struct pd_cache_shape *shape, struct pd_heap *tables)
{
    *out = (struct pd_cache){.gpu = gpu, .size = pd_cache_size(config, shape), .type = shape->type,
        .host_max = shape->host_max, .link = shape->link, .n_tables = shape->n_tables, .n_layers = config->n_layers,
        .n_states = PD_N_STATES + shape->n_draft,
        .table_pages = (uint32_t)pd_div_up(shape->ctx, PD_PAGE), .long_rope = pd_rope_is_long(config, shape->ctx)};
    make_pools(out, config, shape);
    PD_TRY(pd_gpu_check_budget(gpu, out->size, "the KV cache"));
    peridot_status status = cache_create(out, config, shape, tables);
    if (status != PERIDOT_OK) pd_cache_free(out);
    return status;
}

peridot_status pd_cache_add_layer(struct pd_cache *cache, uint32_t kind)
{
    uint32_t n = cache->n_layers;
    const struct pd_page_pool *pool = &cache->pools[kind];
    void **lists[] = {(void **)&cache->layers, (void **)&cache->spans, (void **)&cache->kinds};
    const size_t sizes[] = {sizeof *cache->layers, sizeof *cache->spans, sizeof *cache->kinds};
    for (size_t i = 0; i < PD_COUNT(lists); i++) {
        void *list = realloc(*lists[i], (n + 1) * sizes[i]);
        if (!list) return pd_fail_alloc((n + 1) * sizes[i], "layers");
        *lists[i] = list;
        memset((char *)list + n * sizes[i], 0, sizes[i]);
    }
    for (int half = 0; half < 2; half++) {
        PD_TRY(pd_heap_alloc(&cache->spans[n][half], cache->heap, half_size(pool, half), "the KV cache"));
        PD_TRY(pd_span_zero(cache->gpu, cache->spans[n][half]));
        cache->size += half_size(pool, half);
    }
    cache->layers[n] = (struct pd_kv){.k = cache->spans[n][0].address, .v = cache->spans[n][1].address,
        .pages = pool->tables.address, .type = cache->type};
    cache->kinds[n] = kind;
    cache->n_layers++;
    return PERIDOT_OK;
}

void pd_cache_free(struct pd_cache *cache)
{
    for (uint32_t kind = 0; kind <= PD_STATE_KIND; kind++) {
        free(cache->pools[kind].free_pages);
        free(cache->pools[kind].n_references);
        free(cache->pools[kind].kept);
    }
    pd_commands_free(cache->commands);
    pd_heap_free(cache->heap);
    pd_heap_free(cache->staging_heap);
    free(cache->layers);
    free(cache->spans);
    free(cache->kinds);
    *cache = (struct pd_cache){0};
}

uint32_t pd_cache_free_positions(const struct pd_cache *cache)
{
    uint32_t least = UINT32_MAX;
    bool whole = false;
    for (uint32_t kind = 0; kind < cache->n_kinds; kind++)
        whole = whole || (cache->pools[kind].n_pages && !cache->pools[kind].window);
    for (uint32_t kind = 0; kind < cache->n_kinds; kind++) {
        const struct pd_page_pool *pool = &cache->pools[kind];
        if (pool->n_pages && !(whole && pool->window)) least = (uint32_t)pd_min(least, pool->n_free);
    }
    return least * PD_PAGE;
}

/* ---- pages ---- */

uint32_t pd_page_take(struct pd_page_pool *pool)
{
    uint32_t page = pool->free_pages[--pool->n_free];
    pool->n_references[page] = 1;
    return page;
}

void pd_page_give_back(struct pd_page_pool *pool, uint32_t page)
{
    if (--pool->n_references[page] == 0) pool->free_pages[pool->n_free++] = page;
}

uint64_t pd_page_full_size(const struct pd_cache *cache, uint32_t kind)
{
    uint64_t size = 0;
    for (uint32_t i = 0; i < cache->n_layers; i++)
        if (cache->kinds[i] == kind && cache->spans[i][0].size)
            size += cache->pools[kind].page_size[0] + cache->pools[kind].page_size[1];
    return size;
}

#define STAGING UINT32_MAX   /* in place of a page's number */

/* Copies pages of the kind in all of its layers: from one to another, or to or from the staging memory (UINT32_MAX). */
static peridot_status copy_page(struct pd_cache *cache, uint32_t kind, uint32_t to, uint32_t from)
{
    const uint64_t *sizes = cache->pools[kind].page_size;
    uint64_t staged = 0;
    PD_TRY(pd_commands_begin(cache->commands));
    for (uint32_t i = 0; i < cache->n_layers; i++)
        for (int half = 0; half < 2 && cache->kinds[i] == kind && cache->spans[i][half].size; staged += sizes[half++])
            pd_copy(cache->commands, to == STAGING ? cache->staging : cache->spans[i][half],
                    to == STAGING ? staged : to * sizes[half], from == STAGING ? cache->staging : cache->spans[i][half],
                    from == STAGING ? staged : from * sizes[half], sizes[half]);
    PD_TRY(pd_commands_end(cache->commands));
    return pd_commands_run(cache->commands);
}

peridot_status pd_page_copy(struct pd_cache *cache, uint32_t kind, uint32_t to, uint32_t from)
{
    if (cache->link) PD_TRY(pd_link_tell(cache->link, PD_OP_COPY_PAGE, kind, to, from));
    return copy_page(cache, kind, to, from);
}

static peridot_status open_staging(struct pd_cache *cache)
{
    uint64_t size = 0;
    if (cache->staging.size) return PERIDOT_OK;
    for (uint32_t kind = 0; kind <= PD_STATE_KIND; kind++)
        if (cache->pools[kind].kept) size = pd_max(size, pd_page_full_size(cache, kind));
    if (!cache->staging_heap) PD_TRY(pd_heap_create(&cache->staging_heap, cache->gpu, PD_HEAP_HOST, pd_max(size, 1)));
    return pd_heap_alloc(&cache->staging, cache->staging_heap, size, "staging");
}

peridot_status pd_page_read(uint8_t **host, struct pd_cache *cache, uint32_t kind, uint32_t page)
{
    uint64_t size = pd_page_full_size(cache, kind);
    PD_TRY(open_staging(cache));
    PD_TRY(copy_page(cache, kind, STAGING, page));
    *host = malloc(pd_max(size, 1));
    if (!*host) return pd_fail_alloc(size, "a snapshot");
    memcpy(*host, cache->staging.host, size);
    return PERIDOT_OK;
}

peridot_status pd_page_write(struct pd_cache *cache, uint32_t kind, uint32_t page, const uint8_t *host)
{
    PD_TRY(open_staging(cache));
    memcpy(cache->staging.host, host, pd_page_full_size(cache, kind));
    return copy_page(cache, kind, page, STAGING);
}

/* ---- tables of pages ---- */

uint32_t *pd_pages_table(const struct pd_cache *cache, uint32_t kind, const struct pd_pages *pages)
{
    uint32_t *tables = cache->pools[kind].tables.host;   /* NULL: the kind has no pages here */
    return tables ? tables + (size_t)pages->table * cache->table_pages : NULL;
}

void pd_pages_clear(struct pd_cache *cache, struct pd_pages *pages, uint32_t kind)
{
    while (pages->end[kind] > pages->begin[kind])
        pd_page_give_back(&cache->pools[kind], pd_pages_table(cache, kind, pages)[--pages->end[kind]]);
    pages->begin[kind] = pages->end[kind] = 0;
}

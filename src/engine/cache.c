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
        pool->page_size = (uint64_t)PD_PAGE * layer->n_kv_heads * pd_kv_head_size(shape->type, layer->head_dim);
        if (pd_layer_owns_kv(c, i)) pool->n_pages = pages_needed(layer->window, shape);
    }
}

/* Bytes of one layer's keys; values take as many. */
static uint64_t half_size(const struct pd_page_pool *pool) { return pool->n_pages * pool->page_size; }

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
        if (is_here(config, shape, i))
            size += 2 * pd_align(half_size(&cache.pools[config->layers[i].kind]), 256);
    return size;
}

/* ---- creating ---- */

static peridot_status create_pool(struct pd_page_pool *pool, const struct pd_cache *cache, struct pd_heap *tables)
{
    uint64_t n = (uint64_t)pool->n_pages * PD_PAGE * pool->kv_dim;
    if (n == 0) return PERIDOT_OK;
    if (n > UINT32_MAX)   /* kernels count elements in 32 bits */
        return pd_fail(PERIDOT_ERROR_ARGUMENT,
                       "%u positions have %llu numbers in a layer's keys, and at most 2^32 - 1 are supported",
                       pool->n_pages * PD_PAGE, (unsigned long long)n);
    pool->free_pages = malloc(pool->n_pages * sizeof *pool->free_pages);
    pool->n_references = calloc(pool->n_pages, sizeof *pool->n_references);
    if (pool->window) pool->kept = calloc(pool->n_pages, sizeof *pool->kept);
    if (!pool->free_pages || !pool->n_references || (pool->window && !pool->kept))
        return pd_fail_alloc(pool->n_pages * sizeof *pool->free_pages, "pages");
    while (pool->n_free < pool->n_pages) {
        pool->free_pages[pool->n_free] = pool->n_pages - 1 - pool->n_free;   /* the first page is taken first */
        pool->n_free++;
    }
    return pd_heap_alloc(&pool->tables, tables, sizeof(uint32_t) * cache->n_tables * cache->table_pages,
                         "tables of pages");
}

static peridot_status create(struct pd_cache *cache, const struct pd_config *config,
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
    for (uint32_t kind = 0; kind < cache->n_kinds; kind++) PD_TRY(create_pool(&cache->pools[kind], cache, tables));
    for (uint32_t i = 0; i < config->n_layers; i++) {
        const struct pd_layer *layer = &config->layers[i];
        const struct pd_page_pool *pool = &cache->pools[layer->kind];
        cache->kinds[i] = layer->kind;
        if (!pd_layer_owns_kv(config, i)) {
            cache->layers[i] = cache->layers[layer->kv_layer];
            continue;
        }
        if (!is_here(config, shape, i)) continue;
        for (int half = 0; half < 2; half++)
            PD_TRY(pd_heap_alloc(&cache->spans[i][half], cache->heap, half_size(pool), "the KV cache"));
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
        .table_pages = (uint32_t)pd_div_up(shape->ctx, PD_PAGE)};
    make_pools(out, config, shape);
    PD_TRY(pd_gpu_check_budget(gpu, out->size, "the KV cache"));
    peridot_status status = create(out, config, shape, tables);
    if (status != PERIDOT_OK) pd_cache_free(out);
    return status;
}

void pd_cache_free(struct pd_cache *cache)
{
    for (uint32_t kind = 0; kind < cache->n_kinds; kind++) {
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

/* ---- pages of a sequence ---- */

static uint32_t *table_of(const struct pd_cache *cache, uint32_t kind, const struct pd_pages *pages)
{
    return (uint32_t *)cache->pools[kind].tables.host + (size_t)pages->table * cache->table_pages;
}

#define STAGING UINT32_MAX   /* in place of a page's number */

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

/* Copies pages of the kind in all of its layers: from one to another, or to or from the staging memory (UINT32_MAX). */
static peridot_status copy_page(struct pd_cache *cache, uint32_t kind, uint32_t to, uint32_t from)
{
    uint64_t size = cache->pools[kind].page_size, staged = 0;
    PD_TRY(pd_commands_begin(cache->commands));
    for (uint32_t i = 0; i < cache->n_layers; i++)
        for (int half = 0; half < 2 && cache->kinds[i] == kind && cache->spans[i][0].size; half++, staged += size)
            pd_copy(cache->commands, to == STAGING ? cache->staging : cache->spans[i][half],
                    to == STAGING ? staged : to * size, from == STAGING ? cache->staging : cache->spans[i][half],
                    from == STAGING ? staged : from * size, size);
    PD_TRY(pd_commands_end(cache->commands));
    return pd_commands_run(cache->commands);
}

peridot_status pd_page_copy(struct pd_cache *cache, uint32_t kind, uint32_t to, uint32_t from)
{
    if (cache->link) PD_TRY(pd_link_tell(cache->link, PD_OP_COPY_PAGE, kind, to, from));
    return copy_page(cache, kind, to, from);
}

/* ---- pages that snapshots keep ---- */

struct pd_snapshot {
    struct pd_snapshot *next;          /* the next newer one */
    uint32_t table, pos;
    uint32_t begin[PD_MAX_LAYER_KINDS], end[PD_MAX_LAYER_KINDS];   /* see pd_pages; of layers with windows only */
    struct pd_kept_page *pages[];      /* of all kinds, one after the other */
};

/* Bytes of a page in all layers of the kind. */
static uint64_t kept_size(const struct pd_cache *cache, uint32_t kind)
{
    uint64_t size = 0;
    for (uint32_t i = 0; i < cache->n_layers; i++)
        if (cache->kinds[i] == kind && cache->spans[i][0].size) size += 2 * cache->pools[kind].page_size;
    return size;
}

static void drop_kept(struct pd_cache *cache, uint32_t kind, struct pd_kept_page *kept)
{
    struct pd_page_pool *pool = &cache->pools[kind];
    if (!kept || --kept->n_snapshots) return;
    if (kept->host) {
        cache->host_size -= kept_size(cache, kind);
        if (cache->link) pd_link_tell(cache->link, PD_OP_DROP_PAGE, kept->id, 0, 0);
    } else {
        pool->kept[kept->number] = NULL;
        give_back(pool, kept->number);
    }
    free(kept->host);
    free(kept);
}

static void drop_snapshot(struct pd_cache *cache, struct pd_snapshot **at)
{
    struct pd_snapshot *s = *at;
    size_t k = 0;
    *at = s->next;
    for (uint32_t kind = 0; kind < cache->n_kinds; kind++)
        for (uint32_t i = s->begin[kind]; i < s->end[kind]; i++) drop_kept(cache, kind, s->pages[k++]);
    free(s);
}

static peridot_status open_staging(struct pd_cache *cache)
{
    uint64_t size = 0;
    if (cache->staging.size) return PERIDOT_OK;
    for (uint32_t kind = 0; kind < cache->n_kinds; kind++)
        if (cache->pools[kind].window) size = pd_max(size, kept_size(cache, kind));
    if (!cache->staging_heap) PD_TRY(pd_heap_create(&cache->staging_heap, cache->gpu, PD_HEAP_HOST, pd_max(size, 1)));
    return pd_heap_alloc(&cache->staging, cache->staging_heap, size, "staging");
}

peridot_status pd_page_read(uint8_t **host, struct pd_cache *cache, uint32_t kind, uint32_t page)
{
    uint64_t size = kept_size(cache, kind);
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
    memcpy(cache->staging.host, host, kept_size(cache, kind));
    return copy_page(cache, kind, page, STAGING);
}

static peridot_status move_to_host(struct pd_cache *cache, uint32_t kind, struct pd_kept_page *kept)
{
    struct pd_page_pool *pool = &cache->pools[kind];
    PD_TRY(pd_page_read(&kept->host, cache, kind, kept->number));
    kept->id = ++cache->n_kept;
    if (cache->link) pd_link_tell(cache->link, PD_OP_KEEP_PAGE, kind, kept->number, kept->id);
    cache->host_size += kept_size(cache, kind);
    pool->kept[kept->number] = NULL;
    give_back(pool, kept->number);
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

/* n pages of the kind are free then. Where the host's memory does not take what snapshots have, they are dropped, the
 * oldest first. */
static peridot_status make_room(struct pd_cache *cache, uint32_t kind, uint32_t n)
{
    struct pd_page_pool *pool = &cache->pools[kind];
    while (pool->n_free < n) {
        struct pd_kept_page *kept = find_movable(cache, kind);
        if (!kept)
            return pd_fail(PERIDOT_ERROR_MEMORY,
                           "the KV cache is full: %u more positions are needed, %u of %u are free",
                           n * PD_PAGE, pool->n_free * PD_PAGE, pool->n_pages * PD_PAGE);
        bool fits = cache->host_size + kept_size(cache, kind) <= cache->host_max;
        if (!fits || move_to_host(cache, kind, kept) != PERIDOT_OK) drop_snapshot(cache, &cache->snapshots);
    }
    return PERIDOT_OK;
}

/* ---- pages of sequences that go on and back ---- */

/* Page `at` of the table of a kind becomes a copy of page `from` in all layers of the kind. */
static peridot_status take_copy(struct pd_cache *cache, uint32_t kind, uint32_t *at, uint32_t from)
{
    struct pd_page_pool *pool = &cache->pools[kind];
    PD_TRY(make_room(cache, kind, 1));
    uint32_t page = take(pool);
    peridot_status status = pd_page_copy(cache, kind, page, from);
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
    for (uint32_t kind = 0; kind < cache->n_kinds; kind++)
        if (cache->pools[kind].n_pages && end > pages->end[kind])
            PD_TRY(make_room(cache, kind, end - pages->end[kind]));
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
        while (pool->n_references[last] > 1 && cache->snapshots && make_room(cache, kind, 1) != PERIDOT_OK)
            drop_snapshot(cache, &cache->snapshots);   /* it may be what the page is shared with */
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

uint32_t pd_pages_least(const struct pd_cache *cache, const struct pd_pages *pages)
{
    uint32_t least = 0;
    for (uint32_t kind = 0; kind < cache->n_kinds; kind++)
        if (pages->begin[kind])
            least = (uint32_t)pd_max(least, pages->begin[kind] * PD_PAGE + cache->pools[kind].window - 1);
    return least;
}

/* ---- snapshots ---- */

/* The oldest ones of a sequence that has too many. */
static void drop_surplus(struct pd_cache *cache, uint32_t table)
{
    uint32_t n = 0;
    for (const struct pd_snapshot *s = cache->snapshots; s; s = s->next) n += s->table == table;
    for (struct pd_snapshot **at = &cache->snapshots; n > PD_N_SNAPSHOTS;)
        if ((*at)->table == table) drop_snapshot(cache, at), n--;
        else at = &(*at)->next;
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
    if (n == 0) return PERIDOT_OK;
    struct pd_snapshot *s = calloc(1, sizeof *s + n * sizeof *s->pages);
    if (!s) return pd_fail_alloc(n * sizeof *s->pages, "a snapshot");
    *s = shape;
    append(cache, s);
    for (uint32_t kind = 0; kind < cache->n_kinds; kind++)
        for (uint32_t i = s->begin[kind]; i < s->end[kind]; i++) {
            s->pages[k] = keep(&cache->pools[kind], table_of(cache, kind, pages)[i]);
            if (!s->pages[k++]) {
                pd_snapshots_drop(cache, pages, pos - 1);
                return pd_fail_alloc(sizeof(struct pd_kept_page), "a snapshot");
            }
        }
    drop_surplus(cache, pages->table);
    return PERIDOT_OK;
}

/* Pages of a snapshot, of all kinds. */
static size_t count_pages(const struct pd_cache *cache, const struct pd_snapshot *s)
{
    size_t n = 0;
    for (uint32_t kind = 0; kind < cache->n_kinds; kind++) n += s->end[kind] - s->begin[kind];
    return n;
}

peridot_status pd_snapshots_share(struct pd_cache *cache, const struct pd_pages *to, const struct pd_pages *from,
                                  uint32_t pos)
{
    const struct pd_snapshot *last = cache->snapshots;
    while (last && last->next) last = last->next;
    for (const struct pd_snapshot *s = cache->snapshots; last; s = s->next) {
        size_t n = count_pages(cache, s), size = sizeof *s + n * sizeof *s->pages;
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
    uint64_t size = kept_size(cache, kind);
    PD_TRY(make_room(cache, kind, 1));
    uint32_t page = take(pool);
    peridot_status status = pd_page_write(cache, kind, page, kept->host);
    if (status == PERIDOT_OK && cache->link)
        status = pd_link_tell(cache->link, PD_OP_RESTORE_PAGE, kind, page, kept->id);
    if (status != PERIDOT_OK) {
        give_back(pool, page);
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
        release_all(cache, pages, kind);
        pages->begin[kind] = pages->end[kind] = s->begin[kind];
        for (; pages->end[kind] < s->end[kind]; pages->end[kind]++, k++) {
            if (s->pages[k]->host) PD_TRY(move_to_device(cache, kind, s->pages[k]));
            table_of(cache, kind, pages)[pages->end[kind]] = s->pages[k]->number;
            pool->n_references[s->pages[k]->number]++;
        }
    }
    return PERIDOT_OK;
}

/* Out of the list in the meantime, so that room is not made by dropping it. */
peridot_status pd_snapshot_restore(struct pd_cache *cache, struct pd_pages *pages, uint32_t pos)
{
    struct pd_snapshot **at = &cache->snapshots;
    while ((*at)->table != pages->table || (*at)->pos != pos) at = &(*at)->next;
    struct pd_snapshot *s = *at;
    *at = s->next;
    peridot_status status = restore(cache, pages, s);
    append(cache, s);
    return status;
}

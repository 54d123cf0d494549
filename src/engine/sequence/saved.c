/* A sequence in a file: its tokens, its keys and values, and the state of its sampler. It goes on in another process,
 * or after its session is gone, as if it had never stopped; with another model, or another type of cache, it is
 * refused. */
#include "engine/sequence/sequence.h"

#include "base/base.h"
#include "engine/memory/memory.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The file: this header, the tokens, the best candidates, then of each layer with keys of its own the pages of its
 * keys, then those of its values, and of recurrences their states. Numbers are little-endian, as on all hosts that
 * Peridot runs on. */
static const char magic[8] = {'P', 'D', 'S', 'E', 'Q', 0, 0, 4};

/* The numbers of a chain, in two parts: what comes after each is borrowed. */
#define CHAIN_BEGIN offsetof(peridot_sampling, temperature)
#define CHAIN_SIZE (offsetof(peridot_sampling, bias) - CHAIN_BEGIN)
#define MORE_BEGIN offsetof(peridot_sampling, top_n_sigma)
#define MORE_SIZE (offsetof(peridot_sampling, dry_last_n) + sizeof(uint32_t) - MORE_BEGIN)

/* LONG_ROPE: see pd_rope_is_long; STATE_BEFORE: beside the state after the last token there is the one before it, from
 * which that token can be evaluated again. */
enum { HAS_LOGITS = 1, LONG_ROPE = 2, STATE_BEFORE = 4 };

struct header {
    char magic[8];
    uint64_t model, rng;
    uint32_t kv_type, page, n_kinds, pos, flags;
    uint32_t begin[PD_MAX_LAYER_KINDS], end[PD_MAX_LAYER_KINDS];   /* see pd_pages */
    uint8_t chain[CHAIN_SIZE], more[MORE_SIZE];
    uint64_t adapters[PD_MAX_ADAPTERS];   /* their hashes; 0: none */
    float scales[PD_MAX_ADAPTERS];
};

static uint32_t n_states(const struct header *h)
{
    return (h->pos != 0) + (h->pos > 1 && (h->flags & STATE_BEFORE) != 0);
}

/* Pages of a layer in the file: of states the latest first. */
static uint32_t n_pages(const struct pd_cache *cache, const struct header *h, uint32_t layer)
{
    uint32_t kind = cache->kinds[layer];
    return kind == PD_STATE_KIND ? n_states(h) : h->end[kind] - h->begin[kind];
}

static uint32_t page_number(const struct pd_sequence *q, const struct header *h, uint32_t layer, uint32_t k)
{
    const struct pd_cache *cache = &q->set->cache;
    uint32_t kind = cache->kinds[layer];
    return kind == PD_STATE_KIND ? pd_states_number(&q->pages, h->pos - k)
                                 : pd_pages_number(cache, &q->pages, kind, h->begin[kind] + k);
}

static uint64_t file_size(const struct pd_cache *cache, const struct header *h)
{
    uint64_t size = sizeof *h + h->pos * sizeof(int32_t) + PD_TOPK * sizeof(struct pd_candidate);
    for (uint32_t i = 0; i < cache->n_layers; i++)
        for (int half = 0; half < 2 && cache->spans[i][half].size; half++)
            size += n_pages(cache, h, i) * cache->pools[cache->kinds[i]].page_size[half];
    return size;
}

/* ---- saving ---- */

static struct header make_header(const struct pd_sequence *q, const struct pd_model *model)
{
    const struct pd_cache *cache = &q->set->cache;
    bool before = pd_cache_has_states(cache) && q->pos > 1 && pd_states_have(cache, &q->pages, q->pos - 1);
    struct header h = {.model = model->hash,
                       .rng = q->sampler.rng,
                       .kv_type = cache->type,
                       .page = PD_PAGE,
                       .n_kinds = cache->n_kinds,
                       .pos = q->pos,
                       .flags = (q->logits_pass != 0 ? HAS_LOGITS : 0) | (cache->long_rope ? LONG_ROPE : 0)
                           | (before ? STATE_BEFORE : 0)};
    memcpy(h.magic, magic, sizeof magic);
    memcpy(h.chain, (const uint8_t *)&q->sampler.p + CHAIN_BEGIN, CHAIN_SIZE);
    memcpy(h.more, (const uint8_t *)&q->sampler.p + MORE_BEGIN, MORE_SIZE);
    for (uint32_t i = 0; i < model->adapters.n; i++) {
        h.scales[i] = q->scales.of[i];
        h.adapters[i] = q->scales.of[i] != 0 ? model->adapters.at[i].hash : 0;
    }
    for (uint32_t kind = 0; kind < h.n_kinds; kind++) {
        h.begin[kind] = q->pages.begin[kind];
        h.end[kind] = (uint32_t)pd_min(q->pages.end[kind],
                                       pd_div_up(q->pos, PD_PAGE)); /* not those of steps that were discarded */
    }
    return h;
}

static peridot_status write_all(struct pd_writer *w, const struct pd_sequence *q, const struct pd_model *model)
{
    const struct pd_cache *cache = &q->set->cache;
    const struct header h = make_header(q, model);
    uint64_t largest = 0;
    for (uint32_t kind = 0; kind <= PD_STATE_KIND; kind++)
        for (int half = 0; half < 2; half++) largest = pd_max(largest, cache->pools[kind].page_size[half]);
    PD_TRY(pd_writer_write(w, &h, sizeof h));
    if (q->pos) PD_TRY(pd_writer_write(w, q->tokens, q->pos * sizeof *q->tokens));
    PD_TRY(pd_writer_write(w, q->best, sizeof q->best));
    void *page = malloc(largest);
    if (!page) return pd_fail_alloc(largest, "a page");
    peridot_status status = PERIDOT_OK;
    for (uint32_t i = 0; i < cache->n_layers; i++)
        for (int half = 0; half < 2 && cache->spans[i][half].size; half++) {
            uint64_t size = cache->pools[cache->kinds[i]].page_size[half];
            for (uint32_t k = 0; k < n_pages(cache, &h, i) && status == PERIDOT_OK; k++) {
                status = pd_span_read(model->gpu, page, cache->spans[i][half], page_number(q, &h, i, k) * size, size);
                if (status == PERIDOT_OK) status = pd_writer_write(w, page, size);
            }
        }
    free(page);
    return status;
}

peridot_status pd_sequence_save(const struct pd_sequence *q, const struct pd_model *model, const char *path)
{
    struct pd_writer w;
    PD_TRY(pd_checkpoint_check_output(model->checkpoint, path));
    PD_TRY(pd_writer_open(&w, path));
    peridot_status status = write_all(&w, q, model);
    if (status == PERIDOT_OK) return pd_writer_commit(&w);
    pd_writer_abort(&w);
    return status;
}

/* ---- loading ---- */

static peridot_status check_header(const struct header *h, const struct pd_map *map, const struct pd_sequence_set *set,
                                   const struct pd_model *model, const char *path)
{
    const struct pd_cache *cache = &set->cache;
    if (map->size < sizeof *h || memcmp(h->magic, magic, sizeof magic) != 0)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: not a saved sequence", path);
    if (h->model != model->hash)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "%s: it was saved with another model", path);
    if (h->kv_type != (uint32_t)cache->type || h->page != PD_PAGE || h->n_kinds != cache->n_kinds)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "%s: it was saved with another type of KV cache", path);
    bool is_long = (h->flags & LONG_ROPE) != 0;
    if (is_long != cache->long_rope)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "%s: its keys are rotated for a %s context than the session's", path,
                       is_long ? "longer" : "shorter");
    if (h->pos > set->ctx)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "%s: its %u tokens do not fit the context of %u position%s", path,
                       h->pos, set->ctx, PD_S(set->ctx));
    for (uint32_t kind = 0; kind < h->n_kinds; kind++) {
        const struct pd_page_pool *pool = &cache->pools[kind];
        uint32_t end = pool->n_pages ? (uint32_t)pd_div_up(h->pos, PD_PAGE) : 0;
        uint32_t seen = (pool->window && h->pos + 1 > pool->window ? h->pos + 1 - pool->window : 0) / PD_PAGE;
        if (h->end[kind] != end || h->begin[kind] > pd_min(seen, end))
            return pd_fail(PERIDOT_ERROR_FORMAT, "%s: it lacks pages", path);
    }
    if (map->size != file_size(cache, h))
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: it has %llu bytes, and should have %llu", path,
                       (unsigned long long)map->size, (unsigned long long)file_size(cache, h));
    return PERIDOT_OK;
}

/* Those that it took may be others of the model's now, or not there any more. */
static peridot_status read_scales(struct pd_scales *out, const struct header *h, const struct pd_adapters *adapters,
                                  const char *path)
{
    *out = (struct pd_scales){{0}};
    for (int i = 0; i < PD_MAX_ADAPTERS; i++) {
        uint32_t k = 0;
        if (!h->adapters[i]) continue;
        while (k < adapters->n && adapters->at[k].hash != h->adapters[i]) k++;
        if (k == adapters->n)
            return pd_fail(PERIDOT_ERROR_ARGUMENT, "%s: it was saved with an adapter that the model was not opened "
                           "with", path);
        if (!isfinite(h->scales[i]))
            return pd_fail(PERIDOT_ERROR_FORMAT, "%s: the scale of an adapter is not a finite number", path);
        out->of[k] = h->scales[i];
    }
    return PERIDOT_OK;
}

static peridot_status read_tokens(struct pd_sequence *q, const uint8_t *from, uint32_t n, uint32_t vocab_size,
                                  const char *path)
{
    for (uint32_t i = 0; i < n; i++) {
        int32_t token;
        memcpy(&token, from + i * sizeof token, sizeof token);
        if (!pd_is_image_row(token) && (token < 0 || (uint32_t)token >= vocab_size))
            return pd_fail(PERIDOT_ERROR_FORMAT, "%s: token id %d (number %u) is not below the vocabulary's %u", path,
                           (int)token, i, vocab_size);
        pd_sequence_append(q, &token, 1);
    }
    return PERIDOT_OK;
}

/* Draws rely on it. */
static bool is_before(const struct pd_candidate *a, const struct pd_candidate *b)
{
    return a->logit > b->logit || (a->logit == b->logit && a->id < b->id);
}

/* The candidates for the next token, where there are any: ids that may be drawn, with finite logits, best first. */
static peridot_status read_best(struct pd_sequence *q, const uint8_t *from, const struct header *h,
                                const struct pd_model *model, const char *path)
{
    memcpy(q->best, from, sizeof q->best);
    /* Of no pass here: logits are computed again when they are asked for. */
    q->logits_pass = (h->flags & HAS_LOGITS) && h->pos ? UINT64_MAX : 0;
    if (q->logits_pass == 0 || model->config.head != PERIDOT_HEAD_LANGUAGE) return PERIDOT_OK;
    for (uint32_t i = 0; i < pd_min(PD_TOPK, model->n_pieces); i++) {
        if (q->best[i].id >= model->n_pieces)
            return pd_fail(PERIDOT_ERROR_FORMAT, "%s: candidate %u is token id %u, which is not below the "
                                                 "vocabulary's %u",
                           path, i, q->best[i].id, model->n_pieces);
        if (!isfinite(q->best[i].logit))
            return pd_fail(PERIDOT_ERROR_FORMAT, "%s: the logit of candidate %u is not a finite number", path, i);
        if (i > 0 && !is_before(&q->best[i - 1], &q->best[i]))
            return pd_fail(PERIDOT_ERROR_FORMAT, "%s: candidate %u is not in order", path, i);
    }
    return PERIDOT_OK;
}

static peridot_status read_pages(struct pd_sequence *q, const struct header *h, const uint8_t *from, struct pd_gpu *gpu)
{
    struct pd_cache *cache = &q->set->cache;
    for (uint32_t i = 0; i < cache->n_layers; i++)
        for (int half = 0; half < 2 && cache->spans[i][half].size; half++) {
            uint64_t size = cache->pools[cache->kinds[i]].page_size[half];
            for (uint32_t k = 0; k < n_pages(cache, h, i); k++, from += size)
                PD_TRY(pd_span_write(gpu, cache->spans[i][half], page_number(q, h, i, k) * size, from, size));
        }
    return PERIDOT_OK;
}

static peridot_status saved_read_all(struct pd_sequence *q, const struct header *h, const struct pd_map *map,
                                     const struct pd_model *model, const char *path)
{
    const uint8_t *tokens = map->data + sizeof *h, *best = tokens + h->pos * sizeof(int32_t),
                  *pages = best + sizeof q->best;
    memcpy((uint8_t *)&q->sampler.p + CHAIN_BEGIN, h->chain, CHAIN_SIZE);
    memcpy((uint8_t *)&q->sampler.p + MORE_BEGIN, h->more, MORE_SIZE);
    q->sampler.rng = h->rng;
    PD_TRY(read_scales(&q->scales, h, &model->adapters, path));
    pd_pages_skip(&q->set->cache, &q->pages, h->begin);
    PD_TRY(pd_sequence_extend(q, h->pos));
    for (uint32_t k = 0; pd_cache_has_states(&q->set->cache) && k < n_states(h); k++)
        PD_TRY(pd_states_add(&q->set->cache, &q->pages, h->pos - k));
    PD_TRY(read_tokens(q, tokens, h->pos, model->weights.vocab_size, path));
    PD_TRY(read_best(q, best, h, model, path));
    return read_pages(q, h, pages, model->gpu);
}

peridot_status pd_sequence_load(struct pd_sequence **out, struct pd_sequence_set *set, const struct pd_model *model,
                                const char *path)
{
    struct pd_map map;
    struct header h = {0};
    *out = NULL;
    PD_TRY(pd_map_open(&map, path));
    memcpy(&h, map.size ? map.data : (const void *)&h, pd_min(map.size, sizeof h));
    peridot_status status = check_header(&h, &map, set, model, path);
    if (status == PERIDOT_OK) status = pd_sequence_create(out, set);
    if (status == PERIDOT_OK) status = saved_read_all(*out, &h, &map, model, path);
    status = pd_map_check(status, &map, path);
    if (status != PERIDOT_OK) {
        pd_sequence_free(*out);
        *out = NULL;
    }
    pd_map_close(&map);
    return status;
}

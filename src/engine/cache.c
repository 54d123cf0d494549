#include "engine/cache.h"

#include "arch/layers.h"
#include "base/num.h"

#include <stdlib.h>

static uint32_t ring_of(const struct pd_layer *layer, uint32_t ctx, uint32_t chunk)
{
    return layer->window ? (uint32_t)pd_min((uint64_t)layer->window + chunk - 1, ctx) : ctx;
}

/* Bytes of one layer's keys; values take as many. */
static uint64_t half_size(const struct pd_layer *layer, uint32_t n_regions, uint32_t ring, peridot_kv_type type)
{
    return (uint64_t)n_regions * ring * pd_layer_kv_dim(layer) * (type == PERIDOT_KV_F16 ? 2 : 4);
}

uint64_t pd_cache_size(const struct pd_config *config, uint32_t n_regions, uint32_t ctx, uint32_t chunk, peridot_kv_type type)
{
    uint64_t size = 0;
    for (uint32_t i = 0; i < config->n_layers; i++)
        if (pd_layer_owns_kv(config, i)) {
            uint32_t ring = ring_of(&config->layers[i], ctx, chunk);
            size += 2 * pd_align(half_size(&config->layers[i], n_regions, ring, type), 256);
        }
    return size;
}

static peridot_status alloc_layers(struct pd_cache *cache, const struct pd_config *config, uint32_t n_regions, uint32_t ctx,
                                   uint32_t chunk, peridot_kv_type type)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < config->n_layers; i++)
        n = pd_max(n, (uint64_t)n_regions * ctx * pd_layer_kv_dim(&config->layers[i]));
    if (n > UINT32_MAX)   /* kernels count elements in 32 bits */
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "%u sequences of %u positions have %llu numbers in a layer's keys, and 2^32 - 1 are the most",
                       n_regions, ctx, (unsigned long long)n);
    for (uint32_t i = 0; i < config->n_layers; i++) {
        struct pd_kv *kv = &cache->layers[i];
        struct pd_span k, v;
        if (!pd_layer_owns_kv(config, i)) {
            *kv = cache->layers[config->layers[i].kv_layer];
            continue;
        }
        *kv = (struct pd_kv){.ring = ring_of(&config->layers[i], ctx, chunk), .type = type};
        uint64_t size = half_size(&config->layers[i], n_regions, kv->ring, type);
        PD_TRY(pd_heap_alloc(&k, cache->heap, size, "the KV cache"));
        PD_TRY(pd_heap_alloc(&v, cache->heap, size, "the KV cache"));
        kv->k = k.address;
        kv->v = v.address;
    }
    return PERIDOT_OK;
}

peridot_status pd_cache_create(struct pd_cache *out, struct pd_gpu *gpu, const struct pd_config *config,
                               uint32_t n_regions, uint32_t ctx, uint32_t chunk, peridot_kv_type type)
{
    *out = (struct pd_cache){.size = pd_cache_size(config, n_regions, ctx, chunk, type)};
    PD_TRY(pd_gpu_check_budget(gpu, out->size, "the KV cache"));
    out->layers = calloc(config->n_layers, sizeof *out->layers);
    if (!out->layers) return pd_fail_alloc(config->n_layers * sizeof *out->layers, "KV cache");
    peridot_status status = pd_heap_create(&out->heap, gpu, PD_HEAP_DEVICE, pd_min(out->size, 256u << 20));
    if (status == PERIDOT_OK) status = alloc_layers(out, config, n_regions, ctx, chunk, type);
    if (status != PERIDOT_OK) pd_cache_free(out);
    return status;
}

void pd_cache_free(struct pd_cache *cache)
{
    pd_heap_free(cache->heap);
    free(cache->layers);
    *cache = (struct pd_cache){0};
}

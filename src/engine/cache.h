/* The KV cache: per layer, keys and values of the positions that its attention can still see. Global layers keep the whole
 * context; local layers a ring of window + chunk - 1 positions, so that a chunk can be written before it is read. Each sequence
 * of a session has a region of its own, region i beginning at slot i * ring. */
#ifndef PD_ENGINE_CACHE_H
#define PD_ENGINE_CACHE_H

#include "arch/config.h"
#include "ops/ops.h"

struct pd_cache {
    struct pd_heap *heap;
    struct pd_kv *layers;      /* [n_layers]; of a layer that reads another's keys, that one's */
    uint64_t size;
};

peridot_status pd_cache_create(struct pd_cache *out, struct pd_gpu *gpu, const struct pd_config *config,
                               uint32_t n_regions, uint32_t ctx, uint32_t chunk, peridot_kv_type type);
void pd_cache_free(struct pd_cache *cache);
/* Bytes that a cache of these numbers takes. */
uint64_t pd_cache_size(const struct pd_config *config, uint32_t n_regions, uint32_t ctx, uint32_t chunk, peridot_kv_type type);

#endif

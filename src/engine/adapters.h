/* The LoRA adapters of a model, on the device: for each matrix of a layer what all of them add to it (struct pd_lora).
 * Which of them a row takes, and by how much, is its sequence's business: see pd_scales. Loaded with the model and, as
 * its weights, read by sessions of any thread. */
#ifndef PD_ENGINE_ADAPTERS_H
#define PD_ENGINE_ADAPTERS_H

#include "arch/adapter.h"
#include "engine/weights.h"

enum { PD_MAX_ADAPTERS = 32 };

/* By how much each adapter of a model is taken; 0: not at all. */
struct pd_scales {
    float of[PD_MAX_ADAPTERS];
};

struct pd_adapters {
    uint32_t n;
    struct pd_adapter_name {
        char name[128];
        uint64_t hash;                 /* of its tensors and factors: saved sequences belong to it */
    } at[PD_MAX_ADAPTERS];
    struct pd_scales scales;           /* of sequences for which nothing else is said */
    struct pd_heap *heap;
    struct pd_lora *loras;             /* [n_layers][PD_N_LAYER_MATRICES], to which the weights' linears point */
    uint32_t most_ranks;               /* the largest sum of ranks of a matrix */
    uint64_t size;                     /* bytes on the device */
};

/* Opens n files and adds them to the layers of w that are here. */
peridot_status pd_adapters_load(struct pd_adapters *out, struct pd_weights *w, struct pd_gpu *gpu,
                                const struct pd_config *config, const peridot_adapter_file *files, size_t n);
void pd_adapters_free(struct pd_adapters *a, const struct pd_config *config);
/* Those that are named, alone. */
peridot_status pd_adapters_choose(struct pd_scales *out, const struct pd_adapters *a, const peridot_adapter *named,
                                  size_t n);
static inline bool pd_scales_equal(const struct pd_scales *a, const struct pd_scales *b)
{
    for (int i = 0; i < PD_MAX_ADAPTERS; i++)
        if (a->of[i] != b->of[i]) return false;
    return true;
}

#endif

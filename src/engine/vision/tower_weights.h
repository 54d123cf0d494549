/* A vision tower's tensors on the device, private to the tower. */
#ifndef PD_ENGINE_VISION_TOWER_WEIGHTS_H
#define PD_ENGINE_VISION_TOWER_WEIGHTS_H

#include "arch/tower.h"
#include "engine/weights.h"

/* A matrix with the bounds of what goes in and comes out, where the tower clamps. */
struct pd_tower_linear {
    struct pd_linear linear;
    float input_min, input_max, output_min, output_max;
};

struct pd_tower_norm {
    uint64_t w, b;                 /* b 0: by the root of the mean square; else by mean and variance */
};

struct pd_tower_block {
    struct pd_tower_linear linears[PD_N_TOWER_ROLES];
    struct pd_tower_norm norms[PD_N_TOWER_ROLES];
};

struct pd_tower_weights {
    struct pd_weights w;           /* its heap, and counts */
    struct pd_tower_block once, *layers;   /* [n_layers] */
    uint64_t ones;                 /* [d_model], of norms without a weight */
};

/* params: whom to ask, often, whether to go on. */
peridot_status pd_tower_weights_load(struct pd_tower_weights *out, struct pd_gpu *gpu,
                                     const struct pd_checkpoint *checkpoint, const struct pd_tower_config *config,
                                     const struct pd_load_params *params);
void pd_tower_weights_free(struct pd_tower_weights *w, const struct pd_tower_config *config);

#endif

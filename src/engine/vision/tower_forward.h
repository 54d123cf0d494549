/* The forward passes of vision towers, in the order of the papers. All patches of a picture see each other; what comes
 * after attention is done by blocks of rows, so that the widest activations are small. Owns nothing. */
#ifndef PD_ENGINE_VISION_TOWER_FORWARD_H
#define PD_ENGINE_VISION_TOWER_FORWARD_H

#include "engine/vision/tower_weights.h"
#include "ops/ops.h"

#define PD_TOWER_BLOCK 1024        /* rows that go through an ffn at once */

/* Activations, for the most patches that a picture may have. */
struct pd_tower_scratch {
    struct pd_rows patches;        /* [n][patch_dim] */
    struct pd_rows x, positions;   /* [n][d_model]: the residual stream; what says where a patch is */
    struct pd_rows normed, branch; /* [n][d_model] */
    struct pd_rows clamped;        /* [n][d_model], where the tower clamps */
    struct pd_rows qkv;            /* [n][3 n_heads head_dim] */
    struct pd_rows att;            /* [n][n_heads head_dim] */
    struct pd_rows gate, up;       /* [PD_TOWER_BLOCK][ffn_dim] */
    struct pd_rows out;            /* [most_rows][d_out] */
    uint64_t places, angles;       /* [n], [n][head_dim]: see pd_attention */
    struct pd_kv kv;               /* keys and values of a layer: page i is page i */
};

struct pd_tower_pass {
    struct pd_recorder *recorder;
    const struct pd_tower_config *config;
    const struct pd_tower_weights *weights;
    struct pd_tower_scratch scratch;
    uint32_t n, n_columns;         /* patches, and those of a row */
};

/* Of its keys and values: variants that compute in fp16 read them so. */
peridot_kv_type pd_tower_kv_type(const struct pd_variants *variants);
/* Stages: the patches, each layer, and the rows at the end. */
static inline uint32_t pd_tower_n_stages(const struct pd_tower_config *c) { return c->n_layers + 2; }
/* The next stage. Patches and positions are in the scratch; the last one writes out. */
void pd_tower_forward(const struct pd_tower_pass *p, uint32_t stage);

#endif

/* A vision tower on the device: its weights, loaded when the first picture comes, and its forward pass. Owns its
 * memory, which is taken with the weights and let go with them; borrows the checkpoint. One thread at a time uses it,
 * the one that has the session. */
#ifndef PD_ENGINE_VISION_TOWER_H
#define PD_ENGINE_VISION_TOWER_H

#include "arch/tower.h"
#include "ops/ops.h"

#include <stdatomic.h>

struct pd_tower;

/* variants: which kernels it takes; they stay, as everything here does, until the tower is freed. keeps false: weights
 * are let go after each picture. */
peridot_status pd_tower_create(struct pd_tower **out, struct pd_gpu *gpu, const struct pd_variants *variants,
                               const struct pd_checkpoint *checkpoint, const struct pd_tower_config *config,
                               bool keeps);
void pd_tower_free(struct pd_tower *t);

const struct pd_tower_config *pd_tower_config_of(const struct pd_tower *t);

/* A picture's patches, ready for the tower: columns x n_patch_rows of them, row by row. */
struct pd_patches {
    uint32_t n_columns, n_patch_rows;
    float *at;                     /* [n_patch_rows][n_columns][pd_tower_patch_dim] */
};

/* Who is asked while a picture is at work, several times a second: false ends it, with a sentence. */
struct pd_tower_watch {
    bool (*go_on)(void *user);
    void *user;
    const atomic_bool *stop;
    uint64_t piece_work;           /* multiplications of a submit: see pd_recorder */
};

/* rows [n_patch_rows / pool][n_columns / pool][d_out]: what stands for the picture in a prompt. PERIDOT_ERROR_FORMAT
 * where a number is not finite. */
peridot_status pd_tower_run(float *rows, struct pd_tower *t, const struct pd_patches *patches,
                            const struct pd_tower_watch *watch);

#endif

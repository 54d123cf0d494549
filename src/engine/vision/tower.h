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
    double most_s;                 /* after so many seconds the rest is left to later calls; 0: never */
};
/* PERIDOT_CANCELLED where it says so. */
peridot_status pd_tower_ask(const struct pd_tower_watch *watch);

/* A picture at a time: begin loads the weights that are not there, and records; step runs the next piece, a submit of
 * some 0.1 s; read gives, when all are done, rows [n_patch_rows / pool][n_columns / pool][d_out], what stands for the
 * picture in a prompt: PERIDOT_ERROR_FORMAT where a number is not finite. After end, which follows any failure as well,
 * another picture may begin. */
peridot_status pd_tower_begin(struct pd_tower *t, const struct pd_patches *patches,
                              const struct pd_tower_watch *watch);
peridot_status pd_tower_step(bool *done, struct pd_tower *t);
peridot_status pd_tower_take_rows(float *rows, struct pd_tower *t);
void pd_tower_end(struct pd_tower *t);

#endif

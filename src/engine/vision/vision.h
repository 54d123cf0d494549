/* Pictures as a model sees them: the tower that turns pixels into rows of embeddings, and images, which keep those
 * rows. */
#ifndef PD_ENGINE_VISION_VISION_H
#define PD_ENGINE_VISION_VISION_H

#include "arch/arch.h"
#include "base/base.h"
#include "engine/load/load.h"
#include "ops/ops.h"
#include "picture/picture.h"

#include <pthread.h>
#include <stdatomic.h>

/* ---- tower weights ---- */

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

/* ---- tower forward ---- */

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

/* ---- tower ---- */

/* A vision tower on the device: its weights, loaded when the first picture comes, and its forward pass. Owns its
 * memory, which is taken with the weights and let go with them; borrows the checkpoint. Threads: see
 * struct pd_model. */

struct pd_tower;

/* variants: which kernels it takes; they stay, as everything here does, until the tower is freed. keeps false: weights
 * are let go after each picture. */
peridot_status pd_tower_create(struct pd_tower **out, struct pd_gpu *gpu, const struct pd_variants *variants,
                               const struct pd_checkpoint *checkpoint, const struct pd_tower_config *config,
                               bool keeps);
void pd_tower_free(struct pd_tower *t);

const struct pd_tower_config *pd_tower_config_of(const struct pd_tower *t);

/* A picture's patches, ready for the tower: columns x n_patch_rows of them, row by row; in Qwen's towers square by
 * square of those that become one row. */
struct pd_patches {
    uint32_t n_columns, n_patch_rows;
    float *at;                     /* [n_patch_rows][n_columns][pd_tower_patch_dim] */
};

/* Where patch i is in a picture with so many columns of patches. */
static inline void pd_patch_place(uint32_t *column, uint32_t *row, const struct pd_tower_config *c, uint32_t n_columns,
                                  uint32_t i)
{
    uint32_t side = c->kind == PD_TOWER_QWEN ? c->pool : 1, square = i / (side * side), within = i % (side * side);
    *column = square % (n_columns / side) * side + within % side;
    *row = square / (n_columns / side) * side + within / side;
}

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

/* ---- image ---- */

/* Images of a model are in a list, where the passes of its sessions find them by their ids; any thread may make and
 * free them, who has the model computes. */

struct pd_image {
    struct pd_refs refs;
    struct pd_images *images;
    struct pd_image *next;         /* in the list */
    uint32_t n;                    /* rows */
    int32_t *ids;                  /* [n] */
    float *rows;                   /* [n][d_out]; NULL until they are computed, and then */
    struct pd_patches patches;     /* there are none */
};

struct pd_images {
    struct pd_refs refs;           /* its model, and each image */
    pthread_mutex_t lock;          /* of the list, and of counts that may become 0 */
    struct pd_image *first;
    struct pd_image *at_work;      /* whose rows the tower computes, with a reference; NULL: none */
};

peridot_status pd_images_create(struct pd_images **out);
/* The picture that is at work is left. */
void pd_images_leave(struct pd_images *images, struct pd_tower *tower);
/* The model has gone; images may be held for longer. NULL is allowed. */
void pd_images_free(struct pd_images *images);

/* The first row's ids are below all others', so that ids by themselves say where an image begins. -1 is no token's. */
#define PD_FIRST_ROW_BELOW (-(1 << 30))
static inline bool pd_is_image_row(int32_t id) { return id < -1; }
/* Whether it is in an image, but not its first row: no sequence ends before it. */
static inline bool pd_is_inner_row(int32_t id) { return id < -1 && id >= PD_FIRST_ROW_BELOW; }
/* Columns of rows of an image in three dimensions (Qwen's), by the id of its first row; 0 of others. */
#define PD_COLUMNS_SHIFT 18
static inline uint32_t pd_image_columns(int32_t first) { return (uint32_t)(first - INT32_MIN) >> PD_COLUMNS_SHIFT; }

/* By what positions rows are rotated: see pd_config.rope_sections. Zeros before the first row of a text. */
struct pd_turns {
    uint32_t next;                 /* of text */
    uint32_t base, columns, n;     /* of the image that is under way: n rows of it are past */
};
/* The next row's three, by its id. */
static inline void pd_turn(uint32_t out[3], struct pd_turns *t, int32_t id)
{
    out[0] = out[1] = out[2] = t->next;
    if (!pd_is_image_row(id)) {
        t->next++;
        return;
    }
    if (!pd_is_inner_row(id)) *t = (struct pd_turns){t->next, t->next, (uint32_t)pd_max(pd_image_columns(id), 1), 0};
    uint32_t columns = (uint32_t)pd_max(t->columns, 1), row = t->n / columns;
    out[0] = t->base;
    out[1] = t->base + row;
    out[2] = t->base + t->n++ % columns;
    t->next = t->base + (uint32_t)pd_max(row + 1, columns);
}

/* The last place at or before n where ids [n_all] are not within an image. */
static inline uint32_t pd_image_border(const int32_t *ids, uint32_t n, uint32_t n_all)
{
    while (n > 0 && n < n_all && pd_is_inner_row(ids[n])) n--;
    return n;
}

/* The picture in the tower's size. One that is there already is shared. */
peridot_status pd_image_create(struct pd_image **out, struct pd_images *images, const struct pd_tower_config *config,
                               const struct pd_picture *picture);
struct pd_image *pd_image_ref(struct pd_image *image);
void pd_image_free(struct pd_image *image);
/* The image whose rows the first of n ids are, with a reference; NULL: there is none, or some rows are missing. */
struct pd_image *pd_images_find(struct pd_images *images, const int32_t *ids, size_t n);
/* Computes its rows, unless they are there. One picture is at work at a time, and is finished first, whoever has it;
 * where watch->most_s is over before, image->rows is still NULL. */
peridot_status pd_image_encode(struct pd_image *image, struct pd_tower *tower, const struct pd_tower_watch *watch);

#endif

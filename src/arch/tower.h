/* Vision towers: what makes rows of a picture that stand in a prompt for it. One table says what their tensors are
 * called, in Hugging Face directories, where they are beside the text model's, in GGUF files of their own
 * ("mmproj"), and in those that have both. */
#ifndef PD_ARCH_TOWER_H
#define PD_ARCH_TOWER_H

#include "arch/config.h"

enum { PD_TOWER_MOST_ROWS = 1120 };   /* that callers may ask for: Gemma 4 was trained for them */

enum pd_tower_kind {
    PD_TOWER_NONE,
    PD_TOWER_SIGLIP,           /* Gemma 3: LayerNorms, biases, units without gates, pictures of one size */
    PD_TOWER_GEMMA4,           /* Gemma 4: its text model's norms and gated units, rotation in two dimensions */
    PD_TOWER_PATCHES           /* Gemma 4 12B ("unified"): patches are projected, and nothing more */
};

struct pd_tower_config {
    enum pd_tower_kind kind;
    uint32_t n_layers, d_model, ffn_dim, n_heads, head_dim;   /* PATCHES: no layers, d_model alone */
    uint32_t d_out;                /* d_model of the text model */
    uint32_t patch;                /* pixels of a patch's side */
    uint32_t pool;                 /* patches of the side of what becomes one row */
    uint32_t image_size;           /* pixels of a picture's side; 0: as most_rows allows */
    uint32_t n_positions;          /* rows of the table of positions: of patches, or of columns and of rows of them */
    uint32_t most_rows;            /* of a picture */
    float eps;
    bool clamps;                   /* what goes into and comes out of matrices is clamped */
    bool standardises;             /* pooled features are */
    bool channels_last;            /* in a patch: channels of a pixel are together, or pixels of a channel */
    float mean[3], std[3];         /* of the channels, which become (value - mean) / std; values are 0 .. 1 */
    int32_t begin_id, row_id, end_id;   /* of the tokens before the rows, in their place, and after them */
    uint32_t sight;                /* PD_SIGHT_ ... of the text model's layers: see pd_config.image_sight */
};

/* Most patches of a picture. */
uint32_t pd_tower_n_patches(const struct pd_tower_config *t);
/* Numbers of a patch. */
uint32_t pd_tower_patch_dim(const struct pd_tower_config *t);

/* Reads the numbers of the tower in `c`, which is `text`, the text model's checkpoint, or an mmproj file. NONE where
 * `text` has none. Ids are those of the text model's config.json, or the published ones. */
peridot_status pd_tower_read(struct pd_tower_config *out, const struct pd_checkpoint *c,
                             const struct pd_checkpoint *text, const struct pd_config *config);
/* The sentence of a model that has none. */
peridot_status pd_tower_fail_none(const struct pd_checkpoint *text, const struct pd_config *config);
struct pd_tower_totals {
    uint32_t n_tensors, type_counts[PD_N_DTYPES];   /* of matrices */
    uint64_t n_params, size;       /* bytes in the file */
};
/* Whether all its tensors are there, and what they add up to. */
peridot_status pd_tower_check(struct pd_tower_totals *out, const struct pd_tower_config *t,
                              const struct pd_checkpoint *c);
/* The size to which a picture is resized. */
peridot_status pd_tower_size(uint32_t *width, uint32_t *height, const struct pd_tower_config *t, uint32_t from_width,
                             uint32_t from_height);

/* Pan and scan, which Gemma 3's processor can do: where a picture is long, equal parts of it become images too, after
 * the whole. */
enum { PD_TOWER_MOST_CROPS = 4 };
struct pd_crop {
    uint32_t x, y, width, height;
};
/* 0: the tower has images of whole pictures alone. */
uint32_t pd_tower_most_crops(const struct pd_tower_config *t);
/* The parts of a picture, in their order; returns how many, 0 where it is nearly square or they would be small. */
uint32_t pd_tower_crops(struct pd_crop out[PD_TOWER_MOST_CROPS], uint32_t width, uint32_t height);

enum pd_tower_role {
    /* Once: */
    PD_TOWER_PATCH_NORM, PD_TOWER_PATCH, PD_TOWER_POSITIONS, PD_TOWER_DENSE_NORM, PD_TOWER_POSITION_NORM,
    PD_TOWER_POST_NORM, PD_TOWER_STD_BIAS, PD_TOWER_STD_SCALE, PD_TOWER_ROW_NORM, PD_TOWER_PROJ,
    /* In layers: */
    PD_TOWER_ATTN_NORM, PD_TOWER_Q, PD_TOWER_K, PD_TOWER_V, PD_TOWER_O, PD_TOWER_Q_NORM, PD_TOWER_K_NORM,
    PD_TOWER_POST_ATTN_NORM, PD_TOWER_FFN_NORM, PD_TOWER_GATE, PD_TOWER_UP, PD_TOWER_DOWN, PD_TOWER_POST_FFN_NORM,
    PD_N_TOWER_ROLES
};
#define PD_FIRST_TOWER_LAYER_ROLE PD_TOWER_ATTN_NORM

/* Of a role's weight; or of what stands beside it: its bias, and the bounds of a matrix's input and output. */
enum pd_tower_part {
    PD_TOWER_WEIGHT, PD_TOWER_BIAS, PD_TOWER_INPUT_MIN, PD_TOWER_INPUT_MAX, PD_TOWER_OUTPUT_MIN, PD_TOWER_OUTPUT_MAX
};

struct pd_tower_plan {
    enum pd_tower_role role;
    uint32_t n_rows, n_cols;       /* n_rows 0: a vector of n_cols */
    bool has_bias;
    bool transposed;               /* rows and columns are exchanged in the file */
    bool rotated;                  /* rows are those of heads that are rotated */
};

/* The tensor of a role; false where such towers have none. */
bool pd_tower_plan_get(struct pd_tower_plan *out, const struct pd_tower_config *t, enum pd_tower_role role);
/* A tensor of the checkpoint, whose size is checked. A matrix may have more than two dimensions, of which the last ones
 * are its columns. */
peridot_status pd_tower_find(const struct pd_tensor **out, const struct pd_tower_config *t,
                             const struct pd_checkpoint *c, const struct pd_tower_plan *plan, enum pd_tower_part part,
                             uint32_t layer);

#endif

/* What the files that load weights share: the walk over the model (weights.c), what puts tensors on the device
 * (upload.c), and what chooses between the device's memory and the host's (placement.c). */
#ifndef PD_ENGINE_LOADER_H
#define PD_ENGINE_LOADER_H

#include "arch/rope.h"
#include "arch/source.h"
#include "engine/weights.h"

/* What is placed as a whole: the matrices of a layer, or one of those that have none. */
enum { PD_PART_EMBEDDING, PD_PART_OUTPUT, PD_PART_PER_LAYER_EMBEDDING, PD_PART_LAYERS };

struct pd_load_part {
    uint64_t size;                 /* bytes that must be allocated */
    bool host_resident;            /* in the host's memory */
};

/* The same walk over the model runs twice: once to find every tensor and add up sizes, once to upload. */
struct pd_loader {
    struct pd_weights *w;
    struct pd_gpu *gpu;
    const struct pd_config *config;
    struct pd_source source;
    bool measuring;
    struct pd_load_part *parts;    /* [PD_PART_LAYERS + 2 n_layers]: of layers, then of their experts */
    struct pd_load_part *part;     /* of the present matrix */
    bool elsewhere;                /* another rank holds the present part: its tensors are only counted */
    const struct pd_load_params *params;
    uint64_t device_size, file_size, done;
};

/* Rows of several tensors, one after the other, or those of experts one expert after the other. */
struct pd_load_rows {
    const struct pd_tensor *at[4];
    uint32_t n;
    uint32_t n_reordered;               /* rows, the first ones, that files order otherwise, */
    struct pd_head_order order;         /* so */
    bool copied;                        /* they are not in a file's mapping, and go when they are uploaded */
};

/* Experts whose gate and up matrices are tensors of their own. */
static inline bool pd_load_splits_experts(const struct pd_load_rows *parts)
{
    return parts->n > 1 && parts->at[0]->n_dims == 3;
}

static inline bool pd_is_of_experts(enum pd_layer_matrix m)
{
    return m == PD_MATRIX_EXPERTS_GATE_UP || m == PD_MATRIX_EXPERTS_DOWN;
}

/* ---- upload.c ---- */

/* `size` bytes more are done: PERIDOT_CANCELLED where the caller stops it. */
peridot_status pd_load_report(struct pd_loader *l, uint64_t size);
/* Bytes of a tensor that is to be loaded. */
void pd_load_count(struct pd_loader *l, uint64_t size);
/* Neighbouring parts of one type become one run of rows, and so one dispatch, unless they can stay where they are.
 * Those of an expert always do. */
peridot_status pd_load_matrix(struct pd_loader *l, struct pd_matrix *m, const struct pd_load_rows *parts,
                              uint32_t n_cols);
peridot_status pd_load_norm(struct pd_loader *l, uint64_t *address, const struct pd_plan *plan);
/* n numbers that no file has. */
peridot_status pd_load_constant(struct pd_loader *l, uint64_t *address, float value, uint32_t n);
/* Of all of a matrix's parts, or of none. */
peridot_status pd_load_bias(struct pd_loader *l, struct pd_linear *linear, const struct pd_load_rows *biases);
peridot_status pd_load_output_scale(struct pd_loader *l, float *scale, const struct pd_plan *plan);

/* ---- placement.c ---- */

/* Experts are placed apart from the rest of their layer. */
uint32_t pd_load_part_of(const struct pd_loader *l, uint32_t layer, enum pd_layer_matrix m);
/* Once all is measured: what does not fit is the host's. */
peridot_status pd_load_place(struct pd_loader *l);
peridot_status pd_load_check_budget(const struct pd_loader *l);
/* Once all is loaded: what a step reads. */
void pd_load_count_reads(struct pd_loader *l);

#endif

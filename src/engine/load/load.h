/* A model's weights on a device, and adapters on top of them: which tensor goes where, how it gets there, and what is
 * left in the host's memory. Weights and adapters are written once, when a model is opened, and only read from then on.
 * Threads: see struct pd_model. */
#ifndef PD_ENGINE_LOAD_LOAD_H
#define PD_ENGINE_LOAD_LOAD_H

#include "arch/arch.h"
#include "ops/ops.h"

/* ---- weights ---- */

struct pd_layer_weights {
    /* by role, fp32 [d_model] or [head_dim], with the +1 of files centred on zero added; 0: the layer has none */
    uint64_t norms[PD_N_ROLES];
    struct pd_linear linears[PD_N_LAYER_MATRICES];
    float output_scale;            /* 1 where the family has none */
};

struct pd_weights {
    struct pd_heap *heap, *host_resident_heap;
    uint32_t vocab_size;           /* rows of the embedding: token ids are below it */
    /* rows of the output: vocab_size, the labels of a classification head, or 0 without a head */
    uint32_t n_outputs;
    struct pd_matrix embedding;
    struct pd_linear output;       /* when tied its matrix is the embedding's; without slices when there is no head */
    float *dense[PD_MAX_DENSE];    /* [columns][rows] on the host: see peridot_embedding; NULL: no such layer */
    float *output_bias;            /* [n_outputs] on the host, or NULL: only token classification has one */
    struct pd_table lookup;
    uint64_t embed_norm;           /* [d_model], what rms(embedding) is multiplied by; 0: it is not normed */
    uint64_t output_norm;
    /* What gives layers inputs of their own, where the model has it: a table with a row of all layers for each token,
     * in the host's memory but where memory is unified, and what is added of the token's embedding. */
    struct pd_matrix per_layer_embedding;        /* [vocab_size][n_layers per_layer_dim] */
    struct pd_table per_layer_lookup;
    struct pd_linear per_layer_model_proj;       /* [n_layers per_layer_dim][d_model] */
    uint64_t per_layer_model_norm;               /* [per_layer_dim] */
    struct pd_linear pre_proj, post_proj;        /* a drafter's: [d_model][2 target_dim], [target_dim][d_model] */
    uint64_t pre_norms[2];                       /* of both halves of what the first reads; 0: none */
    struct pd_layer_weights *layers;   /* [n_layers], of which those from first_layer to before end_layer are here */
    uint32_t first_layer, end_layer;
    bool has_output;               /* what turns the last layer's rows into results is here */
    uint64_t size;                 /* bytes allocated on the device */
    uint64_t in_place_size;        /* bytes read where the file is mapped */
    uint64_t host_resident_size;             /* bytes in the host's memory, which the GPU reads across the bus */
    uint32_t n_host_resident_layers;
    uint64_t decode_read_size, decode_host_resident_size, n_params;   /* host_resident: across the bus, of all */
    uint32_t type_counts[PD_N_DTYPES];    /* matrices of each type */
    uint32_t n_ignored;                   /* tensors of a vision tower and the like */
};

struct pd_load_params {
    /* bytes of the device's own memory that weights may take; 0: all of them must fit there */
    uint64_t gpu_memory;
    /* which layers are loaded, the embedding with the first, the output with the last; n_layers 0: all */
    uint32_t first_layer, n_layers;
    peridot_progress progress;     /* NULL: nobody asks */
    void *user;
};

peridot_status pd_weights_load(struct pd_weights *out, struct pd_gpu *gpu, const struct pd_config *config,
                               const struct pd_checkpoint *checkpoint, const struct pd_load_params *params);
void pd_weights_free(struct pd_weights *w, const struct pd_config *config);

/* ---- adapters ---- */

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

/* ---- loader ---- */

/* What the files that load weights share: the walk over the model (weights.c), what puts tensors on the device
 * (upload.c), and what chooses between the device's memory and the host's (placement.c). */

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
    uint32_t n_taken[4], head_half[4], head_dim;   /* see pd_plan: some of their rows alone */
    bool again[4];
    struct pd_value_order value_rows[4], value_columns;   /* columns: of all */
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

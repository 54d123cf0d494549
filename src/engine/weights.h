/* Weights on the device. Where memory is unified and the file's layout is already the device's, a matrix is read in
 * place from the file's mapping, which must stay open as long as the weights. Else files' tensors are found by name,
 * checked against the config, re-laid as ops/layout.h says, and uploaded. Matrices that always multiply the same vector
 * (q, k, v; gate, up) become one, row after row. How rows lie follows from their type and the device alone, and once
 * loaded nothing changes: sessions of any thread may read. */
#ifndef PD_ENGINE_WEIGHTS_H
#define PD_ENGINE_WEIGHTS_H

#include "arch/plan.h"
#include "ops/matrix.h"

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

#endif

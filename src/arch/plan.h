/* The layer plan: of every tensor of a model what it is for, what it is called in either form of file, its shape in
 * each layer, the matrix of the device that it is part of, and which layers have it. Loading, converting, making and
 * the list of pipelines go by it. */
#ifndef PD_ARCH_PLAN_H
#define PD_ARCH_PLAN_H

#include "arch/config.h"

enum pd_role {
    /* Once: */
    PD_ROLE_EMBEDDING, PD_ROLE_OUTPUT, PD_ROLE_OUTPUT_NORM, PD_ROLE_ROPE_FREQS,
    PD_ROLE_ROPE_SHORT, PD_ROLE_ROPE_LONG, PD_ROLE_SCORE, PD_ROLE_SCORE_BIAS,
    PD_ROLE_DENSE_2, PD_ROLE_DENSE_3, PD_ROLE_EMBEDDING_PROJ,   /* of the pooled vector */
    PD_ROLE_PER_LAYER_EMBEDDING, PD_ROLE_PER_LAYER_MODEL_PROJ, PD_ROLE_PER_LAYER_MODEL_NORM,
    PD_ROLE_PRE_PROJ, PD_ROLE_POST_PROJ,   /* a drafter's: from what its target has, and back */
    /* In layers: */
    PD_ROLE_ATTN_NORM, PD_ROLE_QKV, PD_ROLE_Q, PD_ROLE_K, PD_ROLE_V, PD_ROLE_ATTN_GATE,
    PD_ROLE_QKV_BIAS, PD_ROLE_Q_BIAS, PD_ROLE_K_BIAS, PD_ROLE_V_BIAS,
    PD_ROLE_O, PD_ROLE_O_BIAS, PD_ROLE_Q_NORM, PD_ROLE_K_NORM, PD_ROLE_POST_ATTN_NORM,
    PD_ROLE_FFN_NORM, PD_ROLE_GATE_UP, PD_ROLE_GATE, PD_ROLE_UP, PD_ROLE_GATE_BIAS, PD_ROLE_UP_BIAS, PD_ROLE_DOWN,
    PD_ROLE_DOWN_BIAS, PD_ROLE_POST_FFN_NORM,
    PD_ROLE_POST_DENSE_NORM, PD_ROLE_EXPERTS_NORM, PD_ROLE_POST_EXPERTS_NORM, PD_ROLE_ROUTER, PD_ROLE_ROUTER_SCALE,
    PD_ROLE_EXPERT_SCALES, PD_ROLE_EXPERTS_GATE_UP, PD_ROLE_EXPERTS_GATE, PD_ROLE_EXPERTS_UP, PD_ROLE_EXPERTS_DOWN,
    PD_ROLE_PER_LAYER_GATE, PD_ROLE_PER_LAYER_PROJ, PD_ROLE_POST_PER_LAYER_NORM,
    PD_ROLE_OUTPUT_SCALE,   /* one number, which multiplies what comes out of the layer */
    PD_N_ROLES
};
#define PD_FIRST_LAYER_ROLE PD_ROLE_ATTN_NORM

/* A layer's matrices on the device. Tensors that multiply the same vector are one, their rows in the order of their
 * roles, those of experts expert by expert. Those that a layer has not have no rows. */
enum pd_layer_matrix {
    PD_MATRIX_QKV, PD_MATRIX_O, PD_MATRIX_GATE_UP, PD_MATRIX_DOWN, PD_MATRIX_PER_LAYER_GATE, PD_MATRIX_PER_LAYER_PROJ,
    PD_MATRIX_ROUTER, PD_MATRIX_EXPERTS_GATE_UP, PD_MATRIX_EXPERTS_DOWN,
    PD_N_LAYER_MATRICES
};

#define PD_ANY_SIZE UINT32_MAX   /* the file says how many */

struct pd_plan {
    enum pd_role role;
    uint32_t layer;
    uint32_t n_dims;               /* 3: n_experts matrices; 2: a matrix; 1: a vector of n_cols */
    uint32_t n_experts;
    uint32_t n_rows, n_cols;
    enum pd_layer_matrix matrix;   /* of a layer's matrices */
    bool is_bias;                  /* of that matrix: a number for each row of its tensor */
    bool plus_one;                 /* 1 is to be added to the tensor's elements */
    float constant;                /* the file has no such tensor: its elements are all this; 0: it has */
    uint32_t n_rotated_rows;       /* the first ones, of q and k heads, or a vector's elements: see pd_head_order */
};

/* The tensor of a role, in a layer where it is one of a layer's; false where there is none. */
bool pd_plan_get(struct pd_plan *out, const struct pd_config *c, enum pd_role role, uint32_t layer);

enum { PD_TENSOR_NAME_SIZE = 128 };

/* In a GGUF file; `layer` counts only where the name has one. */
void pd_tensor_name_gguf(char out[PD_TENSOR_NAME_SIZE], enum pd_role role, uint32_t layer);
/* In a Hugging Face directory; `prefix`: pd_tensor_prefix of it. "" for what such directories have no tensor for. */
void pd_tensor_name_hf(char out[PD_TENSOR_NAME_SIZE], enum pd_role role, uint32_t layer, enum pd_family family,
                       const char *prefix);
/* What stands before the names of the text model's tensors in a Hugging Face directory; "" in a GGUF file. */
const char *pd_tensor_prefix(const struct pd_checkpoint *c);
/* What stands there, after `before`, in a directory that has some tensors of layers; NULL: it has none. */
const char *pd_tensor_prefix_of_layers(const struct pd_checkpoint *c, const char *before);
/* In this checkpoint, whichever form it has. */
void pd_tensor_name(char out[PD_TENSOR_NAME_SIZE], const struct pd_checkpoint *c, enum pd_family family,
                    const char *prefix, enum pd_role role, uint32_t layer);

#endif

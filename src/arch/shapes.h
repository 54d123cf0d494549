/* Sizes of published models, for synthetic models only: those of a real model are read from its file. */
#ifndef PD_ARCH_SHAPES_H
#define PD_ARCH_SHAPES_H

#include "arch/config.h"

struct pd_shape {
    const char *name;
    enum pd_family family;
    uint32_t n_layers, d_model, ffn_dim, n_heads, n_kv_heads, head_dim;
    uint32_t window;        /* 0: none */
    uint32_t ctx;
    /* Llama 3.1's rule, YaRN's where yarn_ctx is not 0, or of Gemma 3 the divisor of positions in global layers; 0:
     * none */
    uint32_t rope_factor;
    uint32_t vocab_size;    /* rows of the embedding */
    uint32_t n_tokens;      /* entries of the tokenizer's list ... */
    uint32_t n_pieces;      /* ... of which these are pieces and the rest padding */
    bool untied;            /* has an output.weight of its own */
    double rope_base;       /* 0: the family's */
    uint32_t yarn_ctx;      /* the context that YaRN extends */
    float yarn_weight;      /* see pd_rope_yarn_factor */
    float query_growth;     /* see pd_config */
    float rotated_columns;  /* part of a head; 0: all */
    float eps;              /* 0: 1e-6 */
    float final_softcap;    /* 0: the family's */
    /* of families that have them; 0: 1, or 1/sqrt(head_dim) */
    float embed_scale, residual_scale, query_scale, logit_divisor;
    const struct pd_layer *layers;   /* [n_layers] that are not alike; else NULL */
    uint32_t pattern;                /* every how many layers one has no window; 0: the family's */
    uint32_t global_head_dim;        /* of layers without a window; 0: head_dim */
    uint32_t global_kv_heads;        /* of layers without a window, whose values are their keys; 0: n_kv_heads */
    uint32_t n_shared_kv;            /* so many layers at the end read the caches of others; */
    bool double_wide;                /* their ffn is twice as wide */
    uint32_t n_experts, n_experts_used, expert_dim;   /* of each layer; 0: none */
    uint32_t per_layer_dim;          /* of what each layer gets of the token itself; 0: nothing */
    uint32_t target_dim;             /* a drafter's: d_model of the model that it drafts for */
};

/* Row i, or NULL past the last. */
const struct pd_shape *pd_shape_get(size_t i);
/* NULL: no such shape. */
const struct pd_shape *pd_shape_find(const char *name);
/* The model's numbers, for pd_config_free. */
peridot_status pd_shape_config(struct pd_config *out, const struct pd_shape *shape);

#endif

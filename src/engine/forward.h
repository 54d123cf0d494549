/* The transformer: what is computed, in which order. Kernels, types, slices and fusion are ops' business; which rows a
 * pass has, and at which positions, is the caller's. Nothing here owns memory: a pass is recorded into the recorder's
 * commands by the one thread that has the session, and all buffers must live until those commands have run.
 * In shapes n is the rows of a pass, and head_dim, n_heads and ffn_dim are those of the layer. */
#ifndef PD_ENGINE_FORWARD_H
#define PD_ENGINE_FORWARD_H

#include "engine/cache.h"
#include "engine/weights.h"
#include "ops/ops.h"

/* Activations of a pass, fp32, allocated once per session for its most rows and the widest layer. What lies between a
 * row's width and its stride is zero, and stays so. */
struct pd_scratch {
    struct pd_rows x;          /* [n][d_model]: the residual stream */
    struct pd_rows x_other;    /* [1][d_model]: see pd_stream */
    struct pd_span x_span, x_other_span;
    struct pd_rows normed;     /* [n][d_model]: what matrices read; at the end the final-norm hidden states */
    struct pd_rows branch;     /* [n][d_model]: output of attention or ffn before it is added */
    struct pd_rows qkv;        /* [n][(n_heads + 2 n_kv_heads) head_dim]: q, k, v; fewer in layers without k or v, and
                                  n_heads more, the gate, in those that have one */
    struct pd_rows att;        /* [n][n_heads head_dim] */
    struct pd_rows gate_up;    /* [n][2 ffn_dim]: gate, up */
    struct pd_rows act;        /* [n][ffn_dim] */
    /* Where layers have inputs of their own: */
    struct pd_rows per_layer;        /* [n][n_layers][per_layer_dim]: the inputs, without padding */
    struct pd_rows per_layer_model;  /* the same: what of them comes of the embedding */
    struct pd_rows per_layer_gate, per_layer_act;   /* [n][per_layer_dim] */
    /* Where layers have experts: */
    struct pd_rows router;           /* [n][n_experts]: logits */
    struct pd_rows expert_x;         /* [n][d_model]: what router and experts read, then what is added of them */
    struct pd_rows expert_both;      /* [n][n_experts_used][2 expert_dim]: gate, up */
    struct pd_rows expert_act;       /* [n][n_experts_used][expert_dim] */
    struct pd_rows expert_out;       /* [n][n_experts_used][d_model] */
    struct pd_rows experts;          /* [n][d_model]: their weighted sum */
    struct pd_routes routes;
    struct pd_rows lora;       /* [n][the largest sum of a matrix's ranks]: see pd_recorder; no address: no adapters */
    uint64_t packed;           /* see pd_recorder; 0: no variant needs it */
    uint64_t split_sums;       /* the same */
    uint64_t partial;          /* [splits of all decode rows][n_heads][head_dim + 2]: see pd_attention_reduce_push */
};

/* A row of a pass whose logits are wanted, and the row of logits where they go. */
struct pd_head_row {
    uint32_t row, logits_row;
};

/* Of a drafter: where what it reads of its target stands, and the target's embedding. */
struct pd_target {
    struct pd_rows in;             /* [n][2 target_dim]: the token's embedding, and a hidden state */
    const struct pd_table *lookup;
    float embed_scale;
};

struct pd_forward_args {
    struct pd_recorder *recorder;
    const struct pd_config *config;
    const struct pd_weights *weights;
    const struct pd_cache *cache;
    const struct pd_scratch *scratch;
    struct pd_span step;               /* struct pd_step */
    uint64_t tokens;                   /* [n_tokens] */
    uint64_t embedded;                 /* [n_tokens] rows as in scratch->x: of PD_EMBEDDED tokens; 0: there are none */
    uint64_t places[PD_MAX_LAYER_KINDS];     /* of each kind of layer, [n_tokens] struct pd_place */
    uint64_t angles[PD_MAX_ROPE_TABLES];   /* [n_tokens][head_dim] each: cos, sin */
    uint64_t lora_scales;                  /* [n_tokens][n_adapters]; 0: the model has none */
    uint32_t n_tokens;
    uint32_t n_keys;                   /* that the last one may see, where pieces are counted: see pd_recorder */
    uint32_t n_decode;                 /* of them are of a decode step, the first ones: each is the next token of its
                                          own sequence, */
    bool consecutive;                  /* or they may be several consecutive ones */
    /* Rows of prompts whose hidden states are wanted; the others stop after the last layer that writes keys. NULL: all
     * are. */
    const struct pd_head_row *heads;   /* [n_heads] */
    uint32_t n_heads;
    const struct pd_target *target;    /* NULL: it is no drafter */
    /* Where other ranks hold layers: the rows of the residual stream that come from the one before, and go to the next,
     * with the stride of scratch->x, in host memory. */
    struct pd_span rows_in, rows_out;
};

/* From tokens to final-norm hidden states in scratch->normed and, when logits is not NULL, the last token's logits,
 * or those of all tokens of the decode step. Where other ranks hold layers, from rows_in, or to rows_out. */
void pd_forward(const struct pd_forward_args *p, const struct pd_rows *logits);
/* logits[m] = softcap(output . normed[row + m]) for n rows */
void pd_forward_head(const struct pd_forward_args *p, struct pd_rows logits, uint32_t row, uint32_t n);
/* Shapes of attention in layer i. */
struct pd_heads pd_layer_heads(const struct pd_config *config, const struct pd_weights *weights, uint32_t i);

#endif

/* What a model is, in numbers: read from GGUF metadata or config.json, never from a table of known models. Layers are
 * described one by one, as families differ from layer to layer. */
#ifndef PD_ARCH_CONFIG_H
#define PD_ARCH_CONFIG_H

#include "arch/embedding.h"
#include "arch/family.h"
#include "format/checkpoint.h"
#include "params.h"

#include <math.h>

/* Rotation. Inverse frequency i of the n columns of a head that are rotated is base^(-2 i / n), or 0 from the rotated
 * part of them on; then Llama 3.1's rule where its factor is set. `divisor` divides all of them, or, by YaRN's rule,
 * those that turn few times in the old context. Last each is divided by a factor of its own where there are some, which
 * for LongRoPE are others in sessions of more positions than the old context. cos and sin are multiplied by
 * attn_factor. Without padding: see pd_rope_equal. */
enum { PD_MAX_PAIRS = 256 };         /* of a head */
struct pd_rope {
    double base, divisor;
    double rotated_part;                                /* of those pairs, the first ones; 0: all */
    double rotated_columns;                             /* part of a head that is rotated; 0: see pd_layer */
    double factor, low_freq_factor, high_freq_factor;   /* Llama 3.1's; factor 0: no rule */
    double beta_fast, beta_slow;                        /* YaRN's; beta_fast 0: no rule */
    double exact_ramp;                                  /* 1: YaRN's ramp begins and ends between pairs */
    double yarn_weight;                                 /* see pd_rope_yarn_factor; 0: none */
    double old_ctx;                                     /* the context that a rule extends */
    double attn_factor;
    uint32_t n_factors, is_long;                        /* is_long: LongRoPE, which has both */
    float factors[2][PD_MAX_PAIRS];
};

/* Layers without and with a window may rotate differently, and some not at all. */
enum { PD_ROPE_GLOBAL, PD_ROPE_LOCAL, PD_ROPE_NONE, PD_N_ROPES };

/* The frequencies themselves, for heads of one size. */
struct pd_rope_table {
    uint32_t rope;                   /* PD_ROPE_... */
    uint32_t head_dim, n_rotated;    /* see pd_layer */
    double attn_factor;              /* of cos and sin */
    double *inv_freq;                /* [head_dim / 2] */
    double *long_inv_freq;           /* of LongRoPE in longer sessions; NULL: the same */
};

enum { PD_MAX_ROPE_TABLES = 4 };

#define PD_TARGET_LAYER UINT32_MAX   /* a drafter's: of the model that it drafts for, the last of that kind */

struct pd_layer {
    uint32_t n_heads, n_kv_heads, head_dim, ffn_dim;
    uint32_t window;                 /* keys that a query sees, itself included; 0: all. To each side, where it sees
                                        later ones. A drafter's: one more than the file says (engine/drafter.h) */
    float query_scale;               /* (query divisor)^-0.5 */
    /* false: values are the keys as their matrix gives them, before norm and rotation */
    bool has_v;
    uint32_t kv_layer;               /* whose keys and values are read: an earlier layer's, its own, or */
    /* Columns of a head that are rotated, the first ones, by halves of their own. Kernels rotate halves of the head:
     * see pd_head_order. */
    uint32_t n_rotated;
    bool no_rope;                    /* none are, whatever the rule */
    uint32_t rope;                   /* index of a table */
    uint32_t kind;                   /* layers of a kind have alike heads and windows */
    bool qkv_biases;                 /* q, k and v have biases, */
    bool o_bias, ffn_biases;         /* the matrix after attention, and those of the gated unit */
    bool qk_norms;                   /* q and k heads are normed before they are rotated, */
    bool whole_qk_norms;             /* or all of them as one vector */
    bool v_norm;                     /* v heads are normed, by no weight */
    bool attn_gate;                  /* what attention gives is multiplied by a sigmoid: see PD_ROLE_ATTN_GATE */
    bool pre_norms;                  /* what branches read is normed */
    bool post_norms;                 /* branches are normed before they are added */
    bool output_scale;               /* a number multiplies what comes out of the layer */
    uint32_t activation;             /* of the gate: PD_GELU or PD_SILU */
    uint32_t n_experts, n_experts_used, expert_dim;   /* beside the gated unit, of which a token takes some; 0: none */
    bool fused_qkv, fused_qkv_bias;  /* files have q, k and v as one tensor, and their biases */
    bool experts_split;              /* their gates and what these multiply are two tensors of the file */
};

/* An image's rows see those that come after them, in layers with a window, in those without. */
enum { PD_SIGHT_LOCAL = 1, PD_SIGHT_GLOBAL = 2 };

struct pd_config {
    enum pd_family family;
    char name[128];                  /* as people may see it (pd_utf8_escape) */
    uint32_t n_layers, d_model, ctx_max;
    uint32_t vocab_size;             /* rows of the embedding; 0: only its tensor says */
    float eps, attn_softcap, final_softcap;   /* softcap 0: none */
    float embed_scale;
    float post_eps;                  /* of post norms; 0: eps */
    float q_norm_weight;             /* the weights of q norms, k's being 1; 0: the file has tensors of them */
    float residual_scale;            /* of branches, before they are added: see pd_stream_scale */
    float logit_scale;               /* of logits, before their softcap */
    double query_growth;             /* queries are multiplied by 1 + this * ln(1 + floor(position / old_ctx)) */
    bool rope_interleaved;           /* q and k rows of the file are ordered for rotation of neighbours */
    bool norm_plus_one;              /* stored norm weights are centred on zero: add 1 */
    bool tied;                       /* the output matrix is the embedding */
    bool fused_gate_up;              /* files have these as one tensor */
    bool bidirectional;              /* a token sees its whole text, not only what is before it */
    uint32_t image_sight;            /* PD_SIGHT_ ...: what an image's rows see of it that causal ones would not */
    struct pd_layer *layers;         /* [n_layers] */
    uint32_t per_layer_dim;          /* columns of what each layer gets of the token itself; 0: layers get none */
    float per_layer_scale;           /* of its embedding */
    uint32_t n_shared_kv;            /* so many layers at the end read the caches of earlier ones of their kinds */
    uint32_t target_dim;             /* a drafter's: d_model of the model that it drafts for; else 0 */
    uint32_t n_kinds, kinds[PD_MAX_LAYER_KINDS];   /* the first layer of each kind */
    struct pd_rope ropes[PD_N_ROPES];
    struct pd_rope_table rope_tables[PD_MAX_ROPE_TABLES];
    uint32_t n_rope_tables;
    struct pd_embedding embedding;
    peridot_head head;
    peridot_problem problem;         /* of a classification head */
    uint32_t n_labels;               /* of a classification head; 0 when the config has no label map */
    char **labels;                   /* [n_labels] */
};

/* The residual stream holds x / this, and all that reads it are norms, which differ for it in eps alone. With
 * residual_scale branches are added as they are. With a post_eps the norms of the stream have that, too, so that one
 * eps serves both norms of a kernel, and the weights of post norms are divided by the scale. */
static inline float pd_stream_scale(const struct pd_config *c)
{
    return c->post_eps != 0 ? sqrtf(c->eps / c->post_eps) : c->residual_scale;
}
static inline float pd_stream_eps(const struct pd_config *c)
{
    return c->post_eps != 0 ? c->post_eps : c->eps / (c->residual_scale * c->residual_scale);
}
static inline float pd_stream_embed_scale(const struct pd_config *c) { return c->embed_scale / pd_stream_scale(c); }

/* Unknown architectures, and keys that change the maths in a way that is not known, are refused by name. */
peridot_status pd_config_read(struct pd_config *out, const struct pd_checkpoint *c);
void pd_config_free(struct pd_config *config);

#endif

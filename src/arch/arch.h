/* What a model is, before any of it runs: its family, the numbers of its config (of GGUF and of Hugging Face), the plan
 * of its layers with the tensors of each, its rotary positions, tower, adapters, and the shapes of known models. All of
 * it is made when a model is opened, and only read from then on. */
#ifndef PD_ARCH_ARCH_H
#define PD_ARCH_ARCH_H

#include "format/format.h"
#include "params.h"
#include "peridot.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- family ---- */

enum pd_family {
    PD_GEMMA1, PD_GEMMA2, PD_VAULTGEMMA, PD_GEMMA3, PD_GEMMA4, PD_GEMMA4_DRAFTER, PD_GEMMA_EMBEDDING,
    PD_GEMMA_EMBEDDING2, PD_MIXTRAL, PD_LLAMA, PD_MISTRAL, PD_PHI3, PD_OLMO3, PD_OLMO2, PD_OLMOE, PD_GRANITE,
    PD_GRANITE4, PD_GRANITE_HYBRID_MOE, PD_GRANITE_HYBRID, PD_GRANITE_MOE, PD_QWEN2, PD_QWEN3, PD_QWEN3_MOE,
    PD_QWEN3_NEXT, PD_QWEN35, PD_QWEN35_MOE, PD_LFM2_MOE, PD_LFM2, PD_SMOLLM3, PD_MINISTRAL3, PD_MUSE_GLIMMER,
    PD_GPT_OSS, PD_TEST_FAMILY, PD_N_FAMILIES
};

/* Which keys of config.json name the gate's activation. */
enum pd_hf_activation {
    PD_HF_ACT,            /* hidden_act */
    /* Gemma 1: transformers 4 reads hidden_activation, where null is GELU in its tanh form, transformers 5 hidden_act,
     * where "gelu" is */
    PD_HF_ACT_OR_ACTIVATION,
    PD_HF_ACTIVATION      /* hidden_activation */
};

/* Defaults of the family's configuration class in transformers; 0: derived from other numbers. */
struct pd_hf_defaults {
    uint32_t d_model, ffn_dim, n_layers, n_heads, n_kv_heads, ctx_max, head_dim;
};

/* What config.json's files call the router and its experts, and which key says how many there are. */
enum pd_hf_experts {
    PD_HF_EXPERTS_GEMMA,      /* router.proj, experts.gate_up_proj; num_experts, top_k_experts */
    PD_HF_EXPERTS_QWEN,       /* mlp.gate, mlp.experts.7.up_proj; num_experts, num_experts_per_tok */
    PD_HF_EXPERTS_MIXTRAL,    /* block_sparse_moe.gate, .experts.7.w3; num_local_experts, num_experts_per_tok */
    PD_HF_EXPERTS_GRANITE,    /* block_sparse_moe.router.layer, .input_linear; keys as Mixtral's */
    PD_HF_EXPERTS_GPT_OSS,    /* mlp.router, mlp.experts.gate_proj (format/experts.c); keys as Mixtral's */
    PD_HF_EXPERTS_LFM2        /* feed_forward.gate, feed_forward.experts.7.w3; keys as Qwen's */
};

struct pd_family_traits {
    const char *name;                /* GGUF's general.architecture, and what reports say */
    bool gguf_by_window;             /* GGUF files of that name are of this family if they say a window */
    bool no_pre_norms;               /* attention and ffn read the residual stream as it is */
    bool post_norms;                 /* attention and ffn outputs are normed before they are added */
    bool qkv_biases;                 /* q, k and v have biases */
    bool all_biases;                 /* and so has the matrix after attention, the router and the experts */
    bool optional_biases;            /* files may have them of all matrices of attention, and of the gated unit */
    bool qk_norms;                   /* every q and k head is normed */
    bool whole_qk_norms;             /* or all q heads as one vector, and all k heads */
    bool v_norms;                    /* every v head is, by no weight */
    /* The weights of q norms, k's being 1: config.json may say another number and has no tensors of them, as GGUF files
     * have. 0: files of both forms have tensors. */
    double q_norm_weight;
    double post_eps;                 /* of post norms, where config.json does not say it; 0: as of the other norms */
    bool embed_norm;                 /* embeddings are normed, by no weight */
    bool attn_gate;                  /* what attention gives is gated by rows of a matrix beside q, k and v, */
    bool gate_in_q;                  /* which files have in q's: of each head the rows of q, then those of its gate */
    bool recurrences;                /* layers may be linear recurrences (gated delta rule) in place of attention, */
    bool grouped_values;             /* whose value heads are as pd_delta.grouped says, */
    bool short_convs;                /* or short convolutions, */
    bool mamba;                      /* or Mamba-2's recurrences */
    bool sinks;                      /* heads have sinks: see attention.glsl */
    bool silu;                       /* the gate's activation; else GELU in its tanh form */
    bool clamped;                    /* or both factors are clamped: see act.glsl */
    bool scale_embedding;            /* by sqrt(d_model) in bf16, as published weights are */
    bool published_f32;              /* or were float32: it is not rounded */
    bool multipliers;                /* files say what embeddings, scores, branches and logits are multiplied by */
    double logit_scale;              /* or logits alone, where config.json does not say it; 0: they are not */
    double hf_eps;                   /* rms_norm_eps where config.json does not say it; 0: 1e-6 */
    double gguf_eps;                 /* the same of GGUF files; 0: they must say it */
    bool hf_norm_plus_one;           /* Hugging Face files centre norm weights on zero, */
    bool hf_plain_output_norm;       /* but for the last norm's */
    /* their norm before the ffn is named as with post norms, though there are none */
    bool hf_pre_ffn_norm;
    bool gguf_post_attention_norm;   /* GGUF files call the norm before the ffn so */
    bool gguf_interleaved;           /* GGUF files order q and k rows for rotation of neighbours */
    bool tied;                       /* unless config.json says otherwise */
    bool space_prefix;               /* the tokenizer puts a space before a text */
    uint32_t start_of_turn;          /* id of the marker, which end_of_turn follows; 0: the vocabulary has none */
    bool optional_v;                 /* layers may lack v: their values are the keys as their matrix gives them */
    bool fused;                      /* files have q, k and v as one tensor, and gate and up */
    /* config.json knows the gated unit as what experts share: gate and up are one tensor there */
    bool hf_shared_unit;
    bool experts;                    /* layers may have experts, */
    bool experts_beside;             /* beside their gated unit, with their own norms and scales; else in its place */
    enum pd_hf_experts hf_experts;
    bool shared_expert;              /* or beside it, as one more that every token takes: see pd_layer, */
    bool shared_gate;                /* which is gated */
    bool ffn_is_experts;             /* files say the width of experts as that of a gated unit */
    bool gguf_by_experts;            /* GGUF files of that name are of this family if they say how many there are */
    /* The weights of a token's experts are those of the softmax over all, which do not sum to 1: in GGUF files, and in
     * config.json unless that may say norm_topk_prob, and does. */
    bool raw_routes;
    bool hf_says_routes;             /* config.json may say norm_topk_prob, and is taken to say false */
    bool sigmoid_routes;             /* they are sigmoids: see pd_layer; norm_topk_prob is taken to be true */
    bool per_layer_inputs;           /* layers may get inputs of their own from the token, */
    bool per_layer_projected;        /* made of its embedding alone: there is no table of them */
    /* The model makes a vector of a text: there is no head, attention sees later keys as well, and windows go to both
     * sides, each of half the number that files say, */
    bool embeds;
    bool hf_window_each_side;        /* or, in config.json, of all of it */
    bool drafts;                     /* it reads the cache of the model that it drafts for, and has none of its own */
    bool output_scales;              /* each layer has a number that multiplies what comes out of it */
    bool local_rope;                 /* layers with windows rotate with a base of their own, and without a divisor */
    bool exact_ramp;                 /* YaRN's, of GGUF files: see pd_rope */
    bool old_longrope;               /* config.json may call it by other names */
    bool partial_rope;               /* files may say that a part of a head's columns is rotated, */
    double rotated_columns;          /* and where config.json does not, it is this; 0: all */
    bool query_growth;               /* files may say that queries grow with their position */
    uint32_t no_rope_interval;       /* every n-th layer is not rotated, unless config.json says which; 0: all are */
    bool windows_rotate;             /* GGUF files do not rotate layers without a window, and rotate the others */
    /* original_max_position_embeddings where config.json does not say it; 0: that is for the rule of rotation to say */
    uint32_t hf_old_ctx;
    bool gguf_rotated;               /* GGUF files may say that no layer is rotated: rope.scaling.finetuned false */
    double rotated_part;             /* of the pairs of a head, the first ones, in layers without a window; 0: all */
    bool sizes_by_window;            /* layers without a window have heads and kv heads of their own */
    uint32_t window_pattern;         /* 0: no windows; n: every n-th layer is global */
    bool own_pattern;                /* files may have another pattern */
    bool from_last;                  /* every n-th layer is counted from the last one backwards */
    /* Files may say a window of all layers: those of GGUF, and config.json (where type->window is the usual one). */
    bool gguf_all_windows, hf_all_windows;
    bool gguf_no_window;             /* GGUF files say a window of 0: older readers miss the key */
    /* without a pattern: layers from max_window_layers on have windows where use_sliding_window is true */
    bool late_windows;
    bool last_is_global;             /* whatever the pattern says */
    bool vision_masks;               /* use_bidirectional_attention may be "vision", which is of images alone */
    uint32_t gguf_window;            /* of GGUF files that do not say it; 0: they must */
    double rope_base, rope_base_local;   /* local 0: as rope_base, or what files say for it */
    double attn_softcap, final_softcap;   /* 0: none */
    bool final_softcap_known;        /* files may have one */
    /* query_pre_attn_scalar where config.json does not say it; 0: the divisor is head_dim */
    uint32_t query_divisor;
    bool unscaled_queries;           /* the divisor is 1 */
    /* GGUF does not carry the query divisor; the 27B of this depth has d_model / n_heads */
    uint32_t n_layers_27b;
    enum pd_hf_activation hf_activation;
    struct pd_hf_defaults hf;
};

extern const struct pd_family_traits pd_families[PD_N_FAMILIES];

/* A model_type of config.json. */
struct pd_hf_type {
    const char *name;
    enum pd_family family;
    enum pd_family embeds;           /* the family where use_bidirectional_attention is true; 0: there is none */
    bool wraps;                      /* the text model is in text_config, */
    enum pd_family wrapped;          /* and said to be of another family; 0: of this one, */
    bool wraps_any;                  /* or of whatever family it is said to be */
    uint32_t window;                 /* the default of sliding_window; 0: 4096, or none with hf_all_windows, */
    bool window_types;               /* where layer_types may say which layers have it */
    uint32_t ctx_max;                /* the default of max_position_embeddings; 0: the family's */
    uint32_t per_layer_dim;          /* the default of hidden_size_per_layer_input */
};

/* NULL: not known. */
const struct pd_hf_type *pd_hf_type_find(const char *name);
/* For sentences: those that users have, with ", " between them; and GGUF's architectures. */
enum { PD_NAMES_SIZE = 1024 };
void pd_hf_type_names(char out[PD_NAMES_SIZE]);
void pd_family_names(char out[PD_NAMES_SIZE]);

/* What a model of this model_type, or GGUF architecture, has that is not computed here.
 * NULL: nothing is known of it. */
const char *pd_family_obstacle(const char *name, size_t size);

/* Whether layer i is one of every n-th. */
bool pd_family_is_nth(const struct pd_family_traits *family, uint32_t n, uint32_t i, uint32_t n_layers);

/* Whether a file's name for an activation means the family's. */
bool pd_family_has_activation(const struct pd_family_traits *family, const char *name);

/* ---- embedding ---- */

enum { PD_MAX_DENSE = 2 };

struct pd_task {
    char *name, *prefix;
};

struct pd_embedding {
    bool trained;            /* the files say how texts are pooled: of other models any vector will do */
    peridot_pool pool;
    uint32_t n_dense, dense_dims[PD_MAX_DENSE];   /* rows of each matrix */
    struct pd_task *tasks;
    uint32_t n_tasks;
};

/* *out must be freed even on failure. */
peridot_status pd_embedding_read(struct pd_embedding *out, const struct pd_checkpoint *c,
                                 const struct pd_family_traits *family);
void pd_embedding_free(struct pd_embedding *e);
/* Columns of the vector. */
uint32_t pd_embedding_dim(const struct pd_embedding *e, uint32_t d_model);

/* ---- config ---- */

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

/* A linear recurrence by the gated delta rule. Of each of n_v heads of values it has a state S [d_k][d_v], which begins
 * as zeros; value head i has key head i % n_k, or i / (n_v / n_k) where they are grouped. With q, k and v from a causal
 * convolution of each channel over the last `conv` rows, and then SiLU, q and k of length 1 and q * d_k^-0.5, a token
 * computes
 *   S = exp(decay softplus(a + dt)) S;   S += k (sigmoid(b) (v - S^T k))^T;   y = S^T q
 * and of each head the layer gives norm(y) silu(z), multiplied by a last matrix. z, b and a are rows of one matrix with
 * q, k and v.
 * Or by Mamba-2: value head i has key head i / (n_v / n_k), q and k are as they are, and a token computes
 *   S = exp(decay softplus(a + dt)) S;   S += k (softplus(a + dt) v)^T;   y = S^T q + skip v
 * and the layer gives norm(y silu(z)), of all heads of a key head as one vector. Papers and files call q, k and v C, B
 * and x, and key heads groups; the rows of the matrix are z, v, k, q, a. */
struct pd_delta {
    uint32_t n_k, n_v, d_k, d_v;
    uint32_t conv;                   /* rows that the convolution sees, the token's own included; 0: it has attention */
    /* Of a short convolution, whose layers have no rule: of b, c and h, so many columns each of one matrix, a token
     * computes c convolution(b h), multiplied by a last matrix. */
    uint32_t n_channels;
    bool mamba;
    /* As in all files of Qwen3-Next, which have b and a as one tensor: of each key head its rows of b and of a. */
    bool grouped;
    bool fused_qkvz;                 /* and q, k, v and z as another, likewise */
    bool conv_bias;                  /* the convolution has one */
};

#define PD_TARGET_LAYER UINT32_MAX   /* a drafter's: of the model that it drafts for, the last of that kind */

struct pd_layer {
    uint32_t n_heads, n_kv_heads, head_dim;
    uint32_t ffn_dim;                /* 0: there is no gated unit */
    uint32_t window;                 /* keys that a query sees, itself included; 0: all. To each side, where it sees
                                        later ones. A drafter's: one more than the file says (engine/rounds/rounds.h) */
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
    bool expert_biases;              /* the router, and matrices of experts */
    bool sinks;                      /* a number for each head: see attention.glsl */
    bool qk_norms;                   /* q and k heads are normed before they are rotated, */
    bool whole_qk_norms;             /* or all of them as one vector */
    bool v_norm;                     /* v heads are normed, by no weight */
    bool attn_gate;                  /* what attention gives is multiplied by a sigmoid: see PD_ROLE_ATTN_GATE, */
    bool gate_in_q;                  /* whose rows are in q's tensor: see pd_family_traits */
    bool pre_norms;                  /* what branches read is normed */
    bool post_norms;                 /* branches are normed before they are added */
    bool output_scale;               /* a number multiplies what comes out of the layer */
    uint32_t activation;             /* of the gate: PD_GELU, PD_SILU or PD_CLAMPED_SILU */
    uint32_t n_experts, n_experts_used, expert_dim;   /* of which a token takes some; 0: none */
    bool experts_beside;             /* they have norms and scales of their own, beside the gated unit's */
    bool shares_unit;                /* the gated unit is one more expert, that every token takes, */
    bool shared_gate;                /* times the sigmoid of the last row of the router's matrix */
    bool raw_routes;                 /* the weights of a token's experts are not made to sum to 1 */
    /* Experts are chosen by the sigmoid of what the router finds, and weighted by it; else by the softmax */
    bool sigmoid_routes;
    bool choice_biases;              /* of each expert a number is added to choose by, and not to weight it */
    bool fused_qkv, fused_qkv_bias;  /* files have q, k and v as one tensor, and their biases */
    bool experts_split;              /* their gates and what these multiply are two tensors of the file */
    struct pd_delta delta;           /* in place of attention: then there are no heads */
};

/* An image's rows see those that come after them, in layers with a window, in those without. */
enum { PD_SIGHT_LOCAL = 1, PD_SIGHT_GLOBAL = 2 };

struct pd_config {
    enum pd_family family;
    char name[128];                  /* as people may see it (pd_utf8_escape) */
    const char *file_type;           /* general.file_type by its name, "Q4_K_M"; NULL: it says nothing */
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
    uint32_t n_nextn;                /* blocks of a GGUF file after the layers: they draft tokens (MTP); of a directory
                                      * 0, unless a file is made of it */
    uint32_t nextn_at;               /* it is that block alone, of a model with so many layers; else 0 */
    bool hf_recurrences;             /* files have log(-decay), and value heads grouped */
    bool bidirectional;              /* a token sees its whole text, not only what is before it */
    uint32_t image_sight;            /* PD_SIGHT_ ...: what an image's rows see of it that causal ones would not */
    /* Rows of images are rotated by three positions, of the image, their row and their column in it, and what follows
     * by the largest so far and 1: pair i of a head by axis i % 3, up to so many pairs of rows and of columns, the
     * others by the first. 0: all are rotated by their position in the text. */
    uint32_t rope_sections[3];
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
/* Whether the files have a block that drafts tokens for the model, and can be run. */
bool pd_config_has_block(const struct pd_config *config, const struct pd_checkpoint *c);
/* Makes of a model's config that of this block, a drafter of one layer with keys of its own; fails where they have
 * none. */
peridot_status pd_config_take_block(struct pd_config *config, const struct pd_checkpoint *c);
void pd_config_free(struct pd_config *config);

/* ---- tower ---- */

enum { PD_TOWER_MOST_ROWS = 1120 };   /* that callers may ask for: Gemma 4 was trained for them */

enum pd_tower_kind {
    PD_TOWER_NONE,
    PD_TOWER_SIGLIP,           /* Gemma 3: LayerNorms, biases, units without gates, pictures of one size */
    PD_TOWER_GEMMA4,           /* Gemma 4: its text model's norms and gated units, rotation in two dimensions */
    PD_TOWER_PATCHES,          /* Gemma 4 12B ("unified"): patches are projected, and nothing more */
    /* Qwen 3.5: as SigLIP, with rotation in two dimensions and interpolated positions; patches of a row's square are
     * next to each other, and merged by two matrices */
    PD_TOWER_QWEN
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
    uint32_t least_pixels;         /* QWEN: smaller pictures are enlarged */
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
    PD_TOWER_POST_NORM, PD_TOWER_STD_BIAS, PD_TOWER_STD_SCALE, PD_TOWER_ROW_NORM, PD_TOWER_MERGE, PD_TOWER_PROJ,
    /* In layers: */
    PD_TOWER_ATTN_NORM, PD_TOWER_QKV, PD_TOWER_Q, PD_TOWER_K, PD_TOWER_V, PD_TOWER_O, PD_TOWER_Q_NORM, PD_TOWER_K_NORM,
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
    /* It is of two frames, which are one picture twice: what multiplies it is the sum of two tensors of these columns,
     * which files have as one, whose channels have both frames in turn (Hugging Face), or as two. */
    bool of_frames;
};

/* The second of two tensors of a GGUF file whose plan is of_frames. */
peridot_status pd_tower_find_frame(const struct pd_tensor **out, const struct pd_checkpoint *c,
                                   const struct pd_tensor *first);

/* The tensor of a role; false where such towers have none. */
bool pd_tower_plan_get(struct pd_tower_plan *out, const struct pd_tower_config *t, enum pd_tower_role role);
/* A tensor of the checkpoint, whose size is checked. A matrix may have more than two dimensions, of which the last ones
 * are its columns. */
peridot_status pd_tower_find(const struct pd_tensor **out, const struct pd_tower_config *t,
                             const struct pd_checkpoint *c, const struct pd_tower_plan *plan, enum pd_tower_part part,
                             uint32_t layer);

/* ---- plan ---- */

enum pd_role {
    /* Once: */
    PD_ROLE_EMBEDDING, PD_ROLE_OUTPUT, PD_ROLE_OUTPUT_NORM, PD_ROLE_ROPE_FREQS,
    PD_ROLE_ROPE_SHORT, PD_ROLE_ROPE_LONG, PD_ROLE_SCORE, PD_ROLE_SCORE_BIAS,
    PD_ROLE_DENSE_2, PD_ROLE_DENSE_3, PD_ROLE_EMBEDDING_PROJ,   /* of the pooled vector */
    PD_ROLE_PER_LAYER_EMBEDDING, PD_ROLE_PER_LAYER_MODEL_PROJ, PD_ROLE_PER_LAYER_MODEL_NORM,
    PD_ROLE_PRE_PROJ, PD_ROLE_POST_PROJ,   /* a drafter's: from what its target has, and back */
    PD_ROLE_NEXTN_PROJ, PD_ROLE_NEXTN_E_NORM, PD_ROLE_NEXTN_H_NORM, PD_ROLE_NEXTN_NORM,   /* of a block that drafts */
    /* In layers: */
    PD_ROLE_ATTN_NORM, PD_ROLE_QKV, PD_ROLE_Q, PD_ROLE_K, PD_ROLE_V, PD_ROLE_ATTN_GATE,
    PD_ROLE_QKV_BIAS, PD_ROLE_Q_BIAS, PD_ROLE_K_BIAS, PD_ROLE_V_BIAS,
    PD_ROLE_O, PD_ROLE_O_BIAS, PD_ROLE_SINKS, PD_ROLE_Q_NORM, PD_ROLE_K_NORM,
    /* Of recurrences: q, k and v; z; b; a; the convolution's weights; dt and decay of each head; norm; the last one.
     * Short convolutions have the first (b, c and h), the weights and the last. */
    PD_ROLE_DELTA_QKV, PD_ROLE_DELTA_Z, PD_ROLE_DELTA_B, PD_ROLE_DELTA_A, PD_ROLE_DELTA_CONV, PD_ROLE_DELTA_DT,
    PD_ROLE_DELTA_DECAY, PD_ROLE_DELTA_NORM, PD_ROLE_DELTA_O,
    PD_ROLE_DELTA_CONV_BIAS, PD_ROLE_DELTA_SKIP,   /* Mamba-2's, whose rows of z, b and a are in the first matrix */
    PD_ROLE_POST_ATTN_NORM,
    PD_ROLE_FFN_NORM, PD_ROLE_GATE_UP, PD_ROLE_GATE, PD_ROLE_UP, PD_ROLE_GATE_BIAS, PD_ROLE_UP_BIAS, PD_ROLE_DOWN,
    PD_ROLE_DOWN_BIAS, PD_ROLE_POST_FFN_NORM,
    PD_ROLE_POST_DENSE_NORM, PD_ROLE_EXPERTS_NORM, PD_ROLE_POST_EXPERTS_NORM, PD_ROLE_ROUTER, PD_ROLE_SHARED_GATE,
    PD_ROLE_ROUTER_BIAS, PD_ROLE_ROUTER_SCALE,
    PD_ROLE_EXPERT_SCALES, PD_ROLE_CHOICE_BIASES, PD_ROLE_EXPERTS_GATE_UP, PD_ROLE_EXPERTS_GATE, PD_ROLE_EXPERTS_UP,
    PD_ROLE_EXPERTS_GATE_BIAS, PD_ROLE_EXPERTS_UP_BIAS, PD_ROLE_EXPERTS_DOWN, PD_ROLE_EXPERTS_DOWN_BIAS,
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

/* How rows of recurrences are ordered in files. In Hugging Face's, value heads are grouped; on the device, as in GGUF
 * files, they are tiled. Or both are grouped, and a tensor of several roles has of each key head its rows of all of
 * them, of q and k, and those of its value heads. */
struct pd_value_order {
    uint32_t n_k, each;            /* key heads; value heads of each */
    uint32_t first, width;         /* from here on in the file, so many of each head; width 0: none are of heads */
    uint32_t block, at;            /* rows of a key head in such a tensor, and where its value heads' begin; 0: none */
};
bool pd_value_order_differs(const struct pd_value_order *o);
/* Where the device's row, element or column is in the file. */
uint32_t pd_value_order_row(const struct pd_value_order *o, uint32_t row);

struct pd_plan {
    enum pd_role role;
    uint32_t layer;
    uint32_t n_dims;               /* 3: n_experts matrices; 2: a matrix; 1: a vector of n_cols */
    uint32_t n_experts;
    uint32_t n_rows, n_cols;
    bool is_vector;                /* goes to the device as fp32, row after row, whatever its dimensions */
    uint32_t split;                /* GGUF files have the vector as so many rows; 0: as it is */
    uint32_t n_taken;              /* rows of the tensor that are the role's; 0: all, */
    bool again;                    /* where a role before it has the others */
    uint32_t head_half;            /* 1, 2: of each head's rows in the tensor, the first or the second half; 0: all */
    enum pd_layer_matrix matrix;   /* of a layer's matrices */
    bool is_bias;                  /* of that matrix: a number for each row of its tensor; n_dims 2: of each expert's */
    bool plus_one;                 /* 1 is to be added to the tensor's elements */
    float constant;                /* the file has no such tensor: its elements are all this; 0: it has */
    uint32_t n_rotated_rows;       /* the first ones, of q and k heads, or a vector's elements: see pd_head_order */
    struct pd_value_order value_rows, value_columns;   /* of its rows, or a vector's elements, and of its columns */
};

/* The tensor of a role, in a layer where it is one of a layer's; false where there is none. */
bool pd_plan_get(struct pd_plan *out, const struct pd_config *c, enum pd_role role, uint32_t layer);

enum { PD_TENSOR_NAME_SIZE = 128 };

/* In a GGUF file; `layer` counts only where the name has one. */
void pd_tensor_name_gguf(char out[PD_TENSOR_NAME_SIZE], enum pd_role role, uint32_t layer, enum pd_family family);
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

/* ---- rope ---- */

bool pd_rope_equal(const struct pd_rope *a, const struct pd_rope *b);
/* What cos and sin are multiplied by where YaRN divides by `divisor`, by its authors' rule for a weight of 1. */
double pd_rope_mscale(double divisor, double weight);
/* What YaRN multiplies cos and sin by where files do not say it: that, divided by the same of the weight that they
 * have; 1 without YaRN. */
double pd_rope_yarn_factor(const struct pd_rope *rope);
/* Whether YaRN's numbers make a rule; `key`: what sentences name. */
peridot_status pd_rope_check_yarn(const struct pd_rope *rope, const char *key);

/* The first layer without a window, or the first one where there is none. */
const struct pd_layer *pd_rope_global_layer(const struct pd_config *config);

#define PD_ROPE_STILL 1e30f   /* what GGUF files divide frequencies by that are to be 0 */
/* Whether the ramp of YaRN is that of the family's GGUF files, which have no key for it. */
bool pd_rope_has_usual_ramp(const struct pd_config *config);
/* Whether a GGUF file has the rule of the global rotation as a tensor, for want of keys. */
bool pd_rope_needs_factors(const struct pd_config *config);
/* That tensor: what n frequencies (half of that layer's rotated columns) are divided by; 1 where there is no such rule,
 * and PD_ROPE_STILL for pairs that are not rotated. */
void pd_rope_factors(float *out, const struct pd_config *config, uint32_t n);

/* Whether GGUF files of the family have no rotation in a layer, for which they have no key. */
bool pd_rope_is_usually_absent(const struct pd_config *config, uint32_t layer);

/* How rows of q and k are ordered within a head. On the device i is rotated with i + head_dim / 2; files have what is
 * rotated before what is not, and the two of a pair half of it apart, or side by side. */
struct pd_head_order {
    uint32_t head_dim, n_rotated;
    bool interleaved;
};

struct pd_head_order pd_head_order_of(const struct pd_config *config, uint32_t layer);
/* Whether files have another order than the device. */
bool pd_head_order_differs(const struct pd_head_order *o);
/* Where the device's row is in the file, of any number of heads. */
uint32_t pd_head_order_row(const struct pd_head_order *o, uint32_t row);

/* Where a row of a GGUF file is in a Hugging Face file, whose rows of a pair are apart, not side by side. */
uint32_t pd_head_order_split_row(const struct pd_head_order *o, uint32_t row);

/* The table of a layer, a new one where no layer before it has the same. */
peridot_status pd_rope_find_table(struct pd_config *config, struct pd_layer *layer);

/* Whether LongRoPE's long factors are those of sessions of ctx positions. transformers takes them where a text is
 * longer than the old context, but keys in the cache cannot be rotated anew when it becomes so: as in llama.cpp, all
 * texts of a session are rotated as its longest ones. */
bool pd_rope_is_long(const struct pd_config *config, uint32_t ctx);

/* ---- adapter ---- */

struct pd_adapter_part {
    const struct pd_tensor *a, *b;   /* [rank][n_cols], [n_rows][rank] */
    uint32_t rank;                   /* 0: nothing is added */
    float scale;
    struct pd_head_order order;      /* of the first rows of b, in the file, */
    uint32_t n_reordered;            /* so many */
    uint32_t head_half;              /* see pd_plan, here and below: of the file */
    struct pd_value_order value_rows, value_columns;   /* of b, and of a */
};

struct pd_adapter {
    struct pd_checkpoint *checkpoint;
    struct pd_adapter_part *parts;   /* [n_layers][PD_N_ROLES] */
};

/* Opens a file or directory for a model with this config. */
peridot_status pd_adapter_open(struct pd_adapter *out, const char *path, const struct pd_config *config);
void pd_adapter_close(struct pd_adapter *a);
/* What is added to a layer's tensor. */
const struct pd_adapter_part *pd_adapter_get(const struct pd_adapter *a, enum pd_role role, uint32_t layer);
/* A, [rank][n_cols], columns in the order of the device. */
void pd_adapter_a(float *out, const struct pd_adapter_part *part);
/* Row `row` of B, [rank], times the scale; rows in the order of the device. */
void pd_adapter_b_row(float *out, const struct pd_adapter_part *part, uint32_t row);

/* What a PEFT directory's adapter_config.json says of ranks and factors; patterns are of modules' names. */
struct pd_adapter_rules {
    double alpha;
    uint32_t rank;
    bool by_root;                    /* the factor is alpha / sqrt(rank), not alpha / rank */
    yyjson_val *ranks, *alphas;      /* of modules that have others; NULL: none */
};
/* Sentences name no file. */
peridot_status pd_adapter_rules_read(struct pd_adapter_rules *out, yyjson_val *config);
/* Of one module: "model.layers.0.self_attn.q_proj". */
void pd_adapter_rules_get(uint32_t *rank, float *scale, const struct pd_adapter_rules *rules, const char *module);

/* ---- gguf keys ---- */

/* Adds general.* and the architecture's keys; vocab_size is the number of rows of the embedding. A config that GGUF
 * has no words for is refused. */
peridot_status pd_gguf_add_config(struct pd_gguf_writer *w, const struct pd_config *c, uint32_t vocab_size);
/* Adds general.file_type, a llama_ftype, and general.quantization_version. */
void pd_gguf_add_type(struct pd_gguf_writer *w, uint32_t file_type);
/* What general.file_type says that a file's quantised types are, "Q4_K_M": of a mix, the name that people know, which
 * its tensors alone do not tell. Static; NULL: it says nothing, nothing known, or a type of plain numbers. */
const char *pd_gguf_file_type(const struct pd_checkpoint *c);

/* ---- layers ---- */

/* Allocates n_layers layers with keys and values of their own, and without numbers. */
peridot_status pd_layers_create(struct pd_config *config);
/* Sets what the family's layers are built of, finds whose cache each reads and what kinds there are, and computes the
 * tables of rotation. */
peridot_status pd_layers_complete(struct pd_config *config);

/* The query scale of a layer in a GGUF file that does not say it (attention.scale; few do). */
float pd_layer_usual_scale(const struct pd_config *config, const struct pd_layer *layer);

/* A token cannot take more experts than there are, which are beside a gated unit or in its place; `key` names their
 * number in a sentence. */
peridot_status pd_layer_set_experts(struct pd_layer *layer, const struct pd_family_traits *family, const char *key);
/* Whether the layer has keys and values of its own. */
bool pd_layer_owns_kv(const struct pd_config *config, uint32_t layer);
/* Ranks may begin with a layer up to this one, as later ones read its keys, which must be on the same rank. */
uint32_t pd_layers_last_division(const struct pd_config *config);
/* Columns of all of a layer's heads, and rows of its fused matrix of q, k, v and attention's gate, or of what a
 * recurrence reads. */
uint32_t pd_layer_q_dim(const struct pd_layer *layer);
uint32_t pd_layer_kv_dim(const struct pd_layer *layer);
uint32_t pd_layer_qkv_dim(const struct pd_config *config, uint32_t layer);
static inline bool pd_layer_recurs(const struct pd_layer *layer) { return layer->delta.conv != 0; }
/* Of a recurrence: channels of its convolution, and columns of what comes out of its heads, or of a convolution. */
static inline uint32_t pd_delta_conv_dim(const struct pd_delta *d)
{
    return d->n_channels + 2 * d->n_k * d->d_k + d->n_v * d->d_v;
}
static inline uint32_t pd_delta_dim(const struct pd_delta *d) { return d->n_channels + d->n_v * d->d_v; }
/* The first layer that recurs, all of which are alike; NULL: none does. */
const struct pd_layer *pd_layers_recurrence(const struct pd_config *config);

/* The largest of each number in any layer. */
struct pd_layer_sizes {
    uint32_t n_heads, n_kv_heads, head_dim, ffn_dim, window;
    uint32_t q_dim, qkv_dim;                          /* q_dim: or of recurrences, what their heads give */
    uint32_t conv_dim;                                /* of recurrences with a rule */
    uint32_t n_experts, n_experts_used, expert_dim;
};
struct pd_layer_sizes pd_layers_largest(const struct pd_config *config);
/* Numbers in the matrices of experts that a token does not take. */
uint64_t pd_layers_n_idle(const struct pd_config *config);

/* ---- recommended ---- */

struct pd_recommended {
    uint32_t members;          /* bits of peridot_recommended: of `p`, what there is */
    peridot_sampling p;
    char ignored[256];         /* a sentence on the first value that is not used; "": there is none */
};

/* Fails only where memory is short. */
peridot_status pd_recommended_read(struct pd_recommended *out, const struct pd_checkpoint *c);
/* Adds the keys general.sampling.* */
void pd_recommended_write(struct pd_gguf_writer *w, const struct pd_recommended *r);
/* What peridot_model_recommends does. */
uint32_t pd_recommended_take(const struct pd_recommended *r, peridot_sampling *sampling, uint32_t keep,
                             const char **ignored);

/* ---- shapes ---- */

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
    uint32_t pattern;                /* every how many layers one has no window, or no recurrence; 0: the family's */
    struct pd_delta delta;           /* of the other layers; n_v 0: they have attention */
    uint32_t global_head_dim;        /* of layers without a window; 0: head_dim */
    uint32_t global_kv_heads;        /* of layers without a window, whose values are their keys; 0: n_kv_heads */
    uint32_t n_shared_kv;            /* so many layers at the end read the caches of others; */
    bool double_wide;                /* their ffn is twice as wide */
    uint32_t n_experts, n_experts_used, expert_dim;   /* of each layer; 0: none */
    uint32_t n_dense;                /* so many layers at the beginning have none */
    uint32_t per_layer_dim;          /* of what each layer gets of the token itself; 0: nothing */
    uint32_t target_dim;             /* a drafter's: d_model of the model that it drafts for */
    /* Bits of layers that have `delta` in place of attention, or without one are short convolutions of 3 rows. */
    uint64_t keyless;
};

/* Row i, or NULL past the last. */
const struct pd_shape *pd_shape_get(size_t i);
/* NULL: no such shape. */
const struct pd_shape *pd_shape_find(const char *name);
/* The model's numbers, for pd_config_free. */
peridot_status pd_shape_config(struct pd_config *out, const struct pd_shape *shape);

/* ---- source ---- */

struct pd_source {
    const struct pd_checkpoint *checkpoint;
    const struct pd_config *config;
    const char *prefix;            /* pd_tensor_prefix */
    bool *used;                    /* [tensors of the checkpoint]: those that were got */
};

/* Borrows both. Fails where the config contradicts the tensors of the vocabulary. *out must be closed even on
 * failure. */
peridot_status pd_source_open(struct pd_source *out, const struct pd_checkpoint *checkpoint,
                              const struct pd_config *config);
void pd_source_close(struct pd_source *s);

/* NULL: none. */
const struct pd_tensor *pd_source_find(const struct pd_source *s, enum pd_role role, uint32_t layer);
/* Fails where the tensor is missing, or is not of a known type and of the plan's shape, or has not as many labels as
 * the config. */
peridot_status pd_source_get(const struct pd_tensor **out, struct pd_source *s, const struct pd_plan *plan);
/* A tied file may hold the matrix under either name, or both. */
peridot_status pd_source_get_embedding(const struct pd_tensor **out, struct pd_source *s);
/* A tensor that nothing has got would be an effect lost without a word, and is refused by name; those of a vision
 * tower are counted, and those that repeat what is known from elsewhere are not. */
peridot_status pd_source_check_unused(uint32_t *n_ignored, const struct pd_source *s);

/* What a model's tensors come to. */
struct pd_source_totals {
    uint32_t type_counts[PD_N_DTYPES];   /* matrices of each type */
    uint32_t vocab_size, n_outputs, n_ignored;
    uint64_t n_params;
    uint64_t size;                       /* bytes in the files, */
    uint64_t lookup_size;                /* of which are those of tables that are only looked up, a row a token */
};

/* Gets every tensor that loading the model would get, with the checks that this makes. experts [n_layers]: bytes of
 * each layer's experts in the files, which are added; NULL: they are not wanted. */
peridot_status pd_source_count(struct pd_source_totals *out, uint64_t *experts, const struct pd_checkpoint *checkpoint,
                               const struct pd_config *config);

#endif

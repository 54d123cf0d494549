/* What the families differ in beyond numbers. */
#ifndef PD_ARCH_FAMILY_H
#define PD_ARCH_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pd_family {
    PD_GEMMA1, PD_GEMMA2, PD_VAULTGEMMA, PD_GEMMA3, PD_GEMMA4, PD_GEMMA4_DRAFTER, PD_GEMMA_EMBEDDING,
    PD_GEMMA_EMBEDDING2, PD_LLAMA, PD_MISTRAL, PD_PHI3, PD_OLMO3, PD_OLMO2, PD_GRANITE, PD_GRANITE4, PD_QWEN2, PD_QWEN3,
    PD_SMOLLM3, PD_MINISTRAL3, PD_MUSE_GLIMMER, PD_TEST_FAMILY, PD_N_FAMILIES
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

struct pd_family_traits {
    const char *name;                /* GGUF's general.architecture, and what reports say */
    bool gguf_by_window;             /* GGUF files of that name are of this family if they say a window */
    bool no_pre_norms;               /* attention and ffn read the residual stream as it is */
    bool post_norms;                 /* attention and ffn outputs are normed before they are added */
    bool qkv_biases;                 /* q, k and v have biases */
    bool optional_biases;            /* files may have them of all matrices of attention, and of the gated unit */
    bool qk_norms;                   /* every q and k head is normed */
    bool whole_qk_norms;             /* or all q heads as one vector, and all k heads */
    bool v_norms;                    /* every v head is, by no weight */
    /* The weights of q norms, k's being 1: config.json may say another number and has no tensors of them, as GGUF files
     * have. 0: files of both forms have tensors. */
    double q_norm_weight;
    double post_eps;                 /* of post norms, where config.json does not say it; 0: as of the other norms */
    bool embed_norm;                 /* embeddings are normed, by no weight */
    bool attn_gate;                  /* what attention gives is gated by rows of a matrix beside q, k and v */
    bool silu;                       /* the gate's activation; else GELU in its tanh form */
    bool scale_embedding;            /* by sqrt(d_model) rounded to bf16, as the published code does */
    bool multipliers;                /* files say what embeddings, scores, branches and logits are multiplied by */
    double logit_scale;              /* or logits alone, where config.json does not say it; 0: they are not */
    double hf_eps;                   /* rms_norm_eps where config.json does not say it; 0: 1e-6 */
    double gguf_eps;                 /* the same of GGUF files; 0: they must say it */
    bool hf_norm_plus_one;           /* Hugging Face files centre norm weights on zero, */
    bool hf_plain_output_norm;       /* but for the last norm's */
    /* their norm before the ffn is named as with post norms, though there are none */
    bool hf_pre_ffn_norm;
    bool gguf_interleaved;           /* GGUF files order q and k rows for rotation of neighbours */
    bool tied;                       /* unless config.json says otherwise */
    bool space_prefix;               /* the tokenizer puts a space before a text */
    uint32_t start_of_turn;          /* id of the marker, which end_of_turn follows; 0: the vocabulary has none */
    bool optional_v;                 /* layers may lack v: their values are the keys as their matrix gives them */
    bool fused;                      /* files have q, k and v as one tensor, and gate and up */
    /* config.json knows the gated unit as what experts share: gate and up are one tensor there */
    bool hf_shared_unit;
    bool experts;                    /* layers may have experts beside their gated unit */
    bool per_layer_inputs;           /* layers may get inputs of their own from the token, */
    bool per_layer_projected;        /* made of its embedding alone: there is no table of them */
    /* The model makes a vector of a text: there is no head, attention sees later keys as well, and windows go to both
     * sides, each of half the number that files say, */
    bool embeds;
    bool hf_window_each_side;        /* or, in config.json, of all of it */
    bool drafts;                     /* it reads the cache of the model that it drafts for, and has none of its own */
    bool output_scales;              /* each layer has a number that multiplies what comes out of it */
    bool local_rope;                 /* layers with windows rotate with a base of their own, and without a divisor */
    bool old_longrope;               /* config.json may call it by other names */
    bool partial_rope;               /* files may say that a part of a head's columns is rotated */
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

#endif

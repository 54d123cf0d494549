/* What a model is, in numbers: read from GGUF metadata or config.json, never from a table of known models. Layers are
 * described one by one, as families differ from layer to layer. */
#ifndef PD_ARCH_CONFIG_H
#define PD_ARCH_CONFIG_H

#include "format/checkpoint.h"

enum pd_family { PD_GEMMA1, PD_GEMMA2, PD_GEMMA3, PD_LLAMA, PD_N_FAMILIES };

/* What the families differ in beyond numbers. */
struct pd_family_traits {
    const char *name;                /* GGUF's general.architecture, and what reports say */
    const char *hf_types[3];         /* model_type in config.json */
    bool post_norms;                 /* attention and ffn outputs are normed before they are added */
    bool qk_norms;                   /* every q and k head is normed */
    bool silu;                       /* the gate's activation; else GELU in its tanh form */
    bool scale_embedding;            /* by sqrt(d_model) rounded to bf16, as the published code does */
    bool hf_norm_plus_one;           /* Hugging Face files centre norm weights on zero */
    bool gguf_interleaved;           /* GGUF files order q and k rows for rotation of neighbours */
    bool tied;                       /* unless config.json says otherwise */
    uint32_t window_pattern;         /* 0: no windows; n: every n-th layer is global */
    double rope_base, rope_base_local;
    double attn_softcap, final_softcap;
    uint32_t n_layers_27b;           /* GGUF does not carry the query divisor; the 27B of this depth has d_model / n_heads */
};

extern const struct pd_family_traits pd_families[PD_N_FAMILIES];

/* Rotation: inverse frequency i of head_dim / 2 is base^(-2 i / head_dim) / divisor, then Llama 3.1's rule when its factor
 * is set, then divided by factors[i] where a GGUF brings that rule as a tensor. */
struct pd_rope {
    double base, divisor;
    double factor, low_freq_factor, high_freq_factor, old_ctx;   /* factor 0: no rule */
};

enum { PD_ROPE_GLOBAL, PD_ROPE_LOCAL, PD_N_ROPES };

/* What the final hidden states are turned into. */
enum pd_head {
    PD_HEAD_LANGUAGE,                /* logits of the next token */
    PD_HEAD_SEQUENCE,                /* label scores of a whole text, read at its last token */
    PD_HEAD_TOKEN,                   /* label scores of every token */
    PD_HEAD_NONE                     /* a base model without an output matrix */
};

struct pd_layer {
    uint32_t window;                 /* keys that a query sees, itself included; 0: all */
    uint32_t rope;                   /* PD_ROPE_GLOBAL or PD_ROPE_LOCAL */
};

struct pd_config {
    enum pd_family family;
    char name[128];
    uint32_t n_layers, d_model, ffn_dim, n_heads, n_kv_heads, head_dim;
    uint32_t window;                 /* of the local layers; 0: none are */
    uint32_t ctx_max;
    float eps, attn_softcap, final_softcap;   /* softcap 0: none */
    float query_scale;               /* (query divisor)^-0.5 */
    float embed_scale;
    bool rope_interleaved;           /* q and k rows of the file are ordered for rotation of neighbours */
    bool norm_plus_one;              /* stored norm weights are centred on zero: add 1 */
    bool tied;                       /* the output matrix is the embedding */
    struct pd_rope ropes[PD_N_ROPES];
    double *inv_freq[PD_N_ROPES];    /* [head_dim / 2] */
    struct pd_layer *layers;         /* [n_layers] */
    enum pd_head head;
    uint32_t n_labels;               /* of a classification head; 0 when the config has no label map */
    char **labels;                   /* [n_labels] */
};

/* Unknown architectures, and keys that change the maths in a way that is not known, are refused by name. */
peridot_status pd_config_read(struct pd_config *out, const struct pd_checkpoint *c);
void pd_config_free(struct pd_config *config);

/* What Llama 3.1's rule divides frequency i of head_dim / 2 by; 1 where the rule is not set. */
double pd_rope_factor(const struct pd_rope *rope, uint32_t head_dim, uint32_t i);
/* The query scale of a GGUF file that does not say it (attention.scale; few do). */
float pd_config_usual_scale(const struct pd_config *config);

/* Private to config*.c: the two readers fill numbers and the layers' windows; pd_config_read checks and derives the rest. */
peridot_status pd_config_read_gguf(struct pd_config *out, const struct pd_checkpoint *c);
peridot_status pd_config_read_hf(struct pd_config *out, const struct pd_checkpoint *c);
/* Allocates the layers; local wherever the pattern says (every pattern-th layer is global; 0: all are). */
peridot_status pd_config_set_pattern(struct pd_config *config, uint32_t pattern);
void pd_config_set_local(struct pd_config *config, uint32_t layer, bool local);

#endif

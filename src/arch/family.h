/* What the families differ in beyond numbers. */
#ifndef PD_ARCH_FAMILY_H
#define PD_ARCH_FAMILY_H

#include <stdbool.h>
#include <stdint.h>

enum pd_family { PD_GEMMA1, PD_GEMMA2, PD_GEMMA3, PD_LLAMA, PD_TEST_FAMILY, PD_N_FAMILIES };

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
    bool space_prefix;               /* the tokenizer puts a space before a text */
    uint32_t start_of_turn;          /* id of the marker, which end_of_turn follows; 0: the vocabulary has none */
    bool optional_v;                 /* layers may lack v: their values are the keys as their matrix gives them */
    bool local_rope;                 /* layers with windows rotate with a base of their own, and without a divisor */
    uint32_t window_pattern;         /* 0: no windows; n: every n-th layer is global */
    double rope_base, rope_base_local;
    double attn_softcap, final_softcap;
    /* GGUF does not carry the query divisor; the 27B of this depth has d_model / n_heads */
    uint32_t n_layers_27b;
};

extern const struct pd_family_traits pd_families[PD_N_FAMILIES];

#endif

/* The numbers of a config: what config.json and GGUF metadata call each, and what it can be. */
#ifndef PD_ARCH_NUMBERS_H
#define PD_ARCH_NUMBERS_H

#include "base/status.h"

enum pd_number {
    PD_NUMBER_LAYERS, PD_NUMBER_D_MODEL, PD_NUMBER_CTX, PD_NUMBER_VOCAB_SIZE, PD_NUMBER_SHARED_KV,
    PD_NUMBER_PER_LAYER_DIM, PD_NUMBER_TARGET_DIM, PD_NUMBER_EPS,
    PD_NUMBER_ATTN_SOFTCAP, PD_NUMBER_FINAL_SOFTCAP,
    PD_NUMBER_EMBED_SCALE, PD_NUMBER_RESIDUAL_SCALE, PD_NUMBER_LOGIT_DIVISOR, PD_NUMBER_LOGIT_SCALE,
    PD_NUMBER_POST_EPS, PD_NUMBER_Q_NORM_WEIGHT,
    /* Of layers: */
    PD_NUMBER_FFN_DIM, PD_NUMBER_SHARED_DIM, PD_NUMBER_HEADS, PD_NUMBER_KV_HEADS, PD_NUMBER_HEAD_DIM,
    PD_NUMBER_KV_HEADS_GLOBAL, PD_NUMBER_HEAD_DIM_GLOBAL,   /* of layers without a window, where they differ; */
    PD_NUMBER_HEAD_DIM_LOCAL,                               /* of those with one */
    PD_NUMBER_QUERY_DIVISOR,
    PD_NUMBER_QUERY_SCALE, PD_NUMBER_WINDOW, PD_NUMBER_PATTERN,
    PD_NUMBER_FULL_LAYERS,                                  /* without a window, before those with one */
    PD_NUMBER_EXPERTS, PD_NUMBER_EXPERTS_USED, PD_NUMBER_EXPERT_DIM,
    /* Of rotation: */
    PD_NUMBER_ROPE_BASE, PD_NUMBER_ROPE_BASE_LOCAL, PD_NUMBER_ROPE_PART, PD_NUMBER_ROPE_FACTOR, PD_NUMBER_LOW_FREQ,
    PD_NUMBER_HIGH_FREQ, PD_NUMBER_OLD_CTX, PD_NUMBER_BETA_FAST, PD_NUMBER_BETA_SLOW, PD_NUMBER_MSCALE,
    PD_NUMBER_MSCALE_ALL_DIM, PD_NUMBER_ATTN_FACTOR, PD_NUMBER_NO_ROPE_INTERVAL,
    PD_NUMBER_QUERY_GROWTH, PD_N_NUMBERS
};

struct pd_number_row {
    const char *hf, *gguf;   /* NULL: that form has no key for it */
    double low, high;
    uint32_t multiple;       /* 0: any */
};

extern const struct pd_number_row pd_numbers[PD_N_NUMBERS];

/* What kernels, sizes and formulas rely on. `key`: as a sentence names it. */
peridot_status pd_number_check(enum pd_number number, double value, const char *key);

#endif

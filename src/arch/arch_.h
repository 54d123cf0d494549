/* How configs are read: what this folder's readers have in common. */
#ifndef PD_ARCH_ARCH_PRIVATE_H
#define PD_ARCH_ARCH_PRIVATE_H

#include "arch/arch.h"
#include "base/base.h"

/* ---- config readers ---- */

/* The two readers behind pd_config_read: they fill in numbers and layers, which it checks and completes. */

peridot_status pd_config_read_gguf(struct pd_config *out, const struct pd_checkpoint *c);
peridot_status pd_config_read_hf(struct pd_config *out, const struct pd_checkpoint *c);

/* ---- numbers ---- */

/* The numbers of a config: what config.json and GGUF metadata call each, and what it can be. */

enum pd_number {
    PD_NUMBER_LAYERS, PD_NUMBER_D_MODEL, PD_NUMBER_CTX, PD_NUMBER_VOCAB_SIZE, PD_NUMBER_SHARED_KV,
    PD_NUMBER_PER_LAYER_DIM, PD_NUMBER_TARGET_DIM, PD_NUMBER_EPS, PD_NUMBER_NORM_EPS,
    PD_NUMBER_ATTN_SOFTCAP, PD_NUMBER_FINAL_SOFTCAP,
    PD_NUMBER_EMBED_SCALE, PD_NUMBER_RESIDUAL_SCALE, PD_NUMBER_LOGIT_DIVISOR, PD_NUMBER_LOGIT_SCALE,
    PD_NUMBER_POST_EPS, PD_NUMBER_Q_NORM_WEIGHT,
    /* Of layers: */
    PD_NUMBER_BLOCK_FFN_DIM, PD_NUMBER_FFN_MULTIPLIER, PD_NUMBER_FFN_MULTIPLE,   /* LFM2's: see config_hf.c */
    PD_NUMBER_FFN_DIM, PD_NUMBER_SHARED_DIM, PD_NUMBER_SHARED_EXPERT_DIM, PD_NUMBER_HEADS, PD_NUMBER_KV_HEADS,
    PD_NUMBER_HEAD_DIM,
    PD_NUMBER_KV_HEADS_GLOBAL, PD_NUMBER_HEAD_DIM_GLOBAL,   /* of layers without a window, where they differ; */
    PD_NUMBER_HEAD_DIM_LOCAL,                               /* of those with one */
    PD_NUMBER_QUERY_DIVISOR,
    PD_NUMBER_QUERY_SCALE, PD_NUMBER_WINDOW, PD_NUMBER_PATTERN,
    PD_NUMBER_FULL_LAYERS,                                  /* without a window, before those with one */
    PD_NUMBER_EXPERTS, PD_NUMBER_EXPERTS_USED, PD_NUMBER_EXPERT_DIM,
    PD_NUMBER_LOCAL_EXPERTS, PD_NUMBER_EXPERTS_PER_TOKEN,   /* other names of the first two */
    PD_NUMBER_SPARSE_STEP,                                  /* every so many layers one has experts, */
    PD_NUMBER_DENSE_LAYERS,                                 /* or all but the first so many */
    PD_NUMBER_ROUTE_SCALE, PD_NUMBER_GATING,                /* of sigmoids: the only ones known */
    /* Of recurrences, and every how many layers one has attention: */
    PD_NUMBER_DELTA_K_HEADS, PD_NUMBER_DELTA_V_HEADS, PD_NUMBER_DELTA_K_DIM, PD_NUMBER_DELTA_V_DIM, PD_NUMBER_CONV,
    PD_NUMBER_SHORT_CONV, PD_NUMBER_FULL_INTERVAL,
    PD_NUMBER_MAMBA_GROUPS, PD_NUMBER_MAMBA_HEADS, PD_NUMBER_MAMBA_STATE, PD_NUMBER_MAMBA_HEAD_DIM,
    PD_NUMBER_MAMBA_CONV, PD_NUMBER_MAMBA_EXPAND,
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

/* Of layers whose recurrences are read: heads of values are shared out evenly, and some layer attends. `file`: as a
 * sentence names it. */
peridot_status pd_layers_check_recurrences(const struct pd_config *config, const char *file);

/* ---- hf reader ---- */

/* Numbers of config.json, for the files that read one. The first failure is kept in the reader, after which nothing is
 * read, so that what reads many needs no checks. Values are those of the document, borrowed. */

/* An object of config.json. */
struct pd_hf_object {
    yyjson_val *at;          /* NULL: there is none */
    const char *prefix;      /* of its keys in sentences: "", "rope_scaling." */
};

struct pd_hf_reader {
    struct pd_hf_object config;    /* of the text model */
    const struct pd_hf_type *type;
    const struct pd_family_traits *family;
    uint32_t n_layers;       /* 0: not known yet */
    peridot_status status;   /* of the first failure, after which nothing is read */
};

enum { PD_HF_KEY_SIZE = 160 };

/* "config.json: text_config.head_dim" */
const char *pd_hf_key(char out[PD_HF_KEY_SIZE], struct pd_hf_object o, const char *key);
void pd_hf_fail_type(struct pd_hf_reader *r, struct pd_hf_object o, const char *key, const char *want);
/* NULL for null, too. */
yyjson_val *pd_hf_member(yyjson_val *object, const char *key);
/* An object under a key; at is NULL where there is none. */
struct pd_hf_object pd_hf_object(struct pd_hf_reader *r, struct pd_hf_object o, const char *key, const char *prefix);
/* Of an array with one value per layer, that of layer i; else the one value. Null is as good as absent where the value
 * can be derived: of head_dim and num_key_value_heads. */
uint32_t pd_hf_layer_uint(struct pd_hf_reader *r, enum pd_number number, uint32_t i, uint32_t fallback);
uint32_t pd_hf_uint(struct pd_hf_reader *r, enum pd_number number, uint32_t fallback);
/* fallback NAN: the key must be there. */
double pd_hf_number(struct pd_hf_reader *r, struct pd_hf_object o, enum pd_number number, double fallback);
/* hf_rope.c: both rotations of the config, by any generation of keys. */
void pd_hf_read_ropes(struct pd_hf_reader *r, struct pd_config *out);
/* and which layers have none. */
peridot_status pd_hf_read_no_rope(struct pd_hf_reader *r, struct pd_config *out);
/* hf_layers.c: makes and fills in the layers. */
peridot_status pd_hf_read_layers(struct pd_hf_reader *r, struct pd_config *out);
/* Whether layer_types names a layer with a state-space block. */
bool pd_hf_has_mamba(yyjson_val *config);

#endif

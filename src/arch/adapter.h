/* A LoRA adapter's files, checked against the model that it is for: what is added to each matrix of its layers,
 *   y += scale B (A x)
 * A GGUF file (general.type "adapter") calls A and B NAME.lora_a and NAME.lora_b, NAME being the matrix's; a PEFT
 * directory (adapter_config.json, adapter_model.safetensors) calls them by the matrix's module. What is not known of
 * either, or would be an effect lost, is refused by name. */
#ifndef PD_ARCH_ADAPTER_H
#define PD_ARCH_ADAPTER_H

#include "arch/plan.h"
#include "arch/rope.h"

struct pd_adapter_part {
    const struct pd_tensor *a, *b;   /* [rank][n_cols], [n_rows][rank] */
    uint32_t rank;                   /* 0: nothing is added */
    float scale;
    struct pd_head_order order;      /* of the first rows of b, in the file, */
    uint32_t n_reordered;            /* so many */
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

#endif

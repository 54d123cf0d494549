/* The layers of a config: what its readers and shapes fill in, what follows from it, and the largest of each number. */
#ifndef PD_ARCH_LAYERS_H
#define PD_ARCH_LAYERS_H

#include "arch/config.h"

/* Allocates n_layers layers with keys and values of their own, and without numbers. */
peridot_status pd_layers_create(struct pd_config *config);
/* Sets what the family's layers are built of, finds whose cache each reads and what kinds there are, and computes the
 * tables of rotation. */
peridot_status pd_layers_complete(struct pd_config *config);

/* The query scale of a layer in a GGUF file that does not say it (attention.scale; few do). */
float pd_layer_usual_scale(const struct pd_config *config, const struct pd_layer *layer);

/* A token cannot take more experts than there are; `key` names their number in a sentence. */
peridot_status pd_layer_check_experts(const struct pd_layer *layer, const char *key);
/* Whether the layer has keys and values of its own. */
bool pd_layer_owns_kv(const struct pd_config *config, uint32_t layer);
/* Ranks may begin with a layer up to this one, as later ones read its keys, which must be on the same rank. */
uint32_t pd_layers_last_division(const struct pd_config *config);
/* Columns of all of a layer's heads, and rows of its fused matrix of q, k, v and attention's gate. */
uint32_t pd_layer_q_dim(const struct pd_layer *layer);
uint32_t pd_layer_kv_dim(const struct pd_layer *layer);
uint32_t pd_layer_qkv_dim(const struct pd_config *config, uint32_t layer);

/* The largest of each number in any layer. */
struct pd_layer_sizes {
    uint32_t n_heads, n_kv_heads, head_dim, ffn_dim, window;
    uint32_t q_dim, qkv_dim;
    uint32_t n_experts, n_experts_used, expert_dim;
};
struct pd_layer_sizes pd_layers_largest(const struct pd_config *config);

#endif

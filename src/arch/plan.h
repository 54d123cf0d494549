/* What every tensor of a model is for, and what it is called in either form of file. */
#ifndef PD_ARCH_PLAN_H
#define PD_ARCH_PLAN_H

#include "arch/config.h"

enum pd_role {
    PD_ROLE_EMBEDDING, PD_ROLE_OUTPUT, PD_ROLE_OUTPUT_NORM, PD_ROLE_ROPE_FREQS, PD_ROLE_SCORE, PD_ROLE_SCORE_BIAS,   /* once, the others in every layer */
    PD_ROLE_ATTN_NORM, PD_ROLE_Q, PD_ROLE_K, PD_ROLE_V, PD_ROLE_O, PD_ROLE_Q_NORM, PD_ROLE_K_NORM, PD_ROLE_POST_ATTN_NORM,
    PD_ROLE_FFN_NORM, PD_ROLE_GATE, PD_ROLE_UP, PD_ROLE_DOWN, PD_ROLE_POST_FFN_NORM, PD_N_ROLES
};

enum { PD_TENSOR_NAME_SIZE = 128 };

/* In a GGUF file; `layer` counts only where the name has one. */
void pd_tensor_name_gguf(char out[PD_TENSOR_NAME_SIZE], enum pd_role role, uint32_t layer);
/* In a Hugging Face directory; `prefix`: pd_tensor_prefix of it. "" for what such directories have no tensor for. */
void pd_tensor_name_hf(char out[PD_TENSOR_NAME_SIZE], enum pd_role role, uint32_t layer, enum pd_family family,
                       const char *prefix);
/* What stands before the names of the text model's tensors in a Hugging Face directory; "" in a GGUF file. */
const char *pd_tensor_prefix(const struct pd_checkpoint *c);
/* In this checkpoint, whichever form it has. */
void pd_tensor_name(char out[PD_TENSOR_NAME_SIZE], const struct pd_checkpoint *c, enum pd_family family, const char *prefix,
                    enum pd_role role, uint32_t layer);

#endif

#include "arch/plan.h"

#include "base/num.h"

#include <stdio.h>
#include <string.h>

/* %u is the layer. Where a family has post norms, Hugging Face's post_attention_layernorm norms attention's output; else
 * it is the norm before the ffn. */
static const struct {
    const char *gguf, *hf, *hf_post_norms;
} names[PD_N_ROLES] = {
    [PD_ROLE_EMBEDDING] = {"token_embd.weight", "embed_tokens.weight", NULL},
    [PD_ROLE_OUTPUT] = {"output.weight", "lm_head.weight", NULL},
    [PD_ROLE_OUTPUT_NORM] = {"output_norm.weight", "norm.weight", NULL},
    [PD_ROLE_ROPE_FREQS] = {"rope_freqs.weight", "", NULL},
    [PD_ROLE_SCORE] = {"", "score.weight", NULL},   /* classification heads exist in Hugging Face form only */
    [PD_ROLE_SCORE_BIAS] = {"", "score.bias", NULL},
    [PD_ROLE_ATTN_NORM] = {"blk.%u.attn_norm.weight", "layers.%u.input_layernorm.weight", NULL},
    [PD_ROLE_Q] = {"blk.%u.attn_q.weight", "layers.%u.self_attn.q_proj.weight", NULL},
    [PD_ROLE_K] = {"blk.%u.attn_k.weight", "layers.%u.self_attn.k_proj.weight", NULL},
    [PD_ROLE_V] = {"blk.%u.attn_v.weight", "layers.%u.self_attn.v_proj.weight", NULL},
    [PD_ROLE_O] = {"blk.%u.attn_output.weight", "layers.%u.self_attn.o_proj.weight", NULL},
    [PD_ROLE_Q_NORM] = {"blk.%u.attn_q_norm.weight", "layers.%u.self_attn.q_norm.weight", NULL},
    [PD_ROLE_K_NORM] = {"blk.%u.attn_k_norm.weight", "layers.%u.self_attn.k_norm.weight", NULL},
    [PD_ROLE_POST_ATTN_NORM] = {"blk.%u.post_attention_norm.weight", "layers.%u.post_attention_layernorm.weight", NULL},
    [PD_ROLE_FFN_NORM] = {"blk.%u.ffn_norm.weight", "layers.%u.post_attention_layernorm.weight",
                          "layers.%u.pre_feedforward_layernorm.weight"},
    [PD_ROLE_GATE] = {"blk.%u.ffn_gate.weight", "layers.%u.mlp.gate_proj.weight", NULL},
    [PD_ROLE_UP] = {"blk.%u.ffn_up.weight", "layers.%u.mlp.up_proj.weight", NULL},
    [PD_ROLE_DOWN] = {"blk.%u.ffn_down.weight", "layers.%u.mlp.down_proj.weight", NULL},
    [PD_ROLE_POST_FFN_NORM] = {"blk.%u.post_ffw_norm.weight", "layers.%u.post_feedforward_layernorm.weight", NULL},
};

static void write_name(char out[PD_TENSOR_NAME_SIZE], const char *prefix, const char *format, uint32_t layer)
{
    const char *percent = strstr(format, "%u");
    if (percent)
        snprintf(out, PD_TENSOR_NAME_SIZE, "%s%.*s%u%s", prefix, (int)(percent - format), format, (unsigned)layer, percent + 2);
    else
        snprintf(out, PD_TENSOR_NAME_SIZE, "%s%s", prefix, format);
}

void pd_tensor_name_gguf(char out[PD_TENSOR_NAME_SIZE], enum pd_role role, uint32_t layer)
{
    write_name(out, "", names[role].gguf, layer);
}

void pd_tensor_name_hf(char out[PD_TENSOR_NAME_SIZE], enum pd_role role, uint32_t layer, enum pd_family family,
                       const char *prefix)
{
    bool post_norms = names[role].hf_post_norms && pd_families[family].post_norms;
    const char *format = post_norms ? names[role].hf_post_norms : names[role].hf;
    /* Output matrices lie outside "model.". */
    if (role == PD_ROLE_SCORE || role == PD_ROLE_SCORE_BIAS) prefix = "";
    else if (role == PD_ROLE_OUTPUT) prefix = strncmp(prefix, "language_model.", 15) == 0 ? "language_model." : "";
    write_name(out, *format ? prefix : "", format, layer);
}

/* Plain, inside a multimodal model (old and new style), or a base model by itself. */
const char *pd_tensor_prefix(const struct pd_checkpoint *c)
{
    static const char *const prefixes[] = {"model.", "language_model.model.", "model.language_model.", ""};
    char name[PD_TENSOR_NAME_SIZE];
    if (pd_checkpoint_kind(c) == PD_CHECKPOINT_GGUF) return "";
    for (size_t i = 0; i < PD_COUNT(prefixes); i++) {
        snprintf(name, sizeof name, "%snorm.weight", prefixes[i]);
        if (pd_checkpoint_find(c, name)) return prefixes[i];
    }
    return prefixes[0];
}

void pd_tensor_name(char out[PD_TENSOR_NAME_SIZE], const struct pd_checkpoint *c, enum pd_family family, const char *prefix,
                    enum pd_role role, uint32_t layer)
{
    if (pd_checkpoint_kind(c) == PD_CHECKPOINT_GGUF) pd_tensor_name_gguf(out, role, layer);
    else pd_tensor_name_hf(out, role, layer, family, prefix);
}

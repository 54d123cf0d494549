#include "arch/config.h"

#include "arch/config_readers.h"
#include "arch/layers.h"
#include "arch/plan.h"
#include "arch/rope.h"
#include "base/num.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Files tell of a layer without v by having none, but for config.json of Gemma 4, which says so. */
static void find_v(struct pd_config *out, const struct pd_checkpoint *c)
{
    const char *prefix = pd_tensor_prefix(c);
    char name[PD_TENSOR_NAME_SIZE];
    for (uint32_t i = 0; i < out->n_layers; i++) {
        pd_tensor_name(name, c, out->family, prefix, PD_ROLE_V, i);
        out->layers[i].has_v = out->layers[i].fused_qkv || pd_checkpoint_find(c, name);
    }
}

static bool has_tensor(const struct pd_checkpoint *c, enum pd_role role, uint32_t layer)
{
    char name[PD_TENSOR_NAME_SIZE];
    pd_tensor_name_gguf(name, role, layer);
    return pd_checkpoint_find(c, name) != NULL;
}

/* config.json says it. */
static void find_biases(struct pd_config *out, const struct pd_checkpoint *c)
{
    for (uint32_t i = 0; i < out->n_layers; i++) {
        out->layers[i].qkv_biases = out->layers[i].fused_qkv_bias || has_tensor(c, PD_ROLE_Q_BIAS, i);
        out->layers[i].o_bias = has_tensor(c, PD_ROLE_O_BIAS, i);
        out->layers[i].ffn_biases = has_tensor(c, PD_ROLE_DOWN_BIAS, i);
    }
}

/* As llama.cpp's converter writes them where it is asked to, in layers that have all three. */
static void find_fused(struct pd_config *out, const struct pd_checkpoint *c)
{
    for (uint32_t i = 0; i + out->n_shared_kv < out->n_layers; i++) {
        out->layers[i].fused_qkv = has_tensor(c, PD_ROLE_QKV, i);
        out->layers[i].fused_qkv_bias = has_tensor(c, PD_ROLE_QKV_BIAS, i);
    }
}

/* As llama.cpp's converter once wrote them. */
static void find_split_experts(struct pd_config *out, const struct pd_checkpoint *c)
{
    for (uint32_t i = 0; i < out->n_layers; i++)
        out->layers[i].experts_split = has_tensor(c, PD_ROLE_EXPERTS_GATE, i);
}

/* Of embeddings with n columns: its root, rounded to bf16 as the published code does. */
static float scale_of(uint32_t n) { return pd_f32_from_bf16(pd_bf16_from_f32(sqrtf((float)n))); }

/* Windows are of both sides, and count the token itself. */
static void see_both_ways(struct pd_config *out, const struct pd_family_traits *family, bool gguf)
{
    bool each_side = !gguf && family->hf_window_each_side;
    out->head = PERIDOT_HEAD_NONE;
    out->tied = false;
    for (uint32_t i = 0; i < out->n_layers; i++) {
        uint32_t *window = &out->layers[i].window;
        if (*window) *window = (each_side ? *window : *window / 2) + 1;
    }
}

/* A tensor of what frequencies are divided by. */
static peridot_status read_factors(float *out, const struct pd_checkpoint *c, enum pd_role role, uint32_t n)
{
    char name[PD_TENSOR_NAME_SIZE];
    pd_tensor_name_gguf(name, role, 0);
    const struct pd_tensor *t = pd_checkpoint_find(c, name);
    if (!t) return pd_fail(PERIDOT_ERROR_FORMAT, "tensor %s is missing", name);
    if (t->dtype != PD_F32 || t->n_dims != 1 || t->shape[0] != n)
        return pd_fail(PERIDOT_ERROR_FORMAT, "tensor %s is not f32 of shape [%u]", name, n);
    for (uint32_t i = 0; i < n; i++) {
        memcpy(&out[i], t->data + sizeof *out * i, sizeof *out);
        if (!(out[i] > 0 && isfinite(out[i])))
            return pd_fail(PERIDOT_ERROR_FORMAT, "tensor %s: element %u is %g", name, i, (double)out[i]);
    }
    return PERIDOT_OK;
}

static peridot_status read_rope_factors(struct pd_config *out, const struct pd_checkpoint *c)
{
    struct pd_rope *rope = &out->ropes[PD_ROPE_GLOBAL];
    const struct pd_layer *layer = pd_rope_global_layer(out);
    uint32_t n = (layer->n_rotated ? layer->n_rotated : layer->head_dim) / 2;
    bool has_rule = pd_checkpoint_find(c, "rope_freqs.weight") != NULL;
    bool is_long = !has_rule && (pd_checkpoint_find(c, "rope_factors_long.weight")
                                 || pd_checkpoint_find(c, "rope_factors_short.weight"));
    if (!has_rule && !is_long) return PERIDOT_OK;
    PD_TRY(read_factors(rope->factors[0], c, has_rule ? PD_ROLE_ROPE_FREQS : PD_ROLE_ROPE_SHORT, n));
    if (is_long) PD_TRY(read_factors(rope->factors[1], c, PD_ROLE_ROPE_LONG, n));
    rope->n_factors = n;
    rope->is_long = is_long;
    rope->rotated_part = 0;   /* they say so themselves */
    if (!pd_families[out->family].local_rope) out->ropes[PD_ROPE_LOCAL] = *rope;
    return PERIDOT_OK;
}

static peridot_status read_config(struct pd_config *out, const struct pd_checkpoint *c)
{
    bool gguf = pd_checkpoint_kind(c) == PD_CHECKPOINT_GGUF;
    PD_TRY(gguf ? pd_config_read_gguf(out, c) : pd_config_read_hf(out, c));
    const struct pd_family_traits *family = &pd_families[out->family];
    out->fused_gate_up = family->fused || (family->hf_shared_unit && !gguf);
    out->bidirectional = family->embeds;
    if (family->embeds) see_both_ways(out, family, gguf);
    out->norm_plus_one = !gguf && family->hf_norm_plus_one;
    out->rope_interleaved = gguf && family->gguf_interleaved;
    if (family->scale_embedding) out->embed_scale = scale_of(out->d_model);
    out->per_layer_scale = scale_of(out->per_layer_dim);
    if (gguf) find_fused(out, c);
    if (gguf) find_split_experts(out, c);
    if (gguf && family->optional_biases) find_biases(out, c);
    if (family->optional_v && (gguf || !family->sizes_by_window)) find_v(out, c);
    PD_TRY(pd_embedding_read(&out->embedding, c, family));
    bool headless = !gguf && out->embedding.trained && !out->tied && !pd_checkpoint_find(c, "lm_head.weight");
    if (headless) out->head = PERIDOT_HEAD_NONE;
    if (gguf) PD_TRY(read_rope_factors(out, c));
    return pd_layers_complete(out);
}

peridot_status pd_config_read(struct pd_config *out, const struct pd_checkpoint *c)
{
    *out = (struct pd_config){.embed_scale = 1, .residual_scale = 1, .logit_scale = 1};
    peridot_status status = read_config(out, c);
    if (status == PERIDOT_OK) return status;
    pd_config_free(out);
    return pd_fail_prefix(status, pd_checkpoint_path(c));
}

void pd_config_free(struct pd_config *config)
{
    free(config->layers);
    for (uint32_t i = 0; config->labels && i < config->n_labels; i++) free(config->labels[i]);
    free(config->labels);
    pd_embedding_free(&config->embedding);
    for (uint32_t i = 0; i < config->n_rope_tables; i++) {
        free(config->rope_tables[i].inv_freq);
        free(config->rope_tables[i].long_inv_freq);
    }
    *config = (struct pd_config){0};
}

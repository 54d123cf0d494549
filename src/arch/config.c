#include "arch/config.h"

#include "base/num.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct pd_family_traits pd_families[PD_N_FAMILIES] = {
    [PD_GEMMA1] = {.name = "gemma", .hf_types = {"gemma"}, .scale_embedding = true, .hf_norm_plus_one = true, .tied = true,
        .rope_base = 10000},
    [PD_GEMMA2] = {.name = "gemma2", .hf_types = {"gemma2"}, .post_norms = true, .scale_embedding = true, .hf_norm_plus_one = true,
        .tied = true, .window_pattern = 2, .rope_base = 10000, .rope_base_local = 10000, .attn_softcap = 50, .final_softcap = 30,
        .n_layers_27b = 46},
    [PD_GEMMA3] = {.name = "gemma3", .hf_types = {"gemma3_text", "gemma3"}, .post_norms = true, .qk_norms = true,
        .scale_embedding = true, .hf_norm_plus_one = true, .tied = true, .window_pattern = 6, .rope_base = 1000000,
        .rope_base_local = 10000, .n_layers_27b = 62},
    [PD_LLAMA] = {.name = "llama", .hf_types = {"llama"}, .silu = true, .gguf_interleaved = true, .rope_base = 10000},
};

peridot_status pd_config_set_pattern(struct pd_config *config, uint32_t pattern)
{
    if (config->n_layers == 0 || config->n_layers > 1024)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%u layers are not between 1 and 1024", config->n_layers);
    config->layers = calloc(config->n_layers, sizeof *config->layers);
    if (!config->layers) return pd_fail_alloc(sizeof *config->layers * config->n_layers, "layers");
    for (uint32_t i = 0; i < config->n_layers; i++) pd_config_set_local(config, i, pattern && (i + 1) % pattern != 0);
    return PERIDOT_OK;
}

void pd_config_set_local(struct pd_config *config, uint32_t layer, bool local)
{
    local = local && config->window;
    config->layers[layer].window = local ? config->window : 0;
    config->layers[layer].rope = local ? PD_ROPE_LOCAL : PD_ROPE_GLOBAL;
}

/* What kernels and sizes rely on. */
static peridot_status check(const struct pd_config *c)
{
    const struct { const char *name; uint32_t value, low, high; } ranges[] = {
        {"d_model", c->d_model, 4, 32768}, {"ffn_dim", c->ffn_dim, 1, 1 << 20}, {"n_heads", c->n_heads, 1, 1024},
        {"n_kv_heads", c->n_kv_heads, 1, 1024}, {"head_dim", c->head_dim, 4, 512}, {"context length", c->ctx_max, 1, 1 << 27},
    };
    for (size_t i = 0; i < PD_COUNT(ranges); i++)
        if (ranges[i].value < ranges[i].low || ranges[i].value > ranges[i].high)
            return pd_fail(PERIDOT_ERROR_FORMAT, "%s is %u, not between %u and %u", ranges[i].name, ranges[i].value, ranges[i].low, ranges[i].high);
    if (c->d_model % 4 != 0) return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "d_model %u is not a multiple of 4", c->d_model);
    if (c->head_dim % 4 != 0) return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "head_dim %u is not a multiple of 4", c->head_dim);
    if (c->n_heads % c->n_kv_heads != 0)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%u query heads cannot share %u kv heads evenly", c->n_heads, c->n_kv_heads);
    if (!(c->eps >= 0 && c->eps < 1)) return pd_fail(PERIDOT_ERROR_FORMAT, "the norms' epsilon is %g", (double)c->eps);
    if (!(isfinite(c->query_scale) && c->query_scale > 0)) return pd_fail(PERIDOT_ERROR_FORMAT, "the query scale is %g", (double)c->query_scale);
    if (!(c->attn_softcap >= 0 && c->final_softcap >= 0 && isfinite(c->attn_softcap) && isfinite(c->final_softcap)))
        return pd_fail(PERIDOT_ERROR_FORMAT, "softcaps are %g and %g", (double)c->attn_softcap, (double)c->final_softcap);
    for (int i = 0; i < PD_N_ROPES; i++) {
        const struct pd_rope *r = &c->ropes[i];
        if (!(r->base > 0 && isfinite(r->base) && r->divisor > 0 && isfinite(r->divisor)))
            return pd_fail(PERIDOT_ERROR_FORMAT, "RoPE base %g and position divisor %g", r->base, r->divisor);
        if (r->factor != 0 && !(r->factor > 0 && r->old_ctx > 0 && r->high_freq_factor > r->low_freq_factor && isfinite(r->factor)))
            return pd_fail(PERIDOT_ERROR_FORMAT, "RoPE scaling by %g between frequency factors %g and %g", r->factor, r->low_freq_factor, r->high_freq_factor);
    }
    return PERIDOT_OK;
}

/* Llama 3.1's rule (Meta's apply_scaling): long waves are slowed by `factor`, short ones stay, those between are blended. */
static double scaled_frequency(const struct pd_rope *rope, double f)
{
    const double two_pi = 6.283185307179586;
    double turns = rope->old_ctx * f / two_pi;   /* in the old context */
    if (rope->factor == 0 || turns > rope->high_freq_factor) return f;
    if (turns < rope->low_freq_factor) return f / rope->factor;
    double smooth = (turns - rope->low_freq_factor) / (rope->high_freq_factor - rope->low_freq_factor);
    return (1 - smooth) * f / rope->factor + smooth * f;
}

static double frequency(const struct pd_rope *rope, uint32_t head_dim, uint32_t i)
{
    return pow(rope->base, -2.0 * i / head_dim) / rope->divisor;
}

double pd_rope_factor(const struct pd_rope *rope, uint32_t head_dim, uint32_t i)
{
    double f = frequency(rope, head_dim, i);
    return f / scaled_frequency(rope, f);
}

/* rope_freqs.weight: what each frequency is divided by. */
static peridot_status apply_factors(double *inv_freq, uint32_t n, const struct pd_checkpoint *c)
{
    const struct pd_tensor *t = pd_checkpoint_find(c, "rope_freqs.weight");
    if (!t) return PERIDOT_OK;
    if (t->dtype != PD_F32 || t->n_dims != 1 || t->shape[0] != n)
        return pd_fail(PERIDOT_ERROR_FORMAT, "tensor rope_freqs.weight is not f32 of shape [%u]", n);
    for (uint32_t i = 0; i < n; i++) {
        float factor;
        memcpy(&factor, t->data + sizeof factor * i, sizeof factor);
        if (!(factor > 0 && isfinite(factor))) return pd_fail(PERIDOT_ERROR_FORMAT, "tensor rope_freqs.weight: element %u is %g", i, (double)factor);
        inv_freq[i] /= (double)factor;
    }
    return PERIDOT_OK;
}

static peridot_status make_frequencies(struct pd_config *out, const struct pd_checkpoint *c)
{
    uint32_t half = out->head_dim / 2;
    for (int kind = 0; kind < PD_N_ROPES; kind++) {
        const struct pd_rope *rope = &out->ropes[kind];
        double *f = out->inv_freq[kind] = malloc(sizeof *f * half);
        if (!f) return pd_fail_alloc(sizeof *f * half, "RoPE frequencies");
        for (uint32_t i = 0; i < half; i++)
            f[i] = scaled_frequency(rope, frequency(rope, out->head_dim, i));
        PD_TRY(apply_factors(f, half, c));
    }
    return PERIDOT_OK;
}

static peridot_status read_config(struct pd_config *out, const struct pd_checkpoint *c)
{
    bool gguf = pd_checkpoint_kind(c) == PD_CHECKPOINT_GGUF;
    PD_TRY(gguf ? pd_config_read_gguf(out, c) : pd_config_read_hf(out, c));
    const struct pd_family_traits *family = &pd_families[out->family];
    out->norm_plus_one = !gguf && family->hf_norm_plus_one;
    out->rope_interleaved = gguf && family->gguf_interleaved;
    out->embed_scale = family->scale_embedding ? pd_f32_from_bf16(pd_bf16_from_f32(sqrtf((float)out->d_model))) : 1;
    PD_TRY(check(out));
    return make_frequencies(out, c);
}

peridot_status pd_config_read(struct pd_config *out, const struct pd_checkpoint *c)
{
    *out = (struct pd_config){.ropes = {{.divisor = 1}, {.divisor = 1}}};
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
    for (int kind = 0; kind < PD_N_ROPES; kind++) free(config->inv_freq[kind]);
    *config = (struct pd_config){0};
}

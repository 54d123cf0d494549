#include "model/config.h"

#include "base/num.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct pd_family_traits pd_families[PD_N_FAMILIES] = {
    [PD_GEMMA1] = {.name = "gemma", .hf_types = {"gemma"}, .rope_base = 10000},
    [PD_GEMMA2] = {.name = "gemma2", .hf_types = {"gemma2"}, .post_norms = true, .window_pattern = 2,
        .rope_base = 10000, .rope_base_local = 10000, .attn_softcap = 50, .final_softcap = 30, .n_layers_27b = 46},
    [PD_GEMMA3] = {.name = "gemma3", .hf_types = {"gemma3_text", "gemma3"}, .post_norms = true, .qk_norms = true,
        .window_pattern = 6, .rope_base = 1000000, .rope_base_local = 10000, .n_layers_27b = 62},
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
    if (c->head_dim % 4 != 0) return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "head_dim %u is not a multiple of 4", c->head_dim);
    if (c->n_heads % c->n_kv_heads != 0)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%u query heads cannot share %u kv heads evenly", c->n_heads, c->n_kv_heads);
    if (!(c->eps >= 0 && c->eps < 1)) return pd_fail(PERIDOT_ERROR_FORMAT, "the norms' epsilon is %g", (double)c->eps);
    if (!(isfinite(c->query_scale) && c->query_scale > 0)) return pd_fail(PERIDOT_ERROR_FORMAT, "the query scale is %g", (double)c->query_scale);
    if (!(c->attn_softcap >= 0 && c->final_softcap >= 0 && isfinite(c->attn_softcap) && isfinite(c->final_softcap)))
        return pd_fail(PERIDOT_ERROR_FORMAT, "softcaps are %g and %g", (double)c->attn_softcap, (double)c->final_softcap);
    for (int i = 0; i < PD_N_ROPES; i++)
        if (!(c->ropes[i].base > 0 && isfinite(c->ropes[i].base) && c->ropes[i].divisor > 0 && isfinite(c->ropes[i].divisor)))
            return pd_fail(PERIDOT_ERROR_FORMAT, "RoPE base %g and position divisor %g", c->ropes[i].base, c->ropes[i].divisor);
    return PERIDOT_OK;
}

static peridot_status read_config(struct pd_config *out, const struct pd_checkpoint *c)
{
    PD_TRY(pd_checkpoint_kind(c) == PD_CHECKPOINT_GGUF ? pd_config_read_gguf(out, c) : pd_config_read_hf(out, c));
    out->embed_scale = pd_f32_from_bf16(pd_bf16_from_f32(sqrtf((float)out->d_model)));
    return check(out);
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
    config->layers = NULL;
}

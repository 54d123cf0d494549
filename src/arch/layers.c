/* The layers of a config: what its readers and shapes fill in, what follows from it, and the largest of each number. */
#include "arch/arch.h"

#include "arch/arch_.h"
#include "base/base.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- filling in ---- */

peridot_status pd_layers_create(struct pd_config *config)
{
    config->layers = calloc(config->n_layers, sizeof *config->layers);
    if (!config->layers) return pd_fail_alloc(sizeof *config->layers * config->n_layers, "layers");
    for (uint32_t i = 0; i < config->n_layers; i++) config->layers[i] = (struct pd_layer){.has_v = true, .kv_layer = i};
    return PERIDOT_OK;
}

float pd_layer_usual_scale(const struct pd_config *config, const struct pd_layer *layer)
{
    uint32_t depth = pd_families[config->family].n_layers_27b;
    if (pd_families[config->family].unscaled_queries) return 1;
    bool is_27b = depth && config->n_layers == depth && layer->n_heads;
    return (float)(1 / sqrt((double)(is_27b ? config->d_model / layer->n_heads : layer->head_dim)));
}

peridot_status pd_layer_set_experts(struct pd_layer *layer, const struct pd_family_traits *family, const char *key)
{
    if (layer->n_experts && !family->experts_beside && !family->shared_expert) layer->ffn_dim = 0;
    if (layer->n_experts_used <= layer->n_experts) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_FORMAT, "%s is %u, but there are %u experts", key, layer->n_experts_used,
                   layer->n_experts);
}

peridot_status pd_layers_check_recurrences(const struct pd_config *config, const char *file)
{
    bool attends = false;
    for (uint32_t i = 0; i < config->n_layers; i++) {
        const struct pd_delta *d = &config->layers[i].delta;
        attends = attends || !pd_layer_recurs(&config->layers[i]);
        if (d->n_v && (!d->n_k || d->n_v % d->n_k != 0))
            return pd_fail(PERIDOT_ERROR_FORMAT, "%s: %u value heads of a recurrence cannot share %u key heads evenly",
                           file, d->n_v, d->n_k);
    }
    if (attends) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: no layer has attention, which is not supported", file);
}

/* ---- sizes ---- */

bool pd_layer_owns_kv(const struct pd_config *config, uint32_t layer)
{
    return config->layers[layer].kv_layer == layer;
}

uint32_t pd_layers_last_division(const struct pd_config *config)
{
    uint32_t last = config->n_layers - 1;
    for (uint32_t i = 0; i < config->n_layers; i++)
        if (!pd_layer_owns_kv(config, i)) last = (uint32_t)pd_min(last, config->layers[i].kv_layer);
    return last;
}

uint32_t pd_layer_q_dim(const struct pd_layer *layer) { return layer->n_heads * layer->head_dim; }

uint32_t pd_layer_kv_dim(const struct pd_layer *layer) { return layer->n_kv_heads * layer->head_dim; }

uint32_t pd_layer_qkv_dim(const struct pd_config *config, uint32_t i)
{
    const struct pd_layer *layer = &config->layers[i];
    uint32_t n_kv = !pd_layer_owns_kv(config, i) ? 0 : layer->has_v ? 2 : 1;
    if (layer->delta.n_channels) return 3 * layer->delta.n_channels;
    if (pd_layer_recurs(layer))
        return pd_delta_conv_dim(&layer->delta) + pd_delta_dim(&layer->delta)
            + (layer->delta.mamba ? 1 : 2) * layer->delta.n_v;
    return (layer->attn_gate ? 2 : 1) * pd_layer_q_dim(layer) + n_kv * pd_layer_kv_dim(layer);
}

const struct pd_layer *pd_layers_recurrence(const struct pd_config *config)
{
    for (uint32_t i = 0; i < config->n_layers; i++)
        if (pd_layer_recurs(&config->layers[i])) return &config->layers[i];
    return NULL;
}

static void raise_to(uint32_t *most, uint32_t n) { *most = (uint32_t)pd_max(*most, n); }

struct pd_layer_sizes pd_layers_largest(const struct pd_config *config)
{
    struct pd_layer_sizes most = {0};
    for (uint32_t i = 0; i < config->n_layers; i++) {
        const struct pd_layer *layer = &config->layers[i];
        raise_to(&most.n_heads, layer->n_heads);
        raise_to(&most.n_kv_heads, layer->n_kv_heads);
        raise_to(&most.head_dim, layer->head_dim);
        raise_to(&most.ffn_dim, layer->ffn_dim);
        raise_to(&most.window, layer->window);
        raise_to(&most.n_experts, layer->n_experts);
        raise_to(&most.n_experts_used, layer->n_experts_used);
        raise_to(&most.expert_dim, layer->expert_dim);
        raise_to(&most.q_dim, (uint32_t)pd_max(pd_layer_q_dim(layer), pd_delta_dim(&layer->delta)));
        if (layer->delta.n_v) raise_to(&most.conv_dim, pd_delta_conv_dim(&layer->delta));
        raise_to(&most.qkv_dim, pd_layer_qkv_dim(config, i));
    }
    return most;
}

uint64_t pd_layers_n_idle(const struct pd_config *config)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < config->n_layers; i++) {
        const struct pd_layer *layer = &config->layers[i];
        uint64_t each = 3 * (uint64_t)layer->expert_dim * config->d_model;   /* gate, up, down */
        n += (layer->n_experts - layer->n_experts_used) * each;
    }
    return n;
}

/* ---- kinds ---- */

static bool same_kind(const struct pd_layer *a, const struct pd_layer *b)
{
    return a->n_heads == b->n_heads && a->n_kv_heads == b->n_kv_heads && a->head_dim == b->head_dim
        && a->window == b->window && pd_layer_recurs(a) == pd_layer_recurs(b);
}

static peridot_status find_kind(struct pd_config *c, uint32_t i)
{
    struct pd_layer *layer = &c->layers[i];
    uint32_t kind = 0;
    while (kind < c->n_kinds && !same_kind(layer, &c->layers[c->kinds[kind]])) kind++;
    if (kind == PD_MAX_LAYER_KINDS)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "more than %d kinds of layers are not supported", PD_MAX_LAYER_KINDS);
    if (kind == c->n_kinds) c->kinds[c->n_kinds++] = i;
    layer->kind = kind;
    return PERIDOT_OK;
}

/* ---- completing ---- */

/* The last layer with a cache of its own that is of the same kind; of a drafter's layers it is in another model. */
static peridot_status find_cache(struct pd_config *c, uint32_t i)
{
    uint32_t n_own = c->n_layers - c->n_shared_kv;
    if (c->target_dim) c->layers[i].kv_layer = PD_TARGET_LAYER;
    if (c->target_dim || i < n_own) return PERIDOT_OK;
    for (uint32_t owner = n_own; owner-- > 0;) {
        if (c->layers[owner].kind != c->layers[i].kind) continue;
        c->layers[i].kv_layer = owner;
        return PERIDOT_OK;
    }
    return pd_fail(PERIDOT_ERROR_FORMAT,
                   "layer %u has no keys of its own, and none of the first %u layers is of its kind", i, n_own);
}

/* What a family's layers are built of. */
static void set_blocks(const struct pd_family_traits *family, struct pd_layer *layer)
{
    layer->qkv_biases = layer->qkv_biases || family->qkv_biases;
    layer->o_bias = layer->o_bias || family->all_biases;
    layer->expert_biases = layer->n_experts && family->all_biases;
    layer->sinks = family->sinks;
    layer->fused_qkv = layer->fused_qkv || family->fused;
    layer->qk_norms = family->qk_norms && !pd_layer_recurs(layer);
    layer->whole_qk_norms = family->whole_qk_norms;
    layer->v_norm = family->v_norms;
    layer->attn_gate = family->attn_gate && !pd_layer_recurs(layer);
    layer->gate_in_q = family->gate_in_q && !pd_layer_recurs(layer);
    layer->experts_beside = layer->n_experts && family->experts_beside;
    layer->sigmoid_routes = layer->n_experts && family->sigmoid_routes;
    layer->shares_unit = layer->n_experts && family->shared_expert;
    layer->shared_gate = layer->shares_unit && family->shared_gate;
    layer->delta.grouped = layer->delta.n_v && family->grouped_values;
    layer->pre_norms = !family->no_pre_norms;
    layer->post_norms = family->post_norms;
    layer->output_scale = family->output_scales;
    layer->activation = family->clamped ? PD_CLAMPED_SILU : family->silu ? PD_SILU : PD_GELU;
}

peridot_status pd_layers_complete(struct pd_config *config)
{
    if (config->target_dim) config->n_shared_kv = config->n_layers;
    else if (config->n_shared_kv >= config->n_layers)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%u of %u layers share the caches of others", config->n_shared_kv,
                       config->n_layers);
    for (uint32_t i = 0; i < config->n_layers; i++) {
        set_blocks(&pd_families[config->family], &config->layers[i]);
        if (config->target_dim && config->layers[i].window) config->layers[i].window++;   /* see arch.h */
        PD_TRY(find_kind(config, i));
        PD_TRY(find_cache(config, i));
        if (!pd_layer_recurs(&config->layers[i])) PD_TRY(pd_rope_find_table(config, &config->layers[i]));
    }
    return PERIDOT_OK;
}

/* What a GGUF file says of its model beside tokenizer and tensors: the keys that llama.cpp's converter writes for each
 * architecture, and config_gguf.c reads. */
#include "arch/arch.h"
#include "arch/arch_.h"

#include "base/base.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct keys {
    struct pd_gguf_writer *writer;
    const char *architecture;
};

enum { KEY_SIZE = 80 };

#define KEY(number) pd_numbers[PD_NUMBER_##number].gguf   /* as it is read */

static const char *full_key(char key[KEY_SIZE], const struct keys *k, const char *name)
{
    snprintf(key, KEY_SIZE, "%s.%s", k->architecture, name);
    return key;
}

static void add_u32(const struct keys *k, const char *name, uint32_t value)
{
    char key[KEY_SIZE];
    pd_gguf_writer_add_u32(k->writer, full_key(key, k, name), value);
}

static void add_f32(const struct keys *k, const char *name, double value)
{
    char key[KEY_SIZE];
    pd_gguf_writer_add_f32(k->writer, full_key(key, k, name), (float)value);
}

/* One value, or where layers differ an array. offset: of a uint32_t in struct pd_layer. */
static peridot_status add_layers(const struct keys *k, const char *name, const struct pd_config *c, size_t offset)
{
    char key[KEY_SIZE];
    uint32_t *values = malloc(c->n_layers * sizeof *values);
    bool differ = false;
    if (!values) return pd_fail_alloc(c->n_layers * sizeof *values, "numbers of layers");
    for (uint32_t i = 0; i < c->n_layers; i++) {
        memcpy(&values[i], (const char *)&c->layers[i] + offset, sizeof *values);
        bool keyless = c->layers[i].delta.n_channels || c->layers[i].delta.mamba;
        bool tells = keyless && offset == offsetof(struct pd_layer, n_kv_heads);
        if (pd_layer_recurs(&c->layers[i]) && !values[i] && !tells)   /* it has no heads */
            memcpy(&values[i], (const char *)pd_rope_global_layer(c) + offset, sizeof *values);
        differ = differ || values[i] != values[0];
    }
    if (differ) pd_gguf_writer_add_array(k->writer, full_key(key, k, name), PD_META_UINT32, c->n_layers, values);
    else add_u32(k, name, values[0]);
    free(values);
    return PERIDOT_OK;
}

static uint32_t local_head_dim(const struct pd_config *c)
{
    for (uint32_t i = 0; i < c->n_layers; i++)
        if (c->layers[i].window) return c->layers[i].head_dim;
    return 0;
}

/* Columns of heads, of which other families than the second kind may rotate a part: those whose layers with a window
 * have heads of their own size have a second key for it. */
static peridot_status add_head_dim(const struct keys *k, const char *name, const struct pd_config *c, size_t offset)
{
    char local_name[48];
    uint32_t global = pd_rope_global_layer(c)->head_dim, local = local_head_dim(c);
    if (!pd_families[c->family].sizes_by_window) return add_layers(k, name, c, offset);
    for (uint32_t i = 0; i < c->n_layers; i++)
        if (c->layers[i].head_dim != (c->layers[i].window ? local : global))
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED,
                           "layers %s a window have heads of %u and of %u columns, for which GGUF has no key",
                           c->layers[i].window ? "with" : "without", c->layers[i].window ? local : global,
                           c->layers[i].head_dim);
    add_u32(k, name, global);
    snprintf(local_name, sizeof local_name, "%.40s_swa", name);
    if (local) add_u32(k, local_name, local);
    return PERIDOT_OK;
}

/* Of models that make vectors of texts. */
static void add_embedding(const struct keys *k, const struct pd_config *c)
{
    static const uint32_t types[] = {[PERIDOT_POOL_MEAN] = 1, [PERIDOT_POOL_CLS] = 2, [PERIDOT_POOL_LAST] = 3};
    const struct pd_embedding *e = &c->embedding;
    char key[KEY_SIZE];
    if (c->bidirectional) pd_gguf_writer_add_bool(k->writer, full_key(key, k, "attention.causal"), false);
    if (c->bidirectional || e->trained) add_u32(k, "pooling_type", types[e->pool]);
    if (pd_families[c->family].per_layer_projected) {
        add_u32(k, "embedding_length_out", pd_embedding_dim(e, c->d_model));
        return;
    }
    for (uint32_t i = 0, n_in = c->d_model; i < e->n_dense; n_in = e->dense_dims[i++]) {
        char name[24];
        snprintf(name, sizeof name, "dense_%u_feat_in", i + 2);
        add_u32(k, name, n_in);
        snprintf(name, sizeof name, "dense_%u_feat_out", i + 2);
        add_u32(k, name, e->dense_dims[i]);
    }
}

/* Layers with experts in the place of the unit have no width of it; readers want one all the same. */
static peridot_status add_ffn_dims(const struct keys *k, const struct pd_config *c)
{
    const struct pd_layer_sizes most = pd_layers_largest(c);
    if (!most.n_experts || pd_families[c->family].experts_beside)
        return add_layers(k, KEY(FFN_DIM), c, offsetof(struct pd_layer, ffn_dim));
    if (pd_families[c->family].ffn_is_experts) add_u32(k, KEY(FFN_DIM), most.expert_dim);
    else add_u32(k, KEY(FFN_DIM), most.ffn_dim ? most.ffn_dim : most.expert_dim * most.n_experts_used);
    return PERIDOT_OK;
}

static peridot_status add_experts(const struct keys *k, const struct pd_config *c)
{
    const struct pd_layer_sizes most = pd_layers_largest(c);
    if (!most.n_experts) return PERIDOT_OK;
    for (uint32_t i = 0; i < c->n_layers; i++)
        if (c->layers[i].n_experts && c->layers[i].raw_routes != pd_families[c->family].raw_routes)
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the weights of a token's experts are %smade to sum to 1 "
                           "(norm_topk_prob), for which GGUF has no key in a %s model",
                           c->layers[i].raw_routes ? "not " : "", k->architecture);
    add_u32(k, KEY(EXPERTS), most.n_experts);
    add_u32(k, KEY(EXPERTS_USED), most.n_experts_used);
    add_u32(k, KEY(EXPERT_DIM), most.expert_dim);
    if (pd_families[c->family].shared_expert) add_u32(k, KEY(SHARED_EXPERT_DIM), most.ffn_dim);
    if (!pd_families[c->family].sigmoid_routes) return PERIDOT_OK;
    uint32_t n_dense = 0;
    while (!c->layers[n_dense].n_experts) n_dense++;
    add_u32(k, KEY(DENSE_LAYERS), n_dense);
    add_u32(k, KEY(GATING), 2);
    return PERIDOT_OK;
}

static peridot_status add_recurrences(const struct keys *k, const struct pd_config *c)
{
    const uint32_t *s = c->rope_sections;
    const int32_t sections[] = {(int32_t)s[0], (int32_t)s[1], (int32_t)s[2], 0};
    const struct pd_layer *layer = pd_layers_recurrence(c);
    char key[KEY_SIZE];
    if (!layer) return PERIDOT_OK;
    const struct pd_delta *d = &layer->delta;
    if (d->n_channels) add_u32(k, KEY(SHORT_CONV), d->conv);
    if (d->n_channels) return PERIDOT_OK;   /* layers that have it have no kv heads */
    add_u32(k, KEY(CONV), d->conv);
    add_u32(k, KEY(DELTA_K_DIM), d->d_k);
    add_u32(k, KEY(DELTA_K_HEADS), d->n_k);
    add_u32(k, KEY(DELTA_V_HEADS), d->n_v);
    add_u32(k, "ssm.inner_size", pd_delta_dim(d));
    if (d->mamba) return PERIDOT_OK;        /* likewise */
    const uint32_t n = c->n_layers + c->n_nextn;
    uint8_t *recurs = calloc(n, 1);
    if (!recurs) return pd_fail_alloc(n, "kinds of layers");
    uint32_t interval = 0;
    for (uint32_t i = 0; i < c->n_layers; i++) {
        recurs[i] = pd_layer_recurs(&c->layers[i]);
        if (!recurs[i] && !interval) interval = i + 1;
    }
    add_u32(k, KEY(FULL_INTERVAL), interval);
    pd_gguf_writer_add_array(k->writer, full_key(key, k, "attention.recurrent_layers"), PD_META_BOOL, n, recurs);
    if (!pd_families[c->family].grouped_values)   /* which sees no images */
        pd_gguf_writer_add_array(k->writer, full_key(key, k, "rope.dimension_sections"), PD_META_INT32,
                                 PD_COUNT(sections), sections);
    free(recurs);
    return PERIDOT_OK;
}

static peridot_status add_sizes(const struct keys *k, const struct pd_config *c, uint32_t vocab_size)
{
    add_u32(k, KEY(VOCAB_SIZE), vocab_size);
    add_u32(k, KEY(CTX), c->ctx_max);
    add_u32(k, KEY(D_MODEL), c->d_model);
    add_u32(k, KEY(LAYERS), c->n_layers + c->n_nextn);
    PD_TRY(add_ffn_dims(k, c));
    PD_TRY(add_layers(k, KEY(HEADS), c, offsetof(struct pd_layer, n_heads)));
    PD_TRY(add_layers(k, KEY(KV_HEADS), c, offsetof(struct pd_layer, n_kv_heads)));
    PD_TRY(add_head_dim(k, KEY(HEAD_DIM), c, offsetof(struct pd_layer, head_dim)));
    PD_TRY(add_head_dim(k, "attention.value_length", c, offsetof(struct pd_layer, head_dim)));
    add_f32(k, KEY(EPS), (double)c->eps);
    PD_TRY(add_experts(k, c));
    PD_TRY(add_recurrences(k, c));
    bool per_layer_inputs = pd_families[c->family].per_layer_inputs;
    if (c->n_shared_kv || per_layer_inputs) add_u32(k, KEY(SHARED_KV), c->n_shared_kv);
    if (per_layer_inputs) add_u32(k, KEY(PER_LAYER_DIM), c->per_layer_dim);
    if (c->target_dim) {
        add_u32(k, KEY(TARGET_DIM), c->target_dim);
        add_u32(k, "nextn_predict_layers", c->n_layers);   /* all of them; else llama.cpp reads none */
    }
    if (c->n_nextn) add_u32(k, "nextn_predict_layers", c->n_nextn);
    add_embedding(k, c);
    return PERIDOT_OK;
}

/* Which layers have the window, if not those of the family's pattern counted from the first layer on, for which older
 * readers know no key. */
static peridot_status gguf_keys_add_pattern(const struct keys *k, const struct pd_config *c)
{
    char key[KEY_SIZE];
    const struct pd_family_traits *family = &pd_families[c->family];
    uint32_t pattern = family->window_pattern;
    bool usual = !family->from_last;
    uint8_t *local = malloc(c->n_layers);
    if (!local) return pd_fail_alloc(c->n_layers, "pattern of windows");
    for (uint32_t i = 0; i < c->n_layers; i++) {
        local[i] = c->layers[i].window != 0;
        usual = usual && pattern && local[i] == !pd_family_is_nth(family, pattern, i, c->n_layers);
    }
    if (!usual || family->sizes_by_window)
        pd_gguf_writer_add_array(k->writer, full_key(key, k, KEY(PATTERN)), PD_META_BOOL,
                                 c->n_layers, local);
    free(local);
    return PERIDOT_OK;
}

static bool windows_differ(const struct pd_config *c, uint32_t window)
{
    for (uint32_t i = 0; i < c->n_layers; i++)
        if (c->layers[i].window && c->layers[i].window != window) return true;
    return false;
}

/* Where layers have windows of several sizes they are written one by one, with 0 for none, as in families without a
 * pattern where only some have one: llama.cpp has no window in those. */
static peridot_status add_windows(const struct keys *k, const struct pd_config *c)
{
    uint32_t window = pd_layers_largest(c).window;
    const struct pd_family_traits *family = &pd_families[c->family];
    if (!window && !family->window_pattern && !family->gguf_no_window) return PERIDOT_OK;
    if (!family->window_pattern && !family->late_windows)
        return add_layers(k, KEY(WINDOW), c, offsetof(struct pd_layer, window));
    bool differ = windows_differ(c, window), as_it_is = !c->bidirectional && !c->target_dim;   /* see arch.h */
    if (differ && !as_it_is)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "layers have windows of several sizes %s, for which GGUF has no key",
                       c->bidirectional ? "to both sides" : "in a drafter");
    if (c->bidirectional) window = window ? 2 * (window - 1) : 0;
    if (c->target_dim && window) window--;
    if (differ)
        PD_TRY(add_layers(k, KEY(WINDOW), c, offsetof(struct pd_layer, window)));
    else add_u32(k, KEY(WINDOW), window);
    return gguf_keys_add_pattern(k, c);
}

/* Which layers are rotated, if not those that usually are. */
static peridot_status add_rotated(const struct keys *k, const struct pd_config *c)
{
    char key[KEY_SIZE];
    uint32_t n_other = 0, other = 0, n_attend = 0;
    for (uint32_t i = c->n_layers; i-- > 0;) {
        if (pd_layer_recurs(&c->layers[i])) continue;
        n_attend++;
        if (c->layers[i].no_rope == pd_rope_is_usually_absent(c, i)) continue;
        n_other++;
        other = i;
    }
    if (n_other == 0) return PERIDOT_OK;
    if (n_other < n_attend || !pd_families[c->family].gguf_rotated)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "layer %u is %srotated, for which GGUF has no key", other,
                       c->layers[other].no_rope ? "not " : "");
    pd_gguf_writer_add_bool(k->writer, full_key(key, k, "rope.scaling.finetuned"), false);
    return PERIDOT_OK;
}

static peridot_status add_ropes(const struct keys *k, const struct pd_config *c)
{
    const struct pd_rope *global = &c->ropes[PD_ROPE_GLOBAL];
    char key[KEY_SIZE];
    PD_TRY(add_rotated(k, c));
    PD_TRY(add_head_dim(k, "rope.dimension_count", c, offsetof(struct pd_layer, n_rotated)));
    add_f32(k, KEY(ROPE_BASE), global->base);
    if (pd_families[c->family].local_rope) add_f32(k, KEY(ROPE_BASE_LOCAL), c->ropes[PD_ROPE_LOCAL].base);
    bool yarn = global->beta_fast != 0 && pd_rope_has_usual_ramp(c);
    bool divides = yarn || (global->beta_fast == 0 && global->divisor != 1);
    const char *type = global->is_long ? "longrope" : yarn ? "yarn" : divides ? "linear" : NULL;
    if (type) pd_gguf_writer_add_string(k->writer, full_key(key, k, "rope.scaling.type"), type);
    if (divides) add_f32(k, KEY(ROPE_FACTOR), global->divisor);
    if (c->query_growth != 0) add_f32(k, KEY(QUERY_GROWTH), c->query_growth);
    if (yarn || global->is_long || c->query_growth != 0)
        add_u32(k, KEY(OLD_CTX), (uint32_t)global->old_ctx);
    if (yarn) {
        add_f32(k, KEY(BETA_FAST), global->beta_fast);
        add_f32(k, KEY(BETA_SLOW), global->beta_slow);
        if (global->yarn_weight != 0) add_f32(k, KEY(MSCALE_ALL_DIM), global->yarn_weight);
    }
    /* by which readers multiply what they take from the divisor */
    float attn_factor = (float)(global->attn_factor / (yarn ? pd_rope_yarn_factor(global) : 1));
    if (attn_factor != 1) add_f32(k, KEY(ATTN_FACTOR), (double)attn_factor);
    return PERIDOT_OK;
}

/* The softcaps of an architecture that has them are written even when they are off: readers take its usual ones for
 * missing keys. */
static peridot_status add_attention(const struct keys *k, const struct pd_config *c)
{
    const struct pd_family_traits *family = &pd_families[c->family];
    if (c->attn_softcap != 0 || family->attn_softcap != 0)
        add_f32(k, KEY(ATTN_SOFTCAP), (double)c->attn_softcap);
    if (c->final_softcap != 0 || family->final_softcap != 0)
        add_f32(k, KEY(FINAL_SOFTCAP), (double)c->final_softcap);
    if (family->multipliers) {
        add_f32(k, KEY(EMBED_SCALE), (double)c->embed_scale);
        add_f32(k, KEY(RESIDUAL_SCALE), (double)c->residual_scale);
        add_f32(k, KEY(LOGIT_DIVISOR), 1 / (double)c->logit_scale);
    }
    if (family->logit_scale != 0) add_f32(k, KEY(LOGIT_SCALE), (double)c->logit_scale);
    if (c->post_eps != (float)family->post_eps)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "post norms have an eps of %g, for which GGUF has no key",
                       (double)c->post_eps);
    float scale = pd_rope_global_layer(c)->query_scale;
    bool usual = true;
    for (uint32_t i = 0; i < c->n_layers; i++)
        usual = usual && (pd_layer_recurs(&c->layers[i])
                          || c->layers[i].query_scale == pd_layer_usual_scale(c, &c->layers[i]));
    for (uint32_t i = 0; i < c->n_layers && !usual; i++)
        if (!pd_layer_recurs(&c->layers[i]) && c->layers[i].query_scale != scale)
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED,
                           "layers have query scales of their own, for which GGUF has no key");
    if (!usual) add_f32(k, KEY(QUERY_SCALE), (double)scale);
    return PERIDOT_OK;
}

/* Local layers have no keys for a rule, and none for a base but in Gemma 3; what multiplies cos and sin is theirs, too,
 * where it is not what the divisor gives. */
static peridot_status check_local_rope(const struct pd_config *c)
{
    const struct pd_rope *global = &c->ropes[PD_ROPE_GLOBAL], *local = &c->ropes[PD_ROPE_LOCAL];
    bool has_rule = local->divisor != 1 || local->factor != 0 || local->beta_fast != 0
        || local->is_long;
    bool usual = global->attn_factor == pd_rope_yarn_factor(global);
    bool ok = pd_families[c->family].local_rope ? !has_rule && usual : pd_rope_equal(local, global);
    if (!pd_layers_largest(c).window || ok) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED,
                   "local layers rotate with base %g and divisor %g, for which GGUF has no key",
                   local->base, local->divisor);
}

peridot_status pd_gguf_add_config(struct pd_gguf_writer *w, const struct pd_config *c, uint32_t vocab_size)
{
    struct keys k = {w, pd_families[c->family].name};
    PD_TRY(check_local_rope(c));
    pd_gguf_writer_add_string(w, "general.architecture", k.architecture);
    pd_gguf_writer_add_string(w, "general.type", "model");
    pd_gguf_writer_add_string(w, "general.name", c->name);
    PD_TRY(add_sizes(&k, c, vocab_size));
    PD_TRY(add_attention(&k, c));
    PD_TRY(add_ropes(&k, c));
    return add_windows(&k, c);
}

void pd_gguf_add_type(struct pd_gguf_writer *w, uint32_t file_type)
{
    pd_gguf_writer_add_u32(w, "general.file_type", file_type);
    pd_gguf_writer_add_u32(w, "general.quantization_version", 2);
}

const char *pd_gguf_file_type(const struct pd_checkpoint *c)
{
    static const char *const names[] = {   /* llama_ftype of llama.h */
        [2] = "Q4_0",     [3] = "Q4_1",     [7] = "Q8_0",     [8] = "Q5_0",    [9] = "Q5_1",    [10] = "Q2_K",
        [11] = "Q3_K_S",  [12] = "Q3_K_M",  [13] = "Q3_K_L",  [14] = "Q4_K_S", [15] = "Q4_K_M", [16] = "Q5_K_S",
        [17] = "Q5_K_M",  [18] = "Q6_K",    [19] = "IQ2_XXS", [20] = "IQ2_XS", [21] = "Q2_K_S", [22] = "IQ3_XS",
        [23] = "IQ3_XXS", [24] = "IQ1_S",   [25] = "IQ4_NL",  [26] = "IQ3_S",  [27] = "IQ3_M",  [28] = "IQ2_S",
        [29] = "IQ2_M",   [30] = "IQ4_XS",  [31] = "IQ1_M",   [36] = "TQ1_0",  [37] = "TQ2_0",  [38] = "MXFP4",
        [39] = "NVFP4",   [40] = "Q1_0",    [41] = "Q2_0",
    };
    const struct pd_meta *m = pd_checkpoint_find_meta(c, "general.file_type");
    uint64_t type = 0;
    if (!m || m->type == PD_META_ARRAY || !pd_meta_uint(&type, m, 0) || type >= PD_COUNT(names)) return NULL;
    return names[type];
}

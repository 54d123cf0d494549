/* A config from config.json. Two generations of files exist: published checkpoints say rope_theta,
 * rope_local_base_freq, rope_scaling and sliding_window_pattern; newer transformers write rope_parameters and
 * layer_types. An absent key means the default of the model's configuration class in transformers. Gemma 3 from 4B
 * up has its numbers in text_config. */
#include "arch/config_readers.h"
#include "arch/layers.h"

#include "base/num.h"
#include "base/os.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Defaults of GemmaConfig, Gemma2Config, Gemma3TextConfig, LlamaConfig; 0: derived from other numbers. */
static const struct defaults {
    uint32_t d_model, ffn_dim, n_layers, n_heads, n_kv_heads, ctx_max, head_dim;
} defaults[PD_N_FAMILIES] = {
    [PD_GEMMA1] = {3072, 24576, 28, 16, 16, 8192, 256},
    [PD_GEMMA2] = {2304, 9216, 26, 8, 4, 8192, 256},
    [PD_GEMMA3] = {2304, 9216, 26, 8, 4, 131072, 256},
    [PD_LLAMA] = {4096, 11008, 32, 32, 0, 2048, 0},
};

struct reader {
    yyjson_val *config;
    uint32_t n_layers;       /* 0: not known yet */
    peridot_status status;   /* of the last failure */
};

/* NULL for null, too. */
static yyjson_val *find(yyjson_val *object, const char *key)
{
    yyjson_val *v = yyjson_obj_get(object, key);
    return yyjson_is_null(v) ? NULL : v;
}

/* Of an array with one value per layer, that of layer i; else the one value. */
static uint32_t read_layer_uint(struct reader *r, const char *key, uint32_t i, uint32_t fallback)
{
    yyjson_val *v = find(r->config, key);
    if (!v) return fallback;
    if (r->n_layers && yyjson_is_arr(v)) {
        if (yyjson_arr_size(v) != r->n_layers)
            r->status = pd_fail(PERIDOT_ERROR_FORMAT, "config.json: %s has %zu entries for %u layers", key,
                                yyjson_arr_size(v), r->n_layers);
        v = yyjson_arr_get(v, i);
    }
    if (!yyjson_is_uint(v) || yyjson_get_uint(v) > UINT32_MAX)
        r->status = pd_fail(PERIDOT_ERROR_FORMAT, "config.json: %s is not a count", key);
    return (uint32_t)yyjson_get_uint(v);
}

static uint32_t read_uint(struct reader *r, const char *key, uint32_t fallback)
{
    return read_layer_uint(r, key, 0, fallback);
}

static double read_number(struct reader *r, yyjson_val *object, const char *key, double fallback)
{
    yyjson_val *v = find(object, key);
    if (v && !yyjson_is_num(v)) r->status = pd_fail(PERIDOT_ERROR_FORMAT, "config.json: %s is not a number", key);
    return v ? yyjson_get_num(v) : fallback;
}

/* A softcap: null means none, absent the family's. */
static float read_softcap(struct reader *r, const char *key, double fallback)
{
    yyjson_val *v = yyjson_obj_get(r->config, key);
    return yyjson_is_null(v) ? 0 : (float)read_number(r, r->config, key, fallback);
}

static void read_llama3(struct reader *r, struct pd_rope *rope, yyjson_val *scaling)
{
    rope->factor = read_number(r, scaling, "factor", 8);
    rope->low_freq_factor = read_number(r, scaling, "low_freq_factor", 1);
    rope->high_freq_factor = read_number(r, scaling, "high_freq_factor", 4);
    rope->old_ctx = read_number(r, scaling, "original_max_position_embeddings", 8192);
}

/* rope_scaling, or one of rope_parameters. */
static void read_scaling(struct reader *r, struct pd_rope *rope, yyjson_val *scaling, bool llama)
{
    rope->divisor = 1;
    if (!scaling) return;
    yyjson_val *type = find(scaling, "rope_type");
    if (!type) type = find(scaling, "type");
    const char *name = type ? yyjson_get_str(type) : "default";
    if (name && strcmp(name, "default") == 0) return;
    if (name && strcmp(name, "linear") == 0) rope->divisor = read_number(r, scaling, "factor", 1);
    else if (name && llama && strcmp(name, "llama3") == 0) read_llama3(r, rope, scaling);
    else r->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "config.json: RoPE scaling \"%s\" is not known for this family",
                             name ? name : "?");
}

/* Some columns of a head not rotated: newer files of any family could say so. */
static void refuse_partial(struct reader *r, yyjson_val *object)
{
    double part = read_number(r, object, "partial_rotary_factor", 1);
    if (part != 1)
        r->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "config.json: partial_rotary_factor is %g: only 1 is supported",
                            part);
}

static struct pd_rope read_rope(struct reader *r, yyjson_val *parameters, double base, bool llama)
{
    struct pd_rope rope = {.base = read_number(r, parameters, "rope_theta", base)};
    read_scaling(r, &rope, parameters, llama);
    refuse_partial(r, parameters);
    return rope;
}

static void read_ropes(struct reader *r, struct pd_config *out)
{
    const struct pd_family_traits *family = &pd_families[out->family];
    struct pd_rope *global = &out->ropes[PD_ROPE_GLOBAL], *local = &out->ropes[PD_ROPE_LOCAL];
    yyjson_val *parameters = find(r->config, "rope_parameters");
    yyjson_val *by_type = find(parameters, "full_attention");
    bool llama = out->family == PD_LLAMA;
    refuse_partial(r, r->config);
    if (by_type) {
        *global = read_rope(r, by_type, family->rope_base, llama);
        *local = read_rope(r, find(parameters, "sliding_attention"), family->rope_base_local, llama);
        return;
    }
    global->base = read_number(r, r->config, "rope_theta", family->rope_base);
    read_scaling(r, global, find(r->config, "rope_scaling"), llama);
    if (parameters) *global = read_rope(r, parameters, global->base, llama);
    *local = *global;
    if (family->local_rope)
        *local = (struct pd_rope){.base = read_number(r, r->config, "rope_local_base_freq", family->rope_base_local),
            .divisor = 1};
}

/* Which layers have a window: by name, or all but every n-th. */
static peridot_status read_pattern(struct reader *r, struct pd_config *out)
{
    uint32_t pattern = pd_families[out->family].window_pattern;
    pattern = read_uint(r, "sliding_window_pattern", read_uint(r, "_sliding_window_pattern", pattern));
    PD_TRY(r->status);
    yyjson_val *types = find(r->config, "layer_types");
    if (types && yyjson_arr_size(types) != out->n_layers)
        return pd_fail(PERIDOT_ERROR_FORMAT, "config.json: layer_types has %zu entries for %u layers",
                       yyjson_arr_size(types), out->n_layers);
    for (uint32_t i = 0; i < out->n_layers; i++) {
        const char *name = yyjson_get_str(yyjson_arr_get(types, i));
        bool local = types ? name && strcmp(name, "sliding_attention") == 0 : pattern && (i + 1) % pattern != 0;
        if (types && !local && (!name || strcmp(name, "full_attention") != 0))
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "config.json: layer_types[%u] is \"%s\"", i, name ? name : "?");
        if (!local) out->layers[i].window = 0;
    }
    return PERIDOT_OK;
}

static peridot_status read_layer(struct reader *r, struct pd_config *out, uint32_t i)
{
    const struct defaults *d = &defaults[out->family];
    struct pd_layer *l = &out->layers[i];
    l->ffn_dim = read_layer_uint(r, "intermediate_size", i, d->ffn_dim);
    l->n_heads = read_layer_uint(r, "num_attention_heads", i, d->n_heads);
    l->n_kv_heads = read_layer_uint(r, "num_key_value_heads", i, d->n_kv_heads ? d->n_kv_heads : l->n_heads);
    uint32_t head_dim = d->head_dim || !l->n_heads ? d->head_dim : out->d_model / l->n_heads;
    l->head_dim = read_layer_uint(r, "head_dim", i, head_dim);
    if (pd_families[out->family].window_pattern) l->window = read_layer_uint(r, "sliding_window", i, 4096);
    bool own_divisor = out->family == PD_GEMMA2 || out->family == PD_GEMMA3;
    double divisor = own_divisor ? read_number(r, r->config, "query_pre_attn_scalar", 256) : l->head_dim;
    l->query_scale = (float)(1 / sqrt(divisor));
    return r->status;
}

/* Keys that would change the maths. */
static peridot_status refuse_unknown(yyjson_val *config, const struct pd_family_traits *family)
{
    static const char *const must_be_false[] = {"attention_bias", "mlp_bias", "use_bidirectional_attention"};
    for (size_t i = 0; i < PD_COUNT(must_be_false); i++)
        if (yyjson_is_true(yyjson_obj_get(config, must_be_false[i])))
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "config.json: %s is true, which is not supported",
                           must_be_false[i]);
    /* Gemma 1's "gelu" means the tanh form, too: transformers overrides it. */
    yyjson_val *act = find(config, "hidden_activation");
    if (!act) act = find(config, "hidden_act");
    const char *name = act ? yyjson_get_str(act) : family->silu ? "silu" : "gelu_pytorch_tanh";
    bool silu = name && strcmp(name, "silu") == 0;
    bool gelu = name && (strcmp(name, "gelu_pytorch_tanh") == 0 || strcmp(name, "gelu") == 0);
    bool known = family->silu ? silu : gelu;
    if (!known)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "config.json: activation \"%s\" is not supported", name ? name : "?");
    return PERIDOT_OK;
}

static peridot_status find_family(struct pd_config *out, yyjson_val *config)
{
    const char *type = yyjson_get_str(find(config, "model_type"));
    if (!type) return pd_fail(PERIDOT_ERROR_FORMAT, "config.json: model_type is missing");
    for (int i = 0; i < PD_N_FAMILIES; i++)
        for (int j = 0; j < 3 && pd_families[i].hf_types[j]; j++)
            if (strcmp(type, pd_families[i].hf_types[j]) == 0) {
                out->family = (enum pd_family)i;
                return PERIDOT_OK;
            }
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED,
                   "config.json: model_type \"%s\" is not known (known: gemma, gemma2, gemma3, gemma3_text, llama)",
                   type);
}

/* id2label: {"0": "NAME", ...} with every index below its size once. */
static peridot_status read_labels(struct pd_config *out, yyjson_val *map)
{
    size_t n = yyjson_obj_size(map), i, max;
    yyjson_val *key, *value;
    if (n == 0) return PERIDOT_OK;
    out->labels = calloc(n, sizeof *out->labels);
    if (!out->labels) return pd_fail_alloc(n * sizeof *out->labels, "labels");
    out->n_labels = (uint32_t)n;
    yyjson_obj_foreach(map, i, max, key, value) {
        char *end;
        unsigned long index = strtoul(yyjson_get_str(key), &end, 10);
        if (*end || index >= n || out->labels[index] || !yyjson_is_str(value))
            return pd_fail(PERIDOT_ERROR_FORMAT,
                           "config.json: id2label has %zu labels, and \"%.64s\" is not one more index below that", n,
                           yyjson_get_str(key));
        out->labels[index] = pd_string_copy(yyjson_get_str(value));
        if (!out->labels[index]) return pd_fail_alloc(yyjson_get_len(value), "label");
    }
    return PERIDOT_OK;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* The class that saved the model says which head it has. */
static peridot_status read_head(struct pd_config *out, yyjson_val *root)
{
    const char *name = yyjson_get_str(yyjson_arr_get_first(find(root, "architectures")));
    if (!name) return PERIDOT_OK;
    bool sequence = ends_with(name, "ForSequenceClassification"), token = ends_with(name, "ForTokenClassification");
    if (sequence) out->head = PERIDOT_HEAD_SEQUENCE;
    else if (token) out->head = PERIDOT_HEAD_TOKEN;
    else if (ends_with(name, "Model") && !out->tied) out->head = PERIDOT_HEAD_NONE;
    if (!sequence && !token) return PERIDOT_OK;
    out->final_softcap = 0;   /* it belongs to the language head */
    return read_labels(out, find(root, "id2label"));
}

static void read_name(struct pd_config *out, const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    size_t start = n;
    while (start > 0 && path[start - 1] != '/') start--;
    snprintf(out->name, sizeof out->name, "%.*s", (int)(n - start), path + start);
}

peridot_status pd_config_read_hf(struct pd_config *out, const struct pd_checkpoint *c)
{
    yyjson_val *root = pd_checkpoint_config(c), *text = find(root, "text_config");
    PD_TRY(find_family(out, root));
    read_name(out, pd_checkpoint_path(c));
    struct reader r = {.config = text ? text : root};
    const struct defaults *d = &defaults[out->family];
    const struct pd_family_traits *family = &pd_families[out->family];
    PD_TRY(refuse_unknown(r.config, family));

    out->n_layers = read_uint(&r, "num_hidden_layers", d->n_layers);
    out->d_model = read_uint(&r, "hidden_size", d->d_model);
    out->ctx_max = read_uint(&r, "max_position_embeddings", d->ctx_max);
    out->n_shared_kv = read_uint(&r, "num_kv_shared_layers", 0);
    out->eps = (float)read_number(&r, r.config, "rms_norm_eps", 1e-6);
    out->attn_softcap = read_softcap(&r, "attn_logit_softcapping", family->attn_softcap);
    out->final_softcap = read_softcap(&r, "final_logit_softcapping", family->final_softcap);
    yyjson_val *tied = find(r.config, "tie_word_embeddings");
    if (!tied) tied = find(root, "tie_word_embeddings");
    out->tied = tied ? yyjson_is_true(tied) : family->tied;
    read_ropes(&r, out);
    PD_TRY(r.status);
    PD_TRY(read_head(out, root));
    r.n_layers = out->n_layers;
    PD_TRY(pd_layers_create(out));
    for (uint32_t i = 0; i < out->n_layers; i++) PD_TRY(read_layer(&r, out, i));
    return read_pattern(&r, out);
}

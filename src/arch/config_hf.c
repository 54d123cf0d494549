/* A config from config.json. Two generations of files exist: published checkpoints say rope_theta,
 * rope_local_base_freq, rope_scaling and sliding_window_pattern; newer transformers write rope_parameters and
 * layer_types. An absent key means the default of the model's configuration class in transformers. Gemma 3 from 4B
 * up has its numbers in text_config. */
#include "arch/arch.h"
#include "arch/arch_.h"
#include "base/base.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* null means none, absent the family's. Where the family has none, transformers ignores the key. */
static float read_softcap(struct pd_hf_reader *r, enum pd_number number, double fallback, bool known)
{
    char full[PD_HF_KEY_SIZE];
    const char *key = pd_numbers[number].hf;
    yyjson_val *v = yyjson_obj_get(r->config.at, key);
    if (yyjson_is_null(v)) return 0;
    if (v && !known && r->status == PERIDOT_OK)
        r->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s must be null: a %s model has no such softcap",
                            pd_hf_key(full, r->config, key), r->family->name);
    return v ? (float)pd_hf_number(r, r->config, number, 0) : (float)fallback;
}

/* ---- keys that would change the maths ---- */

static peridot_status check_activation(const struct pd_hf_reader *r, const char *key, bool gelu_is_tanh)
{
    yyjson_val *v = yyjson_obj_get(r->config.at, key);
    const char *name = yyjson_get_str(v);
    char full[PD_HF_KEY_SIZE];
    if (!v || (name && pd_family_has_activation(r->family, name))) return PERIDOT_OK;
    if (gelu_is_tanh && (yyjson_is_null(v) || (name && strcmp(name, "gelu") == 0))) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: activation \"" PD_NAME "\" is not supported in a %s model",
                   pd_hf_key(full, r->config, key), name ? name : yyjson_get_type_desc(v), r->family->name);
}

static peridot_status check_activations(const struct pd_hf_reader *r)
{
    bool either = r->family->hf_activation == PD_HF_ACT_OR_ACTIVATION;
    yyjson_val *new = yyjson_obj_get(r->config.at, "hidden_activation");
    if (!(either && yyjson_is_null(new))) PD_TRY(check_activation(r, "hidden_activation", false));
    if (new && r->family->hf_activation == PD_HF_ACTIVATION) return PERIDOT_OK;
    return check_activation(r, "hidden_act", either);
}

/* As gpt-oss is published: experts in MXFP4, which format/experts.c reads. */
static bool is_own_quantisation(const struct pd_hf_reader *r, yyjson_val *v)
{
    return r->family->hf_experts == PD_HF_EXPERTS_GPT_OSS
        && yyjson_equals_str(yyjson_obj_get(v, "quant_method"), "mxfp4");
}

/* What act.glsl has as constants. */
static peridot_status check_clamps(const struct pd_hf_reader *r)
{
    static const struct { const char *key; double usual; } keys[] = {{"swiglu_limit", 7}, {"swiglu_alpha", 1.702}};
    char full[PD_HF_KEY_SIZE];
    for (size_t i = 0; i < PD_COUNT(keys); i++) {
        yyjson_val *v = pd_hf_member(r->config.at, keys[i].key);
        if (r->family->clamped && v && yyjson_get_num(v) != keys[i].usual)
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s is not %g, which alone is supported",
                           pd_hf_key(full, r->config, keys[i].key), keys[i].usual);
    }
    return PERIDOT_OK;
}

static peridot_status refuse_unknown(const struct pd_hf_reader *r, yyjson_val *root)
{
    enum { N_BIASES = 2, BIDIRECTIONAL = 2 };
    static const char *const must_be_false[] = {"attention_bias", "mlp_bias",
        [BIDIRECTIONAL] = "use_bidirectional_attention"};
    static const char *const must_be_absent[] = {"quantization_config", "compression_config"};
    char full[PD_HF_KEY_SIZE];
    for (size_t i = 0; i < PD_COUNT(must_be_false); i++) {
        yyjson_val *v = pd_hf_member(r->config.at, must_be_false[i]);
        /* of the tokens of images, which are refused */
        bool vision = yyjson_is_str(v) && strcmp(yyjson_get_str(v), "vision") == 0 && r->family->vision_masks;
        bool both_ways = r->family->embeds && i == BIDIRECTIONAL;   /* always, or what made it this family */
        bool biases = (r->family->optional_biases && i < N_BIASES && yyjson_is_bool(v))
            || (r->family->all_biases && i == 0 && yyjson_is_true(v));
        if (v && !yyjson_is_false(v) && !vision && !both_ways && !biases)
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s is %s, which is not supported",
                           pd_hf_key(full, r->config, must_be_false[i]), yyjson_get_type_desc(v));
    }
    for (size_t i = 0; i < PD_COUNT(must_be_absent); i++)
        if ((pd_hf_member(root, must_be_absent[i]) || pd_hf_member(r->config.at, must_be_absent[i]))
            && !is_own_quantisation(r, pd_hf_member(root, must_be_absent[i])))
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "config.json: %s: weights that another program quantised are not "
                           "supported", must_be_absent[i]);
    yyjson_val *windows = pd_hf_member(r->config.at, "use_sliding_window");
    bool no_windows = r->family->hf_experts == PD_HF_EXPERTS_QWEN;
    if (no_windows && windows && !yyjson_is_false(windows))
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s is not false: windows are not supported in a %s model",
                       pd_hf_key(full, r->config, "use_sliding_window"), r->family->name);
    if (no_windows && pd_hf_member(r->config.at, "clip_qkv"))
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s is not null, which is not supported",
                       pd_hf_key(full, r->config, "clip_qkv"));
    PD_TRY(check_clamps(r));
    return check_activations(r);
}

/* ---- which model ---- */

static peridot_status find_type(const struct pd_hf_type **out, struct pd_hf_object o)
{
    yyjson_val *v = pd_hf_member(o.at, "model_type");
    const char *type = yyjson_get_str(v);
    if (!type)
        return pd_fail(PERIDOT_ERROR_FORMAT, "config.json: %smodel_type is %s", o.prefix,
                       v ? "not a string" : "missing");
    *out = pd_hf_type_find(type);
    if (*out) return PERIDOT_OK;
    const char *obstacle = pd_family_obstacle(type, strlen(type));
    if (obstacle)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "config.json: %smodel_type is \"%s\": such a model has %s, which "
                       "Peridot does not compute", o.prefix, type, obstacle);
    char known[PD_NAMES_SIZE];
    pd_hf_type_names(known);
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "config.json: %smodel_type \"" PD_NAME "\" is not known (known: %s)",
                   o.prefix, type, known);
}

/* Granite 4's models have state-space blocks or not, and experts or not; experts alone are not published. */
static peridot_status find_granite(struct pd_hf_reader *r, struct pd_config *out, yyjson_val *root)
{
    yyjson_val *n = pd_hf_member(root, "num_local_experts");
    bool has_experts = !yyjson_is_uint(n) || yyjson_get_uint(n), has_mamba = pd_hf_has_mamba(root);
    if (has_experts && !has_mamba)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "config.json: num_local_experts is not 0: experts beside the shared "
                       "unit are not computed in a %s model without state-space blocks", r->family->name);
    if (has_mamba) out->family = has_experts ? PD_GRANITE_HYBRID_MOE : PD_GRANITE_HYBRID;
    r->family = &pd_families[out->family];
    return PERIDOT_OK;
}

static peridot_status find_text(struct pd_hf_reader *r, struct pd_config *out, yyjson_val *root)
{
    const struct pd_hf_type *type, *inner;
    r->config = (struct pd_hf_object){root, ""};
    PD_TRY(find_type(&type, r->config));
    out->family = type->family;
    r->type = type;
    r->family = &pd_families[type->family];
    struct pd_hf_object text = pd_hf_object(r, r->config, "text_config", "text_config.");
    PD_TRY(r->status);
    if (!text.at && type->embeds && yyjson_is_true(pd_hf_member(root, "use_bidirectional_attention"))) {
        out->family = type->embeds;
        r->family = &pd_families[type->embeds];
    }
    if (out->family == PD_GRANITE4) PD_TRY(find_granite(r, out, root));
    if (!text.at) return PERIDOT_OK;
    inner = type;
    if (yyjson_obj_get(text.at, "model_type")) PD_TRY(find_type(&inner, text));
    if (type->wraps_any) out->family = inner->family;
    else if (!type->wraps || inner->family != (type->wrapped ? type->wrapped : type->family))
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "config.json: a %s model inside a %s model is not known",
                       pd_families[inner->family].name, r->family->name);
    r->config = text;
    r->family = &pd_families[out->family];
    r->type = inner;
    return PERIDOT_OK;
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

/* What the head was trained for. Of token classification there is one kind. */
static peridot_status read_problem(struct pd_config *out, yyjson_val *root)
{
    static const char *const names[] = {[PERIDOT_PROBLEM_SINGLE_LABEL] = "single_label_classification",
        [PERIDOT_PROBLEM_MULTI_LABEL] = "multi_label_classification", [PERIDOT_PROBLEM_REGRESSION] = "regression"};
    yyjson_val *v = pd_hf_member(root, "problem_type");
    const char *name = yyjson_get_str(v);
    if (!v) return PERIDOT_OK;
    for (size_t i = 0; name && i < PD_COUNT(names); i++) {
        if (strcmp(name, names[i]) != 0) continue;
        out->problem = (peridot_problem)i;
        return PERIDOT_OK;
    }
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "config.json: problem_type \"" PD_NAME "\" is not known",
                   name ? name : yyjson_get_type_desc(v));
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* The class that saved the model says which head it has. */
static peridot_status read_head(struct pd_config *out, yyjson_val *root)
{
    const char *name = yyjson_get_str(yyjson_arr_get_first(pd_hf_member(root, "architectures")));
    if (!name) return PERIDOT_OK;
    if (pd_families[out->family].embeds) return PERIDOT_OK;
    bool sequence = ends_with(name, "ForSequenceClassification"), token = ends_with(name, "ForTokenClassification");
    if (sequence) out->head = PERIDOT_HEAD_SEQUENCE;
    else if (token) out->head = PERIDOT_HEAD_TOKEN;
    else if (ends_with(name, "Model") && !out->tied) out->head = PERIDOT_HEAD_NONE;
    if (!sequence && !token) return PERIDOT_OK;
    out->final_softcap = 0;   /* it belongs to the language head, as this does: */
    out->logit_scale = 1;
    if (sequence) PD_TRY(read_problem(out, root));
    return read_labels(out, pd_hf_member(root, "id2label"));
}

/* Where the last component of path[0..n) begins. */
static size_t last_component(const char *path, size_t n)
{
    while (n > 0 && path[n - 1] != '/') n--;
    return n;
}

/* The folder's name; in Hugging Face's cache that is a commit's hash, and "models--google--gemma-3-1b-it" two above. */
static void config_hf_read_name(struct pd_config *out, const char *path)
{
    static const char snapshots[] = "snapshots/", dashes[] = "--";
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    size_t start = last_component(path, n);
    size_t above = start ? last_component(path, start - 1) : 0;
    if (above && start - above == sizeof snapshots - 1 && memcmp(path + above, snapshots, start - above) == 0) {
        n = above - 1;
        start = last_component(path, n);
        for (size_t i = start; i + 2 < n; i++)
            if (memcmp(path + i, dashes, 2) == 0) start = i + 2;
    }
    pd_utf8_escape(out->name, sizeof out->name, path + start, n - start);
}

static bool read_tied(struct pd_hf_reader *r, yyjson_val *root)
{
    bool own = r->family->short_convs && pd_hf_member(r->config.at, "tie_embedding");
    const char *key = own ? "tie_embedding" : "tie_word_embeddings";
    struct pd_hf_object o = pd_hf_member(r->config.at, key) ? r->config : (struct pd_hf_object){root, ""};
    yyjson_val *v = pd_hf_member(o.at, key);
    if (v && !yyjson_is_bool(v) && r->status == PERIDOT_OK) pd_hf_fail_type(r, o, key, "true or false");
    return v ? yyjson_is_true(v) : r->family->tied;
}

static void read_multipliers(struct pd_hf_reader *r, struct pd_config *out)
{
    out->embed_scale = (float)pd_hf_number(r, r->config, PD_NUMBER_EMBED_SCALE, 1);
    out->residual_scale = (float)pd_hf_number(r, r->config, PD_NUMBER_RESIDUAL_SCALE, 1);
    out->logit_scale = (float)(1 / pd_hf_number(r, r->config, PD_NUMBER_LOGIT_DIVISOR, 1));
}

/* Of a family whose post norms have an eps of their own, and whose norms of q and k have no weights. */
static void read_norms(struct pd_hf_reader *r, struct pd_config *out)
{
    out->post_eps = (float)pd_hf_number(r, r->config, PD_NUMBER_POST_EPS, r->family->post_eps);
    out->q_norm_weight = (float)pd_hf_number(r, r->config, PD_NUMBER_Q_NORM_WEIGHT, r->family->q_norm_weight);
}

/* It is outside of text_config. */
static uint32_t read_target_dim(struct pd_hf_reader *r, yyjson_val *root)
{
    struct pd_hf_object text = r->config;
    r->config = (struct pd_hf_object){root, ""};
    uint32_t dim = pd_hf_uint(r, PD_NUMBER_TARGET_DIM, 1536);
    r->config = text;
    return dim;
}

peridot_status pd_config_read_hf(struct pd_config *out, const struct pd_checkpoint *c)
{
    yyjson_val *root = pd_checkpoint_config(c);
    struct pd_hf_reader r = {.status = PERIDOT_OK};
    PD_TRY(find_text(&r, out, root));
    config_hf_read_name(out, pd_checkpoint_path(c));
    const struct pd_family_traits *family = r.family;
    const struct pd_hf_defaults *d = &family->hf;
    PD_TRY(refuse_unknown(&r, root));

    out->n_layers = pd_hf_uint(&r, PD_NUMBER_LAYERS, d->n_layers);
    out->d_model = pd_hf_uint(&r, PD_NUMBER_D_MODEL, d->d_model);
    out->ctx_max = pd_hf_uint(&r, PD_NUMBER_CTX, r.type->ctx_max ? r.type->ctx_max : d->ctx_max);
    out->n_shared_kv = pd_hf_uint(&r, PD_NUMBER_SHARED_KV, 0);
    if (family->per_layer_inputs) out->per_layer_dim = pd_hf_uint(&r, PD_NUMBER_PER_LAYER_DIM, r.type->per_layer_dim);
    if (family->multipliers) read_multipliers(&r, out);
    if (family->post_eps != 0) read_norms(&r, out);
    if (family->logit_scale != 0)
        out->logit_scale = (float)pd_hf_number(&r, r.config, PD_NUMBER_LOGIT_SCALE, family->logit_scale);
    if (family->drafts) out->target_dim = read_target_dim(&r, root);
    if (yyjson_obj_get(r.config.at, "vocab_size")) out->vocab_size = pd_hf_uint(&r, PD_NUMBER_VOCAB_SIZE, 0);
    out->eps = (float)pd_hf_number(&r, r.config, family->short_convs ? PD_NUMBER_NORM_EPS : PD_NUMBER_EPS,
                                   family->hf_eps != 0 ? family->hf_eps : 1e-6);
    out->attn_softcap = read_softcap(&r, PD_NUMBER_ATTN_SOFTCAP, family->attn_softcap, family->attn_softcap != 0);
    out->final_softcap = read_softcap(&r, PD_NUMBER_FINAL_SOFTCAP, family->final_softcap, family->final_softcap_known);
    out->tied = read_tied(&r, root);
    pd_hf_read_ropes(&r, out);
    PD_TRY(r.status);
    PD_TRY(read_head(out, root));
    return pd_hf_read_layers(&r, out);
}

/* ---- hf reader ---- */

const char *pd_hf_key(char out[PD_HF_KEY_SIZE], struct pd_hf_object o, const char *key)
{
    snprintf(out, PD_HF_KEY_SIZE, "config.json: %s%s", o.prefix, key);
    return out;
}

void pd_hf_fail_type(struct pd_hf_reader *r, struct pd_hf_object o, const char *key, const char *want)
{
    char full[PD_HF_KEY_SIZE];
    r->status = pd_fail(PERIDOT_ERROR_FORMAT, "%s is %s, not %s", pd_hf_key(full, o, key),
                        yyjson_get_type_desc(yyjson_obj_get(o.at, key)), want);
}

static void check_number(struct pd_hf_reader *r, struct pd_hf_object o, enum pd_number number, double value)
{
    char full[PD_HF_KEY_SIZE];
    peridot_status status = pd_number_check(number, value, pd_hf_key(full, o, pd_numbers[number].hf));
    if (status != PERIDOT_OK) r->status = status;
}

yyjson_val *pd_hf_member(yyjson_val *object, const char *key)
{
    yyjson_val *v = yyjson_obj_get(object, key);
    return yyjson_is_null(v) ? NULL : v;
}

uint32_t pd_hf_layer_uint(struct pd_hf_reader *r, enum pd_number number, uint32_t i, uint32_t fallback)
{
    const char *key = pd_numbers[number].hf;
    yyjson_val *v = yyjson_obj_get(r->config.at, key);
    bool nullable = number == PD_NUMBER_HEAD_DIM || number == PD_NUMBER_KV_HEADS;
    if (r->status != PERIDOT_OK) return 0;
    if (!v || (nullable && yyjson_is_null(v))) {
        check_number(r, r->config, number, fallback);
        return fallback;
    }
    if (r->n_layers && yyjson_is_arr(v)) {
        if (yyjson_arr_size(v) != r->n_layers)
            r->status = pd_fail(PERIDOT_ERROR_FORMAT, "config.json: %s has %zu entries for %u layers", key,
                                yyjson_arr_size(v), r->n_layers);
        v = yyjson_arr_get(v, i);
    }
    if (!yyjson_is_uint(v) || yyjson_get_uint(v) > UINT32_MAX) pd_hf_fail_type(r, r->config, key, "a count");
    else check_number(r, r->config, number, (double)yyjson_get_uint(v));
    return (uint32_t)yyjson_get_uint(v);
}

uint32_t pd_hf_uint(struct pd_hf_reader *r, enum pd_number number, uint32_t fallback)
{
    return pd_hf_layer_uint(r, number, 0, fallback);
}

double pd_hf_number(struct pd_hf_reader *r, struct pd_hf_object o, enum pd_number number, double fallback)
{
    const char *key = pd_numbers[number].hf;
    yyjson_val *v = yyjson_obj_get(o.at, key);
    double value = v ? yyjson_get_num(v) : fallback;
    char full[PD_HF_KEY_SIZE];
    if (r->status != PERIDOT_OK) return value;
    if (!v && isnan(fallback))
        r->status = pd_fail(PERIDOT_ERROR_FORMAT, "%s is missing", pd_hf_key(full, o, key));
    else if (v && !yyjson_is_num(v)) pd_hf_fail_type(r, o, key, "a number");
    else if (v) check_number(r, o, number, value);
    return value;
}

struct pd_hf_object pd_hf_object(struct pd_hf_reader *r, struct pd_hf_object o, const char *key, const char *prefix)
{
    yyjson_val *v = pd_hf_member(o.at, key);
    if (v && !yyjson_is_obj(v) && r->status == PERIDOT_OK) pd_hf_fail_type(r, o, key, "an object");
    return (struct pd_hf_object){yyjson_is_obj(v) ? v : NULL, prefix};
}

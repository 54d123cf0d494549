/* A config from config.json. Two generations of files exist: published checkpoints say rope_theta,
 * rope_local_base_freq, rope_scaling and sliding_window_pattern; newer transformers write rope_parameters and
 * layer_types. An absent key means the default of the model's configuration class in transformers. Gemma 3 from 4B
 * up has its numbers in text_config. */
#include "arch/config_readers.h"
#include "arch/layers.h"
#include "arch/numbers.h"

#include "base/names.h"
#include "base/num.h"
#include "base/os.h"
#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An object of config.json. */
struct object {
    yyjson_val *at;          /* NULL: there is none */
    const char *prefix;      /* of its keys in sentences: "", "rope_scaling." */
};

struct reader {
    struct object config;    /* of the text model */
    const struct pd_hf_type *type;
    const struct pd_family_traits *family;
    uint32_t n_layers;       /* 0: not known yet */
    peridot_status status;   /* of the first failure, after which nothing is read */
};

enum { KEY_SIZE = 160, DEFAULT_WINDOW = 4096 };

/* "config.json: text_config.head_dim" */
static const char *full_key(char out[KEY_SIZE], struct object o, const char *key)
{
    snprintf(out, KEY_SIZE, "config.json: %s%s", o.prefix, key);
    return out;
}

static void fail_type(struct reader *r, struct object o, const char *key, const char *want)
{
    char full[KEY_SIZE];
    r->status = pd_fail(PERIDOT_ERROR_FORMAT, "%s is %s, not %s", full_key(full, o, key),
                        yyjson_get_type_desc(yyjson_obj_get(o.at, key)), want);
}

static void check_number(struct reader *r, struct object o, enum pd_number number, double value)
{
    char full[KEY_SIZE];
    peridot_status status = pd_number_check(number, value, full_key(full, o, pd_numbers[number].hf));
    if (status != PERIDOT_OK) r->status = status;
}

/* NULL for null, too. */
static yyjson_val *find_member(yyjson_val *object, const char *key)
{
    yyjson_val *v = yyjson_obj_get(object, key);
    return yyjson_is_null(v) ? NULL : v;
}

/* Of an array with one value per layer, that of layer i; else the one value. Null is as good as absent where the value
 * can be derived: of head_dim and num_key_value_heads. */
static uint32_t read_layer_uint(struct reader *r, enum pd_number number, uint32_t i, uint32_t fallback)
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
    if (!yyjson_is_uint(v) || yyjson_get_uint(v) > UINT32_MAX) fail_type(r, r->config, key, "a count");
    else check_number(r, r->config, number, (double)yyjson_get_uint(v));
    return (uint32_t)yyjson_get_uint(v);
}

static uint32_t read_uint(struct reader *r, enum pd_number number, uint32_t fallback)
{
    return read_layer_uint(r, number, 0, fallback);
}

/* fallback NAN: the key must be there. */
static double read_number(struct reader *r, struct object o, enum pd_number number, double fallback)
{
    const char *key = pd_numbers[number].hf;
    yyjson_val *v = yyjson_obj_get(o.at, key);
    double value = v ? yyjson_get_num(v) : fallback;
    char full[KEY_SIZE];
    if (r->status != PERIDOT_OK) return value;
    if (!v && isnan(fallback))
        r->status = pd_fail(PERIDOT_ERROR_FORMAT, "%s is missing", full_key(full, o, key));
    else if (v && !yyjson_is_num(v)) fail_type(r, o, key, "a number");
    else if (v) check_number(r, o, number, value);
    return value;
}

/* null means none, absent the family's. Where the family has none, transformers ignores the key. */
static float read_softcap(struct reader *r, enum pd_number number, double fallback, bool known)
{
    char full[KEY_SIZE];
    const char *key = pd_numbers[number].hf;
    yyjson_val *v = yyjson_obj_get(r->config.at, key);
    if (yyjson_is_null(v)) return 0;
    if (v && !known && r->status == PERIDOT_OK)
        r->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s must be null: a %s model has no such softcap",
                            full_key(full, r->config, key), r->family->name);
    return v ? (float)read_number(r, r->config, number, 0) : (float)fallback;
}

/* An object under a key; at is NULL where there is none. */
static struct object read_object(struct reader *r, struct object o, const char *key, const char *prefix)
{
    yyjson_val *v = find_member(o.at, key);
    if (v && !yyjson_is_obj(v) && r->status == PERIDOT_OK) fail_type(r, o, key, "an object");
    return (struct object){yyjson_is_obj(v) ? v : NULL, prefix};
}

/* ---- rotation ---- */

static void read_llama3(struct reader *r, struct pd_rope *rope, struct object scaling)
{
    rope->factor = read_number(r, scaling, PD_NUMBER_ROPE_FACTOR, NAN);
    rope->low_freq_factor = read_number(r, scaling, PD_NUMBER_LOW_FREQ, NAN);
    rope->high_freq_factor = read_number(r, scaling, PD_NUMBER_HIGH_FREQ, NAN);
    rope->old_ctx = read_number(r, scaling, PD_NUMBER_OLD_CTX, NAN);
    if (r->status == PERIDOT_OK && rope->high_freq_factor <= rope->low_freq_factor)
        r->status = pd_fail(PERIDOT_ERROR_FORMAT, "config.json: %shigh_freq_factor is %g and %slow_freq_factor %g: the "
                            "first must be larger", scaling.prefix, rope->high_freq_factor, scaling.prefix,
                            rope->low_freq_factor);
}

/* The kind of scaling: "rope_type", in older files "type". Without either, parameters that hold no factor only say the
 * base. */
static const char *read_rope_type(struct reader *r, struct object o)
{
    char full[KEY_SIZE];
    yyjson_val *new = yyjson_obj_get(o.at, "rope_type"), *old = yyjson_obj_get(o.at, "type");
    if (new && !yyjson_is_str(new)) fail_type(r, o, "rope_type", "a string");
    else if (old && !yyjson_is_str(old)) fail_type(r, o, "type", "a string");
    else if (new && old && !yyjson_equals(new, old))
        r->status = pd_fail(PERIDOT_ERROR_FORMAT, "%s and type are not the same", full_key(full, o, "rope_type"));
    else if (!new && !old && (yyjson_obj_get(o.at, "factor") || !yyjson_obj_get(o.at, "rope_theta")))
        r->status = pd_fail(PERIDOT_ERROR_FORMAT, "%s is missing", full_key(full, o, "rope_type"));
    return new ? yyjson_get_str(new) : old ? yyjson_get_str(old) : "default";
}

/* rope_scaling, or one of rope_parameters, which gives the base as well. */
static struct pd_rope read_rope(struct reader *r, struct object o, struct pd_rope rope)
{
    char full[KEY_SIZE];
    if (yyjson_obj_size(o.at) == 0) return rope;
    rope.base = read_number(r, o, PD_NUMBER_ROPE_BASE, rope.base);
    rope.rotated_part = 0;
    const char *type = r->status == PERIDOT_OK ? read_rope_type(r, o) : NULL;
    if (r->status != PERIDOT_OK || strcmp(type, "default") == 0) return rope;
    if (strcmp(type, "linear") == 0) rope.divisor = read_number(r, o, PD_NUMBER_ROPE_FACTOR, NAN);
    else if (r->family->rotated_part > 0 && strcmp(type, "proportional") == 0) {
        rope.rotated_part = read_number(r, o, PD_NUMBER_ROPE_PART, 1);
        rope.divisor = read_number(r, o, PD_NUMBER_ROPE_FACTOR, 1);
    }
    else if (r->family->llama3_rope && strcmp(type, "llama3") == 0) read_llama3(r, &rope, o);
    else
        r->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s \"" PD_NAME "\": this RoPE scaling is not known for a %s "
                            "model", full_key(full, o, "rope_type"), type, r->family->name);
    return rope;
}

/* Some columns of a head not rotated: newer files of any family could say so. */
static void refuse_partial(struct reader *r, struct object o)
{
    static const char key[] = "partial_rotary_factor";
    char full[KEY_SIZE];
    yyjson_val *v = r->status == PERIDOT_OK ? find_member(o.at, key) : NULL;
    if (v && !yyjson_is_num(v)) fail_type(r, o, key, "a number");
    else if (v && yyjson_get_num(v) != 1)
        r->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s is %g: only 1 is supported", full_key(full, o, key),
                            yyjson_get_num(v));
}

static bool same_rope(const struct pd_rope *a, const struct pd_rope *b)
{
    return a->base == b->base && a->divisor == b->divisor && a->factor == b->factor
        && a->low_freq_factor == b->low_freq_factor && a->high_freq_factor == b->high_freq_factor
        && a->old_ctx == b->old_ctx;
}

/* Families whose layers rotate in two ways have an object for each type of layer in rope_parameters. */
static void read_parameters(struct reader *r, struct pd_rope *global, struct pd_rope *local, struct object parameters)
{
    struct object full = read_object(r, parameters, "full_attention", "rope_parameters.full_attention.");
    struct object sliding = read_object(r, parameters, "sliding_attention", "rope_parameters.sliding_attention.");
    bool by_type = full.at || sliding.at;
    if (r->status == PERIDOT_OK && yyjson_obj_size(parameters.at) && by_type != r->family->local_rope) {
        r->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "config.json: rope_parameters %s by type of layer in a %s model",
                            by_type ? "cannot be" : "must be", r->family->name);
        return;
    }
    refuse_partial(r, parameters);
    if (r->family->rotated_part == 0) refuse_partial(r, full);
    refuse_partial(r, sliding);
    *global = read_rope(r, by_type ? full : parameters, *global);
    *local = by_type ? read_rope(r, sliding, *local) : *global;
}

static void read_ropes(struct reader *r, struct pd_config *out)
{
    const struct pd_family_traits *family = r->family;
    struct object scaling = read_object(r, r->config, "rope_scaling", "rope_scaling.");
    struct object parameters = read_object(r, r->config, "rope_parameters", "rope_parameters.");
    struct pd_rope global = {.base = read_number(r, r->config, PD_NUMBER_ROPE_BASE, family->rope_base), .divisor = 1};
    struct pd_rope local = global, old;
    global.rotated_part = family->rotated_part;
    if (family->rotated_part > 0 && yyjson_obj_size(scaling.at) && r->status == PERIDOT_OK)
        r->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "config.json: %srope_scaling is not known in a %s model: its "
                            "rotation is in rope_parameters", r->config.prefix, family->name);
    if (family->local_rope)
        local.base = read_number(r, r->config, PD_NUMBER_ROPE_BASE_LOCAL, family->rope_base_local);
    refuse_partial(r, r->config);
    refuse_partial(r, scaling);
    old = read_rope(r, scaling, global);
    if (!parameters.at) {
        global = old;
        if (!family->local_rope) local = global;
    } else {
        read_parameters(r, &global, &local, parameters);
    }
    if (scaling.at && parameters.at && r->status == PERIDOT_OK && !same_rope(&old, &global))
        r->status = pd_fail(PERIDOT_ERROR_FORMAT,
                            "config.json: rope_scaling and rope_parameters contradict each other");
    out->ropes[PD_ROPE_GLOBAL] = global;
    out->ropes[PD_ROPE_LOCAL] = local;
}

/* ---- layers ---- */

/* What transformers ignores in the family's files must not say anything else. */
static uint32_t read_pattern(struct reader *r)
{
    char full[KEY_SIZE];
    static const char hidden[] = "_sliding_window_pattern";
    uint32_t usual = r->family->window_pattern, pattern = read_uint(r, PD_NUMBER_PATTERN, usual ? usual : 1);
    yyjson_val *v = find_member(r->config.at, hidden);
    bool known = r->family->own_pattern && yyjson_obj_get(r->config.at, pd_numbers[PD_NUMBER_PATTERN].hf);
    if (r->status != PERIDOT_OK || !usual) return pattern;
    if (!known && pattern != usual)
        r->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s is %u: it is always %u in a %s model",
                            full_key(full, r->config, pd_numbers[PD_NUMBER_PATTERN].hf), pattern, usual,
                            r->family->name);
    else if (v && !(yyjson_is_uint(v) && yyjson_get_uint(v) == pattern))
        r->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s is not %u, and there are no layer_types",
                            full_key(full, r->config, hidden), pattern);
    return pattern;
}

/* Whether a layer has a window: by the name of its type. */
static bool read_type(struct reader *r, yyjson_val *type, uint32_t i)
{
    const char *name = yyjson_get_str(type);
    bool local = name && strcmp(name, "sliding_attention") == 0;
    if (!name || (!local && strcmp(name, "full_attention") != 0))
        r->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "config.json: %slayer_types[%u] is \"" PD_NAME "\", which is "
                            "not known", r->config.prefix, i, name ? name : yyjson_get_type_desc(type));
    else if (local && !r->family->window_pattern)
        r->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED,
                            "config.json: %slayer_types[%u] is \"%s\", which a %s model does not have",
                            r->config.prefix, i, name, r->family->name);
    return local;
}

static void read_window(struct reader *r, struct pd_layer *l, uint32_t i)
{
    yyjson_val *v = yyjson_obj_get(r->config.at, "sliding_window");
    uint32_t usual = r->type->window ? r->type->window : DEFAULT_WINDOW;
    l->window = yyjson_is_null(v) ? 0 : read_layer_uint(r, PD_NUMBER_WINDOW, i, usual);
    if (r->status == PERIDOT_OK && l->window == 0)
        r->status = pd_fail(PERIDOT_ERROR_FORMAT, "config.json: %ssliding_window is %s, but layer %u has a window",
                            r->config.prefix, yyjson_is_null(v) ? "null" : "0", i);
}

/* Which layers have a window: by name, or all but every n-th. */
static peridot_status read_windows(struct reader *r, struct pd_config *out)
{
    struct object types = {find_member(r->config.at, "layer_types"), ""};
    uint32_t usual = r->family->window_pattern, pattern = types.at ? usual : read_pattern(r);
    if (types.at && !yyjson_is_arr(types.at)) fail_type(r, r->config, "layer_types", "a list");
    PD_TRY(r->status);
    if (types.at && yyjson_arr_size(types.at) != out->n_layers)
        return pd_fail(PERIDOT_ERROR_FORMAT, "config.json: %slayer_types has %zu entries for %u layers",
                       r->config.prefix, yyjson_arr_size(types.at), out->n_layers);
    for (uint32_t i = 0; i < out->n_layers; i++) {
        bool local = types.at ? read_type(r, yyjson_arr_get(types.at, i), i) : usual && (i + 1) % pattern != 0;
        PD_TRY(r->status);
        if (r->family->last_is_global && i + 1 == out->n_layers) local = false;
        if (local) read_window(r, &out->layers[i], i);
    }
    return r->status;
}

static uint32_t read_own(struct reader *r, enum pd_number number, uint32_t i, uint32_t usual)
{
    return find_member(r->config.at, pd_numbers[number].hf) ? read_layer_uint(r, number, i, usual) : usual;
}

/* per_layer_config: {"5": {"head_dim": 512}}. Whatever of a layer it might say, and only this is known. */
static peridot_status check_own_sizes(const struct reader *r, const struct pd_config *out)
{
    static const char *const known[] = {"head_dim", "num_key_value_heads"};
    yyjson_val *by_layer = find_member(r->config.at, "per_layer_config"), *index, *sizes, *key, *value;
    size_t i, n, j, m;
    if (!by_layer) return PERIDOT_OK;
    yyjson_obj_foreach(by_layer, i, n, index, sizes) {
        char *end;
        unsigned long layer = strtoul(yyjson_get_str(index), &end, 10);
        if (*end || layer >= out->n_layers || !yyjson_is_obj(sizes))
            return pd_fail(PERIDOT_ERROR_FORMAT, "config.json: %sper_layer_config: \"" PD_NAME "\" is not an object of "
                           "one of %u layers", r->config.prefix, yyjson_get_str(index), out->n_layers);
        yyjson_obj_foreach(sizes, j, m, key, value) {
            bool is_known = false;
            for (size_t k = 0; k < PD_COUNT(known); k++) is_known = is_known || yyjson_equals_str(key, known[k]);
            if (!is_known)
                return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "config.json: %sper_layer_config.%lu: " PD_NAME " of a layer "
                               "is not known", r->config.prefix, layer, yyjson_get_str(key));
        }
    }
    return PERIDOT_OK;
}

/* What layers without a window, and those that read another's keys, have of their own; or what per_layer_config says of
 * a layer. */
static void read_own_sizes(struct reader *r, struct pd_config *out, uint32_t i)
{
    struct pd_layer *l = &out->layers[i];
    struct object all = r->config, by_layer = read_object(r, all, "per_layer_config", "per_layer_config.");
    bool shares = i >= out->n_layers - (uint32_t)pd_min(out->n_shared_kv, out->n_layers);
    bool keys_only = yyjson_is_true(find_member(r->config.at, "attention_k_eq_v"));
    char index[16];
    snprintf(index, sizeof index, "%u", i);
    if (by_layer.at) {
        r->config = (struct object){find_member(by_layer.at, index), "per_layer_config."};
        l->head_dim = read_own(r, PD_NUMBER_HEAD_DIM, i, 0);
        l->n_kv_heads = read_own(r, PD_NUMBER_KV_HEADS, i, l->n_kv_heads);
        r->config = all;
    } else if (!l->window) {
        l->head_dim = read_layer_uint(r, PD_NUMBER_HEAD_DIM_GLOBAL, i, 512);
        if (keys_only || r->family->embeds)
            l->n_kv_heads = read_own(r, PD_NUMBER_KV_HEADS_GLOBAL, i, l->n_kv_heads);
    }
    l->has_v = l->window || !keys_only;
    if (shares && yyjson_is_true(find_member(r->config.at, "use_double_wide_mlp"))) l->ffn_dim *= 2;
}

static peridot_status read_layer(struct reader *r, struct pd_config *out, uint32_t i)
{
    const struct pd_hf_defaults *d = &r->family->hf;
    struct pd_layer *l = &out->layers[i];
    l->ffn_dim = read_layer_uint(r, PD_NUMBER_FFN_DIM, i, d->ffn_dim);
    l->n_heads = read_layer_uint(r, PD_NUMBER_HEADS, i, d->n_heads);
    l->n_kv_heads = read_layer_uint(r, PD_NUMBER_KV_HEADS, i, d->n_kv_heads ? d->n_kv_heads : l->n_heads);
    if (r->family->sizes_by_window) read_own_sizes(r, out, i);
    PD_TRY(r->status);
    if (l->n_heads % l->n_kv_heads != 0)
        return pd_fail(PERIDOT_ERROR_FORMAT, "config.json: num_attention_heads %u is not a multiple of "
                       "num_key_value_heads %u: %u query heads cannot share %u kv heads evenly", l->n_heads,
                       l->n_kv_heads, l->n_heads, l->n_kv_heads);
    if (!d->head_dim && !find_member(r->config.at, "head_dim") && out->d_model % l->n_heads != 0)
        return pd_fail(PERIDOT_ERROR_FORMAT, "config.json: hidden_size %u is not a multiple of num_attention_heads %u, "
                       "and there is no head_dim", out->d_model, l->n_heads);
    uint32_t usual = d->head_dim ? d->head_dim : out->d_model / l->n_heads;
    if (!l->head_dim) l->head_dim = read_layer_uint(r, PD_NUMBER_HEAD_DIM, i, usual);
    if (r->family->experts && yyjson_is_true(find_member(r->config.at, "enable_moe_block"))) {
        l->n_experts = read_uint(r, PD_NUMBER_EXPERTS, 0);
        l->n_experts_used = read_uint(r, PD_NUMBER_EXPERTS_USED, 0);
        l->expert_dim = read_uint(r, PD_NUMBER_EXPERT_DIM, 0);
    }
    PD_TRY(r->status);
    PD_TRY(pd_layer_check_experts(l, "config.json: top_k_experts"));
    double divisor = r->family->unscaled_queries ? 1 : l->head_dim;
    if (r->family->query_divisor)
        divisor = read_number(r, r->config, PD_NUMBER_QUERY_DIVISOR, r->family->query_divisor);
    PD_TRY(r->status);
    l->query_scale = (float)(1 / sqrt(divisor));
    return PERIDOT_OK;
}

/* ---- keys that would change the maths ---- */

static peridot_status check_activation(const struct reader *r, const char *key, bool gelu_is_tanh)
{
    yyjson_val *v = yyjson_obj_get(r->config.at, key);
    const char *name = yyjson_get_str(v);
    char full[KEY_SIZE];
    if (!v || (name && pd_family_has_activation(r->family, name))) return PERIDOT_OK;
    if (gelu_is_tanh && (yyjson_is_null(v) || (name && strcmp(name, "gelu") == 0))) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: activation \"" PD_NAME "\" is not supported in a %s model",
                   full_key(full, r->config, key), name ? name : yyjson_get_type_desc(v), r->family->name);
}

static peridot_status check_activations(const struct reader *r)
{
    bool either = r->family->hf_activation == PD_HF_ACT_OR_ACTIVATION;
    yyjson_val *new = yyjson_obj_get(r->config.at, "hidden_activation");
    if (!(either && yyjson_is_null(new))) PD_TRY(check_activation(r, "hidden_activation", false));
    if (new && r->family->hf_activation == PD_HF_ACTIVATION) return PERIDOT_OK;
    return check_activation(r, "hidden_act", either);
}

static peridot_status refuse_unknown(const struct reader *r, yyjson_val *root)
{
    enum { BIDIRECTIONAL = 2 };
    static const char *const must_be_false[] = {"attention_bias", "mlp_bias",
        [BIDIRECTIONAL] = "use_bidirectional_attention"};
    static const char *const must_be_absent[] = {"quantization_config", "compression_config"};
    char full[KEY_SIZE];
    for (size_t i = 0; i < PD_COUNT(must_be_false); i++) {
        yyjson_val *v = find_member(r->config.at, must_be_false[i]);
        /* of the tokens of images, which are refused */
        bool vision = yyjson_is_str(v) && strcmp(yyjson_get_str(v), "vision") == 0 && r->family->vision_masks;
        bool both_ways = r->family->embeds && i == BIDIRECTIONAL;   /* always, or what made it this family */
        if (v && !yyjson_is_false(v) && !vision && !both_ways)
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s is %s, which is not supported",
                           full_key(full, r->config, must_be_false[i]), yyjson_get_type_desc(v));
    }
    for (size_t i = 0; i < PD_COUNT(must_be_absent); i++)
        if (find_member(root, must_be_absent[i]) || find_member(r->config.at, must_be_absent[i]))
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "config.json: %s: weights that another program quantised are not "
                           "supported", must_be_absent[i]);
    return check_activations(r);
}

/* ---- which model ---- */

static peridot_status find_type(const struct pd_hf_type **out, struct object o)
{
    yyjson_val *v = find_member(o.at, "model_type");
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
    char known[256] = "";
    for (size_t i = 0, n = 0; pd_hf_type_name(i); i++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", pd_hf_type_name(i));
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "config.json: %smodel_type \"" PD_NAME "\" is not known (known: %s)",
                   o.prefix, type, known);
}

static peridot_status find_text(struct reader *r, struct pd_config *out, yyjson_val *root)
{
    const struct pd_hf_type *type, *inner;
    r->config = (struct object){root, ""};
    PD_TRY(find_type(&type, r->config));
    out->family = type->family;
    r->type = type;
    r->family = &pd_families[type->family];
    struct object text = read_object(r, r->config, "text_config", "text_config.");
    PD_TRY(r->status);
    if (!text.at && type->embeds && yyjson_is_true(find_member(root, "use_bidirectional_attention"))) {
        out->family = type->embeds;
        r->family = &pd_families[type->embeds];
    }
    if (!text.at) return PERIDOT_OK;
    inner = type;
    if (yyjson_obj_get(text.at, "model_type")) PD_TRY(find_type(&inner, text));
    if (!type->wraps || inner->family != (type->wrapped ? type->wrapped : type->family))
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "config.json: a %s model inside a %s model is not known",
                       pd_families[inner->family].name, r->family->name);
    r->config = text;
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
    yyjson_val *v = find_member(root, "problem_type");
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
    const char *name = yyjson_get_str(yyjson_arr_get_first(find_member(root, "architectures")));
    if (!name) return PERIDOT_OK;
    if (pd_families[out->family].embeds) return PERIDOT_OK;
    bool sequence = ends_with(name, "ForSequenceClassification"), token = ends_with(name, "ForTokenClassification");
    if (sequence) out->head = PERIDOT_HEAD_SEQUENCE;
    else if (token) out->head = PERIDOT_HEAD_TOKEN;
    else if (ends_with(name, "Model") && !out->tied) out->head = PERIDOT_HEAD_NONE;
    if (!sequence && !token) return PERIDOT_OK;
    out->final_softcap = 0;   /* it belongs to the language head */
    if (sequence) PD_TRY(read_problem(out, root));
    return read_labels(out, find_member(root, "id2label"));
}

/* Where the last component of path[0..n) begins. */
static size_t last_component(const char *path, size_t n)
{
    while (n > 0 && path[n - 1] != '/') n--;
    return n;
}

/* The folder's name; in Hugging Face's cache that is a commit's hash, and "models--google--gemma-3-1b-it" two above. */
static void read_name(struct pd_config *out, const char *path)
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

static bool read_tied(struct reader *r, yyjson_val *root)
{
    static const char key[] = "tie_word_embeddings";
    struct object o = find_member(r->config.at, key) ? r->config : (struct object){root, ""};
    yyjson_val *v = find_member(o.at, key);
    if (v && !yyjson_is_bool(v) && r->status == PERIDOT_OK) fail_type(r, o, key, "true or false");
    return v ? yyjson_is_true(v) : r->family->tied;
}

/* It is outside of text_config. */
static uint32_t read_target_dim(struct reader *r, yyjson_val *root)
{
    struct object text = r->config;
    r->config = (struct object){root, ""};
    uint32_t dim = read_uint(r, PD_NUMBER_TARGET_DIM, 1536);
    r->config = text;
    return dim;
}

peridot_status pd_config_read_hf(struct pd_config *out, const struct pd_checkpoint *c)
{
    yyjson_val *root = pd_checkpoint_config(c);
    struct reader r = {.status = PERIDOT_OK};
    PD_TRY(find_text(&r, out, root));
    read_name(out, pd_checkpoint_path(c));
    const struct pd_family_traits *family = r.family;
    const struct pd_hf_defaults *d = &family->hf;
    PD_TRY(refuse_unknown(&r, root));

    out->n_layers = read_uint(&r, PD_NUMBER_LAYERS, d->n_layers);
    out->d_model = read_uint(&r, PD_NUMBER_D_MODEL, d->d_model);
    out->ctx_max = read_uint(&r, PD_NUMBER_CTX, r.type->ctx_max ? r.type->ctx_max : d->ctx_max);
    out->n_shared_kv = read_uint(&r, PD_NUMBER_SHARED_KV, 0);
    if (family->per_layer_inputs) out->per_layer_dim = read_uint(&r, PD_NUMBER_PER_LAYER_DIM, r.type->per_layer_dim);
    if (family->drafts) out->target_dim = read_target_dim(&r, root);
    if (yyjson_obj_get(r.config.at, "vocab_size")) out->vocab_size = read_uint(&r, PD_NUMBER_VOCAB_SIZE, 0);
    out->eps = (float)read_number(&r, r.config, PD_NUMBER_EPS, 1e-6);
    out->attn_softcap = read_softcap(&r, PD_NUMBER_ATTN_SOFTCAP, family->attn_softcap, family->attn_softcap != 0);
    out->final_softcap = read_softcap(&r, PD_NUMBER_FINAL_SOFTCAP, family->final_softcap, family->final_softcap_known);
    out->tied = read_tied(&r, root);
    read_ropes(&r, out);
    PD_TRY(r.status);
    PD_TRY(read_head(out, root));
    r.n_layers = out->n_layers;
    PD_TRY(pd_layers_create(out));
    PD_TRY(read_windows(&r, out));
    if (family->sizes_by_window) PD_TRY(check_own_sizes(&r, out));
    for (uint32_t i = 0; i < out->n_layers; i++) PD_TRY(read_layer(&r, out, i));
    return PERIDOT_OK;
}

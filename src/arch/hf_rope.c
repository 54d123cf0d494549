/* The rotation of config.json, as either generation of files says it. */
#include "arch/arch_.h"
#include "arch/arch.h"

#include "base/base.h"

#include <math.h>
#include <string.h>

static void read_llama3(struct pd_hf_reader *r, struct pd_rope *rope, struct pd_hf_object scaling)
{
    rope->factor = pd_hf_number(r, scaling, PD_NUMBER_ROPE_FACTOR, NAN);
    rope->low_freq_factor = pd_hf_number(r, scaling, PD_NUMBER_LOW_FREQ, NAN);
    rope->high_freq_factor = pd_hf_number(r, scaling, PD_NUMBER_HIGH_FREQ, NAN);
    rope->old_ctx = pd_hf_number(r, scaling, PD_NUMBER_OLD_CTX, NAN);
    if (r->status == PERIDOT_OK && rope->high_freq_factor <= rope->low_freq_factor)
        r->status = pd_fail(PERIDOT_ERROR_FORMAT, "config.json: %shigh_freq_factor is %g and %slow_freq_factor %g: the "
                            "first must be larger", scaling.prefix, rope->high_freq_factor, scaling.prefix,
                            rope->low_freq_factor);
}

/* null is as good as absent. */
static double optional_number(struct pd_hf_reader *r, struct pd_hf_object o, enum pd_number number, double fallback)
{
    return pd_hf_member(o.at, pd_numbers[number].hf) ? pd_hf_number(r, o, number, fallback) : fallback;
}

/* The context that a rule extends: what the config itself says comes first, then the rule, then the model's context. */
static double read_old_ctx(struct pd_hf_reader *r, struct pd_hf_object o, double ctx_max)
{
    bool of_config = pd_hf_member(r->config.at, pd_numbers[PD_NUMBER_OLD_CTX].hf) || r->family->hf_old_ctx;
    double usual = r->family->hf_old_ctx ? r->family->hf_old_ctx : ctx_max;
    return optional_number(r, of_config ? r->config : o, PD_NUMBER_OLD_CTX, usual);
}

static void check_attn_factor(struct pd_hf_reader *r, struct pd_hf_object o, double value)
{
    char full[PD_HF_KEY_SIZE];
    if (r->status == PERIDOT_OK)
        r->status = pd_number_check(PD_NUMBER_ATTN_FACTOR, value,
                                    pd_hf_key(full, o, pd_numbers[PD_NUMBER_ATTN_FACTOR].hf));
}

static void read_yarn(struct pd_hf_reader *r, struct pd_rope *rope, struct pd_hf_object o)
{
    char full[PD_HF_KEY_SIZE];
    yyjson_val *truncate = pd_hf_member(o.at, "truncate");
    double ctx_max = rope->old_ctx;
    rope->old_ctx = read_old_ctx(r, o, ctx_max);
    bool no_factor = yyjson_is_null(yyjson_obj_get(o.at, pd_numbers[PD_NUMBER_ROPE_FACTOR].hf));
    rope->divisor = no_factor ? ctx_max / rope->old_ctx : pd_hf_number(r, o, PD_NUMBER_ROPE_FACTOR, NAN);
    rope->beta_fast = optional_number(r, o, PD_NUMBER_BETA_FAST, 32);
    rope->beta_slow = optional_number(r, o, PD_NUMBER_BETA_SLOW, 1);
    double one = optional_number(r, o, PD_NUMBER_MSCALE, 0), all = optional_number(r, o, PD_NUMBER_MSCALE_ALL_DIM, 0);
    bool weighted = one != 0 && all != 0;
    rope->yarn_weight = weighted && one == 1 ? all : 0;   /* GGUF has no key for two */
    double usual = weighted ? pd_rope_mscale(rope->divisor, one) / pd_rope_mscale(rope->divisor, all)
                            : pd_rope_mscale(rope->divisor, 1);
    rope->attn_factor = optional_number(r, o, PD_NUMBER_ATTN_FACTOR, usual);
    check_attn_factor(r, o, rope->attn_factor);
    if (truncate && !yyjson_is_bool(truncate) && r->status == PERIDOT_OK)
        pd_hf_fail_type(r, o, "truncate", "true or false");
    rope->exact_ramp = yyjson_is_false(truncate);
    if (r->status == PERIDOT_OK) r->status = pd_rope_check_yarn(rope, pd_hf_key(full, o, "rope_type"));
}

/* short_factor or long_factor. */
static void read_factors(struct pd_hf_reader *r, struct pd_rope *rope, struct pd_hf_object o, int i)
{
    static const char *const keys[] = {"short_factor", "long_factor"};
    char full[PD_HF_KEY_SIZE];
    yyjson_val *list = yyjson_obj_get(o.at, keys[i]), *v;
    size_t k, n;
    pd_hf_key(full, o, keys[i]);
    if (r->status != PERIDOT_OK) return;
    if (!yyjson_is_arr(list)) {
        r->status = pd_fail(PERIDOT_ERROR_FORMAT, "%s is %s, not a list of numbers", full,
                            list ? yyjson_get_type_desc(list) : "missing");
        return;
    }
    if (yyjson_arr_size(list) == 0 || yyjson_arr_size(list) > PD_MAX_PAIRS
        || (i > 0 && yyjson_arr_size(list) != rope->n_factors))
        r->status = pd_fail(PERIDOT_ERROR_FORMAT, "%s has %zu entries%s", full, yyjson_arr_size(list),
                            i > 0 ? ", and short_factor another number of them" : "");
    rope->n_factors = r->status == PERIDOT_OK ? (uint32_t)yyjson_arr_size(list) : 0;
    yyjson_arr_foreach(list, k, n, v) {
        if (r->status != PERIDOT_OK) return;
        rope->factors[i][k] = (float)yyjson_get_num(v);
        if (!yyjson_is_num(v) || !(rope->factors[i][k] >= 1e-3f && rope->factors[i][k] <= 1e6f))
            r->status = pd_fail(PERIDOT_ERROR_FORMAT, "%s[%zu] is not a number between 0.001 and 1000000", full, k);
    }
}

static void read_longrope(struct pd_hf_reader *r, struct pd_rope *rope, struct pd_hf_object o)
{
    double ctx_max = rope->old_ctx;
    rope->old_ctx = read_old_ctx(r, o, ctx_max);
    double extended = optional_number(r, o, PD_NUMBER_ROPE_FACTOR, ctx_max / rope->old_ctx);
    double usual = extended > 1 ? sqrt(1 + log(extended) / log(rope->old_ctx)) : 1;
    rope->attn_factor = (float)optional_number(r, o, PD_NUMBER_ATTN_FACTOR, usual);   /* as GGUF has it */
    check_attn_factor(r, o, rope->attn_factor);
    rope->is_long = true;
    for (int i = 0; i < 2; i++) read_factors(r, rope, o, i);
}

static void read_linear(struct pd_hf_reader *r, struct pd_rope *rope, struct pd_hf_object o)
{
    rope->divisor = pd_hf_number(r, o, PD_NUMBER_ROPE_FACTOR, NAN);
}

static void read_proportional(struct pd_hf_reader *r, struct pd_rope *rope, struct pd_hf_object o)
{
    rope->rotated_part = pd_hf_number(r, o, PD_NUMBER_ROPE_PART, 1);
    rope->divisor = pd_hf_number(r, o, PD_NUMBER_ROPE_FACTOR, 1);
}

/* transformers rotates texts of up to max_position_embeddings as without a rule, and all of a longer one by a base of
 * its length, at which keys of a cache would have to be rotated anew. No session is longer. */
static void read_dynamic(struct pd_hf_reader *r, struct pd_rope *rope, struct pd_hf_object o)
{
    (void)rope;
    pd_hf_number(r, o, PD_NUMBER_ROPE_FACTOR, NAN);
}

static void read_default(struct pd_hf_reader *r, struct pd_rope *rope, struct pd_hf_object o)
{
    (void)r, (void)rope, (void)o;
}

typedef void read_rule(struct pd_hf_reader *, struct pd_rope *, struct pd_hf_object);

/* NULL: not known. Phi 3's older files call LongRoPE "su" or "yarn", as transformers still knows. */
static read_rule *find_rule(const struct pd_hf_reader *r, const char *type)
{
    static const struct { const char *type; read_rule *read; } rules[] = {{"default", read_default},
        {"linear", read_linear}, {"dynamic", read_dynamic}, {"llama3", read_llama3}, {"yarn", read_yarn},
        {"longrope", read_longrope}, {"proportional", read_proportional}};
    bool is_old = strcmp(type, "su") == 0 || strcmp(type, "yarn") == 0;
    if (r->family->old_longrope && is_old) return read_longrope;
    for (size_t i = 0; i < PD_COUNT(rules); i++)
        if (strcmp(type, rules[i].type) == 0)
            return rules[i].read == read_proportional && r->family->rotated_part == 0 ? NULL : rules[i].read;
    return NULL;
}

/* The kind of scaling: "rope_type", in older files "type". Without either, parameters that hold no factor only say the
 * base. */
static const char *read_rope_type(struct pd_hf_reader *r, struct pd_hf_object o)
{
    char full[PD_HF_KEY_SIZE];
    yyjson_val *new = yyjson_obj_get(o.at, "rope_type"), *old = yyjson_obj_get(o.at, "type");
    if (new && !yyjson_is_str(new)) pd_hf_fail_type(r, o, "rope_type", "a string");
    else if (old && !yyjson_is_str(old)) pd_hf_fail_type(r, o, "type", "a string");
    else if (new && old && !yyjson_equals(new, old))
        r->status = pd_fail(PERIDOT_ERROR_FORMAT, "%s and type are not the same", pd_hf_key(full, o, "rope_type"));
    else if (!new && !old && (yyjson_obj_get(o.at, "factor") || !yyjson_obj_get(o.at, "rope_theta")))
        r->status = pd_fail(PERIDOT_ERROR_FORMAT, "%s is missing", pd_hf_key(full, o, "rope_type"));
    return new ? yyjson_get_str(new) : old ? yyjson_get_str(old) : "default";
}

/* rope_scaling, or one of rope_parameters, which gives the base as well. */
static struct pd_rope read_rope(struct pd_hf_reader *r, struct pd_hf_object o, struct pd_rope rope)
{
    char full[PD_HF_KEY_SIZE];
    if (yyjson_obj_size(o.at) == 0) return rope;
    rope.base = pd_hf_number(r, o, PD_NUMBER_ROPE_BASE, rope.base);
    rope.rotated_part = 0;
    if (r->family->partial_rope)
        rope.rotated_columns = optional_number(r, o, PD_NUMBER_ROPE_PART, rope.rotated_columns);
    const char *type = r->status == PERIDOT_OK ? read_rope_type(r, o) : NULL;
    if (r->status != PERIDOT_OK) return rope;
    read_rule *read = find_rule(r, type);
    if (read) read(r, &rope, o);
    else
        r->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s \"" PD_NAME "\": this RoPE scaling is not known for a %s "
                            "model", pd_hf_key(full, o, "rope_type"), type, r->family->name);
    return rope;
}

/* Some columns of a head not rotated: newer files of any family could say so, and transformers reads it in some. */
static void refuse_partial(struct pd_hf_reader *r, struct pd_hf_object o)
{
    static const char key[] = "partial_rotary_factor";
    char full[PD_HF_KEY_SIZE];
    yyjson_val *v = r->status == PERIDOT_OK && !r->family->partial_rope ? pd_hf_member(o.at, key) : NULL;
    if (v && !yyjson_is_num(v)) pd_hf_fail_type(r, o, key, "a number");
    else if (v && yyjson_get_num(v) != 1)
        r->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s is %g: only 1 is supported", pd_hf_key(full, o, key),
                            yyjson_get_num(v));
}

/* Families whose layers rotate in two ways have an object for each type of layer in rope_parameters. */
static void read_parameters(struct pd_hf_reader *r, struct pd_rope *global, struct pd_rope *local,
                            struct pd_hf_object parameters)
{
    struct pd_hf_object full = pd_hf_object(r, parameters, "full_attention", "rope_parameters.full_attention.");
    struct pd_hf_object sliding =
        pd_hf_object(r, parameters, "sliding_attention", "rope_parameters.sliding_attention.");
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

/* It is among the numbers of the rotation, and goes by the same old context. The family's default, which transformers
 * has where there are none, is YaRN's with a number of its own. */
static void read_query_growth(struct pd_hf_reader *r, struct pd_config *out, struct pd_hf_object o)
{
    char full[PD_HF_KEY_SIZE];
    out->query_growth = optional_number(r, o, PD_NUMBER_QUERY_GROWTH, 0);
    if (r->status != PERIDOT_OK) return;
    if ((r->family->query_growth || r->family->exact_ramp) && !yyjson_obj_size(o.at))
        r->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "config.json: %srope_parameters is missing in a %s model",
                            r->config.prefix, r->family->name);
    if (!r->family->query_growth && out->query_growth != 0)
        r->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s is %g: queries of a %s model do not grow",
                            pd_hf_key(full, o, pd_numbers[PD_NUMBER_QUERY_GROWTH].hf), out->query_growth,
                            r->family->name);
}

void pd_hf_read_ropes(struct pd_hf_reader *r, struct pd_config *out)
{
    const struct pd_family_traits *family = r->family;
    struct pd_hf_object scaling = pd_hf_object(r, r->config, "rope_scaling", "rope_scaling.");
    struct pd_hf_object parameters = pd_hf_object(r, r->config, "rope_parameters", "rope_parameters.");
    struct pd_rope global = {.base = pd_hf_number(r, r->config, PD_NUMBER_ROPE_BASE, family->rope_base), .divisor = 1,
        .old_ctx = out->ctx_max, .attn_factor = 1};
    struct pd_rope local = global, old;
    global.rotated_part = family->rotated_part;
    if (family->partial_rope)
        global.rotated_columns = optional_number(r, r->config, PD_NUMBER_ROPE_PART, family->rotated_columns);
    if (family->rotated_part > 0 && yyjson_obj_size(scaling.at) && r->status == PERIDOT_OK)
        r->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "config.json: %srope_scaling is not known in a %s model: its "
                            "rotation is in rope_parameters", r->config.prefix, family->name);
    if (family->rope_base_local > 0 && family->local_rope)
        local.base = pd_hf_number(r, r->config, PD_NUMBER_ROPE_BASE_LOCAL, family->rope_base_local);
    refuse_partial(r, r->config);
    refuse_partial(r, scaling);
    old = read_rope(r, scaling, global);
    if (!parameters.at) {
        global = old;
        if (!family->local_rope) local = global;
    } else {
        read_parameters(r, &global, &local, parameters);
    }
    read_query_growth(r, out, parameters.at ? parameters : scaling);
    if (scaling.at && parameters.at && r->status == PERIDOT_OK && !pd_rope_equal(&old, &global))
        r->status = pd_fail(PERIDOT_ERROR_FORMAT,
                            "config.json: rope_scaling and rope_parameters contradict each other");
    out->ropes[PD_ROPE_GLOBAL] = global;
    out->ropes[PD_ROPE_LOCAL] = local;
}

/* no_rope_layers: 1 for those that are rotated, for all the name. */
static void read_no_rope_layer(struct pd_hf_reader *r, struct pd_layer *layer, yyjson_val *v, uint32_t i)
{
    layer->no_rope = yyjson_is_uint(v) && yyjson_get_uint(v) == 0;
    if (!yyjson_is_uint(v) || yyjson_get_uint(v) > 1)
        r->status = pd_fail(PERIDOT_ERROR_FORMAT, "config.json: %sno_rope_layers[%u] is not 0 or 1", r->config.prefix,
                            i);
    else if (layer->no_rope && !r->family->no_rope_interval)
        r->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "config.json: %sno_rope_layers[%u] is 0: all layers of a %s "
                            "model are rotated", r->config.prefix, i, r->family->name);
}

/* layer_rope_theta: 0 for those that are not rotated; transformers rotates all others by rope_theta. */
static void read_layer_base(struct pd_hf_reader *r, struct pd_layer *layer, yyjson_val *v, uint32_t i, double base)
{
    layer->no_rope = yyjson_is_num(v) && yyjson_get_num(v) == 0;
    if (!yyjson_is_num(v))
        r->status = pd_fail(PERIDOT_ERROR_FORMAT, "config.json: %slayer_rope_theta[%u] is not a number",
                            r->config.prefix, i);
    else if (!layer->no_rope && yyjson_get_num(v) != base)
        r->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "config.json: %slayer_rope_theta[%u] is %g, neither 0 nor "
                            "rope_theta", r->config.prefix, i, yyjson_get_num(v));
}

peridot_status pd_hf_read_no_rope(struct pd_hf_reader *r, struct pd_config *out)
{
    bool by_base = r->family->windows_rotate;
    const char *key = by_base ? "layer_rope_theta" : "no_rope_layers";
    yyjson_val *list = pd_hf_member(r->config.at, key);
    uint32_t n = r->family->no_rope_interval;
    bool has_windows = n && yyjson_is_true(pd_hf_member(r->config.at, "use_sliding_window"));
    if (has_windows && pd_hf_member(r->config.at, "sliding_window"))
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "config.json: %suse_sliding_window is true, which is not supported "
                       "in a %s model", r->config.prefix, r->family->name);
    if (n && !list) n = pd_hf_uint(r, PD_NUMBER_NO_ROPE_INTERVAL, n);
    if (list && !yyjson_is_arr(list)) pd_hf_fail_type(r, r->config, key, "a list");
    PD_TRY(r->status);
    if (list && yyjson_arr_size(list) != out->n_layers)
        return pd_fail(PERIDOT_ERROR_FORMAT, "config.json: %s%s has %zu entries for %u layers", r->config.prefix, key,
                       yyjson_arr_size(list), out->n_layers);
    for (uint32_t i = 0; i < out->n_layers && r->status == PERIDOT_OK; i++) {
        struct pd_layer *layer = &out->layers[i];
        yyjson_val *v = yyjson_arr_get(list, i);
        if (!list) layer->no_rope = n && pd_family_is_nth(r->family, n, i, out->n_layers);
        else if (by_base) read_layer_base(r, layer, v, i, out->ropes[PD_ROPE_GLOBAL].base);
        else read_no_rope_layer(r, layer, v, i);
    }
    return r->status;
}

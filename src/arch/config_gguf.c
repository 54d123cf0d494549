/* A config from GGUF metadata. Keys are "ARCHITECTURE.NAME"; defaults are llama.cpp's where files may lack a key. */
#include "arch/arch_.h"
#include "arch/arch.h"

#include "base/base.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    const struct pd_checkpoint *checkpoint;
    const struct pd_family_traits *family;
    uint32_t n_layers;       /* 0: not known yet */
    peridot_status status;   /* of the first failure, after which nothing is read */
};

enum { KEY_SIZE = 128, MAX_LABELS = 65536 };

/* `key`: "metadata key ARCHITECTURE.NAME", for sentences. */
static const struct pd_meta *find_key(const struct reader *r, const char *name, char key[KEY_SIZE])
{
    static const char before[] = "metadata key ";
    snprintf(key, KEY_SIZE, "%s%s.%s", before, r->family->name, name);
    return pd_checkpoint_find_meta(r->checkpoint, key + strlen(before));
}

static void check_number(struct reader *r, enum pd_number number, double value, const char *key)
{
    peridot_status status = pd_number_check(number, value, key);
    if (status != PERIDOT_OK) r->status = status;
}

/* Of an array with one value per layer, that of layer i; else the one value. */
static uint32_t read_layer_uint(struct reader *r, enum pd_number number, uint32_t i, int64_t fallback)
{
    char key[KEY_SIZE];
    const struct pd_meta *m = find_key(r, pd_numbers[number].gguf, key);
    uint64_t value = fallback >= 0 ? (uint64_t)fallback : 0;
    bool is_array = m && m->type == PD_META_ARRAY && r->n_layers;
    if (r->status != PERIDOT_OK) return 0;
    if (!m && fallback < 0) r->status = pd_fail(PERIDOT_ERROR_FORMAT, "%s is missing", key);
    else if (is_array && m->n != r->n_layers)
        r->status = pd_fail(PERIDOT_ERROR_FORMAT, "%s has %llu entries for %u layers", key, (unsigned long long)m->n,
                            r->n_layers);
    else if (m && ((m->type == PD_META_ARRAY && !is_array) || !pd_meta_uint(&value, m, is_array ? i : 0)))
        r->status = pd_fail(PERIDOT_ERROR_FORMAT, "%s is not a count", key);
    else check_number(r, number, (double)value, key);
    return r->status == PERIDOT_OK ? (uint32_t)value : 0;
}

static uint32_t read_uint(struct reader *r, enum pd_number number, int64_t fallback)
{
    return read_layer_uint(r, number, 0, fallback);
}

/* A number that is not in the table; NAN: not there. */
static double read_float(struct reader *r, const char *name, char key[KEY_SIZE])
{
    const struct pd_meta *m = find_key(r, name, key);
    double value = NAN;
    if (r->status == PERIDOT_OK && m && (m->type == PD_META_ARRAY || !pd_meta_float(&value, m, 0)))
        r->status = pd_fail(PERIDOT_ERROR_FORMAT, "%s is not a number", key);
    return value;
}

/* fallback NAN: the key must be there. */
static double read_number(struct reader *r, enum pd_number number, double fallback)
{
    char key[KEY_SIZE];
    bool there = find_key(r, pd_numbers[number].gguf, key) != NULL;
    double value = there ? read_float(r, pd_numbers[number].gguf, key) : fallback;
    if (r->status != PERIDOT_OK) return value;
    if (!there && isnan(fallback)) r->status = pd_fail(PERIDOT_ERROR_FORMAT, "%s is missing", key);
    else if (there) check_number(r, number, value, key);
    return value;
}

/* 0 means none. */
static float read_softcap(struct reader *r, enum pd_number number, double fallback, bool known)
{
    char key[KEY_SIZE];
    double value = read_float(r, pd_numbers[number].gguf, key);
    if (value == 0) return 0;
    if (r->status == PERIDOT_OK && find_key(r, pd_numbers[number].gguf, key) && !known)
        r->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s is %g: a %s model has no such softcap", key, value,
                            r->family->name);
    return (float)read_number(r, number, fallback);
}

static void read_multipliers(struct reader *r, struct pd_config *out)
{
    out->embed_scale = (float)read_number(r, PD_NUMBER_EMBED_SCALE, 1);
    out->residual_scale = (float)read_number(r, PD_NUMBER_RESIDUAL_SCALE, 1);
    out->logit_scale = (float)(1 / read_number(r, PD_NUMBER_LOGIT_DIVISOR, 1));
}

/* ---- rotation ---- */

static bool equals(struct pd_string s, const char *text)
{
    return s.size == strlen(text) && memcmp(s.data, text, strlen(text)) == 0;
}

enum scaling { NO_SCALING, LINEAR, YARN, LONG, N_SCALINGS };

/* Files without a type may have a divisor. */
static enum scaling read_scaling(struct reader *r, bool *has_type)
{
    static const char *const names[N_SCALINGS] = {"none", "linear", "yarn", "longrope"};
    char key[KEY_SIZE];
    const struct pd_meta *m = find_key(r, "rope.scaling.type", key);
    struct pd_string type;
    *has_type = m != NULL;
    if (!m || r->status != PERIDOT_OK) return LINEAR;
    if (!pd_meta_string(&type, m, 0)) {
        r->status = pd_fail(PERIDOT_ERROR_FORMAT, "%s is not a string", key);
        return LINEAR;
    }
    for (int i = 0; i < N_SCALINGS; i++)
        if (equals(type, names[i])) return (enum scaling)i;
    r->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s is \"%.*s\", which is not known (known: none, linear, "
                        "yarn, longrope)",
                        key, (int)pd_min(type.size, 64), type.data);
    return LINEAR;
}

/* attention_factor of config.json, as llama.cpp's converter copies it: all that YaRN multiplies cos and sin by. 1 says
 * nothing, as files have it that were not converted. llama.cpp itself takes what follows from the divisor. */
static double read_whole_factor(struct reader *r, enum scaling scaling)
{
    static const char name[] = "rope.scaling.yarn_attn_factor";
    char key[KEY_SIZE];
    if (!find_key(r, name, key)) return 1;
    double value = read_float(r, name, key);
    if (r->status == PERIDOT_OK && scaling != YARN && value != 1)
        r->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s is %g: only 1 is supported without YaRN", key, value);
    else if (r->status == PERIDOT_OK) check_number(r, PD_NUMBER_ATTN_FACTOR, value, key);
    return value;
}

/* Ollama's converter leaves the divisor out, which Gemma 3's models that see have: those of 4B, 12B and 27B. */
static double usual_divisor(const struct reader *r, uint32_t n_layers)
{
    char key[KEY_SIZE];
    const bool sees = r->family == &pd_families[PD_GEMMA3] && find_key(r, "vision.block_count", key);
    return sees && (n_layers == 34 || n_layers == 48 || n_layers == 62) ? 8 : 1;
}

/* The rule of layers without a window. What multiplies cos and sin is computed as llama.cpp does. */
static void read_rope_rule(struct reader *r, struct pd_rope *rope, uint32_t n_layers)
{
    char key[KEY_SIZE];
    bool has_type;
    enum scaling scaling = read_scaling(r, &has_type);
    bool needs_divisor = has_type && scaling != LONG;
    if (scaling != NO_SCALING)
        rope->divisor = read_number(r, PD_NUMBER_ROPE_FACTOR, needs_divisor ? NAN : usual_divisor(r, n_layers));
    rope->old_ctx = read_number(r, PD_NUMBER_OLD_CTX, rope->old_ctx);
    rope->attn_factor = read_number(r, PD_NUMBER_ATTN_FACTOR, 1);
    find_key(r, pd_numbers[PD_NUMBER_ATTN_FACTOR].gguf, key);
    if (r->family->local_rope && rope->attn_factor != 1 && r->status == PERIDOT_OK)
        r->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s is %g: only 1 is supported in a %s model", key,
                            rope->attn_factor, r->family->name);
    double whole = read_whole_factor(r, scaling);
    if (scaling != YARN) return;
    rope->beta_fast = read_number(r, PD_NUMBER_BETA_FAST, 32);
    rope->beta_slow = read_number(r, PD_NUMBER_BETA_SLOW, 1);
    rope->exact_ramp = r->family->exact_ramp;
    rope->yarn_weight = read_number(r, PD_NUMBER_MSCALE_ALL_DIM, 0);
    double usual = pd_rope_yarn_factor(rope);
    rope->attn_factor *= whole == 1 || (float)whole == (float)usual ? usual : whole;
    if (r->status == PERIDOT_OK) check_number(r, PD_NUMBER_ATTN_FACTOR, rope->attn_factor, key);
    find_key(r, "rope.scaling.type", key);
    if (r->status == PERIDOT_OK) r->status = pd_rope_check_yarn(rope, key);
}

static void read_ropes(struct reader *r, struct pd_config *out)
{
    struct pd_rope *global = &out->ropes[PD_ROPE_GLOBAL], *local = &out->ropes[PD_ROPE_LOCAL];
    char key[KEY_SIZE];
    *global = (struct pd_rope){.base = read_number(r, PD_NUMBER_ROPE_BASE, r->family->rope_base), .divisor = 1,
        .rotated_part = r->family->rotated_part, .old_ctx = out->ctx_max, .attn_factor = 1};
    read_rope_rule(r, global, out->n_layers);
    out->query_growth = read_number(r, PD_NUMBER_QUERY_GROWTH, 0);
    find_key(r, pd_numbers[PD_NUMBER_QUERY_GROWTH].gguf, key);
    if (out->query_growth != 0 && !r->family->query_growth && r->status == PERIDOT_OK)
        r->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s is %g: queries of a %s model do not grow", key,
                            out->query_growth, r->family->name);
    /* Gemma 2's local layers rotate like its global ones; Gemma 3's have a base of their own and no rule. */
    *local = *global;
    double base = r->family->rope_base_local > 0 ? r->family->rope_base_local : global->base;
    if (r->family->local_rope)
        *local = (struct pd_rope){.base = read_number(r, PD_NUMBER_ROPE_BASE_LOCAL, base), .divisor = 1,
            .old_ctx = out->ctx_max, .attn_factor = 1};
}

/* Whether any layer is rotated, which the key says of Granite, and of no other family. */
static bool is_rotated(struct reader *r)
{
    char key[KEY_SIZE];
    const struct pd_meta *m = find_key(r, "rope.scaling.finetuned", key);
    bool rotated = true;
    if (r->family->gguf_rotated && m && !pd_meta_bool(&rotated, m, 0) && r->status == PERIDOT_OK)
        r->status = pd_fail(PERIDOT_ERROR_FORMAT, "%s is not true or false", key);
    return rotated;
}

/* ---- layers ---- */

/* Which layers have a window: by an array, or all but every n-th. */
static peridot_status read_windows(struct reader *r, struct pd_config *out)
{
    char key[KEY_SIZE];
    const struct pd_meta *m = find_key(r, pd_numbers[PD_NUMBER_PATTERN].gguf, key);
    bool is_array = m && m->type == PD_META_ARRAY;
    int64_t usual = r->family->gguf_window ? (int64_t)r->family->gguf_window : -1;
    if (r->family->gguf_all_windows)
        for (uint32_t i = 0; i < out->n_layers; i++)
            out->layers[i].window = read_layer_uint(r, PD_NUMBER_WINDOW, i, 0);
    if (!r->family->window_pattern && !(r->family->late_windows && is_array)) return r->status;
    if (is_array && m->n != out->n_layers)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s has %llu entries for %u layers", key, (unsigned long long)m->n,
                       out->n_layers);
    uint32_t pattern = is_array ? 0 : read_uint(r, PD_NUMBER_PATTERN, r->family->window_pattern);
    PD_TRY(r->status);
    for (uint32_t i = 0; i < out->n_layers; i++) {
        bool local = pattern && !pd_family_is_nth(r->family, pattern, i, out->n_layers);
        if (is_array && !pd_meta_bool(&local, m, i))
            return pd_fail(PERIDOT_ERROR_FORMAT, "%s is not an array of booleans", key);
        if (!local) continue;
        out->layers[i].window = read_layer_uint(r, PD_NUMBER_WINDOW, i, usual);
        PD_TRY(r->status);
        find_key(r, pd_numbers[PD_NUMBER_WINDOW].gguf, key);
        if (out->layers[i].window == 0)
            return pd_fail(PERIDOT_ERROR_FORMAT, "%s is 0, but layer %u has a window", key, i);
    }
    return PERIDOT_OK;
}

static peridot_status read_rule(struct reader *r, struct pd_delta *out)
{
    char key[KEY_SIZE];
    uint64_t inner = 0;
    *out = (struct pd_delta){.n_k = read_uint(r, PD_NUMBER_DELTA_K_HEADS, -1),
        .n_v = read_uint(r, PD_NUMBER_DELTA_V_HEADS, -1), .d_k = read_uint(r, PD_NUMBER_DELTA_K_DIM, -1),
        .conv = read_uint(r, PD_NUMBER_CONV, -1), .mamba = r->family->mamba};
    PD_TRY(r->status);
    const struct pd_meta *m = find_key(r, "ssm.inner_size", key);
    if (!m || !pd_meta_uint(&inner, m, 0) || inner % out->n_v != 0)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s is not a count that %u value heads share evenly", key, out->n_v);
    PD_TRY(pd_number_check(PD_NUMBER_DELTA_V_DIM, (double)(inner / out->n_v), "a value head by ssm.inner_size"));
    out->d_v = (uint32_t)(inner / out->n_v);
    return PERIDOT_OK;
}

/* Layers with recurrences in place of attention: by an array, or all but every n-th. */
static peridot_status read_recurrences(struct reader *r, struct pd_config *out)
{
    char key[KEY_SIZE], fused[PD_TENSOR_NAME_SIZE];
    struct pd_delta delta;
    const struct pd_meta *types = find_key(r, "attention.recurrent_layers", key);
    bool recurs;
    if (types && (types->type != PD_META_ARRAY || types->n != r->n_layers || !pd_meta_bool(&recurs, types, 0)))
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s is not an array of booleans, one for each of %u layers", key,
                       r->n_layers);
    uint32_t interval = types ? 1 : read_uint(r, PD_NUMBER_FULL_INTERVAL, 4);
    PD_TRY(read_rule(r, &delta));
    for (uint32_t i = 0; i < out->n_layers; i++) {
        recurs = (i + 1) % interval != 0;
        if (types) pd_meta_bool(&recurs, types, i);
        snprintf(fused, sizeof fused, "blk.%u.ssm_in.weight", (unsigned)i);
        delta.fused_qkvz = r->family->grouped_values && pd_checkpoint_find(r->checkpoint, fused);
        if (recurs) out->layers[i].delta = delta;
    }
    const struct pd_meta *m = find_key(r, "rope.dimension_sections", key);
    for (uint32_t i = 0; m && i < 3; i++) {
        uint64_t n = 0;
        if (m->type != PD_META_ARRAY || m->n < 3 || !pd_meta_uint(&n, m, i) || n > PD_MAX_PAIRS)
            return pd_fail(PERIDOT_ERROR_FORMAT, "%s is not three counts of pairs", key);
        out->rope_sections[i] = (uint32_t)n;
    }
    return pd_layers_check_recurrences(out, "metadata");
}

/* Layers without keys are short convolutions, or Mamba-2's recurrences. */
static peridot_status read_keyless(struct reader *r, struct pd_config *out)
{
    char key[KEY_SIZE], bias[PD_TENSOR_NAME_SIZE];
    struct pd_delta delta;
    if (r->family->mamba) PD_TRY(read_rule(r, &delta));
    else delta = (struct pd_delta){.conv = read_uint(r, PD_NUMBER_SHORT_CONV, -1), .n_channels = out->d_model};
    const struct pd_meta *m = find_key(r, pd_numbers[PD_NUMBER_KV_HEADS].gguf, key);
    bool is_array = m && m->type == PD_META_ARRAY && m->n == r->n_layers;
    uint64_t n = 1;
    PD_TRY(r->status);
    for (uint32_t i = 0; is_array && i < out->n_layers; i++) {
        if (!pd_meta_uint(&n, m, i) || n != 0) continue;
        pd_tensor_name_gguf(bias, PD_ROLE_DELTA_CONV_BIAS, i, out->family);
        delta.conv_bias = delta.mamba && pd_checkpoint_find(r->checkpoint, bias);
        out->layers[i].delta = delta;
    }
    return pd_layers_check_recurrences(out, "metadata");
}

static peridot_status check_heads(const struct reader *r, const struct pd_layer *l)
{
    char key[KEY_SIZE];
    find_key(r, pd_numbers[PD_NUMBER_KV_HEADS].gguf, key);
    if (l->n_heads % l->n_kv_heads == 0) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_FORMAT, "%s: %u query heads cannot share %u kv heads evenly", key, l->n_heads,
                   l->n_kv_heads);
}

/* Other sizes of a head, which must be head_dim where they are said. */
static peridot_status check_head_size(struct reader *r, const char *name, uint32_t i, uint32_t head_dim,
                                      const char *what)
{
    char key[KEY_SIZE];
    const struct pd_meta *m = find_key(r, name, key);
    uint64_t value = 0;
    bool is_array = m && m->type == PD_META_ARRAY;
    if (!m) return PERIDOT_OK;
    if ((is_array && m->n != r->n_layers) || !pd_meta_uint(&value, m, is_array ? i : 0))
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s is not a count", key);
    if (value == head_dim) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: %llu of %u columns per head %s: only all are supported", key,
                   (unsigned long long)value, head_dim, what);
}

static peridot_status read_n_rotated(struct reader *r, struct pd_layer *l, uint32_t i, const char *name)
{
    char key[KEY_SIZE];
    const struct pd_meta *m = find_key(r, name, key);
    uint64_t value = l->head_dim;
    if (!r->family->partial_rope) return check_head_size(r, name, i, l->head_dim, "are rotated");
    if (m && (m->type == PD_META_ARRAY || !pd_meta_uint(&value, m, 0)))
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s is not a count", key);
    if (value < 2 || value > l->head_dim || value % 2 != 0)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s is %llu, not an even number up to the %u columns of a head", key,
                       (unsigned long long)value, l->head_dim);
    l->n_rotated = (uint32_t)value;
    return PERIDOT_OK;
}

/* Files tell of a layer without experts by having no router. */
static peridot_status read_experts(struct reader *r, struct pd_layer *l, uint32_t i)
{
    char key[KEY_SIZE], router[PD_TENSOR_NAME_SIZE];
    pd_tensor_name_gguf(router, PD_ROLE_ROUTER, i, PD_TEST_FAMILY);
    l->n_experts = read_uint(r, PD_NUMBER_EXPERTS, 0);
    if (!r->family->experts_beside && !pd_checkpoint_find(r->checkpoint, router)) l->n_experts = 0;
    if (!l->n_experts) return r->status;
    l->n_experts_used = read_uint(r, PD_NUMBER_EXPERTS_USED, -1);
    l->expert_dim = read_uint(r, r->family->ffn_is_experts ? PD_NUMBER_FFN_DIM : PD_NUMBER_EXPERT_DIM, -1);
    l->raw_routes = r->family->raw_routes;
    if (r->family->sigmoid_routes) {
        read_uint(r, PD_NUMBER_GATING, 2);
        read_number(r, PD_NUMBER_ROUTE_SCALE, 1);
    }
    PD_TRY(r->status);
    find_key(r, pd_numbers[PD_NUMBER_EXPERTS_USED].gguf, key);
    return pd_layer_set_experts(l, r->family, key);
}

static peridot_status read_layer(struct reader *r, struct pd_config *out, uint32_t i)
{
    struct pd_layer *l = &out->layers[i];
    char key[KEY_SIZE];
    l->ffn_dim = read_layer_uint(r, r->family->shared_expert ? PD_NUMBER_SHARED_EXPERT_DIM : PD_NUMBER_FFN_DIM, i, -1);
    if (r->family->experts) PD_TRY(read_experts(r, l, i));
    if (pd_layer_recurs(l)) return r->status;
    l->n_heads = read_layer_uint(r, PD_NUMBER_HEADS, i, -1);
    l->n_kv_heads = read_layer_uint(r, PD_NUMBER_KV_HEADS, i, l->n_heads);
    PD_TRY(r->status);
    PD_TRY(check_heads(r, l));
    if (!find_key(r, pd_numbers[PD_NUMBER_HEAD_DIM].gguf, key) && out->d_model % l->n_heads != 0)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s is missing, and %u columns cannot be shared evenly by %u heads", key,
                       out->d_model, l->n_heads);
    l->head_dim = read_layer_uint(r, PD_NUMBER_HEAD_DIM, i, out->d_model / l->n_heads);
    bool local = l->window && find_key(r, pd_numbers[PD_NUMBER_HEAD_DIM_LOCAL].gguf, key);
    if (local) l->head_dim = read_layer_uint(r, PD_NUMBER_HEAD_DIM_LOCAL, i, -1);
    PD_TRY(r->status);
    PD_TRY(read_n_rotated(r, l, i, local ? "rope.dimension_count_swa" : "rope.dimension_count"));
    PD_TRY(check_head_size(r, local ? "attention.value_length_swa" : "attention.value_length", i, l->head_dim,
                           "are values"));
    l->query_scale = (float)read_number(r, PD_NUMBER_QUERY_SCALE, (double)pd_layer_usual_scale(out, l));
    return r->status;
}

/* ---- keys that would change the maths ---- */

static peridot_status refuse_unknown(struct reader *r)
{
    enum { MULTIPLIERS = 5, LOGIT_SCALE = 7 };   /* from here on */
    /* and the one value that changes nothing */
    static const struct { const char *name; double neutral; } numbers[] = {
        {"rope.scale_linear", 1}, {"rope.scaling.yarn_ext_factor", 1}, {"attention.temperature_length", 0},
        {"attention.clamp_kqv", 0}, {"attention.max_alibi_bias", 0},
        [MULTIPLIERS] = {"embedding_scale", 1}, {"residual_scale", 1}, [LOGIT_SCALE] = {"logit_scale", 1}};
    size_t n = r->family->multipliers ? MULTIPLIERS : r->family->logit_scale != 0 ? LOGIT_SCALE : PD_COUNT(numbers);
    char key[KEY_SIZE];
    for (size_t i = 0; i < n; i++) {
        double value = read_float(r, numbers[i].name, key);
        PD_TRY(r->status);
        if (find_key(r, numbers[i].name, key) && value != numbers[i].neutral)
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s is %g: only %g is supported", key, value, numbers[i].neutral);
    }
    const struct pd_meta *m = find_key(r, pd_numbers[PD_NUMBER_EXPERTS].gguf, key);
    uint64_t n_experts = 0;
    if (m && !pd_meta_uint(&n_experts, m, 0)) return pd_fail(PERIDOT_ERROR_FORMAT, "%s is not a count", key);
    if (n_experts && !r->family->experts)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s is %llu: only 0 is supported in a %s model", key,
                       (unsigned long long)n_experts, r->family->name);
    m = find_key(r, "attention.causal", key);
    bool causal;
    if (m && (!pd_meta_bool(&causal, m, 0) || causal == r->family->embeds))
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s is not %s: attention %s is not supported in a %s model", key,
                       r->family->embeds ? "false" : "true",
                       r->family->embeds ? "to earlier tokens alone" : "to later tokens", r->family->name);
    m = find_key(r, "hidden_activation", key);
    struct pd_string act = {"?", 1};
    char name[32];
    if (!m) return PERIDOT_OK;
    pd_meta_string(&act, m, 0);
    snprintf(name, sizeof name, "%.*s", (int)pd_min(act.size, sizeof name - 1), act.data);
    if (pd_family_has_activation(r->family, name)) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: activation \"%s\" is not supported in a %s model", key, name,
                   r->family->name);
}

/* Whether files have the keys that are the family's, where names do not decide. */
static bool has_own_keys(const struct pd_checkpoint *c, const struct pd_family_traits *family)
{
    const struct reader r = {.checkpoint = c, .family = family};
    char key[KEY_SIZE];
    uint64_t n_experts = 0;
    const struct pd_meta *m = find_key(&r, pd_numbers[PD_NUMBER_EXPERTS].gguf, key);
    if (family->gguf_by_experts && !(m && pd_meta_uint(&n_experts, m, 0) && n_experts)) return false;
    return !family->gguf_by_window || find_key(&r, pd_numbers[PD_NUMBER_WINDOW].gguf, key);
}

static peridot_status find_family(struct pd_config *out, const struct pd_checkpoint *c)
{
    const struct pd_meta *m = pd_checkpoint_find_meta(c, "general.architecture");
    struct pd_string name;
    if (!m || !pd_meta_string(&name, m, 0))
        return pd_fail(PERIDOT_ERROR_FORMAT, "metadata key general.architecture is %s", m ? "not a string" : "missing");
    for (int i = 0; i < PD_N_FAMILIES; i++) {
        if (!equals(name, pd_families[i].name) || !has_own_keys(c, &pd_families[i])) continue;
        out->family = (enum pd_family)i;
        return PERIDOT_OK;
    }
    const char *obstacle = pd_family_obstacle(name.data, (size_t)name.size);
    if (obstacle)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "metadata key general.architecture is \"%.*s\": such a model has %s, "
                       "which Peridot does not compute", (int)name.size, name.data, obstacle);
    char known[PD_NAMES_SIZE];
    pd_family_names(known);
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "metadata key general.architecture is \"%.*s\", which is not known "
                   "(known: %s)", (int)pd_min(name.size, 64), name.data, known);
}

/* Of the files that are no models. */
static peridot_status check_type(const struct pd_checkpoint *c)
{
    const struct pd_meta *m = pd_checkpoint_find_meta(c, "general.type");
    struct pd_string s;
    if (!m || !pd_meta_string(&s, m, 0) || s.size != 7 || memcmp(s.data, "adapter", 7) != 0) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "an adapter, which is given beside its model (--lora)");
}

/* Names of the labels that a reranker's head scores, which is in the place of the output matrix. */
static peridot_status read_head(struct pd_config *out, const struct reader *r)
{
    char key[KEY_SIZE];
    struct pd_string label;
    const struct pd_meta *m = find_key(r, "classifier.output_labels", key);
    if (r->family->embeds || !pd_checkpoint_find(r->checkpoint, "cls.output.weight")) return PERIDOT_OK;
    out->head = PERIDOT_HEAD_SEQUENCE;
    out->final_softcap = 0;   /* both belong to the language head */
    out->logit_scale = 1;
    if (!m || m->n == 0) return PERIDOT_OK;
    if (m->n > MAX_LABELS)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s has more than %d labels", key, MAX_LABELS);
    out->labels = calloc((size_t)m->n, sizeof *out->labels);
    if (!out->labels) return pd_fail_alloc((size_t)m->n * sizeof *out->labels, "labels");
    out->n_labels = (uint32_t)m->n;
    for (uint32_t i = 0; i < out->n_labels; i++) {
        if (!pd_meta_string(&label, m, i)) return pd_fail(PERIDOT_ERROR_FORMAT, "%s has a label that is no text", key);
        out->labels[i] = calloc((size_t)label.size + 1, 1);
        if (!out->labels[i]) return pd_fail_alloc((size_t)label.size + 1, "label");
        memcpy(out->labels[i], label.data, (size_t)label.size);
    }
    return PERIDOT_OK;
}

/* Blocks at the end that draft tokens for the others, and are not computed. */
static void leave_out_nextn(struct reader *r, struct pd_config *out)
{
    char key[KEY_SIZE];
    const struct pd_meta *m = find_key(r, "nextn_predict_layers", key);
    uint64_t n = 0;
    if (!r->family->recurrences || !m || r->status != PERIDOT_OK) return;
    if (!pd_meta_uint(&n, m, 0) || n >= out->n_layers)
        r->status = pd_fail(PERIDOT_ERROR_FORMAT, "%s is not a count below that of the layers, %u", key, out->n_layers);
    else out->n_nextn = (uint32_t)n;
    out->n_layers -= out->n_nextn;
}

peridot_status pd_config_read_gguf(struct pd_config *out, const struct pd_checkpoint *c)
{
    PD_TRY(check_type(c));
    PD_TRY(find_family(out, c));
    const struct pd_family_traits *family = &pd_families[out->family];
    struct reader r = {.checkpoint = c, .family = family};
    char key[KEY_SIZE];
    struct pd_string name;
    const struct pd_meta *m = pd_checkpoint_find_meta(c, "general.name");
    if (m && pd_meta_string(&name, m, 0))
        pd_utf8_escape(out->name, sizeof out->name, name.data, (size_t)name.size);

    PD_TRY(refuse_unknown(&r));
    out->n_layers = read_uint(&r, PD_NUMBER_LAYERS, -1);
    leave_out_nextn(&r, out);
    out->d_model = read_uint(&r, PD_NUMBER_D_MODEL, -1);
    out->ctx_max = read_uint(&r, PD_NUMBER_CTX, -1);
    if (find_key(&r, pd_numbers[PD_NUMBER_VOCAB_SIZE].gguf, key))
        out->vocab_size = read_uint(&r, PD_NUMBER_VOCAB_SIZE, -1);
    out->eps = (float)read_number(&r, PD_NUMBER_EPS, family->gguf_eps != 0 ? family->gguf_eps : NAN);
    out->attn_softcap = read_softcap(&r, PD_NUMBER_ATTN_SOFTCAP, family->attn_softcap, family->attn_softcap != 0);
    out->final_softcap = read_softcap(&r, PD_NUMBER_FINAL_SOFTCAP, family->final_softcap, family->final_softcap_known);
    out->tied = pd_checkpoint_find(c, "output.weight") == NULL;
    out->n_shared_kv = read_uint(&r, PD_NUMBER_SHARED_KV, 0);
    if (family->per_layer_inputs) out->per_layer_dim = read_uint(&r, PD_NUMBER_PER_LAYER_DIM, 0);
    if (family->multipliers) read_multipliers(&r, out);
    /* As Muse Glimmer's files are described: none was at hand. They have no key for the post norms' eps. */
    if (family->logit_scale != 0) out->logit_scale = (float)read_number(&r, PD_NUMBER_LOGIT_SCALE, NAN);
    out->post_eps = (float)family->post_eps;
    if (family->drafts) out->target_dim = read_uint(&r, PD_NUMBER_TARGET_DIM, -1);
    read_ropes(&r, out);
    PD_TRY(r.status);
    PD_TRY(read_head(out, &r));

    r.n_layers = out->n_layers + out->n_nextn;
    PD_TRY(pd_layers_create(out));
    PD_TRY(family->recurrences ? read_recurrences(&r, out)
               : family->short_convs || family->mamba ? read_keyless(&r, out)
                                                      : read_windows(&r, out));
    bool rotated = is_rotated(&r);
    PD_TRY(r.status);
    for (uint32_t i = 0; i < out->n_layers; i++)
        out->layers[i].no_rope = !rotated || pd_rope_is_usually_absent(out, i);
    for (uint32_t i = 0; i < out->n_layers; i++) PD_TRY(read_layer(&r, out, i));
    return PERIDOT_OK;
}

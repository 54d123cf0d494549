/* What config.json says of layers: their windows, or what they have in place of attention, their sizes, and their
 * experts. */
#include "arch/arch.h"
#include "arch/arch_.h"
#include "base/base.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_WINDOW = 4096 };

/* ---- windows ---- */

/* What transformers ignores in the family's files must not say anything else. */
static uint32_t read_pattern(struct pd_hf_reader *r)
{
    char full[PD_HF_KEY_SIZE];
    static const char hidden[] = "_sliding_window_pattern";
    uint32_t usual = r->family->window_pattern, pattern = pd_hf_uint(r, PD_NUMBER_PATTERN, usual ? usual : 1);
    yyjson_val *v = pd_hf_member(r->config.at, hidden);
    bool known = r->family->own_pattern && yyjson_obj_get(r->config.at, pd_numbers[PD_NUMBER_PATTERN].hf);
    if (r->status != PERIDOT_OK || !usual) return pattern;
    if (!known && pattern != usual)
        r->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s is %u: it is always %u in a %s model",
                            pd_hf_key(full, r->config, pd_numbers[PD_NUMBER_PATTERN].hf), pattern, usual,
                            r->family->name);
    else if (v && !(yyjson_is_uint(v) && yyjson_get_uint(v) == pattern))
        r->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s is not %u, and there are no layer_types",
                            pd_hf_key(full, r->config, hidden), pattern);
    return pattern;
}

/* The first layer that has a window, where all after it have one as well; UINT32_MAX: none may have one. */
static uint32_t read_first_window(struct pd_hf_reader *r)
{
    yyjson_val *use = pd_hf_member(r->config.at, "use_sliding_window");
    if (use && !yyjson_is_bool(use)) pd_hf_fail_type(r, r->config, "use_sliding_window", "true or false");
    bool none = !yyjson_is_true(use) || yyjson_is_null(yyjson_obj_get(r->config.at, "sliding_window"));
    return none || !r->family->late_windows ? UINT32_MAX : pd_hf_uint(r, PD_NUMBER_FULL_LAYERS, 28);
}

/* Whether a layer has a window: by the name of its type. */
static bool read_type(struct pd_hf_reader *r, yyjson_val *type, uint32_t i, bool known)
{
    const char *name = yyjson_get_str(type);
    bool local = name && strcmp(name, "sliding_attention") == 0;
    if (!name || (!local && strcmp(name, "full_attention") != 0))
        r->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "config.json: %slayer_types[%u] is \"" PD_NAME "\", which is "
                            "not known", r->config.prefix, i, name ? name : yyjson_get_type_desc(type));
    else if (local && !known)
        r->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED,
                            "config.json: %slayer_types[%u] is \"%s\", which a %s model does not have%s",
                            r->config.prefix, i, name, r->family->name,
                            r->family->late_windows ? " unless use_sliding_window is true" : "");
    return local;
}

static void read_window(struct pd_hf_reader *r, struct pd_layer *l, uint32_t i)
{
    yyjson_val *v = yyjson_obj_get(r->config.at, "sliding_window");
    uint32_t usual = r->type->window ? r->type->window : DEFAULT_WINDOW;
    l->window = yyjson_is_null(v) ? 0 : pd_hf_layer_uint(r, PD_NUMBER_WINDOW, i, usual);
    if (r->status == PERIDOT_OK && l->window == 0)
        r->status = pd_fail(PERIDOT_ERROR_FORMAT, "config.json: %ssliding_window is %s, but layer %u has a window",
                            r->config.prefix, yyjson_is_null(v) ? "null" : "0", i);
}

/* null means none. */
static peridot_status read_all_windows(struct pd_hf_reader *r, struct pd_config *out)
{
    yyjson_val *v = yyjson_obj_get(r->config.at, pd_numbers[PD_NUMBER_WINDOW].hf);
    for (uint32_t i = 0; i < out->n_layers; i++)
        out->layers[i].window = yyjson_is_null(v) ? 0 : pd_hf_layer_uint(r, PD_NUMBER_WINDOW, i, r->type->window);
    return r->status;
}

/* ---- what stands in the place of attention ---- */

/* Whether layer_types names a layer with a state-space block, as published files do, or as transformers 5 does. */
static bool names_mamba(yyjson_val *type)
{
    return yyjson_equals_str(type, "mamba") || yyjson_equals_str(type, "linear_attention");
}

bool pd_hf_has_mamba(yyjson_val *config)
{
    yyjson_val *types = pd_hf_member(config, "layer_types"), *type;
    size_t i, n;
    yyjson_arr_foreach(types, i, n, type)
        if (names_mamba(type)) return true;
    return false;
}

/* Steps are not clamped: a limit of 0 and of no number (Infinity, as an object) says so. */
static bool clamps_steps(yyjson_val *limit)
{
    return limit && (yyjson_get_num(yyjson_arr_get(limit, 0)) != 0 || yyjson_is_num(yyjson_arr_get(limit, 1)));
}

static peridot_status read_mamba(struct pd_hf_reader *r, struct pd_delta *out, uint32_t d_model)
{
    yyjson_val *head_dim = pd_hf_member(r->config.at, "mamba_d_head"), *bias;
    uint32_t inner = d_model * pd_hf_uint(r, PD_NUMBER_MAMBA_EXPAND, 2);
    char key[PD_HF_KEY_SIZE];
    *out = (struct pd_delta){.mamba = true, .n_k = pd_hf_uint(r, PD_NUMBER_MAMBA_GROUPS, 1),
        .n_v = pd_hf_uint(r, PD_NUMBER_MAMBA_HEADS, 128), .d_k = pd_hf_uint(r, PD_NUMBER_MAMBA_STATE, 256),
        .conv = pd_hf_uint(r, PD_NUMBER_MAMBA_CONV, 4)};
    bias = pd_hf_member(r->config.at, "mamba_conv_bias");
    out->conv_bias = !bias || yyjson_is_true(bias);
    PD_TRY(r->status);
    if (!head_dim || yyjson_equals_str(head_dim, "auto")) out->d_v = inner / out->n_v;
    else out->d_v = pd_hf_uint(r, PD_NUMBER_MAMBA_HEAD_DIM, 0);
    PD_TRY(r->status);
    if (out->d_v * out->n_v != inner)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: %u heads of %u columns are not mamba_expand times hidden_size",
                       pd_hf_key(key, r->config, "mamba_d_head"), out->n_v, out->d_v);
    PD_TRY(pd_number_check(PD_NUMBER_MAMBA_HEAD_DIM, out->d_v, pd_hf_key(key, r->config, "mamba_d_head")));
    if (yyjson_is_true(pd_hf_member(r->config.at, "mamba_proj_bias")))
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s is true, which is not supported",
                       pd_hf_key(key, r->config, "mamba_proj_bias"));
    if (clamps_steps(pd_hf_member(r->config.at, "time_step_limit")))
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s is not from 0 to infinity, which alone is supported",
                       pd_hf_key(key, r->config, "time_step_limit"));
    return PERIDOT_OK;
}

/* Of a family whose layers may be state-space blocks, or not be rotated. */
static peridot_status read_hybrid(struct pd_hf_reader *r, struct pd_config *out)
{
    yyjson_val *types = pd_hf_member(r->config.at, "layer_types");
    const char *positions = yyjson_get_str(pd_hf_member(r->config.at, "position_embedding_type"));
    struct pd_delta mamba = {0};
    if (r->family->mamba) PD_TRY(read_mamba(r, &mamba, out->d_model));
    for (uint32_t i = 0; i < out->n_layers; i++) {
        yyjson_val *type = yyjson_arr_get(types, i);
        bool attends = yyjson_equals_str(type, "attention") || yyjson_equals_str(type, "full_attention");
        if (!attends && !names_mamba(type))
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "config.json: %slayer_types[%u] is neither \"attention\" nor "
                           "\"mamba\"", r->config.prefix, i);
        if (attends) out->layers[i].no_rope = !positions || strcmp(positions, "rope") != 0;
        else out->layers[i].delta = mamba;
    }
    return pd_layers_check_recurrences(out, "config.json");
}

static peridot_status read_rope_sections(struct pd_hf_reader *r, struct pd_config *out)
{
    static const char *const keys[] = {"rope_parameters", "rope_scaling"};
    for (size_t k = 0; k < PD_COUNT(keys); k++) {
        yyjson_val *list = yyjson_obj_get(pd_hf_member(r->config.at, keys[k]), "mrope_section");
        for (size_t i = 0; list && i < 3; i++) {
            yyjson_val *v = yyjson_arr_get(list, i);
            if (yyjson_arr_size(list) != 3 || !yyjson_is_uint(v) || yyjson_get_uint(v) > PD_MAX_PAIRS)
                return pd_fail(PERIDOT_ERROR_FORMAT, "config.json: %s%s.mrope_section is not three counts of pairs",
                               r->config.prefix, keys[k]);
            out->rope_sections[i] = (uint32_t)yyjson_get_uint(v);
        }
    }
    return PERIDOT_OK;
}

/* Layers with recurrences in place of attention: by name, or all but every n-th. */
static peridot_status read_recurrences(struct pd_hf_reader *r, struct pd_config *out)
{
    yyjson_val *types = pd_hf_member(r->config.at, "layer_types");
    uint32_t interval = types ? 1 : pd_hf_uint(r, PD_NUMBER_FULL_INTERVAL, 4);
    struct pd_delta delta = {.n_k = pd_hf_uint(r, PD_NUMBER_DELTA_K_HEADS, 16),
        .n_v = pd_hf_uint(r, PD_NUMBER_DELTA_V_HEADS, 32), .d_k = pd_hf_uint(r, PD_NUMBER_DELTA_K_DIM, 128),
        .d_v = pd_hf_uint(r, PD_NUMBER_DELTA_V_DIM, 128), .conv = pd_hf_uint(r, PD_NUMBER_CONV, 4),
        .fused_qkvz = r->family->grouped_values};
    if (types && !yyjson_is_arr(types)) pd_hf_fail_type(r, r->config, "layer_types", "a list");
    PD_TRY(r->status);
    if (types && yyjson_arr_size(types) != out->n_layers)
        return pd_fail(PERIDOT_ERROR_FORMAT, "config.json: %slayer_types has %zu entries for %u layers",
                       r->config.prefix, yyjson_arr_size(types), out->n_layers);
    for (uint32_t i = 0; i < out->n_layers; i++) {
        const char *name = types ? yyjson_get_str(yyjson_arr_get(types, i)) : NULL;
        bool recurs = types ? name && strcmp(name, "linear_attention") == 0 : (i + 1) % interval != 0;
        if (types && !recurs && (!name || strcmp(name, "full_attention") != 0))
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "config.json: %slayer_types[%u] is \"" PD_NAME "\", which is not "
                           "known", r->config.prefix, i, name ? name : "not a string");
        if (recurs) out->layers[i].delta = delta;
    }
    PD_TRY(read_rope_sections(r, out));
    return pd_layers_check_recurrences(out, "config.json");
}

/* Layers with short convolutions: by name, or all but those that are numbered. */
static peridot_status read_short_convs(struct pd_hf_reader *r, struct pd_config *out)
{
    yyjson_val *types = pd_hf_member(r->config.at, "layer_types"), *full = pd_hf_member(r->config.at, "full_attn_idxs");
    const struct pd_delta conv = {.conv = pd_hf_uint(r, PD_NUMBER_SHORT_CONV, 3), .n_channels = out->d_model};
    char key[PD_HF_KEY_SIZE];
    if (types && !yyjson_is_arr(types)) pd_hf_fail_type(r, r->config, "layer_types", "a list");
    if (full && !yyjson_is_arr(full)) pd_hf_fail_type(r, r->config, "full_attn_idxs", "a list");
    PD_TRY(r->status);
    if (yyjson_is_true(pd_hf_member(r->config.at, "conv_bias")))
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s is true, which is not supported",
                       pd_hf_key(key, r->config, "conv_bias"));
    if (types && yyjson_arr_size(types) != out->n_layers)
        return pd_fail(PERIDOT_ERROR_FORMAT, "config.json: %slayer_types has %zu entries for %u layers",
                       r->config.prefix, yyjson_arr_size(types), out->n_layers);
    for (uint32_t i = 0; i < out->n_layers; i++) {
        const char *name = types ? yyjson_get_str(yyjson_arr_get(types, i)) : NULL;
        bool attends = types ? name && strcmp(name, "full_attention") == 0 : !full;
        if (types && !attends && (!name || strcmp(name, "conv") != 0))
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "config.json: %slayer_types[%u] is \"" PD_NAME "\", which is not "
                           "known", r->config.prefix, i, name ? name : "not a string");
        if (!attends) out->layers[i].delta = conv;
    }
    for (size_t k = 0; !types && k < yyjson_arr_size(full); k++) {
        yyjson_val *v = yyjson_arr_get(full, k);
        if (!yyjson_is_uint(v) || yyjson_get_uint(v) >= out->n_layers)
            return pd_fail(PERIDOT_ERROR_FORMAT, "%s[%zu] is not one of %u layers",
                           pd_hf_key(key, r->config, "full_attn_idxs"), k, out->n_layers);
        out->layers[yyjson_get_uint(v)].delta = (struct pd_delta){0};
    }
    return pd_layers_check_recurrences(out, "config.json");
}

/* LFM2's files say a width that is two thirds too large, unless they say that it is not, and then what it is multiplied
 * by and made a multiple of. */
static uint32_t short_conv_ffn_dim(struct pd_hf_reader *r)
{
    bool by_block = pd_hf_member(r->config.at, pd_numbers[PD_NUMBER_BLOCK_FFN_DIM].hf) != NULL;
    uint64_t n = pd_hf_uint(r, by_block ? PD_NUMBER_BLOCK_FFN_DIM : PD_NUMBER_FFN_DIM, r->family->hf.ffn_dim);
    double factor = pd_hf_member(r->config.at, pd_numbers[PD_NUMBER_FFN_MULTIPLIER].hf)
        ? pd_hf_number(r, r->config, PD_NUMBER_FFN_MULTIPLIER, 1) : 1;
    uint32_t multiple = pd_hf_uint(r, PD_NUMBER_FFN_MULTIPLE, 256);
    if (r->status != PERIDOT_OK || yyjson_is_false(pd_hf_member(r->config.at, "block_auto_adjust_ff_dim")))
        return (uint32_t)n;
    n = pd_div_up((uint64_t)(factor * (double)(2 * n / 3)), multiple) * multiple;
    r->status = pd_number_check(PD_NUMBER_FFN_DIM, (double)n, "the width that config.json's block_ff_dim comes to");
    return (uint32_t)n;
}

/* Which layers have a window: by name, all but every n-th, or the last ones. */
static peridot_status read_windows(struct pd_hf_reader *r, struct pd_config *out)
{
    bool by_types = r->type->window_types && pd_hf_member(r->config.at, "layer_types");
    if (r->family->hf_all_windows && !by_types) return read_all_windows(r, out);
    if (r->family->hf_shared_unit) return read_hybrid(r, out);
    if (r->family->recurrences) return read_recurrences(r, out);
    if (r->family->short_convs) return read_short_convs(r, out);
    uint32_t first = read_first_window(r);
    struct pd_hf_object types = {pd_hf_member(r->config.at, "layer_types"), ""};
    uint32_t usual = r->family->window_pattern, pattern = types.at ? usual : read_pattern(r);
    if (types.at && !yyjson_is_arr(types.at)) pd_hf_fail_type(r, r->config, "layer_types", "a list");
    PD_TRY(r->status);
    if (types.at && yyjson_arr_size(types.at) != out->n_layers)
        return pd_fail(PERIDOT_ERROR_FORMAT, "config.json: %slayer_types has %zu entries for %u layers",
                       r->config.prefix, yyjson_arr_size(types.at), out->n_layers);
    for (uint32_t i = 0; i < out->n_layers; i++) {
        bool local = types.at ? read_type(r, yyjson_arr_get(types.at, i), i, usual || by_types || first != UINT32_MAX)
            : usual           ? !pd_family_is_nth(r->family, pattern, i, out->n_layers)
                              : i >= first;
        PD_TRY(r->status);
        if (r->family->last_is_global && i + 1 == out->n_layers) local = false;
        if (local) read_window(r, &out->layers[i], i);
    }
    return r->status;
}

/* ---- sizes, experts ---- */

static uint32_t read_own(struct pd_hf_reader *r, enum pd_number number, uint32_t i, uint32_t usual)
{
    return pd_hf_member(r->config.at, pd_numbers[number].hf) ? pd_hf_layer_uint(r, number, i, usual) : usual;
}

/* per_layer_config: {"5": {"head_dim": 512}}. Whatever of a layer it might say, and only this is known. */
static peridot_status check_own_sizes(const struct pd_hf_reader *r, const struct pd_config *out)
{
    static const char *const known[] = {"head_dim", "num_key_value_heads"};
    yyjson_val *by_layer = pd_hf_member(r->config.at, "per_layer_config"), *index, *sizes, *key, *value;
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
static void read_own_sizes(struct pd_hf_reader *r, struct pd_config *out, uint32_t i)
{
    struct pd_layer *l = &out->layers[i];
    struct pd_hf_object all = r->config, by_layer = pd_hf_object(r, all, "per_layer_config", "per_layer_config.");
    bool shares = i >= out->n_layers - (uint32_t)pd_min(out->n_shared_kv, out->n_layers);
    bool keys_only = yyjson_is_true(pd_hf_member(r->config.at, "attention_k_eq_v"));
    char index[16];
    snprintf(index, sizeof index, "%u", i);
    if (by_layer.at) {
        r->config = (struct pd_hf_object){pd_hf_member(by_layer.at, index), "per_layer_config."};
        l->head_dim = read_own(r, PD_NUMBER_HEAD_DIM, i, 0);
        l->n_kv_heads = read_own(r, PD_NUMBER_KV_HEADS, i, l->n_kv_heads);
        r->config = all;
    } else if (!l->window) {
        l->head_dim = pd_hf_layer_uint(r, PD_NUMBER_HEAD_DIM_GLOBAL, i, 512);
        if (keys_only || r->family->embeds)
            l->n_kv_heads = read_own(r, PD_NUMBER_KV_HEADS_GLOBAL, i, l->n_kv_heads);
    }
    l->has_v = l->window || !keys_only;
    if (shares && yyjson_is_true(pd_hf_member(r->config.at, "use_double_wide_mlp"))) l->ffn_dim *= 2;
}

/* Whether layer i has experts: in the one family where config.json asks for them, or in all layers, or every n-th of
 * them but for those that are named. */
static bool has_experts(struct pd_hf_reader *r, uint32_t i)
{
    yyjson_val *dense = pd_hf_member(r->config.at, "mlp_only_layers");
    if (r->family->experts_beside) return yyjson_is_true(pd_hf_member(r->config.at, "enable_moe_block"));
    if (r->family->ffn_is_experts) return true;
    if (dense && !yyjson_is_arr(dense)) pd_hf_fail_type(r, r->config, "mlp_only_layers", "a list");
    if (r->family->sigmoid_routes) return i >= pd_hf_uint(r, PD_NUMBER_DENSE_LAYERS, 2);
    uint32_t step = pd_hf_uint(r, PD_NUMBER_SPARSE_STEP, 1);
    for (size_t k = 0; yyjson_is_arr(dense) && k < yyjson_arr_size(dense); k++) {
        yyjson_val *layer = yyjson_arr_get(dense, k);
        if (!yyjson_is_uint(layer)) pd_hf_fail_type(r, r->config, "mlp_only_layers", "a list of layers");
        else if (yyjson_get_uint(layer) == i) return false;
    }
    return r->status == PERIDOT_OK && (i + 1) % step == 0;
}

/* Defaults are those of the families' configuration classes, which differ where their keys do. */
static peridot_status read_experts(struct pd_hf_reader *r, struct pd_layer *l, uint32_t i)
{
    static const struct { enum pd_number n_experts, n_used; uint32_t usual, usually_used; } keys[] = {
        [PD_HF_EXPERTS_GEMMA] = {PD_NUMBER_EXPERTS, PD_NUMBER_EXPERTS_USED, 0, 0},
        [PD_HF_EXPERTS_QWEN] = {PD_NUMBER_EXPERTS, PD_NUMBER_EXPERTS_PER_TOKEN, 128, 8},
        [PD_HF_EXPERTS_MIXTRAL] = {PD_NUMBER_LOCAL_EXPERTS, PD_NUMBER_EXPERTS_PER_TOKEN, 8, 2},
        [PD_HF_EXPERTS_GRANITE] = {PD_NUMBER_LOCAL_EXPERTS, PD_NUMBER_EXPERTS_PER_TOKEN, 8, 2},
        [PD_HF_EXPERTS_GPT_OSS] = {PD_NUMBER_LOCAL_EXPERTS, PD_NUMBER_EXPERTS_PER_TOKEN, 128, 4},
        [PD_HF_EXPERTS_LFM2] = {PD_NUMBER_EXPERTS, PD_NUMBER_EXPERTS_PER_TOKEN, 32, 4}};
    enum pd_number n_experts = keys[r->family->hf_experts].n_experts, n_used = keys[r->family->hf_experts].n_used;
    bool next = r->family == &pd_families[PD_QWEN3_NEXT];
    uint32_t usual = r->family == &pd_families[PD_OLMOE] ? 64
        : next                                           ? 512
        : r->family->shared_gate                         ? 256
                                                         : keys[r->family->hf_experts].usual;
    uint32_t usual_dim = r->family->shared_gate ? 512 : r->family->sigmoid_routes ? 1792 : 768;
    /* config.json of transformers 5 may have the other name */
    if (usual && !pd_hf_member(r->config.at, pd_numbers[n_experts].hf))
        n_experts = n_experts == PD_NUMBER_EXPERTS ? PD_NUMBER_LOCAL_EXPERTS : PD_NUMBER_EXPERTS;
    yyjson_val *renorms = pd_hf_member(r->config.at, "norm_topk_prob");
    char key[PD_HF_KEY_SIZE];
    if (!has_experts(r, i) && next && r->status == PERIDOT_OK)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "config.json: %smlp_only_layers or decoder_sparse_step leaves layer "
                       "%u without experts, which is not supported in a %s model", r->config.prefix, i,
                       r->family->name);
    if (!has_experts(r, i)) return r->status;
    l->n_experts = pd_hf_uint(r, n_experts, usual);
    if (r->status != PERIDOT_OK || !l->n_experts) return r->status;
    l->n_experts_used = pd_hf_uint(r, n_used, next ? 10 : keys[r->family->hf_experts].usually_used);
    if (!r->family->ffn_is_experts) l->expert_dim = pd_hf_uint(r, PD_NUMBER_EXPERT_DIM, usual_dim);
    else l->expert_dim = r->family->shared_expert ? pd_hf_uint(r, PD_NUMBER_FFN_DIM, 11008) : l->ffn_dim;
    if (renorms && (r->family->hf_says_routes || r->family->sigmoid_routes) && !yyjson_is_bool(renorms))
        pd_hf_fail_type(r, r->config, "norm_topk_prob", "true or false");
    l->raw_routes = r->family->sigmoid_routes ? yyjson_is_false(renorms)
        : next ? yyjson_is_false(renorms) : r->family->hf_says_routes && !yyjson_is_true(renorms);
    if (r->family->sigmoid_routes) {
        pd_hf_number(r, r->config, PD_NUMBER_ROUTE_SCALE, 1);   /* only 1 is known */
        l->choice_biases = !yyjson_is_false(pd_hf_member(r->config.at, "use_expert_bias"));
    }
    l->experts_split = r->family->hf_experts != PD_HF_EXPERTS_GEMMA && r->family->hf_experts != PD_HF_EXPERTS_GRANITE;
    PD_TRY(r->status);
    return pd_layer_set_experts(l, r->family, pd_hf_key(key, r->config, pd_numbers[n_used].hf));
}

static peridot_status read_layer(struct pd_hf_reader *r, struct pd_config *out, uint32_t i)
{
    const struct pd_hf_defaults *d = &r->family->hf;
    struct pd_layer *l = &out->layers[i];
    enum pd_number ffn_dim = r->family->hf_shared_unit ? PD_NUMBER_SHARED_DIM
        : r->family->shared_expert                      ? PD_NUMBER_SHARED_EXPERT_DIM
                                                        : PD_NUMBER_FFN_DIM;
    l->qkv_biases = l->o_bias = yyjson_is_true(yyjson_obj_get(r->config.at, "attention_bias"));
    l->ffn_biases = yyjson_is_true(yyjson_obj_get(r->config.at, "mlp_bias"));
    l->ffn_dim = r->family->short_convs && !r->family->experts ? short_conv_ffn_dim(r)
                                                               : pd_hf_layer_uint(r, ffn_dim, i, d->ffn_dim);
    if (r->family->experts) PD_TRY(read_experts(r, l, i));
    if (pd_layer_recurs(l)) return r->status;
    l->n_heads = pd_hf_layer_uint(r, PD_NUMBER_HEADS, i, d->n_heads);
    l->n_kv_heads = pd_hf_layer_uint(r, PD_NUMBER_KV_HEADS, i, d->n_kv_heads ? d->n_kv_heads : l->n_heads);
    if (r->family->sizes_by_window) read_own_sizes(r, out, i);
    PD_TRY(r->status);
    if (l->n_heads % l->n_kv_heads != 0)
        return pd_fail(PERIDOT_ERROR_FORMAT, "config.json: num_attention_heads %u is not a multiple of "
                       "num_key_value_heads %u: %u query heads cannot share %u kv heads evenly", l->n_heads,
                       l->n_kv_heads, l->n_heads, l->n_kv_heads);
    if (!d->head_dim && !pd_hf_member(r->config.at, "head_dim") && out->d_model % l->n_heads != 0)
        return pd_fail(PERIDOT_ERROR_FORMAT, "config.json: hidden_size %u is not a multiple of num_attention_heads %u, "
                       "and there is no head_dim", out->d_model, l->n_heads);
    uint32_t usual = d->head_dim ? d->head_dim : out->d_model / l->n_heads;
    if (!l->head_dim) l->head_dim = pd_hf_layer_uint(r, PD_NUMBER_HEAD_DIM, i, usual);
    double divisor = r->family->unscaled_queries ? 1 : l->head_dim;
    if (r->family->query_divisor)
        divisor = pd_hf_number(r, r->config, PD_NUMBER_QUERY_DIVISOR, r->family->query_divisor);
    l->query_scale = (float)(1 / sqrt(divisor));
    if (r->family->multipliers) l->query_scale = (float)pd_hf_number(r, r->config, PD_NUMBER_QUERY_SCALE, 1);
    return r->status;
}

peridot_status pd_hf_read_layers(struct pd_hf_reader *r, struct pd_config *out)
{
    r->n_layers = out->n_layers;
    PD_TRY(pd_layers_create(out));
    PD_TRY(read_windows(r, out));
    if (!r->family->hf_shared_unit) PD_TRY(pd_hf_read_no_rope(r, out));
    if (r->family->sizes_by_window) PD_TRY(check_own_sizes(r, out));
    for (uint32_t i = 0; i < out->n_layers; i++) PD_TRY(read_layer(r, out, i));
    return PERIDOT_OK;
}

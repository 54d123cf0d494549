/* adapter_config.json of a PEFT directory: ranks and factors of its modules, and what it must not say. */
#include "arch/adapter.h"

#include "base/names.h"
#include "base/num.h"

#include <math.h>
#include <string.h>

enum { MAX_RANK = 1 << 16 };

/* Keys that change nothing of what an adapter that is trained computes. */
static const char *const idle_keys[] = {
    "auto_mapping", "base_model_name_or_path", "corda_config", "ensure_weight_tying", "eva_config", "exclude_modules",
    "inference_mode", "layers_pattern", "layers_to_transform", "loftq_config", "lora_dropout", "lora_ga_config",
    "megatron_config", "megatron_core", "peft_version", "qalora_group_size", "revision", "runtime_config",
    "target_modules", "task_type", "velora_config"};
/* Those that are read below. */
static const char *const read_keys[] = {
    "alpha_pattern", "bias", "init_lora_weights", "lora_alpha", "peft_type", "r", "rank_pattern", "use_rslora"};

static bool is_one_of(const char *key, const char *const *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(key, keys[i]) == 0) return true;
    return false;
}

/* null, false, an empty text or list, or an object of such values alone: as if the key were not there. */
static bool says_nothing(yyjson_val *v, int depth)
{
    yyjson_obj_iter iter = yyjson_obj_iter_with(v);
    bool nothing = depth > 0;
    if (yyjson_is_str(v)) return yyjson_get_len(v) == 0;
    if (yyjson_is_arr(v)) return yyjson_arr_size(v) == 0;
    if (!yyjson_is_obj(v)) return yyjson_is_null(v) || yyjson_is_false(v);
    for (yyjson_val *k; nothing && (k = yyjson_obj_iter_next(&iter));)
        nothing = says_nothing(yyjson_obj_iter_get_val(k), depth - 1);
    return nothing;
}

static peridot_status check_keys(yyjson_val *config)
{
    yyjson_obj_iter iter = yyjson_obj_iter_with(config);
    for (yyjson_val *k; (k = yyjson_obj_iter_next(&iter));) {
        yyjson_val *v = yyjson_obj_iter_get_val(k);
        const char *key = yyjson_get_str(k);
        bool known = is_one_of(key, idle_keys, PD_COUNT(idle_keys)) || is_one_of(key, read_keys, PD_COUNT(read_keys));
        if (known || says_nothing(v, 4)) continue;
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, PD_NAME " is not supported in an adapter", key);
    }
    return PERIDOT_OK;
}

/* A key that has one of these strings, or is not there. */
static peridot_status check_text(yyjson_val *config, const char *key, const char *const *texts, size_t n)
{
    yyjson_val *v = yyjson_obj_get(config, key);
    const char *text = yyjson_get_str(v);
    if (!v || yyjson_is_null(v) || (text && is_one_of(text, texts, n))) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s " PD_NAME " is not supported in an adapter", key,
                   text && pd_name_valid(text, yyjson_get_len(v)) ? text : yyjson_get_type_desc(v));
}

static peridot_status check_texts(yyjson_val *config)
{
    static const char *const types[] = {"LORA"}, *const biases[] = {"none"};
    /* how A and B began; others change the model's matrices as well */
    static const char *const begins[] = {"gaussian", "eva", "mica", "orthogonal"};
    if (!yyjson_obj_get(config, "peft_type")) return pd_fail(PERIDOT_ERROR_FORMAT, "peft_type is missing");
    PD_TRY(check_text(config, "peft_type", types, PD_COUNT(types)));
    PD_TRY(check_text(config, "bias", biases, PD_COUNT(biases)));
    if (yyjson_is_bool(yyjson_obj_get(config, "init_lora_weights"))) return PERIDOT_OK;
    return check_text(config, "init_lora_weights", begins, PD_COUNT(begins));
}

static peridot_status read_rank(uint32_t *out, yyjson_val *v, const char *what)
{
    if (!yyjson_is_uint(v) || yyjson_get_uint(v) == 0 || yyjson_get_uint(v) > MAX_RANK)
        return pd_fail(PERIDOT_ERROR_FORMAT, PD_NAME " is not a rank", what);
    *out = (uint32_t)yyjson_get_uint(v);
    return PERIDOT_OK;
}

static peridot_status read_alpha(double *out, yyjson_val *v, const char *what)
{
    *out = yyjson_get_num(v);
    if (yyjson_is_num(v) && fabs(*out) < 1e30) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_FORMAT, PD_NAME " is not a number", what);
}

/* PEFT takes a pattern's keys for regular expressions; published ones are names, or their ends. */
static peridot_status read_pattern(yyjson_val **out, yyjson_val *config, const char *key)
{
    yyjson_val *v = yyjson_obj_get(config, key);
    yyjson_obj_iter iter = yyjson_obj_iter_with(v);
    if (v && !yyjson_is_null(v) && !yyjson_is_obj(v)) return pd_fail(PERIDOT_ERROR_FORMAT, "%s is not an object", key);
    *out = yyjson_is_obj(v) ? v : NULL;
    for (yyjson_val *k; *out && (k = yyjson_obj_iter_next(&iter));) {
        const char *name = yyjson_get_str(k);
        uint32_t rank;
        double alpha;
        if (strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._") != yyjson_get_len(k))
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: " PD_NAME " is not a module's name: patterns of names are "
                           "not supported", key, name);
        if (key[0] == 'r') PD_TRY(read_rank(&rank, yyjson_obj_iter_get_val(k), name));
        else PD_TRY(read_alpha(&alpha, yyjson_obj_iter_get_val(k), name));
    }
    return PERIDOT_OK;
}

peridot_status pd_adapter_rules_read(struct pd_adapter_rules *out, yyjson_val *config)
{
    yyjson_val *by_root = yyjson_obj_get(config, "use_rslora");
    *out = (struct pd_adapter_rules){0};
    PD_TRY(check_keys(config));
    PD_TRY(check_texts(config));
    if (by_root && !yyjson_is_null(by_root) && !yyjson_is_bool(by_root))
        return pd_fail(PERIDOT_ERROR_FORMAT, "use_rslora is neither true nor false");
    out->by_root = yyjson_is_true(by_root);
    PD_TRY(read_rank(&out->rank, yyjson_obj_get(config, "r"), "r"));
    PD_TRY(read_alpha(&out->alpha, yyjson_obj_get(config, "lora_alpha"), "lora_alpha"));
    PD_TRY(read_pattern(&out->ranks, config, "rank_pattern"));
    return read_pattern(&out->alphas, config, "alpha_pattern");
}

/* The value of the first key that is the module's name or, after a dot, its end. */
static yyjson_val *match(yyjson_val *pattern, const char *module)
{
    size_t size = strlen(module);
    yyjson_obj_iter iter = yyjson_obj_iter_with(pattern);
    for (yyjson_val *k; pattern && (k = yyjson_obj_iter_next(&iter));) {
        size_t n = yyjson_get_len(k);
        if (n > size || strcmp(module + size - n, yyjson_get_str(k)) != 0) continue;
        if (n == size || module[size - n - 1] == '.') return yyjson_obj_iter_get_val(k);
    }
    return NULL;
}

void pd_adapter_rules_get(uint32_t *rank, float *scale, const struct pd_adapter_rules *rules, const char *module)
{
    yyjson_val *own_rank = match(rules->ranks, module), *own_alpha = match(rules->alphas, module);
    *rank = own_rank ? (uint32_t)yyjson_get_uint(own_rank) : rules->rank;
    double alpha = own_alpha ? yyjson_get_num(own_alpha) : rules->alpha;
    *scale = (float)(alpha / (rules->by_root ? sqrt(*rank) : *rank));
}

#include "arch/hf_reader.h"

#include <math.h>
#include <stdio.h>

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

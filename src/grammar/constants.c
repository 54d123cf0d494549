#include "grammar/constants.h"

#include "base/array.h"
#include "base/num.h"
#include "grammar/alternatives.h"

#include <stdlib.h>

void pd_constants_free(struct pd_constants *c)
{
    free(c->at);
    *c = (struct pd_constants){0};
}

static peridot_status add_value(struct pd_constants *c, yyjson_val *value)
{
    PD_TRY(pd_array_reserve(&c->at, &c->capacity, c->n, 1, sizeof *c->at, "constants"));
    c->at[c->n++] = value;
    return PERIDOT_OK;
}

/* Whether all schemas from number `first` on that have constants have this one. */
static peridot_status is_in_all(bool *out, struct pd_index *x, const struct pd_nodes *of, uint32_t first,
                                yyjson_val *value)
{
    *out = true;
    for (uint32_t i = first; i < of->n && *out; i++) {
        yyjson_val *constant = yyjson_obj_get(of->at[i].value, "const"),
                   *list = yyjson_obj_get(of->at[i].value, "enum");
        if (constant) PD_TRY(pd_index_equals(out, x, constant, value));
        if (list && *out) PD_TRY(pd_index_has(out, x, list, value));
    }
    return PERIDOT_OK;
}

static peridot_status check_keywords(bool *any, const struct pd_nodes *of)
{
    *any = false;
    for (uint32_t i = 0; i < of->n; i++) {
        yyjson_val *list;
        PD_TRY(pd_node_get(&list, &of->at[i], "enum", YYJSON_TYPE_ARR));
        *any = *any || list || yyjson_obj_get(of->at[i].value, "const");
    }
    for (uint32_t i = 0; *any && i < of->n; i++)
        if (pd_node_find_limit(&of->at[i]))
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED,
                           "keyword %s at " PD_PATH " is not supported beside enum and const",
                           pd_node_find_limit(&of->at[i]), of->at[i].path);
    return PERIDOT_OK;
}

peridot_status pd_constants_find(struct pd_constants *out, bool *given, struct pd_document *d,
                                 const struct pd_nodes *of, unsigned types)
{
    PD_TRY(check_keywords(given, of));
    for (uint32_t i = 0; i < of->n; i++) {
        yyjson_val *constant = yyjson_obj_get(of->at[i].value, "const"),
                   *list = yyjson_obj_get(of->at[i].value, "enum"), *value;
        size_t n = constant ? 1 : yyjson_arr_size(list);
        yyjson_arr_iter members = yyjson_arr_iter_with(list);
        PD_TRY(pd_work_spend(d->work, n));
        for (size_t k = 0; k < n; k++) {
            bool in_all;
            value = constant ? constant : yyjson_arr_iter_next(&members);
            if (!(types & pd_json_type_of(value))) continue;
            PD_TRY(is_in_all(&in_all, &d->index, of, constant ? i : i + 1, value));
            if (in_all) PD_TRY(add_value(out, value));
        }
        if (constant || list) break;
    }
    return PERIDOT_OK;
}

/* Those of an alternative, of which one may be there already. */
static peridot_status add_all(struct pd_constants *out, bool *finite, struct pd_document *d, const struct pd_nodes *of)
{
    static const yyjson_val plain[] = {{.tag = YYJSON_TYPE_NULL}, {.tag = YYJSON_TYPE_BOOL | YYJSON_SUBTYPE_FALSE},
                                       {.tag = YYJSON_TYPE_BOOL | YYJSON_SUBTYPE_TRUE}};
    bool given;
    unsigned types;
    PD_TRY(pd_nodes_types(&types, d, of));
    PD_TRY(pd_constants_find(out, &given, d, of, types));
    if (given) return PERIDOT_OK;
    *finite = *finite && !(types & ~(unsigned)(PD_JSON_NULL | PD_JSON_BOOLEAN));
    for (size_t i = 0; i < PD_COUNT(plain) && *finite; i++) {
        yyjson_val *value = (yyjson_val *)&plain[i];   /* which nobody writes to */
        if (types & pd_json_type_of(value)) PD_TRY(add_value(out, value));
    }
    return PERIDOT_OK;
}

peridot_status pd_constants_may_equal(bool *out, struct pd_document *d, yyjson_val *a, yyjson_val *b)
{
    if (!yyjson_is_str(a) || !yyjson_is_str(b)) return pd_index_may_equal(out, &d->index, a, b);
    *out = yyjson_equals_strn(a, yyjson_get_str(b), yyjson_get_len(b));
    return pd_work_spend(d->work, 2 + (*out ? yyjson_get_len(a) / 8 : 0));
}

/* Numbers that some readers take for the same are left out but for the first. */
static peridot_status leave_each_once(struct pd_constants *c, struct pd_document *d)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        bool same = false;
        for (size_t k = 0; k < n && !same; k++) PD_TRY(pd_constants_may_equal(&same, d, c->at[k], c->at[i]));
        if (!same) c->at[n++] = c->at[i];
    }
    c->n = n;
    return PERIDOT_OK;
}

peridot_status pd_constants_find_all(struct pd_constants *out, bool *finite, struct pd_document *d,
                                     const struct pd_nodes *nodes)
{
    struct pd_alternatives a;
    *finite = true;
    peridot_status status = pd_alternatives_find(&a, d, nodes);
    for (size_t i = 0; i < a.n && status == PERIDOT_OK && *finite; i++) status = add_all(out, finite, d, &a.of[i]);
    pd_alternatives_free(&a);
    return status == PERIDOT_OK && *finite ? leave_each_once(out, d) : status;
}

#include "grammar/schema.h"

#include "base/num.h"
#include "base/utf8.h"
#include "grammar/alternatives.h"
#include "grammar/object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READ_COST 4000             /* steps for the four limits of a schema: digits are found by printing them */

/* What an alternative says, for values of one type: a rule from its start to its end. */
typedef peridot_status write_type(struct pd_compiler *c, const struct pd_nodes *of);

static peridot_status fail_empty(const struct pd_nodes *of, const char *what)
{
    return pd_fail(PERIDOT_ERROR_ARGUMENT, PD_PATH ": no value is valid: %s", of->n ? of->at[0].path : "#", what);
}

/* The largest of counts that are at least something, or the smallest of those that are at most. */
static peridot_status find_counts(uint32_t *min, uint32_t *max, const struct pd_nodes *of, const char *min_key,
                                  const char *max_key)
{
    *min = 0;
    *max = UINT32_MAX;
    for (uint32_t i = 0; i < of->n; i++) {
        uint32_t least = 0, most = UINT32_MAX;
        PD_TRY(pd_node_count(&least, &of->at[i], min_key));
        PD_TRY(pd_node_count(&most, &of->at[i], max_key));
        *min = (uint32_t)pd_max(*min, least);
        *max = (uint32_t)pd_min(*max, most);
    }
    if (*min <= *max) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_ARGUMENT, PD_PATH ": no value is valid: %s %u is more than %s %u", of->at[0].path,
                   min_key, *min, max_key, *max);
}

/* ---- null, true and false, numbers ---- */

static peridot_status write_null(struct pd_compiler *c, const struct pd_nodes *of)
{
    (void)of;
    pd_nfa_skip(c->r, pd_nfa_text(c->r, PD_NFA_START, "null", 4), PD_NFA_END);
    return PERIDOT_OK;
}

static peridot_status write_boolean(struct pd_compiler *c, const struct pd_nodes *of)
{
    (void)of;
    pd_nfa_skip(c->r, pd_nfa_text(c->r, PD_NFA_START, "true", 4), PD_NFA_END);
    pd_nfa_skip(c->r, pd_nfa_text(c->r, PD_NFA_START, "false", 5), PD_NFA_END);
    return PERIDOT_OK;
}

/* *limit becomes the one of `key` if that is narrower. */
static peridot_status narrow(struct pd_decimal *limit, const struct pd_node *node, const char *key, bool exclusive,
                             int sign)
{
    struct pd_decimal other;
    yyjson_val *value = yyjson_obj_get(node->value, key);
    if (!value) return PERIDOT_OK;
    if (!yyjson_is_num(value))
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s at " PD_PATH " is not a number", key, node->path);
    if (!pd_decimal_read(&other, value, exclusive))
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s at " PD_PATH " has more digits than can be compared exactly", key,
                       node->path);
    double further = limit->given ? sign * (other.value - limit->value) : 1;
    if (further > 0 || (further == 0 && exclusive)) *limit = other;
    return PERIDOT_OK;
}

static peridot_status find_range(struct pd_number_range *range, struct pd_work *work, const struct pd_nodes *of)
{
    PD_TRY(pd_work_spend(work, READ_COST * of->n));
    for (uint32_t i = 0; i < of->n; i++) {
        yyjson_val *multiple = yyjson_obj_get(of->at[i].value, "multipleOf");
        PD_TRY(narrow(&range->min, &of->at[i], "minimum", false, 1));
        PD_TRY(narrow(&range->min, &of->at[i], "exclusiveMinimum", true, 1));
        PD_TRY(narrow(&range->max, &of->at[i], "maximum", false, -1));
        PD_TRY(narrow(&range->max, &of->at[i], "exclusiveMaximum", true, -1));
        if (multiple && (!yyjson_is_num(multiple) || yyjson_get_num(multiple) != 1))
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "multipleOf at " PD_PATH " is supported only as 1",
                           of->at[i].path);
        range->integer = range->integer || multiple;
    }
    const struct pd_decimal *min = &range->min, *max = &range->max;
    if (!min->given || !max->given || min->value < max->value ||
        (min->value == max->value && !min->exclusive && !max->exclusive))
        return PERIDOT_OK;
    return fail_empty(of, "its limits leave no number");
}

static peridot_status write_integer(struct pd_compiler *c, const struct pd_nodes *of)
{
    struct pd_number_range range = {.integer = true};
    PD_TRY(find_range(&range, &c->r->work, of));
    pd_write_number(&c->values, PD_NFA_START, &range, PD_NFA_END);
    return PERIDOT_OK;
}

static peridot_status write_number(struct pd_compiler *c, const struct pd_nodes *of)
{
    struct pd_number_range range = {.integer = false};
    PD_TRY(find_range(&range, &c->r->work, of));
    pd_write_number(&c->values, PD_NFA_START, &range, PD_NFA_END);
    return PERIDOT_OK;
}

/* ---- strings ---- */

/* *all becomes the strings that the pattern matches too. */
static peridot_status add_pattern(struct pd_chars *all, bool *any, struct pd_work *work, const char *pattern,
                                  size_t size)
{
    struct pd_chars one;
    peridot_status status = pd_chars_from_pattern(&one, work, pattern, size);
    if (status == PERIDOT_OK && *any) {
        status = pd_chars_intersect(all, &one);
        pd_chars_free(&one);
    } else if (!*any) {
        *all = one;
        *any = true;
    } else {
        pd_chars_free(&one);
    }
    return status;
}

static peridot_status add_patterns(struct pd_chars *all, bool *any, struct pd_work *work, const struct pd_node *node)
{
    yyjson_val *pattern, *format;
    char shown[PD_SHOWN_SIZE];
    PD_TRY(pd_node_get(&pattern, node, "pattern", YYJSON_TYPE_STR));
    PD_TRY(pd_node_get(&format, node, "format", YYJSON_TYPE_STR));
    if (pattern) {
        peridot_status status = add_pattern(all, any, work, yyjson_get_str(pattern), yyjson_get_len(pattern));
        char place[512];
        snprintf(place, sizeof place, "pattern at " PD_PATH, node->path);
        if (status != PERIDOT_OK) return pd_fail_prefix(status, place);
    }
    if (!format) return PERIDOT_OK;
    const char *known = pd_format_pattern(yyjson_get_str(format));
    if (!known)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "format %s at " PD_PATH " is not supported",
                       pd_utf8_shown(shown, yyjson_get_str(format), yyjson_get_len(format)), node->path);
    return add_pattern(all, any, work, known, strlen(known));
}

static peridot_status write_patterns(struct pd_compiler *c, struct pd_chars *all, uint32_t min, uint32_t max)
{
    struct pd_chars length;
    if (min == 0 && max == UINT32_MAX) {
        pd_write_strings(&c->values, PD_NFA_START, all, PD_NFA_END);
        return PERIDOT_OK;
    }
    peridot_status status = pd_chars_from_length(&length, &c->r->work, min, max);
    if (status == PERIDOT_OK) status = pd_chars_intersect(all, &length);
    if (status == PERIDOT_OK) pd_write_strings(&c->values, PD_NFA_START, all, PD_NFA_END);
    pd_chars_free(&length);
    return status;
}

static peridot_status write_string(struct pd_compiler *c, const struct pd_nodes *of)
{
    struct pd_chars all = {0};
    bool any = false;
    uint32_t min, max;
    PD_TRY(find_counts(&min, &max, of, "minLength", "maxLength"));
    peridot_status status = PERIDOT_OK;
    for (uint32_t i = 0; i < of->n && status == PERIDOT_OK; i++)
        status = add_patterns(&all, &any, &c->r->work, &of->at[i]);
    if (status == PERIDOT_OK && any) {
        status = write_patterns(c, &all, min, max);
        if (status != PERIDOT_OK) pd_fail_prefix(status, of->at[0].path);
    }
    if (status == PERIDOT_OK && !any) pd_write_length(&c->values, PD_NFA_START, min, max, PD_NFA_END);
    pd_chars_free(&all);
    return status;
}

/* ---- arrays ---- */

/* The rule of item i. */
static peridot_status find_item(uint32_t *rule, struct pd_compiler *c, const struct pd_nodes *of, size_t i)
{
    struct pd_nodes nodes = {0};
    for (uint32_t k = 0; k < of->n; k++) {
        const struct pd_node *node = &of->at[k];
        yyjson_val *prefix, *items = yyjson_obj_get(node->value, "items");
        struct pd_node child;
        PD_TRY(pd_node_get(&prefix, node, "prefixItems", YYJSON_TYPE_ARR));
        if (yyjson_is_arr(items))
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED,
                           "items at " PD_PATH " is a list, which is not supported: it is prefixItems since 2020-12",
                           node->path);
        yyjson_val *own;
        PD_TRY(pd_list_get(&own, &c->d, prefix, i));
        if (!own && !items) continue;
        if (own) PD_TRY(pd_node_member(&child, &c->d, node, "prefixItems", i, own));
        else PD_TRY(pd_node_child(&child, &c->d, node, "items", (struct pd_name){0}, items));
        PD_TRY(pd_nodes_add(&nodes, child));
    }
    return pd_compiler_rule(rule, c, &nodes);
}

static size_t count_prefix(const struct pd_nodes *of)
{
    size_t n = 0;
    for (uint32_t i = 0; i < of->n; i++)
        n = (size_t)pd_max(n, yyjson_arr_size(yyjson_obj_get(of->at[i].value, "prefixItems")));
    return n;
}

static peridot_status write_array(struct pd_compiler *c, const struct pd_nodes *of)
{
    uint32_t min, max, rule;
    size_t n_prefix = count_prefix(of);
    PD_TRY(find_counts(&min, &max, of, "minItems", "maxItems"));
    uint32_t state = pd_write_mark(&c->values, PD_NFA_START, '['), last = max;
    if (max == UINT32_MAX) last = (uint32_t)pd_max(pd_max(min, n_prefix), 1);
    if (min == 0) pd_nfa_any_of(c->r, state, "]", PD_NFA_END);
    for (uint32_t i = 0; i < last && c->r->status == PERIDOT_OK; i++) {
        uint32_t after = pd_nfa_state(c->r);
        if (i <= n_prefix) PD_TRY(find_item(&rule, c, of, i));   /* those beyond are alike */
        pd_nfa_call(c->r, i ? pd_write_mark(&c->values, state, ',') : state, rule, after);
        if (i + 1 >= min) pd_nfa_any_of(c->r, pd_write_space(&c->values, after), "]", PD_NFA_END);
        state = after;
    }
    if (max != UINT32_MAX) return PERIDOT_OK;
    PD_TRY(find_item(&rule, c, of, last));
    pd_nfa_call(c->r, pd_write_mark(&c->values, state, ','), rule, state);
    return PERIDOT_OK;
}

/* ---- constants ---- */

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

static peridot_status check_constants(bool *any, const struct pd_nodes *of)
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

static peridot_status write_constants(struct pd_compiler *c, const struct pd_nodes *of, unsigned types, bool alone)
{
    bool found = false;
    for (uint32_t i = 0; i < of->n; i++) {
        yyjson_val *constant = yyjson_obj_get(of->at[i].value, "const"),
                   *list = yyjson_obj_get(of->at[i].value, "enum"), *value;
        size_t n = constant ? 1 : yyjson_arr_size(list);
        yyjson_arr_iter members = yyjson_arr_iter_with(list);
        for (size_t k = 0; k < n && pd_rules_work(c->r, 1); k++) {
            bool in_all;
            value = constant ? constant : yyjson_arr_iter_next(&members);
            PD_TRY(is_in_all(&in_all, &c->d.index, of, constant ? i : i + 1, value));
            if (!in_all || !(types & pd_json_type_of(value))) continue;
            pd_write_constant(&c->values, PD_NFA_START, value, PD_NFA_END);
            found = true;
        }
        if (constant || list) break;
    }
    return found || !alone ? c->r->status : fail_empty(of, "its enum, const and type leave none");
}

/* ---- values ---- */

/* An alternative among others that nothing satisfies is left out. */
static peridot_status write_alternative(struct pd_compiler *c, const struct pd_nodes *of, bool alone)
{
    static const struct {
        unsigned type;
        write_type *write;
    } writers[] = {{PD_JSON_NULL, write_null}, {PD_JSON_BOOLEAN, write_boolean}, {PD_JSON_FRACTION, write_number},
                   {PD_JSON_INTEGER, write_integer}, {PD_JSON_STRING, write_string}, {PD_JSON_ARRAY, write_array},
                   {PD_JSON_OBJECT, pd_write_object}};
    unsigned types;
    bool constants;
    PD_TRY(pd_nodes_types(&types, &c->d, of));
    PD_TRY(check_constants(&constants, of));
    if (constants) return write_constants(c, of, types, alone);
    if (types == 0 && alone) return fail_empty(of, "its types exclude each other");
    if (types & PD_JSON_FRACTION) types &= ~(unsigned)PD_JSON_INTEGER;   /* numbers are both */
    for (size_t i = 0; i < PD_COUNT(writers); i++)
        if (types & writers[i].type) PD_TRY(writers[i].write(c, of));
    return PERIDOT_OK;
}

static peridot_status write_rule(struct pd_compiler *c, const struct pd_compiler_job *job)
{
    struct pd_alternatives a;
    pd_rules_begin(c->r);
    peridot_status status = pd_alternatives_find(&a, &c->d, &job->nodes);
    for (size_t i = 0; i < a.n && status == PERIDOT_OK; i++) status = write_alternative(c, &a.of[i], a.n == 1);
    pd_alternatives_free(&a);
    if (status != PERIDOT_OK) return status;
    if (c->r->status == PERIDOT_OK) pd_rules_end(c->r, job->rule);
    return c->r->status == PERIDOT_OK ? PERIDOT_OK
                                      : pd_fail_prefix(c->r->status, job->nodes.n ? job->nodes.at[0].path : "#");
}

/* The whole text: the value, and a space or a newline beside it, which models like to write. */
static peridot_status write_text(struct pd_compiler *c, uint32_t text_rule, uint32_t value_rule)
{
    pd_rules_begin(c->r);
    uint32_t before = pd_nfa_state(c->r), after = pd_nfa_state(c->r);
    pd_nfa_skip(c->r, PD_NFA_START, before);
    pd_nfa_any_of(c->r, PD_NFA_START, " ", before);
    pd_nfa_call(c->r, before, value_rule, after);
    pd_nfa_skip(c->r, after, PD_NFA_END);
    pd_nfa_any_of(c->r, after, " \n", PD_NFA_END);
    return pd_rules_end(c->r, text_rule);
}

static peridot_status compile(struct pd_compiler *c)
{
    struct pd_nodes root = {.at = {{c->d.root, "#"}}, .n = 1};
    uint32_t text_rule = pd_rules_add(c->r), value_rule;
    pd_values_begin(&c->values, c->r);
    PD_TRY(pd_compiler_rule(&value_rule, c, &root));
    for (; c->n_done < c->n_jobs; c->n_done++) {
        const struct pd_compiler_job job = c->jobs[c->n_done];   /* they move when there are more */
        PD_TRY(write_rule(c, &job));
    }
    PD_TRY(pd_values_finish(&c->values));
    PD_TRY(write_text(c, text_rule, value_rule));
    PD_TRY(pd_rules_finish(c->r));
    if (c->r->states[c->r->starts[text_rule]].height != PD_NEVER) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_ARGUMENT, "#: no value is valid: what is required contradicts itself, never ends, or "
                                          "nests too deep");
}

peridot_status pd_schema_compile_within(struct pd_rules *out, uint64_t max_work, const char *schema, size_t size)
{
    struct pd_compiler c = {.r = out};
    *out = (struct pd_rules){.work.max = max_work};
    peridot_status status = pd_document_open(&c.d, &out->work, schema, size);
    if (status == PERIDOT_OK) status = compile(&c);
    pd_document_close(&c.d);
    pd_values_free(&c.values);
    free(c.jobs);
    return status;
}

peridot_status pd_schema_compile(struct pd_rules *out, const char *schema, size_t size)
{
    return pd_schema_compile_within(out, PD_MAX_WORK, schema, size);
}

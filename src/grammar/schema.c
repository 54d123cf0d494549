/* Every set of schemas that one value must satisfy becomes a rule, once; rules of values within it are numbered and
 * written later, which is how schemas can be recursive. */
#include "grammar/schema.h"

#include "base/array.h"
#include "base/num.h"
#include "base/utf8.h"
#include "grammar/alternatives.h"
#include "grammar/values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PROPERTIES 2000

struct job {
    struct pd_nodes nodes;
    uint32_t rule;
};

struct compiler {
    struct pd_rules *r;
    struct pd_values values;
    struct pd_document d;
    struct job *jobs;              /* the first n_done are written */
    size_t n_jobs, jobs_capacity, n_done;
};

/* What an alternative says, for values of one type. */
typedef peridot_status write_type(struct compiler *c, const struct pd_nodes *of, uint32_t from, uint32_t to);

static bool is_same(const struct pd_nodes *a, const struct pd_nodes *b)
{
    bool same = a->n == b->n;
    for (uint32_t i = 0; same && i < a->n; i++) same = a->at[i].value == b->at[i].value;
    return same;
}

/* The rule of values that satisfy all of `nodes`. */
static peridot_status find_rule(uint32_t *rule, struct compiler *c, const struct pd_nodes *nodes)
{
    size_t i = 0;
    while (i < c->n_jobs && !is_same(&c->jobs[i].nodes, nodes)) i++;
    if (!pd_rules_work(c->r, i)) return c->r->status;
    if (i < c->n_jobs) {
        *rule = c->jobs[i].rule;
        return PERIDOT_OK;
    }
    *rule = pd_rules_add(c->r);
    PD_TRY(c->r->status);
    PD_TRY(pd_array_reserve(&c->jobs, &c->jobs_capacity, c->n_jobs, 1, sizeof *c->jobs, "grammar"));
    c->jobs[c->n_jobs++] = (struct job){*nodes, *rule};
    return PERIDOT_OK;
}

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

static peridot_status write_null(struct compiler *c, const struct pd_nodes *of, uint32_t from, uint32_t to)
{
    (void)of;
    pd_nfa_skip(c->r, pd_nfa_text(c->r, from, "null", 4), to);
    return PERIDOT_OK;
}

static peridot_status write_boolean(struct compiler *c, const struct pd_nodes *of, uint32_t from, uint32_t to)
{
    (void)of;
    pd_nfa_skip(c->r, pd_nfa_text(c->r, from, "true", 4), to);
    pd_nfa_skip(c->r, pd_nfa_text(c->r, from, "false", 5), to);
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

static peridot_status find_range(struct pd_number_range *range, const struct pd_nodes *of)
{
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

static peridot_status write_integer(struct compiler *c, const struct pd_nodes *of, uint32_t from, uint32_t to)
{
    struct pd_number_range range = {.integer = true};
    PD_TRY(find_range(&range, of));
    pd_write_number(&c->values, from, &range, to);
    return PERIDOT_OK;
}

static peridot_status write_number(struct compiler *c, const struct pd_nodes *of, uint32_t from, uint32_t to)
{
    struct pd_number_range range = {.integer = false};
    PD_TRY(find_range(&range, of));
    pd_write_number(&c->values, from, &range, to);
    return PERIDOT_OK;
}

/* ---- strings ---- */

/* *all becomes the strings that the pattern matches too. */
static peridot_status add_pattern(struct pd_chars *all, bool *any, const char *pattern, size_t size)
{
    struct pd_chars one, both;
    peridot_status status = pd_chars_from_pattern(&one, pattern, size);
    if (status == PERIDOT_OK && *any) {
        status = pd_chars_intersect(&both, all, &one);
        pd_chars_free(all);
        pd_chars_free(&one);
        *all = both;
    } else {
        *all = one;
    }
    *any = true;
    return status;
}

static peridot_status add_patterns(struct pd_chars *all, bool *any, const struct pd_node *node)
{
    yyjson_val *pattern, *format;
    char shown[PD_SHOWN_SIZE];
    PD_TRY(pd_node_get(&pattern, node, "pattern", YYJSON_TYPE_STR));
    PD_TRY(pd_node_get(&format, node, "format", YYJSON_TYPE_STR));
    if (pattern) {
        peridot_status status = add_pattern(all, any, yyjson_get_str(pattern), yyjson_get_len(pattern));
        char place[512];
        snprintf(place, sizeof place, "pattern at " PD_PATH, node->path);
        if (status != PERIDOT_OK) return pd_fail_prefix(status, place);
    }
    if (!format) return PERIDOT_OK;
    const char *known = pd_format_pattern(yyjson_get_str(format));
    if (!known)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "format %s at " PD_PATH " is not supported",
                       pd_utf8_shown(shown, yyjson_get_str(format), yyjson_get_len(format)), node->path);
    return add_pattern(all, any, known, strlen(known));
}

static peridot_status write_patterns(struct compiler *c, struct pd_chars *all, uint32_t min, uint32_t max,
                                     uint32_t from, uint32_t to)
{
    struct pd_chars length, both;
    if (min == 0 && max == UINT32_MAX) {
        pd_write_strings(&c->values, from, all, to);
        return PERIDOT_OK;
    }
    peridot_status status = pd_chars_from_length(&length, min, max);
    if (status == PERIDOT_OK) {
        status = pd_chars_intersect(&both, all, &length);
        if (status == PERIDOT_OK) pd_write_strings(&c->values, from, &both, to);
        pd_chars_free(&both);
    }
    pd_chars_free(&length);
    return status;
}

static peridot_status write_string(struct compiler *c, const struct pd_nodes *of, uint32_t from, uint32_t to)
{
    struct pd_chars all = {0};
    bool any = false;
    uint32_t min, max;
    PD_TRY(find_counts(&min, &max, of, "minLength", "maxLength"));
    peridot_status status = PERIDOT_OK;
    for (uint32_t i = 0; i < of->n && status == PERIDOT_OK; i++) status = add_patterns(&all, &any, &of->at[i]);
    if (status == PERIDOT_OK && any) {
        status = write_patterns(c, &all, min, max, from, to);
        if (status != PERIDOT_OK) pd_fail_prefix(status, of->at[0].path);
    }
    if (status == PERIDOT_OK && !any) pd_write_length(&c->values, from, min, max, to);
    pd_chars_free(&all);
    return status;
}

/* ---- arrays ---- */

/* The rule of item i. */
static peridot_status find_item(uint32_t *rule, struct compiler *c, const struct pd_nodes *of, size_t i)
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
        yyjson_val *own = yyjson_arr_get(prefix, i);
        if (!own && !items) continue;
        if (own) PD_TRY(pd_node_member(&child, &c->d, node, "prefixItems", i, own));
        else PD_TRY(pd_node_child(&child, &c->d, node, "items", NULL, 0, items));
        PD_TRY(pd_nodes_add(&nodes, child));
    }
    return find_rule(rule, c, &nodes);
}

static size_t count_prefix(const struct pd_nodes *of)
{
    size_t n = 0;
    for (uint32_t i = 0; i < of->n; i++)
        n = (size_t)pd_max(n, yyjson_arr_size(yyjson_obj_get(of->at[i].value, "prefixItems")));
    return n;
}

static peridot_status write_array(struct compiler *c, const struct pd_nodes *of, uint32_t from, uint32_t to)
{
    uint32_t min, max, rule;
    size_t n_prefix = count_prefix(of);
    PD_TRY(find_counts(&min, &max, of, "minItems", "maxItems"));
    uint32_t state = pd_write_mark(&c->values, from, '['), last = max;
    if (max == UINT32_MAX) last = (uint32_t)pd_max(pd_max(min, n_prefix), 1);
    if (min == 0) pd_nfa_any_of(c->r, state, "]", to);
    for (uint32_t i = 0; i < last && c->r->status == PERIDOT_OK; i++) {
        uint32_t after = pd_nfa_state(c->r);
        if (i <= n_prefix) PD_TRY(find_item(&rule, c, of, i));   /* those beyond are alike */
        pd_nfa_call(c->r, i ? pd_write_mark(&c->values, state, ',') : state, rule, after);
        if (i + 1 >= min) pd_nfa_any_of(c->r, pd_write_space(&c->values, after), "]", to);
        state = after;
    }
    if (max != UINT32_MAX) return PERIDOT_OK;
    PD_TRY(find_item(&rule, c, of, last));
    pd_nfa_call(c->r, pd_write_mark(&c->values, state, ','), rule, state);
    return PERIDOT_OK;
}

/* ---- objects ---- */

struct property {
    yyjson_val *name;
    bool required;
};

/* Properties by name, in the order in which they are written. */
struct properties {
    struct property *of;
    size_t n, capacity;
    bool named;                    /* some schema has `properties` */
};

static peridot_status add_property(struct properties *p, yyjson_val *name, bool required, const char *path)
{
    for (size_t i = 0; i < p->n; i++)
        if (yyjson_equals(p->of[i].name, name)) {
            p->of[i].required = p->of[i].required || required;
            return PERIDOT_OK;
        }
    if (p->n == MAX_PROPERTIES)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, PD_PATH ": an object has more than %d properties", path,
                       MAX_PROPERTIES);
    PD_TRY(pd_array_reserve(&p->of, &p->capacity, p->n, 1, sizeof *p->of, "properties"));
    p->of[p->n++] = (struct property){name, required};
    return PERIDOT_OK;
}

static peridot_status find_properties(struct properties *p, const struct pd_nodes *of)
{
    size_t i, n;
    yyjson_val *key, *value, *list;
    for (uint32_t k = 0; k < of->n; k++) {
        PD_TRY(pd_node_get(&list, &of->at[k], "properties", YYJSON_TYPE_OBJ));
        p->named = p->named || list;
        if (!list) continue;
        yyjson_obj_foreach(list, i, n, key, value) PD_TRY(add_property(p, key, false, of->at[k].path));
    }
    for (uint32_t k = 0; k < of->n; k++) {
        PD_TRY(pd_node_get(&list, &of->at[k], "required", YYJSON_TYPE_ARR));
        yyjson_arr_foreach(list, i, n, value) {
            if (!yyjson_is_str(value))
                return pd_fail(PERIDOT_ERROR_FORMAT, "required at " PD_PATH " is not a list of names", of->at[k].path);
            PD_TRY(add_property(p, value, true, of->at[k].path));
        }
    }
    return PERIDOT_OK;
}

/* From a state before the quote of a name to after the value. */
static peridot_status write_property(struct compiler *c, const struct pd_nodes *of, const struct property *p,
                                     uint32_t from, uint32_t to)
{
    struct pd_nodes nodes;
    uint32_t rule, after = pd_nfa_state(c->r);
    PD_TRY(pd_nodes_property(&nodes, &c->d, of, yyjson_get_str(p->name), yyjson_get_len(p->name)));
    for (uint32_t i = 0; p->required && i < nodes.n; i++)
        if (yyjson_is_false(nodes.at[i].value))
            return pd_fail(PERIDOT_ERROR_ARGUMENT, PD_PATH ": no value is valid: property %.100s is required, and "
                                                           "forbidden at " PD_PATH,
                           of->at[0].path, yyjson_get_str(p->name), nodes.at[i].path);
    PD_TRY(find_rule(&rule, c, &nodes));
    pd_write_text(&c->values, from, yyjson_get_str(p->name), yyjson_get_len(p->name), after);
    pd_nfa_call(c->r, pd_write_mark(&c->values, after, ':'), rule, to);
    return PERIDOT_OK;
}

/* A character of the names that are taken. */
struct letter {
    uint32_t code, state;
    uint32_t next, inner;          /* the other letters after the same beginning; those after this one; 0: none */
    bool ends;                     /* a name ends with it */
};

struct letters {
    struct letter *of;             /* the first is before all names */
    size_t n, capacity;
};

static peridot_status add_name(struct compiler *c, struct letters *l, yyjson_val *name)
{
    const char *bytes = yyjson_get_str(name);
    size_t size = yyjson_get_len(name), length;
    uint32_t at = 0, code;
    for (size_t i = 0; i < size; i += length) {
        pd_utf8_next(&code, &length, bytes + i, size - i);
        uint32_t k = l->of[at].inner;
        while (k && l->of[k].code != code) k = l->of[k].next;
        if (!k) {
            PD_TRY(pd_array_reserve(&l->of, &l->capacity, l->n, 1, sizeof *l->of, "names"));
            k = (uint32_t)l->n++;
            l->of[k] = (struct letter){.code = code, .state = pd_nfa_state(c->r), .next = l->of[at].inner};
            l->of[at].inner = k;
        }
        at = k;
    }
    l->of[at].ends = true;
    return c->r->status;
}

static int compare_codes(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* What may follow a beginning: the letters with which it is one of a name still, and the others, which make it free. */
static peridot_status write_letters(struct compiler *c, const struct letters *l, uint32_t at, uint32_t other)
{
    uint32_t n = 0, begin = 0, *codes;
    for (uint32_t k = l->of[at].inner; k; k = l->of[k].next) n++;
    codes = malloc((n + 1) * sizeof *codes);
    if (!codes) return pd_fail_alloc(n * sizeof *codes, "names");
    n = 0;
    for (uint32_t k = l->of[at].inner; k; k = l->of[k].next) {
        pd_write_char(&c->values, l->of[at].state, l->of[k].code, l->of[k].code, l->of[k].state);
        codes[n++] = l->of[k].code;
    }
    qsort(codes, n, sizeof *codes, compare_codes);
    for (uint32_t i = 0; i < n; begin = codes[i++] + 1)
        if (codes[i] > begin) pd_write_char(&c->values, l->of[at].state, begin, codes[i] - 1, other);
    pd_write_char(&c->values, l->of[at].state, begin, PD_LAST_CHAR, other);
    free(codes);
    return PERIDOT_OK;
}

/* Any name but those of the properties. */
static peridot_status write_other_name(struct compiler *c, const struct properties *p, uint32_t from, uint32_t to)
{
    struct letters l = {0};
    uint32_t other = pd_nfa_state(c->r);
    peridot_status status = pd_array_reserve(&l.of, &l.capacity, 0, 1, sizeof *l.of, "names");
    if (status == PERIDOT_OK) l.of[l.n++] = (struct letter){.state = pd_nfa_text(c->r, from, "\"", 1)};
    for (size_t i = 0; i < p->n && status == PERIDOT_OK; i++) status = add_name(c, &l, p->of[i].name);
    for (uint32_t i = 0; i < l.n && status == PERIDOT_OK; i++) {
        status = write_letters(c, &l, i, other);
        if (!l.of[i].ends) pd_nfa_any_of(c->r, l.of[i].state, "\"", to);
    }
    pd_write_char(&c->values, other, 0, PD_LAST_CHAR, other);
    pd_nfa_any_of(c->r, other, "\"", to);
    free(l.of);
    return status;
}

/* Properties without a name in the schema, where it wants them, after those that have one. */
static peridot_status write_others(struct compiler *c, const struct pd_nodes *of, const struct properties *p,
                                   uint32_t first, uint32_t later)
{
    struct pd_nodes nodes;
    uint32_t rule, name = pd_nfa_state(c->r), after = pd_nfa_state(c->r);
    bool wanted = !p->named, forbidden = false;
    for (uint32_t i = 0; i < of->n; i++) {
        yyjson_val *others = yyjson_obj_get(of->at[i].value, "additionalProperties");
        wanted = wanted || others;
        forbidden = forbidden || yyjson_is_false(others);
    }
    if (!wanted || forbidden) return PERIDOT_OK;
    PD_TRY(pd_nodes_property(&nodes, &c->d, of, NULL, 0));
    PD_TRY(find_rule(&rule, c, &nodes));
    pd_nfa_skip(c->r, first, name);
    pd_nfa_skip(c->r, pd_write_mark(&c->values, later, ','), name);
    if (p->n) PD_TRY(write_other_name(c, p, name, after));
    else pd_write_length(&c->values, name, 0, UINT32_MAX, after);
    pd_nfa_call(c->r, pd_write_mark(&c->values, after, ':'), rule, later);
    return PERIDOT_OK;
}

/* `first`: nothing is written yet; `later`: something is. */
static peridot_status write_members(struct compiler *c, const struct pd_nodes *of, const struct properties *p,
                                    uint32_t from, uint32_t to)
{
    uint32_t first = pd_write_mark(&c->values, from, '{'), later = pd_nfa_state(c->r);
    for (size_t i = 0; i < p->n && c->r->status == PERIDOT_OK; i++) {
        uint32_t name = pd_nfa_state(c->r), next_first = pd_nfa_state(c->r), next_later = pd_nfa_state(c->r);
        pd_nfa_skip(c->r, first, name);
        if (i) pd_nfa_skip(c->r, pd_write_mark(&c->values, later, ','), name);
        PD_TRY(write_property(c, of, &p->of[i], name, next_later));
        if (!p->of[i].required) pd_nfa_skip(c->r, first, next_first);
        if (!p->of[i].required) pd_nfa_skip(c->r, later, next_later);
        first = next_first;
        later = next_later;
    }
    PD_TRY(write_others(c, of, p, first, later));
    pd_nfa_any_of(c->r, first, "}", to);
    pd_nfa_any_of(c->r, pd_write_space(&c->values, later), "}", to);
    return PERIDOT_OK;
}

static peridot_status write_object(struct compiler *c, const struct pd_nodes *of, uint32_t from, uint32_t to)
{
    struct properties p = {0};
    peridot_status status = find_properties(&p, of);
    if (status == PERIDOT_OK) status = write_members(c, of, &p, from, to);
    free(p.of);
    return status;
}

/* ---- constants ---- */

static bool is_in(yyjson_val *list, yyjson_val *value)
{
    size_t i, n;
    yyjson_val *member;
    yyjson_arr_foreach(list, i, n, member) if (yyjson_equals(member, value)) return true;
    return false;
}

/* Whether all schemas from number `first` on that have constants have this one. */
static bool is_in_all(const struct pd_nodes *of, uint32_t first, yyjson_val *value)
{
    for (uint32_t i = first; i < of->n; i++) {
        yyjson_val *constant = yyjson_obj_get(of->at[i].value, "const"),
                   *list = yyjson_obj_get(of->at[i].value, "enum");
        if ((constant && !yyjson_equals(constant, value)) || (list && !is_in(list, value))) return false;
    }
    return true;
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

static peridot_status write_constants(struct compiler *c, const struct pd_nodes *of, unsigned types, bool alone)
{
    bool found = false;
    for (uint32_t i = 0; i < of->n; i++) {
        yyjson_val *constant = yyjson_obj_get(of->at[i].value, "const"),
                   *list = yyjson_obj_get(of->at[i].value, "enum"), *value;
        size_t n = constant ? 1 : yyjson_arr_size(list);
        yyjson_arr_iter members = yyjson_arr_iter_with(list);
        for (size_t k = 0; k < n && pd_rules_work(c->r, 1 + n * (of->n - i - 1)); k++) {
            value = constant ? constant : yyjson_arr_iter_next(&members);
            if (!(types & pd_json_type_of(value)) || !is_in_all(of, constant ? i : i + 1, value)) continue;
            pd_write_constant(&c->values, PD_NFA_START, value, PD_NFA_END);
            found = true;
        }
        if (constant || list) break;
    }
    return found || !alone ? c->r->status : fail_empty(of, "its enum, const and type leave none");
}

/* ---- values ---- */

/* An alternative among others that nothing satisfies is left out. */
static peridot_status write_alternative(struct compiler *c, const struct pd_nodes *of, bool alone)
{
    static const struct {
        unsigned type;
        write_type *write;
    } writers[] = {{PD_JSON_NULL, write_null}, {PD_JSON_BOOLEAN, write_boolean}, {PD_JSON_FRACTION, write_number},
                   {PD_JSON_INTEGER, write_integer}, {PD_JSON_STRING, write_string}, {PD_JSON_ARRAY, write_array},
                   {PD_JSON_OBJECT, write_object}};
    unsigned types;
    bool constants;
    PD_TRY(pd_nodes_types(&types, of));
    PD_TRY(check_constants(&constants, of));
    if (constants) return write_constants(c, of, types, alone);
    if (types == 0 && alone) return fail_empty(of, "its types exclude each other");
    if (types & PD_JSON_FRACTION) types &= ~(unsigned)PD_JSON_INTEGER;   /* numbers are both */
    for (size_t i = 0; i < PD_COUNT(writers); i++)
        if (types & writers[i].type) PD_TRY(writers[i].write(c, of, PD_NFA_START, PD_NFA_END));
    return PERIDOT_OK;
}

static peridot_status write_rule(struct compiler *c, const struct job *job)
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
static peridot_status write_text(struct compiler *c, uint32_t text_rule, uint32_t value_rule)
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

static peridot_status compile(struct compiler *c)
{
    struct pd_nodes root = {.at = {{c->d.root, "#"}}, .n = 1};
    uint32_t text_rule = pd_rules_add(c->r), value_rule;
    pd_values_begin(&c->values, c->r);
    PD_TRY(find_rule(&value_rule, c, &root));
    for (; c->n_done < c->n_jobs; c->n_done++) {
        const struct job job = c->jobs[c->n_done];   /* they move when there are more */
        PD_TRY(write_rule(c, &job));
    }
    PD_TRY(pd_values_finish(&c->values));
    PD_TRY(write_text(c, text_rule, value_rule));
    PD_TRY(pd_rules_finish(c->r));
    if (c->r->states[c->r->starts[text_rule]].height != PD_NEVER) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_ARGUMENT, "#: no value is valid: what is required contradicts itself, never ends, or "
                                          "nests too deep");
}

peridot_status pd_schema_compile(struct pd_rules *out, const char *schema, size_t size)
{
    struct compiler c = {.r = out};
    *out = (struct pd_rules){0};
    peridot_status status = pd_document_open(&c.d, schema, size);
    if (status == PERIDOT_OK) status = compile(&c);
    pd_document_close(&c.d);
    pd_values_free(&c.values);
    free(c.jobs);
    return status;
}

#include "grammar/object.h"

#include "base/array.h"
#include "base/utf8.h"
#include "grammar/alternatives.h"

#include <stdlib.h>

#define MAX_PROPERTIES 2000

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

static peridot_status add_property(struct properties *p, struct pd_work *work, yyjson_val *name, bool required,
                                   const char *path)
{
    PD_TRY(pd_work_spend(work, 1 + p->n));
    for (size_t i = 0; i < p->n; i++)
        if (yyjson_equals_strn(p->of[i].name, yyjson_get_str(name), yyjson_get_len(name))) {
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

static peridot_status find_properties(struct properties *p, struct pd_work *work, const struct pd_nodes *of)
{
    size_t i, n;
    yyjson_val *key, *value, *list;
    for (uint32_t k = 0; k < of->n; k++) {
        PD_TRY(pd_node_get(&list, &of->at[k], "properties", YYJSON_TYPE_OBJ));
        p->named = p->named || list;
        if (!list) continue;
        yyjson_obj_foreach(list, i, n, key, value) PD_TRY(add_property(p, work, key, false, of->at[k].path));
    }
    for (uint32_t k = 0; k < of->n; k++) {
        PD_TRY(pd_node_get(&list, &of->at[k], "required", YYJSON_TYPE_ARR));
        yyjson_arr_foreach(list, i, n, value) {
            if (!yyjson_is_str(value))
                return pd_fail(PERIDOT_ERROR_FORMAT, "required at " PD_PATH " is not a list of names", of->at[k].path);
            PD_TRY(add_property(p, work, value, true, of->at[k].path));
        }
    }
    return PERIDOT_OK;
}

/* From a state before the quote of a name to after the value. */
static peridot_status write_property(struct pd_compiler *c, const struct pd_nodes *of, const struct property *p,
                                     uint32_t from, uint32_t to)
{
    const struct pd_name name = {yyjson_get_str(p->name), yyjson_get_len(p->name)};
    struct pd_nodes nodes;
    uint32_t rule, after = pd_nfa_state(c->r);
    PD_TRY(pd_nodes_property(&nodes, &c->d, of, name));
    for (uint32_t i = 0; p->required && i < nodes.n; i++)
        if (yyjson_is_false(nodes.at[i].value))
            return pd_fail(PERIDOT_ERROR_ARGUMENT, PD_PATH ": no value is valid: property %.100s is required, and "
                                                           "forbidden at " PD_PATH,
                           of->at[0].path, name.text, nodes.at[i].path);
    PD_TRY(pd_compiler_rule(&rule, c, &nodes));
    pd_write_text(&c->values, from, name.text, name.size, after);
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

static peridot_status add_name(struct pd_compiler *c, struct letters *l, yyjson_val *name)
{
    const char *bytes = yyjson_get_str(name);
    size_t size = yyjson_get_len(name), length;
    uint32_t at = 0, code;
    for (size_t i = 0; i < size; i += length) {
        pd_utf8_next(&code, &length, bytes + i, size - i);
        uint32_t k = l->of[at].inner;
        while (k && l->of[k].code != code && pd_rules_work(c->r, 1)) k = l->of[k].next;
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
static peridot_status write_letters(struct pd_compiler *c, const struct letters *l, uint32_t at, uint32_t other)
{
    uint32_t n = 0, begin = 0, *codes;
    for (uint32_t k = l->of[at].inner; k; k = l->of[k].next) n++;
    PD_TRY(pd_work_spend_sort(&c->r->work, 16 + n));
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
static peridot_status write_other_name(struct pd_compiler *c, const struct properties *p, uint32_t from, uint32_t to)
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
static peridot_status write_others(struct pd_compiler *c, const struct pd_nodes *of, const struct properties *p,
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
    PD_TRY(pd_nodes_property(&nodes, &c->d, of, (struct pd_name){0}));
    PD_TRY(pd_compiler_rule(&rule, c, &nodes));
    pd_nfa_skip(c->r, first, name);
    pd_nfa_skip(c->r, pd_write_mark(&c->values, later, ','), name);
    if (p->n) PD_TRY(write_other_name(c, p, name, after));
    else pd_write_length(&c->values, name, 0, UINT32_MAX, after);
    pd_nfa_call(c->r, pd_write_mark(&c->values, after, ':'), rule, later);
    return PERIDOT_OK;
}

/* `first`: nothing is written yet; `later`: something is. */
static peridot_status write_members(struct pd_compiler *c, const struct pd_nodes *of, const struct properties *p)
{
    uint32_t first = pd_write_mark(&c->values, PD_NFA_START, '{'), later = pd_nfa_state(c->r);
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
    pd_nfa_any_of(c->r, first, "}", PD_NFA_END);
    pd_nfa_any_of(c->r, pd_write_space(&c->values, later), "}", PD_NFA_END);
    return PERIDOT_OK;
}

peridot_status pd_write_object(struct pd_compiler *c, const struct pd_nodes *of)
{
    struct properties p = {0};
    peridot_status status = find_properties(&p, &c->r->work, of);
    if (status == PERIDOT_OK) status = write_members(c, of, &p);
    free(p.of);
    return status;
}

/* Arrays of a schema. */
#include "grammar/grammar_.h"

#include "base/base.h"

#include <stdlib.h>

#define MAX_ANY_ORDER 10           /* values of which each comes once, in any order: there are 1024 sets of them */

/* ---- items ---- */

/* The schemas of the first items: prefixItems, or items where it is a list, as drafts before 2020-12 have it. */
static yyjson_val *prefix_of(const struct pd_node *node)
{
    yyjson_val *items = yyjson_obj_get(node->value, "items");
    return yyjson_is_arr(items) ? items : yyjson_obj_get(node->value, "prefixItems");
}

static size_t count_prefix(const struct pd_nodes *of)
{
    size_t n = 0;
    for (uint32_t i = 0; i < of->n; i++) n = (size_t)pd_max(n, yyjson_arr_size(prefix_of(&of->at[i])));
    return n;
}

/* What a schema says of item i; *out with no value: nothing. */
static peridot_status find_child(struct pd_node *out, struct pd_compiler *c, const struct pd_node *node, size_t i)
{
    yyjson_val *items = yyjson_obj_get(node->value, "items"), *prefix, *own;
    PD_TRY(pd_node_get(&prefix, node, "prefixItems", YYJSON_TYPE_ARR));
    const char *prefix_key = yyjson_is_arr(items) ? "items" : "prefixItems", *key = "items";
    *out = (struct pd_node){0};
    if (yyjson_is_arr(items)) {
        key = "additionalItems";
        items = yyjson_obj_get(node->value, key);
    }
    PD_TRY(pd_list_get(&own, &c->d, prefix_of(node), i));
    if (own) return pd_node_member(out, &c->d, node, prefix_key, i, own);
    return items ? pd_node_child(out, &c->d, node, key, (struct pd_key){0}, items) : PERIDOT_OK;
}

/* The schemas of item i. Where none says anything of it, unevaluatedItems does. */
static peridot_status find_item(struct pd_nodes *out, struct pd_compiler *c, const struct pd_nodes *of, size_t i)
{
    struct pd_node child;
    *out = (struct pd_nodes){0};
    for (uint32_t k = 0; k < of->n; k++) {
        PD_TRY(find_child(&child, c, &of->at[k], i));
        if (child.value) PD_TRY(pd_nodes_add(out, child));
    }
    return out->n ? PERIDOT_OK : pd_compiler_unevaluated(out, c, of, "unevaluatedItems");
}

/* ---- each value once ---- */

/* Values of which each is written once at most. */
struct unique {
    struct pd_constants values;
    uint32_t may[MAX_ANY_ORDER + 1];   /* bit v: item i may be value v; the last: items from there on */
    uint32_t n_places;             /* of those */
    uint32_t min, max;
};

static bool wants_unique(const struct pd_nodes *of)
{
    for (uint32_t i = 0; i < of->n; i++)
        if (yyjson_is_true(yyjson_obj_get(of->at[i].value, "uniqueItems"))) return true;
    return false;
}

static peridot_status number_value(size_t *out, struct unique *u, struct pd_document *d, yyjson_val *value)
{
    for (*out = 0; *out < u->values.n; ++*out) {
        bool same;
        PD_TRY(pd_constants_may_equal(&same, d, u->values.at[*out], value));
        if (same) return PERIDOT_OK;
    }
    PD_TRY(pd_array_reserve(&u->values.at, &u->values.capacity, u->values.n, 1, sizeof *u->values.at, "constants"));
    u->values.at[u->values.n++] = value;
    return PERIDOT_OK;
}

/* The values of item i. */
static peridot_status find_values(struct unique *u, struct pd_compiler *c, const struct pd_nodes *of, uint32_t i)
{
    struct pd_constants values = {0};
    struct pd_nodes nodes;
    bool finite;
    size_t number = 0;
    PD_TRY(find_item(&nodes, c, of, i));
    peridot_status status = pd_constants_find_all(&values, &finite, &c->d, &nodes);
    if (status == PERIDOT_OK && !finite)
        status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "uniqueItems at " PD_PATH " is supported only where each item is "
                         "of enum, const, null or boolean", of->at[0].path);
    for (size_t k = 0; k < values.n && status == PERIDOT_OK; k++) {
        status = number_value(&number, u, &c->d, values.at[k]);
        if (number < MAX_ANY_ORDER) u->may[i] |= 1u << number;
    }
    pd_constants_free(&values);
    return status;
}

/* In any order: a state for each set of values that were written. */
static peridot_status write_any_order(struct unique *u, struct pd_compiler *c, uint32_t begin)
{
    uint32_t states[1u << MAX_ANY_ORDER] = {begin}, rules[MAX_ANY_ORDER];
    for (size_t v = 0; v < u->values.n; v++) PD_TRY(pd_compiler_constant(&rules[v], c, u->values.at[v]));
    for (uint32_t set = 0; set < 1u << u->values.n && pd_rules_work(c->r, 1); set++) {
        uint32_t n = 0, from = states[set];
        for (uint32_t v = 0; v < u->values.n; v++) n += set >> v & 1;
        if (set && !states[set]) continue;
        if (n >= u->min) pd_nfa_any_of(c->r, set ? pd_write_space(&c->values, from) : from, "]", PD_NFA_END);
        if (n >= u->max) continue;
        if (set) from = pd_write_mark(&c->values, from, ',');
        for (uint32_t v = 0; v < u->values.n; v++) {
            uint32_t next = set | 1u << v;
            if (next == set || !(u->may[pd_min(n, u->n_places - 1)] >> v & 1)) continue;
            if (!states[next]) states[next] = pd_nfa_state(c->r);
            pd_nfa_call(c->r, from, rules[v], states[next]);
        }
    }
    return c->r->status;
}

/* In the order in which they are given: after each value, a state for how many were written. */
static peridot_status write_in_order(struct unique *u, struct pd_compiler *c, uint32_t begin)
{
    size_t most = pd_max(pd_min(u->min, u->values.n + 1), 1);   /* counted so far, and no further */
    uint32_t n = (uint32_t)(u->max == UINT32_MAX ? most : pd_min(u->max, u->values.n)), *now, *next;
    uint32_t *states = calloc(2 * ((size_t)n + 1), sizeof *states);
    if (!states) return pd_fail_alloc(2 * ((size_t)n + 1) * sizeof *states, "constants");
    now = states;
    next = states + n + 1;
    now[0] = begin;
    for (uint32_t k = 1; k <= n; k++) now[k] = pd_nfa_state(c->r);
    for (size_t v = 0; v < u->values.n && pd_rules_work(c->r, n); v++) {
        for (uint32_t k = 0; k <= n; k++) {
            next[k] = pd_nfa_state(c->r);
            pd_nfa_skip(c->r, now[k], next[k]);
        }
        for (uint32_t k = 0; k <= n && k <= v && pd_rules_work(c->r, 1); k++) {
            bool full = k == n;
            if (full && u->max != UINT32_MAX) continue;
            pd_write_constant(&c->values, k ? pd_write_mark(&c->values, now[k], ',') : now[0], u->values.at[v],
                              next[full ? k : k + 1]);
        }
        uint32_t *swap = now;
        now = next;
        next = swap;
    }
    if (u->min == 0) pd_nfa_any_of(c->r, now[0], "]", PD_NFA_END);
    for (uint32_t k = (uint32_t)pd_max(u->min, 1); k <= n; k++)
        pd_nfa_any_of(c->r, pd_write_space(&c->values, now[k]), "]", PD_NFA_END);
    free(states);
    return c->r->status;
}

static peridot_status write_unique(struct pd_compiler *c, const struct pd_nodes *of, struct unique *u, size_t n_prefix)
{
    if (n_prefix > MAX_ANY_ORDER)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "uniqueItems at " PD_PATH " is not supported beside more than %d "
                       "prefixItems", of->at[0].path, MAX_ANY_ORDER);
    u->n_places = (uint32_t)n_prefix + 1;
    for (uint32_t i = 0; i < u->n_places; i++) PD_TRY(find_values(u, c, of, i));
    uint32_t begin = pd_write_mark(&c->values, PD_NFA_START, '[');
    if (u->values.n <= MAX_ANY_ORDER) return write_any_order(u, c, begin);
    if (n_prefix == 0) return write_in_order(u, c, begin);
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "uniqueItems at " PD_PATH ": items have more than %d values beside "
                   "prefixItems", of->at[0].path, MAX_ANY_ORDER);
}

/* ---- any values ---- */

static peridot_status write_items(struct pd_compiler *c, const struct pd_nodes *of, uint32_t min, uint32_t max,
                                  size_t n_prefix)
{
    struct pd_nodes nodes;
    uint32_t rule, state = pd_write_mark(&c->values, PD_NFA_START, '['), last = max;
    if (max == UINT32_MAX) last = (uint32_t)pd_max(pd_max(min, n_prefix), 1);
    if (min == 0) pd_nfa_any_of(c->r, state, "]", PD_NFA_END);
    for (uint32_t i = 0; i < last && c->r->status == PERIDOT_OK; i++) {
        uint32_t after = pd_nfa_state(c->r);
        if (i <= n_prefix) {       /* those beyond are alike */
            PD_TRY(find_item(&nodes, c, of, i));
            PD_TRY(pd_compiler_rule(&rule, c, &nodes));
        }
        pd_nfa_call(c->r, i ? pd_write_mark(&c->values, state, ',') : state, rule, after);
        if (i + 1 >= min) pd_nfa_any_of(c->r, pd_write_space(&c->values, after), "]", PD_NFA_END);
        state = after;
    }
    if (max != UINT32_MAX) return PERIDOT_OK;
    PD_TRY(find_item(&nodes, c, of, last));
    PD_TRY(pd_compiler_rule(&rule, c, &nodes));
    pd_nfa_call(c->r, pd_write_mark(&c->values, state, ','), rule, state);
    return PERIDOT_OK;
}

peridot_status pd_write_array(struct pd_compiler *c, const struct pd_nodes *of)
{
    struct unique u = {0};
    size_t n_prefix = count_prefix(of);
    PD_TRY(pd_nodes_counts(&u.min, &u.max, of, "minItems", "maxItems"));
    if (!wants_unique(of) || u.max <= 1) return write_items(c, of, u.min, u.max, n_prefix);
    peridot_status status = write_unique(c, of, &u, n_prefix);
    pd_constants_free(&u.values);
    return status;
}

/* A schema as alternatives: sets of schemas without $ref, anyOf, oneOf and allOf to follow, of which a value must
 * satisfy all of one. */
#include "grammar/grammar_.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

#define MAX_ALTERNATIVES 256
#define MAX_FOLLOWED 64            /* references and combinations within one another */
#define MAX_COMPARED 8             /* properties within one another, to tell alternatives of oneOf apart */

/* Schemas that are being followed: a schema that leads to itself says nothing. */
struct followed {
    const struct followed *outer;
    const struct pd_node *node;
    uint32_t depth;
};

void pd_alternatives_free(struct pd_alternatives *a)
{
    free(a->of);
    *a = (struct pd_alternatives){0};
}

static peridot_status add_combination(struct pd_alternatives *a, struct pd_work *work, const struct pd_nodes *nodes,
                                      const char *path)
{
    PD_TRY(pd_work_spend(work, sizeof *nodes / 8));
    if (a->n == MAX_ALTERNATIVES)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, PD_PATH ": more than %d combinations of alternatives", path,
                       MAX_ALTERNATIVES);
    PD_TRY(pd_array_reserve(&a->of, &a->capacity, a->n, 1, sizeof *a->of, "alternatives"));
    a->of[a->n++] = *nodes;
    return PERIDOT_OK;
}

/* *a becomes those of which each satisfies one of a and one of b. */
static peridot_status combine(struct pd_alternatives *a, struct pd_work *work, const struct pd_alternatives *b,
                              const char *path)
{
    struct pd_alternatives both = {0};
    peridot_status status = PERIDOT_OK;
    for (size_t i = 0; i < a->n; i++)
        for (size_t k = 0; k < b->n && status == PERIDOT_OK; k++) {
            struct pd_nodes nodes = a->of[i];
            status = pd_work_spend(work, PD_MAX_NODES * (1 + b->of[k].n));
            for (uint32_t m = 0; m < b->of[k].n && status == PERIDOT_OK; m++)
                status = pd_nodes_add(&nodes, b->of[k].at[m]);
            if (status == PERIDOT_OK) status = add_combination(&both, work, &nodes, path);
        }
    pd_alternatives_free(a);
    *a = both;
    return status;
}

static peridot_status flatten(struct pd_alternatives *out, struct pd_document *d, const struct pd_node *node,
                              const struct followed *outer);

static peridot_status combine_node(struct pd_alternatives *out, struct pd_document *d, const struct pd_node *node,
                                   const struct followed *outer)
{
    struct pd_alternatives of = {0};
    peridot_status status = flatten(&of, d, node, outer);
    if (status == PERIDOT_OK) status = combine(out, d->work, &of, node->path);
    pd_alternatives_free(&of);
    return status;
}

static peridot_status combine_all(struct pd_alternatives *out, struct pd_document *d, const struct pd_node *node,
                                  yyjson_val *list, const struct followed *outer)
{
    size_t i, n;
    yyjson_val *member;
    struct pd_node child;
    yyjson_arr_foreach(list, i, n, member) {
        PD_TRY(pd_node_member(&child, d, node, "allOf", i, member));
        PD_TRY(combine_node(out, d, &child, outer));
    }
    return PERIDOT_OK;
}

/* ---- alternatives that exclude each other ---- */

static peridot_status are_disjoint(bool *out, struct pd_document *d, const struct pd_nodes *a, const struct pd_nodes *b,
                                   int depth);

/* Types that values have: that are written, or any. */
static peridot_status true_types(unsigned *types, struct pd_document *d, const struct pd_nodes *nodes)
{
    *types = PD_JSON_ANY;
    for (uint32_t i = 0; i < nodes->n; i++) {
        unsigned of;
        PD_TRY(pd_node_spend(d, &nodes->at[i]));
        PD_TRY(pd_node_types(&of, &nodes->at[i]));
        *types &= of;
    }
    return PERIDOT_OK;
}

/* Values of the first schema that has some: of an enum, or one. */
struct constants {
    yyjson_val *list, *single;
    size_t n;
};

static struct constants find_constants(const struct pd_nodes *nodes)
{
    for (uint32_t i = 0; i < nodes->n; i++) {
        yyjson_val *single = yyjson_obj_get(nodes->at[i].value, "const"),
                   *list = yyjson_obj_get(nodes->at[i].value, "enum");
        if (single) return (struct constants){NULL, single, 1};
        if (list) return (struct constants){list, NULL, yyjson_arr_size(list)};
    }
    return (struct constants){0};
}

static bool is_given(const struct constants *c) { return c->list || c->single; }

/* None of the constants of a is one of b; where b has none, none is of its types. */
static peridot_status constants_differ(bool *out, struct pd_document *d, const struct constants *a,
                                       const struct constants *b, unsigned b_types)
{
    yyjson_arr_iter members = yyjson_arr_iter_with(a->list);
    *out = true;
    for (size_t i = 0; i < a->n && *out; i++) {
        yyjson_val *x = a->single ? a->single : yyjson_arr_iter_next(&members);
        bool same = !is_given(b) && (pd_json_type_of(x) & b_types);
        PD_TRY(pd_work_spend(d->work, 1));
        if (b->single) PD_TRY(pd_index_may_equal(&same, &d->index, x, b->single));
        if (b->list) PD_TRY(pd_index_may_have(&same, &d->index, b->list, x));
        *out = !same;
    }
    return PERIDOT_OK;
}

/* No constant is of both; types are those of what has none. */
static peridot_status values_differ(bool *out, struct pd_document *d, const struct pd_nodes *a,
                                    const struct pd_nodes *b, unsigned a_types, unsigned b_types)
{
    struct constants of_a = find_constants(a), of_b = find_constants(b);
    *out = false;
    bool a_first = is_given(&of_a) && (!is_given(&of_b) || of_a.n <= of_b.n);
    if (a_first) return constants_differ(out, d, &of_a, &of_b, b_types);
    return is_given(&of_b) ? constants_differ(out, d, &of_b, &of_a, a_types) : PERIDOT_OK;
}

static peridot_status requires(bool *out, struct pd_document *d, const struct pd_nodes *nodes, yyjson_val *name)
{
    *out = false;
    for (uint32_t k = 0; k < nodes->n && !*out; k++)
        PD_TRY(pd_index_has(out, &d->index, yyjson_obj_get(nodes->at[k].value, "required"), name));
    return PERIDOT_OK;
}

/* The property of that name, which both must have, is never the same in both. */
static peridot_status property_differs(bool *out, struct pd_document *d, const struct pd_nodes *a,
                                       const struct pd_nodes *b, yyjson_val *name, int depth)
{
    struct pd_nodes of_a, of_b;
    const struct pd_key property = {yyjson_get_str(name), yyjson_get_len(name)};
    PD_TRY(requires(out, d, b, name));
    if (!*out) return PERIDOT_OK;
    PD_TRY(pd_nodes_property(&of_a, d, a, property));
    PD_TRY(pd_nodes_property(&of_b, d, b, property));
    return are_disjoint(out, d, &of_a, &of_b, depth + 1);
}

static peridot_status properties_differ(bool *out, struct pd_document *d, const struct pd_nodes *a,
                                        const struct pd_nodes *b, int depth)
{
    size_t i, n;
    yyjson_val *name;
    *out = false;
    for (uint32_t k = 0; k < a->n && depth < MAX_COMPARED; k++) {
        yyjson_val *required = yyjson_obj_get(a->at[k].value, "required");
        yyjson_arr_foreach(required, i, n, name) {
            PD_TRY(pd_work_spend(d->work, 1));
            if (yyjson_is_str(name)) PD_TRY(property_differs(out, d, a, b, name, depth));
            if (*out) return PERIDOT_OK;
        }
    }
    return PERIDOT_OK;
}

/* What an alternative writes is compared with what the other allows, which may be more where `type` is absent. */
static peridot_status pair_is_disjoint(bool *out, struct pd_document *d, const struct pd_nodes *a,
                                       const struct pd_nodes *b, int depth)
{
    unsigned a_writes, b_writes, a_allows, b_allows;
    PD_TRY(pd_nodes_types(&a_writes, d, a));
    PD_TRY(pd_nodes_types(&b_writes, d, b));
    PD_TRY(true_types(&a_allows, d, a));
    PD_TRY(true_types(&b_allows, d, b));
    unsigned common = (a_writes & b_allows) | (b_writes & a_allows);
    *out = common == 0;
    if (!*out) PD_TRY(values_differ(out, d, a, b, a_allows, b_allows));
    if (*out || (common & ~(unsigned)PD_JSON_OBJECT)) return PERIDOT_OK;
    return properties_differ(out, d, a, b, depth);
}

static peridot_status are_disjoint(bool *out, struct pd_document *d, const struct pd_nodes *a, const struct pd_nodes *b,
                                   int depth)
{
    struct pd_alternatives of_a = {0}, of_b = {0};
    *out = true;
    peridot_status status = pd_alternatives_find(&of_a, d, a);
    if (status == PERIDOT_OK) status = pd_alternatives_find(&of_b, d, b);
    for (size_t i = 0; i < of_a.n && status == PERIDOT_OK; i++)
        for (size_t k = 0; k < of_b.n && status == PERIDOT_OK && *out; k++)
            status = pair_is_disjoint(out, d, &of_a.of[i], &of_b.of[k], depth);
    pd_alternatives_free(&of_a);
    pd_alternatives_free(&of_b);
    return status;
}

/* `member`: of the list, that each of the alternatives is of. */
static peridot_status check_exclusive(struct pd_document *d, const struct pd_node *node,
                                      const struct pd_alternatives *one, const uint32_t *member)
{
    for (size_t i = 0; i < one->n; i++)
        for (size_t k = 0; k < i; k++) {
            bool disjoint = member[k] == member[i];
            if (!disjoint) PD_TRY(pair_is_disjoint(&disjoint, d, &one->of[k], &one->of[i], 0));
            if (!disjoint)
                return pd_fail(PERIDOT_ERROR_UNSUPPORTED,
                               "oneOf at " PD_PATH ": a value may satisfy alternatives %u and %u, which neither a "
                               "type nor a const or enum tells apart", node->path, member[k], member[i]);
        }
    return PERIDOT_OK;
}

/* ---- following ---- */

/* An alternative of anyOf that is not supported is left out where another remains; within oneOf none is, as those that
 * remain must be told from all it allows. */
static peridot_status combine_any(struct pd_alternatives *out, struct pd_document *d, const struct pd_node *node,
                                  const char *key, yyjson_val *list, const struct followed *outer)
{
    bool exclusive = strcmp(key, "oneOf") == 0;
    struct pd_alternatives any = {0}, of = {0};
    uint32_t of_member[MAX_ALTERNATIVES];
    size_t i, n;
    yyjson_val *member;
    struct pd_node child;
    peridot_status status = PERIDOT_OK, left_out = PERIDOT_OK;
    d->n_exact += exclusive;
    yyjson_arr_foreach(list, i, n, member) {
        if (status == PERIDOT_OK) status = pd_node_member(&child, d, node, key, i, member);
        if (status == PERIDOT_OK) status = flatten(&of, d, &child, outer);
        if (status == PERIDOT_ERROR_UNSUPPORTED && d->n_exact == 0) {
            pd_alternatives_free(&of);
            left_out = status;
            status = PERIDOT_OK;
        }
        for (size_t k = 0; k < of.n && status == PERIDOT_OK; k++) {
            status = add_combination(&any, d->work, &of.of[k], node->path);
            if (status == PERIDOT_OK) of_member[any.n - 1] = (uint32_t)i;
        }
        pd_alternatives_free(&of);
        if (status != PERIDOT_OK) break;
    }
    if (status == PERIDOT_OK && any.n == 0) status = left_out;
    if (status == PERIDOT_OK && exclusive) status = check_exclusive(d, node, &any, of_member);
    d->n_exact -= exclusive;
    if (status == PERIDOT_OK) status = combine(out, d->work, &any, node->path);
    pd_alternatives_free(&any);
    return status;
}

static peridot_status get_list(yyjson_val **out, const struct pd_node *node, const char *key)
{
    PD_TRY(pd_node_get(out, node, key, YYJSON_TYPE_ARR));
    if (!*out || yyjson_arr_size(*out)) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_FORMAT, "%s at " PD_PATH " is empty", key, node->path);
}

static peridot_status follow_keywords(struct pd_alternatives *out, struct pd_document *d, const struct pd_node *node,
                                      const struct followed *self)
{
    yyjson_val *reference = yyjson_obj_get(node->value, "$ref"), *all, *any, *one;
    struct pd_node target;
    PD_TRY(get_list(&all, node, "allOf"));
    PD_TRY(get_list(&any, node, "anyOf"));
    PD_TRY(get_list(&one, node, "oneOf"));
    if (reference) PD_TRY(pd_node_follow(&target, d, node, reference));
    if (reference) PD_TRY(combine_node(out, d, &target, self));
    if (all) PD_TRY(combine_all(out, d, node, all, self));
    if (any) PD_TRY(combine_any(out, d, node, "anyOf", any, self));
    if (one) PD_TRY(combine_any(out, d, node, "oneOf", one, self));
    return PERIDOT_OK;
}

static peridot_status flatten(struct pd_alternatives *out, struct pd_document *d, const struct pd_node *node,
                              const struct followed *outer)
{
    struct followed self = {outer, node, outer ? outer->depth + 1 : 0};
    struct pd_nodes nodes = {0};
    *out = (struct pd_alternatives){0};
    if (yyjson_is_false(node->value)) return PERIDOT_OK;
    if (yyjson_is_true(node->value)) return add_combination(out, d->work, &nodes, node->path);
    PD_TRY(pd_node_check(d, node));
    if (pd_node_is_never(node)) return PERIDOT_OK;
    for (const struct followed *f = outer; f; f = f->outer)
        if (f->node->value == node->value)
            return pd_fail(PERIDOT_ERROR_FORMAT, PD_PATH " refers to itself before any value begins", node->path);
    if (self.depth > MAX_FOLLOWED)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, PD_PATH ": schemas refer to each other more than %d deep", node->path,
                       MAX_FOLLOWED);
    nodes.at[nodes.n++] = *node;
    PD_TRY(add_combination(out, d->work, &nodes, node->path));
    return follow_keywords(out, d, node, &self);
}

peridot_status pd_alternatives_find(struct pd_alternatives *out, struct pd_document *d, const struct pd_nodes *nodes)
{
    const struct pd_nodes none = {0};
    *out = (struct pd_alternatives){0};
    PD_TRY(add_combination(out, d->work, &none, "#"));
    for (uint32_t i = 0; i < nodes->n; i++) PD_TRY(combine_node(out, d, &nodes->at[i], NULL));
    return PERIDOT_OK;
}

/* ---- what schemas say together ---- */

peridot_status pd_nodes_types(unsigned *types, struct pd_document *d, const struct pd_nodes *nodes)
{
    unsigned about = 0;
    bool given = false;
    PD_TRY(true_types(types, d, nodes));
    for (uint32_t i = 0; i < nodes->n; i++) {
        about |= pd_node_is_about(&nodes->at[i]);
        given = given || yyjson_obj_get(nodes->at[i].value, "type") || yyjson_obj_get(nodes->at[i].value, "const") ||
                yyjson_obj_get(nodes->at[i].value, "enum");
    }
    if (!given && about) *types = about;
    return PERIDOT_OK;
}

peridot_status pd_nodes_property(struct pd_nodes *out, struct pd_document *d, const struct pd_nodes *of,
                                 struct pd_key name)
{
    *out = (struct pd_nodes){0};
    for (uint32_t i = 0; i < of->n; i++) {
        const struct pd_node *node = &of->at[i];
        yyjson_val *properties, *value;
        struct pd_node child;
        bool named = false;
        PD_TRY(pd_node_get(&properties, node, "properties", YYJSON_TYPE_OBJ));
        PD_TRY(pd_index_get(&value, &d->index, properties, name.text, name.size));
        if (value) {
            named = true;
            PD_TRY(pd_node_child(&child, d, node, "properties", name, value));
            PD_TRY(pd_nodes_add(out, child));
        }
        PD_TRY(pd_names_add_matched(out, &named, d, node, name));
        value = yyjson_obj_get(node->value, "additionalProperties");
        if (named || !value) continue;
        PD_TRY(pd_node_child(&child, d, node, "additionalProperties", (struct pd_key){0}, value));
        PD_TRY(pd_nodes_add(out, child));
    }
    return PERIDOT_OK;
}

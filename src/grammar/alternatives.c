#include "grammar/alternatives.h"

#include "base/array.h"
#include "base/num.h"

#include <stdlib.h>

#define MAX_ALTERNATIVES 256
#define MAX_FOLLOWED 64            /* references and combinations within one another */
#define MAX_WORK 3000000u
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

static peridot_status add(struct pd_alternatives *a, const struct pd_nodes *nodes, const char *path)
{
    if (a->n == MAX_ALTERNATIVES)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, PD_PATH ": more than %d combinations of alternatives", path,
                       MAX_ALTERNATIVES);
    PD_TRY(pd_array_reserve(&a->of, &a->capacity, a->n, 1, sizeof *a->of, "alternatives"));
    a->of[a->n++] = *nodes;
    return PERIDOT_OK;
}

/* *a becomes those of which each satisfies one of a and one of b. */
static peridot_status combine(struct pd_alternatives *a, const struct pd_alternatives *b, const char *path)
{
    struct pd_alternatives both = {0};
    peridot_status status = PERIDOT_OK;
    for (size_t i = 0; i < a->n; i++)
        for (size_t k = 0; k < b->n && status == PERIDOT_OK; k++) {
            struct pd_nodes nodes = a->of[i];
            for (uint32_t m = 0; m < b->of[k].n && status == PERIDOT_OK; m++)
                status = pd_nodes_add(&nodes, b->of[k].at[m]);
            if (status == PERIDOT_OK) status = add(&both, &nodes, path);
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
    if (status == PERIDOT_OK) status = combine(out, &of, node->path);
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
static peridot_status true_types(unsigned *types, const struct pd_nodes *nodes)
{
    *types = PD_JSON_ANY;
    for (uint32_t i = 0; i < nodes->n; i++) {
        unsigned of;
        PD_TRY(pd_node_types(&of, &nodes->at[i]));
        *types &= of;
    }
    return PERIDOT_OK;
}

/* The list of values of the first schema that has one; *single: a const. */
static yyjson_val *find_constants(const struct pd_nodes *nodes, bool *single)
{
    for (uint32_t i = 0; i < nodes->n; i++) {
        yyjson_val *constant = yyjson_obj_get(nodes->at[i].value, "const"),
                   *list = yyjson_obj_get(nodes->at[i].value, "enum");
        *single = constant != NULL;
        if (constant || list) return constant ? constant : list;
    }
    return NULL;
}

/* Member i of those, NULL past the last. */
static yyjson_val *constant_at(yyjson_val *constants, bool single, size_t i)
{
    return single ? i == 0 ? constants : NULL : yyjson_arr_get(constants, i);
}

static bool may_equal(yyjson_val *x, yyjson_val *y)
{
    if (yyjson_get_type(x) != yyjson_get_type(y)) return false;
    return yyjson_is_num(x) ? yyjson_get_num(x) == yyjson_get_num(y) : yyjson_is_ctn(x) || yyjson_equals(x, y);
}

/* No constant is of both; `other_types` are those of what has none. */
static bool constants_differ(const struct pd_nodes *a, const struct pd_nodes *b, unsigned a_types, unsigned b_types)
{
    bool a_single = false, b_single = false;
    yyjson_val *of_a = find_constants(a, &a_single), *of_b = find_constants(b, &b_single), *x, *y;
    bool differ = of_a || of_b;
    for (size_t i = 0; of_a && (x = constant_at(of_a, a_single, i)); i++) {
        if (!of_b) differ = differ && !(pd_json_type_of(x) & b_types);
        for (size_t k = 0; of_b && (y = constant_at(of_b, b_single, k)); k++)
            differ = differ && !may_equal(x, y);
    }
    for (size_t k = 0; !of_a && of_b && (y = constant_at(of_b, b_single, k)); k++)
        differ = differ && !(pd_json_type_of(y) & a_types);
    return differ;
}

static bool requires(const struct pd_nodes *nodes, yyjson_val *name)
{
    size_t i, n;
    yyjson_val *member;
    for (uint32_t k = 0; k < nodes->n; k++) {
        yyjson_val *required = yyjson_obj_get(nodes->at[k].value, "required");
        yyjson_arr_foreach(required, i, n, member) if (yyjson_equals(member, name)) return true;
    }
    return false;
}

/* A property that both must have is never the same in both. */
static peridot_status properties_differ(bool *out, struct pd_document *d, const struct pd_nodes *a,
                                        const struct pd_nodes *b, int depth)
{
    size_t i, n;
    yyjson_val *name;
    *out = false;
    for (uint32_t k = 0; k < a->n && depth < MAX_COMPARED; k++) {
        yyjson_val *required = yyjson_obj_get(a->at[k].value, "required");
        yyjson_arr_foreach(required, i, n, name) {
            struct pd_nodes of_a, of_b;
            if (*out || !yyjson_is_str(name) || !requires(b, name)) continue;
            const struct pd_name property = {yyjson_get_str(name), yyjson_get_len(name)};
            PD_TRY(pd_nodes_property(&of_a, d, a, property));
            PD_TRY(pd_nodes_property(&of_b, d, b, property));
            PD_TRY(are_disjoint(out, d, &of_a, &of_b, depth + 1));
        }
    }
    return PERIDOT_OK;
}

/* What an alternative writes is compared with what the other allows, which may be more where `type` is absent. */
static peridot_status pair_is_disjoint(bool *out, struct pd_document *d, const struct pd_nodes *a,
                                       const struct pd_nodes *b, int depth)
{
    unsigned a_writes, b_writes, a_allows, b_allows;
    PD_TRY(pd_nodes_types(&a_writes, a));
    PD_TRY(pd_nodes_types(&b_writes, b));
    PD_TRY(true_types(&a_allows, a));
    PD_TRY(true_types(&b_allows, b));
    unsigned common = (a_writes & b_allows) | (b_writes & a_allows);
    *out = common == 0 || constants_differ(a, b, a_allows, b_allows);
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

static peridot_status check_exclusive(struct pd_document *d, const struct pd_node *node, yyjson_val *list)
{
    size_t i, k, n;
    yyjson_val *member, *other;
    yyjson_arr_foreach(list, i, n, member) {
        struct pd_nodes a = {.n = 1};
        PD_TRY(pd_node_member(&a.at[0], d, node, "oneOf", i, member));
        for (k = 0; k < i; k++) {
            struct pd_nodes b = {.n = 1};
            bool disjoint;
            other = yyjson_arr_get(list, k);
            PD_TRY(pd_node_member(&b.at[0], d, node, "oneOf", k, other));
            PD_TRY(are_disjoint(&disjoint, d, &a, &b, 0));
            if (!disjoint)
                return pd_fail(PERIDOT_ERROR_UNSUPPORTED,
                               "oneOf at " PD_PATH ": a value may satisfy alternatives %zu and %zu, which neither a "
                               "type nor a const or enum tells apart", node->path, k, i);
        }
    }
    return PERIDOT_OK;
}

/* ---- following ---- */

static peridot_status combine_any(struct pd_alternatives *out, struct pd_document *d, const struct pd_node *node,
                                  const char *key, yyjson_val *list, const struct followed *outer)
{
    struct pd_alternatives any = {0}, of = {0};
    size_t i, n;
    yyjson_val *member;
    struct pd_node child;
    peridot_status status = PERIDOT_OK;
    yyjson_arr_foreach(list, i, n, member) {
        if (status == PERIDOT_OK) status = pd_node_member(&child, d, node, key, i, member);
        if (status == PERIDOT_OK) status = flatten(&of, d, &child, outer);
        for (size_t k = 0; k < of.n && status == PERIDOT_OK; k++) status = add(&any, &of.of[k], node->path);
        pd_alternatives_free(&of);
    }
    if (status == PERIDOT_OK) status = combine(out, &any, node->path);
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
    if (one) PD_TRY(combine_any(out, d, node, "oneOf", one, self));   /* a schema that leads to itself fails there */
    return one ? check_exclusive(d, node, one) : PERIDOT_OK;
}

static peridot_status flatten(struct pd_alternatives *out, struct pd_document *d, const struct pd_node *node,
                              const struct followed *outer)
{
    struct followed self = {outer, node, outer ? outer->depth + 1 : 0};
    struct pd_nodes nodes = {0};
    *out = (struct pd_alternatives){0};
    if (yyjson_is_false(node->value)) return PERIDOT_OK;
    if (yyjson_is_true(node->value)) return add(out, &nodes, node->path);
    PD_TRY(pd_node_check(d, node));
    for (const struct followed *f = outer; f; f = f->outer)
        if (f->node->value == node->value)
            return pd_fail(PERIDOT_ERROR_FORMAT, PD_PATH " refers to itself before any value begins", node->path);
    if (self.depth > MAX_FOLLOWED)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, PD_PATH ": schemas refer to each other more than %d deep", node->path,
                       MAX_FOLLOWED);
    d->work += 1 + yyjson_obj_size(node->value);
    if (d->work > MAX_WORK)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, PD_PATH ": schemas refer to each other too often", node->path);
    nodes.at[nodes.n++] = *node;
    PD_TRY(add(out, &nodes, node->path));
    return follow_keywords(out, d, node, &self);
}

peridot_status pd_alternatives_find(struct pd_alternatives *out, struct pd_document *d, const struct pd_nodes *nodes)
{
    const struct pd_nodes none = {0};
    *out = (struct pd_alternatives){0};
    PD_TRY(add(out, &none, "#"));
    for (uint32_t i = 0; i < nodes->n; i++) PD_TRY(combine_node(out, d, &nodes->at[i], NULL));
    return PERIDOT_OK;
}

/* ---- what schemas say together ---- */

peridot_status pd_nodes_types(unsigned *types, const struct pd_nodes *nodes)
{
    unsigned about = 0;
    bool given = false;
    PD_TRY(true_types(types, nodes));
    for (uint32_t i = 0; i < nodes->n; i++) {
        about |= pd_node_is_about(&nodes->at[i]);
        given = given || yyjson_obj_get(nodes->at[i].value, "type") || yyjson_obj_get(nodes->at[i].value, "const") ||
                yyjson_obj_get(nodes->at[i].value, "enum");
    }
    if (!given && about) *types = about;
    return PERIDOT_OK;
}

peridot_status pd_nodes_property(struct pd_nodes *out, struct pd_document *d, const struct pd_nodes *of,
                                 struct pd_name name)
{
    *out = (struct pd_nodes){0};
    for (uint32_t i = 0; i < of->n; i++) {
        const struct pd_node *node = &of->at[i];
        yyjson_val *properties, *value;
        struct pd_node child;
        PD_TRY(pd_node_get(&properties, node, "properties", YYJSON_TYPE_OBJ));
        value = name.text ? yyjson_obj_getn(properties, name.text, name.size) : NULL;
        if (value) {
            PD_TRY(pd_node_child(&child, d, node, "properties", name, value));
        } else {
            value = yyjson_obj_get(node->value, "additionalProperties");
            if (!value) continue;
            PD_TRY(pd_node_child(&child, d, node, "additionalProperties", (struct pd_name){0}, value));
        }
        PD_TRY(pd_nodes_add(out, child));
    }
    return PERIDOT_OK;
}

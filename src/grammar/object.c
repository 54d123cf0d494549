/* What an object of a schema has: properties that are named, in the order in which they are, or in that of their names
 * in the dialect of calls, and then others, whose names are told apart by the patterns of patternProperties that match
 * them. */
#include "base/base.h"
#include "grammar/grammar.h"
#include "grammar/grammar_.h"

#include <stdlib.h>
#include <string.h>

#define MAX_PROPERTIES 2000

/* ---- properties that are named ---- */

static peridot_status add_property(struct pd_property **out, struct pd_object *o, yyjson_val *name,
                                   enum pd_presence presence)
{
    const struct pd_key text = {yyjson_get_str(name), yyjson_get_len(name)};
    PD_TRY(pd_work_spend(&o->c->r->work, 1 + o->n));
    for (size_t i = 0; i < o->n; i++) {
        *out = &o->properties[i];
        if (!yyjson_equals_strn(name, (*out)->name.text, (*out)->name.size)) continue;
        (*out)->presence = (enum pd_presence)pd_max((*out)->presence, presence);
        return PERIDOT_OK;
    }
    if (o->n == MAX_PROPERTIES)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, PD_PATH ": an object has more than %d properties", o->of->at[0].path,
                       MAX_PROPERTIES);
    PD_TRY(pd_array_reserve(&o->properties, &o->capacity, o->n, 1, sizeof *o->properties, "properties"));
    *out = &o->properties[o->n++];
    **out = (struct pd_property){.name = text, .presence = presence};
    return PERIDOT_OK;
}

static peridot_status add_names(struct pd_object *o, yyjson_val *list, const struct pd_node *node, const char *key,
                                enum pd_presence presence)
{
    size_t i, n;
    yyjson_val *value;
    struct pd_property *p;
    yyjson_arr_foreach(list, i, n, value) {
        if (!yyjson_is_str(value))
            return pd_fail(PERIDOT_ERROR_FORMAT, "%s at " PD_PATH " is not a list of names", key, node->path);
        PD_TRY(add_property(&p, o, value, presence));
    }
    return PERIDOT_OK;
}

static peridot_status add_patterns(struct pd_object *o, const struct pd_node *node)
{
    size_t i, n;
    yyjson_val *list, *key, *value;
    PD_TRY(pd_node_get(&list, node, "patternProperties", YYJSON_TYPE_OBJ));
    if (!list) return PERIDOT_OK;
    o->named = true;
    yyjson_obj_foreach(list, i, n, key, value) {
        if (o->n_patterns == PD_MAX_PATTERNS)
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "patternProperties at " PD_PATH ": more than %d patterns",
                           node->path, PD_MAX_PATTERNS);
        o->patterns[o->n_patterns++] = (struct pd_name_pattern){node, key, value};
    }
    return PERIDOT_OK;
}

/* Whether properties are wanted that no schema names: where none names any, or one says what they are. */
static bool wants_others(const struct pd_object *o)
{
    bool wanted = !o->named;
    for (uint32_t i = 0; i < o->of->n && !o->listed; i++)
        wanted = wanted || yyjson_obj_get(o->of->at[i].value, "additionalProperties") ||
                 yyjson_obj_get(o->of->at[i].value, "unevaluatedProperties");
    return wanted;
}

/* All names that propertyNames of a schema allows: they are properties then, where they are few. */
static peridot_status limit_names(struct pd_object *o, const struct pd_node *node)
{
    struct pd_nodes nodes = {.n = 1};
    struct pd_constants all = {0};
    struct pd_chars names;
    struct pd_property *p;
    bool finite;
    yyjson_val *value = yyjson_obj_get(node->value, "propertyNames");
    if (!value) return PERIDOT_OK;
    PD_TRY(pd_node_child(&nodes.at[0], &o->c->d, node, "propertyNames", (struct pd_key){0}, value));
    peridot_status status = pd_constants_find_all(&all, &finite, &o->c->d, &nodes);
    bool lists = status == PERIDOT_OK && finite && !o->named;
    for (size_t i = 0; i < all.n && lists && status == PERIDOT_OK; i++)
        if (yyjson_is_str(all.at[i])) status = add_property(&p, o, all.at[i], PD_OPTIONAL);
    pd_constants_free(&all);
    if (lists) {
        o->named = o->listed = true;
        o->n_listed = o->n;
    }
    if (lists || status != PERIDOT_OK) return status;
    status = pd_strings_find(&names, o->c, &nodes);
    if (status == PERIDOT_OK && o->limited) {
        status = pd_chars_intersect(&o->names, &names);
    } else if (!o->limited) {
        o->names = names;
        o->limited = true;
        return status;
    }
    pd_chars_free(&names);
    return status;
}

/* What dependentRequired names is written where it is required, or where others are wanted. */
static peridot_status add_dependent(struct pd_object *o, const struct pd_node *node)
{
    size_t i, n;
    yyjson_val *key, *value, *list;
    struct pd_property *p;
    enum pd_presence presence = o->others ? PD_OPTIONAL : PD_ABSENT;
    PD_TRY(pd_node_get(&list, node, "dependentRequired", YYJSON_TYPE_OBJ));
    if (!list) return PERIDOT_OK;
    yyjson_obj_foreach(list, i, n, key, value) {
        if (!yyjson_is_arr(value))
            return pd_fail(PERIDOT_ERROR_FORMAT, "dependentRequired at " PD_PATH " has what is no list of names",
                           node->path);
        PD_TRY(add_property(&p, o, key, presence));
        PD_TRY(add_names(o, value, node, "dependentRequired", presence));
    }
    return PERIDOT_OK;
}

static peridot_status find_properties(struct pd_object *o)
{
    size_t i, n;
    yyjson_val *key, *value, *list;
    struct pd_property *p;
    for (uint32_t k = 0; k < o->of->n; k++) {
        PD_TRY(pd_node_get(&list, &o->of->at[k], "properties", YYJSON_TYPE_OBJ));
        o->named = o->named || list;
        if (list) yyjson_obj_foreach(list, i, n, key, value) PD_TRY(add_property(&p, o, key, PD_OPTIONAL));
        PD_TRY(add_patterns(o, &o->of->at[k]));
    }
    for (uint32_t k = 0; k < o->of->n; k++) PD_TRY(limit_names(o, &o->of->at[k]));
    o->others = wants_others(o);
    for (uint32_t k = 0; k < o->of->n; k++) {
        PD_TRY(pd_node_get(&list, &o->of->at[k], "required", YYJSON_TYPE_ARR));
        PD_TRY(add_names(o, list, &o->of->at[k], "required", PD_REQUIRED));
    }
    for (uint32_t k = 0; k < o->of->n; k++) PD_TRY(add_dependent(o, &o->of->at[k]));
    return PERIDOT_OK;
}

static peridot_status fail_forbidden(const struct pd_object *o, const struct pd_property *p, const char *path)
{
    return pd_fail(PERIDOT_ERROR_ARGUMENT, PD_PATH ": no value is valid: property %.100s is required, and forbidden at "
                                           PD_PATH, o->of->at[0].path, p->name.text, path);
}

/* Of a property, or of others. */
static peridot_status find_rule(struct pd_member_rule *out, struct pd_object *o, struct pd_key name,
                                const struct pd_nodes *nodes)
{
    uint64_t steps = 0;
    out->tagged = o->c->values.tags && pd_is_tag_text(&steps, o->c->d.root, name);
    PD_TRY(pd_work_spend(&o->c->r->work, steps));
    return (out->tagged ? pd_compiler_tagged : pd_compiler_rule)(&out->rule, o->c, nodes);
}

/* The rule of a property's values. */
static peridot_status object_find_value(struct pd_object *o, struct pd_property *p)
{
    struct pd_nodes nodes;
    bool allowed = !o->listed || (size_t)(p - o->properties) < o->n_listed;
    if (allowed && o->limited) PD_TRY(pd_names_has(&allowed, &o->names, p->name));
    if (!allowed) return p->presence == PD_REQUIRED ? fail_forbidden(o, p, "propertyNames") : PERIDOT_OK;
    PD_TRY(pd_nodes_property(&nodes, &o->c->d, o->of, p->name));
    if (nodes.n == 0) PD_TRY(pd_compiler_unevaluated(&nodes, o->c, o->of, "unevaluatedProperties"));
    p->written = true;
    for (uint32_t i = 0; i < nodes.n; i++) {
        if (!yyjson_is_false(nodes.at[i].value)) continue;
        if (p->presence == PD_REQUIRED) return fail_forbidden(o, p, nodes.at[i].path);
        p->written = false;
    }
    if (p->written && !pd_is_name(&o->c->values, p->name.text, p->name.size))
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, PD_PATH ": calls cannot have a property %.100s", o->of->at[0].path,
                       p->name.text);
    return p->written ? find_rule(&p->rule, o, p->name, &nodes) : PERIDOT_OK;
}

/* ---- others ---- */

/* What `pattern` has of a kind becomes another, unless that is nothing. */
static peridot_status split_kind(struct pd_object *o, const struct pd_name_kind *from, const struct pd_chars *pattern,
                                 uint32_t bit)
{
    struct pd_name_kind *kind = &o->kinds[o->n_kinds];
    if (o->n_kinds == PD_MAX_KINDS)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, PD_PATH ": patterns of properties overlap in too many ways",
                       o->of->at[0].path);
    *kind = (struct pd_name_kind){.matched = from->matched | bit};
    pd_chars_begin(&kind->names, &o->c->r->work);
    pd_chars_add(&kind->names, &from->names, PD_CHARS_START, PD_CHARS_END);
    o->n_kinds++;
    PD_TRY(kind->names.status);
    PD_TRY(pd_chars_intersect(&kind->names, pattern));
    if (kind->names.n_edges) return PERIDOT_OK;
    pd_chars_free(&kind->names);
    o->n_kinds--;
    return PERIDOT_OK;
}

/* Each kind becomes two: what the pattern matches, and what it does not. */
static peridot_status split_kinds(struct pd_object *o, uint32_t i, const struct pd_chars *pattern,
                                  const struct pd_chars *rest)
{
    struct pd_name_kind old[PD_MAX_KINDS];
    uint32_t n_old = o->n_kinds;
    peridot_status status = PERIDOT_OK;
    for (uint32_t k = 0; k < n_old; k++) {
        old[k] = o->kinds[k];
        o->kinds[k] = (struct pd_name_kind){0};
    }
    o->n_kinds = 0;
    for (uint32_t k = 0; k < n_old; k++) {
        if (status == PERIDOT_OK) status = split_kind(o, &old[k], pattern, 1u << i);
        if (status == PERIDOT_OK) status = split_kind(o, &old[k], rest, 0);
        pd_chars_free(&old[k].names);
    }
    return status;
}

static peridot_status object_add_pattern(struct pd_object *o, uint32_t i)
{
    struct pd_chars pattern, rest = {0};
    struct pd_work *work = &o->c->r->work;
    peridot_status status = pd_names_of_pattern(&pattern, work, o->patterns[i].node, o->patterns[i].pattern);
    if (status == PERIDOT_OK)
        status = pd_names_of_pattern(&rest, work, o->patterns[i].node, o->patterns[i].pattern);
    if (status == PERIDOT_OK) status = pd_chars_determinise(&pattern);
    if (status == PERIDOT_OK) status = pd_chars_complement(&rest);
    if (status == PERIDOT_OK) status = split_kinds(o, i, &pattern, &rest);
    pd_chars_free(&pattern);
    pd_chars_free(&rest);
    return status;
}

/* What schemas say of values whose names are of a kind. */
static peridot_status find_nodes(struct pd_nodes *out, struct pd_object *o, uint32_t matched)
{
    struct pd_node child;
    *out = (struct pd_nodes){0};
    for (uint32_t k = 0; k < o->of->n; k++) {
        const struct pd_node *node = &o->of->at[k];
        yyjson_val *value = yyjson_obj_get(node->value, "additionalProperties");
        bool any = false;
        for (uint32_t i = 0; i < o->n_patterns; i++) {
            const struct pd_name_pattern *p = &o->patterns[i];
            if (p->node != node || !(matched >> i & 1)) continue;
            any = true;
            PD_TRY(pd_node_child(&child, &o->c->d, node, "patternProperties",
                                 (struct pd_key){yyjson_get_str(p->pattern), yyjson_get_len(p->pattern)}, p->value));
            PD_TRY(pd_nodes_add(out, child));
        }
        if (any || !value) continue;
        PD_TRY(pd_node_child(&child, &o->c->d, node, "additionalProperties", (struct pd_key){0}, value));
        PD_TRY(pd_nodes_add(out, child));
    }
    return out->n ? PERIDOT_OK : pd_compiler_unevaluated(out, o->c, o->of, "unevaluatedProperties");
}

/* Finds the rule of a kind's values; without any the kind is left out. */
static peridot_status find_kind(bool *any, struct pd_object *o, struct pd_name_kind *kind)
{
    struct pd_nodes nodes;
    PD_TRY(find_nodes(&nodes, o, kind->matched));
    *any = kind->matched || o->others;
    for (uint32_t i = 0; i < nodes.n; i++) *any = *any && !yyjson_is_false(nodes.at[i].value);
    return *any ? find_rule(&kind->rule, o, (struct pd_key){0}, &nodes) : PERIDOT_OK;
}

static peridot_status find_kinds(struct pd_object *o)
{
    uint32_t n = 0;
    if (!o->others && o->n_patterns == 0) return PERIDOT_OK;
    struct pd_key *names = malloc((o->n + 1) * sizeof *names);
    if (!names) return pd_fail_alloc(o->n * sizeof *names, "names");
    for (size_t i = 0; i < o->n; i++) names[i] = o->properties[i].name;
    peridot_status status = pd_names_but(&o->kinds[0].names, &o->c->r->work, names, o->n);
    free(names);
    o->n_kinds = 1;
    PD_TRY(status);
    if (o->limited) PD_TRY(pd_chars_intersect(&o->kinds[0].names, &o->names));
    for (uint32_t i = 0; i < o->n_patterns; i++) PD_TRY(object_add_pattern(o, i));
    for (uint32_t k = 0; k < o->n_kinds; k++) {
        bool any;
        PD_TRY(find_kind(&any, o, &o->kinds[k]));
        struct pd_name_kind kept = o->kinds[k];
        if (!any) pd_chars_free(&kept.names);
        o->kinds[k] = (struct pd_name_kind){0};
        if (any) o->kinds[n++] = kept;
    }
    o->n_kinds = n;
    return PERIDOT_OK;
}

/* As Jinja's dictsort has them: the letters' case counts only where names are the same otherwise. */
static int compare_properties(const void *a, const void *b)
{
    const struct pd_property *x = a, *y = b;
    return pd_name_compare(x->name.text, x->name.size, y->name.text, y->name.size);
}

static peridot_status sort_properties(struct pd_object *o)
{
    if (!o->c->values.delimiter) return PERIDOT_OK;
    PD_TRY(pd_work_spend_sort(&o->c->r->work, o->n));
    if (o->n) qsort(o->properties, o->n, sizeof *o->properties, compare_properties);
    return PERIDOT_OK;
}

static peridot_status write_object(struct pd_object *o)
{
    size_t n = 0;
    PD_TRY(pd_nodes_counts(&o->min, &o->max, o->of, "minProperties", "maxProperties"));
    PD_TRY(find_properties(o));
    for (size_t i = 0; i < o->n; i++) {
        PD_TRY(object_find_value(o, &o->properties[i]));
        n += o->properties[i].written;
    }
    PD_TRY(find_kinds(o));
    if (o->min > n + 1 && o->n_kinds)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "minProperties at " PD_PATH " is supported up to one more than the "
                       "properties with names: others may come twice", o->of->at[0].path);
    PD_TRY(sort_properties(o));
    return pd_object_write(o);
}

peridot_status pd_write_object(struct pd_compiler *c, const struct pd_nodes *of)
{
    struct pd_object o = {.c = c, .of = of};
    peridot_status status = write_object(&o);
    free(o.properties);
    pd_chars_free(&o.names);
    for (uint32_t i = 0; i < PD_MAX_KINDS; i++) pd_chars_free(&o.kinds[i].names);
    return status;
}

/* ---- object write ---- */

/* Objects are written with a state for each count of members, as far as minProperties and maxProperties want it, and
 * once for each choice of the properties that require others. */

#define MAX_TRIGGERS 5             /* properties that require others: each is there or not, 32 combinations */

/* States in which so many members are written; the last is of any more as well where there is no limit. */
struct counts {
    uint32_t *now, *next;
    uint32_t last;
    bool open;                     /* there is no limit */
};

static uint32_t write_literal(struct pd_object *o, uint32_t from, const char *text)
{
    return pd_nfa_text(o->c->r, from, text, strlen(text));
}

static uint32_t write_begin(struct pd_object *o)
{
    const struct pd_values *v = &o->c->values;
    return v->tags ? PD_NFA_START : pd_write_mark(&o->c->values, PD_NFA_START, v->keywords ? '(' : '{');
}

static uint32_t write_comma(struct pd_object *o, uint32_t from)
{
    return o->c->values.tags ? from : pd_write_mark(&o->c->values, from, ',');
}

/* From the name of a member to its value, and the value: to `to`. */
static void write_value(struct pd_object *o, uint32_t from, struct pd_member_rule value, uint32_t to)
{
    struct pd_values *v = &o->c->values;
    struct pd_rules *r = o->c->r;
    if (v->tags) {
        uint32_t after = pd_nfa_state(r);
        pd_nfa_call(r, write_literal(o, from, v->tags->value), value.rule, after);
        pd_nfa_skip(r, pd_write_space(v, value.tagged ? after : write_literal(o, after, v->tags->after)), to);
    } else {
        pd_nfa_call(r, pd_write_mark(v, from, v->keywords ? '=' : ':'), value.rule, to);
    }
}

static void write_end(struct pd_object *o, uint32_t from)
{
    const struct pd_values *v = &o->c->values;
    if (v->tags) pd_nfa_skip(o->c->r, write_literal(o, from, v->tags->end), PD_NFA_END);
    else pd_nfa_any_of(o->c->r, from, v->keywords ? ")" : "}", PD_NFA_END);
}

/* Before the name of a member after which k are written: nothing is written yet, or a comma follows what is. */
static uint32_t begin_member(struct pd_object *o, const struct counts *s, uint32_t k)
{
    const struct pd_tags *tags = o->c->values.tags;
    uint32_t name = pd_nfa_state(o->c->r);
    pd_nfa_skip(o->c->r, k == 1 ? s->now[0] : write_comma(o, s->now[k - 1]), name);
    if (s->open && k == s->last) pd_nfa_skip(o->c->r, write_comma(o, s->now[k]), name);
    return tags ? write_literal(o, name, tags->name) : name;
}

static void write_property(struct pd_object *o, struct counts *s, const struct pd_property *p,
                           enum pd_presence presence)
{
    struct pd_rules *r = o->c->r;
    for (uint32_t k = 0; k <= s->last && pd_rules_work(r, 1); k++) s->next[k] = pd_nfa_state(r);
    for (uint32_t k = 1; k <= s->last && pd_rules_work(r, 1); k++) {
        uint32_t after = pd_nfa_state(r);
        pd_write_name(&o->c->values, begin_member(o, s, k), p->name.text, p->name.size, after);
        write_value(o, after, p->rule, s->next[k]);
    }
    for (uint32_t k = 0; k <= s->last && presence != PD_REQUIRED && pd_rules_work(r, 1); k++)
        pd_nfa_skip(r, s->now[k], s->next[k]);
    uint32_t *swap = s->now;
    s->now = s->next;
    s->next = swap;
}

/* Names that are not given may come twice, so that no more than one member of them is counted as needed. */
static void write_others(struct pd_object *o, const struct counts *s)
{
    struct pd_rules *r = o->c->r;
    for (uint32_t k = (uint32_t)pd_max(o->min, 1); k <= s->last && o->n_kinds && pd_rules_work(r, 1); k++) {
        uint32_t name = begin_member(o, s, k);
        for (uint32_t i = 0; i < o->n_kinds; i++) {
            const struct pd_name_kind *kind = &o->kinds[i];
            uint32_t after = pd_nfa_state(r);
            bool any = o->n == 0 && !o->limited && o->n_patterns == 0;
            pd_write_names(&o->c->values, name, any ? NULL : &kind->names, after);
            write_value(o, after, kind->rule, s->now[k]);
        }
    }
}

static peridot_status write_members(struct pd_object *o, const enum pd_presence *presence)
{
    struct pd_rules *r = o->c->r;
    bool open = o->max == UINT32_MAX || (o->n_kinds == 0 && o->max >= o->n);
    struct counts s = {.open = open, .last = open ? (uint32_t)pd_max(o->min, 1) : o->max};
    if (!pd_rules_work(r, s.last)) return r->status;
    uint32_t *states = calloc(2 * ((size_t)s.last + 1), sizeof *states);
    if (!states) return pd_fail_alloc(2 * ((size_t)s.last + 1) * sizeof *states, "properties");
    s.now = states;
    s.next = states + s.last + 1;
    s.now[0] = write_begin(o);
    for (uint32_t k = 1; k <= s.last; k++) s.now[k] = pd_nfa_state(r);
    for (size_t i = 0; i < o->n && r->status == PERIDOT_OK; i++)
        if (presence[i] != PD_ABSENT) write_property(o, &s, &o->properties[i], presence[i]);
    write_others(o, &s);
    if (o->min == 0) write_end(o, s.now[0]);
    for (uint32_t k = (uint32_t)pd_max(o->min, 1); k <= s.last && r->status == PERIDOT_OK; k++)
        write_end(o, o->c->values.tags ? s.now[k] : pd_write_space(&o->c->values, s.now[k]));
    free(states);
    return r->status;
}

/* ---- properties that require others ---- */

struct trigger {
    size_t property;
    yyjson_val *list;              /* names that it requires */
};

static size_t index_of(const struct pd_object *o, yyjson_val *name)
{
    size_t i = 0;
    while (!yyjson_equals_strn(name, o->properties[i].name.text, o->properties[i].name.size)) i++;
    return i;
}

static peridot_status find_triggers(struct trigger triggers[MAX_TRIGGERS], uint32_t *n_triggers, struct pd_object *o)
{
    size_t i, n;
    yyjson_val *key, *value;
    for (uint32_t k = 0; k < o->of->n; k++) {
        yyjson_val *list = yyjson_obj_get(o->of->at[k].value, "dependentRequired");
        if (!list) continue;
        yyjson_obj_foreach(list, i, n, key, value) {
            if (*n_triggers == MAX_TRIGGERS)
                return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "dependentRequired at " PD_PATH ": more than %d properties "
                               "require others", o->of->at[k].path, MAX_TRIGGERS);
            PD_TRY(pd_work_spend(&o->c->r->work, o->n));
            triggers[(*n_triggers)++] = (struct trigger){index_of(o, key), value};
        }
    }
    return PERIDOT_OK;
}

/* Properties where those triggers are there whose bits are set, and no others; *possible: they can be so. */
static peridot_status combine(enum pd_presence *presence, bool *possible, struct pd_object *o,
                              const struct trigger *triggers, uint32_t n_triggers, uint32_t set)
{
    size_t i, n;
    yyjson_val *name;
    *possible = true;
    for (i = 0; i < o->n; i++)
        presence[i] = o->properties[i].written ? o->properties[i].presence : PD_ABSENT;
    for (uint32_t k = 0; k < n_triggers; k++) {
        size_t at = triggers[k].property;
        if (!(set >> k & 1)) {
            *possible = *possible && presence[at] != PD_REQUIRED;
            presence[at] = PD_ABSENT;
            continue;
        }
        *possible = *possible && presence[at] != PD_ABSENT;
        presence[at] = PD_REQUIRED;
    }
    for (uint32_t k = 0; k < n_triggers; k++)
        yyjson_arr_foreach(triggers[k].list, i, n, name) {
            PD_TRY(pd_work_spend(&o->c->r->work, 1 + o->n));
            if (!(set >> k & 1)) continue;
            size_t at = index_of(o, name);
            bool absent = !o->properties[at].written;
            for (uint32_t m = 0; m < n_triggers; m++)
                absent = absent || (triggers[m].property == at && !(set >> m & 1));
            *possible = *possible && !absent;
            presence[at] = PD_REQUIRED;
        }
    return PERIDOT_OK;
}

peridot_status pd_object_write(struct pd_object *o)
{
    struct trigger triggers[MAX_TRIGGERS];
    uint32_t n_triggers = 0;
    enum pd_presence *presence = malloc((o->n + 1) * sizeof *presence);
    peridot_status status = presence ? find_triggers(triggers, &n_triggers, o)
                                     : pd_fail_alloc(o->n * sizeof *presence, "properties");
    for (uint32_t set = 0; set < 1u << n_triggers && status == PERIDOT_OK; set++) {
        bool possible;
        status = combine(presence, &possible, o, triggers, n_triggers, set);
        if (status == PERIDOT_OK && possible) status = write_members(o, presence);
    }
    free(presence);
    return status;
}

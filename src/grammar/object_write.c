/* Objects are written with a state for each count of members, as far as minProperties and maxProperties want it, and
 * once for each choice of the properties that require others. */
#include "base/num.h"
#include "grammar/object_parts.h"

#include <stdlib.h>
#include <string.h>

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

/* A schema that is being compiled. Every set of schemas that one value must satisfy becomes a rule, once; rules of
 * values within it are numbered and written later, which is how schemas can be recursive. */
#include "base/base.h"
#include "grammar/grammar.h"
#include "grammar/grammar_.h"

#include <stdlib.h>
#include <string.h>

void pd_compiler_free(struct pd_compiler *c)
{
    pd_values_free(&c->values);
    free(c->jobs);
    free(c->failed);
}

bool pd_compiler_give_up(struct pd_compiler *c, peridot_status status)
{
    const char *sentence = pd_arena_string(&c->d.arena, pd_error(), strlen(pd_error()));
    struct pd_work work = c->r->work;
    if (!c->failed) c->failed = malloc(PD_MAX_FAILED * sizeof *c->failed);
    if (!c->failed || !sentence || c->n_failed == PD_MAX_FAILED) return false;
    c->failed[c->n_failed++] = (struct pd_compiler_failed){c->jobs[c->n_done].nodes, status, sentence};
    c->n_jobs = c->n_done = 0;
    pd_values_free(&c->values);
    pd_rules_free(c->r);
    c->r->work = work;
    return true;
}

static bool are_same(const struct pd_nodes *a, const struct pd_nodes *b)
{
    bool same = a->n == b->n;
    for (uint32_t i = 0; same && i < a->n; i++) same = a->at[i].value == b->at[i].value;
    return same;
}

static bool is_same_job(const struct pd_compiler_job *a, const struct pd_compiler_job *b)
{
    return a->constant == b->constant && a->keywords == b->keywords && a->tagged == b->tagged &&
           are_same(&a->nodes, &b->nodes);
}

static peridot_status add_job(uint32_t *rule, struct pd_compiler *c, const struct pd_compiler_job *job)
{
    size_t i = 0;
    if (!pd_rules_work(c->r, c->n_jobs + sizeof *job / 8)) return c->r->status;
    while (i < c->n_jobs && !is_same_job(&c->jobs[i], job)) i++;
    if (i < c->n_jobs) {
        *rule = c->jobs[i].rule;
        return PERIDOT_OK;
    }
    *rule = pd_rules_add(c->r);
    PD_TRY(c->r->status);
    PD_TRY(pd_array_reserve(&c->jobs, &c->jobs_capacity, c->n_jobs, 1, sizeof *c->jobs, "grammar"));
    c->jobs[c->n_jobs] = *job;
    c->jobs[c->n_jobs++].rule = *rule;
    return PERIDOT_OK;
}

static peridot_status find_failed(const struct pd_compiler *c, const struct pd_nodes *nodes)
{
    for (uint32_t i = 0; i < c->n_failed; i++)
        if (are_same(&c->failed[i].nodes, nodes)) return pd_fail(c->failed[i].status, "%s", c->failed[i].sentence);
    return PERIDOT_OK;
}

peridot_status pd_compiler_rule(uint32_t *rule, struct pd_compiler *c, const struct pd_nodes *nodes)
{
    PD_TRY(find_failed(c, nodes));
    return add_job(rule, c, &(struct pd_compiler_job){.nodes = *nodes});
}

peridot_status pd_compiler_root(uint32_t *rule, struct pd_compiler *c, const struct pd_nodes *nodes)
{
    PD_TRY(find_failed(c, nodes));
    return add_job(rule, c, &(struct pd_compiler_job){.nodes = *nodes, .keywords = c->keywords || c->tags});
}

peridot_status pd_compiler_tagged(uint32_t *rule, struct pd_compiler *c, const struct pd_nodes *nodes)
{
    PD_TRY(find_failed(c, nodes));
    return add_job(rule, c, &(struct pd_compiler_job){.nodes = *nodes, .tagged = true});
}

peridot_status pd_compiler_constant(uint32_t *rule, struct pd_compiler *c, yyjson_val *value)
{
    return add_job(rule, c, &(struct pd_compiler_job){.constant = value});
}

/* Whether all schemas from number i on are what schema i says: it refers to them. */
static bool is_outermost(const struct pd_nodes *of, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++) {
        yyjson_val *value = of->at[k].value;
        if (pd_node_is_about(&of->at[k]) || !yyjson_obj_get(value, "$ref") || yyjson_obj_get(value, "allOf") ||
            yyjson_obj_get(value, "anyOf") || yyjson_obj_get(value, "oneOf"))
            return false;
    }
    return true;
}

peridot_status pd_compiler_unevaluated(struct pd_nodes *out, struct pd_compiler *c, const struct pd_nodes *of,
                                       const char *key)
{
    for (uint32_t i = 0; i < of->n; i++) {
        yyjson_val *value = yyjson_obj_get(of->at[i].value, key);
        struct pd_node child;
        if (!value || yyjson_is_true(value)) continue;
        if (c->n_together > 1 || !is_outermost(of, i))
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s at " PD_PATH " is not supported in what is combined with "
                           "other schemas", key, of->at[i].path);
        PD_TRY(pd_node_child(&child, &c->d, &of->at[i], key, (struct pd_key){0}, value));
        PD_TRY(pd_nodes_add(out, child));
    }
    return PERIDOT_OK;
}

/* ---- work ---- */

uint64_t pd_work_of_effort(uint32_t effort)
{
    return effort && effort < 1000 ? (uint64_t)PD_MAX_WORK / 1000 * effort : PD_MAX_WORK;
}

peridot_status pd_work_fail(void)
{
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the schema is too large: its automaton would take too long to make or "
                                              "need more than %u states", PD_MAX_STATES);
}

peridot_status pd_work_spend(struct pd_work *w, uint64_t n)
{
    w->done += n;
    return w->done > w->max ? pd_work_fail() : PERIDOT_OK;
}

peridot_status pd_work_spend_sort(struct pd_work *w, uint64_t n)
{
    uint64_t log = 1;
    while (n >> log) log++;
    return pd_work_spend(w, n * log);
}

/* Shell's, with the gaps of Ciura (2001) and further ones of 2.25 times: sets of states are sorted in part already,
 * which makes it faster than qsort. */
peridot_status pd_work_sort(struct pd_work *w, uint32_t *numbers, size_t n)
{
    static const size_t gaps[] = {92882, 41281, 18347, 8154, 3624, 1611, 701, 301, 132, 57, 23, 10, 4, 1};
    PD_TRY(pd_work_spend_sort(w, n));
    for (size_t k = 0; k < PD_COUNT(gaps); k++)
        for (size_t i = gaps[k]; i < n; i++) {
            uint32_t number = numbers[i];
            size_t at = i;
            for (; at >= gaps[k] && numbers[at - gaps[k]] > number; at -= gaps[k]) numbers[at] = numbers[at - gaps[k]];
            numbers[at] = number;
        }
    return PERIDOT_OK;
}

#include "grammar/compiler.h"

#include "base/array.h"

static bool is_same(const struct pd_nodes *a, const struct pd_nodes *b)
{
    bool same = a->n == b->n;
    for (uint32_t i = 0; same && i < a->n; i++) same = a->at[i].value == b->at[i].value;
    return same;
}

peridot_status pd_compiler_rule(uint32_t *rule, struct pd_compiler *c, const struct pd_nodes *nodes)
{
    size_t i = 0;
    if (!pd_rules_work(c->r, c->n_jobs + sizeof *nodes / 8)) return c->r->status;
    while (i < c->n_jobs && !is_same(&c->jobs[i].nodes, nodes)) i++;
    if (i < c->n_jobs) {
        *rule = c->jobs[i].rule;
        return PERIDOT_OK;
    }
    *rule = pd_rules_add(c->r);
    PD_TRY(c->r->status);
    PD_TRY(pd_array_reserve(&c->jobs, &c->jobs_capacity, c->n_jobs, 1, sizeof *c->jobs, "grammar"));
    c->jobs[c->n_jobs++] = (struct pd_compiler_job){*nodes, *rule};
    return PERIDOT_OK;
}

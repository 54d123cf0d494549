/* A schema that is being compiled. Every set of schemas that one value must satisfy becomes a rule, once; rules of
 * values within it are numbered and written later, which is how schemas can be recursive. */
#ifndef PD_GRAMMAR_COMPILER_H
#define PD_GRAMMAR_COMPILER_H

#include "grammar/node.h"
#include "grammar/values.h"

struct pd_compiler_job {
    struct pd_nodes nodes;
    uint32_t rule;
};

struct pd_compiler {
    struct pd_rules *r;
    struct pd_values values;
    struct pd_document d;
    struct pd_compiler_job *jobs;  /* the first n_done are written */
    size_t n_jobs, jobs_capacity, n_done;
};

/* The rule of values that satisfy all of `nodes`. */
peridot_status pd_compiler_rule(uint32_t *rule, struct pd_compiler *c, const struct pd_nodes *nodes);

#endif

/* A schema that is being compiled. Every set of schemas that one value must satisfy becomes a rule, once; rules of
 * values within it are numbered and written later, which is how schemas can be recursive. */
#ifndef PD_GRAMMAR_COMPILER_H
#define PD_GRAMMAR_COMPILER_H

#include "grammar/node.h"
#include "grammar/values.h"

struct pd_compiler_job {
    struct pd_nodes nodes;
    yyjson_val *constant;          /* NULL: of the nodes */
    uint32_t rule;
    bool keywords;                 /* an object is written as the arguments in f(name=value, ...) are, or as tags */
    bool tagged;                   /* the strings of them, in a tag */
};

#define PD_MAX_FAILED 32
struct pd_compiler_failed {
    struct pd_nodes nodes;
    peridot_status status;
    const char *sentence;
};

struct pd_compiler {
    struct pd_rules *r;
    struct pd_values values;
    struct pd_document d;
    struct pd_compiler_job *jobs;  /* the first n_done are written */
    size_t n_jobs, jobs_capacity, n_done;
    uint32_t n_together;           /* schemas of the rule that is being written, before what they refer to */
    bool chooses;                  /* some rule has alternatives */
    bool arguments;                /* of a tool call, rather than a whole text */
    bool keywords;                 /* they are keywords */
    const struct pd_tags *tags;    /* or tags; NULL: they are not */
    const char *delimiter;         /* see pd_values */
    struct pd_compiler_failed *failed;   /* [PD_MAX_FAILED]: rules that cannot be written */
    uint32_t n_failed;
};

void pd_compiler_free(struct pd_compiler *c);
/* The rule that could not be written, of job n_done, is remembered, and all that was written forgotten; false: too many
 * were, and the last failure stands. */
bool pd_compiler_give_up(struct pd_compiler *c, peridot_status status);
/* The rule of values that satisfy all of `nodes`: of the whole, which may be keywords; of a part. Of strings in
 * a tag. And of one value. */
peridot_status pd_compiler_root(uint32_t *rule, struct pd_compiler *c, const struct pd_nodes *nodes);
peridot_status pd_compiler_rule(uint32_t *rule, struct pd_compiler *c, const struct pd_nodes *nodes);
peridot_status pd_compiler_tagged(uint32_t *rule, struct pd_compiler *c, const struct pd_nodes *nodes);
peridot_status pd_compiler_constant(uint32_t *rule, struct pd_compiler *c, yyjson_val *value);
/* Adds what `key`, unevaluatedProperties or unevaluatedItems, says of a member of which no schema of an alternative
 * says anything else. */
peridot_status pd_compiler_unevaluated(struct pd_nodes *out, struct pd_compiler *c, const struct pd_nodes *of,
                                       const char *key);

#endif

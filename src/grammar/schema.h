/* JSON Schema to rules. */
#ifndef PD_GRAMMAR_SCHEMA_H
#define PD_GRAMMAR_SCHEMA_H

#include "grammar/rules.h"

struct pd_tags;

/* *out is to be freed even on failure. */
peridot_status pd_schema_compile(struct pd_rules *out, const char *schema, size_t size);
/* With a budget of its own. */
peridot_status pd_schema_compile_within(struct pd_rules *out, uint64_t max_work, const char *schema, size_t size);
/* The arguments of a tool call: an object, without white space around it; in the dialects of values.h where there is a
 * delimiter, or they are keywords or tags. `work` is charged. */
peridot_status pd_schema_compile_arguments(struct pd_rules *out, struct pd_work *work, const char *delimiter,
                                           bool keywords, const struct pd_tags *tags, const char *schema,
                                           size_t size);

#endif

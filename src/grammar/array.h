/* Arrays of a schema. */
#ifndef PD_GRAMMAR_ARRAY_H
#define PD_GRAMMAR_ARRAY_H

#include "grammar/compiler.h"

/* What `of` say of arrays: the rule that is being written, from its start to its end. */
peridot_status pd_write_array(struct pd_compiler *c, const struct pd_nodes *of);

#endif

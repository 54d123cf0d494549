/* Strings of a schema. */
#ifndef PD_GRAMMAR_STRINGS_H
#define PD_GRAMMAR_STRINGS_H

#include "grammar/compiler.h"

/* What `of`, an alternative, say of strings: the rule that is being written, from its start to its end. */
peridot_status pd_write_string(struct pd_compiler *c, const struct pd_nodes *of);
/* The strings that satisfy all of `nodes`. *out is to be freed even on failure. */
peridot_status pd_strings_find(struct pd_chars *out, struct pd_compiler *c, const struct pd_nodes *nodes);

#endif

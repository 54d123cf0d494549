/* Objects of a schema: properties in the order in which they are named, then others. */
#ifndef PD_GRAMMAR_OBJECT_H
#define PD_GRAMMAR_OBJECT_H

#include "grammar/compiler.h"

/* What `of` say of objects: the rule that is being written, from its start to its end. */
peridot_status pd_write_object(struct pd_compiler *c, const struct pd_nodes *of);

#endif

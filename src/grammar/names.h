/* Names of properties as sets of strings. */
#ifndef PD_GRAMMAR_NAMES_H
#define PD_GRAMMAR_NAMES_H

#include "grammar/chars.h"
#include "grammar/node.h"

/* Adds a name to a set. */
void pd_names_add(struct pd_chars *out, struct pd_name name);
/* Whether a set has a name. */
peridot_status pd_names_has(bool *out, const struct pd_chars *names, struct pd_name name);
/* The names that a pattern of patternProperties at `node` finds something in. *out is to be freed even on failure. */
peridot_status pd_names_of_pattern(struct pd_chars *out, struct pd_work *work, const struct pd_node *node,
                                   yyjson_val *pattern);
/* All names but n given ones. *out is to be freed even on failure. */
peridot_status pd_names_but(struct pd_chars *out, struct pd_work *work, const struct pd_name *names, size_t n);

/* Adds the schemas of patternProperties at `node` whose patterns match a name. */
peridot_status pd_names_add_matched(struct pd_nodes *out, bool *any, struct pd_document *d, const struct pd_node *node,
                                    struct pd_name name);

#endif

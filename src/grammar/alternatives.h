/* A schema as alternatives: sets of schemas without $ref, anyOf, oneOf and allOf to follow, of which a value must
 * satisfy all of one. */
#ifndef PD_GRAMMAR_ALTERNATIVES_H
#define PD_GRAMMAR_ALTERNATIVES_H

#include "grammar/node.h"

struct pd_alternatives {
    struct pd_nodes *of;
    size_t n, capacity;
};

/* Of values that satisfy all of `nodes`. None: there is no such value. */
peridot_status pd_alternatives_find(struct pd_alternatives *out, struct pd_document *d, const struct pd_nodes *nodes);
void pd_alternatives_free(struct pd_alternatives *a);

/* Types of what an alternative writes: where `type` is absent, those that its keywords are about. */
peridot_status pd_nodes_types(unsigned *types, struct pd_document *d, const struct pd_nodes *nodes);
/* Schemas of a property: of `properties` and patternProperties, else of additionalProperties where that is given. */
peridot_status pd_nodes_property(struct pd_nodes *out, struct pd_document *d, const struct pd_nodes *of,
                                 struct pd_name name);

#endif

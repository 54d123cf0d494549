/* The values of enum and const, and other types that have few values. */
#ifndef PD_GRAMMAR_CONSTANTS_H
#define PD_GRAMMAR_CONSTANTS_H

#include "grammar/node.h"

/* Zero-initialise ({0}). */
struct pd_constants {
    yyjson_val **at;
    size_t n, capacity;
};

void pd_constants_free(struct pd_constants *c);
/* Adds the values of some types that an alternative has; *given: false where it has no enum and const. */
peridot_status pd_constants_find(struct pd_constants *out, bool *given, struct pd_document *d,
                                 const struct pd_nodes *of, unsigned types);
/* Whether some reader may take two values for the same, as large integers are that only differ beyond a double. */
peridot_status pd_constants_may_equal(bool *out, struct pd_document *d, yyjson_val *a, yyjson_val *b);
/* Adds all values that satisfy all of `nodes`, each once; *finite: false where there are others than constants, null,
 * true and false. */
peridot_status pd_constants_find_all(struct pd_constants *out, bool *finite, struct pd_document *d,
                                     const struct pd_nodes *nodes);

#endif

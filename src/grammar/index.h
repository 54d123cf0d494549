/* Members of a document's objects and lists by hash. An object or a list is entered when it is first asked for, unless
 * it is short; what is asked then takes one step, however large it is. The work is charged. */
#ifndef PD_GRAMMAR_INDEX_H
#define PD_GRAMMAR_INDEX_H

#include "grammar/work.h"

#include <yyjson.h>

struct pd_index_slot;

/* Zero-initialise but for `work`. */
struct pd_index {
    struct pd_work *work;
    struct pd_index_slot *slots;   /* [mask + 1]; NULL: none yet */
    size_t n, mask;
};

void pd_index_free(struct pd_index *x);
/* *out: the first member of that name, NULL where `object` has none or is no object. */
peridot_status pd_index_get(yyjson_val **out, struct pd_index *x, yyjson_val *object, const char *name, size_t size);
/* Whether a member of `list` equals the value as JSON does: [1, 2.0] is [1.0, 2]. Lists and objects with the same hash
 * of 128 bits are taken for equal. False where `list` is no list. */
peridot_status pd_index_has(bool *out, struct pd_index *x, yyjson_val *list, yyjson_val *value);
/* The same where numbers are read as doubles, by which large integers are equal that differ: for what must tell
 * values apart whoever reads them. */
peridot_status pd_index_may_have(bool *out, struct pd_index *x, yyjson_val *list, yyjson_val *value);
/* The same of two values. */
peridot_status pd_index_equals(bool *out, struct pd_index *x, yyjson_val *a, yyjson_val *b);
peridot_status pd_index_may_equal(bool *out, struct pd_index *x, yyjson_val *a, yyjson_val *b);

#endif

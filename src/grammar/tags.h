/* Arguments of calls as tags (values.h): which of them are text as it is. Grammar and parser must agree, so that
 * neither looks at more of a schema than this does. */
#ifndef PD_GRAMMAR_TAGS_H
#define PD_GRAMMAR_TAGS_H

#include "grammar/node.h"

/* Whether the property of that name may be a string, as one may of which `parameters`, a schema or NULL, says nothing,
 * or says it too deep or after too much else. text NULL: one that `properties` does not name. *steps: the work. */
bool pd_is_tag_text(uint64_t *steps, yyjson_val *parameters, struct pd_name name);

#endif

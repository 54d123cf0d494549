/* Token ids as text: decimal, printed with commas and nothing else so that they paste into --tokens; read with any mix
 * of commas and white space between them. */
#ifndef PERIDOT_COMMAND_IDS_H
#define PERIDOT_COMMAND_IDS_H

#include "util.h"

#include <stdio.h>

/* n ids, allocated; freed by the caller. `name` is what the sentence of a failure blames. */
peridot_status cmd_ids_parse(int32_t **out, size_t *n, const char *text, size_t size, const char *name);
void cmd_ids_print(FILE *file, const int32_t *ids, size_t n);

#endif

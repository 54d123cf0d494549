/* Token ids as text: decimal, printed with commas and nothing else so that they paste into --tokens; read with any mix
 * of commas and white space between them. */
#ifndef PERIDOT_COMMAND_IDS_H
#define PERIDOT_COMMAND_IDS_H

#include "util.h"

#include <stdio.h>

#define CMD_IDS_HELP \
    "Token ids with commas or spaces between them, as peridot tokenize prints them; @FILE reads them from a file, - " \
    "from standard input. Nothing is added: give the first token of a text (peridot tokenize --bos) yourself."

/* What an option like --tokens says: the text itself, @FILE, or - for standard input; *text is to be freed. *name is
 * what the sentence of a failure blames, borrowed from `given`. */
peridot_status cmd_ids_text(char **text, size_t *size, const char **name, const char *given);
/* n ids, allocated; freed by the caller. `name` is what the sentence of a failure blames. */
peridot_status cmd_ids_parse(int32_t **out, size_t *n, const char *text, size_t size, const char *name);
void cmd_ids_print(FILE *file, const int32_t *ids, size_t n);

#endif

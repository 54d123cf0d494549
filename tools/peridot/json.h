/* JSON: strings for results that are written line by line, and whole documents. */
#ifndef PERIDOT_COMMAND_JSON_H
#define PERIDOT_COMMAND_JSON_H

#include "util.h"

#include <stdio.h>
#include <yyjson.h>

/* A string with its quotes. Bytes that are no UTF-8, as of a token that is part of a character, become U+FFFD. */
void cmd_json_string(FILE *file, const char *text, size_t size);

/* An empty document, one at a time in a thread. A part of it that there was no memory for is remembered: yyjson leaves
 * it out. */
yyjson_mut_doc *cmd_json_new(void);
/* A part of the document that is being written could not be made. */
void cmd_json_fail(void);
/* The document as text of *size bytes (NULL: not wanted), to be freed; NULL when memory was short for it or a part of
 * it. Frees the document. */
char *cmd_json_end(yyjson_mut_doc *doc, yyjson_write_flag flags, size_t *size);
/* The same on standard output, over several lines. `what` it is: "the list of devices". */
peridot_status cmd_json_print(yyjson_mut_doc *doc, const char *what);

#endif

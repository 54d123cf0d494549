/* JSON for results that are written line by line. */
#ifndef PERIDOT_COMMAND_JSON_H
#define PERIDOT_COMMAND_JSON_H

#include <stdio.h>

/* A string with its quotes. Bytes that are no UTF-8, as of a token that is part of a character, become U+FFFD. */
void cmd_json_string(FILE *file, const char *text, size_t size);

#endif

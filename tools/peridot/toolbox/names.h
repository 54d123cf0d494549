/* Names of tools, as the formats of models need them, and what a source of tools looks like. */
#ifndef PERIDOT_COMMAND_TOOLBOX_NAMES_H
#define PERIDOT_COMMAND_TOOLBOX_NAMES_H

#include "../util.h"

enum { TOOLBOX_NAME_SIZE = 65 };   /* with its end */

#define TOOLBOX_NO_PARAMETERS "{\"type\":\"object\",\"properties\":{}}"

/* 1 to 64 of A-Z a-z 0-9 _ -. */
bool toolbox_is_name(const char *text);
/* A name made of "PREFIX_TEXT", or of a text alone (prefix NULL): other characters become _, and what is too long is
 * cut. */
void toolbox_make_name(char out[TOOLBOX_NAME_SIZE], const char *prefix, const char *text);
/* Begins with http:// or https://. */
bool toolbox_is_url(const char *text);

#endif

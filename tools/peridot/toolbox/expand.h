/* Variables of the environment in texts of files, so that keys need not stand in them. */
#ifndef PERIDOT_COMMAND_TOOLBOX_EXPAND_H
#define PERIDOT_COMMAND_TOOLBOX_EXPAND_H

#include "../util.h"

/* A copy of a text, where ${NAME}, ${env:NAME} and ${NAME:-DEFAULT} are what the environment has. PERIDOT_ERROR_FORMAT,
 * with the end of a sentence in `why`: what else stands in braces, or is not set and has no default. */
peridot_status toolbox_expand(char **out, const char *text, char *why, size_t why_size);

#endif

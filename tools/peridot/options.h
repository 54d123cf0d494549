/* The option parser. */
#ifndef PERIDOT_COMMAND_OPTIONS_H
#define PERIDOT_COMMAND_OPTIONS_H

#include "command.h"

/* Fills args (zeroed by the caller) from the defaults and argv[0..argc). CMD_OK; or CMD_USAGE after a sentence on
 * stderr; or -1 when help was asked for. */
int cmd_options_parse(const struct cmd_command *command, void *args, int argc, char **argv);
/* Sets one option by its name without dashes, while a command runs. A flag takes on or off; a list gets one more entry,
 * or none at all without a value (NULL). Borrows the value. CMD_OK, or CMD_USAGE after a sentence. */
int cmd_option_set(const struct cmd_command *command, void *args, const char *name, const char *value);
/* Writes the value as one would type it; nothing for a list or a text that is not set. */
void cmd_option_print(FILE *file, const struct cmd_option *o, const void *args);

#endif

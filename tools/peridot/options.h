/* The option parser. */
#ifndef PERIDOT_COMMAND_OPTIONS_H
#define PERIDOT_COMMAND_OPTIONS_H

#include "command.h"

/* Fills args (zeroed by the caller) from the defaults and argv[0..argc). CMD_OK; or CMD_USAGE after a sentence on
 * stderr; or -1 when help was asked for. */
int cmd_options_parse(const struct cmd_command *command, void *args, int argc, char **argv);

#endif

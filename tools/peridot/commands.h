/* The list of commands. */
#ifndef PERIDOT_COMMAND_COMMANDS_H
#define PERIDOT_COMMAND_COMMANDS_H

#include "command.h"

/* Command i of the table, NULL past the last. */
const struct cmd_command *cmd_command_at(size_t i);
/* Its name. */
const char *cmd_command_name(size_t i);
/* The command of that name; NULL, after a sentence on stderr, when there is none. */
const struct cmd_command *cmd_command_find(const char *name);

#endif

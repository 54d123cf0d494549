/* The help pages: text, or the source of man pages. */
#ifndef PERIDOT_COMMAND_HELP_H
#define PERIDOT_COMMAND_HELP_H

#include "command.h"

void cmd_help_overview(bool man);
/* A line for each command. */
void cmd_help_commands(FILE *file);
void cmd_help_command(const struct cmd_command *command, bool man);

#endif

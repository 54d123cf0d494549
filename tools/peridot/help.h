/* The help pages. */
#ifndef PERIDOT_COMMAND_HELP_H
#define PERIDOT_COMMAND_HELP_H

#include "command.h"

void cmd_help_overview(void);
void cmd_help_command(const struct cmd_command *command);

#endif

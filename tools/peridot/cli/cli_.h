/* The list of commands, and what answers when none of them is meant. */
#ifndef PERIDOT_COMMAND_CLI_CLI_PRIVATE_H
#define PERIDOT_COMMAND_CLI_CLI_PRIVATE_H

#include "cli.h"

/* ---- help ---- */

/* The help pages: text, or the source of man pages. */

void cmd_help_overview(bool man);
/* A line for each command. */
void cmd_help_commands(FILE *file);
/* all: every option; a man page has them in any case. */
void cmd_help_command(const struct cmd_command *command, bool man, bool all);

/* ---- driver ---- */

/* Why Vulkan shows no GPU on a machine that has one. */

/* A sentence, without a full stop, on the GPU that Linux lists and what would let Vulkan use it; NULL: it lists none of
 * a maker whose drivers are known. For when Vulkan found no GPU. Borrowed until the next call. */
const char *cmd_driver_advice(void);

/* ---- complete ---- */

/* Completion of command lines in shells. */

/* Prints what the last of the words after "peridot", which may be empty, can become: lines "CANDIDATE<tab>MEANING".
 * CMD_FAILURE: the name of a file as well. */
int cmd_complete(int n, char **words);

#endif

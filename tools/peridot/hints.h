/* What was probably meant by a name that is not known: one that is nearly the same, or what other programs call it. */
#ifndef PERIDOT_COMMAND_HINTS_H
#define PERIDOT_COMMAND_HINTS_H

#include "command.h"

/* The row of the command that name[0..size), without its dashes, probably stands for, or NULL. `exact`: no near misses,
 * as among single letters all are near. */
const struct cmd_option *cmd_hint_option(const struct cmd_command *command, const char *name, size_t size, bool exact);
/* The command that was probably meant, or NULL; `at` lists the names of those that there are. */
const char *cmd_hint_command(const char *name, const char *(*at)(size_t i));
/* A model: a .gguf file, there or not, a folder with a config.json, or the name of one that is on this machine; where
 * the text is `misplaced` as it stands, whatever looks like such a name. */
bool cmd_hint_is_model(const char *text, bool misplaced);

#endif

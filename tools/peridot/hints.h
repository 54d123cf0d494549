/* What was probably meant by a name that is not known: one that is nearly the same, or what other programs call it. */
#ifndef PERIDOT_COMMAND_HINTS_H
#define PERIDOT_COMMAND_HINTS_H

#include "command.h"

/* The row of the command that name[0..size), without its dashes, probably stands for, or NULL. `exact`: no near misses,
 * as among single letters all are near. */
const struct cmd_option *cmd_hint_option(const struct cmd_command *command, const char *name, size_t size, bool exact);
/* What to type instead of a command that there is not, "run" or a longer text, or NULL; `at` lists the names of those
 * that there are (NULL: only what other programs call them is looked for). `exact`: no near misses. */
const char *cmd_hint_command(const char *name, size_t size, bool exact, const char *(*at)(size_t i));
/* Why the command has no option of that name, which may have a value behind it, where other programs have one; or
 * NULL. */
const char *cmd_hint_no_option(const struct cmd_command *command, const char *name);
/* Why there is no command of that name, where other programs have one; or NULL. */
const char *cmd_hint_no_command(const char *name);

enum cmd_model_hint {
    CMD_HINT_NO_MODEL,
    CMD_HINT_MODEL_ELSEWHERE,   /* the name of a published model that is not on this machine, or a file that is not */
    CMD_HINT_MODEL_HERE
};
/* Whether a text names a model: a .gguf file, a folder with a config.json, a model that is on this machine, or what
 * published models are called ("gemma3"); where the text is `misplaced` as it stands, whatever looks like such a
 * name. */
enum cmd_model_hint cmd_hint_model(const char *text, bool misplaced);

#endif

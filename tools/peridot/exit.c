/* How a command ends: its exit status, and a sentence where it failed. */
#include "command.h"
#include "terminal.h"
#include "text.h"

#include <stdarg.h>
#include <stdio.h>

int cmd_usage(const struct cmd_command *command, const char *format, ...)
{
    char sentence[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    fprintf(stderr, "peridot: %s", cmd_shown(sentence));
    fprintf(stderr, "; see peridot %s%s--help\n", command ? command->name : "", command ? " " : "");
    return CMD_USAGE;
}

int cmd_exit(peridot_status status)
{
    if (status == PERIDOT_OK) return CMD_OK;
    bool told = cmd_interrupted_by_pipe() || (status == PERIDOT_CANCELLED && cmd_interrupted());
    if (!told) fprintf(stderr, "peridot: %s\n", peridot_last_error());
    return CMD_FAILURE;
}

/* How a command ends: its exit status, and a sentence where it failed. */
#include "cli.h"
#include "../console/console.h"
#include "../base/base.h"

#include <stdarg.h>
#include <stdio.h>

int cmd_usage(const struct cmd_command *command, const char *format, ...)
{
    char sentence[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    cmd_say("peridot: %s; see peridot %s%s--help\n", cmd_shown(sentence), command ? command->name : "",
            command ? " " : "");
    return CMD_USAGE;
}

int cmd_exit(peridot_status status)
{
    if (status == PERIDOT_OK) return CMD_OK;
    bool told = cmd_interrupted_by_pipe() || (status == PERIDOT_CANCELLED && cmd_interrupted());
    if (!told) cmd_say("peridot: %s\n", peridot_last_error());
    return CMD_FAILURE;
}

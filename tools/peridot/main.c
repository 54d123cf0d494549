/* The command `peridot`: finds the subcommand in the table of commands.c and runs it. What every command shares at its
 * end lives here: a full disk behind stdout is a failure, and a command stopped by a signal dies of that signal, so
 * that a shell loop around it stops too. */
#include "commands.h"
#include "help.h"
#include "options.h"
#include "terminal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int show_help(const char *name)
{
    if (!name) {
        cmd_help_overview();
        return CMD_OK;
    }
    const struct cmd_command *command = cmd_command_find(name);
    if (!command) return CMD_USAGE;
    cmd_help_command(command);
    return CMD_OK;
}

static int run_command(const struct cmd_command *command, int argc, char **argv)
{
    void *args = calloc(1, command->args_size);
    if (!args) return cmd_exit(cmd_fail_alloc(command->args_size, "arguments"));
    int result = cmd_options_parse(command, args, argc, argv);
    if (result < 0) result = show_help(command->name);
    else if (result == CMD_OK) result = command->run(command, args);
    free(args);
    return result;
}

static bool is_one_of(const char *s, const char *a, const char *b)
{
    return strcmp(s, a) == 0 || strcmp(s, b) == 0;
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) return cmd_usage(NULL, "no command is given");
    const char *first = argv[1];
    if (is_one_of(first, "--help", "-h")) return show_help(NULL);
    if (strcmp(first, "help") == 0) return show_help(argv[2]);
    if (is_one_of(first, "--version", "-V")) {
        printf("peridot %s\n", peridot_version());
        return CMD_OK;
    }
    if (first[0] == '-') return cmd_usage(NULL, "the option %s comes after a command", first);
    const struct cmd_command *command = cmd_command_find(first);
    return command ? run_command(command, argc - 2, argv + 2) : CMD_USAGE;
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);   /* a closed stdout is an error of fwrite, told in a sentence */
    int result = dispatch(argc, argv);
    if ((fflush(stdout) != 0 || ferror(stdout)) && result == CMD_OK)
        result = cmd_exit(cmd_fail(PERIDOT_ERROR_IO, "standard output: %s", strerror(errno)));
    cmd_interrupt_raise();
    return result;
}

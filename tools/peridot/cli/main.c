/* The command `peridot`: finds the subcommand in the table of commands.c and runs it. What every command shares at its
 * end lives here: a full disk behind stdout is a failure, and a command stopped by a signal dies of that signal, so
 * that a shell loop around it stops too. A command whose output is a pipe without a reader dies of SIGPIPE, quietly. */
#include "cli.h"
#include "cli_.h"
#include "../console/console.h"
#include "../base/base.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int show_help(const char *name, bool man, bool all)
{
    const struct cmd_command *command = name ? cmd_command_find(name) : NULL;
    if (name && !command) return CMD_USAGE;
    if (command) cmd_help_command(command, man, all || man);
    else cmd_help_overview(man);
    return CMD_OK;
}

static int run_command(const struct cmd_command *command, int argc, char **argv)
{
    void *args = calloc(1, command->args_size);
    if (!args) return cmd_exit(pd_fail_alloc(command->args_size, "arguments"));
    int result = cmd_options_parse(command, args, argc, argv);
    if (result < 0) result = show_help(command->name, false, result == CMD_HELP_ALL);
    else if (result == CMD_OK) result = command->run(command, args);
    free(args);
    return result;
}

static bool is_one_of(const char *s, const char *a, const char *b)
{
    return strcmp(s, a) == 0 || strcmp(s, b) == 0;
}

/* Before any command. */
static int refuse_option(const char *option)
{
    const char *name = option + strspn(option, "-");
    const char *meant = cmd_hint_command(name, strlen(name), true, cmd_command_name);
    if (meant) return cmd_usage(NULL, "there is no option %s (did you mean peridot %s?)", option, meant);
    return cmd_usage(NULL, "the option %s comes after a command, as in peridot run -m MODEL PROMPT", option);
}

/* The chat with the demo model; what it said last can be read until a key is pressed. */
static int run_in_window(void)
{
    int result = run_command(cmd_command_find("chat"), 0, NULL);
    fflush(stdout);
    cmd_say("To use it in a terminal: peridot --help. Press Enter to close this window.\n");
    for (int c = 0; c != '\n' && c != EOF;) c = fgetc(stdin);
    return result;
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2 && cmd_owns_window()) return run_in_window();
    if (argc < 2) {
        cmd_usage(NULL, "no command is given");
        cmd_help_commands(stderr);
        cmd_say("\nperidot chat begins at once, with a small model that only tells stories; one that chats:\n"
                "    peridot pull " CMD_CHAT_MODEL "\n    peridot chat -m " CMD_CHAT_MODEL "\n");
        return CMD_USAGE;
    }
    const char *first = argv[1];
    if (is_one_of(first, "--help", "-h")) return show_help(NULL, false, false);
    if (strcmp(first, "help") == 0) {
        if (argc > 2 && strcmp(argv[2], "--complete") == 0) return cmd_complete(argc - 3, argv + 3);
        bool man = argc > 2 && strcmp(argv[2], "--man") == 0;
        const char **rest = (const char **)argv + (man ? 3 : 2);
        return show_help(rest[0], man, rest[0] && rest[1] && strcmp(rest[1], "all") == 0);
    }
    if (is_one_of(first, "--version", "-V")) {
        printf("peridot %s\n", peridot_version());
        return CMD_OK;
    }
    if (first[0] == '-') return refuse_option(first);
    const struct cmd_command *command = cmd_command_find(first);
    return command ? run_command(command, argc - 2, argv + 2) : CMD_USAGE;
}

/* A result that did not reach its file is a failure. */
static int close_output(int result)
{
    bool failed = ferror(stdout), gone = cmd_output_is_gone();
    const char *why = fclose(stdout) != 0 ? strerror(errno) : failed ? "a part of the result was not written" : NULL;
    if (!why || result != CMD_OK || gone) return result;
    return cmd_exit(pd_fail(PERIDOT_ERROR_IO, "standard output: %s", why));
}

static int run(int argc, char **argv) { return close_output(dispatch(argc, argv)); }

int main(int argc, char **argv)
{
    if (!cmd_process_begin()) return CMD_FAILURE;
    int result = cmd_ranks_run(argc, argv, run);
    cmd_interrupt_raise();
    return result;
}

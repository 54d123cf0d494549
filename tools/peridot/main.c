/* The command `peridot`: finds the subcommand in the table below and runs it. What every command shares at its end lives
 * here: a full disk behind stdout is a failure, and a command stopped by a signal dies of that signal, so that a shell
 * loop around it stops too. */
#include "command.h"
#include "terminal.h"
#include "text.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct cmd_command cmd_run, cmd_tokenize, cmd_logits, cmd_hidden, cmd_perplexity, cmd_embed, cmd_classify, cmd_tag,
    cmd_bench, cmd_devices, cmd_selftest, cmd_inspect, cmd_convert, cmd_make;

static const struct cmd_command *const commands[] = {
    &cmd_run, &cmd_tokenize, &cmd_logits, &cmd_hidden, &cmd_perplexity, &cmd_embed, &cmd_classify, &cmd_tag,
    &cmd_bench, &cmd_devices, &cmd_selftest, &cmd_inspect, &cmd_convert, &cmd_make,
};

const struct cmd_command *cmd_command_at(size_t i)
{
    return i < PD_COUNT(commands) ? commands[i] : NULL;
}

int cmd_usage(const struct cmd_command *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("peridot: ", stderr);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "; see peridot %s%s--help\n", command ? command->name : "", command ? " " : "");
    return CMD_USAGE;
}

int cmd_exit(peridot_status status)
{
    if (status == PERIDOT_OK) return CMD_OK;
    if (status != PERIDOT_CANCELLED || !cmd_interrupted()) fprintf(stderr, "peridot: %s\n", peridot_last_error());
    return CMD_FAILURE;
}

static const char *command_name(size_t i)
{
    const struct cmd_command *command = cmd_command_at(i);
    return command ? command->name : NULL;
}

/* NULL, after a sentence on stderr, when there is none of that name. */
static const struct cmd_command *find_command(const char *name)
{
    for (size_t i = 0; i < PD_COUNT(commands); i++)
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    const char *nearest = cmd_nearest(name, command_name);
    if (nearest) cmd_usage(NULL, "there is no command %s (did you mean %s?)", name, nearest);
    else cmd_usage(NULL, "there is no command %s", name);
    return NULL;
}

static int show_help(const char *name)
{
    if (!name) {
        cmd_help_overview();
        return CMD_OK;
    }
    const struct cmd_command *command = find_command(name);
    if (!command) return CMD_USAGE;
    cmd_help_command(command);
    return CMD_OK;
}

static int run_command(const struct cmd_command *command, int argc, char **argv)
{
    void *args = calloc(1, command->args_size);
    if (!args) return cmd_exit(pd_fail_alloc(command->args_size, "arguments"));
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
        puts("peridot " PERIDOT_VERSION);
        return CMD_OK;
    }
    if (first[0] == '-') return cmd_usage(NULL, "the option %s comes after a command", first);
    const struct cmd_command *command = find_command(first);
    return command ? run_command(command, argc - 2, argv + 2) : CMD_USAGE;
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);   /* a closed stdout is an error of fwrite, told in a sentence */
    int result = dispatch(argc, argv);
    if ((fflush(stdout) != 0 || ferror(stdout)) && result == CMD_OK)
        result = cmd_exit(pd_fail(PERIDOT_ERROR_IO, "standard output: %s", strerror(errno)));
    cmd_interrupt_raise();
    return result;
}

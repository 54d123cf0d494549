/* The list of commands. */
#include "cli.h"


#include <string.h>

extern const struct cmd_command cmd_run, cmd_chat, cmd_serve, cmd_connect, cmd_tokenize, cmd_logits, cmd_hidden,
    cmd_perplexity, cmd_embed, cmd_rerank, cmd_classify, cmd_tag, cmd_bench, cmd_report, cmd_devices, cmd_selftest,
    cmd_models, cmd_pull, cmd_inspect, cmd_convert, cmd_imatrix, cmd_make;

static const struct cmd_command *const commands[] = {
    &cmd_run, &cmd_chat, &cmd_serve, &cmd_connect, &cmd_tokenize, &cmd_logits, &cmd_hidden, &cmd_perplexity,
    &cmd_embed, &cmd_rerank, &cmd_classify, &cmd_tag,
    &cmd_bench, &cmd_report, &cmd_devices, &cmd_selftest, &cmd_models, &cmd_pull, &cmd_inspect, &cmd_convert,
    &cmd_imatrix, &cmd_make,
};

const struct cmd_command *cmd_command_at(size_t i)
{
    return i < PD_COUNT(commands) ? commands[i] : NULL;
}

const char *cmd_command_name(size_t i)
{
    const struct cmd_command *command = cmd_command_at(i);
    return command ? command->name : NULL;
}

const struct cmd_command *cmd_command_find(const char *name)
{
    for (size_t i = 0; i < PD_COUNT(commands); i++)
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    const char *meant = cmd_hint_command(name, strlen(name), false, cmd_command_name);
    const char *why = cmd_hint_no_command(name);
    if (why) cmd_usage(NULL, "there is no command %s: %s", name, why);
    else if (meant) cmd_usage(NULL, "there is no command %s (did you mean peridot %s?)", name, meant);
    else if (cmd_hint_model(name, true) != CMD_HINT_NO_MODEL)
        cmd_usage(NULL, "there is no command %s (did you mean peridot run -m %s?)", name, name);
    else cmd_usage(NULL, "there is no command %s", name);
    return NULL;
}

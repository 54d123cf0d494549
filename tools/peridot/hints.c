#include "hints.h"
#include "models/stores.h"
#include "text.h"

#include <string.h>

enum { NEAR_SIZE = 5 };   /* shorter names must be exact: most of them are near each other */

struct synonym {
    const char *name;     /* in other programs, or in common use */
    const char *own;      /* option, operand or command here */
};

/* Of llama.cpp, ollama, vLLM, transformers and OpenAI's API. */
static const struct synonym options[] = {
    {"prompt", "PROMPT"}, {"p", "PROMPT"},
    {"hf", "model"}, {"hf-repo", "model"}, {"model-path", "model"},
    {"temperature", "temp"}, {"repetition-penalty", "repeat-penalty"}, {"s", "seed"},
    {"c", "ctx"}, {"ctx-size", "ctx"}, {"num-ctx", "ctx"}, {"context-length", "ctx"}, {"max-model-len", "ctx"},
    {"n-predict", "length"}, {"num-predict", "length"}, {"max-tokens", "length"}, {"max-new-tokens", "length"},
    {"b", "chunk"}, {"batch-size", "chunk"}, {"ubatch-size", "chunk"},
    {"ctk", "kv"}, {"cache-type-k", "kv"}, {"cache-type-v", "kv"},
    {"ngl", "gpu-memory"}, {"gpu-layers", "gpu-memory"}, {"n-gpu-layers", "gpu-memory"},
    {"dev", "device"}, {"gpu", "device"}, {"main-gpu", "device"},
    {"sys", "system"}, {"system-prompt", "system"}, {"chat-template", "template"}, {"schema", "json-schema"},
    {"np", "parallel"}, {"listen", "host"}, {"bind", "host"},
    {"output", "out"}, {"outfile", "out"}, {"outtype", "type"}, {"quantize", "type"},
};

static const struct synonym commands[] = {
    {"generate", "run"}, {"complete", "run"}, {"completion", "run"}, {"repl", "chat"}, {"interactive", "chat"},
    {"api", "serve"}, {"ppl", "perplexity"}, {"embedding", "embed"}, {"quantize", "convert"}, {"benchmark", "bench"},
    {"info", "inspect"}, {"show", "inspect"}, {"gpus", "devices"}, {"list", "models"}, {"ls", "models"},
    {"download", "pull"}, {"fetch", "pull"},
};

/* The row that `own` names, if the command has it. */
static const struct cmd_option *find(const struct cmd_command *c, const char *own)
{
    for (size_t i = 0; i < c->n_options; i++)
        if (strcmp(c->options[i].name ? c->options[i].name : c->options[i].metavar, own) == 0) return &c->options[i];
    return NULL;
}

static int distance(const char *name, size_t size, const char *to, bool exact)
{
    if (strlen(to) == size && memcmp(to, name, size) == 0) return 0;
    return exact ? CMD_NEAR + 1 : cmd_distance(name, size, to);
}

const struct cmd_option *cmd_hint_option(const struct cmd_command *c, const char *name, size_t size, bool exact)
{
    const struct cmd_option *best = NULL;
    int nearest = CMD_NEAR + 1;
    for (size_t i = 0; i < c->n_options; i++) {
        int d = c->options[i].name ? distance(name, size, c->options[i].name, exact) : nearest;
        if (d < nearest) best = &c->options[i], nearest = d;
    }
    for (size_t i = 0; i < CMD_COUNT(options); i++) {
        const struct cmd_option *own = find(c, options[i].own);
        int d = own ? distance(name, size, options[i].name, exact || strlen(options[i].name) < NEAR_SIZE) : nearest;
        if (d < nearest) best = own, nearest = d;
    }
    return best;
}

static const char *find_command(const char *own, const char *(*at)(size_t i))
{
    for (size_t i = 0; at(i); i++)
        if (strcmp(at(i), own) == 0) return own;
    return NULL;
}

const char *cmd_hint_command(const char *name, const char *(*at)(size_t i))
{
    for (size_t i = 0; i < CMD_COUNT(commands); i++)
        if (strcmp(commands[i].name, name) == 0 && find_command(commands[i].own, at)) return commands[i].own;
    return cmd_nearest(name, at);
}

/* "gemma3:1b", "google/gemma-3-1b-it" */
static bool is_name(const char *text)
{
    size_t n = strcspn(text, ":/");
    return n > 0 && text[n] && text[n + 1] && !text[strcspn(text, " \t\n")];
}

static bool is_on_machine(const char *name)
{
    struct cmd_model_list list;
    bool found = false;
    if (cmd_model_list_find(&list) == PERIDOT_OK)
        for (size_t i = 0; i < list.n && !found; i++) found = strcmp(list.items[i].name, name) == 0;
    cmd_model_list_free(&list);
    return found;
}

bool cmd_hint_is_model(const char *text, bool misplaced)
{
    char path[CMD_PATH_SIZE];
    if (cmd_ends_with(text, ".gguf")) return !strchr(text, '\n');
    int length = snprintf(path, sizeof path, "%s/config.json", text);
    if (length > 0 && (size_t)length < sizeof path && cmd_is_file(path)) return true;
    return is_name(text) && (misplaced || is_on_machine(text));
}

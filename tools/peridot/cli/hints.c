/* What was probably meant by a name that is not known: one that is nearly the same, or what other programs call it. */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"
#include "../models/models.h"
#include "../base/base.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

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
    {"download", "pull"}, {"fetch", "pull"}, {"install", "pull"}, {"clone", "pull"}, {"start", "serve"},
    {"ask", "run"}, {"prompt", "run"}, {"create", "convert"}, {"import", "convert"},
    {"list-devices", "devices"}, {"list-models", "models"}, {"model-list", "models"},
    {"version", "--version"}, {"v", "--version"},
};

/* Commands of other programs that have no counterpart. */
static const struct synonym absent[] = {
    {"rm", "Peridot removes no models: peridot models --json says where each is kept"},
    {"remove", "Peridot removes no models: peridot models --json says where each is kept"},
    {"delete", "Peridot removes no models: peridot models --json says where each is kept"},
    {"ps", "nothing of Peridot runs in the background: peridot serve is the server"},
    {"stop", "nothing of Peridot runs in the background: Ctrl-C ends peridot serve"},
    {"cp", "models are files: peridot models --json says where each is kept"},
    {"push", "Peridot publishes no models"},
    {"login", "peridot pull takes the token of Hugging Face from HF_TOKEN, or as its own tools keep it"},
    {"search", "the models of Hugging Face are at huggingface.co; peridot pull OWNER/NAME fetches one"},
    {"update", "Peridot is updated as it was installed"},
    {"upgrade", "Peridot is updated as it was installed"},
};

/* How the names of published models begin. */
static const struct {
    const char *name;
    bool alone;           /* nobody means anything else by the word by itself */
} families[] = {
    {"gemma", true}, {"codegemma", true}, {"medgemma", true}, {"paligemma", true}, {"shieldgemma", true},
    {"embeddinggemma", true}, {"functiongemma", true}, {"llama", true}, {"codellama", true}, {"tinyllama", true},
    {"meta-llama", true}, {"mistral", true}, {"mixtral", true}, {"ministral", true}, {"codestral", true},
    {"devstral", true}, {"magistral", true}, {"qwen", true}, {"qwq", true}, {"deepseek", true}, {"phi", false},
    {"smollm", true}, {"gpt-oss", true}, {"granite", false}, {"olmo", true}, {"falcon", false}, {"vicuna", false},
    {"wizardlm", true}, {"zephyr", false}, {"yi", false}, {"command-r", true}, {"glm", true}, {"kimi", false},
};

/* The row that `own` names, if the command has it. */
static const struct cmd_option *find_option(const struct cmd_command *c, const char *own)
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
    for (size_t i = 0; i < PD_COUNT(options); i++) {
        const struct cmd_option *own = find_option(c, options[i].own);
        int d = own ? distance(name, size, options[i].name, exact || strlen(options[i].name) < NEAR_SIZE) : nearest;
        if (d < nearest) best = own, nearest = d;
    }
    return best;
}

/* The command of exactly that name, or NULL. */
static const char *find_command(const char *name, size_t size, const char *(*at)(size_t i))
{
    for (size_t i = 0; at && at(i); i++)
        if (distance(name, size, at(i), true) == 0) return at(i);
    return NULL;
}

const char *cmd_hint_command(const char *name, size_t size, bool exact, const char *(*at)(size_t i))
{
    for (size_t i = 0; i < PD_COUNT(commands); i++) {
        const char *own = commands[i].own;
        if (distance(name, size, commands[i].name, true) != 0) continue;
        if (own[0] == '-' || !at || find_command(own, strlen(own), at)) return own;
    }
    return exact ? find_command(name, size, at) : cmd_nearest(name, at);
}

const char *cmd_hint_no_option(const struct cmd_command *c, const char *name)
{
    bool tls = strncmp(name, "ssl", 3) == 0 || strncmp(name, "tls", 3) == 0;
    return tls && strcmp(c->name, "serve") == 0 ? "it has no TLS: put a proxy that has before it, such as nginx" : NULL;
}

const char *cmd_hint_no_command(const char *name)
{
    for (size_t i = 0; i < PD_COUNT(absent); i++)
        if (strcmp(absent[i].name, name) == 0) return absent[i].own;
    return NULL;
}

/* "gemma3:1b", "google/gemma-3-1b-it" */
static bool hints_is_name(const char *text)
{
    size_t n = strcspn(text, ":/");
    return n > 0 && text[n] && text[n + 1];
}

/* "gemma3", "gemma-3-1b-it", "Llama-3.2-1B": a family, and then a number or more of a name. */
static bool is_published(const char *text)
{
    const char *slash = strrchr(text, '/');
    if (slash) text = slash + 1;
    for (size_t i = 0; i < PD_COUNT(families); i++) {
        size_t n = strlen(families[i].name);
        if (strncasecmp(text, families[i].name, n) != 0) continue;
        if (!text[n] && families[i].alone && strcmp(text, families[i].name) == 0) return true;
        size_t rest = strspn(text + n, "-:._");
        if (isdigit((unsigned char)text[n + rest])) return true;
        if (text[n] && rest && isalnum((unsigned char)text[n + rest]) && families[i].alone) return true;
    }
    return false;
}

static bool is_folder(const char *text)
{
    char path[CMD_PATH_SIZE];
    int length = snprintf(path, sizeof path, "%s/config.json", text);
    return length > 0 && (size_t)length < sizeof path && pd_is_file(path);
}

enum cmd_model_hint cmd_hint_model(const char *text, bool misplaced)
{
    bool is_file = cmd_ends_with(text, ".gguf") && !strchr(text, '\n');
    if (is_folder(text) || (is_file && pd_is_file(text))) return CMD_HINT_MODEL_HERE;
    if (is_file) return CMD_HINT_MODEL_ELSEWHERE;
    if (!text[0] || text[strcspn(text, " \t\n")]) return CMD_HINT_NO_MODEL;
    bool published = is_published(text);
    if (cmd_model_is_here(text, published)) return CMD_HINT_MODEL_HERE;
    return published || (misplaced && hints_is_name(text)) ? CMD_HINT_MODEL_ELSEWHERE : CMD_HINT_NO_MODEL;
}

/* peridot connect: what programs that are made for other servers are to be told so that they use this one. A program is
 * a row of `clients`: what its environment says, and what stands in its file, as texts with the server's values in
 * braces. Files of JSON are merged with what is there; others are written only where there are none. */
#include "../cli/cli.h"
#include "../console/console.h"
#include "../base/base.h"
#include "../models/models.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ANSWER = 4 << 20, ANSWER_SECONDS = 10, UNKNOWN_CTX = 8192 };

enum form { FORM_SHELL, FORM_JSON, FORM_LINES };   /* lines: TOML or YAML, whose strings may be as JSON's */

/* In a text {NAME} is a value (set_values), a line with one that is not known is left out, and {?key} is nothing. */
struct client {
    const char *name, *title;
    const char *env;           /* lines for a shell, */
    bool also;                 /* which it needs beside its file, or else in place of it; */
    const char *start;         /* and what is started in it then; NULL: not from a shell */
    const char *paths[2][2];   /* of the file: an environment variable and what comes after it, the first that is set */
    enum form form;
    const char *text;          /* of the file; NULL: there is none */
};

static const struct client clients[] = {
    {"claude", "Claude Code",
     "export ANTHROPIC_BASE_URL={url}\n"
     "export ANTHROPIC_AUTH_TOKEN={key}\n"
     "export ANTHROPIC_MODEL={model}\n"
     "export ANTHROPIC_DEFAULT_HAIKU_MODEL={model}\n"
     "export ANTHROPIC_SMALL_FAST_MODEL={model}\n"
     "export CLAUDE_CODE_AUTO_COMPACT_WINDOW={ctx}\n",
     false, "claude",
     {{"CLAUDE_CONFIG_DIR", "/settings.json"}, {"HOME", "/.claude/settings.json"}}, FORM_JSON,
     "{\n"
     "  \"env\": {\n"
     "    \"ANTHROPIC_BASE_URL\": {url},\n"
     "    \"ANTHROPIC_AUTH_TOKEN\": {key},\n"
     "    \"CLAUDE_CODE_AUTO_COMPACT_WINDOW\": \"{ctx}\",\n"
     "    \"ANTHROPIC_MODEL\": {model},\n"
     "    \"ANTHROPIC_DEFAULT_HAIKU_MODEL\": {model},\n"
     "    \"ANTHROPIC_SMALL_FAST_MODEL\": {model}\n"
     "  }\n"
     "}\n"},
    {"codex", "Codex CLI", "export PERIDOT_API_KEY={given-key}\n", true, "codex",
     {{"CODEX_HOME", "/config.toml"}, {"HOME", "/.codex/config.toml"}}, FORM_LINES,
     "model = {model}\n"
     "model_provider = \"peridot\"\n"
     "model_context_window = {ctx}\n"
     "\n"
     "[model_providers.peridot]\n"
     "name = \"Peridot\"\n"
     "base_url = {v1}\n"
     "wire_api = \"responses\"\n"
     "{?key}env_key = \"PERIDOT_API_KEY\"\n"},
    {"opencode", "opencode", "", false, "opencode",
     {{"XDG_CONFIG_HOME", "/opencode/opencode.json"}, {"HOME", "/.config/opencode/opencode.json"}}, FORM_JSON,
     "{\n"
     "  \"$schema\": \"https://opencode.ai/config.json\",\n"
     "  \"provider\": {\n"
     "    \"peridot\": {\n"
     "      \"npm\": \"@ai-sdk/openai-compatible\",\n"
     "      \"name\": \"Peridot\",\n"
     "      \"options\": {\n"
     "        \"baseURL\": {v1},\n"
     "        \"apiKey\": {key}\n"
     "      },\n"
     "      \"models\": {\n"
     "        {model}: {\n"
     "          \"limit\": {\"context\": {ctx}, \"output\": {reply}},\n"
     "          \"name\": {model}\n"
     "        }\n"
     "      }\n"
     "    }\n"
     "  },\n"
     "  \"model\": {peridot-model}\n"
     "}\n"},
    {"aider", "aider",
     "export OPENAI_API_BASE={v1}\n"
     "export OPENAI_API_KEY={key}\n"
     "export AIDER_MODEL={openai-model}\n",
     false, "aider", {{"HOME", "/.aider.conf.yml"}}, FORM_LINES,
     "model: {openai-model}\n"
     "openai-api-base: {v1}\n"
     "openai-api-key: {key}\n"},
    {"continue", "Continue", "", false, NULL,
     {{"CONTINUE_GLOBAL_DIR", "/config.yaml"}, {"HOME", "/.continue/config.yaml"}}, FORM_LINES,
     "name: Peridot\n"
     "version: 1.0.0\n"
     "schema: v1\n"
     "models:\n"
     "  - name: {model}\n"
     "    provider: openai\n"
     "    model: {model}\n"
     "    apiBase: {v1}\n"
     "    apiKey: {key}\n"
     "    roles: [chat, edit, apply]\n"
     "    capabilities: [tool_use]\n"
     "    defaultCompletionOptions: { contextLength: {ctx} }\n"},
    {"zed", "Zed", "export PERIDOT_API_KEY={key}\n", true, "zed",
     {{"XDG_CONFIG_HOME", "/zed/settings.json"}, {"HOME", "/.config/zed/settings.json"}}, FORM_JSON,
     "{\n"
     "  \"language_models\": {\n"
     "    \"openai_compatible\": {\n"
     "      \"Peridot\": {\n"
     "        \"api_url\": {v1},\n"
     "        \"available_models\": [\n"
     "          {\n"
     "            \"name\": {model},\n"
     "            \"display_name\": {model},\n"
     "            \"max_tokens\": {some-ctx},\n"
     "            \"capabilities\": {\n"
     "              \"tools\": true,\n"
     "              \"images\": {sees},\n"
     "              \"parallel_tool_calls\": true,\n"
     "              \"prompt_cache_key\": false\n"
     "            }\n"
     "          }\n"
     "        ]\n"
     "      }\n"
     "    }\n"
     "  },\n"
     "  \"agent\": {\n"
     "    \"default_model\": {\"provider\": \"Peridot\", \"model\": {model}}\n"
     "  }\n"
     "}\n"},
    {"openwebui", "Open WebUI",
     "export OPENAI_API_BASE_URL={v1}\n"
     "export OPENAI_API_KEY={key}\n",
     false, "open-webui serve", {{NULL}}, FORM_LINES, NULL},
};

static const char *client_name(size_t i) { return i < PD_COUNT(clients) ? clients[i].name : NULL; }

struct connect_args {
    const char *client, *url, *model, *key;
    bool write;
};

static const struct cmd_option options[] = {
    {.name = "url", .metavar = "URL", .kind = CMD_TEXT, .offset = offsetof(struct connect_args, url),
     .fallback = "http://127.0.0.1:8080", .help = "Where peridot serve runs."},
    {.name = "model", .metavar = "NAME", .kind = CMD_TEXT, .offset = offsetof(struct connect_args, model),
     .help = "One of the server's models, as it calls it. Without it, its first."},
    {.name = "api-key", .metavar = "KEY", .kind = CMD_TEXT, .offset = offsetof(struct connect_args, key),
     .help = "The server's key, where it has one."},
    {.name = "write", .kind = CMD_FLAG, .offset = offsetof(struct connect_args, write),
     .help = "Write the program's file after showing it. In a file of JSON the rest stays as it is; another file that "
             "is there already is left alone."},
    {.metavar = "CLIENT", .kind = CMD_TEXT, .offset = offsetof(struct connect_args, client), .required = true,
     .value = client_name, .help = "The program to connect."},
};

/* ---- the server ---- */

struct server {
    char url[512];             /* without a slash at its end, and without /v1 */
    char model[256];
    uint64_t ctx;              /* tokens of a request; 0: not known */
    bool sees;
    const char *key;           /* NULL: none */
};

/* No proxy stands between this machine and itself. */
static bool is_local(const char *url)
{
    static const char *const hosts[] = {"http://127.0.0.1", "http://localhost", "http://[::1]"};
    for (size_t i = 0; i < PD_COUNT(hosts); i++)
        if (strncmp(url, hosts[i], strlen(hosts[i])) == 0) return true;
    return false;
}

static peridot_status explain(const struct server *s, const struct cmd_http_answer *a, peridot_status status)
{
    const char *at = cmd_shown(s->url);
    if (a->end == CMD_HTTP_OWN) return status;
    if (a->end == CMD_HTTP_TOO_LARGE)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s/v1/models answers more than %d bytes", at, MAX_ANSWER);
    if (a->code == 401)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "%s %s (--api-key)", at, s->key ? "has another key" : "needs its key");
    if (status == PERIDOT_OK)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s/v1/models answers HTTP status %ld: is this a peridot serve?", at,
                       a->code);
    return pd_fail(PERIDOT_ERROR_IO, "nothing answers at %s (%s): start it with peridot serve -m MODEL, or say where "
                   "it is with --url", at, a->kind);
}

/* *out is freed by the caller, also on failure. */
static peridot_status fetch(struct cmd_http_answer *out, struct cmd_http *http, const struct server *s)
{
    char url[600], key[1024] = "";
    snprintf(url, sizeof url, "%s/v1/models", s->url);
    if (s->key) snprintf(key, sizeof key, "Authorization: Bearer %.999s\n", s->key);
    peridot_status status = cmd_http_ask(out, http, &(struct cmd_http_request){
        .url = url, .headers = key, .whole_s = ANSWER_SECONDS, .direct = is_local(url), .most = MAX_ANSWER});
    return status == PERIDOT_OK && out->code == 200 ? PERIDOT_OK : explain(s, out, status);
}

/* As a terminal may see it: names come from the server. */
static bool connect_is_plain(const char *text, size_t size)
{
    char shown[1024];
    return size && size < sizeof shown && strlen(text) == size
        && peridot_printable(shown, sizeof shown, text, size) == size && memcmp(shown, text, size) == 0;
}

static peridot_status take_model(struct server *s, yyjson_val *model)
{
    size_t i, n;
    yyjson_val *id = yyjson_obj_get(model, "id"), *each;
    if (!yyjson_is_str(id) || yyjson_get_len(id) >= sizeof s->model
        || !connect_is_plain(yyjson_get_str(id), yyjson_get_len(id)))
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s has a model without a name that can be used", cmd_shown(s->url));
    snprintf(s->model, sizeof s->model, "%s", yyjson_get_str(id));
    s->ctx = yyjson_get_uint(yyjson_obj_get(model, "max_model_len"));
    yyjson_val *kinds = yyjson_obj_get(yyjson_obj_get(model, "architecture"), "input_modalities");
    yyjson_arr_foreach(kinds, i, n, each) s->sees = s->sees || yyjson_equals_str(each, "image");
    return PERIDOT_OK;
}

static peridot_status choose_model(struct server *s, yyjson_val *root, const char *name)
{
    yyjson_val *list = yyjson_obj_get(root, "data"), *each, *found = NULL;
    size_t i, n;
    if (!yyjson_arr_size(list))
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s/v1/models lists no models: is this a peridot serve?",
                       cmd_shown(s->url));
    yyjson_arr_foreach(list, i, n, each)
        if (!found && (!name || yyjson_equals_str(yyjson_obj_get(each, "id"), name))) found = each;
    if (!found)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "%s has no model %s: see %s/v1/models", cmd_shown(s->url),
                       cmd_shown(name), cmd_shown(s->url));
    return take_model(s, found);
}

static peridot_status find_server(struct server *s, const struct connect_args *args)
{
    struct cmd_http_answer a = {0};
    struct cmd_http *http = cmd_http_open();
    if (!http) return pd_fail(PERIDOT_ERROR_MEMORY, "libcurl does not start: out of memory");
    peridot_status status = fetch(&a, http, s);
    yyjson_doc *doc = status == PERIDOT_OK ? yyjson_read(a.body.data ? a.body.data : "", a.body.size, 0) : NULL;
    if (status == PERIDOT_OK) status = choose_model(s, yyjson_doc_get_root(doc), args->model);
    yyjson_doc_free(doc);
    cmd_http_free(&a);
    cmd_http_close(http);
    return status;
}

/* ---- texts ---- */

struct value {
    const char *name;
    char text[600];            /* "": it is not known */
    bool bare;                 /* a number, or a word of JSON */
};

enum { N_VALUES = 11 };

static void set_values(struct value out[N_VALUES], const struct server *s)
{
    const char *key = s->key ? s->key : "none";   /* programs want one */
    const struct {
        const char *name, *before, *text, *after;
    } texts[] = {{"url", "", s->url, ""},           {"v1", "", s->url, "/v1"},
                 {"model", "", s->model, ""},       {"openai-model", "openai/", s->model, ""},
                 {"peridot-model", "peridot/", s->model, ""}, {"key", "", key, ""},
                 {"given-key", "", s->key ? s->key : "", ""}};
    const struct {
        const char *name;
        uint64_t n;
    } numbers[] = {{"ctx", s->ctx}, {"reply", s->ctx / 4}, {"some-ctx", s->ctx ? s->ctx : UNKNOWN_CTX}};
    size_t n = 0;
    for (size_t i = 0; i < PD_COUNT(texts); i++, n++) {
        out[n] = (struct value){.name = texts[i].name};
        snprintf(out[n].text, sizeof out[n].text, "%s%s%s", texts[i].before, texts[i].text, texts[i].after);
    }
    for (size_t i = 0; i < PD_COUNT(numbers); i++, n++) {
        out[n] = (struct value){.name = numbers[i].name, .bare = true};
        if (numbers[i].n) snprintf(out[n].text, sizeof out[n].text, "%llu", (unsigned long long)numbers[i].n);
    }
    out[n] = (struct value){.name = "sees", .bare = true};
    snprintf(out[n].text, sizeof out[n].text, "%s", s->sees ? "true" : "false");
}

/* A word that a shell takes as it is. */
static void put_word(FILE *file, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+,=-";
    if (text[strspn(text, plain)] == 0) {
        fputs(text, file);
        return;
    }
    fputc('\'', file);
    for (; *text; text++) fputs(*text == '\'' ? "'\\''" : (char[]){*text, 0}, file);
    fputc('\'', file);
}

/* The value that begins at a brace, and its bytes; NULL: none does. */
static const struct value *connect_find_value(size_t *size, const char *at, const struct value values[N_VALUES])
{
    for (size_t i = 0; i < N_VALUES && *at == '{'; i++) {
        *size = strlen(values[i].name) + 2;
        if (strncmp(at + 1, values[i].name, *size - 2) == 0 && at[*size - 1] == '}') return &values[i];
    }
    return NULL;
}

static bool lacks_value(const char *line, size_t size, const struct value values[N_VALUES], bool has_key)
{
    size_t n;
    for (size_t i = 0; i < size; i++) {
        const struct value *value = connect_find_value(&n, line + i, values);
        if ((value && !*value->text) || (!has_key && strncmp(line + i, "{?key}", 6) == 0)) return true;
    }
    return false;
}

static void put_line(FILE *file, const char *line, size_t size, enum form form, const struct value values[N_VALUES])
{
    for (size_t i = 0, n; i < size; i += n) {
        const struct value *value = connect_find_value(&n, line + i, values);
        if (!value && strncmp(line + i, "{?key}", 6) == 0) {
            n = 6;
        } else if (!value) {
            n = 1;
            fputc(line[i], file);
        } else if (value->bare) {
            fputs(value->text, file);
        } else if (form == FORM_SHELL) {
            put_word(file, value->text);
        } else {
            cmd_json_string(file, value->text, strlen(value->text));
        }
    }
}

/* To be freed; NULL: memory is short. */
static char *make_text(const char *text, enum form form, const struct server *s)
{
    struct value values[N_VALUES];
    char *made = NULL;
    size_t size;
    FILE *file = cmd_memory_open(&made, &size);
    if (!file) return NULL;
    set_values(values, s);
    for (size_t n; *text; text += n) {
        n = strcspn(text, "\n") + 1;
        if (!lacks_value(text, n, values, s->key != NULL)) put_line(file, text, n, form, values);
    }
    if (cmd_memory_close(file, &made, &size)) return made;
    free(made);
    return NULL;
}

/* ---- files ---- */

static bool find_path(char path[CMD_PATH_SIZE], const struct client *c)
{
    for (size_t i = 0; i < PD_COUNT(c->paths) && c->paths[i][0]; i++)
        if (cmd_env_path(path, c->paths[i][0], c->paths[i][1])) return true;
    return false;
}

/* `old` with the members of `text` in place of its own. */
static peridot_status merge(char **out, const char *path, char *old, const char *text)
{
    const yyjson_read_flag loose = YYJSON_READ_ALLOW_COMMENTS | YYJSON_READ_ALLOW_TRAILING_COMMAS;
    size_t n_old = strlen(old);
    yyjson_read_err error;
    yyjson_doc *is = yyjson_read_opts(old, n_old, YYJSON_READ_NUMBER_AS_RAW, NULL, &error);
    if (!is && (is = yyjson_read(old, n_old, loose)) != NULL) {
        yyjson_doc_free(is);
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s has comments or commas that JSON has not, and would lose them: it is "
                       "left as it is, put this into it", cmd_shown(path));
    }
    if (!yyjson_is_obj(yyjson_doc_get_root(is))) {
        yyjson_doc_free(is);
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s is no JSON object (byte %zu), and is left as it is: put this into it",
                       cmd_shown(path), error.pos);
    }
    yyjson_doc *add = yyjson_read(text, strlen(text), 0);
    yyjson_mut_doc *doc = cmd_json_new();
    yyjson_mut_doc_set_root(doc, yyjson_merge_patch(doc, yyjson_doc_get_root(is), yyjson_doc_get_root(add)));
    *out = cmd_json_end(doc, YYJSON_WRITE_PRETTY_TWO_SPACES, NULL);
    yyjson_doc_free(is);
    yyjson_doc_free(add);
    return *out ? PERIDOT_OK : pd_fail(PERIDOT_ERROR_MEMORY, "out of memory for %s", cmd_shown(path));
}

/* What the file is to be: `text`, or that merged into what is there. */
static peridot_status make_file(char **out, const struct client *c, const char *path, const char *text)
{
    char *old = NULL;
    size_t size = 0;
    peridot_status status = PERIDOT_OK;
    *out = NULL;
    if (cmd_path_exists(path)) status = cmd_read_file(&old, &size, path);
    bool empty = status == PERIDOT_OK && (!old || old[strspn(old, " \t\r\n")] == 0);
    if (status == PERIDOT_OK && !empty && c->form == FORM_JSON) status = merge(out, path, old, text);
    else if (status == PERIDOT_OK && !empty && strcmp(old, text) != 0)
        status = pd_fail(PERIDOT_ERROR_IO, "%s is there already, and is left as it is: put this into it",
                         cmd_shown(path));
    free(old);
    return status;
}

static peridot_status write_client(const struct client *c, const char *path, const char *text)
{
    char *merged;
    peridot_status status = make_file(&merged, c, path, text);
    const char *made = merged ? merged : text;
    printf("%s", made);
    if (made[strlen(made) - 1] != '\n') puts("");
    fflush(stdout);
    if (status == PERIDOT_OK) status = cmd_write_file(path, made);
    if (status == PERIDOT_OK) cmd_say("%s is written\n", cmd_shown(path));
    free(merged);
    return status;
}

/* ---- the command ---- */

static void connect_show(const struct client *c, const char *env, const char *path, const char *text)
{
    bool both = *env && text;
    if (*env) printf("# In the shell that starts %s:\n%s", c->title, env);
    if (*env && c->start) printf("%s\n", c->start);
    if (both) puts("");
    const char *in = !both ? "In" : c->also ? "And in" : "Or in";
    if (text) printf("# %s %s (--write puts it there):\n%s", in, cmd_shown(path), text);
}

static peridot_status connect_client(const struct client *c, const struct server *s, bool write)
{
    char path[CMD_PATH_SIZE] = "";
    char *env = make_text(c->env, FORM_SHELL, s), *text = c->text ? make_text(c->text, c->form, s) : NULL;
    peridot_status status = PERIDOT_OK;
    if (!env || (c->text && !text)) status = pd_fail(PERIDOT_ERROR_MEMORY, "out of memory for a text");
    else if (text && !find_path(path, c))
        status = pd_fail(PERIDOT_ERROR_IO, "HOME is not set: it is not known where the files of %s are", c->title);
    else if (write) status = write_client(c, path, text);
    else connect_show(c, env, path, text);
    if (status == PERIDOT_OK && write && c->also && *env) {
        cmd_say("%s also needs, in the shell that starts it:\n", c->title);
        fputs(env, stderr);
    }
    free(env);
    free(text);
    return status;
}

/* "http://host:8080/v1/" is http://host:8080. */
static void set_url(struct server *s, const char *url)
{
    snprintf(s->url, sizeof s->url, "%s", url);
    for (int i = 0; i < 2; i++) {
        size_t n = strlen(s->url);
        while (n && s->url[n - 1] == '/') s->url[--n] = 0;
        if (i == 0 && n > 3 && strcmp(s->url + n - 3, "/v1") == 0) s->url[n - 3] = 0;
    }
}

static int connect_run(const struct cmd_command *command, const void *arguments)
{
    const struct connect_args *args = arguments;
    const struct client *c = clients;
    struct server s = {.key = args->key};
    while (strcmp(c->name, args->client) != 0) c++;   /* which is one of them */
    if (strncmp(args->url, "http://", 7) != 0 && strncmp(args->url, "https://", 8) != 0)
        return cmd_usage(command, "--url takes an address such as http://127.0.0.1:8080");
    if (strlen(args->url) >= sizeof s.url || !connect_is_plain(args->url, strlen(args->url)))
        return cmd_usage(command, "--url is too long, or has characters that no address has");
    if (args->key && (strlen(args->key) > 500 || !connect_is_plain(args->key, strlen(args->key))))
        return cmd_usage(command, "--api-key is empty, too long, or has characters that no key has");
    if (args->write && !c->text)
        return cmd_usage(command, "%s takes it from its environment: there is no file to write", c->title);
    set_url(&s, args->url);
    peridot_status status = find_server(&s, args);
    if (status != PERIDOT_OK) return cmd_exit(status);
    if (s.ctx) cmd_say("%s serves %s, with a context of %llu tokens\n", s.url, s.model, (unsigned long long)s.ctx);
    else cmd_say("%s serves %s, whose context is known once it is loaded\n", s.url, s.model);
    return cmd_exit(connect_client(c, &s, args->write));
}

const struct cmd_command cmd_connect = {
    .name = "connect",
    .summary = "tell Claude Code, Codex and others to use peridot serve",
    .description =
        "Asks the server that runs for its model and context, and prints what the program is to be told: its "
        "environment, or what stands in its file and where that is.\n\n"
        "With --write it shows the file as it will be, and then writes it. A file of JSON keeps what it has beside "
        "this (one with comments is left alone, as they would be lost); files of other forms are only written where "
        "there are none. A file is replaced as a whole, or not at all.",
    .examples = "peridot serve -m Qwen3-8B --ctx 65536 &\n"
                "peridot connect claude\n"
                "peridot connect codex --write\n"
                "peridot connect opencode --url http://192.168.1.7:8080 --api-key KEY",
    CMD_ARGUMENTS(options, struct connect_args),
    .run = connect_run,
};

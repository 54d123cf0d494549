/* peridot serve: its options and its life: it begins to listen, opens the model, watches, and ends in order. */
#define _POSIX_C_SOURCE 200809L
#include "../stages/stages.h"
#include "http.h"
#include "http_.h"
#include "../job/job.h"
#include "../wire/wire.h"
#include "../../cli/cli.h"
#include "../../base/base.h"
#include "../../console/console.h"
#include "../../toolbox/toolbox.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STOP_SECONDS 10.0      /* from a signal to the end of the server, at most: of these */
#define GRACE_SECONDS 8.0      /* requests get so many to end, and */
#define ANSWER_SECONDS 1.0     /* those that have not ended, to be told */
#define STEP_SECONDS 60.0      /* that a step may take: the library gives a device up after 30 */
#define LAST_SECONDS 1.5       /* the same, when the server ends */

static const char *full_name(size_t i)
{
    static const char *const names[] = {[SERVE_FULL_DROP] = "drop", [SERVE_FULL_REFUSE] = "refuse"};
    return i < PD_COUNT(names) ? names[i] : NULL;
}

static const char *format_name(size_t i)
{
    static const char *const names[] = {[SERVE_LOG_TEXT] = "text", [SERVE_LOG_JSON] = "json"};
    return i < PD_COUNT(names) ? names[i] : NULL;
}

static const struct cmd_option options[] = {
    {.letter = 'm', .name = "model", .metavar = "MODEL", .kind = CMD_TEXTS,
     .offset = offsetof(struct serve_args, models),
     .help = "A .gguf file, a Hugging Face directory, the name of a model on this machine (see peridot models), or a "
             "folder of models. May be repeated. The first model is loaded at once, others when a request names "
             "them. Without it, the demo model."},
    CMD_DEVICE_OPTIONS,
    CMD_LORA_OPTION,
    CMD_KERNEL_OPTION,
    CMD_VISION_OPTION,
    {.name = "host", .metavar = "HOST", .kind = CMD_TEXT, .offset = offsetof(struct serve_args, host),
     .fallback = "127.0.0.1", .help = "The address to listen on. One that other machines can reach needs an API key."},
    {.name = "port", .metavar = "PORT", .kind = CMD_U32, .offset = offsetof(struct serve_args, port),
     .fallback = "8080", .max = 65535, .help = "0: any that is free; standard error says which."},
    {.name = "parallel", .metavar = "N", .kind = CMD_U32, .offset = offsetof(struct serve_args, n_parallel),
     .fallback = "8", .min = 1, .max = 64, .help = "The most texts that are generated at the same time; others wait."},
    {.name = "queue", .metavar = "N", .kind = CMD_U32, .offset = offsetof(struct serve_args, n_queue),
     .fallback = "256", .max = 1e6,
     .help = "Requests that may wait for a model. Of more, those of the client who has the most are refused with "
             "status 429."},
    {.name = "ctx", .metavar = "TOTAL", .kind = CMD_U32, .offset = offsetof(struct serve_args, ctx), .fallback = "0",
     .help = "Positions of the cache that all conversations share; one of them can use it all, up to the model's "
             "context. 0: up to 16384, as memory allows."},
    {.name = "full", .metavar = "WHAT", .kind = CMD_CHOICE, .offset = offsetof(struct serve_args, full),
     .fallback = "drop", .value = full_name,
     .help = "What to do when a conversation of the page no longer fits the context: drop its oldest turns, or refuse "
             "the message. API requests are refused unless they contain \"full\": \"drop\"."},
    CMD_KV_OPTION(struct serve_args),
    CMD_DRAFT_OPTIONS(struct serve_args, draft),
    CMD_CHAIN_OPTIONS(struct serve_args, sampling, "1", "1", "0"),
    {.name = "api-key", .metavar = "KEY", .kind = CMD_TEXT, .offset = offsetof(struct serve_args, key),
     .help = "The key that requests must have, as Authorization: Bearer KEY or x-api-key: KEY."},
    {.name = "api-key-file", .metavar = "FILE", .kind = CMD_TEXT, .offset = offsetof(struct serve_args, key_file),
     .help = "A file with a key on each line; a request must have one of them."},
    {.name = "insecure", .kind = CMD_FLAG, .offset = offsetof(struct serve_args, insecure),
     .help = "Serve other machines without a key."},
    CMD_TEMPLATE_OPTION(struct serve_args),
    CMD_THINK_OPTION(struct serve_args),
    CMD_TOOLS_OPTION(struct serve_args),
    {.name = "alias", .metavar = "NAME", .kind = CMD_TEXT, .offset = offsetof(struct serve_args, alias),
     .help = "The model's name in the interface. Without it, that of its file."},
    {.name = "cors", .metavar = "ORIGIN", .kind = CMD_TEXT, .offset = offsetof(struct serve_args, cors),
     .help = "Web pages of this origin may use the server, such as https://chat.example.org."},
    {.name = "allow-url", .metavar = "HOST", .kind = CMD_TEXTS, .offset = offsetof(struct serve_args, allowed_urls),
     .help = "Fetch images at https URLs of this host, or HOST:PORT, if it has a public address. May be repeated. "
             "Without it, images are only taken from requests themselves."},
    {.name = "idle", .metavar = "S", .kind = CMD_U32, .offset = offsetof(struct serve_args, idle_s), .fallback = "0",
     .max = 1e6, .help = "Unload a model after S seconds without a request, until the next one. 0: only when another "
                         "model needs the memory."},
    {.name = "timeout", .metavar = "S", .kind = CMD_U32, .offset = offsetof(struct serve_args, timeout_s),
     .fallback = "30", .min = 1, .max = 3600, .help = "Seconds after which a connection is closed that "
                                                      "is idle or sends too slowly."},
    {.name = "log-format", .metavar = "FORMAT", .kind = CMD_CHOICE, .offset = offsetof(struct serve_args, log_format),
     .fallback = "text", .value = format_name, .help = "How requests are logged: text, or json, an object on a line."},
    {.name = "log-json", .kind = CMD_FLAG, .offset = offsetof(struct serve_args, log_json),
     .help = "The same as --log-format json."},
    {.name = "log-prompts", .kind = CMD_FLAG, .offset = offsetof(struct serve_args, log_prompts),
     .help = "Log the bodies of requests as well."},
    {.name = "install-service", .kind = CMD_FLAG, .offset = offsetof(struct serve_args, install_service),
     .help = "Show the units by which systemd starts this server for you, with the other options here, and write them "
             "if you agree."},
    {.name = "yes", .kind = CMD_FLAG, .offset = offsetof(struct serve_args, yes),
     .help = "With --install-service: write them without asking. Others of these names are left alone in any case."},
};

/* ---- what it needs ---- */

/* Keys are the lines of the file that are not empty. */
static peridot_status read_keys(struct serve_server *s)
{
    size_t size;
    if (s->args->key) s->keys[s->n_keys++] = s->args->key;
    if (!s->args->key_file) return PERIDOT_OK;
    PD_TRY(cmd_read_file(&s->key_text, &size, s->args->key_file));
    for (char *rest = s->key_text, *line; (line = strtok_r(NULL, "\r\n", &rest)) != NULL;) {
        if (s->n_keys == SERVE_MAX_KEYS)
            return pd_fail(PERIDOT_ERROR_ARGUMENT, "%s has more than %d keys", s->args->key_file, SERVE_MAX_KEYS);
        s->keys[s->n_keys++] = line;
    }
    if (s->n_keys == 0) return pd_fail(PERIDOT_ERROR_ARGUMENT, "%s contains no key", s->args->key_file);
    return PERIDOT_OK;
}

/* ---- watching ---- */

/* A step that never comes back can only be ended with the process; whoever started it can start it again. */
static void check_step(const struct serve_model *m, double most)
{
    double seconds = serve_engine_step_s(m->engine);
    if (seconds < most || m->is_cpu) return;
    fprintf(stderr, "peridot: the device has not responded for %.0f s: the server ends\n", seconds);
    _exit(CMD_FAILURE);
}

static void check_steps(const struct serve_server *s, double most)
{
    for (size_t i = 0; i < s->n_models; i++) check_step(&s->models[i], most);
}

static void watch(struct serve_server *s)
{
    while (!s->failed && !cmd_signals_wait(0.5)) {
        serve_http_tend(s->http);
        serve_pings_tend(&s->pings, serve_job_ping);
        serve_streams_tend(&s->streams);
        check_steps(s, STEP_SECONDS);
    }
}

/* Those that are at work get their time; a second signal takes it. */
static void drain(struct serve_server *s)
{
    double serve_end = pd_now() + GRACE_SECONDS;
    s->draining = true;
    uint32_t n = s->n_jobs;
    if (n) fprintf(stderr, "shutting down: waiting up to %.0f s for %u request%s\n", STOP_SECONDS, n, PD_S(n));
    while (s->n_jobs && pd_now() < serve_end && !cmd_signals_wait(0.02)) {
        serve_http_tend(s->http);
        check_steps(s, LAST_SECONDS);
    }
}

/* Answers that are ready get a moment to leave. Where a step is stuck, the process ends without it. */
static void serve_end(struct serve_server *s)
{
    double begun = pd_now();
    s->stopping = true;
    serve_tools_stop(s->tools);
    for (size_t i = 0; i < s->n_models; i++) serve_engine_stop(s->models[i].engine);
    while (s->n_jobs && pd_now() - begun < ANSWER_SECONDS)
        cmd_sleep(0.01);
    if (s->n_jobs) _exit(s->failed ? CMD_FAILURE : CMD_OK);
    cmd_sleep(0.05);
}

static peridot_status serve(struct serve_server *s)
{
    PD_TRY(read_keys(s));
    PD_TRY(serve_models_find(s));
    s->created = (int64_t)time(NULL);
    PD_TRY(serve_http_open(&s->http, s));
    cmd_interrupt_watch();
    cmd_signals_hold(false);   /* they end the loading */
    const struct cmd_texts *tools = &s->args->tools;
    peridot_status status = tools->n ? cmd_toolbox_open(&s->toolbox, tools->at, tools->n) : PERIDOT_OK;
    if (status == PERIDOT_OK) status = serve_engine_create(&s->models->engine, s, s->models);
    cmd_signals_hold(true);
    PD_TRY(status);
    for (size_t i = 1; i < s->n_models; i++) PD_TRY(serve_engine_create(&s->models[i].engine, s, &s->models[i]));
    PD_TRY(serve_reader_create(&s->reader, s));
    if (s->toolbox) PD_TRY(serve_tools_create(&s->tools, s));
    s->ready = true;
    PD_TRY(serve_http_ready(s->http));
    fprintf(stderr, "serving %s at http://%s:%u: the cache has %u positions, and a conversation at most %u\n",
            cmd_shown(s->models->id), serve_http_host(s->http), serve_http_port(s->http), s->models->n_positions,
            s->models->ctx);
    for (size_t i = 1; i < s->n_models; i++)
        fprintf(stderr, "and %s, on demand\n", cmd_shown(s->models[i].id));
    watch(s);
    drain(s);
    serve_end(s);
    return s->failed ? pd_fail(PERIDOT_ERROR_LINK, "%s", s->failure) : PERIDOT_OK;
}

static int serve_run(const struct cmd_command *command, const void *arguments)
{
    struct serve_thoughts thoughts;
    struct serve_server s = {.args = arguments, .stages = serve_stages, .thoughts = &thoughts};
    if (s.args->key && !*s.args->key) return cmd_usage(command, "--api-key must not be empty");
    if (s.args->cors && strcmp(s.args->cors, "*") == 0)
        return cmd_usage(command, "--cors takes one origin, such as https://chat.example.org");
    for (size_t i = 0; i < s.args->allowed_urls.n; i++)
        if (strchr(s.args->allowed_urls.at[i], '/') || !s.args->allowed_urls.at[i][0])
            return cmd_usage(command, "--allow-url takes a host, such as images.example.org");
    if (s.args->yes && !s.args->install_service) return cmd_usage(command, "--yes is for --install-service");
    if (s.args->install_service && s.args->key)
        return cmd_usage(command, "--install-service takes --api-key-file: the units are no place for a key");
    if (s.args->install_service && !s.args->port)
        return cmd_usage(command, "--install-service needs a --port that others can know");
    if (s.args->install_service) return cmd_exit(serve_service_install(s.args));
    cmd_signals_hold(true);   /* in all threads: only `watch` takes them */
    pthread_mutex_init(&s.metrics.lock, NULL);
    pthread_mutex_init(&s.loading, NULL);
    pthread_mutex_init(&s.pings.lock, NULL);
    pthread_mutex_init(&s.stored.lock, NULL);
    pthread_mutex_init(&s.streams.lock, NULL);
    serve_thoughts_init(&thoughts);
    cmd_allow_connections(SERVE_MAX_CONNECTIONS);
    peridot_status status = serve(&s);
    serve_http_close(s.http);
    for (size_t i = 0; i < s.n_models; i++) serve_engine_join(s.models[i].engine);
    serve_reader_free(s.reader);
    serve_tools_free(s.tools);
    cmd_toolbox_close(s.toolbox);
    for (size_t i = 0; i < s.n_models; i++) serve_engine_free(s.models[i].engine);
    serve_models_free(&s);
    serve_stored_free(&s.stored);
    serve_streams_free(&s.streams);
    free(s.key_text);
    return s.misused ? cmd_usage(command, "%s", peridot_last_error()) : cmd_exit(status);
}

const struct cmd_command cmd_serve = {
    .name = "serve",
    .summary = "answer requests over HTTP, as OpenAI, Anthropic and Ollama do",
    .description =
        "Listens on http://127.0.0.1:8080 and answers GET /v1/models and POST /v1/chat/completions, /v1/completions, "
        "/v1/responses and /v1/embeddings as OpenAI's clients expect, /v1/messages and /v1/messages/count_tokens as "
        "Anthropic's do, /v1/rerank as Jina's and Cohere's do, with or without /v1, /api/chat, /api/generate, "
        "/api/embed, /api/tags, /api/show and /api/ps as Ollama's do, /completion, /infill, /apply-template, "
        "/tokenize, /detokenize, /props and /slots as llama.cpp's do, and /health, /metrics (for Prometheus) and "
        "/openapi.json, which describes them all. GET / is a page to chat with.\n\n"
        "Several texts are generated at the same time, and each is what it would be alone with the same seed. They "
        "share one cache: of a conversation that goes on, or a prompt that begins like an earlier one, only the new "
        "part is read. A parameter that is not supported is refused where it would change the answer.\n\n"
        "Of several models `model` in a request chooses one by its name, that of its file; a request for a name that "
        "is not here is answered by the first, with a Warning header. A model is loaded when it is asked for, while "
        "the others go on. Where memory is short, the one that was idle longest is unloaded.\n\n"
        "What a model thinks before it answers, where its family does, comes as reasoning_content: --think says "
        "whether it does, and reasoning_effort, enable_thinking and their like in a request.\n\n"
        "A model that sees takes images in messages, as base64 and data URLs (and at https URLs with --allow-url), and "
        "in the page: pasted, dropped or chosen. A request has at most 32 images and 32 MiB, an image 20 MiB.\n\n"
        "A reply in the page ends where the next turn still fits. When a conversation no longer fits, its oldest turns "
        "are left out, and the page says which; the system prompt stays.\n\n"
        "With --tools the model may call tools in the page, from the files and URLs that peridot chat --help "
        "describes. The page shows each call and asks before it is made, unless the file has \"allow\"; Stop ends one "
        "that runs. Clients of the APIs bring tools of their own. The server calls a tool for its own page alone, with "
        "its key, and never for other web pages; but without an API key every program and user of this machine can "
        "pretend to be the page.\n\n"
        "Without an API key the server listens only on addresses of this machine, and answers only requests that are "
        "addressed to one of them or to localhost. A line on standard error tells of each request, without its "
        "texts: when, the client, the model, tokens and tokens/s, and the X-Request-Id that the client gave it, which "
        "the answer has, too. Checks of /health are left out.\n\n"
        "Where a socket is handed over by systemd (LISTEN_FDS), the server listens on that, whatever --host and --port "
        "say.\n\n"
        "On SIGTERM or Ctrl-C the server takes no new requests, and ends within 10 seconds: those in progress get 8 of "
        "these to end.",
    .examples = "peridot serve -m gemma-2-2b-it.gguf\n"
                "peridot serve -m gemma-2-2b-it.gguf -m Llama-3.2-1B.gguf --idle 600\n"
                "peridot serve -m gemma-2-2b-it.gguf --host 0.0.0.0 --api-key-file keys.txt\n"
                "peridot serve -m gemma-4-e4b-it --tools tools.json --tools http://127.0.0.1:8000/mcp\n"
                "curl http://127.0.0.1:8080/v1/completions -d '{\"prompt\": \"Hello\"}'",
    .options = options,
    .n_options = PD_COUNT(options),
    .args_size = sizeof(struct serve_args),
    .run = serve_run,
};

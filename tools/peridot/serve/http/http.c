/* HTTP of peridot serve, by libmicrohttpd: routes, keys, bodies, and answers as they come. One thread, which waits for
 * nobody: what takes time is a job of the reader and the engine. */
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE   /* strcasecmp, getaddrinfo */
#include "http.h"
#include "http_.h"
#include "../pictures/pictures.h"
#include "../job/job.h"
#include "../stages/stages.h"
#include "../wire/wire.h"
#include "../../base/base.h"

#include <microhttpd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#ifndef _WIN32   /* whose getaddrinfo comes with microhttpd.h */
#include <netdb.h>
#endif

#if MHD_VERSION < 0x00097701   /* Debian 12's */
#define MHD_OPTION_CLIENT_DISCIPLINE_LVL MHD_OPTION_STRICT_FOR_CLIENT
#endif

enum { MAX_FIXED = 2 };

struct serve_http {
    struct serve_server *server;
    struct MHD_Daemon *daemon;
    int socket;                /* that was handed over; -1: none, it is opened at: */
    struct sockaddr_storage address;
    char host[64], port[8];    /* of the former, as a URL has them; else "" */
    struct serve_links links;
    /* Of pages that are always the same, for all connections: without headers for the page of --cors, and with. A copy
     * for each request would be memory for whoever asks again and again and does not read. */
    struct MHD_Response *fixed[MAX_FIXED][2];
};

/* A request, from its headers to the end of its answer. */
struct exchange {
    struct serve_log_line line;
    const struct page *page;   /* of a GET, */
    const struct serve_interface *api;   /* or of a POST, */
    bool asks;                 /* or about a response or a stream that is kept; none: there is no such route */
    const struct serve_error_form *errors;
    struct serve_job *job;     /* NULL: it needs none */
    struct serve_error error;
    const char *allowed;       /* methods of the path; NULL: there is no such path */
    size_t n_discarded;
    bool submitted, at_once;
};

static const struct page {
    const char *path;
    bool is_public;            /* needs no key */
    bool any;                  /* method, not only GET */
    int fixed;                 /* 1 + its place among serve_http.fixed; 0: it has none */
    const char *type;
    int (*get)(struct pd_buffer *out, struct serve_server *server, const char *path);   /* gives the status */
} pages[] = {
    {"/", true, false, 1, "text/html; charset=utf-8", serve_get_page},
    {"/v1/health", true, false, 0, "application/json", serve_get_health},
    {"/props", false, false, 0, "application/json", serve_get_props},
    {"/slots", false, false, 0, "application/json", serve_get_slots},
    {"/openapi.json", true, false, 2, "application/json", serve_get_openapi},
    {"/metrics", false, false, 0, "text/plain; version=0.0.4; charset=utf-8", serve_get_metrics},
    {"/v1/models", false, false, 0, "application/json", serve_get_models},
    {"/v1/models/*", false, false, 0, "application/json", serve_get_model},
    {"/api/tags", false, false, 0, "application/json", serve_get_tags},
    {"/api/ps", false, false, 0, "application/json", serve_get_ps},
    {"/api/version", false, false, 0, "application/json", serve_get_version},
    {"/api/pull", false, true, 0, "application/json", serve_refuse_models},
    {"/api/push", false, true, 0, "application/json", serve_refuse_models},
    {"/api/create", false, true, 0, "application/json", serve_refuse_models},
    {"/api/copy", false, true, 0, "application/json", serve_refuse_models},
    {"/api/delete", false, true, 0, "application/json", serve_refuse_models},
    {"/api/blobs/*", false, true, 0, "application/json", serve_refuse_models},
};

static const char *header(struct MHD_Connection *c, const char *name)
{
    return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

static bool is_json_type(const char *type)
{
    static const char *const types[] = {"application/json", "text/json", "text/plain",
                                        "application/x-www-form-urlencoded"};   /* curl's */
    for (size_t i = 0; type && i < PD_COUNT(types); i++) {
        size_t n = strlen(types[i]);
        if (strncasecmp(type, types[i], n) == 0 && (type[n] == 0 || type[n] == ';' || type[n] == ' ')) return true;
    }
    return !type;
}

/* ---- routes ---- */

#define STREAMS "/v1/streams/"

static bool matches(const char *path, const char *url)
{
    size_t n = strlen(path);
    return path[n - 1] == '*' ? strncmp(path, url, n - 1) == 0 && url[n - 1] : strcmp(path, url) == 0;
}

/* OpenAI's clients are often given a base URL without its /v1. */
static bool is_at(const char *path, const char *url)
{
    return matches(path, url) || (strncmp(path, "/v1/", 4) == 0 && matches(path + 3, url));
}

static void find_route(struct exchange *x, const struct serve_args *args, const char *method, const char *url)
{
    bool gets = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    if (is_at("/v1/responses/*", url)) {
        bool whole = !strchr(strstr(url, "/responses/") + strlen("/responses/"), '/');   /* not a part of one */
        x->allowed = whole ? "GET, HEAD, DELETE" : "GET, HEAD";
        x->asks = gets || (whole && strcmp(method, "DELETE") == 0);
    }
    if (is_at(STREAMS "*", url)) {
        x->allowed = "GET, HEAD, DELETE";
        x->asks = gets || strcmp(method, "DELETE") == 0;
    }
    for (size_t i = 0; i < PD_COUNT(pages) && !x->allowed; i++) {
        if (!is_at(pages[i].path, url)) continue;
        x->allowed = "GET, HEAD";
        if (gets || pages[i].any) x->page = &pages[i];
    }
    for (int i = 0; i < SERVE_N_APIS && !x->allowed; i++) {
        const struct serve_interface *api = serve_interface_get((enum serve_api)i);
        if (!is_at(api->path, url) || (api->kind == SERVE_TOOLS && !args->tools.n)) continue;
        x->allowed = "POST";
        x->errors = api->errors;
        if (strcmp(method, "POST") == 0) x->api = api;
    }
    if (x->page || x->api || x->asks) return;
    if (x->allowed) serve_refuse(&x->error, 405, NULL, NULL, "%s does not allow %s", url, method);
    else serve_refuse(&x->error, 404, NULL, NULL, "there is no %s: see /openapi.json", url);
}

static enum MHD_Result count_header(void *user, enum MHD_ValueKind kind, const char *name, const char *value)
{
    static const char *const single[] = {"Content-Length", "Transfer-Encoding", "Host"};
    unsigned *counts = user;
    (void)kind, (void)value;
    for (size_t i = 0; i < PD_COUNT(single); i++)
        if (strcasecmp(name, single[i]) == 0 && ++counts[i] > 1) counts[3] = 1;
    return MHD_YES;
}

/* Where a request ends, and whom it is for, must be said once: whoever passed it on may have read the other one. */
static bool is_ambiguous(struct MHD_Connection *c)
{
    unsigned counts[4] = {0};
    MHD_get_connection_values(c, MHD_HEADER_KIND, count_header, counts);
    return counts[3];
}

static struct serve_asker get_asker(struct MHD_Connection *c)
{
    return (struct serve_asker){header(c, "Host"), header(c, "Origin"), header(c, "Authorization"),
                                header(c, "x-api-key")};
}

static struct serve_client get_client(const struct serve_server *server, struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct serve_asker asker = get_asker(c);
    return (struct serve_client){info ? serve_address_number(info->client_addr) : 0, serve_key_number(server, &asker)};
}

/* For the log. */
static void log_asker(struct serve_log_line *line, struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *at = info ? info->client_addr : NULL;
    socklen_t size = at && at->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    char text[64];
    bool known = at && getnameinfo(at, size, text, sizeof text, NULL, 0, NI_NUMERICHOST) == 0;
    serve_log_ask(line, known ? text : "?", header(c, "X-Request-Id"));
}

static bool check(struct exchange *x, struct serve_server *server, struct MHD_Connection *c)
{
    struct serve_error *e = &x->error;
    const char *length = header(c, "Content-Length");
    const struct serve_asker asker = get_asker(c);
    x->at_once = is_ambiguous(c);
    if (x->at_once) {
        *e = (struct serve_error){0};
        return serve_refuse(e, 400, NULL, NULL, "Content-Length, Transfer-Encoding or Host is given twice");
    }
    enum serve_right right = x->api && x->api->kind == SERVE_TOOLS ? SERVE_OWN_PAGE
                             : x->api || x->asks || (x->page && !x->page->is_public) ? SERVE_WITH_KEY : SERVE_PUBLIC;
    if (!serve_may_ask(e, server, &asker, right)) return false;
    if (e->status) return false;
    if (x->page || x->asks) return true;
    if (server->draining) return serve_refuse(e, 503, NULL, NULL, "the server is shutting down");
    if (!server->ready) return serve_refuse(e, 503, NULL, NULL, "the model is not loaded yet");
    x->at_once = length && strtoull(length, NULL, 10) > SERVE_BODY_MAX;
    if (x->at_once)
        return serve_refuse(e, 413, NULL, NULL, "the body has more than %d bytes", SERVE_BODY_MAX);
    if (!is_json_type(header(c, "Content-Type")))
        return serve_refuse(e, 415, NULL, NULL, "the body has the type %.64s, not application/json",
                            header(c, "Content-Type"));
    return true;
}

/* ---- answers ---- */

/* A name is whatever a file is called, and a template has any letters; a header has not. */
static void add_warning(struct MHD_Response *response, const char *format, ...) PD_PRINTF(2, 3);

static void add_warning(struct MHD_Response *response, const char *format, ...)
{
    static const char before[] = "299 - \"";
    char text[640];
    va_list args;
    va_start(args, format);
    strcpy(text, before);
    vsnprintf(text + sizeof before - 1, sizeof text - sizeof before - 1, format, args);
    va_end(args);
    for (char *at = text + sizeof before - 1; *at; at++)
        if (*at < 32 || *at > 126 || *at == '"' || *at == '\\') *at = '?';
    strcat(text, "\"");
    MHD_add_response_header(response, "Warning", text);
}

static void add_warnings(struct MHD_Response *response, const struct serve_server *server, const struct serve_job *job)
{
    const struct serve_model *m = job->model;
    if (job->asks.other_model)
        add_warning(response, "answered by %s, the %s model of this server", server->models->id,
                    server->n_models > 1 ? "first" : "only");
    if (job->api->read_messages && !job->asks.raw && m && m->known && m->template_note)
        add_warning(response, "%s", m->template_note);
    const char *loosened = peridot_tools_loosened(job->work.compiled);
    if (*loosened) add_warning(response, "schemas were made looser, of %s", loosened);
    if (*job->asks.ignored) add_warning(response, "ignored: %s", job->asks.ignored);
}

/* Whether the page that asks is the one of --cors. */
static bool is_cors(struct MHD_Connection *c, const struct serve_server *server)
{
    const char *origin = header(c, "Origin"), *cors = server->args->cors;
    return cors && origin && strcmp(origin, cors) == 0;
}

/* What every answer has. */
static void add_headers(struct MHD_Response *response, const char *cors, bool to_cors)
{
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Cache-Control", "no-store");
    if (cors) MHD_add_response_header(response, "Vary", "Origin");
    if (!to_cors) return;
    MHD_add_response_header(response, "Access-Control-Allow-Origin", cors);
    MHD_add_response_header(response, "Access-Control-Allow-Methods", "GET, POST, DELETE");
    MHD_add_response_header(response, "Access-Control-Allow-Headers",
                            "Authorization, Content-Type, X-Api-Key, Anthropic-Version, Anthropic-Beta");
}

/* Sends an answer, and lets go of it. */
static enum MHD_Result respond(struct MHD_Connection *c, struct serve_server *server, struct exchange *x, int status,
                            struct MHD_Response *response)
{
    if (!response) return MHD_NO;
    add_headers(response, server->args->cors, is_cors(c, server));
    if (status == 429 || status == 503) MHD_add_response_header(response, "Retry-After", "1");
    if (status == 401) MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    if (status == 405) MHD_add_response_header(response, "Allow", x->allowed);
    if (status == 200 && x->job) add_warnings(response, server, x->job);
    if (*x->line.id) MHD_add_response_header(response, "X-Request-Id", x->line.id);
    x->line.status = status;
    enum MHD_Result result = MHD_queue_response(c, (unsigned)status, response);
    MHD_destroy_response(response);
    return result;
}

/* An error that needs no memory of ours. */
static enum MHD_Result send_out_of_memory(struct MHD_Connection *c, struct serve_server *server, struct exchange *x)
{
    static char text[] = "{\"error\":{\"message\":\"out of memory for the answer\",\"type\":\"server_error\","
                         "\"param\":null,\"code\":null}}";
    struct MHD_Response *response =
        MHD_create_response_from_buffer(sizeof text - 1, text, MHD_RESPMEM_PERSISTENT);
    if (response) MHD_add_response_header(response, "Content-Type", "application/json");
    return respond(c, server, x, 500, response);
}

static enum MHD_Result send_buffer(struct MHD_Connection *c, struct serve_server *server, struct exchange *x,
                                   int status, struct pd_buffer *b, const char *type)
{
    if (b->failed) {
        pd_buffer_free(b);
        return send_out_of_memory(c, server, x);
    }
    struct MHD_Response *response = MHD_create_response_from_buffer(b->size, b->data, MHD_RESPMEM_MUST_FREE);
    if (!response) pd_buffer_free(b);
    *b = (struct pd_buffer){0};
    if (response) MHD_add_response_header(response, "Content-Type", type);
    return respond(c, server, x, status, response);
}

static enum MHD_Result send_error(struct MHD_Connection *c, struct serve_server *server, struct exchange *x)
{
    struct pd_buffer b = {0};
    x->errors->put(&b, &x->error);
    return send_buffer(c, server, x, x->error.status, &b, "application/json");
}

static ssize_t read_more(void *user, uint64_t at, char *to, size_t size)
{
    struct serve_job *job = user;
    (void)at;
    pthread_mutex_lock(&job->answer.lock);
    ssize_t n = (ssize_t)pd_min(size, job->answer.out.size - job->answer.n_taken);
    if (n) {
        memcpy(to, job->answer.out.data + job->answer.n_taken, (size_t)n);
        job->answer.n_taken += (size_t)n;
        if (job->answer.n_taken == job->answer.out.size) job->answer.out.size = job->answer.n_taken = 0;
    } else if (job->answer.out.failed) {
        n = MHD_CONTENT_READER_END_WITH_ERROR;
    } else if (job->answer.done) {
        n = MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        job->answer.suspended = true;
        MHD_suspend_connection(job->answer.connection);
    }
    pthread_mutex_unlock(&job->answer.lock);
    return n;
}

static void drop_job(void *user) { serve_job_drop(user); }

static enum MHD_Result send_job(struct MHD_Connection *c, struct serve_server *server, struct exchange *x)
{
    struct serve_job *job = x->job;
    bool streams = job->asks.stream && job->answer.status == 200;
    if (!streams) {
        struct pd_buffer body = job->answer.out;   /* complete: nobody else touches it any more */
        job->answer.out = (struct pd_buffer){0};
        return send_buffer(c, server, x, job->answer.status, &body, "application/json");
    }
    serve_job_own(job);
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16384, read_more, job, drop_job);
    if (!response) serve_job_drop(job);
    else MHD_add_response_header(response, "Content-Type", job->api->stream_type);
    return respond(c, server, x, job->answer.status, response);
}

/* ---- requests ---- */

static void set_waiting(struct serve_http *http, struct MHD_Connection *c, bool waits)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    if (info) serve_links_set_waiting(&http->links, info->socket_context, waits);
}

static struct exchange *http_begin(struct serve_http *http, struct MHD_Connection *c, const char *url,
                                   const char *method)
{
    struct exchange *x = calloc(1, sizeof *x);
    if (!x) return NULL;
    x->errors = strncmp(url, "/api/", 5) == 0 ? &serve_errors_ollama
        : header(c, "anthropic-version") ? &serve_errors_anthropic : &serve_errors_openai;
    serve_log_begin(&x->line, method, url);
    log_asker(&x->line, c);
    find_route(x, http->server->args, method, url);
    if (strcmp(method, "OPTIONS") == 0 && http->server->args->cors) x->error = (struct serve_error){.status = 204};
    if (check(x, http->server, c) && x->api) {
        x->job = serve_job_new(http->server, x->api);
        if (!x->job) serve_refuse(&x->error, 500, NULL, NULL, "out of memory");
        else x->job->body.bare = strncmp(url, "/v1/", 4) != 0;
    }
    set_waiting(http, c, false);
    return x;
}

/* What belongs to a request that is refused is passed over, as clients read no answer before they have sent it. */
static enum MHD_Result take_body(struct exchange *x, const char *data, size_t size)
{
    if (!x->error.status && x->job && x->job->body.text.size + size > SERVE_BODY_MAX)
        serve_refuse(&x->error, 413, NULL, NULL, "the body has more than %d bytes", SERVE_BODY_MAX);
    if (!x->error.status && x->job) {
        pd_buffer_add(&x->job->body.text, data, size);
        if (x->job->body.text.failed) serve_refuse(&x->error, 500, NULL, NULL, "out of memory");
        return MHD_YES;
    }
    x->n_discarded += size;
    return x->n_discarded <= SERVE_BODY_MAX ? MHD_YES : MHD_NO;
}

/* The connection sleeps until there is something to say. */
static void wait_for(struct serve_job *job, struct MHD_Connection *c)
{
    pthread_mutex_lock(&job->answer.lock);
    if (!serve_job_is_ready(job)) {
        job->answer.suspended = true;
        MHD_suspend_connection(c);
    }
    pthread_mutex_unlock(&job->answer.lock);
}

static void submit(struct serve_http *http, struct exchange *x, struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    serve_act_as(SERVE_CONNECTION);
    x->submitted = true;
    x->job->answer.connection = c;
    x->job->answer.socket = info ? (int)info->connect_fd : -1;
    x->job->client = get_client(http->server, c);   /* another question to MHD, whose answer is in the same place */
    set_waiting(http, c, true);
    serve_job_own(x->job);
    http->server->n_jobs++;
    const char *id = serve_kind_writes(x->api->kind) ? header(c, "X-Stream-Id") : NULL;
    bool keeps = !id || serve_streams_keep(&x->job->error, x->job, id);
    bool taken = keeps && (x->api->kind == SERVE_TOOLS ? serve_tools_add(http->server->tools, x->job)
                                                       : serve_reader_add(http->server->reader, x->job));
    if (!keeps) serve_job_to(x->job, SERVE_DONE);
    else if (!taken) {
        serve_refuse(&x->job->error, 429, "rate_limit_exceeded", NULL,
                     "%u requests are waiting already: try again later", http->server->args->n_queue);
        serve_job_to(x->job, SERVE_DONE);
    }
    wait_for(x->job, c);
}

/* Made with the first request for it; http.c has one thread. */
static struct MHD_Response *find_fixed(struct serve_http *http, const struct page *page, bool to_cors)
{
    struct MHD_Response **found = &http->fixed[page->fixed - 1][to_cors];
    struct pd_buffer b = {0};
    char policy[SERVE_POLICY_SIZE];
    if (*found) return *found;
    page->get(&b, http->server, page->path);
    if (!b.failed) *found = MHD_create_response_from_buffer(b.size, b.data, MHD_RESPMEM_MUST_FREE);
    if (!*found) {
        pd_buffer_free(&b);
        return NULL;
    }
    add_headers(*found, http->server->args->cors, to_cors);
    MHD_add_response_header(*found, "Content-Type", page->type);
    if (strncmp(page->type, "text/html", 9) == 0)
        MHD_add_response_header(*found, "Content-Security-Policy", serve_page_policy(policy));
    return *found;
}

static const char *argument(struct MHD_Connection *c, const char *name)
{
    return MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, name);
}

static enum MHD_Result answer_ask(struct serve_http *http, struct exchange *x, struct MHD_Connection *c,
                                  const char *url)
{
    const struct serve_ask ask = {.method = x->line.method, .path = url, .key = get_client(http->server, c).key,
        .limit = argument(c, "limit"), .order = argument(c, "order"), .after = argument(c, "after"),
        .stream = argument(c, "stream")};
    struct pd_buffer b = {0};
    int status = serve_ask_stored(&b, http->server, &ask);
    return send_buffer(c, http->server, x, status, &b, "application/json");
}

static ssize_t read_stream(void *user, uint64_t at, char *to, size_t size)
{
    ptrdiff_t n = serve_stream_read(user, to, size);
    (void)at;
    return n == -1 ? MHD_CONTENT_READER_END_OF_STREAM : n < 0 ? MHD_CONTENT_READER_END_WITH_ERROR : (ssize_t)n;
}

static void close_stream(void *user) { serve_stream_close(user); }

/* The answer to another request, from its first byte; or, of DELETE, that it ends. */
static enum MHD_Result answer_stream(struct serve_http *http, struct exchange *x, struct MHD_Connection *c,
                                     const char *url)
{
    struct serve_streams *streams = &http->server->streams;
    const char *id = strstr(url, "/streams/") + strlen("/streams/");
    const uint32_t key = get_client(http->server, c).key;
    const bool stops = strcmp(x->line.method, "DELETE") == 0;
    struct serve_stream_reader *reader = stops ? NULL : serve_stream_open(streams, id, key, c);
    struct pd_buffer b = {0};
    if (reader) {
        struct MHD_Response *response =
            MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16384, read_stream, reader, close_stream);
        if (!response) serve_stream_close(reader);
        else MHD_add_response_header(response, "Content-Type", serve_stream_type(reader));
        set_waiting(http, c, true);
        return respond(c, http->server, x, 200, response);
    }
    if (!stops || !serve_streams_stop(streams, id, key)) {
        serve_refuse(&x->error, 404, NULL, NULL, "there is no stream %.*s, or no longer", SERVE_STREAM_ID_MAX, id);
        return send_error(c, http->server, x);
    }
    pd_buffer_print(&b, "{\"stopped\": true}");
    return send_buffer(c, http->server, x, 200, &b, "application/json");
}

static enum MHD_Result http_get(struct serve_http *http, struct exchange *x, struct MHD_Connection *c, const char *url)
{
    struct serve_server *server = http->server;
    struct pd_buffer b = {0};
    if (x->page->fixed) {
        struct MHD_Response *fixed = find_fixed(http, x->page, is_cors(c, server));
        if (!fixed) return send_out_of_memory(c, server, x);
        x->line.status = 200;
        return MHD_queue_response(c, 200, fixed);
    }
    int status = x->page->get(&b, server, url);
    return send_buffer(c, server, x, status, &b, x->page->type);
}

static enum MHD_Result handle(void *user, struct MHD_Connection *c, const char *url, const char *method,
                              const char *version, const char *data, size_t *size, void **context)
{
    struct serve_http *http = user;
    struct exchange *x = *context;
    (void)version;
    if (!x) {
        x = *context = http_begin(http, c, url, method);
        if (!x) return MHD_NO;
        return x->at_once ? send_error(c, http->server, x) : MHD_YES;   /* the connection ends with it */
    }
    if (*size) {
        size_t n = *size;
        *size = 0;
        return take_body(x, data, n);
    }
    if (x->error.status) return send_error(c, http->server, x);
    if (x->asks && is_at(STREAMS "*", url)) return answer_stream(http, x, c, url);
    if (x->asks) return answer_ask(http, x, c, url);
    if (!x->job) return http_get(http, x, c, url);
    if (!x->submitted) submit(http, x, c);
    pthread_mutex_lock(&x->job->answer.lock);
    bool ready = !x->job->answer.suspended && serve_job_is_ready(x->job);
    pthread_mutex_unlock(&x->job->answer.lock);
    return ready ? send_job(c, http->server, x) : MHD_YES;
}

static void completed(void *user, struct MHD_Connection *c, void **context, enum MHD_RequestTerminationCode code)
{
    struct serve_http *http = user;
    struct exchange *x = *context;
    if (!x) return;
    *context = NULL;
    set_waiting(http, c, false);
    if (x->job) {
        pthread_mutex_lock(&x->job->answer.lock);
        x->job->answer.connection = NULL;
        x->job->answer.suspended = false;
        x->job->answer.socket = -1;
        if (x->job->stream) x->job->answer.out.size = x->job->answer.n_taken = 0;   /* nobody reads it any more */
        pthread_mutex_unlock(&x->job->answer.lock);
        if (x->job->stream) serve_streams_leave(x->job);
        else if (code != MHD_REQUEST_TERMINATED_COMPLETED_OK) x->job->closed = true;
    }
    serve_log_refusal(&x->line, x->error.status ? &x->error : x->job ? &x->job->error : NULL);
    serve_log_end(&x->line, http->server, x->job, code == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    if (x->job) serve_job_drop(x->job);
    free(x);
}

/* ---- connections ---- */

static void connected(void *user, struct MHD_Connection *c, void **context, enum MHD_ConnectionNotificationCode code)
{
    struct serve_http *http = user;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) serve_links_remove(&http->links, *context);
    else if (info) *context = serve_links_add(&http->links, (int)info->connect_fd);
}

void serve_http_tend(struct serve_http *http) { serve_links_tend(&http->links, http->server->args->timeout_s); }

static peridot_status find_address(struct sockaddr_storage *out, const struct serve_args *args)
{
    struct addrinfo *found;
    char port[8];
    const struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    const char *host = args->host;
    char bare[64];
    if (host[0] == '[' && strlen(host) < sizeof bare) {   /* [::1] */
        snprintf(bare, sizeof bare, "%.*s", (int)strcspn(host + 1, "]"), host + 1);
        host = bare;
    }
    snprintf(port, sizeof port, "%u", args->port);
    int error = getaddrinfo(host, port, &hints, &found);
    if (error) return pd_fail(PERIDOT_ERROR_ARGUMENT, "--host %s: %s", args->host, gai_strerror(error));
    memcpy(out, found->ai_addr, pd_min(found->ai_addrlen, sizeof *out));
    freeaddrinfo(found);
    return PERIDOT_OK;
}

/* Of the socket that was handed over: who may reach it follows from this, and not from --host. */
static peridot_status find_inherited(struct serve_http *http)
{
    struct sockaddr *a = (struct sockaddr *)&http->address;
    socklen_t size = sizeof http->address;
    char host[48];
    if (getsockname(http->socket, a, &size) != 0 || (a->sa_family != AF_INET && a->sa_family != AF_INET6)
        || getnameinfo(a, size, host, sizeof host, http->port, sizeof http->port, NI_NUMERICHOST | NI_NUMERICSERV))
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "LISTEN_FDS: descriptor 3 is no socket of TCP");
    snprintf(http->host, sizeof http->host, a->sa_family == AF_INET6 ? "[%s]" : "%s", host);
    return PERIDOT_OK;
}

static void log_nothing(void *user, const char *format, va_list args) { (void)user, (void)format, (void)args; }

/* "/health%00x" is not /health. */
static size_t unescape(void *user, struct MHD_Connection *c, char *text)
{
    size_t n = MHD_http_unescape(text);
    (void)user, (void)c;
    for (size_t i = 0; i < n; i++)
        if (!text[i]) text[i] = '?';
    return n;
}

static peridot_status check_access(const struct serve_http *http)
{
    const struct serve_args *args = http->server->args;
    bool is_local = serve_address_is_loopback((const struct sockaddr *)&http->address);
    bool has_keys = http->server->n_keys;
    if (args->tools.n && !has_keys && (!is_local || args->insecure))
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "--tools with --%s needs --api-key: without a key others could call "
                       "the tools", is_local ? "insecure" : "host");
    if (!is_local && !has_keys && !args->insecure)
        return pd_fail(PERIDOT_ERROR_ARGUMENT,
                       "--host %s can be reached from other machines: add --api-key, or --insecure to do without",
                       serve_http_host(http));
    return PERIDOT_OK;
}

static peridot_status start_daemon(struct serve_http *http)
{
    const struct serve_args *args = http->server->args;
    struct MHD_OptionItem place[] = {{MHD_OPTION_SOCK_ADDR, 0, &http->address}, {MHD_OPTION_END, 0, NULL}};
    if (http->socket >= 0) place[0] = (struct MHD_OptionItem){MHD_OPTION_LISTEN_SOCKET, http->socket, NULL};
    /* Otherwise select: Windows' poll calls it an error where a client has read its answer and gone. */
    unsigned flags = (MHD_is_feature_supported(MHD_FEATURE_EPOLL) == MHD_YES ? MHD_USE_EPOLL_INTERNAL_THREAD
                                                                             : MHD_USE_INTERNAL_POLLING_THREAD)
        | MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG
        | (http->address.ss_family == AF_INET6 ? MHD_USE_IPv6 : 0);
    /* MHD's own choice is SO_REUSEADDR: connections that ended lately keep the port from nobody, another server does.
     * Its option for reuse would be SO_REUSEPORT, by which two servers share a port in silence. */
    http->daemon = MHD_start_daemon(flags, (uint16_t)args->port, NULL, NULL, handle, http,
        MHD_OPTION_EXTERNAL_LOGGER, log_nothing, NULL, MHD_OPTION_ARRAY, place,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)SERVE_MAX_CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)32768,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)args->timeout_s,
        MHD_OPTION_NOTIFY_COMPLETED, completed, http, MHD_OPTION_NOTIFY_CONNECTION, connected, http,
        MHD_OPTION_CLIENT_DISCIPLINE_LVL, 1, MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL, MHD_OPTION_END);
    if (!http->daemon)
        return pd_fail(PERIDOT_ERROR_IO, "cannot listen on %s:%u: is another server running there?",
                       serve_http_host(http), args->port);
    return PERIDOT_OK;
}

peridot_status serve_http_open(struct serve_http **out, struct serve_server *server)
{
    struct serve_http *http = *out = calloc(1, sizeof *http);
    if (!http) return pd_fail_alloc(sizeof *http, "server");
    http->server = server;
    serve_links_init(&http->links);
    PD_TRY(cmd_socket_inherited(&http->socket));
    PD_TRY(http->socket < 0 ? find_address(&http->address, server->args) : find_inherited(http));
    PD_TRY(check_access(http));
    return http->socket < 0 ? start_daemon(http) : PERIDOT_OK;
}

peridot_status serve_http_ready(struct serve_http *http) { return http->daemon ? PERIDOT_OK : start_daemon(http); }

const char *serve_http_host(const struct serve_http *http)
{
    return http->host[0] ? http->host : http->server->args->host;
}

unsigned serve_http_port(const struct serve_http *http)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_BIND_PORT);
    if (http->socket >= 0) return (unsigned)atoi(http->port);
    return info ? info->port : http->server->args->port;
}

void serve_http_close(struct serve_http *http)
{
    if (!http) return;
    if (http->daemon) MHD_stop_daemon(http->daemon);
    for (size_t i = 0; i < MAX_FIXED; i++)
        for (size_t k = 0; k < 2; k++)
            if (http->fixed[i][k]) MHD_destroy_response(http->fixed[i][k]);
    serve_links_destroy(&http->links);
    free(http);
}

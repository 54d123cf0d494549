#define _POSIX_C_SOURCE 200809L
#include "../base/base.h"
#include "toolbox_.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SESSION_SIZE = 1024, CONNECT_SECONDS = 30, STEP_MS = 100, LINGER_STEP_MS = 10, NOTIFY_MS = 2000 };
#define LINGER_SECONDS 0.05

struct http_link {
    struct link link;
    const struct toolbox_entry *entry;
    CURLM *multi;                  /* holds connections from one request to the next */
    char *url;
    const char *version;           /* of the protocol, as messages had it */
    char session[SESSION_SIZE];    /* "": the server has given none */
};

/* ---- a transfer ---- */

struct transfer {
    CURL *curl;
    struct link_receiver *receiver;   /* NULL: the answer does not matter */
    bool begun, streams;
    struct events events;
    struct pd_buffer body;
    char why[CURL_ERROR_SIZE];
    peridot_status status;            /* of what was taken */
};

static peridot_status take_event(void *user, const char *data, size_t size)
{
    struct link_receiver *r = user;
    return r->done ? PERIDOT_OK : r->take(r, data, size);
}

static peridot_status take_body(struct transfer *t, const char *data, size_t size)
{
    if (size > LINK_MAX_MESSAGE - t->body.size)
        return pd_fail(PERIDOT_ERROR_IO, "sent a message of more than %d bytes", LINK_MAX_MESSAGE);
    return pd_buffer_add(&t->body, data, size);
}

static long status_of(CURL *curl)
{
    long code = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
    return code;
}

static bool is_stream(CURL *curl)
{
    static const char name[] = "text/event-stream";
    const char *type = NULL;
    curl_easy_getinfo(curl, CURLINFO_CONTENT_TYPE, &type);
    return type && strncasecmp(type, name, sizeof name - 1) == 0;
}

static size_t link_http_on_body(char *data, size_t one, size_t size, void *user)
{
    struct transfer *t = user;
    (void)one;
    if (!t->receiver) return size;
    if (!t->begun) t->streams = is_stream(t->curl);
    t->begun = true;
    t->status = t->streams ? events_feed(&t->events, data, size, LINK_MAX_MESSAGE, take_event, t->receiver)
                           : take_body(t, data, size);
    return t->status == PERIDOT_OK ? size : CURL_WRITEFUNC_ERROR;
}

static bool add_header(struct curl_slist **list, const char *name, const char *value)
{
    char line[SESSION_SIZE + 64];
    if (!value || !*value) return true;
    snprintf(line, sizeof line, "%s: %s", name, value);
    struct curl_slist *longer = curl_slist_append(*list, line);
    if (longer) *list = longer;
    return longer != NULL;
}

static bool add_headers(struct curl_slist **list, const struct toolbox_texts *texts)
{
    for (size_t i = 0; texts && i < texts->n; i++) {
        struct curl_slist *longer = curl_slist_append(*list, texts->at[i]);
        if (!longer) return false;
        *list = longer;
    }
    return true;
}

/* Those of the entry come last: what a person has written counts. *list is freed by the caller, also on failure. */
static bool make_headers(struct curl_slist **list, const struct http_link *l, const struct link_message *m)
{
    *list = curl_slist_append(NULL, "Expect:");   /* libcurl's own is not to be sent */
    return *list && (!m->text || add_header(list, "Content-Type", "application/json")) &&
           add_header(list, "Accept", "application/json, text/event-stream") &&
           add_header(list, "MCP-Protocol-Version", m->version) && add_header(list, "Mcp-Session-Id", l->session) &&
           add_headers(list, m->headers) && add_headers(list, &l->entry->headers);
}

static void set_options(struct transfer *t, const struct http_link *l, const struct link_message *m,
                        struct curl_slist *headers)
{
    CURL *c = t->curl;
    curl_easy_setopt(c, CURLOPT_URL, l->url);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(c, CURLOPT_USERAGENT, "peridot/" PERIDOT_VERSION);
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, t->why);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, link_http_on_body);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, t);
    if (m->text) {
        curl_easy_setopt(c, CURLOPT_POSTFIELDS, m->text);
        curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)m->size);
    } else {
        curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, "DELETE");
    }
}

static void notify(struct link *link, const struct link_message *m);

/* What the server asks meanwhile is answered by requests of their own. */
static void send_replies(struct http_link *l, struct link_receiver *r, double deadline)
{
    size_t size;
    for (size_t i = 0; i < r->replies.size && pd_now() < deadline && !toolbox_is_stopped(r->stop); i += size + 1) {
        size = strcspn(r->replies.data + i, "\n");
        notify(&l->link, &(struct link_message){.text = r->replies.data + i, .size = size, .version = l->version});
    }
    r->replies.size = 0;
}

/* Until the transfer has ended, or the receiver has what it waits for: a stream that ends with that leaves its
 * connection to the next request. */
static peridot_status link_http_run(CURLcode *result, struct http_link *l, struct transfer *t, double deadline)
{
    struct link_receiver *r = t->receiver;
    double done_s = 0;
    int n_running = 0, n_left;
    if (curl_multi_add_handle(l->multi, t->curl) != CURLM_OK) return pd_fail_alloc(0, "a request");
    peridot_status status = PERIDOT_OK;
    do {
        if (curl_multi_perform(l->multi, &n_running) != CURLM_OK) status = pd_fail_alloc(0, "a request");
        if (r->replies.size) send_replies(l, r, deadline);
        if (r->done && !done_s) done_s = pd_now();
        if (!n_running || status != PERIDOT_OK || (done_s && pd_now() - done_s > LINGER_SECONDS)) break;
        if (r->done) curl_multi_poll(l->multi, NULL, 0, LINGER_STEP_MS, NULL);
        else if (toolbox_is_stopped(r->stop)) status = pd_fail(PERIDOT_CANCELLED, "stopped");
        else if (pd_now() >= deadline) status = pd_fail(PERIDOT_ERROR_IO, "does not answer in time");
        else curl_multi_poll(l->multi, NULL, 0, STEP_MS, NULL);
    } while (status == PERIDOT_OK);
    for (CURLMsg *message; (message = curl_multi_info_read(l->multi, &n_left));)
        if (message->msg == CURLMSG_DONE && message->easy_handle == t->curl) *result = message->data.result;
    curl_multi_remove_handle(l->multi, t->curl);
    return status;
}

/* *headers is freed after the transfer. */
static peridot_status prepare(struct transfer *t, struct curl_slist **headers, const struct http_link *l,
                              const struct link_message *m)
{
    *headers = NULL;
    t->curl = cmd_curl_open();
    if (!t->curl || !make_headers(headers, l, m)) return pd_fail_alloc(0, "a request");
    set_options(t, l, m, *headers);
    return PERIDOT_OK;
}

static peridot_status transfer(CURLcode *result, struct http_link *l, struct transfer *t, const struct link_message *m,
                               double deadline)
{
    struct curl_slist *headers;
    *result = CURLE_OUT_OF_MEMORY;
    peridot_status status = prepare(t, &headers, l, m);
    if (status == PERIDOT_OK) status = link_http_run(result, l, t, deadline);
    if (t->curl) curl_easy_setopt(t->curl, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);
    return status;
}

static void end_transfer(struct transfer *t)
{
    curl_easy_cleanup(t->curl);
    events_free(&t->events);
    pd_buffer_free(&t->body);
}

/* ---- answers ---- */

/* It goes back to the server in a header: visible ASCII only. */
static void keep_session(struct http_link *l, const struct transfer *t)
{
    struct curl_header *header;
    if (curl_easy_header(t->curl, "Mcp-Session-Id", 0, CURLH_HEADER, -1, &header) != CURLHE_OK) return;
    for (const char *c = header->value; *c; c++)
        if (*c < 0x21 || *c > 0x7e) return;
    if (strlen(header->value) < SESSION_SIZE) strcpy(l->session, header->value);
}

/* Whether the server sends the request to another path of its own, where it is then sent; not elsewhere, as headers may
 * hold keys. */
static peridot_status link_http_follow(bool *follows, struct http_link *l, const struct transfer *t)
{
    const char *url = NULL, *origin_end = strchr(strstr(l->url, "://") + 3, '/');
    size_t size = origin_end ? (size_t)(origin_end - l->url) : strlen(l->url);
    long code = status_of(t->curl);
    *follows = false;
    curl_easy_getinfo(t->curl, CURLINFO_REDIRECT_URL, &url);
    if (!url || (code != 307 && code != 308)) return PERIDOT_OK;
    if (strncmp(url, l->url, size) != 0 || url[size] != '/')
        return pd_fail(PERIDOT_ERROR_IO, "is to be found at %s", cmd_shown(url));
    char *copy = strdup(url);
    if (!copy) return pd_fail_alloc(strlen(url), "URL");
    free(l->url);
    l->url = copy;
    *follows = true;
    return PERIDOT_OK;
}

static peridot_status explain_status(long code)
{
    bool may_lack_key = code == 401 || code == 403;
    const char *hint = may_lack_key ? ": the \"headers\" of a file can hold what it wants to be sent" : "";
    return pd_fail(PERIDOT_ERROR_IO, "HTTP status %ld%s", code, hint);
}

/* The transfer has ended. An error of HTTP may bring one of JSON-RPC, which then counts. */
static peridot_status take_answer(struct http_link *l, struct transfer *t, CURLcode result)
{
    struct link_receiver *r = t->receiver;
    long code = l->link.http_status = status_of(t->curl);
    PD_TRY(t->status);
    if (r->done) return PERIDOT_OK;
    if (result == CURLE_OUT_OF_MEMORY) return pd_fail_alloc(0, "a request");
    if (result != CURLE_OK)
        return pd_fail(PERIDOT_ERROR_IO, "%s", cmd_shown(t->why[0] ? t->why : curl_easy_strerror(result)));
    if (code == 404 && l->session[0]) {
        l->link.is_lost = true;
        return pd_fail(PERIDOT_ERROR_IO, "has ended the session");
    }
    if (t->body.size) PD_TRY(r->take(r, t->body.data, t->body.size));
    if (r->done) return PERIDOT_OK;
    if (code >= 300) return explain_status(code);
    return pd_fail(PERIDOT_ERROR_IO, "does not answer the request with a message of MCP");
}

static peridot_status request(struct link *link, const struct link_message *m, struct link_receiver *r, double deadline)
{
    struct http_link *l = (struct http_link *)link;
    bool follows = false;
    if (m->version) l->version = m->version;
    for (int tries = 0;; tries++) {
        struct transfer t = {.receiver = r};
        CURLcode result;
        l->link.http_status = 0;
        peridot_status status = transfer(&result, l, &t, m, deadline);
        if (status == PERIDOT_OK && !tries) status = link_http_follow(&follows, l, &t);
        if (status == PERIDOT_OK && !follows) status = take_answer(l, &t, result);
        if (status == PERIDOT_OK && !follows) keep_session(l, &t);
        end_transfer(&t);
        if (!follows || status != PERIDOT_OK) return status;
        follows = false;
    }
}

/* Not by way of the others: a request may be under way. */
static void notify(struct link *link, const struct link_message *m)
{
    struct transfer t = {0};
    struct curl_slist *headers;
    if (prepare(&t, &headers, (struct http_link *)link, m) == PERIDOT_OK) {
        curl_easy_setopt(t.curl, CURLOPT_TIMEOUT_MS, (long)NOTIFY_MS);
        curl_easy_perform(t.curl);
    }
    end_transfer(&t);
    curl_slist_free_all(headers);
}

/* ---- the link ---- */

static void close_link(struct link *link)
{
    struct http_link *l = (struct http_link *)link;
    if (l->session[0] && !l->link.is_lost) notify(link, &(struct link_message){.version = l->version});
    if (l->multi) curl_multi_cleanup(l->multi);
    free(l->url);
    free(l);
}

static peridot_status link_http_open_link(struct link **out, const struct toolbox_entry *e)
{
    struct http_link *l = calloc(1, sizeof *l);
    *out = NULL;
    if (!l) return pd_fail_alloc(sizeof *l, "server");
    l->link = (struct link){.kind = &link_http, .sends_headers = true};
    l->entry = e;
    l->url = strdup(e->url);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) l->multi = curl_multi_init();
    if (l->url && l->multi) {
        *out = &l->link;
        return PERIDOT_OK;
    }
    close_link(&l->link);
    return pd_fail_alloc(0, "server");
}

/* Outside of requests nothing comes, as no stream is kept open for that. */
static peridot_status poll_link(struct link *link, struct link_receiver *r)
{
    (void)link, (void)r;
    return PERIDOT_OK;
}

const struct link_kind link_http = {link_http_open_link, request, notify, poll_link, close_link};

/* ---- events ---- */

/* Fields but data (event, id, retry) and comments say nothing of the message. */
static peridot_status end_line(struct events *e, events_take take, void *user)
{
    static const char field[] = "data:";
    enum { FIELD = sizeof field - 1 };
    const struct pd_buffer *line = &e->line;
    peridot_status status = PERIDOT_OK;
    if (line->size == 0 && e->data.size) {
        status = take(user, e->data.data, e->data.size - 1);   /* less the last newline */
        e->data.size = 0;
    } else if (line->size >= FIELD && memcmp(line->data, field, FIELD) == 0) {
        size_t begin = FIELD + (line->data[FIELD] == ' ');
        status = pd_buffer_add(&e->data, line->data + begin, line->size - begin);
        if (status == PERIDOT_OK) status = pd_buffer_add(&e->data, "\n", 1);
    }
    e->line.size = 0;
    return status;
}

peridot_status events_feed(struct events *e, const char *text, size_t size, size_t most, events_take take, void *user)
{
    for (size_t i = 0; i < size;) {
        if (e->after_return && text[i] == '\n') i++;
        e->after_return = false;
        size_t begin = i;
        while (i < size && text[i] != '\n' && text[i] != '\r') i++;
        if (i - begin + e->line.size + e->data.size > most)
            return pd_fail(PERIDOT_ERROR_IO, "sent an event of more than %zu bytes", most);
        PD_TRY(pd_buffer_add(&e->line, text + begin, i - begin));
        if (i == size) break;
        e->after_return = text[i++] == '\r';
        PD_TRY(end_line(e, take, user));
    }
    return PERIDOT_OK;
}

void events_free(struct events *e)
{
    pd_buffer_free(&e->line);
    pd_buffer_free(&e->data);
}

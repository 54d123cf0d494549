#define _POSIX_C_SOURCE 200809L
#include "../base/base.h"
#include "toolbox_.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SESSION_SIZE = 1024, CONNECT_SECONDS = 30, NOTIFY_SECONDS = 2 };
#define LINGER_SECONDS 0.05

struct http_link {
    struct link link;
    const struct toolbox_entry *entry;
    struct cmd_http *http;
    char *url;
    const char *version;           /* of the protocol, as messages had it */
    char session[SESSION_SIZE];    /* "": the server has given none */
};

/* ---- a transfer ---- */

struct transfer {
    struct http_link *link;
    struct link_receiver *receiver;
    double deadline;
    struct events events;
};

static peridot_status take_event(void *user, const char *data, size_t size)
{
    struct link_receiver *r = user;
    return r->done ? PERIDOT_OK : r->take(r, data, size);
}

static peridot_status link_http_on_body(void *user, struct cmd_http_answer *a, const char *data, size_t size)
{
    static const char name[] = "text/event-stream";
    struct transfer *t = user;
    if (strncasecmp(cmd_http_header(a, "Content-Type"), name, sizeof name - 1) != 0)
        return cmd_http_keep(a, data, size);
    return events_feed(&t->events, data, size, LINK_MAX_MESSAGE, take_event, t->receiver);
}

/* Those of the entry come last: what a person has written counts. */
static peridot_status make_headers(struct pd_buffer *out, const struct http_link *l, const struct link_message *m)
{
    const struct toolbox_texts *more[] = {m->headers, &l->entry->headers};
    if (m->text) pd_buffer_print(out, "Content-Type: application/json\n");
    pd_buffer_print(out, "Accept: application/json, text/event-stream\n");
    if (m->version && *m->version) pd_buffer_print(out, "MCP-Protocol-Version: %s\n", m->version);
    if (l->session[0]) pd_buffer_print(out, "Mcp-Session-Id: %s\n", l->session);
    for (size_t i = 0; i < PD_COUNT(more); i++)
        for (size_t k = 0; more[i] && k < more[i]->n; k++) pd_buffer_print(out, "%s\n", more[i]->at[k]);
    return out->failed ? pd_fail_alloc(0, "a request") : PERIDOT_OK;
}

/* What is the same of all requests; the headers are freed by the caller, also on failure. */
static peridot_status link_http_prepare(struct cmd_http_request *out, struct pd_buffer *headers,
                                        const struct http_link *l, const struct link_message *m)
{
    *headers = (struct pd_buffer){0};
    PD_TRY(make_headers(headers, l, m));
    *out = (struct cmd_http_request){.url = l->url, .headers = headers->data, .text = m->text, .text_size = m->size,
                                     .method = m->text ? NULL : "DELETE", .connect_s = CONNECT_SECONDS,
                                     .most = LINK_MAX_MESSAGE, .reads_errors = true};
    return PERIDOT_OK;
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

/* Once the receiver has what it waits for, a stream that ends with that leaves its connection to the next request. */
static peridot_status link_http_look(void *user, struct cmd_http_answer *a)
{
    struct transfer *t = user;
    struct link_receiver *r = t->receiver;
    if (r->replies.size) send_replies(t->link, r, t->deadline);
    if (r->done && !a->end_s) a->end_s = pd_now() + LINGER_SECONDS;
    if (r->done) return PERIDOT_OK;
    if (toolbox_is_stopped(r->stop)) return pd_fail(PERIDOT_CANCELLED, "stopped");
    return pd_now() < t->deadline ? PERIDOT_OK : pd_fail(PERIDOT_ERROR_IO, "does not answer in time");
}

static peridot_status link_http_ask(struct cmd_http_answer *out, struct transfer *t, const struct link_message *m)
{
    struct cmd_http_request ask;
    struct pd_buffer headers;
    *out = (struct cmd_http_answer){0};
    peridot_status status = link_http_prepare(&ask, &headers, t->link, m);
    ask.user = t, ask.take = link_http_on_body, ask.look = link_http_look;
    if (status == PERIDOT_OK) status = cmd_http_ask(out, t->link->http, &ask);
    if (out->end == CMD_HTTP_TOO_LARGE)
        status = pd_fail(PERIDOT_ERROR_IO, "sent a message of more than %d bytes", LINK_MAX_MESSAGE);
    if (out->end > CMD_HTTP_TOO_LARGE && t->receiver->done) status = PERIDOT_OK;   /* what broke then is of no matter */
    pd_buffer_free(&headers);
    events_free(&t->events);
    return status;
}

/* ---- answers ---- */

/* It goes back to the server in a header: visible ASCII only. */
static void keep_session(struct http_link *l, const struct cmd_http_answer *a)
{
    const char *value = cmd_http_header(a, "Mcp-Session-Id");
    if (!*value || strlen(value) >= SESSION_SIZE) return;
    for (const char *c = value; *c; c++)
        if (*c < 0x21 || *c > 0x7e) return;
    strcpy(l->session, value);
}

/* Whether the server sends the request to another path of its own, where it is then sent; not elsewhere, as headers may
 * hold keys. */
static peridot_status link_http_follow(bool *follows, struct http_link *l, const struct cmd_http_answer *a)
{
    const char *url = cmd_http_target(a), *origin_end = strchr(strstr(l->url, "://") + 3, '/');
    size_t size = origin_end ? (size_t)(origin_end - l->url) : strlen(l->url);
    if (!url || (a->code != 307 && a->code != 308)) return PERIDOT_OK;
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
static peridot_status take_answer(struct http_link *l, struct link_receiver *r, const struct cmd_http_answer *a)
{
    if (r->done) return PERIDOT_OK;
    if (a->code == 404 && l->session[0]) {
        l->link.is_lost = true;
        return pd_fail(PERIDOT_ERROR_IO, "has ended the session");
    }
    if (a->body.size) PD_TRY(r->take(r, a->body.data, a->body.size));
    if (r->done) return PERIDOT_OK;
    if (a->code >= 300) return explain_status(a->code);
    return pd_fail(PERIDOT_ERROR_IO, "does not answer the request with a message of MCP");
}

static peridot_status request(struct link *link, const struct link_message *m, struct link_receiver *r, double deadline)
{
    struct http_link *l = (struct http_link *)link;
    if (m->version) l->version = m->version;
    for (bool follows = false, again;; follows = true) {
        struct transfer t = {.link = l, .receiver = r, .deadline = deadline};
        struct cmd_http_answer a;
        again = false;
        peridot_status status = link_http_ask(&a, &t, m);
        l->link.http_status = a.code;
        if (status == PERIDOT_OK && !follows) status = link_http_follow(&again, l, &a);
        if (status == PERIDOT_OK && !again) status = take_answer(l, r, &a);
        if (status == PERIDOT_OK && !again) keep_session(l, &a);
        cmd_http_free(&a);
        if (!again || status != PERIDOT_OK) return status;
    }
}

static peridot_status drop_body(void *user, struct cmd_http_answer *a, const char *data, size_t size)
{
    (void)user, (void)a, (void)data, (void)size;
    return PERIDOT_OK;
}

/* Not by way of the others: a request may be under way. */
static void notify(struct link *link, const struct link_message *m)
{
    struct cmd_http *http = cmd_http_open();
    struct cmd_http_answer a = {0};
    struct cmd_http_request ask;
    struct pd_buffer headers;
    bool good = link_http_prepare(&ask, &headers, (struct http_link *)link, m) == PERIDOT_OK && http;
    ask.whole_s = NOTIFY_SECONDS, ask.take = drop_body;
    if (good) cmd_http_ask(&a, http, &ask);
    cmd_http_free(&a);
    cmd_http_close(http);
    pd_buffer_free(&headers);
}

/* ---- the link ---- */

static void close_link(struct link *link)
{
    struct http_link *l = (struct http_link *)link;
    if (l->session[0] && !l->link.is_lost) notify(link, &(struct link_message){.version = l->version});
    cmd_http_close(l->http);
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
    l->http = cmd_http_open();
    if (l->url && l->http) {
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

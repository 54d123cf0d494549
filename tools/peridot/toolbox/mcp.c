/* A client of the Model Context Protocol, as far as tools go (modelcontextprotocol.io/specification): a server is asked
 * for its tools, and to carry out calls. Revisions to 2025-11-25 begin with a handshake, 2026-07-28 says all in each
 * request; a server that knows the former is spoken to in that. */
#define _POSIX_C_SOURCE 200809L
#include "toolbox_.h"
#include "../console/console.h"
#include "../base/base.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PAGES = 100, MAX_ID = 256, MAX_REPLIES = 4096 };
#define START_SECONDS 60.0   /* programs such as npx fetch the server first */
#define LIST_SECONDS 60.0    /* for all pages; they have LINK_MAX_MESSAGE bytes at most */
#define NAMED_SECONDS 1.0

/* With a handshake, the newest first; and without one. */
static const char *const versions[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};
static const char stateless[] = "2026-07-28";
static const char unknown_version[] = "speaks a version of the protocol that is not known";

struct mcp {
    struct link_receiver receiver;   /* first: it is cast back */
    const struct toolbox_entry *entry;
    struct link *link;               /* NULL: not connected */
    const char *version;             /* NULL: not agreed yet */
    bool has_tools, has_changed;
    bool may_change;                 /* it says so when its tools change, where somebody listens */
    bool was_listed;                 /* once */
    double waits_s;                  /* since when its tools are waited for; 0: it has been said that they are */
    uint64_t last_id;
    yyjson_doc *answer;              /* to the request of last_id */
    yyjson_val *message;             /* that it is; answer may be a list of them */
    size_t answer_size;              /* of its text */
};

static bool is_stateless(const struct mcp *m) { return m->version == stateless; }

static peridot_status mcp_fail(const struct mcp *m, peridot_status status, const char *sentence)
{
    if (status == PERIDOT_CANCELLED || status == PERIDOT_ERROR_MEMORY) return status;
    return pd_fail(status, "server %s: %s", cmd_shown(m->entry->name), sentence);
}

/* ---- messages from the server ---- */

static yyjson_val *get(yyjson_val *object, const char *key) { return yyjson_obj_get(object, key); }

/* Of its requests only ping is served: no other was said to be. */
static peridot_status answer_request(struct mcp *m, yyjson_val *id, const char *method)
{
    char *text = yyjson_val_write(id, 0, NULL);
    if (!text) return pd_fail_alloc(0, "message");
    const char *rest = strcmp(method, "ping") == 0 ? "\"result\":{}"
                       : "\"error\":{\"code\":-32601,\"message\":\"not supported by this client\"}";
    struct pd_buffer *to = &m->receiver.replies;
    peridot_status status = strlen(text) <= MAX_ID && to->size < MAX_REPLIES
        ? pd_buffer_print(to, "{\"jsonrpc\":\"2.0\",\"id\":%s,%s}\n", text, rest) : PERIDOT_OK;
    free(text);
    return status;
}

/* An error without an id is of a request that could not be read. */
static bool is_answer(const struct mcp *m, yyjson_val *message)
{
    yyjson_val *id = get(message, "id");
    bool has_error = get(message, "error") != NULL;
    if (!id || yyjson_is_null(id)) return has_error;
    return yyjson_is_uint(id) && yyjson_get_uint(id) == m->last_id && (has_error || get(message, "result"));
}

/* *keeps: it is what is waited for. */
static peridot_status take_one(bool *keeps, struct mcp *m, yyjson_val *message)
{
    const char *method = yyjson_get_str(get(message, "method"));
    yyjson_val *id = get(message, "id");
    *keeps = !method && !m->receiver.done && is_answer(m, message);
    if (*keeps) m->message = message, m->receiver.done = true;
    if (method && (yyjson_is_str(id) || yyjson_is_num(id))) return answer_request(m, id, method);
    if (method && !id && strcmp(method, "notifications/tools/list_changed") == 0) m->has_changed = true;
    return PERIDOT_OK;
}

static peridot_status mcp_take(struct link_receiver *r, const char *text, size_t size)
{
    struct mcp *m = (struct mcp *)r;
    yyjson_read_err error;
    yyjson_doc *doc = yyjson_read_opts((char *)(uintptr_t)text, size, 0, NULL, &error);
    if (!doc && error.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION) return pd_fail_alloc(size, "message");
    yyjson_val *root = yyjson_doc_get_root(doc), *message;
    bool keeps = false, keeps_one;
    size_t i, n;
    peridot_status status = yyjson_is_obj(root) ? take_one(&keeps, m, root) : PERIDOT_OK;
    yyjson_arr_foreach(root, i, n, message) {   /* 2025-03-26 has lists of messages */
        if (status == PERIDOT_OK) status = take_one(&keeps_one, m, message);
        if (status != PERIDOT_OK) break;
        keeps |= keeps_one;
    }
    if (keeps) m->answer = doc, m->answer_size = size;
    else yyjson_doc_free(doc);
    return status;
}

static void drop_answer(struct mcp *m)
{
    yyjson_doc_free(m->answer);
    m->answer = NULL, m->message = NULL;
    m->receiver.done = false;
    pd_buffer_free(&m->receiver.replies);
}

/* ---- requests ---- */

/* The document that is being written, see base.h. */
struct request {
    yyjson_mut_doc *doc;
    yyjson_mut_val *params;
    const char *method;
    struct toolbox_texts headers;
};

static void add_client(yyjson_mut_doc *doc, yyjson_mut_val *to, const char *key)
{
    yyjson_mut_val *client = yyjson_mut_obj_add_obj(doc, to, key);
    yyjson_mut_obj_add_str(doc, client, "name", "peridot");
    yyjson_mut_obj_add_str(doc, client, "version", peridot_version());
}

/* What a request without a handshake says of its sender. */
static void add_meta(yyjson_mut_doc *doc, yyjson_mut_val *params)
{
    yyjson_mut_val *meta = yyjson_mut_obj_add_obj(doc, params, "_meta");
    yyjson_mut_obj_add_str(doc, meta, "io.modelcontextprotocol/protocolVersion", stateless);
    add_client(doc, meta, "io.modelcontextprotocol/clientInfo");
    yyjson_mut_obj_add_obj(doc, meta, "io.modelcontextprotocol/clientCapabilities");
}

static peridot_status begin_request(struct request *q, const struct mcp *m, const char *method, bool has_id)
{
    *q = (struct request){.doc = cmd_json_new(), .method = method};
    if (!q->doc) return pd_fail_alloc(0, "message");
    yyjson_mut_val *root = yyjson_mut_obj(q->doc);
    yyjson_mut_doc_set_root(q->doc, root);
    yyjson_mut_obj_add_str(q->doc, root, "jsonrpc", "2.0");
    if (has_id) yyjson_mut_obj_add_uint(q->doc, root, "id", m->last_id + 1);
    yyjson_mut_obj_add_str(q->doc, root, "method", method);
    q->params = yyjson_mut_obj_add_obj(q->doc, root, "params");
    if (is_stateless(m)) add_meta(q->doc, q->params);
    return PERIDOT_OK;
}

static void notify(struct mcp *m, struct request *q)
{
    size_t size;
    char *text = cmd_json_end(q->doc, 0, &size);
    if (text) m->link->kind->notify(m->link, &(struct link_message){.text = text, .size = size, .version = m->version});
    free(text);
}

/* The server need not go on with the last request. Without a handshake the end of the connection says that on HTTP. */
static void cancel(struct mcp *m)
{
    struct request q;
    if (m->link->is_lost || !m->version || (is_stateless(m) && m->link->sends_headers)) return;
    if (begin_request(&q, m, "notifications/cancelled", false) != PERIDOT_OK) return;
    yyjson_mut_obj_add_uint(q.doc, q.params, "requestId", m->last_id);
    notify(m, &q);
}

static peridot_status add_method_header(struct request *q, const struct mcp *m)
{
    char line[128];
    if (!is_stateless(m) || !m->link->sends_headers) return PERIDOT_OK;
    snprintf(line, sizeof line, "Mcp-Method: %s", q->method);
    return toolbox_texts_add(&q->headers, line);
}

/* Sends a request that was begun, and waits until `deadline` (pd_now) for its answer: m->message. */
static peridot_status exchange(struct mcp *m, struct request *q, double deadline)
{
    size_t size;
    drop_answer(m);
    m->last_id++;
    peridot_status status = add_method_header(q, m);
    char *text = cmd_json_end(q->doc, 0, &size);
    if (status == PERIDOT_OK && !text) status = pd_fail_alloc(0, "message");
    const struct link_message message = {.text = text, .size = size, .version = m->version, .headers = &q->headers};
    if (status == PERIDOT_OK) status = m->link->kind->request(m->link, &message, &m->receiver, deadline);
    free(text);
    toolbox_texts_free(&q->headers);
    if (status == PERIDOT_OK) return status;
    cancel(m);
    return mcp_fail(m, status, peridot_last_error());
}

/* Why there is no result, as the server says it. */
static peridot_status fail_answer(const struct mcp *m, const char *what)
{
    const char *why = yyjson_get_str(get(get(m->message, "error"), "message"));
    char sentence[600];
    snprintf(sentence, sizeof sentence, "%s: %.500s", what, why ? cmd_shown(why) : "the answer has no result");
    return mcp_fail(m, PERIDOT_ERROR_IO, sentence);
}

static peridot_status exchange_result(yyjson_val **result, struct mcp *m, struct request *q, double deadline)
{
    const char *method = q->method;
    PD_TRY(exchange(m, q, deadline));
    *result = get(m->message, "result");
    return yyjson_is_obj(*result) ? PERIDOT_OK : fail_answer(m, method);
}

/* ---- connecting ---- */

static void take_capabilities(struct mcp *m, yyjson_val *result)
{
    yyjson_val *tools = get(get(result, "capabilities"), "tools");
    m->has_tools = tools != NULL;
    m->may_change = yyjson_is_true(get(tools, "listChanged"));
}

static peridot_status initialize(struct mcp *m, double deadline)
{
    struct request q;
    yyjson_val *result;
    PD_TRY(begin_request(&q, m, "initialize", true));
    yyjson_mut_obj_add_str(q.doc, q.params, "protocolVersion", versions[0]);
    yyjson_mut_obj_add_obj(q.doc, q.params, "capabilities");
    add_client(q.doc, q.params, "clientInfo");
    PD_TRY(exchange_result(&result, m, &q, deadline));
    for (size_t i = 0; i < PD_COUNT(versions); i++)
        if (yyjson_equals_str(get(result, "protocolVersion"), versions[i])) m->version = versions[i];
    if (!m->version) return mcp_fail(m, PERIDOT_ERROR_UNSUPPORTED, unknown_version);
    take_capabilities(m, result);
    PD_TRY(begin_request(&q, m, "notifications/initialized", false));
    notify(m, &q);
    return PERIDOT_OK;
}

static peridot_status discover(struct mcp *m, double deadline)
{
    struct request q;
    yyjson_val *result, *version;
    size_t i, n;
    bool known = false;
    m->version = stateless;
    PD_TRY(begin_request(&q, m, "server/discover", true));
    PD_TRY(exchange_result(&result, m, &q, deadline));
    yyjson_arr_foreach(get(result, "supportedVersions"), i, n, version) known |= yyjson_equals_str(version, stateless);
    take_capabilities(m, result);
    return known ? PERIDOT_OK : mcp_fail(m, PERIDOT_ERROR_UNSUPPORTED, unknown_version);
}

/* The handshake comes first, though the newest revision would have server/discover tried before it: who knows the
 * handshake always answers it, and who does not answers with an error; while an old server may be silent about
 * server/discover, which only a time limit could tell from one that takes long to start. */
static peridot_status agree(struct mcp *m)
{
    char sentence[512];
    double deadline = pd_now() + START_SECONDS;
    peridot_status status = initialize(m, deadline);
    bool refuses = m->receiver.done ? get(m->message, "error") != NULL
                                    : m->link->http_status == 400 || m->link->http_status == 404;
    if (status != PERIDOT_ERROR_IO || m->version || m->link->is_lost || !refuses) return status;
    snprintf(sentence, sizeof sentence, "%s", peridot_last_error());
    status = discover(m, deadline);
    return status == PERIDOT_ERROR_IO ? pd_fail(status, "%s", sentence) : status;
}

static void disconnect(struct mcp *m)
{
    drop_answer(m);
    if (m->link) m->link->kind->close(m->link);
    m->link = NULL;
    m->version = NULL;
}

static peridot_status mcp_open_link(struct mcp *m)
{
    const struct link_kind *kind = m->entry->url ? &link_http : &link_stdio;
    peridot_status status = kind->open(&m->link, m->entry);
    return status == PERIDOT_OK ? status : mcp_fail(m, status, peridot_last_error());
}

/* A server that has ended meanwhile is started again. */
static peridot_status connect(struct mcp *m)
{
    drop_answer(m);
    if (m->link) PD_TRY(m->link->kind->poll(m->link, &m->receiver));
    if (m->link && m->link->is_lost && m->version) disconnect(m);
    if (m->link && m->version) return PERIDOT_OK;
    if (!m->link) PD_TRY(mcp_open_link(m));
    peridot_status status = agree(m);
    if (status != PERIDOT_OK) disconnect(m);
    return status;
}

peridot_status mcp_open(struct mcp **out, const struct toolbox_entry *entry)
{
    struct mcp *m = *out = calloc(1, sizeof *m);
    if (!m) return pd_fail_alloc(sizeof *m, "server");
    m->receiver.take = mcp_take;
    m->entry = entry;
    peridot_status status = mcp_open_link(m);
    if (status != PERIDOT_OK) mcp_close(m), *out = NULL;
    return status;
}

void mcp_close(struct mcp *m)
{
    if (!m) return;
    disconnect(m);
    free(m);
}

/* ---- tools ---- */

/* What cannot be called is left out, which a line says the first time. */
static peridot_status take_listed(const struct mcp *m, yyjson_val *value, mcp_take_tool take_tool, void *user)
{
    struct mcp_tool tool = {.name = yyjson_get_str(get(value, "name")),
                            .description = yyjson_get_str(get(value, "description"))};
    yyjson_val *schema = get(value, "inputSchema");
    const char *why = !tool.name || !*tool.name ? "it has no name"
                      : strlen(tool.name) != yyjson_get_len(get(value, "name")) ? "its name has a zero byte"
                      : schema && !yyjson_is_obj(schema) ? "its inputSchema is not an object"
                      : is_stateless(m) && m->link->sends_headers ? mcp_headers_check(schema) : NULL;
    if (why) {
        if (!m->was_listed) cmd_say("server %s: the tool %s is left out: %s\n", cmd_shown(m->entry->name),
                                    cmd_shown(tool.name ? tool.name : "?"), why);
        return PERIDOT_OK;
    }
    char *parameters = schema ? yyjson_val_write(schema, 0, NULL) : strdup(TOOLBOX_NO_PARAMETERS);
    if (!parameters) return pd_fail_alloc(0, "parameters");
    tool.parameters = parameters;
    peridot_status status = take_tool(user, &tool);
    free(parameters);
    return status;
}

/* What has been listed, and what may still be. */
struct list {
    mcp_take_tool take;
    void *user;
    double deadline;
    size_t size;      /* of the pages so far */
    char *cursor;     /* where it goes on; NULL: at its end, or its beginning */
};

static peridot_status list_page(struct mcp *m, struct list *list)
{
    struct request q;
    yyjson_val *result, *tool;
    size_t i, n;
    PD_TRY(begin_request(&q, m, "tools/list", true));
    if (list->cursor) yyjson_mut_obj_add_strcpy(q.doc, q.params, "cursor", list->cursor);
    PD_TRY(exchange_result(&result, m, &q, list->deadline));
    list->size += m->answer_size;
    if (list->size > LINK_MAX_MESSAGE) return mcp_fail(m, PERIDOT_ERROR_IO, "its list of tools has more than 8 MiB");
    yyjson_arr_foreach(get(result, "tools"), i, n, tool) PD_TRY(take_listed(m, tool, list->take, list->user));
    const char *next = yyjson_get_str(get(result, "nextCursor"));
    free(list->cursor);
    list->cursor = next ? strdup(next) : NULL;
    return next && !list->cursor ? pd_fail_alloc(strlen(next), "cursor") : PERIDOT_OK;
}

static peridot_status list_pages(struct mcp *m, mcp_take_tool take_tool, void *user)
{
    PD_TRY(connect(m));
    m->has_changed = false;
    if (!m->has_tools) return PERIDOT_OK;
    struct list list = {.take = take_tool, .user = user, .deadline = pd_now() + LIST_SECONDS};
    peridot_status status = list_page(m, &list);
    for (int i = 1; status == PERIDOT_OK && list.cursor; i++)
        status = i < MAX_PAGES ? list_page(m, &list) : mcp_fail(m, PERIDOT_ERROR_IO, "its list of tools has no end");
    free(list.cursor);
    m->was_listed |= status == PERIDOT_OK;
    return status;
}

/* Says once for which server the others, and a person, wait. It stops nothing. */
static bool name_slow(void *user)
{
    struct mcp *m = user;
    if (!m->waits_s || pd_now() - m->waits_s < NAMED_SECONDS) return false;
    cmd_say("server %s: waiting for its tools\n", cmd_shown(m->entry->name));
    m->waits_s = 0;
    return false;
}

peridot_status mcp_list(struct mcp *m, mcp_take_tool take_tool, void *user)
{
    const struct toolbox_stop asked = {name_slow, m};
    m->waits_s = pd_now();
    m->receiver.stop = &asked;
    peridot_status status = list_pages(m, take_tool, user);
    m->receiver.stop = NULL;
    return status;
}

/* Only a program that a handshake was made with tells it unasked. */
peridot_status mcp_has_changed(bool *changed, struct mcp *m)
{
    drop_answer(m);
    *changed = m->may_change && (!m->link || m->link->sends_headers || is_stateless(m));
    if (m->link) PD_TRY(m->link->kind->poll(m->link, &m->receiver));
    *changed |= m->has_changed;
    return PERIDOT_OK;
}

static peridot_status mcp_begin_call(struct request *q, const struct mcp *m, const struct mcp_tool *tool,
                                     yyjson_val *arguments)
{
    PD_TRY(begin_request(q, m, "tools/call", true));
    yyjson_mut_obj_add_str(q->doc, q->params, "name", tool->name);
    yyjson_mut_obj_add_val(q->doc, q->params, "arguments", yyjson_val_mut_copy(q->doc, arguments));
    if (!is_stateless(m) || !m->link->sends_headers) return PERIDOT_OK;
    peridot_status status = mcp_headers_make(&q->headers, tool, arguments);
    if (status == PERIDOT_OK) return status;
    toolbox_texts_free(&q->headers);
    free(cmd_json_end(q->doc, 0, NULL));
    return status;
}

static peridot_status toolbox_mcp_call(struct toolbox_result *out, struct mcp *m, const struct mcp_tool *tool,
                                       yyjson_val *arguments)
{
    struct request q;
    yyjson_val *result;
    PD_TRY(connect(m));
    PD_TRY(mcp_begin_call(&q, m, tool, arguments));
    PD_TRY(exchange_result(&result, m, &q, pd_now() + m->entry->timeout_s));
    return mcp_add_content(&out->text, out->images, result);
}

peridot_status mcp_call(struct toolbox_result *out, struct mcp *m, const struct mcp_tool *tool, yyjson_val *arguments,
                        const struct toolbox_stop *stop)
{
    m->receiver.stop = stop;
    peridot_status status = toolbox_mcp_call(out, m, tool, arguments);
    if (status == PERIDOT_ERROR_IO && m->link && m->link->is_lost && m->link->http_status == 404)
        status = toolbox_mcp_call(out, m, tool, arguments);   /* the session had ended, so nothing was done */
    m->receiver.stop = NULL;
    drop_answer(m);
    return status == PERIDOT_OK ? result_cut(&out->text, m->entry->max_output, 0) : status;
}

/* Responses that are kept, so that a request of /v1/responses can go on from one by previous_response_id, and GET and
 * DELETE find it. They are in memory, at most so many and of so many bytes: those that were used least recently go, and
 * a response never before those that go on from it. Each has the items that are its own, and its parent the ones before
 * them, so that a conversation takes as much memory as it has items. Whoever has another API key finds none of them.
 * All functions can be called by any thread. */
#include "job.h"
#include "job_.h"
#include "../../base/base.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef yyjson_mut_doc doc_t;
typedef yyjson_mut_val val_t;

/* LENT: what requests that go on may take at the same time, however short their own bodies are. */
enum { LENT = 8 * SERVE_BODY_MAX, PAGE = 20, PAGE_MAX = 100 };

struct serve_response {
    struct serve_response *next, *previous;   /* of the list, */
    bool listed;                              /* if it is in it */
    unsigned n_refs;           /* of the list, of those that go on from it, and of jobs */
    struct serve_response *parent;            /* that it goes on from; NULL: none */
    char id[40];
    uint32_t key;
    char *input, *text;        /* its own items, and the whole response, as JSON */
    size_t input_size, text_size;
};

static size_t size_of(const struct serve_response *r) { return sizeof *r + r->input_size + r->text_size; }

/* ---- the list; under the lock ---- */

static void release(struct serve_stored *s, struct serve_response *r)
{
    while (r && --r->n_refs == 0) {
        struct serve_response *parent = r->parent;
        s->size -= size_of(r);
        free(r->input);
        free(r->text);
        free(r);
        r = parent;
    }
}

static void take_out(struct serve_stored *s, struct serve_response *r)
{
    *(r->previous ? &r->previous->next : &s->first) = r->next;
    *(r->next ? &r->next->previous : &s->last) = r->previous;
    r->listed = false;
    s->n--;
}

static void put_first(struct serve_stored *s, struct serve_response *r)
{
    r->previous = NULL;
    r->next = s->first;
    *(s->first ? &s->first->previous : &s->last) = r;
    s->first = r;
    r->listed = true;
    s->n++;
}

/* It is used now, and what it goes on from later than that. */
static void touch(struct serve_stored *s, struct serve_response *r)
{
    for (; r; r = r->parent) {
        if (!r->listed) continue;
        take_out(s, r);
        put_first(s, r);
    }
}

static void forget(struct serve_stored *s, struct serve_response *r)
{
    take_out(s, r);
    release(s, r);
}

static struct serve_response *stored_find(const struct serve_stored *s, const char *id, uint32_t key)
{
    struct serve_response *r = s->first;
    while (r && (r->key != key || strcmp(r->id, id) != 0)) r = r->next;
    return r;
}

/* ---- from outside the lock ---- */

static struct serve_response *hold(struct serve_stored *s, const char *id, uint32_t key)
{
    pthread_mutex_lock(&s->lock);
    struct serve_response *r = stored_find(s, id, key);
    if (r) r->n_refs++;
    touch(s, r);
    pthread_mutex_unlock(&s->lock);
    return r;
}

static void let_go(struct serve_stored *s, struct serve_response *r)
{
    pthread_mutex_lock(&s->lock);
    release(s, r);
    pthread_mutex_unlock(&s->lock);
}

void serve_stored_free(struct serve_stored *s)
{
    while (s->first) forget(s, s->first);
}

/* ---- going on ---- */

static bool put_all(doc_t *doc, val_t *list, yyjson_val *items)
{
    size_t i, n;
    yyjson_val *each;
    yyjson_arr_foreach(items, i, n, each) {
        if (!yyjson_mut_arr_append(list, yyjson_val_mut_copy(doc, each))) return false;
    }
    return true;
}

static bool put_response(doc_t *doc, val_t *list, const struct serve_response *r)
{
    yyjson_doc *input = yyjson_read(r->input, r->input_size, 0), *text = yyjson_read(r->text, r->text_size, 0);
    bool good = input && text && put_all(doc, list, yyjson_doc_get_root(input))
        && put_all(doc, list, yyjson_obj_get(yyjson_doc_get_root(text), "output"));
    yyjson_doc_free(input);
    yyjson_doc_free(text);
    return good;
}

/* What the conversation had so far, the oldest first. */
static bool put_past(doc_t *doc, val_t *list, const struct serve_response *last)
{
    size_t n = 0, i;
    for (const struct serve_response *r = last; r; r = r->parent) n++;
    const struct serve_response **all = malloc(n * sizeof *all);
    bool good = all;
    i = n;
    for (const struct serve_response *r = last; r && all; r = r->parent) all[--i] = r;
    for (i = 0; i < n && good; i++) good = put_response(doc, list, all[i]);
    free(all);
    return good;
}

/* A text that is an input is a message of the user's. */
static bool put_input(doc_t *doc, val_t *list, yyjson_val *input)
{
    if (!yyjson_is_str(input)) return put_all(doc, list, input);
    val_t *message = yyjson_mut_arr_add_obj(doc, list);
    return yyjson_mut_obj_add_str(doc, message, "type", "message")
        && yyjson_mut_obj_add_str(doc, message, "role", "user")
        && yyjson_mut_obj_add_val(doc, message, "content", yyjson_val_mut_copy(doc, input));
}

/* The document with this input; by its text, as yyjson's own copy goes as deep as the document does. */
static yyjson_doc *with_input(struct serve_job *job, yyjson_val *input)
{
    doc_t *doc = yyjson_doc_mut_copy(job->asks.document, NULL);
    val_t *root = yyjson_mut_doc_get_root(doc), *list = yyjson_mut_arr(doc);
    bool good = put_past(doc, list, job->past.response);
    job->past.n_items = yyjson_mut_arr_size(list);
    yyjson_mut_obj_remove_key(root, "input");
    good = good && put_input(doc, list, input) && yyjson_mut_obj_add_val(doc, root, "input", list);
    size_t size = 0;
    char *text = good ? yyjson_mut_write(doc, 0, &size) : NULL;
    yyjson_doc *whole = text ? yyjson_read(text, size, 0) : NULL;
    free(text);
    yyjson_mut_doc_free(doc);
    return whole;
}

static bool borrow(struct serve_job *job)
{
    struct serve_stored *s = &job->server->stored;
    size_t size = 0;
    for (const struct serve_response *r = job->past.response; r; r = r->parent) size += size_of(r);
    if (size > SERVE_BODY_MAX)
        return serve_refuse(&job->error, 400, "context_length_exceeded", "previous_response_id",
                            "the responses before this one have more than %d bytes", SERVE_BODY_MAX);
    job->past.size = size;
    return (s->lent += size) <= LENT
        || serve_refuse(&job->error, 503, NULL, NULL, "too many requests go on from long responses: try again later");
}

bool serve_stored_continue(struct serve_job *job)
{
    yyjson_val *root = yyjson_doc_get_root(job->asks.document), *id = yyjson_obj_get(root, "previous_response_id"),
               *input = yyjson_obj_get(root, "input");
    if (job->api->id != SERVE_RESPONSES || !id || yyjson_is_null(id)) return true;
    if (!yyjson_is_str(id)) return serve_refuse_type(&job->error, "previous_response_id", "must be a string");
    job->past.response = hold(&job->server->stored, yyjson_get_str(id), job->client.key);
    if (!job->past.response)
        return serve_refuse(&job->error, 400, "previous_response_not_found", "previous_response_id",
                            "Previous response with id '%.64s' not found.", yyjson_get_str(id));
    if (input && !yyjson_is_null(input) && !yyjson_is_str(input) && !yyjson_is_arr(input)) return true;   /* refused */
    yyjson_doc *whole = borrow(job) ? with_input(job, input) : NULL;
    if (!whole) return serve_refuse_memory(job);
    yyjson_doc_free(job->asks.document);
    job->asks.document = whole;
    return true;
}

void serve_stored_leave(struct serve_job *job)
{
    job->server->stored.lent -= job->past.size;
    job->past.size = 0;
    if (job->past.response) let_go(&job->server->stored, job->past.response);
    job->past.response = NULL;
}

/* ---- keeping ---- */

static bool add_id(doc_t *doc, val_t *item, const char *type)
{
    static const char *const prefixes[][2] = {{"message", "msg"}, {"function_call", "fc"}, {"custom_tool_call", "ctc"},
        {"reasoning", "rs"}, {"function_call_output", "fco"}, {"custom_tool_call_output", "ctco"}};
    const char *prefix = "item";
    uint64_t random = 0;
    char id[48];
    for (size_t i = 0; i < PD_COUNT(prefixes); i++)
        if (type && strcmp(type, prefixes[i][0]) == 0) prefix = prefixes[i][1];
    pd_random_bytes(&random, sizeof random);
    snprintf(id, sizeof id, "%s_%016" PRIx64, prefix, random);
    return yyjson_mut_obj_add_strcpy(doc, item, "id", id);
}

/* In the form of OpenAI's lists: each has a type and an id, and a message's content is parts. */
static bool add_item(doc_t *doc, val_t *list, val_t *item)
{
    bool good = yyjson_mut_obj_get(item, "type") || yyjson_mut_obj_add_str(doc, item, "type", "message");
    const char *type = yyjson_mut_get_str(yyjson_mut_obj_get(item, "type"));
    val_t *content = yyjson_mut_obj_get(item, "content");
    if (!yyjson_mut_is_str(yyjson_mut_obj_get(item, "id"))) good = good && add_id(doc, item, type);
    if (yyjson_mut_is_str(content)) {
        bool said = yyjson_mut_equals_str(yyjson_mut_obj_get(item, "role"), "assistant");
        val_t *parts = yyjson_mut_arr(doc), *part = yyjson_mut_arr_add_obj(doc, parts);
        good = good && yyjson_mut_obj_add_str(doc, part, "type", said ? "output_text" : "input_text")
            && yyjson_mut_obj_add_val(doc, part, "text", yyjson_mut_val_mut_copy(doc, content))
            && yyjson_mut_obj_replace(item, yyjson_mut_str(doc, "content"), parts);
    }
    return good && yyjson_mut_arr_append(list, item);
}

/* The items of the request itself. The response's document is being written, so this is none of cmd_json_new's. */
static char *own_input(size_t *size, const struct serve_job *job)
{
    doc_t *doc = yyjson_mut_doc_new(NULL);
    val_t *all = yyjson_mut_arr(doc), *list = yyjson_mut_arr(doc), *item;
    bool good = put_input(doc, all, yyjson_obj_get(yyjson_doc_get_root(job->asks.document), "input"));
    for (size_t i = 0; (item = yyjson_mut_arr_remove_first(all)) != NULL; i++)
        if (i >= job->past.n_items && yyjson_mut_is_obj(item)) good = good && add_item(doc, list, item);
    char *text = good && list ? yyjson_mut_val_write(list, 0, size) : NULL;
    yyjson_mut_doc_free(doc);
    return text;
}

void serve_stored_add(struct serve_job *job, yyjson_mut_val *response)
{
    struct serve_stored *s = &job->server->stored;
    struct serve_response *r = job->asks.stores ? calloc(1, sizeof *r) : NULL;
    if (!r) return;
    r->text = yyjson_mut_val_write(response, 0, &r->text_size);
    r->input = own_input(&r->input_size, job);
    memcpy(r->id, job->id, sizeof r->id);
    r->key = job->client.key;
    r->parent = job->past.response;
    r->n_refs = 1;
    bool good = r->text && r->input;
    pthread_mutex_lock(&s->lock);
    s->size += size_of(r);
    job->past.response = NULL;      /* it is the response's now, with what that takes */
    if (good) put_first(s, r);
    else release(s, r);
    touch(s, good ? r : NULL);
    while (s->last && (s->n > SERVE_STORED_MAX || s->size > SERVE_STORED_BYTES)) forget(s, s->last);
    pthread_mutex_unlock(&s->lock);
}

/* ---- what is asked about them ---- */

static int answer_error(struct pd_buffer *out, const struct serve_error *e)
{
    serve_errors_openai.put(out, e);
    return e->status;
}

static void answer_deleted(struct pd_buffer *out, const char *id)
{
    doc_t *doc = cmd_json_new();
    val_t *o = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, o);
    yyjson_mut_obj_add_strcpy(doc, o, "id", id);
    yyjson_mut_obj_add_str(doc, o, "object", "response");
    yyjson_mut_obj_add_bool(doc, o, "deleted", true);
    serve_put_json(out, doc);
}

static val_t *id_of(doc_t *doc, val_t *item)
{
    return item ? yyjson_mut_val_mut_copy(doc, yyjson_mut_obj_get(item, "id")) : yyjson_mut_null(doc);
}

/* The items, the latest first unless the order is asc; freed by the caller. */
static yyjson_val **stored_sort(yyjson_val *all, const struct serve_ask *ask)
{
    bool ascends = ask->order && strcmp(ask->order, "asc") == 0;
    size_t i, n;
    yyjson_val *each, **sorted = malloc((yyjson_arr_size(all) + 1) * sizeof *sorted);
    if (!sorted) return NULL;
    yyjson_arr_foreach(all, i, n, each) sorted[ascends ? i : n - 1 - i] = each;
    return sorted;
}

static void answer_items(struct pd_buffer *out, const struct serve_response *r, const struct serve_ask *ask,
                         size_t most)
{
    yyjson_doc *from = yyjson_read(r->input, r->input_size, 0);
    yyjson_val **items = stored_sort(yyjson_doc_get_root(from), ask);
    size_t n = items ? yyjson_arr_size(yyjson_doc_get_root(from)) : 0, i = 0;
    doc_t *doc = cmd_json_new();
    val_t *o = yyjson_mut_obj(doc), *list = yyjson_mut_arr(doc);
    if (!from || !items) cmd_json_fail();
    for (size_t k = 0; ask->after && k < n && i == 0; k++)
        if (yyjson_equals_str(yyjson_obj_get(items[k], "id"), ask->after)) i = k + 1;
    for (; i < n && yyjson_mut_arr_size(list) < most; i++)
        yyjson_mut_arr_append(list, yyjson_val_mut_copy(doc, items[i]));
    yyjson_mut_doc_set_root(doc, o);
    yyjson_mut_obj_add_str(doc, o, "object", "list");
    yyjson_mut_obj_add_val(doc, o, "data", list);
    yyjson_mut_obj_add_val(doc, o, "first_id", id_of(doc, yyjson_mut_arr_get_first(list)));
    yyjson_mut_obj_add_val(doc, o, "last_id", id_of(doc, yyjson_mut_arr_get_last(list)));
    yyjson_mut_obj_add_bool(doc, o, "has_more", i < n);
    serve_put_json(out, doc);
    free(items);
    yyjson_doc_free(from);
}

/* What is asked about the response can be answered. */
static bool check_ask(struct serve_error *e, const struct serve_ask *ask, const char *part, unsigned long *most)
{
    char *end = "";
    *most = ask->limit ? strtoul(ask->limit, &end, 10) : PAGE;
    if (*part && strcmp(part, "/input_items") != 0)
        return serve_refuse(e, 404, NULL, NULL, "there is no %s: see /openapi.json", ask->path);
    if (*end || *most < 1 || *most > PAGE_MAX)
        return serve_refuse(e, 400, "invalid_value", "limit", "limit must be a whole number from 1 to %d", PAGE_MAX);
    if (ask->order && strcmp(ask->order, "asc") != 0 && strcmp(ask->order, "desc") != 0)
        return serve_refuse(e, 400, "invalid_value", "order", "order must be asc or desc");
    return !ask->stream || strcmp(ask->stream, "false") == 0
        || serve_refuse(e, 400, "unsupported_parameter", "stream", "stream is not supported: a response is kept when "
                        "it is complete");
}

int serve_ask_stored(struct pd_buffer *out, struct serve_server *server, const struct serve_ask *ask)
{
    struct serve_stored *s = &server->stored;
    struct serve_error e = {0};
    char id[40] = "";
    unsigned long most;
    const char *given = strstr(ask->path, "/responses/") + strlen("/responses/");
    const char *part = given + strcspn(given, "/");
    if (part - given < (ptrdiff_t)sizeof id) memcpy(id, given, (size_t)(part - given));
    if (!check_ask(&e, ask, part, &most)) return answer_error(out, &e);
    struct serve_response *r = hold(s, id, ask->key);
    if (!r) {
        serve_refuse(&e, 404, NULL, NULL, "Response with id '%.*s' not found.",
                     (int)pd_min((uint64_t)(part - given), 64), given);
        return answer_error(out, &e);
    }
    if (*part) answer_items(out, r, ask, most);
    else if (strcmp(ask->method, "DELETE") == 0) answer_deleted(out, id);
    else pd_buffer_add(out, r->text, r->text_size);
    pthread_mutex_lock(&s->lock);
    if (strcmp(ask->method, "DELETE") == 0 && r->listed) forget(s, r);
    release(s, r);
    pthread_mutex_unlock(&s->lock);
    return 200;
}

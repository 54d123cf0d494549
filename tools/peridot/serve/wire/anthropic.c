/* Anthropic's interface: POST /v1/messages and /v1/messages/count_tokens. A message is a list of content blocks: a
 * thought, a text and calls of tools, as far as there are any. Events of a stream begin a block, add to it and end it,
 * by its index. The signature of a thought is the message's id and a seal (serve_thought_seal), which has the thought
 * in it where that is not shown. */
#include "wire_.h"
#include "wire.h"
#include "../job/job.h"

#include <inttypes.h>
#include <string.h>

typedef yyjson_mut_doc doc_t;
typedef yyjson_mut_val val_t;

/* ---- requests ---- */

static bool has(yyjson_val *value) { return value && !yyjson_is_null(value); }

/* Turns of one role that follow each other are one turn. */
static bool anthropic_read_messages(struct serve_conversation *c, struct serve_job *job, yyjson_val *root)
{
    size_t i, n;
    yyjson_val *each, *system = yyjson_obj_get(root, "system"), *messages = yyjson_obj_get(root, "messages");
    if (job->api->id == SERVE_MESSAGES && !job->asks.max_given)
        return serve_refuse(&job->error, 400, "invalid_value", "max_tokens", "max_tokens is required");
    if (has(system) && !serve_conversation_add_content(c, job, "system", "system", system)) return false;
    if (!yyjson_is_arr(messages) || yyjson_arr_size(messages) == 0)
        return serve_refuse_type(&job->error, "messages", "must be a list of at least one message");
    yyjson_arr_foreach(messages, i, n, each) {
        if (!yyjson_is_obj(each)) return serve_refuse_type(&job->error, "messages", "must be a list of objects");
        const char *role = serve_conversation_role(job, "messages", each);
        if (!role || !serve_conversation_add_content(c, job, role, "messages", yyjson_obj_get(each, "content")))
            return false;
    }
    if (!serve_conversation_join(c, job)) return false;
    val_t *role = yyjson_mut_obj_get(yyjson_mut_arr_get_last(c->list), "role");
    job->asks.continues = yyjson_mut_equals_str(role, "assistant");
    return true;
}

static bool count_tokens(struct pd_buffer *out, struct serve_job *job, const peridot_vocab *vocab, yyjson_val *root)
{
    int32_t *ids;
    size_t n;
    bool good = serve_conversation_encode(&ids, &n, job, vocab, root);
    peridot_free(ids);
    if (!good) return false;
    doc_t *doc = cmd_json_new();
    val_t *o = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, o);
    yyjson_mut_obj_add_uint(doc, o, "input_tokens", n);
    serve_put_json(out, doc);
    return true;
}

/* ---- errors ---- */

static void put_error(struct pd_buffer *b, const struct serve_error *e)
{
    static const struct {
        int status;
        const char *type;
    } types[] = {{401, "authentication_error"}, {403, "permission_error"}, {404, "not_found_error"},
                 {413, "request_too_large"},    {429, "rate_limit_error"}, {500, "api_error"},
                 {503, "overloaded_error"}};
    const char *type = "invalid_request_error";
    doc_t *doc = cmd_json_new();
    val_t *root = yyjson_mut_obj(doc), *error = yyjson_mut_obj(doc);
    for (size_t i = 0; i < PD_COUNT(types); i++)
        if (types[i].status == e->status) type = types[i].type;
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, root, "type", "error");
    yyjson_mut_obj_add_val(doc, root, "error", error);
    yyjson_mut_obj_add_str(doc, error, "type", type);
    yyjson_mut_obj_add_val(doc, error, "message", serve_error_sentence(doc, e));
    if (e->code) yyjson_mut_obj_add_str(doc, yyjson_mut_obj_add_obj(doc, error, "details"), "error_code", e->code);
    serve_put_json(b, doc);
}

/* What Claude Code looks for. */
static void tell_length(char *out, size_t size, const struct serve_length *l)
{
    snprintf(out, size, "prompt is too long: %" PRIu64 " tokens > %" PRIu32 " maximum", l->n_prompt, l->ctx);
}

const struct serve_error_form serve_errors_anthropic = {put_error, "event: error\ndata: ", "\n\n", tell_length, true};

/* ---- answers ---- */

static val_t *signature(doc_t *doc, const struct serve_task *task)
{
    const struct serve_job *job = task->job;
    struct pd_buffer b = {0};
    pd_buffer_add(&b, job->id, strlen(job->id));
    serve_thought_seal(&b, job->server->thoughts, serve_text(doc, task->thought.data, task->thought.size),
                       job->asks.hides_thoughts);
    return serve_buffer_text(doc, &b);
}

static val_t *block(doc_t *doc, const struct serve_task *task, enum serve_item item, bool whole)
{
    bool thought = item == SERVE_ITEM_THOUGHT, shown = whole && !(thought && task->job->asks.hides_thoughts);
    const struct pd_buffer *text = thought ? &task->thought : &task->text;
    const char *type = thought ? "thinking" : "text";
    val_t *o = yyjson_mut_obj(doc);
    yyjson_mut_obj_add_str(doc, o, "type", type);
    yyjson_mut_obj_add_val(doc, o, type, serve_text(doc, text->data, shown ? text->size : 0));
    if (thought)
        yyjson_mut_obj_add_val(doc, o, "signature", whole ? signature(doc, task) : yyjson_mut_str(doc, ""));
    return o;
}

/* {"type": "tool_use", "id": ..., "name": ..., "input": an object}, which is empty where it is not complete. */
static val_t *use_block(doc_t *doc, const struct serve_call *anthropic_call, bool whole)
{
    val_t *o = yyjson_mut_obj(doc), *input = NULL;
    yyjson_doc *read = whole ? yyjson_read(anthropic_call->arguments.data, anthropic_call->arguments.size, 0) : NULL;
    if (read) input = yyjson_val_mut_copy(doc, yyjson_doc_get_root(read));
    yyjson_doc_free(read);
    yyjson_mut_obj_add_str(doc, o, "type", "tool_use");
    yyjson_mut_obj_add_strcpy(doc, o, "id", anthropic_call->id);
    yyjson_mut_obj_add_strcpy(doc, o, "name", anthropic_call->name);
    yyjson_mut_obj_add_val(doc, o, "input", input ? input : yyjson_mut_obj(doc));
    return o;
}

/* Where it has none yet: an answer that calls tools, or ends within its thought. */
static bool ends_without_text(const struct serve_task *task) { return task->n_calls || serve_thought_is_cut(task); }

static bool has_text(const struct serve_task *task) { return task->text.size || !ends_without_text(task); }

/* A prompt's tokens are counted once: those that the cache had, and the others. At the beginning all are others. */
static val_t *usage(doc_t *doc, const struct serve_job *job)
{
    const struct serve_usage u = serve_usage_of(job);
    val_t *o = yyjson_mut_obj(doc), *details = yyjson_mut_obj(doc);
    yyjson_mut_obj_add_uint(doc, o, "input_tokens", u.prompt - u.cached);
    yyjson_mut_obj_add_uint(doc, o, "cache_creation_input_tokens", 0);
    yyjson_mut_obj_add_uint(doc, o, "cache_read_input_tokens", u.cached);
    yyjson_mut_obj_add_uint(doc, o, "output_tokens", u.reply);
    if (!u.thought) return o;
    yyjson_mut_obj_add_uint(doc, details, "thinking_tokens", u.thought);
    yyjson_mut_obj_add_val(doc, o, "output_tokens_details", details);
    return o;
}

/* Adds stop_reason and stop_sequence, which are null before the end. */
static void add_stop(doc_t *doc, val_t *o, const struct serve_task *task)
{
    bool ended = task->finish != SERVE_FINISH_NONE;
    const char *reason = task->stop ? "stop_sequence" : task->finish == SERVE_FINISH_LENGTH ? "max_tokens"
                       : task->finish == SERVE_FINISH_CALLS ? "tool_use" : "end_turn";
    yyjson_mut_obj_add_val(doc, o, "stop_reason", ended ? yyjson_mut_str(doc, reason) : yyjson_mut_null(doc));
    yyjson_mut_obj_add_val(doc, o, "stop_sequence", task->stop ? serve_string(doc, task->stop) : yyjson_mut_null(doc));
}

static val_t *message(doc_t *doc, const struct serve_job *job, bool whole)
{
    const struct serve_task *task = &job->work.tasks[0];
    val_t *o = yyjson_mut_obj(doc), *content = yyjson_mut_arr(doc);
    if (whole && task->thought.size) yyjson_mut_arr_append(content, block(doc, task, SERVE_ITEM_THOUGHT, true));
    if (whole && has_text(task)) yyjson_mut_arr_append(content, block(doc, task, SERVE_ITEM_MESSAGE, true));
    for (size_t i = 0; whole && i < task->n_calls; i++)
        yyjson_mut_arr_append(content, use_block(doc, &task->calls[i], true));
    yyjson_mut_obj_add_str(doc, o, "id", job->id);
    yyjson_mut_obj_add_str(doc, o, "type", "message");
    yyjson_mut_obj_add_str(doc, o, "role", "assistant");
    yyjson_mut_obj_add_val(doc, o, "model", serve_string(doc, serve_job_model(job)));
    yyjson_mut_obj_add_val(doc, o, "content", content);
    add_stop(doc, o, task);
    yyjson_mut_obj_add_val(doc, o, "usage", usage(doc, job));
    return o;
}

static doc_t *anthropic_body(struct serve_job *job)
{
    doc_t *doc = cmd_json_new();
    yyjson_mut_doc_set_root(doc, message(doc, job, true));
    return doc;
}

/* ---- events ---- */

/* {"type": TYPE}, to be sent by serve_send_event. */
static doc_t *event(val_t **root, const char *type)
{
    doc_t *doc = cmd_json_new();
    *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, *root);
    yyjson_mut_obj_add_str(doc, *root, "type", type);
    return doc;
}

static void anthropic_begin(struct serve_job *job)
{
    val_t *root;
    doc_t *doc = event(&root, "message_start");
    yyjson_mut_obj_add_val(doc, root, "message", message(doc, job, false));
    serve_send_event(job, "message_start", doc);
    doc = event(&root, "ping");
    serve_send_event(job, "ping", doc);
}

/* What is added to the present block: of a type TYPE_delta, in the member TYPE. Takes over the value. */
static void send_delta(struct serve_job *job, doc_t *doc, const char *type, const char *member, val_t *value)
{
    val_t *root = yyjson_mut_obj(doc), *delta = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, root, "type", "content_block_delta");
    yyjson_mut_obj_add_uint(doc, root, "index", job->events.n);
    yyjson_mut_obj_add_val(doc, root, "delta", delta);
    yyjson_mut_obj_add_str(doc, delta, "type", type);
    yyjson_mut_obj_add_val(doc, delta, member, value);
    serve_send_event(job, "content_block_delta", doc);
}

static void send_text(struct serve_task *task, const char *type, const char *member, const char *text, size_t size)
{
    doc_t *doc = cmd_json_new();
    send_delta(task->job, doc, type, member, serve_text(doc, text, size));
}

static void end_block(struct serve_task *task)
{
    struct serve_job *job = task->job;
    val_t *root;
    doc_t *doc;
    if (job->events.item == SERVE_ITEM_THOUGHT) {
        doc = cmd_json_new();
        send_delta(job, doc, "signature_delta", "signature", signature(doc, task));
    }
    doc = event(&root, "content_block_stop");
    yyjson_mut_obj_add_uint(doc, root, "index", job->events.n++);
    serve_send_event(job, "content_block_stop", doc);
}

/* Ends the present block, and begins another. */
static void begin_block(struct serve_task *task, enum serve_item item, const struct serve_call *anthropic_call)
{
    struct serve_job *job = task->job;
    val_t *root;
    if (job->events.item != SERVE_ITEM_NONE) end_block(task);
    job->events.item = item;
    doc_t *doc = event(&root, "content_block_start");
    yyjson_mut_obj_add_uint(doc, root, "index", job->events.n);
    yyjson_mut_obj_add_val(doc, root, "content_block",
                           anthropic_call ? use_block(doc, anthropic_call, false) : block(doc, task, item, false));
    serve_send_event(job, "content_block_start", doc);
}

/* The block of this kind is the present one from now on. */
static void turn_to(struct serve_task *task, enum serve_item item)
{
    if (task->job->events.item != item) begin_block(task, item, NULL);
}

static void thought(struct serve_task *task, const char *text, size_t size)
{
    turn_to(task, SERVE_ITEM_THOUGHT);
    if (!task->job->asks.hides_thoughts) send_text(task, "thinking_delta", "thinking", text, size);
}

static void anthropic_piece(struct serve_task *task, const char *text, size_t size)
{
    if (!size && ends_without_text(task)) return;
    turn_to(task, SERVE_ITEM_MESSAGE);
    if (size) send_text(task, "text_delta", "text", text, size);
}

static void anthropic_call(struct serve_task *task, size_t i, const char *text, size_t size)
{
    const struct serve_call *from = &task->calls[i];
    if (!from->begun) begin_block(task, SERVE_ITEM_CALL, from);
    if (size) send_text(task, "input_json_delta", "partial_json", text, size);
}

static void anthropic_end(struct serve_job *job)
{
    struct serve_task *task = &job->work.tasks[0];
    val_t *root;
    end_block(task);
    doc_t *doc = event(&root, "message_delta");
    val_t *delta = yyjson_mut_obj(doc);
    add_stop(doc, delta, task);
    yyjson_mut_obj_add_val(doc, root, "delta", delta);
    yyjson_mut_obj_add_val(doc, root, "usage", usage(doc, job));
    serve_send_event(job, "message_delta", doc);
    doc = event(&root, "message_stop");
    serve_send_event(job, "message_stop", doc);
}

const struct serve_interface serve_wire_messages = {
    .id = SERVE_MESSAGES, .path = "/v1/messages", .kind = SERVE_CONVERSATION, .id_prefix = "msg_",
    .input = "messages", .schema = "output_config", .errors = &serve_errors_anthropic, .stream_type = SERVE_EVENTS,
    .ping = "event: ping\ndata: {\"type\": \"ping\"}\n\n",
    .read = serve_read_conversation, .read_messages = anthropic_read_messages,
    .begin = anthropic_begin, .piece = anthropic_piece, .thought = thought, .call = anthropic_call,
    .end = anthropic_end, .body = anthropic_body,
};
const struct serve_interface serve_wire_count_tokens = {
    .id = SERVE_COUNT_TOKENS, .path = "/v1/messages/count_tokens", .kind = SERVE_AT_ONCE, .input = "messages",
    .schema = "output_config", .errors = &serve_errors_anthropic, .read = count_tokens,
    .read_messages = anthropic_read_messages,
};

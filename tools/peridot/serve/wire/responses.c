/* OpenAI's responses: POST /v1/responses. An answer has items: a thought, a message and calls, as far as there are any;
 * each event says which of them it is about. */
#include "wire_.h"
#include "../job/job.h"
#include "wire.h"

#include <stdlib.h>
#include <string.h>

typedef yyjson_mut_doc doc_t;
typedef yyjson_mut_val val_t;

static bool responses_add_text(struct serve_conversation *c, struct serve_job *job, const char *role, const char *name,
                               yyjson_val *value)
{
    const char *text = serve_param_text(job, name, value);
    return text && serve_conversation_add(c, job, role, text);
}

/* {"type": "function_call", "call_id": ..., "name": ..., "arguments": JSON text} */
static bool read_call(struct serve_conversation *c, struct serve_job *job, yyjson_val *item)
{
    const char *id = serve_param_text(job, "input", yyjson_obj_get(item, "call_id"));
    const char *name = id ? serve_param_text(job, "input", yyjson_obj_get(item, "name")) : NULL;
    const char *arguments = name ? serve_param_text(job, "input", yyjson_obj_get(item, "arguments")) : NULL;
    return arguments && serve_conversation_add_call(c, job, id, name, arguments);
}

/* {"type": "custom_tool_call", "call_id": ..., "name": ..., "input": text}: a function with a text, as params_tools.c
 * has it. */
static bool read_custom(struct serve_conversation *c, struct serve_job *job, yyjson_val *item)
{
    const char *id = serve_param_text(job, "input", yyjson_obj_get(item, "call_id"));
    const char *name = id ? serve_param_text(job, "input", yyjson_obj_get(item, "name")) : NULL;
    const char *text = name ? serve_param_text(job, "input", yyjson_obj_get(item, "input")) : NULL;
    if (!text) return false;
    doc_t *doc = cmd_json_new();
    val_t *o = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, o);
    yyjson_mut_obj_add_str(doc, o, "input", text);
    char *arguments = cmd_json_end(doc, 0, NULL);
    bool good = arguments ? serve_conversation_add_call(c, job, id, name, arguments)
                          : serve_refuse_memory(job);
    free(arguments);
    return good;
}

/* {"type": "function_call_output", "call_id": ..., "output": a text, or parts} */
static bool read_result(struct serve_conversation *c, struct serve_job *job, yyjson_val *item)
{
    const char *id = serve_param_text(job, "input", yyjson_obj_get(item, "call_id"));
    return id && serve_conversation_add_result(c, job, id, "input", yyjson_obj_get(item, "output"));
}

/* {"type": "reasoning", ...}: a thought of the message or call that comes next */
static bool read_reasoning(struct serve_conversation *c, struct serve_job *job, yyjson_val *item)
{
    return serve_thought_read_item(&c->thought, job, item);
}

static bool read_item(struct serve_conversation *c, struct serve_job *job, yyjson_val *item)
{
    static const struct {
        const char *type;
        bool (*read)(struct serve_conversation *c, struct serve_job *job, yyjson_val *item);
    } types[] = {{"message", serve_conversation_read_one},
                 {"function_call", read_call}, {"function_call_output", read_result},
                 {"custom_tool_call", read_custom}, {"custom_tool_call_output", read_result},
                 {"reasoning", read_reasoning}};
    yyjson_val *type = yyjson_obj_get(item, "type");
    if (!yyjson_is_str(type)) return serve_conversation_read_one(c, job, item);
    for (size_t i = 0; i < PD_COUNT(types); i++)
        if (yyjson_equals_str(type, types[i].type)) return types[i].read(c, job, item);
    serve_param_ignore(job, yyjson_get_str(type));   /* of the server's tools */
    return true;
}

/* The instructions, and a text or a list of items. */
static bool responses_read_messages(struct serve_conversation *c, struct serve_job *job, yyjson_val *root)
{
    yyjson_val *instructions = yyjson_obj_get(root, "instructions"), *input = yyjson_obj_get(root, "input");
    if (instructions && !yyjson_is_null(instructions)
        && !responses_add_text(c, job, "system", "instructions", instructions))
        return false;
    if (yyjson_is_str(input)) return responses_add_text(c, job, "user", "input", input);
    if (!yyjson_is_arr(input)) return serve_refuse_type(&job->error, "input", "must be a text or a list of items");
    size_t i, n;
    yyjson_val *each;
    yyjson_arr_foreach(input, i, n, each) {
        if (!read_item(c, job, each)) return false;
    }
    if (c->thought.size) return serve_conversation_add(c, job, "assistant", "");   /* one that was cut */
    return yyjson_mut_arr_size(c->list) || serve_conversation_add(c, job, "user", "");
}

static const char *state_name(const struct serve_job *job)
{
    enum serve_finish finish = job->work.tasks[0].finish;
    return finish == SERVE_FINISH_NONE ? "in_progress" : finish == SERVE_FINISH_LENGTH ? "incomplete" : "completed";
}

static val_t *response_part(doc_t *doc, const struct serve_task *task, bool whole)
{
    val_t *part = yyjson_mut_obj(doc);
    yyjson_mut_obj_add_str(doc, part, "type", "output_text");
    yyjson_mut_obj_add_val(doc, part, "text", whole ? serve_text(doc, task->text.data, task->text.size)
                                                    : yyjson_mut_str(doc, ""));
    yyjson_mut_obj_add_val(doc, part, "annotations", yyjson_mut_arr(doc));
    yyjson_mut_obj_add_val(doc, part, "logprobs", yyjson_mut_arr(doc));
    return part;
}

/* Of the call that was made last, where it is a call's. */
static val_t *item_id(doc_t *doc, const struct serve_job *job, enum serve_item item)
{
    const struct serve_task *task = &job->work.tasks[0];
    char id[48];
    if (item == SERVE_ITEM_CALL) snprintf(id, sizeof id, "fc_%s", task->calls[task->n_calls - 1].id + strlen("call_"));
    else snprintf(id, sizeof id, "%s_%s", item == SERVE_ITEM_THOUGHT ? "rs" : "msg", job->id + strlen("resp_"));
    return yyjson_mut_strcpy(doc, id);
}

static val_t *call_item(doc_t *doc, const struct serve_job *job, const struct serve_call *call, bool whole)
{
    val_t *item = yyjson_mut_obj(doc);
    yyjson_val *space = serve_namespace(job, call);
    bool custom = serve_is_custom(job, call);
    char id[48];
    snprintf(id, sizeof id, "fc_%s", call->id + strlen("call_"));
    yyjson_mut_obj_add_strcpy(doc, item, "id", id);
    yyjson_mut_obj_add_str(doc, item, "type", custom ? "custom_tool_call" : "function_call");
    yyjson_mut_obj_add_str(doc, item, "status", !whole ? "in_progress" : call->complete ? "completed" : "incomplete");
    yyjson_mut_obj_add_strcpy(doc, item, "call_id", call->id);
    yyjson_mut_obj_add_strcpy(doc, item, "name", call->name);
    if (yyjson_is_str(space)) yyjson_mut_obj_add_val(doc, item, "namespace", yyjson_val_mut_copy(doc, space));
    yyjson_mut_obj_add_val(doc, item, custom ? "input" : "arguments",
                           !whole ? yyjson_mut_str(doc, "") : custom ? serve_custom_input(doc, call)
                               : serve_text(doc, call->arguments.data, call->arguments.size));
    return item;
}

static val_t *thought_part(doc_t *doc, const struct serve_task *task, bool whole)
{
    val_t *part = yyjson_mut_obj(doc);
    yyjson_mut_obj_add_str(doc, part, "type", "reasoning_text");
    yyjson_mut_obj_add_val(doc, part, "text", whole ? serve_text(doc, task->thought.data, task->thought.size)
                                                    : yyjson_mut_str(doc, ""));
    return part;
}

static val_t *thought_item(doc_t *doc, const struct serve_job *job, bool whole)
{
    val_t *item = yyjson_mut_obj(doc), *content = yyjson_mut_arr(doc);
    val_t *part = thought_part(doc, &job->work.tasks[0], whole);
    struct pd_buffer seal = {0};
    yyjson_mut_obj_add_val(doc, item, "id", item_id(doc, job, SERVE_ITEM_THOUGHT));
    yyjson_mut_obj_add_str(doc, item, "type", "reasoning");
    yyjson_mut_obj_add_str(doc, item, "status", !whole ? "in_progress" : serve_thought_is_cut(&job->work.tasks[0])
                                                ? "incomplete" : "completed");
    yyjson_mut_obj_add_val(doc, item, "summary", yyjson_mut_arr(doc));
    if (whole) yyjson_mut_arr_append(content, part);
    yyjson_mut_obj_add_val(doc, item, "content", content);
    if (!job->asks.seals_thoughts) return item;
    if (whole) serve_thought_seal(&seal, job->server->thoughts, yyjson_mut_obj_get(part, "text"), true);
    yyjson_mut_obj_add_val(doc, item, "encrypted_content", serve_buffer_text(doc, &seal));
    return item;
}

static val_t *response_item(doc_t *doc, const struct serve_job *job, bool whole)
{
    val_t *item = yyjson_mut_obj(doc), *content = yyjson_mut_arr(doc);
    yyjson_mut_obj_add_val(doc, item, "id", item_id(doc, job, SERVE_ITEM_MESSAGE));
    yyjson_mut_obj_add_str(doc, item, "type", "message");
    yyjson_mut_obj_add_str(doc, item, "status", !whole ? "in_progress" : job->work.tasks[0].n_calls ? "completed"
                                                : state_name(job));   /* before calls it is complete */
    yyjson_mut_obj_add_str(doc, item, "role", "assistant");
    if (whole) yyjson_mut_arr_append(content, response_part(doc, &job->work.tasks[0], true));
    yyjson_mut_obj_add_val(doc, item, "content", content);
    return item;
}

static val_t *response_usage(doc_t *doc, const struct serve_job *job)
{
    const struct serve_usage u = serve_usage_of(job);
    val_t *o = yyjson_mut_obj(doc), *in = yyjson_mut_obj(doc), *out = yyjson_mut_obj(doc);
    yyjson_mut_obj_add_uint(doc, in, "cached_tokens", u.cached);
    yyjson_mut_obj_add_uint(doc, in, "cache_write_tokens", 0);
    yyjson_mut_obj_add_uint(doc, out, "reasoning_tokens", u.thought);
    yyjson_mut_obj_add_uint(doc, o, "input_tokens", u.prompt);
    yyjson_mut_obj_add_val(doc, o, "input_tokens_details", in);
    yyjson_mut_obj_add_uint(doc, o, "output_tokens", u.reply);
    yyjson_mut_obj_add_val(doc, o, "output_tokens_details", out);
    yyjson_mut_obj_add_uint(doc, o, "total_tokens", u.prompt + u.reply);
    return o;
}

/* What the request says; clients expect an object of metadata. */
static val_t *echo(doc_t *doc, const struct serve_job *job, const char *name)
{
    yyjson_val *value = yyjson_obj_get(yyjson_doc_get_root(job->asks.document), name);
    if (value && !yyjson_is_null(value)) return yyjson_val_mut_copy(doc, value);
    return strcmp(name, "metadata") == 0 ? yyjson_mut_obj(doc) : yyjson_mut_null(doc);
}

/* An answer that only calls functions has none, and neither has one that ends within its thought. */
static bool has_message(const struct serve_job *job)
{
    const struct serve_task *task = &job->work.tasks[0];
    return task->text.size || !(task->n_calls || serve_thought_is_cut(task));
}

/* The request's tools, as it had them. */
static val_t *tools(doc_t *doc, const struct serve_job *job)
{
    yyjson_val *list = yyjson_obj_get(yyjson_doc_get_root(job->asks.document), "tools");
    return job->asks.tools ? yyjson_val_mut_copy(doc, list) : yyjson_mut_arr(doc);
}

static val_t *tool_choice(doc_t *doc, const struct serve_job *job)
{
    yyjson_val *choice = yyjson_obj_get(yyjson_doc_get_root(job->asks.document), "tool_choice");
    if (job->asks.tools && choice && !yyjson_is_null(choice)) return yyjson_val_mut_copy(doc, choice);
    return yyjson_mut_str(doc, "auto");
}

static val_t *response(doc_t *doc, const struct serve_job *job, bool whole)
{
    static const char *const echoed[] = {"instructions", "max_output_tokens", "metadata", "previous_response_id"};
    val_t *o = yyjson_mut_obj(doc), *output = yyjson_mut_arr(doc), *format = yyjson_mut_obj(doc),
          *text = yyjson_mut_obj(doc), *why = yyjson_mut_null(doc);
    if (whole && job->work.tasks[0].finish == SERVE_FINISH_LENGTH) {
        why = yyjson_mut_obj(doc);
        yyjson_mut_obj_add_str(doc, why, "reason", "max_output_tokens");
    }
    yyjson_mut_obj_add_str(doc, o, "id", job->id);
    yyjson_mut_obj_add_str(doc, o, "object", "response");
    yyjson_mut_obj_add_sint(doc, o, "created_at", job->created);
    yyjson_mut_obj_add_str(doc, o, "status", whole ? state_name(job) : "in_progress");
    yyjson_mut_obj_add_val(doc, o, "model", serve_string(doc, serve_job_model(job)));
    if (whole && job->work.tasks[0].thought.size) yyjson_mut_arr_append(output, thought_item(doc, job, true));
    if (whole && has_message(job)) yyjson_mut_arr_append(output, response_item(doc, job, true));
    for (size_t i = 0; whole && i < job->work.tasks[0].n_calls; i++)
        yyjson_mut_arr_append(output, call_item(doc, job, &job->work.tasks[0].calls[i], true));
    yyjson_mut_obj_add_val(doc, o, "output", output);
    yyjson_mut_obj_add_val(doc, o, "incomplete_details", why);
    yyjson_mut_obj_add_null(doc, o, "error");
    for (size_t i = 0; i < PD_COUNT(echoed); i++) yyjson_mut_obj_add_val(doc, o, echoed[i], echo(doc, job, echoed[i]));
    yyjson_mut_obj_add_bool(doc, o, "background", false);
    yyjson_mut_obj_add_bool(doc, o, "parallel_tool_calls", !job->asks.single_call);
    yyjson_mut_obj_add_bool(doc, o, "store", job->asks.stores);
    yyjson_mut_obj_add_real(doc, o, "temperature", (double)job->asks.sampling.temperature);
    yyjson_mut_obj_add_real(doc, o, "top_p", job->asks.sampling.top_p > 0 ? (double)job->asks.sampling.top_p : 1);
    yyjson_mut_obj_add_val(doc, o, "tool_choice", tool_choice(doc, job));
    yyjson_mut_obj_add_val(doc, o, "tools", tools(doc, job));
    yyjson_mut_obj_add_str(doc, o, "truncation", job->asks.drops ? "auto" : "disabled");
    const char *type = job->asks.schema ? "json_schema" : job->asks.json ? "json_object" : "text";
    yyjson_mut_obj_add_str(doc, format, "type", type);
    yyjson_mut_obj_add_val(doc, text, "format", format);
    yyjson_mut_obj_add_val(doc, o, "text", text);
    yyjson_mut_obj_add_val(doc, o, "usage", whole ? response_usage(doc, job) : yyjson_mut_null(doc));
    return o;
}

/* Takes over the value. `place`: 1: it is about the present item, 2: about its part, 3: about the text of an answer. */
static void send_response(struct serve_job *job, const char *type, doc_t *doc, const char *name, val_t *value,
                          int place)
{
    val_t *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, root, "type", type);
    yyjson_mut_obj_add_uint(doc, root, "sequence_number", job->events.n++);
    if (place > 0) yyjson_mut_obj_add_uint(doc, root, "output_index", job->events.n_items - 1);
    if (place > 1) yyjson_mut_obj_add_val(doc, root, "item_id", item_id(doc, job, job->events.item));
    if (place > 1 && job->events.item != SERVE_ITEM_CALL) yyjson_mut_obj_add_uint(doc, root, "content_index", 0);
    yyjson_mut_obj_add_val(doc, root, name, value);
    if (place > 2) yyjson_mut_obj_add_val(doc, root, "logprobs", yyjson_mut_arr(doc));
    serve_send_event(job, type, doc);
}

static void response_begin(struct serve_job *job)
{
    static const char *const types[] = {"response.created", "response.in_progress"};
    doc_t *doc;
    for (size_t i = 0; i < PD_COUNT(types); i++) {
        doc = cmd_json_new();
        send_response(job, types[i], doc, "response", response(doc, job, false), 0);
    }
}

static void begin_item(struct serve_job *job, enum serve_item item)
{
    bool thought = item == SERVE_ITEM_THOUGHT;
    doc_t *doc = cmd_json_new();
    job->events.item = item;
    job->events.n_items++;
    send_response(job, "response.output_item.added", doc, "item",
                  (thought ? thought_item : response_item)(doc, job, false), 1);
    doc = cmd_json_new();
    send_response(job, "response.content_part.added", doc, "part",
                  (thought ? thought_part : response_part)(doc, &job->work.tasks[0], false), 2);
}

static void end_item(struct serve_job *job)
{
    bool thought = job->events.item == SERVE_ITEM_THOUGHT;
    const struct pd_buffer *text = thought ? &job->work.tasks[0].thought : &job->work.tasks[0].text;
    if (job->events.item == SERVE_ITEM_NONE) return;
    doc_t *doc = cmd_json_new();
    send_response(job, thought ? "response.reasoning_text.done" : "response.output_text.done", doc, "text",
                  serve_text(doc, text->data, text->size), thought ? 2 : 3);
    doc = cmd_json_new();
    send_response(job, "response.content_part.done", doc, "part",
                  (thought ? thought_part : response_part)(doc, &job->work.tasks[0], true), 2);
    doc = cmd_json_new();
    send_response(job, "response.output_item.done", doc, "item",
                  (thought ? thought_item : response_item)(doc, job, true), 1);
    job->events.item = SERVE_ITEM_NONE;
}

static void begin_message(struct serve_job *job)
{
    if (job->events.item == SERVE_ITEM_MESSAGE) return;
    end_item(job);
    begin_item(job, SERVE_ITEM_MESSAGE);
}

/* It comes before the message. */
static void response_thought(struct serve_task *task, const char *text, size_t size)
{
    if (task->job->events.item == SERVE_ITEM_NONE) begin_item(task->job, SERVE_ITEM_THOUGHT);
    doc_t *doc = cmd_json_new();
    send_response(task->job, "response.reasoning_text.delta", doc, "delta", serve_text(doc, text, size), 2);
}

static void response_piece(struct serve_task *task, const char *text, size_t size)
{
    if (!size) return;
    begin_message(task->job);
    doc_t *doc = cmd_json_new();
    send_response(task->job, "response.output_text.delta", doc, "delta", serve_text(doc, text, size), 3);
}

static void end_call(struct serve_job *job, const struct serve_call *call)
{
    bool custom = serve_is_custom(job, call);
    doc_t *doc = cmd_json_new();
    if (custom) {   /* which is a text only when its JSON is whole */
        send_response(job, "response.custom_tool_call_input.delta", doc, "delta", serve_custom_input(doc, call), 2);
        doc = cmd_json_new();
        send_response(job, "response.custom_tool_call_input.done", doc, "input", serve_custom_input(doc, call), 2);
    } else send_response(job, "response.function_call_arguments.done", doc, "arguments",
                         serve_text(doc, call->arguments.data, call->arguments.size), 2);
    doc = cmd_json_new();
    send_response(job, "response.output_item.done", doc, "item", call_item(doc, job, call, true), 1);
    job->events.item = SERVE_ITEM_NONE;
}

static void response_call(struct serve_task *task, size_t i, const char *text, size_t size)
{
    struct serve_job *job = task->job;
    const struct serve_call *call = &task->calls[i];
    doc_t *doc = cmd_json_new();
    if (!call->begun) {
        end_item(job);
        job->events.item = SERVE_ITEM_CALL;
        job->events.n_items++;
        send_response(job, "response.output_item.added", doc, "item", call_item(doc, job, call, false), 1);
        doc = cmd_json_new();
    }
    if (size && !serve_is_custom(job, call))
        send_response(job, "response.function_call_arguments.delta", doc, "delta", serve_text(doc, text, size), 2);
    else yyjson_mut_doc_free(doc);
    if (call->complete) end_call(job, call);
}

static void response_end(struct serve_job *job)
{
    const struct serve_task *task = &job->work.tasks[0];
    bool cut = task->finish == SERVE_FINISH_LENGTH;
    if (job->events.item == SERVE_ITEM_CALL) end_call(job, &task->calls[task->n_calls - 1]);
    if (has_message(job) && !task->n_calls) begin_message(job);
    end_item(job);
    doc_t *doc = cmd_json_new();
    val_t *whole = response(doc, job, true);
    serve_stored_add(job, whole);   /* before the client knows that it can go on from it */
    send_response(job, cut ? "response.incomplete" : "response.completed", doc, "response", whole, 0);
}

static doc_t *response_body(struct serve_job *job)
{
    doc_t *doc = cmd_json_new();
    yyjson_mut_doc_set_root(doc, response(doc, job, true));
    serve_stored_add(job, yyjson_mut_doc_get_root(doc));
    return doc;
}

const struct serve_interface serve_wire_responses = {
    .id = SERVE_RESPONSES, .path = "/v1/responses", .kind = SERVE_CONVERSATION, .id_prefix = "resp_",
    .input = "input", .schema = "text", .errors = &serve_errors_openai, .stream_type = SERVE_EVENTS,
    .ping = ":\n\n",
    .read = serve_read_conversation, .read_messages = responses_read_messages,
    .begin = response_begin, .piece = response_piece, .thought = response_thought, .call = response_call,
    .end = response_end,
    .body = response_body,
};

/* OpenAI's chat completions: POST /v1/chat/completions. A thought comes as reasoning_content, and for clients of
 * OpenRouter as reasoning_details, too. */
#include "wire_.h"
#include "../job/job.h"

#include <string.h>

typedef yyjson_mut_doc doc_t;
typedef yyjson_mut_val val_t;

static bool chat_read_messages(struct serve_conversation *c, struct serve_job *job, yyjson_val *root)
{
    return serve_conversation_read(c, job, yyjson_obj_get(root, "messages"));
}

/* An event of a task. Takes over the delta. */
static void send_delta(struct serve_task *task, doc_t *doc, val_t *delta, size_t n_logprobs, bool first)
{
    struct serve_job *job = task->job;
    val_t *root, *choices;
    serve_completion_begin(doc, &root, &choices, job, "chat.completion.chunk");
    val_t *choice = yyjson_mut_arr_add_obj(doc, choices);
    yyjson_mut_obj_add_uint(doc, choice, "index", task->index);
    yyjson_mut_obj_add_val(doc, choice, "delta", delta);
    size_t sent = task->n_logprobs_sent;
    val_t *logprobs = n_logprobs > sent ? serve_chat_logprobs(doc, task, sent, n_logprobs) : yyjson_mut_null(doc);
    yyjson_mut_obj_add_val(doc, choice, "logprobs", logprobs);
    task->n_logprobs_sent = n_logprobs;
    if (first) serve_add_prompt_ids(doc, root, task);
    else serve_add_ids(doc, choice, task);
    if (first) serve_add_dropped(doc, root, job);
    yyjson_mut_obj_add_val(doc, choice, "finish_reason", serve_finish_reason(doc, task->finish));
    if (job->asks.include_usage) yyjson_mut_obj_add_null(doc, root, "usage");
    serve_send_event(job, NULL, doc);
}

/* [{"type": "reasoning.text", "text": ..., "format": "unknown", "index": 0}] where the client knows that. */
static void add_details(doc_t *doc, val_t *message, const struct serve_task *task, const char *text, size_t size)
{
    if (!task->job->asks.details_thoughts) return;
    val_t *o = yyjson_mut_arr_add_obj(doc, yyjson_mut_obj_add_arr(doc, message, "reasoning_details"));
    yyjson_mut_obj_add_str(doc, o, "type", "reasoning.text");
    yyjson_mut_obj_add_val(doc, o, "text", serve_text(doc, text, size));
    yyjson_mut_obj_add_str(doc, o, "format", "unknown");
    yyjson_mut_obj_add_uint(doc, o, "index", 0);
}

/* `member` of the delta: "content", or "reasoning_content". */
static void send(struct serve_task *task, const char *role, const char *member, const char *text, size_t size,
                 size_t n_logprobs)
{
    doc_t *doc = cmd_json_new();
    val_t *delta = yyjson_mut_obj(doc);
    if (role) yyjson_mut_obj_add_str(doc, delta, "role", role);
    if (task->finish == SERVE_FINISH_NONE || size)
        yyjson_mut_obj_add_val(doc, delta, member, serve_text(doc, text, size));
    if (strcmp(member, "content") != 0) add_details(doc, delta, task, text, size);
    send_delta(task, doc, delta, n_logprobs, role != NULL);
}

static void chat_begin(struct serve_job *job)
{
    for (size_t i = 0; i < job->work.n_tasks; i++) send(&job->work.tasks[i], "assistant", "content", "", 0, 0);
}

static void chat_piece(struct serve_task *task, const char *text, size_t size)
{
    send(task, NULL, "content", text, size, task->n_logprobs);
}

static void thought(struct serve_task *task, const char *text, size_t size)
{
    enum serve_finish finish = task->finish;
    if (task->job->asks.hides_thoughts) return;
    task->finish = SERVE_FINISH_NONE;   /* the answer's event tells it */
    send(task, NULL, "reasoning_content", text, size, task->n_logprobs_sent);
    task->finish = finish;
}

/* As llama.cpp's server tells it. */
static void chat_progress(struct serve_task *task, uint64_t n)
{
    val_t *root, *choices;
    doc_t *doc = serve_completion_new(&root, &choices, task->job, "chat.completion.chunk");
    val_t *o = yyjson_mut_obj_add_obj(doc, root, "prompt_progress");
    yyjson_mut_obj_add_uint(doc, o, "total", task->n_prompt);
    yyjson_mut_obj_add_uint(doc, o, "cache", task->n_cached);
    yyjson_mut_obj_add_uint(doc, o, "processed", n);
    yyjson_mut_obj_add_uint(doc, o, "time_ms", (uint64_t)(1e3 * (pd_now() - task->job->begun_s)));
    serve_send_event(task->job, NULL, doc);
}

/* {"id": ..., "type": "function", "function": {"name": ..., "arguments": ...}}, or of a custom tool {..., "type":
 * "custom", "custom": {"name": ..., "input": ...}}; `begins`: with what only the first event of a call has. */
static void add_call(doc_t *doc, val_t *chat_call, const struct serve_call *from, bool custom, bool begins, val_t *text)
{
    const char *type = custom ? "custom" : "function";
    val_t *tool = yyjson_mut_obj(doc);
    if (begins) yyjson_mut_obj_add_strcpy(doc, chat_call, "id", from->id);
    if (begins) yyjson_mut_obj_add_str(doc, chat_call, "type", type);
    if (begins) yyjson_mut_obj_add_strcpy(doc, tool, "name", from->name);
    yyjson_mut_obj_add_val(doc, tool, custom ? "input" : "arguments", text);
    yyjson_mut_obj_add_val(doc, chat_call, type, tool);
}

static void chat_call(struct serve_task *task, size_t i, const char *text, size_t size)
{
    const struct serve_call *from = &task->calls[i];
    bool custom = serve_is_custom(task->job, from);   /* whose text is there when its JSON is whole */
    if (from->begun && (custom ? !from->complete : !size)) return;   /* its end is told by what comes next */
    doc_t *doc = cmd_json_new();
    val_t *delta = yyjson_mut_obj(doc), *calls = yyjson_mut_arr(doc);
    yyjson_mut_obj_add_val(doc, delta, "tool_calls", calls);
    val_t *o = yyjson_mut_arr_add_obj(doc, calls);
    yyjson_mut_obj_add_uint(doc, o, "index", i);
    add_call(doc, o, from, custom, !from->begun, !custom ? serve_text(doc, text, size)
             : from->complete ? serve_custom_input(doc, from) : yyjson_mut_str(doc, ""));
    send_delta(task, doc, delta, task->n_logprobs, false);
}

static void add_calls(doc_t *doc, val_t *message, const struct serve_task *task)
{
    val_t *calls = yyjson_mut_arr(doc);
    for (size_t i = 0; i < task->n_calls; i++) {
        const struct serve_call *from = &task->calls[i];
        bool custom = serve_is_custom(task->job, from);
        val_t *o = yyjson_mut_arr_add_obj(doc, calls);
        add_call(doc, o, from, custom, true, custom ? serve_custom_input(doc, from)
                 : serve_text(doc, from->arguments.data, from->arguments.size));
    }
    yyjson_mut_obj_add_val(doc, message, "tool_calls", calls);
}

static void add_choice(doc_t *doc, val_t *choice, struct serve_task *task)
{
    val_t *message = yyjson_mut_obj(doc);
    bool no_text = task->n_calls && !task->text.size;
    yyjson_mut_obj_add_str(doc, message, "role", "assistant");
    yyjson_mut_obj_add_val(doc, message, "content",
                           no_text ? yyjson_mut_null(doc) : serve_text(doc, task->text.data, task->text.size));
    if (task->n_calls) add_calls(doc, message, task);
    if (task->thought.size && !task->job->asks.hides_thoughts) {
        yyjson_mut_obj_add_val(doc, message, "reasoning_content",
                               serve_text(doc, task->thought.data, task->thought.size));
        add_details(doc, message, task, task->thought.data, task->thought.size);
    }
    yyjson_mut_obj_add_null(doc, message, "refusal");
    yyjson_mut_obj_add_val(doc, choice, "message", message);
    yyjson_mut_obj_add_val(doc, choice, "logprobs", serve_chat_logprobs(doc, task, 0, task->n_logprobs));
}

static void end(struct serve_job *job) { serve_completion_end(job, "chat.completion.chunk"); }

static doc_t *chat_body(struct serve_job *job)
{
    val_t *root;
    doc_t *doc = serve_completion_whole(&root, job, "chat.completion", add_choice);
    serve_add_prompt_ids(doc, root, &job->work.tasks[0]);
    serve_add_dropped(doc, root, job);
    yyjson_mut_obj_add_val(doc, root, "usage", serve_openai_usage(doc, job));
    return doc;
}

const struct serve_interface serve_wire_chat = {
    .id = SERVE_CHAT, .path = "/v1/chat/completions", .kind = SERVE_CONVERSATION, .id_prefix = "chatcmpl-",
    .input = "messages", .schema = "response_format", .errors = &serve_errors_openai, .stream_type = SERVE_EVENTS,
    .ping = ":\n\n",
    .read = serve_read_conversation, .read_messages = chat_read_messages,
    .begin = chat_begin, .piece = chat_piece, .thought = thought, .progress = chat_progress, .call = chat_call,
    .end = end, .body = chat_body,
};

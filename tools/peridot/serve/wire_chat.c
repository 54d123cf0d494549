/* OpenAI's chat completions: POST /v1/chat/completions. A thought comes as reasoning_content. */
#include "messages.h"
#include "server.h"
#include "tokens.h"
#include "wire_openai.h"

typedef yyjson_mut_doc doc_t;
typedef yyjson_mut_val val_t;

static bool read_messages(struct serve_conversation *c, struct serve_job *job, yyjson_val *root)
{
    return serve_conversation_read(c, job, yyjson_obj_get(root, "messages"));
}

/* `member` of the delta: "content", or "reasoning_content". */
static void send(struct serve_task *task, const char *role, const char *member, const char *text, size_t size,
                 size_t n_logprobs)
{
    struct serve_job *job = task->job;
    val_t *root, *choices;
    doc_t *doc = serve_completion_new(&root, &choices, job, "chat.completion.chunk");
    val_t *choice = yyjson_mut_arr_add_obj(doc, choices), *delta = yyjson_mut_obj(doc);
    bool ends = task->finish != SERVE_FINISH_NONE;
    if (role) yyjson_mut_obj_add_str(doc, delta, "role", role);
    if (!ends || size) yyjson_mut_obj_add_val(doc, delta, member, serve_text(doc, text, size));
    yyjson_mut_obj_add_uint(doc, choice, "index", task->index);
    yyjson_mut_obj_add_val(doc, choice, "delta", delta);
    size_t first = task->n_logprobs_sent;
    val_t *logprobs = n_logprobs > first ? serve_chat_logprobs(doc, task, first, n_logprobs) : yyjson_mut_null(doc);
    yyjson_mut_obj_add_val(doc, choice, "logprobs", logprobs);
    task->n_logprobs_sent = n_logprobs;
    if (role) serve_add_prompt_ids(doc, root, task);
    else serve_add_ids(doc, choice, task);
    if (role) serve_add_dropped(doc, root, job);
    yyjson_mut_obj_add_val(doc, choice, "finish_reason", serve_finish_reason(doc, task->finish));
    if (job->include_usage) yyjson_mut_obj_add_null(doc, root, "usage");
    serve_send_event(job, NULL, doc);
}

static void begin(struct serve_job *job)
{
    for (size_t i = 0; i < job->n_tasks; i++) send(&job->tasks[i], "assistant", "content", "", 0, 0);
}

static void piece(struct serve_task *task, const char *text, size_t size)
{
    send(task, NULL, "content", text, size, task->n_logprobs);
}

static void thought(struct serve_task *task, const char *text, size_t size)
{
    enum serve_finish finish = task->finish;
    task->finish = SERVE_FINISH_NONE;   /* the answer's event tells it */
    send(task, NULL, "reasoning_content", text, size, task->n_logprobs_sent);
    task->finish = finish;
}

static void add_choice(doc_t *doc, val_t *choice, struct serve_task *task)
{
    val_t *message = yyjson_mut_obj(doc);
    yyjson_mut_obj_add_str(doc, message, "role", "assistant");
    yyjson_mut_obj_add_val(doc, message, "content", serve_text(doc, task->text.data, task->text.size));
    if (task->thought.size)
        yyjson_mut_obj_add_val(doc, message, "reasoning_content",
                               serve_text(doc, task->thought.data, task->thought.size));
    yyjson_mut_obj_add_null(doc, message, "refusal");
    yyjson_mut_obj_add_val(doc, choice, "message", message);
    yyjson_mut_obj_add_val(doc, choice, "logprobs", serve_chat_logprobs(doc, task, 0, task->n_logprobs));
}

static void end(struct serve_job *job) { serve_completion_end(job, "chat.completion.chunk"); }

static doc_t *body(struct serve_job *job)
{
    val_t *root;
    doc_t *doc = serve_completion_whole(&root, job, "chat.completion", add_choice);
    serve_add_prompt_ids(doc, root, &job->tasks[0]);
    serve_add_dropped(doc, root, job);
    yyjson_mut_obj_add_val(doc, root, "usage", serve_openai_usage(doc, job));
    return doc;
}

const struct serve_interface serve_wire_chat = {
    .id = SERVE_CHAT, .path = "/v1/chat/completions", .kind = SERVE_CONVERSATION, .id_prefix = "chatcmpl-",
    .input = "messages", .schema = "response_format", .errors = &serve_errors_openai, .stream_type = SERVE_EVENTS,
    .read = serve_read_conversation, .read_messages = read_messages,
    .begin = begin, .piece = piece, .thought = thought, .end = end, .body = body,
};

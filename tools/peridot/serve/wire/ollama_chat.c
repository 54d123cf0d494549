/* Ollama's POST /api/chat and /api/generate, which differ in the form of their requests and in where the text of an
 * answer is. A request without a message or prompt only asks for the model to be loaded. */
#include "../job/job.h"
#include "wire.h"
#include "wire_.h"

#include <string.h>

typedef yyjson_mut_doc doc_t;
typedef yyjson_mut_val val_t;

/* ---- answers ---- */

static bool is_chat(const struct serve_job *job) { return job->api->id == SERVE_OLLAMA_CHAT; }

/* Adds a text and a thought, of which one may be NULL. */
static void add_texts(doc_t *doc, val_t *root, const struct serve_job *job, val_t *text, val_t *thought)
{
    val_t *at = is_chat(job) ? yyjson_mut_obj_add_obj(doc, root, "message") : root;
    if (is_chat(job)) yyjson_mut_obj_add_str(doc, at, "role", "assistant");
    yyjson_mut_obj_add_val(doc, at, is_chat(job) ? "content" : "response", text ? text : yyjson_mut_str(doc, ""));
    if (thought) yyjson_mut_obj_add_val(doc, at, "thinking", thought);
}

static void add_logprobs(doc_t *doc, val_t *root, struct serve_task *task)
{
    size_t first = task->n_logprobs_sent;
    task->n_logprobs_sent = task->n_logprobs;
    if (task->n_logprobs == first) return;
    val_t *all = serve_chat_logprobs(doc, task, first, task->n_logprobs);
    yyjson_mut_obj_add_val(doc, root, "logprobs", yyjson_mut_obj_remove_key(all, "content"));
}

static void add_end(doc_t *doc, val_t *root, const struct serve_job *job)
{
    bool cut = job->work.tasks[0].finish == SERVE_FINISH_LENGTH;
    yyjson_mut_obj_add_bool(doc, root, "done", true);
    yyjson_mut_obj_add_str(doc, root, "done_reason", cut ? "length" : "stop");
    serve_ollama_add_costs(doc, root, job);
}

static void send(struct serve_task *task, val_t *root, doc_t *doc)
{
    add_logprobs(doc, root, task);
    yyjson_mut_obj_add_bool(doc, root, "done", false);
    serve_send_line(task->job, doc);
}

static void ollama_chat_piece(struct serve_task *task, const char *text, size_t size)
{
    val_t *root;
    if (size == 0 && task->n_logprobs == task->n_logprobs_sent) return;
    doc_t *doc = serve_ollama_new(&root, task->job);
    add_texts(doc, root, task->job, serve_text(doc, text, size), NULL);
    send(task, root, doc);
}

static void thought(struct serve_task *task, const char *text, size_t size)
{
    val_t *root;
    doc_t *doc = serve_ollama_new(&root, task->job);
    add_texts(doc, root, task->job, NULL, serve_text(doc, text, size));
    send(task, root, doc);
}

/* {"tool_calls": [{"id": ..., "function": {"index": ..., "name": ..., "arguments": an object}}]} of calls first ..
 * end - 1, but for one that was cut short: clients call whatever they find. */
static void add_calls(doc_t *doc, val_t *root, const struct serve_task *task, size_t first, size_t ollama_chat_end)
{
    val_t *calls = yyjson_mut_obj_add_arr(doc, yyjson_mut_obj_get(root, "message"), "tool_calls");
    for (size_t i = first; i < ollama_chat_end && task->calls[i].complete; i++) {
        const struct serve_call *ollama_chat_call = &task->calls[i];
        yyjson_doc *read = yyjson_read(ollama_chat_call->arguments.data, ollama_chat_call->arguments.size, 0);
        val_t *o = yyjson_mut_arr_add_obj(doc, calls), *function = yyjson_mut_obj(doc);
        yyjson_mut_obj_add_strcpy(doc, o, "id", ollama_chat_call->id);
        yyjson_mut_obj_add_uint(doc, function, "index", i);
        yyjson_mut_obj_add_strcpy(doc, function, "name", ollama_chat_call->name);
        yyjson_mut_obj_add_val(doc, function, "arguments",
                               read ? yyjson_val_mut_copy(doc, yyjson_doc_get_root(read)) : yyjson_mut_obj(doc));
        yyjson_mut_obj_add_val(doc, o, "function", function);
        yyjson_doc_free(read);
    }
}

/* A call comes whole. */
static void ollama_chat_call(struct serve_task *task, size_t i, const char *text, size_t size)
{
    val_t *root;
    (void)text, (void)size;
    if (!task->calls[i].complete) return;
    doc_t *doc = serve_ollama_new(&root, task->job);
    add_texts(doc, root, task->job, NULL, NULL);
    add_calls(doc, root, task, i, i + 1);
    send(task, root, doc);
}

static void ollama_chat_end(struct serve_job *job)
{
    val_t *root;
    doc_t *doc = serve_ollama_new(&root, job);
    add_texts(doc, root, job, NULL, NULL);
    add_end(doc, root, job);
    serve_send_line(job, doc);
}

static doc_t *ollama_chat_body(struct serve_job *job)
{
    struct serve_task *task = &job->work.tasks[0];
    val_t *root;
    doc_t *doc = serve_ollama_new(&root, job);
    add_texts(doc, root, job, serve_text(doc, task->text.data, task->text.size),
              task->thought.size ? serve_text(doc, task->thought.data, task->thought.size) : NULL);
    if (task->n_calls && task->calls[0].complete) add_calls(doc, root, task, 0, task->n_calls);
    add_logprobs(doc, root, task);
    add_end(doc, root, job);
    return doc;
}

/* ---- requests ---- */

/* To load the model: it is there. */
static bool answer_load(struct pd_buffer *out, struct serve_job *job)
{
    val_t *root;
    doc_t *doc = serve_ollama_new(&root, job);
    add_texts(doc, root, job, NULL, NULL);
    yyjson_mut_obj_add_bool(doc, root, "done", true);
    yyjson_mut_obj_add_str(doc, root, "done_reason", "load");
    serve_put_json(out, doc);
    return true;
}

static bool ollama_chat_read_messages(struct serve_conversation *c, struct serve_job *job, yyjson_val *root)
{
    return serve_conversation_read(c, job, yyjson_obj_get(root, "messages"));
}

/* As Ollama does, the oldest turns are left out where all do not fit, unless truncate is false. */
static bool read_chat(struct pd_buffer *out, struct serve_job *job, const peridot_vocab *vocab, yyjson_val *root)
{
    yyjson_val *messages = yyjson_obj_get(root, "messages");
    bool none = !messages || yyjson_is_null(messages) || (yyjson_is_arr(messages) && yyjson_arr_size(messages) == 0);
    if (none) return answer_load(out, job);
    job->asks.leaves_room = job->asks.drops = job->asks.truncates && job->server->args->full == SERVE_FULL_DROP;
    return serve_read_conversation(out, job, vocab, root);
}

static bool ollama_chat_read_prompt(struct serve_conversation *c, struct serve_job *job, yyjson_val *root)
{
    yyjson_val *system = yyjson_obj_get(root, "system"), *prompt = yyjson_obj_get(root, "prompt");
    if (yyjson_get_len(system) && !serve_conversation_add_content(c, job, "system", "system", system)) return false;
    return serve_conversation_add_seen(c, job, "user", "prompt", prompt, yyjson_obj_get(root, "images"));
}

/* Where it is raw, or has a suffix, the prompt is a text without a template. */
static bool read_generate(struct pd_buffer *out, struct serve_job *job, const peridot_vocab *vocab,
                          yyjson_val *root)
{
    yyjson_val *prompt = yyjson_obj_get(root, "prompt");
    bool none = !prompt || yyjson_is_null(prompt) || yyjson_equals_str(prompt, "");
    if (none && !job->pictures.n) return answer_load(out, job);
    if (!yyjson_is_str(prompt)) return serve_refuse_type(&job->error, "prompt", "must be a string");
    if (job->pictures.n && (job->asks.raw || job->asks.suffix))
        return serve_refuse(&job->error, 400, "unsupported_parameter", "images", "images are not supported with raw or "
                            "suffix");
    if (!job->asks.raw && !job->asks.suffix) return serve_read_conversation(out, job, vocab, root);
    job->kind = SERVE_TEXT;
    return serve_read_texts(out, job, vocab, root);
}

const struct serve_interface serve_wire_ollama_chat = {
    .id = SERVE_OLLAMA_CHAT, .path = "/api/chat", .kind = SERVE_CONVERSATION, .input = "messages", .schema = "format",
    .errors = &serve_errors_ollama, .stream_type = SERVE_LINES, .streams = true, .truncates = true,
    .read = read_chat, .read_messages = ollama_chat_read_messages,
    .piece = ollama_chat_piece, .thought = thought, .call = ollama_chat_call, .end = ollama_chat_end,
    .body = ollama_chat_body,
};
const struct serve_interface serve_wire_generate = {
    .id = SERVE_GENERATE, .path = "/api/generate", .kind = SERVE_CONVERSATION, .input = "prompt", .schema = "format",
    .errors = &serve_errors_ollama, .stream_type = SERVE_LINES, .streams = true, .truncates = true,
    .read = read_generate, .read_messages = ollama_chat_read_prompt,
    .piece = ollama_chat_piece, .thought = thought, .end = ollama_chat_end, .body = ollama_chat_body,
};

/* ---- wire ollama embed ---- */

/* Ollama's POST /api/embed, and /api/embeddings, which came before it and has one text. */

typedef yyjson_mut_doc doc_t;
typedef yyjson_mut_val val_t;

static doc_t *embed_body(struct serve_job *job)
{
    val_t *root;
    doc_t *doc = serve_ollama_new(&root, job);
    val_t *list = yyjson_mut_arr(doc);
    yyjson_mut_obj_remove_key(root, "created_at");
    for (size_t i = 0; i < job->work.n_tasks; i++) yyjson_mut_arr_append(list, serve_vector(doc, &job->work.tasks[i]));
    yyjson_mut_obj_add_val(doc, root, "embeddings", list);
    serve_ollama_add_costs(doc, root, job);
    return doc;
}

static doc_t *one_body(struct serve_job *job)
{
    doc_t *doc = cmd_json_new();
    val_t *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_val(doc, root, "embedding", serve_vector(doc, &job->work.tasks[0]));
    return doc;
}

static bool read_one(struct pd_buffer *out, struct serve_job *job, const peridot_vocab *vocab, yyjson_val *root)
{
    if (!yyjson_is_str(yyjson_obj_get(root, "prompt")))
        return serve_refuse_type(&job->error, "prompt", "must be a string");
    return serve_read_texts(out, job, vocab, root);
}

const struct serve_interface serve_wire_embed = {
    .id = SERVE_EMBED, .path = "/api/embed", .kind = SERVE_VECTORS, .input = "input",
    .errors = &serve_errors_ollama, .truncates = true, .read = serve_read_texts, .body = embed_body,
};
const struct serve_interface serve_wire_embed_one = {
    .id = SERVE_EMBED_ONE, .path = "/api/embeddings", .kind = SERVE_VECTORS, .input = "prompt",
    .errors = &serve_errors_ollama, .truncates = true, .read = read_one, .body = one_body,
};

#include "write.h"
#include "server.h"
#include "tokens.h"

#include <stdlib.h>
#include <string.h>

typedef yyjson_mut_doc doc_t;
typedef yyjson_mut_val val_t;

static const char *finish_name(enum serve_finish finish)
{
    static const char *const names[] = {
        [SERVE_FINISH_STOP] = "stop", [SERVE_FINISH_LENGTH] = "length"};
    return names[finish];
}

static val_t *text_of(doc_t *doc, const char *text) { return serve_text(doc, text, strlen(text)); }

static val_t *or_null(doc_t *doc, const char *text)
{
    return text ? yyjson_mut_str(doc, text) : yyjson_mut_null(doc);
}

/* ---- what answers share ---- */

struct usage {
    uint64_t prompt, cached, reply, thought;
};

static struct usage usage_of(const struct serve_job *job)
{
    struct usage u = {0};
    for (size_t i = 0; i < job->n_tasks; i++) {
        const struct serve_task *task = &job->tasks[i];
        if (i % job->n == 0) u.prompt += task->n_prompt, u.cached += task->n_cached;
        u.reply += task->n_reply;
        u.thought += task->n_thought;
    }
    return u;
}

static val_t *usage(doc_t *doc, const struct serve_job *job)
{
    const struct usage u = usage_of(job);
    val_t *o = yyjson_mut_obj(doc), *details = yyjson_mut_obj(doc);
    yyjson_mut_obj_add_uint(doc, o, "prompt_tokens", u.prompt);
    if (job->api != SERVE_EMBEDDINGS) yyjson_mut_obj_add_uint(doc, o, "completion_tokens", u.reply);
    yyjson_mut_obj_add_uint(doc, o, "total_tokens", u.prompt + u.reply);
    if (job->api == SERVE_EMBEDDINGS) return o;
    yyjson_mut_obj_add_uint(doc, details, "cached_tokens", u.cached);
    yyjson_mut_obj_add_val(doc, o, "prompt_tokens_details", details);
    if (u.thought) {
        details = yyjson_mut_obj(doc);
        yyjson_mut_obj_add_uint(doc, details, "reasoning_tokens", u.thought);
        yyjson_mut_obj_add_val(doc, o, "completion_tokens_details", details);
    }
    return o;
}

static void send_event(struct serve_job *job, const char *name, doc_t *doc)
{
    struct serve_buffer b = {0};
    if (name) serve_print(&b, "event: %s\n", name);
    serve_print(&b, "data: ");
    serve_put_json(&b, doc);
    serve_print(&b, "\n\n");
    serve_job_write(job, &b, false);
    serve_buffer_free(&b);
}

/* {"id": ..., "object": ..., "created": ..., "model": ..., "choices": []} */
static doc_t *completion(val_t **root, val_t **choices, const struct serve_job *job, const char *object)
{
    doc_t *doc = cmd_json_new();
    *root = yyjson_mut_obj(doc);
    *choices = yyjson_mut_arr(doc);
    yyjson_mut_doc_set_root(doc, *root);
    yyjson_mut_obj_add_str(doc, *root, "id", job->id);
    yyjson_mut_obj_add_str(doc, *root, "object", object);
    yyjson_mut_obj_add_sint(doc, *root, "created", job->created);
    yyjson_mut_obj_add_val(doc, *root, "model", text_of(doc, job->server->model_id));
    yyjson_mut_obj_add_val(doc, *root, "choices", *choices);
    return doc;
}

/* return_token_ids, as vLLM has it: the reply's since the last event; the prompt's stand beside the first of them, in a
 * chat beside its choices. The token that ends a text is not in it. */
static void add_ids(doc_t *doc, val_t *choice, struct serve_task *task)
{
    size_t first = task->n_ids_sent;
    if (!task->job->token_ids) return;
    yyjson_mut_obj_add_val(doc, choice, "token_ids",
                           serve_token_ids(doc, task->tokens + task->n_prompt + first, task->n_reply - first));
    task->n_ids_sent = task->n_reply;
}

static void add_prompt_ids(doc_t *doc, val_t *object, const struct serve_task *task)
{
    if (task->job->token_ids)
        yyjson_mut_obj_add_val(doc, object, "prompt_token_ids", serve_token_ids(doc, task->tokens, task->n_prompt));
}

/* How many messages were left out, for those who asked with `full`. */
static void add_dropped(doc_t *doc, val_t *root, const struct serve_job *job)
{
    if (job->leaves_room) yyjson_mut_obj_add_uint(doc, root, "dropped_messages", job->n_dropped);
}

/* ---- chat completions ---- */

/* `member` of the delta: "content", or "reasoning_content". */
static void send_chat(struct serve_task *task, const char *role, const char *member, const char *text, size_t size,
                      size_t n_logprobs)
{
    struct serve_job *job = task->job;
    val_t *root, *choices;
    doc_t *doc = completion(&root, &choices, job, "chat.completion.chunk");
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
    if (role) add_prompt_ids(doc, root, task);
    else add_ids(doc, choice, task);
    if (role) add_dropped(doc, root, job);
    yyjson_mut_obj_add_val(doc, choice, "finish_reason", or_null(doc, finish_name(task->finish)));
    if (job->include_usage) yyjson_mut_obj_add_null(doc, root, "usage");
    send_event(job, NULL, doc);
}

static void chat_begin(struct serve_job *job)
{
    for (size_t i = 0; i < job->n_tasks; i++) send_chat(&job->tasks[i], "assistant", "content", "", 0, 0);
}

static void chat_piece(struct serve_task *task, const char *text, size_t size)
{
    send_chat(task, NULL, "content", text, size, task->n_logprobs);
}

static void chat_thought(struct serve_task *task, const char *text, size_t size)
{
    enum serve_finish finish = task->finish;
    task->finish = SERVE_FINISH_NONE;   /* the answer's event tells it */
    send_chat(task, NULL, "reasoning_content", text, size, task->n_logprobs_sent);
    task->finish = finish;
}

static void chat_choice(doc_t *doc, val_t *choice, struct serve_task *task)
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

/* ---- completions ---- */

static void send_text(struct serve_task *task, const char *text, size_t size)
{
    struct serve_job *job = task->job;
    val_t *root, *choices;
    doc_t *doc = completion(&root, &choices, job, "text_completion");
    val_t *choice = yyjson_mut_arr_add_obj(doc, choices);
    yyjson_mut_obj_add_uint(doc, choice, "index", task->index);
    yyjson_mut_obj_add_val(doc, choice, "text", serve_text(doc, text, size));
    size_t first = task->n_logprobs_sent;
    yyjson_mut_obj_add_val(doc, choice, "logprobs", serve_text_logprobs(doc, task, first, task->n_logprobs));
    task->n_logprobs_sent = task->n_logprobs;
    if (!task->begun) add_prompt_ids(doc, choice, task);
    task->begun = true;
    add_ids(doc, choice, task);
    yyjson_mut_obj_add_val(doc, choice, "finish_reason", or_null(doc, finish_name(task->finish)));
    if (job->include_usage) yyjson_mut_obj_add_null(doc, root, "usage");
    send_event(job, NULL, doc);
}

static void text_choice(doc_t *doc, val_t *choice, struct serve_task *task)
{
    yyjson_mut_obj_add_val(doc, choice, "text", serve_text(doc, task->text.data, task->text.size));
    yyjson_mut_obj_add_val(doc, choice, "logprobs", serve_text_logprobs(doc, task, 0, task->n_logprobs));
}

/* The prompt comes before the reply. */
static void put_echo(struct serve_job *job)
{
    for (size_t i = 0; i < job->n_tasks; i++) {
        struct serve_task *task = &job->tasks[i];
        char *text;
        size_t size;
        if (peridot_decode(&text, &size, job->vocab, task->tokens, task->n_prompt) != PERIDOT_OK) continue;
        serve_put(&task->text, text, size);
        peridot_free(text);
    }
}

/* ---- the ends of both ---- */

static void completion_end(struct serve_job *job)
{
    static const char end[] = "data: [DONE]\n\n";
    struct serve_buffer b = {0};
    if (job->include_usage) {
        val_t *root, *choices;
        doc_t *doc = completion(&root, &choices, job,
                                job->api == SERVE_CHAT ? "chat.completion.chunk" : "text_completion");
        yyjson_mut_obj_add_val(doc, root, "usage", usage(doc, job));
        send_event(job, NULL, doc);
    }
    serve_put(&b, end, sizeof end - 1);
    serve_job_write(job, &b, false);
    serve_buffer_free(&b);
}

static doc_t *completion_body(struct serve_job *job)
{
    bool chat = job->api == SERVE_CHAT;
    val_t *root, *choices;
    doc_t *doc = completion(&root, &choices, job, chat ? "chat.completion" : "text_completion");
    for (size_t i = 0; i < job->n_tasks; i++) {
        val_t *choice = yyjson_mut_arr_add_obj(doc, choices);
        yyjson_mut_obj_add_uint(doc, choice, "index", i);
        (chat ? chat_choice : text_choice)(doc, choice, &job->tasks[i]);
        if (!chat) add_prompt_ids(doc, choice, &job->tasks[i]);
        add_ids(doc, choice, &job->tasks[i]);
        yyjson_mut_obj_add_val(doc, choice, "finish_reason", or_null(doc, finish_name(job->tasks[i].finish)));
    }
    if (chat) add_prompt_ids(doc, root, &job->tasks[0]);
    add_dropped(doc, root, job);
    yyjson_mut_obj_add_val(doc, root, "usage", usage(doc, job));
    return doc;
}

/* ---- embeddings ---- */

/* Little-endian floats. */
static val_t *base64(doc_t *doc, const struct serve_task *task)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = task->vector_size * sizeof(float);
    unsigned char *bytes = malloc(n + 3);
    struct serve_buffer b = {0};
    if (!bytes) return yyjson_mut_null(doc);
    memset(bytes, 0, n + 3);
    for (size_t i = 0; i < task->vector_size; i++) {
        const float value = (float)task->vector[i];
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        for (size_t k = 0; k < 4; k++) bytes[4 * i + k] = (unsigned char)(bits >> 8 * k);
    }
    for (size_t i = 0; i < n; i += 3) {
        uint32_t word = (uint32_t)bytes[i] << 16 | (uint32_t)bytes[i + 1] << 8 | bytes[i + 2];
        char four[4] = {digits[word >> 18], digits[word >> 12 & 63], digits[word >> 6 & 63], digits[word & 63]};
        if (i + 1 >= n) four[2] = '=';
        if (i + 2 >= n) four[3] = '=';
        serve_put(&b, four, 4);
    }
    val_t *value = serve_text(doc, b.data, b.size);
    serve_buffer_free(&b);
    free(bytes);
    return value;
}

static doc_t *embeddings_body(struct serve_job *job)
{
    doc_t *doc = cmd_json_new();
    val_t *root = yyjson_mut_obj(doc), *data = yyjson_mut_arr(doc);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, root, "object", "list");
    yyjson_mut_obj_add_val(doc, root, "data", data);
    for (size_t i = 0; i < job->n_tasks; i++) {
        struct serve_task *task = &job->tasks[i];
        val_t *o = yyjson_mut_arr_add_obj(doc, data), *vector = yyjson_mut_arr(doc);
        for (size_t k = 0; k < task->vector_size && !job->base64; k++)
            yyjson_mut_arr_add_real(doc, vector, (double)(float)task->vector[k]);
        yyjson_mut_obj_add_str(doc, o, "object", "embedding");
        yyjson_mut_obj_add_uint(doc, o, "index", i);
        yyjson_mut_obj_add_val(doc, o, "embedding", job->base64 ? base64(doc, task) : vector);
    }
    yyjson_mut_obj_add_val(doc, root, "model", text_of(doc, job->server->model_id));
    yyjson_mut_obj_add_val(doc, root, "usage", usage(doc, job));
    return doc;
}

/* ---- responses ---- */

static const char *state_name(const struct serve_job *job)
{
    enum serve_finish finish = job->tasks[0].finish;
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

static val_t *item_id(doc_t *doc, const struct serve_job *job, enum serve_item item)
{
    char id[48];
    snprintf(id, sizeof id, "%s_%s", item == SERVE_ITEM_THOUGHT ? "rs" : "msg", job->id + strlen("resp_"));
    return yyjson_mut_strcpy(doc, id);
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
    yyjson_mut_obj_add_val(doc, item, "id", item_id(doc, job, SERVE_ITEM_THOUGHT));
    yyjson_mut_obj_add_str(doc, item, "type", "reasoning");
    yyjson_mut_obj_add_str(doc, item, "status", whole ? "completed" : "in_progress");
    yyjson_mut_obj_add_val(doc, item, "summary", yyjson_mut_arr(doc));
    if (whole) yyjson_mut_arr_append(content, thought_part(doc, &job->tasks[0], true));
    yyjson_mut_obj_add_val(doc, item, "content", content);
    return item;
}

static val_t *response_item(doc_t *doc, const struct serve_job *job, bool whole)
{
    val_t *item = yyjson_mut_obj(doc), *content = yyjson_mut_arr(doc);
    yyjson_mut_obj_add_val(doc, item, "id", item_id(doc, job, SERVE_ITEM_MESSAGE));
    yyjson_mut_obj_add_str(doc, item, "type", "message");
    yyjson_mut_obj_add_str(doc, item, "status", whole ? state_name(job) : "in_progress");
    yyjson_mut_obj_add_str(doc, item, "role", "assistant");
    if (whole) yyjson_mut_arr_append(content, response_part(doc, &job->tasks[0], true));
    yyjson_mut_obj_add_val(doc, item, "content", content);
    return item;
}

static val_t *response_usage(doc_t *doc, const struct serve_job *job)
{
    const struct usage u = usage_of(job);
    val_t *o = yyjson_mut_obj(doc), *in = yyjson_mut_obj(doc), *out = yyjson_mut_obj(doc);
    yyjson_mut_obj_add_uint(doc, in, "cached_tokens", u.cached);
    yyjson_mut_obj_add_uint(doc, out, "reasoning_tokens", u.thought);
    yyjson_mut_obj_add_uint(doc, o, "input_tokens", u.prompt);
    yyjson_mut_obj_add_val(doc, o, "input_tokens_details", in);
    yyjson_mut_obj_add_uint(doc, o, "output_tokens", u.reply);
    yyjson_mut_obj_add_val(doc, o, "output_tokens_details", out);
    yyjson_mut_obj_add_uint(doc, o, "total_tokens", u.prompt + u.reply);
    return o;
}

static val_t *response(doc_t *doc, const struct serve_job *job, bool whole)
{
    static const char *const nulls[] = {"error", "instructions", "previous_response_id"};
    val_t *o = yyjson_mut_obj(doc), *output = yyjson_mut_arr(doc), *format = yyjson_mut_obj(doc),
          *text = yyjson_mut_obj(doc), *why = yyjson_mut_null(doc);
    if (whole && job->tasks[0].finish == SERVE_FINISH_LENGTH) {
        why = yyjson_mut_obj(doc);
        yyjson_mut_obj_add_str(doc, why, "reason", "max_output_tokens");
    }
    yyjson_mut_obj_add_str(doc, o, "id", job->id);
    yyjson_mut_obj_add_str(doc, o, "object", "response");
    yyjson_mut_obj_add_sint(doc, o, "created_at", job->created);
    yyjson_mut_obj_add_str(doc, o, "status", whole ? state_name(job) : "in_progress");
    yyjson_mut_obj_add_val(doc, o, "model", text_of(doc, job->server->model_id));
    if (whole && job->tasks[0].thought.size) yyjson_mut_arr_append(output, thought_item(doc, job, true));
    if (whole) yyjson_mut_arr_append(output, response_item(doc, job, true));
    yyjson_mut_obj_add_val(doc, o, "output", output);
    yyjson_mut_obj_add_val(doc, o, "incomplete_details", why);
    for (size_t i = 0; i < CMD_COUNT(nulls); i++) yyjson_mut_obj_add_null(doc, o, nulls[i]);
    yyjson_mut_obj_add_val(doc, o, "metadata", yyjson_mut_obj(doc));
    yyjson_mut_obj_add_bool(doc, o, "parallel_tool_calls", false);
    yyjson_mut_obj_add_bool(doc, o, "store", false);
    yyjson_mut_obj_add_real(doc, o, "temperature", (double)job->sampling.temperature);
    yyjson_mut_obj_add_real(doc, o, "top_p", job->sampling.top_p > 0 ? (double)job->sampling.top_p : 1);
    yyjson_mut_obj_add_str(doc, o, "tool_choice", "none");
    yyjson_mut_obj_add_val(doc, o, "tools", yyjson_mut_arr(doc));
    yyjson_mut_obj_add_str(doc, o, "truncation", "disabled");
    yyjson_mut_obj_add_str(doc, format, "type", job->schema ? "json_schema" : job->json ? "json_object" : "text");
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
    yyjson_mut_obj_add_uint(doc, root, "sequence_number", job->n_events++);
    if (place > 0)
        yyjson_mut_obj_add_uint(doc, root, "output_index", job->item == SERVE_ITEM_MESSAGE && job->tasks[0].thought.size);
    if (place > 1) yyjson_mut_obj_add_val(doc, root, "item_id", item_id(doc, job, job->item));
    if (place > 1) yyjson_mut_obj_add_uint(doc, root, "content_index", 0);
    yyjson_mut_obj_add_val(doc, root, name, value);
    if (place > 2) yyjson_mut_obj_add_val(doc, root, "logprobs", yyjson_mut_arr(doc));
    send_event(job, type, doc);
}

static void response_begin(struct serve_job *job)
{
    static const char *const types[] = {"response.created", "response.in_progress"};
    doc_t *doc;
    for (size_t i = 0; i < CMD_COUNT(types); i++) {
        doc = cmd_json_new();
        send_response(job, types[i], doc, "response", response(doc, job, false), 0);
    }
}

static void begin_item(struct serve_job *job, enum serve_item item)
{
    bool thought = item == SERVE_ITEM_THOUGHT;
    doc_t *doc = cmd_json_new();
    job->item = item;
    send_response(job, "response.output_item.added", doc, "item",
                  (thought ? thought_item : response_item)(doc, job, false), 1);
    doc = cmd_json_new();
    send_response(job, "response.content_part.added", doc, "part",
                  (thought ? thought_part : response_part)(doc, &job->tasks[0], false), 2);
}

static void end_item(struct serve_job *job)
{
    bool thought = job->item == SERVE_ITEM_THOUGHT;
    const struct serve_buffer *text = thought ? &job->tasks[0].thought : &job->tasks[0].text;
    doc_t *doc = cmd_json_new();
    send_response(job, thought ? "response.reasoning_text.done" : "response.output_text.done", doc, "text",
                  serve_text(doc, text->data, text->size), thought ? 2 : 3);
    doc = cmd_json_new();
    send_response(job, "response.content_part.done", doc, "part",
                  (thought ? thought_part : response_part)(doc, &job->tasks[0], true), 2);
    doc = cmd_json_new();
    send_response(job, "response.output_item.done", doc, "item",
                  (thought ? thought_item : response_item)(doc, job, true), 1);
}

static void begin_message(struct serve_job *job)
{
    if (job->item == SERVE_ITEM_MESSAGE) return;
    if (job->item == SERVE_ITEM_THOUGHT) end_item(job);
    begin_item(job, SERVE_ITEM_MESSAGE);
}

/* It comes before the message. */
static void response_thought(struct serve_task *task, const char *text, size_t size)
{
    if (task->job->item == SERVE_ITEM_NONE) begin_item(task->job, SERVE_ITEM_THOUGHT);
    doc_t *doc = cmd_json_new();
    send_response(task->job, "response.reasoning_text.delta", doc, "delta", serve_text(doc, text, size), 2);
}

static void response_piece(struct serve_task *task, const char *text, size_t size)
{
    begin_message(task->job);
    doc_t *doc = cmd_json_new();
    if (size) send_response(task->job, "response.output_text.delta", doc, "delta", serve_text(doc, text, size), 3);
    else yyjson_mut_doc_free(doc);
}

static void response_end(struct serve_job *job)
{
    bool cut = job->tasks[0].finish == SERVE_FINISH_LENGTH;
    begin_message(job);
    end_item(job);
    doc_t *doc = cmd_json_new();
    send_response(job, cut ? "response.incomplete" : "response.completed", doc, "response",
                  response(doc, job, true), 0);
}

static doc_t *response_body(struct serve_job *job)
{
    doc_t *doc = cmd_json_new();
    yyjson_mut_doc_set_root(doc, response(doc, job, true));
    return doc;
}

/* ---- all of them ---- */

static const struct format {
    void (*begin)(struct serve_job *job);
    void (*piece)(struct serve_task *task, const char *text, size_t size);
    void (*thought)(struct serve_task *task, const char *text, size_t size);   /* NULL: events have none */
    void (*end)(struct serve_job *job);
    doc_t *(*body)(struct serve_job *job);
} formats[SERVE_N_APIS] = {
    [SERVE_CHAT] = {chat_begin, chat_piece, chat_thought, completion_end, completion_body},
    [SERVE_COMPLETIONS] = {NULL, send_text, NULL, completion_end, completion_body},
    [SERVE_RESPONSES] = {response_begin, response_piece, response_thought, response_end, response_body},
    [SERVE_EMBEDDINGS] = {.body = embeddings_body},
};

static void send_thought(struct serve_task *task)
{
    size_t sent = task->n_thought_sent, size = task->thought.size - sent;
    task->n_thought_sent = task->thought.size;
    if (size && formats[task->job->api].thought)
        formats[task->job->api].thought(task, task->thought.data + sent, size);
}

static void send_rest(struct serve_task *task)
{
    size_t size = task->text.size - task->n_sent;
    const char *text = task->text.data ? task->text.data + task->n_sent : "";
    task->n_sent = task->text.size;
    formats[task->job->api].piece(task, text, size);
}

void serve_write_begin(struct serve_job *job)
{
    if (job->echo) put_echo(job);
    if (!job->stream) return;
    serve_job_begin(job, 200);
    if (formats[job->api].begin) formats[job->api].begin(job);
}

void serve_write_piece(struct serve_task *task)
{
    if (!task->job->stream) return;
    send_thought(task);
    if (task->text.size > task->n_sent) send_rest(task);
}

void serve_write_task_end(struct serve_task *task)
{
    if (!task->job->stream) return;
    send_thought(task);
    send_rest(task);
}

void serve_write_end(struct serve_job *job)
{
    struct serve_buffer b = {0};
    if (job->stream) formats[job->api].end(job);
    else serve_put_json(&b, formats[job->api].body(job));
    serve_job_begin(job, 200);
    serve_job_write(job, &b, true);
    serve_buffer_free(&b);
}

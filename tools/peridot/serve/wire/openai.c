/* What OpenAI's chat completions, completions and embeddings have in common. */
#include "wire_.h"
#include "../job/job.h"

typedef yyjson_mut_doc doc_t;
typedef yyjson_mut_val val_t;

val_t *serve_openai_usage(doc_t *doc, const struct serve_job *job)
{
    const struct serve_usage u = serve_usage_of(job);
    val_t *o = yyjson_mut_obj(doc), *details = yyjson_mut_obj(doc);
    yyjson_mut_obj_add_uint(doc, o, "prompt_tokens", u.prompt);
    if (serve_kind_writes(job->kind)) yyjson_mut_obj_add_uint(doc, o, "completion_tokens", u.reply);
    yyjson_mut_obj_add_uint(doc, o, "total_tokens", u.prompt + u.reply);
    if (!serve_kind_writes(job->kind)) return o;
    yyjson_mut_obj_add_uint(doc, details, "cached_tokens", u.cached);
    yyjson_mut_obj_add_val(doc, o, "prompt_tokens_details", details);
    if (u.thought) {
        details = yyjson_mut_obj(doc);
        yyjson_mut_obj_add_uint(doc, details, "reasoning_tokens", u.thought);
        yyjson_mut_obj_add_val(doc, o, "completion_tokens_details", details);
    }
    return o;
}

void serve_completion_begin(doc_t *doc, val_t **root, val_t **choices, const struct serve_job *job, const char *object)
{
    *root = yyjson_mut_obj(doc);
    *choices = yyjson_mut_arr(doc);
    yyjson_mut_doc_set_root(doc, *root);
    yyjson_mut_obj_add_str(doc, *root, "id", job->id);
    yyjson_mut_obj_add_str(doc, *root, "object", object);
    yyjson_mut_obj_add_sint(doc, *root, "created", job->created);
    yyjson_mut_obj_add_val(doc, *root, "model", serve_string(doc, serve_job_model(job)));
    yyjson_mut_obj_add_val(doc, *root, "choices", *choices);
}

doc_t *serve_completion_new(val_t **root, val_t **choices, const struct serve_job *job, const char *object)
{
    doc_t *doc = cmd_json_new();
    serve_completion_begin(doc, root, choices, job, object);
    return doc;
}

val_t *serve_finish_reason(doc_t *doc, enum serve_finish finish)
{
    static const char *const names[] = {
        [SERVE_FINISH_STOP] = "stop", [SERVE_FINISH_LENGTH] = "length", [SERVE_FINISH_CALLS] = "tool_calls"};
    return names[finish] ? yyjson_mut_str(doc, names[finish]) : yyjson_mut_null(doc);
}

doc_t *serve_completion_whole(val_t **root, struct serve_job *job, const char *object,
                              void (*add)(doc_t *doc, val_t *choice, struct serve_task *task))
{
    val_t *choices;
    doc_t *doc = serve_completion_new(root, &choices, job, object);
    for (size_t i = 0; i < job->work.n_tasks; i++) {
        struct serve_task *task = &job->work.tasks[i];
        val_t *choice = yyjson_mut_arr_add_obj(doc, choices);
        yyjson_mut_obj_add_uint(doc, choice, "index", i);
        add(doc, choice, task);
        serve_add_ids(doc, choice, task);
        yyjson_mut_obj_add_val(doc, choice, "finish_reason", serve_finish_reason(doc, task->finish));
    }
    return doc;
}

void serve_completion_end(struct serve_job *job, const char *object)
{
    static const char end[] = "data: [DONE]\n\n";
    struct pd_buffer b = {0};
    if (job->asks.include_usage) {
        val_t *root, *choices;
        doc_t *doc = serve_completion_new(&root, &choices, job, object);
        yyjson_mut_obj_add_val(doc, root, "usage", serve_openai_usage(doc, job));
        serve_send_event(job, NULL, doc);
    }
    pd_buffer_add(&b, end, sizeof end - 1);
    serve_job_write(job, &b, false);
    pd_buffer_free(&b);
}

void serve_add_ids(doc_t *doc, val_t *choice, struct serve_task *task)
{
    size_t first = task->n_ids_sent;
    if (!task->job->asks.token_ids) return;
    yyjson_mut_obj_add_val(doc, choice, "token_ids",
                           serve_token_ids(doc, task->tokens + task->n_prompt + first, task->n_reply - first));
    task->n_ids_sent = task->n_reply;
}

void serve_add_prompt_ids(doc_t *doc, val_t *object, const struct serve_task *task)
{
    if (task->job->asks.token_ids)
        yyjson_mut_obj_add_val(doc, object, "prompt_token_ids", serve_token_ids(doc, task->tokens, task->n_prompt));
}

void serve_add_dropped(doc_t *doc, val_t *root, const struct serve_job *job)
{
    if (job->asks.leaves_room) yyjson_mut_obj_add_uint(doc, root, "dropped_messages", job->work.n_dropped);
}

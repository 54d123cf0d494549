/* OpenAI's completions: POST /v1/completions. */
#include "server.h"
#include "texts.h"
#include "tokens.h"
#include "wire_openai.h"

typedef yyjson_mut_doc doc_t;
typedef yyjson_mut_val val_t;

static void piece(struct serve_task *task, const char *text, size_t size)
{
    struct serve_job *job = task->job;
    val_t *root, *choices;
    doc_t *doc = serve_completion_new(&root, &choices, job, "text_completion");
    val_t *choice = yyjson_mut_arr_add_obj(doc, choices);
    yyjson_mut_obj_add_uint(doc, choice, "index", task->index);
    yyjson_mut_obj_add_val(doc, choice, "text", serve_text(doc, text, size));
    size_t first = task->n_logprobs_sent;
    yyjson_mut_obj_add_val(doc, choice, "logprobs", serve_text_logprobs(doc, task, first, task->n_logprobs));
    task->n_logprobs_sent = task->n_logprobs;
    if (!task->begun) serve_add_prompt_ids(doc, choice, task);
    task->begun = true;
    serve_add_ids(doc, choice, task);
    yyjson_mut_obj_add_val(doc, choice, "finish_reason", serve_finish_reason(doc, task->finish));
    if (job->include_usage) yyjson_mut_obj_add_null(doc, root, "usage");
    serve_send_event(job, NULL, doc);
}

static void add_choice(doc_t *doc, val_t *choice, struct serve_task *task)
{
    yyjson_mut_obj_add_val(doc, choice, "text", serve_text(doc, task->text.data, task->text.size));
    yyjson_mut_obj_add_val(doc, choice, "logprobs", serve_text_logprobs(doc, task, 0, task->n_logprobs));
    serve_add_prompt_ids(doc, choice, task);
}

static void end(struct serve_job *job) { serve_completion_end(job, "text_completion"); }

static doc_t *body(struct serve_job *job)
{
    val_t *root;
    doc_t *doc = serve_completion_whole(&root, job, "text_completion", add_choice);
    yyjson_mut_obj_add_val(doc, root, "usage", serve_openai_usage(doc, job));
    return doc;
}

const struct serve_interface serve_wire_completions = {
    .id = SERVE_COMPLETIONS, .path = "/v1/completions", .kind = SERVE_TEXT, .id_prefix = "cmpl-",
    .input = "prompt", .schema = "response_format", .n_default = 16,
    .errors = &serve_errors_openai, .stream_type = SERVE_EVENTS,
    .ping = ":\n\n", .read = serve_read_texts,
    .piece = piece, .end = end, .body = body,
};

/* OpenAI's completions: POST /v1/completions. */
#include "../job/job.h"
#include "wire.h"
#include "wire_.h"

#include <stdlib.h>

typedef yyjson_mut_doc doc_t;
typedef yyjson_mut_val val_t;

static void completions_piece(struct serve_task *task, const char *text, size_t size)
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
    if (job->asks.include_usage) yyjson_mut_obj_add_null(doc, root, "usage");
    serve_send_event(job, NULL, doc);
}

static void add_choice(doc_t *doc, val_t *choice, struct serve_task *task)
{
    yyjson_mut_obj_add_val(doc, choice, "text", serve_text(doc, task->text.data, task->text.size));
    yyjson_mut_obj_add_val(doc, choice, "logprobs", serve_text_logprobs(doc, task, 0, task->n_logprobs));
    serve_add_prompt_ids(doc, choice, task);
}

static void end(struct serve_job *job) { serve_completion_end(job, "text_completion"); }

static doc_t *completions_body(struct serve_job *job)
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
    .piece = completions_piece, .end = end, .body = completions_body,
};

/* ---- wire embeddings ---- */

/* OpenAI's embeddings: POST /v1/embeddings. */

typedef yyjson_mut_doc doc_t;
typedef yyjson_mut_val val_t;

static doc_t *embeddings_body(struct serve_job *job)
{
    doc_t *doc = cmd_json_new();
    val_t *root = yyjson_mut_obj(doc), *data = yyjson_mut_arr(doc);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, root, "object", "list");
    yyjson_mut_obj_add_val(doc, root, "data", data);
    for (size_t i = 0; i < job->work.n_tasks; i++) {
        struct serve_task *task = &job->work.tasks[i];
        val_t *o = yyjson_mut_arr_add_obj(doc, data);
        yyjson_mut_obj_add_str(doc, o, "object", "embedding");
        yyjson_mut_obj_add_uint(doc, o, "index", i);
        yyjson_mut_obj_add_val(doc, o, "embedding", (job->asks.base64 ? serve_vector_base64 : serve_vector)(doc, task));
    }
    yyjson_mut_obj_add_val(doc, root, "model", serve_string(doc, serve_job_model(job)));
    yyjson_mut_obj_add_val(doc, root, "usage", serve_openai_usage(doc, job));
    return doc;
}

const struct serve_interface serve_wire_embeddings = {
    .id = SERVE_EMBEDDINGS, .path = "/v1/embeddings", .kind = SERVE_VECTORS, .input = "input",
    .errors = &serve_errors_openai, .read = serve_read_texts, .body = embeddings_body,
};

/* ---- wire rerank ---- */

/* POST /v1/rerank, as Jina, Cohere, vLLM and llama.cpp's server have it: how well documents answer a query. */

typedef yyjson_mut_doc doc_t;
typedef yyjson_mut_val val_t;

/* A document is a string, or an object with one. */
static yyjson_val *completions_text_of(yyjson_val *document)
{
    return yyjson_is_obj(document) ? yyjson_obj_get(document, "text") : document;
}

static bool read_document(struct serve_job *job, yyjson_val *document)
{
    int32_t *ids;
    size_t n;
    const char *text = serve_param_text(job, job->api->input, completions_text_of(document));
    if (!text) return false;
    peridot_encode_limit limit = serve_limit(job);
    job->asks.ranking.limit = &limit;
    peridot_status status = cmd_ranking_encode(&ids, &n, &job->asks.ranking, text);
    job->asks.ranking.limit = NULL;
    if (status != PERIDOT_OK) return serve_refuse_encoding(job, &limit, status);
    bool good = serve_tasks_add(job, ids, n);
    free(ids);
    return good;
}

static bool read_documents(struct pd_buffer *out, struct serve_job *job, const peridot_vocab *vocab,
                           yyjson_val *root)
{
    const char *name = job->api->input, *query = yyjson_get_str(yyjson_obj_get(root, "query"));
    yyjson_val *documents = yyjson_obj_get(root, name), *each;
    size_t i, n;
    (void)out;
    if (!query) return serve_refuse_type(&job->error, "query", "is required");
    if (!documents) return serve_refuse_type(&job->error, name, "is required");
    if (!yyjson_is_arr(documents))
        return serve_refuse_type(&job->error, name, "must be a list of strings, or of objects with a text");
    const char *instruct = yyjson_get_str(yyjson_obj_get(root, "instruct"));
    peridot_status status = cmd_ranking_begin(&job->asks.ranking, vocab, job->model->rank_labels, instruct, query);
    if (status != PERIDOT_OK) return serve_refuse_status(&job->error, status);
    if (!serve_tasks_make(job, yyjson_arr_size(documents))) return false;
    yyjson_arr_foreach(documents, i, n, each)
        if (!read_document(job, each)) return serve_refuse_element(&job->error, name, i);
    return true;
}

static int by_score(const void *left, const void *right)
{
    const struct serve_task *a = *(const struct serve_task *const *)left, *b = *(const struct serve_task *const *)right;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static void add_results(doc_t *doc, val_t *results, const struct serve_job *job)
{
    const struct serve_task **best = malloc(job->work.n_tasks * sizeof *best);
    yyjson_val *documents = yyjson_obj_get(yyjson_doc_get_root(job->asks.document), job->api->input);
    if (!best) {
        cmd_json_fail();
        return;
    }
    for (size_t i = 0; i < job->work.n_tasks; i++) best[i] = &job->work.tasks[i];
    qsort(best, job->work.n_tasks, sizeof *best, by_score);
    for (size_t i = 0; i < job->work.n_tasks && (job->asks.top_n == 0 || i < job->asks.top_n); i++) {
        val_t *o = yyjson_mut_arr_add_obj(doc, results);
        yyjson_mut_obj_add_uint(doc, o, "index", best[i]->index);
        yyjson_mut_obj_add_real(doc, o, "relevance_score", best[i]->score);
        if (!job->asks.returns_documents) continue;
        val_t *document = yyjson_mut_obj(doc);
        const char *text = yyjson_get_str(completions_text_of(yyjson_arr_get(documents, best[i]->index)));
        yyjson_mut_obj_add_val(doc, document, "text", serve_string(doc, text));
        yyjson_mut_obj_add_val(doc, o, "document", document);
    }
    free(best);
}

static doc_t *rerank_body(struct serve_job *job)
{
    doc_t *doc = cmd_json_new();
    val_t *root = yyjson_mut_obj(doc), *results = yyjson_mut_arr(doc);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_val(doc, root, "model", serve_string(doc, job->model->id));
    yyjson_mut_obj_add_str(doc, root, "object", "list");
    yyjson_mut_obj_add_val(doc, root, "usage", serve_openai_usage(doc, job));
    yyjson_mut_obj_add_val(doc, root, "results", results);
    add_results(doc, results, job);
    return doc;
}

const struct serve_interface serve_wire_rerank = {
    .id = SERVE_RERANK, .path = "/v1/rerank", .kind = SERVE_SCORES, .input = "documents",
    .errors = &serve_errors_openai, .read = read_documents, .body = rerank_body,
};

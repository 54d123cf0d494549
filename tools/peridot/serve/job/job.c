#include "job.h"
#include "../../base/base.h"

#include <microhttpd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct serve_job *serve_job_new(struct serve_server *server, const struct serve_interface *api)
{
    struct serve_job *job = calloc(1, sizeof *job);
    if (!job) return NULL;
    job->server = server;
    job->model = server->models;
    job->api = api;
    job->kind = api->kind;
    job->n_owners = 1;
    job->socket = -1;
    job->begun_s = job->written_s = cmd_now();
    job->ping_s = 10;
    job->created = (int64_t)time(NULL);
    pthread_mutex_init(&job->lock, NULL);
    return job;
}

const char *serve_job_model(const struct serve_job *job) { return job->adapter ? job->adapter : job->model->id; }

void serve_job_own(struct serve_job *job) { job->n_owners++; }

static void free_task(struct serve_task *task)
{
    free(task->tokens);
    serve_buffer_free(&task->text);
    serve_buffer_free(&task->thought);
    for (size_t i = 0; i < task->n_calls; i++) serve_buffer_free(&task->calls[i].arguments);
    free(task->calls);
    free(task->logprobs);
    free(task->row);
    free(task->vector);
}

bool serve_job_refuse_schema(struct serve_job *job, int status, const char *sentence)
{
    if (job->tools) return serve_refuse(&job->error, status, "invalid_function_parameters", "tools", "%s", sentence);
    return serve_refuse(&job->error, status, "invalid_json_schema", job->api->schema, "%s", sentence);
}

bool serve_job_refuse_picture(struct serve_job *job, const char *name, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return serve_refuse(&job->error, 400, "invalid_value", job->api->input, "%s: %s", name, text);
}

static peridot_status compile_tools(struct serve_job *job, const peridot_vocab *vocab, uint32_t effort)
{
    const char *answer = job->schema ? job->schema : job->json ? "{\"type\": \"object\"}" : NULL;
    const peridot_tools_params params = {.size = sizeof params, .json = job->tools, .json_size = strlen(job->tools),
        .choice = job->calls_required ? PERIDOT_TOOLS_REQUIRED : PERIDOT_TOOLS_AUTO, .name = job->tool_name,
        .single = job->single_call, .template_name = job->model->template_name, .schema = answer,
        .schema_size = answer ? strlen(answer) : 0, .effort = effort, .loosen = true};
    return peridot_tools_create(&job->compiled, vocab, &params);
}

peridot_status serve_job_compile(struct serve_job *job, const peridot_vocab *vocab, uint32_t effort)
{
    peridot_status status = PERIDOT_OK;
    if (job->tools) status = compile_tools(job, vocab, effort);
    else if (job->schema)
        status = peridot_grammar_json_schema_within(&job->grammar, vocab, job->schema, strlen(job->schema), effort);
    else if (job->json) status = peridot_grammar_json(&job->grammar, vocab);
    if (status != PERIDOT_OK)
        serve_job_refuse_schema(job, status == PERIDOT_ERROR_MEMORY ? 500 : 400, peridot_last_error());
    return status;
}

static void free_pictures(struct serve_job *job)
{
    if (job->free_pictures) job->free_pictures(job);
    job->free_pictures = NULL;
}

void serve_job_drop(struct serve_job *job)
{
    if (--job->n_owners > 0) return;
    serve_pings_remove(&job->server->pings, job);
    if (job->is_long) job->server->n_long--;
    free_pictures(job);
    serve_stored_leave(job);
    for (size_t i = 0; i < job->n_tasks; i++) free_task(&job->tasks[i]);
    free(job->tasks);
    free(job->bias);
    free(job->schema);
    free(job->variables);
    free(job->tools);
    free(job->shown);
    peridot_grammar_free(job->grammar);
    peridot_tools_free(job->compiled);
    peridot_vocab_close(job->vocab);
    yyjson_doc_free(job->document);
    serve_buffer_free(&job->body);
    serve_buffer_free(&job->out);
    pthread_mutex_destroy(&job->lock);
    free(job);
}

/* Under the lock. An answer that does not come piece by piece, as an error, begins when all of it is there. */
static void wake(struct serve_job *job)
{
    if (!job->suspended || !serve_job_is_ready(job)) return;
    job->suspended = false;
    MHD_resume_connection(job->connection);
}

bool serve_job_is_gone(struct serve_job *job)
{
    pthread_mutex_lock(&job->lock);
    if (job->socket >= 0 && cmd_socket_is_closed(job->socket)) job->closed = true;
    pthread_mutex_unlock(&job->lock);
    return job->closed;
}

bool serve_job_is_awaited(struct serve_job *job)
{
    if (job->server->stopping) return serve_refuse(&job->error, 503, NULL, NULL, "the server is shutting down");
    return !serve_job_is_gone(job) || serve_refuse(&job->error, 503, NULL, NULL, "nobody waits for the answer");
}

bool serve_job_is_ready(const struct serve_job *job) { return job->done || (job->status == 200 && job->stream); }

void serve_job_begin(struct serve_job *job, int status)
{
    pthread_mutex_lock(&job->lock);
    if (!job->status) job->status = status;
    wake(job);
    pthread_mutex_unlock(&job->lock);
}

void serve_job_write(struct serve_job *job, const struct serve_buffer *more, bool end)
{
    if (end) free_pictures(job);   /* the client may take its time to read the answer */
    pthread_mutex_lock(&job->lock);
    if (more) serve_put(&job->out, more->data, more->size);
    job->written_s = cmd_now();
    job->out.failed = job->out.failed || (more && more->failed);
    job->done = job->done || end;
    wake(job);
    pthread_mutex_unlock(&job->lock);
}

void serve_job_ping(struct serve_job *job, double now)
{
    const char *text = job->api->ping;
    pthread_mutex_lock(&job->lock);
    if (!job->done && job->out.size == job->n_taken && now - job->written_s > (double)job->ping_s) {
        serve_put(&job->out, text, strlen(text));
        job->written_s = now;
        wake(job);
    }
    pthread_mutex_unlock(&job->lock);
}

void serve_job_fail(struct serve_job *job)
{
    struct serve_buffer text = {0};
    bool begun = job->status != 0;
    if (begun) serve_print(&text, "%s", job->api->errors->before);
    job->api->errors->put(&text, &job->error);
    if (begun) serve_print(&text, "%s", job->api->errors->after);
    serve_job_begin(job, job->error.status);
    serve_job_write(job, &text, true);
    serve_buffer_free(&text);
}

void serve_job_answer(struct serve_job *job, const struct serve_buffer *body)
{
    serve_job_begin(job, 200);
    serve_job_write(job, body, true);
}

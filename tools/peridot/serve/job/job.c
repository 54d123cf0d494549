/* A job is a request of HTTP from its body to its answer. Its parts are structs, each with a sentence on who may touch
 * it when; the connection may go away at any time. Tasks are what the model does: one text that is written, or one that
 * is read. */
#include "job.h"
#include "job_.h"
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
    job->answer.socket = -1;
    job->begun_s = job->answer.written_s = pd_now();
    job->asks.ping_s = 10;
    job->created = (int64_t)time(NULL);
    pthread_mutex_init(&job->answer.lock, NULL);
    return job;
}

const char *serve_job_model(const struct serve_job *job)
{
    return job->asks.adapter ? job->asks.adapter : job->model->id;
}

void serve_job_own(struct serve_job *job) { job->n_owners++; }

static void free_task(struct serve_task *task)
{
    free(task->tokens);
    pd_buffer_free(&task->text);
    pd_buffer_free(&task->thought);
    for (size_t i = 0; i < task->n_calls; i++) pd_buffer_free(&task->calls[i].arguments);
    free(task->calls);
    free(task->logprobs);
    free(task->row);
    free(task->vector);
}

bool serve_refuse_memory(struct serve_job *job)
{
    return serve_refuse(&job->error, 500, NULL, NULL, "out of memory");
}

bool serve_job_refuse_schema(struct serve_job *job, int status, const char *sentence)
{
    if (job->asks.tools)
        return serve_refuse(&job->error, status, "invalid_function_parameters", "tools", "%s", sentence);
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
    const struct serve_asks *asks = &job->asks;
    const char *answer = asks->schema ? asks->schema : asks->json ? "{\"type\": \"object\"}" : NULL;
    const peridot_tools_params params = {.size = sizeof params, .json = asks->tools, .json_size = strlen(asks->tools),
        .choice = asks->calls_required ? PERIDOT_TOOLS_REQUIRED : PERIDOT_TOOLS_AUTO, .name = asks->tool_name,
        .single = asks->single_call, .template_name = job->model->template_name, .schema = answer,
        .schema_size = answer ? strlen(answer) : 0, .effort = effort, .loosen = true};
    return peridot_tools_create(&job->work.compiled, vocab, &params);
}

peridot_status serve_job_compile(struct serve_job *job, const peridot_vocab *vocab, uint32_t effort)
{
    const char *schema = job->asks.schema;
    peridot_grammar **grammar = &job->work.grammar;
    peridot_status status = PERIDOT_OK;
    if (job->asks.tools) status = compile_tools(job, vocab, effort);
    else if (schema) status = peridot_grammar_json_schema_within(grammar, vocab, schema, strlen(schema), effort);
    else if (job->asks.json) status = peridot_grammar_json(grammar, vocab);
    if (status != PERIDOT_OK)
        serve_job_refuse_schema(job, status == PERIDOT_ERROR_MEMORY ? 500 : 400, peridot_last_error());
    return status;
}

static void free_pictures(struct serve_job *job)
{
    if (job->pictures.free) job->pictures.free(job);
    job->pictures.free = NULL;
}

void serve_job_drop(struct serve_job *job)
{
    if (--job->n_owners > 0) return;
    serve_pings_remove(&job->server->pings, job);
    if (job->body.is_long) job->server->n_long--;
    free_pictures(job);
    serve_stored_leave(job);
    serve_streams_drop(job);
    for (size_t i = 0; i < job->work.n_tasks; i++) free_task(&job->work.tasks[i]);
    free(job->work.tasks);
    free(job->asks.bias);
    free(job->asks.schema);
    free(job->asks.reply);
    free(job->asks.variables);
    free(job->asks.tools);
    free(job->asks.shown);
    peridot_grammar_free(job->work.grammar);
    peridot_tools_free(job->work.compiled);
    peridot_vocab_close(job->work.vocab);
    yyjson_doc_free(job->asks.document);
    pd_buffer_free(&job->body.text);
    pd_buffer_free(&job->answer.out);
    pthread_mutex_destroy(&job->answer.lock);
    free(job);
}

/* Under the lock. An answer that does not come piece by piece, as an error, begins when all of it is there. */
static void wake(struct serve_job *job)
{
    struct serve_answer *a = &job->answer;
    if (!a->suspended || !serve_job_is_ready(job)) return;
    a->suspended = false;
    MHD_resume_connection(a->connection);
}

bool serve_job_is_gone(struct serve_job *job)
{
    pthread_mutex_lock(&job->answer.lock);
    bool looks = job->answer.socket >= 0 && !job->stream;
    if (looks && cmd_socket_is_closed(job->answer.socket)) job->closed = true;
    pthread_mutex_unlock(&job->answer.lock);
    return job->closed;
}

bool serve_job_is_awaited(struct serve_job *job)
{
    if (job->server->stopping) return serve_refuse(&job->error, 503, NULL, NULL, "the server is shutting down");
    return !serve_job_is_gone(job) || serve_refuse(&job->error, 503, NULL, NULL, "nobody waits for the answer");
}

bool serve_job_is_ready(const struct serve_job *job)
{
    return job->answer.done || (job->answer.status == 200 && job->asks.stream);
}

void serve_job_begin(struct serve_job *job, int status)
{
    pthread_mutex_lock(&job->answer.lock);
    if (!job->answer.status) job->answer.status = status;
    wake(job);
    pthread_mutex_unlock(&job->answer.lock);
}

void serve_job_write(struct serve_job *job, const struct pd_buffer *more, bool end)
{
    struct serve_answer *a = &job->answer;
    if (end) free_pictures(job);   /* the client may take its time to read the answer */
    pthread_mutex_lock(&a->lock);
    serve_streams_write(job, more ? more->data : NULL, more ? more->size : 0, end);
    if (more && !(job->stream && !a->connection)) pd_buffer_add(&a->out, more->data, more->size);
    a->written_s = pd_now();
    a->out.failed = a->out.failed || (more && more->failed);
    a->done = a->done || end;
    wake(job);
    pthread_mutex_unlock(&a->lock);
}

void serve_job_ping(struct serve_job *job, double now)
{
    struct serve_answer *a = &job->answer;
    const char *text = job->api->ping;
    pthread_mutex_lock(&a->lock);
    if (!a->done && a->out.size == a->n_taken && now - a->written_s > (double)job->asks.ping_s) {
        serve_streams_write(job, text, strlen(text), false);
        if (!job->stream || a->connection) pd_buffer_add(&a->out, text, strlen(text));
        a->written_s = now;
        wake(job);
    }
    pthread_mutex_unlock(&a->lock);
}

void serve_job_fail(struct serve_job *job)
{
    struct pd_buffer text = {0};
    bool begun = job->answer.status != 0;
    if (begun) pd_buffer_print(&text, "%s", job->api->errors->before);
    job->api->errors->put(&text, &job->error);
    if (begun) pd_buffer_print(&text, "%s", job->api->errors->after);
    serve_job_begin(job, job->error.status);
    serve_job_write(job, &text, true);
    pd_buffer_free(&text);
}

void serve_job_answer(struct serve_job *job, const struct pd_buffer *body)
{
    serve_job_begin(job, 200);
    serve_job_write(job, body, true);
}

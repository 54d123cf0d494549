/* The tools of --tools, which the page lets a model call. A tool may take long, so calls have threads of their own:
 * neither HTTP nor replies wait for them. Calls at one server come one after another, others run at the same time. A
 * call ends early when its connection is closed, or the server ends. */
#include "../../base/base.h"
#include "../../toolbox/toolbox.h"
#include "../job/job.h"
#include "stages.h"

#include <stdlib.h>
#include <string.h>

enum { N_THREADS = 4, MAX_WAITING = 64 };

struct worker {
    struct serve_tools *tools;
    pthread_t thread;
    struct serve_job *job;     /* NULL: it waits for one */
    const void *server;        /* of the toolbox, which the job calls; NULL: none */
};

struct serve_tools {
    struct serve_server *server;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct worker workers[N_THREADS];
    size_t n_workers, n_running, n_waiting;
    struct serve_queue queue;
    bool refreshes;            /* the toolbox changes: no job begins */
    atomic_bool stop;
};

/* ---- who is next; under the lock ---- */

/* Which server of the toolbox a job calls. */
static const void *server_of(const struct serve_tools *t, const struct serve_job *job)
{
    const char *name = yyjson_get_str(yyjson_obj_get(yyjson_doc_get_root(job->asks.document), "name"));
    return job->api->id == SERVE_CALL_TOOL && name ? cmd_toolbox_server(t->server->toolbox, name) : NULL;
}

static bool is_busy(const struct serve_tools *t, const void *server)
{
    for (size_t i = 0; server && i < t->n_workers; i++)
        if (t->workers[i].server == server) return true;
    return false;
}

/* The first job that need not wait for another; false: there is none. */
static bool tools_take(struct worker *w)
{
    struct serve_tools *t = w->tools;
    struct serve_job **at = &t->queue.first;
    if (t->refreshes) return false;
    while (*at && is_busy(t, server_of(t, *at))) at = &(*at)->next;
    struct serve_job *job = *at;
    if (!job) return false;
    *at = job->next;
    w->job = job;
    w->server = server_of(t, job);
    t->n_waiting--;
    return true;
}

/* ---- a job ---- */

void serve_tools_step(struct serve_job *job)
{
    struct pd_buffer out = {0};
    if (!serve_tools_ends(job->server->tools, job))
        job->api->read(&out, job, NULL, yyjson_doc_get_root(job->asks.document));
    else serve_refuse(&job->error, 503, NULL, NULL, "nobody waits for the answer, or the server is shutting down");
    if (!job->error.status) serve_job_answer(job, &out);
    pd_buffer_free(&out);
    serve_job_to(job, SERVE_DONE);
}

/* Who asks for the list gets it anew, unless a call runs: that may take long. */
static void run_job(struct worker *w)
{
    struct serve_tools *t = w->tools;
    bool unused;
    t->refreshes = !t->stop && t->n_running == 0 && w->job->api->id == SERVE_LIST_TOOLS;
    t->n_running++;
    pthread_mutex_unlock(&t->lock);
    if (t->refreshes) cmd_toolbox_refresh(&unused, t->server->toolbox);
    serve_job_step(w->job);
    pthread_mutex_lock(&t->lock);
    t->refreshes = false;
    t->n_running--;
    w->job = NULL;
    w->server = NULL;
    pthread_cond_broadcast(&t->changed);
}

static void *tools_run(void *user)
{
    struct worker *w = user;
    struct serve_tools *t = w->tools;
    serve_act_as(SERVE_TOOL_CALLER);
    pthread_mutex_lock(&t->lock);
    for (;;) {   /* at the end those that wait are refused */
        if (tools_take(w)) run_job(w);
        else if (t->stop) break;
        else pthread_cond_wait(&t->changed, &t->lock);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* ---- from outside ---- */

bool serve_tools_ends(const struct serve_tools *t, struct serve_job *job) { return t->stop || serve_job_is_gone(job); }

peridot_status serve_tools_create(struct serve_tools **out, struct serve_server *server)
{
    struct serve_tools *t = *out = calloc(1, sizeof *t);
    if (!t) return pd_fail_alloc(sizeof *t, "tools");
    t->server = server;
    serve_queue_init(&t->queue, &t->lock, &t->changed);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    for (size_t i = 0; i < N_THREADS; i++) {
        t->workers[i].tools = t;
        if (pthread_create(&t->workers[i].thread, NULL, tools_run, &t->workers[i]) != 0)
            return pd_fail(PERIDOT_ERROR_MEMORY, "a thread cannot be created");
        t->n_workers++;
    }
    return PERIDOT_OK;
}

void serve_tools_stop(struct serve_tools *t)
{
    if (!t) return;
    pthread_mutex_lock(&t->lock);
    t->stop = t->queue.closed = true;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

void serve_tools_free(struct serve_tools *t)
{
    if (!t) return;
    serve_tools_stop(t);
    for (size_t i = 0; i < t->n_workers; i++) pthread_join(t->workers[i].thread, NULL);
    free(t);
}

static bool parse(struct serve_job *job)
{
    yyjson_read_err error;
    if (job->body.text.size > SERVE_CALL_MAX)
        return serve_refuse(&job->error, 413, NULL, NULL, "a call has more than %d bytes", SERVE_CALL_MAX);
    char *text = job->body.text.data ? job->body.text.data : (char *)"";
    job->asks.document = yyjson_read_opts(text, job->body.text.size, 0, NULL, &error);
    if (yyjson_is_obj(yyjson_doc_get_root(job->asks.document))) return true;
    return serve_refuse(&job->error, 400, "invalid_json", NULL, "the body is not a JSON object");
}

bool serve_tools_add(struct serve_tools *t, struct serve_job *job)
{
    serve_log_prompt(job);
    if (!parse(job)) return false;
    pthread_mutex_lock(&t->lock);
    bool room = t->n_waiting < MAX_WAITING;   /* which only this thread adds to */
    t->n_waiting += room;
    pthread_mutex_unlock(&t->lock);
    if (room) serve_job_to(job, SERVE_CALLING);
    return room || serve_refuse(&job->error, 429, "rate_limit_exceeded", NULL, "%d calls are waiting already: try "
                                "again later", MAX_WAITING);
}

struct serve_queue *serve_tools_queue(const struct serve_job *job) { return &job->server->tools->queue; }

/* ---- wire tools ---- */

/* What the page asks about tools, and nobody else (access.c): POST /tools/list is which there are, and POST /tools/call
 * carries a call out. Both answer on the threads above. */

static bool list(struct pd_buffer *out, struct serve_job *job, const peridot_vocab *vocab, yyjson_val *root)
{
    const struct cmd_toolbox *toolbox = job->server->toolbox;
    char *text = NULL;
    size_t size = 0;
    FILE *file = cmd_memory_open(&text, &size);
    (void)vocab, (void)root;
    if (file) {
        fprintf(file, "{\"tools\":%s,\"about\":", cmd_toolbox_json(toolbox));
        cmd_toolbox_write_about(file, toolbox);
        fputc('}', file);
    }
    if (file && cmd_memory_close(file, &text, &size)) pd_buffer_add(out, text, size);
    else out->failed = true;
    free(text);
    return true;
}

static bool is_stopped(void *user)
{
    struct serve_job *job = user;
    return serve_tools_ends(job->server->tools, job);
}

static bool is_text(yyjson_val *value)
{
    return yyjson_is_str(value) && yyjson_get_len(value) == strlen(yyjson_get_str(value));
}

static bool tools_call(struct pd_buffer *out, struct serve_job *job, const peridot_vocab *vocab, yyjson_val *root)
{
    const struct toolbox_stop stop = {is_stopped, job};
    yyjson_val *name = yyjson_obj_get(root, "name"), *arguments = yyjson_obj_get(root, "arguments");
    struct cmd_tool_result result;
    (void)vocab;
    if (!is_text(name)) return serve_refuse_type(&job->error, "name", "must be a string");
    if (!is_text(arguments)) return serve_refuse_type(&job->error, "arguments", "must be a string, of JSON");
    const struct cmd_tool_call made = {yyjson_get_str(name), yyjson_get_str(arguments), false};
    peridot_status status = cmd_toolbox_call(&result, job->server->toolbox, &made, &stop);
    if (status == PERIDOT_CANCELLED) return serve_refuse(&job->error, 503, NULL, NULL, "the call was stopped");
    if (status != PERIDOT_OK) return serve_refuse_status(&job->error, status);
    yyjson_mut_doc *doc = cmd_json_new();
    yyjson_mut_val *answer = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, answer);
    yyjson_mut_obj_add_val(doc, answer, "result", serve_text(doc, result.text, strlen(result.text)));
    serve_put_json(out, doc);
    cmd_tool_result_free(&result);
    return true;
}

const struct serve_interface serve_wire_list_tools = {
    .id = SERVE_LIST_TOOLS, .path = "/tools/list", .kind = SERVE_TOOLS, .errors = &serve_errors_openai, .read = list};
const struct serve_interface serve_wire_call_tool = {
    .id = SERVE_CALL_TOOL, .path = "/tools/call", .kind = SERVE_TOOLS, .errors = &serve_errors_openai,
    .read = tools_call};

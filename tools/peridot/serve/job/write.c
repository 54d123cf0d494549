/* What comes out of tasks, as the job's interface writes it: in one piece, or as events. Called by whoever has
 * the job at the time. */
#include "job.h"
#include "job_.h"

#include <string.h>

/* The prompt comes before the reply. */
static void put_echo(struct serve_job *job)
{
    for (size_t i = 0; i < job->work.n_tasks; i++) {
        struct serve_task *task = &job->work.tasks[i];
        char *text;
        size_t size;
        if (peridot_decode(&text, &size, job->work.vocab, task->tokens, task->n_prompt) != PERIDOT_OK) continue;
        pd_buffer_add(&task->text, text, size);
        peridot_free(text);
    }
}

static void send_thought(struct serve_task *task)
{
    size_t sent = task->n_thought_sent, size = task->thought.size - sent;
    task->n_thought_sent = task->thought.size;
    const struct serve_interface *api = task->job->api;
    if (size && api->thought) api->thought(task, task->thought.data + sent, size);
}

static void send_rest(struct serve_task *task)
{
    size_t size = task->text.size - task->n_sent;
    const char *text = task->text.data ? task->text.data + task->n_sent : "";
    task->n_sent = task->text.size;
    task->job->api->piece(task, text, size);
}

/* Once the calls have begun there is no more text. */
static void send_calls(struct serve_task *task)
{
    const struct serve_interface *api = task->job->api;
    for (size_t i = 0; i < task->n_calls; i++) {
        struct serve_call *call = &task->calls[i];
        size_t sent = call->n_sent, size = call->arguments.size - sent;
        call->n_sent = call->arguments.size;
        if (api->call && (size || !call->begun || (call->complete && !call->ended)))
            api->call(task, i, size ? call->arguments.data + sent : "", size);
        call->begun = true;
        call->ended = call->complete;
    }
}

void serve_write_begin(struct serve_job *job)
{
    if (job->events.begun) return;
    job->events.begun = true;
    if (job->asks.echo) put_echo(job);
    if (!job->asks.stream) return;
    const struct serve_interface *api = job->api;
    serve_job_begin(job, 200);
    if (api->begin) api->begin(job);
    serve_pings_add(&job->server->pings, job);
}

void serve_write_piece(struct serve_task *task)
{
    if (!task->job->asks.stream) return;
    send_thought(task);
    if (task->text.size > task->n_sent) send_rest(task);
    send_calls(task);
}

void serve_write_task_end(struct serve_task *task)
{
    if (!task->job->asks.stream) return;
    send_thought(task);
    send_rest(task);
}

void serve_write_end(struct serve_job *job)
{
    struct pd_buffer b = {0};
    if (job->asks.stream) job->api->end(job);
    else serve_put_json(&b, job->api->body(job));
    serve_job_begin(job, 200);
    serve_job_write(job, &b, true);
    pd_buffer_free(&b);
}

/* ---- what interfaces have in common ---- */

yyjson_mut_val *serve_string(yyjson_mut_doc *doc, const char *text) { return serve_text(doc, text, strlen(text)); }

struct serve_usage serve_usage_of(const struct serve_job *job)
{
    struct serve_usage u = {0};
    for (size_t i = 0; i < job->work.n_tasks; i++) {
        const struct serve_task *task = &job->work.tasks[i];
        if (i % job->asks.n == 0) u.prompt += task->n_prompt, u.cached += task->n_cached;
        u.reply += task->n_reply;
        u.thought += task->n_thought;
    }
    return u;
}

void serve_send_event(struct serve_job *job, const char *name, yyjson_mut_doc *doc)
{
    struct pd_buffer b = {0};
    if (name) pd_buffer_print(&b, "event: %s\n", name);
    pd_buffer_print(&b, "data: ");
    serve_put_json(&b, doc);
    pd_buffer_print(&b, "\n\n");
    serve_job_write(job, &b, false);
    pd_buffer_free(&b);
}

void serve_send_line(struct serve_job *job, yyjson_mut_doc *doc)
{
    struct pd_buffer b = {0};
    serve_put_json(&b, doc);
    pd_buffer_add(&b, "\n", 1);
    serve_job_write(job, &b, false);
    pd_buffer_free(&b);
}

/* ---- pings ---- */

/* Streams that have nothing to say, as their prompts wait or are read, say that: clients and what is between give up a
 * connection that is silent for long. */

void serve_pings_add(struct serve_pings *p, struct serve_job *job)
{
    if (!job->api->ping || job->asks.ping_s <= 0) return;
    pthread_mutex_lock(&p->lock);
    job->ping.at = &p->first;
    job->ping.next = p->first;
    if (p->first) p->first->ping.at = &job->ping.next;
    p->first = job;
    pthread_mutex_unlock(&p->lock);
}

void serve_pings_remove(struct serve_pings *p, struct serve_job *job)
{
    pthread_mutex_lock(&p->lock);
    if (job->ping.at) {
        *job->ping.at = job->ping.next;
        if (job->ping.next) job->ping.next->ping.at = job->ping.at;
    }
    job->ping.at = NULL;
    pthread_mutex_unlock(&p->lock);
}

void serve_pings_tend(struct serve_pings *p, void (*ping)(struct serve_job *job, double now))
{
    const double now = pd_now();
    pthread_mutex_lock(&p->lock);
    for (struct serve_job *job = p->first; job; job = job->ping.next) ping(job, now);
    pthread_mutex_unlock(&p->lock);
}

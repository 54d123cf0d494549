/* Stages: the one function that moves a job, and the one place where a job enters a queue. Which moves there are is in
 * the table of stages/stages.c. */
#include "job.h"
#include "job_.h"

#include <assert.h>

bool serve_stage_may_follow(const struct serve_stage_row *rows, enum serve_stage from, enum serve_stage to,
                            enum serve_owner owner)
{
    return owner != SERVE_NOBODY && owner == rows[from].owner && (rows[from].next >> to & 1);
}

/* The stage is said under the lock: whoever takes the job out sees it. */
static bool enter(struct serve_queue *q, struct serve_job *job, enum serve_stage stage)
{
    pthread_mutex_lock(q->lock);
    struct serve_job **end = &q->first;
    bool open = !q->closed;
    while (*end) end = &(*end)->next;
    if (open) {
        job->stage = stage;
        job->next = NULL;
        *end = job;
        pthread_cond_broadcast(q->changed);
    }
    pthread_mutex_unlock(q->lock);
    return open;
}

void serve_job_to(struct serve_job *job, enum serve_stage stage)
{
    const struct serve_stage_row *rows = job->server->stages;
    assert(serve_stage_may_follow(rows, job->stage, stage, serve_acting()));
    struct serve_queue *queue = rows[stage].queue ? rows[stage].queue(job) : NULL;
    if (!queue) {
        job->stage = stage;
        if (rows[stage].step) rows[stage].step(job);
    } else if (!enter(queue, job, stage)) {
        serve_refuse(&job->error, 503, NULL, NULL, "the server is shutting down");
        serve_job_to(job, SERVE_DONE);
    }
}

void serve_job_step(struct serve_job *job) { job->server->stages[job->stage].step(job); }

void serve_job_finish(struct serve_job *job)
{
    if (job->error.status) serve_job_fail(job);
    job->server->n_jobs--;
    serve_job_drop(job);
}

/* ---- queues ---- */

void serve_queue_init(struct serve_queue *q, pthread_mutex_t *lock, pthread_cond_t *changed)
{
    *q = (struct serve_queue){.lock = lock, .changed = changed};
}

struct serve_job *serve_queue_next(struct serve_queue *q,
                                   uint64_t (*cost)(const struct serve_job *job, const void *user), const void *user)
{
    struct serve_fair_choice choice = serve_fair_begin(&q->fair);
    for (struct serve_job *job = q->first; job; job = job->next)
        serve_fair_offer(&choice, job, &job->client, cost(job, user));
    struct serve_job *job = choice.best, **at = &q->first;
    if (!job) return NULL;
    while (*at != job) at = &(*at)->next;
    *at = job->next;
    job->next = NULL;
    serve_fair_take(&q->fair, &job->client);
    return job;
}

struct serve_job *serve_queue_take_all(struct serve_queue *q)
{
    struct serve_job *first = q->first;
    q->first = NULL;
    return first;
}

void serve_queue_close(struct serve_queue *q)
{
    const enum serve_owner before = serve_acting();
    pthread_mutex_lock(q->lock);
    q->closed = true;
    struct serve_job *job = serve_queue_take_all(q);
    pthread_mutex_unlock(q->lock);
    for (struct serve_job *next; job; job = next) {
        next = job->next;
        serve_act_as(job->server->stages[job->stage].owner);
        serve_refuse(&job->error, 503, NULL, NULL, "the server is shutting down");
        serve_job_to(job, SERVE_DONE);
    }
    serve_act_as(before);
}

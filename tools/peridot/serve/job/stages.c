/* Stages: the one function that moves a job, and the one place where a job enters a queue. Which moves there are is in
 * the table of work/stages.c. */
#include "job.h"
#include "job_.h"

#include <assert.h>

static _Thread_local enum serve_owner acting;

void serve_act_as(enum serve_owner owner) { acting = owner; }

bool serve_stage_may_follow(const struct serve_stage_row *rows, enum serve_stage from, enum serve_stage to,
                            enum serve_owner owner)
{
    return owner != SERVE_NOBODY && owner == rows[from].owner && (rows[from].next >> to & 1);
}

/* The stage is said under the lock: whoever takes the job out sees it. */
static bool enter(struct serve_queue *q, struct serve_job *job, enum serve_stage stage)
{
    pthread_mutex_lock(q->lock);
    bool open = !q->closed;
    if (open) {
        job->stage = stage;
        serve_fair_add(&q->first, job);
        pthread_cond_broadcast(q->changed);
    }
    pthread_mutex_unlock(q->lock);
    return open;
}

void serve_job_to(struct serve_job *job, enum serve_stage stage)
{
    const struct serve_stage_row *rows = job->server->stages;
    assert(serve_stage_may_follow(rows, job->stage, stage, acting));
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
    return serve_fair_next(&q->fair, &q->first, cost, user);
}

struct serve_job *serve_queue_take_all(struct serve_queue *q)
{
    struct serve_job *first = q->first;
    q->first = NULL;
    return first;
}

void serve_queue_close(struct serve_queue *q)
{
    const enum serve_owner before = acting;
    pthread_mutex_lock(q->lock);
    q->closed = true;
    struct serve_job *job = serve_queue_take_all(q);
    pthread_mutex_unlock(q->lock);
    for (struct serve_job *next; job; job = next) {
        next = job->next;
        acting = job->server->stages[job->stage].owner;
        serve_refuse(&job->error, 503, NULL, NULL, "the server is shutting down");
        serve_job_to(job, SERVE_DONE);
    }
    acting = before;
}

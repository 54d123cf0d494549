/* Streams that have nothing to say, as their prompts wait or are read, say that: clients and what is between give up a
 * connection that is silent for long. */
#include "pings.h"
#include "job.h"
#include "wire.h"
#include "../os.h"

void serve_pings_add(struct serve_pings *p, struct serve_job *job)
{
    if (!job->api->ping || job->ping_s <= 0) return;
    pthread_mutex_lock(&p->lock);
    job->at_ping = &p->first;
    job->next_ping = p->first;
    if (p->first) p->first->at_ping = &job->next_ping;
    p->first = job;
    pthread_mutex_unlock(&p->lock);
}

void serve_pings_remove(struct serve_pings *p, struct serve_job *job)
{
    pthread_mutex_lock(&p->lock);
    if (job->at_ping) {
        *job->at_ping = job->next_ping;
        if (job->next_ping) job->next_ping->at_ping = job->at_ping;
    }
    job->at_ping = NULL;
    pthread_mutex_unlock(&p->lock);
}

void serve_pings_tend(struct serve_pings *p, void (*ping)(struct serve_job *job, double now))
{
    const double now = cmd_now();
    pthread_mutex_lock(&p->lock);
    for (struct serve_job *job = p->first; job; job = job->next_ping) ping(job, now);
    pthread_mutex_unlock(&p->lock);
}

/* Comments in streams that are silent: pings.c. Of any thread. */
#ifndef PERIDOT_COMMAND_SERVE_PINGS_H
#define PERIDOT_COMMAND_SERVE_PINGS_H

#include <pthread.h>

struct serve_job;

struct serve_pings {
    pthread_mutex_t lock;      /* of the list */
    struct serve_job *first;
};

/* A stream that has begun, until it is removed, which one that was not added may be. */
void serve_pings_add(struct serve_pings *p, struct serve_job *job);
void serve_pings_remove(struct serve_pings *p, struct serve_job *job);
/* Calls that for each, now and then. */
void serve_pings_tend(struct serve_pings *p, void (*ping)(struct serve_job *job, double now));

#endif

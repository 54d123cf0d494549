/* Threads that take work from a list which others add to. */
#ifndef PERIDOT_COMMAND_SERVE_WORKERS_H
#define PERIDOT_COMMAND_SERVE_WORKERS_H

#include "peridot.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum { SERVE_MAX_WORKERS = 4 };

struct serve_workers {
    pthread_mutex_t lock;      /* of the list */
    pthread_cond_t changed;    /* signalled, with the lock, when there is work */
    pthread_t threads[SERVE_MAX_WORKERS];
    size_t n_threads;
    bool stop;
    bool (*work)(void *user);
    void *user;
};

/* As many as n threads, at most SERVE_MAX_WORKERS, or fewer, but one. `work` is called with the lock, and unlocks it
 * while it does what it took; false: there is nothing to do. */
peridot_status serve_workers_start(struct serve_workers *workers, size_t n, bool (*work)(void *user), void *user);
/* Returns when each has done what it had taken. What nobody took is the caller's, and the lock is still there. */
void serve_workers_stop(struct serve_workers *workers);
/* After they have stopped, or did not start. */
void serve_workers_free(struct serve_workers *workers);

#endif

#define _POSIX_C_SOURCE 200809L
#include "workers.h"
#include "../util.h"

static void *run(void *user)
{
    struct serve_workers *w = user;
    pthread_mutex_lock(&w->lock);
    while (!w->stop)
        if (!w->work(w->user)) pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

peridot_status serve_workers_start(struct serve_workers *w, size_t n, bool (*work)(void *user), void *user)
{
    *w = (struct serve_workers){.work = work, .user = user};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    while (w->n_threads < n && pthread_create(&w->threads[w->n_threads], NULL, run, w) == 0) w->n_threads++;
    return w->n_threads ? PERIDOT_OK : cmd_fail(PERIDOT_ERROR_MEMORY, "a thread cannot be created");
}

void serve_workers_stop(struct serve_workers *w)
{
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    for (size_t i = 0; i < w->n_threads; i++) pthread_join(w->threads[i], NULL);
}

void serve_workers_free(struct serve_workers *w)
{
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->changed);
}

/* Threads that take work from a list which others add to. */
#define _POSIX_C_SOURCE 200809L
#include "../../base/base.h"
#include "common.h"

static _Thread_local enum serve_owner acting;

void serve_act_as(enum serve_owner owner) { acting = owner; }

enum serve_owner serve_acting(void) { return acting; }

static void *workers_run(void *user)
{
    struct serve_workers *w = user;
    serve_act_as(w->owner);
    pthread_mutex_lock(&w->lock);
    while (!w->stop)
        if (!w->work(w->user)) pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

peridot_status serve_workers_start(struct serve_workers *w, size_t n, enum serve_owner owner,
                                   bool (*work)(void *user), void *user)
{
    *w = (struct serve_workers){.owner = owner, .work = work, .user = user};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    while (w->n_threads < n && pthread_create(&w->threads[w->n_threads], NULL, workers_run, w) == 0) w->n_threads++;
    return w->n_threads ? PERIDOT_OK : pd_fail(PERIDOT_ERROR_MEMORY, "a thread cannot be created");
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

/* ---- fair ---- */

bool serve_client_is(const struct serve_client *a, const struct serve_client *b)
{
    return a->address == b->address && a->key == b->key;
}

static unsigned count_turns(const struct serve_fair *fair, const struct serve_client *client)
{
    unsigned n = 0;
    for (uint64_t i = 0; i < pd_min(fair->n_taken, SERVE_FAIR_MEMORY); i++)
        n += serve_client_is(&fair->last[i], client);
    return n;
}

struct serve_fair_choice serve_fair_begin(const struct serve_fair *fair)
{
    return (struct serve_fair_choice){.fair = fair, .cheapest = fair->n_taken % 2 == 0};
}

/* The oldest come first: of equals the first stays. */
void serve_fair_offer(struct serve_fair_choice *c, void *what, const struct serve_client *client, uint64_t cost)
{
    if (cost == SERVE_FAIR_NEVER) return;
    unsigned taken = count_turns(c->fair, client);
    if (c->best && (taken > c->taken || (taken == c->taken && (!c->cheapest || cost >= c->cost)))) return;
    c->best = what;
    c->taken = taken;
    c->cost = cost;
}

void serve_fair_take(struct serve_fair *fair, const struct serve_client *client)
{
    fair->last[fair->n_taken++ % SERVE_FAIR_MEMORY] = *client;
}

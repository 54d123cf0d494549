#include "base/parallel.h"

#include "base/num.h"
#include "base/os.h"

#include <pthread.h>
#include <stdatomic.h>

enum { MAX_THREADS = 64 };

struct work {
    void (*call)(void *user, size_t i);
    void *user;
    size_t n;
    atomic_size_t next;
};

static void *call_pieces(void *argument)
{
    struct work *w = argument;
    for (size_t i; (i = atomic_fetch_add(&w->next, 1)) < w->n;) w->call(w->user, i);
    return NULL;
}

/* Threads are made for each call: the pieces are milliseconds long, a thread costs microseconds. This thread works,
 * too, so one that cannot be made only costs speed. */
void pd_parallel(size_t n, void (*call)(void *user, size_t i), void *user)
{
    struct work w = {.call = call, .user = user, .n = n};
    pthread_t threads[MAX_THREADS];
    size_t n_threads = 0, wanted = (size_t)pd_min(pd_min(n, pd_n_processors()), MAX_THREADS);
    atomic_init(&w.next, 0);
    while (n_threads + 1 < wanted && pthread_create(&threads[n_threads], NULL, call_pieces, &w) == 0) n_threads++;
    call_pieces(&w);
    for (size_t i = 0; i < n_threads; i++) pthread_join(threads[i], NULL);
}

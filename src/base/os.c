/* What of base.h is the same on every system. */
#include "base/base.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

peridot_status pd_make_directory(const char *path)
{
    char *copy = pd_string_copy(path);
    if (!copy) return pd_fail_alloc(strlen(path) + 1, "folder name");
    for (char *p = copy + 1; *p; p++) {
        if (*p != '/') continue;
        *p = 0;
        pd_make_one_directory(copy);
        *p = '/';
    }
    pd_make_one_directory(copy);
    free(copy);
    return pd_is_directory(path) ? PERIDOT_OK : pd_fail(PERIDOT_ERROR_IO, "%s: this folder cannot be created", path);
}

char *pd_path_join(const char *directory, const char *name)
{
    size_t size = strlen(directory) + strlen(name) + 2;
    char *path = malloc(size);
    if (path) snprintf(path, size, "%s/%s", directory, name);
    return path;
}

char *pd_path_copy(const char *path)
{
    char *copy = pd_string_copy(path);
    if (copy) pd_path_clean(copy);
    return copy;
}

char *pd_string_copy(const char *s)
{
    size_t size = strlen(s) + 1;
    char *copy = malloc(size);
    return copy ? memcpy(copy, s, size) : NULL;
}

peridot_status pd_writer_write(struct pd_writer *w, const void *data, size_t size)
{
    if (size && fwrite(data, 1, size, w->file) != size)
        return pd_fail(PERIDOT_ERROR_IO, "%s: %s after %llu bytes", w->path, strerror(errno),
                       (unsigned long long)w->offset);
    w->offset += size;
    return PERIDOT_OK;
}

/* ---- parallel ---- */

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

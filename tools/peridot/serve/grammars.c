#define _POSIX_C_SOURCE 200809L
#include "grammars.h"
#include "workers.h"

#include <stdlib.h>
#include <string.h>

enum {
    N_THREADS = 2,             /* one schema at its limit keeps no other out */
    N_KEPT = 8                 /* with masks of 16 MB each for a vocabulary of 256,000 */
};

struct kept {
    char *key;                 /* NULL: the entry is free */
    peridot_grammar *grammar;  /* of a schema, or */
    peridot_tools *tools;      /* of tools; NULL both: it was refused, and `error` says why */
    struct serve_error error;
    uint64_t used;             /* higher: more lately */
};

struct serve_grammars {
    serve_grammar_done done;
    void *user;
    struct serve_workers workers;   /* their lock is of what follows */
    struct serve_job *waiting; /* the oldest first */
    struct kept kept[N_KEPT];
    peridot_vocab *vocab;      /* of those that are kept */
    uint64_t n_uses;
};

static bool needs_grammar(const struct serve_job *job) { return job->schema || job->json || job->tools; }

/* What there is to compile, without what it is made with. */
static const char *source_of(const struct serve_job *job)
{
    return job->tools ? job->tools : job->schema ? job->schema : "";
}

/* All that the grammar is made of, to be freed; NULL: memory is short. */
static char *make_key(const struct serve_job *job)
{
    const char *name = job->tool_name ? job->tool_name : "", *source = source_of(job);
    const char *answer = job->tools && job->schema ? job->schema : "";
    size_t size = strlen(name) + strlen(source) + strlen(answer) + 16;
    char *key = malloc(size);
    char kind = !job->tools ? 's' : job->calls_required ? 'r' : 'a';
    if (key)
        snprintf(key, size, "%c%d%d%s\n%s\n%s", kind, job->single_call, job->json, name, source, answer);
    return key;
}

/* ---- those that are kept, under the lock ---- */

static void clear(struct kept *k)
{
    peridot_grammar_free(k->grammar);
    peridot_tools_free(k->tools);
    free(k->key);
    *k = (struct kept){0};
}

/* A model that was opened again may have another vocabulary. */
static void use_vocab(struct serve_grammars *g, const peridot_vocab *vocab)
{
    if (g->vocab == vocab) return;
    for (size_t i = 0; i < N_KEPT; i++) clear(&g->kept[i]);
    peridot_vocab_close(g->vocab);
    g->vocab = peridot_vocab_ref(vocab);
}

static bool take_kept(struct serve_grammars *g, struct serve_job *job)
{
    char *key = make_key(job);
    struct kept *found = NULL;
    use_vocab(g, job->vocab);
    for (size_t i = 0; i < N_KEPT && key; i++)
        if (g->kept[i].key && strcmp(g->kept[i].key, key) == 0) found = &g->kept[i];
    free(key);
    if (!found) return false;
    found->used = ++g->n_uses;
    job->grammar = peridot_grammar_ref(found->grammar);
    job->compiled = peridot_tools_ref(found->tools);
    if (!found->grammar && !found->tools) serve_job_refuse_schema(job, found->error.status, found->error.message);
    return true;
}

/* In place of the one that was used least lately. What failed for want of memory may do the next time. */
static void keep(struct serve_grammars *g, const struct serve_job *job)
{
    struct kept *oldest = &g->kept[0];
    char *key = job->error.status == 500 ? NULL : make_key(job);
    for (size_t i = 1; i < N_KEPT; i++)
        if (g->kept[i].used < oldest->used) oldest = &g->kept[i];
    if (!key) return;
    use_vocab(g, job->vocab);
    clear(oldest);
    *oldest = (struct kept){key, peridot_grammar_ref(job->grammar), peridot_tools_ref(job->compiled), job->error,
                            ++g->n_uses};
}

/* ---- the threads ---- */

static struct serve_job *take_shortest(struct serve_grammars *g)
{
    struct serve_job **best = &g->waiting;
    for (struct serve_job **at = best; *at; at = &(*at)->next)
        if (strlen(source_of(*at)) < strlen(source_of(*best))) best = at;
    struct serve_job *job = *best;
    *best = job->next;
    return job;
}

static bool compile_one(void *user)
{
    struct serve_grammars *g = user;
    if (!g->waiting) return false;
    struct serve_job *job = take_shortest(g);
    if (!job->closed && !take_kept(g, job)) {
        pthread_mutex_unlock(&g->workers.lock);
        serve_job_compile(job, job->vocab);
        pthread_mutex_lock(&g->workers.lock);
        keep(g, job);
    }
    pthread_mutex_unlock(&g->workers.lock);
    g->done(g->user, job);
    pthread_mutex_lock(&g->workers.lock);
    return true;
}

peridot_status serve_grammars_create(struct serve_grammars **out, serve_grammar_done done, void *user)
{
    struct serve_grammars *g = *out = calloc(1, sizeof *g);
    if (!g) return cmd_fail_alloc(sizeof *g, "grammars");
    g->done = done;
    g->user = user;
    peridot_status status = serve_workers_start(&g->workers, N_THREADS, compile_one, g);
    if (status == PERIDOT_OK) return PERIDOT_OK;
    serve_grammars_free(g);
    *out = NULL;
    return status;
}

void serve_grammars_free(struct serve_grammars *g)
{
    if (!g) return;
    serve_workers_stop(&g->workers);
    while (g->waiting) {
        struct serve_job *job = take_shortest(g);
        serve_refuse(&job->error, 503, NULL, NULL, "the server is shutting down");
        g->done(g->user, job);
    }
    use_vocab(g, NULL);
    serve_workers_free(&g->workers);
    free(g);
}

bool serve_grammars_find(struct serve_grammars *g, struct serve_job *job)
{
    struct serve_job **last = &g->waiting;
    if (!needs_grammar(job)) return true;
    pthread_mutex_lock(&g->workers.lock);
    bool found = take_kept(g, job);
    if (!found) {
        while (*last) last = &(*last)->next;
        job->next = NULL;
        *last = job;
        pthread_cond_signal(&g->workers.changed);
    }
    pthread_mutex_unlock(&g->workers.lock);
    return found;
}

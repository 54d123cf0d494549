#define _POSIX_C_SOURCE 200809L
#include "work_.h"
#include "../job/job.h"

#include <stdlib.h>
#include <string.h>

enum {
    N_THREADS = 3, MOST_LONG = 2,   /* of the threads: of schemas that need more than a try */
    TRY = 20,                  /* thousandths of the work that a schema may take: about 10 ms, enough for most */
    N_KEPT = 8                 /* with masks of 16 MB each for a vocabulary of 256,000 */
};

struct kept {
    char *key;                 /* NULL: the entry is free */
    const struct serve_model *model;   /* whose it is, by */
    peridot_vocab *vocab;
    peridot_grammar *grammar;  /* of a schema, or */
    peridot_tools *tools;      /* of tools; NULL both: it was refused, and `error` says why */
    struct serve_error error;
    uint64_t used;             /* higher: more lately */
};

struct serve_grammars {
    serve_grammar_done done;
    void *user;
    struct serve_workers workers;   /* their lock is of what follows */
    struct line {
        struct serve_job *first;
        struct serve_fair fair;
    } tries, rest;             /* those that were not tried yet, and those for which that was not enough */
    unsigned n_long;           /* of the latter, at work */
    struct kept kept[N_KEPT];
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
    peridot_vocab_close(k->vocab);
    free(k->key);
    *k = (struct kept){0};
}

/* A model that was opened again has another vocabulary: what was of its old one is of no use. Models take turns without
 * a loss. */
static void clear_old(struct serve_grammars *g, const struct serve_job *job)
{
    for (size_t i = 0; i < N_KEPT; i++)
        if (g->kept[i].model == job->model && g->kept[i].vocab != job->vocab) clear(&g->kept[i]);
}

static bool take_kept(struct serve_grammars *g, struct serve_job *job)
{
    char *key = make_key(job);
    struct kept *found = NULL;
    clear_old(g, job);
    for (size_t i = 0; i < N_KEPT && key; i++)
        if (g->kept[i].key && g->kept[i].vocab == job->vocab && strcmp(g->kept[i].key, key) == 0) found = &g->kept[i];
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
    clear(oldest);
    *oldest = (struct kept){key, job->model, peridot_vocab_ref(job->vocab), peridot_grammar_ref(job->grammar),
                            peridot_tools_ref(job->compiled), job->error, ++g->n_uses};
}

/* ---- the threads ---- */

static uint64_t cost_of(const struct serve_job *job, const void *user)
{
    (void)user;
    return strlen(source_of(job));
}

/* The next one that is tried, or else of those that need more. *is_long: which of the two. */
static struct serve_job *take(bool *is_long, struct serve_grammars *g)
{
    struct serve_job *job = serve_fair_next(&g->tries.fair, &g->tries.first, cost_of, NULL);
    *is_long = !job && g->n_long < MOST_LONG;
    return *is_long ? serve_fair_next(&g->rest.fair, &g->rest.first, cost_of, NULL) : job;
}

/* Without the lock. False: the try was not enough. */
static bool compile(struct serve_job *job, bool is_long)
{
    if (!serve_job_is_awaited(job)) return true;
    peridot_status status = serve_job_compile(job, job->vocab, is_long ? 0 : TRY);
    if (is_long || status != PERIDOT_ERROR_UNSUPPORTED) return true;
    job->error = (struct serve_error){0};
    return false;
}

static bool compile_one(void *user)
{
    struct serve_grammars *g = user;
    bool is_long, whole = true;
    struct serve_job *job = take(&is_long, g);
    if (!job) return false;
    g->n_long += is_long;
    if (!take_kept(g, job)) {
        pthread_mutex_unlock(&g->workers.lock);
        whole = compile(job, is_long);
        pthread_mutex_lock(&g->workers.lock);
        if (!whole) serve_fair_add(&g->rest.first, job);
        else if (job->error.status != 503) keep(g, job);
    }
    g->n_long -= is_long;
    pthread_cond_signal(&g->workers.changed);
    if (!whole) return true;
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

static void refuse_all(const struct serve_grammars *g, struct serve_job *job)
{
    for (struct serve_job *next; job; job = next) {
        next = job->next;
        serve_refuse(&job->error, 503, NULL, NULL, "the server is shutting down");
        g->done(g->user, job);
    }
}

void serve_grammars_free(struct serve_grammars *g)
{
    if (!g) return;
    serve_workers_stop(&g->workers);
    refuse_all(g, g->tries.first);
    refuse_all(g, g->rest.first);
    for (size_t i = 0; i < N_KEPT; i++) clear(&g->kept[i]);
    serve_workers_free(&g->workers);
    free(g);
}

bool serve_grammars_find(struct serve_grammars *g, struct serve_job *job)
{
    if (!needs_grammar(job)) return true;
    pthread_mutex_lock(&g->workers.lock);
    bool found = take_kept(g, job);
    if (!found) {
        serve_fair_add(&g->tries.first, job);
        pthread_cond_signal(&g->workers.changed);
    }
    pthread_mutex_unlock(&g->workers.lock);
    return found;
}

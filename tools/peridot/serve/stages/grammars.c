/* The grammars of requests. A schema may take half a second to compile, so that is done on threads of its own: neither
 * the reader nor the engine waits for it. How long one takes is not to be seen in its text. So each is tried with a
 * little of the work that it may take, which is enough for most; those that need more wait for each other, and leave a
 * thread to tries. In both lines it goes by turns (serve_fair). Clients send the same schema again and again: the last
 * ones are kept, those that were refused as well. */
#define _POSIX_C_SOURCE 200809L
#include "stages_.h"
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
    struct serve_workers workers;   /* their lock is of what follows */
    struct serve_queue tries, rest; /* jobs that were not tried yet, and those for which that was not enough */
    unsigned n_long;           /* of the latter, at work */
    struct kept kept[N_KEPT];
    uint64_t n_uses;
};

static bool needs_grammar(const struct serve_job *job) { return job->asks.schema || job->asks.json || job->asks.tools; }

/* What there is to compile, without what it is made with. */
static const char *source_of(const struct serve_job *job)
{
    return job->asks.tools ? job->asks.tools : job->asks.schema ? job->asks.schema : "";
}

/* All that the grammar is made of, to be freed; NULL: memory is short. */
static char *make_key(const struct serve_job *job)
{
    const char *name = job->asks.tool_name ? job->asks.tool_name : "", *source = source_of(job);
    const char *answer = job->asks.tools && job->asks.schema ? job->asks.schema : "";
    size_t size = strlen(name) + strlen(source) + strlen(answer) + 16;
    char *key = malloc(size);
    char kind = !job->asks.tools ? 's' : job->asks.calls_required ? 'r' : 'a';
    if (key)
        snprintf(key, size, "%c%d%d%s\n%s\n%s", kind, job->asks.single_call, job->asks.json, name, source, answer);
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
        if (g->kept[i].model == job->model && g->kept[i].vocab != job->work.vocab) clear(&g->kept[i]);
}

static bool take_kept(struct serve_grammars *g, struct serve_job *job)
{
    char *key = make_key(job);
    struct kept *found = NULL;
    clear_old(g, job);
    for (struct kept *k = g->kept; key && k < g->kept + N_KEPT; k++)
        if (k->key && k->vocab == job->work.vocab && strcmp(k->key, key) == 0) found = k;
    free(key);
    if (!found) return false;
    found->used = ++g->n_uses;
    job->work.grammar = peridot_grammar_ref(found->grammar);
    job->work.compiled = peridot_tools_ref(found->tools);
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
    *oldest = (struct kept){key, job->model, peridot_vocab_ref(job->work.vocab), peridot_grammar_ref(job->work.grammar),
                            peridot_tools_ref(job->work.compiled), job->error, ++g->n_uses};
}

/* ---- the threads ---- */

static uint64_t grammars_cost_of(const struct serve_job *job, const void *user)
{
    (void)user;
    return strlen(source_of(job));
}

/* The next one that is tried, or else of those that need more. */
static struct serve_job *grammars_take(struct serve_grammars *g)
{
    struct serve_job *job = serve_queue_next(&g->tries, grammars_cost_of, NULL);
    return job || g->n_long == MOST_LONG ? job : serve_queue_next(&g->rest, grammars_cost_of, NULL);
}

/* False: so much effort was not enough. */
static bool grammars_compile(struct serve_job *job, uint32_t effort)
{
    struct serve_grammars *g = job->server->grammars;
    pthread_mutex_lock(&g->workers.lock);
    bool kept = take_kept(g, job);
    pthread_mutex_unlock(&g->workers.lock);
    if (kept || !serve_job_is_awaited(job)) return true;
    peridot_status status = serve_job_compile(job, job->work.vocab, effort);
    if (effort && status == PERIDOT_ERROR_UNSUPPORTED) {
        job->error = (struct serve_error){0};
        return false;
    }
    pthread_mutex_lock(&g->workers.lock);
    keep(g, job);
    pthread_mutex_unlock(&g->workers.lock);
    return true;
}

void serve_grammars_try(struct serve_job *job)
{
    if (grammars_compile(job, TRY)) serve_reader_pass_on(job);
    else serve_job_to(job, SERVE_COMPILING);
}

void serve_grammars_compile(struct serve_job *job)
{
    grammars_compile(job, 0);
    serve_reader_pass_on(job);
}

static bool compile_one(void *user)
{
    struct serve_grammars *g = user;
    struct serve_job *job = grammars_take(g);
    if (!job) return false;
    bool is_long = job->stage == SERVE_COMPILING;   /* the job may be gone later */
    g->n_long += is_long;
    pthread_mutex_unlock(&g->workers.lock);
    serve_job_step(job);
    pthread_mutex_lock(&g->workers.lock);
    g->n_long -= is_long;
    if (is_long) pthread_cond_signal(&g->workers.changed);
    return true;
}

peridot_status serve_grammars_create(struct serve_grammars **out, struct serve_server *server)
{
    struct serve_grammars *g = *out = calloc(1, sizeof *g);
    if (!g) return pd_fail_alloc(sizeof *g, "grammars");
    server->grammars = g;
    serve_queue_init(&g->tries, &g->workers.lock, &g->workers.changed);
    serve_queue_init(&g->rest, &g->workers.lock, &g->workers.changed);
    peridot_status status = serve_workers_start(&g->workers, N_THREADS, SERVE_COMPILER, compile_one, g);
    if (status == PERIDOT_OK) return PERIDOT_OK;
    serve_grammars_free(g);
    *out = NULL;
    return status;
}

void serve_grammars_free(struct serve_grammars *g)
{
    if (!g) return;
    serve_workers_stop(&g->workers);
    serve_queue_close(&g->tries);
    serve_queue_close(&g->rest);
    for (size_t i = 0; i < N_KEPT; i++) clear(&g->kept[i]);
    serve_workers_free(&g->workers);
    free(g);
}

struct serve_queue *serve_grammars_tries(const struct serve_job *job) { return &job->server->grammars->tries; }

struct serve_queue *serve_grammars_rest(const struct serve_job *job) { return &job->server->grammars->rest; }

bool serve_grammars_find(struct serve_job *job)
{
    struct serve_grammars *g = job->server->grammars;
    if (!needs_grammar(job)) return true;
    pthread_mutex_lock(&g->workers.lock);
    bool found = take_kept(g, job);
    pthread_mutex_unlock(&g->workers.lock);
    return found;
}

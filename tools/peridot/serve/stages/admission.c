/* Which of an engine's tasks are at work. The others wait here and not in the session, whose order is that of arrival:
 * so clients take turns (serve_fair), whoever sends a thousand requests has his own wait, and where too many do, those
 * that are refused are of the client who has most. A short text need not wait until a long one is written: one gives
 * way and goes on later from its tokens, to the same text, as it does where a device was lost. The engine's thread
 * calls all of these. */
#include "stages_.h"
#include "../job/job.h"

#include <stdlib.h>

enum {
    SHORT = 128,               /* cost of a task for which others may give way, whosever it is */
    LONGER = 4,                /* times as much the others cost at least */
    PROMPT = 16,               /* tokens of a prompt that take as long as one of a reply */
    MOST_PAUSES = 8            /* that a task makes: what it had in the cache is evaluated anew each time */
};

static bool is_at_work(const struct serve_task *task) { return task->request != NULL; }

static size_t n_tokens(const struct serve_task *task) { return task->n_prompt + task->n_reply; }

/* What is left to do, in tokens of a reply. */
static uint64_t admission_cost_of(const struct serve_task *task)
{
    return n_tokens(task) / PROMPT + (task->n_max - task->n_reply);
}

/* Documents are read after the first, as their prompts begin like its. */
static bool must_wait(const struct serve_task *task)
{
    return task->job->kind == SERVE_SCORES && task->index > 0 && task->job->work.n_ended == 0;
}

/* ---- too many ---- */

struct waiting {
    struct serve_job *job;
    uint64_t cost;
    size_t order;              /* of arrival */
};

/* By client, and of each the first is the one to be refused. */
static int by_client(const void *left, const void *right)
{
    const struct waiting *a = left, *b = right;
    const struct serve_client *x = &a->job->client, *y = &b->job->client;
    if (x->address != y->address) return x->address < y->address ? -1 : 1;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    if (a->cost != b->cost) return a->cost > b->cost ? -1 : 1;
    return a->order > b->order ? -1 : 1;
}

/* All jobs of the list, in *n_jobs; in out those of which nothing has begun. A job's tasks follow each other. */
static size_t find_waiting(struct waiting *out, size_t *n_jobs, const struct serve_task *tasks)
{
    size_t n = 0;
    *n_jobs = 0;
    while (tasks) {
        struct serve_job *job = tasks->job;
        bool begun = job->stage == SERVE_AT_WORK || job->error.status;
        uint64_t cost = 0;
        for (; tasks && tasks->job == job; tasks = tasks->next) cost += admission_cost_of(tasks);
        if (!begun && out) out[n] = (struct waiting){job, cost, n};
        n += !begun;
        ++*n_jobs;
    }
    return n;
}

struct group {
    struct waiting *first;
    size_t n;
};

static size_t make_groups(struct group *out, struct waiting *waiting, size_t n)
{
    size_t n_groups = 0;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || !serve_client_is(&waiting[i - 1].job->client, &waiting[i].job->client))
            out[n_groups++] = (struct group){&waiting[i], 0};
        out[n_groups - 1].n++;
    }
    return n_groups;
}

static void refuse(struct serve_job *job)
{
    serve_refuse(&job->error, 429, "rate_limit_exceeded", NULL, "%u requests are waiting already: try again later",
                 job->server->args->n_queue);
}

static void refuse_dearest(struct group *groups, size_t n_groups)
{
    struct group *largest = groups;
    for (size_t i = 1; i < n_groups; i++)
        if (groups[i].n > largest->n || (groups[i].n == largest->n && groups[i].first->cost > largest->first->cost))
            largest = &groups[i];
    refuse(largest->first->job);
    largest->first++;
    largest->n--;
}

void serve_admission_limit(const struct serve_task *tasks, size_t n_most)
{
    size_t n_jobs, n = find_waiting(NULL, &n_jobs, tasks);
    if (n_jobs <= n_most || n == 0) return;
    struct waiting *waiting = malloc(n * sizeof *waiting);
    struct group *groups = malloc(n * sizeof *groups);
    if (waiting && groups) {   /* else later */
        find_waiting(waiting, &n_jobs, tasks);
        qsort(waiting, n, sizeof *waiting, by_client);
        size_t n_groups = make_groups(groups, waiting, n);
        for (size_t i = pd_min(n, n_jobs - n_most); i > 0; i--) refuse_dearest(groups, n_groups);
    }
    free(waiting);
    free(groups);
}

/* ---- who is next ---- */

/* Of a job's tasks the first: they follow each other, and may be thousands. */
static struct serve_task *admission_choose(const struct serve_admission *a, struct serve_task *tasks, bool cheapest)
{
    const struct serve_job *offered = NULL;
    struct serve_fair_choice choice = serve_fair_begin(&a->fair);
    choice.cheapest = choice.cheapest || cheapest;
    for (struct serve_task *task = tasks; task; task = task->next) {
        if (task->job == offered || is_at_work(task) || must_wait(task) || task->job->error.status) continue;
        serve_fair_offer(&choice, task, &task->job->client, admission_cost_of(task));
        offered = task->job;
    }
    return choice.best;
}

static uint32_t count_at_work(const struct serve_task *tasks, const struct serve_client *client)
{
    uint32_t n = 0;
    for (const struct serve_task *task = tasks; task; task = task->next)
        n += is_at_work(task) && (!client || serve_client_is(client, &task->job->client));
    return n;
}

/* Texts that are written only: others end soon by themselves. */
static bool may_pause(const struct serve_task *task)
{
    return is_at_work(task) && serve_kind_writes(task->job->kind) && task->n_pauses < MOST_PAUSES;
}

/* The one that gives way to `task`: of a client who has at least two more at work, or of any, if it is much longer. Of
 * several the one with the fewest tokens to evaluate anew. NULL: none. */
static struct serve_task *find_longer(struct serve_task *tasks, const struct serve_task *task, bool is_short)
{
    uint32_t own = count_at_work(tasks, &task->job->client);
    struct serve_task *best = NULL;
    for (struct serve_task *other = tasks; other; other = other->next) {
        if (!may_pause(other)) continue;
        bool unfair = count_at_work(tasks, &other->job->client) > own + 1;
        bool longer = is_short && admission_cost_of(other) >= LONGER * (admission_cost_of(task) + 1);
        if ((unfair || longer) && (!best || n_tokens(other) < n_tokens(best))) best = other;
    }
    return best;
}

/* Of the places a fourth is for short tasks that come later. */
static bool may_pass(const struct serve_admission *a, const struct serve_task *tasks, const struct serve_task *task)
{
    uint32_t n = 0;
    for (const struct serve_task *other = tasks; other; other = other->next)
        n += is_at_work(other) && admission_cost_of(other) <= SHORT;
    return admission_cost_of(task) <= SHORT && n < pd_max(1, a->n_parallel / 4);
}

struct serve_task *serve_admission_next(struct serve_admission *a, struct serve_task *tasks)
{
    bool full = count_at_work(tasks, NULL) >= a->n_parallel;
    struct serve_task *task = admission_choose(a, tasks, full);
    if (!task) return NULL;
    if (full) {
        struct serve_task *longer = find_longer(tasks, task, may_pass(a, tasks, task));
        if (!longer) return NULL;
        serve_request_end(longer);
        longer->n_pauses++;
        serve_count(&task->job->server->metrics, SERVE_PREEMPTIONS, 1);
    }
    serve_fair_take(&a->fair, &task->job->client);
    return task;
}

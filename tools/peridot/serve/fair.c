#include "fair.h"
#include "job.h"

bool serve_client_is(const struct serve_client *a, const struct serve_client *b)
{
    return a->address == b->address && a->key == b->key;
}

static unsigned count_turns(const struct serve_fair *fair, const struct serve_client *client)
{
    unsigned n = 0;
    for (uint64_t i = 0; i < cmd_min(fair->n_taken, SERVE_FAIR_MEMORY); i++)
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

struct serve_job *serve_fair_next(struct serve_fair *fair, struct serve_job **list,
                                  uint64_t (*cost)(const struct serve_job *job, const void *user), const void *user)
{
    struct serve_fair_choice choice = serve_fair_begin(fair);
    for (struct serve_job *job = *list; job; job = job->next)
        serve_fair_offer(&choice, job, &job->client, cost(job, user));
    struct serve_job *job = choice.best, **at = list;
    if (!job) return NULL;
    while (*at != job) at = &(*at)->next;
    *at = job->next;
    job->next = NULL;
    serve_fair_take(fair, &job->client);
    return job;
}

void serve_fair_add(struct serve_job **list, struct serve_job *job)
{
    while (*list) list = &(*list)->next;
    job->next = NULL;
    *list = job;
}

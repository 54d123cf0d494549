#include "model/sampler.h"

#include "base/num.h"

#include <math.h>
#include <stdlib.h>

void pd_sampler_set(struct pd_sampler *s, const peridot_sampling *p)
{
    s->p = p ? *p : (peridot_sampling){0};
    s->rng = s->p.seed;
}

void pd_sampler_accept(struct pd_sampler *s, int32_t token)
{
    s->recent[s->n_seen++ % PD_REPEAT_WINDOW] = token;
}

static bool repeats(const struct pd_sampler *s)
{
    return s->p.repeat_penalty > 0 && s->p.repeat_penalty != 1;
}

static bool penalises(const struct pd_sampler *s)
{
    return repeats(s) || s->p.presence_penalty != 0 || s->p.frequency_penalty != 0;
}

bool pd_sampler_adjusts(const struct pd_sampler *s)
{
    return penalises(s) || s->p.n_bias;
}

/* A bonus can lift any token. */
static bool lifts(const struct pd_sampler *s)
{
    for (size_t i = 0; i < s->p.n_bias; i++)
        if (s->p.bias[i].value > 0) return true;
    return (repeats(s) && s->p.repeat_penalty < 1) || s->p.presence_penalty < 0 || s->p.frequency_penalty < 0;
}

uint32_t pd_sampler_needs(const struct pd_sampler *s)
{
    if ((s->p.temperature > 0 && s->p.top_k == 0) || lifts(s)) return 0;
    uint64_t n = (s->p.temperature > 0 ? s->p.top_k : 1) + (penalises(s) ? PD_REPEAT_WINDOW : 0) + (uint64_t)s->p.n_bias;
    return (uint32_t)pd_min(n, UINT32_MAX);
}

/* splitmix64 (Steele, Lea, Flood 2014): a number in [0, 1) of 53 random bits. */
static double uniform(struct pd_sampler *s)
{
    uint64_t z = s->rng += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static int compare(const void *left, const void *right)
{
    const struct pd_candidate *a = left, *b = right;
    if (a->logit != b->logit) return a->logit > b->logit ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

void pd_candidates_sort(struct pd_candidate *candidates, size_t n)
{
    qsort(candidates, n, sizeof *candidates, compare);
}

static uint32_t count_recent(const struct pd_sampler *s, uint32_t id)
{
    uint64_t n = pd_min(s->n_seen, PD_REPEAT_WINDOW);
    uint32_t count = 0;
    for (uint64_t i = 0; i < n; i++) count += (uint32_t)s->recent[i] == id;
    return count;
}

static float penalise(const struct pd_sampler *s, struct pd_candidate c)
{
    uint32_t count = count_recent(s, c.id);
    if (count == 0) return c.logit;
    if (repeats(s)) c.logit *= c.logit > 0 ? 1 / s->p.repeat_penalty : s->p.repeat_penalty;
    return c.logit - s->p.presence_penalty - s->p.frequency_penalty * (float)count;
}

static void adjust(const struct pd_sampler *s, struct pd_candidate *candidates, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < s->p.n_bias; j++)
            if ((uint32_t)s->p.bias[j].token == candidates[i].id) candidates[i].logit += s->p.bias[j].value;
        if (penalises(s)) candidates[i].logit = penalise(s, candidates[i]);
    }
    pd_candidates_sort(candidates, n);
}

/* Candidates whose probabilities first add up to top_p (at least one). */
static size_t cut_top_p(const struct pd_candidate *c, size_t n, float top_p, double total)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)c[i].logit;
        if (sum >= (double)top_p * total) return i + 1;
    }
    return n;
}

int32_t pd_sampler_draw(struct pd_sampler *s, struct pd_candidate *c, size_t n)
{
    if (pd_sampler_adjusts(s)) adjust(s, c, n);
    if (!(s->p.temperature > 0) || !isfinite(c[0].logit)) return (int32_t)c[0].id;
    if (s->p.top_k && s->p.top_k < n) n = s->p.top_k;
    double total = 0, top = (double)c[0].logit;
    for (size_t i = 0; i < n; i++) {   /* from here on `logit` is exp((logit - best) / temperature) */
        c[i].logit = (float)exp(((double)c[i].logit - top) / (double)s->p.temperature);
        total += (double)c[i].logit;
    }
    if (s->p.top_p > 0 && s->p.top_p < 1) n = cut_top_p(c, n, s->p.top_p, total);
    if (s->p.min_p > 0)   /* the best has weight 1, so p >= min_p * p_max is weight >= min_p */
        while (n > 1 && c[n - 1].logit < s->p.min_p) n--;
    while (n > 1 && c[n - 1].logit == 0) n--;   /* what is banned is not drawn, however the sums round */
    total = 0;
    for (size_t i = 0; i < n; i++) total += (double)c[i].logit;
    double at = uniform(s) * total;
    for (size_t i = 0; i + 1 < n; i++) {
        at -= (double)c[i].logit;
        if (at < 0) return (int32_t)c[i].id;
    }
    return (int32_t)c[n - 1].id;
}

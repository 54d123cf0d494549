#include "engine/sampler.h"

#include "base/num.h"
#include "base/random.h"

#include <float.h>
#include <math.h>

void pd_sampler_set(struct pd_sampler *s, const peridot_sampling *p)
{
    s->p = p ? *p : (peridot_sampling){0};
    s->rng = s->p.seed;
    s->value_begun = false;
}

void pd_sampler_accept(struct pd_sampler *s, int32_t token)
{
    s->recent[s->n_seen++ % PD_REPEAT_WINDOW] = token;
}

void pd_sampler_begin_value(struct pd_sampler *s, uint32_t pos)
{
    if (!s->p.grammar) return;
    s->value_begun = true;
    s->value_begin = s->value_end = pos;
    pd_walk_begin(&s->walk, &s->p.grammar->rules);
}

/* A token that cannot continue the value ends it. */
void pd_sampler_follow(struct pd_sampler *s, const int32_t *tokens, uint32_t n)
{
    const peridot_grammar *grammar = s->p.grammar;
    while (s->value_begun && s->value_end < n)
        s->value_begun = pd_grammar_take(&s->walk, grammar, tokens[s->value_end++]);
    if (!s->value_begun) pd_sampler_begin_value(s, n);
}

void pd_sampler_truncate(struct pd_sampler *s, uint32_t n)
{
    if (!s->value_begun || n >= s->value_end) return;
    bool begun = n >= s->value_begin;
    pd_sampler_begin_value(s, s->value_begin);
    s->value_begun = begun;
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
    uint64_t n =
        (s->p.temperature > 0 ? s->p.top_k : 1) + (penalises(s) ? PD_REPEAT_WINDOW : 0) + (uint64_t)s->p.n_bias;
    return (uint32_t)pd_min(n, UINT32_MAX);
}

bool pd_sampler_can_sample_on_device(const struct pd_sampler *s)
{
    uint32_t needs = pd_sampler_needs(s);
    return needs > 0 && needs <= PD_TOPK && !s->p.grammar;
}

/* 32 random bits of number `ahead` after the last one. */
static uint32_t random_bits(const struct pd_sampler *s, uint32_t ahead)
{
    return (uint32_t)(pd_splitmix(s->rng + PD_SPLITMIX_STEP * (ahead + (uint64_t)1)) >> 32);
}

static struct pd_draw draw_adjusting(const struct pd_sampler *s, uint32_t ahead)
{
    const peridot_sampling *p = &s->p;
    uint64_t n_seen = s->n_seen + ahead + 1;
    float repeat = repeats(s) ? p->repeat_penalty : 1;
    return (struct pd_draw){.n = 1,
                            .adjusts = pd_sampler_adjusts(s),
                            .n_bias = (uint32_t)pd_min(p->n_bias, PD_TOPK),
                            .n_recent = penalises(s) ? (uint32_t)pd_min(n_seen, PD_REPEAT_WINDOW) : 0,
                            .next = (uint32_t)(n_seen % PD_REPEAT_WINDOW),
                            .repeat = repeat,
                            .inverse_repeat = 1 / repeat,
                            .presence = p->presence_penalty,
                            .frequency = p->frequency_penalty};
}

struct pd_draw pd_sampler_draw_ahead(const struct pd_sampler *s, uint32_t n, uint32_t ahead)
{
    const peridot_sampling *p = &s->p;
    struct pd_draw draw = draw_adjusting(s, ahead);
    if (!(p->temperature > 0)) return draw;
    bool has_top_p = p->top_p > 0 && p->top_p < 1;
    double min_p = p->min_p > 0 ? fmin((double)p->min_p, 1) : 0;
    draw.scale = (float)fmin(1.4426950408889634 / (double)p->temperature, (double)FLT_MAX);
    draw.n = p->top_k ? (uint32_t)pd_min(p->top_k, n) : n;
    draw.top_p = has_top_p ? (uint32_t)fmax((double)p->top_p * 0x1p32, 1) : 0;
    draw.min_weight = (uint32_t)(min_p * (1 << PD_WEIGHT_BITS));
    draw.random = random_bits(s, ahead);
    return draw;
}

void pd_sampler_drawn(struct pd_sampler *s)
{
    if (s->p.temperature > 0) s->rng += PD_SPLITMIX_STEP;
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

void pd_sampler_adjust(const struct pd_sampler *s, struct pd_candidate *candidates, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < s->p.n_bias; j++)
            if ((uint32_t)s->p.bias[j].token == candidates[i].id) candidates[i].logit += s->p.bias[j].value;
        if (penalises(s)) candidates[i].logit = penalise(s, candidates[i]);
        if (isnan(candidates[i].logit)) candidates[i].logit = -INFINITY;   /* which has an order */
    }
    pd_candidates_sort(candidates, n);
}

int32_t pd_sampler_draw(struct pd_sampler *s, struct pd_candidate *c, size_t n)
{
    if (pd_sampler_adjusts(s)) pd_sampler_adjust(s, c, n);
    struct pd_draw draw = pd_sampler_draw_ahead(s, (uint32_t)n, 0);
    pd_sampler_drawn(s);
    return (int32_t)pd_draw_from(&draw, c);
}

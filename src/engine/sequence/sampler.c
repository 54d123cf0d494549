/* Drawing a token from the best candidates. The chain: logit bias, penalties, DRY, top-n-sigma, top-k, temperature,
 * top-p, min-p, XTC, draw. XTC decides by the other half of the number that the draw takes, so that a seed gives the
 * same numbers with it and without. What DRY and top-n-sigma look at is found before a draw (results.c). It runs on the
 * host or in kernel sample, which draws the same token. Where there is a grammar, callers leave out the candidates that
 * it does not allow (results.c), always on the host. */
#include "engine/sequence/sequence.h"

#include "base/base.h"

#include <float.h>
#include <math.h>

void pd_sampler_set(struct pd_sampler *s, const peridot_sampling *p)
{
    s->p = p ? *p : (peridot_sampling){0};
    s->rng = s->p.seed;
    s->value_begun = false;
    s->dry = NULL;
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
    s->dry = NULL;
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

bool pd_sampler_has_dry(const struct pd_sampler *s) { return s->p.dry_multiplier > 0; }

static bool has_sigma(const struct pd_sampler *s) { return s->p.temperature > 0 && s->p.top_n_sigma > 0; }

static uint32_t n_dry(const struct pd_sampler *s) { return s->dry ? s->dry->n : 0; }

/* The chain changes logits before it cuts. */
static bool adjusts(const struct pd_sampler *s)
{
    return penalises(s) || s->p.n_bias || n_dry(s);
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
    if ((s->p.temperature > 0 && s->p.top_k == 0) || has_sigma(s) || lifts(s)) return 0;
    uint64_t n = (s->p.temperature > 0 ? s->p.top_k : 1) + (penalises(s) ? PD_REPEAT_WINDOW : 0)
        + (uint64_t)s->p.n_bias + n_dry(s);
    return (uint32_t)pd_min(n, UINT32_MAX);
}

bool pd_sampler_can_sample_on_device(const struct pd_sampler *s)
{
    uint32_t needs = pd_sampler_needs(s);
    return needs > 0 && needs <= PD_TOPK && !s->p.grammar && !pd_sampler_has_dry(s);
}

double pd_sampler_deviation(const float *logits, size_t n)
{
    double sum = 0, squares = 0;
    size_t n_finite = 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(logits[i])) sum += (double)logits[i], n_finite++;
    double mean = n_finite ? sum / (double)n_finite : 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(logits[i])) squares += ((double)logits[i] - mean) * ((double)logits[i] - mean);
    return n_finite ? sqrt(squares / (double)n_finite) : 0;
}

/* Random bits of number `ahead` after the last one: the upper half draws, the lower half is for XTC. */
static uint64_t random_bits(const struct pd_sampler *s, uint32_t ahead)
{
    return pd_splitmix(s->rng + PD_SPLITMIX_STEP * (ahead + (uint64_t)1));
}

/* x of 2^32, at least 1; x is from 0 to 1 */
static uint32_t of_all(double x) { return (uint32_t)fmin(fmax(x * 0x1p32, 1), UINT32_MAX); }

/* 0: not in this draw */
static uint32_t xtc_part(const peridot_sampling *p, uint64_t bits)
{
    bool can = p->xtc_probability > 0 && p->xtc_threshold <= 0.5f;
    return can && (double)(uint32_t)bits < (double)p->xtc_probability * 0x1p32 ? of_all((double)p->xtc_threshold) : 0;
}

static struct pd_draw draw_adjusting(const struct pd_sampler *s, uint32_t ahead)
{
    const peridot_sampling *p = &s->p;
    uint64_t n_seen = s->n_seen + ahead + 1;
    float repeat = repeats(s) ? p->repeat_penalty : 1;
    return (struct pd_draw){.n = 1,
                            .adjusts = adjusts(s),
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
    draw.top_p = has_top_p ? of_all((double)p->top_p) : 0;
    draw.min_weight = (uint32_t)(min_p * (1 << PD_WEIGHT_BITS));
    uint64_t bits = random_bits(s, ahead);
    draw.random = (uint32_t)(bits >> 32);
    draw.xtc = xtc_part(p, bits);
    if (has_sigma(s)) draw.reach = (float)fmin((double)p->top_n_sigma * s->deviation, (double)FLT_MAX);
    return draw;
}

void pd_sampler_write_chain(const struct pd_sampler *s, int32_t recent[PD_REPEAT_WINDOW],
                            struct pd_candidate bias[PD_TOPK], int32_t token)
{
    memcpy(recent, s->recent, sizeof s->recent);
    recent[s->n_seen % PD_REPEAT_WINDOW] = token;
    for (size_t i = 0; i < pd_min(s->p.n_bias, PD_TOPK); i++)
        bias[i] = (struct pd_candidate){s->p.bias[i].value, (uint32_t)s->p.bias[i].token};
}

void pd_sampler_drawn(struct pd_sampler *s)
{
    if (s->p.temperature > 0) s->rng += PD_SPLITMIX_STEP;
}

static bool is_by_id(const struct pd_candidate *c, size_t n)
{
    size_t i = 1;
    while (i < n && c[i - 1].id < c[i].id) i++;
    return i >= n;
}

/* NULL: there is none. by_id: candidates are in the order of their ids, as where they are all. */
static struct pd_candidate *find_candidate(struct pd_candidate *c, size_t n, int32_t token, bool by_id)
{
    size_t first = 0, end = by_id ? n : 0;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (c[middle].id < (uint32_t)token) first = middle + 1;
        else end = middle;
    }
    while (!by_id && first < n && c[first].id != (uint32_t)token) first++;
    return first < n && c[first].id == (uint32_t)token ? &c[first] : NULL;
}

static float penalise(const struct pd_sampler *s, float logit, uint32_t count)
{
    if (repeats(s)) logit *= logit > 0 ? 1 / s->p.repeat_penalty : s->p.repeat_penalty;
    return logit - s->p.presence_penalty - s->p.frequency_penalty * (float)count;
}

/* Each token of the window once, where it comes first. */
static void penalise_recent(const struct pd_sampler *s, struct pd_candidate *c, size_t n, bool by_id)
{
    uint64_t n_recent = pd_min(s->n_seen, PD_REPEAT_WINDOW);
    for (uint64_t i = 0; i < n_recent; i++) {
        uint32_t before = 0, count = 0;
        for (uint64_t k = 0; k < n_recent; k++) {
            bool same = s->recent[k] == s->recent[i];
            before += same && k < i;
            count += same;
        }
        struct pd_candidate *of = before ? NULL : find_candidate(c, n, s->recent[i], by_id);
        if (of) of->logit = penalise(s, of->logit, count);
    }
}

/* A penalty too large for a float is minus infinity to the logit. */
static void penalise_repetitions(const struct pd_sampler *s, struct pd_candidate *c, size_t n, bool by_id)
{
    const peridot_sampling *p = &s->p;
    double base = p->dry_base >= 1 ? (double)p->dry_base : 1.75;
    uint32_t least = pd_dry_least(p);
    for (uint32_t i = 0; i < n_dry(s); i++) {
        struct pd_candidate *of = find_candidate(c, n, s->dry->at[i].token, by_id);
        double penalty = (double)p->dry_multiplier * pow(base, s->dry->at[i].length - least);
        if (of) of->logit -= (float)fmin(penalty, (double)FLT_MAX);
    }
}

static void adjust(const struct pd_sampler *s, struct pd_candidate *c, size_t n)
{
    bool by_id = is_by_id(c, n);
    for (size_t i = 0; i < s->p.n_bias; i++) {
        struct pd_candidate *of = find_candidate(c, n, s->p.bias[i].token, by_id);
        if (of) of->logit += s->p.bias[i].value;
    }
    if (penalises(s)) penalise_recent(s, c, n, by_id);
    penalise_repetitions(s, c, n, by_id);
    for (size_t i = 0; i < n; i++)
        if (isnan(c[i].logit)) c[i].logit = -INFINITY;   /* which has an order */
}

void pd_sampler_adjust(const struct pd_sampler *s, struct pd_candidate *candidates, size_t n)
{
    adjust(s, candidates, n);
    pd_candidates_sort(candidates, n);
}

int32_t pd_sampler_draw(struct pd_sampler *s, struct pd_candidate *c, size_t n)
{
    if (adjusts(s)) adjust(s, c, n);
    struct pd_draw draw = pd_sampler_draw_ahead(s, (uint32_t)n, 0);
    pd_sampler_drawn(s);
    if (n > PD_TOPK) return (int32_t)pd_draw_from_all(&draw, c, (uint32_t)n);
    pd_candidates_sort(c, n);
    return (int32_t)pd_draw_from(&draw, c);
}

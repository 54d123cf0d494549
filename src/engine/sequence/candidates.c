/* Candidates for the next token: their order, and drawing one of them. The sampler's chain says how. */
#include "engine/sequence/sequence.h"

#include "base/base.h"
#include "draw.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N_BANDS 1024
#define FEW 256            /* candidates that are sorted rather than divided into bands */

static int compare(const void *left, const void *right)
{
    const struct pd_candidate *a = left, *b = right;
    if (a->logit != b->logit) return a->logit > b->logit ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

void pd_candidates_sort(struct pd_candidate *candidates, size_t n)
{
    size_t i = 1;
    while (i < n && compare(&candidates[i - 1], &candidates[i]) < 0) i++;
    if (i < n) qsort(candidates, n, sizeof *candidates, compare);
}

/* ---- drawing: sample.comp does the same, in the same numbers ---- */

/* All candidates need finer weights than the best few: they may be many and unlikely. */
static unsigned weight_bits(const struct pd_draw *d) { return d->n <= PD_TOPK ? PD_WEIGHT_BITS : 40; }

/* How far a candidate is below the best one, in halvings of its weight. */
static float distance(const struct pd_draw *d, struct pd_candidate best, struct pd_candidate c)
{
    return (best.logit - c.logit) * d->scale;
}

/* The best one's is 2^bits. It falls with the distance, never rises, which holds for every float. */
static uint64_t weight_at(float distance, unsigned bits)
{
    if (!((double)distance < bits + 1)) return 0;   /* also what is no number */
    uint32_t whole = (uint32_t)distance;
    return ((uint64_t)pd_pow2(distance - (float)whole) << 32) >> (63 - bits + whole);
}

static bool in_reach(const struct pd_draw *d, struct pd_candidate best, struct pd_candidate c)
{
    return !(d->reach > 0 && best.logit - c.logit > d->reach);
}

static uint64_t weight_of(const struct pd_draw *d, const struct pd_candidate *c, uint32_t i)
{
    if (!in_reach(d, c[0], c[i])) return 0;
    return weight_at(i ? distance(d, c[0], c[i]) : 0, weight_bits(d));
}

static uint64_t least_weight(const struct pd_draw *d)
{
    return (uint64_t)d->min_weight << (weight_bits(d) - PD_WEIGHT_BITS);
}

/* a f / 2^32 */
static uint64_t part_of(uint64_t a, uint32_t f)
{
    return (a >> 32) * f + ((a & UINT32_MAX) * f >> 32);
}

/* The weight of those that XTC leaves out, of the best ones with a weight of `kept` in all. */
static uint64_t excluded_weight(const struct pd_draw *d, const struct pd_candidate *c, uint64_t kept)
{
    uint64_t least = part_of(kept, d->xtc), sum = 0, excluded = 0;
    for (uint32_t i = 0; d->xtc && sum < kept; i++) {
        uint64_t weight = weight_of(d, c, i);
        if (weight < least) break;
        excluded = sum;
        sum += weight;
    }
    return excluded;
}

uint32_t pd_draw_from(const struct pd_draw *d, const struct pd_candidate *c)
{
    uint64_t total = 0, least = least_weight(d), sum = 0, kept = 0;
    for (uint32_t i = 0; i < d->n; i++) total += weight_of(d, c, i);
    for (uint32_t i = 0; i < d->n && (!d->top_p || i == 0 || sum < part_of(total, d->top_p)); i++) {
        uint64_t weight = weight_of(d, c, i);
        sum += weight;
        if (weight > 0 && weight >= least) kept = sum;
    }
    uint64_t excluded = excluded_weight(d, c, kept), at = excluded + part_of(kept - excluded, d->random);
    uint32_t i = 0;
    for (sum = weight_of(d, c, 0); sum <= at; sum += weight_of(d, c, i)) i++;
    return c[i].id;
}

/* ---- drawing from all ---- */

/* Candidates by their distance from the best one, in bands of equal width. */
struct bands {
    float first, per_band;     /* per_band 0: they cannot be divided, and are in band 0 */
    uint32_t n[N_BANDS];
    uint64_t weight[N_BANDS];
};

/* Candidates with a weight above 0, in any order. */
struct set {
    const struct pd_draw *draw;
    struct pd_candidate best, *c;
    uint32_t n;
};

static float distance_in(const struct set *set, uint32_t i) { return distance(set->draw, set->best, set->c[i]); }

static uint32_t band_of(const struct bands *b, float distance)
{
    float band = (distance - b->first) * b->per_band;
    return band < N_BANDS - 1 ? (uint32_t)band : N_BANDS - 1;
}

static void divide(struct bands *b, const struct set *set)
{
    unsigned bits = weight_bits(set->draw);
    float first = INFINITY, last = 0;
    memset(b, 0, sizeof *b);
    for (uint32_t i = 0; i < set->n; i++) {
        float x = distance_in(set, i);
        first = x < first ? x : first;
        last = x > last ? x : last;
    }
    b->first = first;
    if (last - first > FLT_MIN * N_BANDS) b->per_band = N_BANDS / (last - first);
    for (uint32_t i = 0; i < set->n; i++) {
        float x = distance_in(set, i);
        uint32_t band = band_of(b, x);
        b->n[band]++;
        b->weight[band] += weight_at(x, bits);
    }
}

static void swap(struct pd_candidate *a, struct pd_candidate *b)
{
    struct pd_candidate c = *a;
    *a = *b;
    *b = c;
}

enum measure { COUNT, WEIGHT };

/* Best first, the candidate at which the sum of counts or weights so far exceeds `at`; *sum becomes that sum. The sum
 * of all does exceed it. From the bands of the set it goes on to those of one band, until few are left to sort. */
static struct pd_candidate candidates_find(uint64_t *sum, struct set set, const struct bands *b, enum measure measure,
                                           uint64_t at)
{
    struct bands narrower;
    uint64_t before = 0;
    while (set.n > FEW && b->per_band > 0) {
        uint32_t band = 0, n = 0;
        for (uint64_t in; in = measure == COUNT ? b->n[band] : b->weight[band], before + in <= at; band++) before += in;
        for (uint32_t i = 0; i < set.n; i++)
            if (band_of(b, distance_in(&set, i)) == band) swap(&set.c[n++], &set.c[i]);
        set.n = n;
        divide(&narrower, &set);
        b = &narrower;
    }
    pd_candidates_sort(set.c, set.n);
    *sum = before;
    for (uint32_t i = 0;; i++) {
        *sum += measure == COUNT ? 1 : weight_at(distance_in(&set, i), weight_bits(set.draw));
        if (*sum > at) return set.c[i];
    }
}

/* Leaves those that have a weight, and are in reach. */
static void drop_weightless(struct set *set)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < set->n; i++)
        if (distance_in(set, i) < (float)weight_bits(set->draw) + 1 && in_reach(set->draw, set->best, set->c[i]))
            swap(&set->c[n++], &set->c[i]);
    set->n = n;
}

/* Leaves the best draw->n. */
static void cut(struct set *set, struct bands *b)
{
    uint64_t sum;
    uint32_t n = 0;
    struct pd_candidate last = candidates_find(&sum, *set, b, COUNT, set->draw->n - 1);
    for (uint32_t i = 0; i < set->n; i++)
        if (compare(&set->c[i], &last) <= 0) swap(&set->c[n++], &set->c[i]);
    set->n = n;
    divide(b, set);
}

/* The weight of those that are left by top-p and min-p, which both leave the best ones. */
static uint64_t kept_weight(const struct set *set, const struct bands *b)
{
    const struct pd_draw *d = set->draw;
    uint64_t kept = 0, likely = 0;
    unsigned bits = weight_bits(d);
    for (uint32_t i = 0; i < N_BANDS; i++) kept += b->weight[i];
    if (d->top_p) candidates_find(&kept, *set, b, WEIGHT, pd_max(part_of(kept, d->top_p), 1) - 1);
    for (uint32_t i = 0; i < set->n && d->min_weight; i++) {
        uint64_t weight = weight_at(distance_in(set, i), bits);
        if (weight >= least_weight(d)) likely += weight;
    }
    return d->min_weight ? pd_min(kept, likely) : kept;
}

/* See excluded_weight. */
static uint64_t excluded_of_all(const struct set *set, const struct bands *b, uint64_t kept)
{
    const struct pd_draw *d = set->draw;
    uint64_t likely = 0, least = part_of(kept, d->xtc), sum;
    unsigned bits = weight_bits(d);
    for (uint32_t i = 0; i < set->n && d->xtc; i++) {
        uint64_t weight = weight_at(distance_in(set, i), bits);
        if (weight >= least) likely += weight;
    }
    likely = pd_min(likely, kept);
    if (likely == 0) return 0;
    struct pd_candidate last = candidates_find(&sum, *set, b, WEIGHT, likely - 1);
    return sum - weight_at(distance(d, set->best, last), bits);
}

uint32_t pd_draw_from_all(const struct pd_draw *d, struct pd_candidate *c, uint32_t n)
{
    struct set set = {.draw = d, .best = c[0], .c = c, .n = n};
    struct bands bands;
    uint64_t sum;
    for (uint32_t i = 1; i < n; i++)
        if (compare(&c[i], &set.best) < 0) set.best = c[i];
    if (d->n == 1 || isinf(set.best.logit)) return set.best.id;   /* nothing is at a finite distance */
    drop_weightless(&set);
    divide(&bands, &set);
    if (set.n > d->n) cut(&set, &bands);
    uint64_t kept = kept_weight(&set, &bands), excluded = excluded_of_all(&set, &bands, kept);
    return candidates_find(&sum, set, &bands, WEIGHT, excluded + part_of(kept - excluded, d->random)).id;
}

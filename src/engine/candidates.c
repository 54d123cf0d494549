#include "engine/candidates.h"

#include "draw.h"

#include <stdlib.h>

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

/* ---- drawing: sample.comp does the same, in the same numbers ---- */

/* All candidates need finer weights than the best few: they may be many and unlikely. */
static unsigned weight_bits(const struct pd_draw *d) { return d->n <= PD_TOPK ? PD_WEIGHT_BITS : 40; }

static uint64_t weight_of(const struct pd_draw *d, const struct pd_candidate *c, uint32_t i)
{
    unsigned bits = weight_bits(d);
    if (i == 0) return (uint64_t)1 << bits;
    float below = c[0].logit - c[i].logit;
    float x = below * d->scale;
    if (!((double)x < bits + 1)) return 0;   /* also what is no number */
    uint32_t whole = (uint32_t)x;
    return ((uint64_t)pd_pow2(x - (float)whole) << 32) >> (63 - bits + whole);
}

/* a f / 2^32 */
static uint64_t part_of(uint64_t a, uint32_t f)
{
    return (a >> 32) * f + ((a & UINT32_MAX) * f >> 32);
}

uint32_t pd_draw_from(const struct pd_draw *d, const struct pd_candidate *c)
{
    uint64_t total = 0, least = (uint64_t)d->min_weight << (weight_bits(d) - PD_WEIGHT_BITS), sum = 0, kept = 0;
    for (uint32_t i = 0; i < d->n; i++) total += weight_of(d, c, i);
    for (uint32_t i = 0; i < d->n && (!d->top_p || i == 0 || sum < part_of(total, d->top_p)); i++) {
        uint64_t weight = weight_of(d, c, i);
        sum += weight;
        if (weight > 0 && weight >= least) kept = sum;
    }
    uint64_t at = part_of(kept, d->random);
    uint32_t i = 0;
    for (sum = weight_of(d, c, 0); sum <= at; sum += weight_of(d, c, i)) i++;
    return c[i].id;
}

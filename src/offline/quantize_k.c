/* Quantisers of the K types. Rounding to the nearest step of the widest range is not the best that a few bits
 * can do: each group tries some twenty slightly different steps, fits scale (and minimum) to the resulting integers by
 * weighted least squares, and keeps the best. Steps and weights are those of ggml's reference quantisers
 * (ggml-quants.c: make_qkx2_quants, make_qx_quants, make_q3_quants), so that the error is theirs.
 *     Eight groups go side by side, weight i of all of them before weight i + 1: each sum is still one loop's, and
 * compilers make vectors of the eight.
 *     With the importance of each column (the mean square of what it multiplies) errors count by it, more steps are
 * tried, and the groups' own scales are rounded by the same measure. The types of quantize.c search so only then. */
#include "offline/offline_.h"

#include "format/format.h"

#include <math.h>
#include <string.h>

enum { LANES = 8 };

typedef float lanes[LANES];

/* The nearest integer, even at ties, within bounds below 2^21; NaN gives `low`. Adding 1.5 * 2^23 leaves no bits behind
 * the point. */
static inline float nearest(float x, float low, float high)
{
    const float shift = 12582912.0f;
    x = x > low ? x : low;
    x = x < high ? x : high;
    float shifted = x + shift;
    return shifted - shift;
}

/* 8 groups of n weights, one after the other, to [n][8]. */
static void transpose(lanes *dst, const float *src, int n)
{
    for (int g = 0; g < LANES; g++)
        for (int i = 0; i < n; i++) dst[i][g] = src[n * g + i];
}

/* ---- scale and minimum: Q2_K, Q4_K, Q5_K ---- */

enum { GROUP = 32, GROUP16 = 16 };

/* A group is x = scale * q - minimum with q in 0..max and minimum >= 0. */
struct fits {
    lanes scale, minimum, error;
};

/* The steps that are tried: range / (max + first + i each) for i in 0..n. */
struct steps {
    float max, first, each;
    int n;
    int group;       /* weights of a group */
    bool absolute;   /* weights matter by their size alone, and errors by theirs, not by its square */
    bool follows;    /* steps begin at the best minimum so far, as in ggml, not at the least weight */
};

static const struct steps q4_steps = {15, -1.0f, 0.1f, 20, GROUP, false, false},
    q5_steps = {31, -0.5f, 0.1f, 15, GROUP, false, false},
    q4_weighted_steps = {15, -0.9f, 0.05f, 36, GROUP, false, false},
    q5_weighted_steps = {31, -0.9f, 0.05f, 36, GROUP, false, false},
    q2_steps = {3, -0.5f, 0.1f, 15, GROUP16, true, true},
    q2_weighted_steps = {3, -0.9f, 0.05f, 36, GROUP16, false, true};

struct groups {
    int n;
    bool absolute;
    lanes x[GROUP], weights[GROUP];
    lanes low, high, span;       /* span: from low to the largest */
    lanes sum_w, sum_wx;
};

/* Large weights matter more, small ones not nothing. */
static void weigh(struct groups *s)
{
    lanes mean = {0};
    for (int i = 0; s->absolute && i < s->n; i++)
        for (int g = 0; g < LANES; g++) s->weights[i][g] = fabsf(s->x[i][g]);
    if (s->absolute) return;
    for (int i = 0; i < s->n; i++)
        for (int g = 0; g < LANES; g++) {
            float square = s->x[i][g] * s->x[i][g];
            mean[g] += square;
        }
    for (int g = 0; g < LANES; g++) mean[g] = sqrtf(mean[g] / (float)s->n);
    for (int i = 0; i < s->n; i++)
        for (int g = 0; g < LANES; g++) s->weights[i][g] = mean[g] + fabsf(s->x[i][g]);
}

/* Twice the mean square of all groups. */
static float twice_mean_square(const struct groups *s)
{
    float mean = 0;
    for (int i = 0; i < s->n; i++)
        for (int g = 0; g < LANES; g++) mean += s->x[i][g] * s->x[i][g];
    return mean * (2.0f / (float)(s->n * LANES));
}

/* The same by importance. mean: what a square counts beside that of the weight. */
static void weigh_by(struct groups *s, const float *importance, float mean)
{
    transpose(s->weights, importance, s->n);
    for (int i = 0; i < s->n; i++)
        for (int g = 0; g < LANES; g++) s->weights[i][g] *= sqrtf(mean + s->x[i][g] * s->x[i][g]);
}

static void sum_weights(struct groups *s)
{
    for (int i = 0; i < s->n; i++)
        for (int g = 0; g < LANES; g++) {
            float weighted = s->weights[i][g] * s->x[i][g];
            s->sum_w[g] += s->weights[i][g];
            s->sum_wx[g] += weighted;
        }
}

/* The weights that errors count by are still to be set. */
static void read_groups(struct groups *s, const float *src, int n)
{
    *s = (struct groups){.n = n};
    transpose(s->x, src, n);
    memcpy(s->high, s->x[0], sizeof s->high);
    for (int i = 0; i < s->n; i++)
        for (int g = 0; g < LANES; g++) {
            s->low[g] = s->x[i][g] < s->low[g] ? s->x[i][g] : s->low[g];
            s->high[g] = s->x[i][g] > s->high[g] ? s->x[i][g] : s->high[g];
        }
    for (int g = 0; g < LANES; g++) s->span[g] = s->high[g] - s->low[g];
}

static void read_weighted(struct groups *s, const float *src, const float *importance, int n)
{
    read_groups(s, src, n);
    if (importance) weigh_by(s, importance, twice_mean_square(s));
    else weigh(s);
}

static void round_groups(lanes q[GROUP], const struct groups *s, const lanes per_step, float max)
{
    for (int i = 0; i < s->n; i++)
        for (int g = 0; g < LANES; g++) q[i][g] = nearest(per_step[g] * (s->x[i][g] - s->low[g]), 0, max);
}

static void find_errors(struct fits *f, const struct groups *s, lanes q[GROUP])
{
    memset(f->error, 0, sizeof f->error);
    for (int i = 0; i < s->n; i++)
        for (int g = 0; g < LANES; g++) {
            float scaled = f->scale[g] * q[i][g], difference = scaled - f->minimum[g] - s->x[i][g];
            float square = difference * difference;
            float weighted = s->weights[i][g] * (s->absolute ? fabsf(difference) : square);
            f->error[g] += weighted;
        }
}

struct sums {
    lanes wq, wqq, wqx;
};

static struct sums sum_integers(const struct groups *s, lanes q[GROUP])
{
    struct sums sums = {{0}, {0}, {0}};
    for (int i = 0; i < s->n; i++)
        for (int g = 0; g < LANES; g++) {
            float wq = s->weights[i][g] * q[i][g], wqq = wq * q[i][g], wqx = wq * s->x[i][g];
            sums.wq[g] += wq;
            sums.wqq[g] += wqq;
            sums.wqx[g] += wqx;
        }
    return sums;
}

/* Least squares for given integers, minimum >= 0. Where the integers do not determine it, the error is infinite. */
static void fit_integers(struct fits *f, const struct groups *s, lanes q[GROUP])
{
    struct sums sums = sum_integers(s, q);
    bool determined[LANES];
    for (int g = 0; g < LANES; g++) {
        float w_wqq = s->sum_w[g] * sums.wqq[g], wq_wq = sums.wq[g] * sums.wq[g], determinant = w_wqq - wq_wq;
        float w_wqx = s->sum_w[g] * sums.wqx[g], wx_wq = s->sum_wx[g] * sums.wq[g];
        float wq_wqx = sums.wq[g] * sums.wqx[g], wqq_wx = sums.wqq[g] * s->sum_wx[g];
        f->scale[g] = (w_wqx - wx_wq) / determinant;
        f->minimum[g] = (wq_wqx - wqq_wx) / determinant;
        determined[g] = determinant > 0;
        if (f->minimum[g] < 0) {
            f->minimum[g] = 0;
            f->scale[g] = sums.wqx[g] / sums.wqq[g];
        }
    }
    find_errors(f, s, q);
    for (int g = 0; g < LANES; g++)
        if (!determined[g]) f->error[g] = INFINITY;
}

static void keep_better(struct fits *best, const struct fits *f)
{
    for (int g = 0; g < LANES; g++) {
        bool better = f->error[g] < best->error[g];
        best->scale[g] = better ? f->scale[g] : best->scale[g];
        best->minimum[g] = better ? f->minimum[g] : best->minimum[g];
        best->error[g] = better ? f->error[g] : best->error[g];
    }
}

/* Of groups that have their weights. */
static void search_steps(struct fits *best, struct groups *s, const struct steps *steps)
{
    struct fits f;
    lanes q[GROUP], per_step;
    sum_weights(s);
    for (int g = 0; g < LANES; g++) {
        per_step[g] = steps->max / s->span[g];
        best->scale[g] = 1 / per_step[g];
        best->minimum[g] = -s->low[g];
    }
    round_groups(q, s, per_step, steps->max);
    find_errors(best, s, q);
    for (int i = 0; i <= steps->n; i++) {
        float more = steps->each * (float)i, n_steps = steps->first + more + steps->max;
        for (int g = 0; g < LANES; g++) per_step[g] = n_steps / s->span[g];
        round_groups(q, s, per_step, steps->max);
        fit_integers(&f, s, q);
        keep_better(best, &f);
        for (int g = 0; steps->follows && g < LANES; g++) {
            s->low[g] = -best->minimum[g];
            s->span[g] = s->high[g] - s->low[g];
        }
    }
    for (int g = 0; g < LANES; g++) {
        if (s->span[g] != 0) continue;
        best->scale[g] = 0;
        best->minimum[g] = -s->low[g];
    }
}

/* sum_w: of each group's weights. */
static void fit_groups(struct fits *best, lanes sum_w, const float *src, const float *importance,
                       const struct steps *steps)
{
    struct groups s;
    read_weighted(&s, src, importance, steps->group);
    search_steps(best, &s, steps);
    memcpy(sum_w, s.sum_w, sizeof s.sum_w);
}

/* n integers in 0..max, at most 16, and a unit, such that unit * q is near x: the sum of weights times squared errors
 * is least among the units tried, and then no change of one integer and the unit with it makes it less. */
static float fit_units(float *q, const float *x, const float *weights, int n, float max)
{
    enum { N_UNITS = 9, N_ROUNDS = 5 };
    float largest = 0, least = INFINITY, xq = 0, qq = 0;
    for (int g = 0; g < n; g++) largest = x[g] > largest ? x[g] : largest;
    for (int g = 0; g < n; g++) q[g] = 0;
    if (largest == 0) return 0;
    for (int i = 0; i < N_UNITS; i++) {
        float per_unit = (max + 0.1f * (float)(i - N_UNITS / 2)) / largest, error = 0;
        float tried[16];
        for (int g = 0; g < n; g++) {
            tried[g] = nearest(per_unit * x[g], 0, max);
            float difference = x[g] - tried[g] / per_unit;
            error += weights[g] * difference * difference;
        }
        if (error >= least) continue;
        least = error;
        memcpy(q, tried, (size_t)n * sizeof *q);
    }
    for (int g = 0; g < n; g++) {
        xq += weights[g] * x[g] * q[g];
        qq += weights[g] * q[g] * q[g];
    }
    for (int round = 0, changed = 1; changed && round < N_ROUNDS; round++) {
        changed = 0;
        for (int g = 0; g < n; g++) {
            float other_xq = xq - weights[g] * x[g] * q[g], other_qq = qq - weights[g] * q[g] * q[g];
            if (!(other_xq > 0 && other_qq > 0)) continue;
            float better = nearest(x[g] * other_qq / other_xq, 0, max);
            float new_xq = other_xq + weights[g] * x[g] * better, new_qq = other_qq + weights[g] * better * better;
            if (better == q[g] || !(new_xq * new_xq * qq > xq * xq * new_qq)) continue;
            q[g] = better;
            xq = new_xq;
            qq = new_qq;
            changed = 1;
        }
    }
    return qq > 0 ? xq / qq : 0;
}

static void put_scales(uint8_t *dst, float unit, float minimum_unit, const lanes scales, const lanes minima)
{
    pd_store_f16(dst, unit);
    pd_store_f16(dst + 2, minimum_unit);
    memset(dst + 4, 0, 12);
    for (int g = 0; g < LANES; g++)
        pd_k_scale_set(dst + 4, g, (struct pd_k_scale){(uint8_t)scales[g], (uint8_t)minima[g]});
}

static void encode_scales_by(uint8_t *dst, const struct fits *fits, const lanes weights)
{
    lanes scales, minima;
    float unit = fit_units(scales, fits->scale, weights, LANES, 63);
    float minimum_unit = fit_units(minima, fits->minimum, weights, LANES, 63);
    put_scales(dst, unit, minimum_unit, scales, minima);
}

/* The 16 bytes that begin a block of Q4_K and Q5_K. */
static void encode_scales(uint8_t *dst, const struct fits *fits)
{
    lanes scales, minima;
    float scale = 0, minimum = 0;
    for (int g = 0; g < LANES; g++) {
        if (fits->scale[g] > scale) scale = fits->scale[g];
        if (fits->minimum[g] > minimum) minimum = fits->minimum[g];
    }
    float per_scale = scale > 0 ? 63 / scale : 0, per_minimum = minimum > 0 ? 63 / minimum : 0;
    for (int g = 0; g < LANES; g++) {
        scales[g] = nearest(per_scale * fits->scale[g], 0, 63);
        minima[g] = nearest(per_minimum * fits->minimum[g], 0, 63);
    }
    put_scales(dst, scale / 63, minimum / 63, scales, minima);
}

/* All but the quants, then the quants that the scales as stored ask for. */
static void encode_groups(uint8_t q[256], uint8_t *dst, const float *src, const float *importance,
                          const struct steps *steps)
{
    struct fits fits;
    lanes weights;
    fit_groups(&fits, weights, src, importance, steps);
    if (importance) encode_scales_by(dst, &fits, weights);
    else encode_scales(dst, &fits);
    float d = pd_load_f16(dst), dmin = pd_load_f16(dst + 2);
    for (int g = 0; g < LANES; g++) {
        struct pd_k_scale s = pd_k_scale_get(dst + 4, g);
        float scale = d * (float)s.scale, minimum = dmin * (float)s.minimum;
        for (int i = GROUP * g; i < GROUP * (g + 1); i++)
            q[i] = scale != 0 ? (uint8_t)nearest((src[i] + minimum) / scale, 0, steps->max) : 0;
    }
}

static void put_nibbles(uint8_t *dst, const uint8_t q[256])
{
    for (int i = 0; i < 128; i++) {
        const uint8_t *low = q + i / 32 * 64 + i % 32;
        dst[i] = (uint8_t)((low[0] & 15) | (low[32] & 15) << 4);
    }
}

void pd_q4_k_encode(uint8_t *dst, const float *src, const float *importance, uint64_t n)
{
    uint8_t q[256];
    for (uint64_t b = 0; b < n; b++, src += 256, dst += 144) {
        encode_groups(q, dst, src, importance, importance ? &q4_weighted_steps : &q4_steps);
        if (importance) importance += 256;
        put_nibbles(dst + 16, q);
    }
}

void pd_q5_k_encode(uint8_t *dst, const float *src, const float *importance, uint64_t n)
{
    uint8_t q[256];
    for (uint64_t b = 0; b < n; b++, src += 256, dst += 176) {
        encode_groups(q, dst, src, importance, importance ? &q5_weighted_steps : &q5_steps);
        if (importance) importance += 256;
        memset(dst + 16, 0, 32);
        for (int i = 0; i < 256; i++) dst[16 + i % 32] |= (uint8_t)(q[i] >> 4 << i / 32);
        put_nibbles(dst + 48, q);
    }
}

/* Scales and minimums of 16 groups, the halves of a block side by side. */
struct halves {
    float scale[16], minimum[16], sum_w[16];
};

static void fit_halves(struct halves *out, const float *src, const float *importance)
{
    float mean = 0;
    for (int i = 0; i < 256; i++) mean += src[i] * src[i];
    for (int h = 0; h < 2; h++) {
        struct fits fits;
        struct groups s;
        read_groups(&s, src + 128 * h, GROUP16);
        s.absolute = !importance;
        if (importance) weigh_by(&s, importance + 128 * h, mean / 256);
        else weigh(&s);
        search_steps(&fits, &s, importance ? &q2_weighted_steps : &q2_steps);
        memcpy(out->scale + LANES * h, fits.scale, sizeof fits.scale);
        memcpy(out->minimum + LANES * h, fits.minimum, sizeof fits.minimum);
        memcpy(out->sum_w + LANES * h, s.sum_w, sizeof s.sum_w);
    }
}

/* 16 integers in 0..15, the largest 15, and their unit. */
static float round_units(float q[16], const float x[16])
{
    float largest = 0;
    for (int g = 0; g < 16; g++) largest = x[g] > largest ? x[g] : largest;
    float per_unit = largest > 0 ? 15 / largest : 0;
    for (int g = 0; g < 16; g++) q[g] = nearest(per_unit * x[g], 0, 15);
    return largest / 15;
}

static void put_two_bits(uint8_t *dst, int i, int q) { dst[i / 128 * 32 + i % 32] |= (uint8_t)(q << i % 128 / 32 * 2); }

void pd_q2_k_encode(uint8_t *dst, const float *src, const float *importance, uint64_t n)
{
    memset(dst, 0, n * 84);
    for (uint64_t b = 0; b < n; b++, src += 256, dst += 84) {
        struct halves fits;
        float scales[16], minima[16];
        const float *by = importance ? importance + 256 * b : NULL;
        fit_halves(&fits, src, by);
        pd_store_f16(dst + 80, by ? fit_units(scales, fits.scale, fits.sum_w, 16, 15)
                                  : round_units(scales, fits.scale));
        pd_store_f16(dst + 82, by ? fit_units(minima, fits.minimum, fits.sum_w, 16, 15)
                                  : round_units(minima, fits.minimum));
        float d = pd_load_f16(dst + 80), dmin = pd_load_f16(dst + 82);
        for (int g = 0; g < 16; g++) dst[g] = (uint8_t)((int)scales[g] | (int)minima[g] << 4);
        for (int i = 0; i < 256; i++) {
            float scale = d * scales[i / 16], minimum = dmin * minima[i / 16];
            put_two_bits(dst + 16, i, scale != 0 ? (int)nearest((src[i] + minimum) / scale, 0, 3) : 0);
        }
    }
}

/* ---- scale alone: Q3_K, Q6_K ---- */

/* Below this a group is zero. */
static const float tiny = 1e-15f;

/* 8 groups of n weights: x = scale * q with q in -most..most - 1. */
struct scaled_groups {
    lanes *x, *weights;   /* [n] */
    int n;
    float most;
};

/* Sums over the integers that a step makes, by weights: of x * q and of q * q. */
static inline void sum_products(lanes xq, lanes qq, const struct scaled_groups *s, const lanes per_step)
{
    for (int g = 0; g < LANES; g++) xq[g] = qq[g] = 0;
    for (int i = 0; i < s->n; i++)
        for (int g = 0; g < LANES; g++) {
            float q = nearest(per_step[g] * s->x[i][g], -s->most, s->most - 1);
            float weighted_x = s->weights[i][g] * s->x[i][g], weighted_q = s->weights[i][g] * q;
            float a = weighted_x * q, b = weighted_q * q;
            xq[g] += a;
            qq[g] += b;
        }
}

/* Scales of 8 groups; each has the sign that puts the weight of largest magnitude at -most, which is wider. */
static inline void fit_scales(float scale[LANES], const struct scaled_groups *s)
{
    lanes widest = {0}, per_step, xq, qq, best;
    for (int i = 0; i < s->n; i++)
        for (int g = 0; g < LANES; g++) widest[g] = fabsf(s->x[i][g]) > fabsf(widest[g]) ? s->x[i][g] : widest[g];
    for (int g = 0; g < LANES; g++) per_step[g] = -s->most / widest[g];
    sum_products(xq, qq, s, per_step);
    for (int g = 0; g < LANES; g++) {
        scale[g] = qq[g] != 0 ? xq[g] / qq[g] : 0;
        best[g] = scale[g] * xq[g];
    }
    for (int i = -9; i <= 9; i++) {
        float more = 0.1f * (float)i, n_steps = s->most + more;
        if (i == 0) continue;
        for (int g = 0; g < LANES; g++) per_step[g] = -n_steps / widest[g];
        sum_products(xq, qq, s, per_step);
        for (int g = 0; g < LANES; g++) {
            float left = xq[g] * xq[g], right = best[g] * qq[g], fitted = xq[g] / qq[g], product = fitted * xq[g];
            bool better = qq[g] > 0 && left > right;
            scale[g] = better ? fitted : scale[g];
            best[g] = better ? product : best[g];
        }
    }
    for (int g = 0; g < LANES; g++) scale[g] = fabsf(widest[g]) < tiny ? 0 : scale[g];
}

static void fit_scales6(float scale[LANES], const float *src, const float *importance)
{
    lanes x[GROUP16], weights[GROUP16];
    transpose(x, src, GROUP16);
    if (importance) transpose(weights, importance, GROUP16);
    else
        for (int i = 0; i < GROUP16; i++)
            for (int g = 0; g < LANES; g++) weights[i][g] = x[i][g] * x[i][g];
    fit_scales(scale, &(struct scaled_groups){x, weights, GROUP16, 32});
}

static void q6_k_put(uint8_t *dst, int i, int q)
{
    dst[i / 128 * 64 + i % 64] |= (uint8_t)((q & 15) << i % 128 / 64 * 4);
    dst[128 + i / 128 * 32 + i % 32] |= (uint8_t)(q >> 4 << i % 128 / 32 * 2);
}

void pd_q6_k_encode(uint8_t *dst, const float *src, const float *importance, uint64_t n)
{
    memset(dst, 0, n * 210);
    for (uint64_t b = 0; b < n; b++, src += 256, dst += 210) {
        float scales[16], widest = 0;
        const float *half = importance ? importance + 256 * b + LANES * GROUP16 : NULL;
        fit_scales6(scales, src, importance ? importance + 256 * b : NULL);
        fit_scales6(scales + LANES, src + LANES * GROUP16, half);
        for (int g = 0; g < 16; g++)
            if (fabsf(scales[g]) > fabsf(widest)) widest = scales[g];
        if (fabsf(widest) < tiny) continue;
        float per_scale = -128 / widest;
        pd_store_f16(dst + 208, 1 / per_scale);
        float d = pd_load_f16(dst + 208);
        for (int g = 0; g < 16; g++) dst[192 + g] = (uint8_t)(int)nearest(per_scale * scales[g], -128, 127);
        for (int i = 0; i < 256; i++) {
            float scale = d * (float)(int8_t)dst[192 + i / 16];
            q6_k_put(dst, i, (scale != 0 ? (int)nearest(src[i] / scale, -32, 31) : 0) + 32);
        }
    }
}

/* The scale of 16 weights that count by their squares: from the widest on, changing one integer after the other as long
 * as the error becomes less. */
static float descend(const float x[16])
{
    enum { N_ROUNDS = 5 };
    float widest = 0, xq = 0, qq = 0, q[16];
    for (int i = 0; i < 16; i++) widest = fabsf(x[i]) > fabsf(widest) ? x[i] : widest;
    if (!(fabsf(widest) >= tiny)) return 0;
    for (int i = 0; i < 16; i++) {
        float weight = x[i] * x[i];
        q[i] = nearest(-4 / widest * x[i], -4, 3);
        xq += weight * x[i] * q[i];
        qq += weight * q[i] * q[i];
    }
    for (int round = 0, changed = 1; changed && round < N_ROUNDS; round++) {
        changed = 0;
        for (int i = 0; i < 16; i++) {
            float weight = x[i] * x[i], other_xq = xq - weight * x[i] * q[i], other_qq = qq - weight * q[i] * q[i];
            if (!(other_xq > 0)) continue;
            float better = nearest(x[i] * other_qq / other_xq, -4, 3);
            float new_xq = other_xq + weight * x[i] * better, new_qq = other_qq + weight * better * better;
            if (better == q[i] || !(new_qq > 0 && new_xq * new_xq * qq > xq * xq * new_qq)) continue;
            q[i] = better;
            xq = new_xq;
            qq = new_qq;
            changed = 1;
        }
    }
    return qq > 0 ? xq / qq : 0;
}

/* Scales of 16 groups by importance, and their unit by how much the groups count. */
static float fit_scales3(float scales[16], const float *src, const float *importance)
{
    float mean = 0, unit[LANES];
    lanes x[16], weights[16];
    for (int i = 0; i < 256; i++) mean += src[i] * src[i];
    for (int h = 0; h < 2; h++) {
        struct groups s;
        read_groups(&s, src + 128 * h, GROUP16);
        weigh_by(&s, importance + 128 * h, mean / 128);
        sum_weights(&s);
        fit_scales(scales + LANES * h, &(struct scaled_groups){s.x, s.weights, GROUP16, 4});
        for (int g = 0; g < LANES; g++)
            for (int k = 0; k < LANES; k++) {
                x[LANES * h + g][k] = scales[LANES * h + g];
                weights[LANES * h + g][k] = s.sum_w[g];
            }
    }
    fit_scales(unit, &(struct scaled_groups){x, weights, 16, 32});
    return unit[0];
}

static float widest_unit(float scales[16], const float *src)
{
    float widest = 0;
    for (int g = 0; g < 16; g++) {
        scales[g] = descend(src + 16 * g);
        if (fabsf(scales[g]) > fabsf(widest)) widest = scales[g];
    }
    return widest / -32;
}

static void q3_k_put_scale(uint8_t packed[12], int g, int scale)
{
    packed[g % 8] |= (uint8_t)((scale & 15) << g / 8 * 4);
    packed[8 + g % 4] |= (uint8_t)(scale >> 4 << g / 4 * 2);
}

void pd_q3_k_encode(uint8_t *dst, const float *src, const float *importance, uint64_t n)
{
    memset(dst, 0, n * 110);
    for (uint64_t b = 0; b < n; b++, src += 256, dst += 110) {
        float scales[16];
        float unit = importance ? fit_scales3(scales, src, importance + 256 * b) : widest_unit(scales, src);
        float per_unit = unit != 0 ? 1 / unit : 0;
        pd_store_f16(dst + 108, unit);
        float d = pd_load_f16(dst + 108);
        for (int g = 0; g < 16; g++) {
            scales[g] = nearest(per_unit * scales[g], -32, 31);
            q3_k_put_scale(dst + 96, g, (int)scales[g] + 32);
        }
        for (int i = 0; i < 256; i++) {
            float scale = d * scales[i / 16];
            int q = (scale != 0 ? (int)nearest(src[i] / scale, -4, 3) : 0) + 4;
            put_two_bits(dst + 32, i, q & 3);
            dst[i % 32] |= (uint8_t)(q >> 2 << i / 32);
        }
    }
}

/* ---- blocks of 32 by importance ---- */

/* Where there are fewer than 8 blocks, they take turns in the lanes. */
static void read_blocks(float x[LANES * GROUP], const float *src, uint64_t n)
{
    for (uint64_t g = 0; g < LANES; g++) memcpy(x + GROUP * g, src + g % n * GROUP, GROUP * sizeof *x);
}

void pd_fit_scales(struct pd_block_fits *out, const float *src, const float *importance, uint64_t n, float most)
{
    float x[LANES * GROUP], by[LANES * GROUP];
    struct groups s;
    read_blocks(x, src, n);
    read_blocks(by, importance, n);
    read_weighted(&s, x, by, GROUP);
    fit_scales(out->scale, &(struct scaled_groups){s.x, s.weights, GROUP, most});
}

void pd_fit_steps(struct pd_block_fits *out, const float *src, const float *importance, uint64_t n, float most)
{
    float x[LANES * GROUP], by[LANES * GROUP];
    struct fits fits;
    lanes weights;
    read_blocks(x, src, n);
    read_blocks(by, importance, n);
    fit_groups(&fits, weights, x, by, most > 15 ? &q5_weighted_steps : &q4_weighted_steps);
    memcpy(out->scale, fits.scale, sizeof fits.scale);
    memcpy(out->minimum, fits.minimum, sizeof fits.minimum);
}

/* Quantisers of the types whose quants are places in a table of 16 values: IQ4_NL and IQ4_XS, whose values lie closer
 * together near zero, and MXFP4, whose values are floats of four bits. Scales of IQ4 are searched as ggml's reference
 * does (ggml-quants.c: quantize_row_iq4_nl_impl): some steps are tried, each with the scale that fits the quants
 * best. */
#include "codebooks.h"
#include "offline/offline_.h"

#include "format/format.h"

#include <math.h>
#include <string.h>

/* Eight groups side by side, weight i of all of them before weight i + 1: compilers make vectors of the eight. */
enum { LANES = 8, GROUP = 32, N_TRIES = 7 };

typedef float lanes[LANES];

static const float values[16] = {PD_IQ4_VALUES};

struct groups {
    lanes x[GROUP], weights[GROUP], widest;   /* widest: the weight of largest magnitude */
};

/* n groups, up to 8, taking turns where they are fewer. is_block: they are one block. By importance, what a square
 * counts beside that of the weight is twice the mean square of the block. */
static void read_groups(struct groups *s, const float *src, const float *importance, uint64_t n, bool is_block)
{
    lanes squares = {0};
    float all = 0;
    *s = (struct groups){.widest = {0}};
    for (uint64_t g = 0; g < LANES; g++)
        for (int i = 0; i < GROUP; i++) {
            float x = s->x[i][g] = src[g % n * GROUP + (uint64_t)i];
            squares[g] += x * x;
            all += x * x;
            if (fabsf(x) > fabsf(s->widest[g])) s->widest[g] = x;
        }
    for (uint64_t g = 0; g < LANES; g++)
        for (int i = 0; i < GROUP; i++) {
            float square = s->x[i][g] * s->x[i][g], mean = is_block ? all / 128 : squares[g] / 16;
            s->weights[i][g] = importance ? importance[g % n * GROUP + (uint64_t)i] * sqrtf(mean + square) : square;
        }
}

/* How many of the 15 middles between values are below x: the place of the nearest value. */
static inline int place_of(float x)
{
    int place = 0;
    for (int k = 0; k < 15; k++) place += x >= 0.5f * (values[k] + values[k + 1]);
    return place;
}

/* Sums over the values that a step makes, by weights: of x * value and of value * value. */
static void sum_products(lanes xv, lanes vv, const struct groups *s, const lanes per_step)
{
    for (int g = 0; g < LANES; g++) xv[g] = vv[g] = 0;
    for (int i = 0; i < GROUP; i++) {
        lanes value;
        for (int g = 0; g < LANES; g++) value[g] = values[0];
        for (int k = 0; k < 15; k++) {
            const float middle = 0.5f * (values[k] + values[k + 1]), step = values[k + 1] - values[k];
            for (int g = 0; g < LANES; g++) value[g] += per_step[g] * s->x[i][g] >= middle ? step : 0;
        }
        for (int g = 0; g < LANES; g++) {
            float weighted = s->weights[i][g] * value[g];
            xv[g] += weighted * s->x[i][g];
            vv[g] += weighted * value[g];
        }
    }
}

static void fit_scales(lanes scale, const struct groups *s)
{
    lanes best = {0};
    memset(scale, 0, sizeof(lanes));
    for (int i = -N_TRIES - 1; i <= N_TRIES; i++) {
        lanes per_step, xv, vv;
        float end = i < -N_TRIES ? -values[0] : values[0] + (float)i;   /* at which the widest is to be */
        for (int g = 0; g < LANES; g++) per_step[g] = end / s->widest[g];
        sum_products(xv, vv, s, per_step);
        for (int g = 0; g < LANES; g++) {
            bool better = vv[g] > 0 && xv[g] * xv[g] > best[g] * vv[g];
            scale[g] = better ? xv[g] / vv[g] : scale[g];
            best[g] = better ? scale[g] * xv[g] : best[g];
        }
    }
    for (int g = 0; g < LANES; g++)
        if (!(fabsf(s->widest[g]) >= 1e-15f)) scale[g] = 0;
}

static void put_places(uint8_t *dst, const float *src, float scale)
{
    float per_step = scale != 0 ? 1 / scale : 0;
    for (int i = 0; i < 16; i++)
        dst[i] = (uint8_t)(place_of(per_step * src[i]) | place_of(per_step * src[i + 16]) << 4);
}

void pd_iq4_nl_encode(uint8_t *dst, const float *src, const float *importance, uint64_t n)
{
    struct groups s;
    lanes scale = {0};
    for (uint64_t b = 0; b < n; b++, src += GROUP, dst += 18) {
        if (b % LANES == 0) {
            read_groups(&s, src, importance ? importance + GROUP * b : NULL, pd_min(n - b, LANES), false);
            fit_scales(scale, &s);
        }
        pd_store_f16(dst, scale[b % LANES]);
        put_places(dst + 2, src, scale[b % LANES]);
    }
}

/* Scales of groups are -32..31 of the block's, which the largest makes -32. */
void pd_iq4_xs_encode(uint8_t *dst, const float *src, const float *importance, uint64_t n)
{
    memset(dst, 0, n * 136);
    for (uint64_t b = 0; b < n; b++, src += LANES * GROUP, dst += 136) {
        struct groups s;
        lanes scale;
        float widest = 0;
        read_groups(&s, src, importance ? importance + LANES * GROUP * b : NULL, LANES, true);
        fit_scales(scale, &s);
        for (int g = 0; g < LANES; g++) widest = fabsf(scale[g]) > fabsf(widest) ? scale[g] : widest;
        float unit = widest / -32, per_unit = unit != 0 ? 1 / unit : 0;
        unsigned high = 0;
        pd_store_f16(dst, unit);
        for (int g = 0; g < LANES; g++) {
            int q = pd_clamp_to_int(rintf(per_unit * scale[g]), -32, 31);
            dst[4 + g / 2] |= (uint8_t)(((q + 32) & 15) << g % 2 * 4);
            high |= (unsigned)(q + 32) >> 4 << 2 * g;
            put_places(dst + 8 + 16 * g, src + GROUP * g, unit * (float)q);
        }
        pd_store_u16(dst + 2, (uint16_t)high);
    }
}

/* The nearest of the magnitudes 0, 1, 2, 3, 4, 6, 8 and 12, the smaller of two as near; the fourth bit is the
 * sign. */
static int fp4_of(float x)
{
    static const float middles[] = {0.5f, 1.5f, 2.5f, 3.5f, 5, 7, 10};
    int place = 0;
    for (size_t k = 0; k < PD_COUNT(middles); k++) place += fabsf(x) > middles[k];
    return place && x < 0 ? place | 8 : place;
}

/* The scale is the power of two that puts the largest weight in 4..8, of which 6 is the largest value: 12 here, as the
 * values are doubled. */
void pd_mxfp4_encode(uint8_t *dst, const float *src, const float *importance, uint64_t n)
{
    (void)importance;
    for (uint64_t b = 0; b < n; b++, src += GROUP, dst += 17) {
        float largest = 0, half;
        for (int i = 0; i < GROUP; i++) largest = fmaxf(largest, fabsf(src[i]));
        dst[0] = largest > 0 ? (uint8_t)pd_clamp_to_int(logbf(largest) + 125, 0, 254) : 0;
        memset(dst + 1, 0x11, 16);   /* ones, whose common value is the scale */
        float ones[GROUP];
        pd_dequantize(PD_MXFP4, ones, dst, GROUP);
        half = ones[0];
        for (int i = 0; i < 16; i++) dst[1 + i] = (uint8_t)(fp4_of(src[i] / half) | fp4_of(src[i + 16] / half) << 4);
    }
}

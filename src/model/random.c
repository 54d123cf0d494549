#include "model/random.h"

#include "base/num.h"

#include <math.h>

enum { N_SCALES = 256 };   /* entries of the table that block types use */

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static uint64_t rotate(uint64_t x, int n) { return x << n | x >> (64 - n); }

void pd_random_seed(struct pd_random *r, uint64_t seed, uint64_t stream)
{
    uint64_t state = seed, key = splitmix(&state) ^ stream;
    for (int i = 0; i < 4; i++) r->s[i] = splitmix(&key);
}

uint64_t pd_random_next(struct pd_random *r)
{
    uint64_t *s = r->s, result = rotate(s[0] + s[3], 23) + s[0], t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

float pd_random_uniform(struct pd_random *r) { return (float)((double)(pd_random_next(r) >> 11) * 0x1p-52 - 1); }

static void f32_fill(struct pd_random_weights *w, uint8_t *dst, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++, dst += 4) {
        float x = pd_random_uniform(&w->random) * w->half_width;
        memcpy(dst, &x, sizeof x);
    }
}

/* f16 and bf16: four weights from one draw. */
static void table_fill(struct pd_random_weights *w, uint8_t *dst, uint64_t n)
{
    uint64_t bits = 0;
    for (uint64_t i = 0; i < n; i++, dst += 2, bits >>= 16) {
        if (i % 4 == 0) bits = pd_random_next(&w->random);
        memcpy(dst, &w->table[bits % PD_RANDOM_TABLE], 2);
    }
}

/* Bytes of -128, which no quantiser makes (and which int8 kernels may rely on), become -127. */
static uint64_t without_minus_128(uint64_t bytes)
{
    const uint64_t high = 0x8080808080808080u, low = ~high;
    uint64_t x = bytes ^ high;                               /* -128 is 0 here */
    uint64_t zero = ~(((x & low) + low) | x | low);          /* 0x80 where a byte is 0 */
    return bytes | zero >> 7;
}

static void q8_0_fill(struct pd_random_weights *w, uint8_t *dst, uint64_t n)
{
    for (uint64_t b = 0; b < n; b++, dst += 34) {
        memcpy(dst, &w->table[pd_random_next(&w->random) >> 56], 2);
        for (int i = 0; i < 32; i += 8) {
            uint64_t bytes = without_minus_128(pd_random_next(&w->random));
            memcpy(dst + 2 + i, &bytes, 8);
        }
    }
}

static void q4_0_fill(struct pd_random_weights *w, uint8_t *dst, uint64_t n)
{
    for (uint64_t b = 0; b < n; b++, dst += 18) {
        memcpy(dst, &w->table[pd_random_next(&w->random) >> 56], 2);
        for (int i = 0; i < 16; i += 8) {
            uint64_t nibbles = pd_random_next(&w->random);
            memcpy(dst + 2 + i, &nibbles, 8);
        }
    }
}

static void f16_table(struct pd_random_weights *w, double rms)
{
    (void)rms;
    for (int i = 0; i < PD_RANDOM_TABLE; i++)
        w->table[i] = pd_f16_from_f32(((float)(2 * i + 1) / PD_RANDOM_TABLE - 1) * w->half_width);
}

static void bf16_table(struct pd_random_weights *w, double rms)
{
    (void)rms;
    for (int i = 0; i < PD_RANDOM_TABLE; i++)
        w->table[i] = pd_bf16_from_f32(((float)(2 * i + 1) / PD_RANDOM_TABLE - 1) * w->half_width);
}

/* Scales differ from block to block, by a factor of 3, so that a kernel that takes a wrong one is found out. */
static void scale_table(struct pd_random_weights *w, double rms)
{
    double standard_deviation = w->half_width / sqrt(3), spread_rms = sqrt(13.0 / 12);   /* of 0.5 .. 1.5 */
    for (int i = 0; i < N_SCALES; i++) {
        double spread = 0.5 + (double)i / (N_SCALES - 1);
        w->table[i] = pd_f16_from_f32((float)(spread * standard_deviation / rms / spread_rms));
    }
}

/* Half of the scales are negative, as in real files, which takes away the mean of -0.5 that the integers have. */
static void signed_scale_table(struct pd_random_weights *w, double rms)
{
    scale_table(w, rms);
    for (int i = 1; i < N_SCALES; i += 2) w->table[i] ^= 0x8000;
}

static const struct {
    void (*fill)(struct pd_random_weights *w, uint8_t *dst, uint64_t n);
    void (*table)(struct pd_random_weights *w, double rms);
    double rms;   /* root mean square of a block's integers: bytes of -127 .. 127; 0 .. 15 less 8 */
} kinds[PD_N_DTYPES] = {
    [PD_F32] = {f32_fill, NULL, 1},
    [PD_F16] = {table_fill, f16_table, 1},
    [PD_BF16] = {table_fill, bf16_table, 1},
    [PD_Q8_0] = {q8_0_fill, scale_table, 73.9},
    [PD_Q4_0] = {q4_0_fill, signed_scale_table, 4.637},
};

bool pd_random_has_dtype(enum pd_dtype dtype) { return kinds[dtype].fill != NULL; }

void pd_random_weights_init(struct pd_random_weights *w, enum pd_dtype dtype, float standard_deviation, uint64_t seed,
                            uint64_t stream)
{
    pd_random_seed(&w->random, seed, stream);
    w->dtype = dtype;
    w->half_width = standard_deviation * sqrtf(3);   /* a uniform variable's deviation is its half width / sqrt(3) */
    if (kinds[dtype].table) kinds[dtype].table(w, kinds[dtype].rms);
}

void pd_random_weights_fill(struct pd_random_weights *w, uint8_t *dst, uint64_t n) { kinds[w->dtype].fill(w, dst, n); }

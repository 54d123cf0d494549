/* Random weights, written directly as blocks of their type, at the speed of memory: 2 GB should cost a second or
 * two. */
#include "offline/offline_.h"

#include "base/base.h"

#include <math.h>

enum { N_SCALES = 256 };   /* entries of the table that block types use; as many minimums follow them */

/* How weights of a type are made up. */
struct kind {
    void (*fill)(struct pd_random_weights *w, uint8_t *dst, uint64_t n);
    void (*table)(struct pd_random_weights *w, const struct kind *kind);
    double rms;              /* root mean square of a weight whose block has the scale 1, minimum included */
    double minimum;          /* stored after the scale, in scales, so that the mean is 0. 0: none */
};

static const struct kind kinds[PD_N_DTYPES];

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

/* The other blocks are random bits but for their scales. Returns random bits to choose these by. */
static uint64_t fill_block(struct pd_random_weights *w, uint8_t *dst)
{
    uint32_t size = pd_dtypes[w->dtype].block_size;
    uint64_t bits = 0, choice = pd_random_next(&w->random);
    for (uint32_t i = 0; i < size; i += 8) {
        bits = pd_random_next(&w->random);
        memcpy(dst + i, &bits, pd_min(8, size - i));
    }
    return choice;
}

/* A f16 scale, and a minimum that takes away the mean of the rest. */
static void bits_fill(struct pd_random_weights *w, uint8_t *dst, uint64_t n)
{
    const struct pd_dtype_info *info = &pd_dtypes[w->dtype];
    for (uint64_t b = 0; b < n; b++, dst += info->block_size) {
        uint64_t scale = fill_block(w, dst) >> 56;
        memcpy(dst + info->scale_at, &w->table[scale], 2);
        if (info->n_scales == 2) memcpy(dst + info->scale_at + 2, &w->table[N_SCALES + scale], 2);
    }
}

/* The f16 scale is in the upper nibbles of four u16. */
static void iq1_m_fill(struct pd_random_weights *w, uint8_t *dst, uint64_t n)
{
    for (uint64_t b = 0; b < n; b++, dst += 56) {
        uint16_t scale = w->table[fill_block(w, dst) >> 56];
        for (int i = 0; i < 4; i++) dst[49 + 2 * i] = (uint8_t)((dst[49 + 2 * i] & 15) | (scale >> 4 * i & 15) << 4);
    }
}

/* A byte of scale in MXFP4, four in NVFP4. */
static void fp4_fill(struct pd_random_weights *w, uint8_t *dst, uint64_t n)
{
    int n_scales = w->dtype == PD_MXFP4 ? 1 : 4;
    for (uint64_t b = 0; b < n; b++, dst += pd_dtypes[w->dtype].block_size) {
        uint64_t choice = fill_block(w, dst);
        for (int i = 0; i < n_scales; i++, choice >>= 8) dst[i] = (uint8_t)w->table[choice & 255];
    }
}

static void no_table(struct pd_random_weights *w, const struct kind *k)
{
    (void)w;
    (void)k;
}

static void f16_table(struct pd_random_weights *w, const struct kind *k)
{
    (void)k;
    for (int i = 0; i < PD_RANDOM_TABLE; i++)
        w->table[i] = pd_f16_from_f32(((float)(2 * i + 1) / PD_RANDOM_TABLE - 1) * w->half_width);
}

static void bf16_table(struct pd_random_weights *w, const struct kind *k)
{
    (void)k;
    for (int i = 0; i < PD_RANDOM_TABLE; i++)
        w->table[i] = pd_bf16_from_f32(((float)(2 * i + 1) / PD_RANDOM_TABLE - 1) * w->half_width);
}

/* Scale i of N_SCALES. They differ from block to block, by a factor of 3, so that a kernel that takes a wrong one is
 * found out. */
static double scale_at(const struct pd_random_weights *w, const struct kind *k, int i)
{
    double standard_deviation = w->half_width / sqrt(3), spread_rms = sqrt(13.0 / 12);   /* of 0.5 .. 1.5 */
    return (0.5 + (double)i / (N_SCALES - 1)) * standard_deviation / k->rms / spread_rms;
}

static void scale_table(struct pd_random_weights *w, const struct kind *k)
{
    for (int i = 0; i < N_SCALES; i++) {
        double scale = scale_at(w, k, i);
        w->table[i] = pd_f16_from_f32((float)scale);
        w->table[N_SCALES + i] = pd_f16_from_f32((float)(scale * k->minimum));
    }
}

/* Half of the scales are negative, as in real files, which takes away the mean that the integers have (-0.5 in
 * Q4_0). */
static void signed_scale_table(struct pd_random_weights *w, const struct kind *k)
{
    scale_table(w, k);
    for (int i = 1; i < N_SCALES; i += 2) w->table[i] ^= 0x8000;
}

/* Scales of eight bits are far apart: what rounding down takes off the square of one is added to the next, so that the
 * mean square is the wanted one. */
static void fp4_table(struct pd_random_weights *w, const struct kind *k)
{
    float values[256], block[64];
    double left = 0;
    int last = w->dtype == PD_MXFP4 ? 255 : 126;   /* of those that go up */
    for (int code = 0; code < 256; code++) {
        uint8_t ones[36];
        memset(ones, 0x22, sizeof ones);
        ones[0] = (uint8_t)code;
        pd_dequantize(w->dtype, block, ones, pd_dtypes[w->dtype].block_len);
        values[code] = block[0];
    }
    for (int i = 0; i < N_SCALES; i++) {
        int code = 0;
        left += scale_at(w, k, i) * scale_at(w, k, i);
        while (code < last && (double)values[code + 1] * values[code + 1] <= left) code++;
        w->table[i] = (uint16_t)code;
        left -= (double)values[code] * values[code];
    }
}

#define MADE(fill, table, rms, minimum, divisor) {fill##_fill, table##_table, rms, minimum}
#define ROW(name, NAME, form, writes, smaller, device, file, on_device, made, ...) [PD_##NAME] = MADE made,
static const struct kind kinds[PD_N_DTYPES] = {PD_TYPES(ROW, )};
#undef ROW

void pd_random_weights_init(struct pd_random_weights *w, enum pd_dtype dtype, float standard_deviation, uint64_t seed,
                            uint64_t stream)
{
    pd_random_seed(&w->random, seed, stream);
    w->dtype = dtype;
    w->half_width = standard_deviation * sqrtf(3);   /* a uniform variable's deviation is its half width / sqrt(3) */
    kinds[dtype].table(w, &kinds[dtype]);
}

void pd_random_weights_fill(struct pd_random_weights *w, uint8_t *dst, uint64_t n) { kinds[w->dtype].fill(w, dst, n); }

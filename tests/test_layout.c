/* Rows of weights as the device has them, read back by the words of ops/ops.h and shaders/weights.glsl, and compared
 * with what the decoders make of the same blocks: they are equal to the bit, as all products fit a float. */
#include "format_fixture.h"

#include "codebooks.h"
#include "ops/ops.h"

#include <math.h>

enum { N = 1024, N_ROWS = 11 };

/* The bytes of 32 weights, and of the 256 that they are among. */
struct group {
    const uint8_t *low, *high, *scale, *super;
    int in_super;   /* which of eight */
};

static uint32_t u32_of(const uint8_t *p) { return p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24; }
static double half_of(const uint8_t *p) { return (double)pd_f32_from_f16((uint16_t)(p[0] | p[1] << 8)); }
static int nibble_of(const uint8_t *bytes, int i) { return bytes[i / 2] >> i % 2 * 4 & 15; }

static double sign_of(int bits, int j) { return bits >> j & 1 ? -1 : 1; }

/* Of an octet's weight j; the eighth is the parity of the seven that are stored. */
static double one_of_seven(int bits, int j)
{
    int parity = 0;
    for (int i = 0; i < 7; i++) parity ^= bits >> i & 1;
    return sign_of((bits & 127) | parity << 7, j);
}

static double one_of_word(const struct group *g, int w)
{
    return one_of_seven((int)(u32_of(g->high) >> w / 8 * 7 & 127), w % 8);
}

static int place_of(const uint32_t *grid, int index, int bits, int j)
{
    return (int)((grid[index / 2] >> (index % 2 ? 16 : 0) & 0xffff) >> bits * j) & ((1 << bits) - 1);
}

static const uint32_t iq1_grid[1024] = {PD_IQ1_GRID}, iq2_xxs_grid[128] = {PD_IQ2_XXS_GRID},
    iq2_xs_grid[256] = {PD_IQ2_XS_GRID}, iq2_s_grid[512] = {PD_IQ2_S_GRID}, iq3_xxs_grid[128] = {PD_IQ3_XXS_GRID},
    iq3_s_grid[256] = {PD_IQ3_S_GRID};
static const double iq2_magnitudes[] = {PD_IQ2_MAGNITUDES}, iq3_xxs_magnitudes[] = {PD_IQ3_XXS_MAGNITUDES},
    iq3_s_magnitudes[] = {PD_IQ3_S_MAGNITUDES}, fp4_values[] = {PD_FP4_VALUES};

static double iq2_xxs_weight(const struct group *g, int w)
{
    double scale = half_of(g->super) * (0.5 + (u32_of(g->high) >> 28)) / 4;
    return scale * iq2_magnitudes[place_of(iq2_xxs_grid, g->low[w / 8], 2, w % 8)] * one_of_word(g, w);
}

static double iq2_xs_weight(const struct group *g, int w)
{
    double scale = half_of(g->super) * (0.5 + nibble_of(g->scale, w / 16)) / 4;
    int bits = g->low[w / 8 * 2] | g->low[w / 8 * 2 + 1] << 8;
    return scale * iq2_magnitudes[place_of(iq2_xs_grid, bits & 511, 2, w % 8)] * one_of_seven(bits >> 9, w % 8);
}

static double iq2_s_weight(const struct group *g, int w)
{
    double scale = half_of(g->super) * (0.5 + nibble_of(g->scale, w / 16)) / 4;
    int index = g->low[w / 8] | (g->scale[1] >> w / 8 * 2 & 3) << 8;
    return scale * iq2_magnitudes[place_of(iq2_s_grid, index, 2, w % 8)] * sign_of(g->high[w / 8], w % 8);
}

static double iq3_xxs_weight(const struct group *g, int w)
{
    double scale = half_of(g->super) * (0.5 + (u32_of(g->high) >> 28)) / 2;
    return scale * iq3_xxs_magnitudes[place_of(iq3_xxs_grid, g->low[w / 4], 3, w % 4)] * one_of_word(g, w);
}

static double iq3_s_weight(const struct group *g, int w)
{
    double scale = half_of(g->super) * (1 + 2 * g->scale[0]);
    int index = g->low[w / 4] | (g->scale[1] >> w / 4 & 1) << 8;
    return scale * iq3_s_magnitudes[place_of(iq3_s_grid, index, 3, w % 4)] * sign_of(g->high[w / 8], w % 8);
}

static double iq1_s_weight(const struct group *g, int w)
{
    int bits = g->scale[0] | g->scale[1] << 8, index = g->low[w / 8] | (bits >> w / 8 * 3 & 7) << 8;
    double value = place_of(iq1_grid, index, 2, w % 8) - 1, delta = bits >> 15 ? -0.125 : 0.125;
    return half_of(g->super) * (1 + 2 * (bits >> 12 & 7)) * (value + delta);
}

static double iq1_m_weight(const struct group *g, int w)
{
    int bits = nibble_of(g->high, w / 8), index = g->low[w / 8] | (bits & 7) << 8;
    double value = place_of(iq1_grid, index, 2, w % 8) - 1, delta = bits >> 3 ? -0.125 : 0.125;
    return half_of(g->super) * (1 + 2 * nibble_of(g->scale, w / 16)) * (value + delta);
}

static double fp4_value(const struct group *g, int w) { return fp4_values[g->low[w / 2] >> w % 2 * 4 & 15]; }
static double mxfp4_weight(const struct group *g, int w) { return ldexp(fp4_value(g, w), g->scale[0] - 128); }

static double nvfp4_weight(const struct group *g, int w)
{
    int exponent = g->scale[w / 16] >> 3 & 15, mantissa = g->scale[w / 16] & 7;
    double scale = exponent ? ldexp(8 + mantissa, exponent - 10) : ldexp(mantissa, -9);
    float of_row;
    memcpy(&of_row, g->super, sizeof of_row);
    return scale / 2 * fp4_value(g, w) * (double)of_row;
}

/* Of quants of 2 bits in 8 bytes, those of weights 16 i + 4 k + j of a word i are at bits 2k of byte j. */
static double q2_k_weight(const struct group *g, int w)
{
    int q = g->low[w / 16 * 4 + w % 4] >> w % 16 / 4 * 2 & 3, scales = g->scale[w / 16];
    return half_of(g->super) * (scales & 15) * q - half_of(g->super + 2) * (scales >> 4);
}

/* Of quants of one bit in 4 bytes, those of weights 4 k + j are at bit k of byte j; 128 weights have one scale. */
static double q1_0_weight(const struct group *g, int w)
{
    return half_of(g->super + g->in_super / 4 * 2) * (2 * (g->low[w % 4] >> w / 4 & 1) - 1);
}

static double q2_0_weight(const struct group *g, int w)
{
    return half_of(g->super + g->in_super / 2 * 2) * ((g->low[w / 16 * 4 + w % 4] >> w % 16 / 4 * 2 & 3) - 1);
}

static const struct format {
    enum pd_dtype dtype, of_kernels;
    int low, high, scale, super;
    double (*weight)(const struct group *g, int w);
    uint32_t finite_at, finite_mask;   /* a byte of a block, and what of it is kept, so that scales are finite */
} formats[] = {
    {PD_Q2_K, PD_Q2_K, 8, 0, 2, 4, q2_k_weight, 81, 0x3f},
    {PD_TQ1_0, PD_Q2_K, 8, 0, 2, 4, q2_k_weight, 53, 0x3f},
    {PD_TQ2_0, PD_Q2_K, 8, 0, 2, 4, q2_k_weight, 65, 0x3f},
    {PD_IQ1_S, PD_IQ1_S, 4, 0, 2, 2, iq1_s_weight, 1, 0x3f},
    {PD_IQ1_M, PD_IQ1_M, 4, 2, 1, 2, iq1_m_weight, 55, 0xbf},
    {PD_IQ2_XXS, PD_IQ2_XXS, 4, 4, 0, 2, iq2_xxs_weight, 1, 0xbf},
    {PD_IQ2_XS, PD_IQ2_XS, 8, 0, 1, 2, iq2_xs_weight, 1, 0xbf},
    {PD_IQ2_S, PD_IQ2_S, 4, 4, 2, 2, iq2_s_weight, 1, 0xbf},
    {PD_IQ3_XXS, PD_IQ3_XXS, 8, 4, 0, 2, iq3_xxs_weight, 1, 0xbf},
    {PD_IQ3_S, PD_IQ3_S, 8, 4, 2, 2, iq3_s_weight, 1, 0xbf},
    {PD_MXFP4, PD_MXFP4, 16, 0, 1, 0, mxfp4_weight, 0, 0x7f},
    {PD_NVFP4, PD_NVFP4, 16, 0, 2, 0, nvfp4_weight, 0, 0xff},
    {PD_Q1_0, PD_Q1_0, 4, 0, 0, 4, q1_0_weight, 1, 0xbf},
    {PD_Q2_0, PD_Q2_0, 8, 0, 0, 8, q2_0_weight, 1, 0xbf},
};

static void fill(uint8_t *blocks, const struct format *f, uint32_t *seed)
{
    uint32_t block_size = pd_dtypes[f->dtype].block_size;
    for (uint32_t i = 0; i < pd_row_size(f->dtype, N); i++) {
        *seed = *seed * 1664525 + 1013904223;
        blocks[i] = (uint8_t)(*seed >> 24);
        if (i % block_size == f->finite_at) blocks[i] &= (uint8_t)f->finite_mask;
        if (f->dtype == PD_Q2_K && i % block_size == 83) blocks[i] &= 0x3f;
    }
}

static struct group group_of(const uint8_t *row, const struct format *f, int b)
{
    const uint8_t *high = row + N / 32 * f->low, *scale = high + N / 32 * f->high, *super = scale + N / 32 * f->scale;
    return (struct group){row + b * f->low, high + b * f->high, scale + b * f->scale, super + b / 8 * f->super, b % 8};
}

static void check_row(const uint8_t *row, const struct format *f, const uint8_t *blocks, float scale)
{
    static float expected[N];
    pd_dequantize(f->dtype, expected, blocks, N);
    for (int i = 0; i < N; i++) {
        struct group g = group_of(row, f, i / 32);
        float weight = (float)f->weight(&g, i % 32);
        if (f->dtype == PD_NVFP4) expected[i] *= scale;
        if (weight != expected[i])
            fail_msg("%s: weight %d is %g, not %g", pd_dtypes[f->dtype].name, i, (double)weight, (double)expected[i]);
    }
    uint32_t used = (uint32_t)(N / 32 * (f->low + f->high + f->scale) + N / 256 * f->super);
    if (f->dtype == PD_NVFP4) used += sizeof scale;
    for (uint32_t i = used; i < pd_device_row_size(f->dtype, N); i++) assert_int_equal(row[i], 0);
}

/* 16 bytes of each row of a group in turn. */
static void read_row(uint8_t *row, const uint8_t *rows, uint32_t row_size, uint32_t i, uint32_t row_interleave)
{
    const uint8_t *group = rows + i / row_interleave * row_interleave * row_size;
    for (uint32_t at = 0; at < row_size; at += 16)
        memcpy(row + at, group + at * row_interleave + i % row_interleave * 16, 16);
}

static float scale_of_row(uint32_t r) { return 1.5f + (float)r; }

static void check_format(const struct format *f, uint32_t row_interleave)
{
    static uint8_t blocks[N_ROWS][N * 2], scratch[N * 2], row[N * 2], rows[16 * N * 2];
    struct pd_row_layout layout = {f->dtype, N, row_interleave};
    uint32_t row_size = pd_device_row_size(f->dtype, N), seed = 1;
    assert_int_equal(row_size % 16, 0);
    assert_true(pd_device_rows_size(row_size, N_ROWS, row_interleave) <= sizeof rows);
    for (uint32_t r = 0; r < N_ROWS; r++) {
        fill(blocks[r], f, &seed);
        pd_device_put_row(&layout, rows, r, blocks[r], scale_of_row(r), scratch);
    }
    for (uint32_t r = 0; r < N_ROWS; r++) {
        read_row(row, rows, row_size, r, row_interleave);
        check_row(row, f, blocks[r], scale_of_row(r));
    }
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < PD_COUNT(formats); i++) {
        assert_int_equal(pd_device_dtype(formats[i].dtype), formats[i].of_kernels);
        check_format(&formats[i], 1);
        check_format(&formats[i], pd_device_row_interleave(formats[i].dtype, true));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

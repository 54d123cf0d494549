/* Weight types: tables, 16-bit floats, and quantisers that give the bytes of ggml's reference. */
#include "format_fixture.h"

#include "format/format.h"
#include "offline/offline.h"
#include "peridot_tools.h"

#include <ctype.h>
#include <math.h>

static void test_table(void **state)
{
    (void)state;
    static const struct { enum pd_dtype dtype; const char *name; uint32_t gguf, block_len, block_size; } rows[] = {
        {PD_F32, "f32", 0, 1, 4}, {PD_F16, "f16", 1, 1, 2}, {PD_BF16, "bf16", 30, 1, 2}, {PD_Q8_0, "q8_0", 8, 32, 34},
        {PD_Q4_0, "q4_0", 2, 32, 18}, {PD_Q4_1, "q4_1", 3, 32, 20}, {PD_Q5_0, "q5_0", 6, 32, 22},
        {PD_Q5_1, "q5_1", 7, 32, 24},
        {PD_Q2_K, "q2_k", 10, 256, 84}, {PD_Q3_K, "q3_k", 11, 256, 110}, {PD_Q4_K, "q4_k", 12, 256, 144},
        {PD_Q5_K, "q5_k", 13, 256, 176}, {PD_Q6_K, "q6_k", 14, 256, 210}, {PD_IQ4_NL, "iq4_nl", 20, 32, 18},
        {PD_IQ4_XS, "iq4_xs", 23, 256, 136}, {PD_TQ1_0, "tq1_0", 34, 256, 54}, {PD_TQ2_0, "tq2_0", 35, 256, 66},
        {PD_IQ1_S, "iq1_s", 19, 256, 50}, {PD_IQ1_M, "iq1_m", 29, 256, 56}, {PD_IQ2_XXS, "iq2_xxs", 16, 256, 66},
        {PD_IQ2_XS, "iq2_xs", 17, 256, 74}, {PD_IQ2_S, "iq2_s", 22, 256, 82}, {PD_IQ3_XXS, "iq3_xxs", 18, 256, 98},
        {PD_IQ3_S, "iq3_s", 21, 256, 110}, {PD_MXFP4, "mxfp4", 39, 32, 17}, {PD_NVFP4, "nvfp4", 40, 64, 36},
        {PD_Q1_0, "q1_0", 41, 128, 18}, {PD_Q2_0, "q2_0", 42, 64, 18},
    };
    enum pd_dtype t;
    for (size_t i = 0; i < PD_COUNT(rows); i++) {
        assert_true(pd_dtype_by_name(&t, rows[i].name) && t == rows[i].dtype);
        assert_true(pd_dtype_by_gguf(&t, rows[i].gguf) && t == rows[i].dtype);
        assert_string_equal(pd_gguf_type_name(rows[i].gguf), rows[i].name);
        assert_int_equal(pd_row_size(t, 512), 512 / rows[i].block_len * rows[i].block_size);
    }
    assert_true(pd_dtype_by_safetensors(&t, "BF16") && t == PD_BF16);
    assert_false(pd_dtype_by_safetensors(&t, "I64") || pd_dtype_by_name(&t, "q9") || pd_dtype_by_gguf(&t, 4));
    assert_string_equal(pd_gguf_type_name(99), "unknown");
    assert_string_equal(pd_gguf_type_name(4), "q4_2");
    assert_string_equal(pd_gguf_type_name(28), "f64");
}

/* What a row of types.def says must not contradict itself or another. */
static void test_types(void **state)
{
    (void)state;
    for (int t = 0; t < PD_N_DTYPES; t++) {
        const struct pd_dtype_info *info = &pd_dtypes[t];
        for (size_t i = 0; i <= strlen(info->name); i++) assert_int_equal(toupper(info->name[i]), info->upper[i]);
        assert_true(info->scale_at + 2 * info->n_scales <= info->block_size);
        assert_true(pd_dtypes[info->smaller].block_len < info->block_len || info->block_len == 1);
        for (int other = 0; other < t; other++) {
            assert_int_not_equal(pd_dtypes[other].gguf, info->gguf);
            assert_int_not_equal(pd_dtypes[other].file_type, info->file_type);
        }
    }
}

/* As names of files have them. */
static void test_names(void **state)
{
    (void)state;
    static const struct { const char *name, *type; } rows[] = {
        {"Q4_K_M", "q4_k"}, {"q4_k_s", "q4_k"}, {"Q3_K_XL", "q3_k"}, {"Q3_K_L", "q3_k"}, {"Q4_K", "q4_k"},
        {"Q8_0", "q8_0"}, {"BF16", "bf16"}, {"F16", "f16"}, {"IQ4_XS", "iq4_xs"}, {"Q8_0_M", NULL}, {"Q4_K_", NULL},
        {"Q4_K_MM", NULL}, {"Q4", NULL}, {"", NULL}, {"q4_k_m_and_more_still", NULL}, {"F16_S", NULL},
        {"IQ2_M", "iq2_s"}, {"IQ2_XS", "iq2_xs"}, {"IQ2_XXS", "iq2_xxs"}, {"IQ3_XS", "iq3_s"}, {"iq3_m", "iq3_s"},
        {"IQ3_XXS", "iq3_xxs"}, {"IQ1_M", "iq1_m"}, {"TQ2_0", "tq2_0"}, {"MXFP4_MOE", "mxfp4"}, {"NVFP4", "nvfp4"},
        {"IQ3_L", NULL}, {"IQ4_M", NULL},
    };
    for (size_t i = 0; i < PD_COUNT(rows); i++) {
        const char *type = peridot_type_find(rows[i].name);
        assert_true(rows[i].type ? type && strcmp(type, rows[i].type) == 0 : !type);
    }
    assert_null(peridot_type_find(NULL));
}

/* Where rows are no whole blocks. */
static void test_rows(void **state)
{
    (void)state;
    static const struct { enum pd_dtype dtype; uint64_t n; enum pd_dtype expected; } rows[] = {
        {PD_Q4_K, 512, PD_Q4_K}, {PD_Q4_K, 96, PD_Q5_0}, {PD_IQ2_S, 96, PD_IQ4_NL}, {PD_IQ1_M, 128, PD_IQ4_NL},
        {PD_TQ1_0, 32, PD_Q4_0}, {PD_NVFP4, 64, PD_NVFP4}, {PD_NVFP4, 96, PD_MXFP4}, {PD_MXFP4, 96, PD_MXFP4},
        {PD_Q1_0, 128, PD_Q1_0}, {PD_Q1_0, 64, PD_Q4_0}, {PD_Q2_0, 64, PD_Q2_0}, {PD_Q2_0, 96, PD_Q4_0},
        {PD_IQ3_S, 40, PD_F16}, {PD_NVFP4, 40, PD_F16}, {PD_MXFP4, 40, PD_F16},
    };
    for (size_t i = 0; i < PD_COUNT(rows); i++)
        assert_int_equal(pd_dtype_for_row(rows[i].dtype, rows[i].n), rows[i].expected);
    for (int t = 0; t < PD_N_DTYPES; t++)   /* every type of larger blocks has one of blocks of 32 */
        assert_true(pd_dtypes[t].block_len <= 32 || pd_dtypes[pd_dtype_for_row((enum pd_dtype)t, 32)].block_len == 32);
}

/* All 65536 patterns of a 16-bit float come back, but for the payload of NaN. */
static void test_halves(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        uint16_t pattern = (uint16_t)h, back;
        float f;
        pd_dequantize(PD_F16, &f, &pattern, 1);
        pd_quantize(PD_F16, &back, &f, 1);
        assert_true(back == pattern || (isnan(f) && (back & 0x7c00) == 0x7c00 && back & 0x3ff));
        pd_dequantize(PD_BF16, &f, &pattern, 1);
        pd_quantize(PD_BF16, &back, &f, 1);
        assert_true(back == pattern || (isnan(f) && (back & 0x7f80) == 0x7f80 && back & 0x7f));
    }
}

static void test_half_rounding(void **state)
{
    (void)state;
    static const struct { float value; uint16_t f16, bf16; } cases[] = {
        {1.00048828125f, 0x3c00, 0x3f80},      /* halfway in f16: to even, down */
        {1.00146484375f, 0x3c02, 0x3f80},      /* halfway in f16: to even, up */
        {1.00390625f, 0x3c04, 0x3f80},         /* halfway in bf16 */
        {1.01171875f, 0x3c0c, 0x3f82},         /* halfway in bf16, up */
        {65519.996f, 0x7bff, 0x4780}, {65520, 0x7c00, 0x4780}, {-1e9f, 0xfc00, 0xce6e},
        {5.9604645e-8f, 0x0001, 0x3380}, {2.9802322e-8f, 0x0000, 0x3300}, {-0.0f, 0x8000, 0x8000},
    };
    for (size_t i = 0; i < PD_COUNT(cases); i++) {
        uint16_t h;
        pd_quantize(PD_F16, &h, &cases[i].value, 1);
        assert_int_equal(h, cases[i].f16);
        pd_quantize(PD_BF16, &h, &cases[i].value, 1);
        assert_int_equal(h, cases[i].bf16);
    }
}

enum { N_BLOCKS = 1000, N = N_BLOCKS * 32 };

/* Magnitudes from 2^-30 to 2^15, many equal to each other, some blocks zero, some made of halves (ties). All of it
 * exact in float32, so that numpy makes the same. */
static void make_floats(float *x)
{
    uint32_t v = 1;
    for (uint32_t i = 0; i < N; i++) {
        uint32_t block = i / 32;
        v = v * 1664525 + 1013904223;
        int32_t k = (int32_t)(v >> 16) - 32768;
        if (block % 10 == 3) k = k % 17 * 2048;
        if (block % 50 == 7) k = 0;
        x[i] = ldexpf((float)k, (int)(block % 46) - 45);
    }
}

static uint32_t fnv(const uint8_t *data, size_t size)
{
    uint32_t hash = 2166136261;
    for (size_t i = 0; i < size; i++) hash = (hash ^ data[i]) * 16777619;
    return hash;
}

static uint32_t float_hash(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (isnan(x[i])) x[i] = pd_f32_from_bits(0x7fc00000);
    return fnv((const uint8_t *)x, n * sizeof *x);
}

/* The hashes, here and in the next test, are printed by tools/golden/dtypes.py: what gguf.quants of the Python package
 * gguf 0.19.0 makes of the same bytes and floats; its tests hold it equal to ggml's C code. Q1_0 and Q2_0, which it
 * lacks, are what libggml-base makes of them. */
static void test_decoders(void **state)
{
    (void)state;
    static const struct { enum pd_dtype dtype; uint32_t hash; } cases[] = {
        {PD_Q8_0, 0x9c0c4936}, {PD_Q4_0, 0xb516aa8a}, {PD_Q4_1, 0xdcf2d816}, {PD_Q5_0, 0xc33ee836},
        {PD_Q5_1, 0xbae42fad},
        {PD_Q2_K, 0x6d3e0299}, {PD_Q3_K, 0xa7ea0df2}, {PD_Q4_K, 0x54ed6658}, {PD_Q5_K, 0x238d99b4},
        {PD_Q6_K, 0x45587ede},
        {PD_IQ4_NL, 0xb799c2f4}, {PD_IQ4_XS, 0xf850ff34}, {PD_TQ1_0, 0xc44406a2}, {PD_TQ2_0, 0xd8c2dadc},
        {PD_IQ1_S, 0x95fde0ae}, {PD_IQ1_M, 0xc6ccf848}, {PD_IQ2_XXS, 0x269261ef}, {PD_IQ2_XS, 0x1eae5364},
        {PD_IQ2_S, 0xce36af54}, {PD_IQ3_XXS, 0x012d8f59}, {PD_IQ3_S, 0x4fae260e}, {PD_MXFP4, 0x2fbfe71c},
        {PD_NVFP4, 0x5f442291}, {PD_Q1_0, 0xe2c06ac5}, {PD_Q2_0, 0x11425215},
    };
    enum { N_RANDOM = 500 };
    static float y[N_RANDOM * 256];
    static uint8_t blocks[N_RANDOM * 210 + 1];
    uint32_t v = 1;
    for (size_t i = 0; i < sizeof blocks - 1; i++) {
        v = v * 1664525 + 1013904223;
        blocks[i + 1] = (uint8_t)(v >> 24);   /* + 1: no alignment is needed */
    }
    for (size_t i = 0; i < PD_COUNT(cases); i++) {
        uint64_t n = N_RANDOM * pd_dtypes[cases[i].dtype].block_len;
        pd_dequantize(cases[i].dtype, y, blocks + 1, n);
        assert_int_equal(float_hash(y, n), cases[i].hash);
    }
}

static void test_encoders(void **state)
{
    (void)state;
    static const struct { enum pd_dtype dtype; uint32_t hash, float_hash; } cases[] = {
        {PD_F16, 0xfa91f2f2, 0x3e95a21a},
        {PD_BF16, 0x8cf8c6d3, 0x97df1efb},
        {PD_Q8_0, 0x7e73cb9a, 0x1b908af2},
        {PD_Q4_0, 0x24a9999f, 0x2cbeb4c1},
        {PD_Q4_1, 0x17cbeb2c, 0x4e9de665},
        {PD_Q5_0, 0x064f1984, 0x765c97c8},
        {PD_Q5_1, 0xf6bf25ca, 0x466aa716},
    };
    static float x[N], y[N];
    static uint8_t blocks[N * 2 + 1];
    make_floats(x);
    for (size_t i = 0; i < PD_COUNT(cases); i++) {
        size_t size = (size_t)pd_row_size(cases[i].dtype, N);
        pd_quantize(cases[i].dtype, blocks + 1, x, N);   /* + 1: no alignment is needed */
        pd_dequantize(cases[i].dtype, y, blocks + 1, N);
        assert_int_equal(fnv(blocks + 1, size), cases[i].hash);
        assert_int_equal(float_hash(y, N), cases[i].float_hash);
    }
}

/* Sums of 12 bytes of the generator, centred; every 7th group of 32 positive, every 11th 64 times smaller, every 13th
 * zero. */
static void make_bells(float *x, uint32_t n)
{
    uint32_t v = 1;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t group = i / 32;
        int32_t sum = -1530;
        for (int k = 0; k < 12; k++) {
            v = v * 1664525 + 1013904223;
            sum += (int32_t)(v >> 24);
        }
        x[i] = (float)sum / 1024;
        if (group % 7 == 3) x[i] = fabsf(x[i]);
        if (group % 11 == 5) x[i] /= 64;
        if (group % 13 == 6) x[i] = 0;
    }
}

/* What comes back equals, to the bit, what ggml's published search gives: hashes by tools/golden/k_quantizers.py, and
 * of Q2_K, Q3_K, IQ4 and MXFP4 by ggml_quantize_chunk of ggml 0.27, where Q3_K has zeros of the other sign. */
static void test_k_encoders(void **state)
{
    (void)state;
    static const struct { enum pd_dtype dtype; uint32_t hash; } cases[] = {
        {PD_Q4_K, 0x5b18aca6}, {PD_Q5_K, 0x189a11cc}, {PD_Q6_K, 0x344d3298}, {PD_Q2_K, 0x38d75860},
        {PD_Q3_K, 0xa971cb62}, {PD_IQ4_NL, 0xd8a72c02}, {PD_IQ4_XS, 0x9c4b503a}, {PD_MXFP4, 0x767d166d},
    };
    enum { N_BELLS = 100 * 256 };
    static float x[N_BELLS], y[N_BELLS];
    static uint8_t blocks[100 * 210];
    make_bells(x, N_BELLS);
    for (size_t i = 0; i < PD_COUNT(cases); i++) {
        pd_quantize(cases[i].dtype, blocks, x, N_BELLS);
        pd_dequantize(cases[i].dtype, y, blocks, N_BELLS);
        assert_int_equal(float_hash(y, N_BELLS), cases[i].hash);
    }
}

/* Those of codebooks, which search otherwise than ggml's, err no more than they did when they were compared with them:
 * by an importance matrix their weighted errors were 3 to 7 % below. */
static void test_code_encoders(void **state)
{
    (void)state;
    static const struct { enum pd_dtype dtype; double error; } cases[] = {
        {PD_IQ1_S, 0.4613}, {PD_IQ1_M, 0.4263}, {PD_IQ2_XXS, 0.3340}, {PD_IQ2_XS, 0.2874}, {PD_IQ2_S, 0.2444},
        {PD_IQ3_XXS, 0.1793}, {PD_IQ3_S, 0.1342},
    };
    enum { N_BELLS = 100 * 256 };
    static float x[N_BELLS], y[N_BELLS];
    static uint8_t blocks[100 * 110];
    make_bells(x, N_BELLS);
    for (size_t i = 0; i < PD_COUNT(cases); i++) {
        double squares = 0, all = 0;
        pd_quantize(cases[i].dtype, blocks, x, N_BELLS);
        pd_dequantize(cases[i].dtype, y, blocks, N_BELLS);
        for (uint32_t k = 0; k < N_BELLS; k++) {
            squares += (double)(y[k] - x[k]) * (double)(y[k] - x[k]);
            all += (double)x[k] * (double)x[k];
        }
        double error = sqrt(squares / all);
        if (!(error <= 1.005 * cases[i].error)) fail_msg("%s: error %g", pd_dtypes[cases[i].dtype].name, error);
    }
}

/* Quantisers must survive any float, whatever they make of it. */
static void test_extremes(void **state)
{
    (void)state;
    static const float extremes[] = {INFINITY, -INFINITY, NAN, 3.4e38f, -3.4e38f, 1e-45f, -1e-45f};
    for (size_t i = 0; i < PD_COUNT(extremes); i++) {
        for (int t = 0; t < PD_N_DTYPES; t++) {
            float x[256] = {1, -1, 0.5f}, y[256];
            uint8_t block[1024];
            if (!pd_has_quantizer((enum pd_dtype)t)) continue;
            x[5] = x[21] = x[100] = extremes[i];
            pd_quantize((enum pd_dtype)t, block, x, 256);
            pd_dequantize((enum pd_dtype)t, y, block, 256);
        }
    }
}

static void expect_nonfinite(enum pd_dtype dtype, const void *data, uint64_t size, bool expected,
                             uint64_t expected_index)
{
    uint64_t index = 0;
    struct pd_tensor t = {.name = "t", .dtype = dtype, .data = data, .size = size};
    assert_true(pd_tensor_find_nonfinite(&t, &index) == expected);
    if (expected) assert_int_equal(index, expected_index);
}

static void test_nonfinite(void **state)
{
    (void)state;
    static float x[10000];
    static uint8_t blocks[40 * 34];
    expect_nonfinite(PD_F32, x, sizeof x, false, 0);
    x[9999] = -INFINITY;
    expect_nonfinite(PD_F32, x, sizeof x, true, 9999);
    x[4096] = NAN;
    expect_nonfinite(PD_F32, x, sizeof x, true, 4096);
    expect_nonfinite(PD_Q8_0, blocks, sizeof blocks, false, 0);
    blocks[33 * 34 + 1] = 0x7c;   /* infinity as a scale; times 0 it is NaN */
    expect_nonfinite(PD_Q8_0, blocks, sizeof blocks, true, 33 * 32);
    expect_nonfinite(PD_DTYPE_OTHER, blocks, sizeof blocks, false, 0);
}

static double weighted_error(enum pd_dtype type, const float *x, const float *importance, const float *by, uint32_t n)
{
    static uint8_t blocks[4096];
    static float back[2048];
    double error = 0;
    if (by) pd_quantize_by(type, blocks, x, by, n);
    else pd_quantize(type, blocks, x, n);
    pd_dequantize(type, back, blocks, n);
    for (uint32_t i = 0; i < n; i++)
        error += (double)importance[i] * ((double)x[i] - (double)back[i]) * ((double)x[i] - (double)back[i]);
    return error;
}

/* Where columns count a thousand times as much as others, their errors are smaller; Q8_0 gives the same blocks. Blocks
 * of 32 are fitted by eights, and the last are fewer. */
static void test_importance(void **state)
{
    (void)state;
    static const struct { enum pd_dtype type; double least, most; } rows[] = {
        {PD_Q4_K, 0.1, 0.3}, {PD_Q5_K, 0.1, 0.35}, {PD_Q6_K, 0.1, 0.3}, {PD_Q8_0, 1, 1}, {PD_Q4_0, 0.1, 0.6},
        {PD_Q4_1, 0.1, 0.6}, {PD_Q5_0, 0.1, 0.6}, {PD_Q5_1, 0.1, 0.6}, {PD_Q2_K, 0.1, 0.6}, {PD_Q3_K, 0.1, 0.6},
        {PD_IQ4_NL, 0.1, 0.6}, {PD_IQ4_XS, 0.1, 0.6}, {PD_IQ3_S, 0.05, 0.6}, {PD_IQ3_XXS, 0.05, 0.6},
        {PD_IQ2_S, 0.05, 0.6}, {PD_IQ2_XS, 0.05, 0.6}, {PD_IQ2_XXS, 0.05, 0.6}, {PD_IQ1_M, 0.05, 0.6},
        {PD_IQ1_S, 0.05, 0.6}, {PD_MXFP4, 1, 1}};
    enum { N_COLUMNS = 2048 };
    static float x[N_COLUMNS], importance[N_COLUMNS];
    uint32_t seed = 1;
    for (int i = 0; i < N_COLUMNS; i++) {
        float sum = 0;
        for (int k = 0; k < 4; k++) sum += (float)((seed = seed * 1664525 + 1013904223) >> 8) / (float)(1 << 24) - 0.5f;
        x[i] = sum;
        importance[i] = (seed >> 28) == 0 ? 1000 : 1;
    }
    for (size_t r = 0; r < PD_COUNT(rows); r++) {
        const uint32_t n = pd_dtypes[rows[r].type].block_len == 32 ? N_COLUMNS - 3 * 32 : N_COLUMNS;
        double with = weighted_error(rows[r].type, x, importance, importance, n),
               without = weighted_error(rows[r].type, x, importance, NULL, n), ratio = with / without;
        print_message("%s: %.3f of the error\n", pd_dtypes[rows[r].type].name, ratio);
        assert_true(ratio >= rows[r].least && ratio <= rows[r].most);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),     cmocka_unit_test(test_names),    cmocka_unit_test(test_rows),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_halves),
        cmocka_unit_test(test_half_rounding),
        cmocka_unit_test(test_decoders),  cmocka_unit_test(test_encoders), cmocka_unit_test(test_k_encoders),
 cmocka_unit_test(test_code_encoders),
        cmocka_unit_test(test_importance),
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_nonfinite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

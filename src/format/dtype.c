/* The table of weight types, those of single numbers and of four bits; the others are in dtype_block32.c, dtype_k.c and
 * dtype_iq.c. */
#include "codebooks.h"
#include "format/format.h"
#include "format/format_.h"

#include <assert.h>
#include <math.h>

static void f32_decode(float *dst, const uint8_t *src, uint64_t n) { memcpy(dst, src, n * 4); }
static void f32_encode(uint8_t *dst, const float *src, uint64_t n) { memcpy(dst, src, n * 4); }

static void f16_decode(float *dst, const uint8_t *src, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) dst[i] = pd_load_f16(src + 2 * i);
}

static void f16_encode(uint8_t *dst, const float *src, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) pd_store_f16(dst + 2 * i, src[i]);
}

static void bf16_decode(float *dst, const uint8_t *src, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) dst[i] = pd_f32_from_bf16(pd_load_u16(src + 2 * i));
}

static void bf16_encode(uint8_t *dst, const float *src, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) pd_store_u16(dst + 2 * i, pd_bf16_from_f32(src[i]));
}

static void q4_k_encode(uint8_t *dst, const float *src, uint64_t n) { pd_q4_k_encode(dst, src, NULL, n); }
static void q5_k_encode(uint8_t *dst, const float *src, uint64_t n) { pd_q5_k_encode(dst, src, NULL, n); }
static void q6_k_encode(uint8_t *dst, const float *src, uint64_t n) { pd_q6_k_encode(dst, src, NULL, n); }

const struct pd_dtype_info pd_dtypes[PD_N_DTYPES] = {
    [PD_F32] = {"f32", "F32", 0, 1, 4, f32_decode, f32_encode},
    [PD_F16] = {"f16", "F16", 1, 1, 2, f16_decode, f16_encode},
    [PD_BF16] = {"bf16", "BF16", 30, 1, 2, bf16_decode, bf16_encode},
    [PD_Q8_0] = {"q8_0", NULL, 8, 32, 34, pd_q8_0_decode, pd_q8_0_encode},
    [PD_Q4_0] = {"q4_0", NULL, 2, 32, 18, pd_q4_0_decode, pd_q4_0_encode},
    [PD_Q4_1] = {"q4_1", NULL, 3, 32, 20, pd_q4_1_decode, pd_q4_1_encode},
    [PD_Q5_0] = {"q5_0", NULL, 6, 32, 22, pd_q5_0_decode, pd_q5_0_encode},
    [PD_Q5_1] = {"q5_1", NULL, 7, 32, 24, pd_q5_1_decode, pd_q5_1_encode},
    [PD_Q2_K] = {"q2_k", NULL, 10, 256, 84, pd_q2_k_decode, NULL},
    [PD_Q3_K] = {"q3_k", NULL, 11, 256, 110, pd_q3_k_decode, NULL},
    [PD_Q4_K] = {"q4_k", NULL, 12, 256, 144, pd_q4_k_decode, q4_k_encode, pd_q4_k_encode},
    [PD_Q5_K] = {"q5_k", NULL, 13, 256, 176, pd_q5_k_decode, q5_k_encode, pd_q5_k_encode},
    [PD_Q6_K] = {"q6_k", NULL, 14, 256, 210, pd_q6_k_decode, q6_k_encode, pd_q6_k_encode},
    [PD_IQ4_NL] = {"iq4_nl", NULL, 20, 32, 18, pd_iq4_nl_decode, NULL},
    [PD_IQ4_XS] = {"iq4_xs", NULL, 23, 256, 136, pd_iq4_xs_decode, NULL},
    [PD_TQ1_0] = {"tq1_0", NULL, 34, 256, 54, pd_tq1_0_decode, NULL},
    [PD_TQ2_0] = {"tq2_0", NULL, 35, 256, 66, pd_tq2_0_decode, NULL},
    [PD_IQ1_S] = {"iq1_s", NULL, 19, 256, 50, pd_iq1_s_decode, NULL},
    [PD_IQ1_M] = {"iq1_m", NULL, 29, 256, 56, pd_iq1_m_decode, NULL},
    [PD_IQ2_XXS] = {"iq2_xxs", NULL, 16, 256, 66, pd_iq2_xxs_decode, NULL},
    [PD_IQ2_XS] = {"iq2_xs", NULL, 17, 256, 74, pd_iq2_xs_decode, NULL},
    [PD_IQ2_S] = {"iq2_s", NULL, 22, 256, 82, pd_iq2_s_decode, NULL},
    [PD_IQ3_XXS] = {"iq3_xxs", NULL, 18, 256, 98, pd_iq3_xxs_decode, NULL},
    [PD_IQ3_S] = {"iq3_s", NULL, 21, 256, 110, pd_iq3_s_decode, NULL},
    [PD_MXFP4] = {"mxfp4", NULL, 39, 32, 17, pd_mxfp4_decode, NULL},
    [PD_NVFP4] = {"nvfp4", NULL, 40, 64, 36, pd_nvfp4_decode, NULL},
    [PD_Q1_0] = {"q1_0", NULL, 41, 128, 18, pd_q1_0_decode, NULL},
    [PD_Q2_0] = {"q2_0", NULL, 42, 64, 18, pd_q2_0_decode, NULL},
};

/* Whether `name` is `own`, or a mix that has most of its matrices in that type: "q4_k_m" of "q4_k". */
static bool names_type(const char *name, const char *own)
{
    static const char *const mixes[] = {"", "_s", "_m", "_l", "_xl"};
    size_t size = strlen(own);
    if (strncmp(name, own, size) != 0) return false;
    bool has_mixes = strcmp(own + size - 2, "_k") == 0;
    for (size_t i = 0; i < (has_mixes ? PD_COUNT(mixes) : 1); i++)
        if (strcmp(name + size, mixes[i]) == 0) return true;
    return false;
}

bool pd_dtype_by_name(enum pd_dtype *out, const char *name)
{
    static const struct { const char *name; enum pd_dtype most; } mixes[] = {
        {"iq2_m", PD_IQ2_S}, {"iq3_xs", PD_IQ3_S}, {"iq3_m", PD_IQ3_S}, {"mxfp4_moe", PD_MXFP4}};
    char lower[16];
    size_t n = strlen(name);
    if (n >= sizeof lower) return false;
    for (size_t i = 0; i <= n; i++) lower[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] | 0x20) : name[i];
    for (int i = 0; i < PD_N_DTYPES; i++) {
        if (!names_type(lower, pd_dtypes[i].name)) continue;
        *out = (enum pd_dtype)i;
        return true;
    }
    for (size_t i = 0; i < PD_COUNT(mixes); i++) {
        if (strcmp(lower, mixes[i].name) != 0) continue;
        *out = mixes[i].most;
        return true;
    }
    return false;
}

bool pd_dtype_by_gguf(enum pd_dtype *out, uint32_t ggml_type)
{
    for (int i = 0; i < PD_N_DTYPES; i++) {
        if (pd_dtypes[i].gguf != ggml_type) continue;
        *out = (enum pd_dtype)i;
        return true;
    }
    return false;
}

bool pd_dtype_by_safetensors(enum pd_dtype *out, const char *name)
{
    for (int i = 0; i < PD_N_DTYPES; i++) {
        if (!pd_dtypes[i].safetensors || strcmp(pd_dtypes[i].safetensors, name)) continue;
        *out = (enum pd_dtype)i;
        return true;
    }
    return false;
}

/* enum ggml_type of ggml.h; 4, 5, 31..33 and 36..38 were withdrawn, their names are for messages. */
const char *pd_gguf_type_name(uint32_t ggml_type)
{
    static const char *const names[] = {
        "f32", "f16", "q4_0", "q4_1", "q4_2", "q4_3", "q5_0", "q5_1", "q8_0", "q8_1", "q2_k", "q3_k", "q4_k", "q5_k",
        "q6_k", "q8_k", "iq2_xxs", "iq2_xs", "iq3_xxs", "iq1_s", "iq4_nl", "iq3_s", "iq2_s", "iq4_xs", "i8", "i16",
        "i32", "i64", "f64", "iq1_m", "bf16", "q4_0_4_4", "q4_0_4_8", "q4_0_8_8", "tq1_0", "tq2_0", "iq4_nl_4_4",
        "iq4_nl_4_8", "iq4_nl_8_8", "mxfp4", "nvfp4", "q1_0", "q2_0"};
    return ggml_type < PD_COUNT(names) ? names[ggml_type] : "unknown";
}

enum pd_dtype pd_dtype_for_row(enum pd_dtype dtype, uint64_t n)
{
    static const enum pd_dtype smaller_blocks[PD_N_DTYPES] = {
        [PD_Q2_K] = PD_IQ4_NL, [PD_Q3_K] = PD_IQ4_NL, [PD_IQ4_XS] = PD_IQ4_NL,
        [PD_IQ1_S] = PD_IQ4_NL, [PD_IQ1_M] = PD_IQ4_NL, [PD_IQ2_XXS] = PD_IQ4_NL, [PD_IQ2_XS] = PD_IQ4_NL,
        [PD_IQ2_S] = PD_IQ4_NL, [PD_IQ3_XXS] = PD_IQ4_NL, [PD_IQ3_S] = PD_IQ4_NL,
        [PD_TQ1_0] = PD_Q4_0, [PD_TQ2_0] = PD_Q4_0, [PD_NVFP4] = PD_MXFP4,
        [PD_Q1_0] = PD_Q4_0, [PD_Q2_0] = PD_Q4_0,
        [PD_Q4_K] = PD_Q5_0, [PD_Q5_K] = PD_Q5_1, [PD_Q6_K] = PD_Q8_0,
    };
    if (n % pd_dtypes[dtype].block_len == 0) return dtype;
    return pd_dtypes[dtype].block_len > 32 && n % 32 == 0 ? smaller_blocks[dtype] : PD_F16;
}

uint64_t pd_row_size(enum pd_dtype dtype, uint64_t n)
{
    const struct pd_dtype_info *info = &pd_dtypes[dtype];
    assert(n % info->block_len == 0);
    return n / info->block_len * info->block_size;
}

void pd_dequantize(enum pd_dtype dtype, float *dst, const void *src, uint64_t n)
{
    const struct pd_dtype_info *info = &pd_dtypes[dtype];
    assert(n % info->block_len == 0);
    info->decode(dst, src, n / info->block_len);
}

void pd_quantize(enum pd_dtype dtype, void *dst, const float *src, uint64_t n)
{
    const struct pd_dtype_info *info = &pd_dtypes[dtype];
    assert(n % info->block_len == 0 && info->encode);
    info->encode(dst, src, n / info->block_len);
}

void pd_quantize_by(enum pd_dtype dtype, void *dst, const float *src, const float *importance, uint64_t n)
{
    const struct pd_dtype_info *info = &pd_dtypes[dtype];
    if (!info->encode_by) {
        pd_quantize(dtype, dst, src, n);
        return;
    }
    assert(n % info->block_len == 0);
    info->encode_by(dst, src, importance, n / info->block_len);
}

/* ---- dtype fp4 ---- */

/* Decoders of the types whose weights are floats of four bits (e2m1), with scales that are floats of eight: blocks of
 * groups of 16 or 32. Nibble i of a group's low half is weight i, of the high half the one half a group later. */

static const int8_t doubled[16] = {PD_FP4_VALUES};

static void decode_group(float *dst, const uint8_t *nibbles, int n, float half_scale)
{
    for (int i = 0; i < n / 2; i++) {
        dst[i] = half_scale * (float)doubled[nibbles[i] & 15];
        dst[i + n / 2] = half_scale * (float)doubled[nibbles[i] >> 4];
    }
}

/* MXFP4 (OCP Microscaling): a byte of e8m0 scale, a power of two; 16 bytes of nibbles. The scale 255, NaN there, is
 * 2^128, as in ggml. */
void pd_mxfp4_decode(float *dst, const uint8_t *src, uint64_t n)
{
    for (uint64_t b = 0; b < n; b++, src += 17, dst += 32) {
        uint32_t half_bits = src[0] < 2 ? 0x00200000u << src[0] : (src[0] - 1u) << 23;
        decode_group(dst, src + 1, 32, pd_f32_from_bits(half_bits));
    }
}

/* NVFP4: four bytes of ue4m3 scales, of 16 weights each; 32 bytes of nibbles. The scale 0x7f, NaN there, is 0, and the
 * top bit does not count, as in ggml. */
void pd_nvfp4_decode(float *dst, const uint8_t *src, uint64_t n)
{
    for (uint64_t b = 0; b < n; b++, src += 36, dst += 64) {
        for (int g = 0; g < 4; g++) {
            int exponent = src[g] >> 3 & 15, mantissa = src[g] & 7;
            float scale = exponent ? ldexpf((float)(8 + mantissa), exponent - 10) : ldexpf((float)mantissa, -9);
            decode_group(dst + 16 * g, src + 4 + 8 * g, 16, src[g] == 0x7f ? 0 : scale * 0.5f);
        }
    }
}

/* ---- dtype iq4 ---- */

/* Decoders of the types whose four-bit quants are places in a table: its values lie closer together near zero, where
 * most weights are. */

static const int8_t values[16] = {PD_IQ4_VALUES};

/* 32 weights from 16 bytes. */
static void decode_iq4_group(float *dst, const uint8_t *nibbles, float scale)
{
    for (int i = 0; i < 16; i++) {
        dst[i] = scale * (float)values[nibbles[i] & 15];
        dst[i + 16] = scale * (float)values[nibbles[i] >> 4];
    }
}

/* IQ4_NL: f16 scale, 16 bytes of nibbles. */
void pd_iq4_nl_decode(float *dst, const uint8_t *src, uint64_t n)
{
    for (uint64_t b = 0; b < n; b++, src += 18, dst += 32) decode_iq4_group(dst, src + 2, pd_load_f16(src));
}

/* IQ4_XS: f16 scale, u16 of the upper two bits of 8 scales, 4 bytes of their low nibbles, 128 bytes of nibbles; a group
 * of 32 weights has the scale d * (scale - 32). */
void pd_iq4_xs_decode(float *dst, const uint8_t *src, uint64_t n)
{
    for (uint64_t b = 0; b < n; b++, src += 136, dst += 256) {
        float d = pd_load_f16(src);
        for (int g = 0; g < 8; g++) {
            int low = src[4 + g / 2] >> g % 2 * 4 & 15, high = pd_load_u16(src + 2) >> 2 * g & 3;
            decode_iq4_group(dst + 32 * g, src + 8 + 16 * g, d * (float)((low | high << 4) - 32));
        }
    }
}

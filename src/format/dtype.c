/* The table of weight types, and the decoders of those of single numbers, of floats of four bits and of IQ4; the others
 * are in dtype_blocks.c and dtype_iq.c. */
#include "codebooks.h"
#include "format/format.h"
#include "format/format_.h"

#include <assert.h>
#include <math.h>

void pd_f32_decode(float *dst, const uint8_t *src, uint64_t n) { memcpy(dst, src, n * 4); }

void pd_f16_decode(float *dst, const uint8_t *src, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) dst[i] = pd_load_f16(src + 2 * i);
}

void pd_bf16_decode(float *dst, const uint8_t *src, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) dst[i] = pd_f32_from_bf16(pd_load_u16(src + 2 * i));
}

#define ROW(name, NAME, form, writes, smaller, device, file, ...) \
    [PD_##NAME] = {#name, #NAME, pd_##name##_decode, PD_##smaller, PD_OF_ROW file},
const struct pd_dtype_info pd_dtypes[PD_N_DTYPES] = {PD_TYPES(ROW, )};
#undef ROW

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
        if (pd_dtypes[i].block_len != 1 || strcmp(pd_dtypes[i].upper, name)) continue;
        *out = (enum pd_dtype)i;
        return true;
    }
    return false;
}

const char *pd_gguf_type_name(uint32_t ggml_type)
{
    static const struct { uint32_t type; const char *name; } others[] = {   /* 4, 5, 31..33 and 36..38 were withdrawn */
        {4, "q4_2"}, {5, "q4_3"}, {9, "q8_1"}, {15, "q8_k"}, {24, "i8"}, {25, "i16"}, {26, "i32"}, {27, "i64"},
        {28, "f64"}, {31, "q4_0_4_4"}, {32, "q4_0_4_8"}, {33, "q4_0_8_8"}, {36, "iq4_nl_4_4"}, {37, "iq4_nl_4_8"},
        {38, "iq4_nl_8_8"}};
    enum pd_dtype known;
    if (pd_dtype_by_gguf(&known, ggml_type)) return pd_dtypes[known].name;
    for (size_t i = 0; i < PD_COUNT(others); i++)
        if (others[i].type == ggml_type) return others[i].name;
    return "unknown";
}

enum pd_dtype pd_dtype_for_row(enum pd_dtype dtype, uint64_t n)
{
    while (n % pd_dtypes[dtype].block_len != 0) dtype = pd_dtypes[dtype].smaller;
    return dtype;
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

/* Decoders and encoders of the weight types. The block encoders follow ggml's reference quantisers operation by operation
 * (ggml-quants.c, quantize_row_*_ref), because files made here and elsewhere should be equal. Each product is its own
 * statement where its rounding counts, so that no compiler fuses it with the addition after it. */
#include "format/dtype.h"

#include "base/num.h"

#include <assert.h>
#include <math.h>

static uint16_t load_u16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }

static void store_u16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

/* A float to an integer in low..high; NaN, which only infinite or NaN weights lead to, gives 0. */
static int clamp_to_int(float x, int low, int high)
{
    if (x != x) return 0;
    if (x < (float)low) return low;
    return x > (float)high ? high : (int)x;
}

static void f32_decode(float *dst, const uint8_t *src, uint64_t n) { memcpy(dst, src, n * 4); }
static void f32_encode(uint8_t *dst, const float *src, uint64_t n) { memcpy(dst, src, n * 4); }

static void f16_decode(float *dst, const uint8_t *src, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) dst[i] = pd_f32_from_f16(load_u16(src + 2 * i));
}

static void f16_encode(uint8_t *dst, const float *src, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) store_u16(dst + 2 * i, pd_f16_from_f32(src[i]));
}

static void bf16_decode(float *dst, const uint8_t *src, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) dst[i] = pd_f32_from_bf16(load_u16(src + 2 * i));
}

static void bf16_encode(uint8_t *dst, const float *src, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) store_u16(dst + 2 * i, pd_bf16_from_f32(src[i]));
}

/* Q8_0: f16 scale, 32 signed bytes; w = scale * q. */
static void q8_0_decode(float *dst, const uint8_t *src, uint64_t n)
{
    for (uint64_t b = 0; b < n; b++, src += 34, dst += 32) {
        float d = pd_f32_from_f16(load_u16(src));
        for (int i = 0; i < 32; i++) dst[i] = d * (float)(int8_t)src[2 + i];
    }
}

static void q8_0_encode(uint8_t *dst, const float *src, uint64_t n)
{
    for (uint64_t b = 0; b < n; b++, src += 32, dst += 34) {
        float largest = 0;
        for (int i = 0; i < 32; i++) largest = fmaxf(largest, fabsf(src[i]));
        float d = largest / 127, inverse = d != 0 ? 1 / d : 0;
        store_u16(dst, pd_f16_from_f32(d));
        for (int i = 0; i < 32; i++) dst[2 + i] = (uint8_t)clamp_to_int(roundf(src[i] * inverse), -128, 127);
    }
}

/* Q4_0: f16 scale, 16 bytes of two weights, low nibble i, high nibble i + 16; w = scale * (q - 8). */
static void q4_0_decode(float *dst, const uint8_t *src, uint64_t n)
{
    for (uint64_t b = 0; b < n; b++, src += 18, dst += 32) {
        float d = pd_f32_from_f16(load_u16(src));
        for (int i = 0; i < 16; i++) {
            dst[i] = d * (float)((src[2 + i] & 15) - 8);
            dst[i + 16] = d * (float)((src[2 + i] >> 4) - 8);
        }
    }
}

/* -8 is the widest value, so the scale takes the sign that puts the weight of largest magnitude there. */
static void q4_0_encode(uint8_t *dst, const float *src, uint64_t n)
{
    for (uint64_t b = 0; b < n; b++, src += 32, dst += 18) {
        float widest = 0;
        for (int i = 0; i < 32; i++)
            if (fabsf(widest) < fabsf(src[i])) widest = src[i];
        float d = widest / -8, inverse = d != 0 ? 1 / d : 0;
        store_u16(dst, pd_f16_from_f32(d));
        for (int i = 0; i < 16; i++) {
            float low = src[i] * inverse, high = src[i + 16] * inverse;
            dst[2 + i] = (uint8_t)(clamp_to_int(low + 8.5f, 0, 15) | clamp_to_int(high + 8.5f, 0, 15) << 4);
        }
    }
}

const struct pd_dtype_info pd_dtypes[PD_N_DTYPES] = {
    [PD_F32] = {"f32", "F32", 0, 1, 4, f32_decode, f32_encode},
    [PD_F16] = {"f16", "F16", 1, 1, 2, f16_decode, f16_encode},
    [PD_BF16] = {"bf16", "BF16", 30, 1, 2, bf16_decode, bf16_encode},
    [PD_Q8_0] = {"q8_0", NULL, 8, 32, 34, q8_0_decode, q8_0_encode},
    [PD_Q4_0] = {"q4_0", NULL, 2, 32, 18, q4_0_decode, q4_0_encode},
};

bool pd_dtype_by_name(enum pd_dtype *out, const char *name)
{
    for (int i = 0; i < PD_N_DTYPES; i++) {
        if (strcmp(pd_dtypes[i].name, name)) continue;
        *out = (enum pd_dtype)i;
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
        "f32", "f16", "q4_0", "q4_1", "q4_2", "q4_3", "q5_0", "q5_1", "q8_0", "q8_1", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k",
        "q8_k", "iq2_xxs", "iq2_xs", "iq3_xxs", "iq1_s", "iq4_nl", "iq3_s", "iq2_s", "iq4_xs", "i8", "i16", "i32", "i64",
        "f64", "iq1_m", "bf16", "q4_0_4_4", "q4_0_4_8", "q4_0_8_8", "tq1_0", "tq2_0", "iq4_nl_4_4", "iq4_nl_4_8",
        "iq4_nl_8_8", "mxfp4", "nvfp4", "q1_0"};
    return ggml_type < PD_COUNT(names) ? names[ggml_type] : "unknown";
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

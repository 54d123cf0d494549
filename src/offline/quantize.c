/* Quantisers: the table of them, and those of single numbers and of blocks of 32 weights with one fp16 scale and, in
 * the types that end in _1, the fp16 minimum. Told the importance of weights, these fit scales to it, 8 blocks at a
 * time (quantize_k.c); without it they have the plain scales of ggml's reference (ggml-quants.c: quantize_row_*_ref),
 * operation by operation, because files made here and elsewhere should be equal. What is in a block is told in
 * src/format/dtype*.c. */
#include "offline/offline.h"
#include "offline/offline_.h"

#include <assert.h>
#include <math.h>
#include <string.h>

void pd_f32_encode(uint8_t *dst, const float *src, const float *importance, uint64_t n)
{
    (void)importance;
    memcpy(dst, src, n * 4);
}

void pd_f16_encode(uint8_t *dst, const float *src, const float *importance, uint64_t n)
{
    (void)importance;
    for (uint64_t i = 0; i < n; i++) pd_store_f16(dst + 2 * i, src[i]);
}

void pd_bf16_encode(uint8_t *dst, const float *src, const float *importance, uint64_t n)
{
    (void)importance;
    for (uint64_t i = 0; i < n; i++) pd_store_u16(dst + 2 * i, pd_bf16_from_f32(src[i]));
}

void pd_q8_0_encode(uint8_t *dst, const float *src, const float *importance, uint64_t n)
{
    (void)importance;
    for (uint64_t b = 0; b < n; b++, src += 32, dst += 34) {
        float largest = 0;
        for (int i = 0; i < 32; i++) largest = fmaxf(largest, fabsf(src[i]));
        float d = largest / 127, inverse = d != 0 ? 1 / d : 0;
        pd_store_f16(dst, d);
        for (int i = 0; i < 32; i++) dst[2 + i] = (uint8_t)pd_clamp_to_int(roundf(src[i] * inverse), -128, 127);
    }
}

/* The weight of largest magnitude, with its sign. */
static float widest_of(const float src[32])
{
    float widest = 0;
    for (int i = 0; i < 32; i++)
        if (fabsf(widest) < fabsf(src[i])) widest = src[i];
    return widest;
}

/* -8 is the widest value, so the scale takes the sign that puts the weight of largest magnitude there. */
void pd_q4_0_encode(uint8_t *dst, const float *src, const float *importance, uint64_t n)
{
    struct pd_block_fits fits;
    for (uint64_t b = 0; b < n; b++, src += 32, dst += 18) {
        if (importance && b % 8 == 0) pd_fit_scales(&fits, src, importance + 32 * b, pd_min(n - b, 8), 8);
        float d = importance ? fits.scale[b % 8] : widest_of(src) / -8, inverse = d != 0 ? 1 / d : 0;
        pd_store_f16(dst, d);
        for (int i = 0; i < 16; i++) {
            float low = src[i] * inverse, high = src[i + 16] * inverse;
            dst[2 + i] = (uint8_t)(pd_clamp_to_int(low + 8.5f, 0, 15) | pd_clamp_to_int(high + 8.5f, 0, 15) << 4);
        }
    }
}

/* Weights from `low` on, in steps of d. */
struct steps {
    float low, d;
};

/* Divides what a block spans into `most` steps. */
static struct steps span_of(const float src[32], int most)
{
    float low = src[0], high = src[0];
    for (int i = 1; i < 32; i++) {
        if (src[i] < low) low = src[i];
        if (src[i] > high) high = src[i];
    }
    return (struct steps){low, (high - low) / (float)most};
}

/* Stores both as f16. Returns steps per unit; 0 where all weights are equal. */
static float put_steps(uint8_t *dst, const struct steps *s)
{
    pd_store_f16(dst, s->d);
    pd_store_f16(dst + 2, s->low);
    return s->d != 0 ? 1 / s->d : 0;
}

void pd_q4_1_encode(uint8_t *dst, const float *src, const float *importance, uint64_t n)
{
    struct pd_block_fits fits;
    for (uint64_t b = 0; b < n; b++, src += 32, dst += 20) {
        if (importance && b % 8 == 0) pd_fit_steps(&fits, src, importance + 32 * b, pd_min(n - b, 8), 15);
        struct steps s = importance ? (struct steps){-fits.minimum[b % 8], fits.scale[b % 8]} : span_of(src, 15);
        float inverse = put_steps(dst, &s);
        for (int i = 0; i < 16; i++) {
            float low = (src[i] - s.low) * inverse, high = (src[i + 16] - s.low) * inverse;
            dst[4 + i] = (uint8_t)(pd_clamp_to_int(low + 0.5f, 0, 15) | pd_clamp_to_int(high + 0.5f, 0, 15) << 4);
        }
    }
}

/* Into bytes that were cleared. */
static void put_quant5(uint8_t *high, uint8_t *nibbles, int i, int q)
{
    nibbles[i % 16] |= (uint8_t)((q & 15) << i / 16 * 4);
    high[i / 8] |= (uint8_t)((q >> 4) << i % 8);
}

void pd_q5_0_encode(uint8_t *dst, const float *src, const float *importance, uint64_t n)
{
    struct pd_block_fits fits;
    memset(dst, 0, n * 22);
    for (uint64_t b = 0; b < n; b++, src += 32, dst += 22) {
        if (importance && b % 8 == 0) pd_fit_scales(&fits, src, importance + 32 * b, pd_min(n - b, 8), 16);
        float d = importance ? fits.scale[b % 8] : widest_of(src) / -16, inverse = d != 0 ? 1 / d : 0;
        pd_store_f16(dst, d);
        for (int i = 0; i < 32; i++) {
            float scaled = src[i] * inverse;
            put_quant5(dst + 2, dst + 6, i, pd_clamp_to_int(scaled + 16.5f, 0, 31));
        }
    }
}

void pd_q5_1_encode(uint8_t *dst, const float *src, const float *importance, uint64_t n)
{
    struct pd_block_fits fits;
    memset(dst, 0, n * 24);
    for (uint64_t b = 0; b < n; b++, src += 32, dst += 24) {
        if (importance && b % 8 == 0) pd_fit_steps(&fits, src, importance + 32 * b, pd_min(n - b, 8), 31);
        struct steps s = importance ? (struct steps){-fits.minimum[b % 8], fits.scale[b % 8]} : span_of(src, 31);
        float inverse = put_steps(dst, &s);
        for (int i = 0; i < 32; i++) {
            float scaled = (src[i] - s.low) * inverse;
            put_quant5(dst + 4, dst + 8, i, pd_clamp_to_int(scaled + 0.5f, 0, 31));
        }
    }
}

#define ENCODER_reads(name, NAME)
#define ENCODER_writes(name, NAME) [PD_##NAME] = pd_##name##_encode,
#define ROW(name, NAME, form, writes, ...) ENCODER_##writes(name, NAME)
static void (*const encoders[PD_N_DTYPES])(uint8_t *dst, const float *src, const float *importance, uint64_t n) = {
    PD_TYPES(ROW, )};
#undef ROW

bool pd_has_quantizer(enum pd_dtype dtype) { return encoders[dtype] != NULL; }

void pd_quantize(enum pd_dtype dtype, void *dst, const float *src, uint64_t n)
{
    pd_quantize_by(dtype, dst, src, NULL, n);
}

void pd_quantize_by(enum pd_dtype dtype, void *dst, const float *src, const float *importance, uint64_t n)
{
    assert(n % pd_dtypes[dtype].block_len == 0 && encoders[dtype]);
    encoders[dtype](dst, src, importance, n / pd_dtypes[dtype].block_len);
}

/* Blocks of 32 weights with one fp16 scale, and in the types that end in _1 also the fp16 minimum. Nibble i of the low
 * half is weight i, of the high half weight i + 16. */
#include "format/format_.h"

/* Q8_0: f16 scale, 32 signed bytes; w = scale * q. */
void pd_q8_0_decode(float *dst, const uint8_t *src, uint64_t n)
{
    for (uint64_t b = 0; b < n; b++, src += 34, dst += 32) {
        float d = pd_load_f16(src);
        for (int i = 0; i < 32; i++) dst[i] = d * (float)(int8_t)src[2 + i];
    }
}

/* Q4_0: f16 scale, 16 bytes of nibbles; w = scale * (q - 8). */
void pd_q4_0_decode(float *dst, const uint8_t *src, uint64_t n)
{
    for (uint64_t b = 0; b < n; b++, src += 18, dst += 32) {
        float d = pd_load_f16(src);
        for (int i = 0; i < 16; i++) {
            dst[i] = d * (float)((src[2 + i] & 15) - 8);
            dst[i + 16] = d * (float)((src[2 + i] >> 4) - 8);
        }
    }
}

/* Q4_1: f16 scale, f16 minimum, 16 bytes of nibbles; w = scale * q + minimum. */
void pd_q4_1_decode(float *dst, const uint8_t *src, uint64_t n)
{
    for (uint64_t b = 0; b < n; b++, src += 20, dst += 32) {
        float d = pd_load_f16(src), m = pd_load_f16(src + 2);
        for (int i = 0; i < 16; i++) {
            float low = d * (float)(src[4 + i] & 15), high = d * (float)(src[4 + i] >> 4);
            dst[i] = low + m;
            dst[i + 16] = high + m;
        }
    }
}

/* Weight i's quant of five bits: bit i of the four bytes `high` is its top one. */
static int quant5(const uint8_t *high, const uint8_t *nibbles, int i)
{
    return (nibbles[i % 16] >> i / 16 * 4 & 15) | (high[i / 8] >> i % 8 & 1) << 4;
}

/* Q5_0: f16 scale, 4 bytes of fifth bits, 16 bytes of nibbles; w = scale * (q - 16). */
void pd_q5_0_decode(float *dst, const uint8_t *src, uint64_t n)
{
    for (uint64_t b = 0; b < n; b++, src += 22, dst += 32) {
        float d = pd_load_f16(src);
        for (int i = 0; i < 32; i++) dst[i] = d * (float)(quant5(src + 2, src + 6, i) - 16);
    }
}

/* Q5_1: f16 scale, f16 minimum, 4 bytes of fifth bits, 16 bytes of nibbles; w = scale * q + minimum. */
void pd_q5_1_decode(float *dst, const uint8_t *src, uint64_t n)
{
    for (uint64_t b = 0; b < n; b++, src += 24, dst += 32) {
        float d = pd_load_f16(src), m = pd_load_f16(src + 2);
        for (int i = 0; i < 32; i++) {
            float scaled = d * (float)quant5(src + 4, src + 8, i);
            dst[i] = scaled + m;
        }
    }
}

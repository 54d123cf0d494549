/* Decoders of blocks of weights that share scales. */
#include "format/format_.h"

/* ---- blocks of 32 ---- */

/* One f16 scale, and in the types that end in _1 also the f16 minimum. Nibble i of the low half is weight i, of the
 * high half weight i + 16. */

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

/* ---- blocks of 256 ---- */

/* The K types: groups of 16 or 32, each with a small integer scale (and minimum) that multiplies the block's f16
 * one. In the bit planes, a byte holds the same place of several groups. */

/* Two bits of weight i of 256: byte i % 32 of its half, plane i / 32 of 4. Q2_K, Q3_K; the upper bits of Q6_K. */
static int two_bits(const uint8_t *q, int i) { return q[i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3; }

/* The bit of weight i of 256: plane i / 32 of 8. */
static int one_bit(const uint8_t *q, int i) { return q[i % 32] >> i / 32 & 1; }

/* Q2_K: 16 bytes, each a scale (low nibble) and a minimum; 64 bytes of 2-bit quants; f16 scale, f16 minimum.
 * w = d * scale * q - dmin * minimum. */
void pd_q2_k_decode(float *dst, const uint8_t *src, uint64_t n)
{
    for (uint64_t b = 0; b < n; b++, src += 84, dst += 256) {
        const uint8_t *scales = src, *quants = src + 16;
        float d = pd_load_f16(src + 80), dmin = pd_load_f16(src + 82);
        for (int i = 0; i < 256; i++) {
            float scale = d * (float)(scales[i / 16] & 15), minimum = dmin * (float)(scales[i / 16] >> 4);
            float scaled = scale * (float)two_bits(quants, i);
            dst[i] = scaled - minimum;
        }
    }
}

/* Scale g of 16, six bits less 32: low nibbles in the first 8 bytes, high pairs of bits in the last 4. */
static int q3_k_scale(const uint8_t scales[12], int g)
{
    int low = scales[g % 8] >> g / 8 * 4 & 15, high = scales[8 + g % 4] >> g / 4 * 2 & 3;
    return (low | high << 4) - 32;
}

/* Q3_K: 32 bytes of third bits, 64 bytes of low bits, 12 bytes of scales, f16 scale. A third bit of 0 takes 4 off.
 * w = d * scale * q. */
void pd_q3_k_decode(float *dst, const uint8_t *src, uint64_t n)
{
    for (uint64_t b = 0; b < n; b++, src += 110, dst += 256) {
        float d = pd_load_f16(src + 108);
        for (int i = 0; i < 256; i++) {
            float scale = d * (float)q3_k_scale(src + 96, i / 16);
            dst[i] = scale * (float)(two_bits(src + 32, i) - 4 + 4 * one_bit(src, i));
        }
    }
}

/* A nibble of weight i of 256: byte i % 32 of its quarter, low half first. */
static int nibble(const uint8_t *q, int i) { return q[i / 64 * 32 + i % 32] >> i % 64 / 32 * 4 & 15; }

/* Q4_K: f16 scale, f16 minimum, 12 bytes of scales and minimums, 128 bytes of nibbles; Q5_K: with 32 bytes of fifth
 * bits before the nibbles. w = d * scale * q - dmin * minimum. */
static void decode_k(float *dst, const uint8_t *src, uint64_t n, bool fifth)
{
    int nibbles = fifth ? 48 : 16;
    for (uint64_t b = 0; b < n; b++, src += nibbles + 128, dst += 256) {
        float d = pd_load_f16(src), dmin = pd_load_f16(src + 2);
        for (int i = 0; i < 256; i++) {
            struct pd_k_scale s = pd_k_scale_get(src + 4, i / 32);
            float scale = d * (float)s.scale, minimum = dmin * (float)s.minimum;
            float scaled = scale * (float)(nibble(src + nibbles, i) | (fifth ? one_bit(src + 16, i) << 4 : 0));
            dst[i] = scaled - minimum;
        }
    }
}

void pd_q4_k_decode(float *dst, const uint8_t *src, uint64_t n) { decode_k(dst, src, n, false); }
void pd_q5_k_decode(float *dst, const uint8_t *src, uint64_t n) { decode_k(dst, src, n, true); }

/* Q6_K: 128 bytes of nibbles (64 for each half, low halves first), 64 bytes of upper pairs of bits, 16 signed bytes of
 * scales, f16 scale. w = d * scale * (q - 32). */
void pd_q6_k_decode(float *dst, const uint8_t *src, uint64_t n)
{
    for (uint64_t b = 0; b < n; b++, src += 210, dst += 256) {
        float d = pd_load_f16(src + 208);
        for (int i = 0; i < 256; i++) {
            float scale = d * (float)(int8_t)src[192 + i / 16];
            int low = src[i / 128 * 64 + i % 64] >> i % 128 / 64 * 4 & 15;
            dst[i] = scale * (float)((low | two_bits(src + 128, i) << 4) - 32);
        }
    }
}

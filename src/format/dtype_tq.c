/* Decoders of types of one and two bits a weight, without scales within a block. TQ1_0 and TQ2_0: blocks of 256 weights
 * -d, 0 or d, with one f16 d after them. Q1_0 and Q2_0: an f16 d, then the quants of 128 or 64 weights, from the lowest
 * bits of each byte up. */
#include "format/dtype_private.h"

#include "format/packed_bits.h"

/* TQ1_0: 52 bytes of digits to the base 3: see packed_bits.h. */
void pd_tq1_0_decode(float *dst, const uint8_t *src, uint64_t n)
{
    for (uint64_t b = 0; b < n; b++, src += 54, dst += 256) {
        float d = pd_load_f16(src + 52);
        for (int i = 0; i < 256; i++) dst[i] = d * (float)((int)pd_tq1_0_digit(src, i) - 1);
    }
}

/* TQ2_0: 64 bytes of pairs of bits, as in Q2_K; 3 is 2 d. */
void pd_tq2_0_decode(float *dst, const uint8_t *src, uint64_t n)
{
    for (uint64_t b = 0; b < n; b++, src += 66, dst += 256) {
        float d = pd_load_f16(src + 64);
        for (int i = 0; i < 256; i++) dst[i] = d * (float)((src[i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3) - 1);
    }
}

/* Q1_0: 1 is d, 0 is -d. */
void pd_q1_0_decode(float *dst, const uint8_t *src, uint64_t n)
{
    for (uint64_t b = 0; b < n; b++, src += 18, dst += 128) {
        float d = pd_load_f16(src);
        for (int i = 0; i < 128; i++) dst[i] = src[2 + i / 8] >> i % 8 & 1 ? d : -d;
    }
}

/* Q2_0: pairs of bits are -d, 0, d and 2 d. */
void pd_q2_0_decode(float *dst, const uint8_t *src, uint64_t n)
{
    for (uint64_t b = 0; b < n; b++, src += 18, dst += 64) {
        float d = pd_load_f16(src);
        for (int i = 0; i < 64; i++) dst[i] = d * (float)((src[2 + i / 4] >> 2 * (i % 4) & 3) - 1);
    }
}

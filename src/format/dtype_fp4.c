/* Decoders of the types whose weights are floats of four bits (e2m1), with scales that are floats of eight: blocks of
 * groups of 16 or 32. Nibble i of a group's low half is weight i, of the high half the one half a group later. */
#include "format/dtype_private.h"

#include "codebooks.h"

#include <math.h>

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

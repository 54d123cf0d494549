/* Decoders of the types whose four-bit quants are places in a table: its values lie closer together near zero, where
 * most weights are. */
#include "format/dtype_private.h"

#include "codebooks.h"

static const int8_t values[16] = {PD_IQ4_VALUES};

/* 32 weights from 16 bytes. */
static void decode_group(float *dst, const uint8_t *nibbles, float scale)
{
    for (int i = 0; i < 16; i++) {
        dst[i] = scale * (float)values[nibbles[i] & 15];
        dst[i + 16] = scale * (float)values[nibbles[i] >> 4];
    }
}

/* IQ4_NL: f16 scale, 16 bytes of nibbles. */
void pd_iq4_nl_decode(float *dst, const uint8_t *src, uint64_t n)
{
    for (uint64_t b = 0; b < n; b++, src += 18, dst += 32) decode_group(dst, src + 2, pd_load_f16(src));
}

/* IQ4_XS: f16 scale, u16 of the upper two bits of 8 scales, 4 bytes of their low nibbles, 128 bytes of nibbles; a group
 * of 32 weights has the scale d * (scale - 32). */
void pd_iq4_xs_decode(float *dst, const uint8_t *src, uint64_t n)
{
    for (uint64_t b = 0; b < n; b++, src += 136, dst += 256) {
        float d = pd_load_f16(src);
        for (int g = 0; g < 8; g++) {
            int low = src[4 + g / 2] >> g % 2 * 4 & 15, high = pd_load_u16(src + 2) >> 2 * g & 3;
            decode_group(dst + 32 * g, src + 8 + 16 * g, d * (float)((low | high << 4) - 32));
        }
    }
}

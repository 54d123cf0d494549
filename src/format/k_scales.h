/* The 12 bytes of Q4_K and Q5_K: 8 scales and 8 minimums of six bits. Bytes 0..3 hold scales 0..3 and, above them, the
 * upper two bits of scales 4..7; bytes 4..7 the same of the minimums; bytes 8..11 the low nibbles of scales 4..7, and
 * above them those of the minimums. */
#ifndef PD_FORMAT_K_SCALES_H
#define PD_FORMAT_K_SCALES_H

#include <stdint.h>

struct pd_k_scale {
    uint8_t scale, minimum;   /* 0..63 */
};

static inline struct pd_k_scale pd_k_scale_get(const uint8_t packed[12], int g)
{
    if (g < 4) return (struct pd_k_scale){packed[g] & 63, packed[g + 4] & 63};
    return (struct pd_k_scale){(uint8_t)((packed[g + 4] & 15) | packed[g - 4] >> 6 << 4),
                               (uint8_t)(packed[g + 4] >> 4 | packed[g] >> 6 << 4)};
}

/* Into bytes that were cleared. */
static inline void pd_k_scale_set(uint8_t packed[12], int g, struct pd_k_scale s)
{
    if (g < 4) {
        packed[g] |= s.scale;
        packed[g + 4] |= s.minimum;
        return;
    }
    packed[g + 4] = (uint8_t)((s.scale & 15) | (s.minimum & 15) << 4);
    packed[g - 4] |= (uint8_t)(s.scale >> 4 << 6);
    packed[g] |= (uint8_t)(s.minimum >> 4 << 6);
}

#endif

/* What decoders and the layout of rows on the device both take out of blocks of the IQ and TQ types. */
#ifndef PD_FORMAT_PACKED_BITS_H
#define PD_FORMAT_PACKED_BITS_H

#include <stdint.h>

/* The signs of eight weights from the lowest seven bits: there is an even number of minuses. */
static inline unsigned pd_eight_signs(uint32_t bits)
{
    unsigned seven = bits & 127, parity = seven ^ seven >> 4;
    parity ^= parity >> 2;
    return seven | ((parity ^ parity >> 1) & 1) << 7;
}

/* IQ1_M: the f16 scale of a block, whose nibbles are the upper ones of four u16 at its end. */
static inline uint16_t pd_iq1_m_scale(const uint8_t *block)
{
    return (uint16_t)(block[49] >> 4 | (block[51] & 0xf0) | (block[53] & 0xf0) << 4 | (block[55] & 0xf0) << 8);
}

/* IQ1_M: the three bits of scale of weights 16 i .. + 15. */
static inline unsigned pd_iq1_m_group_scale(const uint8_t *block, int i)
{
    const uint8_t *four = block + 48 + i / 4 * 2;
    return (unsigned)(four[0] | four[1] << 8) >> i % 4 * 3 & 7;
}

/* TQ1_0: weight i in 0..2. Five digits to the base 3 are a byte, as a fraction of 256: 32 bytes have the digits of 160
 * weights, 16 those of 80, 4 (of four digits) those of 16; digit k of byte j is weight j + k times the run's bytes. */
static inline unsigned pd_tq1_0_digit(const uint8_t *block, int i)
{
    static const struct { uint8_t first, n_bytes, at; } runs[] = {{0, 32, 0}, {160, 16, 32}, {240, 4, 48}};
    static const uint8_t powers[] = {1, 3, 9, 27, 81};
    int r = (i >= 160) + (i >= 240), j = i - runs[r].first;
    uint8_t rest = (uint8_t)(block[runs[r].at + j % runs[r].n_bytes] * powers[j / runs[r].n_bytes]);
    return rest * 3u >> 8;
}

#endif

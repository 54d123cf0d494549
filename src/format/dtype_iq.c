/* Decoders of the types whose weights are picked from codebooks, eight or four at a time: blocks of 256 in groups of
 * 32, with one f16 scale d. IQ1's entries are -1, 0 and 1, moved by an eighth up or down; those of IQ2 and IQ3 are
 * magnitudes, with signs of their own. */
#include "codebooks.h"
#include "format/format.h"
#include "format/format_.h"

/* Entries of two bits a weight are eight weights, those of three bits four. */
struct codebook {
    const uint32_t *grid;
    const uint8_t *magnitudes;
    int n_bits;
};

static const uint8_t iq2_magnitudes[] = {PD_IQ2_MAGNITUDES}, iq3_xxs_magnitudes[] = {PD_IQ3_XXS_MAGNITUDES},
    iq3_s_magnitudes[] = {PD_IQ3_S_MAGNITUDES};
static const uint32_t iq1_grid[] = {PD_IQ1_GRID}, iq2_xxs_grid[] = {PD_IQ2_XXS_GRID}, iq2_xs_grid[] = {PD_IQ2_XS_GRID},
    iq2_s_grid[] = {PD_IQ2_S_GRID}, iq3_xxs_grid[] = {PD_IQ3_XXS_GRID}, iq3_s_grid[] = {PD_IQ3_S_GRID};
static const struct codebook iq2_xxs = {iq2_xxs_grid, iq2_magnitudes, 2}, iq2_xs = {iq2_xs_grid, iq2_magnitudes, 2},
    iq2_s = {iq2_s_grid, iq2_magnitudes, 2}, iq3_xxs = {iq3_xxs_grid, iq3_xxs_magnitudes, 3},
    iq3_s = {iq3_s_grid, iq3_s_magnitudes, 3};

static unsigned entry_at(const uint32_t *grid, unsigned index) { return grid[index / 2] >> index % 2 * 16 & 0xffff; }

/* The weights of an entry; bit j of signs is weight j's. */
static void decode_entry(float *dst, const struct codebook *c, unsigned index, unsigned signs, float scale)
{
    unsigned entry = entry_at(c->grid, index), mask = (1u << c->n_bits) - 1;
    for (int j = 0; j < (c->n_bits == 2 ? 8 : 4); j++) {
        float magnitude = scale * (float)c->magnitudes[entry >> c->n_bits * j & mask];
        dst[j] = signs >> j & 1 ? -magnitude : magnitude;
    }
}

/* IQ2_XXS: f16 d; for each group four bytes of indices and a u32: 7 bits of signs for each octet, 4 bits of scale.
 * w = d * (scale + 0.5) / 4 * magnitude. */
void pd_iq2_xxs_decode(float *dst, const uint8_t *src, uint64_t n)
{
    for (uint64_t b = 0; b < n; b++, src += 66, dst += 256) {
        for (int g = 0; g < 8; g++) {
            const uint8_t *group = src + 2 + 8 * g;
            uint32_t word = pd_load_u32(group + 4);
            float scale = pd_load_f16(src) * (0.5f + (float)(word >> 28)) * 0.25f;
            for (int o = 0; o < 4; o++)
                decode_entry(dst + 32 * g + 8 * o, &iq2_xxs, group[o], pd_eight_signs(word >> 7 * o), scale);
        }
    }
}

/* IQ2_XS: f16 d; a u16 for each octet: 9 bits of index, 7 of signs; a nibble of scale for each 16 weights.
 * w = d * (scale + 0.5) / 4 * magnitude. */
void pd_iq2_xs_decode(float *dst, const uint8_t *src, uint64_t n)
{
    for (uint64_t b = 0; b < n; b++, src += 74, dst += 256) {
        for (int o = 0; o < 32; o++) {
            unsigned bits = pd_load_u16(src + 2 + 2 * o);
            float scale = pd_load_f16(src) * (0.5f + (float)(src[66 + o / 4] >> o / 2 % 2 * 4 & 15)) * 0.25f;
            decode_entry(dst + 8 * o, &iq2_xs, bits & 511, pd_eight_signs(bits >> 9), scale);
        }
    }
}

/* IQ2_S: f16 d; low bytes of the octets' indices, their signs, the upper two bits of the indices, a nibble of scale for
 * each 16 weights. w = d * (scale + 0.5) / 4 * magnitude. */
void pd_iq2_s_decode(float *dst, const uint8_t *src, uint64_t n)
{
    for (uint64_t b = 0; b < n; b++, src += 82, dst += 256) {
        for (int o = 0; o < 32; o++) {
            unsigned high = src[66 + o / 4] >> o % 4 * 2 & 3;
            float scale = pd_load_f16(src) * (0.5f + (float)(src[74 + o / 4] >> o / 2 % 2 * 4 & 15)) * 0.25f;
            decode_entry(dst + 8 * o, &iq2_s, src[2 + o] | high << 8, src[34 + o], scale);
        }
    }
}

/* IQ3_XXS: f16 d; a byte of index for each quad; a u32 for each group as in IQ2_XXS.
 * w = d * (scale + 0.5) / 2 * magnitude. */
void pd_iq3_xxs_decode(float *dst, const uint8_t *src, uint64_t n)
{
    for (uint64_t b = 0; b < n; b++, src += 98, dst += 256) {
        for (int q = 0; q < 64; q++) {
            uint32_t word = pd_load_u32(src + 66 + q / 8 * 4);
            float scale = pd_load_f16(src) * (0.5f + (float)(word >> 28)) * 0.5f;
            decode_entry(dst + 4 * q, &iq3_xxs, src[2 + q], pd_eight_signs(word >> q % 8 / 2 * 7) >> q % 2 * 4, scale);
        }
    }
}

/* IQ3_S: f16 d; low bytes of the quads' indices, their ninth bits, a byte of signs for each octet, a nibble of scale
 * for each group. w = d * (1 + 2 scale) * magnitude. */
void pd_iq3_s_decode(float *dst, const uint8_t *src, uint64_t n)
{
    for (uint64_t b = 0; b < n; b++, src += 110, dst += 256) {
        for (int q = 0; q < 64; q++) {
            unsigned high = src[66 + q / 8] >> q % 8 & 1;
            float scale = pd_load_f16(src) * (float)(1 + 2 * (src[106 + q / 16] >> q / 8 % 2 * 4 & 15));
            decode_entry(dst + 4 * q, &iq3_s, src[2 + q] | high << 8, src[74 + q / 2] >> q % 2 * 4, scale);
        }
    }
}

/* Eight weights of IQ1; down: an eighth is taken off, else it is added. */
static void decode_ternary(float *dst, unsigned index, bool down, float scale)
{
    unsigned entry = entry_at(iq1_grid, index);
    for (int j = 0; j < 8; j++) {
        float value = (float)(entry >> 2 * j & 3) - 1;
        dst[j] = scale * (value + (down ? -0.125f : 0.125f));
    }
}

/* IQ1_S: f16 d; low bytes of the octets' indices; a u16 for each group: the upper three bits of its four indices, three
 * bits of scale, and whether an eighth is taken off. w = d * (1 + 2 scale) * (value +- 1/8). */
void pd_iq1_s_decode(float *dst, const uint8_t *src, uint64_t n)
{
    for (uint64_t b = 0; b < n; b++, src += 50, dst += 256) {
        for (int o = 0; o < 32; o++) {
            unsigned group = pd_load_u16(src + 34 + o / 4 * 2), high = group >> o % 4 * 3 & 7;
            float scale = pd_load_f16(src) * (float)(1 + 2 * (group >> 12 & 7));
            decode_ternary(dst + 8 * o, src[2 + o] | high << 8, group >> 15, scale);
        }
    }
}

/* IQ1_M: low bytes of the octets' indices; a nibble for each octet: the upper three bits of the index, and whether an
 * eighth is taken off; four u16 with 3 bits of scale for each 16 weights, and above them a nibble of d.
 * w = d * (1 + 2 scale) * (value +- 1/8). */
void pd_iq1_m_decode(float *dst, const uint8_t *src, uint64_t n)
{
    for (uint64_t b = 0; b < n; b++, src += 56, dst += 256) {
        float d = pd_f32_from_f16(pd_iq1_m_scale(src));
        for (int o = 0; o < 32; o++) {
            unsigned nibble = src[32 + o / 2] >> o % 2 * 4 & 15;
            float scale = d * (float)(1 + 2 * pd_iq1_m_group_scale(src, o / 2));
            decode_ternary(dst + 8 * o, src[o] | (nibble & 7) << 8, nibble >> 3, scale);
        }
    }
}

/* ---- dtype tq ---- */

/* Decoders of types of one and two bits a weight, without scales within a block. TQ1_0 and TQ2_0: blocks of 256 weights
 * -d, 0 or d, with one f16 d after them. Q1_0 and Q2_0: an f16 d, then the quants of 128 or 64 weights, from the lowest
 * bits of each byte up. */

/* TQ1_0: 52 bytes of digits to the base 3: see format.h. */
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

/* Types whose quants are looked up in a table that prepare_weights puts into shared memory, where lookups of lanes that
 * differ are fast: values of four bits (LOW 16: byte j of a block has weight 2j in its low nibble, weight 2j + 1 in the
 * high one), and codebooks, where an index stands for eight weights (an octet), or with IQ3 four (a quad).
 * Of a block of a codebook's type LOW has the low 8 bits of its indices, or with IQ2_XS 16 bits for each: 9 of the
 * index, 7 of signs. HIGH has the signs of octets: 8 bits for each, or 7 and, in the last four bits, the scale. Where 7
 * are stored, the eighth makes the number of negative weights even. SCALE has up to two bytes: a scale of four bits for
 * each half, then bits of indices (bit 8 and on of index i at bit i times their number); with IQ1_S three bits for each
 * index, three of the scale and the sign of the deltas. With IQ1_M HIGH has four bits for each index: three of it, and
 * the sign of its delta.
 * A row of NVFP4 has a scale of its own (fp32) where others have those of superblocks. */
#include "codebooks.h"

#if defined(FORM_VALUES)
#if defined(W_MXFP4) || defined(W_NVFP4)
const int values[16] = int[](PD_FP4_VALUES);
#else
const int values[16] = int[](PD_IQ4_VALUES);
#endif

#if defined(QUANT_BYTES)
/* Of two nibbles at once. */
shared uint lookup[256];
uint lookup_entry(uint i) { return uint(values[i & 15u] & 0xff | (values[i >> 4] & 0xff) << 8); }
#else
shared float lookup[16];
float lookup_entry(uint i) { return float(values[i]); }
#endif

void prepare_weights()
{
    for (uint i = gl_LocalInvocationID.x; i < lookup.length(); i += gl_WorkGroupSize.x) lookup[i] = lookup_entry(i);
    barrier();
}

/* Of half a block too: in the first two words. */
struct unit_bits { uvec4 low; };

unit_bits load_unit_bits(uvec2 row, uint b, uint n_cols)
{
#if defined(WIDE)
    return unit_bits(uvec4(pair_at(row, 16 * b), pair_at(row, 16 * b + 8)));
#else
    return unit_bits(words_at(row, b));
#endif
}

unit_bits load_half_bits(uvec2 row, uint b, uint h, uint n_cols)
{
    return unit_bits(uvec4(pair_at(row, 16 * b + 8 * h), 0, 0));
}

#if defined(QUANT_BYTES)
uint bytes_of(uint w) { return lookup[w & 0xffu] | lookup[w >> 8 & 0xffu] << 16; }   /* of four nibbles */
uint bytes_of_unit(unit_bits bits, uint i) { return bytes_of(bits.low[i >> 1] >> 16 * (i & 1u)); }
vec4 quad_of(uint w) { return bytes_signed(bytes_of(w)); }
#else
vec4 quad_of(uint w)
{
    return vec4(lookup[w & 15u], lookup[w >> 4 & 15u], lookup[w >> 8 & 15u], lookup[w >> 12 & 15u]);
}
#endif

vec4 quad_of_unit(unit_bits bits, uint i) { return quad_of(bits.low[i >> 1] >> 16 * (i & 1u)); }

vec4 load_quad_quants(uvec2 row, uint q, uint n_cols)
{
    return quad_of(word_at(row, q >> 1 << 2) >> 16 * (q & 1u));
}

#if defined(W_NVFP4)
/* A scale of four bits of exponent and three of mantissa, halved as values are doubled. */
float half_of_ue4m3(uint e)
{
    return e < 8 ? float(e) / 1024.0 : uintBitsToFloat((e << 20) + (119u << 23));
}
#endif

void load_scales(out vec2 scales[PARTS], uvec2 row, uint b, uint n_cols)
{
#if defined(W_IQ4_NL)
    scales[0] = vec2(half_at(row, scale_at(n_cols) + 2 * b), 0.0);
#elif defined(W_IQ4_XS)
    scales[0] = vec2(half_at(row, super_at(n_cols) + 2 * (b >> 3))
        * signed_byte(byte_at(row, scale_at(n_cols) + b)), 0.0);
#elif defined(W_MXFP4)
    uint exponent = byte_at(row, scale_at(n_cols) + b);
    scales[0] = vec2(uintBitsToFloat((max(exponent, 1u) - 1) << 23), 0.0);   /* half, as values are doubled */
#else
    uint pair = pair_of_bytes_at(row, scale_at(n_cols) + 2 * b);
    float of_row = uintBitsToFloat(word_at(row, super_at(n_cols)));
    [[unroll]] for (uint h = 0; h < 2; h++) scales[h] = vec2(of_row * half_of_ue4m3(pair >> 8 * h & 0x7fu), 0.0);
#endif
}
#else
/* ---- codebooks ---- */

#if defined(W_IQ1_S) || defined(W_IQ1_M)
#define INDEX_WEIGHTS 8
#define MORE_BITS (HIGH == 2 ? 4 : 3)   /* of an index, beyond the low 8 */
#define N_INDICES 2048
const uint codebook[] = uint[](PD_IQ1_GRID);
#define SCALE_UNIT 0.125
#elif defined(W_IQ2_XXS)
#define SIGNS 7
#define INDEX_WEIGHTS 8
#define MORE_BITS 0
#define N_INDICES 256
const uint codebook[] = uint[](PD_IQ2_XXS_GRID);
#define SCALE_UNIT 0.125
#elif defined(W_IQ2_XS)
#define SIGNS 7
#define INDEX_WEIGHTS 8
#define MORE_BITS 0
#define N_INDICES 512
const uint codebook[] = uint[](PD_IQ2_XS_GRID);
#define SCALE_UNIT 0.125
#elif defined(W_IQ2_S)
#define SIGNS 8
#define INDEX_WEIGHTS 8
#define MORE_BITS 2
#define N_INDICES 1024
const uint codebook[] = uint[](PD_IQ2_S_GRID);
#define SCALE_UNIT 0.125
#elif defined(W_IQ3_XXS)
#define SIGNS 7
#define INDEX_WEIGHTS 4
#define MORE_BITS 0
#define N_INDICES 256
const uint codebook[] = uint[](PD_IQ3_XXS_GRID);
#define SCALE_UNIT 0.25
#else
#define SIGNS 8
#define INDEX_WEIGHTS 4
#define MORE_BITS 1
#define N_INDICES 512
const uint codebook[] = uint[](PD_IQ3_S_GRID);
#define SCALE_UNIT 1.0
#endif

#define BYTES(x) (0x01010101u * (x))   /* in each byte of a word */

/* Four fields of two bits, or three, to a byte each. */
uint spread2(uint e) { return e & 3u | (e & 0xcu) << 6 | (e & 0x30u) << 12 | (e & 0xc0u) << 18; }
uint spread3(uint e) { return e & 7u | (e & 0x38u) << 5 | (e & 0x1c0u) << 10 | (e & 0xe00u) << 15; }

#if defined(W_IQ1_S) || defined(W_IQ1_M)
/* Weights j and j + 4, plus 1, in the nibbles of byte j. */
#define entry uint
entry lookup_entry(uint e) { return spread2(e) | spread2(e >> 8) << 4; }
#elif INDEX_WEIGHTS == 8
/* Magnitudes 8, 25 and 43. */
#define entry uvec2
uint magnitudes(uint x) { return 17 * x + (x >> 1 & BYTES(1)) + BYTES(8 + CENTRE); }
entry lookup_entry(uint e) { return uvec2(magnitudes(spread2(e)), magnitudes(spread2(e >> 8))); }
#else
#define entry uint
entry lookup_entry(uint e)
{
    uint x = spread3(e);
#if defined(W_IQ3_S)
    return 2 * x + BYTES(1 + CENTRE);                                       /* 1, 3 .. 15 */
#else
    return 8 * x + 2 * (x & x >> 1 & x >> 2 & BYTES(1)) + BYTES(4 + CENTRE);   /* 4, 12 .. 52, 62 */
#endif
}
#endif

shared entry lookup[N_INDICES];

#if defined(SIGNS)
/* By the signs of an octet, what makes CENTRE + m of its bytes CENTRE - m: their complement in these bits, and 1. */
shared uvec2 flips[1 << SIGNS];
#define FLIP (2 * CENTRE - 1)

uint flips_of(uint signs) { return ((signs & 15u) * 0x00204081u & BYTES(1)) * FLIP; }

void prepare_flips()
{
    for (uint i = gl_LocalInvocationID.x; i < flips.length(); i += gl_WorkGroupSize.x) {
        uint signs = SIGNS == 7 ? i | (bitCount(i) & 1u) << 7 : i;
        flips[i] = uvec2(flips_of(signs), flips_of(signs >> 4));
    }
}
#else
void prepare_flips() {}
#endif

void prepare_weights()
{
    prepare_flips();
    for (uint i = gl_LocalInvocationID.x; i < N_INDICES / 2; i += gl_WorkGroupSize.x) {
        lookup[2 * i] = lookup_entry(codebook[i] & 0xffffu);
        lookup[2 * i + 1] = lookup_entry(codebook[i] >> 16);
    }
    barrier();
}

struct unit_bits {
    uvec2 index;        /* LOW */
    uint more, signs;   /* bits of indices beyond their low 8; signs of octets, or with IQ1_S of the deltas */
};

unit_bits load_unit_bits(uvec2 row, uint b, uint n_cols)
{
    unit_bits bits = unit_bits(uvec2(0), 0, 0);
#if LOW == 8
    bits.index = pair_at(row, 8 * b);
#else
    bits.index.x = word_at(row, 4 * b);
#endif
#if HIGH == 4
    bits.signs = word_at(row, high_at(n_cols) + 4 * b);
#elif HIGH == 2
    bits.more = pair_of_bytes_at(row, high_at(n_cols) + 2 * b);
#endif
#if defined(W_IQ1_S)
    bits.more = pair_of_bytes_at(row, scale_at(n_cols) + 2 * b);
    bits.signs = bits.more & 0x8000u;
#elif SCALE == 2
    bits.more = pair_of_bytes_at(row, scale_at(n_cols) + 2 * b) >> 8 & 0xffu;
#endif
    return bits;
}

/* A half of the unit's: quads 0 .. 3 of it are what comes out. */
unit_bits load_half_bits(uvec2 row, uint b, uint h, uint n_cols)
{
    unit_bits bits = load_unit_bits(row, b, n_cols);
    bits.index.x = LOW == 8 ? bits.index[h] : bits.index.x >> 16 * h;
    bits.more >>= MORE_BITS * (16 / INDEX_WEIGHTS) * h;
#if HIGH == 4
    bits.signs >>= 2 * SIGNS * h;
#endif
    return bits;
}

uint index_of(unit_bits bits, uint i)
{
#if defined(W_IQ2_XS)
    return bits.index[i >> 1] >> 16 * (i & 1u) & N_INDICES - 1;
#else
    uint low = bits.index[LOW == 8 ? i >> 2 : 0] >> 8 * (i & 3u) & 0xffu;
    return MORE_BITS == 0 ? low : low | (bits.more >> MORE_BITS * i & N_INDICES / 256 - 1) << 8;
#endif
}

/* Quants 4i .. 4i + 3 of a unit as bytes, too large by CENTRE. */
uint bytes_of_unit(unit_bits bits, uint i)
{
#if !defined(SIGNS)
    /* Eighths: -8, 0 or 8, and a delta of -1 or 1. */
    bool minus = (HIGH == 2 ? bits.more >> (i >> 1) * 4 & 8u : bits.signs) != 0;
    uint q = lookup[index_of(bits, i >> 1)] >> 4 * (i & 1u) & BYTES(15);
    return 8 * q + (minus ? BYTES(CENTRE - 9) : BYTES(CENTRE - 7));
#else
#if INDEX_WEIGHTS == 8
    uint m = lookup[index_of(bits, i >> 1)][i & 1u];
#else
    uint m = lookup[index_of(bits, i)];
#endif
#if defined(W_IQ2_XS)
    uint signs = bits.index[i >> 2] >> 16 * (i >> 1 & 1u) + 9;
#else
    uint signs = bits.signs >> SIGNS * (i >> 1);
#endif
    uint flip = flips[signs & (1 << SIGNS) - 1][i & 1u];
    return (m ^ flip) + (flip & BYTES(1));
#endif
}

vec4 quad_of_unit(unit_bits bits, uint i) { return bytes_unsigned(bytes_of_unit(bits, i)); }

vec4 load_quad_quants(uvec2 row, uint q, uint n_cols)
{
    return quad_of_unit(load_unit_bits(row, q >> 3, n_cols), q & 7u);
}

void load_scales(out vec2 scales[PARTS], uvec2 row, uint b, uint n_cols)
{
#if SCALE == 0
    uint s = word_at(row, high_at(n_cols) + 4 * b) >> 28;
#elif SCALE == 1
    uint s = byte_at(row, scale_at(n_cols) + b);
#else
    uint s = pair_of_bytes_at(row, scale_at(n_cols) + 2 * b);
    if (HIGH == 0) s = s >> 12 & 7u;
#endif
    float d = half_at(row, super_at(n_cols) + 2 * (b >> 3)) * SCALE_UNIT;
    [[unroll]] for (uint h = 0; h < PARTS; h++)
        scales[h] = vec2(1.0, -CENTRE) * (d * float(2 * (s >> 4 * h & 15u) + 1));
}
#endif

#if defined(QUANT_BYTES)
void load_quants(out uvec4 q[2], uvec2 row, uint b, uint n_cols)
{
    unit_bits bits = load_unit_bits(row, b, n_cols);
    [[unroll]] for (uint i = 0; i < 8; i++) q[i >> 2][i & 3u] = bytes_of_unit(bits, i);
}
#endif

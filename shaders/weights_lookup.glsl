/* Types whose quants are looked up in a table that prepare_weights puts into shared memory, where lookups of lanes that
 * differ are fast: values of four bits (LOW 16: byte j of a block has weight 2j in its low nibble, weight 2j + 1 in the
 * high one), and codebooks, where an index stands for eight weights (an octet), or with IQ3 four (a quad).
 * Of a block of a codebook's type LOW has the low 8 bits of its indices; HIGH, but with IQ1, has the signs: bit 8j + q
 * is that of weight 4q + j. With 7 stored signs for eight weights, the last being their parity, its bits 25, 27, 29 and
 * 31 hold what else there is: the scale, or bits of indices. SCALE has up to two bytes: a scale of four bits for each
 * half, then bits of indices (bit 8 and on of index i at bit i times their number); with IQ1_S three bits for each
 * index, three of the scale and the sign of the deltas. With IQ1_M HIGH has four bits for each index: three of it, and
 * the sign of its delta. */
#include "codebooks.h"

#if !defined(CODEBOOK)
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
    [[unroll]] for (uint h = 0; h < 2; h++) scales[h] = vec2(half_of_ue4m3(pair >> 8 * h & 0x7fu), 0.0);
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
#define INDEX_WEIGHTS 8
#define MORE_BITS 0
#define N_INDICES 256
const uint codebook[] = uint[](PD_IQ2_XXS_GRID);
#define SCALE_UNIT 0.125
#elif defined(W_IQ2_XS)
#define INDEX_WEIGHTS 8
#define MORE_BITS 2   /* of which one is used */
#define N_INDICES 512
const uint codebook[] = uint[](PD_IQ2_XS_GRID);
#define SCALE_UNIT 0.125
#elif defined(W_IQ2_S)
#define INDEX_WEIGHTS 8
#define MORE_BITS 2
#define N_INDICES 1024
const uint codebook[] = uint[](PD_IQ2_S_GRID);
#define SCALE_UNIT 0.125
#elif defined(W_IQ3_XXS)
#define INDEX_WEIGHTS 4
#define MORE_BITS 0
#define N_INDICES 256
const uint codebook[] = uint[](PD_IQ3_XXS_GRID);
#define SCALE_UNIT 0.25
#else
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

void prepare_weights()
{
    for (uint i = gl_LocalInvocationID.x; i < N_INDICES / 2; i += gl_WorkGroupSize.x) {
        lookup[2 * i] = lookup_entry(codebook[i] & 0xffffu);
        lookup[2 * i + 1] = lookup_entry(codebook[i] >> 16);
    }
    barrier();
}

struct unit_bits {
    uvec2 index;        /* low 8 bits of each */
    uint more, signs;   /* bits of indices beyond these; signs as in HIGH, with IQ1_S of the deltas */
};

/* Signs with the eighth of each octet, the parity of the others. */
uint all_signs(uint w)
{
    uint stored = w & 0x55ffffffu, parity = stored ^ stored >> 16;
    parity ^= parity >> 8;
    parity ^= parity >> 1;
    return stored | (parity & 0x55u) << 25;
}

unit_bits load_unit_bits(uvec2 row, uint b, uint n_cols)
{
    unit_bits bits;
#if LOW == 8
    bits.index = pair_at(row, 8 * b);
#else
    bits.index = uvec2(word_at(row, 4 * b));
#endif
    bits.more = 0;
#if HIGH == 4
    bits.signs = word_at(row, high_at(n_cols) + 4 * b);
#if defined(W_IQ2_XS)
    bits.more = bits.signs >> 25;
#endif
#if SCALE == 2
    bits.more = byte_at(row, scale_at(n_cols) + 2 * b + 1);
#else
    bits.signs = all_signs(bits.signs);
#endif
#elif HIGH == 2
    bits.more = pair_of_bytes_at(row, high_at(n_cols) + 2 * b);
#else
    bits.more = pair_of_bytes_at(row, scale_at(n_cols) + 2 * b);
    bits.signs = bits.more >> 15 & 1u;
#endif
    return bits;
}

/* A half of the unit's: quads 0 .. 3 of it are what comes out. */
unit_bits load_half_bits(uvec2 row, uint b, uint h, uint n_cols)
{
    unit_bits bits = load_unit_bits(row, b, n_cols);
    bits.index.x = LOW == 8 ? bits.index[h] : bits.index.x >> 16 * h;
    bits.more >>= MORE_BITS * (16 / INDEX_WEIGHTS) * h;
    if (HIGH == 4) bits.signs >>= 4 * h;
    return bits;
}

uint index_of(unit_bits bits, uint i)
{
    uint low = bits.index[LOW == 8 ? i >> 2 : 0] >> 8 * (i & 3u) & 0xffu;
    return low | (bits.more >> MORE_BITS * i & N_INDICES / 256 - 1) << 8;
}

/* Quants 4i .. 4i + 3 of a unit as bytes, too large by CENTRE. */
uint bytes_of_unit(unit_bits bits, uint i)
{
#if defined(W_IQ1_S) || defined(W_IQ1_M)
    /* Eighths: -8, 0 or 8, and a delta of -1 or 1. */
    uint minus = HIGH == 2 ? bits.more >> (i >> 1) * 4 + 3 & 1u : bits.signs;
    uint q = lookup[index_of(bits, i >> 1)] >> 4 * (i & 1u) & BYTES(15);
    return CENTRE != 0 ? 8 * q + BYTES(CENTRE - 7) - BYTES(2) * minus
                       : 8 * q + BYTES(128 - 7) - BYTES(2) * minus ^ BYTES(128);
#else
    /* Where it is negative m becomes -m, or CENTRE + m CENTRE - m, which is the complement and 1. */
    uint negative = bits.signs >> i & BYTES(1);
#if INDEX_WEIGHTS == 8
    uint m = lookup[index_of(bits, i >> 1)][i & 1u];
#else
    uint m = lookup[index_of(bits, i)];
#endif
    return (m ^ negative * (CENTRE != 0 ? 2 * CENTRE - 1 : 255)) + negative;
#endif
}

vec4 quad_of_unit(unit_bits bits, uint i)
{
    return CENTRE != 0 ? bytes_unsigned(bytes_of_unit(bits, i)) : bytes_signed(bytes_of_unit(bits, i));
}

vec4 load_quad_quants(uvec2 row, uint q, uint n_cols)
{
    return quad_of_unit(load_unit_bits(row, q >> 3, n_cols), q & 7u);
}

void load_scales(out vec2 scales[PARTS], uvec2 row, uint b, uint n_cols)
{
#if SCALE == 0
    uint s = word_at(row, high_at(n_cols) + 4 * b) >> 25 & 0x55u;   /* every second bit */
    s = (s | s >> 1) & 0x33u;
    s = (s | s >> 2) & 15u;
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

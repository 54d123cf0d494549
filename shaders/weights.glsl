/* Weight formats: this, with weights_lookup.glsl, is where kernels meet them. A row of n_cols weights lies at a 16-byte
 * aligned address, re-laid at load (src/ops/layout.c) in sections: all low bits of the quants, all high bits, the
 * scales of blocks of 32, then those of superblocks of 256; per block of 32 weights that is LOW, HIGH and SCALE bytes,
 * or SCALE bytes for BLOCKS_OF_SCALE blocks, per superblock SUPER bytes.
 *   LOW 32: a signed byte a weight. LOW 16: byte j has weight j in its low nibble, weight j + 16 in the high one.
 *   Types whose quants are looked up (LOOKUP): see weights_lookup.glsl.
 *   LOW 8, LOW 4, HIGH 8, HIGH 4: n = 2 or 1 bits a weight, so that a shift and a mask of a word give those of four
 *   weights, in four bytes: of a word's weights 4k + j is at bits nk of byte j.
 * Rows end padded with zeros. ROW_INTERLEAVE rows of blocks take turns, 16 bytes each: 8 where a CPU's lanes take a row
 * each and so read memory in order, else 1. A row is known by the address of its first byte. Defines:
 *   prepare_weights()           for all invocations of the workgroup to call before any of what follows
 *   row_at(w, i, row_size)      row i of the matrix at w
 *   HALVES                      whether the two halves of a block have scales of their own: PARTS is 2, else 1
 *   OFFSET                      whether weights are more than scale * quant
 *   MINIMUM                     whether there is an offset beyond CENTRE, by which quants are too large
 *   load_scales(scales, row, b, n_cols)   of the parts of block b: (scale, offset)
 *   UNIT                        weights per unit, a multiple of 4 dividing 32
 *   load_unit_bits(row, u, n_cols), quad_of_unit(bits, i)   what holds the quants of unit u; 4i .. 4i + 3 of them as
 *                               floats, to be decoded when they are needed: they would fill the registers
 *   load_quad_quants(row, q, n_cols)   quants 4q .. 4q + 3 of the row as floats, where a unit at once does not matter
 *   load_unit(row, u, n_cols), load_quad(row, q, n_cols)   the same as weights, those of a unit in unit_w[]
 *   load_quants(q, row, b, n_cols), centred(q)   block b's quants as signed bytes, 16 in each of q[2], for types of
 *                               LOW <= 32; those without CENTRE. Where the includer has defined QUANT_BYTES, and loads
 *                               quants in no other way
 *   load_bits(row, b, n_cols)   what is worth loading at once of block b (32 weights)
 *   octet_words(bits, row, b, j)   the words of its weights 8j .. 8j + 7, to be loaded for many rows before any is
 *                                decoded:
 *   octet(w, words, bits, row, b, j, n_cols)   those weights' quants, for x times x_scale_of(column): see
 *                                scale_of_sums
 */
#define UNIT (LOW > 16 ? 512 / LOW : 32)
#define HALVES (PARTS == 2)
#define MINIMUM (N_F16 == 2)
#define OFFSET (MINIMUM || CENTRE != 0)
#if defined(FORM_VALUES) || defined(FORM_CODES)
#define LOOKUP
#endif

#if LOW <= 32
layout(constant_id = PD_ROW_INTERLEAVE_ID) const uint ROW_INTERLEAVE = 1;
#else
const uint ROW_INTERLEAVE = 1;
#endif

uvec2 row_at(uvec2 w, uint i, uint row_size)
{
    if (ROW_INTERLEAVE == 1) return address_of(w, i, row_size);
    return address_of(address_of(w, i / ROW_INTERLEAVE, ROW_INTERLEAVE * row_size), i % ROW_INTERLEAVE, 16);
}

/* From the row's address to that of its byte `offset`. */
uint bytes_to(uint offset)
{
    return ROW_INTERLEAVE == 1 ? offset : (offset >> 4) * (16 * ROW_INTERLEAVE) + (offset & 15u);
}

vec4 unit_w[UNIT / 4];

vec4 bytes_signed(uint w)
{
    return vec4(bitfieldExtract(int(w), 0, 8), bitfieldExtract(int(w), 8, 8),
                bitfieldExtract(int(w), 16, 8), bitfieldExtract(int(w), 24, 8));
}

vec4 bytes_unsigned(uint w) { return vec4(w & 0xffu, w >> 8 & 0xffu, w >> 16 & 0xffu, w >> 24); }

/* Bytes of the row before its high bits, block scales and superblock scales. */
uint high_at(uint n_cols) { return (n_cols >> 5) * LOW; }
uint scale_at(uint n_cols) { return (n_cols >> 5) * (LOW + HIGH); }
uint super_at(uint n_cols) { return (n_cols >> 5) * (LOW + HIGH + SCALE); }

uvec4 words_at(uvec2 row, uint u) { return pd_uvec4s(row).at[ROW_INTERLEAVE * u]; }   /* 16 bytes: unit u of such */
#if defined(FORM_CODES)
#define words_of_row pd_words_read   /* loaded once where they are used twice; other types compile better without */
#else
#define words_of_row pd_words
#endif
uint word_at(uvec2 row, uint offset) { return words_of_row(row).at[bytes_to(offset) >> 2]; }

/* Two words at once; as one of 64 bits where the device loads it as fast as 32. */
uvec2 pair_at(uvec2 row, uint offset)
{
#if defined(WIDE)
    return unpackUint2x32(pd_pairs(row).at[bytes_to(offset) >> 3]);
#else
    return pd_uvec2s(row).at[bytes_to(offset) >> 3];
#endif
}

uint byte_at(uvec2 row, uint offset) { return word_at(row, offset) >> 8 * (offset & 3u) & 0xffu; }

/* Two bytes in the low half. */
uint pair_of_bytes_at(uvec2 row, uint offset) { return word_at(row, offset) >> 8 * (offset & 2u); }
float half_at(uvec2 row, uint offset) { return unpackHalf2x16(pair_of_bytes_at(row, offset)).x; }
float signed_byte(uint w) { return float(bitfieldExtract(int(w), 0, 8)); }   /* the lowest */

#if defined(LOOKUP)
#include "weights_lookup.glsl"
#else
void prepare_weights() {}

#if LOW > 32
void load_scales(out vec2 scales[PARTS], uvec2 row, uint b, uint n_cols) { scales[0] = vec2(1.0, 0.0); }
#else
/* Weight = scale * quant + offset in each part of block b: (scale, offset). */
void load_scales(out vec2 scales[PARTS], uvec2 row, uint b, uint n_cols)
{
#if SUPER == 0 && !MINIMUM
    scales[0] = vec2(1.0, -CENTRE) * half_at(row, scale_at(n_cols) + 2 * (b / BLOCKS_OF_SCALE));
#elif SUPER == 0
    scales[0] = unpackHalf2x16(word_at(row, scale_at(n_cols) + 4 * b));
#elif MINIMUM
    vec2 d = unpackHalf2x16(word_at(row, super_at(n_cols) + 4 * (b >> 3)));
    uint pair = pair_of_bytes_at(row, scale_at(n_cols) + 2 * b);
#if PARTS == 1
    scales[0] = d * vec2(pair & 0xffu, -float(pair >> 8 & 0xffu));
#else
    [[unroll]] for (uint h = 0; h < 2; h++, pair >>= 8) scales[h] = d * vec2(pair & 15u, -float(pair >> 4 & 15u));
#endif
#else
    uint pair = pair_of_bytes_at(row, scale_at(n_cols) + 2 * b);
    vec2 d = half_at(row, super_at(n_cols) + 2 * (b >> 3)) * vec2(signed_byte(pair), signed_byte(pair >> 8));
    [[unroll]] for (uint h = 0; h < 2; h++) scales[h] = vec2(1.0, -CENTRE) * d[h];
#endif
}
#endif

#if LOW <= 16
/* The words of block b that hold low bits (LOW 8 has two, LOW 4 one), and those of the high bits of its halves. */
uvec4 low_words(uvec2 row, uint b)
{
#if LOW == 16
    return words_at(row, b);
#elif LOW == 8
    return uvec4(word_at(row, 8 * b), word_at(row, 8 * b + 4), 0, 0);
#else
    return uvec4(word_at(row, 4 * b));
#endif
}

uvec2 high_words(uvec2 row, uint b, uint n_cols)
{
#if HIGH == 4
    return uvec2(word_at(row, high_at(n_cols) + 4 * b));
#elif HIGH == 8
    return pair_at(row, high_at(n_cols) + 8 * b);
#else
    return uvec2(0);
#endif
}

/* Quants 4i .. 4i + 3 of a block as bytes, from the words that hold their low and high bits. One bit is 0 or 2. */
uint bytes_of(uint i, uint low, uint high)
{
    if (LOW == 4) return (low >> i & 0x01010101u) << 1;
    uint q = LOW == 16 ? low >> (i & 4u) & 0x0f0f0f0fu : low >> 2 * (i & 3u) & 0x03030303u;
    if (HIGH == 4) q |= (high >> i & 0x01010101u) << (LOW == 16 ? 4 : 2);
    if (HIGH == 8) q |= (high >> 2 * (i & 3u) & 0x03030303u) << 4;
    return q;
}
#endif

#if LOW <= 32
/* The same as floats. */
vec4 quad_of(uint i, uint low, uint high)
{
#if LOW == 32
    return bytes_signed(low);
#else
    return bytes_unsigned(bytes_of(i, low, high));
#endif
}
#endif

#if LOW <= 32
void load_quants(out uvec4 q[2], uvec2 row, uint b, uint n_cols)
{
#if LOW == 32
    [[unroll]] for (uint h = 0; h < 2; h++) q[h] = words_at(row, 2 * b + h);
#else
    uvec4 low = low_words(row, b);
    uvec2 high = high_words(row, b, n_cols);
    [[unroll]] for (uint h = 0; h < 2; h++)
        [[unroll]] for (uint k = 0; k < 4; k++) q[h][k] = bytes_of(4 * h + k, low[LOW == 16 ? k : h], high[h]);
#endif
}
#endif

struct unit_bits { uvec4 low; uvec2 high; };

unit_bits load_unit_bits(uvec2 row, uint u, uint n_cols)
{
#if LOW > 16
    return unit_bits(words_at(row, u), uvec2(0));
#else
    return unit_bits(low_words(row, u), high_words(row, u, n_cols));
#endif
}

/* Quants 4i .. 4i + 3 of a unit. */
vec4 quad_of_unit(unit_bits bits, uint i)
{
#if defined(W_F32)
    return uintBitsToFloat(bits.low);
#elif defined(W_F16)
    return vec4(unpackHalf2x16(bits.low[2 * i]), unpackHalf2x16(bits.low[2 * i + 1]));
#elif defined(W_BF16)
    uvec2 w = uvec2(bits.low[2 * i], bits.low[2 * i + 1]);
    return uintBitsToFloat(uvec4(w.x << 16, w.x & 0xffff0000u, w.y << 16, w.y & 0xffff0000u));
#else
    return quad_of(i, bits.low[LOW == 8 ? i >> 2 : i & 3u], bits.high[i >> 2 & 1u]);
#endif
}

vec4 load_quad_quants(uvec2 row, uint q, uint n_cols)
{
#if defined(W_F32)
    return uintBitsToFloat(words_at(row, q));
#elif defined(W_F16)
    return vec4(unpackHalf2x16(pd_words(row).at[2 * q]), unpackHalf2x16(pd_words(row).at[2 * q + 1]));
#elif defined(W_BF16)
    uvec2 w = uvec2(pd_words(row).at[2 * q], pd_words(row).at[2 * q + 1]);
    return uintBitsToFloat(uvec4(w.x << 16, w.x & 0xffff0000u, w.y << 16, w.y & 0xffff0000u));
#else
    uint b = q >> 3, i = q & 7u;
#if LOW == 32
    uint low = word_at(row, 4 * q);
#elif LOW == 16
    uint low = word_at(row, 16 * b + 4 * (i & 3u));
#elif LOW == 8
    uint low = word_at(row, 8 * b + 4 * (i >> 2));
#else
    uint low = word_at(row, 4 * b);
#endif
    uint high = 0;
#if HIGH == 4
    high = word_at(row, high_at(n_cols) + 4 * b);
#elif HIGH == 8
    high = word_at(row, high_at(n_cols) + 8 * b + 4 * (i >> 2));
#endif
    return quad_of(i, low, high);
#endif
}
#endif

uvec4 centred(uvec4 q) { return CENTRE == 0 ? q : ((q | 0x80808080u) - CENTRE * 0x01010101u) ^ 0x80808080u; }
vec4 weights_of(vec4 quants, vec2 scale) { return fma(quants, scale.xxxx, scale.yyyy); }

void load_unit(uvec2 row, uint u, uint n_cols)
{
    vec2 scales[PARTS];
    unit_bits bits = load_unit_bits(row, u, n_cols);
    load_scales(scales, row, u * UNIT / 32, n_cols);
    [[unroll]] for (uint i = 0; i < UNIT / 4; i++) {
        vec4 quants = quad_of_unit(bits, i);
        unit_w[i] = LOW > 32 ? quants : weights_of(quants, scales[HALVES ? i >> 2 : 0]);
    }
}

vec4 load_quad(uvec2 row, uint q, uint n_cols)
{
    vec2 scales[PARTS];
    load_scales(scales, row, q >> 3, n_cols);
    vec4 quants = load_quad_quants(row, q, n_cols);
    return LOW > 32 ? quants : weights_of(quants, (q & 4u) == 0 ? scales[0] : scales[PARTS - 1]);
}

/* ---- block by block ---- */

#if defined(LOOKUP)
#define block_bits unit_bits
block_bits load_bits(uvec2 row, uint b, uint n_cols) { return load_unit_bits(row, b, n_cols); }
#else
struct block_bits {
    uvec2 low[LOW == 16 ? 2 : 1], high;
};

block_bits load_bits(uvec2 row, uint b, uint n_cols)
{
    block_bits bits;
#if LOW <= 16
#if LOW == 4
    bits.low[0] = uvec2(word_at(row, 4 * b));
#else
    [[unroll]] for (uint i = 0; i < LOW / 8; i++) bits.low[i] = pair_at(row, b * LOW + 8 * i);
#endif
    bits.high = high_words(row, b, n_cols);
#endif
    return bits;
}
#endif

#if LOW > 32
vec4 quad_of_floats(uvec2 row, uint q)
{
#if defined(W_F32)
    return vec4(uintBitsToFloat(pair_at(row, 16 * q)), uintBitsToFloat(pair_at(row, 16 * q + 8)));
#else
    uvec2 w = pair_at(row, 8 * q);
#if defined(W_F16)
    return vec4(unpackHalf2x16(w.x), unpackHalf2x16(w.y));
#else
    return uintBitsToFloat(uvec4(w.x << 16, w.x & 0xffff0000u, w.y << 16, w.y & 0xffff0000u));
#endif
#endif
}
#endif

/* Bytes, and nibbles without high bits, are masked where they lie in their word, as shifting them takes a third of the
 * time. So the quant of column i of a block comes out of octet 2^place_of(i) times too large, where no sign is in the
 * way: x is to be as much smaller. And of the signed bytes of a word, all but the last come out with 128 added: so much
 * times the sum of their x is to be taken off. */
#if LOW > 32 || defined(LOOKUP)
#define IN_PLACE 0
#else
#define IN_PLACE 1
#endif
#define NIBBLES (LOW == 16 && HIGH == 0)
#define SUM_OF_X (OFFSET || LOW == 32)

uint place_of(uint i)
{
    uint place = 8 * (i & 3u) + (NIBBLES ? (i >> 4) * 4 : 0);
    return IN_PLACE != 0 && place < 28 ? place : 0;
}

float x_scale_of(uint i) { return uintBitsToFloat((127u - place_of(i)) << 23); }
bool in_sum_of_x(uint i) { return LOW != 32 || (i & 3u) < 3; }

/* Of the octets of a part: what their sum of products, and that of x, count. */
vec2 scale_of_sums(vec2 scale) { return LOW == 32 ? vec2(scale.x, -128.0 * scale.x) : scale; }

#if IN_PLACE
vec4 quants_in_place(uint i, uint low, uint high)
{
    const uvec4 bytes = uvec4(0xffu, 0xff00u, 0xff0000u, 0xff000000u);
#if LOW == 32
    return vec4(ivec4((low ^ 0x808080u) & bytes));
#else
    if (!NIBBLES) return vec4(ivec4(bytes_of(i, low, high) & bytes));
    uint mask = i >= 4 ? 0xf0u : 0xfu;
    return vec4(low & mask, low & mask << 8, low & mask << 16, i >= 4 ? low >> 28 : low & mask << 24);
#endif
}
#endif

/* The words that hold an octet's low bits. */
uvec2 octet_words(block_bits bits, uvec2 row, uint b, uint j)
{
#if LOW == 32
    return pair_at(row, 32 * b + 8 * j);
#elif defined(LOOKUP)
    return uvec2(0);
#elif LOW == 16
    return bits.low[j & 1];
#elif LOW <= 8
    return uvec2(bits.low[0][LOW == 8 ? j >> 1 : 0]);
#else
    return uvec2(0);
#endif
}

/* A row of floats may end within a block: x has zeros there, and the last weights stand in for those that are not. */
void octet(out vec4 w[2], uvec2 low, block_bits bits, uvec2 row, uint b, uint j, uint n_cols)
{
#if LOW > 32
    uint last = (n_cols - 1) >> 2;
    w[0] = quad_of_floats(row, min(8 * b + 2 * j, last));
    w[1] = quad_of_floats(row, min(8 * b + 2 * j + 1, last));
#elif defined(LOOKUP)
    [[unroll]] for (uint k = 0; k < 2; k++) w[k] = quad_of_unit(bits, 2 * j + k);
#else
    [[unroll]] for (uint k = 0; k < 2; k++) w[k] = quants_in_place(2 * j + k, low[k], bits.high[j >> 1]);
#endif
}

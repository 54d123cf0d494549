/* Weights as fp16, eight in a uvec4, from rows as weights.glsl describes them. fp16 is rounded to once, from the fma in
 * fp32 that applies the scale. Weights are multiplied by WEIGHT_SCALE: those from 1e-6 to 1023 then keep the 11 bits of
 * fp16. Those that are fp16 already are copied. Invocations share blocks, so that small tiles keep all of them busy.
 * Defines:
 *   WEIGHT_SCALE
 *   PIECE, struct piece          weights that an invocation loads at once: 8 or 16
 *   load_piece(row, first, i, n_cols)   piece first + i of the row, first that of a block; past the end any of the
 *                                row, as x is zero there
 *   eight_of_piece(piece, i, j), place_of_eight(i, j)   eight of its weights, j < PIECE / 8, and which eight of the row
 *                                from that block on they are */
#include "halves.glsl"

#if defined(W_F16)
#define WEIGHT_SCALE 1.0
#else
#define WEIGHT_SCALE 64.0
#endif

#if LOW > 32
#define PIECE 8
struct piece { uvec4 low, high; };

piece load_piece(uvec2 row, uint first, uint i, uint n_cols)
{
    uint n = 8 / UNIT, last = (n_cols - 1) / UNIT, at = n * (first + i);
    uvec4 low = words_at(row, min(at, last));
    return piece(low, n == 1 ? low : words_at(row, min(at + 1, last)));
}

uvec4 eight_of_piece(piece w, uint i, uint j)
{
#if defined(W_F16)
    return w.low;
#else
    vec4 low = quad_of_unit(unit_bits(w.low, uvec2(0)), 0) * WEIGHT_SCALE;
    vec4 high = quad_of_unit(unit_bits(w.high, uvec2(0)), 8 / UNIT % 2) * WEIGHT_SCALE;
    return packed(low, high);
#endif
}

uint place_of_eight(uint i, uint j) { return i; }
#else
/* Half a block: of nibbles its bytes 8h .. 8h + 7, and so two eights, 16 weights apart; else weights 16h .. 16h + 15.
 */
#define PIECE 16
#if defined(LOOKUP)
#define APART false
struct piece {
    unit_bits bits;
    vec2 scales[PARTS];
};

piece load_piece(uvec2 row, uint first, uint i, uint n_cols)
{
    piece w;
    uint b = min(first / 2 + i / 2, n_cols / 32 - 1);
    w.bits = load_half_bits(row, b, i % 2, n_cols);
    load_scales(w.scales, row, b, n_cols);
    return w;
}

#define BIAS_OF_BYTES 0
vec4 quad_of_piece(piece w, uint k) { return quad_of_unit(w.bits, k); }
#else
#define APART (LOW == 16)
struct piece {
    uvec4 low;
    uvec2 high;
    vec2 scales[PARTS];
};

piece load_piece(uvec2 row, uint first, uint i, uint n_cols)
{
    piece w;
    uint b = min(first / 2 + i / 2, n_cols / 32 - 1), h = i % 2;
#if LOW == 32
    w.low = words_at(row, 2 * b + h);
#elif LOW == 16
    w.low.xy = pair_at(row, 16 * b + 8 * h);
#elif LOW == 8
    w.low.x = word_at(row, 8 * b + 4 * h);
#else
    w.low.x = word_at(row, 4 * b) >> 4 * h;
#endif
#if HIGH > 0
    w.high = high_words(row, b, n_cols) >> (LOW == 16 ? 2 : 4) * (HIGH / 4) * h;
#endif
    load_scales(w.scales, row, b, n_cols);
    return w;
}

/* Quants 4k .. 4k + 3 of the piece, too large by BIAS_OF_BYTES. */
#define BIAS_OF_BYTES (LOW == 32 ? 128 : 0)
vec4 quad_of_piece(piece w, uint k)
{
#if LOW == 32
    return bytes_unsigned(w.low[k] ^ 0x80808080u);
#elif LOW == 16
    return quad_of(k / 2 * 4 + k % 2, w.low[k % 2], w.high[k / 2]);
#else
    return quad_of(k, w.low.x, w.high.x);
#endif
}
#endif

uvec4 eight_of_piece(piece w, uint i, uint j)
{
    vec2 scale = w.scales[HALVES ? (APART ? j : i % 2) : 0] * WEIGHT_SCALE;
    scale.y -= BIAS_OF_BYTES * scale.x;
    vec4 low = weights_of(quad_of_piece(w, 2 * j), scale), high = weights_of(quad_of_piece(w, 2 * j + 1), scale);
    return packed(low, high);
}

uint place_of_eight(uint i, uint j) { return APART ? i / 2 * 4 + i % 2 + 2 * j : 2 * i + j; }
#endif

#version 460
/* A matrix times many vectors (see matmul.glsl) in fp32, or with HALF by packed fp16 products, two a lane and
 * instruction: what there is for tiles on any device, and where there are neither cooperative matrices nor dot
 * products of bytes.
 * With HALF x comes packed (pack_f16.comp): fp16, scaled so that |x| < 16. Each block of 32 weights becomes fp16
 * numbers up to 128 and a scale: quants as they are where a block has one scale and no minimum, else weights over a
 * power of two. Products are summed in fp16, of even and of odd columns, 16 each (below 2^15), and then times the scale
 * in fp32:
 *   sum w x = sum over blocks of scale (sum of even columns + sum of odd columns) */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

/* `piece` is what shared memory holds of a row at an address: PIECE columns. */
#if defined(HALF)
#include "halves.glsl"
#define piece uvec4
#define PIECE 8
#define pieces_of_x pd_uvec4s
#define BLOCKS (gl_WorkGroupSize.x / TILE_ROWS)
#else
#define piece vec4
#define PIECE 4
#define pieces_of_x pd_vec4s
#define BLOCKS 1
#endif
#include "matmul_lanes.glsl"

const uint PIECES = BLOCKS * 32 / PIECE;        /* of a row in a step */
const uint STRIDE = PIECES + 1;                 /* which keeps rows from falling into the same banks */
const uint X_EACH = TILE_TOKENS * PIECES / gl_WorkGroupSize.x;   /* pieces of x that an invocation copies */

shared piece tile_w[TILE_ROWS * STRIDE];
shared piece tile_x[TILE_TOKENS * STRIDE];

uvec2 w_row;               /* of the weights that this invocation loads */
uint x_at[X_EACH];         /* of the pieces of x */

#if defined(HALF)
shared float scales[BLOCKS * TILE_ROWS];   /* [block][row] */

uint exponent_of(float x) { return clamp(floatBitsToUint(x) >> 23, 7, 253); }   /* biased */
float two_to(uint exponent) { return uintBitsToFloat(exponent << 23); }
#endif

/* Whether the quants of a block, less CENTRE, are its weights but for one scale. */
const bool QUANTS = LOW <= 32 && !HALVES && !MINIMUM;

/* Block `block` of the row, if it is there, to block_w; returns what that is to be multiplied by. */
piece block_w[32 / PIECE];

#if defined(HALF) && defined(W_F16)
float load_block(uvec2 row, uint block)
{
    f16vec2 most = f16vec2(0);
    [[unroll]] for (uint k = 0; k < 4; k++) {
        block_w[k] = block * 32 + 8 * k < p.n_cols ? words_at(row, 4 * block + k) : uvec4(0);
        [[unroll]] for (uint j = 0; j < 4; j++) most = max(most, pair(block_w[k][j] & 0x7fff7fffu));
    }
    uint exponent = max(exponent_of(float(max(most.x, most.y))), 127 - 9);   /* 2^15 is the largest power of two */
    f16vec2 inverse = f16vec2(two_to(260 - exponent));
    [[unroll]] for (uint k = 0; k < 4; k++)
        [[unroll]] for (uint j = 0; j < 4; j++) block_w[k][j] = packFloat2x16(pair(block_w[k][j]) * inverse);
    return two_to(exponent - 6);
}
#else
/* Unit `unit` to unit_w: weights, or with HALF quants where those will do. */
void load_numbers(uvec2 row, uint unit)
{
#if defined(HALF) && LOW <= 32
    if (QUANTS) {
        unit_bits bits = load_unit_bits(row, unit, p.n_cols);
        [[unroll]] for (uint i = 0; i < UNIT / 4; i++) unit_w[i] = quad_of_unit(bits, i) - float(CENTRE);
        return;
    }
#endif
    load_unit(row, unit, p.n_cols);
}

float load_block(uvec2 row, uint block)
{
    vec4 w[8];
    [[unroll]] for (uint u = 0; u < 32 / UNIT; u++) {
        uint unit = block * (32 / UNIT) + u;
        [[unroll]] for (uint i = 0; i < UNIT / 4; i++) unit_w[i] = vec4(0);
        if (unit * UNIT < p.n_cols) load_numbers(row, unit);
        [[unroll]] for (uint i = 0; i < UNIT / 4; i++) w[u * (UNIT / 4) + i] = unit_w[i];
    }
#if defined(HALF)
    float scale = 1.0, inverse = 1.0;
    if (QUANTS) {
        vec2 of_parts[PARTS];
        of_parts[0] = vec2(0);
        if (block * 32 < p.n_cols) load_scales(of_parts, row, block, p.n_cols);
        scale = of_parts[0].x;
    } else {
        vec4 most = abs(w[0]);
        [[unroll]] for (uint i = 1; i < 8; i++) most = max(most, abs(w[i]));
        uint exponent = exponent_of(max(max(most.x, most.y), max(most.z, most.w)));
        scale = two_to(exponent - 6);
        inverse = two_to(260 - exponent);   /* the largest comes to lie between 64 and 128 */
    }
    [[unroll]] for (uint k = 0; k < 4; k++) block_w[k] = packed(w[2 * k] * inverse, w[2 * k + 1] * inverse);
    return scale;
#else
    block_w = w;
    return 1.0;
#endif
}
#endif

void load_weights(uint r, uint b, uint block)
{
    float scale = load_block(w_row, block);
    [[unroll]] for (uint k = 0; k < 32 / PIECE; k++) tile_w[r * STRIDE + 32 / PIECE * b + k] = block_w[k];
#if defined(HALF)
    scales[b * TILE_ROWS + r] = scale;
#endif
}

void find_rows(uint first_row, uint first_token)
{
    w_row = w_row_at(first_row + loaded_row);
    [[unroll]] for (uint i = 0; i < X_EACH; i++) {
        uint at = gl_LocalInvocationID.x + i * gl_WorkGroupSize.x;
        x_at[i] = tile_x_row(first_token, at / PIECES) * (p.x_stride / 4) + at % PIECES;
    }
}

void load_step(uint block)
{
    pieces_of_x x = pieces_of_x(uvec2(p.x));   /* its rows are padded with zeros to a step */
    if (loaded_row < TILE_ROWS) load_weights(loaded_row, loaded_block, block + loaded_block);
    [[unroll]] for (uint i = 0; i < X_EACH; i++) {
        uint at = gl_LocalInvocationID.x + i * gl_WorkGroupSize.x;
        tile_x[at / PIECES * STRIDE + at % PIECES] = x.at[x_at[i] + 32 / PIECE * block];
    }
}

#if defined(HALF)
void add_block(uint b)
{
    f16vec2 part[TOKENS_EACH * ROWS_EACH];   /* even columns, odd ones */
    [[unroll]] for (uint k = 0; k < 4; k++) {
        uvec4 w[ROWS_EACH];
        [[unroll]] for (uint r = 0; r < ROWS_EACH; r++) w[r] = tile_w[(my_row + r * ROW_STEP) * STRIDE + 4 * b + k];
        [[unroll]] for (uint m = 0; m < TOKENS_EACH; m++) {
            uvec4 x = tile_x[(my_token + m * TOKEN_STEP) * STRIDE + 4 * b + k];
            [[unroll]] for (uint r = 0; r < ROWS_EACH; r++) {
                uint i = m * ROWS_EACH + r;
                part[i] = k == 0 ? pair(w[r].x) * pair(x.x) : fma(pair(w[r].x), pair(x.x), part[i]);
                [[unroll]] for (uint j = 1; j < 4; j++) part[i] = fma(pair(w[r][j]), pair(x[j]), part[i]);
            }
        }
    }
    [[unroll]] for (uint r = 0; r < ROWS_EACH; r++) {
        float scale = scales[b * TILE_ROWS + my_row + r * ROW_STEP];
        [[unroll]] for (uint m = 0; m < TOKENS_EACH; m++) {
            uint i = m * ROWS_EACH + r;
            sums[m][r] = fma(float(part[i].x + part[i].y), scale, sums[m][r]);
        }
    }
}
#else
void add_block(uint b)
{
    [[dont_unroll]] for (uint k = 0; k < 8; k++) {
        vec4 w[ROWS_EACH];
        [[unroll]] for (uint r = 0; r < ROWS_EACH; r++) w[r] = tile_w[(my_row + r * ROW_STEP) * STRIDE + k];
        [[unroll]] for (uint m = 0; m < TOKENS_EACH; m++) {
            vec4 x = tile_x[(my_token + m * TOKEN_STEP) * STRIDE + k];
            [[unroll]] for (uint r = 0; r < ROWS_EACH; r++)
                [[unroll]] for (uint j = 0; j < 4; j++) sums[m][r] = fma(w[r][j], x[j], sums[m][r]);
        }
    }
}
#endif

void add_step()
{
    if (BLOCKS == 1) add_block(0);
    else [[dont_unroll]] for (uint b = 0; b < BLOCKS; b++) add_block(b);
}

#if defined(HALF)
float sum_scale(uint to) { return scale_of_packed(to); }
#else
float sum_scale(uint to) { return 1.0; }
#endif

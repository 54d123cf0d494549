#version 460
/* y[m][r] = softcap(w[r] . x[m]): a matrix times many vectors. A workgroup makes a tile of 64 rows by TILE_TOKENS; per
 * step it decodes the weights of 32 columns, or more, to shared memory and copies the activations there, and each
 * invocation adds to ROWS_EACH x TOKENS_EACH sums in fp32.
 * With HALF by packed fp16 products, two a lane and instruction. x comes packed (pack_f16.comp): fp16, scaled so that
 * |x| < 16. Each block of 32 weights becomes fp16 numbers up to 128 and a scale: quants as they are where a block has
 * one scale and no minimum, else weights over a power of two. Products are summed in fp16, of even and of odd columns,
 * 16 each (below 2^15), and then times the scale in fp32:
 *   sum w x = sum over blocks of scale (sum of even columns + sum of odd columns)
 * Grid: [rows / 64, tokens / TILE_TOKENS, slots of experts]. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#if defined(HALF)
#include "halves.glsl"
#endif
layout(local_size_x_id = 0) in;   /* a multiple of 64 */
#include "weights.glsl"

layout(constant_id = 1) const uint TILE_TOKENS = 64;
layout(push_constant) uniform Push { pd_matmul_push p; };
#include "bias.glsl"
#define X_ROWS TILE_TOKENS
#include "experts.glsl"

/* `piece` is what shared memory holds of a row at an address: PIECE columns. */
#if defined(HALF)
#define piece uvec4
#define PIECE 8
#define pieces_of_x pd_uvec4s
const uint BLOCKS = gl_WorkGroupSize.x / PD_MATMUL_ROWS;   /* of 32 columns, of a step */
#else
#define piece vec4
#define PIECE 4
#define pieces_of_x pd_vec4s
const uint BLOCKS = 1;
#endif

#define TILE_ROWS PD_MATMUL_ROWS
#define ROWS_EACH 4
const uint TOKENS_EACH = TILE_ROWS * TILE_TOKENS / ROWS_EACH / gl_WorkGroupSize.x;
const uint LANE_ROWS = TILE_ROWS / ROWS_EACH;   /* an invocation's rows, and tokens, are as far from each other */
const uint LANE_TOKENS = TILE_TOKENS / TOKENS_EACH;
const uint PIECES = BLOCKS * 32 / PIECE;        /* of a row in a step */
const uint STRIDE = PIECES + 1;                 /* which keeps rows from falling into the same banks */
const uint X_EACH = TILE_TOKENS * PIECES / gl_WorkGroupSize.x;   /* pieces of x that an invocation copies */

shared piece tile_w[TILE_ROWS * STRIDE];
shared piece tile_x[TILE_TOKENS * STRIDE];

float sums[TOKENS_EACH * ROWS_EACH];   /* [token][row] */

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

void load_weights(uvec2 row, uint r, uint b, uint first_block)
{
    float scale = load_block(row, first_block + b);
    [[unroll]] for (uint k = 0; k < 32 / PIECE; k++) tile_w[r * STRIDE + 32 / PIECE * b + k] = block_w[k];
#if defined(HALF)
    scales[b * TILE_ROWS + r] = scale;
#endif
}

#if defined(HALF)
void add_block(uint b, uint my_row, uint my_token)
{
    f16vec2 part[TOKENS_EACH * ROWS_EACH];   /* even columns, odd ones */
    [[unroll]] for (uint k = 0; k < 4; k++) {
        uvec4 w[ROWS_EACH];
        [[unroll]] for (uint r = 0; r < ROWS_EACH; r++) w[r] = tile_w[(my_row + r * LANE_ROWS) * STRIDE + 4 * b + k];
        [[unroll]] for (uint m = 0; m < TOKENS_EACH; m++) {
            uvec4 x = tile_x[(my_token + m * LANE_TOKENS) * STRIDE + 4 * b + k];
            [[unroll]] for (uint r = 0; r < ROWS_EACH; r++) {
                uint i = m * ROWS_EACH + r;
                part[i] = k == 0 ? pair(w[r].x) * pair(x.x) : fma(pair(w[r].x), pair(x.x), part[i]);
                [[unroll]] for (uint j = 1; j < 4; j++) part[i] = fma(pair(w[r][j]), pair(x[j]), part[i]);
            }
        }
    }
    [[unroll]] for (uint r = 0; r < ROWS_EACH; r++) {
        float scale = scales[b * TILE_ROWS + my_row + r * LANE_ROWS];
        [[unroll]] for (uint m = 0; m < TOKENS_EACH; m++) {
            uint i = m * ROWS_EACH + r;
            sums[i] = fma(float(part[i].x + part[i].y), scale, sums[i]);
        }
    }
}
#else
void add_block(uint b, uint my_row, uint my_token)
{
    [[dont_unroll]] for (uint k = 0; k < 8; k++) {
        vec4 w[ROWS_EACH];
        [[unroll]] for (uint r = 0; r < ROWS_EACH; r++) w[r] = tile_w[(my_row + r * LANE_ROWS) * STRIDE + k];
        [[unroll]] for (uint m = 0; m < TOKENS_EACH; m++) {
            vec4 x = tile_x[(my_token + m * LANE_TOKENS) * STRIDE + k];
            [[unroll]] for (uint r = 0; r < ROWS_EACH; r++)
                [[unroll]] for (uint j = 0; j < 4; j++)
                    sums[m * ROWS_EACH + r] = fma(w[r][j], x[j], sums[m * ROWS_EACH + r]);
        }
    }
}
#endif

float x_scale(uint row)
{
#if defined(HALF)
    return pd_floats(uvec2(p.x)).at[(x_row_for(row) + 1) * p.x_stride - PD_PACK_TAIL];
#else
    return 1.0;
#endif
}

void write_sums(uint first_row, uint first_token)
{
    [[unroll]] for (uint m = 0; m < TOKENS_EACH; m++) {
        uint token = first_token + m * LANE_TOKENS;
        if (token >= n_tokens) continue;
        uint to = y_row(token);
        float scale = x_scale(to);
        [[unroll]] for (uint r = 0; r < ROWS_EACH; r++) {
            uint row = first_row + r * LANE_ROWS;
            if (row < p.n_rows)
                p.y.at[to * p.y_stride + row] = softcap_of(with_bias(sums[m * ROWS_EACH + r] * scale, row), p.softcap);
        }
    }
}

void main()
{
    uint first_row = gl_WorkGroupID.x * TILE_ROWS, first_token = gl_WorkGroupID.y * TILE_TOKENS;
    uint lane = gl_LocalInvocationID.x, my_row = lane % LANE_ROWS, my_token = lane / LANE_ROWS;
    uint block_row = lane / BLOCKS, block = lane % BLOCKS;
    prepare_weights();
    if (!find_expert(gl_WorkGroupID.z, first_token)) return;
    find_x_rows(first_token);
    pieces_of_x x = pieces_of_x(uvec2(p.x));   /* its rows are padded with zeros to a step */
    uint x_at[X_EACH];
    [[unroll]] for (uint i = 0; i < X_EACH; i++) {
        uint at = lane + i * gl_WorkGroupSize.x;
        x_at[i] = tile_x_row(first_token, at / PIECES) * (p.x_stride / 4) + at % PIECES;
    }
    uvec2 row = row_at(p.w, row_of_expert(min(first_row + block_row, p.n_rows - 1)), p.row_size);
    [[unroll]] for (uint i = 0; i < TOKENS_EACH * ROWS_EACH; i++) sums[i] = 0.0;
    for (uint first_block = p.first_col / 32; first_block * 32 < p.end_col; first_block += BLOCKS) {
        if (block_row < TILE_ROWS) load_weights(row, block_row, block, first_block);
        [[unroll]] for (uint i = 0; i < X_EACH; i++) {
            uint at = lane + i * gl_WorkGroupSize.x;
            tile_x[at / PIECES * STRIDE + at % PIECES] = x.at[x_at[i] + 32 / PIECE * first_block];
        }
        barrier();
        if (BLOCKS == 1) add_block(0, my_row, my_token);
        else [[dont_unroll]] for (uint b = 0; b < BLOCKS; b++) add_block(b, my_row, my_token);
        barrier();
    }
    write_sums(first_row + my_row, first_token + my_token);
}

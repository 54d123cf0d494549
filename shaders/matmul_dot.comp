#version 460
/* y[m][r] = softcap(w[r] . x[m]): matmul.comp by dot products of bytes. x comes packed (pack_q16.comp): whole numbers
 * of 16 bits in a high and a low byte, with a scale for each block of 32. Quants of weights are unpacked to bytes and
 * never become floats:
 *   sum w x = scale_w scale_x (256 sum quants high + sum quants low) + minimum sum x      over a block
 * with exact sums in integers. A workgroup makes a tile of 64 rows by TILE_TOKENS; per step each invocation unpacks one
 * block of a row to shared memory, and adds to 4 x TOKENS_EACH sums in fp32.
 * Grid: [rows / 64, tokens / TILE_TOKENS, slots of experts]. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_integer_dot_product : require
#include "common.glsl"
#include "q16.glsl"
#include "weights.glsl"

layout(local_size_x_id = 0) in;   /* a multiple of 64 */
layout(constant_id = 1) const uint TILE_TOKENS = 64;
layout(push_constant) uniform Push { pd_matmul_push p; };
#include "bias.glsl"
#define X_ROWS TILE_TOKENS
#include "experts.glsl"

#define TILE_ROWS PD_DOT_ROWS
const uint BLOCKS = gl_WorkGroupSize.x / TILE_ROWS;   /* of a step */
const uint TOKENS_EACH = TILE_TOKENS * 16 / gl_WorkGroupSize.x;
const uint ROW_STRIDE = TILE_ROWS + 1;                /* keeps the blocks of a row from falling into the same banks */
const uint TOKEN_STRIDE = TILE_TOKENS + 1;

#define N_SCALES (MINIMUM ? 2 * PARTS : PARTS)  /* of a block of weights: of its halves, then their minimums */
#define N_SUMS (MINIMUM ? PARTS : 0)

shared uvec4 tile_w[BLOCKS * 2 * ROW_STRIDE];          /* [block][half][row]: 16 bytes */
shared uvec4 tile_x[BLOCKS * 4 * TOKEN_STRIDE];        /* [block][high bytes of the halves, low bytes][token] */
shared float scales_w[BLOCKS * N_SCALES * ROW_STRIDE];
shared float scales_x[BLOCKS * (1 + N_SUMS) * TOKEN_STRIDE];   /* scale, then sums */

vec4 sums[TOKENS_EACH];   /* [token] of four rows */

void load_weights(uint first_row, uint first_block)
{
    uint r = gl_LocalInvocationID.x / BLOCKS, b = gl_LocalInvocationID.x % BLOCKS;
    uvec4 quants[2] = {uvec4(0), uvec4(0)};
    vec2 scales[PARTS];
    [[unroll]] for (uint h = 0; h < PARTS; h++) scales[h] = vec2(0);
    if (first_block + b < p.n_cols / 32) {
        uvec2 row = row_at(p.w, row_of_expert(min(first_row + r, p.n_rows - 1)), p.row_size);
        load_quants(quants, row, first_block + b, p.n_cols);
        load_scales(scales, row, first_block + b, p.n_cols);
    }
    [[unroll]] for (uint h = 0; h < 2; h++) tile_w[(2 * b + h) * ROW_STRIDE + r] = centred(quants[h]);
    [[unroll]] for (uint s = 0; s < N_SCALES; s++)
        scales_w[(N_SCALES * b + s) * ROW_STRIDE + r] = scales[s % PARTS][s / PARTS];
}

void load_activations(uint first_token, uint first_block)
{
    pd_uvec4s x = pd_uvec4s(uvec2(p.x));
    for (uint i = gl_LocalInvocationID.x; i < TILE_TOKENS * BLOCKS; i += gl_WorkGroupSize.x) {
        uint t = i / BLOCKS, b = i % BLOCKS, row = tile_x_row(first_token, t);
        bool there = first_block + b < p.n_cols / 32;
        uint from = (row * p.x_stride + (there ? first_block + b : 0) * PD_Q16_BLOCK) / 4;
        [[unroll]] for (uint k = 0; k < 4; k++) tile_x[(4 * b + k) * TOKEN_STRIDE + t] = x.at[from + k];
        vec4 last = there ? uintBitsToFloat(x.at[from + 4]) : vec4(0);
        float values[3] = {last.x, HALVES ? last.y : last.y + last.z, last.z};
        [[unroll]] for (uint s = 0; s < 1 + N_SUMS; s++)
            scales_x[((1 + N_SUMS) * b + s) * TOKEN_STRIDE + t] = values[s];
    }
}

void add_block(uint b, uint my_row, uint my_token)
{
    uvec4 w[8];
    vec4 scales[N_SCALES];
    [[unroll]] for (uint r = 0; r < 4; r++) {
        uint row = my_row + 16 * r;
        [[unroll]] for (uint h = 0; h < 2; h++) w[2 * r + h] = tile_w[(2 * b + h) * ROW_STRIDE + row];
        [[unroll]] for (uint s = 0; s < N_SCALES; s++) scales[s][r] = scales_w[(N_SCALES * b + s) * ROW_STRIDE + row];
    }
    [[unroll]] for (uint m = 0; m < TOKENS_EACH; m++) {
        uint token = my_token + m * (TILE_TOKENS / TOKENS_EACH), scale_at = (1 + N_SUMS) * b * TOKEN_STRIDE + token;
        ivec4 dots[PARTS];
        [[unroll]] for (uint h = 0; h < PARTS; h++) dots[h] = ivec4(0);
        [[unroll]] for (uint k = 0; k < 4; k++) {
            uvec4 x = tile_x[(4 * b + k) * TOKEN_STRIDE + token];
            uint h = k % 2, of = h % PARTS;
            if (k == 2) [[unroll]] for (uint i = 0; i < PARTS; i++) dots[i] <<= 8;   /* after the high bytes */
            [[unroll]] for (uint r = 0; r < 4; r++) dots[of][r] = dot16(w[2 * r + h], x, dots[of][r]);
        }
        vec4 scaled = scales[0] * vec4(dots[0]);
        if (HALVES) scaled += scales[PARTS - 1] * vec4(dots[PARTS - 1]);
        sums[m] += scales_x[scale_at] * scaled;
        [[unroll]] for (uint s = 0; s < N_SUMS; s++)
            sums[m] += scales_x[scale_at + (1 + s) * TOKEN_STRIDE] * scales[PARTS + s];
    }
}

void main()
{
    uint first_row = gl_WorkGroupID.x * TILE_ROWS, first_token = gl_WorkGroupID.y * TILE_TOKENS;
    uint my_row = gl_LocalInvocationID.x % 16, my_token = gl_LocalInvocationID.x / 16;
    if (!find_expert(gl_WorkGroupID.z, first_token)) return;
    find_x_rows(first_token);
    [[unroll]] for (uint m = 0; m < TOKENS_EACH; m++) sums[m] = vec4(0);
    for (uint block = 0; block < p.n_cols / 32; block += BLOCKS) {
        load_weights(first_row, block);
        load_activations(first_token, block);
        barrier();
        [[dont_unroll]] for (uint b = 0; b < BLOCKS; b++) add_block(b, my_row, my_token);
        barrier();
    }
    [[unroll]] for (uint m = 0; m < TOKENS_EACH; m++) {
        uint token = first_token + my_token + m * (TILE_TOKENS / TOKENS_EACH);
        [[unroll]] for (uint r = 0; r < 4; r++) {
            uint row = first_row + my_row + 16 * r;
            if (token < n_tokens && row < p.n_rows)
                p.y.at[y_row(token) * p.y_stride + row] = softcap_of(with_bias(sums[m][r], row), p.softcap);
        }
    }
}

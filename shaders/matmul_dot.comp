#version 460
/* A matrix times many vectors (see matmul.glsl) by dot products of bytes, where the GPU has instructions for them. x
 * comes packed (pack_dot.comp): whole numbers of two bytes, high and low, or of one (PD_IS_COARSE), with a scale for
 * each block of 32. Quants of weights are unpacked to bytes and never become floats. Over a block:
 *   sum w x = scale_w scale_x (256 sum quants high + sum quants low) + minimum sum x
 * with exact sums in integers. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_integer_dot_product : require
#include "common.glsl"
#include "dots.glsl"
#define QUANT_BYTES
#define BLOCKS (gl_WorkGroupSize.x / TILE_ROWS)
#include "matmul_lanes.glsl"

const uint ROW_STRIDE = TILE_ROWS + 1;                /* keeps the blocks of a row from falling into the same banks */
const uint TOKEN_STRIDE = TILE_TOKENS + 1;

#define N_SCALES (MINIMUM ? 2 * PARTS : PARTS)   /* of a block of weights: of its halves, then their minimums */
#define N_FACTORS (MINIMUM ? 1 + PARTS : 1)      /* of one of x: its scale, then sums */
#define X_BYTES (PD_IS_COARSE(LOW, HIGH) ? 1 : 2)   /* of an activation */
#define X_VECS (2 * X_BYTES)

/* A block of the tile's rows is 16 bytes of each half of each row, then scales for four rows of an invocation together;
 * one of its tokens high bytes of each half of each token, low ones if any, then factors for four tokens. One
 * array for each, so that what is read lies at constant distances from one address. */
const uint W_BLOCK = 2 * ROW_STRIDE + N_SCALES * ROW_STEP;
const uint X_BLOCK = X_VECS * TOKEN_STRIDE + N_FACTORS * (TILE_TOKENS / 4);
shared uvec4 tile_w[BLOCKS * W_BLOCK];
shared uvec4 tile_x[BLOCKS * X_BLOCK];

/* Where the blocks begin that each invocation loads of one row and of one or more tokens. */
const uint X_LOADS = (TILE_TOKENS + TILE_ROWS - 1) / TILE_ROWS;
uvec2 w_row;
uint x_row_at[X_LOADS];   /* in units of 16 bytes */

void find_rows(uint first_row, uint first_token)
{
    w_row = w_row_at(first_row + loaded_row);
    [[unroll]] for (uint k = 0; k < X_LOADS; k++)
        x_row_at[k] = tile_x_row(first_token, min(loaded_row + k * TILE_ROWS, TILE_TOKENS - 1)) * (p.x_stride / 4);
}

void load_weights(uint block, uint b)
{
    uint r = loaded_row, at = b * W_BLOCK;
    uvec4 quants[2];
    vec2 scales[PARTS];
    load_quants(quants, w_row, block, p.n_cols);
    load_scales(scales, w_row, block, p.n_cols);
    [[unroll]] for (uint h = 0; h < 2; h++) tile_w[at + r + h * ROW_STRIDE] = centred(quants[h]);
    at += 2 * ROW_STRIDE + r % ROW_STEP;
    [[unroll]] for (uint s = 0; s < N_SCALES; s++)
        tile_w[at + s * ROW_STEP][r / ROW_STEP] = floatBitsToUint(scales[s % PARTS][s / PARTS]);
}

/* Past the last block the factors are 0. */
void load_activations(uint block, uint b, bool there)
{
    pd_uvec4s x = pd_uvec4s(uvec2(p.x));
    [[unroll]] for (uint i = 0; i < X_LOADS; i++) {
        uint t = loaded_row + i * TILE_ROWS, at = b * X_BLOCK;
        uint from = x_row_at[i] + block * (PD_DOT_BLOCK(X_BYTES) / 4);
        if (TILE_TOKENS % TILE_ROWS != 0 && t >= TILE_TOKENS) return;
        [[unroll]] for (uint k = 0; k < X_VECS; k++) tile_x[at + t + k * TOKEN_STRIDE] = x.at[from + k];
        vec4 last = there ? uintBitsToFloat(x.at[from + X_VECS]) : vec4(0);
        float factors[3] = {last.x, HALVES ? last.y : last.y + last.z, last.z};
        at += X_VECS * TOKEN_STRIDE + t % TOKEN_STEP + t / (4 * TOKEN_STEP) * TOKEN_STEP;
        [[unroll]] for (uint s = 0; s < N_FACTORS; s++)
            tile_x[at + s * (TILE_TOKENS / 4)][t / TOKEN_STEP % 4] = floatBitsToUint(factors[s]);
    }
}

/* w_at, x_at: of a block's first row and token that are this invocation's. */
void add_block(uint w_at, uint x_at)
{
    uvec4 w[2 * ROWS_EACH], factors[N_FACTORS];
    vec4 scales[N_SCALES];
    [[unroll]] for (uint s = 0; s < N_SCALES; s++)
        scales[s] = uintBitsToFloat(tile_w[w_at + (2 * ROW_STRIDE + s * ROW_STEP)]);
    [[unroll]] for (uint r = 0; r < ROWS_EACH; r++)
        [[unroll]] for (uint h = 0; h < 2; h++) w[2 * r + h] = tile_w[w_at + (h * ROW_STRIDE + r * ROW_STEP)];
    [[unroll]] for (uint m = 0; m < TOKENS_EACH; m++) {
        if (m % 4 == 0) [[unroll]] for (uint s = 0; s < N_FACTORS; s++)
            factors[s] = tile_x[x_at + (X_VECS * TOKEN_STRIDE + s * (TILE_TOKENS / 4) + m / 4 * TOKEN_STEP)];
        ivec4 dots[PARTS];
        [[unroll]] for (uint h = 0; h < PARTS; h++) dots[h] = ivec4(0);
        [[unroll]] for (uint k = 0; k < X_VECS; k++) {
            uvec4 x = tile_x[x_at + (k * TOKEN_STRIDE + m * TOKEN_STEP)];
            uint h = k % 2, of = h % PARTS;
            if (k == 2) [[unroll]] for (uint i = 0; i < PARTS; i++) dots[i] <<= 8;   /* after the high bytes */
            [[unroll]] for (uint r = 0; r < ROWS_EACH; r++) dots[of][r] = dot16(w[2 * r + h], x, dots[of][r]);
        }
        vec4 scaled = scales[0] * vec4(dots[0]);
        if (HALVES) scaled += scales[PARTS - 1] * vec4(dots[PARTS - 1]);
        sums[m] += uintBitsToFloat(factors[0][m % 4]) * scaled;
        [[unroll]] for (uint s = 1; s < N_FACTORS; s++)
            sums[m] += uintBitsToFloat(factors[s][m % 4]) * scales[N_SCALES - N_FACTORS + s];
    }
}

void load_step(uint block)
{
    uint n_blocks = p.end_col / 32, mine = block + loaded_block, there = min(mine, n_blocks - 1);
    load_weights(there, loaded_block);
    load_activations(there, loaded_block, mine < n_blocks);
}

void add_step()
{
    [[dont_unroll]] for (uint b = 0; b < BLOCKS; b++) add_block(my_row + b * W_BLOCK, my_token + b * X_BLOCK);
}

float sum_scale(uint to) { return 1.0; }

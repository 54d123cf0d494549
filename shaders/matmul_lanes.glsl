/* Tiles of a product (see matmul.glsl) whose sums each invocation has for itself: those of 4 rows by TOKENS_EACH
 * tokens, all as far from each other, so that neighbouring invocations read neighbouring words. Each invocation
 * decodes the same block of each step, of one row, and puts it straight into shared memory, as sums leave no registers
 * for more.
 * Kernels define BLOCKS, of 32 columns in a step, at most workgroup size / TILE_ROWS, before, and
 *   find_rows(first_row, first_token)   where what this invocation loads begins
 *   sum_scale(to)                       what sums for row `to` of y are to be multiplied by
 * after it. The workgroup size is a multiple of 64. */
layout(constant_id = 1) const uint TILE_TOKENS = 64;
#define TILE_ROWS PD_MATMUL_ROWS
#define STEP (32 * BLOCKS)
#define GRAIN 32
#define AHEAD false
#define X_ROWS TILE_TOKENS
#include "matmul.glsl"

#define ROWS_EACH 4
const uint ROW_STEP = TILE_ROWS / ROWS_EACH, TOKEN_STEP = gl_WorkGroupSize.x / ROW_STEP;
const uint TOKENS_EACH = TILE_TOKENS / TOKEN_STEP;

vec4 sums[TOKENS_EACH];    /* [token][row] */
uint my_row, my_token;     /* the first of them, in the tile */
uint loaded_row, loaded_block;   /* what this invocation loads of a step; the row may be past the tile's */

void find_rows(uint first_row, uint first_token);
float sum_scale(uint to);

void begin_tile(uint first_row, uint first_token)
{
    my_row = gl_LocalInvocationID.x % ROW_STEP;
    my_token = gl_LocalInvocationID.x / ROW_STEP;
    loaded_row = gl_LocalInvocationID.x / BLOCKS;
    loaded_block = gl_LocalInvocationID.x % BLOCKS;
    find_x_rows(first_token);
    find_rows(first_row, first_token);
    [[unroll]] for (uint m = 0; m < TOKENS_EACH; m++) sums[m] = vec4(0);
}

void store_step() {}

void write_tile(uint first_row, uint first_token)
{
    [[unroll]] for (uint m = 0; m < TOKENS_EACH; m++) {
        uint token = first_token + my_token + m * TOKEN_STEP;
        if (token >= n_tokens) continue;
        uint to = y_row(token);
        float scale = sum_scale(to);
        [[unroll]] for (uint r = 0; r < ROWS_EACH; r++)
            write_sum(to, first_row + my_row + r * ROW_STEP, sums[m][r] * scale);
    }
}

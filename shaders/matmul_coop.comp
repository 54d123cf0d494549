#version 460
/* A matrix times many vectors (see matmul.glsl) by cooperative matrices, where the GPU has units for them. x comes
 * packed (pack_f16.comp): fp16 with a scale for each row; weights are rounded to fp16, sums are fp32. Each subgroup
 * multiplies its part of the tile. An invocation loads of the same rows in every step. Needs subgroups of SUBGROUP
 * invocations, all of them whole. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(constant_id = 1) const uint SUBGROUP = 32;
layout(constant_id = 2) const uint TILE_ROWS = 64;
layout(constant_id = 3) const uint TILE_TOKENS = 64;
layout(constant_id = 4) const uint STEP = 32;        /* columns; a multiple of 32 */
layout(constant_id = 5) const uint PART_ROWS = 32;   /* of a subgroup */
layout(constant_id = 6) const uint PART_TOKENS = 32;
layout(constant_id = 7) const uint M = 16;           /* of a matrix: rows, tokens, columns */
layout(constant_id = 8) const uint N = 16;
layout(constant_id = 9) const uint K = 16;
layout(constant_id = PD_ALIGNED_ID) const uint ALIGNED = 0;
#define GRAIN 1
const bool AHEAD = SUBGROUP >= 32;   /* Intel's registers have no room */
#include "coop.glsl"
#include "matmul.glsl"
#include "weights_fp16.glsl"

const uint STRIDE = STEP / 8 + 1;   /* uvec4s of 8 fp16; the one more keeps rows from falling into the same banks */
const uint PARTS_M = PART_ROWS / M;
const uint PARTS_N = PART_TOKENS / N;
const uint PIECES = STEP / PIECE;   /* of a row of weights in a step */
const uint EIGHTS = STEP / 8;       /* of a row of activations */
const uint N_W = (TILE_ROWS * PIECES + gl_WorkGroupSize.x - 1) / gl_WorkGroupSize.x;   /* of an invocation */
const uint N_X = (TILE_TOKENS * EIGHTS + gl_WorkGroupSize.x - 1) / gl_WorkGroupSize.x;

const uint SUMS_SIZE = gl_WorkGroupSize.x / SUBGROUP * M * N / 4;   /* of a matrix of sums for each subgroup */
/* [row][column / 8]; then sums */
shared uvec4 tile_w[SUMS_SIZE > TILE_ROWS * STRIDE ? SUMS_SIZE : TILE_ROWS * STRIDE];
shared uvec4 tile_x[TILE_TOKENS * STRIDE];   /* [token][column / 8] */

uvec2 w_rows[N_W], x_rows[N_X];   /* addresses */
piece w_next[N_W];
uvec4 x_next[N_X];

SUMS sums[PARTS_M * PARTS_N];

uint part_row, part_token;   /* where in the tile the subgroup's part begins */

void begin_tile(uint first_row, uint first_token)
{
    part_row = gl_SubgroupID % (TILE_ROWS / PART_ROWS) * PART_ROWS;
    part_token = gl_SubgroupID / (TILE_ROWS / PART_ROWS) * PART_TOKENS;
    [[unroll]] for (uint k = 0; k < N_W; k++) {
        uint r = (gl_LocalInvocationID.x + k * gl_WorkGroupSize.x) / PIECES;
        w_rows[k] = w_row_at(first_row + r);
    }
    [[unroll]] for (uint k = 0; k < N_X; k++) {
        uint i = gl_LocalInvocationID.x + k * gl_WorkGroupSize.x;
        x_rows[k] = address_of(address_of(uvec2(p.x), x_row(first_token + i / EIGHTS), 4 * p.x_stride), i % EIGHTS, 16);
    }
    [[unroll]] for (uint i = 0; i < PARTS_M * PARTS_N; i++) {
        sums[i] = SUMS(0.0);
        if (!AHEAD || ALIGNED != 0) sums[i] = coopMatMulAdd(A_MATRIX(0.0), B_MATRIX(0.0), sums[i]);   /* see add_step */
    }
}

/* Packed rows are padded with zeros to PD_PACK_PAD columns. */
void load_step(uint col)
{
    [[unroll]] for (uint k = 0; k < N_W; k++)
        w_next[k] = load_piece(w_rows[k], col / PIECE, gl_LocalInvocationID.x % PIECES, p.n_cols);
    [[unroll]] for (uint k = 0; k < N_X; k++) x_next[k] = pd_uvec4s(x_rows[k]).at[col / 8];
}

void store_step()
{
    [[unroll]] for (uint k = 0; k < N_W; k++) {
        uint i = gl_LocalInvocationID.x + k * gl_WorkGroupSize.x, at = i / PIECES * STRIDE;
        if (TILE_ROWS * PIECES % gl_WorkGroupSize.x != 0 && i >= TILE_ROWS * PIECES) break;
        [[unroll]] for (uint j = 0; j < PIECE / 8; j++) {
            store(tile_w[at + place_of_eight(i % PIECES, j)], eight_of_piece(w_next[k], i % PIECES, j), NON_PRIVATE);
        }
    }
    [[unroll]] for (uint k = 0; k < N_X; k++) {
        uint i = gl_LocalInvocationID.x + k * gl_WorkGroupSize.x;
        if (TILE_TOKENS * EIGHTS % gl_WorkGroupSize.x != 0 && i >= TILE_TOKENS * EIGHTS) break;
        store(tile_x[i / EIGHTS * STRIDE + i % EIGHTS], x_next[k], NON_PRIVATE);
    }
}

void add_products(uint k)
{
    A_MATRIX w[PARTS_M];
    [[unroll]] for (uint m = 0; m < PARTS_M; m++)
        w[m] = load_a(tile_w[(part_row + m * M) * STRIDE + k / 8], ROW_MAJOR, STRIDE,
                      NON_PRIVATE);
    [[unroll]] for (uint n = 0; n < PARTS_N; n++) {
        B_MATRIX x = load_b(tile_x[(part_token + n * N) * STRIDE + k / 8], COLUMN_MAJOR,
                            STRIDE, NON_PRIVATE);
        [[unroll]] for (uint m = 0; m < PARTS_M; m++)
            sums[n * PARTS_M + m] = coopMatMulAdd(w[m], x, sums[n * PARTS_M + m]);
    }
}

/* What Mesa's compiler for Intel carries around a loop has registers of its own for all of the loop, beside those of
 * what it becomes, unless that is made once in the loop and by the same kind of instruction as before the loop: then
 * both are one. So sums are products to begin with, and the loop is not unrolled. Where registers are to be aligned,
 * sums that begin as zeros are copied to such, and back, in every step. */
void add_step()
{
    if (AHEAD) [[unroll]] for (uint k = 0; k < STEP; k += K) add_products(k);
    else [[dont_unroll]] for (uint k = 0; k < STEP; k += K) add_products(k);
}

/* To four rows from `row` on, which is a multiple of 4: at once where they lie so and nothing is done to sums. */
void write_four(uint to, uint row, vec4 sum)
{
    uint at = to * p.y_stride + row;
    if (!BIAS && p.softcap == 0 && row + 3 < p.n_rows && (uvec2(p.y).x / 4 | p.y_stride) % 4 == 0)
        pd_vec4s_written(uvec2(p.y)).at[at / 4] = sum;
    else [[unroll]] for (uint j = 0; j < 4; j++) write_sum(to, row + j, sum[j]);
}

/* By way of shared memory, [subgroup][token][row], as the edges of y may lie anywhere in a matrix. A loop that cannot
 * be unrolled would keep the loops over sums from being unrolled too, and then Mesa keeps these in memory on Intel. */
void write_sums(SUMS s, uint first_row, uint first_token)
{
    const uint n_quads = M * N / 4;
    uint mine = gl_SubgroupID * n_quads;
    store_sums(tile_w[mine], s, COLUMN_MAJOR, M / 4, NON_PRIVATE);
    BARRIER(gl_ScopeSubgroup);
    [[unroll]] for (uint k = 0; k < (n_quads + SUBGROUP - 1) / SUBGROUP; k++) {
        uint i = gl_SubgroupInvocationID + k * SUBGROUP;
        uint row = first_row + i % (M / 4) * 4, token = first_token + i / (M / 4);
        if (i >= n_quads || token >= n_tokens) continue;
        uint to = y_row(token);
        vec4 y = uintBitsToFloat(load(tile_w[mine + i], NON_PRIVATE));
        write_four(to, row, y * (scale_of_packed(to) / WEIGHT_SCALE));
    }
    BARRIER(gl_ScopeSubgroup);
}

void write_tile(uint first_row, uint first_token)
{
    first_row += part_row;
    first_token += part_token;
    [[unroll]] for (uint n = 0; n < PARTS_N; n++)
        [[unroll]] for (uint m = 0; m < PARTS_M; m++)
            write_sums(sums[n * PARTS_M + m], first_row + m * M, first_token + n * N);
}

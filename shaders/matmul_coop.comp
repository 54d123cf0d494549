#version 460
/* y[m][r] = softcap(w[r] . x[m]): matmul.comp by cooperative matrices. x comes packed (pack_f16.comp): fp16 with a
 * scale for each row; weights are rounded to fp16, sums are fp32. A workgroup makes a tile of TILE_ROWS by TILE_TOKENS:
 * per STEP columns it decodes each weight once into shared memory, while the subgroups, each with its part of the tile,
 * multiply what was put there before (two buffers, one barrier a step). Needs subgroups of SUBGROUP invocations, all of
 * them whole.
 * Grid: [rows / TILE_ROWS, tokens / TILE_TOKENS, slots of experts]. */
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "common.glsl"
#include "weights.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint SUBGROUP = 32;
layout(constant_id = 2) const uint TILE_ROWS = 64;
layout(constant_id = 3) const uint TILE_TOKENS = 64;
layout(constant_id = 4) const uint STEP = 32;        /* columns; a multiple of 32 */
layout(constant_id = 5) const uint PART_ROWS = 32;   /* of a subgroup */
layout(constant_id = 6) const uint PART_TOKENS = 32;
layout(constant_id = 7) const uint M = 16;           /* of a matrix: rows, tokens, columns */
layout(constant_id = 8) const uint N = 16;
layout(constant_id = 9) const uint K = 16;
layout(push_constant) uniform Push { pd_matmul_push p; };
#include "bias.glsl"
#define X_ROWS TILE_TOKENS
#include "experts.glsl"

/* Weights are made larger on the way to fp16: those from 1e-6 to 1023 keep its 11 bits. */
#define WEIGHT_SCALE 64.0

const uint STRIDE = (STEP + 8) / 4;   /* vec4s; the 8 keep rows from falling into the same banks */
const uint PARTS_M = PART_ROWS / M;
const uint PARTS_N = PART_TOKENS / N;

shared f16vec4 tile_w[2 * TILE_ROWS * STRIDE];      /* [buffer][row][column] */
/* [buffer][token][column]; nothing follows the last row, so that all is 48 KiB at most where EXPERTS is false */
shared f16vec4 tile_x[2 * TILE_TOKENS * STRIDE - 2];
shared float stage[gl_WorkGroupSize.x / SUBGROUP * M * N];   /* [subgroup][token][row] */

#define SUMS coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator>
SUMS sums[PARTS_M * PARTS_N];

void load_weights(uint b, uint first_row, uint first_col)
{
    const uint n_units = STEP / UNIT;
    for (uint i = gl_LocalInvocationID.x; i < TILE_ROWS * n_units; i += gl_WorkGroupSize.x) {
        uint r = i / n_units, u = i % n_units, at = (b * TILE_ROWS + r) * STRIDE + u * (UNIT / 4);
        [[unroll]] for (uint k = 0; k < UNIT / 4; k++) unit_w[k] = vec4(0);
        if (first_col + u * UNIT < p.n_cols)
            load_unit(row_at(p.w, row_of_expert(min(first_row + r, p.n_rows - 1)), p.row_size), first_col / UNIT + u,
                      p.n_cols);
        [[unroll]] for (uint k = 0; k < UNIT / 4; k++) tile_w[at + k] = f16vec4(unit_w[k] * WEIGHT_SCALE);
    }
}

/* Packed rows are padded with zeros to PD_PACK_PAD columns. */
void load_activations(uint b, uint first_token, uint first_col)
{
    const uint n_eights = STEP / 8;
    pd_uvec4s x = pd_uvec4s(uvec2(p.x));
    for (uint i = gl_LocalInvocationID.x; i < TILE_TOKENS * n_eights; i += gl_WorkGroupSize.x) {
        uint t = i / n_eights, e = i % n_eights, at = (b * TILE_TOKENS + t) * STRIDE + 2 * e;
        uvec4 eight = x.at[tile_x_row(first_token, t) * (p.x_stride / 4) + first_col / 8 + e];
        tile_x[at] = f16vec4(unpackFloat2x16(eight.x), unpackFloat2x16(eight.y));
        tile_x[at + 1] = f16vec4(unpackFloat2x16(eight.z), unpackFloat2x16(eight.w));
    }
}

void load_tiles(uint b, uint first_row, uint first_token, uint first_col)
{
    load_weights(b, first_row, first_col);
    load_activations(b, first_token, first_col);
}

void add_products(uint b, uint part_row, uint part_token)
{
    [[unroll]] for (uint k = 0; k < STEP; k += K) {
        coopmat<float16_t, gl_ScopeSubgroup, M, K, gl_MatrixUseA> w[PARTS_M];
        [[unroll]] for (uint m = 0; m < PARTS_M; m++)
            coopMatLoad(w[m], tile_w, (b * TILE_ROWS + part_row + m * M) * STRIDE + k / 4, STRIDE,
                        gl_CooperativeMatrixLayoutRowMajor);
        [[unroll]] for (uint n = 0; n < PARTS_N; n++) {
            coopmat<float16_t, gl_ScopeSubgroup, K, N, gl_MatrixUseB> x;
            coopMatLoad(x, tile_x, (b * TILE_TOKENS + part_token + n * N) * STRIDE + k / 4, STRIDE,
                        gl_CooperativeMatrixLayoutColumnMajor);
            [[unroll]] for (uint m = 0; m < PARTS_M; m++)
                sums[n * PARTS_M + m] = coopMatMulAdd(w[m], x, sums[n * PARTS_M + m]);
        }
    }
}

/* By way of shared memory, as the edges of y may lie anywhere in a matrix. A loop that cannot be unrolled would keep
 * the loops over sums from being unrolled too, and then Mesa keeps these in memory on Intel. */
void write_sums(SUMS s, uint first_row, uint first_token)
{
    uint mine = gl_SubgroupID * M * N;
    coopMatStore(s, stage, mine, M, gl_CooperativeMatrixLayoutColumnMajor);
    subgroupBarrier();
    [[unroll]] for (uint k = 0; k < (M * N + SUBGROUP - 1) / SUBGROUP; k++) {
        uint i = gl_SubgroupInvocationID + k * SUBGROUP, row = first_row + i % M, token = first_token + i / M;
        if (i >= M * N || row >= p.n_rows || token >= n_tokens) continue;
        uint to = y_row(token);
        float scale = pd_floats(uvec2(p.x)).at[(x_row_for(to) + 1) * p.x_stride - PD_PACK_TAIL] / WEIGHT_SCALE;
        p.y.at[to * p.y_stride + row] = softcap_of(with_bias(stage[mine + i] * scale, row), p.softcap);
    }
    subgroupBarrier();
}

void main()
{
    uint first_row = gl_WorkGroupID.x * TILE_ROWS, first_token = gl_WorkGroupID.y * TILE_TOKENS;
    uint part_row = gl_SubgroupID % (TILE_ROWS / PART_ROWS) * PART_ROWS;
    uint part_token = gl_SubgroupID / (TILE_ROWS / PART_ROWS) * PART_TOKENS;
    if (!find_expert(gl_WorkGroupID.z, first_token)) return;
    find_x_rows(first_token);
    [[unroll]] for (uint i = 0; i < PARTS_M * PARTS_N; i++) sums[i] = SUMS(0.0);
    load_tiles(0, first_row, first_token, 0);
    barrier();
    for (uint col = 0, b = 0; col < p.n_cols; col += STEP, b ^= 1) {
        if (col + STEP < p.n_cols) load_tiles(b ^ 1, first_row, first_token, col + STEP);
        add_products(b, part_row, part_token);
        barrier();
    }
    [[unroll]] for (uint n = 0; n < PARTS_N; n++)
        [[unroll]] for (uint m = 0; m < PARTS_M; m++)
            write_sums(sums[n * PARTS_M + m], first_row + part_row + m * M, first_token + part_token + n * N);
}

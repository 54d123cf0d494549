#version 460
/* y[m][r] = softcap(w[r] . x[m]): a matrix times many vectors. A workgroup of 64 makes a tile of 32 rows by 32 tokens;
 * per 32 columns it decodes the weights and copies the activations to shared memory, and each invocation adds to 4 x 4
 * sums in fp32. Grid: [rows / 32, tokens / 32, slots of experts]. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "weights.glsl"

#define TILE PD_MATMUL_TILE
#define STEP 32

layout(local_size_x = 64) in;
layout(push_constant) uniform Push { pd_matmul_push p; };
#include "bias.glsl"
#include "experts.glsl"

shared float tile_w[STEP][TILE];   /* [column][row] */
shared float tile_x[STEP][TILE];   /* [column][token] */

void load_tiles(uint first_row, uint first_token, uint first_col)
{
    for (uint i = gl_LocalInvocationID.x; i < TILE * STEP / 4; i += 64) {
        uint r = i / (STEP / 4), q = i % (STEP / 4);
        uint row = row_of_expert(min(first_row + r, p.n_rows - 1)), token = x_row(first_token + r);
        vec4 w = vec4(0);
        if (first_col + q * 4 < p.n_cols) w = load_quad(row_at(p.w, row, p.row_size), first_col / 4 + q, p.n_cols);
        vec4 x = p.x.at[(token * p.x_stride + first_col) / 4 + q];   /* rows are padded with zeros to PD_PAD */
        for (uint k = 0; k < 4; k++) {
            tile_w[q * 4 + k][r] = w[k];
            tile_x[q * 4 + k][r] = x[k];
        }
    }
}

void main()
{
    uint first_row = gl_WorkGroupID.x * TILE, first_token = gl_WorkGroupID.y * TILE;
    if (!find_expert(gl_WorkGroupID.z, first_token)) return;
    uint my_row = gl_LocalInvocationID.x % 8 * 4, my_token = gl_LocalInvocationID.x / 8 * 4;
    vec4 acc[4] = vec4[4](vec4(0), vec4(0), vec4(0), vec4(0));   /* [token] of four rows */
    for (uint first_col = 0; first_col < p.n_cols; first_col += STEP) {
        load_tiles(first_row, first_token, first_col);
        barrier();
        for (uint c = 0; c < STEP; c++) {
            vec4 w = vec4(tile_w[c][my_row], tile_w[c][my_row + 1], tile_w[c][my_row + 2], tile_w[c][my_row + 3]);
            vec4 x = vec4(tile_x[c][my_token], tile_x[c][my_token + 1], tile_x[c][my_token + 2],
                          tile_x[c][my_token + 3]);
            [[unroll]] for (uint m = 0; m < 4; m++) acc[m] += w * x[m];
        }
        barrier();
    }
    [[unroll]] for (uint m = 0; m < 4; m++) {
        uint token = first_token + my_token + m;
        [[unroll]] for (uint r = 0; r < 4; r++) {
            uint row = first_row + my_row + r;
            if (token < n_tokens && row < p.n_rows)
                p.y.at[y_row(token) * p.y_stride + row] = softcap_of(with_bias(acc[m][r], row), p.softcap);
        }
    }
}

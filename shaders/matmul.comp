#version 460
/* y[m][r] = softcap(w[r] . x[m]): a matrix times many vectors. A workgroup of 64 makes a tile of 32 rows by 32 tokens; per
 * 32 columns it decodes the weights and copies the activations to shared memory, and each invocation adds to 4 x 4 sums
 * in fp32. Grid: [rows / 32, tokens / 32]. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "weights.glsl"

#define TILE PD_MATMUL_TILE
#define STEP 32

layout(local_size_x = 64) in;
layout(push_constant) uniform Push { pd_matmul_push p; };

shared vec4 tile_w[STEP][TILE / 4];   /* [column][row]: four rows of one column are one load */
shared vec4 tile_x[STEP][TILE / 4];   /* [column][token] */

void load_tiles(uint first_row, uint first_token, uint first_col)
{
    uint me = gl_LocalInvocationID.x;
    for (uint i = me; i < TILE * (STEP / UNIT); i += 64) {
        uint r = i % TILE, u = i / TILE;
        uint row = min(first_row + r, p.n_rows - 1);
        bool inside = first_col + u * UNIT < p.n_cols;
        float scale = load_unit(address_of(p.w, row, p.row_size), inside ? first_col / UNIT + u : 0, p.n_cols);
        [[unroll]] for (uint c = 0; c < UNIT; c++)
            tile_w[u * UNIT + c][r / 4][r % 4] = inside ? unit_w[c / 4][c % 4] * scale : 0.0;
    }
    for (uint i = me; i < TILE * (STEP / 4); i += 64) {
        uint m = i % TILE, c = i / TILE;
        uint token = min(first_token + m, p.n_tokens - 1);
        vec4 x = p.x.at[(token * p.x_stride + first_col) / 4 + c];   /* rows are padded with zeros to PD_PAD */
        [[unroll]] for (uint k = 0; k < 4; k++) tile_x[c * 4 + k][m / 4][m % 4] = x[k];
    }
}

void main()
{
    uint first_row = gl_WorkGroupID.x * TILE, first_token = gl_WorkGroupID.y * TILE;
    uint my_row = gl_LocalInvocationID.x % 8, my_token = gl_LocalInvocationID.x / 8;
    vec4 acc[4] = vec4[4](vec4(0), vec4(0), vec4(0), vec4(0));   /* [token] of four rows */
    for (uint first_col = 0; first_col < p.n_cols; first_col += STEP) {
        load_tiles(first_row, first_token, first_col);
        barrier();
        for (uint c = 0; c < STEP; c++) {
            vec4 w = tile_w[c][my_row], x = tile_x[c][my_token];
            [[unroll]] for (uint m = 0; m < 4; m++) acc[m] += w * x[m];
        }
        barrier();
    }
    [[unroll]] for (uint m = 0; m < 4; m++) {
        uint token = first_token + my_token * 4 + m;
        [[unroll]] for (uint r = 0; r < 4; r++) {
            uint row = first_row + my_row * 4 + r;
            if (token < p.n_tokens && row < p.n_rows)
                p.y.at[token * p.y_stride + row] = softcap_of(acc[m][r], p.softcap);
        }
    }
}

#version 460
/* y[m][r] = softcap(w[r] . x[m]) for one or a few tokens. Each subgroup takes ROWS rows and COLS tokens at a time: its lanes
 * stride over the units of a row, a decoded weight serves COLS tokens and a load of x serves ROWS rows. Subgroups stride
 * over the rows, so any grid is right whatever subgroup size the driver picks. x is read in fp32 and sums are fp32.
 * Grid: [any, tokens / COLS]. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "weights.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint ROWS = 4;
layout(constant_id = 2) const uint COLS = 1;
layout(push_constant) uniform Push { pd_matmul_push p; };

float acc[ROWS * COLS];

/* Adds the products of unit u. Past the last row and token the last one is done again, and not written. */
void add_unit(uint first_row, uint first_token, uint u)
{
    vec4 x[COLS * UNIT / 4];
    [[unroll]] for (uint c = 0; c < COLS; c++) {
        uint at = min(first_token + c, p.n_tokens - 1) * (p.x_stride / 4) + u * (UNIT / 4);
        [[unroll]] for (uint i = 0; i < UNIT / 4; i++) x[c * (UNIT / 4) + i] = p.x.at[at + i];
    }
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        float scale = load_unit(address_of(p.w, min(first_row + r, p.n_rows - 1), p.row_size), u, p.n_cols);
        [[unroll]] for (uint c = 0; c < COLS; c++) {
            float sum = 0.0;
            [[unroll]] for (uint i = 0; i < UNIT / 4; i++) sum += dot(unit_w[i], x[c * (UNIT / 4) + i]);
            acc[r * COLS + c] += sum * scale;
        }
    }
}

void main()
{
    uint n_units = (p.n_cols + UNIT - 1) / UNIT, first_token = gl_WorkGroupID.y * COLS;
    uint stride = gl_NumWorkGroups.x * gl_NumSubgroups * ROWS;
    for (uint first = (gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID) * ROWS; first < p.n_rows; first += stride) {
        [[unroll]] for (uint i = 0; i < ROWS * COLS; i++) acc[i] = 0.0;
        for (uint u = gl_SubgroupInvocationID; u < n_units; u += gl_SubgroupSize) add_unit(first, first_token, u);
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            [[unroll]] for (uint c = 0; c < COLS; c++) {
                float y = subgroupAdd(acc[r * COLS + c]);
                if (subgroupElect() && first + r < p.n_rows && first_token + c < p.n_tokens)
                    p.y.at[(first_token + c) * p.y_stride + first + r] = softcap_of(y, p.softcap);
            }
        }
    }
}

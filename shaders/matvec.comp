#version 460
/* y[r] = softcap(w[r] . x): a matrix times one vector. Each subgroup takes ROWS rows at a time, its lanes stride over the
 * units of a row, and each load of x serves ROWS rows. Subgroups stride over the rows, so any grid is right whatever
 * subgroup size the driver picks. x is read in fp32 and sums are fp32. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "weights.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint ROWS = 4;
layout(push_constant) uniform Push { pd_matmul_push p; };

void main()
{
    uint n_units = (p.n_cols + UNIT - 1) / UNIT;
    uint stride = gl_NumWorkGroups.x * gl_NumSubgroups * ROWS;
    for (uint first = (gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID) * ROWS; first < p.n_rows; first += stride) {
        uvec2 row[ROWS];
        float acc[ROWS];
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            /* Past the end the last row is done again, and not written. */
            row[r] = address_of(p.w, min(first + r, p.n_rows - 1), p.row_size);
            acc[r] = 0.0;
        }
        for (uint u = gl_SubgroupInvocationID; u < n_units; u += gl_SubgroupSize) {
            vec4 x[UNIT / 4];
            [[unroll]] for (uint i = 0; i < UNIT / 4; i++) x[i] = p.x.at[u * (UNIT / 4) + i];
            [[unroll]] for (uint r = 0; r < ROWS; r++) {
                float scale = load_unit(row[r], u, p.n_cols);
                float sum = 0.0;
                [[unroll]] for (uint i = 0; i < UNIT / 4; i++) sum += dot(unit_w[i], x[i]);
                acc[r] += sum * scale;
            }
        }
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            float y = subgroupAdd(acc[r]);
            if (subgroupElect() && first + r < p.n_rows) p.y.at[first + r] = softcap_of(y, p.softcap);
        }
    }
}

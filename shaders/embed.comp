#version 460
/* x[m] = w[tokens[m]] * scale: one workgroup per token looks up and decodes a row of the embedding matrix. The matrix may
 * lie in several slices, as a device limits the size of one allocation. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "weights.glsl"

layout(local_size_x = 64) in;
layout(push_constant) uniform Push { pd_embed_push p; };

void main()
{
    uint m = gl_WorkGroupID.y;
    uint token = p.tokens.at[m];
    uvec2 row = address_of(p.slices.at[token / p.rows_per_slice], token % p.rows_per_slice, p.row_size);
    for (uint u = gl_LocalInvocationID.x; u * UNIT < p.n_cols; u += gl_WorkGroupSize.x) {
        float scale = load_unit(row, u, p.n_cols) * p.scale;
        [[unroll]] for (uint i = 0; i < UNIT; i++)
            if (u * UNIT + i < p.n_cols) p.x.at[m * p.x_stride + u * UNIT + i] = unit_w[i / 4][i % 4] * scale;
    }
}

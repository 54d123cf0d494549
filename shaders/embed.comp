#version 460
/* x[m] = w[tokens[m]] * scale, or embedded[m]: one workgroup per token looks up and decodes a row of the embedding
 * matrix, or copies a row that stands for a part of an image. The matrix may lie in several slices, as a device limits
 * the size of one allocation. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
#include "weights.glsl"

layout(push_constant) uniform Push { pd_embed_push p; };

void main()
{
    prepare_weights();
    uint m = gl_WorkGroupID.y;
    uint token = p.tokens.at[m];
    if (token == PD_EMBEDDED && uvec2(p.embedded) != uvec2(0)) {
        for (uint i = gl_LocalInvocationID.x; i < p.n_cols; i += gl_WorkGroupSize.x)
            p.x.at[m * p.x_stride + i] = p.embedded.at[m * p.x_stride + i];
        return;
    }
    if (token == PD_EMBEDDED) token = 0;   /* a table without such rows: padding stands in for them */
    uvec2 row = row_at(p.slices.at[token / p.rows_per_slice], token % p.rows_per_slice, p.row_size);
    for (uint q = gl_LocalInvocationID.x; q * 4 < p.n_cols; q += gl_WorkGroupSize.x) {
        vec4 w = load_quad(row, q, p.n_cols) * p.scale;
        for (uint i = 0; i < 4; i++)
            if (q * 4 + i < p.n_cols) p.x.at[m * p.x_stride + q * 4 + i] = w[i];
    }
}

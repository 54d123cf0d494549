#version 460
/* y[m][r] = softcap(sum of split_sums[s][m][r] over s, in this order, + bias[r]): what the splits of a product found,
 * dispatches of tiles that each sum some of the columns, so that few tiles keep a GPU busy.
 * Grid: [blocks of 64 rows, n_tokens]. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 64) in;
layout(push_constant) uniform Push { pd_matmul_reduce_push p; };
#include "bias.glsl"

void main()
{
    uint row = gl_GlobalInvocationID.x, token = gl_WorkGroupID.y;
    if (row >= p.n_rows) return;
    float sum = 0.0;
    for (uint s = 0; s < p.n_splits; s++) sum += p.split_sums.at[(s * p.n_tokens + token) * p.n_rows + row];
    p.y.at[token * p.y_stride + row] = softcap_of(with_bias(sum, row), p.softcap);
}

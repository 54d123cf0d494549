#version 460
/* sums[i] += sum over m of x[m][i]^2: how much the columns of a matrix that multiplies x count; sums[n] += rows. Each
 * expert has sums of its own, of the rows that it multiplies. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { pd_squares_push p; };
#include "experts.glsl"

void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i > p.n || !find_expert(gl_WorkGroupID.y, 0)) return;
    float sum = 0.0;
    for (uint m = 0; m < n_tokens; m++) {
        float x = i < p.n ? p.x.at[x_row(m) * p.x_stride + i] : 1.0;
        sum += x * x;
    }
    p.sums.at[row_of_expert(0) * (p.n + 1) + i] += sum;
}

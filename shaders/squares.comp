#version 460
/* sums[i] += sum over m of x[m][i]^2: how much the columns of a matrix that multiplies x count. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { pd_squares_push p; };

void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i >= p.n) return;
    float sum = 0.0;
    for (uint m = 0; m < p.n_rows; m++) {
        float x = p.x.at[m * p.x_stride + i];
        sum += x * x;
    }
    p.sums.at[i] += sum;
}

#version 460
/* y = clamp(x, low, high), before and after the matrices of towers that were trained with such limits. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { pd_clamp_push p; };

void main()
{
    uint i = gl_GlobalInvocationID.x, m = gl_WorkGroupID.y;
    if (i >= p.n) return;
    float x = p.x.at[m * p.x_stride + i];
    p.y.at[m * p.y_stride + i] = is_finite(x) ? clamp(x, p.low, p.high) : NOT_A_NUMBER;
}

#version 460
/* y = rms(y) * w * silu(z), rms(y) = y / sqrt(mean(y^2) + eps), of each head of n columns; GATE_FIRST: y =
 * rms(y * silu(z)) * w, of each group of heads, which has its own part of w. Grid: [heads, rows]. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "act.glsl"
#include "reduce.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool GATE_FIRST = false;
layout(push_constant) uniform Push { pd_delta_norm_push p; };

void main()
{
    uint y = gl_WorkGroupID.y * p.y_stride + gl_WorkGroupID.x * p.n, z = gl_WorkGroupID.y * p.z_stride
        + gl_WorkGroupID.x * p.n;
    uint w = GATE_FIRST ? gl_WorkGroupID.x * p.n : 0;
    float squares = 0.0;
    for (uint i = gl_LocalInvocationID.x; i < p.n; i += gl_WorkGroupSize.x) {
        if (GATE_FIRST) p.y.at[y + i] *= silu(p.z.at[z + i]);
        squares += p.y.at[y + i] * p.y.at[y + i];
    }
    float scale = rms_scale(workgroup_sum(squares) / float(p.n) + p.eps);
    for (uint i = gl_LocalInvocationID.x; i < p.n; i += gl_WorkGroupSize.x)
        p.y.at[y + i] = p.y.at[y + i] * scale * p.w.at[w + i] * (GATE_FIRST ? 1.0 : silu(p.z.at[z + i]));
}

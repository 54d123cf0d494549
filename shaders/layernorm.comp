#version 460
/* LayerNorm of vision towers: y = (x - mean) / sqrt(mean((x - mean)^2) + eps) * w + b, in fp32. One workgroup per row.
 * Deviations are summed in a pass of their own, as the difference of two large sums would lose them. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "reduce.glsl"

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { pd_layernorm_push p; };

void main()
{
    uint x = gl_WorkGroupID.x * p.x_stride, y = gl_WorkGroupID.x * p.y_stride;
    uint me = gl_LocalInvocationID.x, step = gl_WorkGroupSize.x;
    float sum = 0.0, squares = 0.0;
    for (uint i = me; i < p.n; i += step) sum += p.x.at[x + i];
    float mean = workgroup_sum(sum) / float(p.n);
    for (uint i = me; i < p.n; i += step) {
        float d = p.x.at[x + i] - mean;
        squares += d * d;
    }
    float scale = rms_scale(workgroup_sum(squares) / float(p.n) + p.eps);
    for (uint i = me; i < p.n; i += step)
        p.y.at[y + i] = (p.x.at[x + i] - mean) * scale * p.w.at[i] + p.b.at[i];
}

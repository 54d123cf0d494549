#version 460
/* x += POST ? rms(y) * w_post : y   (ADD);   normed = rms(x) * w   (OUT);   rms(v) = v / sqrt(mean(v^2) + eps), all in fp32.
 * Weights are final: Gemma's +1 is already in them. One workgroup per token. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "reduce.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool ADD = false;
layout(constant_id = 2) const bool POST = false;
layout(constant_id = 3) const bool OUT = true;
layout(push_constant) uniform Push { pd_rmsnorm_push p; };

float rms_scale(float sum_of_squares)
{
    return 1.0 / sqrt(sum_of_squares / float(p.n) + p.eps);
}

void main()
{
    uint base = gl_WorkGroupID.x * p.stride, me = gl_LocalInvocationID.x, step = gl_WorkGroupSize.x;
    if (ADD) {
        float scale = 1.0;
        if (POST) {
            float squares = 0.0;
            for (uint i = me; i < p.n; i += step) squares += p.y.at[base + i] * p.y.at[base + i];
            scale = rms_scale(workgroup_sum(squares));
        }
        for (uint i = me; i < p.n; i += step)
            p.x.at[base + i] += p.y.at[base + i] * (POST ? scale * p.w_post.at[i] : 1.0);
    }
    if (OUT) {   /* each invocation reads only what it wrote itself */
        float squares = 0.0;
        for (uint i = me; i < p.n; i += step) squares += p.x.at[base + i] * p.x.at[base + i];
        float scale = rms_scale(workgroup_sum(squares));
        for (uint i = me; i < p.n; i += step) p.normed.at[base + i] = p.x.at[base + i] * scale * p.w.at[i];
    }
}

#version 460
/* x = (x + (POST ? rms(y) * w_post : y)) * x_scale   (ADD);   normed = rms(x) * w   (OUT);
 *   rms(v) = v / sqrt(mean(v^2) + eps), all in fp32.
 * Weights are final: Gemma's +1 is already in them. One workgroup per token. n is a multiple of 4. The bits are those
 * of fused_norm.glsl. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x_id = 0) in;
#include "norm.glsl"   /* it reads the size above */
layout(constant_id = 1) const bool ADD = false;
layout(constant_id = 2) const bool POST = false;
layout(constant_id = 3) const bool OUT = true;
layout(push_constant) uniform Push { pd_rmsnorm_push p; };

void main()
{
    uint base = gl_WorkGroupID.x * p.stride / 4, me = gl_LocalInvocationID.x, step = gl_WorkGroupSize.x, n = p.n / 4,
        n_slots = n_norm_slots(p.n);
    float scale = 1.0;
    if (ADD && POST) {
        for (uint slot = me; slot < n_slots; slot += step) {
            float squares = 0.0;
            for (uint i = slot; i < n; i += n_slots) squares += dot(p.y.at[base + i], p.y.at[base + i]);
            norm_slots[slot] = squares;
        }
        scale = inverse_rms(p.n, p.eps);
    }
    for (uint slot = me; slot < n_slots; slot += step) {
        float squares = 0.0;
        for (uint i = slot; i < n; i += n_slots) {
            vec4 x = p.x.at[base + i];
            if (ADD) {
                if (POST) x = add_normed(x, p.y.at[base + i], scale, p.w_post.at[i], p.x_scale);
                else x = add_branch(x, p.y.at[base + i], p.x_scale);
                p.x.at[base + i] = x;
            }
            squares += dot(x, x);
        }
        norm_slots[slot] = squares;
    }
    if (!OUT) return;
    scale = inverse_rms(p.n, p.eps);
    for (uint slot = me; slot < n_slots; slot += step)   /* each invocation reads only what it wrote itself */
        for (uint i = slot; i < n; i += n_slots) p.normed.at[base + i] = norm_x(p.x.at[base + i], scale, p.w.at[i]);
}

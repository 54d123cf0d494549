#version 460
/* What the device can do, for benchmarks to be held against. Invocations stride over n uvec4s in steps of the whole
 * grid.
 *   MODE 0: reads them (the sum is kept, so that no load may be left out)   MODE 1: copies them
 *   MODE 2: n rounds of 64 fp32 multiply-adds per invocation in 16 independent chains */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint MODE = 0;
layout(push_constant) uniform Push { pd_measure_push p; };

void main()
{
    uint me = gl_GlobalInvocationID.x, stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    if (MODE == 2) {
        vec4 x[4];
        float scale = p.factor + float(me & 1u) * 1e-7;
        for (uint i = 0; i < 4; i++) x[i] = vec4(float(me), 1.0, 2.0, 3.0) + float(i);
        for (uint r = 0; r < p.n; r++)
            [[unroll]] for (uint k = 0; k < 4; k++)
                [[unroll]] for (uint i = 0; i < 4; i++) x[i] = x[i] * scale + p.factor;
        vec4 sum = x[0] + x[1] + x[2] + x[3];
        if (sum.x + sum.y + sum.z + sum.w == 12345.0) p.to.at[0] = uvec4(me);
    } else if (MODE == 1) {
        for (uint i = me; i < p.n; i += stride) p.to.at[i] = p.from.at[i];
    } else {
        uvec4 sum = uvec4(0);
        for (uint i = me; i < p.n; i += stride) sum += p.from.at[i];
        if (sum.x + sum.y + sum.z + sum.w == 0x9e3779b9u) p.to.at[0] = sum;
    }
}

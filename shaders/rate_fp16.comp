#version 460
/* What the device can do in fp16: n rounds of 64 multiply-adds of two numbers at a time per invocation, in 16
 * independent chains, which settle near factor. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "common.glsl"

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { pd_measure_push p; };

void main()
{
    f16vec2 x[16], add = f16vec2(0.5 * p.factor), scale = f16vec2(0.5 + 1e-3 * float(gl_LocalInvocationID.x & 1u));
    for (uint i = 0; i < 16; i++) x[i] = f16vec2(float(i), float(gl_LocalInvocationID.x));
    for (uint r = 0; r < p.n; r++)
        [[unroll]] for (uint k = 0; k < 4; k++)
            [[unroll]] for (uint i = 0; i < 16; i++) x[i] = x[i] * scale + add;
    f16vec2 sum = f16vec2(0);
    for (uint i = 0; i < 16; i++) sum += x[i];
    if (float(sum.x + sum.y) == 12345.0) p.to.at[0] = uvec4(gl_GlobalInvocationID.x);
}

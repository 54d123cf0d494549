#version 460
/* out = act(gate) * up. GELU: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), Gemma's tanh form. SILU: x / (1 + exp(-x)). */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool SILU = false;
layout(push_constant) uniform Push { pd_glu_push p; };

float gelu(float x)
{
    return 0.5 * x * (1.0 + tanh_exact(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

float silu(float x)
{
    return x / (1.0 + exp(-clamp(x, -80.0, 80.0)));
}

void main()
{
    uint i = gl_GlobalInvocationID.x, m = gl_WorkGroupID.y;
    if (i >= p.n) return;
    float gate = p.x.at[m * p.x_stride + i], up = p.x.at[m * p.x_stride + p.n + i];
    p.y.at[m * p.y_stride + i] = (SILU ? silu(gate) : gelu(gate)) * up;
}

#version 460
/* y = act(gate) * up, for matrices that matvec cannot do it for; or y = act(gate), where units have no gate. y may be
 * up. SIGMOID: 1 / (1 + exp(-x)), of gates of attention. GELU_ERF: x / 2 (1 + erf(x / sqrt(2))). */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "act.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint ACT = PD_GELU;
layout(constant_id = 2) const bool GATED = true;
layout(push_constant) uniform Push { pd_glu_push p; };

/* By Abramowitz and Stegun, 7.1.26: to 1.5e-7. */
float gelu_erf(float x)
{
    float a = min(abs(x) * 0.7071067811865476, 9.0), t = 1.0 / (1.0 + 0.3275911 * a);
    float sum = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
    return 0.5 * x * (1.0 + sign(x) * (1.0 - sum * exp(-a * a)));
}

float act(float gate, float up)
{
    if (ACT == PD_GELU_ERF) return gelu_erf(gate) * up;
    return ACT == PD_SIGMOID ? 1.0 / (1.0 + exp(-clamp(gate, -80.0, 80.0))) * up : gated(ACT, gate, up);
}

void main()
{
    uint i = gl_GlobalInvocationID.x, m = gl_WorkGroupID.y;
    if (i >= p.n) return;
    float gate = p.gate.at[m * p.gate_stride + i], up = GATED ? p.up.at[m * p.up_stride + i] : 1.0;
    p.y.at[m * p.y_stride + i] = act(gate, up);
}

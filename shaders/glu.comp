#version 460
/* y = act(gate) * up, for matrices that matvec cannot do it for; or y = act(gate), where units have no gate. y may be
 * up. SIGMOID: 1 / (1 + exp(-x)), of gates of attention. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "act.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint ACT = PD_GELU;
layout(constant_id = 2) const bool GATED = true;
layout(push_constant) uniform Push { pd_glu_push p; };

void main()
{
    uint i = gl_GlobalInvocationID.x, m = gl_WorkGroupID.y;
    if (i >= p.n) return;
    float gate = p.gate.at[m * p.gate_stride + i], up = GATED ? p.up.at[m * p.up_stride + i] : 1.0;
    float y = ACT == PD_SIGMOID ? 1.0 / (1.0 + exp(-clamp(gate, -80.0, 80.0))) * up : gated(ACT, gate, up);
    p.y.at[m * p.y_stride + i] = y;
}

#version 460
/* y = act(gate) * up, for matrices that matvec cannot do it for. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "act.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool SILU = false;
layout(push_constant) uniform Push { pd_glu_push p; };

void main()
{
    uint i = gl_GlobalInvocationID.x, m = gl_WorkGroupID.y;
    if (i >= p.n) return;
    float gate = p.gate.at[m * p.gate_stride + i], up = p.up.at[m * p.up_stride + i];
    p.y.at[m * p.y_stride + i] = (SILU ? silu(gate) : gelu(gate)) * up;
}

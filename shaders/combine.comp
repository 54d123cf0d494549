#version 460
/* y[m][i] = the sum of weight[m][j] * x[m n_used + j][i]: what the experts of a token found; with BESIDE and what all
 * tokens have of one more, beside[m][i], with GATED / (1 + exp(-gate[m])). Grid: [blocks of n, n_tokens]. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 0) const bool BESIDE = false;
layout(constant_id = 1) const bool GATED = true;
layout(push_constant) uniform Push { pd_combine_push p; };

void main()
{
    uint i = gl_GlobalInvocationID.x, m = gl_WorkGroupID.y;
    if (i >= p.n) return;
    float sum = 0.0;
    for (uint j = 0; j < p.n_used; j++)
        sum += p.choices.at[m * p.n_used + j].weight * p.x.at[(m * p.n_used + j) * p.x_stride + i];
    if (BESIDE && GATED)
        sum += p.beside.at[m * p.beside_stride + i] / (1.0 + exp(-clamp(p.gate.at[m * p.gate_stride], -80.0, 80.0)));
    else if (BESIDE) sum += p.beside.at[m * p.beside_stride + i];
    p.y.at[m * p.y_stride + i] = sum;
}

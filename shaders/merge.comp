#version 460
/* Joins the splits of decode attention: with M the largest of the splits' maxima and f[s] = exp(maximum[s] - M),
 *   y[d] = sum_s f[s] acc[s][d] / sum_s f[s] total[s].
 * One workgroup per query head and token. A split without keys has total 0 and the lowest maximum, and so no weight. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { pd_merge_push p; };

void main()
{
    uint head = gl_WorkGroupID.x, m = gl_WorkGroupID.y, n_splits = p.step.s.n_splits[p.local], stride = p.head_dim + 2;
    uint base = (m * gl_NumWorkGroups.x + head) * n_splits * stride;
    float top = -1e30;
    for (uint s = 0; s < n_splits; s++) top = max(top, p.partial.at[base + s * stride + p.head_dim]);
    for (uint d = gl_LocalInvocationID.x; d < p.head_dim; d += gl_WorkGroupSize.x) {
        float sum = 0.0, total = 0.0;
        for (uint s = 0; s < n_splits; s++) {
            uint split = base + s * stride;
            float f = exp(p.partial.at[split + p.head_dim] - top);
            sum += f * p.partial.at[split + d];
            total += f * p.partial.at[split + p.head_dim + 1];
        }
        p.y.at[m * p.y_stride + head * p.head_dim + d] = sum / total;
    }
}

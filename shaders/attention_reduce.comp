#version 460
/* Reduces the splits of decode attention: with M the largest of the splits' maxima m and f[s] = exp(m[s] - M),
 *   y[d] = sum_s f[s] acc[s][d] / sum_s f[s] total[s].
 * A head's sink (see attention.glsl) is one more maximum, and exp(sink - M) one more part of that sum.
 * One workgroup per query head and token, whose subgroups all find M and the sum of totals for themselves. A split
 * without keys has total 0 and the lowest maximum, and so no weight. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool SINKS = false;
layout(push_constant) uniform Push { pd_attention_reduce_push p; };

#define AT_ONCE 8   /* loads under way together; divides PD_MAX_SPLITS */
shared float factor[PD_MAX_SPLITS];

void main()
{
    uint head = gl_WorkGroupID.x, m = gl_WorkGroupID.y, n_splits = p.places.at[m].n_splits, stride = p.head_dim + 2;
    uint base = (p.places.at[m].first_split * gl_NumWorkGroups.x + head * n_splits) * stride, last = base + p.head_dim;
    uint n_rounded = (n_splits + AT_ONCE - 1) / AT_ONCE * AT_ONCE;
    float top = -1e30, total = 0.0;
    for (uint s = gl_SubgroupInvocationID; s < n_splits; s += gl_SubgroupSize)
        top = max(top, p.partial.at[last + s * stride]);
    top = subgroupMax(top);
    float sink = SINKS ? p.sinks.at[head] : 0.0;
    if (SINKS) top = max(top, sink);
    for (uint s = gl_SubgroupInvocationID; s < n_rounded; s += gl_SubgroupSize) {
        float f = s < n_splits ? exp(p.partial.at[last + s * stride] - top) : 0.0;
        if (gl_SubgroupID == 0) factor[s] = f;
        if (s < n_splits) total += f * p.partial.at[last + s * stride + 1];
    }
    total = subgroupAdd(total);
    if (SINKS) total += exp(sink - top);
    barrier();
    for (uint d = gl_LocalInvocationID.x; d < p.head_dim; d += gl_WorkGroupSize.x) {
        float sum = 0.0;
        for (uint s = 0; s < n_splits; s += AT_ONCE) {
            float part[AT_ONCE];
            [[unroll]] for (uint k = 0; k < AT_ONCE; k++)
                part[k] = p.partial.at[base + min(s + k, n_splits - 1) * stride + d];
            [[unroll]] for (uint k = 0; k < AT_ONCE; k++) sum += factor[s + k] * part[k];
        }
        p.y.at[m * p.y_stride + head * p.head_dim + d] = sum / total;
    }
}

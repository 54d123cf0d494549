#version 460
/* What a CPU reads, as matvec_rows does: subgroups take parts of n uvec4s, one part after the other in memory, and of
 * every four uvec4s for each lane first a byte of each cache line, then all by gathers. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { pd_measure_push p; };

void main()
{
    uint n_subgroups = gl_NumWorkGroups.x * gl_NumSubgroups, lane = gl_SubgroupInvocationID, step = 4 * gl_SubgroupSize;
    uint part = (p.n + n_subgroups - 1) / n_subgroups, bytes = 0;
    uint first = (gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID) * part, end = min(first + part, p.n);
    pd_pairs pairs = pd_pairs(uvec2(p.from));
    uint64_t sum = 0;
    for (; first < end; first += step) {
        bytes += uint(pd_bytes(uvec2(p.from)).at[16 * min(first + 4 * lane, end - 1)]);
        [[unroll]] for (uint k = 0; k < 4; k++) {
            uint i = min(first + k * gl_SubgroupSize + lane, end - 1);
            sum += pairs.at[2 * i] + pairs.at[2 * i + 1];
        }
    }
    if (bytes == ~0u || sum == 0x9e3779b9u) p.to.at[0] = uvec4(bytes);   /* so that no load may be left out */
}

#version 460
/* Each workgroup sorts PD_TOPK_IN candidates (bitonic, in shared memory) by logit, then id, and keeps the best PD_TOPK.
 * Passes are repeated until one workgroup is left; the first (FIRST) reads plain logits. A NaN sorts last. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

#define WORKGROUP 256
#define LOWEST -3.4e38

layout(local_size_x = WORKGROUP) in;
layout(constant_id = 1) const bool FIRST = true;
layout(push_constant) uniform Push { pd_topk_push p; };

shared float logit[PD_TOPK_IN];
shared uint id[PD_TOPK_IN];

void load(uint i, uint source)
{
    float x = LOWEST;
    uint name = 0xffffffffu;
    if (source < p.n) {
        x = FIRST ? p.logits.at[source] : p.found.at[source].logit;
        name = FIRST ? source : p.found.at[source].id;
    }
    logit[i] = x > LOWEST ? x : LOWEST;
    id[i] = name;
}

bool before(uint a, uint b)
{
    return logit[a] > logit[b] || (logit[a] == logit[b] && id[a] < id[b]);
}

void main()
{
    uint me = gl_LocalInvocationID.x;
    for (uint i = me; i < PD_TOPK_IN; i += WORKGROUP) load(i, gl_WorkGroupID.x * PD_TOPK_IN + i);
    barrier();
    for (uint size = 2; size <= PD_TOPK_IN; size *= 2) {
        for (uint span = size / 2; span > 0; span /= 2) {
            for (uint i = me; i < PD_TOPK_IN / 2; i += WORKGROUP) {
                uint a = 2 * i - (i & (span - 1)), b = a + span;
                bool descending = (a & size) == 0;
                if (before(b, a) == descending) {
                    float x = logit[a];
                    logit[a] = logit[b];
                    logit[b] = x;
                    uint name = id[a];
                    id[a] = id[b];
                    id[b] = name;
                }
            }
            barrier();
        }
    }
    for (uint i = me; i < PD_TOPK; i += WORKGROUP) {
        p.best.at[gl_WorkGroupID.x * PD_TOPK + i].logit = logit[i];
        p.best.at[gl_WorkGroupID.x * PD_TOPK + i].id = id[i];
    }
}

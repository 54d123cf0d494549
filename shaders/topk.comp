#version 460
/* Each workgroup takes PD_TOPK_IN candidates of a row and keeps the best PD_TOPK, sorted by logit, then lower id. Passes are repeated
 * until one workgroup is left to a row; the first (FIRST) reads plain logits. A NaN counts as the lowest.
 * Sorting all would cost a hundred times more than reading them. So each invocation first finds the maximum of its share; of
 * these maxima the PD_TOPK-th largest is a bound that at least PD_TOPK values reach, and with luck few more: only these are
 * sorted. Where ties let more through than there is room for, everything is sorted after all, piece by piece. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

#define WORKGROUP 256
#define SHARE (PD_TOPK_IN / WORKGROUP)
#define ROOM 1024
#define LOWEST -3.4e38
#define NOBODY 0xffffffffu

layout(local_size_x = WORKGROUP) in;
layout(constant_id = 1) const bool FIRST = true;
layout(push_constant) uniform Push { pd_topk_push p; };

shared float logit[ROOM];
shared uint id[ROOM];
shared uint n_found;
uint row;     /* where the row begins */

float value_at(uint i)
{
    if (i >= p.n) return LOWEST;
    float x = FIRST ? p.logits.at[row + i] : p.found.at[row + i].logit;
    return x > LOWEST ? x : LOWEST;
}

void place(uint slot, uint i)
{
    logit[slot] = value_at(i);
    id[slot] = i >= p.n ? NOBODY : FIRST ? i : p.found.at[row + i].id;
}

bool before(uint a, uint b)
{
    return logit[a] > logit[b] || (logit[a] == logit[b] && id[a] < id[b]);
}

/* Bitonic sort of the first n slots, n a power of two; best first. */
void sort(uint n)
{
    barrier();
    for (uint size = 2; size <= n; size *= 2) {
        for (uint span = size / 2; span > 0; span /= 2) {
            for (uint i = gl_LocalInvocationID.x; i < n / 2; i += WORKGROUP) {
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
}

float bound(uint first)
{
    uint me = gl_LocalInvocationID.x;
    float top = LOWEST;
    for (uint k = 0; k < SHARE; k++) top = max(top, value_at(first + k * WORKGROUP + me));
    logit[me] = top;
    id[me] = me;
    sort(WORKGROUP);
    float x = logit[PD_TOPK - 1];
    if (me == 0) n_found = 0;
    barrier();
    return x;
}

void main()
{
    uint me = gl_LocalInvocationID.x, first = gl_WorkGroupID.x * PD_TOPK_IN;
    uint block = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    row = gl_WorkGroupID.y * p.stride;
    float least = bound(first);
    for (uint k = 0; k < SHARE; k++) {
        uint i = first + k * WORKGROUP + me;
        if (i < p.n && value_at(i) >= least) {
            uint slot = atomicAdd(n_found, 1);
            if (slot < ROOM) place(slot, i);
        }
    }
    barrier();
    uint n = n_found;
    if (n <= ROOM) {
        uint size = PD_TOPK;
        while (size < n) size *= 2;
        for (uint i = n + me; i < size; i += WORKGROUP) place(i, NOBODY);
        sort(size);
    } else {
        uint kept = 0;
        for (uint at = first; at < first + PD_TOPK_IN; at += ROOM - kept) {
            if (at != first) kept = PD_TOPK;
            for (uint i = kept + me; i < ROOM; i += WORKGROUP) place(i, at + i - kept < first + PD_TOPK_IN ? at + i - kept : NOBODY);
            sort(ROOM);
        }
    }
    for (uint i = me; i < PD_TOPK; i += WORKGROUP) {
        p.best.at[block * PD_TOPK + i].logit = logit[i];
        p.best.at[block * PD_TOPK + i].id = id[i];
    }
}

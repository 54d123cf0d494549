#version 460
/* Sorts the pairs of a token and an expert by expert, in slots for those experts that any token chose: see
 * pd_expert_slot. An invocation takes experts of its own, and goes through all pairs. Grid: [1]. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

#define LANES 128
layout(local_size_x = LANES) in;
layout(push_constant) uniform Push { pd_route_group_push p; };

shared uint count[PD_MAX_EXPERTS];

void main()
{
    uint me = gl_LocalInvocationID.x, n_used = 0;
    for (uint e = me; e < p.n_experts; e += LANES) {
        uint n = 0;
        for (uint i = 0; i < p.n_pairs; i++) n += uint(p.choices.at[i].expert == e);
        count[e] = n;
    }
    barrier();
    for (uint e = 0; e < p.n_experts; e++) n_used += uint(count[e] != 0);
    for (uint slot = n_used + me; slot < p.n_slots; slot += LANES) p.slots.at[4 * slot + 1] = 0;
    for (uint e = me; e < p.n_experts; e += LANES) {
        uint slot = 0, at = 4 * p.n_slots;
        for (uint i = 0; i < e; i++) {
            slot += uint(count[i] != 0);
            at += count[i];
        }
        if (count[e] == 0) continue;
        p.slots.at[4 * slot] = e;
        p.slots.at[4 * slot + 1] = count[e];
        p.slots.at[4 * slot + 2] = at;
        for (uint i = 0; i < p.n_pairs; i++)
            if (p.choices.at[i].expert == e) p.slots.at[at++] = i;
    }
}

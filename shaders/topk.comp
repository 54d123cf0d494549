#version 460
/* Each workgroup takes PD_TOPK_IN candidates of a row and keeps the best PD_TOPK, those of higher logit, then lower id.
 * Passes are repeated until one workgroup is left to a row, which sorts them; the first (FIRST) reads plain logits. A
 * NaN comes before all numbers, so that it shows. Sorting all would cost a hundred times more than reading them. So
 * logits become keys, integers in the same order, and the PD_TOPK-th largest key is found bit by bit: a bit is set if
 * PD_TOPK keys still reach what that makes. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

#define WORKGROUP 256
#define SHARE (PD_TOPK_IN / WORKGROUP)
#define LOWEST -3.4e38
#define NAN_KEY 0xffc00000u   /* logit_of it is NaN */
#define NOBODY 0xffffffffu

layout(local_size_x = WORKGROUP) in;
layout(constant_id = 1) const bool FIRST = true;
layout(push_constant) uniform Push { pd_topk_push p; };

shared uint counted[3];
shared uint n_chosen, chosen_key[PD_TOPK], chosen_id[PD_TOPK];

uint row;           /* where the row begins */
uint keys[SHARE];   /* of candidates first + WORKGROUP k + invocation; 0: of none */
uint n_counts;

uint id_at(uint i) { return FIRST ? i : p.found.at[row + i].id; }

uint key_at(uint i)
{
    if (i >= p.n || id_at(i) == NOBODY) return 0;
    float x = FIRST ? p.logits.at[row + i] : p.found.at[row + i].logit;
    if ((floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u) return NAN_KEY;
    uint bits = x == 0.0 ? 0 : floatBitsToUint(x > LOWEST ? x : LOWEST);
    return bits >> 31 == 0 ? bits | 0x80000000u : ~bits;
}

float logit_of(uint key) { return uintBitsToFloat(key >> 31 == 0 ? ~key : key & 0x7fffffffu); }

/* The sum over the workgroup. While one counter is read, the next one is zero already. */
uint count(uint n)
{
    n = subgroupAdd(n);
    if (gl_LocalInvocationID.x == 0) counted[(n_counts + 1) % 3] = 0;
    if (subgroupElect()) atomicAdd(counted[n_counts % 3], n);
    barrier();
    return counted[n_counts++ % 3];
}

uint n_reaching(uint bound)
{
    uint n = 0;
    [[unroll]] for (uint k = 0; k < SHARE; k++) n += uint(keys[k] >= bound);
    return count(n);
}

uint n_equal_below(uint first, uint key, uint id)
{
    uint n = 0;
    [[unroll]] for (uint k = 0; k < SHARE; k++)
        if (keys[k] == key && id_at(first + k * WORKGROUP) < id) n++;
    return count(n);
}

void main()
{
    uint me = gl_LocalInvocationID.x, first = gl_WorkGroupID.x * PD_TOPK_IN + me;
    uint block = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    row = gl_WorkGroupID.y * p.stride;
    n_counts = 0;
    if (me == 0) counted[0] = n_chosen = 0;
    [[unroll]] for (uint k = 0; k < SHARE; k++) keys[k] = key_at(first + k * WORKGROUP);
    barrier();

    uint bound = 0, n = PD_TOPK_IN, last_id = NOBODY;
    for (uint bit = 1u << 31; bit != 0 && n != PD_TOPK; bit >>= 1) {
        uint n_with = n_reaching(bound | bit);
        if (n_with >= PD_TOPK) {
            bound |= bit;
            n = n_with;
        }
    }
    if (n > PD_TOPK && bound != 0) {   /* too many are equal to it: those of the lowest ids, as far as there is room */
        uint room = PD_TOPK - n_reaching(bound + 1);
        last_id = 0;
        for (uint bit = 1u << 31; bit != 0; bit >>= 1)
            if (n_equal_below(first, bound, last_id | bit) < room) last_id |= bit;
    }
    [[unroll]] for (uint k = 0; k < SHARE; k++) {
        if (keys[k] == 0 || keys[k] < bound) continue;
        uint id = id_at(first + k * WORKGROUP);
        if (keys[k] == bound && id > last_id) continue;
        uint slot = atomicAdd(n_chosen, 1);
        chosen_key[slot] = keys[k];
        chosen_id[slot] = id;
    }
    barrier();

    if (me >= PD_TOPK) return;
    uint at = me;
    if (gl_NumWorkGroups.x == 1 && me < n_chosen) {
        at = 0;
        for (uint i = 0; i < n_chosen; i++)
            if (chosen_key[i] > chosen_key[me] || chosen_key[i] == chosen_key[me] && chosen_id[i] < chosen_id[me]) at++;
    }
    p.best.at[block * PD_TOPK + at].logit = me < n_chosen ? logit_of(chosen_key[me]) : LOWEST;
    p.best.at[block * PD_TOPK + at].id = me < n_chosen ? chosen_id[me] : NOBODY;
}

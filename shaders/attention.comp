#version 460
/* softmax(mask(softcap(scale * q . k))) . v with online softmax, in fp32. A workgroup takes one query position, HEADS query
 * heads that share a kv head, and one split of the keys that the position sees (causal, and inside the window), so
 * keys outside are never read. Per tile of 32 keys: each subgroup scores whole keys, the tile's maximum rescales what
 * was summed so far, and each invocation adds the weighted values of its own pair columns.
 * One split (SPLIT false): y[m][head][d]. More: partial sums for merge.comp. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "kv.glsl"

#define TILE PD_ATTENTION_TILE
#define LOWEST -1e30   /* finite: -inf minus -inf would be NaN */

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint HEAD_DIM = 256;
layout(constant_id = 2) const uint HEADS = 1;    /* query heads of a workgroup; divides GROUP */
layout(constant_id = 3) const uint GROUP = 1;    /* query heads per kv head */
layout(constant_id = 4) const uint PAIRS = 1;    /* pair columns per invocation: HEAD_DIM / 2 / workgroup size, rounded up */
layout(constant_id = 5) const bool SPLIT = false;
layout(push_constant) uniform Push { pd_attention_push p; };

shared float q_shared[HEADS * HEAD_DIM];
shared float weight[HEADS * TILE];               /* scores of the tile, then exp(score - maximum) */
shared float maximum[HEADS], total[HEADS], rescale[HEADS];

vec2 acc[HEADS * PAIRS];

uint kv_index(uint key, uint kv_head)
{
    return (key % p.ring * p.n_kv_heads + kv_head) * HEAD_DIM;
}

void score_tile(uint first, uint end, uint kv_head)
{
    for (uint j = gl_SubgroupID; j < TILE; j += gl_NumSubgroups) {
        float part[HEADS];
        for (uint h = 0; h < HEADS; h++) part[h] = 0.0;
        uint k = kv_index(min(first + j, end - 1), kv_head);
        for (uint i = 2 * gl_SubgroupInvocationID; i < HEAD_DIM; i += 2 * gl_SubgroupSize) {
            vec2 pair = kv_load(p.k_cache, k + i);
            for (uint h = 0; h < HEADS; h++)
                part[h] += pair.x * q_shared[h * HEAD_DIM + i] + pair.y * q_shared[h * HEAD_DIM + i + 1];
        }
        for (uint h = 0; h < HEADS; h++) {
            float score = softcap_of(subgroupAdd(part[h]), p.softcap);
            if (subgroupElect()) weight[h * TILE + j] = first + j < end ? score : LOWEST;
        }
    }
}

/* scores -> weights relative to the new maximum; `rescale` is what older sums shrink by. */
void soften_tile(uint n)
{
    uint me = gl_LocalInvocationID.x;
    for (uint h = me; h < HEADS; h += gl_WorkGroupSize.x) {
        float top = maximum[h];
        for (uint j = 0; j < n; j++) top = max(top, weight[h * TILE + j]);
        rescale[h] = exp(maximum[h] - top);
        maximum[h] = top;
        float sum = total[h] * rescale[h];
        for (uint j = 0; j < n; j++) {
            float w = exp(weight[h * TILE + j] - top);
            weight[h * TILE + j] = w;
            sum += w;
        }
        total[h] = sum;
    }
}

void add_values(uint first, uint n, uint kv_head)
{
    for (uint c = 0; c < PAIRS; c++) {
        uint i = 2 * (gl_LocalInvocationID.x + c * gl_WorkGroupSize.x);
        if (i >= HEAD_DIM) break;
        for (uint h = 0; h < HEADS; h++) acc[h * PAIRS + c] *= rescale[h];
        for (uint j = 0; j < n; j++) {
            vec2 v = kv_load(p.v_cache, kv_index(first + j, kv_head) + i);
            for (uint h = 0; h < HEADS; h++) acc[h * PAIRS + c] += weight[h * TILE + j] * v;
        }
    }
}

void write_result(uint first_head, uint m)
{
    uint split = gl_WorkGroupID.y, n_splits = gl_NumWorkGroups.y;
    for (uint h = 0; h < HEADS; h++) {
        uint base = SPLIT ? ((first_head + h) * n_splits + split) * (HEAD_DIM + 2) : m * p.y_stride + (first_head + h) * HEAD_DIM;
        float scale = SPLIT ? 1.0 : 1.0 / total[h];
        for (uint c = 0; c < PAIRS; c++) {
            uint i = 2 * (gl_LocalInvocationID.x + c * gl_WorkGroupSize.x);
            if (i >= HEAD_DIM) break;
            p.y.at[base + i] = acc[h * PAIRS + c].x * scale;
            p.y.at[base + i + 1] = acc[h * PAIRS + c].y * scale;
        }
        if (SPLIT && gl_LocalInvocationID.x == 0) {
            p.y.at[base + HEAD_DIM] = maximum[h];
            p.y.at[base + HEAD_DIM + 1] = total[h];
        }
    }
}

void main()
{
    uint first_head = gl_WorkGroupID.x * HEADS, kv_head = first_head / GROUP, m = gl_WorkGroupID.z;
    uint pos = p.step.s.pos + m;
    uint lowest = p.window != 0 && pos + 1 > p.window ? pos + 1 - p.window : 0;
    uint share = (pos + 1 - lowest + gl_NumWorkGroups.y - 1) / gl_NumWorkGroups.y;
    uint begin = min(lowest + gl_WorkGroupID.y * share, pos + 1), end = min(begin + share, pos + 1);

    for (uint i = gl_LocalInvocationID.x; i < HEADS * HEAD_DIM; i += gl_WorkGroupSize.x)
        q_shared[i] = p.q.at[m * p.q_stride + first_head * HEAD_DIM + i] * p.scale;
    for (uint h = gl_LocalInvocationID.x; h < HEADS; h += gl_WorkGroupSize.x) {
        maximum[h] = LOWEST;
        total[h] = 0.0;
    }
    for (uint i = 0; i < HEADS * PAIRS; i++) acc[i] = vec2(0);
    barrier();
    for (uint first = begin; first < end; first += TILE) {
        uint n = min(TILE, end - first);
        score_tile(first, end, kv_head);
        barrier();
        soften_tile(n);
        barrier();
        add_values(first, n, kv_head);
        barrier();
    }
    write_result(first_head, m);
}

#version 460
/* Attention of one query position at a time (see attention.glsl), in fp32: the kernel of decode steps on GPUs, and for
 * prompts the one that any device can run and the others are checked against. A workgroup takes one query position,
 * HEADS query heads that share a kv head, so that each key is read once for them, and in decode steps one split of the
 * keys. Keys outside the window are never read. Per tile of 32 keys: each subgroup scores whole keys, then makes
 * weights of the scores of whole heads, and each invocation adds the weighted values of its own pair columns.
 * DECODE false: q is ready, keys and values are in the cache; writes y[m][head][d].
 * DECODE true: see attention_decode.glsl; the position's own key is a tile of its own. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

#define TILE PD_ATTENTION_TILE
#define VALUES 8       /* that an invocation adds at once; divides TILE */
#define SUBGROUP gl_SubgroupSize
#define KV_BARRIER barrier
#include "attention.glsl"
#include "attention_decode.glsl"

/* Pair columns per invocation: HEAD_DIM / 2 / workgroup size, rounded up. */
layout(constant_id = 4) const uint PAIRS = 1;

const uint KEYS = HEADS > 4 ? 2 : 4;             /* that a subgroup scores at once */

shared float q_shared[HEADS * HEAD_DIM];
shared float weight[HEADS * TILE];               /* scores of the tile, then weights */
shared float maximum[HEADS], total[HEADS], shrink[HEADS];

vec2 acc[HEADS * PAIRS];

/* ---- queries, and a decode step's own key and value ---- */

void load_queries()
{
    uint base = gl_WorkGroupID.z * p.q_stride + first_head * HEAD_DIM;
    for (uint i = gl_LocalInvocationID.x; i < HEADS * HEAD_DIM; i += gl_WorkGroupSize.x)
        q_shared[i] = p.q.at[base + i] * p.scale;
}

vec2 load_rotated(uint base, uint i, float scale, bool is_q)
{
    return rotated(vec2(p.q.at[base + i], p.q.at[base + HEAD_DIM / 2 + i]) * scale, i, is_q);
}

void prepare_queries(float growth)
{
    for (uint h = gl_SubgroupID; h < HEADS; h += gl_NumSubgroups) {
        uint base = token_head(first_head + h);
        float scale = head_scale(base, PD_NORM_QK);
        for (uint i = gl_SubgroupInvocationID; i < HEAD_DIM / 2; i += gl_SubgroupSize) {
            vec2 x = load_rotated(base, i, scale, true) * (p.scale * growth);
            q_shared[h * HEAD_DIM + i] = x.x;
            q_shared[h * HEAD_DIM + HEAD_DIM / 2 + i] = x.y;
        }
    }
}

void prepare_new(uint slot)
{
    uint k = token_head(p.n_kv_heads * GROUP + kv_head), v = token_head(p.v_head + kv_head);
    float scale = head_scale(k, PD_NORM_QK), scale_v = head_scale(v, PD_NORM_V);
    for (uint i = gl_LocalInvocationID.x; i < HEAD_DIM / 2; i += gl_WorkGroupSize.x) {
        vec2 x = load_rotated(k, i, scale, false);
        kv_new[i] = x.x;
        kv_new[HEAD_DIM / 2 + i] = x.y;
    }
    for (uint i = gl_LocalInvocationID.x; i < HEAD_DIM; i += gl_WorkGroupSize.x)
        kv_new[HEAD_DIM + i] = p.q.at[v + i] * scale_v;
    write_new(slot);
}

/* ---- tiles of keys ---- */

/* Keys by the few, so that loads are under way together. */
void score_cached(uint slot, uint n)
{
    for (uint j = gl_SubgroupID * KEYS; j < n; j += gl_NumSubgroups * KEYS) {
        float part[HEADS * KEYS];
        uint key[KEYS];
        [[unroll]] for (uint k = 0; k < KEYS; k++) key[k] = row_of(SIDE(PD_KEYS) slot + min(j + k, n - 1));
        [[unroll]] for (uint h = 0; h < HEADS * KEYS; h++) part[h] = 0.0;
        for (uint i = 2 * gl_SubgroupInvocationID; i < HEAD_DIM; i += 2 * gl_SubgroupSize) {
            vec2 pairs[KEYS];
            [[unroll]] for (uint k = 0; k < KEYS; k++) pairs[k] = kv_load(SIDE(PD_KEYS) p.k_cache, key[k], i);
            [[unroll]] for (uint h = 0; h < HEADS; h++) {
                vec2 q = vec2(q_shared[h * HEAD_DIM + i], q_shared[h * HEAD_DIM + i + 1]);
                [[unroll]] for (uint k = 0; k < KEYS; k++) part[h * KEYS + k] += dot(q, pairs[k]);
            }
        }
        [[unroll]] for (uint h = 0; h < HEADS; h++)
            [[unroll]] for (uint k = 0; k < KEYS; k++) {
                float score = softcap_of(subgroupAdd(part[h * KEYS + k]), p.softcap);
                if (subgroupElect()) weight[h * TILE + j + k] = score;
            }
    }
}

/* The key of this position. */
void score_new()
{
    for (uint h = gl_SubgroupID; h < HEADS; h += gl_NumSubgroups) {
        float part = 0.0;
        for (uint i = gl_SubgroupInvocationID; i < HEAD_DIM; i += gl_SubgroupSize)
            part += q_shared[h * HEAD_DIM + i] * kv_rounded(i);
        float score = softcap_of(subgroupAdd(part), p.softcap);
        if (subgroupElect()) weight[h * TILE] = score;
    }
}

void score_tile(uint slot, uint n)
{
    if (is_new) score_new();
    else score_cached(slot, n);
    barrier();
}

/* The position sees all keys that are visited; past them weights are 0. */
void softmax_tile(uint text, uint first, uint n)
{
    for (uint h = gl_SubgroupID; h < HEADS; h += gl_NumSubgroups) {
        float m = maximum[h], top = m, sum = 0.0;
        for (uint j = gl_SubgroupInvocationID; j < n; j += gl_SubgroupSize) top = max(top, weight[h * TILE + j]);
        top = subgroupMax(top);
        for (uint j = gl_SubgroupInvocationID; j < TILE; j += gl_SubgroupSize) {
            float w = j < n ? softmax_weight(weight[h * TILE + j], top) : 0.0;
            weight[h * TILE + j] = w;
            sum += w;
        }
        sum = subgroupAdd(sum);
        if (subgroupElect()) {
            float l = total[h];
            shrink[h] = rescale_total(m, l, top);
            maximum[h] = m;
            total[h] = l + sum;
        }
    }
    barrier();
}

void shrink_sums(uint c)
{
    [[unroll]] for (uint h = 0; h < HEADS; h++) acc[h * PAIRS + c] *= shrink[h];
}

void add_cached(uint slot, uint n)
{
    for (uint c = 0; c < PAIRS; c++) {
        uint i = 2 * (gl_LocalInvocationID.x + c * gl_WorkGroupSize.x);
        if (i >= HEAD_DIM) break;
        shrink_sums(c);
        for (uint j = 0; j < n; j += VALUES) {
            vec2 v[VALUES];
            [[unroll]] for (uint k = 0; k < VALUES; k++)
                v[k] = kv_load(SIDE(PD_VALUES) p.v_cache, row_of(SIDE(PD_VALUES) slot + min(j + k, n - 1)), i);
            [[unroll]] for (uint h = 0; h < HEADS; h++)
                [[unroll]] for (uint k = 0; k < VALUES; k++) acc[h * PAIRS + c] += weight[h * TILE + j + k] * v[k];
        }
    }
}

void add_new()
{
    for (uint c = 0; c < PAIRS; c++) {
        uint i = 2 * (gl_LocalInvocationID.x + c * gl_WorkGroupSize.x);
        if (i >= HEAD_DIM) break;
        shrink_sums(c);
        vec2 v = vec2(kv_rounded(HEAD_DIM + i), kv_rounded(HEAD_DIM + i + 1));
        [[unroll]] for (uint h = 0; h < HEADS; h++) acc[h * PAIRS + c] += weight[h * TILE] * v;
    }
}

void add_values(uint slot, uint n)
{
    if (is_new) add_new();
    else add_cached(slot, n);
    barrier();
}

void write_result()
{
    for (uint h = 0; h < HEADS; h++) {
        uint base = DECODE ? partial_base(h) : gl_WorkGroupID.z * p.y_stride + (first_head + h) * HEAD_DIM;
        float scale = DECODE ? 1.0 : 1.0 / total[h];
        for (uint c = 0; c < PAIRS; c++) {
            uint i = 2 * (gl_LocalInvocationID.x + c * gl_WorkGroupSize.x);
            if (i >= HEAD_DIM) break;
            p.y.at[base + i] = acc[h * PAIRS + c].x * scale;
            p.y.at[base + i + 1] = acc[h * PAIRS + c].y * scale;
        }
        if (DECODE && gl_LocalInvocationID.x == 0) write_softmax(base, maximum[h], total[h]);
    }
}

void main()
{
    /* Of the place, what is needed is read when it is: all of it at once stays in registers. */
    uint m = gl_WorkGroupID.z, pos = p.places.at[m].pos, text = p.places.at[m].text;
    uint last = DECODE ? pos : p.places.at[m].last;
    uvec2 keys = uvec2(first_key(pos), last + 1);
    find_heads();
    if (DECODE) {
        if (gl_WorkGroupID.y >= p.places.at[m].n_splits) return;
        keys = keys_of_split(pos);
        prepare_queries(1.0 + p.places.at[m].q_growth);
        if (p.v_head != 0 && keys.y == pos + 1) prepare_new(slot_of_key(p.pages, text, pos, pos));
    } else {
        load_queries();
    }
    for (uint h = gl_LocalInvocationID.x; h < HEADS; h += gl_WorkGroupSize.x) {
        maximum[h] = DECODE ? LOWEST : first_maximum(h);
        total[h] = DECODE ? 0.0 : first_total();
    }
    for (uint i = 0; i < HEADS * PAIRS; i++) acc[i] = vec2(0);
    barrier();
    attend(text, keys.x, keys.y, last, DECODE && p.v_head != 0);
    write_result();
}

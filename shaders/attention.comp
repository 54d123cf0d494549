#version 460
/* softmax(mask(softcap(scale * q . k))) . v with online softmax, in fp32. A workgroup takes one query position, HEADS
 * query heads that share a kv head, and one split of the keys that the position sees (from its window's first to
 * place.last), so keys outside are never read. Per tile of 32 keys: each subgroup scores whole keys, then softens the
 * scores of whole heads (the tile's maximum rescales what was summed so far), and each invocation adds the weighted
 * values of its own pair columns.
 * DECODE false: q is ready, keys and values are in the cache; writes y[m][head][d].
 * DECODE true: one position of each sequence, its q, k and v as the matrix gave them. Each workgroup norms and rotates
 * its q heads; the split that ends with this position does so with k, puts k and v in the cache, and takes them as a
 * tile of their own from where they are at hand (where v_head is 0 there is only q, and all keys come from the cache).
 * Writes partial sums for attention_reduce.comp. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

#define TILE PD_ATTENTION_TILE
#define VALUES 8       /* that an invocation adds at once; divides TILE */
#define LOWEST -1e30   /* finite: -inf minus -inf would be NaN */

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint HEAD_DIM = 256;
layout(constant_id = 2) const uint HEADS = 1;    /* query heads of a workgroup; divides GROUP */
layout(constant_id = 3) const uint GROUP = 1;    /* query heads per kv head */
/* Pair columns per invocation: HEAD_DIM / 2 / workgroup size, rounded up. */
layout(constant_id = 4) const uint PAIRS = 1;
layout(constant_id = 5) const bool DECODE = false;
layout(constant_id = 6) const uint NORMS = 0;    /* of a decode step: PD_NORM_ ... */
layout(push_constant) uniform Push { pd_attention_push p; };
#include "kv.glsl"
#define KV_NEW (DECODE ? 2 * HEAD_DIM : 1)
#define KV_BARRIER barrier
#include "kv_write.glsl"

const uint KEYS = HEADS > 4 ? 2 : 4;             /* that a subgroup scores at once */

shared float q_shared[HEADS * HEAD_DIM];
shared float weight[HEADS * TILE];               /* scores of the tile, then exp(score - maximum) */
shared float maximum[HEADS], total[HEADS], rescale[HEADS];

vec2 acc[HEADS * PAIRS];
uint token_q, token_angles;   /* where a decode step's token has q, k and v, and its angles */

uint row_of(uint slot, uint kv_head) { return kv_row(slot * p.n_kv_heads + kv_head); }

/* ---- a decode step's own q, k and v ---- */

/* By each subgroup for itself. */
float head_scale(uint base, uint norm)
{
    if ((NORMS & norm) == 0) return 1.0;
    float squares = 0.0;
    for (uint i = gl_SubgroupInvocationID; i < HEAD_DIM; i += gl_SubgroupSize)
        squares += p.q.at[base + i] * p.q.at[base + i];
    return rms_scale(subgroupAdd(squares) / float(HEAD_DIM) + p.eps);
}

/* Elements i and i + HEAD_DIM / 2 of a q or k head, normed and rotated. */
vec2 rotated(uint base, uint i, float scale, bool is_q)
{
    const uint HALF = HEAD_DIM / 2;
    vec2 x = vec2(p.q.at[base + i], p.q.at[base + HALF + i]) * scale;
    if ((NORMS & PD_NORM_QK) != 0)
        x *= is_q ? vec2(p.w_q.at[i], p.w_q.at[HALF + i]) : vec2(p.w_k.at[i], p.w_k.at[HALF + i]);
    float c = p.angles.at[token_angles + i], s = p.angles.at[token_angles + HALF + i];
    return vec2(x.x * c - x.y * s, x.x * s + x.y * c);
}

void prepare_q(uint first_head)
{
    float growth = 1.0 + p.places.at[gl_WorkGroupID.z].q_growth;
    for (uint h = gl_SubgroupID; h < HEADS; h += gl_NumSubgroups) {
        uint base = token_q + (first_head + h) * HEAD_DIM;
        float scale = head_scale(base, PD_NORM_QK);
        for (uint i = gl_SubgroupInvocationID; i < HEAD_DIM / 2; i += gl_SubgroupSize) {
            vec2 x = rotated(base, i, scale, true) * (p.scale * growth);
            q_shared[h * HEAD_DIM + i] = x.x;
            q_shared[h * HEAD_DIM + HEAD_DIM / 2 + i] = x.y;
        }
    }
}

void prepare_kv(uint slot, uint kv_head, bool writes)
{
    uint k = token_q + (p.n_kv_heads * GROUP + kv_head) * HEAD_DIM, v = token_q + (p.v_head + kv_head) * HEAD_DIM;
    float scale = head_scale(k, PD_NORM_QK), scale_v = head_scale(v, PD_NORM_V);
    for (uint i = gl_LocalInvocationID.x; i < HEAD_DIM / 2; i += gl_WorkGroupSize.x) {
        vec2 x = rotated(k, i, scale, false);
        kv_new[i] = x.x;
        kv_new[HEAD_DIM / 2 + i] = x.y;
    }
    for (uint i = gl_LocalInvocationID.x; i < HEAD_DIM; i += gl_WorkGroupSize.x)
        kv_new[HEAD_DIM + i] = p.q.at[v + i] * scale_v;
    kv_finish();
    if (!writes) return;
    kv_write(p.k_cache, row_of(slot, kv_head), 0);
    kv_write(p.v_cache, row_of(slot, kv_head), HEAD_DIM);
}

/* ---- tiles of keys ---- */

/* Keys by the few, so that loads are under way together. */
void score_tile(uint slot, uint n, uint kv_head)
{
    for (uint j = gl_SubgroupID * KEYS; j < n; j += gl_NumSubgroups * KEYS) {
        float part[HEADS * KEYS];
        uint key[KEYS];
        [[unroll]] for (uint k = 0; k < KEYS; k++) key[k] = row_of(slot + min(j + k, n - 1), kv_head);
        [[unroll]] for (uint h = 0; h < HEADS * KEYS; h++) part[h] = 0.0;
        for (uint i = 2 * gl_SubgroupInvocationID; i < HEAD_DIM; i += 2 * gl_SubgroupSize) {
            vec2 pairs[KEYS];
            [[unroll]] for (uint k = 0; k < KEYS; k++) pairs[k] = kv_load(p.k_cache, key[k], i);
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

/* n scores -> weights relative to the new maximum, and none for the rest of the tile; `rescale` is what older sums
 * shrink by. */
void softmax_tile(uint n)
{
    for (uint h = gl_SubgroupID; h < HEADS; h += gl_NumSubgroups) {
        float before = maximum[h], top = before, sum = 0.0;
        for (uint j = gl_SubgroupInvocationID; j < n; j += gl_SubgroupSize) top = max(top, weight[h * TILE + j]);
        top = subgroupMax(top);
        for (uint j = gl_SubgroupInvocationID; j < TILE; j += gl_SubgroupSize) {
            float w = j < n ? softmax_weight(weight[h * TILE + j], top) : 0.0;
            weight[h * TILE + j] = w;
            sum += w;
        }
        sum = subgroupAdd(sum);
        if (subgroupElect()) {
            rescale[h] = exp(before - top);
            maximum[h] = top;
            total[h] = total[h] * rescale[h] + sum;
        }
    }
}

void rescale_sums(uint c)
{
    [[unroll]] for (uint h = 0; h < HEADS; h++) acc[h * PAIRS + c] *= rescale[h];
}

void add_values(uint slot, uint n, uint kv_head)
{
    for (uint c = 0; c < PAIRS; c++) {
        uint i = 2 * (gl_LocalInvocationID.x + c * gl_WorkGroupSize.x);
        if (i >= HEAD_DIM) break;
        rescale_sums(c);
        for (uint j = 0; j < n; j += VALUES) {
            vec2 v[VALUES];
            [[unroll]] for (uint k = 0; k < VALUES; k++)
                v[k] = kv_load(p.v_cache, row_of(slot + min(j + k, n - 1), kv_head), i);
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
        rescale_sums(c);
        vec2 v = vec2(kv_rounded(HEAD_DIM + i), kv_rounded(HEAD_DIM + i + 1));
        [[unroll]] for (uint h = 0; h < HEADS; h++) acc[h * PAIRS + c] += weight[h * TILE] * v;
    }
}

/* ---- results ---- */

void write_result(uint first_head, uint m)
{
    for (uint h = 0; h < HEADS; h++) {
        uint head = first_head + h, n_heads = p.n_kv_heads * GROUP;
        uint split = p.places.at[m].first_split * n_heads + head * p.places.at[m].n_splits + gl_WorkGroupID.y;
        uint base = DECODE ? split * (HEAD_DIM + 2) : m * p.y_stride + head * HEAD_DIM;
        float scale = DECODE ? 1.0 : 1.0 / total[h];
        for (uint c = 0; c < PAIRS; c++) {
            uint i = 2 * (gl_LocalInvocationID.x + c * gl_WorkGroupSize.x);
            if (i >= HEAD_DIM) break;
            p.y.at[base + i] = acc[h * PAIRS + c].x * scale;
            p.y.at[base + i + 1] = acc[h * PAIRS + c].y * scale;
        }
        if (DECODE && gl_LocalInvocationID.x == 0) {
            p.y.at[base + HEAD_DIM] = maximum[h];
            p.y.at[base + HEAD_DIM + 1] = total[h];
        }
    }
}

void main()
{
    uint first_head = gl_WorkGroupID.x * HEADS, kv_head = first_head / GROUP, m = gl_WorkGroupID.z;
    uint pos = p.places.at[m].pos, text = p.places.at[m].text, last = DECODE ? pos : p.places.at[m].last;
    token_q = m * p.q_stride;
    token_angles = m * HEAD_DIM;
    bool has_kv = DECODE && p.v_head != 0;
    uint begin = p.window != 0 && pos + 1 > p.window ? pos + 1 - p.window : 0, end = last + 1;

    if (DECODE) {
        if (gl_WorkGroupID.y >= p.places.at[m].n_splits) return;
        uint share = p.places.at[m].split_pages * PD_PAGE, first = begin / PD_PAGE * PD_PAGE + gl_WorkGroupID.y * share;
        begin = max(begin, first);
        end = min(first + share, pos + 1);
        prepare_q(first_head);
        if (has_kv && end == pos + 1)
            prepare_kv(slot_of_key(p.pages, text, pos, pos), kv_head, first_head % GROUP == 0);
    } else {
        for (uint i = gl_LocalInvocationID.x; i < HEADS * HEAD_DIM; i += gl_WorkGroupSize.x)
            q_shared[i] = p.q.at[m * p.q_stride + first_head * HEAD_DIM + i] * p.scale;
    }
    for (uint h = gl_LocalInvocationID.x; h < HEADS; h += gl_WorkGroupSize.x) {
        maximum[h] = LOWEST;
        total[h] = 0.0;
    }
    for (uint i = 0; i < HEADS * PAIRS; i++) acc[i] = vec2(0);
    barrier();
    for (uint first = begin, n; first < end; first += n) {
        bool is_new = has_kv && first == pos;
        uint slot = slot_of_key(p.pages, text, first, last);
        n = is_new ? 1 : slots_of_tile(text + first, TILE, (has_kv ? min(end, pos) : end) - first);
        if (is_new) score_new();
        else score_tile(slot, n, kv_head);
        barrier();
        softmax_tile(n);
        barrier();
        if (is_new) add_new();
        else add_values(slot, n, kv_head);
        barrier();
    }
    write_result(first_head, m);
}

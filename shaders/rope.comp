#version 460
/* Per head of q and k: RMSNorm over head_dim (PD_NORM_QK: Gemma 3), then rotation of the split halves by the position's
 * angles:
 *   (x[i], x[i + d/2]) -> (x[i] cos - x[i + d/2] sin, x[i] sin + x[i + d/2] cos)
 * q goes back in place, k and v go to the cache at the slot of its position. One workgroup per head and token. cos and
 * sin come from the host in double precision: Vulkan promises only 2^-11 for its own, and only within one turn. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "reduce.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint HEAD_DIM = 256;
layout(constant_id = 2) const uint NORMS = 0;   /* PD_NORM_ ... */
layout(push_constant) uniform Push { pd_rope_push p; };
#include "kv.glsl"
#define KV_NEW HEAD_DIM
#define KV_BARRIER barrier
#include "kv_write.glsl"

float head_scale(uint base)
{
    float squares = 0.0;
    for (uint i = gl_LocalInvocationID.x; i < HEAD_DIM; i += gl_WorkGroupSize.x)
        squares += p.qkv.at[base + i] * p.qkv.at[base + i];
    return rms_scale(workgroup_sum(squares) / float(HEAD_DIM) + p.eps);
}

/* Normalised (x[i], x[i + 1]) of q or k. */
vec2 load_pair(uint base, uint i, float scale, bool is_q)
{
    vec2 x = vec2(p.qkv.at[base + i], p.qkv.at[base + i + 1]);
    if ((NORMS & PD_NORM_QK) == 0) return x;
    return is_q ? x * scale * vec2(p.w_q.at[i], p.w_q.at[i + 1]) : x * scale * vec2(p.w_k.at[i], p.w_k.at[i + 1]);
}

void store_pair(uint base, uint i, vec2 x, bool is_q)
{
    [[unroll]] for (uint c = 0; c < 2; c++) {
        if (is_q) p.qkv.at[base + i + c] = x[c];
        else kv_new[i + c] = x[c];
    }
}

void main()
{
    uint head = gl_WorkGroupID.x, m = gl_WorkGroupID.y;
    bool is_q = head < p.n_heads, is_v = head >= p.n_heads + p.n_kv_heads;
    uint kv_head = is_q ? 0 : is_v ? head - p.n_heads - p.n_kv_heads : head - p.n_heads;
    uint pos = p.places.at[m].pos, base = m * p.qkv_stride + (is_v ? p.v_head + kv_head : head) * HEAD_DIM;
    uint row = kv_row(SIDE(is_v ? PD_VALUES : PD_KEYS)
                      slot_of_key(p.pages, p.places.at[m].text, pos, pos) * p.n_kv_heads + kv_head);
    if (is_v) {
        float scale = (NORMS & PD_NORM_V) != 0 ? head_scale(base) : 1.0;
        for (uint i = gl_LocalInvocationID.x; i < HEAD_DIM; i += gl_WorkGroupSize.x)
            kv_new[i] = p.qkv.at[base + i] * scale;
        kv_finish(PD_VALUES);
        kv_write(SIDE(PD_VALUES) p.v_cache, row, 0);
        return;
    }
    float scale = (NORMS & PD_NORM_QK) != 0 ? head_scale(base) : 1.0;
    float growth = is_q ? 1.0 + p.places.at[m].q_growth : 1.0;
    const uint HALF = HEAD_DIM / 2;
    uint angles = m * HEAD_DIM;
    for (uint i = 2 * gl_LocalInvocationID.x; i < HALF; i += 2 * gl_WorkGroupSize.x) {
        vec2 a = load_pair(base, i, scale, is_q), b = load_pair(base, i + HALF, scale, is_q);
        vec2 c = vec2(p.angles.at[angles + i], p.angles.at[angles + i + 1]);
        vec2 s = vec2(p.angles.at[angles + HALF + i], p.angles.at[angles + HALF + i + 1]);
        store_pair(base, i, (a * c - b * s) * growth, is_q);
        store_pair(base, i + HALF, (a * s + b * c) * growth, is_q);
    }
    if (is_q) return;
    kv_finish(PD_KEYS);
    kv_write(SIDE(PD_KEYS) p.k_cache, row, 0);
}

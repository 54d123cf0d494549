/* What kernels that can do attention of a decode step (DECODE) have in common, beyond attention.glsl: one position of
 * each sequence, whose q, k and v are as the matrix gave them, so that nothing comes between it and attention. A
 * workgroup takes one split of the keys (see pd_place), norms and rotates its queries, and leaves sums that
 * attention_reduce.comp adds up. That of the split that ends with the position does so with the position's key, too,
 * puts key and value in the cache, and takes them from where they are at hand. Where v_head is 0 there is only q, and
 * all keys come from the cache.
 * Norms: RMSNorm (Zhang and Sennrich 2019, arXiv:1910.07467); rotation: RoPE (Su et al. 2021, arXiv:2104.09864), of
 * pairs of elements i and i + HEAD_DIM / 2.
 * Kernels define SUBGROUP, the subgroup size, and KV_BARRIER (see kv_write.glsl) before. */
layout(constant_id = 5) const bool DECODE = false;
layout(constant_id = 6) const uint NORMS = 0;    /* of a decode step: PD_NORM_ ... */
#define KV_NEW (DECODE ? 2 * HEAD_DIM : 1)
#include "kv_write.glsl"

/* Where a decode step's token has a head of q, k and v. */
uint token_head(uint head) { return gl_WorkGroupID.z * p.q_stride + head * HEAD_DIM; }

/* Of a head of which this lane has elements with that sum of squares; by each subgroup for itself. */
float norm_of(float squares) { return rms_scale(subgroupAdd(squares) / float(HEAD_DIM) + p.eps); }

float head_scale(uint base, uint norm)
{
    if ((NORMS & norm) == 0) return 1.0;
    float squares = 0.0;
    for (uint i = gl_SubgroupInvocationID; i < HEAD_DIM; i += SUBGROUP)
        squares += p.q.at[base + i] * p.q.at[base + i];
    return norm_of(squares);
}

/* Elements i and i + HEAD_DIM / 2 of a q or k head, times the norm's weights and rotated. */
vec2 rotated(vec2 x, uint i, bool is_q)
{
    const uint HALF = HEAD_DIM / 2;
    if ((NORMS & PD_NORM_QK) != 0)
        x *= is_q ? vec2(p.w_q.at[i], p.w_q.at[HALF + i]) : vec2(p.w_k.at[i], p.w_k.at[HALF + i]);
    uint angle = gl_WorkGroupID.z * HEAD_DIM + i;
    float c = p.angles.at[angle], s = p.angles.at[angle + HALF];
    return vec2(x.x * c - x.y * s, x.x * s + x.y * c);
}

/* The keys of this workgroup's split: from .x on, before .y. */
uvec2 keys_of_split(uint pos)
{
    uint lowest = first_key(pos), share = p.places.at[gl_WorkGroupID.z].split_pages * PD_PAGE;
    uint first = lowest / PD_PAGE * PD_PAGE + gl_WorkGroupID.y * share;
    return uvec2(max(lowest, first), min(first + share, pos + 1));
}

/* What is in kv_new to the cache, by one of the workgroups that have it. */
void write_new(uint slot)
{
    kv_finish(PD_KEYS);
    if (first_head % GROUP != 0) return;
    kv_write(SIDE(PD_KEYS) p.k_cache, row_of(SIDE(PD_KEYS) slot), 0);
    kv_write(SIDE(PD_VALUES) p.v_cache, row_of(SIDE(PD_VALUES) slot), HEAD_DIM);
}

/* Where the split's results for a head go: sums over values, then the maximum and the total. */
uint partial_base(uint h)
{
    uint m = gl_WorkGroupID.z, n_heads = p.n_kv_heads * GROUP, head = first_head + h;
    uint split = p.places.at[m].first_split * n_heads + head * p.places.at[m].n_splits + gl_WorkGroupID.y;
    return split * (HEAD_DIM + 2);
}

void write_softmax(uint base, float maximum, float total)
{
    p.y.at[base + HEAD_DIM] = maximum;
    p.y.at[base + HEAD_DIM + 1] = total;
}

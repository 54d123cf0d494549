#version 460
/* attention.comp for a software device (see matvec_rows.comp): a workgroup is one subgroup and takes HEADS query
 * heads of TOKENS positions, so that nothing waits at barriers or goes through shared memory. To score a tile of keys a
 * lane takes ROWS keys of its own, and the queries go around by subgroupBroadcast; to sum the values a lane takes
 * elements of its own, and the weights go around. The same constants' meanings, push constants and results. */
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_ballot : require
#include "common.glsl"

#define LOWEST -1e30   /* finite: -inf minus -inf would be NaN */

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint HEAD_DIM = 256;
layout(constant_id = 2) const uint HEADS = 1;    /* query heads of a workgroup; divides GROUP */
layout(constant_id = 3) const uint GROUP = 1;    /* query heads per kv head */
layout(constant_id = 4) const uint TOKENS = 1;   /* positions of a workgroup; 1 in decode steps */
layout(constant_id = 5) const bool DECODE = false;
layout(constant_id = 6) const uint NORMS = 0;    /* of a decode step: PD_NORM_ ... */
layout(constant_id = 7) const uint LANES = 8;    /* the subgroup size */
layout(push_constant) uniform Push { pd_attention_push p; };
#include "kv.glsl"
#define KV_NEW (DECODE ? 2 * HEAD_DIM : 1)
#define KV_BARRIER subgroupBarrier
#include "kv_write.glsl"

const uint ROWS = LANES > 16 ? 2 : 4;            /* keys of a lane; those of all lanes are within a page */
const uint QUERIES = HEADS * TOKENS;             /* query i: head i % HEADS of token i / HEADS */
const uint QUADS = (HEAD_DIM / 4 + LANES - 1) / LANES;   /* elements of a lane: see quad_at_lane */

vec4 acc[QUERIES * QUADS];
float maximum[QUERIES], total[QUERIES];
uint pos[TOKENS], last_of[TOKENS], text_of[TOKENS];   /* see pd_place */
uint q_at[QUERIES];                              /* where the ready query lies, in floats */
uint first_head, kv_head;

uint lane() { return gl_SubgroupInvocationID; }

/* The first of four elements; past the head's last ones these stand in, and are not written. */
uint quad_at_lane(uint k) { return 4 * min(LANES * k + lane(), HEAD_DIM / 4 - 1); }
bool is_quad_at_lane(uint k) { return LANES * k + lane() < HEAD_DIM / 4; }

uint row_of(uint slot) { return kv_row(slot * p.n_kv_heads + kv_head); }

/* Ready queries: rope.comp left them where q is; in a decode step they wait where the result will be. */
float q_load(uint i) { return DECODE ? p.y.at[i] : p.q.at[i]; }

/* ---- a decode step's own q, k and v ---- */

uint token_q() { return gl_WorkGroupID.z * p.q_stride; }
uint token_angles() { return gl_WorkGroupID.z * HEAD_DIM; }

const uint PAIRS = HEAD_DIM / 4 / LANES;         /* pairs of a lane in each half of a head: 2 (LANES i + lane), + 1 */
vec2 head[PAIRS == 0 ? 1 : 2 * PAIRS];           /* of the first half, then of the second; none in short heads */

uint pair_at_lane(uint i) { return (i < PAIRS ? 0 : HEAD_DIM / 2) + 2 * (LANES * (i % PAIRS) + lane()); }

/* Reads a head, norms and rotates it. */
void read_head(uint base, bool is_q)
{
    float squares = 0.0;
    [[unroll]] for (uint i = 0; i < 2 * PAIRS; i++) {
        uint at = pair_at_lane(i);
        head[i] = vec2(p.q.at[base + at], p.q.at[base + at + 1]);
        squares += dot(head[i], head[i]);
    }
    float scale = (NORMS & PD_NORM_QK) != 0 ? rms_scale(subgroupAdd(squares) / float(HEAD_DIM) + p.eps) : 1.0;
    [[unroll]] for (uint i = 0; i < PAIRS; i++)
        [[unroll]] for (uint c = 0; c < 2; c++) {
            uint at = pair_at_lane(i) + c, at_high = at + HEAD_DIM / 2;
            vec2 x = vec2(head[i][c], head[PAIRS + i][c]) * scale;
            if ((NORMS & PD_NORM_QK) != 0)
                x *= is_q ? vec2(p.w_q.at[at], p.w_q.at[at_high]) : vec2(p.w_k.at[at], p.w_k.at[at_high]);
            float cosine = p.angles.at[token_angles() + at], sine = p.angles.at[token_angles() + at_high];
            head[i][c] = x.x * cosine - x.y * sine;
            head[PAIRS + i][c] = x.x * sine + x.y * cosine;
        }
}

uint partial_base(uint h)
{
    pd_place place = p.places.at[gl_WorkGroupID.z];
    uint split = place.first_split * p.n_kv_heads * GROUP + (first_head + h) * place.n_splits + gl_WorkGroupID.y;
    return split * (HEAD_DIM + 2);
}

void prepare_queries()
{
    float growth = 1.0 + p.places.at[gl_WorkGroupID.z].q_growth;
    [[unroll]] for (uint h = 0; h < HEADS; h++) {
        read_head(token_q() + (first_head + h) * HEAD_DIM, true);
        [[unroll]] for (uint i = 0; i < 2 * PAIRS; i++)
            [[unroll]] for (uint c = 0; c < 2; c++) p.y.at[partial_base(h) + pair_at_lane(i) + c] = head[i][c] * growth;
    }
    subgroupMemoryBarrier();
    subgroupBarrier();
}

float value_scale(uint v)
{
    if ((NORMS & PD_NORM_V) == 0) return 1.0;
    float squares = 0.0;
    for (uint i = lane(); i < HEAD_DIM; i += LANES) squares += p.q.at[v + i] * p.q.at[v + i];
    return rms_scale(subgroupAdd(squares) / float(HEAD_DIM) + p.eps);
}

void prepare_own(uint slot, bool writes)
{
    uint v = token_q() + (p.v_head + kv_head) * HEAD_DIM;
    read_head(token_q() + (p.n_kv_heads * GROUP + kv_head) * HEAD_DIM, false);
    [[unroll]] for (uint i = 0; i < 2 * PAIRS; i++)
        [[unroll]] for (uint c = 0; c < 2; c++) kv_new[pair_at_lane(i) + c] = head[i][c];
    float scale = value_scale(v);
    for (uint i = lane(); i < HEAD_DIM; i += LANES) kv_new[HEAD_DIM + i] = p.q.at[v + i] * scale;
    kv_finish();
    if (!writes) return;
    kv_write(p.k_cache, row_of(slot), 0);
    kv_write(p.v_cache, row_of(slot), HEAD_DIM);
}

/* ---- online softmax ---- */

/* A new maximum shrinks what was summed so far. */
void rescale(uint i, float top)
{
    float shrink = exp(maximum[i] - top);
    maximum[i] = top;
    total[i] *= shrink;
    [[unroll]] for (uint k = 0; k < QUADS; k++) acc[i * QUADS + k] *= shrink;
}

void add_own()
{
    [[unroll]] for (uint i = 0; i < QUERIES; i++) {
        float dot_own = 0.0;
        [[unroll]] for (uint k = 0; k < 2 * PAIRS; k++) {
            uint at = pair_at_lane(k), q = q_at[i] + at;
            dot_own += dot(vec2(kv_rounded(at), kv_rounded(at + 1)), vec2(q_load(q), q_load(q + 1)));
        }
        float score = softcap_of(subgroupAdd(dot_own) * p.scale, p.softcap);
        rescale(i, max(maximum[i], score));
        float w = softmax_weight(score, maximum[i]);
        total[i] += w;
        [[unroll]] for (uint k = 0; k < QUADS; k++) {
            uint at = HEAD_DIM + quad_at_lane(k);
            [[unroll]] for (uint c = 0; c < 4; c++) acc[i * QUADS + k][c] += w * kv_rounded(at + c);
        }
    }
}

float score[ROWS * QUERIES];

/* Adds the products of elements d .. d + n - 1, which are a block of the cache. */
void score_block(uint key[ROWS], uint d, uint n)
{
    float part[ROWS * QUERIES];   /* sums of sums lose less */
    [[unroll]] for (uint i = 0; i < ROWS * QUERIES; i++) part[i] = 0.0;
    [[dont_unroll]] for (uint e = 0; e < n; e += LANES) {   /* a value of each lane goes around */
        float q[QUERIES];
        [[unroll]] for (uint i = 0; i < QUERIES; i++) q[i] = q_load(q_at[i] + min(d + e + lane(), HEAD_DIM - 1));
        [[unroll]] for (uint j = 0; j < LANES; j += 4) {
            if (n % LANES != 0 && e + j >= n) break;
            vec4 k[ROWS];
            [[unroll]] for (uint r = 0; r < ROWS; r++) k[r] = kv_quad_unscaled(p.k_cache, key[r], d + e + j);
            [[unroll]] for (uint i = 0; i < QUERIES; i++) {
                vec4 x;
                [[unroll]] for (uint c = 0; c < 4; c++) x[c] = subgroupBroadcast(q[i], j + c);
                [[unroll]] for (uint r = 0; r < ROWS; r++) part[i * ROWS + r] += dot(k[r], x);
            }
        }
    }
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        float scale = kv_scale(p.k_cache, key[r], d);
        [[unroll]] for (uint i = 0; i < QUERIES; i++) score[i * ROWS + r] += part[i * ROWS + r] * scale;
    }
}

/* n keys from `slot` on; past the last one that one stands in. */
void score_tile(uint slot, uint n)
{
    uint key[ROWS];
    [[unroll]] for (uint r = 0; r < ROWS; r++) key[r] = row_of(slot + min(LANES * r + lane(), n - 1));
    [[unroll]] for (uint i = 0; i < ROWS * QUERIES; i++) score[i] = 0.0;
    [[dont_unroll]] for (uint d = 0; d < HEAD_DIM / 32 * 32; d += 32) score_block(key, d, 32);
    if (HEAD_DIM % 32 != 0) score_block(key, HEAD_DIM / 32 * 32, HEAD_DIM % 32);
}

/* Scores become weights. A query sees keys of its own text, from its window's first to its last. */
void softmax_tile(uint text, uint first, uint end)
{
    [[unroll]] for (uint i = 0; i < QUERIES; i++) {
        uint t = i / HEADS, lowest = p.window != 0 && pos[t] + 1 > p.window ? pos[t] + 1 - p.window : 0;
        float top = LOWEST, sum = 0.0;
        bool sees[ROWS];
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            uint key = first + LANES * r + lane();
            sees[r] = text_of[t] == text && key >= lowest && key <= last_of[t] && key < end;
            score[i * ROWS + r] = sees[r] ? softcap_of(score[i * ROWS + r] * p.scale, p.softcap) : LOWEST;
            top = max(top, score[i * ROWS + r]);
        }
        rescale(i, max(maximum[i], subgroupMax(top)));
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            score[i * ROWS + r] = sees[r] ? softmax_weight(score[i * ROWS + r], maximum[i]) : 0.0;
            sum += score[i * ROWS + r];
        }
        total[i] += subgroupAdd(sum);
    }
}

/* LANES keys at a time; the weights move up, as an index that is not constant would cost more. */
void add_values(uint slot, uint n)
{
    [[dont_unroll]] for (uint r = 0; r < ROWS; r++) {
        [[unroll]] for (uint j = 0; j < LANES; j++) {
            uint value = row_of(slot + min(LANES * r + j, n - 1));
            float w[QUERIES];
            [[unroll]] for (uint i = 0; i < QUERIES; i++) w[i] = subgroupBroadcast(score[i * ROWS], j);
            [[unroll]] for (uint k = 0; k < QUADS; k++) {
                vec4 v = kv_quad(p.v_cache, value, quad_at_lane(k));
                [[unroll]] for (uint i = 0; i < QUERIES; i++) acc[i * QUADS + k] += w[i] * v;
            }
        }
        [[unroll]] for (uint i = 0; i < QUERIES; i++)
            [[unroll]] for (uint s = 1; s < ROWS; s++) score[i * ROWS + s - 1] = score[i * ROWS + s];
    }
}

/* Keys begin .. end - 1 of the text, whose last one is `last`. */
void attend(uint text, uint begin, uint end, uint last)
{
    for (uint first = begin, n; first < end; first += n) {
        uint slot = slot_of_key(p.pages, text, first, last);
        n = slots_of_tile(text + first, LANES * ROWS, end - first);
        score_tile(slot, n);
        softmax_tile(text, first, first + n);
        add_values(slot, n);
    }
}

/* ---- results ---- */

void write_result(uint first_token)
{
    [[unroll]] for (uint i = 0; i < QUERIES; i++) {
        uint m = first_token + i / HEADS, h = i % HEADS;
        uint base = DECODE ? partial_base(h) : m * p.y_stride + (first_head + h) * HEAD_DIM;
        if (m >= p.n_tokens) continue;
        [[unroll]] for (uint k = 0; k < QUADS; k++)
            [[unroll]] for (uint c = 0; c < 4 && is_quad_at_lane(k); c++)
                p.y.at[base + quad_at_lane(k) + c] = DECODE ? acc[i * QUADS + k][c] : acc[i * QUADS + k][c] / total[i];
        if (DECODE && lane() == 0) {
            p.y.at[base + HEAD_DIM] = maximum[i];
            p.y.at[base + HEAD_DIM + 1] = total[i];
        }
    }
}

void main()
{
    uint first_token = gl_WorkGroupID.z * TOKENS;
    first_head = gl_WorkGroupID.x * HEADS;
    kv_head = first_head / GROUP;
    [[unroll]] for (uint t = 0; t < TOKENS; t++) {
        pd_place place = p.places.at[min(first_token + t, p.n_tokens - 1)];
        pos[t] = place.pos;
        last_of[t] = DECODE ? place.pos : place.last;
        text_of[t] = place.text;
    }
    [[unroll]] for (uint i = 0; i < QUERIES; i++) {
        uint m = min(first_token + i / HEADS, p.n_tokens - 1);
        q_at[i] = DECODE ? partial_base(i % HEADS) : m * p.q_stride + (first_head + i % HEADS) * HEAD_DIM;
        maximum[i] = LOWEST;
        total[i] = 0.0;
        [[unroll]] for (uint k = 0; k < QUADS; k++) acc[i * QUADS + k] = vec4(0);
    }
    if (DECODE) {
        pd_place place = p.places.at[gl_WorkGroupID.z];
        if (gl_WorkGroupID.y >= place.n_splits) return;
        uint lowest = p.window != 0 && place.pos + 1 > p.window ? place.pos + 1 - p.window : 0;
        uint share = place.split_pages * PD_PAGE, first = lowest / PD_PAGE * PD_PAGE + gl_WorkGroupID.y * share;
        prepare_queries();
        bool has_kv = p.v_head != 0;
        attend(place.text, max(lowest, first), min(first + share, has_kv ? place.pos : place.pos + 1), place.pos);
        if (has_kv && first + share > place.pos) {
            prepare_own(slot_of_key(p.pages, place.text, place.pos, place.pos), first_head % GROUP == 0);
            add_own();
        }
    } else {
        for (uint t = 0; t < TOKENS;) {   /* the positions of one text at a time */
            uint text = text_of[t], last = last_of[t];
            uint begin = p.window != 0 && pos[t] + 1 > p.window ? pos[t] + 1 - p.window : 0;
            for (t++; t < TOKENS && text_of[t] == text; t++) last = max(last, last_of[t]);
            attend(text, begin - begin % (LANES * ROWS), last + 1, last);   /* sums do not depend on `begin` */
        }
    }
    write_result(first_token);
}

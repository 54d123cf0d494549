#version 460
/* Attention for a software device (see attention.glsl and matvec_rows.comp): a workgroup is one subgroup and takes
 * HEADS query heads of TOKENS positions, so that nothing waits at barriers or goes through shared memory. To score a
 * tile of keys a lane takes ROWS keys of its own, and the queries go around by subgroupBroadcast; to sum the values a
 * lane takes elements of its own, and the weights go around. The same constants' meanings, push constants and results
 * as attention.comp. */
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_ballot : require
#include "common.glsl"

layout(constant_id = 4) const uint TOKENS = 1;   /* positions of a workgroup; 1 in decode steps */
layout(constant_id = 7) const uint LANES = 8;    /* the subgroup size */
const uint ROWS = LANES > 16 ? 2 : 4;            /* keys of a lane; those of all lanes are within a page */
#define TILE (LANES * ROWS)
#define SUBGROUP LANES
#define KV_BARRIER subgroupBarrier
#include "attention.glsl"
#include "attention_decode.glsl"

const uint QUERIES = HEADS * TOKENS;             /* query i: head i % HEADS of token i / HEADS */
const uint QUADS = (HEAD_DIM / 4 + LANES - 1) / LANES;   /* elements of a lane: see quad_at_lane */

vec4 acc[QUERIES * QUADS];
float score[ROWS * QUERIES];                     /* of a tile, then weights */
float maximum[QUERIES], total[QUERIES];
uint pos[TOKENS], last_of[TOKENS], text_of[TOKENS];   /* see pd_place */
uint q_at[QUERIES];                              /* where the ready query lies, in floats */

uint lane() { return gl_SubgroupInvocationID; }

/* The first of four elements; past the head's last ones these stand in, and are not written. */
uint quad_at_lane(uint k) { return 4 * min(LANES * k + lane(), HEAD_DIM / 4 - 1); }
bool is_quad_at_lane(uint k) { return LANES * k + lane() < HEAD_DIM / 4; }

/* Ready queries: rope.comp left them where q is; in a decode step they wait where the result will be. */
float q_load(uint i) { return DECODE ? p.y.at[i] : p.q.at[i]; }

/* ---- a decode step's own q, k and v ---- */

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
    float scale = (NORMS & PD_NORM_QK) != 0 ? norm_of(squares) : 1.0;
    [[unroll]] for (uint i = 0; i < PAIRS; i++)
        [[unroll]] for (uint c = 0; c < 2; c++) {
            vec2 x = rotated(vec2(head[i][c], head[PAIRS + i][c]) * scale, pair_at_lane(i) + c, is_q);
            head[i][c] = x.x;
            head[PAIRS + i][c] = x.y;
        }
}

void prepare_queries(pd_place place)
{
    float growth = 1.0 + place.q_growth;
    [[unroll]] for (uint h = 0; h < HEADS; h++) {
        uint base = partial_base(h);
        read_head(token_head(first_head + h), true);
        [[unroll]] for (uint i = 0; i < 2 * PAIRS; i++)
            [[unroll]] for (uint c = 0; c < 2; c++) p.y.at[base + pair_at_lane(i) + c] = head[i][c] * growth;
    }
    subgroupMemoryBarrier();
    subgroupBarrier();
}

void prepare_new(uint slot)
{
    uint v = token_head(p.v_head + kv_head);
    read_head(token_head(p.n_kv_heads * GROUP + kv_head), false);
    [[unroll]] for (uint i = 0; i < 2 * PAIRS; i++)
        [[unroll]] for (uint c = 0; c < 2; c++) kv_new[pair_at_lane(i) + c] = head[i][c];
    float scale = head_scale(v, PD_NORM_V);
    for (uint i = lane(); i < HEAD_DIM; i += LANES) kv_new[HEAD_DIM + i] = p.q.at[v + i] * scale;
    write_new(slot);
}

/* ---- tiles of keys ---- */

/* A new maximum shrinks what was summed so far. */
void rescale(uint i, float top)
{
    float shrink = rescale_total(maximum[i], total[i], top);
    [[unroll]] for (uint k = 0; k < QUADS; k++) acc[i * QUADS + k] *= shrink;
}

void add_new()
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
            [[unroll]] for (uint r = 0; r < ROWS; r++)
                k[r] = kv_quad_unscaled(SIDE(PD_KEYS) p.k_cache, key[r], d + e + j);
            [[unroll]] for (uint i = 0; i < QUERIES; i++) {
                vec4 x;
                [[unroll]] for (uint c = 0; c < 4; c++) x[c] = subgroupBroadcast(q[i], j + c);
                [[unroll]] for (uint r = 0; r < ROWS; r++) part[i * ROWS + r] += dot(k[r], x);
            }
        }
    }
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        float scale = kv_scale(SIDE(PD_KEYS) p.k_cache, key[r], d);
        [[unroll]] for (uint i = 0; i < QUERIES; i++) score[i * ROWS + r] += part[i * ROWS + r] * scale;
    }
}

/* n keys from `slot` on; past the last one that one stands in. */
void score_tile(uint slot, uint n)
{
    uint key[ROWS];
    [[unroll]] for (uint r = 0; r < ROWS; r++) key[r] = row_of(SIDE(PD_KEYS) slot + min(LANES * r + lane(), n - 1));
    [[unroll]] for (uint i = 0; i < ROWS * QUERIES; i++) score[i] = 0.0;
    [[dont_unroll]] for (uint d = 0; d < HEAD_DIM / 32 * 32; d += 32) score_block(key, d, 32);
    if (HEAD_DIM % 32 != 0) score_block(key, HEAD_DIM / 32 * 32, HEAD_DIM % 32);
}

void softmax_tile(uint text, uint first, uint n)
{
    uint end = first + n;
    [[unroll]] for (uint i = 0; i < QUERIES; i++) {
        uint t = i / HEADS, lowest = first_key(pos[t]);
        float top = LOWEST, sum = 0.0;
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            uint key = first + LANES * r + lane();
            bool is_seen = text_of[t] == text && key >= lowest && key <= last_of[t] && key < end;
            score[i * ROWS + r] = is_seen ? softcap_of(score[i * ROWS + r] * p.scale, p.softcap) : UNSEEN;
            top = max(top, score[i * ROWS + r]);
        }
        rescale(i, max(maximum[i], subgroupMax(top)));
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            score[i * ROWS + r] = weight_of(score[i * ROWS + r], maximum[i]);
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
            uint value = row_of(SIDE(PD_VALUES) slot + min(LANES * r + j, n - 1));
            float w[QUERIES];
            [[unroll]] for (uint i = 0; i < QUERIES; i++) w[i] = subgroupBroadcast(score[i * ROWS], j);
            [[unroll]] for (uint k = 0; k < QUADS; k++) {
                vec4 v = kv_quad(SIDE(PD_VALUES) p.v_cache, value, quad_at_lane(k));
                [[unroll]] for (uint i = 0; i < QUERIES; i++) acc[i * QUADS + k] += w[i] * v;
            }
        }
        [[unroll]] for (uint i = 0; i < QUERIES; i++)
            [[unroll]] for (uint s = 1; s < ROWS; s++) score[i * ROWS + s - 1] = score[i * ROWS + s];
    }
}

void write_result(uint first_token)
{
    [[unroll]] for (uint i = 0; i < QUERIES; i++) {
        uint m = first_token + i / HEADS, h = i % HEADS;
        uint base = DECODE ? partial_base(h) : m * p.y_stride + (first_head + h) * HEAD_DIM;
        if (m >= p.n_tokens) continue;
        [[unroll]] for (uint k = 0; k < QUADS; k++)
            [[unroll]] for (uint c = 0; c < 4 && is_quad_at_lane(k); c++)
                p.y.at[base + quad_at_lane(k) + c] = DECODE ? acc[i * QUADS + k][c] : acc[i * QUADS + k][c] / total[i];
        if (DECODE && lane() == 0) write_softmax(base, maximum[i], total[i]);
    }
}

void main()
{
    uint first_token = gl_WorkGroupID.z * TOKENS;
    pd_place place = p.places.at[min(first_token, p.n_tokens - 1)];   /* of the token in decode steps */
    find_heads();
    [[unroll]] for (uint t = 0; t < TOKENS; t++) {
        pd_place at = p.places.at[min(first_token + t, p.n_tokens - 1)];
        pos[t] = at.pos;
        last_of[t] = DECODE ? at.pos : at.last;
        text_of[t] = at.text;
    }
    [[unroll]] for (uint i = 0; i < QUERIES; i++) {
        uint m = min(first_token + i / HEADS, p.n_tokens - 1), h = i % HEADS;
        q_at[i] = DECODE ? partial_base(h) : m * p.q_stride + (first_head + h) * HEAD_DIM;
        maximum[i] = DECODE ? LOWEST : first_maximum(h);
        total[i] = DECODE ? 0.0 : first_total();
        [[unroll]] for (uint k = 0; k < QUADS; k++) acc[i * QUADS + k] = vec4(0);
    }
    if (DECODE) {
        if (gl_WorkGroupID.y >= place.n_splits) return;
        uvec2 keys = keys_of_split(place.pos);
        bool takes_new = p.v_head != 0 && keys.y == place.pos + 1;
        prepare_queries(place);
        attend(place.text, keys.x, takes_new ? place.pos : keys.y, place.pos, false);
        if (takes_new) {
            prepare_new(slot_of_key(p.pages, place.text, place.pos, place.pos));
            add_new();
        }
    } else {
        attend_texts(first_token, TOKENS);
    }
    write_result(first_token);
}

#version 460
/* Attention of prompts by cooperative matrices (see attention_tile.glsl), for caches of fp16. Queries and weights are
 * rounded to fp16; products, sums, scores and softmax are fp32. Queries are scaled so that a row's largest element lies
 * between TOP / 2 and TOP, and a weight of 1 becomes TOP: normal numbers of fp16 reach 2^-28 of these, and no sum in
 * fp32 overflows.
 * Scores are keys times queries, and sums are values times weights, so that a query is a column of both: what its sums
 * shrink by is then a matrix of equal rows. The subgroups share the scores of a tile, by way of shared memory; of the
 * sums each keeps those of some elements of the heads, for all queries, and adds to them the products of a tile, which
 * it sums by themselves: what is an operand of products wherever it changes, Mesa's compiler for Intel keeps once.
 * Values come to shared memory as [element][key], as matrix units take them. Needs subgroups of SUBGROUP invocations,
 * all of them whole, and heads that they can share evenly. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(constant_id = 4) const uint SUBGROUP = 32;
layout(constant_id = 5) const uint M = 16;   /* of a matrix: keys or elements, queries, what is summed over */
layout(constant_id = 6) const uint N = 16;
layout(constant_id = 7) const uint K = 16;
layout(constant_id = 9) const uint SLICE = 64;   /* elements of keys and values at a time */
#include "coop.glsl"
#define GET(from) load(from, NON_PRIVATE)
#define PUT(to, value) store(to, value, NON_PRIVATE)

#define ROWS 32
#define TILE 64
#define IN_RUNS
#include "attention_tile.glsl"

#define TOP 16384.0
#define SCORE_QUADS (TILE / 4 + 1)   /* of a row of scores, whose place its weights take */

const uint SUBGROUPS = gl_WorkGroupSize.x / SUBGROUP;
const uint EIGHTS = HEAD_DIM / 8, Q_STRIDE = EIGHTS + 1;
const uint SLICES = HEAD_DIM / SLICE, K_EIGHTS = SLICE / 8, K_STRIDE = K_EIGHTS + 1, V_STRIDE = TILE / 8 + 1;
/* A subgroup's matrices of scores; and of sums over values, of a slice. */
const uint DOWN = SUBGROUPS < TILE / M ? SUBGROUPS : TILE / M, ACROSS = SUBGROUPS / DOWN;
const uint SCORES_M = TILE / M / DOWN, SCORES_N = ROWS / N / ACROSS;
const uint PART = SLICE / SUBGROUPS, SUMS_M = PART / M, SUMS_N = ROWS / N;

shared uvec4 q_rows[ROWS * Q_STRIDE];
shared uvec4 scores[ROWS * SCORE_QUADS];   /* [row][key / 4] of fp32; then weights, [row][key / 8] */
shared uvec4 kv_slice[TILE * K_STRIDE > SLICE * V_STRIDE ? TILE * K_STRIDE : SLICE * V_STRIDE];
shared float q_unit[ROWS];
SUMS sums[SLICES * SUMS_N * SUMS_M];

uint first_score, first_query, first_element;   /* of the subgroup */

#include "attention_unit.glsl"

void load_queries()
{
    [[dont_unroll]] for (uint i = 0; i < ROWS * EIGHTS / gl_WorkGroupSize.x; i++) {
        uint k = i * gl_WorkGroupSize.x + me, row = k / EIGHTS;
        float scale = p.scale * (TOP / GET(q_unit[row]));
        uint at = query_of(row) + 2 * (k % EIGHTS);
        vec4 low = pd_vec4s(uvec2(p.q)).at[at] * scale, high = pd_vec4s(uvec2(p.q)).at[at + 1] * scale;
        PUT(q_rows[row * Q_STRIDE + k % EIGHTS],
            uvec4(packHalf2x16(low.xy), packHalf2x16(low.zw), packHalf2x16(high.xy), packHalf2x16(high.zw)));
    }
}

/* Past the last key that one stands in. */
void load_keys(uint slot, uint n, uint slice)
{
    [[dont_unroll]] for (uint i = 0; i < TILE * K_EIGHTS / gl_WorkGroupSize.x; i++) {
        uint k = i * gl_WorkGroupSize.x + me, key = slot + min(k / K_EIGHTS, n - 1);
        uint at = (key * p.n_kv_heads + kv_head) * EIGHTS + slice * K_EIGHTS + k % K_EIGHTS;
        PUT(kv_slice[k / K_EIGHTS * K_STRIDE + k % K_EIGHTS], pd_uvec4s(uvec2(p.k_cache)).at[at]);
    }
}

/* In blocks of eight keys by four elements. */
void load_values(uint slot, uint n, uint slice)
{
    [[dont_unroll]] for (uint i = 0; i < TILE / 8 * SLICE / 4 / gl_WorkGroupSize.x; i++) {
        uint k = i * gl_WorkGroupSize.x + me, quad = k % (SLICE / 4), eight = k / (SLICE / 4);
        uvec2 v[8];
        [[unroll]] for (uint j = 0; j < 8; j++) {
            uint key = slot + min(8 * eight + j, n - 1);
            uint at = (key * p.n_kv_heads + kv_head) * QUADS + slice * (SLICE / 4) + quad;
            v[j] = pd_uvec2s(uvec2(p.v_cache)).at[at];
        }
        [[unroll]] for (uint e = 0; e < 4; e++) {
            uvec4 keys;
            [[unroll]] for (uint j = 0; j < 4; j++) {
                uint a = v[2 * j][e / 2], b = v[2 * j + 1][e / 2];
                keys[j] = e % 2 == 0 ? a & 0xffffu | b << 16 : a >> 16 | b & 0xffff0000u;
            }
            PUT(kv_slice[(4 * quad + e) * V_STRIDE + eight], keys);
        }
    }
}

void score_tile(uint slot, uint n)
{
    SUMS s[SCORES_M * SCORES_N];
    [[unroll]] for (uint i = 0; i < SCORES_M * SCORES_N; i++)
        s[i] = coopMatMulAdd(A_MATRIX(0.0), B_MATRIX(0.0), SUMS(0.0));
    [[unroll]] for (uint slice = 0; slice < SLICES; slice++) {
        if (slice > 0) TILE_BARRIER();
        load_keys(slot, n, slice);
        TILE_BARRIER();
        [[dont_unroll]] for (uint k = 0; k < SLICE; k += K) {
            A_MATRIX keys[SCORES_M];
            [[unroll]] for (uint m = 0; m < SCORES_M; m++)
                keys[m] = load_a(kv_slice[(first_score + m * M) * K_STRIDE + k / 8], ROW_MAJOR, K_STRIDE, NON_PRIVATE);
            [[unroll]] for (uint r = 0; r < SCORES_N; r++) {
                B_MATRIX q = load_b(q_rows[(first_query + r * N) * Q_STRIDE + (slice * SLICE + k) / 8], COLUMN_MAJOR,
                                    Q_STRIDE, NON_PRIVATE);
                [[unroll]] for (uint m = 0; m < SCORES_M; m++)
                    s[r * SCORES_M + m] = coopMatMulAdd(keys[m], q, s[r * SCORES_M + m]);
            }
        }
    }
    [[unroll]] for (uint r = 0; r < SCORES_N; r++)
        [[unroll]] for (uint m = 0; m < SCORES_M; m++)
            store_sums(scores[(first_query + r * N) * SCORE_QUADS + (first_score + m * M) / 4], s[r * SCORES_M + m],
                       COLUMN_MAJOR, SCORE_QUADS, NON_PRIVATE);
    TILE_BARRIER();
}

void read_scores(uint row, uint at, out float score[RUN])
{
    float unit = GET(q_unit[row]) / TOP;
    [[unroll]] for (uint i = 0; i < RUN; i += 4) {
        vec4 four = uintBitsToFloat(GET(scores[row * SCORE_QUADS + (at + i) / 4])) * unit;
        [[unroll]] for (uint j = 0; j < 4; j++) score[i + j] = four[j];
    }
    if (p.softcap != 0) [[unroll]] for (uint i = 0; i < RUN; i++) score[i] = softcap_of(score[i], p.softcap);
}

float keep_weights(uint row, uint at, float w[RUN])
{
    float sum = 0;
    [[unroll]] for (uint i = 0; i < RUN; i += 8) {
        uvec4 eight;
        [[unroll]] for (uint j = 0; j < 4; j++) {
            eight[j] = packHalf2x16(vec2(w[i + 2 * j], w[i + 2 * j + 1]) * TOP);
            vec2 rounded = unpackHalf2x16(eight[j]);
            sum += rounded.x + rounded.y;
        }
        PUT(scores[row * SCORE_QUADS + (at + i) / 8], eight);
    }
    return sum;
}

float weight_of_one() { return TOP; }

SUMS shrink_of(uint query) { return load_sums(shrink[query], ROW_MAJOR, 0, NON_PRIVATE); }

/* Of N queries from `query` on, to sums from `at` on. */
void add_products(uint at, uint query)
{
    SUMS s[SUMS_M];
    [[unroll]] for (uint m = 0; m < SUMS_M; m++) s[m] = coopMatMulAdd(A_MATRIX(0.0), B_MATRIX(0.0), SUMS(0.0));
    [[dont_unroll]] for (uint k = 0; k < TILE; k += K) {
        B_MATRIX w = load_b(scores[query * SCORE_QUADS + k / 8], COLUMN_MAJOR, SCORE_QUADS, NON_PRIVATE);
        [[unroll]] for (uint m = 0; m < SUMS_M; m++) {
            A_MATRIX v = load_a(kv_slice[(first_element + m * M) * V_STRIDE + k / 8], ROW_MAJOR, V_STRIDE,
                                NON_PRIVATE);
            s[m] = coopMatMulAdd(v, w, s[m]);
        }
    }
    SUMS by = shrink_of(query);
    [[unroll]] for (uint m = 0; m < SUMS_M; m++) sums[at + m] = sums[at + m] * by + s[m];
}

void add_slice(uint slice, uint slot, uint n)
{
    TILE_BARRIER();
    load_values(slot, n, slice);
    TILE_BARRIER();
    uint at = slice * SUMS_N * SUMS_M;
    add_products(at, 0);
    if (SUMS_N > 1) add_products(at + SUMS_M, N);
    if (SUMS_N > 2) add_products(at + 2 * SUMS_M, 2 * N);
    if (SUMS_N > 3) add_products(at + 3 * SUMS_M, 3 * N);
}

/* Not in loops, as in attention_tile.comp. */
void add_values(uint slot, uint n)
{
    add_slice(0, slot, n);
    if (SLICES > 1) add_slice(1, slot, n);
    if (SLICES > 2) add_slice(2, slot, n);
    if (SLICES > 3) add_slice(3, slot, n);
    TILE_BARRIER();
}

/* By way of shared memory, [query][element]. */
void write_slice(uint slice)
{
    const uint quads = SLICE / 4, stride = quads + 1;
    if (slice > 0) TILE_BARRIER();
    [[unroll]] for (uint r = 0; r < SUMS_N; r++)
        [[unroll]] for (uint m = 0; m < SUMS_M; m++)
            store_sums(kv_slice[r * N * stride + (first_element + m * M) / 4], sums[(slice * SUMS_N + r) * SUMS_M + m],
                       COLUMN_MAJOR, stride, NON_PRIVATE);
    TILE_BARRIER();
    [[dont_unroll]] for (uint i = me; i < ROWS * quads; i += gl_WorkGroupSize.x) {
        uint row = i / quads, token = first_token + row / HEADS;
        if (token >= p.n_tokens) continue;
        uint at = (token * p.y_stride + (first_head + row % HEADS) * HEAD_DIM) / 4 + slice * quads + i % quads;
        vec4 y = uintBitsToFloat(GET(kv_slice[row * stride + i % quads])) * GET(shrink[row]);
        pd_vec4s_written(uvec2(p.y)).at[at] = y;
    }
}

void write_result()
{
    if (me % LINE == 0) PUT(shrink[me / LINE], 1.0 / total_of(me / LINE));
    write_slice(0);
    if (SLICES > 1) write_slice(1);
    if (SLICES > 2) write_slice(2);
    if (SLICES > 3) write_slice(3);
}

void main()
{
    find_queries();
    first_score = gl_SubgroupID % DOWN * SCORES_M * M;
    first_query = gl_SubgroupID / DOWN * SCORES_N * N;
    first_element = gl_SubgroupID * PART;
    find_q_units();
    load_queries();
    [[unroll]] for (uint i = 0; i < SLICES * SUMS_N * SUMS_M; i++) sums[i] = SUMS(0.0);
    attend_all();
    write_result();
}

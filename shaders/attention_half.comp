#version 460
/* Attention of prompts by packed fp16 (see attention_tile.glsl), for caches of fp16: a pair of products is one
 * instruction. Products are summed in fp16 for CHAIN of them, then in fp32; scores, softmax and the sums over values
 * are fp32.
 * What fp16 overflows at is far: queries are scaled so that a row's largest element lies between TOP / 2 and TOP, a
 * softmax weight of 1 becomes TOP, and with TOP = 2^4 a chain holds as long as keys and values are below 2^8. A
 * workgroup that meets larger ones finds a result that is not finite, and computes it again with TOP = 2^-4, which fits
 * all that fp16 has. Normal numbers reach 2^-18 of the largest query and weight, so that nothing depends on subnormal
 * ones, which some devices flush. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "common.glsl"

#define ROWS 32
#define TILE 64
#define SCORE_STRIDE (TILE + 1)
#include "attention_tile.glsl"

#define CHAIN 16
#define SLICE 8            /* eights of a head's elements at a time, in scores */
#define STRIDE (SLICE + 1)
#define FIRST_TOP 16.0
#define LAST_TOP 0.0625

const uint EIGHTS = HEAD_DIM / 8, SLICES = (EIGHTS + SLICE - 1) / SLICE;
/* Scores: an invocation has rows first_row .. + MINE - 1 by keys column, column + 16 ... */
const uint MINE = ROWS * 16 / gl_WorkGroupSize.x, KEYS_OF = TILE / 16;
/* Values: V_LANES eights of V_KEYS keys at a time, which is as much as a slice of keys. An invocation has rows
 * first_v_row .. + V_MINE - 1 by eight v_column. */
const uint V_LANES = EIGHTS > 8 ? 16 : 8, V_KEYS = TILE * SLICE / V_LANES;
const uint V_SLICES = (EIGHTS + V_LANES - 1) / V_LANES, V_MINE = ROWS * V_LANES / gl_WorkGroupSize.x;

shared uvec4 q_slice[ROWS * STRIDE], kv_slice[TILE * STRIDE];
shared f16vec2 weights[TILE * (ROWS / 2 + 1)];   /* [key][row / 2] */
shared float q_unit[ROWS];                       /* a score of 1 after the scaling of queries */
shared bool overflown;

uint first_row, column, first_v_row, v_column;
vec4 acc[4 * V_MINE * 2];                        /* [slice][row][half of an eight] */
float top_value;                                 /* TOP */

#include "attention_unit.glsl"

void load_queries(uint slice)
{
    [[unroll]] for (uint i = 0; i < ROWS * SLICE / gl_WorkGroupSize.x; i++) {
        uint k = i * gl_WorkGroupSize.x + me, row = k / SLICE, eight = slice * SLICE + k % SLICE;
        uint at = query_of(row) + 2 * min(eight, EIGHTS - 1);
        float scale = p.scale * (top_value / q_unit[row]);
        vec4 low = pd_vec4s(uvec2(p.q)).at[at] * scale, high = pd_vec4s(uvec2(p.q)).at[at + 1] * scale;
        uvec4 q = uvec4(packHalf2x16(low.xy), packHalf2x16(low.zw), packHalf2x16(high.xy), packHalf2x16(high.zw));
        q_slice[row * STRIDE + k % SLICE] = eight < EIGHTS ? q : uvec4(0);
    }
}

/* `lanes` eights from first_eight on, of as many keys as there is room for, from number first_key of the tile on. Past
 * the last key that one stands in. */
void load_slice(pd_words cache, uint slot, uint n, uint first_key, uint first_eight, uint lanes)
{
    [[unroll]] for (uint i = 0; i < TILE * SLICE / gl_WorkGroupSize.x; i++) {
        uint k = i * gl_WorkGroupSize.x + me, eight = first_eight + k % lanes;
        uint key = slot + min(first_key + k / lanes, n - 1);
        uvec4 eight_of = pd_uvec4s(uvec2(cache)).at[(key * p.n_kv_heads + kv_head) * EIGHTS + min(eight, EIGHTS - 1)];
        kv_slice[k / lanes * (lanes + 1) + k % lanes] = eight < EIGHTS ? eight_of : uvec4(0);
    }
}

void score_tile(uint slot, uint n)
{
    float score[MINE * KEYS_OF];
    [[unroll]] for (uint i = 0; i < MINE * KEYS_OF; i++) score[i] = 0.0;
    [[dont_unroll]] for (uint slice = 0; slice < SLICES; slice++) {
        barrier();
        load_queries(slice);
        load_slice(p.k_cache, slot, n, 0, slice * SLICE, SLICE);
        barrier();
        [[dont_unroll]] for (uint first = 0; first < SLICE; first += 4) {
            f16vec2 chain[MINE * KEYS_OF];
            [[unroll]] for (uint i = 0; i < MINE * KEYS_OF; i++) chain[i] = f16vec2(0);
            [[dont_unroll]] for (uint c = 0; c < CHAIN / 4; c++) {
                uvec4 k[KEYS_OF];
                [[unroll]] for (uint i = 0; i < KEYS_OF; i++) k[i] = kv_slice[(column + 16 * i) * STRIDE + first + c];
                [[unroll]] for (uint r = 0; r < MINE; r++) {
                    uvec4 q = q_slice[(first_row + r) * STRIDE + first + c];
                    [[unroll]] for (uint i = 0; i < KEYS_OF; i++)
                        [[unroll]] for (uint e = 0; e < 4; e++)
                            chain[r * KEYS_OF + i] = fma(unpackFloat2x16(q[e]), unpackFloat2x16(k[i][e]),
                                                         chain[r * KEYS_OF + i]);
                }
            }
            [[unroll]] for (uint i = 0; i < MINE * KEYS_OF; i++)
                score[i] += float(chain[i].x) + float(chain[i].y);
        }
    }
    [[unroll]] for (uint r = 0; r < MINE; r++) {
        float unit = q_unit[first_row + r] / top_value;
        [[unroll]] for (uint i = 0; i < KEYS_OF; i++)
            scores[(first_row + r) * SCORE_STRIDE + column + 16 * i] =
                softcap_of(score[r * KEYS_OF + i] * unit, p.softcap);
    }
    barrier();
}

float keep_weight(uint key, uint row, float w)
{
    float16_t rounded = float16_t(w * top_value);
    weights[key * (ROWS / 2 + 1) + row / 2][row % 2] = rounded;
    return float(rounded);
}

float weight_of_one() { return top_value; }

void add_slice(uint slice, uint slot, uint n)
{
    [[unroll]] for (uint i = 0; i < V_MINE * 2; i++) acc[slice * V_MINE * 2 + i] *= shrink[first_v_row + i / 2];
    [[dont_unroll]] for (uint first = 0; first < TILE; first += V_KEYS) {
        barrier();
        load_slice(p.v_cache, slot, n, first, slice * V_LANES, V_LANES);
        barrier();
        [[dont_unroll]] for (uint chain_key = 0; chain_key < V_KEYS; chain_key += CHAIN) {
            f16vec2 chain[V_MINE * 4];
            [[unroll]] for (uint i = 0; i < V_MINE * 4; i++) chain[i] = f16vec2(0);
            [[dont_unroll]] for (uint four = chain_key; four < chain_key + CHAIN; four += 4) {
                [[unroll]] for (uint k = 0; k < 4; k++) {
                    uvec4 v = kv_slice[(four + k) * (V_LANES + 1) + v_column];
                    [[unroll]] for (uint r = 0; r < V_MINE; r++) {
                        float16_t w = weights[(first + four + k) * (ROWS / 2 + 1) + (first_v_row + r) / 2][r % 2];
                        [[unroll]] for (uint e = 0; e < 4; e++)
                            chain[r * 4 + e] = fma(f16vec2(w), unpackFloat2x16(v[e]), chain[r * 4 + e]);
                    }
                }
            }
            [[unroll]] for (uint i = 0; i < V_MINE * 2; i++)
                acc[slice * V_MINE * 2 + i] += vec4(chain[2 * i], chain[2 * i + 1]);
        }
    }
}

/* By slices of 128 elements, of 512 at most; not in a loop, as in attention_tile.comp. */
void add_values(uint slot, uint n)
{
    barrier();
    add_slice(0, slot, n);
    if (V_SLICES > 1) add_slice(1, slot, n);
    if (V_SLICES > 2) add_slice(2, slot, n);
    if (V_SLICES > 3) add_slice(3, slot, n);
}

/* Whether all that it wrote is finite. */
bool write_result()
{
    bool fits = true;
    [[unroll]] for (uint r = 0; r < V_MINE; r++) {
        uint row = first_v_row + r, token = first_token + row / HEADS;
        float all = total_of(row);
        if (token >= p.n_tokens) continue;
        [[unroll]] for (uint i = 0; i < V_SLICES * 2; i++) {
            uint eight = i / 2 * V_LANES + v_column;
            uint at = (token * p.y_stride + (first_head + row % HEADS) * HEAD_DIM) / 4 + 2 * eight + i % 2;
            vec4 y = acc[(i / 2 * V_MINE + r) * 2 + i % 2] * (1.0 / all);
            fits = fits && is_finite(y.x) && is_finite(y.y) && is_finite(y.z) && is_finite(y.w);
            if (eight < EIGHTS) pd_vec4s_written(uvec2(p.y)).at[at] = y;
        }
    }
    return fits;
}

void main()
{
    find_queries();
    first_row = me / 16 * MINE;
    column = me % 16;
    first_v_row = me / V_LANES * V_MINE;
    v_column = me % V_LANES;
    find_q_units();
    for (top_value = FIRST_TOP; top_value >= LAST_TOP; top_value *= LAST_TOP * LAST_TOP) {
        [[unroll]] for (uint i = 0; i < V_SLICES * V_MINE * 2; i++) acc[i] = vec4(0);
        overflown = false;
        attend_all();
        if (!write_result()) overflown = true;
        barrier();
        if (!overflown) break;
        barrier();
    }
}

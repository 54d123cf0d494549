#version 460
/* Attention of prompts where there is no packed fp16 (see attention_tile.glsl), in fp32. Scores by multiplying slices
 * of 64 elements of queries and keys through shared memory, and the weighted values added by slices in the same way;
 * sums stay in registers. Compilers that unroll the long loops too hoist their loads until registers spill. The
 * workgroup is of 128 or, where that would be too many sums for an invocation, 256. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

#define ROWS 32
#define TILE 32
#define SCORE_STRIDE (TILE + 1)
#include "attention_tile.glsl"

#define SLICE 16           /* vec4s of a head's elements at a time */
#define STRIDE (SLICE + 1)

const uint SLICES = (QUADS + SLICE - 1) / SLICE;
const uint MINE = ROWS * 16 / gl_WorkGroupSize.x;            /* rows of an invocation */

shared vec4 q_slice[ROWS * STRIDE], kv_slice[TILE * STRIDE];
shared float weights[TILE * (ROWS + 4)];         /* [key][row] */

/* Of this invocation: rows first_row .. + MINE - 1 by keys column and column + 16, and by vec4 column. */
uint first_row, column;
vec4 acc[8 * MINE];        /* [slice][row] */

void load_queries(uint slice)
{
    for (uint i = me; i < ROWS * SLICE; i += gl_WorkGroupSize.x) {
        uint row = i / SLICE, quad = slice * SLICE + i % SLICE;
        q_slice[row * STRIDE + i % SLICE] =
            quad < QUADS ? pd_vec4s(uvec2(p.q)).at[query_of(row) + quad] * p.scale : vec4(0);
    }
}

/* Past the last key that one stands in. */
void load_slice(SIDE(uint side) pd_words cache, uint slot, uint n, uint slice)
{
    [[dont_unroll]] for (uint i = me; i < TILE * SLICE; i += gl_WorkGroupSize.x) {
        uint quad = slice * SLICE + i % SLICE, key = slot + min(i / SLICE, n - 1);
        uint row = kv_row(SIDE(side) key * p.n_kv_heads + kv_head);
        kv_slice[i / SLICE * STRIDE + i % SLICE] = quad < QUADS ? kv_quad(SIDE(side) cache, row, 4 * quad) : vec4(0);
    }
}

void score_tile(uint slot, uint n)
{
    vec2 score[MINE];
    [[unroll]] for (uint r = 0; r < MINE; r++) score[r] = vec2(0);
    [[dont_unroll]] for (uint slice = 0; slice < SLICES; slice++) {
        barrier();
        load_queries(slice);
        load_slice(SIDE(PD_KEYS) p.k_cache, slot, n, slice);
        barrier();
        vec2 of_slice[MINE];   /* sums of sums lose less */
        [[unroll]] for (uint r = 0; r < MINE; r++) of_slice[r] = vec2(0);
        [[dont_unroll]] for (uint c = 0; c < SLICE; c++) {
            vec4 k0 = kv_slice[column * STRIDE + c], k1 = kv_slice[(column + 16) * STRIDE + c];
            [[unroll]] for (uint r = 0; r < MINE; r++) {
                vec4 q = q_slice[(first_row + r) * STRIDE + c];
                of_slice[r] += vec2(dot(q, k0), dot(q, k1));
            }
        }
        [[unroll]] for (uint r = 0; r < MINE; r++) score[r] += of_slice[r];
    }
    [[unroll]] for (uint r = 0; r < MINE; r++)
        [[unroll]] for (uint i = 0; i < 2; i++)
            scores[(first_row + r) * SCORE_STRIDE + column + 16 * i] = softcap_of(score[r][i], p.softcap);
    barrier();
}

float keep_weight(uint key, uint row, float w)
{
    weights[key * (ROWS + 4) + row] = w;
    return w;
}

float weight_of_one() { return 1.0; }

void add_slice(uint slice, uint slot, uint n)
{
    barrier();
    load_slice(SIDE(PD_VALUES) p.v_cache, slot, n, slice);
    barrier();
    [[unroll]] for (uint r = 0; r < MINE; r++) acc[slice * MINE + r] *= shrink[first_row + r];
    [[dont_unroll]] for (uint key = 0; key < TILE; key++) {
        vec4 v = kv_slice[key * STRIDE + column];
        [[unroll]] for (uint r = 0; r < MINE; r++)
            acc[slice * MINE + r] += weights[key * (ROWS + 4) + first_row + r] * v;
    }
}

/* Slices of 64 elements, of 512 at most; not in a loop, as Mesa may not unroll one that has loops inside, and then
 * looks for sums by their index. */
void add_values(uint slot, uint n)
{
    add_slice(0, slot, n);
    if (SLICES > 1) add_slice(1, slot, n);
    if (SLICES > 2) add_slice(2, slot, n);
    if (SLICES > 3) add_slice(3, slot, n);
    if (SLICES > 4) add_slice(4, slot, n);
    if (SLICES > 5) add_slice(5, slot, n);
    if (SLICES > 6) add_slice(6, slot, n);
    if (SLICES > 7) add_slice(7, slot, n);
}

void write_result()
{
    [[unroll]] for (uint r = 0; r < MINE; r++) {
        uint row = first_row + r, token = first_token + row / HEADS;
        float all = total_of(row);
        if (token >= p.n_tokens) continue;
        [[unroll]] for (uint slice = 0; slice < SLICES; slice++) {
            uint quad = slice * SLICE + column;
            uint at = (token * p.y_stride + (first_head + row % HEADS) * HEAD_DIM) / 4 + quad;
            if (quad < QUADS) pd_vec4s_written(uvec2(p.y)).at[at] = acc[slice * MINE + r] * (1.0 / all);
        }
    }
}

void main()
{
    find_queries();
    first_row = me / 16 * MINE;
    column = me % 16;
    [[unroll]] for (uint i = 0; i < SLICES * MINE; i++) acc[i] = vec4(0);
    attend_all();
    write_result();
}

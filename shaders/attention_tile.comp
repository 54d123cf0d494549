#version 460
/* attention.comp for many positions at once: a workgroup takes ROWS queries (HEADS query heads that share a kv head, of
 * ROWS / HEADS positions), so that a key or value that is read serves them all. Per tile of KEYS keys: scores by
 * multiplying slices of 64 elements through shared memory, online softmax with some invocations to a row, and the
 * weighted values added by slices in the same way; sums stay in registers. Tiles that no query of the workgroup sees
 * are not visited. Compilers that unroll the long loops too hoist their loads until registers spill. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

#define ROWS 32
#define KEYS 32
#define SLICE 16           /* vec4s of a head's elements at a time */
#define STRIDE (SLICE + 1)
#define LOWEST -1e30       /* finite: -inf minus -inf would be NaN */
#define UNSEEN -2e30

layout(local_size_x_id = 0) in;   /* 128 or, where that would be too many sums for an invocation, 256 */
layout(constant_id = 1) const uint HEAD_DIM = 256;
layout(constant_id = 2) const uint HEADS = 1;    /* divides GROUP and ROWS */
layout(constant_id = 3) const uint GROUP = 1;    /* query heads per kv head */
layout(push_constant) uniform Push { pd_attention_push p; };
#include "kv.glsl"

const uint QUADS = HEAD_DIM / 4, SLICES = (QUADS + SLICE - 1) / SLICE;
const uint MINE = ROWS * 16 / gl_WorkGroupSize.x;            /* rows of an invocation */
/* Invocations of a row in the softmax, and scores of each. */
const uint LINE = gl_WorkGroupSize.x / ROWS, RUN = KEYS / LINE;

shared vec4 q_slice[ROWS * STRIDE], kv_slice[KEYS * STRIDE];
shared float scores[ROWS * (KEYS + 1)];
shared float weights[KEYS * (ROWS + 4)];         /* [key][row] */
shared float part[gl_WorkGroupSize.x], shrink[ROWS];

uint me, first_head, kv_head, first_token;
/* Of this invocation: rows first_row .. + MINE - 1 by keys column and column + 16, and by vec4 column. */
uint first_row, column;
vec4 acc[SLICES * MINE];   /* [slice][row] */
float maximum, sum;        /* of row me / LINE; this invocation's part of its sum */

uint token_of(uint row) { return min(first_token + row / HEADS, p.n_tokens - 1); }

void load_queries(uint slice)
{
    for (uint i = me; i < ROWS * SLICE; i += gl_WorkGroupSize.x) {
        uint row = i / SLICE, quad = slice * SLICE + i % SLICE;
        uint at = (token_of(row) * p.q_stride + (first_head + row % HEADS) * HEAD_DIM) / 4 + quad;
        q_slice[row * STRIDE + i % SLICE] = quad < QUADS ? pd_vec4s(uvec2(p.q)).at[at] * p.scale : vec4(0);
    }
}

/* Past the last key that one stands in. */
void load_slice(pd_words cache, uint slot, uint n, uint slice)
{
    [[dont_unroll]] for (uint i = me; i < KEYS * SLICE; i += gl_WorkGroupSize.x) {
        uint quad = slice * SLICE + i % SLICE, key = slot + min(i / SLICE, n - 1);
        uint row = kv_row(key * p.n_kv_heads + kv_head);
        kv_slice[i / SLICE * STRIDE + i % SLICE] = quad < QUADS ? kv_quad(cache, row, 4 * quad) : vec4(0);
    }
}

void score_tile(uint slot, uint n)
{
    vec2 score[MINE];
    [[unroll]] for (uint r = 0; r < MINE; r++) score[r] = vec2(0);
    [[dont_unroll]] for (uint slice = 0; slice < SLICES; slice++) {
        barrier();
        load_queries(slice);
        load_slice(p.k_cache, slot, n, slice);
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
            scores[(first_row + r) * (KEYS + 1) + column + 16 * i] = softcap_of(score[r][i], p.softcap);
    barrier();
}

/* Scores become weights. A query sees keys of its own text, from its window's first to its last. */
void softmax_tile(uint text, uint first, uint end)
{
    uint row = me / LINE, at = RUN * (me % LINE);
    pd_place place = p.places.at[token_of(row)];
    uint lowest = p.window != 0 && place.pos + 1 > p.window ? place.pos + 1 - p.window : 0;
    float score[RUN], top = maximum;
    [[unroll]] for (uint i = 0; i < RUN; i++) {
        uint key = first + at + i;
        bool sees = place.text == text && key >= lowest && key <= place.last && key < end;
        score[i] = sees ? scores[row * (KEYS + 1) + at + i] : UNSEEN;
        top = max(top, score[i]);
    }
    part[me] = top;
    barrier();
    [[unroll]] for (uint i = 0; i < LINE; i++) top = max(top, part[LINE * row + i]);
    float scale = exp(maximum - top);
    maximum = top;
    sum *= scale;
    if (me % LINE == 0) shrink[row] = scale;
    [[unroll]] for (uint i = 0; i < RUN; i++) {
        float w = score[i] == UNSEEN ? 0.0 : softmax_weight(score[i], top);
        sum += w;
        weights[(at + i) * (ROWS + 4) + row] = w;
    }
}

void add_values(uint slot, uint n)
{
    [[unroll]] for (uint slice = 0; slice < SLICES; slice++) {
        barrier();
        load_slice(p.v_cache, slot, n, slice);
        barrier();
        [[unroll]] for (uint r = 0; r < MINE; r++) acc[slice * MINE + r] *= shrink[first_row + r];
        [[dont_unroll]] for (uint key = 0; key < KEYS; key++) {
            vec4 v = kv_slice[key * STRIDE + column];
            [[unroll]] for (uint r = 0; r < MINE; r++)
                acc[slice * MINE + r] += weights[key * (ROWS + 4) + first_row + r] * v;
        }
    }
}

/* Keys begin .. end - 1 of the text. */
void attend(uint text, uint begin, uint end)
{
    for (uint first = begin, n; first < end; first += n) {
        uint slot = slot_of_key(p.pages, text, first, end - 1);
        n = slots_of_tile(text + first, KEYS, end - first);
        score_tile(slot, n);
        softmax_tile(text, first, first + n);
        add_values(slot, n);
    }
}

void write_result()
{
    barrier();
    part[me] = sum;
    barrier();
    [[unroll]] for (uint r = 0; r < MINE; r++) {
        uint row = first_row + r, token = first_token + row / HEADS;
        float all = 0;
        [[unroll]] for (uint i = 0; i < LINE; i++) all += part[LINE * row + i];
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
    me = gl_LocalInvocationID.x;
    first_row = me / 16 * MINE;
    column = me % 16;
    first_head = gl_WorkGroupID.x * HEADS;
    kv_head = first_head / GROUP;
    first_token = gl_WorkGroupID.z * (ROWS / HEADS);
    maximum = LOWEST;
    sum = 0.0;
    [[unroll]] for (uint i = 0; i < SLICES * MINE; i++) acc[i] = vec4(0);
    uint end_token = min(first_token + ROWS / HEADS, p.n_tokens);
    for (uint t = first_token; t < end_token;) {   /* the positions of one text at a time */
        /* As past the last turn what a place says is an address, too: see slot_of_key. */
        pd_place place = p.places.at[min(t, end_token - 1)];
        uint last = place.last;
        for (t++; t < end_token && p.places.at[min(t, end_token - 1)].text == place.text; t++)
            last = max(last, p.places.at[min(t, end_token - 1)].last);
        uint begin = p.window != 0 && place.pos + 1 > p.window ? place.pos + 1 - p.window : 0;
        attend(place.text, begin - begin % KEYS, last + 1);   /* sums do not depend on `begin` */
    }
    write_result();
}

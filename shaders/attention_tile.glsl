/* What kernels of attention for many positions at once have in common: which tiles of keys a workgroup visits, and the
 * online softmax in fp32. A workgroup takes ROWS queries (HEADS query heads that share a kv head, of ROWS / HEADS
 * positions), so that a key or value that is read serves them all. Tiles that no query of the workgroup sees are not
 * visited. Kernels define ROWS, KEYS (of a tile) and SCORE_STRIDE before, and
 *   score_tile(slot, n)          scores of the n keys from a slot on, to `scores`
 *   keep_weight(key, row, w)     puts a weight where add_values reads it; returns what is to be counted
 *   add_values(slot, n)          rescales the sums by `shrink`, and adds the weighted values
 * after it. */
#define LOWEST -1e30       /* finite: -inf minus -inf would be NaN */
#define UNSEEN -2e30

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint HEAD_DIM = 256;
layout(constant_id = 2) const uint HEADS = 1;    /* divides GROUP and ROWS */
layout(constant_id = 3) const uint GROUP = 1;    /* query heads per kv head */
layout(push_constant) uniform Push { pd_attention_push p; };
#include "kv.glsl"

const uint QUADS = HEAD_DIM / 4;
/* Invocations of a row in the softmax, and scores of each. */
const uint LINE = gl_WorkGroupSize.x / ROWS, RUN = KEYS / LINE;

shared float scores[ROWS * SCORE_STRIDE];
shared float part[gl_WorkGroupSize.x], shrink[ROWS];

uint me, first_head, kv_head, first_token;
float maximum, sum;        /* of row me / LINE; this invocation's part of its sum */

void score_tile(uint slot, uint n);
float keep_weight(uint key, uint row, float w);
void add_values(uint slot, uint n);

uint token_of(uint row) { return min(first_token + row / HEADS, p.n_tokens - 1); }

/* Where a row's head begins in q, in vec4s. */
uint query_of(uint row) { return (token_of(row) * p.q_stride + (first_head + row % HEADS) * HEAD_DIM) / 4; }

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
        score[i] = sees ? scores[row * SCORE_STRIDE + at + i] : UNSEEN;
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
        sum += keep_weight(at + i, row, w);
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

void find_queries()
{
    me = gl_LocalInvocationID.x;
    first_head = gl_WorkGroupID.x * HEADS;
    kv_head = first_head / GROUP;
    first_token = gl_WorkGroupID.z * (ROWS / HEADS);
}

void attend_all()
{
    maximum = LOWEST;
    sum = 0.0;
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
    barrier();
    part[me] = sum;
    barrier();
}

float sum_of(uint row)
{
    float all = 0;
    [[unroll]] for (uint i = 0; i < LINE; i++) all += part[LINE * row + i];
    return all;
}

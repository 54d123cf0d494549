/* What kernels of attention for many positions at once have in common beyond attention.glsl. A workgroup takes ROWS
 * queries (HEADS query heads that share a kv head, of ROWS / HEADS positions), so that a key or value that is read
 * serves them all; tiles that no query of the workgroup sees are not visited. Scores are shared by all invocations, and
 * some invocations are each query's in the softmax, which is in fp32.
 * Kernels define ROWS (a multiple of HEADS), TILE and SCORE_STRIDE before, and beside what attention.glsl asks for
 *   keep_weight(key, row, w)     puts a weight where add_values reads it; returns what is to be counted
 *   weight_of_one()              what is to be counted of a weight of 1
 * after it; or, in place of SCORE_STRIDE and keep_weight, IN_RUNS and
 *   read_scores(row, at, score)  what score_tile has left of RUN keys of the tile from number `at` on
 *   keep_weights(row, at, w)     puts their weights where add_values reads them; returns what is to be counted.
 * Those whose accesses of shared memory barrier() does not order define TILE_BARRIER, GET and PUT before. */
#ifndef TILE_BARRIER
#define TILE_BARRIER() barrier()
#define GET(from) from
#define PUT(to, value) to = value
#endif
#include "attention.glsl"

const uint QUADS = HEAD_DIM / 4;
/* Invocations of a row in the softmax, and scores of each. */
const uint LINE = gl_WorkGroupSize.x / ROWS, RUN = TILE / LINE;

#ifndef IN_RUNS
shared float scores[ROWS * SCORE_STRIDE];
#endif
shared float part[gl_WorkGroupSize.x], shrink[ROWS];

uint me, first_token;
float maximum, total;      /* of row me / LINE; of its total this invocation's part */

#ifdef IN_RUNS
void read_scores(uint row, uint at, out float score[RUN]);
float keep_weights(uint row, uint at, float w[RUN]);
#else
float keep_weight(uint key, uint row, float w);
#endif
float weight_of_one();

uint token_of(uint row) { return min(first_token + row / HEADS, p.n_tokens - 1); }

/* Where a row's head begins in q, in vec4s. */
uint query_of(uint row) { return (token_of(row) * p.q_stride + (first_head + row % HEADS) * HEAD_DIM) / 4; }

void softmax_tile(uint text, uint first, uint n)
{
    uint end = first + n;
    uint row = me / LINE, at = RUN * (me % LINE);
    pd_place place = p.places.at[token_of(row)];
    uint lowest = first_key(place.pos);
    float score[RUN], top = maximum;
#ifdef IN_RUNS
    read_scores(row, at, score);
#define SCORE(i) score[i]
#else
#define SCORE(i) scores[row * SCORE_STRIDE + at + i]
#endif
    [[unroll]] for (uint i = 0; i < RUN; i++) {
        uint key = first + at + i;
        bool is_seen = place.text == text && key >= lowest && key <= place.last && key < end;
        score[i] = is_seen ? SCORE(i) : UNSEEN;
        top = max(top, score[i]);
    }
    PUT(part[me], top);
    TILE_BARRIER();
    [[unroll]] for (uint i = 0; i < LINE; i++) top = max(top, GET(part[LINE * row + i]));
    float scale = rescale_total(maximum, total, top);
    if (me % LINE == 0) PUT(shrink[row], scale);
#ifdef IN_RUNS
    [[unroll]] for (uint i = 0; i < RUN; i++) score[i] = weight_of(score[i], top);
    total += keep_weights(row, at, score);
#else
    [[unroll]] for (uint i = 0; i < RUN; i++) total += keep_weight(at + i, row, weight_of(score[i], top));
#endif
}

void find_queries()
{
    me = gl_LocalInvocationID.x;
    first_token = gl_WorkGroupID.z * (ROWS / HEADS);
    find_heads();
}

void attend_all()
{
    maximum = first_maximum(me / LINE % HEADS);
    total = me % LINE == 0 ? first_total() * weight_of_one() : 0.0;
    attend_texts(first_token, ROWS / HEADS);
    TILE_BARRIER();
    PUT(part[me], total);
    TILE_BARRIER();
}

float total_of(uint row)
{
    float all = 0;
    [[unroll]] for (uint i = 0; i < LINE; i++) all += GET(part[LINE * row + i]);
    return all;
}

/* What all kernels of attention have in common: which keys a position sees, in which tiles they are visited, and the
 * running softmax. For each query q, over the keys k that it sees and their values v,
 *   y = softmax(softcap(scale q . k)) v
 * (Vaswani et al. 2017, arXiv:1706.03762; softcap: Gemma 2, arXiv:2408.00118), in one walk over the keys, so that no
 * matrix of scores is ever in memory. Of the scores s of a tile, the maximum m, the total l and the sums o so far:
 *   m' = max(m, max s)   shrink = exp(m - m')   l' = l shrink + sum exp(s - m')   o' = o shrink + sum exp(s - m') v
 * A head may have a sink (SINKS): one more score, without a value, with which m begins, and l with its weight of 1. In
 * a decode step, whose kernels see a part of the keys, it is for attention_reduce.comp.
 * And in the end y = o / l (Milakov and Gimelshein 2018, arXiv:1805.02867; Dao et al. 2022, arXiv:2205.14135).
 * Kernels define TILE, the keys of a tile, which divides PD_PAGE, before, and
 *   score_tile(slot, n)             the scores of the n keys from a slot on
 *   softmax_tile(text, first, n)    makes weights of them; those are keys first .. first + n - 1 of a text
 *   add_values(slot, n)             shrinks the sums, and adds the weighted values
 * after it, each with the barriers that it needs. */
#define LOWEST -1e30       /* finite: -inf minus -inf would be NaN */
#define UNSEEN -2e30       /* the score of a key that a query does not see; below every maximum */

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint HEAD_DIM = 256;
layout(constant_id = 2) const uint HEADS = 1;    /* query heads of a workgroup; divides GROUP */
layout(constant_id = 3) const uint GROUP = 1;    /* query heads per kv head */
layout(constant_id = PD_SINKS_ID) const bool SINKS = false;
layout(push_constant) uniform Push { pd_attention_push p; };
#include "kv.glsl"

uint first_head, kv_head;   /* of the workgroup */
bool is_new;                /* whether the tile is the last key, by itself: see attend */

void score_tile(uint slot, uint n);
void softmax_tile(uint text, uint first, uint n);
void add_values(uint slot, uint n);

/* ---- the running softmax ---- */

/* Raises the maximum to `top`, which is not below it; returns what older sums shrink by. */
float rescale_total(inout float maximum, inout float total, float top)
{
    float shrink = exp(maximum - top);
    maximum = top;
    total *= shrink;
    return shrink;
}

/* What the maximum and the total of query head h of the workgroup begin with. */
float first_maximum(uint h) { return SINKS ? p.sinks.at[first_head + h] : LOWEST; }
float first_total() { return SINKS ? 1.0 : 0.0; }

float weight_of(float score, float top) { return score == UNSEEN ? 0.0 : softmax_weight(score, top); }

/* ---- the keys ---- */

void find_heads()
{
    first_head = gl_WorkGroupID.x * HEADS;
    kv_head = first_head / GROUP;
}

uint row_of(SIDE(uint side) uint slot) { return kv_row(SIDE(side) slot * p.n_kv_heads + kv_head); }

/* Of the window of a position. */
uint first_key(uint pos) { return p.window != 0 && pos + 1 > p.window ? pos + 1 - p.window : 0; }

/* Keys begin .. end - 1 of the text, whose last one is `last`. With has_new that one, if it is of them, is a tile of
 * its own, as it is not in the cache. */
void attend(uint text, uint begin, uint end, uint last, bool has_new)
{
    for (uint first = begin, n; first < end; first += n) {
        is_new = has_new && first == last;
        uint slot = slot_of_key(p.pages, text, first, last);
        n = is_new ? 1 : slots_of_tile(text + first, TILE, (has_new ? min(end, last) : end) - first);
        score_tile(slot, n);
        softmax_tile(text, first, n);
        add_values(slot, n);
    }
}

/* What n positions from first_token on see, those of one text at a time. */
void attend_texts(uint first_token, uint n)
{
    uint end_token = min(first_token + n, p.n_tokens);
    for (uint t = first_token; t < end_token;) {
        /* As past the last turn what a place says is an address, too: see slot_of_key. */
        pd_place place = p.places.at[min(t, end_token - 1)];
        uint last = place.last;
        for (t++; t < end_token && p.places.at[min(t, end_token - 1)].text == place.text; t++)
            last = max(last, p.places.at[min(t, end_token - 1)].last);
        uint begin = first_key(place.pos);
        attend(place.text, begin - begin % TILE, last + 1, last, false);   /* sums do not depend on `begin` */
    }
}

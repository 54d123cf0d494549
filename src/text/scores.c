/* Why scores say exactly what a list of merges says. Hugging Face's BPE merges, again and again, the adjacent symbols
 * whose pair has the lowest rank; sentencepiece those that together are the piece with the highest score; both the
 * leftmost of equals. A list may have several pairs for one piece, at any ranks. But:
 *
 *     In either, a piece P is only ever made of one pair, the last that merging the text of P by itself comes to.
 *
 * Say P is about to be made of the symbols x y somewhere in a text. No merge has reached over the ends of x y so far,
 * and a choice among all candidates is, when it falls inside x y, the choice among the candidates inside. So the merges
 * inside were those of P by itself, in their order; they are determined, each leaves one symbol less, and there is one
 * state of two symbols.
 *
 * So let the score of P fall with the rank of that pair, and let sentencepiece not know of the pieces that merging
 * their own text does not come to (where x y make up one of those, the list does not have the pair). Then both have the
 * same candidates in the same order in every state that they reach. Nothing is asked of the order of the list. */
#include "text/scores.h"

#include "base/utf8.h"
#include "text/merger.h"

#include <stdlib.h>

enum { MAX_MERGES = 1 << 24 };   /* ranks that a float tells apart */

/* The characters of a piece as symbols; *known is false when one of them is no piece, and merges with nothing. */
static peridot_status push_characters(struct pd_merge_row *row, bool *known, const struct pd_pieces *p,
                                      const struct pd_piece_index *index, uint32_t id)
{
    const char *text = pd_pieces_text(p, id);
    size_t size = p->piece[id].size, length;
    *known = true;
    for (size_t i = 0; i < size && *known; i += length) {
        uint32_t code;
        pd_utf8_next(&code, &length, text + i, size - i);
        int32_t character = pd_piece_index_find(index, p, text + i, length);
        *known = character >= 0 && pd_pieces_is_plain(p, (uint32_t)character);
        if (*known) PD_TRY(pd_merge_row_push(row, (uint32_t)character));
    }
    return PERIDOT_OK;
}

static peridot_status score(float *scores, const struct pd_pieces *p, const struct pd_piece_index *index,
                            const struct pd_merge_table *table, struct pd_merge_row *row, struct pd_ids *made)
{
    for (uint32_t id = 0; id < p->n; id++) {
        bool known;
        row->n = 0;
        made->n = 0;
        scores[id] = 0;
        if (!pd_pieces_is_plain(p, id)) continue;
        PD_TRY(push_characters(row, &known, p, index, id));
        if (known) PD_TRY(pd_merge_row_finish(made, row, table));
        uint32_t rank = made->n == 1 ? row->last_rank : UINT32_MAX;
        scores[id] = -(float)(rank < p->n_merges ? rank : p->n_merges + 1);
    }
    return PERIDOT_OK;
}

peridot_status pd_scores_from_merges(float *scores, const struct pd_pieces *p)
{
    struct pd_piece_index index;
    struct pd_merge_table table = {0};
    struct pd_merge_row row = {0};
    struct pd_ids made = {0};
    if (p->n_merges >= MAX_MERGES) return pd_fail(PERIDOT_ERROR_FORMAT, "the vocabulary has too many merges");
    peridot_status status = pd_piece_index_create(&index, p);
    if (status == PERIDOT_OK) status = pd_merge_table_create(&table, p);
    if (status == PERIDOT_OK) status = score(scores, p, &index, &table, &row, &made);
    pd_piece_index_free(&index);
    pd_merge_table_free(&table);
    pd_merge_row_free(&row);
    free(made.data);
    return status;
}

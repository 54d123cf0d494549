/* A list of merges of characters as what sentencepiece takes: a score for each piece. */
#ifndef PD_TEXT_SCORES_H
#define PD_TEXT_SCORES_H

#include "text/piece_index.h"

/* Sets the score of every piece, marks those that no merging makes as unreachable, and frees the merges. p is
 * CHAR_MERGES and complete, and the index is of its pieces. */
peridot_status pd_scores_from_merges(struct pd_pieces *p, const struct pd_piece_index *index);

#endif

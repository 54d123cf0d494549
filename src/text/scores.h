/* A list of merges of characters as what files for sentencepiece take: a score for each piece. */
#ifndef PD_TEXT_SCORES_H
#define PD_TEXT_SCORES_H

#include "text/piece_index.h"

/* scores [p->n]: the lowest of all is that of single characters, and of pieces that no merging makes. p is CHAR_MERGES
 * and complete. */
peridot_status pd_scores_from_merges(float *scores, const struct pd_pieces *p);

#endif

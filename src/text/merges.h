/* The merges of a vocabulary, from the pairs of texts that files list, into pd_pieces.merges. A pair must name pieces and
 * make a piece. A pair with a control or byte piece in it is left out: plain text must never make one. */
#ifndef PD_TEXT_MERGES_H
#define PD_TEXT_MERGES_H

#include "text/piece_index.h"

struct pd_merge_reader {
    struct pd_pieces *pieces;          /* complete but for the merges */
    const struct pd_piece_index *index;
    struct pd_text_buffer bytes;       /* of the pair at hand */
    size_t capacity;
    uint32_t n_read;
};

/* Adds one pair, given as two texts, or as one with a space between them ("t he"). After the last one, or a failure, end
 * frees what the reader needed. */
peridot_status pd_merges_add(struct pd_merge_reader *r, const char *left, size_t left_size, const char *right,
                             size_t right_size);
peridot_status pd_merges_add_line(struct pd_merge_reader *r, const char *line, size_t size);
void pd_merges_end(struct pd_merge_reader *r);

#endif

/* The merges of a vocabulary, from the pairs of texts that files list, into pd_pieces.merges. A pair must name pieces
 * and make a piece. A pair with a control or byte piece in it is left out: plain text must never make one. Merges of
 * characters become scores at the end. */
#ifndef PD_TEXT_MERGES_H
#define PD_TEXT_MERGES_H

#include "text/piece_index.h"

struct pd_merge_reader {
    struct pd_pieces *pieces;
    struct pd_piece_index index;
    struct pd_text_buffer bytes;       /* of the pair at hand */
    size_t capacity;
    uint32_t n_read;
    uint32_t made;                     /* by the pair before, and often by the next one, too; UINT32_MAX: none */
};

/* `p` is complete but for the merges. *out must be ended even on failure. */
peridot_status pd_merges_begin(struct pd_merge_reader *out, struct pd_pieces *p);
/* Adds one pair, given as two texts, or as one with a space between them ("t he"). */
peridot_status pd_merges_add(struct pd_merge_reader *r, const char *left, size_t left_size, const char *right,
                             size_t right_size);
peridot_status pd_merges_add_line(struct pd_merge_reader *r, const char *line, size_t size);
/* After the last one, or a failure (status): frees what the reader needed. Gives the status, or its own. */
peridot_status pd_merges_end(struct pd_merge_reader *r, peridot_status status);

#endif

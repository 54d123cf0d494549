/* Pieces by their text, for tokenizers that merge by a list: a hash table over the table of pieces. */
#ifndef PD_TEXT_PIECE_INDEX_H
#define PD_TEXT_PIECE_INDEX_H

#include "base/siphash.h"
#include "text/pieces.h"

struct pd_piece_index {
    uint32_t *slots;      /* id + 1; 0: free */
    uint32_t mask;        /* number of slots - 1 */
    struct pd_hash_key key;
};

/* Of BYTE_MERGES only what merges can make (NORMAL), since the others' text is in another spelling; else of all pieces.
 * Two pieces with one text are refused. *out must be freed even on failure. */
peridot_status pd_piece_index_create(struct pd_piece_index *out, const struct pd_pieces *p);
void pd_piece_index_free(struct pd_piece_index *x);
/* -1: none. */
int32_t pd_piece_index_find(const struct pd_piece_index *x, const struct pd_pieces *p, const char *text, size_t size);

#endif

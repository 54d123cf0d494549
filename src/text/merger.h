/* Byte-pair encoding proper: a row of symbols, of which the pair with the best merge becomes one, until no pair has
 * any. The symbols are a linked list and the candidates a heap, so n symbols take n log n whatever they are. Of equal
 * merges the leftmost comes first, as in Hugging Face's tokenizers. */
#ifndef PD_TEXT_MERGER_H
#define PD_TEXT_MERGER_H

#include "base/siphash.h"
#include "text/pieces.h"

struct pd_merge_slot {
    uint32_t left, right, made;
    uint32_t rank;               /* UINT32_MAX: free */
};

struct pd_merge_table {
    struct pd_merge_slot *slots;
    uint32_t mask;
    struct pd_hash_key key;
};

/* One pair twice is refused. *out must be freed even on failure. */
peridot_status pd_merge_table_create(struct pd_merge_table *out, const struct pd_pieces *p);
void pd_merge_table_free(struct pd_merge_table *t);

/* What merging needs, kept from word to word. Zero-initialise ({0}). */
struct pd_merge_row {
    struct pd_symbol *symbols;
    struct pd_candidate *heap;
    uint32_t n, n_heap;
    size_t capacity, heap_capacity;
    uint32_t last_rank;   /* of the last merge; UINT32_MAX: there was none */
};

void pd_merge_row_free(struct pd_merge_row *row);
/* Appends a symbol. */
peridot_status pd_merge_row_push(struct pd_merge_row *row, uint32_t id);
/* Merges the row, appends the ids to *out, and empties the row. */
peridot_status pd_merge_row_finish(struct pd_ids *out, struct pd_merge_row *row, const struct pd_merge_table *t);

#endif

#include "text/piece_index.h"

#include <stdlib.h>
#include <string.h>

/* The slot that holds the text, or the free one where it would go. */
static uint32_t find_slot(const struct pd_piece_index *x, const struct pd_pieces *p, const char *text, size_t size)
{
    uint32_t slot = (uint32_t)pd_siphash(&x->key, text, size) & x->mask;
    for (; x->slots[slot]; slot = (slot + 1) & x->mask) {
        uint32_t id = x->slots[slot] - 1;
        if (p->piece[id].size == size && memcmp(pd_pieces_text(p, id), text, size) == 0) break;
    }
    return slot;
}

static bool is_indexed(const struct pd_pieces *p, uint32_t id)
{
    return p->algorithm != PD_ALGORITHM_BYTE_MERGES || p->piece[id].type == PD_PIECE_NORMAL;
}

peridot_status pd_piece_index_create(struct pd_piece_index *out, const struct pd_pieces *p)
{
    uint32_t n_slots = 64;
    while (n_slots / 2 < p->n) n_slots *= 2;
    *out = (struct pd_piece_index){calloc(n_slots, sizeof *out->slots), n_slots - 1,
        pd_hash_key_make()};
    if (!out->slots) return pd_fail_alloc(n_slots * sizeof *out->slots, "vocabulary");
    for (uint32_t id = 0; id < p->n; id++) {
        if (!is_indexed(p, id)) continue;
        uint32_t slot = find_slot(out, p, pd_pieces_text(p, id), p->piece[id].size);
        if (out->slots[slot])
            return pd_fail(PERIDOT_ERROR_FORMAT, "pieces %u and %u of the vocabulary are the same",
                           out->slots[slot] - 1, id);
        out->slots[slot] = id + 1;
    }
    return PERIDOT_OK;
}

void pd_piece_index_free(struct pd_piece_index *x)
{
    free(x->slots);
    *x = (struct pd_piece_index){0};
}

int32_t pd_piece_index_find(const struct pd_piece_index *x, const struct pd_pieces *p, const char *text, size_t size)
{
    return (int32_t)x->slots[find_slot(x, p, text, size)] - 1;
}

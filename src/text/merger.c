#include "text/merger.h"

#include "base/array.h"

#include <stdlib.h>

enum {
    NONE = -1,
    ASK_EACH = 1 << 14         /* merges of a long word, which are some milliseconds */
};

struct pd_symbol {
    int32_t id;          /* NONE: merged into the one before it */
    int32_t before, after;
};

struct pd_candidate {
    uint32_t rank;
    int32_t at;          /* the left one of the two symbols */
    uint32_t slot;       /* the merge; the symbols may have changed since */
};

/* ---- table ---- */

static uint32_t find_slot(const struct pd_merge_table *t, uint32_t left, uint32_t right)
{
    uint64_t pair = (uint64_t)left << 32 | right;
    uint32_t slot = (uint32_t)pd_siphash(&t->key, &pair, sizeof pair) & t->mask;
    while (t->slots[slot].rank != UINT32_MAX && (t->slots[slot].left != left || t->slots[slot].right != right))
        slot = (slot + 1) & t->mask;
    return slot;
}

peridot_status pd_merge_table_create(struct pd_merge_table *out, const struct pd_pieces *p)
{
    uint32_t n_slots = 64;
    while (n_slots / 2 < p->n_merges) n_slots *= 2;
    *out = (struct pd_merge_table){malloc(n_slots * sizeof *out->slots), n_slots - 1,
        pd_hash_key_make()};
    if (!out->slots) return pd_fail_alloc(n_slots * sizeof *out->slots, "merges");
    for (uint32_t i = 0; i < n_slots; i++) out->slots[i].rank = UINT32_MAX;
    for (uint32_t rank = 0; rank < p->n_merges; rank++) {
        const struct pd_merge *m = &p->merges[rank];
        struct pd_merge_slot *slot = &out->slots[find_slot(out, m->left, m->right)];
        if (slot->rank != UINT32_MAX)
            return pd_fail(PERIDOT_ERROR_FORMAT, "the vocabulary merges pieces %u and %u twice", m->left, m->right);
        *slot = (struct pd_merge_slot){m->left, m->right, m->made, rank};
    }
    return PERIDOT_OK;
}

void pd_merge_table_free(struct pd_merge_table *t)
{
    free(t->slots);
    *t = (struct pd_merge_table){0};
}

/* ---- heap of candidates ---- */

static bool better(const struct pd_candidate *a, const struct pd_candidate *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static peridot_status heap_push(struct pd_merge_row *row, struct pd_candidate c)
{
    PD_TRY(pd_array_reserve(&row->heap, &row->heap_capacity, row->n_heap, 1, sizeof c, "merging"));
    uint32_t i = row->n_heap++;
    for (; i > 0 && better(&c, &row->heap[(i - 1) / 2]); i = (i - 1) / 2) row->heap[i] = row->heap[(i - 1) / 2];
    row->heap[i] = c;
    return PERIDOT_OK;
}

static struct pd_candidate heap_pop(struct pd_merge_row *row)
{
    struct pd_candidate *heap = row->heap, top = heap[0], last = heap[--row->n_heap];
    uint32_t i = 0, child;
    while ((child = 2 * i + 1) < row->n_heap) {
        if (child + 1 < row->n_heap && better(&heap[child + 1], &heap[child])) child++;
        if (!better(&heap[child], &last)) break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return top;
}

/* ---- row ---- */

void pd_merge_row_free(struct pd_merge_row *row)
{
    free(row->symbols);
    free(row->heap);
    *row = (struct pd_merge_row){0};
}

peridot_status pd_merge_row_push(struct pd_merge_row *row, uint32_t id)
{
    PD_TRY(pd_array_reserve(&row->symbols, &row->capacity, row->n, 1, sizeof *row->symbols, "merging"));
    int32_t at = (int32_t)row->n++;
    row->symbols[at] = (struct pd_symbol){(int32_t)id, at - 1, NONE};
    if (at > 0) row->symbols[at - 1].after = at;
    return PERIDOT_OK;
}

/* Makes a candidate of the symbol at `at` and the one after it, if both are there and some merge is for them. */
static peridot_status consider(struct pd_merge_row *row, const struct pd_merge_table *t, int32_t at)
{
    if (at == NONE || row->symbols[at].after == NONE) return PERIDOT_OK;
    int32_t left = row->symbols[at].id, right = row->symbols[row->symbols[at].after].id;
    uint32_t slot = find_slot(t, (uint32_t)left, (uint32_t)right);
    if (t->slots[slot].rank == UINT32_MAX) return PERIDOT_OK;
    return heap_push(row, (struct pd_candidate){t->slots[slot].rank, at, slot});
}

static peridot_status merge(struct pd_merge_row *row, const struct pd_merge_table *t, const struct pd_candidate *c)
{
    const struct pd_merge_slot *slot = &t->slots[c->slot];
    struct pd_symbol *left = &row->symbols[c->at];
    if (left->id != (int32_t)slot->left || left->after == NONE) return PERIDOT_OK;
    struct pd_symbol *right = &row->symbols[left->after];
    if (right->id != (int32_t)slot->right) return PERIDOT_OK;
    row->last_rank = slot->rank;
    left->id = (int32_t)slot->made;
    left->after = right->after;
    if (right->after != NONE) row->symbols[right->after].before = c->at;
    right->id = NONE;
    PD_TRY(consider(row, t, left->before));
    return consider(row, t, c->at);
}

peridot_status pd_merge_row_finish(struct pd_ids *out, struct pd_merge_row *row, const struct pd_merge_table *t)
{
    row->n_heap = 0;
    row->last_rank = UINT32_MAX;
    for (uint32_t i = 0; i + 1 < row->n; i++) PD_TRY(consider(row, t, (int32_t)i));
    for (uint32_t n = 0; row->n_heap; n++) {
        struct pd_candidate best = heap_pop(row);
        if (n % ASK_EACH == ASK_EACH - 1) PD_TRY(pd_ids_go_on(out));
        PD_TRY(merge(row, t, &best));
    }
    for (int32_t at = row->n ? 0 : NONE; at != NONE; at = row->symbols[at].after)
        PD_TRY(pd_ids_append(out, &row->symbols[at].id, 1));
    row->n = 0;
    return PERIDOT_OK;
}

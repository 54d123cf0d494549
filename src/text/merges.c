/* Merging, which knows nothing of texts around a word: the list of merges as files have it, the merging itself (a heap
 * of candidates, so that a long word costs n log n), pieces by their text, and merges as scores, for sentencepiece. */
#include "text/text_.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

peridot_status pd_merges_begin(struct pd_merge_reader *out, struct pd_pieces *p)
{
    *out = (struct pd_merge_reader){.pieces = p, .made = UINT32_MAX};
    return pd_piece_index_create(&out->index, p);
}

/* Appends a half in the spelling of the table of pieces. */
static peridot_status read_half(struct pd_merge_reader *r, const char *text, size_t size)
{
    bool spelt = true;
    if (r->pieces->algorithm == PD_ALGORITHM_BYTE_MERGES) PD_TRY(pd_byte_level_read(&r->bytes, &spelt, text, size));
    else PD_TRY(pd_buffer_add(&r->bytes, text, size));
    if (spelt && size) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_FORMAT, "merge %u of the vocabulary has a half that is not a piece", r->n_read);
}

static peridot_status find_half(uint32_t *id, const struct pd_merge_reader *r, size_t begin, size_t end)
{
    int32_t found = pd_piece_index_find(&r->index, r->pieces, r->bytes.data + begin, end - begin);
    *id = (uint32_t)found;
    if (found >= 0) return PERIDOT_OK;
    char shown[PD_SHOWN_SIZE];
    return pd_fail(PERIDOT_ERROR_FORMAT, "merge %u of the vocabulary names or makes what is not a piece: %s",
                   r->n_read, pd_utf8_shown(shown, r->bytes.data + begin, end - begin));
}

static peridot_status find_made(uint32_t *id, struct pd_merge_reader *r)
{
    const struct pd_pieces *p = r->pieces;
    bool again = r->made < p->n && p->piece[r->made].size == r->bytes.size
        && memcmp(pd_pieces_text(p, r->made), r->bytes.data, r->bytes.size) == 0;
    if (!again) PD_TRY(find_half(&r->made, r, 0, r->bytes.size));
    *id = r->made;
    return PERIDOT_OK;
}

static peridot_status append_merge(struct pd_merge_reader *r, struct pd_merge m)
{
    struct pd_pieces *p = r->pieces;
    if (p->n_merges >= INT32_MAX / 2) return pd_fail(PERIDOT_ERROR_FORMAT, "the vocabulary has too many merges");
    PD_TRY(pd_array_reserve(&p->merges, &r->capacity, p->n_merges, 1, sizeof m, "merges"));
    p->merges[p->n_merges++] = m;
    return PERIDOT_OK;
}

peridot_status pd_merges_add(struct pd_merge_reader *r, const char *left, size_t left_size, const char *right,
                             size_t right_size)
{
    struct pd_merge m;
    r->bytes.size = 0;
    PD_TRY(read_half(r, left, left_size));
    size_t middle = r->bytes.size;
    PD_TRY(read_half(r, right, right_size));
    PD_TRY(find_half(&m.left, r, 0, middle));
    PD_TRY(find_half(&m.right, r, middle, r->bytes.size));
    PD_TRY(find_made(&m.made, r));
    r->n_read++;
    const struct pd_pieces *p = r->pieces;
    bool plain = pd_pieces_is_plain(p, m.left) && pd_pieces_is_plain(p, m.right) && pd_pieces_is_plain(p, m.made);
    return plain ? append_merge(r, m) : PERIDOT_OK;
}

peridot_status pd_merges_add_line(struct pd_merge_reader *r, const char *line, size_t size)
{
    const char *space = size ? memchr(line, ' ', size) : NULL;
    size_t left = space ? (size_t)(space - line) : 0;
    if (!space || memchr(space + 1, ' ', size - left - 1))
        return pd_fail(PERIDOT_ERROR_FORMAT, "merge %u of the vocabulary is not two pieces with a space between them",
                       r->n_read);
    return pd_merges_add(r, line, left, space + 1, size - left - 1);
}

peridot_status pd_merges_end(struct pd_merge_reader *r, peridot_status status)
{
    free(r->bytes.data);
    pd_piece_index_free(&r->index);
    return status;
}

/* ---- merger ---- */

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

/* ---- piece index ---- */

/* The slot that holds the text, or the free one where it would go. */
static uint32_t find_piece_slot(const struct pd_piece_index *x, const struct pd_pieces *p, const char *text,
                                size_t size)
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
        uint32_t slot = find_piece_slot(out, p, pd_pieces_text(p, id), p->piece[id].size);
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
    return (int32_t)x->slots[find_piece_slot(x, p, text, size)] - 1;
}

/* ---- scores ---- */

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

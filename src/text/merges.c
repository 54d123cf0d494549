#include "text/merges.h"

#include "base/array.h"
#include "base/utf8.h"
#include "text/byte_level.h"

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
    else PD_TRY(pd_text_append(&r->bytes, text, size));
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

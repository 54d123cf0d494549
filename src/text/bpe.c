#include "text/bpe.h"

#include "base/utf8.h"
#include "text/merger.h"
#include "text/piece_index.h"
#include "text/special.h"
#include "text/split.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPACE "\xe2\x96\x81"   /* U+2581 */

struct pd_bpe {
    const struct pd_pieces *pieces;
    struct pd_piece_index index;
    struct pd_merge_table merges;
    struct pd_special user;        /* user-defined pieces */
    struct pd_split *split;        /* BYTE_MERGES */
    int32_t bytes[256];            /* the piece of each byte; CHAR_MERGES: -1 in all when there are none */
    int32_t unknown;               /* -1: none */
};

/* One call's state. */
struct work {
    struct pd_ids *out;
    const struct pd_bpe *b;
    struct pd_merge_row row;
    struct pd_text_buffer clean, escaped, stretch;   /* the text as UTF-8; that with U+2581 for spaces; a part of it */
};

/* ---- opening ---- */

static int32_t find_byte(const struct pd_bpe *b, unsigned byte)
{
    char name[8];
    if (b->pieces->algorithm == PD_ALGORITHM_BYTE_MERGES)
        return pd_piece_index_find(&b->index, b->pieces, &(char){(char)byte}, 1);
    int size = snprintf(name, sizeof name, "<0x%02X>", byte);
    int32_t id = pd_piece_index_find(&b->index, b->pieces, name, (size_t)size);
    return id >= 0 && b->pieces->piece[id].type == PD_PIECE_BYTE ? id : -1;
}

/* Any text must become ids: all bytes are pieces, or, of characters, none is and some piece is for the unknown. */
static peridot_status find_bytes(struct pd_bpe *b)
{
    int missing = -1, n = 0;
    for (int i = 255; i >= 0; i--) {
        b->bytes[i] = find_byte(b, (unsigned)i);
        if (b->bytes[i] < 0) missing = i;
        else n++;
    }
    b->unknown = -1;
    for (uint32_t i = 0; i < b->pieces->n; i++)
        if (b->pieces->piece[i].type == PD_PIECE_UNKNOWN) b->unknown = (int32_t)i;
    bool unknown = b->pieces->algorithm == PD_ALGORITHM_CHAR_MERGES && n == 0 && b->unknown >= 0;
    if (missing < 0 || unknown) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_FORMAT, "the vocabulary has no piece for the byte 0x%02X", (unsigned)missing);
}

static peridot_status create(struct pd_bpe *b)
{
    PD_TRY(pd_piece_index_create(&b->index, b->pieces));
    PD_TRY(pd_merge_table_create(&b->merges, b->pieces));
    PD_TRY(pd_special_create(&b->user, b->pieces, PD_SPECIAL_USER));
    if (b->pieces->pattern) PD_TRY(pd_split_create(&b->split, b->pieces->pattern));
    return find_bytes(b);
}

peridot_status pd_bpe_create(struct pd_bpe **out, const struct pd_pieces *p)
{
    *out = NULL;
    struct pd_bpe *b = calloc(1, sizeof *b);
    if (!b) return pd_fail_alloc(sizeof *b, "tokenizer");
    b->pieces = p;
    peridot_status status = create(b);
    if (status == PERIDOT_OK) *out = b;
    else pd_bpe_free(b);
    return status;
}

void pd_bpe_free(struct pd_bpe *b)
{
    if (!b) return;
    pd_piece_index_free(&b->index);
    pd_merge_table_free(&b->merges);
    pd_special_free(&b->user);
    pd_split_free(b->split);
    free(b);
}

/* ---- words ---- */

/* The piece that a text is, if merging could have made it. */
static int32_t find_plain(const struct pd_bpe *b, const char *text, size_t size)
{
    int32_t id = pd_piece_index_find(&b->index, b->pieces, text, size);
    if (id < 0) return -1;
    uint8_t type = b->pieces->piece[id].type;
    return type == PD_PIECE_NORMAL || type == PD_PIECE_USER ? id : -1;
}

static peridot_status push_bytes(struct work *w, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) PD_TRY(pd_merge_row_push(&w->row, (uint32_t)w->b->bytes[(unsigned char)text[i]]));
    return PERIDOT_OK;
}

/* Characters that no piece covers: their bytes if those are pieces, else the unknown piece, once for a run of them. */
static peridot_status push_characters(struct work *w, const char *text, size_t size)
{
    const struct pd_bpe *b = w->b;
    bool bytes = b->bytes[0] >= 0, after_unknown = false;
    size_t length;
    for (size_t i = 0; i < size; i += length) {
        uint32_t code;
        pd_utf8_next(&code, &length, text + i, size - i);
        int32_t id = find_plain(b, text + i, length);
        if (id >= 0) PD_TRY(pd_merge_row_push(&w->row, (uint32_t)id));
        else if (bytes) PD_TRY(push_bytes(w, text + i, length));
        else if (!after_unknown) PD_TRY(pd_merge_row_push(&w->row, (uint32_t)b->unknown));
        after_unknown = id < 0;
    }
    return PERIDOT_OK;
}

static peridot_status encode_word(struct work *w, const char *text, size_t size)
{
    int32_t id = w->b->pieces->whole_words ? find_plain(w->b, text, size) : -1;
    if (id >= 0) return pd_ids_append(w->out, &id, 1);
    if (w->b->pieces->algorithm == PD_ALGORITHM_BYTE_MERGES) PD_TRY(push_bytes(w, text, size));
    else PD_TRY(push_characters(w, text, size));
    return pd_merge_row_finish(w->out, &w->row, &w->b->merges);
}

/* ---- stretches between user-defined pieces ---- */

static peridot_status encode_pattern(struct work *w, const char *text, size_t size)
{
    struct pd_split_run run;
    peridot_status status = pd_split_begin(&run, w->b->split, text, size);
    for (size_t at = 0, end; at < size && status == PERIDOT_OK; at = end) {
        status = pd_split_next(&end, &run, at);
        if (status == PERIDOT_OK) status = encode_word(w, text + at, end - at);
    }
    pd_split_end(&run);
    return status;
}

static peridot_status escape(struct pd_text_buffer *out, const char *text, size_t size)
{
    size_t begin = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] != ' ') continue;
        PD_TRY(pd_text_append(out, text + begin, i - begin));
        PD_TRY(pd_text_append(out, SPACE, 3));
        begin = i + 1;
    }
    return pd_text_append(out, text + begin, size - begin);
}

static bool has_space(const char *text, size_t size) { return size >= 3 && memcmp(text, SPACE, 3) == 0; }

static bool wants_prefix(const struct pd_pieces *p, const char *text, size_t size, bool first)
{
    if (!p->dummy_prefix || !(first || p->prefix_each)) return false;
    return !p->prefix_unless_space || !has_space(text, size);
}

/* As one word, or one from each space to the next. */
static peridot_status encode_escaped(struct work *w, const char *text, size_t size, bool first)
{
    const struct pd_pieces *p = w->b->pieces;
    size_t begin = 0;
    w->stretch.size = 0;
    if (wants_prefix(p, text, size, first)) PD_TRY(pd_text_append(&w->stretch, SPACE, 3));
    PD_TRY(pd_text_append(&w->stretch, text, size));
    text = w->stretch.data;
    size = w->stretch.size;
    for (size_t i = 1; p->split_spaces && i < size; i++) {
        if (!has_space(text + i, size - i)) continue;
        PD_TRY(encode_word(w, text + begin, i - begin));
        begin = i;
    }
    return encode_word(w, text + begin, size - begin);
}

static peridot_status encode_stretch(struct work *w, const char *text, size_t size, bool first)
{
    if (size == 0) return PERIDOT_OK;
    if (w->b->pieces->algorithm == PD_ALGORITHM_CHAR_MERGES) return encode_escaped(w, text, size, first);
    return w->b->split ? encode_pattern(w, text, size) : encode_word(w, text, size);
}

/* ---- text ---- */

static peridot_status encode(struct work *w, const char *text, size_t size, bool first)
{
    size_t begin = 0, length;
    PD_TRY(pd_text_append_utf8(&w->clean, text, size));
    bool escaped = w->b->pieces->algorithm == PD_ALGORITHM_CHAR_MERGES;
    if (escaped) PD_TRY(escape(&w->escaped, w->clean.data, w->clean.size));
    text = escaped ? w->escaped.data : w->clean.data;
    size = escaped ? w->escaped.size : w->clean.size;
    for (size_t i = 0; i < size; i += length) {
        int32_t id;
        length = pd_special_match(&id, &w->b->user, w->b->pieces, text + i, size - i);
        if (length) {
            PD_TRY(encode_stretch(w, text + begin, i - begin, first && begin == 0));
            PD_TRY(pd_ids_append(w->out, &id, 1));
            begin = i + length;
        } else {
            length = 1;
        }
    }
    return encode_stretch(w, text + begin, size - begin, first && begin == 0);
}

peridot_status pd_bpe_encode(struct pd_ids *out, const struct pd_bpe *b, const char *text, size_t size, bool first)
{
    PD_TRY(pd_text_check_span(size));
    struct work w = {.out = out, .b = b};
    peridot_status status = encode(&w, text, size, first);
    pd_merge_row_free(&w.row);
    free(w.clean.data);
    free(w.escaped.data);
    free(w.stretch.data);
    return status;
}

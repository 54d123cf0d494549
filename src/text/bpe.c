/* Text to ids where a vocabulary has merges (text_.h says why in these steps): user-defined pieces are cut out, what is
 * between them is split into words (split.c), and the symbols of each word are merged (merges.c). */
#include "text/text_.h"

#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CUT_SIZE = 1 << 16 };   /* a symbol that is merged needs a hundred bytes: long texts go in cuts of about this */

struct pd_bpe {
    const struct pd_pieces *pieces;
    struct pd_piece_index index;
    struct pd_special user;        /* user-defined pieces */
    struct pd_merge_table merges;
    int32_t bytes[256];            /* the piece of each byte or -1; CHAR_MERGES: for characters that no piece covers */
    struct pd_split *splits[PD_MAX_PATTERNS];   /* BYTE_MERGES: of words, each of what the one before it left */
    int32_t unknown;               /* what has no piece is this one; -1: nothing */
    bool lines_apart;              /* CHAR_MERGES: long texts can be cut after line breaks */
};

/* One call's state. */
struct work {
    struct pd_ids *out;
    const struct pd_bpe *b;
    struct pd_merge_row row;
    /* the text as UTF-8; that with U+2581 for spaces; a part of it, with a prefix or in form C */
    struct pd_buffer clean, escaped, stretch;
};

/* ---- opening ---- */

/* Those of characters have names, and are all there. Byte-level vocabularies that were made of text alone lack bytes
 * that it never had (StarCoder's and Granite's 0xC0, Falcon's some of control characters), but none of printable ASCII;
 * as in tokenizers, these are unknown, or nothing. */
static peridot_status find_bytes(struct pd_bpe *b)
{
    bool named = b->pieces->algorithm == PD_ALGORITHM_CHAR_MERGES;
    char name[8];
    for (int i = 0; i < 256; i++) {
        snprintf(name, sizeof name, "<0x%02X>", (unsigned)i);
        int32_t id = named ? pd_piece_index_find(&b->index, b->pieces, name, 6)
                           : pd_piece_index_find(&b->index, b->pieces, &(char){(char)i}, 1);
        bool needed = named || (i >= ' ' && i <= '~');
        if (needed && (id < 0 || (named && b->pieces->piece[id].type != PD_PIECE_BYTE)))
            return pd_fail(PERIDOT_ERROR_FORMAT, "the vocabulary has no piece for the byte 0x%02X", (unsigned)i);
        b->bytes[i] = id < 0 ? b->unknown : id;
    }
    return PERIDOT_OK;
}

static peridot_status bpe_create(struct pd_bpe *b)
{
    const struct pd_pieces *p = b->pieces;
    bool characters = p->algorithm == PD_ALGORITHM_CHAR_MERGES;
    PD_TRY(pd_piece_index_create(&b->index, p));
    PD_TRY(pd_special_create(&b->user, p, PD_SPECIAL_USER));
    PD_TRY(pd_merge_table_create(&b->merges, p));
    for (uint32_t i = 0; i < p->n_patterns; i++) PD_TRY(pd_split_create(&b->splits[i], p->patterns[i]));
    b->bytes[0] = b->unknown = -1;
    for (uint32_t i = 0; i < p->n; i++)
        if (p->piece[i].type == PD_PIECE_UNKNOWN) b->unknown = (int32_t)i;
    b->lines_apart = characters && pd_pieces_lines_apart(p);
    return !characters || pd_pieces_has_bytes(p) ? find_bytes(b) : PERIDOT_OK;
}

peridot_status pd_bpe_create(struct pd_bpe **out, const struct pd_pieces *p)
{
    *out = NULL;
    struct pd_bpe *b = calloc(1, sizeof *b);
    if (!b) return pd_fail_alloc(sizeof *b, "tokenizer");
    b->pieces = p;
    peridot_status status = bpe_create(b);
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
    for (uint32_t i = 0; i < PD_MAX_PATTERNS; i++) pd_split_free(b->splits[i]);
    free(b);
}

bool pd_bpe_drops(const struct pd_bpe *b)
{
    bool drops = b->pieces->drops_between;
    for (int i = 0; i < 256; i++) {
        bool in_text = i < 0xc0 || (i > 0xc1 && i < 0xf5);   /* in UTF-8 */
        drops = drops || (b->pieces->algorithm == PD_ALGORITHM_BYTE_MERGES && in_text && b->bytes[i] < 0);
    }
    return drops;
}

/* ---- words ---- */

/* The piece that a text is, if plain text can become it; -1: none. */
static int32_t find_plain(const struct pd_bpe *b, const char *text, size_t size)
{
    int32_t id = pd_piece_index_find(&b->index, b->pieces, text, size);
    return id >= 0 && pd_pieces_is_plain(b->pieces, (uint32_t)id) ? id : -1;
}

static peridot_status push_bytes(struct work *w, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        int32_t id = w->b->bytes[(unsigned char)text[i]];
        if (id >= 0) PD_TRY(pd_merge_row_push(&w->row, (uint32_t)id));
    }
    return PERIDOT_OK;
}

/* Nothing merges with bytes, nor with what is unknown, of which a run is one. */
static peridot_status push_characters(struct work *w, const char *text, size_t size)
{
    const struct pd_bpe *b = w->b;
    bool unknown = false;
    for (size_t i = 0, length; i < size; i += length) {
        uint32_t code;
        pd_utf8_next(&code, &length, text + i, size - i);
        int32_t id = find_plain(b, text + i, length);
        if (id >= 0) PD_TRY(pd_merge_row_push(&w->row, (uint32_t)id));
        else if (b->bytes[0] >= 0) PD_TRY(push_bytes(w, text + i, length));
        else if (!unknown) PD_TRY(pd_merge_row_push(&w->row, (uint32_t)b->unknown));
        unknown = id < 0;
    }
    return PERIDOT_OK;
}

/* All of the text, or up to the end of the line breaks after CUT_SIZE, where no merge can reach across. */
static size_t first_cut(const struct pd_bpe *b, const char *text, size_t size)
{
    const char *end = b->lines_apart && size > CUT_SIZE ? memchr(text + CUT_SIZE, '\n', size - CUT_SIZE) : NULL;
    if (!end) return size;
    while (end < text + size && *end == '\n') end++;
    return (size_t)(end - text);
}

static peridot_status encode_word(struct work *w, const char *text, size_t size)
{
    const struct pd_bpe *b = w->b;
    bool characters = b->pieces->algorithm == PD_ALGORITHM_CHAR_MERGES;
    int32_t id = b->pieces->whole_words ? find_plain(b, text, size) : -1;
    if (id >= 0) return pd_ids_append(w->out, &id, 1);
    for (size_t at = 0, n; at < size; at += n) {
        n = first_cut(b, text + at, size - at);
        PD_TRY((characters ? push_characters : push_bytes)(w, text + at, n));
        PD_TRY(pd_merge_row_finish(w->out, &w->row, &b->merges));
    }
    return PERIDOT_OK;
}

/* ---- stretches between user-defined pieces ---- */

/* By pattern `step` and those after it. */
static peridot_status encode_words(struct work *w, uint32_t step, const char *text, size_t size,
                                   struct pd_split_run *outer)
{
    struct pd_split_run run;
    if (step == w->b->pieces->n_patterns) return encode_word(w, text, size);
    peridot_status status = pd_split_begin(&run, w->b->splits[step], text, size, outer);
    for (size_t at = 0, end; at < size && status == PERIDOT_OK; at = end) {
        status = pd_split_next(&end, &run, at);
        if (w->b->pieces->drops_between && at < run.match_begin) continue;
        if (status == PERIDOT_OK) status = encode_words(w, step + 1, text + at, end - at, &run);
    }
    pd_split_end(&run);
    return status;
}

static bool wants_prefix(const struct pd_pieces *p, const char *text, size_t size, enum pd_text_place place)
{
    return pd_pieces_puts_prefix(p, place) && !(p->prefix_unless_space && pd_text_begins_with_space(text, size));
}

/* As one word, or one from each space to the next. */
static peridot_status encode_escaped(struct work *w, const char *text, size_t size, enum pd_text_place place)
{
    const struct pd_pieces *p = w->b->pieces;
    size_t begin = 0;
    w->stretch.size = 0;
    if (wants_prefix(p, text, size, place)) PD_TRY(pd_buffer_add(&w->stretch, PD_SPACE, 3));
    PD_TRY(pd_buffer_add(&w->stretch, text, size));
    text = w->stretch.data;
    size = w->stretch.size;
    for (size_t i = 1; p->split_spaces && i < size; i++) {
        if (!pd_text_begins_with_space(text + i, size - i)) continue;
        PD_TRY(encode_word(w, text + begin, i - begin));
        begin = i;
    }
    return encode_word(w, text + begin, size - begin);
}

static peridot_status encode_stretch(struct work *w, const char *text, size_t size, enum pd_text_place place)
{
    if (size == 0) return PERIDOT_OK;
    if (w->b->pieces->algorithm == PD_ALGORITHM_CHAR_MERGES) return encode_escaped(w, text, size, place);
    if (w->b->pieces->nfc) {
        w->stretch.size = 0;
        PD_TRY(pd_text_append_nfc(&w->stretch, text, size));
        text = w->stretch.data;
        size = w->stretch.size;
    }
    return encode_words(w, 0, text, size, NULL);
}

/* ---- text ---- */

static peridot_status bpe_encode_text(struct work *w, const char *text, size_t size, enum pd_text_place place)
{
    size_t begin = 0, length;
    PD_TRY(pd_buffer_add_utf8(&w->clean, text, size));
    bool escaped = w->b->pieces->algorithm == PD_ALGORITHM_CHAR_MERGES;
    if (escaped) PD_TRY(pd_text_append_escaped(&w->escaped, w->clean.data, w->clean.size));
    text = escaped ? w->escaped.data : w->clean.data;
    size = escaped ? w->escaped.size : w->clean.size;
    for (size_t i = 0; i < size; i += length) {
        int32_t id;
        length = pd_special_match(&id, &w->b->user, w->b->pieces, text + i, size - i);
        if (length) {
            size_t n = i - begin - pd_special_before(w->b->pieces, id, text + begin, i - begin, escaped);
            PD_TRY(encode_stretch(w, text + begin, n, place));
            PD_TRY(pd_ids_append(w->out, &id, 1));
            length += pd_special_after(w->b->pieces, id, text + i + length, size - i - length, escaped);
            begin = i + length;
            place = PD_PLACE_AFTER_CONTROL;
        } else {
            length = 1;
        }
    }
    return encode_stretch(w, text + begin, size - begin, place);
}

peridot_status pd_bpe_encode(struct pd_ids *out, const struct pd_bpe *b, const char *text, size_t size,
                             enum pd_text_place place)
{
    if (size == 0) return PERIDOT_OK;   /* text may be NULL */
    PD_TRY(pd_text_check_span(size));
    struct work w = {.out = out, .b = b};
    peridot_status status = bpe_encode_text(&w, text, size, place);
    pd_merge_row_free(&w.row);
    free(w.clean.data);
    free(w.escaped.data);
    free(w.stretch.data);
    return status;
}

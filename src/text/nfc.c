/* Normalization form C, of Unicode's tables in libutf8proc. Its own way to put marks in order takes the square of their
 * number, which a hostile text may have by the hundred thousand: here they are sorted, and only looked up and composed
 * there. A text goes in spans: a character that never combines with what comes before it, and all of the others that
 * follow it. */
#include "text/nfc.h"

#include "base/array.h"
#include "base/num.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <utf8proc.h>

/* Marks and letters that Unicode got after version 10, with what lies between them that never changes. Hugging Face's
 * tokenizers do not know them: what is there stays as it is, and nothing is joined across it. U+11A7 is among them, a
 * vowel that libutf8proc takes for the sign that there is no final consonant. */
static const uint32_t unknown[][2] = {
    {0x7fd, 0x7fd}, {0x897, 0x8d3}, {0x9fe, 0x9fe}, {0xc3c, 0xc3c}, {0xd3b, 0xd3c}, {0xeba, 0xeba}, {0x11a7, 0x11a7},
    {0x1715, 0x1715}, {0x1abf, 0x1aff}, {0x1df6, 0x1dfa}, {0xa82c, 0xa82c}, {0x105c0, 0x105ff}, {0x10d24, 0x10d27},
    {0x10d69, 0x10d6d}, {0x10eab, 0x10eff}, {0x10f46, 0x10f85}, {0x11070, 0x11070}, {0x1133b, 0x1133b},
    {0x11380, 0x113ff}, {0x1145e, 0x1145e}, {0x11839, 0x1183a}, {0x11930, 0x11943}, {0x119e0, 0x119e0},
    {0x11a34, 0x11a47}, {0x11a99, 0x11a99}, {0x11b60, 0x11b6f}, {0x11d42, 0x11d45}, {0x11d97, 0x11d97},
    {0x11de0, 0x11dff}, {0x11f41, 0x11f5a}, {0x16100, 0x1613f}, {0x16d40, 0x16d7f}, {0x16ff0, 0x16ff1},
    {0x1e08f, 0x1e08f}, {0x1e130, 0x1e136}, {0x1e2ae, 0x1e2ef}, {0x1e4ec, 0x1e4ef}, {0x1e5d0, 0x1e5ff},
    {0x1e6c0, 0x1e6ff}};

static int compare_range(const void *key, const void *range)
{
    const uint32_t code = *(const uint32_t *)key, *r = range;
    return code > r[1] ? 1 : code < r[0] ? -1 : 0;
}

static bool is_unknown(uint32_t code)
{
    return bsearch(&code, unknown, PD_COUNT(unknown), sizeof *unknown, compare_range) != NULL;
}

/* ---- a span ---- */

struct mark {
    utf8proc_int32_t code;
    uint32_t class;      /* canonical combining class */
    size_t index;        /* in the span */
};

struct span {
    struct mark *marks;
    utf8proc_int32_t *codes;         /* of the marks, in their order */
    size_t n, capacity, codes_capacity;
};

static peridot_status decompose(struct span *s, uint32_t code)
{
    enum { MOST = 4 };               /* that one becomes, in any version of Unicode */
    utf8proc_int32_t parts[MOST];
    const utf8proc_ssize_t n =
        utf8proc_decompose_char((utf8proc_int32_t)code, parts, MOST, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE, NULL);
    PD_TRY(pd_array_reserve(&s->marks, &s->capacity, s->n, MOST, sizeof *s->marks, "text"));
    for (utf8proc_ssize_t i = 0; i < n && n <= MOST; i++, s->n++) {
        const uint32_t class = (uint32_t)utf8proc_get_property(parts[i])->combining_class;
        s->marks[s->n] = (struct mark){parts[i], class, s->n};
    }
    return PERIDOT_OK;
}

static int compare_marks(const void *a, const void *b)
{
    const struct mark *x = a, *y = b;
    if (x->class != y->class) return x->class > y->class ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Marks between two characters of class 0 go by their classes, those of one class as they come. */
static void sort(struct span *s)
{
    for (size_t i = 0, end; i < s->n; i = end + 1) {
        for (end = i; end < s->n && s->marks[end].class;) end++;
        if (end > i + 1) qsort(s->marks + i, end - i, sizeof *s->marks, compare_marks);
    }
}

static peridot_status append_code(struct pd_text_buffer *out, uint32_t code)
{
    char text[4];
    return pd_text_append(out, text, pd_utf8_write(text, code));
}

/* What was decomposed, composed again. */
static peridot_status flush(struct pd_text_buffer *out, struct span *s)
{
    sort(s);
    PD_TRY(pd_array_reserve(&s->codes, &s->codes_capacity, 0, s->n, sizeof *s->codes, "text"));
    for (size_t i = 0; i < s->n; i++) s->codes[i] = s->marks[i].code;
    const utf8proc_ssize_t n =
        utf8proc_normalize_utf32(s->codes, (utf8proc_ssize_t)s->n, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    for (utf8proc_ssize_t i = 0; i < n; i++) PD_TRY(append_code(out, (uint32_t)s->codes[i]));
    s->n = 0;
    return PERIDOT_OK;
}

static peridot_status append_span(struct pd_text_buffer *out, struct span *s, const char *text, size_t size)
{
    for (size_t i = 0, length; i < size; i += length) {
        uint32_t code;
        pd_utf8_next(&code, &length, text + i, size - i);
        if (!is_unknown(code)) {
            PD_TRY(decompose(s, code));
            continue;
        }
        PD_TRY(flush(out, s));
        PD_TRY(append_code(out, code));
    }
    return flush(out, s);
}

/* ---- a text ---- */

static bool is_continuation(char c) { return ((unsigned char)c & 0xc0) == 0x80; }

/* The first byte of characters below U+0300, and of U+4000 to U+9FFF (Han): in form C by themselves, and never joined
 * to what comes before them. */
static bool is_inert(char c)
{
    unsigned char byte = (unsigned char)c;
    return !is_continuation(c) && (byte < 0xcc || (byte >= 0xe4 && byte <= 0xe9));
}

static peridot_status append_all(struct pd_text_buffer *out, struct span *s, const char *text, size_t size)
{
    for (size_t at = 0, high, end; at < size; at = end) {
        for (high = at; high < size && (is_inert(text[high]) || is_continuation(text[high]));) high++;
        size_t begin = high;   /* of the span: the character before */
        while (begin > at && high < size && is_continuation(text[--begin])) {}
        for (end = high; end < size && !is_inert(text[end]);) end++;
        PD_TRY(pd_text_append(out, text + at, begin - at));
        PD_TRY(append_span(out, s, text + begin, end - begin));
    }
    return PERIDOT_OK;
}

peridot_status pd_text_append_nfc(struct pd_text_buffer *out, const char *text, size_t size)
{
    struct span s = {0};
    peridot_status status = append_all(out, &s, text, size);
    free(s.marks);
    free(s.codes);
    return status;
}

/* A text goes in spans: a character that never combines with what comes before it, and all of the others that follow
 * it. */
#include "text/nfc.h"

#include "base/array.h"
#include "base/num.h"
#include "base/utf8.h"
#include "text/nfc_table.h"

#include <stdlib.h>

/* Hangul is composed by arithmetic (Unicode 3.12). */
enum { S_BASE = 0xac00, L_BASE = 0x1100, V_BASE = 0x1161, T_BASE = 0x11a7, N_L = 19, N_V = 21, N_T = 28,
    N_S = N_L * N_V * N_T };

struct mark {
    uint32_t code;
    uint32_t class;      /* canonical combining class */
    size_t index;        /* in the span */
};

struct span {
    struct mark *marks;
    size_t n, capacity;
};

/* ---- tables ---- */

static int compare_decomposition(const void *key, const void *row)
{
    uint32_t code = *(const uint32_t *)key, other = ((const struct decomposition *)row)->code;
    return (code > other) - (code < other);
}

static int compare_class(const void *key, const void *row)
{
    uint32_t code = *(const uint32_t *)key;
    const struct combining *r = row;
    return code > r->last ? 1 : code < r->first ? -1 : 0;
}

static int compare_pair(const void *key, const void *index)
{
    const uint32_t *pair = key;
    const struct decomposition *d = &decompositions[*(const uint16_t *)index];
    if (pair[0] != d->first) return pair[0] > d->first ? 1 : -1;
    return (pair[1] > d->second) - (pair[1] < d->second);
}

static uint32_t class_of(uint32_t code)
{
    const struct combining *r = bsearch(&code, combining, PD_COUNT(combining), sizeof *combining, compare_class);
    return r ? r->class : 0;
}

/* The character that two are; 0: none. */
static uint32_t compose(uint32_t a, uint32_t b)
{
    if (a >= L_BASE && a < L_BASE + N_L && b >= V_BASE && b < V_BASE + N_V)
        return S_BASE + ((a - L_BASE) * N_V + b - V_BASE) * N_T;
    if (a >= S_BASE && a < S_BASE + N_S && (a - S_BASE) % N_T == 0 && b > T_BASE && b < T_BASE + N_T)
        return a + b - T_BASE;
    const uint16_t *index = bsearch((const uint32_t[]){a, b}, compositions, PD_COUNT(compositions),
                                    sizeof *compositions, compare_pair);
    return index ? decompositions[*index].code : 0;
}

/* ---- a span ---- */

static peridot_status push(struct span *s, uint32_t code)
{
    PD_TRY(pd_array_reserve(&s->marks, &s->capacity, s->n, 1, sizeof *s->marks, "text"));
    s->marks[s->n] = (struct mark){code, class_of(code), s->n};
    s->n++;
    return PERIDOT_OK;
}

/* A decomposition's second has none of its own. */
static peridot_status decompose(struct span *s, uint32_t code)
{
    if (code >= S_BASE && code < S_BASE + N_S) {
        code -= S_BASE;
        PD_TRY(push(s, L_BASE + code / (N_V * N_T)));
        PD_TRY(push(s, V_BASE + code / N_T % N_V));
        return code % N_T ? push(s, T_BASE + code % N_T) : PERIDOT_OK;
    }
    const struct decomposition *d =
        bsearch(&code, decompositions, PD_COUNT(decompositions), sizeof *decompositions, compare_decomposition);
    if (!d) return push(s, code);
    PD_TRY(decompose(s, d->first));
    return d->second ? push(s, d->second) : PERIDOT_OK;
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

/* A mark joins the last character of class 0, unless one of its class or a higher one, or another character, is between
 * them. */
static void compose_all(struct span *s)
{
    struct mark *starter = NULL, *last = NULL;   /* the last that was kept after it */
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct mark m = s->marks[i];
        uint32_t code = starter && (!last || last->class < m.class) ? compose(starter->code, m.code) : 0;
        if (code) {
            starter->code = code;
            continue;
        }
        s->marks[n] = m;
        last = &s->marks[n++];
        if (m.class) continue;
        starter = last;
        last = NULL;
    }
    s->n = n;
}

static peridot_status append_code(struct pd_text_buffer *out, uint32_t code)
{
    char text[4];
    return pd_text_append(out, text, pd_utf8_write(text, code));
}

static peridot_status append_span(struct pd_text_buffer *out, struct span *s, const char *text, size_t size)
{
    s->n = 0;
    for (size_t i = 0, length; i < size; i += length) {
        uint32_t code;
        pd_utf8_next(&code, &length, text + i, size - i);
        PD_TRY(decompose(s, code));
    }
    sort(s);
    compose_all(s);
    for (size_t i = 0; i < s->n; i++) PD_TRY(append_code(out, s->marks[i].code));
    return PERIDOT_OK;
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
    return status;
}

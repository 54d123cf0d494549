#include "text/template/strings.h"

#include "base/num.h"
#include "text/template/print.h"
#include "text/template/unicode.h"

#include <string.h>

/* A part or another form of a[0]. */
static void give(struct pd_value *out, const struct pd_value *a, struct pd_value text)
{
    const bool markup = a->markup;
    *out = text;
    out->markup = markup;
}

static peridot_status change_case(struct pd_value *out, struct pd_render *r, const struct pd_value *a,
                                  peridot_status (*change)(struct pd_builder *, struct pd_chars, enum pd_case),
                                  enum pd_case which)
{
    struct pd_builder b = {.r = r};
    struct pd_chars text;
    PD_TRY(pd_value_string(&text, r, a));
    PD_TRY(change(&b, text, which));
    give(out, a, pd_builder_value(&b));
    return PERIDOT_OK;
}

static peridot_status capitalize(struct pd_builder *b, struct pd_chars text, enum pd_case which)
{
    (void)which;
    return pd_builder_add_capitalized(b, text, true);
}

PD_BUILTIN(pd_str_upper)
{
    (void)args;
    return change_case(out, r, a, pd_builder_add_case, PD_UPPER);
}

PD_BUILTIN(pd_str_lower)
{
    (void)args;
    return change_case(out, r, a, pd_builder_add_case, PD_LOWER);
}

PD_BUILTIN(pd_str_capitalize)
{
    (void)args;
    return change_case(out, r, a, capitalize, PD_UPPER);
}

PD_BUILTIN(pd_str_swapcase)
{
    struct pd_builder b = {.r = r};
    uint32_t code;
    size_t n;
    const struct pd_chars text = a->text;
    (void)args;
    for (size_t at = 0; at < text.size; at += n) {
        n = pd_chars_next(&code, text, at);
        PD_TRY(pd_builder_add_case(&b, pd_chars_part(text, at, n), pd_char_is_lower(code) ? PD_UPPER : PD_LOWER));
    }
    give(out, a, pd_builder_value(&b));
    return PERIDOT_OK;
}

/* ---- padding ---- */

static peridot_status add_fill(struct pd_builder *b, struct pd_chars fill, size_t n)
{
    while (n-- > 0) PD_TRY(pd_builder_add(b, fill));
    return PERIDOT_OK;
}

/* *n: the characters that the text lacks for the width that a[1] says. */
static peridot_status find_lack(size_t *n, struct pd_render *r, const struct pd_value *a, struct pd_chars text)
{
    if (a[1].type == PD_UNDEFINED) return pd_value_fail_undefined(r, &a[1]);
    if (a[1].type != PD_UNSET && !pd_is_integer(&a[1])) return pd_render_fail(r, "a width that is no integer");
    PD_TRY(pd_render_scan(r, text.size));
    const int64_t width = a[1].type == PD_UNSET ? 80 : pd_value_integer(&a[1]), size = (int64_t)pd_chars_count(text);
    if (width > PD_RENDER_MAX_SIZE) return pd_render_fail(r, "a width of %lld", (long long)width);
    *n = width > size ? (size_t)(width - size) : 0;
    return PERIDOT_OK;
}

/* side: 'l' and 'r' where the text stands on that side, 'c' in the middle, which is to the right of it by Python's
 * rule where both differ by one. */
static peridot_status pad(struct pd_value *out, struct pd_render *r, const struct pd_value *a, char side)
{
    struct pd_builder b = {.r = r};
    const struct pd_chars fill = a[2].type == PD_TEXT ? a[2].text : PD_CHARS(" ");
    struct pd_chars text;
    size_t n;
    PD_TRY(pd_value_string(&text, r, a));
    PD_TRY(find_lack(&n, r, a, text));
    if (pd_chars_count(fill) != 1 || (a[2].type != PD_UNSET && a[2].type != PD_TEXT))
        return pd_render_fail(r, "what fills is not one character");
    const size_t width = n + pd_chars_count(text);
    const size_t left = side == 'l' ? 0 : side == 'r' ? n : n / 2 + (n & width & 1);
    PD_TRY(add_fill(&b, fill, left));
    PD_TRY(pd_builder_add(&b, text));
    PD_TRY(add_fill(&b, fill, n - left));
    give(out, a, pd_builder_value(&b));
    return PERIDOT_OK;
}

PD_BUILTIN(pd_str_center)
{
    (void)args;
    return pad(out, r, a, 'c');
}

PD_BUILTIN(pd_str_ljust)
{
    (void)args;
    return pad(out, r, a, 'l');
}

PD_BUILTIN(pd_str_rjust)
{
    (void)args;
    return pad(out, r, a, 'r');
}

/* Zeros go behind a sign. */
PD_BUILTIN(pd_str_zfill)
{
    struct pd_builder b = {.r = r};
    const struct pd_chars text = a->text;
    const size_t sign = text.size && (text.data[0] == '+' || text.data[0] == '-');
    size_t n;
    (void)args;
    PD_TRY(find_lack(&n, r, a, text));
    PD_TRY(pd_builder_add(&b, pd_chars_part(text, 0, sign)));
    PD_TRY(add_fill(&b, PD_CHARS("0"), n));
    PD_TRY(pd_builder_add(&b, pd_chars_part(text, sign, text.size - sign)));
    give(out, a, pd_builder_value(&b));
    return PERIDOT_OK;
}

/* ---- strip ---- */

static peridot_status strip(struct pd_value *out, struct pd_render *r, const struct pd_value *a, unsigned sides)
{
    struct pd_chars text;
    struct pd_value set = a[1];
    const bool given = set.type != PD_UNSET && set.type != PD_NONE;
    PD_TRY(pd_value_string(&text, r, a));
    if (given && set.type != PD_TEXT)
        return pd_render_fail(r, "characters to strip of type %s", pd_value_type_name(&set));
    if (given && a->markup) PD_TRY(pd_value_escape(&set, r, &a[1]));
    PD_TRY(pd_render_scan(r, given ? text.size * pd_max(set.text.size, 1) : text.size));
    give(out, a, pd_value_text(pd_chars_strip(text, given ? &set.text : NULL, sides)));
    return PERIDOT_OK;
}

PD_BUILTIN(pd_str_strip)
{
    (void)args;
    return strip(out, r, a, PD_STRIP_LEFT | PD_STRIP_RIGHT);
}

PD_BUILTIN(pd_str_lstrip)
{
    (void)args;
    return strip(out, r, a, PD_STRIP_LEFT);
}

PD_BUILTIN(pd_str_rstrip)
{
    (void)args;
    return strip(out, r, a, PD_STRIP_RIGHT);
}

/* ---- split ---- */

struct pieces {
    struct pd_render *r;
    struct pd_value list;
    size_t capacity;
    bool markup;
};

static peridot_status add_piece(struct pieces *p, struct pd_chars piece)
{
    struct pd_value *more;
    if (p->list.list.n == p->capacity) {
        p->capacity = pd_max(8, 2 * p->capacity);
        PD_TRY(pd_render_alloc(&more, p->r, p->capacity, sizeof *more));
        if (p->list.list.n) memcpy(more, p->list.list.at, p->list.list.n * sizeof *more);
        p->list.list.at = more;
    }
    struct pd_value *at = &p->list.list.at[p->list.list.n++];
    *at = pd_value_text(piece);
    at->markup = p->markup;
    return pd_render_spend(p->r, 1);
}

static size_t find_space(struct pd_chars text, size_t at, bool space)
{
    uint32_t code;
    for (size_t n; at < text.size; at += n) {
        n = pd_chars_next(&code, text, at);
        if (pd_char_is_space(code) == space) break;
    }
    return at;
}

static size_t find_space_back(struct pd_chars text, size_t at, bool space)
{
    uint32_t code;
    while (at > 0) {
        const size_t before = pd_chars_previous(text, at);
        pd_chars_next(&code, text, before);
        if (pd_char_is_space(code) == space) break;
        at = before;
    }
    return at;
}

/* At white space, with none at the ends of pieces, but for what is left when there are enough. */
static peridot_status split_words(struct pieces *p, struct pd_chars text, int64_t max)
{
    for (size_t at = find_space(text, 0, false); at < text.size;) {
        size_t end = max-- == 0 ? text.size : find_space(text, at, true);
        PD_TRY(add_piece(p, pd_chars_part(text, at, end - at)));
        at = find_space(text, end, false);
    }
    return PERIDOT_OK;
}

static peridot_status rsplit_words(struct pieces *p, struct pd_chars text, int64_t max)
{
    for (size_t end = find_space_back(text, text.size, false); end > 0;) {
        size_t at = max-- == 0 ? 0 : find_space_back(text, end, true);
        PD_TRY(add_piece(p, pd_chars_part(text, at, end - at)));
        end = find_space_back(text, at, false);
    }
    return PERIDOT_OK;
}

static peridot_status split_at(struct pieces *p, struct pd_chars text, struct pd_chars sep, int64_t max)
{
    size_t from = 0, at;
    for (;;) {
        at = SIZE_MAX;
        if (max-- != 0) PD_TRY(pd_chars_find(&at, p->r, text, sep, from));
        if (at == SIZE_MAX) return add_piece(p, pd_chars_part(text, from, text.size - from));
        PD_TRY(add_piece(p, pd_chars_part(text, from, at - from)));
        from = at + sep.size;
    }
}

static peridot_status rsplit_at(struct pieces *p, struct pd_chars text, struct pd_chars sep, int64_t max)
{
    size_t to = text.size, at;
    for (;;) {
        at = SIZE_MAX;
        if (max-- != 0) PD_TRY(pd_chars_find_last(&at, p->r, text, sep, to));
        if (at == SIZE_MAX) return add_piece(p, pd_chars_part(text, 0, to));
        PD_TRY(add_piece(p, pd_chars_part(text, at + sep.size, to - at - sep.size)));
        to = at;
    }
}

static void reverse(struct pd_value *list)
{
    for (size_t i = 0, k = list->list.n; i + 1 < k; i++) {
        const struct pd_value v = list->list.at[i];
        list->list.at[i] = list->list.at[--k];
        list->list.at[k] = v;
    }
}

static peridot_status split(struct pd_value *out, struct pd_render *r, const struct pd_value *a, bool back)
{
    struct pieces p = {.r = r, .list = {.type = PD_LIST, .own = true}, .markup = a->markup};
    const bool words = a[1].type == PD_UNSET || a[1].type == PD_NONE;
    if (a[2].type != PD_UNSET && !pd_is_integer(&a[2]))
        return pd_render_fail(r, "split is not given a number of parts");
    const int64_t max = a[2].type == PD_UNSET ? -1 : pd_value_integer(&a[2]);
    if (!words && a[1].type != PD_TEXT)
        return pd_render_fail(r, "split at a value of type %s", pd_value_type_name(&a[1]));
    if (!words && a[1].text.size == 0) return pd_render_fail(r, "split at an empty text");
    PD_TRY(pd_render_scan(r, a->text.size));
    if (words) PD_TRY((back ? rsplit_words : split_words)(&p, a->text, max));
    else PD_TRY((back ? rsplit_at : split_at)(&p, a->text, a[1].text, max));
    if (back) reverse(&p.list);
    *out = p.list;
    return PERIDOT_OK;
}

PD_BUILTIN(pd_str_split)
{
    (void)args;
    return split(out, r, a, false);
}

PD_BUILTIN(pd_str_rsplit)
{
    (void)args;
    return split(out, r, a, true);
}

struct pd_line pd_line_at(struct pd_chars text, size_t at)
{
    uint32_t code;
    size_t end = at, n = 0;
    for (; end < text.size; end += n) {
        n = pd_chars_next(&code, text, end);
        if (pd_char_is_line_end(code)) break;
    }
    if (end == text.size) n = 0;
    if (n && text.data[end] == '\r' && end + 1 < text.size && text.data[end + 1] == '\n') n = 2;
    return (struct pd_line){pd_chars_part(text, at, end - at), n};
}

PD_BUILTIN(pd_str_splitlines)
{
    struct pieces p = {.r = r, .list = {.type = PD_LIST, .own = true}, .markup = a->markup};
    (void)args;
    PD_TRY(pd_render_scan(r, a->text.size));
    for (size_t at = 0; at < a->text.size;) {
        const struct pd_line line = pd_line_at(a->text, at);
        const size_t all = line.text.size + line.end_size;
        PD_TRY(add_piece(&p, pd_value_is_true(&a[1]) ? pd_chars_part(a->text, at, all) : line.text));
        at += all;
    }
    *out = p.list;
    return PERIDOT_OK;
}

/* ---- replace ---- */

/* An empty text is before each character and at the end. */
static peridot_status insert_between(struct pd_builder *b, struct pd_chars text, struct pd_chars new, int64_t count)
{
    uint32_t code;
    for (size_t at = 0, n;; at += n) {
        if (count-- != 0) PD_TRY(pd_builder_add(b, new));
        else return pd_builder_add(b, pd_chars_part(text, at, text.size - at));
        PD_TRY(pd_render_spend(b->r, 1));
        if (at == text.size) return PERIDOT_OK;
        n = pd_chars_next(&code, text, at);
        PD_TRY(pd_builder_add(b, pd_chars_part(text, at, n)));
    }
}

static peridot_status replace_all(struct pd_builder *b, struct pd_chars text, struct pd_chars old, struct pd_chars new,
                                  int64_t count)
{
    size_t from = 0, at;
    for (;;) {
        at = SIZE_MAX;
        if (count-- != 0) PD_TRY(pd_chars_find(&at, b->r, text, old, from));
        if (at == SIZE_MAX) return pd_builder_add(b, pd_chars_part(text, from, text.size - from));
        PD_TRY(pd_builder_add(b, pd_chars_part(text, from, at - from)));
        PD_TRY(pd_builder_add(b, new));
        from = at + old.size;
    }
}

PD_BUILTIN(pd_str_replace)
{
    struct pd_builder b = {.r = r};
    (void)args;
    if (a->markup) return pd_render_fail(r, "replace in a text marked safe is not supported");
    if (a[1].type != PD_TEXT || a[2].type != PD_TEXT) return pd_render_fail(r, "replace is given what is no text");
    if (a[3].type != PD_UNSET && !pd_is_integer(&a[3])) return pd_render_fail(r, "replace is not given a number");
    const int64_t count = a[3].type == PD_UNSET ? -1 : pd_value_integer(&a[3]);
    if (a[1].text.size) PD_TRY(replace_all(&b, a->text, a[1].text, a[2].text, count < 0 ? -1 : count));
    else PD_TRY(insert_between(&b, a->text, a[2].text, count < 0 ? -1 : count));
    *out = pd_builder_value(&b);
    return PERIDOT_OK;
}

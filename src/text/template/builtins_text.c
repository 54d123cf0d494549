/* Filters and methods of one text: case, padding, stripping, splitting, replacing, looking. The first argument is a
 * text, or becomes one; a result is marked safe where it was. */
#include "text/template/template_.h"

#include "base/base.h"

#include <string.h>

PD_BUILTIN(pd_filter_string)
{
    struct pd_chars text;
    const bool markup = a->markup;
    PD_TRY(pd_value_string(&text, r, a));
    *out = pd_value_text(text);
    out->markup = markup;
    return PERIDOT_OK;
}

PD_BUILTIN(pd_filter_safe)
{
    PD_TRY(pd_filter_string(out, r, a));
    out->markup = true;
    return PERIDOT_OK;
}

/* ---- case ---- */

/* A part or another form of a[0]. */
static peridot_status give(struct pd_value *out, const struct pd_value *a, struct pd_value text)
{
    text.markup = a->markup;
    return pd_give(out, text);
}

PD_BUILTIN_AS(pd_str_case)
{
    struct pd_builder b = {.r = r};
    struct pd_chars text;
    PD_TRY(pd_value_string(&text, r, a));
    PD_TRY(which == PD_CAPITALIZED ? pd_builder_add_capitalized(&b, text, true)
                                   : pd_builder_add_case(&b, text, (enum pd_case)which));
    return give(out, a, pd_builder_value(&b));
}

PD_BUILTIN(pd_str_swapcase)
{
    struct pd_builder b = {.r = r};
    uint32_t code;
    size_t n;
    const struct pd_chars text = a->text;
    for (size_t at = 0; at < text.size; at += n) {
        n = pd_chars_next(&code, text, at);
        const struct pd_chars letter = pd_chars_part(text, at, n);
        if (pd_char_is_lower(code)) PD_TRY(pd_builder_add_case(&b, letter, PD_UPPER));
        else if (pd_char_is_upper(code)) PD_TRY(pd_builder_add_case(&b, letter, PD_LOWER));
        else PD_TRY(pd_builder_add(&b, letter));
    }
    return give(out, a, pd_builder_value(&b));
}

/* What has a case at all has this one, and something has. */
PD_BUILTIN_AS(pd_str_is_case)
{
    struct pd_chars text;
    uint32_t code;
    bool lower = false, upper = false;
    PD_TRY(pd_value_string(&text, r, a));
    PD_TRY(pd_render_spend(r, text.size));
    for (size_t at = 0; at < text.size;) {
        at += pd_chars_next(&code, text, at);
        lower |= pd_char_is_lower(code);
        upper |= pd_char_is_upper(code);
    }
    return pd_give(out, pd_value_bool(which == PD_LOWER ? lower && !upper : upper && !lower));
}

PD_BUILTIN(pd_str_title)
{
    struct pd_builder b = {.r = r};
    uint32_t code;
    bool in_word = false;
    size_t begin = 0, n;
    const bool markup = a->markup;
    for (size_t at = 0; at <= a->text.size; at += n) {
        n = at < a->text.size ? pd_chars_next(&code, a->text, at) : 1;
        const bool cased = at < a->text.size && pd_char_is_cased(code);
        if (cased == in_word && at < a->text.size) continue;
        const struct pd_chars part = pd_chars_part(a->text, begin, at - begin);
        PD_TRY(in_word ? pd_builder_add_capitalized(&b, part, true) : pd_builder_add(&b, part));
        in_word = cased;
        begin = at;
    }
    *out = pd_builder_value(&b);
    out->markup = markup;
    return PERIDOT_OK;
}

/* Words of the filter begin after white space and opening brackets, and after a hyphen. */
PD_BUILTIN(pd_filter_title)
{
    struct pd_builder b = {.r = r};
    struct pd_chars text;
    uint32_t code;
    size_t begin = 0, n;
    bool between = true;
    const bool markup = a->markup;
    PD_TRY(pd_value_string(&text, r, a));
    for (size_t at = 0; at <= text.size; at += n) {
        n = at < text.size ? pd_chars_next(&code, text, at) : 1;
        const bool ends = at == text.size;
        const bool gap = !ends && (pd_char_is_space(code) || (code < 0x80 && memchr("-({[<", (int)code, 5)));
        if (gap == between && !ends) continue;
        const struct pd_chars part = pd_chars_part(text, begin, at - begin);
        PD_TRY(between ? pd_builder_add(&b, part) : pd_builder_add_capitalized(&b, part, false));
        between = gap;
        begin = at;
    }
    *out = pd_builder_value(&b);
    out->markup = markup;
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

/* which: 'l' and 'r' where the text stands on that side, 'c' in the middle, which is to the right of it by Python's
 * rule where both differ by one. */
PD_BUILTIN_AS(pd_str_pad)
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
    const size_t left = which == 'l' ? 0 : which == 'r' ? n : n / 2 + (n & width & 1);
    PD_TRY(add_fill(&b, fill, left));
    PD_TRY(pd_builder_add(&b, text));
    PD_TRY(add_fill(&b, fill, n - left));
    return give(out, a, pd_builder_value(&b));
}

/* Zeros go behind a sign. */
PD_BUILTIN(pd_str_zfill)
{
    struct pd_builder b = {.r = r};
    const struct pd_chars text = a->text;
    const size_t sign = text.size && (text.data[0] == '+' || text.data[0] == '-');
    size_t n;
    PD_TRY(find_lack(&n, r, a, text));
    PD_TRY(pd_builder_add(&b, pd_chars_part(text, 0, sign)));
    PD_TRY(add_fill(&b, PD_CHARS("0"), n));
    PD_TRY(pd_builder_add(&b, pd_chars_part(text, sign, text.size - sign)));
    return give(out, a, pd_builder_value(&b));
}

/* ---- strip ---- */

PD_BUILTIN_AS(pd_str_strip)
{
    struct pd_chars text;
    struct pd_value set = a[1];
    const bool given = set.type != PD_UNSET && set.type != PD_NONE;
    PD_TRY(pd_value_string(&text, r, a));
    if (given && set.type != PD_TEXT)
        return pd_render_fail(r, "characters to strip of type %s", pd_value_type_name(&set));
    if (given && a->markup) PD_TRY(pd_value_escape(&set, r, &a[1]));
    PD_TRY(pd_render_scan(r, given ? text.size * pd_max(set.text.size, 1) : text.size));
    return give(out, a, pd_value_text(pd_chars_strip(text, given ? &set.text : NULL, (unsigned)which)));
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

PD_BUILTIN_AS(pd_str_split)
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
    const bool back = which != 0;
    if (words) PD_TRY((back ? rsplit_words : split_words)(&p, a->text, max));
    else PD_TRY((back ? rsplit_at : split_at)(&p, a->text, a[1].text, max));
    if (back) reverse(&p.list);
    *out = p.list;
    return PERIDOT_OK;
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
    if (a->markup) return pd_render_fail(r, "replace in a text marked safe is not supported");
    if (a[1].type != PD_TEXT || a[2].type != PD_TEXT) return pd_render_fail(r, "replace is given what is no text");
    if (a[3].type != PD_UNSET && !pd_is_integer(&a[3])) return pd_render_fail(r, "replace is not given a number");
    const int64_t count = a[3].type == PD_UNSET ? -1 : pd_value_integer(&a[3]);
    if (a[1].text.size) PD_TRY(replace_all(&b, a->text, a[1].text, a[2].text, count < 0 ? -1 : count));
    else PD_TRY(insert_between(&b, a->text, a[2].text, count < 0 ? -1 : count));
    return pd_give(out, pd_builder_value(&b));
}

/* Of the texts of whatever it is given. */
PD_BUILTIN(pd_filter_replace)
{
    struct pd_value texts[4] = {a[0], a[1], a[2], a[3]};
    for (size_t i = 0; i < 3; i++) {
        PD_TRY(pd_value_string(&texts[i].text, r, &a[i]));
        texts[i].type = PD_TEXT;
        texts[i].markup = false;
    }
    if (a[3].type == PD_NONE) texts[3].type = PD_UNSET;
    return pd_str_replace(out, r, texts);
}

/* ---- texts: looking ---- */

/* The bytes of the characters from a[0] to a[1], as slices take them; *from > *to: they begin past the end, where not
 * even an empty text is. */
static peridot_status part_between(size_t *from, size_t *to, struct pd_render *r, struct pd_chars text,
                                   const struct pd_value *a)
{
    const struct pd_value whole = pd_value_text(text), none = pd_value_none();
    struct pd_value part;
    const struct pd_value bounds[3] = {a[0].type == PD_UNSET ? none : a[0], a[1].type == PD_UNSET ? none : a[1], none};
    *from = 0;
    *to = text.size;
    if (a[0].type == PD_UNSET && a[1].type == PD_UNSET) return PERIDOT_OK;
    PD_TRY(pd_get_slice(&part, r, &whole, bounds));
    *from = (size_t)(part.text.data - text.data);
    *to = *from + part.text.size;
    if (pd_is_integer(&a[0]) && pd_value_integer(&a[0]) > (int64_t)pd_chars_count(text)) *from = *to + 1;
    return PERIDOT_OK;
}

static peridot_status need_text(struct pd_render *r, const struct pd_value *v)
{
    if (v->type == PD_TEXT) return PERIDOT_OK;
    if (v->type == PD_UNDEFINED) return pd_value_fail_undefined(r, v);
    return pd_render_fail(r, "a %s where a text is expected", pd_value_type_name(v));
}

static peridot_status affix_is(bool *out, struct pd_render *r, struct pd_chars text, const struct pd_value *affix,
                               bool at_end)
{
    PD_TRY(need_text(r, affix));
    PD_TRY(pd_render_scan(r, affix->text.size));
    const size_t n = affix->text.size;
    *out = n <= text.size && pd_chars_equal(pd_chars_part(text, at_end ? text.size - n : 0, n), affix->text);
    return PERIDOT_OK;
}

PD_BUILTIN_AS(pd_str_has_affix)
{
    size_t from, to;
    bool found = false;
    const struct pd_value affixes = a[1];
    PD_TRY(part_between(&from, &to, r, a->text, a + 2));
    *out = pd_value_bool(false);
    if (from > to) return PERIDOT_OK;
    const struct pd_chars text = pd_chars_part(a->text, from, to - from);
    const bool many = affixes.type == PD_TUPLE;
    for (size_t i = 0; i < (many ? affixes.list.n : 1) && !found; i++)
        PD_TRY(affix_is(&found, r, text, many ? &affixes.list.at[i] : &affixes, which));
    return pd_give(out, pd_value_bool(found));
}

/* The index of the character where a[1] is; -1: nowhere. */
PD_BUILTIN_AS(pd_str_find)
{
    size_t from, to, at;
    PD_TRY(need_text(r, &a[1]));
    PD_TRY(part_between(&from, &to, r, a->text, a + 2));
    const struct pd_chars text = pd_chars_part(a->text, 0, to);
    if (which & PD_FIND_LAST) PD_TRY(pd_chars_find_last(&at, r, text, a[1].text, to));
    else PD_TRY(pd_chars_find(&at, r, text, a[1].text, from));
    const bool found = at != SIZE_MAX && at >= from && from <= to;
    PD_TRY(pd_render_scan(r, found ? at : 0));
    if (!found && which & PD_FIND_MUST)
        return pd_render_fail(r, "%sindex does not find the text", which & PD_FIND_LAST ? "r" : "");
    return pd_give(out, pd_value_int(found ? (int64_t)pd_chars_count(pd_chars_part(text, 0, at)) : -1, false));
}

PD_BUILTIN(pd_str_count)
{
    size_t from, to, at;
    int64_t n = 0;
    PD_TRY(need_text(r, &a[1]));
    PD_TRY(part_between(&from, &to, r, a->text, a + 2));
    const struct pd_chars text = pd_chars_part(a->text, 0, to);
    if (a[1].text.size == 0 && from <= to) n = (int64_t)pd_chars_count(pd_chars_part(text, from, to - from)) + 1;
    while (a[1].text.size) {
        PD_TRY(pd_chars_find(&at, r, text, a[1].text, from));
        if (at == SIZE_MAX) break;
        from = at + a[1].text.size;
        n++;
    }
    return pd_give(out, pd_value_int(n, false));
}

/* Has characters, and none of that class. */
PD_BUILTIN_AS(pd_str_lacks)
{
    size_t at;
    PD_TRY(pd_unicode_find(&at, r, a->text, 0, (enum pd_unicode_class)which));
    return pd_give(out, pd_value_bool(a->text.size && at == SIZE_MAX));
}

PD_BUILTIN(pd_str_isspace)
{
    PD_TRY(pd_render_scan(r, a->text.size));
    return pd_give(out, pd_value_bool(a->text.size && pd_chars_strip(a->text, NULL, PD_STRIP_LEFT).size == 0));
}

PD_BUILTIN(pd_str_isascii)
{
    PD_TRY(pd_render_scan(r, a->text.size));
    return pd_give(out, pd_value_bool(pd_chars_is_ascii(a->text)));
}

/* ---- texts: making others ---- */

PD_BUILTIN(pd_str_join)
{
    struct pd_builder b = {.r = r};
    struct pd_iterator it;
    struct pd_value item;
    const struct pd_value sep = *a;
    bool done = false;
    PD_TRY(pd_iterate(&it, r, &a[1]));
    for (size_t i = 0;; i++) {
        PD_TRY(pd_iterator_next(&item, &done, &it, r));
        if (done) break;
        PD_TRY(need_text(r, &item));
        if (sep.markup) return pd_render_fail(r, "join by a text marked safe is not supported");
        if (i) PD_TRY(pd_builder_add(&b, sep.text));
        PD_TRY(pd_builder_add(&b, item.text));
    }
    return pd_give(out, pd_builder_value(&b));
}

PD_BUILTIN_AS(pd_str_remove_affix)
{
    bool found;
    if (a->markup) return pd_render_fail(r, "removing a part of a text marked safe is not supported");
    PD_TRY(affix_is(&found, r, a->text, &a[1], which));
    const size_t n = found ? a[1].text.size : 0;
    return pd_give(out, pd_value_text(pd_chars_part(a->text, which ? 0 : n, a->text.size - n)));
}

PD_BUILTIN_AS(pd_str_partition)
{
    const struct pd_chars text = a->text, empty = {"", 0, pd_all_own};
    size_t at;
    PD_TRY(need_text(r, &a[1]));
    if (a[1].text.size == 0) return pd_render_fail(r, "partition at an empty text");
    if (a->markup) return pd_render_fail(r, "partition of a text marked safe is not supported");
    if (which) PD_TRY(pd_chars_find_last(&at, r, text, a[1].text, text.size));
    else PD_TRY(pd_chars_find(&at, r, text, a[1].text, 0));
    const size_t n = a[1].text.size, end = at + n;
    PD_TRY(pd_list_create(out, r, 3));
    out->type = PD_TUPLE;
    for (size_t i = 0; i < 3; i++) out->list.at[i] = pd_value_text(empty);
    out->list.at[which ? 2 : 0] = pd_value_text(text);
    if (at == SIZE_MAX) return PERIDOT_OK;
    out->list.at[0] = pd_value_text(pd_chars_part(text, 0, at));
    out->list.at[1] = pd_value_text(pd_chars_part(text, at, n));
    out->list.at[2] = pd_value_text(pd_chars_part(text, end, text.size - end));
    return PERIDOT_OK;
}

PD_BUILTIN(pd_filter_wordcount)
{
    struct pd_chars text;
    int64_t n = 0;
    size_t at = 0;
    PD_TRY(pd_value_string(&text, r, a));
    for (;; n++) {
        PD_TRY(pd_unicode_find(&at, r, text, at, PD_UNICODE_WORD));
        if (at == SIZE_MAX) break;
        PD_TRY(pd_unicode_find(&at, r, text, at, PD_UNICODE_NOT_WORD));
        if (at == SIZE_MAX) {
            n++;
            break;
        }
    }
    return pd_give(out, pd_value_int(n, false));
}

PD_BUILTIN_ANY(pd_filter_format)
{
    (void)which;
    struct pd_value format;
    struct pd_args values = {args->at + 1, args->n - 1, args->n_named, args->named};
    PD_TRY(pd_filter_string(&format, r, args->at));
    return pd_printf(out, r, &format, &values);
}

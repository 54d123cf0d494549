/* Filters that write texts for a place: HTML and URLs, lines of a width, indented, as JSON; and those of numbers. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/template/template_.h"

#include "base/base.h"

#include <math.h>
#include <pcre2.h>
#include <stdio.h>
#include <string.h>

PD_BUILTIN(pd_filter_escape)
{
    PD_TRY(pd_render_scan(r, a->type == PD_TEXT ? 4 * a->text.size : 0));
    return pd_value_escape(out, r, a);
}

PD_BUILTIN(pd_filter_forceescape)
{
    struct pd_value text;
    PD_TRY(pd_filter_string(&text, r, a));
    text.markup = false;
    return pd_value_escape(out, r, &text);
}

/* ---- HTML and URLs ---- */

/* What is from each `open` up to the next `close` is taken out, and what is then side by side is looked at again. */
static peridot_status cut_out(struct pd_chars *text, struct pd_render *r, struct pd_chars open, struct pd_chars close)
{
    for (;;) {
        struct pd_builder b = {.r = r};
        size_t from, to;
        PD_TRY(pd_chars_find(&from, r, *text, open, 0));
        if (from == SIZE_MAX) return PERIDOT_OK;
        PD_TRY(pd_chars_find(&to, r, *text, close, from));
        if (to == SIZE_MAX) return PERIDOT_OK;
        to += close.size;
        PD_TRY(pd_builder_add(&b, pd_chars_part(*text, 0, from)));
        PD_TRY(pd_builder_add(&b, pd_chars_part(*text, to, text->size - to)));
        *text = pd_builder_value(&b).text;
    }
}

/* The entities that escaping makes, and three more: there are thousands. */
static peridot_status unescape(struct pd_value *out, struct pd_render *r, struct pd_chars text)
{
    static const struct { const char *name, *text; } entities[] = {{"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"},
        {"&#39;", "'"}, {"&#34;", "\""}, {"&quot;", "\""}, {"&apos;", "'"}, {"&nbsp;", "\xc2\xa0"}};
    struct pd_builder b = {.r = r};
    for (size_t at = 0, size; at < text.size; at += size) {
        const char *end = memchr(text.data + at, '&', text.size - at);
        size_t i = 0;
        size = end ? (size_t)(end - text.data) - at : text.size - at;
        PD_TRY(pd_builder_add(&b, pd_chars_part(text, at, size)));
        if (!end || size) continue;
        const size_t left = text.size - at;
        for (size = 0; i < PD_COUNT(entities) && !size; i++) {
            const size_t n = strlen(entities[i].name);
            if (n <= left && memcmp(text.data + at, entities[i].name, n) == 0) size = n;
        }
        const char next = left > 1 ? text.data[at + 1] : ' ';
        if (!size && next != ' ' && next != '&' && next != '<' && next != '\n')
            return pd_render_fail(r, "an entity in striptags is not supported");
        const struct pd_chars part = pd_chars_part(text, at, size ? size : 1);
        if (size) PD_TRY(pd_builder_string(&b, entities[i - 1].text, pd_chars_is_own(part)));
        else PD_TRY(pd_builder_add(&b, part));
        if (!size) size = 1;
    }
    return pd_give(out, pd_builder_value(&b));
}

PD_BUILTIN(pd_filter_striptags)
{
    struct pd_value text = {.type = PD_TEXT}, none[3] = {{.type = PD_UNSET}}, space = pd_value_text(PD_CHARS(" "));
    PD_TRY(pd_value_string(&text.text, r, a));
    PD_TRY(cut_out(&text.text, r, PD_CHARS("<!--"), PD_CHARS("-->")));
    PD_TRY(cut_out(&text.text, r, PD_CHARS("<"), PD_CHARS(">")));
    none[0] = text;
    none[1].type = none[2].type = PD_UNSET;
    PD_TRY(pd_str_split(&text, r, none, false));
    PD_TRY(pd_filter_join(&text, r, (struct pd_value[]){text, space, {.type = PD_UNSET}}));
    return unescape(out, r, text.text);
}

static peridot_status quote_url(struct pd_builder *b, const struct pd_value *v, bool in_query)
{
    struct pd_chars text;
    char escaped[4];
    PD_TRY(pd_value_string(&text, b->r, v));
    if (v->type == PD_UNDEFINED) return pd_value_fail_undefined(b->r, v);
    for (size_t i = 0; i < text.size; i++) {
        const struct pd_chars c = pd_chars_part(text, i, 1);
        const char code = text.data[i];
        const bool plain = (code >= '0' && code <= '9') || ((code | 0x20) >= 'a' && (code | 0x20) <= 'z') ||
                           (code && strchr("_.-~", code)) || (code == '/' && !in_query);
        snprintf(escaped, sizeof escaped, "%%%02X", (unsigned char)code);
        if (in_query && code == ' ') strcpy(escaped, "+");
        if (plain) PD_TRY(pd_builder_add(b, c));
        else PD_TRY(pd_builder_string(b, escaped, pd_chars_is_own(c)));
    }
    return PERIDOT_OK;
}

/* A text for a path, or pairs for a query. */
PD_BUILTIN(pd_filter_urlencode)
{
    struct pd_builder b = {.r = r};
    struct pd_value pairs = *a, pair;
    const bool is_query = a->type != PD_TEXT && pd_is_iterable(a);
    if (a->type == PD_DICT) PD_TRY(pd_dict_view(&pairs, r, a->dict, PD_VIEW_ITEMS));
    if (is_query) PD_TRY(pd_value_list(&pairs, r, &pairs));
    else PD_TRY(quote_url(&b, a, false));
    for (size_t i = 0; is_query && i < pairs.list.n; i++) {
        PD_TRY(pd_value_list(&pair, r, &pairs.list.at[i]));
        if (pair.list.n != 2) return pd_render_fail(r, "urlencode of what is no pair");
        if (i) PD_TRY(pd_builder_string(&b, "&", true));
        PD_TRY(quote_url(&b, &pair.list.at[0], true));
        PD_TRY(pd_builder_string(&b, "=", true));
        PD_TRY(quote_url(&b, &pair.list.at[1], true));
    }
    return pd_give(out, pd_builder_value(&b));
}

static peridot_status add_attribute(struct pd_builder *b, const struct pd_pair *pair)
{
    struct pd_value escaped;
    if (pair->key.type != PD_TEXT) return pd_render_fail(b->r, "the name of an attribute is no text");
    for (size_t i = 0; i < pair->key.text.size; i++)
        if (memchr(" \t\n\r\f\v/>=", pair->key.text.data[i], 9))
            return pd_render_fail(b->r, "the name of an attribute has a character that it may not have");
    PD_TRY(pd_value_escape(&escaped, b->r, &pair->key));
    PD_TRY(pd_builder_add(b, escaped.text));
    PD_TRY(pd_builder_string(b, "=\"", true));
    PD_TRY(pd_value_escape(&escaped, b->r, &pair->value));
    PD_TRY(pd_builder_add(b, escaped.text));
    return pd_builder_string(b, "\"", true);
}

PD_BUILTIN(pd_filter_xmlattr)
{
    struct pd_builder b = {.r = r};
    const bool space = a[1].type == PD_UNSET || pd_value_is_true(&a[1]);
    if (a->type == PD_UNDEFINED) return pd_value_fail_undefined(r, a);
    if (a->type != PD_DICT) return pd_render_fail(r, "xmlattr of a value of type %s", pd_value_type_name(a));
    for (size_t i = 0; i < a->dict->n; i++) {
        const struct pd_pair *pair = &a->dict->at[i];
        if (pair->value.type == PD_NONE || pair->value.type == PD_UNDEFINED) continue;
        if (b.size || space) PD_TRY(pd_builder_string(&b, " ", true));
        PD_TRY(add_attribute(&b, pair));
    }
    return pd_give(out, pd_builder_value(&b));
}

/* `otherwise` where an argument was not given, or is none. */
static peridot_status take_size(size_t *out, struct pd_render *r, const struct pd_value *v, size_t otherwise)
{
    *out = otherwise;
    if (v->type == PD_UNSET || v->type == PD_NONE) return PERIDOT_OK;
    if (v->type == PD_UNDEFINED) return pd_value_fail_undefined(r, v);
    if (!pd_is_integer(v) || pd_value_integer(v) < 0) return pd_render_fail(r, "a width or length that is no count");
    *out = (size_t)pd_value_integer(v);
    return PERIDOT_OK;
}

static peridot_status builtins_layout_take_text(struct pd_chars *out, struct pd_render *r, const struct pd_value *v,
                                                struct pd_chars otherwise)
{
    *out = v->type == PD_TEXT ? v->text : otherwise;
    const bool good = v->type == PD_TEXT || v->type == PD_UNSET || v->type == PD_NONE;
    return good ? PERIDOT_OK : pd_render_fail(r, "a %s where a text is expected", pd_value_type_name(v));
}

/* ---- indent ---- */

static peridot_status take_integer(int64_t *out, struct pd_render *r, const struct pd_value *v, int64_t otherwise)
{
    *out = otherwise;
    if (v->type == PD_UNSET) return PERIDOT_OK;
    if (v->type == PD_UNDEFINED) return pd_value_fail_undefined(r, v);
    if (!pd_is_integer(v)) return pd_render_fail(r, "a %s where an integer is expected", pd_value_type_name(v));
    *out = pd_value_integer(v);
    return PERIDOT_OK;
}

/* So many spaces, or the text that was given. */
static peridot_status take_indent(struct pd_chars *out, struct pd_render *r, const struct pd_value *v,
                                  int64_t otherwise)
{
    int64_t n;
    *out = v->text;
    if (v->type == PD_TEXT) return PERIDOT_OK;
    PD_TRY(take_integer(&n, r, v, otherwise));
    const struct pd_value space = pd_value_text(PD_CHARS(" ")), times = pd_value_int(n, true);
    struct pd_value spaces;
    PD_TRY(pd_operate(&spaces, r, (unsigned)'*', &space, &times));
    *out = spaces.text;
    return PERIDOT_OK;
}

/* Lines are joined by newlines, whatever ended them. */
PD_BUILTIN(pd_filter_indent)
{
    struct pd_builder b = {.r = r};
    struct pd_chars indent;
    const bool blank = pd_value_is_true(&a[3]), first = pd_value_is_true(&a[2]);
    if (a->type == PD_UNDEFINED) return pd_value_fail_undefined(r, a);
    if (a->type != PD_TEXT || a->markup) return pd_render_fail(r, "indent of what is no plain text");
    PD_TRY(take_indent(&indent, r, &a[1], 4));
    const struct pd_chars text = a->text;
    if (first) PD_TRY(pd_builder_add(&b, indent));
    for (size_t at = 0;;) {
        const struct pd_line line = pd_line_at(text, at);
        PD_TRY(pd_render_spend(r, 1));
        if (at && (blank || line.text.size)) PD_TRY(pd_builder_add(&b, indent));
        PD_TRY(pd_builder_add(&b, line.text));
        at += line.text.size + line.end_size;
        if (!line.end_size) break;
        PD_TRY(pd_builder_bytes(&b, "\n", 1, pd_chars_is_own(pd_chars_part(text, at - 1, 1))));
    }
    return pd_give(out, pd_builder_value(&b));
}

/* ---- truncate ---- */

PD_BUILTIN(pd_filter_truncate)
{
    struct pd_chars end, cut;
    size_t length, leeway, space = SIZE_MAX;
    struct pd_value all;
    if (a->type == PD_UNDEFINED) *out = *a;
    if (a->type == PD_UNDEFINED) return PERIDOT_OK;
    if (a->type != PD_TEXT || a->markup) return pd_render_fail(r, "truncate of what is no plain text");
    PD_TRY(builtins_layout_take_text(&end, r, &a[3], PD_CHARS("...")));
    PD_TRY(take_size(&length, r, &a[1], 255));
    PD_TRY(take_size(&leeway, r, &a[4], 5));
    PD_TRY(pd_render_scan(r, 2 * a->text.size));
    const size_t n_end = pd_chars_count(end), n = pd_chars_count(a->text);
    if (length < n_end) return pd_render_fail(r, "truncate to less than its end");
    *out = *a;
    if (n <= length || n - length <= leeway) return PERIDOT_OK;
    cut = pd_chars_part(a->text, 0, pd_chars_offset(a->text, length - n_end));
    if (!pd_value_is_true(&a[2])) PD_TRY(pd_chars_find_last(&space, r, cut, PD_CHARS(" "), cut.size));
    if (space != SIZE_MAX) cut.size = space;
    PD_TRY(pd_chars_concat(&all, r, cut, end));
    *out = all;
    return PERIDOT_OK;
}

/* ---- wordwrap, as Python's textwrap does it ---- */

#define SPACE "[\\t\\n\\x0b\\x0c\\r ]"
#define OTHER "[^\\t\\n\\x0b\\x0c\\r ]"
#define LETTER "[\\p{L}\\p{Nl}\\p{No}_]"
#define WORD "[\\p{L}\\p{N}_]"
#define PUNCTUATED "[\\p{L}\\p{N}_!\"'&.,?]"

/* White space, dashes between words, or a word up to a hyphen within it, to its end or to dashes. */
static const char hyphenated[] = SPACE "+|(?<=" PUNCTUATED ")-{2,}(?=" WORD ")|" OTHER "+?(?:-(?:(?<=" LETTER LETTER
    "-)|(?<=" LETTER "-" PUNCTUATED "-))(?=" LETTER "-?" LETTER ")|(?=" SPACE "|\\z)|(?<=" PUNCTUATED ")(?=-{2,}" WORD
    "))";
static const char plain[] = SPACE "+|" OTHER "+";

struct wrap {
    struct pd_builder b;
    size_t width;
    struct pd_chars newline;
    bool breaks_words, at_hyphens;
    pcre2_code *code;
    pcre2_match_data *data;
    /* of the line that is wrapped */
    struct pd_chars text;
    size_t from, to, n;              /* the chunk that comes next: its bytes, and how many characters they are */
    size_t n_lines;
};

/* The next chunk; from == to: there is none. The pattern looks 4 characters back, and ahead as far as dashes go: it
 * gets no more of the text than decides, as all that it gets is checked each time. */
static peridot_status next_chunk(struct wrap *w)
{
    enum { LEAST = 256, MARGIN = 32 };
    size_t begin = w->from = w->to;
    if (w->from == w->text.size) return PERIDOT_OK;
    for (int i = 0; i < 4 && begin; i++) begin = pd_chars_previous(w->text, begin);
    for (size_t room = LEAST, size = 0, end = 0; end + MARGIN > size && begin + size < w->text.size; room *= 2) {
        size = pd_min(w->text.size - begin, room);
        PD_TRY(pd_render_spend(w->b.r, 4 + size / 16));
        const int found = pcre2_match(w->code, (PCRE2_SPTR)w->text.data + begin, size, w->from - begin,
                                      PCRE2_ANCHORED, w->data, NULL);
        end = found > 0 ? pcre2_get_ovector_pointer(w->data)[1] : size;
        w->to = begin + end;
    }
    w->n = pd_chars_count(pd_chars_part(w->text, w->from, w->to - w->from));
    return PERIDOT_OK;
}

static bool is_blank(struct pd_chars text) { return pd_chars_strip(text, NULL, PD_STRIP_LEFT).size == 0; }

/* Characters of the next chunk, which is too long for any line, that go on a line with so many left. */
static size_t break_at(const struct wrap *w, size_t left)
{
    const struct pd_chars chunk = pd_chars_part(w->text, w->from, w->to - w->from);
    size_t at = pd_chars_offset(chunk, left), hyphen = 0;
    if (!w->at_hyphens || w->n <= left) return left;
    for (size_t i = at; i-- > 1 && !hyphen;)
        if (chunk.data[i] == '-') hyphen = i;
    for (at = 0; at < hyphen; at++)
        if (chunk.data[at] != '-') return pd_chars_count(pd_chars_part(chunk, 0, hyphen)) + 1;
    return left;
}

/* A line: chunks as long as they fit, and what a long word fills up. */
static peridot_status wrap_one(struct wrap *w)
{
    size_t used = 0, n_chunks = 0, last;
    if (w->n_lines && is_blank(pd_chars_part(w->text, w->from, w->to - w->from))) PD_TRY(next_chunk(w));
    const size_t begin = w->from;
    for (last = begin; w->from < w->to && used + w->n <= w->width; n_chunks++) {
        used += w->n;
        last = w->from;
        PD_TRY(next_chunk(w));
    }
    size_t end = w->from;
    if (w->from < w->to && w->n > w->width && (w->breaks_words || n_chunks == 0)) {
        const size_t n = w->breaks_words ? break_at(w, w->width - used) : w->n;
        const struct pd_chars chunk = pd_chars_part(w->text, w->from, w->to - w->from);
        last = w->from;
        end = w->from += pd_chars_offset(chunk, n);
        w->n -= n;
        n_chunks++;
        if (w->n == 0) PD_TRY(next_chunk(w));
    }
    if (n_chunks && is_blank(pd_chars_part(w->text, last, end - last))) n_chunks--, end = last;
    if (n_chunks == 0) return PERIDOT_OK;
    if (w->n_lines++) PD_TRY(pd_builder_add(&w->b, w->newline));
    return pd_builder_add(&w->b, pd_chars_part(w->text, begin, end - begin));
}

static peridot_status wrap_text(struct wrap *w, struct pd_chars text)
{
    if (w->width == 0) return pd_render_fail(w->b.r, "lines of no width");
    for (size_t at = 0; at < text.size;) {
        const struct pd_line line = pd_line_at(text, at);
        if (at) PD_TRY(pd_builder_add(&w->b, w->newline));
        at += line.text.size + line.end_size;
        w->text = line.text;
        w->to = w->n_lines = 0;
        PD_TRY(next_chunk(w));
        while (w->from < w->to) PD_TRY(wrap_one(w));
    }
    return PERIDOT_OK;
}

PD_BUILTIN(pd_filter_wordwrap)
{
    struct wrap w = {.b.r = r};
    int error;
    PCRE2_SIZE at;
    if (a->type == PD_UNDEFINED) return pd_value_fail_undefined(r, a);
    if (a->type != PD_TEXT) return pd_render_fail(r, "wordwrap of what is no text");
    PD_TRY(take_size(&w.width, r, &a[1], 79));
    PD_TRY(builtins_layout_take_text(&w.newline, r, &a[3], PD_CHARS("\n")));
    w.breaks_words = a[2].type == PD_UNSET || pd_value_is_true(&a[2]);
    w.at_hyphens = a[4].type == PD_UNSET || pd_value_is_true(&a[4]);
    PD_TRY(pd_render_spend(r, 150));
    w.code = pcre2_compile((PCRE2_SPTR)(w.at_hyphens ? hyphenated : plain), PCRE2_ZERO_TERMINATED,
                           PCRE2_UTF | PCRE2_MATCH_INVALID_UTF, &error, &at, NULL);
    w.data = w.code ? pcre2_match_data_create(1, NULL) : NULL;
    peridot_status status = w.data ? wrap_text(&w, a->text) : pd_fail_alloc(a->text.size, "a pattern of a template");
    pcre2_match_data_free(w.data);
    pcre2_code_free(w.code);
    *out = pd_builder_value(&w.b);
    return status;
}

/* ---- pprint ---- */

enum { WIDTH = 80 };

/* The value with its dicts in the order of their keys. */
static peridot_status sort_dicts(struct pd_value *out, struct pd_render *r, const struct pd_value *v)
{
    struct pd_pair *pairs;
    *out = *v;
    PD_TRY(pd_render_spend(r, 1));
    PD_TRY(pd_render_enter(r));
    if (v->type == PD_DICT) {
        PD_TRY(pd_dict_sorted(&pairs, r, v->dict));
        PD_TRY(pd_dict_create(out, r, v->own));
        for (size_t i = 0; i < v->dict->n; i++) {
            struct pd_value value;
            PD_TRY(sort_dicts(&value, r, &pairs[i].value));
            PD_TRY(pd_dict_put(r, out->dict, &pairs[i].key, &value));
        }
    } else if (v->type == PD_LIST || v->type == PD_TUPLE) {
        PD_TRY(pd_list_create(out, r, v->list.n));
        out->type = v->type;
        out->own = v->own;
        for (size_t i = 0; i < v->list.n; i++) PD_TRY(sort_dicts(&out->list.at[i], r, &v->list.at[i]));
    }
    pd_render_leave(r);
    return PERIDOT_OK;
}

static peridot_status add_line(struct pd_builder *b, size_t indent, bool own)
{
    PD_TRY(pd_builder_string(b, ",\n", own));
    while (indent-- > 0) PD_TRY(pd_builder_string(b, " ", own));
    return PERIDOT_OK;
}

/* In a line where there is room for it after `indent` characters and before `after`, else an item a line. */
static peridot_status layout(struct pd_builder *b, const struct pd_value *v, size_t indent, size_t after)
{
    static const char *const open[] = {[PD_LIST] = "[", [PD_TUPLE] = "(", [PD_DICT] = "{"};
    struct pd_builder line = {.r = b->r};
    PD_TRY(pd_print_repr(&line, v));
    const struct pd_chars text = pd_builder_value(&line).text;
    const bool is_dict = v->type == PD_DICT, one = v->type == PD_TUPLE && v->list.n == 1;
    const size_t n = is_dict ? v->dict->n : v->list.n;
    if (pd_chars_count(text) + indent + after <= WIDTH) return pd_builder_add(b, text);
    if (v->type == PD_TEXT) return pd_render_fail(b->r, "pprint of a long text is not supported");
    if (!is_dict && v->type != PD_LIST && v->type != PD_TUPLE) return pd_builder_add(b, text);
    PD_TRY(pd_builder_string(b, open[v->type], v->own));
    PD_TRY(pd_render_enter(b->r));
    for (size_t i = 0; i < n; i++) {
        size_t at = indent + 1, before = b->size;
        if (i) PD_TRY(add_line(b, indent + 1, v->own));
        if (i) before = b->size;
        if (is_dict) PD_TRY(pd_print_repr(b, &v->dict->at[i].key));
        if (is_dict) PD_TRY(pd_builder_string(b, ": ", v->own));
        if (is_dict) at += pd_chars_count((struct pd_chars){b->data + before, b->size - before, NULL});
        PD_TRY(layout(b, is_dict ? &v->dict->at[i].value : &v->list.at[i], at, i + 1 < n ? 1 : after + 1 + one));
    }
    pd_render_leave(b->r);
    return pd_builder_string(b, one ? ",)" : is_dict ? "}" : v->type == PD_LIST ? "]" : ")", v->own);
}

PD_BUILTIN(pd_filter_pprint)
{
    struct pd_builder b = {.r = r};
    struct pd_value sorted;
    PD_TRY(sort_dicts(&sorted, r, a));
    PD_TRY(layout(&b, &sorted, 0, 0));
    return pd_give(out, pd_builder_value(&b));
}

/* ---- JSON ---- */

PD_BUILTIN(pd_filter_tojson)
{
    struct pd_builder b = {.r = r};
    struct pd_json_style style = {.comma = PD_CHARS(", "), .colon = PD_CHARS(": ")};
    style.ascii = pd_value_is_true(&a[1]);
    style.sorted = pd_value_is_true(&a[4]);
    style.lines = a[2].type != PD_UNSET && a[2].type != PD_NONE;
    if (style.lines) PD_TRY(take_indent(&style.indent, r, &a[2], 0));
    if (style.lines) style.comma = PD_CHARS(",");
    if (a[3].type != PD_UNSET && a[3].type != PD_NONE) {
        if ((a[3].type != PD_LIST && a[3].type != PD_TUPLE) || a[3].list.n != 2 || a[3].list.at[0].type != PD_TEXT ||
            a[3].list.at[1].type != PD_TEXT)
            return pd_render_fail(r, "the separators of tojson are two texts");
        style.comma = a[3].list.at[0].text;
        style.colon = a[3].list.at[1].text;
    }
    PD_TRY(pd_print_json(&b, a, &style));
    return pd_give(out, pd_builder_value(&b));
}

/* ---- numbers ---- */

PD_BUILTIN(pd_filter_int)
{
    int64_t i = 0, base;
    bool ok = false;
    double f;
    if (a->type == PD_UNDEFINED) return pd_value_fail_undefined(r, a);
    PD_TRY(take_integer(&base, r, &a[2], 10));
    if (a->type == PD_HUGE) return pd_render_fail(r, "an integer that does not fit 64 bits");
    if (pd_is_integer(a)) i = pd_value_integer(a), ok = true;
    if (a->type == PD_FLOAT) PD_TRY(pd_int_from_float(&i, &ok, r, a->f));
    if (a->type == PD_TEXT) PD_TRY(pd_int_read(&i, &ok, r, a->text, base));
    if (a->type == PD_TEXT && !ok) {
        pd_float_read(&f, &ok, a->text);
        if (ok && isinf(f)) ok = false;
        if (ok) PD_TRY(pd_int_from_float(&i, &ok, r, f));
    }
    const bool own = a->type != PD_TEXT ? a->own : pd_chars_is_own(a->text);
    if (ok) *out = pd_value_int(i, own);
    else *out = a[1].type == PD_UNSET ? pd_value_int(0, true) : a[1];
    return PERIDOT_OK;
}

PD_BUILTIN(pd_filter_float)
{
    double f = 0;
    bool ok = pd_is_number(a);
    if (a->type == PD_UNDEFINED) return pd_value_fail_undefined(r, a);
    if (ok) f = pd_value_double(a);
    if (a->type == PD_HUGE) f = (double)a->u, ok = true;
    if (a->type == PD_TEXT) pd_float_read(&f, &ok, a->text);
    const bool own = a->type != PD_TEXT ? a->own : pd_chars_is_own(a->text);
    if (ok) *out = pd_value_float(f, own);
    else *out = a[1].type == PD_UNSET ? pd_value_float(0, true) : a[1];
    return PERIDOT_OK;
}

PD_BUILTIN(pd_filter_abs)
{
    const struct pd_value zero = pd_value_int(0, true);
    bool below = false;
    if (pd_is_number(a)) PD_TRY(pd_compare(&below, r, '<', a, &zero));
    PD_TRY(pd_negate(out, r, a, below || (a->type == PD_FLOAT && signbit(a->f))));
    return PERIDOT_OK;
}

static peridot_status fail_digits(struct pd_render *r, int64_t digits)
{
    return pd_render_fail(r, "rounding to %lld digits is not supported", (long long)digits);
}

static peridot_status round_common(struct pd_value *out, struct pd_render *r, const struct pd_value *v, int64_t digits)
{
    char text[400];
    bool ok;
    double f = 0;
    if (pd_is_integer(v) && digits >= 0) {
        return pd_give(out, pd_value_int(pd_value_integer(v), v->own));
    }
    if (pd_is_integer(v) || digits < 0 || digits > 50) return fail_digits(r, digits);
    *out = *v;
    if (!isfinite(v->f)) return PERIDOT_OK;
    snprintf(text, sizeof text, "%.*f", (int)digits, v->f);
    for (char *c = text; *c; c++)
        if (*c == ',') *c = '.';   /* the locale's */
    pd_float_read(&f, &ok, (struct pd_chars){text, strlen(text), NULL});
    *out = pd_value_float(f, v->own);
    return ok ? PERIDOT_OK : pd_render_fail(r, "a number that cannot be rounded");
}

PD_BUILTIN(pd_filter_round)
{
    int64_t digits;
    const struct pd_chars method = a[2].type == PD_TEXT ? a[2].text : PD_CHARS("common");
    PD_TRY(take_integer(&digits, r, &a[1], 0));
    if (a->type == PD_UNDEFINED) return pd_value_fail_undefined(r, a);
    if (!pd_is_number(a)) return pd_render_fail(r, "a %s cannot be rounded", pd_value_type_name(a));
    if (pd_chars_are(method, "common")) return round_common(out, r, a, digits);
    const bool up = pd_chars_are(method, "ceil");
    if (!up && !pd_chars_are(method, "floor")) return pd_render_fail(r, "rounding is common, ceil or floor");
    if (digits < 0 || digits > 15) return fail_digits(r, digits);
    const double factor = pow(10, (double)digits), scaled = pd_value_double(a) * factor;
    if (!isfinite(scaled)) return pd_render_fail(r, "a number that cannot be rounded");
    *out = pd_value_float(((up ? ceil(scaled) : floor(scaled)) + 0.0) / factor, a->own);   /* + 0.0: no -0.0 */
    return PERIDOT_OK;
}

#include "text/template/filters_text.h"

#include "base/num.h"
#include "text/template/filters_list.h"
#include "text/template/iterate.h"
#include "text/template/number.h"
#include "text/template/operators.h"
#include "text/template/print.h"
#include "text/template/printf.h"
#include "text/template/strings.h"
#include "text/template/unicode.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

PD_BUILTIN(pd_filter_string)
{
    struct pd_chars text;
    const bool markup = a->markup;
    (void)args;
    PD_TRY(pd_value_string(&text, r, a));
    *out = pd_value_text(text);
    out->markup = markup;
    return PERIDOT_OK;
}

PD_BUILTIN(pd_filter_safe)
{
    PD_TRY(pd_filter_string(out, r, a, args));
    out->markup = true;
    return PERIDOT_OK;
}

PD_BUILTIN(pd_filter_escape)
{
    (void)args;
    PD_TRY(pd_render_scan(r, a->type == PD_TEXT ? 4 * a->text.size : 0));
    return pd_value_escape(out, r, a);
}

PD_BUILTIN(pd_filter_forceescape)
{
    struct pd_value text;
    PD_TRY(pd_filter_string(&text, r, a, args));
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
    *out = pd_builder_value(&b);
    return PERIDOT_OK;
}

PD_BUILTIN(pd_filter_striptags)
{
    struct pd_value text = {.type = PD_TEXT}, none[3] = {{.type = PD_UNSET}}, space = pd_value_text(PD_CHARS(" "));
    PD_TRY(pd_value_string(&text.text, r, a));
    PD_TRY(cut_out(&text.text, r, PD_CHARS("<!--"), PD_CHARS("-->")));
    PD_TRY(cut_out(&text.text, r, PD_CHARS("<"), PD_CHARS(">")));
    none[0] = text;
    none[1].type = none[2].type = PD_UNSET;
    PD_TRY(pd_str_split(&text, r, none, args));
    PD_TRY(pd_filter_join(&text, r, (struct pd_value[]){text, space, {.type = PD_UNSET}}, args));
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
    (void)args;
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
    *out = pd_builder_value(&b);
    return PERIDOT_OK;
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
    (void)args;
    const bool space = a[1].type == PD_UNSET || pd_value_is_true(&a[1]);
    if (a->type == PD_UNDEFINED) return pd_value_fail_undefined(r, a);
    if (a->type != PD_DICT) return pd_render_fail(r, "xmlattr of a value of type %s", pd_value_type_name(a));
    for (size_t i = 0; i < a->dict->n; i++) {
        const struct pd_pair *pair = &a->dict->at[i];
        if (pair->value.type == PD_NONE || pair->value.type == PD_UNDEFINED) continue;
        if (b.size || space) PD_TRY(pd_builder_string(&b, " ", true));
        PD_TRY(add_attribute(&b, pair));
    }
    *out = pd_builder_value(&b);
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
    (void)args;
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
    return pd_str_replace(out, r, texts, args);
}

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
    (void)args;
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
    *out = pd_builder_value(&b);
    return PERIDOT_OK;
}

PD_BUILTIN(pd_filter_wordcount)
{
    struct pd_chars text;
    int64_t n = 0;
    size_t at = 0;
    (void)args;
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
    *out = pd_value_int(n, false);
    return PERIDOT_OK;
}

PD_BUILTIN(pd_filter_format)
{
    struct pd_value format;
    struct pd_args values = {args->at + 1, args->n - 1, args->n_named, args->named};
    PD_TRY(pd_filter_string(&format, r, a, args));
    return pd_printf(out, r, &format, &values);
}

/* ---- JSON ---- */

PD_BUILTIN(pd_filter_tojson)
{
    struct pd_builder b = {.r = r};
    struct pd_json_style style = {.comma = PD_CHARS(", "), .colon = PD_CHARS(": ")};
    (void)args;
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
    *out = pd_builder_value(&b);
    return PERIDOT_OK;
}

/* ---- numbers ---- */

PD_BUILTIN(pd_filter_int)
{
    int64_t i = 0, base;
    bool ok = false;
    double f;
    (void)args;
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
    (void)args;
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
    (void)args;
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
        *out = pd_value_int(pd_value_integer(v), v->own);
        return PERIDOT_OK;
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
    (void)args;
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

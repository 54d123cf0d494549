#include "text/template/print.h"

#include "base/num.h"
#include "text/template/number.h"
#include "text/template/unicode.h"

#include <stdio.h>
#include <string.h>

static peridot_status print_int(struct pd_builder *b, const struct pd_value *v)
{
    char digits[24];
    int n = v->type == PD_HUGE ? snprintf(digits, sizeof digits, "%llu", (unsigned long long)v->u)
                               : snprintf(digits, sizeof digits, "%lld", (long long)v->i);
    return pd_builder_bytes(b, digits, (size_t)n, v->own);
}

static peridot_status print_float(struct pd_builder *b, const struct pd_value *v)
{
    char digits[PD_NUMBER_SIZE];
    return pd_builder_bytes(b, digits, pd_float_write(digits, v->f), v->own);
}

/* What is written the same by all three. *found false: it is something else. */
static peridot_status print_scalar(bool *found, struct pd_builder *b, const struct pd_value *v)
{
    *found = true;
    if (v->type == PD_INT || v->type == PD_HUGE) return print_int(b, v);
    if (v->type == PD_FLOAT) return print_float(b, v);
    *found = false;
    return PERIDOT_OK;
}

/* ---- repr ---- */

static peridot_status repr_character(struct pd_builder *b, struct pd_chars c, uint32_t code, bool printable, char quote)
{
    static const char names[] = "\n\r\t\\", letters[] = "nrt\\";
    char escaped[12];
    const char *name = code < 0x80 ? memchr(names, (int)code, sizeof names - 1) : NULL;
    const bool own = pd_chars_is_own(c);
    if (name) snprintf(escaped, sizeof escaped, "\\%c", letters[name - names]);
    else if (code == (unsigned char)quote) snprintf(escaped, sizeof escaped, "\\%c", quote);
    else if (printable) return pd_builder_add(b, c);
    else snprintf(escaped, sizeof escaped, code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x", code);
    return pd_builder_string(b, escaped, own);
}

static peridot_status repr_text(struct pd_builder *b, struct pd_chars text)
{
    const bool has_single = text.size && memchr(text.data, '\'', text.size);
    const char quote = has_single && !memchr(text.data, '"', text.size) ? '"' : '\'';
    const bool own = pd_chars_is_own(text);
    size_t hidden, n;
    uint32_t code;
    PD_TRY(pd_builder_bytes(b, &quote, 1, own));
    PD_TRY(pd_unicode_find(&hidden, b->r, text, 0, PD_UNICODE_NOT_PRINTABLE));
    for (size_t at = 0; at < text.size; at += n) {
        n = pd_chars_next(&code, text, at);
        PD_TRY(repr_character(b, pd_chars_part(text, at, n), code, at != hidden, quote));
        if (at == hidden) PD_TRY(pd_unicode_find(&hidden, b->r, text, at + n, PD_UNICODE_NOT_PRINTABLE));
    }
    return pd_builder_bytes(b, &quote, 1, own);
}

static peridot_status repr_items(struct pd_builder *b, const struct pd_value *v)
{
    static const struct { const char *open, *close; } brackets[] = {
        [PD_LIST] = {"[", "]"}, [PD_TUPLE] = {"(", ")"}, [PD_VIEW] = {"([", "])"}};
    static const char *const views[] = {"dict_keys", "dict_values", "dict_items"};
    if (v->type == PD_VIEW) PD_TRY(pd_builder_string(b, views[v->kind], v->own));
    PD_TRY(pd_builder_string(b, brackets[v->type].open, v->own));
    for (size_t i = 0; i < v->list.n; i++) {
        if (i) PD_TRY(pd_builder_string(b, ", ", v->own));
        PD_TRY(pd_print_repr(b, &v->list.at[i]));
    }
    if (v->type == PD_TUPLE && v->list.n == 1) PD_TRY(pd_builder_string(b, ",", v->own));
    return pd_builder_string(b, brackets[v->type].close, v->own);
}

static peridot_status repr_dict(struct pd_builder *b, const struct pd_value *v)
{
    PD_TRY(pd_builder_string(b, "{", v->own));
    for (size_t i = 0; i < v->dict->n; i++) {
        if (i) PD_TRY(pd_builder_string(b, ", ", v->own));
        PD_TRY(pd_print_repr(b, &v->dict->at[i].key));
        PD_TRY(pd_builder_string(b, ": ", v->own));
        PD_TRY(pd_print_repr(b, &v->dict->at[i].value));
    }
    return pd_builder_string(b, "}", v->own);
}

static peridot_status repr_other(struct pd_builder *b, const struct pd_value *v)
{
    switch (v->type) {
    case PD_UNDEFINED: return pd_builder_string(b, "Undefined", true);
    case PD_NONE: return pd_builder_string(b, "None", v->own);
    case PD_BOOL: return pd_builder_string(b, v->b ? "True" : "False", v->own);
    case PD_TEXT:
        if (v->markup) return pd_render_fail(b->r, "writing a list of texts marked safe is not supported");
        return repr_text(b, v->text);
    case PD_LIST: case PD_TUPLE: case PD_VIEW: return repr_items(b, v);
    case PD_DICT: return repr_dict(b, v);
    default: return pd_render_fail(b->r, "writing a value of type %s is not supported", pd_value_type_name(v));
    }
}

peridot_status pd_print_repr(struct pd_builder *b, const struct pd_value *v)
{
    bool found;
    PD_TRY(pd_render_spend(b->r, 1));
    PD_TRY(print_scalar(&found, b, v));
    if (found) return PERIDOT_OK;
    PD_TRY(pd_render_enter(b->r));
    peridot_status status = repr_other(b, v);
    pd_render_leave(b->r);
    return status;
}

peridot_status pd_print(struct pd_builder *b, const struct pd_value *v)
{
    if (v->type == PD_TEXT) return pd_builder_add(b, v->text);
    return v->type == PD_UNDEFINED ? PERIDOT_OK : pd_print_repr(b, v);
}

peridot_status pd_value_string(struct pd_chars *out, struct pd_render *r, const struct pd_value *v)
{
    struct pd_builder b = {.r = r};
    *out = v->text;
    if (v->type == PD_TEXT) return PERIDOT_OK;
    PD_TRY(pd_print(&b, v));
    *out = pd_builder_value(&b).text;
    return PERIDOT_OK;
}

peridot_status pd_value_escape(struct pd_value *out, struct pd_render *r, const struct pd_value *v)
{
    static const char special[] = "&<>'\"";
    static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    struct pd_builder b = {.r = r};
    struct pd_chars text;
    const bool done = v->markup;
    PD_TRY(pd_value_string(&text, r, v));
    for (size_t i = 0; i < text.size && !done; i++) {
        const char *found = memchr(special, text.data[i], sizeof special - 1);
        const struct pd_chars c = pd_chars_part(text, i, 1);
        if (found) PD_TRY(pd_builder_string(&b, names[found - special], pd_chars_is_own(c)));
        else PD_TRY(pd_builder_add(&b, c));
    }
    *out = done ? *v : pd_builder_value(&b);
    out->markup = true;
    return PERIDOT_OK;
}

/* ---- JSON ---- */

struct json {
    struct pd_builder *b;
    const struct pd_json_style *style;
    size_t level;
};

static peridot_status json_character(struct json *j, struct pd_chars c, uint32_t code)
{
    static const char names[] = "\n\r\t\b\f\"\\", letters[] = "nrtbf\"\\";
    char escaped[16];
    const char *name = code < 0x80 ? memchr(names, (int)code, sizeof names - 1) : NULL;
    if (name) snprintf(escaped, sizeof escaped, "\\%c", letters[name - names]);
    else if (code < 0x20 || (j->style->ascii && code >= 0x7f && code < 0x10000))
        snprintf(escaped, sizeof escaped, "\\u%04x", code);
    else if (j->style->ascii && code >= 0x10000)
        snprintf(escaped, sizeof escaped, "\\u%04x\\u%04x", 0xd800 + (code - 0x10000) / 0x400, 0xdc00 + (code & 0x3ff));
    else return pd_builder_add(j->b, c);
    return pd_builder_string(j->b, escaped, pd_chars_is_own(c));
}

/* Bytes that are written as they are, from `at` on. */
static size_t plain_bytes(const struct json *j, struct pd_chars text, size_t at)
{
    size_t end = at;
    while (end < text.size) {
        unsigned char c = (unsigned char)text.data[end];
        if (c < 0x20 || c == '"' || c == '\\' || (j->style->ascii && c >= 0x7f)) break;
        end++;
    }
    return end - at;
}

static peridot_status json_text(struct json *j, struct pd_chars text)
{
    const bool own = pd_chars_is_own(text);
    uint32_t code;
    size_t n;
    PD_TRY(pd_builder_bytes(j->b, "\"", 1, own));
    for (size_t at = 0; at < text.size; at += n) {
        n = plain_bytes(j, text, at);
        PD_TRY(pd_builder_add(j->b, pd_chars_part(text, at, n)));
        at += n;
        n = 0;
        if (at == text.size) break;
        n = pd_chars_next(&code, text, at);
        PD_TRY(json_character(j, pd_chars_part(text, at, n), code));
    }
    return pd_builder_bytes(j->b, "\"", 1, own);
}

static peridot_status json_value(struct json *j, const struct pd_value *v);

static peridot_status json_line(struct json *j, bool own)
{
    if (!j->style->lines) return PERIDOT_OK;
    PD_TRY(pd_builder_bytes(j->b, "\n", 1, own));
    for (size_t i = 0; i < j->level; i++)
        PD_TRY(pd_builder_bytes(j->b, j->style->indent.data, j->style->indent.size,
                                own && pd_chars_is_own(j->style->indent)));
    return PERIDOT_OK;
}

/* What comes before item i. */
static peridot_status json_begin_item(struct json *j, size_t i, bool own)
{
    const struct pd_chars comma = j->style->comma;
    if (i) PD_TRY(pd_builder_bytes(j->b, comma.data, comma.size, own && pd_chars_is_own(comma)));
    return json_line(j, own);
}

static peridot_status json_list(struct json *j, const struct pd_value *v)
{
    PD_TRY(pd_builder_bytes(j->b, "[", 1, v->own));
    j->level++;
    for (size_t i = 0; i < v->list.n; i++) {
        PD_TRY(json_begin_item(j, i, v->own));
        PD_TRY(json_value(j, &v->list.at[i]));
    }
    j->level--;
    if (v->list.n) PD_TRY(json_line(j, v->own));
    return pd_builder_bytes(j->b, "]", 1, v->own);
}

static peridot_status json_key(struct json *j, const struct pd_value *key)
{
    if (key->type == PD_TEXT) return json_text(j, key->text);
    if (key->type == PD_UNDEFINED) return pd_render_fail(j->b->r, "a key of type Undefined in JSON");
    PD_TRY(pd_builder_bytes(j->b, "\"", 1, key->own));
    PD_TRY(json_value(j, key));
    return pd_builder_bytes(j->b, "\"", 1, key->own);
}

/* Insertion sort by runs would do for the dicts that there are; merging keeps hostile ones cheap. */
static peridot_status sort_pairs(struct pd_render *r, struct pd_pair *at, struct pd_pair *spare, size_t n)
{
    if (n < 2) return PERIDOT_OK;
    const size_t half = n / 2;
    size_t i = 0, k = half, to = 0;
    int order;
    PD_TRY(sort_pairs(r, at, spare, half));
    PD_TRY(sort_pairs(r, at + half, spare, n - half));
    while (i < half && k < n) {
        PD_TRY(pd_value_compare(&order, r, &at[k].key, &at[i].key));
        spare[to++] = order < 0 ? at[k++] : at[i++];
    }
    while (i < half) spare[to++] = at[i++];
    memcpy(at, spare, to * sizeof *at);
    return PERIDOT_OK;
}

peridot_status pd_dict_sorted(struct pd_pair **out, struct pd_render *r, const struct pd_dict *d)
{
    struct pd_pair *spare;
    PD_TRY(pd_render_alloc(out, r, d->n, sizeof **out));
    PD_TRY(pd_render_alloc(&spare, r, d->n, sizeof *spare));
    if (d->n) memcpy(*out, d->at, d->n * sizeof **out);
    return sort_pairs(r, *out, spare, d->n);
}

static peridot_status json_dict(struct json *j, const struct pd_value *v)
{
    const struct pd_chars colon = j->style->colon;
    struct pd_pair *pairs = v->dict->at;
    if (j->style->sorted && v->dict->n) PD_TRY(pd_dict_sorted(&pairs, j->b->r, v->dict));
    PD_TRY(pd_builder_bytes(j->b, "{", 1, v->own));
    j->level++;
    for (size_t i = 0; i < v->dict->n; i++) {
        PD_TRY(json_begin_item(j, i, v->own));
        PD_TRY(json_key(j, &pairs[i].key));
        PD_TRY(pd_builder_bytes(j->b, colon.data, colon.size, v->own && pd_chars_is_own(colon)));
        PD_TRY(json_value(j, &pairs[i].value));
    }
    j->level--;
    if (v->dict->n) PD_TRY(json_line(j, v->own));
    return pd_builder_bytes(j->b, "}", 1, v->own);
}

static peridot_status json_float(struct json *j, const struct pd_value *v)
{
    if (v->f != v->f) return pd_builder_string(j->b, "NaN", v->own);
    if (v->f - v->f != 0) return pd_builder_string(j->b, v->f < 0 ? "-Infinity" : "Infinity", v->own);
    return print_float(j->b, v);
}

static peridot_status json_other(struct json *j, const struct pd_value *v)
{
    bool found;
    switch (v->type) {
    case PD_NONE: return pd_builder_string(j->b, "null", v->own);
    case PD_BOOL: return pd_builder_string(j->b, v->b ? "true" : "false", v->own);
    case PD_FLOAT: return json_float(j, v);
    case PD_TEXT: return json_text(j, v->text);
    case PD_LIST: case PD_TUPLE: return json_list(j, v);
    case PD_DICT: return json_dict(j, v);
    default: break;
    }
    PD_TRY(print_scalar(&found, j->b, v));
    if (found) return PERIDOT_OK;
    return pd_render_fail(j->b->r, "a value of type %s has no form in JSON", pd_value_type_name(v));
}

static peridot_status json_value(struct json *j, const struct pd_value *v)
{
    PD_TRY(pd_render_spend(j->b->r, 1));
    PD_TRY(pd_render_enter(j->b->r));
    peridot_status status = json_other(j, v);
    pd_render_leave(j->b->r);
    return status;
}

peridot_status pd_print_json(struct pd_builder *b, const struct pd_value *v, const struct pd_json_style *style)
{
    struct json j = {.b = b, .style = style};
    return json_value(&j, v);
}

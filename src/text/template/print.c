/* Values as text: str, repr, json.dumps, and texts with values put in (format % values, str.format). */
#include "text/template/template_.h"

#include "base/base.h"

#include <math.h>
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

static peridot_status key_is_before(bool *out, struct pd_render *r, const void *none, const struct pd_pair *a,
                                    const struct pd_pair *b)
{
    int order;
    (void)none;
    PD_TRY(pd_value_compare(&order, r, &a->key, &b->key));
    *out = order < 0;
    return PERIDOT_OK;
}

peridot_status pd_dict_sorted(struct pd_pair **out, struct pd_render *r, const struct pd_dict *d)
{
    PD_TRY(pd_render_alloc(out, r, d->n, sizeof **out));
    if (d->n) memcpy(*out, d->at, d->n * sizeof **out);
    return pd_pairs_sort(r, *out, d->n, key_is_before, NULL);
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

/* "%-05.2f" */
struct directive {
    bool left, zeros, plus, space;
    int64_t width, precision;    /* precision: -1 where there is none */
    char type;
};

static size_t read_number(int64_t *out, struct pd_chars format, size_t at)
{
    for (*out = 0; at < format.size && format.data[at] >= '0' && format.data[at] <= '9'; at++)
        *out = *out < 1000000 ? 10 * *out + (format.data[at] - '0') : *out;
    return at;
}

static size_t read_directive(struct directive *d, struct pd_chars format, size_t at)
{
    *d = (struct directive){.precision = -1};
    for (; at < format.size; at++) {
        if (format.data[at] == '-') d->left = true;
        else if (format.data[at] == '0') d->zeros = true;
        else if (format.data[at] == '+') d->plus = true;
        else if (format.data[at] == ' ') d->space = true;
        else break;
    }
    at = read_number(&d->width, format, at);
    if (at < format.size && format.data[at] == '.') at = read_number(&d->precision, format, at + 1);
    d->type = at < format.size ? format.data[at] : 0;
    return at + 1;
}

static peridot_status pad(struct pd_builder *b, int64_t n, char with, bool own)
{
    PD_TRY(pd_render_spend(b->r, n > 0 ? (uint64_t)n : 0));
    while (n-- > 0) PD_TRY(pd_builder_bytes(b, &with, 1, own));
    return PERIDOT_OK;
}

/* A sign, then digits, in so many columns. */
static peridot_status add_number(struct pd_builder *b, const struct directive *d, const char *digits, bool minus,
                                 bool own)
{
    const char *sign = minus ? "-" : d->plus ? "+" : d->space ? " " : "";
    const int64_t n = d->width - (int64_t)(strlen(sign) + strlen(digits));
    const bool zeros = d->zeros && !d->left;
    if (!d->left && !zeros) PD_TRY(pad(b, n, ' ', own));
    PD_TRY(pd_builder_string(b, sign, own));
    if (zeros) PD_TRY(pad(b, n, '0', own));
    PD_TRY(pd_builder_string(b, digits, own));
    return d->left ? pad(b, n, ' ', own) : PERIDOT_OK;
}

static peridot_status print_add_text(struct pd_builder *b, const struct directive *d, struct pd_chars text)
{
    const size_t end = d->precision >= 0 ? pd_chars_offset(text, (size_t)d->precision) : text.size;
    const struct pd_chars shown = pd_chars_part(text, 0, end);
    const int64_t n = d->width - (int64_t)pd_chars_count(shown);
    PD_TRY(pd_render_scan(b->r, text.size));
    if (!d->left) PD_TRY(pad(b, n, ' ', false));
    PD_TRY(pd_builder_add(b, shown));
    return d->left ? pad(b, n, ' ', false) : PERIDOT_OK;
}

static peridot_status add_integer(struct pd_builder *b, const struct directive *d, const struct pd_value *v)
{
    char digits[32];
    int64_t i;
    bool ok = true;
    if (v->type == PD_FLOAT && (d->type == 'd' || d->type == 'i')) PD_TRY(pd_int_from_float(&i, &ok, b->r, v->f));
    else if (pd_is_integer(v)) i = pd_value_integer(v);
    else ok = false;
    if (!ok || d->precision >= 0)
        return pd_render_fail(b->r, "%%%c of a value of type %s", d->type, pd_value_type_name(v));
    const uint64_t size = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    const char *as = d->type == 'x' ? "%llx" : d->type == 'X' ? "%llX" : d->type == 'o' ? "%llo" : "%llu";
    snprintf(digits, sizeof digits, as, (unsigned long long)size);
    return add_number(b, d, digits, i < 0, v->own);
}

static peridot_status add_float(struct pd_builder *b, const struct directive *d, const struct pd_value *v)
{
    enum { MAX_PRECISION = 60 };
    char digits[400];
    if (!pd_is_number(v)) return pd_render_fail(b->r, "%%f of a value of type %s", pd_value_type_name(v));
    const double f = pd_value_double(v);
    if (!isfinite(f) || d->precision > MAX_PRECISION)
        return pd_render_fail(b->r, "%%f of more digits than are supported");
    snprintf(digits, sizeof digits, "%.*f", d->precision < 0 ? 6 : (int)d->precision, fabs(f));
    for (char *c = digits; *c; c++)
        if (*c == ',') *c = '.';   /* the locale's */
    return add_number(b, d, digits, signbit(f), v->own);
}

static peridot_status add_directive(struct pd_builder *b, const struct directive *d, const struct pd_value *v)
{
    struct pd_builder text = {.r = b->r};
    switch (d->type) {
    case 's':
        PD_TRY(pd_print(&text, v));
        return print_add_text(b, d, pd_builder_value(&text).text);
    case 'r':
        PD_TRY(pd_print_repr(&text, v));
        return print_add_text(b, d, pd_builder_value(&text).text);
    case 'd': case 'i': case 'u': case 'x': case 'X': case 'o': return add_integer(b, d, v);
    case 'f': case 'F': return add_float(b, d, v);
    default: return pd_render_fail(b->r, "a directive of a format that is not supported");
    }
}

static bool has_elements(const struct pd_value *v)
{
    return v->type == PD_DICT || v->type == PD_LIST || v->type == PD_RANGE || v->type == PD_UNDEFINED;
}

peridot_status pd_printf(struct pd_value *out, struct pd_render *r, const struct pd_value *format,
                         const struct pd_args *args)
{
    struct pd_builder b = {.r = r};
    const struct pd_chars text = format->text;
    struct directive d;
    size_t next = 0, end;
    if (format->markup) return pd_render_fail(r, "a format marked safe is not supported");
    if (args->n_named || (args->n == 1 && args->at[0].type == PD_DICT && pd_chars_are(text, "%(")))
        return pd_render_fail(r, "formats with names are not supported");
    for (size_t at = 0; at < text.size; at = end) {
        const char *percent = memchr(text.data + at, '%', text.size - at);
        end = percent ? (size_t)(percent - text.data) : text.size;
        PD_TRY(pd_builder_add(&b, pd_chars_part(text, at, end - at)));
        if (!percent) break;
        at = end;
        end = read_directive(&d, text, at + 1);
        if (d.type == '%') {
            PD_TRY(pd_builder_add(&b, pd_chars_part(text, at, 1)));
            continue;
        }
        if (next == args->n) return pd_render_fail(r, "a format has more directives than values");
        PD_TRY(add_directive(&b, &d, &args->at[next++]));
    }
    /* A value that is not put in is an error, but for one by itself that has elements: these might have names. */
    if (next < args->n && !(args->n == 1 && has_elements(&args->at[0])))
        return pd_render_fail(r, "a format has fewer directives than values");
    return pd_give(out, pd_builder_value(&b));
}

/* ---- str.format ---- */

static peridot_status find_field(const struct pd_value **out, struct pd_render *r, const struct pd_args *args,
                                 struct pd_chars name, size_t *next)
{
    int64_t i;
    char shown[PD_SHOWN_SIZE];
    const bool digits = name.size && read_number(&i, name, 0) == name.size;
    const size_t at = digits ? (size_t)i : name.size ? args->n : (*next)++;
    *out = NULL;
    if (at + 1 < args->n) *out = &args->at[at + 1];
    if (!*out) *out = pd_args_find(args, name);
    if (*out) return PERIDOT_OK;
    return pd_render_fail(r, "format has no argument for {%s}", pd_utf8_shown(shown, name.data, name.size));
}

/* "{name}", and "{name!r}"; what stands behind a colon is not supported. */
static peridot_status add_field(struct pd_builder *b, const struct pd_args *args, struct pd_chars field, size_t *next)
{
    const struct pd_value *value;
    size_t size = 0;
    while (size < field.size && !memchr("!:.[", field.data[size], 4)) size++;
    const struct pd_chars rest = pd_chars_part(field, size, field.size - size);
    PD_TRY(find_field(&value, b->r, args, pd_chars_part(field, 0, size), next));
    if (value->markup) return pd_render_fail(b->r, "format of a text marked safe is not supported");
    if (pd_chars_are(rest, "!r")) return pd_print_repr(b, value);
    if (rest.size && !pd_chars_are(rest, "!s") && !pd_chars_are(rest, ":"))
        return pd_render_fail(b->r, "a field of a format that is not supported");
    return pd_print(b, value);
}

PD_BUILTIN_ANY(pd_str_format)
{
    (void)which;
    struct pd_builder b = {.r = r};
    const struct pd_chars text = args->at[0].text;
    size_t next = 0, end;
    if (args->at[0].markup) return pd_render_fail(r, "a format marked safe is not supported");
    for (size_t at = 0; at < text.size; at = end) {
        const char c = text.data[at];
        const bool twice = at + 1 < text.size && text.data[at + 1] == c;
        end = at + 1;
        if (c != '{' && c != '}') {
            while (end < text.size && text.data[end] != '{' && text.data[end] != '}') end++;
            PD_TRY(pd_builder_add(&b, pd_chars_part(text, at, end - at)));
        } else if (twice) {
            PD_TRY(pd_builder_add(&b, pd_chars_part(text, at, 1)));
            end++;
        } else {
            while (end < text.size && text.data[end] != '}' && text.data[end] != '{') end++;
            if (c == '}' || end == text.size || text.data[end] == '{')
                return pd_render_fail(r, "a brace of a format without the other");
            PD_TRY(add_field(&b, args, pd_chars_part(text, at + 1, end - at - 1), &next));
            end++;
        }
    }
    return pd_give(out, pd_builder_value(&b));
}

#include "text/template/printf.h"

#include "base/utf8.h"
#include "text/template/code.h"
#include "text/template/number.h"
#include "text/template/print.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

static peridot_status add_text(struct pd_builder *b, const struct directive *d, struct pd_chars text)
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
        return add_text(b, d, pd_builder_value(&text).text);
    case 'r':
        PD_TRY(pd_print_repr(&text, v));
        return add_text(b, d, pd_builder_value(&text).text);
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
    *out = pd_builder_value(&b);
    return PERIDOT_OK;
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
    size_t k = args->n;
    for (const struct pd_code *named = args->named; named && !*out; named = named->next, k++)
        if (pd_chars_equal(named->value.text, name)) *out = &args->at[k];
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

peridot_status pd_str_format(struct pd_value *out, struct pd_render *r, const struct pd_args *args)
{
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
    *out = pd_builder_value(&b);
    return PERIDOT_OK;
}

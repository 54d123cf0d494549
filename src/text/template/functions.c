/* The functions that all programs have: jinja2's, and those that transformers adds. */
#include "text/template/builtin.h"

#include "base/num.h"
#include "base/utf8.h"
#include "text/template/code.h"
#include "text/template/iterate.h"
#include "text/template/print.h"
#include "text/template/template.h"

#include <stdio.h>
#include <string.h>

#define FUNCTION(name) static PD_BUILTIN(name)

FUNCTION(raise_exception)
{
    struct pd_chars text;
    (void)out, (void)args;
    PD_TRY(pd_value_string(&text, r, &a[1]));
    if (text.size == 0 || !text.data[0])
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "the chat template refuses the conversation");
    return pd_fail(PERIDOT_ERROR_ARGUMENT, "%.*s", (int)pd_min(text.size, 900), text.data);
}

/* dict(pairs or dict, name=value, ...) */
static peridot_status fill(struct pd_value *out, struct pd_render *r, const struct pd_args *args)
{
    struct pd_iterator it;
    struct pd_value item, pair;
    bool done = args->n < 2;
    if (args->n > 2) return pd_render_fail(r, "dict and namespace take one argument without a name");
    PD_TRY(pd_dict_create(out, r, true));
    if (!done && args->at[1].type == PD_DICT) {
        const struct pd_dict *d = args->at[1].dict;
        for (size_t i = 0; i < d->n; i++) PD_TRY(pd_dict_put(r, out->dict, &d->at[i].key, &d->at[i].value));
        done = true;
    }
    if (!done) PD_TRY(pd_iterate(&it, r, &args->at[1]));
    while (!done) {
        PD_TRY(pd_iterator_next(&item, &done, &it, r));
        if (done) break;
        PD_TRY(pd_value_list(&pair, r, &item));
        if (pair.list.n != 2) return pd_render_fail(r, "a dict is made of pairs");
        PD_TRY(pd_dict_put(r, out->dict, &pair.list.at[0], &pair.list.at[1]));
    }
    size_t i = args->n;
    for (const struct pd_code *named = args->named; named; named = named->next)
        PD_TRY(pd_dict_put(r, out->dict, &named->value, &args->at[i++]));
    return PERIDOT_OK;
}

FUNCTION(make_dict)
{
    (void)a;
    return fill(out, r, args);
}

FUNCTION(make_namespace)
{
    (void)a;
    PD_TRY(fill(out, r, args));
    out->type = PD_NAMESPACE;
    for (size_t i = 0; i < out->dict->n; i++) {
        const struct pd_value *key = &out->dict->at[i].key;
        if (key->type == PD_TEXT && key->text.size && key->text.data[0] == '_')
            return pd_render_fail(r, "a namespace's member begins with an underscore");
    }
    return PERIDOT_OK;
}

/* range(to), range(from, to), range(from, to, step): at most 100,000 integers, as the sandbox has it. */
FUNCTION(make_range)
{
    enum { MAX = 100000 };
    int64_t b[3] = {0, 0, 1};
    const size_t n = args->n - 1;
    bool own = true;
    for (size_t i = 1; i <= n; i++) {
        if (a[i].type == PD_UNDEFINED) return pd_value_fail_undefined(r, &a[i]);
        if (!pd_is_integer(&a[i])) return pd_render_fail(r, "a range of %s", pd_value_type_name(&a[i]));
        own &= a[i].own;
        b[n == 1 ? 1 : i - 1] = pd_value_integer(&a[i]);
    }
    if (b[2] == 0) return pd_render_fail(r, "a range by steps of 0");
    const uint64_t width = b[2] > 0 ? (b[1] > b[0] ? (uint64_t)b[1] - (uint64_t)b[0] : 0)
                                    : (b[0] > b[1] ? (uint64_t)b[0] - (uint64_t)b[1] : 0);
    const uint64_t step = b[2] > 0 ? (uint64_t)b[2] : 0 - (uint64_t)b[2], size = pd_div_up(width, step);
    if (size > MAX) return pd_render_fail(r, "a range of more than %d integers", MAX);
    PD_TRY(pd_list_create(out, r, (size_t)size));
    PD_TRY(pd_render_spend(r, size / 2));
    for (uint64_t i = 0; i < size; i++)
        out->list.at[i] = pd_value_int((int64_t)((uint64_t)b[0] + i * (uint64_t)b[2]), own);
    out->type = PD_RANGE;
    return PERIDOT_OK;
}

/* ---- time ---- */

static const char *const days[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
static const char *const months[] = {"January", "February", "March", "April", "May", "June", "July", "August",
                                     "September", "October", "November", "December"};

static const char *name_of(const char *const *names, int i, int n) { return i >= 0 && i < n ? names[i] : ""; }

enum { DIRECTIVE_SIZE = 40 };

/* flag: '-' no padding, '_' by spaces, '0' by zeros. */
static bool write_number(char out[DIRECTIVE_SIZE], char c, const struct tm *t, char flag)
{
    const int hour = t->tm_hour % 12 ? t->tm_hour % 12 : 12, weekday = (t->tm_wday + 6) % 7 + 1;
    const int year = t->tm_year + 1900;
    const struct { char c; int width; int value; char pad; } numbers[] = {
        {'Y', 1, year, '0'}, {'y', 2, year % 100, '0'}, {'C', 2, year / 100, '0'}, {'m', 2, t->tm_mon + 1, '0'},
        {'d', 2, t->tm_mday, '0'}, {'e', 2, t->tm_mday, ' '}, {'H', 2, t->tm_hour, '0'}, {'I', 2, hour, '0'},
        {'k', 2, t->tm_hour, ' '}, {'l', 2, hour, ' '}, {'M', 2, t->tm_min, '0'}, {'S', 2, t->tm_sec, '0'},
        {'j', 3, t->tm_yday + 1, '0'}, {'u', 1, weekday, '0'}, {'w', 1, t->tm_wday, '0'},
        {'U', 2, (t->tm_yday + 7 - t->tm_wday) / 7, '0'}, {'W', 2, (t->tm_yday + 8 - weekday) / 7, '0'}};
    for (size_t i = 0; i < PD_COUNT(numbers); i++) {
        if (numbers[i].c != c) continue;
        const char pad = flag == '_' ? ' ' : flag == '0' ? '0' : numbers[i].pad;
        const int width = flag == '-' ? 1 : numbers[i].width;
        snprintf(out, DIRECTIVE_SIZE, pad == '0' ? "%0*d" : "%*d", width, numbers[i].value);
        return true;
    }
    return false;
}

static bool write_directive(char out[DIRECTIVE_SIZE], char c, const struct tm *t, char flag);

/* Directives that stand for several. */
static bool write_combined(char out[DIRECTIVE_SIZE], char c, const struct tm *t)
{
    static const struct { char c; const char *as; } combined[] = {
        {'D', "%m/%d/%y"}, {'F', "%Y-%m-%d"}, {'R', "%H:%M"}, {'T', "%H:%M:%S"}, {'x', "%m/%d/%y"}, {'X', "%H:%M:%S"},
        {'r', "%I:%M:%S %p"}, {'c', "%a %b %e %H:%M:%S %Y"}, {'h', "%b"}};
    char part[DIRECTIVE_SIZE];
    size_t at = 0;
    for (size_t i = 0; i < PD_COUNT(combined); i++) {
        if (combined[i].c != c) continue;
        for (const char *s = combined[i].as; *s; s++) {
            const bool directive = *s == '%' && write_directive(part, *++s, t, 0);
            at += (size_t)snprintf(out + at, DIRECTIVE_SIZE - at, directive ? "%s" : "%.1s", directive ? part : s);
        }
        return true;
    }
    return false;
}

/* What one directive stands for, in the C locale. */
static bool write_directive(char out[DIRECTIVE_SIZE], char c, const struct tm *t, char flag)
{
    *out = 0;
    if (write_number(out, c, t, flag)) return true;
    if (flag) return false;
    switch (c) {
    case 'A': snprintf(out, DIRECTIVE_SIZE, "%s", name_of(days, t->tm_wday, 7)); break;
    case 'a': snprintf(out, DIRECTIVE_SIZE, "%.3s", name_of(days, t->tm_wday, 7)); break;
    case 'B': snprintf(out, DIRECTIVE_SIZE, "%s", name_of(months, t->tm_mon, 12)); break;
    case 'b': snprintf(out, DIRECTIVE_SIZE, "%.3s", name_of(months, t->tm_mon, 12)); break;
    case 'p': snprintf(out, DIRECTIVE_SIZE, "%s", t->tm_hour < 12 ? "AM" : "PM"); break;
    case 'P': snprintf(out, DIRECTIVE_SIZE, "%s", t->tm_hour < 12 ? "am" : "pm"); break;
    case 'Z': case 'z': break;   /* the time has no zone */
    case 'f': snprintf(out, DIRECTIVE_SIZE, "000000"); break;
    case 'n': snprintf(out, DIRECTIVE_SIZE, "\n"); break;
    case 't': snprintf(out, DIRECTIVE_SIZE, "\t"); break;
    case '%': snprintf(out, DIRECTIVE_SIZE, "%%"); break;
    default: return write_combined(out, c, t);
    }
    return true;
}

FUNCTION(strftime_now)
{
    struct pd_builder b = {.r = r};
    char text[DIRECTIVE_SIZE], shown[PD_SHOWN_SIZE];
    (void)args;
    if (a[1].type != PD_TEXT) return pd_render_fail(r, "strftime_now is given a %s", pd_value_type_name(&a[1]));
    const struct pd_chars format = a[1].text;
    for (size_t i = 0; i < format.size; i++) {
        const size_t begin = i;
        if (format.data[i] != '%') {
            PD_TRY(pd_builder_add(&b, pd_chars_part(format, i, 1)));
            continue;
        }
        char c = ++i < format.size ? format.data[i] : 0, flag = c == '-' || c == '_' || c == '0' ? c : 0;
        if (flag) c = ++i < format.size ? format.data[i] : 0;
        if (!write_directive(text, c, &r->in->now, flag))
            return pd_render_fail(r, "%s in strftime_now is not supported",
                                  pd_utf8_shown(shown, format.data + begin, pd_min(i + 1, format.size) - begin));
        PD_TRY(pd_builder_string(&b, text, pd_chars_is_own(pd_chars_part(format, begin, i + 1 - begin))));
    }
    *out = pd_builder_value(&b);
    return PERIDOT_OK;
}

/* ---- cyclers and joiners ---- */

static peridot_status create_cycle(struct pd_value *out, struct pd_render *r, enum pd_value_type type,
                                   const struct pd_value *items, size_t n)
{
    struct pd_cycle *cycle;
    PD_TRY(pd_render_alloc(&cycle, r, 1, sizeof *cycle));
    PD_TRY(pd_list_create(&cycle->items, r, n));
    for (size_t i = 0; i < n; i++) cycle->items.list.at[i] = items[i];
    *out = (struct pd_value){.type = (unsigned char)type, .cycle = cycle};
    return PERIDOT_OK;
}

FUNCTION(make_cycler)
{
    (void)a;
    if (args->n < 2 || args->n_named) return pd_render_fail(r, "a cycler has nothing to choose from");
    return create_cycle(out, r, PD_CYCLER, args->at + 1, args->n - 1);
}

FUNCTION(make_joiner)
{
    const struct pd_value usual = pd_value_text(PD_CHARS(", "));
    (void)args;
    return create_cycle(out, r, PD_JOINER, a[1].type == PD_UNSET ? &usual : &a[1], 1);
}

FUNCTION(lipsum)
{
    (void)out, (void)a, (void)args;
    return pd_render_fail(r, "random texts are not supported");
}

static const struct pd_builtin functions[] = {
    {"raise_exception", "message!", raise_exception}, {"namespace", "*", make_namespace}, {"dict", "*", make_dict},
    {"range", "a! b c", make_range}, {"strftime_now", "format!", strftime_now}, {"cycler", "*", make_cycler},
    {"joiner", "sep", make_joiner}, {"lipsum", "*", lipsum},
};

const struct pd_builtin *pd_function_find(struct pd_chars name)
{
    for (size_t i = 0; i < PD_COUNT(functions); i++)
        if (pd_chars_are(name, functions[i].name)) return &functions[i];
    return NULL;
}

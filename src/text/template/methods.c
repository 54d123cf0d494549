/* Methods of Python's texts, lists and dicts, and of jinja2's loops. Those that would change a list or a dict are there
 * and refused, as the sandbox does. */
#include "base/num.h"
#include "text/template/loop.h"
#include "text/template/operators.h"
#include "text/template/print.h"
#include "text/template/printf.h"
#include "text/template/strings.h"
#include "text/template/unicode.h"

#include <string.h>

#define METHOD(name) static PD_BUILTIN(name)

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

static peridot_status has_affix(struct pd_value *out, struct pd_render *r, const struct pd_value *a, bool at_end)
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
        PD_TRY(affix_is(&found, r, text, many ? &affixes.list.at[i] : &affixes, at_end));
    *out = pd_value_bool(found);
    return PERIDOT_OK;
}

METHOD(str_startswith)
{
    (void)args;
    return has_affix(out, r, a, false);
}

METHOD(str_endswith)
{
    (void)args;
    return has_affix(out, r, a, true);
}

/* The index of the character where a[1] is; -1: nowhere. */
static peridot_status find(struct pd_value *out, struct pd_render *r, const struct pd_value *a, bool last)
{
    size_t from, to, at;
    PD_TRY(need_text(r, &a[1]));
    PD_TRY(part_between(&from, &to, r, a->text, a + 2));
    const struct pd_chars text = pd_chars_part(a->text, 0, to);
    if (last) PD_TRY(pd_chars_find_last(&at, r, text, a[1].text, to));
    else PD_TRY(pd_chars_find(&at, r, text, a[1].text, from));
    const bool found = at != SIZE_MAX && at >= from && from <= to;
    PD_TRY(pd_render_scan(r, found ? at : 0));
    *out = pd_value_int(found ? (int64_t)pd_chars_count(pd_chars_part(text, 0, at)) : -1, false);
    return PERIDOT_OK;
}

METHOD(str_find)
{
    (void)args;
    return find(out, r, a, false);
}

METHOD(str_rfind)
{
    (void)args;
    return find(out, r, a, true);
}

METHOD(str_index)
{
    (void)args;
    PD_TRY(find(out, r, a, false));
    return out->i < 0 ? pd_render_fail(r, "index does not find the text") : PERIDOT_OK;
}

METHOD(str_rindex)
{
    (void)args;
    PD_TRY(find(out, r, a, true));
    return out->i < 0 ? pd_render_fail(r, "rindex does not find the text") : PERIDOT_OK;
}

METHOD(str_count)
{
    size_t from, to, at;
    int64_t n = 0;
    (void)args;
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
    *out = pd_value_int(n, false);
    return PERIDOT_OK;
}

static peridot_status lacks(struct pd_value *out, struct pd_render *r, const struct pd_value *a,
                            enum pd_unicode_class which)
{
    size_t at;
    PD_TRY(pd_unicode_find(&at, r, a->text, 0, which));
    *out = pd_value_bool(a->text.size && at == SIZE_MAX);
    return PERIDOT_OK;
}

#define CLASS(name, which)              \
    METHOD(name)                        \
    {                                   \
        (void)args;                     \
        return lacks(out, r, a, which); \
    }
CLASS(str_isalpha, PD_UNICODE_NOT_ALPHA)
CLASS(str_isdigit, PD_UNICODE_NOT_DECIMAL)
CLASS(str_isalnum, PD_UNICODE_NOT_ALNUM)

METHOD(str_isspace)
{
    (void)args;
    PD_TRY(pd_render_scan(r, a->text.size));
    *out = pd_value_bool(a->text.size && pd_chars_strip(a->text, NULL, PD_STRIP_LEFT).size == 0);
    return PERIDOT_OK;
}

METHOD(str_isascii)
{
    (void)args;
    PD_TRY(pd_render_scan(r, a->text.size));
    *out = pd_value_bool(pd_chars_is_ascii(a->text));
    return PERIDOT_OK;
}

METHOD(str_islower)
{
    return pd_test_find(PD_CHARS("lower"))->call(out, r, a, args);
}

METHOD(str_isupper)
{
    return pd_test_find(PD_CHARS("upper"))->call(out, r, a, args);
}

/* ---- texts: making others ---- */

METHOD(str_title)
{
    struct pd_builder b = {.r = r};
    uint32_t code;
    bool in_word = false;
    size_t begin = 0, n;
    const bool markup = a->markup;
    (void)args;
    for (size_t at = 0; at <= a->text.size; at += n) {
        n = at < a->text.size ? pd_chars_next(&code, a->text, at) : 1;
        const bool cased = at < a->text.size && (pd_char_is_lower(code) || pd_char_is_upper(code));
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

METHOD(str_join)
{
    struct pd_builder b = {.r = r};
    struct pd_iterator it;
    struct pd_value item;
    const struct pd_value sep = *a;
    bool done = false;
    (void)args;
    PD_TRY(pd_iterate(&it, r, &a[1]));
    for (size_t i = 0;; i++) {
        PD_TRY(pd_iterator_next(&item, &done, &it, r));
        if (done) break;
        PD_TRY(need_text(r, &item));
        if (sep.markup) return pd_render_fail(r, "join by a text marked safe is not supported");
        if (i) PD_TRY(pd_builder_add(&b, sep.text));
        PD_TRY(pd_builder_add(&b, item.text));
    }
    *out = pd_builder_value(&b);
    return PERIDOT_OK;
}

METHOD(str_format)
{
    (void)a;
    return pd_str_format(out, r, args);
}

static peridot_status remove_affix(struct pd_value *out, struct pd_render *r, const struct pd_value *a, bool at_end)
{
    bool found;
    if (a->markup) return pd_render_fail(r, "removing a part of a text marked safe is not supported");
    PD_TRY(affix_is(&found, r, a->text, &a[1], at_end));
    const size_t n = found ? a[1].text.size : 0;
    *out = pd_value_text(pd_chars_part(a->text, at_end ? 0 : n, a->text.size - n));
    return PERIDOT_OK;
}

METHOD(str_removeprefix)
{
    (void)args;
    return remove_affix(out, r, a, false);
}

METHOD(str_removesuffix)
{
    (void)args;
    return remove_affix(out, r, a, true);
}

static peridot_status partition(struct pd_value *out, struct pd_render *r, const struct pd_value *a, bool last)
{
    const struct pd_chars text = a->text, empty = {"", 0, pd_all_own};
    size_t at;
    PD_TRY(need_text(r, &a[1]));
    if (a[1].text.size == 0) return pd_render_fail(r, "partition at an empty text");
    if (a->markup) return pd_render_fail(r, "partition of a text marked safe is not supported");
    if (last) PD_TRY(pd_chars_find_last(&at, r, text, a[1].text, text.size));
    else PD_TRY(pd_chars_find(&at, r, text, a[1].text, 0));
    const size_t n = a[1].text.size, end = at + n;
    PD_TRY(pd_list_create(out, r, 3));
    out->type = PD_TUPLE;
    for (size_t i = 0; i < 3; i++) out->list.at[i] = pd_value_text(empty);
    out->list.at[last ? 2 : 0] = pd_value_text(text);
    if (at == SIZE_MAX) return PERIDOT_OK;
    out->list.at[0] = pd_value_text(pd_chars_part(text, 0, at));
    out->list.at[1] = pd_value_text(pd_chars_part(text, at, n));
    out->list.at[2] = pd_value_text(pd_chars_part(text, end, text.size - end));
    return PERIDOT_OK;
}

METHOD(str_partition)
{
    (void)args;
    return partition(out, r, a, false);
}

METHOD(str_rpartition)
{
    (void)args;
    return partition(out, r, a, true);
}

/* ---- lists and dicts ---- */

METHOD(list_count)
{
    int64_t n = 0;
    bool equal;
    (void)args;
    for (size_t i = 0; i < a->list.n; i++) {
        PD_TRY(pd_value_equals(&equal, r, &a->list.at[i], &a[1]));
        n += equal;
    }
    *out = pd_value_int(n, false);
    return PERIDOT_OK;
}

METHOD(list_index)
{
    bool equal = false;
    size_t i = 0;
    (void)args;
    for (; i < a->list.n; i++) {
        PD_TRY(pd_value_equals(&equal, r, &a->list.at[i], &a[1]));
        if (equal) break;
    }
    if (!equal) return pd_render_fail(r, "index does not find the value");
    *out = pd_value_int((int64_t)i, false);
    return PERIDOT_OK;
}

METHOD(copy)   /* what never changes is its own */
{
    (void)r, (void)args;
    *out = *a;
    return PERIDOT_OK;
}

METHOD(dict_get)
{
    struct pd_value *found;
    (void)args;
    PD_TRY(pd_dict_find(&found, r, a->dict, &a[1]));
    *out = found ? *found : a[2].type == PD_UNSET ? pd_value_none() : a[2];
    return PERIDOT_OK;
}

METHOD(dict_items)
{
    (void)args;
    return pd_dict_view(out, r, a->dict, PD_VIEW_ITEMS);
}

METHOD(dict_keys)
{
    (void)args;
    return pd_dict_view(out, r, a->dict, PD_VIEW_KEYS);
}

METHOD(dict_values)
{
    (void)args;
    return pd_dict_view(out, r, a->dict, PD_VIEW_VALUES);
}

/* ---- loops ---- */

METHOD(loop_cycle)
{
    (void)a;
    if (args->n < 2 || args->n_named) return pd_render_fail(r, "loop.cycle has nothing to choose from");
    *out = args->at[1 + (size_t)args->at[0].loop->index0 % (args->n - 1)];
    return PERIDOT_OK;
}

METHOD(loop_changed)
{
    struct pd_loop *l = args->at[0].loop;
    struct pd_value now;
    bool same = false;
    (void)a;
    if (args->n_named) return pd_render_fail(r, "loop.changed takes no arguments with names");
    PD_TRY(pd_list_create(&now, r, args->n - 1));
    if (now.list.n) memcpy(now.list.at, args->at + 1, now.list.n * sizeof now);
    if (l->has_changed) PD_TRY(pd_value_equals(&same, r, &now, &l->changed));
    l->changed = now;
    l->has_changed = true;
    *out = pd_value_bool(!same);
    return PERIDOT_OK;
}

METHOD(cycler_next)
{
    struct pd_cycle *cycle = a->cycle;
    (void)r, (void)args;
    *out = cycle->items.list.at[cycle->at];
    cycle->at = (cycle->at + 1) % cycle->items.list.n;
    return PERIDOT_OK;
}

METHOD(cycler_reset)
{
    (void)r, (void)args;
    a->cycle->at = 0;
    *out = pd_value_none();
    return PERIDOT_OK;
}

static const struct pd_builtin texts[] = {
    {"capitalize", "", pd_str_capitalize}, {"center", "width! fillchar", pd_str_center},
    {"count", "sub! start end", str_count},
    {"endswith", "suffix! start end", str_endswith}, {"find", "sub! start end", str_find}, {"format", "*", str_format},
    {"index", "sub! start end", str_index}, {"isalnum", "", str_isalnum}, {"isalpha", "", str_isalpha},
    {"isascii", "", str_isascii}, {"isdecimal", "", str_isdigit}, {"isdigit", "", str_isdigit},
    {"islower", "", str_islower}, {"isnumeric", "", str_isdigit}, {"isspace", "", str_isspace},
    {"isupper", "", str_isupper}, {"join", "iterable!", str_join}, {"ljust", "width! fillchar", pd_str_ljust},
    {"lower", "", pd_str_lower},
    {"lstrip", "chars", pd_str_lstrip}, {"partition", "sep!", str_partition},
    {"removeprefix", "prefix!", str_removeprefix}, {"removesuffix", "suffix!", str_removesuffix},
    {"replace", "old! new! count", pd_str_replace}, {"rfind", "sub! start end", str_rfind},
    {"rindex", "sub! start end", str_rindex}, {"rjust", "width! fillchar", pd_str_rjust},
    {"rpartition", "sep!", str_rpartition},
    {"rsplit", "sep maxsplit", pd_str_rsplit}, {"rstrip", "chars", pd_str_rstrip},
    {"split", "sep maxsplit", pd_str_split}, {"splitlines", "keepends", pd_str_splitlines},
    {"startswith", "prefix! start end", str_startswith}, {"strip", "chars", pd_str_strip},
    {"swapcase", "", pd_str_swapcase}, {"title", "", str_title}, {"upper", "", pd_str_upper},
    {"zfill", "width!", pd_str_zfill}, {NULL, NULL, NULL}};

static const struct pd_builtin lists[] = {
    {"append", "*", NULL}, {"clear", "*", NULL}, {"copy", "", copy}, {"count", "value!", list_count},
    {"extend", "*", NULL}, {"index", "value!", list_index}, {"insert", "*", NULL}, {"pop", "*", NULL},
    {"remove", "*", NULL}, {"reverse", "*", NULL}, {"sort", "*", NULL}, {NULL, NULL, NULL}};

static const struct pd_builtin tuples[] = {
    {"count", "value!", list_count}, {"index", "value!", list_index}, {NULL, NULL, NULL}};

static const struct pd_builtin dicts[] = {
    {"clear", "*", NULL}, {"copy", "", copy}, {"get", "key! default", dict_get}, {"items", "", dict_items},
    {"keys", "", dict_keys}, {"pop", "*", NULL}, {"popitem", "*", NULL}, {"setdefault", "*", NULL},
    {"update", "*", NULL}, {"values", "", dict_values}, {NULL, NULL, NULL}};

static const struct pd_builtin loops[] = {
    {"changed", "*", loop_changed}, {"cycle", "*", loop_cycle}, {NULL, NULL, NULL}};

static const struct pd_builtin cyclers[] = {
    {"next", "", cycler_next}, {"reset", "", cycler_reset}, {NULL, NULL, NULL}};

static const struct pd_builtin *const tables[] = {
    [PD_TEXT] = texts, [PD_LIST] = lists, [PD_TUPLE] = tuples, [PD_RANGE] = tuples, [PD_DICT] = dicts,
    [PD_LOOP] = loops, [PD_CYCLER] = cyclers, [PD_JOINER] = NULL};

const struct pd_builtin *pd_method_find(enum pd_value_type type, struct pd_chars name)
{
    for (const struct pd_builtin *m = tables[type]; m && m->name; m++)
        if (pd_chars_are(name, m->name)) return m;
    return NULL;
}

bool pd_method_is_known(struct pd_chars name)
{
    for (size_t type = 0; type < PD_COUNT(tables); type++)
        if (pd_method_find((enum pd_value_type)type, name)) return true;
    return false;
}

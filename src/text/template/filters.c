/* The table of filters, and those that apply another filter or a test to each element of a sequence. */
#include "base/num.h"
#include "base/utf8.h"
#include "text/template/code.h"
#include "text/template/filters_layout.h"
#include "text/template/filters_list.h"
#include "text/template/filters_text.h"
#include "text/template/iterate.h"
#include "text/template/strings.h"

#include <string.h>

#define FILTER(name) static PD_BUILTIN(name)

/* ---- map ---- */

/* One of the arguments with a name; NULL: it was not given. */
static const struct pd_value *find_named(const struct pd_args *args, const char *name)
{
    size_t i = args->n;
    for (const struct pd_code *named = args->named; named; named = named->next, i++)
        if (pd_chars_are(named->value.text, name)) return &args->at[i];
    return NULL;
}

/* The value with the iterator's other arguments behind it. */
static peridot_status apply(struct pd_value *out, struct pd_render *r, const struct pd_iterator *it,
                            const struct pd_value *v)
{
    it->args.at[0] = *v;
    return pd_builtin_call(out, r, it->builtin, &it->args);
}

/* What is iterated is looked at when the first value is wanted. Only what is true is: none is as good as an empty
 * list. */
static peridot_status next_of_source(struct pd_value *out, bool *done, struct pd_render *r, struct pd_iterator *it)
{
    const struct pd_value nothing = {.type = PD_UNDEFINED};
    struct pd_iterator source;
    struct pd_value kept;
    if (!it->from) {
        PD_TRY(pd_iterate(&source, r, pd_value_is_true(&it->source) ? &it->source : &nothing));
        PD_TRY(pd_iterator_keep(&kept, r, &source));
        it->from = kept.iterator;
    }
    return pd_iterator_next(out, done, it->from, r);
}

static peridot_status next_mapped(struct pd_value *out, bool *done, struct pd_render *r, struct pd_iterator *it)
{
    PD_TRY(next_of_source(out, done, r, it));
    if (*done) return PERIDOT_OK;
    const struct pd_value item = *out;
    return it->builtin ? apply(out, r, it, &item) : pd_get_path(out, r, &item, &it->attribute, &it->other);
}

static peridot_status next_selected(struct pd_value *out, bool *done, struct pd_render *r, struct pd_iterator *it)
{
    struct pd_value tested;
    for (;;) {
        PD_TRY(next_of_source(out, done, r, it));
        if (*done) return PERIDOT_OK;
        PD_TRY(pd_get_path(&tested, r, out, &it->attribute, NULL));
        if (it->builtin) PD_TRY(apply(&tested, r, it, &tested));
        if (pd_value_is_true(&tested) != it->negated) return PERIDOT_OK;
    }
}

/* A name and what is given to it: arguments `first` and those behind it. Their places are the stack's, so that they are
 * copied; a place for the value comes before them. */
static peridot_status keep_builtin(struct pd_iterator *it, struct pd_render *r, const struct pd_args *args,
                                   size_t first, const struct pd_builtin *(*find)(struct pd_chars))
{
    char shown[PD_SHOWN_SIZE];
    const struct pd_value *name = &args->at[first];
    const size_t n = args->n - first;
    if (name->type != PD_TEXT) return pd_render_fail(r, "the name of a filter or a test is no text");
    it->builtin = find(name->text);
    if (!it->builtin)
        return pd_render_fail(r, "there is no filter or test %s",
                              pd_utf8_shown(shown, name->text.data, name->text.size));
    it->args = (struct pd_args){NULL, n, args->n_named, args->named};
    PD_TRY(pd_render_alloc(&it->args.at, r, n + args->n_named, sizeof *it->args.at));
    memcpy(it->args.at, name, (n + args->n_named) * sizeof *name);
    return PERIDOT_OK;
}

FILTER(map)
{
    struct pd_iterator it = {.next = next_mapped, .source = *a};
    const struct pd_value *attribute = find_named(args, "attribute"), *other = find_named(args, "default");
    if (args->n > 1) {
        PD_TRY(keep_builtin(&it, r, args, 1, pd_filter_find));
    } else if (attribute && args->n_named == 1 + (other != NULL)) {
        it.attribute = *attribute;
        if (other) it.other = *other;
    } else {
        return pd_render_fail(r, "map is given no filter");
    }
    return pd_iterator_keep(out, r, &it);
}

static peridot_status select_by(struct pd_value *out, struct pd_render *r, const struct pd_args *args, bool attribute,
                                bool negated)
{
    struct pd_iterator it = {.next = next_selected, .source = args->at[0], .negated = negated};
    const size_t test = attribute ? 2 : 1;
    if (args->n < test) return pd_render_fail(r, "an attribute to select by is not given");
    if (attribute) it.attribute = args->at[1];
    if (args->n > test) PD_TRY(keep_builtin(&it, r, args, test, pd_test_find));
    else if (args->n_named) return pd_render_fail(r, "arguments are given to no test");
    return pd_iterator_keep(out, r, &it);
}

FILTER(select_if)
{
    (void)a;
    return select_by(out, r, args, false, false);
}

FILTER(reject_if)
{
    (void)a;
    return select_by(out, r, args, false, true);
}

FILTER(selectattr)
{
    (void)a;
    return select_by(out, r, args, true, false);
}

FILTER(rejectattr)
{
    (void)a;
    return select_by(out, r, args, true, true);
}

static const struct pd_builtin filters[] = {
    {"abs", "", pd_filter_abs}, {"attr", "name!", pd_filter_attr},
    {"batch", "linecount! fill_with", pd_filter_batch}, {"capitalize", "", pd_str_capitalize},
    {"center", "width", pd_str_center}, {"count", "", pd_filter_length},
    {"d", "default_value boolean", pd_filter_default}, {"default", "default_value boolean", pd_filter_default},
    {"dictsort", "case_sensitive by reverse", pd_filter_dictsort}, {"e", "", pd_filter_escape},
    {"escape", "", pd_filter_escape}, {"first", "", pd_filter_first}, {"float", "default", pd_filter_float},
    {"forceescape", "", pd_filter_forceescape}, {"format", "*", pd_filter_format},
    {"groupby", "attribute! default case_sensitive", pd_filter_groupby},
    {"indent", "width first blank", pd_filter_indent},
    {"int", "default base", pd_filter_int}, {"items", "", pd_filter_items}, {"join", "d attribute", pd_filter_join},
    {"last", "", pd_filter_last}, {"length", "", pd_filter_length}, {"list", "", pd_filter_list},
    {"lower", "", pd_str_lower}, {"map", "*", map}, {"max", "case_sensitive attribute", pd_filter_max},
    {"min", "case_sensitive attribute", pd_filter_min}, {"pprint", "", pd_filter_pprint},
    {"reject", "*", reject_if}, {"rejectattr", "*", rejectattr},
    {"replace", "old! new! count", pd_filter_replace}, {"reverse", "", pd_filter_reverse},
    {"round", "precision method", pd_filter_round}, {"safe", "", pd_filter_safe}, {"select", "*", select_if},
    {"selectattr", "*", selectattr}, {"slice", "slices! fill_with", pd_filter_slice},
    {"sort", "reverse case_sensitive attribute", pd_filter_sort},
    {"string", "", pd_filter_string}, {"striptags", "", pd_filter_striptags},
    {"sum", "attribute start", pd_filter_sum}, {"title", "", pd_filter_title},
    {"tojson", "ensure_ascii indent separators sort_keys", pd_filter_tojson}, {"trim", "chars", pd_str_strip},
    {"truncate", "length killwords end leeway", pd_filter_truncate},
    {"unique", "case_sensitive attribute", pd_filter_unique}, {"upper", "", pd_str_upper},
    {"urlencode", "", pd_filter_urlencode}, {"wordcount", "", pd_filter_wordcount},
    {"wordwrap", "width break_long_words wrapstring break_on_hyphens", pd_filter_wordwrap},
    {"xmlattr", "autospace", pd_filter_xmlattr},
};

const struct pd_builtin *pd_filter_find(struct pd_chars name)
{
    for (size_t i = 0; i < PD_COUNT(filters); i++)
        if (pd_chars_are(name, filters[i].name)) return &filters[i];
    return NULL;
}

#include "text/template/template_.h"

#include "base/num.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

/* ---- calling ---- */

/* Parameter after parameter of a row: its name up to *size, whether it must be given; NULL past the last. */
static const char *next_parameter(size_t *size, bool *required, const char *at)
{
    while (*at == ' ') at++;
    *size = strcspn(at, " !");
    *required = at[*size] == '!';
    return *size ? at : NULL;
}

/* The place of the parameter of this name, 0: there is none; a call gives n arguments before those with names. */
static size_t find_parameter(const struct pd_builtin *f, struct pd_chars name)
{
    size_t size, place = 1;
    bool required;
    for (const char *at = f->parameters; (at = next_parameter(&size, &required, at)); at += size + required, place++)
        if (pd_chars_equal(name, (struct pd_chars){at, size, NULL})) return place;
    return 0;
}

static peridot_status fail(const struct pd_builtin *f, const char *kind, uint32_t line, const char *what)
{
    return pd_fail(PERIDOT_ERROR_FORMAT, "line %u: %s %s %s", (unsigned)line, kind, f->name, what);
}

peridot_status pd_builtin_check(const struct pd_builtin *f, const char *kind, uint32_t line, size_t n,
                                const struct pd_code *named)
{
    char what[PD_SHOWN_SIZE + 40], shown[PD_SHOWN_SIZE];
    bool given[PD_MAX_PARAMETERS + 1] = {false}, required;
    size_t size, place = 1;
    if (strcmp(f->parameters, "*") == 0) return PERIDOT_OK;
    for (; named; named = named->next) {
        const struct pd_chars name = named->value.text;
        const size_t at = find_parameter(f, name);
        snprintf(what, sizeof what, "takes no argument %s", pd_utf8_shown(shown, name.data, name.size));
        if (!at) return fail(f, kind, line, what);
        if (at < n || given[at]) return fail(f, kind, line, "is given an argument twice");
        given[at] = true;
    }
    for (const char *at = f->parameters; (at = next_parameter(&size, &required, at)); at += size + required, place++)
        if (required && place >= n && !given[place]) return fail(f, kind, line, "lacks an argument");
    return n > place ? fail(f, kind, line, "has too many arguments") : PERIDOT_OK;
}

peridot_status pd_builtin_call(struct pd_value *out, struct pd_render *r, const struct pd_builtin *f,
                               const struct pd_args *args)
{
    struct pd_value a[PD_MAX_PARAMETERS + 1] = {{.type = PD_UNSET}};
    size_t i = 0;
    PD_TRY(pd_builtin_check(f, "the call of", r->line, args->n, args->named));
    if (strcmp(f->parameters, "*") == 0) {
        a[0] = args->at[0];
        return f->call(out, r, a, args);
    }
    for (; i < args->n; i++) a[i] = args->at[i];
    for (const struct pd_code *named = args->named; named; named = named->next)
        a[find_parameter(f, named->value.text)] = args->at[i++];
    return f->call(out, r, a, args);
}

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

static PD_BUILTIN(map)
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

static PD_BUILTIN(select_if)
{
    (void)a;
    return select_by(out, r, args, false, false);
}

static PD_BUILTIN(reject_if)
{
    (void)a;
    return select_by(out, r, args, false, true);
}

static PD_BUILTIN(selectattr)
{
    (void)a;
    return select_by(out, r, args, true, false);
}

static PD_BUILTIN(rejectattr)
{
    (void)a;
    return select_by(out, r, args, true, true);
}

/* ---- tests ---- */

#define GIVE(condition)                     \
    do {                                    \
        (void)r, (void)args;                \
        *out = pd_value_bool(condition);    \
        return PERIDOT_OK;                  \
    } while (0)

static PD_BUILTIN(is_defined) { GIVE(a->type != PD_UNDEFINED); }
static PD_BUILTIN(is_undefined) { GIVE(a->type == PD_UNDEFINED); }
static PD_BUILTIN(is_none) { GIVE(a->type == PD_NONE); }
static PD_BUILTIN(is_boolean) { GIVE(a->type == PD_BOOL); }
static PD_BUILTIN(is_true) { GIVE(a->type == PD_BOOL && a->b); }
static PD_BUILTIN(is_false) { GIVE(a->type == PD_BOOL && !a->b); }
static PD_BUILTIN(is_integer) { GIVE(a->type == PD_INT || a->type == PD_HUGE); }
static PD_BUILTIN(is_float) { GIVE(a->type == PD_FLOAT); }
static PD_BUILTIN(is_number) { GIVE(pd_is_number(a) || a->type == PD_HUGE); }
static PD_BUILTIN(is_string) { GIVE(a->type == PD_TEXT); }
static PD_BUILTIN(is_mapping) { GIVE(a->type == PD_DICT); }
static PD_BUILTIN(is_iterable) { GIVE(pd_is_iterable(a)); }
static PD_BUILTIN(is_callable) { GIVE(a->type >= PD_MACRO || a->type == PD_UNDEFINED); }
static PD_BUILTIN(is_escaped) { GIVE(a->markup); }

/* Of what is looked up in a dict of Python's. */
static peridot_status check_hashable(const struct pd_render *r, const struct pd_value *v)
{
    const bool good = v->type != PD_LIST && v->type != PD_DICT;
    return good ? PERIDOT_OK : pd_render_fail(r, "a %s is no name", pd_value_type_name(v));
}

static PD_BUILTIN(is_filter)
{
    PD_TRY(check_hashable(r, a));
    GIVE(a->type == PD_TEXT && r->is_filter(a));
}

static PD_BUILTIN(is_test)
{
    PD_TRY(check_hashable(r, a));
    GIVE(a->type == PD_TEXT && pd_test_find(a->text));
}

static PD_BUILTIN(is_sequence)
{
    GIVE(a->type == PD_TEXT || a->type == PD_DICT || a->type == PD_UNDEFINED ||
         (pd_is_listed(a) && a->type != PD_VIEW));
}

static peridot_status remainder_is(struct pd_value *out, struct pd_render *r, const struct pd_value *v,
                                   const struct pd_value *by, int64_t wanted)
{
    struct pd_value rest;
    const struct pd_value result = pd_value_int(wanted, false);
    bool equal;
    PD_TRY(pd_operate(&rest, r, PD_OP('%', 0), v, by));
    PD_TRY(pd_value_equals(&equal, r, &rest, &result));
    *out = pd_value_bool(equal);
    return PERIDOT_OK;
}

static PD_BUILTIN(is_odd)
{
    const struct pd_value two = pd_value_int(2, true);
    (void)args;
    return remainder_is(out, r, a, &two, 1);
}

static PD_BUILTIN(is_even)
{
    const struct pd_value two = pd_value_int(2, true);
    (void)args;
    return remainder_is(out, r, a, &two, 0);
}

static PD_BUILTIN(is_divisible)
{
    (void)args;
    return remainder_is(out, r, a, &a[1], 0);
}

static bool is_same(const struct pd_value *a, const struct pd_value *b)
{
    if (a->type != b->type) return false;
    switch (a->type) {
    case PD_NONE: return true;
    case PD_BOOL: return a->b == b->b;
    case PD_TEXT: return a->text.data == b->text.data && a->text.size == b->text.size;
    case PD_INT: return a->i == b->i && a->i >= -5 && a->i <= 256;   /* of which CPython has one each */
    case PD_LIST: case PD_TUPLE: return a->list.at == b->list.at && a->list.n == b->list.n;
    case PD_DICT: case PD_NAMESPACE: return a->dict == b->dict;
    default: return false;
    }
}

static PD_BUILTIN(is_sameas) { GIVE(is_same(a, &a[1])); }

static PD_BUILTIN(is_in)
{
    bool found;
    PD_TRY(pd_contains(&found, r, &a[1], a));
    GIVE(found);
}

static peridot_status compare(struct pd_value *out, struct pd_render *r, const struct pd_value *a, unsigned op)
{
    bool holds;
    PD_TRY(pd_compare(&holds, r, op, a, &a[1]));
    *out = pd_value_bool(holds);
    return PERIDOT_OK;
}

#define COMPARISON(name, op)        \
    static PD_BUILTIN(name)                \
    {                               \
        (void)args;                 \
        return compare(out, r, a, op); \
    }
COMPARISON(is_eq, PD_OP('=', '='))
COMPARISON(is_ne, PD_OP('!', '='))
COMPARISON(is_lt, PD_OP('<', 0))
COMPARISON(is_le, PD_OP('<', '='))
COMPARISON(is_gt, PD_OP('>', 0))
COMPARISON(is_ge, PD_OP('>', '='))

/* ---- functions ---- */

static PD_BUILTIN(raise_exception)
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

static PD_BUILTIN(make_dict)
{
    (void)a;
    return fill(out, r, args);
}

static PD_BUILTIN(make_namespace)
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
static PD_BUILTIN(make_range)
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

static PD_BUILTIN(make_cycler)
{
    (void)a;
    if (args->n < 2 || args->n_named) return pd_render_fail(r, "a cycler has nothing to choose from");
    return create_cycle(out, r, PD_CYCLER, args->at + 1, args->n - 1);
}

static PD_BUILTIN(make_joiner)
{
    const struct pd_value usual = pd_value_text(PD_CHARS(", "));
    (void)args;
    return create_cycle(out, r, PD_JOINER, a[1].type == PD_UNSET ? &usual : &a[1], 1);
}

static PD_BUILTIN(lipsum)
{
    (void)out, (void)a, (void)args;
    return pd_render_fail(r, "random texts are not supported");
}

/* ---- tables ---- */

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

static const struct pd_builtin tests[] = {
    {"defined", "", is_defined}, {"undefined", "", is_undefined}, {"none", "", is_none}, {"boolean", "", is_boolean},
    {"true", "", is_true}, {"false", "", is_false}, {"integer", "", is_integer}, {"float", "", is_float},
    {"number", "", is_number}, {"string", "", is_string}, {"mapping", "", is_mapping},
    {"iterable", "", is_iterable}, {"sequence", "", is_sequence}, {"callable", "", is_callable},
    {"escaped", "", is_escaped}, {"filter", "", is_filter}, {"test", "", is_test}, {"odd", "", is_odd},
    {"even", "", is_even}, {"divisibleby", "num!", is_divisible}, {"lower", "", pd_str_islower}, {"upper", "", pd_str_isupper},
    {"sameas", "other!", is_sameas}, {"in", "seq!", is_in}, {"==", "other!", is_eq}, {"eq", "other!", is_eq},
    {"equalto", "other!", is_eq}, {"!=", "other!", is_ne}, {"ne", "other!", is_ne}, {"<", "other!", is_lt},
    {"lt", "other!", is_lt}, {"lessthan", "other!", is_lt}, {"<=", "other!", is_le}, {"le", "other!", is_le},
    {">", "other!", is_gt}, {"gt", "other!", is_gt}, {"greaterthan", "other!", is_gt}, {">=", "other!", is_ge},
    {"ge", "other!", is_ge},
};

static const struct pd_builtin functions[] = {
    {"raise_exception", "message!", raise_exception}, {"namespace", "*", make_namespace}, {"dict", "*", make_dict},
    {"range", "a! b c", make_range}, {"strftime_now", "format!", pd_function_strftime_now}, {"cycler", "*", make_cycler},
    {"joiner", "sep", make_joiner}, {"lipsum", "*", lipsum},
};

const struct pd_builtin *pd_filter_find(struct pd_chars name)
{
    for (size_t i = 0; i < PD_COUNT(filters); i++)
        if (pd_chars_are(name, filters[i].name)) return &filters[i];
    return NULL;
}

const struct pd_builtin *pd_test_find(struct pd_chars name)
{
    for (size_t i = 0; i < PD_COUNT(tests); i++)
        if (pd_chars_are(name, tests[i].name)) return &tests[i];
    return NULL;
}

const struct pd_builtin *pd_function_find(struct pd_chars name)
{
    for (size_t i = 0; i < PD_COUNT(functions); i++)
        if (pd_chars_are(name, functions[i].name)) return &functions[i];
    return NULL;
}

/* What programs call: the tables of filters, tests and functions, the binder that gives them their arguments, and those
 * that apply another filter or test to each value. Filters are in builtins_*.c by what they
 * are about; to add one, write its function there and its row here. */
#include "text/template/template_.h"

#include "base/base.h"

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

static peridot_status builtins_fail(const struct pd_builtin *f, const char *kind, uint32_t line, const char *what)
{
    return pd_fail(PERIDOT_ERROR_FORMAT, "line %u: %s %s %s", (unsigned)line, kind, f->name, what);
}

peridot_status pd_builtin_check(const struct pd_builtin *f, const char *kind, uint32_t line, size_t n,
                                const struct pd_code *named)
{
    char what[PD_SHOWN_SIZE + 40], shown[PD_SHOWN_SIZE];
    bool given[PD_MAX_PARAMETERS + 1] = {false}, required;
    size_t size, place = 1;
    if (f->any) return PERIDOT_OK;
    for (; named; named = named->next) {
        const struct pd_chars name = named->value.text;
        const size_t at = find_parameter(f, name);
        snprintf(what, sizeof what, "takes no argument %s", pd_utf8_shown(shown, name.data, name.size));
        if (!at) return builtins_fail(f, kind, line, what);
        if (at < n || given[at]) return builtins_fail(f, kind, line, "is given an argument twice");
        given[at] = true;
    }
    for (const char *at = f->parameters; (at = next_parameter(&size, &required, at)); at += size + required, place++)
        if (required && place >= n && !given[place]) return builtins_fail(f, kind, line, "lacks an argument");
    return n > place ? builtins_fail(f, kind, line, "has too many arguments") : PERIDOT_OK;
}

peridot_status pd_builtin_call(struct pd_value *out, struct pd_render *r, const struct pd_builtin *f,
                               const struct pd_args *args)
{
    struct pd_value a[PD_MAX_PARAMETERS + 1] = {{.type = PD_UNSET}};
    size_t i = 0;
    if (f->any) return f->any(out, r, args, f->which);
    PD_TRY(pd_builtin_check(f, "the call of", r->line, args->n, args->named));
    for (; i < args->n; i++) a[i] = args->at[i];
    for (const struct pd_code *named = args->named; named; named = named->next)
        a[find_parameter(f, named->value.text)] = args->at[i++];
    return f->as ? f->as(out, r, a, f->which) : f->on(out, r, a);
}

/* ---- map ---- */

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

static PD_BUILTIN_ANY(map)
{
    (void)which;
    struct pd_iterator it = {.next = next_mapped, .source = args->at[0]};
    const struct pd_value *attribute = pd_args_find(args, PD_CHARS("attribute")),
                          *other = pd_args_find(args, PD_CHARS("default"));
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

enum { BY_ATTRIBUTE = 1, REJECT = 2 };

static PD_BUILTIN_ANY(choose)
{
    const bool attribute = which & BY_ATTRIBUTE;
    struct pd_iterator it = {.next = next_selected, .source = args->at[0], .negated = which & REJECT};
    const size_t test = attribute ? 2 : 1;
    if (args->n < test) return pd_render_fail(r, "an attribute to select by is not given");
    if (attribute) it.attribute = args->at[1];
    if (args->n > test) PD_TRY(keep_builtin(&it, r, args, test, pd_test_find));
    else if (args->n_named) return pd_render_fail(r, "arguments are given to no test");
    return pd_iterator_keep(out, r, &it);
}

/* ---- tests ---- */

#define OF(type) (1 << PD_##type)
enum {
    NUMBERS = OF(BOOL) | OF(INT) | OF(HUGE) | OF(FLOAT),
    SEQUENCES = OF(UNDEFINED) | OF(TEXT) | OF(LIST) | OF(TUPLE) | OF(RANGE) | OF(DICT),
    CALLABLE = OF(UNDEFINED) | OF(MACRO) | OF(FUNCTION) | OF(METHOD) | OF(LOOP) | OF(JOINER)
};

static PD_BUILTIN_AS(has_type)
{
    (void)r;
    return pd_give(out, pd_value_bool((unsigned)which >> a->type & 1));
}

static PD_BUILTIN_AS(is_bool)
{
    (void)r;
    return pd_give(out, pd_value_bool(a->type == PD_BOOL && a->b == (which != 0)));
}

static PD_BUILTIN(is_iterable)
{
    (void)r;
    return pd_give(out, pd_value_bool(pd_is_iterable(a)));
}

static PD_BUILTIN(is_escaped)
{
    (void)r;
    return pd_give(out, pd_value_bool(a->markup));
}

/* Whether there is a filter or a test of that name. What has no hash in Python can be no name. */
static PD_BUILTIN_AS(is_named)
{
    if (a->type == PD_LIST || a->type == PD_DICT) return pd_render_fail(r, "a %s is no name", pd_value_type_name(a));
    const bool found = a->type == PD_TEXT && (which ? pd_filter_find(a->text) : pd_test_find(a->text));
    return pd_give(out, pd_value_bool(found));
}

/* `which`: what is left of the division by the argument, or by 2. */
static PD_BUILTIN_AS(leaves)
{
    struct pd_value rest;
    const struct pd_value two = pd_value_int(2, true), wanted = pd_value_int(which, false);
    bool equal;
    PD_TRY(pd_operate(&rest, r, PD_OP('%', 0), a, a[1].type == PD_UNSET ? &two : &a[1]));
    PD_TRY(pd_value_equals(&equal, r, &rest, &wanted));
    return pd_give(out, pd_value_bool(equal));
}

static bool builtins_is_same(const struct pd_value *a, const struct pd_value *b)
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

static PD_BUILTIN(is_sameas)
{
    (void)r;
    return pd_give(out, pd_value_bool(builtins_is_same(a, &a[1])));
}

static PD_BUILTIN_AS(compare)
{
    bool holds;
    PD_TRY(pd_compare(&holds, r, (unsigned)which, a, &a[1]));
    return pd_give(out, pd_value_bool(holds));
}

/* ---- functions ---- */

static PD_BUILTIN(raise_exception)
{
    struct pd_chars text;
    (void)out;
    PD_TRY(pd_value_string(&text, r, &a[1]));
    if (text.size == 0 || !text.data[0])
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "the chat template refuses the conversation");
    return pd_fail(PERIDOT_ERROR_ARGUMENT, "%.*s", (int)pd_min(text.size, 900), text.data);
}

/* dict(pairs or dict, name=value, ...), and namespace. */
static PD_BUILTIN_ANY(make_dict)
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
    size_t n = args->n;
    for (const struct pd_code *named = args->named; named; named = named->next)
        PD_TRY(pd_dict_put(r, out->dict, &named->value, &args->at[n++]));
    out->type = (unsigned char)which;
    for (size_t i = 0; i < out->dict->n && which == PD_NAMESPACE; i++) {
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
    const size_t n = a[3].type != PD_UNSET ? 3 : a[2].type != PD_UNSET ? 2 : 1;
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

static PD_BUILTIN_ANY(make_cycler)
{
    (void)which;
    if (args->n < 2 || args->n_named) return pd_render_fail(r, "a cycler has nothing to choose from");
    return create_cycle(out, r, PD_CYCLER, args->at + 1, args->n - 1);
}

static PD_BUILTIN(make_joiner)
{
    const struct pd_value usual = pd_value_text(PD_CHARS(", "));
    return create_cycle(out, r, PD_JOINER, a[1].type == PD_UNSET ? &usual : &a[1], 1);
}

static PD_BUILTIN_ANY(lipsum)
{
    (void)out, (void)args, (void)which;
    return pd_render_fail(r, "random texts are not supported");
}

/* ---- tables ---- */

static const struct pd_builtin filters[] = {
    PD_ON("abs", "", pd_filter_abs), PD_ON("attr", "name!", pd_filter_attr),
    PD_ON("batch", "linecount! fill_with", pd_filter_batch), PD_AS("capitalize", "", pd_str_case, PD_CAPITALIZED),
    PD_AS("center", "width", pd_str_pad, 'c'), PD_ON("count", "", pd_filter_length),
    PD_ON("d", "default_value boolean", pd_filter_default),
    PD_ON("default", "default_value boolean", pd_filter_default),
    PD_ON("dictsort", "case_sensitive by reverse", pd_filter_dictsort), PD_ON("e", "", pd_filter_escape),
    PD_ON("escape", "", pd_filter_escape), PD_AS("first", "", pd_filter_end, false),
    PD_ON("float", "default", pd_filter_float), PD_ON("forceescape", "", pd_filter_forceescape),
    PD_ANY("format", pd_filter_format, 0), PD_ON("groupby", "attribute! default case_sensitive", pd_filter_groupby),
    PD_ON("indent", "width first blank", pd_filter_indent), PD_ON("int", "default base", pd_filter_int),
    PD_ON("items", "", pd_filter_items), PD_ON("join", "d attribute", pd_filter_join),
    PD_AS("last", "", pd_filter_end, true), PD_ON("length", "", pd_filter_length), PD_ON("list", "", pd_filter_list),
    PD_AS("lower", "", pd_str_case, PD_LOWER), PD_ANY("map", map, 0),
    PD_AS("max", "case_sensitive attribute", pd_filter_extreme, true),
    PD_AS("min", "case_sensitive attribute", pd_filter_extreme, false), PD_ON("pprint", "", pd_filter_pprint),
    PD_ANY("reject", choose, REJECT), PD_ANY("rejectattr", choose, REJECT | BY_ATTRIBUTE),
    PD_ON("replace", "old! new! count", pd_filter_replace), PD_ON("reverse", "", pd_filter_reverse),
    PD_ON("round", "precision method", pd_filter_round), PD_ON("safe", "", pd_filter_safe), PD_ANY("select", choose, 0),
    PD_ANY("selectattr", choose, BY_ATTRIBUTE), PD_ON("slice", "slices! fill_with", pd_filter_slice),
    PD_ON("sort", "reverse case_sensitive attribute", pd_filter_sort), PD_ON("string", "", pd_filter_string),
    PD_ON("striptags", "", pd_filter_striptags), PD_ON("sum", "attribute start", pd_filter_sum),
    PD_ON("title", "", pd_filter_title), PD_ON("tojson", "ensure_ascii indent separators sort_keys", pd_filter_tojson),
    PD_AS("trim", "chars", pd_str_strip, PD_STRIP_LEFT | PD_STRIP_RIGHT),
    PD_ON("truncate", "length killwords end leeway", pd_filter_truncate),
    PD_ON("unique", "case_sensitive attribute", pd_filter_unique), PD_AS("upper", "", pd_str_case, PD_UPPER),
    PD_ON("urlencode", "", pd_filter_urlencode), PD_ON("wordcount", "", pd_filter_wordcount),
    PD_ON("wordwrap", "width break_long_words wrapstring break_on_hyphens", pd_filter_wordwrap),
    PD_ON("xmlattr", "autospace", pd_filter_xmlattr), PD_END};

static const struct pd_builtin tests[] = {
    PD_AS("defined", "", has_type, ~OF(UNDEFINED)), PD_AS("undefined", "", has_type, OF(UNDEFINED)),
    PD_AS("none", "", has_type, OF(NONE)), PD_AS("boolean", "", has_type, OF(BOOL)), PD_AS("true", "", is_bool, true),
    PD_AS("false", "", is_bool, false), PD_AS("integer", "", has_type, OF(INT) | OF(HUGE)),
    PD_AS("float", "", has_type, OF(FLOAT)), PD_AS("number", "", has_type, NUMBERS),
    PD_AS("string", "", has_type, OF(TEXT)), PD_AS("mapping", "", has_type, OF(DICT)),
    PD_ON("iterable", "", is_iterable), PD_AS("sequence", "", has_type, SEQUENCES),
    PD_AS("callable", "", has_type, CALLABLE), PD_ON("escaped", "", is_escaped), PD_AS("filter", "", is_named, true),
    PD_AS("test", "", is_named, false), PD_AS("odd", "", leaves, 1), PD_AS("even", "", leaves, 0),
    PD_AS("divisibleby", "num!", leaves, 0), PD_AS("lower", "", pd_str_is_case, PD_LOWER),
    PD_AS("upper", "", pd_str_is_case, PD_UPPER), PD_ON("sameas", "other!", is_sameas),
    PD_AS("in", "seq!", compare, PD_OP_IN), PD_AS("==", "other!", compare, PD_OP('=', '=')),
    PD_AS("eq", "other!", compare, PD_OP('=', '=')), PD_AS("equalto", "other!", compare, PD_OP('=', '=')),
    PD_AS("!=", "other!", compare, PD_OP('!', '=')), PD_AS("ne", "other!", compare, PD_OP('!', '=')),
    PD_AS("<", "other!", compare, PD_OP('<', 0)), PD_AS("lt", "other!", compare, PD_OP('<', 0)),
    PD_AS("lessthan", "other!", compare, PD_OP('<', 0)), PD_AS("<=", "other!", compare, PD_OP('<', '=')),
    PD_AS("le", "other!", compare, PD_OP('<', '=')), PD_AS(">", "other!", compare, PD_OP('>', 0)),
    PD_AS("gt", "other!", compare, PD_OP('>', 0)), PD_AS("greaterthan", "other!", compare, PD_OP('>', 0)),
    PD_AS(">=", "other!", compare, PD_OP('>', '=')), PD_AS("ge", "other!", compare, PD_OP('>', '=')), PD_END};

/* Those of range have no names in Python. */
static const struct pd_builtin functions[] = {
    PD_ON("raise_exception", "message!", raise_exception), PD_ANY("namespace", make_dict, PD_NAMESPACE),
    PD_ANY("dict", make_dict, PD_DICT), PD_ON("range", "1! 2 3", make_range),
    PD_ON("strftime_now", "format!", pd_function_strftime_now), PD_ANY("cycler", make_cycler, 0),
    PD_ON("joiner", "sep", make_joiner), PD_ANY("lipsum", lipsum, 0), PD_END};

const struct pd_builtin *pd_filter_find(struct pd_chars name) { return pd_builtin_find(filters, name); }
const struct pd_builtin *pd_test_find(struct pd_chars name) { return pd_builtin_find(tests, name); }
const struct pd_builtin *pd_function_find(struct pd_chars name) { return pd_builtin_find(functions, name); }

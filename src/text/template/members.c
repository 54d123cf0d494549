/* What values have: methods of texts, lists, dicts and loops (a table each; those that would change a list or a dict
 * are there and refused, as the sandbox does), the variable `loop`, and v.name and v[which]. */
#include "text/template/template_.h"

#include "base/base.h"

#include <string.h>

/* ---- lists and dicts ---- */

static PD_BUILTIN(list_count)
{
    int64_t n = 0;
    bool equal;
    for (size_t i = 0; i < a->list.n; i++) {
        PD_TRY(pd_value_equals(&equal, r, &a->list.at[i], &a[1]));
        n += equal;
    }
    return pd_give(out, pd_value_int(n, false));
}

static PD_BUILTIN(list_index)
{
    bool equal = false;
    size_t i = 0;
    for (; i < a->list.n; i++) {
        PD_TRY(pd_value_equals(&equal, r, &a->list.at[i], &a[1]));
        if (equal) break;
    }
    if (!equal) return pd_render_fail(r, "index does not find the value");
    return pd_give(out, pd_value_int((int64_t)i, false));
}

static PD_BUILTIN(copy)   /* what never changes is its own */
{
    (void)r;
    *out = *a;
    return PERIDOT_OK;
}

static PD_BUILTIN(dict_get)
{
    struct pd_value *found;
    PD_TRY(pd_dict_find(&found, r, a->dict, &a[1]));
    *out = found ? *found : a[2].type == PD_UNSET ? pd_value_none() : a[2];
    return PERIDOT_OK;
}

static PD_BUILTIN_AS(dict_view) { return pd_dict_view(out, r, a->dict, (enum pd_view_kind)which); }

/* ---- loops ---- */

static PD_BUILTIN_ANY(loop_cycle)
{
    (void)which;
    if (args->n < 2 || args->n_named) return pd_render_fail(r, "loop.cycle has nothing to choose from");
    *out = args->at[1 + (size_t)args->at[0].loop->index0 % (args->n - 1)];
    return PERIDOT_OK;
}

static PD_BUILTIN_ANY(loop_changed)
{
    (void)which;
    struct pd_loop *l = args->at[0].loop;
    struct pd_value now;
    bool same = false;
    if (args->n_named) return pd_render_fail(r, "loop.changed takes no arguments with names");
    PD_TRY(pd_list_create(&now, r, args->n - 1));
    if (now.list.n) memcpy(now.list.at, args->at + 1, now.list.n * sizeof now);
    if (l->has_changed) PD_TRY(pd_value_equals(&same, r, &now, &l->changed));
    l->changed = now;
    l->has_changed = true;
    return pd_give(out, pd_value_bool(!same));
}

static PD_BUILTIN(cycler_next)
{
    struct pd_cycle *cycle = a->cycle;
    (void)r;
    *out = cycle->items.list.at[cycle->at];
    cycle->at = (cycle->at + 1) % cycle->items.list.n;
    return PERIDOT_OK;
}

static PD_BUILTIN(cycler_reset)
{
    (void)r;
    a->cycle->at = 0;
    return pd_give(out, pd_value_none());
}

/* ---- tables ---- */

static const struct pd_builtin texts[] = {
    PD_AS("capitalize", "", pd_str_case, PD_CAPITALIZED), PD_AS("center", "width! fillchar", pd_str_pad, 'c'),
    PD_ON("count", "sub! start end", pd_str_count), PD_AS("endswith", "suffix! start end", pd_str_has_affix, true),
    PD_AS("find", "sub! start end", pd_str_find, 0), PD_ANY("format", pd_str_format, 0),
    PD_AS("index", "sub! start end", pd_str_find, PD_FIND_MUST),
    PD_AS("isalnum", "", pd_str_lacks, PD_UNICODE_NOT_ALNUM), PD_AS("isalpha", "", pd_str_lacks, PD_UNICODE_NOT_ALPHA),
    PD_ON("isascii", "", pd_str_isascii), PD_AS("isdecimal", "", pd_str_lacks, PD_UNICODE_NOT_DECIMAL),
    PD_AS("isdigit", "", pd_str_lacks, PD_UNICODE_NOT_DECIMAL), PD_AS("islower", "", pd_str_is_case, PD_LOWER),
    PD_AS("isnumeric", "", pd_str_lacks, PD_UNICODE_NOT_DECIMAL), PD_ON("isspace", "", pd_str_isspace),
    PD_AS("isupper", "", pd_str_is_case, PD_UPPER), PD_ON("join", "iterable!", pd_str_join),
    PD_AS("ljust", "width! fillchar", pd_str_pad, 'l'), PD_AS("lower", "", pd_str_case, PD_LOWER),
    PD_AS("lstrip", "chars", pd_str_strip, PD_STRIP_LEFT), PD_AS("partition", "sep!", pd_str_partition, false),
    PD_AS("removeprefix", "prefix!", pd_str_remove_affix, false),
    PD_AS("removesuffix", "suffix!", pd_str_remove_affix, true), PD_ON("replace", "old! new! count", pd_str_replace),
    PD_AS("rfind", "sub! start end", pd_str_find, PD_FIND_LAST),
    PD_AS("rindex", "sub! start end", pd_str_find, PD_FIND_LAST | PD_FIND_MUST),
    PD_AS("rjust", "width! fillchar", pd_str_pad, 'r'), PD_AS("rpartition", "sep!", pd_str_partition, true),
    PD_AS("rsplit", "sep maxsplit", pd_str_split, true), PD_AS("rstrip", "chars", pd_str_strip, PD_STRIP_RIGHT),
    PD_AS("split", "sep maxsplit", pd_str_split, false), PD_ON("splitlines", "keepends", pd_str_splitlines),
    PD_AS("startswith", "prefix! start end", pd_str_has_affix, false),
    PD_AS("strip", "chars", pd_str_strip, PD_STRIP_LEFT | PD_STRIP_RIGHT), PD_ON("swapcase", "", pd_str_swapcase),
    PD_ON("title", "", pd_str_title), PD_AS("upper", "", pd_str_case, PD_UPPER), PD_ON("zfill", "width!", pd_str_zfill),
    PD_END};

static const struct pd_builtin lists[] = {
    PD_REFUSED("append"), PD_REFUSED("clear"), PD_ON("copy", "", copy), PD_ON("count", "value!", list_count),
    PD_REFUSED("extend"), PD_ON("index", "value!", list_index), PD_REFUSED("insert"), PD_REFUSED("pop"),
    PD_REFUSED("remove"), PD_REFUSED("reverse"), PD_REFUSED("sort"), PD_END};

static const struct pd_builtin tuples[] = {
    PD_ON("count", "value!", list_count), PD_ON("index", "value!", list_index), PD_END};

static const struct pd_builtin dicts[] = {
    PD_REFUSED("clear"), PD_ON("copy", "", copy), PD_ON("get", "key! default", dict_get),
    PD_AS("items", "", dict_view, PD_VIEW_ITEMS), PD_AS("keys", "", dict_view, PD_VIEW_KEYS), PD_REFUSED("pop"),
    PD_REFUSED("popitem"), PD_REFUSED("setdefault"), PD_REFUSED("update"),
    PD_AS("values", "", dict_view, PD_VIEW_VALUES), PD_END};

static const struct pd_builtin loops[] = {
    PD_ANY("changed", loop_changed, 0), PD_ANY("cycle", loop_cycle, 0), PD_END};

static const struct pd_builtin cyclers[] = {
    PD_ON("next", "", cycler_next), PD_ON("reset", "", cycler_reset), PD_END};

static const struct pd_builtin *const tables[] = {
    [PD_TEXT] = texts, [PD_LIST] = lists, [PD_TUPLE] = tuples, [PD_RANGE] = tuples, [PD_DICT] = dicts,
    [PD_LOOP] = loops, [PD_CYCLER] = cyclers, [PD_JOINER] = NULL};

const struct pd_builtin *pd_method_find(enum pd_value_type type, struct pd_chars name)
{
    return tables[type] ? pd_builtin_find(tables[type], name) : NULL;
}

bool pd_method_is_known(struct pd_chars name)
{
    for (size_t type = 0; type < PD_COUNT(tables); type++)
        if (pd_method_find((enum pd_value_type)type, name)) return true;
    return false;
}

/* ---- the variable loop ---- */

static peridot_status peek(struct pd_loop *l, struct pd_render *r)
{
    bool done;
    if (l->has_after) return PERIDOT_OK;
    l->has_after = true;
    PD_TRY(pd_iterator_next(&l->after, &done, &l->it, r));
    if (done) l->after = (struct pd_value){.type = PD_UNSET};
    return PERIDOT_OK;
}

peridot_status pd_loop_next(bool *done, struct pd_loop *l, struct pd_render *r)
{
    PD_TRY(peek(l, r));
    *done = l->after.type == PD_UNSET;
    l->has_after = false;
    if (*done) return PERIDOT_OK;
    l->index0++;
    l->before = l->current;
    l->current = l->after;
    return PERIDOT_OK;
}

/* What has none of its own is read to its end. */
static peridot_status find_length(struct pd_loop *l, struct pd_render *r)
{
    struct pd_value rest;
    if (l->has_length) return PERIDOT_OK;
    l->length = pd_value_length(&l->has_length, &l->iterated);
    if (l->has_length) return PERIDOT_OK;
    PD_TRY(pd_iterator_list(&rest, r, &l->it));
    PD_TRY(pd_iterate(&l->it, r, &rest));
    l->has_length = true;
    l->length = rest.list.n + (size_t)l->index0 + 1 + (l->has_after && l->after.type != PD_UNSET);
    return PERIDOT_OK;
}

static struct pd_value own_bool(bool b) { return (struct pd_value){.type = PD_BOOL, .own = true, .b = b}; }

static struct pd_value or_undefined(struct pd_value v, struct pd_chars name)
{
    return v.type == PD_UNSET ? pd_value_undefined(name) : v;
}

static peridot_status loop_member(struct pd_value *out, bool *found, struct pd_loop *l, struct pd_render *r,
                              struct pd_chars name)
{
    static const struct { const char *name; char kind; int64_t add; } members[] = {
        {"index", 'i', 1}, {"index0", 'i', 0}, {"revindex", 'r', 0}, {"revindex0", 'r', -1}, {"length", 'n', 0},
        {"first", 'f', 0}, {"last", 'l', 0}, {"previtem", 'p', 0}, {"nextitem", 'x', 0}, {"depth", 'd', 1},
        {"depth0", 'd', 0}};
    size_t i = 0;
    while (i < PD_COUNT(members) && !pd_chars_are(name, members[i].name)) i++;
    *found = i < PD_COUNT(members);
    if (!*found) return PERIDOT_OK;
    if (members[i].kind == 'r' || members[i].kind == 'n') PD_TRY(find_length(l, r));
    if (members[i].kind == 'l' || members[i].kind == 'x') PD_TRY(peek(l, r));
    switch (members[i].kind) {
    case 'i': *out = pd_value_int(l->index0 + members[i].add, true); break;
    case 'r': *out = pd_value_int((int64_t)l->length - l->index0 + members[i].add, true); break;
    case 'n': *out = pd_value_int((int64_t)l->length, true); break;
    case 'f': *out = own_bool(l->index0 == 0); break;
    case 'l': *out = own_bool(l->after.type == PD_UNSET); break;
    case 'p': *out = or_undefined(l->index0 ? l->before : (struct pd_value){.type = PD_UNSET}, name); break;
    case 'x': *out = or_undefined(l->after, name); break;
    default: *out = pd_value_int(l->depth0 + members[i].add, true); break;
    }
    return PERIDOT_OK;
}

/* ---- v.name and v[which] ---- */

/* What the sandbox refuses can be looked at, and is undefined. */
static struct pd_value unsafe(struct pd_chars name)
{
    struct pd_value v = pd_value_undefined(name);
    v.kind = 1;
    return v;
}

static bool is_dunder(struct pd_chars name)
{
    return name.size > 4 && memcmp(name.data, "__", 2) == 0 && memcmp(name.data + name.size - 2, "__", 2) == 0;
}

static peridot_status bind_method(struct pd_value *out, struct pd_render *r, const struct pd_value *of,
                                  const struct pd_builtin *method)
{
    struct pd_value *self;
    PD_TRY(pd_render_alloc(&self, r, 1, sizeof *self));
    *self = *of;
    *out = (struct pd_value){.type = PD_METHOD, .method = {method, self}};
    return PERIDOT_OK;
}

peridot_status pd_get_attribute(struct pd_value *out, bool *found, struct pd_render *r, const struct pd_value *of,
                                struct pd_chars name)
{
    struct pd_value *member;
    const struct pd_value key = pd_value_text(name);
    *found = true;
    if (of->type == PD_NAMESPACE) {
        PD_TRY(pd_dict_find(&member, r, of->dict, &key));
        *found = member != NULL;
        if (member) *out = *member;
        return PERIDOT_OK;
    }
    if (of->type == PD_LOOP) {
        PD_TRY(loop_member(out, found, of->loop, r, name));
        if (*found) return PERIDOT_OK;
    }
    if (of->type == PD_CYCLER && pd_chars_are(name, "current")) {
        *out = of->cycle->items.list.at[of->cycle->at];
        return PERIDOT_OK;
    }
    if (of->type == PD_TUPLE && of->kind && of->list.n == 2)
        for (size_t i = 0; i < 2; i++) {
            if (!pd_chars_are(name, i ? "list" : "grouper")) continue;
            *out = of->list.at[i];
            return PERIDOT_OK;
        }
    const struct pd_builtin *method = pd_method_find((enum pd_value_type)of->type, name);
    *found = method || is_dunder(name);
    if (method && pd_is_callable(method)) return bind_method(out, r, of, method);
    if (*found) *out = unsafe(name);
    return PERIDOT_OK;
}

/* of.name: the attribute, else the key. */
peridot_status pd_get_member(struct pd_value *out, struct pd_render *r, const struct pd_value *of,
                             struct pd_chars name)
{
    bool found;
    const struct pd_value object = *of, key = pd_value_text(name);
    if (object.type == PD_UNDEFINED && !is_dunder(name)) return pd_value_fail_undefined(r, of);
    PD_TRY(pd_get_attribute(out, &found, r, &object, name));
    if (!found && object.type == PD_DICT) PD_TRY(pd_get_element(out, &found, r, &object, &key));
    if (!found) *out = pd_value_undefined(name);
    return PERIDOT_OK;
}

peridot_status pd_get_item(struct pd_value *out, struct pd_render *r, const struct pd_value *of,
                           const struct pd_value *which)
{
    bool found;
    const struct pd_value object = *of, key = *which;
    PD_TRY(pd_get_element(out, &found, r, &object, &key));
    if (!found && key.type == PD_TEXT) PD_TRY(pd_get_attribute(out, &found, r, &object, key.text));
    if (!found) *out = key.type == PD_TEXT ? pd_value_undefined(key.text) : pd_value_undefined(PD_CHARS("an element"));
    return PERIDOT_OK;
}

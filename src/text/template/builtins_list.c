/* Filters of what can be iterated: elements, order, groups. Sorting merges, so that a hostile list stays cheap. */
#include "text/template/template_.h"

#include "base/base.h"

#include <string.h>

/* ---- elements ---- */

PD_BUILTIN(pd_filter_default)
{
    (void)r;
    const bool replaced = a->type == PD_UNDEFINED || (pd_value_is_true(&a[2]) && !pd_value_is_true(a));
    if (!replaced) *out = a[0];
    else *out = a[1].type == PD_UNSET ? pd_value_text(PD_CHARS("")) : a[1];
    return PERIDOT_OK;
}

PD_BUILTIN(pd_filter_length)
{
    bool known;
    PD_TRY(pd_render_scan(r, a->type == PD_TEXT ? 2 * a->text.size : 0));
    *out = pd_value_int((int64_t)pd_value_length(&known, a), false);
    return known ? PERIDOT_OK : pd_render_fail(r, "a value of type %s has no length", pd_value_type_name(a));
}

PD_BUILTIN(pd_filter_list)
{
    return pd_value_list(out, r, a);
}

PD_BUILTIN(pd_filter_items)
{
    struct pd_iterator it = {.next = NULL};
    struct pd_value view;
    if (a->type == PD_UNDEFINED) PD_TRY(pd_iterate(&it, r, a));
    else if (a->type != PD_DICT) return pd_render_fail(r, "items of a value of type %s", pd_value_type_name(a));
    if (a->type == PD_DICT) {
        PD_TRY(pd_dict_view(&view, r, a->dict, PD_VIEW_ITEMS));
        PD_TRY(pd_iterate(&it, r, &view));
    }
    return pd_iterator_keep(out, r, &it);
}

/* The first, or the last. */
PD_BUILTIN_AS(pd_filter_end)
{
    struct pd_iterator it;
    bool done;
    PD_TRY((which ? pd_iterate_backwards : pd_iterate)(&it, r, a));
    PD_TRY(pd_iterator_next(out, &done, &it, r));
    if (done) *out = pd_value_undefined(PD_CHARS("an element of an empty sequence"));
    return PERIDOT_OK;
}

PD_BUILTIN(pd_filter_reverse)
{
    struct pd_builder b = {.r = r};
    struct pd_iterator it;
    struct pd_value all;
    bool done = false;
    const bool markup = a->markup;
    if (a->type == PD_ITERATOR) {   /* which is no sequence: a list of it is reversed */
        PD_TRY(pd_value_list(&all, r, a));
        PD_TRY(pd_iterate_backwards(&it, r, &all));
        return pd_iterator_list(out, r, &it);
    }
    PD_TRY(pd_iterate_backwards(&it, r, a));
    if (a->type != PD_TEXT) return pd_iterator_keep(out, r, &it);
    for (;;) {
        PD_TRY(pd_iterator_next(&all, &done, &it, r));
        if (done) break;
        PD_TRY(pd_builder_add(&b, all.text));
    }
    *out = pd_builder_value(&b);
    out->markup = markup;
    return PERIDOT_OK;
}

static peridot_status get_part(struct pd_value *out, struct pd_render *r, const struct pd_value *of,
                               struct pd_chars part)
{
    struct pd_value key = pd_value_text(part);
    bool digits = part.size > 0 && part.size < 10;
    int64_t i = 0;
    for (size_t k = 0; k < part.size && digits; k++) {
        digits = part.data[k] >= '0' && part.data[k] <= '9';
        i = 10 * i + (part.data[k] - '0');
    }
    if (digits) key = pd_value_int(i, true);
    return pd_get_item(out, r, of, &key);
}

peridot_status pd_get_path(struct pd_value *out, struct pd_render *r, const struct pd_value *of,
                           const struct pd_value *path, const struct pd_value *otherwise)
{
    struct pd_value at = *of;
    const bool has_other = otherwise && otherwise->type != PD_UNSET && otherwise->type != PD_NONE;
    const bool is_text = path->type == PD_TEXT;
    *out = at;
    if (path->type == PD_UNSET || path->type == PD_NONE) return PERIDOT_OK;
    for (size_t from = 0, end; from <= (is_text ? path->text.size : 0); from = end + 1) {
        end = from;
        while (is_text && end < path->text.size && path->text.data[end] != '.') end++;
        PD_TRY(is_text ? get_part(out, r, &at, pd_chars_part(path->text, from, end - from))
                       : pd_get_item(out, r, &at, path));
        if (has_other && out->type == PD_UNDEFINED) *out = *otherwise;
        at = *out;
    }
    return PERIDOT_OK;
}

PD_BUILTIN(pd_filter_join)
{
    struct pd_builder b = {.r = r};
    struct pd_iterator it;
    struct pd_value item;
    struct pd_chars separator = PD_CHARS("");
    bool done = false;
    if (a[1].type != PD_UNSET) PD_TRY(pd_value_string(&separator, r, &a[1]));
    PD_TRY(pd_iterate(&it, r, a));
    for (size_t i = 0;; i++) {
        PD_TRY(pd_iterator_next(&item, &done, &it, r));
        if (done) break;
        if (i) PD_TRY(pd_builder_add(&b, separator));
        PD_TRY(pd_get_path(&item, r, &item, &a[2], NULL));
        PD_TRY(pd_print(&b, &item));
    }
    return pd_give(out, pd_builder_value(&b));
}

/* ---- order ---- */

struct order {
    struct pd_render *r;
    bool ignores_case, reverse;
    bool in_lists;               /* keys are compared as lists of one are: what is equal needs no order */
};

/* What is compared of a value: strings in lower case unless case matters. */
static peridot_status key_of(struct pd_value *out, const struct order *o, const struct pd_value *v,
                             const struct pd_value *path, const struct pd_value *otherwise)
{
    struct pd_value key[2];
    PD_TRY(pd_get_path(&key[0], o->r, v, path, otherwise));
    if (!o->ignores_case || key[0].type != PD_TEXT) {
        *out = key[0];
        return PERIDOT_OK;
    }
    return pd_str_case(out, o->r, key, PD_LOWER);
}

static peridot_status is_before(bool *out, const struct order *o, const struct pd_value *a, const struct pd_value *b)
{
    bool equal = false;
    *out = false;
    if (o->in_lists) PD_TRY(pd_value_equals(&equal, o->r, a, b));
    if (equal) return PERIDOT_OK;
    return pd_compare(out, o->r, o->reverse ? '>' : '<', a, b);
}

static peridot_status pair_is_before(bool *out, struct pd_render *r, const void *order, const struct pd_pair *a,
                                     const struct pd_pair *b)
{
    (void)r;
    return is_before(out, order, &a->key, &b->key);
}

/* Sorts the list's values by what `path` says of each, or else `otherwise` (NULL: nothing). */
static peridot_status sort_list(struct pd_value *list, const struct order *o, const struct pd_value *path,
                                const struct pd_value *otherwise)
{
    const size_t n = list->list.n;
    struct pd_value *const values = list->list.at;
    struct pd_pair *at;
    PD_TRY(pd_render_alloc(&at, o->r, n, sizeof *at));
    for (size_t i = 0; i < n; i++) {
        PD_TRY(key_of(&at[i].key, o, &values[i], path, otherwise));
        at[i].value = values[i];
    }
    PD_TRY(pd_pairs_sort(o->r, at, n, pair_is_before, o));
    PD_TRY(pd_list_create(list, o->r, n));
    for (size_t i = 0; i < n; i++) list->list.at[i] = at[i].value;
    return PERIDOT_OK;
}

PD_BUILTIN(pd_filter_sort)
{
    const struct order o = {r, !pd_value_is_true(&a[2]), pd_value_is_true(&a[1]), true};
    if (a[3].type == PD_TEXT && a[3].text.size && memchr(a[3].text.data, ',', a[3].text.size))
        return pd_render_fail(r, "sorting by several attributes is not supported");
    PD_TRY(pd_value_list(out, r, a));
    return sort_list(out, &o, &a[3], NULL);
}

PD_BUILTIN(pd_filter_dictsort)
{
    const struct order o = {r, !pd_value_is_true(&a[1]), pd_value_is_true(&a[3]), false};
    const bool by_value = a[2].type == PD_TEXT && pd_chars_are(a[2].text, "value");
    const struct pd_value which = pd_value_int(by_value, true);
    if (a->type == PD_UNDEFINED) return pd_value_fail_undefined(r, a);
    if (a->type != PD_DICT) return pd_render_fail(r, "dictsort of a value of type %s", pd_value_type_name(a));
    if (!by_value && a[2].type != PD_UNSET && !(a[2].type == PD_TEXT && pd_chars_are(a[2].text, "key")))
        return pd_render_fail(r, "dictsort is by key or by value");
    PD_TRY(pd_dict_view(out, r, a->dict, PD_VIEW_ITEMS));
    return sort_list(out, &o, &which, NULL);
}

/* ---- all of a sequence ---- */

PD_BUILTIN(pd_filter_unique)
{
    const struct order o = {r, !pd_value_is_true(&a[1]), false, false};
    struct pd_value seen, all, key, *found;
    struct pd_iterator it;
    size_t n = 0;
    PD_TRY(pd_dict_create(&seen, r, true));
    PD_TRY(pd_value_list(&all, r, a));
    PD_TRY(pd_list_create(out, r, all.list.n));
    for (size_t i = 0; i < all.list.n; i++) {
        PD_TRY(key_of(&key, &o, &all.list.at[i], &a[2], NULL));
        PD_TRY(pd_dict_find(&found, r, seen.dict, &key));
        if (found) continue;
        PD_TRY(pd_dict_put(r, seen.dict, &key, &key));
        out->list.at[n++] = all.list.at[i];
    }
    out->list.n = n;
    PD_TRY(pd_iterate(&it, r, out));
    return pd_iterator_keep(out, r, &it);
}

/* The least, or the greatest. */
PD_BUILTIN_AS(pd_filter_extreme)
{
    const struct order o = {r, !pd_value_is_true(&a[1]), which, false};
    struct pd_iterator it;
    struct pd_value item, key, best_key;
    bool done = false, better;
    PD_TRY(pd_iterate(&it, r, a));
    for (size_t i = 0;; i++) {
        PD_TRY(pd_iterator_next(&item, &done, &it, r));
        if (done && i == 0) *out = pd_value_undefined(PD_CHARS("an element of an empty sequence"));
        if (done) return PERIDOT_OK;
        PD_TRY(key_of(&key, &o, &item, &a[2], NULL));
        better = i == 0;
        if (!better) PD_TRY(is_before(&better, &o, &key, &best_key));
        if (!better) continue;
        *out = item;
        best_key = key;
    }
}

PD_BUILTIN(pd_filter_sum)
{
    struct pd_iterator it;
    struct pd_value item, sum = a[2].type == PD_UNSET ? pd_value_int(0, true) : a[2];
    bool done = false;
    if (sum.type == PD_TEXT) return pd_render_fail(r, "sum of texts");
    PD_TRY(pd_iterate(&it, r, a));
    for (;;) {
        PD_TRY(pd_iterator_next(&item, &done, &it, r));
        if (done) break;
        PD_TRY(pd_get_path(&item, r, &item, &a[1], NULL));
        PD_TRY(pd_operate(&sum, r, '+', &sum, &item));
    }
    *out = sum;
    return PERIDOT_OK;
}

struct part {
    size_t from, n, n_fill;    /* of the list, and how often `fill` stands behind it */
};

/* Without `fill` where that is PD_UNSET or none. */
static peridot_status create_part(struct pd_value *out, struct pd_render *r, const struct pd_value *list,
                                  const struct pd_value *fill, struct part part)
{
    size_t n = part.n + (fill->type == PD_UNSET || fill->type == PD_NONE ? 0 : part.n_fill);
    PD_TRY(pd_list_create(out, r, n));
    for (size_t i = 0; i < n; i++) out->list.at[i] = i < part.n ? list->list.at[part.from + i] : *fill;
    return PERIDOT_OK;
}

static peridot_status iterate_over(struct pd_value *out, struct pd_render *r, const struct pd_value *list)
{
    struct pd_iterator it;
    PD_TRY(pd_iterate(&it, r, list));
    return pd_iterator_keep(out, r, &it);
}

/* 0: the value is no number of parts. */
static size_t count_of(const struct pd_value *value)
{
    return pd_is_integer(value) && pd_value_integer(value) >= 1 ? (size_t)pd_value_integer(value) : 0;
}

PD_BUILTIN(pd_filter_batch)
{
    struct pd_value all, batches;
    const size_t n = count_of(&a[1]);
    if (!n) return pd_render_fail(r, "batches of no size");
    PD_TRY(pd_value_list(&all, r, a));
    PD_TRY(pd_list_create(&batches, r, (size_t)pd_div_up(all.list.n, n)));
    for (size_t i = 0; i < batches.list.n; i++) {
        const size_t size = pd_min(all.list.n - i * n, n);
        PD_TRY(create_part(&batches.list.at[i], r, &all, &a[2], (struct part){i * n, size, n - size}));
    }
    return iterate_over(out, r, &batches);
}

/* So many lists, of which the first ones are longer by one where they cannot be equal: the others are filled up. */
PD_BUILTIN(pd_filter_slice)
{
    struct pd_value all, slices;
    const size_t n = count_of(&a[1]);
    if (!n) return pd_render_fail(r, "slices of no number");
    PD_TRY(pd_value_list(&all, r, a));
    PD_TRY(pd_list_create(&slices, r, n));
    PD_TRY(pd_render_spend(r, n));
    const size_t size = all.list.n / n, n_longer = all.list.n % n;
    for (size_t i = 0; i < n; i++) {
        const size_t from = i * size + pd_min(i, n_longer);
        PD_TRY(create_part(&slices.list.at[i], r, &all, &a[2],
                           (struct part){from, size + (i < n_longer), i >= n_longer}));
    }
    return iterate_over(out, r, &slices);
}

/* Pairs of what the values have in common and a list of them, in the order of the former. */
PD_BUILTIN(pd_filter_groupby)
{
    const struct order o = {r, !pd_value_is_true(&a[3]), false, false};
    struct pd_value all, *pair = NULL, *values = NULL, key, last;
    size_t n = 0;
    bool same = false;
    PD_TRY(pd_value_list(&all, r, a));
    PD_TRY(sort_list(&all, &o, &a[1], &a[2]));
    PD_TRY(pd_list_create(out, r, all.list.n));
    for (size_t i = 0; i < all.list.n; i++) {
        PD_TRY(key_of(&key, &o, &all.list.at[i], &a[1], &a[2]));
        if (i) PD_TRY(pd_value_equals(&same, r, &key, &last));
        last = key;
        if (!same) {
            pair = &out->list.at[n++];
            PD_TRY(pd_list_create(pair, r, 2));
            pair->type = PD_TUPLE;
            pair->kind = 1;
            PD_TRY(pd_get_path(&pair->list.at[0], r, &all.list.at[i], &a[1], &a[2]));
            values = &pair->list.at[1];
            *values = (struct pd_value){.type = PD_LIST, .own = true, .list.at = &all.list.at[i]};
        }
        values->list.n++;
    }
    out->list.n = n;
    return PERIDOT_OK;
}

/* Of an object, not of its keys. */
PD_BUILTIN(pd_filter_attr)
{
    bool found;
    const struct pd_value object = *a;
    if (a[1].type != PD_TEXT) return pd_render_fail(r, "the name of an attribute is no text");
    PD_TRY(pd_get_attribute(out, &found, r, &object, a[1].text));
    if (!found) *out = pd_value_undefined(a[1].text);
    return PERIDOT_OK;
}

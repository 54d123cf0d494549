/* Values and what every part does to them: limits of a render, comparing, dicts, sorting, the input's JSON. The lowest
 * file of the room: it uses none of the others. */
#include "text/template/template_.h"

#include "base/base.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const unsigned char pd_all_own[1] = {1};

struct pd_value pd_value_none(void) { return (struct pd_value){.type = PD_NONE, .own = true}; }

struct pd_value pd_value_bool(bool b) { return (struct pd_value){.type = PD_BOOL, .b = b}; }

struct pd_value pd_value_int(int64_t i, bool own) { return (struct pd_value){.type = PD_INT, .own = own, .i = i}; }

struct pd_value pd_value_float(double f, bool own) { return (struct pd_value){.type = PD_FLOAT, .own = own, .f = f}; }

struct pd_value pd_value_text(struct pd_chars text) { return (struct pd_value){.type = PD_TEXT, .text = text}; }

struct pd_value pd_value_undefined(struct pd_chars name)
{
    return (struct pd_value){.type = PD_UNDEFINED, .undefined = {name.data, name.size}};
}

int64_t pd_value_integer(const struct pd_value *v) { return v->type == PD_BOOL ? v->b : v->i; }

double pd_value_double(const struct pd_value *v)
{
    return v->type == PD_FLOAT ? v->f : (double)pd_value_integer(v);
}

const char *pd_value_type_name(const struct pd_value *v)
{
    static const char *const names[] = {
        [PD_UNSET] = "nothing", [PD_UNDEFINED] = "Undefined", [PD_NONE] = "NoneType", [PD_BOOL] = "bool",
        [PD_INT] = "int", [PD_HUGE] = "int", [PD_FLOAT] = "float", [PD_TEXT] = "str", [PD_LIST] = "list",
        [PD_TUPLE] = "tuple", [PD_RANGE] = "range", [PD_VIEW] = "view of a dict", [PD_ITERATOR] = "generator",
        [PD_DICT] = "dict", [PD_NAMESPACE] = "namespace", [PD_MACRO] = "macro", [PD_FUNCTION] = "function",
        [PD_METHOD] = "method", [PD_LOOP] = "loop", [PD_CYCLER] = "cycler", [PD_JOINER] = "joiner"};
    return names[v->type];
}

peridot_status pd_value_fail_undefined(const struct pd_render *r, const struct pd_value *v)
{
    const char *name = v->undefined.name ? v->undefined.name : "a value";
    const int size = (int)pd_min(v->undefined.name ? v->undefined.size : strlen(name), 100);
    return pd_render_fail(r, v->kind ? "the template may not use %.*s" : "%.*s is undefined", size, name);
}

bool pd_value_is_true(const struct pd_value *v)
{
    switch (v->type) {
    case PD_UNSET: case PD_UNDEFINED: case PD_NONE: return false;
    case PD_BOOL: return v->b;
    case PD_INT: return v->i != 0;
    case PD_FLOAT: return v->f != 0;
    case PD_TEXT: return v->text.size != 0;
    case PD_LIST: case PD_TUPLE: case PD_RANGE: case PD_VIEW: return v->list.n != 0;
    case PD_DICT: return v->dict->n != 0;
    default: return true;
    }
}

bool pd_chars_equal(struct pd_chars a, struct pd_chars b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

bool pd_chars_are(struct pd_chars text, const char *literal)
{
    return text.size == strlen(literal) && memcmp(text.data, literal, text.size) == 0;
}

/* ---- comparing ---- */

/* Python compares integers and floats by their exact values. */
static int compare_mixed(int64_t i, double f)
{
    if (f >= 9223372036854775808.0) return -1;
    if (f < -9223372036854775808.0) return 1;
    int64_t whole = (int64_t)f;
    if (i != whole) return i < whole ? -1 : 1;
    double rest = f - (double)whole;
    return rest > 0 ? -1 : rest < 0;
}

static bool has_nan(const struct pd_value *a, const struct pd_value *b)
{
    return (a->type == PD_FLOAT && isnan(a->f)) || (b->type == PD_FLOAT && isnan(b->f));
}

static int compare_numbers(const struct pd_value *a, const struct pd_value *b)
{
    if (a->type != PD_FLOAT && b->type == PD_FLOAT) return compare_mixed(pd_value_integer(a), b->f);
    if (a->type == PD_FLOAT && b->type != PD_FLOAT) return -compare_mixed(pd_value_integer(b), a->f);
    if (a->type == PD_FLOAT) return (a->f > b->f) - (a->f < b->f);
    int64_t x = pd_value_integer(a), y = pd_value_integer(b);
    return (x > y) - (x < y);
}

static peridot_status equal_dicts(bool *out, struct pd_render *r, const struct pd_dict *a, const struct pd_dict *b)
{
    struct pd_value *other;
    *out = a->n == b->n;
    for (size_t i = 0; i < a->n && *out; i++) {
        PD_TRY(pd_dict_find(&other, r, b, &a->at[i].key));
        if (other) PD_TRY(pd_value_equals(out, r, &a->at[i].value, other));
        else *out = false;
    }
    return PERIDOT_OK;
}

static peridot_status equal_lists(bool *out, struct pd_render *r, const struct pd_value *a, const struct pd_value *b)
{
    *out = a->list.n == b->list.n;
    for (size_t i = 0; i < a->list.n && *out; i++) PD_TRY(pd_value_equals(out, r, &a->list.at[i], &b->list.at[i]));
    return PERIDOT_OK;
}

static peridot_status equal_same(bool *out, struct pd_render *r, const struct pd_value *a, const struct pd_value *b)
{
    switch (a->type) {
    case PD_UNDEFINED: case PD_NONE: *out = true; return PERIDOT_OK;
    case PD_HUGE: *out = a->u == b->u; return PERIDOT_OK;
    case PD_TEXT:
        *out = pd_chars_equal(a->text, b->text);
        return a->text.size == b->text.size ? pd_render_scan(r, a->text.size) : PERIDOT_OK;
    case PD_LIST: case PD_TUPLE: case PD_RANGE: return equal_lists(out, r, a, b);
    case PD_DICT: return equal_dicts(out, r, a->dict, b->dict);
    case PD_NAMESPACE: *out = a->dict == b->dict; return PERIDOT_OK;
    case PD_VIEW: return pd_render_fail(r, "comparing views of dicts is not supported");
    default: *out = a->function == b->function; return PERIDOT_OK;
    }
}

peridot_status pd_value_equals(bool *out, struct pd_render *r, const struct pd_value *a, const struct pd_value *b)
{
    *out = false;
    PD_TRY(pd_render_spend(r, 1));
    if (pd_is_number(a) && pd_is_number(b)) *out = !has_nan(a, b) && compare_numbers(a, b) == 0;
    if (pd_is_number(a) || a->type != b->type) return PERIDOT_OK;
    PD_TRY(pd_render_enter(r));
    peridot_status status = equal_same(out, r, a, b);
    pd_render_leave(r);
    return status;
}

static peridot_status compare_lists(int *out, struct pd_render *r, const struct pd_value *a, const struct pd_value *b)
{
    for (size_t i = 0; i < pd_min(a->list.n, b->list.n); i++) {
        bool equal;
        PD_TRY(pd_value_equals(&equal, r, &a->list.at[i], &b->list.at[i]));
        if (!equal) return pd_value_compare(out, r, &a->list.at[i], &b->list.at[i]);
    }
    *out = (a->list.n > b->list.n) - (a->list.n < b->list.n);
    return PERIDOT_OK;
}

peridot_status pd_value_compare(int *out, struct pd_render *r, const struct pd_value *a, const struct pd_value *b)
{
    PD_TRY(pd_render_spend(r, 3));
    if (pd_is_number(a) && pd_is_number(b) && !has_nan(a, b)) {
        *out = compare_numbers(a, b);
        return PERIDOT_OK;
    }
    if (a->type == PD_TEXT && b->type == PD_TEXT) {   /* the order of bytes is that of code points */
        size_t n = pd_min(a->text.size, b->text.size);
        *out = n ? memcmp(a->text.data, b->text.data, n) : 0;
        if (*out == 0) *out = (a->text.size > b->text.size) - (a->text.size < b->text.size);
        return pd_render_scan(r, n);
    }
    if (a->type == b->type && (a->type == PD_LIST || a->type == PD_TUPLE)) {
        PD_TRY(pd_render_enter(r));
        peridot_status status = compare_lists(out, r, a, b);
        pd_render_leave(r);
        return status;
    }
    return pd_render_fail(r, "no order between %s and %s", pd_value_type_name(a), pd_value_type_name(b));
}

/* ---- lists and dicts ---- */

peridot_status pd_list_create(struct pd_value *out, struct pd_render *r, size_t n)
{
    *out = (struct pd_value){.type = PD_LIST, .own = true, .list.n = n};
    return pd_render_alloc(&out->list.at, r, n, sizeof *out->list.at);
}

peridot_status pd_dict_create(struct pd_value *out, struct pd_render *r, bool own)
{
    *out = (struct pd_value){.type = PD_DICT, .own = own};
    return pd_render_alloc(&out->dict, r, 1, sizeof *out->dict);
}

/* Equal keys have equal hashes: 1, 1.0 and true are one. */
static peridot_status hash_key(uint64_t *out, struct pd_render *r, const struct pd_value *key)
{
    double f = pd_is_number(key) ? pd_value_double(key) + 0.0 : 0;   /* + 0.0: no -0.0 */
    switch (key->type) {
    case PD_TEXT:
        *out = pd_hash(0, key->text.data, key->text.size);
        return pd_render_scan(r, key->text.size);
    case PD_BOOL: case PD_INT: case PD_FLOAT: *out = pd_hash(1, &f, sizeof f); return PERIDOT_OK;
    case PD_NONE: case PD_UNDEFINED: *out = key->type; return PERIDOT_OK;
    default: return pd_render_fail(r, "a %s as the key of a dict is not supported", pd_value_type_name(key));
    }
}

/* Where the key is, or would go. */
static peridot_status find_slot(uint32_t **out, struct pd_render *r, const struct pd_dict *d,
                                const struct pd_value *key)
{
    uint64_t hash;
    bool equal = false;
    PD_TRY(hash_key(&hash, r, key));
    for (size_t i = (size_t)(hash ^ hash >> 32);; i++) {
        *out = &d->slots[i & (d->n_slots - 1)];
        if (**out == 0) return PERIDOT_OK;
        PD_TRY(pd_value_equals(&equal, r, &d->at[**out - 1].key, key));
        if (equal) return PERIDOT_OK;
    }
}

peridot_status pd_dict_find(struct pd_value **out, struct pd_render *r, const struct pd_dict *d,
                            const struct pd_value *key)
{
    uint32_t *slot;
    *out = NULL;
    uint64_t unused;
    if (d->n == 0) return hash_key(&unused, r, key);
    PD_TRY(find_slot(&slot, r, d, key));
    if (*slot) *out = &d->at[*slot - 1].value;
    return PERIDOT_OK;
}

static peridot_status grow(struct pd_render *r, struct pd_dict *d)
{
    struct pd_dict more = {.n = d->n, .capacity = pd_max(2 * d->capacity, 4)};
    uint32_t *slot;
    more.n_slots = 2 * more.capacity;
    PD_TRY(pd_render_alloc(&more.at, r, more.capacity, sizeof *more.at));
    PD_TRY(pd_render_alloc(&more.slots, r, more.n_slots, sizeof *more.slots));
    for (size_t i = 0; i < d->n; i++) {
        more.at[i] = d->at[i];
        PD_TRY(find_slot(&slot, r, &more, &d->at[i].key));
        *slot = (uint32_t)i + 1;
    }
    *d = more;
    return PERIDOT_OK;
}

peridot_status pd_dict_put(struct pd_render *r, struct pd_dict *d, const struct pd_value *key,
                           const struct pd_value *value)
{
    uint32_t *slot;
    if (d->n == d->capacity) PD_TRY(grow(r, d));
    PD_TRY(find_slot(&slot, r, d, key));
    if (*slot) {
        d->at[*slot - 1].value = *value;
        return PERIDOT_OK;
    }
    d->at[d->n++] = (struct pd_pair){*key, *value};
    *slot = (uint32_t)d->n;
    return PERIDOT_OK;
}

peridot_status pd_dict_view(struct pd_value *out, struct pd_render *r, const struct pd_dict *d, enum pd_view_kind kind)
{
    PD_TRY(pd_list_create(out, r, d->n));
    out->type = PD_VIEW;
    out->kind = (unsigned char)kind;
    for (size_t i = 0; i < d->n; i++) {
        struct pd_value *item = &out->list.at[i];
        if (kind != PD_VIEW_ITEMS) {
            *item = kind == PD_VIEW_KEYS ? d->at[i].key : d->at[i].value;
            continue;
        }
        PD_TRY(pd_list_create(item, r, 2));
        item->type = PD_TUPLE;
        item->list.at[0] = d->at[i].key;
        item->list.at[1] = d->at[i].value;
    }
    return PERIDOT_OK;
}

/* Merges halves, from one of the two arrays to the other. */
static peridot_status value_sort(struct pd_render *r, struct pd_pair *at, struct pd_pair *spare, size_t n,
                                 pd_pair_is_before *is_before, const void *context)
{
    if (n < 2) return PERIDOT_OK;
    const size_t half = n / 2;
    size_t i = 0, k = half, to = 0;
    bool before;
    PD_TRY(value_sort(r, at, spare, half, is_before, context));
    PD_TRY(value_sort(r, at + half, spare, n - half, is_before, context));
    while (i < half && k < n) {
        PD_TRY(is_before(&before, r, context, &at[k], &at[i]));
        spare[to++] = before ? at[k++] : at[i++];
    }
    while (i < half) spare[to++] = at[i++];
    memcpy(at, spare, to * sizeof *at);
    return PERIDOT_OK;
}

peridot_status pd_pairs_sort(struct pd_render *r, struct pd_pair *at, size_t n, pd_pair_is_before *is_before,
                             const void *context)
{
    struct pd_pair *spare = NULL;
    PD_TRY(pd_render_alloc(&spare, r, n, sizeof *spare));
    return value_sort(r, at, spare, n, is_before, context);
}

const struct pd_value *pd_args_find(const struct pd_args *args, struct pd_chars name)
{
    size_t i = args->n;
    for (const struct pd_code *named = args->named; named; named = named->next, i++)
        if (pd_chars_equal(named->value.text, name)) return &args->at[i];
    return NULL;
}

/* Most names differ in their first letter. */
const struct pd_builtin *pd_builtin_find(const struct pd_builtin *table, struct pd_chars name)
{
    for (; table->name; table++)
        if (name.size && name.data[0] == table->name[0] && pd_chars_are(name, table->name)) return table;
    return NULL;
}

/* ---- JSON ---- */

/* Of letters alone, it spells no control token by itself. */
static bool is_role(yyjson_val *key, yyjson_val *member)
{
    bool letters = yyjson_equals_str(key, "role") && yyjson_is_str(member);
    for (const char *c = letters ? yyjson_get_str(member) : ""; *c; c++)
        letters = letters && ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z'));
    return letters && strlen(yyjson_get_str(member)) == yyjson_get_len(member);
}

static peridot_status dict_from_json(struct pd_value *out, struct pd_render *r, yyjson_val *json)
{
    size_t i, n;
    yyjson_val *key, *member;
    PD_TRY(pd_dict_create(out, r, false));
    yyjson_obj_foreach(json, i, n, key, member) {
        struct pd_value name, value;
        PD_TRY(pd_value_from_json(&name, r, key));
        PD_TRY(pd_value_from_json(&value, r, member));
        if (is_role(key, member)) value.text.own = pd_all_own;
        PD_TRY(pd_dict_put(r, out->dict, &name, &value));
    }
    return PERIDOT_OK;
}

static peridot_status list_from_json(struct pd_value *out, struct pd_render *r, yyjson_val *json)
{
    size_t i, n;
    yyjson_val *member;
    PD_TRY(pd_list_create(out, r, yyjson_arr_size(json)));
    out->own = false;
    yyjson_arr_foreach(json, i, n, member) PD_TRY(pd_value_from_json(&out->list.at[i], r, member));
    return PERIDOT_OK;
}

static peridot_status container_from_json(struct pd_value *out, struct pd_render *r, yyjson_val *json)
{
    PD_TRY(pd_render_enter(r));
    peridot_status status = yyjson_is_obj(json) ? dict_from_json(out, r, json) : list_from_json(out, r, json);
    pd_render_leave(r);
    return status;
}

peridot_status pd_value_from_json(struct pd_value *out, struct pd_render *r, yyjson_val *json)
{
    PD_TRY(pd_render_spend(r, 1));
    switch (yyjson_get_type(json)) {
    case YYJSON_TYPE_BOOL: *out = pd_value_bool(yyjson_get_bool(json)); return PERIDOT_OK;
    case YYJSON_TYPE_NUM:
        if (yyjson_is_real(json)) *out = pd_value_float(yyjson_get_real(json), false);
        else if (yyjson_is_sint(json)) *out = pd_value_int(yyjson_get_sint(json), false);
        else if (yyjson_get_uint(json) <= INT64_MAX) *out = pd_value_int((int64_t)yyjson_get_uint(json), false);
        else *out = (struct pd_value){.type = PD_HUGE, .u = yyjson_get_uint(json)};
        return PERIDOT_OK;
    case YYJSON_TYPE_STR:
        return pd_give(out, pd_value_text((struct pd_chars){yyjson_get_str(json), yyjson_get_len(json), NULL}));
    case YYJSON_TYPE_ARR: case YYJSON_TYPE_OBJ: return container_from_json(out, r, json);
    default:
        *out = pd_value_none();
        out->own = false;
        return PERIDOT_OK;
    }
}

/* ---- what a render may use ---- */

peridot_status pd_render_fail(const struct pd_render *r, const char *format, ...)
{
    char sentence[512];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    return pd_fail(PERIDOT_ERROR_FORMAT, "line %u: %s", (unsigned)r->line, sentence);
}

peridot_status pd_render_spend(struct pd_render *r, uint64_t n)
{
    r->n_steps += n;
    if (r->n_steps <= PD_RENDER_MAX_STEPS) return PERIDOT_OK;
    return pd_render_fail(r, "the template takes more than %d steps", PD_RENDER_MAX_STEPS);
}

peridot_status pd_render_scan(struct pd_render *r, size_t size) { return pd_render_spend(r, size / 16); }

peridot_status pd_render_alloc(void *out, struct pd_render *r, size_t n, size_t size)
{
    const size_t left = PD_RENDER_MAX_SIZE - r->size;
    if (n > left / size)
        return pd_render_fail(r, "the template takes more than %d MiB of memory", PD_RENDER_MAX_SIZE >> 20);
    void *data = pd_arena_array(&r->arena, n, size);
    if (!data) return pd_fail_alloc(n * size, "values of a template");
    r->size += n * size;
    memcpy(out, &data, sizeof data);
    return PERIDOT_OK;
}

peridot_status pd_render_enter(struct pd_render *r)
{
    if (r->depth == PD_RENDER_MAX_DEPTH)
        return pd_render_fail(r, "the template nests deeper than %d", PD_RENDER_MAX_DEPTH);
    r->depth++;
    return PERIDOT_OK;
}

void pd_render_leave(struct pd_render *r) { r->depth--; }

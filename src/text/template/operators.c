/* Python's operators on values, and going through values one after the other. Integers have 64 bits: what would not fit
 * fails, as Python's would go on. */
#include "text/template/template_.h"

#include "base/base.h"

#include <math.h>
#include <string.h>

/* ---- going through values ---- */

static peridot_status next_stored(struct pd_value *out, bool *done, struct pd_render *r, struct pd_iterator *it)
{
    (void)r;
    const struct pd_dict *const d = it->source.type == PD_DICT ? it->source.dict : NULL;
    const size_t n = d ? d->n : it->source.list.n;
    *done = it->at >= n;
    if (*done) return PERIDOT_OK;
    const size_t i = it->backwards ? n - 1 - it->at : it->at;
    *out = d ? d->at[i].key : it->source.list.at[i];
    it->at++;
    return PERIDOT_OK;
}

static peridot_status next_character(struct pd_value *out, bool *done, struct pd_render *r, struct pd_iterator *it)
{
    (void)r;
    uint32_t code;
    const struct pd_chars text = it->source.text;
    *done = it->at == (it->backwards ? 0 : text.size);
    if (*done) return PERIDOT_OK;
    const size_t from = it->backwards ? pd_chars_previous(text, it->at) : it->at;
    const size_t n = it->backwards ? it->at - from : pd_chars_next(&code, text, from);
    *out = pd_value_text(pd_chars_part(text, from, n));
    it->at = it->backwards ? from : from + n;
    return PERIDOT_OK;
}

static peridot_status next_shared(struct pd_value *out, bool *done, struct pd_render *r, struct pd_iterator *it)
{
    return pd_iterator_next(out, done, it->from, r);
}

static peridot_status next_nothing(struct pd_value *out, bool *done, struct pd_render *r, struct pd_iterator *it)
{
    (void)out, (void)r, (void)it;
    *done = true;
    return PERIDOT_OK;
}

bool pd_is_iterable(const struct pd_value *v)
{
    return v->type == PD_UNDEFINED || v->type == PD_TEXT || (v->type >= PD_LIST && v->type <= PD_DICT) ||
           v->type == PD_LOOP;
}

static peridot_status operators_begin(struct pd_iterator *out, struct pd_render *r, const struct pd_value *v,
                                      bool backwards)
{
    *out = (struct pd_iterator){.source = *v, .next = next_nothing, .backwards = backwards};
    if (v->type == PD_TEXT) out->next = next_character, out->at = backwards ? v->text.size : 0;
    else if (pd_is_listed(v) || v->type == PD_DICT) out->next = next_stored;
    else if (v->type == PD_ITERATOR && !backwards) out->next = next_shared, out->from = v->iterator;
    else if (v->type != PD_UNDEFINED)
        return pd_render_fail(r, "a value of type %s cannot be %s", pd_value_type_name(v),
                              backwards ? "reversed" : "iterated");
    return PERIDOT_OK;
}

peridot_status pd_iterate(struct pd_iterator *out, struct pd_render *r, const struct pd_value *v)
{
    return operators_begin(out, r, v, false);
}

peridot_status pd_iterate_backwards(struct pd_iterator *out, struct pd_render *r, const struct pd_value *v)
{
    return operators_begin(out, r, v, true);
}

peridot_status pd_iterator_next(struct pd_value *out, bool *done, struct pd_iterator *it, struct pd_render *r)
{
    PD_TRY(pd_render_spend(r, 1));
    PD_TRY(pd_render_enter(r));
    peridot_status status = it->next(out, done, r, it);
    pd_render_leave(r);
    return status;
}

peridot_status pd_iterator_keep(struct pd_value *out, struct pd_render *r, const struct pd_iterator *it)
{
    *out = (struct pd_value){.type = PD_ITERATOR};
    PD_TRY(pd_render_alloc(&out->iterator, r, 1, sizeof *it));
    *out->iterator = *it;
    return PERIDOT_OK;
}

peridot_status pd_iterator_list(struct pd_value *out, struct pd_render *r, struct pd_iterator *it)
{
    struct pd_value *more, item;
    size_t capacity = 0;
    bool done = false;
    *out = (struct pd_value){.type = PD_LIST, .own = true};
    for (;;) {
        PD_TRY(pd_iterator_next(&item, &done, it, r));
        if (done) return PERIDOT_OK;
        if (out->list.n == capacity) {
            capacity = pd_max(8, 2 * capacity);
            PD_TRY(pd_render_alloc(&more, r, capacity, sizeof *more));
            if (out->list.n) memcpy(more, out->list.at, out->list.n * sizeof *more);
            out->list.at = more;
        }
        out->list.at[out->list.n++] = item;
    }
}

peridot_status pd_value_list(struct pd_value *out, struct pd_render *r, const struct pd_value *v)
{
    struct pd_iterator it;
    if (pd_is_listed(v)) {   /* which never change */
        *out = *v;
        out->type = PD_LIST;
        return PERIDOT_OK;
    }
    PD_TRY(pd_iterate(&it, r, v));
    return pd_iterator_list(out, r, &it);
}

size_t pd_value_length(bool *known, const struct pd_value *v)
{
    *known = v->type == PD_TEXT || pd_is_listed(v) || v->type == PD_DICT || v->type == PD_UNDEFINED;
    if (v->type == PD_TEXT) return pd_chars_count(v->text);
    if (v->type == PD_DICT) return v->dict->n;
    return pd_is_listed(v) ? v->list.n : 0;
}

/* ---- errors ---- */

static peridot_status fail_types(struct pd_render *r, unsigned op, const struct pd_value *a, const struct pd_value *b)
{
    char text[3] = {(char)(op & 0xff), (char)(op >> 8), 0};
    if (a->type == PD_UNDEFINED) return pd_value_fail_undefined(r, a);
    if (b->type == PD_UNDEFINED) return pd_value_fail_undefined(r, b);
    return pd_render_fail(r, "no %s between %s and %s", text, pd_value_type_name(a), pd_value_type_name(b));
}

static peridot_status fail_overflow(struct pd_render *r)
{
    return pd_render_fail(r, "an integer that does not fit 64 bits");
}

/* ---- integers ---- */

static bool add_fits(int64_t *out, int64_t x, int64_t y)
{
    if (y > 0 ? x > INT64_MAX - y : x < INT64_MIN - y) return false;
    *out = x + y;
    return true;
}

static bool multiply_fits(int64_t *out, int64_t x, int64_t y)
{
    const uint64_t a = x < 0 ? 0 - (uint64_t)x : (uint64_t)x, b = y < 0 ? 0 - (uint64_t)y : (uint64_t)y;
    const bool minus = (x < 0) != (y < 0);
    uint64_t product;
    if (!pd_mul(&product, a, b) || product > (uint64_t)INT64_MAX + minus) return false;
    *out = minus ? (int64_t)(0 - product) : (int64_t)product;
    return true;
}

static bool power_fits(int64_t *out, int64_t x, int64_t y)
{
    int64_t square = x;
    bool fits = true;
    for (*out = 1; y > 0; y >>= 1) {
        if (y & 1 && !(fits && multiply_fits(out, *out, square))) return false;
        fits = fits && multiply_fits(&square, square, square);
    }
    return true;
}

/* Rounded down, and the remainder with the divisor's sign. */
static int64_t divide_down(int64_t x, int64_t y) { return x / y - (x % y != 0 && (x % y < 0) != (y < 0)); }
static int64_t modulo(int64_t x, int64_t y) { return x % y + (x % y != 0 && (x % y < 0) != (y < 0) ? y : 0); }

static peridot_status operate_integers(struct pd_value *out, struct pd_render *r, unsigned op, int64_t x, int64_t y)
{
    bool fits = true;
    const bool divides = op == PD_OP('/', '/') || op == PD_OP('%', 0) || op == PD_OP('/', 0);
    if (divides && y == 0) return pd_render_fail(r, "a division by zero");
    if (divides && x == INT64_MIN && y == -1) return fail_overflow(r);
    switch (op) {
    case PD_OP('+', 0): fits = add_fits(&out->i, x, y); break;
    case PD_OP('-', 0): fits = y == INT64_MIN ? x < 0 && add_fits(&out->i, x - y, 0) : add_fits(&out->i, x, -y); break;
    case PD_OP('*', 0): fits = multiply_fits(&out->i, x, y); break;
    case PD_OP('/', '/'): out->i = divide_down(x, y); break;
    case PD_OP('%', 0): out->i = modulo(x, y); break;
    default: fits = power_fits(&out->i, x, y); break;
    }
    return fits ? PERIDOT_OK : fail_overflow(r);
}

static double modulo_float(double x, double y)
{
    double rest = fmod(x, y);
    if (rest == 0) return copysign(0.0, y);
    return (rest < 0) != (y < 0) ? rest + y : rest;
}

/* Python's: from the remainder, so that both agree. */
static double divide_down_float(double x, double y)
{
    double quotient = (x - modulo_float(x, y)) / y;
    if (quotient == 0) return copysign(0.0, x / y);
    double whole = floor(quotient);
    return quotient - whole > 0.5 ? whole + 1 : whole;
}

static peridot_status operate_floats(struct pd_value *out, struct pd_render *r, unsigned op, double x, double y)
{
    switch (op) {
    case PD_OP('+', 0): out->f = x + y; return PERIDOT_OK;
    case PD_OP('-', 0): out->f = x - y; return PERIDOT_OK;
    case PD_OP('*', 0): out->f = x * y; return PERIDOT_OK;
    case PD_OP('*', '*'):
        out->f = pow(x, y);
        if ((x == 0 && y < 0) || (x < 0 && isfinite(x) && floor(y) != y) ||
            (isinf(out->f) && isfinite(x) && isfinite(y)))
            return pd_render_fail(r, "a power that is no number");
        return PERIDOT_OK;
    default: break;
    }
    if (y == 0) return pd_render_fail(r, "a division by zero");
    out->f = op == PD_OP('/', 0) ? x / y : op == PD_OP('%', 0) ? modulo_float(x, y) : divide_down_float(x, y);
    return PERIDOT_OK;
}

static peridot_status operate_numbers(struct pd_value *out, struct pd_render *r, unsigned op, const struct pd_value *a,
                                      const struct pd_value *b)
{
    const bool integers = pd_is_integer(a) && pd_is_integer(b);
    const bool negative_power = op == PD_OP('*', '*') && integers && pd_value_integer(b) < 0;
    const bool own = a->own && b->own;
    if (integers && op != PD_OP('/', 0) && !negative_power) {
        *out = pd_value_int(0, own);
        return operate_integers(out, r, op, pd_value_integer(a), pd_value_integer(b));
    }
    const double x = pd_value_double(a), y = pd_value_double(b);
    *out = pd_value_float(0, own);
    return operate_floats(out, r, op, x, y);
}

/* ---- texts and lists ---- */

static peridot_status concat_lists(struct pd_value *out, struct pd_render *r, const struct pd_value *a,
                                   const struct pd_value *b)
{
    const size_t n = a->list.n + b->list.n;
    PD_TRY(pd_render_spend(r, n));
    PD_TRY(pd_list_create(out, r, n));
    if (a->list.n) memcpy(out->list.at, a->list.at, a->list.n * sizeof *a->list.at);
    if (b->list.n) memcpy(out->list.at + a->list.n, b->list.at, b->list.n * sizeof *b->list.at);
    out->type = a->type;
    out->own = a->own && b->own;
    return PERIDOT_OK;
}

/* Beside a text that was marked safe, the other is escaped. */
static peridot_status concat_texts(struct pd_value *out, struct pd_render *r, const struct pd_value *a,
                                   const struct pd_value *b)
{
    struct pd_value left = *a, right = *b;
    if (a->markup && !b->markup) PD_TRY(pd_value_escape(&right, r, b));
    if (b->markup && !a->markup) PD_TRY(pd_value_escape(&left, r, a));
    PD_TRY(pd_chars_concat(out, r, left.text, right.text));
    out->markup = a->markup || b->markup;
    return PERIDOT_OK;
}

static peridot_status repeat_list(struct pd_value *out, struct pd_render *r, const struct pd_value *v, size_t times)
{
    const unsigned char type = v->type;
    struct pd_value made;
    uint64_t n;
    if (!pd_mul(&n, v->list.n, times) || n > PD_RENDER_MAX_SIZE) n = PD_RENDER_MAX_SIZE;   /* which is too much */
    PD_TRY(pd_list_create(&made, r, (size_t)n));
    PD_TRY(pd_render_spend(r, n));
    for (size_t i = 0; i < n; i++) made.list.at[i] = v->list.at[i % v->list.n];
    made.type = type;
    made.own = v->own;
    *out = made;
    return PERIDOT_OK;
}

static peridot_status repeat(struct pd_value *out, struct pd_render *r, const struct pd_value *v, int64_t times)
{
    struct pd_builder b = {.r = r};
    const size_t n = times > 0 ? (size_t)times : 0;
    const bool markup = v->markup;
    if (v->type != PD_TEXT) return repeat_list(out, r, v, n);
    if (n && v->text.size > PD_RENDER_MAX_SIZE / n) PD_TRY(pd_builder_reserve(&b, PD_RENDER_MAX_SIZE));
    if (n && v->text.size) PD_TRY(pd_builder_reserve(&b, n * v->text.size));
    PD_TRY(pd_render_spend(r, v->text.size ? n : 0));
    for (size_t i = 0; i < n && v->text.size; i++) PD_TRY(pd_builder_add(&b, v->text));
    *out = pd_builder_value(&b);
    out->markup = markup;
    return PERIDOT_OK;
}

static bool is_repeatable(const struct pd_value *v)
{
    return v->type == PD_TEXT || v->type == PD_LIST || v->type == PD_TUPLE;
}

peridot_status pd_operate(struct pd_value *out, struct pd_render *r, unsigned op, const struct pd_value *a,
                          const struct pd_value *b)
{
    const struct pd_value left = *a, right = *b;   /* out may be one of them */
    if (pd_is_number(&left) && pd_is_number(&right)) return operate_numbers(out, r, op, &left, &right);
    if (op == PD_OP('+', 0) && left.type == right.type) {
        if (left.type == PD_TEXT) return concat_texts(out, r, &left, &right);
        if (left.type == PD_LIST || left.type == PD_TUPLE) return concat_lists(out, r, &left, &right);
    }
    if (op == PD_OP('*', 0) && is_repeatable(&left) && pd_is_integer(&right))
        return repeat(out, r, &left, pd_value_integer(&right));
    if (op == PD_OP('*', 0) && is_repeatable(&right) && pd_is_integer(&left))
        return repeat(out, r, &right, pd_value_integer(&left));
    if (op == PD_OP('%', 0) && left.type == PD_TEXT) {
        const bool many = right.type == PD_TUPLE;
        struct pd_value one = right;
        const struct pd_args args = {many ? right.list.at : &one, many ? right.list.n : 1, 0, NULL};
        return pd_printf(out, r, &left, &args);
    }
    return fail_types(r, op, &left, &right);
}

peridot_status pd_negate(struct pd_value *out, struct pd_render *r, const struct pd_value *v, bool minus)
{
    if (v->type == PD_UNDEFINED) return pd_value_fail_undefined(r, v);
    if (!pd_is_number(v)) return pd_render_fail(r, "a value of type %s has no sign", pd_value_type_name(v));
    if (v->type == PD_FLOAT) {
        return pd_give(out, pd_value_float(minus ? -v->f : v->f, v->own));
    }
    int64_t i = pd_value_integer(v);
    if (minus && i == INT64_MIN) return fail_overflow(r);
    return pd_give(out, pd_value_int(minus ? -i : i, v->own));
}

/* ---- comparisons ---- */

static peridot_status operators_contains(bool *out, struct pd_render *r, const struct pd_value *in,
                                         const struct pd_value *what)
{
    struct pd_iterator it;
    struct pd_value *value, item;
    bool done = false;
    size_t at;
    *out = false;
    if (in->type == PD_DICT) {
        PD_TRY(pd_dict_find(&value, r, in->dict, what));
        *out = value != NULL;
        return PERIDOT_OK;
    }
    if (in->type == PD_TEXT && what->type != PD_TEXT)
        return pd_render_fail(r, "a value of type %s cannot be in a text", pd_value_type_name(what));
    if (in->type == PD_TEXT) {
        PD_TRY(pd_chars_find(&at, r, in->text, what->text, 0));
        *out = at != SIZE_MAX;
        return PERIDOT_OK;
    }
    PD_TRY(pd_iterate(&it, r, in));
    while (!*out) {
        PD_TRY(pd_iterator_next(&item, &done, &it, r));
        if (done) break;
        PD_TRY(pd_value_equals(out, r, &item, what));
    }
    return PERIDOT_OK;
}

static bool is_nan(const struct pd_value *v) { return v->type == PD_FLOAT && isnan(v->f); }

peridot_status pd_compare(bool *out, struct pd_render *r, unsigned op, const struct pd_value *a,
                          const struct pd_value *b)
{
    int order;
    if (op == PD_OP_IN || op == PD_OP_NOT_IN) {
        PD_TRY(operators_contains(out, r, b, a));
        *out ^= op == PD_OP_NOT_IN;
        return PERIDOT_OK;
    }
    if (op == PD_OP('=', '=') || op == PD_OP('!', '=')) {
        PD_TRY(pd_value_equals(out, r, a, b));
        *out ^= op == PD_OP('!', '=');
        return PERIDOT_OK;
    }
    *out = false;
    if (pd_is_number(a) && pd_is_number(b) && (is_nan(a) || is_nan(b))) return PERIDOT_OK;
    if (a->type == PD_UNDEFINED || b->type == PD_UNDEFINED) return fail_types(r, op, a, b);
    PD_TRY(pd_value_compare(&order, r, a, b));
    *out = op == PD_OP('<', 0) ? order < 0 : op == PD_OP('<', '=') ? order <= 0
           : op == PD_OP('>', 0) ? order > 0 : order >= 0;
    return PERIDOT_OK;
}

/* ---- elements ---- */

peridot_status pd_get_element(struct pd_value *out, bool *found, struct pd_render *r, const struct pd_value *v,
                              const struct pd_value *which)
{
    struct pd_value *value;
    *found = false;
    if (v->type == PD_UNDEFINED) return pd_value_fail_undefined(r, v);
    if (v->type == PD_DICT) {
        if (pd_is_listed(which) || which->type == PD_DICT) return PERIDOT_OK;   /* what has no hash is no key */
        PD_TRY(pd_dict_find(&value, r, v->dict, which));
        *found = value != NULL;
        if (value) *out = *value;
        return PERIDOT_OK;
    }
    if (!pd_is_integer(which) || !(v->type == PD_TEXT || (pd_is_listed(v) && v->type != PD_VIEW))) return PERIDOT_OK;
    bool known;
    const bool ascii = v->type == PD_TEXT && pd_chars_is_ascii(v->text);
    if (v->type == PD_TEXT) PD_TRY(pd_render_scan(r, (ascii ? 1 : 4) * v->text.size));
    const int64_t n = (int64_t)(ascii ? v->text.size : pd_value_length(&known, v));
    int64_t i = pd_value_integer(which);
    if (i < 0) i += n;
    *found = i >= 0 && i < n;
    if (!*found) return PERIDOT_OK;
    if (v->type != PD_TEXT) {
        *out = v->list.at[i];
        return PERIDOT_OK;
    }
    uint32_t code;
    const size_t at = ascii ? (size_t)i : pd_chars_offset(v->text, (size_t)i);
    *out = pd_value_text(pd_chars_part(v->text, at, pd_chars_next(&code, v->text, at)));
    out->markup = v->markup;
    return PERIDOT_OK;
}

static peridot_status read_bound(int64_t *out, struct pd_render *r, const struct pd_value *v, int64_t none)
{
    *out = none;
    if (v->type == PD_NONE) return PERIDOT_OK;
    if (v->type == PD_UNDEFINED) return pd_value_fail_undefined(r, v);
    if (!pd_is_integer(v)) return pd_render_fail(r, "a slice by %s", pd_value_type_name(v));
    *out = pd_value_integer(v);
    return PERIDOT_OK;
}

/* Python's slice.indices. */
static int64_t clip(int64_t bound, int64_t n, bool backwards)
{
    if (bound < 0) return bound + n < 0 ? (backwards ? -1 : 0) : bound + n;
    return bound >= n ? (backwards ? n - 1 : n) : bound;
}

static peridot_status slice_text(struct pd_value *out, struct pd_render *r, const struct pd_value *v,
                                 const int64_t bounds[3])
{
    struct pd_builder b = {.r = r};
    const int64_t from = bounds[0], to = bounds[1], step = bounds[2];
    const bool ascii = pd_chars_is_ascii(v->text), markup = v->markup;
    const struct pd_chars text = v->text;
    if (step == 1) {
        size_t begin = ascii ? (size_t)from : pd_chars_offset(text, (size_t)from);
        size_t end = to <= from ? begin : ascii ? (size_t)to
                     : begin + pd_chars_offset(pd_chars_part(text, begin, text.size - begin), (size_t)(to - from));
        *out = pd_value_text(pd_chars_part(text, begin, end - begin));
        out->markup = markup;
        return PERIDOT_OK;
    }
    struct pd_value characters;
    PD_TRY(pd_value_list(&characters, r, v));
    for (int64_t i = from; step > 0 ? i < to : i > to; i += step)
        PD_TRY(pd_builder_add(&b, characters.list.at[i].text));
    *out = pd_builder_value(&b);
    out->markup = markup;
    return PERIDOT_OK;
}

peridot_status pd_get_slice(struct pd_value *out, struct pd_render *r, const struct pd_value *v,
                            const struct pd_value bounds[3])
{
    int64_t b[3];
    bool known;
    const struct pd_value of = *v;
    if (of.type == PD_UNDEFINED) return pd_value_fail_undefined(r, v);
    if (of.type != PD_TEXT && (!pd_is_listed(&of) || of.type == PD_VIEW))
        return pd_render_fail(r, "a value of type %s cannot be sliced", pd_value_type_name(v));
    PD_TRY(read_bound(&b[2], r, &bounds[2], 1));
    if (b[2] == 0) return pd_render_fail(r, "a slice by steps of 0");
    if (of.type == PD_TEXT) PD_TRY(pd_render_scan(r, 4 * of.text.size));
    const int64_t n = (int64_t)pd_value_length(&known, &of);
    const bool back = b[2] < 0;
    PD_TRY(read_bound(&b[0], r, &bounds[0], back ? n : 0));
    PD_TRY(read_bound(&b[1], r, &bounds[1], back ? -n - 1 : n));
    b[0] = clip(b[0], n, back);
    b[1] = clip(b[1], n, back);
    b[2] = back ? (b[2] < -n - 1 ? -n - 1 : b[2]) : (b[2] > n + 1 ? n + 1 : b[2]);
    if (of.type == PD_TEXT) return slice_text(out, r, &of, b);
    if (b[2] == 1) {   /* lists never change, so that a part can be where it is */
        *out = of;
        out->list.at += b[0];
        out->list.n = b[1] > b[0] ? (size_t)(b[1] - b[0]) : 0;
        return PERIDOT_OK;
    }
    const int64_t width = back ? b[0] - b[1] : b[1] - b[0], step = back ? -b[2] : b[2];
    PD_TRY(pd_list_create(out, r, width > 0 ? (size_t)((width + step - 1) / step) : 0));
    PD_TRY(pd_render_spend(r, out->list.n));
    for (size_t i = 0; i < out->list.n; i++) out->list.at[i] = of.list.at[b[0] + (int64_t)i * b[2]];
    out->type = of.type;
    out->own = of.own;
    return PERIDOT_OK;
}

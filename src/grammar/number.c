/* Numbers within limits. The digits of a number are compared with those of the limits from the left, among numbers of
 * as many digits: a state knows whether the number is still equal to either. */
#include "base/base.h"
#include "grammar/grammar.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INTEGER_DIGITS 18          /* all are 64-bit integers */
#define NUMBER_DIGITS 15           /* all differ as doubles, in the order that they have */
#define EXPONENT_DIGITS 2

/* ---- limits ---- */

static void trim(struct pd_decimal *d)
{
    size_t zeros = strspn(d->whole, "0"), n = strlen(d->whole);
    if (zeros == n) zeros = n ? n - 1 : 0;
    memmove(d->whole, d->whole + zeros, n - zeros + 1);
    for (n = strlen(d->fraction); n && d->fraction[n - 1] == '0';) d->fraction[--n] = 0;
    if (strcmp(d->whole, "0") == 0 && !d->fraction[0]) d->negative = false;
}

bool pd_decimal_read(struct pd_decimal *out, yyjson_val *value, bool exclusive)
{
    char text[64];
    *out = (struct pd_decimal){.given = true, .exclusive = exclusive};
    if (!yyjson_is_num(value)) return false;
    out->value = yyjson_get_num(value);
    out->negative = out->value < 0;
    if (yyjson_is_uint(value)) {
        snprintf(out->whole, sizeof out->whole, "%llu", (unsigned long long)yyjson_get_uint(value));
        return true;
    }
    if (yyjson_is_sint(value)) {
        snprintf(out->whole, sizeof out->whole, "%llu", 0 - (unsigned long long)yyjson_get_sint(value));
        return true;
    }
    double size = fabs(out->value);
    if (size >= 1e18) {            /* beyond all that are written */
        strcpy(out->whole, "9999999999999999999");
        return true;
    }
    snprintf(text, sizeof text, "%.14e", size);
    if (strtod(text, NULL) != size) return false;
    for (int n = 0; n <= 20; n++) {   /* the fewest places that are it */
        snprintf(text, sizeof text, "%.*f", n, size);
        if (strtod(text, NULL) == size) break;
        if (n == 20) return false;
    }
    const char *point = strchr(text, '.');
    size_t n = point ? (size_t)(point - text) : strlen(text);
    memcpy(out->whole, text, n);
    if (point) memcpy(out->fraction, point + 1, strlen(point));
    trim(out);
    return true;
}

/* ---- multiples ---- */

static uint64_t gcd(uint64_t a, uint64_t b) { return b ? gcd(b, a % b) : a; }

/* The least common multiple of a / 10^a_places and b / 10^b_places in the same form. */
bool pd_multiple_add(struct pd_multiple *m, yyjson_val *value)
{
    struct pd_decimal d;
    if (!pd_decimal_read(&d, value, false) || d.negative || d.value == 0) return false;
    char digits[48];
    snprintf(digits, sizeof digits, "%s%s", d.whole, d.fraction);
    struct pd_multiple other = {strtoull(digits, NULL, 10), (uint32_t)strlen(d.fraction)};
    if (strlen(digits) > 18) return false;
    if (!m->of) *m = (struct pd_multiple){other.of, other.places};
    for (; m->places < other.places && m->of < UINT64_MAX / 10; m->places++) m->of *= 10;
    for (; other.places < m->places && other.of < UINT64_MAX / 10; other.places++) other.of *= 10;
    uint64_t factor = other.of / gcd(m->of, other.of);
    if (m->places != other.places || m->of > UINT64_MAX / factor) return false;
    m->of *= factor;
    for (; m->places && m->of % 10 == 0; m->places--) m->of /= 10;
    return true;
}

/* ---- digits ---- */

struct digits {
    struct pd_rules *r;
    const struct pd_decimal *min, *max;   /* of the number without its sign; given: there is one */
    struct pd_multiple multiple;   /* of 0: any number */
    uint32_t n;                    /* digits at most */
    uint32_t to;
    uint32_t *places, *wholes;     /* states, by what may still come and the remainder; 0: not made */
};

/* Equal so far to the lower limit, to the upper one. */
struct tied {
    bool min, max;
};

static bool is_zero(const char *digits) { return digits[strspn(digits, "0")] == 0; }
static const char *places_from(const struct pd_decimal *d, size_t at)
{
    return at < strlen(d->fraction) ? d->fraction + at : "";
}

/* Whether a number that is written up to `at` places is within the limits. */
static bool may_end(const struct digits *d, struct tied tied, size_t at)
{
    if (tied.min && (!is_zero(places_from(d->min, at)) || d->min->exclusive)) return false;
    return !(tied.max && is_zero(places_from(d->max, at)) && d->max->exclusive);
}

/* What remains of the digits so far, and whether it is nothing where `left` places more could come. */
static uint32_t modulus(const struct digits *d) { return d->multiple.of ? (uint32_t)d->multiple.of : 1; }
static uint32_t next_rest(const struct digits *d, uint32_t rest, char digit)
{
    return (10 * rest + (uint32_t)(digit - '0')) % modulus(d);
}

static bool divides(const struct digits *d, uint32_t rest, uint32_t left)
{
    while (left-- && rest) rest = next_rest(d, rest, '0');
    return rest == 0;
}

/* What comes of a digit beside those of the limits; false: it is past one. */
static bool tie_digit(struct tied *tied, char digit, char min, char max)
{
    if ((tied->min && digit < min) || (tied->max && digit > max)) return false;
    tied->min = tied->min && digit == min;
    tied->max = tied->max && digit == max;
    return true;
}

/* Where digits are, with no limit to heed: n of them in all before the point, or 0 behind it; `left` to come after the
 * one that is written; what remains of those before it. `follow` is the state after it. */
struct place {
    uint32_t n, left, rest;
    uint32_t (*follow)(struct digits *d, uint32_t n, uint32_t left, uint32_t rest);
};

/* Digits low..'9'. */
static void write_digits(struct digits *d, uint32_t state, char low, struct place p)
{
    for (char high; low <= '9'; low = (char)(high + 1)) {
        uint32_t to = p.follow(d, p.n, p.left, next_rest(d, p.rest, low));
        high = modulus(d) == 1 ? '9' : low;
        pd_nfa_bytes(d->r, state, (uint8_t)low, (uint8_t)high, to);
    }
}

/* After a place, with no limit to heed: `left` more at most. */
static uint32_t after_place(struct digits *d, uint32_t n, uint32_t left, uint32_t rest)
{
    uint32_t at = left * modulus(d) + rest;
    if (d->places[at] || !pd_rules_work(d->r, 1)) return d->places[at];
    uint32_t state = d->places[at] = pd_nfa_state(d->r);
    if (divides(d, rest, left)) pd_nfa_skip(d->r, state, d->to);
    if (left) write_digits(d, state, '0', (struct place){n, left - 1, rest, after_place});
    return state;
}

/* From a state after `at` places and the point: `left` more at most. */
static void write_places(struct digits *d, uint32_t from, struct tied tied, size_t at, uint32_t left, uint32_t rest)
{
    if (!tied.min && !tied.max) write_digits(d, from, '0', (struct place){0, left - 1, rest, after_place});
    for (char digit = '0'; (tied.min || tied.max) && digit <= '9' && pd_rules_work(d->r, 1); digit++) {
        struct tied next = tied;
        const char *min = places_from(d->min, at), *max = places_from(d->max, at);
        uint32_t rest_then = next_rest(d, rest, digit), state;
        if (!tie_digit(&next, digit, *min ? *min : '0', *max ? *max : '0')) continue;
        if (next.min || next.max) {
            state = pd_nfa_state(d->r);
            if (may_end(d, next, at + 1) && divides(d, rest_then, left - 1)) pd_nfa_skip(d->r, state, d->to);
            if (left > 1) write_places(d, state, next, at + 1, left - 1, rest_then);
        } else {
            state = after_place(d, 0, left - 1, rest_then);
        }
        pd_nfa_bytes(d->r, from, (uint8_t)digit, (uint8_t)digit, state);
    }
}

/* After n digits before the point. */
static void end_whole(struct digits *d, uint32_t from, struct tied tied, uint32_t n, uint32_t rest)
{
    uint32_t left = d->multiple.of ? d->multiple.places : d->n - n;
    if (may_end(d, tied, 0) && divides(d, rest, left)) pd_nfa_skip(d->r, from, d->to);
    if (left) write_places(d, pd_nfa_text(d->r, from, ".", 1), tied, 0, left, rest);
}

/* With no limit to heed, `left` digits before the point to come of n. How many places may follow depends on n, unless
 * it is a multiple of something. */
static uint32_t after_digit(struct digits *d, uint32_t n, uint32_t left, uint32_t rest)
{
    size_t at = ((d->multiple.of ? 0 : n) * (size_t)(d->n + 1) + left) * modulus(d) + rest;
    if (d->wholes[at] || !pd_rules_work(d->r, 1)) return d->wholes[at];
    uint32_t state = d->wholes[at] = pd_nfa_state(d->r);
    if (left) write_digits(d, state, '0', (struct place){n, left - 1, rest, after_digit});
    else end_whole(d, state, (struct tied){false, false}, n, rest);
    return state;
}

/* Of n digits before the point, those from number i on. */
static void write_tied(struct digits *d, uint32_t from, struct tied tied, uint32_t n, uint32_t i, uint32_t rest)
{
    if (i == n) end_whole(d, from, tied, n, rest);
    for (char digit = i == 0 && n > 1 ? '1' : '0'; i < n && digit <= '9' && pd_rules_work(d->r, 1); digit++) {
        struct tied next = tied;
        uint32_t rest_then = next_rest(d, rest, digit);
        if (!tie_digit(&next, digit, d->min->whole[i], d->max->whole[i])) continue;
        bool free = !next.min && !next.max;
        uint32_t state = free ? after_digit(d, n, n - i - 1, rest_then) : pd_nfa_state(d->r);
        if (!free) write_tied(d, state, next, n, i + 1, rest_then);
        pd_nfa_bytes(d->r, from, (uint8_t)digit, (uint8_t)digit, state);
    }
}

/* Numbers with n digits before the point. */
static void write_whole(struct digits *d, uint32_t from, uint32_t n)
{
    uint32_t n_min = d->min->given ? (uint32_t)strlen(d->min->whole) : 0,
             n_max = d->max->given ? (uint32_t)strlen(d->max->whole) : UINT32_MAX;
    if (n < n_min || n > n_max) return;
    if (n == n_min || n == n_max) write_tied(d, from, (struct tied){n == n_min, n == n_max}, n, 0, 0);
    else write_digits(d, from, n > 1 ? '1' : '0', (struct place){n, n - 1, 0, after_digit});
}

/* Numbers without a sign. */
static void write_magnitude(struct pd_rules *r, uint32_t from, const struct pd_decimal *min,
                            const struct pd_decimal *max, const struct pd_multiple *multiple, uint32_t to)
{
    struct digits d = {.r = r, .min = min, .max = max, .multiple = *multiple, .to = to};
    bool integer = multiple->of && !multiple->places;
    d.n = integer ? INTEGER_DIGITS : NUMBER_DIGITS - multiple->places;
    size_t n_lengths = multiple->of ? 1 : d.n + 1;
    d.places = calloc((size_t)NUMBER_DIGITS * modulus(&d), sizeof *d.places);
    d.wholes = calloc(n_lengths * (d.n + 1) * modulus(&d), sizeof *d.wholes);
    uint32_t begin = pd_nfa_state(r);
    pd_nfa_skip(r, from, begin);
    if (d.places && d.wholes)
        for (uint32_t n = 1; n <= d.n; n++) write_whole(&d, begin, n);
    else if (r->status == PERIDOT_OK)
        r->status = pd_fail_alloc((size_t)NUMBER_DIGITS * modulus(&d) * sizeof *d.places, "numbers");
    free(d.places);
    free(d.wholes);
}

static void write_exponent(struct pd_rules *r, uint32_t from, uint32_t to)
{
    uint32_t sign = pd_nfa_state(r), state = pd_nfa_state(r);
    pd_nfa_any_of(r, from, "Ee", sign);
    pd_nfa_skip(r, sign, state);
    pd_nfa_any_of(r, sign, "+-", state);
    for (int i = 0; i < EXPONENT_DIGITS; i++) {
        uint32_t next = pd_nfa_state(r);
        pd_nfa_bytes(r, state, '0', '9', next);
        pd_nfa_skip(r, next, to);
        state = next;
    }
}

/* Those below zero are those above it with a sign, between the limits' negatives; -0 is not written. */
void pd_write_number(struct pd_values *v, uint32_t from, const struct pd_number_range *range, uint32_t to)
{
    static const struct pd_decimal none;
    const struct pd_decimal zero = {.given = true, .whole = "0"}, above_zero = {.given = true, .exclusive = true,
                                                                                .whole = "0"};
    struct pd_decimal min = range->min, max = range->max;
    struct pd_rules *r = v->rules;
    bool limited = min.given || max.given;
    uint32_t end = pd_nfa_state(r);
    pd_nfa_skip(r, end, to);
    if (!limited && !range->multiple.of) write_exponent(r, end, to);
    bool positive = !max.given || !max.negative, negative = !min.given || min.negative;
    if (positive) write_magnitude(r, from, min.given && !min.negative ? &min : &zero, &max, &range->multiple, end);
    if (!negative) return;
    uint32_t minus = pd_nfa_text(r, from, "-", 1);
    const struct pd_decimal *least = max.given && max.negative ? &max : &above_zero;
    write_magnitude(r, minus, least, min.given ? &min : &none, &range->multiple, end);
}

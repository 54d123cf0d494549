/* Numbers within limits. The digits of a number are compared with those of the limits from the left, among numbers of
 * as many digits: a state knows whether the number is still equal to either. */
#include "base/num.h"
#include "grammar/values.h"

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

/* ---- digits ---- */

struct digits {
    struct pd_rules *r;
    const struct pd_decimal *min, *max;   /* of the number without its sign; given: there is one */
    bool integer;
    uint32_t n;                    /* digits at most */
    uint32_t to;
    uint32_t rest[NUMBER_DIGITS + 1];   /* states in which so many more places may come; 0: not made */
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

/* What comes of a digit beside those of the limits; false: it is past one. */
static bool compare(struct tied *tied, char digit, char min, char max)
{
    if ((tied->min && digit < min) || (tied->max && digit > max)) return false;
    tied->min = tied->min && digit == min;
    tied->max = tied->max && digit == max;
    return true;
}

/* At least one place, and at most n. */
static uint32_t free_places(struct digits *d, uint32_t n)
{
    if (d->rest[n]) return d->rest[n];
    uint32_t state = d->rest[n] = pd_nfa_state(d->r), to = d->to;
    if (n > 1) {
        to = pd_nfa_state(d->r);
        pd_nfa_skip(d->r, to, d->to);
        pd_nfa_skip(d->r, to, free_places(d, n - 1));
    }
    pd_nfa_bytes(d->r, state, '0', '9', to);
    return state;
}

/* From a state after `at` places and the point: n more at most. */
static void write_places(struct digits *d, uint32_t from, struct tied tied, size_t at, uint32_t n)
{
    uint32_t states[2][2] = {{0}};
    if (!tied.min && !tied.max) {
        pd_nfa_skip(d->r, from, free_places(d, n));
        return;
    }
    for (char digit = '0'; digit <= '9'; digit++) {
        struct tied next = tied;
        const char *min = places_from(d->min, at), *max = places_from(d->max, at);
        if (!compare(&next, digit, *min ? *min : '0', *max ? *max : '0')) continue;
        uint32_t *state = &states[next.min][next.max];
        if (!*state) {
            *state = pd_nfa_state(d->r);
            if (may_end(d, next, at + 1)) pd_nfa_skip(d->r, *state, d->to);
            if (n > 1) write_places(d, *state, next, at + 1, n - 1);
        }
        pd_nfa_bytes(d->r, from, (uint8_t)digit, (uint8_t)digit, *state);
    }
}

static void end_whole(struct digits *d, uint32_t from, struct tied tied, uint32_t n_left)
{
    if (may_end(d, tied, 0)) pd_nfa_skip(d->r, from, d->to);
    if (d->integer || n_left == 0) return;
    write_places(d, pd_nfa_text(d->r, from, ".", 1), tied, 0, n_left);
}

/* Numbers with n digits before the point. */
static void write_whole(struct digits *d, uint32_t from, uint32_t n)
{
    uint32_t now[2][2] = {{0}}, n_min = d->min->given ? (uint32_t)strlen(d->min->whole) : 0,
             n_max = d->max->given ? (uint32_t)strlen(d->max->whole) : UINT32_MAX;
    if (n < n_min || n > n_max) return;
    now[n == n_min][n == n_max] = from;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t next[2][2] = {{0}};
        for (int k = 0; k < 4; k++)
            for (char digit = i == 0 && n > 1 ? '1' : '0'; now[k >> 1][k & 1] && digit <= '9'; digit++) {
                struct tied tied = {k >> 1, k & 1};
                if (!compare(&tied, digit, d->min->whole[i], d->max->whole[i])) continue;
                uint32_t *state = &next[tied.min][tied.max];
                if (!*state) *state = pd_nfa_state(d->r);
                pd_nfa_bytes(d->r, now[k >> 1][k & 1], (uint8_t)digit, (uint8_t)digit, *state);
            }
        memcpy(now, next, sizeof now);
    }
    for (int k = 0; k < 4; k++)
        if (now[k >> 1][k & 1])
            end_whole(d, now[k >> 1][k & 1], (struct tied){k >> 1, k & 1}, d->n - n);
}

/* Numbers without a sign. */
static void write_magnitude(struct pd_rules *r, uint32_t from, const struct pd_decimal *min,
                            const struct pd_decimal *max, bool integer, uint32_t to)
{
    struct digits d = {.r = r, .min = min, .max = max, .integer = integer,
                       .n = integer ? INTEGER_DIGITS : NUMBER_DIGITS, .to = to};
    uint32_t begin = pd_nfa_state(r);
    pd_nfa_skip(r, from, begin);
    for (uint32_t n = 1; n <= d.n; n++) write_whole(&d, begin, n);
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
    if (!limited && !range->integer) write_exponent(r, end, to);
    bool positive = !max.given || !max.negative, negative = !min.given || min.negative;
    if (positive) write_magnitude(r, from, min.given && !min.negative ? &min : &zero, &max, range->integer, end);
    if (!negative) return;
    uint32_t minus = pd_nfa_text(r, from, "-", 1);
    const struct pd_decimal *least = max.given && max.negative ? &max : &above_zero;
    write_magnitude(r, minus, least, min.given ? &min : &none, range->integer, end);
}

#include "text/template/number.h"

#include "text/template/chars.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The significant digits of a finite number, without zeros at the ends, and where its point is among them. */
static size_t digits_of(char digits[24], int *point, double f)
{
    char memory[1024];
    yyjson_alc pool;
    yyjson_val value = {0};
    size_t size = 0, n = 0;
    int exponent = 0;
    bool after = false;
    *point = 0;
    yyjson_set_real(&value, fabs(f));
    yyjson_alc_pool_init(&pool, memory, sizeof memory);
    const char *text = yyjson_val_write_opts(&value, 0, &pool, &size, NULL);
    for (size_t i = 0; text && i < size; i++) {
        if (text[i] == '.') {
            after = true;
        } else if ((text[i] | 0x20) == 'e') {
            bool minus = text[i + 1] == '-';
            for (i += minus || text[i + 1] == '+' ? 2 : 1; i < size; i++) exponent = 10 * exponent + (text[i] - '0');
            if (minus) exponent = -exponent;
        } else {
            if (n || text[i] != '0') digits[n++] = text[i];
            if (!after && n) ++*point;
            else if (after && !n) --*point;
        }
    }
    *point += exponent;
    while (n && digits[n - 1] == '0') n--;
    return n;
}

static void write_zeros(char *out, size_t *at, int n)
{
    while (n-- > 0) out[(*at)++] = '0';
}

size_t pd_float_write(char out[PD_NUMBER_SIZE], double f)
{
    char digits[24];
    size_t at = 0;
    int point;
    if (isnan(f) || isinf(f)) return (size_t)snprintf(out, PD_NUMBER_SIZE, isnan(f) ? "nan" : f < 0 ? "-inf" : "inf");
    size_t n = digits_of(digits, &point, f);
    if (signbit(f)) out[at++] = '-';
    if (n == 0) return at + (size_t)snprintf(out + at, PD_NUMBER_SIZE - at, "0.0");
    if (point > 16 || point <= -4) {
        out[at++] = digits[0];
        if (n > 1) out[at++] = '.';
        memcpy(out + at, digits + 1, n - 1);
        at += n - 1;
        return at + (size_t)snprintf(out + at, PD_NUMBER_SIZE - at, "e%+03d", point - 1);
    }
    if (point <= 0) {
        memcpy(out + at, "0.", 2);
        at += 2;
        write_zeros(out, &at, -point);
        memcpy(out + at, digits, n);
        return at + n;
    }
    size_t whole = n < (size_t)point ? n : (size_t)point;
    memcpy(out + at, digits, whole);
    at += whole;
    write_zeros(out, &at, point - (int)whole);
    out[at++] = '.';
    if (n == whole) out[at++] = '0';
    memcpy(out + at, digits + whole, n - whole);
    return at + n - whole;
}

static unsigned digit_of(char c)
{
    if (c >= '0' && c <= '9') return (unsigned)(c - '0');
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'z' ? (unsigned)(c - 'a' + 10) : 99;
}

/* "0x" and its like, where the base is theirs. */
static bool has_prefix(struct pd_chars text, size_t at, int64_t base)
{
    static const char letters[] = {[2] = 'b', [8] = 'o', [16] = 'x'};
    return base <= 16 && letters[base] && at + 2 < text.size && text.data[at] == '0' &&
           (text.data[at + 1] | 0x20) == letters[base];
}

peridot_status pd_int_read(int64_t *out, bool *ok, struct pd_render *r, struct pd_chars text, int64_t base)
{
    uint64_t value = 0;
    bool wraps = false, digit_before = false;
    text = pd_chars_strip(text, NULL, PD_STRIP_LEFT | PD_STRIP_RIGHT);
    size_t at = text.size && (text.data[0] == '-' || text.data[0] == '+');
    const bool minus = at && text.data[0] == '-';
    if (base < 2 || base > 36)
        return pd_render_fail(r, "integers to a base of %lld are not supported", (long long)base);
    if (has_prefix(text, at, base)) at += 2;
    *ok = at < text.size;
    for (; at < text.size && *ok; at++) {
        const unsigned digit = digit_of(text.data[at]);
        if (text.data[at] == '_' && digit_before && at + 1 < text.size) {
            digit_before = false;
            continue;
        }
        *ok = digit < (unsigned)base;
        wraps |= value > (UINT64_MAX - digit) / (uint64_t)base;
        value = value * (uint64_t)base + digit;
        digit_before = true;
    }
    if (!*ok) return PERIDOT_OK;
    if (wraps || value > (uint64_t)INT64_MAX + minus) return pd_render_fail(r, "an integer that does not fit 64 bits");
    *out = minus ? (int64_t)(0 - value) : (int64_t)value;
    return PERIDOT_OK;
}

static bool read_name(double *out, const char *text, size_t size)
{
    static const struct { const char *name; double value; } names[] = {
        {"inf", INFINITY}, {"infinity", INFINITY}, {"nan", NAN}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t k = 0;
        while (k < size && (text[k] | 0x20) == names[i].name[k]) k++;
        *out = names[i].value;
        if (k == size && !names[i].name[k]) return true;
    }
    return false;
}

/* Python's spelling as JSON's: no underscores, a digit before the point and behind it. 0: it is no number. */
static size_t spell_as_json(char *out, size_t out_size, const char *text, size_t size)
{
    size_t n = 0;
    bool digits = false;
    for (size_t i = 0; i < size; i++) {
        const bool is_digit = digit_of(text[i]) < 10, next = i + 1 < size && digit_of(text[i + 1]) < 10;
        if (n + 3 > out_size) return 0;
        if (text[i] == '_' && i > 0 && digit_of(text[i - 1]) < 10 && next) continue;
        if (text[i] == '.' && !digits && !next) return 0;
        if (is_digit && text[i] == '0' && n == 1 && out[0] == '0') continue;   /* no zeros before others */
        if (is_digit && n == 1 && out[0] == '0') n = 0;
        if (text[i] == '.' && n == 0) out[n++] = '0';
        out[n++] = text[i];
        if (text[i] == '.' && !next) out[n++] = '0';
        digits |= is_digit;
    }
    return n;
}

void pd_float_read(double *out, bool *ok, struct pd_chars text)
{
    char digits[512];
    yyjson_val number;
    text = pd_chars_strip(text, NULL, PD_STRIP_LEFT | PD_STRIP_RIGHT);
    const bool sign = text.size && (text.data[0] == '-' || text.data[0] == '+');
    const double factor = sign && text.data[0] == '-' ? -1 : 1;
    size_t size = text.size - sign;
    *ok = size && read_name(out, text.data + sign, size);
    if (!*ok && size) {
        size_t n = spell_as_json(digits, sizeof digits - 1, text.data + sign, size);
        digits[n] = 0;
        *ok = n && digits[0] >= '0' && digits[0] <= '9' &&
              yyjson_read_number(digits, &number, YYJSON_READ_ALLOW_INF_AND_NAN, NULL, NULL) == digits + n;
        if (*ok) *out = yyjson_get_num(&number);
    }
    *out *= factor;
}

peridot_status pd_int_from_float(int64_t *out, bool *ok, struct pd_render *r, double f)
{
    *ok = !isnan(f);
    if (!*ok) return PERIDOT_OK;
    if (!(f >= -9223372036854775808.0 && f < 9223372036854775808.0))
        return pd_render_fail(r, "an integer that does not fit 64 bits");
    *out = (int64_t)f;
    return PERIDOT_OK;
}

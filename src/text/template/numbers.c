/* Numbers and dates as Python writes and reads them, whatever the locale. */
#include "text/template/template_.h"

#include "base/base.h"

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

static bool numbers_read_name(double *out, const char *text, size_t size)
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
    *ok = size && numbers_read_name(out, text.data + sign, size);
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

/* ---- time ---- */

static const char *const days[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
static const char *const months[] = {"January", "February", "March", "April", "May", "June", "July", "August",
                                     "September", "October", "November", "December"};

static const char *name_of(const char *const *names, int i, int n) { return i >= 0 && i < n ? names[i] : ""; }

enum { DIRECTIVE_SIZE = 40 };

/* flag: '-' no padding, '_' by spaces, '0' by zeros. */
static bool write_number(char out[DIRECTIVE_SIZE], char c, const struct tm *t, char flag)
{
    const int hour = t->tm_hour % 12 ? t->tm_hour % 12 : 12, weekday = (t->tm_wday + 6) % 7 + 1;
    const int year = t->tm_year + 1900;
    const struct { char c; int width; int value; char pad; } numbers[] = {
        {'Y', 1, year, '0'}, {'y', 2, year % 100, '0'}, {'C', 2, year / 100, '0'}, {'m', 2, t->tm_mon + 1, '0'},
        {'d', 2, t->tm_mday, '0'}, {'e', 2, t->tm_mday, ' '}, {'H', 2, t->tm_hour, '0'}, {'I', 2, hour, '0'},
        {'k', 2, t->tm_hour, ' '}, {'l', 2, hour, ' '}, {'M', 2, t->tm_min, '0'}, {'S', 2, t->tm_sec, '0'},
        {'j', 3, t->tm_yday + 1, '0'}, {'u', 1, weekday, '0'}, {'w', 1, t->tm_wday, '0'},
        {'U', 2, (t->tm_yday + 7 - t->tm_wday) / 7, '0'}, {'W', 2, (t->tm_yday + 8 - weekday) / 7, '0'}};
    for (size_t i = 0; i < PD_COUNT(numbers); i++) {
        if (numbers[i].c != c) continue;
        const char pad = flag == '_' ? ' ' : flag == '0' ? '0' : numbers[i].pad;
        const int width = flag == '-' ? 1 : numbers[i].width;
        snprintf(out, DIRECTIVE_SIZE, pad == '0' ? "%0*d" : "%*d", width, numbers[i].value);
        return true;
    }
    return false;
}

static bool write_directive(char out[DIRECTIVE_SIZE], char c, const struct tm *t, char flag);

/* Directives that stand for several. */
static bool write_combined(char out[DIRECTIVE_SIZE], char c, const struct tm *t)
{
    static const struct { char c; const char *as; } combined[] = {
        {'D', "%m/%d/%y"}, {'F', "%Y-%m-%d"}, {'R', "%H:%M"}, {'T', "%H:%M:%S"}, {'x', "%m/%d/%y"}, {'X', "%H:%M:%S"},
        {'r', "%I:%M:%S %p"}, {'c', "%a %b %e %H:%M:%S %Y"}, {'h', "%b"}};
    char part[DIRECTIVE_SIZE];
    size_t at = 0;
    for (size_t i = 0; i < PD_COUNT(combined); i++) {
        if (combined[i].c != c) continue;
        for (const char *s = combined[i].as; *s; s++) {
            const bool directive = *s == '%' && write_directive(part, *++s, t, 0);
            at += (size_t)snprintf(out + at, DIRECTIVE_SIZE - at, directive ? "%s" : "%.1s", directive ? part : s);
        }
        return true;
    }
    return false;
}

/* What one directive stands for, in the C locale. */
static bool write_directive(char out[DIRECTIVE_SIZE], char c, const struct tm *t, char flag)
{
    *out = 0;
    if (write_number(out, c, t, flag)) return true;
    if (flag) return false;
    switch (c) {
    case 'A': snprintf(out, DIRECTIVE_SIZE, "%s", name_of(days, t->tm_wday, 7)); break;
    case 'a': snprintf(out, DIRECTIVE_SIZE, "%.3s", name_of(days, t->tm_wday, 7)); break;
    case 'B': snprintf(out, DIRECTIVE_SIZE, "%s", name_of(months, t->tm_mon, 12)); break;
    case 'b': snprintf(out, DIRECTIVE_SIZE, "%.3s", name_of(months, t->tm_mon, 12)); break;
    case 'p': snprintf(out, DIRECTIVE_SIZE, "%s", t->tm_hour < 12 ? "AM" : "PM"); break;
    case 'P': snprintf(out, DIRECTIVE_SIZE, "%s", t->tm_hour < 12 ? "am" : "pm"); break;
    case 'Z': case 'z': break;   /* the time has no zone */
    case 'f': snprintf(out, DIRECTIVE_SIZE, "000000"); break;
    case 'n': snprintf(out, DIRECTIVE_SIZE, "\n"); break;
    case 't': snprintf(out, DIRECTIVE_SIZE, "\t"); break;
    case '%': snprintf(out, DIRECTIVE_SIZE, "%%"); break;
    default: return write_combined(out, c, t);
    }
    return true;
}

PD_BUILTIN(pd_function_strftime_now)
{
    struct pd_builder b = {.r = r};
    char text[DIRECTIVE_SIZE], shown[PD_SHOWN_SIZE];
    if (a[1].type != PD_TEXT) return pd_render_fail(r, "strftime_now is given a %s", pd_value_type_name(&a[1]));
    const struct pd_chars format = a[1].text;
    for (size_t i = 0; i < format.size; i++) {
        const size_t begin = i;
        if (format.data[i] != '%') {
            PD_TRY(pd_builder_add(&b, pd_chars_part(format, i, 1)));
            continue;
        }
        char c = ++i < format.size ? format.data[i] : 0, flag = c == '-' || c == '_' || c == '0' ? c : 0;
        if (flag) c = ++i < format.size ? format.data[i] : 0;
        if (!write_directive(text, c, &r->in->now, flag))
            return pd_render_fail(r, "%s in strftime_now is not supported",
                                  pd_utf8_shown(shown, format.data + begin, pd_min(i + 1, format.size) - begin));
        PD_TRY(pd_builder_string(&b, text, pd_chars_is_own(pd_chars_part(format, begin, i + 1 - begin))));
    }
    return pd_give(out, pd_builder_value(&b));
}

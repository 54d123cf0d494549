/* Characters of patterns: classes and escapes. */
#include "base/num.h"
#include "grammar/pattern.h"

#include <stdlib.h>

static void add_range(struct pd_pattern *p, struct pd_ranges *r, uint32_t low, uint32_t high)
{
    if (low > high) refuse(p, "a range of characters ends before it begins");
    else if (r->n == PD_MAX_RANGES) refuse(p, "a class has too many characters");
    else r->r[r->n++] = (struct pd_range){low, high};
}

static int compare_ranges(const void *a, const void *b)
{
    const struct pd_range *x = a, *y = b;
    return x->low < y->low ? -1 : x->low > y->low;
}

static void complement(struct pd_pattern *p, struct pd_ranges *r)
{
    const struct pd_ranges old = *r;
    struct pd_ranges sorted = old;
    uint32_t from = 0, last = r->ascii ? 0x7f : PD_LAST_CHAR;
    if (!pd_chars_work(p->out, 64 + 8 * sorted.n)) return;
    qsort(sorted.r, sorted.n, sizeof *sorted.r, compare_ranges);
    r->n = 0;
    for (uint32_t i = 0; i < sorted.n && from <= last; i++) {
        if (sorted.r[i].low > from)
            add_range(p, r, from, sorted.r[i].low - 1 < last ? sorted.r[i].low - 1 : last);
        if (sorted.r[i].high >= from) from = sorted.r[i].high + 1;
    }
    if (from <= last) add_range(p, r, from, last);
}

/* \d, \w, \s and their complements; false: the letter is none of them. */
static bool add_shorthand(struct pd_pattern *p, struct pd_ranges *r, char letter)
{
    static const struct {
        char letter;
        struct pd_range r[4];
        uint32_t n;
    } shorthands[] = {{'d', {{'0', '9'}}, 1},
                      {'w', {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, 4},
                      {'s', {{'\t', '\r'}, {' ', ' '}}, 2}};
    for (size_t i = 0; i < sizeof shorthands / sizeof *shorthands; i++) {
        struct pd_ranges of = {.ascii = true};
        if ((letter | 0x20) != shorthands[i].letter) continue;
        for (uint32_t k = 0; k < shorthands[i].n; k++)
            add_range(p, &of, shorthands[i].r[k].low, shorthands[i].r[k].high);
        if (letter < 'a') complement(p, &of);
        for (uint32_t k = 0; k < of.n; k++) add_range(p, r, of.r[k].low, of.r[k].high);
        r->ascii = true;
        return true;
    }
    return false;
}

static uint32_t take_hex(struct pd_pattern *p, int n)
{
    uint32_t code = 0;
    for (int i = 0; i < n; i++) {
        char c = more(p) ? p->text[p->at] : 0, lower = (char)(c | 0x20);
        if (c >= '0' && c <= '9') code = code << 4 | (uint32_t)(c - '0');
        else if (lower >= 'a' && lower <= 'f') code = code << 4 | (uint32_t)(lower - 'a' + 10);
        else refuse(p, "an escape lacks hexadecimal digits");
        p->at++;
    }
    return code;
}

static uint32_t take_unicode(struct pd_pattern *p)
{
    uint32_t code = 0;
    if (take(p, '{')) {
        do code = code << 4 | take_hex(p, 1);
        while (more(p) && code <= PD_LAST_CHAR && !next_is(p, '}'));
        if (!take(p, '}') || code > PD_LAST_CHAR) refuse(p, "\\u{...} is no character");
        return code;
    }
    code = take_hex(p, 4);
    if (code < 0xd800 || code >= 0xe000) return code;
    bool pair = code < 0xdc00 && take(p, '\\') && take(p, 'u');
    uint32_t low = pair ? take_hex(p, 4) : 0;
    if (low < 0xdc00 || low >= 0xe000) refuse(p, "half a surrogate pair is no character");
    return 0x10000 + ((code - 0xd800) << 10) + (low & 0x3ff);
}

static void refuse_escape(struct pd_pattern *p, char letter)
{
    static const struct {
        const char *letters, *what;
    } escapes[] = {
        {"123456789k", "back-references are not supported"},
        {"pP", "Unicode properties (\\p) are not supported"},
        {"bB", "word boundaries (\\b) are not supported"},
        {"0", "octal escapes are not supported"},
        {"AZzG", "\\A, \\Z, \\z and \\G are not part of ECMA-262, which has ^ and $"},
    };
    const char *what = "this escape is not part of ECMA-262";
    for (size_t i = 0; i < PD_COUNT(escapes); i++)
        if (strchr(escapes[i].letters, letter)) what = escapes[i].what;
    refuse(p, what);
}

/* The character that an escape stands for, the backslash being past. */
static uint32_t take_escape(struct pd_pattern *p)
{
    static const char letters[] = "tnrfv", codes[] = "\t\n\r\f\v";
    uint32_t c = take_char(p);
    const char *found = c && c < 0x80 ? strchr(letters, (int)c) : NULL;
    if (found) return (uint32_t)codes[found - letters];
    if (c == 'x') return take_hex(p, 2);
    if (c == 'u') return take_unicode(p);
    if (c == 'c' && more(p) && is_letter(p->text[p->at])) return take_char(p) & 0x1f;
    if (c == '0' && !(more(p) && p->text[p->at] >= '0' && p->text[p->at] <= '9')) return 0;
    if (c == '0' || is_letter((char)c) || (c >= '1' && c <= '9')) refuse_escape(p, (char)c);
    return c;
}

/* One character or end of a range in a class; false: it was a shorthand, whose ranges were added. */
static bool take_class_char(struct pd_pattern *p, struct pd_ranges *r, uint32_t *c)
{
    *c = take_char(p);
    if (*c != '\\' || !more(p)) return true;
    if (add_shorthand(p, r, p->text[p->at])) {
        p->at++;
        return false;
    }
    *c = take(p, 'b') ? '\b' : take_escape(p);
    return true;
}

static void take_class(struct pd_pattern *p, struct pd_ranges *r)
{
    bool negated = take(p, '^');
    if (next_is(p, ']')) refuse(p, "an empty class is not supported");
    while (ok(p) && !take(p, ']')) {
        uint32_t low, high;
        if (!take_class_char(p, r, &low)) continue;
        high = low;
        if (next_is(p, '-') && p->at + 1 < p->size && p->text[p->at + 1] != ']') {
            p->at++;
            if (!take_class_char(p, r, &high)) refuse(p, "a range of characters ends in a class");
        }
        add_range(p, r, low, high);
    }
    if (negated) complement(p, r);
}

void pd_pattern_take_ranges(struct pd_pattern *p, struct pd_ranges *r, uint32_t c)
{
    static const struct pd_ranges line_ends = {.r = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}, .n = 3};
    if (c == '[') {
        take_class(p, r);
    } else if (c == '.') {
        *r = line_ends;
        complement(p, r);
    } else if (c == '\\' && more(p) && add_shorthand(p, r, p->text[p->at])) {
        p->at++;
    } else {
        if (c == '\\') c = take_escape(p);
        add_range(p, r, c, c);
    }
}

/* Texts byte by byte and character by character, each byte with its mark of whose it is: building, cutting, searching;
 * and what characters are: their classes and their case. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/template/template_.h"

#include "base/num.h"
#include "base/utf8.h"

#include <pcre2.h>
#include <string.h>

/* ---- building ---- */

peridot_status pd_builder_reserve(struct pd_builder *b, size_t more)
{
    char *data;
    unsigned char *own;
    if (more <= b->capacity - b->size) return PERIDOT_OK;
    if (more > PD_RENDER_MAX_SIZE) more = PD_RENDER_MAX_SIZE;   /* which fails below, and does not overflow */
    size_t capacity = pd_max(b->size + more, pd_max(2 * b->capacity, 64));
    PD_TRY(pd_render_alloc(&data, b->r, capacity, 1));
    PD_TRY(pd_render_alloc(&own, b->r, capacity, 1));
    if (b->size) memcpy(data, b->data, b->size);
    if (b->size) memcpy(own, b->own, b->size);
    b->data = data;
    b->own = own;
    b->capacity = capacity;
    return PERIDOT_OK;
}

static void copy_marks(unsigned char *own, struct pd_chars text)
{
    if (text.own && text.own != pd_all_own) memcpy(own, text.own, text.size);
    else memset(own, text.own != NULL, text.size);
}

peridot_status pd_builder_add(struct pd_builder *b, struct pd_chars text)
{
    if (text.size == 0) return PERIDOT_OK;
    PD_TRY(pd_render_spend(b->r, 1 + text.size / 16));
    PD_TRY(pd_builder_reserve(b, text.size));
    memcpy(b->data + b->size, text.data, text.size);
    copy_marks(b->own + b->size, text);
    b->size += text.size;
    return PERIDOT_OK;
}

peridot_status pd_builder_bytes(struct pd_builder *b, const char *data, size_t size, bool own)
{
    return pd_builder_add(b, (struct pd_chars){data, size, own ? pd_all_own : NULL});
}

peridot_status pd_builder_string(struct pd_builder *b, const char *text, bool own)
{
    return pd_builder_bytes(b, text, strlen(text), own);
}

struct pd_value pd_builder_value(const struct pd_builder *b)
{
    return pd_value_text((struct pd_chars){b->size ? b->data : "", b->size, b->size ? b->own : pd_all_own});
}

/* ---- parts ---- */

struct pd_chars pd_chars_part(struct pd_chars text, size_t from, size_t size)
{
    bool mixed = text.own && text.own != pd_all_own;
    return (struct pd_chars){text.data + from, size, mixed ? text.own + from : text.own};
}

bool pd_chars_is_own(struct pd_chars text)
{
    if (!text.own || text.own == pd_all_own) return text.own != NULL;
    return !memchr(text.own, 0, text.size);
}

peridot_status pd_chars_concat(struct pd_value *out, struct pd_render *r, struct pd_chars a, struct pd_chars b)
{
    struct pd_builder *last = r->tail;
    PD_TRY(pd_render_scan(r, b.size));
    if (a.size == 0 || b.size == 0) {
        return pd_give(out, pd_value_text(a.size ? a : b));
    }
    bool grows = last->size && a.data == last->data && a.size == last->size && a.own == last->own;
    if (!grows) {
        *last = (struct pd_builder){.r = r};
        PD_TRY(pd_builder_reserve(last, a.size + b.size));
        PD_TRY(pd_builder_add(last, a));
    }
    PD_TRY(pd_builder_add(last, b));
    return pd_give(out, pd_builder_value(last));
}

/* ---- characters ---- */

size_t pd_chars_next(uint32_t *code, struct pd_chars text, size_t at)
{
    size_t length;
    *code = (unsigned char)text.data[at];
    if (*code < 0x80) return 1;
    if (pd_utf8_next(code, &length, text.data + at, text.size - at) == PD_UTF8_CHARACTER) return length;
    *code = (unsigned char)text.data[at];
    return 1;
}

size_t pd_chars_previous(struct pd_chars text, size_t at)
{
    uint32_t code;
    for (size_t n = 4; n > 1; n--)
        if (n <= at && (unsigned char)text.data[at - n] >= 0xc0 && pd_chars_next(&code, text, at - n) == n)
            return at - n;
    return at - 1;
}

size_t pd_chars_offset(struct pd_chars text, size_t i)
{
    uint32_t code;
    size_t at = 0;
    while (i-- && at < text.size) at += pd_chars_next(&code, text, at);
    return at;
}

size_t pd_chars_count(struct pd_chars text)
{
    uint32_t code;
    size_t n = 0;
    for (size_t at = 0; at < text.size; n++) at += pd_chars_next(&code, text, at);
    return n;
}

bool pd_chars_is_ascii(struct pd_chars text)
{
    for (size_t i = 0; i < text.size; i++)
        if ((unsigned char)text.data[i] >= 0x80) return false;
    return true;
}

/* Each place where the first byte is right costs a step, and what is compared there. */
static peridot_status look(bool *found, struct pd_render *r, const char *at, struct pd_chars what)
{
    PD_TRY(pd_render_spend(r, 1 + what.size / 16));
    *found = memcmp(at, what.data, what.size) == 0;
    return PERIDOT_OK;
}

peridot_status pd_chars_find(size_t *out, struct pd_render *r, struct pd_chars text, struct pd_chars what, size_t from)
{
    bool found = what.size == 0 && from <= text.size;
    *out = found ? from : SIZE_MAX;
    if (found) return PERIDOT_OK;
    const size_t begin = from;
    while (!found && from <= text.size && what.size <= text.size - from) {
        const char *first = memchr(text.data + from, what.data[0], text.size - from - what.size + 1);
        if (!first) break;
        PD_TRY(look(&found, r, first, what));
        from = (size_t)(first - text.data) + !found;
    }
    if (found) *out = from;
    return pd_render_scan(r, (found ? from : text.size) - pd_min(begin, text.size));
}

peridot_status pd_chars_find_last(size_t *out, struct pd_render *r, struct pd_chars text, struct pd_chars what,
                                  size_t to)
{
    bool found = what.size == 0;
    size_t end = to;
    while (!found && end >= what.size && end > 0) {
        if (text.data[end - what.size] == what.data[0]) PD_TRY(look(&found, r, text.data + end - what.size, what));
        if (!found) end--;
    }
    *out = found ? end - what.size : SIZE_MAX;
    return pd_render_scan(r, to - end);
}

/* ---- white space ---- */

bool pd_char_is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool pd_char_is_line_end(uint32_t c)
{
    return (c >= 10 && c <= 13) || (c >= 28 && c <= 30) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

static bool is_stripped(struct pd_chars text, size_t at, size_t size, const struct pd_chars *set)
{
    uint32_t code, other;
    if (pd_chars_next(&code, text, at) != size) return false;
    if (!set) return pd_char_is_space(code);
    for (size_t i = 0, n; i < set->size; i += n) {
        n = pd_chars_next(&other, *set, i);
        if (n == size && memcmp(set->data + i, text.data + at, n) == 0) return true;
    }
    return false;
}

struct pd_chars pd_chars_strip(struct pd_chars text, const struct pd_chars *set, unsigned sides)
{
    uint32_t code;
    size_t begin = 0, end = text.size;
    while (sides & PD_STRIP_LEFT && begin < end) {
        size_t n = pd_chars_next(&code, text, begin);
        if (!is_stripped(text, begin, n, set)) break;
        begin += n;
    }
    while (sides & PD_STRIP_RIGHT && begin < end) {
        size_t at = pd_chars_previous(text, end);
        if (!is_stripped(text, at, end - at, set)) break;
        end = at;
    }
    return pd_chars_part(text, begin, end - begin);
}

/* ---- classes ---- */

/* In ASCII by a test, beyond it by a pattern of Unicode's categories. */
static bool ascii_is_alpha(unsigned char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }
static bool ascii_is_digit(unsigned char c) { return c >= '0' && c <= '9'; }

static bool ascii_is(enum pd_unicode_class which, unsigned char c)
{
    const bool alnum = ascii_is_alpha(c) || ascii_is_digit(c), word = alnum || c == '_';
    switch (which) {
    case PD_UNICODE_NOT_PRINTABLE: return c < 0x20 || c == 0x7f;
    case PD_UNICODE_NOT_ALPHA: return !ascii_is_alpha(c);
    case PD_UNICODE_NOT_DECIMAL: return !ascii_is_digit(c);
    case PD_UNICODE_NOT_ALNUM: return !alnum;
    case PD_UNICODE_WORD: return word;
    default: return !word;
    }
}

static const char *const patterns[] = {
    [PD_UNICODE_NOT_PRINTABLE] = "(?! )[\\p{C}\\p{Z}]", [PD_UNICODE_NOT_ALPHA] = "\\P{L}",
    [PD_UNICODE_NOT_DECIMAL] = "\\P{Nd}", [PD_UNICODE_NOT_ALNUM] = "[^\\p{L}\\p{N}]",
    [PD_UNICODE_WORD] = "[\\p{L}\\p{N}_]", [PD_UNICODE_NOT_WORD] = "[^\\p{L}\\p{N}_]"};

static peridot_status match(size_t *out, struct pd_chars text, size_t from, enum pd_unicode_class which)
{
    int error;
    PCRE2_SIZE at;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)patterns[which], PCRE2_ZERO_TERMINATED,
                                     PCRE2_UTF | PCRE2_MATCH_INVALID_UTF, &error, &at, NULL);
    pcre2_match_data *data = code ? pcre2_match_data_create(1, NULL) : NULL;
    if (data && pcre2_match(code, (PCRE2_SPTR)text.data, text.size, from, 0, data, NULL) >= 0)
        *out = pcre2_get_ovector_pointer(data)[0];
    pcre2_match_data_free(data);
    pcre2_code_free(code);
    return data ? PERIDOT_OK : pd_fail_alloc(text.size, "a pattern of a template");
}

peridot_status pd_unicode_find(size_t *out, struct pd_render *r, struct pd_chars text, size_t from,
                               enum pd_unicode_class which)
{
    size_t at = from;
    *out = SIZE_MAX;
    const unsigned char *const data = (const unsigned char *)text.data;
    while (at < text.size && data[at] < 0x80 && !ascii_is(which, data[at])) at++;
    PD_TRY(pd_render_spend(r, (at - from) / 16));
    if (at >= text.size) return PERIDOT_OK;
    if (data[at] < 0x80) {
        *out = at;
        return PERIDOT_OK;
    }
    PD_TRY(pd_render_spend(r, 150 + (text.size - at) / 8));
    return match(out, text, at, which);
}

/* ---- case ---- */

/* Lower-case letters first..last, each `step` further, and how far the upper-case ones are from them. */
static const struct { uint16_t first, last; uint8_t step; int16_t to_upper; } pairs[] = {
    {'a', 'z', 1, -32}, {0xe0, 0xf6, 1, -32}, {0xf8, 0xfe, 1, -32}, {0xff, 0xff, 1, 121}, {0x101, 0x12f, 2, -1},
    {0x133, 0x137, 2, -1}, {0x13a, 0x148, 2, -1}, {0x14b, 0x177, 2, -1}, {0x17a, 0x17e, 2, -1},
    {0x180, 0x180, 1, 195}, {0x183, 0x185, 2, -1}, {0x188, 0x188, 1, -1}, {0x18c, 0x18c, 1, -1},
    {0x192, 0x192, 1, -1}, {0x195, 0x195, 1, 97}, {0x199, 0x199, 1, -1}, {0x19a, 0x19a, 1, 163},
    {0x19e, 0x19e, 1, 130}, {0x1a1, 0x1a5, 2, -1}, {0x1a8, 0x1a8, 1, -1}, {0x1ad, 0x1ad, 1, -1},
    {0x1b0, 0x1b0, 1, -1}, {0x1b4, 0x1b6, 2, -1}, {0x1b9, 0x1b9, 1, -1}, {0x1bd, 0x1bd, 1, -1}, {0x1bf, 0x1bf, 1, 56},
    {0x1ce, 0x1dc, 2, -1}, {0x1dd, 0x1dd, 1, -79}, {0x1df, 0x1ef, 2, -1}, {0x1f5, 0x1f5, 1, -1},
    {0x1f9, 0x21f, 2, -1}, {0x223, 0x233, 2, -1}, {0x23c, 0x23c, 1, -1}, {0x242, 0x242, 1, -1}, {0x247, 0x24f, 2, -1},
    {0x371, 0x373, 2, -1}, {0x377, 0x377, 1, -1}, {0x37b, 0x37d, 1, 130}, {0x3ac, 0x3ac, 1, -38},
    {0x3ad, 0x3af, 1, -37}, {0x3b1, 0x3c1, 1, -32}, {0x3c3, 0x3cb, 1, -32}, {0x3cc, 0x3cc, 1, -64},
    {0x3cd, 0x3ce, 1, -63}, {0x3d7, 0x3d7, 1, -8}, {0x3d9, 0x3ef, 2, -1}, {0x3f2, 0x3f2, 1, 7},
    {0x3f3, 0x3f3, 1, -116}, {0x3f8, 0x3f8, 1, -1}, {0x3fb, 0x3fb, 1, -1}, {0x430, 0x44f, 1, -32},
    {0x450, 0x45f, 1, -80}, {0x461, 0x481, 2, -1}, {0x48b, 0x4bf, 2, -1}, {0x4c2, 0x4ce, 2, -1},
    {0x4cf, 0x4cf, 1, -15}, {0x4d1, 0x52f, 2, -1}, {0x561, 0x586, 1, -48}, {0x1e01, 0x1e95, 2, -1},
    {0x1ea1, 0x1eff, 2, -1}, {0xff41, 0xff5a, 1, -32}};
/* Lower-case letters whose upper-case ones have another lower case. */
static const uint16_t one_way[][2] = {{0xb5, 0x39c}, {0x131, 'I'}, {0x17f, 'S'}, {0x3c2, 0x3a3}, {0x3d0, 0x392},
    {0x3d1, 0x398}, {0x3d5, 0x3a6}, {0x3d6, 0x3a0}, {0x3f0, 0x39a}, {0x3f1, 0x3a1}, {0x3f5, 0x395}};

static bool is_lower_of(size_t i, uint32_t c)
{
    return c >= pairs[i].first && c <= pairs[i].last && (c - pairs[i].first) % pairs[i].step == 0;
}

static uint32_t upper_of(uint32_t c)
{
    for (size_t i = 0; i < PD_COUNT(pairs); i++)
        if (is_lower_of(i, c)) return (uint32_t)((int32_t)c + pairs[i].to_upper);
    for (size_t i = 0; i < PD_COUNT(one_way); i++)
        if (one_way[i][0] == c) return one_way[i][1];
    return c;
}

static uint32_t lower_of(uint32_t c)
{
    if (c == 0x1e9e) return 0xdf;
    for (size_t i = 0; i < PD_COUNT(pairs); i++) {
        const uint32_t lower = (uint32_t)((int32_t)c - pairs[i].to_upper);
        if (is_lower_of(i, lower)) return lower;
    }
    return c;
}

bool pd_char_is_lower(uint32_t c) { return c == 0xdf || c == 0x149 || upper_of(c) != c; }
bool pd_char_is_upper(uint32_t c) { return c == 0x130 || lower_of(c) != c; }

static bool is_cased(uint32_t c) { return pd_char_is_lower(c) || pd_char_is_upper(c); }

/* A sigma is another letter at the end of a word. Between letters and it may be what Unicode calls case-ignorable: here
 * combining accents and what is written within words. */
static bool is_ignorable(uint32_t c)
{
    return (c >= 0x300 && c < 0x370) || c == '\'' || c == 0x2019 || c == '.' || c == 0xb7 || c == 0xad || c == ':' ||
           c == '^' || c == '`' || c == 0xa8 || c == 0xaf || c == 0xb4 || c == 0xb8;
}

static bool ends_word(struct pd_chars text, size_t at, size_t end)
{
    uint32_t code = 0;
    while (at > 0) {
        at = pd_chars_previous(text, at);
        pd_chars_next(&code, text, at);
        if (!is_ignorable(code)) break;
    }
    if (!is_cased(code)) return false;
    for (code = 0; end < text.size;) {
        end += pd_chars_next(&code, text, end);
        if (!is_ignorable(code)) break;
    }
    return !is_cased(code);
}

/* The letter at `at`, of n bytes, in another case. `title`: the first of two keeps its case, "Ss". */
static peridot_status add_letter(struct pd_builder *b, struct pd_chars text, size_t at, enum pd_case which, bool title)
{
    static const char *const final_sigma = "\xcf\x82";
    uint32_t code;
    char bytes[4];
    size_t n = pd_chars_next(&code, text, at);
    const struct pd_chars letter = pd_chars_part(text, at, n);
    const bool own = pd_chars_is_own(letter);
    if (n == 1 && code >= 0x80) return pd_builder_add(b, letter);
    if (which == PD_UPPER && code == 0xdf) return pd_builder_string(b, title ? "Ss" : "SS", own);
    if (which == PD_UPPER && code == 0x149) return pd_builder_string(b, "\xca\xbcN", own);
    if (which == PD_LOWER && code == 0x130) return pd_builder_string(b, "i\xcc\x87", own);
    if (which == PD_LOWER && code == 0x3a3 && ends_word(text, at, at + n))
        return pd_builder_string(b, final_sigma, own);
    uint32_t other = which == PD_UPPER ? upper_of(code) : lower_of(code);
    if (other == code) return pd_builder_add(b, letter);
    n = other < 0x80 ? 1 : other < 0x800 ? 2 : 3;
    for (size_t i = n; i-- > 1; other >>= 6) bytes[i] = (char)(0x80 | (other & 0x3f));
    bytes[0] = (char)(n == 1 ? other : n == 2 ? 0xc0 | other : 0xe0 | other);
    return pd_builder_bytes(b, bytes, n, own);
}

peridot_status pd_builder_add_case(struct pd_builder *b, struct pd_chars text, enum pd_case which)
{
    uint32_t code;
    PD_TRY(pd_render_spend(b->r, text.size));
    for (size_t at = 0; at < text.size; at += pd_chars_next(&code, text, at))
        PD_TRY(add_letter(b, text, at, which, false));
    return PERIDOT_OK;
}

peridot_status pd_builder_add_capitalized(struct pd_builder *b, struct pd_chars text, bool title)
{
    uint32_t code;
    if (text.size == 0) return PERIDOT_OK;
    PD_TRY(pd_render_spend(b->r, text.size));
    PD_TRY(add_letter(b, text, 0, PD_UPPER, title));
    for (size_t at = pd_chars_next(&code, text, 0); at < text.size; at += pd_chars_next(&code, text, at))
        PD_TRY(add_letter(b, text, at, PD_LOWER, false));
    return PERIDOT_OK;
}

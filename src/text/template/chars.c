/* Texts byte by byte and character by character, each byte with its mark of whose it is: building, cutting, searching;
 * and what characters are: their classes and their case. */
#include "text/template/template_.h"

#include "base/base.h"

#include <string.h>
#include <utf8proc.h>

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
static peridot_status chars_look(bool *found, struct pd_render *r, const char *at, struct pd_chars what)
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
        PD_TRY(chars_look(&found, r, first, what));
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
        if (text.data[end - what.size] == what.data[0])
            PD_TRY(chars_look(&found, r, text.data + end - what.size, what));
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

/* ---- what characters are ---- */

static bool is_in(enum pd_unicode_class which, uint32_t code)
{
    const utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)code);
    const bool letter = c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
    const bool number = c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO;
    switch (which) {
    case PD_UNICODE_NOT_PRINTABLE: return c == UTF8PROC_CATEGORY_CN || (c >= UTF8PROC_CATEGORY_ZS && code != ' ');
    case PD_UNICODE_NOT_ALPHA: return !letter;
    case PD_UNICODE_NOT_DECIMAL: return c != UTF8PROC_CATEGORY_ND;
    case PD_UNICODE_NOT_ALNUM: return !letter && !number;
    case PD_UNICODE_WORD: return letter || number || code == '_';
    default: return !letter && !number && code != '_';
    }
}

/* Bytes that are part of no character are in no class. */
peridot_status pd_unicode_find(size_t *out, struct pd_render *r, struct pd_chars text, size_t from,
                               enum pd_unicode_class which)
{
    uint32_t code;
    *out = SIZE_MAX;
    for (size_t at = from, n; at < text.size && *out == SIZE_MAX; at += n) {
        n = pd_chars_next(&code, text, at);
        if ((n > 1 || code < 0x80) && is_in(which, code)) *out = at;
    }
    return pd_render_spend(r, 1 + (pd_min(*out, text.size) - from) / 8);
}

/* ---- case ---- */

static utf8proc_category_t category(uint32_t c) { return utf8proc_category((utf8proc_int32_t)c); }
static uint32_t upper_of(uint32_t c) { return (uint32_t)utf8proc_toupper((utf8proc_int32_t)c); }
static uint32_t lower_of(uint32_t c) { return (uint32_t)utf8proc_tolower((utf8proc_int32_t)c); }

bool pd_char_is_lower(uint32_t c)
{
    return category(c) == UTF8PROC_CATEGORY_LL || (upper_of(c) != c && category(c) != UTF8PROC_CATEGORY_LT);
}

bool pd_char_is_upper(uint32_t c)
{
    return category(c) == UTF8PROC_CATEGORY_LU || (lower_of(c) != c && category(c) != UTF8PROC_CATEGORY_LT);
}

bool pd_char_is_cased(uint32_t c)
{
    return pd_char_is_lower(c) || pd_char_is_upper(c) || category(c) == UTF8PROC_CATEGORY_LT;
}

/* A sigma is another letter at the end of a word. Between letters and it may be what Unicode calls case-ignorable:
 * marks, what modifies letters, what is written within words. */
static bool is_ignorable(uint32_t c)
{
    const utf8proc_category_t k = category(c);
    return k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_ME || k == UTF8PROC_CATEGORY_CF ||
           k == UTF8PROC_CATEGORY_LM || k == UTF8PROC_CATEGORY_SK || c == '\'' || c == '.' || c == ':' || c == 0xb7 ||
           c == 0x2018 || c == 0x2019 || c == 0x2024 || c == 0x2027;
}

static bool ends_word(struct pd_chars text, size_t at, size_t end)
{
    uint32_t code = 0;
    while (at > 0) {
        at = pd_chars_previous(text, at);
        pd_chars_next(&code, text, at);
        if (!is_ignorable(code)) break;
    }
    if (!pd_char_is_cased(code)) return false;
    for (code = 0; end < text.size;) {
        end += pd_chars_next(&code, text, end);
        if (!is_ignorable(code)) break;
    }
    return !pd_char_is_cased(code);
}

enum { MAX_LETTERS = 8 };

/* In upper case some letters are several: what Unicode makes them of, each in upper case, an iota below as one beside.
 * `title`: only the first of them. */
static size_t find_upper(utf8proc_int32_t out[MAX_LETTERS], uint32_t c, bool title)
{
    const utf8proc_int32_t code = (utf8proc_int32_t)c;
    const bool iota = !title && utf8proc_category(utf8proc_toupper(code)) == UTF8PROC_CATEGORY_LT;
    out[0] = title ? utf8proc_totitle(code) : utf8proc_toupper(code);
    if (c == 0xdf) out[0] = 'S', out[1] = title ? 's' : 'S';
    if (c == 0xdf) return 2;
    if (!iota && (out[0] != code || category(c) != UTF8PROC_CATEGORY_LL)) return 1;
    utf8proc_int32_t parts[MAX_LETTERS];
    const utf8proc_ssize_t n =
        utf8proc_decompose_char(code, parts, MAX_LETTERS, UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, NULL);
    if (n < 2 || n > MAX_LETTERS) return 1;
    bool begun = false;
    for (utf8proc_ssize_t i = 0; i < n; i++) {
        out[i] = title && begun ? parts[i] : utf8proc_toupper(parts[i]);
        begun |= out[i] != parts[i];
    }
    if (parts[n - 1] != 0x345) return (size_t)n;
    const utf8proc_int32_t last = out[n - 1];
    const utf8proc_ssize_t before = utf8proc_normalize_utf32(out, n - 1, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    out[before] = last;
    return (size_t)before + 1;
}

/* The letter at `at` in another case. `title`: the first of two keeps its case, "Ss". */
static peridot_status add_letter(struct pd_builder *b, struct pd_chars text, size_t at, enum pd_case which, bool title)
{
    utf8proc_int32_t other[MAX_LETTERS];
    uint32_t code;
    char bytes[4 * MAX_LETTERS];
    size_t size = 0, n = pd_chars_next(&code, text, at);
    const struct pd_chars letter = pd_chars_part(text, at, n);
    const bool own = pd_chars_is_own(letter);
    if (n == 1 && code >= 0x80) return pd_builder_add(b, letter);
    if (which == PD_LOWER && code == 0x130) return pd_builder_string(b, "i\xcc\x87", own);
    if (which == PD_LOWER && code == 0x3a3 && ends_word(text, at, at + n)) return pd_builder_string(b, "\xcf\x82", own);
    other[0] = (utf8proc_int32_t)lower_of(code);
    n = which == PD_LOWER ? 1 : find_upper(other, code, title);
    if (n == 1 && other[0] == (utf8proc_int32_t)code) return pd_builder_add(b, letter);
    for (size_t i = 0; i < n; i++) size += pd_utf8_write(bytes + size, (uint32_t)other[i]);
    return pd_builder_bytes(b, bytes, size, own);
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

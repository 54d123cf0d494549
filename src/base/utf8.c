/* UTF-8: characters in bytes that come from files, users and models, so that anything may be malformed. */
#include "base/base.h"

#include <string.h>

/* Bytes of the character that a lead byte opens, and the range of its second byte (the Unicode Standard, table 3-7):
 * the range keeps out overlong forms, surrogates, and what lies past U+10FFFF. */
static size_t lead(unsigned char c, unsigned char *low, unsigned char *high)
{
    *low = 0x80;
    *high = 0xbf;
    if (c < 0x80) return 1;
    if (c < 0xc2 || c > 0xf4) return 0;
    if (c < 0xe0) return 2;
    if (c == 0xe0) *low = 0xa0;
    if (c == 0xed) *high = 0x9f;
    if (c == 0xf0) *low = 0x90;
    if (c == 0xf4) *high = 0x8f;
    return c < 0xf0 ? 3 : 4;
}

enum pd_utf8_state pd_utf8_next(uint32_t *code, size_t *length, const char *text, size_t size)
{
    const unsigned char *s = (const unsigned char *)text;
    unsigned char low, high;
    size_t n = lead(s[0], &low, &high);
    *code = n < 2 ? s[0] : s[0] & (0x7fu >> n);
    *length = 1;
    if (n == 0) return PD_UTF8_INVALID;
    while (*length < n) {
        if (*length == size) return PD_UTF8_INCOMPLETE;
        unsigned char c = s[*length];
        if (c < low || c > high) return PD_UTF8_INVALID;
        *code = *code << 6 | (c & 0x3f);
        low = 0x80;
        high = 0xbf;
        ++*length;
    }
    return PD_UTF8_CHARACTER;
}

size_t pd_utf8_write(char out[4], uint32_t code)
{
    size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n; i-- > 1; code >>= 6) out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(leads[n] | code);
    return n;
}

/* Marks of direction are among them because they show a text in another order than it has: a file's name may then pass
 * for another (Boucher and Anderson 2021, arXiv:2111.00169). */
bool pd_utf8_is_control(uint32_t code)
{
    static const uint32_t ranges[][2] = {{0, 0x1f}, {0x7f, 0x9f}, {0x61c, 0x61c}, {0x200e, 0x200f}, {0x2028, 0x202e},
        {0x2066, 0x2069}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (code >= ranges[i][0] && code <= ranges[i][1]) return true;
    return false;
}

size_t pd_utf8_escape_next(char out[PD_ESCAPED_MAX], size_t *length, const char *text, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    uint32_t code;
    bool good = pd_utf8_next(&code, length, text, size) == PD_UTF8_CHARACTER && !pd_utf8_is_control(code);
    unsigned char c = (unsigned char)text[0];
    if (good) {
        memcpy(out, text, *length);
        return *length;
    }
    *length = 1;   /* byte by byte, so that nothing of what is malformed gets lost */
    memcpy(out, c == '\n' ? "\\n" : "\\x", 2);
    if (c == '\n') return 2;
    out[2] = digits[c >> 4];
    out[3] = digits[c & 15];
    return 4;
}

size_t pd_utf8_escape(char *out, size_t out_size, const char *text, size_t size)
{
    static const char more[] = "...";
    char next[PD_ESCAPED_MAX];
    size_t n = 0, kept = 0, length;   /* kept: what leaves room for the dots */
    for (size_t i = 0; i < size; i += length) {
        size_t width = pd_utf8_escape_next(next, &length, text + i, size - i);
        if (n + width >= out_size) {
            size_t dots = out_size - 1 - kept < 3 ? out_size - 1 - kept : 3;
            memcpy(out + kept, more, dots);
            n = kept + dots;
            break;
        }
        memcpy(out + n, next, width);
        n += width;
        if (n + 3 < out_size) kept = n;
    }
    out[n] = 0;
    return n;
}

const char *pd_utf8_shown(char out[PD_SHOWN_SIZE], const char *text, size_t size)
{
    pd_utf8_escape(out, PD_SHOWN_SIZE, text, size);
    return out;
}

/* The property White_Space of the Unicode Standard (PropList.txt), which has not changed since 6.3. */
bool pd_utf8_is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || c == 32 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

void pd_utf8_trim(const char **text, size_t *size)
{
    uint32_t code;
    size_t length, end = 0;
    bool begun = false;
    const char *start = *text;
    for (size_t i = 0; i < *size; i += length) {
        enum pd_utf8_state state = pd_utf8_next(&code, &length, *text + i, *size - i);
        /* Python has the separators 28 to 31 for spaces, and Unicode has not. */
        if (state == PD_UTF8_CHARACTER && (pd_utf8_is_space(code) || (code >= 28 && code <= 31))) continue;
        if (!begun) start = *text + i;
        begun = true;
        end = i + length;
    }
    *size = begun ? (size_t)(*text + end - start) : 0;
    *text = start;
}

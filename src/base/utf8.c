#include "base/utf8.h"

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

const char *pd_utf8_shown(char out[PD_SHOWN_SIZE], const char *text, size_t size)
{
    size_t n = 0, length;
    for (size_t i = 0; i < size; i += length) {
        uint32_t code;
        enum pd_utf8_state state = pd_utf8_next(&code, &length, text + i, size - i);
        bool good = state == PD_UTF8_CHARACTER && !pd_utf8_is_control(code);
        size_t shown = good ? length : 1;
        if (n + shown >= PD_SHOWN_SIZE) break;
        memcpy(out + n, good ? text + i : "?", shown);
        n += shown;
    }
    out[n] = 0;
    return out;
}

static bool is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
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
        if (state == PD_UTF8_CHARACTER && is_space(code)) continue;
        if (!begun) start = *text + i;
        begun = true;
        end = i + length;
    }
    *size = begun ? (size_t)(*text + end - start) : 0;
    *text = start;
}

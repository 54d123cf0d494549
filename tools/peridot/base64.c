#include "base64.h"

#include <stdlib.h>
#include <string.h>

static int digit(unsigned char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

/* The character at *i, "%2B" as URLs have it; *i is then that of its end. */
static char take(size_t *i, const char *text, size_t size)
{
    if (text[*i] != '%' || size - *i < 3) return text[*i];
    const char hex[] = {text[*i + 1], text[*i + 2], 0};
    if (strspn(hex, "0123456789abcdefABCDEF") < 2) return text[*i];
    *i += 2;
    return (char)strtoul(hex, NULL, 16);
}

bool cmd_base64_decode(unsigned char *out, size_t *n_out, const char *text, size_t size)
{
    size_t n = 0, n_pad = 0;
    uint32_t bits = 0;
    *n_out = 0;
    for (size_t i = 0; i < size; i++) {
        const char c = take(&i, text, size);
        int value = digit((unsigned char)c);
        if (c == ' ' || c == '\t' || c == '\r' || c == '\n') continue;
        n_pad += c == '=';
        if (c == '=') continue;
        if (value < 0 || n_pad) return false;
        bits = bits << 6 | (uint32_t)value;
        if (n++ % 4) out[(*n_out)++] = (unsigned char)(bits >> (6 - 2 * ((n - 1) % 4)));
    }
    if (n % 4 == 1 || n_pad > 2 || (n_pad && (n + n_pad) % 4)) return false;
    return n % 4 == 0 || (bits & ((1u << 2 * (4 - n % 4)) - 1)) == 0;
}

char *cmd_base64_encode(char *out, const void *data, size_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i += 3) {
        uint32_t bits = (uint32_t)bytes[i] << 16;
        if (i + 1 < size) bits |= (uint32_t)bytes[i + 1] << 8;
        if (i + 2 < size) bits |= bytes[i + 2];
        *out++ = digits[bits >> 18];
        *out++ = digits[bits >> 12 & 63];
        *out++ = i + 1 < size ? digits[bits >> 6 & 63] : '=';
        *out++ = i + 2 < size ? digits[bits & 63] : '=';
    }
    *out = 0;
    return out;
}

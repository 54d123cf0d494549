#include "base64.h"

static int digit(unsigned char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool cmd_base64_decode(unsigned char *out, size_t *n_out, const char *text, size_t size)
{
    size_t n_pad = size && text[size - 1] == '=' ? 1 + (size > 1 && text[size - 2] == '=') : 0;
    uint32_t bits = 0;
    *n_out = 0;
    if (size % 4) return false;
    for (size_t i = 0; i < size - n_pad; i++) {
        int value = digit((unsigned char)text[i]);
        if (value < 0) return false;
        bits = bits << 6 | (uint32_t)value;
        if (i % 4) out[(*n_out)++] = (unsigned char)(bits >> (6 - 2 * (i % 4)));
    }
    return n_pad == 0 || (bits & ((1u << 2 * n_pad) - 1)) == 0;
}

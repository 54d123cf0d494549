#include "json.h"

/* Bytes of the character at s (the Unicode Standard's table 3-7), or 0. */
static size_t character(const unsigned char *s, size_t size)
{
    unsigned char low = 0x80, high = 0xbf;
    if (s[0] < 0x80) return 1;
    size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || size < n) return 0;
    if (s[0] == 0xe0) low = 0xa0;
    else if (s[0] == 0xed) high = 0x9f;
    else if (s[0] == 0xf0) low = 0x90;
    else if (s[0] == 0xf4) high = 0x8f;
    if (s[1] < low || s[1] > high) return 0;
    for (size_t i = 2; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    return n;
}

void cmd_json_string(FILE *file, const char *text, size_t size)
{
    const unsigned char *s = (const unsigned char *)text;
    fputc('"', file);
    for (size_t i = 0, n; i < size; i += n ? n : 1) {
        n = character(s + i, size - i);
        if (n == 0) fputs("\\ufffd", file);
        else if (s[i] == '"' || s[i] == '\\') fprintf(file, "\\%c", s[i]);
        else if (s[i] < 0x20 || s[i] == 0x7f) fprintf(file, "\\u%04x", s[i]);
        else fwrite(s + i, 1, n, file);
    }
    fputc('"', file);
}

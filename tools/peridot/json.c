#include "json.h"

#include "peridot_tools.h"

/* What a terminal must not see is in the first plane. */
static bool is_control(const char *text, size_t size)
{
    char shown[16];
    return peridot_printable(shown, sizeof shown, text, size) != size;
}

static unsigned code_of(const char *text, size_t size)
{
    const unsigned char *c = (const unsigned char *)text;
    if (size == 1) return c[0];
    if (size == 2) return (c[0] & 0x1fu) << 6 | (c[1] & 0x3fu);
    return (c[0] & 0xfu) << 12 | (c[1] & 0x3fu) << 6 | (c[2] & 0x3fu);
}

void cmd_json_string(FILE *file, const char *text, size_t size)
{
    fputc('"', file);
    for (size_t i = 0, n; i < size; i += n ? n : 1) {
        unsigned char c = (unsigned char)text[i];
        n = peridot_utf8_size(text + i, size - i);
        if (n == 0) fputs("\\ufffd", file);
        else if (c == '"' || c == '\\') fprintf(file, "\\%c", c);
        else if (is_control(text + i, n)) fprintf(file, "\\u%04x", code_of(text + i, n));
        else fwrite(text + i, 1, n, file);
    }
    fputc('"', file);
}

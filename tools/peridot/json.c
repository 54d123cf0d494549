#include "json.h"

#include "peridot_tools.h"

void cmd_json_string(FILE *file, const char *text, size_t size)
{
    fputc('"', file);
    for (size_t i = 0, n; i < size; i += n ? n : 1) {
        unsigned char c = (unsigned char)text[i];
        n = peridot_utf8_size(text + i, size - i);
        if (n == 0) fputs("\\ufffd", file);
        else if (c == '"' || c == '\\') fprintf(file, "\\%c", c);
        else if (c < 0x20 || c == 0x7f) fprintf(file, "\\u%04x", c);
        else fwrite(text + i, 1, n, file);
    }
    fputc('"', file);
}

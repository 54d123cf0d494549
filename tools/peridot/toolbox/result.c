#include "result.h"

#include <string.h>

peridot_status result_add_text(struct toolbox_bytes *out, const char *text, size_t size)
{
    while (size && strchr(" \t\r\n", text[size - 1]) && text[size - 1]) size--;
    for (size_t i = 0, n; i < size; i += n) {
        size_t begin = i;
        while (i < size && text[i] && (n = peridot_utf8_size(text + i, size - i)) > 0) i += n;
        CMD_TRY(toolbox_bytes_add(out, text + begin, i - begin));
        n = i < size;
        if (n) CMD_TRY(toolbox_bytes_add(out, "\xef\xbf\xbd", 3));
    }
    return PERIDOT_OK;
}

peridot_status result_cut(struct toolbox_bytes *out, size_t most, size_t n_more)
{
    size_t size = out->size;
    if (size <= most && n_more == 0) return PERIDOT_OK;
    if (size > most)
        for (size = most; size > 0 && ((unsigned char)out->data[size] & 0xc0) == 0x80;) size--;
    n_more += out->size - size;
    out->size = size;
    return toolbox_bytes_print(out, "\n[cut here: %zu more bytes are left out]", n_more);
}

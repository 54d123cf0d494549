#include "base/bytes.h"

#include "base/array.h"
#include "base/utf8.h"

#include <string.h>

peridot_status pd_text_append(struct pd_text_buffer *b, const void *data, size_t size)
{
    PD_TRY(pd_array_reserve(&b->data, &b->capacity, b->size, size, 1, "text"));
    if (size) memcpy(b->data + b->size, data, size);
    b->size += size;
    return PERIDOT_OK;
}

peridot_status pd_text_append_utf8(struct pd_text_buffer *b, const char *text, size_t size)
{
    size_t begin = 0, length;
    uint32_t code;
    if (size == 0) return PERIDOT_OK;   /* text may be NULL */
    for (size_t i = 0; i < size; i += length) {
        enum pd_utf8_state state = pd_utf8_next(&code, &length, text + i, size - i);
        if (state == PD_UTF8_CHARACTER) continue;
        PD_TRY(pd_text_append(b, text + begin, i - begin));
        PD_TRY(pd_text_append(b, "\xef\xbf\xbd", 3));
        begin = i + length;
    }
    return pd_text_append(b, text + begin, size - begin);
}

peridot_status pd_text_terminate(struct pd_text_buffer *b)
{
    PD_TRY(pd_text_append(b, "", 1));
    b->size--;
    return PERIDOT_OK;
}

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

peridot_status pd_array_reserve(void *array, size_t *capacity, size_t n, size_t more, size_t element_size,
                                const char *what)
{
    void *data;
    if (more <= *capacity - n) return PERIDOT_OK;
    size_t limit = SIZE_MAX / 2 / element_size;
    if (more > limit - n) return pd_fail_alloc(SIZE_MAX, what);
    size_t want = n + more;
    if (want < *capacity + *capacity / 2) want = *capacity + *capacity / 2;
    if (want < 64) want = 64;
    memcpy(&data, array, sizeof data);   /* a pointer of any type */
    data = realloc(data, want * element_size);
    if (!data) return pd_fail_alloc(want * element_size, what);
    memcpy(array, &data, sizeof data);
    *capacity = want;
    return PERIDOT_OK;
}

/* ---- bytes ---- */

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

#include "base/base.h"

#include <stdarg.h>
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

/* ---- buffer ---- */

static peridot_status reserve(struct pd_buffer *b, size_t size)
{
    const size_t more = size < SIZE_MAX ? size + 1 : size;   /* with the zero; the most is refused */
    peridot_status status = pd_array_reserve(&b->data, &b->capacity, b->size, more, 1, "text");
    b->failed = b->failed || status != PERIDOT_OK;
    return status;
}

peridot_status pd_buffer_add(struct pd_buffer *b, const void *data, size_t size)
{
    PD_TRY(reserve(b, size));
    if (size) memcpy(b->data + b->size, data, size);
    b->data[b->size += size] = 0;
    return PERIDOT_OK;
}

peridot_status pd_buffer_add_utf8(struct pd_buffer *b, const char *text, size_t size)
{
    size_t begin = 0, length;
    uint32_t code;
    for (size_t i = 0; i < size; i += length) {
        enum pd_utf8_state state = pd_utf8_next(&code, &length, text + i, size - i);
        if (state == PD_UTF8_CHARACTER) continue;
        PD_TRY(pd_buffer_add(b, text + begin, i - begin));
        PD_TRY(pd_buffer_add(b, "\xef\xbf\xbd", 3));
        begin = i + length;
    }
    return size ? pd_buffer_add(b, text + begin, size - begin) : PERIDOT_OK;   /* text may be NULL */
}

peridot_status pd_buffer_print(struct pd_buffer *b, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const int size = vsnprintf(NULL, 0, format, args);
    peridot_status status = size > 0 ? reserve(b, (size_t)size) : PERIDOT_OK;
    if (size > 0 && status == PERIDOT_OK)
        b->size += (size_t)vsnprintf(b->data + b->size, (size_t)size + 1, format, again);
    va_end(again);
    va_end(args);
    return status;
}

void pd_buffer_drop(struct pd_buffer *b, size_t size)
{
    b->size -= size;
    if (b->data) memmove(b->data, b->data + size, b->size + 1);
}

peridot_status pd_buffer_end(struct pd_buffer *b) { return pd_buffer_add(b, "", 0); }

void pd_buffer_free(struct pd_buffer *b)
{
    free(b->data);
    *b = (struct pd_buffer){0};
}

#include "bytes.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

peridot_status toolbox_bytes_add(struct toolbox_bytes *b, const void *data, size_t size)
{
    CMD_TRY(cmd_array_reserve(&b->data, &b->capacity, b->size, size + 1, 1, "text of a tool"));
    if (size) memcpy(b->data + b->size, data, size);
    b->data[b->size += size] = 0;
    return PERIDOT_OK;
}

peridot_status toolbox_bytes_print(struct toolbox_bytes *b, const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    int size = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return toolbox_bytes_add(b, text, size < 0 ? 0 : (size_t)cmd_min((uint64_t)size, sizeof text - 1));
}

void toolbox_bytes_drop(struct toolbox_bytes *b, size_t size)
{
    b->size -= size;
    if (b->data) memmove(b->data, b->data + size, b->size + 1);
}

void toolbox_bytes_free(struct toolbox_bytes *b)
{
    free(b->data);
    *b = (struct toolbox_bytes){0};
}

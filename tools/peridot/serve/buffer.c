#include "buffer.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void serve_put(struct serve_buffer *b, const void *data, size_t size)
{
    b->failed = b->failed || cmd_array_reserve(&b->data, &b->capacity, b->size, size, 1, "text") != PERIDOT_OK;
    if (b->failed || size == 0) return;
    memcpy(b->data + b->size, data, size);
    b->size += size;
}

void serve_print(struct serve_buffer *b, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    int size = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (size > 0) serve_put(b, text, cmd_min((uint64_t)size, sizeof text - 1));
}

void serve_put_json(struct serve_buffer *b, yyjson_mut_doc *doc)
{
    size_t size = 0;
    char *text = cmd_json_end(doc, 0, &size);
    if (text) serve_put(b, text, size);
    else b->failed = true;
    free(text);
}

void serve_buffer_free(struct serve_buffer *b)
{
    free(b->data);
    *b = (struct serve_buffer){0};
}

yyjson_mut_val *serve_text(yyjson_mut_doc *doc, const char *text, size_t size)
{
    struct serve_buffer clean = {0};
    size_t i = 0, n;
    while (i < size && (n = peridot_utf8_size(text + i, size - i)) > 0) i += n;
    if (i == size) return yyjson_mut_strncpy(doc, text ? text : "", size);
    for (i = 0; i < size; i += n ? n : 1) {
        n = peridot_utf8_size(text + i, size - i);
        if (n) serve_put(&clean, text + i, n);
        else serve_put(&clean, "\xef\xbf\xbd", 3);
    }
    return serve_buffer_text(doc, &clean);
}

yyjson_mut_val *serve_buffer_text(yyjson_mut_doc *doc, struct serve_buffer *b)
{
    if (b->failed) cmd_json_fail();
    yyjson_mut_val *value = serve_text(doc, b->data, b->size);
    serve_buffer_free(b);
    return value;
}

void serve_put_text(struct serve_buffer *b, const char *name, const char *text, size_t size)
{
    yyjson_mut_doc *doc = cmd_json_new();
    yyjson_mut_val *o = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, o);
    yyjson_mut_obj_add_val(doc, o, name, serve_text(doc, text, size));
    serve_put_json(b, doc);
}

/* Bytes that grow at their end: bodies, events and texts of peridot serve. */
#ifndef PERIDOT_COMMAND_SERVE_BUFFER_H
#define PERIDOT_COMMAND_SERVE_BUFFER_H

#include "../json.h"

struct serve_buffer {
    char *data;                /* NULL while there is nothing */
    size_t size, capacity;
    bool failed;               /* memory was short, and something is missing */
};

void serve_put(struct serve_buffer *buffer, const void *data, size_t size);
void serve_print(struct serve_buffer *buffer, const char *format, ...) CMD_PRINTF(2, 3);
/* The document as text; frees it. */
void serve_put_json(struct serve_buffer *buffer, yyjson_mut_doc *doc);
void serve_buffer_free(struct serve_buffer *buffer);

/* A JSON string of any bytes: those that are no UTF-8 become U+FFFD. */
yyjson_mut_val *serve_text(yyjson_mut_doc *doc, const char *text, size_t size);
/* The same of what a buffer holds, which is freed. */
yyjson_mut_val *serve_buffer_text(yyjson_mut_doc *doc, struct serve_buffer *buffer);
/* {NAME: TEXT} */
void serve_put_text(struct serve_buffer *buffer, const char *name, const char *text, size_t size);

#endif

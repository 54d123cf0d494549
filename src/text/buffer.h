/* Two growing arrays that the text layer hands around: bytes and token ids. Zero-initialise ({0}); free(data) ends
 * them. On failure the contents are as before. */
#ifndef PD_TEXT_BUFFER_H
#define PD_TEXT_BUFFER_H

#include "base/status.h"

struct pd_text_buffer {
    char *data;              /* NULL until something was appended */
    size_t size, capacity;
};

struct pd_ids {
    int32_t *data;
    size_t n, capacity;
};

peridot_status pd_text_append(struct pd_text_buffer *b, const void *data, size_t size);
/* Text from outside: as it is, but U+FFFD for what is malformed. */
peridot_status pd_text_append_utf8(struct pd_text_buffer *b, const char *text, size_t size);
/* Text as sentencepiece's pieces spell it, with U+2581 for spaces, and back. */
#define PD_SPACE "\xe2\x96\x81"
peridot_status pd_text_append_escaped(struct pd_text_buffer *b, const char *text, size_t size);
peridot_status pd_text_append_unescaped(struct pd_text_buffer *b, const char *text, size_t size);
bool pd_text_begins_with_space(const char *text, size_t size);   /* with U+2581 */
/* Tokenizers count the symbols of a span in int: what is longer than 2^29 bytes is refused. */
peridot_status pd_text_check_span(size_t size);
/* Puts a NUL after the bytes, not counted in size; data is not NULL afterwards. */
peridot_status pd_text_terminate(struct pd_text_buffer *b);
peridot_status pd_ids_append(struct pd_ids *ids, const int32_t *data, size_t n);

#endif

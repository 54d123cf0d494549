/* Bytes that grow. Zero-initialise ({0}); free(data) ends them. On failure the contents are as before. */
#ifndef PD_BASE_BYTES_H
#define PD_BASE_BYTES_H

#include "base/status.h"

struct pd_text_buffer {
    char *data;              /* NULL until something was appended */
    size_t size, capacity;
};

peridot_status pd_text_append(struct pd_text_buffer *b, const void *data, size_t size);
/* Text from outside: as it is, but U+FFFD for what is malformed. */
peridot_status pd_text_append_utf8(struct pd_text_buffer *b, const char *text, size_t size);
/* Puts a NUL after the bytes, not counted in size; data is not NULL afterwards. */
peridot_status pd_text_terminate(struct pd_text_buffer *b);

#endif

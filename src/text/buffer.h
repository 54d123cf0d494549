/* What the text layer hands around: bytes (base/bytes.h) with what they spell, and growing arrays of token ids.
 * Zero-initialise ({0}); free(data) ends them. On failure the contents are as before. */
#ifndef PD_TEXT_BUFFER_H
#define PD_TEXT_BUFFER_H

#include "base/bytes.h"

struct pd_ids {
    int32_t *data;
    size_t n, capacity;
    peridot_encode_limit *limit;   /* NULL: none; the caller's */
    uint64_t n_least;              /* ids of what was encoded at least, by its size */
};

/* Text as sentencepiece's pieces spell it, with U+2581 for spaces, and back. */
#define PD_SPACE "\xe2\x96\x81"
peridot_status pd_text_append_escaped(struct pd_text_buffer *b, const char *text, size_t size);
peridot_status pd_text_append_unescaped(struct pd_text_buffer *b, const char *text, size_t size);
bool pd_text_begins_with_space(const char *text, size_t size);   /* with U+2581 */
/* Tokenizers count the symbols of a span in int: what is longer than 2^29 bytes is refused. */
peridot_status pd_text_check_span(size_t size);
/* Asks the limit every now and then. */
peridot_status pd_ids_append(struct pd_ids *ids, const int32_t *data, size_t n);
/* Fails with PERIDOT_CANCELLED where the limit says so. */
peridot_status pd_ids_go_on(const struct pd_ids *ids);
/* Before text is encoded that gives n more ids at least: fails where these are too many. */
peridot_status pd_ids_expect(struct pd_ids *ids, uint64_t n);

#endif

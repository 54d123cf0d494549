/* The sentencepiece library, behind a C face: the only C++ here. Thread-safe once created. It is handed only models
 * that pd_pieces_write_model wrote; it still refuses some (a piece twice, missing byte pieces), which comes back as a
 * sentence. */
#ifndef PD_TEXT_SENTENCEPIECE_H
#define PD_TEXT_SENTENCEPIECE_H

#include "text/text.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pd_sentencepiece;

/* `model` is a serialised ModelProto; it is copied. `lines_apart`: no piece reaches over the end of a line, so that
 * long texts may be cut there. */
peridot_status pd_sentencepiece_create(struct pd_sentencepiece **out, const void *model, size_t size, bool lines_apart);
void pd_sentencepiece_free(struct pd_sentencepiece *sp);
/* Appends the ids of plain text, with a space before it if wanted and the text is not empty. Malformed UTF-8 counts as
 * U+FFFD. */
peridot_status pd_sentencepiece_encode(struct pd_ids *out, const struct pd_sentencepiece *sp, const char *text,
                                       size_t size, bool space_before);

#ifdef __cplusplus
}
#endif
#endif

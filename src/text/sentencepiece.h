/* The sentencepiece library, behind a C face: the only C++ here. Thread-safe once created. It is handed only models that
 * pd_pieces_write_model wrote; it still refuses some (a piece twice, missing byte pieces), which comes back as a sentence. */
#ifndef PD_TEXT_SENTENCEPIECE_H
#define PD_TEXT_SENTENCEPIECE_H

#include "text/buffer.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pd_sentencepiece;

/* `model` is a serialised ModelProto; it is copied. */
peridot_status pd_sentencepiece_create(struct pd_sentencepiece **out, const void *model, size_t size);
void pd_sentencepiece_free(struct pd_sentencepiece *sp);
/* Appends the ids of plain text. Malformed UTF-8 counts as U+FFFD. */
peridot_status pd_sentencepiece_encode(struct pd_ids *out, const struct pd_sentencepiece *sp, const char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif

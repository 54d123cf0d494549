/* A tokenizer as the keys tokenizer.* of a GGUF file: the inverse of pieces_gguf.c. */
#ifndef PD_TEXT_TOKENIZER_GGUF_H
#define PD_TEXT_TOKENIZER_GGUF_H

#include "format/gguf_write.h"
#include "text/tokenizer.h"

/* n_tokens: rows of the embedding; readers want as many entries in the list, so that it is filled up with unused ones,
 * or cut. A tokenizer that GGUF has no words for is refused. */
peridot_status pd_tokenizer_add_gguf(struct pd_gguf_writer *w, const struct pd_tokenizer *t, uint32_t n_tokens);

#endif

/* Vocabularies for the harnesses: from the bytes of one file, and small ones that are always there. */
#ifndef FUZZ_VOCABULARY_H
#define FUZZ_VOCABULARY_H

#include "harness.h"

#include "api/api.h"
#include "text/text_.h"

typedef peridot_status fuzz_pieces_reader(struct pd_pieces *out, const uint8_t *data, uint64_t size);
/* NULL where the bytes are refused. Closed by pd_tokenizer_close. */
struct pd_tokenizer *fuzz_tokenizer(fuzz_pieces_reader *read, const uint8_t *data, uint64_t size);

enum {
    FUZZ_VOCAB_GEMMA, FUZZ_VOCAB_LLAMA2, FUZZ_VOCAB_LLAMA3, FUZZ_VOCAB_CHARS, FUZZ_N_VOCABS,
    FUZZ_VOCAB_PROGRAM = FUZZ_N_VOCABS   /* Llama 3's, with a template program that wants all that programs may want */
};
/* Opened once, for ever. */
const peridot_vocab *fuzz_vocab(size_t i);

/* Encodes a text, decodes the ids in one piece and in a stream, and gives the ids (peridot_free); NULL where the text
 * is refused. */
int32_t *fuzz_encode(size_t *n, const struct pd_tokenizer *t, const char *text, size_t size, unsigned flags);

#endif

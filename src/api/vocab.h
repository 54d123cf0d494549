/* struct peridot_vocab, so that a model can hand out its own (peridot_model_vocab). Close what holds it with
 * pd_tokenizer_close(vocab.tokenizer); peridot_vocab_close is for those that peridot_vocab_open made. */
#ifndef PD_API_VOCAB_H
#define PD_API_VOCAB_H

#include "text/tokenizer.h"

struct peridot_vocab {
    struct pd_tokenizer *tokenizer;
};

#endif

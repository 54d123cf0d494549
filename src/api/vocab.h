/* struct peridot_vocab: a model is an owner of its vocabulary, and programs may be others. */
#ifndef PD_API_VOCAB_H
#define PD_API_VOCAB_H

#include "grammar/spellings.h"
#include "text/tokenizer.h"

#include <stdatomic.h>

struct peridot_vocab {
    struct pd_refs refs;
    struct pd_tokenizer *tokenizer;
    struct pd_spellings *_Atomic spellings;   /* made with the first grammar; NULL before */
};

#endif

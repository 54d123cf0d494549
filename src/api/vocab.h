/* struct peridot_vocab, so that a model can hand out its own (peridot_model_vocab). Close what holds it with
 * pd_vocab_release; peridot_vocab_close is for those that peridot_vocab_open made. */
#ifndef PD_API_VOCAB_H
#define PD_API_VOCAB_H

#include "grammar/spellings.h"
#include "text/tokenizer.h"

#include <stdatomic.h>

struct peridot_vocab {
    struct pd_tokenizer *tokenizer;
    struct pd_spellings *_Atomic spellings;   /* made with the first grammar; NULL before */
};

void pd_vocab_release(struct peridot_vocab *vocab);

#endif

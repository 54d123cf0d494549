/* What tokenizer.c, which encodes and decodes, shares with tokenizer_open.c, which reads files. */
#ifndef PD_TEXT_TOKENIZER_PRIVATE_H
#define PD_TEXT_TOKENIZER_PRIVATE_H

#include "text/chat.h"
#include "text/sentencepiece.h"
#include "text/tokenizer.h"

struct pd_tokenizer {
    struct pd_pieces pieces;
    struct pd_special special;
    /* Plain text to ids. Another algorithm would stand beside it, chosen in encode_span: nothing else here knows of it. */
    struct pd_sentencepiece *sentencepiece;
    const struct pd_chat *chat;    /* NULL: none */
    bool lines_apart;              /* no piece reaches over the end of a line: long texts may be cut there */
};

#endif

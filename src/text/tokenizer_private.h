/* What tokenizer.c, which encodes and decodes, shares with tokenizer_build.c, tokenizer_directory.c and
 * tokenizer_open.c, which read files (the last uses the others), and with tokenizer_chat.c. */
#ifndef PD_TEXT_TOKENIZER_PRIVATE_H
#define PD_TEXT_TOKENIZER_PRIVATE_H

#include "text/bpe.h"
#include "text/chat.h"
#include "text/sentencepiece.h"
#include "text/tokenizer.h"

struct pd_tokenizer {
    struct pd_pieces pieces;
    struct pd_special special;
    /* Plain text to ids: */
    struct pd_sentencepiece *sentencepiece;   /* NULL: merges are of bytes */
    struct pd_bpe *bpe;                       /* NULL: the vocabulary has scores, and no merges */
    const struct pd_chat *chat;    /* NULL: none */
    peridot_template_origin chat_origin;
    struct pd_text_buffer jinja;   /* the template as a Hugging Face directory words it, terminated; data NULL: none */
};

/* Appends the ids of text without control tokens; `first`: it begins a text (see dummy_prefix). */
peridot_status pd_tokenizer_encode_plain(struct pd_ids *out, const struct pd_tokenizer *t, const char *text,
                                         size_t size, bool first);
/* Hands over what was made, or frees it. */
peridot_status pd_tokenizer_finish_ids(int32_t **out, size_t *n, struct pd_ids *ids, peridot_status status);

/* What a model's files say beside its vocabulary; texts need not be terminated, NULL when absent. */
struct pd_chat_hints {
    const char *jinja;
    size_t jinja_size;
    const char *names[2];      /* of the model */
    size_t names_size[2];
};

/* The steps of opening a tokenizer, which is zeroed at first: pieces from bytes that are a tokenizer.model or a
 * tokenizer.json; then all that follows from the pieces; then the chat template. */
peridot_status pd_tokenizer_read_model(struct pd_tokenizer *t, const char *path);
peridot_status pd_tokenizer_read_json(struct pd_tokenizer *t, const char *path);
peridot_status pd_tokenizer_build(struct pd_tokenizer *t);
void pd_tokenizer_find_chat(struct pd_tokenizer *t, const struct pd_chat_hints *h);
/* All of a Hugging Face directory. */
peridot_status pd_tokenizer_read_directory(struct pd_tokenizer *t, const char *directory);

#endif

/* What a tokenizer consists of, for the files that share it: tokenizer_open.c fills it, tokenizer.c encodes and
 * decodes, tokenizer_chat.c encodes conversations, tokenizer_gguf.c writes it to a file. Once open it never changes, so
 * that any thread may use it. */
#ifndef PD_TEXT_TOKENIZER_PRIVATE_H
#define PD_TEXT_TOKENIZER_PRIVATE_H

#include "text/bpe.h"
#include "text/buffer.h"
#include "text/chat.h"
#include "text/infill.h"
#include "text/sentencepiece.h"

struct pd_tokenizer {
    struct pd_pieces pieces;
    struct pd_special special;
    /* Plain text to ids: */
    struct pd_sentencepiece *sentencepiece;   /* NULL: the vocabulary has merges */
    struct pd_bpe *bpe;                       /* NULL: it has scores */
    size_t longest;                /* bytes of text that a token stands for at most; 0: any number */
    const struct pd_chat *chat;    /* NULL: none */
    peridot_template_origin chat_origin;
    bool no_thought;               /* the files' template says so in so many words where the model is not to think */
    int32_t thoughts[PD_N_THOUGHT_MARKS];   /* -1: the model has none */
    struct pd_ids thought_header;  /* of PD_THOUGHT_HEADER, where headers are told apart */
    bool thoughts_named;           /* their first line is a name */
    int32_t infill[PD_N_INFILL];   /* -1: the vocabulary has no tokens for fill-in-the-middle */
    struct pd_text_buffer jinja;   /* the files' template, terminated; data NULL: none */
    struct pd_template *program;   /* it, to be run; NULL: there is none, or it is no program that can be run */
    char program_error[256];       /* why it cannot be run; "": it can, or there is none */
    bool published;                /* it is that for which `chat` stands */
};

/* Appends the ids of text without control tokens. */
peridot_status pd_tokenizer_encode_plain(struct pd_ids *out, const struct pd_tokenizer *t, const char *text,
                                         size_t size, enum pd_text_place place);
/* Hands over what was made, or frees it. */
peridot_status pd_tokenizer_finish_ids(int32_t **out, size_t *n, struct pd_ids *ids, peridot_status status);

/* How a vocabulary's models write an image: `marker` is what templates have for one. `around` is plain text. */
struct pd_image_marks {
    int32_t marker, begin, end;
    const char *around;
};
/* False: the vocabulary has no such tokens. */
bool pd_tokenizer_image_marks(struct pd_image_marks *out, const struct pd_tokenizer *t);
/* Puts an image and its crops after `plain`, text that is yet to be encoded, which then has only what comes after
 * them. */
peridot_status pd_tokenizer_put_image(struct pd_ids *out, struct pd_text_buffer *plain, const struct pd_tokenizer *t,
                                      const struct pd_image_marks *marks, const struct pd_chat_image *image,
                                      enum pd_text_place place);

/* By the files' program. */
peridot_status pd_tokenizer_run_program(struct pd_ids *out, const struct pd_tokenizer *t,
                                        const struct pd_chat_prompt *c);
/* It can be told to have the model think. */
bool pd_tokenizer_program_thinks(const struct pd_tokenizer *t);

/* The last step of opening a tokenizer, which is zeroed at first and has its pieces: all that follows from them. */
peridot_status pd_tokenizer_build(struct pd_tokenizer *t);

#endif

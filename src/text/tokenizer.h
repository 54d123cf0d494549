/* Text to token ids and back. The pieces come from a sentencepiece model, a GGUF file's arrays or a tokenizer.json;
 * where they have scores, they are written as a sentencepiece ModelProto, and that library does the merging; where they
 * have a list of merges (Llama 3, Gemma 4), it is bpe.h's work. What is ours, too: control tokens are parsed only where
 * asked, turn markers are never matched in user text (Google's model has them as USER_DEFINED pieces), streaming output
 * of whole UTF-8 characters, and chat templates. */
#ifndef PD_TEXT_TOKENIZER_H
#define PD_TEXT_TOKENIZER_H

#include "format/checkpoint.h"
#include "text/buffer.h"
#include "text/messages.h"
#include "text/thoughts.h"

struct pd_gguf_writer;
struct pd_tokenizer;

/* From a tokenizer.model, a tokenizer.json, a directory that holds one (nothing else needs to be there; the former goes
 * first), or a GGUF file. */
peridot_status pd_tokenizer_open(struct pd_tokenizer **out, const char *path);
/* From a checkpoint that is open: the GGUF's arrays, or the file in the directory. */
peridot_status pd_tokenizer_from_checkpoint(struct pd_tokenizer **out, const struct pd_checkpoint *c);
void pd_tokenizer_close(struct pd_tokenizer *t);

uint32_t pd_tokenizer_size(const struct pd_tokenizer *t);
int32_t pd_tokenizer_bos(const struct pd_tokenizer *t);   /* -1: none */
/* eos, the end of a turn, and what generation_config or the GGUF's eot/eom keys add. */
bool pd_tokenizer_is_stop(const struct pd_tokenizer *t, int32_t id);

/* The control token of this text; -1: there is none. */
int32_t pd_tokenizer_find_control(const struct pd_tokenizer *t, const char *text);

/* Tokens that must never be drawn: those that generation_config or the GGUF's suppress_tokens list. */
bool pd_tokenizer_is_suppressed(const struct pd_tokenizer *t, int32_t id);
uint32_t pd_tokenizer_n_suppressed(const struct pd_tokenizer *t);

/* flags: peridot_encode_flags; limit: NULL for none. *ids (malloc, never NULL on success) belongs to the caller. */
peridot_status pd_tokenizer_encode(int32_t **ids, size_t *n, const struct pd_tokenizer *t,
                                   const char *text, size_t size, unsigned flags, peridot_encode_limit *limit);
/* Whole text of n ids, allocated, NUL-terminated. Control tokens give nothing. */
peridot_status pd_tokenizer_decode(char **out, size_t *size, const struct pd_tokenizer *t, const int32_t *ids,
                                   size_t n);
/* The same with the texts of control tokens. */
peridot_status pd_tokenizer_decode_special(char **out, size_t *size, const struct pd_tokenizer *t, const int32_t *ids,
                                           size_t n);

/* Appends the bytes that a piece adds to a text that has begun; none of pieces that no text should have: control,
 * unknown and unused ones. */
peridot_status pd_tokenizer_spell(struct pd_text_buffer *out, const struct pd_tokenizer *t, int32_t id);

/* Chat: what peridot_vocab_template and peridot_encode_turns say. */
#define PD_CHAT_PROGRAM "jinja"     /* the name of the template that is the program in the model's files */
struct pd_chat_image {
    const int32_t *ids;             /* [1 + n_crops][n]: of its rows, and of those of its crops */
    size_t n, n_crops;
};
struct pd_chat_prompt {
    const char *template_name;
    const int32_t *ids;             /* [n_ids] */
    size_t n_ids;
    struct pd_messages *messages;   /* renders may add to it; has_calls only where the program can write them */
    /* For programs: functions that the model may call, and an object of further variables; NULL: none. */
    yyjson_val *tools, *variables;
    uint32_t think;
    /* What the images of the messages are, in their order: as many as messages->n_images. */
    const struct pd_chat_image *images;
    peridot_encode_limit *limit;    /* NULL: none */
};
const char *pd_tokenizer_template(peridot_template_origin *origin, const struct pd_tokenizer *t);
peridot_status pd_tokenizer_encode_chat(int32_t **ids, size_t *n, const struct pd_tokenizer *t,
                                        const struct pd_chat_prompt *c);
/* Why the files' template cannot be run; "": it can, or there is none. */
const char *pd_tokenizer_template_error(const struct pd_tokenizer *t);
/* The text of the program that the template of this name (NULL: the model's own) runs where there are tools, if it
 * describes them to the model, or writes calls; else NULL. */
const char *pd_tokenizer_tools_program(const struct pd_tokenizer *t, const char *template_name);
/* Whether the files' program describes tools. */
bool pd_tokenizer_reads_tools(const struct pd_tokenizer *t);

/* The marks of what the model thinks (chat.h); false: it has no thoughts. */
bool pd_tokenizer_thoughts(int32_t ids[PD_N_THOUGHT_MARKS], const struct pd_tokenizer *t);
/* The ids that a thought's header ends in. */
const struct pd_ids *pd_tokenizer_thought_header(const struct pd_tokenizer *t);
/* A thought's first line is its name. */
bool pd_tokenizer_names_thoughts(const struct pd_tokenizer *t);
/* The files' program writes thoughts of past turns. */
bool pd_tokenizer_keeps_thoughts(const struct pd_tokenizer *t);

/* Fill-in-the-middle: what peridot_vocab_has_infill and peridot_encode_infill say. */
bool pd_tokenizer_has_infill(const struct pd_tokenizer *t);
peridot_status pd_tokenizer_encode_infill(int32_t **ids, size_t *n, const struct pd_tokenizer *t,
                                          const peridot_infill *texts);

/* Adds the keys tokenizer.* of a GGUF file. n_tokens: rows of the embedding; readers want as many entries in the list,
 * so that it is filled up with unused ones, or cut. A tokenizer that GGUF has no words for is refused. */
peridot_status pd_tokenizer_add_gguf(struct pd_gguf_writer *w, const struct pd_tokenizer *t, uint32_t n_tokens);

/* Streaming: ids one by one, out come the bytes that complete whole UTF-8 characters. Zero-initialise ({0}). */
struct pd_stream {
    char held[4];       /* bytes of a character that is not complete yet */
    size_t n_held;
    bool started;       /* false: the first piece loses its dummy prefix space when the model adds one. Set it where the
                         * ids continue a text: there the space is the text's own */
};
/* What comes out is in buffer->data, buffer->size, until the next call; the caller frees buffer->data at the end. Bytes
 * that cannot become a character come out as U+FFFD as soon as that is known; id -1 flushes what is held as U+FFFD.
 * Or in two steps, where the bytes are looked at between: those of the id are appended to `bytes`; and those that are
 * left, of which `end` says that they are the last, become characters. */
peridot_status pd_stream_next(struct pd_stream *s, struct pd_text_buffer *buffer, const struct pd_tokenizer *t,
                              int32_t id);
peridot_status pd_stream_spell(struct pd_stream *s, struct pd_text_buffer *bytes, const struct pd_tokenizer *t,
                               int32_t id);
peridot_status pd_stream_text(struct pd_stream *s, struct pd_text_buffer *buffer, const struct pd_text_buffer *bytes,
                              bool end);

#endif

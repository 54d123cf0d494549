/* The door of this room: what text is to a model. Bytes and ids, messages of a conversation, where a reply ends, and
 * the tokenizer, which is between all of them. */
#ifndef PD_TEXT_TEXT_H
#define PD_TEXT_TEXT_H

#include "base/base.h"
#include "format/format.h"

/* ---- buffer ---- */

/* What the text layer hands around: bytes (base/base.h) with what they spell, and growing arrays of token ids.
 * Zero-initialise ({0}); free(data) ends them. On failure the contents are as before. */

struct pd_ids {
    int32_t *data;
    size_t n, capacity;
    peridot_encode_limit *limit;   /* NULL: none; the caller's */
    uint64_t n_least;              /* ids of what was encoded at least, by its size */
};

/* Text as sentencepiece's pieces spell it, with U+2581 for spaces, and back. */
#define PD_SPACE "\xe2\x96\x81"
peridot_status pd_text_append_escaped(struct pd_buffer *b, const char *text, size_t size);
peridot_status pd_text_append_unescaped(struct pd_buffer *b, const char *text, size_t size);
bool pd_text_begins_with_space(const char *text, size_t size);   /* with U+2581 */
/* Tokenizers count the symbols of a span in int: what is longer than 2^29 bytes is refused. */
peridot_status pd_text_check_span(size_t size);
/* Asks the limit every now and then. */
peridot_status pd_ids_append(struct pd_ids *ids, const int32_t *data, size_t n);
/* Fails with PERIDOT_CANCELLED where the limit says so. */
peridot_status pd_ids_go_on(const struct pd_ids *ids);
/* Before text is encoded that gives n more ids at least: fails where these are too many. */
peridot_status pd_ids_expect(struct pd_ids *ids, uint64_t n);

/* ---- thoughts ---- */

/* The marks of what a model thinks: the tokens that begin and end it. Where there is a third, the model's turn is
 * messages, each with a header from that to the first, of which the prompt may have the beginning: a thought follows
 * one that ends as the model's thoughts' do; what follows others is for the user, or a function. */

enum { PD_THOUGHT_BEGIN, PD_THOUGHT_END, PD_THOUGHT_START, PD_N_THOUGHT_MARKS };

/* ---- messages ---- */

/* The messages of a conversation in one form, whatever they came in: a list of objects as chat templates read them,
 *   {"role": ..., "content": a string}, and where the message has them "reasoning_content", "name", "tool_call_id" and
 *   "tool_calls": [{"type": "function", "id": ..., "function": {"name": ..., "arguments": an object}}].
 * Roles are system, developer, user, assistant and tool. A tool's message has the name of the call that it answers. A
 * message with images has a list as content, as templates of models that see read it: {"type": "text", "text": ...} and
 * {"type": "image"}. */

enum { PD_MARKED_ID = 8 };

struct pd_messages {
    yyjson_mut_doc *doc;
    yyjson_mut_val *list;
    bool has_calls;          /* some message has tool calls, or is a tool's */
    bool no_system;          /* the template takes none: what tells of tools goes to the user's first */
    size_t n_images;
    /* What stands for an image in pd_messages_to_array; before PD_MARKED_ID hexadecimal digits in a content, for the
     * control token of that id. Nobody who writes messages knows it. */
    char mark[40];
};

/* From an array; its strings stay the caller's, and must outlive *out. */
peridot_status pd_messages_from_array(struct pd_messages *out, const peridot_message *messages, size_t n);
/* From JSON of `size` bytes: a list of messages as OpenAI's chat completions have them. Content is a string, null, or a
 * list of parts of text, which are put together, and images; arguments of a call are an object, or JSON text of one. */
peridot_status pd_messages_from_json(struct pd_messages *out, const char *json, size_t size);
/* NULL members are allowed. */
void pd_messages_free(struct pd_messages *m);

/* Roles and contents, as long as *m is; *out goes back to free. trims: the texts of a message with images. */
peridot_status pd_messages_to_array(peridot_message **out, size_t *n, const struct pd_messages *m, bool trims);

/* ---- stop ---- */

/* Stop texts: finds the first of them in text that comes in pieces, and holds back what may be the beginning of one. */

/* Zero-initialise but for the first two; free(held.data) ends it. */
struct pd_stop {
    const char *const *texts;     /* borrowed; an empty one never stops */
    size_t n;
    struct pd_buffer held;
    size_t n_given;               /* bytes of `held` that were handed out by the last call */
    bool found;
};

/* Takes the next bytes of the text; *out, *size are those that may be shown now, borrowed until the next call. Once a
 * stop text is found there are none. `last`: the text ends here, and nothing needs to be held. */
peridot_status pd_stop_next(const char **out, size_t *size, struct pd_stop *s, const char *text, size_t n, bool last);

/* ---- tokenizer ---- */

/* Text to token ids and back. The pieces come from a sentencepiece model, a GGUF file's arrays or a tokenizer.json;
 * where they have scores, they are written as a sentencepiece ModelProto, and that library does the merging; where they
 * have a list of merges (Llama 3, Gemma 4), it is bpe.c's work. What is ours, too: control tokens are parsed only where
 * asked, turn markers are never matched in user text (Google's model has them as USER_DEFINED pieces), streaming output
 * of whole UTF-8 characters, and chat templates. */

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

/* *ids (malloc, never NULL on success) belongs to the caller. */
peridot_status pd_tokenizer_encode(int32_t **ids, size_t *n, const struct pd_tokenizer *t, const peridot_plain *plain);
/* Whole text of n ids, allocated, NUL-terminated. Control tokens give nothing. */
peridot_status pd_tokenizer_decode(char **out, size_t *size, const struct pd_tokenizer *t, const int32_t *ids,
                                   size_t n);
/* The same with the texts of control tokens. */
peridot_status pd_tokenizer_decode_special(char **out, size_t *size, const struct pd_tokenizer *t, const int32_t *ids,
                                           size_t n);

/* Appends the bytes that a piece adds to a text that has begun; none of pieces that no text should have: control,
 * unknown and unused ones. */
peridot_status pd_tokenizer_spell(struct pd_buffer *out, const struct pd_tokenizer *t, int32_t id);

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
    const char *effort;             /* for programs that read it; NULL: none */
    uint32_t think;
    /* What the images of the messages are, in their order: as many as messages->n_images. */
    const struct pd_chat_image *images;
    peridot_encode_limit *limit;    /* NULL: none */
    const char *reply;              /* [reply_size]: how the model's begins */
    size_t reply_size;
};
/* Name i of the families' templates (chat.c), NULL past the last. */
const char *pd_chat_name(size_t i);
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

/* The marks of what the model thinks; false: it has no thoughts. */
bool pd_tokenizer_thoughts(int32_t ids[PD_N_THOUGHT_MARKS], const struct pd_tokenizer *t);
/* The ids that a thought's header ends in. */
const struct pd_ids *pd_tokenizer_thought_header(const struct pd_tokenizer *t);
/* A thought's first line is its name. */
bool pd_tokenizer_names_thoughts(const struct pd_tokenizer *t);
/* Messages go to channels, as gpt-oss's: what ends the last one is the mark that ends a thought, once others follow. */
bool pd_tokenizer_has_channels(const struct pd_tokenizer *t);
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
peridot_status pd_stream_next(struct pd_stream *s, struct pd_buffer *buffer, const struct pd_tokenizer *t,
                              int32_t id);
peridot_status pd_stream_spell(struct pd_stream *s, struct pd_buffer *bytes, const struct pd_tokenizer *t,
                               int32_t id);
peridot_status pd_stream_text(struct pd_stream *s, struct pd_buffer *buffer, const struct pd_buffer *bytes,
                              bool end);

#endif

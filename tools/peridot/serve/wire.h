/* An interface is how a kind of client speaks: its path, what it asks for, the form of its answers, whole and as
 * events. Each is a row, in a file wire_*.c of its own, and is listed in interfaces.c; its parameters are those of
 * params.c and neutral.c that have its bit. */
#ifndef PERIDOT_COMMAND_SERVE_WIRE_H
#define PERIDOT_COMMAND_SERVE_WIRE_H

#include "job.h"

struct serve_conversation;

#define SERVE_EVENTS "text/event-stream; charset=utf-8"   /* server-sent events */

/* Sets of interfaces. */
enum {
    SERVE_SET_CHAT = 1 << SERVE_CHAT, SERVE_SET_COMPLETIONS = 1 << SERVE_COMPLETIONS,
    SERVE_SET_RESPONSES = 1 << SERVE_RESPONSES, SERVE_SET_EMBEDDINGS = 1 << SERVE_EMBEDDINGS,
    SERVE_SET_TOKENIZE = 1 << SERVE_TOKENIZE, SERVE_SET_DETOKENIZE = 1 << SERVE_DETOKENIZE,
    SERVE_SET_MESSAGES = 1 << SERVE_MESSAGES, SERVE_SET_COUNT_TOKENS = 1 << SERVE_COUNT_TOKENS,
    SERVE_SET_OLLAMA_CHAT = 1 << SERVE_OLLAMA_CHAT, SERVE_SET_GENERATE = 1 << SERVE_GENERATE,
    SERVE_SET_EMBED = 1 << SERVE_EMBED, SERVE_SET_EMBED_ONE = 1 << SERVE_EMBED_ONE, SERVE_SET_SHOW = 1 << SERVE_SHOW,
    SERVE_SET_RERANK = 1 << SERVE_RERANK,
    SERVE_SET_COMPLETION = 1 << SERVE_COMPLETION, SERVE_SET_INFILL = 1 << SERVE_INFILL,
    SERVE_SET_APPLY_TEMPLATE = 1 << SERVE_APPLY_TEMPLATE,
    SERVE_SET_OPTIONS = 1 << SERVE_N_APIS,   /* members of Ollama's `options` */
    SERVE_SET_LLAMA = SERVE_SET_COMPLETION | SERVE_SET_INFILL,   /* llama.cpp's server's own */
    SERVE_SET_CHATS = SERVE_SET_CHAT | SERVE_SET_APPLY_TEMPLATE,
    SERVE_SET_WRITES = SERVE_SET_CHATS | SERVE_SET_COMPLETIONS | SERVE_SET_RESPONSES | SERVE_SET_LLAMA,
    SERVE_SET_OPENAI = SERVE_SET_WRITES | SERVE_SET_EMBEDDINGS | SERVE_SET_RERANK,
    SERVE_SET_ANTHROPIC = SERVE_SET_MESSAGES | SERVE_SET_COUNT_TOKENS,
    SERVE_SET_OLLAMA = SERVE_SET_OLLAMA_CHAT | SERVE_SET_GENERATE | SERVE_SET_EMBED | SERVE_SET_EMBED_ONE
};

struct serve_interface {
    enum serve_api id;
    const char *path;          /* of its POST; one that begins with /v1 is found without it, too */
    enum serve_kind kind;
    const char *id_prefix;     /* of answers' ids; NULL: they have none */
    const char *input;         /* the parameter that holds its messages or texts; */
    const char *schema;        /* and the one that holds a schema */
    uint32_t n_default;        /* tokens of a reply for which no length was given; 0: as many as fit */
    const struct serve_error_form *errors;
    const char *stream_type;   /* Content-Type of a stream; NULL: there are none */
    const char *ping;          /* what a stream has that nobody reads; NULL: nothing */
    bool streams, truncates;   /* where a request does not say whether: see serve_job */

    /* Makes the tasks, or puts the answer into `out` where no device is needed for it. False: the job's error says
     * why. */
    bool (*read)(struct serve_buffer *out, struct serve_job *job, const peridot_vocab *vocab, yyjson_val *root);
    /* of a conversation, called by serve_read_conversation: adds its messages */
    bool (*read_messages)(struct serve_conversation *c, struct serve_job *job, yyjson_val *root);

    /* events of a stream: before all others (NULL: none), more text, more of a thought (NULL: none), after all */
    void (*begin)(struct serve_job *job);
    void (*piece)(struct serve_task *task, const char *text, size_t size);
    void (*thought)(struct serve_task *task, const char *text, size_t size);
    /* more of the arguments of call i, which is new unless `begun`, and done where `complete` (NULL: none) */
    void (*call)(struct serve_task *task, size_t i, const char *text, size_t size);
    void (*end)(struct serve_job *job);
    /* an answer that is no stream; NULL: `read` wrote it */
    yyjson_mut_doc *(*body)(struct serve_job *job);
};

/* Tokens of a job; those of a prompt with several choices count once. */
struct serve_usage {
    uint64_t prompt, cached, reply, thought;
};
struct serve_usage serve_usage_of(const struct serve_job *job);

/* A server-sent event, of a name or of none. Frees the document. */
void serve_send_event(struct serve_job *job, const char *name, yyjson_mut_doc *doc);
/* The document on a line. Frees it. */
void serve_send_line(struct serve_job *job, yyjson_mut_doc *doc);
yyjson_mut_val *serve_string(yyjson_mut_doc *doc, const char *text);

#endif

/* Conversations: the messages of a request, read from its body and encoded as a prompt, without the oldest turns where
 * all do not fit and the request allows it. */
#ifndef PERIDOT_COMMAND_SERVE_MESSAGES_H
#define PERIDOT_COMMAND_SERVE_MESSAGES_H

#include "job.h"

struct serve_conversation {
    peridot_message *messages;       /* [n] */
    struct serve_buffer *contents;   /* [n]: of those that came in parts */
    size_t n, capacity, contents_capacity;
};

/* Tokens that a turn of a conversation has at least: of its reply, and of the message after it. */
uint64_t serve_reserve(uint32_t ctx);

/* The next message, whose content stays where it is. False: memory is short. */
bool serve_conversation_add(struct serve_conversation *c, struct serve_job *job, const char *role,
                            const char *content);
/* A list of messages as OpenAI's interfaces have them: the interface's input. False: the job's error says why. */
bool serve_conversation_read(struct serve_conversation *c, struct serve_job *job, yyjson_val *messages);
/* The task of a conversation: a `read` of wire.h. */
bool serve_read_conversation(struct serve_buffer *out, struct serve_job *job, const peridot_vocab *vocab,
                             yyjson_val *root);

#endif

/* Conversations: the messages of a request, read from its body and encoded as a prompt, without the oldest turns where
 * all do not fit and the request allows it. */
#ifndef PERIDOT_COMMAND_SERVE_MESSAGES_H
#define PERIDOT_COMMAND_SERVE_MESSAGES_H

#include "job.h"

/* Messages in the form of OpenAI's chat completions, whatever the interface. {0} is the beginning. */
struct serve_conversation {
    yyjson_mut_doc *doc;
    yyjson_mut_val *list;
    size_t n_told;             /* tools that results referred to */
    struct serve_buffer thought;   /* of the assistant's message that comes next */
};

/* All: false, or NULL: the job's error says why. `name`: the parameter that is read. */

/* The next message; its text is copied. */
bool serve_conversation_add(struct serve_conversation *c, struct serve_job *job, const char *role,
                            const char *content);
/* The next message, whose content is a text or a list of the parts that the interface has; results of calls that are
 * among them are messages before it. */
bool serve_conversation_add_content(struct serve_conversation *c, struct serve_job *job, const char *role,
                                    const char *name, yyjson_val *content);
/* The same with images before the content: a list of some of the job's pictures, or NULL. */
bool serve_conversation_add_seen(struct serve_conversation *c, struct serve_job *job, const char *role,
                                 const char *name, yyjson_val *content, yyjson_val *images);
/* Messages of one role that follow each other become one, up to one that has calls. */
bool serve_conversation_join(struct serve_conversation *c, struct serve_job *job);
/* Puts the messages into an order of roles that strict templates have a place for; without has_system also what a
 * system says first becomes part of the user's turn (roles.c). */
bool serve_conversation_fold(struct serve_conversation *c, struct serve_job *job, bool has_system);
/* Whether the model's template leaves out what systems say that are not the first message: some know no others, and say
 * nothing. */
bool serve_conversation_loses(const struct serve_conversation *c, struct serve_job *job, const peridot_vocab *vocab);
/* A call in the message of the assistant's that is the last, or in a new one. `arguments`: JSON text of an object. */
bool serve_conversation_add_call(struct serve_conversation *c, struct serve_job *job, const char *id, const char *name,
                                 const char *arguments);
/* The result of a call: a text, or parts of text and of images. */
bool serve_conversation_add_result(struct serve_conversation *c, struct serve_job *job, const char *id,
                                   const char *name, yyjson_val *content);
/* The role of a message, as the library calls it. */
const char *serve_conversation_role(struct serve_job *job, const char *name, yyjson_val *message);
/* A message as OpenAI's interfaces have it; and a list of them, the interface's input. */
bool serve_conversation_read_one(struct serve_conversation *c, struct serve_job *job, yyjson_val *message);
bool serve_conversation_read(struct serve_conversation *c, struct serve_job *job, yyjson_val *messages);

/* The prompt of the messages that the interface reads; ids are to be freed by peridot_free, whatever is returned, and
 * can be too many. */
bool serve_conversation_encode(int32_t **ids, size_t *n, struct serve_job *job, const peridot_vocab *vocab,
                               yyjson_val *root);
/* The task of a conversation: a `read` of wire.h. */
bool serve_read_conversation(struct serve_buffer *out, struct serve_job *job, const peridot_vocab *vocab,
                             yyjson_val *root);

#endif

/* An interface is how a kind of client speaks: the form of its answers, whole and as events. Each has a file, wire_*.c,
 * and a row of the table in wire.c. Here is what they share. */
#ifndef PERIDOT_COMMAND_SERVE_WIRE_H
#define PERIDOT_COMMAND_SERVE_WIRE_H

#include "job.h"

struct serve_interface {
    /* events of a stream: before all others (NULL: none), more text, more of a thought (NULL: none), after all others */
    void (*begin)(struct serve_job *job);
    void (*piece)(struct serve_task *task, const char *text, size_t size);
    void (*thought)(struct serve_task *task, const char *text, size_t size);
    void (*end)(struct serve_job *job);
    /* an answer that is no stream */
    yyjson_mut_doc *(*body)(struct serve_job *job);
};

extern const struct serve_interface serve_wire_chat, serve_wire_completions, serve_wire_responses,
    serve_wire_embeddings;

const struct serve_interface *serve_interface_of(const struct serve_job *job);

/* Tokens of a job; those of a prompt with several choices count once. */
struct serve_usage {
    uint64_t prompt, cached, reply, thought;
};
struct serve_usage serve_usage_of(const struct serve_job *job);

/* A server-sent event, of a name or of none. Frees the document. */
void serve_send_event(struct serve_job *job, const char *name, yyjson_mut_doc *doc);
yyjson_mut_val *serve_string(yyjson_mut_doc *doc, const char *text);

#endif

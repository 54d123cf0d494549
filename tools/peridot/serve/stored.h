/* Responses that are kept, so that a request of /v1/responses can go on from one by previous_response_id, and GET and
 * DELETE find it. They are in memory, at most so many and of so many bytes: those that were used least recently go, and
 * a response never before those that go on from it. Each has the items that are its own, and its parent the ones before
 * them, so that a conversation takes as much memory as it has items. Whoever has another API key finds none of them.
 * All functions can be called by any thread. */
#ifndef PERIDOT_COMMAND_SERVE_STORED_H
#define PERIDOT_COMMAND_SERVE_STORED_H

#include "buffer.h"

#include <pthread.h>
#include <stdatomic.h>

struct serve_job;
struct serve_server;

enum { SERVE_STORED_MAX = 1000, SERVE_STORED_BYTES = 64 << 20 };

struct serve_stored {
    pthread_mutex_t lock;
    struct serve_response *first, *last;   /* the one that was used most recently is the first */
    size_t n;                  /* of these */
    size_t size;               /* bytes of all that are in memory: some are only parents, or are being read */
    atomic_size_t lent;        /* bytes that requests have taken from here */
};

void serve_stored_free(struct serve_stored *stored);

/* Where the job's request goes on from a response, puts the items of that conversation before its own input. False: the
 * job's error says why not. */
bool serve_stored_continue(struct serve_job *job);
/* Keeps the answer, as it is written, unless the request says otherwise or memory is short for it. */
void serve_stored_add(struct serve_job *job, yyjson_mut_val *response);
/* The job no longer needs what it goes on from. */
void serve_stored_leave(struct serve_job *job);

/* A request about what is kept; texts are NULL where it does not have them. */
struct serve_ask {
    const char *method, *path;
    uint32_t key;              /* of the client */
    const char *limit, *order, *after, *stream;
};
/* /v1/responses/ID and /v1/responses/ID/input_items: writes the body and gives the status. */
int serve_ask_stored(struct serve_buffer *out, struct serve_server *server, const struct serve_ask *ask);

#endif

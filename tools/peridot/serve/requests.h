/* A task as a request of the library: what it asks for, and what comes out of it, token by token, on the thread of the
 * engine. */
#ifndef PERIDOT_COMMAND_SERVE_REQUESTS_H
#define PERIDOT_COMMAND_SERVE_REQUESTS_H

#include "job.h"

/* From the task's tokens, which are a prompt and what was written before a device was lost. */
peridot_status serve_request_submit(struct serve_task *task, peridot_session *session, peridot_session *draft_session);
/* Frees the request, if there is one, and counts what it did. */
void serve_request_end(struct serve_task *task);
/* The stop text that ended it; NULL: none. A reply of the greatest length may end with one, too. */
const char *serve_request_find_stop(const struct serve_task *task);

#endif

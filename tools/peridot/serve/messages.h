/* The messages of a request: read from its body and encoded as a prompt, without the oldest turns where all do not fit
 * and the request allows it. */
#ifndef PERIDOT_COMMAND_SERVE_MESSAGES_H
#define PERIDOT_COMMAND_SERVE_MESSAGES_H

#include "job.h"

/* Tokens that a turn of a conversation has at least: of its reply, and of the message after it. */
uint64_t serve_reserve(uint32_t ctx);

/* The ids are to be freed by peridot_free, whatever is returned; they can be too many. False: the job's error says
 * why. */
bool serve_messages_encode(int32_t **ids, size_t *n, struct serve_job *job, const peridot_vocab *vocab,
                           yyjson_val *root);

#endif

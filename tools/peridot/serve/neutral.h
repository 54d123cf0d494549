/* Parameters that other servers have and whose values change no answer here: a table of their names, of the interfaces
 * that have them, and of the values that are accepted. */
#ifndef PERIDOT_COMMAND_SERVE_NEUTRAL_H
#define PERIDOT_COMMAND_SERVE_NEUTRAL_H

#include "job.h"

/* Sets of interfaces. */
enum {
    SERVE_SET_CHAT = 1 << SERVE_CHAT, SERVE_SET_COMPLETIONS = 1 << SERVE_COMPLETIONS,
    SERVE_SET_RESPONSES = 1 << SERVE_RESPONSES, SERVE_SET_EMBEDDINGS = 1 << SERVE_EMBEDDINGS,
    SERVE_SET_TOKENIZE = 1 << SERVE_TOKENIZE, SERVE_SET_DETOKENIZE = 1 << SERVE_DETOKENIZE,
    SERVE_SET_WRITES = SERVE_SET_CHAT | SERVE_SET_COMPLETIONS | SERVE_SET_RESPONSES,
    SERVE_SET_OPENAI = SERVE_SET_WRITES | SERVE_SET_EMBEDDINGS
};

/* Whether the job's interface has such a parameter. */
bool serve_is_neutral(const struct serve_job *job, const char *name);
/* Accepts its value, or says which ones are. null is always accepted. */
bool serve_neutral_read(struct serve_job *job, const char *name, yyjson_val *value);

#endif

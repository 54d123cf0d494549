/* What OpenAI's chat completions, completions and embeddings have in common. */
#ifndef PERIDOT_COMMAND_SERVE_WIRE_OPENAI_H
#define PERIDOT_COMMAND_SERVE_WIRE_OPENAI_H

#include "wire.h"

yyjson_mut_val *serve_openai_usage(yyjson_mut_doc *doc, const struct serve_job *job);
/* {"id": ..., "object": ..., "created": ..., "model": ..., "choices": []} */
void serve_completion_begin(yyjson_mut_doc *doc, yyjson_mut_val **root, yyjson_mut_val **choices,
                            const struct serve_job *job, const char *object);
yyjson_mut_doc *serve_completion_new(yyjson_mut_val **root, yyjson_mut_val **choices, const struct serve_job *job,
                                     const char *object);
/* The same with all choices; `add` writes what is in one of them. */
yyjson_mut_doc *serve_completion_whole(yyjson_mut_val **root, struct serve_job *job, const char *object,
                                       void (*add)(yyjson_mut_doc *doc, yyjson_mut_val *choice,
                                                   struct serve_task *task));
/* "stop", "length", "tool_calls", or null. */
yyjson_mut_val *serve_finish_reason(yyjson_mut_doc *doc, enum serve_finish finish);
/* The usage, where it was asked for, and the end of a stream. */
void serve_completion_end(struct serve_job *job, const char *object);

/* return_token_ids, as vLLM has it: the reply's since the last event; the prompt's stand beside the first of them, in a
 * chat beside its choices. The token that ends a text is not in it. */
void serve_add_ids(yyjson_mut_doc *doc, yyjson_mut_val *choice, struct serve_task *task);
void serve_add_prompt_ids(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct serve_task *task);
/* How many messages were left out, for those who asked with `full`. */
void serve_add_dropped(yyjson_mut_doc *doc, yyjson_mut_val *root, const struct serve_job *job);

#endif

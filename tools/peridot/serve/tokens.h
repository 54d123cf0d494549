/* Tokens as JSON: their pieces of text, their probabilities, their ids. */
#ifndef PERIDOT_COMMAND_SERVE_AT_ONCE_H
#define PERIDOT_COMMAND_SERVE_AT_ONCE_H

#include "job.h"

/* The bytes that a token stands for within a text. */
void serve_put_piece(struct serve_buffer *out, const peridot_vocab *vocab, int32_t token);
/* Probabilities first .. end - 1 as chat completions have them; null where they were not asked for. */
yyjson_mut_val *serve_chat_logprobs(yyjson_mut_doc *doc, const struct serve_task *task, size_t first, size_t end);
/* The same as completions have them: lists side by side. With echo the first token of the prompt has none. */
yyjson_mut_val *serve_text_logprobs(yyjson_mut_doc *doc, struct serve_task *task, size_t first, size_t end);
yyjson_mut_val *serve_token_ids(yyjson_mut_doc *doc, const int32_t *ids, size_t n);

#endif

/* Texts that are read as they are, without a template: of completions and embeddings. */
#ifndef PERIDOT_COMMAND_SERVE_TEXTS_H
#define PERIDOT_COMMAND_SERVE_TEXTS_H

#include "job.h"

/* Tasks of the interface's input: a text, its ids, texts, or lists of ids. A `read` of wire.h. */
bool serve_read_texts(struct serve_buffer *out, struct serve_job *job, const peridot_vocab *vocab, yyjson_val *root);
/* A task of a list of ids. */
bool serve_read_ids(struct serve_job *job, const peridot_vocab *vocab, const char *name, yyjson_val *list);

#endif

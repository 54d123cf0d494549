/* The parameters of requests: a table of their names, the interfaces that have them, and how each is read. What is
 * neither in it nor in that of neutral.c, and is no parameter of another interface, is ignored, and named in a
 * header. */
#ifndef PERIDOT_COMMAND_SERVE_PARAMS_H
#define PERIDOT_COMMAND_SERVE_PARAMS_H

#include "job.h"

/* Puts what the body says into the job, but for texts; false: the job's error says what is wrong. */
bool serve_params_read(struct serve_job *job, yyjson_val *root);
/* A string without a NUL in it, or NULL and the error. */
const char *serve_param_text(struct serve_job *job, const char *name, yyjson_val *value);

/* Interfaces, each in its file; serve_interface_get of read.h lists them all. */
extern const struct serve_interface serve_wire_chat, serve_wire_completions, serve_wire_responses,
    serve_wire_embeddings, serve_wire_tokenize, serve_wire_detokenize, serve_wire_messages, serve_wire_count_tokens,
    serve_wire_ollama_chat, serve_wire_generate, serve_wire_embed, serve_wire_embed_one, serve_wire_show,
    serve_wire_rerank, serve_wire_completion, serve_wire_infill, serve_wire_apply_template;

#endif

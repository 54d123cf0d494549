/* The prompt of a text's middle as llama.cpp's server makes it for editors: files, what stands before a place, what
 * stands after it. What of them does not fit the context is left out, as editors send what they have. */
#ifndef PERIDOT_COMMAND_SERVE_INFILL_H
#define PERIDOT_COMMAND_SERVE_INFILL_H

#include "job.h"

/* The task of a body with input_prefix, input_suffix, prompt and input_extra. A `read` of wire.h. */
bool serve_read_infill(struct serve_buffer *out, struct serve_job *job, const peridot_vocab *vocab, yyjson_val *root);

#endif

/* Vectors of texts as JSON. */
#ifndef PERIDOT_COMMAND_SERVE_VECTORS_H
#define PERIDOT_COMMAND_SERVE_VECTORS_H

#include "job.h"

/* A list of numbers. */
yyjson_mut_val *serve_vector(yyjson_mut_doc *doc, const struct serve_task *task);
/* Its little-endian floats, as base64. */
yyjson_mut_val *serve_vector_base64(yyjson_mut_doc *doc, const struct serve_task *task);

#endif

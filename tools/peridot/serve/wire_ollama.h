/* What Ollama's interfaces have in common: answers are JSON objects, those of a stream a line each, of which the last
 * one is "done" and says what it took. */
#ifndef PERIDOT_COMMAND_SERVE_WIRE_OLLAMA_H
#define PERIDOT_COMMAND_SERVE_WIRE_OLLAMA_H

#include "wire.h"

#define SERVE_LINES "application/x-ndjson"

/* {"model": ..., "created_at": ...} */
yyjson_mut_doc *serve_ollama_new(yyjson_mut_val **root, const struct serve_job *job);
/* Adds what it took: durations are in nanoseconds. */
void serve_ollama_add_costs(yyjson_mut_doc *doc, yyjson_mut_val *root, const struct serve_job *job);
/* "2026-01-31T23:59:59Z" */
yyjson_mut_val *serve_time(yyjson_mut_doc *doc, int64_t seconds);

#endif

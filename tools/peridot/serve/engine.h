/* The engine: one thread that owns the model and its session, submits the tasks as requests and runs the session. Who
 * waits, who shares a prefix and who makes room is the session's business. When the device is lost, the model is opened
 * again and all tasks are submitted anew, with what they have written. */
#ifndef PERIDOT_COMMAND_SERVE_ENGINE_H
#define PERIDOT_COMMAND_SERVE_ENGINE_H

#include "server.h"

/* Opens the model, and begins. */
peridot_status serve_engine_create(struct serve_engine **out, struct serve_server *server,
                                   struct serve_model *served);
/* Ends what is at work after the present step, with status 503. */
void serve_engine_stop(struct serve_engine *engine);
/* The same; waits for it, and closes the model. NULL is allowed. */
void serve_engine_free(struct serve_engine *engine);

/* Takes over an ownership of a job that has tasks. */
void serve_engine_add(struct serve_engine *engine, struct serve_job *job);
/* Seconds that the present step has taken so far. */
double serve_engine_step_s(const struct serve_engine *engine);

/* The tokenizer, for the reader: of the model that was opened last, whether or not it is there now. The caller closes
 * it. */
peridot_vocab *serve_engine_vocab(struct serve_engine *engine);

#endif

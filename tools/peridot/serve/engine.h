/* The engine: one thread that owns the model and its session, submits the tasks as requests, by turns of their clients
 * (admission.h), and runs the session. Who shares a prefix and who makes room in the cache is the session's business.
 * When the device is lost, the model is opened again and all tasks are submitted anew, with what they have written. The
 * model is opened when its first job comes, and closed after --idle or when another one needs the memory. */
#ifndef PERIDOT_COMMAND_SERVE_ENGINE_H
#define PERIDOT_COMMAND_SERVE_ENGINE_H

#include "server.h"

/* Begins; opens the first model at once, and others when they are needed. */
peridot_status serve_engine_create(struct serve_engine **out, struct serve_server *server,
                                   struct serve_model *served);
/* Ends what is at work after the present step, with status 503. */
void serve_engine_stop(struct serve_engine *engine);
/* The same, and waits for the thread. NULL is allowed. */
void serve_engine_join(struct serve_engine *engine);
/* Closes the model, when the threads that use the engine have ended. NULL is allowed. */
void serve_engine_free(struct serve_engine *engine);

/* Takes over an ownership of a job that has tasks. */
void serve_engine_add(struct serve_engine *engine, struct serve_job *job);
/* Seconds that the present step has taken so far. */
double serve_engine_step_s(const struct serve_engine *engine);

/* Gives a job the tokenizer that its body is read by: that stays when the model is unloaded. False: the model was never
 * open, or is not while the job has pictures; the engine takes the job over, opens the model and gives the job back to
 * the reader. */
bool serve_engine_set_vocab(struct serve_engine *engine, struct serve_job *job);

/* Seconds without a task; -1: it has one, or no model. */
double serve_engine_idle_s(struct serve_engine *engine);
/* Waits until the model is closed; false: it has become busy. */
bool serve_engine_unload(struct serve_engine *engine);

#endif

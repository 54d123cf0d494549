/* The threads that do jobs: readers, those that compile grammars, the engine, which alone uses the
 * models, and those that call tools. */
#ifndef PERIDOT_COMMAND_SERVE_STAGES_STAGES_H
#define PERIDOT_COMMAND_SERVE_STAGES_STAGES_H

#include "../job/job.h"

/* ---- engine ---- */

/* Begins; opens the first model at once, and others when they are needed. */
peridot_status serve_engine_create(struct serve_engine **out, struct serve_server *server,
                                   struct serve_model *served);
/* Ends what is at work after the present step, with status 503. */
void serve_engine_stop(struct serve_engine *engine);
/* The same, and waits for the thread. NULL is allowed. */
void serve_engine_join(struct serve_engine *engine);
/* Closes the model, when the threads that use the engine have ended. NULL is allowed. */
void serve_engine_free(struct serve_engine *engine);

/* Of SERVE_QUEUED: jobs that have tasks. */
struct serve_queue *serve_engine_queue(const struct serve_job *job);
/* Of SERVE_LOADING: the model is opened if it is not, and the job goes on: its error says where it cannot be. */
struct serve_queue *serve_engine_unread(const struct serve_job *job);
void serve_engine_pass(struct serve_job *job);
/* Seconds that the present step has taken so far. */
double serve_engine_step_s(const struct serve_engine *engine);

/* Gives a job the tokenizer that its body is read by: that stays when the model is unloaded. False: the model was never
 * open, or is not while the job has pictures: the job has to wait for that. */
bool serve_engine_set_vocab(struct serve_job *job);

/* Seconds without a task; -1: it has one, or no model. */
double serve_engine_idle_s(struct serve_engine *engine);
/* Waits until the model is closed; false: it has become busy. */
bool serve_engine_unload(struct serve_engine *engine);

/* ---- tools ---- */

enum { SERVE_CALL_MAX = 1 << 20 };   /* bytes of a request */

/* With the toolbox of the server. */
peridot_status serve_tools_create(struct serve_tools **out, struct serve_server *server);
/* Ends the calls, with status 503. NULL is allowed, here and below. */
void serve_tools_stop(struct serve_tools *tools);
void serve_tools_free(struct serve_tools *tools);

/* Hands on a job whose interface is of the kind SERVE_TOOLS; false: it does not, and the job's error says why. */
bool serve_tools_add(struct serve_tools *tools, struct serve_job *job);
/* Of SERVE_CALLING. */
struct serve_queue *serve_tools_queue(const struct serve_job *job);
void serve_tools_step(struct serve_job *job);
/* Whether a call is to end early; asked by its thread. */
bool serve_tools_ends(const struct serve_tools *tools, struct serve_job *job);

/* ---- read ---- */

peridot_status serve_reader_create(struct serve_reader **out, struct serve_server *server);
/* Refuses what is still waiting. NULL is allowed. */
void serve_reader_free(struct serve_reader *reader);
/* Hands on a job, whose body is complete; false: too many wait already. */
bool serve_reader_add(struct serve_reader *reader, struct serve_job *job);

/* Makes the tasks of a job from its body, or puts the answer into `out` where no device is needed for it. False: the
 * job's error says why. */
bool serve_read_body(struct pd_buffer *out, struct serve_job *job, const peridot_vocab *vocab);

/* ---- stages ---- */

/* [SERVE_N_STAGES]: the one table of stages. */
extern const struct serve_stage_row serve_stages[];

/* The one table of interfaces. */
const struct serve_interface *serve_interface_get(enum serve_api id);

#endif

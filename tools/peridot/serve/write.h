/* What comes out of tasks, as the job's interface writes it (wire.h): in one piece, or as events. Called by whoever has
 * the job at the time. */
#ifndef PERIDOT_COMMAND_SERVE_WRITE_H
#define PERIDOT_COMMAND_SERVE_WRITE_H

#include "job.h"

/* Before anything is written: the events that begin a stream. Again, it does nothing. */
void serve_write_begin(struct serve_job *job);
/* The text of a task grew. */
void serve_write_piece(struct serve_task *task);
/* A task has ended. */
void serve_write_task_end(struct serve_task *task);
/* All have: the answer is complete. */
void serve_write_end(struct serve_job *job);

#endif

/* What the files of this room have among themselves: how a job waits, is answered and ends. */
#ifndef PERIDOT_COMMAND_SERVE_JOB_JOB_PRIVATE_H
#define PERIDOT_COMMAND_SERVE_JOB_JOB_PRIVATE_H

#include "job.h"

/* ---- stages ---- */

/* Whether such a thread may move a job so. */
bool serve_stage_may_follow(const struct serve_stage_row *rows, enum serve_stage from, enum serve_stage to,
                            enum serve_owner owner);

/* ---- job ---- */

/* The answer begins: 200, or the error's status with its object as the whole body. Does nothing once it has begun. */
void serve_job_begin(struct serve_job *job, int status);
void serve_job_fail(struct serve_job *job);

/* ---- pings ---- */

/* A stream that has begun, until it is removed, which one that was not added may be. */
void serve_pings_add(struct serve_pings *p, struct serve_job *job);
void serve_pings_remove(struct serve_pings *p, struct serve_job *job);

/* ---- stored ---- */

/* The job no longer needs what it goes on from. */
void serve_stored_leave(struct serve_job *job);

/* ---- streams ---- */

/* More of the answer; `end`: it is complete. Under the answer's lock. */
void serve_streams_write(struct serve_job *job, const char *text, size_t size, bool end);
/* The job is freed. */
void serve_streams_drop(struct serve_job *job);

#endif

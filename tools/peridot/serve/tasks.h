/* The tasks of a job: one for each choice of each of its texts, with room for a reply. */
#ifndef PERIDOT_COMMAND_SERVE_TASKS_H
#define PERIDOT_COMMAND_SERVE_TASKS_H

#include "job.h"

/* All but serve_limit: false, and the job's error, where it is too much or memory is short. */

/* Room for the tasks of so many texts. */
bool serve_tasks_make(struct serve_job *job, size_t n_texts);
/* The tasks of the next text: its choices. */
bool serve_tasks_add(struct serve_job *job, const int32_t *ids, size_t n_ids);

/* What encoding the job's texts may give, and that it ends where nobody waits for it. */
peridot_encode_limit serve_limit(struct serve_job *job);
/* Encoding has failed. */
bool serve_refuse_encoding(struct serve_job *job, const peridot_encode_limit *limit, peridot_status status);

/* Tokens that a turn of a conversation has at least: of its reply, and of the message after it. */
uint64_t serve_reserve(uint32_t ctx);

#endif

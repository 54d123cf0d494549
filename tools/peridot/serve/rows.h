/* Rows that the model hands out: logits, from which probabilities of tokens and scores of documents come, and hidden
 * states, which are pooled to vectors. */
#ifndef PERIDOT_COMMAND_SERVE_ROWS_H
#define PERIDOT_COMMAND_SERVE_ROWS_H

#include "job.h"

/* Each is a peridot_row for a request whose `user` is the task. */

/* Of an embedding: pools the hidden states of the prompt to the task's vector. */
bool serve_take_hidden(void *user, peridot_sequence *sequence, uint32_t pos, const float *row, size_t n);
/* How a job's vectors are pooled: MEAN, LAST or CLS. */
peridot_pool serve_pool_of(const struct serve_job *job);
/* After the last row: what was pooled becomes the task's vector. False, with the job's error: memory is short. */
bool serve_finish_vector(struct serve_task *task, const peridot_model *model);
/* The score of the task's document. */
bool serve_take_score(void *user, peridot_sequence *sequence, uint32_t pos, const float *row, size_t n);
/* Of a prompt with echo: adds the probabilities of its tokens. */
bool serve_take_prompt_logits(void *user, peridot_sequence *sequence, uint32_t pos, const float *row, size_t n);
/* Keeps the row for the token that is drawn next. */
bool serve_take_logits(void *user, peridot_sequence *sequence, uint32_t pos, const float *row, size_t n);
/* That token: its probability in the row, and the likeliest ones'. */
void serve_take_token(struct serve_task *task, int32_t token);

#endif

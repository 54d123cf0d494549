/* Rows that the model hands out: logits, from which probabilities of tokens come, and hidden states, which are pooled
 * to vectors. */
#ifndef PERIDOT_COMMAND_SERVE_ROWS_H
#define PERIDOT_COMMAND_SERVE_ROWS_H

#include "job.h"

/* Tasks that are only read, of one job, each with a sequence. */
struct serve_rows {
    struct serve_task *const *tasks;
    size_t n;
};

/* Evaluates a prompt for each task, and takes their rows. */
peridot_status serve_rows_read(struct serve_rows *rows, peridot_session *session, const peridot_prompt *prompts);

/* A peridot_row for a request whose `user` is the task: keeps the row for the token that is drawn next. */
bool serve_take_logits(void *user, peridot_sequence *sequence, uint32_t pos, const float *row, size_t n);
/* That token: its probability in the row, and the likeliest ones'. */
void serve_take_token(struct serve_task *task, int32_t token);

#endif

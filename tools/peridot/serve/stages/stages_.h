
#ifndef PERIDOT_COMMAND_SERVE_STAGES_STAGES_PRIVATE_H
#define PERIDOT_COMMAND_SERVE_STAGES_STAGES_PRIVATE_H

#include "../job/job.h"
#include "stages.h"

/* ---- requests ---- */

/* From the task's tokens, which are a prompt and what was written before a device was lost. */
peridot_status serve_request_submit(struct serve_task *task, peridot_session *session, const struct cmd_draft *draft);
/* Frees the request, if there is one, and counts what it did. */
void serve_request_end(struct serve_task *task);
/* The stop text that ended it; NULL: none. A reply of the greatest length may end with one, too. */
const char *serve_request_find_stop(const struct serve_task *task);

/* ---- rows ---- */

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

/* ---- admission ---- */

struct serve_admission {
    struct serve_fair fair;
    uint32_t n_parallel;       /* tasks at work, at most */
};

/* Refuses the dearest waiting jobs of the clients who have most, as far as there are more than n_most. */
void serve_admission_limit(const struct serve_task *tasks, size_t n_most);
/* The task that is to be submitted next; NULL: none. Another one may have to give way, and waits again. */
struct serve_task *serve_admission_next(struct serve_admission *a, struct serve_task *tasks);

/* ---- grammars ---- */

struct serve_grammars;

peridot_status serve_grammars_create(struct serve_grammars **out, struct serve_server *server);
/* What still waits gets an error. NULL is allowed. */
void serve_grammars_free(struct serve_grammars *grammars);
/* False: the job needs a grammar that has to be compiled. Its vocab is set. */
bool serve_grammars_find(struct serve_job *job);
/* Of SERVE_TRYING and of SERVE_COMPILING. */
struct serve_queue *serve_grammars_tries(const struct serve_job *job);
struct serve_queue *serve_grammars_rest(const struct serve_job *job);
void serve_grammars_try(struct serve_job *job);
void serve_grammars_compile(struct serve_job *job);

/* ---- read ---- */

/* The reader's stages. */
struct serve_queue *serve_reader_queue(const struct serve_job *job);
void serve_reader_read(struct serve_job *job);
void serve_reader_go_on(struct serve_job *job);
void serve_reader_encode(struct serve_job *job);
/* A job that has all that the engine needs, or an error. */
void serve_reader_pass_on(struct serve_job *job);

/* ---- facts ---- */

/* Also chooses the template of conversations; sets `misused` where --think asks for what that lacks. */
peridot_status serve_facts_read(struct serve_server *server, struct serve_model *served, const peridot_model *model);
void serve_facts_free(struct serve_model *served);

#endif

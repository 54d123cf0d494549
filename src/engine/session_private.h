/* What session.c lends to steps.c, batch.c and sequences.c: recording a pass, and preparing and checking what it reads and
 * gives. */
#ifndef PD_ENGINE_SESSION_PRIVATE_H
#define PD_ENGINE_SESSION_PRIVATE_H

#include "engine/session.h"

#define PD_LOGITS_ROWS 32    /* rows of logits computed at once for callers that want every row */

/* Rows of logits, and of the best of them, that hold results. Passes over several tokens write to row 0, steps to the last
 * PD_N_SLOTS rows. With several sequences a step of m of them writes to rows 1 .. m, and rows from 1 + n_sequences on keep
 * results of sequences that are not in a pass. */
static inline uint32_t pd_n_results(uint32_t n_sequences) { return 1 + (n_sequences == 1 ? 0 : 2 * n_sequences) + PD_N_SLOTS; }

/* Input of passes over n_rows tokens, for the host to write; `tokens`: where these are, or an empty span. */
peridot_status pd_session_alloc_input(struct pd_input *in, struct pd_session *s, uint32_t n_rows, struct pd_span tokens);
struct pd_pass pd_session_make_pass(struct pd_session *s, struct pd_recorder *r, const struct pd_input *in, uint32_t n_tokens);
/* The pass itself. With `head` the last token's logits go to row `result`, and the best of them to the host; of
 * tokens that are apart, those of all to the rows from there on. */
void pd_session_forward(struct pd_session *s, const struct pd_pass *pass, bool head, uint32_t result);
/* A pass over several tokens, recorded as it comes; its result is row 0. */
peridot_status pd_session_record_pass(struct pd_session *s, struct pd_commands *commands, uint32_t n_tokens, bool head);
/* Logits of n rows of the present chunk, in rising order, to the rows after n_results; neighbours go together. */
peridot_status pd_session_record_rows(struct pd_session *s, const uint32_t *rows, uint32_t n);
/* Where row m of a pass stands. Its text begins at first_slot of its sequence: 0 but for texts side by side. */
struct pd_row {
    uint32_t sequence, pos, first_slot;
};
/* Row m of a pass being prepared: the token, its place and its angles; or all but the token. */
void pd_session_write_token(struct pd_session *s, const struct pd_input *in, uint32_t m, int32_t token, struct pd_row row);
void pd_session_write_place(struct pd_session *s, const struct pd_input *in, uint32_t m, struct pd_row row);
/* The grid of a decode step whose n_tokens rows are written, and where the rows' splits are. */
void pd_session_write_splits(struct pd_session *s, const struct pd_input *in, uint32_t n_tokens);
/* Sees to it that a sequence has pages for its first n positions. */
peridot_status pd_session_extend(struct pd_session *s, uint32_t sequence, uint32_t n);
/* A classification head may have biases; they are added to rows of scores as these reach the host. */
void pd_session_add_bias(struct pd_session *s, struct pd_span span);
/* Tokens of the next submit, after one of n took so long where `planned` might have been taken; at most four times as many. */
uint32_t pd_next_chunk(uint32_t planned, uint32_t n, double seconds);
peridot_status pd_session_check_head(const struct pd_session *s);
/* Fails, with the reason, where the best of the last position's logits is no number. */
peridot_status pd_session_check_finite(const struct pd_session *s, float best);
peridot_status pd_session_check_tokens(const struct pd_session *s, const int32_t *tokens, size_t n);

/* sequences.c: memory and recorded commands of several sequences; nothing where there is only one. */
peridot_status pd_sequences_create(struct pd_session *s);
void pd_sequences_free(struct pd_session *s);

/* steps.c: the slots; a step of one token as an evaluation of its own; and recorded into `commands` and run twice, as in
 * pd_session_run_pass. */
peridot_status pd_steps_create(struct pd_session *s);
void pd_steps_free(struct pd_session *s);
peridot_status pd_steps_eval(struct pd_session *s, int32_t token);
peridot_status pd_steps_run_pass(struct pd_session *s, struct pd_commands *commands);

#endif

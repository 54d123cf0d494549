/* What session.c lends to batch.c and sequences.c: recording a pass, and preparing and checking what it reads and gives. */
#ifndef PD_MODEL_SESSION_PRIVATE_H
#define PD_MODEL_SESSION_PRIVATE_H

#include "model/session.h"

#define PD_LOGITS_ROWS 32    /* rows of logits computed at once for callers that want every row */

/* Rows of logits, and of the best of them, that hold results. Passes write to row 0. With several sequences a step of m of them
 * writes to rows 1 .. m, and rows from 1 + n_sequences on keep results of sequences that are not in a pass. */
static inline uint32_t pd_n_results(uint32_t n_sequences) { return n_sequences == 1 ? 1 : 1 + 2 * n_sequences; }

struct pd_pass pd_session_make_pass(struct pd_session *s, struct pd_recorder *r, uint32_t n_tokens);
/* With `head` the last token's logits go to row 0, and the best of them to the host. */
peridot_status pd_session_record_pass(struct pd_session *s, struct pd_commands *commands, uint32_t n_tokens, bool head);
/* Logits of n rows of the present chunk, in rising order, to the rows after n_results; neighbours go together. */
peridot_status pd_session_record_rows(struct pd_session *s, const uint32_t *rows, uint32_t n);
/* How a decode step of n_tokens, the furthest at position `pos`, splits its keys. */
void pd_session_write_splits(struct pd_session *s, uint32_t pos, uint32_t n_tokens);
/* A token of the pass being prepared: row m of tokens, places and angles. */
void pd_session_write_token(struct pd_session *s, uint32_t m, int32_t token, struct pd_place place);
/* A classification head may have biases; they are added to rows of scores as these reach the host. */
void pd_session_add_bias(struct pd_session *s, struct pd_span span);
peridot_status pd_session_check_head(const struct pd_session *s);
peridot_status pd_session_check_tokens(const struct pd_session *s, const int32_t *tokens, size_t n);

/* sequences.c: memory and recorded commands of several sequences; nothing where there is only one. */
peridot_status pd_sequences_create(struct pd_session *s);
void pd_sequences_free(struct pd_session *s);

#endif

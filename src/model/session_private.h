/* What session.c lends to batch.c: recording a pass, and preparing and checking what it reads and gives. */
#ifndef PD_MODEL_SESSION_PRIVATE_H
#define PD_MODEL_SESSION_PRIVATE_H

#include "model/session.h"

#define PD_LOGITS_ROWS 32    /* rows of logits computed at once for callers that want every row */

/* With `head` the last token's logits go to row 0, and the best of them to the host. */
peridot_status pd_session_record_pass(struct pd_session *s, struct pd_commands *commands, uint32_t n_tokens, bool head);
/* Logits of n rows of the present chunk, in rising order, to the rows after row 0; neighbours go together. */
peridot_status pd_session_record_rows(struct pd_session *s, const uint32_t *rows, uint32_t n);
/* A token of the pass being prepared: row m of tokens, places and angles. */
void pd_session_write_token(struct pd_session *s, uint32_t m, int32_t token, struct pd_place place);
/* A classification head may have biases; they are added to rows of scores as these reach the host. */
void pd_session_add_bias(struct pd_session *s, struct pd_span span);
peridot_status pd_session_check_head(const struct pd_session *s);
peridot_status pd_session_check_tokens(const struct pd_session *s, const int32_t *tokens, size_t n);

#endif

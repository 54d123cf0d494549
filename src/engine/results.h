/* What passes leave of a sequence: logits, candidates and the next token, drawn from them on the host. Nothing here
 * evaluates: where the device no longer has the logits, the session evaluates the last token again. */
#ifndef PD_ENGINE_RESULTS_H
#define PD_ENGINE_RESULTS_H

#include "engine/workspace.h"

/* Fails where the model has no head. */
peridot_status pd_check_head(const struct pd_model *model);
/* Fails where several ranks hold the model's layers. `what` is not possible then: "sequences cannot be saved". */
peridot_status pd_check_whole(const struct pd_model *model, const char *what);
/* Fails, with the reason, where some of n numbers of a position is not finite. `what` they are: "logits". */
peridot_status pd_check_finite(const struct pd_model *model, const char *what, uint32_t pos, const float *x, size_t n);
/* The same of the best logit of the sequence's last position: a NaN among them is the best. */
peridot_status pd_check_best(const struct pd_model *model, const struct pd_sequence *q);
/* Whether the device still has the logits of the sequence's last position, in row q->logits_row. */
bool pd_has_logits(const struct pd_workspace *w, const struct pd_sequence *q);
/* Under a grammar a draw may need the mask of all tokens that may come next: follows the text, and goes on with the
 * mask for so many steps (pd_grammar_mask_some). *ready: the draw has what it needs. One that was not prepared makes
 * its mask whole. */
peridot_status pd_draw_prepare(bool *ready, const struct pd_model *model, struct pd_sequence *q, uint64_t steps);
/* Whether a draw needs all logits, not the best PD_TOPK. With a grammar that depends on how many of these it allows. */
bool pd_draw_needs_logits(const struct pd_model *model, struct pd_sequence *q);
/* Draws the next token from the best candidates, or from `logits` [n_outputs] where it needs them all. */
peridot_status pd_draw(int32_t *token, const struct pd_workspace *w, struct pd_sequence *q, const float *logits);
/* The same right after the pass that computed its logits, which are read where they are needed. */
peridot_status pd_draw_next(int32_t *token, struct pd_workspace *w, struct pd_sequence *q);

#endif

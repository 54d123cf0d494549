/* What callers want of the rows of prompts while these are evaluated: logits, or hidden states of the final norm. They
 * are read to the host after the pass, and handed to a function of the caller's by the thread that runs the session. */
#ifndef PD_ENGINE_OUTPUTS_H
#define PD_ENGINE_OUTPUTS_H

#include "engine/pass.h"

/* Called for rows: [n_outputs] logits or label scores, or [d_model] hidden states. False: stop. */
typedef bool (*pd_row_call)(void *user, struct pd_sequence *sequence, uint32_t pos, const float *row, size_t n);

struct pd_row_outputs {
    pd_row_call logits, hidden;        /* NULL: none */
    void (*failed)(void *user, peridot_status status);   /* a call said stop, or a row is not finite; NULL: then the
                                                            whole evaluation fails */
    void *user;
    uint32_t first;                    /* of positions from here on */
    bool no_head;                      /* nobody needs the logits after the prompt */
};

/* Hands out n rows of the last pass's hidden states, from row `row` on, as positions from `pos` on of q. */
peridot_status pd_outputs_hidden(const struct pd_row_outputs *o, struct pd_workspace *w, struct pd_sequence *q,
                                 uint32_t pos, uint32_t row, uint32_t n);
/* The same of n rows of logits, 1 .. PD_LOGITS_ROWS. */
peridot_status pd_outputs_logits(const struct pd_row_outputs *o, struct pd_workspace *w, struct pd_sequence *q,
                                 uint32_t pos, uint32_t row, uint32_t n);
/* All that is wanted of a run of a prompt, which the sequence has taken. */
peridot_status pd_outputs_run(const struct pd_row_outputs *o, const struct pd_pass *pass, const struct pd_run *run);

#endif

/* The decode step of speculative decoding (draft.h): rows of a sequence are the token that comes next and those of its
 * draft. It is waited for; nothing is queued ahead. */
#ifndef PD_ENGINE_DRAFT_PASS_H
#define PD_ENGINE_DRAFT_PASS_H

#include "engine/decode.h"

#define PD_MAX_DRAFT 31        /* tokens */

struct pd_draft_pass {
    struct pd_workspace *w;
    struct pd_commands *commands;
    struct pd_input input;
    uint32_t n_recorded;       /* rows */
};

peridot_status pd_draft_pass_create(struct pd_draft_pass *p, struct pd_workspace *w);
void pd_draft_pass_free(struct pd_draft_pass *p);

struct pd_draft_rows {
    struct pd_sequence *sequence;
    int32_t tokens[1 + PD_MAX_DRAFT];
    uint32_t n, first;         /* first: set by the pass, number of its first row */
};

/* Evaluates the rows of n sequences, which have room for them, and discards the decoder's queued steps. Sequences are
 * as before until rows are taken. */
peridot_status pd_draft_evaluate(struct pd_draft_pass *p, struct pd_decoder *d, struct pd_draft_rows *rows, uint32_t n);
/* Row i, after those before it: its token is the sequence's then, and *next is drawn. */
peridot_status pd_draft_take(int32_t *next, const struct pd_decoder *d, const struct pd_draft_rows *rows, uint32_t i);

#endif

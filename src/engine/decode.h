/* Decode steps: the next token of each of some sequences, in one pass that reads the weights once. A step leaves on the
 * device the tokens that it drew, where the embedding of the next step reads them: so steps are submitted ahead, and
 * the host reads tokens as they come. Where a chain needs more than the best few candidates, or has a grammar, the host
 * draws, and steps are submitted one by one. Steps that are discarded do no harm: they wrote keys of positions that are
 * written again before they are read.
 * Where several ranks hold layers, the passes that are queued are of different sequences: while this rank evaluates one
 * group of them, others evaluate other groups. */
#ifndef PD_ENGINE_DECODE_H
#define PD_ENGINE_DECODE_H

#include "engine/pass.h"

#define PD_N_STEPS 3           /* that may be submitted at once */
#define PD_MAX_DRAFT 31        /* tokens */

struct pd_decoder {
    struct pd_workspace *w;
    struct pd_stage *stage;            /* NULL: no other rank holds layers */
    struct pd_pass *passes;            /* [n_passes], used in turn; the n_queued before `next` are submitted */
    uint32_t n_passes, next, n_queued;
    struct pd_span tokens, recent, bias;   /* of each row what the next step evaluates, the tokens that came last, the
                                              chain's biases */
    double queue_s, step_s;            /* no more is queued ahead than takes queue_s; a step takes step_s, as seen
                                          last */
};

peridot_status pd_decoder_create(struct pd_decoder *d, struct pd_workspace *w, struct pd_stage *stage);
void pd_decoder_free(struct pd_decoder *d);
/* Records steps of one sequence, the most frequent ones. */
peridot_status pd_decoder_record(struct pd_decoder *d);
/* Waits for all that was submitted, discarded steps included. */
peridot_status pd_decoder_wait(struct pd_decoder *d);
/* Discards the queued steps: sequences are as if these had never been. Does not wait for them. */
void pd_decoder_discard(struct pd_decoder *d);
/* Removes one sequence from the queued steps. */
void pd_decoder_leave(struct pd_decoder *d, const struct pd_sequence *q);
/* Before another pass: discards the queued steps and waits for them, as they may yet read and write what it does. */
peridot_status pd_decoder_yield(struct pd_decoder *d);

/* Evaluates tokens[i] as the next one of sequences[i]; n different ones, checked by the caller. Discards the queued
 * steps. */
peridot_status pd_decode(struct pd_decoder *d, struct pd_sequence *const *sequences, const int32_t *tokens, uint32_t n);

/* A sequence that decodes on: its last token, which is yet to be evaluated, and how many steps it will take at most,
 * >= 1. */
struct pd_decode_row {
    struct pd_sequence *sequence;
    int32_t token;             /* then: the one that was drawn after it */
    uint32_t n_more;
    bool keeps_logits;         /* no step may follow before they are read */
    bool leaves_draw;          /* `token` is not drawn: pd_session_sample does it when there is time */
    bool advanced;             /* whether it was evaluated: others' steps that are queued come first */
};
/* Evaluates the tokens of all rows that are in the queued steps, or of all if there are none, and draws the next ones;
 * queues steps ahead where every chain can be sampled on the device. Rows that have logits draw as pd_draw does.
 * Where several ranks hold layers, and no row keeps its logits: the same for the group of rows whose step was sent
 * first, after idle rows have joined idle groups, whose steps are sent. */
peridot_status pd_decode_next(struct pd_decoder *d, struct pd_decode_row *rows, uint32_t n);

/* A sequence's next token and the guesses after it (draft.h). */
struct pd_draft_rows {
    struct pd_sequence *sequence;
    int32_t tokens[1 + PD_MAX_DRAFT];
    uint32_t n;
    const struct pd_pass *pass;        /* where they were evaluated, */
    uint32_t run;                      /* and as which run */
};
/* Evaluates the rows of n sequences, which have room for them, and discards the queued steps. Sequences are as before
 * until rows are taken. */
peridot_status pd_decode_drafts(struct pd_decoder *d, struct pd_draft_rows *rows, uint32_t n);
/* Row i, after those before it: its token is the sequence's then, and *next is drawn; next NULL: it is not drawn. */
peridot_status pd_draft_take(int32_t *next, struct pd_decoder *d, const struct pd_draft_rows *rows, uint32_t i);

/* A pass that is not at work and, if there is one, has such a shape recorded: for ranks that are told what to run. */
struct pd_pass *pd_decoder_pass(struct pd_decoder *d, const struct pd_pass_shape *shape);
/* A step of these sequences, not submitted: for measurements. */
peridot_status pd_decoder_fill(struct pd_pass **out, struct pd_decoder *d, struct pd_sequence *const *sequences,
                               uint32_t n);

#endif

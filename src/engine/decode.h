/* Decode steps: the next token of each of some sequences, in one submit that reads the weights once. A step is recorded
 * in each of a few slots and replayed. It leaves on the device the tokens that it drew, where the embedding of the next
 * step reads them: so steps are submitted ahead, each in the next slot, and the host reads tokens as they come. Where a
 * chain needs more than the best few candidates, or has a grammar, the host draws, and steps are submitted one by one.
 * Steps that are discarded do no harm: they wrote keys of positions that are written again before they are read. */
#ifndef PD_ENGINE_DECODE_H
#define PD_ENGINE_DECODE_H

#include "engine/stage.h"

#define PD_N_SLOTS 3   /* steps that may be submitted at once */

struct pd_slot {
    struct pd_commands *commands;
    struct pd_input input;             /* tokens: the decoder's */
    struct pd_span draws, drawn, best; /* [n_sequences] struct pd_draw, [n_sequences] struct pd_candidate,
                                          [n_sequences][PD_TOPK] */
    uint32_t n_rows, first_row;        /* of the step that is recorded */
};

struct pd_decoder {
    struct pd_workspace *w;
    struct pd_stage *stage;            /* NULL: no other rank holds layers */
    struct pd_slot slots[PD_N_SLOTS];
    struct pd_span tokens, recent, bias;   /* of each row what the next step evaluates, the tokens that came last, the
                                              chain's biases */
    struct pd_sequence *rows[PD_MAX_SEQUENCES];   /* of the queued steps; NULL: it has left */
    int32_t evaluates[PD_MAX_SEQUENCES];   /* the token of each row that the first queued step evaluates */
    uint32_t n_rows, next_slot, n_queued;
    uint64_t n_steps;                  /* submitted so far: logits are of the last one */
    uint32_t first_row, most_rows;     /* of the rows of logits that are a decode step's */
    struct pd_reply reply;             /* of the other ranks to the step that they were sent */
    bool sent, awaits;
    /* Micro-batches: while this rank evaluates one group of sequences, others evaluate other groups. */
    struct pd_decoder *groups;         /* [n_groups] */
    uint32_t n_groups;
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

/* Evaluates tokens[i] as the next one of sequences[i]; n different ones, checked by the caller. Discards the queued
 * steps. */
peridot_status pd_decode(struct pd_decoder *d, struct pd_sequence *const *sequences, const int32_t *tokens, uint32_t n);

/* Before another pass evaluates a decode step's rows: discards the queued steps and waits for them. The rows of logits
 * of decode steps, and their candidates in the workspace, are that pass's then. */
peridot_status pd_decoder_yield(struct pd_decoder *d);
/* After that pass, whose row m evaluated `token` as the next one of q: it is the sequence's then, and *next is drawn on
 * the host, from the row's candidates or all its logits; next NULL: it is not drawn. */
peridot_status pd_decoder_take(int32_t *next, const struct pd_decoder *d, struct pd_sequence *q, int32_t token,
                               uint32_t m);

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

/* The slot in which a step of n rows is recorded, or will be, with logits from row `first_row` of a decode step's on;
 * and runs it once its input is set, for rank 0. */
struct pd_slot *pd_decoder_slot(struct pd_decoder *d, uint32_t n, uint32_t first_row);
peridot_status pd_decoder_replay(struct pd_decoder *d, struct pd_slot *slot, uint32_t n, uint32_t first_row);

/* Records a step of these sequences into `commands` and runs it twice (the first time may compile): for measurements.
 * What it puts in the cache is overwritten by the next tokens. */
peridot_status pd_decoder_measure(struct pd_decoder *d, struct pd_commands *commands,
                                  struct pd_sequence *const *sequences, uint32_t n);

#endif

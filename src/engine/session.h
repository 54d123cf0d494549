/* One timeline of tokens over a model, or several: cache, scratch, position, and the recorded commands. A decode step is recorded
 * once and replayed (steps.c); chunks of a prompt are recorded as they come. */
#ifndef PD_ENGINE_SESSION_H
#define PD_ENGINE_SESSION_H

#include "engine/forward.h"
#include "engine/sampler.h"

struct pd_model {
    struct pd_checkpoint *checkpoint;  /* stays open: weights may be read in place */
    struct pd_gpu *gpu;
    struct pd_variants variants;
    struct pd_tunings tunings;         /* that variants point to */
    struct pd_config config;
    struct pd_weights weights;
    uint32_t n_pieces;         /* ids that may be drawn; rows of the output beyond them never win */
};

#define PD_MAX_SEQUENCES 8   /* columns that matrices take at once */

/* What a session keeps of a sequence that is not selected: its own members of these names, of which it says more. */
struct pd_sequence {
    uint32_t pos, result;
    int32_t *history;
    bool has_logits;
    struct pd_sampler sampler;
};

/* What a pass reads of the host's memory. */
struct pd_input {
    struct pd_span step, tokens, places, angles;   /* places: [kinds][n_rows]; angles: of each RoPE table [n_rows][head_dim] */
    uint32_t n_rows;                               /* tokens at most */
};

#define PD_N_SLOTS 3   /* decode steps that may be submitted at once */

/* A decode step: recorded once, with what it reads and leaves in the host's memory. */
struct pd_slot {
    struct pd_commands *commands;
    struct pd_input input;             /* tokens: those of the session's `token` */
    struct pd_span draw, drawn;        /* struct pd_draw; struct pd_candidate, see sample */
    uint32_t result;                   /* see pd_session */
};

struct pd_session {
    struct pd_model *model;
    uint32_t n_sequences, selected;    /* pos, history, result, has_logits and sampler are the selected sequence's */
    struct pd_sequence sequences[PD_MAX_SEQUENCES];
    uint32_t ctx, chunk, pos;
    uint32_t n_rows;                   /* most tokens of a pass: chunk, or one of each sequence */
    int32_t *history;                  /* [ctx]: the pos tokens so far */
    struct pd_pages pages[PD_MAX_SEQUENCES];   /* of each, positions included that steps in vain wrote */
    uint32_t next_chunk;               /* tokens of the next submit: chunk, or fewer where submits are sized in time */
    bool timed;                        /* they are */
    struct pd_cache cache;
    struct pd_heap *device_heap, *host_heap, *input_heap;
    struct pd_scratch scratch;
    struct pd_rows logits;             /* n_results rows, then PD_LOGITS_ROWS for callers that want every row */
    uint32_t n_results;                /* rows of logits that hold results: see pd_n_results */
    uint32_t result;                   /* row with the last position's logits, and of `best` with their best */
    struct pd_span normed_span, logits_span;
    struct pd_span best;               /* host memory: [n_results][PD_TOPK] */
    struct pd_input input;             /* of passes over several tokens */
    uint64_t topk[2];                  /* scratch of the selection */
    struct pd_commands *batch;
    struct pd_commands *next[PD_MAX_SEQUENCES];   /* [i]: a step of i + 1 sequences; none where there is only one */
    struct pd_slot slots[PD_N_SLOTS];
    struct pd_span token;              /* of input_heap: what the next step evaluates; each step leaves the token that it drew */
    struct pd_span recent, bias;       /* of input_heap: the tokens that came last, those drawn included, and the chain's biases */
    uint32_t next_slot;                /* of the next step */
    uint32_t n_queued;                 /* the last steps that were submitted, whose tokens are not yet in the history */
    double queue_s, step_s;            /* no more is queued ahead than takes queue_s; a step takes step_s, as seen last */
    float *row;                        /* a row on the host, [vocab_size] or [d_model] */
    struct pd_candidate *candidates;   /* [vocab_size], allocated when a draw first needs them all */
    bool has_logits;                   /* the last position's logits are on the device */
    struct pd_sampler sampler;
};

peridot_status pd_session_create(struct pd_session **out, struct pd_model *model, const peridot_session_params *params);
void pd_session_free(struct pd_session *s);
peridot_status pd_session_eval(struct pd_session *s, const int32_t *tokens, size_t n, const peridot_eval_params *params);
/* Texts that know nothing of each other, in one submit; see peridot_eval_batch. */
peridot_status pd_session_eval_batch(struct pd_session *s, const peridot_sequence *sequences, size_t n, const peridot_batch_params *params);
/* See peridot_session_truncate; 0 tokens can always be kept. */
peridot_status pd_session_truncate(struct pd_session *s, uint32_t n);
peridot_status pd_session_logits(const float **out, struct pd_session *s);
peridot_status pd_session_sample(int32_t *token, struct pd_session *s);
/* pd_session_eval of a token, then pd_session_sample; where the chain allows it, the GPU draws the tokens, and steps are queued
 * ahead: the next call must be for the token that this one gave, unless pd_session_forget comes before it. At most n_more steps
 * are begun in all (>= 1), this one among them. */
peridot_status pd_session_follow(int32_t *next, struct pd_session *s, int32_t token, uint32_t n_more);
/* Steps that were queued ahead count for nothing: the session is as if they had never been. Does not wait for them. */
void pd_session_forget(struct pd_session *s);
/* Bytes of weights and cache that a decode step at the present position reads. */
uint64_t pd_session_step_size(const struct pd_session *s);
/* Records and runs, twice (the first time may compile), a pass over n_tokens tokens at the present position without advancing:
 * for measurements. What it puts in the cache is overwritten by the next tokens. */
peridot_status pd_session_run_pass(struct pd_session *s, struct pd_commands *commands, uint32_t n_tokens);
/* Asks for every kernel that the session's passes take, without recording any: see pd_kernels_defer. */
peridot_status pd_session_prewarm(struct pd_session *s);
/* Dispatches of a decode step. */
uint32_t pd_session_n_dispatches(const struct pd_session *s);

/* ---- sequences.c ---- */

peridot_status pd_session_select(struct pd_session *s, uint32_t sequence);
peridot_status pd_session_eval_next(struct pd_session *s, const int32_t *tokens);
/* As pd_session_run_pass, for a step of all sequences, of which none is at the end of its context. */
peridot_status pd_session_run_next(struct pd_session *s, struct pd_commands *commands);

#endif

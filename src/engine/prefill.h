/* Prompts: chunks of tokens of one or several sequences, and, where that leaves the same bits (pd_op_can_mix), the
 * decode step of others in the same pass, which reads the weights once for both. A chunk is recorded in pieces that
 * take about 0.1 s, and between them it can be stopped: its tokens then count as never evaluated. On a GPU, and where
 * others wait, chunks are sized in time, too (pace.h). A submit takes one piece, or one dispatch where that takes
 * longer: a part of a layer's share of a chunk, far less than what a driver resets the device for. While a GPU works on
 * a chunk, the host writes and records the next. */
#ifndef PD_ENGINE_PREFILL_H
#define PD_ENGINE_PREFILL_H

#include "engine/decode.h"
#include "engine/pace.h"

#include <stdatomic.h>

/* Tokens that are to be evaluated, in order; a prompt whose last token is left to a decode step has n_left 1. */
struct pd_prompt {
    struct pd_sequence *sequence;
    const int32_t *tokens;     /* the next one first */
    size_t n_left;             /* not yet submitted */
    uint32_t n_in_flight;      /* submitted, not yet the sequence's */
};

/* What passes are to evaluate: prompts and, where pd_prefill_next_mixed allows it, a decode step of other sequences,
 * which have room for their next tokens. */
struct pd_batch {
    const struct pd_decode_row *rows;
    struct pd_prompt *prompts;
    uint32_t n_rows, n_prompts;
};

/* Called for rows: [n_outputs] logits or label scores, or [d_model] hidden states. False: stop. */
typedef bool (*pd_row_call)(void *user, struct pd_sequence *sequence, uint32_t pos, const float *row, size_t n);

struct pd_row_wishes {
    pd_row_call logits, hidden;   /* NULL: none */
    peridot_progress progress; /* NULL: none; tokens that are done, of n_total */
    void *user;
    uint64_t n_total;
    uint32_t first;            /* of positions from here on */
    bool last;                 /* only of each prompt's last token */
    bool no_head;              /* nobody needs the last position's logits */
    bool whole;                /* last tokens are taken too, and none is left to a decode step */
};

struct pd_chunk {
    struct pd_commands *commands;
    struct pd_input input;
    struct pd_chunk_part {
        struct pd_prompt *prompt;
        uint32_t row, n;       /* rows of the chunk */
        bool ends;             /* with the prompt's last token */
    } parts[PD_MAX_SEQUENCES];
    uint32_t n_parts, n_rows, planned;
    uint32_t n_decode;         /* of the rows are of a decode step, the first ones */
    struct pd_head_row heads[PD_MAX_SEQUENCES];   /* rows whose logits are wanted, and where these go */
    uint32_t n_heads;
    uint32_t n_keys;           /* that one of the rows may see */
    uint32_t n_submitted;      /* pieces */
    uint64_t most_work;        /* of a piece */
    double flop;
    double begun, seconds, longest;   /* when the last piece was; all of them, and the longest, took so long */
};

/* For the end of a chunk. */
enum pd_waiting {
    PD_NOBODY_WAITS,
    PD_OTHERS_MAY_COME,        /* and would wait then */
    PD_OTHERS_WAIT
};

struct pd_prefill {
    struct pd_workspace *w;
    struct pd_stage *stage;    /* NULL: no other rank holds layers */
    struct pd_chunk chunks[2];
    struct pd_commands *commands;   /* of rows of logits that callers want */
    uint32_t n_max;            /* tokens of a chunk */
    struct pd_pace pace;       /* of the chunks so far */
    bool cpu;                  /* no driver takes it away, and a second chunk in flight would gain nothing */
    bool mixes;                /* a pass may have a decode step, too */
    uint64_t piece_work;       /* multiplications of a piece */
    uint32_t next;             /* of the two chunks */
    double done;               /* when the last piece was */
};

peridot_status pd_prefill_create(struct pd_prefill *p, struct pd_workspace *w, struct pd_stage *stage, uint32_t n_max);
void pd_prefill_free(struct pd_prefill *p);
/* Evaluates prompts but for last tokens, which stay unless they are wished for. Several go into a chunk. `stop` is
 * looked at between pieces. */
peridot_status pd_prefill_run(struct pd_prefill *p, struct pd_prompt *prompts, uint32_t n,
                              const struct pd_row_wishes *wishes, const atomic_bool *stop);
/* One pass, with n_tokens of prompts at most. Last tokens are taken too, so that what a prompt leaves in the cache does
 * not depend on how it was cut. The sequences of the decode step are as before until pd_decoder_take takes their
 * rows. */
peridot_status pd_prefill_step(struct pd_prefill *p, const struct pd_batch *batch, uint32_t n_tokens,
                               const atomic_bool *stop);
/* Tokens of the next chunk of these prompts at most. */
uint32_t pd_prefill_next(const struct pd_prefill *p, const struct pd_prompt *prompts, uint32_t n,
                         enum pd_waiting waiting);
/* The same in one pass with the decode step; 0: a step and then a chunk are better. */
uint32_t pd_prefill_next_mixed(const struct pd_prefill *p, const struct pd_batch *batch);
/* Runs a chunk whose input, rows and heads are set, for rank 0. */
peridot_status pd_prefill_replay(struct pd_prefill *p, struct pd_chunk *chunk);
/* Logits of n rows of the last pass, into PD_LOGITS_ROWS rows at pd_spare_row. */
peridot_status pd_prefill_logits(struct pd_prefill *p, const struct pd_input *in, uint32_t row, uint32_t n);
/* Tells the caller how many tokens are done. */
peridot_status pd_report_progress(const struct pd_prompt *prompts, uint32_t n, const struct pd_row_wishes *wishes);
/* Whether a prompt has more left than its last token, or has that. */
bool pd_prefill_pending(const struct pd_prompt *prompts, uint32_t n, bool whole);
/* Hands out rows first .. first + n - 1 of the last pass's hidden states, as positions from `pos` on. */
peridot_status pd_report_hidden(struct pd_workspace *w, const struct pd_row_wishes *wishes, struct pd_sequence *q,
                                uint32_t pos, uint32_t first, uint32_t n);
/* The same of n rows of logits, 1 .. PD_LOGITS_ROWS. */
peridot_status pd_report_logits(struct pd_workspace *w, const struct pd_row_wishes *wishes, struct pd_sequence *q,
                                uint32_t pos, uint32_t first, uint32_t n);
/* Records a chunk of n tokens of q at its position into `commands` and runs it twice: for measurements. */
peridot_status pd_prefill_measure(struct pd_prefill *p, struct pd_commands *commands, struct pd_sequence *q,
                                  uint32_t n);

/* Multiplications of a piece to come, after the longest of some took so long and none had more than most_work. */
uint64_t pd_next_piece(uint64_t most_work, double longest);

#endif

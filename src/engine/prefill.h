/* Prompts: passes over chunks of one or several of them, and, where that leaves the same bits (pd_op_can_mix), the
 * decode step of others in the same pass, which reads the weights once for both. A chunk is recorded in pieces that
 * take about 0.1 s, and between them it can be stopped: its tokens then count as never evaluated. On a GPU, and where
 * others wait, chunks are sized in time, too (pace.h). A submit takes one piece, or one dispatch where that takes
 * longer: a part of a layer's share of a chunk, far less than what a driver resets the device for. While a GPU works on
 * a chunk, the host writes and records the next. */
#ifndef PD_ENGINE_PREFILL_H
#define PD_ENGINE_PREFILL_H

#include "engine/decode.h"
#include "engine/outputs.h"
#include "engine/pace.h"

#include <stdatomic.h>

/* What a prompt among others has to do with its images while these are computed. */
struct pd_image_calls {
    bool (*go_on)(void *user);         /* several times a second: false stops this prompt */
    void (*failed)(void *user, peridot_status status);   /* with the sentence; it has no tokens left then */
    void *user;
};

/* Tokens that are to be evaluated, in order. */
struct pd_prompt {
    struct pd_sequence *sequence;
    const int32_t *tokens;     /* the next one first */
    const float *const *embeddings;    /* see pd_run, the next one first; NULL: none */
    const struct pd_row_outputs *outputs;      /* NULL: none */
    const struct pd_image_calls *image_calls;  /* NULL: a failure of its images fails the whole evaluation */
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

/* Who is told how many tokens are done, of n_total. */
struct pd_watch {
    peridot_progress progress; /* NULL: nobody */
    void *user;
    uint64_t n_total;
};

struct pd_chunk {
    struct pd_pass pass;
    struct pd_prompt *prompts[PD_MAX_RUNS];    /* of each run of the pass; NULL: it is of a decode step */
    uint32_t planned;          /* rows */
    double flop;
};

/* How large chunks are. */
enum pd_chunk_aim {
    PD_CHUNK_FULL,             /* nobody waits, or will */
    PD_CHUNK_INTERACTIVE,      /* others may come, and would wait for the end of it */
    PD_CHUNK_SHARED            /* others wait */
};

struct pd_prefill {
    struct pd_workspace *w;
    struct pd_stage *stage;    /* NULL: no other rank holds layers */
    struct pd_chunk chunks[2];
    uint32_t n_max;            /* tokens of a chunk, */
    uint32_t n_room;           /* or more where an image has more rows: these cannot be parted */
    const float **rows;        /* [n_room]: scratch */
    struct pd_pace pace;       /* of the chunks so far */
    bool cpu;                  /* no driver takes it away, and a second chunk in flight would gain nothing */
    bool mixes;                /* a pass may have a decode step, too */
    uint64_t piece_work;       /* multiplications of a piece */
    uint32_t next;             /* of the two chunks */
};

peridot_status pd_prefill_create(struct pd_prefill *p, struct pd_workspace *w, struct pd_stage *stage, uint32_t n_max,
                                 uint32_t n_room);
void pd_prefill_free(struct pd_prefill *p);
/* Evaluates prompts to their ends, in as many full chunks as it takes, and hands out what is wanted of their rows. All
 * their tokens are rows of prompts, so that what a prompt leaves in the cache does not depend on how it was cut. `stop`
 * is looked at between pieces. watch may be NULL. */
peridot_status pd_prefill_run(struct pd_prefill *p, struct pd_prompt *prompts, uint32_t n, const struct pd_watch *watch,
                              const atomic_bool *stop);
/* One pass, with n_tokens of prompts at most. */
peridot_status pd_prefill_step(struct pd_prefill *p, const struct pd_batch *batch, uint32_t n_tokens,
                               const atomic_bool *stop);
/* Tokens of the next chunk of these prompts at most. */
uint32_t pd_prefill_next(const struct pd_prefill *p, const struct pd_prompt *prompts, uint32_t n,
                         enum pd_chunk_aim aim);
/* The same in one pass with the decode step; 0: a step and then a chunk are better. */
uint32_t pd_prefill_next_mixed(const struct pd_prefill *p, const struct pd_batch *batch);
/* Tells how many tokens are done. */
peridot_status pd_report_progress(const struct pd_prompt *prompts, uint32_t n, const struct pd_watch *watch);
/* Whether a prompt has tokens left. */
bool pd_prefill_pending(const struct pd_prompt *prompts, uint32_t n);
/* A chunk of n tokens of q at its position, not submitted: for measurements. */
peridot_status pd_prefill_fill(struct pd_pass **out, struct pd_prefill *p, struct pd_sequence *q, uint32_t n);

/* After a pass with rows of prompts, which had as many as were planned: pieces to come take as long as they should. */
void pd_prefill_adjust(struct pd_prefill *p, const struct pd_pass *pass, bool full);

#endif

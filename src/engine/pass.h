/* A pass: rows of any sequences through the model, in one recording. A row is a token of a sequence at its position.
 * Rows come in runs of consecutive ones: a decode step of 40 sequences is 40 runs of one row, a draft is a run of its
 * token and the guesses after it, a chunk is a run of each prompt that it has a part of, and a pass may have all of
 * these. It is recorded when its shape differs from what was recorded last, and replayed otherwise.
 *
 * In its life a pass is begun, filled with runs, made ready (recorded), submitted, in one or several pieces, waited
 * for, and its rows are taken. Until a row is taken its sequence is as before. All of one session's passes are one
 * thread's; the host writes the input of one only while it is not at work. */
#ifndef PD_ENGINE_PASS_H
#define PD_ENGINE_PASS_H

#include "engine/input.h"
#include "engine/stage.h"

enum {
    PD_MAX_RUNS = 2 * PD_MAX_SEQUENCES   /* of a pass: a step of some sequences, parts of prompts of others */
};

enum pd_run_kind {
    PD_RUN_STEP,       /* every row has logits and is computed as if it were alone, whatever else the pass has; the
                          first is its sequence's next token, those after it are guesses */
    PD_RUN_PROMPT      /* rows are computed together; the last one has logits if the prompt ends there */
};

/* Rows of one sequence, at consecutive positions. */
struct pd_run {
    enum pd_run_kind kind;
    struct pd_sequence *sequence;      /* NULL: it has left, and its rows are not taken */
    uint32_t pos, n;                   /* of the first row; rows */
    const int32_t *tokens;             /* [n], borrowed until the pass is filled; NULL: the pass before draws them */
    const float *const *embeddings;    /* [n], borrowed as well: rows of d_model that go in instead of a token's own,
                                          NULL: its own; NULL: none */
    bool all_rows;                     /* PROMPT: hidden states of all rows are wanted */
    bool ends;                         /* PROMPT: logits of its last row are wanted, as the prompt ends there */
    uint32_t row;                      /* of the pass: set by pd_pass_add */
};

/* What a recording depends on. */
struct pd_pass_shape {
    uint32_t n_rows, n_steps;          /* rows; the first n_steps are those of steps */
    uint32_t first_logits;             /* of a step's rows of logits, the one that its first row has */
    uint32_t n_keys;                   /* that the last row of a prompt sees, for pieces */
    uint32_t n_heads;                  /* rows of prompts that have logits */
    uint32_t consecutive;              /* whether a step has several rows of one sequence */
    uint32_t draws;                    /* whether the device draws the next tokens */
    uint32_t all_rows;                 /* whether hidden states of other rows of prompts than `heads` are wanted */
    uint32_t embeds;                   /* whether some rows are embeddings */
    uint32_t keeps_hidden;             /* whether hidden states stay beside rows of logits */
    uint64_t piece_work;               /* see pd_recorder */
    struct pd_head_row heads[PD_MAX_SEQUENCES];
};

struct pd_pass {
    struct pd_workspace *w;
    struct pd_stage *stage;            /* NULL: no other rank holds layers */
    struct pd_commands *commands;
    struct pd_input input;
    int32_t *tokens;                   /* [input.n_rows] of the rows, on the host */
    struct pd_span draws, drawn;       /* [n_decode] struct pd_draw, [n_decode] struct pd_candidate */
    struct pd_span best;               /* [n_decode + n_sequences][PD_TOPK]: of the steps' rows, then of `heads` */
    struct pd_span recent, bias;       /* of the caller's, where it draws: see struct pd_sample_push */
    struct pd_run runs[PD_MAX_RUNS];
    uint32_t n_runs;
    struct pd_pass_shape shape, recorded;
    uint64_t number;                   /* of the passes of the session: see pd_workspace.written_by */
    /* pieces */
    uint32_t n_submitted;
    uint64_t most_work;                /* of a piece */
    double begun, seconds, longest;    /* start of the last piece; total and longest time of the pieces, in s */
    /* the other ranks */
    struct pd_reply reply;
    bool sent, awaits;                 /* they have it; a reply is to come */
};

/* The PD_TOPK candidates of a row that has logits: of row i of the steps, or of prompt i - n_steps that ends. */
static inline struct pd_candidate *pd_pass_best(const struct pd_pass *p, uint32_t i)
{
    return (struct pd_candidate *)p->best.host + i * PD_TOPK;
}

/* Room for n_rows. tokens: of rows that an earlier pass draws, or an empty span. */
peridot_status pd_pass_create(struct pd_pass *p, struct pd_workspace *w, struct pd_stage *stage, uint32_t n_rows,
                              struct pd_span tokens);
/* Waits for it. */
void pd_pass_free(struct pd_pass *p);

/* Empties it, so that it can be filled; it is not at work. */
peridot_status pd_pass_begin(struct pd_pass *p);
/* Adds a run, steps before prompts. The sequence has room for its rows (pd_sequence_extend). */
peridot_status pd_pass_add(struct pd_pass *p, const struct pd_run *run);
/* Writes what remains of the input and records, unless a pass of the same shape is recorded. */
peridot_status pd_pass_ready(struct pd_pass *p);
/* The next piece, of pd_commands_n_pieces; pieces are submitted one by one, each when the one before is done, or all
 * where there is one. */
peridot_status pd_pass_submit(struct pd_pass *p);
bool pd_pass_is_submitted(const struct pd_pass *p);
/* For the piece that was submitted last. */
peridot_status pd_pass_wait(struct pd_pass *p);
/* Once the last piece is done here: hands the rows to the ranks that hold the next layers, if any, and waits for what
 * they reply. */
peridot_status pd_pass_send(struct pd_pass *p);
peridot_status pd_pass_await_reply(struct pd_pass *p);
/* All of it: pd_pass_ready to the reply. */
peridot_status pd_pass_run(struct pd_pass *p);

/* The rows of a run are their sequence's now, and its logits and candidates those of the last one. */
void pd_pass_take(const struct pd_pass *p, const struct pd_run *run);
/* Only row i of a run of steps, after those before it. */
void pd_pass_take_row(const struct pd_pass *p, const struct pd_run *run, uint32_t i);
/* The token that the device drew after row m of a pass that draws. */
int32_t pd_pass_drawn(const struct pd_pass *p, uint32_t m);
/* The sequence leaves it: false where none is left. */
bool pd_pass_leave(struct pd_pass *p, const struct pd_sequence *q);

/* Logits of n rows from `row` on of the last pass, up to PD_LOGITS_ROWS, into the rows at pd_spare_row. */
peridot_status pd_pass_compute_logits(const struct pd_pass *p, uint32_t row, uint32_t n);
/* Compile the kernels of passes of this shape, and of n rows of logits, and record nothing. */
peridot_status pd_pass_compile(const struct pd_pass *p, const struct pd_pass_shape *shape);
peridot_status pd_pass_compile_logits(const struct pd_pass *p, uint32_t n);
/* Records into `commands` and runs it twice (the first time may compile), for measurements. What it puts in the cache
 * is overwritten by the next tokens. */
peridot_status pd_pass_measure(struct pd_pass *p, struct pd_commands *commands);

#endif

/* Sessions, and what they run: requests, of which each round takes prompts by chunks, steps of many sequences at once,
 * and drafts. Threads: see struct pd_model. */
#ifndef PD_ENGINE_ROUNDS_ROUNDS_H
#define PD_ENGINE_ROUNDS_ROUNDS_H

#include "engine/pass/pass.h"
#include "engine/sequence/sequence.h"

#include <stdatomic.h>

/* ---- decode ---- */

#define PD_N_STEPS 3           /* that may be submitted at once */

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

/* A sequence's next token and the guesses after it (`draft`). */
struct pd_draft_rows {
    struct pd_sequence *sequence;
    int32_t tokens[1 + PD_MAX_DRAFT];
    uint32_t n;
    const struct pd_pass *pass;        /* where they were evaluated, */
    uint32_t run;                      /* and as which run */
};
/* How long the passes of a session's rounds took lately, by their rows: 0: not known. `at`: in which round. */
struct pd_draft_times {
    double seconds[PD_MAX_SEQUENCES + 1], guess_s;     /* guess_s: to make a guess */
    uint32_t at[PD_MAX_SEQUENCES + 1], n_rounds;
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

/* ---- drafter ---- */

/* A drafter owns a workspace of one row, and borrows the drafter's model and the target's session. */

struct pd_drafter {
    const struct pd_model *model;
    struct pd_decoder *decoder;        /* of the target's session */
    struct pd_cache cache;             /* the target's, with the layers that the drafter's read: owns that list alone */
    struct pd_workspace w;
    struct pd_input input;
    struct pd_target target;
    struct pd_draft_block block;       /* where it is one */
    struct pd_span in;                 /* of target.in */
    struct pd_span tokens, draws, recent, bias;   /* [1 + PD_MAX_DRAFT], [PD_MAX_DRAFT]; see pd_sample_push */
    struct pd_span drawn, best;        /* [PD_MAX_DRAFT], [PD_MAX_DRAFT][PD_TOPK] */
    struct pd_commands *commands;
    uint32_t n, hidden_row;            /* what is recorded: guesses, and whose hidden state; n 0: nothing */
};

/* How many query heads share a key is the target's business, which has the keys. Layers that cannot read its keys are
 * left as they are. */
void pd_drafter_share_keys(struct pd_config *config, const struct pd_config *target);
/* Whether the drafter's layers can read the target's cache: PERIDOT_ERROR_ARGUMENT, with a sentence, where not. */
peridot_status pd_drafter_check(const struct pd_model *model, const struct pd_model *target);
/* A block's keys are one more layer of the target's cache. */
peridot_status pd_drafter_add_keys(struct pd_cache *cache, const struct pd_model *model,
                                   const struct pd_model *target);
/* Both models are on one device, and have been checked. From now on the target's passes keep hidden states. */
peridot_status pd_drafter_create(struct pd_drafter **out, const struct pd_model *model, struct pd_decoder *decoder);
void pd_drafter_free(struct pd_drafter *d);
/* Adds n guesses to the first of rows->tokens, or none where the hidden state that it was drawn from is not there any
 * more. They are drawn by the sequence's chain, but for its grammar. Discards the queued steps. */
peridot_status pd_drafter_guess(struct pd_draft_rows *rows, struct pd_drafter *d, uint32_t n);

/* ---- pace ---- */

/* Number of keys that attention at `pos` reads in a layer. */
uint64_t pd_n_keys(const struct pd_layer *layer, uint32_t pos);
/* Multiplications and additions to evaluate a token at `pos`; head: including its logits. */
double pd_token_flop(const struct pd_model *model, uint32_t pos, bool head);

struct pd_pace {
    uint32_t at_once;          /* see pd_op_matmul_tokens */
    struct pd_timed_work { double flop, seconds; } last, other;   /* the latest chunk, and the latest of another size */
    double step;               /* seconds of the decode step between chunks, as measured last; 0: none */
};

/* A chunk of n rows, of so many flop, took so long. */
void pd_pace_took(struct pd_pace *p, uint32_t n, double flop, double seconds);
/* Number of tokens of the next chunk, at `token` flop each: as many as take 0.4 s, or ten times the fixed time up to
 * 1 s, or five times. A multiple of at_once. */
uint32_t pd_next_chunk(const struct pd_pace *p, double token);
/* The same while other sequences wait for the chunk: as many as take 0.2 s, and less where the step before it and they
 * would take over 0.3 s. Where one token takes longer than that, as many as take at most 10 % longer. One token, or a
 * multiple of at_once; the first at_once may take 25 % longer than 0.2 s, or than one. */
uint32_t pd_next_shared_chunk(const struct pd_pace *p, double token);
/* The same in one pass with a decode step of n_rows, of so many flop, where the pass is to take 0.2 s, or 10 % longer
 * than the step. All its rows are a multiple of at_once; the fewest may take 25 % longer than 0.2 s, or than the step
 * and one token take in two passes. 0: they take longer. */
uint32_t pd_next_mixed_chunk(const struct pd_pace *p, double token, uint32_t n_rows, double flop);

/* ---- prefill ---- */

/* Whose a prompt among others is. */
struct pd_prompt_calls {
    bool (*go_on)(void *user);         /* several times a second while its images are computed: false stops it */
    void (*failed)(void *user, peridot_status status);   /* its images, or what is wanted of its rows: with the
                                                            sentence */
    void *user;
};

/* Tokens that are to be evaluated, in order. */
struct pd_prompt {
    struct pd_sequence *sequence;
    const int32_t *tokens;     /* the next one first */
    const float *const *embeddings;    /* see pd_run, the next one first; NULL: none */
    const struct pd_row_outputs *outputs;      /* NULL: none */
    const struct pd_prompt_calls *calls;       /* NULL: what goes wrong with it goes wrong with all */
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
    PD_CHUNK_SHARED            /* others wait, or came lately */
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

/* ---- session ---- */

/* A session owns its sequences, the cache that their pages are of, the workspace, and the passes of the decoder and of
 * prompts; it borrows the model. After PERIDOT_ERROR_DEVICE_LOST nothing is evaluated any more, and sequences have
 * their tokens. */

struct pd_session {
    struct pd_model *model;
    uint32_t ctx, chunk;               /* positions of a sequence; tokens of a submit at most */
    struct pd_sequence_set set;
    struct pd_workspace workspace;
    struct pd_stage stage;             /* of rank 0 of several */
    bool announced;                    /* the other ranks have sessions for it */
    struct pd_decoder decoder;
    struct pd_prefill prefill;
    uint32_t n_draft;                  /* tokens of a draft at most; 0: none are made */
    struct pd_drafter *drafter;        /* NULL: there is none */
    struct pd_draft_times draft_times;
    uint32_t n_rounds;                 /* of requests: see request.c */
    bool text_ended;                   /* a request's, in this round */
    double shared_at;                  /* when a round last had more than one request, by pd_now */
    /* Of a round: the time that draws under grammars took and that they may take, and whether one had its turn, which
     * one always has. draw_steps: of a mask in one turn (pd_grammar_mask_some). n_turns: so far. */
    double draw_s, draw_most_s;
    bool drew;
    uint64_t draw_steps, n_turns;
    atomic_bool cancelled;             /* set from outside: the call at work stops between submits */
};

peridot_status pd_session_create(struct pd_session **out, struct pd_model *model, const peridot_session_params *params);
/* Drafts are its guesses then. It has not one yet; the drafter's model stays, on the same device. */
peridot_status pd_session_set_drafter(struct pd_session *s, const struct pd_model *drafter);
/* Its sequences go with it. */
void pd_session_free(struct pd_session *s);
/* Bytes that the cache of a session takes whose other parameters are the default ones; ctx 0: the default, where memory
 * is not short. */
uint64_t pd_session_cache_size(const struct pd_config *config, uint32_t ctx, peridot_kv_type type);
/* Compiles every kernel that the session's passes take, without recording any. */
peridot_status pd_session_prewarm(struct pd_session *s);
/* Dispatches of a decode step. */
uint32_t pd_session_n_dispatches(const struct pd_session *s);

/* See pd_sequence_create, _fork, _load, _truncate and _free; queued steps of the sequence are discarded. */
peridot_status pd_session_add(struct pd_sequence **out, struct pd_session *s);
peridot_status pd_session_fork(struct pd_sequence **out, struct pd_session *s, const struct pd_sequence *q, uint32_t n);
peridot_status pd_session_load(struct pd_sequence **out, struct pd_session *s, const char *path);
peridot_status pd_session_truncate(struct pd_session *s, struct pd_sequence *q, uint32_t n, uint32_t *kept);
void pd_session_remove(struct pd_session *s, struct pd_sequence *q);

/* The scales of the adapters that are named, alone: see pd_adapters_choose. */
peridot_status pd_session_choose_adapters(struct pd_scales *out, const struct pd_session *s,
                                          const peridot_adapter *adapters, size_t n);
/* Of a sequence without tokens, or with those that it has. */
peridot_status pd_session_set_adapters(const struct pd_session *s, struct pd_sequence *q,
                                       const peridot_adapter *adapters, size_t n);

/* Logits of the last position, [n_outputs], borrowed until the next call. Where a pass of others has overwritten them
 * the last token is evaluated again. */
peridot_status pd_session_logits(const float **out, struct pd_session *s, struct pd_sequence *q);
/* Copies them to the sequence's own row, which no pass of others overwrites. */
peridot_status pd_session_keep_logits(struct pd_session *s, struct pd_sequence *q);
peridot_status pd_session_sample(int32_t *token, struct pd_session *s, struct pd_sequence *q);
/* The same in turns: under a grammar a mask may be made in pieces, and *drawn is false until it is finished. Adds to
 * draw_s. */
peridot_status pd_session_sample_some(bool *drawn, int32_t *token, struct pd_session *s, struct pd_sequence *q);
/* The sequence has a copy of what p points to, and owns the grammar as well. */
peridot_status pd_session_set_sampling(struct pd_session *s, struct pd_sequence *q, const peridot_sampling *p);
/* Bytes of weights and cache that a decode step of n sequences at position `pos` reads. */
uint64_t pd_session_step_size(const struct pd_session *s, uint32_t n, uint32_t pos);
/* Runs a decode step of n sequences (n_tokens 1) or a chunk of the first one, for measurements: see pd_pass_measure. */
peridot_status pd_session_measure(struct pd_session *s, struct pd_commands *commands,
                                  struct pd_sequence *const *sequences, uint32_t n, uint32_t n_tokens);

/* ---- evaluation ---- */

/* What an evaluation of prompts hands out, of each prompt. */
struct pd_eval_params {
    struct pd_row_outputs outputs;     /* `first`, or where `last` is set only the last token */
    bool last;
    struct pd_watch watch;             /* of the tokens of all prompts together */
};
/* Evaluates all tokens of n prompts of different sequences, as requests that write nothing: in chunks, or, where each
 * has one token, or chunks have, in decode steps of them all. Ids and lengths are checked first, and nothing is changed
 * if they are wrong. params may be NULL. */
peridot_status pd_session_eval(struct pd_session *s, const struct pd_prompt *prompts, uint32_t n,
                               const struct pd_eval_params *params);
peridot_status pd_session_check_tokens(const struct pd_session *s, const struct pd_prompt *prompt);

/* ---- draft ---- */

#define PD_DRAFT_KINDS 3   /* of guesses that were looked up: see draft.c, which has the arithmetic */

/* How a request drafts. */
struct pd_draft {
    uint32_t n_most;           /* tokens; 0: never */
    bool automatic;            /* as many as pay, by what was measured; else n_most */
    struct pd_drafter *drafter;    /* NULL: another way; */
    struct pd_session *session;    /* the draft model's; NULL: what followed in the text before */
    struct pd_sequence *sequence;  /* of that session: it takes the same tokens */
    struct pd_draft_index *index;  /* of the text, where it is looked up; NULL: not yet */
    uint64_t n_drafted, n_accepted;
    double saved_s;            /* what drafts saved, by how long steps without take: less than 0 where they cost time */
    double draw_s;             /* the last draft's draws under a grammar took so long */
    double right[PD_DRAFT_KINDS];  /* how often guesses were right lately, after others that were */
    uint32_t kind;             /* of the last guesses */
    uint32_t pause, next_pause;    /* steps without drafts that are left, and of the next such time */
    uint32_t n_since;          /* drafts since the last one */
};

/* After the way to draft was set. */
void pd_draft_begin(struct pd_draft *draft);
void pd_draft_end(struct pd_draft *draft);
/* Tokens that a draft after rows->tokens[0] may have, at most n_most: where they are looked up, this does so. The
 * sequence has room for that token. */
uint32_t pd_draft_look(struct pd_draft_rows *rows, struct pd_draft *draft, uint32_t n_most);
/* How many tokens of draft each of n steps is to have, of at most n_rows rows with the steps: most [n] is what each may
 * have, 0 where there is no draft, and then what it gets. Gives their sum. */
uint32_t pd_draft_share(uint32_t *most, struct pd_draft *const *drafts, uint32_t n, uint32_t n_rows,
                        const struct pd_draft_times *times);
/* Adds a draft of at most n tokens to the first of rows->tokens, which is given and was looked at. The sequence has
 * room for all. */
peridot_status pd_draft_make(struct pd_draft_rows *rows, struct pd_draft *draft, uint32_t n);
/* After a step: of a draft of n_drafted tokens, 0 where there was none, n_accepted were drawn. */
void pd_draft_took(struct pd_draft *draft, uint32_t n_drafted, uint32_t n_accepted);
/* And after one without a draft that drew `next`: would a guess have been right? */
void pd_draft_watch(struct pd_draft *draft, const struct pd_sequence *q, int32_t next);
/* A pass of n_rows rows took pass_s, after n_guesses guesses that took guesses_s. */
void pd_draft_timed(struct pd_draft_times *t, uint32_t n_rows, uint32_t n_guesses, double guesses_s, double pass_s);
/* The tokens after the longest text of up to 8 tokens, but not under 2, that ends `tokens` and is in them before:
 * after the latest of equally long ones, of *n_same tokens. Gives their number, at most n_most. Of places that
 * follow the last two tokens the latest 256 are compared. index: of this text, which has grown, or NULL; the caller
 * frees it. */
uint32_t pd_draft_lookup(int32_t *out, uint32_t *n_same, uint32_t n_most, struct pd_draft_index **index,
                         const int32_t *tokens, uint32_t n);

/* ---- round ---- */

enum { PD_ROUND_STEPS = 1, PD_ROUND_CHUNK = 2 };   /* parts of a round */

struct pd_round {
    struct pd_decode_row steps[PD_MAX_SEQUENCES];
    struct pd_draft_rows drafts[PD_MAX_SEQUENCES];   /* of each step, where any has one */
    struct pd_prompt chunk[PD_MAX_SEQUENCES];
    uint32_t n_steps, n_drafted, n_chunk;      /* n_drafted: tokens of all drafts */
    bool may_draft;            /* some step of these sequences may have a draft, if not this one */
    bool whole;                /* nobody else will come: a chunk that has the round to itself is all that is left of its
                                  prompts, */
    struct pd_watch watch;     /* and this is told of it */
    /* Set by pd_round_run: */
    uint32_t did, done;        /* the parts that it ran in its last call, and in all */
    double guesses_s;          /* that drafts took to make */
    double begun, seconds;     /* the caller sets `begun` before it makes drafts; the time since then, or since steps
                                  without drafts began */
};

/* Runs the next pass: steps and chunk together where that is quicker, or the steps, and the chunk in another call. What
 * the steps gave is for the caller to take in between. Steps that shared a pass with a chunk have no draw yet. Where
 * the chunk fails with PERIDOT_ERROR_MEMORY no prompt's next token has room. */
peridot_status pd_round_run(struct pd_round *round, struct pd_session *s);

/* ---- thinking ---- */

/* The tokens that begin and end a thought. */
struct pd_thought_marks {
    int32_t begin, end;        /* -1: thoughts are text like other */
    int32_t start;             /* -1: there are no headers; else each part of a reply has one, from this to `begin`, and
                                  a thought follows the one of these ids: */
    const int32_t *header;     /* [n_header], borrowed */
    size_t n_header;
};

/* What a token of a reply is a part of. A header's last token is that of what follows it. */
enum pd_reply_part {
    PD_REPLY_ANSWER, PD_REPLY_BEGINS_THOUGHT, PD_REPLY_THOUGHT, PD_REPLY_ENDS_THOUGHT, PD_REPLY_HEADER,
    PD_REPLY_BEGINS_ANSWER
};

struct pd_thinking {
    struct pd_thought_marks marks;
    enum { PD_IN_ANSWER, PD_IN_HEADER, PD_IN_THOUGHT } place;
    size_t n_header;           /* of the header's ids that have come last, in a header */
    bool calls_headers;        /* headers are of the calls, whose grammar begins with that of what is no thought */
    uint32_t n_most, n;        /* tokens of thoughts: at most, and so far */
};

/* Borrows marks->header. */
void pd_thinking_begin(struct pd_thinking *t, const struct pd_thought_marks *marks);
/* What n tokens before the reply begin: a header, or a thought. */
void pd_thinking_read_prompt(struct pd_thinking *t, const int32_t *prompt, size_t n);
/* What a token of the reply is a part of. -1, its end, is a part of what it ends in. */
enum pd_reply_part pd_thinking_take(struct pd_thinking *t, int32_t token);
/* Whether the budget is used up within a thought. */
bool pd_thinking_is_over(const struct pd_thinking *t);
/* Whether the answer follows a token that is this part. */
bool pd_thinking_begins_answer(const struct pd_thinking *t, enum pd_reply_part part);
/* Where a grammar waits for the answer: whether the answer must begin in place of this token. */
bool pd_thinking_refuses(const struct pd_thinking *t, int32_t token, bool is_stop);
/* Whether a header is to end before the answer begins, and how many of its tokens are the grammar's. */
bool pd_thinking_precedes(const struct pd_thinking *t);
size_t pd_thinking_begun(const struct pd_thinking *t);

/* ---- request ---- */

/* Requests are their callers'; callbacks are called by the thread that runs the session. */

/* See `follow` in request.c for which follows which. */
enum pd_request_state {
    PD_REQUEST_WAITING,        /* for a sequence: see struct pd_schedule */
    PD_REQUEST_PROMPT,         /* its prompt is evaluated, or what it was given within its reply */
    PD_REQUEST_DRAW,           /* the next token is yet to be drawn under a grammar, which may take long */
    PD_REQUEST_DECODE,         /* the token that was drawn last is yet to be evaluated */
    PD_REQUEST_DONE,
    PD_N_REQUEST_STATES
};

struct pd_request {
    struct pd_prompt prompt;   /* what is left of it */
    size_t n_given;            /* its tokens at first */
    size_t n_shared;           /* of the prompt's tokens: at their end the sequence is marked; 0: none */
    uint32_t n_max;            /* tokens to generate at most; 0: the functions for tokens are not called */
    /* Hands on each token of the reply, and what it is a part of; -1: the text has ended, and nothing is to be held
     * back any more. *go_on false: it ends with this token. */
    peridot_status (*write)(bool *go_on, struct pd_request *r, enum pd_reply_part part, int32_t token);
    bool (*is_stop)(const struct pd_request *r, int32_t token);   /* the token says that the text has ended */
    /* The caller's, as in peridot_request_params. */
    peridot_row logits;
    peridot_progress progress;
    void *user;
    struct pd_row_outputs outputs;     /* what is wanted of the prompt's rows: of prompt.outputs, */
    bool prompt_last;                  /* or only of its last one */
    /* Of an evaluation of several: what goes wrong with one goes wrong with all, and the prompt may be evaluated in
     * decode steps. */
    bool joint, in_steps;
    struct pd_draft draft;
    struct pd_thinking thinking;
    peridot_sampling sampling; /* what it points to stays. A sequence that was given has it already, but for a grammar
                                  that waits: */
    const peridot_grammar *held;       /* for the answer, which it is of then; NULL: none waits */
    size_t n_replied;          /* of n_given: see peridot_request_params */
    size_t n_before;           /* tokens of the sequence before what the grammar is of: those of the prompt, and of what
                                  the reply has before its answer */
    /* Of a request that the schedule finds a sequence for. */
    int32_t *tokens;           /* [n_tokens], malloc: its text when it began last */
    size_t n_tokens, share_at; /* share_at: n_shared of them all */
    struct pd_scales scales;   /* of the sequence */
    uint32_t n_cached, n_preempted;    /* see peridot_stats */
    uint32_t n_tries;          /* times that it was preempted before anything was evaluated, since something was */
    struct pd_request *behind; /* that waits next */
    /* Set by pd_request_begin and pd_requests_run: */
    enum pd_request_state state;
    struct pd_session *session;        /* that it began in */
    struct pd_prompt_calls calls;      /* of prompt.calls */
    bool is_hopeless;          /* memory was short elsewhere than in the cache: it does not go on later */
    peridot_status status;     /* of a request that is done */
    size_t n_prompt, n_rest;   /* tokens of the prompt, and of those that are not in prompt.n_left yet */
    int32_t next;              /* the token that is yet to be evaluated */
    int32_t pending[2];        /* of prompt.tokens within a reply: the last token, and a mark */
    uint32_t n_generated;
    uint64_t turn;             /* number of its last turn to draw */
    double begun, prompt_s, first_token_s, decode_begun, decode_s;   /* see peridot_stats */
    uint64_t decode_read_size;
    char error[512];           /* the sentence of `status` */
};

/* The grammar of its sampling waits for the answer. Before it begins. */
void pd_request_hold_grammar(struct pd_request *r);
/* Checks the prompt, prompt.tokens of which must stay until it is evaluated. The sequence has its chain. */
peridot_status pd_request_begin(struct pd_request *r, struct pd_session *s);
/* Ends a request that has begun, with the present sentence where `status` is an error. */
void pd_request_end(struct pd_session *s, struct pd_request *r, peridot_status status);
/* Its sequence has no more to do with it, and draws as its chain says. */
void pd_request_leave(struct pd_session *s, const struct pd_request *r);
/* Changes its state to one that may follow. */
void pd_request_go(struct pd_request *r, enum pd_request_state state);
/* One round for n requests, of which those that are done are passed over. What goes wrong with one ends that one; an
 * error is returned where it ends all. `watch`: no other request will come before these are done, and it is told of all
 * their prompts together (its n_total is found here); NULL: others may. */
peridot_status pd_requests_run(struct pd_session *s, struct pd_request *const *requests, uint32_t n,
                               const struct pd_watch *watch);

/* ---- prefix ---- */

enum { PD_PREFIX_WORTH = 16 };   /* tokens: shorter prefixes are not worth a fork */

struct pd_prefix_cache {
    struct pd_session *s;
    struct pd_prefix {
        struct pd_sequence *sequence;  /* NULL: there is none here */
        struct pd_request *request;    /* NULL: it is kept */
        uint32_t n_before;             /* tokens that were kept when the request took it */
        double used_s;
    } at[PD_MAX_SEQUENCES];
};

/* Gives the request a sequence with the longest prefix of its tokens that was to be had, of `most` at most: a kept one
 * that goes on, a fork of another, or a new one. PERIDOT_ERROR_ARGUMENT: there is none now. */
peridot_status pd_prefix_take(struct pd_prefix_cache *c, struct pd_request *r, size_t most);

enum pd_prefix_keep {
    PD_KEEP_NONE,
    PD_KEEP_BEFORE,            /* what was kept before the request took it */
    PD_KEEP_ALL
};
/* Whether the request's sequence is one of these. */
bool pd_prefix_has(const struct pd_prefix_cache *c, const struct pd_request *r);
/* Takes the request's sequence from it, and keeps it so far if that is worth it. */
void pd_prefix_release(struct pd_prefix_cache *c, struct pd_request *r, enum pd_prefix_keep keep);

/* Frees kept sequences until so many positions are free. False: there are not as many. */
bool pd_prefix_make_room(struct pd_prefix_cache *c, uint64_t n_positions);
/* Frees a kept sequence where the session has all that it can have. */
void pd_prefix_make_sequence(struct pd_prefix_cache *c);
/* Numbers of sequences that are kept, and that requests have. */
uint32_t pd_prefix_n_kept(const struct pd_prefix_cache *c);
uint32_t pd_prefix_n_taken(const struct pd_prefix_cache *c);

/* ---- schedule ---- */

/* A schedule owns the sequences that it found; requests are the caller's, and are removed before they go. Callbacks of
 * requests may add others, and not remove any. */

struct pd_schedule {
    struct pd_session *s;
    uint32_t n_parallel;
    struct pd_request *waiting;        /* in order */
    struct pd_request *running[PD_MAX_SEQUENCES];   /* those with sequences, whether these were given or found */
    uint32_t n_waiting, n_running;
    struct pd_prefix_cache prefixes;
    uint64_t n_preempted;              /* times that a request gave up its sequence */
};

/* n_parallel: requests at most that have sequences which the schedule found. */
void pd_schedule_init(struct pd_schedule *c, struct pd_session *s, uint32_t n_parallel);
/* Adds a request that has begun on a sequence of its own. */
void pd_schedule_attach(struct pd_schedule *c, struct pd_request *r);
/* Adds a request without a sequence, whose tokens become the schedule's to replace; pd_schedule_remove leaves them to
 * the caller again. */
peridot_status pd_schedule_add(struct pd_schedule *c, struct pd_request *r);
/* Takes a request out, whatever its state. Of what it added to the cache nothing is kept if it is not done. */
void pd_schedule_remove(struct pd_schedule *c, struct pd_request *r);
/* A round: see peridot_session_run. */
peridot_status pd_schedule_run(struct pd_schedule *c);

/* ---- worker ---- */

/* Compares this rank's version, file and division of layers with those of the other ranks, and adds up their sizes: all
 * ranks call it when their layers are loaded. */
peridot_status pd_ranks_open(struct pd_model *model);
/* Rank 0: ends the others' pd_worker_run. */
void pd_ranks_close(struct pd_model *model);
/* Evaluates for rank 0 until that closes its model. */
peridot_status pd_worker_run(struct pd_model *model);

#endif

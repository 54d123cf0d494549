/* One pass over rows: a row is a position of a sequence, with a token or an embedding to read and something that is
 * wanted of it. A chunk of a prompt, a decode step, a step of fifty sequences, a draft and a batch of texts are all
 * this. Memory was taken when the session was made: a pass allocates nothing. */
#ifndef PD_ENGINE_PASS_PASS_H
#define PD_ENGINE_PASS_PASS_H

#include "engine/load/load.h"
#include "engine/memory/memory.h"
#include "engine/sequence/sequence.h"
#include "ops/ops.h"

/* ---- forward ---- */

/* The transformer: what is computed, in which order. Kernels, types, slices and fusion are ops' business; which rows a
 * pass has, and at which positions, is the caller's. Nothing here owns memory: a pass is recorded into the recorder's
 * commands, and all buffers must live until those commands have run.
 * In shapes n is the rows of a pass, and head_dim, n_heads and ffn_dim are those of the layer. */

/* Activations of a pass, fp32, allocated once per session for its most rows and the widest layer. What lies between a
 * row's width and its stride is zero, and stays so. */
struct pd_scratch {
    struct pd_rows x;          /* [n][d_model]: the residual stream */
    struct pd_rows x_other;    /* [1][d_model]: see pd_stream */
    struct pd_span x_span, x_other_span;
    struct pd_rows normed;     /* [n][d_model]: what matrices read; at the end the final-norm hidden states */
    struct pd_rows branch;     /* [n][d_model]: output of attention or ffn before it is added */
    struct pd_rows qkv;        /* [n][(n_heads + 2 n_kv_heads) head_dim]: q, k, v; fewer in layers without k or v, and
                                  n_heads more, the gate, in those that have one */
    struct pd_rows att;        /* [n][n_heads head_dim] */
    struct pd_rows delta;      /* [n][n_v d_v]: the same of recurrences; by itself, as it has another width */
    struct pd_rows conv;       /* [n][channels of the convolution], where layers have recurrences */
    struct pd_rows gate_up;    /* [n][2 ffn_dim]: gate, up */
    struct pd_rows act;        /* [n][ffn_dim] */
    /* Where layers have inputs of their own: */
    struct pd_rows per_layer;        /* [n][n_layers][per_layer_dim]: the inputs, without padding */
    struct pd_rows per_layer_model;  /* the same: what of them comes of the embedding */
    struct pd_rows per_layer_gate, per_layer_act;   /* [n][per_layer_dim] */
    /* Where layers have experts: */
    struct pd_rows router;           /* [n][n_experts + 1]: logits, and the shared expert's gate */
    struct pd_rows expert_x;         /* [n][d_model]: what router and experts read, then what is added of them */
    struct pd_rows expert_both;      /* [n][n_experts_used][2 expert_dim]: gate, up */
    struct pd_rows expert_act;       /* [n][n_experts_used][expert_dim] */
    struct pd_rows expert_out;       /* [n][n_experts_used][d_model] */
    struct pd_rows experts;          /* [n][d_model]: their weighted sum, or what the shared one finds */
    struct pd_routes routes;
    struct pd_rows lora;       /* [n][the largest sum of a matrix's ranks]: see pd_recorder; no address: no adapters */
    uint64_t packed;           /* see pd_recorder; 0: no variant needs it */
    uint64_t split_sums;       /* the same */
    uint64_t partial;          /* [splits of all decode rows][n_heads][head_dim + 2]: see pd_attention_reduce_push */
};

/* A row of a pass whose logits are wanted, and the row of logits where they go. */
struct pd_head_row {
    uint32_t row, logits_row;
};

/* Of a drafter: where what it reads of its target stands, and the target's embedding. */
struct pd_target {
    struct pd_rows in;             /* [n][2 target_dim]: the token's embedding, and a hidden state */
    const struct pd_table *lookup;
    float embed_scale;
};

/* A block that drafts has keys of its own (engine/rounds/drafter.c): those of a token are made of its embedding and of
 * the hidden state before it, by the pass that evaluates it. */
struct pd_draft_block {
    const struct pd_config *config;    /* of one layer */
    const struct pd_weights *weights;
    const struct pd_cache *cache;
    uint32_t kind;                     /* of the target's layers with such keys */
    struct pd_target target;           /* in: [rows of a pass][2 d_model] */
    struct pd_rows normed;             /* [rows of a pass][d_model] */
    struct pd_table hidden;            /* pd_workspace.hidden, as a table of rows; with */
    struct pd_matrix matrix;
    struct pd_slice slice;
};

struct pd_forward_args {
    struct pd_recorder *recorder;
    const struct pd_config *config;
    const struct pd_weights *weights;
    const struct pd_cache *cache;
    const struct pd_scratch *scratch;
    struct pd_span step;               /* struct pd_step */
    uint64_t tokens;                   /* [n_tokens] */
    uint64_t embedded;                 /* [n_tokens] rows as in scratch->x: of PD_EMBEDDED tokens; 0: there are none */
    uint64_t places[PD_MAX_LAYER_KINDS];     /* of each kind of layer, [n_tokens] struct pd_place */
    uint64_t angles[PD_MAX_ROPE_TABLES];   /* [n_tokens][head_dim] each: cos, sin */
    uint64_t lora_scales;                  /* [n_tokens][n_adapters]; 0: the model has none */
    uint64_t runs;                         /* [n_runs] struct pd_state_run, where layers have recurrences */
    uint64_t row_states;                   /* [n_decode] states after rows of drafts: see pd_conv_push */
    uint32_t n_runs;
    uint32_t n_tokens;
    uint32_t n_keys;                   /* that the last one may see, where pieces are counted: see pd_recorder */
    uint32_t n_decode;                 /* of them are of a decode step, the first ones: each is the next token of its
                                          own sequence, */
    bool consecutive;                  /* or they may be several consecutive ones */
    /* Rows of prompts whose hidden states are wanted; the others stop after the last layer that writes keys. NULL: all
     * are. */
    const struct pd_head_row *heads;   /* [n_heads] */
    uint32_t n_heads;
    const struct pd_target *target;    /* NULL: it is no drafter */
    /* Where other ranks hold layers: the rows of the residual stream that come from the one before, and go to the next,
     * with the stride of scratch->x, in host memory. */
    struct pd_span rows_in, rows_out;
};

/* From tokens to final-norm hidden states in scratch->normed and, when logits is not NULL, the last token's logits,
 * or those of all tokens of the decode step. Where other ranks hold layers, from rows_in, or to rows_out. */
void pd_forward(const struct pd_forward_args *p, const struct pd_rows *logits);
/* logits[m] = softcap(output . normed[row + m]) for n rows */
void pd_forward_head(const struct pd_forward_args *p, struct pd_rows logits, uint32_t row, uint32_t n);
/* The keys and values of a block, of all rows of a pass that is done but for this: b->target.in has the hidden states
 * before them. x and qkv of the scratch are used. */
void pd_forward_block(const struct pd_forward_args *p, const struct pd_draft_block *b);
/* Shapes of attention in layer i. */
struct pd_heads pd_layer_heads(const struct pd_config *config, const struct pd_weights *weights, uint32_t i);

/* ---- workspace ---- */

/* A workspace owns its heaps, of which the decoder's and the passes' own memory is, too. */

#define PD_LOGITS_ROWS 32    /* rows of logits computed at once for callers that want every row */

struct pd_workspace {
    const struct pd_model *model;
    const struct pd_cache *cache;
    struct pd_variants variants;       /* the model's, or those whose results do not depend on how many sequences
                                          decode */
    struct pd_tunings tunings;         /* the model's when the session was created: variants point to them */
    struct pd_heap *device_heap, *host_heap, *input_heap;
    struct pd_scratch scratch;
    uint32_t n_rows, n_sequences;      /* most rows of a pass, and sequences */
    uint32_t n_decode;                 /* most rows of a decode step, those of drafts included */
    uint32_t n_spare;                  /* rows of logits for callers that want every row */
    struct pd_rows logits;             /* [n_sequences + n_decode + n_spare][n_outputs] */
    uint64_t n_passes, *written_by;    /* [pd_spare_row]: the number of the pass that each row of logits is of */
    struct pd_span normed_span, logits_span;
    struct pd_rows hidden;             /* [pd_spare_row][d_model]: what each row of logits is of, for a drafter; */
    struct pd_span hidden_span;        /* no address: it is not kept */
    const struct pd_draft_block *block;   /* NULL: none. Then `hidden` has more rows: see pd_carried_row */
    uint64_t topk[2];                  /* scratch of the selection */
    float *host_rows;                  /* n_spare rows on the host, and one at least, of n_outputs or d_model */
    struct pd_commands *head_commands; /* of rows of logits that callers want */
    double done_s;                     /* when a pass or a piece was last seen to be done */
    uint32_t split_pages;              /* see pd_decode_place */
    uint32_t attention_groups[PD_MAX_LAYER_KINDS];   /* of a step: see pd_attention_groups */
};

/* Rows of logits: at the end of a sequence's prompt, of row m of a decode step, and for callers that want every row. */
static inline uint32_t pd_own_row(const struct pd_sequence *q) { return q->index; }
static inline uint32_t pd_step_row(const struct pd_workspace *w, uint32_t m) { return w->n_sequences + m; }
static inline uint32_t pd_spare_row(const struct pd_workspace *w) { return w->n_sequences + w->n_decode; }

/* Rows of `hidden` where there is a block: that of a sequence's last row in any pass, row m of the last pass, and zeros
 * in the place of what is before a text. */
static inline uint32_t pd_carried_row(const struct pd_workspace *w, uint32_t sequence)
{
    return pd_spare_row(w) + sequence;
}
static inline uint32_t pd_passed_row(const struct pd_workspace *w, uint32_t m)
{
    return pd_spare_row(w) + w->n_sequences + m;
}
static inline uint32_t pd_zero_row(const struct pd_workspace *w) { return pd_passed_row(w, w->n_rows); }

/* The caller sets input_heap, of what the host writes and kernels read, which is the workspace's from then on, n_rows,
 * n_sequences, n_decode and n_spare. */
peridot_status pd_workspace_create(struct pd_workspace *w, const struct pd_model *model, const struct pd_cache *cache);
void pd_workspace_free(struct pd_workspace *w);
/* From now on passes leave the hidden states of rows that have logits. */
peridot_status pd_workspace_keep_hidden(struct pd_workspace *w);

struct pd_recorder pd_workspace_recorder(const struct pd_workspace *w, struct pd_commands *commands);
/* The best candidates of n rows of logits, to host memory at `best`. */
void pd_workspace_select(const struct pd_workspace *w, struct pd_recorder *r, uint32_t row, uint32_t n, uint64_t best);

/* Reads n rows from row `first` of logits (with a classification head's biases added) or of hidden states to
 * host_rows. */
peridot_status pd_workspace_read_logits(struct pd_workspace *w, uint32_t first, uint32_t n);
peridot_status pd_workspace_read_hidden(struct pd_workspace *w, uint32_t first, uint32_t n);

/* ---- input ---- */

/* Kernels read it while the pass is at work: the host writes it only before. */

/* What a pass reads of the host's memory. */
struct pd_input {
    struct pd_span step, tokens, places, angles;   /* places: [kinds][n_rows]; angles: of each RoPE table
                                                      [n_rows][head_dim] */
    struct pd_span lora_scales;                    /* [n_rows][n_adapters]; empty where the model has none */
    struct pd_span runs;                           /* [PD_MAX_RUNS] struct pd_state_run; empty without recurrences */
    struct pd_span row_states;                     /* [n_decode], the same: see pd_conv_push */
    struct pd_span before;                         /* [n_rows] rows of hidden states before, then [n_sequences] those
                                                      that are carried; empty unless there is a block */
    uint32_t n_rows;                               /* at most */
    struct pd_input_row {
        uint32_t table, pos, last;
        int32_t token;                 /* layers may have inputs of their own of it */
    } *rows;                           /* [n_rows]: what other ranks are told; NULL: there are none */
    struct pd_span embedded;           /* [n_rows][x.stride]: embeddings; empty until there is one */
    /* Where there are: rows of the residual stream from the rank before, and to the next one, in the host's memory. */
    struct pd_span rows_in, rows_out;
};
/* tokens: where these are, or an empty span. */
peridot_status pd_input_create(struct pd_input *in, const struct pd_workspace *w, uint32_t n_rows,
                               struct pd_span tokens);
void pd_input_free(struct pd_input *in);
/* Makes room for what a block needs. */
peridot_status pd_input_keep_before(struct pd_input *in, const struct pd_workspace *w);
/* Row m stands at position pos of the sequence with these pages. It sees its keys up to its own, or to that of position
 * `last`, which the same pass writes: the end of its text, where the model reads texts whole, or of its image. Where
 * layers have windows, how far it sees is the config's business. turns: what rotates it (see pd_config.rope_sections),
 * all three pos but with images in three dimensions. */
struct pd_position {
    uint32_t pos, last, turns[3];
};
void pd_input_write(const struct pd_input *in, const struct pd_workspace *w, uint32_t m, const struct pd_pages *pages,
                    const struct pd_position *at);
/* By how much row m takes each of the model's adapters. */
void pd_input_adapt(const struct pd_input *in, const struct pd_workspace *w, uint32_t m,
                    const struct pd_scales *scales);
/* The grids of a decode step of n rows that are written. */
void pd_input_write_grids(const struct pd_input *in, const struct pd_workspace *w, uint32_t n);

/* Rows of d_model go in instead of the embeddings of n rows from `first` on, where rows[i] is not NULL. */
peridot_status pd_input_embed(struct pd_input *in, const struct pd_workspace *w, uint32_t first,
                              const float *const *rows, uint32_t n);

/* Row m: a query at pos that reads the keys before it, of which the last is at pos - 1, and has none of its own. */
void pd_input_write_query(const struct pd_input *in, const struct pd_workspace *w, uint32_t m,
                          const struct pd_pages *pages, uint32_t pos);
/* What the forward pass over n_rows reads. */
struct pd_forward_args pd_input_forward_args(const struct pd_input *in, const struct pd_workspace *w,
                                             struct pd_recorder *r, uint32_t n_rows);

/* ---- stage ---- */

struct pd_stage {
    const struct pd_workspace *w;
    uint32_t *sent[PD_MAX_LAYER_KINDS];   /* the tables as the other ranks have them */
    uint32_t *body;                       /* of a message, of the largest size */
};

/* An entry of a kind's tables that has changed. */
struct pd_table_entry {
    uint32_t kind, at, page;
};

/* The body of PD_OP_PASS: struct pd_input_row [n_rows], struct pd_head_row [n_heads], struct pd_table_entry
 * [n_entries], struct pd_state_run [n_runs]; its args are the first three numbers, n_keys, n_steps and n_runs. The
 * reply, where there are heads: struct pd_candidate [n_heads][PD_TOPK]. */
struct pd_stage_pass {
    const struct pd_input *in;
    const int32_t *tokens;             /* [n_rows] */
    const struct pd_head_row *heads;
    uint32_t n_rows, n_heads, n_keys, n_steps, n_runs;   /* see pd_pass_shape; the steps' heads come first */
};

peridot_status pd_stage_create(struct pd_stage *s, const struct pd_workspace *w);
void pd_stage_free(struct pd_stage *s);
/* After the pass is done here. The reply is to be waited for where there are heads, and goes to `best`. */
peridot_status pd_stage_send(struct pd_stage *s, const struct pd_stage_pass *pass, struct pd_reply *reply, void *best);

/* ---- pass ---- */

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
    uint32_t n_runs;                   /* where layers have recurrences; else 0 */
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

/* ---- observed ---- */

/* What a model's matrices multiply: the sums of squares of their columns' inputs, over all rows of passes that are
 * recorded after it began, and how many rows these were; of each expert those that took it. */

struct pd_observed {
    struct pd_heap *heap;
    struct pd_span *sums;      /* [n_layers][PD_N_LAYER_MATRICES]: see pd_squares; no address: none */
};

/* The model has no session, and all its layers here. */
peridot_status pd_observed_create(struct pd_observed **out, struct pd_model *model);
bool pd_observed_has(const struct pd_observed *o, uint32_t layer, enum pd_layer_matrix matrix);
/* out [n_experts or 1][n_cols + 1]: sums of the columns, then rows, of a matrix that is observed. */
peridot_status pd_observed_read(float *out, const struct pd_observed *o, const struct pd_model *model, uint32_t layer,
                                enum pd_layer_matrix matrix);
/* NULL is allowed. */
void pd_observed_free(struct pd_observed *o);

/* ---- outputs ---- */

/* What callers want of the rows of prompts while these are evaluated: logits, or hidden states of the final norm. They
 * are read to the host after the pass, and handed to a function of the caller's by the thread that runs the session. */

/* Called for rows: [n_outputs] logits or label scores, or [d_model] hidden states. False: stop. */
typedef bool (*pd_row_call)(void *user, struct pd_sequence *sequence, uint32_t pos, const float *row, size_t n);

struct pd_row_outputs {
    pd_row_call logits, hidden;        /* NULL: none */
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

/* ---- results ---- */

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

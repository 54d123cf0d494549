/* A pass: rows of any sequences through the model, in one recording. A row is a token of a sequence at its position.
 * Rows come in runs of consecutive ones: a decode step of 40 sequences is 40 runs of one row, a draft is a run of its
 * token and the guesses after it, a chunk is a run of each prompt that it has a part of, and a pass may have all of
 * these. It is recorded when its shape differs from what was recorded last, and replayed otherwise.
 *
 * In its life a pass is begun, filled with runs, made ready (recorded), submitted, in one or several pieces, waited
 * for, and its rows are taken. Until a row is taken its sequence is as before. The host writes the input of one only
 * while it is not at work.
 *
 * That all rows are alike to it is why there is one recording, one replay, one measurement, and one thing to tell other
 * ranks, whatever the rows are for. */
#include "engine/pass/pass.h"

#include "base/base.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- creating ---- */

peridot_status pd_pass_create(struct pd_pass *p, struct pd_workspace *w, struct pd_stage *stage, uint32_t n_rows,
                              struct pd_span tokens)
{
    uint32_t n = w->n_decode, n_best = w->n_decode + w->n_sequences;
    *p = (struct pd_pass){.w = w, .stage = stage};
    PD_TRY(pd_input_create(&p->input, w, n_rows, tokens));
    PD_TRY(pd_heap_alloc(&p->draws, w->input_heap, sizeof(struct pd_draw) * n, "draws"));
    PD_TRY(pd_heap_alloc(&p->drawn, w->host_heap, sizeof(struct pd_candidate) * n, "draws"));
    PD_TRY(pd_heap_alloc(&p->best, w->host_heap, sizeof(struct pd_candidate) * PD_TOPK * n_best, "candidates"));
    p->tokens = calloc(n_rows, sizeof *p->tokens);
    if (!p->tokens) return pd_fail_alloc(n_rows * sizeof *p->tokens, "tokens");
    return pd_commands_create(&p->commands, w->model->gpu);
}

void pd_pass_free(struct pd_pass *p)
{
    if (!p->w) return;
    pd_pass_await_reply(p);   /* it would be written to memory that is gone */
    pd_commands_free(p->commands);
    pd_input_free(&p->input);
    free(p->tokens);
    *p = (struct pd_pass){0};
}

/* ---- filling ---- */

peridot_status pd_pass_begin(struct pd_pass *p)
{
    p->n_runs = 0;
    p->shape = (struct pd_pass_shape){.keeps_hidden = p->w->hidden.address != 0};
    p->n_submitted = 0;
    p->seconds = p->longest = 0;
    p->sent = false;
    for (uint32_t i = 0; p->input.before.size && i < p->w->n_sequences; i++)
        ((uint32_t *)p->input.before.host)[p->input.n_rows + i] = pd_carried_row(p->w, i);
    return pd_pass_await_reply(p);   /* to what was sent and then discarded */
}

/* Row m, or the last of the image that it is in. */
static uint32_t last_of_image(const struct pd_run *run, uint32_t m)
{
    while (run->tokens && pd_is_image_row(run->tokens[m]) && m + 1 < run->n && pd_is_inner_row(run->tokens[m + 1])) m++;
    return m;
}

/* The hidden state before a run's first row is that of the sequence's last one, whose logits may be there, or of the
 * last pass that it was in. Where neither is true any more a block's key is a poor one. */
static void write_before(struct pd_pass *p, const struct pd_run *run, uint32_t row)
{
    const struct pd_sequence *q = run->sequence;
    uint32_t *before = p->input.before.host;
    if (!p->input.before.size) return;
    before[row] = run->pos == 0                           ? pd_zero_row(p->w)
        : run->pos == q->pos && pd_has_logits(p->w, q) ? q->logits_row
                                                          : pd_carried_row(p->w, q->index);
    for (uint32_t m = 1; m < run->n; m++) before[row + m] = pd_passed_row(p->w, row + m - 1);
    before[p->input.n_rows + q->index] = pd_passed_row(p->w, row + run->n - 1);
}

/* Before a run's first row: after all that its sequence has, and what is under way: rows of the prompt before it, or
 * text that steps draw. Of models whose images are not in three dimensions, and of those that see none, nobody asks. */
static struct pd_turns turns_before(const struct pd_workspace *w, const struct pd_run *run)
{
    struct pd_turns turns = {0};
    uint32_t each[3], n_known = (uint32_t)pd_min(run->pos, run->sequence->pos), n_under_way = run->pos - n_known;
    const int32_t *tokens = run->sequence->tokens;
    bool of_prompt = run->kind == PD_RUN_PROMPT && run->tokens;
    if (!w->model->config.rope_sections[0] || !w->model->tower) return (struct pd_turns){.next = run->pos};
    for (uint32_t i = 0; i < n_known; i++) pd_turn(each, &turns, tokens[i]);
    for (uint32_t i = 0; i < n_under_way; i++) pd_turn(each, &turns, of_prompt ? (run->tokens - n_under_way)[i] : 0);
    return turns;
}

peridot_status pd_pass_add(struct pd_pass *p, const struct pd_run *run)
{
    struct pd_pass_shape *s = &p->shape;
    struct pd_run *r = &p->runs[p->n_runs++];
    uint32_t row = s->n_rows;
    bool whole = p->w->model->config.bidirectional;
    assert(p->n_runs <= PD_MAX_RUNS && row + run->n <= p->input.n_rows);
    assert(run->kind == PD_RUN_PROMPT || row == s->n_steps);
    *r = *run;
    r->row = row;
    write_before(p, run, row);
    s->n_rows += run->n;
    if (p->input.runs.size) {
        struct pd_state_run *states = (struct pd_state_run *)p->input.runs.host + s->n_runs++;
        *states = (struct pd_state_run){.first = row, .n = run->n};
        uint32_t *each = run->kind == PD_RUN_STEP ? (uint32_t *)p->input.row_states.host + row : NULL;
        PD_TRY(pd_states_step(states, each, &run->sequence->set->cache, &run->sequence->pages, run->pos));
    }
    struct pd_turns turns = turns_before(p->w, run);
    for (uint32_t m = 0; m < run->n; m++) {
        struct pd_position at = {.pos = run->pos + m,
                                 .last = run->pos + (whole ? run->n - 1 : last_of_image(run, m))};
        pd_turn(at.turns, &turns, run->tokens && p->w->model->config.rope_sections[0] ? run->tokens[m] : 0);
        pd_input_write(&p->input, p->w, row + m, &run->sequence->pages, &at);
        pd_input_adapt(&p->input, p->w, row + m, &run->sequence->scales);
    }
    if (run->tokens) {
        memcpy(p->tokens + row, run->tokens, run->n * sizeof *run->tokens);
        memcpy((int32_t *)p->input.tokens.host + row, run->tokens, run->n * sizeof *run->tokens);
    }
    r->tokens = NULL;
    if (run->embeddings) PD_TRY(pd_input_embed(&p->input, p->w, row, run->embeddings, run->n));
    s->embeds |= run->embeddings != NULL;
    r->embeddings = NULL;
    s->all_rows |= run->all_rows;
    if (run->kind == PD_RUN_PROMPT) {
        s->n_keys = (uint32_t)pd_max(s->n_keys, run->pos + run->n);
        if (run->ends)
            s->heads[s->n_heads++] = (struct pd_head_row){row + run->n - 1, pd_own_row(run->sequence)};
    } else {
        s->n_steps += run->n;
        s->consecutive |= run->n > 1;
    }
    return PERIDOT_OK;
}

/* ---- recording ---- */

static struct pd_rows step_logits(const struct pd_pass *p, const struct pd_pass_shape *s)
{
    return pd_rows_at(p->w->logits, pd_step_row(p->w, s->first_logits), 0);
}

/* Logits of n rows and their candidates, which are from number `best` on. */
static void compute_head(const struct pd_pass *p, const struct pd_forward_args *args, uint32_t row, uint32_t n,
                         uint32_t logits_row, uint32_t best)
{
    pd_forward_head(args, pd_rows_at(p->w->logits, logits_row, 0), row, n);
    pd_workspace_select(p->w, args->recorder, logits_row, n,
                        p->best.address + sizeof(struct pd_candidate) * PD_TOPK * best);
}

/* Beside rows of logits stay the hidden states of n rows, which they are of. */
static void keep_hidden(const struct pd_pass *p, struct pd_recorder *r, uint32_t row, uint32_t n, uint32_t logits_row)
{
    const struct pd_workspace *w = p->w;
    uint64_t size = (uint64_t)w->scratch.normed.stride * sizeof(float);
    if (w->hidden.address) pd_op_copy(r, w->hidden_span, logits_row * size, w->normed_span, row * size, n * size);
}

/* To where a block reads them, the hidden states before n rows; those of sequences' last rows are carried on. */
static void gather_before(const struct pd_pass *p, struct pd_recorder *r, uint32_t n)
{
    const struct pd_workspace *w = p->w;
    const struct pd_draft_block *b = w->block;
    uint64_t size = (uint64_t)w->hidden.stride * sizeof(float), tokens = p->input.before.address;
    const struct pd_embed before = {.x = pd_rows_at(b->target.in, 0, w->model->config.d_model), .table = &b->hidden,
        .tokens = tokens, .scale = 1};
    const struct pd_embed carried = {.x = pd_rows_at(w->hidden, pd_carried_row(w, 0), 0), .table = &b->hidden,
        .tokens = tokens + sizeof(uint32_t) * p->input.n_rows, .scale = 1};
    pd_op_copy(r, w->hidden_span, pd_passed_row(w, 0) * size, w->normed_span, 0, n * size);
    pd_op_embed(r, &before, n);
    pd_op_embed(r, &carried, w->n_sequences);
}

static void draw_tokens(const struct pd_pass *p, struct pd_recorder *r, uint32_t n)
{
    const struct pd_sample_push push = {.best = p->best.address,
                                        .draws = p->draws.address,
                                        .tokens = p->input.tokens.address,
                                        .drawn = p->drawn.address,
                                        .recent = p->recent.address,
                                        .bias = p->bias.address};
    pd_op_sample(r, &push, n);
}

/* Records a pass of shape s; returns the multiplications of its largest piece. A step by itself has its logits in the
 * forward pass, which fuses the last norm into them. */
static uint64_t forward_rows(const struct pd_pass *p, struct pd_recorder *r, const struct pd_pass_shape *s)
{
    const struct pd_weights *weights = &p->w->model->weights;
    struct pd_forward_args args = pd_input_forward_args(&p->input, p->w, r, s->n_rows);
    const struct pd_rows logits = step_logits(p, s);
    bool head = weights->n_outputs != 0, is_step = s->n_rows == s->n_steps;
    args.n_decode = s->n_steps;
    args.n_keys = s->n_keys;
    args.consecutive = s->consecutive;
    args.heads = s->all_rows ? NULL : s->heads;
    args.n_heads = s->n_heads;
    args.n_runs = s->n_runs;
    if (!s->embeds) args.embedded = 0;
    pd_forward(&args, head && is_step ? &logits : NULL);
    uint64_t most_work = r->most_work;
    if (!head || !weights->has_output) return most_work;
    if (is_step) pd_workspace_select(p->w, r, pd_step_row(p->w, s->first_logits), s->n_steps, p->best.address);
    else if (s->n_steps) compute_head(p, &args, 0, s->n_steps, pd_step_row(p->w, s->first_logits), 0);
    for (uint32_t i = 0; i < s->n_heads; i++)
        compute_head(p, &args, s->heads[i].row, 1, s->heads[i].logits_row, s->n_steps + i);
    if (p->w->block) gather_before(p, r, s->n_rows);
    if (s->n_steps) keep_hidden(p, r, 0, s->n_steps, pd_step_row(p->w, s->first_logits));
    for (uint32_t i = 0; i < s->n_heads; i++) keep_hidden(p, r, s->heads[i].row, 1, s->heads[i].logits_row);
    if (p->w->block) pd_forward_block(&args, p->w->block);   /* before the tokens are the next ones */
    if (s->draws) draw_tokens(p, r, s->n_steps);
    return most_work;
}

static peridot_status record_pass(struct pd_pass *p, struct pd_commands *commands)
{
    struct pd_recorder r = pd_workspace_recorder(p->w, commands);
    r.piece_work = p->shape.piece_work;
    PD_TRY(pd_commands_begin(commands));
    p->most_work = forward_rows(p, &r, &p->shape);
    peridot_status status = pd_commands_end(commands);
    return r.status != PERIDOT_OK ? r.status : status;
}

peridot_status pd_pass_ready(struct pd_pass *p)
{
    const struct pd_pass_shape *s = &p->shape;
    struct pd_workspace *w = p->w;
    if (s->n_steps) pd_input_write_grids(&p->input, w, s->n_steps);
    p->number = ++w->n_passes;
    for (uint32_t m = 0; m < s->n_steps; m++) w->written_by[pd_step_row(w, s->first_logits + m)] = p->number;
    for (uint32_t i = 0; i < s->n_heads; i++) w->written_by[s->heads[i].logits_row] = p->number;
    if (memcmp(s, &p->recorded, sizeof *s) == 0) return PERIDOT_OK;
    p->recorded = (struct pd_pass_shape){0};
    PD_TRY(record_pass(p, p->commands));
    p->recorded = *s;
    return PERIDOT_OK;
}

peridot_status pd_pass_compile(const struct pd_pass *p, const struct pd_pass_shape *shape)
{
    struct pd_recorder r = pd_workspace_recorder(p->w, NULL);
    forward_rows(p, &r, shape);
    return r.status;
}

peridot_status pd_pass_measure(struct pd_pass *p, struct pd_commands *commands)
{
    if (p->shape.n_steps) pd_input_write_grids(&p->input, p->w, p->shape.n_steps);
    for (uint32_t i = 0; i < p->n_runs; i++) p->runs[i].sequence->logits_pass = 0;   /* they are overwritten */
    p->w->n_passes++;
    for (uint32_t row = 0; row < pd_spare_row(p->w); row++) p->w->written_by[row] = p->w->n_passes;
    PD_TRY(record_pass(p, commands));
    PD_TRY(pd_commands_run(commands));
    return pd_commands_run(commands);
}

/* ---- pieces ---- */

bool pd_pass_is_submitted(const struct pd_pass *p) { return p->n_submitted == pd_commands_n_pieces(p->commands); }

peridot_status pd_pass_submit(struct pd_pass *p)
{
    p->begun = pd_now();
    return pd_commands_submit_piece(p->commands, p->n_submitted++);
}

peridot_status pd_pass_wait(struct pd_pass *p)
{
    PD_TRY(pd_commands_wait(p->commands));
    double begun = fmax(p->begun, p->w->done_s);
    p->w->done_s = pd_now();
    p->seconds += p->w->done_s - begun;
    p->longest = fmax(p->longest, p->w->done_s - begun);
    return PERIDOT_OK;
}

peridot_status pd_pass_run(struct pd_pass *p)
{
    PD_TRY(pd_pass_ready(p));
    do {
        PD_TRY(pd_pass_submit(p));
        PD_TRY(pd_pass_wait(p));
    } while (!pd_pass_is_submitted(p));
    PD_TRY(pd_pass_send(p));
    return pd_pass_await_reply(p);
}

/* ---- other ranks ---- */

peridot_status pd_pass_send(struct pd_pass *p)
{
    const struct pd_pass_shape *s = &p->shape;
    struct pd_head_row heads[PD_MAX_RUNS];
    uint32_t n = 0;
    if (!p->stage || p->sent) return PERIDOT_OK;
    bool head = p->w->model->weights.n_outputs != 0;
    for (uint32_t m = 0; head && m < s->n_steps; m++)
        heads[n++] = (struct pd_head_row){m, pd_step_row(p->w, s->first_logits + m)};
    for (uint32_t i = 0; head && i < s->n_heads; i++) heads[n++] = s->heads[i];
    const struct pd_stage_pass pass = {.in = &p->input, .tokens = p->tokens, .heads = heads,
                                       .n_rows = s->n_rows, .n_heads = n, .n_keys = s->n_keys, .n_steps = s->n_steps,
                                       .n_runs = s->n_runs};
    PD_TRY(pd_stage_send(p->stage, &pass, &p->reply, p->best.host));
    p->sent = true;
    p->awaits = n != 0;
    return PERIDOT_OK;
}

/* What the last rank's device chose is drawn and looked up here. */
static peridot_status check_reply(const struct pd_pass *p)
{
    const struct pd_candidate *best = p->best.host;
    uint32_t n_pieces = p->w->model->n_pieces, n_best = (uint32_t)pd_min(PD_TOPK, n_pieces);
    for (uint32_t i = 0; i < p->reply.size / sizeof *best; i++)
        if (i % PD_TOPK < n_best && best[i].id >= n_pieces)
            return pd_fail(PERIDOT_ERROR_LINK, "the last rank replied with token %u, and the model has %u", best[i].id,
                           n_pieces);
    return PERIDOT_OK;
}

peridot_status pd_pass_await_reply(struct pd_pass *p)
{
    if (!p->awaits) return PERIDOT_OK;
    p->awaits = false;
    PD_TRY(pd_link_wait(p->w->model->link, &p->reply));
    return check_reply(p);
}

/* ---- results ---- */

/* The logits of the sequence's last position are in a row of the device, with these candidates. */
static void take_logits(const struct pd_pass *p, struct pd_sequence *q, uint32_t row, uint32_t best)
{
    q->logits_row = row;
    q->logits_pass = p->number;
    memcpy(q->best, pd_pass_best(p, best), sizeof q->best);
}

/* Where a state is to be kept, which there is of each row of a step. */
static void mark_interval(struct pd_sequence *q)
{
    if (pd_states_room(&q->set->cache, q->pos) == PD_STATE_INTERVAL) pd_sequence_mark(q);
}

void pd_pass_take_row(const struct pd_pass *p, const struct pd_run *run, uint32_t i)
{
    struct pd_sequence *q = run->sequence;
    uint32_t m = run->row + i;
    pd_sequence_append(q, &p->tokens[m], 1);
    q->logits_pass = 0;
    if (p->w->model->weights.n_outputs)
        take_logits(p, q, pd_step_row(p->w, p->shape.first_logits + m), m);
    mark_interval(q);
}

/* The number of its last row among the heads of prompts. */
static uint32_t head_of(const struct pd_pass *p, const struct pd_run *run)
{
    uint32_t i = 0;
    while (p->shape.heads[i].row != run->row + run->n - 1) i++;
    return i;
}

void pd_pass_take(const struct pd_pass *p, const struct pd_run *run)
{
    struct pd_sequence *q = run->sequence;
    if (run->kind == PD_RUN_STEP) {
        for (uint32_t i = 0; i < run->n; i++) pd_pass_take_row(p, run, i);
    } else {
        pd_sequence_append(q, p->tokens + run->row, run->n);
        q->logits_pass = 0;
        if (run->ends) take_logits(p, q, pd_own_row(q), p->shape.n_steps + head_of(p, run));
        mark_interval(q);
    }
}

int32_t pd_pass_drawn(const struct pd_pass *p, uint32_t m)
{
    return (int32_t)((const struct pd_candidate *)p->drawn.host)[m].id;
}

bool pd_pass_leave(struct pd_pass *p, const struct pd_sequence *q)
{
    bool any = false;
    for (uint32_t i = 0; i < p->n_runs; i++) {
        if (p->runs[i].sequence == q) p->runs[i].sequence = NULL;
        any = any || p->runs[i].sequence;
    }
    return any;
}

/* ---- rows of logits ---- */

/* Their hidden states are in the scratch still. */
static peridot_status compute_logits(const struct pd_pass *p, struct pd_commands *commands, uint32_t row, uint32_t n)
{
    struct pd_recorder r = pd_workspace_recorder(p->w, commands);
    struct pd_forward_args args = pd_input_forward_args(&p->input, p->w, &r, n);
    pd_forward_head(&args, pd_rows_at(p->w->logits, pd_spare_row(p->w), 0), row, n);
    return r.status;
}

peridot_status pd_pass_compile_logits(const struct pd_pass *p, uint32_t n) { return compute_logits(p, NULL, 0, n); }

peridot_status pd_pass_compute_logits(const struct pd_pass *p, uint32_t row, uint32_t n)
{
    struct pd_workspace *w = p->w;
    if (!w->model->weights.has_output) return pd_link_tell(w->model->link, PD_OP_HEAD, row, n, 0);
    PD_TRY(pd_commands_begin(w->head_commands));
    peridot_status recorded = compute_logits(p, w->head_commands, row, n), status = pd_commands_end(w->head_commands);
    PD_TRY(recorded != PERIDOT_OK ? recorded : status);
    return pd_commands_run(w->head_commands);
}

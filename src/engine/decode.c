#include "engine/decode.h"

#include "base/num.h"
#include "base/os.h"
#include "engine/results.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define QUEUE_SECONDS 0.1   /* what comes after a text may have to wait so long for steps that were discarded */

/* ---- creating ---- */

static peridot_status create(struct pd_decoder *d, struct pd_workspace *w, struct pd_stage *stage)
{
    uint32_t n = w->n_sequences;
    *d = (struct pd_decoder){.w = w, .stage = stage, .queue_s = QUEUE_SECONDS};
    PD_TRY(pd_heap_alloc(&d->tokens, w->input_heap, sizeof(uint32_t) * n, "tokens"));
    PD_TRY(pd_heap_alloc(&d->recent, w->input_heap, sizeof(int32_t) * PD_REPEAT_WINDOW * n, "recent tokens"));
    PD_TRY(pd_heap_alloc(&d->bias, w->input_heap, sizeof(struct pd_candidate) * PD_TOPK * n, "biases"));
    for (uint32_t i = 0; i < PD_N_SLOTS; i++) {
        struct pd_slot *slot = &d->slots[i];
        PD_TRY(pd_input_create(&slot->input, w, n, d->tokens));
        PD_TRY(pd_heap_alloc(&slot->draws, w->input_heap, sizeof(struct pd_draw) * n, "draws"));
        PD_TRY(pd_heap_alloc(&slot->drawn, w->host_heap, sizeof(struct pd_candidate) * n, "draws"));
        PD_TRY(pd_heap_alloc(&slot->best, w->host_heap, sizeof(struct pd_candidate) * PD_TOPK * n, "candidates"));
        PD_TRY(pd_commands_create(&slot->commands, w->model->gpu));
    }
    return PERIDOT_OK;
}

static peridot_status create_groups(struct pd_decoder *d, uint32_t n)
{
    uint32_t n_rows = d->w->n_sequences;
    d->groups = calloc(n, sizeof *d->groups);
    if (!d->groups) return pd_fail_alloc(n * sizeof *d->groups, "groups");
    for (uint32_t g = 0; g < n; g++) {
        PD_TRY(create(&d->groups[g], d->w, d->stage));
        d->n_groups++;
        d->groups[g].first_row = n_rows * g / n;
        d->groups[g].most_rows = n_rows * (g + 1) / n - d->groups[g].first_row;
    }
    return PERIDOT_OK;
}

peridot_status pd_decoder_create(struct pd_decoder *d, struct pd_workspace *w, struct pd_stage *stage)
{
    PD_TRY(create(d, w, stage));
    if (!stage || w->n_sequences == 1) return PERIDOT_OK;
    return create_groups(d, (uint32_t)pd_min(w->model->link->host.n_ranks, w->n_sequences));
}

/* For the other ranks' reply to the last step that they were sent, if any is to come. */
static peridot_status await_reply(struct pd_decoder *d)
{
    if (!d->awaits) return PERIDOT_OK;
    d->awaits = false;
    return pd_link_wait(d->w->model->link, &d->reply);
}

void pd_decoder_free(struct pd_decoder *d)
{
    for (uint32_t g = 0; g < d->n_groups; g++) {
        await_reply(&d->groups[g]);   /* it would be written to memory that is gone */
        pd_decoder_free(&d->groups[g]);
    }
    free(d->groups);
    for (uint32_t i = 0; i < PD_N_SLOTS; i++) {
        pd_commands_free(d->slots[i].commands);
        pd_input_free(&d->slots[i].input);
    }
}

void pd_decoder_discard(struct pd_decoder *d)
{
    d->n_queued = d->n_rows = 0;
    d->sent = false;
    for (uint32_t g = 0; g < d->n_groups; g++) pd_decoder_discard(&d->groups[g]);
}

static void leave(struct pd_decoder *d, const struct pd_sequence *q)
{
    bool any = false;
    for (uint32_t m = 0; m < d->n_rows; m++) {
        if (d->rows[m] == q) d->rows[m] = NULL;
        any = any || d->rows[m];
    }
    if (any) return;
    d->n_queued = d->n_rows = 0;
    d->sent = false;
}

void pd_decoder_leave(struct pd_decoder *d, const struct pd_sequence *q)
{
    leave(d, q);
    for (uint32_t g = 0; g < d->n_groups; g++) leave(&d->groups[g], q);
}

/* ---- a step ---- */

static bool writes_text(const struct pd_decoder *d) { return d->w->model->config.head == PERIDOT_HEAD_LANGUAGE; }

static peridot_status record(struct pd_decoder *d, struct pd_commands *commands, const struct pd_slot *slot)
{
    struct pd_recorder r = pd_workspace_recorder(d->w, commands);
    struct pd_forward_args pass = pd_workspace_forward_args(d->w, &slot->input, &r, d->n_rows);
    const struct pd_rows logits = pd_rows_at(d->w->logits, pd_decoded_row(d->w, d->first_row), 0);
    const struct pd_sample_push push = {.best = slot->best.address,
                                        .draws = slot->draws.address,
                                        .tokens = d->tokens.address,
                                        .drawn = slot->drawn.address,
                                        .recent = d->recent.address,
                                        .bias = d->bias.address};
    bool head = d->w->model->weights.n_outputs != 0;
    PD_TRY(pd_commands_begin(commands));
    pass.n_decode = d->n_rows;
    pd_forward(&pass, head ? &logits : NULL);
    if (head && d->w->model->weights.has_output)
        pd_workspace_select(d->w, &r, pd_decoded_row(d->w, d->first_row), d->n_rows, slot->best.address);
    if (writes_text(d) && !d->w->model->link) pd_op_sample(&r, &push, d->n_rows);
    peridot_status status = pd_commands_end(commands);
    return r.status != PERIDOT_OK ? r.status : status;
}

/* Slot of the step that is `back` before the next one. */
static struct pd_slot *slot_before(struct pd_decoder *d, uint32_t back)
{
    return &d->slots[(d->next_slot + PD_N_SLOTS - back) % PD_N_SLOTS];
}

/* Row m of the next step evaluates `token`; and what draws look back at. */
static void write_token(struct pd_decoder *d, uint32_t m, int32_t token)
{
    const struct pd_sampler *sampler = &d->rows[m]->sampler;
    int32_t *recent = (int32_t *)d->recent.host + m * PD_REPEAT_WINDOW;
    struct pd_candidate *bias = (struct pd_candidate *)d->bias.host + m * PD_TOPK;
    d->evaluates[m] = token;
    ((int32_t *)d->tokens.host)[m] = token;
    memcpy(recent, sampler->recent, sizeof sampler->recent);
    recent[sampler->n_seen % PD_REPEAT_WINDOW] = token;
    for (size_t i = 0; i < pd_min(sampler->p.n_bias, PD_TOPK); i++)
        bias[i] = (struct pd_candidate){sampler->p.bias[i].value, (uint32_t)sampler->p.bias[i].token};
}

/* What the step after those that are queued reads; its slot is free. */
static peridot_status write_step(struct pd_decoder *d, struct pd_slot *slot)
{
    uint32_t n_candidates = (uint32_t)pd_min(PD_TOPK, d->w->model->n_pieces);
    for (uint32_t m = 0; m < d->n_rows; m++) {
        struct pd_sequence *q = d->rows[m];
        struct pd_draw draw = {.n = 1};   /* not asked for */
        PD_TRY(pd_sequence_extend(q, q->pos + d->n_queued + 1));
        if (pd_sampler_can_sample_on_device(&q->sampler))
            draw = pd_sampler_draw_ahead(&q->sampler, n_candidates, d->n_queued);
        ((struct pd_draw *)slot->draws.host)[m] = draw;
        pd_input_write(&slot->input, d->w, m, &q->pages, q->pos + d->n_queued);
    }
    pd_input_write_grids(&slot->input, d->w, d->n_rows);
    return PERIDOT_OK;
}

static peridot_status submit(struct pd_decoder *d)
{
    struct pd_slot *slot = slot_before(d, 0);
    PD_TRY(write_step(d, slot));
    if (slot->n_rows != d->n_rows) {
        slot->n_rows = 0;
        PD_TRY(record(d, slot->commands, slot));
        slot->n_rows = d->n_rows;
    }
    PD_TRY(pd_commands_submit(slot->commands));
    d->next_slot = (d->next_slot + 1) % PD_N_SLOTS;
    d->n_queued++;
    d->n_steps++;
    return PERIDOT_OK;
}

peridot_status pd_decoder_record(struct pd_decoder *d)
{
    d->n_rows = 1;
    for (uint32_t i = 0; i < PD_N_SLOTS; i++) {
        PD_TRY(record(d, d->slots[i].commands, &d->slots[i]));
        d->slots[i].n_rows = 1;
    }
    d->n_rows = 0;
    return PERIDOT_OK;
}

peridot_status pd_decoder_wait(struct pd_decoder *d) { return pd_commands_wait(slot_before(d, 1)->commands); }

/* Sends a step that is done here to the other ranks. */
static peridot_status send_on(struct pd_decoder *d, const struct pd_slot *slot)
{
    struct pd_head_row heads[PD_MAX_SEQUENCES];
    bool head = d->w->model->weights.n_outputs != 0;
    for (uint32_t m = 0; m < d->n_rows; m++)
        heads[m] = (struct pd_head_row){m, pd_decoded_row(d->w, d->first_row + m)};
    const struct pd_stage_pass pass = {.in = &slot->input,
                                       .heads = heads,
                                       .n_rows = d->n_rows,
                                       .n_heads = head ? d->n_rows : 0,
                                       .decode = true};
    PD_TRY(await_reply(d));   /* to a step that was discarded */
    PD_TRY(pd_stage_send(d->stage, &pass, &d->reply, slot->best.host));
    d->sent = true;
    d->awaits = head;
    return PERIDOT_OK;
}

struct pd_slot *pd_decoder_slot(struct pd_decoder *d, uint32_t n, uint32_t first_row)
{
    for (uint32_t i = 0; i < PD_N_SLOTS; i++)
        if (d->slots[i].n_rows == n && d->slots[i].first_row == first_row) return &d->slots[i];
    d->next_slot = (d->next_slot + 1) % PD_N_SLOTS;
    return slot_before(d, 1);
}

peridot_status pd_decoder_replay(struct pd_decoder *d, struct pd_slot *slot, uint32_t n, uint32_t first_row)
{
    pd_input_write_grids(&slot->input, d->w, n);
    if (slot->n_rows != n || slot->first_row != first_row) {
        slot->n_rows = 0;
        d->n_rows = n;
        d->first_row = slot->first_row = first_row;
        PD_TRY(record(d, slot->commands, slot));
        slot->n_rows = n;
    }
    return pd_commands_run(slot->commands);
}

/* Waits for the first of the queued steps, whose tokens are then their sequences'. */
static peridot_status finish(struct pd_decoder *d)
{
    const struct pd_slot *slot = slot_before(d, d->n_queued);
    PD_TRY(pd_commands_wait(slot->commands));
    if (d->stage && !d->sent) PD_TRY(send_on(d, slot));
    d->sent = false;
    PD_TRY(await_reply(d));
    d->n_queued--;
    for (uint32_t m = 0; m < d->n_rows; m++) {
        struct pd_sequence *q = d->rows[m];
        if (!q) continue;
        pd_sequence_append(q, &d->evaluates[m], 1);
        q->logits = d->w->model->weights.n_outputs ? PD_LOGITS_DECODED : PD_LOGITS_NONE;
        q->decoded_row = d->first_row + m;
        q->decoded_step = d->n_steps - d->n_queued;
        memcpy(q->best, (const struct pd_candidate *)slot->best.host + m * PD_TOPK, sizeof q->best);
        d->evaluates[m] = (int32_t)((const struct pd_candidate *)slot->drawn.host)[m].id;
    }
    return PERIDOT_OK;
}

static peridot_status decode(struct pd_decoder *d, struct pd_sequence *const *sequences, const int32_t *tokens,
                             uint32_t n)
{
    PD_TRY(pd_decoder_wait(d));   /* discarded steps may yet read and write what the next one reads */
    for (d->n_rows = 0; d->n_rows < n; d->n_rows++) {
        d->rows[d->n_rows] = sequences[d->n_rows];
        write_token(d, d->n_rows, tokens[d->n_rows]);
    }
    PD_TRY(submit(d));
    return finish(d);
}

peridot_status pd_decode(struct pd_decoder *d, struct pd_sequence *const *sequences, const int32_t *tokens, uint32_t n)
{
    pd_decoder_discard(d);
    peridot_status status = decode(d, sequences, tokens, n);
    pd_decoder_discard(d);
    return status;
}

/* ---- rows of other passes ---- */

peridot_status pd_decoder_yield(struct pd_decoder *d)
{
    pd_decoder_discard(d);
    d->n_steps++;
    return pd_decoder_wait(d);   /* discarded steps may yet read and write what the pass reads */
}

static peridot_status draw_on_host(int32_t *token, const struct pd_decoder *d, struct pd_sequence *q)
{
    bool all = pd_draw_needs_logits(d->w->model, q);
    if (all) PD_TRY(pd_workspace_read_logits(d->w, pd_decoded_row(d->w, q->decoded_row), 1));
    return pd_draw(token, d->w, q, all ? d->w->host_rows : NULL);
}

peridot_status pd_decoder_take(int32_t *next, const struct pd_decoder *d, struct pd_sequence *q, int32_t token,
                               uint32_t m)
{
    pd_sequence_append(q, &token, 1);
    q->logits = PD_LOGITS_DECODED;
    q->decoded_row = m;
    q->decoded_step = d->n_steps;
    memcpy(q->best, pd_best_of(d->w, pd_decoded_row(d->w, m)), sizeof q->best);
    return next ? draw_on_host(next, d, q) : PERIDOT_OK;
}

/* ---- steps ahead ---- */

/* Steps to be at work at once: the device never waits for the host, and what is discarded is soon over. */
static uint32_t depth(const struct pd_decoder *d)
{
    uint32_t n = 1;
    while (n < PD_N_SLOTS && n * d->step_s <= d->queue_s) n++;
    return n;
}

static bool can_sample_ahead(const struct pd_decoder *d, const struct pd_decode_row *rows, uint32_t n)
{
    bool can = writes_text(d) && !d->stage && !pd_kernel_is_wrong(d->w->model->gpu, PD_KERNEL_sample);
    for (uint32_t i = 0; i < n; i++) can = can && !rows[i].keeps_logits;
    for (uint32_t m = 0; m < d->n_rows; m++) can = can && pd_sampler_can_sample_on_device(&d->rows[m]->sampler);
    return can;
}

static struct pd_decode_row *find_row(struct pd_decode_row *rows, uint32_t n, const struct pd_sequence *q)
{
    for (uint32_t i = 0; q && i < n; i++)
        if (rows[i].sequence == q) return &rows[i];
    return NULL;
}

/* Whether the queued steps are of these sequences, all of them; those that are no more among them leave. */
static bool is_same(struct pd_decoder *d, struct pd_decode_row *rows, uint32_t n)
{
    bool same = d->n_rows == n;
    for (uint32_t m = 0; m < d->n_rows; m++) {
        if (!find_row(rows, n, d->rows[m])) d->rows[m] = NULL;
        same = same && d->rows[m];
    }
    return same;
}

static peridot_status regroup(struct pd_decoder *d, const struct pd_decode_row *rows, uint32_t n)
{
    PD_TRY(pd_decoder_wait(d));   /* discarded steps may yet read and write what the next one reads */
    for (d->n_rows = 0; d->n_rows < n; d->n_rows++) {
        d->rows[d->n_rows] = rows[d->n_rows].sequence;
        write_token(d, d->n_rows, rows[d->n_rows].token);
    }
    return submit(d);
}

/* Where there is no memory for a step further ahead, those that are queued will do. */
static peridot_status queue_ahead(struct pd_decoder *d, const struct pd_decode_row *rows, uint32_t n)
{
    uint32_t most = depth(d), wanted = 1, room = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++) {
        wanted = (uint32_t)pd_max(wanted, rows[i].n_more);
        room = (uint32_t)pd_min(room, rows[i].sequence->set->ctx - rows[i].sequence->pos);
    }
    while (d->n_queued < pd_min(pd_min(wanted, room), most)) {
        peridot_status status = submit(d);
        if (status == PERIDOT_ERROR_MEMORY && d->n_queued) return PERIDOT_OK;
        PD_TRY(status);
    }
    return PERIDOT_OK;
}

static peridot_status decode_next(struct pd_decoder *d, struct pd_decode_row *rows, uint32_t n)
{
    double started = pd_now();
    bool alone = d->n_queued == 0, same = !alone && is_same(d, rows, n);
    if (alone) PD_TRY(regroup(d, rows, n));
    bool ahead = (alone || same) && can_sample_ahead(d, rows, n);
    if (ahead) PD_TRY(queue_ahead(d, rows, n));
    PD_TRY(finish(d));
    if (alone) d->step_s = pd_now() - started;
    bool on_device = d->n_queued || ahead || !alone;
    for (uint32_t m = 0; m < d->n_rows; m++) {
        struct pd_decode_row *row = find_row(rows, n, d->rows[m]);
        if (!row) continue;
        row->advanced = true;
        if (!writes_text(d) || row->leaves_draw) continue;
        if (!on_device) PD_TRY(draw_on_host(&row->token, d, row->sequence));
        else PD_TRY(pd_check_best(d->w->model, row->sequence));
        if (on_device) pd_sampler_drawn(&row->sequence->sampler);
        if (on_device) row->token = d->evaluates[m];
    }
    return PERIDOT_OK;
}

/* ---- groups ---- */

static struct pd_decoder *group_of(struct pd_decoder *d, const struct pd_sequence *q)
{
    for (uint32_t g = 0; g < d->n_groups; g++)
        for (uint32_t m = 0; d->groups[g].n_queued && m < d->groups[g].n_rows; m++)
            if (d->groups[g].rows[m] == q) return &d->groups[g];
    return NULL;
}

/* A step of the group's rows, here and then on the other ranks. */
static peridot_status launch(struct pd_decoder *d, struct pd_decoder *group)
{
    const struct pd_slot *slot = slot_before(group, 0);
    PD_TRY(submit(group));
    group->n_steps = ++d->n_steps;
    PD_TRY(pd_commands_wait(slot->commands));
    return send_on(group, slot);
}

/* Idle rows are divided evenly among idle groups. */
static peridot_status launch_idle(struct pd_decoder *d, const struct pd_decode_row *rows, uint32_t n)
{
    uint32_t n_rows = 0, n_groups = 0, next = 0;
    bool idle[PD_MAX_SEQUENCES];
    for (uint32_t i = 0; i < n; i++) n_rows += idle[i] = !group_of(d, rows[i].sequence);
    for (uint32_t g = 0; g < d->n_groups; g++) n_groups += d->groups[g].n_queued == 0;
    for (uint32_t g = 0; g < d->n_groups && n_rows; g++) {
        struct pd_decoder *group = &d->groups[g];
        if (group->n_queued) continue;
        uint32_t most = (uint32_t)pd_min(pd_div_up(n_rows, n_groups--), group->most_rows);
        PD_TRY(await_reply(group));   /* to a step that was discarded */
        for (group->n_rows = 0; group->n_rows < most; next++) {
            if (!idle[next]) continue;
            group->rows[group->n_rows] = rows[next].sequence;
            write_token(group, group->n_rows++, rows[next].token);
        }
        n_rows -= most;
        PD_TRY(launch(d, group));
    }
    return PERIDOT_OK;
}

static peridot_status decode_groups(struct pd_decoder *d, struct pd_decode_row *rows, uint32_t n)
{
    struct pd_decoder *first = NULL;
    PD_TRY(launch_idle(d, rows, n));
    for (uint32_t g = 0; g < d->n_groups; g++)
        if (d->groups[g].n_queued && (!first || d->groups[g].n_steps < first->n_steps)) first = &d->groups[g];
    if (!first) return PERIDOT_OK;
    PD_TRY(finish(first));
    for (uint32_t m = 0; m < first->n_rows; m++) {
        struct pd_decode_row *row = find_row(rows, n, first->rows[m]);
        if (!row) continue;
        row->advanced = true;
        if (writes_text(d) && !row->leaves_draw) PD_TRY(draw_on_host(&row->token, d, row->sequence));
    }
    return PERIDOT_OK;
}

peridot_status pd_decode_next(struct pd_decoder *d, struct pd_decode_row *rows, uint32_t n)
{
    bool grouped = d->n_groups > 0;
    for (uint32_t i = 0; i < n; i++) {
        grouped = grouped && !rows[i].keeps_logits;
        rows[i].advanced = false;
    }
    if (d->n_groups && !grouped) pd_decoder_discard(d);
    peridot_status status = grouped ? decode_groups(d, rows, n) : decode_next(d, rows, n);
    if (status != PERIDOT_OK) pd_decoder_discard(d);
    return status;
}

/* ---- measuring ---- */

peridot_status pd_decoder_measure(struct pd_decoder *d, struct pd_commands *commands,
                                  struct pd_sequence *const *sequences, uint32_t n)
{
    struct pd_slot *slot = slot_before(d, 0);
    pd_decoder_discard(d);
    PD_TRY(pd_decoder_wait(d));   /* discarded steps may yet read and write what the next one reads */
    for (d->n_rows = 0; d->n_rows < n; d->n_rows++) {
        d->rows[d->n_rows] = sequences[d->n_rows];
        write_token(d, d->n_rows, 0);
    }
    peridot_status status = write_step(d, slot);
    if (status == PERIDOT_OK) status = record(d, commands, slot);
    d->n_rows = 0;
    d->n_steps++;   /* it overwrites logits */
    if (status == PERIDOT_OK) status = pd_commands_run(commands);
    return status == PERIDOT_OK ? pd_commands_run(commands) : status;
}

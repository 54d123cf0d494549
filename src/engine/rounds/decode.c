/* Decode steps: the next token of each of some sequences, in one pass that reads the weights once. A step leaves on the
 * device the tokens that it drew, where the embedding of the next step reads them: so steps are submitted ahead, and
 * the host reads tokens as they come. Where a chain needs more than the best few candidates, or has a grammar, the host
 * draws, and steps are submitted one by one. Steps that are discarded do no harm: they wrote keys of positions that are
 * written again before they are read. Where several ranks hold layers, the passes that are queued are of different
 * sequences: while this rank evaluates one group of them, others evaluate other groups. A group has rows of logits of
 * its own on the last rank, so that the host can draw from them later.
 *
 * What a step gives is the same, bit for bit, whatever other sequences are in it: rows share the reading of the weights
 * and nothing else, and attention splits keys by the row's own position. */
#include "engine/rounds/rounds.h"

#include "base/base.h"
#include "engine/pass/pass.h"

#include <stdlib.h>
#include <string.h>

#define QUEUE_SECONDS 0.1   /* what comes after a text may have to wait so long for steps that were discarded */

/* ---- creating ---- */

/* Steps ahead of one group of sequences, or a group for each rank. */
static uint32_t count_passes(const struct pd_workspace *w)
{
    if (w->model->link) return (uint32_t)pd_min(w->model->link->host.n_ranks, w->n_sequences);
    return pd_cache_has_states(w->cache) ? PD_N_STATES - 2 : PD_N_STEPS;   /* each writes one, beside the last two */
}

peridot_status pd_decoder_create(struct pd_decoder *d, struct pd_workspace *w, struct pd_stage *stage)
{
    uint32_t n = w->n_decode, n_passes = count_passes(w);
    *d = (struct pd_decoder){.w = w, .stage = stage, .queue_s = QUEUE_SECONDS};
    PD_TRY(pd_heap_alloc(&d->tokens, w->input_heap, sizeof(uint32_t) * n, "tokens"));
    PD_TRY(pd_heap_alloc(&d->recent, w->input_heap, sizeof(int32_t) * PD_REPEAT_WINDOW * n, "recent tokens"));
    PD_TRY(pd_heap_alloc(&d->bias, w->input_heap, sizeof(struct pd_candidate) * PD_TOPK * n, "biases"));
    d->passes = calloc(n_passes, sizeof *d->passes);
    if (!d->passes) return pd_fail_alloc(n_passes * sizeof *d->passes, "passes");
    d->n_passes = n_passes;
    for (uint32_t i = 0; i < n_passes; i++) {
        PD_TRY(pd_pass_create(&d->passes[i], w, stage, n, d->tokens));
        d->passes[i].recent = d->recent;
        d->passes[i].bias = d->bias;
    }
    return PERIDOT_OK;
}

void pd_decoder_free(struct pd_decoder *d)
{
    for (uint32_t i = 0; i < d->n_passes; i++) pd_pass_free(&d->passes[i]);
    free(d->passes);
}

/* ---- the queue ---- */

/* The pass that is `back` before the next one. */
static struct pd_pass *pass_before(const struct pd_decoder *d, uint32_t back)
{
    return &d->passes[(d->next + d->n_passes - back) % d->n_passes];
}

static struct pd_pass *oldest(const struct pd_decoder *d) { return pass_before(d, d->n_queued); }

void pd_decoder_discard(struct pd_decoder *d) { d->n_queued = 0; }

/* Passes that no sequence is left in are discarded as soon as they are the oldest. */
void pd_decoder_leave(struct pd_decoder *d, const struct pd_sequence *q)
{
    bool none_yet = true;
    for (uint32_t back = d->n_queued; back > 0; back--) {
        bool any = pd_pass_leave(pass_before(d, back), q);
        none_yet = none_yet && !any;
        if (none_yet) d->n_queued--;
    }
}

peridot_status pd_decoder_wait(struct pd_decoder *d) { return pd_commands_wait(pass_before(d, 1)->commands); }

peridot_status pd_decoder_yield(struct pd_decoder *d)
{
    pd_decoder_discard(d);
    return pd_decoder_wait(d);
}

/* ---- a step ---- */

static bool writes_text(const struct pd_decoder *d) { return d->w->model->config.head == PERIDOT_HEAD_LANGUAGE; }

/* Row m of a pass that is filled, after n_ahead queued steps of the same sequence. tokens: its token, or NULL if the
 * step before draws it. */
static peridot_status add_row(struct pd_decoder *d, struct pd_pass *p, struct pd_sequence *q, const int32_t *token,
                              uint32_t n_ahead)
{
    uint32_t m = p->n_runs, n_candidates = (uint32_t)pd_min(PD_TOPK, d->w->model->n_pieces);
    struct pd_draw draw = {.n = 1};   /* not asked for */
    PD_TRY(pd_sequence_extend(q, q->pos + n_ahead + 1));
    if (pd_sampler_can_sample_on_device(&q->sampler))
        draw = pd_sampler_draw_ahead(&q->sampler, n_candidates, n_ahead);
    ((struct pd_draw *)p->draws.host)[m] = draw;
    if (token)
        pd_sampler_write_chain(&q->sampler, (int32_t *)d->recent.host + m * PD_REPEAT_WINDOW,
                               (struct pd_candidate *)d->bias.host + m * PD_TOPK, *token);
    const struct pd_run run = {.kind = PD_RUN_STEP, .sequence = q, .pos = q->pos + n_ahead, .n = 1, .tokens = token};
    return pd_pass_add(p, &run);
}

/* Empties the next pass. Groups that are on their way have rows of logits of their own. */
static peridot_status begin_step(struct pd_pass **out, struct pd_decoder *d, bool grouped)
{
    struct pd_pass *p = *out = pass_before(d, 0);
    uint32_t g = (uint32_t)(p - d->passes);
    PD_TRY(pd_pass_begin(p));
    p->shape.first_logits = grouped ? d->w->n_sequences * g / d->n_passes : 0;
    p->shape.draws = writes_text(d) && !d->w->model->link;
    return PERIDOT_OK;
}

static peridot_status submit_step(struct pd_decoder *d, struct pd_pass *p)
{
    PD_TRY(pd_pass_ready(p));
    PD_TRY(pd_pass_submit(p));
    d->next = (d->next + 1) % d->n_passes;
    d->n_queued++;
    return PERIDOT_OK;
}

/* Waits for the oldest pass, whose tokens are then their sequences'. */
static peridot_status finish_step(struct pd_pass **out, struct pd_decoder *d)
{
    struct pd_pass *p = *out = oldest(d);
    PD_TRY(pd_pass_wait(p));
    PD_TRY(pd_pass_send(p));
    PD_TRY(pd_pass_await_reply(p));
    d->n_queued--;
    for (uint32_t i = 0; i < p->n_runs; i++)
        if (p->runs[i].sequence) pd_pass_take(p, &p->runs[i]);
    for (uint32_t m = 0; d->n_queued && !d->stage && m < p->n_runs; m++) oldest(d)->tokens[m] = pd_pass_drawn(p, m);
    return PERIDOT_OK;
}

peridot_status pd_decoder_fill(struct pd_pass **out, struct pd_decoder *d, struct pd_sequence *const *sequences,
                               uint32_t n)
{
    static const int32_t any = 0;
    PD_TRY(pd_decoder_yield(d));
    PD_TRY(begin_step(out, d, false));
    for (uint32_t i = 0; i < n; i++) PD_TRY(add_row(d, *out, sequences[i], &any, 0));
    return PERIDOT_OK;
}

peridot_status pd_decode(struct pd_decoder *d, struct pd_sequence *const *sequences, const int32_t *tokens, uint32_t n)
{
    struct pd_pass *p;
    PD_TRY(pd_decoder_yield(d));
    PD_TRY(begin_step(&p, d, false));
    for (uint32_t i = 0; i < n; i++) PD_TRY(add_row(d, p, sequences[i], &tokens[i], 0));
    peridot_status status = submit_step(d, p);
    if (status == PERIDOT_OK) status = finish_step(&p, d);
    pd_decoder_discard(d);
    return status;
}

peridot_status pd_decoder_record(struct pd_decoder *d)
{
    for (uint32_t i = 0; i < d->n_passes; i++) {
        struct pd_pass *p;
        PD_TRY(begin_step(&p, d, false));
        p->shape.n_rows = p->shape.n_steps = 1;
        p->shape.n_runs = pd_cache_has_states(d->w->cache);
        PD_TRY(pd_pass_ready(p));
        d->next = (d->next + 1) % d->n_passes;
    }
    return PERIDOT_OK;
}

struct pd_pass *pd_decoder_pass(struct pd_decoder *d, const struct pd_pass_shape *shape)
{
    for (uint32_t i = 0; i < d->n_passes; i++)
        if (memcmp(&d->passes[i].recorded, shape, sizeof *shape) == 0) return &d->passes[i];
    d->next = (d->next + 1) % d->n_passes;
    return pass_before(d, 1);
}

/* ---- drafts ---- */

peridot_status pd_decode_drafts(struct pd_decoder *d, struct pd_draft_rows *rows, uint32_t n)
{
    struct pd_pass *p;
    PD_TRY(pd_decoder_yield(d));
    PD_TRY(begin_step(&p, d, false));
    p->shape.draws = false;
    for (uint32_t i = 0; i < n; i++) {
        rows[i].pass = p;
        rows[i].run = i;
        const struct pd_run run = {.kind = PD_RUN_STEP, .sequence = rows[i].sequence, .pos = rows[i].sequence->pos,
                                   .n = rows[i].n, .tokens = rows[i].tokens};
        PD_TRY(pd_pass_add(p, &run));
    }
    d->next = (d->next + 1) % d->n_passes;
    return pd_pass_run(p);
}

peridot_status pd_draft_take(int32_t *next, struct pd_decoder *d, const struct pd_draft_rows *rows, uint32_t i)
{
    pd_pass_take_row(rows->pass, &rows->pass->runs[rows->run], i);
    return next ? pd_draw_next(next, d->w, rows->sequence) : PERIDOT_OK;
}

/* ---- steps ahead ---- */

/* Steps to be at work at once: the device never waits for the host, and what is discarded is soon over. */
static uint32_t depth(const struct pd_decoder *d)
{
    uint32_t n = 1;
    while (n < d->n_passes && n * d->step_s <= d->queue_s) n++;
    return n;
}

static bool can_sample_ahead(const struct pd_decoder *d, const struct pd_decode_row *rows, uint32_t n)
{
    bool can = writes_text(d) && !d->stage && !pd_kernel_is_wrong(d->w->model->gpu, PD_KERNEL_sample);
    for (uint32_t i = 0; i < n; i++)
        can = can && !rows[i].keeps_logits && pd_sampler_can_sample_on_device(&rows[i].sequence->sampler);
    return can;
}

static struct pd_decode_row *find_row(struct pd_decode_row *rows, uint32_t n, const struct pd_sequence *q)
{
    for (uint32_t i = 0; q && i < n; i++)
        if (rows[i].sequence == q) return &rows[i];
    return NULL;
}

/* Whether the queued steps are of these sequences, all of them; those that are no more among them leave. */
static bool are_queued(struct pd_decoder *d, struct pd_decode_row *rows, uint32_t n)
{
    const struct pd_pass *first = oldest(d);
    bool same = first->n_runs == n;
    for (uint32_t m = 0; m < first->n_runs; m++) {
        const struct pd_sequence *q = first->runs[m].sequence;
        if (q && !find_row(rows, n, q))
            for (uint32_t back = d->n_queued; back > 0; back--) pd_pass_leave(pass_before(d, back), q);
        same = same && first->runs[m].sequence;
    }
    return same;
}

static peridot_status submit_first(struct pd_decoder *d, const struct pd_decode_row *rows, uint32_t n)
{
    struct pd_pass *p;
    PD_TRY(pd_decoder_wait(d));   /* discarded steps may yet read and write what the next one reads */
    PD_TRY(begin_step(&p, d, false));
    for (uint32_t i = 0; i < n; i++) PD_TRY(add_row(d, p, rows[i].sequence, &rows[i].token, 0));
    return submit_step(d, p);
}

/* A step of the same rows after those that are queued. */
static peridot_status submit_ahead(struct pd_decoder *d)
{
    const struct pd_pass *before = pass_before(d, 1);
    struct pd_pass *p;
    PD_TRY(begin_step(&p, d, false));
    for (uint32_t m = 0; m < before->n_runs; m++)
        PD_TRY(add_row(d, p, before->runs[m].sequence, NULL, d->n_queued));
    return submit_step(d, p);
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
        peridot_status status = submit_ahead(d);
        if (status == PERIDOT_ERROR_MEMORY && d->n_queued) return PERIDOT_OK;
        PD_TRY(status);
    }
    return PERIDOT_OK;
}

/* The tokens after those of a pass that is finished. */
static peridot_status draw_rows(struct pd_decoder *d, const struct pd_pass *p, struct pd_decode_row *rows, uint32_t n,
                                bool on_device)
{
    for (uint32_t m = 0; m < p->n_runs; m++) {
        struct pd_decode_row *row = find_row(rows, n, p->runs[m].sequence);
        if (!row) continue;
        row->advanced = true;
        if (!writes_text(d) || row->leaves_draw) continue;
        if (!on_device) {
            PD_TRY(pd_draw_next(&row->token, d->w, row->sequence));
            continue;
        }
        PD_TRY(pd_check_best(d->w->model, row->sequence));
        pd_sampler_drawn(&row->sequence->sampler);
        row->token = pd_pass_drawn(p, m);
    }
    return PERIDOT_OK;
}

static peridot_status decode_ahead(struct pd_decoder *d, struct pd_decode_row *rows, uint32_t n)
{
    struct pd_pass *p;
    double started = pd_now();
    bool alone = d->n_queued == 0, same = !alone && are_queued(d, rows, n);
    if (alone) PD_TRY(submit_first(d, rows, n));
    bool ahead = (alone || same) && can_sample_ahead(d, rows, n);
    if (ahead) PD_TRY(queue_ahead(d, rows, n));
    PD_TRY(finish_step(&p, d));
    if (alone) d->step_s = pd_now() - started;
    return draw_rows(d, p, rows, n, d->n_queued || ahead || !alone);
}

/* ---- groups of several ranks ---- */

static bool is_queued(const struct pd_decoder *d, const struct pd_sequence *q)
{
    for (uint32_t back = 1; back <= d->n_queued; back++) {
        const struct pd_pass *p = pass_before(d, back);
        for (uint32_t i = 0; i < p->n_runs; i++)
            if (p->runs[i].sequence == q) return true;
    }
    return false;
}

/* Rows of logits that the next group has. */
static uint32_t group_size(const struct pd_decoder *d)
{
    uint32_t g = d->next, n = d->w->n_sequences;
    return n * (g + 1) / d->n_passes - n * g / d->n_passes;
}

/* Idle rows are divided evenly among idle groups: each is evaluated here and sent on. */
static peridot_status launch_idle(struct pd_decoder *d, const struct pd_decode_row *rows, uint32_t n)
{
    const struct pd_decode_row *idle[PD_MAX_SEQUENCES];
    uint32_t n_idle = 0, next = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!is_queued(d, rows[i].sequence)) idle[n_idle++] = &rows[i];
    while (next < n_idle && d->n_queued < d->n_passes) {
        struct pd_pass *p;
        uint32_t some = (uint32_t)pd_min(pd_div_up(n_idle - next, d->n_passes - d->n_queued), group_size(d));
        PD_TRY(begin_step(&p, d, true));
        for (uint32_t i = 0; i < some; i++, next++)
            PD_TRY(add_row(d, p, idle[next]->sequence, &idle[next]->token, 0));
        PD_TRY(submit_step(d, p));
        PD_TRY(pd_pass_wait(p));
        PD_TRY(pd_pass_send(p));
    }
    return PERIDOT_OK;
}

static peridot_status decode_groups(struct pd_decoder *d, struct pd_decode_row *rows, uint32_t n)
{
    struct pd_pass *p;
    PD_TRY(launch_idle(d, rows, n));
    if (d->n_queued == 0) return PERIDOT_OK;
    PD_TRY(finish_step(&p, d));
    return draw_rows(d, p, rows, n, false);
}

peridot_status pd_decode_next(struct pd_decoder *d, struct pd_decode_row *rows, uint32_t n)
{
    bool grouped = d->stage && d->n_passes > 1;
    for (uint32_t i = 0; i < n; i++) {
        grouped = grouped && !rows[i].keeps_logits;
        rows[i].advanced = false;
    }
    if (d->stage && !grouped) pd_decoder_discard(d);
    peridot_status status = grouped ? decode_groups(d, rows, n) : decode_ahead(d, rows, n);
    if (status != PERIDOT_OK) pd_decoder_discard(d);
    return status;
}

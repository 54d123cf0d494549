/* Decode steps. A step is recorded once in each of a few slots and replayed. It leaves on the GPU the token that it drew, where
 * the embedding of the next step reads it: so steps are submitted ahead, each in the next slot, and the host reads tokens as
 * they come. Where the chain needs more than the best few candidates the host draws, and steps are submitted one by one. What was
 * queued in vain does no harm: it wrote keys of positions that are written again before they are read, and rows of logits that
 * nobody asks for. */
#include "engine/session_private.h"

#include "base/num.h"
#include "base/os.h"

#include <assert.h>
#include <string.h>

#define QUEUE_SECONDS 0.1   /* what comes after a text may have to wait so long for steps in vain */

/* ---- creating ---- */

static peridot_status record_step(struct pd_session *s, struct pd_commands *commands, const struct pd_slot *slot)
{
    struct pd_recorder r = {.gpu = s->model->gpu, .variants = s->model->variants, .packed = s->scratch.packed,
        .commands = commands};
    struct pd_pass pass = pd_session_make_pass(s, &r, &slot->input, 1);
    struct pd_sample_push push = {.best = s->best.address + sizeof(struct pd_candidate) * PD_TOPK * slot->result,
        .draw = slot->draw.address, .token = s->token.address, .drawn = slot->drawn.address, .recent = s->recent.address,
        .bias = s->bias.address};
    PD_TRY(pd_commands_begin(commands));
    pd_session_forward(s, &pass, true, slot->result);
    if (s->model->config.head == PERIDOT_HEAD_LANGUAGE) pd_op_sample(&r, &push);
    peridot_status status = pd_commands_end(commands);
    return r.status != PERIDOT_OK ? r.status : status;
}

peridot_status pd_steps_create(struct pd_session *s)
{
    s->queue_s = QUEUE_SECONDS;
    PD_TRY(pd_heap_alloc(&s->token, s->input_heap, sizeof(uint32_t), "a token"));
    PD_TRY(pd_heap_alloc(&s->recent, s->input_heap, sizeof s->sampler.recent, "recent tokens"));
    PD_TRY(pd_heap_alloc(&s->bias, s->input_heap, PD_TOPK * sizeof(struct pd_candidate), "biases"));
    for (uint32_t i = 0; i < PD_N_SLOTS; i++) {
        struct pd_slot *slot = &s->slots[i];
        slot->result = s->n_results - PD_N_SLOTS + i;
        PD_TRY(pd_session_alloc_input(&slot->input, s, 1, s->token));
        PD_TRY(pd_heap_alloc(&slot->draw, s->input_heap, sizeof(struct pd_draw), "a draw"));
        PD_TRY(pd_heap_alloc(&slot->drawn, s->host_heap, sizeof(struct pd_candidate), "a draw"));
        PD_TRY(pd_commands_create(&slot->commands, s->model->gpu));
        PD_TRY(record_step(s, slot->commands, slot));
    }
    return PERIDOT_OK;
}

void pd_steps_free(struct pd_session *s)
{
    for (uint32_t i = 0; i < PD_N_SLOTS; i++) pd_commands_free(s->slots[i].commands);
}

/* ---- the queue ---- */

/* Slot of the step that is `back` before the next one. */
static struct pd_slot *slot_before(struct pd_session *s, uint32_t back)
{
    return &s->slots[(s->next_slot + PD_N_SLOTS - back) % PD_N_SLOTS];
}

/* The token that the next step is to evaluate, and what draws look back at; steps that were forgotten may yet read and write it. */
static peridot_status write_token(struct pd_session *s, int32_t token)
{
    const struct pd_sampler *sampler = &s->sampler;
    int32_t *recent = s->recent.host;
    struct pd_candidate *bias = s->bias.host;
    PD_TRY(pd_commands_wait(slot_before(s, 1)->commands));
    memcpy(s->token.host, &token, sizeof token);
    memcpy(recent, sampler->recent, sizeof sampler->recent);
    recent[sampler->n_seen % PD_REPEAT_WINDOW] = token;
    for (size_t i = 0; i < pd_min(sampler->p.n_bias, PD_TOPK); i++)
        bias[i] = (struct pd_candidate){sampler->p.bias[i].value, (uint32_t)sampler->p.bias[i].token};
    return PERIDOT_OK;
}

/* What the step after those that are queued reads; its slot is free. */
static peridot_status write_step(struct pd_session *s, const struct pd_slot *slot)
{
    uint32_t pos = s->pos + s->n_queued, n = (uint32_t)pd_min(PD_TOPK, s->model->n_pieces);
    struct pd_draw draw = {.n = 1};   /* not asked for */
    if (pd_sampler_can_sample_on_device(&s->sampler)) draw = pd_sampler_draw_ahead(&s->sampler, n, s->n_queued);
    memcpy(slot->draw.host, &draw, sizeof draw);
    PD_TRY(pd_session_extend(s, s->selected, pos + 1));
    pd_session_write_place(s, &slot->input, 0, (struct pd_row){s->selected, pos, 0});
    pd_session_write_splits(s, &slot->input, 1);
    return PERIDOT_OK;
}

static peridot_status submit(struct pd_session *s)
{
    struct pd_slot *slot = slot_before(s, 0);
    PD_TRY(write_step(s, slot));
    PD_TRY(pd_commands_submit(slot->commands));
    s->next_slot = (s->next_slot + 1) % PD_N_SLOTS;
    s->n_queued++;
    return PERIDOT_OK;
}

/* Steps to be at work at once: the GPU never waits for the host, and what is in vain is soon over. */
static uint32_t depth(const struct pd_session *s)
{
    uint32_t n = 1;
    while (n < PD_N_SLOTS && n * s->step_s <= s->queue_s) n++;
    return n;
}

/* Sees to it that n steps are queued and waits for the first of them, which evaluates `token`: the session's next one. */
static peridot_status advance(struct pd_session *s, int32_t token, uint32_t n)
{
    double begin = pd_now();
    bool alone = s->n_queued == 0;
    s->has_logits = false;
    if (alone) PD_TRY(write_token(s, token));
    while (s->n_queued < n) PD_TRY(submit(s));
    const struct pd_slot *slot = slot_before(s, s->n_queued);
    PD_TRY(pd_commands_wait(slot->commands));
    if (alone) s->step_s = pd_now() - begin;
    s->n_queued--;
    s->has_logits = s->model->weights.n_outputs != 0;
    s->result = slot->result;
    s->history[s->pos++] = token;
    pd_sampler_accept(&s->sampler, token);
    return PERIDOT_OK;
}

void pd_session_forget(struct pd_session *s) { s->n_queued = 0; }

peridot_status pd_steps_eval(struct pd_session *s, int32_t token)
{
    assert(s->n_queued == 0);
    peridot_status status = advance(s, token, 1);
    pd_session_forget(s);
    return status;
}

static bool can_queue(const struct pd_session *s)
{
    return s->model->config.head == PERIDOT_HEAD_LANGUAGE && pd_sampler_can_sample_on_device(&s->sampler)
        && !pd_kernel_is_wrong(s->model->gpu, PD_KERNEL_sample);
}

static peridot_status follow(int32_t *next, struct pd_session *s, int32_t token, uint32_t n_more)
{
    struct pd_candidate drawn;
    PD_TRY(advance(s, token, (uint32_t)pd_min(pd_min(n_more, s->ctx - s->pos), depth(s))));
    memcpy(&drawn, slot_before(s, s->n_queued + 1)->drawn.host, sizeof drawn);
    PD_TRY(pd_session_check_finite(s, drawn.logit));
    pd_sampler_drawn(&s->sampler);
    *next = (int32_t)drawn.id;
    return PERIDOT_OK;
}

peridot_status pd_session_follow(int32_t *next, struct pd_session *s, int32_t token, uint32_t n_more)
{
    if (s->n_queued == 0 && !(s->pos < s->ctx && can_queue(s))) {
        PD_TRY(pd_session_eval(s, &token, 1, NULL));
        return pd_session_sample(next, s);
    }
    PD_TRY(pd_gpu_check(s->model->gpu));
    peridot_status status = follow(next, s, token, n_more);
    if (status != PERIDOT_OK) pd_session_forget(s);
    return status;
}

/* ---- measuring ---- */

peridot_status pd_steps_run_pass(struct pd_session *s, struct pd_commands *commands)
{
    struct pd_slot *slot = slot_before(s, 0);
    PD_TRY(write_token(s, 0));
    PD_TRY(write_step(s, slot));
    PD_TRY(record_step(s, commands, slot));
    PD_TRY(pd_commands_run(commands));
    return pd_commands_run(commands);
}

/* The sessions of peridot.h: they check arguments and call the engine. */
#include "api/handles.h"
#include "api/params.h"
#include "api/request.h"
#include "base/num.h"

#include <stdlib.h>

static peridot_status set_drafter(peridot_session *session, peridot_model *drafter)
{
    if (drafter->target != session->model)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "%s was not opened as a drafter of this model", drafter->info.name);
    PD_TRY(pd_session_set_drafter(session->s, &drafter->m));
    session->drafter = drafter;
    pd_refs_add(&drafter->refs);
    return PERIDOT_OK;
}

peridot_status peridot_session_create(peridot_session **out, peridot_model *model, const peridot_session_params *params)
{
    peridot_session_params known;
    *out = NULL;
    PD_TRY(PD_PARAMS_READ(known, params));
    *out = calloc(1, sizeof **out);
    if (!*out) return pd_fail_alloc(sizeof **out, "session");
    peridot_status status = pd_session_create(&(*out)->s, &model->m, &known);
    if (status != PERIDOT_OK) {
        free(*out);
        *out = NULL;
        return status;
    }
    uint32_t n_max = (*out)->s->set.n_max;
    pd_schedule_init(&(*out)->schedule, (*out)->s,
                     known.n_parallel ? (uint32_t)pd_min(known.n_parallel, n_max) : n_max);
    (*out)->model = model;
    pd_refs_add(&model->refs);
    if (known.drafter) status = set_drafter(*out, known.drafter);
    if (status == PERIDOT_OK) return PERIDOT_OK;
    peridot_session_free(*out);
    *out = NULL;
    return status;
}

void peridot_session_free(peridot_session *session)
{
    if (!session) return;
    while (session->requests) peridot_request_free(session->requests);
    for (uint32_t i = 0; i < session->s->set.n_max; i++)
        if (session->s->set.at[i]) free(session->s->set.at[i]->owner);
    pd_session_free(session->s);
    peridot_vocab_close(session->draft_vocab);
    peridot_model_close(session->drafter);
    peridot_model_close(session->model);
    free(session);
}

uint32_t peridot_session_ctx(const peridot_session *session) { return session->s->ctx; }
uint32_t peridot_session_free_positions(const peridot_session *session)
{
    return pd_cache_free_positions(&session->s->set.cache);
}

void peridot_session_get_state(const peridot_session *session, peridot_session_state *state)
{
    const struct pd_schedule *c = &session->schedule;
    const peridot_session_state now = {.n_running = c->n_running, .n_waiting = c->n_waiting,
                                       .n_kept = pd_prefix_n_kept(&c->prefixes), .n_preempted = c->n_preempted};
    pd_result_write(state, &now, sizeof now);
}

uint32_t peridot_session_chunk(const peridot_session *session) { return session->s->chunk; }
void peridot_cancel(peridot_session *session) { session->s->cancelled = true; }

/* ---- evaluating ---- */

static bool report_logits(void *user, struct pd_sequence *q, uint32_t pos, const float *row, size_t n)
{
    const peridot_eval_params *p = user;
    return p->logits(p->user, q->owner, pos, row, n);
}

static bool report_hidden(void *user, struct pd_sequence *q, uint32_t pos, const float *row, size_t n)
{
    const peridot_eval_params *p = user;
    return p->hidden(p->user, q->owner, pos, row, n);
}

static bool report_progress(void *user, uint64_t done, uint64_t total)
{
    const peridot_eval_params *p = user;
    return p->progress(p->user, done, total);
}

peridot_status peridot_eval(peridot_session *session, const peridot_prompt *prompts, size_t n,
                            const peridot_eval_params *params)
{
    struct pd_prompt of[PD_MAX_SEQUENCES];
    peridot_eval_params known;
    uint64_t n_positions = 0;
    PD_TRY(PD_PARAMS_READ(known, params));
    if (n > PD_MAX_SEQUENCES)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "%zu prompts: a session has at most %d sequences", n, PD_MAX_SEQUENCES);
    for (size_t i = 0; i < n; i++) {
        if (prompts[i].n && !prompts[i].tokens) return pd_fail(PERIDOT_ERROR_ARGUMENT, "no tokens were given");
        if (prompts[i].sequence->session != session)
            return pd_fail(PERIDOT_ERROR_ARGUMENT, "the sequence of prompt %zu belongs to another session", i);
        of[i] = (struct pd_prompt){.sequence = prompts[i].sequence->q, .tokens = prompts[i].tokens,
                                   .n_left = prompts[i].n};
        n_positions += prompts[i].n + PD_PAGE;
    }
    pd_prefix_make_room(&session->schedule.prefixes, n_positions);
    const struct pd_eval_params eval = {.outputs = {.logits = known.logits ? report_logits : NULL,
                                                    .hidden = known.hidden ? report_hidden : NULL, .user = &known,
                                                    .first = known.first, .no_head = known.hidden && !known.logits},
                                        .last = known.last, .progress = known.progress ? report_progress : NULL};
    return pd_session_eval(session->s, of, (uint32_t)n, &eval);
}

/* The sessions of peridot.h: they check arguments and call the engine. A session keeps its model and its drafter open
 * by references of its own, so that a program may close its handles in any order. Calls do not lock: threads take turns
 * with all sessions of a model, as peridot.h says, but for peridot_cancel. */
#include "api/api.h"
#include "base/base.h"
#include "engine/pass/pass.h"
#include "engine/sequence/sequence.h"

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
    /* From what points to what it points to: requests have sequences, those the session's cache, and that the model. */
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
/* From any thread and from signal handlers: so it sets a flag, and those who work look at it. */
void peridot_cancel(peridot_session *session) { session->s->cancelled = true; }

/* ---- evaluating ---- */

static bool report_logits(void *user, struct pd_sequence *q, uint32_t pos, const float *row, size_t n)
{
    const struct pd_row_calls *calls = user;
    return calls->logits(calls->user, q->owner, pos, row, n);
}

static bool report_hidden(void *user, struct pd_sequence *q, uint32_t pos, const float *row, size_t n)
{
    const struct pd_row_calls *calls = user;
    return calls->hidden(calls->user, q->owner, pos, row, n);
}

struct pd_row_outputs pd_row_outputs_of(struct pd_row_calls *calls)
{
    return (struct pd_row_outputs){.logits = calls->logits ? report_logits : NULL,
                                   .hidden = calls->hidden ? report_hidden : NULL, .user = calls};
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
        n_positions += prompts[i].n + PD_PAGE;   /* pages are taken whole: the last one may be partly empty */
    }
    pd_prefix_make_room(&session->schedule.prefixes, n_positions);
    struct pd_row_calls calls = {known.logits, known.hidden, known.user};
    struct pd_eval_params eval = {.outputs = pd_row_outputs_of(&calls), .last = known.last,
                                  .watch = {.progress = known.progress, .user = known.user}};
    eval.outputs.first = known.first;
    return pd_session_eval(session->s, of, (uint32_t)n, &eval);
}

/* ---- sequence ---- */

/* The sequences of peridot.h: they check arguments and call the engine. */

/* Takes q, which is removed where that fails. */
static peridot_status wrap(peridot_sequence **out, peridot_session *session, struct pd_sequence *q)
{
    *out = calloc(1, sizeof **out);
    if (!*out) {
        pd_session_remove(session->s, q);
        return pd_fail_alloc(sizeof **out, "sequence");
    }
    **out = (struct peridot_sequence){q, session};
    q->owner = *out;
    return PERIDOT_OK;
}

/* A new one, or a saved one, goes on by its own chain, which lacks the tokens that are never drawn. */
static peridot_status session_begin(peridot_sequence **out, peridot_session *session, struct pd_sequence *q)
{
    const peridot_sampling sampling = q->sampler.p;
    uint64_t rng = q->sampler.rng;
    PD_TRY(wrap(out, session, q));
    peridot_status status = pd_sampling_set(*out, &sampling, NULL);
    q->sampler.rng = rng;   /* setting has seeded it anew; a saved text goes on with its own draws */
    if (status == PERIDOT_OK) return status;
    peridot_sequence_free(*out);
    *out = NULL;
    return status;
}

peridot_status peridot_sequence_create(peridot_sequence **out, peridot_session *session)
{
    struct pd_sequence *q;
    *out = NULL;
    pd_prefix_make_sequence(&session->schedule.prefixes);
    PD_TRY(pd_session_add(&q, session->s));
    return session_begin(out, session, q);
}

peridot_status peridot_sequence_fork(peridot_sequence **out, const peridot_sequence *from, uint32_t n)
{
    struct pd_sequence *q;
    *out = NULL;
    pd_prefix_make_sequence(&from->session->schedule.prefixes);
    PD_TRY(pd_session_fork(&q, from->session->s, from->q, n));
    return wrap(out, from->session, q);
}

peridot_status peridot_sequence_set_adapters(peridot_sequence *sequence, const peridot_adapter *adapters, size_t n)
{
    return pd_session_set_adapters(sequence->session->s, sequence->q, adapters, n);
}

peridot_status peridot_sequence_save(const peridot_sequence *sequence, const char *path)
{
    if (!path) return pd_fail(PERIDOT_ERROR_ARGUMENT, "no file was named");
    PD_TRY(pd_check_whole(&sequence->session->model->m, "sequences cannot be saved"));
    return pd_sequence_save(sequence->q, sequence->session->s->model, path);
}

peridot_status peridot_sequence_load(peridot_sequence **out, peridot_session *session, const char *path)
{
    struct pd_sequence *q;
    *out = NULL;
    if (!path) return pd_fail(PERIDOT_ERROR_ARGUMENT, "no file was named");
    pd_prefix_make_sequence(&session->schedule.prefixes);
    PD_TRY(pd_session_load(&q, session->s, path));
    return session_begin(out, session, q);
}

void peridot_sequence_free(peridot_sequence *sequence)
{
    if (!sequence) return;
    pd_session_remove(sequence->session->s, sequence->q);
    free(sequence);
}

peridot_session *peridot_sequence_session(const peridot_sequence *sequence) { return sequence->session; }
uint32_t peridot_sequence_pos(const peridot_sequence *sequence) { return sequence->q->pos; }
const int32_t *peridot_sequence_tokens(const peridot_sequence *sequence) { return sequence->q->tokens; }

uint32_t peridot_sequence_nearest(const peridot_sequence *sequence, uint32_t n)
{
    return pd_sequence_nearest(sequence->q, (uint32_t)pd_min(n, sequence->q->pos));
}

peridot_status peridot_sequence_truncate(peridot_sequence *sequence, uint32_t n, uint32_t *kept)
{
    uint32_t unused, nearest = n <= sequence->q->pos ? pd_sequence_nearest(sequence->q, n) : n;
    if (!kept && nearest < n)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "cannot go back to %u of %u tokens: %s; the nearest place is %u", n,
                       sequence->q->pos, pd_is_inner_row(sequence->q->tokens[n]) ? "that is within an image"
                       : "layers with windows no longer have the keys before it", nearest);
    return pd_session_truncate(sequence->session->s, sequence->q, n, kept ? kept : &unused);
}

peridot_status peridot_sequence_eval(peridot_sequence *sequence, const int32_t *tokens, size_t n,
                                     const peridot_eval_params *params)
{
    return peridot_eval(sequence->session, &(peridot_prompt){sequence, tokens, n}, 1, params);
}

peridot_status peridot_logits(const float **out, peridot_sequence *sequence)
{
    return pd_session_logits(out, sequence->session->s, sequence->q);
}

peridot_status peridot_set_sampling(peridot_sequence *sequence, const peridot_sampling *sampling)
{
    return pd_sampling_set(sequence, sampling, NULL);
}

peridot_status peridot_sample(int32_t *token, peridot_sequence *sequence)
{
    return pd_session_sample(token, sequence->session->s, sequence->q);
}

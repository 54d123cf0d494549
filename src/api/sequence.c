/* The sequences of peridot.h: they check arguments and call the engine. */
#include "api/handles.h"
#include "api/sampling.h"
#include "base/num.h"
#include "engine/results.h"
#include "engine/saved.h"

#include <stdlib.h>

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
static peridot_status begin(peridot_sequence **out, peridot_session *session, struct pd_sequence *q)
{
    const peridot_sampling sampling = q->sampler.p;
    uint64_t rng = q->sampler.rng;
    PD_TRY(wrap(out, session, q));
    peridot_status status = pd_sampling_set(*out, &sampling, NULL);
    q->sampler.rng = rng;
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
    return begin(out, session, q);
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
    return begin(out, session, q);
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

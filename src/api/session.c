/* The sessions of peridot.h: they check arguments and call the engine; and the loop of peridot_generate. */
#include "api/handles.h"
#include "api/params.h"
#include "base/os.h"
#include "text/stop.h"

#include <stdlib.h>

peridot_status peridot_session_create(peridot_session **out, peridot_model *model, const peridot_session_params *params)
{
    peridot_session_params known;
    *out = NULL;
    PD_TRY(PD_PARAMS_READ(known, params));
    *out = calloc(1, sizeof **out);
    if (!*out) return pd_fail_alloc(sizeof **out, "session");
    (*out)->model = model;
    peridot_status status = pd_session_create(&(*out)->s, &model->m, &known);
    if (status != PERIDOT_OK) {
        free(*out);
        *out = NULL;
    }
    return status;
}

void peridot_session_free(peridot_session *session)
{
    if (!session) return;
    pd_session_free(session->s);
    free(session);
}

uint32_t peridot_session_ctx(const peridot_session *session) { return session->s->ctx; }
uint32_t peridot_session_pos(const peridot_session *session) { return session->s->pos; }

const int32_t *peridot_session_tokens(const peridot_session *session) { return session->s->history; }

void peridot_session_reset(peridot_session *session) { pd_session_truncate(session->s, 0); }

peridot_status peridot_session_truncate(peridot_session *session, uint32_t n) { return pd_session_truncate(session->s, n); }

peridot_status peridot_eval(peridot_session *session, const int32_t *tokens, size_t n, const peridot_eval_params *params)
{
    if (n && !tokens) return pd_fail(PERIDOT_ERROR_ARGUMENT, "no tokens were given");
    peridot_eval_params known;
    PD_TRY(PD_PARAMS_READ(known, params));
    return pd_session_eval(session->s, tokens, n, &known);
}

peridot_status peridot_session_select(peridot_session *session, uint32_t sequence) { return pd_session_select(session->s, sequence); }

peridot_status peridot_eval_next(peridot_session *session, const int32_t *tokens)
{
    if (!tokens) return pd_fail(PERIDOT_ERROR_ARGUMENT, "no tokens were given");
    return pd_session_eval_next(session->s, tokens);
}

peridot_status peridot_eval_batch(peridot_session *session, const peridot_sequence *sequences, size_t n, const peridot_batch_params *params)
{
    if (!params || (n && !sequences)) return pd_fail(PERIDOT_ERROR_ARGUMENT, "no texts were given, or nothing to report");
    peridot_batch_params known;
    PD_TRY(PD_PARAMS_READ(known, params));
    return pd_session_eval_batch(session->s, sequences, n, &known);
}

uint32_t peridot_session_chunk(const peridot_session *session) { return session->s->chunk; }

peridot_status peridot_logits(const float **out, peridot_session *session) { return pd_session_logits(out, session->s); }

peridot_status peridot_set_sampling(peridot_session *session, const peridot_sampling *sampling)
{
    peridot_sampling known;
    PD_TRY(PD_PARAMS_READ(known, sampling));
    pd_session_forget(session->s);   /* steps drew with the chain that was */
    pd_sampler_set(&session->s->sampler, &known);
    return PERIDOT_OK;
}

peridot_status peridot_sample(int32_t *token, peridot_session *session) { return pd_session_sample(token, session->s); }

/* ---- generate ---- */

struct generation {
    peridot_session *session;
    struct pd_stream stream;
    struct pd_text_buffer buffer;
    struct pd_stop stop;
    peridot_text text;
    void *user;
    bool stopped;
};

/* Hands on the text that a token completes; -1 flushes. */
static peridot_status emit(struct generation *g, int32_t token)
{
    const struct pd_tokenizer *tokenizer = g->session->model->vocab.tokenizer;
    const char *text;
    size_t size;
    g->buffer.size = 0;
    if (tokenizer) PD_TRY(pd_stream_next(&g->stream, &g->buffer, tokenizer, token));
    PD_TRY(pd_stop_next(&text, &size, &g->stop, g->buffer.data, g->buffer.size, token < 0));
    if (g->text && !g->text(g->user, token, text, size)) g->stopped = true;
    if (g->stop.found) g->stopped = true;
    return PERIDOT_OK;
}

/* Samples, hands on and evaluates until something says stop. */
static peridot_status write_on(struct generation *g, uint32_t n_max, double start, peridot_stats *stats)
{
    struct pd_session *s = g->session->s;
    double decode_start = pd_now();
    int32_t token = 0;
    if (n_max) PD_TRY(pd_session_sample(&token, s));
    while (stats->n_generated < n_max && !peridot_is_stop(g->session->model, token)) {
        stats->n_generated++;
        PD_TRY(emit(g, token));
        if (stats->n_generated == 1) stats->first_token_s = pd_now() - start;
        if (g->stopped || stats->n_generated == n_max || s->pos == s->ctx) break;
        stats->decode_read_size += pd_session_step_size(s);
        PD_TRY(pd_session_follow(&token, s, token, n_max - stats->n_generated));
        stats->decode_s = pd_now() - decode_start;
    }
    return emit(g, -1);
}

peridot_status peridot_generate(peridot_session *session, const int32_t *prompt, size_t n_prompt, uint32_t n_max,
                                peridot_text text, void *user, peridot_stats *stats)
{
    peridot_stats result = {.n_prompt = (uint32_t)n_prompt};
    const peridot_sampling *sampling = &session->s->sampler.p;
    struct generation g = {.session = session, .text = text, .user = user, .stop = {.texts = sampling->stop, .n = sampling->n_stop}};
    g.stream.started = n_prompt > 1;   /* a continuation keeps its first space; after bos alone the text begins */
    double start = pd_now();
    pd_result_write(stats, &result, sizeof result);
    PD_TRY(peridot_eval(session, prompt, n_prompt, NULL));
    result.prompt_s = pd_now() - start;
    peridot_status status = write_on(&g, n_max, start, &result);
    pd_result_write(stats, &result, sizeof result);
    pd_session_forget(session->s);
    free(g.buffer.data);
    free(g.stop.held.data);
    return status;
}

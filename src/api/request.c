#include "api/request.h"

#include "api/params.h"
#include "api/sampling.h"
#include "base/num.h"
#include "base/os.h"

#include <stdlib.h>
#include <string.h>

/* ---- text ---- */

/* Hands on the text that a token completes; -1 flushes. *go_on: the text may go on. */
static peridot_status write_text(bool *go_on, peridot_request *r, int32_t token)
{
    const struct peridot_vocab *vocab = r->session->model->vocab;
    const char *text;
    size_t size;
    r->buffer.size = 0;
    if (vocab) PD_TRY(pd_stream_next(&r->stream, &r->buffer, vocab->tokenizer, token));
    PD_TRY(pd_stop_next(&text, &size, &r->stop, r->buffer.data, r->buffer.size, token < 0));
    *go_on = (!r->text || r->text(r->r.user, token, text, size)) && !r->stop.found;
    return PERIDOT_OK;
}

static peridot_status take_token(enum pd_token_verdict *verdict, struct pd_request *request, int32_t token)
{
    peridot_request *r = (peridot_request *)request;
    bool go_on = false;
    *verdict = PD_TOKEN_STOPS;
    if (token >= 0 && peridot_is_stop(r->session->model, token)) return PERIDOT_OK;
    peridot_status status = write_text(&go_on, r, token);
    *verdict = status == PERIDOT_OK && go_on ? PD_TOKEN_GO_ON : PD_TOKEN_LAST;
    return status;
}

/* ---- a request ---- */

static peridot_status read_params(peridot_request_params *out, const peridot_request_params *params)
{
    PD_TRY(PD_PARAMS_READ(*out, params));
    return out->n_prompt && !out->prompt ? pd_fail(PERIDOT_ERROR_ARGUMENT, "no tokens were given") : PERIDOT_OK;
}

peridot_status peridot_draft_check(const peridot_model *draft, const peridot_model *model)
{
    const struct pd_tokenizer *a = draft->vocab ? draft->vocab->tokenizer : NULL,
                              *b = model->vocab ? model->vocab->tokenizer : NULL;
    struct pd_text_buffer text = {0};
    peridot_status status = PERIDOT_OK;
    uint32_t n = a && b ? (uint32_t)pd_min(pd_tokenizer_size(a), pd_tokenizer_size(b)) : 0;
    if (draft->m.config.head != PERIDOT_HEAD_LANGUAGE || n == 0)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "%s cannot draft for %s: it is not a language model", draft->info.name,
                       model->info.name);
    for (uint32_t id = 0; id < n && status == PERIDOT_OK; id++) {
        text.size = 0;
        status = pd_tokenizer_spell(&text, a, (int32_t)id);
        size_t size = text.size;
        if (status == PERIDOT_OK) status = pd_tokenizer_spell(&text, b, (int32_t)id);
        if (status == PERIDOT_OK && (text.size != 2 * size || (size && memcmp(text.data, text.data + size, size) != 0)))
            status = pd_fail(PERIDOT_ERROR_ARGUMENT,
                             "%s cannot draft for %s: their vocabularies differ (token %u)", draft->info.name,
                             model->info.name, id);
    }
    free(text.data);
    return status;
}

static peridot_status begin_draft(struct pd_draft *draft, peridot_session *session, const peridot_request_params *p)
{
    peridot_session *own = p->draft ? p->draft->session : p->draft_session;
    draft->automatic = p->n_draft == PERIDOT_DRAFT_AUTO;
    draft->n_most = (uint32_t)pd_min(p->n_draft, session->s->n_draft);
    if (p->n_draft && !session->s->n_draft)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "the session was created without room for drafts");
    if (!own || p->n_draft == 0) return PERIDOT_OK;
    if (own == session)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "the draft model's sequence is in the model's own session");
    if (!session->draft_vocab || session->draft_vocab != own->model->vocab) {
        PD_TRY(peridot_draft_check(own->model, session->model));
        peridot_vocab_close(session->draft_vocab);
        session->draft_vocab = peridot_vocab_ref(own->model->vocab);
    }
    draft->session = own->s;
    draft->sequence = p->draft ? p->draft->q : NULL;
    return PERIDOT_OK;
}

/* What a request is wherever it runs. Its text goes on after `pos` tokens of its sequence. */
static peridot_status fill_request(peridot_request *r, const peridot_request_params *p, uint32_t pos)
{
    size_t n = p->n_prompt;
    if (p->n_replied > n)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "n_replied is %zu, but the prompt has %zu token%s", p->n_replied,
                       n, PD_S(n));
    r->stream.started = pos + n - p->n_replied > 1;   /* a continuation keeps its first space; after bos alone the text
                                                         begins */
    r->text = p->text;
    r->r = (struct pd_request){.n_given = n, .n_replied = p->n_replied, .n_shared = p->n_shared, .n_max = p->n_max,
        .token = take_token, .logits = p->logits, .progress = p->progress, .prompt_logits = p->prompt_logits,
        .prompt_hidden = p->prompt_hidden, .prompt_last = p->prompt_last, .user = p->user};
    return begin_draft(&r->r.draft, r->session, p);
}

/* The text stands after what was replied before. */
static peridot_status replay_text(peridot_request *r, const int32_t *replied, size_t n)
{
    peridot_text text = r->text;
    peridot_status status = PERIDOT_OK;
    bool unused;
    r->text = NULL;
    for (size_t i = 0; i < n && status == PERIDOT_OK; i++) status = write_text(&unused, r, replied[i]);
    r->text = text;
    return status;
}

/* The request becomes an owner of the chain. */
static void use_chain(peridot_request *r, struct pd_chain *chain)
{
    r->chain = pd_chain_ref(chain);
    if (chain) r->stop = (struct pd_stop){.texts = chain->p.stop, .n = chain->p.n_stop};
}

/* On a sequence that it was given. `prompt` stays until it is evaluated. */
static peridot_status begin_on_sequence(peridot_request *r, peridot_sequence *sequence, const peridot_request_params *p,
                                        const int32_t *prompt)
{
    struct pd_sequence *q = sequence->q;
    peridot_sampling sampling;
    size_t n_replied = p->n_replied, n = p->n_prompt;
    if (p->draft_session)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "a request with a sequence drafts with one, not with a session");
    if (p->sampling) {
        PD_TRY(pd_sampling_read(&sampling, p->sampling, r->session->model));
        PD_TRY(pd_session_set_sampling(r->session->s, q, &sampling));
    }
    PD_TRY(fill_request(r, p, q->pos));
    use_chain(r, q->chain);
    r->r.prompt = (struct pd_prompt){.sequence = q, .tokens = prompt, .n_left = n};
    PD_TRY(pd_request_begin(&r->r, r->session->s));
    if (n) pd_sampler_begin_value(&q->sampler, (uint32_t)(q->pos + n - n_replied));
    for (size_t i = 0; i < n_replied; i++) pd_sampler_drawn(&q->sampler);
    return replay_text(r, prompt + n - n_replied, n_replied);
}

static void release_request(peridot_request *r)
{
    free(r->buffer.data);
    free(r->stop.held.data);
    pd_chain_free(r->chain);
    free(r->r.tokens);
}

static peridot_status end_status(const peridot_request *r)
{
    return r->r.status == PERIDOT_OK ? PERIDOT_OK : pd_fail(r->r.status, "%s", r->r.error);
}

static void write_stats(const peridot_request *r, peridot_stats *stats)
{
    const peridot_stats result = {.n_prompt = (uint32_t)r->r.n_given, .n_generated = r->r.n_generated,
                                  .prompt_s = r->r.prompt_s,
        .decode_s = r->r.decode_s, .first_token_s = r->r.first_token_s, .decode_read_size = r->r.decode_read_size,
        .n_drafted = r->r.draft.n_drafted, .n_accepted = r->r.draft.n_accepted, .n_cached = r->r.n_cached,
        .n_preempted = r->r.n_preempted};
    pd_result_write(stats, &result, sizeof result);
}

/* ---- many ---- */

static peridot_status copy_prompt(int32_t **out, const peridot_request_params *p)
{
    *out = malloc((p->n_prompt + 1) * sizeof **out);
    if (!*out) return pd_fail_alloc(p->n_prompt * sizeof **out, "a request");
    if (p->n_prompt) memcpy(*out, p->prompt, p->n_prompt * sizeof **out);
    return PERIDOT_OK;
}

static peridot_status attach(peridot_request *r, peridot_sequence *sequence, const peridot_request_params *p)
{
    int32_t *prompt;
    PD_TRY(copy_prompt(&prompt, p));
    peridot_status status = begin_on_sequence(r, sequence, p, prompt);
    r->r.tokens = prompt;
    if (status == PERIDOT_OK) pd_schedule_attach(&r->session->schedule, &r->r);
    return status;
}

static peridot_status submit_request(peridot_request *r, const peridot_request_params *p)
{
    peridot_sampling sampling;
    struct pd_chain *chain;
    PD_TRY(pd_sampling_read(&sampling, p->sampling, r->session->model));
    if (p->draft)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "a request without a sequence drafts with a session, not with one");
    PD_TRY(fill_request(r, p, 0));
    PD_TRY(pd_chain_create(&chain, &sampling));
    use_chain(r, chain);
    pd_chain_free(chain);
    r->r.sampling = r->chain ? r->chain->p : sampling;
    r->r.scheduled = true;
    r->r.share_at = p->n_shared;
    r->r.n_tokens = p->n_prompt;
    PD_TRY(copy_prompt(&r->r.tokens, p));
    PD_TRY(replay_text(r, p->prompt + p->n_prompt - p->n_replied, p->n_replied));
    return pd_schedule_add(&r->session->schedule, &r->r);
}

/* sequence NULL: the session finds one. */
static peridot_status create_request(peridot_request **out, peridot_session *session, peridot_sequence *sequence,
                                     const peridot_request_params *params)
{
    peridot_request_params known;
    *out = NULL;
    PD_TRY(read_params(&known, params));
    peridot_request *r = calloc(1, sizeof *r);
    if (!r) return pd_fail_alloc(sizeof *r, "a request");
    r->session = session;
    peridot_status status = sequence ? attach(r, sequence, &known) : submit_request(r, &known);
    if (status != PERIDOT_OK) {
        release_request(r);
        free(r);
        return status;
    }
    r->next = session->requests;
    session->requests = *out = r;
    return PERIDOT_OK;
}

peridot_status peridot_request_create(peridot_request **out, peridot_sequence *sequence,
                                      const peridot_request_params *params)
{
    *out = NULL;
    for (const peridot_request *r = sequence->session->requests; r; r = r->next)
        if (r->r.prompt.sequence == sequence->q)
            return pd_fail(PERIDOT_ERROR_ARGUMENT, "the sequence has a request already");
    return create_request(out, sequence->session, sequence, params);
}

peridot_status peridot_request_submit(peridot_request **out, peridot_session *session,
                                      const peridot_request_params *params)
{
    return create_request(out, session, NULL, params);
}

void peridot_request_free(peridot_request *r)
{
    if (!r) return;
    peridot_request **at = &r->session->requests;
    while (*at != r) at = &(*at)->next;
    *at = r->next;
    pd_schedule_remove(&r->session->schedule, &r->r);
    release_request(r);
    free(r);
}

bool peridot_request_done(const peridot_request *r, peridot_status *status, peridot_stats *stats)
{
    write_stats(r, stats);
    if (r->r.state != PD_REQUEST_DONE) return false;
    if (status) *status = end_status(r);
    return true;
}

peridot_status peridot_session_run(peridot_session *session, size_t *n_running)
{
    struct pd_schedule *c = &session->schedule;
    *n_running = 0;
    PD_TRY(pd_schedule_run(c));
    *n_running = c->n_running + c->n_waiting;
    return PERIDOT_OK;
}

/* ---- one ---- */

static peridot_status run_to_end(peridot_request *r)
{
    struct pd_session *s = r->session->s;
    struct pd_request *request = &r->r;
    while (request->state != PD_REQUEST_DONE) PD_TRY(pd_requests_run(s, &request, 1, PD_CHUNK_FULL));
    return end_status(r);
}

peridot_status peridot_generate(peridot_sequence *sequence, const peridot_request_params *params, peridot_stats *stats)
{
    peridot_session *session = sequence->session;
    peridot_request r = {.session = session};
    peridot_request_params known;
    PD_TRY(read_params(&known, params));
    pd_prefix_make_room(&session->schedule.prefixes, pd_min(known.n_prompt + known.n_max, session->s->ctx) + PD_PAGE);
    peridot_status status = begin_on_sequence(&r, sequence, &known, known.prompt);
    if (status == PERIDOT_OK) status = run_to_end(&r);
    pd_decoder_leave(&session->s->decoder, sequence->q);
    write_stats(&r, stats);
    release_request(&r);
    return status;
}

#include "api/request.h"

#include "api/params.h"
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

/* The text and the generator stand after what was replied before. */
static peridot_status replay(peridot_request *r, const int32_t *replied, size_t n)
{
    peridot_text text = r->text;
    peridot_status status = PERIDOT_OK;
    bool unused;
    r->text = NULL;
    for (size_t i = 0; i < n && status == PERIDOT_OK; i++) {
        status = write_text(&unused, r, replied[i]);
        pd_sampler_drawn(&r->r.prompt.sequence->sampler);
    }
    r->text = text;
    return status;
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
    peridot_session *own = p->draft ? p->draft->session : NULL;
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
    draft->sequence = p->draft->q;
    return PERIDOT_OK;
}

static peridot_status begin(peridot_request *r, const peridot_request_params *p, const int32_t *prompt)
{
    struct pd_sequence *q = r->r.prompt.sequence;
    size_t n_replied = p->n_replied, n = p->n_prompt;
    if (n_replied > n)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "n_replied is %zu, but the prompt has %zu token%s", n_replied,
                       n, PD_S(n));
    r->chain = pd_chain_ref(q->chain);
    r->stop = (struct pd_stop){.texts = q->sampler.p.stop, .n = q->sampler.p.n_stop};
    r->stream.started = q->pos + n - n_replied > 1;   /* a continuation keeps its first space; after bos alone the text
                                                         begins */
    r->n_prompt = n;
    r->text = p->text;
    r->r = (struct pd_request){.prompt = {.sequence = q, .tokens = prompt, .n_left = n}, .n_shared = p->n_shared,
        .n_max = p->n_max, .token = take_token, .logits = p->logits, .progress = p->progress, .user = p->user};
    PD_TRY(begin_draft(&r->r.draft, r->session, p));
    PD_TRY(pd_request_begin(&r->r, r->session->s));
    if (n) pd_sampler_begin_value(&q->sampler, (uint32_t)(q->pos + n - n_replied));
    return n_replied ? replay(r, prompt + n - n_replied, n_replied) : PERIDOT_OK;
}

static void release(peridot_request *r)
{
    free(r->buffer.data);
    free(r->stop.held.data);
    pd_chain_free(r->chain);
    free(r->prompt);
}

static peridot_status end_status(const peridot_request *r)
{
    return r->r.status == PERIDOT_OK ? PERIDOT_OK : pd_fail(r->r.status, "%s", r->r.error);
}

static void write_stats(const peridot_request *r, peridot_stats *stats)
{
    const peridot_stats result = {.n_prompt = (uint32_t)r->n_prompt, .n_generated = r->r.n_generated,
                                  .prompt_s = r->r.prompt_s,
        .decode_s = r->r.decode_s, .first_token_s = r->r.first_token_s, .decode_read_size = r->r.decode_read_size,
        .n_drafted = r->r.draft.n_drafted, .n_accepted = r->r.draft.n_accepted};
    pd_result_write(stats, &result, sizeof result);
}

/* ---- many ---- */

peridot_status peridot_request_create(peridot_request **out, peridot_sequence *sequence,
                                      const peridot_request_params *params)
{
    peridot_session *session = sequence->session;
    peridot_request_params known;
    *out = NULL;
    PD_TRY(read_params(&known, params));
    for (size_t i = 0; i < session->n_requests; i++)
        if (session->requests[i]->r.prompt.sequence == sequence->q)
            return pd_fail(PERIDOT_ERROR_ARGUMENT, "the sequence has a request already");
    peridot_request *r = calloc(1, sizeof *r);
    if (r) r->prompt = malloc((known.n_prompt + 1) * sizeof *r->prompt);
    if (!r || !r->prompt) {
        free(r);
        return pd_fail_alloc(known.n_prompt * sizeof *known.prompt, "a request");
    }
    if (known.n_prompt) memcpy(r->prompt, known.prompt, known.n_prompt * sizeof *r->prompt);
    r->session = session;
    r->r.prompt.sequence = sequence->q;
    peridot_status status = begin(r, &known, r->prompt);
    if (status != PERIDOT_OK) {
        release(r);
        free(r);
        return status;
    }
    session->requests[session->n_requests++] = *out = r;
    return PERIDOT_OK;
}

void peridot_request_free(peridot_request *r)
{
    if (!r) return;
    peridot_session *session = r->session;
    size_t i = 0;
    while (session->requests[i] != r) i++;
    session->requests[i] = session->requests[--session->n_requests];
    pd_decoder_leave(&session->s->decoder, r->r.prompt.sequence);
    release(r);
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
    struct pd_request *requests[PD_MAX_SEQUENCES];
    uint32_t n = 0;
    *n_running = 0;
    for (size_t i = 0; i < session->n_requests; i++) requests[n++] = &session->requests[i]->r;
    PD_TRY(pd_requests_run(session->s, requests, n));
    for (size_t i = 0; i < session->n_requests; i++) *n_running += requests[i]->state != PD_REQUEST_DONE;
    return PERIDOT_OK;
}

/* ---- one ---- */

static peridot_status run_to_end(peridot_request *r)
{
    struct pd_session *s = r->session->s;
    struct pd_request *request = &r->r;
    const struct pd_row_wishes wishes = {.progress = request->progress, .user = request->user};
    PD_TRY(pd_session_eval(s, &request->prompt, 1, &wishes));   /* in one go */
    while (request->state != PD_REQUEST_DONE) PD_TRY(pd_requests_run(s, &request, 1));
    return end_status(r);
}

peridot_status peridot_generate(peridot_sequence *sequence, const peridot_request_params *params, peridot_stats *stats)
{
    peridot_request_params known;
    PD_TRY(read_params(&known, params));
    peridot_request r = {.session = sequence->session, .r.prompt.sequence = sequence->q};
    peridot_status status = begin(&r, &known, known.prompt);
    if (status == PERIDOT_OK) status = run_to_end(&r);
    pd_decoder_leave(&sequence->session->s->decoder, sequence->q);
    write_stats(&r, stats);
    release(&r);
    return status;
}

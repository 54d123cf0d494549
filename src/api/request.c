#include "api/api.h"

#include "base/base.h"
#include "grammar/calls/calls.h"

#include <stdlib.h>
#include <string.h>

/* ---- tokens ---- */

static peridot_status take_token(enum pd_token_verdict *verdict, struct pd_request *request, int32_t token)
{
    peridot_request *r = (peridot_request *)request;
    struct pd_thinking *t = &r->thinking;
    enum pd_reply_part part;
    bool go_on = false, is_stop = token >= 0 && peridot_is_stop(r->session->model, token);
    *verdict = PD_TOKEN_STOPS;
    if (token < 0 && t->resumes) return PERIDOT_OK;
    if ((token >= 0 && pd_thinking_refuses(t, token, is_stop)) || is_stop) return PERIDOT_OK;
    *verdict = PD_TOKEN_LAST;
    if (t->counts && token >= 0) PD_TRY(pd_ids_append(&t->drawn, &token, 1));
    PD_TRY(pd_reply_write(&go_on, &part, r, token));
    if (go_on && token >= 0) pd_thinking_look(t, part);
    if (go_on && !t->resumes) *verdict = PD_TOKEN_GO_ON;
    return PERIDOT_OK;
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
    if (draft->m.config.target_dim) return pd_drafter_check(&draft->m, &model->m);
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
    if (!own) draft->drafter = session->s->drafter;
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

static void begin_thinking(struct pd_thinking *t, const peridot_model *model, const peridot_request_params *p)
{
    const struct pd_tokenizer *tokenizer = model->vocab ? model->vocab->tokenizer : NULL;
    pd_thinking_begin(t, p->thought || p->think ? tokenizer : NULL);
    if (t->marks[0] < 0) return;
    if (p->think) t->n_most = p->think;
    pd_thinking_read_prompt(t, p->prompt, p->n_prompt - p->n_replied);
    t->hides_name = p->thought && pd_tokenizer_names_thoughts(tokenizer);
    t->counts = p->think || t->inside || t->in_header;
    t->calls_headers = p->tools && pd_call_format_has_headers(p->tools->calls.format);
}

/* Those that are not there any more are refused with the prompt. */
static peridot_status hold_images(peridot_request *r, const peridot_request_params *p)
{
    struct pd_images *images = r->session->model->m.images;
    size_t n_most = 0;
    for (size_t i = 0; i < p->n_prompt; i++) n_most += pd_is_image_row(p->prompt[i]) && !pd_is_inner_row(p->prompt[i]);
    if (!images || n_most == 0) return PERIDOT_OK;
    r->images = malloc(n_most * sizeof *r->images);
    if (!r->images) return pd_fail_alloc(n_most * sizeof *r->images, "a request");
    for (size_t i = 0; i < p->n_prompt; i++) {
        if (!pd_is_image_row(p->prompt[i]) || pd_is_inner_row(p->prompt[i])) continue;
        struct pd_image *image = pd_images_find(images, p->prompt + i, p->n_prompt - i);
        if (image) r->images[r->n_images++] = image;
    }
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
    r->thought = p->thought;
    pd_calling_begin(&r->calling, p->tools, p->call);
    begin_thinking(&r->thinking, r->session->model, p);
    PD_TRY(hold_images(r, p));
    r->rows = (struct pd_row_calls){p->prompt_logits, p->prompt_hidden, p->user};
    r->r = (struct pd_request){.n_given = n, .n_replied = p->n_replied, .n_shared = p->n_shared, .n_max = p->n_max,
        .token = take_token, .logits = p->logits, .progress = p->progress, .outputs = pd_row_outputs_of(&r->rows),
        .prompt_last = p->prompt_last, .user = p->user};
    return begin_draft(&r->r.draft, r->session, p);
}

/* The text stands after what was replied before, of which the first *n_before tokens come before the answer. */
static peridot_status replay_text(size_t *n_before, peridot_request *r, const int32_t *replied, size_t n)
{
    peridot_text text = r->text, thought = r->thought;
    peridot_call call = r->calling.call;
    peridot_status status = PERIDOT_OK;
    enum pd_reply_part part;
    bool unused;
    *n_before = 0;
    r->text = r->thought = NULL;
    r->calling.call = NULL;
    for (size_t i = 0; i < n && status == PERIDOT_OK; i++) {
        status = pd_reply_write(&unused, &part, r, replied[i]);
        bool calls = r->thinking.calls_headers && (part == PD_REPLY_HEADER || part == PD_REPLY_BEGINS_ANSWER);
        if (r->thinking.counts && part != PD_REPLY_ANSWER && !calls) *n_before = i + 1;
    }
    r->text = text;
    r->thought = thought;
    r->calling.call = call;
    return status;
}

/* Until the answer begins. */
static void hold_grammar(struct pd_thinking *t, const peridot_grammar **grammar, size_t n_replied)
{
    bool in_header = t->in_header && (!t->calls_headers || t->n_header == n_replied);
    if (!t->counts || (n_replied && !t->inside && !in_header)) return;
    t->grammar = *grammar;
    *grammar = NULL;
}

/* Tokens that were drawn become the prompt's: a grammar's value begins after them. */
static void skip_draws(struct pd_request *r, size_t n)
{
    r->n_replied -= n;
    if (r->sampling.temperature > 0) r->sampling.seed += PD_SPLITMIX_STEP * n;
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
    size_t n_replied = p->n_replied, n = p->n_prompt, n_before;
    if (p->draft_session)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "a request with a sequence drafts with one, not with a session");
    if (p->tools && !p->sampling)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "a request with tools brings its sampling");
    if (p->sampling) PD_TRY(pd_sampling_set(sequence, p->sampling, p->tools));
    if (p->adapters) PD_TRY(pd_session_set_adapters(r->session->s, q, p->adapters, p->n_adapters));
    PD_TRY(fill_request(r, p, q->pos));
    use_chain(r, q->chain);
    r->r.prompt = (struct pd_prompt){.sequence = q, .tokens = prompt, .n_left = n};
    PD_TRY(pd_request_begin(&r->r, r->session->s));
    for (size_t i = 0; i < n_replied; i++) pd_sampler_drawn(&q->sampler);
    PD_TRY(replay_text(&n_before, r, prompt + n - n_replied, n_replied));
    hold_grammar(&r->thinking, &q->sampler.p.grammar, n_replied);
    if (n) pd_sampler_begin_value(&q->sampler, (uint32_t)(q->pos + n - n_replied + n_before));
    return PERIDOT_OK;
}

static void release_request(peridot_request *r)
{
    for (size_t i = 0; i < r->n_images; i++) pd_image_free(r->images[i]);
    free(r->images);
    free(r->buffer.data);
    free(r->stop.held.data);
    pd_calling_end(&r->calling);
    free(r->thinking.drawn.data);
    pd_chain_free(r->chain);
    free(r->r.tokens);
}

static peridot_status end_status(const peridot_request *r)
{
    return r->r.status == PERIDOT_OK ? PERIDOT_OK : pd_fail(r->r.status, "%s", r->r.error);
}

/* Those that have ended. */
static void add_parts(peridot_stats *result, const struct pd_thinking *t)
{
    const peridot_stats *before = &t->before;
    if (t->n_parts == 0) return;
    result->n_prompt -= before->n_generated;
    result->n_generated += before->n_generated;
    result->prompt_s = before->prompt_s;
    result->decode_s += before->decode_s;
    if (before->first_token_s > 0) result->first_token_s = before->first_token_s;
    result->n_cached = before->n_cached;
}

static void write_stats(const peridot_request *r, peridot_stats *stats)
{
    peridot_stats result = {.n_prompt = (uint32_t)r->r.n_given, .n_generated = r->r.n_generated,
                                  .prompt_s = r->r.prompt_s,
        .decode_s = r->r.decode_s, .first_token_s = r->r.first_token_s, .decode_read_size = r->r.decode_read_size,
        .n_drafted = r->r.draft.n_drafted, .n_accepted = r->r.draft.n_accepted, .n_cached = r->r.n_cached,
        .n_preempted = r->r.n_preempted};
    add_parts(&result, &r->thinking);
    pd_result_write(stats, &result, sizeof result);
}

/* ---- a request that goes on as another one ---- */

/* Of n tokens. */
static void end_part(peridot_request *r, uint32_t n)
{
    peridot_stats *before = &r->thinking.before;
    if (r->thinking.n_parts++ == 0) {
        before->prompt_s = r->r.prompt_s;
        before->n_cached = r->r.n_cached;
    }
    if (!(before->first_token_s > 0)) before->first_token_s = r->r.first_token_s;
    before->n_generated += n;
    before->decode_s += r->r.decode_s;
    r->r.first_token_s = r->r.decode_s = 0;
    r->r.n_given += n;
    r->r.n_max -= n;
    r->r.n_generated = 0;
    r->r.progress = NULL;   /* the text has begun */
    r->r.outputs.logits = r->r.outputs.hidden = NULL;
}

/* Tokens of a header that the grammar begins with. */
static size_t n_begun(const struct pd_thinking *t)
{
    return t->grammar && t->in_header && t->calls_headers ? t->n_header : 0;
}

/* The grammar that was held is the chain's again, where no header is to come before it. */
static bool release_grammar(struct pd_thinking *t, const peridot_grammar **grammar)
{
    if (!t->grammar || (t->in_header && !t->calls_headers)) return false;
    *grammar = t->grammar;
    t->grammar = NULL;
    return true;
}

static peridot_status resume_on_sequence(peridot_request *r)
{
    struct pd_thinking *t = &r->thinking;
    struct pd_sequence *q = r->r.prompt.sequence;
    size_t n = 0, n_before = n_begun(t);
    if (!t->redraws) t->next[n++] = r->r.next;
    else if (q->sampler.p.temperature > 0) q->sampler.rng -= PD_SPLITMIX_STEP;
    if (t->ends_thought) {
        t->next[n++] = t->marks[1];
        pd_sampler_drawn(&q->sampler);
    }
    if (release_grammar(t, &q->sampler.p.grammar))
        pd_sampler_begin_value(&q->sampler, (uint32_t)(q->pos + n - n_before));
    r->r.n_shared = 0;
    r->r.prompt = (struct pd_prompt){.sequence = q, .tokens = t->next, .n_left = n};
    return pd_request_begin(&r->r, r->session->s);
}

static peridot_status resume_scheduled(peridot_request *r)
{
    struct pd_thinking *t = &r->thinking;
    size_t n = r->r.n_given, n_before = n - t->drawn.n;
    int32_t *tokens = malloc((n + 1) * sizeof *tokens);
    if (!tokens) return pd_fail_alloc(n * sizeof *tokens, "a request");
    memcpy(tokens, r->r.tokens, n_before * sizeof *tokens);
    if (t->drawn.n) memcpy(tokens + n_before, t->drawn.data, t->drawn.n * sizeof *tokens);
    free(r->r.tokens);
    r->r.tokens = tokens;
    r->r.n_tokens = n;
    r->r.n_replied += t->drawn.n;
    t->drawn.n = 0;
    skip_draws(&r->r, r->r.n_replied - n_begun(t));
    release_grammar(t, &r->r.sampling.grammar);
    return pd_schedule_resume(&r->session->schedule, &r->r);
}

/* *resumed false: the reply ends here. */
static peridot_status resume(bool *resumed, peridot_request *r)
{
    struct pd_thinking *t = &r->thinking;
    enum pd_reply_part part;
    uint32_t n = r->r.n_generated;
    bool go_on = true, fits = n < r->r.n_max && r->r.n_given + n <= r->session->s->ctx;
    *resumed = t->resumes = false;
    if (t->ends_thought && fits) {
        n++;
        PD_TRY(pd_ids_append(&t->drawn, &t->marks[1], 1));
        PD_TRY(pd_reply_write(&go_on, &part, r, t->marks[1]));
    }
    fits = n < r->r.n_max && r->r.n_given + n <= r->session->s->ctx;
    end_part(r, n);
    if (go_on && !fits) return pd_reply_write(&go_on, &part, r, -1);
    if (!go_on) return PERIDOT_OK;
    *resumed = true;
    return r->r.scheduled ? resume_scheduled(r) : resume_on_sequence(r);
}

static bool resumes(const peridot_request *r)
{
    return r->thinking.resumes && r->r.state == PD_REQUEST_DONE && r->r.status == PERIDOT_OK;
}

/* A failure is the request's. */
static bool resume_request(peridot_request *r)
{
    bool resumed;
    peridot_status status = resume(&resumed, r);
    if (status == PERIDOT_OK) return resumed;
    r->r.state = PD_REQUEST_DONE;
    r->r.status = status;
    snprintf(r->r.error, sizeof r->r.error, "%s", pd_error());
    return false;
}

/* A sequence that it was given draws as its chain says again. */
static void leave_sequence(peridot_request *r)
{
    struct pd_sequence *q = r->r.prompt.sequence;
    if (!r->thinking.grammar) return;
    if (!r->r.scheduled && q && q->chain == r->chain) release_grammar(&r->thinking, &q->sampler.p.grammar);
    r->thinking.grammar = NULL;
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
    peridot_bias *bias;
    struct pd_chain *chain;
    size_t n_before;
    if (p->draft)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "a request without a sequence drafts with a session, not with one");
    const struct pd_session *s = r->session->s;
    PD_TRY(fill_request(r, p, 0));
    r->r.scales = s->set.scales;
    if (p->adapters) PD_TRY(pd_session_choose_adapters(&r->r.scales, s, p->adapters, p->n_adapters));
    PD_TRY(pd_sampling_read(&sampling, &bias, p->sampling, p->tools, r->session->model));
    peridot_status status = pd_chain_create(&chain, &sampling);
    free(bias);
    PD_TRY(status);
    use_chain(r, chain);
    pd_chain_free(chain);
    r->r.sampling = r->chain ? r->chain->p : sampling;
    r->r.scheduled = true;
    r->r.share_at = p->n_shared;
    r->r.n_tokens = p->n_prompt;
    PD_TRY(copy_prompt(&r->r.tokens, p));
    PD_TRY(replay_text(&n_before, r, p->prompt + p->n_prompt - p->n_replied, p->n_replied));
    hold_grammar(&r->thinking, &r->r.sampling.grammar, p->n_replied);
    skip_draws(&r->r, n_before);
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
    if (r->r.state != PD_REQUEST_DONE) leave_sequence(r);
    pd_schedule_remove(&r->session->schedule, &r->r);
    release_request(r);
    free(r);
}

bool peridot_request_done(const peridot_request *r, peridot_status *status, peridot_stats *stats)
{
    write_stats(r, stats);
    if (r->r.state != PD_REQUEST_DONE || resumes(r)) return false;
    if (status) *status = end_status(r);
    return true;
}

peridot_status peridot_session_run(peridot_session *session, size_t *n_running)
{
    struct pd_schedule *c = &session->schedule;
    *n_running = 0;
    PD_TRY(pd_schedule_run(c));
    for (peridot_request *r = session->requests; r; r = r->next) {
        if (resumes(r) && resume_request(r) && !r->r.scheduled) pd_schedule_attach(c, &r->r);
        if (r->r.state == PD_REQUEST_DONE) leave_sequence(r);
    }
    *n_running = c->n_running + c->n_waiting;
    return PERIDOT_OK;
}

/* ---- one ---- */

static peridot_status run_to_end(peridot_request *r)
{
    struct pd_session *s = r->session->s;
    struct pd_request *request = &r->r;
    do {
        const struct pd_watch watch = {.progress = request->progress, .user = request->user};
        while (request->state != PD_REQUEST_DONE) PD_TRY(pd_requests_run(s, &request, 1, &watch));
    } while (resumes(r) && resume_request(r));
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
    leave_sequence(&r);
    write_stats(&r, stats);
    release_request(&r);
    return status;
}

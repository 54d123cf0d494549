/* Requests of peridot.h: a request of the engine, and the text that its tokens become. */
#include "api/api.h"

#include "base/base.h"
#include "grammar/calls/calls.h"

#include <stdlib.h>
#include <string.h>

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
    struct pd_buffer text = {0};
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

/* Whether a grammar is for the answer alone, which may not have begun yet. */
static bool begin_thinking(peridot_request *r, const peridot_request_params *p)
{
    struct pd_thinking *t = &r->r.thinking;
    const struct pd_tokenizer *tokenizer = r->session->model->vocab ? r->session->model->vocab->tokenizer : NULL;
    const struct pd_thought_marks marks = pd_reply_marks(p->thought || p->think ? tokenizer : NULL);
    pd_thinking_begin(t, &marks);
    r->named = true;
    if (marks.begin < 0) return false;
    if (p->think) t->n_most = p->think;
    pd_thinking_read_prompt(t, p->prompt, p->n_prompt - p->n_replied);
    r->hides_name = p->thought && pd_tokenizer_names_thoughts(tokenizer);
    t->calls_headers = p->tools && pd_call_format_has_headers(p->tools->calls.format);
    return p->think || t->place != PD_IN_ANSWER;
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

static bool is_stop(const struct pd_request *request, int32_t token)
{
    return peridot_is_stop(((const peridot_request *)request)->session->model, token);
}

/* The text stands after what was replied before: *n_before of these tokens come before the answer. */
static peridot_status replay_text(size_t *n_before, peridot_request *r, const peridot_request_params *p)
{
    const int32_t *replied = p->prompt + p->n_prompt - p->n_replied;
    peridot_status status = PERIDOT_OK;
    bool unused;
    *n_before = 0;
    for (size_t i = 0; i < p->n_replied && status == PERIDOT_OK; i++) {
        enum pd_reply_part part = pd_thinking_take(&r->r.thinking, replied[i]);
        bool calls = r->r.thinking.calls_headers && (part == PD_REPLY_HEADER || part == PD_REPLY_BEGINS_ANSWER);
        status = pd_reply_write(&unused, &r->r, part, replied[i]);
        if (part != PD_REPLY_ANSWER && !calls) *n_before = i + 1;
    }
    return status;
}

/* What it replies with, after what was replied before, of which nobody hears. */
static peridot_status begin_reply(peridot_request *r, const peridot_request_params *p)
{
    const struct pd_thinking *t = &r->r.thinking;
    size_t n = p->n_replied, n_before;
    bool waits = begin_thinking(r, p);
    pd_calling_begin(&r->calling, p->tools, NULL);
    PD_TRY(replay_text(&n_before, r, p));
    r->text = p->text;
    r->thought = p->thought;
    r->calling.call = p->call;
    r->r.n_before += p->n_prompt - n + (waits ? n_before : 0);
    bool in_header = t->place == PD_IN_HEADER && (!t->calls_headers || t->n_header == n);
    if (waits && (n == 0 || t->place == PD_IN_THOUGHT || in_header)) pd_request_hold_grammar(&r->r);
    return PERIDOT_OK;
}

/* That of its own sampling; NULL where it has none: the sequence's. */
static peridot_status choose_chain(peridot_request *r, peridot_sequence *sequence, const peridot_request_params *p)
{
    peridot_sampling sampling;
    peridot_bias *bias;
    if (p->tools && !p->sampling && sequence)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "a request with tools brings its sampling");
    if (sequence && p->sampling) PD_TRY(pd_sampling_set(sequence, p->sampling, p->tools));
    if (sequence) {
        r->chain = pd_chain_ref(sequence->q->chain);
        sampling = sequence->q->sampler.p;
    } else {
        PD_TRY(pd_sampling_read(&sampling, &bias, p->sampling, p->tools, r->session->model));
        peridot_status status = pd_chain_create(&r->chain, &sampling);
        free(bias);
        PD_TRY(status);
    }
    r->r.sampling = r->chain && !sequence ? r->chain->p : sampling;
    if (r->chain) r->stop = (struct pd_stop){.texts = r->chain->p.stop, .n = r->chain->p.n_stop};
    return PERIDOT_OK;
}

static peridot_status choose_adapters(peridot_request *r, peridot_sequence *sequence, const peridot_request_params *p)
{
    const struct pd_session *s = r->session->s;
    r->r.scales = s->set.scales;
    if (!p->adapters) return PERIDOT_OK;
    return sequence ? pd_session_set_adapters(s, sequence->q, p->adapters, p->n_adapters)
                    : pd_session_choose_adapters(&r->r.scales, s, p->adapters, p->n_adapters);
}

static peridot_status copy_prompt(peridot_request *r, const peridot_request_params *p)
{
    r->r.tokens = malloc((p->n_prompt + 1) * sizeof *r->r.tokens);
    if (!r->r.tokens) return pd_fail_alloc(p->n_prompt * sizeof *r->r.tokens, "a request");
    if (p->n_prompt) memcpy(r->r.tokens, p->prompt, p->n_prompt * sizeof *r->r.tokens);
    r->r.n_tokens = p->n_prompt;
    return PERIDOT_OK;
}

/* sequence NULL: the session finds one. */
static peridot_status begin_request(peridot_request *r, peridot_sequence *sequence, const peridot_request_params *p)
{
    size_t n = p->n_prompt;
    uint32_t pos = sequence ? sequence->q->pos : 0;
    if (sequence ? p->draft_session != NULL : p->draft != NULL)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, sequence
                       ? "a request with a sequence drafts with one, not with a session"
                       : "a request without a sequence drafts with a session, not with one");
    if (p->n_replied > n)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "n_replied is %zu, but the prompt has %zu token%s", p->n_replied,
                       n, PD_S(n));
    r->stream.started = pos + n - p->n_replied > 1;   /* a continuation keeps its first space; after bos alone the text
                                                         begins */
    r->rows = (struct pd_row_calls){p->prompt_logits, p->prompt_hidden, p->user};
    r->r = (struct pd_request){.n_given = n, .n_replied = p->n_replied, .n_before = pos, .n_shared = p->n_shared,
        .share_at = p->n_shared, .n_max = p->n_max, .write = pd_reply_write, .is_stop = is_stop, .logits = p->logits,
        .progress = p->progress, .outputs = pd_row_outputs_of(&r->rows), .prompt_last = p->prompt_last,
        .user = p->user};
    PD_TRY(copy_prompt(r, p));
    PD_TRY(choose_chain(r, sequence, p));
    PD_TRY(choose_adapters(r, sequence, p));
    PD_TRY(hold_images(r, p));
    PD_TRY(begin_draft(&r->r.draft, r->session, p));
    pd_draft_begin(&r->r.draft);
    PD_TRY(begin_reply(r, p));
    if (!sequence) return pd_schedule_add(&r->session->schedule, &r->r);
    r->r.prompt = (struct pd_prompt){.sequence = sequence->q, .tokens = r->r.tokens, .n_left = n};
    return pd_request_begin(&r->r, r->session->s);
}

static void release_request(peridot_request *r)
{
    for (size_t i = 0; i < r->n_images; i++) pd_image_free(r->images[i]);
    free(r->images);
    free(r->buffer.data);
    free(r->stop.held.data);
    pd_calling_end(&r->calling);
    pd_chain_free(r->chain);
    free(r->r.tokens);
    pd_draft_end(&r->r.draft);
}

static peridot_status end_status(const peridot_request *r)
{
    return r->r.status == PERIDOT_OK ? PERIDOT_OK : pd_fail(r->r.status, "%s", r->r.error);
}

static void write_stats(const peridot_request *r, peridot_stats *stats)
{
    peridot_stats result = {.n_prompt = (uint32_t)r->r.n_given, .n_generated = r->r.n_generated,
                                  .prompt_s = r->r.prompt_s,
        .decode_s = r->r.decode_s, .first_token_s = r->r.first_token_s, .decode_read_size = r->r.decode_read_size,
        .n_drafted = r->r.draft.n_drafted, .n_accepted = r->r.draft.n_accepted,
        .draft_saved_s = r->r.draft.saved_s, .n_cached = r->r.n_cached,
        .n_preempted = r->r.n_preempted};
    pd_result_write(stats, &result, sizeof result);
}

/* ---- many ---- */

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
    peridot_status status = begin_request(r, sequence, &known);
    if (status == PERIDOT_OK && sequence) pd_schedule_attach(&session->schedule, &r->r);
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
    struct pd_request *request = &r->r;
    while (request->state != PD_REQUEST_DONE) {
        const struct pd_watch watch = {.progress = request->progress, .user = request->user};
        PD_TRY(pd_requests_run(r->session->s, &request, 1, &watch));
    }
    return end_status(r);
}

peridot_status peridot_generate(peridot_sequence *sequence, const peridot_request_params *params, peridot_stats *stats)
{
    peridot_session *session = sequence->session;
    peridot_request r = {.session = session};
    peridot_request_params known;
    PD_TRY(read_params(&known, params));
    pd_prefix_make_room(&session->schedule.prefixes, pd_min(known.n_prompt + known.n_max, session->s->ctx) + PD_PAGE);
    peridot_status status = begin_request(&r, sequence, &known);
    if (status == PERIDOT_OK) status = run_to_end(&r);
    if (r.r.prompt.sequence) pd_request_leave(session->s, &r.r);
    write_stats(&r, stats);
    release_request(&r);
    return status;
}

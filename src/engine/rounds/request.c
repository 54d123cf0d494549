#include "engine/rounds/rounds.h"

#include "base/base.h"
#include "engine/pass/pass.h"

#include <stdio.h>
#include <string.h>

void pd_request_end(struct pd_session *s, struct pd_request *r, peridot_status status)
{
    enum pd_token_verdict unused;
    if (status == PERIDOT_OK) status = r->token(&unused, r, -1);
    r->state = PD_REQUEST_DONE;
    r->status = status;
    s->text_ended = true;
    pd_decoder_leave(&s->decoder, r->prompt.sequence);
    pd_next_mask_drop(&r->prompt.sequence->next_mask);
    if (status != PERIDOT_OK) snprintf(r->error, sizeof r->error, "%s", pd_error());
}

/* ---- beginning ---- */

static bool take_prompt_logits(void *user, struct pd_sequence *q, uint32_t pos, const float *row, size_t n)
{
    const struct pd_request *r = user;
    return r->prompt_logits(r->user, q->owner, pos, row, n);
}

static bool take_prompt_hidden(void *user, struct pd_sequence *q, uint32_t pos, const float *row, size_t n)
{
    const struct pd_request *r = user;
    return r->prompt_hidden(r->user, q->owner, pos, row, n);
}

static void fail_prompt(void *user, peridot_status status)
{
    struct pd_request *r = user;
    pd_request_end(r->session, r, status);
}

/* Rows of the prompt, but not of a reply that goes on. */
static void want_rows(struct pd_request *r)
{
    r->prompt.outputs = NULL;
    if (r->n_generated || r->prompt.n_left == 0 || !(r->prompt_logits || r->prompt_hidden)) return;
    r->outputs = (struct pd_row_outputs){.logits = r->prompt_logits ? take_prompt_logits : NULL,
        .hidden = r->prompt_hidden ? take_prompt_hidden : NULL, .failed = fail_prompt, .user = r,
        .first = r->prompt_last ? (uint32_t)(r->prompt.sequence->pos + r->prompt.n_left - 1) : 0,
        .no_head = !r->prompt_logits && r->n_max == 0};
    r->prompt.outputs = &r->outputs;
}

static bool tell_of_image(void *user)
{
    const struct pd_request *r = user;
    return !r->progress || r->progress(r->user, r->n_prompt - r->n_rest - r->prompt.n_left, r->n_prompt);
}

static void fail_image(void *user, peridot_status status)
{
    struct pd_request *r = user;
    r->is_hopeless = true;
    pd_request_end(r->session, r, status);
}

peridot_status pd_request_begin(struct pd_request *r, struct pd_session *s)
{
    r->state = PD_REQUEST_PROMPT;
    r->session = s;
    if (r->begun <= 0) r->begun = pd_now();
    r->n_prompt = r->prompt.n_left;
    r->n_rest = 0;
    PD_TRY(pd_gpu_check(s->model->gpu));
    PD_TRY(pd_session_check_tokens(s, &r->prompt));
    pd_decoder_leave(&s->decoder, r->prompt.sequence);
    if (r->prompt.n_left > 1) pd_sequence_mark(r->prompt.sequence);   /* the end of a reply */
    want_rows(r);
    r->image_calls = (struct pd_image_calls){tell_of_image, fail_image, r};
    r->prompt.image_calls = &r->image_calls;
    r->n_shared = pd_image_border(r->prompt.tokens, (uint32_t)pd_min(r->n_shared, r->n_prompt), (uint32_t)r->n_prompt);
    if (r->n_shared == 0 || r->n_shared >= r->n_prompt || s->model->config.bidirectional) return PERIDOT_OK;
    r->n_rest = r->n_prompt - r->n_shared;
    r->prompt.n_left = r->n_shared;
    return PERIDOT_OK;
}

/* ---- the tokens ---- */

/* The logits that a token was drawn from are the caller's first. *go_on: it did not end the request. */
static peridot_status report_logits(bool *go_on, struct pd_session *s, const struct pd_request *r)
{
    const struct pd_sequence *q = r->prompt.sequence;
    const float *logits;
    *go_on = true;
    if (!r->logits) return PERIDOT_OK;
    PD_TRY(pd_session_logits(&logits, s, r->prompt.sequence));
    *go_on = r->logits(r->user, q->owner, q->pos - 1, logits, s->model->weights.n_outputs);
    return PERIDOT_OK;
}

/* A token was drawn: it is handed on, and evaluated if the text is to go on. */
static void take_token(struct pd_session *s, struct pd_request *r, int32_t token)
{
    enum pd_token_verdict verdict = PD_TOKEN_LAST;
    bool go_on;
    if (r->n_generated == 0) r->decode_begun = pd_now();
    peridot_status status = report_logits(&go_on, s, r);
    if (status != PERIDOT_OK || !go_on) {
        pd_request_end(s, r, status);
        return;
    }
    status = r->token(&verdict, r, token);
    if (r->n_generated == 0 && verdict != PD_TOKEN_STOPS) r->first_token_s = pd_now() - r->begun;
    r->next = token;
    r->state = PD_REQUEST_DECODE;
    if (verdict != PD_TOKEN_STOPS) r->n_generated++;
    if (verdict != PD_TOKEN_GO_ON || r->n_generated == r->n_max || r->prompt.sequence->pos == s->ctx)
        pd_request_end(s, r, status);
}

static bool has_grammar(const struct pd_request *r) { return r->prompt.sequence->sampler.p.grammar != NULL; }

/* All of the prompt has been evaluated, or what others share of it. */
static void end_prompt(struct pd_session *s, struct pd_request *r)
{
    int32_t token = 0;
    pd_sequence_mark(r->prompt.sequence);
    r->prompt.n_left = r->n_rest;
    r->n_rest = 0;
    if (r->prompt.n_left) return;
    if (r->n_generated == 0) r->prompt_s = pd_now() - r->begun;
    if (r->n_max == 0) {
        pd_request_end(s, r, PERIDOT_OK);
        return;
    }
    if (has_grammar(r)) {
        r->state = PD_REQUEST_DRAW;
        return;
    }
    peridot_status status = pd_session_sample(&token, s, r->prompt.sequence);
    if (status == PERIDOT_OK) take_token(s, r, token);
    else pd_request_end(s, r, status);
}

/* ---- a round ---- */

/* Who takes part in it. */
struct round {
    struct pd_request *writing[PD_MAX_SEQUENCES], *reading[PD_MAX_SEQUENCES];
    struct pd_decode_row rows[PD_MAX_SEQUENCES];      /* of those that write */
    struct pd_prompt prompts[PD_MAX_SEQUENCES];       /* of those that read their prompts */
    uint32_t n_writing, n_reading;
};

static void join_writing(struct round *round, struct pd_session *s, struct pd_request *r)
{
    struct pd_sequence *q = r->prompt.sequence;
    peridot_status status = pd_sequence_extend(q, q->pos + 1);
    if (status != PERIDOT_OK) {
        pd_request_end(s, r, status);
        return;
    }
    round->writing[round->n_writing] = r;
    round->rows[round->n_writing++] =
        (struct pd_decode_row){.sequence = q,
                               .token = r->next,
                               .keeps_logits = r->logits != NULL,
                               .leaves_draw = has_grammar(r),
                               .n_more = (uint32_t)pd_max(r->n_max - r->n_generated, 1)};
}

/* Every round another prompt comes first, so that short ones don't wait for the end of a long one. */
static void begin_round(struct round *round, struct pd_session *s, struct pd_request *const *requests, uint32_t n)
{
    round->n_writing = round->n_reading = 0;
    for (uint32_t i = 0; i < n && round->n_writing < PD_MAX_SEQUENCES; i++)
        if (requests[i]->state == PD_REQUEST_DECODE) join_writing(round, s, requests[i]);
    for (uint32_t k = 0; k < n && round->n_reading < PD_MAX_SEQUENCES; k++) {
        struct pd_request *r = requests[(k + s->n_rounds) % n];
        if (r->state != PD_REQUEST_PROMPT) continue;
        round->reading[round->n_reading] = r;
        round->prompts[round->n_reading++] = r->prompt;
    }
}

static void take_step(struct pd_session *s, struct pd_request *r, int32_t token)
{
    r->decode_s = pd_now() - r->decode_begun;
    take_token(s, r, token);
}

/* Tokens that a draft may have, in a step of m requests. Its last row gives a token too. */
static uint32_t draft_room(const struct pd_session *s, const struct pd_request *r, uint32_t m)
{
    uint32_t n_rows = s->workspace.n_decode, pos = r->prompt.sequence->pos;
    if (r->draft.automatic && !r->draft.grows)
        n_rows = (uint32_t)pd_min(n_rows, pd_decode_columns(&s->workspace.variants));
    if (n_rows < m || r->n_generated >= r->n_max) return 0;
    uint32_t n = (uint32_t)pd_min(r->draft.n_most, n_rows / m - 1);
    return (uint32_t)pd_min(n, pd_min(r->n_max - r->n_generated, s->ctx - pos) - 1);
}

/* Draws of drafts under grammars have half of a round's time: others wait for theirs. */
static bool may_draw_drafts(const struct pd_session *s) { return s->draw_s < s->draw_most_s / 2; }

static peridot_status make_drafts(uint32_t *n_drafted, struct pd_draft_rows *drafts, struct pd_session *s,
                                  struct pd_request *const *of, uint32_t m)
{
    *n_drafted = 0;
    for (uint32_t i = 0; i < m && s->n_draft; i++) {
        struct pd_sequence *q = of[i]->prompt.sequence;
        uint32_t room = draft_room(s, of[i], m);
        drafts[i] = (struct pd_draft_rows){.sequence = q, .tokens = {of[i]->next}, .n = 1};
        if (pd_sequence_extend(q, q->pos + 1 + room) != PERIDOT_OK) room = 0;
        if (has_grammar(of[i]) && !may_draw_drafts(s)) room = 0;
        PD_TRY(pd_draft_make(&drafts[i], &of[i]->draft, room));
        s->draw_s += of[i]->draft.draw_s;
        for (uint32_t k = 1; k < drafts[i].n; k++)   /* a draft model may have more pieces */
            if ((uint32_t)drafts[i].tokens[k] >= s->model->weights.vocab_size) drafts[i].n = k;
        *n_drafted += drafts[i].n - 1;
    }
    return PERIDOT_OK;
}

/* *drawn false: row k is the sequence's, and its draw is left to draw_some. */
static peridot_status take_draft_row(bool *drawn, int32_t *next, struct pd_session *s,
                                     const struct pd_draft_rows *rows, uint32_t k)
{
    bool masks = rows->sequence->sampler.p.grammar != NULL;
    *drawn = !masks;
    PD_TRY(pd_draft_take(masks ? NULL : next, &s->decoder, rows, k));
    return masks && may_draw_drafts(s) ? pd_session_sample_some(drawn, next, s, rows->sequence) : PERIDOT_OK;
}

/* Its tokens, as far as the draft goes, or draws have time: how many of the draft. */
static uint32_t take_draft(struct pd_session *s, struct pd_request *r, const struct pd_draft_rows *rows)
{
    for (uint32_t k = 0;; k++) {
        int32_t next;
        bool drawn;
        peridot_status status = take_draft_row(&drawn, &next, s, rows, k);
        if (status != PERIDOT_OK) pd_request_end(s, r, status);
        else if (drawn) take_step(s, r, next);
        else r->state = PD_REQUEST_DRAW;
        if (r->state != PD_REQUEST_DECODE || k + 1 == rows->n || next != rows->tokens[k + 1]) return k;
    }
}

/* A step of m requests with drafts. */
static peridot_status decode_drafts(struct pd_session *s, struct pd_request *const *of, struct pd_draft_rows *drafts,
                                    uint32_t m, double begun)
{
    PD_TRY(pd_decode_drafts(&s->decoder, drafts, m));
    double seconds = pd_now() - begun;
    for (uint32_t i = 0; i < m; i++) {
        uint32_t n_accepted = take_draft(s, of[i], &drafts[i]);
        if (drafts[i].n > 1) pd_draft_took(&of[i]->draft, seconds, drafts[i].n - 1, n_accepted);
    }
    return PERIDOT_OK;
}

/* Where drafts may come, no more steps are queued ahead than are known to have none; and none where a prompt is to have
 * the device next. */
static void limit_queue(struct round *round)
{
    uint32_t most = round->n_reading ? 1 : UINT32_MAX;
    for (uint32_t i = 0; i < round->n_writing; i++) {
        const struct pd_draft *draft = &round->writing[i]->draft;
        if (draft->n_most) most = (uint32_t)pd_min(most, pd_max(draft->pause, 1));
    }
    for (uint32_t i = 0; i < round->n_writing; i++)
        round->rows[i].n_more = (uint32_t)pd_min(round->rows[i].n_more, most);
}

/* Bytes that request i of those that write reads in a step: each counts its part of the weights. */
static uint64_t read_size(const struct pd_session *s, const struct round *round, uint32_t i)
{
    uint32_t m = round->n_writing;
    return pd_session_step_size(s, 1, round->rows[i].sequence->pos) - s->model->weights.decode_read_size * (m - 1) / m;
}

static peridot_status run_step(struct pd_session *s, struct round *round)
{
    struct pd_draft_rows drafts[PD_MAX_SEQUENCES];
    uint64_t sizes[PD_MAX_SEQUENCES];
    struct pd_request *const *of = round->writing;
    struct pd_decode_row *rows = round->rows;
    uint32_t m = round->n_writing, n_drafted = 0;
    double begun = pd_now();
    if (m == 0) return PERIDOT_OK;
    for (uint32_t i = 0; i < m; i++) of[i]->decode_read_size += sizes[i] = read_size(s, round, i);
    if (s->decoder.n_queued == 0) PD_TRY(make_drafts(&n_drafted, drafts, s, of, m));
    if (n_drafted) return decode_drafts(s, of, drafts, m, begun);
    begun = pd_now();   /* a draft model may have read a part of the prompt before */
    limit_queue(round);
    PD_TRY(pd_decode_next(&s->decoder, rows, m));
    s->prefill.pace.step = s->decoder.step_s;
    double seconds = pd_now() - begun;
    for (uint32_t i = 0; i < m; i++) {
        if (!rows[i].advanced) {
            of[i]->decode_read_size -= sizes[i];
            continue;
        }
        pd_draft_took(&of[i]->draft, seconds, 0, 0);
        if (rows[i].leaves_draw) of[i]->state = PD_REQUEST_DRAW;
        else take_step(s, of[i], rows[i].token);
    }
    return PERIDOT_OK;
}

static void tell_progress(struct pd_session *s, struct pd_request *r)
{
    if (r->state != PD_REQUEST_PROMPT || !r->progress) return;
    if (!r->progress(r->user, r->n_prompt - r->n_rest - r->prompt.n_left, r->n_prompt))
        pd_request_end(s, r, pd_fail(PERIDOT_CANCELLED, "stopped by the caller within a prompt"));
}

/* A chunk was read of the prompts that wait, or none if `status` says so. */
static peridot_status take_chunk(struct pd_session *s, struct round *round, peridot_status status)
{
    if (status != PERIDOT_ERROR_MEMORY) PD_TRY(status);
    for (uint32_t i = 0; i < round->n_reading; i++) {
        struct pd_request *r = round->reading[i];
        if (status != PERIDOT_OK && r->state == PD_REQUEST_PROMPT) {   /* not even the first one's next token fits */
            pd_request_end(s, r, status);
            status = PERIDOT_OK;
        }
        bool advanced = round->prompts[i].n_left < r->prompt.n_left;
        r->prompt = round->prompts[i];
        if (advanced) tell_progress(s, r);
        if (r->state == PD_REQUEST_PROMPT && r->prompt.n_left == 0) end_prompt(s, r);
    }
    return PERIDOT_OK;
}

/* Nobody else has a part in the round, or will have before it ends. */
static peridot_status read_alone(struct pd_session *s, struct round *round)
{
    const struct pd_request *r = round->reading[0];
    const struct pd_watch watch = {.progress = r->progress, .user = r->user, .n_total = r->n_prompt - r->n_rest};
    return pd_prefill_run(&s->prefill, round->prompts, 1, &watch, &s->cancelled);
}

static peridot_status read_prompts(struct pd_session *s, struct round *round, enum pd_chunk_aim aim)
{
    const struct pd_batch batch = {.prompts = round->prompts, .n_prompts = round->n_reading};
    bool is_alone = round->n_writing == 0 && round->n_reading == 1;
    peridot_status status = PERIDOT_OK;
    if (round->n_reading == 0) return PERIDOT_OK;
    if (is_alone && aim == PD_CHUNK_FULL) {
        status = read_alone(s, round);
    } else if (pd_prefill_pending(round->prompts, round->n_reading)) {
        uint32_t n_tokens = pd_prefill_next(&s->prefill, round->prompts, round->n_reading,
                                            is_alone ? aim : PD_CHUNK_SHARED);
        status = pd_prefill_step(&s->prefill, &batch, n_tokens, &s->cancelled);
    }
    return take_chunk(s, round, status);
}

/* ---- a round in one pass ---- */

/* Tokens of prompts that it has; 0: no such round. Steps that are queued, and drafts, have the device to themselves. */
static uint32_t mixed_tokens(const struct pd_session *s, const struct round *round, const struct pd_batch *batch)
{
    bool can = round->n_writing && s->decoder.n_queued == 0 && !s->text_ended
        && pd_prefill_pending(batch->prompts, batch->n_prompts);
    for (uint32_t i = 0; i < round->n_writing; i++) can = can && round->writing[i]->draft.n_most == 0;
    return can ? pd_prefill_next_mixed(&s->prefill, batch) : 0;
}

static peridot_status run_mixed(struct pd_session *s, struct round *round, const struct pd_batch *batch,
                                uint32_t n_tokens)
{
    PD_TRY(pd_decoder_yield(&s->decoder));
    peridot_status status = pd_prefill_step(&s->prefill, batch, n_tokens, &s->cancelled);
    for (uint32_t i = 0; status == PERIDOT_OK && i < round->n_writing; i++) {
        struct pd_request *r = round->writing[i];
        int32_t token;
        r->decode_read_size += read_size(s, round, i);
        if (has_grammar(r)) {
            r->state = PD_REQUEST_DRAW;
            continue;
        }
        peridot_status drawn = pd_draw_next(&token, &s->workspace, r->prompt.sequence);
        if (drawn != PERIDOT_OK) pd_request_end(s, r, drawn);
        else take_step(s, r, token);
    }
    return take_chunk(s, round, status);
}

/* Who has waited longest for a turn; NULL: none has a draw to make. */
static struct pd_request *next_turn(struct pd_request *const *requests, uint32_t n)
{
    struct pd_request *next = NULL;
    for (uint32_t i = 0; i < n; i++)
        if (requests[i]->state == PD_REQUEST_DRAW && (!next || requests[i]->turn < next->turn)) next = requests[i];
    return next;
}

/* Under a grammar a draw may have to find all tokens that are allowed, which takes milliseconds where the vocabulary is
 * large, and a request's text does not depend on when it is done. So they take turns, in each of which a mask is made
 * for a millisecond at most, and those that are left when a round's time is used up sit out the next step. */
static peridot_status draw_some(struct pd_session *s, struct pd_request *const *requests, uint32_t n)
{
    struct pd_request *r;
    while ((!s->drew || s->draw_s < s->draw_most_s) && (r = next_turn(requests, n)) != NULL) {
        int32_t token;
        bool drawn;
        peridot_status status = pd_session_sample_some(&drawn, &token, s, r->prompt.sequence);
        s->drew = true;
        r->turn = ++s->n_turns;
        if (status == PERIDOT_ERROR_DEVICE_LOST || status == PERIDOT_ERROR_LINK) return status;
        if (status != PERIDOT_OK) pd_request_end(s, r, status);
        else if (drawn && r->n_generated) take_step(s, r, token);
        else if (drawn) take_token(s, r, token);
    }
    return PERIDOT_OK;
}

/* Those that sit out the next step may need all their logits when it is their turn. */
static peridot_status keep_logits(struct pd_session *s, struct pd_request *const *requests, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (requests[i]->state == PD_REQUEST_DRAW) PD_TRY(pd_session_keep_logits(s, requests[i]->prompt.sequence));
    return PERIDOT_OK;
}

static peridot_status run_round(struct pd_session *s, struct pd_request *const *requests, uint32_t n,
                                enum pd_chunk_aim alone)
{
    struct round round;
    if (s->cancelled) return pd_fail(PERIDOT_CANCELLED, "stopped between two rounds");
    begin_round(&round, s, requests, n);
    if (round.n_writing == 0) s->prefill.pace.step = 0;
    else PD_TRY(keep_logits(s, requests, n));
    const struct pd_batch batch = {round.rows, round.prompts, round.n_writing, round.n_reading};
    uint32_t n_tokens = mixed_tokens(s, &round, &batch);
    if (n_tokens) PD_TRY(run_mixed(s, &round, &batch, n_tokens));
    else PD_TRY(run_step(s, &round));
    PD_TRY(draw_some(s, requests, n));
    if (n_tokens || s->text_ended) return PERIDOT_OK;   /* the caller hears of an end at once */
    PD_TRY(read_prompts(s, &round, alone));
    return draw_some(s, requests, n);
}

peridot_status pd_requests_run(struct pd_session *s, struct pd_request *const *requests, uint32_t n,
                               enum pd_chunk_aim alone)
{
    PD_TRY(pd_gpu_check(s->model->gpu));
    s->n_rounds++;
    s->text_ended = false;
    s->draw_s = 0;
    s->drew = false;
    peridot_status status = run_round(s, requests, n, alone);
    if (status == PERIDOT_CANCELLED) s->cancelled = false;
    return status;
}

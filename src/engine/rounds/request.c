/* Requests: prompts that are to be continued, each on a sequence of its own. They are served in rounds: a decode step
 * of all that are being continued, then a chunk of the prompts that wait, sized so that the others hardly do; on a CPU
 * both may be one pass (round.c). So requests can come and go at any time, and a long prompt keeps nobody waiting.
 *
 * All that a request goes through is told by its state; `follow` says which may follow which. What a token that was
 * drawn means is found in one place, take_token: whatever drew it, a step, a draft, or a turn under a grammar. */
#include "engine/rounds/rounds.h"

#include "base/base.h"
#include "engine/pass/pass.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { LONG_ROUND = 4 };

/* ---- states ---- */

#define STATE(name) (1u << PD_REQUEST_##name)

/* One that is preempted waits again; one that goes on within its reply from what it was given has a prompt again. */
static const uint32_t follow[PD_N_REQUEST_STATES] = {
    [PD_REQUEST_WAITING] = STATE(WAITING) | STATE(PROMPT) | STATE(DONE),
    [PD_REQUEST_PROMPT] = STATE(PROMPT) | STATE(DRAW) | STATE(DECODE) | STATE(DONE),
    [PD_REQUEST_DRAW] = STATE(PROMPT) | STATE(DRAW) | STATE(DECODE) | STATE(DONE),
    [PD_REQUEST_DECODE] = STATE(PROMPT) | STATE(DRAW) | STATE(DECODE) | STATE(DONE),
    [PD_REQUEST_DONE] = STATE(WAITING)
};

void pd_request_go(struct pd_request *r, enum pd_request_state state)
{
    bool may_follow = follow[r->state] >> state & 1;
    assert(may_follow);
    (void)may_follow;
    r->state = state;
}

void pd_request_leave(struct pd_session *s, const struct pd_request *r)
{
    struct pd_sequence *q = r->prompt.sequence;
    bool has_chain = r->held && q->chain && q->chain->p.grammar == r->held;
    pd_decoder_leave(&s->decoder, q);
    pd_next_mask_drop(&q->next_mask);
    if (has_chain) q->sampler.p.grammar = r->held;
}

void pd_request_end(struct pd_session *s, struct pd_request *r, peridot_status status)
{
    bool unused;
    if (status == PERIDOT_OK && r->write) status = r->write(&unused, r, pd_thinking_take(&r->thinking, -1), -1);
    pd_request_go(r, PD_REQUEST_DONE);
    r->status = status;
    s->text_ended = true;
    pd_request_leave(s, r);
    if (status != PERIDOT_OK) snprintf(r->error, sizeof r->error, "%s", pd_error());
}

/* ---- beginning ---- */

/* Rows of the prompt, but not of a reply that goes on. */
static void want_rows(struct pd_request *r)
{
    r->prompt.outputs = NULL;
    if (r->n_generated || r->prompt.n_left == 0 || !(r->outputs.logits || r->outputs.hidden)) return;
    if (r->prompt_last) r->outputs.first = (uint32_t)(r->prompt.sequence->pos + r->prompt.n_left - 1);
    r->outputs.no_head = !r->outputs.logits && r->n_max == 0;
    r->prompt.outputs = &r->outputs;
}

static bool tell_of_image(void *user)
{
    const struct pd_request *r = user;
    return !r->progress || r->progress(r->user, r->n_prompt - r->n_rest - r->prompt.n_left, r->n_prompt);
}

static void fail_prompt(void *user, peridot_status status)
{
    struct pd_request *r = user;
    r->is_hopeless = true;
    pd_request_end(r->session, r, status);
}

void pd_request_hold_grammar(struct pd_request *r)
{
    r->held = r->sampling.grammar;
    r->sampling.grammar = NULL;
}

/* The sequence's generator and grammar after what was drawn before. */
static void begin_draws(const struct pd_request *r)
{
    struct pd_sampler *sampler = &r->prompt.sequence->sampler;
    for (size_t i = 0; i < r->n_replied + r->n_generated; i++) pd_sampler_drawn(sampler);
    sampler->p.grammar = r->sampling.grammar;
    if (r->n_given) pd_sampler_begin_value(sampler, (uint32_t)r->n_before);
}

peridot_status pd_request_begin(struct pd_request *r, struct pd_session *s)
{
    pd_request_go(r, PD_REQUEST_PROMPT);
    r->session = s;
    if (r->begun <= 0) r->begun = pd_now();
    r->n_prompt = r->prompt.n_left;
    r->n_rest = 0;
    PD_TRY(pd_gpu_check(s->model->gpu));
    PD_TRY(pd_session_check_tokens(s, &r->prompt));
    pd_decoder_leave(&s->decoder, r->prompt.sequence);
    if (!r->joint) begin_draws(r);
    if (r->prompt.n_left > 1) pd_sequence_mark(r->prompt.sequence);   /* the end of a reply */
    want_rows(r);
    r->calls = (struct pd_prompt_calls){tell_of_image, fail_prompt, r};
    r->prompt.calls = r->joint ? NULL : &r->calls;
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

/* A token becomes the reply's: it is handed on, and evaluated if the text is to go on after it and n_pending others.
 * False: the reply has ended. */
static bool write_token(struct pd_session *s, struct pd_request *r, enum pd_reply_part *part, int32_t token,
                        uint32_t n_pending)
{
    bool go_on = false;
    *part = pd_thinking_take(&r->thinking, token);
    peridot_status status = r->write(&go_on, r, *part, token);
    if (r->n_generated++ == 0) r->first_token_s = pd_now() - r->begun;
    r->next = token;
    if (status == PERIDOT_OK && go_on && r->n_generated < r->n_max && r->prompt.sequence->pos + n_pending < s->ctx)
        return true;
    pd_request_end(s, r, status);
    return false;
}

/* The grammar that waited is the chain's, where no header is to come before the answer, after n tokens that are yet to
 * be evaluated. */
static void begin_answer(struct pd_request *r, uint32_t n)
{
    struct pd_sampler *sampler = &r->prompt.sequence->sampler;
    bool begins = r->held && !pd_thinking_precedes(&r->thinking);
    r->n_before = r->prompt.sequence->pos + n - (r->held ? pd_thinking_begun(&r->thinking) : 0);
    if (!begins) return;
    r->sampling.grammar = sampler->p.grammar = r->held;
    r->held = NULL;
    pd_sampler_begin_value(sampler, (uint32_t)r->n_before);
}

/* The reply goes on from tokens that were not drawn, or from the same place by another draw: after the last token, or
 * without it where that was refused; within a thought, after the mark that ends it. */
static void go_on_as_prompt(struct pd_session *s, struct pd_request *r, bool refused)
{
    struct pd_thinking *t = &r->thinking;
    struct pd_sampler *sampler = &r->prompt.sequence->sampler;
    enum pd_reply_part part;
    uint32_t n = 0;
    pd_decoder_leave(&s->decoder, r->prompt.sequence);
    if (!refused) r->pending[n++] = r->next;
    else if (sampler->p.temperature > 0) sampler->rng -= PD_SPLITMIX_STEP;
    if (refused && pd_thinking_precedes(t)) t->place = PD_IN_ANSWER;
    if (t->place == PD_IN_THOUGHT) {
        if (!write_token(s, r, &part, t->marks.end, n)) return;
        pd_sampler_drawn(sampler);
        r->pending[n++] = t->marks.end;
    }
    begin_answer(r, n);
    r->progress = NULL;   /* the text has begun */
    r->prompt.tokens = r->pending;
    r->prompt.n_left = r->n_prompt = n;
    r->prompt.outputs = NULL;
    pd_request_go(r, n ? PD_REQUEST_PROMPT : PD_REQUEST_DRAW);
}

/* What a token that was drawn means: the end of the text, or a part of it, after which it may have to go on as a prompt
 * does: where the budget of thoughts is used up, and where an answer under a grammar begins. */
static void take_token(struct pd_session *s, struct pd_request *r, int32_t token)
{
    enum pd_reply_part part;
    bool go_on;
    if (r->n_generated == 0) r->decode_begun = pd_now();
    else r->decode_s = pd_now() - r->decode_begun;
    peridot_status status = report_logits(&go_on, s, r);
    bool is_stop = go_on && r->is_stop(r, token);
    if (status == PERIDOT_OK && go_on && r->held && pd_thinking_refuses(&r->thinking, token, is_stop)) {
        go_on_as_prompt(s, r, true);
    } else if (status != PERIDOT_OK || !go_on || is_stop) {
        pd_request_end(s, r, status);
    } else if (write_token(s, r, &part, token, 0)) {
        bool begins = r->held && pd_thinking_begins_answer(&r->thinking, part);
        if (begins || pd_thinking_is_over(&r->thinking)) go_on_as_prompt(s, r, false);
        else pd_request_go(r, PD_REQUEST_DECODE);
    }
}

static bool has_grammar(const struct pd_request *r) { return r->prompt.sequence->sampler.p.grammar != NULL; }

/* All of the prompt has been evaluated, or what others share of it. */
static void end_prompt(struct pd_session *s, struct pd_request *r)
{
    int32_t token = 0;
    if (!r->joint || r->n_prompt > 1) pd_sequence_mark(r->prompt.sequence);
    r->prompt.n_left = r->n_rest;
    r->n_rest = 0;
    if (r->prompt.n_left) return;
    if (r->n_generated == 0) r->prompt_s = pd_now() - r->begun;
    if (r->n_max == 0) {
        pd_request_end(s, r, PERIDOT_OK);
        return;
    }
    if (has_grammar(r)) {
        pd_request_go(r, PD_REQUEST_DRAW);
        return;
    }
    peridot_status status = pd_session_sample(&token, s, r->prompt.sequence);
    if (status == PERIDOT_OK) take_token(s, r, token);
    else pd_request_end(s, r, status);
}

/* ---- filling a round ---- */

/* A round, and the requests whose steps and prompts it has. */
struct turn {
    struct pd_round round;
    struct pd_request *writing[PD_MAX_SEQUENCES], *reading[PD_MAX_SEQUENCES];
};

static void join_steps(struct turn *t, struct pd_session *s, struct pd_request *r)
{
    struct pd_sequence *q = r->prompt.sequence;
    peridot_status status = pd_sequence_extend(q, q->pos + 1);
    if (status != PERIDOT_OK) {
        pd_request_end(s, r, status);
        return;
    }
    bool given = r->state == PD_REQUEST_PROMPT;
    t->round.may_draft = t->round.may_draft || (r->draft.n_most && !r->draft.pause);
    t->writing[t->round.n_steps] = r;
    t->round.steps[t->round.n_steps++] =
        (struct pd_decode_row){.sequence = q,
                               .token = given ? *r->prompt.tokens : r->next,
                               .keeps_logits = given || r->logits != NULL,
                               .leaves_draw = given || has_grammar(r),
                               .n_more = (uint32_t)pd_max(r->n_max - r->n_generated, 1)};
}

/* Tokens that a draft may have, in a step of m requests. Its last row gives a token too. */
static uint32_t draft_room(const struct pd_session *s, const struct pd_request *r, uint32_t m)
{
    uint32_t n_rows = s->workspace.n_decode, pos = r->prompt.sequence->pos;
    if (n_rows < m || r->n_generated >= r->n_max || r->draft.pause) return 0;
    uint32_t n = (uint32_t)pd_min(r->draft.n_most, r->draft.automatic ? n_rows - m : n_rows / m - 1);
    return (uint32_t)pd_min(n, pd_min(r->n_max - r->n_generated, s->ctx - pos) - 1);
}

/* Draws of drafts under grammars have half of a round's time: others wait for theirs. */
static bool may_draw_drafts(const struct pd_session *s) { return s->draw_s < s->draw_most_s / 2; }

static peridot_status make_draft(struct pd_session *s, struct pd_request *r, struct pd_draft_rows *rows, uint32_t n)
{
    struct pd_sequence *q = rows->sequence;
    if (pd_sequence_extend(q, q->pos + 1 + n) != PERIDOT_OK) n = 0;
    PD_TRY(pd_draft_make(rows, &r->draft, n));
    s->draw_s += r->draft.draw_s;
    for (uint32_t k = 1; k < rows->n; k++)   /* a draft model may have more pieces */
        if ((uint32_t)rows->tokens[k] >= s->model->weights.vocab_size) rows->n = k;
    return PERIDOT_OK;
}

static peridot_status make_drafts(struct turn *t, struct pd_session *s)
{
    struct pd_round *round = &t->round;
    struct pd_draft *drafts[PD_MAX_SEQUENCES];
    uint32_t most[PD_MAX_SEQUENCES], n = round->n_steps;
    if (!s->n_draft || s->decoder.n_queued) return PERIDOT_OK;
    s->draft_times.n_rounds++;
    for (uint32_t i = 0; i < n; i++) {
        struct pd_request *r = t->writing[i];
        drafts[i] = &r->draft;
        round->drafts[i] = (struct pd_draft_rows){.sequence = r->prompt.sequence, .tokens = {r->next}, .n = 1};
        most[i] = pd_draft_look(&round->drafts[i], &r->draft, draft_room(s, r, n));
    }
    if (n == 0 || pd_draft_share(most, drafts, n, s->workspace.n_decode, &s->draft_times) == 0) return PERIDOT_OK;
    for (uint32_t i = 0; i < n; i++) {
        if (has_grammar(t->writing[i]) && !may_draw_drafts(s)) most[i] = 0;
        PD_TRY(make_draft(s, t->writing[i], &round->drafts[i], most[i]));
        round->n_drafted += round->drafts[i].n - 1;
    }
    round->guesses_s = pd_now() - round->begun;
    return PERIDOT_OK;
}

/* Where drafts may come, no more steps are queued ahead than are known to have none; and none where a prompt is to have
 * the device next. */
static void limit_queue(struct turn *t)
{
    struct pd_round *round = &t->round;
    uint32_t most = round->n_chunk ? 1 : UINT32_MAX;
    for (uint32_t i = 0; i < round->n_steps; i++) {
        const struct pd_draft *draft = &t->writing[i]->draft;
        if (draft->n_most) most = (uint32_t)pd_min(most, pd_max(draft->pause, 1));
    }
    for (uint32_t i = 0; i < round->n_steps; i++)
        round->steps[i].n_more = (uint32_t)pd_min(round->steps[i].n_more, most);
}

static bool is_given_step(const struct pd_request *r)
{
    return r->in_steps && r->state == PD_REQUEST_PROMPT && r->prompt.n_left;
}

/* Prompts that a chunk can end come first, in the order in which they came, so that they do not wait for the end of a
 * long one; every LONG_ROUND rounds they come last, as many of them would keep a long one waiting for ever. Long ones
 * take turns. */
static void order_prompts(struct turn *t, const struct pd_session *s)
{
    struct pd_round *round = &t->round;
    struct pd_request *kinds[2][PD_MAX_SEQUENCES];   /* short ones and long ones */
    uint32_t n[2] = {0}, k = 0, n_tokens = pd_prefill_next(&s->prefill, round->chunk, round->n_chunk, PD_CHUNK_SHARED);
    bool long_first = s->n_rounds % LONG_ROUND == 0;
    uint32_t turn = long_first ? s->n_rounds / LONG_ROUND : s->n_rounds;
    for (uint32_t i = 0; i < round->n_chunk; i++) {
        bool is_long = round->chunk[i].n_left + t->reading[i]->n_rest > n_tokens;
        kinds[is_long][n[is_long]++] = t->reading[i];
    }
    for (uint32_t i = 0; i < n[0] && !long_first; i++) t->reading[k++] = kinds[0][i];
    for (uint32_t i = 0; i < n[1]; i++) t->reading[k++] = kinds[1][(i + turn) % n[1]];
    for (uint32_t i = 0; i < n[0] && long_first; i++) t->reading[k++] = kinds[0][i];
    for (uint32_t i = 0; i < k; i++) round->chunk[i] = t->reading[i]->prompt;
}

static void begin_turn(struct turn *t, struct pd_session *s, struct pd_request *const *requests, uint32_t n)
{
    struct pd_round *round = &t->round;
    for (uint32_t i = 0; i < n && round->n_steps < PD_MAX_SEQUENCES; i++)
        if (requests[i]->state == PD_REQUEST_DECODE || is_given_step(requests[i])) join_steps(t, s, requests[i]);
    for (uint32_t i = 0; i < n && round->n_chunk < PD_MAX_SEQUENCES; i++) {
        round->watch.n_total += requests[i]->n_prompt - requests[i]->n_rest;
        if (requests[i]->state != PD_REQUEST_PROMPT || is_given_step(requests[i])) continue;
        t->reading[round->n_chunk] = requests[i];
        round->chunk[round->n_chunk++] = requests[i]->prompt;
    }
    if (round->n_chunk > 1 && !round->whole) order_prompts(t, s);
}

/* Before tokens that were given are evaluated in steps; chunks are told of by those who run them. */
static peridot_status tell_of_steps(const struct turn *t)
{
    const struct pd_round *round = &t->round;
    struct pd_prompt given[PD_MAX_SEQUENCES];
    uint32_t n = 0;
    for (uint32_t i = 0; i < round->n_steps; i++)
        if (is_given_step(t->writing[i])) given[n++] = t->writing[i]->prompt;
    return n ? pd_report_progress(given, n, &round->watch) : PERIDOT_OK;
}

/* ---- what a round gave ---- */

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
        else if (drawn) take_token(s, r, next);
        else pd_request_go(r, PD_REQUEST_DRAW);
        if (r->state != PD_REQUEST_DECODE || k + 1 == rows->n || next != rows->tokens[k + 1]) return k;
    }
}

/* A step's token is drawn, unless it was in a pass with a chunk. */
static void take_row(struct pd_session *s, struct pd_request *r, const struct pd_decode_row *row, bool drawn)
{
    int32_t token = row->token;
    peridot_status status = PERIDOT_OK;
    if (row->leaves_draw) {
        pd_request_go(r, PD_REQUEST_DRAW);
        return;
    }
    if (!drawn) status = pd_draw_next(&token, &s->workspace, r->prompt.sequence);
    if (status == PERIDOT_OK) take_token(s, r, token);
    else pd_request_end(s, r, status);
}

/* Bytes that a request reads in a step at position `pos`: each of m counts its part of the weights. */
static uint64_t read_size(const struct pd_session *s, uint32_t m, uint32_t pos)
{
    return pd_session_step_size(s, 1, pos) - s->model->weights.decode_read_size * (m - 1) / m;
}

/* What is wanted of a token that was given, which row m of a step evaluated. */
static peridot_status take_given(struct pd_session *s, struct pd_request *r, uint32_t m)
{
    const struct pd_row_outputs *o = r->prompt.outputs;
    struct pd_sequence *q = r->prompt.sequence;
    r->prompt.tokens++;
    r->prompt.n_left--;
    if (o && q->pos > o->first) {
        PD_TRY(pd_outputs_hidden(o, &s->workspace, q, q->pos - 1, m, 1));
        PD_TRY(pd_outputs_logits(o, &s->workspace, q, q->pos - 1, q->logits_row, 1));
    }
    if (r->prompt.n_left == 0) end_prompt(s, r);
    return PERIDOT_OK;
}

/* How long the pass took, and what its drafts saved beside a step without; each of its requests has its part. */
static double time_drafts(struct pd_session *s, const struct pd_round *round)
{
    struct pd_draft_times *t = &s->draft_times;
    if (!s->n_draft || round->did & PD_ROUND_CHUNK) return 0;
    pd_draft_timed(t, round->n_steps + round->n_drafted, round->n_drafted, round->guesses_s,
                   round->seconds - round->guesses_s);
    return t->seconds[round->n_steps];
}

static void end_step(struct pd_request *r, uint32_t n_drafted, uint32_t n_accepted)
{
    if (r->draft.n_most == 0) return;
    pd_draft_took(&r->draft, n_drafted, n_accepted);
    if (n_drafted == 0 && r->state == PD_REQUEST_DECODE) pd_draft_watch(&r->draft, r->prompt.sequence, r->next);
}

static peridot_status take_steps(struct turn *t, struct pd_session *s)
{
    const struct pd_round *round = &t->round;
    double step_s = time_drafts(s, round);
    bool drawn = !(round->did & PD_ROUND_CHUNK);
    for (uint32_t i = 0; i < round->n_steps; i++) {
        struct pd_request *r = t->writing[i];
        const struct pd_draft_rows *rows = &round->drafts[i];
        uint32_t pos = r->prompt.sequence->pos, n_accepted;
        if (is_given_step(r)) {
            PD_TRY(take_given(s, r, i));
        } else if (round->n_drafted) {
            r->decode_read_size += read_size(s, round->n_steps, pos);
            n_accepted = take_draft(s, r, rows);
            end_step(r, rows->n - 1, n_accepted);
            if (step_s > 0) r->draft.saved_s += step_s * (1 + n_accepted) - round->seconds;
        } else if (round->steps[i].advanced) {
            r->decode_read_size += read_size(s, round->n_steps, pos - 1);
            take_row(s, r, &round->steps[i], drawn);
            end_step(r, 0, 0);
        }
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
static peridot_status take_chunk(struct turn *t, struct pd_session *s, peridot_status status)
{
    if (status != PERIDOT_ERROR_MEMORY) PD_TRY(status);
    for (uint32_t i = 0; i < t->round.n_chunk; i++) {
        struct pd_request *r = t->reading[i];
        if (status != PERIDOT_OK && r->state == PD_REQUEST_PROMPT) {   /* not even the first one's next token fits */
            pd_request_end(s, r, status);
            status = PERIDOT_OK;
        }
        bool advanced = t->round.chunk[i].n_left < r->prompt.n_left;
        r->prompt = t->round.chunk[i];
        if (advanced) tell_progress(s, r);
        if (r->state == PD_REQUEST_PROMPT && r->prompt.n_left == 0) end_prompt(s, r);
    }
    return PERIDOT_OK;
}

/* ---- draws under grammars ---- */

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
        else if (drawn) take_token(s, r, token);
    }
    return PERIDOT_OK;
}

/* ---- a round ---- */

/* Those that sit out the next step may need all their logits when it is their turn. */
static peridot_status keep_logits(struct pd_session *s, struct pd_request *const *requests, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (requests[i]->state == PD_REQUEST_DRAW) PD_TRY(pd_session_keep_logits(s, requests[i]->prompt.sequence));
    return PERIDOT_OK;
}

static peridot_status run_turn(struct pd_session *s, struct pd_request *const *requests, uint32_t n,
                               const struct pd_watch *watch)
{
    struct turn t = {0};
    struct pd_round *round = &t.round;
    if (s->cancelled) return pd_fail(PERIDOT_CANCELLED, "stopped between two rounds");
    round->whole = watch != NULL;
    if (watch) round->watch = *watch;
    begin_turn(&t, s, requests, n);
    if (round->n_steps == 0) s->prefill.pace.step = 0;
    else PD_TRY(keep_logits(s, requests, n));
    round->begun = pd_now();
    PD_TRY(tell_of_steps(&t));
    PD_TRY(make_drafts(&t, s));
    limit_queue(&t);
    do {
        peridot_status status = pd_round_run(round, s);
        if (status == PERIDOT_OK && round->did & PD_ROUND_STEPS) PD_TRY(take_steps(&t, s));
        PD_TRY(round->did & PD_ROUND_CHUNK ? take_chunk(&t, s, status) : status);
        PD_TRY(draw_some(s, requests, n));
    } while (!(round->done & PD_ROUND_CHUNK) && !s->text_ended);   /* the caller hears of an end at once */
    return PERIDOT_OK;
}

peridot_status pd_requests_run(struct pd_session *s, struct pd_request *const *requests, uint32_t n,
                               const struct pd_watch *watch)
{
    PD_TRY(pd_gpu_check(s->model->gpu));
    s->n_rounds++;
    s->text_ended = false;
    s->draw_s = 0;
    s->drew = false;
    peridot_status status = run_turn(s, requests, n, watch);
    if (status == PERIDOT_CANCELLED) s->cancelled = false;
    return status;
}

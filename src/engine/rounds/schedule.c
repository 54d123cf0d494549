/* The schedule of a session: which of its requests has a sequence, and which takes part in the next round.
 *
 * A request comes with a sequence, on which it begins at once, or without one. Those without wait in the order in which
 * they came, until fewer than n_parallel have sequences and the cache has room for the prompt and the beginning of the
 * reply; who cannot begin yet keeps those behind waiting. A request begins on what the session has of its prompt
 * (prefix.c). One whose whole prompt another is evaluating waits for that, to share it. When the cache is full, kept
 * sequences go first; then the request that needs more gives up its sequence and goes on later from its tokens, before
 * all others that wait: to the same text.
 *
 * Each round is a step of those that write and a chunk of the prompts: see request.c.
 *
 * Who gives up its sequence goes on first, or two could give way to each other for ever; and where memory is short for
 * another reason than the cache they would all the same, which is why tries that come to nothing are counted. */
#include "engine/rounds/rounds.h"

#include "base/base.h"
#include "engine/pass/pass.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    AHEAD = 128,               /* tokens of a reply for which there must be room when it begins */
    EACH = 64,                 /* positions that are left to each request at work: a page */
    TRIES = 8                  /* that come to nothing, before a request is told that memory is short */
};

void pd_schedule_init(struct pd_schedule *c, struct pd_session *s, uint32_t n_parallel)
{
    *c = (struct pd_schedule){.s = s, .n_parallel = n_parallel, .prefixes.s = s};
}

/* ---- who runs and who waits ---- */

/* Takes a request out of those that run; the others keep their order. */
static void leave_running(struct pd_schedule *c, const struct pd_request *r)
{
    uint32_t i = 0;
    while (i < c->n_running && c->running[i] != r) i++;
    if (i == c->n_running) return;
    memmove(&c->running[i], &c->running[i + 1], (--c->n_running - i) * sizeof *c->running);
}

static void wait_at(struct pd_schedule *c, struct pd_request **at, struct pd_request *r)
{
    pd_request_go(r, PD_REQUEST_WAITING);
    r->behind = *at;
    *at = r;
    c->n_waiting++;
}

static void stop_waiting(struct pd_schedule *c, struct pd_request **at)
{
    *at = (*at)->behind;
    c->n_waiting--;
}

/* Gives up the sequences that were found for it. */
static void release(struct pd_schedule *c, struct pd_request *r, enum pd_prefix_keep keep)
{
    if (r->draft.sequence) pd_session_remove(r->draft.session, r->draft.sequence);
    r->draft.sequence = NULL;
    pd_prefix_release(&c->prefixes, r, keep);
}

void pd_schedule_attach(struct pd_schedule *c, struct pd_request *r) { c->running[c->n_running++] = r; }

peridot_status pd_schedule_add(struct pd_schedule *c, struct pd_request *r)
{
    struct pd_request **end = &c->waiting;
    struct pd_sequence none = {0};
    const struct pd_prompt prompt = {.sequence = &none, .tokens = r->tokens, .n_left = r->n_tokens};
    PD_TRY(pd_gpu_check(c->s->model->gpu));
    PD_TRY(pd_session_check_tokens(c->s, &prompt));
    if (r->n_max || r->outputs.logits) PD_TRY(pd_check_head(c->s->model));
    if (r->n_tokens == 0) return pd_fail(PERIDOT_ERROR_ARGUMENT, "no tokens were given");
    while (*end) end = &(*end)->behind;
    r->begun = pd_now();
    wait_at(c, end, r);
    return PERIDOT_OK;
}

void pd_schedule_remove(struct pd_schedule *c, struct pd_request *r)
{
    struct pd_request **at = &c->waiting;
    if (r->state == PD_REQUEST_WAITING) {
        while (*at != r) at = &(*at)->behind;
        stop_waiting(c, at);
        return;
    }
    leave_running(c, r);
    if (r->prompt.sequence) pd_request_leave(c->s, r);
    if (pd_prefix_has(&c->prefixes, r)) release(c, r, PD_KEEP_BEFORE);
}

/* ---- beginning ---- */

static size_t n_drawn(const struct pd_request *r) { return r->n_replied + r->n_generated; }

static bool wants_rows(const struct pd_request *r)
{
    return r->n_generated == 0 && (r->outputs.logits || r->outputs.hidden);
}

/* Nothing of it may be another's: rows are wanted, or what a prompt leaves in the cache depends on its end. */
static bool must_be_whole(const struct pd_schedule *c, const struct pd_request *r)
{
    return wants_rows(r) || c->s->model->config.bidirectional;
}

/* More of it than the token that each evaluates by itself. */
static bool evaluates_same_prompt(const struct pd_schedule *c, const struct pd_request *running,
                                  const struct pd_request *r)
{
    size_t n = r->n_before, n_left = running->prompt.n_left + running->n_rest;
    return n > PD_PREFIX_WORTH && pd_prefix_has(&c->prefixes, running) && n_left > 1 && n_drawn(running) == 0
        && running->n_before == n && pd_scales_equal(&running->scales, &r->scales)
        && memcmp(running->tokens, r->tokens, n * sizeof *r->tokens) == 0;
}

static bool must_wait(const struct pd_schedule *c, const struct pd_request *r)
{
    for (uint32_t i = 0; i < c->n_running && !must_be_whole(c, r); i++)
        if (evaluates_same_prompt(c, c->running[i], r)) return true;
    return false;
}

/* On the sequence that was found. */
static peridot_status start_request(struct pd_schedule *c, struct pd_request *r)
{
    struct pd_sequence *q = r->prompt.sequence;
    r->n_cached = q->pos;
    r->n_shared = r->share_at > q->pos ? r->share_at - q->pos : 0;
    r->prompt = (struct pd_prompt){.sequence = q, .tokens = r->tokens + q->pos, .n_left = r->n_tokens - q->pos};
    PD_TRY(pd_session_set_sampling(c->s, q, &r->sampling));
    if (r->draft.session && r->draft.n_most) PD_TRY(pd_session_add(&r->draft.sequence, r->draft.session));
    PD_TRY(pd_request_begin(r, c->s));
    r->n_prompt = r->n_tokens;
    return PERIDOT_OK;
}

/* Of a request that is done: with the present sentence. */
static void set_failure(struct pd_request *r, peridot_status status)
{
    r->status = status;
    snprintf(r->error, sizeof r->error, "%s", pd_error());
}

static void fail_request(struct pd_request *r, peridot_status status)
{
    pd_request_go(r, PD_REQUEST_DONE);
    set_failure(r, status);
}

/* False: there is no room for it yet, and others are at work that will make some. */
static bool begin_request(struct pd_schedule *c, struct pd_request *r)
{
    uint32_t n_taken = pd_prefix_n_taken(&c->prefixes), n_free = pd_cache_free_positions(&c->s->set.cache);
    size_t most = must_be_whole(c, r) ? 0 : pd_min(r->n_before, r->n_tokens - 1);
    if (n_taken && !pd_prefix_n_kept(&c->prefixes) && n_free < EACH * (n_taken + 1)) return false;
    peridot_status status = pd_prefix_take(&c->prefixes, r, most);
    if (status != PERIDOT_OK && n_taken) return false;
    if (status != PERIDOT_OK) {
        fail_request(r, status);
        return true;
    }
    uint64_t needed = r->n_tokens - r->prompt.sequence->pos + pd_min(r->n_max - r->n_generated, AHEAD)
        + EACH * (n_taken + 1);
    if (!pd_prefix_make_room(&c->prefixes, needed) && n_taken) {
        pd_prefix_release(&c->prefixes, r, PD_KEEP_ALL);
        return false;
    }
    status = start_request(c, r);
    if (status == PERIDOT_OK) {
        pd_schedule_attach(c, r);
        return true;
    }
    fail_request(r, status);
    release(c, r, PD_KEEP_NONE);
    return true;
}

/* In order; who cannot begin yet keeps those behind waiting, or it might wait for ever. */
static void begin_some(struct pd_schedule *c)
{
    struct pd_request **at = &c->waiting;
    while (*at && pd_prefix_n_taken(&c->prefixes) < c->n_parallel) {
        struct pd_request *r = *at;
        if (must_wait(c, r)) {
            at = &r->behind;
            continue;
        }
        if (!begin_request(c, r)) return;
        stop_waiting(c, at);
    }
}

/* ---- ending ---- */

/* What was drawn since it began becomes part of the tokens that it begins with, the last ones of which are yet to be
 * evaluated: that is why it goes. */
static peridot_status remember(struct pd_request *r)
{
    const struct pd_sequence *q = r->prompt.sequence;
    size_t n = r->n_given + r->n_generated, n_evaluated = pd_min(n, q->pos);
    if (n == r->n_tokens) return PERIDOT_OK;
    int32_t *tokens = realloc(r->tokens, n * sizeof *tokens);
    if (!tokens) return pd_fail_alloc(n * sizeof *tokens, "the tokens of a request");
    memcpy(tokens, q->tokens, n_evaluated * sizeof *tokens);
    memcpy(tokens + n_evaluated, r->prompt.n_left ? r->prompt.tokens : &r->next, (n - n_evaluated) * sizeof *tokens);
    r->tokens = tokens;
    r->n_tokens = n;
    return PERIDOT_OK;
}

/* It goes on later, before all others, from its tokens; or stays done, where that came to nothing too often. */
static void preempt(struct pd_schedule *c, struct pd_request *r)
{
    r->n_tries = r->prompt.sequence->pos > r->n_cached ? 0 : r->n_tries + 1;
    bool again = r->n_tries < TRIES;
    peridot_status status = again ? remember(r) : PERIDOT_OK;
    if (status != PERIDOT_OK) set_failure(r, status);
    release(c, r, PD_KEEP_NONE);
    if (!again || status != PERIDOT_OK) return;
    c->n_preempted++;
    r->n_preempted++;
    r->status = PERIDOT_OK;
    wait_at(c, &c->waiting, r);
}

/* A request that is done gives up its sequence; or goes on later where others held what it lacked of the cache. */
static void take_end(struct pd_schedule *c, struct pd_request *r, bool others)
{
    leave_running(c, r);
    if (!pd_prefix_has(&c->prefixes, r)) return;
    if (r->status == PERIDOT_ERROR_MEMORY && others && !r->is_hopeless) preempt(c, r);
    else release(c, r, r->status == PERIDOT_OK ? PD_KEEP_ALL : PD_KEEP_NONE);
}

/* The last ones first: those that go on later keep their order. */
static void take_ends(struct pd_schedule *c)
{
    bool others = pd_prefix_n_taken(&c->prefixes) > 1 || pd_prefix_n_kept(&c->prefixes);
    for (uint32_t i = c->n_running; i > 0; i--)
        if (c->running[i - 1]->state == PD_REQUEST_DONE) take_end(c, c->running[i - 1], others);
}

/* An error that ends all that are at work. Those whose device was lost have their tokens, and may go on elsewhere. */
static void end_all(struct pd_schedule *c, peridot_status status)
{
    for (uint32_t i = 0; i < c->n_running; i++)
        if (pd_prefix_has(&c->prefixes, c->running[i]) && c->running[i]->state != PD_REQUEST_DONE)
            pd_request_end(c->s, c->running[i], status);
}

/* ---- a round ---- */

peridot_status pd_schedule_run(struct pd_schedule *c)
{
    begin_some(c);
    pd_prefix_make_room(&c->prefixes, EACH * ((uint64_t)pd_prefix_n_taken(&c->prefixes) + 2) + c->s->prefill.n_room);
    peridot_status status = pd_requests_run(c->s, c->running, c->n_running, NULL);
    if (status == PERIDOT_ERROR_DEVICE_LOST) return status;
    if (status != PERIDOT_OK && status != PERIDOT_CANCELLED) end_all(c, status);
    take_ends(c);
    return status;
}

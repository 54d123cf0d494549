#include "engine/prompt_rows.h"

#include "base/num.h"
#include "base/os.h"

/* The requests of a pass. */
struct readers {
    struct pd_session *s;
    struct pd_request *of[PD_MAX_SEQUENCES];
    struct pd_prompt prompts[PD_MAX_SEQUENCES];    /* the parts of theirs that are read */
    uint32_t ends[PD_MAX_SEQUENCES], n;            /* positions after their prompts */
    size_t n_tokens;
    double flop;
};

void pd_prompt_rows_init(struct pd_prompt_rows *rows, const struct pd_session *s)
{
    for (int i = 0; i < 2; i++) rows->pace[i] = (struct pd_pace){.at_once = s->prefill.pace.at_once};
}

bool pd_prompt_rows_wanted(const struct pd_request *r)
{
    return r->state == PD_REQUEST_PROMPT && r->prompt.n_left && r->n_generated == 0
        && (r->prompt_logits || r->prompt_hidden);
}

/* ---- what a pass reports ---- */

static void hand_on(struct readers *readers, struct pd_sequence *q, bool logits, uint32_t pos, const float *row,
                    size_t n)
{
    uint32_t i = 0;
    while (readers->of[i]->prompt.sequence != q) i++;
    struct pd_request *r = readers->of[i];
    if (r->state == PD_REQUEST_DONE || (r->prompt_last && pos + 1 < readers->ends[i])) return;
    if (!(logits ? r->prompt_logits : r->prompt_hidden)(r->user, q->owner, pos, row, n))
        pd_request_end(readers->s, r, pd_fail(PERIDOT_CANCELLED, "stopped by the caller at position %u", pos));
}

static bool take_logits(void *user, struct pd_sequence *q, uint32_t pos, const float *row, size_t n)
{
    hand_on(user, q, true, pos, row, n);
    return true;
}

static bool take_hidden(void *user, struct pd_sequence *q, uint32_t pos, const float *row, size_t n)
{
    hand_on(user, q, false, pos, row, n);
    return true;
}

/* ---- a pass ---- */

static bool is_alike(const struct pd_request *a, const struct pd_request *b)
{
    return !a->prompt_logits == !b->prompt_logits && !a->prompt_hidden == !b->prompt_hidden
        && a->prompt_last == b->prompt_last && !a->n_max == !b->n_max;
}

static struct pd_row_wishes wishes_of(struct readers *readers)
{
    const struct pd_request *r = readers->of[0];
    return (struct pd_row_wishes){.logits = r->prompt_logits ? take_logits : NULL,
                                  .hidden = r->prompt_hidden ? take_hidden : NULL,
                                  .user = readers,
                                  .last = r->prompt_last,
                                  .no_head = !r->prompt_logits && r->n_max == 0};
}

/* Adds the next tokens of a request, of which so many may come at most. */
static void add(struct readers *readers, struct pd_request *r, size_t most)
{
    uint32_t i = readers->n++, pos = r->prompt.sequence->pos;
    readers->of[i] = r;
    readers->ends[i] = (uint32_t)(pos + r->prompt.n_left);
    readers->prompts[i] = r->prompt;
    readers->prompts[i].n_left = pd_min(r->prompt.n_left, most);
    readers->n_tokens += readers->prompts[i].n_left;
    readers->flop += (double)readers->prompts[i].n_left * pd_token_flop(readers->s->model, pos, r->prompt_logits);
}

static size_t most_tokens(struct pd_pace *pace, const struct pd_session *s, const struct pd_request *r, bool writes)
{
    double token = pd_token_flop(s->model, r->prompt.sequence->pos, r->prompt_logits);
    pace->step = s->prefill.pace.step;
    return pd_min(writes ? pd_next_shared_chunk(pace, token) : pd_next_chunk(pace, token), s->chunk);
}

static void end_all(struct readers *readers, peridot_status status)
{
    for (uint32_t i = 0; i < readers->n; i++)
        if (readers->of[i]->state != PD_REQUEST_DONE) pd_request_end(readers->s, readers->of[i], status);
}

/* The cache is full: the first that could not go on ends. */
static void end_one(struct readers *readers, peridot_status status)
{
    uint32_t i = 0;
    while (i + 1 < readers->n && (readers->prompts[i].n_left == 0 || readers->of[i]->state == PD_REQUEST_DONE)) i++;
    if (readers->of[i]->state != PD_REQUEST_DONE) pd_request_end(readers->s, readers->of[i], status);
}

static void report_progress(struct pd_session *s, struct pd_request *r)
{
    if (r->state == PD_REQUEST_DONE || !r->progress) return;
    if (!r->progress(r->user, r->n_prompt - r->prompt.n_left, r->n_prompt))
        pd_request_end(s, r, pd_fail(PERIDOT_CANCELLED, "stopped by the caller within a prompt"));
}

/* n_read: tokens of each that were to be read. */
static void advance(struct readers *readers, const size_t *n_read)
{
    for (uint32_t i = 0; i < readers->n; i++) {
        struct pd_prompt *prompt = &readers->of[i]->prompt;
        size_t n = n_read[i] - readers->prompts[i].n_left;
        prompt->tokens += n;
        prompt->n_left -= n;
        if (n) report_progress(readers->s, readers->of[i]);
    }
}

/* Each time another request comes first, so that short texts don't wait for the end of a long one. */
static void choose(struct readers *readers, struct pd_request *const *requests, uint32_t n, size_t most)
{
    for (uint32_t k = 0; k < n && readers->n_tokens < most; k++) {
        struct pd_request *r = requests[(k + readers->s->n_rounds) % n];
        if (readers->n == 0 || is_alike(r, readers->of[0])) add(readers, r, most - readers->n_tokens);
    }
}

peridot_status pd_prompt_rows_read(struct pd_prompt_rows *rows, struct pd_session *s,
                                   struct pd_request *const *requests, uint32_t n, bool writes)
{
    struct readers readers = {.s = s};
    const struct pd_request *first = requests[s->n_rounds % n];
    struct pd_pace *pace = &rows->pace[first->prompt_logits != NULL];
    size_t n_read[PD_MAX_SEQUENCES];
    choose(&readers, requests, n, most_tokens(pace, s, first, writes));
    for (uint32_t i = 0; i < readers.n; i++) n_read[i] = readers.prompts[i].n_left;
    const struct pd_row_wishes wishes = wishes_of(&readers);
    double begun = pd_now();
    peridot_status status = pd_session_eval(s, readers.prompts, readers.n, &wishes);
    if (status == PERIDOT_OK) pd_pace_took(pace, (uint32_t)readers.n_tokens, readers.flop, pd_now() - begun);
    if (status == PERIDOT_ERROR_MEMORY) end_one(&readers, status);
    bool ends_all = status == PERIDOT_ERROR_DEVICE_LOST || status == PERIDOT_ERROR_LINK || status == PERIDOT_CANCELLED;
    if (status != PERIDOT_OK && status != PERIDOT_ERROR_MEMORY && !ends_all) end_all(&readers, status);
    advance(&readers, n_read);
    return ends_all ? status : PERIDOT_OK;
}

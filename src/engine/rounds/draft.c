/* Speculative decoding. A draft is some tokens that are likely to come: those that followed where the last tokens came
 * before in the text, or those that a smaller model draws. They are evaluated with the next token in one decode step,
 * as rows of one sequence: each row attends to the keys of those before it, and is computed as it would be alone. Then
 * tokens are drawn row by row, as without a draft, from the same logits and by the same random numbers, for as long as
 * what is drawn is the draft's next token. So the text is the same, bit for bit, at any temperature and with any chain.
 * Rejection sampling would keep a token that was looked up as often: with the token's probability. A draft model draws
 * by the same random numbers as the model, so that the two agree more often than independent draws would, if less often
 * than rejection sampling could make them. Keys of rows that are not accepted are overwritten before they are read, and
 * of recurrences there is the state after each row, so that there is nothing to undo.
 *
 * Whether drafts pay depends on the device and the text: on llvmpipe, with Gemma 3 1B, 4 rows take 1.9 times as long as
 * one, 8 take 2.9 times. So steps are timed with and without, a draft that was right makes the next one longer, and
 * after some that did not pay there is a pause. A step without a draft is timed again now and then: a first one that
 * took long would make drafts look good for ever. */
#include "engine/rounds/rounds.h"

#include "base/base.h"
#include "grammar/grammar.h"

#include <stdlib.h>

#define LOOKUP_MIN 2       /* tokens that must agree */
#define LOOKUP_MAX 8
#define RECENT_STEP 0.25   /* part that the last step has in how long steps take lately */
#define RECENT_DRAFT 0.5   /* and the last draft in the gain */
#define HOPED_GAIN 2.0     /* of drafts that were not tried lately: one that fails is not the last one then */
#define REMEASURE 32       /* drafts after which a step without one is timed again */
#define FIRST_PAUSE 16     /* steps without drafts after some that did not pay */
#define LONGEST_PAUSE 128
#define DRAW_SECONDS 0.005 /* that a draft's draws under a grammar may take */

uint32_t pd_draft_lookup(int32_t *out, uint32_t n_most, const int32_t *tokens, uint32_t n)
{
    uint32_t best = LOOKUP_MIN - 1, after = n;
    for (uint32_t end = n - 1; end > best && best < LOOKUP_MAX; end--) {   /* tokens before it are compared */
        uint32_t same = 0;
        while (same < LOOKUP_MAX && same < end && tokens[end - 1 - same] == tokens[n - 1 - same]) same++;
        if (same <= best) continue;
        best = same;
        after = end;
    }
    if (after == n) return 0;
    for (uint32_t i = 0; i < n_most; i++) out[i] = after + i < n ? tokens[after + i] : out[after + i - n];
    return n_most;
}

/* What a draft model reads of a token: it sees no images. */
static int32_t seen(int32_t token) { return pd_is_image_row(token) ? 0 : token; }

static peridot_status read_on(bool *ready, struct pd_session *s, struct pd_sequence *q, const int32_t *tokens,
                              uint32_t n)
{
    static const atomic_bool never = false;
    struct pd_prompt prompt = {.sequence = q, .tokens = tokens, .n_left = n};
    PD_TRY(pd_session_check_tokens(s, &prompt));
    *ready = true;
    if (prompt.n_left == 1) return pd_decode(&s->decoder, &q, prompt.tokens, 1);
    if (prompt.n_left == 0) return PERIDOT_OK;
    const struct pd_batch batch = {.prompts = &prompt, .n_prompts = 1};
    uint32_t n_tokens = pd_prefill_next(&s->prefill, &prompt, 1, PD_CHUNK_SHARED);
    if (n_tokens == 1) n_tokens = (uint32_t)pd_min(2, s->prefill.n_max);   /* the text grows by one */
    PD_TRY(pd_prefill_step(&s->prefill, &batch, n_tokens, &never));
    *ready = prompt.n_left == 0;
    return PERIDOT_OK;
}

/* Brings the draft model's sequence to the first n tokens; *ready: it is there, and not only a chunk nearer. */
static peridot_status follow_text(bool *ready, const struct pd_draft *draft, const int32_t *tokens, uint32_t n)
{
    struct pd_session *s = draft->session;
    struct pd_sequence *q = draft->sequence;
    uint32_t same = 0;
    *ready = false;
    while (same < q->pos && same < n && q->tokens[same] == seen(tokens[same])) same++;
    if (same < q->pos) PD_TRY(pd_session_truncate(s, q, same, &same));
    int32_t *text = malloc((n - same + 1) * sizeof *text);
    if (!text) return pd_fail_alloc((n - same + 1) * sizeof *text, "a draft");
    for (uint32_t i = same; i < n; i++) text[i - same] = seen(tokens[i]);
    peridot_status status = read_on(ready, s, q, text, n - same);
    free(text);
    return status;
}

/* The next token of the draft; *drawn false: under a grammar that takes too long. */
static peridot_status draw_next(bool *drawn, struct pd_decode_row *row, struct pd_draft *draft)
{
    struct pd_session *s = draft->session;
    row->leaves_draw = row->sequence->sampler.p.grammar != NULL;
    *drawn = !row->leaves_draw;
    PD_TRY(pd_decode_next(&s->decoder, row, 1));
    if (!row->leaves_draw) return PERIDOT_OK;
    s->draw_s = 0;
    peridot_status status = pd_session_sample_some(drawn, &row->token, s, row->sequence);
    draft->draw_s += s->draw_s;
    return status;
}

/* By the model's own chain, and from its place in the random numbers: what the model would draw if both agreed. */
static peridot_status draw_draft(struct pd_draft_rows *rows, struct pd_draft *draft, uint32_t n_most)
{
    const struct pd_sequence *q = rows->sequence;
    const peridot_grammar *grammar = q->sampler.p.grammar;
    struct pd_decode_row row = {.sequence = draft->sequence, .token = rows->tokens[0]};
    bool ready, drawn = true;
    if (q->pos + n_most > draft->session->ctx) return PERIDOT_OK;
    if (grammar && grammar->spellings->n_pieces < draft->session->model->n_pieces) return PERIDOT_OK;
    PD_TRY(follow_text(&ready, draft, q->tokens, q->pos));
    if (!ready) return PERIDOT_OK;
    draft->sequence->sampler = q->sampler;
    draft->sequence->sampler.dry = NULL;   /* it is the other sequence's */
    while (rows->n <= n_most && draft->draw_s < DRAW_SECONDS) {
        row.n_more = 1 + n_most - rows->n;
        PD_TRY(draw_next(&drawn, &row, draft));
        if (!drawn) break;
        rows->tokens[rows->n++] = row.token;
    }
    return PERIDOT_OK;
}

peridot_status pd_draft_make(struct pd_draft_rows *rows, struct pd_draft *draft, uint32_t n_most)
{
    rows->n = 1;
    draft->draw_s = 0;
    if (n_most == 0 || draft->pause || (draft->automatic && draft->step_s <= 0)) return PERIDOT_OK;
    if (draft->session) {
        peridot_status status = draw_draft(rows, draft, n_most);
        pd_next_mask_drop(&draft->sequence->next_mask);
        pd_sampler_set(&draft->sequence->sampler, NULL);   /* what it points to is the other sequence's */
        /* its cache is full, or an id is none of its own: there is no draft */
        return status == PERIDOT_ERROR_MEMORY || status == PERIDOT_ERROR_ARGUMENT ? PERIDOT_OK : status;
    }
    if (draft->drafter) return pd_drafter_guess(rows, draft->drafter, n_most);
    struct pd_sequence *q = rows->sequence;
    q->tokens[q->pos] = rows->tokens[0];   /* for which there is room */
    rows->n += pd_draft_lookup(rows->tokens + 1, n_most, q->tokens, q->pos + 1);
    return PERIDOT_OK;
}

void pd_draft_took(struct pd_draft *draft, double seconds, uint32_t n_drafted, uint32_t n_accepted)
{
    draft->n_drafted += n_drafted;
    draft->n_accepted += n_accepted;
    if (n_drafted == 0) {
        bool slower = draft->step_s > 0 && seconds > draft->step_s;   /* the first step may have prepared something */
        draft->step_s = slower ? draft->step_s + RECENT_STEP * (seconds - draft->step_s) : seconds;
        draft->n_since = 0;
        draft->pause -= draft->pause > 0;
        return;
    }
    double gain = draft->step_s * (1 + n_accepted) / seconds, before = draft->gain > 0 ? draft->gain : HOPED_GAIN;
    draft->grows = n_accepted == n_drafted;
    draft->gain = before + RECENT_DRAFT * (gain - before);
    if (draft->grows) draft->next_pause = FIRST_PAUSE;
    if (!draft->automatic) return;
    if (++draft->n_since >= REMEASURE) draft->pause = 1;
    if (draft->gain > 1) return;
    draft->gain = 0;
    draft->pause = (uint32_t)pd_max(draft->next_pause, FIRST_PAUSE);
    draft->next_pause = (uint32_t)pd_min(2 * draft->pause, LONGEST_PAUSE);
}

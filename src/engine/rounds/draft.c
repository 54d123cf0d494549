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
 * How long drafts are is measured. If a guess was right in p of the cases lately, provided that those before it were, a
 * draft of d guesses gives 1 + p + ... + p^d tokens. A pass of R rows takes T(R), and a guess takes c to make. So the
 * rows of a round go, one by one, to the sequence whose next guess is most likely, and of all numbers of rows that is
 * taken which gives most tokens per second:  sum (1 + p + ... + p^d) / (T(R) + c sum d). Of what was looked up, p is
 * known for each length of the text that agreed, also from guesses that were not evaluated, as looking costs little.
 * T depends on the device: on llvmpipe, with Gemma 3 1B, 4 rows take 1.9 times as long as one, 8 take 2.9 times. */
#include "engine/rounds/rounds.h"

#include "base/base.h"
#include "grammar/grammar.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LOOKUP_MIN 2       /* tokens that must agree */
#define LOOKUP_MAX 8
#define LOOKUP_PLACES 256  /* that are compared at most, the latest ones */
#define LOOKUP_HEADS (1 << 14)
#define RECENT 0.125       /* part that the last guess has in how often guesses are right lately */
#define RECENT_TIME 0.25   /* and the last round in how long such rounds take, where it was slower */
#define EXPECTED 0.8       /* of a model's guesses that are right, before any was made, and after a pause */
#define EXPECTED_ROW 0.1   /* part of a step that a further row takes, before more rows than one were measured */
#define FIRST_ROWS 2       /* that are tried then */
#define REMEASURE 32       /* rounds with drafts after which one without is timed again */
#define FORGET 512         /* rounds after which a time counts for nothing: contexts have grown, others compute, too */
#define FIRST_PAUSE 16     /* steps without drafts after some that did not pay */
#define LONGEST_PAUSE 128
#define DRAW_SECONDS 0.005 /* that a draft's draws under a grammar may take */

/* ---- what followed before ---- */

/* Places of a text by the two tokens before them, so that a step looks at few of them however long the text is. */
struct pd_draft_index {
    uint32_t n;                    /* places below it are in */
    uint32_t capacity;
    uint32_t heads[LOOKUP_HEADS];  /* the latest place of each hash; 0: none */
    uint32_t before[];             /* [capacity]: the place before it of the same hash */
};

static uint32_t *head_of(struct pd_draft_index *x, const int32_t *after)
{
    uint32_t hash = (uint32_t)after[-1] * 2654435761u ^ (uint32_t)after[-2] * 2246822519u;
    return &x->heads[hash >> 16 & (LOOKUP_HEADS - 1)];
}

/* Brings it to n tokens; false: there is no memory. */
static bool index_text(struct pd_draft_index **at, const int32_t *tokens, uint32_t n)
{
    struct pd_draft_index *x = *at;
    if (!x || x->capacity < n) {
        uint32_t capacity = (uint32_t)pd_max(2 * n, 1024);
        x = realloc(x, sizeof *x + capacity * sizeof *x->before);
        if (!x) return false;
        if (!*at) x->n = UINT32_MAX;
        x->capacity = capacity;
        *at = x;
    }
    if (x->n > n) {   /* the text is another one */
        memset(x->heads, 0, sizeof x->heads);
        x->n = 2;
    }
    for (; x->n < n; x->n++) {
        uint32_t *head = head_of(x, tokens + x->n);
        x->before[x->n] = *head;
        *head = x->n;
    }
    return true;
}

uint32_t pd_draft_lookup(int32_t *out, uint32_t *n_same, uint32_t n_most, struct pd_draft_index **index,
                         const int32_t *tokens, uint32_t n)
{
    uint32_t best = LOOKUP_MIN - 1, after = n, left = LOOKUP_PLACES;
    *n_same = best;
    if (n <= LOOKUP_MIN || !index_text(index, tokens, n)) return 0;
    for (uint32_t end = *head_of(*index, tokens + n); end && left && best < LOOKUP_MAX; left--) {
        uint32_t same = 0;   /* tokens before it */
        while (same < LOOKUP_MAX && same < end && tokens[end - 1 - same] == tokens[n - 1 - same]) same++;
        if (same > best) after = end;
        best = (uint32_t)pd_max(best, same);
        end = (*index)->before[end];
    }
    *n_same = best;
    if (after == n) return 0;
    for (uint32_t i = 0; i < n_most; i++) out[i] = after + i < n ? tokens[after + i] : out[after + i - n];
    return n_most;
}

void pd_draft_end(struct pd_draft *draft)
{
    free(draft->index);
    draft->index = NULL;
}

static bool looks_up(const struct pd_draft *draft) { return !draft->session && !draft->drafter; }

/* Of guesses after a text of so many tokens that agreed: 2 or 3, up to 7, more. A model's are all of one kind. */
static uint32_t kind_of(uint32_t n_same) { return n_same < 4 ? 0 : n_same < LOOKUP_MAX ? 1 : 2; }

/* ---- how often guesses are right ---- */

void pd_draft_begin(struct pd_draft *draft)
{
    static const double expected[PD_DRAFT_KINDS] = {0.3, 0.6, 0.8};
    for (uint32_t i = 0; i < PD_DRAFT_KINDS; i++) draft->right[i] = looks_up(draft) ? expected[i] : EXPECTED;
}

/* After a pause what is expected of a model soon gives way to what is seen. */
static void count_guess(struct pd_draft *draft, uint32_t kind, bool right)
{
    double part = looks_up(draft) ? RECENT : fmax(RECENT, 1.0 / (draft->n_since + 3));
    draft->right[kind] += part * (right - draft->right[kind]);
}

void pd_draft_watch(struct pd_draft *draft, const struct pd_sequence *q, int32_t next)
{
    int32_t guess = -1;
    uint32_t n_same;
    if (!draft->automatic || !looks_up(draft)) return;
    if (!pd_draft_lookup(&guess, &n_same, 1, &draft->index, q->tokens, q->pos)) return;
    count_guess(draft, kind_of(n_same), guess == next);
    if (guess == next && kind_of(n_same) > 0) draft->pause = draft->next_pause = 0;
}

static void begin_pause(struct pd_draft *draft)
{
    draft->pause = (uint32_t)pd_max(draft->next_pause, FIRST_PAUSE);
    draft->next_pause = (uint32_t)pd_min(2 * draft->pause, LONGEST_PAUSE);
    draft->n_since = 0;
}

void pd_draft_took(struct pd_draft *draft, uint32_t n_drafted, uint32_t n_accepted)
{
    draft->n_drafted += n_drafted;
    draft->n_accepted += n_accepted;
    for (uint32_t i = 0; i < n_accepted; i++) count_guess(draft, draft->kind, true);
    if (n_accepted < n_drafted) count_guess(draft, draft->kind, false);
    if (n_drafted) {
        if (++draft->n_since == REMEASURE) draft->next_pause = 0;
    } else if (draft->pause && --draft->pause == 0 && !looks_up(draft)) {
        draft->right[0] = fmax(draft->right[0], EXPECTED);
    }
}

/* ---- how long rounds take ---- */

static bool is_known(const struct pd_draft_times *t, uint32_t n_rows, uint32_t age)
{
    return t->seconds[n_rows] > 0 && t->n_rounds - t->at[n_rows] <= age;
}

void pd_draft_timed(struct pd_draft_times *t, uint32_t n_rows, uint32_t n_guesses, double guesses_s, double pass_s)
{
    double *known = &t->seconds[n_rows], each = n_guesses ? guesses_s / n_guesses : 0;
    bool slower = is_known(t, n_rows, FORGET) && pass_s > *known;   /* the first may have prepared something */
    *known += (slower ? RECENT_TIME : 1) * (pass_s - *known);
    if (n_guesses) t->guess_s += (each > t->guess_s && t->guess_s > 0 ? RECENT_TIME : 1) * (each - t->guess_s);
    t->at[n_rows] = t->n_rounds;
}

/* Between two numbers of rows that were measured, or above the largest, on a line. `least` was measured. */
static double time_of(const struct pd_draft_times *t, uint32_t least, uint32_t n_rows)
{
    uint32_t below = n_rows, above = n_rows;
    while (!is_known(t, below, FORGET)) below--;   /* ends at `least` */
    while (above < PD_MAX_SEQUENCES && !is_known(t, above, FORGET)) above++;
    double a = t->seconds[below], slope = EXPECTED_ROW * a;
    if (is_known(t, above, FORGET) && above > below) slope = (t->seconds[above] - a) / (above - below);
    else if (below > least) slope = fmax(a - t->seconds[least], 0) / (below - least);
    return a + slope * (n_rows - below);
}

/* Rows of a round that may be tried: twice as many as were measured. */
static uint32_t most_rows(const struct pd_draft_times *t, uint32_t least, uint32_t n_rows)
{
    uint32_t most = PD_MAX_SEQUENCES;
    while (most > least && !is_known(t, most, FORGET)) most--;
    return (uint32_t)pd_min(n_rows, most > least ? 2 * most : least + FIRST_ROWS);
}

/* ---- rows of a round ---- */

/* The step whose next guess is most likely; n: none has room. */
static uint32_t find_likely(const double *next, const uint32_t *depth, const uint32_t *most, uint32_t n)
{
    uint32_t best = n;
    for (uint32_t i = 0; i < n; i++)
        if (depth[i] < most[i] && (best == n || next[i] > next[best])) best = i;
    return best;
}

/* Adds to best [n], the drafts that are to be made in any case, those that pay. Gives the sum of all. */
static uint32_t find_best(uint32_t *best, struct pd_draft *const *drafts, const uint32_t *most, uint32_t n,
                          uint32_t n_rows, const struct pd_draft_times *t)
{
    uint32_t depth[PD_MAX_SEQUENCES], n_best = 0;
    double next[PD_MAX_SEQUENCES], tokens = n;
    for (uint32_t i = 0; i < n; i++) {
        const double right = drafts[i]->right[drafts[i]->kind];
        next[i] = right;
        for (uint32_t k = 0; k < best[i]; k++, next[i] *= right) tokens += next[i];
        n_best += depth[i] = best[i];
    }
    const uint32_t limit = most_rows(t, n, n_rows);
    double rate = tokens / (time_of(t, n, n + n_best) + t->guess_s * n_best);
    for (uint32_t k = n_best + 1; n + k <= limit; k++) {
        uint32_t i = find_likely(next, depth, most, n);
        if (i == n) break;
        tokens += next[i];
        next[i] *= drafts[i]->right[drafts[i]->kind];
        depth[i]++;
        double now = tokens / (time_of(t, n, n + k) + t->guess_s * k);
        if (now <= rate) continue;
        rate = now;
        n_best = k;
        memcpy(best, depth, n * sizeof *best);
    }
    return n_best;
}

uint32_t pd_draft_share(uint32_t *most, struct pd_draft *const *drafts, uint32_t n, uint32_t n_rows,
                        const struct pd_draft_times *t)
{
    uint32_t best[PD_MAX_SEQUENCES], n_fixed = 0;
    for (uint32_t i = 0; i < n; i++) n_fixed += best[i] = drafts[i]->automatic ? 0 : most[i];
    const bool timed = is_known(t, n, REMEASURE);   /* else a step is, without drafts that pay or not */
    uint32_t n_best = timed ? find_best(best, drafts, most, n, n_rows, t) : n_fixed;
    for (uint32_t i = 0; i < n; i++) {
        if (timed && n_best == n_fixed && drafts[i]->automatic && most[i]) begin_pause(drafts[i]);
        most[i] = best[i];
    }
    return n_best;
}

/* ---- what a draft model draws ---- */

/* What it reads of a token: it sees no images. */
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

uint32_t pd_draft_look(struct pd_draft_rows *rows, struct pd_draft *draft, uint32_t n_most)
{
    struct pd_sequence *q = rows->sequence;
    uint32_t n_same;
    draft->kind = 0;
    if (!looks_up(draft) || n_most == 0) return n_most;
    q->tokens[q->pos] = rows->tokens[0];   /* for which there is room */
    uint32_t n = pd_draft_lookup(rows->tokens + 1, &n_same, n_most, &draft->index, q->tokens, q->pos + 1);
    draft->kind = kind_of(n_same);
    return n;
}

peridot_status pd_draft_make(struct pd_draft_rows *rows, struct pd_draft *draft, uint32_t n)
{
    rows->n = 1;
    draft->draw_s = 0;
    if (n == 0) return PERIDOT_OK;
    if (draft->drafter) return pd_drafter_guess(rows, draft->drafter, n);
    if (!draft->session) {
        rows->n += n;   /* they were looked up */
        return PERIDOT_OK;
    }
    peridot_status status = draw_draft(rows, draft, n);
    pd_next_mask_drop(&draft->sequence->next_mask);
    pd_sampler_set(&draft->sequence->sampler, NULL);   /* what it points to is the other sequence's */
    /* its cache is full, or an id is none of its own: there is no draft */
    return status == PERIDOT_ERROR_MEMORY || status == PERIDOT_ERROR_ARGUMENT ? PERIDOT_OK : status;
}

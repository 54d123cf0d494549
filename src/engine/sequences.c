/* The sequences of a session: which of them is selected, and steps that take the next token of each. A step of m sequences is
 * recorded once for each m and replayed; those that sit out are not in it. */
#include "engine/session_private.h"

#include "base/num.h"

#include <stdlib.h>
#include <string.h>

/* ---- creating ---- */

/* m tokens of as many sequences: their logits go to the rows from 1 on, and the best of them to the host. */
static peridot_status record_next(struct pd_session *s, struct pd_commands *commands, uint32_t m)
{
    struct pd_recorder r = {.gpu = s->model->gpu, .variants = s->model->variants, .packed = s->scratch.packed,
        .commands = commands};
    struct pd_pass pass = pd_session_make_pass(s, &r, &s->input, m);
    pass.apart = true;
    PD_TRY(pd_commands_begin(commands));
    pd_session_forward(s, &pass, true, 1);
    peridot_status status = pd_commands_end(commands);
    return r.status != PERIDOT_OK ? r.status : status;
}

peridot_status pd_sequences_create(struct pd_session *s)
{
    for (uint32_t i = 1; i < s->n_sequences; i++) {
        s->sequences[i].history = malloc(sizeof *s->history * s->ctx);
        if (!s->sequences[i].history) return pd_fail_alloc(sizeof *s->history * s->ctx, "tokens");
    }
    for (uint32_t i = 0; s->n_sequences > 1 && i < s->n_sequences; i++) {
        PD_TRY(pd_commands_create(&s->next[i], s->model->gpu));
        PD_TRY(record_next(s, s->next[i], i + 1));
    }
    return PERIDOT_OK;
}

void pd_sequences_free(struct pd_session *s)
{
    for (uint32_t i = 0; i < s->n_sequences; i++) {
        pd_commands_free(s->next[i]);
        if (i != s->selected) free(s->sequences[i].history);
    }
}

/* ---- selecting ---- */

static void put_aside(struct pd_session *s)
{
    s->sequences[s->selected] = (struct pd_sequence){.pos = s->pos, .result = s->result, .history = s->history,
        .has_logits = s->has_logits, .sampler = s->sampler};
}

static void take_up(struct pd_session *s, uint32_t sequence)
{
    const struct pd_sequence *q = &s->sequences[sequence];
    s->selected = sequence;
    s->pos = q->pos;
    s->result = q->result;
    s->history = q->history;
    s->has_logits = q->has_logits;
    s->sampler = q->sampler;
}

/* Moves the results of a sequence that is not to be in the next pass to where none writes. */
static peridot_status keep_result(struct pd_session *s, uint32_t sequence)
{
    struct pd_sequence *q = &s->sequences[sequence];
    struct pd_candidate *best = s->best.host;
    uint32_t to = 1 + s->n_sequences + sequence;
    uint64_t row_size = (uint64_t)s->logits.stride * sizeof(float);
    if (!q->has_logits || q->result == to) return PERIDOT_OK;
    PD_TRY(pd_commands_begin(s->batch));
    pd_copy(s->batch, s->logits_span, to * row_size, s->logits_span, q->result * row_size, row_size);
    PD_TRY(pd_commands_end(s->batch));
    PD_TRY(pd_commands_run(s->batch));
    memcpy(best + (size_t)to * PD_TOPK, best + (size_t)q->result * PD_TOPK, sizeof *best * PD_TOPK);
    q->result = to;
    return PERIDOT_OK;
}

/* The next pass over one sequence, or a step of it, may write to the row, whichever sequence that is. */
static bool is_overwritten(const struct pd_session *s, uint32_t row) { return row == 0 || row >= s->n_results - PD_N_SLOTS; }

peridot_status pd_session_select(struct pd_session *s, uint32_t sequence)
{
    if (sequence >= s->n_sequences)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "there is no sequence %u in a session of %u", sequence, s->n_sequences);
    if (sequence == s->selected) return PERIDOT_OK;
    pd_session_forget(s);
    put_aside(s);
    if (is_overwritten(s, s->result)) PD_TRY(keep_result(s, s->selected));
    take_up(s, sequence);
    return PERIDOT_OK;
}

/* ---- a step of several ---- */

static bool is_in(const int32_t *tokens, uint32_t sequence) { return tokens[sequence] != PERIDOT_NO_TOKEN; }

static peridot_status check_next(const struct pd_session *s, const int32_t *tokens)
{
    uint32_t vocab_size = s->model->weights.vocab_size;
    for (uint32_t i = 0; i < s->n_sequences; i++) {
        if (!is_in(tokens, i)) continue;
        if (tokens[i] < 0 || (uint32_t)tokens[i] >= vocab_size)
            return pd_fail(PERIDOT_ERROR_ARGUMENT, "token id %d of sequence %u is not below the vocabulary's %u", (int)tokens[i], i,
                           vocab_size);
        if (s->sequences[i].pos == s->ctx)
            return pd_fail(PERIDOT_ERROR_ARGUMENT, "sequence %u has taken all of its %u positions", i, s->ctx);
    }
    return PERIDOT_OK;
}

/* What the recorded commands read. Returns the number of sequences that have a token. */
static uint32_t write_next(struct pd_session *s, const int32_t *tokens)
{
    uint32_t m = 0;
    for (uint32_t i = 0; i < s->n_sequences; i++) {
        uint32_t pos = s->sequences[i].pos;
        if (!is_in(tokens, i)) continue;
        pd_session_write_token(s, &s->input, m++, tokens[i], (struct pd_row){i, pos, 0});
    }
    pd_session_write_splits(s, &s->input, m);
    return m;
}

/* Results that are where a step writes: of sequences that sit out they are kept, of the others there will be new ones. */
static peridot_status clear_results(struct pd_session *s, const int32_t *tokens)
{
    for (uint32_t i = 0; i < s->n_sequences; i++) {
        struct pd_sequence *q = &s->sequences[i];
        if (is_in(tokens, i)) q->has_logits = false;
        else if (q->result >= 1 && q->result <= s->n_sequences) PD_TRY(keep_result(s, i));
    }
    return PERIDOT_OK;
}

static void accept_next(struct pd_session *s, const int32_t *tokens)
{
    uint32_t m = 0;
    for (uint32_t i = 0; i < s->n_sequences; i++) {
        struct pd_sequence *q = &s->sequences[i];
        if (!is_in(tokens, i)) continue;
        q->history[q->pos++] = tokens[i];
        q->result = 1 + m++;
        q->has_logits = s->model->weights.n_outputs != 0;
        pd_sampler_accept(&q->sampler, tokens[i]);
    }
}

static peridot_status eval_next(struct pd_session *s, const int32_t *tokens)
{
    PD_TRY(check_next(s, tokens));
    for (uint32_t i = 0; i < s->n_sequences; i++)
        if (is_in(tokens, i)) PD_TRY(pd_session_extend(s, i, s->sequences[i].pos + 1));
    PD_TRY(clear_results(s, tokens));
    uint32_t m = write_next(s, tokens);
    if (m == 0) return PERIDOT_OK;
    PD_TRY(pd_commands_run(s->next[m - 1]));
    accept_next(s, tokens);
    return PERIDOT_OK;
}

peridot_status pd_session_eval_next(struct pd_session *s, const int32_t *tokens)
{
    PD_TRY(pd_gpu_check(s->model->gpu));
    if (s->n_sequences == 1) return pd_session_eval(s, tokens, is_in(tokens, 0), NULL);
    pd_session_forget(s);
    put_aside(s);
    peridot_status status = eval_next(s, tokens);
    take_up(s, s->selected);
    return status;
}

static peridot_status run_next(struct pd_session *s, struct pd_commands *commands)
{
    const int32_t tokens[PD_MAX_SEQUENCES] = {0};
    PD_TRY(check_next(s, tokens));
    PD_TRY(clear_results(s, tokens));
    for (uint32_t i = 0; i < s->n_sequences; i++) PD_TRY(pd_session_extend(s, i, s->sequences[i].pos + 1));
    write_next(s, tokens);
    PD_TRY(record_next(s, commands, s->n_sequences));
    PD_TRY(pd_commands_run(commands));
    return pd_commands_run(commands);
}

peridot_status pd_session_run_next(struct pd_session *s, struct pd_commands *commands)
{
    if (s->n_sequences == 1) return pd_session_run_pass(s, commands, 1);
    pd_session_forget(s);
    put_aside(s);
    peridot_status status = run_next(s, commands);
    take_up(s, s->selected);
    return status;
}

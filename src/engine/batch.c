/* Several texts in one submit: each stands at its own place in the cache, and attention sees only keys of its own text. */
#include "engine/session_private.h"

#include "base/num.h"

#include <stdlib.h>

static peridot_status check_batch(const struct pd_session *s, const peridot_sequence *sequences, size_t n, const peridot_batch_params *p)
{
    uint64_t total = 0;
    if (p->logits) PD_TRY(pd_session_check_head(s));
    if (s->pos != 0) return pd_fail(PERIDOT_ERROR_ARGUMENT, "a batch needs a session without tokens, and this has %u", s->pos);
    for (size_t i = 0; i < n; i++) {
        PD_TRY(pd_session_check_tokens(s, sequences[i].tokens, sequences[i].n));
        total += sequences[i].n;
    }
    if (total > s->chunk) return pd_fail(PERIDOT_ERROR_ARGUMENT, "%llu tokens of %zu texts do not fit a chunk of %u", (unsigned long long)total, n, s->chunk);
    return PERIDOT_OK;
}

/* The rows of a pass that are to be reported. */
struct batch {
    uint32_t n_tokens, n_rows;
    uint32_t *text_of;     /* [n_tokens] */
    uint32_t *rows;        /* [n_rows] below n_tokens, in rising order */
};

static void write_batch(struct pd_session *s, struct batch *b, const peridot_sequence *sequences, size_t n_sequences, bool last)
{
    for (size_t i = 0; i < n_sequences; i++) {
        uint32_t first = b->n_tokens;
        for (size_t j = 0; j < sequences[i].n; j++, b->n_tokens++) {
            b->text_of[b->n_tokens] = (uint32_t)i;
            pd_session_write_token(s, &s->input, b->n_tokens, sequences[i].tokens[j], (struct pd_row){s->selected, (uint32_t)j, first});
            if (!last || j + 1 == sequences[i].n) b->rows[b->n_rows++] = b->n_tokens;
        }
    }
}

/* Calls back for row `row` of the pass, which is row `from` of a buffer. */
static peridot_status report_batch_row(struct pd_session *s, const struct batch *b, peridot_batch_row call, void *user, struct pd_span span,
                                       struct pd_rows buffer, uint32_t from, uint32_t width, uint32_t row)
{
    const struct pd_place *places = s->input.places.host;
    PD_TRY(pd_span_read(s->model->gpu, s->row, span, (uint64_t)from * buffer.stride * sizeof(float), width * sizeof(float)));
    pd_session_add_bias(s, span);
    if (call(user, b->text_of[row], places[row].pos, s->row, width)) return PERIDOT_OK;
    return pd_fail(PERIDOT_CANCELLED, "stopped by the caller in text %u", b->text_of[row]);
}

static peridot_status run_batch(struct pd_session *s, const struct batch *b, const peridot_batch_params *p)
{
    s->has_logits = false;
    PD_TRY(pd_session_record_pass(s, s->batch, b->n_tokens, false));
    PD_TRY(pd_commands_run(s->batch));
    for (uint32_t i = 0; p->hidden && i < b->n_rows; i++)
        PD_TRY(report_batch_row(s, b, p->hidden, p->user, s->normed_span, s->scratch.normed, b->rows[i], s->model->config.d_model, b->rows[i]));
    for (uint32_t begin = 0; p->logits && begin < b->n_rows; begin += PD_LOGITS_ROWS) {
        uint32_t n = (uint32_t)pd_min(PD_LOGITS_ROWS, b->n_rows - begin);
        PD_TRY(pd_session_record_rows(s, b->rows + begin, n));
        PD_TRY(pd_commands_run(s->batch));
        for (uint32_t i = 0; i < n; i++)
            PD_TRY(report_batch_row(s, b, p->logits, p->user, s->logits_span, s->logits, s->n_results + i, s->model->weights.n_outputs, b->rows[begin + i]));
    }
    return PERIDOT_OK;
}

peridot_status pd_session_eval_batch(struct pd_session *s, const peridot_sequence *sequences, size_t n, const peridot_batch_params *params)
{
    PD_TRY(pd_gpu_check(s->model->gpu));
    PD_TRY(check_batch(s, sequences, n, params));
    pd_session_forget(s);
    uint32_t *text_of = malloc(2 * sizeof *text_of * s->chunk);
    if (!text_of) return pd_fail_alloc(2 * sizeof *text_of * s->chunk, "batch");
    struct batch b = {.text_of = text_of, .rows = text_of + s->chunk};
    peridot_status status = pd_session_extend(s, s->selected, (uint32_t)pd_min(s->chunk, s->ctx));
    if (status == PERIDOT_OK) write_batch(s, &b, sequences, n, params->last);
    if (status == PERIDOT_OK && b.n_tokens) status = run_batch(s, &b, params);
    free(text_of);
    return status;
}

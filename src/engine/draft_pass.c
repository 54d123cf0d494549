#include "engine/draft_pass.h"

#include "engine/results.h"

#include <string.h>

peridot_status pd_draft_pass_create(struct pd_draft_pass *p, struct pd_workspace *w)
{
    *p = (struct pd_draft_pass){.w = w};
    PD_TRY(pd_input_create(&p->input, w, w->n_decode, (struct pd_span){0}));
    PD_TRY(pd_heap_alloc(&p->best, w->host_heap, sizeof(struct pd_candidate) * PD_TOPK * w->n_decode, "candidates"));
    return pd_commands_create(&p->commands, w->model->gpu);
}

void pd_draft_pass_free(struct pd_draft_pass *p) { pd_commands_free(p->commands); }

static peridot_status record(struct pd_draft_pass *p, uint32_t n)
{
    struct pd_recorder r = pd_workspace_recorder(p->w, p->commands);
    struct pd_pass pass = pd_workspace_pass(p->w, &p->input, &r, n);
    const struct pd_rows logits = pd_rows_at(p->w->logits, pd_decoded_row(p->w, 0), 0);
    pass.decode = pass.consecutive = true;
    p->n_recorded = 0;
    PD_TRY(pd_commands_begin(p->commands));
    pd_forward(&pass, &logits);
    pd_workspace_select(p->w, &r, pd_decoded_row(p->w, 0), n, p->best.address);
    peridot_status status = pd_commands_end(p->commands);
    PD_TRY(r.status != PERIDOT_OK ? r.status : status);
    p->n_recorded = n;
    return PERIDOT_OK;
}

peridot_status pd_draft_evaluate(struct pd_draft_pass *p, struct pd_decoder *d, struct pd_draft_rows *rows, uint32_t n)
{
    uint32_t n_rows = 0;
    pd_decoder_discard(d);
    PD_TRY(pd_decoder_wait(d));   /* discarded steps may yet read and write what this one reads */
    for (uint32_t i = 0; i < n; i++) {
        rows[i].first = n_rows;
        const struct pd_sequence *q = rows[i].sequence;
        for (uint32_t k = 0; k < rows[i].n; k++, n_rows++) {
            pd_input_write(&p->input, p->w, n_rows, &q->pages, q->pos + k);
            ((int32_t *)p->input.tokens.host)[n_rows] = rows[i].tokens[k];
        }
    }
    pd_input_write_grids(&p->input, p->w, n_rows);
    if (p->n_recorded != n_rows) PD_TRY(record(p, n_rows));
    d->n_steps++;   /* it overwrites logits */
    return pd_commands_run(p->commands);
}

peridot_status pd_draft_take(int32_t *next, struct pd_draft_pass *p, const struct pd_decoder *d,
                             const struct pd_draft_rows *rows, uint32_t i)
{
    struct pd_sequence *q = rows->sequence;
    pd_sequence_append(q, &rows->tokens[i], 1);
    q->logits = PD_LOGITS_DECODED;
    q->decoded_row = rows->first + i;
    q->decoded_step = d->n_steps;
    memcpy(q->best, (const struct pd_candidate *)p->best.host + q->decoded_row * PD_TOPK, sizeof q->best);
    bool all = pd_draw_needs_logits(p->w->model, q);
    if (all) PD_TRY(pd_workspace_read_logits(p->w, pd_decoded_row(p->w, q->decoded_row), 1));
    return pd_draw(next, p->w, q, all ? p->w->host_rows : NULL);
}

#include "engine/draft_pass.h"

peridot_status pd_draft_pass_create(struct pd_draft_pass *p, struct pd_workspace *w)
{
    *p = (struct pd_draft_pass){.w = w};
    PD_TRY(pd_input_create(&p->input, w, w->n_decode, (struct pd_span){0}));
    return pd_commands_create(&p->commands, w->model->gpu);
}

void pd_draft_pass_free(struct pd_draft_pass *p) { pd_commands_free(p->commands); }

static peridot_status record(struct pd_draft_pass *p, uint32_t n)
{
    struct pd_recorder r = pd_workspace_recorder(p->w, p->commands);
    struct pd_forward_args pass = pd_workspace_forward_args(p->w, &p->input, &r, n);
    uint32_t row = pd_decoded_row(p->w, 0);
    const struct pd_rows logits = pd_rows_at(p->w->logits, row, 0);
    pass.n_decode = n;
    pass.consecutive = true;
    p->n_recorded = 0;
    PD_TRY(pd_commands_begin(p->commands));
    pd_forward(&pass, &logits);
    pd_workspace_select(p->w, &r, row, n, pd_best_address(p->w, row));
    peridot_status status = pd_commands_end(p->commands);
    PD_TRY(r.status != PERIDOT_OK ? r.status : status);
    p->n_recorded = n;
    return PERIDOT_OK;
}

peridot_status pd_draft_evaluate(struct pd_draft_pass *p, struct pd_decoder *d, struct pd_draft_rows *rows, uint32_t n)
{
    uint32_t n_rows = 0;
    PD_TRY(pd_decoder_yield(d));
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
    return pd_commands_run(p->commands);
}

peridot_status pd_draft_take(int32_t *next, const struct pd_decoder *d, const struct pd_draft_rows *rows, uint32_t i)
{
    return pd_decoder_take(next, d, rows->sequence, rows->tokens[i], rows->first + i);
}

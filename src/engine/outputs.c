#include "engine/outputs.h"

#include "base/num.h"
#include "engine/results.h"

/* Rows that were read to the host, of positions from pos on. */
struct host_rows {
    const char *what;    /* they are */
    pd_row_call call;
    uint32_t pos, n, width;
};

static peridot_status hand_out_rows(const struct pd_workspace *w, const struct host_rows *r, struct pd_sequence *q,
                                    void *user)
{
    for (uint32_t i = 0; i < r->n; i++) {
        const float *row = w->host_rows + (size_t)i * r->width;
        PD_TRY(pd_check_finite(w->model, r->what, r->pos + i, row, r->width));
        if (!r->call(user, q, r->pos + i, row, r->width))
            return pd_fail(PERIDOT_CANCELLED, "stopped by the caller at position %u", r->pos + i);
    }
    return PERIDOT_OK;
}

peridot_status pd_outputs_hidden(const struct pd_row_outputs *o, struct pd_workspace *w, struct pd_sequence *q,
                                 uint32_t pos, uint32_t row, uint32_t n)
{
    for (uint32_t i = 0, some; o->hidden && i < n; i += some) {
        some = (uint32_t)pd_min(PD_LOGITS_ROWS, n - i);
        PD_TRY(pd_workspace_read_hidden(w, row + i, some));
        const struct host_rows r = {"hidden states", o->hidden, pos + i, some, w->model->config.d_model};
        PD_TRY(hand_out_rows(w, &r, q, o->user));
    }
    return PERIDOT_OK;
}

peridot_status pd_outputs_logits(const struct pd_row_outputs *o, struct pd_workspace *w, struct pd_sequence *q,
                                 uint32_t pos, uint32_t row, uint32_t n)
{
    if (!o->logits || n == 0) return PERIDOT_OK;
    PD_TRY(pd_workspace_read_logits(w, row, n));
    const struct host_rows r = {"logits", o->logits, pos, n, w->model->weights.n_outputs};
    return hand_out_rows(w, &r, q, o->user);
}

/* The row of a prompt's last token is the result that is there already: callers see the very numbers that are sampled
 * from. */
peridot_status pd_outputs_run(const struct pd_row_outputs *o, const struct pd_pass *pass, const struct pd_run *run)
{
    struct pd_sequence *q = run->sequence;
    bool has_last = run->ends || run->kind == PD_RUN_STEP;
    uint32_t skip = o->first > run->pos ? o->first - run->pos : 0, n_computed = run->n - (has_last ? 1 : 0);
    if (skip >= run->n) return PERIDOT_OK;
    PD_TRY(pd_outputs_hidden(o, pass->w, q, run->pos + skip, run->row + skip, run->n - skip));
    for (uint32_t m = skip, some; o->logits && m < n_computed; m += some) {
        some = (uint32_t)pd_min(PD_LOGITS_ROWS, n_computed - m);
        PD_TRY(pd_pass_compute_logits(pass, run->row + m, some));
        PD_TRY(pd_outputs_logits(o, pass->w, q, run->pos + m, pd_spare_row(pass->w), some));
    }
    return has_last ? pd_outputs_logits(o, pass->w, q, q->pos - 1, q->logits_row, 1) : PERIDOT_OK;
}

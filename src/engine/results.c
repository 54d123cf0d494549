#include "engine/results.h"

#include "base/num.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

peridot_status pd_check_head(const struct pd_model *model)
{
    if (model->config.head != PERIDOT_HEAD_NONE) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "this is a base model: it has hidden states, and no logits");
}

/* Looks for the reason, tensor by tensor: this is the end of the run anyway. */
static peridot_status fail_nonfinite(const struct pd_checkpoint *c, const char *what, uint32_t pos)
{
    for (size_t i = 0; i < pd_checkpoint_n_tensors(c); i++) {
        const struct pd_tensor *t = pd_checkpoint_tensor(c, i);
        uint64_t index;
        if (pd_tensor_find_nonfinite(t, &index))
            return pd_fail(
                PERIDOT_ERROR_FORMAT,
                "%s: tensor %s: weight %llu is not a finite number, and so the %s at position %u are not", t->file,
                t->name, (unsigned long long)index, what, pos);
    }
    return pd_fail(PERIDOT_ERROR_FORMAT,
                   "%s: the %s at position %u are not finite, though all weights are: they overflow fp32",
                   pd_checkpoint_path(c), what, pos);
}

/* topk has -3.4e38 for -infinity. */
peridot_status pd_check_finite(const struct pd_model *model, const char *what, uint32_t pos, const float *x, size_t n)
{
    bool finite = true;
    for (size_t i = 0; i < n; i++) finite &= fabsf(x[i]) < 3e38f;
    return finite ? PERIDOT_OK : fail_nonfinite(model->checkpoint, what, pos);
}

peridot_status pd_check_best(const struct pd_model *model, const struct pd_sequence *q)
{
    return pd_check_finite(model, "logits", q->pos - 1, &q->best[0].logit, 1);
}

bool pd_logits_row(uint32_t *row, const struct pd_workspace *w, const struct pd_sequence *q, uint64_t n_steps)
{
    *row = q->logits == PD_LOGITS_OWN ? pd_own_row(q) : pd_decoded_row(w, q->decoded_row);
    return q->logits == PD_LOGITS_OWN || (q->logits == PD_LOGITS_DECODED && q->decoded_step == n_steps);
}

bool pd_draw_needs_logits(const struct pd_sequence *q)
{
    uint32_t needs = pd_sampler_needs(&q->sampler);
    return needs == 0 || needs > PD_TOPK;
}

/* All candidates, best first unless the chain is yet to adjust them. */
static peridot_status draw_from_all(int32_t *token, uint32_t n, struct pd_sampler *sampler, const float *logits)
{
    struct pd_candidate *candidates = malloc(sizeof *candidates * n);
    if (!candidates) return pd_fail_alloc(sizeof *candidates * n, "candidates");
    for (uint32_t i = 0; i < n; i++)
        candidates[i] = (struct pd_candidate){logits[i] > -3.4e38f ? logits[i] : -3.4e38f, i};
    if (!pd_sampler_adjusts(sampler)) pd_candidates_sort(candidates, n);
    *token = pd_sampler_draw(sampler, candidates, n);
    free(candidates);
    return PERIDOT_OK;
}

peridot_status pd_draw(int32_t *token, const struct pd_workspace *w, struct pd_sequence *q, const float *logits)
{
    struct pd_candidate best[PD_TOPK];
    PD_TRY(pd_check_best(w->model, q));
    if (logits) return draw_from_all(token, w->model->n_pieces, &q->sampler, logits);
    memcpy(best, q->best, sizeof best);
    *token = pd_sampler_draw(&q->sampler, best, pd_min(PD_TOPK, w->model->n_pieces));
    return PERIDOT_OK;
}

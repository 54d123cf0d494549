/* What passes leave of a sequence: logits, candidates and the next token, drawn from them on the host. Nothing here
 * evaluates: where the device no longer has the logits, the session evaluates the last token again.
 *
 * A draw needs the best candidates alone, which came to the host with the pass; all logits, 1 MB of Gemma's, are read
 * where a chain may raise others, or where a grammar allows too few of the best. */
#include "base/base.h"
#include "engine/pass/pass.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

peridot_status pd_check_head(const struct pd_model *model)
{
    if (model->config.head != PERIDOT_HEAD_NONE) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "this is %s: it has hidden states, and no logits",
                   model->config.bidirectional ? "an embedding model" : "a base model");
}

peridot_status pd_check_whole(const struct pd_model *model, const char *what)
{
    if (!model->link) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s where %u ranks hold the model's layers", what,
                   model->link->host.n_ranks);
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

bool pd_has_logits(const struct pd_workspace *w, const struct pd_sequence *q)
{
    return q->logits_pass && w->written_by[q->logits_row] == q->logits_pass;
}

/* ---- drawing ---- */

/* What DRY looks at is the sampler's until the sequence changes. */
static peridot_status find_repetitions(struct pd_sequence *q, const struct pd_model *model)
{
    struct pd_sampler *s = &q->sampler;
    if (!pd_sampler_has_dry(s) || s->dry) return PERIDOT_OK;
    PD_TRY(pd_dry_find(&q->dry, &s->p, atomic_load(&model->spellings), q->tokens, q->pos));
    s->dry = &q->dry;
    return PERIDOT_OK;
}

/* The best candidates that the grammar allows, in their order: their number. */
static uint32_t find_best(struct pd_candidate out[PD_TOPK], struct pd_sequence *q, uint32_t n_pieces)
{
    uint32_t n = (uint32_t)pd_min(PD_TOPK, n_pieces), n_allowed = 0, ids[PD_TOPK];
    bool allowed[PD_TOPK];
    if (!q->sampler.p.grammar) {
        memcpy(out, q->best, n * sizeof *out);
        return n;
    }
    for (uint32_t i = 0; i < n; i++) ids[i] = q->best[i].id;
    pd_sampler_follow(&q->sampler, q->tokens, q->pos);
    pd_grammar_allows(allowed, q->sampler.p.grammar, &q->sampler.walk, ids, n);
    for (uint32_t i = 0; i < n; i++)
        if (allowed[i]) out[n_allowed++] = q->best[i];
    return n_allowed;
}

/* Goes on with the mask of where the walk is, which is finished when q->next_mask has it. */
static peridot_status make_mask(struct pd_sequence *q, uint64_t steps)
{
    const struct pd_sampler *s = &q->sampler;
    struct pd_next_mask *m = &q->next_mask;
    if (m->mask && !pd_mask_is_of(m->mask, &s->walk)) pd_next_mask_drop(m);
    return m->mask ? PERIDOT_OK : pd_grammar_mask_some(&m->mask, &m->made, &m->job, s->p.grammar, &s->walk, &steps);
}

peridot_status pd_draw_prepare(bool *ready, const struct pd_model *model, struct pd_sequence *q, uint64_t steps)
{
    struct pd_candidate best[PD_TOPK];
    *ready = true;
    if (!q->sampler.p.grammar) return PERIDOT_OK;
    PD_TRY(find_repetitions(q, model));
    uint32_t needs = pd_sampler_needs(&q->sampler), n = find_best(best, q, model->n_pieces);
    if (needs && n >= needs) return PERIDOT_OK;
    PD_TRY(make_mask(q, steps));
    *ready = q->next_mask.mask != NULL;
    return PERIDOT_OK;
}

/* Where the best are fewer than the chain needs they will still do if the grammar allows no others. A mask that cannot
 * be made fails when the token is drawn, as do repetitions that cannot be found. */
bool pd_draw_needs_logits(const struct pd_model *model, struct pd_sequence *q)
{
    struct pd_candidate best[PD_TOPK];
    if (find_repetitions(q, model) != PERIDOT_OK) return true;
    uint32_t needs = pd_sampler_needs(&q->sampler), n;
    if (!q->sampler.p.grammar) return needs == 0 || needs > PD_TOPK;
    n = find_best(best, q, model->n_pieces);
    if (needs && n >= needs) return false;
    return make_mask(q, UINT64_MAX) != PERIDOT_OK || q->next_mask.mask->n_allowed > n;
}

/* From all candidates that the grammar allows. */
static peridot_status draw_from_all(int32_t *token, uint32_t n_pieces, struct pd_sequence *q, const float *logits)
{
    uint32_t n = 0;
    bool masks = q->sampler.p.grammar != NULL;
    if (masks) PD_TRY(make_mask(q, UINT64_MAX));
    if (q->sampler.p.top_n_sigma > 0) q->sampler.deviation = pd_sampler_deviation(logits, n_pieces);
    struct pd_candidate *candidates = malloc(sizeof *candidates * n_pieces);
    if (!candidates) return pd_fail_alloc(sizeof *candidates * n_pieces, "candidates");
    for (uint32_t i = 0; i < n_pieces; i++)
        if (!masks || pd_mask_has(q->next_mask.mask, i))
            candidates[n++] = (struct pd_candidate){logits[i] > -3.4e38f ? logits[i] : -3.4e38f, i};
    if (n) *token = pd_sampler_draw(&q->sampler, candidates, n);
    free(candidates);
    return n ? PERIDOT_OK : pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the model has no logits for any token that the grammar "
                                                               "allows");
}

/* The mask is for one draw. */
peridot_status pd_draw(int32_t *token, const struct pd_workspace *w, struct pd_sequence *q, const float *logits)
{
    struct pd_candidate best[PD_TOPK];
    peridot_status status = pd_check_best(w->model, q);
    if (status == PERIDOT_OK) status = find_repetitions(q, w->model);
    if (status == PERIDOT_OK && logits) {
        if (q->sampler.p.grammar) pd_sampler_follow(&q->sampler, q->tokens, q->pos);
        status = draw_from_all(token, w->model->n_pieces, q, logits);
    } else if (status == PERIDOT_OK) {
        uint32_t n = find_best(best, q, w->model->n_pieces);
        *token = pd_sampler_draw(&q->sampler, best, n);
    }
    pd_next_mask_drop(&q->next_mask);
    return status;
}

peridot_status pd_draw_next(int32_t *token, struct pd_workspace *w, struct pd_sequence *q)
{
    bool all = pd_draw_needs_logits(w->model, q);
    if (all) PD_TRY(pd_workspace_read_logits(w, q->logits_row, 1));
    return pd_draw(token, w, q, all ? w->host_rows : NULL);
}

/* ---- outputs ---- */

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

/* ---- observed ---- */

static uint64_t sums_size(const struct pd_linear *linear)
{
    return pd_max(linear->n_experts, 1) * (linear->w.n_cols + 1ull) * sizeof(float);
}

static peridot_status results_begin(struct pd_observed *o, struct pd_model *model)
{
    PD_TRY(pd_heap_create(&o->heap, model->gpu, PD_HEAP_DEVICE, 1 << 20));
    for (uint32_t i = 0; i < model->config.n_layers; i++)
        for (int m = 0; m < PD_N_LAYER_MATRICES; m++) {
            struct pd_linear *linear = &model->weights.layers[i].linears[m];
            struct pd_span *sums = &o->sums[i * PD_N_LAYER_MATRICES + (uint32_t)m];
            if (!linear->w.n_slices) continue;
            PD_TRY(pd_heap_alloc(sums, o->heap, sums_size(linear), "sums of squares"));
            PD_TRY(pd_span_zero(model->gpu, *sums));
            linear->squares = sums->address;
        }
    return PERIDOT_OK;
}

peridot_status pd_observed_create(struct pd_observed **out, struct pd_model *model)
{
    size_t n = (size_t)model->config.n_layers * PD_N_LAYER_MATRICES;
    struct pd_observed *o = *out = calloc(1, sizeof *o);
    if (o) o->sums = calloc(n, sizeof *o->sums);
    if (!o || !o->sums) return pd_fail_alloc(n * sizeof *o->sums, "sums of squares");
    return results_begin(o, model);
}

bool pd_observed_has(const struct pd_observed *o, uint32_t layer, enum pd_layer_matrix matrix)
{
    return o->sums[layer * PD_N_LAYER_MATRICES + (uint32_t)matrix].address != 0;
}

peridot_status pd_observed_read(float *out, const struct pd_observed *o, const struct pd_model *model, uint32_t layer,
                                enum pd_layer_matrix matrix)
{
    return pd_span_read(model->gpu, out, o->sums[layer * PD_N_LAYER_MATRICES + (uint32_t)matrix], 0,
                        sums_size(&model->weights.layers[layer].linears[matrix]));
}

void pd_observed_free(struct pd_observed *o)
{
    if (!o) return;
    pd_heap_free(o->heap);
    free(o->sums);
    free(o);
}

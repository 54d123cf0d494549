#include "engine/observed.h"

#include "base/num.h"

#include <stdlib.h>

static peridot_status begin(struct pd_observed *o, struct pd_model *model)
{
    PD_TRY(pd_heap_create(&o->heap, model->gpu, PD_HEAP_DEVICE, 1 << 20));
    for (uint32_t i = 0; i < model->config.n_layers; i++)
        for (int m = 0; m < PD_N_LAYER_MATRICES; m++) {
            struct pd_linear *linear = &model->weights.layers[i].linears[m];
            struct pd_span *sums = &o->sums[i * PD_N_LAYER_MATRICES + (uint32_t)m];
            if (!linear->w.n_slices || linear->n_experts) continue;
            PD_TRY(pd_heap_alloc(sums, o->heap, linear->w.n_cols * sizeof(float), "sums of squares"));
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
    return begin(o, model);
}

bool pd_observed_has(const struct pd_observed *o, uint32_t layer, enum pd_layer_matrix matrix)
{
    return o->sums[layer * PD_N_LAYER_MATRICES + (uint32_t)matrix].address != 0;
}

peridot_status pd_observed_read(float *out, const struct pd_observed *o, const struct pd_model *model, uint32_t layer,
                                enum pd_layer_matrix matrix)
{
    uint32_t n_cols = model->weights.layers[layer].linears[matrix].w.n_cols;
    return pd_span_read(model->gpu, out, o->sums[layer * PD_N_LAYER_MATRICES + (uint32_t)matrix], 0,
                        n_cols * sizeof *out);
}

void pd_observed_free(struct pd_observed *o)
{
    if (!o) return;
    pd_heap_free(o->heap);
    free(o->sums);
    free(o);
}

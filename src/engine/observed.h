/* What a model's matrices multiply: the sums of squares of their columns' inputs, over all rows of passes that are
 * recorded after it began. Matrices of experts are left out. */
#ifndef PD_ENGINE_OBSERVED_H
#define PD_ENGINE_OBSERVED_H

#include "engine/model.h"

struct pd_observed {
    struct pd_heap *heap;
    struct pd_span *sums;      /* [n_layers][PD_N_LAYER_MATRICES]: fp32 [n_cols]; without a size where there are none */
};

/* The model has no session, and all its layers here. */
peridot_status pd_observed_create(struct pd_observed **out, struct pd_model *model);
/* out [n_cols] of the matrix; false: it is not observed. */
bool pd_observed_has(const struct pd_observed *o, uint32_t layer, enum pd_layer_matrix matrix);
peridot_status pd_observed_read(float *out, const struct pd_observed *o, const struct pd_model *model, uint32_t layer,
                                enum pd_layer_matrix matrix);
/* NULL is allowed. */
void pd_observed_free(struct pd_observed *o);

#endif

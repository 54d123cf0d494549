#include "api/sampling.h"

#include "api/params.h"

peridot_status pd_sampling_read(peridot_sampling *out, const peridot_sampling *sampling, const peridot_model *model)
{
    PD_TRY(PD_PARAMS_READ(*out, sampling));
    uint32_t n = out->grammar ? out->grammar->spellings->n_pieces : 0,
             n_model = model->vocab ? pd_tokenizer_size(model->vocab->tokenizer) : model->m.n_pieces;
    if (!out->grammar || n == n_model) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_ARGUMENT, "the grammar is for a vocabulary of %u pieces, and the model has %u", n,
                   n_model);
}

/* Structs of peridot.h that begin with their size, so that programs and libraries of different versions understand each
 * other. When one grows after a release, its size in that release is what 0 stands for. */
#include "api/api.h"
#include "base/base.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

peridot_status pd_params_read(void *to, size_t to_size, const void *from, const char *name)
{
    size_t size = 0;
    memset(to, 0, to_size);
    if (!from) return PERIDOT_OK;
    memcpy(&size, from, sizeof size);
    if (size == 0) size = to_size;
    if (size < sizeof size) return pd_fail(PERIDOT_ERROR_ARGUMENT, "%s: the struct's size is %zu", name, size);
    for (size_t i = to_size; i < size; i++)
        if (((const unsigned char *)from)[i])
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: members are set that the library's version, %s, "
                           "does not have", name, PERIDOT_VERSION);
    memcpy(to, from, (size_t)pd_min(size, to_size));
    return PERIDOT_OK;
}

void pd_result_write(void *to, const void *from, size_t from_size)
{
    size_t size;
    if (!to) return;
    memcpy(&size, to, sizeof size);
    size_t n = size ? (size_t)pd_min(size, from_size) : from_size;
    if (n > sizeof size) memcpy((char *)to + sizeof size, (const char *)from + sizeof size, n - sizeof size);
}

/* ---- sampling ---- */

static peridot_status add_suppressed(peridot_sampling *p, peridot_bias **bias, const struct pd_tokenizer *t)
{
    size_t n = p->n_bias, n_all = n + pd_tokenizer_n_suppressed(t);
    if (n_all == n) return PERIDOT_OK;
    *bias = malloc(n_all * sizeof **bias);
    if (!*bias) return pd_fail_alloc(n_all * sizeof **bias, "a sampling chain");
    if (n) memcpy(*bias, p->bias, n * sizeof **bias);
    for (uint32_t id = 0; id < pd_tokenizer_size(t); id++)
        if (pd_tokenizer_is_suppressed(t, (int32_t)id)) (*bias)[n++] = (peridot_bias){(int32_t)id, -INFINITY};
    p->bias = *bias;
    p->n_bias = n_all;
    return PERIDOT_OK;
}

/* DRY looks for its breakers in the bytes of tokens. */
static peridot_status spell_pieces(struct pd_model *m, const peridot_vocab *vocab)
{
    struct pd_spellings *spellings = atomic_load(&m->spellings);
    if (spellings || !vocab) return PERIDOT_OK;
    PD_TRY(pd_api_find_spellings(&spellings, vocab));
    atomic_store(&m->spellings, spellings);
    return PERIDOT_OK;
}

peridot_status pd_sampling_read(peridot_sampling *out, peridot_bias **bias, const peridot_sampling *sampling,
                                const peridot_tools *tools, peridot_model *model)
{
    *bias = NULL;
    PD_TRY(PD_PARAMS_READ(*out, sampling));
    if (tools && out->grammar)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "a reply can have tools or a grammar, and not both");
    if (tools) out->grammar = tools->grammar;
    const struct pd_tokenizer *t = model->vocab ? model->vocab->tokenizer : NULL;
    uint32_t n = out->grammar ? out->grammar->spellings->n_pieces : 0,
             n_model = t ? pd_tokenizer_size(t) : model->m.n_pieces;
    if (out->grammar && n != n_model)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "the grammar is for a vocabulary of %u pieces, and the model has %u", n,
                       n_model);
    if (out->dry_multiplier > 0) PD_TRY(spell_pieces(&model->m, model->vocab));
    return t ? add_suppressed(out, bias, t) : PERIDOT_OK;
}

peridot_status pd_sampling_set(peridot_sequence *sequence, const peridot_sampling *sampling,
                               const peridot_tools *tools)
{
    peridot_sampling known;
    peridot_bias *bias;
    PD_TRY(pd_sampling_read(&known, &bias, sampling, tools, sequence->session->model));
    peridot_status status = pd_session_set_sampling(sequence->session->s, sequence->q, &known);
    free(bias);
    return status;
}

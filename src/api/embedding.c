/* Vectors of texts, and tasks: what peridot.h has of embedding models. */
#include "api/api.h"
#include "base/base.h"
#include "peridot_tools.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* y = w x: w [n_in][n_out] */
static void multiply(double *y, const float *w, const double *x, uint32_t n_in, uint32_t n_out)
{
    memset(y, 0, n_out * sizeof *y);
    for (uint32_t i = 0; i < n_in; i++, w += n_out)
        for (uint32_t r = 0; r < n_out; r++) y[r] += (double)w[r] * x[i];
}

static void write_vector(float *out, const double *x, uint32_t n, bool normalise)
{
    double norm = 0;
    for (uint32_t i = 0; i < n; i++) norm += x[i] * x[i];
    double scale = !normalise ? 1 : norm > 0 ? 1 / sqrt(norm) : 0;
    for (uint32_t i = 0; i < n; i++) out[i] = (float)(x[i] * scale);
}

peridot_status peridot_embedding(float *out, const peridot_model *model, const double *pooled, uint32_t n,
                                 bool normalise)
{
    const struct pd_embedding *e = &model->m.config.embedding;
    uint32_t d_model = model->m.config.d_model, size = pd_embedding_dim(e, d_model), widest = 1;
    for (uint32_t i = 0; i < e->n_dense; i++) widest = (uint32_t)pd_max(widest, e->dense_dims[i]);
    if (n > size)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "%u dimensions are more than the %u of this model's vectors", n, size);
    double *rows = malloc(2 * sizeof *rows * widest);
    if (!rows) return pd_fail_alloc(2 * sizeof *rows * widest, "vector");
    for (uint32_t i = 0, n_in = d_model; i < e->n_dense; n_in = e->dense_dims[i++]) {
        double *y = rows + i % 2 * widest;
        multiply(y, model->m.weights.dense[i], pooled, n_in, e->dense_dims[i]);
        pooled = y;
    }
    write_vector(out, pooled, n ? n : size, normalise);
    free(rows);
    return PERIDOT_OK;
}

/* ---- tasks ---- */

const char *peridot_model_task(const peridot_model *model, uint32_t i, const char **prefix)
{
    const struct pd_embedding *e = &model->m.config.embedding;
    if (i >= e->n_tasks) return NULL;
    if (prefix) *prefix = e->tasks[i].prefix;
    return e->tasks[i].name;
}

peridot_status peridot_model_find_task(const char **prefix, const peridot_model *model, const char *name)
{
    const struct pd_embedding *e = &model->m.config.embedding;
    char known[400] = "", shown[80], each[64];
    size_t size = 0;
    *prefix = NULL;
    for (uint32_t i = 0; i < e->n_tasks; i++) {
        if (strcmp(e->tasks[i].name, name) == 0) {
            *prefix = e->tasks[i].prefix;
            return PERIDOT_OK;
        }
        peridot_printable(each, sizeof each, e->tasks[i].name, strlen(e->tasks[i].name));
        if (size + strlen(each) + 3 < sizeof known)
            size += (size_t)snprintf(known + size, sizeof known - size, "%s%s", size ? ", " : "", each);
    }
    peridot_printable(shown, sizeof shown, name, strlen(name));
    return e->n_tasks ? pd_fail(PERIDOT_ERROR_ARGUMENT, "task \"%s\" is not one of the model's (%s)", shown, known)
                      : pd_fail(PERIDOT_ERROR_ARGUMENT, "task \"%s\": this model has no tasks", shown);
}

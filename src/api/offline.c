/* Converting and making model files: arguments are checked here, the work is src/offline's. */
#include "api/api.h"
#include "arch/arch.h"
#include "base/base.h"
#include "engine/pass/pass.h"
#include "format/format.h"
#include "offline/offline.h"
#include "peridot_tools.h"

#include <stdio.h>
#include <stdlib.h>

peridot_status peridot_convert(const char *dst_path, const char *src_path, const peridot_convert_params *params,
                               peridot_convert_stats *stats)
{
    peridot_convert_stats unused;
    if (!stats) stats = &unused;
    *stats = (peridot_convert_stats){0};
    if (!dst_path || !src_path || !params)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "peridot_convert: a path or params is NULL");
    return pd_convert(dst_path, src_path, params, stats);
}

const char *peridot_convert_type(size_t i) { return pd_convert_type(i); }

const char *peridot_convert_type_find(const char *name) { return pd_convert_type_find(name); }

const char *peridot_type_find(const char *name)
{
    enum pd_dtype dtype;
    return name && pd_dtype_by_name(&dtype, name) ? pd_dtypes[dtype].name : NULL;
}

peridot_status peridot_make(const char *path, const peridot_make_params *params)
{
    if (!path || !params) return pd_fail(PERIDOT_ERROR_ARGUMENT, "peridot_make: path or params is NULL");
    return pd_make(path, params);
}

const char *peridot_shape_name(size_t i)
{
    const struct pd_shape *s = pd_shape_get(i);
    return s ? s->name : NULL;
}

/* ---- imatrix ---- */

/* Importance of columns: what a text sends through a model's matrices, written as llama.cpp's imatrix files are. */

peridot_status peridot_imatrix_begin(peridot_model *model)
{
    if (!model) return pd_fail(PERIDOT_ERROR_ARGUMENT, "peridot_imatrix_begin: model is NULL");
    if (model->observed) return pd_fail(PERIDOT_ERROR_ARGUMENT, "peridot_imatrix_begin: it has begun");
    if (model->m.link) return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "an imatrix is not made over several ranks");
    if (!pd_refs_has_one(&model->refs))
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "peridot_imatrix_begin: the model has a session");
    return pd_observed_create(&model->observed, &model->m);
}

/* Of a tensor that is part of a matrix and named only once, or is not observed. */
static bool is_observed(const peridot_model *model, const struct pd_plan *plan)
{
    bool is_matrix = plan->n_dims >= 2 && !plan->is_bias && !plan->is_vector && !plan->again;
    return is_matrix && pd_observed_has(model->observed, plan->layer, plan->matrix);
}

static void add_names(struct pd_gguf_writer *w, const char *tensor, const struct pd_plan *plan)
{
    char name[PD_TENSOR_NAME_SIZE + 16];
    uint64_t n = pd_max(plan->n_experts, 1);
    const uint64_t sums[] = {n, plan->n_cols}, counts[] = {n, 1};
    snprintf(name, sizeof name, "%s.in_sum2", tensor);
    pd_gguf_writer_add_tensor(w, name, PD_F32, 2, sums);
    snprintf(name, sizeof name, "%s.counts", tensor);
    pd_gguf_writer_add_tensor(w, name, PD_F32, 2, counts);
}

static peridot_status write_sums(struct pd_gguf_writer *w, const peridot_model *model, const struct pd_plan *plan)
{
    size_t n = pd_max(plan->n_experts, 1), width = plan->n_cols + 1;   /* the last one counts */
    float *sums = calloc(n * width, sizeof *sums);
    if (!sums) return pd_fail_alloc(n * width * sizeof *sums, "sums of squares");
    peridot_status status = pd_observed_read(sums, model->observed, &model->m, plan->layer, plan->matrix);
    for (size_t i = 0; i < n && status == PERIDOT_OK; i++)
        status = pd_gguf_writer_write(w, sums + i * width, plan->n_cols * sizeof *sums);
    for (size_t i = 0; i < n && status == PERIDOT_OK; i++)
        status = pd_gguf_writer_write(w, sums + i * width + plan->n_cols, sizeof *sums);
    free(sums);
    return status;
}

/* Of every tensor that is observed, the names or the numbers. */
static peridot_status offline_walk(struct pd_gguf_writer *w, const peridot_model *model, bool names)
{
    const struct pd_config *c = &model->m.config;
    char name[PD_TENSOR_NAME_SIZE];
    struct pd_plan plan;
    for (uint32_t i = 0; i < c->n_layers; i++)
        for (enum pd_role role = PD_FIRST_LAYER_ROLE; role < PD_N_ROLES; role++) {
            if (!pd_plan_get(&plan, c, role, i) || !is_observed(model, &plan)) continue;
            pd_tensor_name_gguf(name, role, i, c->family);
            if (names) add_names(w, name, &plan);
            else PD_TRY(write_sums(w, model, &plan));
        }
    return PERIDOT_OK;
}

peridot_status peridot_imatrix_write(const peridot_model *model, const char *path, const peridot_imatrix_text *text)
{
    struct pd_gguf_writer *w;
    if (!model || !path || !text || !model->observed)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "peridot_imatrix_write: an argument is NULL, or nothing was observed");
    PD_TRY(pd_gguf_writer_open(&w, path));
    const struct pd_string name = {text->name ? text->name : "", text->name ? strlen(text->name) : 0};
    pd_gguf_writer_add_string(w, "general.type", "imatrix");
    pd_gguf_writer_add_strings(w, "imatrix.datasets", 1, &name);
    pd_gguf_writer_add_u32(w, "imatrix.chunk_count", text->n_windows);
    pd_gguf_writer_add_u32(w, "imatrix.chunk_size", text->ctx);
    peridot_status status = offline_walk(w, model, true);
    if (status == PERIDOT_OK) status = pd_gguf_writer_begin(w);
    if (status == PERIDOT_OK) status = offline_walk(w, model, false);
    if (status == PERIDOT_OK) return pd_gguf_writer_commit(w);
    pd_gguf_writer_abort(w);
    return status;
}

/* Weights on the device. Where memory is unified and the file's layout is already the device's, a matrix is read in
 * place from the file's mapping, which must stay open as long as the weights. Else files' tensors are found by name,
 * checked against the config, re-laid as ops/ops.h says, and uploaded. Matrices that always multiply the same vector
 * (q, k, v; gate, up) become one, row after row. How rows lie follows from their type and the device alone, and once
 * loaded nothing changes. */
#include "engine/load/load.h"

#include "base/base.h"
#include "ops/ops.h"

#include <stdlib.h>

/* ---- the walk ---- */

static peridot_status add_part(struct pd_loader *l, struct pd_load_rows *parts, const struct pd_plan *plan)
{
    parts->order = pd_head_order_of(l->config, plan->layer);
    if (pd_head_order_differs(&parts->order)) parts->n_reordered += plan->n_rotated_rows;
    parts->head_dim = l->config->layers[plan->layer].head_dim;
    parts->head_half[parts->n] = plan->head_half;
    parts->n_taken[parts->n] = plan->n_taken;
    parts->again[parts->n] = plan->again;
    parts->value_rows[parts->n] = plan->value_rows;
    parts->value_columns = plan->value_columns;
    const struct pd_tensor **at = &parts->at[parts->n++];
    PD_TRY(pd_source_get(at, &l->source, plan));
    if (!pd_value_order_differs(&plan->value_columns) || pd_dtypes[(*at)->dtype].block_len == 1) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: tensor " PD_NAME " has type %s, whose blocks are not parted to "
                   "order columns by heads", (*at)->file, (*at)->name, (*at)->type);
}

static peridot_status check_split_experts(const struct pd_load_rows *parts)
{
    const struct pd_tensor *a = parts->at[0], *b = parts->at[1];
    if (!pd_load_splits_experts(parts) || a->dtype == b->dtype) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: tensor " PD_NAME " has type %s, but " PD_NAME " has %s: only one "
                   "type of both is supported", a->file, a->name, a->type, b->name, b->type);
}

static peridot_status load_layer(struct pd_loader *l, uint32_t i)
{
    struct pd_layer_weights *w = &l->w->layers[i];
    struct pd_load_rows parts[PD_N_LAYER_MATRICES] = {{.n = 0}}, biases[PD_N_LAYER_MATRICES] = {{.n = 0}};
    struct pd_plan plan;
    w->output_scale = 1;
    for (enum pd_role role = PD_FIRST_LAYER_ROLE; role < PD_N_ROLES; role++) {
        if (!pd_plan_get(&plan, l->config, role, i)) continue;
        if (role == PD_ROLE_OUTPUT_SCALE) PD_TRY(pd_load_output_scale(l, &w->output_scale, &plan));
        else if (plan.is_bias) PD_TRY(add_part(l, &biases[plan.matrix], &plan));
        else if (plan.is_vector) PD_TRY(pd_load_norm(l, &w->norms[role], &plan));
        else PD_TRY(add_part(l, &parts[plan.matrix], &plan));
    }
    for (int m = 0; m < PD_N_LAYER_MATRICES; m++) {
        if (!parts[m].n) continue;
        const struct pd_tensor *first = parts[m].at[0];
        l->part = &l->parts[pd_load_part_of(l, i, (enum pd_layer_matrix)m)];
        PD_TRY(check_split_experts(&parts[m]));
        PD_TRY(pd_load_matrix(l, &w->linears[m].w, &parts[m], (uint32_t)first->shape[first->n_dims - 1]));
        PD_TRY(pd_load_bias(l, &w->linears[m], &biases[m]));
        if (pd_is_of_experts((enum pd_layer_matrix)m)) w->linears[m].n_experts = l->config->layers[i].n_experts;
        if (pd_is_of_experts((enum pd_layer_matrix)m) && w->linears[m].w.n_slices > 1)
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED,
                           "%s: tensor %s: the device cannot hold the experts of a layer in one piece", first->file,
                           first->name);
    }
    w->linears[PD_MATRIX_ROUTER].exact = true;
    return PERIDOT_OK;
}

static peridot_status load_embedding(struct pd_loader *l)
{
    struct pd_load_rows embedding = {.n = 1};
    PD_TRY(pd_source_get_embedding(&embedding.at[0], &l->source));
    l->w->vocab_size = (uint32_t)embedding.at[0]->shape[0];
    if (pd_families[l->config->family].embed_norm)
        PD_TRY(pd_load_constant(l, &l->w->embed_norm, 1 / pd_stream_scale(l->config), l->config->d_model));
    return pd_load_matrix(l, &l->w->embedding, &embedding, l->config->d_model);
}

/* Labels' biases are few, and added on the host. */
static peridot_status load_label_biases(struct pd_loader *l)
{
    struct pd_weights *w = l->w;
    const struct pd_tensor *t;
    struct pd_plan plan;
    if (!pd_plan_get(&plan, l->config, PD_ROLE_SCORE_BIAS, 0) || !pd_source_find(&l->source, plan.role, 0))
        return PERIDOT_OK;
    plan.n_cols = w->n_outputs;
    PD_TRY(pd_source_get(&t, &l->source, &plan));
    if (l->measuring) {
        w->n_params += w->n_outputs;
        return PERIDOT_OK;
    }
    w->output_bias = malloc(w->n_outputs * sizeof *w->output_bias);
    if (!w->output_bias) return pd_fail_alloc(w->n_outputs * sizeof *w->output_bias, t->name);
    pd_tensor_dequantize(w->output_bias, t, 0, w->n_outputs);
    return PERIDOT_OK;
}

static peridot_status load_output(struct pd_loader *l)
{
    struct pd_weights *w = l->w;
    const struct pd_config *c = l->config;
    struct pd_load_rows output = {.n = 1};
    struct pd_plan plan;
    bool classifies = pd_plan_get(&plan, c, PD_ROLE_SCORE, 0);
    w->n_outputs = c->head == PERIDOT_HEAD_NONE ? 0 : w->vocab_size;
    if (!classifies && !pd_plan_get(&plan, c, PD_ROLE_OUTPUT, 0)) return PERIDOT_OK;
    if (!classifies) plan.n_rows = w->vocab_size;
    PD_TRY(pd_source_get(&output.at[0], &l->source, &plan));
    w->n_outputs = (uint32_t)output.at[0]->shape[0];
    PD_TRY(pd_load_matrix(l, &w->output.w, &output, c->d_model));
    return load_label_biases(l);
}

static peridot_status load_one(struct pd_loader *l, struct pd_matrix *m, enum pd_role role, uint32_t n_rows)
{
    struct pd_load_rows parts = {.n = 1};
    struct pd_plan plan;
    pd_plan_get(&plan, l->config, role, 0);
    if (plan.n_rows == PD_ANY_SIZE) plan.n_rows = n_rows;
    PD_TRY(pd_source_get(&parts.at[0], &l->source, &plan));
    return pd_load_matrix(l, m, &parts, plan.n_cols);
}

/* The projection is small beside a layer and always on the device. */
static peridot_status load_per_layer(struct pd_loader *l)
{
    struct pd_weights *w = l->w;
    struct pd_plan plan, table;
    if (!pd_plan_get(&plan, l->config, PD_ROLE_PER_LAYER_MODEL_NORM, 0)) return PERIDOT_OK;
    if (pd_plan_get(&table, l->config, PD_ROLE_PER_LAYER_EMBEDDING, 0))
        PD_TRY(load_one(l, &w->per_layer_embedding, PD_ROLE_PER_LAYER_EMBEDDING, w->vocab_size));
    l->part = NULL;
    PD_TRY(load_one(l, &w->per_layer_model_proj.w, PD_ROLE_PER_LAYER_MODEL_PROJ, 0));
    return pd_load_norm(l, &w->per_layer_model_norm, &plan);
}

/* What a drafter has between its target and itself. */
static peridot_status load_projections(struct pd_loader *l)
{
    struct pd_plan plan;
    if (!pd_plan_get(&plan, l->config, PD_ROLE_PRE_PROJ, 0)) return PERIDOT_OK;
    l->part = NULL;
    PD_TRY(load_one(l, &l->w->pre_proj.w, PD_ROLE_PRE_PROJ, 0));
    return load_one(l, &l->w->post_proj.w, PD_ROLE_POST_PROJ, 0);
}

/* A block that drafts has its target's embedding and output. */
static peridot_status load_block(struct pd_loader *l)
{
    struct pd_weights *w = l->w;
    const struct { enum pd_role role; uint64_t *norm; } norms[] = {{PD_ROLE_NEXTN_E_NORM, &w->pre_norms[0]},
        {PD_ROLE_NEXTN_H_NORM, &w->pre_norms[1]}, {PD_ROLE_NEXTN_NORM, &w->output_norm}};
    struct pd_plan plan;
    l->part = NULL;
    for (size_t i = 0; i < PD_COUNT(norms); i++) {
        pd_plan_get(&plan, l->config, norms[i].role, 0);
        PD_TRY(pd_load_norm(l, norms[i].norm, &plan));
    }
    return load_one(l, &w->pre_proj.w, PD_ROLE_NEXTN_PROJ, 0);
}

/* Column after column, so that sums go along rows. */
static peridot_status put_dense(float **out, const struct pd_tensor *t)
{
    uint32_t n_rows = (uint32_t)t->shape[0], n_cols = (uint32_t)t->shape[1];
    uint64_t size = (uint64_t)n_rows * n_cols * sizeof **out;
    float *row = malloc(n_cols * sizeof *row);
    *out = malloc(size);
    for (uint32_t r = 0; row && *out && r < n_rows; r++) {
        pd_tensor_dequantize(row, t, (uint64_t)r * n_cols, n_cols);
        for (uint32_t i = 0; i < n_cols; i++) (*out)[(size_t)i * n_rows + r] = row[i];
    }
    bool good = row && *out;
    free(row);
    return good ? PERIDOT_OK : pd_fail_alloc(size, t->name);
}

/* A text is multiplied by them once, so that the host may do it. */
static peridot_status load_dense(struct pd_loader *l)
{
    static const enum pd_role roles[] = {PD_ROLE_DENSE_2, PD_ROLE_DENSE_3, PD_ROLE_EMBEDDING_PROJ};
    uint32_t n = 0;
    for (size_t i = 0; i < PD_COUNT(roles); i++) {
        const struct pd_tensor *t;
        struct pd_plan plan;
        if (!pd_plan_get(&plan, l->config, roles[i], 0)) continue;
        PD_TRY(pd_source_get(&t, &l->source, &plan));
        if (l->measuring) {
            l->w->type_counts[t->dtype]++;
            l->w->n_params += t->shape[0] * t->shape[1];
        } else PD_TRY(put_dense(&l->w->dense[n++], t));
    }
    return PERIDOT_OK;
}

/* Whether the walk goes through a part: all of them are measured, those that are here loaded. */
static bool begin_part(struct pd_loader *l, uint32_t part)
{
    const struct pd_weights *w = l->w;
    bool ties = w->has_output && l->config->tied && l->config->head == PERIDOT_HEAD_LANGUAGE;
    uint32_t layer = part - PD_PART_LAYERS;
    bool is_here = part == PD_PART_EMBEDDING     ? w->first_layer == 0 || ties || l->config->per_layer_dim
        : part == PD_PART_OUTPUT                 ? w->has_output
        : part == PD_PART_PER_LAYER_EMBEDDING    ? true
                                                 : layer >= w->first_layer && layer < w->end_layer;
    l->part = &l->parts[part];
    l->elsewhere = !is_here;
    return l->measuring || is_here;
}

static peridot_status weights_walk(struct pd_loader *l)
{
    struct pd_plan norm;
    bool block = l->config->nextn_at != 0;
    if (block) PD_TRY(load_block(l));
    if (!block && begin_part(l, PD_PART_EMBEDDING)) PD_TRY(load_embedding(l));
    if (!block && begin_part(l, PD_PART_OUTPUT)) {
        PD_TRY(load_output(l));
        pd_plan_get(&norm, l->config, PD_ROLE_OUTPUT_NORM, 0);
        PD_TRY(pd_load_norm(l, &l->w->output_norm, &norm));
    }
    if (begin_part(l, PD_PART_PER_LAYER_EMBEDDING)) PD_TRY(load_per_layer(l));
    PD_TRY(load_dense(l));
    PD_TRY(load_projections(l));
    for (uint32_t i = 0; i < l->config->n_layers; i++)
        if (begin_part(l, PD_PART_LAYERS + i)) PD_TRY(load_layer(l, i));
    return PERIDOT_OK;
}

static peridot_status make_lookup(struct pd_loader *l, struct pd_table *t, const struct pd_matrix *m)
{
    *t = (struct pd_table){.matrix = m, .rows_per_slice = m->slices[0].n_rows};
    PD_TRY(pd_heap_alloc(&t->addresses, l->w->heap, m->n_slices * sizeof(uint64_t), "embedding slices"));
    for (uint32_t i = 0; i < m->n_slices; i++)
        PD_TRY(pd_span_write(l->gpu, t->addresses, i * sizeof(uint64_t), &m->slices[i].address, sizeof(uint64_t)));
    return PERIDOT_OK;
}

/* ---- all of it ---- */

static peridot_status weights_load(struct pd_loader *l)
{
    struct pd_weights *w = l->w;
    l->parts = calloc(PD_PART_LAYERS + 2 * (size_t)l->config->n_layers, sizeof *l->parts);
    w->layers = calloc(l->config->n_layers, sizeof *w->layers);
    if (!w->layers || !l->parts) return pd_fail_alloc(l->config->n_layers * sizeof *w->layers, "layers");
    l->measuring = true;
    PD_TRY(weights_walk(l));
    PD_TRY(pd_source_check_unused(&w->n_ignored, &l->source));
    w->size = l->device_size;
    PD_TRY(pd_load_place(l));
    PD_TRY(pd_load_check_budget(l));
    /* Blocks of a quarter GiB waste little; a tensor that is larger gets a block of its own. */
    PD_TRY(pd_heap_create(&w->heap, l->gpu, PD_HEAP_DEVICE, pd_min(w->size + (64 << 10), 256u << 20)));
    PD_TRY(pd_heap_create(&w->host_resident_heap, l->gpu, PD_HEAP_HOST_RESIDENT,
                          pd_min(w->host_resident_size + (64 << 10), 256u << 20)));
    l->measuring = false;
    PD_TRY(weights_walk(l));
    if (w->embedding.n_slices && (!w->first_layer || l->config->per_layer_dim))
        PD_TRY(make_lookup(l, &w->lookup, &w->embedding));
    if (w->per_layer_embedding.n_slices)
        PD_TRY(make_lookup(l, &w->per_layer_lookup, &w->per_layer_embedding));
    if (!w->output.w.n_slices && w->n_outputs) w->output.w = w->embedding;
    w->output.softcap = l->config->final_softcap;
    pd_load_count_reads(l);
    return PERIDOT_OK;
}

peridot_status pd_weights_load(struct pd_weights *out, struct pd_gpu *gpu, const struct pd_config *config,
                               const struct pd_checkpoint *checkpoint, const struct pd_load_params *params)
{
    uint32_t end = params->n_layers ? params->first_layer + params->n_layers : config->n_layers;
    *out = (struct pd_weights){
        .first_layer = params->first_layer, .end_layer = end, .has_output = end == config->n_layers};
    struct pd_loader l = {.w = out, .gpu = gpu, .config = config, .params = params};
    peridot_status status = pd_source_open(&l.source, checkpoint, config);
    if (status == PERIDOT_OK) status = pd_checkpoint_check(weights_load(&l), checkpoint);
    pd_source_close(&l.source);
    free(l.parts);
    if (status != PERIDOT_OK) pd_weights_free(out, config);
    return status;
}

void pd_weights_free(struct pd_weights *w, const struct pd_config *config)
{
    for (uint32_t i = 0; w->layers && i < config->n_layers; i++)
        for (int m = 0; m < PD_N_LAYER_MATRICES; m++) free(w->layers[i].linears[m].w.slices);
    if (w->output.w.slices != w->embedding.slices && !config->nextn_at) free(w->output.w.slices);
    free(w->embedding.slices);
    free(w->per_layer_embedding.slices);
    free(w->per_layer_model_proj.w.slices);
    free(w->pre_proj.w.slices);
    free(w->post_proj.w.slices);
    for (int i = 0; i < PD_MAX_DENSE; i++) free(w->dense[i]);
    free(w->output_bias);
    free(w->layers);
    pd_heap_free(w->heap);
    pd_heap_free(w->host_resident_heap);
    *w = (struct pd_weights){0};
}

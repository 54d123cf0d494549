/* Which weights are in the device's memory and which in the host's, and what a step reads of either. */
#include "engine/load/load.h"

#include "base/base.h"

#include <stdio.h>

uint32_t pd_load_part_of(const struct pd_loader *l, uint32_t layer, enum pd_layer_matrix m)
{
    return PD_PART_LAYERS + layer + (pd_is_of_experts(m) ? l->config->n_layers : 0);
}

static void move_part(struct pd_loader *l, uint32_t i)
{
    struct pd_load_part *part = &l->parts[i];
    uint32_t n = l->config->n_layers, of_layer = i < PD_PART_LAYERS + n ? i + n : i - n;   /* experts, or the rest */
    part->host_resident = true;
    l->w->size -= part->size;
    l->w->host_resident_size += part->size;
    l->w->n_host_resident_layers += i >= PD_PART_LAYERS && !l->parts[of_layer].host_resident;
}

static void move_away(struct pd_loader *l, uint32_t i)
{
    if (l->parts[i].host_resident || !l->parts[i].size || l->w->size <= l->params->gpu_memory) return;
    move_part(l, i);
}

/* First goes an embedding that is only looked up, a row a token; then experts, of which a token reads a few, and
 * layers, the last ones first; then what makes logits. */
peridot_status pd_load_place(struct pd_loader *l)
{
    struct pd_weights *w = l->w;
    uint64_t available = pd_memory_available();
    if (pd_gpu_info(l->gpu)->unified_memory) return PERIDOT_OK;
    if (l->parts[PD_PART_PER_LAYER_EMBEDDING].size)
        move_part(l, PD_PART_PER_LAYER_EMBEDDING);   /* a row is read at a time */
    if (!l->params->gpu_memory) return PERIDOT_OK;
    if (l->parts[PD_PART_OUTPUT].size || !w->n_outputs || !w->has_output) move_away(l, PD_PART_EMBEDDING);
    for (uint32_t i = l->config->n_layers; i-- > 0;) move_away(l, pd_load_part_of(l, i, PD_MATRIX_EXPERTS_DOWN));
    for (uint32_t i = l->config->n_layers; i-- > 0;) move_away(l, PD_PART_LAYERS + i);
    move_away(l, PD_PART_OUTPUT);
    move_away(l, PD_PART_EMBEDDING);
    if (w->size > l->params->gpu_memory)
        return pd_fail(PERIDOT_ERROR_MEMORY, "%.3f MB of GPU memory is too little: the norms alone take %.3f MB",
                       (double)l->params->gpu_memory / 1e6, (double)w->size / 1e6);
    if (w->host_resident_size > available)
        return pd_fail(PERIDOT_ERROR_MEMORY,
                       "with %.1f MB of GPU memory this model needs %.1f MB of host memory, of which %.1f MB is free",
                       (double)l->params->gpu_memory / 1e6, (double)w->host_resident_size / 1e6,
                       (double)available / 1e6);
    return PERIDOT_OK;
}

peridot_status pd_load_check_budget(const struct pd_loader *l)
{
    char sentence[512];
    const char *what = l->w->host_resident_size ? "this part of the model" : "this model";
    peridot_status status = pd_gpu_check_budget(l->gpu, l->w->size, what);
    if (status == PERIDOT_OK || pd_gpu_info(l->gpu)->unified_memory) return status;
    snprintf(sentence, sizeof sentence, "%s", pd_error());
    return pd_fail(status, "%s (--gpu-memory SIZE leaves layers in the host's memory)", sentence);
}

static uint64_t matrix_size(const struct pd_matrix *m)
{
    uint64_t size = 0;
    for (uint32_t i = 0; i < m->n_slices; i++) size += (uint64_t)m->slices[i].n_rows * m->slices[i].row_size;
    return size;
}

/* A token reads n_used of the n_experts matrices. */
static void add_read(struct pd_loader *l, const struct pd_linear *linear, uint32_t part, uint32_t n_used)
{
    uint64_t size = matrix_size(&linear->w);
    if (linear->n_experts) size = size / linear->n_experts * n_used;
    l->w->decode_read_size += size;
    if (l->parts[part].host_resident) l->w->decode_host_resident_size += size;
}

void pd_load_count_reads(struct pd_loader *l)
{
    struct pd_weights *w = l->w;
    if (w->n_outputs && w->has_output)
        add_read(l, &w->output, w->output.w.slices != w->embedding.slices ? PD_PART_OUTPUT : PD_PART_EMBEDDING, 0);
    w->decode_read_size += matrix_size(&w->per_layer_model_proj.w) + matrix_size(&w->pre_proj.w)
        + matrix_size(&w->post_proj.w);
    for (uint32_t i = 0; i < l->config->n_layers; i++)
        for (int m = 0; m < PD_N_LAYER_MATRICES; m++)
            add_read(l, &w->layers[i].linears[m], pd_load_part_of(l, i, (enum pd_layer_matrix)m),
                     l->config->layers[i].n_experts_used);
}

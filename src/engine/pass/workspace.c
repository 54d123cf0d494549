/* What the passes of a session share on the device: activations and logits. Passes use it one after the other, in the
 * order in which they are submitted, so that none needs a copy of its own; rows of logits stay after the pass, and
 * written_by says of which pass each is: who comes later to draw finds out whether they are its own. */
#include "engine/pass/pass.h"

#include "arch/arch.h"
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

#define SPLIT_PAGES_CPU                                                                                                \
    8 /* of a split of decode attention: where few workgroups are enough, and beginning one costs more */

/* ---- creating ---- */

static peridot_status workspace_alloc(uint64_t *address, struct pd_workspace *w, uint64_t size, const char *what)
{
    struct pd_span span;
    PD_TRY(pd_heap_alloc(&span, w->device_heap, size, what));
    *address = span.address;
    return PERIDOT_OK;
}

static peridot_status alloc_rows(struct pd_rows *out, struct pd_span *span, struct pd_workspace *w, uint32_t n_rows,
                                 uint64_t width)
{
    out->stride = (uint32_t)pd_align(width, PD_PAD);
    PD_TRY(pd_heap_alloc(span, w->device_heap, (uint64_t)n_rows * out->stride * sizeof(float), "activations"));
    out->address = span->address;
    return pd_span_zero(w->model->gpu, *span);   /* kernels rely on zeros between width and stride */
}

static peridot_status alloc_experts(struct pd_workspace *w, const struct pd_layer_sizes *most)
{
    struct pd_scratch *s = &w->scratch;
    struct pd_span span;
    uint32_t d_model = w->model->config.d_model, n = w->n_rows, n_pairs = n * most->n_experts_used;
    PD_TRY(alloc_rows(&s->router, &span, w, n, most->n_experts + 1));
    PD_TRY(alloc_rows(&s->expert_x, &span, w, n, d_model));
    PD_TRY(alloc_rows(&s->experts, &span, w, n, d_model));
    PD_TRY(alloc_rows(&s->expert_both, &span, w, n_pairs, 2 * (uint64_t)most->expert_dim));
    PD_TRY(alloc_rows(&s->expert_act, &span, w, n_pairs, most->expert_dim));
    PD_TRY(alloc_rows(&s->expert_out, &span, w, n_pairs, d_model));
    PD_TRY(workspace_alloc(&s->routes.choices, w, sizeof(struct pd_choice) * n_pairs, "routes"));
    return workspace_alloc(&s->routes.slots, w,
                           sizeof(struct pd_expert_slot) * most->n_experts + sizeof(uint32_t) * n_pairs, "routes");
}

static peridot_status alloc_scratch(struct pd_workspace *w)
{
    const struct pd_layer_sizes most = pd_layers_largest(&w->model->config);
    struct pd_scratch *s = &w->scratch;
    struct pd_span span;
    uint32_t d_model = w->model->config.d_model, n = w->n_rows;
    PD_TRY(alloc_rows(&s->x, &s->x_span, w, n, d_model));
    PD_TRY(alloc_rows(&s->x_other, &s->x_other_span, w, 1, d_model));
    PD_TRY(alloc_rows(&s->normed, &w->normed_span, w, n, d_model));
    PD_TRY(alloc_rows(&s->branch, &span, w, n, d_model));
    PD_TRY(alloc_rows(&s->qkv, &span, w, n, most.qkv_dim));
    PD_TRY(alloc_rows(&s->att, &span, w, n, most.q_dim));
    if (most.conv_dim) PD_TRY(alloc_rows(&s->conv, &span, w, n, most.conv_dim));
    const struct pd_layer *recurs = pd_layers_recurrence(&w->model->config);
    if (recurs) PD_TRY(alloc_rows(&s->delta, &span, w, n, pd_delta_dim(&recurs->delta)));
    PD_TRY(alloc_rows(&s->gate_up, &span, w, n, 2 * (uint64_t)most.ffn_dim));
    PD_TRY(alloc_rows(&s->act, &span, w, n, most.ffn_dim));
    uint32_t per_layer = w->model->config.per_layer_dim, n_layers = w->model->config.n_layers;
    if (per_layer) {
        PD_TRY(alloc_rows(&s->per_layer, &span, w, n, (uint64_t)n_layers * per_layer));
        PD_TRY(alloc_rows(&s->per_layer_model, &span, w, n, (uint64_t)n_layers * per_layer));
        PD_TRY(alloc_rows(&s->per_layer_gate, &span, w, n, per_layer));
        PD_TRY(alloc_rows(&s->per_layer_act, &span, w, n, per_layer));
    }
    if (most.n_experts) PD_TRY(alloc_experts(w, &most));
    uint32_t most_ranks = w->model->adapters.most_ranks;
    if (most_ranks) PD_TRY(alloc_rows(&s->lora, &span, w, n, most_ranks));
    uint64_t n_splits = pd_min(PD_MAX_SPLITS, pd_div_up(w->cache->table_pages, w->split_pages));
    PD_TRY(workspace_alloc(&s->partial, w, sizeof(float) * w->n_decode * n_splits * (most.q_dim + 2 * most.n_heads),
                           "attention"));
    uint64_t split_sums = pd_split_sums_size(&w->variants, pd_gpu_info(w->model->gpu));
    if (split_sums) PD_TRY(workspace_alloc(&s->split_sums, w, split_sums, "activations"));
    if (pd_variant_pack(w->variants.of[PD_VARIED_MATMUL], PD_F32) == PD_N_KERNELS) return PERIDOT_OK;
    uint32_t widest = (uint32_t)pd_max(d_model, pd_max(most.q_dim, most.ffn_dim));
    uint64_t n_words = pd_max(pd_packed_most(widest), (uint64_t)most.n_experts_used * pd_packed_most(most.expert_dim));
    return workspace_alloc(&s->packed, w, sizeof(uint32_t) * n * n_words, "activations");
}

static peridot_status create_buffers(struct pd_workspace *w)
{
    uint32_t n_outputs = w->model->weights.n_outputs, n_here = w->model->weights.has_output ? n_outputs : 0;
    uint64_t width = pd_align(pd_max(n_outputs, w->model->config.d_model), PD_PAD);
    PD_TRY(pd_heap_create(&w->device_heap, w->model->gpu, PD_HEAP_DEVICE, 4u << 20));
    PD_TRY(pd_heap_create(&w->host_heap, w->model->gpu, PD_HEAP_HOST, 1u << 20));
    PD_TRY(alloc_scratch(w));
    PD_TRY(alloc_rows(&w->logits, &w->logits_span, w, pd_spare_row(w) + w->n_spare, pd_max(n_here, 1)));
    for (int i = 0; i < 2; i++)
        PD_TRY(workspace_alloc(&w->topk[i], w, sizeof(struct pd_candidate) * w->n_decode * pd_topk_scratch(n_here),
                               "candidates"));
    PD_TRY(pd_commands_create(&w->head_commands, w->model->gpu));
    w->written_by = calloc(pd_spare_row(w), sizeof *w->written_by);
    if (!w->written_by) return pd_fail_alloc(pd_spare_row(w) * sizeof *w->written_by, "logits");
    w->host_rows = malloc(sizeof *w->host_rows * width * (w->n_spare + 1));
    return w->host_rows ? PERIDOT_OK : pd_fail_alloc(sizeof *w->host_rows * width * (w->n_spare + 1), "logits");
}

static void count_groups(struct pd_workspace *w)
{
    const struct pd_config *c = &w->model->config;
    const struct pd_recorder r = pd_workspace_recorder(w, NULL);
    for (uint32_t kind = 0; kind < c->n_kinds; kind++) {
        if (pd_layer_recurs(&c->layers[c->kinds[kind]])) continue;
        const struct pd_heads heads = pd_layer_heads(c, &w->model->weights, c->kinds[kind]);
        w->attention_groups[kind] = pd_attention_groups(&r, &heads);
    }
}

peridot_status pd_workspace_create(struct pd_workspace *w, const struct pd_model *model, const struct pd_cache *cache)
{
    w->model = model;
    w->cache = cache;
    w->variants = model->variants;
    w->tunings = model->tunings;
    w->variants.tunings = &w->tunings;
    w->split_pages = pd_gpu_info(model->gpu)->type == PERIDOT_DEVICE_CPU ? SPLIT_PAGES_CPU : 1;
    if (w->n_decode > 1) pd_variants_make_batch_invariant(&w->variants);
    count_groups(w);
    return create_buffers(w);
}

void pd_workspace_free(struct pd_workspace *w)
{
    pd_commands_free(w->head_commands);
    free(w->written_by);
    free(w->host_rows);
    pd_heap_free(w->device_heap);
    pd_heap_free(w->host_heap);
    pd_heap_free(w->input_heap);
    *w = (struct pd_workspace){0};
}

peridot_status pd_workspace_keep_hidden(struct pd_workspace *w)
{
    uint32_t n = w->block ? pd_zero_row(w) + 1 : pd_spare_row(w);
    return alloc_rows(&w->hidden, &w->hidden_span, w, n, w->model->config.d_model);
}

/* ---- passes ---- */

struct pd_recorder pd_workspace_recorder(const struct pd_workspace *w, struct pd_commands *commands)
{
    return (struct pd_recorder){
        .gpu = w->model->gpu, .variants = w->variants, .packed = w->scratch.packed,
        .split_sums = w->scratch.split_sums, .commands = commands, .lora = w->scratch.lora,
        .n_adapters = w->model->adapters.n};
}

void pd_workspace_select(const struct pd_workspace *w, struct pd_recorder *r, uint32_t row, uint32_t n, uint64_t best)
{
    const struct pd_topk topk = {.logits = pd_rows_at(w->logits, row, 0),
                                 .n = w->model->n_pieces,
                                 .n_rows = n,
                                 .best = best,
                                 .scratch = {w->topk[0], w->topk[1]}};
    pd_op_topk(r, &topk);
}

/* ---- results ---- */

/* In one copy, with what is between them, which then goes. */
static peridot_status read_rows(struct pd_workspace *w, struct pd_span span, uint32_t stride, uint32_t width,
                                uint32_t first, uint32_t n)
{
    uint64_t row_size = (uint64_t)stride * sizeof(float);
    PD_TRY(pd_span_read(w->model->gpu, w->host_rows, span, first * row_size, n * row_size));
    for (uint32_t i = 1; stride != width && i < n; i++)
        memmove(w->host_rows + (size_t)i * width, w->host_rows + (size_t)i * stride, width * sizeof(float));
    return PERIDOT_OK;
}

/* Of the last rank. */
static peridot_status ask_for_rows(struct pd_workspace *w, enum pd_op op, uint32_t width, uint32_t first, uint32_t n)
{
    const struct pd_message m = {.op = op, .args = {first, n}};
    return pd_link_ask(w->model->link, &m, NULL, w->host_rows, n * width * (uint32_t)sizeof *w->host_rows);
}

peridot_status pd_workspace_read_logits(struct pd_workspace *w, uint32_t first, uint32_t n)
{
    const float *bias = w->model->weights.output_bias;
    uint32_t n_outputs = w->model->weights.n_outputs;
    if (!w->model->weights.has_output) return ask_for_rows(w, PD_OP_READ_LOGITS, n_outputs, first, n);
    PD_TRY(read_rows(w, w->logits_span, w->logits.stride, n_outputs, first, n));
    for (uint32_t i = 0; bias && i < n * n_outputs; i++) w->host_rows[i] += bias[i % n_outputs];
    return PERIDOT_OK;
}

peridot_status pd_workspace_read_hidden(struct pd_workspace *w, uint32_t first, uint32_t n)
{
    const struct pd_config *c = &w->model->config;
    if (!w->model->weights.has_output) return ask_for_rows(w, PD_OP_READ_HIDDEN, c->d_model, first, n);
    PD_TRY(read_rows(w, w->normed_span, w->scratch.normed.stride, c->d_model, first, n));
    for (uint32_t i = 0; c->logit_scale != 1 && i < n * c->d_model; i++) w->host_rows[i] /= c->logit_scale;
    return PERIDOT_OK;
}

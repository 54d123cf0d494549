#include "engine/workspace.h"

#include "arch/layers.h"
#include "base/num.h"
#include "engine/pages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SPLIT_PAGES_CPU                                                                                                \
    8 /* of a split of decode attention: where few workgroups are enough, and beginning one costs more */

/* ---- creating ---- */

static peridot_status alloc(uint64_t *address, struct pd_workspace *w, uint64_t size, const char *what)
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
    PD_TRY(alloc_rows(&s->gate_up, &span, w, n, 2 * (uint64_t)most.ffn_dim));
    PD_TRY(alloc_rows(&s->act, &span, w, n, most.ffn_dim));
    uint64_t n_splits = pd_min(PD_MAX_SPLITS, pd_div_up(w->cache->table_pages, w->split_pages));
    PD_TRY(alloc(&s->partial, w, sizeof(float) * w->n_decode * n_splits * (most.q_dim + 2 * most.n_heads),
                 "attention"));
    if (pd_variant_pack(w->variants.of[PD_VARIED_MATMUL]) == PD_N_KERNELS) return PERIDOT_OK;
    uint32_t widest = (uint32_t)pd_max(d_model, pd_max(most.q_dim, most.ffn_dim));
    return alloc(&s->packed, w, sizeof(uint32_t) * n * pd_packed_most(widest), "activations");
}

static peridot_status create(struct pd_workspace *w)
{
    uint32_t n_outputs = w->model->weights.n_outputs, n_here = w->model->weights.has_output ? n_outputs : 0;
    uint64_t width = pd_align(pd_max(n_outputs, w->model->config.d_model), PD_PAD);
    PD_TRY(pd_heap_create(&w->device_heap, w->model->gpu, PD_HEAP_DEVICE, 4u << 20));
    PD_TRY(pd_heap_create(&w->host_heap, w->model->gpu, PD_HEAP_HOST, 1u << 20));
    PD_TRY(alloc_scratch(w));
    PD_TRY(alloc_rows(&w->logits, &w->logits_span, w, pd_spare_row(w) + PD_LOGITS_ROWS, pd_max(n_here, 1)));
    for (int i = 0; i < 2; i++)
        PD_TRY(alloc(&w->topk[i], w, sizeof(struct pd_candidate) * w->n_decode * pd_topk_scratch(n_here),
                     "candidates"));
    PD_TRY(pd_heap_alloc(&w->best, w->host_heap, sizeof(struct pd_candidate) * PD_TOPK * pd_spare_row(w),
                         "candidates"));
    w->host_rows = malloc(sizeof *w->host_rows * width * PD_LOGITS_ROWS);
    return w->host_rows ? PERIDOT_OK : pd_fail_alloc(sizeof *w->host_rows * width * PD_LOGITS_ROWS, "logits");
}

peridot_status pd_workspace_create(struct pd_workspace *w, const struct pd_model *model, const struct pd_cache *cache)
{
    w->model = model;
    w->cache = cache;
    w->variants = model->variants;
    w->split_pages = pd_gpu_info(model->gpu)->type == PERIDOT_DEVICE_CPU ? SPLIT_PAGES_CPU : 1;
    if (w->n_decode > 1) pd_variants_make_batch_invariant(&w->variants);
    return create(w);
}

void pd_workspace_free(struct pd_workspace *w)
{
    free(w->host_rows);
    pd_heap_free(w->device_heap);
    pd_heap_free(w->host_heap);
    pd_heap_free(w->input_heap);
    *w = (struct pd_workspace){0};
}

/* ---- input ---- */

static peridot_status open_rows(struct pd_input *in, const struct pd_workspace *w)
{
    uint64_t size = (uint64_t)in->n_rows * w->scratch.x.stride * sizeof(float);
    in->rows = calloc(in->n_rows, sizeof *in->rows);
    if (!in->rows) return pd_fail_alloc(in->n_rows * sizeof *in->rows, "rows");
    if (w->model->weights.first_layer) PD_TRY(pd_heap_alloc(&in->rows_in, w->host_heap, size, "rows"));
    return w->model->weights.has_output ? PERIDOT_OK : pd_heap_alloc(&in->rows_out, w->host_heap, size, "rows");
}

peridot_status pd_input_create(struct pd_input *in, const struct pd_workspace *w, uint32_t n_rows,
                               struct pd_span tokens)
{
    const struct pd_config *c = &w->model->config;
    uint64_t angles_size = 0;
    *in = (struct pd_input){.tokens = tokens, .n_rows = n_rows};
    for (uint32_t i = 0; i < c->n_rope_tables; i++) angles_size += sizeof(float) * n_rows * c->rope_tables[i].head_dim;
    PD_TRY(pd_heap_alloc(&in->step, w->input_heap, sizeof(struct pd_step), "the step"));
    if (!tokens.size) PD_TRY(pd_heap_alloc(&in->tokens, w->input_heap, sizeof(uint32_t) * n_rows, "tokens"));
    PD_TRY(pd_heap_alloc(&in->places, w->input_heap, sizeof(struct pd_place) * c->n_kinds * n_rows, "places"));
    PD_TRY(pd_heap_alloc(&in->angles, w->input_heap, angles_size, "RoPE angles"));
    return w->model->link ? open_rows(in, w) : PERIDOT_OK;
}

void pd_input_free(struct pd_input *in)
{
    free(in->rows);
    in->rows = NULL;
}

void pd_input_write(const struct pd_input *in, const struct pd_workspace *w, uint32_t m, const struct pd_pages *pages,
                    uint32_t pos)
{
    const struct pd_config *c = &w->model->config;
    if (in->rows) in->rows[m] = (struct pd_input_row){pages->table, pos};
    for (uint32_t kind = 0; kind < c->n_kinds; kind++) {
        struct pd_place place = pd_decode_place(pos, w->cache->pools[kind].window, w->split_pages);
        place.text = pd_pages_text(w->cache, pages);
        ((struct pd_place *)in->places.host)[kind * in->n_rows + m] = place;
    }
    float *table = in->angles.host;
    for (uint32_t t = 0; t < c->n_rope_tables; t++) {
        uint32_t head_dim = c->rope_tables[t].head_dim, half = head_dim / 2;
        float *row = table + (size_t)m * head_dim;
        for (uint32_t i = 0; i < half; i++) {
            double angle = pos * c->rope_tables[t].inv_freq[i];
            row[i] = (float)cos(angle);
            row[half + i] = (float)sin(angle);
        }
        table += (size_t)in->n_rows * head_dim;
    }
}

void pd_input_write_grids(const struct pd_input *in, const struct pd_workspace *w, uint32_t n)
{
    const struct pd_config *c = &w->model->config;
    const struct pd_recorder r = pd_workspace_recorder(w, NULL);
    struct pd_step step = {0};
    for (uint32_t kind = 0; kind < c->n_kinds; kind++) {
        const struct pd_heads heads = pd_layer_heads(c, &w->model->weights, c->kinds[kind]);
        struct pd_place *places = (struct pd_place *)in->places.host + kind * in->n_rows;
        uint32_t n_splits = 0, most = 0;
        for (uint32_t m = 0; m < n; m++) {
            places[m].first_split = n_splits;
            n_splits += places[m].n_splits;
            most = (uint32_t)pd_max(most, places[m].n_splits);
        }
        step.dispatch[kind][0] = pd_attention_groups(&r, &heads);
        step.dispatch[kind][1] = most;
        step.dispatch[kind][2] = n;
    }
    memcpy(in->step.host, &step, sizeof step);
}

/* ---- passes ---- */

struct pd_recorder pd_workspace_recorder(const struct pd_workspace *w, struct pd_commands *commands)
{
    return (struct pd_recorder){
        .gpu = w->model->gpu, .variants = w->variants, .packed = w->scratch.packed, .commands = commands};
}

struct pd_forward_args pd_workspace_forward_args(const struct pd_workspace *w, const struct pd_input *in,
                                                 struct pd_recorder *r, uint32_t n_rows)
{
    const struct pd_config *c = &w->model->config;
    struct pd_forward_args pass = {.recorder = r,
                           .config = c,
                           .weights = &w->model->weights,
                           .cache = w->cache,
                           .scratch = &w->scratch,
                           .step = in->step,
                           .tokens = in->tokens.address,
                           .rows_in = in->rows_in,
                           .rows_out = in->rows_out,
                           .n_tokens = n_rows};
    uint64_t offset = 0;
    for (uint32_t i = 0; i < c->n_rope_tables; i++) {
        pass.angles[i] = in->angles.address + offset;
        offset += sizeof(float) * in->n_rows * c->rope_tables[i].head_dim;
    }
    for (uint32_t kind = 0; kind < c->n_kinds; kind++)
        pass.places[kind] = in->places.address + sizeof(struct pd_place) * kind * in->n_rows;
    return pass;
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
    if (!w->model->weights.has_output) return ask_for_rows(w, PD_OP_READ_HIDDEN, w->model->config.d_model, first, n);
    return read_rows(w, w->normed_span, w->scratch.normed.stride, w->model->config.d_model, first, n);
}

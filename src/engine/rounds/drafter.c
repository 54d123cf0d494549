/* A drafter: a few layers that guess the tokens after one that is yet to be evaluated (draft.c). They have no keys of
 * their own: each reads what the last layer of its kind in the target, the model that they draft for, has of the text
 * so far, in the target's cache. What goes in is the target's embedding of the token beside the hidden state that the
 * token was drawn from; then each guess, beside the hidden state that the drafter gives with it. All guesses stand at
 * the token's position, where there is no key yet, and see one key more than the target's windows have before it;
 * nothing is written, so that a draft is one submission. Formula: Gemma4AssistantForCausalLM and
 * SinglePositionMultiTokenCandidateGenerator of transformers.
 *
 * A block (MTP) that is in the model's own files is a drafter, too, with the target's embedding and output, and with
 * keys of its own, a layer more of the target's cache: that of position j is of token j beside the hidden state after
 * token j - 1, zeros where there is none, as in llama.cpp. Passes leave the keys of the text (pd_forward_block);
 * guesses stand at the positions that they are of, and leave keys of the hidden states that the block gives itself,
 * over which the next pass writes. */
#include "engine/rounds/rounds.h"

#include "arch/arch.h"
#include "base/base.h"
#include "engine/pass/pass.h"

#include <stdlib.h>
#include <string.h>

/* ---- the target's cache ---- */

/* The last of the target's layers that writes keys for queries like those of `layer`, with a window or without;
 * n_layers: none. */
static uint32_t find_source(const struct pd_config *target, const struct pd_layer *layer)
{
    for (uint32_t i = target->n_layers; i-- > 0;) {
        const struct pd_layer *source = &target->layers[i];
        if (pd_layer_owns_kv(target, i) && !pd_layer_recurs(source) && !source->window == !layer->window) return i;
    }
    return target->n_layers;
}

static bool can_read(const struct pd_config *target, const struct pd_layer *layer)
{
    uint32_t i = find_source(target, layer);
    const struct pd_layer *source = &target->layers[i];
    return i < target->n_layers && layer->n_heads % source->n_kv_heads == 0 && source->head_dim == layer->head_dim
        && (source->window ? source->window + 1 : 0) == layer->window;
}

void pd_drafter_share_keys(struct pd_config *c, const struct pd_config *target)
{
    for (uint32_t i = 0; i < c->n_layers; i++)
        if (can_read(target, &c->layers[i]))
            c->layers[i].n_kv_heads = target->layers[find_source(target, &c->layers[i])].n_kv_heads;
}

peridot_status pd_drafter_check(const struct pd_model *model, const struct pd_model *target)
{
    const struct pd_config *c = &model->config, *of = &target->config;
    if (c->target_dim != of->d_model)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "%s drafts for a model of width %u, and %s has %u", c->name,
                       c->target_dim, of->name, of->d_model);
    if (model->weights.n_outputs != target->weights.n_outputs)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "%s drafts for a model of %u tokens, and %s has %u", c->name,
                       model->weights.n_outputs, of->name, target->weights.n_outputs);
    if (c->nextn_at && model->hash != target->hash)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "%s cannot draft for %s: it is a block of another model", c->name,
                       of->name);
    for (uint32_t i = 0; i < c->n_layers; i++)
        if (!can_read(of, &c->layers[i]))
            return pd_fail(PERIDOT_ERROR_ARGUMENT, "%s cannot draft for %s: its layer %u reads heads of %u columns "
                           "and a window of %u keys, which the last such layer of that model does not have", c->name,
                           of->name, i, c->layers[i].head_dim,
                           c->layers[i].window ? c->layers[i].window - 1 : 0);
    if (target->link)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED,
                       "drafts are not supported where several ranks hold the model's layers");
    return PERIDOT_OK;
}

peridot_status pd_drafter_add_keys(struct pd_cache *cache, const struct pd_model *model,
                                   const struct pd_model *target)
{
    const struct pd_config *c = &model->config, *of = &target->config;
    return c->nextn_at ? pd_cache_add_layer(cache, of->layers[find_source(of, &c->layers[0])].kind) : PERIDOT_OK;
}

static peridot_status borrow_cache(struct pd_drafter *d)
{
    const struct pd_config *c = &d->model->config, *of = &d->decoder->w->model->config;
    const struct pd_cache *cache = d->decoder->w->cache;
    d->cache = *cache;
    d->cache.layers = calloc(c->n_layers, sizeof *d->cache.layers);
    if (!d->cache.layers) return pd_fail_alloc(c->n_layers * sizeof *d->cache.layers, "layers");
    for (uint32_t i = 0; i < c->n_layers; i++) {
        uint32_t source = find_source(of, &c->layers[i]);
        d->cache.layers[i] = cache->layers[c->nextn_at ? cache->n_layers - 1 : source];
        d->cache.pools[c->layers[i].kind] = cache->pools[of->layers[source].kind];
        d->cache.pools[c->layers[i].kind].window = c->layers[i].window;
    }
    return PERIDOT_OK;
}

/* ---- recording ---- */

/* Guess j: the token after tokens[j]. */
static void record_guess(const struct pd_drafter *d, struct pd_recorder *r, uint32_t j)
{
    struct pd_forward_args args = pd_input_forward_args(&d->input, &d->w, r, 1);
    const struct pd_rows logits = pd_rows_at(d->w.logits, pd_step_row(&d->w, 0), 0);
    uint64_t best = d->best.address + sizeof(struct pd_candidate) * PD_TOPK * j;
    const struct pd_sample_push push = {.best = best, .draws = d->draws.address + sizeof(struct pd_draw) * j,
        .tokens = d->tokens.address + sizeof(int32_t) * (j + 1),
        .drawn = d->drawn.address + sizeof(struct pd_candidate) * j, .recent = d->recent.address,
        .bias = d->bias.address};
    args.tokens += sizeof(int32_t) * j;
    if (d->model->config.nextn_at) {
        args.places[0] += sizeof(struct pd_place) * j;
        for (uint32_t t = 0; t < d->model->config.n_rope_tables; t++)
            args.angles[t] += sizeof(float) * d->model->config.rope_tables[t].head_dim * j;
    }
    args.n_decode = 1;
    args.target = &d->target;
    pd_forward(&args, &logits);
    pd_workspace_select(&d->w, r, pd_step_row(&d->w, 0), 1, best);
    pd_op_sample(r, &push, 1);
    if (d->model->config.nextn_at) {
        uint64_t size = d->model->config.target_dim * sizeof(float);
        pd_op_copy(r, d->in, size, d->w.normed_span, 0, size);
        return;
    }
    pd_op_linear(r, pd_rows_at(d->target.in, 0, d->model->config.target_dim), &d->model->weights.post_proj,
                 d->w.scratch.normed, 1);
}

static peridot_status record(struct pd_drafter *d, uint32_t n, uint32_t hidden_row)
{
    const struct pd_workspace *of = d->decoder->w;
    struct pd_recorder r = pd_workspace_recorder(&d->w, d->commands);
    uint64_t size = (uint64_t)d->model->config.target_dim * sizeof(float);
    d->n = 0;
    PD_TRY(pd_commands_begin(d->commands));
    pd_op_copy(&r, d->in, size, of->hidden_span, hidden_row * of->hidden.stride * sizeof(float), size);
    for (uint32_t j = 0; j < n; j++) record_guess(d, &r, j);
    peridot_status status = pd_commands_end(d->commands);
    PD_TRY(r.status != PERIDOT_OK ? r.status : status);
    d->n = n;
    d->hidden_row = hidden_row;
    return PERIDOT_OK;
}

/* ---- creating ---- */

static peridot_status drafter_alloc(struct pd_drafter *d)
{
    struct pd_workspace *w = &d->w;
    const struct pd_model *target = d->decoder->w->model;
    uint32_t width = 2 * d->model->config.target_dim, stride = (uint32_t)pd_align(width, PD_PAD);
    PD_TRY(pd_heap_alloc(&d->tokens, w->input_heap, sizeof(int32_t) * (1 + PD_MAX_DRAFT), "tokens"));
    PD_TRY(pd_heap_alloc(&d->draws, w->input_heap, sizeof(struct pd_draw) * PD_MAX_DRAFT, "draws"));
    PD_TRY(pd_heap_alloc(&d->recent, w->input_heap, sizeof(int32_t) * PD_REPEAT_WINDOW, "recent tokens"));
    PD_TRY(pd_heap_alloc(&d->bias, w->input_heap, sizeof(struct pd_candidate) * PD_TOPK, "biases"));
    PD_TRY(pd_heap_alloc(&d->drawn, w->host_heap, sizeof(struct pd_candidate) * PD_MAX_DRAFT, "draws"));
    PD_TRY(pd_heap_alloc(&d->best, w->host_heap, sizeof(struct pd_candidate) * PD_TOPK * PD_MAX_DRAFT, "candidates"));
    PD_TRY(pd_heap_alloc(&d->in, w->device_heap, stride * sizeof(float), "activations"));
    PD_TRY(pd_span_zero(w->model->gpu, d->in));
    d->target = (struct pd_target){.in = {d->in.address, stride}, .lookup = &target->weights.lookup,
                                   .embed_scale = pd_stream_embed_scale(&target->config)};
    return pd_input_create(&d->input, w, d->model->config.nextn_at ? PD_MAX_DRAFT : 1, d->tokens);
}

/* What the target's passes need to leave the block's keys. */
static peridot_status open_block(struct pd_drafter *d)
{
    struct pd_workspace *of = d->decoder->w;
    struct pd_draft_block *b = &d->block;
    uint32_t width = d->model->config.target_dim, wide = (uint32_t)pd_align(2 * width, PD_PAD);
    struct pd_span in, normed;
    PD_TRY(pd_heap_alloc(&in, d->w.device_heap, (uint64_t)of->n_rows * wide * sizeof(float), "activations"));
    PD_TRY(pd_heap_alloc(&normed, d->w.device_heap, (uint64_t)of->n_rows * of->hidden.stride * sizeof(float),
                         "activations"));
    PD_TRY(pd_heap_alloc(&b->hidden.addresses, d->w.device_heap, sizeof(uint64_t), "activations"));
    PD_TRY(pd_span_zero(d->w.model->gpu, in));
    PD_TRY(pd_span_zero(d->w.model->gpu, normed));
    PD_TRY(pd_span_write(d->w.model->gpu, b->hidden.addresses, 0, &of->hidden.address, sizeof(uint64_t)));
    b->config = &d->model->config;
    b->weights = &d->model->weights;
    b->cache = &d->cache;
    b->kind = of->model->config.layers[find_source(&of->model->config, &b->config->layers[0])].kind;
    b->target = d->target;
    b->target.in = (struct pd_rows){in.address, wide};
    b->normed = (struct pd_rows){normed.address, of->hidden.stride};
    b->slice = (struct pd_slice){.address = of->hidden.address, .dtype = PD_F32, .n_rows = pd_zero_row(of) + 1,
        .row_size = of->hidden.stride * (uint32_t)sizeof(float)};
    b->matrix = (struct pd_matrix){b->slice.n_rows, width, 1, &b->slice};
    b->hidden.matrix = &b->matrix;
    b->hidden.rows_per_slice = b->slice.n_rows;
    return PERIDOT_OK;
}

static peridot_status drafter_init(struct pd_drafter *d)
{
    PD_TRY(borrow_cache(d));
    PD_TRY(pd_heap_create(&d->w.input_heap, d->model->gpu, PD_HEAP_INPUT, 1u << 16));
    d->w.n_rows = d->w.n_decode = 1;
    PD_TRY(pd_workspace_create(&d->w, d->model, &d->cache));
    PD_TRY(drafter_alloc(d));
    if (d->model->config.nextn_at) d->decoder->w->block = &d->block;
    PD_TRY(pd_workspace_keep_hidden(d->decoder->w));
    if (d->model->config.nextn_at) PD_TRY(open_block(d));
    PD_TRY(pd_commands_create(&d->commands, d->model->gpu));
    return record(d, 1, 0);   /* compiles */
}

peridot_status pd_drafter_create(struct pd_drafter **out, const struct pd_model *model, struct pd_decoder *decoder)
{
    struct pd_drafter *d = *out = calloc(1, sizeof *d);
    if (!d) return pd_fail_alloc(sizeof *d, "drafter");
    d->model = model;
    d->decoder = decoder;
    peridot_status status = drafter_init(d);
    if (status == PERIDOT_OK) return PERIDOT_OK;
    pd_drafter_free(d);
    *out = NULL;
    return status;
}

void pd_drafter_free(struct pd_drafter *d)
{
    if (!d) return;
    pd_commands_free(d->commands);
    pd_input_free(&d->input);
    pd_workspace_free(&d->w);
    free(d->cache.layers);
    free(d);
}

/* ---- guessing ---- */

/* Guesses of a block are a row each, one after the other: the grid is that of the most splits. */
static void write_positions(struct pd_drafter *d, const struct pd_sequence *q, uint32_t n)
{
    struct pd_place *places = d->input.places.host;
    for (uint32_t j = 0; j < n; j++) {
        uint32_t pos = q->pos + j;
        pd_input_write(&d->input, &d->w, j, &q->pages, &(struct pd_position){pos, pos, {pos, pos, pos}});
    }
    pd_input_write_grids(&d->input, &d->w, n);
    for (uint32_t j = 0; j < n; j++) places[j].first_split = 0;
    ((struct pd_step *)d->input.step.host)->dispatch[0][2] = 1;
}

static void write_input(struct pd_drafter *d, const struct pd_draft_rows *rows, uint32_t n)
{
    const struct pd_sequence *q = rows->sequence;
    uint32_t n_candidates = (uint32_t)pd_min(PD_TOPK, d->model->n_pieces);
    *(int32_t *)d->tokens.host = rows->tokens[0];
    for (uint32_t j = 0; j < n; j++)
        ((struct pd_draw *)d->draws.host)[j] = pd_sampler_draw_ahead(&q->sampler, n_candidates, j);
    pd_sampler_write_chain(&q->sampler, d->recent.host, d->bias.host, rows->tokens[0]);
    if (d->model->config.nextn_at) {
        write_positions(d, q, n);
        return;
    }
    pd_input_write_query(&d->input, &d->w, 0, &q->pages, q->pos);
    pd_input_write_grids(&d->input, &d->w, 1);
}

peridot_status pd_drafter_guess(struct pd_draft_rows *rows, struct pd_drafter *d, uint32_t n)
{
    const struct pd_sequence *q = rows->sequence;
    PD_TRY(pd_decoder_yield(d->decoder));   /* steps that were discarded may yet write hidden states */
    if (n == 0 || !pd_has_logits(d->decoder->w, q)) return PERIDOT_OK;
    if (d->n != n || d->hidden_row != q->logits_row) PD_TRY(record(d, n, q->logits_row));
    write_input(d, rows, n);
    PD_TRY(pd_commands_run(d->commands));
    for (uint32_t j = 0; j < n; j++)
        rows->tokens[rows->n++] = (int32_t)((const struct pd_candidate *)d->drawn.host)[j].id;
    return PERIDOT_OK;
}

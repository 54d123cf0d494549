/* The models of peridot.h: opening one, and what it says of itself. */
#include "api/api.h"
#include "arch/arch.h"
#include "base/base.h"
#include "engine/pass/pass.h"
#include "engine/sequence/sequence.h"
#include "engine/rounds/rounds.h"
#include "probe/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void describe_model(peridot_model *model)
{
    const struct pd_weights *w = &model->m.weights;
    peridot_model_info *info = &model->info;
    pd_model_info_types(model->types, sizeof model->types, w->type_counts);
    pd_variants_text(model->kernels, sizeof model->kernels, &model->m.variants);
    pd_tunings_text(model->tuning, sizeof model->tuning, &model->m);
    pd_model_info_begin(info, &model->m.config);
    info->types = model->types;
    info->has_block = !model->m.config.nextn_at && pd_config_has_block(&model->m.config, model->m.checkpoint);
    info->vocab_size = w->vocab_size;
    info->n_outputs = w->n_outputs;
    info->n_params = w->n_params;
    info->weights_size = w->size;
    info->in_place_size = w->in_place_size;
    info->host_resident_size = w->host_resident_size;
    info->n_host_resident_layers = w->n_host_resident_layers;
    info->decode_host_resident_size = w->decode_host_resident_size;
    info->n_ignored_tensors = w->n_ignored;
    info->decode_read_size = pd_link_leads(model->m.link) ? model->m.ranks_read_size : w->decode_read_size;
    info->device = pd_gpu_info(model->m.gpu);
    info->device_reason = pd_gpu_reason(model->m.gpu);
    info->kernels = model->kernels;
    info->precision = model->m.variants.exact ? PERIDOT_PRECISION_EXACT : PERIDOT_PRECISION_DEFAULT;
    info->tuning = model->tuning;
    info->image_rows = model->tower_config.kind == PD_TOWER_NONE ? 0 : model->tower_config.most_rows;
    info->image_token = model->tower_config.row_id;
    info->image_crops = pd_tower_most_crops(&model->tower_config);
    info->untuned = !model->m.link && !model->target && pd_tune_is_due(&model->m);
    if (w->n_outputs == 1 && info->problem == PERIDOT_PROBLEM_SINGLE_LABEL) info->problem = PERIDOT_PROBLEM_REGRESSION;
}

static void log_model(const peridot_model *model, const char *cache_dir)
{
    const peridot_model_info *m = &model->info;
    const peridot_verdict verdict = peridot_device_verdict(m->device, cache_dir);
    pd_log(&model->log, PERIDOT_LOG_INFO, "device: %s, %s: %s", m->device->name, m->device->driver_info,
           m->device_reason);
    pd_log(&model->log, PERIDOT_LOG_INFO, "kernels: %s; tuning: %s", m->kernels, m->tuning[0] ? m->tuning : "not "
                                                                                                            "measured");
    if (cache_dir && pd_private_check(cache_dir) != PERIDOT_OK)
        pd_log(&model->log, PERIDOT_LOG_WARNING, "the cache folder is not used: %s", pd_error());
    if (verdict.disabled[0])
        pd_log(&model->log, PERIDOT_LOG_WARNING,
               "disabled, as they failed the self-test on this device and driver: %s", verdict.disabled);
    if (verdict.broken[0])
        pd_log(&model->log, PERIDOT_LOG_WARNING, "this device and driver give wrong answers with %s", verdict.broken);
    if (m->n_ignored_tensors && !m->image_rows)
        pd_log(&model->log, PERIDOT_LOG_INFO, "%u tensor%s of vision: not loaded, as text needs none",
               (unsigned)m->n_ignored_tensors, PD_S(m->n_ignored_tensors));
    if (!model->vocab) pd_log(&model->log, PERIDOT_LOG_WARNING, "no tokenizer: %s", model->vocab_error);
}

/* A GGUF file says them by their names alone. */
static void find_image_ids(peridot_model *model, const struct pd_checkpoint *checkpoint)
{
    static const char *const names[][3] = {{"<start_of_image>", "<image_soft_token>", "<end_of_image>"},
        {"<|image>", "<|image|>", "<image|>"}, {"<|vision_start|>", "<|image_pad|>", "<|vision_end|>"}};
    uint32_t row = model->tower_config.kind == PD_TOWER_SIGLIP ? 0 : model->tower_config.kind == PD_TOWER_QWEN ? 2 : 1;
    struct pd_tower_config *t = &model->tower_config;
    int32_t *const ids[] = {&t->begin_id, &t->row_id, &t->end_id};
    if (t->kind == PD_TOWER_NONE || pd_checkpoint_kind(checkpoint) != PD_CHECKPOINT_GGUF) return;
    for (int i = 0; i < 3; i++) {
        int32_t id = pd_tokenizer_find_control(model->vocab->tokenizer, names[row][i]);
        if (id >= 0) *ids[i] = id;
    }
}

/* A model without a tokenizer still evaluates ids; who asks for its vocabulary learns why there is none. */
static peridot_status open_vocab(peridot_model *model, const struct pd_checkpoint *checkpoint)
{
    model->m.n_pieces = model->m.weights.n_outputs;
    struct peridot_vocab *vocab = calloc(1, sizeof *vocab);
    if (!vocab) return pd_fail_alloc(sizeof *vocab, "vocab");
    if (pd_tokenizer_from_checkpoint(&vocab->tokenizer, checkpoint) != PERIDOT_OK) {
        snprintf(model->vocab_error, sizeof model->vocab_error, "%s", pd_error());
        free(vocab);
        return PERIDOT_OK;
    }
    model->vocab = vocab;
    find_image_ids(model, checkpoint);
    /* Rows beyond the pieces never win; pieces beyond the rows (an image token without a text row) are never drawn. */
    model->m.n_pieces = (uint32_t)pd_min(pd_tokenizer_size(vocab->tokenizer), model->m.weights.n_outputs);
    return PERIDOT_OK;
}

static peridot_status model_open_link(struct pd_model *m, const peridot_link *link)
{
    peridot_link known;
    PD_TRY(PD_PARAMS_READ(known, link));
    return pd_link_create(&m->link, &known);
}

/* Which layers are this rank's. */
static peridot_status choose_layers(struct pd_load_params *load, const struct pd_model *m)
{
    if (!m->link) return PERIDOT_OK;
    PD_TRY(pd_link_check_division(m->link, m->config.n_layers));
    load->first_layer = m->link->first_layer;
    load->n_layers = m->link->n_layers[m->link->host.rank];
    uint32_t last = pd_layers_last_division(&m->config), first = m->config.n_layers;
    first -= m->link->n_layers[m->link->host.n_ranks - 1];   /* of the last rank */
    if (first <= last) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "a rank cannot begin with layer %u: later layers read the keys of layer "
                   "%u, which must be on the same rank", first, last);
}

/* A drafter's is its target's: it reads that model's cache. */
static peridot_status open_gpu(peridot_model *model, const peridot_model_params *p)
{
    struct pd_model *m = &model->m;
    if (!m->config.target_dim) return pd_gpu_open(&m->gpu, p->device, p->cache_dir);
    if (!p->target)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s is a drafter: it guesses tokens for a larger model, of which it "
                       "reads the cache, and cannot be used by itself (--draft)", m->config.name);
    model->target = p->target;
    pd_refs_add(&model->target->refs);
    m->gpu = model->target->m.gpu;
    pd_drafter_share_keys(&m->config, &model->target->m.config);
    return PERIDOT_OK;
}

/* What a model's own files say of a tower does no harm to text: whoever has an image learns what is wrong with it. A
 * file that was named must be right, unless it is optional. */
static peridot_status find_tower(peridot_model *model, const peridot_model_params *p)
{
    struct pd_model *m = &model->m;
    const struct pd_checkpoint *from = m->checkpoint;
    struct pd_tower_totals totals;
    if (p->vision && !*p->vision)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s does not see images: it was opened without its vision tower",
                       m->config.name);
    if (p->vision) {
        PD_TRY(pd_checkpoint_open(&m->tower_checkpoint, p->vision, true));
        from = m->tower_checkpoint;
    }
    PD_TRY(pd_tower_read(&model->tower_config, from, m->checkpoint, &m->config));
    if (model->tower_config.kind == PD_TOWER_NONE) return pd_tower_fail_none(m->checkpoint, &m->config);
    PD_TRY(pd_tower_check(&totals, &model->tower_config, from));
    if (p->link && m->config.per_layer_dim)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s sees no images where several ranks hold its layers, as each has "
                       "inputs of its own", m->config.name);
    m->config.image_sight = model->tower_config.sight;
    if (!p->image_rows || model->tower_config.image_size) return PERIDOT_OK;
    if (p->image_rows > PD_TOWER_MOST_ROWS)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "%u rows of an image are more than %d", p->image_rows,
                       PD_TOWER_MOST_ROWS);
    model->tower_config.most_rows = p->image_rows;
    return PERIDOT_OK;
}

static peridot_status open_tower(peridot_model *model, const peridot_model_params *p)
{
    peridot_status status = find_tower(model, p);
    if (status == PERIDOT_OK || status == PERIDOT_ERROR_MEMORY) return status;
    model->tower_config.kind = PD_TOWER_NONE;
    snprintf(model->tower_error, sizeof model->tower_error, "%s", pd_error());
    return p->vision && *p->vision && !p->vision_optional ? status : PERIDOT_OK;
}

static peridot_status create_tower(peridot_model *model, const peridot_model_params *p)
{
    struct pd_model *m = &model->m;
    if (model->tower_config.kind == PD_TOWER_NONE) return PERIDOT_OK;
    PD_TRY(pd_images_create(&m->images));
    return pd_tower_create(&m->tower, m->gpu, &m->variants, m->tower_checkpoint ? m->tower_checkpoint : m->checkpoint,
                           &model->tower_config, p->gpu_memory == 0);
}

/* Files before the device: what is wrong with them is said at once, and where there is none. */
static peridot_status open_parts(peridot_model *model, const char *path, const peridot_model_params *p)
{
    struct pd_model *m = &model->m;
    model->log = (struct pd_logger){p->log, p->user};
    if (p->link) PD_TRY(model_open_link(m, p->link));
    PD_TRY(pd_checkpoint_open(&m->checkpoint, path, true));
    PD_TRY(pd_config_read(&m->config, m->checkpoint));
    if (p->block) PD_TRY(pd_config_take_block(&m->config, m->checkpoint));
    PD_TRY(open_tower(model, p));
    PD_TRY(open_gpu(model, p));
    PD_TRY(pd_variants_choose(&m->variants, pd_gpu_info(m->gpu), p->precision, p->kernels,
                              p->n_kernels));
    pd_tunings_read(&m->tunings, pd_gpu_info(m->gpu), p->cache_dir);
    PD_TRY(create_tower(model, p));
    struct pd_load_params load = {.gpu_memory = p->gpu_memory, .progress = p->progress, .user = p->user};
    PD_TRY(choose_layers(&load, m));
    PD_TRY(pd_weights_load(&m->weights, m->gpu, &m->config, m->checkpoint, &load));
    PD_TRY(pd_adapters_load(&m->adapters, &m->weights, m->gpu, &m->config, p->adapters, p->n_adapters));
    m->hash = pd_checkpoint_hash(m->checkpoint);
    if (m->config.nextn_at) {
        m->weights.output = model->target->m.weights.output;
        m->weights.n_outputs = model->target->m.weights.n_outputs;
    }
    PD_TRY(open_vocab(model, m->checkpoint));
    PD_TRY(pd_recommended_read(&model->recommended, m->checkpoint));
    if (model->target) m->n_pieces = (uint32_t)pd_min(model->target->m.n_pieces, m->weights.n_outputs);
    PD_TRY(pd_checkpoint_check(PERIDOT_OK, m->checkpoint));
    PD_TRY(pd_ranks_open(m));
    describe_model(model);
    log_model(model, p->cache_dir);
    return PERIDOT_OK;
}

peridot_status peridot_model_open(peridot_model **out, const char *path, const peridot_model_params *params)
{
    peridot_model_params known;
    *out = NULL;
    if (!path) return pd_fail(PERIDOT_ERROR_ARGUMENT, "no model was named");
    PD_TRY(PD_PARAMS_READ(known, params));
    peridot_model *model = calloc(1, sizeof *model);
    if (!model) return pd_fail_alloc(sizeof *model, "model");
    peridot_status status = open_parts(model, path, &known);
    if (status != PERIDOT_OK) {
        if (model->m.link) pd_link_tell_failure(model->m.link, status);
        peridot_model_close(model);
        return status;
    }
    *out = model;
    return PERIDOT_OK;
}

void peridot_model_close(peridot_model *model)
{
    if (!model || !pd_refs_drop(&model->refs)) return;
    pd_ranks_close(&model->m);
    pd_link_free(model->m.link);
    peridot_vocab_close(model->vocab);
    pd_images_leave(model->m.images, model->m.tower);
    pd_tower_free(model->m.tower);
    pd_images_free(model->m.images);
    pd_observed_free(model->observed);
    pd_adapters_free(&model->m.adapters, &model->m.config);
    if (model->m.gpu) pd_weights_free(&model->m.weights, &model->m.config);
    if (!model->target) pd_gpu_close(model->m.gpu);
    pd_config_free(&model->m.config);
    pd_checkpoint_close(model->m.checkpoint);
    pd_checkpoint_close(model->m.tower_checkpoint);
    peridot_model_close(model->target);
    free(model);
}

peridot_status peridot_model_work(peridot_model *model) { return pd_worker_run(&model->m); }

const peridot_model_info *peridot_model_get_info(const peridot_model *model) { return &model->info; }

const char *peridot_model_label(const peridot_model *model, uint32_t i)
{
    return i < model->m.config.n_labels ? model->m.config.labels[i] : NULL;
}

const char *peridot_model_adapter(const peridot_model *model, uint32_t i, float *scale)
{
    const struct pd_adapters *a = &model->m.adapters;
    if (scale) *scale = i < a->n ? a->scales.of[i] : 0;
    return i < a->n ? a->at[i].name : NULL;
}

uint32_t peridot_model_recommends(const peridot_model *model, peridot_sampling *sampling, uint32_t keep,
                                  const char **ignored)
{
    return pd_recommended_take(&model->recommended, sampling, keep, ignored);
}

const peridot_vocab *peridot_model_vocab(const peridot_model *model)
{
    if (model->vocab) return model->vocab;
    pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s", model->vocab_error);
    return NULL;
}

bool peridot_is_stop(const peridot_model *model, int32_t token)
{
    return model->vocab && pd_tokenizer_is_stop(model->vocab->tokenizer, token);
}

uint64_t peridot_model_memory(const peridot_model *model) { return pd_gpu_allocated(model->m.gpu); }

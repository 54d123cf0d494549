/* The public functions of models and sessions: they check arguments, own handles and call the layers. Vocabularies and
 * files are in vocab.c and file.c. */
#include "api/vocab.h"
#include "base/num.h"
#include "base/os.h"
#include "engine/session.h"
#include "probe/measure.h"
#include "probe/pipelines.h"
#include "probe/tune.h"
#include "selftest/selftest.h"
#include "text/stop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct peridot_model {
    struct pd_model m;
    struct peridot_vocab vocab;        /* tokenizer NULL: the files hold none */
    char vocab_error[512];             /* why */
    peridot_model_info info;
    char types[128], kernels[128], tuning[512];
};

struct peridot_session {
    struct pd_session *s;
    peridot_model *model;
};

const char *peridot_last_error(void) { return pd_error(); }
void peridot_free(void *p) { free(p); }

peridot_status peridot_devices(peridot_device_info **out, size_t *n) { return pd_gpu_list(out, n); }

bool peridot_device_variant(peridot_variant *out, const peridot_device_info *device, size_t i) { return pd_variants_at(out, device, i); }

/* ---- model ---- */

/* "q8_0, f32", most matrices first. */
static void describe_types(char *out, size_t size, const uint32_t counts[PD_N_DTYPES])
{
    uint32_t left[PD_N_DTYPES];
    size_t at = 0;
    memcpy(left, counts, sizeof left);
    out[0] = 0;
    for (;;) {
        int best = 0;
        for (int i = 1; i < PD_N_DTYPES; i++)
            if (left[i] > left[best]) best = i;
        if (!left[best] || at >= size) return;
        at += (size_t)snprintf(out + at, size - at, "%s%s", at ? ", " : "", pd_dtypes[best].name);
        left[best] = 0;
    }
}

static void describe_model(peridot_model *model)
{
    const struct pd_config *c = &model->m.config;
    const struct pd_weights *w = &model->m.weights;
    describe_types(model->types, sizeof model->types, w->type_counts);
    pd_variants_text(model->kernels, sizeof model->kernels, &model->m.variants);
    pd_tunings_text(model->tuning, sizeof model->tuning, &model->m);
    model->info = (peridot_model_info){.name = c->name, .family = pd_families[c->family].name, .types = model->types,
        .n_layers = c->n_layers, .d_model = c->d_model, .ffn_dim = c->ffn_dim, .n_heads = c->n_heads, .n_kv_heads = c->n_kv_heads,
        .head_dim = c->head_dim, .window = c->window, .ctx_max = c->ctx_max, 
        .vocab_size = w->vocab_size, .n_outputs = w->n_outputs, .head = (peridot_head)c->head, .n_params = w->n_params,
        .weights_size = w->size, .in_place_size = w->in_place_size, .host_resident_size = w->host_resident_size, .n_host_resident_layers = w->n_host_resident_layers,
        .decode_host_resident_size = w->decode_host_resident_size,
        .n_ignored_tensors = w->n_ignored, .decode_read_size = w->decode_read_size, .device = *pd_gpu_info(model->m.gpu),
        .device_reason = pd_gpu_reason(model->m.gpu), .kernels = model->kernels, .tuning = model->tuning,
        .untuned = pd_tune_is_due(&model->m)};
    bool wrong[PD_N_KERNELS];
    for (int id = 0; id < PD_N_KERNELS; id++) wrong[id] = pd_kernel_is_wrong(model->m.gpu, (enum pd_kernel_id)id);
    pd_verdict_text(&model->info.verdict, wrong);
}

/* A model without a tokenizer still evaluates ids; who asks for its vocabulary learns why there is none. */
static peridot_status open_vocab(peridot_model *model, const struct pd_checkpoint *checkpoint)
{
    model->m.n_pieces = model->m.weights.n_outputs;
    if (pd_tokenizer_from_checkpoint(&model->vocab.tokenizer, checkpoint) != PERIDOT_OK) {
        snprintf(model->vocab_error, sizeof model->vocab_error, "%s", pd_error());
        return PERIDOT_OK;
    }
    /* Rows beyond the pieces never win; pieces beyond the rows (an image token without a text row) are never drawn. */
    model->m.n_pieces = (uint32_t)pd_min(pd_tokenizer_size(model->vocab.tokenizer), model->m.weights.n_outputs);
    return PERIDOT_OK;
}

static peridot_status open_parts(peridot_model *model, const char *path, const peridot_model_params *p)
{
    struct pd_model *m = &model->m;
    struct pd_load_progress progress = {p->progress, p->user};
    PD_TRY(pd_checkpoint_open(&m->checkpoint, path, true));
    PD_TRY(pd_config_read(&m->config, m->checkpoint));
    PD_TRY(pd_gpu_open(&m->gpu, p->device, p->cache_dir));
    PD_TRY(pd_variants_choose(&m->variants, pd_gpu_info(m->gpu), p->kernels, p->n_kernels));
    pd_tunings_read(&m->tunings, pd_gpu_info(m->gpu), p->cache_dir);
    m->variants.tunings = &m->tunings;
    bool lanes_take_rows = m->variants.of[PD_VARIED_MATVEC] == PD_VARIANT_MATVEC_ROWS;
    PD_TRY(pd_weights_load(&m->weights, m->gpu, &m->config, m->checkpoint, lanes_take_rows, p->gpu_memory, progress));
    PD_TRY(open_vocab(model, m->checkpoint));
    describe_model(model);
    return PERIDOT_OK;
}

peridot_status peridot_model_open(peridot_model **out, const char *path, const peridot_model_params *params)
{
    static const peridot_model_params none = {0};
    *out = NULL;
    if (!path) return pd_fail(PERIDOT_ERROR_ARGUMENT, "no model was named");
    peridot_model *model = calloc(1, sizeof *model);
    if (!model) return pd_fail_alloc(sizeof *model, "model");
    peridot_status status = open_parts(model, path, params ? params : &none);
    if (status != PERIDOT_OK) {
        peridot_model_close(model);
        return status;
    }
    *out = model;
    return PERIDOT_OK;
}

void peridot_model_close(peridot_model *model)
{
    if (!model) return;
    pd_tokenizer_close(model->vocab.tokenizer);
    if (model->m.gpu) pd_weights_free(&model->m.weights, &model->m.config);
    pd_gpu_close(model->m.gpu);
    pd_config_free(&model->m.config);
    pd_checkpoint_close(model->m.checkpoint);
    free(model);
}

const peridot_model_info *peridot_model_get_info(const peridot_model *model) { return &model->info; }

const char *peridot_model_label(const peridot_model *model, uint32_t i)
{
    return i < model->m.config.n_labels ? model->m.config.labels[i] : NULL;
}

const peridot_vocab *peridot_model_vocab(const peridot_model *model)
{
    if (model->vocab.tokenizer) return &model->vocab;
    pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s", model->vocab_error);
    return NULL;
}

bool peridot_is_stop(const peridot_model *model, int32_t token)
{
    return model->vocab.tokenizer && pd_tokenizer_is_stop(model->vocab.tokenizer, token);
}

/* ---- session ---- */

peridot_status peridot_session_create(peridot_session **out, peridot_model *model, const peridot_session_params *params)
{
    *out = calloc(1, sizeof **out);
    if (!*out) return pd_fail_alloc(sizeof **out, "session");
    (*out)->model = model;
    peridot_status status = pd_session_create(&(*out)->s, &model->m, params);
    if (status != PERIDOT_OK) {
        free(*out);
        *out = NULL;
    }
    return status;
}

void peridot_session_free(peridot_session *session)
{
    if (!session) return;
    pd_session_free(session->s);
    free(session);
}

uint32_t peridot_session_ctx(const peridot_session *session) { return session->s->ctx; }
uint32_t peridot_session_pos(const peridot_session *session) { return session->s->pos; }

const int32_t *peridot_session_tokens(const peridot_session *session) { return session->s->history; }

uint32_t peridot_session_n_dispatches(const peridot_session *session) { return pd_session_n_dispatches(session->s); }

void peridot_session_reset(peridot_session *session) { pd_session_truncate(session->s, 0); }

peridot_status peridot_session_truncate(peridot_session *session, uint32_t n) { return pd_session_truncate(session->s, n); }

peridot_status peridot_eval(peridot_session *session, const int32_t *tokens, size_t n, const peridot_eval_params *params)
{
    if (n && !tokens) return pd_fail(PERIDOT_ERROR_ARGUMENT, "no tokens were given");
    return pd_session_eval(session->s, tokens, n, params);
}

peridot_status peridot_session_select(peridot_session *session, uint32_t sequence) { return pd_session_select(session->s, sequence); }

peridot_status peridot_eval_next(peridot_session *session, const int32_t *tokens)
{
    if (!tokens) return pd_fail(PERIDOT_ERROR_ARGUMENT, "no tokens were given");
    return pd_session_eval_next(session->s, tokens);
}

peridot_status peridot_eval_batch(peridot_session *session, const peridot_sequence *sequences, size_t n, const peridot_batch_params *params)
{
    if (!params || (n && !sequences)) return pd_fail(PERIDOT_ERROR_ARGUMENT, "no texts were given, or nothing to report");
    return pd_session_eval_batch(session->s, sequences, n, params);
}

uint32_t peridot_session_chunk(const peridot_session *session) { return session->s->chunk; }

peridot_status peridot_logits(const float **out, peridot_session *session) { return pd_session_logits(out, session->s); }

void peridot_set_sampling(peridot_session *session, const peridot_sampling *sampling)
{
    pd_session_forget(session->s);   /* steps drew with the chain that was */
    pd_sampler_set(&session->s->sampler, sampling);
}

peridot_status peridot_sample(int32_t *token, peridot_session *session) { return pd_session_sample(token, session->s); }

/* ---- measuring ---- */

peridot_status peridot_measure(peridot_rates *out, peridot_model *model) { return pd_measure(out, model->m.gpu); }

peridot_status peridot_tune(peridot_model *model, const char *cache_dir, double max_s, peridot_tuned_call call, void *user)
{
    peridot_status status = pd_tune(&model->m, cache_dir, max_s, call, user);
    pd_tunings_text(model->tuning, sizeof model->tuning, &model->m);
    model->info.untuned = pd_tune_is_due(&model->m);
    return status;
}

peridot_status peridot_session_profile(peridot_kernel_time **out, size_t *n, peridot_session *session, uint32_t n_tokens)
{
    return pd_session_profile(out, n, session->s, n_tokens);
}

peridot_status peridot_pipelines(const char *device, peridot_device_info *info, peridot_pipeline_call call, void *user)
{
    struct pd_gpu *gpu;
    if (!call) return pd_fail(PERIDOT_ERROR_ARGUMENT, "nobody is there to report pipelines to");
    PD_TRY(pd_gpu_open_compiler(&gpu, device));
    if (info) *info = *pd_gpu_info(gpu);
    peridot_status status = pd_pipelines_compile(gpu);
    if (status == PERIDOT_OK) status = pd_pipelines_report(gpu, call, user);
    pd_gpu_close(gpu);
    return status;
}

uint64_t peridot_model_memory(const peridot_model *model) { return pd_gpu_allocated(model->m.gpu); }

/* ---- generate ---- */

struct generation {
    peridot_session *session;
    struct pd_stream stream;
    struct pd_text_buffer buffer;
    struct pd_stop stop;
    peridot_text text;
    void *user;
    bool stopped;
};

/* Hands on the text that a token completes; -1 flushes. */
static peridot_status emit(struct generation *g, int32_t token)
{
    const struct pd_tokenizer *tokenizer = g->session->model->vocab.tokenizer;
    const char *text;
    size_t size;
    g->buffer.size = 0;
    if (tokenizer) PD_TRY(pd_stream_next(&g->stream, &g->buffer, tokenizer, token));
    PD_TRY(pd_stop_next(&text, &size, &g->stop, g->buffer.data, g->buffer.size, token < 0));
    if (g->text && !g->text(g->user, token, text, size)) g->stopped = true;
    if (g->stop.found) g->stopped = true;
    return PERIDOT_OK;
}

/* Samples, hands on and evaluates until something says stop. */
static peridot_status write_on(struct generation *g, uint32_t n_max, double start, peridot_stats *stats)
{
    struct pd_session *s = g->session->s;
    double decode_start = pd_now();
    int32_t token = 0;
    if (n_max) PD_TRY(pd_session_sample(&token, s));
    while (stats->n_generated < n_max && !peridot_is_stop(g->session->model, token)) {
        stats->n_generated++;
        PD_TRY(emit(g, token));
        if (stats->n_generated == 1) stats->first_token_s = pd_now() - start;
        if (g->stopped || stats->n_generated == n_max || s->pos == s->ctx) break;
        stats->decode_read_size += pd_session_step_size(s);
        PD_TRY(pd_session_follow(&token, s, token, n_max - stats->n_generated));
        stats->decode_s = pd_now() - decode_start;
    }
    return emit(g, -1);
}

peridot_status peridot_generate(peridot_session *session, const int32_t *prompt, size_t n_prompt, uint32_t n_max,
                                peridot_text text, void *user, peridot_stats *stats)
{
    peridot_stats unused;
    const peridot_sampling *sampling = &session->s->sampler.p;
    struct generation g = {.session = session, .text = text, .user = user, .stop = {.texts = sampling->stop, .n = sampling->n_stop}};
    g.stream.started = n_prompt > 1;   /* a continuation keeps its first space; after bos alone the text begins */
    double start = pd_now();
    stats = stats ? stats : &unused;
    *stats = (peridot_stats){.n_prompt = (uint32_t)n_prompt};
    PD_TRY(peridot_eval(session, prompt, n_prompt, NULL));
    stats->prompt_s = pd_now() - start;
    peridot_status status = write_on(&g, n_max, start, stats);
    pd_session_forget(session->s);
    free(g.buffer.data);
    free(g.stop.held.data);
    return status;
}

/* A session: what sequences of one model share, and the calls that evaluate them. All memory of the device is taken
 * when it is created: a pass allocates nothing. */
#include "engine/rounds/rounds.h"

#include "arch/arch.h"
#include "base/base.h"
#include "engine/pass/pass.h"
#include "engine/sequence/sequence.h"
#include "engine/memory/memory.h"

#include <stdlib.h>

#define DEFAULT_CTX 8192
#define DEFAULT_CTX_WHOLE 2048   /* where a text is one chunk, whose activations take memory */
#define DEFAULT_CHUNK 256
#define FEW_STATES 2   /* of a draft whose length is automatic: each takes as much memory as one of a sequence */
#define DRAW_SECONDS 0.02   /* masks over 256,000 pieces: 0.3 to 6 ms, 108 ms at worst */
#define DRAW_STEPS 200000   /* some 1 ms */
#define DEFAULT_SNAPSHOT_SIZE ((uint64_t)1 << 30)   /* eight turns of 300 tokens, of models with 12 billion weights */

static uint32_t default_ctx(const struct pd_config *c)
{
    return (uint32_t)pd_min(c->ctx_max, c->bidirectional ? DEFAULT_CTX_WHOLE : DEFAULT_CTX);
}

/* A dispatch has a workgroup for each row, each of a row's inputs of layers, or each of its experts. */
static uint32_t max_chunk(const struct pd_config *c)
{
    uint64_t each = pd_max(pd_layers_largest(c).n_experts_used, c->per_layer_dim ? c->n_layers : 1);
    return (uint32_t)(65535 / pd_max(each, 1));
}

static uint32_t chunk_of(const struct pd_config *c, uint32_t chunk, uint32_t ctx)
{
    return c->bidirectional ? ctx : (uint32_t)pd_min(chunk ? chunk : DEFAULT_CHUNK, ctx);
}

uint64_t pd_session_cache_size(const struct pd_config *c, uint32_t ctx, peridot_kv_type type)
{
    if (ctx == 0) ctx = default_ctx(c);
    uint32_t chunk = chunk_of(c, 0, ctx);
    struct pd_cache_shape shape = {.n_tables = 1, .ctx = ctx, .n_positions = ctx, .type = type,
        .slack = 2 * (uint32_t)pd_max(chunk, PD_N_STEPS), .n_snapshots = PD_N_DEVICE_SNAPSHOTS};
    return pd_cache_size(c, &shape);
}

/* ---- creating ---- */

/* Few rows and many may take different kernels. */
peridot_status pd_session_prewarm(struct pd_session *s)
{
    const struct pd_workspace *w = &s->workspace;
    const struct pd_weights *weights = &s->model->weights;
    uint32_t draws = s->model->config.head == PERIDOT_HEAD_LANGUAGE && !s->model->link;
    uint32_t n_heads = weights->n_outputs != 0, n_rows = (uint32_t)pd_min(PD_LOGITS_ROWS, s->chunk);
    const struct pd_pass_shape shapes[] = {
        {.n_rows = 1, .n_steps = 1, .draws = draws}, {.n_rows = 2, .n_steps = 2, .draws = draws},
        {.n_rows = 2, .n_steps = 2, .consecutive = s->n_draft != 0},
        {.n_rows = 2, .n_heads = n_heads}, {.n_rows = s->chunk, .n_heads = n_heads}};
    for (size_t i = 0; i < PD_COUNT(shapes); i++) {
        if (shapes[i].n_rows > (shapes[i].n_steps ? w->n_decode : s->chunk)) continue;
        PD_TRY(pd_pass_compile(shapes[i].n_steps ? s->decoder.passes : &s->prefill.chunks[0].pass, &shapes[i]));
    }
    return n_heads && weights->has_output ? pd_pass_compile_logits(&s->prefill.chunks[0].pass, n_rows) : PERIDOT_OK;
}

/* Everything is compiled here, so that no step has to. */
static peridot_status session_compile(struct pd_session *s, const peridot_session_params *p)
{
    pd_kernels_defer(s->model->gpu);
    peridot_status asked = pd_session_prewarm(s);
    peridot_status compiled = pd_kernels_compile_deferred(s->model->gpu, p->compiling, p->user);
    if (compiled == PERIDOT_OK) compiled = pd_kernels_warm(s->model->gpu, p->compiling, p->user);
    return asked != PERIDOT_OK ? asked : compiled;
}

/* Rows of a step: where the length of drafts is automatic, twice those that are multiplied at once. */
static peridot_status read_draft(struct pd_session *s, uint32_t n_draft)
{
    uint32_t n_columns = 2 * pd_decode_columns(&s->model->variants), n_max = s->set.n_max;
    bool automatic = n_draft == PERIDOT_DRAFT_AUTO;
    if (n_draft && s->model->config.head != PERIDOT_HEAD_LANGUAGE)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "drafts are only for language models");
    if (n_draft && s->model->link)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED,
                       "drafts are not supported where several ranks hold the model's layers");
    if (n_draft > PD_MAX_DRAFT && !automatic)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "a draft of %u tokens is longer than the limit of %d", n_draft,
                       PD_MAX_DRAFT);
    s->n_draft = automatic ? n_columns - 1 : n_draft;
    if (automatic && pd_layers_recurrence(&s->model->config)) s->n_draft = (uint32_t)pd_min(s->n_draft, FEW_STATES);
    uint64_t n = automatic ? pd_max(n_columns, n_max) : (uint64_t)n_max * (1 + n_draft);
    s->workspace.n_decode = n_draft ? (uint32_t)pd_min(n, PD_MAX_SEQUENCES) : n_max;
    s->set.slack = (uint32_t)pd_max(s->set.slack, 1 + s->n_draft);
    return PERIDOT_OK;
}

/* Rows of a chunk that must be there: all of an image, beside a step of the other sequences. */
static uint32_t rows_of(const struct pd_session *s)
{
    const struct pd_tower *tower = s->model->tower;
    uint32_t most = tower ? pd_tower_config_of(tower)->most_rows + s->set.n_max : 0;
    return (uint32_t)pd_max(s->chunk, most);
}

static peridot_status read_params(struct pd_session *s, const peridot_session_params *p)
{
    const struct pd_config *c = &s->model->config;
    s->ctx = p->ctx ? p->ctx : default_ctx(c);
    if (s->ctx > c->ctx_max)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "a context of %u positions is more than the model's %u", s->ctx,
                       c->ctx_max);
    s->chunk = chunk_of(c, p->chunk, s->ctx);
    if (s->chunk > max_chunk(c))
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "a chunk of %u tokens is more than %u", s->chunk, max_chunk(c));
    if ((uint32_t)p->kv_type >= PD_N_KV_TYPES)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "KV type %d is not known", (int)p->kv_type);
    if (p->n_sequences > PD_MAX_SEQUENCES)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "%u sequences are more than the limit of %d", p->n_sequences,
                       PD_MAX_SEQUENCES);
    s->set.n_max = (uint32_t)pd_max(p->n_sequences, 1);
    s->set.ctx = s->ctx;
    s->set.scales = s->model->adapters.scales;
    s->set.slack = (uint32_t)pd_max(rows_of(s), PD_N_STEPS);   /* keys that may be written before older ones are read
                                                                again */
    return read_draft(s, p->n_draft);
}

/* The other ranks make a session with the same numbers of pages. */
static peridot_status announce(struct pd_session *s, const peridot_session_params *p)
{
    const struct pd_message m = {.op = PD_OP_CREATE_SESSION, .size = sizeof *p};
    if (s->model->in_use)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED,
                       "where several ranks hold the model's layers it can have one session at a time");
    s->announced = s->model->in_use = true;
    return pd_link_ask(s->model->link, &m, p, NULL, 0);
}

static peridot_status session_init(struct pd_session *s, const peridot_session_params *p)
{
    struct pd_heap *input_heap;
    bool leads = pd_link_leads(s->model->link);
    PD_TRY(pd_gpu_check(s->model->gpu));
    PD_TRY(read_params(s, p));
    uint64_t n_positions = p->n_positions ? p->n_positions : (uint64_t)s->set.n_max * s->ctx;
    struct pd_cache_shape shape = {.n_tables = s->set.n_max,
                                   .ctx = s->ctx,
                                   .n_positions = (uint32_t)pd_min(n_positions, UINT32_MAX),
                                   .slack = 2 * s->set.slack,
                                   .n_draft = s->n_draft,
                                   .n_snapshots = PD_N_DEVICE_SNAPSHOTS,
                                   .type = p->kv_type,
                                   .first_layer = s->model->weights.first_layer,
                                   .end_layer = s->model->weights.end_layer,
                                   .link = leads ? s->model->link : NULL,
                                   .host_max = p->snapshot_size ? p->snapshot_size : DEFAULT_SNAPSHOT_SIZE};
    PD_TRY(pd_heap_create(&input_heap, s->model->gpu, PD_HEAP_INPUT, 1u << 20));
    s->workspace.input_heap = input_heap;
    PD_TRY(pd_cache_create(&s->set.cache, s->model->gpu, &s->model->config, &shape, input_heap));
    s->workspace.n_sequences = s->set.n_max;
    s->workspace.n_spare = PD_LOGITS_ROWS;
    s->workspace.n_rows = (uint32_t)pd_max(rows_of(s), s->workspace.n_decode);
    PD_TRY(pd_workspace_create(&s->workspace, s->model, &s->set.cache));
    if (leads) PD_TRY(pd_stage_create(&s->stage, &s->workspace));
    PD_TRY(pd_decoder_create(&s->decoder, &s->workspace, leads ? &s->stage : NULL));
    PD_TRY(pd_prefill_create(&s->prefill, &s->workspace, leads ? &s->stage : NULL, s->chunk, rows_of(s)));
    PD_TRY(session_compile(s, p));
    PD_TRY(pd_decoder_record(&s->decoder));
    return leads ? announce(s, p) : PERIDOT_OK;
}

peridot_status pd_session_create(struct pd_session **out, struct pd_model *model, const peridot_session_params *params)
{
    *out = NULL;
    struct pd_session *s = calloc(1, sizeof *s);
    if (!s) return pd_fail_alloc(sizeof *s, "session");
    s->model = model;
    s->draw_most_s = DRAW_SECONDS;
    s->draw_steps = DRAW_STEPS;
    peridot_status status = session_init(s, params ? params : &(peridot_session_params){0});
    if (status != PERIDOT_OK) {
        pd_session_free(s);
        return status;
    }
    *out = s;
    return PERIDOT_OK;
}

peridot_status pd_session_set_drafter(struct pd_session *s, const struct pd_model *drafter)
{
    PD_TRY(pd_drafter_check(drafter, s->model));
    PD_TRY(pd_drafter_add_keys(&s->set.cache, drafter, s->model));
    PD_TRY(pd_drafter_create(&s->drafter, drafter, &s->decoder));
    for (uint32_t i = 0; drafter->config.nextn_at && i < s->decoder.n_passes; i++)
        PD_TRY(pd_input_keep_before(&s->decoder.passes[i].input, &s->workspace));
    for (uint32_t i = 0; drafter->config.nextn_at && i < PD_COUNT(s->prefill.chunks); i++)
        PD_TRY(pd_input_keep_before(&s->prefill.chunks[i].pass.input, &s->workspace));
    return pd_decoder_record(&s->decoder);
}

void pd_session_free(struct pd_session *s)
{
    if (!s) return;
    pd_drafter_free(s->drafter);
    pd_decoder_free(&s->decoder);   /* waits for steps that are at work */
    pd_prefill_free(&s->prefill);
    for (uint32_t i = 0; i < s->set.n_max; i++) pd_sequence_free(s->set.at[i]);
    pd_cache_free(&s->set.cache);
    pd_stage_free(&s->stage);
    pd_workspace_free(&s->workspace);
    if (s->announced) {
        pd_link_tell(s->model->link, PD_OP_FREE_SESSION, 0, 0, 0);
        s->model->in_use = false;
    }
    free(s);
}

uint32_t pd_session_n_dispatches(const struct pd_session *s)
{
    return pd_commands_n_dispatches(s->decoder.passes[0].commands);
}

/* ---- sequences ---- */

/* Steps that were discarded write keys by the tables of pages, which must not be others' by then. */
peridot_status pd_session_add(struct pd_sequence **out, struct pd_session *s)
{
    *out = NULL;
    PD_TRY(pd_decoder_wait(&s->decoder));
    return pd_sequence_create(out, &s->set);
}

peridot_status pd_session_fork(struct pd_sequence **out, struct pd_session *s, const struct pd_sequence *q, uint32_t n)
{
    *out = NULL;
    PD_TRY(pd_decoder_wait(&s->decoder));
    return pd_sequence_fork(out, q, n);
}

peridot_status pd_session_load(struct pd_sequence **out, struct pd_session *s, const char *path)
{
    *out = NULL;
    PD_TRY(pd_check_whole(s->model, "sequences cannot be loaded"));
    PD_TRY(pd_decoder_wait(&s->decoder));
    return pd_sequence_load(out, &s->set, s->model, path);
}

peridot_status pd_session_truncate(struct pd_session *s, struct pd_sequence *q, uint32_t n, uint32_t *kept)
{
    *kept = q->pos;
    pd_decoder_leave(&s->decoder, q);
    PD_TRY(pd_decoder_wait(&s->decoder));
    return pd_sequence_truncate(q, n, kept);
}

void pd_session_remove(struct pd_session *s, struct pd_sequence *q)
{
    pd_decoder_leave(&s->decoder, q);
    pd_sequence_free(q);
}

peridot_status pd_session_choose_adapters(struct pd_scales *out, const struct pd_session *s,
                                          const peridot_adapter *adapters, size_t n)
{
    PD_TRY(pd_adapters_choose(out, &s->model->adapters, adapters, n));
    if (!s->model->link || pd_scales_equal(out, &s->set.scales)) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "where several ranks hold the model's layers all sequences take the "
                                              "adapters that the model was opened with");
}

peridot_status pd_session_set_adapters(const struct pd_session *s, struct pd_sequence *q,
                                       const peridot_adapter *adapters, size_t n)
{
    struct pd_scales scales;
    PD_TRY(pd_session_choose_adapters(&scales, s, adapters, n));
    if (q->pos && !pd_scales_equal(&scales, &q->scales))
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "the sequence has %u token%s already, of other adapters", q->pos,
                       PD_S(q->pos));
    q->scales = scales;
    return PERIDOT_OK;
}

peridot_status pd_session_set_sampling(struct pd_session *s, struct pd_sequence *q, const peridot_sampling *p)
{
    struct pd_chain *chain;
    PD_TRY(pd_chain_create(&chain, p));
    pd_decoder_leave(&s->decoder, q);   /* steps drew with the chain that was */
    pd_next_mask_drop(&q->next_mask);
    pd_sampler_set(&q->sampler, chain ? &chain->p : p);
    pd_chain_free(q->chain);
    q->chain = chain;
    return PERIDOT_OK;
}

/* ---- results ---- */

/* Where a recurrence no longer has the state before the last token: all is evaluated again from where one is left. */
static peridot_status read_again(struct pd_session *s, struct pd_sequence *q)
{
    uint32_t n = q->pos, kept = n;
    atomic_bool never = false;
    int32_t *tokens = malloc(n * sizeof *tokens);
    if (!tokens) return pd_fail_alloc(n * sizeof *tokens, "tokens");
    memcpy(tokens, q->tokens, n * sizeof *tokens);
    peridot_status status = pd_decoder_yield(&s->decoder);
    if (status == PERIDOT_OK) status = pd_sequence_truncate(q, n - 1, &kept);
    struct pd_prompt prompt = {.sequence = q, .tokens = tokens + kept, .n_left = n - kept};
    if (status == PERIDOT_OK) status = pd_prefill_run(&s->prefill, &prompt, 1, NULL, &never);
    free(tokens);
    return status;
}

/* Evaluates the last token once more. Where that fails the sequence still has it. */
static peridot_status decode_again(struct pd_session *s, struct pd_sequence *q)
{
    int32_t last = q->tokens[q->pos - 1];
    if (pd_is_image_row(last))
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "the sequence ends in an image, whose logits are gone");
    if (!pd_states_have(&s->set.cache, &q->pages, q->pos - 1)) return read_again(s, q);
    q->pos--;
    q->sampler.n_seen--;
    peridot_status status = pd_decode(&s->decoder, &q, &last, 1);
    if (status != PERIDOT_OK) pd_sequence_append(q, &last, 1);
    return status;
}

static peridot_status check_logits(const struct pd_session *s, const struct pd_sequence *q)
{
    PD_TRY(pd_gpu_check(s->model->gpu));
    PD_TRY(pd_check_head(s->model));
    return q->logits_pass ? PERIDOT_OK : pd_fail(PERIDOT_ERROR_ARGUMENT, "no token has been evaluated yet");
}

peridot_status pd_session_logits(const float **out, struct pd_session *s, struct pd_sequence *q)
{
    *out = NULL;
    PD_TRY(check_logits(s, q));
    if (!pd_has_logits(&s->workspace, q)) PD_TRY(decode_again(s, q));
    PD_TRY(pd_workspace_read_logits(&s->workspace, q->logits_row, 1));
    PD_TRY(pd_check_finite(s->model, "logits", q->pos - 1, s->workspace.host_rows, s->model->weights.n_outputs));
    *out = s->workspace.host_rows;
    return PERIDOT_OK;
}

/* Those of the last of several ranks stay there: they are computed again. */
peridot_status pd_session_keep_logits(struct pd_session *s, struct pd_sequence *q)
{
    struct pd_workspace *w = &s->workspace;
    uint32_t row = pd_own_row(q);
    uint64_t size = (uint64_t)w->logits.stride * sizeof(float);
    if (!pd_has_logits(w, q) || q->logits_row == row || s->model->link) return PERIDOT_OK;
    PD_TRY(pd_commands_begin(w->head_commands));
    pd_copy(w->head_commands, w->logits_span, row * size, w->logits_span, q->logits_row * size, size);
    uint64_t hidden_size = (uint64_t)w->hidden.stride * sizeof(float);
    if (hidden_size)
        pd_copy(w->head_commands, w->hidden_span, row * hidden_size, w->hidden_span, q->logits_row * hidden_size,
                hidden_size);
    PD_TRY(pd_commands_end(w->head_commands));
    PD_TRY(pd_commands_run(w->head_commands));
    q->logits_row = row;
    w->written_by[row] = q->logits_pass;
    return PERIDOT_OK;
}

peridot_status pd_session_sample(int32_t *token, struct pd_session *s, struct pd_sequence *q)
{
    const float *logits = NULL;
    *token = 0;
    pd_decoder_leave(&s->decoder, q);   /* a draw moves the generator */
    PD_TRY(check_logits(s, q));
    if (s->model->config.head != PERIDOT_HEAD_LANGUAGE)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "this model scores labels: it cannot write text");
    if (pd_draw_needs_logits(s->model, q)) PD_TRY(pd_session_logits(&logits, s, q));
    return pd_draw(token, &s->workspace, q, logits);
}

peridot_status pd_session_sample_some(bool *drawn, int32_t *token, struct pd_session *s, struct pd_sequence *q)
{
    double begun = pd_now();
    peridot_status status = pd_draw_prepare(drawn, s->model, q, s->draw_steps);
    if (status == PERIDOT_OK && *drawn) status = pd_session_sample(token, s, q);
    s->draw_s += pd_now() - begun;
    return status;
}

uint64_t pd_session_step_size(const struct pd_session *s, uint32_t n, uint32_t pos)
{
    const struct pd_config *c = &s->model->config;
    peridot_kv_type type = s->set.cache.type;
    uint64_t size = s->model->weights.decode_read_size;
    for (uint32_t i = 0; i < c->n_layers; i++) {
        const struct pd_layer *layer = &c->layers[i];
        if (pd_layer_recurs(layer))   /* read and written */
            size += n * 2 * pd_state_size(layer->delta.n_v, layer->delta.d_k, layer->delta.d_v);
        size += n * pd_n_keys(layer, pos) * layer->n_kv_heads * (pd_kv_head_size(type, PD_KEYS, layer->head_dim)
            + pd_kv_head_size(type, PD_VALUES, layer->head_dim));
    }
    return size;
}

peridot_status pd_session_measure(struct pd_session *s, struct pd_commands *commands,
                                  struct pd_sequence *const *sequences, uint32_t n, uint32_t n_tokens)
{
    PD_TRY(pd_check_whole(s->model, "kernels cannot be timed"));
    for (uint32_t i = 0; i < n; i++)
        if (n_tokens == 0 || n_tokens > s->chunk || n_tokens > s->ctx - sequences[i]->pos)
            return pd_fail(PERIDOT_ERROR_ARGUMENT,
                           "a pass over %u token%s at position %u does not fit a chunk of %u and a context of %u",
                           n_tokens, PD_S(n_tokens), sequences[i]->pos, s->chunk, s->ctx);
    struct pd_pass *pass;
    PD_TRY(pd_decoder_yield(&s->decoder));
    PD_TRY(n_tokens == 1 ? pd_decoder_fill(&pass, &s->decoder, sequences, n)
                         : pd_prefill_fill(&pass, &s->prefill, sequences[0], n_tokens));
    return pd_pass_measure(pass, commands);
}

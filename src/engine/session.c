#include "engine/session_private.h"

#include "arch/layers.h"
#include "base/num.h"
#include "base/os.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_CTX 8192
#define DEFAULT_CHUNK 256
#define FIRST_CHUNK 16       /* of a session that sizes its submits: what even a slow GPU does in a fraction of a second */
#define SUBMIT_SECONDS 0.2   /* what it aims at; drivers take a device away after about two */
#define FEW_SECONDS 1.0      /* what FIRST_CHUNK tokens may take */
#define SPLIT_PAGES_CPU 8        /* of a split of decode attention: where few workgroups are enough, and beginning one costs more */

/* ---- creating ---- */

static peridot_status alloc_rows(struct pd_rows *out, struct pd_span *span, struct pd_session *s, uint32_t n_rows, uint64_t width, const char *what)
{
    struct pd_span local;
    if (!span) span = &local;
    out->stride = (uint32_t)pd_align(width, PD_PAD);
    PD_TRY(pd_heap_alloc(span, s->device_heap, (uint64_t)n_rows * out->stride * sizeof(float), what));
    out->address = span->address;
    return pd_span_zero(s->model->gpu, *span);   /* kernels rely on zeros between width and stride */
}

static peridot_status alloc_device(struct pd_session *s)
{
    const struct pd_config *c = &s->model->config;
    const struct pd_layer_sizes most = pd_layers_largest(c);
    uint32_t n = s->n_rows, n_sequences = s->n_sequences;
    struct pd_scratch *x = &s->scratch;
    PD_TRY(alloc_rows(&x->x, NULL, s, n, c->d_model, "activations"));
    PD_TRY(alloc_rows(&x->x_other, NULL, s, 1, c->d_model, "activations"));
    PD_TRY(alloc_rows(&x->normed, &s->normed_span, s, n, c->d_model, "activations"));
    PD_TRY(alloc_rows(&x->branch, NULL, s, n, c->d_model, "activations"));
    PD_TRY(alloc_rows(&x->qkv, NULL, s, n, most.qkv_dim, "activations"));
    PD_TRY(alloc_rows(&x->att, NULL, s, n, most.q_dim, "activations"));
    PD_TRY(alloc_rows(&x->gate_up, NULL, s, n, 2 * (uint64_t)most.ffn_dim, "activations"));
    PD_TRY(alloc_rows(&x->act, NULL, s, n, most.ffn_dim, "activations"));
    PD_TRY(alloc_rows(&s->logits, &s->logits_span, s, s->n_results + PD_LOGITS_ROWS, pd_max(s->model->weights.n_outputs, 1), "logits"));
    struct pd_span span;
    uint64_t partial_size = sizeof(float) * PD_MAX_SPLITS * (most.q_dim + 2 * most.n_heads);
    PD_TRY(pd_heap_alloc(&span, s->device_heap, n_sequences * partial_size, "attention"));
    x->partial = span.address;
    if (pd_variant_pack(s->model->variants.of[PD_VARIED_MATMUL]) != PD_N_KERNELS) {
        uint64_t widest = pd_max(c->d_model, pd_max(most.q_dim, most.ffn_dim));
        PD_TRY(pd_heap_alloc(&span, s->device_heap, sizeof(uint32_t) * n * pd_packed_most((uint32_t)widest), "activations"));
        x->packed = span.address;
    }
    for (int i = 0; i < 2; i++) {
        uint64_t topk_size = sizeof(struct pd_candidate) * pd_topk_scratch(s->model->weights.n_outputs);
        PD_TRY(pd_heap_alloc(&span, s->device_heap, n_sequences * topk_size, "candidates"));
        s->topk[i] = span.address;
    }
    return PERIDOT_OK;
}

peridot_status pd_session_alloc_input(struct pd_input *in, struct pd_session *s, uint32_t n_rows, struct pd_span tokens)
{
    *in = (struct pd_input){.tokens = tokens, .n_rows = n_rows};
    PD_TRY(pd_heap_alloc(&in->step, s->input_heap, sizeof(struct pd_step), "the step"));
    if (!tokens.size) PD_TRY(pd_heap_alloc(&in->tokens, s->input_heap, sizeof(uint32_t) * n_rows, "tokens"));
    PD_TRY(pd_heap_alloc(&in->places, s->input_heap, sizeof(struct pd_place) * s->model->config.n_kinds * n_rows, "places"));
    uint64_t row_size = 0;
    for (uint32_t i = 0; i < s->model->config.n_rope_tables; i++)
        row_size += sizeof(float) * s->model->config.rope_tables[i].head_dim;
    return pd_heap_alloc(&in->angles, s->input_heap, n_rows * row_size, "RoPE angles");
}

static peridot_status alloc_host(struct pd_session *s)
{
    PD_TRY(pd_session_alloc_input(&s->input, s, s->n_rows, (struct pd_span){0}));
    PD_TRY(pd_heap_alloc(&s->best, s->host_heap, sizeof(struct pd_candidate) * PD_TOPK * s->n_results, "candidates"));
    s->row = malloc(sizeof *s->row * pd_max(s->model->weights.n_outputs, s->model->config.d_model));
    if (!s->row) return pd_fail_alloc(sizeof *s->row * s->model->weights.n_outputs, "logits");
    s->history = malloc(sizeof *s->history * s->ctx);
    if (!s->history) return pd_fail_alloc(sizeof *s->history * s->ctx, "tokens");
    return PERIDOT_OK;
}

/* ---- recording ---- */

struct pd_pass pd_session_make_pass(struct pd_session *s, struct pd_recorder *r, const struct pd_input *in, uint32_t n_tokens)
{
    const struct pd_config *c = &s->model->config;
    struct pd_pass pass = {.recorder = r, .config = &s->model->config, .weights = &s->model->weights, .cache = &s->cache,
        .scratch = &s->scratch, .step = in->step, .tokens = in->tokens.address, .n_tokens = n_tokens};
    for (uint32_t i = 0, offset = 0; i < c->n_rope_tables; offset += in->n_rows * c->rope_tables[i++].head_dim)
        pass.angles[i] = in->angles.address + sizeof(float) * (uint64_t)offset;
    for (uint32_t kind = 0; kind < c->n_kinds; kind++)
        pass.places[kind] = in->places.address + sizeof(struct pd_place) * kind * in->n_rows;
    return pass;
    return pass;
}

void pd_session_forward(struct pd_session *s, const struct pd_pass *pass, bool head, uint32_t result)
{
    struct pd_rows logits = pd_rows_at(s->logits, result, 0);
    uint64_t best = s->best.address + sizeof(struct pd_candidate) * PD_TOPK * result;
    uint32_t n_rows = pass->apart ? pass->n_tokens : 1;
    head = head && s->model->weights.n_outputs;
    pd_forward(pass, head ? &logits : NULL);
    struct pd_topk topk = {.logits = logits, .n = s->model->n_pieces, .n_rows = n_rows, .best = best,
        .scratch = {s->topk[0], s->topk[1]}};
    if (head) pd_op_topk(pass->recorder, &topk);
}

peridot_status pd_session_record_pass(struct pd_session *s, struct pd_commands *commands, uint32_t n_tokens, bool head)
{
    struct pd_recorder r = {.gpu = s->model->gpu, .variants = s->model->variants, .packed = s->scratch.packed, .commands = commands};
    struct pd_pass pass = pd_session_make_pass(s, &r, &s->input, n_tokens);
    PD_TRY(pd_commands_begin(commands));
    pd_session_forward(s, &pass, head, 0);
    peridot_status status = pd_commands_end(commands);
    return r.status != PERIDOT_OK ? r.status : status;
}

static void count_from(uint32_t rows[PD_LOGITS_ROWS], uint32_t first)
{
    for (uint32_t i = 0; i < PD_LOGITS_ROWS; i++) rows[i] = first + i;
}

peridot_status pd_session_record_rows(struct pd_session *s, const uint32_t *rows, uint32_t n)
{
    struct pd_recorder r = {.gpu = s->model->gpu, .variants = s->model->variants, .packed = s->scratch.packed, .commands = s->batch};
    struct pd_pass pass = pd_session_make_pass(s, &r, &s->input, n);
    PD_TRY(pd_commands_begin(s->batch));
    for (uint32_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && rows[end] == rows[end - 1] + 1;) end++;
        pd_forward_head(&pass, pd_rows_at(s->logits, s->n_results + i, 0), rows[i], end - i);
    }
    peridot_status status = pd_commands_end(s->batch);
    return r.status != PERIDOT_OK ? r.status : status;
}

static void ask_for_pass(struct pd_session *s, struct pd_recorder *r, uint32_t n_tokens, bool apart)
{
    struct pd_pass pass = pd_session_make_pass(s, r, &s->input, n_tokens);
    uint32_t n_rows = (uint32_t)pd_min(PD_LOGITS_ROWS, n_tokens);
    pass.apart = apart;
    pd_session_forward(s, &pass, true, 0);
    if (s->model->weights.n_outputs && !apart) pd_forward_head(&pass, pd_rows_at(s->logits, s->n_results, 0), 0, n_rows);
}

peridot_status pd_session_prewarm(struct pd_session *s)
{
    struct pd_recorder r = {.gpu = s->model->gpu, .variants = s->model->variants, .packed = s->scratch.packed};   /* no commands */
    const uint32_t n_tokens[] = {1, 2, s->chunk};   /* few tokens and many may take different kernels */
    for (size_t i = 0; i < PD_COUNT(n_tokens); i++)
        if (n_tokens[i] <= s->chunk) ask_for_pass(s, &r, n_tokens[i], false);
    for (uint32_t m = 1; s->n_sequences > 1 && m <= s->n_sequences; m++) ask_for_pass(s, &r, m, true);
    if (s->model->config.head == PERIDOT_HEAD_LANGUAGE) pd_op_sample(&r, &(struct pd_sample_push){0});
    return r.status;
}

/* Everything is compiled here, so that no step has to. */
static peridot_status prepare(struct pd_session *s)
{
    pd_kernels_defer(s->model->gpu);
    peridot_status asked = pd_session_prewarm(s), compiled = pd_kernels_compile_deferred(s->model->gpu);
    PD_TRY(asked != PERIDOT_OK ? asked : compiled);
    PD_TRY(pd_steps_create(s));
    PD_TRY(pd_commands_create(&s->batch, s->model->gpu));
    return pd_sequences_create(s);
}

static peridot_status session_init(struct pd_session *s, const peridot_session_params *p)
{
    const struct pd_config *c = &s->model->config;
    PD_TRY(pd_gpu_check(s->model->gpu));
    s->ctx = p->ctx ? p->ctx : (uint32_t)pd_min(c->ctx_max, DEFAULT_CTX);
    if (s->ctx > c->ctx_max)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "a context of %u positions is more than the model's %u", s->ctx, c->ctx_max);
    s->chunk = (uint32_t)pd_min(p->chunk ? p->chunk : DEFAULT_CHUNK, s->ctx);
    s->timed = !p->chunk && pd_gpu_info(s->model->gpu)->type != PERIDOT_DEVICE_CPU;   /* nothing takes a CPU away */
    s->next_chunk = s->timed ? (uint32_t)pd_min(FIRST_CHUNK, s->chunk) : s->chunk;
    if (s->chunk > 65535) return pd_fail(PERIDOT_ERROR_ARGUMENT, "a chunk of %u tokens is more than 65535", s->chunk);
    if (p->kv_type != PERIDOT_KV_F16 && p->kv_type != PERIDOT_KV_F32) return pd_fail(PERIDOT_ERROR_ARGUMENT, "KV type %d is not known", (int)p->kv_type);
    if (p->n_sequences > PD_MAX_SEQUENCES)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "%u sequences are more than the %d of a session", p->n_sequences, PD_MAX_SEQUENCES);
    s->n_sequences = (uint32_t)pd_max(p->n_sequences, 1);
    s->n_results = pd_n_results(s->n_sequences);
    s->n_rows = (uint32_t)pd_max(s->chunk, s->n_sequences);
    uint32_t ahead = (uint32_t)pd_max(s->chunk, PD_N_SLOTS);   /* keys that may be written before older ones are read again */
    struct pd_cache_shape shape = {.n_tables = s->n_sequences, .ctx = s->ctx, .n_positions = s->n_sequences * s->ctx,
        .slack = 2 * ahead, .type = p->kv_type};
    PD_TRY(pd_heap_create(&s->input_heap, s->model->gpu, PD_HEAP_INPUT, 1u << 20));
    PD_TRY(pd_cache_create(&s->cache, s->model->gpu, c, &shape, s->input_heap));
    for (uint32_t i = 0; i < s->n_sequences; i++) s->pages[i].table = i;
    PD_TRY(pd_heap_create(&s->device_heap, s->model->gpu, PD_HEAP_DEVICE, 4u << 20));
    PD_TRY(pd_heap_create(&s->host_heap, s->model->gpu, PD_HEAP_HOST, 1u << 20));
    PD_TRY(alloc_device(s));
    PD_TRY(alloc_host(s));
    return prepare(s);
}

peridot_status pd_session_create(struct pd_session **out, struct pd_model *model, const peridot_session_params *params)
{
    *out = NULL;
    struct pd_session *s = calloc(1, sizeof *s);
    if (!s) return pd_fail_alloc(sizeof *s, "session");
    s->model = model;
    peridot_status status = session_init(s, params ? params : &(peridot_session_params){0});
    if (status != PERIDOT_OK) {
        pd_session_free(s);
        return status;
    }
    *out = s;
    return PERIDOT_OK;
}

void pd_session_free(struct pd_session *s)
{
    if (!s) return;
    pd_sequences_free(s);
    pd_steps_free(s);
    pd_commands_free(s->batch);
    pd_cache_free(&s->cache);
    pd_heap_free(s->device_heap);
    pd_heap_free(s->host_heap);
    pd_heap_free(s->input_heap);
    free(s->candidates);
    free(s->row);
    free(s->history);
    free(s);
}

/* ---- evaluating ---- */

static uint32_t n_keys(uint32_t pos, uint32_t window)
{
    return window ? (uint32_t)pd_min(pos + 1, window) : pos + 1;
}

static uint32_t split_pages(const struct pd_session *s)
{
    return pd_gpu_info(s->model->gpu)->type == PERIDOT_DEVICE_CPU ? SPLIT_PAGES_CPU : 1;
}

void pd_session_write_place(struct pd_session *s, const struct pd_input *in, uint32_t m, struct pd_row at)
{
    const struct pd_config *c = &s->model->config;
    for (uint32_t kind = 0; kind < c->n_kinds; kind++) {
        struct pd_place place = pd_decode_place(at.pos, s->cache.pools[kind].window, split_pages(s));
        place.text = pd_pages_text(&s->cache, &s->pages[at.sequence]) + at.first_slot;
        ((struct pd_place *)in->places.host)[kind * in->n_rows + m] = place;
    }
    float *table = in->angles.host;   /* [n_rows][head_dim] */
    for (uint32_t t = 0; t < c->n_rope_tables; t++) {
        uint32_t head_dim = c->rope_tables[t].head_dim, half = head_dim / 2;
        float *row = table + (size_t)m * head_dim;
        for (uint32_t i = 0; i < half; i++) {
            double angle = at.pos * c->rope_tables[t].inv_freq[i];
            row[i] = (float)cos(angle);
            row[half + i] = (float)sin(angle);
        }
        table += (size_t)in->n_rows * head_dim;
    }
}

void pd_session_write_token(struct pd_session *s, const struct pd_input *in, uint32_t m, int32_t token, struct pd_row row)
{
    ((uint32_t *)in->tokens.host)[m] = (uint32_t)token;
    pd_session_write_place(s, in, m, row);
}

void pd_session_write_splits(struct pd_session *s, const struct pd_input *in, uint32_t n_tokens)
{
    const struct pd_config *c = &s->model->config;
    struct pd_step step = {0};
    struct pd_recorder r = {.gpu = s->model->gpu, .variants = s->model->variants};
    for (uint32_t kind = 0; kind < c->n_kinds; kind++) {
        struct pd_heads heads = pd_layer_heads(c, &s->model->weights, c->kinds[kind]);
        struct pd_place *places = (struct pd_place *)in->places.host + kind * in->n_rows;
        uint32_t n_splits = 0, most = 0;
        for (uint32_t m = 0; m < n_tokens; m++) {
            places[m].first_split = n_splits;
            n_splits += places[m].n_splits;
            most = (uint32_t)pd_max(most, places[m].n_splits);
        }
        step.dispatch[kind][0] = pd_attention_groups(&r, &heads);
        step.dispatch[kind][1] = most;
        step.dispatch[kind][2] = n_tokens;
    }
    memcpy(in->step.host, &step, sizeof step);
}

peridot_status pd_session_extend(struct pd_session *s, uint32_t sequence, uint32_t n)
{
    pd_pages_release(&s->cache, &s->pages[sequence], sequence == s->selected ? s->pos : s->sequences[sequence].pos,
                     (uint32_t)pd_max(s->chunk, PD_N_SLOTS));
    return pd_pages_extend(&s->cache, &s->pages[sequence], n);
}

/* Where reading the weights takes longest, a token more costs little: few tokens may take longer than many. */
uint32_t pd_next_chunk(uint32_t planned, uint32_t n, double seconds)
{
    if (n < planned && seconds < SUBMIT_SECONDS) return planned;   /* the end of a prompt */
    double each = fmax(seconds, 1e-6) / n;
    double fits = fmax(SUBMIT_SECONDS / each, fmin(FEW_SECONDS / each, FIRST_CHUNK));
    return (uint32_t)ceil(fmin(fits, 4.0 * n));   /* or from 1 it might not rise again */
}

static void size_chunk(struct pd_session *s, uint32_t n, double begin)
{
    if (s->timed) s->next_chunk = (uint32_t)pd_min(pd_next_chunk(s->next_chunk, n, pd_now() - begin), s->chunk);
}

/* Tokens of the selected sequence from its position on; NULL: token 0, again and again. */
static void write_chunk(struct pd_session *s, const int32_t *tokens, uint32_t n)
{
    for (uint32_t m = 0; m < n; m++)
        pd_session_write_token(s, &s->input, m, tokens ? tokens[m] : 0, (struct pd_row){s->selected, s->pos + m, 0});
}

static peridot_status run_several(struct pd_session *s, const int32_t *tokens, uint32_t n, bool head)
{
    PD_TRY(pd_session_extend(s, s->selected, s->pos + n));
    write_chunk(s, tokens, n);
    s->has_logits = false;
    PD_TRY(pd_session_record_pass(s, s->batch, n, head));
    double begin = pd_now();
    PD_TRY(pd_commands_run(s->batch));
    size_chunk(s, n, begin);
    s->has_logits = head && s->model->weights.n_outputs;
    s->result = 0;
    memcpy(s->history + s->pos, tokens, n * sizeof *tokens);
    s->pos += n;
    for (uint32_t i = 0; i < n; i++) pd_sampler_accept(&s->sampler, tokens[i]);
    return PERIDOT_OK;
}

static peridot_status run_chunk(struct pd_session *s, const int32_t *tokens, uint32_t n, bool head)
{
    if (n > 1) return run_several(s, tokens, n, head);
    double begin = pd_now();
    PD_TRY(pd_steps_eval(s, tokens[0]));
    size_chunk(s, 1, begin);
    return PERIDOT_OK;
}

peridot_status pd_session_run_pass(struct pd_session *s, struct pd_commands *commands, uint32_t n_tokens)
{
    if (n_tokens == 0 || n_tokens > s->chunk || n_tokens > s->ctx - s->pos)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "a pass over %u tokens at position %u does not fit a chunk of %u and a context of %u",
                       n_tokens, s->pos, s->chunk, s->ctx);
    pd_session_forget(s);
    s->has_logits = false;
    if (n_tokens == 1) return pd_steps_run_pass(s, commands);
    PD_TRY(pd_session_extend(s, s->selected, s->pos + n_tokens));
    write_chunk(s, NULL, n_tokens);
    PD_TRY(pd_session_record_pass(s, commands, n_tokens, true));
    PD_TRY(pd_commands_run(commands));
    return pd_commands_run(commands);
}

void pd_session_add_bias(struct pd_session *s, struct pd_span span)
{
    const float *bias = s->model->weights.output_bias;
    for (uint32_t i = 0; bias && span.address == s->logits_span.address && i < s->model->weights.n_outputs; i++) s->row[i] += bias[i];
}

/* Hands rows [first, n) of a buffer to a callback as positions pos + row. */
static peridot_status report(struct pd_session *s, peridot_row call, void *user, struct pd_span span, struct pd_rows rows,
                             uint32_t buffer_row, uint32_t n, uint32_t width, uint32_t pos)
{
    for (uint32_t i = 0; i < n; i++) {
        uint64_t offset = (uint64_t)(buffer_row + i) * rows.stride * sizeof(float);
        PD_TRY(pd_span_read(s->model->gpu, s->row, span, offset, width * sizeof(float)));
        pd_session_add_bias(s, span);
        if (!call(user, pos + i, s->row, width)) return pd_fail(PERIDOT_CANCELLED, "stopped by the caller at position %u", pos + i);
    }
    return PERIDOT_OK;
}

/* Rows of the chunk of n tokens that begins at `start`. The last row of logits is the result that is there already, so that
 * callers see the very numbers that are sampled from. */
static peridot_status report_chunk(struct pd_session *s, const peridot_eval_params *p, uint32_t start, uint32_t n)
{
    uint32_t first = p->first > start ? p->first - start : 0, n_outputs = s->model->weights.n_outputs;
    if (first >= n) return PERIDOT_OK;
    if (p->hidden)
        PD_TRY(report(s, p->hidden, p->user, s->normed_span, s->scratch.normed, first, n - first, s->model->config.d_model, start + first));
    if (!p->logits) return PERIDOT_OK;
    for (uint32_t row = first; row < n - 1;) {
        uint32_t m = (uint32_t)pd_min(PD_LOGITS_ROWS, n - 1 - row), rows[PD_LOGITS_ROWS];
        count_from(rows, row);
        PD_TRY(pd_session_record_rows(s, rows, m));
        PD_TRY(pd_commands_run(s->batch));
        PD_TRY(report(s, p->logits, p->user, s->logits_span, s->logits, s->n_results, m, n_outputs, start + row));
        row += m;
    }
    return report(s, p->logits, p->user, s->logits_span, s->logits, s->result, 1, n_outputs, start + n - 1);
}

peridot_status pd_session_check_head(const struct pd_session *s)
{
    if (s->model->config.head != PERIDOT_HEAD_NONE) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "this is a base model: it has hidden states, and no logits");
}

peridot_status pd_session_check_tokens(const struct pd_session *s, const int32_t *tokens, size_t n)
{
    uint32_t vocab_size = s->model->weights.vocab_size;
    for (size_t i = 0; i < n; i++)
        if (tokens[i] < 0 || (uint32_t)tokens[i] >= vocab_size)
            return pd_fail(PERIDOT_ERROR_ARGUMENT, "token id %d (number %zu) is not below the vocabulary's %u", (int)tokens[i], i, vocab_size);
    return PERIDOT_OK;
}

peridot_status pd_session_eval(struct pd_session *s, const int32_t *tokens, size_t n, const peridot_eval_params *params)
{
    static const peridot_eval_params none = {0};
    const peridot_eval_params *p = params ? params : &none;
    PD_TRY(pd_gpu_check(s->model->gpu));
    if (n > s->ctx - s->pos)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "%zu tokens after the %u so far do not fit the context of %u positions", n, s->pos, s->ctx);
    if (p->logits) PD_TRY(pd_session_check_head(s));
    PD_TRY(pd_session_check_tokens(s, tokens, n));
    pd_session_forget(s);
    for (size_t done = 0; done < n;) {
        uint32_t m = (uint32_t)pd_min(s->next_chunk, n - done), start = s->pos;
        PD_TRY(run_chunk(s, tokens + done, m, done + m == n || p->logits));
        PD_TRY(report_chunk(s, p, start, m));
        done += m;
    }
    return PERIDOT_OK;
}

/* ---- going back ---- */

/* Beside none: windows have given back pages. */
static uint32_t least_kept(const struct pd_session *s) { return pd_pages_least(&s->cache, &s->pages[s->selected]); }

peridot_status pd_session_truncate(struct pd_session *s, uint32_t n)
{
    if (n > s->pos) return pd_fail(PERIDOT_ERROR_ARGUMENT, "of %u tokens %u cannot be kept", s->pos, n);
    if (n && n < least_kept(s))
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "of %u tokens %u or more can be kept, or none: windows have passed over what is before",
                       s->pos, least_kept(s));
    pd_session_forget(s);
    if (n == s->pos) return PERIDOT_OK;
    pd_pages_truncate(&s->cache, &s->pages[s->selected], n);
    s->pos = n;
    s->has_logits = false;
    s->sampler.n_seen = 0;
    for (uint32_t i = n > PD_REPEAT_WINDOW ? n - PD_REPEAT_WINDOW : 0; i < n; i++) pd_sampler_accept(&s->sampler, s->history[i]);
    return PERIDOT_OK;
}

/* ---- results ---- */

static peridot_status check_logits(const struct pd_session *s)
{
    PD_TRY(pd_gpu_check(s->model->gpu));
    PD_TRY(pd_session_check_head(s));
    return s->has_logits ? PERIDOT_OK : pd_fail(PERIDOT_ERROR_ARGUMENT, "no token has been evaluated yet");
}

peridot_status pd_session_logits(const float **out, struct pd_session *s)
{
    *out = NULL;
    PD_TRY(check_logits(s));
    uint64_t offset = (uint64_t)s->result * s->logits.stride * sizeof(float);
    PD_TRY(pd_span_read(s->model->gpu, s->row, s->logits_span, offset, s->model->weights.n_outputs * sizeof(float)));
    pd_session_add_bias(s, s->logits_span);
    *out = s->row;
    return PERIDOT_OK;
}

/* All candidates, best first, for chains that cannot do with the best PD_TOPK. */
static peridot_status all_candidates(struct pd_session *s)
{
    const float *logits;
    uint32_t n = s->model->n_pieces;
    PD_TRY(pd_session_logits(&logits, s));
    if (!s->candidates) s->candidates = malloc(sizeof *s->candidates * n);
    if (!s->candidates) return pd_fail_alloc(sizeof *s->candidates * n, "candidates");
    for (uint32_t i = 0; i < n; i++)   /* NaN has no place in an order: it goes last, as in topk */
        s->candidates[i] = (struct pd_candidate){logits[i] > -3.4e38f ? logits[i] : -3.4e38f, i};
    if (!pd_sampler_adjusts(&s->sampler)) pd_candidates_sort(s->candidates, n);
    return PERIDOT_OK;
}

/* Looks for the reason, tensor by tensor: this is the end of the run anyway. */
peridot_status pd_session_check_finite(const struct pd_session *s, float best)
{
    const struct pd_checkpoint *c = s->model->checkpoint;
    if (best > -3e38f && best < 3e38f) return PERIDOT_OK;
    for (size_t i = 0; i < pd_checkpoint_n_tensors(c); i++) {
        const struct pd_tensor *t = pd_checkpoint_tensor(c, i);
        uint64_t index;
        if (pd_tensor_find_nonfinite(t, &index))
            return pd_fail(PERIDOT_ERROR_FORMAT, "%s: tensor %s: weight %llu is not a finite number, and so the logits at position %u are not",
                           t->file, t->name, (unsigned long long)index, s->pos - 1);
    }
    return pd_fail(PERIDOT_ERROR_FORMAT, "%s: the logits at position %u are not finite, though all weights are: they overflow fp32",
                   pd_checkpoint_path(c), s->pos - 1);
}

peridot_status pd_session_sample(int32_t *token, struct pd_session *s)
{
    struct pd_candidate best[PD_TOPK], *candidates = best;
    uint32_t n = (uint32_t)pd_min(PD_TOPK, s->model->n_pieces), needs = pd_sampler_needs(&s->sampler);
    *token = 0;
    pd_session_forget(s);   /* a draw moves the generator */
    PD_TRY(check_logits(s));
    if (s->model->config.head != PERIDOT_HEAD_LANGUAGE) return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "this model scores labels: it cannot write text");
    memcpy(best, (struct pd_candidate *)s->best.host + (size_t)s->result * PD_TOPK, sizeof best);
    PD_TRY(pd_session_check_finite(s, best[0].logit));
    if (needs == 0 || needs > PD_TOPK) {
        PD_TRY(all_candidates(s));
        candidates = s->candidates;
        n = s->model->n_pieces;
    }
    *token = pd_sampler_draw(&s->sampler, candidates, n);
    return PERIDOT_OK;
}

uint64_t pd_session_step_size(const struct pd_session *s)
{
    const struct pd_config *c = &s->model->config;
    uint64_t size = s->model->weights.decode_read_size;
    for (uint32_t i = 0; i < c->n_layers; i++)
        size += (uint64_t)n_keys(s->pos, c->layers[i].window) * pd_layer_kv_dim(&c->layers[i]) * 2 *
                (s->cache.layers[i].type == PERIDOT_KV_F16 ? 2 : 4);
    return size;
}

uint32_t pd_session_n_dispatches(const struct pd_session *s)
{
    return pd_commands_n_dispatches(s->slots[0].commands);
}

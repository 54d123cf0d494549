/* A GGUF file with the sizes of a real model and random weights. Keys and tensor names are those that llama.cpp's
 * converter writes for the architecture. Weights have a standard deviation of 1 / sqrt(columns), so that every
 * matrix keeps the size of its input; what this makes of the whole is written at plan_model. */
#include "arch/arch.h"
#include "base/base.h"
#include "offline/offline.h"
#include "offline/offline_.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE_SIZE = 1 << 20, MAX_OTHER_TENSORS = PD_FIRST_LAYER_ROLE };

enum kind { MATRIX, NORM, ROPE_FREQS };

struct item {
    char name[PD_TENSOR_NAME_SIZE];
    enum kind kind;
    enum pd_dtype dtype;
    uint32_t n_dims;
    uint64_t shape[3];   /* [rows, columns], or [n], or [experts, rows, columns] */
    float scale;         /* standard deviation of a matrix; mean of a norm or a bias */
};

struct plan {
    const struct pd_shape *shape;
    struct pd_config config;
    enum pd_dtype dtype;
    struct item *items;
    size_t n;
};

/* ---- tensors ---- */

static struct item *add_item(struct plan *p, enum pd_role role, uint32_t layer)
{
    struct item *t = &p->items[p->n];
    struct pd_plan plan;
    if (!pd_plan_get(&plan, &p->config, role, layer) || plan.again) return NULL;
    if (plan.n_rows == PD_ANY_SIZE) plan.n_rows = p->shape->vocab_size;
    enum pd_dtype dtype = role == PD_ROLE_ROUTER || role == PD_ROLE_DELTA_CONV ? PD_F32
        : role == PD_ROLE_PER_LAYER_MODEL_PROJ && p->dtype != PD_F32 ? PD_BF16 : p->dtype;
    if (plan.split)
        *t = (struct item){.kind = NORM, .dtype = PD_F32, .n_dims = 2, .shape = {plan.split, plan.n_cols / plan.split},
            .scale = 1};
    else if (plan.is_bias || plan.n_dims == 1)
        *t = (struct item){.kind = NORM, .dtype = PD_F32, .n_dims = plan.n_dims,
            .shape = {plan.n_dims == 2 ? plan.n_experts : plan.n_cols, plan.n_dims == 2 ? plan.n_cols : 1},
            .scale = plan.is_bias ? 0.25f : 1};
    else if (plan.n_dims == 3)
        *t = (struct item){.kind = MATRIX, .dtype = pd_dtype_for_row(dtype, plan.n_cols), .n_dims = 3,
            .shape = {plan.n_experts, plan.n_rows, plan.n_cols}, .scale = (float)(1 / sqrt((double)plan.n_cols))};
    else *t = (struct item){.kind = MATRIX, .dtype = pd_dtype_for_row(dtype, plan.n_cols), .n_dims = 2,
            .shape = {plan.n_rows, plan.n_cols}, .scale = (float)(1 / sqrt((double)plan.n_cols))};
    pd_tensor_name_gguf(t->name, role, layer, p->config.family);
    p->n++;
    return t;
}

/* Where queries are not scaled the norms of q and k are, so that scores have a deviation of 1 all the same. What a
 * recurrence remembers fades by 1/e in some 30 tokens. */
static void plan_layer(struct plan *p, uint32_t i)
{
    float head_norm = (float)pow((double)p->config.layers[i].head_dim, -0.25);
    for (enum pd_role role = PD_FIRST_LAYER_ROLE; role < PD_N_ROLES; role++) {
        struct item *t = add_item(p, role, i);
        bool of_heads = role == PD_ROLE_Q_NORM || role == PD_ROLE_K_NORM;
        if (t && of_heads && pd_families[p->config.family].unscaled_queries) t->scale = head_norm;
        if (t && role == PD_ROLE_DELTA_DT) t->scale = -2;
        if (t && role == PD_ROLE_DELTA_DECAY) t->scale = -0.25f;
    }
}

/* Gemma's lookup is scaled by sqrt(d_model) and its head is the same matrix: with embeddings of full size a token's own
 * logit would stand 7 (Gemma 2) to 17 (Gemma 1) deviations above the rest, and every text would repeat one token. An
 * eighth of it, made good by the output norm, gives logits of deviation 4, where a top token has some 10 %. */
static void plan_model(struct plan *p)
{
    static const enum pd_role once[] = {PD_ROLE_PER_LAYER_MODEL_PROJ, PD_ROLE_PER_LAYER_MODEL_NORM, PD_ROLE_PRE_PROJ,
        PD_ROLE_POST_PROJ};
    double embedding_gain = pd_families[p->config.family].scale_embedding ? 0.125 : 1, logit_deviation = 4;
    struct item *embedding = add_item(p, PD_ROLE_EMBEDDING, 0);
    embedding->scale = (float)(embedding_gain / sqrt((double)p->config.d_model));
    struct item *per_layer_embedding = add_item(p, PD_ROLE_PER_LAYER_EMBEDDING, 0);
    if (per_layer_embedding) per_layer_embedding->scale = (float)(1 / sqrt((double)p->config.per_layer_dim));
    for (size_t i = 0; i < PD_COUNT(once); i++) add_item(p, once[i], 0);
    for (uint32_t i = 0; i < p->config.n_layers; i++) plan_layer(p, i);
    struct item *output_norm = add_item(p, PD_ROLE_OUTPUT_NORM, 0);
    output_norm->scale = (float)(logit_deviation / embedding_gain);
    add_item(p, PD_ROLE_OUTPUT, 0);
    struct item *factors = add_item(p, PD_ROLE_ROPE_FREQS, 0);
    if (factors) factors->kind = ROPE_FREQS;
}

/* ---- metadata ---- */

static peridot_status add_tokenizer_keys(struct pd_gguf_writer *w, const struct pd_shape *s)
{
    struct pd_synthetic_vocab v;
    PD_TRY(pd_synthetic_vocab_create(&v, s));
    pd_gguf_writer_add_string(w, "tokenizer.ggml.model", "llama");
    pd_gguf_writer_add_string(w, "tokenizer.ggml.pre", "default");
    pd_gguf_writer_add_strings(w, "tokenizer.ggml.tokens", v.n, v.tokens);
    pd_gguf_writer_add_array(w, "tokenizer.ggml.scores", PD_META_FLOAT32, v.n, v.scores);
    pd_gguf_writer_add_array(w, "tokenizer.ggml.token_type", PD_META_INT32, v.n, v.types);
    pd_gguf_writer_add_u32(w, "tokenizer.ggml.bos_token_id", v.bos);
    pd_gguf_writer_add_u32(w, "tokenizer.ggml.eos_token_id", v.eos);
    if (v.end_of_turn) pd_gguf_writer_add_u32(w, "tokenizer.ggml.eot_token_id", v.end_of_turn);
    pd_gguf_writer_add_u32(w, "tokenizer.ggml.unknown_token_id", v.unknown);
    if (v.has_pad) pd_gguf_writer_add_u32(w, "tokenizer.ggml.padding_token_id", 0);
    pd_gguf_writer_add_bool(w, "tokenizer.ggml.add_bos_token", true);
    pd_gguf_writer_add_bool(w, "tokenizer.ggml.add_eos_token", false);
    pd_gguf_writer_add_bool(w, "tokenizer.ggml.add_space_prefix", pd_families[s->family].space_prefix);
    pd_synthetic_vocab_free(&v);
    return PERIDOT_OK;
}

static peridot_status add_metadata(struct pd_gguf_writer *w, const struct plan *p)
{
    PD_TRY(pd_gguf_add_config(w, &p->config, p->shape->vocab_size));
    pd_gguf_add_type(w, pd_dtypes[p->dtype].file_type);
    return add_tokenizer_keys(w, p->shape);
}

/* ---- data ---- */

struct job {
    struct pd_gguf_writer *writer;
    const peridot_make_params *params;
    const char *path;
    uint64_t done, total;
    uint8_t *buffer;                     /* PIECE_SIZE bytes */
    struct pd_random_weights *weights;
};

static peridot_status report_progress(const struct job *j)
{
    if (!j->params->progress || j->params->progress(j->params->user, j->done, j->total)) return PERIDOT_OK;
    return pd_fail(PERIDOT_CANCELLED, "%s: cancelled; nothing was written", j->path);
}

static peridot_status make_write_piece(struct job *j, const void *data, size_t size)
{
    PD_TRY(pd_gguf_writer_write(j->writer, data, size));
    j->done += size;
    return report_progress(j);
}

static peridot_status write_matrix(struct job *j, const struct item *t, uint64_t stream)
{
    const struct pd_dtype_info *info = &pd_dtypes[t->dtype];
    uint64_t n_weights = t->shape[0] * t->shape[1] * (t->n_dims == 3 ? t->shape[2] : 1);
    uint64_t n_blocks = n_weights / info->block_len, per_piece = PIECE_SIZE / info->block_size;
    pd_random_weights_init(j->weights, t->dtype, t->scale, j->params->seed, stream);
    for (uint64_t done = 0; done < n_blocks;) {
        uint64_t n = pd_min(per_piece, n_blocks - done);
        pd_random_weights_fill(j->weights, j->buffer, n);
        PD_TRY(make_write_piece(j, j->buffer, (size_t)n * info->block_size));
        done += n;
    }
    return PERIDOT_OK;
}

/* Close to 1 and not 1, so that a norm that is left out or taken twice is seen. */
static peridot_status write_norm(struct job *j, const struct item *t, uint64_t stream)
{
    uint64_t n = t->shape[0] * t->shape[1], most = PIECE_SIZE / sizeof(float);
    float *out = (float *)j->buffer;
    struct pd_random r;
    pd_random_seed(&r, j->params->seed, stream);
    for (uint64_t done = 0, here; done < n; done += here) {
        here = pd_min(most, n - done);
        for (uint64_t i = 0; i < here; i++) out[i] = t->scale * (1 + 0.1f * pd_random_uniform(&r));
        PD_TRY(make_write_piece(j, out, (size_t)here * sizeof *out));
    }
    return PERIDOT_OK;
}

static peridot_status write_item(struct job *j, const struct plan *p, size_t i)
{
    const struct item *t = &p->items[i];
    if (t->kind == MATRIX) return write_matrix(j, t, i);
    if (t->kind == NORM) return write_norm(j, t, i);
    float *vector = (float *)j->buffer;
    pd_rope_factors(vector, &p->config, (uint32_t)t->shape[0]);
    return make_write_piece(j, vector, t->shape[0] * sizeof *vector);
}

static peridot_status write_items(struct job *j, const struct plan *p)
{
    PD_TRY(add_metadata(j->writer, p));
    for (size_t i = 0; i < p->n; i++) {
        const struct item *t = &p->items[i];
        pd_gguf_writer_add_tensor(j->writer, t->name, t->dtype, t->n_dims, t->shape);
    }
    j->total = pd_gguf_writer_data_size(j->writer);
    PD_TRY(report_progress(j));
    PD_TRY(pd_gguf_writer_begin(j->writer));
    for (size_t i = 0; i < p->n; i++) PD_TRY(write_item(j, p, i));
    return PERIDOT_OK;
}

static peridot_status write_file(const char *path, const struct plan *p, const peridot_make_params *params)
{
    struct job j = {.params = params, .path = path, .buffer = malloc(PIECE_SIZE), .weights = malloc(sizeof *j.weights)};
    peridot_status status = j.buffer && j.weights ? pd_gguf_writer_open(&j.writer, path)
                                                  : pd_fail_alloc(PIECE_SIZE, "buffer for random weights");
    if (status == PERIDOT_OK) status = write_items(&j, p);
    if (status == PERIDOT_OK) status = pd_gguf_writer_commit(j.writer);
    else pd_gguf_writer_abort(j.writer);
    free(j.buffer);
    free(j.weights);
    return status;
}

/* ---- without a file ---- */

static struct pd_mix_model mix_model_of(const struct pd_config *c, const struct pd_shape *s)
{
    return (struct pd_mix_model){.n_layers = c->n_layers, .n_experts = s->n_experts,
        .heads_per_key = s->n_kv_heads ? s->n_heads / s->n_kv_heads : 0};
}

/* Matrices get the types that peridot_convert gives them; what it leaves has its own. */
static peridot_status choose_types(struct plan *p, const char *type)
{
    const struct pd_mix *mix = NULL;
    for (size_t i = 0; (mix = pd_mix_get(i)) && strcmp(mix->name, type) != 0;) i++;
    if (!mix && !pd_dtype_by_name(&p->dtype, type))
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "there is no type %s", type);
    if (!mix) return PERIDOT_OK;
    struct pd_convert_item *items = calloc(p->n, sizeof *items);
    if (!items) return pd_fail_alloc(p->n * sizeof *items, "list of tensors");
    for (size_t i = 0; i < p->n; i++) {
        const struct item *t = &p->items[i];
        bool open = t->kind == MATRIX && t->dtype != PD_F32 && t->dtype != PD_BF16;
        items[i] = (struct pd_convert_item){.name = t->name, .dtype = open ? PD_N_DTYPES : t->dtype,
            .n_dims = t->n_dims, .shape = {t->shape[0], t->shape[1], t->shape[2]}};
    }
    const struct pd_mix_model model = mix_model_of(&p->config, p->shape);
    peridot_status status = pd_mix_choose(items, (uint32_t)p->n, mix, &model);
    for (size_t i = 0; i < p->n && status == PERIDOT_OK; i++)
        if (p->items[i].kind == MATRIX)
            p->items[i].dtype = pd_dtype_for_row(items[i].dtype, items[i].shape[items[i].n_dims - 1]);
    free(items);
    return status;
}

static void count_items(struct pd_source_totals *out, uint64_t *experts, const struct plan *p)
{
    unsigned layer;
    for (size_t i = 0; i < p->n; i++) {
        const struct item *t = &p->items[i];
        uint64_t n = t->shape[0] * (t->n_dims > 1 ? t->shape[1] : 1) * (t->n_dims > 2 ? t->shape[2] : 1);
        uint64_t size = n / pd_dtypes[t->dtype].block_len * pd_dtypes[t->dtype].block_size;
        if (t->kind == ROPE_FREQS) continue;
        out->type_counts[t->dtype] += t->kind == MATRIX;
        out->n_params += n;
        out->size += size;
        if (t->n_dims == 3 && sscanf(t->name, "blk.%u.", &layer) == 1) experts[layer] += size;
        if (strcmp(t->name, "per_layer_token_embd.weight") == 0
            || (!p->config.tied && strcmp(t->name, "token_embd.weight") == 0)) out->lookup_size += size;
    }
}

peridot_status pd_shape_count(struct pd_source_totals *out, uint64_t *experts, const struct pd_config *config,
                              const struct pd_shape *shape, const char *type)
{
    struct plan p = {.shape = shape, .config = *config, .dtype = PD_Q8_0};
    *out = (struct pd_source_totals){.vocab_size = shape->vocab_size, .n_outputs = shape->vocab_size};
    p.items = calloc(MAX_OTHER_TENSORS + (size_t)shape->n_layers * (PD_N_ROLES - PD_FIRST_LAYER_ROLE),
                     sizeof *p.items);
    if (!p.items) return pd_fail_alloc(sizeof *p.items, "list of tensors");
    plan_model(&p);
    peridot_status status = choose_types(&p, type);
    if (status == PERIDOT_OK) count_items(out, experts, &p);
    free(p.items);
    return status;
}

/* ---- arguments ---- */

static peridot_status find_shape(const struct pd_shape **out, const char *name)
{
    *out = name ? pd_shape_find(name) : NULL;
    if (*out) return PERIDOT_OK;
    char list[2048] = "";
    size_t size = 0;
    for (size_t i = 0; pd_shape_get(i); i++)
        size += (size_t)snprintf(list + size, sizeof list - size, "%s%s", i ? ", " : "", pd_shape_get(i)->name);
    return pd_fail(PERIDOT_ERROR_ARGUMENT, "there is no shape %s; the shapes are %s", name ? name : "(none)", list);
}

static peridot_status find_type(enum pd_dtype *out, const char *name)
{
    if (name && pd_dtype_by_name(out, name)) return PERIDOT_OK;
    char list[400] = "";
    size_t size = 0;
    for (int i = 0; i < PD_N_DTYPES; i++)
        size += (size_t)snprintf(list + size, sizeof list - size, "%s%s", size ? ", " : "", pd_dtypes[i].name);
    return pd_fail(PERIDOT_ERROR_ARGUMENT, "there is no type %s; the types are %s", name ? name : "(none)", list);
}

peridot_status pd_make(const char *path, const peridot_make_params *params)
{
    const struct pd_shape *shape;
    PD_TRY(find_shape(&shape, params->shape));
    return pd_make_shape(path, shape, params);
}

peridot_status pd_make_shape(const char *path, const struct pd_shape *shape, const peridot_make_params *params)
{
    struct plan p = {.shape = shape};
    PD_TRY(find_type(&p.dtype, params->type));
    PD_TRY(pd_shape_config(&p.config, p.shape));
    p.items = calloc(MAX_OTHER_TENSORS + (size_t)p.shape->n_layers * (PD_N_ROLES - PD_FIRST_LAYER_ROLE),
                     sizeof *p.items);
    if (p.items) plan_model(&p);
    peridot_status status = p.items ? write_file(path, &p, params) : pd_fail_alloc(sizeof *p.items, "list of tensors");
    free(p.items);
    pd_config_free(&p.config);
    return status;
}

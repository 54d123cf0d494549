/* A vision tower's tensors on the device, private to the tower. */
#include "engine/vision/vision.h"

#include "base/base.h"
#include "engine/load/load.h"

#include <stdlib.h>
#include <string.h>

/* The walk runs twice, as that of the text model does: to add up sizes, and to upload. */
struct tower_weights_walk {
    struct pd_loader l;
    struct pd_tower_weights *w;
    const struct pd_tower_config *config;
    const struct pd_checkpoint *checkpoint;
};

/* ---- tensors as the device wants them ---- */

/* Rotation in two dimensions: the first half of a head turns by the column, the second by the row, each in pairs of its
 * own halves. Kernels pair halves of the head: with its second and third quarter exchanged, in queries and keys alike,
 * these are the same pairs, and products of queries and keys do not change. */
static uint32_t unrotated(uint32_t row, uint32_t head_dim)
{
    uint32_t in_head = row % head_dim, quarter = head_dim / 4;
    if (in_head / quarter == 1) return row + quarter;
    return in_head / quarter == 2 ? row - quarter : row;
}

/* In a copy, instead of one that there may be. */
static peridot_status reorder_rows(struct pd_tensor *t, uint8_t **copy, uint32_t head_dim)
{
    uint64_t size = t->size / t->shape[0];
    uint8_t *rows = malloc(t->size);
    if (!rows) return pd_fail_alloc(t->size, t->name);
    for (uint32_t i = 0; i < t->shape[0]; i++)
        memcpy(rows + i * size, t->data + unrotated(i, head_dim) * size, size);
    free(*copy);
    t->data = *copy = rows;
    return PERIDOT_OK;
}

/* Of plain numbers, as it is in all published files. */
static peridot_status transpose(struct pd_tensor *t, uint8_t **copy, const struct pd_tower_plan *plan)
{
    const struct pd_dtype_info *type = &pd_dtypes[t->dtype];
    size_t size = type->block_size;
    if (type->block_len != 1)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: tensor %s has type %s: only f32, f16 and bf16 are supported",
                       t->file, t->name, t->type);
    *copy = malloc(t->size);
    if (!*copy) return pd_fail_alloc(t->size, t->name);
    for (uint32_t r = 0; r < plan->n_rows; r++)
        for (uint32_t c = 0; c < plan->n_cols; c++)
            memcpy(*copy + ((size_t)r * plan->n_cols + c) * size,
                   t->data + ((size_t)c * plan->n_rows + r) * size, size);
    t->data = *copy;
    return PERIDOT_OK;
}

/* The sum of both frames' weights, as fp32: a picture is both. */
static peridot_status add_frames(struct pd_tensor *t, uint8_t **copy, const struct tower_weights_walk *k,
                                 const struct pd_tower_plan *plan)
{
    const struct pd_tensor *second = NULL, first = *t;
    size_t n_pixels = plan->n_cols / 3, n = (size_t)plan->n_rows * plan->n_cols;
    if (pd_checkpoint_kind(k->checkpoint) == PD_CHECKPOINT_GGUF) PD_TRY(pd_tower_find_frame(&second, k->checkpoint, t));
    t->dtype = PD_F32;
    t->size = n * sizeof(float);
    if (k->l.measuring) return PERIDOT_OK;
    float *sum = malloc((n + n_pixels) * sizeof *sum), *other = sum ? sum + n : NULL;
    if (!sum) return pd_fail_alloc((n + n_pixels) * sizeof *sum, t->name);
    for (size_t at = 0; at < n; at += n_pixels) {   /* a channel of a row */
        pd_tensor_dequantize(sum + at, &first, second ? at : 2 * at, n_pixels);
        pd_tensor_dequantize(other, second ? second : &first, second ? at : 2 * at + n_pixels, n_pixels);
        for (size_t i = 0; i < n_pixels; i++) sum[at + i] += other[i];
    }
    t->data = *copy = (uint8_t *)sum;
    return PERIDOT_OK;
}

/* ---- parts ---- */

static peridot_status tower_weights_find(const struct pd_tensor **out, const struct tower_weights_walk *k,
                                         const struct pd_tower_plan *plan, enum pd_tower_part part, uint32_t layer)
{
    return pd_tower_find(out, k->config, k->checkpoint, plan, part, layer);
}

static peridot_status put_vector(struct tower_weights_walk *k, uint64_t *address, const float *values, uint32_t n,
                                 const char *name)
{
    struct pd_span span;
    if (k->l.measuring) {
        k->l.device_size += pd_align(n * sizeof *values, 256);
        return PERIDOT_OK;
    }
    PD_TRY(pd_heap_alloc(&span, k->w->w.heap, n * sizeof *values, name));
    *address = span.address;
    return pd_span_write(k->l.gpu, span, 0, values, n * sizeof *values);
}

static peridot_status load_vector(struct tower_weights_walk *k, uint64_t *address, const struct pd_tower_plan *plan,
                                  enum pd_tower_part part, uint32_t layer)
{
    const struct pd_tensor *t;
    PD_TRY(tower_weights_find(&t, k, plan, part, layer));
    uint32_t n = plan->n_rows ? plan->n_rows : plan->n_cols;
    float *file = malloc(n * sizeof *file), *values = malloc(n * sizeof *values);
    peridot_status status = PERIDOT_OK;
    if (!file || !values) status = pd_fail_alloc(n * sizeof *file, t->name);
    else {
        bool one_more = plan->role == PD_TOWER_ROW_NORM && pd_checkpoint_kind(k->checkpoint) == PD_CHECKPOINT_HF;
        pd_tensor_dequantize(file, t, 0, n);
        for (uint32_t i = 0; i < n; i++)
            values[i] = file[plan->rotated ? unrotated(i, k->config->head_dim) : i] + (one_more ? 1 : 0);
        status = put_vector(k, address, values, n, t->name);
    }
    free(file);
    free(values);
    return status;
}

static peridot_status load_bounds(struct tower_weights_walk *k, struct pd_tower_linear *linear,
                                  const struct pd_tower_plan *plan, uint32_t layer)
{
    float *const bounds[] = {&linear->input_min, &linear->input_max, &linear->output_min, &linear->output_max};
    for (int i = 0; i < 4; i++) {
        const struct pd_tensor *t;
        PD_TRY(tower_weights_find(&t, k, plan, (enum pd_tower_part)(PD_TOWER_INPUT_MIN + i), layer));
        pd_tensor_dequantize(bounds[i], t, 0, 1);
    }
    return PERIDOT_OK;
}

static peridot_status load_matrix(struct tower_weights_walk *k, struct pd_tower_linear *linear,
                                  const struct pd_tower_plan *plan, uint32_t layer)
{
    const struct pd_tensor *found;
    PD_TRY(tower_weights_find(&found, k, plan, PD_TOWER_WEIGHT, layer));
    struct pd_tensor t = *found;
    uint8_t *copy = NULL;
    peridot_status status = PERIDOT_OK;
    t.n_dims = 2;
    if (pd_dtypes[t.dtype].block_len > 1 && plan->n_cols % pd_dtypes[t.dtype].block_len != 0)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: rows of tensor %s are no whole blocks", t.file, t.name);
    if (plan->of_frames) PD_TRY(add_frames(&t, &copy, k, plan));
    if (plan->transposed && !k->l.measuring) status = transpose(&t, &copy, plan);
    t.shape[0] = plan->n_rows;
    t.shape[1] = plan->n_cols;
    t.shape[2] = t.shape[3] = 1;
    if (plan->rotated && !k->l.measuring) status = reorder_rows(&t, &copy, k->config->head_dim);
    const struct pd_load_rows parts = {.at = {&t}, .n = 1, .copied = copy != NULL};
    if (status == PERIDOT_OK) status = pd_load_matrix(&k->l, &linear->linear.w, &parts, plan->n_cols);
    free(copy);
    PD_TRY(status);
    if (k->config->clamps && plan->role >= PD_FIRST_TOWER_LAYER_ROLE) PD_TRY(load_bounds(k, linear, plan, layer));
    return plan->has_bias ? load_vector(k, &linear->linear.bias, plan, PD_TOWER_BIAS, layer) : PERIDOT_OK;
}

static peridot_status load_role(struct tower_weights_walk *k, struct pd_tower_block *block, enum pd_tower_role role,
                                uint32_t layer)
{
    struct pd_tower_plan plan;
    if (!pd_tower_plan_get(&plan, k->config, role) || role == PD_TOWER_POSITIONS) return PERIDOT_OK;
    if (plan.n_rows) return load_matrix(k, &block->linears[role], &plan, layer);
    PD_TRY(load_vector(k, &block->norms[role].w, &plan, PD_TOWER_WEIGHT, layer));
    return plan.has_bias ? load_vector(k, &block->norms[role].b, &plan, PD_TOWER_BIAS, layer) : PERIDOT_OK;
}

static peridot_status load_ones(struct tower_weights_walk *k)
{
    uint32_t n = k->config->d_model;
    float *ones = malloc(n * sizeof *ones);
    if (!ones) return pd_fail_alloc(n * sizeof *ones, "a norm");
    for (uint32_t i = 0; i < n; i++) ones[i] = 1;
    peridot_status status = put_vector(k, &k->w->ones, ones, n, "a norm");
    free(ones);
    return status;
}

static peridot_status tower_weights_walk(struct tower_weights_walk *k)
{
    for (enum pd_tower_role role = 0; role < PD_FIRST_TOWER_LAYER_ROLE; role++)
        PD_TRY(load_role(k, &k->w->once, role, 0));
    for (uint32_t i = 0; i < k->config->n_layers; i++)
        for (enum pd_tower_role role = PD_FIRST_TOWER_LAYER_ROLE; role < PD_N_TOWER_ROLES; role++)
            PD_TRY(load_role(k, &k->w->layers[i], role, i));
    return load_ones(k);
}

static peridot_status tower_weights_load(struct tower_weights_walk *k)
{
    if (k->config->n_layers) {
        k->w->layers = calloc(k->config->n_layers, sizeof *k->w->layers);
        if (!k->w->layers) return pd_fail_alloc(k->config->n_layers * sizeof *k->w->layers, "layers");
    }
    k->l.measuring = true;
    PD_TRY(tower_weights_walk(k));
    PD_TRY(pd_gpu_check_budget(k->l.gpu, k->l.device_size, "the vision tower"));
    PD_TRY(pd_heap_create(&k->w->w.heap, k->l.gpu, PD_HEAP_DEVICE, pd_min(k->l.device_size + (64 << 10), 256u << 20)));
    k->l.measuring = false;
    return tower_weights_walk(k);
}

peridot_status pd_tower_weights_load(struct pd_tower_weights *out, struct pd_gpu *gpu,
                                     const struct pd_checkpoint *checkpoint, const struct pd_tower_config *config,
                                     const struct pd_load_params *params)
{
    *out = (struct pd_tower_weights){0};
    struct tower_weights_walk k = {.l = {.w = &out->w, .gpu = gpu, .params = params, .source.checkpoint = checkpoint},
                                   .w = out,
        .config = config, .checkpoint = checkpoint};
    peridot_status status = pd_checkpoint_check(tower_weights_load(&k), checkpoint);
    if (status != PERIDOT_OK) pd_tower_weights_free(out, config);
    return status;
}

static void free_block(struct pd_tower_block *block)
{
    for (int role = 0; role < PD_N_TOWER_ROLES; role++) free(block->linears[role].linear.w.slices);
}

void pd_tower_weights_free(struct pd_tower_weights *w, const struct pd_tower_config *config)
{
    free_block(&w->once);
    for (uint32_t i = 0; w->layers && i < config->n_layers; i++) free_block(&w->layers[i]);
    free(w->layers);
    pd_heap_free(w->w.heap);
    *w = (struct pd_tower_weights){0};
}

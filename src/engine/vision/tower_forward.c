/* The forward passes of vision towers, in the order of the papers. All patches of a picture see each other; what comes
 * after attention is done by blocks of rows, so that the widest activations are small. Owns nothing. */
#include "engine/vision/vision.h"

#include "base/base.h"

#include <math.h>

peridot_kv_type pd_tower_kv_type(const struct pd_variants *variants)
{
    enum pd_variant v = variants->of[PD_VARIED_ATTENTION];
    return v == PD_VARIANT_ATTENTION_COOP || v == PD_VARIANT_ATTENTION_HALF ? PERIDOT_KV_F16 : PERIDOT_KV_F32;
}

/* By mean and variance where there is a bias, else by the root of the mean square. */
static void norm_rows(const struct pd_tower_pass *p, const struct pd_layernorm *norm, uint32_t n)
{
    if (norm->b) {
        pd_op_layernorm(p->recorder, norm, n);
        return;
    }
    const struct pd_norm rms = {.x = norm->x, .normed = norm->y, .w = norm->w, .n = norm->n, .eps = norm->eps,
        .x_scale = 1};
    pd_op_rmsnorm(p->recorder, &rms, n);
}

/* y = norm(x) of n rows of the tower's width. */
static void norm(const struct pd_tower_pass *p, struct pd_rows y, struct pd_rows x, struct pd_tower_norm w, uint32_t n)
{
    const struct pd_tower_config *c = p->config;
    norm_rows(p, &(struct pd_layernorm){.x = x, .y = y, .w = w.w, .b = w.b, .n = c->d_model, .eps = c->eps}, n);
}

/* x += branch, or its norm where w has one */
static void add(const struct pd_tower_pass *p, struct pd_rows x, struct pd_rows branch, struct pd_tower_norm w,
                uint32_t n)
{
    const struct pd_norm sum = {.x = x, .y = branch, .w_post = w.w, .n = p->config->d_model,
        .eps = p->config->eps, .x_scale = 1};
    pd_op_rmsnorm(p->recorder, &sum, n);
}

/* y = linear(x), between clamps where the tower has them: `clamped` takes the input, which is x itself where nothing
 * else reads it. */
static void multiply(const struct pd_tower_pass *p, struct pd_rows y, const struct pd_tower_linear *linear,
                     struct pd_rows x, struct pd_rows clamped, uint32_t n)
{
    const struct pd_matrix *w = &linear->linear.w;
    bool clamps = p->config->clamps;
    const struct pd_clamp in = {x, clamped, w->n_cols, linear->input_min, linear->input_max},
        out = {y, y, w->n_rows, linear->output_min, linear->output_max};
    if (clamps) pd_op_clamp(p->recorder, &in, n);
    pd_op_linear(p->recorder, y, &linear->linear, clamps ? clamped : x, n);
    if (clamps) pd_op_clamp(p->recorder, &out, n);
}

static void attend(const struct pd_tower_pass *p, const struct pd_tower_block *b)
{
    const struct pd_tower_scratch *s = &p->scratch;
    const struct pd_tower_config *c = p->config;
    uint32_t q_dim = c->n_heads * c->head_dim;
    bool is_gemma4 = c->kind == PD_TOWER_GEMMA4;
    const struct pd_attention a = {
        .heads = {.n_heads = c->n_heads, .n_kv_heads = c->n_heads, .head_dim = c->head_dim, .eps = c->eps,
            .scale = is_gemma4 ? 1 : (float)(1 / sqrt((double)c->head_dim)), .q_norm = b->norms[PD_TOWER_Q_NORM].w,
            .k_norm = b->norms[PD_TOWER_K_NORM].w, .v_norm = is_gemma4},
        .kv = s->kv, .qkv = s->qkv, .y = s->att, .places = s->places, .angles = s->angles,
        .n_tokens = p->n, .n_keys = p->n};
    norm(p, s->normed, s->x, b->norms[PD_TOWER_ATTN_NORM], p->n);
    if (b->linears[PD_TOWER_QKV].linear.w.n_rows)
        multiply(p, s->qkv, &b->linears[PD_TOWER_QKV], s->normed, s->clamped, p->n);
    for (uint32_t i = 0; i < 3 && b->linears[PD_TOWER_Q].linear.w.n_rows; i++)
        multiply(p, pd_rows_at(s->qkv, 0, i * q_dim), &b->linears[PD_TOWER_Q + i], s->normed, s->clamped, p->n);
    pd_op_rope(p->recorder, &a);
    pd_op_attention(p->recorder, &a);
    multiply(p, s->branch, &b->linears[PD_TOWER_O], s->att, s->att, p->n);
    add(p, s->x, s->branch, b->norms[PD_TOWER_POST_ATTN_NORM], p->n);
}

/* Of rows first .. first + n - 1. */
static void feed_forward(const struct pd_tower_pass *p, const struct pd_tower_block *b, uint32_t first, uint32_t n)
{
    const struct pd_tower_scratch *s = &p->scratch;
    const struct pd_tower_config *c = p->config;
    struct pd_rows x = pd_rows_at(s->x, first, 0), none = {0};
    bool gated = b->linears[PD_TOWER_GATE].linear.w.n_rows != 0;
    norm(p, s->normed, x, b->norms[PD_TOWER_FFN_NORM], n);
    if (gated) multiply(p, s->gate, &b->linears[PD_TOWER_GATE], s->normed, s->clamped, n);
    multiply(p, s->up, &b->linears[PD_TOWER_UP], s->normed, s->clamped, n);
    const struct pd_glu glu = {s->up, gated ? s->gate : s->up, gated ? s->up : none, c->ffn_dim, PD_GELU};
    pd_op_glu(p->recorder, &glu, n);
    multiply(p, s->branch, &b->linears[PD_TOWER_DOWN], s->up, s->up, n);
    add(p, x, s->branch, b->norms[PD_TOWER_POST_FFN_NORM], n);
}

/* x = patches W + b + positions */
static void embed(const struct pd_tower_pass *p)
{
    const struct pd_tower_scratch *s = &p->scratch;
    const struct pd_tower_norm none = {0};
    pd_op_linear(p->recorder, s->x, &p->weights->once.linears[PD_TOWER_PATCH].linear, s->patches, p->n);
    add(p, s->x, s->positions, none, p->n);
}

static void run_layer(const struct pd_tower_pass *p, const struct pd_tower_block *b)
{
    attend(p, b);
    for (uint32_t first = 0; first < p->n; first += PD_TOWER_BLOCK)
        feed_forward(p, b, first, (uint32_t)pd_min(PD_TOWER_BLOCK, p->n - first));
}

/* Gemma 4 scales what it pools by the root of its width. */
static void pool(const struct pd_tower_pass *p)
{
    const struct pd_tower_scratch *s = &p->scratch;
    const struct pd_tower_config *c = p->config;
    const struct pd_tower_block *once = &p->weights->once;
    bool is_siglip = c->kind == PD_TOWER_SIGLIP;
    if (is_siglip) norm(p, s->normed, s->x, once->norms[PD_TOWER_POST_NORM], p->n);
    const struct pd_pool pool = {.x = is_siglip ? s->normed : s->x, .y = s->branch, .n = c->d_model,
        .bias = once->norms[PD_TOWER_STD_BIAS].w, .w = once->norms[PD_TOWER_STD_SCALE].w, .width = p->n_columns,
        .side = c->pool, .scale = is_siglip ? 1 : (float)sqrt(c->d_model)};
    pd_op_pool(p->recorder, &pool, p->n / c->pool / c->pool);
}

/* Gemma 4's 12B: three norms, by mean and variance, around one matrix. */
static void project_patches(const struct pd_tower_pass *p)
{
    const struct pd_tower_scratch *s = &p->scratch;
    const struct pd_tower_config *c = p->config;
    const struct pd_tower_block *once = &p->weights->once;
    const struct pd_tower_norm none = {0};
    const struct pd_tower_norm *w = once->norms;
    struct pd_layernorm norm = {.x = s->patches, .y = s->normed, .w = w[PD_TOWER_PATCH_NORM].w,
        .b = w[PD_TOWER_PATCH_NORM].b, .n = pd_tower_patch_dim(c), .eps = 1e-5f};   /* torch's: no file says it */
    norm_rows(p, &norm, p->n);
    pd_op_linear(p->recorder, s->x, &once->linears[PD_TOWER_PATCH].linear, s->normed, p->n);
    norm = (struct pd_layernorm){.x = s->x, .y = s->x, .w = w[PD_TOWER_DENSE_NORM].w, .b = w[PD_TOWER_DENSE_NORM].b,
        .n = c->d_model, .eps = norm.eps};
    norm_rows(p, &norm, p->n);
    add(p, s->x, s->positions, none, p->n);
    norm.y = s->branch;
    norm.w = w[PD_TOWER_POSITION_NORM].w;
    norm.b = w[PD_TOWER_POSITION_NORM].b;
    norm_rows(p, &norm, p->n);
}

/* Qwen: the normed patches of a square are one row, which two matrices make a row of the text model. */
static void merge(const struct pd_tower_pass *p)
{
    const struct pd_tower_scratch *s = &p->scratch;
    const struct pd_tower_config *c = p->config;
    const struct pd_tower_block *once = &p->weights->once;
    uint32_t side = c->pool * c->pool, n = p->n / side;
    const struct pd_rows squares = {s->normed.address, side * s->normed.stride},
                         merged = {s->branch.address, side * s->branch.stride}, none = {0};
    norm(p, s->normed, s->x, once->norms[PD_TOWER_POST_NORM], p->n);
    pd_op_linear(p->recorder, merged, &once->linears[PD_TOWER_MERGE].linear, squares, n);
    pd_op_glu(p->recorder, &(struct pd_glu){merged, merged, none, side * c->d_model, PD_GELU_ERF}, n);
    pd_op_linear(p->recorder, s->out, &once->linears[PD_TOWER_PROJ].linear, merged, n);
}

/* branch becomes rows of the text model */
static void project(const struct pd_tower_pass *p)
{
    const struct pd_tower_scratch *s = &p->scratch;
    const struct pd_tower_config *c = p->config;
    struct pd_tower_norm w = p->weights->once.norms[PD_TOWER_ROW_NORM];
    uint32_t n = p->n / c->pool / c->pool;
    if (!w.w) w.w = p->weights->ones;
    norm(p, s->x, s->branch, w, n);
    pd_op_linear(p->recorder, s->out, &p->weights->once.linears[PD_TOWER_PROJ].linear, s->x, n);
}

void pd_tower_forward(const struct pd_tower_pass *p, uint32_t stage)
{
    uint32_t n_layers = p->config->n_layers;
    if (stage > 0 && stage <= n_layers) run_layer(p, &p->weights->layers[stage - 1]);
    else if (stage == 0 && n_layers) embed(p);
    else if (stage == 0) project_patches(p);
    else if (p->config->kind == PD_TOWER_QWEN) merge(p);
    else {
        if (n_layers) pool(p);
        project(p);
    }
}

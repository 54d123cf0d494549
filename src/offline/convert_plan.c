#include "offline/convert_plan.h"

#include "arch/layers.h"
#include "arch/plan.h"
#include "base/num.h"

#include <stdio.h>
#include <stdlib.h>

struct planner {
    struct pd_convert_plan *plan;
    const struct pd_checkpoint *checkpoint;
    const struct pd_config *config;
    const char *prefix;
};

/* ---- items ---- */

/* Few bits hurt most in the matrix that every token's logits come from, and in what every token starts as. */
static enum pd_dtype choose(struct pd_convert_plan *p, bool vocabulary, uint32_t n_dims, uint64_t n_cols)
{
    if (n_dims < 2) return PD_F32;
    bool small = pd_dtypes[p->dtype].block_size * 8 < 7 * pd_dtypes[p->dtype].block_len;
    enum pd_dtype wanted = vocabulary && small ? PD_Q6_K : p->dtype, got = pd_dtype_for_row(wanted, n_cols);
    p->n_replaced += got != wanted;
    return got;
}

static peridot_status add(struct pd_convert_plan *p, const char *name, struct pd_convert_item item)
{
    if (p->n == p->capacity) {
        uint32_t capacity = p->capacity * 2 + 64;
        struct pd_convert_item *items = realloc(p->items, capacity * sizeof *items);
        if (!items) return pd_fail_alloc(capacity * sizeof *items, "list of tensors");
        p->items = items;
        p->capacity = capacity;
    }
    item.name = pd_arena_string(&p->arena, name, strlen(name));
    if (!item.name) return pd_fail_alloc(strlen(name), name);
    p->items[p->n++] = item;
    return PERIDOT_OK;
}

static struct pd_convert_item item_of(const struct pd_tensor *t)
{
    struct pd_convert_item item = {.source = t, .n_dims = t->n_dims};
    memcpy(item.shape, t->shape, sizeof item.shape);
    return item;
}

/* ---- GGUF ---- */

static bool is_vocabulary(const char *name) { return !strcmp(name, "token_embd.weight") || !strcmp(name, "output.weight"); }

static peridot_status plan_gguf(struct planner *l)
{
    for (size_t i = 0; i < pd_checkpoint_n_tensors(l->checkpoint); i++) {
        const struct pd_tensor *t = pd_checkpoint_tensor(l->checkpoint, i);
        struct pd_convert_item item = item_of(t);
        item.dtype = choose(l->plan, is_vocabulary(t->name), t->n_dims, t->shape[t->n_dims - 1]);
        PD_TRY(add(l->plan, t->name, item));
    }
    return PERIDOT_OK;
}

/* ---- Hugging Face ---- */

/* A matrix of [rows, cols], or with cols 0 a vector; rows 0: any number. */
struct size {
    uint32_t rows, cols;
};

static struct size size_of(enum pd_role role, const struct pd_config *c, uint32_t i)
{
    const struct pd_layer *layer = &c->layers[i];
    uint32_t q_dim = pd_layer_q_dim(layer), kv_dim = pd_layer_kv_dim(layer);
    switch (role) {
    case PD_ROLE_EMBEDDING: case PD_ROLE_OUTPUT: return (struct size){0, c->d_model};
    case PD_ROLE_Q: return (struct size){q_dim, c->d_model};
    case PD_ROLE_K: case PD_ROLE_V: return (struct size){kv_dim, c->d_model};
    case PD_ROLE_O: return (struct size){c->d_model, q_dim};
    case PD_ROLE_GATE: case PD_ROLE_UP: return (struct size){layer->ffn_dim, c->d_model};
    case PD_ROLE_DOWN: return (struct size){c->d_model, layer->ffn_dim};
    case PD_ROLE_Q_NORM: case PD_ROLE_K_NORM: return (struct size){layer->head_dim, 0};
    default: return (struct size){c->d_model, 0};
    }
}

static peridot_status check_shape(const struct pd_tensor *t, struct size size)
{
    bool ok = size.cols == 0 ? t->n_dims == 1 && t->shape[0] == size.rows
                             : t->n_dims == 2 && t->shape[1] == size.cols && t->shape[0] > 0 && t->shape[0] < 1 << 24 &&
                                   (size.rows == 0 || t->shape[0] == size.rows);
    if (ok) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_FORMAT, "%s: tensor " PD_NAME " has %u dimensions of [%llu, %llu], but the config says [%u, %u] "
                   "(0: any)", t->file, t->name, (unsigned)t->n_dims, (unsigned long long)t->shape[0],
                   (unsigned long long)t->shape[1], (unsigned)size.rows, (unsigned)size.cols);
}

static const struct pd_tensor *find(const struct planner *l, enum pd_role role, uint32_t layer)
{
    char name[PD_TENSOR_NAME_SIZE];
    pd_tensor_name_hf(name, role, layer, l->config->family, l->prefix);
    return pd_checkpoint_find(l->checkpoint, name);
}

/* The tensor of `role`, to be called what `as` is called. */
static peridot_status add_role(struct planner *l, enum pd_role role, enum pd_role as, uint32_t layer)
{
    char name[PD_TENSOR_NAME_SIZE];
    const struct pd_tensor *t = find(l, role, layer);
    pd_tensor_name_hf(name, role, layer, l->config->family, l->prefix);
    if (!t) return pd_fail(PERIDOT_ERROR_FORMAT, "%s: tensor %s is missing", pd_checkpoint_path(l->checkpoint), name);
    struct size size = size_of(role, l->config, layer);
    PD_TRY(check_shape(t, size));
    struct pd_convert_item item = item_of(t);
    item.dtype = choose(l->plan, size.rows == 0, t->n_dims, t->shape[t->n_dims - 1]);
    item.plus_one = size.cols == 0 && l->config->norm_plus_one;
    if (pd_families[l->config->family].gguf_interleaved && (role == PD_ROLE_Q || role == PD_ROLE_K))
        item.interleave = l->config->layers[layer].head_dim;
    pd_tensor_name_gguf(name, as, layer);
    return add(l->plan, name, item);
}

static bool layer_has(enum pd_role role, const struct pd_family_traits *family)
{
    if (role == PD_ROLE_Q_NORM || role == PD_ROLE_K_NORM) return family->qk_norms;
    return (role != PD_ROLE_POST_ATTN_NORM && role != PD_ROLE_POST_FFN_NORM) || family->post_norms;
}

static peridot_status plan_layer(struct planner *l, uint32_t layer)
{
    for (enum pd_role role = PD_ROLE_ATTN_NORM; role < PD_N_ROLES; role++)
        if (layer_has(role, &pd_families[l->config->family])) PD_TRY(add_role(l, role, role, layer));
    return PERIDOT_OK;
}

/* A tied file may hold the matrix under either name, or both. */
static peridot_status plan_vocabulary(struct planner *l)
{
    bool only_output = l->config->tied && !find(l, PD_ROLE_EMBEDDING, 0) && find(l, PD_ROLE_OUTPUT, 0);
    PD_TRY(add_role(l, only_output ? PD_ROLE_OUTPUT : PD_ROLE_EMBEDDING, PD_ROLE_EMBEDDING, 0));
    l->plan->vocab_size = (uint32_t)l->plan->items[0].shape[0];
    if (l->config->tied) return PERIDOT_OK;
    PD_TRY(add_role(l, PD_ROLE_OUTPUT, PD_ROLE_OUTPUT, 0));
    const struct pd_tensor *output = l->plan->items[1].source;
    if (output->shape[0] == l->plan->vocab_size) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_FORMAT, "%s: tensor " PD_NAME " has %llu rows, but the embedding has %u", output->file,
                   output->name, (unsigned long long)output->shape[0], (unsigned)l->plan->vocab_size);
}

/* Llama 3.1's rule of frequencies goes into a GGUF file as a tensor of what each is divided by. */
static peridot_status plan_rope(struct planner *l)
{
    const struct pd_config *c = l->config;
    const struct pd_rope *rope = &c->ropes[PD_ROPE_GLOBAL];
    uint32_t head_dim = c->layers[0].head_dim, n = head_dim / 2;
    char name[PD_TENSOR_NAME_SIZE];
    if (rope->factor == 0) return PERIDOT_OK;
    float *factors = pd_arena_array(&l->plan->arena, n, sizeof *factors);
    if (!factors) return pd_fail_alloc(n * sizeof *factors, "RoPE factors");
    for (uint32_t i = 0; i < n; i++) factors[i] = (float)pd_rope_factor(rope, head_dim, i);
    pd_tensor_name_gguf(name, PD_ROLE_ROPE_FREQS, 0);
    return add(l->plan, name, (struct pd_convert_item){.made = factors, .dtype = PD_F32, .n_dims = 1, .shape = {n, 1, 1, 1}});
}

static peridot_status check_head(const struct planner *l)
{
    peridot_head head = l->config->head;
    if (head == PERIDOT_HEAD_LANGUAGE || (head == PERIDOT_HEAD_NONE && l->config->tied)) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: %s cannot be converted: GGUF has no place for it",
                   pd_checkpoint_path(l->checkpoint),
                   head == PERIDOT_HEAD_NONE ? "a model without an output matrix" : "a classification head");
}

static bool is_used(const struct planner *l, const struct pd_tensor *t)
{
    for (uint32_t i = 0; i < l->plan->n; i++)
        if (l->plan->items[i].source == t) return true;
    /* A tied matrix stored twice, or frequencies that the config gives as well. */
    return (l->config->tied && t == find(l, PD_ROLE_OUTPUT, 0)) || strstr(t->name, "rotary_emb.inv_freq");
}

/* A tensor that nothing reads would be an effect lost without a word. */
static peridot_status check_unused(struct planner *l)
{
    for (size_t i = 0; i < pd_checkpoint_n_tensors(l->checkpoint); i++) {
        const struct pd_tensor *t = pd_checkpoint_tensor(l->checkpoint, i);
        if (is_used(l, t)) continue;
        if (!pd_tensor_is_vision(t->name))
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: tensor " PD_NAME " is not known in a %s model", t->file, t->name,
                           pd_families[l->config->family].name);
        l->plan->n_ignored++;
    }
    return PERIDOT_OK;
}

static peridot_status plan_hf(struct planner *l)
{
    PD_TRY(check_head(l));
    PD_TRY(plan_vocabulary(l));
    PD_TRY(add_role(l, PD_ROLE_OUTPUT_NORM, PD_ROLE_OUTPUT_NORM, 0));
    PD_TRY(plan_rope(l));
    for (uint32_t i = 0; i < l->config->n_layers; i++) PD_TRY(plan_layer(l, i));
    return check_unused(l);
}

peridot_status pd_convert_plan_create(struct pd_convert_plan *out, const struct pd_checkpoint *c, const struct pd_config *config,
                                      enum pd_dtype dtype)
{
    *out = (struct pd_convert_plan){.dtype = dtype};
    struct planner l = {out, c, config, pd_tensor_prefix(c)};
    return pd_checkpoint_kind(c) == PD_CHECKPOINT_GGUF ? plan_gguf(&l) : plan_hf(&l);
}

void pd_convert_plan_free(struct pd_convert_plan *p)
{
    free(p->items);
    pd_arena_free(&p->arena);
    *p = (struct pd_convert_plan){0};
}

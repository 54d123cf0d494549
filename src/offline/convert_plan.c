/* What a converted file will hold: every tensor's new name and type, and how it comes from the source. */
#include "offline/offline_.h"

#include "arch/arch.h"
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct planner {
    struct pd_convert_plan *plan;
    struct pd_source source;
};

/* ---- items ---- */

enum matrix { ORDINARY, VOCABULARY, UNQUANTIZED };

/* By its name in a GGUF file. Published files of whatever type have the last one as bf16. */
static enum matrix matrix_kind(const char *name)
{
    static const struct { enum pd_role role; enum matrix kind; } kinds[] = {
        {PD_ROLE_EMBEDDING, VOCABULARY}, {PD_ROLE_OUTPUT, VOCABULARY}, {PD_ROLE_PER_LAYER_EMBEDDING, VOCABULARY},
        {PD_ROLE_PER_LAYER_MODEL_PROJ, UNQUANTIZED}};
    char known[PD_TENSOR_NAME_SIZE];
    for (size_t i = 0; i < PD_COUNT(kinds); i++) {
        pd_tensor_name_gguf(known, kinds[i].role, 0, PD_TEST_FAMILY);
        if (!strcmp(name, known)) return kinds[i].kind;
    }
    return ORDINARY;
}

/* What a matrix is whatever the others are; PD_N_DTYPES: what the target says. */
static enum pd_dtype fixed_type(const struct pd_convert_item *item, enum pd_dtype wanted)
{
    static const char *const exact[] = {".ffn_gate_inp.", ".ffn_gate_inp_shexp.", ".ssm_conv1d.", ".shortconv.conv.",
                                        ".ssm_a.", ".ssm_d.", ".ssm_norm.", ".bias."};   /* the last: of experts */
    char name[PD_TENSOR_NAME_SIZE + 1];
    if (!item->source || item->n_dims < 2 || wanted == PD_F32) return PD_F32;
    snprintf(name, sizeof name, "%s.", item->name);
    for (size_t i = 0; i < PD_COUNT(exact); i++)
        if (strstr(name, exact[i])) return PD_F32;
    if (item->source->block_scales) return item->source->dtype;   /* experts as they were trained */
    return matrix_kind(item->name) == UNQUANTIZED ? PD_BF16 : PD_N_DTYPES;
}

/* Few bits hurt most in the matrix that every token's logits come from, and in what every token starts as. */
static enum pd_dtype plain_type(const struct pd_convert_item *item, enum pd_dtype wanted)
{
    bool small = pd_dtypes[wanted].block_size * 8 < 7 * pd_dtypes[wanted].block_len;
    return matrix_kind(item->name) == VOCABULARY && small ? PD_Q6_K : wanted;
}

/* "" where it says none. */
static void read_architecture(char out[64], const struct pd_checkpoint *c, const struct pd_config *config)
{
    struct pd_string s = {"", 0};
    bool is_gguf = pd_checkpoint_kind(c) == PD_CHECKPOINT_GGUF;
    const struct pd_meta *m = is_gguf ? pd_checkpoint_find_meta(c, "general.architecture") : NULL;
    if (m) pd_meta_string(&s, m, 0);
    if (is_gguf) snprintf(out, 64, "%.*s", (int)pd_min(s.size, 63), s.data);
    else snprintf(out, 64, "%s", pd_families[config->family].name);
}

/* Of a file's key ARCHITECTURE.KEY, or of an array's first; 0: there is none. */
static uint64_t number_of(const struct pd_checkpoint *c, const char *architecture, const char *key)
{
    char name[128];
    uint64_t number = 0;
    snprintf(name, sizeof name, "%s.%s", architecture, key);
    const struct pd_meta *m = pd_checkpoint_find_meta(c, name);
    return m && pd_meta_uint(&number, m, 0) ? number : 0;
}

static struct pd_mix_model mix_model_of(const struct pd_checkpoint *c, const struct pd_config *config)
{
    struct pd_mix_model model = {0};
    char architecture[64];
    uint64_t n_heads = 0, n_kv_heads = 0;
    read_architecture(architecture, c, config);
    if (pd_checkpoint_kind(c) == PD_CHECKPOINT_GGUF) {
        model.n_layers = number_of(c, architecture, "block_count");
        model.n_experts = number_of(c, architecture, "expert_count");
        n_heads = number_of(c, architecture, "attention.head_count");
        n_kv_heads = number_of(c, architecture, "attention.head_count_kv");
        if (n_kv_heads == 0) n_kv_heads = n_heads;
    } else if (config->n_layers) {
        model.n_layers = config->n_layers + config->n_nextn;
        for (uint32_t i = 0; i < config->n_layers; i++)
            model.n_experts = pd_max(model.n_experts, config->layers[i].n_experts);
        n_heads = config->layers[0].n_heads;
        n_kv_heads = config->layers[0].n_kv_heads;
    }
    bool is_known = !strcmp(architecture, "llama") || !strcmp(architecture, "qwen2");
    model.heads_per_key = n_kv_heads ? n_heads / n_kv_heads : 0;
    model.is_70b = is_known && model.n_layers == 80 && n_heads != n_kv_heads;
    return model;
}

/* Of all items, once all are there: what a mix gives one depends on how many others there are. */
static peridot_status choose_types(struct pd_convert_plan *p, const struct pd_checkpoint *c,
                                   const struct pd_config *config, const struct pd_convert_target *target)
{
    for (uint32_t i = 0; i < p->n; i++) {
        struct pd_convert_item *item = &p->items[i];
        item->dtype = fixed_type(item, target->dtype);
        if (item->dtype == PD_N_DTYPES && !target->mix) item->dtype = plain_type(item, target->dtype);
    }
    struct pd_mix_model model = mix_model_of(c, config);
    model.has_imatrix = target->has_imatrix;
    if (target->mix) PD_TRY(pd_mix_choose(p->items, p->n, target->mix, &model));
    for (uint32_t i = 0; i < p->n; i++) {
        struct pd_convert_item *item = &p->items[i];
        enum pd_dtype got = pd_dtype_for_row(item->dtype, item->shape[item->n_dims - 1]);
        p->n_replaced += got != item->dtype;
        item->dtype = got;
    }
    return PERIDOT_OK;
}

static peridot_status add_item(struct pd_convert_plan *p, const char *name, struct pd_convert_item item)
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

static peridot_status plan_gguf(struct pd_convert_plan *p, const struct pd_checkpoint *c)
{
    for (size_t i = 0; i < pd_checkpoint_n_tensors(c); i++) {
        const struct pd_tensor *t = pd_checkpoint_tensor(c, i);
        if (t->is_scale) continue;   /* no matrix stays in NVFP4 */
        PD_TRY(add_item(p, t->name, item_of(t)));
    }
    return PERIDOT_OK;
}

/* ---- Hugging Face ---- */

/* A tensor that is to be what the plan says. */
static peridot_status add_tensor(struct planner *l, const struct pd_tensor *t, const struct pd_plan *plan)
{
    char name[PD_TENSOR_NAME_SIZE];
    struct pd_convert_item item = item_of(t);
    enum pd_family family = l->source.config->family;
    pd_tensor_name_gguf(name, plan->role, plan->layer + l->source.config->nextn_at, family);
    if (plan->is_vector && plan->n_dims == 2) {   /* the weights of a convolution may have one more dimension */
        item.n_dims = 2;
        item.shape[0] = plan->n_rows;
        item.shape[1] = plan->n_cols;
        item.shape[2] = 1;
    }
    if (plan->split && item.n_dims == 1) {
        item.n_dims = 2;
        item.shape[0] = plan->split;
        item.shape[1] = plan->n_cols / plan->split;
    }
    if (plan->value_rows.block) item.shape[0] = plan->n_taken;
    item.value_rows = plan->value_rows;
    item.value_columns = plan->value_columns;
    item.exponential = plan->role == PD_ROLE_DELTA_DECAY;
    item.plus_one = plan->plus_one;
    item.interleaves = plan->n_rotated_rows && pd_families[family].gguf_interleaved;
    item.order = pd_head_order_of(l->source.config, plan->layer);
    return add_item(l->plan, name, item);
}

/* Half of the rows of each expert. */
static peridot_status halve_experts(struct pd_tensor *half, struct pd_arena *arena, uint32_t i)
{
    uint64_t n = half->shape[0], n_rows = half->shape[1];
    const uint8_t **experts = pd_arena_array(arena, (size_t)n, sizeof *experts);
    if (!experts) return pd_fail_alloc((size_t)n * sizeof *experts, "experts");
    for (uint64_t e = 0; e < n; e++) experts[e] = pd_tensor_row(half, e * n_rows + i * (n_rows / 2), NULL);
    half->experts = experts;
    half->data = experts[0];
    half->shape[1] /= 2;
    half->size /= 2;
    return PERIDOT_OK;
}

/* The halves of a tensor's rows, or of those of each expert, which GGUF has as two. */
static peridot_status add_halves(struct planner *l, const struct pd_tensor *t, const struct pd_plan *plan)
{
    static const enum pd_role all_roles[][2] = {{PD_ROLE_GATE, PD_ROLE_UP}, {PD_ROLE_EXPERTS_GATE, PD_ROLE_EXPERTS_UP}};
    const enum pd_role *roles = all_roles[plan->n_dims == 3];
    struct pd_tensor *halves = pd_arena_array(&l->plan->arena, 2, sizeof *halves);
    if (!halves) return pd_fail_alloc(2 * sizeof *halves, "tensors");
    for (uint32_t i = 0; i < 2; i++) {
        struct pd_plan half = *plan;
        half.role = roles[i];
        halves[i] = *t;
        if (plan->n_dims == 3) PD_TRY(halve_experts(&halves[i], &l->plan->arena, i));
        else {
            halves[i].shape[0] /= 2;
            halves[i].size /= 2;
            halves[i].data += i * halves[i].size;
        }
        PD_TRY(add_tensor(l, &halves[i], &half));
    }
    return PERIDOT_OK;
}

/* A vector that the source has no tensor of. */
static peridot_status add_made(struct planner *l, enum pd_role role, uint32_t layer, const float *made, uint32_t n)
{
    char name[PD_TENSOR_NAME_SIZE];
    pd_tensor_name_gguf(name, role, layer + l->source.config->nextn_at, l->source.config->family);
    return add_item(l->plan, name, (struct pd_convert_item){.made = made, .n_dims = 1,
        .shape = {n, 1, 1, 1}});
}

static peridot_status add_constant(struct planner *l, const struct pd_plan *plan)
{
    float *all = pd_arena_array(&l->plan->arena, plan->n_cols, sizeof *all);
    if (!all) return pd_fail_alloc(plan->n_cols * sizeof *all, "norms");
    for (uint32_t i = 0; i < plan->n_cols; i++) all[i] = plan->constant;
    return add_made(l, plan->role, plan->layer, all, plan->n_cols);
}

static peridot_status add_role(struct planner *l, enum pd_role role, uint32_t layer)
{
    const struct pd_tensor *t;
    struct pd_plan plan;
    if (!pd_plan_get(&plan, l->source.config, role, layer)) return PERIDOT_OK;
    bool parted = role == PD_ROLE_DELTA_Z || role == PD_ROLE_DELTA_QKV;   /* GGUF has of these two what is one here */
    if (plan.again && !parted) return PERIDOT_OK;
    if (!parted && plan.value_rows.block) plan.value_rows = (struct pd_value_order){0};
    if (plan.constant != 0) return add_constant(l, &plan);
    if (role == PD_ROLE_PER_LAYER_EMBEDDING) plan.n_rows = l->plan->vocab_size;
    PD_TRY(pd_source_get(&t, &l->source, &plan));
    const struct pd_family_traits *family = &pd_families[l->source.config->family];
    bool halves = role == PD_ROLE_GATE_UP ? !family->fused : role == PD_ROLE_EXPERTS_GATE_UP && !family->experts_beside;
    if (halves) return add_halves(l, t, &plan);
    return add_tensor(l, t, &plan);
}

static peridot_status plan_vocabulary(struct planner *l)
{
    const struct pd_tensor *t;
    struct pd_plan plan;
    PD_TRY(pd_source_get_embedding(&t, &l->source));
    pd_plan_get(&plan, l->source.config, PD_ROLE_EMBEDDING, 0);
    PD_TRY(add_tensor(l, t, &plan));
    l->plan->vocab_size = (uint32_t)t->shape[0];
    PD_TRY(add_role(l, PD_ROLE_OUTPUT, 0));
    /* the embedding itself where they are tied */
    const struct pd_tensor *output = l->plan->items[l->plan->n - 1].source;
    if (output->shape[0] == l->plan->vocab_size) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_FORMAT, "%s: tensor " PD_NAME " has %llu rows, but the embedding has %u", output->file,
                   output->name, (unsigned long long)output->shape[0], (unsigned)l->plan->vocab_size);
}

/* Rules of frequencies that GGUF has no keys for are tensors of what each is divided by. */
static peridot_status plan_rope(struct planner *l, enum pd_role role)
{
    struct pd_plan plan;
    if (!pd_plan_get(&plan, l->source.config, role, 0)) return PERIDOT_OK;
    float *factors = pd_arena_array(&l->plan->arena, plan.n_cols, sizeof *factors);
    if (!factors) return pd_fail_alloc(plan.n_cols * sizeof *factors, "RoPE factors");
    const struct pd_rope *rope = &l->source.config->ropes[PD_ROPE_GLOBAL];
    if (role == PD_ROLE_ROPE_FREQS) pd_rope_factors(factors, l->source.config, plan.n_cols);
    else memcpy(factors, rope->factors[role == PD_ROLE_ROPE_LONG], plan.n_cols * sizeof *factors);
    return add_made(l, role, 0, factors, plan.n_cols);
}

static peridot_status check_head(const struct planner *l)
{
    peridot_head head = l->source.config->head;
    if (head == PERIDOT_HEAD_LANGUAGE || (head == PERIDOT_HEAD_NONE && l->source.config->tied)
        || (head == PERIDOT_HEAD_NONE && l->source.config->embedding.trained)
        || pd_families[l->source.config->family].embeds) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: %s cannot be converted: GGUF has no place for it",
                   pd_checkpoint_path(l->source.checkpoint),
                   head == PERIDOT_HEAD_NONE ? "a model without an output matrix" : "a classification head");
}

static peridot_status plan_hf(struct planner *l)
{
    static const enum pd_role others[] = {PD_ROLE_OUTPUT_NORM, PD_ROLE_DENSE_2, PD_ROLE_DENSE_3,
        PD_ROLE_EMBEDDING_PROJ, PD_ROLE_PER_LAYER_EMBEDDING, PD_ROLE_PER_LAYER_MODEL_PROJ,
        PD_ROLE_PER_LAYER_MODEL_NORM, PD_ROLE_PRE_PROJ, PD_ROLE_POST_PROJ};
    PD_TRY(check_head(l));
    PD_TRY(plan_vocabulary(l));
    for (size_t i = 0; i < PD_COUNT(others); i++) PD_TRY(add_role(l, others[i], 0));
    for (enum pd_role role = PD_ROLE_ROPE_FREQS; role <= PD_ROLE_ROPE_LONG; role++) PD_TRY(plan_rope(l, role));
    for (uint32_t i = 0; i < l->source.config->n_layers; i++)
        for (enum pd_role role = PD_FIRST_LAYER_ROLE; role < PD_N_ROLES; role++) PD_TRY(add_role(l, role, i));
    return pd_source_check_unused(&l->plan->n_ignored, &l->source);
}

/* The block that drafts tokens, which becomes one more layer. */
static peridot_status plan_block(struct pd_convert_plan *p, const struct pd_checkpoint *c)
{
    struct planner l = {.plan = p};
    struct pd_config block;
    PD_TRY(pd_config_read(&block, c));
    peridot_status status = pd_config_take_block(&block, c);
    if (status == PERIDOT_OK) status = pd_source_open(&l.source, c, &block);
    for (enum pd_role role = PD_ROLE_NEXTN_PROJ; status == PERIDOT_OK && role <= PD_ROLE_NEXTN_NORM; role++)
        status = add_role(&l, role, 0);
    for (enum pd_role role = PD_FIRST_LAYER_ROLE; status == PERIDOT_OK && role < PD_N_ROLES; role++)
        status = add_role(&l, role, 0);
    pd_source_close(&l.source);
    pd_config_free(&block);
    return status;
}

static peridot_status plan_from_hf(struct pd_convert_plan *p, const struct pd_checkpoint *c,
                                   const struct pd_config *config)
{
    struct planner l = {.plan = p};
    peridot_status status = pd_source_open(&l.source, c, config);
    if (status == PERIDOT_OK) status = plan_hf(&l);
    pd_source_close(&l.source);
    return status == PERIDOT_OK && config->n_nextn ? plan_block(p, c) : status;
}

peridot_status pd_convert_plan_create(struct pd_convert_plan *out, const struct pd_checkpoint *c,
                                      const struct pd_config *config, const struct pd_convert_target *target)
{
    *out = (struct pd_convert_plan){0};
    if (pd_checkpoint_kind(c) == PD_CHECKPOINT_GGUF) PD_TRY(plan_gguf(out, c));
    else PD_TRY(plan_from_hf(out, c, config));
    return choose_types(out, c, config, target);
}

void pd_convert_plan_free(struct pd_convert_plan *p)
{
    free(p->items);
    pd_arena_free(&p->arena);
    *p = (struct pd_convert_plan){0};
}

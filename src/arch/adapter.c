/* A LoRA adapter's files, checked against the model that it is for: what is added to each matrix of its layers,
 *   y += scale B (A x)
 * A GGUF file (general.type "adapter") calls A and B NAME.lora_a and NAME.lora_b, NAME being the matrix's; a PEFT
 * directory (adapter_config.json, adapter_model.safetensors) calls them by the matrix's module. What is not known of
 * either, or would be an effect lost, is refused by name. */
#include "arch/arch.h"
#include "base/base.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is known while an adapter is read. */
struct reader {
    const struct pd_checkpoint *checkpoint;
    const struct pd_config *config;
    struct pd_config plans;          /* with value heads ordered as in such a file */
    bool gguf;
    double alpha;                    /* GGUF */
    struct pd_adapter_rules rules;   /* PEFT */
    const char *before, *prefix;     /* of modules' names: "base_model.model.", "model." */
    char adapter[64];                /* between a matrix's name and ".weight": ".default", where the file says it */
    bool *used;                      /* [tensors of the checkpoint] */
};

/* Matrices of layers that every row of a pass is multiplied by. */
static const enum pd_role roles[] = {PD_ROLE_QKV, PD_ROLE_Q, PD_ROLE_K, PD_ROLE_V, PD_ROLE_ATTN_GATE,
    PD_ROLE_O, PD_ROLE_DELTA_QKV, PD_ROLE_DELTA_Z, PD_ROLE_DELTA_B, PD_ROLE_DELTA_A, PD_ROLE_DELTA_O,
    PD_ROLE_GATE_UP, PD_ROLE_GATE, PD_ROLE_UP, PD_ROLE_DOWN};

static const char peft_prefix[] = "base_model.model.";

/* ---- names ---- */

enum { NAME_SIZE = PD_TENSOR_NAME_SIZE + 128 };

/* Of the module that a PEFT directory adapts, without what stands before all of them. */
static void module_name(char out[PD_TENSOR_NAME_SIZE], const struct reader *r, enum pd_role role, uint32_t layer)
{
    pd_tensor_name_hf(out, role, layer, r->config->family, r->prefix);
    char *end = strrchr(out, '.');
    if (end) *end = 0;   /* ".weight" */
}

/* The tensor in which a role's rows are. */
static enum pd_role role_in_file(const struct reader *r, enum pd_role role)
{
    return role == PD_ROLE_ATTN_GATE && pd_families[r->config->family].gate_in_q ? PD_ROLE_Q : role;
}

static const struct pd_tensor *adapter_find(const struct reader *r, char name[NAME_SIZE], enum pd_role role,
                                            uint32_t layer, bool is_b)
{
    char base[PD_TENSOR_NAME_SIZE];
    if (r->gguf) {
        pd_tensor_name_gguf(base, role, layer, r->config->family);
        snprintf(name, NAME_SIZE, "%s.lora_%c", base, is_b ? 'b' : 'a');
    } else {
        module_name(base, r, role, layer);
        snprintf(name, NAME_SIZE, "%s%s.lora_%c%s.weight", r->before, base, is_b ? 'B' : 'A', r->adapter);
    }
    const struct pd_tensor *t = pd_checkpoint_find(r->checkpoint, name);
    if (t) r->used[t - pd_checkpoint_tensor(r->checkpoint, 0)] = true;
    return t;
}

/* ---- parts ---- */

static peridot_status check_shape(const struct pd_tensor *t, uint64_t n_rows, uint64_t n_cols)
{
    if (t->dtype >= PD_N_DTYPES)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: tensor " PD_NAME " has type %s, which is not supported", t->file,
                       t->name, t->type);
    if (t->n_dims != 2)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: tensor " PD_NAME " has %u dimensions, not 2", t->file, t->name,
                       t->n_dims);
    if (t->shape[0] == n_rows && t->shape[1] == n_cols) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_FORMAT, "%s: tensor " PD_NAME " has shape [%llu, %llu], but the model and its rank "
                   "say [%llu, %llu]", t->file, t->name, (unsigned long long)t->shape[0],
                   (unsigned long long)t->shape[1], (unsigned long long)n_rows, (unsigned long long)n_cols);
}

/* GGUF files say alpha alone: the rank is that of the tensors. */
static void read_scale(struct pd_adapter_part *part, const struct reader *r, enum pd_role role, uint32_t layer)
{
    char module[PD_TENSOR_NAME_SIZE];
    if (r->gguf) {
        part->rank = (uint32_t)pd_min(part->a->shape[0], UINT32_MAX);
        part->scale = r->alpha != 0 && part->rank ? (float)(r->alpha / part->rank) : 1;
        return;
    }
    module_name(module, r, role, layer);
    pd_adapter_rules_get(&part->rank, &part->scale, &r->rules, module);
}

static peridot_status read_part(struct pd_adapter_part *part, const struct reader *r, const struct pd_plan *plan)
{
    char a[NAME_SIZE], b[NAME_SIZE];
    enum pd_role role = role_in_file(r, plan->role);
    *part = (struct pd_adapter_part){.a = adapter_find(r, a, role, plan->layer, false),
                                     .b = adapter_find(r, b, role, plan->layer, true)};
    if (!part->a && !part->b) return PERIDOT_OK;
    if (!part->a || !part->b)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: tensor %s is missing", pd_checkpoint_path(r->checkpoint),
                       part->a ? b : a);
    read_scale(part, r, role, plan->layer);
    if (part->rank == 0 || part->rank > plan->n_rows + (uint64_t)plan->n_cols)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: tensor " PD_NAME ": a rank of %u makes no sense for a matrix of "
                       "%u x %u", part->a->file, part->a->name, part->rank, plan->n_rows, plan->n_cols);
    PD_TRY(check_shape(part->a, part->rank, plan->n_cols));
    PD_TRY(check_shape(part->b, plan->n_rows, part->rank));
    part->order = pd_head_order_of(r->config, plan->layer);
    part->order.interleaved = r->gguf && pd_families[r->config->family].gguf_interleaved;
    part->n_reordered = plan->n_rotated_rows;
    part->head_half = plan->head_half;
    part->value_rows = plan->value_rows;
    part->value_columns = plan->value_columns;
    return PERIDOT_OK;
}

/* Keys of layers that read another's: PEFT's files have them all the same. */
static void skip_unread_kv(const struct reader *r)
{
    static const enum pd_role unread[] = {PD_ROLE_K, PD_ROLE_V};
    char name[NAME_SIZE];
    for (uint32_t i = r->config->n_layers - r->config->n_shared_kv; i < r->config->n_layers; i++)
        for (size_t k = 0; k < PD_COUNT(unread); k++)
            for (int is_b = 0; is_b < 2; is_b++) adapter_find(r, name, unread[k], i, is_b);
}

/* What belongs to the model, and adapts nothing: some converters copy it. */
static bool is_idle(const struct pd_tensor *t)
{
    return strcmp(t->name, "rope_freqs.weight") == 0 || strstr(t->name, "rotary_emb.inv_freq");
}

/* A tensor that nothing has found would be an effect lost without a word. */
static peridot_status check_unused(const struct reader *r)
{
    for (size_t i = 0; i < pd_checkpoint_n_tensors(r->checkpoint); i++) {
        const struct pd_tensor *t = pd_checkpoint_tensor(r->checkpoint, i);
        if (!r->used[i] && !is_idle(t))
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: tensor " PD_NAME " is not supported in an adapter of this "
                           "%s model: adapters are to the matrices of attention, recurrences and gated units alone",
                           t->file, t->name, pd_families[r->config->family].name);
    }
    return PERIDOT_OK;
}

static peridot_status read_parts(struct pd_adapter *out, const struct reader *r)
{
    bool any = false;
    skip_unread_kv(r);
    for (uint32_t i = 0; i < r->config->n_layers; i++)
        for (size_t k = 0; k < PD_COUNT(roles); k++) {
            struct pd_adapter_part *part = &out->parts[i * PD_N_ROLES + roles[k]];
            struct pd_plan plan;
            if (!pd_plan_get(&plan, &r->plans, roles[k], i)) continue;
            PD_TRY(read_part(part, r, &plan));
            any = any || part->rank;
        }
    PD_TRY(check_unused(r));
    return any ? PERIDOT_OK : pd_fail(PERIDOT_ERROR_FORMAT, "%s: the adapter is empty",
                                      pd_checkpoint_path(r->checkpoint));
}

/* ---- metadata ---- */

static peridot_status check_string(const struct reader *r, const char *key, const char *want)
{
    const struct pd_meta *m = pd_checkpoint_find_meta(r->checkpoint, key);
    struct pd_string s = {"nothing", 7};
    if (m && pd_meta_string(&s, m, 0) && s.size == strlen(want) && memcmp(s.data, want, s.size) == 0) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "metadata key %s is %.*s, not %s", key, (int)pd_min(s.size, 60), s.data,
                   want);
}

/* Keys that llama.cpp's files may have beside, of which these change nothing. */
static peridot_status check_keys(const struct reader *r)
{
    static const char *const known[] = {"adapter.type", "adapter.lora.alpha", "adapter.lora.task_name",
        "adapter.lora.prompt_prefix"};
    for (size_t i = 0; i < pd_checkpoint_n_meta(r->checkpoint); i++) {
        const char *key = pd_checkpoint_meta(r->checkpoint, i)->key;
        bool is_known = strncmp(key, "adapter.", 8) != 0;
        for (size_t k = 0; k < PD_COUNT(known); k++) is_known = is_known || strcmp(key, known[k]) == 0;
        if (!is_known) return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "metadata key " PD_NAME " is not known", key);
    }
    return PERIDOT_OK;
}

static peridot_status read_gguf(struct reader *r)
{
    const struct pd_meta *m = pd_checkpoint_find_meta(r->checkpoint, "adapter.lora.alpha");
    PD_TRY(check_string(r, "general.type", "adapter"));
    PD_TRY(check_string(r, "adapter.type", "lora"));
    PD_TRY(check_string(r, "general.architecture", pd_families[r->config->family].name));
    PD_TRY(check_keys(r));
    if (m && pd_meta_float(&r->alpha, m, 0) && fabs(r->alpha) < 1e30) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_FORMAT, "metadata key adapter.lora.alpha is not a number");
}

/* States that were saved without PEFT's save_pretrained have the adapter's name in those of their tensors: of several
 * adapters the others are refused. */
static void find_adapter_name(struct reader *r)
{
    static const char before[] = ".lora_A", end[] = ".weight";
    for (size_t i = 0; i < pd_checkpoint_n_tensors(r->checkpoint); i++) {
        const char *at = strstr(pd_checkpoint_tensor(r->checkpoint, i)->name, before);
        const size_t n = at ? strlen(at) : 0, n_ends = sizeof before - 1 + sizeof end - 1;
        if (n < n_ends || n - n_ends >= sizeof r->adapter || strcmp(at + n - (sizeof end - 1), end) != 0) continue;
        snprintf(r->adapter, sizeof r->adapter, "%.*s", (int)(n - n_ends), at + sizeof before - 1);
        return;
    }
}

static peridot_status read_peft(struct reader *r)
{
    peridot_status status = pd_adapter_rules_read(&r->rules, pd_checkpoint_config(r->checkpoint));
    if (status != PERIDOT_OK) return pd_fail_prefix(status, "adapter_config.json");
    r->before = peft_prefix;
    r->prefix = pd_tensor_prefix_of_layers(r->checkpoint, r->before);
    if (!r->prefix) r->prefix = pd_tensor_prefix_of_layers(r->checkpoint, r->before = "");
    find_adapter_name(r);
    return r->prefix ? PERIDOT_OK : pd_fail(PERIDOT_ERROR_FORMAT, "no tensor adapts a layer");
}

/* ---- all of it ---- */

static peridot_status adapter_read_all(struct pd_adapter *out, struct reader *r)
{
    size_t n = pd_max(pd_checkpoint_n_tensors(r->checkpoint), 1);
    peridot_status status = r->gguf ? read_gguf(r) : read_peft(r);
    if (status != PERIDOT_OK) return pd_fail_prefix(status, pd_checkpoint_path(r->checkpoint));
    out->parts = calloc((size_t)r->config->n_layers * PD_N_ROLES, sizeof *out->parts);
    r->used = calloc(n, sizeof *r->used);
    return out->parts && r->used ? read_parts(out, r) : pd_fail_alloc(n, "an adapter");
}

peridot_status pd_adapter_open(struct pd_adapter *out, const char *path, const struct pd_config *config)
{
    *out = (struct pd_adapter){0};
    PD_TRY(pd_checkpoint_open_adapter(&out->checkpoint, path));
    struct reader r = {.checkpoint = out->checkpoint, .config = config, .plans = *config,
        .gguf = pd_checkpoint_kind(out->checkpoint) == PD_CHECKPOINT_GGUF};
    r.plans.hf_recurrences = !r.gguf;
    peridot_status status = pd_checkpoint_check(adapter_read_all(out, &r), out->checkpoint);
    free(r.used);
    if (status != PERIDOT_OK) pd_adapter_close(out);
    return status;
}

void pd_adapter_close(struct pd_adapter *a)
{
    pd_checkpoint_close(a->checkpoint);
    free(a->parts);
    *a = (struct pd_adapter){0};
}

const struct pd_adapter_part *pd_adapter_get(const struct pd_adapter *a, enum pd_role role, uint32_t layer)
{
    return &a->parts[layer * PD_N_ROLES + role];
}

void pd_adapter_a(float *out, const struct pd_adapter_part *part)
{
    const struct pd_tensor *a = part->a;
    uint64_t n_cols = a->shape[1];
    if (!pd_value_order_differs(&part->value_columns)) {
        pd_dequantize(a->dtype, out, a->data, part->rank * n_cols);
        return;
    }
    for (uint32_t width = part->value_columns.width, i = 0; i < part->rank * n_cols; i += width) {
        uint32_t in_row = (uint32_t)(i % n_cols);
        pd_tensor_dequantize(out + i, a, i - in_row + pd_value_order_row(&part->value_columns, in_row), width);
    }
}

void pd_adapter_b_row(float *out, const struct pd_adapter_part *part, uint32_t row)
{
    const struct pd_tensor *b = part->b;
    if (row < part->n_reordered) row = pd_head_order_row(&part->order, row);
    if (part->head_half) row += (row / part->order.head_dim + part->head_half - 1) * part->order.head_dim;
    row = pd_value_order_row(&part->value_rows, row);
    pd_dequantize(b->dtype, out, b->data + row * (b->size / b->shape[0]), part->rank);
    for (uint32_t j = 0; j < part->rank; j++) out[j] *= part->scale;
}

/* ---- adapter config ---- */

/* adapter_config.json of a PEFT directory: ranks and factors of its modules, and what it must not say. */

enum { MAX_RANK = 1 << 16 };

/* Keys that change nothing of what an adapter that is trained computes. */
static const char *const idle_keys[] = {
    "auto_mapping", "base_model_name_or_path", "corda_config", "ensure_weight_tying", "eva_config", "exclude_modules",
    "inference_mode", "layers_pattern", "layers_to_transform", "loftq_config", "lora_dropout", "lora_ga_config",
    "megatron_config", "megatron_core", "peft_version", "qalora_group_size", "revision", "runtime_config",
    "target_modules", "task_type", "velora_config"};
/* Those that are read below. */
static const char *const read_keys[] = {
    "alpha_pattern", "bias", "init_lora_weights", "lora_alpha", "peft_type", "r", "rank_pattern", "use_rslora"};

static bool is_one_of(const char *key, const char *const *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(key, keys[i]) == 0) return true;
    return false;
}

/* null, false, an empty text or list, or an object of such values alone: as if the key were not there. */
static bool says_nothing(yyjson_val *v, int depth)
{
    yyjson_obj_iter iter = yyjson_obj_iter_with(v);
    bool nothing = depth > 0;
    if (yyjson_is_str(v)) return yyjson_get_len(v) == 0;
    if (yyjson_is_arr(v)) return yyjson_arr_size(v) == 0;
    if (!yyjson_is_obj(v)) return yyjson_is_null(v) || yyjson_is_false(v);
    for (yyjson_val *k; nothing && (k = yyjson_obj_iter_next(&iter));)
        nothing = says_nothing(yyjson_obj_iter_get_val(k), depth - 1);
    return nothing;
}

static peridot_status check_config_keys(yyjson_val *config)
{
    yyjson_obj_iter iter = yyjson_obj_iter_with(config);
    for (yyjson_val *k; (k = yyjson_obj_iter_next(&iter));) {
        yyjson_val *v = yyjson_obj_iter_get_val(k);
        const char *key = yyjson_get_str(k);
        bool known = is_one_of(key, idle_keys, PD_COUNT(idle_keys)) || is_one_of(key, read_keys, PD_COUNT(read_keys));
        if (known || says_nothing(v, 4)) continue;
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, PD_NAME " is not supported in an adapter", key);
    }
    return PERIDOT_OK;
}

/* A key that has one of these strings, or is not there. */
static peridot_status check_text(yyjson_val *config, const char *key, const char *const *texts, size_t n)
{
    yyjson_val *v = yyjson_obj_get(config, key);
    const char *text = yyjson_get_str(v);
    if (!v || yyjson_is_null(v) || (text && is_one_of(text, texts, n))) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s " PD_NAME " is not supported in an adapter", key,
                   text && pd_name_valid(text, yyjson_get_len(v)) ? text : yyjson_get_type_desc(v));
}

static peridot_status check_texts(yyjson_val *config)
{
    static const char *const types[] = {"LORA"}, *const biases[] = {"none"};
    /* how A and B began; others change the model's matrices as well */
    static const char *const begins[] = {"gaussian", "eva", "mica", "orthogonal"};
    if (!yyjson_obj_get(config, "peft_type")) return pd_fail(PERIDOT_ERROR_FORMAT, "peft_type is missing");
    PD_TRY(check_text(config, "peft_type", types, PD_COUNT(types)));
    PD_TRY(check_text(config, "bias", biases, PD_COUNT(biases)));
    if (yyjson_is_bool(yyjson_obj_get(config, "init_lora_weights"))) return PERIDOT_OK;
    return check_text(config, "init_lora_weights", begins, PD_COUNT(begins));
}

static peridot_status read_rank(uint32_t *out, yyjson_val *v, const char *what)
{
    if (!yyjson_is_uint(v) || yyjson_get_uint(v) == 0 || yyjson_get_uint(v) > MAX_RANK)
        return pd_fail(PERIDOT_ERROR_FORMAT, PD_NAME " is not a rank", what);
    *out = (uint32_t)yyjson_get_uint(v);
    return PERIDOT_OK;
}

static peridot_status read_alpha(double *out, yyjson_val *v, const char *what)
{
    *out = yyjson_get_num(v);
    if (yyjson_is_num(v) && fabs(*out) < 1e30) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_FORMAT, PD_NAME " is not a number", what);
}

/* PEFT takes a pattern's keys for regular expressions; published ones are names, or their ends. */
static peridot_status read_pattern(yyjson_val **out, yyjson_val *config, const char *key)
{
    yyjson_val *v = yyjson_obj_get(config, key);
    yyjson_obj_iter iter = yyjson_obj_iter_with(v);
    if (v && !yyjson_is_null(v) && !yyjson_is_obj(v)) return pd_fail(PERIDOT_ERROR_FORMAT, "%s is not an object", key);
    *out = yyjson_is_obj(v) ? v : NULL;
    for (yyjson_val *k; *out && (k = yyjson_obj_iter_next(&iter));) {
        const char *name = yyjson_get_str(k);
        uint32_t rank;
        double alpha;
        if (strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._") != yyjson_get_len(k))
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: " PD_NAME " is not a module's name: patterns of names are "
                           "not supported", key, name);
        if (key[0] == 'r') PD_TRY(read_rank(&rank, yyjson_obj_iter_get_val(k), name));
        else PD_TRY(read_alpha(&alpha, yyjson_obj_iter_get_val(k), name));
    }
    return PERIDOT_OK;
}

peridot_status pd_adapter_rules_read(struct pd_adapter_rules *out, yyjson_val *config)
{
    yyjson_val *by_root = yyjson_obj_get(config, "use_rslora");
    *out = (struct pd_adapter_rules){0};
    PD_TRY(check_config_keys(config));
    PD_TRY(check_texts(config));
    if (by_root && !yyjson_is_null(by_root) && !yyjson_is_bool(by_root))
        return pd_fail(PERIDOT_ERROR_FORMAT, "use_rslora is neither true nor false");
    out->by_root = yyjson_is_true(by_root);
    PD_TRY(read_rank(&out->rank, yyjson_obj_get(config, "r"), "r"));
    PD_TRY(read_alpha(&out->alpha, yyjson_obj_get(config, "lora_alpha"), "lora_alpha"));
    PD_TRY(read_pattern(&out->ranks, config, "rank_pattern"));
    return read_pattern(&out->alphas, config, "alpha_pattern");
}

/* The value of the first key that is the module's name or, after a dot, its end. */
static yyjson_val *match(yyjson_val *pattern, const char *module)
{
    size_t size = strlen(module);
    yyjson_obj_iter iter = yyjson_obj_iter_with(pattern);
    for (yyjson_val *k; pattern && (k = yyjson_obj_iter_next(&iter));) {
        size_t n = yyjson_get_len(k);
        if (n > size || strcmp(module + size - n, yyjson_get_str(k)) != 0) continue;
        if (n == size || module[size - n - 1] == '.') return yyjson_obj_iter_get_val(k);
    }
    return NULL;
}

void pd_adapter_rules_get(uint32_t *rank, float *scale, const struct pd_adapter_rules *rules, const char *module)
{
    yyjson_val *own_rank = match(rules->ranks, module), *own_alpha = match(rules->alphas, module);
    *rank = own_rank ? (uint32_t)yyjson_get_uint(own_rank) : rules->rank;
    double alpha = own_alpha ? yyjson_get_num(own_alpha) : rules->alpha;
    *scale = (float)(alpha / (rules->by_root ? sqrt(*rank) : *rank));
}

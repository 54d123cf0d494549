#include "arch/adapter.h"

#include "arch/layers.h"
#include "base/num.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is known while an adapter is read. */
struct reader {
    const struct pd_checkpoint *checkpoint;
    const struct pd_config *config;
    bool gguf;
    double alpha;                    /* GGUF */
    struct pd_adapter_rules rules;   /* PEFT */
    const char *before, *prefix;     /* of modules' names: "base_model.model.", "model." */
    char adapter[64];                /* between a matrix's name and ".weight": ".default", where the file says it */
    bool *used;                      /* [tensors of the checkpoint] */
};

/* Matrices of layers that every row of a pass is multiplied by. */
static const enum pd_role roles[] = {PD_ROLE_QKV, PD_ROLE_Q, PD_ROLE_K, PD_ROLE_V, PD_ROLE_ATTN_GATE,
    PD_ROLE_O, PD_ROLE_GATE_UP, PD_ROLE_GATE, PD_ROLE_UP, PD_ROLE_DOWN};

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

static const struct pd_tensor *find(const struct reader *r, char name[NAME_SIZE], enum pd_role role, uint32_t layer,
                                    bool is_b)
{
    char base[PD_TENSOR_NAME_SIZE];
    if (r->gguf) {
        pd_tensor_name_gguf(base, role, layer);
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
    *part = (struct pd_adapter_part){.a = find(r, a, plan->role, plan->layer, false),
                                     .b = find(r, b, plan->role, plan->layer, true)};
    if (!part->a && !part->b) return PERIDOT_OK;
    if (!part->a || !part->b)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: tensor %s is missing", pd_checkpoint_path(r->checkpoint),
                       part->a ? b : a);
    read_scale(part, r, plan->role, plan->layer);
    if (part->rank == 0 || part->rank > plan->n_rows + (uint64_t)plan->n_cols)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: tensor " PD_NAME ": a rank of %u makes no sense for a matrix of "
                       "%u x %u", part->a->file, part->a->name, part->rank, plan->n_rows, plan->n_cols);
    PD_TRY(check_shape(part->a, part->rank, plan->n_cols));
    PD_TRY(check_shape(part->b, plan->n_rows, part->rank));
    part->order = pd_head_order_of(r->config, plan->layer);
    part->order.interleaved = r->gguf && pd_families[r->config->family].gguf_interleaved;
    part->n_reordered = plan->n_rotated_rows;
    return PERIDOT_OK;
}

/* Keys of layers that read another's: PEFT's files have them all the same. */
static void skip_unread_kv(const struct reader *r)
{
    static const enum pd_role unread[] = {PD_ROLE_K, PD_ROLE_V};
    char name[NAME_SIZE];
    for (uint32_t i = r->config->n_layers - r->config->n_shared_kv; i < r->config->n_layers; i++)
        for (size_t k = 0; k < PD_COUNT(unread); k++)
            for (int is_b = 0; is_b < 2; is_b++) find(r, name, unread[k], i, is_b);
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
                           "%s model: adapters are to the matrices of attention and of the gated units alone", t->file,
                           t->name, pd_families[r->config->family].name);
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
            if (!pd_plan_get(&plan, r->config, roles[k], i)) continue;
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

static peridot_status read_all(struct pd_adapter *out, struct reader *r)
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
    struct reader r = {.checkpoint = out->checkpoint, .config = config,
        .gguf = pd_checkpoint_kind(out->checkpoint) == PD_CHECKPOINT_GGUF};
    peridot_status status = pd_checkpoint_check(read_all(out, &r), out->checkpoint);
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

void pd_adapter_b_row(float *out, const struct pd_adapter_part *part, uint32_t row)
{
    const struct pd_tensor *b = part->b;
    if (row < part->n_reordered) row = pd_head_order_row(&part->order, row);
    pd_dequantize(b->dtype, out, b->data + row * (b->size / b->shape[0]), part->rank);
    for (uint32_t j = 0; j < part->rank; j++) out[j] *= part->scale;
}

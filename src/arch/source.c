/* The tensors of a checkpoint, found by the names of the plan and checked against its shapes. */
#include "arch/arch.h"

#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROWS = 1 << 24 };   /* of a matrix whose rows the file counts */

/* Of a block that drafts, GGUF files have the number after those of layers. */
static void source_name(char name[PD_TENSOR_NAME_SIZE], const struct pd_source *s, enum pd_role role, uint32_t layer)
{
    bool gguf = pd_checkpoint_kind(s->checkpoint) == PD_CHECKPOINT_GGUF;
    pd_tensor_name(name, s->checkpoint, s->config->family, s->prefix, role,
                   layer + (gguf ? s->config->nextn_at : 0));
}

const struct pd_tensor *pd_source_find(const struct pd_source *s, enum pd_role role, uint32_t layer)
{
    char name[PD_TENSOR_NAME_SIZE];
    source_name(name, s, role, layer);
    return pd_checkpoint_find(s->checkpoint, name);
}

/* ---- the vocabulary ---- */

/* A file that says that both are one, and holds two. */
static peridot_status check_tied(const struct pd_source *s, const struct pd_tensor *embedding)
{
    const struct pd_tensor *output = pd_source_find(s, PD_ROLE_OUTPUT, 0);
    if (!s->config->tied || !embedding || !output) return PERIDOT_OK;
    bool same = output->dtype == embedding->dtype && output->size == embedding->size
        && output->shape[0] == embedding->shape[0]
        && (output->size == 0 || memcmp(output->data, embedding->data, output->size) == 0);
    if (same) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_FORMAT,
                   "%s: config.json: tie_word_embeddings is true, or left to its default, but tensors %s and %s differ",
                   pd_checkpoint_path(s->checkpoint), output->name, embedding->name);
}

static peridot_status check_vocabulary(const struct pd_source *s)
{
    const struct pd_tensor *embedding = pd_source_find(s, PD_ROLE_EMBEDDING, 0);
    const struct pd_tensor *t = embedding || !s->config->tied ? embedding : pd_source_find(s, PD_ROLE_OUTPUT, 0);
    uint32_t n = s->config->vocab_size;
    bool gguf = pd_checkpoint_kind(s->checkpoint) == PD_CHECKPOINT_GGUF;
    if (t && n && t->shape[0] != n)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: %s%svocab_size is %u, but tensor %s has %llu rows",
                       pd_checkpoint_path(s->checkpoint), gguf ? pd_families[s->config->family].name : "config.json",
                       gguf ? "." : ": ", n, t->name, (unsigned long long)t->shape[0]);
    return check_tied(s, embedding);
}

/* ---- tensors ---- */

/* Keys of layers that read another's, which published files carry all the same. */
static void skip_unread_kv(struct pd_source *s)
{
    static const enum pd_role roles[] = {PD_ROLE_K, PD_ROLE_V, PD_ROLE_K_NORM};
    for (uint32_t i = s->config->n_layers - s->config->n_shared_kv; i < s->config->n_layers; i++)
        for (size_t k = 0; k < PD_COUNT(roles); k++) {
            const struct pd_tensor *t = pd_source_find(s, roles[k], i);
            if (t) s->used[t - pd_checkpoint_tensor(s->checkpoint, 0)] = true;
        }
}

peridot_status pd_source_open(struct pd_source *out, const struct pd_checkpoint *checkpoint,
                              const struct pd_config *config)
{
    size_t n = pd_max(pd_checkpoint_n_tensors(checkpoint), 1);
    *out = (struct pd_source){.checkpoint = checkpoint, .config = config,
        .prefix = config->nextn_at ? "mtp." : pd_tensor_prefix(checkpoint),
        .used = calloc(n, sizeof *out->used)};
    if (!out->used) return pd_fail_alloc(n * sizeof *out->used, "list of tensors");
    skip_unread_kv(out);
    peridot_status status = check_vocabulary(out);
    if (status != PERIDOT_OK) pd_source_close(out);
    return status;
}

void pd_source_close(struct pd_source *s)
{
    free(s->used);
    s->used = NULL;
}

static bool has_shape(const struct pd_tensor *t, const struct pd_plan *plan, bool gguf)
{
    if (gguf && plan->split)
        return t->n_dims == 2 && t->shape[0] == plan->split && t->shape[1] == plan->n_cols / plan->split;
    /* a convolution of each channel by itself: [channels][1][width] */
    bool of_channels = plan->is_vector && plan->n_dims == 2 && t->n_dims == 3 && t->shape[1] == 1;
    if (of_channels) return t->shape[0] == plan->n_rows && t->shape[2] == plan->n_cols;
    if (plan->n_dims == 2 && plan->n_rows == 1 && t->n_dims == 1) return t->shape[0] == plan->n_cols;
    if (t->n_dims != plan->n_dims) return false;
    if (plan->n_dims == 2 && plan->n_rows == PD_ANY_SIZE && (t->shape[0] == 0 || t->shape[0] >= MAX_ROWS)) return false;
    if (plan->n_dims == 2 && plan->n_rows != PD_ANY_SIZE && t->shape[0] != plan->n_rows) return false;
    if (plan->n_dims == 3 && (t->shape[0] != plan->n_experts || t->shape[1] != plan->n_rows)) return false;
    return t->shape[plan->n_dims - 1] == plan->n_cols;
}

static peridot_status fail_shape(const struct pd_tensor *t, const struct pd_plan *plan)
{
    char got[4 * 24] = "", rows[32] = "";
    size_t size = 0;
    for (uint32_t i = 0; i < t->n_dims; i++)
        size += (size_t)snprintf(got + size, sizeof got - size, "%s%llu", i ? ", " : "",
                                 (unsigned long long)t->shape[i]);
    if (plan->n_dims == 2 && plan->n_rows == PD_ANY_SIZE) snprintf(rows, sizeof rows, "any, ");
    else if (plan->n_dims == 2) snprintf(rows, sizeof rows, "%u, ", plan->n_rows);
    else if (plan->n_dims == 3) snprintf(rows, sizeof rows, "%u, %u, ", plan->n_experts, plan->n_rows);
    return pd_fail(PERIDOT_ERROR_FORMAT, "%s: tensor " PD_NAME " has shape [%s], but the config says [%s%u]", t->file,
                   t->name, got, rows, plan->n_cols);
}

peridot_status pd_source_get(const struct pd_tensor **out, struct pd_source *s, const struct pd_plan *plan)
{
    bool gguf = pd_checkpoint_kind(s->checkpoint) == PD_CHECKPOINT_GGUF;
    char name[PD_TENSOR_NAME_SIZE];
    source_name(name, s, plan->role, plan->layer);
    const struct pd_tensor *t = *out = pd_checkpoint_find(s->checkpoint, name);
    if (!t) return pd_fail(PERIDOT_ERROR_FORMAT, "%s: tensor %s is missing", pd_checkpoint_path(s->checkpoint), name);
    if (t->dtype == PD_DTYPE_OTHER)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: tensor %s has type %s, which is not supported", t->file, name,
                       t->type);
    if (!has_shape(t, plan, gguf)) return fail_shape(t, plan);
    if (plan->role == PD_ROLE_SCORE && s->config->n_labels && s->config->n_labels != t->shape[0])
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: %s has %u labels, but %s has %llu rows",
                       pd_checkpoint_path(s->checkpoint), gguf ? "classifier.output_labels" : "id2label",
                       s->config->n_labels, t->name,
                       (unsigned long long)t->shape[0]);
    s->used[t - pd_checkpoint_tensor(s->checkpoint, 0)] = true;
    return PERIDOT_OK;
}

peridot_status pd_source_get_embedding(const struct pd_tensor **out, struct pd_source *s)
{
    struct pd_plan plan;
    bool only_output = s->config->tied && !pd_source_find(s, PD_ROLE_EMBEDDING, 0)
        && pd_source_find(s, PD_ROLE_OUTPUT, 0);
    pd_plan_get(&plan, s->config, only_output ? PD_ROLE_OUTPUT : PD_ROLE_EMBEDDING, 0);
    return pd_source_get(out, s, &plan);
}

/* A tied matrix stored twice, frequencies that the config gives as well, or a drafter's clusters of tokens, of which it
 * need not choose where it has logits of all. */
static bool is_redundant(const struct pd_source *s, const struct pd_tensor *t)
{
    static const enum pd_role rope[] = {PD_ROLE_ROPE_FREQS, PD_ROLE_ROPE_SHORT, PD_ROLE_ROPE_LONG};
    if (s->config->tied && t == pd_source_find(s, PD_ROLE_OUTPUT, 0)) return true;
    if (s->config->target_dim && strncmp(t->name, "masked_embedding.", 17) == 0) return true;
    for (size_t i = 0; i < PD_COUNT(rope); i++)
        if (t == pd_source_find(s, rope[i], 0)) return true;
    return strstr(t->name, "rotary_emb.inv_freq");
}

/* Of blocks that draft tokens, which are opened by themselves. */
static bool is_nextn(const struct pd_source *s, const struct pd_tensor *t)
{
    unsigned layer;
    if (pd_checkpoint_kind(s->checkpoint) == PD_CHECKPOINT_HF)
        return strncmp(t->name, "mtp.", 4) == 0 && pd_config_has_block(s->config, s->checkpoint);
    return s->config->n_nextn && sscanf(t->name, "blk.%5u.", &layer) == 1 && layer >= s->config->n_layers;
}

peridot_status pd_source_check_unused(uint32_t *n_ignored, const struct pd_source *s)
{
    *n_ignored = 0;
    if (s->config->nextn_at) return PERIDOT_OK;   /* the rest is the model's */
    for (size_t i = 0; i < pd_checkpoint_n_tensors(s->checkpoint); i++) {
        const struct pd_tensor *t = pd_checkpoint_tensor(s->checkpoint, i);
        if (s->used[i] || t->is_scale || is_redundant(s, t) || is_nextn(s, t)) continue;
        if (!pd_tensor_is_unread(t->name))
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: tensor " PD_NAME " is not known in a %s model", t->file,
                           t->name, pd_families[s->config->family].name);
        ++*n_ignored;
    }
    return PERIDOT_OK;
}

/* ---- all of them ---- */

static void count(struct pd_source_totals *out, const struct pd_tensor *t)
{
    out->type_counts[t->dtype] += t->n_dims >= 2;
    out->n_params += t->n_dims >= 2 ? pd_tensor_n_rows(t) * t->shape[t->n_dims - 1] : t->shape[0];
    out->size += t->size;
}

static peridot_status count_role(struct pd_source_totals *out, uint64_t *experts, struct pd_source *s,
                                 enum pd_role role, uint32_t layer)
{
    const struct pd_tensor *t;
    struct pd_plan plan;
    if (!pd_plan_get(&plan, s->config, role, layer) || plan.constant != 0) return PERIDOT_OK;
    if (role == PD_ROLE_SCORE_BIAS && !pd_source_find(s, role, 0)) return PERIDOT_OK;
    if (role == PD_ROLE_SCORE_BIAS) plan.n_cols = out->n_outputs;
    if (role == PD_ROLE_OUTPUT || role == PD_ROLE_PER_LAYER_EMBEDDING) plan.n_rows = out->vocab_size;
    PD_TRY(pd_source_get(&t, s, &plan));
    if (role == PD_ROLE_OUTPUT || role == PD_ROLE_SCORE) out->n_outputs = (uint32_t)t->shape[0];
    count(out, t);
    if (role == PD_ROLE_PER_LAYER_EMBEDDING) out->lookup_size += t->size;
    if (experts && plan.n_dims == 3) experts[layer] += t->size;
    if (plan.is_bias) out->type_counts[t->dtype] -= t->n_dims >= 2;   /* those of experts are no matrices */
    return PERIDOT_OK;
}

static peridot_status count_all(struct pd_source_totals *out, uint64_t *experts, struct pd_source *s)
{
    static const enum pd_role once[] = {PD_ROLE_SCORE, PD_ROLE_SCORE_BIAS, PD_ROLE_OUTPUT, PD_ROLE_OUTPUT_NORM,
        PD_ROLE_DENSE_2, PD_ROLE_DENSE_3, PD_ROLE_EMBEDDING_PROJ,
        PD_ROLE_PER_LAYER_EMBEDDING, PD_ROLE_PER_LAYER_MODEL_PROJ, PD_ROLE_PER_LAYER_MODEL_NORM,
        PD_ROLE_PRE_PROJ, PD_ROLE_POST_PROJ};
    const struct pd_tensor *embedding;
    PD_TRY(pd_source_get_embedding(&embedding, s));
    count(out, embedding);
    out->vocab_size = (uint32_t)embedding->shape[0];
    out->n_outputs = s->config->head == PERIDOT_HEAD_NONE ? 0 : out->vocab_size;
    struct pd_plan own;
    if (pd_plan_get(&own, s->config, PD_ROLE_OUTPUT, 0)) out->lookup_size = embedding->size;
    for (size_t i = 0; i < PD_COUNT(once); i++) PD_TRY(count_role(out, NULL, s, once[i], 0));
    for (uint32_t i = 0; i < s->config->n_layers; i++)
        for (enum pd_role role = PD_FIRST_LAYER_ROLE; role < PD_N_ROLES; role++)
            PD_TRY(count_role(out, experts, s, role, i));
    return pd_source_check_unused(&out->n_ignored, s);
}

peridot_status pd_source_count(struct pd_source_totals *out, uint64_t *experts, const struct pd_checkpoint *checkpoint,
                               const struct pd_config *config)
{
    struct pd_source s;
    *out = (struct pd_source_totals){0};
    peridot_status status = pd_source_open(&s, checkpoint, config);
    if (status == PERIDOT_OK) status = count_all(out, experts, &s);
    pd_source_close(&s);
    return status;
}

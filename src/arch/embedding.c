/* How a model's final hidden states become one vector of a text: pooled, through dense layers without bias, and of
 * length 1; and what texts of a task begin with. Read from sentence-transformers' files beside a Hugging Face model, or
 * from GGUF metadata, which has no prefixes: those that were published with the model stand in. Models whose tokens see
 * only what is before them (Qwen3-Embedding) may be embedding models as well. */
#include "arch/arch.h"

#include "base/base.h"
#include "format/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DIM = 1 << 16, MAX_TASKS = 256 };

/* ---- dense layers ---- */

/* The projection of EmbeddingGemma 2 is one as well: of the mean, or of what the mean is of. */
static const struct pd_tensor *find_dense(const struct pd_checkpoint *c, const struct pd_family_traits *family,
                                          uint32_t i)
{
    static const char *const names[PD_MAX_DENSE] = {"dense_2.weight", "dense_3.weight"};
    static const char *const projections[] = {"output.weight", "embedding_projection.weight",
        "model.embedding_projection.weight", "language_model.embedding_projection.weight",
        "model.language_model.embedding_projection.weight"};
    if (!family->per_layer_projected) return pd_checkpoint_find(c, names[i]);
    for (size_t k = 0; i == 0 && k < PD_COUNT(projections); k++) {
        const struct pd_tensor *t = pd_checkpoint_find(c, projections[k]);
        if (t) return t;
    }
    return NULL;
}

static peridot_status read_dense(struct pd_embedding *out, const struct pd_checkpoint *c,
                                 const struct pd_family_traits *family)
{
    const struct pd_tensor *t;
    while (out->n_dense < PD_MAX_DENSE && (t = find_dense(c, family, out->n_dense)) != NULL) {
        if (t->n_dims != 2 || t->shape[0] == 0 || t->shape[0] > MAX_DIM)
            return pd_fail(PERIDOT_ERROR_FORMAT, "tensor %s is not a matrix of up to %d rows", t->name, MAX_DIM);
        out->dense_dims[out->n_dense++] = (uint32_t)t->shape[0];
    }
    if (out->n_dense || !family->per_layer_projected) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_FORMAT, "tensor embedding_projection.weight (output.weight in GGUF) is missing");
}

/* ---- sentence-transformers ---- */

static peridot_status open_module(yyjson_doc **out, const struct pd_checkpoint *c, const char *folder)
{
    char *path = pd_path_join(pd_checkpoint_path(c), folder);
    if (!path) return pd_fail_alloc(strlen(folder), "path");
    peridot_status status = pd_json_open_optional(out, path, "config.json");
    free(path);
    return status;
}

/* "pooling_mode": "mean", or of some flags the one that is true. */
static peridot_status read_pooling(struct pd_embedding *out, yyjson_val *config, const char *folder)
{
    static const struct { const char *flag, *mode; peridot_pool pool; } known[] = {
        {"pooling_mode_mean_tokens", "mean", PERIDOT_POOL_MEAN}, {"pooling_mode_lasttoken", "lasttoken",
        PERIDOT_POOL_LAST}, {"pooling_mode_cls_token", "cls", PERIDOT_POOL_CLS}};
    yyjson_val *mode = yyjson_obj_get(config, "pooling_mode"), *key, *value;
    size_t i, n, n_true = 0;
    bool found = false;
    if (config) yyjson_obj_foreach(config, i, n, key, value)
        n_true += strncmp(yyjson_get_str(key), "pooling_mode_", 13) == 0 && yyjson_is_true(value);
    for (i = 0; i < PD_COUNT(known); i++) {
        bool is = mode ? yyjson_equals_str(mode, known[i].mode)
                       : n_true == 1 && yyjson_is_true(yyjson_obj_get(config, known[i].flag));
        if (is) out->pool = known[i].pool;
        found = found || is;
    }
    out->trained = found;
    if (!found)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s/config.json: only the mean, the last and the first token are "
                       "known as pooling_mode", folder);
    if (yyjson_is_false(yyjson_obj_get(config, "include_prompt")))
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s/config.json: include_prompt is false, which is not supported",
                       folder);
    return PERIDOT_OK;
}

static peridot_status check_dense(yyjson_val *config, const char *folder)
{
    static const char identity[] = "torch.nn.modules.linear.Identity";
    yyjson_val *act = yyjson_obj_get(config, "activation_function");
    if (yyjson_equals_str(act, identity)) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s/config.json: activation_function is not %s", folder, identity);
}

static peridot_status read_module(struct pd_embedding *out, const struct pd_checkpoint *c,
                                  const struct pd_family_traits *family, yyjson_val *module)
{
    const char *type = yyjson_get_str(yyjson_obj_get(module, "type")), *last = type ? strrchr(type, '.') : NULL;
    const char *folder = yyjson_get_str(yyjson_obj_get(module, "path"));
    bool dense = last && strcmp(last, ".Dense") == 0, pooling = last && strcmp(last, ".Pooling") == 0;
    yyjson_doc *doc;
    if (last && (strcmp(last, ".Transformer") == 0 || strcmp(last, ".Normalize") == 0)) return PERIDOT_OK;
    if (!pooling && !(dense && family->embeds))
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "modules.json: type \"" PD_NAME "\" is not known of a %s model",
                       type ? type : "", family->name);
    if (!folder || !pd_hf_is_own_name(folder))
        return pd_fail(PERIDOT_ERROR_FORMAT, "modules.json: the path of a %s is not a folder's name", last + 1);
    PD_TRY(open_module(&doc, c, folder));
    yyjson_val *config = yyjson_doc_get_root(doc);
    peridot_status status = !config ? pd_fail(PERIDOT_ERROR_IO, "%s/config.json is missing", folder)
        : dense                     ? check_dense(config, folder)
                                    : read_pooling(out, config, folder);
    yyjson_doc_free(doc);
    return status;
}

static peridot_status read_modules(struct pd_embedding *out, const struct pd_checkpoint *c,
                                   const struct pd_family_traits *family)
{
    yyjson_val *modules = pd_checkpoint_modules(c), *module;
    size_t i, n;
    if (!modules) return PERIDOT_OK;
    yyjson_arr_foreach(modules, i, n, module) PD_TRY(read_module(out, c, family, module));
    return PERIDOT_OK;
}

/* ---- tasks ---- */

static peridot_status add_task(struct pd_embedding *e, const char *name, const char *prefix)
{
    struct pd_task *tasks = realloc(e->tasks, (e->n_tasks + 1) * sizeof *tasks);
    if (!tasks) return pd_fail_alloc((e->n_tasks + 1) * sizeof *tasks, "tasks");
    e->tasks = tasks;
    struct pd_task *t = &tasks[e->n_tasks++];
    *t = (struct pd_task){pd_string_copy(name), pd_string_copy(prefix)};
    return t->name && t->prefix ? PERIDOT_OK : pd_fail_alloc(strlen(prefix), "tasks");
}

static peridot_status add_prompts(struct pd_embedding *out, yyjson_val *prompts)
{
    static const char file[] = "config_sentence_transformers.json";
    yyjson_val *key, *value;
    size_t i, n;
    if (!prompts) return PERIDOT_OK;
    if (yyjson_obj_size(prompts) > MAX_TASKS)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: more than %d prompts are not supported", file, MAX_TASKS);
    yyjson_obj_foreach(prompts, i, n, key, value) {
        if (!yyjson_is_str(value))
            return pd_fail(PERIDOT_ERROR_FORMAT, "%s: prompt \"" PD_NAME "\" is not a string", file,
                           yyjson_get_str(key));
        PD_TRY(add_task(out, yyjson_get_str(key), yyjson_get_str(value)));
    }
    return PERIDOT_OK;
}

struct published {
    const char *name, *prefix;
};

/* EmbeddingGemma's and Qwen3-Embedding's, of their model cards and config_sentence_transformers.json. */
static peridot_status add_published(struct pd_embedding *out, const struct pd_family_traits *family)
{
    static const struct published gemma[] = {
        {"query", "task: search result | query: "}, {"document", "title: none | text: "},
        {"QuestionAnswering", "task: question answering | query: "},
        {"FactChecking", "task: fact checking | query: "}, {"CodeRetrieval", "task: code retrieval | query: "},
        {"Classification", "task: classification | query: "}, {"Clustering", "task: clustering | query: "},
        {"SentenceSimilarity", "task: sentence similarity | query: "},
        {"BitextMining", "task: search result | query: "}, {"InstructionRetrieval", "task: code retrieval | query: "},
        {"MultilabelClassification", "task: classification | query: "},
        {"PairClassification", "task: sentence similarity | query: "}, {"Reranking", "task: search result | query: "},
        {"Retrieval", "task: search result | query: "}, {"Retrieval-query", "task: search result | query: "},
        {"Retrieval-document", "title: none | text: "}, {"STS", "task: sentence similarity | query: "},
        {"Summarization", "task: summarization | query: "}};
    static const struct published qwen3[] = {
        {"query", "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"},
        {"document", ""}};
    bool is_qwen3 = family == &pd_families[PD_QWEN3];
    const struct published *rows = is_qwen3 ? qwen3 : gemma;
    size_t n = is_qwen3 ? PD_COUNT(qwen3) : family->embeds ? PD_COUNT(gemma) : 0;
    for (size_t i = 0; i < n; i++) PD_TRY(add_task(out, rows[i].name, rows[i].prefix));
    return PERIDOT_OK;
}

static peridot_status read_tasks(struct pd_embedding *out, const struct pd_checkpoint *c,
                                 const struct pd_family_traits *family)
{
    yyjson_doc *doc = NULL;
    peridot_status status = PERIDOT_OK;
    if (pd_checkpoint_kind(c) == PD_CHECKPOINT_HF)
        status = pd_json_open_optional(&doc, pd_checkpoint_path(c), "config_sentence_transformers.json");
    yyjson_val *prompts = yyjson_obj_get(yyjson_doc_get_root(doc), "prompts");
    if (status == PERIDOT_OK)
        status = yyjson_obj_size(prompts) ? add_prompts(out, prompts) : add_published(out, family);
    yyjson_doc_free(doc);
    return status;
}

/* ---- all ---- */

/* 0 none (for a program that pools by itself), 1 mean, 2 cls, 3 last; 4 of a reranker: its head reads the last. */
static peridot_status read_pooling_type(struct pd_embedding *out, const struct pd_checkpoint *c,
                                        const struct pd_family_traits *family)
{
    static const peridot_pool pools[] = {PERIDOT_POOL_MEAN, PERIDOT_POOL_MEAN, PERIDOT_POOL_CLS, PERIDOT_POOL_LAST,
                                         PERIDOT_POOL_LAST};
    bool ranks = !family->embeds && pd_checkpoint_find(c, "cls.output.weight");
    char key[64];
    snprintf(key, sizeof key, "%s.pooling_type", family->name);
    const struct pd_meta *m = pd_checkpoint_find_meta(c, key);
    uint64_t type = 0;
    if (m && (m->type == PD_META_ARRAY || !pd_meta_uint(&type, m, 0) || type >= (ranks ? 5 : 4)))
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "metadata key %s is not 0, 1, 2 or 3", key);
    out->pool = pools[type];
    out->trained = type != 0 && type != 4;
    return PERIDOT_OK;
}

peridot_status pd_embedding_read(struct pd_embedding *out, const struct pd_checkpoint *c,
                                 const struct pd_family_traits *family)
{
    bool gguf = pd_checkpoint_kind(c) == PD_CHECKPOINT_GGUF;
    *out = (struct pd_embedding){.pool = PERIDOT_POOL_MEAN};
    if (family->embeds) PD_TRY(read_dense(out, c, family));
    PD_TRY(gguf ? read_pooling_type(out, c, family) : read_modules(out, c, family));
    return family->embeds || out->trained ? read_tasks(out, c, family) : PERIDOT_OK;
}

void pd_embedding_free(struct pd_embedding *e)
{
    for (uint32_t i = 0; i < e->n_tasks; i++) {
        free(e->tasks[i].name);
        free(e->tasks[i].prefix);
    }
    free(e->tasks);
    *e = (struct pd_embedding){0};
}

uint32_t pd_embedding_dim(const struct pd_embedding *e, uint32_t d_model)
{
    return e->n_dense ? e->dense_dims[e->n_dense - 1] : d_model;
}

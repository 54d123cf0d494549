/* peridot_file_*: what a model file says of itself. A view of a checkpoint; a Hugging Face directory's metadata is its
 * config.json, flattened: text_config.hidden_size. */
#include "peridot.h"

#include "api/api.h"
#include "arch/arch.h"
#include "base/base.h"
#include "engine/rounds/rounds.h"
#include "format/format.h"
#include "offline/offline.h"
#include "peridot_tools.h"

#include <stdio.h>
#include <stdlib.h>

/* of config.json: levels that are flattened, bytes of a key that becomes a prefix */
enum { MAX_DEPTH = 4, MAX_PREFIX = 64 };

struct entry {
    char *key;
    yyjson_val *value;
};

struct peridot_file {
    struct pd_checkpoint *checkpoint;
    struct pd_arena arena;
    struct entry *entries;   /* of config.json; NULL for GGUF */
    size_t n_entries;
    peridot_tensor_info *tensors;   /* [n_tensors] */
    struct pd_config config;
    uint64_t *experts;       /* [n_layers]: bytes of each layer's; NULL: there is no config */
    uint64_t lookup_size;    /* bytes of tables that are only looked up */
    struct pd_recommended recommended;
    peridot_status checked;  /* whether it and the tensors make a model */
    char error[512];         /* why they do not */
    peridot_model_info model;   /* family NULL: there is no config */
    char types[128];
    peridot_vision_info vision;   /* kind NULL: there is none */
    char vision_types[128], vision_error[512];
    peridot_status vision_checked;
};

/* Long keys are no prefixes: each of a million entries would repeat them. */
static bool is_branch(yyjson_val *key, yyjson_val *value, int depth)
{
    return yyjson_is_obj(value) && yyjson_obj_size(value) > 0 && yyjson_get_len(key) <= MAX_PREFIX && depth < MAX_DEPTH;
}

static size_t count_entries(yyjson_val *object, int depth)
{
    size_t n = 0;
    yyjson_obj_iter iter = yyjson_obj_iter_with(object);
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&iter));) {
        yyjson_val *value = yyjson_obj_iter_get_val(key);
        n += is_branch(key, value, depth) ? count_entries(value, depth + 1) : 1;
    }
    return n;
}

static peridot_status add_entries(peridot_file *f, yyjson_val *object, const char *prefix, int depth)
{
    yyjson_obj_iter iter = yyjson_obj_iter_with(object);
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&iter));) {
        yyjson_val *value = yyjson_obj_iter_get_val(key);
        size_t size = strlen(prefix) + yyjson_get_len(key) + 2;
        char *name = pd_arena_alloc(&f->arena, size);
        if (!name) return pd_fail_alloc(size, "key");
        snprintf(name, size, "%s%s%s", prefix, *prefix ? "." : "", yyjson_get_str(key));
        if (is_branch(key, value, depth)) PD_TRY(add_entries(f, value, name, depth + 1));
        else f->entries[f->n_entries++] = (struct entry){name, value};
    }
    return PERIDOT_OK;
}

static peridot_status list_tensors(peridot_file *f)
{
    size_t n = pd_checkpoint_n_tensors(f->checkpoint);
    f->tensors = pd_arena_array(&f->arena, n, sizeof *f->tensors);
    if (!f->tensors) return pd_fail_alloc(n * sizeof *f->tensors, "tensors");
    for (size_t i = 0; i < n; i++) {
        const struct pd_tensor *t = pd_checkpoint_tensor(f->checkpoint, i);
        f->tensors[i] = (peridot_tensor_info){.name = t->name, .type = t->type, .n_dims = t->n_dims, .size = t->size};
        memcpy(f->tensors[i].shape, t->shape, sizeof f->tensors[i].shape);
    }
    return PERIDOT_OK;
}

static peridot_status begin_model(peridot_file *f)
{
    pd_model_info_begin(&f->model, &f->config);
    f->experts = calloc(f->config.n_layers, sizeof *f->experts);
    return f->experts ? PERIDOT_OK : pd_fail_alloc(f->config.n_layers * sizeof *f->experts, "experts");
}

static void keep_totals(peridot_file *f, const struct pd_source_totals *totals)
{
    peridot_model_info *info = &f->model;
    f->lookup_size = totals->lookup_size;
    pd_model_info_types(f->types, sizeof f->types, totals->type_counts);
    info->types = f->types;
    info->vocab_size = totals->vocab_size;
    info->n_outputs = totals->n_outputs;
    info->n_params = totals->n_params;
    info->weights_size = totals->size;
    info->n_ignored_tensors = totals->n_ignored;
}

static peridot_status read_model(peridot_file *f)
{
    struct pd_source_totals totals;
    PD_TRY(pd_config_read(&f->config, f->checkpoint));
    PD_TRY(begin_model(f));
    f->model.has_block = pd_config_has_block(&f->config, f->checkpoint);
    PD_TRY(pd_source_count(&totals, f->experts, f->checkpoint, &f->config));
    keep_totals(f, &totals);
    return PERIDOT_OK;
}

/* A file that is no model, or one that is not known, can still be looked into. */
static peridot_status check_model(peridot_file *f)
{
    f->checked = pd_checkpoint_check(read_model(f), f->checkpoint);
    if (f->checked == PERIDOT_ERROR_MEMORY || f->checked == PERIDOT_ERROR_IO) return f->checked;
    if (f->checked != PERIDOT_OK) snprintf(f->error, sizeof f->error, "%s", pd_error());
    return PERIDOT_OK;
}

/* ---- vision ---- */

/* The tower of a model that is in `from`. */
static peridot_status find_tower(struct pd_tower_config *out, struct pd_tower_totals *totals,
                                 const struct pd_checkpoint *from, const struct pd_checkpoint *text,
                                 const struct pd_config *config)
{
    PD_TRY(pd_tower_read(out, from, text, config));
    if (out->kind == PD_TOWER_NONE) return pd_tower_fail_none(text, config);
    return pd_tower_check(totals, out, from);
}

/* One that lies by itself is for any model as wide as its rows, of one of these families. */
static peridot_status find_own_tower(struct pd_tower_config *out, struct pd_tower_totals *totals,
                                     const peridot_file *f)
{
    static const enum pd_family families[] = {PD_GEMMA3, PD_GEMMA4, PD_QWEN35};
    const struct pd_meta *width = pd_checkpoint_find_meta(f->checkpoint, "clip.vision.projection_dim");
    peridot_status status = PERIDOT_ERROR_ARGUMENT;   /* of the wrong family */
    uint64_t d_out = 0;
    if (f->model.family) return find_tower(out, totals, f->checkpoint, f->checkpoint, &f->config);
    if (width && width->type != PD_META_ARRAY) pd_meta_uint(&d_out, width, 0);
    for (size_t i = 0; i < PD_COUNT(families) && status == PERIDOT_ERROR_ARGUMENT; i++) {
        const struct pd_config config = {.family = families[i], .d_model = (uint32_t)pd_min(d_out, UINT32_MAX)};
        status = find_tower(out, totals, f->checkpoint, f->checkpoint, &config);
    }
    return status;
}

static peridot_status read_vision(peridot_file *f)
{
    static const char *const kinds[] = {[PD_TOWER_SIGLIP] = "siglip", [PD_TOWER_GEMMA4] = "gemma4",
                                        [PD_TOWER_PATCHES] = "gemma4-unified", [PD_TOWER_QWEN] = "qwen3.5"};
    struct pd_tower_config t;
    struct pd_tower_totals totals;
    PD_TRY(find_own_tower(&t, &totals, f));
    pd_model_info_types(f->vision_types, sizeof f->vision_types, totals.type_counts);
    f->vision = (peridot_vision_info){.kind = kinds[t.kind], .types = f->vision_types, .n_layers = t.n_layers,
        .d_model = t.d_model, .ffn_dim = t.ffn_dim, .n_heads = t.n_heads, .head_dim = t.head_dim,
        .patch_size = t.patch, .image_size = t.image_size, .image_rows = t.most_rows, .row_dim = t.d_out,
        .n_tensors = totals.n_tensors, .n_params = totals.n_params, .weights_size = totals.size};
    return PERIDOT_OK;
}

/* A tower that is damaged does no harm to what is beside it. */
static peridot_status check_vision(peridot_file *f)
{
    f->vision_checked = pd_checkpoint_check(read_vision(f), f->checkpoint);
    if (f->vision_checked == PERIDOT_OK || f->vision_checked == PERIDOT_ERROR_MEMORY) return f->vision_checked;
    f->vision.kind = NULL;
    snprintf(f->vision_error, sizeof f->vision_error, "%s", pd_error());
    return PERIDOT_OK;
}

const peridot_vision_info *peridot_file_vision(const peridot_file *file)
{
    if (file->vision.kind) return &file->vision;
    pd_fail(file->vision_checked, "%s", file->vision_error);
    return NULL;
}

peridot_status peridot_file_check_vision(const peridot_file *file, const peridot_file *vision)
{
    struct pd_tower_config t;
    struct pd_tower_totals totals;
    if (!file->model.family) return pd_fail(file->checked, "%s", file->error);
    return pd_checkpoint_check(find_tower(&t, &totals, vision->checkpoint, file->checkpoint, &file->config),
                               vision->checkpoint);
}

uint32_t peridot_file_recommends(const peridot_file *file, peridot_sampling *sampling, uint32_t keep,
                                 const char **ignored)
{
    return pd_recommended_take(&file->recommended, sampling, keep, ignored);
}

/* ---- files ---- */

static peridot_status file_open_file(peridot_file *f, const char *path)
{
    PD_TRY(pd_checkpoint_open(&f->checkpoint, path, true));
    PD_TRY(list_tensors(f));
    PD_TRY(check_model(f));
    PD_TRY(check_vision(f));
    PD_TRY(pd_recommended_read(&f->recommended, f->checkpoint));
    yyjson_val *config = pd_checkpoint_config(f->checkpoint);
    if (!config) return PERIDOT_OK;
    size_t n = count_entries(config, 1);
    f->entries = pd_arena_array(&f->arena, n, sizeof *f->entries);
    if (!f->entries) return pd_fail_alloc(n * sizeof *f->entries, "config.json");
    return add_entries(f, config, "", 1);
}

peridot_status peridot_file_open(peridot_file **out, const char *path)
{
    if (!out) return pd_fail(PERIDOT_ERROR_ARGUMENT, "peridot_file_open: out is NULL");
    *out = NULL;
    if (!path) return pd_fail(PERIDOT_ERROR_ARGUMENT, "peridot_file_open: path is NULL");
    peridot_file *f = calloc(1, sizeof *f);
    if (!f) return pd_fail_alloc(sizeof *f, "file");
    peridot_status status = file_open_file(f, path);
    if (status == PERIDOT_OK) *out = f;
    else peridot_file_close(f);
    return status;
}

static peridot_status count_shape(peridot_file *f, const struct pd_shape *shape, const char *type)
{
    struct pd_source_totals totals;
    PD_TRY(pd_shape_config(&f->config, shape));
    PD_TRY(begin_model(f));
    PD_TRY(pd_shape_count(&totals, f->experts, &f->config, shape, type));
    keep_totals(f, &totals);
    return PERIDOT_OK;
}

peridot_status peridot_file_of_shape(peridot_file **out, const char *shape, const char *type)
{
    if (!out) return pd_fail(PERIDOT_ERROR_ARGUMENT, "peridot_file_of_shape: out is NULL");
    *out = NULL;
    const struct pd_shape *found = shape ? pd_shape_find(shape) : NULL;
    if (!found) return pd_fail(PERIDOT_ERROR_ARGUMENT, "there is no shape %s", shape ? shape : "(none)");
    if (!type) return pd_fail(PERIDOT_ERROR_ARGUMENT, "peridot_file_of_shape: type is NULL");
    peridot_file *f = calloc(1, sizeof *f);
    if (!f) return pd_fail_alloc(sizeof *f, "file");
    peridot_status status = count_shape(f, found, type);
    if (status == PERIDOT_OK) *out = f;
    else peridot_file_close(f);
    return status;
}

void peridot_file_close(peridot_file *file)
{
    if (!file) return;
    pd_config_free(&file->config);
    free(file->experts);
    pd_checkpoint_close(file->checkpoint);
    pd_arena_free(&file->arena);
    free(file);
}

const peridot_model_info *peridot_file_model(const peridot_file *file)
{
    if (file->model.family) return &file->model;
    pd_fail(file->checked, "%s", file->error);
    return NULL;
}

uint64_t peridot_file_cache_size(const peridot_file *file, uint32_t ctx, peridot_kv_type type)
{
    return file->model.family ? pd_session_cache_size(&file->config, ctx, type) : 0;
}

uint32_t peridot_file_split(peridot_split *out, const peridot_file *file, uint32_t n_host)
{
    uint32_t n = 0;
    *out = (peridot_split){0};
    if (file->checked != PERIDOT_OK) return 0;
    out->device_size = file->model.weights_size;
    out->device_read = out->device_size - file->lookup_size;
    for (uint32_t i = file->config.n_layers; i-- > 0;) {
        const struct pd_layer *layer = &file->config.layers[i];
        if (!layer->n_experts) continue;
        uint64_t size = file->experts[i], read = size / layer->n_experts * layer->n_experts_used;
        bool host = n++ < n_host;
        out->device_read -= host ? size : size - read;
        out->host_read += host ? read : 0;
        out->host_size += host ? size : 0;
    }
    if (n_host) out->host_size += file->lookup_size;
    out->device_size -= out->host_size;
    return n;
}

peridot_status peridot_file_check(const peridot_file *file)
{
    return file->checked == PERIDOT_OK ? PERIDOT_OK : pd_fail(file->checked, "%s", file->error);
}

size_t peridot_file_n_tensors(const peridot_file *file)
{
    return file->checkpoint ? pd_checkpoint_n_tensors(file->checkpoint) : 0;
}

const peridot_tensor_info *peridot_file_tensor(const peridot_file *file, size_t i)
{
    return i < peridot_file_n_tensors(file) ? &file->tensors[i] : NULL;
}

size_t peridot_file_n_metadata(const peridot_file *file)
{
    if (!file->checkpoint) return 0;
    return file->entries ? file->n_entries : pd_checkpoint_n_meta(file->checkpoint);
}

const char *peridot_file_metadata_key(const peridot_file *file, size_t i)
{
    if (i >= peridot_file_n_metadata(file)) return NULL;
    return file->entries ? file->entries[i].key : pd_checkpoint_meta(file->checkpoint, i)->key;
}

/* A string as it is, anything else as JSON. */
static char *json_text(yyjson_val *value)
{
    if (yyjson_is_str(value)) return pd_string_text((struct pd_string){yyjson_get_str(value), yyjson_get_len(value)});
    size_t size;
    char *json = yyjson_val_write(value, YYJSON_WRITE_ALLOW_INF_AND_NAN, &size);
    char *text = json ? pd_string_text((struct pd_string){json, size}) : NULL;
    free(json);
    return text;
}

peridot_status peridot_file_metadata_text(char **out, const peridot_file *file, size_t i)
{
    *out = NULL;
    if (i >= peridot_file_n_metadata(file))
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "there is no metadata %zu (%zu entries)", i,
                       peridot_file_n_metadata(file));
    *out = file->entries ? json_text(file->entries[i].value) : pd_meta_text(pd_checkpoint_meta(file->checkpoint, i));
    if (!*out) return pd_fail_alloc(512, "metadata");
    peridot_status status = pd_checkpoint_check(PERIDOT_OK, file->checkpoint);
    if (status == PERIDOT_OK) return status;
    free(*out);
    *out = NULL;
    return status;
}

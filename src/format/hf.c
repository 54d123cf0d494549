/* A Hugging Face directory: config.json, and the tensors of model.safetensors or of the shards that
 * model.safetensors.index.json names; and where sentence-transformers' modules.json has dense layers, those of each,
 * "linear.weight" being called as in GGUF: dense_2.weight, dense_3.weight. */
#include "format/format.h"

#include "base/base.h"
#include "format/format_.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_MODULES = 16 };

static const char index_name[] = "model.safetensors.index.json";

/* The files of a model: names without folder, sorted, each once, and the tensors of each. */
struct shards {
    const char **names;
    char **paths;
    struct pd_tensor_list *lists;
    size_t n;
};

/* A path in the arena, so that it lives as long as the tensors that point to it. */
static char *hf_join(struct pd_hf *h, const char *directory, const char *name)
{
    size_t size = strlen(directory) + strlen(name) + 2;
    char *path = pd_arena_alloc(&h->arena, size);
    if (path) snprintf(path, size, "%s/%s", directory, name);
    return path;
}

/* ---- which files ---- */

/* What a sentence can say of a value that should be a name. */
static const char *shown(yyjson_val *value)
{
    bool valid = yyjson_is_str(value) && pd_name_valid(yyjson_get_str(value), yyjson_get_len(value));
    if (valid) return yyjson_get_str(value);
    return yyjson_is_str(value) ? "an empty name or control characters" : yyjson_get_type_desc(value);
}

static bool shard_name_valid(yyjson_val *value)
{
    const char *name = yyjson_get_str(value);
    return name && name == shown(value) && pd_hf_is_own_name(name);
}

bool pd_hf_is_own_name(const char *name)
{
    return pd_name_valid(name, strlen(name)) && !strpbrk(name, "/\\:") && strcmp(name, ".") && strcmp(name, "..");
}

/* One entry for each tensor: the name of its file. */
static peridot_status read_weight_map(struct pd_name_index *x, struct pd_hf *h, yyjson_val *map, const char *path)
{
    *x = (struct pd_name_index){pd_arena_array(&h->arena, yyjson_obj_size(map), sizeof *x->names), 0};
    if (!x->names) return pd_fail_alloc(yyjson_obj_size(map) * sizeof *x->names, path);
    yyjson_obj_iter iter = yyjson_obj_iter_with(map);
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&iter)); x->n++) {
        yyjson_val *file = yyjson_obj_iter_get_val(key);
        if (!shard_name_valid(file))
            return pd_fail(PERIDOT_ERROR_FORMAT, "%s: weight_map: tensor " PD_NAME " is not in a file of this folder ("
                           PD_NAME ")", path, yyjson_get_str(key), shown(file));
        x->names[x->n] = (struct pd_name){yyjson_get_str(file), x->n};
    }
    pd_names_sort(x);
    return PERIDOT_OK;
}

/* ---- dense layers ---- */

static bool is_dense(yyjson_val *module)
{
    const char *type = yyjson_get_str(yyjson_obj_get(module, "type")), *last = type ? strrchr(type, '.') : NULL;
    return last && strcmp(last, ".Dense") == 0;
}

static size_t n_dense(const struct pd_hf *h)
{
    yyjson_val *module;
    size_t i, max, n = 0;
    yyjson_arr_foreach(yyjson_doc_get_root(h->modules), i, max, module) n += is_dense(module);
    return n;
}

/* As GGUF calls them, whatever the number in the folder's name. */
static peridot_status rename_dense(struct pd_tensor_list *list, struct pd_arena *arena, size_t number)
{
    char name[64];
    for (size_t i = 0; i < list->n; i++) {
        struct pd_tensor *t = &list->items[i];
        if (strncmp(t->name, "linear.", 7) != 0 || strlen(t->name) > 32)
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: tensor " PD_NAME " is not known in a dense layer", t->file,
                           t->name);
        snprintf(name, sizeof name, "dense_%zu.%s", number, t->name + 7);
        t->name = pd_arena_string(arena, name, strlen(name));
        if (!t->name) return pd_fail_alloc(strlen(name), "name");
    }
    return PERIDOT_OK;
}

/* ---- lists ---- */

static peridot_status shards_alloc(struct shards *out, struct pd_hf *h, size_t n)
{
    n += n_dense(h);
    out->names = pd_arena_array(&h->arena, n, sizeof *out->names);
    out->paths = h->paths = pd_arena_array(&h->arena, n, sizeof *out->paths);
    out->lists = pd_arena_array(&h->arena, n, sizeof *out->lists);
    h->maps = pd_arena_array(&h->arena, n, sizeof *h->maps);
    return out->names && out->paths && out->lists && h->maps ? PERIDOT_OK
                                                             : pd_fail_alloc(n * sizeof *h->maps, "list of files");
}

static peridot_status add_shard(struct shards *s, struct pd_hf *h, const char *directory, const char *name)
{
    s->names[s->n] = pd_arena_string(&h->arena, name, strlen(name));
    s->paths[s->n] = hf_join(h, directory, name);
    if (!s->names[s->n] || !s->paths[s->n]) return pd_fail_alloc(strlen(name), "path");
    s->n++;
    return PERIDOT_OK;
}

static peridot_status list_shards(struct shards *out, struct pd_hf *h, yyjson_val *map, const char *directory,
                                  const char *path)
{
    if (!yyjson_is_obj(map)) return pd_fail(PERIDOT_ERROR_FORMAT, "%s: no weight_map object", path);
    struct pd_name_index x;
    PD_TRY(read_weight_map(&x, h, map, path));
    size_t n = 0;
    for (size_t i = 0; i < x.n; i++) n += i == 0 || strcmp(x.names[i - 1].name, x.names[i].name);
    PD_TRY(shards_alloc(out, h, n));
    for (size_t i = 0; i < x.n; i++)
        if (i == 0 || strcmp(x.names[i - 1].name, x.names[i].name))
            PD_TRY(add_shard(out, h, directory, x.names[i].name));
    return PERIDOT_OK;
}

static peridot_status add_dense(struct shards *s, struct pd_hf *h, const char *directory)
{
    yyjson_val *module;
    size_t i, n;
    yyjson_arr_foreach(yyjson_doc_get_root(h->modules), i, n, module) {
        const char *folder = yyjson_get_str(yyjson_obj_get(module, "path"));
        char name[300];
        if (!is_dense(module)) continue;
        if (!folder || !pd_hf_is_own_name(folder) || strlen(folder) > 255)
            return pd_fail(PERIDOT_ERROR_FORMAT, "%s/modules.json: the path of a dense layer is not a folder's name",
                           directory);
        snprintf(name, sizeof name, "%s/model.safetensors", folder);
        PD_TRY(add_shard(s, h, directory, name));
    }
    return PERIDOT_OK;
}

/* All that are missing in one sentence, so that one download mends it. */
static peridot_status check_there(const struct shards *s, const char *index_path)
{
    char missing[600] = "";
    size_t size = 0, n = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (pd_is_file(s->paths[i])) continue;
        if (size < sizeof missing - 150)
            size += (size_t)snprintf(missing + size, sizeof missing - size, "%s%.120s", n ? ", " : "", s->names[i]);
        n++;
    }
    if (n == 0) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_IO, "%s: %zu of its %zu files are missing: %s", index_path, n, s->n, missing);
}

/* ---- tensors ---- */

static peridot_status open_shards(struct pd_hf *h, struct shards *s, const char *directory)
{
    size_t n = 0, n_own = s->n;
    PD_TRY(add_dense(s, h, directory));
    for (size_t i = 0; i < s->n; i++) {
        PD_TRY(pd_map_open(&h->maps[i], s->paths[i]));
        h->n_maps++;
        PD_TRY(pd_safetensors_parse(&s->lists[i], &h->arena, h->maps[i].data, h->maps[i].size, s->paths[i]));
        if (i >= n_own) PD_TRY(rename_dense(&s->lists[i], &h->arena, 2 + i - n_own));
        n += s->lists[i].n;
    }
    if (s->n == 1) {
        h->tensors = s->lists[0];
    } else {
        PD_TRY(pd_tensor_list_alloc(&h->tensors, &h->arena, n));
        struct pd_tensor *next = h->tensors.items;
        for (size_t i = 0; i < s->n; next += s->lists[i].n, i++)
            if (s->lists[i].n) memcpy(next, s->lists[i].items, s->lists[i].n * sizeof *next);
    }
    return pd_tensor_list_index(&h->tensors, &h->arena);
}

/* What is not read may have any type. */
static peridot_status check_types(const struct pd_hf *h)
{
    for (size_t i = 0; i < h->tensors.n; i++) {
        const struct pd_tensor *t = &h->tensors.items[i];
        if (t->dtype == PD_DTYPE_OTHER && !pd_tensor_is_unread(t->name))
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: tensor " PD_NAME " has type %s, which is not read", t->file,
                           t->name, t->type);
    }
    return PERIDOT_OK;
}

/* Each tensor is in the file that the index gives it. Tensors that the index leaves out are taken too, as others do. */
static peridot_status check_weight_map(const struct pd_hf *h, yyjson_val *map, const char *directory, const char *path)
{
    yyjson_obj_iter iter = yyjson_obj_iter_with(map);
    size_t folder = strlen(directory) + 1;
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&iter));) {
        const char *name = yyjson_get_str(key), *file = yyjson_get_str(yyjson_obj_iter_get_val(key));
        const struct pd_tensor *t = pd_tensor_list_find(&h->tensors, name);
        if (!t || strcmp(t->file + folder, file))
            return pd_fail(PERIDOT_ERROR_FORMAT, "%s: tensor " PD_NAME " is not in %s", path, name, file);
    }
    return PERIDOT_OK;
}

static peridot_status open_indexed(struct pd_hf *h, yyjson_val *root, const char *directory, const char *path)
{
    struct shards s = {0};
    yyjson_val *map = yyjson_obj_get(root, "weight_map");
    PD_TRY(list_shards(&s, h, map, directory, path));
    PD_TRY(check_there(&s, path));
    PD_TRY(open_shards(h, &s, directory));
    return check_weight_map(h, map, directory, path);
}

static peridot_status open_index(struct pd_hf *h, const char *directory, const char *path)
{
    yyjson_doc *doc;
    PD_TRY(pd_json_open(&doc, path));
    peridot_status status = open_indexed(h, yyjson_doc_get_root(doc), directory, path);
    yyjson_doc_free(doc);
    return status;
}

static peridot_status open_single(struct pd_hf *h, const char *directory, const char *name)
{
    struct shards s = {0};
    PD_TRY(shards_alloc(&s, h, 1));
    PD_TRY(add_shard(&s, h, directory, name));
    return open_shards(h, &s, directory);
}

/* One file goes before an index, as in transformers. */
static peridot_status open_tensors(struct pd_hf *h, const char *directory)
{
    char *single = hf_join(h, directory, "model.safetensors"), *index = hf_join(h, directory, index_name);
    if (!single || !index) return pd_fail_alloc(strlen(directory) + sizeof index_name, "path");
    if (pd_is_file(single)) PD_TRY(open_single(h, directory, "model.safetensors"));
    else if (pd_is_file(index)) PD_TRY(open_index(h, directory, index));
    else return pd_fail(PERIDOT_ERROR_IO, "%s: neither model.safetensors nor %s in this folder", directory, index_name);
    PD_TRY(pd_experts_unpack(&h->tensors, &h->arena));
    return check_types(h);
}

static peridot_status read_modules(struct pd_hf *h, const char *path)
{
    struct pd_map map;
    if (!pd_is_file(path)) return PERIDOT_OK;
    PD_TRY(pd_map_read(&map, path));
    peridot_status status = pd_json_read(&h->modules, map.data, map.size);
    pd_map_close(&map);
    if (status == PERIDOT_OK && !yyjson_is_arr(yyjson_doc_get_root(h->modules)))
        status = pd_fail(PERIDOT_ERROR_FORMAT, "its root is not an array");
    if (status == PERIDOT_OK && yyjson_arr_size(yyjson_doc_get_root(h->modules)) > MAX_MODULES)
        status = pd_fail(PERIDOT_ERROR_FORMAT, "it has more than %d modules", MAX_MODULES);
    return status == PERIDOT_OK ? status : pd_fail_prefix(status, path);
}

static peridot_status open_modules(struct pd_hf *h, const char *directory)
{
    char *path = hf_join(h, directory, "modules.json");
    return path ? read_modules(h, path) : pd_fail_alloc(strlen(directory), "path");
}

static peridot_status fail_missing(struct pd_hf *h, const char *directory, const char *config)
{
    char *adapter = hf_join(h, directory, "adapter_config.json");
    if (!adapter) return pd_fail_alloc(strlen(directory), "path");
    bool model = strcmp(config, "config.json") == 0;
    if (!pd_is_file(adapter))
        return pd_fail(PERIDOT_ERROR_IO, "%s: no %s in this folder%s", directory, config,
                       model ? ": a model is a folder with one, or a .gguf file" : "");
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: an adapter, which is given beside its model (--lora)", directory);
}

static peridot_status open_all(struct pd_hf *h, const char *directory, enum pd_hf_part part)
{
    const char *config = part == PD_HF_ADAPTER ? "adapter_config.json" : "config.json";
    PD_TRY(pd_json_open_optional(&h->config, directory, config));
    if (!h->config) return fail_missing(h, directory, config);
    if (part == PD_HF_CONFIG) return PERIDOT_OK;
    if (part == PD_HF_ADAPTER) {
        PD_TRY(open_single(h, directory, "adapter_model.safetensors"));
        return check_types(h);
    }
    PD_TRY(open_modules(h, directory));
    PD_TRY(open_tensors(h, directory));
    return pd_experts_join(&h->tensors, &h->arena);
}

peridot_status pd_hf_open(struct pd_hf *out, const char *directory, enum pd_hf_part part)
{
    *out = (struct pd_hf){0};
    peridot_status status = open_all(out, directory, part);
    status = pd_hf_check(status, out);
    if (status != PERIDOT_OK) pd_hf_close(out);
    return status;
}

peridot_status pd_hf_check(peridot_status status, const struct pd_hf *h)
{
    for (size_t i = 0; i < h->n_maps; i++) status = pd_map_check(status, &h->maps[i], h->paths[i]);
    return status;
}

void pd_hf_close(struct pd_hf *h)
{
    for (size_t i = 0; i < h->n_maps; i++) pd_map_close(&h->maps[i]);
    yyjson_doc_free(h->config);
    yyjson_doc_free(h->modules);
    pd_arena_free(&h->arena);
    *h = (struct pd_hf){0};
}

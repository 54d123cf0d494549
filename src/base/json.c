#include "base/json.h"

#include "base/foreign.h"
#include "base/names.h"
#include "base/os.h"

#include <stdlib.h>
#include <string.h>

static peridot_status fail_position(const uint8_t *data, const yyjson_read_err *e)
{
    unsigned long long line = 1, column = 1;
    for (size_t i = 0; i < e->pos; i++) {
        column = data[i] == '\n' ? 1 : column + 1;
        line += data[i] == '\n';
    }
    const char *cut = e->code == YYJSON_READ_ERROR_UNEXPECTED_END ? ", as of a text that was cut short" : "";
    return pd_fail(PERIDOT_ERROR_FORMAT, "not JSON: %s%s (line %llu, column %llu, byte %llu)", e->msg, cut, line,
                   column, (unsigned long long)e->pos);
}

peridot_status pd_json_read(yyjson_doc **out, const uint8_t *data, uint64_t size)
{
    *out = NULL;
    if (size == 0) return pd_fail(PERIDOT_ERROR_FORMAT, "not JSON: it is empty");
    yyjson_read_err e;
    /* Without YYJSON_READ_INSITU the text is copied, not changed; the parameter is only not const. */
    *out = yyjson_read_opts((char *)(uintptr_t)data, (size_t)size, 0, NULL, &e);
    if (*out) return PERIDOT_OK;
    return e.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION ? pd_fail_alloc((size_t)size, "JSON")
                                                         : fail_position(data, &e);
}

/* Keys of one object, sorted, so that a hostile one with a million keys costs n log n. */
static peridot_status check_object(yyjson_val *object, const char *path)
{
    struct pd_name_index x = {malloc((yyjson_obj_size(object) + 1) * sizeof(struct pd_name)), 0};
    if (!x.names) return pd_fail_alloc(yyjson_obj_size(object) * sizeof(struct pd_name), path);
    yyjson_obj_iter iter = yyjson_obj_iter_with(object);
    peridot_status status = PERIDOT_OK;
    for (yyjson_val *key; status == PERIDOT_OK && (key = yyjson_obj_iter_next(&iter));) {
        const char *name = yyjson_get_str(key);
        if (!pd_name_valid(name, yyjson_get_len(key)))
            status =
                pd_fail(PERIDOT_ERROR_FORMAT, "%s: key %zu of an object is empty or has control characters", path, x.n);
        x.names[x.n] = (struct pd_name){name, x.n};
        x.n++;
    }
    pd_names_sort(&x);
    size_t first, second;
    if (status == PERIDOT_OK && pd_names_duplicate(&x, &first, &second)) {
        size_t i = 0;
        while (x.names[i].index != first) i++;
        status = pd_fail(PERIDOT_ERROR_FORMAT, "%s: key " PD_NAME " is there twice (entries %zu and %zu)", path,
                         x.names[i].name, first, second);
    }
    free(x.names);
    return status;
}

/* Deeper objects than any file of ours has are left unchecked, so that the stack stays small whatever comes. */
static peridot_status check_objects(yyjson_val *object, const char *path, int depth)
{
    PD_TRY(check_object(object, path));
    yyjson_obj_iter iter = yyjson_obj_iter_with(object);
    for (yyjson_val *key; depth > 1 && (key = yyjson_obj_iter_next(&iter));) {
        yyjson_val *value = yyjson_obj_iter_get_val(key);
        if (yyjson_is_obj(value)) PD_TRY(check_objects(value, path, depth - 1));
    }
    return PERIDOT_OK;
}

peridot_status pd_json_parse(yyjson_doc **out, const uint8_t *data, uint64_t size, const char *path)
{
    *out = NULL;
    yyjson_doc *doc;
    peridot_status status = pd_json_read(&doc, data, size);
    if (status != PERIDOT_OK) return pd_fail_prefix(status, path);
    yyjson_val *root = yyjson_doc_get_root(doc);
    status = yyjson_is_obj(root) ? check_objects(root, path, 4)
                                 : pd_fail(PERIDOT_ERROR_FORMAT, "%s: its JSON is not an object but %s", path,
                                           yyjson_get_type_desc(root));
    if (status == PERIDOT_OK) *out = doc;
    else yyjson_doc_free(doc);
    return status;
}

peridot_status pd_json_open(yyjson_doc **out, const char *path)
{
    *out = NULL;
    struct pd_map map;
    PD_TRY(pd_map_read(&map, path));
    peridot_status status = pd_foreign_check_text(map.data, map.size, path, "JSON");
    if (status == PERIDOT_OK) status = pd_json_parse(out, map.data, map.size, path);
    pd_map_close(&map);
    return status;
}

peridot_status pd_json_open_optional(yyjson_doc **out, const char *directory, const char *name)
{
    *out = NULL;
    char *path = pd_path_join(directory, name);
    if (!path) return pd_fail_alloc(strlen(directory) + strlen(name) + 2, "path");
    peridot_status status = pd_is_file(path) ? pd_json_open(out, path) : PERIDOT_OK;
    free(path);
    return status;
}

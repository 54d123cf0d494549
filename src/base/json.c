/* JSON files and headers: yyjson, with sentences that have line and column. A key that is there twice must say the same
 * both times, as two readers would take different ones. */
#include "base/base.h"

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

static peridot_status read(yyjson_doc **out, const uint8_t *data, uint64_t size, yyjson_read_flag flags)
{
    *out = NULL;
    if (size == 0) return pd_fail(PERIDOT_ERROR_FORMAT, "not JSON: it is empty");
    yyjson_read_err e;
    /* Without YYJSON_READ_INSITU the text is copied, not changed; the parameter is only not const. */
    *out = yyjson_read_opts((char *)(uintptr_t)data, (size_t)size, flags, NULL, &e);
    if (*out) return PERIDOT_OK;
    return e.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION ? pd_fail_alloc((size_t)size, "JSON")
                                                         : fail_position(data, &e);
}

peridot_status pd_json_read(yyjson_doc **out, const uint8_t *data, uint64_t size) { return read(out, data, size, 0); }

/* As texts, whose comparison is linear whatever the order of a hostile object's keys. */
static bool json_is_same(yyjson_val *a, yyjson_val *b)
{
    char *x = yyjson_val_write(a, YYJSON_WRITE_ALLOW_INF_AND_NAN, NULL);
    char *y = yyjson_val_write(b, YYJSON_WRITE_ALLOW_INF_AND_NAN, NULL);
    const bool same = x && y && strcmp(x, y) == 0;
    free(x);
    free(y);
    return same;
}

/* x: room for the keys of one object, and `values` for what they say. They are sorted, so that a hostile object with a
 * million keys costs n log n. */
static peridot_status check_keys(yyjson_val *object, struct pd_name_index *x, yyjson_val **values, const char *path)
{
    yyjson_obj_iter iter = yyjson_obj_iter_with(object);
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&iter)); x->n++) {
        if (!pd_name_valid(yyjson_get_str(key), yyjson_get_len(key)))
            return pd_fail(PERIDOT_ERROR_FORMAT, "%s: key %zu of an object is empty or has control characters", path,
                           x->n);
        x->names[x->n] = (struct pd_name){yyjson_get_str(key), x->n};
        values[x->n] = yyjson_obj_iter_get_val(key);
    }
    pd_names_sort(x);
    for (size_t i = 1; i < x->n; i++) {
        const size_t first = x->names[i - 1].index, second = x->names[i].index;
        if (strcmp(x->names[i - 1].name, x->names[i].name) != 0 || json_is_same(values[first], values[second]))
            continue;
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: key " PD_NAME " is there twice (entries %zu and %zu)", path,
                       x->names[i].name, first, second);
    }
    return PERIDOT_OK;
}

static peridot_status check_object(yyjson_val *object, const char *path)
{
    const size_t n = yyjson_obj_size(object) + 1;
    struct pd_name_index x = {malloc(n * sizeof *x.names), 0};
    yyjson_val **values = malloc(n * sizeof *values);
    peridot_status status = x.names && values ? check_keys(object, &x, values, path)
                                              : pd_fail_alloc(n * sizeof *x.names, path);
    free(x.names);
    free(values);
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
    peridot_status status = read(&doc, data, size, YYJSON_READ_ALLOW_INF_AND_NAN);
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

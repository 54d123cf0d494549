/* safetensors: the parser of one file. As with GGUF it works on bytes in memory and answers with a sentence or with
 * tensors that lie inside the file; here the format also demands that the data is tiled: no gap, no overlap, nothing
 * after the last tensor. Layout: u64 header size, the header (a JSON object: name to {dtype, shape, data_offsets}), the
 * data. */
#include "format/format_.h"

#include "base/base.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

typedef unsigned long long ull;

enum {
    MAX_HEADER_SIZE = 100000000,   /* the reference implementation's bound */
    MIN_ENTRY_SIZE = 48,           /* "a":{"dtype":"F4","shape":[],"data_offsets":[0,0]} */
    MAX_TYPE_NAME = 16
};

/* Bits of a weight of the format's types, those we compute with and those we only check and list. */
static const struct {
    const char *name;
    uint32_t bits;
} types[] = {
    {"F32", 32}, {"F16", 16}, {"BF16", 16}, {"F64", 64}, {"I64", 64}, {"U64", 64}, {"C64", 64}, {"I32", 32},
    {"U32", 32}, {"I16", 16}, {"U16", 16}, {"I8", 8}, {"U8", 8}, {"BOOL", 8}, {"F8_E4M3", 8}, {"F8_E5M2", 8},
    {"F8_E8M0", 8}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F4", 4},
};

struct file {
    const uint8_t *data;      /* all of it */
    uint64_t data_start, data_size;
    const char *path;
    struct pd_arena *arena;
};

static peridot_status safetensors_fail(const struct file *f, const struct pd_tensor *t, const char *reason)
{
    return pd_fail(PERIDOT_ERROR_FORMAT, "%s: tensor " PD_NAME ": %s", f->path, t->name, reason);
}

static peridot_status set_dtype(struct pd_tensor *t, const struct file *f, yyjson_val *value)
{
    const char *name = yyjson_get_str(value);
    if (!name || !pd_name_valid(name, yyjson_get_len(value)) || strlen(name) >= MAX_TYPE_NAME)
        return safetensors_fail(f, t, "its dtype is not a string like \"BF16\"");
    char *type = pd_arena_string(f->arena, name, strlen(name));
    if (!type) return pd_fail_alloc(strlen(name), "dtype");
    if (!pd_dtype_by_safetensors(&t->dtype, name)) t->dtype = PD_DTYPE_OTHER;
    for (char *p = type; *p; p++) *p = (char)tolower((unsigned char)*p);
    t->type = t->dtype == PD_DTYPE_OTHER ? type : pd_dtypes[t->dtype].name;
    return PERIDOT_OK;
}

/* Towers convolve over time, too: of more than four dimensions the last ones count as one. */
static peridot_status set_shape(struct pd_tensor *t, const struct file *f, yyjson_val *value)
{
    if (!yyjson_is_arr(value)) return safetensors_fail(f, t, "its shape is not an array");
    yyjson_arr_iter iter = yyjson_arr_iter_with(value);
    for (int i = 0; i < 4; i++) t->shape[i] = 1;
    t->n_dims = 0;
    for (yyjson_val *n; (n = yyjson_arr_iter_next(&iter));) {
        if (!yyjson_is_uint(n)) return safetensors_fail(f, t, "a dimension is not a whole number");
        uint64_t size = yyjson_get_uint(n);
        if (t->n_dims < 4) t->shape[t->n_dims++] = size;
        else if (!pd_mul(&t->shape[3], t->shape[3], size))
            return safetensors_fail(f, t, "its shape is more than 64 bits hold");
    }
    return PERIDOT_OK;
}

static peridot_status set_data(struct pd_tensor *t, const struct file *f, yyjson_val *value)
{
    yyjson_val *first = yyjson_arr_get(value, 0), *last = yyjson_arr_get(value, 1);
    if (yyjson_arr_size(value) != 2 || !yyjson_is_uint(first) || !yyjson_is_uint(last))
        return safetensors_fail(f, t, "its data_offsets are not two whole numbers");
    uint64_t begin = yyjson_get_uint(first), end = yyjson_get_uint(last);
    if (begin > end || end > f->data_size)
        return pd_fail(PERIDOT_ERROR_FORMAT,
                       "%s: tensor " PD_NAME ": its data_offsets %llu to %llu are not inside the %llu bytes "
                       "of data (from byte %llu on)",
                       f->path, t->name, (ull)begin, (ull)end, (ull)f->data_size, (ull)f->data_start);
    t->data = f->data + f->data_start + begin;
    t->size = end - begin;
    return PERIDOT_OK;
}

/* 0: a type that the format did not have when this was written; its size cannot be checked. */
static uint32_t type_bits(const char *name)
{
    for (size_t i = 0; i < PD_COUNT(types); i++)
        if (!strcmp(types[i].name, name)) return types[i].bits;
    return 0;
}

static peridot_status check_size(const struct pd_tensor *t, const struct file *f, uint32_t bits)
{
    uint64_t n, n_bits;
    if (bits == 0) return PERIDOT_OK;
    if (!pd_tensor_n_weights(&n, t) || !pd_mul(&n_bits, n, bits))
        return safetensors_fail(f, t, "its shape is more than 64 bits hold");
    if (n_bits / 8 == t->size && n_bits % 8 == 0) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_FORMAT,
                   "%s: tensor " PD_NAME ": its data_offsets hold %llu bytes, %llu weights of %s need %llu", f->path,
                   t->name, (ull)t->size, (ull)n, t->type, (ull)pd_div_up(n_bits, 8));
}

static peridot_status read_tensor(struct pd_tensor *t, const struct file *f, yyjson_val *key, yyjson_val *value)
{
    const char *name = yyjson_get_str(key);
    t->file = f->path;
    t->name = pd_arena_string(f->arena, name, strlen(name));
    if (!t->name) return pd_fail_alloc(strlen(name), "tensor name");
    if (!pd_name_valid(name, strlen(name)))
        return safetensors_fail(f, t, "its name is empty or has control characters");
    yyjson_val *dtype = yyjson_obj_get(value, "dtype"), *shape = yyjson_obj_get(value, "shape");
    yyjson_val *offsets = yyjson_obj_get(value, "data_offsets");
    if (!dtype || !shape || !offsets || yyjson_obj_size(value) != 3)
        return safetensors_fail(f, t, "the header does not give it dtype, shape and data_offsets and nothing else");
    PD_TRY(set_dtype(t, f, dtype));
    PD_TRY(set_shape(t, f, shape));
    PD_TRY(set_data(t, f, offsets));
    return check_size(t, f, type_bits(yyjson_get_str(dtype)));
}

static int compare_data(const void *a, const void *b)
{
    const struct pd_tensor *x = a, *y = b;
    if (x->data != y->data) return x->data < y->data ? -1 : 1;
    if (x->size != y->size) return x->size < y->size ? -1 : 1;   /* empty ones before the one that begins there */
    return strcmp(x->name, y->name);
}

/* Sorts the tensors by their data and checks that they tile it. */
static peridot_status check_tiling(struct pd_tensor_list *list, const struct file *f)
{
    uint64_t end = 0;
    if (list->n) qsort(list->items, list->n, sizeof *list->items, compare_data);
    for (size_t i = 0; i < list->n; i++) {
        const struct pd_tensor *t = &list->items[i];
        uint64_t begin = (uint64_t)(t->data - f->data) - f->data_start;
        if (begin != end)
            return pd_fail(PERIDOT_ERROR_FORMAT,
                           "%s: tensor " PD_NAME " begins at byte %llu of the data, %s %llu, where %s", f->path,
                           t->name, (ull)begin, begin < end ? "before" : "past", (ull)end,
                           i ? "the one before it ends" : "the data begins");
        end = begin + t->size;
    }
    if (end == f->data_size) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_FORMAT, "%s: %llu bytes of data belong to no tensor (from byte %llu on)", f->path,
                   (ull)(f->data_size - end), (ull)(f->data_start + end));
}

/* Where the data ends, as the header has it, which is past the file where a download was cut short. */
static peridot_status check_end(const struct file *f, yyjson_val *root)
{
    uint64_t end = 0;
    yyjson_obj_iter iter = yyjson_obj_iter_with(root);
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&iter));) {
        yyjson_val *offsets = yyjson_obj_get(yyjson_obj_iter_get_val(key), "data_offsets");
        end = pd_max(end, yyjson_get_uint(yyjson_arr_get(offsets, 1)));
    }
    if (end <= f->data_size) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_FORMAT, "%s: " PD_FOREIGN_CUT, f->path, (ull)(f->data_start + f->data_size),
                   (ull)pd_min(end, UINT64_MAX - f->data_start) + f->data_start);
}

static peridot_status read_tensors(struct pd_tensor_list *out, const struct file *f, yyjson_val *root)
{
    uint64_t header_size = f->data_start - 8;
    size_t n = yyjson_obj_size(root) - (yyjson_obj_get(root, "__metadata__") != NULL);
    if (n > header_size / MIN_ENTRY_SIZE)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: its header of %llu bytes cannot describe %zu tensors", f->path,
                       (ull)header_size, n);
    PD_TRY(check_end(f, root));
    PD_TRY(pd_tensor_list_alloc(out, f->arena, n));
    yyjson_obj_iter iter = yyjson_obj_iter_with(root);
    struct pd_tensor *t = out->items;
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&iter));) {
        if (yyjson_equals_str(key, "__metadata__")) continue;
        PD_TRY(read_tensor(t++, f, key, yyjson_obj_iter_get_val(key)));
    }
    return check_tiling(out, f);
}

static peridot_status read_header(struct pd_tensor_list *out, const struct file *f)
{
    char label[1024];
    snprintf(label, sizeof label, "%.1000s, header", f->path);
    yyjson_doc *doc;
    PD_TRY(pd_json_parse(&doc, f->data + 8, f->data_start - 8, label));
    peridot_status status = read_tensors(out, f, yyjson_doc_get_root(doc));
    yyjson_doc_free(doc);
    return status;
}

peridot_status pd_safetensors_parse(struct pd_tensor_list *out, struct pd_arena *arena, const uint8_t *data,
                                    uint64_t size, const char *path)
{
    *out = (struct pd_tensor_list){0};
    PD_TRY(pd_foreign_check(data, size, path, "a safetensors file"));
    if (size < 10)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: not a safetensors file: it is %llu bytes long", path, (ull)size);
    uint64_t header_size = 0;
    for (int i = 0; i < 8; i++) header_size |= (uint64_t)data[i] << 8 * i;
    if (header_size > MAX_HEADER_SIZE)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: not a safetensors file: its header size (bytes 0 to 7) is %llu, and "
                       "%d the most allowed", path, (ull)header_size, (int)MAX_HEADER_SIZE);
    if (header_size > size - 8)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: " PD_FOREIGN_CUT, path, (ull)size, (ull)header_size + 8);
    struct file f = {data, 8 + header_size, size - 8 - header_size, path, arena};
    peridot_status status = read_header(out, &f);
    if (status != PERIDOT_OK) *out = (struct pd_tensor_list){0};
    return status;
}

/* GGUF, versions 2 and 3: the parser. It works on bytes in memory (a mapped file) and keeps pointers into them.
 * Whatever the bytes are, it answers with a sentence or with tensors that lie inside them, do not overlap, and have
 * unique names; what it allocates is bounded by the size of the file, and its time by n log n of it.
 * Layout: "GGUF", u32 version, u64 n_tensors, u64 n_meta, the metadata, the tensors' descriptions, padding to
 * general.alignment (32), the data. Strings are u64 size and bytes. Source: docs/gguf.md of the ggml project. */
#include "format/format_.h"

#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

typedef unsigned long long ull;

enum { MIN_META_SIZE = 8 + 1 + 4 + 1, MIN_TENSOR_SIZE = 8 + 1 + 4 + 8 + 4 + 8, MIN_STRING_SIZE = 8,
       MIN_ARRAY_SIZE = 4 + 8, MAX_NESTING = 8 };

struct reader {
    const uint8_t *data;
    uint64_t size, pos;
    const char *path;
    struct pd_gguf *out;
    char what[160];      /* what is being read, for sentences: "key general.name" */
};

/* "PATH: WHAT (byte START): ..."; START is where the number that is wrong begins. */
static peridot_status fail_at(const struct reader *r, peridot_status status, uint64_t start, const char *format, ...)
    PD_PRINTF(4, 5);

static peridot_status fail_at(const struct reader *r, peridot_status status, uint64_t start, const char *format, ...)
{
    char reason[400];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    return pd_fail(status, "%s: %s (byte %llu): %s", r->path, r->what, (ull)start, reason);
}

/* ---- scalars and strings ---- */

/* The next `size` bytes; NULL, with the sentence made (PERIDOT_ERROR_FORMAT), when the file is shorter. */
static const uint8_t *take_bytes(struct reader *r, uint64_t size)
{
    if (size > r->size - r->pos) {
        fail_at(r, PERIDOT_ERROR_FORMAT, r->pos, "%llu bytes wanted, and the file has %llu: it was cut short, or is "
                "damaged; download it again", (ull)size, (ull)r->size);
        return NULL;
    }
    r->pos += size;
    return r->data + r->pos - size;
}

static peridot_status read_u32(uint32_t *out, struct reader *r)
{
    const uint8_t *p = take_bytes(r, 4);
    if (!p) return PERIDOT_ERROR_FORMAT;
    *out = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    return PERIDOT_OK;
}

static peridot_status read_u64(uint64_t *out, struct reader *r)
{
    uint32_t low, high;
    PD_TRY(read_u32(&low, r));
    PD_TRY(read_u32(&high, r));
    *out = low | (uint64_t)high << 32;
    return PERIDOT_OK;
}

static peridot_status read_string(struct pd_string *out, struct reader *r)
{
    PD_TRY(read_u64(&out->size, r));
    out->data = (const char *)take_bytes(r, out->size);
    return out->data ? PERIDOT_OK : PERIDOT_ERROR_FORMAT;
}

/* A count of things that take at least min_size bytes each: refused when the rest of the file cannot hold them, so that
 * what is allocated for them is in proportion to the file. */
static peridot_status read_count(uint64_t *out, struct reader *r, uint64_t min_size)
{
    uint64_t start = r->pos;
    PD_TRY(read_u64(out, r));
    if (*out <= (r->size - r->pos) / min_size) return PERIDOT_OK;
    return fail_at(r, PERIDOT_ERROR_FORMAT, start, "a count of %llu, for which %llu bytes are left: the file was "
                   "cut short, or is damaged; download it again", (ull)*out, (ull)(r->size - r->pos));
}

/* A key or a tensor's name; from here on sentences call the thing by it. */
static peridot_status gguf_read_name(const char **out, struct reader *r, const char *kind)
{
    struct pd_string s;
    uint64_t start = r->pos;
    PD_TRY(read_string(&s, r));
    if (!pd_name_valid(s.data, (size_t)s.size))
        return fail_at(r, PERIDOT_ERROR_FORMAT, start,
                       "its name of %llu bytes is empty, not UTF-8 or holds control characters", (ull)s.size);
    *out = pd_arena_string(&r->out->arena, s.data, (size_t)s.size);
    if (!*out) return pd_fail_alloc((size_t)s.size, "name");
    snprintf(r->what, sizeof r->what, "%s " PD_NAME, kind, *out);
    return PERIDOT_OK;
}

/* ---- metadata ---- */

static peridot_status read_meta_type(enum pd_meta_type *out, struct reader *r)
{
    uint32_t type;
    uint64_t start = r->pos;
    PD_TRY(read_u32(&type, r));
    if (type >= PD_META_N_TYPES)
        return fail_at(r, PERIDOT_ERROR_FORMAT, start, "value type %u is not one of GGUF's (0 to 12)", (unsigned)type);
    *out = (enum pd_meta_type)type;
    return PERIDOT_OK;
}

static peridot_status read_array_head(enum pd_meta_type *element, uint64_t *n, struct reader *r)
{
    PD_TRY(read_meta_type(element, r));
    const uint32_t size = pd_meta_type_size(*element);
    return read_count(n, r, size ? size : *element == PD_META_STRING ? MIN_STRING_SIZE : MIN_ARRAY_SIZE);
}

/* Elements of an array that lies within another. */
static peridot_status skip_elements(struct reader *r, enum pd_meta_type element, uint64_t n, uint32_t depth)
{
    struct pd_string s;
    const uint32_t size = pd_meta_type_size(element);
    if (size) return take_bytes(r, n * size) ? PERIDOT_OK : PERIDOT_ERROR_FORMAT;
    if (depth > MAX_NESTING)
        return fail_at(r, PERIDOT_ERROR_UNSUPPORTED, r->pos, "arrays nest deeper than %d", MAX_NESTING);
    for (uint64_t i = 0; i < n; i++) {
        enum pd_meta_type inner = PD_META_ARRAY;
        uint64_t n_inner = 0;
        if (element == PD_META_STRING) PD_TRY(read_string(&s, r));
        else {
            PD_TRY(read_array_head(&inner, &n_inner, r));
            PD_TRY(skip_elements(r, inner, n_inner, depth + 1));
        }
    }
    return PERIDOT_OK;
}

static peridot_status read_strings(struct pd_meta *m, struct reader *r)
{
    struct pd_string *strings = pd_arena_array(&r->out->arena, (size_t)m->n, sizeof *strings);
    if (!strings) return pd_fail_alloc((size_t)m->n * sizeof *strings, m->key);
    for (uint64_t i = 0; i < m->n; i++) PD_TRY(read_string(&strings[i], r));
    m->strings = strings;
    return PERIDOT_OK;
}

static peridot_status check_bools(const struct pd_meta *m, const struct reader *r, uint64_t start)
{
    for (uint64_t i = 0; i < m->n; i++)
        if (m->data[i] > 1)
            return fail_at(r, PERIDOT_ERROR_FORMAT, start + i, "%u is not a truth value (0 or 1)",
                           (unsigned)m->data[i]);
    return PERIDOT_OK;
}

static peridot_status read_meta(struct pd_meta *m, struct reader *r)
{
    PD_TRY(gguf_read_name(&m->key, r, "key"));
    PD_TRY(read_meta_type(&m->type, r));
    m->element = m->type;
    m->n = 1;
    if (m->type == PD_META_ARRAY) PD_TRY(read_array_head(&m->element, &m->n, r));
    if (m->element == PD_META_STRING) return read_strings(m, r);
    uint64_t start = r->pos;
    m->data = r->data + start;
    PD_TRY(skip_elements(r, m->element, m->n, 1));
    m->size = r->pos - start;
    return m->element == PD_META_BOOL ? check_bools(m, r, start) : PERIDOT_OK;
}

static bool gguf_is_same(const struct pd_meta *a, const struct pd_meta *b)
{
    if (a->type != b->type || a->element != b->element || a->n != b->n || a->size != b->size) return false;
    for (uint64_t i = 0; a->element == PD_META_STRING && i < a->n; i++)
        if (a->strings[i].size != b->strings[i].size
            || memcmp(a->strings[i].data, b->strings[i].data, (size_t)a->strings[i].size) != 0) return false;
    return a->size == 0 || memcmp(a->data, b->data, (size_t)a->size) == 0;
}

/* Of keys that say the same twice one is left: other programs refuse what is made of them. */
static peridot_status drop_repeated(struct pd_gguf *g, const char *path)
{
    const struct pd_name *names = g->meta_index.names;
    for (size_t i = 1; i < g->n_meta; i++) {
        struct pd_meta *a = &g->meta[names[i - 1].index], *b = &g->meta[names[i].index];
        if (strcmp(names[i - 1].name, names[i].name) != 0) continue;
        if (!gguf_is_same(a, b))
            return pd_fail(PERIDOT_ERROR_FORMAT, "%s: key " PD_NAME " is there twice (entries %zu and %zu)", path,
                           names[i].name, names[i - 1].index, names[i].index);
        b->key = NULL;
    }
    size_t n = 0;
    for (size_t i = 0; i < g->n_meta; i++)
        if (g->meta[i].key) g->meta[n++] = g->meta[i];
    g->n_meta = n;
    return PERIDOT_OK;
}

static peridot_status index_meta(struct pd_gguf *g, const char *path)
{
    struct pd_name_index *x = &g->meta_index;
    *x = (struct pd_name_index){pd_arena_array(&g->arena, g->n_meta, sizeof *x->names), g->n_meta};
    if (!x->names) return pd_fail_alloc(g->n_meta * sizeof *x->names, "keys");
    for (size_t i = 0; i < g->n_meta; i++) x->names[i] = (struct pd_name){g->meta[i].key, i};
    pd_names_sort(x);
    size_t first, second;
    if (!pd_names_duplicate(x, &first, &second)) return PERIDOT_OK;
    PD_TRY(drop_repeated(g, path));
    return index_meta(g, path);
}

static peridot_status read_all_meta(struct reader *r, uint64_t n)
{
    struct pd_gguf *g = r->out;
    g->n_meta = (size_t)n;
    g->meta = pd_arena_array(&g->arena, g->n_meta, sizeof *g->meta);
    if (!g->meta) return pd_fail_alloc(g->n_meta * sizeof *g->meta, "metadata");
    for (size_t i = 0; i < g->n_meta; i++) {
        snprintf(r->what, sizeof r->what, "key %zu", i);
        PD_TRY(read_meta(&g->meta[i], r));
    }
    return index_meta(g, r->path);
}

/* What the keys say about the file itself. */
static peridot_status apply_meta(struct pd_gguf *g, const char *path)
{
    const struct pd_meta *alignment = pd_gguf_find_meta(g, "general.alignment");
    g->alignment = 32;
    if (!alignment) return PERIDOT_OK;
    uint64_t a = 0;
    bool known = alignment->type != PD_META_ARRAY && pd_meta_uint(&a, alignment, 0);
    if (!known || a < 8 || a > 1 << 30 || (a & (a - 1)))
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: general.alignment (%s %llu) is not a power of two from 8 to 2^30",
                       path, pd_meta_type_name(alignment->type), (ull)a);
    g->alignment = a;
    return PERIDOT_OK;
}

/* ---- tensors ---- */

/* GGUF lists the innermost dimension first. */
static peridot_status read_shape(struct pd_tensor *t, struct reader *r)
{
    uint64_t start = r->pos;
    PD_TRY(read_u32(&t->n_dims, r));
    if (t->n_dims < 1 || t->n_dims > 4)
        return fail_at(r, PERIDOT_ERROR_FORMAT, start, "%u dimensions (1 to 4 are allowed)", (unsigned)t->n_dims);
    for (int i = 0; i < 4; i++) t->shape[i] = 1;
    for (uint32_t i = t->n_dims; i-- > 0;) {
        start = r->pos;
        PD_TRY(read_u64(&t->shape[i], r));
        if (t->shape[i] == 0) return fail_at(r, PERIDOT_ERROR_FORMAT, start, "a dimension is 0");
    }
    return PERIDOT_OK;
}

static peridot_status read_tensor(struct pd_tensor *t, uint64_t *offset, struct reader *r)
{
    uint32_t type;
    t->file = r->path;
    PD_TRY(gguf_read_name(&t->name, r, "tensor"));
    PD_TRY(read_shape(t, r));
    uint64_t start = r->pos;
    PD_TRY(read_u32(&type, r));
    if (!pd_dtype_by_gguf(&t->dtype, type))
        return fail_at(r, PERIDOT_ERROR_UNSUPPORTED, start, "type %s (%u) is not read", pd_gguf_type_name(type),
                       (unsigned)type);
    t->type = pd_dtypes[t->dtype].name;
    PD_TRY(pd_tensor_set_size(t));
    start = r->pos;
    PD_TRY(read_u64(offset, r));
    if (*offset % r->out->alignment)
        return fail_at(r, PERIDOT_ERROR_FORMAT, start, "its offset %llu is not a multiple of the alignment %llu",
                       (ull)*offset, (ull)r->out->alignment);
    return PERIDOT_OK;
}

static peridot_status read_all_tensors(uint64_t *offsets, struct reader *r)
{
    struct pd_tensor_list *list = &r->out->tensors;
    for (size_t i = 0; i < list->n; i++) {
        snprintf(r->what, sizeof r->what, "tensor %zu", i);
        PD_TRY(read_tensor(&list->items[i], &offsets[i], r));
    }
    return pd_tensor_list_index(list, &r->out->arena);
}

static peridot_status place_tensors(const uint64_t *offsets, struct reader *r)
{
    struct pd_gguf *g = r->out;
    g->data_start = pd_align(r->pos, g->alignment);
    uint64_t end = 0;
    for (size_t i = 0; i < g->tensors.n; i++) {
        struct pd_tensor *t = &g->tensors.items[i];
        if (t->size > UINT64_MAX - g->data_start || offsets[i] > UINT64_MAX - g->data_start - t->size)
            return pd_fail(PERIDOT_ERROR_FORMAT, "%s: tensor " PD_NAME " ends past what 64 bits hold (%llu bytes at "
                           "offset %llu of the data)", r->path, t->name, (ull)t->size, (ull)offsets[i]);
        end = pd_max(end, g->data_start + offsets[i] + t->size);
    }
    if (end > r->size) return pd_fail(PERIDOT_ERROR_FORMAT, "%s: " PD_FOREIGN_CUT, r->path, (ull)r->size, (ull)end);
    for (size_t i = 0; i < g->tensors.n; i++) g->tensors.items[i].data = r->data + g->data_start + offsets[i];
    return PERIDOT_OK;
}

static int compare_data(const void *a, const void *b)
{
    const struct pd_tensor *const *x = a, *const *y = b;
    return ((*x)->data > (*y)->data) - ((*x)->data < (*y)->data);
}

static peridot_status check_overlap(struct reader *r)
{
    const struct pd_tensor_list *list = &r->out->tensors;
    const struct pd_tensor **sorted = pd_arena_array(&r->out->arena, list->n, sizeof *sorted);
    if (!sorted) return pd_fail_alloc(list->n * sizeof *sorted, "tensor order");
    for (size_t i = 0; i < list->n; i++) sorted[i] = &list->items[i];
    if (list->n) qsort(sorted, list->n, sizeof *sorted, compare_data);
    for (size_t i = 1; i < list->n; i++) {
        const struct pd_tensor *a = sorted[i - 1], *b = sorted[i];
        if ((uint64_t)(b->data - a->data) < a->size)
            return pd_fail(PERIDOT_ERROR_FORMAT, "%s: tensor " PD_NAME " begins at byte %llu, inside tensor " PD_NAME
                           " (bytes %llu to %llu)", r->path, b->name, (ull)(b->data - r->data), a->name,
                           (ull)(a->data - r->data), (ull)(a->data - r->data + a->size));
    }
    return PERIDOT_OK;
}

/* ---- header ---- */

static bool looks_like_safetensors(const struct reader *r)
{
    return r->size > 9 && r->data[6] == 0 && r->data[7] == 0 && r->data[8] == '{';
}

static peridot_status read_magic(struct reader *r)
{
    if (r->size == 0) return pd_foreign_check(NULL, 0, r->path, "a GGUF file");
    if (r->size < 4)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: not a GGUF file: it is %llu bytes long", r->path, (ull)r->size);
    r->pos = 4;
    if (!memcmp(r->data, "GGUF", 4)) return PERIDOT_OK;
    if (looks_like_safetensors(r))
        return pd_fail(PERIDOT_ERROR_FORMAT,
                       "%s: a safetensors file by itself is not a model; give the folder with its config.json",
                       r->path);
    PD_TRY(pd_foreign_check(r->data, r->size, r->path, "a GGUF file"));
    return pd_fail(PERIDOT_ERROR_FORMAT,
                   "%s: not a GGUF file: it begins with bytes %02x %02x %02x %02x, not 47 47 55 46 (GGUF)", r->path,
                   r->data[0], r->data[1], r->data[2], r->data[3]);
}

static peridot_status read_version(struct reader *r)
{
    uint32_t v;
    snprintf(r->what, sizeof r->what, "version");
    PD_TRY(read_u32(&v, r));
    r->out->version = v;
    if (v == 2 || v == 3) return PERIDOT_OK;
    if (v == 1)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: GGUF version 1 (of August 2023) is not read, only 2 and 3",
                       r->path);
    if ((v & 0xffff) == 0)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED,
                       "%s: a big-endian GGUF file (version bytes %02x %02x %02x %02x), only "
                       "little-endian ones are read",
                       r->path, r->data[4], r->data[5], r->data[6], r->data[7]);
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: GGUF version %u is not read, only 2 and 3", r->path, (unsigned)v);
}

static peridot_status parse_file(struct reader *r)
{
    uint64_t n_tensors, n_meta;
    PD_TRY(read_magic(r));
    PD_TRY(read_version(r));
    snprintf(r->what, sizeof r->what, "number of tensors");
    PD_TRY(read_count(&n_tensors, r, MIN_TENSOR_SIZE));
    snprintf(r->what, sizeof r->what, "number of keys");
    PD_TRY(read_count(&n_meta, r, MIN_META_SIZE));
    PD_TRY(read_all_meta(r, n_meta));
    PD_TRY(apply_meta(r->out, r->path));
    PD_TRY(pd_tensor_list_alloc(&r->out->tensors, &r->out->arena, (size_t)n_tensors));
    uint64_t *offsets = pd_arena_array(&r->out->arena, (size_t)n_tensors, sizeof *offsets);
    if (!offsets) return pd_fail_alloc((size_t)n_tensors * sizeof *offsets, "tensor offsets");
    PD_TRY(read_all_tensors(offsets, r));
    PD_TRY(place_tensors(offsets, r));
    return check_overlap(r);
}

peridot_status pd_gguf_parse(struct pd_gguf *out, const uint8_t *data, uint64_t size, const char *path)
{
    *out = (struct pd_gguf){0};
    struct reader r = {.data = data, .size = size, .path = path, .out = out};
    peridot_status status = parse_file(&r);
    if (status != PERIDOT_OK) pd_gguf_free(out);
    return status;
}

void pd_gguf_free(struct pd_gguf *g)
{
    pd_arena_free(&g->arena);
    *g = (struct pd_gguf){0};
}

const struct pd_meta *pd_gguf_find_meta(const struct pd_gguf *g, const char *key)
{
    size_t i = pd_names_find(&g->meta_index, key);
    return i == SIZE_MAX ? NULL : &g->meta[i];
}

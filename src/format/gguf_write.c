/* Writes GGUF files, version 3. First all keys and the descriptions of all tensors, then `begin`, then the tensors'
 * data in the same order, in pieces of any size; padding between tensors is the writer's work. The file appears at its
 * path only with `commit`.
 *     pd_gguf_writer_open, add_*..., begin, write..., commit (or abort, at any time) */
#include "format/format.h"

#include "base/base.h"

#include <assert.h>
#include <stdlib.h>

enum { ALIGNMENT = 32 };   /* GGUF's default, so that general.alignment need not be written */

struct pd_gguf_writer {
    struct pd_writer file;
    struct pd_buffer meta, tensors;      /* keys and descriptions as they will be in the file */
    struct pd_buffer sizes;              /* uint64_t of each tensor */
    uint64_t n_meta, n_tensors;
    uint64_t next_offset, data_size;     /* offset of the tensor added next; bytes of all tensors without padding */
    uint64_t current, left;              /* the tensor being written, and what it still lacks */
};

static void put_u32(struct pd_buffer *b, uint32_t v) { pd_buffer_add(b, &v, sizeof v); }
static void put_u64(struct pd_buffer *b, uint64_t v) { pd_buffer_add(b, &v, sizeof v); }

static void put_string(struct pd_buffer *b, const char *s, uint64_t size)
{
    put_u64(b, size);
    pd_buffer_add(b, s, (size_t)size);
}

static struct pd_buffer *put_key(struct pd_gguf_writer *w, const char *key, enum pd_meta_type type)
{
    put_string(&w->meta, key, strlen(key));
    put_u32(&w->meta, type);
    w->n_meta++;
    return &w->meta;
}

peridot_status pd_gguf_writer_open(struct pd_gguf_writer **out, const char *path)
{
    *out = NULL;
    struct pd_gguf_writer *w = calloc(1, sizeof *w);
    if (!w) return pd_fail_alloc(sizeof *w, "GGUF writer");
    peridot_status status = pd_writer_open(&w->file, path);
    if (status == PERIDOT_OK) *out = w;
    else free(w);
    return status;
}

void pd_gguf_writer_add_u32(struct pd_gguf_writer *w, const char *key, uint32_t value)
{
    put_u32(put_key(w, key, PD_META_UINT32), value);
}

void pd_gguf_writer_add_f32(struct pd_gguf_writer *w, const char *key, float value)
{
    put_u32(put_key(w, key, PD_META_FLOAT32), pd_f32_bits(value));
}

void pd_gguf_writer_add_bool(struct pd_gguf_writer *w, const char *key, bool value)
{
    uint8_t byte = value;
    pd_buffer_add(put_key(w, key, PD_META_BOOL), &byte, 1);
}

void pd_gguf_writer_add_string(struct pd_gguf_writer *w, const char *key, const char *value)
{
    put_string(put_key(w, key, PD_META_STRING), value, strlen(value));
}

void pd_gguf_writer_add_array(struct pd_gguf_writer *w, const char *key, enum pd_meta_type element, uint64_t n,
                              const void *data)
{
    struct pd_buffer *b = put_key(w, key, PD_META_ARRAY);
    put_u32(b, element);
    put_u64(b, n);
    pd_buffer_add(b, data, (size_t)n * pd_meta_type_size(element));
}

void pd_gguf_writer_add_strings(struct pd_gguf_writer *w, const char *key, uint64_t n, const struct pd_string *strings)
{
    struct pd_buffer *b = put_key(w, key, PD_META_ARRAY);
    put_u32(b, PD_META_STRING);
    put_u64(b, n);
    for (uint64_t i = 0; i < n; i++) put_string(b, strings[i].data, strings[i].size);
}

void pd_gguf_writer_add_meta(struct pd_gguf_writer *w, const struct pd_meta *m)
{
    if (m->type == PD_META_ARRAY && m->element == PD_META_STRING) {
        pd_gguf_writer_add_strings(w, m->key, m->n, m->strings);
    } else {
        struct pd_buffer *b = put_key(w, m->key, m->type);
        if (m->type == PD_META_ARRAY) {
            put_u32(b, m->element);
            put_u64(b, m->n);
        }
        if (m->type == PD_META_STRING) put_string(b, m->strings[0].data, m->strings[0].size);
        else pd_buffer_add(b, m->data, (size_t)m->size);
    }
}

void pd_gguf_writer_add_tensor(struct pd_gguf_writer *w, const char *name, enum pd_dtype dtype, uint32_t n_dims,
                               const uint64_t *shape)
{
    struct pd_buffer *b = &w->tensors;
    uint64_t n_weights = 1;
    put_string(b, name, strlen(name));
    put_u32(b, n_dims);
    for (uint32_t i = n_dims; i-- > 0; n_weights *= shape[i]) put_u64(b, shape[i]);   /* innermost first */
    put_u32(b, pd_dtypes[dtype].gguf);
    put_u64(b, w->next_offset);
    uint64_t size = pd_row_size(dtype, n_weights);
    assert(size > 0 && shape[n_dims - 1] % pd_dtypes[dtype].block_len == 0);
    put_u64(&w->sizes, size);
    w->n_tensors++;
    w->data_size += size;
    w->next_offset = pd_align(w->next_offset + size, ALIGNMENT);
}

uint64_t pd_gguf_writer_data_size(const struct pd_gguf_writer *w) { return w->data_size; }

static peridot_status pad(struct pd_gguf_writer *w)
{
    static const uint8_t zeros[ALIGNMENT];
    return pd_writer_write(&w->file, zeros, (size_t)(pd_align(w->file.offset, ALIGNMENT) - w->file.offset));
}

static void enter_tensor(struct pd_gguf_writer *w, uint64_t i)
{
    w->current = i;
    w->left = 0;
    if (i < w->n_tensors) memcpy(&w->left, w->sizes.data + i * sizeof w->left, sizeof w->left);
}

static peridot_status check_disk(const struct pd_gguf_writer *w)
{
    uint64_t need = w->meta.size + w->tensors.size + w->next_offset, available = pd_writer_available(&w->file);
    if (need <= available) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_IO, "%s: needs %.3f GB, but its disk has only %.3f GB left", w->file.path,
                   (double)need * 1e-9, (double)available * 1e-9);
}

peridot_status pd_gguf_writer_begin(struct pd_gguf_writer *w)
{
    struct pd_buffer head = {0};
    pd_buffer_add(&head, "GGUF", 4);
    put_u32(&head, 3);
    put_u64(&head, w->n_tensors);
    put_u64(&head, w->n_meta);
    peridot_status status = PERIDOT_OK;
    if (head.failed || w->meta.failed || w->tensors.failed || w->sizes.failed)
        status = pd_fail_alloc(w->meta.size + w->tensors.size, "GGUF header");
    if (status == PERIDOT_OK) status = check_disk(w);
    if (status == PERIDOT_OK) status = pd_writer_write(&w->file, head.data, head.size);
    if (status == PERIDOT_OK) status = pd_writer_write(&w->file, w->meta.data, w->meta.size);
    if (status == PERIDOT_OK) status = pd_writer_write(&w->file, w->tensors.data, w->tensors.size);
    if (status == PERIDOT_OK) status = pad(w);
    pd_buffer_free(&head);
    if (status == PERIDOT_OK) enter_tensor(w, 0);
    return status;
}

peridot_status pd_gguf_writer_write(struct pd_gguf_writer *w, const void *data, size_t size)
{
    assert(size <= w->left);
    PD_TRY(pd_writer_write(&w->file, data, size));
    w->left -= size;
    if (w->left) return PERIDOT_OK;
    PD_TRY(pad(w));
    enter_tensor(w, w->current + 1);
    return PERIDOT_OK;
}

static void writer_free(struct pd_gguf_writer *w)
{
    pd_buffer_free(&w->meta);
    pd_buffer_free(&w->tensors);
    pd_buffer_free(&w->sizes);
    free(w);
}

peridot_status pd_gguf_writer_commit(struct pd_gguf_writer *w)
{
    assert(w->current == w->n_tensors);
    peridot_status status = pd_writer_commit(&w->file);
    writer_free(w);
    return status;
}

void pd_gguf_writer_abort(struct pd_gguf_writer *w)
{
    if (!w) return;
    pd_writer_abort(&w->file);
    writer_free(w);
}

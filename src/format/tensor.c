/* A tensor in a file, and the list of a file's or a model's tensors with their names sorted. */
#include "base/base.h"
#include "format/format.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

peridot_status pd_tensor_list_alloc(struct pd_tensor_list *out, struct pd_arena *arena, size_t n)
{
    *out = (struct pd_tensor_list){.items = pd_arena_array(arena, n, sizeof *out->items), .n = n};
    return out->items ? PERIDOT_OK : pd_fail_alloc(n * sizeof *out->items, "tensor list");
}

static peridot_status fail_duplicate(const struct pd_tensor *a, const struct pd_tensor *b, size_t i, size_t j)
{
    if (strcmp(a->file, b->file))
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: tensor " PD_NAME " is also in %s", b->file, b->name, a->file);
    return pd_fail(PERIDOT_ERROR_FORMAT, "%s: tensor " PD_NAME " is there twice (entries %zu and %zu)", b->file,
                   b->name, i, j);
}

peridot_status pd_tensor_list_index(struct pd_tensor_list *list, struct pd_arena *arena)
{
    struct pd_name_index *x = &list->index;
    *x = (struct pd_name_index){pd_arena_array(arena, list->n, sizeof *x->names), list->n};
    if (!x->names) return pd_fail_alloc(list->n * sizeof *x->names, "tensor names");
    for (size_t i = 0; i < list->n; i++) x->names[i] = (struct pd_name){list->items[i].name, i};
    pd_names_sort(x);
    size_t first, second;
    if (!pd_names_duplicate(x, &first, &second)) return PERIDOT_OK;
    return fail_duplicate(&list->items[first], &list->items[second], first, second);
}

const struct pd_tensor *pd_tensor_list_find(const struct pd_tensor_list *list, const char *name)
{
    size_t i = pd_names_find(&list->index, name);
    return i == SIZE_MAX ? NULL : &list->items[i];
}

bool pd_tensor_n_weights(uint64_t *out, const struct pd_tensor *t)
{
    *out = 1;
    bool empty = false;   /* looked for first: the product of the others may be more than 64 bits hold */
    for (uint32_t i = 0; i < t->n_dims; i++) empty = empty || t->shape[i] == 0;
    if (empty) {
        *out = 0;
        return true;
    }
    for (uint32_t i = 0; i < t->n_dims; i++)
        if (!pd_mul(out, *out, t->shape[i])) return false;
    return true;
}

peridot_status pd_tensor_set_size(struct pd_tensor *t)
{
    const struct pd_dtype_info *info = &pd_dtypes[t->dtype];
    uint64_t columns = t->n_dims ? t->shape[t->n_dims - 1] : 1, n;
    if (columns % info->block_len)
        return pd_fail(PERIDOT_ERROR_FORMAT,
                       "%s: tensor " PD_NAME ": its rows of %llu weights are not whole blocks of %u (%s)", t->file,
                       t->name, (unsigned long long)columns, (unsigned)info->block_len, info->name);
    if (!pd_tensor_n_weights(&n, t) || !pd_mul(&t->size, n / info->block_len, info->block_size))
        return pd_fail(PERIDOT_ERROR_FORMAT,
                       "%s: tensor " PD_NAME ": its shape [%llu, %llu, %llu, %llu] is more than 64 bits hold",
                       t->file, t->name, (unsigned long long)t->shape[0], (unsigned long long)t->shape[1],
                       (unsigned long long)t->shape[2], (unsigned long long)t->shape[3]);
    return PERIDOT_OK;
}

uint64_t pd_tensor_n_rows(const struct pd_tensor *t)
{
    uint64_t n = t->n_dims ? t->shape[0] : 1;
    for (uint32_t i = 1; i + 1 < t->n_dims; i++) n *= t->shape[i];
    return n;
}

float pd_tensor_scale(const struct pd_tensor *t, uint64_t row)
{
    float scale = 1;
    if (t->n_scales) memcpy(&scale, t->scales + row * t->n_scales / pd_tensor_n_rows(t) * sizeof scale, sizeof scale);
    return scale;
}

/* Nibble i of a block of MXFP4 is weight i, and in the upper half i + 16; in Hugging Face's 2 i, and 2 i + 1. */
static void gather_blocks(uint8_t *dst, const struct pd_tensor *t, uint64_t block, uint64_t n)
{
    for (uint64_t k = 0; k < n; k++, dst += 17) {
        const uint8_t *from = t->data + (block + k) * 16;
        dst[0] = t->block_scales[block + k];
        for (int i = 0; i < 16; i++) {
            int shift = i % 2 * 4;
            dst[1 + i] = (uint8_t)((from[i / 2] >> shift & 15) | (from[8 + i / 2] >> shift & 15) << 4);
        }
    }
}

/* n weights of one row that has strides. */
static void gather(uint8_t *dst, const struct pd_tensor *t, uint64_t first, uint64_t n)
{
    uint64_t row = first / t->shape[2], size = pd_row_size(t->dtype, t->block_scales ? 32 : 1);
    uint64_t at = t->first + row / t->shape[1] * t->stride[0] + row % t->shape[1] * t->stride[1]
        + first % t->shape[2] * t->stride[2];
    if (t->block_scales) gather_blocks(dst, t, at / 32, n / 32);
    else if (t->stride[2] == 1) memcpy(dst, t->data + at * size, n * size);
    else
        for (uint64_t k = 0; k < n; k++) memcpy(dst + k * size, t->data + (at + k * t->stride[2]) * size, size);
}

const uint8_t *pd_tensor_row(const struct pd_tensor *t, uint64_t row, uint8_t *scratch)
{
    uint64_t size = t->size / pd_tensor_n_rows(t);
    if (t->stride[0]) {
        gather(scratch, t, row * t->shape[2], t->shape[2]);
        return scratch;
    }
    if (!t->experts) return t->data + row * size;
    return t->experts[row / t->shape[1]] + row % t->shape[1] * size;
}

enum { GATHERED = 1024 };   /* weights, of 4 bytes at most */

/* Of *n weights from `first` on, those that are in one piece, or are brought into one in scratch: experts are tensors
 * of their own in some files, and lie anywhere in them. */
static const uint8_t *piece_of(const struct pd_tensor *t, uint64_t first, uint64_t *n, uint8_t scratch[4 * GATHERED])
{
    if (t->stride[0]) {
        *n = pd_min(pd_min(*n, t->shape[2] - first % t->shape[2]), GATHERED);
        gather(scratch, t, first, *n);
        return scratch;
    }
    if (!t->experts) return t->data + pd_row_size(t->dtype, first);
    uint64_t each = t->shape[1] * t->shape[2], from = first % each;
    *n = pd_min(*n, each - from);
    return t->experts[first / each] + pd_row_size(t->dtype, from);
}

void pd_tensor_copy(uint8_t *dst, const struct pd_tensor *t, uint64_t first, uint64_t n)
{
    uint8_t scratch[4 * GATHERED];
    for (uint64_t done = 0, here; done < n; done += here) {
        here = n - done;
        const uint8_t *from = piece_of(t, first + done, &here, scratch);
        memcpy(dst + pd_row_size(t->dtype, done), from, pd_row_size(t->dtype, here));
    }
}

void pd_tensor_forget(const struct pd_tensor *t)
{
    if (!t->experts) pd_map_forget(t->data, t->block_scales ? t->size / 17 * 16 : t->size);
    for (uint64_t i = 0; t->experts && i < t->shape[0]; i++) pd_map_forget(t->experts[i], t->size / t->shape[0]);
}

void pd_tensor_dequantize(float *dst, const struct pd_tensor *t, uint64_t first, uint64_t n)
{
    uint8_t scratch[4 * GATHERED];
    for (uint64_t done = 0, here; done < n; done += here) {
        here = n - done;
        const uint8_t *from = piece_of(t, first + done, &here, scratch);
        pd_dequantize(t->dtype, dst + done, from, here);
    }
    uint64_t n_cols = t->n_dims ? t->shape[t->n_dims - 1] : 1;
    for (uint64_t done = 0, here; t->n_scales && done < n; done += here) {
        uint64_t row = (first + done) / n_cols, column = (first + done) % n_cols;
        float scale = pd_tensor_scale(t, row);
        here = pd_min(n_cols - column, n - done);
        for (uint64_t i = 0; i < here; i++) dst[done + i] *= scale;
    }
}

bool pd_tensor_is_unread(const char *name)
{
    static const char *const prefixes[] = {"vision_tower.", "multi_modal_projector.", "model.vision_tower.",
        "model.multi_modal_projector.", "model.visual.", "mtp.",
        "model.vision_adapter.", "model.vision_projection.", "embed_vision.",
        "model.embed_vision.", "vision_embedder.",
        "model.vision_embedder.", "audio_tower.", "embed_audio.", "model.audio_tower.", "model.embed_audio.",
        "masked_embedding.",
        "v.", "mm.", "a."};   /* of GGUF files that have text and towers in one, as Ollama's converter makes them */
    for (size_t i = 0; i < PD_COUNT(prefixes); i++)
        if (!strncmp(name, prefixes[i], strlen(prefixes[i]))) return true;
    return false;
}

bool pd_tensor_find_nonfinite(const struct pd_tensor *t, uint64_t *index)
{
    enum { PIECE = 4096 };   /* whole blocks of every type, and few enough for the stack of any thread */
    float weights[PIECE];
    if (t->dtype == PD_DTYPE_OTHER) return false;
    const struct pd_dtype_info *info = &pd_dtypes[t->dtype];
    uint64_t n = t->size / info->block_size * info->block_len;
    for (uint64_t done = 0; done < n; done += PIECE) {
        uint64_t here = pd_min(PIECE, n - done);
        pd_tensor_dequantize(weights, t, done, here);
        for (uint64_t i = 0; i < here; i++) {
            if (isfinite(weights[i])) continue;
            *index = done + i;
            return true;
        }
    }
    return false;
}

/* ---- arena ---- */

/* Blocks are never moved, as what was taken from them is pointed to, and a thing that is larger than a block gets one
 * of its own size. Sizes come from files: every sum and product is checked before it is made. */
struct pd_arena_block {
    struct pd_arena_block *previous;
    size_t used, size;
    max_align_t data[];
};

static struct pd_arena_block *tensor_add_block(struct pd_arena *a, size_t size)
{
    struct pd_arena_block *b = calloc(1, sizeof *b + size);
    if (!b) return NULL;
    b->size = size;
    b->previous = a->last;
    a->last = b;
    return b;
}

void *pd_arena_alloc(struct pd_arena *a, size_t size)
{
    const size_t align = _Alignof(max_align_t), block_size = 64 * 1024;
    if (size > SIZE_MAX / 2) return NULL;   /* aligned, and with a block's head, it must still be a size */
    size = (size + align - 1) / align * align;
    struct pd_arena_block *b = a->last;
    if (!b || size > b->size - b->used) b = tensor_add_block(a, size > block_size ? size : block_size);
    if (!b) return NULL;
    void *p = (char *)b->data + b->used;
    b->used += size;
    return p;
}

void *pd_arena_array(struct pd_arena *a, size_t n, size_t size)
{
    if (size && n > SIZE_MAX / size) return NULL;
    return pd_arena_alloc(a, n * size);
}

char *pd_arena_string(struct pd_arena *a, const void *data, size_t size)
{
    char *copy = size < SIZE_MAX ? pd_arena_alloc(a, size + 1) : NULL;
    if (copy && size) memcpy(copy, data, size);
    return copy;
}

void pd_arena_free(struct pd_arena *a)
{
    while (a->last) {
        struct pd_arena_block *b = a->last;
        a->last = b->previous;
        free(b);
    }
}

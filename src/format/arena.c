#include "format/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct pd_arena_block {
    struct pd_arena_block *previous;
    size_t used, size;
    max_align_t data[];
};

static struct pd_arena_block *add_block(struct pd_arena *a, size_t size)
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
    if (size > SIZE_MAX / 2) return NULL;
    size = (size + align - 1) / align * align;
    struct pd_arena_block *b = a->last;
    if (!b || size > b->size - b->used) b = add_block(a, size > block_size ? size : block_size);
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

/* Memory with one lifetime: many small pieces, freed together. What a parsed file keeps (names, arrays) lives in
 * one. */
#ifndef PD_FORMAT_ARENA_H
#define PD_FORMAT_ARENA_H

#include <stddef.h>

struct pd_arena_block;

/* Zero-initialise ({0}). */
struct pd_arena {
    struct pd_arena_block *last;
};

/* size bytes, zeroed, aligned for any type; NULL when out of memory. size may be 0. */
void *pd_arena_alloc(struct pd_arena *a, size_t size);
/* n things of `size` bytes; NULL also when the product overflows. */
void *pd_arena_array(struct pd_arena *a, size_t n, size_t size);
/* A NUL-terminated copy of `size` bytes. */
char *pd_arena_string(struct pd_arena *a, const void *data, size_t size);
void pd_arena_free(struct pd_arena *a);

#endif

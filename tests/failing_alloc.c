#include "failing_alloc.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

static atomic_size_t n_allocations, failing;

void failing_alloc_begin(size_t at)
{
    n_allocations = 0;
    failing = at;
}

size_t failing_alloc_end(void)
{
    failing = 0;
    return n_allocations;
}

static int fails(void) { return atomic_fetch_add(&n_allocations, 1) + 1 == failing; }

void *__wrap_malloc(size_t size) { return fails() ? NULL : __real_malloc(size); }
void *__wrap_calloc(size_t n, size_t size) { return fails() ? NULL : __real_calloc(n, size); }
void *__wrap_realloc(void *p, size_t size) { return fails() ? NULL : __real_realloc(p, size); }

/* ---- for the command: what fails is said by FAIL_ALLOCATION, the number is written to the file COUNT_ALLOCATIONS
 * ---- */

static void write_count(void)
{
    FILE *file = fopen(getenv("COUNT_ALLOCATIONS"), "w");
    if (!file) return;
    fprintf(file, "%zu\n", (size_t)n_allocations);
    fclose(file);
}

__attribute__((constructor)) static void read_environment(void)
{
    const char *at = getenv("FAIL_ALLOCATION");
    if (at) failing = strtoul(at, NULL, 10);
    if (getenv("COUNT_ALLOCATIONS")) atexit(write_count);
}

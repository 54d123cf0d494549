/* Allocations that fail. A program with failing_alloc.c is linked so that malloc, calloc and realloc of the library and
 * of the command are those here (the linker's --wrap); what other libraries allocate is left alone. */
#ifndef FAILING_ALLOC_H
#define FAILING_ALLOC_H

#include <stddef.h>

/* Begins to count, and lets allocation number `at` (from 1 on; 0: none) of those to come fail. */
void failing_alloc_begin(size_t at);
/* The number of allocations since, the failed one included; none fails any more. */
size_t failing_alloc_end(void);

#endif

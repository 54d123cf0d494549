/* Work spread over the processors: independent pieces, one call each. */
#ifndef PD_BASE_PARALLEL_H
#define PD_BASE_PARALLEL_H

#include <stddef.h>

/* call(user, i) for every i in 0 .. n-1, in any order and at the same time; returns when all are done. The calls must
 * not fail: sentences are kept per thread, so theirs would be lost. */
void pd_parallel(size_t n, void (*call)(void *user, size_t i), void *user);

#endif

/* Arrays that grow. */
#ifndef PD_BASE_ARRAY_H
#define PD_BASE_ARRAY_H

#include "base/status.h"

/* Makes room for `more` elements after the first n. `array` is the address of the pointer to them (NULL at first).
 * Grows by half, so that appending costs constant time on average. On failure all is as before; `what` is for the
 * sentence. */
peridot_status pd_array_reserve(void *array, size_t *capacity, size_t n, size_t more, size_t element_size,
                                const char *what);

#endif

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

peridot_status pd_array_reserve(void *array, size_t *capacity, size_t n, size_t more, size_t element_size,
                                const char *what)
{
    void *data;
    if (more <= *capacity - n) return PERIDOT_OK;
    size_t limit = SIZE_MAX / 2 / element_size;
    if (more > limit - n) return pd_fail_alloc(SIZE_MAX, what);
    size_t want = n + more;
    if (want < *capacity + *capacity / 2) want = *capacity + *capacity / 2;
    if (want < 64) want = 64;
    memcpy(&data, array, sizeof data);   /* a pointer of any type */
    data = realloc(data, want * element_size);
    if (!data) return pd_fail_alloc(want * element_size, what);
    memcpy(array, &data, sizeof data);
    *capacity = want;
    return PERIDOT_OK;
}

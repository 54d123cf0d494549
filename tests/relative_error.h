/* How far two vectors are apart: the length of their difference to that of b. */
#ifndef RELATIVE_ERROR_H
#define RELATIVE_ERROR_H

#include <math.h>
#include <stddef.h>

static inline double relative_error(const float *a, const float *b, size_t n)
{
    double difference = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        difference += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        size += (double)b[i] * (double)b[i];
    }
    return sqrt(difference / (size + 1e-30));
}

#endif

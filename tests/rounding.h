/* What kernel variants round. */
#ifndef ROUNDING_H
#define ROUNDING_H

#include <stdbool.h>
#include <string.h>

/* Whether a kernel that is forced ("matmul=half"; NULL or "": none) rounds what it multiplies to fp16, or to 8 bits.
 * matmul=dot is one: in its place half multiplies plain numbers. */
static inline bool rounds_to_fp16(const char *kernel)
{
    return kernel && (strstr(kernel, "=coop") || strstr(kernel, "=half") || strstr(kernel, "matmul=dot"));
}

#endif

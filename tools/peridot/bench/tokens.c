/* The tokens that are measured. */
#include "bench.h"

#include <stdlib.h>

peridot_status bench_make_tokens(int32_t **out, size_t n, uint32_t vocab_size)
{
    uint64_t x = 1;
    *out = malloc(n * sizeof **out);
    if (!*out) return cmd_fail_alloc(n * sizeof **out, "tokens");
    for (size_t i = 0; i < n; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        (*out)[i] = (int32_t)((x >> 33) % vocab_size);
    }
    return PERIDOT_OK;
}

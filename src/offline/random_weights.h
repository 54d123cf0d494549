/* Random weights, written directly as blocks of their type, at the speed of memory: 2 GB should cost a second or
 * two. */
#ifndef PD_OFFLINE_RANDOM_WEIGHTS_H
#define PD_OFFLINE_RANDOM_WEIGHTS_H

#include "base/random.h"
#include "format/dtype.h"

enum { PD_RANDOM_TABLE = 4096 };

/* What a tensor's weights are drawn from: uniform, mean 0. */
struct pd_random_weights {
    struct pd_random random;
    enum pd_dtype dtype;
    float half_width;
    uint16_t table[PD_RANDOM_TABLE];   /* weights as f16 or bf16, or f16 scales of blocks */
};

void pd_random_weights_init(struct pd_random_weights *w, enum pd_dtype dtype, float standard_deviation, uint64_t seed,
                            uint64_t stream);
/* The next n blocks. */
void pd_random_weights_fill(struct pd_random_weights *w, uint8_t *dst, uint64_t n);

#endif

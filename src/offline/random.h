/* Random weights, written directly as blocks of their type, at the speed of memory: 2 GB should cost a second or two. */
#ifndef PD_OFFLINE_RANDOM_H
#define PD_OFFLINE_RANDOM_H

#include "format/dtype.h"

/* xoshiro256++ (Blackman and Vigna, https://prng.di.unimi.it). */
struct pd_random {
    uint64_t s[4];
};

/* Streams of one seed differ and are unrelated. */
void pd_random_seed(struct pd_random *r, uint64_t seed, uint64_t stream);
uint64_t pd_random_next(struct pd_random *r);
/* -1 .. 1 */
float pd_random_uniform(struct pd_random *r);

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

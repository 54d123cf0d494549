/* Random numbers, the same on every machine. */
#ifndef PD_BASE_RANDOM_H
#define PD_BASE_RANDOM_H

#include <stdint.h>

/* splitmix64 (Steele, Lea, Flood 2014): number i of the sequence of a seed is
 * pd_splitmix(seed + i * PD_SPLITMIX_STEP), i >= 1. */
#define PD_SPLITMIX_STEP 0x9e3779b97f4a7c15u
uint64_t pd_splitmix(uint64_t state);

/* xoshiro256++ (Blackman and Vigna, https://prng.di.unimi.it). */
struct pd_random {
    uint64_t s[4];
};

/* Streams of one seed differ and are unrelated. */
void pd_random_seed(struct pd_random *r, uint64_t seed, uint64_t stream);
/* Inline: random weights are made at the speed of memory. */
static inline uint64_t pd_random_next(struct pd_random *r)
{
    uint64_t *s = r->s, sum = s[0] + s[3], result = (sum << 23 | sum >> 41) + s[0], t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = s[3] << 45 | s[3] >> 19;
    return result;
}

/* -1 .. 1 */
float pd_random_uniform(struct pd_random *r);

#endif

#include "base/random.h"

uint64_t pd_splitmix(uint64_t state)
{
    state = (state ^ state >> 30) * 0xbf58476d1ce4e5b9u;
    state = (state ^ state >> 27) * 0x94d049bb133111ebu;
    return state ^ state >> 31;
}

void pd_random_seed(struct pd_random *r, uint64_t seed, uint64_t stream)
{
    uint64_t key = pd_splitmix(seed + PD_SPLITMIX_STEP) ^ stream;
    for (int i = 0; i < 4; i++) r->s[i] = pd_splitmix(key += PD_SPLITMIX_STEP);
}

float pd_random_uniform(struct pd_random *r) { return (float)((double)(pd_random_next(r) >> 11) * 0x1p-52 - 1); }

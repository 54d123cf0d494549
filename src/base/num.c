/* Numbers: checked arithmetic for sizes that come from files, rounding, and the 16-bit float formats. */
#include "base/base.h"

#include <math.h>

uint64_t pd_hash(uint64_t before, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    uint64_t hash = before ? before : 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

/* IEEE 754 binary16: 1 sign, 5 exponent (bias 15), 10 fraction bits. */
float pd_f32_from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 1023;
    if (exponent == 0) {
        float f = ldexpf((float)fraction, -24);
        return sign ? -f : f;
    }
    if (exponent == 31) return pd_f32_from_bits(sign | 0x7f800000u | fraction << 13);
    return pd_f32_from_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

uint16_t pd_f16_from_f32(float f)
{
    uint32_t u = pd_f32_bits(f), sign = u >> 16 & 0x8000, magnitude = u & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00);
    if (magnitude >= 0x477ff000u) return (uint16_t)(sign | 0x7c00);   /* 65520 and up round to infinity */
    if (magnitude < 0x38800000u)                                      /* below 2^-14: subnormal, unit 2^-24 */
        return (uint16_t)(sign | (uint32_t)lrintf(ldexpf(pd_f32_from_bits(magnitude), 24)));
    uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    return (uint16_t)(sign | (rounded - 0x38000000u) >> 13);
}

/* ---- random ---- */

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

/* Numbers: checked arithmetic for sizes that come from files, rounding, and the 16-bit float formats. */
#ifndef PD_BASE_NUM_H
#define PD_BASE_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PD_COUNT(array) (sizeof(array) / sizeof(array)[0])

static inline uint64_t pd_min(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t pd_max(uint64_t a, uint64_t b) { return a > b ? a : b; }
static inline uint64_t pd_div_up(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }
/* align is any positive number; the sum must not overflow (sizes here are below 2^63). */
static inline uint64_t pd_align(uint64_t a, uint64_t align) { return pd_div_up(a, align) * align; }

/* False, with *out untouched, when the result does not fit. */
static inline bool pd_mul(uint64_t *out, uint64_t a, uint64_t b)
{
    if (b != 0 && a > UINT64_MAX / b) return false;
    *out = a * b;
    return true;
}

static inline bool pd_add(uint64_t *out, uint64_t a, uint64_t b)
{
    if (a > UINT64_MAX - b) return false;
    *out = a + b;
    return true;
}

static inline float pd_f32_from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline uint32_t pd_f32_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float pd_f32_from_bf16(uint16_t h) { return pd_f32_from_bits((uint32_t)h << 16); }

/* Round to nearest, ties to even; NaN stays NaN. */
static inline uint16_t pd_bf16_from_f32(float f)
{
    uint32_t u = pd_f32_bits(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/* FNV-1a: begins with 0, goes on with what came before. */
uint64_t pd_hash(uint64_t before, const void *data, size_t size);

float pd_f32_from_f16(uint16_t h);
uint16_t pd_f16_from_f32(float f);   /* round to nearest, ties to even */

#endif

/* The arithmetic of drawing a token, one text for C and GLSL: whole numbers, and of floats only what every device
 * rounds alike, so that the host and each GPU draw the same token from the same logits. */
#ifndef PD_DRAW_H
#define PD_DRAW_H

#ifdef PD_GLSL
#define uint32_t uint
#define PD_FUNCTION
#define PD_WHOLE(x) uint(x)
#else
#include <stdint.h>
#define PD_FUNCTION static inline
#define PD_WHOLE(x) (uint32_t)(x)
#endif

/* a b / 2^32 */
PD_FUNCTION uint32_t pd_high(uint32_t a, uint32_t b)
{
#ifdef PD_GLSL
    uint high, low;
    umulExtended(a, b, high, low);
    return high;
#else
    return (uint32_t)((uint64_t)a * b >> 32);
#endif
}

/* 2^31 2^-x for 0 <= x < 1, within 6: the polynomial of degree 6 that is exact at both ends and closest between. */
PD_FUNCTION uint32_t pd_pow2(float x)
{
    uint32_t f = PD_WHOLE(x * 4294967296.0f), sum = 235067u;
    sum = 2740586u - pd_high(sum, f);
    sum = 20574878u - pd_high(sum, f);
    sum = 119167556u - pd_high(sum, f);
    sum = 515878398u - pd_high(sum, f);
    sum = 1488522025u - pd_high(sum, f);
    return 2147483648u - pd_high(sum, f);
}

#ifdef PD_GLSL
#undef uint32_t
#endif
#endif

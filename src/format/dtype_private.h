/* Private to dtype*.c: what the table in dtype.c lists, and the reading and writing of bytes. The block coders follow
 * ggml's reference (ggml-quants.c: dequantize_row_*, quantize_row_*_ref) operation by operation, because files made
 * here and elsewhere should be equal. Each product is its own statement where its rounding counts, so that no compiler
 * fuses it with the addition after it. In all of them n counts blocks. */
#ifndef PD_FORMAT_DTYPE_PRIVATE_H
#define PD_FORMAT_DTYPE_PRIVATE_H

#include "base/num.h"

static inline uint16_t pd_load_u16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }
static inline uint32_t pd_load_u32(const uint8_t *p) { return pd_load_u16(p) | (uint32_t)pd_load_u16(p + 2) << 16; }
static inline float pd_load_f16(const uint8_t *p) { return pd_f32_from_f16(pd_load_u16(p)); }

static inline void pd_store_u16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

static inline void pd_store_f16(uint8_t *p, float f) { pd_store_u16(p, pd_f16_from_f32(f)); }

/* A float to an integer in low..high; NaN, which only infinite or NaN weights lead to, gives 0. */
static inline int pd_clamp_to_int(float x, int low, int high)
{
    if (x != x) return 0;
    if (x < (float)low) return low;
    return x > (float)high ? high : (int)x;
}

/* dtype_block32.c: blocks of 32 */
void pd_q8_0_decode(float *dst, const uint8_t *src, uint64_t n);
void pd_q8_0_encode(uint8_t *dst, const float *src, uint64_t n);
void pd_q4_0_decode(float *dst, const uint8_t *src, uint64_t n);
void pd_q4_0_encode(uint8_t *dst, const float *src, uint64_t n);
void pd_q4_1_decode(float *dst, const uint8_t *src, uint64_t n);
void pd_q4_1_encode(uint8_t *dst, const float *src, uint64_t n);
void pd_q5_0_decode(float *dst, const uint8_t *src, uint64_t n);
void pd_q5_0_encode(uint8_t *dst, const float *src, uint64_t n);
void pd_q5_1_decode(float *dst, const uint8_t *src, uint64_t n);
void pd_q5_1_encode(uint8_t *dst, const float *src, uint64_t n);

/* dtype_k.c: blocks of 256 with scales of their own for every 16 or 32 weights */
void pd_q2_k_decode(float *dst, const uint8_t *src, uint64_t n);
void pd_q3_k_decode(float *dst, const uint8_t *src, uint64_t n);
void pd_q4_k_decode(float *dst, const uint8_t *src, uint64_t n);
void pd_q5_k_decode(float *dst, const uint8_t *src, uint64_t n);
void pd_q6_k_decode(float *dst, const uint8_t *src, uint64_t n);
/* dtype_k_encode.c; importance: see pd_quantize_by, or NULL */
void pd_q4_k_encode(uint8_t *dst, const float *src, const float *importance, uint64_t n);
void pd_q5_k_encode(uint8_t *dst, const float *src, const float *importance, uint64_t n);
void pd_q6_k_encode(uint8_t *dst, const float *src, const float *importance, uint64_t n);

/* dtype_iq4.c: quants that are places in a table of unevenly spaced values */
void pd_iq4_nl_decode(float *dst, const uint8_t *src, uint64_t n);
void pd_iq4_xs_decode(float *dst, const uint8_t *src, uint64_t n);

/* dtype_iq.c: quants that are entries of codebooks */
void pd_iq1_s_decode(float *dst, const uint8_t *src, uint64_t n);
void pd_iq1_m_decode(float *dst, const uint8_t *src, uint64_t n);
void pd_iq2_xxs_decode(float *dst, const uint8_t *src, uint64_t n);
void pd_iq2_xs_decode(float *dst, const uint8_t *src, uint64_t n);
void pd_iq2_s_decode(float *dst, const uint8_t *src, uint64_t n);
void pd_iq3_xxs_decode(float *dst, const uint8_t *src, uint64_t n);
void pd_iq3_s_decode(float *dst, const uint8_t *src, uint64_t n);

/* dtype_fp4.c: floats of four bits */
void pd_mxfp4_decode(float *dst, const uint8_t *src, uint64_t n);
void pd_nvfp4_decode(float *dst, const uint8_t *src, uint64_t n);

/* dtype_tq.c: -1, 0 or 1 */
void pd_tq1_0_decode(float *dst, const uint8_t *src, uint64_t n);
void pd_tq2_0_decode(float *dst, const uint8_t *src, uint64_t n);
void pd_q1_0_decode(float *dst, const uint8_t *src, uint64_t n);
void pd_q2_0_decode(float *dst, const uint8_t *src, uint64_t n);

#endif

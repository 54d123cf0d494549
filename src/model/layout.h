/* How rows of weights lie on the device (shaders/weights.glsl says the same to kernels): sections of low bits, high bits,
 * block scales and superblock scales. Re-laying changes no number: a weight on the device is the weight in the file. */
#ifndef PD_MODEL_LAYOUT_H
#define PD_MODEL_LAYOUT_H

#include "format/dtype.h"

/* Bytes of a row of n weights on the device, a multiple of 16. n must be a multiple of the type's block_len. */
uint32_t pd_device_row_size(enum pd_dtype dtype, uint32_t n);
/* Re-lays one row of n weights; the end is padded with zeros. */
void pd_device_row(enum pd_dtype dtype, uint8_t *dst, const uint8_t *src, uint32_t n);

#endif

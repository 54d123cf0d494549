/* How rows of weights lie on the device (shaders/weights.glsl says the same to kernels): sections of low bits, high
 * bits, block scales and superblock scales. Rows of blocks lie one after the other, or interleaved in groups of rows,
 * 16 bytes of each in turn. Re-laying changes no number: a weight on the device is the weight in the file. */
#ifndef PD_OPS_LAYOUT_H
#define PD_OPS_LAYOUT_H

#include "format/dtype.h"

/* The type whose kernels read rows of this one: another's, where they lie as its rows do. */
enum pd_dtype pd_device_dtype(enum pd_dtype dtype);
/* Bytes of a row of n weights on the device, a multiple of 16. n must be a multiple of the type's block_len. */
uint32_t pd_device_row_size(enum pd_dtype dtype, uint32_t n);
/* Rows of a group: 8 where lanes of a CPU have rows of their own (matvec_rows), which it then reads in order; else
 * 1. */
uint32_t pd_device_row_interleave(enum pd_dtype dtype, bool lanes_take_rows);
/* Bytes of a matrix of n_rows such rows: whole groups. */
uint64_t pd_device_rows_size(uint32_t row_size, uint32_t n_rows, uint32_t row_interleave);
/* Rows of a matrix. */
struct pd_row_layout {
    enum pd_dtype dtype;
    uint32_t n, row_interleave;   /* weights of a row; rows of a group */
};
/* Re-lays a row of a file as row i of the matrix at dst; its end is padded with zeros. scale: what all its weights are
 * multiplied by, where the type has room for that (NVFP4). scratch: [pd_device_row_size]. */
void pd_device_put_row(const struct pd_row_layout *layout, uint8_t *dst, uint32_t i, const uint8_t *src,
                       float scale, uint8_t *scratch);

#endif

/* Private to layout*.c: what the device's sections take of a block of a file. */
#ifndef PD_OPS_LAYOUT_BLOCKS_H
#define PD_OPS_LAYOUT_BLOCKS_H

#include "format/dtype.h"

/* A block of a file (32 to 256 weights) on its way to the device. */
struct pd_block {
    uint8_t q[256];   /* a quant per weight, of types that are not coded */
    uint8_t *low, *high, *scale, *super;   /* where its bytes belong in the sections */
};

struct pd_block_layout {
    uint8_t low, high, scale, super;   /* bytes: of 32 weights, and of 256 */
    /* Writes scale, q or, of coded types, low and high, and super where it is not in the file as it is. NULL: for rows
     * that are no such blocks. */
    void (*take)(struct pd_block *b, const uint8_t *src);
    bool coded;                        /* low and high are not made of quants */
    bool pairs;                        /* nibbles of a byte are neighbours, as they are looked up together */
    uint8_t super_at;                  /* of a block in a file */
    uint8_t shared;                    /* blocks of 32 that have one `scale` together; 0: each has its own */
    uint8_t row_scale;                 /* bytes of a scale of the row, at its end */
    enum pd_dtype same_as;             /* the type whose kernels read these rows; 0: its own */
};

extern const struct pd_block_layout pd_block_layouts[PD_N_DTYPES];

/* Writes all bytes of a block of a type that has `take`. */
void pd_block_put(enum pd_dtype dtype, struct pd_block *b, const uint8_t *src);

#endif

/* Matrices on the device, as operations read them: rows of blocks, in slices. How a row lies there is layout.h's. */
#ifndef PD_OPS_MATRIX_H
#define PD_OPS_MATRIX_H

#include "format/dtype.h"
#include "gpu/gpu.h"

/* Contiguous rows of one type. A matrix has several where types are mixed or an allocation would be too
 * large. */
struct pd_slice {
    uint64_t address;
    enum pd_dtype dtype;
    uint32_t first_row, n_rows, row_size;
    uint32_t row_interleave;       /* rows of a group: see layout.h; 0 is 1 */
};

struct pd_matrix {
    uint32_t n_rows, n_cols, n_slices;
    struct pd_slice *slices;
};

/* What multiplies rows: y[m] = softcap(w x[m] + bias), and with adapters y[m] = w x[m] + bias + what they add. */
struct pd_linear {
    struct pd_matrix w;            /* [n_rows][n_cols] */
    uint64_t bias;                 /* [n_rows] fp32 on the device; 0: none */
    float softcap;                 /* of what comes out; 0: none */
    bool exact;                    /* fp32, whatever the device does faster */
    uint64_t squares;              /* [n_cols] fp32, to which the squares of what it multiplies are added; 0: nowhere */
    uint32_t n_experts;            /* 0: one; else the rows are of so many matrices, one after the other */
    const struct pd_lora *lora;    /* NULL: no adapter adds anything; else there is no softcap */
};

/* What low-rank adapters add to rows of a matrix: of each adapter scale[m] B (A x[m]), the scales being those of the
 * row. The matrices A of all of them are one, below each other. */
struct pd_lora {
    struct pd_linear a;            /* [sum of ranks][n_cols] */
    uint64_t b;                    /* fp32: of each part [rank][n_rows], B turned over */
    uint64_t parts;                /* [n_parts] struct pd_lora_part */
    uint32_t n_parts;
};

/* A matrix that is looked up by row: all of one type, every slice but the last of rows_per_slice rows. */
struct pd_table {
    const struct pd_matrix *matrix;
    struct pd_span addresses;      /* [n_slices] 64-bit device addresses */
    uint32_t rows_per_slice;
};

#endif

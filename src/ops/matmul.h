/* Matrices by many tokens: the tile that a variant of matmul takes, and what it packs activations into. */
#ifndef PD_OPS_MATMUL_H
#define PD_OPS_MATMUL_H

#include "ops/ops.h"

/* What a matmul kernel multiplies: rows of a matrix by all tokens, or matrices of experts each by its own. */
struct pd_product {
    const struct pd_slice *slice;
    struct pd_matmul_push push;
    uint32_t n_slots;              /* of experts; 1 where there are none */
    uint32_t n_each;               /* tokens of a slot, on average */
};

/* Records the product by a variant that makes tiles: any but PD_VARIANT_MATMUL_MATVEC. */
void pd_matmul_tiles(struct pd_recorder *r, enum pd_variant variant, const struct pd_product *product);
/* Packs n_tokens rows of x for the kernels that read what `pack` writes; ends with a barrier. */
struct pd_rows pd_matmul_pack(struct pd_recorder *r, enum pd_kernel_id pack, struct pd_rows x, uint32_t n_cols,
                              uint32_t n_tokens);

#endif

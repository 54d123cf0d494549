/* What the files of this folder have among themselves. */
#ifndef PD_OPS_OPS_PRIVATE_H
#define PD_OPS_OPS_PRIVATE_H

#include "base/base.h"
#include "format/format.h"
#include "ops/ops.h"

#include <string.h>

/* ---- layout blocks ---- */

/* Private to layout*.c: what the device's sections take of a block of a file. */

/* A block of a file (32 to 256 weights) on its way to the device. */
struct pd_block {
    uint8_t q[256];   /* a quant per weight, of types that are not coded */
    uint8_t *low, *high, *scale, *super;   /* where its bytes belong in the sections */
};

/* What rows of a type are on the device: its row of types.def. */
struct pd_block_layout {
    /* Writes scale, q or, of types of a codebook, low and high, and super where it is not in the file as it is. NULL:
     * for rows that are no such blocks. */
    void (*take)(struct pd_block *b, const uint8_t *src);
    enum pd_form {
        PD_FORM_floats, PD_FORM_bytes, PD_FORM_bits,
        PD_FORM_values,                /* nibbles of a byte are neighbours, as they are looked up together */
        PD_FORM_codes,                 /* low and high are not made of quants */
        PD_FORM_other
    } form;
    enum pd_dtype device;              /* the type whose kernels read these rows */
    uint8_t low, high, scale, super;   /* bytes: of 32 weights, and of 256 */
    uint8_t parts, centre;             /* which are the kernels' */
    uint8_t shared;                    /* blocks of 32 that have one `scale` together */
    uint8_t row_scale;                 /* bytes of a scale of the row, at its end */
};

extern const struct pd_block_layout pd_block_layouts[PD_N_DTYPES];

/* Writes all bytes of a block of a type that has `take`. */
void pd_block_put(enum pd_dtype dtype, struct pd_block *b, const uint8_t *src);

/* ---- record ---- */

/* What the files of operations record with: kernels, dispatches, barriers, pieces, and the variant that is taken. */

static inline const struct pd_kernel *kernel(struct pd_recorder *r, enum pd_kernel_id id, const uint32_t *spec,
                                             uint32_t n_spec)
{
    const struct pd_kernel *k = NULL;
    if (r->status == PERIDOT_OK) r->status = pd_kernel_get(&k, r->gpu, id, spec, n_spec);
    return r->status == PERIDOT_OK ? k : NULL;
}

/* Of a kernel that reads a slice of weights; bias, experts: addresses, or 0. */
static inline const struct pd_kernel *kernel_of(struct pd_recorder *r, enum pd_kernel_id id,
                                                const struct pd_slice *slice, uint64_t bias, uint64_t experts,
                                                const uint32_t *spec, uint32_t n_spec)
{
    uint32_t all[PD_MAX_SPEC] = {0}, n_rows = (uint32_t)pd_max(slice->row_interleave, 1);
    if (n_spec) memcpy(all, spec, n_spec * sizeof *spec);
    all[PD_ROW_INTERLEAVE_ID] = n_rows;
    all[PD_BIAS_ID] = bias != 0;
    all[PD_EXPERTS_ID] = experts != 0;
    uint32_t n = experts ? PD_EXPERTS_ID + 1 : bias ? PD_BIAS_ID + 1 : n_rows > 1 ? PD_ROW_INTERLEAVE_ID + 1 : 0;
    return kernel(r, id, all, (uint32_t)pd_max(n_spec, n));
}

static inline void dispatch(struct pd_recorder *r, const struct pd_kernel *k, const void *push, uint32_t x, uint32_t y,
                            uint32_t z)
{
    if (k && r->commands) pd_dispatch(r->commands, k, push, x, y, z);
}

static inline void barrier(struct pd_recorder *r)
{
    if (r->commands) pd_barrier(r->commands);
}

/* ---- pieces ---- */

#define PART_ROWS 32   /* fewer tokens at once would read the weights too often */

/* Into how many parts the n tokens of an operation go, of so much work each, for none to be much more than a piece.
 * They have whole units of tokens. */
static inline uint32_t count_parts(const struct pd_recorder *r, uint32_t n, uint64_t work, uint32_t unit)
{
    if (!r->piece_work) return 1;
    return (uint32_t)pd_max(pd_min(pd_div_up(n * work, r->piece_work), n / unit), 1);
}

static inline uint32_t part_begin(uint32_t n, uint32_t n_parts, uint32_t i, uint32_t unit)
{
    return i == n_parts ? n : (uint32_t)((uint64_t)(n / unit) * i / n_parts) * unit;
}

static inline void end_part(struct pd_recorder *r, uint64_t work)
{
    r->work += work;
    r->most_work = pd_max(r->most_work, r->work);
    if (!r->commands || !r->piece_work || r->work < r->piece_work) return;
    pd_commands_cut(r->commands);
    r->work = 0;
}

/* The forced variant where it has a kernel for the type, or the first working one. */
static inline enum pd_variant choose_variant(const struct pd_recorder *r, enum pd_varied operation, enum pd_variant v,
                                             uint32_t type)
{
    bool named = r->variants.forced[operation] && pd_variant_for_type(v, type) == v;
    return named ? v : pd_variant_working(r->gpu, v, type);
}

static inline uint32_t subgroup_size(const struct pd_recorder *r) { return pd_gpu_info(r->gpu)->subgroup_size; }

/* ---- matmul ---- */

/* What a matmul kernel multiplies: rows of a matrix by all tokens, or matrices of experts each by its own. */
struct pd_product {
    const struct pd_slice *slice;
    struct pd_matmul_push push;
    uint32_t n_slots;              /* of experts; 1 where there are none */
    uint32_t n_each;               /* tokens of a slot, on average */
};

enum { INTEL = 0x8086, NVIDIA = 0x10de };   /* vendor_id */

/* Records the product by a variant that makes tiles: any but PD_VARIANT_MATMUL_MATVEC. */
void pd_matmul_tiles(struct pd_recorder *r, enum pd_variant variant, const struct pd_product *product);
/* Packs n_tokens rows of x for the kernels that read what `pack` writes; ends with a barrier. */
struct pd_rows pd_matmul_pack(struct pd_recorder *r, enum pd_kernel_id pack, struct pd_rows x, uint32_t n_cols,
                              uint32_t n_tokens);

#endif

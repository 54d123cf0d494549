#include "ops/matmul.h"

#include "base/num.h"
#include "ops/kernels.h"
#include "ops/record.h"

static void dispatch_tiles(struct pd_recorder *r, const struct pd_product *p, const struct pd_kernel *k,
                           uint32_t tile_rows, uint32_t tile_tokens)
{
    dispatch(r, k, &p->push, (uint32_t)pd_div_up(p->push.n_rows, tile_rows),
             (uint32_t)pd_div_up(p->push.n_tokens, tile_tokens), p->n_slots);
}

static const struct pd_kernel *tile_kernel(struct pd_recorder *r, const struct pd_product *p, enum pd_kernel_kind kind,
                                           const uint32_t *spec, uint32_t n_spec)
{
    return kernel_of(r, pd_kernel_of(kind, p->slice->dtype), p->slice, p->push.bias, p->push.experts, spec, n_spec);
}

/* Tiles of 32 tokens where 64 would be half empty, or take more shared memory than there is. */
static void matmul_tile(struct pd_recorder *r, const struct pd_product *p, enum pd_kernel_kind kind)
{
    bool small = p->n_each <= 32 || pd_gpu_info(r->gpu)->max_shared_size < 20 * 1024;
    uint32_t spec[] = {128, small ? 32 : 64};
    dispatch_tiles(r, p, tile_kernel(r, p, kind, spec, PD_COUNT(spec)), PD_MATMUL_ROWS, spec[1]);
}

static void matmul_fp32(struct pd_recorder *r, const struct pd_product *p) { matmul_tile(r, p, PD_KERNELS_matmul); }
static void matmul_half(struct pd_recorder *r, const struct pd_product *p)
{
    matmul_tile(r, p, PD_KERNELS_matmul_half);
}

/* Tiles of 32 tokens where 64 would be half empty. */
static void dot_tiles(struct pd_recorder *r, const struct pd_product *p, enum pd_kernel_kind kind)
{
    uint32_t spec[] = {128, p->n_each <= 32 ? 32 : 64};
    dispatch_tiles(r, p, tile_kernel(r, p, kind, spec, PD_COUNT(spec)), PD_DOT_ROWS, spec[1]);
}

static void matmul_dot(struct pd_recorder *r, const struct pd_product *p) { dot_tiles(r, p, PD_KERNELS_matmul_dot); }
static void matmul_dot8(struct pd_recorder *r, const struct pd_product *p) { dot_tiles(r, p, PD_KERNELS_matmul_dot8); }

/* Tiles of 128 by 128 need fewer reads. Where they would be too few, or registers or shared memory are short, tiles of
 * 64 by 64; for experts with few tokens each, 64 by 32. The subgroups of a workgroup share a tile in parts as square as
 * can be. */
static void matmul_coop(struct pd_recorder *r, const struct pd_product *p)
{
    const peridot_device_info *d = pd_gpu_info(r->gpu);
    bool of_experts = p->push.experts != 0;
    uint32_t subgroup = d->matrix_subgroup_size, n_down = 1;
    bool large = !of_experts && p->push.n_rows >= 8192 && d->max_shared_size >= 48 * 1024 && subgroup >= 32;
    uint32_t rows = large ? 128 : 64, tokens = of_experts && p->n_each <= 32 ? 32 : rows;
    uint32_t n_parts = (uint32_t)pd_max(2 * rows / subgroup, 1);   /* of a square tile */
    while (4 * n_down * n_down <= n_parts) n_down *= 2;
    uint32_t part_rows = rows / n_down, part_tokens = (uint32_t)pd_min(rows / (n_parts / n_down), tokens);
    uint32_t spec[] = {rows / part_rows * (tokens / part_tokens) * subgroup, subgroup, rows, tokens, 32, part_rows,
        part_tokens, d->matrix_m, d->matrix_n, d->matrix_k};
    dispatch_tiles(r, p, tile_kernel(r, p, PD_KERNELS_matmul_coop, spec, PD_COUNT(spec)), rows, tokens);
}

void pd_matmul_tiles(struct pd_recorder *r, enum pd_variant variant, const struct pd_product *p)
{
    static void (*const record[])(struct pd_recorder *, const struct pd_product *) = {
        [PD_VARIANT_MATMUL_COOP] = matmul_coop, [PD_VARIANT_MATMUL_DOT8] = matmul_dot8,
        [PD_VARIANT_MATMUL_DOT] = matmul_dot, [PD_VARIANT_MATMUL_HALF] = matmul_half,
        [PD_VARIANT_MATMUL_TILE] = matmul_fp32};
    record[variant](r, p);
}

uint32_t pd_packed_stride(enum pd_kernel_id pack, uint32_t n_cols)
{
    if (pack == PD_KERNEL_pack_q16) return (uint32_t)pd_div_up(n_cols, 32) * PD_DOT_BLOCK(2);
    if (pack == PD_KERNEL_pack_q8) return (uint32_t)pd_div_up(n_cols, 32) * PD_DOT_BLOCK(1);
    return (uint32_t)pd_align(n_cols, PD_PACK_PAD) / 2 + PD_PACK_TAIL;
}

uint32_t pd_packed_most(uint32_t n_cols)
{
    return (uint32_t)pd_max(pd_packed_stride(PD_KERNEL_pack_f16, n_cols), pd_packed_stride(PD_KERNEL_pack_q16, n_cols));
}

struct pd_rows pd_matmul_pack(struct pd_recorder *r, enum pd_kernel_id id, struct pd_rows x, uint32_t n_cols,
                              uint32_t n_tokens)
{
    struct pd_rows packed = {r->packed, pd_packed_stride(id, n_cols)};
    struct pd_pack_push push = {.x = x.address, .packed = packed.address, .n_cols = n_cols, .x_stride = x.stride,
        .packed_stride = packed.stride};
    dispatch(r, kernel(r, id, NULL, 0), &push, n_tokens, 1, 1);
    barrier(r);
    return packed;
}

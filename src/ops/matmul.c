#include "ops/matmul.h"

#include "base/num.h"
#include "ops/record.h"

/* A tile, and the constants of the kernel that makes such tiles. */
struct tiling {
    uint32_t rows, tokens, n_spec, spec[10];
};

/* Tiles of 32 tokens where 64 would be half empty, or take more shared memory than there is. */
static struct tiling plain_tiling(const peridot_device_info *d, const struct pd_product *p)
{
    uint32_t n_tokens = p->n_each <= 32 || d->max_shared_size < 20 * 1024 ? 32 : 64;
    return (struct tiling){PD_MATMUL_ROWS, n_tokens, 2, {128, n_tokens}};
}

#define ENOUGH_TILES 64   /* to keep the GPU busy; how many compute units it has, Vulkan does not say */
#define COOP_STEP 32

struct coop_tile {
    uint32_t rows, tokens, invocations;
};

/* From where the reads are fewest to where the tiles are most. */
static const struct coop_tile coop_tiles[] = {{128, 128, 256}, {64, 64, 128}, {64, 32, 128}, {32, 32, 128}};

/* Small subgroups have too few registers for the largest tile. */
static bool is_possible_tile(const peridot_device_info *d, struct coop_tile t)
{
    return t.rows <= 64 || (d->matrix_subgroup_size >= 32 && d->max_workgroup_invocations >= t.invocations
                            && d->max_shared_size >= (t.rows + t.tokens) * (COOP_STEP + 8) * 2);
}

/* The first that is not half empty and of which there are enough, or else the last. */
static struct coop_tile choose_coop_tile(const peridot_device_info *d, const struct pd_product *p)
{
    size_t i = 0;
    for (; i + 1 < PD_COUNT(coop_tiles); i++) {
        struct coop_tile t = coop_tiles[i];
        uint64_t n = pd_div_up(p->push.n_rows, t.rows) * pd_div_up(p->n_each, t.tokens) * p->n_slots;
        bool half_empty = t.tokens > 32 && p->n_each <= t.tokens / 2;
        if (is_possible_tile(d, t) && !half_empty && n >= ENOUGH_TILES) break;
    }
    return coop_tiles[i];
}

/* The subgroups of a workgroup share a tile in parts for which they load the fewest matrices. */
static struct tiling coop_tiling(const peridot_device_info *d, const struct pd_product *p)
{
    uint32_t subgroup = d->matrix_subgroup_size, m = d->matrix_m, n = d->matrix_n;
    struct coop_tile t = choose_coop_tile(d, p);
    uint32_t n_parts = (uint32_t)pd_min(pd_max(t.invocations / subgroup, 1), t.rows / m * (t.tokens / n));
    uint32_t n_down = 1, fewest = UINT32_MAX;
    for (uint32_t down = 1; down <= n_parts && down <= t.rows / m; down *= 2) {
        uint32_t n_loads = t.rows / m / down + t.tokens / n * down / n_parts;
        if (n_parts / down <= t.tokens / n && n_loads < fewest) fewest = n_loads, n_down = down;
    }
    return (struct tiling){t.rows, t.tokens, 10, {n_parts * subgroup, subgroup, t.rows, t.tokens, COOP_STEP,
        t.rows / n_down, t.tokens * n_down / n_parts, m, n, d->matrix_k}};
}

void pd_matmul_tiles(struct pd_recorder *r, enum pd_variant variant, const struct pd_product *p)
{
    const peridot_device_info *d = pd_gpu_info(r->gpu);
    struct tiling t = variant == PD_VARIANT_MATMUL_COOP ? coop_tiling(d, p) : plain_tiling(d, p);
    const struct pd_kernel *k = kernel_of(r, pd_variant_kernel(variant, (uint32_t)p->slice->dtype), p->slice,
                                          p->push.bias, p->push.experts, t.spec, t.n_spec);
    dispatch(r, k, &p->push, (uint32_t)pd_div_up(p->push.n_rows, t.rows),
             (uint32_t)pd_div_up(p->push.n_tokens, t.tokens), p->n_slots);
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

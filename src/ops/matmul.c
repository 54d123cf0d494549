/* Matrices by many tokens: the tile that a variant of matmul takes, and what it packs activations into.
 *
 * A workgroup makes one tile of the result, and decodes the weights of its rows once for all tokens of the tile: the
 * larger the tile, the less is read and decoded for each product, but the fewer workgroups there are to keep a device
 * busy. With few tokens the columns are split instead, and a second dispatch adds the parts (never where results must
 * not depend on the batch). Activations are packed before, to halves or to bytes with a scale for each 32, as every
 * tile of rows reads them again. The fp32 kernel needs none of this and is what all others fall back on. */
#include "ops/ops_.h"

#include "base/base.h"

/* A tile, and the constants of the kernel that makes such tiles. */
struct tiling {
    uint32_t rows, tokens, n_spec, spec[PD_ALIGNED_ID + 1];
};

/* Tiles of 32 tokens where 64 would be half empty, or take more shared memory than there is. */
static struct tiling plain_tiling(const peridot_device_info *d, const struct pd_product *p)
{
    uint32_t n_tokens = p->n_each <= 32 || d->max_shared_size < 20 * 1024 ? 32 : 64;
    return (struct tiling){PD_MATMUL_ROWS, n_tokens, 2, {128, n_tokens}};
}

/* Tiles that keep a GPU busy; how many compute units it has, Vulkan does not say. */
#define ENOUGH_TILES 64
#define ENOUGH_TILES_INTEGRATED 24
#define FEW_COLS 1024   /* fewer take less time than the dispatch that adds the sums of splits */
#define COOP_STEP 32

static uint32_t enough_tiles(const peridot_device_info *d)
{
    return d->type == PERIDOT_DEVICE_INTEGRATED ? ENOUGH_TILES_INTEGRATED : ENOUGH_TILES;
}

/* Into how many parts the columns of a product of n tiles go for the GPU to be busy. */
static uint32_t count_splits(const struct pd_recorder *r, const struct pd_product *p, uint64_t n)
{
    uint32_t enough = enough_tiles(pd_gpu_info(r->gpu));
    if (!r->split_sums || p->push.experts) return 1;
    if (r->n_splits) return r->n_splits;
    if (n >= enough || pd_kernel_is_wrong(r->gpu, PD_KERNEL_matmul_reduce)) return 1;
    return (uint32_t)pd_max(pd_min(pd_div_up(enough, n), p->push.n_cols / FEW_COLS), 1);
}

struct coop_tile {
    uint32_t rows, tokens, invocations;
};

/* From where the reads are fewest to where the tiles are most. */
static const struct coop_tile coop_tiles[] = {{128, 128, 256}, {64, 64, 128}, {64, 32, 128}, {32, 32, 128}};

/* Subgroups of 8 have too few registers for the largest tile, and those of 16 for that of experts. */
static bool is_possible_tile(const peridot_device_info *d, struct coop_tile t, bool experts)
{
    return t.rows <= 64
        || (d->matrix_subgroup_size >= (experts ? 32 : 16) && d->max_workgroup_invocations >= t.invocations
            && d->max_shared_size >= (t.rows + t.tokens) * (COOP_STEP + 8) * 2);
}

/* The first that is not half empty and of which there are enough, split or not, or else the last. The largest are not
 * split: smaller ones are as fast. */
static struct coop_tile choose_coop_tile(const struct pd_recorder *r, const struct pd_product *p)
{
    const peridot_device_info *d = pd_gpu_info(r->gpu);
    size_t i = 0;
    for (; i + 1 < PD_COUNT(coop_tiles); i++) {
        struct coop_tile t = coop_tiles[i];
        uint64_t n = pd_div_up(p->push.n_rows, t.rows) * pd_div_up(p->n_each, t.tokens) * p->n_slots;
        bool half_empty = t.tokens > 32 && p->n_each <= t.tokens / 2;
        if (t.rows <= PD_MATMUL_ROWS) n *= count_splits(r, p, n);
        if (is_possible_tile(d, t, p->push.experts) && !half_empty && n >= enough_tiles(d)) break;
    }
    return coop_tiles[i];
}

/* The subgroups of a workgroup share a tile in parts for which they load the fewest matrices. */
static struct tiling coop_tiling(const struct pd_recorder *r, const struct pd_product *p)
{
    const peridot_device_info *d = pd_gpu_info(r->gpu);
    uint32_t subgroup = d->matrix_subgroup_size, m = d->matrix_m, n = d->matrix_n;
    struct coop_tile t = choose_coop_tile(r, p);
    uint32_t n_parts = (uint32_t)pd_min(pd_max(t.invocations / subgroup, 1), t.rows / m * (t.tokens / n));
    uint32_t n_down = 1, fewest = UINT32_MAX;
    for (uint32_t down = 1; down <= n_parts && down <= t.rows / m; down *= 2) {
        uint32_t n_loads = t.rows / m / down + t.tokens / n * down / n_parts;
        if (n_parts / down <= t.tokens / n && n_loads < fewest) fewest = n_loads, n_down = down;
    }
    uint32_t n_spec = d->vendor_id == NVIDIA ? PD_ALIGNED_ID + 1 : 10;
    return (struct tiling){t.rows, t.tokens, n_spec, {n_parts * subgroup, subgroup, t.rows, t.tokens, COOP_STEP,
        t.rows / n_down, t.tokens * n_down / n_parts, m, n, d->matrix_k, [PD_ALIGNED_ID] = 1}};
}

/* Adds what the splits have found. The next product may write its sums over those when this is done. */
static void reduce(struct pd_recorder *r, const struct pd_matmul_push *p, uint32_t n_splits)
{
    static const uint32_t with_bias[PD_BIAS_ID + 1] = {[PD_BIAS_ID] = 1};
    struct pd_matmul_reduce_push push = {.split_sums = r->split_sums, .y = p->y, .bias = p->bias, .n_splits = n_splits,
        .n_tokens = p->n_tokens, .n_rows = p->n_rows, .y_stride = p->y_stride, .softcap = p->softcap};
    barrier(r);
    dispatch(r, kernel(r, PD_KERNEL_matmul_reduce, with_bias, p->bias ? PD_COUNT(with_bias) : 0), &push,
             (uint32_t)pd_div_up(p->n_rows, 64), p->n_tokens, 1);
    barrier(r);
}

/* A dispatch for each split, as no barrier is between them: that kernels find their columns by the grid would cost
 * compilers the knowledge that these are the same for all invocations. */
void pd_matmul_tiles(struct pd_recorder *r, enum pd_variant variant, const struct pd_product *p)
{
    struct tiling t = variant == PD_VARIANT_MATMUL_COOP ? coop_tiling(r, p) : plain_tiling(pd_gpu_info(r->gpu), p);
    uint32_t n_down = (uint32_t)pd_div_up(p->push.n_rows, t.rows),
        n_across = (uint32_t)pd_div_up(p->push.n_tokens, t.tokens);
    uint32_t n_splits = count_splits(r, p, (uint64_t)n_down * n_across);
    uint32_t n_cols = (uint32_t)pd_align(pd_div_up(p->push.n_cols, n_splits), PD_SPLIT_PAD);
    struct pd_matmul_push push = p->push;
    n_splits = (uint32_t)pd_div_up(push.n_cols, n_cols);
    if (n_splits > 1) {
        push.y = r->split_sums;
        push.y_stride = push.n_rows;
        push.bias = 0;
        push.softcap = 0;
    }
    const struct pd_kernel *k = kernel_of(r, pd_variant_kernel(variant, (uint32_t)p->slice->dtype), p->slice,
                                          push.bias, push.experts, t.spec, t.n_spec);
    for (uint32_t i = 0; i < n_splits; i++) {
        push.first_col = i * n_cols;
        push.end_col = (uint32_t)pd_min(push.first_col + n_cols, push.n_cols);
        dispatch(r, k, &push, n_down, n_across, p->n_slots);
        push.y += sizeof(float) * push.n_tokens * push.n_rows;
    }
    if (n_splits > 1) reduce(r, &p->push, n_splits);
}

uint64_t pd_split_sums_size(const struct pd_variants *variants, const peridot_device_info *device)
{
    bool tiles = variants->of[PD_VARIED_MATMUL] != PD_VARIANT_MATMUL_MATVEC;
    if (!tiles || variants->batch_invariant || device->type == PERIDOT_DEVICE_CPU) return 0;
    return sizeof(float) * 2 * enough_tiles(device) * PD_MATMUL_ROWS * 64;   /* of each split of the tiles, 64 tokens */
}

uint32_t pd_packed_stride(enum pd_kernel_id pack, uint32_t n_cols)
{
    if (pack == PD_KERNEL_pack_q8) return (uint32_t)pd_div_up(n_cols, 32) * PD_DOT_BLOCK(1);
    if (pack == PD_KERNEL_pack_q16) return (uint32_t)pd_div_up(n_cols, 32) * PD_DOT_BLOCK(2);
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

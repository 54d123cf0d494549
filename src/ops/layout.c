#include "ops/layout.h"

#include "base/num.h"
#include "ops/layout_blocks.h"

#include <string.h>

enum pd_dtype pd_device_dtype(enum pd_dtype dtype)
{
    enum pd_dtype same_as = pd_block_layouts[dtype].same_as;
    return same_as ? same_as : dtype;
}

/* Of n_blocks blocks of 32. */
static uint32_t scales_size(const struct pd_block_layout *l, uint32_t n_blocks)
{
    return n_blocks / (l->shared ? l->shared : 1) * l->scale;
}

static uint32_t used_size(enum pd_dtype dtype, uint32_t n)
{
    const struct pd_block_layout *l = &pd_block_layouts[dtype];
    if (pd_dtypes[dtype].block_len == 1) return n * pd_dtypes[dtype].block_size;
    return n / 32 * (l->low + l->high) + scales_size(l, n / 32) + n / 256 * l->super + l->row_scale;
}

uint32_t pd_device_row_size(enum pd_dtype dtype, uint32_t n)
{
    return (uint32_t)pd_align(used_size(dtype, n), 16);
}

/* Q8_0's blocks: a fp16 scale, then a byte a weight. */
static void row_of_bytes(uint8_t *dst, const uint8_t *src, uint32_t n)
{
    for (uint32_t b = 0; b < n / 32; b++, src += 34) {
        memcpy(dst + n + 2 * b, src, 2);
        memcpy(dst + (size_t)32 * b, src + 2, 32);
    }
}

static void row_of_blocks(enum pd_dtype dtype, uint8_t *dst, const uint8_t *src, uint32_t n)
{
    const struct pd_block_layout *l = &pd_block_layouts[dtype];
    uint32_t per_block = pd_dtypes[dtype].block_len / 32, n_blocks = n / 32;
    struct pd_block block = {.low = dst};
    block.high = block.low + (size_t)n_blocks * l->low;
    block.scale = block.high + (size_t)n_blocks * l->high;
    block.super = block.scale + scales_size(l, n_blocks);
    for (uint32_t b = 0; b < n_blocks; b += per_block, src += pd_dtypes[dtype].block_size) {
        pd_block_put(dtype, &block, src);
        block.low += per_block * l->low;
        block.high += per_block * l->high;
        block.scale += scales_size(l, per_block);
        block.super += l->super;
    }
}

static void put_row(enum pd_dtype dtype, uint8_t *dst, const uint8_t *src, float scale, uint32_t n)
{
    uint32_t used = used_size(dtype, n);
    if (pd_block_layouts[dtype].row_scale) memcpy(dst + used - sizeof scale, &scale, sizeof scale);
    if (pd_dtypes[dtype].block_len == 1) memcpy(dst, src, used);
    else if (dtype == PD_Q8_0) row_of_bytes(dst, src, n);
    else row_of_blocks(dtype, dst, src, n);
    memset(dst + used, 0, pd_device_row_size(dtype, n) - used);
}

uint32_t pd_device_row_interleave(enum pd_dtype dtype, bool lanes_take_rows)
{
    return lanes_take_rows && pd_dtypes[dtype].block_len > 1 ? 8 : 1;
}

uint64_t pd_device_rows_size(uint32_t row_size, uint32_t n_rows, uint32_t row_interleave)
{
    return pd_align(n_rows, row_interleave) * row_size;
}

void pd_device_put_row(const struct pd_row_layout *layout, uint8_t *dst, uint32_t i, const uint8_t *src,
                       float scale, uint8_t *scratch)
{
    uint32_t row_size = pd_device_row_size(layout->dtype, layout->n), row_interleave = layout->row_interleave;
    uint8_t *to = dst + (size_t)(i - i % row_interleave) * row_size + (size_t)16 * (i % row_interleave);
    put_row(layout->dtype, row_interleave == 1 ? to : scratch, src, scale, layout->n);
    for (uint32_t at = 0; row_interleave > 1 && at < row_size; at += 16)
        memcpy(to + (size_t)at * row_interleave, scratch + at, 16);
}

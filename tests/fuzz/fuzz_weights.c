/* Blocks of weights as files have them, of the type that the first byte says: to numbers, to the device's rows, and
 * numbers back to blocks. All memory has the size that is asked for, so that a byte too many is seen. */
#include "harness.h"

#include "base/base.h"
#include "format/format.h"
#include "offline/offline.h"
#include "ops/ops.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 2048, UNIT = 256 };   /* weights of an input; rows are of whole units, as superblocks are */

static void *reserve(size_t size)
{
    void *memory = malloc(size ? size : 1);
    FUZZ_CHECK(memory);
    return memory;
}

/* A block's numbers are its own, wherever it lies. */
static void check_alone(enum pd_dtype type, const float *all, const uint8_t *blocks, uint64_t n)
{
    const struct pd_dtype_info *info = &pd_dtypes[type];
    float *one = reserve(info->block_len * sizeof *one);
    uint8_t *block = reserve(info->block_size);
    for (uint64_t i = 0; i < n; i += info->block_len) {
        memcpy(block, blocks + pd_row_size(type, i), info->block_size);
        pd_dequantize(type, one, block, info->block_len);
        FUZZ_CHECK(memcmp(one, all + i, info->block_len * sizeof *one) == 0);
    }
    free(one);
    free(block);
}

static void check_nonfinite(enum pd_dtype type, const float *all, const uint8_t *blocks, uint64_t n)
{
    const struct pd_tensor t = {.name = "t", .dtype = type, .n_dims = 1, .shape = {n, 1, 1, 1}, .data = blocks,
                                .size = pd_row_size(type, n)};
    uint64_t found = n, first = 0;
    while (first < n && all[first] - all[first] == 0) first++;
    FUZZ_CHECK(pd_tensor_find_nonfinite(&t, &found) == (first < n));
    FUZZ_CHECK(first == n || found == first);
}

/* All bytes of the device's row come from the file's, whatever was there before. */
static void lay(enum pd_dtype type, const uint8_t *blocks, uint32_t n, uint32_t row_interleave)
{
    const struct pd_row_layout layout = {type, n, row_interleave};
    uint32_t row_size = pd_device_row_size(type, n);
    size_t size = (size_t)pd_device_rows_size(row_size, row_interleave, row_interleave);
    uint8_t *rows[2], *scratch = reserve(row_size);
    for (int k = 0; k < 2; k++) {
        rows[k] = reserve(size);
        memset(rows[k], k ? 0xff : 0, size);
        memset(scratch, k ? 0xff : 0, row_size);
        for (uint32_t i = 0; i < row_interleave; i++)
            pd_device_put_row(&layout, rows[k], i, blocks, 0.5f, scratch);
    }
    FUZZ_CHECK(memcmp(rows[0], rows[1], size) == 0);
    free(rows[0]);
    free(rows[1]);
    free(scratch);
}

/* Any float is survived; what came from blocks comes back as blocks of as many bytes. */
static void encode(enum pd_dtype type, const float *numbers, const float *importance, uint64_t n)
{
    uint8_t *blocks = reserve(pd_row_size(type, n));
    float *back = reserve(n * sizeof *back);
    if (importance) pd_quantize_by(type, blocks, numbers, importance, n);
    else pd_quantize(type, blocks, numbers, n);
    pd_dequantize(type, back, blocks, n);
    free(back);
    free(blocks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    enum pd_dtype type = (enum pd_dtype)(data[0] % PD_N_DTYPES);
    uint64_t unit_size = pd_row_size(type, UNIT), n = pd_min((size - 1) / unit_size * UNIT, MOST);
    if (n == 0) return 0;
    uint8_t *blocks = reserve(pd_row_size(type, n));
    float *numbers = reserve(n * sizeof *numbers), *importance = reserve(n * sizeof *importance);
    memcpy(blocks, data + 1, pd_row_size(type, n));
    pd_dequantize(type, numbers, blocks, n);
    check_alone(type, numbers, blocks, n);
    check_nonfinite(type, numbers, blocks, n);
    lay(type, blocks, (uint32_t)n, 1);
    lay(type, blocks, (uint32_t)n, pd_device_row_interleave(type, true));
    for (uint64_t i = 0; i < n; i++) importance[i] = (float)blocks[i % pd_row_size(type, n)];
    for (int to = 0; to < PD_N_DTYPES; to++)
        if (pd_has_quantizer((enum pd_dtype)to) && (uint64_t)to % 4 == size % 4) {
            encode((enum pd_dtype)to, numbers, NULL, n);
            encode((enum pd_dtype)to, numbers, importance, n);
        }
    free(blocks);
    free(numbers);
    free(importance);
    return 0;
}

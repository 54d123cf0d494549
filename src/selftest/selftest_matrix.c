/* Random matrices of every weight type, on the device and as the reference reads them; and embedding, which looks their
 * rows up. Products with them: selftest_product.c. */
#include "selftest/selftest_.h"

#include "ops/ops.h"

#include <math.h>

/* ---- matrices ---- */

/* In every fifth row fp16 weights or scales are subnormal. */
static float row_amplitude(uint32_t row) { return row % 5 == 3 ? 0x1p-16f : 0.25f; }

/* What the other factors of a block multiply its fp16 scales by. */
static const float divisors[PD_N_DTYPES] = {
#define DIVISOR(fill, table, rms, minimum, divisor) divisor
#define ROW(name, NAME, form, writes, smaller, device, file, on_device, made, ...) [PD_##NAME] = DIVISOR made,
    PD_TYPES(ROW, )
#undef ROW
};

/* Of the types whose scales are no fp16, or not in one place. */
static void other_scales(uint8_t *dst, enum pd_dtype dtype, float x)
{
    uint16_t scale = pd_f16_from_f32(x / 16);
    if (dtype == PD_MXFP4) dst[0] = (uint8_t)(ilogbf(fabsf(x) + 0x1p-100f) + 127 - 3);
    for (int i = 0; i < 4 && dtype == PD_NVFP4; i++) dst[i] &= 0x1f;
    for (int i = 0; i < 4 && dtype == PD_IQ1_M; i++)
        dst[49 + 2 * i] = (uint8_t)((dst[49 + 2 * i] & 15) | (scale >> 4 * i & 15) << 4);
}

/* One weight or block of a file: random bits where all bits are numbers (-128 in Q8_0 too), scales of either sign. */
static void random_block(struct pd_random *random, uint8_t *dst, enum pd_dtype dtype, float amplitude)
{
    const struct pd_dtype_info *info = &pd_dtypes[dtype];
    float x = pd_random_uniform(random) * amplitude;
    if (info->block_len == 1) {
        uint16_t half = dtype == PD_F16 ? pd_f16_from_f32(x) : pd_bf16_from_f32(x);
        if (dtype == PD_F32) memcpy(dst, &x, sizeof x);
        else memcpy(dst, &half, sizeof half);
        return;
    }
    for (uint32_t i = 0; i < info->block_size; i++)
        dst[i] = i % 8 == 3 ? 0x80 : (uint8_t)(pd_random_next(random) >> 32);
    if (info->n_scales == 0) other_scales(dst, dtype, x);
    for (uint32_t i = 0; i < info->n_scales; i++) {
        uint16_t scale = pd_f16_from_f32((i ? 0.7f : 1.f) * x / divisors[dtype]);
        memcpy(dst + info->scale_at + 2 * i, &scale, sizeof scale);
    }
}

/* The matrix's next slice: n random rows, on the device and in m->w. */
static void add_slice(struct pd_trial *t, struct pd_trial_matrix *m, enum pd_dtype dtype, uint32_t n)
{
    uint32_t n_cols = m->m.n_cols, row_size = pd_device_row_size(dtype, n_cols),
        block_size = pd_dtypes[dtype].block_size;
    uint32_t row_interleave = pd_device_row_interleave(dtype, m->in_groups);
    uint64_t file_row_size = pd_row_size(dtype, n_cols), size = pd_device_rows_size(row_size, n, row_interleave);
    uint8_t *row = pd_trial_zeros(t, file_row_size), *scratch = pd_trial_zeros(t, row_size),
        *rows = pd_trial_zeros(t, size);
    struct pd_row_layout layout = {dtype, n_cols, row_interleave};
    for (uint32_t r = 0; r < n; r++) {
        float amplitude = row_amplitude(m->m.n_rows + r);
        for (uint64_t at = 0; at < file_row_size; at += block_size)
            random_block(&t->random, row + at, dtype, amplitude);
        pd_dequantize(dtype, m->w + (size_t)(m->m.n_rows + r) * n_cols, row, n_cols);
        pd_device_put_row(&layout, rows, r, row, 1, scratch);
    }
    struct pd_trial_buffer *b = pd_trial_words(t, rows, 1, (uint32_t)size / 4, (uint32_t)size / 4);
    m->slices[m->m.n_slices++] = (struct pd_slice){
        .address = b->address, .dtype = dtype, .first_row = m->m.n_rows, .n_rows = n, .row_size = row_size,
        .row_interleave = row_interleave};
    m->m.n_rows += n;
}

void pd_trial_matrix(struct pd_trial *t, struct pd_trial_matrix *m, const struct pd_trial_part *parts, uint32_t n_parts,
                     uint32_t n_cols)
{
    uint32_t n_rows = 0;
    *m = (struct pd_trial_matrix){.m = {.n_cols = n_cols, .slices = m->slices}};
    m->in_groups = pd_gpu_info(t->r.gpu)->type == PERIDOT_DEVICE_CPU && pd_random_next(&t->random) >> 63;
    for (uint32_t i = 0; i < n_parts; i++) n_rows += parts[i].n_rows;
    m->w = pd_trial_floats(t, (size_t)n_rows * n_cols);
    for (uint32_t i = 0; i < n_parts; i++) add_slice(t, m, parts[i].dtype, parts[i].n_rows);
}

float *pd_trial_absolute(struct pd_trial *t, const float *from, size_t n)
{
    float *to = pd_trial_floats(t, n);
    for (size_t i = 0; i < n; i++) to[i] = fabsf(from[i]);
    return to;
}

static const uint32_t plain_cols[] = {4, 32, 36, 100}, block_cols[] = {32, 96, 256, 2304},
    super_cols[] = {256, 512, 768, 2304};

const uint32_t *pd_trial_cols(enum pd_dtype dtype)
{
    uint32_t block_len = pd_dtypes[dtype].block_len;
    return block_len == 1 ? plain_cols : block_len == 32 ? block_cols : super_cols;
}

/* ---- embed ---- */

static void try_embed(struct pd_trial *t, enum pd_dtype dtype, uint32_t n_cols, uint32_t rows_per_slice,
                      uint32_t n_slices, uint32_t n_tokens)
{
    const float scale = 33.941125f;   /* sqrt(1152) */
    struct pd_trial_matrix matrix;
    struct pd_trial_part parts[PD_COUNT(matrix.slices)];
    uint32_t tokens[70], read[PD_COUNT(tokens)];
    uint64_t addresses[PD_COUNT(parts)];
    pd_trial_begin(t, "embed %s, %u columns, %u slices of %u rows, %u tokens", pd_dtypes[dtype].name, n_cols, n_slices,
                   rows_per_slice, n_tokens);
    for (uint32_t i = 0; i < n_slices; i++) parts[i] = (struct pd_trial_part){dtype, rows_per_slice};
    parts[n_slices - 1].n_rows = (rows_per_slice + 1) / 2;
    pd_trial_matrix(t, &matrix, parts, n_slices, n_cols);
    uint32_t n_rows = matrix.m.n_rows;
    for (uint32_t i = 0; i < n_slices; i++) addresses[i] = matrix.slices[i].address;
    for (uint32_t m = 0; m < n_tokens; m++) tokens[m] = m % 3 == 0 ? n_rows - 1 - m % n_rows : m * 7 % n_rows;
    struct pd_table table = {.matrix = &matrix.m, .rows_per_slice = rows_per_slice,
        .addresses = pd_trial_words(t, addresses, 1, 2 * n_slices, 2 * n_slices)->span};
    for (uint32_t m = 0; m < n_tokens; m++) read[m] = m % 4 == 1 ? PD_EMBEDDED : tokens[m];
    const float *embedded = pd_trial_random(t, (size_t)n_tokens * n_cols, 1);
    struct pd_trial_buffer *ids = pd_trial_words(t, read, 1, n_tokens, n_tokens);
    struct pd_trial_buffer *embedded_rows = pd_trial_rows(t, embedded, n_tokens, n_cols);
    struct pd_trial_buffer *x_rows = pd_trial_rows(t, NULL, n_tokens, n_cols);
    const struct pd_embed embed = {.x = pd_trial_rows_of(x_rows), .table = &table, .tokens = ids->address,
                                   .embedded = embedded_rows->address, .scale = scale};
    pd_op_embed(&t->r, &embed, n_tokens);
    pd_trial_run(t);
    float *x = pd_trial_floats(t, (size_t)n_tokens * n_cols);
    pd_reference_embed(x, matrix.w, tokens, n_tokens, n_cols, scale);
    for (uint32_t m = 0; m < n_tokens; m++)
        if (read[m] == PD_EMBEDDED) memcpy(x + (size_t)m * n_cols, embedded + (size_t)m * n_cols, n_cols * sizeof *x);
    pd_trial_check_rows(t, x_rows, x, pd_trial_absolute(t, x, (size_t)n_tokens * n_cols), 2e-7);
    pd_trial_end(t);
}

void pd_try_embed(struct pd_trial *t, uint32_t type)
{
    enum pd_dtype dtype = (enum pd_dtype)type;
    for (size_t c = 0; c < 4; c++) {
        uint32_t n_cols = pd_trial_cols(dtype)[c];
        try_embed(t, dtype, n_cols, 33, 1, 1);
        try_embed(t, dtype, n_cols, 5, 8, 70);
        try_embed(t, dtype, n_cols, 1, 3, 2);
    }
}

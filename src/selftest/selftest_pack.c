/* Kernels that pack activations: what they pack must give the activations back, but for what their numbers round. */
#include "selftest/selftest_.h"

#include <math.h>

float *pd_random_activations(struct pd_trial *t, uint32_t n_tokens, uint32_t n_cols, float amplitude)
{
    static const float factors[] = {1, 1e5f, 1e-5f};
    float *x = pd_trial_random(t, (size_t)n_tokens * n_cols, amplitude);
    for (size_t i = 0; i < (size_t)n_tokens * n_cols; i++) x[i] *= factors[i / n_cols % PD_COUNT(factors)];
    return x;
}

static uint32_t bytes_of(enum pd_kernel_id by) { return by == PD_KERNEL_pack_q8 ? 1 : 2; }

static int number_at(const uint32_t *block, uint32_t n_bytes, uint32_t i)
{
    uint32_t shift = i % 4 * 8;
    int high = (int8_t)(block[i / 4] >> shift);
    return n_bytes == 1 ? high : 256 * high + (int8_t)(block[8 + i / 4] >> shift);
}

float *pd_unpack_dot(struct pd_trial *t, const struct pd_trial_buffer *packed, enum pd_kernel_id by, uint32_t n_cols)
{
    uint32_t n_bytes = bytes_of(by);
    float *x = pd_trial_floats(t, (size_t)packed->n_rows * n_cols);
    for (uint32_t m = 0; t->ran && m < packed->n_rows; m++) {
        for (uint32_t i = 0; i < n_cols; i++) {
            const uint32_t *block = pd_trial_row(t, packed, m) + i / 32 * PD_DOT_BLOCK(n_bytes);
            x[(size_t)m * n_cols + i] = pd_f32_from_bits(block[8 * n_bytes]) * (float)number_at(block, n_bytes, i % 32);
        }
    }
    return x;
}

/* fp16 with its own power of two for a row gives the row back, to 11 bits (by some drivers rounded towards zero),
 * whether it is large or small or zeros; and zeros follow it. pack_half leaves room above for sums, and so less
 * below. */
static void try_pack_f16(struct pd_trial *t, uint32_t n_cols, uint32_t n_tokens, float amplitude)
{
    uint32_t stride = pd_packed_stride(PD_KERNEL_pack_f16, n_cols), n_padded = 2 * (stride - PD_PACK_TAIL);
    double normal = t->kernel == PD_KERNEL_pack_half ? 0x1p-17 : 0x1p-28;   /* of the largest, to 11 bits */
    pd_trial_begin(t, "pack %u columns, %u tokens of %g", n_cols, n_tokens, (double)amplitude);
    float *x = pd_random_activations(t, n_tokens, n_cols, amplitude);
    struct pd_trial_buffer *x_rows = pd_trial_rows(t, x, n_tokens, n_cols);
    struct pd_trial_buffer *packed = pd_trial_words(t, NULL, n_tokens, stride - PD_PACK_TAIL + 1, stride);
    struct pd_pack_push push = {.x = x_rows->address, .packed = packed->address, .n_cols = n_cols,
        .x_stride = x_rows->stride, .packed_stride = stride};
    pd_trial_dispatch(t, t->kernel, NULL, 0, &push, (uint32_t[2]){n_tokens, 1});
    pd_trial_run(t);
    packed->written = true;
    for (uint32_t m = 0; t->ran && m < n_tokens; m++) {
        const uint32_t *words = pd_trial_row(t, packed, m);
        double scale = (double)pd_f32_from_bits(words[n_padded / 2]), largest = 0;
        for (uint32_t i = 0; i < n_cols; i++) largest = fmax(largest, fabs((double)x[m * n_cols + i]));
        for (uint32_t i = 0; i < n_padded; i++) {
            double got = scale * (double)pd_f32_from_f16((uint16_t)(words[i / 2] >> 16 * (i % 2)));
            double want = i < n_cols ? (double)x[m * n_cols + i] : 0;
            pd_trial_check(t, "packed", m * n_padded + i, got, want,
                           (struct pd_bound){fmax(fabs(want), largest * normal), 0x1p-10});
        }
    }
    pd_trial_end(t);
}

static void try_pack_dot(struct pd_trial *t, uint32_t n_cols, uint32_t n_tokens, float amplitude)
{
    uint32_t stride = pd_packed_stride(t->kernel, n_cols), n_bytes = bytes_of(t->kernel);
    double tolerance = (n_bytes == 1 ? 128.5 : 0.5) / (127 * 256) + 0x1p-20;   /* 8 bits are rounded twice */
    pd_trial_begin(t, "pack %u columns, %u tokens of %g", n_cols, n_tokens, (double)amplitude);
    float *x = pd_random_activations(t, n_tokens, n_cols, amplitude);
    struct pd_trial_buffer *x_rows = pd_trial_rows(t, x, n_tokens, n_cols);
    struct pd_trial_buffer *packed = pd_trial_words(t, NULL, n_tokens, stride, stride);
    struct pd_pack_push push = {.x = x_rows->address, .packed = packed->address, .n_cols = n_cols,
        .x_stride = x_rows->stride, .packed_stride = stride};
    pd_trial_dispatch(t, t->kernel, NULL, 0, &push, (uint32_t[2]){n_tokens, 1});
    pd_trial_run(t);
    packed->written = true;
    const float *got = pd_unpack_dot(t, packed, t->kernel, n_cols);
    for (uint32_t at = 0; t->ran && at < n_tokens * n_cols; at += 16) {
        const uint32_t *block = pd_trial_row(t, packed, at / n_cols) + at % n_cols / 32 * PD_DOT_BLOCK(n_bytes);
        double largest = 0, sum = 0;
        for (uint32_t i = at / 32 * 32; i < at / 32 * 32 + 32; i++) largest = fmax(largest, fabs((double)x[i]));
        for (uint32_t i = at; i < at + 16; i++) {
            pd_trial_check(t, "packed", i, (double)got[i], (double)x[i], (struct pd_bound){largest, tolerance});
            sum += (double)got[i];
        }
        pd_trial_check(t, "sum", at / 16, (double)pd_f32_from_bits(block[8 * n_bytes + 1 + at % 32 / 16]), sum,
                       (struct pd_bound){largest, 16 * 0x1p-23});
    }
    pd_trial_end(t);
}

static void try_packs(struct pd_trial *t, const uint32_t widths[5],
                      void (*try)(struct pd_trial *, uint32_t, uint32_t, float))
{
    static const uint32_t n_tokens[] = {1, 2, 31};
    static const float amplitudes[] = {0, 1e-24f, 1, 1e24f};
    for (size_t n = 0; n < 5; n++)
        for (size_t m = 0; m < PD_COUNT(n_tokens); m++)
            for (size_t a = 0; a < PD_COUNT(amplitudes); a++)
                if (t->thorough || a == (n + m) % 4) try(t, widths[n], n_tokens[m], amplitudes[a]);
}

void pd_try_pack_f16(struct pd_trial *t, uint32_t type)
{
    (void)type;
    try_packs(t, (const uint32_t[5]){4, 36, 64, 100, 2304}, try_pack_f16);
}

void pd_try_pack_dot(struct pd_trial *t, uint32_t type)
{
    (void)type;
    try_packs(t, (const uint32_t[5]){32, 96, 256, 2304, 4128}, try_pack_dot);
}

/* What vision towers have beyond language models: LayerNorm, pooled patches, clamped activations. */
#include "selftest/selftest_.h"

#include <math.h>

/* ---- layernorm ---- */

/* -> the mean's size, in standard deviations */
static double layernorm(float *y, const float *x, const float *w, const float *b, uint32_t n, double eps)
{
    double mean = 0, variance = 0;
    for (uint32_t i = 0; i < n; i++) mean += (double)x[i] / n;
    for (uint32_t i = 0; i < n; i++) variance += ((double)x[i] - mean) * ((double)x[i] - mean) / n;
    for (uint32_t i = 0; i < n; i++)
        y[i] = (float)(((double)x[i] - mean) / sqrt(variance + eps) * (double)w[i] + (double)b[i]);
    return fabs(mean) / sqrt(variance + eps);
}

/* Rounding the mean moves all numbers of a row, relative to how they are spread. */
static void try_layernorm(struct pd_trial *t, uint32_t n, uint32_t n_rows, float amplitude, float offset)
{
    pd_trial_begin(t, "layernorm of %u, %u rows of %g around %g", n, n_rows, (double)amplitude, (double)offset);
    float *x = pd_trial_random(t, (size_t)n_rows * n, amplitude), *y = pd_trial_floats(t, (size_t)n_rows * n);
    float *w = pd_trial_random(t, n, 2), *b = pd_trial_random(t, n, 1);
    for (size_t i = 0; i < (size_t)n_rows * n; i++) x[i] += offset;
    struct pd_trial_buffer *x_rows = pd_trial_rows(t, x, n_rows, n), *y_rows = pd_trial_rows(t, NULL, n_rows, n),
        *w_row = pd_trial_rows(t, w, 1, n), *b_row = pd_trial_rows(t, b, 1, n);
    const struct pd_layernorm norm = {.x = pd_trial_rows_of(x_rows), .y = pd_trial_rows_of(y_rows),
        .w = w_row->address, .b = b_row->address, .n = n, .eps = 1e-6f};
    pd_op_layernorm(&t->r, &norm, n_rows);
    double far = 0;
    pd_trial_run(t);
    for (uint32_t m = 0; m < n_rows; m++)
        far = fmax(far, layernorm(y + (size_t)m * n, x + (size_t)m * n, w, b, n, 1e-6));
    pd_trial_check_rows(t, y_rows, y, NULL, 2e-6 + 1e-6 * far);
    pd_trial_end(t);
}

void pd_try_layernorm(struct pd_trial *t, uint32_t type)
{
    (void)type;
    static const uint32_t widths[] = {4, 33, 72, 588, 1152, 6912};
    for (size_t n = 0; n < PD_COUNT(widths); n++) {
        try_layernorm(t, widths[n], 3, 1, 0);
        try_layernorm(t, widths[n], 1, 100, 1000);
        if (t->thorough) try_layernorm(t, widths[n], 70, 0.01f, 1);
    }
}

/* ---- pool ---- */

static void try_pool(struct pd_trial *t, uint32_t n, uint32_t width, uint32_t height, uint32_t side, bool standardise)
{
    pd_trial_begin(t, "pool of %u x %u by %u, %u columns%s", width, height, side, n,
                   standardise ? ", standardised" : "");
    uint32_t n_rows = width * height / side / side;
    const float scale = 3;
    float *x = pd_trial_random(t, (size_t)width * height * n, 2), *y = pd_trial_floats(t, (size_t)n_rows * n);
    float *w = pd_trial_random(t, n, 2), *bias = pd_trial_random(t, n, 1);
    struct pd_trial_buffer *x_rows = pd_trial_rows(t, x, width * height, n),
        *y_rows = pd_trial_rows(t, NULL, n_rows, n), *w_row = pd_trial_rows(t, w, 1, n),
        *bias_row = pd_trial_rows(t, bias, 1, n);
    const struct pd_pool pool = {.x = pd_trial_rows_of(x_rows), .y = pd_trial_rows_of(y_rows),
        .bias = bias_row->address, .w = standardise ? w_row->address : 0, .n = n, .width = width, .side = side,
        .scale = scale};
    pd_op_pool(&t->r, &pool, n_rows);
    pd_trial_run(t);
    for (uint32_t m = 0; m < n_rows; m++)
        for (uint32_t i = 0; i < n; i++) {
            double sum = 0;
            for (uint32_t k = 0; k < side * side; k++) {
                uint32_t row = m / (width / side) * side + k / side, column = m % (width / side) * side + k % side;
                sum += (double)x[((size_t)row * width + column) * n + i];
            }
            double mean = sum / side / side * (double)scale;
            y[(size_t)m * n + i] = (float)(standardise ? (mean - (double)bias[i]) * (double)w[i] : mean);
        }
    pd_trial_check_rows(t, y_rows, y, NULL, 2e-6);
    pd_trial_end(t);
}

void pd_try_pool(struct pd_trial *t, uint32_t type)
{
    (void)type;
    try_pool(t, 36, 8, 8, 4, false);
    try_pool(t, 72, 9, 6, 3, true);
    try_pool(t, 100, 3, 12, 3, false);
    try_pool(t, 4, 5, 2, 1, true);
    if (!t->thorough) return;
    try_pool(t, 1152, 12, 16, 4, false);
    try_pool(t, 768, 18, 12, 3, true);
    try_pool(t, 1, 2, 2, 2, true);
    try_pool(t, 63, 21, 3, 3, false);
    try_pool(t, 65, 4, 20, 4, true);
}

/* ---- clamp ---- */

void pd_try_clamp(struct pd_trial *t, uint32_t type)
{
    (void)type;
    enum { N_ROWS = 3 };
    static const struct { uint32_t n; float low, high; } cases[] = {
        {1, -1, 1}, {36, -0.5f, 3}, {257, 0, 0.25f}, {64, -INFINITY, INFINITY}, {63, 1, 2}, {65, -2, -1},
        {588, -3, INFINITY}, {4304, -INFINITY, 0}, {1152, 0, 0}};
    for (size_t k = 0; k < PD_COUNT(cases); k++) {
        uint32_t n = cases[k].n;
        pd_trial_begin(t, "clamp of %u to %g .. %g", n, (double)cases[k].low, (double)cases[k].high);
        float *x = pd_trial_random(t, (size_t)N_ROWS * n, 4);
        struct pd_trial_buffer *x_rows = pd_trial_rows(t, x, N_ROWS, n), *y_rows = pd_trial_rows(t, NULL, N_ROWS, n);
        const struct pd_clamp clamp = {pd_trial_rows_of(x_rows), pd_trial_rows_of(y_rows), n, cases[k].low,
            cases[k].high};
        pd_op_clamp(&t->r, &clamp, N_ROWS);
        pd_trial_run(t);
        for (uint32_t i = 0; i < N_ROWS * n; i++) x[i] = fmaxf(cases[k].low, fminf(x[i], cases[k].high));
        pd_trial_check_rows(t, y_rows, x, NULL, 0);
        pd_trial_end(t);
    }
}

/* Recurrences: convolution, delta rule or Mamba-2's, norm and gate, which one operation records, against float64. */
#include "selftest/selftest_.h"

#include <math.h>
#include <string.h>

#define N_STATES 7

struct shape {
    uint32_t n_k, n_v, d_k, d_v, conv;
    enum { TILED, MAMBA, GROUPED } rule;
};

struct reference {
    const struct shape *s;
    const float *x, *w_conv, *conv_bias, *dt, *decay, *skip, *w_norm;   /* as in struct pd_recurrence */
    float *states, *tails, *y;                       /* of all states; y [rows][n_v][d_v] */
    uint32_t n_channels, width;                      /* width: of a row of x, */
    uint32_t at_conv, at_z, at_gates;                /* and where its parts begin */
};

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* -> the convolved channel of row m, whose run begins at `first` from a tail (NULL: zeros) */
static double convolved(const struct reference *r, const float *tail, uint32_t first, uint32_t m, uint32_t c)
{
    uint32_t before = r->s->conv - 1;
    double sum = r->s->rule == MAMBA ? (double)r->conv_bias[c] : 0;
    for (uint32_t j = 0; j <= before; j++) {
        uint32_t back = before - j;
        double seen = m >= first + back ? (double)r->x[(size_t)(m - back) * r->width + r->at_conv + c]
            : tail                      ? (double)tail[(m - first + j) * r->n_channels + c]
                                        : 0;
        sum += (double)r->w_conv[c * r->s->conv + j] * seen;
    }
    return sum * sigmoid(sum);
}

/* One row of one head by the delta rule: S [d_k][d_v]. */
static void step_delta(const struct reference *r, double *state, const double *row, uint32_t m, uint32_t head)
{
    const struct shape *s = r->s;
    uint32_t k_head = s->rule == GROUPED ? head / (s->n_v / s->n_k) : head % s->n_k, z = r->at_z + head * s->d_v;
    const double *q = row + k_head * s->d_k, *k = q + s->n_k * s->d_k, *v = row + 2 * s->n_k * s->d_k + head * s->d_v;
    const float *gates = r->x + (size_t)m * r->width + r->at_gates;
    double qq = 1e-6, kk = 1e-6, squares = 0, a = (double)gates[s->n_v + head] + (double)r->dt[head];
    double g = exp((double)r->decay[head] * (fmax(a, 0) + log1p(exp(-fabs(a))))), beta = sigmoid((double)gates[head]);
    float *y = r->y + ((size_t)m * s->n_v + head) * s->d_v;
    for (uint32_t i = 0; i < s->d_k; i++) qq += q[i] * q[i], kk += k[i] * k[i];
    for (uint32_t j = 0; j < s->d_v; j++) {
        double seen = 0, out = 0;
        for (uint32_t i = 0; i < s->d_k; i++) seen += (state[i * s->d_v + j] *= g) * k[i] / sqrt(kk);
        double d = beta * (v[j] - seen);
        for (uint32_t i = 0; i < s->d_k; i++)
            out += (state[i * s->d_v + j] += k[i] / sqrt(kk) * d) * q[i] / sqrt(qq * s->d_k);
        y[j] = (float)out;
        squares += out * out / s->d_v;
    }
    for (uint32_t j = 0; j < s->d_v; j++) {
        double gate = (double)r->x[(size_t)m * r->width + z + j];
        y[j] = (float)((double)y[j] / sqrt(squares + 1e-6) * (double)r->w_norm[j] * gate * sigmoid(gate));
    }
}

/* By Mamba-2's, of a row that is not normed yet. */
static void step_mamba(const struct reference *r, double *state, const double *row, uint32_t m, uint32_t head)
{
    const struct shape *s = r->s;
    uint32_t group = head / (s->n_v / s->n_k);
    const double *v = row + head * s->d_v, *k = row + s->n_v * s->d_v + group * s->d_k, *q = k + s->n_k * s->d_k;
    double a = (double)r->x[(size_t)m * r->width + r->at_gates + head] + (double)r->dt[head];
    double delta = fmax(a, 0) + log1p(exp(-fabs(a))), g = exp((double)r->decay[head] * delta);
    for (uint32_t j = 0; j < s->d_v; j++) {
        double out = (double)r->skip[head] * v[j];
        for (uint32_t i = 0; i < s->d_k; i++)
            out += (state[i * s->d_v + j] = g * state[i * s->d_v + j] + delta * k[i] * v[j]) * q[i];
        r->y[((size_t)m * s->n_v + head) * s->d_v + j] = (float)out;
    }
}

/* y = norm(y silu(z)), of the heads of each group */
static void norm_groups(const struct reference *r, uint32_t m)
{
    uint32_t n = r->s->n_v / r->s->n_k * r->s->d_v;
    for (uint32_t group = 0; group < r->s->n_k; group++) {
        const float *z = r->x + (size_t)m * r->width + r->at_z + group * n, *w = r->w_norm + group * n;
        float *y = r->y + (size_t)m * r->s->n_v * r->s->d_v + group * n;
        double squares = 0;
        for (uint32_t i = 0; i < n; i++) {
            y[i] = (float)((double)y[i] * (double)z[i] * sigmoid((double)z[i]));
            squares += (double)y[i] * (double)y[i] / n;
        }
        for (uint32_t i = 0; i < n; i++) y[i] = (float)((double)y[i] / sqrt(squares + 1e-6) * (double)w[i]);
    }
}

/* Element (i, j) of a head's S among a state's. */
static size_t place(const struct shape *s, uint32_t head, uint32_t i, uint32_t j)
{
    return (((size_t)head * s->d_v / 4 + j / 4) * s->d_k + i) * 4 + j % 4;
}

static void run_rows(struct pd_trial *t, const struct reference *r, const struct pd_state_run *run)
{
    const struct shape *s = r->s;
    size_t state_len = (size_t)s->n_v * s->d_k * s->d_v, tail_len = (size_t)r->n_channels * (s->conv - 1);
    const float *tail = run->from == PD_NO_STATE ? NULL : r->tails + run->from * tail_len;
    double *rows = pd_trial_zeros(t, sizeof *rows * run->n * r->n_channels);
    double *state = pd_trial_zeros(t, sizeof *state * s->d_k * s->d_v);
    float *new_tail = pd_trial_floats(t, tail_len);
    for (uint32_t m = 0; m < run->n; m++)
        for (uint32_t c = 0; c < r->n_channels; c++)
            rows[(size_t)m * r->n_channels + c] = convolved(r, tail, run->first, run->first + m, c);
    for (uint32_t head = 0; head < s->n_v; head++) {
        for (uint32_t i = 0; i < s->d_k; i++)
            for (uint32_t j = 0; j < s->d_v; j++)
                state[i * s->d_v + j] = run->from == PD_NO_STATE
                    ? 0 : (double)r->states[run->from * state_len + place(s, head, i, j)];
        for (uint32_t m = 0; m < run->n; m++)
            (s->rule == MAMBA ? step_mamba : step_delta)(r, state, rows + (size_t)m * r->n_channels, run->first + m,
                                                         head);
        for (uint32_t i = 0; i < s->d_k; i++)
            for (uint32_t j = 0; j < s->d_v; j++)
                r->states[run->to * state_len + place(s, head, i, j)] = (float)state[i * s->d_v + j];
    }
    for (uint32_t m = 0; s->rule == MAMBA && m < run->n; m++) norm_groups(r, run->first + m);
    for (uint32_t j = 0; j + 1 < s->conv; j++)
        for (uint32_t c = 0; c < r->n_channels; c++) {
            uint32_t i = run->n + j;   /* of the old tail and the rows, one after the other */
            new_tail[j * r->n_channels + c] = i >= s->conv - 1
                ? r->x[(size_t)(run->first + i - (s->conv - 1)) * r->width + r->at_conv + c]
                : tail ? tail[i * r->n_channels + c]
                       : 0;
        }
    memcpy(r->tails + run->to * tail_len, new_tail, tail_len * sizeof *new_tail);
}

/* Three runs: a step, a text's beginning, and rows that go on. Where they are few all rows leave a state, as a run that
 * ends there would: those before the last ones are in `kept`. a: around which the gates' input is. */
static void try_recur(struct pd_trial *t, const struct shape *s, uint32_t n, float a)
{
    static const char *const names[] = {"recurrence", "Mamba-2", "grouped recurrence"};
    pd_trial_begin(t, "%s of %u and %u heads of %u and %u, %u rows, a around %g", names[s->rule], s->n_k, s->n_v,
                   s->d_k, s->d_v, n, (double)a);
    const struct pd_state_run runs[] = {{0, 1, 3, 1}, {1, n, PD_NO_STATE, 4}, {1 + n, 2, 2, 0}},
        kept[] = {{1, 1, PD_NO_STATE, 5}, {1 + n, 1, 2, 6}};
    const uint32_t row_states[] = {UINT32_MAX, 5, UINT32_MAX, 6, UINT32_MAX};
    uint32_t n_rows = 3 + n, n_channels = 2 * s->n_k * s->d_k + s->n_v * s->d_v, dim = s->n_v * s->d_v;
    uint32_t width = n_channels + dim + (s->rule == MAMBA ? 1 : 2) * s->n_v, state_len = dim * s->d_k;
    uint32_t tail_len = n_channels * (s->conv - 1);
    float *x = pd_trial_random(t, (size_t)n_rows * width, 2), *w_conv = pd_trial_random(t, n_channels * s->conv, 1);
    float *dt = pd_trial_random(t, s->n_v, 1), *decay = pd_trial_random(t, s->n_v, 8);
    float *skip = pd_trial_random(t, s->n_v, 1), *conv_bias = pd_trial_random(t, n_channels, 1);
    uint32_t n_norm = s->rule == MAMBA ? dim : s->d_v;
    float *w_norm = pd_trial_random(t, n_norm, 2), *y = pd_trial_floats(t, (size_t)n_rows * dim);
    float *states = pd_trial_random(t, (size_t)N_STATES * state_len, 1);
    float *tails = pd_trial_random(t, (size_t)N_STATES * tail_len, 2);
    for (uint32_t i = 0; i < s->n_v; i++) decay[i] = -fabsf(decay[i]), dt[i] += a;
    struct pd_trial_buffer *x_rows = pd_trial_rows(t, x, n_rows, width), *y_rows = pd_trial_rows(t, NULL, n_rows, dim),
        *conv_rows = pd_trial_rows(t, NULL, n_rows, n_channels),
        *all_states = pd_trial_words(t, states, N_STATES, state_len, state_len),
        *all_tails = pd_trial_words(t, tails, N_STATES, tail_len, tail_len),
        *row_words = pd_trial_words(t, row_states, 1, PD_COUNT(row_states), PD_COUNT(row_states)),
        *run_words = pd_trial_words(t, runs, 1, sizeof runs / 4, sizeof runs / 4);
    const struct pd_recurrence c = {.runs = run_words->address, .n_runs = 3, .n_rows = n_rows, .n_k = s->n_k,
        .n_v = s->n_v, .d_k = s->d_k, .d_v = s->d_v, .conv = s->conv, .mamba = s->rule == MAMBA,
        .grouped = s->rule == GROUPED,
        .x = pd_trial_rows_of(x_rows), .qkv = pd_trial_rows_of(conv_rows), .y = pd_trial_rows_of(y_rows),
        .row_states = n == 2 ? row_words->address : 0, .states = all_states->address, .tails = all_tails->address,
        .w_conv = pd_trial_words(t, w_conv, 1, n_channels * s->conv, n_channels * s->conv)->address,
        .dt = pd_trial_words(t, dt, 1, s->n_v, s->n_v)->address,
        .decay = pd_trial_words(t, decay, 1, s->n_v, s->n_v)->address,
        .conv_bias = s->rule == MAMBA ? pd_trial_words(t, conv_bias, 1, n_channels, n_channels)->address : 0,
        .skip = s->rule == MAMBA ? pd_trial_words(t, skip, 1, s->n_v, s->n_v)->address : 0,
        .w_norm = pd_trial_words(t, w_norm, 1, n_norm, n_norm)->address, .eps = 1e-6f};
    pd_op_recur(&t->r, &c);
    pd_trial_run(t);
    const struct reference r = {s, x, w_conv, conv_bias, dt, decay, skip, w_norm, states, tails, y, n_channels, width,
        s->rule == MAMBA ? dim : 0, s->rule == MAMBA ? 0 : n_channels, n_channels + dim};
    for (size_t i = 0; t->ran && n == 2 && i < PD_COUNT(kept); i++) run_rows(t, &r, &kept[i]);
    for (size_t i = 0; t->ran && i < PD_COUNT(runs); i++) run_rows(t, &r, &runs[i]);
    /* The norm at the end divides by 1e-3 where q is orthogonal to k: there the last bit of q . k is 6e-5 of y. States,
     * which nothing divides, are within 5e-6 (the kernel's order of sums in fp32, against float64). */
    pd_trial_check_rows(t, y_rows, y, NULL, 1e-4);
    pd_trial_check_rows(t, all_states, states, NULL, 2e-5);
    pd_trial_check_rows(t, all_tails, tails, NULL, 0);
    conv_rows->written = true;
    pd_trial_end(t);
}

/* A short convolution: a step, a text's beginning, and rows that go on. */
static void try_short_conv(struct pd_trial *t, uint32_t n_channels, uint32_t conv)
{
    pd_trial_begin(t, "short convolution of %u channels over %u rows", n_channels, conv);
    const struct pd_state_run runs[] = {{0, 1, 3, 1}, {1, 7, PD_NO_STATE, 4}, {8, 2, 2, 0}};
    uint32_t n_rows = 10, tail_len = n_channels * (conv - 1), n_w = n_channels * conv;
    float *x = pd_trial_random(t, (size_t)n_rows * 3 * n_channels, 2), *w = pd_trial_random(t, n_w, 1);
    float *y = pd_trial_floats(t, (size_t)n_rows * n_channels);
    float *tails = pd_trial_random(t, (size_t)N_STATES * tail_len, 2);
    struct pd_trial_buffer *x_rows = pd_trial_rows(t, x, n_rows, 3 * n_channels),
        *y_rows = pd_trial_rows(t, NULL, n_rows, n_channels),
        *all_tails = pd_trial_words(t, tails, N_STATES, tail_len, tail_len),
        *run_words = pd_trial_words(t, runs, 1, sizeof runs / 4, sizeof runs / 4);
    const struct pd_short_conv c = {.runs = run_words->address, .n_runs = 3, .n_rows = n_rows, .n = n_channels,
        .conv = conv, .x = pd_trial_rows_of(x_rows), .y = pd_trial_rows_of(y_rows), .tails = all_tails->address,
        .w = pd_trial_words(t, w, 1, n_w, n_w)->address};
    pd_op_short_conv(&t->r, &c);
    pd_trial_run(t);
    for (size_t i = 0; t->ran && i < PD_COUNT(runs); i++)
        for (uint32_t k = 0; k < n_channels; k++) {
            const struct pd_state_run *run = &runs[i];
            float seen[16] = {0};   /* the tail, then the rows */
            for (uint32_t j = 0; j + 1 < conv && run->from != PD_NO_STATE; j++)
                seen[j] = tails[run->from * tail_len + j * n_channels + k];
            for (uint32_t m = 0; m < run->n; m++) {
                const float *row = x + (size_t)(run->first + m) * 3 * n_channels + k;
                double sum = 0;
                seen[conv - 1 + m] = row[0] * row[2 * n_channels];
                for (uint32_t j = 0; j < conv; j++) sum += (double)w[k * conv + j] * (double)seen[m + j];
                y[(size_t)(run->first + m) * n_channels + k] = (float)((double)row[n_channels] * sum);
            }
            for (uint32_t j = 0; j + 1 < conv; j++)
                tails[run->to * tail_len + j * n_channels + k] = seen[run->n + j];
        }
    pd_trial_check_rows(t, y_rows, y, NULL, 1e-5);
    pd_trial_check_rows(t, all_tails, tails, NULL, 0);
    pd_trial_end(t);
}

/* Gates that keep everything, or nothing, and in between. Of Mamba-2 they are also what is added, and far below 0 no
 * more exact than exp is there. */
void pd_try_recur(struct pd_trial *t, uint32_t type)
{
    (void)type;
    static const struct shape shapes[] = {
        {1, 1, 4, 4, 4, TILED}, {2, 4, 16, 8, 4, TILED}, {1, 3, 36, 12, 2, TILED}, {2, 2, 128, 128, 4, TILED},
        {1, 2, 128, 64, 4, MAMBA}, {2, 4, 20, 12, 4, MAMBA}, {1, 3, 16, 8, 2, MAMBA},
        {2, 6, 20, 12, 4, GROUPED}};
    static const float gates[] = {0, -50, 50};
    for (size_t k = 0; k < PD_COUNT(shapes); k++)
        for (size_t g = 0; g < PD_COUNT(gates); g++)
            if (t->thorough || g == k % PD_COUNT(gates))
                try_recur(t, &shapes[k], g == 0 && k != 3 ? 70 : 2,
                          gates[g] < 0 && shapes[k].rule == MAMBA ? -8 : gates[g]);
    try_short_conv(t, 40, 3);
    try_short_conv(t, 5, 4);
}

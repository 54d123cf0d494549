/* Norms, gated units, top-k, sampling and the kernels of peridot_measure against the CPU reference. Kernels compute in
 * fp32, so tolerances are those of sums in another order, relative to a row's root mean square. */
#include "selftest/selftest_.h"

#include "engine/sequence/sequence.h"

#include <math.h>

static const struct pd_bound exact = {1, 0};

/* ---- rmsnorm ---- */

struct norm_kind {
    bool add, post, out;
};

static void try_rmsnorm(struct pd_trial *t, struct norm_kind kind, uint32_t n, uint32_t n_tokens, float amplitude)
{
    pd_trial_begin(t, "rmsnorm%s%s%s of %u, %u tokens of %g", kind.add ? ", add" : "", kind.post ? ", post" : "",
                   kind.out ? ", out" : "", n, n_tokens, (double)amplitude);
    size_t size = (size_t)n_tokens * n;
    float *x = pd_trial_random(t, size, amplitude), *y = pd_trial_random(t, size, amplitude / 3);
    float *normed = pd_trial_floats(t, size), *w = pd_trial_random(t, n, 2), *w_post = pd_trial_random(t, n, amplitude);
    struct pd_trial_buffer *x_rows = pd_trial_rows(t, x, n_tokens, n), *y_rows = pd_trial_rows(t, y, n_tokens, n),
        *normed_rows = pd_trial_rows(t, NULL, n_tokens, n), *w_row = pd_trial_rows(t, w, 1, n),
        *post_row = pd_trial_rows(t, w_post, 1, n);
    struct pd_norm norm = {.x = pd_trial_rows_of(x_rows), .y = pd_trial_rows_of(kind.add ? y_rows : NULL),
        .normed = pd_trial_rows_of(normed_rows), .w_post = pd_trial_address(kind.post ? post_row : NULL),
        .w = pd_trial_address(kind.out ? w_row : NULL), .n = n, .eps = 1e-6f, .x_scale = n % 8 ? 1 : 0.7f};
    pd_op_rmsnorm(&t->r, &norm, n_tokens);
    pd_trial_run(t);
    struct pd_reference_norm reference = {kind.add ? y : NULL, kind.post ? w_post : NULL, kind.out ? w : NULL, n,
        norm.eps, norm.x_scale};
    pd_reference_rmsnorm(x, normed, &reference, n_tokens);
    if (kind.add) pd_trial_check_rows(t, x_rows, x, NULL, 2e-6);
    if (kind.out) pd_trial_check_rows(t, normed_rows, normed, NULL, 2e-6);
    pd_trial_end(t);
}

/* Residuals reach 1e5; at 1e-3 epsilon counts. */
void pd_try_rmsnorm(struct pd_trial *t, uint32_t type)
{
    (void)type;
    static const struct norm_kind kinds[] = {
        {false, false, true}, {true, false, true}, {true, true, true}, {true, false, false}, {true, true, false}};
    static const uint32_t widths[] = {4, 36, 100, 256, 640, 2304}, n_tokens[] = {1, 2, 31, 70};
    static const float amplitudes[] = {1e-3f, 1, 1e5f};
    for (size_t k = 0; k < PD_COUNT(kinds); k++)
        for (size_t n = 0; n < PD_COUNT(widths); n++)
            for (size_t m = 0; m < PD_COUNT(n_tokens); m++)
                if (t->thorough || m == (k + n) % 4)
                    try_rmsnorm(t, kinds[k], widths[n], n_tokens[m], amplitudes[(k + n + m) % PD_COUNT(amplitudes)]);
}

/* ---- glu ---- */

/* gated false: what stands in for the factors are ones. */
static void try_glu(struct pd_trial *t, uint32_t n, uint32_t n_tokens, uint32_t activation, bool gated)
{
    static const char *const names[] = {[PD_GELU] = "gelu", [PD_SILU] = "silu", [PD_SIGMOID] = "sigmoid",
        [PD_CLAMPED_SILU] = "clamped silu", [PD_GELU_ERF] = "gelu by erf"};
    static const float extremes[] = {0, 1e5f, -1e5f, 20, -20, 1e-6f, -1e-30f, 3e13f, -3e13f};
    pd_trial_begin(t, "%s %s of %u, %u tokens", gated ? "gated" : "plain", names[activation], n, n_tokens);
    float *x = pd_trial_random(t, (size_t)n_tokens * 2 * n, 6), *y = pd_trial_floats(t, (size_t)n_tokens * n);
    float *magnitudes = pd_trial_floats(t, (size_t)n_tokens * n);
    for (size_t i = 0; i < PD_COUNT(extremes) && i < n; i++) x[i] = extremes[i];
    if (n > 36) x[n + 30] = 9, x[n + 31] = -9;
    struct pd_trial_buffer *x_rows = pd_trial_rows(t, x, n_tokens, 2 * n),
        *y_rows = pd_trial_rows(t, NULL, n_tokens, n);
    struct pd_rows gate = pd_trial_rows_of(x_rows), up = pd_rows_at(gate, 0, n);
    if (!gated) up.address = 0;
    pd_op_glu(&t->r, &(struct pd_glu){pd_trial_rows_of(y_rows), gate, up, n, activation}, n_tokens);
    pd_trial_run(t);
    for (size_t i = 0; !gated && i < (size_t)n_tokens * n; i++) x[i / n * 2 * n + n + i % n] = 1;
    pd_reference_glu(y, x, n, n_tokens, activation);
    /* |gate| |up|: near zero GELU is as exact as tanh is near -1; of a sigmoid, which ends at 1, |up| */
    float more = activation == PD_CLAMPED_SILU ? 1 : 0;
    for (uint32_t m = 0; m < n_tokens; m++)
        for (uint32_t i = 0; i < n; i++)
            magnitudes[(size_t)m * n + i] = fabsf((activation == PD_SIGMOID ? 1 : x[(size_t)m * 2 * n + i])
                                                  * (fabsf(x[(size_t)m * 2 * n + n + i]) + more));
    pd_trial_check_rows(t, y_rows, y, magnitudes, 2e-6);
    pd_trial_end(t);
}

void pd_try_glu(struct pd_trial *t, uint32_t type)
{
    (void)type;
    static const uint32_t widths[] = {1, 4, 36, 100, 257, 2304}, n_tokens[] = {1, 2, 31};
    for (size_t n = 0; n < PD_COUNT(widths); n++)
        for (size_t m = 0; m < PD_COUNT(n_tokens); m++) {
            if (!t->thorough && m != n % 3) continue;
            for (uint32_t act = PD_GELU; act <= PD_GELU_ERF; act++) try_glu(t, widths[n], n_tokens[m], act, true);
            try_glu(t, widths[n], n_tokens[m], n % 2 ? PD_SILU : PD_GELU, false);
        }
}

/* ---- topk ---- */

/* Rows of logits: n numbers, the i-th of which is value(i, n), or (NULL) random ones. */
struct logits_kind {
    const char *name;
    float (*value)(uint32_t i, uint32_t n);
};

/* Of two rows, the second one's values a place further; zeros behind each are not to be taken. */
static void try_topk(struct pd_trial *t, const struct logits_kind *kind, uint32_t n)
{
    enum { N_ROWS = 2 };
    pd_trial_begin(t, "topk of %u, %s", n, kind->name);
    float *logits = pd_trial_random(t, (size_t)N_ROWS * n, 30);
    for (uint32_t i = 0; kind->value && i < N_ROWS * n; i++) logits[i] = kind->value((i % n + i / n) % n, n);
    uint32_t stride = n + 3, scratch = N_ROWS * 2 * pd_topk_scratch(n);
    struct pd_trial_buffer *in = pd_trial_words(t, logits, N_ROWS, n, stride);
    struct pd_trial_buffer *best = pd_trial_words(t, NULL, N_ROWS, 2 * PD_TOPK, 2 * PD_TOPK);
    struct pd_trial_buffer *a = pd_trial_words(t, NULL, 1, scratch, scratch),
        *b = pd_trial_words(t, NULL, 1, scratch, scratch);
    pd_op_topk(&t->r, &(struct pd_topk){.logits = {in->address, stride}, .n = n, .n_rows = N_ROWS,
        .best = best->address, .scratch = {a->address, b->address}});
    pd_trial_run(t);
    for (uint32_t r = 0; r < N_ROWS; r++) {
        struct pd_candidate got[PD_TOPK], want[PD_TOPK];
        memcpy(got, pd_trial_row(t, best, r), sizeof got);
        pd_reference_topk(want, logits + (size_t)r * n, n);
        for (uint32_t i = 0; i < PD_TOPK; i++) {
            pd_trial_check(t, "logit", i, (double)got[i].logit, (double)want[i].logit, exact);
            pd_trial_check(t, "id", i, got[i].id, want[i].id, exact);
        }
    }
    best->written = a->written = b->written = true;
    pd_trial_end(t);
}

static float rising(uint32_t i, uint32_t n) { return (void)n, (float)i; }
static float many_equal(uint32_t i, uint32_t n) { return (void)n, (float)(i * 7 % 5); }
static float few_numbers(uint32_t i, uint32_t n) { return (void)n, i % 3 ? -INFINITY : -(float)i; }
static float one_nan(uint32_t i, uint32_t n) { return i == n / 2 ? NAN : -(float)(i * 7 % 5); }
static float no_numbers(uint32_t i, uint32_t n)
{
    return i == n / 2 ? INFINITY : i % 2 ? copysignf(NAN, i % 4 ? 1 : -1) : -INFINITY;
}

void pd_try_topk(struct pd_trial *t, uint32_t type)
{
    (void)type;
    static const struct logits_kind kinds[] = {
        {"random", NULL}, {"rising", rising}, {"many equal", many_equal}, {"a few numbers", few_numbers},
        {"one NaN", one_nan}, {"no numbers", no_numbers}};
    static const uint32_t sizes[] = {1, 2, 127, 128, 129, 1000, 1024, 1025, 2048, 8192, 9000, 256000};
    for (size_t s = 0; s < PD_COUNT(sizes); s++)
        for (size_t k = 0; k < PD_COUNT(kinds); k++)
            if (t->thorough || s % PD_COUNT(kinds) == k) try_topk(t, &kinds[k], sizes[s]);
}

/* ---- sample ---- */

enum { N_DRAWS = 40 };

struct sample_data {
    struct pd_candidate best[PD_TOPK], bias[PD_TOPK];
    struct pd_draw draws[N_DRAWS];
    uint32_t recent[N_DRAWS][PD_REPEAT_WINDOW];   /* before each draw */
    uint32_t tokens[N_DRAWS];                     /* that the host draws */
};

/* N_DRAWS draws, from the first number of all to the last, as the host makes them. */
static void draw_on_host(struct pd_trial *t, struct sample_data *d, const struct pd_draw *draw,
                         const peridot_sampling *adjusting)
{
    struct pd_candidate adjusted[PD_TOPK];
    struct pd_sampler sampler = {.n_seen = 0};
    peridot_bias own[PD_TOPK];
    pd_sampler_set(&sampler, adjusting);
    for (size_t i = 0; i < sampler.p.n_bias; i++) {   /* a table of ours has places among the best for tokens */
        d->bias[i] = (struct pd_candidate){sampler.p.bias[i].value, d->best[sampler.p.bias[i].token].id};
        own[i] = (peridot_bias){(int32_t)d->bias[i].id, d->bias[i].logit};
    }
    sampler.p.bias = own;
    for (uint32_t k = 0; k < N_DRAWS; k++) {
        d->draws[k] = pd_sampler_draw_ahead(&sampler, draw->n, 0);
        pd_sampler_accept(&sampler, (int32_t)d->best[(k < 3 ? 0 : pd_random_next(&t->random) % 50)].id);
        memcpy(d->recent[k], sampler.recent, sizeof d->recent[k]);
        memcpy(adjusted, d->best, sizeof adjusted);
        if (adjusting) pd_sampler_adjust(&sampler, adjusted, PD_TOPK);
        d->draws[k].n = draw->n, d->draws[k].scale = draw->scale, d->draws[k].top_p = draw->top_p,
            d->draws[k].min_weight = draw->min_weight, d->draws[k].xtc = draw->xtc, d->draws[k].reach = draw->reach;
        d->draws[k].random = k == 0 ? 0 : k == N_DRAWS - 1 ? UINT32_MAX : (uint32_t)(pd_random_next(&t->random) >> 32);
        d->tokens[k] = pd_draw_from(&d->draws[k], adjusted);
    }
}

/* The very tokens that the host draws: they must be the same, as the device continues texts that the host began. */
static void try_sample(struct pd_trial *t, const struct logits_kind *kind, const struct pd_draw *draw,
                       const peridot_sampling *adjusting)
{
    struct sample_data d = {.bias = {{0}}};
    uint32_t width = sizeof *d.draws / 4;
    pd_trial_begin(t, "sample of %u, %s, top-p %u, min-p %u, xtc %u, reach %g, scale %g, %s", draw->n, kind->name,
                   draw->top_p, draw->min_weight, draw->xtc, (double)draw->reach, (double)draw->scale,
                   adjusting ? "adjusted" : "as they are");
    float *logits = pd_trial_random(t, 3 * PD_TOPK, 12);
    for (uint32_t i = 0; kind->value && i < 3 * PD_TOPK; i++) logits[i] = kind->value(i, 3 * PD_TOPK);
    pd_reference_topk(d.best, logits, 3 * PD_TOPK);
    draw_on_host(t, &d, draw, adjusting);
    struct pd_trial_buffer *in = pd_trial_words(t, d.best, 1, 2 * PD_TOPK, 2 * PD_TOPK);
    struct pd_trial_buffer *how = pd_trial_words(t, d.draws, N_DRAWS, width, width);
    struct pd_trial_buffer *last = pd_trial_words(t, d.recent, N_DRAWS, PD_REPEAT_WINDOW, PD_REPEAT_WINDOW);
    struct pd_trial_buffer *biases = pd_trial_words(t, d.bias, 1, 2 * PD_TOPK, 2 * PD_TOPK);
    struct pd_trial_buffer *token = pd_trial_words(t, NULL, N_DRAWS, 1, 1),
        *drawn = pd_trial_words(t, NULL, N_DRAWS, 2, 2);
    for (uint32_t k = 0; k < N_DRAWS; k++)
        pd_op_sample(&t->r, &(struct pd_sample_push){.best = in->address, .draws = how->address + k * sizeof *d.draws,
            .tokens = token->address + 4 * k, .drawn = drawn->address + k * sizeof *d.best,
            .recent = last->address + k * sizeof *d.recent, .bias = biases->address}, 1);
    pd_trial_run(t);
    for (uint32_t k = 0; k < N_DRAWS; k++) {
        struct pd_candidate got;
        memcpy(&got, pd_trial_row(t, drawn, k), sizeof got);
        pd_trial_check(t, "token", k, *pd_trial_row(t, token, k), d.tokens[k], exact);
        pd_trial_check(t, "id", k, got.id, d.tokens[k], exact);
        d.recent[k][d.draws[k].next] = d.tokens[k];
        for (uint32_t i = 0; i < PD_REPEAT_WINDOW; i++)
            pd_trial_check(t, "recent", i, pd_trial_row(t, last, k)[i], d.recent[k][i], exact);
        pd_trial_check(t, "best", k, (double)got.logit, (double)d.best[0].logit, exact);
    }
    token->written = drawn->written = last->written = true;
    pd_trial_end(t);
}

static float close_together(uint32_t i, uint32_t n) { return (void)n, 20 + (float)(i * 37 % 101) * 1e-3f; }
static float one_far_above(uint32_t i, uint32_t n) { return i == n / 2 ? 60.0f : (float)(i % 7); }

void pd_try_sample(struct pd_trial *t, uint32_t type)
{
    (void)type;
    static const struct logits_kind kinds[] = {
        {"random", NULL}, {"rising", rising}, {"many equal", many_equal}, {"a few numbers", few_numbers},
        {"close together", close_together}, {"one far above", one_far_above}, {"one NaN", one_nan},
        {"no numbers", no_numbers}};
    static const struct pd_draw draws[] = {
        {.n = 1}, {.n = 2, .scale = 1.4426950f}, {.n = 40, .scale = 1.8033688f, .top_p = 0xf3333333u,
            .min_weight = 838860},
        {.n = PD_TOPK, .scale = 0.48089835f}, {.n = PD_TOPK, .scale = 0},
        {.n = 100, .scale = 1.4426950f, .top_p = 0x80000000u},
        {.n = PD_TOPK, .scale = 0.014426950f, .top_p = 0xfffffe00u}, {.n = 77, .scale = 0.2f, .min_weight = 1 << 23},
        {.n = 9, .scale = 1.4426950f, .top_p = 1}, {.n = 60, .scale = 0.1f, .min_weight = 1 << 24},
        {.n = PD_TOPK, .scale = 3.4e38f}, {.n = PD_TOPK, .scale = 0.3f, .xtc = 0x04000000u, .reach = 9},
        {.n = 50, .scale = 0.1f, .top_p = 0xf3333333u, .xtc = 0x02000000u}};
    static const peridot_bias biases[] = {{0, -3.25f}, {1, -0.1f}, {0, -1}, {5, -INFINITY}};   /* places */
    static const peridot_sampling adjusting[] = {
        {.repeat_penalty = 1.3f}, {.presence_penalty = 0.7f, .frequency_penalty = 0.3f}, {.bias = biases, .n_bias = 4},
        {.repeat_penalty = 1.1f, .presence_penalty = 0.1f, .frequency_penalty = 0.013f, .bias = biases, .n_bias = 2}};
    for (size_t k = 0; k < PD_COUNT(kinds); k++)
        for (size_t d = 0; d < PD_COUNT(draws); d++)
            if (t->thorough || d % PD_COUNT(kinds) == k) try_sample(t, &kinds[k], &draws[d], NULL);
    for (size_t k = 0; k < PD_COUNT(kinds) - 2; k++)   /* without NaN, which has no order */
        for (size_t a = 0; a < PD_COUNT(adjusting); a++)
            if (t->thorough || a == k % PD_COUNT(adjusting))
                try_sample(t, &kinds[k], &draws[(k + a) % 9], &adjusting[a]);
}

/* ---- measure ---- */

/* Reading writes nothing; copying copies everything. */
static void try_measure(struct pd_trial *t, uint32_t mode, uint32_t n)
{
    uint32_t spec[] = {64, mode};
    pd_trial_begin(t, "%s, mode %u, %u vectors", pd_kernel_name(t->kernel), mode, n);
    float *from = pd_trial_random(t, 4 * (size_t)n, 1);
    struct pd_trial_buffer *source = pd_trial_rows(t, from, 1, 4 * n), *to = pd_trial_rows(t, NULL, 1, 4 * n);
    struct pd_measure_push push = {.from = source->address, .to = to->address, .n = mode == 2 ? 3 : n, .factor = 0.9f};
    pd_trial_dispatch(t, t->kernel, spec, t->kernel == PD_KERNEL_measure ? 2 : 1, &push, (uint32_t[2]){7, 1});
    pd_trial_run(t);
    if (mode == 1) pd_trial_check_rows(t, to, from, NULL, 0);
    pd_trial_end(t);
}

void pd_try_measure(struct pd_trial *t, uint32_t type)
{
    (void)type;
    static const uint32_t sizes[] = {1, 3, 31, 32, 33, 300, 1023, 1792, 5000};
    uint32_t n_modes = t->kernel == PD_KERNEL_measure ? 3 : 1;
    for (size_t s = 0; s < PD_COUNT(sizes); s++)
        for (uint32_t mode = 0; mode < n_modes; mode++) try_measure(t, mode, sizes[s]);
}

/* Computing writes nothing, whatever the number of rounds. */
void pd_try_rate(struct pd_trial *t, uint32_t type)
{
    (void)type;
    static const uint32_t rounds[] = {0, 1, 2, 3, 10, 100, 300};
    static const float factors[] = {0.9f, -0.5f, 0};
    const peridot_device_info *d = pd_gpu_info(t->gpu);
    uint32_t spec[] = {64, d->matrix_m, d->matrix_n, d->matrix_k};
    for (size_t r = 0; r < PD_COUNT(rounds); r++)
        for (size_t f = 0; f < PD_COUNT(factors); f++) {
            pd_trial_begin(t, "%s, %u rounds of %g", pd_kernel_name(t->kernel), rounds[r], (double)factors[f]);
            struct pd_trial_buffer *to = pd_trial_rows(t, NULL, 1, 4);
            struct pd_measure_push push = {.to = to->address, .n = rounds[r], .factor = factors[f]};
            pd_trial_dispatch(t, t->kernel, spec, t->kernel == PD_KERNEL_rate_matrix ? 4 : 1, &push,
                              (uint32_t[2]){7, 1});
            pd_trial_run(t);
            pd_trial_end(t);
        }
}

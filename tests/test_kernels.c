/* Embedding, matrix products, norms and the gated unit against the CPU reference. Kernels compute in fp32, so tolerances
 * are those of sums in another order: relative to the sum of magnitudes for a dot product, to a row's root mean square
 * elsewhere. attention, rope and merge are in test_attention.c, topk in test_sampler.c. */
#include "kernel_fixture.h"

/* ---- matrices ---- */

/* Rows of one type; a matrix has up to three runs of them. */
struct part {
    enum pd_dtype dtype;
    uint32_t n_rows;
};

struct test_matrix {
    struct pd_matrix m;
    struct pd_slice slices[8];
    float *w;                /* [n_rows][n_cols] as the reference reads it */
};

/* Every fifth row has subnormal fp16 weights or scales. */
static float row_amplitude(uint32_t row) { return row % 5 == 3 ? 0x1p-16f : 0.25f; }

/* Where a block has its fp16 scales, and what its other factors multiply them by. */
static const struct half_places {
    uint32_t at, n;
    float divisor;
} half_places[PD_N_DTYPES] = {
    [PD_Q8_0] = {0, 1, 16}, [PD_Q4_0] = {0, 1, 16}, [PD_Q4_1] = {0, 2, 16}, [PD_Q5_0] = {0, 1, 16}, [PD_Q5_1] = {0, 2, 16},
    [PD_Q2_K] = {80, 2, 16}, [PD_Q3_K] = {108, 1, 64}, [PD_Q4_K] = {0, 2, 256}, [PD_Q5_K] = {0, 2, 256}, [PD_Q6_K] = {208, 1, 256},
    [PD_IQ4_NL] = {0, 1, 64}, [PD_IQ4_XS] = {0, 1, 256},
};

/* One weight or block of a file: random bits where all bits are numbers (-128 in Q8_0 too), scales of either sign. */
static void random_block(uint8_t *dst, enum pd_dtype dtype, float amplitude)
{
    float x = pd_random_uniform(&bench.random) * amplitude;
    if (dtype == PD_F32 || dtype == PD_F16 || dtype == PD_BF16) {
        pd_quantize(dtype, dst, &x, 1);
        return;
    }
    for (uint32_t i = 0; i < pd_dtypes[dtype].block_size; i++)
        dst[i] = i % 8 == 3 ? 0x80 : (uint8_t)(pd_random_next(&bench.random) >> 32);
    const struct half_places *places = &half_places[dtype];
    for (uint32_t i = 0; i < places->n; i++) {
        uint16_t scale = pd_f16_from_f32((i ? 0.7f : 1.f) * x / places->divisor);
        memcpy(dst + places->at + 2 * i, &scale, sizeof scale);
    }
}

/* Fills the matrix's next slice with n random rows, on the device and in t->w. */
static void add_slice(struct test_matrix *t, enum pd_dtype dtype, uint32_t n)
{
    uint32_t n_cols = t->m.n_cols, row_size = pd_device_row_size(dtype, n_cols), block_size = pd_dtypes[dtype].block_size;
    uint64_t file_row_size = pd_row_size(dtype, n_cols);
    uint8_t *row = malloc(file_row_size), *rows = malloc((size_t)n * row_size);
    assert_true(row && rows && t->m.n_slices < PD_COUNT(t->slices));
    t->w = realloc(t->w, sizeof *t->w * (t->m.n_rows + n) * n_cols);
    for (uint32_t r = 0; r < n; r++) {
        for (uint64_t at = 0; at < file_row_size; at += block_size) random_block(row + at, dtype, row_amplitude(t->m.n_rows + r));
        pd_dequantize(dtype, t->w + (size_t)(t->m.n_rows + r) * n_cols, row, n_cols);
        pd_device_row(dtype, rows + (size_t)r * row_size, row, n_cols);
    }
    struct buffer *b = make_words(rows, 1, n * row_size / 4, n * row_size / 4);
    t->slices[t->m.n_slices++] = (struct pd_slice){
        .address = address_of(b), .dtype = dtype, .first_row = t->m.n_rows, .n_rows = n, .row_size = row_size};
    t->m.slices = t->slices;
    t->m.n_rows += n;
    free(row);
    free(rows);
}

static void absolute(float *to, const float *from, size_t n)
{
    for (size_t i = 0; i < n; i++) to[i] = fabsf(from[i]);
}

/* sum |w| |x| + softcap: what an error of fp32 is relative to. */
static float *dot_magnitudes(const struct test_matrix *t, const float *x, uint32_t n_tokens, float softcap)
{
    size_t w_size = (size_t)t->m.n_rows * t->m.n_cols, x_size = (size_t)n_tokens * t->m.n_cols;
    float *w = zeros(w_size), *positive = zeros(x_size), *sums = zeros((size_t)n_tokens * t->m.n_rows);
    absolute(w, t->w, w_size);
    absolute(positive, x, x_size);
    pd_reference_matmul(sums, w, positive, t->m.n_rows, t->m.n_cols, n_tokens, 0);
    for (size_t i = 0; i < (size_t)n_tokens * t->m.n_rows; i++) sums[i] += softcap;
    free(w);
    free(positive);
    return sums;
}

/* Weights and activations are rounded to 11 bits, by some drivers towards zero. */
#define COOP_TOLERANCE 0x1p-9

/* Tokens of which some are large, as Gemma's are, and some small. */
static float *random_activations(uint32_t n_tokens, uint32_t n_cols, float amplitude)
{
    static const float factors[] = {1, 1e5f, 1e-5f};
    float *x = random_floats((size_t)n_tokens * n_cols, amplitude);
    for (size_t i = 0; i < (size_t)n_tokens * n_cols; i++) x[i] *= factors[i / n_cols % PD_COUNT(factors)];
    return x;
}

static void run_matmul_as(enum pd_variant variant, const struct part *parts, uint32_t n_parts, uint32_t n_cols, uint32_t n_tokens,
                          float softcap)
{
    struct test_matrix t = {.m.n_cols = n_cols};
    begin_case("matmul %s, %u parts of %u rows, %u columns, %u tokens, softcap %g, variant %d", pd_dtypes[parts[0].dtype].name,
               n_parts, parts[0].n_rows, n_cols, n_tokens, (double)softcap, (int)variant);
    pd_variants_force(&bench.r.variants, PD_VARIANT_MATMUL_MATVEC);
    pd_variants_force(&bench.r.variants, variant);
    for (uint32_t i = 0; i < n_parts; i++) add_slice(&t, parts[i].dtype, parts[i].n_rows);
    float *x = random_activations(n_tokens, n_cols, softcap != 0 ? 40 : 1), *y = zeros((size_t)n_tokens * t.m.n_rows);
    struct buffer *x_rows = make_rows(x, n_tokens, n_cols), *y_rows = make_rows(NULL, n_tokens, t.m.n_rows);
    if (variant == PD_VARIANT_MATMUL_COOP) {
        struct buffer *packed = make_words(NULL, n_tokens, pd_packed_stride(n_cols), pd_packed_stride(n_cols));
        packed->written = true;
        bench.r.packed = address_of(packed);
    }
    pd_op_matmul(&bench.r, rows_of(y_rows), &t.m, rows_of(x_rows), n_tokens, softcap);
    run_case();
    pd_reference_matmul(y, t.w, x, t.m.n_rows, n_cols, n_tokens, softcap);
    float *magnitudes = dot_magnitudes(&t, x, n_tokens, softcap);
    check_rows(y_rows, y, magnitudes, variant == PD_VARIANT_MATMUL_COOP ? COOP_TOLERANCE : 1e-6);
    end_case();
    free(t.w);
    free(x);
    free(y);
    free(magnitudes);
}

/* Every variant that the device has. */
static void run_matmul(const struct part *parts, uint32_t n_parts, uint32_t n_cols, uint32_t n_tokens, float softcap)
{
    for (int v = n_tokens == 1 ? PD_VARIANT_MATMUL_MATVEC : 0; v <= PD_VARIANT_MATVEC_COLUMNS; v++)
        if (pd_variant_available(pd_gpu_info(bench.gpu), (enum pd_variant)v))
            run_matmul_as((enum pd_variant)v, parts, n_parts, n_cols, n_tokens, softcap);
}

static const uint32_t plain_cols[] = {4, 32, 36, 100}, block_cols[] = {32, 96, 256, 2304}, super_cols[] = {256, 512, 768, 2304};

static const uint32_t *cols_of(enum pd_dtype dtype)
{
    uint32_t block_len = pd_dtypes[dtype].block_len;
    return block_len == 1 ? plain_cols : block_len == 32 ? block_cols : super_cols;
}

/* Half of all combinations: every pair of numbers meets in some type. */
static void test_matmul(void **state)
{
    (void)state;
    static const uint32_t n_rows[] = {1, 3, 33, 257}, n_tokens[] = {1, 2, 15, 31, 33, 70};
    for (int dtype = 0; dtype < PD_N_DTYPES; dtype++)
        for (size_t c = 0; c < 4; c++)
            for (size_t r = 0; r < PD_COUNT(n_rows); r++)
                for (size_t t = 0; t < PD_COUNT(n_tokens); t++) {
                    struct part part = {(enum pd_dtype)dtype, n_rows[r]};
                    if (((size_t)dtype + c + r + t) % 2) run_matmul(&part, 1, cols_of(part.dtype)[c], n_tokens[t], (r + t) % 3 == 0 ? 30 : 0);
                }
}

/* As q, k and v of a file that mixes types, and as a matrix larger than an allocation. */
static void test_matmul_slices(void **state)
{
    (void)state;
    static const struct part mixed[] = {{PD_Q4_0, 33}, {PD_F32, 5}, {PD_Q8_0, 64}},
        halves[] = {{PD_BF16, 1}, {PD_F16, 40}}, split[] = {{PD_Q8_0, 20}, {PD_Q8_0, 20}, {PD_Q8_0, 7}};
    static const uint32_t n_tokens[] = {1, 2, 33};
    for (size_t t = 0; t < PD_COUNT(n_tokens); t++) {
        run_matmul(mixed, 3, 96, n_tokens[t], 0);
        run_matmul(halves, 2, 36, n_tokens[t], 30);
        run_matmul(split, 3, 288, n_tokens[t], 0);
    }
}

/* ---- pack ---- */

/* fp16 with its own power of two for a row gives the row back, to 11 bits (by some drivers rounded towards zero), whether it is
 * large or small or zeros; and zeros follow it. */
static void run_pack(uint32_t n_cols, uint32_t n_tokens, float amplitude)
{
    uint32_t stride = pd_packed_stride(n_cols), n_padded = 2 * (stride - PD_PACK_TAIL);
    begin_case("pack %u columns, %u tokens of %g", n_cols, n_tokens, (double)amplitude);
    float *x = random_activations(n_tokens, n_cols, amplitude);
    struct buffer *x_rows = make_rows(x, n_tokens, n_cols), *packed = make_words(NULL, n_tokens, stride - PD_PACK_TAIL + 1, stride);
    struct pd_pack_push push = {.x = address_of(x_rows), .packed = address_of(packed), .n_cols = n_cols, .x_stride = x_rows->stride,
        .packed_stride = stride};
    dispatch(PD_KERNEL_pack, NULL, 0, &push, n_tokens, 1);
    run_case();
    packed->written = true;
    for (uint32_t m = 0; m < n_tokens; m++) {
        const uint32_t *words = row_words(packed, m);
        float scale = pd_f32_from_bits(words[n_padded / 2]), largest = 0;
        for (uint32_t i = 0; i < n_cols; i++) largest = fmaxf(largest, fabsf(x[m * n_cols + i]));
        for (uint32_t i = 0; i < n_padded; i++) {
            float got = scale * pd_f32_from_f16((uint16_t)(words[i / 2] >> 16 * (i % 2))), want = i < n_cols ? x[m * n_cols + i] : 0;
            if (!(fabsf(got - want) <= fmaxf(fabsf(want) * 0x1p-10f, largest * 0x1p-38f)))
                fail_msg("%s: [%u][%u] is %.9g, not %.9g", bench.label, m, i, (double)got, (double)want);
        }
    }
    end_case();
    free(x);
}

static void test_pack(void **state)
{
    (void)state;
    static const uint32_t widths[] = {4, 36, 64, 100, 2304}, n_tokens[] = {1, 2, 31};
    static const float amplitudes[] = {0, 1e-24f, 1, 1e24f};
    for (size_t n = 0; n < PD_COUNT(widths); n++)
        for (size_t t = 0; t < PD_COUNT(n_tokens); t++)
            for (size_t a = 0; a < PD_COUNT(amplitudes); a++) run_pack(widths[n], n_tokens[t], amplitudes[a]);
}

/* ---- embed ---- */

static void run_embed(enum pd_dtype dtype, uint32_t n_cols, uint32_t rows_per_slice, uint32_t n_slices, uint32_t n_tokens)
{
    struct test_matrix t = {.m.n_cols = n_cols};
    const float scale = 33.941125f;   /* sqrt(1152) */
    begin_case("embed %s, %u columns, %u slices of %u rows, %u tokens", pd_dtypes[dtype].name, n_cols, n_slices, rows_per_slice, n_tokens);
    for (uint32_t i = 0; i < n_slices; i++)
        add_slice(&t, dtype, i + 1 == n_slices ? (rows_per_slice + 1) / 2 : rows_per_slice);
    uint32_t tokens[70];
    uint64_t addresses[PD_COUNT(t.slices)];
    for (uint32_t i = 0; i < n_slices; i++) addresses[i] = t.slices[i].address;
    for (uint32_t m = 0; m < n_tokens; m++) tokens[m] = m % 3 == 0 ? t.m.n_rows - 1 - m % t.m.n_rows : m * 7 % t.m.n_rows;
    struct pd_table table = {.matrix = &t.m, .rows_per_slice = rows_per_slice,
        .addresses = make_words(addresses, 1, 2 * n_slices, 2 * n_slices)->span};
    struct buffer *ids = make_words(tokens, 1, n_tokens, n_tokens), *x_rows = make_rows(NULL, n_tokens, n_cols);
    pd_op_embed(&bench.r, rows_of(x_rows), &table, address_of(ids), n_tokens, scale);
    run_case();
    float *x = zeros((size_t)n_tokens * n_cols), *magnitudes = zeros((size_t)n_tokens * n_cols);
    pd_reference_embed(x, t.w, tokens, n_tokens, n_cols, scale);
    absolute(magnitudes, x, (size_t)n_tokens * n_cols);
    check_rows(x_rows, x, magnitudes, 2e-7);
    end_case();
    free(t.w);
    free(x);
    free(magnitudes);
}

static void test_embed(void **state)
{
    (void)state;
    for (int dtype = 0; dtype < PD_N_DTYPES; dtype++)
        for (size_t c = 0; c < 4; c++) {
            uint32_t n_cols = cols_of((enum pd_dtype)dtype)[c];
            run_embed((enum pd_dtype)dtype, n_cols, 33, 1, 1);
            run_embed((enum pd_dtype)dtype, n_cols, 5, 8, 70);
            run_embed((enum pd_dtype)dtype, n_cols, 1, 3, 2);
        }
}

/* ---- rmsnorm ---- */

struct norm_kind {
    bool add, post, out;
};

static void run_rmsnorm(struct norm_kind kind, uint32_t n, uint32_t n_tokens, float amplitude)
{
    begin_case("rmsnorm%s%s%s of %u, %u tokens of %g", kind.add ? ", add" : "", kind.post ? ", post" : "", kind.out ? ", out" : "",
               n, n_tokens, (double)amplitude);
    size_t size = (size_t)n_tokens * n;
    float *x = random_floats(size, amplitude), *y = random_floats(size, amplitude / 3), *normed = zeros(size);
    float *w = random_floats(n, 2), *w_post = random_floats(n, amplitude);
    struct buffer *x_rows = make_rows(x, n_tokens, n), *y_rows = make_rows(y, n_tokens, n), *normed_rows = make_rows(NULL, n_tokens, n);
    struct pd_norm norm = {.x = rows_of(x_rows), .y = rows_of(kind.add ? y_rows : NULL), .normed = rows_of(normed_rows),
        .w_post = kind.post ? address_of(make_rows(w_post, 1, n)) : 0, .w = kind.out ? address_of(make_rows(w, 1, n)) : 0,
        .n = n, .eps = 1e-6f};
    pd_op_rmsnorm(&bench.r, &norm, n_tokens);
    run_case();
    pd_reference_rmsnorm(x, normed, kind.add ? y : NULL, kind.post ? w_post : NULL, kind.out ? w : NULL, n, n_tokens, norm.eps);
    if (kind.add) check_rows(x_rows, x, NULL, 2e-6);
    if (kind.out) check_rows(normed_rows, normed, NULL, 2e-6);
    end_case();
    free(x);
    free(y);
    free(normed);
    free(w);
    free(w_post);
}

/* Residuals reach 1e5; at 1e-3 epsilon counts. */
static void test_rmsnorm(void **state)
{
    (void)state;
    static const struct norm_kind kinds[] = {
        {false, false, true}, {true, false, true}, {true, true, true}, {true, false, false}, {true, true, false}};
    static const uint32_t widths[] = {4, 36, 100, 256, 640, 2304}, n_tokens[] = {1, 2, 31, 70};
    static const float amplitudes[] = {1e-3f, 1, 1e5f};
    for (size_t k = 0; k < PD_COUNT(kinds); k++)
        for (size_t n = 0; n < PD_COUNT(widths); n++)
            for (size_t t = 0; t < PD_COUNT(n_tokens); t++)
                run_rmsnorm(kinds[k], widths[n], n_tokens[t], amplitudes[(k + n + t) % PD_COUNT(amplitudes)]);
}

/* ---- glu ---- */

#define GLU_TOLERANCE 2e-6

/* The other GELU, which Gemma does not use. */
static double gelu_erf(double x) { return 0.5 * x * (1 + erf(x / sqrt(2))); }

/* |gate| |up|: near zero GELU is as exact as tanh is near -1. Also sees that the tolerance tells the two GELUs apart. */
static float *glu_magnitudes(const float *x, const float *y, uint32_t n, uint32_t n_tokens, bool silu)
{
    float *magnitudes = zeros((size_t)n_tokens * n);
    uint32_t n_apart = 0;
    for (uint32_t m = 0; m < n_tokens; m++)
        for (uint32_t i = 0; i < n; i++) {
            double gate = (double)x[(size_t)m * 2 * n + i], up = (double)x[(size_t)m * 2 * n + n + i];
            magnitudes[(size_t)m * n + i] = (float)fabs(gate * up);
            n_apart += fabs(gelu_erf(gate) * up - (double)y[(size_t)m * n + i]) > 10 * GLU_TOLERANCE * fabs(gate * up);
        }
    if (!silu && n >= 36) assert_true(n_apart > n_tokens * n / 8);
    return magnitudes;
}

static void run_glu(uint32_t n, uint32_t n_tokens, bool silu)
{
    begin_case("glu %s of %u, %u tokens", silu ? "silu" : "gelu", n, n_tokens);
    float *x = random_floats((size_t)n_tokens * 2 * n, 6), *y = zeros((size_t)n_tokens * n);
    static const float extremes[] = {0, 1e5f, -1e5f, 20, -20, 1e-6f, -1e-30f, 3e13f, -3e13f};
    for (size_t i = 0; i < PD_COUNT(extremes) && i < n; i++) x[i] = extremes[i];
    struct buffer *x_rows = make_rows(x, n_tokens, 2 * n), *y_rows = make_rows(NULL, n_tokens, n);
    pd_op_glu(&bench.r, rows_of(y_rows), rows_of(x_rows), n, n_tokens, silu);
    run_case();
    pd_reference_glu(y, x, n, n_tokens, silu);
    float *magnitudes = glu_magnitudes(x, y, n, n_tokens, silu);
    check_rows(y_rows, y, magnitudes, GLU_TOLERANCE);
    end_case();
    free(x);
    free(y);
    free(magnitudes);
}

static void test_glu(void **state)
{
    (void)state;
    static const uint32_t widths[] = {1, 4, 36, 100, 257, 2304}, n_tokens[] = {1, 2, 31};
    for (size_t n = 0; n < PD_COUNT(widths); n++)
        for (size_t t = 0; t < PD_COUNT(n_tokens); t++) {
            run_glu(widths[n], n_tokens[t], false);
            run_glu(widths[n], n_tokens[t], true);
        }
}

/* ---- a matrix with its norm before it, and with the gated unit behind it ---- */

struct joined_case {
    enum pd_dtype dtypes[2];
    uint32_t n_slices, n_rows, n_cols;   /* rows of each slice */
    int branch;                          /* 0: none, 1: added, 2: added normed */
    bool stores_x;                       /* else the normed vector */
    int glu;                             /* 0: none, 1: GELU, 2: SiLU */
};

static void run_joined(const struct joined_case *c, float amplitude, enum pd_variant variant)
{
    struct test_matrix t = {.m.n_cols = c->n_cols};
    begin_case("joined %s, %u slices of %u rows, %u columns of %g, branch %d, glu %d, variant %d", pd_dtypes[c->dtypes[0]].name, c->n_slices,
               c->n_rows, c->n_cols, (double)amplitude, c->branch, c->glu, (int)variant);
    pd_variants_force(&bench.r.variants, variant);
    for (uint32_t i = 0; i < c->n_slices; i++) add_slice(&t, c->dtypes[i], c->n_rows);
    uint32_t n = c->n_cols, n_rows = t.m.n_rows, n_out = c->glu ? n_rows / 2 : n_rows;
    float *x = random_floats(n, amplitude), *branch = random_floats(n, amplitude / 2), *w = random_floats(n, 2), *w_post = random_floats(n, amplitude);
    float *normed = zeros(n), *sums = zeros(n_rows), *y = zeros(n_out);
    struct buffer *store = make_rows(NULL, 1, n), *y_row = make_rows(NULL, 1, n_out), *both = make_rows(NULL, 1, n_rows);
    struct pd_joined in = {.x = address_of(make_rows(x, 1, n)), .branch = c->branch ? address_of(make_rows(branch, 1, n)) : 0,
        .w_post = c->branch == 2 ? address_of(make_rows(w_post, 1, n)) : 0, .w = address_of(make_rows(w, 1, n)), .n = n, .eps = 1e-6f};
    *(c->stores_x ? &in.x_out : &in.normed) = address_of(store);
    both->written = c->glu && c->n_slices == 2 && c->dtypes[0] != c->dtypes[1];
    float softcap = c->glu ? 0 : 30;
    if (c->glu) pd_op_joined_gated(&bench.r, rows_of(y_row), &t.m, &in, c->glu == 2, rows_of(both));
    else pd_op_joined_matvec(&bench.r, rows_of(y_row), &t.m, &in, softcap);
    run_case();
    pd_reference_rmsnorm(x, normed, c->branch ? branch : NULL, c->branch == 2 ? w_post : NULL, w, n, 1, in.eps);
    check_rows(store, c->stores_x ? x : normed, NULL, 3e-6);
    float *magnitudes = dot_magnitudes(&t, normed, 1, softcap);
    pd_reference_matmul(sums, t.w, normed, n_rows, n, 1, softcap);
    if (c->glu) pd_reference_glu(y, sums, n_out, 1, c->glu == 2);
    for (uint32_t i = 0; c->glu && i < n_out; i++) magnitudes[i] *= magnitudes[n_out + i] * 1.2f;   /* |act'| stays below 1.2 */
    check_rows(y_row, c->glu ? y : sums, magnitudes, 5e-6);
    end_case();
    float *all[] = {x, branch, w, w_post, normed, sums, y, magnitudes, t.w};
    for (size_t i = 0; i < PD_COUNT(all); i++) free(all[i]);
}

static void test_joined(void **state)
{
    (void)state;
    static const struct joined_case cases[] = {
        {{PD_F32}, 1, 33, 100, 0, false, 0},   {{PD_F16}, 1, 1, 36, 1, true, 0},      {{PD_BF16}, 1, 257, 2304, 2, true, 0},
        {{PD_Q8_0}, 1, 64, 96, 2, true, 0},    {{PD_Q4_0}, 1, 40, 640, 2, false, 0},  {{PD_Q4_K, PD_Q6_K}, 2, 33, 256, 2, true, 0},
        {{PD_F32}, 1, 66, 100, 2, true, 1},    {{PD_Q8_0}, 1, 70, 2304, 1, true, 2},  {{PD_Q4_0}, 1, 514, 96, 2, true, 1},
        {{PD_F32, PD_F32}, 2, 33, 64, 2, true, 1}, {{PD_Q4_K, PD_Q5_K}, 2, 35, 512, 2, true, 1}, {{PD_Q6_K}, 1, 2, 256, 1, true, 2}};
    static const float amplitudes[] = {1e-3f, 1, 1e5f};
    for (size_t i = 0; i < PD_COUNT(cases); i++)
        for (enum pd_variant v = PD_VARIANT_MATVEC_ROWS; v <= PD_VARIANT_MATVEC_COLUMNS; v++)
            if (pd_variant_available(pd_gpu_info(bench.gpu), v)) run_joined(&cases[i], amplitudes[i % PD_COUNT(amplitudes)], v);
}

/* ---- measure ---- */

/* What reads or computes leaves no trace; what copies, copies all. */
static void test_measure(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 300, 5000};
    for (size_t i = 0; i < PD_COUNT(sizes); i++)
        for (uint32_t mode = 0; mode < 3; mode++) {
            uint32_t n = sizes[i], spec[] = {64, mode};
            begin_case("measure mode %u, %u vectors", mode, n);
            float *from = random_floats(4 * (size_t)n, 1);
            struct buffer *source = make_rows(from, 1, 4 * n), *to = make_rows(NULL, 1, 4 * n);
            struct pd_measure_push push = {.from = address_of(source), .to = address_of(to), .n = mode == 2 ? 3 : n, .factor = 0.9f};
            dispatch(PD_KERNEL_measure, spec, 2, &push, 7, 1);
            run_case();
            if (mode == 1) check_rows(to, from, NULL, 0);
            end_case();
            free(from);
        }
}

static void test_coverage(void **state)
{
    (void)state;
    check_covered("test_kernels");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matmul), cmocka_unit_test(test_matmul_slices), cmocka_unit_test(test_pack), cmocka_unit_test(test_embed),
        cmocka_unit_test(test_rmsnorm), cmocka_unit_test(test_glu), cmocka_unit_test(test_joined), cmocka_unit_test(test_measure),
        cmocka_unit_test(test_coverage),
    };
    return cmocka_run_group_tests_name("kernels", tests, open_bench, close_bench);
}

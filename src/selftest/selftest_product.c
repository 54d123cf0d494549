/* Matrix products of every weight type against the CPU reference: by themselves, of experts, and with a norm before
 * them. Kernels compute in fp32, so tolerances are those of sums in another order: relative to the sum of magnitudes of
 * a dot product. */
#include "selftest/selftest_.h"

#include "ops/ops.h"

#include <math.h>

/* ---- products ---- */

static void add_bias(struct pd_trial *t, struct pd_trial_matrix *m)
{
    m->bias = pd_trial_random(t, m->m.n_rows, 3);
    m->bias_address = pd_trial_rows(t, m->bias, 1, m->m.n_rows)->address;
}

static struct pd_linear linear_of(const struct pd_trial_matrix *m, float softcap)
{
    return (struct pd_linear){.w = m->m, .bias = m->bias_address, .softcap = softcap};
}

static struct pd_reference_matrix reference_of(const struct pd_trial_matrix *m)
{
    return (struct pd_reference_matrix){.w = m->w, .n_rows = m->m.n_rows, .n_cols = m->m.n_cols, .bias = m->bias};
}

/* sum |w| |x| + |bias| + softcap: what an error of fp32 is relative to. */
static float *dot_magnitudes(struct pd_trial *t, const struct pd_trial_matrix *m, const float *x, uint32_t n_tokens,
                             float softcap)
{
    uint32_t n_rows = m->m.n_rows, n_cols = m->m.n_cols;
    const float *w = pd_trial_absolute(t, m->w, (size_t)n_rows * n_cols);
    const float *positive = pd_trial_absolute(t, x, (size_t)n_tokens * n_cols);
    float *sums = pd_trial_floats(t, (size_t)n_tokens * n_rows);
    const struct pd_reference_matrix magnitudes = {.w = w, .n_rows = n_rows, .n_cols = n_cols,
        .bias = m->bias ? pd_trial_absolute(t, m->bias, n_rows) : NULL};
    pd_reference_matmul(sums, &magnitudes, positive, n_tokens, 0);
    for (size_t i = 0; i < (size_t)n_tokens * n_rows; i++) sums[i] += softcap;
    return sums;
}

/* Weights and activations are rounded to 11 bits, for cooperative matrices by some drivers towards zero; and so are, in
 * matmul_half, sums of 16 products. */
#define FP16_TOLERANCE 0x1p-9
#define FP32_TOLERANCE 1e-6

static bool is_fp16(enum pd_variant v) { return v == PD_VARIANT_MATMUL_COOP || v == PD_VARIANT_MATMUL_HALF; }

static bool is_quantised(enum pd_dtype dtype) { return pd_dtypes[dtype].block_len > 1; }

/* Half a step, which is the largest value of a block over 127 * 256, and what fp32 adds by way of the scale and its
 * inverse. */
#define Q16_TOLERANCE (0.5 / (127 * 256) + 0x1p-20)

/* matvec_dot keeps its rounded x to itself: the error of each number is relative to the largest of its block. */
static float *block_largest(struct pd_trial *t, const float *x, size_t n)
{
    float *to = pd_trial_floats(t, n);
    for (size_t b = 0; b < n; b += 32)
        for (size_t i = b; i < b + 32; i++)
            for (size_t k = b; k < b + 32; k++) to[i] = fmaxf(to[i], fabsf(x[k]));
    return to;
}

static bool takes_dot(const struct pd_trial *t) { return t->variants.of[PD_VARIED_MATVEC] == PD_VARIANT_MATVEC_DOT; }

struct expected {
    float *y, *magnitudes;     /* of each element: what it is, and what its error is relative to */
};

/* The rows of y that slices of plain numbers give, which read x itself, by other kernels: magnitudes are as much larger
 * where those round to fp16. */
static void put_plain_rows(struct pd_trial *t, const struct expected *e, const struct pd_trial_matrix *m,
                           const float *x, uint32_t n_tokens, float softcap)
{
    uint32_t n_rows = m->m.n_rows;
    enum pd_variant variant = t->variants.of[PD_VARIED_MATMUL];
    float *plain = pd_trial_floats(t, (size_t)n_tokens * n_rows);
    const struct pd_reference_matrix reference = reference_of(m);
    pd_reference_matmul(plain, &reference, x, n_tokens, softcap);
    for (const struct pd_slice *s = m->slices; s < m->slices + m->m.n_slices; s++) {
        bool fp16 = is_fp16(pd_variant_for_type(variant, (uint32_t)s->dtype));
        for (uint32_t i = 0; !is_quantised(s->dtype) && i < n_tokens * s->n_rows; i++) {
            size_t at = (size_t)(i / s->n_rows) * n_rows + s->first_row + i % s->n_rows;
            e->y[at] = plain[at];
            if (fp16) e->magnitudes[at] *= (float)(FP16_TOLERANCE / FP32_TOLERANCE);
        }
    }
}

static enum pd_kernel_id pack_for(const struct pd_trial *t, enum pd_dtype dtype)
{
    return pd_variant_pack(t->variants.of[PD_VARIED_MATMUL], (uint32_t)dtype);
}

static bool is_for_dots(enum pd_kernel_id pack) { return pack == PD_KERNEL_pack_q8 || pack == PD_KERNEL_pack_q16; }

/* Where the tested kernel reads x packed: room for n rows of it, or of what other slices read; else NULL. */
static struct pd_trial_buffer *add_packed(struct pd_trial *t, enum pd_dtype dtype, uint32_t n, uint32_t n_cols)
{
    enum pd_kernel_id by = pack_for(t, dtype);
    if (by == PD_N_KERNELS) return NULL;
    uint32_t stride = pd_packed_stride(by, n_cols);
    struct pd_trial_buffer *packed = pd_trial_words(t, NULL, (uint32_t)pd_div_up(n * pd_packed_most(n_cols), stride),
                                                     stride, stride);
    packed->written = true;
    t->r.packed = packed->address;
    return packed;
}

/* Room for what n splits find, in numbers. */
static void add_split_sums(struct pd_trial *t, uint32_t n)
{
    struct pd_trial_buffer *sums = pd_trial_words(t, NULL, 1, n, n);
    sums->written = true;
    t->r.split_sums = sums->address;
    t->r.n_splits = t->n_splits;
}

struct product {
    struct pd_trial_part parts[3];
    uint32_t n_parts, n_cols, n_tokens;
    float softcap;
};

/* The product with the packed x must be right to fp32; how near that is to x is tested by try_pack_blocks. */
static void check_product(struct pd_trial *t, const struct pd_trial_matrix *m, const struct product *c, const float *x,
                          struct pd_trial_buffer *y_rows, const struct pd_trial_buffer *packed)
{
    enum pd_variant variant = t->variants.of[PD_VARIED_MATMUL];
    enum pd_kernel_id pack = pack_for(t, c->parts[0].dtype);
    bool for_dots = is_for_dots(pack), rounds = takes_dot(t) && c->n_tokens == 1;
    const struct pd_reference_matrix reference = reference_of(m);
    const float *seen = for_dots ? pd_unpack_dot(t, packed, pack, c->n_cols) : x;
    float *y = pd_trial_floats(t, (size_t)c->n_tokens * m->m.n_rows);
    pd_reference_matmul(y, &reference, seen, c->n_tokens, c->softcap);
    float *magnitudes = dot_magnitudes(t, m, rounds ? block_largest(t, x, c->n_cols) : seen, c->n_tokens, c->softcap);
    if (for_dots) put_plain_rows(t, &(struct expected){y, magnitudes}, m, x, c->n_tokens, c->softcap);
    pd_trial_check_rows(t, y_rows, y, magnitudes, is_fp16(variant) ? FP16_TOLERANCE
                        : rounds ? Q16_TOLERANCE + FP32_TOLERANCE : FP32_TOLERANCE);
}

static void try_product(struct pd_trial *t, const struct product *c)
{
    struct pd_trial_matrix m;
    uint32_t n_cols = c->n_cols, n_tokens = c->n_tokens;
    pd_trial_begin(t, "product with %s, %u parts of %u rows, %u columns, %u tokens, softcap %g, %u splits",
                   pd_dtypes[c->parts[0].dtype].name, c->n_parts, c->parts[0].n_rows, n_cols, n_tokens,
                   (double)c->softcap, t->n_splits);
    pd_trial_matrix(t, &m, c->parts, c->n_parts, n_cols);
    if (m.m.n_rows % 2 && n_cols % 64 == 0) add_bias(t, &m);
    const float *x = pd_random_activations(t, n_tokens, n_cols, c->softcap != 0 ? 40 : 1);
    struct pd_trial_buffer *x_rows = pd_trial_rows(t, x, n_tokens, n_cols);
    struct pd_trial_buffer *y_rows = pd_trial_rows(t, NULL, n_tokens, m.m.n_rows);
    const struct pd_trial_buffer *packed = add_packed(t, c->parts[0].dtype, n_tokens, n_cols);
    if (t->n_splits) add_split_sums(t, t->n_splits * n_tokens * m.m.n_rows);
    const struct pd_linear linear = linear_of(&m, c->softcap);
    pd_op_linear(&t->r, pd_trial_rows_of(y_rows), &linear, pd_trial_rows_of(x_rows), n_tokens);
    pd_trial_run(t);
    if (t->ran) check_product(t, &m, c, x, y_rows, packed);
    pd_trial_end(t);
}

/* Half of all combinations: every pair of numbers meets in some type. */
static void try_products(struct pd_trial *t, enum pd_dtype dtype, const uint32_t *n_tokens, size_t n_n_tokens)
{
    static const uint32_t n_rows[] = {1, 3, 33, 257};
    for (size_t c = 0; c < 4; c++)
        for (size_t r = 0; r < PD_COUNT(n_rows); r++)
            for (size_t m = 0; m < n_n_tokens; m++) {
                bool taken = t->thorough ? (dtype + c + r + m) % 2 : (r + c) % 4 == 0 && m == c % n_n_tokens;
                if (taken)
                    try_product(t, &(struct product){{{dtype, n_rows[r]}}, 1, pd_trial_cols(dtype)[c], n_tokens[m],
                                                     (r + m) % 3 == 0 ? 30 : 0});
            }
}

/* As q, k and v of a file that mixes types (which read x packed alike, as only the last is looked at), and as a matrix
 * larger than an allocation. */
static void try_slices(struct pd_trial *t, enum pd_dtype dtype, uint32_t n_tokens)
{
    uint32_t n_cols = pd_trial_cols(dtype)[2];
    enum pd_dtype other = pack_for(t, dtype) == pack_for(t, PD_Q8_0) ? PD_Q8_0 : PD_Q4_0;
    const struct product cases[] = {
        {{{dtype, 33}, {PD_F32, 5}, {other, 64}}, 3, (uint32_t)pd_align(n_cols, 32), n_tokens, 0},
        {{{dtype, 20}, {dtype, 20}, {dtype, 7}}, 3, n_cols, n_tokens, 30}};
    for (size_t i = 0; i < PD_COUNT(cases); i++) try_product(t, &cases[i]);
}

/* Columns that workgroups share, the last of them fewer or none; with a bias where n_rows is odd and n_cols of 64. */
static void try_splits(struct pd_trial *t, enum pd_dtype dtype)
{
    const uint32_t *of_blocks = pd_trial_cols(dtype) + 2, plain[] = {832, 1000};
    const uint32_t *n_cols = is_quantised(dtype) ? of_blocks : plain;
    const struct { uint32_t n_splits; struct product product; } cases[] = {
        {3, {{{dtype, 65}}, 1, n_cols[0], 33, 30}}, {2, {{{dtype, 130}}, 1, n_cols[1], 17, 0}},
        {64, {{{dtype, 3}}, 1, n_cols[0], 2, 30}}, {5, {{{dtype, 33}}, 1, n_cols[1], 70, 0}}};
    for (size_t i = 0; i < PD_COUNT(cases); i++) {
        if (!t->thorough && i != dtype % PD_COUNT(cases)) continue;
        t->n_splits = cases[i].n_splits;
        try_product(t, &cases[i].product);
    }
    if (t->thorough) try_slices(t, dtype, 33);
    t->n_splits = 0;
}

/* ---- experts ---- */

/* Slots of random choices, the first expert having none and the last those of half of the tokens. */
static uint32_t *make_slots(struct pd_trial *t, const struct pd_routes *e, uint32_t n_slots)
{
    uint32_t n_pairs = e->n_tokens * e->n_used, *chosen = pd_trial_zeros(t, n_pairs * sizeof *chosen);
    uint32_t *words = pd_trial_zeros(t, (4 * n_slots + n_pairs) * sizeof *words), at = 4 * n_slots, slot = 0;
    for (uint32_t i = 0; i < n_pairs; i++) {
        uint32_t any = (uint32_t)(pd_random_next(&t->random) >> 40);
        chosen[i] = i / e->n_used % 2 && i % e->n_used == 0 ? e->n_experts - 1 : 1 + any % (e->n_experts - 1);
    }
    for (uint32_t x = 0; x < e->n_experts; x++) {
        uint32_t first = at;
        for (uint32_t i = 0; i < n_pairs; i++)
            if (chosen[i] == x) words[at++] = i;
        if (at == first) continue;
        words[4 * slot] = x;
        words[4 * slot + 1] = at - first;
        words[4 * slot++ + 2] = first;
    }
    return words;
}

struct experts {
    enum pd_dtype dtype;
    struct pd_routes routes;
    uint32_t n_rows, n_cols;   /* of an expert */
    bool shares, biased;       /* a token's pairs have the same x; there is a bias */
    int glu;                   /* 0: none, else PD_GELU, ...: of the halves of the rows; shares is then true */
};

/* What a row of x gives in the matrix of one expert. */
static void expect_expert(struct pd_trial *t, const struct experts *c, const struct expected *e,
                          const struct pd_trial_matrix *own, const float *x, bool rounds)
{
    const struct pd_reference_matrix reference = reference_of(own);
    uint32_t n = c->glu ? c->n_rows / 2 : c->n_rows;
    float *sums = pd_trial_floats(t, c->n_rows);
    const float *largest = dot_magnitudes(t, own, rounds ? block_largest(t, x, c->n_cols) : x, 1, 0);
    pd_reference_matmul(sums, &reference, x, 1, 0);
    if (c->glu) pd_reference_glu(e->y, sums, n, 1, (uint32_t)c->glu);
    else memcpy(e->y, sums, n * sizeof *sums);
    /* |act'| stays below 1.2; clamped, the other factor is one more */
    float more = c->glu == PD_CLAMPED_SILU ? 1 : 0;
    for (uint32_t i = 0; i < n; i++)
        e->magnitudes[i] = c->glu ? largest[i] * (largest[n + i] + more) * 1.2f : largest[i];
}

static void record_experts(struct pd_trial *t, const struct experts *c, const struct pd_routes *e,
                           struct pd_trial_matrix *m, struct pd_rows x, struct pd_rows y)
{
    struct pd_linear linear = linear_of(m, 0);
    linear.n_experts = e->n_experts;
    if (!c->glu) {
        pd_op_experts(&t->r, y, &linear, x, e, c->shares ? e->n_used : 1);
        return;
    }
    struct pd_trial_buffer *both = pd_trial_rows(t, NULL, e->n_tokens * e->n_used, c->n_rows);
    uint32_t row_interleave = m->slices[0].row_interleave;
    both->written = row_interleave > 1 && c->n_rows / 2 % row_interleave != 0;   /* the halves share a group of rows */
    const struct pd_gated gated = {y, x, pd_trial_rows_of(both), (uint32_t)c->glu};
    pd_op_experts_gated(&t->r, &linear, &gated, e);
}

static void try_experts(struct pd_trial *t, const struct experts *c)
{
    struct pd_trial_matrix m;
    struct pd_routes e = c->routes;
    const struct pd_trial_part part = {c->dtype, e.n_experts * c->n_rows};
    uint32_t n_pairs = e.n_tokens * e.n_used, n_slots = (uint32_t)pd_min(e.n_experts, n_pairs);
    uint32_t x_share = c->shares ? e.n_used : 1, n_x = n_pairs / x_share, n_words = 4 * n_slots + n_pairs;
    uint32_t n_cols = c->n_cols, n_out = c->glu ? c->n_rows / 2 : c->n_rows;
    pd_trial_begin(t, "experts %s, %u of %u with %u rows, %u columns, %u tokens, glu %d%s", pd_dtypes[c->dtype].name,
                   e.n_used, e.n_experts, c->n_rows, n_cols, e.n_tokens, c->glu, c->biased ? ", biased" : "");
    pd_trial_matrix(t, &m, &part, 1, n_cols);
    if (c->biased) add_bias(t, &m);
    float *x = pd_random_activations(t, n_x, n_cols, 1), *y = pd_trial_floats(t, (size_t)n_pairs * n_out);
    float *magnitudes = pd_trial_floats(t, (size_t)n_pairs * n_out);
    const uint32_t *slots = make_slots(t, &e, n_slots);
    struct pd_trial_buffer *x_rows = pd_trial_rows(t, x, n_x, n_cols);
    struct pd_trial_buffer *y_rows = pd_trial_rows(t, NULL, n_pairs, n_out);
    e.slots = pd_trial_words(t, slots, 1, n_words, n_words)->address;
    struct pd_trial_buffer *packed = add_packed(t, c->dtype, n_x, n_cols);
    record_experts(t, c, &e, &m, pd_trial_rows_of(x_rows), pd_trial_rows_of(y_rows));
    pd_trial_run(t);
    if (!t->ran) {
        pd_trial_end(t);
        return;
    }
    enum pd_variant variant = t->variants.of[PD_VARIED_MATMUL];
    bool rounds = takes_dot(t) && e.n_tokens == 1 && is_quantised(c->dtype);
    enum pd_kernel_id pack = pack_for(t, c->dtype);
    if (is_for_dots(pack)) x = pd_unpack_dot(t, packed, pack, n_cols);
    for (uint32_t s = 0; s < n_slots; s++)
        for (uint32_t i = 0; i < slots[4 * s + 1]; i++) {
            uint32_t pair = slots[slots[4 * s + 2] + i], first = slots[4 * s] * c->n_rows;
            const struct pd_trial_matrix own = {.m = {.n_rows = c->n_rows, .n_cols = n_cols},
                .w = m.w + (size_t)first * n_cols, .bias = m.bias ? m.bias + first : NULL};
            const struct expected expected = {y + (size_t)pair * n_out, magnitudes + (size_t)pair * n_out};
            expect_expert(t, c, &expected, &own, x + (size_t)(pair / x_share) * n_cols, rounds);
        }
    pd_trial_check_rows(t, y_rows, y, magnitudes, is_fp16(variant) ? FP16_TOLERANCE
                        : (rounds ? (c->glu ? 2 : 1) * Q16_TOLERANCE : 0) + (c->glu ? 5e-6 : 1e-6));
    pd_trial_end(t);
}

/* Halves of a gated matrix that are whole groups of rows, for every other type, and halves that are not. */
static uint32_t gated_rows(enum pd_dtype dtype, uint32_t n_rows)
{
    return dtype % 2 ? (uint32_t)pd_align(n_rows, 16) : n_rows;
}

/* Where rows and pairs lie does not depend on the type: several tokens with some types are enough. */
struct experts_row {
    uint32_t n_experts, n_used, n_tokens, n_rows;
    uint32_t cols;           /* which of pd_trial_cols */
    bool shares;
    int glu;
    bool thorough;           /* not where a user waits, */
    uint32_t every, turn;    /* and with one type of so many only, which is its turn */
    bool biased;
};

static void try_experts_rows(struct pd_trial *t, enum pd_dtype dtype, const struct experts_row *rows, size_t n)
{
    for (const struct experts_row *r = rows; r < rows + n; r++) {
        if (r->thorough && !(t->thorough && dtype % r->every == r->turn)) continue;
        const struct experts c = {.dtype = dtype, .n_cols = pd_trial_cols(dtype)[r->cols], .shares = r->shares,
            .routes = {.n_experts = r->n_experts, .n_used = r->n_used, .n_tokens = r->n_tokens}, .glu = r->glu,
            .biased = r->biased,
            .n_rows = r->glu ? gated_rows(dtype, r->n_rows) : r->n_rows};
        try_experts(t, &c);
    }
}

/* ---- squares ---- */

/* Of all tokens, where there are no experts, or of each its own; experts without tokens keep their sums. */
static void try_squares(struct pd_trial *t, uint32_t n, uint32_t n_rows, struct pd_routes e, uint32_t x_share)
{
    uint32_t n_pairs = e.n_experts ? e.n_tokens * e.n_used : n_rows, n_experts = (uint32_t)pd_max(e.n_experts, 1);
    uint32_t n_slots = (uint32_t)pd_min(n_experts, n_pairs), n_words = 4 * n_slots + n_pairs, *slots = NULL;
    pd_trial_begin(t, "squares of %u columns, %u rows, %u experts", n, n_rows, e.n_experts);
    float *x = pd_trial_random(t, (size_t)n_rows * n, 3), *sums = pd_trial_random(t, n_experts * (n + 1), 5);
    float *magnitudes = pd_trial_floats(t, n_experts * (n + 1));
    struct pd_trial_buffer *rows = pd_trial_rows(t, x, n_rows, n),
                           *out = pd_trial_words(t, sums, n_experts, n + 1, n + 1);
    if (e.n_experts) slots = make_slots(t, &e, n_slots);
    if (slots) e.slots = pd_trial_words(t, slots, 1, n_words, n_words)->address;
    pd_op_squares(&t->r, &(struct pd_squares){.x = pd_trial_rows_of(rows), .sums = out->address, .n = n,
        .n_tokens = slots ? e.n_tokens : n_rows, .routes = slots ? &e : NULL, .x_share = x_share});
    pd_trial_run(t);
    for (uint32_t i = 0; i < n_experts * (n + 1); i++) magnitudes[i] = fabsf(sums[i]);
    for (uint32_t k = 0; k < n_slots * (n + 1); k++) {
        uint32_t s = k / (n + 1), i = k % (n + 1), at = slots ? slots[4 * s] * (n + 1) + i : i;
        double sum = 0;
        for (uint32_t m = 0; m < (slots ? slots[4 * s + 1] : n_rows); m++) {
            const float *row = x + (size_t)(slots ? slots[slots[4 * s + 2] + m] / x_share : m) * n;
            sum += i < n ? (double)row[i] * (double)row[i] : 1;
        }
        magnitudes[at] += (float)sum;
        sums[at] = (float)(sum + (double)sums[at]);
    }
    pd_trial_check_rows(t, out, sums, magnitudes, 1e-6);
    pd_trial_end(t);
}

void pd_try_squares(struct pd_trial *t, uint32_t type)
{
    (void)type;
    static const struct { uint32_t n, n_rows, n_experts, n_used, x_share; } cases[] = {{1, 1, 0, 0, 0},
        {36, 3, 0, 0, 0}, {64, 18, 5, 2, 1}, {257, 7, 0, 0, 0}, {2304, 2, 0, 0, 0}, {63, 9, 9, 3, 3},
        /* for tests: */ {4, 33, 0, 0, 0}, {65, 128, 0, 0, 0}, {100, 1, 8, 2, 2}, {640, 5, 0, 0, 0}};
    for (size_t k = 0; k < (t->thorough ? PD_COUNT(cases) : 6); k++) {
        uint32_t n_rows = cases[k].n_rows, n_used = cases[k].n_used, x_share = cases[k].x_share;
        const struct pd_routes e = {.n_experts = cases[k].n_experts, .n_used = n_used,
            .n_tokens = n_used ? n_rows * x_share / n_used : 0};
        try_squares(t, cases[k].n, n_rows, e, x_share);
    }
}

/* ---- a matrix with its norm before it, and with the gated unit behind it ---- */

struct fused_norm {
    enum pd_dtype dtypes[2];
    uint32_t n_slices, n_rows, n_cols;   /* rows of each slice */
    int branch;                          /* 0: none, 1: added, 2: added normed */
    bool stores_x;                       /* else the normed vector */
    int glu;                             /* 0: none, or PD_GELU, ... */
};

struct fused_norm_data {
    float *x, *branch, *w, *w_post, *normed;
    struct pd_trial_buffer *store;
    struct pd_fused_norm in;
};

static void make_fused_norm(struct pd_trial *t, struct fused_norm_data *d, const struct fused_norm *c, float amplitude)
{
    uint32_t n = c->n_cols;
    *d = (struct fused_norm_data){.x = pd_trial_random(t, n, amplitude), .branch = pd_trial_random(t, n, amplitude / 2),
        .w = pd_trial_random(t, n, 2), .w_post = pd_trial_random(t, n, amplitude), .normed = pd_trial_floats(t, n)};
    d->store = pd_trial_rows(t, NULL, 1, n);
    struct pd_trial_buffer *branch = pd_trial_rows(t, d->branch, 1, n), *w_post = pd_trial_rows(t, d->w_post, 1, n);
    if (c->branch == 0) d->branch = NULL;
    if (c->branch != 2) d->w_post = NULL;
    d->in = (struct pd_fused_norm){.x = pd_trial_rows(t, d->x, 1, n)->address,
        .branch = d->branch ? branch->address : 0, .w_post = d->w_post ? w_post->address : 0,
        .w = pd_trial_rows(t, d->w, 1, n)->address, .n = n, .eps = 1e-6f,
        .x_scale = n % 64 ? 1 : -1.3f};
    *(c->stores_x ? &d->in.x_out : &d->in.normed) = d->store->address;
}

static void try_fused_norm(struct pd_trial *t, const struct fused_norm *c, float amplitude)
{
    struct pd_trial_matrix m;
    struct fused_norm_data d;
    struct pd_trial_part parts[] = {{c->dtypes[0], c->n_rows}, {c->dtypes[1], c->n_rows}};
    pd_trial_begin(t, "norm and product with %s, %u slices of %u rows, %u columns of %g, branch %d, glu %d",
                   pd_dtypes[c->dtypes[0]].name, c->n_slices, c->n_rows, c->n_cols, (double)amplitude, c->branch,
                   c->glu);
    pd_trial_matrix(t, &m, parts, c->n_slices, c->n_cols);
    if (c->branch == 2) add_bias(t, &m);
    make_fused_norm(t, &d, c, amplitude);
    uint32_t n = c->n_cols, n_rows = m.m.n_rows, n_out = c->glu ? n_rows / 2 : n_rows;
    float *sums = pd_trial_floats(t, n_rows), *y = pd_trial_floats(t, n_out), softcap = c->glu ? 0 : 30;
    struct pd_trial_buffer *y_row = pd_trial_rows(t, NULL, 1, n_out), *both = pd_trial_rows(t, NULL, 1, n_rows);
    /* the halves share a group of rows */
    bool parted = m.slices[0].row_interleave > 1 && n_out % m.slices[0].row_interleave != 0;
    both->written = c->glu && (c->n_slices == 2 ? c->dtypes[0] != c->dtypes[1] : parted);
    const struct pd_linear linear = linear_of(&m, softcap);
    const struct pd_reference_matrix reference = reference_of(&m);
    if (c->glu)
        pd_op_fused_norm_gated(&t->r, pd_trial_rows_of(y_row), &linear, &d.in, (uint32_t)c->glu,
                               pd_trial_rows_of(both));
    else pd_op_fused_norm_linear(&t->r, pd_trial_rows_of(y_row), &linear, &d.in);
    pd_trial_run(t);
    if (!t->ran) {
        pd_trial_end(t);
        return;
    }
    const struct pd_reference_norm norm = {d.branch, d.w_post, d.w, n, d.in.eps, d.in.x_scale};
    pd_reference_rmsnorm(d.x, d.normed, &norm, 1);
    pd_trial_check_rows(t, d.store, c->stores_x ? d.x : d.normed, NULL, 3e-6);
    float *magnitudes = dot_magnitudes(t, &m, takes_dot(t) ? block_largest(t, d.normed, n) : d.normed, 1, softcap);
    pd_reference_matmul(sums, &reference, d.normed, 1, softcap);
    if (c->glu) pd_reference_glu(y, sums, n_out, 1, (uint32_t)c->glu);
    /* |act'| stays below 1.2 */
    for (uint32_t i = 0; c->glu && i < n_out; i++) magnitudes[i] *= magnitudes[n_out + i] * 1.2f;
    pd_trial_check_rows(t, y_row, c->glu ? y : sums, magnitudes, (takes_dot(t) ? 2 * Q16_TOLERANCE : 0) + 5e-6);
    pd_trial_end(t);
}

/* Each type gets some of the widths and kinds, as each is a pipeline to compile. */
static void try_all_fused_norm(struct pd_trial *t, enum pd_dtype dtype)
{
    static const struct { uint32_t n_slices, n_rows; int branch; bool stores_x, mixed; int glu; } kinds[] = {
        {1, 33, 0, false, false, 0}, {1, 514, 2, true, false, 1},  {1, 1, 1, true, false, 0},
          {1, 70, 1, true, false, 2},
        {1, 257, 2, true, false, 0}, {2, 33, 2, true, false, 1},   {2, 35, 2, false, true, 0},
         {2, 35, 2, true, true, 1}};
    static const float amplitudes[] = {1e-3f, 1, 1e5f};
    for (size_t k = 0; k < PD_COUNT(kinds); k++) {
        if (k >= 2 && !(t->thorough && (k + dtype) % 3 == 0)) continue;
        struct fused_norm c = {{dtype, kinds[k].mixed ? PD_F16 : dtype}, kinds[k].n_slices,
            kinds[k].glu ? gated_rows(dtype, kinds[k].n_rows) : kinds[k].n_rows,
            pd_trial_cols(dtype)[k < 2 ? 3 : (k + dtype) % 3], kinds[k].branch, kinds[k].stores_x, kinds[k].glu};
        if (kinds[k].mixed && dtype == PD_F16) c.dtypes[1] = PD_F32;
        if (pd_can_fuse_norm(t->gpu, c.n_cols)) try_fused_norm(t, &c, amplitudes[(k + dtype) % PD_COUNT(amplitudes)]);
    }
}

/* The tunings that a search may choose (pd_tune), each with some of the types and uses. */
static void try_tunings(struct pd_trial *t, enum pd_dtype dtype)
{
    struct pd_tuning tuning;
    struct pd_tunings all;
    const struct fused_norm normed = {{dtype, dtype}, 1, 131, pd_trial_cols(dtype)[3], 2, true, 0};
    const struct fused_norm gated = {{dtype, dtype}, 1, gated_rows(dtype, 262), pd_trial_cols(dtype)[2], 1, true, 1};
    uint32_t turns = t->thorough ? 8 : PD_N_DTYPES;
    enum pd_kernel_id id = pd_variant_kernel(t->variants.of[PD_VARIED_MATVEC], (uint32_t)dtype);
    for (uint32_t at = 0; pd_tuning_at(&tuning, pd_gpu_info(t->gpu), at); at++) {
        uint32_t use = (at + (uint32_t)dtype / turns) % PD_N_USES;
        if (at % turns != (uint32_t)dtype % turns || !pd_tuning_fits(tuning, id, (enum pd_use)use)) continue;
        all = pd_tunings_of(tuning);
        t->variants.tunings = &all;
        const struct product plain = {{{dtype, 259}}, 1, pd_trial_cols(dtype)[1 + at / 3 % 3], 1, 0};
        if (use == PD_USE_PLAIN) try_product(t, &plain);
        if (use == PD_USE_NORMED && pd_can_fuse_norm(t->gpu, normed.n_cols)) try_fused_norm(t, &normed, 1);
        if (use == PD_USE_GATED && pd_can_fuse_norm(t->gpu, gated.n_cols)) try_fused_norm(t, &gated, 1);
    }
    t->variants.tunings = NULL;
}

void pd_try_matvec(struct pd_trial *t, uint32_t type)
{
    static const uint32_t n_tokens[] = {1, 2, 7, 8, 15, 31};
    static const struct experts_row experts[] = {
        {5, 2, 1, 33, 1, true, 0, false, 1, 0, false}, {33, 8, 9, 24, 0, false, 0, true, 4, 0, true},
        {5, 2, 1, 34, 1, true, PD_GELU, false, 1, 0, false}, {5, 2, 9, 34, 1, true, PD_SILU, true, 2, 0, false},
        {5, 2, 9, 34, 1, true, PD_CLAMPED_SILU, true, 2, 1, true},
        {5, 2, 1, 34, 1, true, PD_CLAMPED_SILU, true, 8, 2, true}};
    enum pd_dtype dtype = (enum pd_dtype)type;
    try_products(t, dtype, n_tokens, PD_COUNT(n_tokens));
    try_all_fused_norm(t, dtype);
    try_tunings(t, dtype);
    try_experts_rows(t, dtype, experts, PD_COUNT(experts));
    if (!t->thorough) return;
    try_slices(t, dtype, 1);
    try_slices(t, dtype, 2);
}

void pd_try_matmul(struct pd_trial *t, uint32_t type)
{
    static const uint32_t n_tokens[] = {2, 15, 31, 33, 70};
    static const struct experts_row experts[] = {
        {5, 2, 2, 33, 1, true, 0, false, 1, 0, false}, {33, 8, 35, 24, 0, false, 0, true, 4, 0, true},
        {3, 2, 70, 65, 1, true, 0, true, 4, 1, false}};   /* enough tokens for larger tiles */
    enum pd_dtype dtype = (enum pd_dtype)type;
    try_products(t, dtype, n_tokens, PD_COUNT(n_tokens));
    try_experts_rows(t, dtype, experts, PD_COUNT(experts));
    if (t->thorough) try_slices(t, dtype, 33);
    try_splits(t, dtype);
    /* Rows enough for larger tiles; which, depends on the tokens. A software device tries each with some types. */
    bool all = pd_gpu_info(t->gpu)->type != PERIDOT_DEVICE_CPU;
    for (uint32_t i = 0; i < 3; i++)
        if (all || type % 3 == i)
            try_product(t, &(struct product){{{dtype, 8200}}, 1, pd_trial_cols(dtype)[0], n_tokens[2 + i], 0});
}

void pd_try_matmul_reduce(struct pd_trial *t, uint32_t type)
{
    static const enum pd_dtype dtypes[] = {PD_F32, PD_Q8_0, PD_Q4_K};
    (void)type;
    for (size_t i = 0; i < PD_COUNT(dtypes); i++) try_splits(t, dtypes[i]);
}

/* What adapters add to rows of a matrix, against the CPU reference: the products of their first matrices, as other
 * matrices' are, and the kernel that adds those of the second ones. */
#include "selftest/selftest_.h"

#include <math.h>

enum { N_ADAPTERS = 3, N_PARTS = 4 };

/* To all rows, and to some of them, as of q and v in one matrix: two parts of the first adapter, one of each other. */
static void make_parts(struct pd_lora_part parts[N_PARTS], uint32_t n_rows, uint32_t rank)
{
    const uint32_t third = n_rows / 3, ranks[N_PARTS] = {rank, 1, 2 * rank + 1, rank};
    const uint32_t first_rows[N_PARTS] = {0, 0, third, n_rows - third}, ends[N_PARTS] = {n_rows, third, n_rows, n_rows};
    uint32_t first = 0, b = 0;
    for (uint32_t k = 0; k < N_PARTS; k++) {
        parts[k] = (struct pd_lora_part){.adapter = k % N_ADAPTERS, .first = first, .rank = ranks[k],
            .first_row = first_rows[k], .n_rows = ends[k] - first_rows[k], .b = b};
        first += ranks[k];
        b += ranks[k] * parts[k].n_rows;
    }
}

static void make_scales(float *scales, struct pd_trial *t, uint32_t n_tokens)
{
    for (uint32_t i = 0; i < n_tokens * N_ADAPTERS; i++)
        scales[i] = (i / N_ADAPTERS + i) % 3 == 0 ? 0 : pd_random_uniform(&t->random);
}

static void try_lora(struct pd_trial *t, uint32_t n_rows, uint32_t n_cols, uint32_t rank, uint32_t n_tokens)
{
    struct pd_lora_part *parts;
    pd_trial_begin(t, "lora of rank %u to %u x %u, %u tokens", rank, n_rows, n_cols, n_tokens);
    parts = pd_trial_zeros(t, N_PARTS * sizeof *parts);
    make_parts(parts, n_rows, rank);
    const struct pd_lora_part *last = &parts[N_PARTS - 1];
    uint32_t n_ranks = last->first + last->rank, n_b = last->b + last->rank * last->n_rows;
    float *a = pd_trial_random(t, (size_t)n_ranks * n_cols, 0.1f), *b = pd_trial_random(t, n_b, 1);
    float *x = pd_trial_random(t, (size_t)n_tokens * n_cols, 2), *scales = pd_trial_floats(t, n_tokens * N_ADAPTERS);
    float *w = pd_trial_random(t, (size_t)n_rows * n_cols, 0.1f), *inner = pd_trial_floats(t, n_tokens * n_ranks);
    float *y = pd_trial_floats(t, n_tokens * n_rows), *magnitudes = pd_trial_floats(t, n_tokens * n_rows);
    make_scales(scales, t, n_tokens);
    uint32_t words = n_cols;
    struct pd_slice of_w = {pd_trial_words(t, w, n_rows, words, words)->address, PD_F32, 0, n_rows, 4 * words, 1},
                    of_a = {pd_trial_words(t, a, n_ranks, words, words)->address, PD_F32, 0, n_ranks, 4 * words, 1};
    const struct pd_lora lora = {.a = {.w = {n_ranks, n_cols, 1, &of_a}, .exact = true},
        .b = pd_trial_words(t, b, 1, n_b, n_b)->address, .n_parts = N_PARTS,
        .parts = pd_trial_words(t, parts, N_PARTS, sizeof *parts / 4, sizeof *parts / 4)->address};
    const struct pd_linear linear = {.w = {n_rows, n_cols, 1, &of_w}, .exact = true, .lora = &lora};
    struct pd_trial_buffer *y_rows = pd_trial_rows(t, NULL, n_tokens, n_rows),
                           *inner_rows = pd_trial_rows(t, NULL, n_tokens, n_ranks);
    t->r.lora = pd_trial_rows_of(inner_rows);
    t->r.lora_scales = pd_trial_words(t, scales, n_tokens, N_ADAPTERS, N_ADAPTERS)->address;
    t->r.n_adapters = N_ADAPTERS;
    t->r.decode = n_tokens == 1;
    pd_op_linear(&t->r, pd_trial_rows_of(y_rows), &linear, pd_trial_rows_of(pd_trial_rows(t, x, n_tokens, n_cols)),
                 n_tokens);
    pd_trial_run(t);
    pd_reference_matmul(inner, &(struct pd_reference_matrix){a, n_ranks, n_cols, NULL}, x, n_tokens, 0);
    pd_reference_matmul(y, &(struct pd_reference_matrix){w, n_rows, n_cols, NULL}, x, n_tokens, 0);
    const struct pd_reference_lora reference = {parts, b, scales, N_PARTS, n_rows, n_ranks, N_ADAPTERS};
    pd_reference_lora(y, magnitudes, &reference, inner, n_tokens);
    for (uint32_t i = 0; i < n_tokens * n_rows; i++) magnitudes[i] += 1;
    pd_trial_check_rows(t, inner_rows, inner, NULL, 1e-5);
    pd_trial_check_rows(t, y_rows, y, magnitudes, 4e-6);
    pd_trial_end(t);
}

void pd_try_lora(struct pd_trial *t, uint32_t type)
{
    (void)type;
    static const uint32_t shapes[][3] = {{7, 32, 1}, {64, 64, 4}, {100, 96, 3}, {300, 256, 16}};
    static const uint32_t n_tokens[] = {1, 3, 33};
    for (size_t s = 0; s < PD_COUNT(shapes); s++)
        for (size_t m = 0; m < PD_COUNT(n_tokens); m++)
            if (t->thorough || m == s % 3) try_lora(t, shapes[s][0], shapes[s][1], shapes[s][2], n_tokens[m]);
}

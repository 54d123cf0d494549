/* Texts side by side in one submit give the rows that each gives alone, whatever stands beside it: lengths below and
 * beyond the window, one token, the same text twice. */
#include "peridot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "relative_error.h"

enum { CHUNK = 96, MAX_WIDTH = 512, N_TEXTS = 6 };

static const size_t lengths[N_TEXTS] = {1, 7, 40, 7, 2, 33};   /* windows are 12 and 16 */

struct rows {
    float at[N_TEXTS][48][MAX_WIDTH];
    uint32_t n[N_TEXTS];
    size_t width;
    peridot_sequence *sequences[N_TEXTS];
};

static size_t text_of(const struct rows *rows, const peridot_sequence *q)
{
    size_t i = 0;
    while (i < N_TEXTS && rows->sequences[i] != q) i++;
    assert_true(i < N_TEXTS);
    return i;
}

static bool keep_row(void *user, peridot_sequence *q, uint32_t pos, const float *row, size_t n)
{
    struct rows *rows = user;
    size_t sequence = text_of(rows, q);
    assert_true(n <= MAX_WIDTH);
    for (size_t later = sequence + 1; later < N_TEXTS; later++) assert_int_equal(rows->n[later], 0); /* text by text */
    assert_int_equal(pos, rows->n[sequence]);
    memcpy(rows->at[sequence][rows->n[sequence]++], row, n * sizeof *row);
    rows->width = n;
    return true;
}

/* Row 0 of each text is the row of its last position. */
static bool keep_last_row(void *user, peridot_sequence *q, uint32_t pos, const float *row, size_t n)
{
    struct rows *rows = user;
    size_t sequence = text_of(rows, q);
    assert_int_equal(pos, lengths[sequence] - 1);
    assert_int_equal(rows->n[sequence]++, 0);
    memcpy(rows->at[sequence][0], row, n * sizeof *row);
    return true;
}

/* Fourth text equals the second. */
static void make_text(int32_t *tokens, size_t text)
{
    for (size_t j = 0; j < lengths[text]; j++)
        tokens[j] = (int32_t)(j == 0 ? 2 : (17 * (text == 3 ? 1 : text) + 31 * j) % 90);
}

static void check_model(const char *path, bool hidden, const char *kernel)
{
    static int32_t tokens[N_TEXTS][48];
    peridot_model *model = NULL;
    peridot_session *s = NULL;
    peridot_prompt prompts[N_TEXTS];
    struct rows *alone = calloc(1, sizeof *alone), *together = calloc(1, sizeof *together),
                *ends = calloc(1, sizeof *ends);
    assert_non_null(alone);
    assert_non_null(together);
    assert_non_null(ends);
    assert_int_equal(
        peridot_model_open(&model, path, &(peridot_model_params){.kernels = &kernel, .n_kernels = kernel != NULL}),
        PERIDOT_OK);
    peridot_session_params params = {.ctx = 96, .chunk = CHUNK, .kv_type = PERIDOT_KV_F32, .n_sequences = N_TEXTS};
    assert_int_equal(peridot_session_create(&s, model, &params), PERIDOT_OK);
    assert_int_equal(peridot_session_chunk(s), CHUNK);
    for (size_t i = 0; i < N_TEXTS; i++) {
        peridot_sequence *q;
        make_text(tokens[i], i);
        assert_int_equal(peridot_sequence_create(&q, s), PERIDOT_OK);
        prompts[i] = (peridot_prompt){q, tokens[i], lengths[i]};
        alone->sequences[i] = together->sequences[i] = ends->sequences[i] = q;
    }
    peridot_eval_params one = {.logits = hidden ? NULL : keep_row, .hidden = hidden ? keep_row : NULL, .user = alone};
    peridot_eval_params all = {
        .logits = hidden ? NULL : keep_row, .hidden = hidden ? keep_row : NULL, .user = together};
    peridot_eval_params last = {
        .logits = hidden ? NULL : keep_last_row, .hidden = hidden ? keep_last_row : NULL, .last = true, .user = ends};
    for (size_t i = 0; i < N_TEXTS; i++) {
        assert_int_equal(peridot_eval(s, &prompts[i], 1, &one), PERIDOT_OK);
        assert_int_equal(peridot_sequence_truncate(prompts[i].sequence, 0, NULL), PERIDOT_OK);
    }
    assert_int_equal(peridot_eval(s, prompts, N_TEXTS, &all), PERIDOT_OK);
    for (size_t i = 0; i < N_TEXTS; i++)
        assert_int_equal(peridot_sequence_truncate(prompts[i].sequence, 0, NULL), PERIDOT_OK);
    assert_int_equal(peridot_eval(s, prompts, N_TEXTS, &last), PERIDOT_OK);
    for (size_t i = 0; i < N_TEXTS; i++) assert_int_equal(peridot_sequence_pos(prompts[i].sequence), lengths[i]);
    for (size_t i = 0; i < N_TEXTS; i++) {
        assert_int_equal(together->n[i], lengths[i]);
        assert_int_equal(ends->n[i], 1);
        assert_true(relative_error(ends->at[i][0], alone->at[i][lengths[i] - 1], alone->width) < 1e-5);
        for (size_t j = 0; j < lengths[i]; j++)
            if (!(relative_error(together->at[i][j], alone->at[i][j], alone->width) < 1e-5))
                fail_msg("%s: text %zu, position %zu: %g apart", path, i, j,
                         relative_error(together->at[i][j], alone->at[i][j], alone->width));
    }
    peridot_session_free(s);
    peridot_model_close(model);
    free(alone);
    free(together);
    free(ends);
}

static void test_gemma2(void **state)
{
    (void)state;
    check_model(PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf", false, NULL);
}

/* Queries of several texts in one workgroup. */
static void test_attention_tiles(void **state)
{
    (void)state;
    check_model(PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf", false, "attention=tile");
}

static void test_gemma3_hidden(void **state)
{
    (void)state;
    check_model(PERIDOT_GOLDEN "/gemma3", true, NULL);
}

/* Layers that read the keys of others, and get inputs of their own. */
static void test_gemma4(void **state)
{
    (void)state;
    check_model(PERIDOT_GOLDEN "/gemma4-small", false, NULL);
    check_model(PERIDOT_GOLDEN "/dense/qwen35", false, NULL);
    check_model(PERIDOT_GOLDEN "/dense/qwen35-moe", false, NULL);
    check_model(PERIDOT_GOLDEN "/dense/qwen3-next", false, NULL);
    check_model(PERIDOT_GOLDEN "/dense/lfm2", false, NULL);
    check_model(PERIDOT_GOLDEN "/dense/granite4-h", false, NULL);
    check_model(PERIDOT_GOLDEN "/gemma4", false, "attention=tile");
}

static bool stop_early(void *user, peridot_sequence *sequence, uint32_t pos, const float *row, size_t n)
{
    (void)sequence, (void)pos, (void)row, (void)n;
    return ++*(int *)user < 3;
}

static void test_refusals(void **state)
{
    (void)state;
    peridot_model *model = NULL;
    peridot_session *s = NULL;
    peridot_sequence *q[2];
    const int32_t tokens[] = {2, 5, 9, 4}, bad[] = {2, 9999};
    int n_rows = 0;
    peridot_eval_params params = {.logits = stop_early, .user = &n_rows};
    assert_int_equal(peridot_model_open(&model, PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf", NULL), PERIDOT_OK);
    assert_int_equal(
        peridot_session_create(&s, model, &(peridot_session_params){.ctx = 32, .chunk = 8, .n_sequences = 2}),
        PERIDOT_OK);
    for (int i = 0; i < 2; i++) assert_int_equal(peridot_sequence_create(&q[i], s), PERIDOT_OK);
    const peridot_prompt twice[] = {{q[0], tokens, 4}, {q[1], tokens, 4}},
                         wrong[] = {{q[0], tokens, 1}, {q[1], bad, 2}}, same[] = {{q[0], tokens, 4}, {q[0], tokens, 4}};
    assert_int_equal(peridot_eval(s, wrong, 2, &params), PERIDOT_ERROR_ARGUMENT);
    assert_non_null(strstr(peridot_last_error(), "9999"));
    assert_int_equal(peridot_eval(s, same, 2, &params), PERIDOT_ERROR_ARGUMENT);
    assert_non_null(strstr(peridot_last_error(), "twice"));
    assert_int_equal(n_rows, 0);
    assert_int_equal(peridot_eval(s, twice, 2, &params), PERIDOT_CANCELLED);
    assert_int_equal(n_rows, 3);
    peridot_session_free(s);
    peridot_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemma2), cmocka_unit_test(test_attention_tiles), cmocka_unit_test(test_gemma3_hidden),
        cmocka_unit_test(test_gemma4),
        cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests_name("batch", tests, NULL, NULL);
}

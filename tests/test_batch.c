/* Texts side by side in one submit give the rows that each gives alone, whatever stands beside it: lengths below and beyond
 * the window, one token, the same text twice. */
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
    size_t text;        /* of a single evaluation */
};

static bool keep_batch_row(void *user, size_t sequence, uint32_t pos, const float *row, size_t n)
{
    struct rows *rows = user;
    assert_true(sequence < N_TEXTS && n <= MAX_WIDTH);
    assert_int_equal(pos, rows->n[sequence]);
    memcpy(rows->at[sequence][rows->n[sequence]++], row, n * sizeof *row);
    rows->width = n;
    return true;
}

static bool keep_row(void *user, uint32_t pos, const float *row, size_t n)
{
    return keep_batch_row(user, ((struct rows *)user)->text, pos, row, n);
}

/* Row 0 of each text is the row of its last position. */
static bool keep_last_row(void *user, size_t sequence, uint32_t pos, const float *row, size_t n)
{
    struct rows *rows = user;
    assert_int_equal(pos, lengths[sequence] - 1);
    assert_int_equal(rows->n[sequence]++, 0);
    memcpy(rows->at[sequence][0], row, n * sizeof *row);
    return true;
}

/* Fourth text equals the second. */
static void make_text(int32_t *tokens, size_t text)
{
    for (size_t j = 0; j < lengths[text]; j++) tokens[j] = (int32_t)(j == 0 ? 2 : (17 * (text == 3 ? 1 : text) + 31 * j) % 250);
}

static void check_model(const char *path, bool hidden, const char *kernel)
{
    static int32_t tokens[N_TEXTS][48];
    peridot_model *model = NULL;
    peridot_session *s = NULL;
    peridot_sequence sequences[N_TEXTS];
    struct rows *alone = calloc(1, sizeof *alone), *together = calloc(1, sizeof *together), *ends = calloc(1, sizeof *ends);
    assert_non_null(alone);
    assert_non_null(together);
    assert_non_null(ends);
    assert_int_equal(peridot_model_open(&model, path, &(peridot_model_params){.kernels = &kernel, .n_kernels = kernel != NULL}), PERIDOT_OK);
    assert_int_equal(peridot_session_create(&s, model, &(peridot_session_params){.ctx = 96, .chunk = CHUNK, .kv_type = PERIDOT_KV_F32}), PERIDOT_OK);
    assert_int_equal(peridot_session_chunk(s), CHUNK);
    for (size_t i = 0; i < N_TEXTS; i++) {
        make_text(tokens[i], i);
        sequences[i] = (peridot_sequence){tokens[i], lengths[i]};
        alone->text = i;
        peridot_eval_params one = {.logits = hidden ? NULL : keep_row, .hidden = hidden ? keep_row : NULL, .user = alone};
        assert_int_equal(peridot_eval(s, tokens[i], lengths[i], &one), PERIDOT_OK);
        peridot_session_reset(s);
    }
    peridot_batch_params all = {.logits = hidden ? NULL : keep_batch_row, .hidden = hidden ? keep_batch_row : NULL, .user = together};
    peridot_batch_params last = {.logits = hidden ? NULL : keep_last_row, .hidden = hidden ? keep_last_row : NULL, .last = true, .user = ends};
    assert_int_equal(peridot_eval_batch(s, sequences, N_TEXTS, &all), PERIDOT_OK);
    assert_int_equal(peridot_eval_batch(s, sequences, N_TEXTS, &last), PERIDOT_OK);
    assert_int_equal(peridot_session_pos(s), 0);
    for (size_t i = 0; i < N_TEXTS; i++) {
        assert_int_equal(together->n[i], lengths[i]);
        assert_int_equal(ends->n[i], 1);
        assert_true(relative_error(ends->at[i][0], alone->at[i][lengths[i] - 1], alone->width) < 1e-5);
        for (size_t j = 0; j < lengths[i]; j++)
            if (!(relative_error(together->at[i][j], alone->at[i][j], alone->width) < 1e-5))
                fail_msg("%s: text %zu, position %zu: %g apart", path, i, j, relative_error(together->at[i][j], alone->at[i][j], alone->width));
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

static bool stop_early(void *user, size_t sequence, uint32_t pos, const float *row, size_t n)
{
    (void)sequence, (void)pos, (void)row, (void)n;
    return ++*(int *)user < 3;
}

static void test_refusals(void **state)
{
    (void)state;
    peridot_model *model = NULL;
    peridot_session *s = NULL;
    const int32_t tokens[] = {2, 5, 9, 4}, bad[] = {2, 9999};
    peridot_sequence twice[] = {{tokens, 4}, {tokens, 4}, {tokens, 1}}, wrong[] = {{tokens, 1}, {bad, 2}};
    int n_rows = 0;
    peridot_batch_params params = {.logits = stop_early, .user = &n_rows};
    assert_int_equal(peridot_model_open(&model, PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf", NULL), PERIDOT_OK);
    assert_int_equal(peridot_session_create(&s, model, &(peridot_session_params){.ctx = 32, .chunk = 8}), PERIDOT_OK);
    assert_int_equal(peridot_eval_batch(s, twice, 3, &params), PERIDOT_ERROR_ARGUMENT);
    assert_non_null(strstr(peridot_last_error(), "9 tokens of 3 texts do not fit a chunk of 8"));
    assert_int_equal(peridot_eval_batch(s, wrong, 2, &params), PERIDOT_ERROR_ARGUMENT);
    assert_int_equal(n_rows, 0);
    assert_int_equal(peridot_eval_batch(s, twice, 2, &params), PERIDOT_CANCELLED);
    assert_int_equal(n_rows, 3);
    assert_int_equal(peridot_eval(s, tokens, 4, NULL), PERIDOT_OK);
    assert_int_equal(peridot_eval_batch(s, twice, 1, &params), PERIDOT_ERROR_ARGUMENT);
    assert_non_null(strstr(peridot_last_error(), "this has 4"));
    peridot_session_free(s);
    peridot_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemma2), cmocka_unit_test(test_attention_tiles), cmocka_unit_test(test_gemma3_hidden),
        cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests_name("batch", tests, NULL, NULL);
}

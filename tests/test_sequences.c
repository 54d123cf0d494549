/* Sequences of one session: each gives what it gives alone, bit for bit in decode steps, whatever the others do; they
 * begin anew and share one budget of positions. Going back, forks and files are in test_snapshots.c, requests on
 * sequences in test_requests.c. */
#include "sequences_fixture.h"
#include "relative_error.h"

/* ---- decode steps ---- */

struct rows {
    float at[N_STEPS + 1][MAX_WIDTH];
};

/* Of a text alone in a session that could have more: after the prompt, and after each step. */
static void eval_alone(struct rows *rows, peridot_model *model, uint32_t text, peridot_kv_type kv, size_t width)
{
    peridot_session *s = open_session(model, 2, kv);
    peridot_sequence *q = add(s);
    eval_prompt(q, text);
    copy_logits(rows->at[0], q, width);
    for (uint32_t i = 0; i < N_STEPS; i++) {
        eval(q, text, length_of(text) + i, length_of(text) + i + 1);
        copy_logits(rows->at[i + 1], q, width);
    }
    peridot_session_free(s);
}

/* In step i sequence k sits out now and then, and asks for its logits nonetheless. */
static bool is_in(uint32_t k, uint32_t i) { return (k + i) % 5 != 4; }

/* n sequences decode side by side: the logits of each are, bit for bit, those that it has alone. */
static void check_steps(const char *path, uint32_t n, peridot_kv_type kv, const char *kernel)
{
    peridot_model *model = open_model(path, kernel);
    size_t width = peridot_model_get_info(model)->n_outputs;
    peridot_session *s = open_session(model, n, kv);
    peridot_sequence *q[N_MOST];
    uint32_t n_done[N_MOST] = {0};
    struct rows *alone = calloc(n, sizeof *alone);
    float logits[MAX_WIDTH];
    assert_non_null(alone);
    for (uint32_t k = 0; k < n; k++) {
        eval_alone(&alone[k], model, k, kv, width);
        q[k] = add(s);
        eval_prompt(q[k], k);
    }
    for (uint32_t i = 0; i < N_STEPS; i++) {
        peridot_prompt prompts[N_MOST];
        int32_t tokens[N_MOST];
        uint32_t m = 0;
        for (uint32_t k = 0; k < n; k++) {
            if (n > 1 && !is_in(k, i)) continue;
            tokens[m] = token_of(k, length_of(k) + n_done[k]++);
            prompts[m] = (peridot_prompt){q[k], &tokens[m], 1};
            m++;
        }
        EXPECT_OK(peridot_eval(s, prompts, m, NULL));
        for (uint32_t k = n > 8 ? i % 7 : 0; k < n; k += n > 8 ? 7 : 1) {
            copy_logits(logits, q[k], width);
            assert_int_equal(peridot_sequence_pos(q[k]), length_of(k) + n_done[k]);
            if (memcmp(logits, alone[k].at[n_done[k]], width * sizeof *logits) != 0)
                fail_msg("%s: of %u sequences number %u after %u steps: %g apart", path, n, k, n_done[k],
                         relative_error(logits, alone[k].at[n_done[k]], width));
        }
    }
    peridot_session_free(s);
    peridot_model_close(model);
    free(alone);
}

static void test_gemma2(void **state)
{
    (void)state;
    static const uint32_t n[] = {1, 2, 7, 8, 33, 64};
    for (size_t i = 0; i < PD_COUNT(n); i++)
        check_steps(PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf", n[i], PERIDOT_KV_F16, NULL);
}

static void test_gemma3(void **state)
{
    (void)state;
    check_steps(PERIDOT_GOLDEN "/gemma3", 8, PERIDOT_KV_F16, NULL);
    check_steps(PERIDOT_GOLDEN "/gemma3-mixed/model.gguf", 7, PERIDOT_KV_F32, NULL);
    check_steps(PERIDOT_GOLDEN "/gemma3", 5, PERIDOT_KV_Q8_0, NULL);
}

static void test_llama(void **state)
{
    (void)state;
    check_steps(PERIDOT_GOLDEN "/llama/model.gguf", 33, PERIDOT_KV_F32, NULL);
    check_steps(PERIDOT_GOLDEN "/llama-quants/model.gguf", 5, PERIDOT_KV_F16, NULL);
}

/* Prompts go through tiles there, and decode steps must not, however many sequences there are. */
static void test_as_gpu(void **state)
{
    (void)state;
    check_steps(PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf", 33, PERIDOT_KV_F16, AS_GPU);
    check_steps(PERIDOT_GOLDEN "/llama-quants/model.gguf", 40, PERIDOT_KV_F32, AS_GPU);
    check_steps(PERIDOT_GOLDEN "/llama-quants/model.gguf", 6, PERIDOT_KV_Q8_0, AS_GPU);
}

/* Vectors so long that each slot of a norm sums several vec4s. */
static void test_long_norms(void **state)
{
    (void)state;
    static const uint32_t n[] = {1, 2, 7, 33};
    char path[128];
    snprintf(path, sizeof path, "%s/wide.gguf", folder);
    EXPECT_OK(peridot_make(path, &(peridot_make_params){.shape = "tiny-wide", .type = "q8_0", .seed = 5}));
    for (size_t i = 0; i < PD_COUNT(n); i++) check_steps(path, n[i], PERIDOT_KV_F16, NULL);
    check_steps(path, 7, PERIDOT_KV_F16, AS_GPU);
    assert_int_equal(remove(path), 0);
}

static void test_columns(void **state)
{
    (void)state;
    check_steps(PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf", 33, PERIDOT_KV_F32, "matvec=columns");
    check_steps(PERIDOT_GOLDEN "/llama-quants/model.gguf", 9, PERIDOT_KV_F32, "matvec=columns");
    check_steps(PERIDOT_GOLDEN "/gemma3", 3, PERIDOT_KV_F32, "attention=columns");
}

/* ---- a budget of positions ---- */

static void test_budget(void **state)
{
    (void)state;
    peridot_model *model = open_model(MODEL, NULL);
    peridot_session *s;
    EXPECT_OK(peridot_session_create(
        &s, model, &(peridot_session_params){.ctx = 256, .chunk = 16, .n_sequences = 3, .n_positions = 256}));
    peridot_sequence *a = add(s), *b = add(s), *c = add(s);
    eval(a, 1, 0, 256);
    eval(b, 2, 0, 100);   /* two pages more are there, for sequences' last pages */
    int32_t tokens[60] = {2};
    EXPECT_FAILURE(peridot_sequence_eval(c, tokens, 60, NULL), PERIDOT_ERROR_MEMORY, "cache is full", "384");
    assert_int_equal(peridot_sequence_pos(c), 0);
    peridot_sequence_free(b);
    eval(c, 3, 0, 128);
    EXPECT_OK(peridot_sequence_truncate(a, 0, NULL));
    eval(c, 3, 128, 256);
    peridot_session_free(s);
    peridot_model_close(model);
}

/* ---- cancelling ---- */

static bool cancel_at(void *user, peridot_sequence *q, uint32_t pos, const float *row, size_t n)
{
    (void)row, (void)n;
    if (pos == *(uint32_t *)user) peridot_cancel(peridot_sequence_session(q));
    return true;
}

static void test_cancel(void **state)
{
    (void)state;
    peridot_model *model = open_model(MODEL, NULL);
    peridot_session *s = open_session(model, 1, PERIDOT_KV_F16);
    peridot_sequence *q = add(s);
    uint32_t at = 20;
    int32_t tokens[100];
    for (uint32_t i = 0; i < 100; i++) tokens[i] = token_of(1, i);
    peridot_eval_params params = {.hidden = cancel_at, .user = &at};
    EXPECT_FAILURE(peridot_sequence_eval(q, tokens, 100, &params), PERIDOT_CANCELLED, "stopped");
    assert_int_equal(peridot_sequence_pos(q), 32);   /* the chunk that was at work stands */
    EXPECT_OK(peridot_sequence_eval(q, tokens + 32, 68, NULL));
    assert_int_equal(peridot_sequence_pos(q), 100);
    peridot_cancel(s);
    EXPECT_FAILURE(peridot_sequence_eval(q, tokens, 1, NULL), PERIDOT_CANCELLED, "stopped");
    EXPECT_OK(peridot_sequence_eval(q, tokens, 1, NULL));
    peridot_session_free(s);
    peridot_model_close(model);
}

/* ---- errors ---- */

static void test_errors(void **state)
{
    (void)state;
    peridot_model *model = open_model(MODEL, NULL);
    peridot_session *s = NULL;
    const float *logits;
    EXPECT_FAILURE(peridot_session_create(&s, model, &(peridot_session_params){.ctx = 8, .n_sequences = 65}),
                   PERIDOT_ERROR_ARGUMENT, "65 sequences", "64");
    assert_null(s);
    EXPECT_OK(peridot_session_create(&s, model, &(peridot_session_params){.ctx = 2, .chunk = 1, .n_sequences = 3}));
    peridot_sequence *q[] = {add(s), add(s), add(s)};
    const int32_t two = 2, bad = 9999, worse = -2;
    const peridot_prompt fine[] = {{q[0], &two, 1}, {q[2], &two, 1}}, wrong[] = {{q[0], &two, 1}, {q[1], &bad, 1}},
        negative[] = {{q[2], &worse, 1}}, none[] = {{q[0], NULL, 1}}, empty[] = {{q[0], NULL, 0}};
    EXPECT_FAILURE(peridot_eval(s, none, 1, NULL), PERIDOT_ERROR_ARGUMENT, "no tokens");
    EXPECT_FAILURE(peridot_eval(s, wrong, 2, NULL), PERIDOT_ERROR_ARGUMENT, "9999");
    EXPECT_FAILURE(peridot_eval(s, negative, 1, NULL), PERIDOT_ERROR_ARGUMENT, "-2");
    assert_int_equal(peridot_sequence_pos(q[0]), 0);
    EXPECT_OK(peridot_eval(s, empty, 1, NULL));
    EXPECT_FAILURE(peridot_logits(&logits, q[0]), PERIDOT_ERROR_ARGUMENT, "no token");
    EXPECT_OK(peridot_eval(s, fine, 2, NULL));
    EXPECT_OK(peridot_eval(s, fine, 2, NULL));
    EXPECT_FAILURE(peridot_eval(s, fine, 2, NULL), PERIDOT_ERROR_ARGUMENT, "1 token ", "2 positions");
    assert_int_equal(peridot_sequence_pos(q[1]), 0);
    EXPECT_FAILURE(peridot_logits(&logits, q[1]), PERIDOT_ERROR_ARGUMENT, "no token");
    peridot_session_free(s);
    peridot_model_close(model);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemma2), cmocka_unit_test(test_gemma3),     cmocka_unit_test(test_llama),
        cmocka_unit_test(test_as_gpu), cmocka_unit_test(test_long_norms), cmocka_unit_test(test_columns),
        cmocka_unit_test(test_budget), cmocka_unit_test(test_cancel),     cmocka_unit_test(test_errors),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("sequences", tests, make_folder, remove_folder);
}

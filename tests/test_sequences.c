/* Sequences of one session: as many as there can be, their one budget of positions, and errors. That each gives what it
 * gives alone is in test_invariance.c; going back, forks and files are in test_snapshots.c, requests on sequences in
 * test_requests.c. */
#include "sequences_fixture.h"

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

/* ---- as many as there can be ---- */

static void test_most(void **state)
{
    (void)state;
    peridot_model *model = open_model(MODEL, NULL);
    peridot_session *s = open_session(model, N_MOST, PERIDOT_KV_F16);
    peridot_sequence *q[N_MOST], *more;
    peridot_request *r[N_MOST];
    peridot_prompt prompts[N_MOST];
    int32_t tokens[N_MOST];
    size_t n_running;
    for (uint32_t k = 0; k < N_MOST; k++) {
        q[k] = add(s);
        tokens[k] = token_of(k, 0);
        prompts[k] = (peridot_prompt){q[k], &tokens[k], 1};
    }
    EXPECT_FAILURE(peridot_sequence_create(&more, s), PERIDOT_ERROR_ARGUMENT, "64", "sequences");
    EXPECT_OK(peridot_eval(s, prompts, N_MOST, NULL));
    for (uint32_t k = 0; k < N_MOST; k++) {
        int32_t prompt[CTX];
        for (uint32_t i = 0; i < length_of(k); i++) prompt[i] = token_of(k, i + 1);
        EXPECT_OK(peridot_request_create(
            &r[k], q[k], &(peridot_request_params){.prompt = prompt, .n_prompt = length_of(k), .n_max = 3}));
    }
    do EXPECT_OK(peridot_session_run(s, &n_running));
    while (n_running);
    for (uint32_t k = 0; k < N_MOST; k++) {
        peridot_stats stats = {.size = sizeof stats};
        peridot_status status;
        assert_true(peridot_request_done(r[k], &status, &stats));
        assert_int_equal(status, PERIDOT_OK);
        assert_in_range(stats.n_generated, 0, 3);
        assert_in_range(peridot_sequence_pos(q[k]), 1 + length_of(k), 1 + length_of(k) + 3);
        peridot_request_free(r[k]);
    }
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
        cmocka_unit_test(test_budget), cmocka_unit_test(test_most), cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_errors),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("sequences", tests, make_folder, remove_folder);
}

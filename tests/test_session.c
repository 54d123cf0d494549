/* Sessions on a golden model: that two do not disturb each other, that a reset forgets, how errors leave things, and
 * when generation stops. That logits are right is test_golden's business: here they are only the same or not. What a
 * step costs and small devices are in test_limits.c. */
#include "format_fixture.h"
#include "sequence_fixture.h"
#include "peridot_tools.h"

#include "api/api.h"

#define MODEL PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf"   /* windows of 16, 100 tokens */

enum { N_GOLDEN = 100, N_TOKENS = 150, MAX_VOCAB = 512 };   /* more than two pages */

static peridot_model *model;
static int32_t tokens[N_TOKENS];
static uint32_t vocab_size;

static int open_shared(void **state)
{
    FILE *f = fopen(PERIDOT_GOLDEN "/gemma2-q8_0/tokens.txt", "r");
    for (int i = 0; f && i < N_GOLDEN; i++)
        if (fscanf(f, "%d,", &tokens[i]) != 1) return -1;
    for (int i = N_GOLDEN; i < N_TOKENS; i++) tokens[i] = tokens[i - N_GOLDEN + 1];
    if (!f || fclose(f) != 0 || make_folder(state) != 0) return -1;
    if (peridot_model_open(&model, MODEL, NULL) != PERIDOT_OK) print_error("%s\n", pd_error());
    if (!model) return -1;
    vocab_size = peridot_model_get_info(model)->vocab_size;
    return vocab_size <= MAX_VOCAB ? 0 : -1;
}

static int close_shared(void **state)
{
    (void)state;
    peridot_model_close(model);
    return rmdir(folder);
}

static peridot_sequence *open_session(uint32_t ctx, uint32_t chunk, peridot_kv_type type)
{
    peridot_sequence *s;
    EXPECT_OK(open_sequence(&s, model, &(peridot_session_params){.ctx = ctx, .chunk = chunk, .kv_type = type}));
    return s;
}

/* ---- rows of logits ---- */

struct rows {
    float at[N_TOKENS][MAX_VOCAB];
    uint32_t n;
};

static bool keep_row(void *user, peridot_sequence *sequence, uint32_t pos, const float *row, size_t n)
{
    (void)sequence;
    struct rows *rows = user;
    assert_int_equal(pos, rows->n);
    memcpy(rows->at[rows->n++], row, n * sizeof *row);
    return true;
}

/* The next n tokens, from the front or from the back. */
static void eval_some(peridot_sequence *s, struct rows *rows, uint32_t n, bool backwards)
{
    int32_t some[N_TOKENS];
    peridot_eval_params params = {.logits = keep_row, .user = rows};
    for (uint32_t i = 0; i < n; i++) some[i] = backwards ? tokens[N_TOKENS - 1 - rows->n - i] : tokens[rows->n + i];
    EXPECT_OK(peridot_sequence_eval(s, some, n, &params));
}

/* The rows of n tokens, evaluated `at_once` at a time by a session of its own. */
static struct rows *eval_alone(peridot_kv_type type, uint32_t at_once, uint32_t n, bool backwards)
{
    struct rows *rows = calloc(1, sizeof *rows);
    peridot_sequence *s = open_session(N_TOKENS, 16, type);
    assert_non_null(rows);
    while (rows->n < n) eval_some(s, rows, (uint32_t)pd_min(at_once, n - rows->n), backwards);
    close_sequence(s);
    return rows;
}

static void expect_same(const struct rows *a, const struct rows *b)
{
    assert_int_equal(a->n, b->n);
    for (uint32_t i = 0; i < a->n; i++)
        if (memcmp(a->at[i], b->at[i], sizeof(float) * vocab_size) != 0) fail_msg("row %u differs", i);
}

/* ---- sessions ---- */

/* How long a chunk takes is known from chunks alone: tokens that come one by one have kernels of their own. */
static void test_pace(void **state)
{
    (void)state;
    struct rows *rows = calloc(1, sizeof *rows);
    peridot_sequence *s = open_session(N_TOKENS, 16, PERIDOT_KV_F16);
    assert_non_null(rows);
    const struct pd_pace *pace = &s->session->s->prefill.pace;
    eval_some(s, rows, 32, false);
    const struct pd_timed_work last = pace->last, other = pace->other;
    assert_true(last.flop > 0);
    for (int i = 0; i < 3; i++) eval_some(s, rows, 1, false);
    assert_true(pace->last.flop == last.flop && pace->last.seconds == last.seconds && pace->other.flop == other.flop);
    assert_true(pace->step > 0);
    eval_some(s, rows, 16, false);
    assert_true(pace->step == 0);   /* nobody steps between chunks */
    close_sequence(s);
    free(rows);
}

static void test_two_sessions(void **state)
{
    (void)state;
    struct rows *first = eval_alone(PERIDOT_KV_F16, 5, 60, false), *second = eval_alone(PERIDOT_KV_F32, 1, 12, true);
    struct rows *a = calloc(1, sizeof *a), *b = calloc(1, sizeof *b);
    peridot_sequence *s = open_session(N_TOKENS, 16, PERIDOT_KV_F16), *t = open_session(N_TOKENS, 16, PERIDOT_KV_F32);
    for (int i = 0; i < 12; i++) {
        eval_some(s, a, 5, false);
        eval_some(t, b, 1, true);
    }
    expect_same(a, first);
    expect_same(b, second);
    close_sequence(s);
    close_sequence(t);
    free(first);
    free(second);
    free(a);
    free(b);
}

static void test_reset(void **state)
{
    (void)state;
    struct rows *fresh = eval_alone(PERIDOT_KV_F16, 7, 50, false), *again = calloc(1, sizeof *again);
    const float *logits;
    peridot_sequence *s = open_session(N_TOKENS, 16, PERIDOT_KV_F16);
    eval_some(s, again, 40, true);
    reset_sequence(s);
    assert_int_equal(peridot_sequence_pos(s), 0);
    EXPECT_FAILURE(peridot_logits(&logits, s), PERIDOT_ERROR_ARGUMENT, "no token");
    again->n = 0;
    while (again->n < 50) eval_some(s, again, (uint32_t)pd_min(7, 50 - again->n), false);
    expect_same(again, fresh);
    close_sequence(s);
    free(fresh);
    free(again);
}

/* ---- going back ---- */

/* Keeps n tokens, evaluates the rest anew token by token, and must get the rows of those that never went back. */
static void go_back(peridot_sequence *s, uint32_t n, const struct rows *straight)
{
    const float *logits;
    struct rows *rows = calloc(1, sizeof *rows);
    EXPECT_OK(peridot_sequence_truncate(s, n, NULL));
    assert_int_equal(peridot_sequence_pos(s), n);
    EXPECT_FAILURE(peridot_logits(&logits, s), PERIDOT_ERROR_ARGUMENT, "no token");
    memcpy(rows, straight, sizeof *rows);
    rows->n = n;
    while (rows->n < straight->n) eval_some(s, rows, 1, false);
    expect_same(rows, straight);
    assert_memory_equal(peridot_sequence_tokens(s), tokens, straight->n * sizeof *tokens);
    free(rows);
}

/* Windows of 16 and a chunk of 16 have passed over the first page of 64, and the next token looks back at 15. */
static void test_truncate(void **state)
{
    (void)state;
    struct rows *straight = eval_alone(PERIDOT_KV_F16, 1, 140, false), *rows = calloc(1, sizeof *rows);
    const float *logits;
    peridot_sequence *s = open_session(N_TOKENS, 16, PERIDOT_KV_F16);
    while (rows->n < 140) eval_some(s, rows, 1, false);
    EXPECT_FAILURE(peridot_sequence_truncate(s, 141, NULL), PERIDOT_ERROR_ARGUMENT, "141");
    EXPECT_FAILURE(peridot_sequence_truncate(s, 64 + 15 - 1, NULL), PERIDOT_ERROR_ARGUMENT, "the nearest place is 0");
    EXPECT_OK(peridot_sequence_truncate(s, 140, NULL));
    assert_int_equal(peridot_sequence_pos(s), 140);
    EXPECT_OK(peridot_logits(&logits, s));
    assert_memory_equal(logits, straight->at[139], vocab_size * sizeof *logits);
    go_back(s, 79, straight);
    go_back(s, 139, straight);
    EXPECT_OK(peridot_sequence_truncate(s, 100, NULL));
    /* the page is gone */
    EXPECT_FAILURE(peridot_sequence_truncate(s, 78, NULL), PERIDOT_ERROR_ARGUMENT, "the nearest place is 0");
    EXPECT_OK(peridot_sequence_truncate(s, 0, NULL));
    straight->n = 90;
    go_back(s, 0, straight);
    go_back(s, 1, straight);   /* nothing has been given back yet */
    close_sequence(s);
    free(straight);
    free(rows);
}

/* What was queued ahead has been written too. */
static void test_truncate_generated(void **state)
{
    (void)state;
    struct rows *straight = eval_alone(PERIDOT_KV_F16, 1, 60, false), *rows = calloc(1, sizeof *rows);
    peridot_sequence *s = open_session(N_TOKENS, 16, PERIDOT_KV_F16);
    while (rows->n < 40) eval_some(s, rows, 1, false);
    peridot_request_params params = {.prompt = tokens + 40, .n_prompt = 1, .n_max = 12};
    EXPECT_OK(peridot_generate(s, &params, NULL));
    assert_true(peridot_sequence_pos(s) > 41);
    go_back(s, 40, straight);
    close_sequence(s);
    free(straight);
    free(rows);
}

static void draw_some(peridot_sequence *s, int32_t *out, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        EXPECT_OK(peridot_sample(&out[i], s));
        EXPECT_OK(peridot_sequence_eval(s, &out[i], 1, NULL));
    }
}

/* Penalties remember what was kept, and nothing else: the same tokens are drawn again. */
static void test_truncate_penalties(void **state)
{
    (void)state;
    int32_t drawn[20], again[5];
    peridot_sequence *s = open_session(N_TOKENS, 16, PERIDOT_KV_F16);
    peridot_set_sampling(s, &(peridot_sampling){.presence_penalty = 100});
    EXPECT_OK(peridot_sequence_eval(s, tokens, 10, NULL));
    draw_some(s, drawn, 20);
    EXPECT_OK(peridot_sequence_truncate(s, 10 + 14, NULL));
    EXPECT_OK(peridot_sequence_eval(s, &drawn[14], 1, NULL));
    draw_some(s, again, 5);
    assert_memory_equal(again, drawn + 15, sizeof again);
    close_sequence(s);
}

/* ---- errors ---- */

static void test_argument_errors(void **state)
{
    (void)state;
    peridot_sequence *s = NULL;
    EXPECT_FAILURE(open_sequence(&s, model, &(peridot_session_params){.ctx = 1u << 30}), PERIDOT_ERROR_ARGUMENT,
                   "1073741824");
    assert_null(s);
    EXPECT_FAILURE(open_sequence(&s, model, &(peridot_session_params){.ctx = 8, .kv_type = (peridot_kv_type)9}),
                   PERIDOT_ERROR_ARGUMENT, "9");
    s = open_session(20, 1000, PERIDOT_KV_F16);   /* a chunk larger than the context is as large as it */
    assert_int_equal(peridot_session_ctx(peridot_sequence_session(s)), 20);
    const float *logits;
    int32_t token = 7;
    EXPECT_FAILURE(peridot_logits(&logits, s), PERIDOT_ERROR_ARGUMENT, "no token");
    assert_null(logits);
    EXPECT_FAILURE(peridot_sample(&token, s), PERIDOT_ERROR_ARGUMENT, "no token");
    EXPECT_FAILURE(peridot_sequence_eval(s, NULL, 1, NULL), PERIDOT_ERROR_ARGUMENT, "no tokens");
    EXPECT_OK(peridot_sequence_eval(s, tokens, 20, NULL));
    assert_int_equal(peridot_sequence_pos(s), 20);
    close_sequence(s);
}

/* What fails changes nothing: position, logits and what comes after are as if it had not been tried. */
static void test_errors_change_nothing(void **state)
{
    (void)state;
    struct rows *alone = eval_alone(PERIDOT_KV_F16, 10, 20, false), *rows = calloc(1, sizeof *rows);
    peridot_sequence *s = open_session(25, 16, PERIDOT_KV_F16);
    int32_t bad[] = {5, 6, -1}, beyond[] = {5, (int32_t)vocab_size};
    const float *logits;
    eval_some(s, rows, 10, false);
    EXPECT_FAILURE(peridot_sequence_eval(s, bad, 3, NULL), PERIDOT_ERROR_ARGUMENT, "-1", "number 2");
    EXPECT_FAILURE(peridot_sequence_eval(s, beyond, 2, NULL), PERIDOT_ERROR_ARGUMENT, "number 1");
    EXPECT_FAILURE(peridot_sequence_eval(s, tokens, 16, NULL), PERIDOT_ERROR_ARGUMENT, "16", "10", "25");
    EXPECT_OK(peridot_sequence_eval(s, tokens, 0, NULL));
    assert_int_equal(peridot_sequence_pos(s), 10);
    EXPECT_OK(peridot_logits(&logits, s));
    assert_memory_equal(logits, alone->at[9], sizeof(float) * vocab_size);
    eval_some(s, rows, 10, false);
    expect_same(rows, alone);
    close_sequence(s);
    free(alone);
    free(rows);
}

static bool stop_at_three(void *user, peridot_sequence *sequence, uint32_t pos, const float *row, size_t n)
{
    (void)sequence;
    (void)row;
    (void)n;
    ++*(uint32_t *)user;
    return pos != 3;
}

static void test_cancel(void **state)
{
    (void)state;
    uint32_t n_rows = 0;
    peridot_sequence *s = open_session(64, 8, PERIDOT_KV_F16);
    peridot_eval_params params = {.first = 2, .logits = stop_at_three, .user = &n_rows};
    EXPECT_FAILURE(peridot_sequence_eval(s, tokens, 20, &params), PERIDOT_CANCELLED, "position 3");
    assert_int_equal(n_rows, 2);
    assert_int_equal(peridot_sequence_pos(s), 8);   /* the chunk that was done stands */
    close_sequence(s);
}

/* ---- generating ---- */

struct story {
    int32_t ids[N_TOKENS];
    uint32_t n, n_stop, n_flushes;
};

static bool add_token(void *user, int32_t token, const char *text, size_t size)
{
    struct story *story = user;
    assert_non_null(text);
    assert_true(size < 1000 && story->n_flushes == 0);
    if (token < 0) story->n_flushes++;
    else story->ids[story->n++] = token;
    return story->n != story->n_stop;
}

static struct story generate(uint32_t ctx, uint32_t n_prompt, uint32_t n_max, uint32_t n_stop,
                             const peridot_sampling *sampling)
{
    struct story story = {.n_stop = n_stop};
    peridot_stats stats = {0};
    peridot_sequence *s = open_session(ctx, 16, PERIDOT_KV_F16);
    peridot_set_sampling(s, sampling);
    peridot_request_params params = {
        .prompt = tokens, .n_prompt = n_prompt, .n_max = n_max, .text = add_token, .user = &story};
    EXPECT_OK(peridot_generate(s, &params, &stats));
    assert_int_equal(story.n_flushes, 1);
    assert_int_equal(stats.n_prompt, n_prompt);
    assert_int_equal(stats.n_generated, story.n);
    /* The last token is handed on, and not evaluated. */
    assert_int_equal(peridot_sequence_pos(s), n_prompt + (story.n ? story.n - 1 : 0));
    close_sequence(s);
    return story;
}

static void test_generate_stops(void **state)
{
    (void)state;
    assert_int_equal(generate(64, 10, 12, 99, NULL).n, 12);
    assert_int_equal(generate(64, 10, 1, 99, NULL).n, 1);
    assert_int_equal(generate(64, 10, 0, 99, NULL).n, 0);
    assert_int_equal(generate(20, 15, 50, 99, NULL).n, 6);    /* five to fill the context, and the one after them */
    assert_int_equal(generate(15, 15, 50, 99, NULL).n, 1);
    assert_int_equal(generate(64, 10, 50, 3, NULL).n, 3);
    peridot_sequence *s = open_session(16, 16, PERIDOT_KV_F16);
    peridot_request_params params = {.prompt = tokens, .n_prompt = 17, .n_max = 5};
    EXPECT_FAILURE(peridot_generate(s, &params, NULL), PERIDOT_ERROR_ARGUMENT, "17");
    params.n_prompt = 4;
    EXPECT_OK(peridot_generate(s, &params, NULL));
    close_sequence(s);
}

/* Token by token with peridot_sample and peridot_eval: the same as peridot_generate. */
static void test_generate_is_sample_and_eval(void **state)
{
    (void)state;
    const peridot_sampling sampling = {.temperature = 0.9f, .top_k = 20, .repeat_penalty = 1.3f, .seed = 11};
    struct story story = generate(64, 10, 12, 99, &sampling);
    peridot_sequence *s = open_session(64, 16, PERIDOT_KV_F16);
    peridot_set_sampling(s, &sampling);
    EXPECT_OK(peridot_sequence_eval(s, tokens, 10, NULL));
    for (uint32_t i = 0; i < story.n; i++) {
        int32_t token;
        EXPECT_OK(peridot_sample(&token, s));
        assert_int_equal(token, story.ids[i]);
        EXPECT_OK(peridot_sequence_eval(s, &token, 1, NULL));
    }
    close_sequence(s);
}

static void test_seeds(void **state)
{
    (void)state;
    const peridot_sampling chains[] = {{.temperature = 1.5f, .seed = 5}, {.temperature = 1.5f, .top_k = 40, .seed = 5},
                                       {.temperature = 1.5f, .top_p = 0.9f, .repeat_penalty = 1.2f, .seed = 5}};
    for (size_t i = 0; i < PD_COUNT(chains); i++) {
        peridot_sampling other = chains[i];
        other.seed = 6;
        struct story a = generate(64, 10, 20, 99, &chains[i]), b = generate(64, 10, 20, 99, &chains[i]),
            c = generate(64, 10, 20, 99, &other);
        assert_int_equal(a.n, b.n);
        assert_memory_equal(a.ids, b.ids, sizeof a.ids);
        assert_memory_not_equal(a.ids, c.ids, sizeof a.ids);
    }
}

/* Few dispatches make a step fast: the embedding, six a layer, the output, and the choice of the best. */
static void test_dispatches(void **state)
{
    (void)state;
    const peridot_model_info *info = peridot_model_get_info(model);
    peridot_sequence *s = open_session(32, 1, PERIDOT_KV_F16);
    assert_true(peridot_session_n_dispatches(peridot_sequence_session(s)) <= 1 + 6 * info->n_layers + 1 + 2);
    close_sequence(s);
    /* A recurrence has three in place of attention's two, and attention of that family a gate: seven of either. */
    peridot_model *hybrid;
    EXPECT_OK(peridot_model_open(&hybrid, PERIDOT_GOLDEN "/dense/qwen35", NULL));
    EXPECT_OK(open_sequence(&s, hybrid, NULL));
    info = peridot_model_get_info(hybrid);
    assert_true(peridot_session_n_dispatches(peridot_sequence_session(s)) <= 1 + 7 * info->n_layers + 1 + 2);
    close_sequence(s);
    peridot_model_close(hybrid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pace), cmocka_unit_test(test_two_sessions), cmocka_unit_test(test_reset),
        cmocka_unit_test(test_argument_errors),
        cmocka_unit_test(test_truncate), cmocka_unit_test(test_truncate_generated),
        cmocka_unit_test(test_truncate_penalties),
        cmocka_unit_test(test_errors_change_nothing), cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_generate_stops),
        cmocka_unit_test(test_generate_is_sample_and_eval), cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_dispatches),
    };
    return cmocka_run_group_tests_name("session", tests, open_shared, close_shared);
}

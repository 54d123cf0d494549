/* What shares a pass with a text or a prompt, and how a prompt is cut, changes no bit of their logits. */
#include "sequences_fixture.h"

enum { N = 90, N_ROWS = 16, WIDTH = 1024 };

static bool apart;   /* steps and chunks are passes of their own, as on GPUs */

static struct pd_session *engine_of(peridot_session *s) { return *(struct pd_session **)(void *)s; }

static peridot_session *begin(peridot_model *model)
{
    peridot_session *s;
    EXPECT_OK(peridot_session_create(&s, model, &(peridot_session_params){.ctx = 256, .chunk = 32, .n_sequences = 3}));
    assert_true(peridot_model_get_info(model)->n_outputs <= WIDTH);
    if (apart) engine_of(s)->prefill.mixes = false;
    return s;
}

/* Asks q for text 3 from token n_cached on; params has the rest. */
static peridot_request *ask(peridot_sequence *q, uint32_t n_cached, peridot_request_params params)
{
    int32_t tokens[N];
    peridot_request *r;
    for (uint32_t i = 0; i < N; i++) tokens[i] = token_of(3, i);
    params.size = sizeof params;
    params.prompt = tokens + n_cached;
    EXPECT_OK(peridot_request_create(&r, q, &params));
    return r;
}

/* As on a fast device, whatever the last chunk took. */
static void set_chunk(peridot_session *s, uint32_t n)
{
    struct pd_prefill *prefill = &engine_of(s)->prefill;
    prefill->pace.last = (struct pd_timed_work){1e15, 0.1};
    prefill->n_max = n;
}

/* ---- a prompt ---- */

struct first_row {
    float row[WIDTH];
    size_t n;
};

static bool take_first_row(void *user, peridot_sequence *q, uint32_t pos, const float *row, size_t n)
{
    struct first_row *first = user;
    (void)q;
    assert_int_equal(pos, N - 1);
    memcpy(first->row, row, n * sizeof *row);
    first->n = n;
    return false;
}

/* The first n_cached of its tokens were evaluated before; n_chunk: tokens of a chunk; 0: what the device does. */
static void read_prompt(struct first_row *out, peridot_model *model, uint32_t n_cached, uint32_t n_chunk, bool beside)
{
    peridot_session *s = begin(model);
    size_t n_running = 1;
    peridot_sequence *q = add(s);
    if (n_cached) {
        peridot_request *cached = ask(q, 0, (peridot_request_params){.n_prompt = n_cached});
        while (n_running) EXPECT_OK(peridot_session_run(s, &n_running));
        peridot_request_free(cached);
    }
    if (beside) ask(add(s), 0, (peridot_request_params){.n_prompt = 5, .n_max = 48});
    for (int i = 0; beside && i < 2; i++) EXPECT_OK(peridot_session_run(s, &n_running));
    out->n = 0;
    ask(q, n_cached, (peridot_request_params){.n_prompt = N - n_cached, .n_max = 1, .user = out,
                                              .logits = take_first_row});
    while (out->n == 0) {
        if (n_chunk) set_chunk(s, n_chunk);
        EXPECT_OK(peridot_session_run(s, &n_running));
    }
    peridot_session_free(s);
}

static void test_prompt(void **state)
{
    static const struct { uint32_t n_cached, n_chunk; bool beside; } ways[] = {
        {0, 1, false},  {0, 3, true},  {0, 8, false}, {0, 17, true},
        {0, 31, false}, {1, 0, false}, {40, 0, true}, {89, 0, false}};
    const char *made = in_folder("windowed.gguf");
    const char *const models[] = {PERIDOT_GOLDEN "/llama", PERIDOT_GOLDEN "/gemma3", made};
    struct first_row want, got;
    (void)state;
    /* The last two have windows that the prompt fills. */
    EXPECT_OK(peridot_make(made, &(peridot_make_params){.shape = "tiny-gemma2", .type = "q8_0", .seed = 5}));
    for (size_t k = 0; k < PD_COUNT(models); k++) {
        peridot_model *model = open_model(models[k], NULL);
        read_prompt(&want, model, 0, 0, false);
        for (size_t i = 0; i < PD_COUNT(ways); i++) {
            read_prompt(&got, model, ways[i].n_cached, ways[i].n_chunk, ways[i].beside);
            if (memcmp(got.row, want.row, want.n * sizeof *want.row) != 0)
                fail_msg("%s: way %zu has other logits", models[k], i);
        }
        peridot_model_close(model);
    }
    assert_int_equal(remove(made), 0);
}

/* ---- a text ---- */

struct text_rows {
    float rows[N_ROWS][WIDTH];
    size_t n, n_mixed;         /* n_mixed: passes that had rows of prompts, too */
};

static bool keep_row(void *user, peridot_sequence *q, uint32_t pos, const float *row, size_t n)
{
    struct text_rows *text = user;
    (void)q, (void)pos;
    assert_true(text->n < N_ROWS);
    memcpy(text->rows[text->n++], row, n * sizeof *row);
    return true;
}

static void write_rows(struct text_rows *out, peridot_model *model, uint32_t n_prompts)
{
    peridot_session *s = begin(model);
    const struct pd_prefill *prefill = &engine_of(s)->prefill;
    size_t n_running = 1;
    *out = (struct text_rows){0};
    ask(add(s), 0, (peridot_request_params){.n_prompt = 7, .n_max = N_ROWS, .user = out, .logits = keep_row});
    EXPECT_OK(peridot_session_run(s, &n_running));
    for (uint32_t i = 0; i < n_prompts; i++) ask(add(s), 0, (peridot_request_params){.n_prompt = N});
    while (n_running) {
        set_chunk(s, 4);
        EXPECT_OK(peridot_session_run(s, &n_running));
        const struct pd_chunk *chunk = &prefill->chunks[prefill->next ^ 1];
        out->n_mixed += chunk->n_decode == 1 && chunk->n_rows == 4;
    }
    assert_int_equal(out->n, N_ROWS);
    peridot_session_free(s);
}

/* Where decode kernels multiply prompts, these and steps are one pass. */
static void test_text(void **state)
{
    const char *const models[] = {PERIDOT_GOLDEN "/llama", PERIDOT_GOLDEN "/gemma2", PERIDOT_GOLDEN "/gemma3"};
    static struct text_rows want, got;
    (void)state;
    for (size_t k = 0; k < PD_COUNT(models); k++) {
        peridot_model *model = open_model(models[k], NULL);
        const struct pd_model *engine = (const struct pd_model *)(void *)model;   /* a public model begins with it */
        bool mixes = engine->variants.of[PD_VARIED_MATMUL] == PD_VARIANT_MATMUL_MATVEC && !apart;
        write_rows(&want, model, 0);
        for (uint32_t n_prompts = 1; n_prompts < 3; n_prompts++) {
            write_rows(&got, model, n_prompts);
            assert_true(mixes ? got.n_mixed > 10 : got.n_mixed == 0);
            assert_memory_equal(got.rows, want.rows, sizeof want.rows);
        }
        peridot_model_close(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_prompt), cmocka_unit_test(test_text)};
    int n_failed = cmocka_run_group_tests_name("invariance", tests, make_folder, remove_folder);
    apart = true;
    return n_failed + cmocka_run_group_tests_name("invariance, steps and chunks apart", tests, make_folder,
                                                  remove_folder);
}

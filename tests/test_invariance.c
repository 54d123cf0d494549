/* What shares a decode step or a pass with a text or a prompt, and how a prompt is cut, changes no bit of their
 * logits. */
#include "sequences_fixture.h"
#include "relative_error.h"

#include "api/api.h"
#include "base/base.h"

/* ---- decode steps ---- */

struct rows {
    float at[N_STEPS + 1][MAX_WIDTH];
};

/* Of texts 0 .. n-1, each alone in a session that could have more: after the prompt, and after each step. */
static struct rows *eval_alone(peridot_model *model, uint32_t n, peridot_kv_type kv, size_t width)
{
    struct rows *alone = calloc(n, sizeof *alone);
    assert_non_null(alone);
    for (uint32_t k = 0; k < n; k++) {
        peridot_session *s = open_session(model, 2, kv);
        peridot_sequence *q = add(s);
        eval_prompt(q, k);
        copy_logits(alone[k].at[0], q, width);
        for (uint32_t i = 0; i < N_STEPS; i++) {
            eval(q, k, length_of(k) + i, length_of(k) + i + 1);
            copy_logits(alone[k].at[i + 1], q, width);
        }
        peridot_session_free(s);
    }
    return alone;
}

/* In step i sequence k sits out now and then, and asks for its logits nonetheless. */
static bool is_in(uint32_t k, uint32_t i) { return (k + i) % 5 != 4; }

/* n sequences decode side by side: the logits of each are, bit for bit, those that it has alone. */
static void check_together(const struct rows *alone, peridot_model *model, uint32_t n, peridot_kv_type kv, size_t width)
{
    peridot_session *s = open_session(model, n, kv);
    peridot_sequence *q[N_MOST];
    uint32_t n_done[N_MOST] = {0};
    float logits[MAX_WIDTH];
    for (uint32_t k = 0; k < n; k++) eval_prompt(q[k] = add(s), k);
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
                fail_msg("of %u sequences number %u after %u steps: %g apart", n, k, n_done[k],
                         relative_error(logits, alone[k].at[n_done[k]], width));
        }
    }
    peridot_session_free(s);
}

/* For each of the numbers n of sequences, which end with their greatest and 0. */
static void check_steps(const char *path, const uint32_t *n, peridot_kv_type kv, const char *kernel)
{
    peridot_model *model = open_model(path, kernel);
    size_t width = peridot_model_get_info(model)->n_outputs, n_n = 0;
    while (n[n_n]) n_n++;
    struct rows *alone = eval_alone(model, n[n_n - 1], kv, width);
    print_message("%s\n", path);
    for (size_t i = 0; i < n_n; i++) check_together(alone, model, n[i], kv, width);
    peridot_model_close(model);
    free(alone);
}

static void test_gemma2(void **state)
{
    (void)state;
    check_steps(PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf", (uint32_t[]){1, 2, 7, 8, 33, 64, 0}, PERIDOT_KV_F16, NULL);
}

static void test_gemma3(void **state)
{
    (void)state;
    check_steps(PERIDOT_GOLDEN "/gemma3", (uint32_t[]){8, 0}, PERIDOT_KV_F16, NULL);
    check_steps(PERIDOT_GOLDEN "/gemma3-mixed/model.gguf", (uint32_t[]){7, 0}, PERIDOT_KV_F32, NULL);
    check_steps(PERIDOT_GOLDEN "/gemma3", (uint32_t[]){5, 0}, PERIDOT_KV_Q8_0, NULL);
}

static void test_gemma4(void **state)
{
    (void)state;
    check_steps(PERIDOT_GOLDEN "/gemma4", (uint32_t[]){7, 0}, PERIDOT_KV_F16, NULL);
    check_steps(PERIDOT_GOLDEN "/gemma4-small/model.gguf", (uint32_t[]){8, 0}, PERIDOT_KV_Q5_1, NULL);
    check_steps(PERIDOT_GOLDEN "/gemma4-moe", (uint32_t[]){8, 0}, PERIDOT_KV_F16, NULL);
}

static void test_llama(void **state)
{
    (void)state;
    check_steps(PERIDOT_GOLDEN "/llama/model.gguf", (uint32_t[]){33, 0}, PERIDOT_KV_F32, NULL);
    check_steps(PERIDOT_GOLDEN "/llama-quants/model.gguf", (uint32_t[]){5, 0}, PERIDOT_KV_F16, NULL);
    check_steps(RECURRENT, (uint32_t[]){7, 0}, PERIDOT_KV_F16, NULL);
    check_steps(GRANITE, (uint32_t[]){7, 0}, PERIDOT_KV_F16, NULL);
}

/* Prompts go through tiles there, and decode steps must not, however many sequences there are. */
static void test_as_gpu(void **state)
{
    (void)state;
    check_steps(PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf", (uint32_t[]){33, 0}, PERIDOT_KV_F16, AS_GPU);
    check_steps(PERIDOT_GOLDEN "/llama-quants/model.gguf", (uint32_t[]){40, 0}, PERIDOT_KV_F32, AS_GPU);
    check_steps(PERIDOT_GOLDEN "/gemma4-moe", (uint32_t[]){7, 0}, PERIDOT_KV_F16, AS_GPU);
    static const char *const made[][2] = {{"tiny-gemma4-e", "q4_k"}, {"tiny-gpt-oss", "q8_0"}};
    for (size_t i = 0; i < 2; i++) {
        EXPECT_OK(peridot_make(in_folder("made.gguf"), &(peridot_make_params){.shape = made[i][0], .type = made[i][1],
                                                                              .seed = 5}));
        check_steps(in_folder("made.gguf"), (uint32_t[]){6, 0}, PERIDOT_KV_Q8_0, AS_GPU);
        assert_int_equal(remove(in_folder("made.gguf")), 0);
    }
}

/* Vectors so long that each slot of a norm sums several vec4s. */
static void test_long_norms(void **state)
{
    (void)state;
    char path[128];
    snprintf(path, sizeof path, "%s/wide.gguf", folder);
    EXPECT_OK(peridot_make(path, &(peridot_make_params){.shape = "tiny-wide", .type = "q8_0", .seed = 5}));
    check_steps(path, (uint32_t[]){1, 2, 7, 33, 0}, PERIDOT_KV_F16, NULL);
    check_steps(path, (uint32_t[]){7, 0}, PERIDOT_KV_F16, AS_GPU);
    assert_int_equal(remove(path), 0);
}

static void test_columns(void **state)
{
    (void)state;
    check_steps(PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf", (uint32_t[]){33, 0}, PERIDOT_KV_F32, "matvec=columns");
    check_steps(PERIDOT_GOLDEN "/llama-quants/model.gguf", (uint32_t[]){9, 0}, PERIDOT_KV_F32, "matvec=columns");
    check_steps(PERIDOT_GOLDEN "/gemma3", (uint32_t[]){3, 0}, PERIDOT_KV_F32, "attention=columns");
}

/* ---- passes with rows of prompts ---- */

enum { N = 90, N_ROWS = 16, WIDTH = 1024 };

enum { IMAGE_BEGIN = 21, IMAGE_END = 63, MAX_D_MODEL = 512 };

static bool apart;   /* steps and chunks are passes of their own, as on GPUs */
static bool shows;   /* text 3 has rows of an image: random ones, in place of its tokens IMAGE_BEGIN .. IMAGE_END - 1 */
static const float *image[N];

static peridot_session *begin(peridot_model *model)
{
    peridot_session *s;
    EXPECT_OK(peridot_session_create(&s, model, &(peridot_session_params){.ctx = 256, .chunk = 32, .n_sequences = 3}));
    assert_true(peridot_model_get_info(model)->n_outputs <= WIDTH);
    if (apart) s->s->prefill.mixes = false;
    return s;
}

static void make_image(void)
{
    static float rows[IMAGE_END - IMAGE_BEGIN][MAX_D_MODEL];
    struct pd_random random;
    pd_random_seed(&random, 7, 0);
    for (uint32_t i = IMAGE_BEGIN; i < IMAGE_END; i++) {
        float *row = rows[i - IMAGE_BEGIN];
        for (uint32_t k = 0; k < MAX_D_MODEL; k++) row[k] = 3 * pd_random_uniform(&random);
        image[i] = row;
    }
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
    if (shows) r->r.prompt.embeddings = image + n_cached;
    return r;
}

/* As on a fast device, whatever the last chunk took. */
static void set_chunk(peridot_session *s, uint32_t n)
{
    struct pd_prefill *prefill = &s->s->prefill;
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

/* However the prompt is cut, and whatever is beside it. */
static void check_ways(const struct first_row *want, peridot_model *model)
{
    static const struct { uint32_t n_cached, n_chunk; bool beside; } ways[] = {
        {0, 1, false},  {0, 3, true},  {0, 8, false}, {0, 17, true},
        {0, 31, false}, {1, 0, false}, {40, 0, true}, {89, 0, false}};
    struct first_row got;
    for (size_t i = 0; i < PD_COUNT(ways); i++) {
        read_prompt(&got, model, ways[i].n_cached, ways[i].n_chunk, ways[i].beside);
        if (memcmp(got.row, want->row, want->n * sizeof *want->row) != 0)
            fail_msg("%s: way %zu has other logits", peridot_model_get_info(model)->name, i);
    }
}

static void test_prompt(void **state)
{
    const char *made = in_folder("windowed.gguf");
    const char *const models[] = {PERIDOT_GOLDEN "/llama", PERIDOT_GOLDEN "/gemma3", PERIDOT_GOLDEN "/gemma4", made};
    struct first_row want, with_image;
    (void)state;
    make_image();
    /* The last three have windows that the prompt fills. */
    EXPECT_OK(peridot_make(made, &(peridot_make_params){.shape = "tiny-gemma2", .type = "q8_0", .seed = 5}));
    for (size_t k = 0; k < PD_COUNT(models); k++) {
        peridot_model *model = open_model(models[k], NULL);
        read_prompt(&want, model, 0, 0, false);
        check_ways(&want, model);
        shows = true;
        read_prompt(&with_image, model, 0, 0, false);
        assert_memory_not_equal(with_image.row, want.row, want.n * sizeof *want.row);
        check_ways(&with_image, model);
        shows = false;
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
    const struct pd_prefill *prefill = &s->s->prefill;
    size_t n_running = 1;
    *out = (struct text_rows){0};
    ask(add(s), 0, (peridot_request_params){.n_prompt = 7, .n_max = N_ROWS, .user = out, .logits = keep_row});
    EXPECT_OK(peridot_session_run(s, &n_running));
    for (uint32_t i = 0; i < n_prompts; i++) ask(add(s), 0, (peridot_request_params){.n_prompt = N});
    while (n_running) {
        set_chunk(s, 4);
        EXPECT_OK(peridot_session_run(s, &n_running));
        const struct pd_pass_shape *shape = &prefill->chunks[prefill->next ^ 1].pass.shape;
        out->n_mixed += shape->n_steps == 1 && shape->n_rows == 4;
    }
    assert_int_equal(out->n, N_ROWS);
    peridot_session_free(s);
}

/* Where decode kernels multiply prompts, these and steps are one pass. */
static void test_text(void **state)
{
    const char *const models[] = {PERIDOT_GOLDEN "/llama", PERIDOT_GOLDEN "/gemma4-small", PERIDOT_GOLDEN "/gemma3"};
    static struct text_rows want, got;
    (void)state;
    for (size_t k = 0; k < PD_COUNT(models); k++) {
        peridot_model *model = open_model(models[k], NULL);
        bool mixes = model->m.variants.of[PD_VARIED_MATMUL] == PD_VARIANT_MATMUL_MATVEC && !apart;
        write_rows(&want, model, 0);
        for (uint32_t n_prompts = 1; n_prompts < 3; n_prompts++) {
            write_rows(&got, model, n_prompts);
            assert_true(mixes ? got.n_mixed > 10 : got.n_mixed == 0);
            assert_memory_equal(got.rows, want.rows, sizeof want.rows);
        }
        peridot_model_close(model);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemma2), cmocka_unit_test(test_gemma3),     cmocka_unit_test(test_llama),
        cmocka_unit_test(test_as_gpu), cmocka_unit_test(test_long_norms), cmocka_unit_test(test_columns),
        cmocka_unit_test(test_prompt), cmocka_unit_test(test_text),       cmocka_unit_test(test_gemma4)};
    const struct CMUnitTest tests_apart[] = {cmocka_unit_test(test_prompt), cmocka_unit_test(test_text)};
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    int n_failed = cmocka_run_group_tests_name("invariance", tests, make_folder, remove_folder);
    apart = true;
    return n_failed + cmocka_run_group_tests_name("invariance, steps and chunks apart", tests_apart, make_folder,
                                                  remove_folder);
}

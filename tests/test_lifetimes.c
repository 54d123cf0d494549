/* Who owns what: models, vocabularies, grammars and chains may go before those that use them; and a sequence has all
 * its tokens after its device was lost (layer_faults.c), whatever was being done with it. */
#define _POSIX_C_SOURCE 200809L
#include "format_fixture.h"

#include "api/api.h"

#include <libgen.h>

#define MODEL PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf"

enum { N_PROMPT = 6, N_MAX = 40 };

static const int32_t prompt[N_PROMPT] = {2, 20, 30, 40, 20, 30};

static bool ignore(void *user, int32_t token, const char *text, size_t size)
{
    (void)user, (void)token, (void)text, (void)size;
    return true;
}

/* ---- owners ---- */

/* Biases, a stop text and a grammar, all of which are overwritten or freed at once if `early`. */
static void set_chain(peridot_sequence *q, const peridot_vocab *vocab, bool early)
{
    peridot_bias bias[] = {{7, 1}, {9, 2}};
    char text[] = "zzzz";
    const char *stop[] = {text};
    peridot_grammar *g;
    EXPECT_OK(peridot_grammar_json(&g, vocab));
    EXPECT_OK(peridot_set_sampling(q, &(peridot_sampling){.temperature = 2, .top_k = 40, .seed = 5, .bias = bias,
        .n_bias = 2, .stop = stop, .n_stop = 1, .grammar = g}));
    peridot_grammar_free(g);
    if (!early) return;
    memset(bias, 0x55, sizeof bias);
    memset(text, 0x55, sizeof text - 1);
    stop[0] = NULL;
}

/* The text of a request, whose model, vocabulary and chain have gone meanwhile if `early`. */
static void write_reply(int32_t tokens[N_PROMPT + N_MAX], uint32_t *n, bool early)
{
    peridot_model *model;
    peridot_session *s;
    peridot_sequence *q, *fork;
    peridot_request *r;
    size_t n_running;
    EXPECT_OK(peridot_model_open(&model, MODEL, NULL));
    EXPECT_OK(peridot_session_create(&s, model, &(peridot_session_params){.ctx = 128, .n_sequences = 2}));
    peridot_vocab *vocab = peridot_vocab_ref(peridot_model_vocab(model));
    if (early) peridot_model_close(model);
    EXPECT_OK(peridot_sequence_create(&q, s));
    set_chain(q, vocab, early);
    if (early) peridot_vocab_close(vocab);
    EXPECT_OK(peridot_sequence_eval(q, prompt, 3, NULL));
    EXPECT_OK(peridot_sequence_fork(&fork, q, 3));
    peridot_sequence_free(q);
    EXPECT_OK(peridot_request_create(&r, fork, &(peridot_request_params){.prompt = prompt + 3,
        .n_prompt = N_PROMPT - 3, .n_max = N_MAX, .text = ignore}));
    if (early) EXPECT_OK(peridot_session_run(s, &n_running));
    do EXPECT_OK(peridot_session_run(s, &n_running));
    while (n_running);
    *n = peridot_sequence_pos(fork);
    memcpy(tokens, peridot_sequence_tokens(fork), *n * sizeof *tokens);
    peridot_session_free(s);
    if (early) return;
    peridot_vocab_close(vocab);
    peridot_model_close(model);
}

static void test_owners(void **state)
{
    (void)state;
    int32_t late[N_PROMPT + N_MAX], early[N_PROMPT + N_MAX];
    uint32_t n_late, n_early;
    write_reply(late, &n_late, false);
    write_reply(early, &n_early, true);
    assert_true(n_late > N_PROMPT);
    assert_int_equal(n_early, n_late);
    assert_memory_equal(early, late, n_late * sizeof *late);
}

/* A request keeps the stop texts that it began with. */
static void test_new_chain(void **state)
{
    (void)state;
    peridot_model *model;
    peridot_session *s;
    peridot_sequence *q;
    peridot_request *r;
    size_t n_running;
    EXPECT_OK(peridot_model_open(&model, MODEL, NULL));
    EXPECT_OK(peridot_session_create(&s, model, &(peridot_session_params){.ctx = 128}));
    EXPECT_OK(peridot_sequence_create(&q, s));
    set_chain(q, peridot_model_vocab(model), true);
    EXPECT_OK(peridot_request_create(&r, q, &(peridot_request_params){.prompt = prompt, .n_prompt = N_PROMPT,
        .n_max = N_MAX, .text = ignore}));
    EXPECT_OK(peridot_session_run(s, &n_running));
    EXPECT_OK(peridot_set_sampling(q, NULL));
    do EXPECT_OK(peridot_session_run(s, &n_running));
    while (n_running);
    peridot_session_free(s);
    peridot_model_close(model);
}

/* ---- a lost device ---- */

struct lost {
    peridot_model *model;
    peridot_session *session;
    peridot_sequence *q, *other;
};

static void open_two(struct lost *l)
{
    EXPECT_OK(peridot_model_open(&l->model, MODEL, NULL));
    EXPECT_OK(peridot_session_create(&l->session, l->model, &(peridot_session_params){.ctx = 128, .n_sequences = 3,
        .n_draft = 3}));
    EXPECT_OK(peridot_sequence_create(&l->q, l->session));
    EXPECT_OK(peridot_sequence_create(&l->other, l->session));
    EXPECT_OK(peridot_sequence_eval(l->other, prompt, 3, NULL));
    EXPECT_OK(peridot_sequence_eval(l->q, prompt, N_PROMPT - 1, NULL));
    EXPECT_OK(peridot_sequence_eval(l->q, prompt + N_PROMPT - 1, 1, NULL));
    EXPECT_OK(peridot_sequence_eval(l->other, prompt, 1, NULL));   /* the logits of q's last token are overwritten */
}

static peridot_status do_logits(struct lost *l)
{
    const float *unused;
    return peridot_logits(&unused, l->q);
}

static peridot_status do_sample(struct lost *l)
{
    int32_t unused;
    EXPECT_OK(peridot_set_sampling(l->q, &(peridot_sampling){.temperature = 1}));   /* which needs all logits */
    return peridot_sample(&unused, l->q);
}

static peridot_status do_prompt(struct lost *l) { return peridot_sequence_eval(l->q, prompt, N_PROMPT, NULL); }
static peridot_status do_step(struct lost *l) { return peridot_sequence_eval(l->q, prompt, 1, NULL); }

static peridot_status do_generate(struct lost *l)
{
    return peridot_generate(l->q, &(peridot_request_params){.prompt = prompt, .n_prompt = 1, .n_max = N_MAX}, NULL);
}

static peridot_status do_drafts(struct lost *l)
{
    return peridot_generate(l->q, &(peridot_request_params){.prompt = prompt, .n_prompt = 1, .n_max = N_MAX,
        .n_draft = 3}, NULL);
}

static peridot_status do_fork(struct lost *l)
{
    peridot_sequence *fork;
    peridot_status status = peridot_sequence_fork(&fork, l->q, N_PROMPT);
    return status == PERIDOT_OK ? peridot_sequence_eval(fork, prompt, 1, NULL) : status;
}

static peridot_status do_truncate(struct lost *l)
{
    peridot_status status = peridot_sequence_truncate(l->q, N_PROMPT, NULL);   /* all of them: nothing is to be done */
    return status == PERIDOT_OK ? peridot_sequence_eval(l->q, prompt, 1, NULL) : status;
}

static void lose_device(void)
{
    FILE *fault = fopen(getenv("PERIDOT_TEST_FAULT"), "w");
    assert_non_null(fault);
    fputs("lose", fault);
    fclose(fault);
}

static void test_lost(void **state)
{
    (void)state;
    peridot_status (*const calls[])(struct lost *) = {do_logits, do_sample, do_prompt, do_step, do_generate, do_drafts,
                                                      do_fork, do_truncate};
    for (size_t i = 0; i < PD_COUNT(calls); i++) {
        struct lost l;
        open_two(&l);
        lose_device();
        assert_int_equal(calls[i](&l), PERIDOT_ERROR_DEVICE_LOST);
        assert_int_equal(calls[i](&l), PERIDOT_ERROR_DEVICE_LOST);
        assert_int_equal(peridot_sequence_pos(l.q), N_PROMPT);
        assert_memory_equal(peridot_sequence_tokens(l.q), prompt, sizeof prompt);
        assert_int_equal(l.q->q->sampler.n_seen, N_PROMPT);
        peridot_model_close(l.model);
        peridot_session_free(l.session);
    }
}

/* On the way back to a place in a page that a fork shares, which is copied. */
static void test_lost_going_back(void **state)
{
    (void)state;
    struct lost l;
    peridot_sequence *fork;
    int32_t tokens[70], before[N_PROMPT + 70];
    uint32_t kept;
    for (int i = 0; i < 70; i++) tokens[i] = prompt[i % N_PROMPT];
    open_two(&l);
    EXPECT_OK(peridot_sequence_eval(l.q, tokens, 70, NULL));
    EXPECT_OK(peridot_sequence_fork(&fork, l.q, N_PROMPT + 70));
    memcpy(before, peridot_sequence_tokens(l.q), sizeof before);
    lose_device();
    assert_int_equal(peridot_sequence_truncate(l.q, 60, &kept), PERIDOT_ERROR_DEVICE_LOST);
    assert_int_equal(kept, N_PROMPT + 70);
    assert_int_equal(peridot_sequence_pos(l.q), N_PROMPT + 70);
    assert_memory_equal(peridot_sequence_tokens(l.q), before, sizeof before);
    peridot_session_free(l.session);
    peridot_model_close(l.model);
}

/* The same where there is no room for another page. */
static void test_full(void **state)
{
    (void)state;
    peridot_model *model;
    peridot_session *s;
    peridot_sequence *q;
    int32_t tokens[64];
    for (int i = 0; i < 64; i++) tokens[i] = prompt[i % N_PROMPT];
    EXPECT_OK(peridot_model_open(&model, MODEL, NULL));
    EXPECT_OK(peridot_session_create(&s, model, &(peridot_session_params){.ctx = 128, .n_positions = 64}));
    EXPECT_OK(peridot_sequence_create(&q, s));
    EXPECT_OK(peridot_sequence_eval(q, tokens, 64, NULL));
    assert_int_equal(peridot_sequence_eval(q, tokens, 1, NULL), PERIDOT_ERROR_MEMORY);
    assert_int_equal(peridot_sequence_eval(q, tokens, 9, NULL), PERIDOT_ERROR_MEMORY);
    assert_int_equal(peridot_generate(q, &(peridot_request_params){.n_max = 9}, NULL), PERIDOT_ERROR_MEMORY);
    assert_int_equal(peridot_sequence_pos(q), 64);
    assert_memory_equal(peridot_sequence_tokens(q), tokens, sizeof tokens);
    peridot_model_close(model);
    peridot_session_free(s);
}

/* On a GPU with memory of its own: what is still being uploaded is not freed under the copies. */
static void test_unused(void **state)
{
    (void)state;
    peridot_model *model;
    setenv("PERIDOT_TEST_DISCRETE", "1", 1);
    for (int i = 0; i < 3; i++) {
        EXPECT_OK(peridot_model_open(&model, MODEL, NULL));
        peridot_model_close(model);
    }
    unsetenv("PERIDOT_TEST_DISCRETE");
}

/* Beside the layers that tools/check asks for. */
static void use_layer(char *program)
{
    static char layers[256], fault[512], path[512];
    const char *others = getenv("VK_INSTANCE_LAYERS"), *paths = getenv("VK_ADD_LAYER_PATH");
    snprintf(layers, sizeof layers, "VK_LAYER_PERIDOT_faults%s%s", others ? ":" : "", others ? others : "");
    snprintf(path, sizeof path, "%s/layers%s%s", dirname(program), paths ? ":" : "", paths ? paths : "");
    snprintf(fault, sizeof fault, "%s/fault", folder);
    setenv("VK_INSTANCE_LAYERS", layers, 1);
    setenv("VK_ADD_LAYER_PATH", path, 1);
    setenv("PERIDOT_TEST_FAULT", fault, 1);
}

static char *program;

static int make_layer(void **state)
{
    if (make_folder(state) != 0) return -1;
    use_layer(program);
    return 0;
}

static int remove_shared(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_owners), cmocka_unit_test(test_new_chain),
                                       cmocka_unit_test(test_lost),
                                       cmocka_unit_test(test_lost_going_back), cmocka_unit_test(test_full),
                                       cmocka_unit_test(test_unused)};
    (void)argc;
    program = argv[0];
    return cmocka_run_group_tests_name("lifetimes", tests, make_layer, remove_shared);
}

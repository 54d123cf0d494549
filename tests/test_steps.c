/* Steps that are queued ahead: text, session and what comes after it are those of one step at a time, wherever it
 * stops; steps are ahead where they may be, and nowhere else. That a lost device ends it is in test_lost.c. */
#include "format_fixture.h"
#include "sequence_fixture.h"

#include "api/api.h"
#include "gpu/gpu_.h"

#include <math.h>

#define MODEL PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf"   /* windows of 16 */

enum { N_PROMPT = 7, N_REPLY = 32, N_AFTER = 18, CTX = 96, MAX_VOCAB = 512 };

static const int32_t prompt[N_PROMPT] = {2, 17, 99, 5, 201, 33, 64};
static peridot_model *model;

/* ---- counting submits ---- */

static uint32_t n_submits;
/* of the sessions: steps are ahead however slow a device is, unless a test says otherwise */
static double queue_s = 1e9;
static PFN_vkQueueSubmit real_submit;

static VKAPI_ATTR VkResult VKAPI_CALL count_submit(VkQueue queue, uint32_t n, const VkSubmitInfo *submits,
                                                   VkFence fence)
{
    n_submits++;
    return real_submit(queue, n, submits, fence);
}

static int open_shared(void **state)
{
    (void)state;
    if (peridot_model_open(&model, MODEL, NULL) != PERIDOT_OK) return -1;
    real_submit = model->m.gpu->vk.vkQueueSubmit;
    model->m.gpu->vk.vkQueueSubmit = count_submit;
    return peridot_model_get_info(model)->vocab_size <= MAX_VOCAB ? 0 : -1;
}

static int close_shared(void **state)
{
    (void)state;
    peridot_model_close(model);
    return 0;
}

/* ---- one step at a time ---- */

struct text {
    peridot_sequence *session;
    int32_t tokens[N_REPLY];
    uint32_t n, n_max;
    uint32_t n_stop;       /* the callback stops at this token */
    void (*at_token)(struct text *t);   /* called before that; NULL: nothing */
    uint32_t begun;        /* submits before the first token */
};

static void open_text(struct text *t, const peridot_sampling *sampling, uint32_t chunk, uint32_t n_max, uint32_t n_stop)
{
    *t = (struct text){.n_max = n_max, .n_stop = n_stop};
    EXPECT_OK(open_sequence(&t->session, model, &(peridot_session_params){.ctx = CTX, .chunk = chunk}));
    t->session->session->s->decoder.queue_s = queue_s;
    peridot_set_sampling(t->session, sampling);
}

static bool take(void *user, int32_t token, const char *piece, size_t size)
{
    struct text *t = user;
    (void)piece, (void)size;
    if (token < 0) return true;
    t->tokens[t->n++] = token;
    if (t->at_token) t->at_token(t);
    return t->n != t->n_stop;
}

/* What peridot_generate promises, without a queue. */
static void write_plainly(struct text *t)
{
    EXPECT_OK(peridot_sequence_eval(t->session, prompt, N_PROMPT, NULL));
    for (bool go_on = true; go_on;) {
        int32_t token;
        EXPECT_OK(peridot_sample(&token, t->session));
        if (peridot_is_stop(model, token)) return;
        go_on = take(t, token, "", 0) && t->n < t->n_max && peridot_sequence_pos(t->session) < CTX;
        if (go_on) EXPECT_OK(peridot_sequence_eval(t->session, &token, 1, NULL));
    }
}

static void write_ahead(struct text *t)
{
    t->begun = n_submits + (uint32_t)pd_div_up(N_PROMPT, t->session->session->s->chunk);
    uint64_t allocated = pd_gpu_allocated(model->m.gpu);
    uint32_t n_pipelines = pd_gpu_n_pipelines(model->m.gpu);
    peridot_request_params params = {
        .prompt = prompt, .n_prompt = N_PROMPT, .n_max = t->n_max, .text = take, .user = t};
    EXPECT_OK(peridot_generate(t->session, &params, NULL));
    assert_int_equal(t->session->session->s->decoder.n_queued, 0);
    assert_int_equal(pd_gpu_allocated(model->m.gpu), allocated);
    assert_int_equal(pd_gpu_n_pipelines(model->m.gpu), n_pipelines);
}

static void expect_same_logits(struct text *a, struct text *b)
{
    const float *logits;
    float want[MAX_VOCAB];
    size_t size = sizeof *logits * peridot_model_get_info(model)->vocab_size;
    EXPECT_OK(peridot_logits(&logits, b->session));
    memcpy(want, logits, size);
    EXPECT_OK(peridot_logits(&logits, a->session));
    assert_memory_equal(logits, want, size);
}

/* Text and all that the session holds; then the same tokens after it. */
static void expect_same(struct text *a, struct text *b)
{
    struct pd_sequence *s = a->session->q, *t = b->session->q;
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->tokens, b->tokens, a->n * sizeof *a->tokens);
    assert_int_equal(s->pos, t->pos);
    assert_memory_equal(s->tokens, t->tokens, s->pos * sizeof *s->tokens);
    assert_true(s->sampler.rng == t->sampler.rng && s->sampler.n_seen == t->sampler.n_seen);
    assert_memory_equal(s->sampler.recent, t->sampler.recent, sizeof s->sampler.recent);
    expect_same_logits(a, b);
    for (uint32_t i = 0; i < N_AFTER && s->pos < CTX; i++) {
        int32_t tokens[2];
        EXPECT_OK(peridot_sample(&tokens[0], a->session));
        EXPECT_OK(peridot_sample(&tokens[1], b->session));
        assert_int_equal(tokens[0], tokens[1]);
        EXPECT_OK(peridot_sequence_eval(a->session, tokens, 1, NULL));
        EXPECT_OK(peridot_sequence_eval(b->session, tokens, 1, NULL));
        expect_same_logits(a, b);
    }
    close_sequence(a->session);
    close_sequence(b->session);
}

/* A golden model says one thing over and over unless it is hot. */
static const peridot_bias bias[] = {{7, -1}, {300, -INFINITY}, {7, -0.5f}};
static const peridot_sampling chains[] = {
    {0}, {.temperature = 6, .top_k = 40, .seed = 3}, {.temperature = 5, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f,
        .seed = 4},
    {.temperature = 8, .top_k = 128, .min_p = 0.01f, .xtc_probability = 0.5f, .xtc_threshold = 0.02f, .seed = 5},
    {.temperature = 4, .top_k = 5, .top_p = 0.9f, .seed = 6},
    {.repeat_penalty = 1.2f, .presence_penalty = 50},
    {.temperature = 5, .top_k = 40, .repeat_penalty = 1.1f, .presence_penalty = 0.3f, .seed = 7},
    {.temperature = 6, .top_k = 60, .frequency_penalty = 0.4f, .bias = bias, .n_bias = 3, .seed = 8}};

static void check_stop(const peridot_sampling *chain, uint32_t chunk, uint32_t n_max, uint32_t n_stop)
{
    struct text a, b;
    open_text(&a, chain, chunk, n_max, n_stop);
    open_text(&b, chain, chunk, n_max, n_stop);
    write_ahead(&a);
    write_plainly(&b);
    expect_same(&a, &b);
}

/* ---- the same text ---- */

static void test_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < PD_COUNT(chains); i++) check_stop(&chains[i], 16, N_REPLY, 0);
}

/* Rings of local layers are as short as can be where chunks are; steps in vain must not have pushed out keys. */
static void test_stops(void **state)
{
    (void)state;
    for (uint32_t chunk = 1; chunk <= 4; chunk += 3)
        for (uint32_t n_stop = 1; n_stop <= 14; n_stop += 1 + chunk) check_stop(&chains[2], chunk, N_REPLY, n_stop);
    for (uint32_t n_stop = 17; n_stop <= 31; n_stop += 7) check_stop(&chains[0], 1, N_REPLY, n_stop);
    for (uint32_t n_stop = 2; n_stop <= 9; n_stop += 3) check_stop(&chains[6], 4, N_REPLY, n_stop);
}

static void test_lengths(void **state)
{
    (void)state;
    for (uint32_t n_max = 1; n_max <= 6; n_max++) check_stop(&chains[1], 16, n_max, 0);
}

/* ---- how far ahead ---- */

static uint32_t submitted(const struct text *t) { return n_submits - t->begun; }

static void expect_ahead(struct text *t)
{
    uint32_t own = t->n - 1, most = t->n_max - 1, ahead = own ? PD_N_STEPS - 1 : 0;
    assert_int_equal(submitted(t), pd_min(own + ahead, most));
}

static void expect_none_ahead(struct text *t) { assert_int_equal(submitted(t), t->n - 1); }

static void count_steps(const peridot_sampling *chain, uint32_t n_max, void (*at_token)(struct text *t))
{
    struct text t;
    open_text(&t, chain, 16, n_max, 0);
    t.at_token = at_token;
    write_ahead(&t);
    assert_int_equal(t.n, n_max);
    assert_int_equal(submitted(&t), n_max - 1);   /* none is begun beyond the last */
    close_sequence(t.session);
}

/* Two steps are ahead of the one whose token is handed on, or as many as there will be. */
static void test_ahead(void **state)
{
    (void)state;
    assert_true(PD_N_STEPS >= 3);
    for (uint32_t n_max = 1; n_max <= 9; n_max++) count_steps(&chains[0], n_max, expect_ahead);
    for (size_t i = 5; i < PD_COUNT(chains); i++) count_steps(&chains[i], 9, expect_ahead);   /* penalties, biases */
}

/* What lifts tokens, all of the vocabulary or too much of it, and a kernel that is known to be wrong: the host
 * draws. */
static void test_not_ahead(void **state)
{
    (void)state;
    static const peridot_bias lift = {7, 1};
    static const peridot_sampling others[] = {
        {.repeat_penalty = 0.9f}, {.presence_penalty = -0.5f}, {.bias = &lift, .n_bias = 1},
        {.temperature = 1, .seed = 1},
        {.temperature = 1, .top_k = PD_TOPK + 1, .seed = 1},
        {.temperature = 1, .top_k = PD_TOPK - 63, .repeat_penalty = 1.1f, .seed = 1}};
    for (size_t i = 0; i < PD_COUNT(others); i++) {
        count_steps(&others[i], 9, expect_none_ahead);
        check_stop(&others[i], 16, 12, 5);
    }
    model->m.gpu->wrong[PD_KERNEL_sample] = true;
    count_steps(&chains[2], 9, expect_none_ahead);
    check_stop(&chains[2], 16, N_REPLY, 0);
    model->m.gpu->wrong[PD_KERNEL_sample] = false;
}

static void take_long(struct text *t)
{
    expect_none_ahead(t);
    assert_true(t->n == 1 || t->session->session->s->decoder.step_s > 0);
}

/* Of steps that take long none is ahead but those that were begun before one was timed; the text is the same. */
static void test_slow_steps(void **state)
{
    (void)state;
    struct text t;
    queue_s = -1;
    count_steps(&chains[2], 9, take_long);
    check_stop(&chains[2], 16, N_REPLY, 0);
    queue_s = 1e-9;   /* shorter than any: only the first step has others behind it */
    open_text(&t, &chains[0], 16, 20, 3);
    write_ahead(&t);
    assert_int_equal(submitted(&t), PD_N_STEPS);
    close_sequence(t.session);
    check_stop(&chains[1], 16, 20, 0);
    queue_s = 1e9;
}

/* ---- calls from the callback ---- */

static void change_chain(struct text *t)
{
    if (t->n % 4 == 2) peridot_set_sampling(t->session, &chains[3 - t->n / 4 % 2]);
}

static void draw_one(struct text *t)
{
    int32_t token;
    if (t->n % 5 == 0) EXPECT_OK(peridot_sample(&token, t->session));
}

static void add_tokens(struct text *t)
{
    if (t->n == 4 || t->n == 9) EXPECT_OK(peridot_sequence_eval(t->session, prompt + 1, t->n / 3, NULL));
}

static void start_again(struct text *t)
{
    if (t->n != 8) return;
    reset_sequence(t->session);
    EXPECT_OK(peridot_sequence_eval(t->session, prompt, 3, NULL));
}

static void test_calls_between(void **state)
{
    (void)state;
    void (*const calls[])(struct text *t) = {change_chain, draw_one, add_tokens, start_again};
    for (size_t i = 0; i < PD_COUNT(calls); i++) {
        struct text a, b;
        open_text(&a, &chains[2], 4, 20, 0);
        open_text(&b, &chains[2], 4, 20, 0);
        a.at_token = b.at_token = calls[i];
        write_ahead(&a);
        write_plainly(&b);
        expect_same(&a, &b);
    }
}

/* ---- the demo model ---- */

static void test_demo(void **state)
{
    (void)state;
    static const peridot_sampling usual[] = {{0}, {.temperature = 1, .top_k = 40, .seed = 3},
                                             {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f,
                                              .seed = 4}};
    peridot_model *golden = model;
    EXPECT_OK(peridot_model_open(&model, PERIDOT_MODELS "/stories.gguf", NULL));
    for (size_t i = 0; i < PD_COUNT(usual); i++) {
        struct text a = {.n_max = N_REPLY}, b = {.n_max = N_REPLY};
        EXPECT_OK(open_sequence(&a.session, model, &(peridot_session_params){.ctx = CTX}));
        a.session->session->s->decoder.queue_s = queue_s;
        EXPECT_OK(open_sequence(&b.session, model, &(peridot_session_params){.ctx = CTX}));
        peridot_set_sampling(a.session, &usual[i]);
        peridot_set_sampling(b.session, &usual[i]);
        write_ahead(&a);
        write_plainly(&b);
        assert_int_equal(a.n, b.n);
        assert_memory_equal(a.tokens, b.tokens, a.n * sizeof *a.tokens);
        close_sequence(a.session);
        close_sequence(b.session);
    }
    peridot_model_close(model);
    model = golden;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text), cmocka_unit_test(test_stops), cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_not_ahead), cmocka_unit_test(test_slow_steps), cmocka_unit_test(test_calls_between),
        cmocka_unit_test(test_demo),
    };
    return cmocka_run_group_tests_name("steps", tests, open_shared, close_shared);
}

/* A device that is lost in the middle of things, in a submit or in waiting for it: every later call on its model says
 * so and does no harm, and what was there goes on in a new session of the model opened anew. */
#include "format_fixture.h"
#include "sequence_fixture.h"

#include "api/api.h"
#include "engine/memory/memory.h"
#include "gpu/gpu_.h"

#define MODEL PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf"

enum { N_PROMPT = 7, N_TEXT = 24, CHUNK = 4 };

static const int32_t prompt[N_PROMPT] = {2, 17, 99, 5, 201, 33, 64};

/* ---- losing a device ---- */

static int n_left;                 /* submits or waits that still succeed */
static VkResult lost_as;           /* what waits give then */
static PFN_vkQueueSubmit real_submit;
static PFN_vkWaitSemaphores real_wait;

static VKAPI_ATTR VkResult VKAPI_CALL lose_submit(VkQueue queue, uint32_t n, const VkSubmitInfo *submits, VkFence fence)
{
    return n_left-- > 0 ? real_submit(queue, n, submits, fence) : VK_ERROR_DEVICE_LOST;
}

/* Work is over when a device is lost: this one is given the time. */
static VKAPI_ATTR VkResult VKAPI_CALL lose_wait(VkDevice device, const VkSemaphoreWaitInfo *info, uint64_t timeout)
{
    VkResult result = real_wait(device, info, timeout);
    return n_left-- > 0 ? result : lost_as;
}

static void lose_after(peridot_model *model, int n, int waiting)
{
    struct pd_device_functions *vk = &model->m.gpu->vk;
    real_submit = vk->vkQueueSubmit;
    real_wait = vk->vkWaitSemaphores;
    n_left = n;
    lost_as = waiting == 2 ? VK_TIMEOUT : VK_ERROR_DEVICE_LOST;
    if (waiting) vk->vkWaitSemaphores = lose_wait;
    else vk->vkQueueSubmit = lose_submit;
}

/* ---- texts ---- */

struct timeline {
    peridot_model *model;
    peridot_sequence *session;
};

static void open_timeline(struct timeline *t)
{
    EXPECT_OK(peridot_model_open(&t->model, MODEL, NULL));
    EXPECT_OK(open_sequence(&t->session, t->model, &(peridot_session_params){.ctx = 64, .chunk = CHUNK}));
}

static void close_timeline(struct timeline *t)
{
    close_sequence(t->session);
    peridot_model_close(t->model);
}

/* Goes on until the session has N_TEXT tokens after the prompt, or fails. */
static peridot_status write_on(peridot_sequence *s)
{
    while (peridot_sequence_pos(s) < N_PROMPT + N_TEXT) {
        int32_t token;
        PD_TRY(peridot_sample(&token, s));
        PD_TRY(peridot_sequence_eval(s, &token, 1, NULL));
    }
    return PERIDOT_OK;
}

static bool no_row(void *user, peridot_sequence *sequence, uint32_t pos, const float *row, size_t n)
{
    (void)user, (void)sequence, (void)pos, (void)row, (void)n;
    fail_msg("a row from a lost device");
    return false;
}

#define EXPECT_LOST(call) EXPECT_FAILURE(call, PERIDOT_ERROR_DEVICE_LOST, "was lost")

/* `other` had logits before the device was lost. */
static void check_all_calls(struct timeline *t, peridot_sequence *other)
{
    const float *logits;
    int32_t token;
    peridot_sequence *s;
    peridot_rates rates;
    peridot_kernel_time *times;
    size_t n;
    for (int i = 0; i < 2; i++) {
        peridot_sequence *each = i ? other : t->session;
        EXPECT_LOST(peridot_sequence_eval(each, prompt, 1, NULL));
        EXPECT_LOST(peridot_sequence_eval(each, prompt, 3, NULL));
        EXPECT_LOST(peridot_sequence_eval(each, NULL, 0, NULL));
        EXPECT_LOST(peridot_logits(&logits, each));
        EXPECT_LOST(peridot_sample(&token, each));
        EXPECT_LOST(peridot_generate(
            each, &(peridot_request_params){.prompt = prompt, .n_prompt = 1, .n_max = 4}, NULL));
        EXPECT_LOST(peridot_profile(&times, &n, &each, 1, 1));
        reset_sequence(each);
        EXPECT_LOST(peridot_sequence_eval(each, prompt, 2, &(peridot_eval_params){.hidden = no_row}));
    }
    EXPECT_LOST(open_sequence(&s, t->model, NULL));
    EXPECT_LOST(peridot_measure(&rates, t->model));
}

/* The device is lost after n_submits submits of a prompt and a text. */
static void check_resumes(const int32_t *want, int n_submits, int waiting)
{
    struct timeline before, after;
    peridot_sequence *other;
    int32_t kept[64];
    open_timeline(&before);
    EXPECT_OK(open_sequence(&other, before.model, &(peridot_session_params){.ctx = 16, .chunk = CHUNK}));
    EXPECT_OK(peridot_sequence_eval(other, prompt, 2, NULL));
    lose_after(before.model, n_submits, waiting);
    peridot_status status = peridot_sequence_eval(before.session, prompt, N_PROMPT, NULL);
    if (status == PERIDOT_OK) status = write_on(before.session);
    assert_int_equal(status, PERIDOT_ERROR_DEVICE_LOST);
    assert_non_null(strstr(peridot_last_error(), "was lost"));
    uint32_t n = peridot_sequence_pos(before.session);
    assert_in_range(n, 0, N_PROMPT + N_TEXT - 1);
    memcpy(kept, peridot_sequence_tokens(before.session), n * sizeof *kept);
    assert_memory_equal(kept, want, n * sizeof *kept);
    check_all_calls(&before, other);
    close_sequence(other);
    close_timeline(&before);

    open_timeline(&after);
    EXPECT_OK(peridot_sequence_eval(after.session, kept, n, NULL));
    if (n < N_PROMPT) EXPECT_OK(peridot_sequence_eval(after.session, prompt + n, N_PROMPT - n, NULL));
    EXPECT_OK(write_on(after.session));
    assert_memory_equal(peridot_sequence_tokens(after.session), want, (N_PROMPT + N_TEXT) * sizeof *want);
    close_timeline(&after);
}

static void test_resume(void **state)
{
    (void)state;
    struct timeline t;
    int32_t want[N_PROMPT + N_TEXT];
    open_timeline(&t);
    EXPECT_OK(peridot_sequence_eval(t.session, prompt, N_PROMPT, NULL));
    EXPECT_OK(write_on(t.session));
    memcpy(want, peridot_sequence_tokens(t.session), sizeof want);
    close_timeline(&t);
    for (int waiting = 0; waiting < 3; waiting++) {
        check_resumes(want, 0, waiting);
        check_resumes(want, 1, waiting);     /* between the prompt's two chunks */
        check_resumes(want, 2 + 9, waiting);
    }
}

/* ---- what was written stays ---- */

static bool count_piece(void *user, int32_t token, const char *text, size_t size)
{
    (void)token, (void)text, (void)size;
    ++*(int *)user;
    return true;
}

static peridot_status generate(struct timeline *t, int *n_pieces, peridot_stats *stats)
{
    peridot_request_params params = {
        .prompt = prompt, .n_prompt = N_PROMPT, .n_max = N_TEXT, .text = count_piece, .user = n_pieces};
    return peridot_generate(t->session, &params, stats);
}

static void test_generate(void **state)
{
    (void)state;
    struct timeline t;
    int n_pieces = 0;
    peridot_stats stats = {0};
    open_timeline(&t);
    lose_after(t.model, 2 + 5, true);
    EXPECT_LOST(generate(&t, &n_pieces, &stats));
    assert_int_equal(n_pieces, 6);   /* the sixth was drawn, and lost the device when it was evaluated */
    assert_int_equal(stats.n_generated, 6);
    assert_int_equal(peridot_sequence_pos(t.session), N_PROMPT + 5);
    close_timeline(&t);
}

/* A step that is queued ahead may be what loses the device, while those before it are at work. What was handed on
 * stays. */
static void test_generate_ahead(void **state)
{
    (void)state;
    int32_t want[N_PROMPT + N_TEXT];
    struct timeline t;
    peridot_stats stats = {0};
    int n_pieces;
    open_timeline(&t);
    EXPECT_OK(generate(&t, &n_pieces, NULL));
    memcpy(want, peridot_sequence_tokens(t.session), (N_PROMPT + N_TEXT - 1) * sizeof *want);
    close_timeline(&t);
    for (int n_steps = 0; n_steps < 8; n_steps++) {
        n_pieces = 0;
        open_timeline(&t);
        lose_after(t.model, 2 + n_steps, false);
        EXPECT_LOST(generate(&t, &n_pieces, &stats));
        uint32_t n = peridot_sequence_pos(t.session);
        assert_in_range(n_pieces, 1, n_steps + 1);
        assert_int_equal(stats.n_generated, n_pieces);
        assert_int_equal(n, N_PROMPT + n_pieces - 1);
        assert_memory_equal(peridot_sequence_tokens(t.session), want, n * sizeof *want);
        EXPECT_LOST(peridot_sequence_eval(t.session, prompt, 1, NULL));
        close_timeline(&t);
    }
}

/* What snapshots have in the host's memory is of use in another session; those on the lost device count as there. */
static void test_snapshots(void **state)
{
    (void)state;
    peridot_model *model;
    peridot_session *s;
    peridot_sequence *q;
    static const int32_t turn[45] = {2, 17, 99};
    EXPECT_OK(peridot_model_open(&model, MODEL, NULL));
    EXPECT_OK(peridot_session_create(&s, model, &(peridot_session_params){.ctx = 512, .chunk = 16}));
    EXPECT_OK(peridot_sequence_create(&q, s));
    struct pd_cache *cache = &s->s->set.cache;
    for (uint32_t i = 0; cache->host_size == 0 && i < 8 * 18; i++)   /* turns, which snapshots part */
        EXPECT_OK(peridot_sequence_eval(q, turn, i % 18 ? 1 : PD_COUNT(turn), NULL));
    uint64_t host_size = cache->host_size;
    uint32_t kind = cache->pools[0].window ? 0 : 1, n_free = cache->pools[kind].n_free;
    assert_true(host_size > 0);
    lose_after(model, 0, false);
    EXPECT_LOST(pd_cache_make_room(cache, kind, n_free + 1));
    assert_int_equal(cache->host_size, host_size);
    assert_int_equal(cache->pools[kind].n_free, n_free);
    peridot_session_free(s);
    peridot_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_resume), cmocka_unit_test(test_generate),
                                       cmocka_unit_test(test_generate_ahead), cmocka_unit_test(test_snapshots)};
    return cmocka_run_group_tests_name("lost", tests, NULL, NULL);
}

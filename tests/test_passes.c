/* What passes cost and how they are submitted: prompts in pieces that can be stopped, the next chunk while one is at
 * work, weights that many sequences read once, rows that are read back together, and angles for tables in use. */
#include "format_fixture.h"
#include "sequence_fixture.h"

#include "api/api.h"
#include "format/format.h"
#include "gpu/gpu_.h"
#include "ops/ops.h"

#define GEMMA2 PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf"
#define LLAMA PERIDOT_GOLDEN "/llama-quants/model.gguf"

enum { CTX = 320, CHUNK = 128, N_PROMPT = 300, MAX_WIDTH = 512, N_MANY = 32 };

/* ---- what is recorded and submitted ---- */

static peridot_model *model;
static struct pd_device_functions real;   /* that the hooks call */
static struct {
    uint32_t n_submits, most_at_work;
    uint32_t cancel_at;                   /* the submit at which the session is cancelled; 0: none */
    peridot_session *session;
    uint32_t n_copies, n_pushes;
    struct pd_matvec_push pushes[256];
} seen;

static VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue queue, uint32_t n, const VkSubmitInfo *submits, VkFence fence)
{
    const struct pd_gpu *gpu = model->m.gpu;
    seen.n_submits++;
    seen.most_at_work = (uint32_t)pd_max(seen.most_at_work, gpu->timeline_value - gpu->timeline_done);
    if (seen.n_submits == seen.cancel_at) peridot_cancel(seen.session);
    return real.vkQueueSubmit(queue, n, submits, fence);
}

static VKAPI_ATTR void VKAPI_CALL copy(VkCommandBuffer buffer, VkBuffer from, VkBuffer to, uint32_t n,
                                       const VkBufferCopy *regions)
{
    seen.n_copies++;
    real.vkCmdCopyBuffer(buffer, from, to, n, regions);
}

static bool is_matvec(VkPipelineLayout layout)
{
    for (int id = 0; id < PD_N_KERNELS; id++)
        if (model->m.gpu->layouts[id] == layout) return pd_is_tuned((enum pd_kernel_id)id);
    return false;
}

static VKAPI_ATTR void VKAPI_CALL push(VkCommandBuffer buffer, VkPipelineLayout layout, VkShaderStageFlags stages,
                                       uint32_t offset, uint32_t size, const void *values)
{
    if (is_matvec(layout) && seen.n_pushes < PD_COUNT(seen.pushes)) {
        assert_int_equal(size, sizeof *seen.pushes);
        memcpy(&seen.pushes[seen.n_pushes++], values, size);
    }
    real.vkCmdPushConstants(buffer, layout, stages, offset, size, values);
}

static void open_hooked(const char *path, const char *const *kernels, size_t n_kernels)
{
    EXPECT_OK(peridot_model_open(&model, path, &(peridot_model_params){.kernels = kernels, .n_kernels = n_kernels}));
    struct pd_device_functions *vk = &model->m.gpu->vk;
    real = *vk;
    vk->vkQueueSubmit = submit;
    vk->vkCmdCopyBuffer = copy;
    vk->vkCmdPushConstants = push;
    assert_true(peridot_model_get_info(model)->n_outputs <= MAX_WIDTH);
    memset(&seen, 0, sizeof seen);
}

static peridot_sequence *begin(uint32_t n_sequences)
{
    peridot_sequence *q;
    EXPECT_OK(open_sequence(
        &q, model, &(peridot_session_params){.ctx = CTX, .chunk = CHUNK, .n_sequences = n_sequences}));
    memset(&seen, 0, sizeof seen);
    seen.session = peridot_sequence_session(q);
    return q;
}

static int32_t tokens[N_PROMPT];

static int make_tokens(void **state)
{
    (void)state;
    for (int i = 0; i < N_PROMPT; i++) tokens[i] = i == 0 ? 2 : (i * 31) % 250;
    return 0;
}

/* ---- pieces ---- */

struct rows {
    float at[N_PROMPT][MAX_WIDTH];
    uint32_t n;
};

static bool keep_row(void *user, peridot_sequence *q, uint32_t pos, const float *row, size_t n)
{
    struct rows *rows = user;
    (void)q, (void)pos;
    memcpy(rows->at[rows->n++], row, n * sizeof *row);
    return true;
}

/* However small the pieces of a chunk are, down to 32 tokens of one matrix, every row is what it is in one piece. */
static void check_pieces(const char *path, const char *const *kernels, size_t n_kernels)
{
    struct rows *rows = calloc(2, sizeof *rows);
    assert_non_null(rows);
    open_hooked(path, kernels, n_kernels);
    for (int i = 0; i < 2; i++) {
        peridot_sequence *q = begin(1);
        q->session->s->prefill.piece_work = i;
        for (uint32_t pos = 0, n; pos < N_PROMPT; pos += n) {
            n = (uint32_t)pd_min(CHUNK, N_PROMPT - pos);
            EXPECT_OK(peridot_sequence_eval(q, tokens + pos, n,
                                            &(peridot_eval_params){.logits = keep_row, .user = &rows[i]}));
            q->session->s->prefill.piece_work = i;   /* it adapts */
            if (i) assert_in_range(seen.n_submits, 15, 400);
            else assert_int_equal(seen.n_submits, 1 + pd_div_up(n, PD_LOGITS_ROWS));   /* and of logits */
            seen.n_submits = 0;
        }
        close_sequence(q);
    }
    assert_int_equal(rows[1].n, N_PROMPT);
    assert_memory_equal(rows[0].at, rows[1].at, sizeof rows->at);
    peridot_model_close(model);
    free(rows);
}

static void test_pieces(void **state)
{
    (void)state;
    static const char *const tiles[] = {"matmul=tile", "attention=tile"}, *const columns[] = {"attention=columns"};
    check_pieces(GEMMA2, NULL, 0);
    check_pieces(GEMMA2, tiles, 2);
    check_pieces(LLAMA, columns, 1);
}

/* Pieces adapt to what they took: before the next chunk they are as small as can be again. */
static bool keep_small(void *user, uint64_t done, uint64_t total)
{
    (void)done, (void)total;
    peridot_sequence *q = user;
    q->session->s->prefill.piece_work = 1;
    return true;
}

/* Cancelled while a piece is at work, nothing more is submitted; the chunk was never there, and those before it
 * stand. */
static void test_cancel(void **state)
{
    (void)state;
    float want[MAX_WIDTH];
    const float *logits;
    open_hooked(GEMMA2, NULL, 0);
    size_t size = peridot_model_get_info(model)->n_outputs * sizeof *want;
    peridot_sequence *q = begin(1);
    EXPECT_OK(peridot_sequence_eval(q, tokens, N_PROMPT, NULL));
    EXPECT_OK(peridot_logits(&logits, q));
    memcpy(want, logits, size);
    close_sequence(q);
    uint32_t n_stood = 0;
    for (uint32_t at = 1; at < 400; at += 29) {
        q = begin(1);
        seen.cancel_at = at;
        EXPECT_FAILURE(peridot_sequence_eval(q, tokens, N_PROMPT,
                                             &(peridot_eval_params){.progress = keep_small, .user = q}),
                       PERIDOT_CANCELLED, "stopped within a prompt");
        assert_int_equal(seen.n_submits, at);
        uint32_t pos = peridot_sequence_pos(q);
        assert_int_equal(pos % CHUNK, 0);
        n_stood += pos > 0;
        EXPECT_OK(peridot_sequence_eval(q, tokens + pos, N_PROMPT - pos, NULL));
        EXPECT_OK(peridot_logits(&logits, q));
        assert_memory_equal(logits, want, size);
        close_sequence(q);
    }
    assert_in_range(n_stood, 1, 13);
    peridot_model_close(model);
}

/* The same of a request's prompt; it goes on in the next round. */
static void test_cancel_request(void **state)
{
    (void)state;
    peridot_request *r;
    size_t n_running;
    open_hooked(GEMMA2, NULL, 0);
    peridot_sequence *q = begin(1);
    EXPECT_OK(peridot_request_create(
        &r, q, &(peridot_request_params){.prompt = tokens, .n_prompt = N_PROMPT, .n_max = 1}));
    q->session->s->prefill.piece_work = 1;
    seen.cancel_at = 5;
    EXPECT_FAILURE(peridot_session_run(seen.session, &n_running), PERIDOT_CANCELLED, "stopped within a prompt");
    assert_int_equal(seen.n_submits, 5);
    assert_int_equal(peridot_sequence_pos(q), 0);
    assert_false(peridot_request_done(r, NULL, NULL));
    do EXPECT_OK(peridot_session_run(seen.session, &n_running));
    while (n_running);
    assert_int_equal(peridot_sequence_pos(q), N_PROMPT);
    close_sequence(q);
    peridot_model_close(model);
}

struct progress {
    uint64_t last;
    uint32_t n, n_stop;
};

static bool follow(void *user, uint64_t done, uint64_t total)
{
    struct progress *p = user;
    assert_int_equal(total, N_PROMPT);
    assert_true(done >= p->last && done <= total);
    p->last = done;
    return ++p->n != p->n_stop;
}

static void test_progress(void **state)
{
    (void)state;
    open_hooked(GEMMA2, NULL, 0);
    for (uint32_t n_stop = 0; n_stop < 50; n_stop += 7) {
        peridot_sequence *q = begin(1);
        struct progress p = {.n_stop = n_stop};
        peridot_request_params params = {
            .prompt = tokens, .n_prompt = N_PROMPT, .n_max = 1, .progress = follow, .user = &p};
        q->session->s->prefill.piece_work = 1;
        peridot_status status = peridot_generate(q, &params, NULL);
        assert_int_equal(status, n_stop ? PERIDOT_CANCELLED : PERIDOT_OK);
        if (n_stop) assert_int_equal(p.n, n_stop);
        else assert_true(p.n > 50 && p.last > CHUNK);
        close_sequence(q);
    }
    peridot_sequence *q = begin(2);   /* and round by round */
    struct progress p = {.n_stop = 2};
    peridot_request *r;
    size_t n_running;
    peridot_status status = PERIDOT_OK;
    EXPECT_OK(peridot_request_create(&r, q, &(peridot_request_params){.prompt = tokens, .n_prompt = N_PROMPT,
                                                                      .n_max = 1, .progress = follow, .user = &p}));
    EXPECT_OK(peridot_session_run(seen.session, &n_running));
    assert_in_range(p.last, 1, 64);   /* nothing was measured yet */
    EXPECT_OK(peridot_session_run(seen.session, &n_running));
    assert_true(n_running == 0 && peridot_request_done(r, &status, NULL));
    assert_int_equal(status, PERIDOT_CANCELLED);
    close_sequence(q);
    peridot_model_close(model);
}

/* ---- the next chunk ---- */

/* It is written, recorded and submitted while a GPU works on the one before it; what comes out is the same. */
static void test_overlap(void **state)
{
    (void)state;
    float want[MAX_WIDTH] = {0};
    const float *logits;
    open_hooked(GEMMA2, NULL, 0);
    size_t size = peridot_model_get_info(model)->n_outputs * sizeof *want;
    for (int overlap = 0; overlap < 2; overlap++) {
        peridot_sequence *q = begin(1);
        assert_true(q->session->s->prefill.cpu);   /* it works on the recording, too */
        q->session->s->prefill.cpu = !overlap;
        EXPECT_OK(peridot_sequence_eval(q, tokens, N_PROMPT, NULL));
        assert_int_equal(seen.most_at_work, overlap ? 2 : 1);
        EXPECT_OK(peridot_logits(&logits, q));
        if (overlap) assert_memory_equal(logits, want, size);
        memcpy(want, logits, size);
        close_sequence(q);
    }
    peridot_model_close(model);
}

/* ---- what is read ---- */

/* A step of 32 sequences has each matrix in one dispatch, which goes through all tokens while it has a few rows of
 * weights in its cache or registers: memory gives them once. */
static void check_weights(const char *path, bool gpu)
{
    peridot_prompt prompts[N_MANY];
    open_hooked(path, NULL, 0);
    if (gpu) {
        model->m.gpu->info.type = PERIDOT_DEVICE_DISCRETE;
        model->m.variants = pd_variants_default(pd_gpu_info(model->m.gpu));
    }
    peridot_sequence *first = begin(N_MANY);
    for (uint32_t i = 0; i < N_MANY; i++) {
        prompts[i] = (peridot_prompt){first, tokens, 1};
        if (i) EXPECT_OK(peridot_sequence_create(&prompts[i].sequence, seen.session));
    }
    EXPECT_OK(peridot_eval(seen.session, prompts, N_MANY, NULL));
    uint32_t n_slices = model->m.weights.output.w.n_slices, most = 0;
    for (uint32_t i = 0; i < model->m.config.n_layers; i++)
        for (size_t m = 0; m < PD_N_LAYER_MATRICES; m++) n_slices += model->m.weights.layers[i].linears[m].w.n_slices;
    for (uint32_t i = 0; i < seen.n_pushes; i++) {
        uint32_t n = 0;
        for (uint32_t k = 0; k < seen.n_pushes; k++)
            n += memcmp(&seen.pushes[k].w, &seen.pushes[i].w, sizeof seen.pushes->w) == 0;
        most = (uint32_t)pd_max(most, n);
        assert_int_equal(seen.pushes[i].n_tokens * n, N_MANY);
    }
    assert_in_range(seen.n_pushes, n_slices, PD_COUNT(seen.pushes) - 1);   /* all of them were seen */
    assert_in_range(most, 1, gpu ? 2 : 4);
    close_sequence(first);
    peridot_model_close(model);
}

static void test_weights(void **state)
{
    (void)state;
    for (int gpu = 0; gpu < 2; gpu++) {
        check_weights(GEMMA2, gpu);
        check_weights(LLAMA, gpu);
    }
}

/* Rows of results come 32 at a time from a GPU's own memory. */
static void test_rows(void **state)
{
    (void)state;
    static const char *const paths[] = {GEMMA2, LLAMA};
    struct rows *rows = calloc(1, sizeof *rows);
    assert_non_null(rows);
    for (size_t i = 0; i < PD_COUNT(paths); i++) {
        for (int hidden = 0; hidden < 2; hidden++) {
            open_hooked(paths[i], NULL, 0);
            model->m.gpu->info.unified_memory = false;
            peridot_sequence *q = begin(1);
            rows->n = 0;
            EXPECT_OK(peridot_sequence_eval(q, tokens, N_PROMPT,
                                            &(peridot_eval_params){.logits = hidden ? NULL : keep_row,
                                                                   .hidden = hidden ? keep_row : NULL,
                                                                   .user = rows}));
            assert_int_equal(rows->n, N_PROMPT);
            /* The last position's logits are a row of their own. */
            assert_int_equal(seen.n_copies, 2 * CHUNK / PD_LOGITS_ROWS + 2 + (hidden ? 0 : 1));
            close_sequence(q);
            peridot_model_close(model);
        }
    }
    free(rows);
}

/* ---- embeddings ---- */

/* The rows that the model's own tokens have, as the device computes them. */
static float *embed(uint32_t d_model)
{
    const struct pd_tensor *t = pd_checkpoint_find(model->m.checkpoint, "token_embd.weight");
    float *rows = malloc(N_PROMPT * d_model * sizeof *rows);
    assert_non_null(t);
    assert_non_null(rows);
    const struct pd_dtype_info *type = &pd_dtypes[t->dtype];
    uint64_t row_size = t->size / t->shape[0];
    for (uint32_t i = 0; i < N_PROMPT; i++) {
        float *row = rows + (size_t)i * d_model;
        type->decode(row, t->data + (uint64_t)tokens[i] * row_size, d_model / type->block_len);
        for (uint32_t k = 0; k < d_model; k++) row[k] *= model->m.config.embed_scale;
    }
    return rows;
}

/* A prompt of which some tokens, all or none are rows of embeddings: the same bits. */
static void read_embedded(float *out, const float *rows, uint32_t begin_row, uint32_t end_row)
{
    const float *logits, *of[N_PROMPT] = {0};
    uint32_t d_model = model->m.config.d_model;
    peridot_sequence *q = begin(1);
    for (uint32_t i = begin_row; i < end_row; i++) of[i] = rows + (size_t)i * d_model;
    struct pd_prompt prompt = {.sequence = q->q, .tokens = tokens, .embeddings = of, .n_left = N_PROMPT};
    EXPECT_OK(pd_session_eval(q->session->s, &prompt, 1, NULL));
    EXPECT_OK(peridot_logits(&logits, q));
    memcpy(out, logits, peridot_model_get_info(model)->n_outputs * sizeof *out);
    close_sequence(q);
}

static void test_embeddings(void **state)
{
    (void)state;
    static const uint32_t cases[][2] = {{0, N_PROMPT}, {7, 8}, {CHUNK - 3, CHUNK + 60}, {N_PROMPT - 1, N_PROMPT}};
    float want[MAX_WIDTH], got[MAX_WIDTH];
    static const char *const paths[] = {GEMMA2, LLAMA};
    for (size_t i = 0; i < PD_COUNT(paths); i++) {
        open_hooked(paths[i], NULL, 0);
        size_t size = peridot_model_get_info(model)->n_outputs * sizeof *want;
        uint32_t d_model = model->m.config.d_model;
        float *rows = embed(d_model);
        read_embedded(want, rows, 0, 0);
        for (size_t k = 0; k < PD_COUNT(cases); k++) {
            read_embedded(got, rows, cases[k][0], cases[k][1]);
            assert_memory_equal(got, want, size);
        }
        rows[(size_t)(CHUNK + 1) * d_model] += 0.5f;   /* one number of one row */
        read_embedded(got, rows, CHUNK, CHUNK + 3);
        assert_memory_not_equal(got, want, size);
        free(rows);
        peridot_model_close(model);
    }
}

/* ---- layers that write no keys ---- */

static uint32_t count_wide_pushes(void)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < seen.n_pushes; i++) n += seen.pushes[i].n_tokens > 1;
    return n;
}

/* Logits after a prompt of n tokens; `rows`: those of all rows are wanted, too. */
static uint32_t read_tail(float *out, uint32_t n, struct rows *rows)
{
    const float *logits;
    peridot_sequence *q = begin(1);
    const peridot_eval_params params = {.logits = rows ? keep_row : NULL, .user = rows};
    if (rows) rows->n = 0;
    seen.n_pushes = 0;
    EXPECT_OK(peridot_sequence_eval(q, tokens, n, &params));
    uint32_t n_wide = count_wide_pushes();
    EXPECT_OK(peridot_logits(&logits, q));
    memcpy(out, logits, peridot_model_get_info(model)->n_outputs * sizeof *out);
    close_sequence(q);
    return n_wide;
}

/* Rows that nobody asks for stop before the layers that only read keys; the row that is asked for has the same bits. */
static void test_tail(void **state)
{
    (void)state;
    static const uint32_t n_tokens[] = {1, 2, 40, CHUNK, CHUNK + 1, N_PROMPT};
    float want[MAX_WIDTH], got[MAX_WIDTH];
    struct rows *rows = calloc(1, sizeof *rows);
    assert_non_null(rows);
    open_hooked(PERIDOT_GOLDEN "/gemma4-small/model.gguf", NULL, 0);
    for (size_t i = 0; i < PD_COUNT(n_tokens); i++) {
        read_tail(want, n_tokens[i], rows);
        uint32_t n_wide = read_tail(got, n_tokens[i], NULL);
        assert_memory_equal(got, want, peridot_model_get_info(model)->n_outputs * sizeof *want);
        /* the matrices of three layers of six, and of the inputs of all */
        if (n_tokens[i] == 2 || n_tokens[i] == 40) assert_int_equal(n_wide, 3 * 6 + 1);
    }
    peridot_model_close(model);
    free(rows);
}

/* Sines and cosines of each table that layers have: one in a Llama, two in a Gemma 3, of heads of two sizes in a
 * Gemma 4. */
static void test_angles(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        uint32_t n;            /* columns of all tables */
    } models[] = {
        {LLAMA, 32}, {GEMMA2, 32}, {PERIDOT_GOLDEN "/gemma3", 2 * 16}, {PERIDOT_GOLDEN "/gemma4", 16 + 32}};
    for (size_t i = 0; i < PD_COUNT(models); i++) {
        open_hooked(models[i].path, NULL, 0);
        peridot_sequence *q = begin(1);
        uint64_t size = models[i].n * sizeof(float) * CHUNK;
        assert_int_equal(q->session->s->prefill.chunks[0].pass.input.angles.size, size);
        close_sequence(q);
        peridot_model_close(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),   cmocka_unit_test(test_cancel),  cmocka_unit_test(test_cancel_request),
        cmocka_unit_test(test_progress), cmocka_unit_test(test_overlap), cmocka_unit_test(test_weights),
        cmocka_unit_test(test_rows),     cmocka_unit_test(test_angles), cmocka_unit_test(test_embeddings),
        cmocka_unit_test(test_tail),
    };
    return cmocka_run_group_tests_name("passes", tests, make_tokens, NULL);
}

/* Models that see, against Hugging Face transformers: pixels, rows of the tower, logits and hidden states of every
 * position of prompts with one and two images, from directories and from mmproj files; and images among everything else
 * that sequences and requests do: chunks, others beside them, prefixes, going back, saving, drafts.
 *
 * Tolerances are relative L2 errors, of rows of exact models with an fp32 cache, where float32 arithmetic costs up to
 * 3e-6 (rows) and 1.2e-5 (logits). A GELU by erf in place of tanh moves a row by 5e-5. With a q8_0 cache they are those
 * of test_golden. */
#include "vision_fixture.h"
#include "sequence_fixture.h"

#include <math.h>

#define ROW_TOLERANCE 1e-5
#define TOLERANCE 2e-5
#define Q8_TOLERANCE 2e-2
#define Q8_HIDDEN_TOLERANCE 2e-3

static const char *const folders[] = {"gemma3-vision", "gemma4-vision", "gemma4-dense-vision", "gemma4-unified-vision"};
enum { N_FOLDERS = 4, IMAGE_ROWS = 70, N_TEXT = 24, CTX = 256 };

/* ---- against transformers ---- */

static const struct golden {
    const char *name, *file, *vision, *rows;
    bool compares;                 /* logits too */
} goldens[] = {
    {"gemma3-vision", "", NULL, "rows.f32", true},
    {"gemma3-vision", "", "mmproj.gguf", "rows.f32", true},
    {"gemma3-vision", "/model.gguf", "mmproj.gguf", "rows.f32", true},
    {"gemma3-vision", "/model.gguf", "mmproj-q8_0.gguf", "rows-q8_0.f32", false},
    {"gemma3-vision", "/model.gguf", "mmproj-q4_0.gguf", "rows-q4_0.f32", false},
    {"gemma4-vision", "", NULL, "rows.f32", true},
    {"gemma4-vision", "", "mmproj.gguf", "rows.f32", true},
    {"gemma4-vision", "", "mmproj-q4_0.gguf", "rows-q4_0.f32", false},
    {"gemma4-dense-vision", "", NULL, "rows.f32", true},
    {"gemma4-dense-vision", "", "mmproj.gguf", "rows.f32", true},
    {"gemma4-unified-vision", "", NULL, "rows.f32", true},
    {"gemma4-unified-vision", "", "mmproj.gguf", "rows.f32", true},
    {"qwen35-vision", "", NULL, "rows.f32", true},
    {"qwen35-vision", "", "mmproj.gguf", "rows.f32", true},
};

static void open_golden(struct seeing *s, const struct golden *g)
{
    char vision[1024];
    snprintf(vision, sizeof vision, PERIDOT_GOLDEN "/%s/%s", g->name, g->vision ? g->vision : "");
    seeing_open(s, g->name, g->file,
                &(peridot_model_params){.size = sizeof(peridot_model_params), .precision = PERIDOT_PRECISION_EXACT,
                                        .vision = g->vision ? vision : NULL, .image_rows = IMAGE_ROWS});
}

/* In patches, as the tower takes them: SigLIP's golden is whole planes, Gemma 4's patches of values from 0 to 1. */
static double pixel_of(const struct seeing *s, const float *golden, uint32_t patch, uint32_t i)
{
    const struct pd_tower_config *c = &s->model->tower_config;
    const struct pd_patches *p = &engine_of(s->images[0])->patches;
    uint32_t side = c->patch, dim = pd_tower_patch_dim(c), n_pixels = side * side;
    uint32_t channel = c->channels_last ? i % 3 : i / n_pixels, pixel = c->channels_last ? i / 3 : i % n_pixels;
    if (c->kind == PD_TOWER_QWEN) return (double)golden[patch * dim + i];
    if (c->kind != PD_TOWER_SIGLIP) {
        double value = (double)golden[patch * dim + 3 * pixel + channel];
        return c->kind == PD_TOWER_GEMMA4 ? 2 * value - 1 : value;
    }
    uint32_t y = patch / p->n_columns * side + pixel / side, x = patch % p->n_columns * side + pixel % side;
    return (double)golden[(channel * c->image_size + y) * c->image_size + x];
}

static void check_pixels(const struct seeing *s)
{
    const struct pd_patches *p = &engine_of(s->images[0])->patches;
    uint32_t dim = pd_tower_patch_dim(&s->model->tower_config), n = p->n_columns * p->n_patch_rows;
    size_t size;
    float *golden = read_golden(s->name, "pixels.f32", &size);
    assert_int_equal(size, (size_t)n * dim * sizeof *golden);
    for (uint32_t i = 0; i < n * dim; i++) {
        double want = pixel_of(s, golden, i / dim, i % dim), got = (double)p->at[i];
        if (!(fabs(got - want) < 1e-6))
            fail_msg("%s: number %u of patch %u is %.8f, not %.8f", s->name, i % dim, i / dim, got, want);
    }
    free(golden);
}

static double worst_row(const float *got, const float *want, uint32_t n, uint32_t width)
{
    double worst = 0;
    for (uint32_t i = 0; i < n; i++) {
        double error = relative_error(got + (size_t)i * width, want + (size_t)i * width, width);
        worst = error <= worst ? worst : error;   /* a NaN is the worst */
    }
    return worst;
}

/* In one call, or in as many as there are pieces, as where others wait. */
static void encode(struct pd_image *image, const struct pd_model *m, bool in_turns)
{
    const struct pd_tower_watch watch = {.piece_work = 1 << 22, .most_s = in_turns ? 1e-9 : 0};
    uint32_t n_calls = 0;
    for (; !image->rows; n_calls++) EXPECT_OK(pd_image_encode(image, m->tower, &watch));
    assert_true(in_turns ? n_calls > 1 : n_calls == 1);
}

static void check_rows(const struct seeing *s, const struct golden *g)
{
    size_t size;
    uint32_t width = s->model->tower_config.d_out;
    float *golden = read_golden(s->name, g->rows, &size), *want = golden;
    for (int i = 0; i < 2; i++) {
        struct pd_image *image = engine_of(s->images[i]);
        encode(image, &s->model->m, i == 1);
        double worst = worst_row(image->rows, want, image->n, width);
        print_message("%s%s %s: image %d, %u rows, worst %.1e\n", g->name, g->file, g->vision ? g->vision : "", i + 1,
                      image->n, worst);
        assert_true(worst < ROW_TOLERANCE);
        want += image->n * width;
    }
    assert_ptr_equal((char *)want, (char *)golden + size);
    free(golden);
}

struct comparison {
    float *logits, *hidden;        /* of transformers; logits NULL: not compared */
    double worst_logits, worst_hidden;
    uint32_t n;
};

static bool on_logits(void *user, peridot_sequence *q, uint32_t pos, const float *row, size_t n)
{
    struct comparison *c = user;
    double error = relative_error(row, c->logits + pos * n, n);
    (void)q;
    c->worst_logits = error <= c->worst_logits ? c->worst_logits : error;
    c->n++;
    return true;
}

static bool on_hidden(void *user, peridot_sequence *q, uint32_t pos, const float *row, size_t n)
{
    struct comparison *c = user;
    double error = relative_error(row, c->hidden + pos * n, n);
    (void)q;
    c->worst_hidden = error <= c->worst_hidden ? c->worst_hidden : error;
    c->n++;
    return true;
}

static peridot_session *open_session(const struct seeing *s, uint32_t n_sequences, uint32_t chunk, peridot_kv_type kv)
{
    peridot_session *session;
    EXPECT_OK(peridot_session_create(&session, s->model,
        &(peridot_session_params){.size = sizeof(peridot_session_params), .ctx = CTX, .chunk = chunk, .kv_type = kv,
                                  .n_sequences = n_sequences}));
    return session;
}

static peridot_sequence *add(peridot_session *session)
{
    peridot_sequence *q;
    EXPECT_OK(peridot_sequence_create(&q, session));
    return q;
}

static void check_prompt(const struct seeing *s, const int32_t *ids, size_t n, const char *logits, const char *hidden,
                         peridot_kv_type kv)
{
    size_t size;
    bool rounds = kv == PERIDOT_KV_Q8_0;
    struct comparison c = {.logits = read_golden(s->name, logits, &size)};
    assert_int_equal(size, n * peridot_model_get_info(s->model)->n_outputs * sizeof(float));
    c.hidden = read_golden(s->name, hidden, &size);
    peridot_session *session = open_session(s, 1, 0, kv);
    EXPECT_OK(peridot_sequence_eval(add(session), ids, n,
        &(peridot_eval_params){.size = sizeof(peridot_eval_params), .logits = on_logits, .hidden = on_hidden,
                               .user = &c}));
    peridot_session_free(session);
    print_message("  %s, %s: logits %.1e, hidden %.1e\n", rounds ? "q8_0" : "fp32", logits, c.worst_logits,
                  c.worst_hidden);
    assert_int_equal(c.n, 2 * n);
    assert_true(c.worst_logits < (rounds ? Q8_TOLERANCE : TOLERANCE));
    assert_true(c.worst_hidden < (rounds ? Q8_HIDDEN_TOLERANCE : TOLERANCE));
    free(c.logits);
    free(c.hidden);
}

static void test_goldens(void **state)
{
    (void)state;
    for (size_t i = 0; i < PD_COUNT(goldens); i++) {
        struct seeing s;
        open_golden(&s, &goldens[i]);
        if (!goldens[i].vision) check_pixels(&s);
        check_rows(&s, &goldens[i]);
        if (goldens[i].compares) {
            check_prompt(&s, s.one, s.n_one, "logits.f32", "hidden.f32", PERIDOT_KV_F32);
            check_prompt(&s, s.two, s.n_two, "logits-2.f32", "hidden-2.f32", PERIDOT_KV_F32);
            if (s.model->tower_config.kind != PD_TOWER_QWEN)
                check_prompt(&s, s.two, s.n_two, "logits-2.f32", "hidden-2-q8_0.f32", PERIDOT_KV_Q8_0);
        }
        seeing_close(&s);
    }
}

/* Positions in three dimensions follow from the ids alone: in pieces, step by step, after going back and in a fork, the
 * rows of a text with images are those of the whole. */
static void test_turns(void **state)
{
    (void)state;
    struct seeing s;
    size_t size;
    uint32_t kept;
    open_golden(&s, &goldens[PD_COUNT(goldens) - 2]);
    uint32_t first = first_row(s.two) + engine_of(s.images[0])->n, n = (uint32_t)s.n_two;
    struct comparison c = {.logits = read_golden(s.name, "logits-2.f32", &size),
                           .hidden = read_golden(s.name, "hidden-2.f32", &size)};
    const peridot_eval_params params = {.size = sizeof params, .logits = on_logits, .hidden = on_hidden, .user = &c};
    peridot_session *session = open_session(&s, 2, 0, PERIDOT_KV_F32);
    peridot_sequence *q = add(session), *fork;
    EXPECT_OK(peridot_sequence_eval(q, s.two, first + 2, &params));
    EXPECT_OK(peridot_sequence_fork(&fork, q, first + 2));
    EXPECT_OK(peridot_sequence_eval(fork, s.two + first + 2, n - first - 2, &params));
    uint32_t second = first + first_row(s.two + first) + engine_of(s.images[1])->n;
    EXPECT_OK(peridot_sequence_eval(q, s.two + first + 2, second - first - 2, &params));
    for (uint32_t i = second; i < n; i++) EXPECT_OK(peridot_sequence_eval(q, s.two + i, 1, &params));
    EXPECT_OK(peridot_sequence_truncate(q, second + 3, &kept));
    EXPECT_OK(peridot_sequence_eval(q, s.two + kept, n - kept, &params));
    peridot_session_free(session);
    session = open_session(&s, 1, 8, PERIDOT_KV_F32);   /* a chunk is written while the one before it is at work */
    EXPECT_OK(peridot_sequence_eval(add(session), s.two, n, &params));
    print_message("%s: in pieces, logits %.1e, hidden %.1e\n", s.name, c.worst_logits, c.worst_hidden);
    assert_true(c.worst_logits < TOLERANCE && c.worst_hidden < TOLERANCE);
    peridot_session_free(session);
    seeing_close(&s);
    free(c.logits);
    free(c.hidden);
}

/* ---- among everything else ---- */

static struct seeing shared[N_FOLDERS];

static int open_shared(void **state)
{
    for (int i = 0; i < N_FOLDERS; i++) seeing_open(&shared[i], folders[i], "", NULL);
    return make_folder(state);
}

static int close_shared(void **state)
{
    (void)state;
    for (int i = 0; i < N_FOLDERS; i++) seeing_close(&shared[i]);
    return rmdir(folder);
}

/* Rows of logits, in the order of their positions, of a prompt that may come in parts. */
struct rows {
    float *at;                     /* [MAX_TOKENS][width] */
    uint32_t n;
    size_t width;
};

static void rows_create(struct rows *rows)
{
    *rows = (struct rows){.at = calloc(MAX_TOKENS, MAX_WIDTH * sizeof(float))};
    assert_non_null(rows->at);
}

static bool keep_row(void *user, peridot_sequence *q, uint32_t pos, const float *row, size_t n)
{
    struct rows *rows = user;
    (void)q;
    assert_true(pos < MAX_TOKENS && n <= MAX_WIDTH);
    memcpy(rows->at + pos * MAX_WIDTH, row, n * sizeof *row);
    rows->width = n;
    rows->n++;
    return true;
}

static void expect_rows(const char *name, const char *what, const struct rows *got, const struct rows *want)
{
    assert_int_equal(got->n, want->n);
    for (uint32_t i = 0; i < want->n; i++)
        if (memcmp(got->at + i * MAX_WIDTH, want->at + i * MAX_WIDTH, want->width * sizeof(float)) != 0)
            fail_msg("%s: %s: row %u differs", name, what, i);
}

static void eval_rows(struct rows *rows, peridot_sequence *q, const int32_t *ids, size_t n)
{
    EXPECT_OK(peridot_sequence_eval(q, ids, n,
        &(peridot_eval_params){.size = sizeof(peridot_eval_params), .logits = keep_row, .user = rows}));
}

/* An image is not parted, however short chunks are, and all rows are the same bits. */
static void test_chunks(void **state)
{
    static const uint32_t chunks[] = {0, 1, 7, 17};
    (void)state;
    for (int i = 0; i < N_FOLDERS; i++) {
        const struct seeing *s = &shared[i];
        struct rows want;
        rows_create(&want);
        for (size_t k = 0; k < PD_COUNT(chunks); k++) {
            struct rows got;
            rows_create(&got);
            peridot_session *session = open_session(s, 1, chunks[k], PERIDOT_KV_F16);
            eval_rows(k ? &got : &want, add(session), s->two, s->n_two);
            if (k) expect_rows(s->name, "a short chunk", &got, &want);
            peridot_session_free(session);
            free(got.at);
        }
        free(want.at);
    }
}

/* One with an image and one without, in one call. */
static void test_beside_others(void **state)
{
    (void)state;
    for (int i = 0; i < N_FOLDERS; i++) {
        const struct seeing *s = &shared[i];
        const int32_t text[] = {2, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51};
        struct logits { float at[2][MAX_WIDTH]; } alone, together;
        size_t size = peridot_model_get_info(s->model)->n_outputs * sizeof(float);
        for (int both = 0; both < 2; both++) {
            struct logits *out = both ? &together : &alone;
            peridot_session *session = open_session(s, 2, 0, PERIDOT_KV_F16);
            const peridot_prompt prompts[] = {{add(session), s->one, s->n_one}, {add(session), text, PD_COUNT(text)}};
            const float *logits;
            if (both) EXPECT_OK(peridot_eval(session, prompts, 2, NULL));
            for (int k = 0; k < 2; k++) {
                if (!both) EXPECT_OK(peridot_eval(session, &prompts[k], 1, NULL));
                EXPECT_OK(peridot_logits(&logits, prompts[k].sequence));
                memcpy(out->at[k], logits, size);
            }
            peridot_session_free(session);
        }
        for (int k = 0; k < 2; k++)
            if (memcmp(alone.at[k], together.at[k], size) != 0) fail_msg("%s: sequence %d differs", s->name, k);
    }
}

/* ---- requests ---- */

struct text {
    int32_t tokens[N_TEXT];
    float logits[N_TEXT][MAX_WIDTH];
    uint32_t n, n_logits;
};

static bool keep_token(void *user, int32_t token, const char *text, size_t size)
{
    struct text *t = user;
    (void)text, (void)size;
    if (token >= 0) t->tokens[t->n++] = token;
    return true;
}

static bool keep_logits(void *user, peridot_sequence *q, uint32_t pos, const float *row, size_t n)
{
    struct text *t = user;
    (void)q, (void)pos;
    memcpy(t->logits[t->n_logits++], row, n * sizeof *row);
    return true;
}

static void expect_text(const char *name, const char *what, const struct text *got, const struct text *want)
{
    if (got->n != want->n || memcmp(got->tokens, want->tokens, want->n * sizeof *want->tokens) != 0)
        fail_msg("%s: %s: the text is another one", name, what);
    if (got->n_logits && memcmp(got->logits, want->logits, sizeof want->logits) != 0)
        fail_msg("%s: %s: the text's logits are others", name, what);
}

/* Hot, as a golden model says one thing over and over otherwise, and without an end; penalties look over images. */
static const peridot_bias ends[] = {{1, -INFINITY}, {106, -INFINITY}};
static const peridot_sampling chain = {.size = sizeof chain, .temperature = 5, .top_k = 40, .repeat_penalty = 1.2f,
    .frequency_penalty = 0.1f, .seed = 3, .bias = ends, .n_bias = PD_COUNT(ends)};

static peridot_request_params params_of(const int32_t *ids, size_t n, struct text *out)
{
    memset(out, 0, sizeof *out);
    return (peridot_request_params){.size = sizeof(peridot_request_params), .prompt = ids, .n_prompt = n,
        .n_max = N_TEXT, .text = keep_token, .user = out, .sampling = &chain};
}

static peridot_request *submit(peridot_session *session, const int32_t *ids, size_t n, struct text *out, bool logits)
{
    peridot_request_params params = params_of(ids, n, out);
    peridot_request *r;
    if (logits) params.logits = keep_logits;
    EXPECT_OK(peridot_request_submit(&r, session, &params));
    return r;
}

static void run_all(peridot_session *session)
{
    size_t n_running = 1;
    while (n_running) EXPECT_OK(peridot_session_run(session, &n_running));
}

static peridot_stats finish(peridot_request *r)
{
    peridot_stats stats = {.size = sizeof stats};
    peridot_status status;
    assert_true(peridot_request_done(r, &status, &stats));
    EXPECT_OK(status);
    peridot_request_free(r);
    return stats;
}

static peridot_stats run_one(peridot_session *session, const int32_t *ids, size_t n, struct text *out)
{
    peridot_request *r = submit(session, ids, n, out, false);
    run_all(session);
    return finish(r);
}

/* Text alone, one image, the other one in its place, and two. */
enum { N_PROMPTS = 4 };

static size_t make_prompt(int32_t ids[MAX_TOKENS], const struct seeing *s, int prompt)
{
    size_t n = prompt == 3 ? s->n_two : s->n_one, n_rows, at = first_row(s->one), n_old;
    const int32_t *rows = peridot_image_ids(s->images[1], &n_rows);
    memcpy(ids, prompt == 3 ? s->two : s->one, n * sizeof *ids);
    if (prompt == 0) n = at;
    if (prompt != 2) return n;
    peridot_image_ids(s->images[0], &n_old);
    memmove(ids + at + n_rows, ids + at + n_old, (n - at - n_old) * sizeof *ids);
    memcpy(ids + at, rows, n_rows * sizeof *ids);
    return n + n_rows - n_old;
}

static void test_requests(void **state)
{
    (void)state;
    for (int i = 0; i < N_FOLDERS; i++) {
        const struct seeing *s = &shared[i];
        int32_t ids[N_PROMPTS][MAX_TOKENS];
        size_t n[N_PROMPTS];
        static struct text alone[N_PROMPTS], together[N_PROMPTS];
        peridot_request *requests[N_PROMPTS];
        for (int k = 0; k < N_PROMPTS; k++) {
            n[k] = make_prompt(ids[k], s, k);
            peridot_session *session = open_session(s, N_PROMPTS, 16, PERIDOT_KV_F16);
            requests[k] = submit(session, ids[k], n[k], &alone[k], true);
            run_all(session);
            finish(requests[k]);
            assert_int_equal(alone[k].n, N_TEXT);
            peridot_session_free(session);
        }
        assert_memory_not_equal(alone[1].tokens, alone[2].tokens, sizeof alone[1].tokens);
        peridot_session *session = open_session(s, N_PROMPTS, 16, PERIDOT_KV_F16);
        for (int k = 0; k < N_PROMPTS; k++) requests[k] = submit(session, ids[k], n[k], &together[k], true);
        run_all(session);
        for (int k = 0; k < N_PROMPTS; k++) {
            finish(requests[k]);
            expect_text(s->name, "among others", &together[k], &alone[k]);
        }
        peridot_session_free(session);
    }
}

/* What another request has evaluated is reused with the same picture, and not beyond the text before another one. */
static void test_prefixes(void **state)
{
    (void)state;
    for (int i = 0; i < N_FOLDERS; i++) {
        const struct seeing *s = &shared[i];
        int32_t ids[MAX_TOKENS];
        static struct text first, again, other, alone;
        size_t n = make_prompt(ids, s, 1);
        uint32_t at = first_row(ids);
        peridot_session *session = open_session(s, 4, 0, PERIDOT_KV_F16);
        assert_int_equal(run_one(session, ids, n, &first).n_cached, 0);
        uint32_t n_cached = run_one(session, ids, n, &again).n_cached;
        expect_text(s->name, "from a prefix", &again, &first);
        if (n_cached < n - 1) fail_msg("%s: %u of %zu tokens were reused", s->name, n_cached, n);
        n = make_prompt(ids, s, 2);
        size_t n_rows;
        peridot_image_ids(s->images[1], &n_rows);
        size_t n_end = at + n_rows;
        n_cached = run_one(session, ids, n, &other).n_cached;
        if (n_cached > at) fail_msg("%s: %u tokens were reused, but the image begins at %u", s->name, n_cached, at);
        run_one(session, ids, n_end, &again);   /* the end is an image's */
        run_one(session, ids, n_end, &again);
        peridot_session_free(session);
        session = open_session(s, 4, 0, PERIDOT_KV_F16);
        run_one(session, ids, n, &alone);
        expect_text(s->name, "another picture", &other, &alone);
        peridot_session_free(session);
        session = open_session(s, 4, 0, PERIDOT_KV_F16);
        run_one(session, ids, n_end, &alone);
        expect_text(s->name, "a prompt that ends in a picture", &again, &alone);
        peridot_session_free(session);
    }
}

/* n_shared may say any place: within an image it is its beginning. */
static void test_shared_within(void **state)
{
    (void)state;
    for (int i = 0; i < N_FOLDERS; i++) {
        const struct seeing *s = &shared[i];
        static struct text want, got;
        peridot_session *session = open_session(s, 1, 0, PERIDOT_KV_F16);
        peridot_request_params params = params_of(s->one, s->n_one, &want);
        EXPECT_OK(peridot_generate(add(session), &params, NULL));
        peridot_session_free(session);
        session = open_session(s, 1, 0, PERIDOT_KV_F16);
        params = params_of(s->one, s->n_one, &got);
        params.n_shared = first_row(s->one) + 5;
        EXPECT_OK(peridot_generate(add(session), &params, NULL));
        expect_text(s->name, "shared within an image", &got, &want);
        peridot_session_free(session);
    }
}

/* With room for little more than one of them, they take turns, each to the end that it has alone. */
static void test_preempted(void **state)
{
    (void)state;
    for (int i = 0; i < N_FOLDERS; i++) {
        const struct seeing *s = &shared[i];
        int32_t ids[N_PROMPTS][MAX_TOKENS];
        static struct text alone[N_PROMPTS], crowded[N_PROMPTS];
        peridot_request *requests[N_PROMPTS];
        size_t n[N_PROMPTS];
        for (int k = 1; k < 3; k++) {
            n[k] = make_prompt(ids[k], s, k);
            peridot_session *session = open_session(s, 2, 0, PERIDOT_KV_F16);
            run_one(session, ids[k], n[k], &alone[k]);
            peridot_session_free(session);
        }
        peridot_session *session = open_session(s, 3, 0, PERIDOT_KV_F16);
        for (int k = 1; k < 3; k++) requests[k] = submit(session, ids[k], n[k], &crowded[k], false);
        size_t n_running = 1;
        uint32_t n_preempted = 0;
        for (int round = 0; n_running; round++) {
            EXPECT_OK(peridot_session_run(session, &n_running));
            if (round == 4 || round == 12) {   /* as if the cache were full */
                struct pd_request *r = session->schedule.running[0];
                peridot_set_error("full");
                if (r->state != PD_REQUEST_DONE) pd_request_end(session->s, r, PERIDOT_ERROR_MEMORY);
            }
        }
        for (int k = 1; k < 3; k++) {
            n_preempted += finish(requests[k]).n_preempted;
            expect_text(s->name, "after others", &crowded[k], &alone[k]);
        }
        assert_true(n_preempted > 0);
        peridot_session_free(session);
    }
}

/* ---- going back, and on ---- */

static void test_going_back(void **state)
{
    (void)state;
    for (int i = 0; i < N_FOLDERS; i++) {
        const struct seeing *s = &shared[i];
        uint32_t at = first_row(s->one), kept = 0;
        size_t n_rows;
        static struct text want, got;
        struct rows rows, again;
        peridot_sequence *q, *fork;
        peridot_image_ids(s->images[0], &n_rows);
        peridot_session *session = open_session(s, 2, 0, PERIDOT_KV_F16);
        rows_create(&rows);
        rows_create(&again);
        q = add(session);
        EXPECT_OK(peridot_set_sampling(q, &chain));
        eval_rows(&rows, q, s->one, at + n_rows + 3);
        const uint32_t places[] = {at + 1, at + 5, (uint32_t)(at + n_rows - 1)};
        for (size_t k = 0; k < PD_COUNT(places); k++) {
            assert_true(peridot_sequence_nearest(q, places[k]) <= at);
            EXPECT_FAILURE(peridot_sequence_truncate(q, places[k], NULL), PERIDOT_ERROR_ARGUMENT, "within an image");
            EXPECT_FAILURE(peridot_sequence_fork(&fork, q, places[k]), PERIDOT_ERROR_ARGUMENT, "within an image");
            assert_null(fork);
            EXPECT_OK(peridot_sequence_truncate(q, places[k], &kept));
            assert_int_equal(kept, at);
            again.n = at;
            eval_rows(&again, q, s->one + at, n_rows + 3);
            memcpy(again.at, rows.at, at * MAX_WIDTH * sizeof(float));
            expect_rows(s->name, "after going back", &again, &rows);
        }
        EXPECT_OK(peridot_sequence_fork(&fork, q, at + (uint32_t)n_rows));
        peridot_request_params params = params_of(s->one + at + n_rows, s->n_one - at - n_rows, &got);
        EXPECT_OK(peridot_generate(fork, &params, NULL));
        peridot_session_free(session);
        session = open_session(s, 2, 0, PERIDOT_KV_F16);
        params = params_of(s->one, s->n_one, &want);
        EXPECT_OK(peridot_generate(add(session), &params, NULL));
        expect_text(s->name, "after a fork", &got, &want);
        peridot_session_free(session);
        free(rows.at);
        free(again.at);
    }
}

/* Into a model that has never seen the picture. */
static void test_saved(void **state)
{
    (void)state;
    for (int i = 0; i < N_FOLDERS; i++) {
        static struct text want, got;
        struct seeing s;
        peridot_model *blank;
        peridot_sequence *q;
        char path[1024];
        snprintf(path, sizeof path, PERIDOT_GOLDEN "/%s", folders[i]);
        seeing_open(&s, folders[i], "", NULL);
        peridot_session *session = open_session(&s, 1, 0, PERIDOT_KV_F16);
        q = add(session);
        uint32_t at = first_row(s.one);
        size_t n_rows, n;
        peridot_image_ids(s.images[0], &n_rows);
        for (int inside = 0; inside < 2; inside++) {   /* at the end of the image, and of the prompt */
            n = inside ? s.n_one : at + n_rows;
            reset_sequence(q);
            EXPECT_OK(peridot_sequence_eval(q, s.one, n, NULL));
            EXPECT_OK(peridot_sequence_save(q, in_folder(inside ? "whole" : "image")));
        }
        peridot_request_params params = params_of(NULL, 0, &want);
        EXPECT_OK(peridot_generate(q, &params, NULL));
        peridot_session_free(session);
        EXPECT_OK(peridot_model_open(&blank, path, NULL));
        const struct seeing other = {.model = blank};
        session = open_session(&other, 2, 0, PERIDOT_KV_F16);
        for (int inside = 0; inside < 2; inside++) {
            size_t n_before = inside ? s.n_one : at + n_rows;
            EXPECT_OK(peridot_sequence_load(&q, session, in_folder(inside ? "whole" : "image")));
            assert_memory_equal(peridot_sequence_tokens(q), s.one, n_before * sizeof *s.one);
            params = params_of(s.one + n_before, s.n_one - n_before, &got);
            EXPECT_OK(peridot_generate(q, &params, NULL));
            expect_text(s.name, "after loading", &got, &want);
            remove(in_folder(inside ? "whole" : "image"));
        }
        peridot_session_free(session);
        peridot_model_close(blank);
        seeing_close(&s);
    }
}

/* ---- lives of images ---- */

static void test_freed(void **state)
{
    (void)state;
    struct seeing s;
    static struct text want, got;
    seeing_open(&s, folders[0], "", NULL);
    peridot_session *session = open_session(&s, 2, 0, PERIDOT_KV_F16);
    run_one(session, s.one, s.n_one, &want);
    peridot_session_free(session);
    peridot_image_free(s.images[0]);
    s.images[0] = read_image(s.model, s.name, "image-1.png");   /* without its rows again */
    session = open_session(&s, 2, 0, PERIDOT_KV_F16);
    peridot_request *r = submit(session, s.one, s.n_one, &got, false);
    peridot_image_free(s.images[0]);       /* a request that was submitted has its own */
    s.images[0] = NULL;
    run_all(session);
    finish(r);
    expect_text(s.name, "whose image was freed", &got, &want);
    assert_ptr_equal(s.model->m.images->first, engine_of(s.images[1]));
    EXPECT_FAILURE(peridot_sequence_eval(add(session), s.one, s.n_one, NULL), PERIDOT_ERROR_ARGUMENT,
                   "the image at token 16", "freed");
    const peridot_request_params params = params_of(s.one, s.n_one, &got);
    EXPECT_FAILURE(peridot_request_submit(&r, session, &params), PERIDOT_ERROR_ARGUMENT, "freed");
    s.images[0] = read_image(s.model, s.name, "image-1.png");
    EXPECT_FAILURE(peridot_sequence_eval(add(session), s.one, 20, NULL), PERIDOT_ERROR_ARGUMENT, "lacks rows");
    peridot_session_free(session);
    seeing_close(&s);
}

static void test_same_picture(void **state)
{
    (void)state;
    struct seeing s;
    seeing_open(&s, folders[1], "", NULL);
    peridot_image *same = read_image(s.model, s.name, "image-1.png");
    assert_ptr_equal(engine_of(same), engine_of(s.images[0]));
    assert_memory_not_equal(engine_of(same)->ids, engine_of(s.images[1])->ids, engine_of(same)->n * sizeof(int32_t));
    peridot_session *session = open_session(&s, 2, 0, PERIDOT_KV_F16);
    EXPECT_OK(peridot_sequence_eval(add(session), s.one, s.n_one, NULL));
    const float *rows = engine_of(same)->rows;
    assert_non_null(rows);
    assert_null(engine_of(same)->patches.at);   /* there is nothing left to compute them from */
    EXPECT_OK(peridot_sequence_eval(add(session), s.one, s.n_one, NULL));
    assert_ptr_equal(engine_of(same)->rows, rows);
    peridot_session_free(session);
    peridot_image_free(same);
    seeing_close(&s);
}

/* Weights are let go after each image, and rows are the same. */
static void test_little_memory(void **state)
{
    (void)state;
    for (int i = 0; i < N_FOLDERS; i++) {
        struct seeing s;
        struct rows want, got;
        rows_create(&want);
        rows_create(&got);
        peridot_session *session = open_session(&shared[i], 1, 0, PERIDOT_KV_F16);
        eval_rows(&want, add(session), shared[i].two, shared[i].n_two);
        peridot_session_free(session);
        seeing_open(&s, folders[i], "",
                    &(peridot_model_params){.size = sizeof(peridot_model_params), .gpu_memory = 1 << 30});
        uint64_t before = peridot_model_memory(s.model);
        session = open_session(&s, 1, 0, PERIDOT_KV_F16);
        eval_rows(&got, add(session), s.two, s.n_two);
        peridot_session_free(session);
        expect_rows(s.name, "with little memory", &got, &want);
        assert_int_equal(peridot_model_memory(s.model), before);
        seeing_close(&s);
        free(want.at);
        free(got.at);
    }
}

/* ---- drafts ---- */

/* The text is the same; what is looked up may end before an image, which no draft has. */
static void test_drafts(void **state)
{
    (void)state;
    for (int i = 0; i < N_FOLDERS; i++) {
        const struct seeing *s = &shared[i];
        static struct text want, got;
        const peridot_sampling greedy = {.size = sizeof greedy};
        for (int drafts = 0; drafts < 3; drafts++) {
            peridot_session *session, *of_draft = open_session(s, 1, 0, PERIDOT_KV_F16);
            EXPECT_OK(peridot_session_create(&session, s->model,
                &(peridot_session_params){.size = sizeof(peridot_session_params), .ctx = CTX, .n_sequences = 2,
                                          .n_draft = 7}));
            int32_t ids[2 * MAX_TOKENS];
            size_t n = s->n_one;
            memcpy(ids, s->one, n * sizeof *ids);
            memcpy(ids + n, s->one, first_row(s->one) * sizeof *ids);   /* as before the image */
            n += first_row(s->one);
            peridot_request_params params = params_of(ids, n, drafts ? &got : &want);
            params.sampling = &greedy;
            params.n_draft = drafts ? 7 : 0;
            if (drafts == 2) params.draft = add(of_draft);
            EXPECT_OK(peridot_generate(add(session), &params, NULL));
            if (drafts) expect_text(s->name, drafts == 1 ? "by lookup" : "with a draft model", &got, &want);
            peridot_session_free(session);
            peridot_session_free(of_draft);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_goldens), cmocka_unit_test(test_turns), cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_beside_others),
        cmocka_unit_test(test_requests), cmocka_unit_test(test_prefixes), cmocka_unit_test(test_shared_within),
        cmocka_unit_test(test_preempted), cmocka_unit_test(test_going_back), cmocka_unit_test(test_saved),
        cmocka_unit_test(test_freed), cmocka_unit_test(test_same_picture), cmocka_unit_test(test_little_memory),
        cmocka_unit_test(test_drafts),
    };
    return cmocka_run_group_tests_name("vision", tests, open_shared, close_shared);
}

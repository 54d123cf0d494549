/* Requests: texts that are written side by side are those that each would be alone, wherever the others begin, stop or
 * are taken away; a long prompt keeps nobody waiting for more than a submit; what goes wrong with one ends that one. */
#include "format_fixture.h"

#include "api/api.h"
#include "peridot_tools.h"

#define MODEL PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf"
#define RECURRENT PERIDOT_GOLDEN "/dense/qwen35/model.gguf"   /* layers with recurrences */

enum { CTX = 256, N_TEXTS = 6, N_MOST = 48 };

static const char *path = MODEL;   /* or a shape */
static peridot_model *model;

static int open_shared(void **state)
{
    return make_folder(state) == 0 && peridot_model_open(&model, path_of(path), NULL) == PERIDOT_OK ? 0 : -1;
}

static int close_shared(void **state)
{
    (void)state;
    peridot_model_close(model);
    remove(in_folder("made.gguf"));
    return rmdir(folder);
}

/* A golden model says one thing over and over unless it is hot. The third needs all logits, the fourth stops early. */
static const peridot_bias lifted[] = {{7, 1}};
static const peridot_sampling chains[N_TEXTS] = {{0},
                                                 {.temperature = 6, .top_k = 40, .seed = 3},
                                                 {.temperature = 5, .seed = 4},
                                                 {.temperature = 8, .top_k = 100, .xtc_probability = 0.5f,
                                                  .xtc_threshold = 0.02f, .seed = 5},
                                                 {.temperature = 5, .top_k = 40, .repeat_penalty = 1.2f, .seed = 6},
                                                 {.temperature = 6, .bias = lifted, .n_bias = 1, .dry_multiplier = 9,
                                                  .dry_allowed_length = 1, .top_n_sigma = 2, .seed = 7}};
static const uint32_t lengths[N_TEXTS] = {5, 1, 40, 90, 2, 17}, n_max[N_TEXTS] = {N_MOST, 20, 30, N_MOST, 1, 40},
                      n_stop[N_TEXTS] = {0, 0, 0, 9, 0, 0};

static void make_prompt(int32_t *tokens, uint32_t text)
{
    for (uint32_t i = 0; i < lengths[text]; i++) tokens[i] = i == 0 ? 2 : (int32_t)((17 * text + 31 * i) % 250);
}

struct text {
    int32_t tokens[N_MOST];
    uint32_t n, n_stop;
    bool flushed;
    char bytes[1024];
    size_t size, sizes[N_MOST];        /* of the bytes that there were after each token */
};

static bool take(void *user, int32_t token, const char *piece, size_t size)
{
    struct text *t = user;
    assert_false(t->flushed);
    assert_true(t->size + size < sizeof t->bytes);
    if (size) memcpy(t->bytes + t->size, piece, size);
    t->size += size;
    if (token >= 0) t->sizes[t->n] = t->size;
    if (token < 0) t->flushed = true;
    else t->tokens[t->n++] = token;
    return t->n != t->n_stop;
}

static bool apart;   /* steps and chunks are passes of their own, as on GPUs */

static peridot_session *open_session(uint32_t n)
{
    peridot_session *s;
    EXPECT_OK(peridot_session_create(&s, model, &(peridot_session_params){.ctx = CTX, .chunk = 32, .n_sequences = n}));
    if (apart) s->s->prefill.mixes = false;
    return s;
}

static peridot_sequence *add(peridot_session *s, uint32_t text)
{
    peridot_sequence *q;
    EXPECT_OK(peridot_sequence_create(&q, s));
    EXPECT_OK(peridot_set_sampling(q, &chains[text]));
    return q;
}

static void write_alone(struct text *out, uint32_t text)
{
    int32_t prompt[CTX];
    peridot_session *s = open_session(2);
    peridot_sequence *q = add(s, text);
    *out = (struct text){.n_stop = n_stop[text]};
    make_prompt(prompt, text);
    peridot_request_params params = {
        .prompt = prompt, .n_prompt = lengths[text], .n_max = n_max[text], .text = take, .user = out};
    EXPECT_OK(peridot_generate(q, &params, NULL));
    assert_true(out->flushed);
    peridot_session_free(s);
}

static peridot_request *ask(peridot_sequence *q, uint32_t text, struct text *out)
{
    int32_t prompt[CTX];
    peridot_request *r;
    *out = (struct text){.n_stop = n_stop[text]};
    make_prompt(prompt, text);
    EXPECT_OK(peridot_request_create(
        &r, q,
        &(peridot_request_params){
            .prompt = prompt, .n_prompt = lengths[text], .n_max = n_max[text], .text = take, .user = out}));
    return r;
}

static void expect_text(const peridot_request *r, const struct text *got, const struct text *want, uint32_t text)
{
    peridot_status status;
    peridot_stats stats = {.size = sizeof stats};
    assert_true(peridot_request_done(r, &status, &stats));
    assert_int_equal(status, PERIDOT_OK);
    assert_true(got->flushed);
    assert_int_equal(stats.n_generated, got->n);
    assert_int_equal(stats.n_prompt, lengths[text]);
    if (got->n != want->n || memcmp(got->tokens, want->tokens, got->n * sizeof *got->tokens) != 0)
        fail_msg("text %u is another one", text);
}

/* They come one by one while others are being written, and each is what it is alone. */
static void test_side_by_side(void **state)
{
    (void)state;
    peridot_session *s = open_session(N_TEXTS);
    peridot_request *requests[N_TEXTS] = {NULL};
    struct text alone[N_TEXTS], texts[N_TEXTS];
    size_t n_running = 0;
    for (uint32_t i = 0; i < N_TEXTS; i++) write_alone(&alone[i], i);
    assert_int_equal(alone[3].n, 9);
    for (uint32_t round = 0; round < 2 || n_running; round++) {
        if (round % 3 == 0 && round / 3 < N_TEXTS)
            requests[round / 3] = ask(add(s, round / 3), round / 3, &texts[round / 3]);
        EXPECT_OK(peridot_session_run(s, &n_running));
        assert_true(round < 400);
        if (round / 3 < N_TEXTS) n_running++;   /* more are to come */
    }
    for (uint32_t i = 0; i < N_TEXTS; i++) expect_text(requests[i], &texts[i], &alone[i], i);
    peridot_session_free(s);
}

/* Another is taken away in the middle, and its sequence goes on by hand. */
static void test_taken_away(void **state)
{
    (void)state;
    peridot_session *s = open_session(3);
    struct text alone, text, other;
    size_t n_running;
    int32_t token;
    write_alone(&alone, 1);
    peridot_sequence *q = add(s, 1), *p = add(s, 0);
    peridot_request *kept = ask(q, 1, &text), *gone = ask(p, 0, &other), *none;
    EXPECT_FAILURE(peridot_request_create(&none, q, &(peridot_request_params){.n_max = 1}), PERIDOT_ERROR_ARGUMENT,
                   "request already");
    for (int i = 0; i < 6; i++) EXPECT_OK(peridot_session_run(s, &n_running));
    assert_int_equal(n_running, 2);
    assert_false(peridot_request_done(gone, NULL, NULL));
    peridot_request_free(gone);
    assert_true(other.n > 0 && !other.flushed);
    EXPECT_OK(peridot_sample(&token, p));
    EXPECT_OK(peridot_sequence_eval(p, &token, 1, NULL));
    do EXPECT_OK(peridot_session_run(s, &n_running));
    while (n_running);
    expect_text(kept, &text, &alone, 1);
    peridot_request_free(kept);
    peridot_session_free(s);
}

/* Where the cache is full, the request that needs more ends, says so, and the others go on. */
static void test_full_cache(void **state)
{
    (void)state;
    peridot_session *s;
    struct text text, other;
    size_t n_running;
    int32_t prompt[CTX];
    peridot_status status = PERIDOT_OK;
    EXPECT_OK(peridot_session_create(
        &s, model, &(peridot_session_params){.ctx = CTX, .chunk = 32, .n_sequences = 2, .n_positions = 64}));
    peridot_request *small = ask(add(s, 0), 0, &text), *large;
    other = (struct text){0};
    for (uint32_t i = 0; i < 200; i++) prompt[i] = 2 + (int32_t)(i % 100);
    EXPECT_OK(peridot_request_create(
        &large, add(s, 0),
        &(peridot_request_params){.prompt = prompt, .n_prompt = 200, .n_max = 4, .text = take, .user = &other}));
    do EXPECT_OK(peridot_session_run(s, &n_running));
    while (n_running);
    assert_true(peridot_request_done(large, &status, NULL));
    assert_int_equal(status, PERIDOT_ERROR_MEMORY);
    assert_non_null(strstr(peridot_last_error(), "cache is full"));
    assert_int_equal(other.n, 0);
    struct text alone;
    write_alone(&alone, 0);
    expect_text(small, &text, &alone, 0);
    peridot_session_free(s);
}

/* While one writes, the rounds of another's long prompt are submits sized in time; its tokens come one a round
 * nonetheless. */
static void test_long_prompt(void **state)
{
    (void)state;
    peridot_session *s = open_session(2);
    struct text text, other = {0};
    size_t n_running;
    int32_t prompt[CTX];
    for (uint32_t i = 0; i < 240; i++) prompt[i] = 2 + (int32_t)(i % 100);
    peridot_request *first = ask(add(s, 0), 0, &text), *second;
    for (int i = 0; i < 3; i++) EXPECT_OK(peridot_session_run(s, &n_running));
    uint32_t before = text.n;
    peridot_sequence *q = add(s, 0);
    EXPECT_OK(peridot_request_create(
        &second, q,
        &(peridot_request_params){.prompt = prompt, .n_prompt = 240, .n_max = 2, .text = take, .user = &other}));
    struct pd_session *engine = s->s;   /* as on a slow device */
    engine->prefill.pace.last = (struct pd_timed_work){16 * pd_token_flop(engine->model, 0, false), 0.2};
    engine->prefill.pace.other = (struct pd_timed_work){0};
    engine->decoder.step_s = 0;
    for (uint32_t i = 1; peridot_sequence_pos(q) < 240; i++) {
        uint32_t pos = peridot_sequence_pos(q);
        EXPECT_OK(peridot_session_run(s, &n_running));
        assert_int_equal(text.n, before + i);
        if (i == 1) assert_int_equal(peridot_sequence_pos(q) - pos, 16);
        assert_in_range(peridot_sequence_pos(q) - pos, 1, 32);
    }
    do EXPECT_OK(peridot_session_run(s, &n_running));
    while (n_running);
    assert_int_equal(other.n, 2);
    peridot_request_free(first);
    peridot_session_free(s);
}

/* A prompt that is alone does not keep whoever comes next waiting for longer than about 0.4 s. */
static void test_lone_prompt(void **state)
{
    (void)state;
    peridot_session *s = open_session(2);
    struct pd_session *engine = s->s;
    struct text text = {0};
    size_t n_running = 1;
    int32_t prompt[CTX];
    peridot_request *r;
    peridot_sequence *q = add(s, 0);
    for (uint32_t i = 0; i < 240; i++) prompt[i] = 2 + (int32_t)(i % 100);
    EXPECT_OK(peridot_request_create(&r, q,
        &(peridot_request_params){.prompt = prompt, .n_prompt = 240, .n_max = 2, .text = take, .user = &text}));
    double token = pd_token_flop(engine->model, 0, false);   /* as on a slow device */
    engine->prefill.pace = (struct pd_pace){.at_once = 8, .last = {16 * token, 0.4}, .other = {32 * token, 0.8}};
    EXPECT_OK(peridot_session_run(s, &n_running));
    assert_int_equal(peridot_sequence_pos(q), 16);
    while (n_running) EXPECT_OK(peridot_session_run(s, &n_running));
    assert_int_equal(text.n, 2);
    peridot_session_free(s);
}

/* The caller hears of a text's end before another's prompt goes on. */
static void test_end_at_once(void **state)
{
    (void)state;
    peridot_session *s = open_session(2);
    struct text text = {0}, other = {0};
    size_t n_running;
    int32_t prompt[CTX];
    peridot_request *writer, *reader;
    uint32_t before = 0, n_rounds = 0;
    for (uint32_t i = 0; i < 240; i++) prompt[i] = 2 + (int32_t)(i % 100);
    EXPECT_OK(peridot_request_create(&writer, add(s, 0),
        &(peridot_request_params){.prompt = prompt, .n_prompt = 5, .n_max = 4, .text = take, .user = &text}));
    EXPECT_OK(peridot_session_run(s, &n_running));
    peridot_sequence *q = add(s, 0);
    EXPECT_OK(peridot_request_create(&reader, q,
        &(peridot_request_params){.prompt = prompt, .n_prompt = 240, .n_max = 2, .text = take, .user = &other}));
    for (; !peridot_request_done(writer, NULL, NULL); n_rounds++) {
        if (n_rounds) assert_true(peridot_sequence_pos(q) > before);
        before = peridot_sequence_pos(q);
        EXPECT_OK(peridot_session_run(s, &n_running));
    }
    assert_true(n_rounds > 1 && before < 240);
    assert_int_equal(peridot_sequence_pos(q), before);
    do EXPECT_OK(peridot_session_run(s, &n_running));
    while (n_running);
    assert_int_equal(text.n, 4);
    assert_int_equal(other.n, 2);
    peridot_session_free(s);
}

/* A reply that was begun goes on to the same end, wherever it was left. */
static void test_taken_up(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < N_TEXTS; i++) {
        struct text alone, rest;
        size_t n_running;
        int32_t prompt[CTX];
        peridot_request *r;
        write_alone(&alone, i);
        make_prompt(prompt, i);
        memcpy(prompt + lengths[i], alone.tokens, alone.n * sizeof *prompt);
        for (uint32_t n = 1; n < alone.n; n += 7) {
            peridot_session *s = open_session(2);
            rest = (struct text){.n_stop = n_stop[i] ? n_stop[i] - n : 0};
            EXPECT_OK(peridot_request_create(&r, add(s, i),
                                             &(peridot_request_params){.size = sizeof(peridot_request_params),
                                                                       .prompt = prompt,
                                                                       .n_prompt = lengths[i] + n,
                                                                       .n_max = n_max[i] - n,
                                                                       .text = take,
                                                                       .user = &rest,
                                                                       .n_replied = n}));
            do EXPECT_OK(peridot_session_run(s, &n_running));
            while (n_running);
            size_t before = alone.sizes[n - 1];
            if (rest.n != alone.n - n || memcmp(rest.tokens, alone.tokens + n, rest.n * sizeof *rest.tokens) != 0)
                fail_msg("text %u goes on otherwise after %u tokens", i, n);
            assert_int_equal(rest.size, alone.size - before);
            assert_memory_equal(rest.bytes, alone.bytes + before, rest.size);
            peridot_session_free(s);
        }
    }
}

struct rows {
    struct text text;
    int32_t best[N_MOST];
    uint32_t n;
};

static bool take_row(void *user, peridot_sequence *q, uint32_t pos, const float *row, size_t n)
{
    struct rows *rows = user;
    assert_int_equal(pos, peridot_sequence_pos(q) - 1);
    assert_int_equal(rows->n, rows->text.n);
    rows->best[rows->n] = 0;
    for (size_t i = 1; i < n; i++)
        if (row[i] > row[rows->best[rows->n]]) rows->best[rows->n] = (int32_t)i;
    rows->n++;
    return rows->n < 20;
}

static bool take_after_row(void *user, int32_t token, const char *piece, size_t size)
{
    struct rows *rows = user;
    return take(&rows->text, token, piece, size);
}

/* The logits of each token come before it, beside texts whose steps are queued ahead; and can end it. */
static void test_rows(void **state)
{
    (void)state;
    peridot_session *s = open_session(3);
    struct text alone, other, alone_other;
    struct rows rows = {0};
    size_t n_running;
    int32_t prompt[CTX];
    peridot_request *r;
    write_alone(&alone, 0);
    write_alone(&alone_other, 1);
    make_prompt(prompt, 0);
    peridot_request *beside = ask(add(s, 1), 1, &other);
    for (int i = 0; i < 4; i++) EXPECT_OK(peridot_session_run(s, &n_running));
    EXPECT_OK(peridot_request_create(&r, add(s, 0),
                                     &(peridot_request_params){.size = sizeof(peridot_request_params),
                                                               .prompt = prompt,
                                                               .n_prompt = lengths[0],
                                                               .n_max = n_max[0],
                                                               .text = take_after_row,
                                                               .user = &rows,
                                                               .logits = take_row}));
    do EXPECT_OK(peridot_session_run(s, &n_running));
    while (n_running);
    assert_int_equal(rows.n, 20);
    assert_int_equal(rows.text.n, 19);
    assert_memory_equal(rows.text.tokens, alone.tokens, 19 * sizeof *alone.tokens);
    assert_memory_equal(rows.best, alone.tokens, 20 * sizeof *alone.tokens);   /* text 0 takes the likeliest */
    expect_text(beside, &other, &alone_other, 1);
    peridot_session_free(s);
}

static void copy_logits(float out[1024], peridot_sequence *q)
{
    const float *logits;
    size_t n = peridot_model_get_info(model)->n_outputs;
    assert_true(n <= 1024);
    EXPECT_OK(peridot_logits(&logits, q));
    memcpy(out, logits, n * sizeof *out);
}

/* Where a request's prompt says that others begin as it does, they can fork it, though windows have passed over that
 * place since; and the cut changes nothing. */
static void test_shared_beginning(void **state)
{
    (void)state;
    enum { SHARED = 40, N = 200 };
    float rows[2][1024] = {{0}};
    int32_t prompt[N];
    peridot_session *s = open_session(3);
    peridot_sequence *q[2], *fork;
    for (uint32_t i = 0; i < N; i++) prompt[i] = i == 0 ? 2 : (int32_t)(3 * i % 250);
    for (int shared = 0; shared < 2; shared++) {
        const peridot_request_params params = {.size = sizeof params, .prompt = prompt, .n_prompt = N,
            .n_shared = shared ? SHARED : 0};
        q[shared] = add(s, 0);
        EXPECT_OK(peridot_generate(q[shared], &params, NULL));
        copy_logits(rows[shared], q[shared]);
        assert_int_equal(peridot_sequence_nearest(q[shared], SHARED + 9), shared ? SHARED : 0);
    }
    assert_memory_equal(rows[0], rows[1], sizeof rows[0]);
    EXPECT_OK(peridot_sequence_fork(&fork, q[1], SHARED));
    EXPECT_OK(peridot_sequence_truncate(q[0], 0, NULL));
    EXPECT_OK(peridot_sequence_eval(fork, prompt + 70, 50, NULL));
    EXPECT_OK(peridot_sequence_eval(q[0], prompt, SHARED, NULL));
    EXPECT_OK(peridot_sequence_eval(q[0], prompt + 70, 50, NULL));
    copy_logits(rows[0], q[0]);
    copy_logits(rows[1], fork);
    assert_memory_equal(rows[0], rows[1], sizeof rows[0]);
    peridot_session_free(s);
}

static void test_free_positions(void **state)
{
    (void)state;
    peridot_session *s = open_session(2);
    uint32_t all = peridot_session_free_positions(s);
    peridot_sequence *q = add(s, 0);
    int32_t prompt[CTX];
    make_prompt(prompt, 3);
    EXPECT_OK(peridot_sequence_eval(q, prompt, lengths[3], NULL));
    assert_int_equal(peridot_session_free_positions(s), all - 128);   /* two pages for 90 */
    peridot_sequence_free(q);
    assert_int_equal(peridot_session_free_positions(s), all);
    peridot_session_free(s);
}

/* ---- for days ---- */

enum { N_PLACES = 8 };

struct places {
    peridot_session *s;
    peridot_sequence *q[N_PLACES];
    peridot_request *r[N_PLACES];
    uint64_t random;
};

static uint32_t any(struct places *p, uint32_t n)
{
    p->random = p->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(p->random >> 33) % n;
}

static void leave(struct places *p, uint32_t k, bool whole)
{
    peridot_request_free(p->r[k]);
    p->r[k] = NULL;
    if (whole) peridot_sequence_free(p->q[k]);
    if (whole) p->q[k] = NULL;
}

static void ask_any(struct places *p, uint32_t k)
{
    int32_t prompt[60];
    uint32_t n = 1 + any(p, 60), kept;
    for (uint32_t i = 0; i < n; i++) prompt[i] = 2 + (int32_t)any(p, 3);   /* many begin alike */
    if (peridot_sequence_pos(p->q[k]) + n > CTX - 20) EXPECT_OK(peridot_sequence_truncate(p->q[k], 0, &kept));
    EXPECT_OK(peridot_request_create(&p->r[k], p->q[k],
                                     &(peridot_request_params){.prompt = prompt, .n_prompt = n,
                                                               .n_max = 1 + any(p, 20)}));
}

static void do_any(struct places *p)
{
    uint32_t k = any(p, N_PLACES), from = any(p, N_PLACES), what = any(p, 8), kept;
    if (!p->q[k] && p->q[from] && what < 4)   /* windows may have passed over it */
        (void)!peridot_sequence_fork(&p->q[k], p->q[from], any(p, peridot_sequence_pos(p->q[from]) + 1));
    else if (!p->q[k]) EXPECT_OK(peridot_sequence_create(&p->q[k], p->s));
    else if (what == 0) leave(p, k, true);
    else if (p->r[k] && what == 1) leave(p, k, false);
    else if (!p->r[k] && what == 2)
        EXPECT_OK(peridot_sequence_truncate(p->q[k], any(p, peridot_sequence_pos(p->q[k]) + 1), &kept));
    else if (!p->r[k]) ask_any(p, k);
}

/* Sequences and requests begin, fork, go back and end in any order: at the end no page is missing. */
static void test_for_days(void **state)
{
    (void)state;
    struct places p = {.s = open_session(N_PLACES), .random = 1};
    uint32_t all = peridot_session_free_positions(p.s), n_rounds = getenv("PERIDOT_TEST_MANY") ? 50000 : 200;
    size_t n_running;
    for (uint32_t i = 0; i < n_rounds; i++) {
        for (int n = 0; n < 3; n++) do_any(&p);
        EXPECT_OK(peridot_session_run(p.s, &n_running));
        for (uint32_t k = 0; k < N_PLACES; k++)
            if (p.r[k] && peridot_request_done(p.r[k], NULL, NULL)) leave(&p, k, false);
    }
    assert_true(peridot_session_free_positions(p.s) < all);
    for (uint32_t k = 0; k < N_PLACES; k++) leave(&p, k, true);
    assert_int_equal(peridot_session_free_positions(p.s), all);
    const struct pd_cache *cache = &p.s->s->set.cache;
    for (uint32_t kind = 0; kind < cache->n_kinds; kind++)   /* those of windows, too */
        assert_int_equal(cache->pools[kind].n_free, cache->pools[kind].n_pages);
    peridot_session_free(p.s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_side_by_side), cmocka_unit_test(test_taken_away), cmocka_unit_test(test_full_cache),
        cmocka_unit_test(test_long_prompt), cmocka_unit_test(test_lone_prompt), cmocka_unit_test(test_taken_up),
        cmocka_unit_test(test_rows), cmocka_unit_test(test_free_positions), cmocka_unit_test(test_shared_beginning),
        cmocka_unit_test(test_for_days)};
    const struct CMUnitTest tests_apart[] = {
        cmocka_unit_test(test_side_by_side), cmocka_unit_test(test_taken_away), cmocka_unit_test(test_full_cache),
        cmocka_unit_test(test_long_prompt), cmocka_unit_test(test_end_at_once)};
    int n_failed = cmocka_run_group_tests_name("requests", tests, open_shared, close_shared);
    apart = true;
    n_failed += cmocka_run_group_tests_name("requests, steps and chunks apart", tests_apart, open_shared, close_shared);
    apart = false;
    path = RECURRENT;
    const struct CMUnitTest of_states[] = {cmocka_unit_test(test_side_by_side), cmocka_unit_test(test_taken_away),
                                           cmocka_unit_test(test_full_cache), cmocka_unit_test(test_shared_beginning)};
    n_failed += cmocka_run_group_tests_name("requests, recurrences", of_states, open_shared, close_shared);
    path = "tiny-granite4-h-moe";
    const struct CMUnitTest of_experts[] = {cmocka_unit_test(test_full_cache)};
    return n_failed + cmocka_run_group_tests_name("requests, and experts", of_experts, open_shared, close_shared);
}

/* Requests without sequences: they begin in their order, on what the session has of their prompts; when the cache is
 * full some go on later; and the text of each is what it is alone. */
#include "format_fixture.h"
#include "relative_error.h"

#include "api/api.h"

#define MODEL PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf"   /* windows of 16 */
#define RECURRENT PERIDOT_GOLDEN "/dense/qwen35/model.gguf"   /* layers with recurrences */

enum { CTX = 320, N_MOST = 200, N_REQUESTS = 8 };

static const char *path = MODEL;   /* or a shape */
static peridot_model *model;
static peridot_bias endless[8];
static size_t n_endless;

static int open_shared(void **state)
{
    if (make_folder(state) != 0 || peridot_model_open(&model, path_of(path), NULL) != PERIDOT_OK) return -1;
    for (uint32_t id = 0; id < peridot_vocab_size(peridot_model_vocab(model)); id++)
        if (peridot_is_stop(model, (int32_t)id) && n_endless < 8)
            endless[n_endless++] = (peridot_bias){(int32_t)id, -INFINITY};
    return 0;
}

static int close_shared(void **state)
{
    (void)state;
    peridot_model_close(model);
    remove(in_folder("made.gguf"));
    return rmdir(folder);
}

struct text {
    uint32_t prompt, length, n_max, seed;   /* of what: equal ones have equal tokens */
    int32_t tokens[N_MOST];
    char bytes[4096];
    size_t size, sizes[N_MOST];        /* of the bytes that there were after each token */
    uint32_t n, n_rows, n_ended, *order;    /* order: counts the first tokens of all */
    uint32_t place;                    /* when its first token came among these */
    uint32_t stops_at;
    float *rows;                       /* [n_rows][width] */
    size_t width;
    peridot_request *r;
};

/* A golden model says one thing over and over unless it is hot, and ends at any time. */
static peridot_sampling chain_of(const struct text *t)
{
    return (peridot_sampling){.size = sizeof(peridot_sampling), .temperature = 6, .top_k = 40, .seed = 1 + t->seed,
                              .repeat_penalty = 1.1f, .bias = endless, .n_bias = n_endless};
}

static void make_prompt(int32_t *tokens, const struct text *t)
{
    for (uint32_t i = 0; i < t->length; i++)
        tokens[i] = i == 0 ? 2 : (int32_t)((17 * t->prompt + 31 * i) % 250);
}

static bool take(void *user, int32_t token, const char *piece, size_t size)
{
    struct text *t = user;
    if (size) memcpy(t->bytes + t->size, piece, size);
    t->size += size;
    assert_int_equal(t->n_ended, 0);
    if (token < 0) t->n_ended++;
    if (token < 0) return true;
    if (t->n == 0 && t->order) t->place = ++*t->order;
    t->sizes[t->n] = t->size;
    t->tokens[t->n++] = token;
    return t->n != t->stops_at;
}

static peridot_session *open_session(const peridot_session_params *params)
{
    peridot_session *s;
    peridot_session_params all = *params;
    all.size = sizeof all;
    all.ctx = CTX;
    all.chunk = 32;
    EXPECT_OK(peridot_session_create(&s, model, &all));
    return s;
}

static void submit(struct text *t, peridot_session *s)
{
    int32_t prompt[CTX];
    const peridot_sampling sampling = chain_of(t);
    make_prompt(prompt, t);
    EXPECT_OK(peridot_request_submit(&t->r, s, &(peridot_request_params){.size = sizeof(peridot_request_params),
        .prompt = prompt, .n_prompt = t->length, .n_max = t->n_max, .text = take, .user = t, .sampling = &sampling}));
}

static void run_all(peridot_session *s)
{
    size_t n_running;
    uint32_t n_rounds = 0;
    do EXPECT_OK(peridot_session_run(s, &n_running));
    while (n_running && n_rounds++ < 2000);
    assert_int_equal(n_running, 0);
}

static peridot_session_state state_of(const peridot_session *s)
{
    peridot_session_state state = {.size = sizeof state};
    peridot_session_get_state(s, &state);
    return state;
}

static peridot_stats expect_done(const struct text *t)
{
    peridot_status status;
    peridot_stats stats = {.size = sizeof stats};
    assert_true(peridot_request_done(t->r, &status, &stats));
    if (status != PERIDOT_OK) fail_msg("%s", peridot_last_error());
    assert_int_equal(t->n_ended, 1);
    assert_int_equal(stats.n_generated, t->n);
    assert_int_equal(stats.n_prompt, t->length);
    return stats;
}

static void expect_same(const struct text *got, const struct text *want)
{
    if (got->n != want->n || memcmp(got->tokens, want->tokens, got->n * sizeof *got->tokens) != 0)
        fail_msg("prompt %u with seed %u gave another text", got->prompt, got->seed);
    assert_int_equal(got->size, want->size);
    assert_memory_equal(got->bytes, want->bytes, got->size);
}

/* By peridot_generate, on a sequence of its own. */
static void write_alone(struct text *t)
{
    int32_t prompt[CTX];
    peridot_session *s = open_session(&(peridot_session_params){.n_sequences = 2});
    peridot_sequence *q;
    const peridot_sampling sampling = chain_of(t);
    make_prompt(prompt, t);
    EXPECT_OK(peridot_sequence_create(&q, s));
    EXPECT_OK(peridot_generate(q, &(peridot_request_params){.size = sizeof(peridot_request_params), .prompt = prompt,
        .n_prompt = t->length, .n_max = t->n_max, .text = take, .user = t, .sampling = &sampling}, NULL));
    peridot_session_free(s);
}

/* More requests than run at once begin in their order; some are taken away while they wait. */
static void test_order(void **state)
{
    (void)state;
    uint32_t order = 0;
    struct text texts[N_REQUESTS], alone;
    peridot_session *s = open_session(&(peridot_session_params){.n_sequences = 4, .n_parallel = 1});
    for (uint32_t i = 0; i < N_REQUESTS; i++) {
        texts[i] = (struct text){.prompt = i, .length = 3 + 5 * i, .n_max = 4 + i, .order = &order};
        submit(&texts[i], s);
    }
    size_t n_running;
    EXPECT_OK(peridot_session_run(s, &n_running));
    assert_int_equal(n_running, N_REQUESTS);
    assert_int_equal(state_of(s).n_running, 1);
    assert_int_equal(state_of(s).n_waiting, N_REQUESTS - 1);
    peridot_request_free(texts[4].r);
    peridot_request_free(texts[7].r);
    assert_int_equal(state_of(s).n_waiting, N_REQUESTS - 3);
    run_all(s);
    for (uint32_t i = 0, place = 1; i < N_REQUESTS; i++) {
        assert_int_equal(texts[i].place, i == 4 || i == 7 ? 0 : place++);
        if (texts[i].place == 0) continue;
        assert_int_equal(expect_done(&texts[i]).n_cached, 0);
        alone = (struct text){.prompt = i, .length = texts[i].length, .n_max = texts[i].n_max};
        write_alone(&alone);
        expect_same(&texts[i], &alone);
    }
    assert_int_equal(state_of(s).n_waiting, 0);
    assert_int_equal(state_of(s).n_running, 0);
    peridot_session_free(s);
}

/* Tokens of a text so far and some more. */
static struct text after(const struct text *t, int32_t *tokens, uint32_t n_more)
{
    make_prompt(tokens, t);
    memcpy(tokens + t->length, t->tokens, t->n * sizeof *tokens);
    for (uint32_t i = 0; i < n_more; i++) tokens[t->length + t->n + i] = (int32_t)(3 + i % 200);
    return (struct text){.length = t->length + t->n + n_more, .n_max = 8, .seed = 9};
}

static void submit_tokens(struct text *t, peridot_session *s, const int32_t *tokens)
{
    const peridot_sampling sampling = chain_of(t);
    EXPECT_OK(peridot_request_submit(&t->r, s, &(peridot_request_params){.size = sizeof(peridot_request_params),
        .prompt = tokens, .n_prompt = t->length, .n_max = t->n_max, .text = take, .user = t, .sampling = &sampling}));
}

/* A conversation that goes on, one that begins like another which is at work, and one that begins like neither. */
static void test_prefixes(void **state)
{
    (void)state;
    peridot_session *s = open_session(&(peridot_session_params){.n_sequences = 4, .n_parallel = 3});
    struct text first = {.prompt = 1, .length = 60, .n_max = 20}, next, fresh;
    int32_t tokens[CTX];
    submit(&first, s);
    run_all(s);
    assert_int_equal(expect_done(&first).n_cached, 0);
    assert_int_equal(state_of(s).n_kept, 1);
    next = after(&first, tokens, 10);
    submit_tokens(&next, s, tokens);
    run_all(s);
    /* The last token of a reply is not evaluated before there is a next one. */
    assert_int_equal(expect_done(&next).n_cached, first.length + first.n - 1);
    assert_int_equal(state_of(s).n_kept, 1);
    peridot_session *other = open_session(&(peridot_session_params){.n_sequences = 4});
    fresh = after(&first, tokens, 10);
    submit_tokens(&fresh, other, tokens);
    run_all(other);
    assert_int_equal(expect_done(&fresh).n_cached, 0);
    expect_same(&next, &fresh);
    peridot_session_free(other);
    peridot_session_free(s);
}

/* Choices of one prompt wait for the first, and share it; a text that is at work is begun with, too. */
static void test_choices(void **state)
{
    (void)state;
    enum { N = 3 };
    peridot_session *s = open_session(&(peridot_session_params){.n_sequences = 8});
    struct text choices[N], alone, same;
    for (uint32_t i = 0; i < N; i++) {
        choices[i] = (struct text){.prompt = 2, .length = 100, .n_max = 12, .seed = i};
        submit(&choices[i], s);
    }
    size_t n_running;
    EXPECT_OK(peridot_session_run(s, &n_running));
    assert_int_equal(state_of(s).n_running, 1);
    while (choices[0].n < 2) EXPECT_OK(peridot_session_run(s, &n_running));
    assert_int_equal(state_of(s).n_running, N);
    same = (struct text){.prompt = 2, .length = 100, .n_max = 12, .seed = 1};
    submit(&same, s);
    run_all(s);
    for (uint32_t i = 0; i < N; i++) {
        assert_int_equal(expect_done(&choices[i]).n_cached, i ? 99 : 0);
        alone = (struct text){.prompt = 2, .length = 100, .n_max = 12, .seed = i};
        write_alone(&alone);
        expect_same(&choices[i], &alone);
    }
    assert_int_equal(expect_done(&same).n_cached, 99);
    expect_same(&same, &choices[1]);
    peridot_session_free(s);
}

/* Where the cache has no room for all, some wait, and some go on later from what they have written. */
static void test_small_cache(void **state)
{
    (void)state;
    enum { N = 3 };
    struct text texts[N], alone;
    uint32_t n_preempted = 0;
    peridot_session *s = open_session(&(peridot_session_params){.n_sequences = 4, .n_parallel = N,
        .n_positions = 3 * 64});
    for (uint32_t i = 0; i < N; i++) {
        texts[i] = (struct text){.prompt = 3 + i, .length = 50 + i, .n_max = N_MOST, .seed = i};
        submit(&texts[i], s);
    }
    run_all(s);
    for (uint32_t i = 0; i < N; i++) {
        n_preempted += expect_done(&texts[i]).n_preempted;
        alone = (struct text){.prompt = 3 + i, .length = 50 + i, .n_max = N_MOST, .seed = i};
        write_alone(&alone);
        expect_same(&texts[i], &alone);
    }
    assert_true(n_preempted > 0);
    assert_int_equal(state_of(s).n_preempted, n_preempted);
    peridot_session_free(s);
}

/* A reply that was begun in another session goes on to the same end; with drafts of another model, too. */
static void test_taken_up(void **state)
{
    (void)state;
    enum { N = 3 };
    struct text alone[N], texts[N];
    peridot_session *s = open_session(&(peridot_session_params){.n_sequences = 4, .n_draft = 3}),
                    *drafts = open_session(&(peridot_session_params){.n_sequences = 4});
    uint32_t n_free = peridot_session_free_positions(drafts);
    for (uint32_t i = 0; i < N; i++) {
        alone[i] = (struct text){.prompt = 5 + i, .length = 20, .n_max = 40, .seed = i};
        write_alone(&alone[i]);
        texts[i] = (struct text){.prompt = 5 + i, .length = 20 + 10 * i, .n_max = 40 - 10 * i, .seed = i};
        int32_t tokens[CTX];
        make_prompt(tokens, &alone[i]);
        memcpy(tokens + 20, alone[i].tokens, 10 * i * sizeof *tokens);
        const peridot_sampling sampling = chain_of(&texts[i]);
        EXPECT_OK(peridot_request_submit(&texts[i].r, s, &(peridot_request_params){
            .size = sizeof(peridot_request_params), .prompt = tokens, .n_prompt = texts[i].length,
            .n_replied = 10 * i, .n_max = texts[i].n_max, .text = take, .user = &texts[i], .sampling = &sampling,
            .n_draft = 3, .draft_session = drafts}));
    }
    run_all(s);
    for (uint32_t i = 0; i < N; i++) {
        peridot_stats stats = expect_done(&texts[i]);
        assert_int_equal(texts[i].n, 40 - 10 * i);
        assert_memory_equal(texts[i].tokens, alone[i].tokens + 10 * i, texts[i].n * sizeof *texts[i].tokens);
        assert_int_equal(stats.n_drafted, stats.n_accepted);   /* it is the same model */
        assert_true(stats.n_drafted > 0);
    }
    assert_int_equal(peridot_session_free_positions(drafts), n_free);   /* their sequences are gone */
    peridot_session_free(s);
    peridot_session_free(drafts);
}

/* A stop text that the reply had begun with when it was left is found. */
static void test_stop_text(void **state)
{
    (void)state;
    struct text alone = {.prompt = 5, .length = 20, .n_max = 40}, rest = {.prompt = 5, .length = 30, .n_max = 30};
    int32_t tokens[CTX];
    write_alone(&alone);
    char stop[8] = "";
    memcpy(stop, alone.bytes + alone.sizes[9] - 2, 5);
    assert_ptr_equal(strstr(alone.bytes, stop), alone.bytes + alone.sizes[9] - 2);
    peridot_session *s = open_session(&(peridot_session_params){.n_sequences = 2});
    peridot_sampling sampling = chain_of(&alone);
    sampling.stop = (const char *[]){stop};
    sampling.n_stop = 1;
    make_prompt(tokens, &alone);
    memcpy(tokens + 20, alone.tokens, 10 * sizeof *tokens);
    EXPECT_OK(peridot_request_submit(&rest.r, s, &(peridot_request_params){.size = sizeof(peridot_request_params),
        .prompt = tokens, .n_prompt = 30, .n_replied = 10, .n_max = 30, .text = take, .user = &rest,
        .sampling = &sampling}));
    memset(stop, 0, sizeof stop);   /* it was copied */
    run_all(s);
    expect_done(&rest);
    assert_in_range(rest.n, 1, 3);
    assert_int_equal(rest.size, 0);
    peridot_session_free(s);
}

/* What does not fit alone either ends, and those behind it go on. */
static void test_never_fits(void **state)
{
    (void)state;
    struct text large = {.prompt = 1, .length = 200, .n_max = 4}, small = {.prompt = 2, .length = 20, .n_max = 4};
    peridot_status status;
    peridot_session *s = open_session(&(peridot_session_params){.n_sequences = 2, .n_positions = 64});
    submit(&large, s);
    submit(&small, s);
    run_all(s);
    assert_true(peridot_request_done(large.r, &status, NULL));
    assert_int_equal(status, PERIDOT_ERROR_MEMORY);
    assert_int_equal(large.n, 0);
    expect_done(&small);
    int32_t wrong = 1 << 30;
    peridot_request *r;
    EXPECT_FAILURE(peridot_request_submit(&r, s, &(peridot_request_params){.prompt = &wrong, .n_prompt = 1}),
                   PERIDOT_ERROR_ARGUMENT, "token id");
    EXPECT_FAILURE(peridot_request_submit(&r, s, &(peridot_request_params){.n_max = 1}), PERIDOT_ERROR_ARGUMENT,
                   "no tokens");
    peridot_session_free(s);
}

/* One that made room for others time and again, and came to nothing each time, is done, and says what it lacked. */
static void test_last_try(void **state)
{
    (void)state;
    struct text unlucky = {.prompt = 1, .length = 20, .n_max = N_MOST},
                other = {.prompt = 2, .length = 20, .n_max = 40};
    peridot_session *s = open_session(&(peridot_session_params){.n_sequences = 2});
    peridot_status status;
    size_t n_running;
    submit(&unlucky, s);
    submit(&other, s);
    while (unlucky.n < 4) EXPECT_OK(peridot_session_run(s, &n_running));
    struct pd_request *r = &unlucky.r->r;
    r->n_tries = 7;
    r->n_cached = r->prompt.sequence->pos;   /* as if nothing had been evaluated */
    peridot_set_error("the cache is full");
    pd_request_end(s->s, r, PERIDOT_ERROR_MEMORY);
    peridot_set_error("another sentence");
    run_all(s);
    assert_true(peridot_request_done(unlucky.r, &status, NULL));
    assert_int_equal(status, PERIDOT_ERROR_MEMORY);
    assert_string_equal(peridot_last_error(), "the cache is full");
    assert_int_equal(r->n_preempted, 0);
    expect_done(&other);
    peridot_session_free(s);
}

/* One that is taken away in the middle leaves the cache as it found it. */
static void test_taken_away(void **state)
{
    (void)state;
    struct text first = {.prompt = 1, .length = 60, .n_max = 4}, gone, again;
    int32_t tokens[CTX];
    size_t n_running;
    peridot_session *s = open_session(&(peridot_session_params){.n_sequences = 4});
    submit(&first, s);
    run_all(s);
    uint32_t n_free = peridot_session_free_positions(s);
    gone = after(&first, tokens, 100);
    gone.n_max = N_MOST;
    submit_tokens(&gone, s, tokens);
    while (gone.n < 3) EXPECT_OK(peridot_session_run(s, &n_running));
    assert_true(peridot_session_free_positions(s) < n_free);
    peridot_request_free(gone.r);
    assert_int_equal(gone.n_ended, 0);
    assert_int_equal(peridot_session_free_positions(s), n_free);
    assert_int_equal(state_of(s).n_kept, 1);
    again = after(&first, tokens, 10);
    submit_tokens(&again, s, tokens);
    run_all(s);
    assert_int_equal(expect_done(&again).n_cached, first.length + first.n - 1);
    peridot_session_free(s);
}

/* Sequences that the program makes take the place of kept ones. */
static void test_own_sequences(void **state)
{
    (void)state;
    peridot_sequence *q[3];
    struct text texts[2];
    peridot_status status;
    peridot_session *s = open_session(&(peridot_session_params){.n_sequences = 3, .n_positions = 4 * 64});
    for (uint32_t i = 0; i < 2; i++) {
        texts[i] = (struct text){.prompt = i, .length = 40, .n_max = 4};
        submit(&texts[i], s);
    }
    run_all(s);
    assert_int_equal(state_of(s).n_kept, 2);
    for (uint32_t i = 0; i < 3; i++) EXPECT_OK(peridot_sequence_create(&q[i], s));
    assert_int_equal(state_of(s).n_kept, 0);
    submit(&texts[0], s);
    size_t n_running;
    EXPECT_OK(peridot_session_run(s, &n_running));
    assert_int_equal(n_running, 0);
    assert_true(peridot_request_done(texts[0].r, &status, NULL));
    assert_int_equal(status, PERIDOT_ERROR_ARGUMENT);
    peridot_sequence_free(q[2]);
    texts[1].n = texts[1].n_ended = 0;
    submit(&texts[1], s);
    run_all(s);
    assert_int_equal(state_of(s).n_kept, 1);
    int32_t tokens[CTX];
    for (int i = 0; i < CTX; i++) tokens[i] = 2 + i % 200;
    EXPECT_OK(peridot_sequence_eval(q[0], tokens, CTX, NULL));   /* which needs the pages */
    assert_int_equal(state_of(s).n_kept, 0);
    peridot_session_free(s);
}

/* ---- rows of prompts ---- */

static bool take_row(void *user, peridot_sequence *q, uint32_t pos, const float *row, size_t n)
{
    struct text *t = user;
    (void)q;
    if (pos == 0) t->n_rows = 0;
    assert_int_equal(pos, t->n_rows);
    if (!t->rows) t->rows = malloc(CTX * n * sizeof *t->rows);
    assert_non_null(t->rows);
    memcpy(t->rows + t->n_rows++ * n, row, n * sizeof *row);
    t->width = n;
    return t->n_rows != t->stops_at;
}

static bool take_last_row(void *user, peridot_sequence *q, uint32_t pos, const float *row, size_t n)
{
    struct text *t = user;
    assert_int_equal(pos, t->length - 1);
    return take_row(t, q, 0, row, n);
}

/* Those that peridot_eval gives. */
static void expect_rows(const struct text *t, bool hidden, bool last)
{
    struct text want = {.prompt = t->prompt, .length = t->length};
    int32_t prompt[CTX];
    peridot_sequence *q;
    peridot_session *s = open_session(&(peridot_session_params){.n_sequences = 2});
    peridot_row call = last ? take_last_row : take_row;
    make_prompt(prompt, t);
    EXPECT_OK(peridot_sequence_create(&q, s));
    EXPECT_OK(peridot_sequence_eval(q, prompt, t->length, &(peridot_eval_params){.size = sizeof(peridot_eval_params),
        .hidden = hidden ? call : NULL, .logits = hidden ? NULL : call, .last = last, .user = &want}));
    assert_int_equal(t->n_rows, want.n_rows);
    assert_true(relative_error(t->rows, want.rows, want.n_rows * want.width) < 1e-3);
    free(want.rows);
    peridot_session_free(s);
}

static void submit_rows(struct text *t, peridot_session *s, bool hidden, bool last)
{
    int32_t prompt[CTX];
    const peridot_sampling sampling = chain_of(t);
    peridot_row call = last ? take_last_row : take_row;
    make_prompt(prompt, t);
    EXPECT_OK(peridot_request_submit(&t->r, s, &(peridot_request_params){.size = sizeof(peridot_request_params),
        .prompt = prompt, .n_prompt = t->length, .n_max = t->n_max, .text = take, .user = t, .sampling = &sampling,
        .prompt_hidden = hidden ? call : NULL, .prompt_logits = hidden ? NULL : call, .prompt_last = last}));
}

/* Texts of which rows are wanted are read beside others that are written, in parts, and change none of them. */
static void test_rows(void **state)
{
    (void)state;
    enum { N = 4 };
    static const bool hidden[N] = {true, false, true, true}, last[N] = {false, false, true, false};
    peridot_session *s = open_session(&(peridot_session_params){.n_sequences = 8});
    struct text writers[2], readers[N], alone;
    size_t n_running;
    for (uint32_t i = 0; i < 2; i++) {
        writers[i] = (struct text){.prompt = i, .length = i ? 200 : 10, .n_max = 50};
        submit(&writers[i], s);
    }
    while (writers[0].n < 2) EXPECT_OK(peridot_session_run(s, &n_running));
    for (uint32_t i = 0; i < N; i++) {
        readers[i] = (struct text){.prompt = 1 + i, .length = i == 3 ? 5 : 60 + 40 * i, .n_max = i == 1 ? 6 : 0};
        submit_rows(&readers[i], s, hidden[i], last[i]);
    }
    double token = pd_token_flop(s->s->model, 0, false);
    /* as on a slow device: 16 tokens in 0.2 s */
    s->s->prefill.pace = (struct pd_pace){.at_once = 8, .last = {16 * token, 0.2}};
    EXPECT_OK(peridot_session_run(s, &n_running));
    uint32_t n_rows = 0, n_before = writers[0].n;
    for (uint32_t i = 0; i < N; i++) n_rows += readers[i].n_rows;
    assert_in_range(n_rows, 1, 16);
    for (uint32_t i = 0; i < 6; i++) {
        EXPECT_OK(peridot_session_run(s, &n_running));
        assert_int_equal(writers[0].n, n_before + i + 1);   /* each round has a token of it */
    }
    run_all(s);
    for (uint32_t i = 0; i < 2; i++) {
        alone = (struct text){.prompt = i, .length = writers[i].length, .n_max = 50};
        write_alone(&alone);
        expect_done(&writers[i]);
        expect_same(&writers[i], &alone);
    }
    for (uint32_t i = 0; i < N; i++) {
        assert_int_equal(expect_done(&readers[i]).n_cached, 0);
        assert_int_equal(readers[i].n_rows, last[i] ? 1 : readers[i].length);
        expect_rows(&readers[i], hidden[i], last[i]);
        free(readers[i].rows);
    }
    assert_int_equal(readers[1].n, 6);
    alone = (struct text){.prompt = 2, .length = readers[1].length, .n_max = 6};
    write_alone(&alone);
    expect_same(&readers[1], &alone);
    peridot_session_free(s);
}

/* With a sequence as without one. */
static void test_generated_rows(void **state)
{
    (void)state;
    struct text t = {.prompt = 4, .length = 50, .n_max = 6}, alone = {.prompt = 4, .length = 50, .n_max = 6};
    int32_t prompt[CTX];
    peridot_sequence *q;
    peridot_session *s = open_session(&(peridot_session_params){.n_sequences = 2});
    const peridot_sampling sampling = chain_of(&t);
    make_prompt(prompt, &t);
    write_alone(&alone);
    EXPECT_OK(peridot_sequence_create(&q, s));
    EXPECT_OK(peridot_generate(q, &(peridot_request_params){.size = sizeof(peridot_request_params), .prompt = prompt,
        .n_prompt = t.length, .n_max = t.n_max, .text = take, .user = &t, .sampling = &sampling,
        .prompt_logits = take_row}, NULL));
    expect_same(&t, &alone);
    expect_rows(&t, false, false);
    free(t.rows);
    peridot_session_free(s);
}

/* A prompt whose rows are wanted and another take turns, and a short text does not wait for the end of a long one. */
static void test_turns(void **state)
{
    (void)state;
    struct text prompt = {.prompt = 1, .length = 300, .n_max = 1}, rows = {.prompt = 2, .length = 300},
                few = {.prompt = 3, .length = 8};
    size_t n_running;
    peridot_session *s = open_session(&(peridot_session_params){.n_sequences = 4});
    submit(&prompt, s);
    submit_rows(&rows, s, true, false);
    submit_rows(&few, s, true, false);
    double token = pd_token_flop(s->s->model, 0, false);
    for (int i = 0; i < 6; i++) {   /* as on a slow device: 16 tokens in 0.2 s */
        s->s->prefill.pace = (struct pd_pace){.at_once = 8, .last = {16 * token, 0.2}};
        EXPECT_OK(peridot_session_run(s, &n_running));
    }
    assert_in_range(rows.n_rows, 16, 64);
    assert_int_equal(few.n_rows, 8);
    assert_in_range(prompt.r->r.prompt.sequence->pos, 16, 64);
    run_all(s);
    expect_done(&prompt);
    expect_rows(&rows, true, false);
    free(rows.rows);
    free(few.rows);
    peridot_session_free(s);
}

/* As on a slow device: 16 tokens in 0.2 s. */
static void run_slowly(peridot_session *s, int n_rounds)
{
    size_t n_running;
    double token = pd_token_flop(s->s->model, 0, false);
    for (int i = 0; i < n_rounds; i++) {
        s->s->prefill.pace = (struct pd_pace){.at_once = 8, .last = {16 * token, 0.2}};
        EXPECT_OK(peridot_session_run(s, &n_running));
    }
}

/* A prompt that a chunk can end is read within two rounds; a long one goes on beside many short ones. */
static void test_short_first(void **state)
{
    (void)state;
    enum { N = 12 };
    struct text longs[2] = {{.prompt = 1, .length = 300}, {.prompt = 2, .length = 300}}, few[N];
    peridot_session *s = open_session(&(peridot_session_params){.n_sequences = 2 + N});
    for (int i = 0; i < 2; i++) submit_rows(&longs[i], s, true, false);
    for (int i = 0; i < N; i++) {
        few[i] = (struct text){.prompt = 3, .length = 8};
        if (i == 4) run_slowly(s, 8);
        submit_rows(&few[i], s, true, false);
        if (i >= 4) continue;
        run_slowly(s, 2);
        expect_done(&few[i]);
    }
    uint32_t n_before = longs[0].n_rows + longs[1].n_rows;
    run_slowly(s, 8);
    assert_in_range(longs[0].n_rows + longs[1].n_rows, n_before + 16, n_before + 32);
    run_all(s);
    for (int i = 0; i < 2; i++) expect_rows(&longs[i], true, false);
    for (int i = 0; i < 2; i++) free(longs[i].rows);
    for (int i = 0; i < N; i++) free(few[i].rows);
    peridot_session_free(s);
}

/* After others had a part of the rounds, chunks of a lone prompt stay as short as beside them for a while. */
static void test_lately_shared(void **state)
{
    (void)state;
    struct text prompt = {.prompt = 1, .length = 300}, few = {.prompt = 3, .length = 8};
    peridot_session *s = open_session(&(peridot_session_params){.n_sequences = 2});
    submit_rows(&prompt, s, true, false);
    submit_rows(&few, s, true, false);
    run_slowly(s, 2);
    expect_done(&few);
    uint32_t n_before = prompt.n_rows;
    run_slowly(s, 1);
    assert_in_range(prompt.n_rows, n_before + 1, n_before + 16);
    n_before = prompt.n_rows;
    s->s->shared_at -= 10;
    run_slowly(s, 1);
    assert_in_range(prompt.n_rows, n_before + 17, n_before + 32);
    run_all(s);
    free(prompt.rows);
    free(few.rows);
    peridot_session_free(s);
}

/* One whose callback says so ends, and the one that is read with it does not. */
static void test_stopped_rows(void **state)
{
    (void)state;
    struct text stopped = {.prompt = 1, .length = 30, .stops_at = 9}, other = {.prompt = 2, .length = 40};
    peridot_status status;
    peridot_session *s = open_session(&(peridot_session_params){.n_sequences = 4});
    submit_rows(&stopped, s, true, false);
    submit_rows(&other, s, true, false);
    run_all(s);
    assert_true(peridot_request_done(stopped.r, &status, NULL));
    assert_int_equal(status, PERIDOT_CANCELLED);
    assert_int_equal(stopped.n_rows, 9);
    expect_done(&other);
    expect_rows(&other, true, false);
    free(stopped.rows);
    free(other.rows);
    peridot_session_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order), cmocka_unit_test(test_prefixes), cmocka_unit_test(test_choices),
        cmocka_unit_test(test_small_cache), cmocka_unit_test(test_taken_up), cmocka_unit_test(test_never_fits),
        cmocka_unit_test(test_last_try),
        cmocka_unit_test(test_taken_away), cmocka_unit_test(test_own_sequences), cmocka_unit_test(test_rows),
        cmocka_unit_test(test_generated_rows), cmocka_unit_test(test_turns),
        cmocka_unit_test(test_short_first), cmocka_unit_test(test_lately_shared),
        cmocka_unit_test(test_stopped_rows),
        cmocka_unit_test(test_stop_text)};
    int n_failed = cmocka_run_group_tests_name("schedule", tests, open_shared, close_shared);
    path = RECURRENT;
    n_endless = 0;
    const struct CMUnitTest of_states[] = {cmocka_unit_test(test_prefixes), cmocka_unit_test(test_small_cache)};
    n_failed += cmocka_run_group_tests_name("schedule, recurrences", of_states, open_shared, close_shared);
    path = "tiny-granite4-h-moe";
    n_endless = 0;
    const struct CMUnitTest of_experts[] = {cmocka_unit_test(test_small_cache)};
    return n_failed + cmocka_run_group_tests_name("schedule, and experts", of_experts, open_shared, close_shared);
}

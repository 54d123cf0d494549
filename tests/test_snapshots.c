/* Sequences that go back to where they were, forks of them, and sequences in files: each goes on as if it had never
 * been elsewhere. */
#include "sequences_fixture.h"
#include "relative_error.h"

#include "engine/memory/memory.h"

#define GEMMA4 PERIDOT_GOLDEN "/gemma4-small/model.gguf"   /* windows of 12, and layers that read the keys of others */

static void expect_all_free(const struct pd_cache *cache)
{
    for (uint32_t kind = 0; kind <= PD_STATE_KIND; kind++)
        assert_int_equal(cache->pools[kind].n_free, cache->pools[kind].n_pages);
}

/* ---- going back ---- */

/* Turns of a chat: retrying a reply, and saying another thing, reads only what changed, though windows have passed over
 * the rest. */
static void test_snapshots(void **state)
{
    (void)state;
    peridot_model *model = open_model(MODEL, NULL);
    size_t width = peridot_model_get_info(model)->n_outputs;
    peridot_session *s = open_session(model, 2, PERIDOT_KV_F16);
    peridot_sequence *q = add(s), *plain = add(s);
    float want[MAX_WIDTH], got[MAX_WIDTH];
    uint32_t kept;
    eval(q, 1, 0, 100);                              /* a prompt */
    for (uint32_t i = 100; i < 200; i++) eval(q, 1, i, i + 1);   /* a reply */
    EXPECT_FAILURE(peridot_sequence_truncate(q, 90, NULL), PERIDOT_ERROR_ARGUMENT, "90", "the nearest place is 0");
    assert_int_equal(peridot_sequence_pos(q), 200);
    EXPECT_OK(peridot_sequence_truncate(q, 100, &kept));   /* again */
    assert_int_equal(kept, 100);
    for (uint32_t i = 100; i < 200; i++) eval(q, 2, i, i + 1);
    eval(q, 2, 200, 240);                            /* the next turn, and its reply */
    for (uint32_t i = 240; i < 310; i++) eval(q, 2, i, i + 1);
    EXPECT_OK(peridot_sequence_truncate(q, 205, &kept));   /* within the turn: to the end of the reply before it */
    assert_int_equal(kept, 200);
    eval(q, 3, 200, 250);
    copy_logits(got, q, width);
    eval(plain, 1, 0, 100);
    for (uint32_t i = 100; i < 200; i++) eval(plain, 2, i, i + 1);
    eval(plain, 3, 200, 250);
    copy_logits(want, plain, width);
    assert_memory_equal(got, want, width * sizeof *got);
    EXPECT_OK(peridot_sequence_truncate(q, 30, &kept));    /* nothing is left of that */
    assert_int_equal(kept, 0);
    EXPECT_FAILURE(pd_snapshot_restore(cache_of(s), &q->q->pages, 100), PERIDOT_ERROR_ARGUMENT, "no snapshot",
                   "100");
    peridot_session_free(s);
    peridot_model_close(model);
}

/* A conversation: pieces of texts, each a prompt or the steps of a reply. */
struct talk {
    struct piece {
        uint32_t text, to;
        bool reply;
    } pieces[32];
    uint32_t n;
};

static uint32_t length(const struct talk *t) { return t->n ? t->pieces[t->n - 1].to : 0; }

static void eval_piece(peridot_sequence *q, const struct piece *p)
{
    uint32_t from = peridot_sequence_pos(q);
    if (!p->reply) eval(q, p->text, from, p->to);
    for (uint32_t i = from; p->reply && i < p->to; i++) eval(q, p->text, i, i + 1);
}

static void add_turn(struct talk *t, peridot_sequence *q, uint32_t text)
{
    for (int reply = 0; reply < 2; reply++) {
        t->pieces[t->n] = (struct piece){text, length(t) + (reply ? 17 : 45), reply};
        eval_piece(q, &t->pieces[t->n++]);
    }
}


/* Logits of a sequence that never went back. */
static void expect_as_never_back(const struct talk *t, peridot_sequence *q)
{
    peridot_model *model = open_model(MODEL, NULL);
    peridot_session *s;
    float want[MAX_WIDTH], got[MAX_WIDTH];
    size_t width = peridot_model_get_info(model)->n_outputs;
    EXPECT_OK(peridot_session_create(&s, model, &(peridot_session_params){.ctx = 512, .chunk = 16}));
    peridot_sequence *plain = add(s);
    for (uint32_t i = 0; i < t->n; i++) eval_piece(plain, &t->pieces[i]);
    assert_int_equal(peridot_sequence_pos(plain), peridot_sequence_pos(q));
    copy_logits(want, plain, width);
    copy_logits(got, q, width);
    if (memcmp(got, want, width * sizeof *got) != 0)
        fail_msg("after %u pieces: %g apart", t->n, relative_error(got, want, width));
    peridot_session_free(s);
    peridot_model_close(model);
}

/* Eight turns have more pages of windows than the device: those of old turns go to the host's memory and come back. Any
 * of the turns can be retried or said otherwise, again and again, and nothing before it is evaluated again. */
static void test_snapshots_on_host(void **state)
{
    (void)state;
    static const uint32_t back_to[] = {15, 12, 9, 13, 4, 7, 1};   /* pieces that stay */
    peridot_model *model = open_model(MODEL, NULL);
    peridot_session *s;
    struct talk talk = {.n = 0};
    uint32_t kept;
    EXPECT_OK(peridot_session_create(&s, model, &(peridot_session_params){.ctx = 512, .chunk = 16}));
    peridot_sequence *q = add(s);
    struct pd_cache *cache = cache_of(s);
    while (talk.n < 16) add_turn(&talk, q, talk.n);
    uint64_t most = cache->host_size;
    for (size_t i = 0; i < PD_COUNT(back_to); i++) {
        talk.n = back_to[i];
        EXPECT_OK(peridot_sequence_truncate(q, length(&talk), &kept));
        assert_int_equal(kept, length(&talk));
        if (talk.n % 2) {   /* another reply */
            talk.pieces[talk.n] = (struct piece){40 + (uint32_t)i, length(&talk) + 17, true};
            eval_piece(q, &talk.pieces[talk.n++]);
            expect_as_never_back(&talk, q);
        }
        while (talk.n < 16) add_turn(&talk, q, 20 * (uint32_t)i + talk.n);
        most = pd_max(most, cache->host_size);
        expect_as_never_back(&talk, q);
    }
    assert_true(most > 0);
    peridot_sequence_free(q);
    assert_int_equal(cache->host_size, 0);
    expect_all_free(cache);
    peridot_session_free(s);
    peridot_model_close(model);
}

/* A fork goes back wherever the sequence can that it comes from, though windows have passed over the place and its
 * pages are in the host's memory; and both go on as if alone. */
static void test_forks_of_old_turns(void **state)
{
    (void)state;
    peridot_model *model = open_model(MODEL, NULL);
    peridot_session *s;
    struct talk talk = {.n = 0}, other = {.n = 0};
    uint32_t kept;
    EXPECT_OK(peridot_session_create(&s, model,
                                     &(peridot_session_params){.ctx = 512, .chunk = 16, .n_sequences = 2}));
    peridot_sequence *q = add(s), *fork;
    struct pd_cache *cache = cache_of(s);
    while (talk.n < 16) add_turn(&talk, q, talk.n);
    for (uint32_t n = 1; n < 16; n += 4) {
        other = talk;
        other.n = n;
        uint32_t at = length(&other);
        assert_int_equal(peridot_sequence_nearest(q, at + 5), at);
        EXPECT_FAILURE(peridot_sequence_fork(&fork, q, at + 5), PERIDOT_ERROR_ARGUMENT, "gone");
        EXPECT_OK(peridot_sequence_fork(&fork, q, at));
        add_turn(&other, fork, 50 + n);
        expect_as_never_back(&other, fork);
        if (n > 4) {
            other.n = n - 4;
            EXPECT_OK(peridot_sequence_truncate(fork, length(&other), &kept));
            assert_int_equal(kept, length(&other));
            add_turn(&other, fork, 70 + n);
            expect_as_never_back(&other, fork);
        }
        peridot_sequence_free(fork);
    }
    expect_as_never_back(&talk, q);
    peridot_sequence_free(q);
    assert_int_equal(cache->host_size, 0);
    expect_all_free(cache);
    peridot_session_free(s);
    peridot_model_close(model);
}

/* The host's memory has a bound: beyond it the oldest turns can't be gone back to, and the conversation goes on. */
static void test_snapshots_bounded(void **state)
{
    (void)state;
    peridot_model *model = open_model(MODEL, NULL);
    peridot_session *s;
    struct talk talk = {.n = 0};
    uint32_t kept;
    EXPECT_OK(peridot_session_create(&s, model,
                                     &(peridot_session_params){.ctx = 512, .chunk = 16, .snapshot_size = 1}));
    peridot_sequence *q = add(s);
    while (talk.n < 16) add_turn(&talk, q, talk.n);
    assert_int_equal(cache_of(s)->host_size, 0);
    talk.n = 12;
    EXPECT_OK(peridot_sequence_truncate(q, length(&talk), &kept));
    assert_int_equal(kept, length(&talk));
    add_turn(&talk, q, 33);
    expect_as_never_back(&talk, q);
    EXPECT_OK(peridot_sequence_truncate(q, talk.pieces[0].to, &kept));
    assert_int_equal(kept, 0);
    peridot_session_free(s);
    peridot_model_close(model);
}

/* ---- states of recurrences ---- */

static peridot_session *open_recurrent(peridot_model *model, uint32_t n)
{
    peridot_session *s;
    EXPECT_OK(peridot_session_create(&s, model, &(peridot_session_params){.ctx = 8192, .n_sequences = n}));
    const struct pd_config *c = &model->m.config;
    const uint64_t *size = cache_of(s)->pools[PD_STATE_KIND].page_size;
    uint64_t n_layers = 0;
    for (uint32_t i = 0; i < c->n_layers; i++) n_layers += pd_layer_recurs(&c->layers[i]);
    assert_int_equal(peridot_model_get_info(model)->states_size, PD_N_STATES * n_layers * (size[0] + size[1]));
    return s;
}

static void eval_long(peridot_sequence *q, uint32_t text, uint32_t from, uint32_t to)
{
    static int32_t tokens[8192];
    for (uint32_t i = from; i < to; i++) tokens[i - from] = token_of(text, i);
    EXPECT_OK(peridot_sequence_eval(q, tokens, to - from, NULL));
}

static void expect_same_logits(peridot_sequence *q, peridot_sequence *plain)
{
    float want[MAX_WIDTH], got[MAX_WIDTH];
    size_t width = 256;
    assert_int_equal(peridot_sequence_pos(plain), peridot_sequence_pos(q));
    copy_logits(want, plain, width);
    copy_logits(got, q, width);
    double error = relative_error(got, want, width);
    if (!(error < 2e-5)) fail_msg("after %u tokens: %g apart", peridot_sequence_pos(q), error);
}

/* A prompt that is said again, within a chunk or beyond its end, is read again from 256 tokens before at most, and goes
 * on as if it had not been said before; so does a fork. */
static void check_states(const char *path)
{
    static const uint32_t at[][2] = {{600, 600}, {599, 512}, {515, 512}, {512, 512}, {511, 256}, {255, 100}};
    peridot_model *model = open_model(path, NULL);
    peridot_session *s = open_recurrent(model, 3);
    peridot_sequence *q = add(s), *plain = add(s), *fork;
    uint32_t kept;
    int32_t prompt[600];
    for (uint32_t i = 0; i < 600; i++) prompt[i] = token_of(1, i);
    for (size_t i = 0; i < PD_COUNT(at); i++) {
        EXPECT_OK(peridot_sequence_truncate(q, 0, NULL));
        EXPECT_OK(peridot_sequence_eval(q, prompt, 100, NULL));
        EXPECT_OK(peridot_sequence_eval(q, prompt + 100, 500, NULL));
        for (uint32_t k = 600; k < 620; k++) eval(q, 1, k, k + 1);
        assert_int_equal(peridot_sequence_nearest(q, at[i][0]), at[i][1]);
        EXPECT_OK(peridot_sequence_fork(&fork, q, at[i][1]));
        EXPECT_OK(peridot_sequence_truncate(q, at[i][0], &kept));
        assert_int_equal(kept, at[i][1]);
        eval_long(q, 2, kept, kept + 90);
        eval_long(fork, 2, kept, kept + 90);
        EXPECT_OK(peridot_sequence_truncate(plain, 0, NULL));
        eval_long(plain, 1, 0, kept);
        eval_long(plain, 2, kept, kept + 90);
        expect_same_logits(q, plain);
        expect_same_logits(fork, plain);
        peridot_sequence_free(fork);
    }
    /* a step back: the state before the last token is there still */
    for (uint32_t k = kept + 90; k < kept + 93; k++) eval(q, 2, k, k + 1);
    EXPECT_OK(peridot_sequence_truncate(q, kept + 92, NULL));
    eval(q, 2, kept + 92, kept + 93);
    eval_long(plain, 2, kept + 90, kept + 93);
    expect_same_logits(q, plain);
    peridot_sequence_free(q);
    peridot_sequence_free(plain);
    expect_all_free(cache_of(s));
    peridot_session_free(s);
    peridot_model_close(model);
}

static void test_states(void **state)
{
    (void)state;
    check_states(RECURRENT);
    check_states(SHORT_CONVS);
    check_states(GRANITE);
}

/* A long conversation: what is kept is bounded; of the last two turns each is read again from 256 tokens before at
 * most, and of older ones from not much further than they are back. */
static void test_old_states(void **state)
{
    (void)state;
    enum { N_TURNS = 7, PROMPT = 45, TURN = 600, END = N_TURNS * TURN + 1600 };
    peridot_model *model = open_model(RECURRENT, NULL);
    peridot_session *s = open_recurrent(model, 2);
    peridot_sequence *q = add(s), *plain = add(s);
    uint32_t kept, n_places = 0, before = 0;
    for (uint32_t turn = 0; turn < N_TURNS; turn++) {
        eval(q, 1, turn * TURN, turn * TURN + PROMPT);
        eval_long(q, 1, turn * TURN + PROMPT, (turn + 1) * TURN);
    }
    eval_long(q, 1, N_TURNS * TURN, END);   /* the last reply is a long one */
    for (uint32_t n = 1; n < END; n++) {
        uint32_t nearest = peridot_sequence_nearest(q, n);
        n_places += nearest != before;
        before = nearest;
        assert_in_range(n - nearest, 0, pd_max(256, 3 * (END - n) / 4));
    }
    assert_in_range(n_places, 10, PD_N_SNAPSHOTS + PD_N_STATES);
    for (uint32_t turn = N_TURNS - 2; turn < N_TURNS; turn++) {
        assert_in_range(turn * TURN - peridot_sequence_nearest(q, turn * TURN), 0, 256);
        assert_in_range(turn * TURN + PROMPT - 1 - peridot_sequence_nearest(q, turn * TURN + PROMPT - 1), 0, 256);
    }
    EXPECT_OK(peridot_sequence_truncate(q, TURN * (N_TURNS - 1) + PROMPT - 1, &kept));
    eval_long(q, 1, kept, TURN * (N_TURNS - 1) + PROMPT);
    eval_long(plain, 1, 0, TURN * (N_TURNS - 1) + PROMPT);
    expect_same_logits(q, plain);
    peridot_session_free(s);
    peridot_model_close(model);
}

/* Forks share what was, and then each goes its own way; so does the one that they came from, backwards too. */
/* back: to where the first one goes back, from 140 */
static void check_forks(const char *path, peridot_kv_type kv, uint32_t back)
{
    static const uint32_t at[] = {64, 100, 127, 128, 140};
    peridot_model *model = open_model(path, NULL);
    size_t width = peridot_model_get_info(model)->n_outputs;
    peridot_session *s = open_session(model, 7, kv);
    peridot_sequence *q = add(s), *plain = add(s), *forks[PD_COUNT(at)];
    float got[MAX_WIDTH], want[MAX_WIDTH];
    eval(q, 1, 0, 64);
    for (size_t i = 0; i < PD_COUNT(at); i++) {
        if (i) eval(q, 1, at[i - 1], at[i]);
        EXPECT_OK(peridot_sequence_fork(&forks[i], q, at[i]));
        assert_int_equal(peridot_sequence_pos(forks[i]), at[i]);
        for (uint32_t k = 0; k < at[i]; k++) assert_int_equal(peridot_sequence_tokens(forks[i])[k], token_of(1, k));
    }
    EXPECT_OK(peridot_sequence_truncate(q, back, NULL));
    for (uint32_t k = 0; k < 20; k++) {   /* side by side, and over each other's pages if these were still shared */
        eval(q, 9, back + k, back + k + 1);
        for (size_t i = 0; i < PD_COUNT(at); i++) eval(forks[i], 20 + (uint32_t)i, at[i] + k, at[i] + k + 1);
    }
    for (size_t i = 0; i <= PD_COUNT(at); i++) {
        bool is_fork = i < PD_COUNT(at);
        uint32_t n = is_fork ? at[i] : back, text = is_fork ? 20 + (uint32_t)i : 9;
        EXPECT_OK(peridot_sequence_truncate(plain, 0, NULL));
        for (uint32_t k = 0, to = 64; k < n; k = to, to = n) {   /* chunks as they were */
            for (size_t m = 0; m < PD_COUNT(at); m++)
                if (at[m] > k && (at[m] < to || to <= k)) to = at[m];
            eval(plain, 1, k, (uint32_t)pd_min(to, n));
            to = (uint32_t)pd_min(to, n);
        }
        for (uint32_t k = 0; k < 20; k++) eval(plain, text, n + k, n + k + 1);
        copy_logits(want, plain, width);
        copy_logits(got, is_fork ? forks[i] : q, width);
        double error = relative_error(got, want, width);
        if (!(error < 5e-4)) fail_msg("fork at %u: %g apart", n, error);
    }
    EXPECT_FAILURE(peridot_sequence_fork(&plain, q, back + 21), PERIDOT_ERROR_ARGUMENT, "cannot fork");
    EXPECT_FAILURE(peridot_sequence_create(&plain, s), PERIDOT_ERROR_ARGUMENT, "all 7 sequences");
    peridot_sequence_free(forks[2]);
    EXPECT_OK(peridot_sequence_create(&plain, s));
    assert_int_equal(peridot_sequence_pos(plain), 0);
    peridot_session_free(s);
    peridot_model_close(model);
}

static void test_forks(void **state)
{
    (void)state;
    check_forks(MODEL, PERIDOT_KV_F16, 126);
    check_forks(GEMMA4, PERIDOT_KV_Q8_0_Q4_1, 126);
    check_forks(RECURRENT, PERIDOT_KV_F16, 127);
    check_forks(SHORT_CONVS, PERIDOT_KV_F16, 127);
    check_forks(GRANITE, PERIDOT_KV_F16, 127);
}

/* ---- files ---- */

static void draw_some(int32_t *out, peridot_sequence *q, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        EXPECT_OK(peridot_sample(&out[i], q));
        EXPECT_OK(peridot_sequence_eval(q, &out[i], 1, NULL));
    }
}

/* A saved sequence goes on elsewhere as it would have gone on, its logits too; windows have passed over the first
 * page. */
static void check_saved(const char *of, peridot_kv_type kv, peridot_kv_type other_kv)
{
    peridot_model *model = open_model(of, NULL), *other = open_model(PERIDOT_GOLDEN "/gemma2-q4_0/model.gguf", NULL);
    size_t width = peridot_model_get_info(model)->n_outputs;
    char path[128];
    int32_t want[30], got[30];
    float before[MAX_WIDTH], after[MAX_WIDTH];
    snprintf(path, sizeof path, "%s/sequence", folder);
    peridot_session *s = open_session(model, 2, kv);
    peridot_sequence *q = add(s), *loaded;
    EXPECT_OK(
        peridot_set_sampling(q, &(peridot_sampling){.temperature = 6, .top_k = 40, .repeat_penalty = 1.1f, .seed = 9,
            .xtc_probability = 0.5f, .xtc_threshold = 0.02f, .dry_multiplier = 9, .dry_allowed_length = 1}));
    eval_prompt(q, 11);
    draw_some(want, q, 30);
    EXPECT_OK(peridot_sequence_save(q, path));
    copy_logits(before, q, width);
    draw_some(want, q, 30);
    peridot_session_free(s);

    s = open_session(model, 2, kv);
    eval(add(s), 3, 0, 90);   /* other pages are free */
    EXPECT_OK(peridot_sequence_load(&loaded, s, path));
    assert_int_equal(peridot_sequence_pos(loaded), length_of(11) + 30);
    copy_logits(after, loaded, width);
    assert_memory_equal(after, before, width * sizeof *after);
    draw_some(got, loaded, 30);
    assert_memory_equal(got, want, sizeof got);
    EXPECT_FAILURE(peridot_sequence_load(&q, s, path), PERIDOT_ERROR_ARGUMENT, "all 2 sequences");
    peridot_session_free(s);
    s = open_session(other, 2, kv);
    EXPECT_FAILURE(peridot_sequence_load(&q, s, path), PERIDOT_ERROR_ARGUMENT, "another model");
    assert_null(q);
    peridot_session_free(s);
    s = open_session(model, 1, other_kv);
    EXPECT_FAILURE(peridot_sequence_load(&q, s, path), PERIDOT_ERROR_ARGUMENT, "type of KV cache");
    peridot_session_free(s);
    peridot_model_close(model);
    peridot_model_close(other);
    unlink(path);
}

static void test_saved(void **state)
{
    (void)state;
    check_saved(MODEL, PERIDOT_KV_F16, PERIDOT_KV_F32);
    check_saved(MODEL, PERIDOT_KV_Q8_0, PERIDOT_KV_F16);
    check_saved(GEMMA4, PERIDOT_KV_Q8_0_Q4_1, PERIDOT_KV_Q8_0);
    check_saved(RECURRENT, PERIDOT_KV_F16, PERIDOT_KV_F32);
    check_saved(SHORT_CONVS, PERIDOT_KV_F16, PERIDOT_KV_F32);
    check_saved(GRANITE, PERIDOT_KV_F16, PERIDOT_KV_F32);
}

/* LongRoPE rotates keys for the longest text of a session, which another session's need not be. */
static void test_saved_long(void **state)
{
    (void)state;
    peridot_model *model = open_model(PERIDOT_GOLDEN "/llama-longrope", NULL);
    char path[128];
    snprintf(path, sizeof path, "%s/sequence", folder);
    for (uint32_t ctx = 64; ctx <= 65; ctx++) {
        peridot_session *s;
        peridot_session_params params = {.ctx = ctx, .n_sequences = 2};
        EXPECT_OK(peridot_session_create(&s, model, &params));
        peridot_sequence *q = add(s);
        if (ctx == 64) {
            eval(q, 1, 0, 20);
            EXPECT_OK(peridot_sequence_save(q, path));
            EXPECT_OK(peridot_sequence_load(&q, s, path));
        } else {
            EXPECT_FAILURE(peridot_sequence_load(&q, s, path), PERIDOT_ERROR_ARGUMENT, "for a shorter context");
        }
        peridot_session_free(s);
    }
    peridot_model_close(model);
    unlink(path);
}

/* Every file that is cut short is refused, and so are numbers that do not fit together. */
static void test_damaged(void **state)
{
    (void)state;
    static const struct { long at; uint32_t word; const char *sentence;
    } changes[] = {{0, 1, "not a saved sequence"},  {8, 1, "another model"},       {24, 1, "type of KV cache"},
                   {36, 400, "context"},   {36, 64, "lacks pages"},       {44, 1, "lacks pages"},
                   {76, 5, "lacks pages"}, {176, 1, "an adapter that the model was not opened with"},
                   {560, 99999, "token id 99999"},
                   /* candidates, after 70 tokens: NaN, infinity, an id that there is not, 1e30 after the best */
                   {840, 0x7fc00000, "candidate 0 is not a finite number"},
                   {848, 0x7f800000, "candidate 1 is not a finite number"},
                   {844, 99999, "candidate 0 is token id 99999"}, {848, 0x7149f2ca, "candidate 1 is not in order"}};
    peridot_model *model = open_model(MODEL, NULL);
    peridot_session *s = open_session(model, 2, PERIDOT_KV_F16);
    peridot_sequence *q = add(s), *none;
    char path[128];
    static uint8_t bytes[1 << 20];
    snprintf(path, sizeof path, "%s/sequence", folder);
    eval(q, 1, 0, 70);
    EXPECT_OK(peridot_sequence_save(q, path));
    FILE *f = fopen(path, "rb");
    size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    assert_in_range(n, 1000, sizeof bytes - 1);
    for (size_t size = 0; size < n; size += size < 2000 ? 1 : 9973) {
        f = fopen(path, "wb");
        assert_int_equal(fwrite(bytes, 1, size, f), size);
        fclose(f);
        peridot_status status = peridot_sequence_load(&none, s, path);
        if (status == PERIDOT_OK) fail_msg("%zu bytes of %zu are enough", size, n);
        assert_null(none);
    }
    for (size_t i = 0; i < PD_COUNT(changes); i++) {
        f = fopen(path, "wb");
        assert_int_equal(fwrite(bytes, 1, n, f), n);
        fseek(f, changes[i].at, SEEK_SET);
        fwrite(&changes[i].word, 4, 1, f);
        fclose(f);
        peridot_status status = peridot_sequence_load(&none, s, path);
        if (status == PERIDOT_OK || !strstr(peridot_last_error(), changes[i].sentence))
            fail_msg("%u at %ld: %s", changes[i].word, changes[i].at, status ? peridot_last_error() : "is taken");
    }
    EXPECT_OK(peridot_sequence_create(&none, s));   /* nothing was left taken */
    peridot_session_free(s);
    peridot_model_close(model);
    unlink(path);
}

/* The first layer's state comes first of what is after the candidates: one element is NaN, or one state more is said to
 * be there. */
static void check_damaged_states(const char *of)
{
    enum { N = 70, FLAGS = 40, TOKENS = 560, STATES = TOKENS + 4 * N + PD_TOPK * 8 };
    peridot_model *model = open_model(of, NULL);
    peridot_session *s = open_session(model, 2, PERIDOT_KV_F16);
    peridot_sequence *q = add(s), *loaded;
    static uint8_t bytes[4 << 20];
    char path[128];
    int32_t token = 7;
    snprintf(path, sizeof path, "%s/sequence", folder);
    eval(q, 1, 0, N);
    EXPECT_OK(peridot_sequence_save(q, path));
    FILE *f = fopen(path, "rb");
    size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    assert_in_range(n, STATES + 1000, sizeof bytes - 1);
    for (int damage = 0; damage < 4; damage++) {   /* none; NaN; a flag says that there are more states; cut short */
        uint32_t word = damage == 1 ? 0x7fc00000 : 5;
        f = fopen(path, "wb");
        assert_int_equal(fwrite(bytes, 1, damage == 3 ? n - 1 : n, f), damage == 3 ? n - 1 : n);
        fseek(f, damage == 1 ? STATES : FLAGS, SEEK_SET);
        if (damage == 1 || damage == 2) fwrite(&word, sizeof word, 1, f);
        fclose(f);
        if (damage > 1) {
            EXPECT_FAILURE(peridot_sequence_load(&loaded, s, path), PERIDOT_ERROR_FORMAT, "and should have");
            assert_null(loaded);
            continue;
        }
        EXPECT_OK(peridot_sequence_load(&loaded, s, path));
        peridot_status status = peridot_sequence_eval(loaded, &token, 1, NULL);
        if (status == PERIDOT_OK) status = peridot_sample(&token, loaded);
        if ((status == PERIDOT_OK) != (damage == 0))
            fail_msg("%s, %d: %s", of, damage, status ? peridot_last_error() : "is taken");
        peridot_sequence_free(loaded);
    }
    peridot_session_free(s);
    peridot_model_close(model);
    unlink(path);
}

static void test_damaged_states(void **state)
{
    (void)state;
    check_damaged_states(RECURRENT);
    check_damaged_states(GRANITE);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_snapshots),         cmocka_unit_test(test_snapshots_on_host),
        cmocka_unit_test(test_forks_of_old_turns), cmocka_unit_test(test_snapshots_bounded),
        cmocka_unit_test(test_states),            cmocka_unit_test(test_old_states),
        cmocka_unit_test(test_forks),             cmocka_unit_test(test_saved),
        cmocka_unit_test(test_damaged),           cmocka_unit_test(test_saved_long),
        cmocka_unit_test(test_damaged_states),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("snapshots", tests, make_folder, remove_folder);
}

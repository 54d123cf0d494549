/* Speculative decoding: with drafts that are looked up, that a model makes, and that are always wrong, a request writes
 * the tokens that it writes without, and leaves the sequence as it would have been: tokens, logits bit for bit, and the
 * generator. Whatever the chain, where windows wrap, where a text stops and where the context ends. And a chi-squared
 * test of what is drawn within a draft. */
#include "format_fixture.h"

#include "api/api.h"
#include "engine/rounds/rounds.h"
#include "golden_files.h"
#include "peridot_tools.h"
#include "relative_error.h"

#include <math.h>

enum { CTX = 160, MOST = 200, N_CHAINS = 9 };

static char made[2][512];      /* tiny models with one vocabulary and other weights */
static peridot_model *models[2];

static int open_shared(void **state)
{
    if (make_folder(state) != 0) return -1;
    for (uint32_t i = 0; i < 2; i++) {
        snprintf(made[i], sizeof made[i], "%s", in_folder(i ? "other.gguf" : "model.gguf"));
        const peridot_make_params params = {.shape = "tiny-gemma2", .type = "q8_0", .seed = 5 + i};
        if (peridot_make(made[i], &params) != PERIDOT_OK || peridot_model_open(&models[i], made[i], NULL) != PERIDOT_OK)
            return -1;
    }
    return 0;
}

static int close_shared(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        peridot_model_close(models[i]);
        remove(made[i]);
    }
    return rmdir(folder);
}

/* A random model says one thing over and over unless it is hot: drafts are then mostly right, mostly wrong, or both. */
static const peridot_bias lifted[] = {{7, 1}};
static const peridot_sampling chains[N_CHAINS] = {
    {0},
    {.temperature = 1, .top_k = 40, .top_p = 0.95f, .seed = 3},
    {.temperature = 3, .seed = 4},   /* needs all logits */
    {.temperature = 0.3f, .top_k = 8, .min_p = 0.05f, .seed = 5},
    {.repeat_penalty = 1.1f, .frequency_penalty = 0.1f, .seed = 6},
    {.temperature = 1, .top_k = 40, .bias = lifted, .n_bias = 1, .presence_penalty = 0.2f, .seed = 7},
    {.temperature = 0.5f, .top_k = 20, .xtc_probability = 0.3f, .xtc_threshold = 0.1f, .seed = 8},
    {.temperature = 0.3f, .top_k = 30, .dry_multiplier = 0.5f, .dry_allowed_length = 1, .seed = 9},
    {.temperature = 0.5f, .top_n_sigma = 1, .dry_multiplier = 1, .xtc_probability = 0.3f, .xtc_threshold = 0.1f,
     .seed = 10}};

struct text {
    int32_t tokens[MOST];
    uint32_t n, n_stop;        /* n_stop: the callback ends the text after so many; 0: never */
    char bytes[4 * MOST];
    size_t size;
    peridot_sequence *q;
    uint32_t begun;            /* position of the first token */
};

/* In the callback, too, the sequence has just the tokens before this one. */
static bool take(void *user, int32_t token, const char *piece, size_t size)
{
    struct text *t = user;
    assert_true(t->size + size < sizeof t->bytes);
    if (size) memcpy(t->bytes + t->size, piece, size);
    t->size += size;
    if (token < 0) return true;
    assert_int_equal(peridot_sequence_pos(t->q), t->begun + t->n);
    if (t->n) assert_int_equal(peridot_sequence_tokens(t->q)[t->begun + t->n - 1], t->tokens[t->n - 1]);
    t->tokens[t->n++] = token;
    return t->n != t->n_stop;
}

/* A prompt that says its end before. */
static uint32_t make_prompt(int32_t *tokens, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) tokens[i] = i == 0 ? 2 : (int32_t)(5 + 31 * (i % 9) % 240);
    return n;
}

struct ways {
    uint32_t n_draft, n_prompt, n_max, n_stop;
    peridot_model *draft;      /* NULL: lookup */
    peridot_model *drafter;    /* NULL: as `draft` says */
    bool ready;                /* the draft model has read the prompt before */
    peridot_sampling chain;
    peridot_kv_type kv;
    double draw_most_s;        /* the session's, and draw_steps; 0: as they are */
    uint64_t draw_steps;
    peridot_stats stats;
};

struct result {
    struct text text;
    float logits[1024];
    int32_t tokens[CTX + 1];   /* of the sequence; then one that is drawn */
    uint32_t pos;
};

static peridot_session *open_with(peridot_model *model, uint32_t n, uint32_t n_draft, peridot_kv_type kv,
                                  peridot_model *drafter)
{
    peridot_session *s;
    const peridot_session_params params = {.size = sizeof params, .ctx = CTX, .chunk = 16, .kv_type = kv,
        .n_sequences = n, .n_draft = n_draft, .drafter = drafter};
    EXPECT_OK(peridot_session_create(&s, model, &params));
    return s;
}

static peridot_session *open_session(peridot_model *model, uint32_t n, uint32_t n_draft)
{
    return open_with(model, n, n_draft, PERIDOT_KV_F16, NULL);
}

static peridot_sequence *add(peridot_session *s, const peridot_sampling *chain)
{
    peridot_sequence *q;
    EXPECT_OK(peridot_sequence_create(&q, s));
    EXPECT_OK(peridot_set_sampling(q, chain));
    return q;
}

static void make_text(struct result *out, peridot_model *model, struct ways *w)
{
    const float *logits;
    int32_t prompt[CTX];
    peridot_session *s = open_with(model, 2, w->n_draft, w->kv, w->drafter),
                    *d = w->draft ? open_session(w->draft, 2, 0) : NULL;
    peridot_sequence *q = add(s, &w->chain), *drafts = NULL;
    if (w->draw_most_s > 0) s->s->draw_most_s = w->draw_most_s;
    if (w->draw_steps) s->s->draw_steps = w->draw_steps;
    if (d && w->draw_steps) d->s->draw_steps = w->draw_steps;
    if (d) EXPECT_OK(peridot_sequence_create(&drafts, d));
    *out = (struct result){.text = {.q = q, .begun = w->n_prompt, .n_stop = w->n_stop}};
    const peridot_request_params params = {.size = sizeof params, .prompt = prompt,
        .n_prompt = make_prompt(prompt, w->n_prompt), .n_max = w->n_max, .text = take, .user = &out->text,
        .n_draft = w->n_draft, .draft = drafts};
    w->stats = (peridot_stats){0};
    if (d && w->ready) EXPECT_OK(peridot_sequence_eval(drafts, prompt, w->n_prompt, NULL));
    EXPECT_OK(peridot_generate(q, &params, &w->stats));
    assert_int_equal(w->stats.n_generated, out->text.n);
    assert_true(w->stats.n_accepted <= w->stats.n_drafted && w->stats.n_accepted <= out->text.n);
    out->pos = peridot_sequence_pos(q);
    memcpy(out->tokens, peridot_sequence_tokens(q), out->pos * sizeof *out->tokens);
    EXPECT_OK(peridot_logits(&logits, q));
    memcpy(out->logits, logits, peridot_model_get_info(model)->n_outputs * sizeof *logits);
    EXPECT_OK(peridot_sample(&out->tokens[out->pos], q));
    peridot_session_free(d);
    peridot_session_free(s);
}

static void expect_same(const struct result *got, const struct result *want, const char *what, uint32_t n_draft)
{
    uint32_t i = 0;
    while (i < want->text.n && got->text.tokens[i] == want->text.tokens[i]) i++;
    if (i < want->text.n || got->text.n != want->text.n)
        fail_msg("%s, drafts of %u: token %u of %u (%u) is %d, not %d", what, n_draft, i, want->text.n, got->text.n,
                 got->text.tokens[i], want->text.tokens[i]);
    assert_int_equal(got->pos, want->pos);
    assert_memory_equal(got->tokens, want->tokens, (want->pos + 1) * sizeof *want->tokens);
    assert_int_equal(got->text.size, want->text.size);
    assert_memory_equal(got->text.bytes, want->text.bytes, want->text.size);
    if (memcmp(got->logits, want->logits, sizeof want->logits) != 0)
        fail_msg("%s, drafts of %u: other logits at the end", what, n_draft);
}

static struct ways check(peridot_model *model, struct ways w, const char *what)
{
    struct result want, got;
    struct ways without = w;
    without.n_draft = 0;
    without.draft = NULL;
    without.drafter = NULL;
    make_text(&want, model, &without);
    make_text(&got, model, &w);
    expect_same(&got, &want, what, w.n_draft);
    return w;
}

/* Windows of the models are 12 to 32: the text, of which the end of the context is reached, goes over them. */
static void test_chains(void **state)
{
    (void)state;
    peridot_stats most = {0};
    for (uint32_t i = 0; i < N_CHAINS; i++) {
        char what[32];
        snprintf(what, sizeof what, "chain %u", i);
        struct ways w = check(models[0], (struct ways){.n_draft = i % 2 ? 7 : 3, .n_prompt = 40, .n_max = MOST,
                                                       .chain = chains[i]}, what);
        assert_true(i == 2 || w.stats.n_drafted > 0);
        most.n_drafted += w.stats.n_drafted;
        most.n_accepted += w.stats.n_accepted;
    }
    assert_true(most.n_accepted > 0 && most.n_accepted < most.n_drafted);
}

static void test_families(void **state)
{
    static const char *const paths[] = {PERIDOT_GOLDEN "/gemma1", PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf",
                                        PERIDOT_GOLDEN "/gemma4-small", PERIDOT_GOLDEN "/gemma4",
                                        PERIDOT_GOLDEN "/gemma3", PERIDOT_GOLDEN "/llama3",
                                        PERIDOT_GOLDEN "/dense/qwen35", "oss.gguf"};
    (void)state;
    EXPECT_OK(peridot_make(in_folder("oss.gguf"), &(peridot_make_params){.shape = "tiny-gpt-oss", .type = "q8_0"}));
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        peridot_model *model;
        EXPECT_OK(peridot_model_open(&model, *paths[i] == '/' ? paths[i] : in_folder(paths[i]), NULL));
        for (uint32_t hot = 0; hot < 2; hot++) {
            struct ways w = {.n_draft = hot ? 3 : 31, .n_prompt = 20, .n_max = hot ? 40 : MOST,
                             .kv = i % 2 ? PERIDOT_KV_Q8_0 : PERIDOT_KV_F32,
                             .chain = {.temperature = hot ? 1 : 0, .top_k = 40, .seed = 9}};
            if (*paths[i] != '/') w.draft = model, w.ready = true;   /* it does not repeat itself */
            w = check(model, w, paths[i]);
            assert_true(w.stats.n_drafted > 0);
        }
        peridot_model_close(model);
    }
    assert_int_equal(remove(in_folder("oss.gguf")), 0);
}

/* Granite's hybrids, dense and with experts: by the model itself, by another, most of whose guesses are refused,
 * and by lookup. */
static void test_hybrids(void **state)
{
    (void)state;
    static const char *const shapes[] = {"tiny-granite4-h", "tiny-granite4-h-moe"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        peridot_model *both[2];
        for (uint32_t k = 0; k < 2; k++) {
            const char *file = in_folder(k ? "other-hybrid.gguf" : "hybrid.gguf");
            EXPECT_OK(peridot_make(file, &(peridot_make_params){.shape = shapes[i], .type = "q8_0", .seed = k}));
            EXPECT_OK(peridot_model_open(&both[k], file, NULL));
        }
        for (uint32_t k = 0; k < 3; k++) {
            struct ways w = {.n_draft = 3, .n_prompt = 70, .n_max = 60, .draft = k < 2 ? both[k] : NULL, .ready = true,
                             .chain = chains[k]};
            w = check(both[0], w, shapes[i]);
            assert_true(k == 2 || w.stats.n_drafted > 0);
            assert_true(k != 1 || w.stats.n_accepted < w.stats.n_drafted);
        }
        for (uint32_t k = 0; k < 2; k++) {
            peridot_model_close(both[k]);
            remove(in_folder(k ? "other-hybrid.gguf" : "hybrid.gguf"));
        }
    }
}

/* The text ends within a draft: after each number of tokens, and before a stop text. */
static void test_ends(void **state)
{
    (void)state;
    struct ways w = {.n_draft = 5, .n_prompt = 30, .n_max = 40, .chain = chains[0]};
    struct result all;
    make_text(&all, models[0], &w);
    for (uint32_t n = 1; n < 20; n += 3) {
        struct ways most = w, stopped = w;
        most.n_max = n;
        stopped.n_stop = n;
        check(models[0], most, "n_max");
        check(models[0], stopped, "callback");
    }
    assert_true(all.text.size > 20);
    char stop[8] = {0};
    memcpy(stop, all.text.bytes + all.text.size / 2, 3);
    const char *stops[] = {stop};
    w.chain.stop = stops;
    w.chain.n_stop = 1;
    check(models[0], w, "stop text");
}

/* A draft model that is the model itself draws the same tokens, at any temperature; one with other weights hardly
 * any. */
static void test_draft_model(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < N_CHAINS; i++) {
        struct ways w = {
            .n_draft = 4, .n_prompt = 20, .n_max = 50, .draft = models[0], .ready = true, .chain = chains[i]};
        w = check(models[0], w, "the model itself");
        assert_true(w.stats.n_drafted >= 36);
        assert_int_equal(w.stats.n_accepted, w.stats.n_drafted);
        w.draft = models[1];
        w = check(models[0], w, "another model");
        assert_true(w.stats.n_drafted > 100);
        assert_true(w.stats.n_accepted < w.stats.n_drafted / 4);
    }
    struct ways w = {.n_draft = 31, .n_prompt = 100, .n_max = MOST, .draft = models[0]};
    w = check(models[0], w, "to the end of the context");
    assert_int_equal(w.stats.n_accepted, w.stats.n_drafted);
}

/* With every chain, and to the end of the context. */
static void check_all(peridot_model *model, peridot_model *drafter, uint32_t n_least, const char *what)
{
    for (uint32_t k = 0; k < N_CHAINS; k++) {
        struct ways w = {.n_draft = k % 2 ? 7 : 2, .n_prompt = 20, .n_max = 60, .drafter = drafter,
                         .kv = k % 2 ? PERIDOT_KV_Q8_0 : PERIDOT_KV_F16, .chain = chains[k]};
        w = check(model, w, what);
        assert_true(w.stats.n_drafted > n_least);
    }
    struct ways w = {.n_draft = 31, .n_prompt = 100, .n_max = MOST, .drafter = drafter};
    check(model, w, what);
}

/* Layers that read the model's own cache, and under a grammar. */
static void test_drafter(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        peridot_model *model, *drafter;
        peridot_grammar *grammar;
        EXPECT_OK(peridot_model_open(&model, i ? PERIDOT_GOLDEN "/gemma4-small/model.gguf"
                                           : PERIDOT_GOLDEN "/gemma4/model.gguf", NULL));
        const peridot_model_params params = {.size = sizeof params, .target = model};
        EXPECT_OK(peridot_model_open(&drafter, i ? PERIDOT_GOLDEN "/gemma4-small-assistant"
                                                 : PERIDOT_GOLDEN "/gemma4-assistant/model.gguf", &params));
        check_all(model, drafter, 60, "a drafter");
        EXPECT_OK(peridot_grammar_json(&grammar, peridot_model_vocab(model)));
        struct ways w = {.n_draft = 3, .n_prompt = 20, .n_max = 40, .drafter = drafter, .draw_most_s = 1e9,
                         .chain = {.temperature = 1, .top_k = 40, .seed = 2, .grammar = grammar}};
        check(model, w, "a drafter, under a grammar");
        peridot_grammar_free(grammar);
        peridot_model_close(drafter);
        peridot_model_close(model);
    }
}

/* The block in a model's own file: at each position, after prompts in chunks and after steps, its guess is what torch
 * computes of the definition (tools/golden/dense.py). */
static void check_block(peridot_model *model, peridot_model *block, const char *golden)
{
    enum { N_IDS = 96, N_PROMPT = 21 };
    int32_t ids[N_IDS];
    size_t size, n_ids = read_golden_ids(ids, N_IDS, golden, "tokens.txt");
    uint32_t width = peridot_model_get_info(model)->vocab_size;
    float *want = read_golden(golden, "mtp.f32", &size);
    assert_int_equal(size, sizeof *want * n_ids * width);
    peridot_session *s = open_with(model, 2, 2, PERIDOT_KV_F32, block);
    peridot_sequence *q = add(s, NULL);
    struct pd_drafter *d = s->s->drafter;
    for (uint32_t n = 0, more = N_PROMPT; n + more < n_ids; more = 1) {
        EXPECT_OK(peridot_sequence_eval(q, ids + n, more, NULL));
        n += more;
        struct pd_draft_rows rows = {.sequence = q->q, .tokens = {ids[n]}, .n = 1};
        EXPECT_OK(pd_sequence_extend(q->q, n + 3));
        EXPECT_OK(pd_drafter_guess(&rows, d, 1));
        assert_int_equal(rows.n, 2);
        EXPECT_OK(pd_workspace_read_logits(&d->w, pd_step_row(&d->w, 0), 1));
        double error = relative_error(d->w.host_rows, want + (size_t)n * width, width);
        if (!(error < 1e-4)) fail_msg("guess after %u tokens: %g", n, error);
    }
    peridot_session_free(s);
    free(want);
}

/* Of a directory, and of the file that is made of it, which keeps the block. */
static void test_block(void **state)
{
    (void)state;
    peridot_model *model, *block, *none;
    static const char *const goldens[] = {"dense/qwen35-mtp", "dense/qwen3-next"};   /* the second's has experts */
    char file[sizeof *made], directory[sizeof *made];
    snprintf(file, sizeof file, "%s", in_folder("block.gguf"));
    const peridot_convert_params convert = {.type = "f32"};
    for (int i = 0; i < 4; i++) {
        const char *golden = goldens[i / 2], *path = i % 2 ? file : directory;
        snprintf(directory, sizeof directory, PERIDOT_GOLDEN "/%s", golden);
        if (i % 2) EXPECT_OK(peridot_convert(file, directory, &convert, NULL));
        EXPECT_OK(peridot_model_open(&model, path, NULL));
        assert_true(peridot_model_get_info(model)->has_block);
        const peridot_model_params params = {.size = sizeof params, .target = model, .block = true};
        EXPECT_FAILURE(peridot_model_open(&none, PERIDOT_GOLDEN "/dense/qwen35", &params), PERIDOT_ERROR_UNSUPPORTED,
                       "has no block that drafts");
        EXPECT_OK(peridot_model_open(&block, path, &params));
        assert_false(peridot_model_get_info(block)->has_block);
        check_block(model, block, golden);
        if (i == 0) check_all(model, block, 40, "a block");
        peridot_model_close(block);
        peridot_model_close(model);
    }
    remove(file);
}

/* A draft model that is slow at reading gets to the end of a text that grows. */
static void test_slow_draft(void **state)
{
    (void)state;
    peridot_session *s = open_session(models[0], 1, 3), *d = open_session(models[0], 1, 0);
    peridot_sequence *q = add(s, NULL), *drafts = add(d, NULL);
    struct pd_session *engine = d->s;
    double token = pd_token_flop(engine->model, 0, false);
    struct text text = {.q = q, .begun = 20};
    peridot_stats stats = {.size = sizeof stats};
    peridot_request *r;
    int32_t prompt[20];
    size_t n_running = 1;
    const peridot_request_params params = {.size = sizeof params, .prompt = prompt, .n_prompt = make_prompt(prompt, 20),
        .n_max = 50, .text = take, .user = &text, .n_draft = 3, .draft = drafts};
    EXPECT_OK(peridot_request_create(&r, q, &params));
    while (n_running) {
        engine->prefill.pace = (struct pd_pace){.at_once = 8, .last = {token, 1}, .other = {8 * token, 8}};
        EXPECT_OK(peridot_session_run(s, &n_running));
    }
    assert_true(peridot_request_done(r, NULL, &stats));
    assert_true(stats.n_drafted > 10);
    peridot_session_free(s);
    peridot_session_free(d);
}

/* Requests that come one by one, with drafts of either kind or without. */
static void test_side_by_side(void **state)
{
    (void)state;
    enum { N = 4 };
    struct result want[N];
    struct text texts[N];
    peridot_request *r[N];
    peridot_stats stats;
    size_t n_running = 1;
    int32_t prompt[CTX];
    peridot_session *s = open_session(models[0], N, 3), *d = open_session(models[1], 1, 0);
    peridot_sequence *drafts = add(d, &chains[0]);
    for (uint32_t i = 0; i < N; i++) {
        struct ways w = {.n_prompt = 20 + 9 * i, .n_max = 30 + 5 * i, .chain = chains[i]};
        make_text(&want[i], models[0], &w);
    }
    for (uint32_t round = 0; round < 4 * N || n_running; round++) {
        if (round % 4 == 0 && round / 4 < N) {
            uint32_t i = round / 4;
            texts[i] = (struct text){.q = add(s, &chains[i]), .begun = 20 + 9 * i};
            const peridot_request_params params = {.size = sizeof params, .prompt = prompt,
                .n_prompt = make_prompt(prompt, 20 + 9 * i), .n_max = 30 + 5 * i, .text = take, .user = &texts[i],
                .n_draft = i == 1 ? 0 : i == 2 ? PERIDOT_DRAFT_AUTO : 3, .draft = i == 3 ? drafts : NULL};
            EXPECT_OK(peridot_request_create(&r[i], texts[i].q, &params));
        }
        EXPECT_OK(peridot_session_run(s, &n_running));
        assert_true(round < 400);
    }
    for (uint32_t i = 0; i < N; i++) {
        peridot_status status;
        stats.size = sizeof stats;
        assert_true(peridot_request_done(r[i], &status, &stats));
        assert_int_equal(status, PERIDOT_OK);
        assert_int_equal(texts[i].n, want[i].text.n);
        assert_memory_equal(texts[i].tokens, want[i].text.tokens, texts[i].n * sizeof *texts[i].tokens);
        assert_true((stats.n_drafted > 0) == (i != 1) || i == 2);
    }
    peridot_session_free(s);
    peridot_session_free(d);
}

/* JSON by a grammar: what is allowed depends on the tokens before, those of the draft included. */
static void test_grammar(void **state)
{
    (void)state;
    peridot_grammar *grammar;
    EXPECT_OK(peridot_grammar_json(&grammar, peridot_model_vocab(models[0])));
    struct ways w = {.n_draft = 3, .n_prompt = 20, .n_max = 60, .draw_most_s = 1e9,
                     .chain = {.temperature = 1, .top_k = 40, .seed = 2, .grammar = grammar}};
    w = check(models[0], w, "grammar");
    w.draft = models[0];
    w = check(models[0], w, "grammar, draft model");
    assert_int_equal(w.stats.n_accepted, w.stats.n_drafted);
    assert_true(w.stats.n_drafted > 0);
    peridot_grammar_free(grammar);
}

/* Masks take several turns, at which drafts end, and draws have all the time, or none after the first. */
static void test_slow_masks(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        peridot_grammar *grammar;
        EXPECT_OK(peridot_grammar_json(&grammar, peridot_model_vocab(models[0])));   /* without kept masks */
        struct ways w = {.n_draft = 3, .n_prompt = 20, .n_max = 60, .draft = i % 2 ? models[0] : NULL,
                         .draw_most_s = i / 2 ? 1e-12 : 1e9, .draw_steps = 100,
                         .chain = {.temperature = 1, .seed = 2, .grammar = grammar}};
        struct result want, got;
        struct ways without = {.n_prompt = 20, .n_max = 60, .chain = w.chain};
        make_text(&got, models[0], &w);
        make_text(&want, models[0], &without);
        expect_same(&got, &want, "slow masks", i);
        if (i % 2 == 0) assert_true(w.stats.n_drafted > w.stats.n_accepted);
        peridot_grammar_free(grammar);
    }
}

/* A draft's sequence keeps nothing of a request: not its grammar, which may be gone, nor what it had after the text. */
static void test_again(void **state)
{
    (void)state;
    peridot_session *s = open_session(models[0], 1, 3), *d = open_session(models[0], 1, 0);
    peridot_sequence *q = add(s, NULL), *drafts = add(d, NULL);
    peridot_grammar *grammar;
    int32_t prompt[24];
    struct text text = {.q = q, .begun = 24};
    peridot_stats stats = {0};
    const peridot_request_params params = {.size = sizeof params, .prompt = prompt, .n_prompt = make_prompt(prompt, 24),
        .n_max = 30, .text = take, .user = &text, .n_draft = 3, .draft = drafts};
    EXPECT_OK(peridot_grammar_json(&grammar, peridot_model_vocab(models[0])));
    EXPECT_OK(peridot_set_sampling(q, &(peridot_sampling){.temperature = 1, .top_k = 40, .grammar = grammar}));
    EXPECT_OK(peridot_generate(q, &params, NULL));
    assert_null(drafts->q->sampler.p.grammar);
    EXPECT_OK(peridot_set_sampling(q, NULL));
    peridot_grammar_free(grammar);
    EXPECT_OK(peridot_sequence_truncate(q, 0, NULL));
    text = (struct text){.q = q, .begun = 24};
    EXPECT_OK(peridot_generate(q, &params, &stats));
    assert_int_equal(stats.n_accepted, stats.n_drafted);
    assert_true(stats.n_drafted >= 20);
    peridot_session_free(s);
    peridot_session_free(d);
}

/* ---- distribution ---- */

static void softmax(double *p, const float *logits, size_t n)
{
    double most = -INFINITY, sum = 0;
    for (size_t i = 0; i < n; i++) most = fmax(most, (double)logits[i]);
    for (size_t i = 0; i < n; i++) sum += p[i] = exp((double)logits[i] - most);
    for (size_t i = 0; i < n; i++) p[i] /= sum;
}

/* Pearson's statistic of counts of n tokens, those expected fewer than 5 times together; the bound is its mean and five
 * standard deviations. */
static void expect_distribution(const uint32_t *counts, const double *p, size_t n, const char *what)
{
    double total = 0, statistic = 0, rest = 0, rest_expected = 0;
    uint32_t n_bins = 0;
    for (size_t i = 0; i < n; i++) total += counts[i];
    for (size_t i = 0; i < n; i++) {
        double expected = total * p[i];
        if (expected < 5) {
            rest += counts[i];
            rest_expected += expected;
            continue;
        }
        statistic += (counts[i] - expected) * (counts[i] - expected) / expected;
        n_bins++;
    }
    if (rest_expected > 0) statistic += (rest - rest_expected) * (rest - rest_expected) / rest_expected;
    assert_true(n_bins > 3);
    if (statistic > n_bins + 5 * sqrt(2.0 * n_bins))
        fail_msg("%s: chi-squared %.1f of %u tokens, %.0f draws", what, statistic, n_bins, total);
}

/* A draft's rows are taken again and again with other seeds. Row 0 is always drawn; row 1 after those draws of row 0
 * that are the draft's token, and what it gives is distributed as after that token alone. */
static void test_distribution(void **state)
{
    enum { N_TRIALS = 20000 };
    static double p[2][1024];
    static uint32_t counts[2][1024];
    (void)state;
    int32_t prompt[24];
    uint32_t n_prompt = make_prompt(prompt, 24), likeliest = 0, kept;
    const float *logits;
    size_t n = peridot_model_get_info(models[0])->n_outputs;
    peridot_session *s = open_session(models[0], 2, 3);
    peridot_sequence *q = add(s, &chains[0]);
    EXPECT_OK(peridot_sequence_eval(q, prompt, n_prompt, NULL));
    EXPECT_OK(peridot_logits(&logits, q));
    softmax(p[0], logits, n);
    for (uint32_t i = 0; i < n; i++)
        if (p[0][i] > p[0][likeliest]) likeliest = i;
    int32_t drafted = (int32_t)likeliest;
    EXPECT_OK(peridot_sequence_eval(q, &drafted, 1, NULL));
    EXPECT_OK(peridot_logits(&logits, q));
    softmax(p[1], logits, n);
    EXPECT_OK(peridot_sequence_truncate(q, n_prompt - 1, NULL));
    struct pd_session *engine = s->s;
    struct pd_sequence *of = q->q;
    struct pd_draft_rows rows = {.sequence = of, .n = 3, .tokens = {prompt[n_prompt - 1], drafted, drafted}};
    EXPECT_OK(pd_sequence_extend(of, n_prompt + 2));
    EXPECT_OK(pd_decode_drafts(&engine->decoder, &rows, 1));
    for (uint32_t trial = 0; trial < N_TRIALS; trial++) {
        int32_t token;
        const peridot_sampling chain = {.temperature = 1, .top_k = PD_TOPK, .seed = 77 * trial};
        EXPECT_OK(peridot_set_sampling(q, &chain));
        EXPECT_OK(pd_draft_take(&token, &engine->decoder, &rows, 0));
        counts[0][token]++;
        if (token == drafted) {
            EXPECT_OK(pd_draft_take(&token, &engine->decoder, &rows, 1));
            counts[1][token]++;
        }
        EXPECT_OK(pd_sequence_truncate(of, n_prompt - 1, &kept));
    }
    expect_distribution(counts[0], p[0], n, "row 0");
    expect_distribution(counts[1], p[1], n, "row 1");
    peridot_session_free(s);
}

/* ---- drafts ---- */

static void test_lookup(void **state)
{
    static const struct {
        int32_t tokens[12];
        uint32_t n, n_found;
        int32_t found[4];
        uint32_t n_same;
    } cases[] = {
        {{1}, 1, 0, {0}, 1},
        {{1, 2, 3, 1}, 4, 0, {0}, 1},                                  /* one token is not enough */
        {{1, 2, 3, 4, 1, 2}, 6, 4, {3, 4, 1, 2}, 2},
        {{1, 2, 3, 1, 2, 4, 1, 2}, 8, 4, {4, 1, 2, 4}, 2},             /* the latest; and on into itself */
        {{9, 1, 2, 3, 8, 1, 2, 4, 9, 1, 2}, 11, 4, {3, 8, 1, 2}, 3},   /* but the longest first */
        {{5, 5, 5}, 3, 4, {5, 5, 5, 5}, 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t found[4] = {0};
        uint32_t n_same;
        struct pd_draft draft = {0};
        for (uint32_t n = 1; n < cases[i].n; n++) pd_draft_lookup(found, &n_same, 4, &draft.index, cases[i].tokens, n);
        assert_int_equal(pd_draft_lookup(found, &n_same, 4, &draft.index, cases[i].tokens, cases[i].n),
                         cases[i].n_found);
        assert_memory_equal(found, cases[i].found, cases[i].n_found * sizeof *found);
        assert_int_equal(n_same, cases[i].n_same);
        pd_draft_end(&draft);
    }
}

/* In a long text, and in a shorter one that comes after it. */
static void test_lookup_index(void **state)
{
    enum { N = 40000, AT = 12345 };
    int32_t *tokens = malloc(N * sizeof *tokens), found[4];
    struct pd_draft draft = {0};
    uint32_t n_same;
    (void)state;
    for (int32_t i = 0; i < N; i++) tokens[i] = i;
    memcpy(tokens + N - 5, tokens + AT, 5 * sizeof *tokens);
    assert_int_equal(pd_draft_lookup(found, &n_same, 4, &draft.index, tokens, N), 4);
    assert_true(n_same == 5 && found[0] == AT + 5 && found[3] == AT + 8);
    memcpy(tokens + 30, tokens + 10, 3 * sizeof *tokens);
    assert_int_equal(pd_draft_lookup(found, &n_same, 4, &draft.index, tokens, 33), 4);
    assert_true(n_same == 3 && found[0] == 13 && found[3] == 16);
    pd_draft_end(&draft);
    free(tokens);
}

/* A model that guesses right in `right` of the cases, on a device where a pass of r rows takes 1 + slope (r - 1), and a
 * guess `guess_s`. Plays `n` rounds of one request; gives tokens per second, which are 1 without drafts. */
struct play {
    struct pd_draft_times times;
    struct pd_draft draft;
    uint32_t state, n_drafted, n_rounds, longest;
};

static bool is_right(struct play *g, double right)
{
    g->state = g->state * 1664525 + 1013904223;
    return (g->state >> 8) / 16777216.0 < right;
}

static double play(struct play *g, double right, double slope, double guess_s, uint32_t n)
{
    struct pd_draft *one = &g->draft;
    double seconds = 0, tokens = 0;
    g->n_drafted = g->n_rounds = g->longest = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t d = one->pause ? 0 : one->n_most, k = 0;
        g->times.n_rounds++;
        pd_draft_share(&d, &one, 1, 16, &g->times);
        while (k < d && is_right(g, right)) k++;
        pd_draft_timed(&g->times, 1 + d, d, guess_s * d, 1 + slope * d);
        pd_draft_took(one, d, k);
        seconds += 1 + slope * d + guess_s * d;
        tokens += 1 + k;
        g->n_drafted += d;
        g->n_rounds += d > 0;
        g->longest = (uint32_t)pd_max(g->longest, d);
    }
    return tokens / seconds;
}

static struct play begin_play(uint32_t n_most, bool automatic)
{
    static struct pd_session other;   /* drafts are a model's */
    struct play g = {.draft = {.n_most = n_most, .automatic = automatic, .session = &other}, .state = 7};
    pd_draft_begin(&g.draft);
    return g;
}

/* The length of drafts is that of the most tokens per second: none where guesses are wrong or rows are dear. */
static void test_lengths(void **state)
{
    (void)state;
    struct play g = begin_play(15, true);
    assert_true(play(&g, 0, 0.3, 0.1, 1000) > 0.98);               /* what trying costs */
    assert_in_range(g.n_rounds, 3, 60);
    assert_true(play(&g, 1, 0.1, 0, 1000) > 5);                    /* and it tries again: 16 rows take 2.5 as long */
    assert_int_equal(g.longest, 15);
    g = begin_play(15, true);
    assert_true(play(&g, 0.7, 0.3, 0.1, 2000) > 1.15);             /* at best 1.7 tokens in 1.4, or 2.19 in 1.8: 1.22 */
    assert_in_range(g.n_drafted, g.n_rounds, 3 * g.n_rounds);
    g = begin_play(15, true);
    assert_true(play(&g, 0.9, 0.05, 0.02, 2000) > 3.7);            /* at best 6.5 tokens in 1.63: 4 */
    assert_in_range(g.n_drafted, 5 * g.n_rounds, 14 * g.n_rounds);
    g = begin_play(15, true);
    assert_true(play(&g, 0.9, 1, 0, 2000) > 0.97);                 /* a row costs a step: nothing can be won */
    g = begin_play(3, false);
    play(&g, 0, 1, 1, 50);
    assert_int_equal(g.n_drafted, 150);                            /* as was asked */
}

/* A first step that took long makes drafts look good that are not, until a step is timed again. */
static void test_remeasures(void **state)
{
    (void)state;
    struct play g = begin_play(3, true);
    g.times.n_rounds = 1;
    pd_draft_timed(&g.times, 1, 0, 0, 10);
    play(&g, 0.5, 1, 0, 400);
    assert_in_range(g.n_rounds, 16, 100);
}

/* Rows go to the sequence whose guesses are right more often. */
static void test_rows_of_several(void **state)
{
    (void)state;
    struct play a = begin_play(15, true), b = begin_play(15, true), c = begin_play(2, false);
    struct pd_draft *all[] = {&a.draft, &b.draft, &c.draft};
    uint32_t most[] = {15, 15, 2};
    a.draft.right[0] = 0.9;
    b.draft.right[0] = 0.5;
    a.times.n_rounds = 1;
    for (uint32_t r = 3; r <= 16; r++) pd_draft_timed(&a.times, r, 0, 0, 1 + 0.1 * r);
    uint32_t n = pd_draft_share(most, all, 3, 16, &a.times);
    assert_int_equal(n, most[0] + most[1] + 2);
    assert_int_equal(most[2], 2);
    assert_in_range(most[0], 4, 10);
    assert_in_range(most[1], 1, 2);
    uint32_t few[] = {15, 15, 2};
    assert_int_equal(pd_draft_share(few, all, 3, 8, &a.times), 5);   /* of the rows that there are */
    assert_int_equal(few[0], 3);
}

/* What is looked up is known without evaluating it: a pause ends when guesses would have been right. */
static void test_watches(void **state)
{
    int32_t tokens[64];
    struct pd_sequence q = {.tokens = tokens};
    struct pd_draft draft = {.n_most = 3, .automatic = true, .pause = 50, .next_pause = 100};
    (void)state;
    pd_draft_begin(&draft);
    for (uint32_t i = 0; i < 64; i++) tokens[i] = (int32_t)(i % 20);
    for (q.pos = 21; q.pos < 24; q.pos++) pd_draft_watch(&draft, &q, 1);
    assert_int_equal(draft.pause, 50);   /* two or three tokens agree, and 1 was not what came */
    assert_true(draft.right[0] < 0.3);
    q.pos = 30;
    pd_draft_watch(&draft, &q, 10);
    assert_int_equal(draft.pause, 0);
    assert_true(draft.right[2] > 0.8);
    pd_draft_end(&draft);
}

static void test_refusals(void **state)
{
    (void)state;
    peridot_session *plain = open_session(models[0], 2, 0), *s = open_session(models[0], 2, 2), *none;
    peridot_sequence *q = add(s, &chains[0]), *p = add(plain, &chains[0]), *same = add(s, &chains[0]);
    const int32_t prompt[] = {2, 5};
    peridot_model *other;
    peridot_request_params params = {
        .size = sizeof params, .prompt = prompt, .n_prompt = 2, .n_max = 1, .n_draft = PERIDOT_DRAFT_AUTO};
    EXPECT_FAILURE(peridot_generate(p, &params, NULL), PERIDOT_ERROR_ARGUMENT, "without room for drafts");
    params.draft = same;
    EXPECT_FAILURE(peridot_generate(q, &params, NULL), PERIDOT_ERROR_ARGUMENT, "own session");
    EXPECT_FAILURE(
        peridot_session_create(&none, models[0], &(peridot_session_params){.size = sizeof(peridot_session_params),
                                                                           .n_draft = 32}),
        PERIDOT_ERROR_ARGUMENT, "the limit of 31");
    EXPECT_OK(peridot_model_open(&other, PERIDOT_GOLDEN "/gemma2-sequence", NULL));
    EXPECT_FAILURE(peridot_draft_check(other, models[0]), PERIDOT_ERROR_ARGUMENT, "is not a language model");
    EXPECT_FAILURE(
        peridot_session_create(&none, other, &(peridot_session_params){.size = sizeof(peridot_session_params),
                                                                       .n_draft = 2}),
        PERIDOT_ERROR_UNSUPPORTED, "only for language models");
    EXPECT_FAILURE(peridot_draft_check(models[0], other), PERIDOT_ERROR_ARGUMENT, "their vocabularies differ");
    peridot_model_close(other);
    peridot_session_free(plain);
    peridot_session_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lookup), cmocka_unit_test(test_lookup_index), cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_remeasures),
        cmocka_unit_test(test_rows_of_several), cmocka_unit_test(test_watches), cmocka_unit_test(test_chains),
        cmocka_unit_test(test_families), cmocka_unit_test(test_hybrids), cmocka_unit_test(test_ends),
        cmocka_unit_test(test_draft_model),
        cmocka_unit_test(test_drafter), cmocka_unit_test(test_block),
        cmocka_unit_test(test_slow_draft), cmocka_unit_test(test_side_by_side), cmocka_unit_test(test_grammar),
        cmocka_unit_test(test_slow_masks),
        cmocka_unit_test(test_again), cmocka_unit_test(test_distribution), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests_name("draft", tests, open_shared, close_shared);
}

/* Texts that models of random weights write under the schemas of golden/schemas.json: each that ends by a stop token
 * parses and validates, at any temperature. Draws beside those from a whole row of logits that is masked token by
 * token. Sequences that go back, fork and go on. PERIDOT_TEST_MANY=1: many more texts. PERIDOT_TEST_ANSWERS=FILE: what
 * they say as lines of JSON, for other validators. */
#include "format_fixture.h"

#include "api/api.h"
#include "engine/pass/pass.h"
#include "schema_validator.h"
#include "text/text_.h"

enum { CTX = 512, N_BATCH = 8, N_MAX = 160 };

static yyjson_doc *schemas;
static FILE *answers;
static bool many;

static int open_shared(void **state)
{
    (void)state;
    const char *path = getenv("PERIDOT_TEST_ANSWERS");
    schemas = yyjson_read_file(PERIDOT_GOLDEN "/schemas.json", 0, NULL, NULL);
    many = getenv("PERIDOT_TEST_MANY") != NULL;
    if (path) answers = fopen(path, "a");
    return schemas && (!path || answers) ? make_folder(state) : -1;
}

static int close_shared(void **state)
{
    (void)state;
    yyjson_doc_free(schemas);
    if (answers) fclose(answers);
    remove(in_folder("config.json"));
    remove(in_folder("model.safetensors"));
    remove(in_folder("tokenizer.json"));
    remove(in_folder("tokenizer_config.json"));
    remove(in_folder(""));
    return 0;
}

static peridot_model *open_model(const char *path)
{
    peridot_model *model;
    EXPECT_OK(peridot_model_open(&model, path, NULL));
    return model;
}

static peridot_grammar *make_grammar(const peridot_model *model, yyjson_val *schema)
{
    peridot_grammar *g;
    size_t size;
    char *text = yyjson_val_write(schema, 0, &size);
    EXPECT_OK(peridot_grammar_json_schema(&g, peridot_model_vocab(model), text, size));
    free(text);
    return g;
}

/* ---- texts ---- */

struct text {
    char data[1 << 14];
    size_t size;
};

static bool take(void *user, int32_t token, const char *piece, size_t size)
{
    struct text *t = user;
    (void)token;
    assert_true(t->size + size < sizeof t->data);
    memcpy(t->data + t->size, piece, size);
    t->data[t->size += size] = 0;
    return true;
}

static void check_text(yyjson_val *schema, const struct text *t)
{
    struct validator v = {.root = schema};
    yyjson_doc *doc = yyjson_read(t->data, t->size, 0);
    if (!doc) fail_msg("not JSON: %s", t->data);
    char *text = yyjson_val_write(schema, 0, NULL);
    if (!is_valid(&v, schema, yyjson_doc_get_root(doc))) fail_msg("%s\nis not valid (%s):\n%s", t->data, v.why, text);
    char *value = yyjson_write(doc, 0, NULL);
    if (answers) fprintf(answers, "{\"schema\": %s, \"value\": %s}\n", text, value);
    free(value);
    free(text);
    yyjson_doc_free(doc);
}

static const char ends[] = {'"', ']', '}', '0', 'x', 'y'};
enum { MAX_BIAS = 2 * sizeof ends + 1 };   /* a piece and a byte of each, and the stop token */

/* Ids of the stop token and of what ends things, which random models hardly want. */
static size_t make_bias(peridot_bias bias[MAX_BIAS], const peridot_model *model, float value)
{
    const struct pd_spellings *s = atomic_load(&model->vocab->spellings);
    size_t n = 0;
    for (size_t i = 0; i < s->n && n < MAX_BIAS - 1; i++)
        if (s->sorted[i].size == 1 && memchr(ends, s->bytes[s->sorted[i].offset], sizeof ends))
            bias[n++] = (peridot_bias){(int32_t)s->sorted[i].id, value};
    bias[n++] = (peridot_bias){(int32_t)s->stops[0], value};
    return n;
}

/* Texts of one schema at one temperature, side by side: how many ended. */
static uint32_t write_texts(peridot_session *s, const peridot_grammar *g, yyjson_val *schema, float temperature,
                            uint32_t batch)
{
    static struct text texts[N_BATCH];
    peridot_sequence *q[N_BATCH];
    peridot_request *r[N_BATCH];
    peridot_bias bias[MAX_BIAS];
    size_t n_bias = make_bias(bias, s->model, 6 + temperature), n_running;
    uint32_t n_ended = 0;
    for (uint32_t i = 0; i < N_BATCH; i++) {
        uint32_t seed = batch * N_BATCH + i;
        const int32_t prompt[] = {2, 10 + (int32_t)(seed * 37 % 200), 20 + (int32_t)(seed % 150)};
        texts[i].size = 0;
        EXPECT_OK(peridot_sequence_create(&q[i], s));
        EXPECT_OK(peridot_set_sampling(q[i], &(peridot_sampling){.temperature = temperature, .seed = seed,
            .top_k = seed % 3 == 0 ? 40 : seed % 3 == 1 ? 3 : 0, .repeat_penalty = seed % 5 == 0 ? 1.1f : 0,
            .bias = bias, .n_bias = seed % 4 ? n_bias : 0, .grammar = g}));
        EXPECT_OK(peridot_request_create(&r[i], q[i], &(peridot_request_params){.prompt = prompt, .n_prompt = 3,
            .n_max = N_MAX, .text = take, .user = &texts[i]}));
    }
    do EXPECT_OK(peridot_session_run(s, &n_running));
    while (n_running);
    for (uint32_t i = 0; i < N_BATCH; i++) {
        peridot_stats stats = {.size = sizeof stats};
        peridot_status status;
        assert_true(peridot_request_done(r[i], &status, &stats));
        assert_int_equal(status, PERIDOT_OK);
        if (stats.n_generated < N_MAX) check_text(schema, &texts[i]);
        n_ended += stats.n_generated < N_MAX;
        peridot_request_free(r[i]);
        peridot_sequence_free(q[i]);
    }
    return n_ended;
}

static void write_under_all(const char *path, uint32_t every, uint32_t n_batches)
{
    static const float temperatures[] = {0, 1, 5};
    peridot_model *model = open_model(path);
    peridot_session *s;
    uint32_t n_ended = 0, n_texts = 0;
    size_t i, n;
    yyjson_val *schema;
    EXPECT_OK(peridot_session_create(&s, model, &(peridot_session_params){.ctx = CTX, .n_sequences = N_BATCH}));
    yyjson_arr_foreach(yyjson_doc_get_root(schemas), i, n, schema) {
        if (i % every && !many) continue;
        peridot_grammar *g = make_grammar(model, schema);
        uint32_t ended = 0;
        for (uint32_t k = 0; k < n_batches * PD_COUNT(temperatures); k++, n_texts += N_BATCH)
            ended += write_texts(s, g, schema, temperatures[k % PD_COUNT(temperatures)], k);
        if (ended == 0) fail_msg("no text ended under schema %zu", i);
        n_ended += ended;
        peridot_grammar_free(g);
    }
    print_message("%s: %u of %u texts ended, and are valid\n", strrchr(path, '/') + 1, n_ended, n_texts);
    assert_true(n_ended > n_texts / 2);
    peridot_session_free(s);
    peridot_model_close(model);
}

static void test_sentencepiece(void **state)
{
    (void)state;
    write_under_all(PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf", 5, many ? 4 : 1);
}

static void test_llama(void **state)
{
    (void)state;
    write_under_all(PERIDOT_GOLDEN "/llama-quants/model.gguf", 11, many ? 4 : 1);
}

static void test_demo_model(void **state)
{
    (void)state;
    write_under_all(PERIDOT_MODELS "/stories.gguf", 15, many ? 4 : 1);
}

/* ---- a byte-level vocabulary, given to a model that has another ---- */

static void copy_file(const char *from, const char *name)
{
    struct pd_map map;
    EXPECT_OK(pd_map_open(&map, from));
    FILE *f = fopen(in_folder(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(map.data, 1, map.size, f), map.size);
    assert_int_equal(fclose(f), 0);
    pd_map_close(&map);
}

static void print_json_string(FILE *f, const char *text, size_t size)
{
    fputc('"', f);
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '"' || text[i] == '\\') fputc('\\', f);
        fputc(text[i], f);
    }
    fputc('"', f);
}

/* 256 bytes, and pieces that end and begin things, end in the middle of a character, or of an escape. */
static void write_byte_level(void)
{
    static const char *const pairs[][2] = {{"{", "\""}, {"\"", ":"}, {"\"", ","}, {"\"", "}"}, {"\\", "u"}, {"d", "8"},
                                           {"\xc3", "\xa9"}, {"\xe4", "\xb8"}, {"\xf0", "\x9f"}, {"]", "}"},
                                           {" ", "\""},
                                           {"a", "\""}, {"1", ","}};
    FILE *f = fopen(in_folder("tokenizer.json"), "w");
    assert_non_null(f);
    fputs("{\"version\": \"1.0\", \"added_tokens\": [{\"id\": 0, \"content\": \"<|end_of_text|>\", "
          "\"single_word\": false, "
          "\"lstrip\": false, \"rstrip\": false, \"normalized\": false, \"special\": true}], \"normalizer\": null, "
          "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, "
          "\"use_regex\": "
          "true}, \"post_processor\": null, \"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true, "
          "\"trim_offsets\": true, \"use_regex\": true}, \"model\": {\"type\": \"BPE\", \"dropout\": null, "
          "\"unk_token\": null, "
          "\"byte_fallback\": false, \"ignore_merges\": false, \"vocab\": {\"<|end_of_text|>\": 0", f);
    for (unsigned i = 0; i < 256 + PD_COUNT(pairs); i++) {
        struct pd_buffer b = {0};
        EXPECT_OK(pd_byte_level_write(&b, i < 256 ? &(char){(char)i} : pairs[i - 256][0], 1));
        if (i >= 256) EXPECT_OK(pd_byte_level_write(&b, pairs[i - 256][1], 1));
        fputs(", ", f);
        print_json_string(f, b.data, b.size);
        fprintf(f, ": %u", i + 1);
        free(b.data);
    }
    fputs("}, \"merges\": [", f);
    for (size_t i = 0; i < PD_COUNT(pairs); i++) {
        struct pd_buffer b = {0};
        EXPECT_OK(pd_byte_level_write(&b, pairs[i][0], 1));
        EXPECT_OK(pd_buffer_add(&b, " ", 1));
        EXPECT_OK(pd_byte_level_write(&b, pairs[i][1], 1));
        fputs(i ? ", " : "", f);
        print_json_string(f, b.data, b.size);
        free(b.data);
    }
    fputs("]}}", f);
    assert_int_equal(fclose(f), 0);
}

static void test_byte_level(void **state)
{
    (void)state;
    copy_file(PERIDOT_GOLDEN "/llama/config.json", "config.json");
    copy_file(PERIDOT_GOLDEN "/llama/model.safetensors", "model.safetensors");
    write_byte_level();
    write_under_all(in_folder(""), 7, many ? 4 : 1);
}

/* ---- draws ---- */

/* What masking the whole row gives, each token followed by itself from the beginning of the text. */
static int32_t draw_masked(peridot_sequence *q, const peridot_grammar *g, const int32_t *written, size_t n)
{
    const struct pd_spellings *s = g->spellings;
    struct pd_sampler sampler = q->q->sampler;
    struct pd_candidate candidates[512];
    struct pd_walk w, next;
    const float *logits;
    size_t n_allowed = 0;
    EXPECT_OK(peridot_logits(&logits, q));
    pd_walk_begin(&w, &g->rules);
    for (size_t i = 0; i < n; i++) assert_true(pd_grammar_take(&w, g, written[i]));
    for (uint32_t id = 0; id < q->session->model->m.n_pieces; id++) {
        next = w;
        bool allowed = pd_grammar_take(&next, g, (int32_t)id);
        for (size_t i = 0; i < s->n_stops; i++)
            allowed = allowed || (s->stops[i] == id && pd_walk_is_complete(&w, &g->rules));
        if (allowed) candidates[n_allowed++] = (struct pd_candidate){logits[id], id};
    }
    pd_candidates_sort(candidates, n_allowed);
    struct pd_dry dry = {0};
    if (pd_sampler_has_dry(&sampler)) {
        EXPECT_OK(pd_dry_find(&dry, &sampler.p, s, q->q->tokens, q->q->pos));
        sampler.dry = &dry;
    }
    sampler.deviation = pd_sampler_deviation(logits, q->session->model->m.n_pieces);
    int32_t token = pd_sampler_draw(&sampler, candidates, n_allowed);
    free(dry.at);
    return token;
}

static void test_draws(void **state)
{
    (void)state;
    static const peridot_bias up[] = {{40, 3}, {80, 2}}, down[] = {{40, -3}, {200, -INFINITY}};
    static const char *const no_breakers[] = {NULL};
    static const peridot_sampling chains[] = {{0}, {.repeat_penalty = 1.3f}, {.temperature = 2, .top_k = 5},
        {.temperature = 3, .top_k = 40, .top_p = 0.9f, .min_p = 0.01f}, {.temperature = 4},
        {.temperature = 2, .top_p = 0.5f},
        {.temperature = 5, .top_k = 100, .presence_penalty = 0.5f},
        {.temperature = 3, .top_k = 20, .bias = up, .n_bias = 2},
        {.temperature = 3, .top_k = 20, .bias = down, .n_bias = 2}, {.temperature = 100, .top_k = 128},
        {.temperature = 2, .top_k = 20, .dry_multiplier = 1, .dry_allowed_length = 1, .dry_breakers = no_breakers},
        {.temperature = 4, .top_n_sigma = 0.5f, .xtc_probability = 0.5f, .xtc_threshold = 0.05f}};
    static const size_t of[] = {0, 7, 9, 22, 34, 37};
    peridot_model *model = open_model(PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf");
    peridot_session *s;
    uint32_t n_drawn[2] = {0};
    EXPECT_OK(peridot_session_create(&s, model, &(peridot_session_params){.ctx = CTX, .n_sequences = 2}));
    for (size_t i = 0; i < PD_COUNT(of) * PD_COUNT(chains); i += many ? 1 : 2) {
        peridot_grammar *g = make_grammar(model, yyjson_arr_get(yyjson_doc_get_root(schemas), of[i % PD_COUNT(of)]));
        peridot_sampling chain = chains[i / PD_COUNT(of)];
        peridot_sequence *q;
        int32_t tokens[40] = {2, 50, 61, 7 + (int32_t)i};
        chain.grammar = g;
        chain.seed = i;
        EXPECT_OK(peridot_sequence_create(&q, s));
        EXPECT_OK(peridot_set_sampling(q, &chain));
        EXPECT_OK(peridot_sequence_eval(q, tokens, 4, NULL));
        for (size_t n = 0; n < 40; n++) {
            int32_t want = draw_masked(q, g, tokens, n);
            n_drawn[pd_draw_needs_logits(&model->m, q->q)]++;
            EXPECT_OK(peridot_sample(&tokens[n], q));
            if (tokens[n] != want) fail_msg("chain %zu: drew %d, not %d", i / PD_COUNT(of), tokens[n], want);
            if (peridot_is_stop(model, tokens[n])) break;
            EXPECT_OK(peridot_sequence_eval(q, &tokens[n], 1, NULL));
        }
        peridot_sequence_free(q);
        peridot_grammar_free(g);
    }
    print_message("%u draws from the best, %u from whole rows\n", n_drawn[0], n_drawn[1]);
    assert_true(n_drawn[0] > 50 && n_drawn[1] > 50);
    peridot_session_free(s);
    peridot_model_close(model);
}

/* ---- sequences ---- */

/* Draws and appends up to n tokens; true: a stop token came. */
static bool go_on(peridot_sequence *q, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        int32_t token;
        EXPECT_OK(peridot_sample(&token, q));
        if (peridot_is_stop(q->session->model, token)) return true;
        EXPECT_OK(peridot_sequence_eval(q, &token, 1, NULL));
    }
    return false;
}

static void check_reply(peridot_sequence *q, uint32_t from, yyjson_val *schema)
{
    struct text t = {.size = 0};
    char *text;
    EXPECT_OK(peridot_decode(&text, &t.size, peridot_model_vocab(q->session->model), q->q->tokens + from,
                             q->q->pos - from));
    memcpy(t.data, text, t.size + 1);
    check_text(schema, &t);
    peridot_free(text);
}

static void test_sequences(void **state)
{
    (void)state;
    peridot_model *model = open_model(PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf"),
        *other = open_model(PERIDOT_GOLDEN "/gemma3/model.gguf");
    yyjson_val *schema = yyjson_arr_get(yyjson_doc_get_root(schemas), 44);
    peridot_grammar *g = make_grammar(model, schema), *foreign = make_grammar(other, schema);
    peridot_session *s;
    peridot_sequence *q, *fork;
    static const int32_t prompt[] = {2, 11, 12, 13, 14, 15, 16, 17};
    EXPECT_OK(peridot_session_create(&s, model, &(peridot_session_params){.ctx = CTX, .n_sequences = 2}));
    EXPECT_OK(peridot_sequence_create(&q, s));
    EXPECT_FAILURE(peridot_set_sampling(q, &(peridot_sampling){.grammar = foreign}), PERIDOT_ERROR_ARGUMENT,
                   "272 pieces, and the model has 288");
    EXPECT_OK(peridot_set_sampling(q, &(peridot_sampling){.temperature = 2, .seed = 1, .grammar = g}));
    EXPECT_OK(peridot_sequence_eval(q, prompt, 8, NULL));
    assert_false(go_on(q, 30));
    EXPECT_OK(peridot_sequence_fork(&fork, q, 20));
    EXPECT_OK(peridot_sequence_eval(fork, &q->q->tokens[20], 1, NULL));   /* as there are no logits after a fork */
    EXPECT_OK(peridot_sequence_truncate(q, 25, NULL));
    EXPECT_OK(peridot_sequence_eval(q, &(int32_t){q->q->tokens[25]}, 1, NULL));
    assert_true(go_on(q, 400));
    check_reply(q, 8, schema);
    assert_true(go_on(fork, 400));
    check_reply(fork, 8, schema);
    peridot_sequence_free(fork);
    /* A value after a value, and another after going back to before it. */
    uint32_t from = q->q->pos + 2;
    EXPECT_OK(peridot_sequence_eval(q, (int32_t[]){1, 20}, 2, NULL));
    assert_true(go_on(q, 400));
    check_reply(q, from, schema);
    EXPECT_OK(peridot_sequence_truncate(q, 6, NULL));
    EXPECT_OK(peridot_sequence_eval(q, prompt, 8, NULL));
    assert_true(go_on(q, 400));
    check_reply(q, 14, schema);
    peridot_session_free(s);
    peridot_grammar_free(g);
    peridot_grammar_free(foreign);
    peridot_model_close(model);
    peridot_model_close(other);
}

/* The same text alone and beside others, of which one has no grammar, and only one of the rest draws in a round. */
static void test_side_by_side(void **state)
{
    (void)state;
    peridot_model *model = open_model(PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf");
    peridot_grammar *g = make_grammar(model, yyjson_arr_get(yyjson_doc_get_root(schemas), 43));
    uint32_t n_rounds = 0;
    static struct text alone[4], beside[4];
    static const int32_t prompt[] = {2, 30, 31};
    peridot_session *s;
    peridot_request *r[4];
    size_t n_running;
    EXPECT_OK(peridot_session_create(&s, model, &(peridot_session_params){.ctx = CTX, .n_sequences = 4}));
    s->s->draw_most_s = 0;
    for (int round = 0; round < 2; round++)
        for (uint32_t i = 0; i < 4; i++) {
            const peridot_request_params params = {.prompt = prompt, .n_prompt = 3, .n_max = 60, .text = take,
                .user = round ? &beside[i] : &alone[i]};
            peridot_sequence *q;
            EXPECT_OK(peridot_sequence_create(&q, s));
            EXPECT_OK(peridot_set_sampling(q,
                &(peridot_sampling){.temperature = 3, .top_k = 40, .seed = i, .grammar = i ? g : NULL}));
            if (round) EXPECT_OK(peridot_request_create(&r[i], q, &params));
            if (round) EXPECT_OK(peridot_session_run(s, &n_running));
            else EXPECT_OK(peridot_generate(q, &params, NULL));
            if (!round) peridot_sequence_free(q);
        }
    for (n_running = 1; n_running; n_rounds++) EXPECT_OK(peridot_session_run(s, &n_running));
    assert_true(n_rounds > 90);   /* of 60 tokens each: they sat out */
    for (int i = 0; i < 4; i++) assert_string_equal(alone[i].data, beside[i].data);
    peridot_session_free(s);
    peridot_grammar_free(g);
    peridot_model_close(model);
}

/* ---- masks in pieces ---- */

enum { N_SIDE = 5, N_SIDE_MAX = 30 };

/* Requests with texts of their own; all but the first have the grammar, and draw from all that it allows. */
static void create_requests(peridot_request *r[N_SIDE], peridot_sequence *q[N_SIDE], struct text texts[N_SIDE],
                            peridot_session *s, peridot_grammar *g)
{
    static const int32_t prompt[] = {2, 30, 31};
    for (uint32_t i = 0; i < N_SIDE; i++) {
        const peridot_request_params params = {.prompt = prompt, .n_prompt = 3, .n_max = N_SIDE_MAX, .text = take,
                                               .user = &texts[i]};
        const peridot_sampling chain = {.temperature = 3, .seed = i, .grammar = i ? g : NULL};
        texts[i].size = 0;
        EXPECT_OK(peridot_sequence_create(&q[i], s));
        EXPECT_OK(peridot_set_sampling(q[i], &chain));
        EXPECT_OK(peridot_request_create(&r[i], q[i], &params));
    }
}

static void free_requests(peridot_request *r[N_SIDE], peridot_sequence *q[N_SIDE])
{
    for (uint32_t i = 0; i < N_SIDE; i++) {
        peridot_request_free(r[i]);
        assert_true(!q[i]->q->next_mask.job && !q[i]->q->next_mask.made);
        peridot_sequence_free(q[i]);
    }
}

/* A mask that is made in many rounds gives the same text. Each round brings a request without a grammar a token, and
 * one of the others nearer to its own, all of them in turn. */
static void test_pieces(void **state)
{
    (void)state;
    peridot_model *model = open_model(PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf");
    yyjson_val *schema = yyjson_arr_get(yyjson_doc_get_root(schemas), 43);
    static struct text whole[N_SIDE], pieces[N_SIDE];
    peridot_grammar *g[2] = {make_grammar(model, schema), make_grammar(model, schema)};   /* without kept masks */
    peridot_request *r[N_SIDE];
    peridot_sequence *q[N_SIDE];
    peridot_session *s;
    size_t n_running;
    uint32_t n_rounds = 0, n_first = 0, n_waited[N_SIDE] = {0}, n_at[N_SIDE] = {0}, n_most = 0;
    EXPECT_OK(peridot_session_create(&s, model, &(peridot_session_params){.ctx = CTX, .n_sequences = N_SIDE}));
    create_requests(r, q, whole, s, g[0]);
    for (n_running = 1; n_running;) EXPECT_OK(peridot_session_run(s, &n_running));
    free_requests(r, q);
    create_requests(r, q, pieces, s, g[1]);
    s->s->draw_most_s = 0;   /* one turn in a round */
    s->s->draw_steps = 100;
    uint64_t n_passes = s->s->workspace.n_passes;
    for (n_running = 1; n_running; n_rounds++) {
        EXPECT_OK(peridot_session_run(s, &n_running));
        n_first += !peridot_request_done(r[0], NULL, NULL);
        for (uint32_t i = 1; i < N_SIDE; i++) {
            bool stood = n_at[i] == q[i]->q->pos && !peridot_request_done(r[i], NULL, NULL);
            n_waited[i] = stood ? n_waited[i] + 1 : 0;
            n_at[i] = q[i]->q->pos;
            n_most = (uint32_t)pd_max(n_most, n_waited[i]);
        }
    }
    print_message("%u rounds, %u of the first request, at most %u without a token\n", n_rounds, n_first, n_most);
    /* Each evaluates a prompt or a token for the first time, none the last one of a text that sat out again. */
    assert_in_range(s->s->workspace.n_passes - n_passes, N_SIDE_MAX, N_SIDE * (N_SIDE_MAX + 1));
    assert_true(n_first <= N_SIDE_MAX + 2);
    assert_true(n_rounds > 5 * N_SIDE_MAX && n_most < n_rounds / 4);
    for (int i = 0; i < N_SIDE; i++) assert_string_equal(whole[i].data, pieces[i].data);
    free_requests(r, q);
    peridot_session_free(s);
    for (int i = 0; i < 2; i++) peridot_grammar_free(g[i]);
    peridot_model_close(model);
}

/* Requests that are freed, and a session, while masks are being made. */
static void test_pieces_freed(void **state)
{
    (void)state;
    peridot_model *model = open_model(PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf");
    static struct text texts[N_SIDE];
    peridot_grammar *g = make_grammar(model, yyjson_arr_get(yyjson_doc_get_root(schemas), 43));
    peridot_request *r[N_SIDE];
    peridot_sequence *q[N_SIDE];
    peridot_session *s;
    size_t n_running, n_jobs = 0;
    EXPECT_OK(peridot_session_create(&s, model, &(peridot_session_params){.ctx = CTX, .n_sequences = N_SIDE}));
    s->s->draw_steps = 100;
    s->s->draw_most_s = 0;
    for (int time = 0; time < 2; time++) {
        create_requests(r, q, texts, s, g);
        peridot_grammar_free(g);
        g = make_grammar(model, yyjson_arr_get(yyjson_doc_get_root(schemas), 43));
        for (int i = 0; i < 6; i++) EXPECT_OK(peridot_session_run(s, &n_running));
        for (uint32_t i = 0; i < N_SIDE; i++) n_jobs += q[i]->q->next_mask.job != NULL;
        if (time == 0) free_requests(r, q);
    }
    assert_true(n_jobs >= 4);
    peridot_session_free(s);
    peridot_grammar_free(g);
    peridot_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_draws), cmocka_unit_test(test_sequences), cmocka_unit_test(test_side_by_side),
        cmocka_unit_test(test_pieces), cmocka_unit_test(test_pieces_freed),
        cmocka_unit_test(test_sentencepiece), cmocka_unit_test(test_llama), cmocka_unit_test(test_byte_level),
        cmocka_unit_test(test_demo_model),
    };
    return cmocka_run_group_tests_name("grammar_text", tests, open_shared, close_shared);
}

/* Replies with thoughts: what is the thought's and what the answer's, budgets, grammars that wait for the answer, the
 * same text on a sequence and submitted, and tokens that are never drawn. */
#include "script_model.h"

#include "api/api.h"

#include <math.h>

enum { MOST = 160, MOST_LOGITS = 512 };

static peridot_model *thinker, *ponderer;   /* one ends its thought, the other never does */

static int open_models(void **state)
{
    if (make_folder(state)) return -1;
    script_write_thinker(in_folder("tiny.gguf"), true);
    if (peridot_model_open(&thinker, in_folder("tiny.gguf"), NULL) != PERIDOT_OK) return -1;
    script_write_thinker(in_folder("tiny.gguf"), false);
    return peridot_model_open(&ponderer, in_folder("tiny.gguf"), NULL) == PERIDOT_OK ? 0 : -1;
}

static int close_models(void **state)
{
    peridot_model_close(thinker);
    peridot_model_close(ponderer);
    return remove_folder(state);
}

/* ---- replies ---- */

struct part {
    char text[1024];
    size_t size;
};

struct reply {
    int32_t tokens[MOST];
    uint32_t n;
    struct part answer, thought;
    struct part call;              /* name and arguments */
    bool flushed;
    peridot_stats stats;
    float logits[MOST_LOGITS];     /* of the last draw, */
    uint32_t pos, n_draws, n_again;    /* after this token; draws in all, and those from the same logits again */
};

static bool take(struct reply *r, struct part *p, int32_t token, const char *text, size_t size)
{
    assert_false(r->flushed);
    assert_true(p->size + size < sizeof p->text && r->n < MOST);
    if (size) memcpy(p->text + p->size, text, size);
    p->text[p->size += size] = 0;
    if (token < 0) r->flushed = true;
    else r->tokens[r->n++] = token;
    return true;
}

static bool take_text(void *user, int32_t token, const char *text, size_t size)
{
    struct reply *r = user;
    return take(r, &r->answer, token, text, size);
}

static bool take_thought(void *user, int32_t token, const char *text, size_t size)
{
    struct reply *r = user;
    return take(r, &r->thought, token, text, size);
}

static bool take_call(void *user, const peridot_call_piece *piece)
{
    struct part *p = &((struct reply *)user)->call;
    p->size += (size_t)snprintf(p->text + p->size, sizeof p->text - p->size, "%s%.*s%s", piece->name ? piece->name : "",
                                (int)piece->size, piece->arguments, piece->complete ? "." : "");
    return p->size < sizeof p->text;
}

static bool take_logits(void *user, peridot_sequence *q, uint32_t pos, const float *row, size_t n)
{
    struct reply *r = user;
    (void)q;
    assert_true(n <= MOST_LOGITS);
    bool again = r->n_draws++ && r->pos == pos;
    if (again) assert_memory_equal(r->logits, row, n * sizeof *row);
    r->n_again += again;
    r->pos = pos;
    memcpy(r->logits, row, n * sizeof *row);
    return true;
}

static peridot_session *open_session(peridot_model *model, uint32_t n_draft)
{
    peridot_session *s;
    peridot_session_params params = {.ctx = 256, .n_sequences = 2, .n_draft = n_draft};
    if (peridot_session_create(&s, model, &params) != PERIDOT_OK) fail_msg("%s", peridot_last_error());
    return s;
}

/* How a request is made. */
enum way { GENERATED, CREATED, SUBMITTED, N_WAYS };

static size_t finish_one(struct reply *out, peridot_session *s, peridot_request *r)
{
    peridot_status status;
    size_t n_running = 1;
    while (!peridot_request_done(r, &status, &out->stats))
        assert_int_equal(peridot_session_run(s, &n_running), PERIDOT_OK);
    if (status != PERIDOT_OK) fail_msg("%s", peridot_last_error());
    peridot_request_free(r);
    return n_running;
}

static void finish(struct reply *out, peridot_session *s, peridot_request *r)
{
    assert_int_equal(finish_one(out, s, r), 0);
}

static size_t make_prompt(int32_t prompt[MOST], peridot_model *model, uint32_t think)
{
    const peridot_message message = {"user", "hello"};
    peridot_chat chat = {.messages = &message, .n_messages = 1, .think = think};
    int32_t *ids;
    size_t n;
    if (peridot_encode_turns(&ids, &n, peridot_model_vocab(model), &chat) != PERIDOT_OK)
        fail_msg("%s", peridot_last_error());
    memcpy(prompt, ids, n * sizeof *ids);
    peridot_free(ids);
    return n;
}

/* Of a prompt that was encoded with params.think, after `n_replied` tokens of the reply. */
static struct reply ask(peridot_model *model, enum way way, peridot_request_params params, const int32_t *replied)
{
    peridot_session *s = open_session(model, params.n_draft);
    peridot_sequence *q;
    peridot_request *r;
    struct reply out = {0};
    int32_t prompt[MOST];
    size_t n = make_prompt(prompt, model, params.think);
    for (size_t i = 0; i < params.n_replied; i++) prompt[n + i] = replied[i];
    params.prompt = prompt;
    params.n_prompt = n + params.n_replied;
    if (!params.n_max) params.n_max = 40;
    params.text = take_text;
    params.user = &out;
    assert_int_equal(peridot_sequence_create(&q, s), PERIDOT_OK);
    if (way == GENERATED) {
        if (peridot_generate(q, &params, &out.stats) != PERIDOT_OK) fail_msg("%s", peridot_last_error());
        if (params.sampling && !params.tools) assert_ptr_equal(q->q->sampler.p.grammar, params.sampling->grammar);
    } else {
        peridot_status status = way == CREATED ? peridot_request_create(&r, q, &params)
                                               : peridot_request_submit(&r, s, &params);
        if (status != PERIDOT_OK) fail_msg("%s", peridot_last_error());
        finish(&out, s, r);
    }
    assert_true(out.flushed);
    assert_int_equal(out.stats.n_generated, out.n);
    assert_int_equal(out.stats.n_prompt, params.n_prompt);
    assert_true(out.stats.first_token_s > 0 && out.stats.prompt_s > 0);
    peridot_session_free(s);
    return out;
}

static void expect_reply(const struct reply *r, const char *thought, const char *answer)
{
    assert_string_equal(r->thought.text, thought);
    assert_string_equal(r->answer.text, answer);
}

static void expect_tokens(const struct reply *r, peridot_model *model, const char *pieces)
{
    char *spelt = spell(peridot_model_vocab(model), r->tokens, r->n);
    assert_string_equal(spelt, pieces);
    free(spelt);
}

#define US "us|\u2581user|"

static void test_parts(void **state)
{
    (void)state;
    static const char *const stops[] = {"user", "mod"};
    static const peridot_sampling stopped = {.stop = stops, .n_stop = 2};
    for (enum way way = 0; way < N_WAYS; way++) {
        for (uint32_t think = 0; think < 2; think++) {
            peridot_request_params params = {.thought = take_thought, .think = think ? PERIDOT_THINK_ON : 0};
            struct reply r = ask(thinker, way, params, NULL);
            expect_reply(&r, SCRIPT_THOUGHT, SCRIPT_ANSWER);
            expect_tokens(&r, thinker, "<|channel>|thought\n|" US "<channel|>|hello|\u2581model|");
            params.thought = NULL;
            r = ask(thinker, way, params, NULL);
            expect_reply(&r, "", "thought\n" SCRIPT_THOUGHT SCRIPT_ANSWER);
        }
        peridot_request_params params = {.thought = take_thought, .sampling = &stopped};
        struct reply r = ask(thinker, way, params, NULL);   /* stop texts are the answer's */
        expect_reply(&r, SCRIPT_THOUGHT, "hello ");
        params.n_max = 3;
        r = ask(thinker, way, params, NULL);
        expect_reply(&r, "us", "");
    }
}

/* The mark is forced, counts as a token, and the model goes on from it. */
static void test_budget(void **state)
{
    (void)state;
    for (enum way way = 0; way < N_WAYS; way++) {
        struct reply r = ask(ponderer, way, (peridot_request_params){.thought = take_thought, .think = 4}, NULL);
        expect_reply(&r, "us user" "us", SCRIPT_ANSWER);
        expect_tokens(&r, ponderer, "<|channel>|thought\n|" US "us|<channel|>|hello|\u2581model|");
        r = ask(ponderer, way, (peridot_request_params){.think = 4}, NULL);
        expect_reply(&r, "", "thought\nus user" "us" SCRIPT_ANSWER);
        r = ask(thinker, way, (peridot_request_params){.thought = take_thought, .think = 4}, NULL);
        expect_reply(&r, SCRIPT_THOUGHT, SCRIPT_ANSWER);
        r = ask(ponderer, way, (peridot_request_params){.thought = take_thought, .think = PERIDOT_THINK_ON}, NULL);
        assert_int_equal(r.n, 40);
        assert_string_equal(r.answer.text, "");
        for (uint32_t n_max = 5; n_max < 8; n_max++) {   /* up to the budget, the mark, and a token of the answer */
            r = ask(ponderer, way,
                    (peridot_request_params){.thought = take_thought, .think = 4, .n_max = n_max}, NULL);
            expect_reply(&r, "us user" "us", n_max == 7 ? "hello" : "");
            assert_int_equal(r.n, n_max);
            assert_int_equal(r.stats.n_generated, n_max);
        }
    }
}

/* A budget that ends within a draft: what was right of it beyond is not taken. */
static void test_drafts(void **state)
{
    (void)state;
    for (enum way way = 0; way < N_WAYS; way++) {
        uint64_t n_accepted = 0;
        for (uint32_t think = 9; think < 16; think++) {
            peridot_request_params params = {.thought = take_thought, .think = think};
            struct reply plain = ask(ponderer, way, params, NULL);
            params.n_draft = 5;
            struct reply r = ask(ponderer, way, params, NULL);
            assert_string_equal(r.answer.text, SCRIPT_ANSWER);
            assert_int_equal(r.n, plain.n);
            assert_memory_equal(r.tokens, plain.tokens, r.n * sizeof *r.tokens);
            n_accepted += r.stats.n_accepted;
        }
        assert_true(n_accepted > 20);
    }
}

/* Where chance has a part, however the request was made. */
static void test_chance(void **state)
{
    (void)state;
    uint32_t n_unlike = 0;
    struct reply first = {0};
    for (uint64_t seed = 1; seed <= 24; seed++) {
        peridot_sampling sampling = {.temperature = 8, .top_k = 3, .seed = seed};
        peridot_request_params params = {.thought = take_thought, .think = 3 + seed % 3, .sampling = &sampling};
        struct reply r = ask(ponderer, GENERATED, params, NULL);
        for (enum way way = CREATED; way < N_WAYS; way++) {
            struct reply other = ask(ponderer, way, params, NULL);
            assert_int_equal(other.n, r.n);
            assert_memory_equal(other.tokens, r.tokens, r.n * sizeof *r.tokens);
        }
        if (seed == 1) first = r;
        n_unlike += r.n != first.n || memcmp(r.tokens, first.tokens, r.n * sizeof *r.tokens) != 0;
    }
    assert_true(n_unlike > 4);
}

/* A reply whose thought was ended goes on at once, whoever waits. */
static void test_turns(void **state)
{
    (void)state;
    peridot_session *s;
    peridot_session_params params = {.ctx = 128, .n_sequences = 2, .n_parallel = 1};
    struct reply replies[3] = {0};
    peridot_request *requests[3];
    const int32_t newline = id_of(peridot_model_vocab(ponderer), "\n");
    assert_int_equal(peridot_session_create(&s, ponderer, &params), PERIDOT_OK);
    for (int i = 0; i < 3; i++) {
        peridot_request_params p = {.prompt = &newline, .n_prompt = 1, .n_max = 40, .think = 4, .text = take_text,
                                    .thought = take_thought, .user = &replies[i]};
        assert_int_equal(peridot_request_submit(&requests[i], s, &p), PERIDOT_OK);
    }
    for (int i = 0; i < 3; i++) {
        if (i < 2) assert_int_equal(replies[i + 1].n, 0);
        finish_one(&replies[i], s, requests[i]);
        expect_reply(&replies[i], "us user" "us", SCRIPT_ANSWER);
        assert_true(replies[i].stats.n_cached <= 1);
    }
    peridot_session_free(s);
}

/* ---- grammars ---- */

/* A grammar's value begins after the thought, or at once where there is none. */
static void test_grammar(void **state)
{
    (void)state;
    peridot_grammar *grammar;
    peridot_vocab *other = open_vocab(in_folder("tiny.gguf"));
    static const char schema[] = "{\"enum\": [\"he\", \"mode\"]}";
    for (int i = 0; i < 2; i++) {
        peridot_model *model = i ? ponderer : thinker;
        assert_int_equal(peridot_grammar_json_schema(&grammar, peridot_model_vocab(model), schema, strlen(schema)),
                         PERIDOT_OK);
        for (enum way way = 0; way < N_WAYS; way++) {
            peridot_sampling sampling = {.grammar = grammar};
            peridot_request_params params = {.thought = take_thought, .think = i ? 4 : PERIDOT_THINK_ON,
                                             .sampling = &sampling};
            struct reply r = ask(model, way, params, NULL);
            expect_reply(&r, i ? "us user" "us" : SCRIPT_THOUGHT, " \"he\"");
            params.think = PERIDOT_THINK_OFF;
            r = ask(model, way, params, NULL);
            expect_reply(&r, "", " \"he\"");
        }
        peridot_grammar_free(grammar);
    }
    peridot_vocab_close(other);
}

/* As if the cache were full in round `at`: the one that came first goes on later, wherever it was. */
static struct reply ask_beside(peridot_model *model, peridot_request_params params, int at)
{
    peridot_session *s = open_session(model, 0);
    struct reply out[2] = {{.n = 0}};
    peridot_request *requests[2];
    peridot_status status;
    int32_t prompt[MOST];
    size_t n_running = 1;
    params.n_prompt = make_prompt(prompt, model, params.think);
    params.prompt = prompt;
    params.n_max = 40;
    params.text = take_text;
    for (int i = 0; i < 2; i++) {
        params.user = &out[i];
        assert_int_equal(peridot_request_submit(&requests[i], s, &params), PERIDOT_OK);
    }
    for (int round = 0; n_running; round++) {
        if (peridot_session_run(s, &n_running) != PERIDOT_OK) fail_msg("%s", peridot_last_error());
        struct pd_request *r = &requests[0]->r;
        if (round != at || r->state == PD_REQUEST_DONE || r->state == PD_REQUEST_WAITING) continue;
        peridot_set_error("full");
        pd_request_end(s->s, r, PERIDOT_ERROR_MEMORY);
    }
    for (int i = 0; i < 2; i++) {
        assert_true(peridot_request_done(requests[i], &status, &out[i].stats) && status == PERIDOT_OK);
        peridot_request_free(requests[i]);
    }
    assert_int_equal(out[1].n, out[0].n);
    assert_memory_equal(out[1].tokens, out[0].tokens, out[0].n * sizeof *out[0].tokens);
    peridot_session_free(s);
    return out[0];
}

/* Where a request makes room for others between a thought and its answer, or anywhere else, its reply is the same. */
static void test_preempted(void **state)
{
    (void)state;
    peridot_grammar *grammar;
    uint32_t n_preempted = 0;
    static const char schema[] = "{\"enum\": [\"he\", \"mode\"]}";
    for (int i = 0; i < 4; i++) {
        peridot_model *model = i & 1 ? ponderer : thinker;
        assert_int_equal(peridot_grammar_json_schema(&grammar, peridot_model_vocab(model), schema, strlen(schema)),
                         PERIDOT_OK);
        peridot_sampling sampling = {.temperature = 8, .top_k = 3, .seed = 5, .grammar = i & 2 ? grammar : NULL};
        peridot_request_params params = {.thought = take_thought, .think = 4, .sampling = &sampling};
        struct reply alone = ask(model, SUBMITTED, params, NULL);
        for (int at = 0; at < 12; at++) {
            struct reply r = ask_beside(model, params, at);
            n_preempted += r.stats.n_preempted;
            assert_string_equal(r.answer.text, alone.answer.text);
            assert_string_equal(r.thought.text, alone.thought.text);
            assert_int_equal(r.n, alone.n);
            assert_int_equal(r.stats.n_generated, alone.stats.n_generated);
            assert_memory_equal(r.tokens, alone.tokens, r.n * sizeof *r.tokens);
        }
        peridot_grammar_free(grammar);
    }
    assert_true(n_preempted >= 16);
}

/* A model that does not think although it was told to: its first token is drawn again, under the grammar. */
static void test_thoughtless(void **state)
{
    (void)state;
    static const struct script_step steps[] = {{"\n", "hello"}, {"hello", "<turn|>"}};
    static const char schema[] = "{\"enum\": [\"he\", \"mode\", \"user\", \"the\"]}";
    peridot_grammar *grammar;
    peridot_model *model;
    struct tiny t;
    uint32_t n_unlike = 0;
    tiny_make_gemma4(&t);
    t.jinja = "<|turn>";
    script_write(in_folder("tiny.gguf"), &t, steps, PD_COUNT(steps));
    if (peridot_model_open(&model, in_folder("tiny.gguf"), NULL) != PERIDOT_OK) fail_msg("%s", peridot_last_error());
    assert_int_equal(peridot_grammar_json_schema(&grammar, peridot_model_vocab(model), schema, strlen(schema)),
                     PERIDOT_OK);
    struct reply first = {0};
    for (uint64_t seed = 1; seed <= 12; seed++) {
        peridot_sampling sampling = {.temperature = 8, .seed = seed, .grammar = grammar};
        peridot_request_params params = {.thought = take_thought, .sampling = &sampling};
        struct reply plain = ask(model, GENERATED, params, NULL);
        params.think = PERIDOT_THINK_ON;
        if (seed == 1) first = plain;
        n_unlike += strcmp(plain.answer.text, first.answer.text) != 0;
        for (enum way way = 0; way < N_WAYS; way++) {
            struct reply r = ask(model, way, params, NULL);
            expect_reply(&r, "", plain.answer.text);
        }
    }
    assert_true(n_unlike > 2);
    peridot_grammar_free(grammar);
    peridot_model_close(model);
}

/* A template begins the thought, and the model ends it: its marks are user-defined in the file. */
static void test_begun(void **state)
{
    (void)state;
    static const struct script_step steps[] = {{"\n", "us"}, {"us", "\u2581user"}, {"\u2581user", "</think>"},
        {"</think>", "hello"}, {"hello", "\u2581model"}, {"\u2581model", "<eos>"}};
    static const char schema[] = "{\"enum\": [\"he\", \"mode\"]}";
    peridot_grammar *grammar;
    peridot_model *model;
    struct tiny t;
    tiny_make(&t);
    tiny_add(&t, "<think>", -1000, 4);
    tiny_add(&t, "</think>", -1000, 4);
    tiny_add(&t, "\u2581user", -1000, 1);
    tiny_add(&t, "\u2581model", -1000, 1);
    t.jinja = "{% for m in messages %}{{ m.content }}{% endfor %}{{ '<think>\n' }}";
    script_write(in_folder("tiny.gguf"), &t, steps, PD_COUNT(steps));
    if (peridot_model_open(&model, in_folder("tiny.gguf"), NULL) != PERIDOT_OK) fail_msg("%s", peridot_last_error());
    assert_int_equal(peridot_grammar_json_schema(&grammar, peridot_model_vocab(model), schema, strlen(schema)),
                     PERIDOT_OK);
    const peridot_sampling sampling = {.grammar = grammar};
    for (enum way way = 0; way < N_WAYS; way++) {
        struct reply r = ask(model, way, (peridot_request_params){.thought = take_thought}, NULL);
        expect_reply(&r, "us user", SCRIPT_ANSWER);
        r = ask(model, way, (peridot_request_params){.thought = take_thought, .sampling = &sampling}, NULL);
        assert_string_equal(r.thought.text, "us user");
        assert_non_null(strstr(r.answer.text, "\"he\""));
    }
    peridot_grammar_free(grammar);
    peridot_model_close(model);
}

/* A reply that an earlier request began goes on, wherever that was. */
static void test_replied(void **state)
{
    (void)state;
    static const char schema[] = "{\"enum\": [\"he\", \"mode\"]}";
    peridot_grammar *grammar;
    assert_int_equal(peridot_grammar_json_schema(&grammar, peridot_model_vocab(ponderer), schema, strlen(schema)),
                     PERIDOT_OK);
    for (int i = 0; i < 2; i++) {
        peridot_sampling sampling = {.grammar = i ? grammar : NULL, .temperature = 4, .top_k = 3, .seed = 5};
        peridot_request_params params = {.thought = take_thought, .think = 4, .sampling = &sampling};
        struct reply whole = ask(ponderer, GENERATED, params, NULL);
        for (enum way way = 0; way < N_WAYS; way++) {
            for (uint32_t n = 1; n < whole.n; n++) {
                params.n_replied = n;
                params.n_max = 40 - n;
                if (n == 5) continue;   /* it would have ended with the mark, in the same step */
                struct reply rest = ask(ponderer, way, params, whole.tokens);
                if (rest.n != whole.n - n || memcmp(rest.tokens, whole.tokens + n, rest.n * sizeof *rest.tokens) != 0)
                    fail_msg("way %d, grammar %d: another reply after %u tokens", (int)way, i, n);
            }
        }
    }
    peridot_grammar_free(grammar);
}

/* ---- headers ---- */

/* What follows first in its header: "self" where its first message is a thought. */
static peridot_model *open_muse(const char *first)
{
    static const char *const marks[] = {"<|start|>", "<|message|>", "<|eom|>", "<|eot|>", "\u2581to=", "self",
        "\u2581to=user"};
    const struct script_step steps[] = {{"de", "\u2581to="}, {"\u2581to=", first},
        {"self", "<|message|>"}, {"<|message|>", "us"}, {"us", "\u2581user"}, {"\u2581user", "<|eom|>"},
        {"<|eom|>", "<|start|>"}, {"<|start|>", "\u2581to=user"}, {"\u2581to=user", "<|message|>"}};
    struct tiny t;
    peridot_model *model;
    tiny_make(&t);
    for (size_t i = 0; i < PD_COUNT(marks); i++) tiny_add(&t, marks[i], -1000, i < 4 ? 3 : 4);
    tiny_add(&t, "\u2581user", -1000, 1);
    t.jinja = "{% for m in messages %}{{ m.content }}{% endfor %}{% if tools %}{{ '' if true else '<atem:invoke' + "
              "'<|message|>' }}{% endif %}<|start|>de";
    script_write(in_folder("tiny.gguf"), &t, steps, PD_COUNT(steps));
    if (peridot_model_open(&model, in_folder("tiny.gguf"), NULL) != PERIDOT_OK) fail_msg("%s", peridot_last_error());
    return model;
}

#define MUSE_SELF "\u2581to=|self|<|message|>|"
#define MUSE_THOUGHT MUSE_SELF US "<|eom|>|"
#define MUSE_HEADER "<|start|>|\u2581to=user|<|message|>|"

/* Each message has one, which says whether it is a thought, and is no text. */
static void test_headers(void **state)
{
    (void)state;
    peridot_model *model = open_muse("self");
    for (enum way way = 0; way < N_WAYS; way++) {
        for (uint32_t think = 0; think < 2; think++) {
            peridot_request_params params = {.thought = take_thought, .n_max = 17,
                                             .think = think ? PERIDOT_THINK_ON : 0};
            struct reply r = ask(model, way, params, NULL);
            expect_reply(&r, "us user", "us userus user");
            expect_tokens(&r, model, MUSE_THOUGHT MUSE_HEADER US "<|eom|>|" MUSE_HEADER US);
        }
        peridot_request_params params = {.thought = take_thought, .think = 1, .n_max = 10};
        struct reply r = ask(model, way, params, NULL);
        expect_reply(&r, "us", "us user");
        expect_tokens(&r, model, MUSE_SELF "us|<|eom|>|" MUSE_HEADER US);
        r = ask(model, way, (peridot_request_params){.n_max = 11}, NULL);
        expect_reply(&r, "", " to=selfus user to=userus user");
    }
    peridot_model_close(model);
}

/* gpt-oss's: what ends a message ends the turn of other models with such a token. */
static void test_channels(void **state)
{
    (void)state;
    static const char *const marks[] = {"<|start|>", "<|message|>", "<|end|>", "<|channel|>", "<|return|>", "<|call|>",
        "analysis", "final"};
    const struct script_step steps[] = {{"de", "<|channel|>"}, {"<|channel|>", "analysis"},
        {"analysis", "<|message|>"}, {"<|message|>", "us"}, {"us", "\u2581user"}, {"\u2581user", "<|end|>"},
        {"<|end|>", "<|start|>"}, {"<|start|>", "final"}, {"final", "<|message|>"}};
    struct tiny t;
    peridot_model *model;
    tiny_make(&t);
    for (size_t i = 0; i < PD_COUNT(marks); i++) tiny_add(&t, marks[i], -1000, i < 6 ? 3 : 4);
    tiny_add(&t, "\u2581user", -1000, 1);
    t.jinja = "{% for m in messages %}{{ m.content }}{% endfor %}<|start|>de";
    script_write(in_folder("tiny.gguf"), &t, steps, PD_COUNT(steps));
    if (peridot_model_open(&model, in_folder("tiny.gguf"), NULL) != PERIDOT_OK) fail_msg("%s", peridot_last_error());
    for (enum way way = 0; way < N_WAYS; way++) {
        struct reply r = ask(model, way, (peridot_request_params){.thought = take_thought, .n_max = 11}, NULL);
        expect_reply(&r, "us user", "us user");
    }
    int32_t n = (int32_t)peridot_model_get_info(model)->vocab_size, first = n - 1 - (int32_t)PD_COUNT(marks);
    for (int32_t i = 0; i < 6; i++) assert_true(peridot_is_stop(model, first + i) == (i == 4 || i == 5));
    peridot_model_close(model);
}

/* A grammar's value begins after the header of what is no thought, whatever part of the reply came before. */
static void test_header_grammar(void **state)
{
    (void)state;
    static const char schema[] = "{\"enum\": [\"he\", \"mode\"]}";
    peridot_grammar *grammar;
    peridot_model *model = open_muse("self");
    assert_int_equal(peridot_grammar_json_schema(&grammar, peridot_model_vocab(model), schema, strlen(schema)),
                     PERIDOT_OK);
    for (int i = 0; i < 3; i++) {
        peridot_sampling sampling = {.grammar = grammar, .temperature = i == 2 ? 0.1f : 0, .seed = 5};
        peridot_request_params params = {.thought = take_thought, .sampling = &sampling,
                                         .think = i ? PERIDOT_THINK_ON : 0};
        struct reply whole = ask(model, GENERATED, params, NULL);
        expect_reply(&whole, "us user", i == 2 ? whole.answer.text : " \"he\"");
        for (enum way way = 0; way < N_WAYS; way++) {
            params.n_replied = 0;
            struct reply r = ask(model, way, params, NULL);
            assert_int_equal(r.n, whole.n);
            assert_memory_equal(r.tokens, whole.tokens, r.n * sizeof *r.tokens);
            for (uint32_t n = 1; n < whole.n; n++) {
                params.n_replied = n;
                r = ask(model, way, params, whole.tokens);
                if (r.n != whole.n - n || memcmp(r.tokens, whole.tokens + n, r.n * sizeof *r.tokens) != 0)
                    fail_msg("way %d, case %d: another reply after %u tokens", (int)way, i, n);
            }
        }
    }
    peridot_grammar_free(grammar);
    peridot_model_close(model);
}

/* A grammar of calls begins after a thought, or with the header of what is none, of which a part was drawn. */
static void test_header_calls(void **state)
{
    (void)state;
    static const char f[] = "[{\"name\":\"f\",\"parameters\":{\"type\":\"object\",\"additionalProperties\":false}}]";
    const peridot_tools_params asked = {.json = f, .json_size = sizeof f - 1, .choice = PERIDOT_TOOLS_REQUIRED,
                                        .single = true};
    for (int thinks = 0; thinks < 2; thinks++) {
        peridot_model *model = open_muse(thinks ? "self" : "us");
        peridot_tools *tools;
        assert_int_equal(peridot_tools_create(&tools, peridot_model_vocab(model), &asked), PERIDOT_OK);
        for (int i = 0; i < 4; i++) {
            const peridot_sampling sampling = {.temperature = i / 2 ? 0.1f : 0, .seed = 5};
            peridot_request_params params = {.thought = take_thought, .sampling = &sampling, .tools = tools,
                .call = take_call, .think = i % 2 ? PERIDOT_THINK_ON : 0, .n_max = 150};
            struct reply whole = ask(model, GENERATED, params, NULL);
            expect_reply(&whole, thinks ? "us user" : "", "");
            assert_string_equal(whole.call.text, "f{}.");
            for (enum way way = 0; way < N_WAYS; way++) {
                for (uint32_t n = 0; n < (i == 3 ? 11 : 1); n++) {
                    params.n_replied = n;
                    params.n_max = 150 - n;
                    struct reply r = ask(model, way, params, whole.tokens);
                    if (r.n != whole.n - n || memcmp(r.tokens, whole.tokens + n, r.n * sizeof *r.tokens) != 0)
                        fail_msg("way %d, case %d: another reply after %u tokens", (int)way, i, n);
                    assert_string_equal(r.call.text, "f{}.");
                }
            }
        }
        peridot_tools_free(tools);
        peridot_model_close(model);
    }
}

struct plain {
    struct reply r;
    const struct reply *beside;
    peridot_session *session;
    uint32_t most_queued;      /* steps, after the other's first token */
};

static bool take_plain(void *user, int32_t token, const char *text, size_t size)
{
    struct plain *p = user;
    if (p->beside->n == 1) p->most_queued = (uint32_t)pd_max(p->most_queued, p->session->s->decoder.n_queued);
    return take(&p->r, &p->r.answer, token, text, size);
}

/* Beside another reply, which is being written when this one comes and does not end, with steps of both that are
 * queued, or drafts. */
static struct reply ask_beside_plain(struct plain *plain, peridot_model *model, peridot_request_params params)
{
    peridot_session *s = open_session(model, params.n_draft);
    struct reply out = {0};
    peridot_request *requests[2];
    peridot_bias endless[8];
    peridot_sampling sampling = {.bias = endless};
    int32_t prompt[MOST];
    size_t n_running = 1;
    for (uint32_t id = 0; id < peridot_vocab_size(peridot_model_vocab(model)); id++)
        if (peridot_is_stop(model, (int32_t)id) && sampling.n_bias < 8)
            endless[sampling.n_bias++] = (peridot_bias){(int32_t)id, -INFINITY};
    params.n_prompt = make_prompt(prompt, model, params.think);
    params.prompt = prompt;
    params.text = take_text;
    *plain = (struct plain){.beside = &out, .session = s};
    for (int i = 0; i < 2; i++) {
        peridot_request_params other = {.prompt = prompt, .n_prompt = params.n_prompt, .n_max = 60, .text = take_plain,
                                        .sampling = &sampling, .user = plain, .n_draft = params.n_draft};
        params.user = &out;
        assert_int_equal(peridot_request_submit(&requests[i], s, i ? &params : &other), PERIDOT_OK);
        while (plain->r.n < 2) assert_int_equal(peridot_session_run(s, &n_running), PERIDOT_OK);
    }
    while (n_running)
        if (peridot_session_run(s, &n_running) != PERIDOT_OK) fail_msg("%s", peridot_last_error());
    for (int i = 0; i < 2; i++) peridot_request_free(requests[i]);
    peridot_session_free(s);
    return out;
}

/* By a sequence that has a prompt and one token of a reply: the next one, by the random number that is next. */
static int32_t draw_second(peridot_model *model, peridot_sampling sampling, int32_t first)
{
    peridot_session *s = open_session(model, 0);
    peridot_sequence *q;
    int32_t prompt[MOST], token;
    size_t n = make_prompt(prompt, model, PERIDOT_THINK_ON);
    prompt[n] = first;
    sampling.seed += PD_SPLITMIX_STEP;
    assert_int_equal(peridot_sequence_create(&q, s), PERIDOT_OK);
    assert_int_equal(peridot_set_sampling(q, &sampling), PERIDOT_OK);
    assert_int_equal(peridot_sequence_eval(q, prompt, n + 1, NULL), PERIDOT_OK);
    assert_int_equal(peridot_sample(&token, q), PERIDOT_OK);
    peridot_session_free(s);
    return token;
}

/* A token that a waiting grammar refuses is drawn again from the logits that it was drawn from, whatever else has been
 * evaluated since: here one that ends the reply within its header. */
static void test_drawn_again(void **state)
{
    (void)state;
    static const char schema[] = "{\"enum\": [\"he\", \"mode\", \"user\", \"the\"]}";
    peridot_grammar *grammar;
    peridot_model *model = open_muse("<eos>");
    uint32_t n_unlike = 0;
    struct reply first = {0};
    assert_int_equal(peridot_grammar_json_schema(&grammar, peridot_model_vocab(model), schema, strlen(schema)),
                     PERIDOT_OK);
    for (uint64_t i = 0; i < 12; i++) {
        const peridot_sampling sampling = {.temperature = 2, .top_k = 5, .seed = 1 + i, .grammar = grammar};
        peridot_request_params params = {.thought = take_thought, .sampling = &sampling, .think = PERIDOT_THINK_ON,
                                         .logits = i % 3 == 1 ? take_logits : NULL, .n_draft = i % 3 == 2 ? 5 : 0,
                                         .n_max = 40};
        struct reply alone = ask(model, GENERATED, params, NULL);
        assert_int_equal(alone.tokens[1], draw_second(model, sampling, alone.tokens[0]));
        if (i == 0) first = alone;
        n_unlike += strcmp(alone.answer.text, first.answer.text) != 0;
        for (int way = CREATED; way <= N_WAYS; way++) {
            struct plain plain = {.r.n = 60};
            struct reply r = way < N_WAYS ? ask(model, (enum way)way, params, NULL)
                                          : ask_beside_plain(&plain, model, params);
            assert_int_equal(r.n, alone.n);
            assert_memory_equal(r.tokens, alone.tokens, r.n * sizeof *r.tokens);
            assert_string_equal(r.answer.text, alone.answer.text);
            assert_int_equal(r.n_again, params.logits ? 1 : 0);
            assert_int_equal(plain.r.n, 60);
            assert_true(way < N_WAYS || plain.most_queued > 0 || params.logits || params.n_draft);
        }
    }
    assert_true(n_unlike > 2);
    peridot_grammar_free(grammar);
    peridot_model_close(model);
}

/* ---- suppressed tokens ---- */

/* What a sequence without a chain draws after "\n", and what one draws that was saved there. */
static void expect_drawn(peridot_model *model, int32_t hello, bool is_drawn)
{
    peridot_session *s = open_session(model, 0);
    peridot_sequence *q, *loaded;
    int32_t token, newline = id_of(peridot_model_vocab(model), "\n");
    assert_int_equal(peridot_sequence_create(&q, s), PERIDOT_OK);
    assert_int_equal(peridot_sequence_eval(q, &newline, 1, NULL), PERIDOT_OK);
    assert_int_equal(peridot_sample(&token, q), PERIDOT_OK);
    assert_true((token == hello) == is_drawn);
    assert_int_equal(peridot_sequence_save(q, in_folder("tiny.json")), PERIDOT_OK);
    assert_int_equal(peridot_sequence_load(&loaded, s, in_folder("tiny.json")), PERIDOT_OK);
    assert_int_equal(peridot_sequence_eval(loaded, &newline, 1, NULL), PERIDOT_OK);
    assert_int_equal(peridot_sample(&token, loaded), PERIDOT_OK);
    assert_true((token == hello) == is_drawn);
    peridot_session_free(s);
}

static void test_suppressed(void **state)
{
    (void)state;
    static const struct script_step steps[] = {{"\n", "hello"}, {"hello", "<turn|>"}, {"<pad>", "<turn|>"}};
    int32_t hello;
    struct tiny t;
    peridot_model *model;
    for (int suppressed = 0; suppressed < 2; suppressed++) {
        tiny_make_gemma4(&t);
        hello = script_id(&t, "hello");
        t.jinja = "<|turn>";
        t.suppress = &hello;
        t.n_suppress = (uint64_t)suppressed;
        script_write(in_folder("tiny.gguf"), &t, steps, PD_COUNT(steps));
        if (peridot_model_open(&model, in_folder("tiny.gguf"), NULL) != PERIDOT_OK)
            fail_msg("%s", peridot_last_error());
        const peridot_bias raised = {hello, 100};
        const peridot_sampling chains[] = {{0}, {.bias = &raised, .n_bias = 1}, {.temperature = 1, .seed = 3},
            {.temperature = 1, .top_k = 5, .seed = 3}};
        for (enum way way = 0; way < N_WAYS; way++) {
            for (size_t i = 0; i <= PD_COUNT(chains); i++) {   /* the last: no chain was set */
                peridot_request_params params = {.n_max = 1, .sampling = i < PD_COUNT(chains) ? &chains[i] : NULL};
                struct reply r = ask(model, way, params, NULL);
                assert_true((r.n == 1 && r.tokens[0] == hello) == !suppressed);
            }
        }
        expect_drawn(model, hello, !suppressed);
        peridot_model_close(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts), cmocka_unit_test(test_budget), cmocka_unit_test(test_drafts),
        cmocka_unit_test(test_turns), cmocka_unit_test(test_chance), cmocka_unit_test(test_grammar),
        cmocka_unit_test(test_preempted), cmocka_unit_test(test_thoughtless), cmocka_unit_test(test_begun),
        cmocka_unit_test(test_replied),
        cmocka_unit_test(test_headers), cmocka_unit_test(test_channels), cmocka_unit_test(test_header_grammar),
        cmocka_unit_test(test_header_calls),
        cmocka_unit_test(test_drawn_again),
        cmocka_unit_test(test_suppressed),
    };
    return cmocka_run_group_tests(tests, open_models, close_models);
}

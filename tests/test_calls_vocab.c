/* Grammars of tool calls over a vocabulary: its control tokens are marks, and others are their text. Replies at random
 * parse, of tokens of Gemma 3 and Llama 3 where these are to be had. */
#include "bpe_fixture.h"   /* sets what it needs of POSIX */

#include "api/api.h"
#include "grammar/calls/calls.h"
#include "grammar/grammar.h"
#include "text_shared.h"

#define ADDED_TOKENS(begin, end, quote) \
    ADDED("280", "<|begin|>", "true", "false") ", " ADDED("281", "<|eot_id|>", "true", "false") ", " \
    ADDED("282", begin, "false", "false") ", " ADDED("283", end, "false", "false") ", " \
    ADDED("284", quote, "false", "false") ", " ADDED("285", "<|other|>", "true", "false")
enum { STOP = 281, BEGIN, END, QUOTE, OTHER };

static const char tools[] = "[{\"name\":\"f\",\"parameters\":{\"properties\":{\"s\":{\"type\":\"string\"}},"
                            "\"required\":[\"s\"],\"additionalProperties\":false}}]";

static peridot_vocab *open_tools(const char *added)
{
    struct json_parts parts = byte_parts;
    parts.added = added;
    return open_vocab(json_write(&parts));
}

static peridot_grammar *make_grammar(const peridot_vocab *vocab, const char *format, unsigned marks)
{
    peridot_grammar *g;
    yyjson_doc *doc = yyjson_read(tools, strlen(tools), 0);
    const struct pd_calls c = {.format = pd_call_format_find(format), .marks = marks,
                               .tools = yyjson_doc_get_root(doc)};
    if (pd_api_grammar_calls(&g, vocab, &c) != PERIDOT_OK) fail_msg("%s", pd_error());
    yyjson_doc_free(doc);
    return g;
}

static bool allows(const peridot_grammar *g, const struct pd_walk *w, uint32_t id)
{
    const struct pd_mask *mask;
    struct pd_mask *made;
    assert_int_equal(pd_grammar_mask(&mask, &made, g, w), PERIDOT_OK);
    bool has = pd_mask_has(mask, id);
    free(made);
    return has;
}

/* What may come where the text goes on; bytes have their values as ids. */
static void expect_allowed(const peridot_grammar *g, const struct pd_walk *w, const char *allowed, const char *others)
{
    static const struct {
        char name;
        uint32_t id;
    } ids[] = {{'.', STOP}, {'B', BEGIN}, {'E', END}, {'Q', QUOTE}, {'O', OTHER}, {'c', 'c'}, {'x', 'x'}};
    for (size_t i = 0; i < PD_COUNT(ids); i++) {
        if (strchr(allowed, ids[i].name)) assert_true(allows(g, w, ids[i].id));
        if (strchr(others, ids[i].name)) assert_false(allows(g, w, ids[i].id));
    }
}

static void take(struct pd_walk *w, const peridot_grammar *g, const char *text)
{
    for (; *text; text++) assert_true(pd_grammar_take(w, g, (uint8_t)*text));
}

static void test_marks(void **state)
{
    (void)state;
    peridot_vocab *vocab = open_tools(ADDED_TOKENS("<|tool_call>", "<tool_call|>", "<|\\\"|>"));
    assert_int_equal(pd_api_call_marks(vocab), 7 << 2);
    peridot_grammar *g = make_grammar(vocab, "gemma4", 7 << 2);
    struct pd_walk w;
    pd_walk_begin(&w, &g->rules);
    expect_allowed(g, &w, ".Bcx", "EQO");
    take(&w, g, "x<|tool_call>x");   /* as text it is nothing */
    expect_allowed(g, &w, ".Bcx", "EQO");
    assert_true(pd_grammar_take(&w, g, BEGIN));
    expect_allowed(g, &w, "c", ".BEQOx");
    take(&w, g, "call:f{s:");
    expect_allowed(g, &w, "Q", ".BEOcx");
    assert_true(pd_grammar_take(&w, g, QUOTE));
    take(&w, g, "<|\"|>}");
    expect_allowed(g, &w, "Qcx", ".BEO");
    assert_true(pd_grammar_take(&w, g, QUOTE));
    take(&w, g, "}");
    expect_allowed(g, &w, "E", ".BQOcx");
    assert_true(pd_grammar_take(&w, g, END));
    expect_allowed(g, &w, ".", "BEQOcx");
    pd_grammar_free(g);
    assert_int_equal(peridot_grammar_json(&g, vocab), PERIDOT_OK);   /* which none of them is in */
    pd_walk_begin(&w, &g->rules);
    take(&w, g, "{\"");
    expect_allowed(g, &w, "cx", ".BEQO");
    pd_grammar_free(g);
    peridot_vocab_close(vocab);
}

/* A token that ends replies is no mark: the format's literal is text. */
static void test_stops(void **state)
{
    (void)state;
    peridot_vocab *vocab = open_tools(ADDED_TOKENS("<|tool_call>", "<tool_call|>", "<|\\\"|>"));
    pd_pieces_mark_stop(&vocab->tokenizer->pieces, END);
    assert_int_equal(pd_api_call_marks(vocab), 5 << 2);
    peridot_grammar *g = make_grammar(vocab, "gemma4", 5 << 2);
    struct pd_walk w;
    pd_walk_begin(&w, &g->rules);
    expect_allowed(g, &w, ".BEc", "QO");
    assert_true(pd_grammar_take(&w, g, BEGIN));
    take(&w, g, "call:f{s:");
    assert_true(pd_grammar_take(&w, g, QUOTE) && pd_grammar_take(&w, g, QUOTE));
    take(&w, g, "}<tool_call|");
    expect_allowed(g, &w, "", ".BEQOcx");
    take(&w, g, ">");
    expect_allowed(g, &w, ".E", "BQOcx");
    pd_grammar_free(g);
    peridot_vocab_close(vocab);
}

/* What files call user-defined is control where a format has it, so that no message forges a call. */
static void test_user_defined(void **state)
{
    (void)state;
    peridot_vocab *vocab = open_tools(ADDED_TOKENS("<start_function_call>", "<end_function_call>", "<escape>"));
    assert_int_equal(pd_api_call_marks(vocab), 7 << 5);
    peridot_vocab_close(vocab);
}

/* ---- replies of tokens at random, from vocabularies that people use ---- */

static const char ends[] = "\"}]:, 0<";
enum { N_TOKENS = 200, N_DRAWN = 96, N_REPLIES = 4, N_ENDS = sizeof ends - 1 };

struct reply {
    unsigned n_begun, n_ended;
    bool cut;                      /* within a call's begin, which is text then */
    struct pd_buffer arguments;
};

static peridot_status take_text(void *user, const char *bytes, size_t size)
{
    const struct reply *r = user;
    (void)bytes;
    assert_true(size > 0 && (r->n_begun == 0 || r->cut));
    return PERIDOT_OK;
}

static peridot_status take_begin(void *user, const char *name, size_t size)
{
    struct reply *r = user;
    assert_true(size == 1 && *name == 'f');
    r->n_begun++;
    r->arguments.size = 0;
    return PERIDOT_OK;
}

static peridot_status take_arguments(void *user, const char *json, size_t size)
{
    return pd_buffer_add(&((struct reply *)user)->arguments, json, size);
}

static peridot_status take_end(void *user)
{
    struct reply *r = user;
    r->n_ended++;
    yyjson_doc *doc = yyjson_read(r->arguments.data, r->arguments.size, 0);
    yyjson_val *root = yyjson_doc_get_root(doc);
    assert_true(yyjson_obj_size(root) == 1 && yyjson_is_str(yyjson_obj_get(root, "s")));
    yyjson_doc_free(doc);
    return PERIDOT_OK;
}

static uint32_t draw(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33);
}

/* Tokens of single bytes that end things. */
static void find_ends(uint32_t ids[N_ENDS], const struct pd_spellings *s)
{
    for (size_t i = 0; i < s->n; i++) {
        const char *end = s->sorted[i].size == 1 ? memchr(ends, s->bytes[s->sorted[i].offset], N_ENDS) : NULL;
        if (end) ids[end - ends] = s->sorted[i].id;
    }
}

/* Of some tokens, half of them such; UINT32_MAX: the reply ends. */
static uint32_t draw_token(const peridot_grammar *g, const struct pd_walk *w, const uint32_t *end_ids, uint64_t *seed)
{
    const struct pd_spellings *s = g->spellings;
    uint32_t ids[N_DRAWN], n = 0, first = draw(seed);
    bool allowed[N_DRAWN];
    if (pd_walk_is_complete(w, &g->rules) && first % 8 == 0) return UINT32_MAX;
    for (; n < N_DRAWN; n++)
        ids[n] = n % 2 ? s->sorted[draw(seed) % s->n].id : end_ids[draw(seed) % N_ENDS];
    pd_grammar_allows(allowed, g, w, ids, n);
    for (uint32_t i = 0; i < n; i++)
        if (allowed[(first + i) % n]) return ids[(first + i) % n];
    const struct pd_mask *mask;
    struct pd_mask *made;
    uint32_t id = first % s->n_pieces;
    assert_int_equal(pd_grammar_mask(&mask, &made, g, w), PERIDOT_OK);
    assert_true(mask->n_allowed > 0);
    for (uint32_t i = 0; i < s->n_pieces && !(pd_mask_has(mask, id) && s->of_id[id] != UINT32_MAX); i++)
        id = (id + 1) % s->n_pieces;
    bool found = pd_mask_has(mask, id) && s->of_id[id] != UINT32_MAX;
    free(made);
    return found ? id : UINT32_MAX;
}

/* As a server reads a reply: marks by themselves, and other tokens as whole characters. */
static bool read_reply(const peridot_vocab *vocab, const peridot_grammar *g, const struct pd_calls *c, uint64_t *seed)
{
    struct pd_call_parser p = {.format = c->format, .marks = c->marks, .tools = c->tools};
    struct reply r = {0};
    const struct pd_call_sink sink = {&r, take_text, take_begin, take_arguments, take_end};
    struct pd_stream stream = {.started = true};
    struct pd_buffer text = {0};
    struct pd_walk w;
    uint32_t id = 0, end_ids[N_ENDS];
    find_ends(end_ids, g->spellings);
    pd_walk_begin(&w, &g->rules);
    for (int i = 0; i < N_TOKENS && (id = draw_token(g, &w, end_ids, seed)) != UINT32_MAX; i++) {
        const struct pd_spelling *spelling = &g->spellings->sorted[g->spellings->of_id[id]];
        const char *bytes = g->spellings->bytes + spelling->offset;
        bool mark = (uint8_t)*bytes >= PD_CALL_MARK;
        assert_true(pd_grammar_take(&w, g, (int32_t)id));
        if (!mark) assert_int_equal(pd_stream_next(&stream, &text, vocab->tokenizer, (int32_t)id), PERIDOT_OK);
        assert_int_equal(pd_call_parser_next(&p, &sink, mark ? bytes : text.data, mark ? 1 : text.size, false),
                         PERIDOT_OK);
    }
    r.cut = id != UINT32_MAX;
    assert_int_equal(pd_call_parser_next(&p, &sink, NULL, 0, true), PERIDOT_OK);
    if (id == UINT32_MAX) assert_true(r.n_ended == r.n_begun && (r.n_begun || c->choice == PD_CALL_AUTO));
    free(text.data);
    free(r.arguments.data);
    return id == UINT32_MAX && r.n_ended > 0;
}

static void read_replies(const char *file)
{
    char path[512];
    uint64_t seed = 7;
    unsigned n_called = 0;
    skip_without_data();
    peridot_vocab *vocab = open_vocab(shared_path(path, "tokenizers/%s", file));
    yyjson_doc *doc = yyjson_read(tools, strlen(tools), 0);
    for (size_t i = 0; pd_call_format_name_at(i); i++)
        for (unsigned mode = 0; mode < 2; mode++) {
            const struct pd_calls c = {.format = pd_call_format_find(pd_call_format_name_at(i)), .parallel = true,
                                       .marks = pd_api_call_marks(vocab), .tools = yyjson_doc_get_root(doc),
                                       .choice = mode ? PD_CALL_REQUIRED : PD_CALL_AUTO};
            peridot_grammar *g;
            assert_int_equal(pd_api_grammar_calls(&g, vocab, &c), PERIDOT_OK);
            for (int k = 0; k < N_REPLIES; k++) n_called += read_reply(vocab, g, &c, &seed);
            pd_grammar_free(g);
        }
    print_message("%s: %u replies with calls\n", file, n_called);
    assert_true(n_called > 0);
    yyjson_doc_free(doc);
    peridot_vocab_close(vocab);
}

static void test_gemma3(void **state)
{
    (void)state;
    read_replies("gemma3.model");
}

static void test_llama3(void **state)
{
    (void)state;
    read_replies("llama3.tokenizer.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_marks), cmocka_unit_test(test_stops),
                                       cmocka_unit_test(test_user_defined), cmocka_unit_test(test_gemma3),
                                       cmocka_unit_test(test_llama3)};
    return cmocka_run_group_tests_name("calls_vocab", tests, make_folder, remove_folder);
}

/* Grammars of tool calls over a vocabulary: its control tokens are marks, and others are their text. */
#include "bpe_fixture.h"   /* sets what it needs of POSIX */

#include "api/grammar.h"
#include "grammar/grammar.h"

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
    assert_int_equal(pd_api_call_marks(vocab), 7);
    peridot_grammar *g = make_grammar(vocab, "gemma4", 7);
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
    assert_int_equal(pd_api_call_marks(vocab), 5);
    peridot_grammar *g = make_grammar(vocab, "gemma4", 5);
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

/* Tokens that are text are written by themselves or by others, which makes no difference. */
static void test_texts(void **state)
{
    (void)state;
    peridot_vocab *vocab = open_tools(ADDED_TOKENS("<start_function_call>", "<end_function_call>", "<escape>"));
    assert_int_equal(pd_api_call_marks(vocab), 0);
    peridot_grammar *g = make_grammar(vocab, "functiongemma", 0);
    struct pd_walk w;
    pd_walk_begin(&w, &g->rules);
    expect_allowed(g, &w, ".BEQcx", "O");
    take(&w, g, "x<start_function_call>");
    expect_allowed(g, &w, "c", ".BEQOx");
    take(&w, g, "call:f{s:");
    assert_true(pd_grammar_take(&w, g, QUOTE));
    take(&w, g, "}<esca");
    expect_allowed(g, &w, "QBEcx", ".O");
    take(&w, g, "pe>}");
    expect_allowed(g, &w, "E", ".BQOcx");
    assert_true(pd_grammar_take(&w, g, END));
    expect_allowed(g, &w, ".", "BEQOcx");
    pd_grammar_free(g);
    peridot_vocab_close(vocab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_marks), cmocka_unit_test(test_stops),
                                       cmocka_unit_test(test_texts)};
    return cmocka_run_group_tests_name("calls_vocab", tests, make_folder, remove_folder);
}

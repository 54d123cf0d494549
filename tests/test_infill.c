/* Fill-in-the-middle: which vocabularies have tokens for it, the prompts that two texts make, and that no text forges
 * such a token. */
#include "text_fixture.h"

static void infill(int32_t **ids, size_t *n, const peridot_vocab *v, const char *prefix, const char *suffix)
{
    const peridot_infill texts = {.size = sizeof texts, .prefix = prefix, .prefix_size = strlen(prefix),
                                  .suffix = suffix, .suffix_size = strlen(suffix)};
    if (peridot_encode_infill(ids, n, v, &texts) != PERIDOT_OK) fail_msg("%s", peridot_last_error());
}

static void expect_infill(const peridot_vocab *v, const char *prefix, const char *suffix, const char *pieces)
{
    int32_t *ids;
    size_t n;
    infill(&ids, &n, v, prefix, suffix);
    check_spelling(v, ids, n, pieces);
}

static void expect_none(const peridot_vocab *v)
{
    int32_t *ids;
    size_t n;
    assert_false(peridot_vocab_has_infill(v));
    assert_int_equal(peridot_encode_infill(&ids, &n, v, &(peridot_infill){0}), PERIDOT_ERROR_UNSUPPORTED);
    assert_null(ids);
    assert_string_equal(peridot_last_error(), "the vocabulary has no tokens for fill-in-the-middle");
}

/* Of these types, as published files have them. */
static void add_all(struct tiny *t, const char *const *names, size_t n, int32_t type)
{
    for (size_t i = 0; i < n; i++) tiny_add(t, names[i], -1000, type);
}

static const char *const codegemma[] = {"<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|file_separator|>"};
static const char *const code_llama[] = {"\u2581<PRE>", "\u2581<SUF>", "\u2581<MID>", "\u2581<EOT>"};
static const char *const spaced[] = {" <PRE>", " <SUF>", " <MID>", " <EOT>"};   /* user-defined ones in GGUF */
static const char *const starcoder[] = {"<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<file_sep>"};

#define PIPE "<0x7C>|"

static void check_codegemma(const peridot_vocab *v)
{
    assert_true(peridot_vocab_has_infill(v));
    assert_true(pd_tokenizer_is_stop(v->tokenizer, id_of(v, "<|file_separator|>")));
    assert_false(pd_tokenizer_is_stop(v->tokenizer, id_of(v, "<|fim_middle|>")));
    expect_infill(v, "hello", " the", "<bos>|<|fim_prefix|>|hello|<|fim_suffix|>|\u2581the|<|fim_middle|>|");
    expect_infill(v, " hello\n", "", "<bos>|<|fim_prefix|>|\u2581hello|\n|<|fim_suffix|>|<|fim_middle|>|");
    expect_infill(v, "", "", "<bos>|<|fim_prefix|>|<|fim_suffix|>|<|fim_middle|>|");
    expect_infill(v, "a<|fim_suffix|>", "<bos><|file_separator|>a",
                  "<bos>|<|fim_prefix|>|a|<|" PIPE "f|i|m|_|s|u|f|f|i|<0x78>|" PIPE ">|<|fim_suffix|>|<|b|o|s|>|<|"
                  PIPE "f|i|l|e|_|s|e|<0x70>|a|r|a|t|o|r|" PIPE ">|a|<|fim_middle|>|");
}

/* The types that converters and sentencepiece give such pieces. */
static void test_codegemma(void **state)
{
    (void)state;
    for (int32_t type = 3; type <= 4; type++) {
        struct tiny t;
        struct pd_buffer model;
        tiny_make(&t);
        add_all(&t, codegemma, PD_COUNT(codegemma), type);
        peridot_vocab *v = open_tiny(&t);
        check_codegemma(v);
        peridot_vocab_close(v);
        tiny_model(&model, &t);
        write_file(in_folder("tiny.model"), model.data, model.size);
        free(model.data);
        v = open_vocab(in_folder("tiny.model"));
        check_codegemma(v);
        peridot_vocab_close(v);
    }
}

/* The first text begins with a space, as all texts of the family do, and the second does not. */
static void test_code_llama(void **state)
{
    (void)state;
    static const struct { const char *const *names; int32_t type; } forms[] = {
        {code_llama, 3}, {code_llama, 4}, {code_llama, 1}, {spaced, 4}};
    for (size_t i = 0; i < PD_COUNT(forms); i++) {
        struct tiny t;
        tiny_make(&t);
        t.architecture = "llama";
        t.prefix = 1;
        add_all(&t, forms[i].names, 4, forms[i].type);
        peridot_vocab *v = open_tiny(&t);
        assert_true(pd_tokenizer_is_stop(v->tokenizer, id_of(v, "\u2581<EOT>")));
        expect_infill(v, "hello", "hello",
                      "<bos>|\u2581<PRE>|\u2581hello|\u2581<SUF>|hello|\u2581<MID>|");
        expect_infill(v, "", " the", "<bos>|\u2581<PRE>|\u2581<SUF>|\u2581the|\u2581<MID>|");
        peridot_vocab_close(v);
    }
}

static size_t count(const int32_t *ids, size_t n, int32_t id)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) found += ids[i] == id;
    return found;
}

/* In either place, alone and among other things: each mark is there once, where it belongs, and no end is. */
static void check_forgery(const char *const *names, int32_t type, const char *const *as_pieces)
{
    struct tiny t;
    tiny_make(&t);
    t.prefix = 1;
    add_all(&t, names, 4, type);
    peridot_vocab *v = open_tiny(&t);
    for (size_t i = 0; i < 16; i++) {
        char prefix[64], suffix[64];
        int32_t *ids;
        size_t n;
        snprintf(prefix, sizeof prefix, "%s%s", i % 3 ? "the " : "", names[i % 4]);
        snprintf(suffix, sizeof suffix, "%s%s", names[i / 4], i % 2 ? "\n" : "<bos>");
        infill(&ids, &n, v, prefix, suffix);
        for (int k = 0; k < 4; k++)
            if (count(ids, n, id_of(v, as_pieces[k])) != !pd_tokenizer_is_stop(v->tokenizer, id_of(v, as_pieces[k])))
                fail_msg("%s comes from \"%s\" and \"%s\"", as_pieces[k], prefix, suffix);
        assert_int_equal(count(ids, n, 2), 1);
        peridot_free(ids);
    }
    peridot_vocab_close(v);
}

static void test_forgery(void **state)
{
    (void)state;
    for (int32_t type = 3; type <= 4; type++) {
        check_forgery(codegemma, type, codegemma);
        check_forgery(starcoder, type, starcoder);
        check_forgery(code_llama, type, code_llama);
    }
    check_forgery(spaced, 4, code_llama);
}

static void test_none(void **state)
{
    (void)state;
    struct tiny t;
    int32_t *ids;
    size_t n;
    tiny_make(&t);
    peridot_vocab *v = open_tiny(&t);
    expect_none(v);
    peridot_vocab_close(v);
    for (int missing = 0; missing < 3; missing++) {   /* one of them is as good as none, and ends nothing */
        tiny_make(&t);
        for (int i = 0; i < 4; i++)
            if (i != missing) tiny_add(&t, codegemma[i], -1000, 4);
        v = open_tiny(&t);
        expect_none(v);
        assert_false(pd_tokenizer_is_stop(v->tokenizer, id_of(v, "<|file_separator|>")));
        peridot_vocab_close(v);
    }
    tiny_make(&t);
    add_all(&t, codegemma, PD_COUNT(codegemma), 4);
    v = open_tiny(&t);
    assert_int_equal(peridot_encode_infill(&ids, &n, v, &(peridot_infill){.suffix_size = 1}), PERIDOT_ERROR_ARGUMENT);
    assert_int_equal(peridot_encode_infill(&ids, &n, v, &(peridot_infill){.prefix_size = 1}), PERIDOT_ERROR_ARGUMENT);
    assert_null(ids);
    peridot_vocab_close(v);
}

/* ---- keys of GGUF ---- */

#define KEY(name) "tokenizer.ggml." name "_token_id"

static const char *const unnamed[] = {"[PREFIX]", "[SUFFIX]", "[MIDDLE]", "[END]"};

/* Both generations of keys, for names that are in no table; a file that is written has the newer ones. */
static void test_keys(void **state)
{
    (void)state;
    static const char *const keys[2][4] = {{KEY("fim_pre"), KEY("fim_suf"), KEY("fim_mid"), KEY("fim_sep")},
        {KEY("prefix"), KEY("suffix"), KEY("middle"), KEY("fsep")}};
    static const char *const pieces = "<bos>|[PREFIX]|t|[SUFFIX]|a|[MIDDLE]|";
    for (int old = 0; old < 2; old++) {
        struct tiny t;
        struct tiny_id ids[4];
        struct pd_gguf_writer *w;
        tiny_make(&t);
        for (size_t i = 0; i < 4; i++) ids[i] = (struct tiny_id){keys[old][i], (int64_t)(t.n + i)};
        add_all(&t, unnamed, 4, 3);
        t.ids = ids;
        t.n_ids = 4;
        peridot_vocab *v = open_tiny(&t);
        expect_infill(v, "t", "a", pieces);
        assert_true(pd_tokenizer_is_stop(v->tokenizer, id_of(v, "[END]")));
        assert_int_equal(pd_gguf_writer_open(&w, in_folder("tiny.model")), PERIDOT_OK);
        pd_gguf_writer_add_string(w, "general.architecture", t.architecture);
        assert_int_equal(pd_tokenizer_add_gguf(w, v->tokenizer, (uint32_t)t.n), PERIDOT_OK);
        assert_int_equal(pd_gguf_writer_begin(w), PERIDOT_OK);
        assert_int_equal(pd_gguf_writer_commit(w), PERIDOT_OK);
        peridot_vocab_close(v);
        v = open_vocab(in_folder("tiny.model"));
        expect_infill(v, "t", "a", pieces);
        peridot_vocab_close(v);
    }
}

/* The converter writes CodeGemma's ids into every Gemma 1, where the pieces are reserves; and a piece that text can
 * make is no control token. */
static void test_other_keys(void **state)
{
    (void)state;
    struct tiny t;
    tiny_make(&t);
    const int64_t reserve = 6, normal = (int64_t)t.n - 1;   /* "<unused0>" */
    const struct tiny_id rows[2][3] = {{{KEY("prefix"), reserve}, {KEY("suffix"), reserve}, {KEY("middle"), reserve}},
        {{KEY("fim_pre"), normal}, {KEY("fim_suf"), normal}, {KEY("fim_mid"), normal}}};
    t.n_ids = 3;
    for (int i = 0; i < 2; i++) {
        t.ids = rows[i];
        peridot_vocab *v = open_tiny(&t);
        expect_none(v);
        peridot_vocab_close(v);
    }
    const struct tiny_id outside = {KEY("fim_pre"), N_TINY};
    t.ids = &outside;
    t.n_ids = 1;
    peridot_vocab *v;
    assert_int_equal(peridot_vocab_open(&v, tiny_gguf(&t)), PERIDOT_ERROR_FORMAT);
    assert_non_null(strstr(peridot_last_error(), KEY("fim_pre") " is 512, but the vocabulary has "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codegemma), cmocka_unit_test(test_code_llama), cmocka_unit_test(test_forgery),
        cmocka_unit_test(test_none), cmocka_unit_test(test_keys), cmocka_unit_test(test_other_keys),
    };
    return cmocka_run_group_tests_name("infill", tests, make_folder, remove_folder);
}

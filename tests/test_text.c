/* Text to token ids and back, at once and as a stream, on a small vocabulary made here. */
#include "text_fixture.h"

static void check_encoding(const peridot_vocab *v)
{
    expect(v, "", 0, "");
    expect(v, "", BOS, "<bos>|");
    expect(v, "hello the model", 0, "hello|\u2581the|\u2581|model|");
    expect(v, "hello hello", BOS, "<bos>|hello|\u2581hello|");
    expect(v, "  the\n\n\n<b>", 0, "\u2581\u2581|t|he|\n\n|\n|<b>|");
    expect(v, "\u00e9\u20acx", 0, "\u00e9|<0xE2>|<0x82>|<0xAC>|<0x78>|");
    expect(v, "\xff" "a", 0, "<0xEF>|<0xBF>|<0xBD>|a|");
}

static void check_specials(const peridot_vocab *v)
{
    expect(v, "t<end_of_turn>", 0, "t|<|e|n|d|_|o|f|_|t|u|r|n|>|");
    expect(v, "<bos><eos><unk>", BOS, "<bos>|<|b|o|s|>|<|e|o|s|>|<|u|n|<0x6B>|>|");
    expect(v, "<unused0>", 0, "<|u|n|us|e|d|<0x30>|>|");
    expect(v, "hello<end_of_turn>\nhello<end_of", SPECIAL, "hello|<end_of_turn>|\n|hello|<|e|n|d|_|o|f|");
    expect(v, "<unused0><unk><b>", SPECIAL, "<unused0>|<unk>|<b>|");
    expect(v, "<bos>t", BOS | SPECIAL, "<bos>|t|");
    expect(v, "<bos><bos>t<bos>", BOS | SPECIAL, "<bos>|t|<bos>|");
    expect(v, "<bos>", SPECIAL, "<bos>|");
    expect(v, "t<bos>", BOS | SPECIAL, "<bos>|t|<bos>|");
    expect(v, "", BOS | SPECIAL, "<bos>|");
}

static void test_gguf(void **state)
{
    (void)state;
    struct tiny t;
    tiny_make(&t);
    peridot_vocab *v = open_tiny(&t);
    assert_int_equal(peridot_vocab_size(v), t.n);
    check_encoding(v);
    check_specials(v);
    peridot_vocab_close(v);
}

/* A sentencepiece model gives the same as a GGUF file of the same pieces, with its turn markers user-defined as
 * well. */
static void test_model(void **state)
{
    (void)state;
    struct tiny t;
    struct pd_buffer model;
    tiny_make(&t);
    tiny_model(&model, &t);
    write_file(in_folder("tiny.model"), model.data, model.size);
    peridot_vocab *v = open_vocab(in_folder("tiny.model"));
    check_encoding(v);
    check_specials(v);
    assert_false(peridot_vocab_has_chat(v));
    peridot_vocab_close(v);
    free(model.data);
}

/* The other kinds of sentencepiece models, through the same library. Unigrams: the best sum, where the piece number i
 * of the small vocabulary scores -i ("hello" 26, "he" 21, "h" 8, "e" 1). */
static void test_kinds(void **state)
{
    (void)state;
    static const struct { enum pd_algorithm kind; const char *hello, *unknown; } cases[] = {
        {PD_ALGORITHM_UNIGRAM, "hello|\u2581|t|h|e|", "h|e|<0x7A>|<0x7A>|"},
        {PD_ALGORITHM_WORD, "hello|\u2581the|", "<0x68>|<0x65>|<0x7A>|<0x7A>|"},
        {PD_ALGORITHM_CHAR, "h|e|l|l|o|\u2581|t|h|e|", "h|e|<0x7A>|<0x7A>|"},
    };
    struct tiny t;
    struct pd_buffer model, m = {0};
    tiny_make(&t);
    for (size_t i = 0; i < PD_COUNT(cases); i++) {
        tiny_model(&model, &t);
        pd_proto_write_varint(&m, 3, cases[i].kind);
        tiny_message(&model, 2, &m);
        write_file(in_folder("tiny.model"), model.data, model.size);
        peridot_vocab *v = open_vocab(in_folder("tiny.model"));
        expect(v, "hello the", 0, cases[i].hello);
        expect(v, "hezz", 0, cases[i].unknown);
        peridot_vocab_close(v);
        free(model.data);
    }
    free(m.data);
}

/* A model that drops extra spaces has the dummy prefix in each stretch of text, since sentencepiece puts it. */
static void test_remove_spaces(void **state)
{
    (void)state;
    struct tiny t;
    struct pd_buffer model, m = {0};
    tiny_make(&t);
    t.prefix = 1;
    tiny_model(&model, &t);
    pd_proto_write_varint(&m, 4, 1);
    tiny_message(&model, 3, &m);
    write_file(in_folder("tiny.model"), model.data, model.size);
    peridot_vocab *v = open_vocab(in_folder("tiny.model"));
    expect(v, "  the   the ", 0, "\u2581the|\u2581the|");
    expect(v, "the<eos> the", SPECIAL, "\u2581the|<eos>|\u2581the|");
    expect_text(v, (int32_t[]){id_of(v, "\u2581the"), id_of(v, "\u2581the")}, 2, "the the");
    peridot_vocab_close(v);
    free(m.data);
    free(model.data);
}

/* The beginning of a text has the dummy prefix, and what follows a control token, but where the file says otherwise;
 * only the first piece loses it again. */
static void test_prefix(void **state)
{
    (void)state;
    struct tiny t;
    tiny_make(&t);
    t.architecture = "llama";
    peridot_vocab *v = open_tiny(&t);
    expect(v, "", 0, "");
    expect(v, "hello", BOS, "<bos>|\u2581hello|");
    expect(v, " hello", 0, "\u2581\u2581|hello|");
    expect(v, "the<eos>the", SPECIAL, "\u2581the|<eos>|\u2581the|");
    expect(v, "<bos>the", BOS | SPECIAL, "<bos>|\u2581the|");
    expect(v, "<bos> the", BOS | SPECIAL, "<bos>|\u2581\u2581|t|he|");
    int32_t ids[] = {id_of(v, "<bos>"), id_of(v, "\u2581hello"), id_of(v, "<eos>"), id_of(v, "\u2581hello")};
    expect_text(v, ids, 4, "hello hello");
    expect_text(v, ids + 3, 1, "hello");
    peridot_vocab_close(v);
    t.prefix_first = true;
    v = open_tiny(&t);
    expect(v, "hello", BOS, "<bos>|\u2581hello|");
    expect(v, "\u2581hello", 0, "\u2581hello|");
    expect(v, "the<eos>the", SPECIAL, "\u2581the|<eos>|t|he|");
    expect(v, "<bos>the", BOS | SPECIAL, "<bos>|t|he|");
    const peridot_message message = {"user", "hello"};
    int32_t *begun;
    size_t n_begun;
    assert_int_equal(peridot_encode_messages(&begun, &n_begun, v, &message, 1, "plain"), PERIDOT_OK);
    check_spelling(v, begun, n_begun, "<bos>|\u2581hello|");
    peridot_vocab_close(v);
    t.prefix = 0;
    v = open_tiny(&t);
    expect(v, "hello", 0, "hello|");
    expect_text(v, ids, 4, " hello hello");
    peridot_vocab_close(v);
}

static void test_decode(void **state)
{
    (void)state;
    struct tiny t;
    char *text;
    size_t size;
    tiny_make(&t);
    peridot_vocab *v = open_tiny(&t);
    int32_t ids[] = {id_of(v, "<bos>"), id_of(v, "\u2581the"), id_of(v, "<end_of_turn>"), id_of(v, "\u2581\u2581"),
                     id_of(v, "<0xE2>"), id_of(v, "<0x82>"), id_of(v, "<0xAC>"), id_of(v, "<unk>")};
    expect_text(v, ids, 0, "");
    expect_text(v, ids, PD_COUNT(ids), " the  \u20ac \u2047 ");
    expect_text(v, ids + 4, 2, "\xe2\x82");
    assert_int_equal(peridot_decode_special(&text, &size, v, ids, 4), PERIDOT_OK);
    assert_string_equal(text, "<bos> the<end_of_turn>  ");
    assert_int_equal(size, strlen(text));
    peridot_free(text);
    assert_int_equal(peridot_decode_special(&text, &size, v, (const int32_t[]){-1}, 1), PERIDOT_ERROR_ARGUMENT);
    const int32_t wrong[] = {(int32_t)t.n, -1, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < PD_COUNT(wrong); i++) {
        assert_int_equal(peridot_decode(&text, &size, v, &wrong[i], 1), PERIDOT_ERROR_ARGUMENT);
        assert_null(text);
        assert_non_null(strstr(peridot_last_error(), "out of range"));
    }
    peridot_vocab_close(v);
}

/* Of control pieces that begin alike, the longest is taken. */
static void test_longest(void **state)
{
    (void)state;
    struct tiny t;
    tiny_make(&t);
    t.text[0] = (struct pd_string){"<end_of", 7};
    peridot_vocab *v = open_tiny(&t);
    expect(v, "<end_of_turn><end_of_<end_o", SPECIAL, "<end_of_turn>|<end_of|_|<|e|n|d|_|o|");
    peridot_vocab_close(v);
}

/* Texts longer than a cut come out as if they were encoded at once. */
static void check_long(const peridot_vocab *v, const struct pd_buffer *text)
{
    int32_t *ids;
    size_t n;
    struct pd_ids whole = {0};
    struct pd_buffer model = {0};
    struct pd_sentencepiece *uncut;
    assert_int_equal(pd_pieces_write_model(&model, &v->tokenizer->pieces), PERIDOT_OK);
    assert_int_equal(pd_sentencepiece_create(&uncut, model.data, model.size, false), PERIDOT_OK);
    assert_int_equal(pd_sentencepiece_encode(&whole, uncut, text->data, text->size, false), PERIDOT_OK);
    pd_sentencepiece_free(uncut);
    free(model.data);
    assert_int_equal(peridot_encode(&ids, &n, v, text->data, text->size, 0), PERIDOT_OK);
    assert_int_equal(n, whole.n);
    assert_memory_equal(ids, whole.data, n * sizeof *ids);
    peridot_free(ids);
    free(whole.data);
}

/* Line breaks are where texts are cut, but not between the two of a piece "\n\n". */
static void test_long_text(void **state)
{
    (void)state;
    struct tiny t;
    struct pd_buffer text = {0};
    tiny_make(&t);
    peridot_vocab *v = open_tiny(&t);
    for (size_t length = 0; text.size < 400000; length++) {
        for (size_t i = 0; i < length; i++) pd_buffer_add(&text, "the hello ", 10);
        pd_buffer_add(&text, "\n\n\n\n\n", 1 + length * 7919 % 5);
    }
    check_long(v, &text);
    for (size_t skip_size = 0; skip_size < 4; skip_size++) {
        text.size = skip_size;
        memset(text.data, 'h', skip_size);
        while (text.size < 140000) pd_buffer_add(&text, "\n\nh", 3);
        check_long(v, &text);
    }
    free(text.data);
    peridot_vocab_close(v);
}

/* ---- streaming ---- */

/* Streams bytes through byte pieces, then flushes; checks that no call gives a part of a character. */
static void expect_stream(const peridot_vocab *v, const char *bytes, size_t n, const char *want)
{
    struct pd_stream s = {0};
    struct pd_buffer b = {0}, all = {0};
    for (size_t i = 0; i <= n; i++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", i < n ? (unsigned char)bytes[i] : 0);
        int32_t id = i < n ? id_of(v, name) : -1;
        assert_int_equal(pd_stream_next(&s, &b, v->tokenizer, id), PERIDOT_OK);
        assert_true(b.size == 0 || ((unsigned char)b.data[0] & 0xc0) != 0x80);
        pd_buffer_add(&all, b.data, b.size);
        if (i < n && (unsigned char)bytes[i] < 0x80) assert_true(b.size > 0 && b.data[b.size - 1] == bytes[i]);
    }
    assert_int_equal(pd_buffer_end(&all), PERIDOT_OK);
    assert_string_equal(all.data, want);
    free(all.data);
    free(b.data);
}

#define BAD "\xef\xbf\xbd"

static void test_stream_cuts(void **state)
{
    (void)state;
    static const char text[] = "a\u00e9\u20ac\U0001f600b";   /* characters of 1, 2, 3, 4 and 1 bytes */
    static const size_t ends[] = {0, 1, 3, 6, 10, 11};
    struct tiny t;
    tiny_make(&t);
    peridot_vocab *v = open_tiny(&t);
    for (size_t cut = 0; cut < sizeof text; cut++) {
        size_t whole = 0;
        char want[32] = "";
        for (size_t i = 0; i < PD_COUNT(ends); i++)
            if (ends[i] <= cut) whole = ends[i];
        memcpy(want, text, whole);
        if (whole < cut) strcpy(want + whole, BAD);
        expect_stream(v, text, cut, want);
    }
    peridot_vocab_close(v);
}

static void test_stream_invalid(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"\xff" "a", BAD "a"}, {"\x80\x80", BAD BAD}, {"\xe2\x82" "a", BAD "a"}, {"\xe2\x82\xe2\x82\xac", BAD "\u20ac"},
        {"\xc0\x80", BAD BAD}, {"\xe0\x80\x80", BAD BAD BAD}, {"\xed\xa0\x80", BAD BAD BAD},
        {"\xf4\x90\x80\x80", BAD BAD BAD BAD}, {"\xf0\x9f\x98", BAD},
        {"\xf0\x9f\x98\xf0\x9f\x98\x80", BAD "\U0001f600"},
        {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"}, {"\xc3", BAD}, {"\xc3\xc3\xa9", BAD "\u00e9"},
    };
    struct tiny t;
    tiny_make(&t);
    peridot_vocab *v = open_tiny(&t);
    for (size_t i = 0; i < PD_COUNT(cases); i++) expect_stream(v, cases[i][0], strlen(cases[i][0]), cases[i][1]);
    peridot_vocab_close(v);
}

/* Pieces beside bytes: control ones end nothing and give nothing; the prefix is dropped once, or not in a continued
 * text. */
static void test_stream_pieces(void **state)
{
    (void)state;
    struct tiny t;
    tiny_make(&t);
    t.architecture = "llama";
    peridot_vocab *v = open_tiny(&t);
    int32_t ids[] = {id_of(v, "<bos>"), id_of(v, "\u2581hello"), id_of(v, "<0xE2>"), id_of(v, "\u2581the"), -1};
    static const char *const want[] = {"", "hello", "", BAD " the", ""};
    struct pd_buffer b = {0};
    for (int continued = 0; continued < 2; continued++) {
        struct pd_stream s = {.started = continued};
        for (size_t i = 0; i < PD_COUNT(ids); i++) {
            assert_int_equal(pd_stream_next(&s, &b, v->tokenizer, ids[i]), PERIDOT_OK);
            const char *text = continued && i == 1 ? " hello" : want[i];
            assert_int_equal(b.size, strlen(text));
            if (b.size) assert_memory_equal(b.data, text, b.size);
        }
        assert_int_equal(pd_stream_next(&s, &b, v->tokenizer, (int32_t)t.n), PERIDOT_ERROR_ARGUMENT);
    }
    free(b.data);
    peridot_vocab_close(v);
}

static bool count_down(void *user)
{
    int *left = user;
    return --*left >= 0;
}

/* A text whose size says that it has too many ids is not encoded, one that may have as many as are of use is, and both
 * end where nobody waits for them. The longest piece of the small vocabulary has `longest` bytes. */
static void test_limit(void **state)
{
    (void)state;
    struct tiny t;
    tiny_make(&t);
    peridot_vocab *v = open_tiny(&t);
    size_t longest = v->tokenizer->longest, n;
    int32_t *ids;
    int left = 1000;
    assert_in_range(longest, 3, 64);
    char text[65 * 10];
    memset(text, 'h', sizeof text);
    peridot_encode_limit limit = {.size = sizeof limit, .n_most = 10, .go_on = count_down, .user = &left};
    peridot_plain plain = {.size = sizeof plain, .text = text, .text_size = 10 * longest, .limit = &limit};
    assert_int_equal(peridot_encode_plain(&ids, &n, v, &plain), PERIDOT_OK);
    assert_int_equal(n, 10 * longest);   /* more, but it was encoded */
    assert_int_equal(limit.n_least, 0);
    peridot_free(ids);
    plain.text_size++;
    assert_int_equal(peridot_encode_plain(&ids, &n, v, &plain), PERIDOT_ERROR_ARGUMENT);
    assert_null(ids);
    assert_int_equal(limit.n_least, 11);
    left = 0;
    limit.n_least = 0;
    plain.text_size = 8;
    assert_int_equal(peridot_encode_plain(&ids, &n, v, &plain), PERIDOT_CANCELLED);
    assert_int_equal(limit.n_least, 0);
    peridot_vocab_close(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_gguf), cmocka_unit_test(test_model), cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_remove_spaces),
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_decode), cmocka_unit_test(test_longest), cmocka_unit_test(test_long_text),
        cmocka_unit_test(test_stream_cuts),
        cmocka_unit_test(test_stream_invalid), cmocka_unit_test(test_stream_pieces),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

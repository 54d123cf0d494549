/* Spoilt vocabularies: each is refused with one sentence that says what is wrong, or works; none crashes (the point of
 * running this under AddressSanitizer). sentencepiece checks little of what it is given, so these reach into it. */
#include "text_fixture.h"

#include <math.h>

/* ---- GGUF arrays ---- */

static void spoil_duplicate(struct tiny *t) { t->text[t->n - 1] = t->text[t->n - 2]; }
static void spoil_empty(struct tiny *t) { t->text[t->n - 1].size = 0; }
static void spoil_empty_user(struct tiny *t) { t->text[8].size = 0; }
static void spoil_all(struct tiny *t) { t->n = t->n_scores = t->n_types = 0; }
static void spoil_zero(struct tiny *t) { t->text[t->n - 1] = (struct pd_string){"a\0b", 3}; }
static void spoil_zero_user(struct tiny *t) { t->text[8] = (struct pd_string){"\0", 1}; }
static void spoil_scores(struct tiny *t) { t->n_scores--; }
static void spoil_types(struct tiny *t) { t->n_types = 0; }
static void spoil_nan(struct tiny *t) { t->score[t->n - 1] = pd_f32_from_bits(0x7fc00000); }
static void spoil_type_7(struct tiny *t) { t->type[t->n - 1] = 7; }
static void spoil_type_0(struct tiny *t) { t->type[0] = 0; }
static void spoil_type_negative(struct tiny *t) { t->type[0] = INT32_MIN; }
static void spoil_bos(struct tiny *t) { t->bos = (int64_t)t->n; }
static void spoil_eos(struct tiny *t) { t->eos = 0xfffffffe; }
static void spoil_eot(struct tiny *t) { t->eot = 1 << 30; }
static void spoil_unknown_id(struct tiny *t) { t->unknown = 100000; }
static void spoil_two_unknown(struct tiny *t) { t->type[3] = t->type[4] = 2; t->unknown = -1; }
static void spoil_byte(struct tiny *t) { t->type[20] = 1; }
static void spoil_byte_name(struct tiny *t) { t->text[20] = (struct pd_string){"<0xzz>", 6}; }
static void spoil_byte_short(struct tiny *t) { t->text[20] = (struct pd_string){"<", 1}; }
static void spoil_model(struct tiny *t) { t->model = "t5"; }
static void spoil_no_model(struct tiny *t) { t->model = NULL; }

static void spoil_no_unknown(struct tiny *t)
{
    t->unknown = -1;
    t->text[3] = (struct pd_string){"<other>", 7};
}

static void spoil_long(struct tiny *t)
{
    static char text[70000];
    memset(text, 'a', sizeof text);
    t->text[t->n - 1] = (struct pd_string){text, sizeof text};
}

/* More nested user-defined pieces than sentencepiece has room for in an array on its stack. */
static void spoil_nested(struct tiny *t)
{
    static char text[100];
    memset(text, 'z', sizeof text);
    for (size_t i = 1; i <= 65; i++) {
        t->text[t->n] = (struct pd_string){text, i};
        t->score[t->n] = 0;
        t->type[t->n++] = 4;
    }
    t->n_scores = t->n_types = t->n;
}

static const struct {
    void (*spoil)(struct tiny *t);
    const char *sentence;
} spoilt[] = {
    {spoil_duplicate, "already defined"}, {spoil_empty, "is empty"},
    {spoil_empty_user, "piece 8 of the vocabulary is empty"},
    {spoil_all, "has 0 pieces"}, {spoil_zero, "zero byte"}, {spoil_zero_user, "zero byte"},
    {spoil_scores, "tokenizer.ggml.scores has 302 elements for 303 pieces"},
    {spoil_types, "tokenizer.ggml.token_type has 0"},
    {spoil_nan, "score"}, {spoil_type_7, "unknown type 7"},
    {spoil_type_0, "piece 0 of the vocabulary has the unknown type 0"},
    {spoil_type_negative, "unknown type -2147483648"}, {spoil_bos, "bos_token_id is 303"},
    {spoil_eos, "eos_token_id is 4294967294"}, {spoil_eot, "eot_token_id"},
    {spoil_unknown_id, "unknown_token_id is 100000"},
    {spoil_two_unknown, "3 and 4"}, {spoil_byte, "256 byte pieces"}, {spoil_byte_name, "<0xzz>"},
    {spoil_byte_short, "is invalid"},
    {spoil_model, "tokenizer \"t5\" is not supported"}, {spoil_no_model, "no tokenizer"},
    {spoil_no_unknown, "no unknown piece"}, {spoil_long, "70000 bytes"}, {spoil_nested, "64"},
};

static void test_spoilt_gguf(void **state)
{
    (void)state;
    for (size_t i = 0; i < PD_COUNT(spoilt); i++) {
        struct tiny t;
        peridot_vocab *v;
        tiny_make(&t);
        spoilt[i].spoil(&t);
        peridot_status status = peridot_vocab_open(&v, tiny_gguf(&t));
        if (status == PERIDOT_OK) fail_msg("case %zu opens", i);
        assert_null(v);
        if (!strstr(peridot_last_error(), spoilt[i].sentence))
            fail_msg("case %zu: \"%s\" does not say \"%s\"", i, peridot_last_error(), spoilt[i].sentence);
        assert_non_null(strstr(peridot_last_error(), "tiny.gguf: "));
    }
}

/* ---- what converters say, or lose ---- */

/* Without bos where the file says so; but Gemma 4 has it whatever the file says. */
static void test_no_bos(void **state)
{
    (void)state;
    void (*const make[])(struct tiny *) = {tiny_make, tiny_make_gemma4};
    for (size_t i = 0; i < PD_COUNT(make); i++) {
        struct tiny t;
        make[i](&t);
        t.no_bos = true;
        peridot_vocab *v = open_tiny(&t);
        expect(v, "hello", PERIDOT_ENCODE_BOS, i ? "<bos>|hello|" : "hello|");
        peridot_vocab_close(v);
    }
}

/* Phi 3's first files: what pads the vocabulary is called unknown, and <unk> a control piece. */
static void test_unknown_pads(void **state)
{
    (void)state;
    struct tiny t;
    tiny_make(&t);
    tiny_add(&t, "[PAD1]", 0, 2);
    tiny_add(&t, "[PAD2]", 0, 2);
    peridot_vocab *v = open_tiny(&t);
    const struct pd_piece *piece = v->tokenizer->pieces.piece;
    assert_int_equal(piece[3].type, PD_PIECE_UNKNOWN);
    assert_int_equal(piece[t.n - 2].type, PD_PIECE_UNUSED);
    assert_int_equal(piece[t.n - 1].type, PD_PIECE_UNUSED);
    expect(v, "hello", 0, "hello|");
    peridot_vocab_close(v);
}

/* Phi 3's </s> is no control piece in its files. It takes the spaces after it, and text goes on with a prefix. */
static void test_phi_end(void **state)
{
    (void)state;
    struct tiny t;
    tiny_make(&t);
    t.architecture = "phi3";
    tiny_add(&t, "</s>", 0, 4);
    peridot_vocab *v = open_tiny(&t);
    expect(v, "hello</s>  the", PERIDOT_ENCODE_SPECIAL, "\u2581hello|</s>|\u2581the|");
    peridot_vocab_close(v);
}

/* ---- odd, but to be borne ---- */

static void odd_nested(struct tiny *t)
{
    spoil_nested(t);
    t->n = t->n_scores = t->n_types = t->n - 1;
}
static void odd_control_twice(struct tiny *t) { t->text[0] = t->text[2]; }
static void odd_control_letter(struct tiny *t) { t->text[0] = (struct pd_string){"a", 1}; }
static void odd_unknown_letter(struct tiny *t) { t->text[3] = (struct pd_string){"q", 1}; }
static void odd_no_ids(struct tiny *t) { t->bos = t->eos = t->unknown = -1; }
static void odd_none_ids(struct tiny *t) { t->bos = t->eos = t->unknown = UINT32_MAX; }
static void odd_invalid_utf8(struct tiny *t) { t->text[8] = (struct pd_string){"\xe2\x96", 2}; }
static void odd_continuation(struct tiny *t) { t->text[8] = (struct pd_string){"\x81", 1}; }
static void odd_scores(struct tiny *t) { t->score[t->n - 1] = INFINITY; t->score[t->n - 2] = -INFINITY; }
static void odd_break(struct tiny *t) { t->text[t->n - 1] = (struct pd_string){"e\nt", 3}; }

static void odd_unused(struct tiny *t)
{
    for (uint64_t i = t->n - 20; i < t->n; i++) t->type[i] = 5;
}

/* Every piece a prefix of the next, all unused: sentencepiece takes them apart again one by one. */
static void odd_deep(struct tiny *t)
{
    static char text[200];
    memset(text, 'z', sizeof text);
    for (size_t i = 1; i < sizeof text; i++) {
        t->text[t->n] = (struct pd_string){text, i};
        t->score[t->n] = (float)i;
        t->type[t->n++] = i == 1 ? 1 : 5;
    }
    t->n_scores = t->n_types = t->n;
}

/* Whatever the vocabulary, plain text makes no control piece, and what is made can be decoded. */
static void use(const peridot_vocab *v)
{
    static const char text[] =
        "hello  the model\n\n\ta\u2581\u00e9\u20ac zzzzzzzzzz\xff\xe2\x96 q\0x<bos><end_of_turn><b>"
                               "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz";
    for (unsigned flags = 0; flags < 4; flags++) {
        int32_t *ids;
        size_t n, size;
        char *back;
        if (peridot_encode(&ids, &n, v, text, sizeof text - 1, flags) != PERIDOT_OK)
            fail_msg("%s", peridot_last_error());
        for (size_t i = 0; i < n && flags == 0; i++)
            assert_int_not_equal(v->tokenizer->pieces.piece[ids[i]].type, PD_PIECE_CONTROL);
        assert_int_equal(peridot_decode(&back, &size, v, ids, n), PERIDOT_OK);
        peridot_free(back);
        peridot_free(ids);
    }
}

static void test_odd_gguf(void **state)
{
    (void)state;
    void (*const odd[])(struct tiny *) = {odd_nested, odd_control_twice, odd_control_letter, odd_unknown_letter,
        odd_no_ids,
        odd_none_ids, odd_invalid_utf8, odd_continuation, odd_scores, odd_break, odd_unused, odd_deep};
    for (size_t i = 0; i < PD_COUNT(odd); i++) {
        struct tiny t;
        tiny_make(&t);
        odd[i](&t);
        peridot_vocab *v = open_tiny(&t);
        use(v);
        peridot_vocab_close(v);
    }
}

/* Texts are not cut where a piece with a line break inside, or an unknown one, reaches over a cut. */
static void test_no_cuts(void **state)
{
    (void)state;
    struct tiny t;
    tiny_make(&t);
    peridot_vocab *v = open_tiny(&t);
    assert_true(pd_pieces_lines_apart(&v->tokenizer->pieces));
    peridot_vocab_close(v);
    odd_break(&t);
    v = open_tiny(&t);
    assert_false(pd_pieces_lines_apart(&v->tokenizer->pieces));
    peridot_vocab_close(v);
    struct pd_pieces p = {.algorithm = PD_ALGORITHM_BPE};
    assert_int_equal(pd_pieces_add(&p, "a", 1, 0, PD_PIECE_NORMAL), PERIDOT_OK);
    assert_false(pd_pieces_lines_apart(&p));   /* a run of unknown characters is one id */
    assert_int_equal(pd_pieces_add(&p, "\n", 1, 0, PD_PIECE_NORMAL), PERIDOT_OK);
    assert_true(pd_pieces_lines_apart(&p));
    pd_pieces_free(&p);
}

/* ---- sentencepiece models ---- */

/* From bytes that may be anything, as pd_tokenizer_open does it with a file's. */
static peridot_status open_bytes(const uint8_t *data, size_t size)
{
    peridot_vocab v = {.tokenizer = calloc(1, sizeof *v.tokenizer)};
    struct pd_tokenizer *t = v.tokenizer;
    struct pd_buffer model = {0};
    peridot_status status = pd_pieces_read_model(&t->pieces, data, size);
    if (status == PERIDOT_OK) status = pd_pieces_write_model(&model, &t->pieces);
    if (status == PERIDOT_OK) status = pd_sentencepiece_create(&t->sentencepiece, model.data, model.size, false);
    if (status == PERIDOT_OK) status = pd_special_create(&t->special, &t->pieces, PD_SPECIAL_CONTROL);
    if (status == PERIDOT_OK) use(&v);
    else assert_true(strlen(peridot_last_error()) > 10);
    free(model.data);
    pd_tokenizer_close(t);
    return status;
}

/* Each in an allocation of its own, so that AddressSanitizer sees a byte read past the end. */
static void test_truncated_model(void **state)
{
    (void)state;
    struct tiny t;
    struct pd_buffer model;
    tiny_make(&t);
    tiny_model(&model, &t);
    assert_int_equal(open_bytes((const uint8_t *)model.data, model.size), PERIDOT_OK);
    for (size_t size = 0; size < model.size; size++) {
        uint8_t *part = malloc(size + 1);
        memcpy(part + 1, model.data, size);
        assert_int_not_equal(open_bytes(part + 1, size), PERIDOT_OK);
        free(part);
    }
    free(model.data);
}

static void check_damaged_model(uint32_t type)
{
    struct tiny t;
    struct pd_buffer model, m = {0};
    uint32_t seed = type, opened = 0;
    tiny_make(&t);
    tiny_model(&model, &t);
    pd_proto_write_varint(&m, 3, type);
    tiny_message(&model, 2, &m);
    free(m.data);
    uint8_t *copy = malloc(model.size);
    for (int run = 0; run < 2000; run++) {
        memcpy(copy, model.data, model.size);
        for (uint32_t k = next_random(&seed) % 4 + 1; k; k--)
            copy[next_random(&seed) % model.size] ^= (uint8_t)(1u << next_random(&seed) % 8);
        opened += open_bytes(copy, model.size) == PERIDOT_OK;
    }
    assert_true(opened > 100 && opened < 1900);   /* both ways were taken */
    free(copy);
    free(model.data);
}

static void test_damaged_model(void **state)
{
    (void)state;
    for (uint32_t type = PD_ALGORITHM_UNIGRAM; type <= PD_ALGORITHM_CHAR; type++) check_damaged_model(type);
}

/* What changes the maths is refused by name. Each case is a field of the trainer's (2) or the normaliser's (3) spec. */
static void test_unsupported_model(void **state)
{
    (void)state;
    static const struct { uint32_t message, field; uint64_t value; const char *sentence; } cases[] = {
        {2, 3, 0, "an unknown type"}, {2, 3, 5, "an unknown type"}, {2, 3, UINT64_MAX, "an unknown type"},
        {2, 24, 1, "suffixes"}, {3, 5, 0, "escaped"},
    };
    struct tiny t;
    struct pd_buffer model, m = {0};
    tiny_make(&t);
    for (size_t i = 0; i <= PD_COUNT(cases); i++) {
        const char *sentence = i < PD_COUNT(cases) ? cases[i].sentence : "character rules";
        tiny_model(&model, &t);
        if (i < PD_COUNT(cases)) pd_proto_write_varint(&m, cases[i].field, cases[i].value);
        else pd_proto_write_bytes(&m, 2, "rules", 5);
        tiny_message(&model, i < PD_COUNT(cases) ? cases[i].message : 3, &m);
        assert_int_equal(open_bytes((const uint8_t *)model.data, model.size), PERIDOT_ERROR_UNSUPPORTED);
        assert_non_null(strstr(peridot_last_error(), sentence));
        free(model.data);
    }
    free(m.data);
}

static void test_wrong_files(void **state)
{
    (void)state;
    static const struct { const char *content; peridot_status status; const char *sentence; } cases[] = {
        {"", PERIDOT_ERROR_FORMAT, "not a sentencepiece model"},
        {"Once upon a time", PERIDOT_ERROR_FORMAT, "not a sentencepiece model: it is a text of 16 bytes"},
        {"<html>", PERIDOT_ERROR_FORMAT, "not a sentencepiece model: it is a web page"},
        {" {\"model\": {\"type\": \"B", PERIDOT_ERROR_FORMAT, "cut short"},
        {" {\"model\": {\"type\": \"BPE\"}}", PERIDOT_ERROR_FORMAT, "vocab"},
        {"GGUF", PERIDOT_ERROR_FORMAT, "tiny.model"},
    };
    peridot_vocab *v;
    for (size_t i = 0; i < PD_COUNT(cases); i++) {
        write_file(in_folder("tiny.model"), cases[i].content, strlen(cases[i].content));
        assert_int_equal(peridot_vocab_open(&v, in_folder("tiny.model")), cases[i].status);
        assert_non_null(strstr(peridot_last_error(), cases[i].sentence));
    }
    assert_int_equal(peridot_vocab_open(&v, in_folder("none")), PERIDOT_ERROR_IO);
    assert_int_equal(peridot_vocab_open(&v, folder), PERIDOT_ERROR_UNSUPPORTED);
    assert_int_equal(peridot_vocab_open(&v, NULL), PERIDOT_ERROR_ARGUMENT);
    assert_null(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spoilt_gguf), cmocka_unit_test(test_no_bos), cmocka_unit_test(test_unknown_pads),
        cmocka_unit_test(test_phi_end), cmocka_unit_test(test_odd_gguf), cmocka_unit_test(test_no_cuts),
        cmocka_unit_test(test_truncated_model), cmocka_unit_test(test_damaged_model),
        cmocka_unit_test(test_unsupported_model),
        cmocka_unit_test(test_wrong_files),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

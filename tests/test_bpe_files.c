/* Spoilt vocabularies with merges: each is refused with one sentence that says what is wrong, or works; none crashes
 * (the point of running this under AddressSanitizer). */
#include "bpe_fixture.h"
#include "text_shared.h"

#include <stddef.h>

/* ---- tokenizer.json ---- */

/* Replaces one part of a vocabulary. */
struct spoilt {
    size_t part;               /* offset in struct json_parts */
    const char *with;
    peridot_status status;
    const char *sentence;
};

#define PART(name) offsetof(struct json_parts, name)
#define FORMAT PERIDOT_ERROR_FORMAT
#define UNSUPPORTED PERIDOT_ERROR_UNSUPPORTED
#define SEQUENCE(list, item) "{\"type\": \"Sequence\", \"" list "\": [" item "]}"
#define DIGITS "{\"type\": \"Digits\", \"individual_digits\": true}"

#define FOUR(step) step ", " step ", " step ", " step

static const struct spoilt spoilt_bytes[] = {
    {PART(model), "\"type\": \"Unigram\",", UNSUPPORTED, "the model \"Unigram\" is not supported"},
    {PART(model), "\"type\": \"WordPiece\",", UNSUPPORTED, "\"WordPiece\""},
    {PART(model), "\"type\": 7,", UNSUPPORTED, "not supported"},
    {PART(model), "\"dropout\": 0.1,", UNSUPPORTED, "\"dropout\""},
    {PART(model), "\"end_of_word_suffix\": \"</w>\",", UNSUPPORTED, "\"end_of_word_suffix\""},
    {PART(model), "\"continuing_subword_prefix\": \"##\",", UNSUPPORTED, "\"continuing_subword_prefix\""},
    {PART(normalizer), "{\"type\": \"NFKC\"}", UNSUPPORTED, "the normalizer \"NFKC\" is not supported"},
    {PART(normalizer), SEQUENCE("normalizers", "{\"type\": \"Lowercase\"}"), UNSUPPORTED, "\"Lowercase\""},
    {PART(normalizer), SEQUENCE("other", ""), FORMAT, "no normalizers"},
    {PART(normalizer), SEQUENCE("normalizers", SEQUENCE("normalizers", "")), UNSUPPORTED, "\"Sequence\""},
    {PART(normalizer), "7", UNSUPPORTED, "no type"},
    {PART(normalizer), ESCAPE, UNSUPPORTED, "byte-level"},
    {PART(pre_tokenizer), "null", UNSUPPORTED, "neither is byte-level"},
    {PART(pre_tokenizer), "{\"type\": \"Punctuation\"}", UNSUPPORTED, "the pre_tokenizer \"Punctuation\""},
    {PART(pre_tokenizer), "{\"type\": \"Digits\", \"individual_digits\": false}", UNSUPPORTED, "\"Digits\" has"},
    {PART(pre_tokenizer), SEQUENCE("pretokenizers", BYTE_LEVEL("true") ", " DIGITS), UNSUPPORTED, "\"Digits\" has"},
    {PART(pre_tokenizer), REMOVED("a", "false"), UNSUPPORTED, "\"Split\" has"},
    {PART(pre_tokenizer), PRE(REMOVED("a", "true") ", " SPLIT("b")), UNSUPPORTED, "\"Split\" has"},
    {PART(pre_tokenizer), PRE(SPLIT("b") ", " REMOVED("a", "true")), UNSUPPORTED, "\"Split\" has"},
    {PART(pre_tokenizer), PRE(FOUR(SPLIT("a")) ", " FOUR(SPLIT("b")) ", " SPLIT("c")), UNSUPPORTED, "\"Split\" has"},
    {PART(pre_tokenizer), "{\"type\": \"ByteLevel\", \"add_prefix_space\": true}", UNSUPPORTED, "settings"},
    {PART(pre_tokenizer), SPLIT("a"), UNSUPPORTED, "neither is byte-level"},
    {PART(pre_tokenizer), PRE("{\"type\": \"Split\", \"pattern\": {\"Regex\": \"a\"}, \"behavior\": \"Removed\"}"),
     UNSUPPORTED, "Split"},
    {PART(pre_tokenizer), PRE(SPLIT("a(")), UNSUPPORTED, "not understood: missing closing parenthesis"},
    {PART(pre_tokenizer), PRE(SPLIT("\\\\h+")), UNSUPPORTED, "an escape"},
    {PART(pre_tokenizer), PRE(SPLIT("a\\\\")), UNSUPPORTED, "an escape"},
    {PART(pre_tokenizer), PRE(SPLIT("\\\\p{L")), UNSUPPORTED, "an escape"},
    {PART(pre_tokenizer), PRE(SPLIT("\\\\p{Nonesuch}")), UNSUPPORTED, "not understood"},
    {PART(pre_tokenizer), PRE(SPLIT("a|(?=b)")), UNSUPPORTED, "can match no text"},
    {PART(pre_tokenizer), PRE(SPLIT("[a&&b]")), UNSUPPORTED, "an intersection"},
    {PART(pre_tokenizer), PRE(SPLIT("[[:alpha:]]")), UNSUPPORTED, "a class within"},
    {PART(pre_tokenizer), PRE(SPLIT("(*ACCEPT)")), UNSUPPORTED, "a verb"},
    {PART(pre_tokenizer), PRE(SPLIT("a{1,3}+")), UNSUPPORTED, "a repetition"},
    {PART(pre_tokenizer), PRE(SPLIT("a\\u0000b")), UNSUPPORTED, "\"Split\" has settings"},
    {PART(post_processor), "{\"type\": \"BertProcessing\"}", UNSUPPORTED, "the post_processor \"BertProcessing\""},
    {PART(decoder), "{\"type\": \"a\\u001b[1m\\u009bb\"}", UNSUPPORTED, "the decoder \"a\\x1b[1m\\xc2\\x9bb\" is not"},
    {PART(decoder), "{\"type\": \"WordPiece\"}", UNSUPPORTED, "the decoder \"WordPiece\""},
    {PART(decoder), "null", UNSUPPORTED, "decoder"},
    {PART(vocab), "\"he\": 256, \"ll\": 256", FORMAT, "have one id, 256"},
    {PART(vocab), "\"he\": 4000000000", FORMAT, "piece \"he\" of the vocabulary has no id"},
    {PART(vocab), "\"he\": -1", FORMAT, "no id"},
    {PART(vocab), "\"he\": \"256\"", FORMAT, "no id"},
    {PART(vocab), "\"he\": 256", FORMAT, "piece \"<|begin|>\" of the vocabulary has no id below 257"},
    {PART(merges), "\"h e\", \"h e\"", FORMAT, "twice"},
    {PART(merges), "\"h e\", \"h z\"", FORMAT, "merge 1 of the vocabulary names or makes what is not a piece"},
    {PART(merges), "\"h nonesuch\"", FORMAT, "merge 0"},
    {PART(merges), "\"he\"", FORMAT, "not two pieces"},
    {PART(merges), "\"h  e\"", FORMAT, "not two pieces"},
    {PART(merges), "\" he\"", FORMAT, "a half"},
    {PART(merges), "[\"h\", \"e\", \"l\"]", FORMAT, "not two pieces"},
    {PART(merges), "[\"h\"]", FORMAT, "not two pieces"},
    {PART(merges), "[\"h\", \"\"]", FORMAT, "a half"},
    {PART(merges), "7", FORMAT, "not two pieces"},
    {PART(merges), "[\"h\", \"\u4e2d\"]", FORMAT, "a half"},
    {PART(added), "{\"id\": 256, \"content\": \"x\"}", FORMAT, "added token \"x\" has the id of piece \"he\""},
    {PART(added), ADDED("280", "", "true", "false"), FORMAT, "piece 280 of the vocabulary is empty"},
    {PART(added), "{\"id\": 256}", FORMAT, "no content"},
    {PART(added), "{\"content\": \"x\"}", FORMAT, "piece \"x\""},
    {PART(added), "7", FORMAT, "no content"},
    {PART(added), "{\"id\": 280, \"content\": \"x\", \"single_word\": true}", UNSUPPORTED,
     "added token \"x\" is \"single_word\""},
    {PART(added), ADDED("281", "x", "true", "false"), FORMAT, "no id"},
};

static const struct spoilt spoilt_characters[] = {
    {PART(normalizer), "{\"type\": \"Replace\", \"pattern\": {\"Regex\": \" \"}, \"content\": \"\u2581\"}", UNSUPPORTED,
     "\"Replace\" has"},
    {PART(normalizer), "{\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": \"_\"}", UNSUPPORTED,
     "\"Replace\" has"},
    {PART(normalizer), "{\"type\": \"Prepend\", \"prepend\": \" \"}", UNSUPPORTED, "\"Prepend\" has"},
    {PART(normalizer), "null", UNSUPPORTED, "\"Split\" has"},
    {PART(normalizer), SEQUENCE("normalizers", ESCAPE ", {\"type\": \"NFC\"}"), UNSUPPORTED,
     "byte-level tokenizers only"},
    {PART(pre_tokenizer), SPLIT("a"), UNSUPPORTED, "byte-level tokenizers only"},
    {PART(pre_tokenizer), METASPACE("sometimes", "true"), UNSUPPORTED, "\"Metaspace\" has"},
    {PART(pre_tokenizer), "{\"type\": \"Metaspace\", \"replacement\": \"_\"}", UNSUPPORTED, "\"Metaspace\" has"},
    {PART(decoder), "{\"type\": \"Strip\", \"content\": \" \", \"start\": 2, \"stop\": 0}", UNSUPPORTED,
     "\"Strip\" has"},
    {PART(decoder), "{\"type\": \"Fuse\"}", UNSUPPORTED, "decoder"},
    {PART(decoder), "{\"type\": \"ByteLevel\"}", UNSUPPORTED, "decoder"},
    {PART(model), "\"type\": \"BPE\",", FORMAT, "no unknown piece and no byte pieces"},
    {PART(model), "\"type\": \"BPE\", \"unk_token\": \"nonesuch\",", FORMAT, "no unknown piece"},
    {PART(vocab), "\"<unk>\": 0, \"<bos>\": 1, \"\\n\": 2, \"\u2581\u2581\u2581\": 3, \"<start_of_turn>\": 4, "
                  "\"a\\u0000\": 5, \"<0x00>\": 6",
     FORMAT, "not a piece"},
};

static void check_spoilt(const struct json_parts *whole, const struct spoilt *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct json_parts p = *whole;
        peridot_vocab *v;
        memcpy((char *)&p + cases[i].part, &cases[i].with, sizeof cases[i].with);
        peridot_status status = peridot_vocab_open(&v, json_write(&p));
        if (status != cases[i].status || !strstr(peridot_last_error(), cases[i].sentence))
            fail_msg("case %zu: status %d, \"%s\" does not say \"%s\"", i, status, status ? peridot_last_error() : "",
                     cases[i].sentence);
        assert_null(v);
        assert_non_null(strstr(peridot_last_error(), "tiny.json: "));
    }
}

static void test_spoilt_json(void **state)
{
    (void)state;
    check_spoilt(&byte_parts, spoilt_bytes, PD_COUNT(spoilt_bytes));
    check_spoilt(&char_parts, spoilt_characters, PD_COUNT(spoilt_characters));
}

/* Mistral's own form is told from what is no tokenizer at all. */
static void test_tekken(void **state)
{
    (void)state;
    static const char tekken[] = "{\"config\": {\"pattern\": \"a\", \"version\": \"v3\"}, \"vocab\": []}";
    peridot_vocab *v;
    write_file(in_folder("tiny.json"), tekken, sizeof tekken - 1);
    assert_int_equal(peridot_vocab_open(&v, in_folder("tiny.json")), UNSUPPORTED);
    assert_non_null(strstr(peridot_last_error(), "this is Mistral's tekken.json"));
    write_file(in_folder("tiny.json"), "{}", 2);
    assert_int_equal(peridot_vocab_open(&v, in_folder("tiny.json")), FORMAT);
}

static void test_twice(void **state)
{
    (void)state;
    struct json_parts p = byte_parts;
    peridot_vocab *v;
    p.added = "";
    p.vocab = "\"he\": 256, \"he\": 257";
    p.merges = "";
    assert_int_equal(peridot_vocab_open(&v, json_write(&p)), FORMAT);
    assert_non_null(strstr(peridot_last_error(), "pieces 256 and 257 of the vocabulary are the same"));
}

/* A token that is looked for after a space was put before the text would be found elsewhere. */
static void test_normalized(void **state)
{
    (void)state;
    struct json_parts p = char_parts;
    peridot_vocab *v;
    p.added = ADDED("0", "<unk>", "true", "true") ", " ADDED("20", "<b", "false", "true");
    peridot_vocab_close(open_vocab(json_write(&p)));
    p.normalizer = SEQUENCE("normalizers", PREPEND ", " ESCAPE);
    assert_int_equal(peridot_vocab_open(&v, json_write(&p)), UNSUPPORTED);
    assert_non_null(strstr(peridot_last_error(), "added token \"<b\" is \"normalized\""));
}

/* A pattern that tries 2^n ways stops at a number of steps. */
static void test_slow_pattern(void **state)
{
    (void)state;
    struct json_parts p = byte_parts;
    p.pre_tokenizer = PRE(SPLIT("(a+a+)+[bc]"));
    peridot_vocab *v = open_vocab(json_write(&p));
    int32_t *ids;
    size_t n;
    expect(v, "aab", 0, "a|ab|");
    char text[64];
    memset(text, 'a', sizeof text);
    assert_int_equal(peridot_encode(&ids, &n, v, text, sizeof text, 0), UNSUPPORTED);
    assert_null(ids);
    assert_non_null(strstr(peridot_last_error(), "takes too long at byte 0"));
    peridot_vocab_close(v);
}

/* ---- bytes that may be anything ---- */

static void use(const peridot_vocab *v)
{
    static const char text[] =
        "hello  the 1234\n\n\ta\u2581\u00e9\u20ac zzzz\xff\xe2\x96 q\0x<bos><|begin|><b>h\u00e9 he aaaaaaa's";
    for (unsigned flags = 0; flags < 4; flags++) {
        int32_t *ids;
        size_t n, size;
        char *back;
        if (peridot_encode(&ids, &n, v, text, sizeof text - 1, flags) != PERIDOT_OK) continue;
        for (size_t i = 0; i < n && flags == 0; i++)
            assert_int_not_equal(v->tokenizer->pieces.piece[ids[i]].type, PD_PIECE_CONTROL);
        assert_int_equal(peridot_decode(&back, &size, v, ids, n), PERIDOT_OK);
        peridot_free(back);
        peridot_free(ids);
    }
}

static peridot_status open_bytes(const uint8_t *data, size_t size)
{
    peridot_vocab v = {.tokenizer = calloc(1, sizeof *v.tokenizer)};
    peridot_status status = pd_pieces_read_json(&v.tokenizer->pieces, data, size);
    if (status == PERIDOT_OK) status = pd_tokenizer_build(v.tokenizer);
    if (status == PERIDOT_OK) use(&v);
    else assert_true(strlen(peridot_last_error()) > 10);
    pd_tokenizer_close(v.tokenizer);
    return status;
}

/* Each in an allocation of its own, so that AddressSanitizer sees a byte read past the end. */
static void check_truncated(const struct pd_buffer *b)
{
    assert_int_equal(open_bytes((const uint8_t *)b->data, b->size), PERIDOT_OK);
    for (size_t size = 0; size < b->size - 1; size++) {   /* but for the newline at its end */
        uint8_t *part = malloc(size + 1);
        memcpy(part + 1, b->data, size);
        assert_int_not_equal(open_bytes(part + 1, size), PERIDOT_OK);
        free(part);
    }
}

static void check_damaged(const struct pd_buffer *b)
{
    uint32_t seed = 1, opened = 0;
    uint8_t *copy = malloc(b->size);
    for (int run = 0; run < 2000; run++) {
        memcpy(copy, b->data, b->size);
        for (uint32_t k = next_random(&seed) % 3 + 1; k; k--) {
            uint32_t at = next_random(&seed) % (uint32_t)b->size;
            copy[at] =
                run % 2 ? copy[next_random(&seed) % b->size] : (uint8_t)(copy[at] ^ 1u << next_random(&seed) % 7);
        }
        opened += open_bytes(copy, b->size) == PERIDOT_OK;
    }
    assert_true(opened > 20 && opened < 1980);   /* both ways were taken */
    free(copy);
}

static void test_damaged_json(void **state)
{
    (void)state;
    struct pd_buffer bytes = json_make(&byte_parts), characters = json_make(&char_parts);
    check_truncated(&bytes);
    check_truncated(&characters);
    check_damaged(&bytes);
    check_damaged(&characters);
    free(bytes.data);
    free(characters.data);
}

/* ---- GGUF ---- */

static const char *write_gguf(const peridot_vocab *v, const char *pre)
{
    write_byte_level_gguf(in_folder("tiny.gguf"), &v->tokenizer->pieces, pre);
    return in_folder("tiny.gguf");
}

static void test_gguf(void **state)
{
    (void)state;
    static const struct { const char *pre, *pieces, *bos; } cases[] = {
        {"llama-bpe", "hello|5|5|3|4|xyz|", "<|begin|>|a|<b>|"}, {"falcon3", "hello|5|5|3|4|xyz|", "<|begin|>|a|<b>|"},
        {"gpt-2", "hello|5|5|34|x|y|z|", "a|<b>|"}, {"default", "hello|5|5|34|x|y|z|", "a|<b>|"},
        {NULL, "hello|5|5|34|x|y|z|", "a|<b>|"},
    };
    peridot_vocab *json = open_vocab(json_write(&byte_parts)), *v;
    for (size_t i = 0; i < PD_COUNT(cases); i++) {
        v = open_vocab(write_gguf(json, cases[i].pre));
        expect(v, "hello5534xyz", 0, cases[i].pieces);
        expect(v, "a<b>", BOS, cases[i].bos);
        peridot_vocab_close(v);
    }
    assert_int_equal(peridot_vocab_open(&v, write_gguf(json, "nonesuch")), UNSUPPORTED);
    assert_non_null(strstr(peridot_last_error(), "tokenizer.ggml.pre \"nonesuch\" is not supported (known: \"llama-"));
    peridot_vocab_close(json);
}

/* Two letters and a merge, with one thing wrong. */
struct small {
    const char *text[260], *merges[2];
    int32_t type[260];
    uint64_t n, n_types, n_merges;
    bool prefix;
};

static const char *write_small(const struct small *s)
{
    struct pd_string text[PD_COUNT(s->text)], merges[2];
    struct pd_gguf_writer *w;
    for (uint64_t i = 0; i < s->n; i++) text[i] = (struct pd_string){s->text[i], strlen(s->text[i])};
    for (uint64_t i = 0; i < s->n_merges; i++) merges[i] = (struct pd_string){s->merges[i], strlen(s->merges[i])};
    assert_int_equal(pd_gguf_writer_open(&w, in_folder("tiny.gguf")), PERIDOT_OK);
    pd_gguf_writer_add_string(w, "general.architecture", "llama");
    pd_gguf_writer_add_string(w, "tokenizer.ggml.model", "gpt2");
    pd_gguf_writer_add_strings(w, "tokenizer.ggml.tokens", s->n, text);
    pd_gguf_writer_add_array(w, "tokenizer.ggml.token_type", PD_META_INT32, s->n_types, s->type);
    if (s->n_merges) pd_gguf_writer_add_strings(w, "tokenizer.ggml.merges", s->n_merges, merges);
    pd_gguf_writer_add_bool(w, "tokenizer.ggml.add_space_prefix", s->prefix);
    assert_int_equal(pd_gguf_writer_begin(w), PERIDOT_OK);
    assert_int_equal(pd_gguf_writer_commit(w), PERIDOT_OK);
    return in_folder("tiny.gguf");
}

static void spoil_nothing(struct small *s) { (void)s; }
static void spoil_byte(struct small *s) { s->text[' '] = "nonesuch"; }
static void spoil_type(struct small *s) { s->type['~'] = PD_PIECE_UNUSED; }
static void drop_bytes(struct small *s) { s->text[0x1f] = "nonesuch"; s->text[0x7f] = "none"; }
static void spoil_types(struct small *s) { s->n_types--; }
static void spoil_byte_type(struct small *s) { s->type[256] = PD_PIECE_BYTE; }
static void spoil_user(struct small *s) { s->text[257] = "\xb8\xad"; }
static void spoil_twice(struct small *s) { s->text[256] = "a"; }
static void spoil_no_merges(struct small *s) { s->n_merges = 0; }
static void spoil_merge(struct small *s) { s->merges[0] = "ab"; }
static void spoil_merge_piece(struct small *s) { s->merges[0] = "a c"; }
static void spoil_merge_twice(struct small *s) { s->merges[s->n_merges++] = "a b"; }
static void spoil_prefix(struct small *s) { s->prefix = true; }

static void test_spoilt_gguf(void **state)
{
    (void)state;
    static const struct { void (*spoil)(struct small *s); const char *sentence; } cases[] = {
        {spoil_byte, "byte 0x20"}, {spoil_type, "byte 0x7E"}, {drop_bytes, NULL},
        {spoil_types, "257 elements for 258 pieces"},
        {spoil_byte_type, "piece 256"}, {spoil_user, "piece 257 of the vocabulary is not UTF-8"},
        {spoil_twice, "are the same"},
        {spoil_no_merges, "tokenizer.ggml.merges is missing"}, {spoil_merge, "not two pieces"},
        {spoil_merge_piece, "not a piece"},
        {spoil_merge_twice, "twice"}, {spoil_prefix, "add_space_prefix"}, {spoil_nothing, NULL},
    };
    static char names[256][4];
    for (size_t i = 0; i < PD_COUNT(cases); i++) {
        struct small s = {.merges = {"a b"}, .n = 258, .n_types = 258, .n_merges = 1};
        for (int k = 0; k < 256; k++) {
            struct pd_buffer b = {0};
            pd_byte_level_write(&b, &(char){(char)k}, 1);
            pd_buffer_end(&b);
            strcpy(names[k], b.data);
            free(b.data);
            s.text[k] = names[k];
        }
        for (size_t k = 0; k < s.n; k++) s.type[k] = PD_PIECE_NORMAL;
        s.text[256] = "ab";
        s.text[257] = "\u4e2d";
        s.type[257] = PD_PIECE_USER;
        cases[i].spoil(&s);
        peridot_vocab *v;
        peridot_status status = peridot_vocab_open(&v, write_small(&s));
        if (cases[i].sentence) {
            if (status == PERIDOT_OK || !strstr(peridot_last_error(), cases[i].sentence))
                fail_msg("case %zu: \"%s\" does not say \"%s\"", i, status ? peridot_last_error() : "",
                         cases[i].sentence);
        } else {
            expect(v, "abc\u4e2d", 0, "ab|c|\u4e2d|");
            if (cases[i].spoil == drop_bytes) expect(v, "c\x7f" "a\x1f" "b", 0, "c|a|b|");
            peridot_vocab_close(v);
        }
    }
}

/* ---- Gemma 4's vocabulary in a GGUF file ---- */

static void refuse_tiny(const struct tiny *t, const char *sentence)
{
    peridot_vocab *v;
    assert_int_equal(peridot_vocab_open(&v, tiny_gguf(t)), FORMAT);
    if (!strstr(peridot_last_error(), sentence)) fail_msg("\"%s\" does not say \"%s\"", peridot_last_error(), sentence);
}

static void test_gemma4(void **state)
{
    (void)state;
    static const char *const other[] = {"h e", "h nonesuch"}, *const gap[] = {"h e e"}, *const twice[] = {"h e", "h e"};
    static const int32_t suppress[] = {7, -1, 1 << 30, 7, 9};
    struct tiny t;
    tiny_make_gemma4(&t);
    t.suppress = suppress, t.n_suppress = PD_COUNT(suppress);
    for (int ollama = 0; ollama < 2; ollama++) {
        t.model = ollama ? "llama" : "gemma4";
        t.pre = ollama ? "gemma4" : NULL;
        peridot_vocab *v = open_tiny(&t);
        expect(v, "hello the model", BOS, "<bos>|hello|\u2581the|\u2581|model|");
        expect(v, "  \n\n\n", 0, "\u2581\u2581|\n\n|\n|");
        expect(v, "</s><|turn><channel|>", 0,
               "<|<0x2F>|s|>|<|<0x7C>|t|u|r|n|>|<|c|h|a|n|n|e|l|<0x7C>|>|");
        expect(v, "<|turn><|channel>", SPECIAL, "<|turn>|<|channel>|");
        assert_false(pd_tokenizer_is_stop(v->tokenizer, id_of(v, "</s>")));
        assert_true(pd_tokenizer_is_stop(v->tokenizer, id_of(v, "<turn|>")));
        assert_true(pd_tokenizer_is_stop(v->tokenizer, id_of(v, "<|tool_response>")));
        assert_true(pd_tokenizer_is_stop(v->tokenizer, id_of(v, "<eos>")));
        assert_int_equal(pd_tokenizer_n_suppressed(v->tokenizer), 2);
        assert_true(pd_tokenizer_is_suppressed(v->tokenizer, 7) && pd_tokenizer_is_suppressed(v->tokenizer, 9));
        peridot_vocab_close(v);
    }
    t.merges = other, t.n_merges = 2;
    refuse_tiny(&t, "merge 1 of the vocabulary names or makes what is not a piece");
    t.merges = gap, t.n_merges = 1;
    refuse_tiny(&t, "merge 0 of the vocabulary is not two pieces");
    t.merges = twice, t.n_merges = 2;
    refuse_tiny(&t, "twice");
    t.merges = NULL;
    refuse_tiny(&t, "tokenizer.ggml.merges is missing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spoilt_json), cmocka_unit_test(test_gemma4), cmocka_unit_test(test_twice),
        cmocka_unit_test(test_tekken), cmocka_unit_test(test_normalized), cmocka_unit_test(test_slow_pattern),
        cmocka_unit_test(test_damaged_json), cmocka_unit_test(test_gguf), cmocka_unit_test(test_spoilt_gguf),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

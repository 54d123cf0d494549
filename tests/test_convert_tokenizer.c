/* Tokenizers of converted models: a GGUF file made from a folder gives the ids that the folder gives. */
#include "convert_fixture.h"

#include "format/format.h"

#include <math.h>

/* Where CMake's PERIDOT_SHARED says, or the environment's. */
static const char *shared(const char *folder_name, const char *name)
{
    static char path[512];
    const char *place = getenv("PERIDOT_SHARED");
    snprintf(path, sizeof path, "%s/data/%s/%s", place ? place : PERIDOT_SHARED, folder_name, name);
    return path;
}

static void expect_same_ids(const peridot_vocab *a, const peridot_vocab *b, const char *text, size_t size)
{
    int32_t *x, *y;
    size_t n, m;
    EXPECT_OK(peridot_encode(&x, &n, a, text, size, PERIDOT_ENCODE_BOS));
    EXPECT_OK(peridot_encode(&y, &m, b, text, size, PERIDOT_ENCODE_BOS));
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n * sizeof *x);
    peridot_free(x);
    peridot_free(y);
}

static bool has_token(const struct pd_checkpoint *c, const char *text)
{
    const struct pd_meta *tokens = pd_checkpoint_find_meta(c, "tokenizer.ggml.tokens");
    for (uint64_t i = 0; i < tokens->n; i++) {
        struct pd_string s;
        if (pd_meta_string(&s, tokens, i) && s.size == strlen(text) && !memcmp(s.data, text, s.size)) return true;
    }
    return false;
}

/* Whole texts with all kinds of characters, line by line and at once. */
static void compare_texts(const peridot_vocab *a, const peridot_vocab *b)
{
    static const char *const texts[] = {"small_input.txt", "utf8_input.txt"};
    for (size_t i = 0; i < PD_COUNT(texts); i++) {
        struct pd_map map;
        EXPECT_OK(pd_map_open(&map, shared("vectors", texts[i])));
        const char *text = (const char *)map.data;
        for (uint64_t at = 0, end; at < map.size; at = end + 1) {
            for (end = at; end < map.size && text[end] != '\n';) end++;
            expect_same_ids(a, b, text + at, end - at);
        }
        expect_same_ids(a, b, text, map.size);
        pd_map_close(&map);
    }
}

/* A copy, never a link: what a test writes under this name must not reach the shared file. */
static void copy_shared(const char *file, const char *as)
{
    struct pd_map map;
    EXPECT_OK(pd_map_open(&map, shared("tokenizers", file)));
    write_file(as, map.data, map.size);
    pd_map_close(&map);
}

static void check_tokenizer(const char *file, const char *as, const char *family, uint32_t n_pieces, uint32_t n_rows)
{
    peridot_vocab *a, *b;
    if (!pd_is_file(shared("tokenizers", file))) skip();
    write_model(&(struct model){.vocab_size = n_rows, .family = family});
    copy_shared(file, as);
    write_text("tokenizer_config.json", "{\"chat_template\":[{\"name\":\"default\",\"template\":\"{{ messages }}\\n"
               "<start_of_turn>\"},{\"name\":\"tool_use\",\"template\":\"{{ tools + messages }}\"}]}");
    EXPECT_OK(convert(folder, "q8_0"));
    assert_true(stats.has_tokenizer);
    EXPECT_OK(peridot_vocab_open(&a, folder));
    EXPECT_OK(peridot_vocab_open(&b, in_folder("x.gguf")));
    assert_int_equal(peridot_vocab_size(a), n_pieces);
    assert_int_equal(peridot_vocab_size(b), n_rows);
    compare_texts(a, b);
    peridot_vocab_close(a);
    peridot_vocab_close(b);
    struct pd_checkpoint *c = open_file(in_folder("x.gguf"));
    expect_text(c, "tokenizer.chat_template", "{{ messages }}\\n<start_of_turn>");
    expect_text(c, "tokenizer.chat_template.tool_use", "{{ tools + messages }}");
    /* User-defined pieces as llama.cpp matches them: before spaces are escaped. */
    if (strcmp(family, "gemma") == 0) assert_true(has_token(c, "  ") && !has_token(c, "\xe2\x96\x81\xe2\x96\x81"));
    assert_true(n_rows == n_pieces || has_token(c, "[PAD262207]"));
    pd_checkpoint_close(c);
    remove_model();
}

static void test_gemma2_tokenizer(void **state)
{
    (void)state;
    check_tokenizer("gemma2.model", "tokenizer.model", "gemma", 256000, 256000);
}

/* Rows beyond the pieces are filled up. */
static void test_gemma3_tokenizer(void **state)
{
    (void)state;
    check_tokenizer("gemma3.model", "tokenizer.model", "gemma", 262145, 262208);
}

static void test_llama2_tokenizer(void **state)
{
    (void)state;
    check_tokenizer("llama2.model", "tokenizer.model", "llama", 32000, 32000);
}

static void test_llama3_tokenizer(void **state)
{
    (void)state;
    check_tokenizer("llama3.tokenizer.json", "tokenizer.json", "llama", 128256, 128256);
}

/* A sentencepiece-like vocabulary that lists merges, which are not in the order of ids, nor of length; of Llama 2, or
 * with Gemma 4's steps and marks. */
static void write_merges(bool gemma4)
{
    static const char *const pieces[] = {"\xe2\x96\x81", "a", "b", "c", "ab", "bc", "abc", "\xe2\x96\x81""a",
        "\xe2\x96\x81""ab", "cc"};
    static char json[16000];
    int at = snprintf(json, sizeof json,
        "{\"added_tokens\":[{\"id\":0,\"content\":\"<unk>\",\"special\":true},"
        "{\"id\":1,\"content\":\"%s\",\"special\":true}%s],"
        "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"%s\"}}]},"
        "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[%s"
        "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xe2\x96\x81\"}]},\"pre_tokenizer\":null,"
        "\"decoder\":{\"type\":\"Sequence\",\"decoders\":["
        "{\"type\":\"Replace\",\"pattern\":{\"String\":\"\xe2\x96\x81\"},\"content\":\" \"},"
        "{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}%s]},"
        "\"model\":{\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"byte_fallback\":true,\"fuse_unk\":true,"
        "\"vocab\":{\"<unk>\":0,\"%s\":1", gemma4 ? "<bos>" : "<s>",
        gemma4 ? ",{\"id\":268,\"content\":\"<|turn>\",\"special\":true},{\"id\":269,\"content\":\"<turn|>\","
                 "\"special\":true},{\"id\":270,\"content\":\"<|tool_response>\",\"special\":true}" : "",
        gemma4 ? "<bos>" : "<s>", gemma4 ? "" : "{\"type\":\"Prepend\",\"prepend\":\"\xe2\x96\x81\"},",
        gemma4 ? "" : ",{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}", gemma4 ? "<bos>" : "<s>");
    for (int i = 0; i < 256; i++) at += snprintf(json + at, sizeof json - (size_t)at, ",\"<0x%02X>\":%d", i, i + 2);
    for (size_t i = 0; i < PD_COUNT(pieces); i++)
        at += snprintf(json + at, sizeof json - (size_t)at, ",\"%s\":%zu", pieces[i], 258 + i);
    snprintf(json + at, sizeof json - (size_t)at,
             "},\"merges\":[[\"b\",\"c\"],[\"\xe2\x96\x81\",\"a\"],[\"c\",\"c\"],"
             "[\"a\",\"b\"],[\"a\",\"bc\"],[\"ab\",\"c\"],"
             "[\"\xe2\x96\x81""a\",\"b\"]]}}");
    write_text("tokenizer.json", json);
}

static void compare_merged(void)
{
    static const char *const texts[] = {"abc", "ab abc bcc", "cccab", " aab  b", "abccabc\xc3\xa4 d", "<s>a",
        "<|turn>a"};
    peridot_vocab *a, *b;
    EXPECT_OK(convert(folder, "f32"));
    EXPECT_OK(peridot_vocab_open(&a, folder));
    EXPECT_OK(peridot_vocab_open(&b, in_folder("x.gguf")));
    for (size_t i = 0; i < PD_COUNT(texts); i++) expect_same_ids(a, b, texts[i], strlen(texts[i]));
    peridot_vocab_close(a);
    peridot_vocab_close(b);
}

/* A GGUF file says the same by scores. */
static void test_merges(void **state)
{
    (void)state;
    write_model(&(struct model){.vocab_size = 280, .family = "llama"});
    write_merges(false);
    compare_merged();
    struct pd_checkpoint *c = open_file(in_folder("x.gguf"));
    expect_text(c, "tokenizer.ggml.model", "llama");
    expect_text(c, "tokenizer.ggml.bos_token_id", "1");
    expect_text(c, "tokenizer.ggml.unknown_token_id", "0");
    expect_text(c, "tokenizer.ggml.add_space_prefix", "true");
    pd_checkpoint_close(c);
    remove_model();
}

/* Gemma 4's has the merges. bos comes first whatever a configuration says. */
static void test_gemma4(void **state)
{
    (void)state;
    int32_t *ids;
    size_t n;
    peridot_vocab *v;
    write_model(&(struct model){.vocab_size = 280, .family = "gemma"});
    write_merges(true);
    write_text("generation_config.json", "{\"eos_token_id\": [1, 269, 270], \"suppress_tokens\": [267, 266, 900]}");
    write_text("tokenizer_config.json", "{\"add_bos_token\": false}");
    compare_merged();
    EXPECT_OK(peridot_vocab_open(&v, folder));
    EXPECT_OK(peridot_encode(&ids, &n, v, "abc", 3, PERIDOT_ENCODE_BOS));
    assert_int_equal(ids[0], 1);
    peridot_free(ids);
    peridot_vocab_close(v);
    struct pd_checkpoint *c = open_file(in_folder("x.gguf"));
    expect_text(c, "tokenizer.ggml.model", "gemma4");
    assert_int_equal(pd_checkpoint_find_meta(c, "tokenizer.ggml.merges")->n, 7);
    expect_text(c, "tokenizer.ggml.suppress_tokens", "[266, 267]");
    expect_text(c, "tokenizer.ggml.add_bos_token", "true");
    expect_text(c, "tokenizer.ggml.add_space_prefix", "false");
    expect_text(c, "tokenizer.ggml.eot_token_id", "269");
    expect_text(c, "tokenizer.ggml.eom_token_id", "270");
    pd_checkpoint_close(c);
    remove_model();
}

/* What a publisher recommends: from a folder, from the file that is converted from it, and what of it is not used. */
static void expect_recommended(const char *path, uint32_t members, const char *numbers, const char *ignored)
{
    peridot_file *f;
    peridot_sampling p = {.size = sizeof p, .temperature = 9, .top_k = 9, .top_p = 9, .min_p = 9, .repeat_penalty = 9};
    const char *sentence;
    char text[128];
    EXPECT_OK(peridot_file_open(&f, path));
    uint32_t got = peridot_file_recommends(f, &p, 0, &sentence);
    snprintf(text, sizeof text, "%g %u %g %g %g", (double)p.temperature, p.top_k, (double)p.top_p, (double)p.min_p,
             (double)p.repeat_penalty);
    assert_string_equal(text, numbers);
    assert_int_equal(got, members);
    if (!ignored) assert_null(sentence);
    else if (!sentence || !strstr(sentence, ignored)) fail_msg("%s is said, not %s", sentence, ignored);
    p = (peridot_sampling){.size = offsetof(peridot_sampling, top_p), .temperature = 9, .top_k = 9, .top_p = 9};
    got = peridot_file_recommends(f, &p, PERIDOT_RECOMMENDED_TEMPERATURE, NULL);
    assert_true(p.temperature == 9 && p.top_p == 9 && got == (members & PERIDOT_RECOMMENDED_TOP_K));
    peridot_file_close(f);
}

static void test_recommended(void **state)
{
    (void)state;
    static const struct { const char *json, *numbers; uint32_t members; const char *ignored; } rows[] = {
        {"{\"temperature\": 0.5, \"top_k\": 20, \"top_p\": 0.75, \"min_p\": 0, \"repetition_penalty\": 1.25, "
         "\"do_sample\": true}", "0.5 20 0.75 0 1.25", 31, NULL},
        {"{\"temperature\": 0.5, \"do_sample\": false}", "0 9 9 9 9", 1, NULL},
        {"{\"top_k\": -1, \"top_p\": null, \"do_sample\": null}", "9 0 9 9 9", 2, NULL},
        {"{\"eos_token_id\": 1}", "9 9 9 9 9", 0, NULL},
        {"{\"temperature\": NaN, \"min_p\": 0.5}", "9 9 9 0.5 9", 8,
         "generation_config.json: temperature is not a number from 0 to 100, and is ignored"},
        {"{\"temperature\": -1}", "9 9 9 9 9", 0, "temperature"},
        {"{\"temperature\": 1e300}", "9 9 9 9 9", 0, "temperature"},
        {"{\"temperature\": Infinity}", "9 9 9 9 9", 0, "temperature"},
        {"{\"temperature\": \"0.5\"}", "9 9 9 9 9", 0, "temperature"},
        {"{\"temperature\": [0.5]}", "9 9 9 9 9", 0, "temperature"},
        {"{\"top_k\": -2}", "9 9 9 9 9", 0, "top_k"},
        {"{\"top_k\": 2.5}", "9 9 9 9 9", 0, "top_k is not a whole number"},
        {"{\"top_k\": 1e20}", "9 9 9 9 9", 0, "top_k"},
        {"{\"top_p\": 1.5}", "9 9 9 9 9", 0, "top_p"},
        {"{\"top_p\": 0}", "9 9 1e-06 9 9", 4, NULL},
        {"{\"min_p\": true}", "9 9 9 9 9", 0, "min_p"},
        {"{\"repetition_penalty\": -1.5}", "9 9 9 9 9", 0, "repetition_penalty"},
        {"{\"do_sample\": 0}", "9 9 9 9 9", 0, "do_sample is neither true nor false"},
        {"[1", "9 9 9 9 9", 0, NULL}};
    write_model(&(struct model){.vocab_size = 280, .family = "gemma"});
    for (size_t i = 0; i < PD_COUNT(rows); i++) {
        write_text("generation_config.json", rows[i].json);
        expect_recommended(folder, rows[i].members, rows[i].numbers, rows[i].ignored);
        EXPECT_OK(convert(folder, "f32"));
        expect_recommended(in_folder("x.gguf"), rows[i].members, rows[i].numbers, NULL);
    }
    remove_model();
}

/* The keys of a GGUF file, of any type. */
static void test_recommended_keys(void **state)
{
    (void)state;
    static const struct { const char *key; float value; const char *numbers; uint32_t members; } rows[] = {
        {"temp", 0.25f, "0.25 9 9 9 9", 1}, {"top_k", 7, "9 7 9 9 9", 2}, {"top_p", 0.5f, "9 9 0.5 9 9", 4},
        {"min_p", 0.5f, "9 9 9 0.5 9", 8}, {"penalty_repeat", 1.5f, "9 9 9 9 1.5", 16},
        {"xtc_probability", 0.5f, "9 9 9 9 9", 32}, {"xtc_threshold", 0.5f, "9 9 9 9 9", 64},
        {"mirostat", 0, "9 9 9 9 9", 0}, {"penalty_last_n", 64, "9 9 9 9 9", 0},
        {"temp", NAN, NULL, 0}, {"temp", INFINITY, NULL, 0}, {"top_k", -3, NULL, 0}, {"top_p", -0.5f, NULL, 0},
        {"min_p", 3e38f, NULL, 0}, {"mirostat", 2, NULL, 0}, {"penalty_last_n", 256, NULL, 0}};
    for (size_t i = 0; i < 2 * PD_COUNT(rows); i++) {
        const char *name = rows[i / 2].key, *numbers = rows[i / 2].numbers;
        struct pd_gguf_writer *w;
        char key[64], sentence[96];
        snprintf(key, sizeof key, "general.sampling.%s", name);
        snprintf(sentence, sizeof sentence, "%s is ", key);
        EXPECT_OK(pd_gguf_writer_open(&w, in_folder("x.gguf")));
        if (i % 2) pd_gguf_writer_add_string(w, key, "0.5");
        else pd_gguf_writer_add_f32(w, key, rows[i / 2].value);
        EXPECT_OK(pd_gguf_writer_begin(w));
        EXPECT_OK(pd_gguf_writer_commit(w));
        bool good = i % 2 == 0 && numbers;
        expect_recommended(in_folder("x.gguf"), good ? rows[i / 2].members : 0, good ? numbers : "9 9 9 9 9",
                           good ? NULL : sentence);
    }
    remove(in_folder("x.gguf"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_gemma2_tokenizer, clean),
        cmocka_unit_test_teardown(test_gemma3_tokenizer, clean),
        cmocka_unit_test_teardown(test_llama2_tokenizer, clean),
        cmocka_unit_test_teardown(test_llama3_tokenizer, clean),
        cmocka_unit_test_teardown(test_merges, clean),
        cmocka_unit_test_teardown(test_gemma4, clean),
        cmocka_unit_test_teardown(test_recommended, clean),
        cmocka_unit_test_teardown(test_recommended_keys, clean),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

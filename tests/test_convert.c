/* Conversion: what comes out of Hugging Face folders is what the gguf package wrote of the same models (tests/golden), types
 * and metadata are as promised, tokenizers give the same ids, and what goes wrong leaves nothing. */
#include "format_fixture.h"

#include "format/checkpoint.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>

static peridot_convert_stats stats;

static peridot_status convert(const char *source, const char *type)
{
    peridot_convert_params params = {.type = type};
    return peridot_convert(in_folder("x.gguf"), source, &params, &stats);
}

static struct pd_checkpoint *open_file(const char *path)
{
    struct pd_checkpoint *c;
    EXPECT_OK(pd_checkpoint_open(&c, path, true));
    return c;
}

static const char *golden(const char *name)
{
    static char paths[2][512];
    static int next;
    char *path = paths[next++ % 2];
    snprintf(path, sizeof paths[0], PERIDOT_GOLDEN "/%s", name);
    return path;
}

static float *decode(const struct pd_tensor *t, uint64_t *n)
{
    assert_true(pd_tensor_n_weights(n, t));
    float *x = malloc(*n * sizeof *x);
    assert_non_null(x);
    pd_dequantize(t->dtype, x, t->data, *n);
    return x;
}

/* Root-mean-square difference, relative to b's weights. */
static double difference(const struct pd_tensor *a, const struct pd_tensor *b)
{
    uint64_t n, m;
    double squares = 0, sum = 0;
    float *x = decode(a, &n), *y = decode(b, &m);
    assert_int_equal(n, m);
    for (uint64_t i = 0; i < n; i++) {
        squares += ((double)x[i] - y[i]) * ((double)x[i] - y[i]);
        sum += (double)y[i] * y[i];
    }
    free(x);
    free(y);
    return sqrt(squares / sum);
}

/* ---- against the gguf package ---- */

static void expect_same_key(const struct pd_checkpoint *ours, const struct pd_meta *theirs)
{
    const struct pd_meta *m = pd_checkpoint_find_meta(ours, theirs->key);
    if (!m) fail_msg("no key %s", theirs->key);
    char *text = pd_meta_text(m), *expected = pd_meta_text(theirs);
    if (strcmp(text, expected) != 0) fail_msg("%s is %s, not %s", theirs->key, text, expected);
    free(text);
    free(expected);
}

/* These folders have no tokenizer, but the files do. */
static bool is_compared(const char *key)
{
    return strncmp(key, "tokenizer.", 10) != 0 && strcmp(key, "general.name") != 0 && strcmp(key, "general.file_type") != 0;
}

static void compare(const char *name, double tolerance)
{
    char file[128];
    snprintf(file, sizeof file, "%s/model.gguf", name);
    EXPECT_OK(convert(golden(name), "f32"));
    struct pd_checkpoint *ours = open_file(in_folder("x.gguf")), *theirs = open_file(golden(file));
    assert_int_equal(pd_checkpoint_n_tensors(ours), pd_checkpoint_n_tensors(theirs));
    for (size_t i = 0; i < pd_checkpoint_n_tensors(theirs); i++) {
        const struct pd_tensor *t = pd_checkpoint_tensor(theirs, i), *o = pd_checkpoint_find(ours, t->name);
        if (!o) fail_msg("%s: no tensor %s", name, t->name);
        assert_int_equal(o->dtype, PD_F32);
        assert_int_equal(o->n_dims, t->n_dims);
        assert_memory_equal(o->shape, t->shape, sizeof o->shape);
        double d = difference(o, t);
        if (!(d <= (strcmp(t->name, "rope_freqs.weight") ? tolerance : 1e-6))) fail_msg("%s: %s differs by %g", name, t->name, d);
    }
    for (size_t i = 0; i < pd_checkpoint_n_meta(theirs); i++)
        if (is_compared(pd_checkpoint_meta(theirs, i)->key)) expect_same_key(ours, pd_checkpoint_meta(theirs, i));
    assert_false(stats.has_tokenizer);
    pd_checkpoint_close(ours);
    pd_checkpoint_close(theirs);
    remove(in_folder("x.gguf"));
}

static void test_golden(void **state)
{
    (void)state;
    compare("gemma1", 0);
    compare("gemma3", 0);
    compare("llama", 0);
    compare("llama-linear", 0);
    compare("llama3", 0);
}

/* ---- types ---- */

static void expect_text(const struct pd_checkpoint *c, const char *key, const char *expected)
{
    const struct pd_meta *m = pd_checkpoint_find_meta(c, key);
    if (!m) fail_msg("no key %s", key);
    char *text = pd_meta_text(m);
    assert_string_equal(text, expected);
    free(text);
}

/* Real weights keep what these types promise; embeddings of small types are kept better. */
static void test_types(void **state)
{
    (void)state;
    static const struct { const char *name, *file_type; enum pd_dtype dtype, embedding; double error; } types[] = {
        {"f32", "0", PD_F32, PD_F32, 0},         {"f16", "1", PD_F16, PD_F16, 5e-4},      {"bf16", "32", PD_BF16, PD_BF16, 3e-3},
        {"q8_0", "7", PD_Q8_0, PD_Q8_0, 0.007},  {"q4_0", "2", PD_Q4_0, PD_Q6_K, 0.1},    {"q4_1", "3", PD_Q4_1, PD_Q6_K, 0.09},
        {"q5_0", "8", PD_Q5_0, PD_Q6_K, 0.05},   {"q5_1", "9", PD_Q5_1, PD_Q6_K, 0.045},  {"q4_k", "14", PD_Q4_K, PD_Q6_K, 0.08},
        {"q5_k", "16", PD_Q5_K, PD_Q6_K, 0.042}, {"q6_k", "18", PD_Q6_K, PD_Q6_K, 0.021},
    };
    const char *source = PERIDOT_MODELS "/stories.gguf";
    if (!pd_is_file(source)) skip();
    struct pd_checkpoint *s = open_file(source);
    for (size_t i = 0; i < PD_COUNT(types); i++) {
        EXPECT_OK(convert(source, types[i].name));
        struct pd_checkpoint *c = open_file(in_folder("x.gguf"));
        const struct pd_tensor *t = pd_checkpoint_find(c, "blk.2.ffn_down.weight"), *e = pd_checkpoint_find(c, "token_embd.weight");
        assert_int_equal(t->dtype, types[i].dtype);
        assert_int_equal(e->dtype, types[i].embedding);
        assert_int_equal(pd_checkpoint_find(c, "blk.2.attn_norm.weight")->dtype, PD_F32);
        double d = difference(t, pd_checkpoint_find(s, t->name));
        if (!(d <= types[i].error)) fail_msg("%s: error %g", types[i].name, d);
        assert_true(difference(e, pd_checkpoint_find(s, e->name)) <= fmin(types[i].error, 0.021));
        expect_text(c, "general.file_type", types[i].file_type);
        assert_true(stats.has_tokenizer && stats.n_replaced == 0 && stats.n_tensors == pd_checkpoint_n_tensors(s));
        pd_checkpoint_close(c);
    }
    for (size_t i = 0; peridot_convert_type(i); i++) assert_string_equal(peridot_convert_type(i), pd_dtypes[i + (i > 7) * 2].name);
    pd_checkpoint_close(s);
    remove(in_folder("x.gguf"));
}

/* 64 and 96 columns are no blocks of 256; every key goes along. */
static void test_narrow(void **state)
{
    (void)state;
    EXPECT_OK(convert(golden("gemma3/model.gguf"), "q4_k"));
    struct pd_checkpoint *c = open_file(in_folder("x.gguf")), *s = open_file(golden("gemma3/model.gguf"));
    assert_int_equal(pd_checkpoint_find(c, "token_embd.weight")->dtype, PD_Q8_0);
    assert_int_equal(pd_checkpoint_find(c, "blk.1.attn_q.weight")->dtype, PD_Q5_0);
    assert_int_equal(pd_checkpoint_find(c, "blk.1.attn_q_norm.weight")->dtype, PD_F32);
    assert_int_equal(stats.n_replaced, 1 + 7 * 7);
    expect_text(c, "general.file_type", "14");
    for (size_t i = 0; i < pd_checkpoint_n_meta(s); i++)
        if (strcmp(pd_checkpoint_meta(s, i)->key, "general.file_type") != 0) expect_same_key(c, pd_checkpoint_meta(s, i));
    pd_checkpoint_close(c);
    pd_checkpoint_close(s);
    remove(in_folder("x.gguf"));
}

static void test_vision(void **state)
{
    (void)state;
    EXPECT_OK(convert(golden("gemma3-wrapped"), "bf16"));
    assert_int_equal(stats.n_ignored, 3);
    struct pd_checkpoint *c = open_file(in_folder("x.gguf"));
    assert_int_equal(pd_checkpoint_n_tensors(c), stats.n_tensors);
    pd_checkpoint_close(c);
    remove(in_folder("x.gguf"));
}

/* ---- a small folder ---- */

enum { WIDTH = 32 };

struct model {
    uint32_t vocab_size;
    const char *family, *extra;     /* extra: name of one more tensor */
    float odd;                      /* the last weight of the last matrix */
    uint64_t one;                   /* the index of a 1 in the embedding; 0: there is none */
};

static const char *const gemma_tensors[] = {
    "embed_tokens", "norm", "layers.0.input_layernorm", "layers.0.post_attention_layernorm", "layers.0.self_attn.q_proj",
    "layers.0.self_attn.k_proj", "layers.0.self_attn.v_proj", "layers.0.self_attn.o_proj", "layers.0.mlp.gate_proj",
    "layers.0.mlp.up_proj", "layers.0.mlp.down_proj",
};

static uint64_t add_header(char *json, size_t size, const char *name, uint32_t rows, uint64_t offset)
{
    char shape[40];
    size_t at = strlen(json);
    uint64_t end = offset + (uint64_t)rows * WIDTH * 4 + (rows ? 0 : WIDTH * 4);
    snprintf(shape, sizeof shape, rows ? "%u,%d" : "%.0u%d", (unsigned)rows, WIDTH);
    snprintf(json + at, size - at, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[%llu,%llu]}", at > 1 ? "," : "",
             name, shape, (unsigned long long)offset, (unsigned long long)end);
    return end;
}

/* Gemma 1 or Llama with one layer; all weights are 0, so that the file costs no disk. */
static void write_model(const struct model *m)
{
    char config[400], json[4000] = "{", name[128];
    uint64_t offset = 0;
    snprintf(config, sizeof config,
             "{\"model_type\":\"%s\",\"hidden_size\":32,\"intermediate_size\":32,\"num_hidden_layers\":1,\"num_attention_heads\":1,"
             "\"num_key_value_heads\":1,\"head_dim\":32,\"vocab_size\":%u,\"tie_word_embeddings\":true}",
             m->family, (unsigned)m->vocab_size);
    write_text("config.json", config);
    for (size_t i = 0; i < PD_COUNT(gemma_tensors); i++) {
        snprintf(name, sizeof name, "model.%s.weight", gemma_tensors[i]);
        offset = add_header(json, sizeof json, name, i == 0 ? m->vocab_size : i < 4 ? 0 : WIDTH, offset);
    }
    uint64_t odd = offset - 4;
    if (m->extra) offset = add_header(json, sizeof json, m->extra, 0, offset);
    strcat(json, "}");
    uint64_t size = strlen(json), begin = 8 + size;
    FILE *f = fopen(in_folder("model.safetensors"), "wb");
    assert_non_null(f);
    assert_true(fwrite(&size, 8, 1, f) == 1 && fwrite(json, size, 1, f) == 1);
    assert_int_equal(ftruncate(fileno(f), (off_t)(begin + offset)), 0);
    assert_int_equal(fseek(f, (long)(begin + odd), SEEK_SET), 0);
    assert_int_equal(fwrite(&m->odd, 4, 1, f), 1);
    assert_int_equal(fseek(f, (long)(begin + 4 * m->one), SEEK_SET), 0);
    assert_int_equal(fwrite(&(float){m->one ? 1 : 0}, 4, 1, f), 1);
    assert_int_equal(fclose(f), 0);
}

static void remove_model(void)
{
    static const char *const names[] = {"config.json", "model.safetensors", "tokenizer.model", "tokenizer.json",
                                        "tokenizer_config.json", "x.gguf"};
    for (size_t i = 0; i < PD_COUNT(names); i++) remove(in_folder(names[i]));
}

/* Whether a test passed or not, the next one finds an empty folder. */
static int clean(void **state)
{
    (void)state;
    remove_model();
    return 0;
}

static void test_not_finite(void **state)
{
    (void)state;
    write_model(&(struct model){.vocab_size = 100, .family = "gemma", .odd = NAN});
    EXPECT_FAILURE(convert(folder, "q8_0"), PERIDOT_ERROR_FORMAT, "weight 1023", "layers.0.mlp.down_proj", "not a finite number");
    EXPECT_OK(convert(folder, "f32"));
    write_model(&(struct model){.vocab_size = 100, .family = "gemma", .odd = 1e6f});
    EXPECT_FAILURE(convert(folder, "f16"), PERIDOT_ERROR_FORMAT, "layers.0.mlp.down_proj", "f16 cannot hold");
    EXPECT_OK(convert(folder, "q4_0"));
    remove_model();
}

/* Large tensors go through memory in pieces: every weight arrives where it was. */
static void test_pieces(void **state)
{
    (void)state;
    static const uint64_t places[] = {1, 65535, 65536, (4 << 20) - 1, 4 << 20, 200000 * WIDTH - 1};
    for (size_t i = 0; i < PD_COUNT(places); i++) {
        uint64_t n, n_ones = 0;
        write_model(&(struct model){.vocab_size = 200000, .family = "gemma", .one = places[i]});
        EXPECT_OK(convert(folder, "f16"));
        struct pd_checkpoint *c = open_file(in_folder("x.gguf"));
        float *x = decode(pd_checkpoint_find(c, "token_embd.weight"), &n);
        for (uint64_t k = 0; k < n; k++) n_ones += x[k] != 0;
        assert_true(n_ones == 1 && x[places[i]] == 1);
        free(x);
        pd_checkpoint_close(c);
    }
    remove_model();
}

static void test_refusals(void **state)
{
    (void)state;
    write_model(&(struct model){.vocab_size = 100, .family = "gemma", .extra = "model.layers.0.mystery"});
    EXPECT_FAILURE(convert(folder, "f32"), PERIDOT_ERROR_UNSUPPORTED, "model.layers.0.mystery", "not known in a gemma model");
    write_model(&(struct model){.vocab_size = 100, .family = "gemma2"});
    EXPECT_FAILURE(convert(folder, "f32"), PERIDOT_ERROR_FORMAT, "feedforward_layernorm.weight", "missing");
    remove_model();
    EXPECT_FAILURE(convert(golden("gemma2-sequence"), "f32"), PERIDOT_ERROR_UNSUPPORTED, "gemma2-sequence", "classification head");
    EXPECT_FAILURE(convert(golden("llama-base"), "f32"), PERIDOT_ERROR_UNSUPPORTED, "without an output matrix");
    EXPECT_FAILURE(convert(golden("gemma1"), "q2_k"), PERIDOT_ERROR_ARGUMENT, "q2_k", "q4_k, q5_k, q6_k");
    EXPECT_FAILURE(convert(golden("gemma1"), NULL), PERIDOT_ERROR_ARGUMENT, "(none)");
    EXPECT_FAILURE(convert(golden("nothing"), "f32"), PERIDOT_ERROR_IO, "nothing");
    EXPECT_FAILURE(peridot_convert(NULL, NULL, NULL, NULL), PERIDOT_ERROR_ARGUMENT, "NULL");
}

/* ---- tokenizers ---- */

/* In the shared folder beside the source tree, or where the environment says. */
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
    write_text("tokenizer_config.json", "{\"chat_template\":\"{{ '<start_of_turn>' }}\\n<|start_header_id|>\"}");
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
    expect_text(c, "tokenizer.chat_template", "{{ '<start_of_turn>' }}\\n<|start_header_id|>");
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

/* A sentencepiece-like vocabulary that lists merges: a GGUF file says the same by scores. Merges are not in the order of
 * ids, nor of length. */
static void write_merges(void)
{
    static const char *const pieces[] = {"\xe2\x96\x81", "a", "b", "c", "ab", "bc", "abc", "\xe2\x96\x81""a", "\xe2\x96\x81""ab", "cc"};
    static char json[16000];
    int at = snprintf(json, sizeof json,
        "{\"added_tokens\":[{\"id\":0,\"content\":\"<unk>\",\"special\":true},{\"id\":1,\"content\":\"<s>\",\"special\":true}],"
        "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"\xe2\x96\x81\"},"
        "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xe2\x96\x81\"}]},\"pre_tokenizer\":null,"
        "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"\xe2\x96\x81\"},\"content\":\" \"},"
        "{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]},"
        "\"model\":{\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"byte_fallback\":true,\"fuse_unk\":true,\"vocab\":{\"<unk>\":0,\"<s>\":1");
    for (int i = 0; i < 256; i++) at += snprintf(json + at, sizeof json - (size_t)at, ",\"<0x%02X>\":%d", i, i + 2);
    for (size_t i = 0; i < PD_COUNT(pieces); i++)
        at += snprintf(json + at, sizeof json - (size_t)at, ",\"%s\":%zu", pieces[i], 258 + i);
    snprintf(json + at, sizeof json - (size_t)at,
             "},\"merges\":[[\"b\",\"c\"],[\"\xe2\x96\x81\",\"a\"],[\"c\",\"c\"],[\"a\",\"b\"],[\"a\",\"bc\"],[\"ab\",\"c\"],"
             "[\"\xe2\x96\x81""a\",\"b\"]]}}");
    write_text("tokenizer.json", json);
}

static void test_merges(void **state)
{
    (void)state;
    static const char *const texts[] = {"abc", "ab abc bcc", "cccab", " aab  b", "abccabc\xc3\xa4 d", "<s>a"};
    peridot_vocab *a, *b;
    write_model(&(struct model){.vocab_size = 280, .family = "llama"});
    write_merges();
    EXPECT_OK(convert(folder, "f32"));
    EXPECT_OK(peridot_vocab_open(&a, folder));
    EXPECT_OK(peridot_vocab_open(&b, in_folder("x.gguf")));
    for (size_t i = 0; i < PD_COUNT(texts); i++) expect_same_ids(a, b, texts[i], strlen(texts[i]));
    peridot_vocab_close(a);
    peridot_vocab_close(b);
    struct pd_checkpoint *c = open_file(in_folder("x.gguf"));
    expect_text(c, "tokenizer.ggml.model", "llama");
    expect_text(c, "tokenizer.ggml.bos_token_id", "1");
    expect_text(c, "tokenizer.ggml.unknown_token_id", "0");
    expect_text(c, "tokenizer.ggml.add_space_prefix", "true");
    pd_checkpoint_close(c);
    remove_model();
}

/* ---- interruptions ---- */

static bool cancel(void *user, uint64_t done, uint64_t total)
{
    return (*(int *)user)++ == 0 || done * 2 < total;
}

static void test_cancel(void **state)
{
    (void)state;
    int calls = 0;
    peridot_convert_params params = {.type = "q8_0", .progress = cancel, .user = &calls};
    EXPECT_FAILURE(peridot_convert(in_folder("x.gguf"), golden("gemma1"), &params, NULL), PERIDOT_CANCELLED, "cancelled");
    assert_true(calls > 1);   /* remove_folder finds what is left */
}

/* A limit on the size of files stands for a disk that fills up on the way. */
static void test_full_disk(void **state)
{
    (void)state;
    struct rlimit old, low;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    low = old;
    low.rlim_cur = 200000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    peridot_status status = convert(golden("gemma1"), "f32");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, handler);
    EXPECT_FAILURE(status, PERIDOT_ERROR_IO, "x.gguf: ", "File too large");
}

/* A file may be converted onto itself: it is replaced when the new one is complete. */
static void test_itself(void **state)
{
    (void)state;
    EXPECT_OK(convert(golden("gemma1"), "f32"));
    EXPECT_OK(convert(in_folder("x.gguf"), "f16"));
    struct pd_checkpoint *c = open_file(in_folder("x.gguf"));
    assert_int_equal(pd_checkpoint_find(c, "token_embd.weight")->dtype, PD_F16);
    pd_checkpoint_close(c);
    remove(in_folder("x.gguf"));
}

/* rmdir fails, and with it the tests, when something was left in the folder. */
static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_golden, clean),
        cmocka_unit_test_teardown(test_types, clean),
        cmocka_unit_test_teardown(test_narrow, clean),
        cmocka_unit_test_teardown(test_vision, clean),
        cmocka_unit_test_teardown(test_not_finite, clean),
        cmocka_unit_test_teardown(test_refusals, clean),
        cmocka_unit_test_teardown(test_pieces, clean),
        cmocka_unit_test_teardown(test_gemma2_tokenizer, clean),
        cmocka_unit_test_teardown(test_gemma3_tokenizer, clean),
        cmocka_unit_test_teardown(test_llama2_tokenizer, clean),
        cmocka_unit_test_teardown(test_llama3_tokenizer, clean),
        cmocka_unit_test_teardown(test_merges, clean),
        cmocka_unit_test_teardown(test_cancel, clean),
        cmocka_unit_test_teardown(test_full_disk, clean),
        cmocka_unit_test_teardown(test_itself, clean),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

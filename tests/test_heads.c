/* What models turn their states into, beyond the numbers (test_golden.c has those): names of labels, what a model
 * without the wanted head answers, files whose head contradicts their config, and which rows of the output may be
 * drawn. */
#include "format_fixture.h"
#include "sequence_fixture.h"

#include "peridot_tools.h"

#include <math.h>

static peridot_model *open_golden(const char *name)
{
    char path[512];
    peridot_model *model;
    snprintf(path, sizeof path, PERIDOT_GOLDEN "/%s", name);
    EXPECT_OK(peridot_model_open(&model, path, NULL));
    return model;
}

static peridot_sequence *evaluate(peridot_model *model, const int32_t *tokens, size_t n)
{
    peridot_sequence *s;
    EXPECT_OK(open_sequence(&s, model, &(peridot_session_params){.ctx = 128}));
    EXPECT_OK(peridot_sequence_eval(s, tokens, n, NULL));
    return s;
}

static const int32_t some_tokens[] = {2, 17, 260, 33, 90, 264, 101};
#define N_SOME (sizeof some_tokens / sizeof *some_tokens)

/* ---- labels ---- */

static void test_labels(void **state)
{
    (void)state;
    static const struct { const char *model; peridot_head head; uint32_t n; const char *labels[6]; } rows[] = {
        {"gemma2-sequence", PERIDOT_HEAD_SEQUENCE, 3, {"calm", "glad", "sad"}},
        {"llama-sequence", PERIDOT_HEAD_SEQUENCE, 3, {"calm", "glad", "sad"}},
        {"gemma2-token", PERIDOT_HEAD_TOKEN, 5, {"O", "B-NAME", "I-NAME", "B-PLACE", "I-PLACE"}},
        {"gemma2-base", PERIDOT_HEAD_LANGUAGE, 272, {NULL}},
        {"llama-base", PERIDOT_HEAD_NONE, 0, {NULL}},
    };
    for (size_t i = 0; i < PD_COUNT(rows); i++) {
        peridot_model *model = open_golden(rows[i].model);
        assert_int_equal(peridot_model_get_info(model)->head, rows[i].head);
        assert_int_equal(peridot_model_get_info(model)->n_outputs, rows[i].n);
        for (uint32_t k = 0; rows[i].labels[k]; k++)
            assert_string_equal(peridot_model_label(model, k), rows[i].labels[k]);
        assert_null(peridot_model_label(model, rows[i].n));
        peridot_model_close(model);
    }
}

/* ---- what a file says without being loaded ---- */

static void expect_description(const char *name)
{
    char path[512];
    peridot_file *file;
    snprintf(path, sizeof path, PERIDOT_GOLDEN "/%s", name);
    peridot_model *model = open_golden(name);
    const peridot_model_info *loaded = peridot_model_get_info(model);
    EXPECT_OK(peridot_file_open(&file, path));
    EXPECT_OK(peridot_file_check(file));
    const peridot_model_info *found = peridot_file_model(file);
    assert_string_equal(found->name, loaded->name);
    assert_string_equal(found->family, loaded->family);
    assert_string_equal(found->types, loaded->types);
    assert_true(found->n_params == loaded->n_params && found->cache_size == loaded->cache_size
                && found->cache_size > 0);
    assert_int_equal(found->n_layers, loaded->n_layers);
    assert_int_equal(found->vocab_size, loaded->vocab_size);
    assert_int_equal(found->head, loaded->head);
    assert_int_equal(found->n_outputs, loaded->n_outputs);
    assert_int_equal(found->n_ignored_tensors, loaded->n_ignored_tensors);
    assert_true(found->weights_size > 0 && !found->device && !found->kernels && !found->untuned);
    peridot_file_close(file);
    peridot_model_close(model);
}

static void test_description(void **state)
{
    (void)state;
    static const char *const names[] = {
        "gemma1/model.gguf", "gemma2-q8_0/model.gguf", "gemma3-mixed/model.gguf", "gemma2-sequence", "gemma2-token",
        "gemma3-wrapped", "gemma2-bf16-shards", "llama-base", "llama-linear", "llama-quants/model.gguf",
    };
    for (size_t i = 0; i < PD_COUNT(names); i++) expect_description(names[i]);
    peridot_device_info *device;
    peridot_model *model = open_golden(names[0]);
    EXPECT_OK(peridot_device_find(&device, NULL));
    assert_string_equal(device->uuid, peridot_model_get_info(model)->device->uuid);
    peridot_free(device);
    EXPECT_FAILURE(peridot_device_find(&device, "no such device"), PERIDOT_ERROR_DEVICE, "no such device", NULL);
    assert_null(device);
    peridot_model_close(model);
}

/* ---- the wrong head ---- */

static bool count_row(void *user, peridot_sequence *sequence, uint32_t pos, const float *row, size_t n)
{
    (void)sequence;
    (void)pos, (void)row;
    *(size_t *)user += n;
    return true;
}

static void test_no_head(void **state)
{
    (void)state;
    peridot_model *model = open_golden("llama-base");
    peridot_sequence *s = evaluate(model, some_tokens, N_SOME);
    size_t n_floats = 0;
    const float *row;
    int32_t token;
    EXPECT_FAILURE(peridot_logits(&row, s), PERIDOT_ERROR_UNSUPPORTED, "base model", "no logits");
    EXPECT_FAILURE(peridot_sample(&token, s), PERIDOT_ERROR_UNSUPPORTED, "base model");
    EXPECT_FAILURE(peridot_sequence_eval(s, some_tokens, 2,
                                         &(peridot_eval_params){.logits = count_row, .user = &n_floats}),
                   PERIDOT_ERROR_UNSUPPORTED, "base model");
    assert_int_equal(peridot_sequence_pos(s), N_SOME);   /* nothing was changed */
    EXPECT_OK(peridot_sequence_eval(s, some_tokens, 2, &(peridot_eval_params){.hidden = count_row, .user = &n_floats}));
    assert_int_equal(n_floats, 2 * 32);
    close_sequence(s);
    peridot_model_close(model);
}

static void test_labels_write_no_text(void **state)
{
    (void)state;
    static const char *const models[] = {"gemma2-sequence", "gemma2-token", "llama-sequence"};
    for (size_t i = 0; i < PD_COUNT(models); i++) {
        peridot_model *model = open_golden(models[i]);
        peridot_sequence *s = evaluate(model, some_tokens, N_SOME);
        int32_t token;
        EXPECT_FAILURE(peridot_sample(&token, s), PERIDOT_ERROR_UNSUPPORTED, "cannot write text");
        close_sequence(s);
        peridot_model_close(model);
    }
}

/* ---- head against config ---- */

/* The config of a golden model with `from` replaced, beside that model's tensors. */
static peridot_status open_changed(peridot_model **out, const char *name, const char *from, const char *to)
{
    char path[512], config[4096], changed[4096];
    snprintf(path, sizeof path, PERIDOT_GOLDEN "/%s/config.json", name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t size = fread(config, 1, sizeof config - 1, f);
    fclose(f);
    config[size] = 0;
    const char *at = strstr(config, from);
    assert_non_null(at);
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - config), config, to, at + strlen(from));
    write_text("config.json", changed);
    snprintf(path, sizeof path, PERIDOT_GOLDEN "/%s/model.safetensors", name);
    remove(in_folder("model.safetensors"));
    assert_int_equal(symlink(path, in_folder("model.safetensors")), 0);
    return peridot_model_open(out, folder, NULL);
}

static void test_head_against_config(void **state)
{
    (void)state;
    peridot_model *model;
    EXPECT_FAILURE(open_changed(&model, "gemma2-sequence", "\"2\": \"sad\"", "\"2\": \"sad\", \"3\": \"odd\""),
                   PERIDOT_ERROR_FORMAT,
                   "id2label has 4 labels", "score.weight has 3 rows");
    EXPECT_FAILURE(open_changed(&model, "gemma2-sequence", "\"2\": \"sad\"", "\"3\": \"sad\""), PERIDOT_ERROR_FORMAT,
                   "id2label", "\"3\"");
    EXPECT_FAILURE(open_changed(&model, "gemma2-base", "Gemma2Model", "Gemma2ForSequenceClassification"),
                   PERIDOT_ERROR_FORMAT, "score.weight",
                   "missing");
    EXPECT_FAILURE(open_changed(&model, "llama-base", "LlamaModel", "LlamaForCausalLM"), PERIDOT_ERROR_FORMAT,
                   "lm_head.weight", "missing");
    EXPECT_OK(open_changed(&model, "gemma2-sequence", "\"id2label\"", "\"id2other\""));
    assert_null(peridot_model_label(model, 0));
    assert_int_equal(peridot_model_get_info(model)->n_outputs, 3);
    peridot_model_close(model);
}

/* ---- vocabulary against config ---- */

/* Adds 1 to the count under a key of a GGUF file. */
static void raise_key(const char *name, const char *key)
{
    static char data[1 << 20];
    FILE *f = fopen(in_folder(name), "rb");
    assert_non_null(f);
    size_t size = fread(data, 1, sizeof data, f), at = 0;
    fclose(f);
    while (at + strlen(key) < size && memcmp(data + at, key, strlen(key)) != 0) at++;
    assert_true(at + strlen(key) < size);
    data[at + strlen(key) + 4]++;      /* after the value's type */
    write_file(name, data, size);
}

static void test_vocabulary_against_config(void **state)
{
    (void)state;
    peridot_model *model;
    peridot_convert_params params = {.type = "f16"};
    char gguf[512];
    snprintf(gguf, sizeof gguf, "%s", in_folder("y.gguf"));
    EXPECT_FAILURE(open_changed(&model, "gemma2-sequence", "\"vocab_size\": 272", "\"vocab_size\": 271"),
                   PERIDOT_ERROR_FORMAT, "config.json: vocab_size is 271", "embed_tokens.weight has 272 rows");
    EXPECT_FAILURE(peridot_convert(gguf, folder, &params, NULL), PERIDOT_ERROR_FORMAT, "vocab_size is 271");
    EXPECT_FAILURE(open_changed(&model, "gemma1-lm-head", "\"vocab_size\": 288", "\"vocab_size\": 289"),
                   PERIDOT_ERROR_FORMAT, "config.json: vocab_size is 289", "lm_head.weight has 288 rows");
    EXPECT_FAILURE(open_changed(&model, "llama", "\"tie_word_embeddings\": false", "\"tie_word_embeddings\": true"),
                   PERIDOT_ERROR_FORMAT, "tie_word_embeddings is true", "lm_head.weight", "differ");
    EXPECT_FAILURE(peridot_convert(gguf, folder, &params, NULL), PERIDOT_ERROR_FORMAT, "tie_word_embeddings");
    EXPECT_OK(open_changed(&model, "gemma2-f16", "\"vocab_size\"", "\"vocab_Size\""));   /* the same matrix twice */
    peridot_model_close(model);
    EXPECT_OK(peridot_convert(gguf, PERIDOT_GOLDEN "/gemma2-base", &params, NULL));
    raise_key("y.gguf", "gemma2.vocab_size");
    EXPECT_FAILURE(peridot_model_open(&model, gguf, NULL), PERIDOT_ERROR_FORMAT, "y.gguf",
                   "gemma2.vocab_size is 273", "token_embd.weight has 272 rows");
    remove(gguf);
}

/* ---- which rows may be drawn ---- */

enum { N_PIECES = 272, N_ROWS = 288 };

/* The best of the first n, the lowest of equals. */
static int32_t best_of(const float *logits, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return (int32_t)best;
}

/* In this model a row beyond the pieces always has the largest logit, and is never drawn. */
static void test_rows_beyond_pieces(void **state)
{
    (void)state;
    static const peridot_sampling chains[] = {{0}, {.repeat_penalty = 1.1f}, {.temperature = 2, .top_k = 40, .seed = 1},
        {.temperature = 2, .seed = 2}};
    peridot_model *model = open_golden("gemma3-padding/model.gguf");
    peridot_sequence *s = evaluate(model, some_tokens, 1);
    assert_int_equal(peridot_model_get_info(model)->vocab_size, N_ROWS);
    for (int i = 0; i < 40; i++) {
        const float *logits;
        int32_t token;
        EXPECT_OK(peridot_logits(&logits, s));
        assert_true(best_of(logits, N_ROWS) >= N_PIECES);
        int32_t best = best_of(logits, N_PIECES);
        for (size_t k = 0; k < PD_COUNT(chains); k++) {
            peridot_set_sampling(s, &chains[k]);
            EXPECT_OK(peridot_sample(&token, s));
            assert_true(token >= 0 && token < N_PIECES);
            if (k == 0) assert_int_equal(token, best);
        }
        EXPECT_OK(peridot_sequence_eval(s, &token, 1, NULL));
    }
    close_sequence(s);
    peridot_model_close(model);
}

static int compare_bias(const void *a, const void *b)
{
    float x = ((const peridot_bias *)a)->value, y = ((const peridot_bias *)b)->value;
    return x > y ? -1 : x < y;
}

/* Draws are exact however few candidates the device hands over: with the best ones banned the next one wins, and one
 * from the far end wins when it is lifted. */
static void test_bans(void **state)
{
    (void)state;
    static const size_t counts[] = {1, 63, 127, 128, 129, 200, 271};
    peridot_model *model = open_golden("gemma2-base");
    peridot_sequence *s = evaluate(model, some_tokens, N_SOME);
    peridot_bias order[N_PIECES];
    const float *logits;
    int32_t token;
    EXPECT_OK(peridot_logits(&logits, s));
    for (int32_t i = 0; i < N_PIECES; i++) order[i] = (peridot_bias){i, logits[i]};
    qsort(order, N_PIECES, sizeof *order, compare_bias);
    int32_t worst = order[N_PIECES - 1].token;
    for (size_t i = 0; i < N_PIECES; i++) order[i].value = -INFINITY;
    for (size_t i = 0; i < PD_COUNT(counts); i++) {
        peridot_set_sampling(s, &(peridot_sampling){.bias = order, .n_bias = counts[i]});
        EXPECT_OK(peridot_sample(&token, s));
        assert_int_equal(token, order[counts[i]].token);
    }
    peridot_set_sampling(s, &(peridot_sampling){.bias = &(peridot_bias){worst, 1000}, .n_bias = 1});
    EXPECT_OK(peridot_sample(&token, s));
    assert_int_equal(token, worst);
    close_sequence(s);
    peridot_model_close(model);
}

static int remove_folder(void **state)
{
    (void)state;
    remove(in_folder("config.json"));
    remove(in_folder("model.safetensors"));
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_labels), cmocka_unit_test(test_description), cmocka_unit_test(test_no_head),
        cmocka_unit_test(test_labels_write_no_text),
        cmocka_unit_test(test_head_against_config), cmocka_unit_test(test_vocabulary_against_config),
        cmocka_unit_test(test_rows_beyond_pieces), cmocka_unit_test(test_bans),
    };
    return cmocka_run_group_tests_name("heads", tests, make_folder, remove_folder);
}

/* Conversion: what comes out of Hugging Face folders is what the gguf package wrote of the same models (tests/golden),
 * types and metadata are as promised, and what goes wrong leaves nothing. Tokenizers: test_convert_tokenizer.c. */
#include "convert_fixture.h"

#include "base/base.h"
#include "offline/offline_.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>

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
    float *x = malloc(*n * sizeof *x), scale = 1;
    assert_non_null(x);
    pd_dequantize(t->dtype, x, t->data, *n);
    assert_true(t->n_scales <= 1);
    if (t->n_scales) memcpy(&scale, t->scales, sizeof scale);
    for (uint64_t i = 0; i < *n; i++) x[i] *= scale;
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
    return strncmp(key, "tokenizer.", 10) != 0 && strcmp(key, "general.name") != 0
        && strcmp(key, "general.file_type") != 0;
}

/* Each by itself, as some are 1e30. */
static void compare_factors(const struct pd_tensor *ours, const struct pd_tensor *theirs)
{
    uint64_t n, m;
    float *x = decode(ours, &n), *y = decode(theirs, &m);
    assert_int_equal(n, m);
    for (uint64_t i = 0; i < n; i++)
        if (!(fabsf(x[i] - y[i]) <= 1e-6f * y[i])) fail_msg("factor %u is %g, not %g", (unsigned)i, (double)x[i],
                                                           (double)y[i]);
    free(x);
    free(y);
}

/* The last n_layers of the file's layers have keys and values that no layer reads: they are left out. */
static bool is_unread(const char *name, int n_layers)
{
    static const char *const parts[] = {"attn_k.weight", "attn_v.weight", "attn_k_norm.weight"};
    char unread[64];
    for (int i = 0; i < n_layers; i++)
        for (size_t k = 0; k < PD_COUNT(parts); k++) {
            snprintf(unread, sizeof unread, "blk.%d.%s", 5 - i, parts[k]);
            if (!strcmp(name, unread)) return true;
        }
    return false;
}

static void compare(const char *name, double tolerance, int n_unread_layers)
{
    char file[128];
    snprintf(file, sizeof file, "%s/model.gguf", name);
    EXPECT_OK(convert(golden(name), "f32"));
    struct pd_checkpoint *ours = open_file(in_folder("x.gguf")), *theirs = open_file(golden(file));
    assert_int_equal(pd_checkpoint_n_tensors(ours) + 3 * (size_t)n_unread_layers, pd_checkpoint_n_tensors(theirs));
    for (size_t i = 0; i < pd_checkpoint_n_tensors(theirs); i++) {
        const struct pd_tensor *t = pd_checkpoint_tensor(theirs, i), *o = pd_checkpoint_find(ours, t->name);
        if (!o && is_unread(t->name, n_unread_layers)) continue;
        if (!o) fail_msg("%s: no tensor %s", name, t->name);
        assert_int_equal(o->dtype, PD_F32);
        assert_int_equal(o->n_dims, t->n_dims);
        assert_memory_equal(o->shape, t->shape, sizeof o->shape);
        if (!strcmp(t->name, "rope_freqs.weight")) {
            compare_factors(o, t);
            continue;
        }
        double d = difference(o, t);
        if (!(d <= tolerance))
            fail_msg("%s: %s differs by %g", name, t->name, d);
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
    compare("gemma1", 0, 0);
    compare("gemma3", 0, 0);
    compare("gemma4", 0, 0);
    compare("gemma4-small", 0, 3);
    compare("llama", 0, 0);
    compare("llama-linear", 0, 0);
    compare("llama3", 0, 0);
    compare("qwen2", 0, 0);
    compare("qwen3", 0, 0);
    compare("llama-yarn", 0, 0);
    compare("llama-yarn-mscale", 0, 0);
    compare("llama-longrope", 0, 0);
    compare("llama-longrope-short", 0, 0);
}

/* ---- against llama.cpp's converter ---- */

/* FNV-1a in 64 bits. */
static uint64_t hash_of(const uint8_t *data, uint64_t size)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (uint64_t i = 0; i < size; i++) hash = (hash ^ data[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* A number, or several with commas between them. */
static void expect_key(const struct pd_checkpoint *ours, const char *key, char *values)
{
    const struct pd_meta *m = pd_checkpoint_find_meta(ours, key);
    uint64_t i = 0;
    if (!m) fail_msg("no key %s", key);
    for (char *at = strtok(values, ","); at; at = strtok(NULL, ","), i++) {
        bool is_true = false;
        double value = NAN;
        if (pd_meta_bool(&is_true, m, i)) value = is_true;
        else if (!pd_meta_float(&value, m, i)) fail_msg("%s has not %s", key, at);
        if ((float)value != strtof(at, NULL)) fail_msg("%s is %g, not %s", key, value, at);
    }
    assert_int_equal(m->type == PD_META_ARRAY ? m->n : 1, i);
}

static void expect_tensor(const struct pd_checkpoint *ours, const char *name, const char *type, char *shape,
                          uint64_t hash)
{
    const struct pd_tensor *t = pd_checkpoint_find(ours, name);
    uint32_t i = 0;
    if (!t) fail_msg("no tensor %s", name);
    if (strcmp(t->type, type) != 0) fail_msg("%s is %s, not %s", name, t->type, type);
    for (char *at = strtok(shape, ","); at; at = strtok(NULL, ","), i++)
        if (t->shape[i] != strtoull(at, NULL, 10)) fail_msg("%s has no size of %s", name, at);
    if (t->n_dims != i) fail_msg("%s has %u dimensions", name, t->n_dims);
    if (hash_of(t->data, t->size) != hash) fail_msg("%s has other weights", name);
}

/* Recurrences, experts that share a unit, and blocks that draft are, byte for byte, as llama.cpp's converter has them
 * (tools/golden/converted.py). */
static void test_converter(void **state)
{
    (void)state;
    static const char *const names[] = {"granite4-h", "lfm2", "qwen35-moe", "qwen35-mtp", "qwen3-next"};
    for (size_t i = 0; i < PD_COUNT(names); i++) {
        char folder_name[64], list[64], line[512], key[128], values[256], type[16];
        size_t n = 0;
        uint64_t hash;
        snprintf(folder_name, sizeof folder_name, "dense/%s", names[i]);
        snprintf(list, sizeof list, "converted/%s.txt", names[i]);
        EXPECT_OK(convert(golden(folder_name), "bf16"));
        struct pd_checkpoint *ours = open_file(in_folder("x.gguf"));
        FILE *f = fopen(golden(list), "r");
        assert_non_null(f);
        while (fgets(line, sizeof line, f)) {
            if (sscanf(line, "key %127s %255s", key, values) == 2) expect_key(ours, key, values);
            else if (sscanf(line, "tensor %127s %15s %255s %" SCNx64, key, type, values, &hash) == 4) {
                expect_tensor(ours, key, type, values, hash);
                n++;
            } else fail_msg("%s", line);
        }
        assert_int_equal(pd_checkpoint_n_tensors(ours), n);
        fclose(f);
        pd_checkpoint_close(ours);
        remove(in_folder("x.gguf"));
    }
}

/* ---- types ---- */

/* Real weights keep what these types promise; embeddings of small types are kept better. */
static void test_types(void **state)
{
    (void)state;
    static const struct { const char *name, *file_type; enum pd_dtype dtype, embedding; double error; } types[] = {
        {"f32", "0", PD_F32, PD_F32, 0},         {"f16", "1", PD_F16, PD_F16, 5e-4},
        {"bf16", "32", PD_BF16, PD_BF16, 3e-3},
        {"q8_0", "7", PD_Q8_0, PD_Q8_0, 0.007},  {"q4_0", "2", PD_Q4_0, PD_Q6_K, 0.1},
        {"q4_1", "3", PD_Q4_1, PD_Q6_K, 0.09},
        {"q5_0", "8", PD_Q5_0, PD_Q6_K, 0.05},   {"q5_1", "9", PD_Q5_1, PD_Q6_K, 0.045},
        {"q4_k", "14", PD_Q4_K, PD_Q6_K, 0.08},
        {"q5_k", "16", PD_Q5_K, PD_Q6_K, 0.042}, {"q6_k", "18", PD_Q6_K, PD_Q6_K, 0.021},
        {"q3_k", "11", PD_Q3_K, PD_Q6_K, 0.2},   {"mxfp4", "38", PD_MXFP4, PD_Q6_K, 0.2},
    };
    const char *source = PERIDOT_MODELS "/stories.gguf";
    if (!pd_is_file(source)) skip();
    struct pd_checkpoint *s = open_file(source);
    for (size_t i = 0; i < PD_COUNT(types); i++) {
        EXPECT_OK(convert(source, types[i].name));
        struct pd_checkpoint *c = open_file(in_folder("x.gguf"));
        const struct pd_tensor *t = pd_checkpoint_find(c, "blk.2.ffn_down.weight"),
            *e = pd_checkpoint_find(c, "token_embd.weight");
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
    pd_checkpoint_close(s);
    remove(in_folder("x.gguf"));
}

/* NVFP4's scales are in the weights that come out, and not beside them. */
static void test_scales(void **state)
{
    (void)state;
    static const struct { const char *name; double error; } types[] = {{"f32", 0}, {"q8_0", 0.01}};
    struct pd_checkpoint *s = open_file(golden("llama-codebooks/model.gguf"));
    for (size_t i = 0; i < PD_COUNT(types); i++) {
        size_t n_scales = 0;
        EXPECT_OK(convert(golden("llama-codebooks/model.gguf"), types[i].name));
        struct pd_checkpoint *c = open_file(in_folder("x.gguf"));
        for (size_t k = 0; k < pd_checkpoint_n_tensors(s); k++) {
            const struct pd_tensor *t = pd_checkpoint_tensor(s, k), *o = pd_checkpoint_find(c, t->name);
            n_scales += t->n_scales;
            if (strstr(t->name, "scale")) assert_null(o);
            else if (!o) fail_msg("no tensor %s", t->name);
            else if (!(difference(o, t) <= types[i].error)) fail_msg("%s: %g", t->name, difference(o, t));
        }
        assert_int_equal(n_scales, 2);
        assert_int_equal(pd_checkpoint_n_tensors(c), pd_checkpoint_n_tensors(s) - 2 * n_scales);
        pd_checkpoint_close(c);
    }
    pd_checkpoint_close(s);
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
        if (strcmp(pd_checkpoint_meta(s, i)->key, "general.file_type") != 0)
            expect_same_key(c, pd_checkpoint_meta(s, i));
    pd_checkpoint_close(c);
    pd_checkpoint_close(s);
    remove(in_folder("x.gguf"));
}

/* What projects the embedding to the inputs of layers is bf16 of whatever type, and f32 of f32. */
static void test_per_layer_inputs(void **state)
{
    (void)state;
    static const char *const sources[] = {"gemma4-small", "gemma4-small/model.gguf"};
    static const struct { const char *type; enum pd_dtype projection, embedding, gate; } types[] = {
        {"q4_0", PD_BF16, PD_Q8_0, PD_Q4_0}, {"q8_0", PD_BF16, PD_Q8_0, PD_Q8_0}, {"f32", PD_F32, PD_F32, PD_F32}};
    for (size_t i = 0; i < PD_COUNT(sources) * PD_COUNT(types); i++) {
        size_t type = i % PD_COUNT(types);
        EXPECT_OK(convert(golden(sources[i / PD_COUNT(types)]), types[type].type));
        struct pd_checkpoint *c = open_file(in_folder("x.gguf"));
        assert_int_equal(pd_checkpoint_find(c, "per_layer_model_proj.weight")->dtype, types[type].projection);
        assert_int_equal(pd_checkpoint_find(c, "per_layer_token_embd.weight")->dtype, types[type].embedding);
        assert_int_equal(pd_checkpoint_find(c, "blk.5.inp_gate.weight")->dtype, types[type].gate);
        assert_int_equal(pd_checkpoint_find(c, "per_layer_proj_norm.weight")->dtype, PD_F32);
        assert_int_equal(pd_checkpoint_find(c, "blk.0.layer_output_scale.weight")->dtype, PD_F32);
        pd_checkpoint_close(c);
    }
    remove(in_folder("x.gguf"));
}

/* The folder's Gemma 4 with a row less in the table of inputs of layers; what is left over is called vision. */
static void write_short_table(void)
{
    static const char from[] = "\"model.embed_tokens_per_layer.weight\":", row[] = "\"shape\":[272,384]";
    struct pd_map map;
    char header[32 << 10], vision[160];
    uint64_t size;
    unsigned long long begin, end;
    EXPECT_OK(pd_map_open(&map, golden("gemma4-small/config.json")));
    write_file("config.json", map.data, (size_t)map.size);
    pd_map_close(&map);
    EXPECT_OK(pd_map_open(&map, golden("gemma4-small/model.safetensors")));
    memcpy(&size, map.data, sizeof size);
    assert_true(size + 400 < sizeof header);
    memcpy(header, map.data + 8, (size_t)size);
    header[size] = 0;
    char *table = strstr(header, from), *shape = table ? strstr(table, row) : NULL;
    assert_non_null(shape);
    assert_int_equal(sscanf(shape, "\"shape\":[272,384],\"data_offsets\":[%llu,%llu]}", &begin, &end), 2);
    shape[strlen("\"shape\":[27")] = '1';
    int n = snprintf(vision, sizeof vision,
                     "],\"data_offsets\":[%llu,%llu]},\"model.vision_tower.x\":{\"dtype\":\"BF16\",\"shape\":[384],"
                     "\"data_offsets\":[%llu,%llu]}", begin, end - 768, end - 768, end);
    char *rest = strchr(shape, '}') + 1, *at = strchr(shape, ']');
    memmove(at + n, rest, strlen(rest) + 1);
    memcpy(at, vision, (size_t)n);
    uint64_t new_size = strlen(header);
    FILE *f = fopen(in_folder("model.safetensors"), "wb");
    assert_non_null(f);
    assert_true(fwrite(&new_size, 8, 1, f) == 1 && fwrite(header, new_size, 1, f) == 1);
    assert_int_equal(fwrite(map.data + 8 + size, 1, (size_t)(map.size - 8 - size), f), map.size - 8 - size);
    assert_int_equal(fclose(f), 0);
    pd_map_close(&map);
}

static void test_short_table(void **state)
{
    (void)state;
    peridot_file *file;
    write_short_table();
    EXPECT_FAILURE(convert(folder, "bf16"), PERIDOT_ERROR_FORMAT, "embed_tokens_per_layer.weight has shape [271, 384]",
                   "[272, 384]");
    EXPECT_OK(peridot_file_open(&file, folder));
    EXPECT_FAILURE(peridot_file_check(file), PERIDOT_ERROR_FORMAT, "[271, 384]", "[272, 384]");
    peridot_file_close(file);
}

static void test_vision(void **state)
{
    (void)state;
    static const struct { const char *name; uint32_t n; } models[] = {{"gemma3-wrapped", 3}, {"gemma4-old", 1}};
    for (size_t i = 0; i < PD_COUNT(models); i++) {
        EXPECT_OK(convert(golden(models[i].name), "bf16"));
        assert_int_equal(stats.n_ignored, models[i].n);
        struct pd_checkpoint *c = open_file(in_folder("x.gguf"));
        assert_int_equal(pd_checkpoint_n_tensors(c), stats.n_tensors);
        pd_checkpoint_close(c);
    }
    remove(in_folder("x.gguf"));
}

/* Replaces the last number of a file that ends in zeros otherwise. */
static void write_last(const char *name, uint32_t bits, size_t size)
{
    FILE *f = fopen(in_folder(name), "r+b");
    assert_non_null(f);
    long at = 0;
    for (int c, i = 0; (c = fgetc(f)) != EOF; i++)
        if (c) at = i;
    assert_int_equal(fseek(f, at + 1 - (long)size, SEEK_SET), 0);
    assert_int_equal(fwrite(&bits, size, 1, f), 1);
    assert_int_equal(fclose(f), 0);
}

/* Of every type of number, and wherever it is to go, unchanged too. */
static void test_not_finite(void **state)
{
    (void)state;
    static const struct { const char *type; size_t size; uint32_t bits; } rows[] = {
        {"f32", 4, 0x7fc00000}, {"f32", 4, 0xff800000}, {"f16", 2, 0xfe01}, {"f16", 2, 0x7c00}, {"bf16", 2, 0x7fff},
        {"bf16", 2, 0xff80}};
    for (size_t i = 0; i < PD_COUNT(rows); i++) {
        write_model(&(struct model){.vocab_size = 100, .family = "gemma", .odd = 1});
        EXPECT_OK(convert(folder, rows[i].type));
        assert_int_equal(rename(in_folder("x.gguf"), in_folder("odd.gguf")), 0);
        write_last("odd.gguf", rows[i].bits, rows[i].size);
        for (size_t k = 0; k < PD_COUNT(rows); k += 2)
            EXPECT_FAILURE(convert(in_folder("odd.gguf"), rows[k].type), PERIDOT_ERROR_FORMAT, "odd.gguf: weight 1023",
                           "blk.0.ffn_down.weight", "not a finite number");
        remove(in_folder("odd.gguf"));
        assert_int_not_equal(access(in_folder("x.gguf"), F_OK), 0);
    }
    write_model(&(struct model){.vocab_size = 100, .family = "gemma", .odd = NAN});
    EXPECT_FAILURE(convert(folder, "q8_0"), PERIDOT_ERROR_FORMAT, "weight 1023", "layers.0.mlp.down_proj",
                   "not a finite number");
    EXPECT_FAILURE(convert(folder, "f32"), PERIDOT_ERROR_FORMAT, "weight 1023", "layers.0.mlp.down_proj",
                   "not a finite number");
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
    EXPECT_FAILURE(convert(folder, "f32"), PERIDOT_ERROR_UNSUPPORTED, "model.layers.0.mystery",
                   "not known in a gemma model");
    write_model(&(struct model){.vocab_size = 100, .family = "gemma2"});
    EXPECT_FAILURE(convert(folder, "f32"), PERIDOT_ERROR_FORMAT, "feedforward_layernorm.weight", "missing");
    remove_model();
    EXPECT_FAILURE(convert(golden("gemma2-sequence"), "f32"), PERIDOT_ERROR_UNSUPPORTED, "gemma2-sequence",
                   "classification head");
    EXPECT_FAILURE(convert(golden("llama-base"), "f32"), PERIDOT_ERROR_UNSUPPORTED, "without an output matrix");
    EXPECT_FAILURE(convert(golden("gemma1"), "q1_0"), PERIDOT_ERROR_ARGUMENT, "q1_0", "q4_k, q5_k, q6_k", "q4_k_m");
    EXPECT_FAILURE(convert(golden("gemma1"), NULL), PERIDOT_ERROR_ARGUMENT, "(none)");
    EXPECT_FAILURE(convert(golden("nothing"), "f32"), PERIDOT_ERROR_IO, "nothing");
    EXPECT_FAILURE(peridot_convert(NULL, NULL, NULL, NULL), PERIDOT_ERROR_ARGUMENT, "NULL");
}

/* ---- mixes ---- */

struct mixed_model {
    char name[16], architecture[16], matrices[12][24];
    unsigned n_cols, n_layers, n_heads, n_kv_heads, n_experts;
    int n_matrices;
};

/* Of a line of mixes.txt; false: it is not of a model. */
static bool read_mixed_model(struct mixed_model *m, const char *line)
{
    int at = 0;
    memset(m, 0, sizeof *m);
    if (sscanf(line, "model %15s %15s %u %u %u %u %u%n", m->name, m->architecture, &m->n_cols, &m->n_layers,
               &m->n_heads, &m->n_kv_heads, &m->n_experts, &at) != 7) return false;
    for (int n; sscanf(line + at, "%23s%n", m->matrices[m->n_matrices], &n) == 1; at += n) m->n_matrices++;
    return true;
}

/* The name of a matrix in a layer, or of the one outside layers; false where the layer has none. NAME/3: in every third
 * layer. */
static bool matrix_name(char name[48], const char *matrix, unsigned layer)
{
    char part[24];
    unsigned every = 1;
    sscanf(matrix, "%23[^/]/%u", part, &every);
    bool in_layers = strcmp(part, "token_embd") != 0 && strcmp(part, "output") != 0;
    if (in_layers) snprintf(name, 48, "blk.%u.%s.weight", layer, part);
    else snprintf(name, 48, "%s.weight", part);
    return in_layers ? (layer + 1) % every == 0 : layer == 0;
}

static void write_mixed_model(const struct mixed_model *m)
{
    static const float zeros[16 * 2 * 256];
    static const struct { const char *key; size_t at; } keys[] = {
        {"block_count", offsetof(struct mixed_model, n_layers)},
        {"attention.head_count", offsetof(struct mixed_model, n_heads)},
        {"attention.head_count_kv", offsetof(struct mixed_model, n_kv_heads)},
        {"expert_count", offsetof(struct mixed_model, n_experts)}};
    char name[64];
    struct pd_gguf_writer *w;
    EXPECT_OK(pd_gguf_writer_open(&w, in_folder("m.gguf")));
    pd_gguf_writer_add_string(w, "general.architecture", m->architecture);
    for (size_t i = 0; i < PD_COUNT(keys); i++) {
        snprintf(name, sizeof name, "%s.%s", m->architecture, keys[i].key);
        pd_gguf_writer_add_u32(w, name, *(const unsigned *)((const char *)m + keys[i].at));
    }
    for (int writes = 0; writes < 2; writes++) {
        if (writes) EXPECT_OK(pd_gguf_writer_begin(w));
        for (unsigned layer = m->n_layers; layer-- > 0;)   /* their order in the file does not matter */
            for (int i = 0; i < m->n_matrices; i++) {
                uint64_t n = strstr(m->matrices[i], "_exps") ? m->n_experts : 0, shape[] = {n, 2, m->n_cols};
                if (!matrix_name(name, m->matrices[i], layer)) continue;
                if (!writes) pd_gguf_writer_add_tensor(w, name, PD_F32, n ? 3 : 2, shape + (n ? 0 : 1));
                else EXPECT_OK(pd_gguf_writer_write(w, zeros, (n ? n : 1) * 2 * m->n_cols * sizeof *zeros));
            }
    }
    EXPECT_OK(pd_gguf_writer_commit(w));
}

/* Of one matrix's types, TYPE or TYPE*LAYERS,...: that of the layer that is the i-th to have it. */
static void expected_type(char type[16], const char *runs, unsigned i)
{
    for (unsigned n = ~0u; sscanf(runs, "%15[^*,]*%u", type, &n) >= 1 && i >= n; i -= n) {
        runs = strchr(runs, ',');
        assert_non_null(runs++);
    }
}

static void check_mix(const struct mixed_model *m, const struct pd_checkpoint *c, const char *line)
{
    char mix[16], imatrix[8], runs[1000], type[16], name[48];
    int at, n;
    assert_int_equal(sscanf(line, "%15s %7s%n", mix, imatrix, &at), 2);
    struct pd_convert_target target = {.has_imatrix = !strcmp(imatrix, "yes")};
    for (size_t i = 0; (target.mix = pd_mix_get(i)) != NULL && strcmp(target.mix->name, mix) != 0;) i++;
    assert_non_null(target.mix);
    target.dtype = target.mix->dtype;
    struct pd_convert_plan plan;
    EXPECT_OK(pd_convert_plan_create(&plan, c, NULL, &target));
    for (int i = 0; i < m->n_matrices; i++, at += n) {
        assert_int_equal(sscanf(line + at, "%999s%n", runs, &n), 1);
        for (unsigned layer = 0, k = 0; layer < m->n_layers; layer++) {
            if (!matrix_name(name, m->matrices[i], layer)) continue;
            expected_type(type, runs, k++);
            for (uint32_t t = 0; t < plan.n; t++)
                if (!strcmp(plan.items[t].name, name) && strcmp(pd_dtypes[plan.items[t].dtype].name, type) != 0)
                    fail_msg("%s, %s, imatrix %s: %s is %s, not %s", m->name, mix, imatrix, name,
                             pd_dtypes[plan.items[t].dtype].name, type);
        }
    }
    pd_convert_plan_free(&plan);
}

/* Each matrix has the type that llama-quantize gives it (tools/golden/mixes.py). */
static void test_mixes(void **state)
{
    (void)state;
    static char line[8000];
    struct mixed_model m;
    struct pd_checkpoint *c = NULL;
    size_t n = 0;
    FILE *f = fopen(PERIDOT_MODELS "/../tests/mixes.txt", "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        if (line[0] == '#') continue;
        if (strncmp(line, "model ", 6) != 0) {
            check_mix(&m, c, line);
            n++;
            continue;
        }
        pd_checkpoint_close(c);
        assert_true(read_mixed_model(&m, line));
        write_mixed_model(&m);
        c = open_file(in_folder("m.gguf"));
    }
    fclose(f);
    pd_checkpoint_close(c);
    remove(in_folder("m.gguf"));
    assert_true(n >= 300);
}

/* Names of mixes are told apart from types, in whatever case, and the file says which it is. */
static void test_mix_names(void **state)
{
    (void)state;
    static const struct { const char *asked, *file_type; enum pd_dtype down; } rows[] = {
        {"Q4_K_M", "15", PD_Q6_K}, {"Q4_K", "14", PD_Q4_K}, {"q2_k", "10", PD_Q3_K}, {"Q3_K_L", "13", PD_Q5_K},
        {"iq4_xs", "30", PD_IQ4_XS}, {"Q4_K_XL", "14", PD_Q4_K}};
    const char *source = PERIDOT_MODELS "/stories.gguf";
    if (!pd_is_file(source)) skip();
    for (size_t i = 0; i < PD_COUNT(rows); i++) {
        EXPECT_OK(convert(source, rows[i].asked));
        struct pd_checkpoint *c = open_file(in_folder("x.gguf"));
        char name[32];
        uint64_t n = 0;
        while (snprintf(name, sizeof name, "blk.%u.ffn_down.weight", (unsigned)n), pd_checkpoint_find(c, name)) n++;
        snprintf(name, sizeof name, "blk.%u.ffn_down.weight", (unsigned)n - 1);
        assert_int_equal(pd_checkpoint_find(c, name)->dtype, rows[i].down);
        expect_text(c, "general.file_type", rows[i].file_type);
        pd_checkpoint_close(c);
    }
    for (size_t i = 0; peridot_convert_type(i); i++)
        assert_ptr_equal(peridot_convert_type_find(peridot_convert_type(i)), peridot_convert_type(i));
    assert_null(peridot_convert_type_find("q9_k"));
    assert_null(peridot_convert_type_find(NULL));
    EXPECT_FAILURE(convert(source, "iq2_m"), PERIDOT_ERROR_ARGUMENT, "type iq2_m needs an importance matrix");
    EXPECT_FAILURE(convert(source, "q2_k_s"), PERIDOT_ERROR_ARGUMENT, "type q2_k_s needs an importance matrix",
                   "blk.", "becomes q2_k");
    remove(in_folder("x.gguf"));
}

/* ---- importance of experts ---- */

enum { N_EXPERT_WEIGHTS = 2 * 256 };

/* A file of tensors [2 experts][rows][columns], f32. */
static void write_experts(const char *path, size_t n, const char *const names[], const uint64_t shapes[][3],
                          const float *const data[])
{
    struct pd_gguf_writer *w;
    EXPECT_OK(pd_gguf_writer_open(&w, path));
    pd_gguf_writer_add_string(w, "general.architecture", "llama");
    for (size_t i = 0; i < n; i++)
        pd_gguf_writer_add_tensor(w, names[i], PD_F32, shapes[i][2] ? 3 : 2, shapes[i]);
    EXPECT_OK(pd_gguf_writer_begin(w));
    for (size_t i = 0; i < n; i++) {
        size_t n_weights = (size_t)(shapes[i][0] * shapes[i][1] * (shapes[i][2] ? shapes[i][2] : 1));
        EXPECT_OK(pd_gguf_writer_write(w, data[i], n_weights * sizeof *data[i]));
    }
    EXPECT_OK(pd_gguf_writer_commit(w));
}

/* The older form: means times calls, of all experts in one row; 1 of one that was not taken. */
static void write_old_importance(const char *path, const char *name, const float *means, size_t n)
{
    const int32_t head[] = {1, (int32_t)strlen(name)}, calls[] = {2, (int32_t)(2 * n)};
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(head, sizeof head, 1, f), 1);
    assert_int_equal(fwrite(name, strlen(name), 1, f), 1);
    assert_int_equal(fwrite(calls, sizeof calls, 1, f), 1);
    for (size_t i = 0; i < 2 * n; i++) {
        float x = i < n ? 2 * means[i] : 2;
        assert_int_equal(fwrite(&x, sizeof x, 1, f), 1);
    }
    assert_int_equal(fclose(f), 0);
}

/* The squares of each expert are divided by how often it was taken; one that was not gets what it has without. So with
 * either form of files. */
static void check_experts(const char *name, const char *told_of)
{
    static float x[2 * N_EXPERT_WEIGHTS], sums[2 * 256], means[256];
    const float counts[] = {4, 0};
    char squares[64], n_rows[64];
    const char *const told[] = {squares, n_rows};
    snprintf(squares, sizeof squares, "%s.in_sum2", told_of);
    snprintf(n_rows, sizeof n_rows, "%s.counts", told_of);
    uint8_t expected[2 * N_EXPERT_WEIGHTS];
    uint32_t seed = 1;
    for (int i = 0; i < 2 * N_EXPERT_WEIGHTS; i++)
        x[i] = (float)((seed = seed * 1664525 + 1013904223) >> 8) / (float)(1 << 24) - 0.5f;
    for (int i = 0; i < 256; i++) means[i] = (sums[i] = (float)(1 + i % 64 * i % 7)) / 4;
    write_experts(in_folder("m.gguf"), 1, &name, (const uint64_t[][3]){{2, 2, 256}}, (const float *const[]){x});
    write_experts(in_folder("i.gguf"), 2, told, (const uint64_t[][3]){{2, 256, 0}, {2, 1, 0}},
                  (const float *const[]){sums, counts});
    write_old_importance(in_folder("i.dat"), told_of, means, 256);
    for (int i = 0; i < 4; i++) {
        enum pd_dtype type = i % 2 ? PD_IQ2_XXS : PD_Q4_K;
        const char *imatrix = in_folder(i / 2 ? "i.dat" : "i.gguf");
        peridot_convert_params params = {.type = pd_dtypes[type].name, .imatrix = imatrix};
        EXPECT_OK(peridot_convert(in_folder("x.gguf"), in_folder("m.gguf"), &params, &stats));
        assert_int_equal(stats.n_weighted, 1);
        assert_int_equal(stats.n_unseen, 1);
        struct pd_checkpoint *c = open_file(in_folder("x.gguf"));
        const struct pd_tensor *t = pd_checkpoint_find(c, name);
        size_t size = (size_t)pd_row_size(type, 256);
        assert_int_equal(t->dtype, type);
        for (int r = 0; r < 2; r++) pd_quantize_by(type, expected + (size_t)r * size, x + 256 * r, means, 256);
        pd_quantize(type, expected + 2 * size, x + N_EXPERT_WEIGHTS, N_EXPERT_WEIGHTS);
        assert_memory_equal(t->data, expected, 4 * size);
        pd_checkpoint_close(c);
        remove(in_folder("x.gguf"));
    }
    remove(in_folder("m.gguf"));
    remove(in_folder("i.gguf"));
    remove(in_folder("i.dat"));
}

/* Also where gate and up are one matrix in the model and two in the file, or the other way. */
static void test_experts(void **state)
{
    (void)state;
    check_experts("blk.0.ffn_down_exps.weight", "blk.0.ffn_down_exps.weight");
    check_experts("blk.0.ffn_gate_up_exps.weight", "blk.0.ffn_gate_exps.weight");
    check_experts("blk.0.ffn_gate_exps.weight", "blk.0.ffn_gate_up_exps.weight");
    check_experts("blk.0.ffn_up_exps.weight", "blk.0.ffn_gate_up_exps.weight");
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
    EXPECT_FAILURE(peridot_convert(in_folder("x.gguf"), golden("gemma1"), &params, NULL), PERIDOT_CANCELLED,
                   "cancelled");
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

/* A file is not converted onto itself, whatever it is called. */
static void test_itself(void **state)
{
    (void)state;
    EXPECT_OK(convert(golden("gemma1"), "f32"));
    assert_int_equal(link(in_folder("x.gguf"), in_folder("hard.gguf")), 0);
    assert_int_equal(symlink("x.gguf", in_folder("soft.gguf")), 0);
    static const char *const names[] = {"x.gguf", "hard.gguf", "soft.gguf"};
    for (size_t i = 0; i < PD_COUNT(names); i++)
        EXPECT_FAILURE(convert(in_folder(names[i]), "f16"), PERIDOT_ERROR_IO, "x.gguf: ", "the file that is read");
    struct pd_checkpoint *c = open_file(in_folder("x.gguf"));
    assert_int_equal(pd_checkpoint_find(c, "token_embd.weight")->dtype, PD_F32);
    pd_checkpoint_close(c);
    for (size_t i = 0; i < PD_COUNT(names); i++) remove(in_folder(names[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_golden, clean),
        cmocka_unit_test_teardown(test_converter, clean),
        cmocka_unit_test_teardown(test_types, clean),
        cmocka_unit_test_teardown(test_scales, clean),
        cmocka_unit_test_teardown(test_narrow, clean),
        cmocka_unit_test_teardown(test_vision, clean),
        cmocka_unit_test_teardown(test_per_layer_inputs, clean),
        cmocka_unit_test_teardown(test_short_table, clean),
        cmocka_unit_test_teardown(test_not_finite, clean),
        cmocka_unit_test_teardown(test_refusals, clean),
        cmocka_unit_test_teardown(test_pieces, clean),
        cmocka_unit_test_teardown(test_mixes, clean),
        cmocka_unit_test_teardown(test_mix_names, clean),
        cmocka_unit_test_teardown(test_experts, clean),
        cmocka_unit_test_teardown(test_cancel, clean),
        cmocka_unit_test_teardown(test_full_disk, clean),
        cmocka_unit_test_teardown(test_itself, clean),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

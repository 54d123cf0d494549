/* Opening models: GGUF files, Hugging Face directories with one file or many, what is wrong with them, and the public
 * view of what they hold (peridot_file_*). */
#include "format_fixture.h"

#include "format/format.h"

#include <math.h>

static const char index_name[] = "model.safetensors.index.json";

static void remove_all(void)
{
    static const char *const names[] = {"config.json", "model.safetensors", index_name, "a.safetensors",
        "b.safetensors",
                                        "x.gguf"};
    for (size_t i = 0; i < PD_COUNT(names); i++) remove(in_folder(names[i]));
}

/* A file of tensors named by one letter each, 4 bytes each, of one type. */
static void write_shard(const char *file, const char *letters, const char *dtype, const char *prefix)
{
    static struct blob b;
    char header[2000] = "{";
    size_t n = strlen(letters), size = 1;
    for (size_t i = 0; i < n; i++)
        size += (size_t)snprintf(header + size, sizeof header - size,
                                 "%s\"%s%c\":{\"dtype\":\"%s\",\"shape\":[%d],\"data_offsets\":[%zu,%zu]}",
                                 i ? "," : "", prefix,
                                 letters[i], dtype, strcmp(dtype, "F32") ? 4 : 1, 4 * i, 4 * i + 4);
    snprintf(header + size, sizeof header - size, "}");
    b.size = 0;
    put_string(&b, header);
    for (size_t i = 0; i < n; i++) put(&b, "data", 4);
    write_file(file, b.data, b.size);
}

static void write_index(const char *weight_map)
{
    char text[1000];
    snprintf(text, sizeof text, "{\"metadata\":{\"total_size\":12},\"weight_map\":%s}", weight_map);
    write_text(index_name, text);
}

#define REFUSED(...)                                                           \
    do {                                                                       \
        struct pd_checkpoint *refused_checkpoint;                              \
        EXPECT_FAILURE(pd_checkpoint_open(&refused_checkpoint, folder, true), __VA_ARGS__); \
        assert_null(refused_checkpoint);                                       \
    } while (0)

/* ---- directories ---- */

static void test_single(void **state)
{
    (void)state;
    struct pd_checkpoint *c;
    write_text("config.json", "{\"model_type\":\"gemma2\"}");
    write_shard("model.safetensors", "vw", "F32", "");
    EXPECT_OK(pd_checkpoint_open(&c, in_folder("//"), true));
    assert_int_equal(pd_checkpoint_kind(c), PD_CHECKPOINT_HF);
    assert_string_equal(pd_checkpoint_path(c), folder);
    assert_int_equal(pd_checkpoint_n_tensors(c), 2);
    assert_string_equal(pd_checkpoint_tensor(c, 1)->name, "w");
    assert_string_equal(pd_checkpoint_find(c, "w")->file, in_folder("model.safetensors"));
    assert_memory_equal(pd_checkpoint_find(c, "w")->data, "data", 4);
    assert_null(pd_checkpoint_find(c, "x"));
    assert_true(yyjson_equals_str(yyjson_obj_get(pd_checkpoint_config(c), "model_type"), "gemma2"));
    assert_int_equal(pd_checkpoint_n_meta(c), 0);
    assert_null(pd_checkpoint_find_meta(c, "general.name"));
    pd_checkpoint_close(c);
    remove(in_folder("model.safetensors"));
    EXPECT_OK(pd_checkpoint_open(&c, folder, false));
    assert_int_equal(pd_checkpoint_n_tensors(c), 0);
    assert_null(pd_checkpoint_find(c, "w"));
    pd_checkpoint_close(c);
    pd_checkpoint_close(NULL);
    remove_all();
}

static void test_missing(void **state)
{
    (void)state;
    REFUSED(PERIDOT_ERROR_IO, folder, "no config.json in this folder: a model is a folder with one, or a .gguf");
    write_text("config.json", "{}");
    REFUSED(PERIDOT_ERROR_IO, folder, "neither model.safetensors nor model.safetensors.index.json");
    struct pd_checkpoint *c;
    EXPECT_FAILURE(pd_checkpoint_open(&c, in_folder("no.gguf"), true), PERIDOT_ERROR_IO, "no.gguf", NO_SUCH_FILE);
    write_text("x.gguf", "");
    EXPECT_FAILURE(pd_checkpoint_open(&c, in_folder("x.gguf"), true), PERIDOT_ERROR_FORMAT,
                   "x.gguf: not a GGUF file: it is empty (0 bytes)");
    remove_all();
}

static void test_json(void **state)
{
    (void)state;
    write_text("config.json", "");
    REFUSED(PERIDOT_ERROR_FORMAT, "config.json: not JSON: it is empty (0 bytes)");
    write_text("config.json", "<!DOCTYPE html><title>Sign in</title>");
    REFUSED(PERIDOT_ERROR_FORMAT, "config.json: not JSON: it is a web page");
    write_text("config.json", "version https://git-lfs.github.com/spec/v1\nsize 9\n");
    REFUSED(PERIDOT_ERROR_FORMAT, "config.json: not JSON: it is a Git LFS pointer to 9 bytes");
    write_text("config.json", "{\"a\": [1,");
    REFUSED(PERIDOT_ERROR_FORMAT, "config.json: not JSON", "cut short", "byte 9");
    write_text("config.json", "{\n  \"a\": 1,\n  \"b\" 2\n}");
    REFUSED(PERIDOT_ERROR_FORMAT, "config.json: not JSON", "line 3, column 7, byte 18");
    write_text("config.json", "{\"a\": 1");
    REFUSED(PERIDOT_ERROR_FORMAT, "config.json: not JSON", "byte 7");
    write_text("config.json", "null");
    REFUSED(PERIDOT_ERROR_FORMAT, "config.json: its JSON is not an object but null");
    write_text("config.json", "{\"text_config\":{\"x\":1,\"hidden_size\":1,\"hidden_size\":2}}");
    REFUSED(PERIDOT_ERROR_FORMAT, "config.json: key hidden_size is there twice (entries 1 and 2)");
    write_text("config.json", "{\"a\":[1],\"a\":[1],\"a\":[2]}");
    REFUSED(PERIDOT_ERROR_FORMAT, "config.json: key a is there twice (entries 1 and 2)");
    write_text("config.json", "{\"a\":\"\xff\"}");
    REFUSED(PERIDOT_ERROR_FORMAT, "config.json: not JSON", "byte 6");
    remove_all();
}

static void test_shards(void **state)
{
    (void)state;
    struct pd_checkpoint *c;
    write_text("config.json",   /* as it may be */
               "{\"a\":{\"b\":[1,{}]},\"limit\":[NaN,-Infinity],\"a\":{\"b\":[1,{}]}}");
    write_shard("a.safetensors", "vw", "F32", "");
    write_shard("b.safetensors", "xy", "F32", "");
    /* y is left out, and found */
    write_index("{\"x\":\"b.safetensors\",\"v\":\"a.safetensors\",\"w\":\"a.safetensors\"}");
    EXPECT_OK(pd_checkpoint_open(&c, folder, true));
    assert_int_equal(pd_checkpoint_n_tensors(c), 4);
    assert_string_equal(pd_checkpoint_find(c, "w")->file, in_folder("a.safetensors"));
    assert_string_equal(pd_checkpoint_find(c, "y")->file, in_folder("b.safetensors"));
    assert_string_equal(pd_checkpoint_tensor(c, 2)->name, "x");
    pd_checkpoint_close(c);
    write_shard("b.safetensors", "xw", "F32", "");
    REFUSED(PERIDOT_ERROR_FORMAT, "b.safetensors: tensor w is also in", "a.safetensors");
    write_index("{\"v\":\"a.safetensors\",\"q\":\"a.safetensors\"}");
    REFUSED(PERIDOT_ERROR_FORMAT, index_name, "tensor q is not in a.safetensors");
    write_shard("b.safetensors", "xy", "F32", "");
    write_index("{\"v\":\"a.safetensors\",\"x\":\"a.safetensors\",\"y\":\"b.safetensors\"}");
    REFUSED(PERIDOT_ERROR_FORMAT, index_name, "tensor x is not in a.safetensors");
    write_text("b.safetensors", "short");
    REFUSED(PERIDOT_ERROR_FORMAT, "b.safetensors: not a safetensors file: it is a text of 5 bytes, \"short\"");
    remove_all();
}

static void test_index(void **state)
{
    (void)state;
    static const char *const paths[] = {"../a.safetensors", "/etc/passwd", "sub/a", "..", ".", "", "a\\b", "c:a",
        "a\\u0000b",
                                        "a\\u001b[1m"};
    write_text("config.json", "{}");
    write_shard("a.safetensors", "vw", "F32", "");
    write_text(index_name, "{}");
    REFUSED(PERIDOT_ERROR_FORMAT, index_name, "no weight_map object");
    write_index("[]");
    REFUSED(PERIDOT_ERROR_FORMAT, index_name, "no weight_map object");
    write_index("{\"v\":1}");
    REFUSED(PERIDOT_ERROR_FORMAT, index_name, "tensor v", "not in a file of this folder (uint)");
    write_index("{\"v\":\"a.safetensors\",\"w\":\"m-2.safetensors\",\"x\":\"m-3.safetensors\","
                "\"y\":\"m-3.safetensors\"}");
    REFUSED(PERIDOT_ERROR_IO, index_name, "2 of its 3 files are missing: m-2.safetensors, m-3.safetensors");
    for (size_t i = 0; i < PD_COUNT(paths); i++) {
        char map[100];
        snprintf(map, sizeof map, "{\"v\":\"a.safetensors\",\"w\":\"%s\"}", paths[i]);
        write_index(map);
        REFUSED(PERIDOT_ERROR_FORMAT, index_name, "tensor w is not in a file of this folder");
        assert_null(strchr(pd_error(), 0x1b));
    }
    remove_all();
}

static void test_types(void **state)
{
    (void)state;
    static const char *const ignored[] = {"vision_tower.", "multi_modal_projector.", "model.vision_tower.",
                                          "model.multi_modal_projector."};
    write_text("config.json", "{}");
    write_shard("model.safetensors", "vw", "U8", "model.layers.0.");
    REFUSED(PERIDOT_ERROR_UNSUPPORTED, "model.safetensors: tensor model.layers.0.v has type u8, which is not read");
    write_shard("model.safetensors", "v", "F8_E4M3", "");
    REFUSED(PERIDOT_ERROR_UNSUPPORTED, "tensor v has type f8_e4m3");
    for (size_t i = 0; i < PD_COUNT(ignored); i++) {
        struct pd_checkpoint *c;
        write_shard("model.safetensors", "v", "U8", ignored[i]);
        EXPECT_OK(pd_checkpoint_open(&c, folder, true));
        assert_int_equal(pd_checkpoint_tensor(c, 0)->dtype, PD_DTYPE_OTHER);
        pd_checkpoint_close(c);
    }
    remove_all();
}

/* ---- the public view ---- */

static void expect_metadata(const peridot_file *f, size_t i, const char *key, const char *value)
{
    char *text;
    assert_string_equal(peridot_file_metadata_key(f, i), key);
    EXPECT_OK(peridot_file_metadata_text(&text, f, i));
    assert_string_equal(text, value);
    free(text);
}

static void test_file_hf(void **state)
{
    (void)state;
    peridot_file *f;
    write_text("config.json",
               "{\"a\":\"te\\u001bxt\",\"text_config\":{\"n\":26,\"rope\":{\"b\":[1,2.5],\"none\":{}}},\"t\":true}");
    write_shard("model.safetensors", "vw", "BOOL", "vision_tower.");
    EXPECT_OK(peridot_file_open(&f, folder));
    assert_int_equal(peridot_file_n_metadata(f), 5);
    expect_metadata(f, 0, "a", "te\\x1bxt");
    expect_metadata(f, 1, "text_config.n", "26");
    expect_metadata(f, 2, "text_config.rope.b", "[1,2.5]");
    expect_metadata(f, 3, "text_config.rope.none", "{}");
    expect_metadata(f, 4, "t", "true");
    assert_int_equal(peridot_file_n_tensors(f), 2);
    const peridot_tensor_info *t = peridot_file_tensor(f, 1);
    assert_string_equal(t->name, "vision_tower.w");
    assert_string_equal(t->type, "bool");
    assert_int_equal(t->size, 4);
    peridot_file_close(f);
    remove_all();
}

static void write_gguf(void)
{
    struct pd_gguf_writer *w;
    EXPECT_OK(pd_gguf_writer_open(&w, in_folder("x.gguf")));
    pd_gguf_writer_add_string(w, "general.name", "x");
    pd_gguf_writer_add_tensor(w, "t", PD_Q8_0, 2, (const uint64_t[]){2, 32});
    EXPECT_OK(pd_gguf_writer_begin(w));
    EXPECT_OK(pd_gguf_writer_write(w, (const uint8_t[68]){0}, 68));
    EXPECT_OK(pd_gguf_writer_commit(w));
}

static void test_file_gguf(void **state)
{
    (void)state;
    peridot_file *f;
    char *text;
    write_gguf();
    EXPECT_OK(peridot_file_open(&f, in_folder("x.gguf")));
    assert_int_equal(peridot_file_n_metadata(f), 1);
    expect_metadata(f, 0, "general.name", "x");
    const peridot_tensor_info *t = peridot_file_tensor(f, 0);
    assert_string_equal(t->type, "q8_0");
    assert_int_equal(t->shape[0], 2);
    assert_int_equal(t->shape[1], 32);
    assert_null(peridot_file_tensor(f, 1));
    assert_null(peridot_file_metadata_key(f, 1));
    assert_null(peridot_file_model(f));
    assert_non_null(strstr(peridot_last_error(), "general.architecture"));
    EXPECT_FAILURE(peridot_file_metadata_text(&text, f, 1), PERIDOT_ERROR_ARGUMENT, "no metadata 1");
    peridot_file_close(f);
    peridot_file_close(NULL);
    EXPECT_FAILURE(peridot_file_open(&f, NULL), PERIDOT_ERROR_ARGUMENT, "path is NULL");
    remove_all();
}

/* ---- a GGUF in parts ---- */

/* The golden model: part `part` of n, by its own account of `says`, with the tensors whose index is `part` modulo n,
 * and with the keys in the first. */
static void write_part(const struct pd_checkpoint *c, const char *name, uint32_t part, uint32_t n, uint32_t says)
{
    struct pd_gguf_writer *w;
    EXPECT_OK(pd_gguf_writer_open(&w, in_folder(name)));
    for (size_t i = 0; part == 0 && i < pd_checkpoint_n_meta(c); i++)
        pd_gguf_writer_add_meta(w, pd_checkpoint_meta(c, i));
    pd_gguf_writer_add_u32(w, "split.no", part);
    pd_gguf_writer_add_u32(w, "split.count", says);
    pd_gguf_writer_add_u32(w, "split.tensors.count", (uint32_t)pd_checkpoint_n_tensors(c));
    for (size_t i = part; i < pd_checkpoint_n_tensors(c); i += n) {
        const struct pd_tensor *t = pd_checkpoint_tensor(c, i);
        pd_gguf_writer_add_tensor(w, t->name, t->dtype, t->n_dims, t->shape);
    }
    EXPECT_OK(pd_gguf_writer_begin(w));
    for (size_t i = part; i < pd_checkpoint_n_tensors(c); i += n) {
        const struct pd_tensor *t = pd_checkpoint_tensor(c, i);
        EXPECT_OK(pd_gguf_writer_write(w, t->data, t->size));
    }
    EXPECT_OK(pd_gguf_writer_commit(w));
}

#define PART(i) "m-0000" #i "-of-00003.gguf"
#define PARTS_REFUSED(name, ...)                                                                          \
    do {                                                                                                  \
        struct pd_checkpoint *refused_checkpoint;                                                         \
        EXPECT_FAILURE(pd_checkpoint_open(&refused_checkpoint, in_folder(name), true), __VA_ARGS__);      \
        assert_null(refused_checkpoint);                                                                  \
    } while (0)

static void test_parts(void **state)
{
    (void)state;
    static const char *const names[] = {PART(1), PART(2), PART(3)};
    struct pd_checkpoint *whole, *c;
    EXPECT_OK(pd_checkpoint_open(&whole, PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf", true));
    for (uint32_t i = 0; i < 3; i++) write_part(whole, names[i], i, 3, 3);
    EXPECT_OK(pd_checkpoint_open(&c, in_folder(PART(1)), true));
    assert_int_equal(pd_checkpoint_n_tensors(c), pd_checkpoint_n_tensors(whole));
    for (size_t i = 0; i < pd_checkpoint_n_tensors(whole); i++) {
        const struct pd_tensor *want = pd_checkpoint_tensor(whole, i), *got = pd_checkpoint_find(c, want->name);
        assert_non_null(got);
        assert_int_equal(got->size, want->size);
        assert_memory_equal(got->data, want->data, want->size);
        assert_non_null(strstr(got->file, names[i % 3]));
    }
    EXPECT_FAILURE(pd_checkpoint_check_output(c, in_folder(PART(2))), PERIDOT_ERROR_IO, PART(2), "is read");
    pd_checkpoint_close(c);
    PARTS_REFUSED(PART(2), PERIDOT_ERROR_ARGUMENT, "part 2", "3 files", "give the first");
    write_part(whole, PART(3), 1, 3, 3);
    PARTS_REFUSED(PART(1), PERIDOT_ERROR_FORMAT, PART(3), "part 2 of 3", "not 3 of 3");
    write_part(whole, PART(3), 2, 4, 3);
    PARTS_REFUSED(PART(1), PERIDOT_ERROR_FORMAT, PART(1), "split.tensors.count");
    write_part(whole, PART(3), 2, 3, 3);
    write_part(whole, PART(2), 1, 3, 4);
    PARTS_REFUSED(PART(1), PERIDOT_ERROR_FORMAT, PART(2), "part 2 of 4");
    remove(in_folder(PART(2)));
    PARTS_REFUSED(PART(1), PERIDOT_ERROR_IO, PART(2), NO_SUCH_FILE);
    write_part(whole, "x.gguf", 0, 3, 3);
    PARTS_REFUSED("x.gguf", PERIDOT_ERROR_FORMAT, "x.gguf", "-00001-of-00003.gguf");
    remove(in_folder("x.gguf"));
    remove(in_folder(PART(1)));
    remove(in_folder(PART(3)));
    pd_checkpoint_close(whole);
}

/* ---- the golden models ---- */

/* What a model will be is known without loading it. */
/* ---- scales of NVFP4 ---- */

struct scaled {
    const char *family, *matrix, *scale;
    enum pd_dtype dtype, scale_dtype;
    uint32_t n_dims;                  /* of the matrix, [3,] 2, 64 */
    uint64_t n_scales;
};

static void write_scaled(const struct scaled *s)
{
    static const uint8_t zeros[3 * 2 * 64 * 4];
    const float scales[16] = {0.5f, 3, -7};
    const uint64_t shape[] = {3, 2, 64};
    struct pd_gguf_writer *w;
    uint64_t size = pd_row_size(s->dtype, s->n_dims == 3 ? 3 * 2 * 64 : 2 * 64);
    EXPECT_OK(pd_gguf_writer_open(&w, in_folder("x.gguf")));
    pd_gguf_writer_add_string(w, "general.architecture", s->family);
    pd_gguf_writer_add_tensor(w, s->scale, s->scale_dtype, 1, &s->n_scales);
    pd_gguf_writer_add_tensor(w, s->matrix, s->dtype, s->n_dims, shape + 3 - s->n_dims);
    EXPECT_OK(pd_gguf_writer_begin(w));
    EXPECT_OK(pd_gguf_writer_write(w, scales, pd_row_size(s->scale_dtype, s->n_scales)));
    EXPECT_OK(pd_gguf_writer_write(w, zeros, size));
    EXPECT_OK(pd_gguf_writer_commit(w));
}

/* How many scales the matrix has, the last one's value, and whether the other tensor is known as scales. */
static void expect_scales(const struct scaled *s, uint64_t n, float last, bool is_scale)
{
    struct pd_checkpoint *c;
    write_scaled(s);
    EXPECT_OK(pd_checkpoint_open(&c, in_folder("x.gguf"), true));
    const struct pd_tensor *t = pd_checkpoint_find(c, s->matrix);
    assert_int_equal(t->n_scales, n);
    for (uint64_t row = 0; row < pd_tensor_n_rows(t); row++)
        assert_true(pd_tensor_scale(t, row) == (n < 2 ? last : row < 2 ? 0.5f : row < 4 ? 3 : last));
    assert_int_equal(pd_checkpoint_find(c, s->scale)->is_scale, is_scale);
    pd_checkpoint_close(c);
}

#define SCALES_REFUSED(scaled, ...)                                                                          \
    do {                                                                                                     \
        write_scaled(scaled);                                                                                \
        PARTS_REFUSED("x.gguf", PERIDOT_ERROR_FORMAT, "x.gguf: tensor " __VA_ARGS__);                        \
    } while (0)

static void test_scales(void **state)
{
    (void)state;
    const struct scaled one = {"llama", "blk.0.ffn_up.weight", "blk.0.ffn_up.scale", PD_NVFP4, PD_F32, 2, 1};
    const struct scaled experts = {"qwen3moe", "blk.0.ffn_down_exps.weight", "blk.0.ffn_down_exps.scale", PD_NVFP4,
        PD_F32, 3, 3};
    struct scaled s = one;
    expect_scales(&one, 1, 0.5f, true);
    expect_scales(&experts, 3, -7, true);
    s.scale = "blk.0.ffn_up.input_scale";
    expect_scales(&s, 0, 1, true);
    s.scale = "blk.1.ffn_up.scale";
    expect_scales(&s, 0, 1, false);
    s = one, s.matrix = "blk.0.ffn_up.bias";
    expect_scales(&s, 0, 1, false);
    s = one, s.dtype = PD_Q8_0;
    expect_scales(&s, 0, 1, false);
    s = experts, s.n_scales = 1;
    expect_scales(&s, 1, 0.5f, true);
    s = experts, s.family = "gemma4";   /* there it is a tensor of its own */
    expect_scales(&s, 0, 1, false);
    s = one, s.n_scales = 2;
    SCALES_REFUSED(&s, "blk.0.ffn_up.scale has 8 bytes of type f32", "blk.0.ffn_up.weight", "(1)");
    s = one, s.scale_dtype = PD_F16, s.n_scales = 2;   /* as many bytes as there should be */
    SCALES_REFUSED(&s, "blk.0.ffn_up.scale has 4 bytes of type f16", "must be f32");
    s = experts, s.n_scales = 2;
    SCALES_REFUSED(&s, "blk.0.ffn_down_exps.scale", "one for each of its matrices (3)");
    s = experts, s.n_scales = 6;
    SCALES_REFUSED(&s, "blk.0.ffn_down_exps.scale", "one for each of its matrices (3)");
    remove(in_folder("x.gguf"));
}

/* A file's number that is not finite makes weights that are not, and the sentence names the matrix. */
static void test_scale_not_finite(void **state)
{
    (void)state;
    uint64_t index;
    float inf = INFINITY;
    uint8_t block[72] = {0};
    struct pd_tensor t = {.dtype = PD_NVFP4, .n_dims = 2, .shape = {2, 64, 1, 1}, .data = block, .size = sizeof block,
        .scales = (const uint8_t *)&inf, .n_scales = 1};
    assert_true(pd_tensor_find_nonfinite(&t, &index) && index == 0);
    inf = 1;
    assert_false(pd_tensor_find_nonfinite(&t, &index));
}

static void test_file_model(void **state)
{
    (void)state;
    static const struct { const char *path, *name, *family; peridot_head head; uint32_t ctx_max; } models[] = {
        {"gemma2-q8_0/model.gguf", "gemma2-q8_0", "gemma2", PERIDOT_HEAD_LANGUAGE, 512},
        {"gemma2-sequence", "gemma2-sequence", "gemma2", PERIDOT_HEAD_SEQUENCE, 512},
        {"gemma2-token", "gemma2-token", "gemma2", PERIDOT_HEAD_TOKEN, 512},
        {"llama-base", "llama-base", "llama", PERIDOT_HEAD_NONE, 512},
    };
    for (size_t i = 0; i < PD_COUNT(models); i++) {
        char path[1024];
        peridot_file *f;
        snprintf(path, sizeof path, "%s/%s", PERIDOT_GOLDEN, models[i].path);
        EXPECT_OK(peridot_file_open(&f, path));
        const peridot_model_info *m = peridot_file_model(f);
        assert_non_null(m);
        assert_string_equal(m->name, models[i].name);
        assert_string_equal(m->family, models[i].family);
        assert_int_equal(m->head, models[i].head);
        assert_int_equal(m->ctx_max, models[i].ctx_max);
        assert_true(m->weights_size > 0);
        assert_null(m->device);
        peridot_file_close(f);
    }
}

static void test_golden(void **state)
{
    (void)state;
    static const struct { const char *path; size_t n_tensors; const char *tensor, *type; } models[] = {
        {"gemma1", 29, "model.embed_tokens.weight", "f32"},
        {"gemma1/model.gguf", 29, "token_embd.weight", "f32"},
        {"gemma2-bf16-shards", 46, "model.layers.1.mlp.up_proj.weight", "bf16"},
        {"gemma2-q8_0/model.gguf", 46, "token_embd.weight", "q8_0"},
        {"gemma2-q4_0/model.gguf", 46, "blk.0.attn_q.weight", "q4_0"},
        {"gemma3-wrapped", 96, "language_model.model.embed_tokens.weight", "bf16"},
    };
    for (size_t i = 0; i < PD_COUNT(models); i++) {
        char path[1024];
        struct pd_checkpoint *c;
        snprintf(path, sizeof path, "%s/%s", PERIDOT_GOLDEN, models[i].path);
        EXPECT_OK(pd_checkpoint_open(&c, path, true));
        assert_int_equal(pd_checkpoint_n_tensors(c), models[i].n_tensors);
        const struct pd_tensor *t = pd_checkpoint_find(c, models[i].tensor);
        assert_non_null(t);
        assert_string_equal(t->type, models[i].type);
        pd_checkpoint_close(c);
    }
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single), cmocka_unit_test(test_missing),   cmocka_unit_test(test_json),
        cmocka_unit_test(test_shards), cmocka_unit_test(test_index),     cmocka_unit_test(test_types),
        cmocka_unit_test(test_file_hf), cmocka_unit_test(test_file_gguf), cmocka_unit_test(test_golden),
        cmocka_unit_test(test_parts), cmocka_unit_test(test_scales), cmocka_unit_test(test_scale_not_finite),
        cmocka_unit_test(test_file_model),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

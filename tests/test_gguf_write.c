/* The GGUF writer: what it writes is read back, and what is given up leaves nothing. */
#include "format_fixture.h"

#include "format/format_.h"
#include "format/format.h"

static void expect_text(const struct pd_meta *m, const char *expected)
{
    char *text = pd_meta_text(m);
    assert_string_equal(text, expected);
    free(text);
}

static void write_some(struct pd_gguf_writer *w)
{
    static const struct pd_string strings[] = {{"a", 1}, {"", 0}, {"b\0c", 3}};
    static const int32_t numbers[] = {-1, 2};
    pd_gguf_writer_add_u32(w, "u32", 7);
    pd_gguf_writer_add_f32(w, "f32", 0.25f);
    pd_gguf_writer_add_bool(w, "bool", true);
    pd_gguf_writer_add_string(w, "string", "some text");
    pd_gguf_writer_add_strings(w, "strings", 3, strings);
    pd_gguf_writer_add_array(w, "array", PD_META_INT32, 2, numbers);
    pd_gguf_writer_add_tensor(w, "m", PD_Q4_0, 2, (const uint64_t[]){3, 64});
    pd_gguf_writer_add_tensor(w, "v", PD_F32, 1, (const uint64_t[]){5});
}

static void check_written(const struct pd_gguf *g, const uint8_t *m, const float *v)
{
    uint64_t u;
    double f;
    struct pd_string s;
    assert_int_equal(g->version, 3);
    assert_int_equal(g->n_meta, 6);
    assert_true(pd_meta_uint(&u, pd_gguf_find_meta(g, "u32"), 0) && u == 7);
    assert_true(pd_meta_float(&f, pd_gguf_find_meta(g, "f32"), 0) && f == 0.25);
    assert_true(pd_meta_string(&s, pd_gguf_find_meta(g, "strings"), 2) && s.size == 3 && !memcmp(s.data, "b\0c", 3));
    expect_text(pd_gguf_find_meta(g, "bool"), "true");
    expect_text(pd_gguf_find_meta(g, "string"), "some text");
    expect_text(pd_gguf_find_meta(g, "array"), "[-1, 2]");
    const struct pd_tensor *t = pd_tensor_list_find(&g->tensors, "m");
    assert_int_equal(t->shape[0], 3);
    assert_memory_equal(t->data, m, 108);
    t = pd_tensor_list_find(&g->tensors, "v");
    assert_int_equal(t->n_dims, 1);
    assert_memory_equal(t->data, v, 20);
}

static void test_write(void **state)
{
    (void)state;
    struct pd_gguf_writer *w;
    struct pd_map map;
    struct pd_gguf g;
    uint8_t m[108];
    const float v[5] = {1, 2, 3, 4, 5};
    for (size_t i = 0; i < sizeof m; i++) m[i] = (uint8_t)(i * 37);
    EXPECT_OK(pd_gguf_writer_open(&w, in_folder("w.gguf")));
    write_some(w);
    assert_int_equal(pd_gguf_writer_data_size(w), 128);
    EXPECT_OK(pd_gguf_writer_begin(w));
    for (size_t i = 0; i < sizeof m; i += 27) EXPECT_OK(pd_gguf_writer_write(w, m + i, 27));
    EXPECT_OK(pd_gguf_writer_write(w, v, sizeof v));
    assert_false(pd_is_file(in_folder("w.gguf")));
    EXPECT_OK(pd_gguf_writer_commit(w));
    EXPECT_OK(pd_map_open(&map, in_folder("w.gguf")));
    EXPECT_OK(pd_gguf_parse(&g, map.data, map.size, "w.gguf"));
    check_written(&g, m, v);
    pd_gguf_free(&g);
    pd_map_close(&map);
    remove(in_folder("w.gguf"));
}

static void test_abort(void **state)
{
    (void)state;
    struct pd_gguf_writer *w;
    EXPECT_OK(pd_gguf_writer_open(&w, in_folder("w.gguf")));
    write_some(w);
    EXPECT_OK(pd_gguf_writer_begin(w));
    pd_gguf_writer_abort(w);
    pd_gguf_writer_abort(NULL);
    EXPECT_FAILURE(pd_gguf_writer_open(&w, folder), PERIDOT_ERROR_IO, folder, "is a folder");
    EXPECT_FAILURE(pd_gguf_writer_open(&w, in_folder("no/w.gguf")), PERIDOT_ERROR_IO, "no/w.gguf", NO_SUCH_FILE);
    assert_null(w);
}

/* Every kind of value survives being copied to another file. */
static void test_copy(void **state)
{
    (void)state;
    struct pd_gguf_writer *w;
    struct pd_map maps[2];
    struct pd_gguf g[2];
    static const uint8_t inner[] = {PD_META_UINT8, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 7, 8, 9,
                                    PD_META_STRING, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    const struct pd_meta nested = {"nested", PD_META_ARRAY, PD_META_ARRAY, 2, inner, NULL, sizeof inner};
    EXPECT_OK(pd_gguf_writer_open(&w, in_folder("w0.gguf")));
    pd_gguf_writer_add_meta(w, &nested);
    write_some(w);
    EXPECT_OK(pd_gguf_writer_begin(w));
    EXPECT_OK(pd_gguf_writer_write(w, (uint8_t[108]){0}, 108));
    EXPECT_OK(pd_gguf_writer_write(w, (uint8_t[20]){0}, 20));
    EXPECT_OK(pd_gguf_writer_commit(w));
    EXPECT_OK(pd_map_open(&maps[0], in_folder("w0.gguf")));
    EXPECT_OK(pd_gguf_parse(&g[0], maps[0].data, maps[0].size, "w0.gguf"));
    EXPECT_OK(pd_gguf_writer_open(&w, in_folder("w1.gguf")));
    for (size_t i = 0; i < g[0].n_meta; i++) pd_gguf_writer_add_meta(w, &g[0].meta[i]);
    EXPECT_OK(pd_gguf_writer_begin(w));
    EXPECT_OK(pd_gguf_writer_commit(w));
    EXPECT_OK(pd_map_open(&maps[1], in_folder("w1.gguf")));
    EXPECT_OK(pd_gguf_parse(&g[1], maps[1].data, maps[1].size, "w1.gguf"));
    assert_int_equal(g[1].n_meta, g[0].n_meta);
    size_t head = 4 + 4 + 8 + 8;
    size_t size = (size_t)(g[1].data_start - head) / 32 * 32 - 32;   /* all metadata but for the padding */
    assert_memory_equal(maps[0].data + head, maps[1].data + head, size);
    for (int i = 0; i < 2; i++) {
        pd_gguf_free(&g[i]);
        pd_map_close(&maps[i]);
        remove(in_folder(i ? "w1.gguf" : "w0.gguf"));
    }
}

static void test_disk(void **state)
{
    (void)state;
    struct pd_gguf_writer *w;
    EXPECT_OK(pd_gguf_writer_open(&w, in_folder("w.gguf")));
    pd_gguf_writer_add_tensor(w, "m", PD_F32, 2, (const uint64_t[]){1 << 24, 1 << 26});
    EXPECT_FAILURE(pd_gguf_writer_begin(w), PERIDOT_ERROR_IO, "w.gguf: needs 4503599.627 GB, but its disk has only ",
                   " GB left");
    pd_gguf_writer_abort(w);
}

/* rmdir fails, and with it the tests, when something was left in the folder. */
static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_write), cmocka_unit_test(test_abort),
                                       cmocka_unit_test(test_copy), cmocka_unit_test(test_disk)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

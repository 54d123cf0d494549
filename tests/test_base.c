/* Numbers, the operating system's files, and error sentences. */
#include "format_fixture.h"

#include <math.h>

/* ---- num ---- */

/* binary16 by its definition. */
static double half_value(uint32_t h)
{
    uint32_t exponent = h >> 10 & 31, fraction = h & 1023;
    double x = exponent == 31 ? (fraction ? NAN : INFINITY)
             : exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, (int)exponent - 25);
    return h & 0x8000 ? -x : x;
}

static void test_f16_decode(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        double want = half_value(h), got = (double)pd_f32_from_f16((uint16_t)h);
        if (isnan(want)) assert_true(isnan(got));
        else assert_true(got == want && !signbit(got) == !signbit(want));
    }
}

/* Between every two neighbours: just below the middle, the middle (to even), just above it. 65520 counts as
 * infinity. */
static void test_f16_encode(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x7c00; h++) {
        double next = h == 0x7bff ? 65536 : half_value(h + 1);
        float middle = (float)((half_value(h) + next) / 2);   /* exact: 12 bits */
        uint32_t even = h + (h & 1);
        assert_int_equal(pd_f16_from_f32((float)half_value(h)), h);
        assert_int_equal(pd_f16_from_f32(middle), even);
        assert_int_equal(pd_f16_from_f32(nextafterf(middle, 0)), h);
        assert_int_equal(pd_f16_from_f32(nextafterf(middle, INFINITY)), h + 1);
        assert_int_equal(pd_f16_from_f32(-middle), even | 0x8000);
    }
    assert_int_equal(pd_f16_from_f32(INFINITY), 0x7c00);
    assert_int_equal(pd_f16_from_f32(-3.4e38f), 0xfc00);
    assert_int_equal(pd_f16_from_f32(1e-45f), 0);
    assert_int_equal(pd_f16_from_f32(-0.0f), 0x8000);
    assert_int_equal(pd_f16_from_f32(pd_f32_from_bits(0x7f800001)) & 0x7e00, 0x7e00);
    assert_int_equal(pd_f16_from_f32(pd_f32_from_bits(0xffffffff)) & 0xfe00, 0xfe00);
}

static void test_bf16(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x7f80; h++) {
        uint32_t u = h << 16;
        assert_int_equal(pd_f32_bits(pd_f32_from_bf16((uint16_t)h)), u);
        assert_int_equal(pd_bf16_from_f32(pd_f32_from_bits(u)), h);
        assert_int_equal(pd_bf16_from_f32(pd_f32_from_bits(u + 0x7fff)), h);
        assert_int_equal(pd_bf16_from_f32(pd_f32_from_bits(u + 0x8000)), h + (h & 1));
        assert_int_equal(pd_bf16_from_f32(pd_f32_from_bits(u + 0x8001)), h + 1);
        assert_int_equal(pd_bf16_from_f32(pd_f32_from_bits(u | 0x80000000u)), h | 0x8000);
    }
    assert_int_equal(pd_bf16_from_f32(INFINITY), 0x7f80);
    assert_true(isnan(pd_f32_from_bf16(pd_bf16_from_f32(pd_f32_from_bits(0x7f800001)))));
    assert_true(isnan(pd_f32_from_bf16(pd_bf16_from_f32(pd_f32_from_bits(0xffffffff)))));
}

static void test_arithmetic(void **state)
{
    (void)state;
    uint64_t x = 7, big = 0x100000000u;
    assert_true(pd_mul(&x, big, big - 1) && x == big * (big - 1));
    assert_true(pd_mul(&x, UINT64_MAX, 1) && x == UINT64_MAX);
    assert_true(pd_mul(&x, UINT64_MAX, 0) && x == 0);
    x = 7;
    assert_false(pd_mul(&x, big, big) || pd_mul(&x, UINT64_MAX, 2) || pd_add(&x, UINT64_MAX, 1));
    assert_int_equal(x, 7);
    assert_true(pd_add(&x, UINT64_MAX - 1, 1) && x == UINT64_MAX);
    assert_true(pd_div_up(0, 5) == 0 && pd_div_up(5, 5) == 1 && pd_div_up(6, 5) == 2 &&
                pd_div_up(UINT64_MAX, 2) == (uint64_t)1 << 63);
    assert_true(pd_align(0, 256) == 0 && pd_align(1, 256) == 256 && pd_align(256, 256) == 256 &&
                pd_align(100, 33) == 132);
    assert_true(pd_min(3, 2) == 2 && pd_max(3, 2) == 3);
}

/* ---- os ---- */

static void test_map(void **state)
{
    (void)state;
    struct pd_map map;
    write_text("text", "volcano");
    write_text("empty", "");
    EXPECT_OK(pd_map_open(&map, in_folder("text")));
    assert_int_equal(map.size, 7);
    assert_memory_equal(map.data, "volcano", 7);
    pd_map_close(&map);
    pd_map_close(&map);
    EXPECT_OK(pd_map_open(&map, in_folder("empty")));
    assert_true(map.size == 0 && !map.data);
    pd_map_close(&map);
    EXPECT_FAILURE(pd_map_open(&map, in_folder("missing")), PERIDOT_ERROR_IO, "/missing: ", NO_SUCH_FILE);
    assert_true(map.size == 0 && !map.data);
    EXPECT_FAILURE(pd_map_open(&map, folder), PERIDOT_ERROR_IO, folder, "not a regular file");
}

static void expect_text(const char *name, const char *text)
{
    struct pd_map map;
    EXPECT_OK(pd_map_open(&map, in_folder(name)));
    assert_int_equal(map.size, strlen(text));
    assert_memory_equal(map.data, text, map.size);
    pd_map_close(&map);
}

/* The file is the old one until commit, and nothing stays beside it. */
static void test_writer(void **state)
{
    (void)state;
    struct pd_writer w;
    write_text("result", "old");
    EXPECT_OK(pd_writer_open(&w, in_folder("result")));
    EXPECT_OK(pd_writer_write(&w, "new ", 4));
    EXPECT_OK(pd_writer_write(&w, NULL, 0));
    EXPECT_OK(pd_writer_write(&w, "text", 4));
    assert_int_equal(w.offset, 8);
    expect_text("result", "old");
    EXPECT_OK(pd_writer_commit(&w));
    expect_text("result", "new text");
    pd_writer_abort(&w);
    expect_text("result", "new text");
    EXPECT_OK(pd_writer_open(&w, in_folder("result")));
    EXPECT_OK(pd_writer_write(&w, "half", 4));
    pd_writer_abort(&w);
    expect_text("result", "new text");
}

static void test_writer_failures(void **state)
{
    (void)state;
    struct pd_writer w;
    EXPECT_FAILURE(pd_writer_open(&w, in_folder("no/such/file")), PERIDOT_ERROR_IO, "no/such/file", NO_SUCH_FILE);
    pd_writer_abort(&w);
    EXPECT_OK(pd_make_directory(in_folder("taken/inside")));
    EXPECT_FAILURE(pd_writer_open(&w, in_folder("taken")), PERIDOT_ERROR_IO, "/taken: ", "it is a folder");
    EXPECT_FAILURE(pd_writer_open(&w, in_folder("taken/new/")), PERIDOT_ERROR_IO, "/taken/new/: ", "it is a folder");
    EXPECT_FAILURE(pd_writer_open(&w, ""), PERIDOT_ERROR_IO, NO_SUCH_FILE);
    assert_true(pd_is_directory(in_folder("taken/inside")));
}

static void test_folders(void **state)
{
    (void)state;
    write_text("plain", "x");
    EXPECT_OK(pd_make_directory(in_folder("a/b/c")));
    EXPECT_OK(pd_make_directory(in_folder("a/b/c")));
    EXPECT_OK(pd_make_directory(in_folder("a/b/d/")));
    assert_true(pd_is_directory(in_folder("a/b/c")) && pd_is_directory(in_folder("a/b/d")));
    assert_true(pd_is_file(in_folder("plain")) && !pd_is_directory(in_folder("plain")));
    assert_false(pd_is_file(in_folder("a")) || pd_is_file(in_folder("none")) || pd_is_directory(in_folder("none")));
    EXPECT_FAILURE(pd_make_directory(in_folder("plain")), PERIDOT_ERROR_IO, "/plain: ");
    EXPECT_FAILURE(pd_make_directory(in_folder("plain/below")), PERIDOT_ERROR_IO, "/plain/below: ");
}

static void test_small_things(void **state)
{
    (void)state;
    char *path = pd_path_join("folder", "name"), *copy = pd_string_copy("");
    assert_string_equal(path, "folder/name");
    assert_string_equal(copy, "");
    free(path);
    free(copy);
    double before = pd_now();
    assert_true(pd_now() >= before);
    assert_true(pd_memory_available() > 1 << 20);
}

static void test_escape(void **state)
{
    (void)state;
    static const struct { const char *text, *shown; } rows[] = {
        {"", ""}, {"plain \\n", "plain \\n"}, {"caf\u00e9 \u4e2d \U0001f600", "caf\u00e9 \u4e2d \U0001f600"},
        {"\x01\t\n\r\x1b\x7f", "\\x01\\x09\\n\\x0d\\x1b\\x7f"}, {"\xc2\x85\xc2\x9f", "\\xc2\\x85\\xc2\\x9f"},
        {"\u200e\u202a\u202e\u2028\u2029",
         "\\xe2\\x80\\x8e\\xe2\\x80\\xaa\\xe2\\x80\\xae\\xe2\\x80\\xa8\\xe2\\x80\\xa9"},
        {"\u2066\u2069\u061c", "\\xe2\\x81\\xa6\\xe2\\x81\\xa9\\xd8\\x9c"},
        {"\u2027\u202f\u2065", "\u2027\u202f\u2065"},
        {"\xff\xc0\x80\xed\xa0\x80", "\\xff\\xc0\\x80\\xed\\xa0\\x80"}, {"\xe2\x82", "\\xe2\\x82"},
    };
    char out[128];
    for (size_t i = 0; i < PD_COUNT(rows); i++) {
        assert_int_equal(peridot_printable(out, sizeof out, rows[i].text, strlen(rows[i].text)), strlen(rows[i].shown));
        assert_string_equal(out, rows[i].shown);
        peridot_printable(out, sizeof out, rows[i].shown, strlen(rows[i].shown));
        assert_string_equal(out, rows[i].shown);   /* done twice it stays as it is */
    }
    for (size_t size = 1; size < 16; size++) {
        char *exact = malloc(size);
        assert_true(peridot_printable(exact, size, "ab\u00e9\x1b\u00e9wxyz", 11) == strlen(exact));
        assert_true(strlen(exact) < size);
        if (size > 4) assert_string_equal(exact + strlen(exact) - 3, size < 15 ? "..." : "xyz");
        free(exact);
    }
    peridot_printable(out, 8, "abc\x1b\x1b", 5);
    assert_string_equal(out, "abc...");
}

/* ---- status ---- */

static void test_sentences(void **state)
{
    (void)state;
    assert_int_equal(pd_fail(PERIDOT_ERROR_FORMAT, "offset %d", 12), PERIDOT_ERROR_FORMAT);
    assert_int_equal(pd_fail_prefix(PERIDOT_ERROR_FORMAT, "model.gguf"), PERIDOT_ERROR_FORMAT);
    assert_string_equal(peridot_last_error(), "model.gguf: offset 12");
    assert_int_equal(pd_fail_alloc(99, "tables"), PERIDOT_ERROR_MEMORY);
    assert_string_equal(pd_error(), "out of memory for 99 bytes (tables)");
    pd_fail(PERIDOT_ERROR_FORMAT, "%s", "caf\u00e9 \x1b[2J\n\xc2\x9b\xe2\x82");
    assert_string_equal(pd_error(), "caf\u00e9 \\x1b[2J\\n\\xc2\\x9b\\xe2\\x82");
    char lengthy[5000];
    memset(lengthy, 'x', sizeof lengthy - 1);
    lengthy[sizeof lengthy - 1] = 0;
    pd_fail(PERIDOT_ERROR_IO, "%s", lengthy);
    pd_fail_prefix(PERIDOT_ERROR_IO, "file");
    assert_true(strlen(pd_error()) > 500 && strlen(pd_error()) < 1100 && strncmp(pd_error(), "file: xxx", 9) == 0);
}

static int remove_folder(void **state)
{
    (void)state;
    static const char *const names[] = {"text", "empty", "result", "taken/inside", "taken", "plain", "a/b/c", "a/b/d",
        "a/b", "a"};
    for (size_t i = 0; i < PD_COUNT(names); i++) remove(in_folder(names[i]));
    return rmdir(folder);   /* fails when something was left beside them */
}

/* Bytes that were added have a zero behind them; what cannot be is said once and stays known, and nothing is lost. */
static void test_buffer(void **state)
{
    struct pd_buffer b = {0};
    char wide[3000], *grown = NULL;
    size_t capacity = 0;
    (void)state;
    assert_int_equal(pd_buffer_add(&b, NULL, 0), PERIDOT_OK);
    assert_string_equal(b.data, "");
    for (int i = 0; i < 200; i++) {
        assert_int_equal(pd_buffer_add(&b, "abcdef", 6), PERIDOT_OK);
        assert_int_equal(b.data[b.size], 0);
    }
    pd_buffer_drop(&b, 1196);
    assert_string_equal(b.data, "cdef");
    const size_t too_large[] = {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 5, SIZE_MAX / 2};
    for (size_t i = 0; i < PD_COUNT(too_large); i++) {
        b.failed = false;
        assert_int_equal(pd_buffer_add(&b, "x", too_large[i]), PERIDOT_ERROR_MEMORY);
        assert_true(b.failed);
        assert_int_equal(pd_array_reserve(&grown, &capacity, 0, too_large[i], 8, "test"), PERIDOT_ERROR_MEMORY);
    }
    assert_null(grown);
    assert_int_equal(pd_buffer_add_utf8(&b, "\xc3\xa9\xff", 3), PERIDOT_OK);
    assert_true(b.failed);
    assert_string_equal(b.data, "cdef\xc3\xa9\xef\xbf\xbd");
    memset(wide, 'w', sizeof wide);
    b.size = 0;
    assert_int_equal(pd_buffer_print(&b, "<%.*s>", (int)sizeof wide, wide), PERIDOT_OK);
    assert_int_equal(b.size, sizeof wide + 2);
    assert_string_equal(b.data + b.size - 2, "w>");
    pd_buffer_free(&b);
    assert_null(b.data);
    assert_false(b.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f16_decode), cmocka_unit_test(test_f16_encode), cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_arithmetic), cmocka_unit_test(test_buffer),
        cmocka_unit_test(test_map), cmocka_unit_test(test_writer), cmocka_unit_test(test_writer_failures),
        cmocka_unit_test(test_folders),
        cmocka_unit_test(test_small_things), cmocka_unit_test(test_escape), cmocka_unit_test(test_sentences),
    };
    return cmocka_run_group_tests_name("base", tests, make_folder, remove_folder);
}

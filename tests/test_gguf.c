/* The GGUF parser: files as they should be, every prefix of one, headers that lie, and spoilt bytes. */
#include "format_fixture.h"

#include "format/format_.h"

enum { F32 = 0, Q4_0 = 2, Q8_0 = 8 };

/* ---- files put together by hand ---- */

static void head(struct blob *b, uint32_t version, uint64_t n_tensors, uint64_t n_meta)
{
    b->size = 0;
    put(b, "GGUF", 4);
    put_u32(b, version);
    put_u64(b, n_tensors);
    put_u64(b, n_meta);
}

static void meta_u32(struct blob *b, const char *key, uint32_t value)
{
    put_string(b, key);
    put_u32(b, PD_META_UINT32);
    put_u32(b, value);
}

static void array_head(struct blob *b, const char *key, uint32_t element, uint64_t n)
{
    put_string(b, key);
    put_u32(b, PD_META_ARRAY);
    put_u32(b, element);
    put_u64(b, n);
}

static void tensor(struct blob *b, const char *name, uint64_t columns, uint64_t rows, uint32_t type, uint64_t offset)
{
    put_string(b, name);
    put_u32(b, 2);
    put_u64(b, columns);
    put_u64(b, rows);
    put_u32(b, type);
    put_u64(b, offset);
}

static void data(struct blob *b, size_t size)
{
    while (b->size % 32) put(b, "", 1);
    while (size-- > 0) put(b, "d", 1);
}

/* Every kind of value, two tensors, no byte too many at the end. */
static void good_file(struct blob *b, uint32_t version)
{
    const float floats[] = {1.5f, -2};
    head(b, version, 2, 5);
    meta_u32(b, "general.alignment", 32);
    array_head(b, "strings", PD_META_STRING, 3);
    put_string(b, "one");
    put_string(b, "");
    put_string(b, "\xe2\x96\x81three");
    array_head(b, "floats", PD_META_FLOAT32, 2);
    put(b, floats, sizeof floats);
    array_head(b, "bools", PD_META_BOOL, 2);
    put(b, "\0\1", 2);
    put_string(b, "big");
    put_u32(b, PD_META_UINT64);
    put_u64(b, UINT64_MAX);
    tensor(b, "a.weight", 64, 2, Q8_0, 0);
    tensor(b, "b.weight", 3, 5, F32, 160);
    data(b, 160 + 60);
}

static peridot_status parse(struct pd_gguf *g, const struct blob *b)
{
    return pd_gguf_parse(g, guard_put(&guard, b->data, b->size), b->size, "x.gguf");
}

/* ---- what should be read ---- */

static void check_good_meta(const struct pd_gguf *g)
{
    struct pd_string s;
    uint64_t u;
    int64_t i;
    double f;
    bool t;
    const struct pd_meta *m = pd_gguf_find_meta(g, "strings");
    assert_int_equal(m->n, 3);
    assert_true(pd_meta_string(&s, m, 2) && s.size == 8 && !memcmp(s.data, "\xe2\x96\x81three", 8));
    assert_false(pd_meta_string(&s, m, 3));
    assert_false(pd_meta_uint(&u, m, 0) || pd_meta_float(&f, m, 0));
    assert_true(pd_meta_float(&f, pd_gguf_find_meta(g, "floats"), 1) && f == -2);
    assert_true(pd_meta_bool(&t, pd_gguf_find_meta(g, "bools"), 1) && t);
    m = pd_gguf_find_meta(g, "big");
    assert_true(pd_meta_uint(&u, m, 0) && u == UINT64_MAX);
    assert_false(pd_meta_int(&i, m, 0) || pd_meta_bool(&t, m, 0));
    assert_null(pd_gguf_find_meta(g, "none"));
}

static void test_good(void **state)
{
    (void)state;
    static struct blob b;
    for (uint32_t version = 2; version <= 3; version++) {
        struct pd_gguf g;
        good_file(&b, version);
        EXPECT_OK(parse(&g, &b));
        assert_int_equal(g.n_meta, 5);
        check_good_meta(&g);
        const struct pd_tensor *t = pd_tensor_list_find(&g.tensors, "b.weight");
        assert_int_equal(t->shape[0], 5);
        assert_int_equal(t->shape[1], 3);
        assert_int_equal(t->shape[2], 1);
        assert_int_equal(t->size, 60);
        assert_string_equal(pd_tensor_list_find(&g.tensors, "a.weight")->type, "q8_0");
        assert_int_equal(t->data - pd_tensor_list_find(&g.tensors, "a.weight")->data, 160);
        assert_null(pd_tensor_list_find(&g.tensors, "c.weight"));
        pd_gguf_free(&g);
    }
}

static void expect_text(const struct pd_meta *m, const char *expected)
{
    char *text = pd_meta_text(m);
    assert_string_equal(text, expected);
    free(text);
}

static void test_numbers(void **state)
{
    (void)state;
    static const struct { enum pd_meta_type type; uint8_t bytes[8]; const char *text; int64_t value; } cases[] = {
        {PD_META_UINT8, {200}, "200", 200},
        {PD_META_INT8, {0x80}, "-128", -128},
        {PD_META_UINT16, {0xff, 0xff}, "65535", 65535},
        {PD_META_INT16, {0xff, 0xff}, "-1", -1},
        {PD_META_UINT32, {0, 0, 0, 0x80}, "2147483648", 2147483648},
        {PD_META_INT32, {0, 0, 0, 0x80}, "-2147483648", -2147483648},
        {PD_META_INT64, {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, "-2", -2},
        {PD_META_FLOAT64, {0, 0, 0, 0, 0, 0, 0xe0, 0x3f}, "0.5", INT64_MIN},
        {PD_META_FLOAT32, {0, 0, 0x80, 0x3f}, "1", INT64_MIN},
    };
    for (size_t i = 0; i < PD_COUNT(cases); i++) {
        struct pd_meta m = {"key", cases[i].type, cases[i].type, 1, cases[i].bytes, NULL, 8};
        int64_t v = INT64_MIN;
        uint64_t u;
        double f;
        expect_text(&m, cases[i].text);
        assert_int_equal(pd_meta_int(&v, &m, 0), cases[i].value != INT64_MIN);
        assert_int_equal(v, cases[i].value);
        assert_int_equal(pd_meta_uint(&u, &m, 0), v >= 0);
        assert_true(pd_meta_float(&f, &m, 0) && (v == INT64_MIN || f == (double)v));
        assert_false(pd_meta_float(&f, &m, 1));
    }
}

static void test_text(void **state)
{
    (void)state;
    char text[1000], expected[600];
    memset(text, 'x', sizeof text);
    struct pd_string strings[10];
    for (int i = 0; i < 10; i++) strings[i] = (struct pd_string){"a\xff\n\x1b[1m\xc3\xa4", 9};
    struct pd_meta m = {"key", PD_META_STRING, PD_META_STRING, 1, NULL, strings, 0};
    expect_text(&m, "a\\xff\\n\\x1b[1m\xc3\xa4");
    strings[0] = (struct pd_string){text, sizeof text};
    snprintf(expected, sizeof expected, "%.512s...", text);
    expect_text(&m, expected);
    for (int i = 0; i < 10; i++) strings[i] = (struct pd_string){"ab", 2};
    strings[0].size = 0;
    m = (struct pd_meta){"key", PD_META_ARRAY, PD_META_STRING, 10, NULL, strings, 0};
    expect_text(&m, "[\"\", \"ab\", \"ab\", \"ab\", \"ab\", \"ab\", \"ab\", \"ab\", ... 10 in all]");
}

static void test_empty(void **state)
{
    (void)state;
    static struct blob b;
    struct pd_gguf g;
    head(&b, 3, 0, 0);
    EXPECT_OK(parse(&g, &b));
    assert_int_equal(g.tensors.n, 0);
    assert_null(pd_tensor_list_find(&g.tensors, ""));
    pd_gguf_free(&g);
}

/* What no key that is read has, and keys that say the same again, of which one is left. */
static void test_odd(void **state)
{
    (void)state;
    static struct blob b;
    struct pd_gguf g;
    head(&b, 3, 0, 6);
    array_head(&b, "nested", PD_META_ARRAY, 2);
    put_u32(&b, PD_META_STRING);
    put_u64(&b, 2);
    put_string(&b, "a");
    put_string(&b, "b");
    put_u32(&b, PD_META_FLOAT64);
    put_u64(&b, 0);
    meta_u32(&b, "n", 3);
    array_head(&b, "text", PD_META_STRING, 1);
    put_string(&b, "x");
    meta_u32(&b, "n", 3);
    array_head(&b, "text", PD_META_STRING, 1);
    put_string(&b, "x");
    meta_u32(&b, "n", 3);
    EXPECT_OK(parse(&g, &b));
    assert_int_equal(g.n_meta, 3);
    expect_text(pd_gguf_find_meta(&g, "nested"), "[[...], [...]]");
    expect_text(pd_gguf_find_meta(&g, "n"), "3");
    expect_text(pd_gguf_find_meta(&g, "text"), "[\"x\"]");
    assert_ptr_equal(pd_gguf_find_meta(&g, "text"), &g.meta[2]);
    pd_gguf_free(&g);
}

/* ---- what should be refused ---- */

static void test_prefixes(void **state)
{
    (void)state;
    static struct blob b;
    good_file(&b, 3);
    for (size_t size = 0; size < b.size; size++) {
        struct pd_gguf g;
        EXPECT_FAILURE(pd_gguf_parse(&g, guard_put(&guard, b.data, size), size, "x.gguf"), PERIDOT_ERROR_FORMAT,
                       "x.gguf: ");
        assert_null(g.arena.last);
    }
}

#define REFUSED(...)                                          \
    do {                                                      \
        struct pd_gguf refused_gguf;                          \
        EXPECT_FAILURE(parse(&refused_gguf, &b), __VA_ARGS__); \
    } while (0)

static void test_magic_and_version(void **state)
{
    (void)state;
    static struct blob b;
    good_file(&b, 3);
    memcpy(b.data, "GGML", 4);
    REFUSED(PERIDOT_ERROR_FORMAT, "not a GGUF file", "47 47 4d 4c");
    good_file(&b, 1);
    REFUSED(PERIDOT_ERROR_UNSUPPORTED, "version 1");
    good_file(&b, 4);
    REFUSED(PERIDOT_ERROR_UNSUPPORTED, "version 4");
    good_file(&b, 0x03000000);
    REFUSED(PERIDOT_ERROR_UNSUPPORTED, "big-endian", "00 00 00 03");
    b.size = 0;
    put_u64(&b, 2);
    put(&b, "{}", 2);
    REFUSED(PERIDOT_ERROR_FORMAT, "safetensors", "folder");
}

/* What downloads leave in a model's place, named for what it is, with what helps. */
static void test_foreign(void **state)
{
    (void)state;
    static struct blob b;
    static const struct { const char *text, *what, *remedy; } cases[] = {
        {"<!DOCTYPE html>\n<html><head>", "a web page", "/resolve/"},
        {"\xef\xbb\xbf\n <HTML lang=en>", "a web page", "peridot pull"},
        {"<?xml version=\"1.0\"?><Error>", "a web page", "download the file itself"},
        {"version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 806058240\n",
         "a Git LFS pointer to 806058240 bytes", "git lfs pull"},
        {"Entry not found", "a text of 15 bytes, \"Entry not found\"", "check the link"},
        {"{\"error\":\"Unauthorized\"}\n", "{\"error\":\"Unauthorized\"}", "asks for a login"},
        {"\x1f\x8b\x08 gzip", "compressed with gzip", "unpack it first"},
        {"PK\3\4 zip", "a zip archive", "PyTorch"},
        {"tjgg\3", "a GGML file", "as GGUF"},
        {"", "empty (0 bytes)", "download it again"},
    };
    for (size_t i = 0; i < PD_COUNT(cases); i++) {
        b.size = 0;
        put(&b, cases[i].text, strlen(cases[i].text));
        REFUSED(PERIDOT_ERROR_FORMAT, "x.gguf: not a GGUF file: it is ", cases[i].what, cases[i].remedy);
    }
    b.size = 0;
    for (int i = 0; i < 64; i++) put(&b, "", 1);
    REFUSED(PERIDOT_ERROR_FORMAT, "zeros at its beginning", "download it again");
}

static void test_counts(void **state)
{
    (void)state;
    static struct blob b;
    head(&b, 3, UINT64_MAX, 0);
    REFUSED(PERIDOT_ERROR_FORMAT, "number of tensors (byte 8)", "18446744073709551615", "8 bytes are left");
    head(&b, 3, 0, (uint64_t)1 << 60);
    REFUSED(PERIDOT_ERROR_FORMAT, "number of keys (byte 16)", "1152921504606846976");
    head(&b, 3, 0, 1);
    array_head(&b, "k", PD_META_STRING, (uint64_t)1 << 61);   /* times 8 is 0 in 64 bits */
    REFUSED(PERIDOT_ERROR_FORMAT, "key k (byte 41)", "2305843009213693952");
    head(&b, 3, 0, 1);
    array_head(&b, "k", PD_META_UINT64, (uint64_t)1 << 61);
    REFUSED(PERIDOT_ERROR_FORMAT, "key k (byte 41)", "2305843009213693952");
    head(&b, 3, 0, 1);
    put_u64(&b, UINT64_MAX - 7);
    put(&b, "abcdefgh", 8);
    REFUSED(PERIDOT_ERROR_FORMAT, "key 0 (byte 32)", "18446744073709551608 bytes wanted", "cut short");
}

static void test_keys(void **state)
{
    (void)state;
    static struct blob b;
    head(&b, 3, 0, 2);
    meta_u32(&b, "k", 1);
    put_u64(&b, 3);
    put(&b, "a\0b\4\0\0\0\0\0\0\0", 11);
    REFUSED(PERIDOT_ERROR_FORMAT, "key 1 (byte 41)", "control characters");
    head(&b, 3, 0, 2);
    meta_u32(&b, "some.key", 1);
    meta_u32(&b, "some.key", 2);
    REFUSED(PERIDOT_ERROR_FORMAT, "key some.key is there twice (entries 0 and 1)");
    head(&b, 3, 0, 4);
    meta_u32(&b, "some.key", 1);
    array_head(&b, "text", PD_META_STRING, 1);
    put_string(&b, "x");
    array_head(&b, "text", PD_META_STRING, 1);
    put_string(&b, "y");
    meta_u32(&b, "some.key", 1);
    REFUSED(PERIDOT_ERROR_FORMAT, "key text is there twice (entries 1 and 2)");
    head(&b, 3, 0, 1);
    put_string(&b, "k");
    put_u32(&b, 13);
    put_u64(&b, 0);
    REFUSED(PERIDOT_ERROR_FORMAT, "key k (byte 33)", "value type 13");
    head(&b, 3, 0, 1);
    array_head(&b, "k", PD_META_ARRAY, 1);
    put_u32(&b, PD_META_UINT32);
    put_u64(&b, 2);
    put_u32(&b, 7);
    REFUSED(PERIDOT_ERROR_FORMAT, "key k (byte 53)", "a count of 2");
    head(&b, 3, 0, 1);
    array_head(&b, "k", PD_META_ARRAY, 1);
    for (int i = 0; i < 9; i++) {
        put_u32(&b, PD_META_ARRAY);
        put_u64(&b, 1);
    }
    put_u32(&b, PD_META_UINT8);
    put_u64(&b, 0);
    REFUSED(PERIDOT_ERROR_UNSUPPORTED, "arrays nest deeper than 8");
    head(&b, 3, 0, 1);
    put_string(&b, "k");
    put_u32(&b, PD_META_BOOL);
    put(&b, "\2", 1);
    REFUSED(PERIDOT_ERROR_FORMAT, "key k (byte 37)", "2 is not a truth value");
}

static void test_alignment(void **state)
{
    (void)state;
    static struct blob b;
    static const uint32_t wrong[] = {0, 4, 24, 33, UINT32_MAX};
    for (size_t i = 0; i < PD_COUNT(wrong); i++) {
        head(&b, 3, 0, 1);
        meta_u32(&b, "general.alignment", wrong[i]);
        REFUSED(PERIDOT_ERROR_FORMAT, "general.alignment", "not a power of two");
    }
    head(&b, 3, 0, 1);
    array_head(&b, "general.alignment", PD_META_UINT32, 1);
    put_u32(&b, 32);
    REFUSED(PERIDOT_ERROR_FORMAT, "general.alignment", "array");
    head(&b, 3, 1, 1);
    meta_u32(&b, "general.alignment", 64);
    tensor(&b, "t", 8, 1, F32, 32);
    data(&b, 128);
    REFUSED(PERIDOT_ERROR_FORMAT, "tensor t", "offset 32", "alignment 64");
}

static void one_tensor(struct blob *b, uint64_t columns, uint64_t rows, uint32_t type, uint64_t offset)
{
    head(b, 3, 1, 0);
    tensor(b, "t", columns, rows, type, offset);
    data(b, 128);
}

static void test_shapes(void **state)
{
    (void)state;
    static struct blob b;
    for (uint32_t n = 0; n <= 5; n += 5) {
        one_tensor(&b, 8, 4, F32, 0);
        memcpy(b.data + 33, &n, 4);
        REFUSED(PERIDOT_ERROR_FORMAT, "tensor t (byte 33)", "dimensions (1 to 4");
    }
    one_tensor(&b, 0, 4, F32, 0);
    REFUSED(PERIDOT_ERROR_FORMAT, "tensor t (byte 37)", "dimension is 0");
    one_tensor(&b, (uint64_t)1 << 32, (uint64_t)1 << 32, F32, 0);
    REFUSED(PERIDOT_ERROR_FORMAT, "tensor t", "4294967296, 4294967296", "64 bits");
    one_tensor(&b, (uint64_t)1 << 31, (uint64_t)1 << 31, F32, 0);   /* 2^62 weights fit, 2^64 bytes do not */
    REFUSED(PERIDOT_ERROR_FORMAT, "tensor t", "64 bits");
    one_tensor(&b, 33, 1, Q8_0, 0);
    REFUSED(PERIDOT_ERROR_FORMAT, "tensor t", "33 weights", "blocks of 32 (q8_0)");
    one_tensor(&b, 256, 1, 24, 0);
    REFUSED(PERIDOT_ERROR_UNSUPPORTED, "tensor t (byte 53)", "i8 (24)");
    one_tensor(&b, 256, 1, 4000000000u, 0);
    REFUSED(PERIDOT_ERROR_UNSUPPORTED, "tensor t", "unknown (4000000000)");
}

static void test_places(void **state)
{
    (void)state;
    static struct blob b;
    one_tensor(&b, 33, 1, F32, 0);
    REFUSED(PERIDOT_ERROR_FORMAT, "x.gguf: it has 224 bytes and needs 228: it was cut short");
    one_tensor(&b, 8, 1, F32, 128);
    REFUSED(PERIDOT_ERROR_FORMAT, "x.gguf: it has 224 bytes and needs 256: it was cut short");
    one_tensor(&b, 8, 1, F32, UINT64_MAX - 31);
    REFUSED(PERIDOT_ERROR_FORMAT, "tensor t ends past what 64 bits hold", "offset 18446744073709551584");
    one_tensor(&b, ((uint64_t)1 << 62) - 8, 1, F32, 64);   /* offset + size is 32 in 64 bits */
    REFUSED(PERIDOT_ERROR_FORMAT, "tensor t ends past what 64 bits hold", "18446744073709551584 bytes at offset 64");
    head(&b, 3, 2, 0);
    tensor(&b, "t", 16, 1, F32, 32);
    tensor(&b, "u", 9, 1, F32, 0);
    data(&b, 128);
    REFUSED(PERIDOT_ERROR_FORMAT, "tensor t begins at byte 160, inside tensor u (bytes 128 to 164)");
    head(&b, 3, 2, 0);
    tensor(&b, "t", 8, 1, F32, 32);
    tensor(&b, "t", 8, 1, F32, 0);
    data(&b, 128);
    REFUSED(PERIDOT_ERROR_FORMAT, "tensor t is there twice (entries 0 and 1)");
}

/* 200,000 tensors that share a name or a place: minutes for a parser that compares all with all. */
static void test_many(void **state)
{
    (void)state;
    enum { N = 200000, SIZE = N * 48 + 64 };
    static struct blob head_blob, b;
    uint8_t *bytes = calloc(1, SIZE);
    assert_non_null(bytes);
    for (int same_name = 0; same_name < 2; same_name++) {
        size_t size;
        head(&head_blob, 3, N, 0);
        memcpy(bytes, head_blob.data, size = head_blob.size);
        for (unsigned i = 0; i < N; i++) {
            char name[16];
            snprintf(name, sizeof name, "t%06u", same_name && i == N - 1 ? 0 : (unsigned)((uint64_t)i * 79199 % N));
            b.size = 0;
            tensor(&b, name, 8, 1, F32, 0);
            memcpy(bytes + size, b.data, b.size);
            size += b.size;
        }
        struct pd_gguf g;
        EXPECT_FAILURE(pd_gguf_parse(&g, bytes, SIZE, "x.gguf"), PERIDOT_ERROR_FORMAT,
                       same_name ? "is there twice" : "inside");
    }
    free(bytes);
}

/* ---- spoilt bytes ---- */

static unsigned touch_all(const struct pd_gguf *g)
{
    unsigned sum = 0;
    for (size_t i = 0; i < g->tensors.n; i++) {
        const struct pd_tensor *t = &g->tensors.items[i];
        sum += t->data[0] + t->data[t->size - 1];
        assert_ptr_equal(pd_tensor_list_find(&g->tensors, t->name), t);
    }
    for (size_t i = 0; i < g->n_meta; i++) {
        char *text = pd_meta_text(&g->meta[i]);
        sum += (unsigned)strlen(text);
        free(text);
    }
    return sum;
}

static void test_fuzz(void **state)
{
    (void)state;
    static struct blob good, b;
    uint64_t seed = 1;
    unsigned n_read = 0;
    good_file(&good, 3);
    for (int i = 0; i < 30000; i++) {
        struct pd_gguf g;
        b = good;
        fuzz_spoil(b.data, b.size - 200, &seed);   /* not the data */
        if (parse(&g, &b) == PERIDOT_OK) n_read += touch_all(&g) > 0;
        else assert_true(strlen(pd_error()) > 10);
        pd_gguf_free(&g);
    }
    assert_true(n_read >= 1000 && n_read <= 29000);   /* both ends of the parser were visited */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),     cmocka_unit_test(test_numbers),  cmocka_unit_test(test_text),
        cmocka_unit_test(test_empty),    cmocka_unit_test(test_odd),
         cmocka_unit_test(test_prefixes), cmocka_unit_test(test_magic_and_version),
        cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_counts),   cmocka_unit_test(test_keys),     cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_shapes),   cmocka_unit_test(test_places),   cmocka_unit_test(test_many),
        cmocka_unit_test(test_fuzz),
    };
    return cmocka_run_group_tests(tests, open_guard, close_guard);
}

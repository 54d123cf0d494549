/* The safetensors parser: one file as it should be, every prefix of it, headers that lie, and spoilt bytes. */
#include "format_fixture.h"

#include "format/format_.h"

/* b = header size, header, data_size bytes. */
static void file(struct blob *b, const char *header, size_t data_size)
{
    b->size = 0;
    put_string(b, header);
    while (data_size-- > 0) put(b, "d", 1);
}

static peridot_status parse(struct pd_tensor_list *list, struct pd_arena *arena, const struct blob *b)
{
    *arena = (struct pd_arena){0};
    return pd_safetensors_parse(list, arena, guard_put(&guard, b->data, b->size), b->size, "x.safetensors");
}

/* Not in the order of the data, with a scalar, an empty tensor, a type that is only listed, and padding after the
 * header. */
static const char good_header[] =
    "{\"__metadata__\":{\"format\":\"pt\"},"
    "\"b.weight\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[8,20]},"
    "\"a.weight\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
    "\"none\":{\"dtype\":\"F16\",\"shape\":[4,0],\"data_offsets\":[20,20]},"
    "\"scalar\":{\"shape\":[],\"dtype\":\"F16\",\"data_offsets\":[20,22]},"
    "\"ids\":{\"dtype\":\"I64\",\"shape\":[1,2],\"data_offsets\":[22,38]}}   ";
enum { GOOD_DATA = 38 };

static void test_good(void **state)
{
    (void)state;
    static struct blob b;
    struct pd_arena arena;
    struct pd_tensor_list list;
    file(&b, good_header, GOOD_DATA);
    EXPECT_OK(parse(&list, &arena, &b));
    EXPECT_OK(pd_tensor_list_index(&list, &arena));
    assert_int_equal(list.n, 5);
    assert_string_equal(list.items[0].name, "a.weight");
    const struct pd_tensor *t = pd_tensor_list_find(&list, "b.weight");
    assert_int_equal(t->dtype, PD_BF16);
    assert_string_equal(t->type, "bf16");
    assert_string_equal(t->file, "x.safetensors");
    assert_int_equal(t->n_dims, 2);
    assert_int_equal(t->shape[0], 2);
    assert_int_equal(t->shape[1], 3);
    assert_int_equal(t->size, 12);
    assert_int_equal(t->data - list.items[0].data, 8);
    t = pd_tensor_list_find(&list, "scalar");
    assert_int_equal(t->n_dims, 0);
    assert_int_equal(t->shape[0], 1);
    assert_int_equal(pd_tensor_list_find(&list, "none")->size, 0);
    t = pd_tensor_list_find(&list, "ids");
    assert_int_equal(t->dtype, PD_DTYPE_OTHER);
    assert_string_equal(t->type, "i64");
    pd_arena_free(&arena);
}

static void test_prefixes(void **state)
{
    (void)state;
    static struct blob b;
    file(&b, good_header, GOOD_DATA);
    for (size_t size = 0; size < b.size; size++) {
        struct pd_arena arena = {0};
        struct pd_tensor_list list;
        EXPECT_FAILURE(pd_safetensors_parse(&list, &arena, guard_put(&guard, b.data, size), size, "x.safetensors"),
                       PERIDOT_ERROR_FORMAT, "x.safetensors: ");
        assert_int_equal(list.n, 0);
        pd_arena_free(&arena);
    }
}

#define REFUSED(...)                                             \
    do {                                                         \
        struct pd_arena refused_arena;                           \
        struct pd_tensor_list list;                              \
        EXPECT_FAILURE(parse(&list, &refused_arena, &b), __VA_ARGS__); \
        pd_arena_free(&refused_arena);                           \
    } while (0)

static void test_header(void **state)
{
    (void)state;
    static struct blob b;
    file(&b, "{}", 0);
    b.data[7] = 0x80;
    REFUSED(PERIDOT_ERROR_FORMAT, "not a safetensors file: its header size (bytes 0 to 7) is 9223372036854775810");
    file(&b, "{}", 0);
    b.data[0] = 100;
    REFUSED(PERIDOT_ERROR_FORMAT, "x.safetensors: it has 10 bytes and needs 108: it was cut short");
    file(&b, "{\"a\":}", 0);
    REFUSED(PERIDOT_ERROR_FORMAT, "x.safetensors, header: not JSON", "line 1, column 6");
    file(&b, "[1]", 0);
    REFUSED(PERIDOT_ERROR_FORMAT, "not an object but array");
    file(&b, "{}", 3);
    REFUSED(PERIDOT_ERROR_FORMAT, "3 bytes of data belong to no tensor (from byte 10 on)");
    file(&b, "{\"a\":1,\"b\":2,\"c\":3}", 0);
    REFUSED(PERIDOT_ERROR_FORMAT, "19 bytes cannot describe 3 tensors");
    b.size = 0;
    put(&b, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 7\n", 63);
    REFUSED(PERIDOT_ERROR_FORMAT, "not a safetensors file: it is a Git LFS pointer to 7 bytes", "git lfs pull");
    b.size = 0;
    put(&b, "Invalid username or password.", 29);
    REFUSED(PERIDOT_ERROR_FORMAT, "a text of 29 bytes, \"Invalid username or password.\"");
}

/* One tensor by itself; `fields` is all that is said of it. */
static void one(struct blob *b, const char *fields, size_t data_size)
{
    char header[600];
    snprintf(header, sizeof header, "{\"t\":{%s}}                                                ", fields);
    file(b, header, data_size);
}

static void test_fields(void **state)
{
    (void)state;
    static struct blob b;
    static const struct { const char *fields, *sentence; } cases[] = {
        {"\"dtype\":\"F32\",\"shape\":[2]", "dtype, shape and data_offsets"},
        {"\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"more\":1", "and nothing else"},
        {"\"dtype\":\"F32\",\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,8]", "key dtype is there twice"},
        {"\"dtype\":32,\"shape\":[2],\"data_offsets\":[0,8]", "dtype is not a string"},
        {"\"dtype\":\"F\\u0000\",\"shape\":[2],\"data_offsets\":[0,8]", "dtype is not a string"},
        {"\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]", "shape is not an array"},
        {"\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]", "not a whole number"},
        {"\"dtype\":\"F32\",\"shape\":[2.5],\"data_offsets\":[0,8]", "not a whole number"},
        {"\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,8]", "more than 64 bits"},
        {"\"dtype\":\"F32\",\"shape\":[576460752303423488],\"data_offsets\":[0,8]", "more than 64 bits"},
        {"\"dtype\":\"F32\",\"shape\":[1,1,1,4294967296,4294967296],\"data_offsets\":[0,8]", "more than 64 bits"},
        {"\"dtype\":\"F32\",\"shape\":[1,1,1,2,2],\"data_offsets\":[0,8]", "hold 8 bytes, 4 weights of f32 need 16"},
        {"\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]", "hold 8 bytes, 3 weights of f32 need 12"},
        {"\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":[0,8]", "hold 8 bytes, 2 weights of i64 need 16"},
        {"\"dtype\":\"F4\",\"shape\":[15],\"data_offsets\":[0,8]", "15 weights of f4 need 8"},
        {"\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]", "not two whole numbers"},
        {"\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8,9]", "not two whole numbers"},
        {"\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[-1,8]", "not two whole numbers"},
        {"\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]", "8 to 0 are not inside the 8 bytes of data"},
        {"\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,9]", "bytes and needs "},
        {"\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]",
         "begins at byte 4 of the data, past 0, where the data begins"},
        {"\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]", "4 bytes of data belong to no tensor"},
    };
    for (size_t i = 0; i < PD_COUNT(cases); i++) {
        one(&b, cases[i].fields, 8);
        REFUSED(PERIDOT_ERROR_FORMAT, cases[i].sentence);
    }
    struct pd_arena arena;
    struct pd_tensor_list list;
    one(&b, "\"dtype\":\"F32\",\"shape\":[1,1,1,1,2],\"data_offsets\":[0,8]", 8);   /* more than four */
    EXPECT_OK(parse(&list, &arena, &b));
    assert_int_equal(list.items[0].n_dims, 4);
    assert_int_equal(list.items[0].shape[3], 2);
    pd_arena_free(&arena);
}

static void test_names(void **state)
{
    (void)state;
    static struct blob b;
    file(&b, "{\"t\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
             "\"t\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]}}", 16);
    REFUSED(PERIDOT_ERROR_FORMAT, "key t is there twice (entries 0 and 1)");
    file(&b, "{\"a\\u0000b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8);
    REFUSED(PERIDOT_ERROR_FORMAT, "key 0", "control characters");
    file(&b, "{\"\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8);
    REFUSED(PERIDOT_ERROR_FORMAT, "key 0", "empty");
}

static void test_tiling(void **state)
{
    (void)state;
    static struct blob b;
    file(&b, "{\"t\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
             "\"u\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}", 12);
    REFUSED(PERIDOT_ERROR_FORMAT, "tensor u begins at byte 4 of the data, before 8, where the one before it ends");
    file(&b, "{\"t\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
             "\"u\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8);
    REFUSED(PERIDOT_ERROR_FORMAT, "tensor u begins at byte 0 of the data, before 8");
    file(&b, "{\"t\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
             "\"u\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[12,20]}}", 20);
    REFUSED(PERIDOT_ERROR_FORMAT, "tensor u begins at byte 12 of the data, past 8");
}

/* A type that the format did not have when this was written: any size will do. */
static void test_new_type(void **state)
{
    (void)state;
    static struct blob b;
    struct pd_arena arena;
    struct pd_tensor_list list;
    one(&b, "\"dtype\":\"F3_NEW\",\"shape\":[5],\"data_offsets\":[0,8]", 8);
    EXPECT_OK(parse(&list, &arena, &b));
    assert_string_equal(list.items[0].type, "f3_new");
    assert_int_equal(list.items[0].dtype, PD_DTYPE_OTHER);
    pd_arena_free(&arena);
}

/* Deep nesting must not cost stack: 200,000 levels would be 8 MB at 40 bytes each. */
static void test_deep(void **state)
{
    (void)state;
    enum { LEVELS = 200000, SIZE = LEVELS * 6 + 1 };
    char *bytes = malloc(8 + SIZE);
    assert_non_null(bytes);
    uint64_t size = SIZE;
    memcpy(bytes, &size, 8);
    for (size_t i = 0; i < LEVELS; i++) memcpy(bytes + 8 + 5 * i, "{\"a\":", 5);
    bytes[8 + 5 * LEVELS] = '1';
    memset(bytes + 8 + 5 * LEVELS + 1, '}', LEVELS);
    struct pd_arena arena = {0};
    struct pd_tensor_list list;
    EXPECT_FAILURE(pd_safetensors_parse(&list, &arena, (const uint8_t *)bytes, 8 + SIZE, "x.safetensors"),
                   PERIDOT_ERROR_FORMAT, "x.safetensors: tensor a: ", "dtype, shape and data_offsets");
    pd_arena_free(&arena);
    free(bytes);
}

static void test_fuzz(void **state)
{
    (void)state;
    static struct blob good, b;
    uint64_t seed = 1;
    unsigned n_read = 0, sum = 0;
    file(&good, good_header, GOOD_DATA);
    for (int i = 0; i < 30000; i++) {
        struct pd_arena arena;
        struct pd_tensor_list list;
        b = good;
        fuzz_spoil(b.data, b.size - GOOD_DATA, &seed);
        if (parse(&list, &arena, &b) == PERIDOT_OK) {
            n_read++;
            for (size_t k = 0; k < list.n; k++)
                if (list.items[k].size) sum += list.items[k].data[0] + list.items[k].data[list.items[k].size - 1];
        }
        pd_arena_free(&arena);
    }
    assert_true(n_read >= 300 && n_read <= 29700);   /* most bytes of a header matter */
    assert_true(sum > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),  cmocka_unit_test(test_prefixes), cmocka_unit_test(test_header),
        cmocka_unit_test(test_fields), cmocka_unit_test(test_names),   cmocka_unit_test(test_tiling),
        cmocka_unit_test(test_new_type), cmocka_unit_test(test_deep),  cmocka_unit_test(test_fuzz),
    };
    return cmocka_run_group_tests(tests, open_guard, close_guard);
}

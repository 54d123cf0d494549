/* The official JSON-Schema-Test-Suite, as golden/schema-suite/table.jsonl has it: each schema compiles, or is refused
 * with a reason; no text of an invalid instance is accepted, in whatever order its members come; and no fewer schemas
 * compile, and valid instances are accepted, than did. PERIDOT_TEST_REFUSALS=1 prints the reasons. And schemas as tools
 * emit them, golden/tool-schemas.jsonl: all compile, and all of their texts are told apart. And texts at random under
 * golden/schemas.json, which all are valid. */
#include "format_fixture.h"

#include "grammar/grammar.h"
#include "schema_validator.h"

#include <yyjson.h>

enum { N_COMPILED = 285, N_ACCEPTED = 498, MAX_PERMUTED = 5, N_RANDOM = 60 };

struct counts {
    unsigned schemas, compiled, valid, accepted, invalid;   /* instances are of those that compile */
};

static bool accepts(const struct pd_rules *r, const char *text, size_t size)
{
    struct pd_walk w;
    pd_walk_begin(&w, r);
    return pd_walk_take(&w, r, text, size) && pd_walk_is_complete(&w, r);
}

/* An instance, of which every object with few members is written in every order of them, one object at a time: the
 * orders of one that is within another are not combined with the other's. */
struct orders {
    const struct pd_rules *r;
    yyjson_mut_doc *doc;
    yyjson_mut_val *root;
    bool accepted;
};

static void try_order(struct orders *o)
{
    size_t size;
    char *text = yyjson_mut_val_write(o->root, 0, &size);
    assert_non_null(text);
    o->accepted = o->accepted || accepts(o->r, text, size);
    free(text);
}

static void permute(struct orders *o, yyjson_mut_val *object, size_t n)
{
    if (n <= 1) try_order(o);
    for (size_t i = 0; n > 1 && i < n; i++) {   /* member i of the last n goes first among them */
        size_t size = yyjson_mut_obj_size(object);
        permute(o, object, n - 1);
        yyjson_mut_val *key = NULL;
        yyjson_mut_obj_iter members = yyjson_mut_obj_iter_with(object);
        for (size_t k = 0; k <= size - n; k++) key = yyjson_mut_obj_iter_next(&members);
        yyjson_mut_val *value = yyjson_mut_obj_iter_get_val(key);
        yyjson_mut_obj_remove(object, key);
        yyjson_mut_obj_add(object, key, value);
    }
}

static void try_orders(struct orders *o, yyjson_mut_val *value)
{
    size_t i, n;
    yyjson_mut_val *key, *member;
    if (yyjson_mut_is_arr(value)) yyjson_mut_arr_foreach(value, i, n, member) try_orders(o, member);
    if (!yyjson_mut_is_obj(value)) return;
    n = yyjson_mut_obj_size(value);
    if (n > 1 && n <= MAX_PERMUTED) permute(o, value, n);
    yyjson_mut_obj_foreach(value, i, n, key, member) try_orders(o, member);
}

static bool is_accepted(const struct pd_rules *r, yyjson_val *instance)
{
    struct orders o = {.r = r, .doc = yyjson_mut_doc_new(NULL)};
    o.root = yyjson_val_mut_copy(o.doc, instance);
    try_order(&o);
    try_orders(&o, o.root);
    yyjson_mut_doc_free(o.doc);
    return o.accepted;
}

static void check_schema(struct counts *n, yyjson_val *row)
{
    struct pd_rules r;
    size_t size, i, count;
    char *schema = yyjson_val_write(yyjson_obj_get(row, "schema"), 0, &size);
    yyjson_val *valid = yyjson_obj_get(row, "valid"), *invalid = yyjson_obj_get(row, "invalid"), *instance;
    const char *file = yyjson_get_str(yyjson_obj_get(row, "file"));
    peridot_status status = pd_schema_compile(&r, schema, size);
    n->schemas++;
    if (status == PERIDOT_OK) {
        n->compiled++;
        n->valid += (unsigned)yyjson_arr_size(valid);
        n->invalid += (unsigned)yyjson_arr_size(invalid);
        yyjson_arr_foreach(valid, i, count, instance) n->accepted += is_accepted(&r, instance);
        yyjson_arr_foreach(invalid, i, count, instance)
            if (is_accepted(&r, instance)) fail_msg("%s: invalid instance %zu is accepted by\n%s", file, i, schema);
    } else {
        if (getenv("PERIDOT_TEST_REFUSALS")) print_message("%s: %s\n    %s\n", file, schema, pd_error());
        assert_true(status == PERIDOT_ERROR_UNSUPPORTED || status == PERIDOT_ERROR_ARGUMENT ||
                    status == PERIDOT_ERROR_FORMAT);
        assert_true(strlen(pd_error()) > 0);
    }
    pd_rules_free(&r);
    free(schema);
}

static void print_counts(const char *name, const struct counts *n)
{
    print_message("%-40s %3u of %3u schemas compile, %3u of %3u valid instances and none of %3u invalid accepted\n",
                  name, n->compiled, n->schemas, n->accepted, n->valid, n->invalid);
}

/* Those of a file are printed and begin anew. */
static void add(struct counts *all, struct counts *of_file, const char *file)
{
    if (*file) print_counts(file, of_file);
    all->schemas += of_file->schemas;
    all->compiled += of_file->compiled;
    all->valid += of_file->valid;
    all->accepted += of_file->accepted;
    all->invalid += of_file->invalid;
    *of_file = (struct counts){0};
}

/* A line of a file, from *begin on, which becomes where the next one begins; NULL: there is none. */
static yyjson_doc *read_line(const struct pd_map *map, size_t *begin)
{
    size_t end = *begin;
    if (end >= map->size) return NULL;
    while (end < map->size && map->data[end] != '\n') end++;
    yyjson_doc *doc = yyjson_read((const char *)map->data + *begin, end - *begin, YYJSON_READ_NUMBER_AS_RAW);
    assert_non_null(doc);
    *begin = end + 1;
    return doc;
}

static void test_suite(void **state)
{
    (void)state;
    struct counts all = {0}, of_file = {0};
    char file[100] = "";
    size_t begin = 0;
    struct pd_map map;
    yyjson_doc *doc;
    EXPECT_OK(pd_map_open(&map, PERIDOT_GOLDEN "/schema-suite/table.jsonl"));
    while ((doc = read_line(&map, &begin))) {
        yyjson_val *row = yyjson_doc_get_root(doc);
        const char *name = yyjson_get_str(yyjson_obj_get(row, "file"));
        if (strcmp(file, name) != 0) {
            add(&all, &of_file, file);
            snprintf(file, sizeof file, "%s", name);
        }
        check_schema(&of_file, row);
        yyjson_doc_free(doc);
    }
    add(&all, &of_file, file);
    print_counts("all", &all);
    pd_map_close(&map);
    assert_true(all.compiled >= N_COMPILED && all.accepted >= N_ACCEPTED);
}

static void expect_texts(const struct pd_rules *r, yyjson_val *row, const char *key, bool accepted)
{
    size_t i, n;
    yyjson_val *text;
    yyjson_arr_foreach(yyjson_obj_get(row, key), i, n, text)
        if (accepts(r, yyjson_get_str(text), yyjson_get_len(text)) != accepted)
            fail_msg("%s should %s\n%s", yyjson_get_str(yyjson_obj_get(row, "name")), accepted ? "accept" : "reject",
                     yyjson_get_str(text));
}

static void test_tools(void **state)
{
    (void)state;
    size_t begin = 0, size;
    struct pd_map map;
    yyjson_doc *doc;
    EXPECT_OK(pd_map_open(&map, PERIDOT_GOLDEN "/tool-schemas.jsonl"));
    while ((doc = read_line(&map, &begin))) {
        struct pd_rules r;
        yyjson_val *row = yyjson_doc_get_root(doc);
        char *schema = yyjson_val_write(yyjson_obj_get(row, "schema"), 0, &size);
        EXPECT_OK(pd_schema_compile(&r, schema, size));
        expect_texts(&r, row, "valid", true);
        expect_texts(&r, row, "invalid", false);
        pd_rules_free(&r);
        free(schema);
        yyjson_doc_free(doc);
    }
    pd_map_close(&map);
}

/* ---- texts at random ---- */

/* Writes until the value is complete, or the text is long: bytes that end things come first one time in three. */
static size_t write_random(char *text, size_t max, const struct pd_rules *r, uint64_t *seed)
{
    static const char ends[] = "\"]}0,:ab1";
    struct pd_walk w;
    size_t n = 0;
    pd_walk_begin(&w, r);
    while (n < max) {
        *seed = *seed * 6364136223846793005u + 1442695040888963407u;
        uint32_t draw = (uint32_t)(*seed >> 33);
        if (pd_walk_is_complete(&w, r) && draw % 3 == 0) return n;
        bool taken = false;
        for (uint32_t i = 0; !taken && i < 256 + sizeof ends; i++) {
            bool end = draw % 3 == 1 && i < sizeof ends - 1;
            text[n] = end ? ends[(draw / 3 + i) % (sizeof ends - 1)] : (char)((draw / 3 + i) & 0xff);
            taken = pd_walk_take(&w, r, text + n, 1);
        }
        n += taken;
        if (!taken) break;
    }
    return pd_walk_is_complete(&w, r) ? n : 0;
}

static void test_random(void **state)
{
    (void)state;
    static char text[1000];
    uint64_t seed = 1;
    unsigned n_ended = 0;
    size_t i, n, size;
    yyjson_val *schema;
    yyjson_doc *schemas = yyjson_read_file(PERIDOT_GOLDEN "/schemas.json", 0, NULL, NULL);
    yyjson_arr_foreach(yyjson_doc_get_root(schemas), i, n, schema) {
        struct pd_rules r;
        char *source = yyjson_val_write(schema, 0, &size);
        EXPECT_OK(pd_schema_compile(&r, source, size));
        for (int k = 0; k < N_RANDOM; k++) {
            struct validator v = {.root = schema};
            size_t length = write_random(text, sizeof text, &r, &seed);
            if (length == 0) continue;
            yyjson_doc *doc = yyjson_read(text, length, 0);
            if (!doc) fail_msg("%s\nnot JSON: %.*s", source, (int)length, text);
            if (!is_valid(&v, schema, yyjson_doc_get_root(doc)))
                fail_msg("%.*s\nis not valid (%s):\n%s", (int)length, text, v.why, source);
            yyjson_doc_free(doc);
            n_ended++;
        }
        pd_rules_free(&r);
        free(source);
    }
    print_message("%u texts ended, and are valid\n", n_ended);
    assert_true(n_ended > n * N_RANDOM / 2);
    yyjson_doc_free(schemas);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_suite), cmocka_unit_test(test_tools),
                                       cmocka_unit_test(test_random)};
    return cmocka_run_group_tests_name("grammar_suite", tests, NULL, NULL);
}

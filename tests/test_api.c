/* The parts of peridot.h that need neither a model nor a device: versions, statuses, sentences, structs that grow. */
#include "api/params.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_version(void **state)
{
    char version[32];
    (void)state;
    snprintf(version, sizeof version, "%d.%d.%d", PERIDOT_VERSION_MAJOR, PERIDOT_VERSION_MINOR, PERIDOT_VERSION_PATCH);
    assert_string_equal(version, PERIDOT_VERSION);
    assert_string_equal(version, PERIDOT_CMAKE_VERSION);
    assert_string_equal(version, peridot_version());
}

static void test_status_names(void **state)
{
    (void)state;
    assert_string_equal(peridot_status_name(PERIDOT_OK), "PERIDOT_OK");
    assert_string_equal(peridot_status_name(PERIDOT_ERROR_DEVICE_LOST), "PERIDOT_ERROR_DEVICE_LOST");
    assert_string_equal(peridot_status_name(PERIDOT_CANCELLED), "PERIDOT_CANCELLED");
    for (int status = PERIDOT_OK; status <= PERIDOT_ERROR_LINK; status++)
        assert_non_null(peridot_status_name((peridot_status)status));
    assert_string_equal(peridot_status_name((peridot_status)(PERIDOT_ERROR_LINK + 1)), "unknown status");
    assert_string_equal(peridot_status_name((peridot_status)-1), "unknown status");
}

static void test_sentence(void **state)
{
    char text[2000];
    (void)state;
    peridot_set_error("the reader is %d tired");
    assert_string_equal(peridot_last_error(), "the reader is %d tired");
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    peridot_set_error(text);
    assert_true(strlen(peridot_last_error()) > 500);
}

static void test_utf8(void **state)
{
    static const struct {
        const char *text;
        size_t size;
    } cases[] = {
        {"a", 1}, {"\xc3\xa9z", 2}, {"\xe2\x82\xac", 3}, {"\xf0\x9f\x98\x80", 4},
        {"\x80", 0}, {"\xc3", 0}, {"\xe2\x82", 0}, {"\xc0\x80", 0}, {"\xed\xa0\x80", 0}, {"\xf5\x80\x80\x80", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(peridot_utf8_size(cases[i].text, strlen(cases[i].text)), cases[i].size);
    assert_int_equal(peridot_utf8_size("", 0), 0);
}

/* ---- structs that grow ---- */

struct grown {
    peridot_model_params p;
    uint64_t later;        /* a member that this library does not know */
};

/* A library that knows the member, and a program that may not. */
static peridot_status read_grown(struct grown *to, const void *from)
{
    return pd_params_read(to, sizeof *to, from, "params");
}

static void test_older_program(void **state)
{
    struct grown to = {.later = 7}, from = {.p = {.size = sizeof from.p, .gpu_memory = 5}, .later = 9};
    (void)state;
    assert_int_equal(read_grown(&to, &from), PERIDOT_OK);
    assert_true(to.p.gpu_memory == 5 && to.later == 0);
    from.p.size = sizeof from;
    assert_int_equal(read_grown(&to, &from), PERIDOT_OK);
    assert_true(to.p.gpu_memory == 5 && to.later == 9);
    assert_int_equal(read_grown(&to, NULL), PERIDOT_OK);
    assert_true(to.p.gpu_memory == 0 && to.later == 0 && to.p.size == 0);
    from.p.size = 3;
    assert_int_equal(read_grown(&to, &from), PERIDOT_ERROR_ARGUMENT);
}

static void test_newer_program(void **state)
{
    peridot_model *model;
    struct grown from = {.p = {.size = sizeof from}};
    (void)state;
    assert_int_equal(peridot_model_open(&model, "/no such file", &from.p), PERIDOT_ERROR_IO);
    from.later = 1;
    assert_int_equal(peridot_model_open(&model, "/no such file", &from.p), PERIDOT_ERROR_UNSUPPORTED);
    assert_non_null(strstr(peridot_last_error(), "params: members are set that the library's version"));
    assert_null(model);
    from.p.size = 0;
    assert_int_equal(peridot_model_open(&model, "/no such file", &from.p), PERIDOT_ERROR_IO);
}

static void test_results(void **state)
{
    peridot_stats found = {.n_prompt = 3, .decode_read_size = 4};
    struct {
        peridot_stats stats;
        uint64_t later;
    } newer = {.stats = {.size = sizeof newer}, .later = 5};
    peridot_stats same = {0}, older = {.size = offsetof(peridot_stats, decode_read_size), .decode_read_size = 9};
    (void)state;
    pd_result_write(&same, &found, sizeof found);
    assert_true(same.n_prompt == 3 && same.decode_read_size == 4 && same.size == 0);
    pd_result_write(&older, &found, sizeof found);
    assert_true(older.n_prompt == 3 && older.decode_read_size == 9);
    pd_result_write(&newer, &found, sizeof found);
    assert_true(newer.stats.n_prompt == 3 && newer.stats.size == sizeof newer && newer.later == 5);
    pd_result_write(NULL, &found, sizeof found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version), cmocka_unit_test(test_status_names), cmocka_unit_test(test_sentence),
        cmocka_unit_test(test_utf8), cmocka_unit_test(test_older_program), cmocka_unit_test(test_newer_program),
        cmocka_unit_test(test_results),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

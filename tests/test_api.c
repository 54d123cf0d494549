/* The parts of peridot.h that need neither a model nor a device: versions, statuses, sentences, structs that grow. */
#include "peridot.h"

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
    for (int status = PERIDOT_OK; status <= PERIDOT_CANCELLED; status++) assert_non_null(peridot_status_name((peridot_status)status));
    assert_string_equal(peridot_status_name((peridot_status)(PERIDOT_CANCELLED + 1)), "unknown status");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version), cmocka_unit_test(test_status_names), cmocka_unit_test(test_sentence),
        cmocka_unit_test(test_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Stop texts: however the text is cut into pieces, what is shown is what comes before the first stop text. */
#include "peridot.h"

#include "base/base.h"
#include "text/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct shown {
    char text[256];
    size_t size;
};

static void show(struct shown *to, struct pd_stop *s, const char *text, size_t n, bool last)
{
    const char *out;
    size_t size;
    assert_int_equal(pd_stop_next(&out, &size, s, text, n, last), PERIDOT_OK);
    assert_true(size < sizeof to->text - to->size);
    memcpy(to->text + to->size, out, size);
    to->size += size;
    to->text[to->size] = 0;
}

/* The text in two pieces cut at a place, and the rest byte by byte (`single`) or at once. */
static void check_cut(const char *const *stops, size_t n_stops, const char *text, size_t cut, bool single,
                      const char *want, bool found)
{
    struct pd_stop s = {.texts = stops, .n = n_stops};
    struct shown shown = {0};
    size_t size = strlen(text);
    show(&shown, &s, text, cut, false);
    for (size_t i = cut; single && i < size; i++) show(&shown, &s, text + i, 1, false);
    if (!single) show(&shown, &s, text + cut, size - cut, false);
    show(&shown, &s, NULL, 0, true);
    assert_string_equal(shown.text, want);
    assert_int_equal(s.found, found);
    free(s.held.data);
}

static void check(const char *const *stops, size_t n_stops, const char *text, const char *want, bool found)
{
    for (size_t cut = 0; cut <= strlen(text); cut++) {
        check_cut(stops, n_stops, text, cut, false, want, found);
        check_cut(stops, n_stops, text, cut, true, want, found);
    }
}

static void test_first_of_several(void **state)
{
    (void)state;
    static const char *const stops[] = {"END", "aab", "\n\n", ""};
    check(stops, 4, "hello aaab END", "hello a", true);
    check(stops, 4, "one\n\ntwo END", "one", true);
    check(stops, 4, "EN END", "EN ", true);
    check(stops, 4, "ENEND", "EN", true);
    check(stops, 4, "END", "", true);
    check(stops, 4, "nothing here", "nothing here", false);
    check(stops, 4, "to the EN", "to the EN", false);
    check(stops, 4, "", "", false);
    check(stops, 0, "END", "END", false);
    check((const char *const[]){""}, 1, "END", "END", false);
}

/* The earlier place wins, and a stop text may begin another. */
static void test_overlaps(void **state)
{
    (void)state;
    static const char *const stops[] = {"abcd", "bc"}, *const nested[] = {"User:", "User"};
    check(stops, 2, "xabcx", "xa", true);
    check(stops, 2, "xabcd", "x", true);
    check(nested, 2, "ok User: x", "ok ", true);
    check((const char *const[]){"aaaa"}, 1, "aaabaaa", "aaabaaa", false);
    check((const char *const[]){"aaaa"}, 1, "baaaaa", "b", true);
    check((const char *const[]){"\u00e9t\u00e9"}, 1, "un \u00e9\u00e9t\u00e9", "un \u00e9", true);
}

/* What cannot begin a stop text is shown at once. */
static void test_no_delay(void **state)
{
    (void)state;
    static const char *const stops[] = {"END"};
    struct pd_stop s = {.texts = stops, .n = 1};
    struct shown shown = {0};
    show(&shown, &s, "abc", 3, false);
    assert_string_equal(shown.text, "abc");
    show(&shown, &s, "dE", 2, false);
    assert_string_equal(shown.text, "abcd");
    show(&shown, &s, "x", 1, false);
    assert_string_equal(shown.text, "abcdEx");
    show(&shown, &s, "END", 3, false);
    show(&shown, &s, "more", 4, false);
    show(&shown, &s, NULL, 0, true);
    assert_string_equal(shown.text, "abcdEx");
    free(s.held.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_of_several), cmocka_unit_test(test_overlaps), cmocka_unit_test(test_no_delay),
    };
    return cmocka_run_group_tests_name("stop", tests, NULL, NULL);
}

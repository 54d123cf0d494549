/* Text on a terminal: lines that end between words, however the text comes. */
#define _POSIX_C_SOURCE 200809L
#include "console/console.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What a terminal of so many columns gets, where `step` bytes come at a time; to be freed. */
static char *flow(const char *text, int columns, int indent, size_t step)
{
    char *out = NULL;
    size_t size = 0, n = strlen(text);
    struct cmd_flow f = {.file = open_memstream(&out, &size), .columns = columns, .indent = indent};
    assert_non_null(f.file);
    for (size_t i = 0; i < n; i += step) cmd_flow_text(&f, text + i, n - i < step ? n - i : step);
    cmd_flow_end(&f);
    fclose(f.file);
    return out;
}

static void check(const char *text, int columns, const char *expected)
{
    char *whole = flow(text, columns, 0, strlen(text) + 1), *bytes = flow(text, columns, 0, 1);
    assert_string_equal(whole, expected);
    bool ascii = true;
    for (const char *c = text; *c; c++) ascii &= (unsigned char)*c < 0x80;
    if (ascii) assert_string_equal(bytes, expected);   /* characters come whole */
    free(whole);
    free(bytes);
}

static void test_words(void **state)
{
    (void)state;
    check("one two three", 80, "one two three");
    check("one two three", 9, "one two\nthree");
    check("one two three", 7, "one two\nthree");
    check("one two three", 6, "one\ntwo\nthree");
    check("one  two   three", 8, "one  two\nthree");
    check("one two\nthree four", 9, "one two\nthree\nfour");
    check("    int x;\n\tint y;", 20, "    int x;\n        int y;");
    check("a\tb\tc", 20, "a       b       c");
    check("end of line \nnext", 20, "end of line\nnext");
    check("", 20, "");
}

/* A word that no line holds is left to the terminal, which a link can be copied from. */
static void test_long_words(void **state)
{
    (void)state;
    check("go abcdefghijklmnop on", 8, "go\nabcdefghijklmnop on");
    check("abcdefgh ij", 8, "abcdefgh\nij");
    char text[2001], expected[2004];
    memset(text, 'x', 2000);
    text[2000] = 0;
    snprintf(expected, sizeof expected, "%s\ny", text);
    strcpy(text + 1998, " y");
    expected[1998] = '\n', expected[1999] = 'y', expected[2000] = 0;
    check(text, 18, expected);   /* which 1998 is a multiple of */
}

static void test_wide_characters(void **state)
{
    (void)state;
    check("日本語日本語", 8, "日本語日\n本語");
    check("日本語日本語", 9, "日本語日\n本語");
    check("ab 日本語 cd", 8, "ab 日本\n語 cd");
    check("한국어 韓国", 7, "한국어\n韓国");
    check("naïve café olé", 10, "naïve café\nolé");
    check("e\xcc\x81t\xc3\xa9 ici", 7, "e\xcc\x81t\xc3\xa9 ici");   /* an accent by itself takes no column */
    check("hi 🙂🙂 x", 7, "hi 🙂🙂\nx");
}

/* What would drive the terminal is shown, and counted as it is shown. */
static void test_escapes(void **state)
{
    (void)state;
    check("ab \x1b[2J cd", 20, "ab \\x1b[2J cd");
    check("ab \x1b[2J cd", 9, "ab\n\\x1b[2J\ncd");
}

static void test_indent(void **state)
{
    (void)state;
    char *out = flow("/set     Sets an option or lists them.\n/x  y\n", 20, 9, 1000);
    assert_string_equal(out, "/set     Sets an\n         option or\n         lists them.\n/x  y\n");
    free(out);
}

/* No terminal: every byte is as it came. */
static void test_no_terminal(void **state)
{
    (void)state;
    const char *text = "a very long line \t \x1b[2J of words \n";
    char *out = flow(text, 0, 0, 3);
    assert_string_equal(out, text);
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),   cmocka_unit_test(test_long_words), cmocka_unit_test(test_wide_characters),
        cmocka_unit_test(test_escapes), cmocka_unit_test(test_indent),     cmocka_unit_test(test_no_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

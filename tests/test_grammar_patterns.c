/* Patterns: beside PCRE2 for all strings of a few letters, and what is refused, by its name. */
#include "format_fixture.h"

#include "grammar/grammar.h"

#include "serve/wire/wire_.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* ---- what is taken ---- */

static const char *const patterns[] = {
    "a", "^a", "a$", "^a$", "^$", "", "a|b", "^a|b$", "(^a|b$)c?", "^(a|b)*1$", "(?:a|bb)+1", "^(?<name>a)b",
    "a{2,3}?b", "^[^ab]*$", "^\\w+\\d$", "\\D\\d", "^.{2,4}$", "^(|a)b",
    "^(?=a)", "^(?!a)", "^(?=a)b", "^(?!a)b", "^(?=.*a).*$", "^(?!.*a).*$", "^(?=.*a)(?=.*b).{3,4}$",
    "^(?!a)(?!b).*1$", "^(?=.*1)(?!.*ab)(?!.*ba).{2,}$", "^(?!a$).*", "^(?!$)", "^(?=$)", "^(?!^a)", "^(?=^a|b$)",
    "^(?!(a|b)*$)", "^(?!a|b1).{2}$", "^(?!a)b|1$", "1|^(?=ab)", "^(?!a)|^(?=ab)|11", "^(?!(?=a)a1|b)", "^(?=(?!ab)a)",
    "^(?!^(?!a))", "^(?!)", "^(?=)", "^(?=a)b|^(?!a)b$", "^(?:(?:a|b))(b|1)$", "^(?!(a{2}|b){2}$).*$", "^(?![^a]*$)",
    "[(?=]a", "\\(?=a", "^(?!a.)(a|b)", "^(?=[ab]+$)a", "^(?=a)a(b|$)",
    "^(?=.*a)(?=.*b)(?=.*1)(?=.*=)(?=.*(ab|ba)).{4,6}$",
    "(^|b)a($|1)",
};

static bool accepts(const struct pd_rules *r, const char *text, size_t size)
{
    struct pd_walk w;
    pd_walk_begin(&w, r);
    return pd_walk_take(&w, r, "\"", 1) && pd_walk_take(&w, r, text, size) && pd_walk_take(&w, r, "\"", 1) &&
           pd_walk_is_complete(&w, r);
}

/* The rules of a schema with that pattern. */
static peridot_status compile(struct pd_rules *out, const char *pattern)
{
    char schema[2000] = "{\"type\":\"string\",\"pattern\":\"", *at = schema + strlen(schema);
    for (; *pattern; pattern++) {
        if (*pattern == '\\' || *pattern == '"') *at++ = '\\';
        *at++ = *pattern;
    }
    strcpy(at, "\"}");
    return pd_schema_compile(out, schema, strlen(schema));
}

/* How many strings match. `r` NULL: none is accepted. */
static size_t compare(const char *pattern, const struct pd_rules *r, size_t max)
{
    static const char letters[] = {'a', 'b', '1', '='};
    int error;
    size_t at, n_matched = 0;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_DOLLAR_ENDONLY,
                                     &error, &at, NULL);
    assert_non_null(code);
    pcre2_match_data *data = pcre2_match_data_create_from_pattern(code, NULL);
    for (size_t size = 0; size <= max; size++)
        for (size_t number = 0; number >> 2 * size == 0; number++) {
            char text[16];
            for (size_t i = 0; i < size; i++) text[i] = letters[number >> 2 * i & 3];
            bool matches = pcre2_match(code, (PCRE2_SPTR)text, size, 0, 0, data, NULL) >= 0;
            if ((r && accepts(r, text, size)) != matches)
                fail_msg("%s should %s %.*s", pattern, matches ? "accept" : "reject", (int)size, text);
            n_matched += matches;
        }
    pcre2_match_data_free(data);
    pcre2_code_free(code);
    return n_matched;
}

static void test_strings(void **state)
{
    (void)state;
    for (size_t i = 0; i < PD_COUNT(patterns); i++) {
        struct pd_rules r;
        peridot_status status = compile(&r, patterns[i]);
        bool none = status == PERIDOT_ERROR_ARGUMENT && strstr(pd_error(), "no value is valid");
        if (status != PERIDOT_OK && !none) fail_msg("%s: %s", patterns[i], pd_error());
        assert_int_equal(compare(patterns[i], none ? NULL : &r, 6) > 0, !none);
        pd_rules_free(&r);
    }
}

static const struct {
    const char *pattern, *good, *bad;
} escapes[] = {
    {"^\\u{1F600}$", "\xf0\x9f\x98\x80", "x"}, {"^\\ud83d\\ude00$", "\xf0\x9f\x98\x80", "x"},
    {"^\\cJ\\0?$", "\\n", "j"},
    {"^\\x41\\u0042\\/\\.$", "AB/.", "AB/x"}, {"^(?!\\u00e9)[\\u{e0}-\\u{ff}]$", "\xc3\xa0", "\xc3\xa9"},
    {"^[\\b\\]]$", "\\b", "b"},
};

static void test_escapes(void **state)
{
    (void)state;
    for (size_t i = 0; i < PD_COUNT(escapes); i++) {
        struct pd_rules r;
        EXPECT_OK(compile(&r, escapes[i].pattern));
        assert_true(accepts(&r, escapes[i].good, strlen(escapes[i].good)));
        assert_false(accepts(&r, escapes[i].bad, strlen(escapes[i].bad)));
        pd_rules_free(&r);
    }
}

/* ---- what is refused ---- */

static const struct {
    const char *pattern, *sentence;
} refused[] = {
    {"(a)\\1", "back-references"}, {"(?<y>a)\\k<y>", "back-references"}, {"(?P=y)", "back-references"},
    {"\\bx", "word boundaries"}, {"a\\B", "word boundaries"}, {"\\p{L}", "Unicode properties"},
    {"[\\P{Lu}]", "Unicode properties"}, {"\\012", "octal"}, {"\\Ax", "^ and $"}, {"x\\z", "^ and $"},
    {"\\h", "this escape"}, {"\\u{110000}", "no character"}, {"\\u{}", "hexadecimal"}, {"\\ud800", "surrogate"},
    {"a(?=b)", "look-ahead is supported only at the start"}, {"(?!a)", "look-ahead is supported only at the start"},
    {"^(?:(?!a).)*$", "look-ahead is supported only at the start"}, {"^a(?!b)", "look-ahead is supported only"},
    {"^(?=a(?!b))", "look-ahead is supported only"}, {"(?<=a)b", "look-behind"}, {"^(?<!a)b", "look-behind"},
    {"(?i)a", "flags such as (?i)"}, {"a(?i:b)", "flags such as (?i)"}, {"(?-s)a", "flags such as (?i)"},
    {"(?P<y>a)", "(?<name>...) in ECMA-262, not (?P<name>...)"}, {"(?<>a)", "has no name"}, {"(?<y", "has no name"},
    {"(?>a)", "atomic groups"}, {"(?(1)a)", "conditions"}, {"(?#a)", "comments"}, {"(?R)", "calls of groups"},
    {"(?P>y)", "calls of groups"}, {"(?&y)", "calls of groups"}, {"(?|a)", "this kind of group"}, {"(?", "this kind"},
    {"a++", "possessive"}, {"a*+", "possessive"}, {"a{2}+b", "possessive"}, {"a**", "nothing to repeat"},
    {"^(?=a)*b", "nothing to repeat"}, {"^*", "nothing to repeat"}, {"*", "nothing to repeat"}, {"(a", "has no end"},
    {"^(?=a", "has no end"}, {"^(?!a))", "closes no group"}, {"a)", "closes no group"}, {"[b-a]", "before it begins"},
    {"a{5000}", "more than 1000 times"}, {"a{3,2}", "fewer times"}, {"[]", "an empty class"}, {"a\\", "ends too early"},
};

static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < PD_COUNT(refused); i++) {
        struct pd_rules r;
        peridot_status status = compile(&r, refused[i].pattern);
        if (status != PERIDOT_ERROR_UNSUPPORTED || !strstr(pd_error(), refused[i].sentence) ||
            strncmp(pd_error(), "pattern at #: ", 14) != 0)
            fail_msg("%s\n%d %s", refused[i].pattern, status, status == PERIDOT_OK ? "accepted" : pd_error());
        pd_rules_free(&r);
    }
}

/* ---- Lark's grammars ---- */

/* What Codex's tool of patches takes. */
static const char patch[] =
    "start: begin_patch hunk+ end_patch\n"
    "begin_patch: \"*** Begin Patch\" LF\n"
    "end_patch: \"*** End Patch\" LF?\n"
    "\n"
    "hunk: add_hunk | delete_hunk | update_hunk\n"
    "add_hunk: \"*** Add File: \" filename LF add_line+\n"
    "delete_hunk: \"*** Delete File: \" filename LF\n"
    "update_hunk: \"*** Update File: \" filename LF change_move? change?\n"
    "\n"
    "filename: /(.+)/\n"
    "add_line: \"+\" /(.*)/ LF -> line\n"
    "\n"
    "change_move: \"*** Move to: \" filename LF\n"
    "change: (change_context | change_line)+ eof_line?\n"
    "change_context: (\"@@\" | \"@@ \" /(.+)/) LF\n"
    "change_line: (\"+\" | \"-\" | \" \") /(.*)/ LF\n"
    "eof_line: \"*** End of File\" LF\n"
    "\n"
    "%import common.LF\n";
#define PATCH(hunks) "*** Begin Patch\\n" hunks "*** End Patch"

static const struct {
    const char *grammar, *good[4], *bad[6];   /* as JSON spells texts */
} grammars[] = {
    {patch, {PATCH("*** Add File: a b\\n+x\\n+\\n") "\\n", PATCH("*** Delete File: a\\n*** Update File: b\\n"),
             PATCH("*** Update File: a\\n*** Move to: b\\n@@ int f()\\n-a\\\"\\n+\xe2\x80\xa8\\n"
                   " \\n@@\\n+b\\n*** End of File\\n"),
             PATCH("*** Update File: a\\n+*** End Patch\\n")},
     {PATCH(""), PATCH("*** Add File: a\\n"), PATCH("*** Add File: \\n+x\\n"), PATCH("*** Update File: a\\nx\\n"),
      PATCH("*** Delete File: a\\n") "\\n\\n", PATCH("*** Update File: a\\n*** Move to: b\\n*** Move to: c\\n")}},
    {"// numbers\n?start: sum # of them\n!sum.2: NUMBER ((\"+\" | \"-\") NUMBER) ~ 1..2\n%import common (NUMBER, WS)\n",
     {"1+2", "1.5e3-.5+7"}, {"1", "1+", "1+2+3+4", " 1+2"}},
    {"start: \"a\"i [B] \"x\" ~ 2\n  | \"\\x41\\n\\u00e9\\\"/\" //b\n | /a\\/[x.]./s\nB: \"0\"..\"7\"\n"
     "%import common.INT -> N\n", {"Axx", "a7xx", "A\\n\xc3\xa9\\\"/", "a/.\\n"},
     {"a8xx", "ax", "A\\n", "a/y\\n", "a/."}},
    {"start: (\"a\" | \"b\") +\n", {"a", "abba"}, {"", "c"}},
};

static void test_grammars(void **state)
{
    (void)state;
    static char pattern[SERVE_LARK_MAX];
    for (size_t i = 0; i < PD_COUNT(grammars); i++) {
        struct pd_rules r;
        size_t budget = SERVE_LARK_BUDGET;
        if (!serve_lark_pattern(pattern, &budget, grammars[i].grammar, strlen(grammars[i].grammar)))
            fail_msg("not taken: %s", grammars[i].grammar);
        assert_true(strlen(pattern) < 1000);   /* compile's */
        EXPECT_OK(compile(&r, pattern));
        for (size_t k = 0; k < PD_COUNT(grammars[i].good) && grammars[i].good[k]; k++)
            if (!accepts(&r, grammars[i].good[k], strlen(grammars[i].good[k]))) fail_msg("%s", grammars[i].good[k]);
        for (size_t k = 0; k < PD_COUNT(grammars[i].bad) && grammars[i].bad[k]; k++)
            if (accepts(&r, grammars[i].bad[k], strlen(grammars[i].bad[k]))) fail_msg("%s", grammars[i].bad[k]);
        pd_rules_free(&r);
    }
}

static const char *const no_grammars[] = {
    "", "start", "a: \"x\"\n", "start: a\n", "start: start\n", "start: \"a\" start |\n", "start: LF\n",
    "start: a\na: b\nb: a\n", "start: \"a\"\nstart: \"b\"\n", "start: \"a\"\n%ignore \" \"\n",
    "start: \"a\n", "start: /a\n",
    "start: (\"a\"\n", "start: \"a\")\n", "start: \"a\" ~\n", "start: \"a\" ~ 1..\n", "start: /a/i\n",
    "start: \"\xc3\xa9\"i\n",
    "start: \"\\q\"\n", "start: \"\\x4\"\n", "start: \"\\u00g0\"\n", "start: \"!\"..\"~\"\n", "start: \"a\" ->\n",
    "start: *\n",
    "start: f{\"a\"}\nf{x}: x\n", "%import common.NONE\nstart: \"a\"\n", "%import other.LF\nstart: \"a\"\n",
    "%import common (LF\nstart: \"a\"\n", "%declare A\nstart: \"a\"\n", "start: \"a\" $\n",
    "start: a a a a a a a a a a\na: b b b b b b b b b b\nb: c c c c c c c c c c\nc: d d d d d d d d d d\n"
    "d: \"0123456789\"\n",
};

/* Every beginning of a grammar, too, ends somewhere. */
static void test_no_grammars(void **state)
{
    (void)state;
    static char pattern[SERVE_LARK_MAX];
    for (size_t i = 0; i < PD_COUNT(no_grammars); i++) {
        size_t budget = SERVE_LARK_BUDGET, size = strlen(no_grammars[i]);
        if (serve_lark_pattern(pattern, &budget, no_grammars[i], size)) fail_msg("taken: %s", no_grammars[i]);
    }
    for (size_t i = 0; i < PD_COUNT(grammars); i++)
        for (size_t size = 0; size < strlen(grammars[i].grammar); size++) {
            char *text = malloc(size + 1);   /* nothing behind it is read */
            size_t budget = SERVE_LARK_BUDGET;
            memcpy(text, grammars[i].grammar, size);
            char *exact = realloc(text, size ? size : 1);
            serve_lark_pattern(pattern, &budget, exact, size);
            serve_regex_pattern(pattern, &budget, exact, size);
            free(exact);
        }
    size_t budget = 10;
    assert_false(serve_lark_pattern(pattern, &budget, patch, strlen(patch)));
    static char comments[30000];   /* behind what is named a hundred times */
    char *at = comments + sprintf(comments, "b: \"x\"\n//");
    memset(at, ' ', 20000);
    at += 20000 + sprintf(at + 20000, "\nstart:");
    for (int i = 0; i < 100; i++) at += sprintf(at, " b");
    budget = SERVE_LARK_BUDGET;
    assert_false(serve_lark_pattern(pattern, &budget, comments, (size_t)(at - comments)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_strings), cmocka_unit_test(test_escapes),
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_grammars),
                                       cmocka_unit_test(test_no_grammars)};
    return cmocka_run_group_tests_name("grammar_patterns", tests, NULL, NULL);
}

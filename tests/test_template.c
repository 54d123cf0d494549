/* Chat templates: golden cases, rendered by jinja2 (tools/golden/template.py); which bytes are the program's own; what
 * is refused, and what ends soon whatever a program does. With the argument "-": a line of JSON {"template",
 "variables"}
 * after another from standard input is rendered, for comparing with jinja2 at random. */
#include "format_fixture.h"

#include "text/template/template.h"

static const struct tm now = {.tm_year = 126, .tm_mon = 6, .tm_mday = 4, .tm_hour = 9, .tm_min = 5, .tm_sec = 7,
                              .tm_wday = 6, .tm_yday = 184};
static const struct pd_template_word words[] = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};

static peridot_status render(struct pd_template_output *out, const char *source, size_t size, yyjson_val *variables)
{
    struct pd_template *t;
    const struct pd_template_input in = {variables, words, PD_COUNT(words), now};
    *out = (struct pd_template_output){0};
    peridot_status status = pd_template_parse(&t, source, size);
    if (status == PERIDOT_OK) status = pd_template_render(out, t, &in);
    pd_template_free(t);
    return status;
}

/* With variables as a text of JSON. */
static peridot_status render_text(struct pd_template_output *out, const char *source, const char *json)
{
    yyjson_doc *doc = yyjson_read(json, strlen(json), 0);
    assert_non_null(doc);
    peridot_status status = render(out, source, strlen(source), yyjson_doc_get_root(doc));
    yyjson_doc_free(doc);
    return status;
}

/* ---- rendering lines ---- */

static void write_result(const char *key, const char *text, size_t size)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *object = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, object);
    yyjson_mut_obj_add_strn(doc, object, key, text, size);
    char *line = yyjson_mut_write(doc, 0, NULL);
    puts(line ? line : "{\"failed\": \"not UTF-8\"}");
    fflush(stdout);
    free(line);
    yyjson_mut_doc_free(doc);
}

static int render_lines(void)
{
    static char line[1 << 22];
    while (fgets(line, sizeof line, stdin)) {
        struct pd_template_output out;
        yyjson_doc *doc = yyjson_read(line, strlen(line), 0);
        yyjson_val *request = yyjson_doc_get_root(doc), *source = yyjson_obj_get(request, "template");
        peridot_status status = render(&out, yyjson_get_str(source), yyjson_get_len(source),
                                       yyjson_obj_get(request, "variables"));
        if (status == PERIDOT_OK) write_result("text", out.text, out.size);
        else write_result("failed", pd_error(), strlen(pd_error()));
        pd_template_output_free(&out);
        yyjson_doc_free(doc);
    }
    return 0;
}

/* ---- golden cases ---- */

static void check_case(yyjson_val *template, yyjson_val *variables, yyjson_val *text, size_t i)
{
    struct pd_template_output out;
    yyjson_val *source = yyjson_obj_get(template, "template");
    const char *name = yyjson_get_str(yyjson_obj_get(template, "name"));
    peridot_status status = render(&out, yyjson_get_str(source), yyjson_get_len(source), variables);
    if (yyjson_is_null(text) && status == PERIDOT_OK) fail_msg("%s, conversation %zu: is rendered", name, i);
    if (!yyjson_is_null(text) && status != PERIDOT_OK) fail_msg("%s, conversation %zu: %s", name, i, pd_error());
    if (status == PERIDOT_OK && (out.size != yyjson_get_len(text) || memcmp(out.text, yyjson_get_str(text), out.size)))
        fail_msg("%s, conversation %zu: rendered as\n%s\nnot as\n%s", name, i, out.text, yyjson_get_str(text));
    pd_template_output_free(&out);
}

static void test_golden(void **state)
{
    yyjson_doc *doc = yyjson_read_file(PERIDOT_GOLDEN "/template.json", 0, NULL, NULL);
    yyjson_val *template, *text, *conversations;
    size_t i, n, k, m, n_cases = 0;
    (void)state;
    assert_non_null(doc);
    conversations = yyjson_obj_get(yyjson_doc_get_root(doc), "conversations");
    yyjson_arr_foreach(yyjson_obj_get(yyjson_doc_get_root(doc), "templates"), i, n, template)
        yyjson_arr_foreach(yyjson_obj_get(template, "texts"), k, m, text) {
            check_case(template, yyjson_arr_get(conversations, k), text, k);
            n_cases++;
        }
    assert_true(n_cases > 300);
    yyjson_doc_free(doc);
}

/* ---- what is whose ---- */

/* The variables' texts are of lower-case letters and the programs' of others: s is "ab<", m {"k": "ab"}, n 12. */
#define VARIABLES "{\"s\": \"ab<\", \"m\": {\"k\": \"ab\"}, \"l\": [\"b\", \"a\"], \"n\": 12, \"f\": 1.5, \"b\": true}"

static const struct {
    const char *source, *text, *own;   /* own: "1" for each byte of the text that is the program's */
} owned[] = {
    {"X{{ s }}Y{{ bos_token }}", "Xab<Y<s>", "10001111"}, {"{{ 'X' + s + 'Y' }}", "Xab<Y", "10001"},
    {"{{ 'X' ~ s ~ n }}", "Xab<12", "100000"}, {"{{ n }}{{ f }}{{ b }}{{ 1 }}{{ 2.5 }}", "121.5True12.5",
    "0000000001111"},
    {"{{ n + 1 }}{{ 1 + 1 }}{{ n == 12 }}", "132True", "0010000"}, {"{{ ('X' ~ s)[0:2] }}{{ ('X' ~ s)[::-1] }}",
    "Xa<baX", "100001"},
    {"{{ ('X' ~ s)[0] }}{{ s[0] }}{{ ('X' ~ s)[-1] }}", "Xa<", "100"}, {"{{ (' ' ~ s ~ 'X ') | trim }}", "ab<X",
    "0001"},
    {"{{ ('XX' ~ s).strip('X') }}", "ab<", "000"}, {"{{ s | upper }}{{ 'x' | upper }}", "AB<X", "0001"},
    {"{{ (s ~ 'X') | lower }}{{ s | capitalize }}{{ (s ~ ' xy') | title }}", "ab<xAb<Ab< Xy", "0001000000111"},
    {"{{ s | replace('b', 'XY') }}", "aXY<", "0110"}, {"{{ 'XbY' | replace('b', s) }}", "Xab<Y", "10001"},
    {"{{ 'X' * 2 }}{{ s * 2 }}", "XXab<ab<", "11000000"}, {"{{ l | join('X') }}", "bXa", "010"}, {"{{ 'X'.join(l) }}",
    "bXa", "010"},
    {"{{ ('X,' ~ s).split(',')[1] }}{{ ('X,' ~ s).split(',')[0] }}", "ab<X", "0001"}, {"{{ (s ~ '\nX') | indent(1) }}",
    "ab<\n X", "000111"},
    {"{{ '%s-%s' % (s, 'X') }}", "ab<-X", "00011"}, {"{{ '{}-{}'.format(s, 'X') }}", "ab<-X", "00011"},
    {"{{ '%3d' % n }}", " 12", "000"},
    {"{{ s | tojson }}", "\"ab<\"", "00000"}, {"{{ 'X' | tojson }}", "\"X\"", "111"}, {"{{ m | tojson }}",
    "{\"k\": \"ab\"}", "00000000000"},
    {"{{ {'K': s} | tojson }}", "{\"K\": \"ab<\"}", "111111000001"}, {"{{ ('X' ~ s) | tojson }}", "\"Xab<\"", "010000"},
    {"{{ ['X', s] }}", "['X', 'ab<']", "111111000001"}, {"{{ l }}", "['b', 'a']", "0000000000"},
    {"{{ m.items() | list }}", "[('k', 'ab')]", "1100011000011"},
    {"{% set x %}X{{ s }}{% endset %}{{ x }}", "Xab<", "1000"},
    {"{% macro f(x) %}X{{ x }}{% endmacro %}{{ f(s) }}{{ f('Y') }}", "Xab<XY", "100011"},
    {"{% for k in m %}{{ k }}{{ m[k] }}{% endfor %}{% for c in s %}{{ c }}X{% endfor %}", "kabaXbX<X", "000010101"},
    {"{{ s if b else 'X' }}{{ 'X' if b }}", "ab<X", "0001"}, {"{{ s | escape }}{{ '<' | e }}", "ab&lt;&lt;",
    "000000" "1111"},
    {"{{ strftime_now('X%Y') }}", "X2026", "11111"}, {"{{ s | list | tojson }}", "[\"a\", \"b\", \"<\"]",
    "100011000110001"},
    {"{{ l | sort | first }}{{ l | map('upper') | join }}{{ l | last | string }}", "aBAa", "0000"},
    {"{{ s | length }}{{ s.find('b') }}{{ '7' | int }}", "317", "001"},
    {"{{ {s: 'X'} | tojson }}", "{\"ab<\": \"X\"}", "100000111111"}, {"{{ s.partition('b') | join('X') }}", "aXbX<",
    "01010"}, {"{{ s | center(5) }}{{ s.zfill(4) }}", " ab< 0ab<", "100011000"},
    {"{{ ('X ' ~ s) | wordwrap(3) }}", "X\nab<", "11000"}, {"{{ ('X ' ~ s ~ s) | truncate(6, true, '.', 0) }}",
    "X ab<.", "110001"},
    {"{% macro f() %}X{{ caller(s) }}{% endmacro %}{% call(x) f() %}Y{{ x }}{% endcall %}", "XYab<", "11000"},
    {"{% for x in [[s], 'X'] recursive %}{% if x is string %}{{ x }}{% else %}{{ loop(x) }}{% endif %}{% endfor %}",
     "ab<X", "0001"},
    {"{{ {'K': s} | xmlattr }}", " K=\"ab&lt;\"", "11110000001"}, {"{{ [m] | groupby('k') | list | pprint }}",
    "[('ab', [{'k': 'ab'}])]", "110000111" "00000000000" "111"},
    {"{{ l | tojson(indent=1) }}", "[\n \"b\",\n \"a\"\n]", "00000000000000"},
};

static void test_own(void **state)
{
    (void)state;
    for (size_t i = 0; i < PD_COUNT(owned); i++) {
        struct pd_template_output out;
        char own[64] = "";
        if (render_text(&out, owned[i].source, VARIABLES) != PERIDOT_OK)
            fail_msg("%s: %s", owned[i].source, pd_error());
        for (size_t k = 0; k < out.size; k++) own[k] = (char)('0' + out.own[k]);
        if (strcmp(out.text, owned[i].text) != 0 || strcmp(own, owned[i].own) != 0)
            fail_msg("%s\nis    %s %s\nnot   %s %s", owned[i].source, out.text, own, owned[i].text, owned[i].own);
        pd_template_output_free(&out);
    }
}

/* ---- what characters are: Python's answers ---- */

static const char *const holding[] = {
    "'\ufb01\u01c6\u0390\u1f80\u0149\u00df' | upper == 'FI\u01c4\u0399\u0308\u0301\u1f08\u0399\u02bcNSS'",
    "'\u1f82\u1fb4\u1fbc\u0345' | upper == '\u1f0a\u0399\u0386\u0399\u0391\u0399\u0399'",
    "'\ufb01X \u1f80A \u01c6a \u1fb4'.title() == 'Fix \u1f88a \u01c5a \u0386\u0345'",
    "'\u13a0\U00010400\u2c00\u0130' | lower == '\uab70\U00010428\u2c30i\u0307'",
    "'\u0391\u03a3\u0301 \u03a3 \u0391\u03a3\u2019\u0391' | lower == "
    "'\u03b1\u03c2\u0301 \u03c3 \u03b1\u03c3\u2019\u03b1'",
    "'\u01c5\u01c4a'.swapcase() == '\u01c5\u01c6A'", "'\u1f80\u2170'.islower()", "'\u2160'.isupper()",
    "not '\u01c5'.isupper()", "'\u4e2d\u0e01'.isalpha()", "not 'a\u0300'.isalpha()", "'\u0663'.isdecimal()",
    "'\u00b2\u216b'.isalnum()", "['\u00ad\u3000\u00e9 '] | string == \"['\\\\xad\\\\u3000\u00e9 ']\"",
    "'\u00e9a_1-\u0300b' | wordcount == 2",
};

static void test_characters(void **state)
{
    (void)state;
    for (size_t i = 0; i < PD_COUNT(holding); i++) {
        struct pd_template_output out;
        char source[256];
        snprintf(source, sizeof source, "{{ %s }}", holding[i]);
        if (render_text(&out, source, "{}") != PERIDOT_OK) fail_msg("%s: %s", source, pd_error());
        if (strcmp(out.text, "True") != 0) fail_msg("%s is %s", holding[i], out.text);
        pd_template_output_free(&out);
    }
}

/* ---- what fails ---- */

static const struct { const char *source, *sentence; } refused[] = {
    {"\n\n{{ a | nope }}", "line 3: there is no filter nope"}, {"{{ a is nope }}", "line 1: there is no test nope"},
    {"{% if a %}{% for b in a %}{{ b | nope }}{% endfor %}{% endif %}", "line 1: there is no filter nope"},
    {"{% if a %}{% set b | nope %}{% endset %}{% endif %}", "line 1: there is no filter nope"},
    {"{{ (1 if a) | nope }}", "line 1: there is no filter nope"},
    {"{{ nope() }}", "line 1: there is no function nope"}, {"{{ a.nope() }}", "line 1: there is no method nope"},
    {"{% nope %}", "line 1: there is no tag nope"}, {"{% include 'x' %}", "line 1: there is no tag include"},
    {"{% call a %}{% endcall %}", "line 1: a call is expected behind {% call %}"},
    {"{% call f() %}{% endcall %}", "line 1: there is no function f"},
    {"{% call range(1) %}\n", "line 1: the template ends before endcall"},
    {"{% autoescape true %}{% endautoescape %}", "line 1: autoescape that is not false is not supported"},
    {"{% if a %}\n", "line 1: the template ends before endif"}, {"{{ a",
    "line 1: the end of the template where }} is expected"},
    {"{# a", "line 1: a comment has no end"}, {"{% raw %}", "line 1: {% raw %} has no {% endraw %}"}, {"{{ 'a }}",
    "line 1: a string has no end"},
    {"{{ a ! }}", "line 1: unexpected character !"}, {"{{ (a] }}", "line 1: a closing bracket without its opening one"},
    {"{% set 1 = a %}", "line 1: an integer where the name of a variable is expected"}, {"{% set none = a %}",
    "line 1: a constant cannot be set"},
    {"{% break %}", "line 1: break or continue outside of a loop"}, {"{{ f(*a) }}",
    "line 1: arguments by * and ** are not supported"},
    {"{{ a | trim(b=1) }}", "line 1: filter trim takes no argument b"}, {"{{ a | replace('b') }}",
    "line 1: filter replace lacks an argument"},
    {"{{ a | upper(1) }}", "line 1: filter upper has too many arguments"}, {"{{ 99999999999999999999 }}",
    "line 1: an integer that does not fit 64 bits"},
    {"{% for a in b %}{% set loop = 1 %}{% endfor %}", "line 1: the variable loop cannot be set in a loop"},
    {"{{ '\\ud800' }}", "line 1: an escape sequence of no character"}, {"{{ '\\x4' }}",
    "line 1: an escape sequence with too few digits"},
    {"{{ f(a=1, a=2) }}", "line 1: two arguments are called a"}, {"{% macro m(a=1, b) %}{% endmacro %}",
    "line 1: a parameter without a default after one with a default"},
};

static const struct { const char *source, *sentence; } failing[] = {
    {"{{ raise_exception('No ' ~ s) }}", "No ab<"}, {"{{ raise_exception('') }}",
    "the chat template refuses the conversation"},
    {"\n{{ x.y }}", "line 2: x is undefined"}, {"{{ x + 1 }}", "line 1: x is undefined"},
    {"{{ l.append(1) }}", "line 1: the template may not use append"}, {"{{ s.__class__.mro }}",
    "line 1: the template may not use __class__"},
    {"{{ 1 // 0 }}", "line 1: a division by zero"}, {"{{ 's' + 1 }}", "line 1: no + between str and int"},
    {"{{ 1 < 's' }}", "line 1: no order between int and str"},
    {"{{ 9223372036854775807 + n }}", "line 1: an integer that does not fit 64 bits"}, {"{{ 2 ** 64 }}",
    "line 1: an integer that does not fit 64 bits"},
    {"{{ -9223372036854775807 - n }}", "line 1: an integer that does not fit 64 bits"},
    {"{{ 3037000500 * 3037000500 }}", "line 1: an integer that does not fit 64 bits"},
    {"{{ l | map('upper') }}", "line 1: writing a value of type generator is not supported"}, {"{{ x | tojson }}",
    "line 1: a value of type Undefined has no form in JSON"},
    {"{% for a in n %}{% endfor %}", "line 1: a value of type int cannot be iterated"},
    {"{% for a, b in l %}{% endfor %}", "line 1: as many values as variables are expected"},
    {"{% set ns = namespace() %}{% set ns._a = 1 %}", "line 1: a namespace's member begins with an underscore"},
    {"{% set s.a = 1 %}", "line 1: s is no namespace"},
    {"{{ l | map('nope') | list }}", "line 1: there is no filter or test nope"},
    {"{% if l %}\n{{ l | nope(1) }}{% endif %}", "line 2: there is no filter nope"},
    {"{{ 1 if l is nope() }}", "line 1: there is no test nope"},
    {"{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "line 1: a macro is called with arguments that it does not take"},
    {"{% macro m() %}{% endmacro %}{% call m() %}{% endcall %}",
     "line 1: a macro is called with arguments that it does not take"},
    {"{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}", "line 1: caller is undefined"},
    {"{% for a in l %}{{ loop(l) }}{% endfor %}", "line 1: a loop that is not recursive is called"},
    {"{{ l is test }}", "line 1: a list is no name"}, {"{{ m is filter }}", "line 1: a dict is no name"},
    {"{{ range(a=2) }}", "line 1: the call of range takes no argument a"},
    {"{{ lipsum() }}", "line 1: random texts are not supported"},
    {"{{ s | wordwrap(0) }}", "line 1: lines of no width"},
    {"{{ ('x' * 90) | pprint }}", "line 1: pprint of a long text is not supported"},
    {"{{ '&eacute;' | striptags }}", "line 1: an entity in striptags is not supported"},
    {"{{ n() }}{% set n = 1 %}", "line 1: a value of type int cannot be called"}, {"{{ range(100001) }}",
    "line 1: a range of more than 100000 integers"},
};

static void test_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < PD_COUNT(refused); i++) {
        struct pd_template *t;
        if (pd_template_parse(&t, refused[i].source, strlen(refused[i].source)) != PERIDOT_ERROR_FORMAT)
            fail_msg("%s: is parsed", refused[i].source);
        assert_null(t);
        assert_string_equal(pd_error(), refused[i].sentence);
    }
    for (size_t i = 0; i < PD_COUNT(failing); i++) {
        struct pd_template_output out;
        peridot_status status = render_text(&out, failing[i].source, VARIABLES);
        const bool raised = strstr(failing[i].source, "raise_exception") != NULL;
        if (status != (raised ? PERIDOT_ERROR_ARGUMENT : PERIDOT_ERROR_FORMAT))
            fail_msg("%s: status %d, %s", failing[i].source, (int)status, pd_error());
        assert_string_equal(pd_error(), failing[i].sentence);
        pd_template_output_free(&out);
    }
}

/* ---- bombs ---- */

static const char *const bombs[] = {
    "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
    "{% set ns = namespace(a='x') %}{% for i in range(100) %}{% set ns.a = ns.a ~ ns.a %}{% endfor %}",
    "{% set ns = namespace(a=[1]) %}{% for i in range(100) %}{% set ns.a = ns.a + ns.a %}{% endfor %}",
    "{{ 'x' * 10 ** 9 }}", "{{ [1] * 10 ** 9 }}", "{{ '' * 10 ** 18 }}{{ 'x' * 10 ** 18 }}", "{{ range(10 ** 9) }}",
    "{{ '%999999999d' % 1 }}",
    "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
    "{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{{ m() }}",
    "{{ 'x' | center(10 ** 8) }}", "{{ ('a-' * 1000000) | wordwrap(3) }}", "{{ ('a' * 3000000) | wordwrap(1) }}",
    "{{ ('<!-- -->' * 100000) | striptags }}", "{{ [1] | slice(10 ** 9) }}",
    "{% set ns = namespace(a=[]) %}{% for i in range(40) %}{% set ns.a = [ns.a, ns.a] %}"
    "{% endfor %}{{ ns.a | pprint }}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "{% macro m(n) %}{{ m(n) ~ m(n) }}{% endmacro %}{{ m(1) }}",
    "{% set x = 'a' * 1000000 %}{% for i in range(1000) %}{{ x | replace('a', 'bb') }}{% endfor %}",
    "{% set x = 'a' * 1000000 %}{{ (x ~ 'b') in (x ~ x ~ 'c') }}{{ x.count('a' * 500000 ~ 'b') }}",
    "{% set x = 'a' * 1000000 %}{{ x | trim('b' * 100000 ~ 'a') }}",
    "{% set x = 'a ' * 1000000 %}{{ x.split() | length }}{{ x.title() }}",
    "{% set x = range(100000) | list %}{% for i in x %}{{ x == x }}{% endfor %}",
    "{% set x = range(100000) | list %}{{ x | map('string') | sort | unique | list | tojson(indent=100000) }}",
    "{% set x = 'a' * 100000 %}{% for i in range(100000) %}{{ x[99999] }}{% endfor %}",
    "{% set x = '\\u00e9' * 1000000 %}{% for i in range(100000) %}{{ x[999999] }}{% endfor %}",
    "{% set x = [x] %}{% set ns = namespace(a=[]) %}{% for i in range(100000) %}"
    "{% set ns.a = [ns.a, ns.a] %}{% endfor %}{{ ns.a == ns.a }}",
    "{% set ns = namespace(a=[]) %}{% for i in range(40) %}{% set ns.a = [ns.a, ns.a] %}"
    "{% endfor %}{{ ns.a | tojson }}",
    "{% set ns = namespace(a=messages) %}{% for i in range(100000) %}"
    "{% set ns.a = ns.a | map('upper') %}{% endfor %}{{ ns.a | list }}",
    "{% for a in range(100000) %}{{ '\\u00e9' * 10000 }}{% endfor %}", "{{ ('\\u00e9\\u200d' * 1000000) | list }}",
    "{% set x = '\\u00a0a' * 100000 %}{% for i in range(100000) %}{{ x | wordcount }}{% endfor %}",
    "{% set x = 'A' * 1000000 %}{% for a in range(1000) %}{% set y = x | lower %}{% endfor %}",
    "{{ ('a\\n' * 1000000) | indent(1000000) }}", "{{ 'x' | format(1) }}{{ '%s' * 1000000 % 1 }}",
};

static void end_soon(const char *source, size_t size, const char *json)
{
    struct pd_template_output out;
    yyjson_doc *doc = yyjson_read(json, strlen(json), 0);
    clock_t begin = clock();
    peridot_status status = render(&out, source, size, yyjson_doc_get_root(doc));
    double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    print_message("%.3f s: %.60s: %s\n", seconds, source, status == PERIDOT_OK ? "done" : pd_error());
    assert_true(status == PERIDOT_ERROR_FORMAT);
    assert_true(seconds < 5);   /* 0.1 without sanitizers */
    pd_template_output_free(&out);
    yyjson_doc_free(doc);
}

/* A text of `n` times the same between others. */
static char *repeat(size_t *size, const char *begin, const char *part, size_t n, const char *end)
{
    const size_t n_begin = strlen(begin), n_part = strlen(part), n_end = strlen(end);
    *size = n_begin + n * n_part + n_end;
    char *text = malloc(*size + 1), *at = text;
    assert_non_null(text);
    memcpy(at, begin, n_begin);
    at += n_begin;
    for (size_t i = 0; i < n; i++, at += n_part) memcpy(at, part, n_part);
    memcpy(at, end, n_end + 1);
    return text;
}

static const struct { const char *begin, *part, *end; } deep[] = {
    {"{{ ", "(", "}}"}, {"{{ ", "[", "}}"}, {"{{ ", "- ", "1 }}"}, {"{{ ", "not ", "1 }}"}, {"{{ a", "|trim", "}}"},
    {"{{ a", ".b", "}}"}, {"{{ a", "[0]", "}}"},
    {"{{ a", " + a", "}}"}, {"{{ a", " if a else a", "}}"}, {"{{ a", "()", "}}"}, {"", "{% if a %}", ""}, {"",
    "{% for a in b %}", ""}, {"{{ a", " is defined", "}}"},
    {"{% set ", "(", "a"}, {"{{ ", "{1:", "}}"}, {"{{ a", " and a or a", "}}"}, {"{{ a.b(", "a=a.b(", "}}"}, {"",
    "{% set x %}", ""}, {"", "{% macro m() %}", ""},
};

static void test_bombs(void **state)
{
    size_t size;
    (void)state;
    for (size_t i = 0; i < PD_COUNT(bombs); i++) end_soon(bombs[i], strlen(bombs[i]), "{\"messages\": [\"a\"]}");
    for (size_t i = 0; i < PD_COUNT(deep); i++) {
        char *source = repeat(&size, deep[i].begin, deep[i].part, 20000, deep[i].end);
        end_soon(source, size, "{}");
        free(source);
    }
    char *source = repeat(&size, "", "{{ a }}", 200000, "");   /* too long for a program */
    end_soon(source, size, "{}");
    free(source);
    char *json = repeat(&size, "{\"a\": ", "[", 5000, ""), *all = repeat(&size, json, "]", 5000, "}");
    end_soon("{{ a }}", 7, all);
    free(json);
    free(all);
    source = repeat(&size, "{{ ''",
    " ~ 'aaaaaaaaaaaaaaaaaaaaaaaa'", 30000, " }}");   /* as long a chain as one may write */
    struct pd_template_output out;
    assert_int_equal(render(&out, source, size, NULL), PERIDOT_OK);
    assert_int_equal(out.size, 30000 * 24);
    pd_template_output_free(&out);
    free(source);
}

/* ---- the rest ---- */

static void test_reads(void **state)
{
    static const char source[] = "{% set a = b %}{% for c in d %}{{ c.e }}{{ f }}{% endfor %}"
                                 "{% macro g(h) %}{{ i }}{% endmacro %}{% if j %}{% set k = 1 %}{% endif %}{{ k }}";
    struct pd_template *t;
    (void)state;
    assert_int_equal(pd_template_parse(&t, source, sizeof source - 1), PERIDOT_OK);
    for (const char *c = "bdfijk"; *c; c++) assert_true(pd_template_reads(t, (char[]){*c, 0}));
    for (const char *c = "acegh"; *c; c++) assert_false(pd_template_reads(t, (char[]){*c, 0}));
    pd_template_free(t);
    pd_template_free(NULL);
}

/* Every start of a program is parsed or refused; nothing past its end is read (with the sanitizers). */
static void test_truncated(void **state)
{
    static const char source[] =
        "{%- set x = {'a': [1.5e3, 0x1f, \"\\u00e9\\n\"], 'b': (1,)} -%}{# c #}{% raw %} r {% endraw %}"
        "{% macro m(a, b=1) %}{{ a|d(b) }}{% endmacro %}"
        "{% for k, v in x|dictsort if v is not none %}{{ m(k, b=v[::-1]) ~ loop.index }}"
        "{% else %}-{% endfor %}{{ 1 if x else 2 }}";
    (void)state;
    for (size_t n = 0; n <= sizeof source - 1; n++) {
        struct pd_template_output out;
        char *copy = malloc(n + !n);
        assert_non_null(copy);
        memcpy(copy, source, n);
        peridot_status status = render(&out, copy, n, NULL);
        assert_true(status == PERIDOT_OK || status == PERIDOT_ERROR_FORMAT);
        pd_template_output_free(&out);
        free(copy);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden), cmocka_unit_test(test_own), cmocka_unit_test(test_characters),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_bombs), cmocka_unit_test(test_reads), cmocka_unit_test(test_truncated),
    };
    if (argc > 1 && strcmp(argv[1], "-") == 0) return render_lines();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

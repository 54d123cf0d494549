/* Chat templates as jinja2 renders them: golden cases (tools/golden/template.py), what is whose, limits, refusals. With
 * the argument "-": a line of JSON {"template", "variables", "words"} after another from standard input is rendered, for
 * comparing with jinja2 at random. */
#include "text/template/template.h"

#include "peridot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- rendering lines ---- */

static const struct tm now = {.tm_year = 126, .tm_mon = 6, .tm_mday = 4, .tm_hour = 9, .tm_min = 5, .tm_sec = 7,
                              .tm_wday = 6, .tm_yday = 184};

static void write_result(const char *key, const char *text, size_t size)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *object = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, object);
    yyjson_mut_obj_add_strn(doc, object, key, text, size);
    char *line = yyjson_mut_write(doc, 0, NULL);
    puts(line ? line : "{\"failed\": \"writing\"}");
    free(line);
    yyjson_mut_doc_free(doc);
}

static void render_line(yyjson_val *request)
{
    const struct pd_template_word words[] = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
    yyjson_val *source = yyjson_obj_get(request, "template");
    struct pd_template *t;
    struct pd_template_output out = {0};
    const struct pd_template_input in = {yyjson_obj_get(request, "variables"), words, 2, now};
    peridot_status status = pd_template_parse(&t, yyjson_get_str(source), yyjson_get_len(source));
    const char *failed = status == PERIDOT_OK ? "error" : "refused";
    if (status == PERIDOT_OK) status = pd_template_render(&out, t, &in);
    if (status == PERIDOT_OK) write_result("text", out.text, out.size);
    else write_result(failed, peridot_last_error(), strlen(peridot_last_error()));
    pd_template_output_free(&out);
    pd_template_free(t);
}

static int render_lines(void)
{
    static char line[1 << 22];
    while (fgets(line, sizeof line, stdin)) {
        yyjson_doc *doc = yyjson_read(line, strlen(line), 0);
        render_line(yyjson_doc_get_root(doc));
        yyjson_doc_free(doc);
        fflush(stdout);
    }
    return 0;
}

static void test_hello(void **state)
{
    struct pd_template *t;
    struct pd_template_output out;
    const struct pd_template_input in = {0};
    (void)state;
    assert_int_equal(pd_template_parse(&t, "{{ 'a' ~ 1 }}", 13), PERIDOT_OK);
    assert_int_equal(pd_template_render(&out, t, &in), PERIDOT_OK);
    assert_string_equal(out.text, "a1");
    pd_template_output_free(&out);
    pd_template_free(t);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_hello)};
    if (argc > 1 && strcmp(argv[1], "-") == 0) return render_lines();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

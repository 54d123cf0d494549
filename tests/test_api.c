/* The parts of the public headers that need neither a model nor a device: versions, statuses, sentences, structs that
 * grow, files of results. */
#define _POSIX_C_SOURCE 200809L
#include "api/api.h"
#include "base/base.h"
#include "folder_fixture.h"
#include "peridot_tools.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* ---- files of results ---- */

/* What a file of the folder holds; "" where there is none. */
static const char *contents(const char *name)
{
    static char text[64];
    FILE *file = fopen(in_folder(name), "rb");
    text[file ? fread(text, 1, sizeof text - 1, file) : 0] = 0;
    if (file) fclose(file);
    return text;
}

static void put(const char *name, const char *text)
{
    FILE *file = fopen(in_folder(name), "wb");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static struct pd_writer *begin_output(const char *name)
{
    static struct pd_writer output;
    assert_int_equal(pd_writer_open(&output, in_folder(name)), PERIDOT_OK);
    assert_int_equal(pd_writer_write(&output, "new ", 4), PERIDOT_OK);
    assert_int_equal(pd_writer_write(&output, "text", 4), PERIDOT_OK);
    return &output;
}

/* A file is there when it is complete, and not before; what it replaces stays until then. */
static void test_output(void **state)
{
    (void)state;
    struct pd_writer *output = begin_output("a");
    assert_string_equal(contents("a"), "");
    assert_int_equal(pd_writer_commit(output), PERIDOT_OK);
    assert_string_equal(contents("a"), "new text");
    put("b", "old");
    assert_int_equal(chmod(in_folder("b"), 0640), 0);
    output = begin_output("b");
    assert_string_equal(contents("b"), "old");
    assert_int_equal(pd_writer_commit(output), PERIDOT_OK);
    assert_string_equal(contents("b"), "new text");
    struct stat st;
    assert_true(stat(in_folder("b"), &st) == 0 && (st.st_mode & 0777) == 0640);
}

/* Nothing is left of a file that is given up: the folder can be removed. */
static void test_output_abort(void **state)
{
    (void)state;
    assert_int_equal(mkdir(in_folder("sub"), 0700), 0);
    pd_writer_abort(begin_output("sub/c"));
    assert_int_equal(rmdir(in_folder("sub")), 0);
    put("d", "old");
    pd_writer_abort(begin_output("d"));
    assert_string_equal(contents("d"), "old");
    struct pd_writer output;
    assert_int_equal(pd_writer_open(&output, in_folder("sub/c")), PERIDOT_ERROR_IO);
    assert_non_null(strstr(peridot_last_error(), "sub/c"));
}

/* What is read is not replaced, under whatever name. */
static void test_output_check(void **state)
{
    (void)state;
    put("source", "x");
    assert_int_equal(symlink("source", in_folder("link")), 0);
    assert_int_equal(link(in_folder("source"), in_folder("hard")), 0);
    static const char *const same[] = {"source", "link", "hard"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        assert_int_equal(pd_writer_check(in_folder(same[i]), in_folder("source")), PERIDOT_ERROR_IO);
    put("other", "x");
    assert_int_equal(pd_writer_check(in_folder("other"), in_folder("source")), PERIDOT_OK);
    assert_int_equal(pd_writer_check(in_folder("none"), in_folder("source")), PERIDOT_OK);
    assert_int_equal(mkdir(in_folder("model"), 0700), 0);
    put("model/config.json", "{}");
    put("model/x.gguf", "");
    assert_int_equal(pd_writer_check(in_folder("model/config.json"), in_folder("model")), PERIDOT_ERROR_IO);
    assert_int_equal(pd_writer_check(in_folder("model/x.gguf"), in_folder("model")), PERIDOT_OK);
}

/* Fails when something was left beside them. */
static int remove_folder(void **state)
{
    static const char *const names[] = {"a", "b", "d", "source", "link", "hard", "other", "model/config.json",
        "model/x.gguf", "model"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) remove(in_folder(names[i]));
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version), cmocka_unit_test(test_status_names), cmocka_unit_test(test_sentence),
        cmocka_unit_test(test_utf8), cmocka_unit_test(test_older_program), cmocka_unit_test(test_newer_program),
        cmocka_unit_test(test_results), cmocka_unit_test(test_output), cmocka_unit_test(test_output_abort),
        cmocka_unit_test(test_output_check),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

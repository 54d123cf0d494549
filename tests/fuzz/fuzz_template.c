/* A chat template as a Jinja program, then its variables as JSON. Whatever is rendered twice is the same; no byte that
 * is the program's own came from the variables: where all of the variables' texts have a letter that the program does
 * not have, none of its occurrences is own. */
#include "harness.h"

#include "text/template/template.h"

#include <stdlib.h>
#include <string.h>

enum { FOREIGN = 1 };   /* a byte that JSON has only escaped, so that a text is the only place for it */

static bool is_free_of(const uint8_t *data, size_t size, uint8_t byte)
{
    return size == 0 || !memchr(data, byte, size);
}

/* The program can write such a byte, too: by an escape sequence, or as the time. */
static void check_own(const struct pd_template_output *out, const struct fuzz_part *source)
{
    if (!is_free_of(source->data, source->size, FOREIGN) || !is_free_of(source->data, source->size, '\\')) return;
    for (size_t i = 0; i < out->size; i++) FUZZ_CHECK(out->text[i] != FOREIGN || !out->own[i]);
}

static void check_marks(const struct pd_template_output *out)
{
    FUZZ_CHECK(out->text[out->size] == 0);
    for (size_t i = 0; i < out->size; i++) FUZZ_CHECK(out->own[i] <= 1);
}

static void render(const struct pd_template *t, const struct fuzz_part *source, yyjson_val *variables)
{
    static const struct pd_template_word words[] = {{"bos_token", "<bos>"}, {"eos_token", "<eos>"}};
    struct pd_template_output out, again;
    const struct pd_template_input in = {variables, words, 2, {.tm_year = 126, .tm_mday = 1}};
    bool good = fuzz_ok(pd_template_render(&out, t, &in));
    FUZZ_CHECK(fuzz_ok(pd_template_render(&again, t, &in)) == good);
    if (good) {
        check_marks(&out);
        check_own(&out, source);
        FUZZ_CHECK(again.size == out.size && memcmp(again.text, out.text, out.size) == 0);
    }
    pd_template_output_free(&out);
    pd_template_output_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_part input = {data, size}, source, json = {(const uint8_t *)"{}", 2};
    struct pd_template *t;
    if (!fuzz_next_part(&source, &input)) return 0;
    fuzz_next_part(&json, &input);
    if (!fuzz_ok(pd_template_parse(&t, (const char *)source.data, source.size))) return 0;
    yyjson_doc *doc = yyjson_read((const char *)json.data, json.size, 0);
    (void)pd_template_reads(t, "messages");
    render(t, &source, doc ? yyjson_doc_get_root(doc) : NULL);
    yyjson_doc_free(doc);
    pd_template_free(t);
    return 0;
}

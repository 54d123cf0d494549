/* Families' steps from text to ids, against what Hugging Face's tokenizers makes of texts with small vocabularies
 * (tools/golden/splits.py made tests/golden/splits), as tokenizer.json files and, of those with merges of bytes and
 * Phi 3, as GGUF files by the names that stand for the steps there. */
#include "text_shared.h"

static const char *member(yyjson_val *family, const char *key) { return yyjson_get_str(yyjson_obj_get(family, key)); }

/* The family's parts, and the vocabulary that it shares with others. */
static peridot_vocab *open_json(yyjson_val *family, yyjson_val *vocabularies)
{
    size_t size;
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_val_mut_copy(doc, yyjson_obj_get(family, "parts"));
    yyjson_mut_val *model = yyjson_val_mut_copy(doc, yyjson_obj_get(vocabularies, member(family, "model")));
    bool whole_words = yyjson_is_true(yyjson_obj_get(family, "whole_words"));
    yyjson_mut_obj_put(model, yyjson_mut_str(doc, "ignore_merges"), yyjson_mut_bool(doc, whole_words));
    yyjson_mut_obj_add_val(doc, root, "model", model);
    char *text = yyjson_mut_val_write(root, 0, &size);
    assert_non_null(text);
    write_file(in_folder("tiny.json"), text, size);
    free(text);
    yyjson_mut_doc_free(doc);
    return open_vocab(in_folder("tiny.json"));
}

/* As the tokenizer's own converter writes it. */
static peridot_vocab *open_converted(const struct pd_tokenizer *t, const char *architecture)
{
    struct pd_gguf_writer *w;
    assert_int_equal(pd_gguf_writer_open(&w, in_folder("tiny.gguf")), PERIDOT_OK);
    pd_gguf_writer_add_string(w, "general.architecture", architecture);
    assert_int_equal(pd_tokenizer_add_gguf(w, t, t->pieces.n), PERIDOT_OK);
    assert_int_equal(pd_gguf_writer_begin(w), PERIDOT_OK);
    assert_int_equal(pd_gguf_writer_commit(w), PERIDOT_OK);
    return open_vocab(in_folder("tiny.gguf"));
}

static size_t count_ids(const peridot_vocab *v, const char *text, unsigned flags)
{
    int32_t *ids;
    size_t n;
    assert_int_equal(peridot_encode(&ids, &n, v, text, strlen(text), flags), PERIDOT_OK);
    peridot_free(ids);
    return n;
}

static void check_texts(const peridot_vocab *v, yyjson_val *family, yyjson_val *texts)
{
    yyjson_val *text, *golden = yyjson_obj_get(family, "ids");
    size_t i, n_texts;
    yyjson_arr_foreach(texts, i, n_texts, text) {
        int32_t *ids;
        size_t n, size = yyjson_get_len(text);
        assert_int_equal(peridot_encode(&ids, &n, v, yyjson_get_str(text), size, PERIDOT_ENCODE_SPECIAL), PERIDOT_OK);
        expect_ids(ids, n, yyjson_arr_get(golden, i));
        peridot_free(ids);
    }
    assert_true(n_texts > 120);
}

/* A text begins with bos where the family's post-processor says so; GGUF's names say it, too. */
static void check(peridot_vocab *v, yyjson_val *family, yyjson_val *texts)
{
    bool bos = yyjson_is_true(yyjson_obj_get(family, "bos"));
    check_texts(v, family, texts);
    assert_int_equal(count_ids(v, "a", PERIDOT_ENCODE_BOS), count_ids(v, "a", 0) + bos);
    peridot_vocab_close(v);
}

static void check_family(yyjson_val *family, yyjson_val *vocabularies, yyjson_val *texts)
{
    yyjson_val *pre, *names = yyjson_obj_get(family, "pre");
    const char *architecture = member(family, "architecture");
    size_t i, n;
    peridot_vocab *v = open_json(family, vocabularies);
    bool converts = yyjson_arr_size(names) || strcmp(architecture, "phi3") == 0;   /* others' prefixes get lost */
    if (converts) check(open_converted(v->tokenizer, architecture), family, texts);
    yyjson_arr_foreach(names, i, n, pre) {
        if (strcmp(architecture, "llama") != 0) break;   /* whose name says more than that of the steps */
        write_byte_level_gguf(in_folder("tiny.gguf"), &v->tokenizer->pieces, yyjson_get_str(pre));
        check(open_vocab(in_folder("tiny.gguf")), family, texts);
    }
    check(v, family, texts);
}

static void test_families(void **state)
{
    (void)state;
    yyjson_doc *families = open_golden("splits/families.json"), *texts = open_golden("splits/texts.json");
    yyjson_doc *vocabularies = open_golden("splits/vocabularies.json");
    yyjson_val *family;
    size_t i, n;
    yyjson_arr_foreach(yyjson_doc_get_root(families), i, n, family) {
        const char *name = member(family, "name");
        print_message("%s\n", name ? name : "");
        check_family(family, yyjson_doc_get_root(vocabularies), yyjson_doc_get_root(texts));
    }
    assert_true(n >= 12);
    yyjson_doc_free(families);
    yyjson_doc_free(texts);
    yyjson_doc_free(vocabularies);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_families)};
    return cmocka_run_group_tests_name("splits", tests, make_folder, remove_folder);
}

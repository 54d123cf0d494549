/* Conversations against ids that transformers' apply_chat_template gives (tools/golden/chat.py made tests/golden/chat.json),
 * with the real tokenizers, and whether a template program in a model's files is recognised. */
#include "text_shared.h"

static yyjson_doc *open_golden(void)
{
    yyjson_read_err e;
    yyjson_doc *doc = yyjson_read_file(PERIDOT_GOLDEN "/chat.json", 0, NULL, &e);
    if (!doc) fail_msg("chat.json: %s at byte %zu", e.msg, e.pos);
    return doc;
}

static const char *string_of(yyjson_val *object, const char *key)
{
    const char *s = yyjson_get_str(yyjson_obj_get(object, key));
    assert_non_null(s);
    return s;
}

static size_t read_messages(peridot_message messages[8], yyjson_val *list)
{
    yyjson_val *pair;
    size_t i, n;
    assert_true(yyjson_arr_size(list) <= 8);
    yyjson_arr_foreach(list, i, n, pair)
        messages[i] = (peridot_message){yyjson_get_str(yyjson_arr_get(pair, 0)), yyjson_get_str(yyjson_arr_get(pair, 1))};
    return n;
}

static char *golden_list(yyjson_val *ids)
{
    struct pd_ids want = {0};
    yyjson_val *id;
    size_t i, n;
    yyjson_arr_foreach(ids, i, n, id) pd_ids_append(&want, &(int32_t){yyjson_get_int(id)}, 1);
    char *made = list(want.data, want.n);
    free(want.data);
    return made;
}

/* `name` NULL: the model's own template. */
static void check_conversation(const peridot_vocab *v, yyjson_val *conversation, const char *name)
{
    peridot_message messages[8];
    int32_t *ids;
    size_t n_ids, n = read_messages(messages, yyjson_obj_get(conversation, "messages"));
    if (peridot_encode_messages(&ids, &n_ids, v, messages, n, name) != PERIDOT_OK) fail_msg("%s", peridot_last_error());
    char *made = list(ids, n_ids), *want = golden_list(yyjson_obj_get(conversation, "ids"));
    assert_string_equal(made, want);
    free(made);
    free(want);
    peridot_free(ids);
}

/* A directory of a tokenizer's file and a configuration with the template program. */
static peridot_vocab *open_with_template(yyjson_val *row, const char *path, const char *name)
{
    char *escaped = yyjson_val_write(yyjson_obj_get(row, "jinja"), 0, NULL), *target = realpath(path, NULL);
    FILE *f;
    assert_int_equal(pd_make_directory(in_folder("model")), PERIDOT_OK);
    remove(in_folder(name));
    assert_int_equal(symlink(target, in_folder(name)), 0);
    f = fopen(in_folder("model/tokenizer_config.json"), "wb");
    fprintf(f, "{\"chat_template\": %s}", escaped);
    fclose(f);
    free(escaped);
    free(target);
    peridot_vocab *v = open_vocab(in_folder("model"));
    remove(in_folder(name));
    remove(in_folder("model/tokenizer_config.json"));
    remove(in_folder("model"));
    return v;
}

static void check_rows(const char *model, const char *file, const char *name)
{
    char path[512];
    yyjson_val *row, *conversation;
    size_t i, n, k, n_conversations, n_rows = 0;
    skip_without_data();
    yyjson_doc *doc = open_golden();
    yyjson_arr_foreach(yyjson_doc_get_root(doc), i, n, row) {
        if (strcmp(string_of(row, "model"), model) != 0) continue;
        peridot_vocab *v = open_with_template(row, shared_path(path, "tokenizers/%s", file), name);
        assert_non_null(v->tokenizer->chat);
        assert_string_equal(v->tokenizer->chat->name, string_of(row, "template"));
        yyjson_arr_foreach(yyjson_obj_get(row, "conversations"), k, n_conversations, conversation) {
            check_conversation(v, conversation, NULL);
            check_conversation(v, conversation, string_of(row, "template"));
        }
        assert_true(n_conversations >= 6);
        n_rows++;
        peridot_vocab_close(v);
    }
    assert_int_equal(n_rows, strcmp(model, "llama3") == 0 ? 2 : 1);
    yyjson_doc_free(doc);
}

static void test_gemma2(void **state) { (void)state; check_rows("gemma2", "gemma2.model", "model/tokenizer.model"); }
static void test_gemma3(void **state) { (void)state; check_rows("gemma3", "gemma3.model", "model/tokenizer.model"); }
static void test_llama2(void **state) { (void)state; check_rows("llama2", "llama2.model", "model/tokenizer.model"); }
static void test_llama3(void **state) { (void)state; check_rows("llama3", "llama3.tokenizer.json", "model/tokenizer.json"); }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemma2), cmocka_unit_test(test_gemma3), cmocka_unit_test(test_llama2),
        cmocka_unit_test(test_llama3),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

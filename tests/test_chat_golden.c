/* Conversations against ids that transformers' apply_chat_template gives (tools/golden/chat.py made
 * tests/golden/chat.json), with the real tokenizers: by the template program in a model's files, and by the row that
 * stands for it. */
#include "text_shared.h"

#include "api/api.h"

#include "base/base.h"

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
        messages[i] = (peridot_message){.role = yyjson_get_str(yyjson_arr_get(pair, 0)),
                                        .content = yyjson_get_str(yyjson_arr_get(pair, 1))};
    return n;
}

/* `name` NULL: the model's own template. */
static void check_conversation(const peridot_vocab *v, yyjson_val *conversation, const char *name)
{
    peridot_message messages[8];
    int32_t *ids;
    size_t n_ids, n = read_messages(messages, yyjson_obj_get(conversation, "messages"));
    bool thinks = yyjson_is_true(yyjson_obj_get(conversation, "think"));
    peridot_chat chat = {.template_name = name, .messages = messages, .n_messages = n,
                         .think = thinks ? PERIDOT_THINK_ON : PERIDOT_THINK_OFF};
    if (peridot_encode_turns(&ids, &n_ids, v, &chat) != PERIDOT_OK) fail_msg("%s", peridot_last_error());
    expect_ids(ids, n_ids, yyjson_obj_get(conversation, "ids"));
    peridot_free(ids);
}

/* The ids of the first n messages, of which the last is the user's, must be those of the turns before the reply, the
 * reply's own, and those that the last turn adds; they are told apart by what they decode to. Messages [n - 2] is the
 * reply. */
static void check_next_turn(const peridot_vocab *v, const peridot_message *messages, size_t n, const char *name)
{
    int32_t *all, *prompt, *added, *again;
    size_t n_all, n_prompt, n_added, n_again, size, length = strlen(messages[n - 2].content);
    const char *reply = messages[n - 2].content;
    char *text;
    peridot_chat chat = {.template_name = name, .messages = &messages[n - 1], .n_messages = 1};
    assert_int_equal(peridot_encode_messages(&all, &n_all, v, messages, n, name), PERIDOT_OK);
    assert_int_equal(peridot_encode_messages(&prompt, &n_prompt, v, messages, n - 2, name), PERIDOT_OK);
    n_prompt = peridot_drop_thoughts(v, prompt, n_prompt);   /* an empty one is not repeated */
    assert_true(n_prompt < n_all && memcmp(all, prompt, n_prompt * sizeof *all) == 0);
    chat.ids = all, chat.n_ids = n_prompt + 1;   /* any id that is no stop stands for the reply */
    if (peridot_encode_turns(&added, &n_added, v, &chat) != PERIDOT_OK) fail_msg("%s", peridot_last_error());
    assert_true(n_prompt + n_added < n_all);
    chat.n_ids = n_all - n_added;
    assert_memory_equal(all + chat.n_ids, added, n_added * sizeof *all);
    assert_int_equal(peridot_decode(&text, &size, v, all + n_prompt, chat.n_ids - n_prompt), PERIDOT_OK);
    pd_utf8_trim(&reply, &length);
    assert_true(size >= length && size <= length + 1 && memcmp(text + size - length, reply, length) == 0);
    assert_int_equal(peridot_encode_turns(&again, &n_again, v, &chat), PERIDOT_OK);
    assert_int_equal(n_again, n_added);
    assert_memory_equal(again, added, n_added * sizeof *added);
    peridot_free(again);
    bool stop_comes_first = pd_tokenizer_is_stop(v->tokenizer, added[0]);
    chat.n_ids += stop_comes_first;
    assert_int_equal(peridot_encode_turns(&again, &n_again, v, &chat), PERIDOT_OK);
    assert_memory_equal(again, added + stop_comes_first, (n_added - stop_comes_first) * sizeof *added);
    peridot_free(again);
    peridot_free(added);
    peridot_free(prompt);
    peridot_free(all);
    peridot_free(text);
}

static uint32_t check_next_turns(const peridot_vocab *v, yyjson_val *conversation, const char *name)
{
    peridot_message messages[8];
    uint32_t n_checked = 0;
    size_t n = read_messages(messages, yyjson_obj_get(conversation, "messages"));
    for (size_t i = 3; i <= n; i++) {
        if (strcmp(messages[i - 1].role, "user") != 0 || strcmp(messages[i - 2].role, "assistant") != 0) continue;
        check_next_turn(v, messages, i, name);
        n_checked++;
    }
    return n_checked;
}

/* A directory of a tokenizer's file and a configuration with the template program and `more`. */
static peridot_vocab *open_with_config(yyjson_val *row, const char *path, const char *name, const char *more)
{
    char *escaped = yyjson_val_write(yyjson_obj_get(row, "jinja"), 0, NULL), *target = realpath(path, NULL);
    FILE *f;
    assert_int_equal(pd_make_directory(in_folder("model")), PERIDOT_OK);
    remove(in_folder(name));
    assert_int_equal(symlink(target, in_folder(name)), 0);
    f = fopen(in_folder("model/tokenizer_config.json"), "wb");
    fprintf(f, "{%s\"chat_template\": %s}", more, escaped);
    fclose(f);
    free(escaped);
    free(target);
    peridot_vocab *v = open_vocab(in_folder("model"));
    remove(in_folder(name));
    remove(in_folder("model/tokenizer_config.json"));
    remove(in_folder("model"));
    return v;
}

static peridot_vocab *open_with_template(yyjson_val *row, const char *path, const char *name)
{
    return open_with_config(row, path, name, "");
}

/* Of Gemma 4 there is only what Gemma 3's pieces make of it. */
static peridot_vocab *open_gemma4(yyjson_val *row)
{
    char path[512];
    peridot_vocab *model = open_vocab(shared_path(path, "tokenizers/%s.model", "gemma3"));
    write_gemma4_gguf(in_folder("tiny.gguf"), &model->tokenizer->pieces, "gemma4", NULL, string_of(row, "jinja"));
    peridot_vocab_close(model);
    return open_vocab(in_folder("tiny.gguf"));
}

static void check_rows(const char *model, const char *file, const char *name)
{
    char path[512];
    yyjson_val *row, *conversation;
    size_t i, n, k, n_conversations, n_rows = 0;
    uint32_t n_turns = 0;
    skip_without_data();
    yyjson_doc *doc = open_golden("chat.json");
    yyjson_arr_foreach(yyjson_doc_get_root(doc), i, n, row) {
        if (strcmp(string_of(row, "model"), model) != 0) continue;
        peridot_vocab *v = file ? open_with_template(row, shared_path(path, "tokenizers/%s", file), name)
                                : open_gemma4(row);
        assert_non_null(v->tokenizer->chat);
        assert_string_equal(v->tokenizer->chat->name, string_of(row, "template"));
        yyjson_arr_foreach(yyjson_obj_get(row, "conversations"), k, n_conversations, conversation) {
            check_conversation(v, conversation, NULL);
            check_conversation(v, conversation, string_of(row, "template"));
            check_conversation(v, conversation, "jinja");
            n_turns += check_next_turns(v, conversation, NULL);
            n_turns += check_next_turns(v, conversation, "jinja");
        }
        assert_true(n_conversations >= 6 && n_turns >= 4);
        n_rows++;
        peridot_vocab_close(v);
    }
    assert_int_equal(n_rows, strcmp(model, "llama3") == 0 || !file ? 2 : 1);
    yyjson_doc_free(doc);
}

/* Gemma 4's row is for user and model alone: its program writes all. */
static void test_images(void **state)
{
    (void)state;
    char path[512];
    size_t i, n, k, n_rows;
    yyjson_val *row, *conversation;
    skip_without_data();
    yyjson_doc *doc = yyjson_read_file(PERIDOT_GOLDEN "/chat-images.json", 0, NULL, NULL);
    assert_non_null(doc);
    yyjson_arr_foreach(yyjson_doc_get_root(doc), k, n_rows, row) {
        bool gemma3 = strcmp(string_of(row, "model"), "gemma3") == 0;
        peridot_vocab *v = gemma3 ? open_with_template(row, shared_path(path, "tokenizers/%s", "gemma3.model"),
                                                       "model/tokenizer.model")
                                  : open_gemma4(row);
        yyjson_arr_foreach(yyjson_obj_get(row, "conversations"), i, n, conversation) {
            check_images(v, conversation, "jinja");
            if (gemma3) check_images(v, conversation, "gemma");
            else if (i < 6) check_images(v, conversation, "gemma4");
        }
        assert_true(n >= 9);
        peridot_vocab_close(v);
    }
    assert_int_equal(n_rows, 2);
    yyjson_doc_free(doc);
}

/* Pan and scan: an image's crops have rows and a text of their own. */
static void test_crops(void **state)
{
    (void)state;
    char path[512];
    size_t i, n;
    yyjson_val *conversation;
    skip_without_data();
    yyjson_doc *doc = yyjson_read_file(PERIDOT_GOLDEN "/chat-crops.json", 0, NULL, NULL);
    assert_non_null(doc);
    yyjson_val *root = yyjson_doc_get_root(doc);
    peridot_vocab *v = open_with_template(root, shared_path(path, "tokenizers/%s", "gemma3.model"),
                                          "model/tokenizer.model");
    yyjson_arr_foreach(yyjson_obj_get(root, "conversations"), i, n, conversation) {
        check_images(v, conversation, "jinja");
        check_images(v, conversation, "gemma");
    }
    assert_true(n >= 8);
    peridot_vocab_close(v);
    yyjson_doc_free(doc);
}

/* ---- dummy prefixes ---- */

/* Texts as they are, with control tokens in them, and as a program writes them. */
static void expect_prefixes(const peridot_vocab *v, yyjson_val *golden, const char *where)
{
    yyjson_val *texts = yyjson_obj_get(golden, "texts"), *text;
    size_t i, n, n_ids;
    yyjson_arr_foreach(texts, i, n, text) {
        char number[24];
        int32_t *ids;
        yyjson_val *want = yyjson_arr_get(yyjson_obj_get(golden, where), i);
        snprintf(number, sizeof number, "%zu", i);
        const peridot_message message = {"user", number};
        assert_int_equal(peridot_encode(&ids, &n_ids, v, yyjson_get_str(text), yyjson_get_len(text),
                                        PERIDOT_ENCODE_SPECIAL), PERIDOT_OK);
        expect_ids(ids, n_ids, want);
        peridot_free(ids);
        assert_int_equal(peridot_encode_messages(&ids, &n_ids, v, &message, 1, "jinja"), PERIDOT_OK);
        expect_ids(ids, n_ids, want);
        peridot_free(ids);
    }
    assert_int_equal(n, 16);
}

/* The same as a GGUF that we write; where all stretches have a prefix, other programs' files say the same. */
static void expect_prefixes_of_gguf(const peridot_vocab *v, yyjson_val *golden, const char *where)
{
    struct pd_gguf_writer *w;
    assert_int_equal(pd_gguf_writer_open(&w, in_folder("tiny.gguf")), PERIDOT_OK);
    pd_gguf_writer_add_string(w, "general.architecture", "llama");
    assert_int_equal(pd_tokenizer_add_gguf(w, v->tokenizer, v->tokenizer->pieces.n), PERIDOT_OK);
    assert_int_equal(pd_gguf_writer_begin(w), PERIDOT_OK);
    assert_int_equal(pd_gguf_writer_commit(w), PERIDOT_OK);
    peridot_vocab *made = open_vocab(in_folder("tiny.gguf"));
    expect_prefixes(made, golden, where);
    peridot_vocab_close(made);
}

/* Llama 2's vocabulary by itself, as a GGUF, and beside or as a tokenizer.json (tools/golden/dummy_prefix.py). */
static void test_prefixes(void **state)
{
    (void)state;
    static const struct {
        const char *config, *where, *where_json;
    } cases[] = {{"", "each", "each"}, {"\"legacy\": false, ", "first", "each"},
                 {"\"legacy\": true, ", "each", "always"}, {"\"legacy\": false, ", "first", "first"},
                 {"\"add_prefix_space\": false, ", "none", NULL}};
    char path[512], json[512];
    skip_without_data();
    yyjson_doc *doc = yyjson_read_file(PERIDOT_GOLDEN "/dummy-prefix.json", 0, NULL, NULL);
    assert_non_null(doc);
    yyjson_val *golden = yyjson_doc_get_root(doc);
    shared_path(path, "tokenizers/%s.model", "llama2");
    snprintf(json, sizeof json, "%s", in_folder("tiny.json"));
    for (size_t i = 0; i < PD_COUNT(cases); i++) {
        peridot_vocab *v = open_with_config(golden, path, "model/tokenizer.model", cases[i].config);
        struct pd_pieces pieces = v->tokenizer->pieces;
        expect_prefixes(v, golden, cases[i].where);
        expect_prefixes_of_gguf(v, golden, cases[i].where);
        if (!cases[i].where_json) {
            peridot_vocab_close(v);
            continue;
        }
        pieces.prefix_each = strcmp(cases[i].where_json, "first") != 0;
        pieces.prefix_unless_space = strcmp(cases[i].where_json, "each") != 0;
        if (i != 1) write_tokenizer_json(json, &pieces);   /* that is there already */
        peridot_vocab_close(v);
        v = open_with_config(golden, json, "model/tokenizer.json", cases[i].config);
        expect_prefixes(v, golden, cases[i].where_json);
        if (i > 1) expect_prefixes_of_gguf(v, golden, cases[i].where_json);
        peridot_vocab_close(v);
        assert_int_equal(pd_make_directory(in_folder("model")), PERIDOT_OK);
        assert_int_equal(symlink(json, in_folder("model/tokenizer.json")), 0);
        v = open_with_config(golden, path, "model/tokenizer.model", cases[i].config);
        expect_prefixes(v, golden, cases[i].where_json);
        peridot_vocab_close(v);
        remove(in_folder("model/tokenizer.json"));
        remove(in_folder("model"));
    }
    yyjson_doc_free(doc);
}

static void test_gemma2(void **state) { (void)state; check_rows("gemma2", "gemma2.model", "model/tokenizer.model"); }
static void test_gemma3(void **state) { (void)state; check_rows("gemma3", "gemma3.model", "model/tokenizer.model"); }
static void test_gemma4(void **state) { (void)state; check_rows("gemma4", NULL, NULL); }
static void test_llama2(void **state) { (void)state; check_rows("llama2", "llama2.model", "model/tokenizer.model"); }
static void test_llama3(void **state)
{
    (void)state;
    check_rows("llama3", "llama3.tokenizer.json", "model/tokenizer.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemma2), cmocka_unit_test(test_gemma3), cmocka_unit_test(test_gemma4),
        cmocka_unit_test(test_llama2), cmocka_unit_test(test_llama3), cmocka_unit_test(test_images),
        cmocka_unit_test(test_crops), cmocka_unit_test(test_prefixes),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

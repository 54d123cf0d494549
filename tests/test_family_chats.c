/* Families' template programs: conversations as transformers renders them (tools/golden/chats.py made
 * tests/golden/chats.json), from folders with a small vocabulary and the family's tokens; and which format their calls
 * have. */
#include "text_shared.h"

#include "api/api.h"

static const char *member(yyjson_val *object, const char *key) { return yyjson_get_str(yyjson_obj_get(object, key)); }

static void write_json(const char *name, yyjson_mut_doc *doc, yyjson_mut_val *root)
{
    size_t size;
    yyjson_mut_doc_set_root(doc, root);
    char *text = yyjson_mut_write(doc, 0, &size);
    assert_non_null(text);
    write_file(in_folder(name), text, size);
    free(text);
    yyjson_mut_doc_free(doc);
}

static void add_token(yyjson_mut_doc *doc, yyjson_mut_val *list, uint64_t id, const char *text, bool rstrip)
{
    yyjson_mut_val *token = yyjson_mut_arr_add_obj(doc, list);
    yyjson_mut_obj_add_uint(doc, token, "id", id);
    yyjson_mut_obj_add_str(doc, token, "content", text);
    yyjson_mut_obj_add_bool(doc, token, "special", true);
    yyjson_mut_obj_add_bool(doc, token, "rstrip", rstrip);
}

/* The steps of the first of tests/golden/splits, with the family's tokens. */
static void write_tokenizer(yyjson_val *family)
{
    yyjson_doc *splits = open_golden("splits/families.json"), *vocabularies = open_golden("splits/vocabularies.json");
    yyjson_val *model = yyjson_obj_get(yyjson_doc_get_root(vocabularies), "bytes"), *text;
    yyjson_val *parts = yyjson_obj_get(yyjson_arr_get_first(yyjson_doc_get_root(splits)), "parts");
    const char *bos = member(family, "bos"), *eos = member(family, "eos");
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_val_mut_copy(doc, parts), *list = yyjson_mut_arr(doc);
    uint64_t id = yyjson_obj_size(yyjson_obj_get(model, "vocab"));
    size_t i, n;
    add_token(doc, list, id++, bos, false);
    if (strcmp(bos, eos) != 0) add_token(doc, list, id++, eos, false);
    yyjson_arr_foreach(yyjson_obj_get(family, "added"), i, n, text) {
        bool rstrip = yyjson_obj_get(family, "rstrip") != NULL;
        if (!yyjson_equals_str(text, eos)) add_token(doc, list, id++, yyjson_get_str(text), rstrip);
    }
    yyjson_mut_obj_put(root, yyjson_mut_str(doc, "added_tokens"), list);
    yyjson_mut_obj_put(root, yyjson_mut_str(doc, "post_processor"), yyjson_mut_null(doc));
    yyjson_mut_obj_add_val(doc, root, "model", yyjson_val_mut_copy(doc, model));
    write_json("tokenizer.json", doc, root);
    yyjson_doc_free(splits);
    yyjson_doc_free(vocabularies);
}

static peridot_vocab *open_family(yyjson_val *family)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_obj_add_str(doc, root, "bos_token", member(family, "bos"));
    yyjson_mut_obj_add_str(doc, root, "eos_token", member(family, "eos"));
    yyjson_mut_obj_add_str(doc, root, "chat_template", member(family, "jinja"));
    write_json("tokenizer_config.json", doc, root);
    write_tokenizer(family);
    return open_vocab(folder);
}

/* What the program writes, or a row of Peridot's, is what the text is to the tokenizer, control tokens and all. */
static void check_conversation(const peridot_vocab *v, yyjson_val *conversation, yyjson_val *tools, const char *row)
{
    static const char date[] = "{\"date_string\": \"05 July 2025\"}";
    peridot_chat chat = {.template_name = row};
    if (!row) chat.variables = date;
    if (!row) chat.variables_size = sizeof date - 1;
    int32_t *ids, *want;
    size_t n, n_want;
    yyjson_val *text = yyjson_obj_get(conversation, "text");
    char *list_of_tools = NULL;
    char *messages = yyjson_val_write(yyjson_obj_get(conversation, "messages"), 0, &chat.json_size);
    if (yyjson_is_true(yyjson_obj_get(conversation, "tools")))
        list_of_tools = yyjson_val_write(tools, 0, &chat.tools_size);
    chat.json = messages;
    chat.tools = list_of_tools;
    chat.think = yyjson_is_true(yyjson_obj_get(conversation, "think")) ? PERIDOT_THINK_ON : PERIDOT_THINK_OFF;
    if (peridot_encode_turns(&ids, &n, v, &chat) != PERIDOT_OK) fail_msg("%s\n%s", messages, peridot_last_error());
    assert_int_equal(peridot_encode(&want, &n_want, v, yyjson_get_str(text), yyjson_get_len(text),
                                    PERIDOT_ENCODE_SPECIAL), PERIDOT_OK);
    char *made = list(ids, n), *wanted = list(want, n_want), *shown;
    if (strcmp(made, wanted) != 0) {
        size_t size;
        assert_int_equal(peridot_decode(&shown, &size, v, ids, n), PERIDOT_OK);
        fail_msg("%s\n--- rather than\n%s", shown, yyjson_get_str(text));
    }
    free(made);
    free(wanted);
    peridot_free(ids);
    peridot_free(want);
    free(messages);
    free(list_of_tools);
}

static void check_format(const peridot_vocab *v, const char *name)
{
    struct pd_calls calls = {0};
    assert_int_equal(pd_tools_find_format(&calls, v, NULL), name != NULL);
    if (name) assert_string_equal(pd_call_format_name(calls.format), name);
}

#define DROPPED_THOUGHT " to=self<|message|>Hm, to=user.\n<|eom|><|start|>assistant"

/* Thoughts and headers are no part of a reply's text. */
static void check_headers(const peridot_vocab *v)
{
    static const char *const texts[][2] = {
        {" to=user<|message|>Two to=self<|eot|>", "Two to=self<|eot|>"},
        {DROPPED_THOUGHT " to=user<|message|>Two<|eot|>", "Two<|eot|>"},
        {DROPPED_THOUGHT DROPPED_THOUGHT " to=selfies<|message|>Two<|eom|>", "Two<|eom|>"},
        {" to=self<|message|>Hm", ""}, {" to=self", ""},
        {"<|begin_of_text|><|start|>assistant to=self<|message|>a<|eom|>",
         "<|begin_of_text|><|start|>assistant to=self<|message|>a<|eom|>"}};
    for (size_t i = 0; i < PD_COUNT(texts); i++) {
        int32_t *ids[2];
        size_t n[2];
        for (int k = 0; k < 2; k++)
            assert_int_equal(peridot_encode(&ids[k], &n[k], v, texts[i][k], strlen(texts[i][k]),
                                            PERIDOT_ENCODE_SPECIAL), PERIDOT_OK);
        assert_int_equal(peridot_drop_thoughts(v, ids[0], n[0]), n[1]);
        assert_memory_equal(ids[0], ids[1], n[1] * sizeof *ids[0]);
        for (int k = 0; k < 2; k++) peridot_free(ids[k]);
    }
    assert_true(pd_tokenizer_is_stop(v->tokenizer, pd_tokenizer_find_control(v->tokenizer, "<|eot|>")));
    assert_false(pd_tokenizer_is_stop(v->tokenizer, pd_tokenizer_find_control(v->tokenizer, "<|eom|>")));
}

/* Of a reply they are dropped, of a conversation not. */
static void check_thoughts(const peridot_vocab *v, yyjson_val *marks)
{
    int32_t ids[PD_N_THOUGHT_MARKS];
    assert_true(pd_tokenizer_thoughts(ids, v->tokenizer));
    for (size_t i = 0; i < yyjson_arr_size(marks); i++)
        assert_int_equal(ids[i], pd_tokenizer_find_control(v->tokenizer, yyjson_get_str(yyjson_arr_get(marks, i))));
    assert_false(pd_tokenizer_names_thoughts(v->tokenizer));
    if (yyjson_arr_size(marks) == PD_N_THOUGHT_MARKS) {
        check_headers(v);
        return;
    }
    ids[2] = 5;
    assert_int_equal(peridot_drop_thoughts(v, ids, 3), 1);
    memcpy(ids, (const int32_t[]){pd_tokenizer_bos(v->tokenizer), v->tokenizer->thoughts[0], 5}, sizeof ids);
    assert_int_equal(peridot_drop_thoughts(v, ids, 3), 3);
}

static void test_families(void **state)
{
    (void)state;
    yyjson_doc *doc = open_golden("chats.json");
    yyjson_val *root = yyjson_doc_get_root(doc), *family, *conversation;
    size_t i, n, k, n_conversations;
    yyjson_arr_foreach(root, i, n, family) {
        if (i == 0) continue;   /* the tools */
        const char *name = member(family, "name");
        print_message("%s\n", name ? name : "");
        peridot_vocab *v = open_family(family);
        check_format(v, member(family, "calls"));
        if (yyjson_obj_get(family, "thoughts")) check_thoughts(v, yyjson_obj_get(family, "thoughts"));
        yyjson_arr_foreach(yyjson_obj_get(family, "conversations"), k, n_conversations, conversation) {
            check_conversation(v, conversation, yyjson_arr_get_first(root), NULL);
            bool plain = !yyjson_is_true(yyjson_obj_get(conversation, "tools"));   /* the others have calls */
            if (plain && member(family, "row")) check_conversation(v, conversation, NULL, member(family, "row"));
        }
        assert_true(n_conversations >= 3);
        peridot_vocab_close(v);
    }
    assert_true(n > 10);
    yyjson_doc_free(doc);
}

/* What Mistral's programs want of ids is not what the server's clients send. */
static void test_ids(void **state)
{
    (void)state;
    static const char *const ids[] = {
        "\"id\": \"call_0123456789abcdef\"", "\"tool_call_id\": \"call_0123456789abcdef\"",
        "\"type\": \"function\"", "\"name\": \"f\""};
    yyjson_doc *doc = open_golden("chats.json");
    peridot_vocab *v = open_family(yyjson_arr_get(yyjson_doc_get_root(doc), 3));
    for (size_t i = 0; i < PD_COUNT(ids); i += 2) {
        char messages[512], *text;
        int32_t *made;
        size_t n, size;
        snprintf(messages, sizeof messages,
                 "[{\"role\": \"user\", \"content\": \"a\"}, "
                 "{\"role\": \"assistant\", \"tool_calls\": [{%s, \"function\": {\"name\": \"f\"}}]}, "
                 "{\"role\": \"tool\", %s, \"content\": \"b\"}]", ids[i], ids[i + 1]);
        peridot_chat chat = {.json = messages, .json_size = strlen(messages)};
        if (peridot_encode_turns(&made, &n, v, &chat) != PERIDOT_OK) fail_msg("%s", peridot_last_error());
        assert_int_equal(peridot_decode(&text, &size, v, made, n), PERIDOT_OK);
        const char *id = strstr(text, "\"id\": \""), *of_result = strstr(text, "\"call_id\": \"");
        assert_true(id && of_result);
        assert_memory_equal(id + strlen("\"id\": \""), of_result + strlen("\"call_id\": \""), 10);
        assert_int_equal(strcspn(id + strlen("\"id\": \""), "\""), 9);
        peridot_free(text);
        peridot_free(made);
    }
    peridot_vocab_close(v);
    yyjson_doc_free(doc);
}

static size_t count_token(const peridot_vocab *v, const peridot_chat *chat, const char *token)
{
    size_t n, count = 0;
    int32_t *ids, id = pd_tokenizer_find_control(v->tokenizer, token);
    assert_true(id >= 0);
    if (peridot_encode_turns(&ids, &n, v, chat) != PERIDOT_OK) fail_msg("%s", peridot_last_error());
    for (size_t i = 0; i < n; i++) count += ids[i] == id;
    peridot_free(ids);
    return count;
}

/* Where the program has no tools, the system's message has them, and an example whose control tokens are such. */
static void test_untold(void **state)
{
    (void)state;
    static const char begin[] = "<\xef\xbd\x9ctool\xe2\x96\x81" "calls\xe2\x96\x81" "begin\xef\xbd\x9c>";
    static const peridot_message message = {"user", "a"};
    yyjson_doc *doc = open_golden("chats.json");
    yyjson_val *root = yyjson_doc_get_root(doc);
    peridot_vocab *v = open_family(yyjson_arr_get_last(root));
    peridot_chat chat = {.messages = &message, .n_messages = 1};
    assert_int_equal(count_token(v, &chat, begin), 0);
    char *tools = yyjson_val_write(yyjson_arr_get_first(root), 0, &chat.tools_size);
    chat.tools = tools;
    assert_int_equal(count_token(v, &chat, begin), 1);
    free(tools);
    peridot_vocab_close(v);
    yyjson_doc_free(doc);
}

/* Functions by themselves are told as those that are members of tools. */
static void test_functions(void **state)
{
    (void)state;
    static const char *const tools[] = {
        "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {}}}]",
        "[{\"type\": \"function\", \"name\": \"f\", \"parameters\": {}}]", "[{\"name\": \"f\", \"parameters\": {}}]"};
    static const peridot_message message = {"user", "a"};
    yyjson_doc *doc = open_golden("chats.json");
    for (size_t family = 2; family < 8; family++) {
        peridot_vocab *v = open_family(yyjson_arr_get(yyjson_doc_get_root(doc), family));
        int32_t *ids[PD_COUNT(tools)];
        size_t n[PD_COUNT(tools)];
        for (size_t i = 0; i < PD_COUNT(tools); i++) {
            const peridot_chat chat = {.messages = &message, .n_messages = 1, .tools = tools[i],
                                       .tools_size = strlen(tools[i])};
            if (peridot_encode_turns(&ids[i], &n[i], v, &chat) != PERIDOT_OK) fail_msg("%s", peridot_last_error());
            assert_int_equal(n[i], n[0]);
            assert_memory_equal(ids[i], ids[0], n[0] * sizeof *ids[0]);
        }
        for (size_t i = 0; i < PD_COUNT(tools); i++) peridot_free(ids[i]);
        peridot_vocab_close(v);
    }
    yyjson_doc_free(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_families), cmocka_unit_test(test_ids),
                                       cmocka_unit_test(test_untold),
                                       cmocka_unit_test(test_functions)};
    return cmocka_run_group_tests_name("family_chats", tests, make_folder, remove_folder);
}

/* Qwen's steps from text to ids, and its template programs, against what transformers makes of texts and conversations
 * with a small tokenizer (tools/golden/qwen.py made tests/golden/qwen), as a tokenizer.json and as a GGUF file. */
#include "text_shared.h"

#include "grammar/calls/calls.h"
#include "text/text_.h"

/* The same pieces with the steps that the name stands for. */
static peridot_vocab *open_gguf(const char *pre)
{
    peridot_vocab *json = open_vocab(PERIDOT_GOLDEN "/qwen");
    write_byte_level_gguf(in_folder("tiny.gguf"), &json->tokenizer->pieces, pre);
    peridot_vocab_close(json);
    return open_vocab(in_folder("tiny.gguf"));
}

/* `tools`: of the tokenizer, which writes the file as it is converted. */
static peridot_vocab *open_converted(void)
{
    peridot_vocab *json = open_vocab(PERIDOT_GOLDEN "/qwen");
    struct pd_gguf_writer *w;
    assert_int_equal(pd_gguf_writer_open(&w, in_folder("tiny.gguf")), PERIDOT_OK);
    pd_gguf_writer_add_string(w, "general.architecture", "qwen3");
    assert_int_equal(pd_tokenizer_add_gguf(w, json->tokenizer, json->tokenizer->pieces.n + 8), PERIDOT_OK);
    assert_int_equal(pd_gguf_writer_begin(w), PERIDOT_OK);
    assert_int_equal(pd_gguf_writer_commit(w), PERIDOT_OK);
    peridot_vocab_close(json);
    return open_vocab(in_folder("tiny.gguf"));
}

/* ---- texts ---- */

/* What is decoded is the text in form C, less its control tokens. */
static void check_texts(peridot_vocab *v)
{
    yyjson_doc *doc = open_golden("qwen/texts.json");
    yyjson_val *row;
    size_t i, n_rows;
    yyjson_arr_foreach(yyjson_doc_get_root(doc), i, n_rows, row) {
        yyjson_val *text = yyjson_arr_get(row, 0);
        int32_t *ids;
        size_t n;
        unsigned flags = PERIDOT_ENCODE_SPECIAL | PERIDOT_ENCODE_BOS;   /* of which there is none */
        assert_int_equal(peridot_encode(&ids, &n, v, yyjson_get_str(text), yyjson_get_len(text), flags), PERIDOT_OK);
        expect_ids(ids, n, yyjson_arr_get(row, 1));
        peridot_free(ids);
    }
    assert_true(n_rows > 200);
    yyjson_doc_free(doc);
    peridot_vocab_close(v);
}

static void test_texts(void **state)
{
    (void)state;
    check_texts(open_vocab(PERIDOT_GOLDEN "/qwen"));
    check_texts(open_gguf("qwen2"));
    check_texts(open_converted());
}

/* Files name a piece that begins texts and do not mean it, unless they say that they do. */
static void test_bos(void **state)
{
    (void)state;
    static const struct { const char *pre; bool begins; } rows[] = {
        {"qwen2", false}, {"deepseek-r1-qwen", false}, {"llama-bpe", true}};
    for (size_t i = 0; i < PD_COUNT(rows); i++) {
        peridot_vocab *json = open_vocab(PERIDOT_GOLDEN "/qwen"), *v;
        struct pd_pieces *p = &json->tokenizer->pieces;
        int32_t *ids;
        size_t n;
        p->bos = pd_pieces_find_control(p, "<|endoftext|>", strlen("<|endoftext|>"));
        write_byte_level_gguf(in_folder("tiny.gguf"), p, rows[i].pre);
        v = open_vocab(in_folder("tiny.gguf"));
        assert_int_equal(peridot_encode(&ids, &n, v, "a", 1, PERIDOT_ENCODE_BOS), PERIDOT_OK);
        assert_int_equal(n, 1 + rows[i].begins);
        if (rows[i].begins) assert_int_equal(ids[0], p->bos);
        peridot_free(ids);
        peridot_vocab_close(v);
        peridot_vocab_close(json);
    }
}

static void expect_nfc(const char *text, const char *want)
{
    struct pd_buffer made = {0};
    size_t size = strlen(text);
    char *copy = malloc(size + !size);   /* without the NUL, for sanitizers */
    assert_non_null(copy);
    memcpy(copy, text, size);
    assert_int_equal(pd_text_append_nfc(&made, copy, size), PERIDOT_OK);
    assert_int_equal(pd_buffer_end(&made), PERIDOT_OK);
    assert_string_equal(made.data, want);
    free(made.data);
    free(copy);
}

/* The examples of UAX 15, and where spans begin and end. */
static void test_nfc(void **state)
{
    (void)state;
    expect_nfc("", "");
    expect_nfc("plain", "plain");
    expect_nfc("e\u0301", "\u00e9");
    expect_nfc("xe\u0301y\u0301", "x\u00e9\u00fd");
    expect_nfc("\u0301e\u0301", "\u0301\u00e9");
    expect_nfc("\u212b\u2126", "\u00c5\u03a9");
    expect_nfc("s\u0307\u0323", "\u1e69");
    expect_nfc("\u1e0b\u0323", "\u1e0d\u0307");
    expect_nfc("q\u0307\u0323", "q\u0323\u0307");
    expect_nfc("\u1112\u1161\u11ab\u1100\u1173\u11af", "\ud55c\uae00");
    expect_nfc("\uac00\u11a8", "\uac01");
    expect_nfc("\u09c7\u09be", "\u09cb");
    expect_nfc("\u0958", "\u0915\u093c");
    expect_nfc("\u4e2d\u0301\u56fd", "\u4e2d\u0301\u56fd");
    expect_nfc("\u304b\u3099", "\u304c");
    expect_nfc("\U0001d15e", "\U0001d157\U0001d165");
    expect_nfc("\uf900\ufb01", "\u8c48\ufb01");
    expect_nfc("a\u0301\u0301", "\u00e1\u0301");
    expect_nfc("a\u034a\u0301", "a\u034a\u0301");   /* not past a mark of its class */
    expect_nfc("a\u0315\u0300\u05ae" "b", "\u00e0\u05ae\u0315b");
    /* What tokenizers do not know stays where it is, and nothing is joined across it. */
    expect_nfc("e\u0898\u0301", "e\u0898\u0301");
    expect_nfc("e\u1ac1\u0323\u0301", "e\u1ac1\u0323\u0301");
    expect_nfc("\U00011935\U00011930", "\U00011935\U00011930");
    expect_nfc("\uac00\u11a7\u11a8", "\uac00\u11a7\u11a8");
}

/* Marks by the hundred thousand. */
static void test_long_nfc(void **state)
{
    (void)state;
    enum { N = 200000 };
    static const char marks[3][3] = {"\u0301", "\u0323", "\u0315"};
    struct pd_buffer text = {0}, made = {0};
    for (int i = 0; i < N; i++) assert_int_equal(pd_buffer_add(&text, marks[i % 3], 2), PERIDOT_OK);
    assert_int_equal(pd_text_append_nfc(&made, text.data, text.size), PERIDOT_OK);
    assert_int_equal(made.size, text.size);
    assert_memory_equal(made.data, marks[1], 2);
    assert_memory_equal(made.data + made.size - 2, marks[2], 2);
    free(text.data);
    free(made.data);
}

/* ---- conversations ---- */

static peridot_vocab *open_with_template(yyjson_val *row)
{
    peridot_vocab *json = open_vocab(PERIDOT_GOLDEN "/qwen"), *v;
    struct pd_gguf_writer *w;
    const char *jinja = yyjson_get_str(yyjson_obj_get(row, "jinja"));
    assert_int_equal(pd_gguf_writer_open(&w, in_folder("tiny.gguf")), PERIDOT_OK);
    pd_gguf_writer_add_string(w, "general.architecture", "qwen3");
    assert_int_equal(pd_tokenizer_add_gguf(w, json->tokenizer, json->tokenizer->pieces.n), PERIDOT_OK);
    pd_gguf_writer_add_string(w, "tokenizer.chat_template", jinja);
    assert_int_equal(pd_gguf_writer_begin(w), PERIDOT_OK);
    assert_int_equal(pd_gguf_writer_commit(w), PERIDOT_OK);
    v = open_vocab(in_folder("tiny.gguf"));
    peridot_vocab_close(json);
    return v;
}

static void check_conversation(const peridot_vocab *v, yyjson_val *conversation, yyjson_val *tools)
{
    peridot_chat chat = {0};
    int32_t *ids;
    size_t n;
    char *json = yyjson_val_write(yyjson_obj_get(conversation, "messages"), 0, &chat.json_size), *list_of_tools = NULL;
    if (yyjson_is_true(yyjson_obj_get(conversation, "tools")))
        list_of_tools = yyjson_val_write(tools, 0, &chat.tools_size);
    chat.json = json;
    chat.tools = list_of_tools;
    chat.think = yyjson_is_true(yyjson_obj_get(conversation, "think")) ? PERIDOT_THINK_ON : PERIDOT_THINK_OFF;
    if (peridot_encode_turns(&ids, &n, v, &chat) != PERIDOT_OK) fail_msg("%s", peridot_last_error());
    expect_ids(ids, n, yyjson_obj_get(conversation, "ids"));
    peridot_free(ids);
    free(json);
    free(list_of_tools);
}

static void test_chats(void **state)
{
    (void)state;
    yyjson_doc *doc = open_golden("qwen/chats.json");
    yyjson_val *root = yyjson_doc_get_root(doc), *row, *conversation;
    size_t i, n, k, n_conversations;
    yyjson_arr_foreach(root, i, n, row) {
        if (i == 0) continue;   /* the tools */
        const char *jinja = yyjson_get_str(yyjson_obj_get(row, "jinja"));
        peridot_vocab *v = open_with_template(row);
        assert_string_equal(pd_call_format_name(pd_call_format_of_template(jinja, strlen(jinja))), "hermes");
        assert_string_equal(v->tokenizer->chat->name, "chatml");
        assert_true(v->tokenizer->thoughts[0] >= 0 && !v->tokenizer->thoughts_named);
        yyjson_arr_foreach(yyjson_obj_get(row, "conversations"), k, n_conversations, conversation)
            check_conversation(v, conversation, yyjson_arr_get(root, 0));
        assert_true(n_conversations >= 16);
        peridot_vocab_close(v);
    }
    assert_int_equal(n, 3);
    yyjson_doc_free(doc);
}

/* Both ends of a turn stop, and files without a template get the turns all the same. */
static void test_without_template(void **state)
{
    (void)state;
    static const peridot_message messages[] = {{"system", " Be brief."}, {"user", "hi\n"}};
    static const char expected[] = "<|im_start|>system\n Be brief.<|im_end|>\n<|im_start|>user\nhi\n<|im_end|>\n"
                                   "<|im_start|>assistant\n";
    peridot_vocab *v = open_gguf("qwen2");   /* of the name "A Model Instruct" */
    const char *const stops[] = {"<|im_end|>", "<|endoftext|>"};
    int32_t *ids, *want;
    size_t n, n_want;
    assert_string_equal(v->tokenizer->chat->name, "chatml");
    for (size_t i = 0; i < PD_COUNT(stops); i++)
        assert_true(pd_tokenizer_is_stop(v->tokenizer, pd_special_find(&v->tokenizer->special, &v->tokenizer->pieces,
                                                                       stops[i])));
    assert_int_equal(peridot_encode_messages(&ids, &n, v, messages, PD_COUNT(messages), NULL), PERIDOT_OK);
    assert_int_equal(peridot_encode(&want, &n_want, v, expected, strlen(expected), PERIDOT_ENCODE_SPECIAL), PERIDOT_OK);
    assert_int_equal(n, n_want);
    assert_memory_equal(ids, want, n * sizeof *ids);
    peridot_free(ids);
    peridot_free(want);
    peridot_vocab_close(v);
}

/* ---- images ---- */

/* A directory, as Hugging Face has them. */
static peridot_vocab *open_directory(yyjson_val *row)
{
    static const char *const names[] = {"tokenizer.json", "tokenizer_config.json"};
    char path[64];
    size_t size;
    for (size_t i = 0; i < PD_COUNT(names); i++) {
        snprintf(path, sizeof path, "qwen/%s", names[i]);
        yyjson_doc *golden = open_golden(path);
        yyjson_mut_doc *doc = yyjson_doc_mut_copy(golden, NULL);
        yyjson_mut_val *jinja = yyjson_val_mut_copy(doc, yyjson_obj_get(row, "jinja"));
        if (i == 1) yyjson_mut_obj_add_val(doc, yyjson_mut_doc_get_root(doc), "chat_template", jinja);
        char *text = yyjson_mut_write(doc, 0, &size);
        assert_non_null(text);
        write_file(in_folder(names[i]), text, size);
        free(text);
        yyjson_mut_doc_free(doc);
        yyjson_doc_free(golden);
    }
    return open_vocab(folder);
}

static size_t count_id(const int32_t *ids, size_t n, int32_t id)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) found += ids[i] == id;
    return found;
}

/* An image's tokens that are typed in a message are text, and no place for an image. */
static void check_typed(const peridot_vocab *v, const char *name)
{
    static const char *const marks[] = {"<|vision_start|>", "<|image_pad|>", "<|vision_end|>"};
    static const char json[] = "[{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"<|vision_start|>"
        "<|image_pad|><|vision_end|>\"}, {\"type\": \"image\"}, {\"type\": \"text\", \"text\": \"<|image_pad|>\"}]}]";
    const int32_t row = -100;
    const struct pd_chat_image image = {&row, 1, 0};
    struct pd_messages messages;
    int32_t *ids;
    size_t n;
    assert_int_equal(pd_messages_from_json(&messages, json, strlen(json)), PERIDOT_OK);
    const struct pd_chat_prompt prompt = {.template_name = name, .messages = &messages, .images = &image};
    assert_int_equal(pd_tokenizer_encode_chat(&ids, &n, v->tokenizer, &prompt), PERIDOT_OK);
    for (size_t i = 0; i < PD_COUNT(marks); i++)
        assert_int_equal(count_id(ids, n, pd_tokenizer_find_control(v->tokenizer, marks[i])), i != 1);
    assert_int_equal(count_id(ids, n, row), 1);
    free(ids);
    pd_messages_free(&messages);
}

/* Qwen 3.5's program, from both kinds of files; and one that is ChatML alone, whose row writes the same. */
static void test_images(void **state)
{
    (void)state;
    yyjson_doc *doc = open_golden("qwen/images.json");
    yyjson_val *root = yyjson_doc_get_root(doc), *row, *conversation;
    size_t i, n, k, n_conversations;
    yyjson_arr_foreach(root, i, n, row) {
        peridot_vocab *v[] = {open_with_template(row), open_directory(row)};
        yyjson_arr_foreach(yyjson_obj_get(row, "conversations"), k, n_conversations, conversation) {
            for (size_t j = 0; j < PD_COUNT(v); j++) {
                check_images(v[j], conversation, NULL);
                if (i) check_images(v[j], conversation, "chatml");
            }
        }
        assert_true(n_conversations >= 5);
        for (size_t j = 0; j < PD_COUNT(v); j++) {
            check_typed(v[j], NULL);
            check_typed(v[j], "chatml");
            peridot_vocab_close(v[j]);
        }
    }
    assert_int_equal(n, 2);
    yyjson_doc_free(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts), cmocka_unit_test(test_bos), cmocka_unit_test(test_nfc),
        cmocka_unit_test(test_long_nfc), cmocka_unit_test(test_chats), cmocka_unit_test(test_without_template),
        cmocka_unit_test(test_images),
    };
    return cmocka_run_group_tests_name("qwen", tests, make_folder, remove_folder);
}

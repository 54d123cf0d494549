/* Conversations in any order of roles, as peridot serve encodes them, for the chat templates of families: what a
 * template takes is encoded as it is, and what it raises at is put into an order that it takes, with all that was
 * said. */
#include "text_shared.h"

#include "serve/wire/wire_.h"
#include "serve/job/job.h"
#include "serve/wire/wire.h"
#include "cli/cli.h"

/* A letter is a message: of a system, a developer, a user, an assistant, an assistant that calls, a tool. */
static const char *const orders[] = {
    "u", "su", "suau", "ssu", "sduu", "usau", "udu", "uu", "uuau", "au", "a", "uaau", "us", "uas", "uaus",
    "ssusdu", "s", "d", "suAtu", "suAts", "suAt", "suaAt", "suAtAtu", "suAtau", "uAu", "uAtsuAt", "suAttau", "suAtdau",
};

/* Rules of published programs that the golden ones do not have. */
static const struct { const char *name, *jinja; } others[] = {
    {"chatml", "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
               "<|im_start|>assistant\n"},
    {"qwen3.5", "{% for m in messages %}{% if m.role == 'system' and not loop.first %}"
                "{{ raise_exception('System message must be at the beginning.') }}{% elif m.role == 'developer' %}"
                "{{ raise_exception('Unexpected message role.') }}{% endif %}<|im_start|>{{ m.role }}\n{{ m.content }}"
                "{% for c in m.tool_calls or [] %}<tool_call>{{ c.function.name }}{\"arguments\": </tool_call>"
                "{% endfor %}<|im_end|>\n{% endfor %}{% if tools %}{% endif %}<|im_start|>assistant\n"},
};

static const char tools[] = "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"description\": \"d\", "
                            "\"parameters\": {\"type\": \"object\", \"properties\": {}}}}]";

/* What message i says, which no other text has. */
static const char *words(size_t i)
{
    static char text[32];
    snprintf(text, sizeof text, "zq%zuqz", i);
    return text;
}

static yyjson_doc *make_request(const char *order)
{
    char *text = malloc(strlen(order) * 256 + 64), *at = text + sprintf(text, "{\"messages\": [");
    for (size_t i = 0; order[i]; i++) {
        const char *role = order[i] == 's' ? "system" : order[i] == 'd' ? "developer" : order[i] == 'u' ? "user"
                         : order[i] == 't' ? "tool" : "assistant";
        at += sprintf(at, "%s{\"role\": \"%s\", \"content\": \"%s\"", i ? ", " : "", role, words(i));
        if (order[i] == 'A')
            at += sprintf(at, ", \"tool_calls\": [{\"id\": \"call_%zu\", \"type\": \"function\", \"function\": "
                          "{\"name\": \"f\", \"arguments\": \"{}\"}}]", i);
        if (order[i] == 't') at += sprintf(at, ", \"tool_call_id\": \"call_%zu\"", i - 1);
        at += sprintf(at, "}");
    }
    strcpy(at, "]}");
    yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
    assert_non_null(doc);
    free(text);
    return doc;
}

/* False: the template raises. */
static bool encode_as_is(int32_t **ids, size_t *n, const peridot_vocab *v, yyjson_val *messages, bool calls)
{
    peridot_chat chat = {.tools = calls ? tools : NULL, .tools_size = calls ? strlen(tools) : 0};
    char *json = yyjson_val_write(messages, 0, &chat.json_size);
    chat.json = json;
    bool good = peridot_encode_turns(ids, n, v, &chat) == PERIDOT_OK;
    free(json);
    return good;
}

/* Whether what systems say is there. */
static bool has_all(const peridot_vocab *v, const int32_t *ids, size_t n, const char *order)
{
    char *text;
    size_t size;
    bool all = true;
    assert_int_equal(peridot_decode(&text, &size, v, ids, n), PERIDOT_OK);
    for (size_t i = 1; order[i]; i++) all = all && (!strchr("sd", order[i]) || strstr(text, words(i)));
    peridot_free(text);
    return all;
}

static unsigned n_as_is, n_folded;

static void check_order(const peridot_vocab *v, const char *name, const char *order)
{
    yyjson_doc *doc = make_request(order);
    yyjson_val *root = yyjson_doc_get_root(doc);
    bool calls = strpbrk(order, "At"), late = false;
    struct serve_model model = {.ctx = 65536};
    struct serve_job job = {.model = &model, .api = &serve_wire_chat,
        .asks = {.document = doc, .n = 1, .tools = calls ? (char *)(uintptr_t)tools : NULL}};
    int32_t *ids, *same = NULL;
    size_t n, n_same, size;
    char *text;
    if (!serve_conversation_encode(&ids, &n, &job, v, root)) fail_msg("%s: %s: %s", name, order, job.error.message);
    bool taken = encode_as_is(&same, &n_same, v, yyjson_obj_get(root, "messages"), calls);
    assert_int_equal(peridot_decode(&text, &size, v, ids, n), PERIDOT_OK);
    bool as_is = taken && n == n_same && memcmp(ids, same, n * sizeof *ids) == 0;
    if (taken && !as_is && has_all(v, same, n_same, order)) fail_msg("%s: %s: %s", name, order, text);
    for (size_t i = 0; order[i]; i++) {
        /* programs may leave out what is beside calls, and the first system where results, or nothing, follow */
        bool may_lack = order[i] == 'A' || (i == 0 && (calls || !order[1]));
        if (!may_lack && !strstr(text, words(i))) fail_msg("%s: %s: message %zu is not in %s", name, order, i, text);
        late = late || (i > 0 && strchr("sd", order[i]) && !strchr("sd", order[i - 1]));
    }
    if (!as_is && late && !strstr(text, "<system>\nzq")) fail_msg("%s: %s: not marked: %s", name, order, text);
    n_as_is += as_is;
    n_folded += !as_is;
    peridot_free(ids);
    peridot_free(same);
    peridot_free(text);
    yyjson_doc_free(doc);
}

static void check_template(const char *name, const char *jinja)
{
    struct tiny t;
    tiny_make(&t);
    t.jinja = jinja;
    peridot_vocab *v = open_vocab(tiny_gguf(&t));
    n_as_is = n_folded = 0;
    for (size_t i = 0; i < PD_COUNT(orders); i++) check_order(v, name, orders[i]);
    print_message("%s: %u as they are, %u in another order\n", name, n_as_is, n_folded);
    peridot_vocab_close(v);
}

static void test_orders(void **state)
{
    (void)state;
    static const char *const files[] = {"chat.json", "chats.json", "qwen/chats.json"};
    for (size_t i = 0; i < PD_COUNT(files); i++) {
        yyjson_doc *doc = open_golden(files[i]);
        yyjson_val *family;
        size_t k, n;
        yyjson_arr_foreach(yyjson_doc_get_root(doc), k, n, family) {
            const char *name = yyjson_get_str(yyjson_obj_get(family, i ? "name" : "template"));
            const char *jinja = yyjson_get_str(yyjson_obj_get(family, "jinja"));
            if (jinja) check_template(name, jinja);   /* else the tools */
        }
        yyjson_doc_free(doc);
    }
    for (size_t i = 0; i < PD_COUNT(others); i++) check_template(others[i].name, others[i].jinja);
}

/* Whoever has the demo model alone is told of one that fits the device. */
static void test_chat_models(void **state)
{
    (void)state;
    static const struct { double memory; bool cpu; const char *size; } rows[] = {
        {1e9, false, "-1b-"}, {3.8e9, false, "-1b-"}, {4e9, false, "-4b-"}, {7e9, false, "-4b-"}, {8e9, false, "-8B-"},
        {10e9, false, "-8B-"}, {12e9, false, "-Nemo-"}, {1e12, false, "-Nemo-"}, {1e12, true, "-1b-"}};
    for (size_t i = 0; i < PD_COUNT(rows); i++) {
        const peridot_device_info device = {.heap_budget = (uint64_t)rows[i].memory,
            .type = rows[i].cpu ? PERIDOT_DEVICE_CPU : PERIDOT_DEVICE_DISCRETE};
        assert_non_null(strstr(cmd_chat_model(&device), rows[i].size));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_orders), cmocka_unit_test(test_chat_models)};
    return cmocka_run_group_tests_name("roles", tests, make_folder, remove_folder);
}

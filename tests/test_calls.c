/* Tool calls: of each format, replies with what the parser makes of them, and whether the grammar allows them, where
 * control tokens are marks and where they are text; hostile lists of tools; texts for the model. */
#include "calls_fixture.h"

/* Modes in which a reply is allowed. */
enum { TEXT = 1, ONE = 2, SEVERAL = 4, CALLS = ONE | SEVERAL, NONE = 0 };

struct reply {
    const char *text, *parsed;     /* parsed NULL: all of it is text */
    unsigned allowed;
};

#define HERMES(name, arguments) "<tool_call>\n{\"name\": \"" name "\", \"arguments\": " arguments "}\n</tool_call>"

static const struct reply hermes[] = {
    {"", "", TEXT},
    {"It rains.", NULL, TEXT},
    {"a <tool_cal", NULL, TEXT},
    {"<<<tool_cal<tool_calx>", NULL, TEXT},
    {HERMES("ping", "{}"), "{{ping {}}}", CALLS},
    {"I look.\n" HERMES("ping", "{}") "\n", "I look.\n{{ping {}}}", TEXT},
    {"<tool_<tool_call" HERMES("ping", "{}"), "<tool_<tool_call{{ping {}}}", TEXT},
    {HERMES("get_weather", "{\"city\": \"K\xc3\xb6ln \\\"\\u00fc\\ud83d\\ude00\", \"days\": 2}"),
     "{{get_weather {\"city\": \"K\xc3\xb6ln \\\"\\u00fc\\ud83d\\ude00\", \"days\": 2}}}", CALLS},
    {HERMES("ping", "{\"a\": [1, -2.5e+3, [], {}, null, true, false, {\"b\": \"</tool_call>\"}]}"),
     "{{ping {\"a\": [1, -2.5e+3, [], {}, null, true, false, {\"b\": \"</tool_call>\"}]}}}", CALLS},
    {"<tool_call>{\"name\":\"ping\",\"arguments\":{}}</tool_call>", "{{ping {}}}", CALLS},
    {"<tool_call>\n  {\n  \"name\": \"ping\",\n  \"arguments\": {}\n}\n</tool_call>", "{{ping {}}}", CALLS},
    {HERMES("ping", "{}") "\n" HERMES("a.b/c:d-1", "{\"x\": null}"), "{{ping {}}}{{a.b/c:d-1 {\"x\": null}}}", SEVERAL},
    {HERMES("ping", "{}") HERMES("ping", "{}") "\n    ", "{{ping {}}}{{ping {}}}", SEVERAL},
    /* near misses */
    {HERMES("ping", "{}") " more", "{{ping {}}}more", NONE},
    {HERMES("pong", "{}"), NULL, NONE},
    {HERMES("", "{}"), NULL, NONE},
    {HERMES("get_weather", "{\"days\": 2}"), "{{get_weather {\"days\": 2}}}", NONE},
    {HERMES("get_weather", "{\"city\": \"x\", \"days\": 10}"), "{{get_weather {\"city\": \"x\", \"days\": 10}}}", NONE},
    {HERMES("ping", "[]"), NULL, NONE},
    {HERMES("ping", "\"{}\""), NULL, NONE},
    {"<tool_call>", NULL, NONE},
    {"<tool_call>\n{\"name\": \"ping\"", NULL, NONE},
    {"<tool_call>\n{\"name\": \"ping\", \"parameters\": {}}\n</tool_call>", NULL, NONE},
    {"<tool_call>\n{\"name\": \"ping\", \"arguments\": {", "{{ping {", NONE},
    {"<tool_call>\n{\"name\": \"ping\", \"arguments\": {}", "{{ping {}}}", NONE},
    {"<tool_call>\n{\"name\": \"ping\", \"arguments\": {}}\n</tool", "{{ping {}}}", NONE},
    {"<tool_call>\n{\"name\": \"ping\", \"arguments\": {}, \"id\": 1}</tool_call>",
     "{{ping {}}}, \"id\": 1}</tool_call>", NONE},
    {"<tool_call>\n{\"name\": \"ping\", \"arguments\": {\"a\": }} x", "{{ping {\"a\": }} x", NONE},
    {HERMES("ping", "{\"a\": \"\\ude00\"}"), "{{ping {\"a\": \"\\ude00\"}}\n</tool_call>", NONE},
};

static const struct {
    const char *format;
    const struct reply *replies;
    size_t n;
} tables[] = {{"hermes", hermes, PD_COUNT(hermes)}, {"generic", hermes, PD_COUNT(hermes)}};

static yyjson_doc *read_tools(struct pd_calls *c, const char *tools)
{
    yyjson_doc *doc = yyjson_read(tools, strlen(tools), 0);
    assert_non_null(doc);
    c->tools = yyjson_doc_get_root(doc);
    return doc;
}

static void expect_parsed(const struct reply *reply, const struct pd_calls *c, const char *bytes, size_t size)
{
    struct transcript t;
    const char *expected = reply->parsed ? reply->parsed : reply->text;
    parse_all_ways(&t, c, bytes, size);
    if (strcmp(t.said.data, expected) != 0)
        fail_msg("%s\nof %s is parsed as\n%s\nrather than\n%s", reply->text, pd_call_format_name(c->format), t.said.data,
                 expected);
    free(t.said.data);
}

/* Replies with text need AUTO, several calls need `parallel`. */
static void expect_allowed(const struct reply *reply, struct pd_calls *c, const char *bytes, size_t size)
{
    for (int mode = 0; mode < 4; mode++) {
        struct pd_rules r;
        c->choice = mode & 1 ? PD_CALL_REQUIRED : PD_CALL_AUTO;
        c->parallel = mode & 2;
        unsigned wants = (mode & 1 ? 0 : TEXT) | (mode & 2 ? CALLS : ONE);
        bool allowed = reply->allowed & wants;
        if (reply->allowed == SEVERAL) allowed = mode & 2;
        EXPECT_OK(pd_calls_compile(&r, c));
        if (accepts(&r, bytes, size) != allowed)
            fail_msg("%s%s should %s\n%s", pd_call_format_name(c->format), mode & 1 ? ", required," : "",
                     allowed ? "allow" : "not allow", reply->text);
        pd_rules_free(&r);
    }
}

static void test_replies(void **state)
{
    (void)state;
    struct pd_calls c = {0};
    yyjson_doc *doc = read_tools(&c, weather_tools);
    for (size_t i = 0; i < PD_COUNT(tables); i++)
        for (size_t k = 0; k < tables[i].n; k++)
            for (c.marks = 0; c.marks <= ALL_MARKS; c.marks += ALL_MARKS) {
                char bytes[1000];
                const struct reply *reply = &tables[i].replies[k];
                size_t size = put_marks(bytes, reply->text, strlen(reply->text), c.marks);
                c.format = pd_call_format_find(tables[i].format);
                expect_parsed(reply, &c, bytes, size);
                expect_allowed(reply, &c, bytes, size);
            }
    yyjson_doc_free(doc);
}

/* Only one of the tools, and any name where none are given to the parser. */
static void test_names(void **state)
{
    (void)state;
    struct pd_calls c = {.format = pd_call_format_find("hermes"), .name = "ping", .choice = PD_CALL_REQUIRED};
    static const char ping[] = HERMES("ping", "{}"), other[] = HERMES("a.b/c:d-1", "{\"x\": 1}");
    struct pd_rules r;
    struct transcript t;
    yyjson_doc *doc = read_tools(&c, weather_tools);
    EXPECT_OK(pd_calls_compile(&r, &c));
    assert_true(accepts(&r, ping, sizeof ping - 1));
    assert_false(accepts(&r, other, sizeof other - 1));
    pd_rules_free(&r);
    c.tools = NULL;
    static const char unknown[] = HERMES("pong", "{}");
    parse_all_ways(&t, &c, unknown, sizeof unknown - 1);
    assert_string_equal(t.said.data, "{{pong {}}}");
    free(t.said.data);
    yyjson_doc_free(doc);
}

/* ---- lists of tools ---- */

static const struct {
    const char *tools, *sentence;
    peridot_status status;
} refused[] = {
    {"{}", "the tools are not a list", PERIDOT_ERROR_FORMAT},
    {"[]", "the list of tools is empty", PERIDOT_ERROR_ARGUMENT},
    {"[1]", "tool 0 is not an object", PERIDOT_ERROR_FORMAT},
    {"[{\"name\":\"a\"},{\"function\":3}]", "tool 1 is not an object with a function", PERIDOT_ERROR_FORMAT},
    {"[{\"type\":\"web_search\"}]", "tool 0: its type is not \"function\"", PERIDOT_ERROR_UNSUPPORTED},
    {"[{\"type\":\"function\",\"function\":{}}]", "tool 0 has no name", PERIDOT_ERROR_FORMAT},
    {"[{\"name\":7}]", "tool 0 has no name", PERIDOT_ERROR_FORMAT},
    {"[{\"name\":\"\"}]", "tool 0: its name \"\" is not of 1 to 64 letters", PERIDOT_ERROR_ARGUMENT},
    {"[{\"name\":\"a b\"}]", "tool 0: its name \"a b\" is not", PERIDOT_ERROR_ARGUMENT},
    {"[{\"name\":\"a\\u0000b\"}]", "tool 0: its name \"a\\x00b\" is not", PERIDOT_ERROR_ARGUMENT},
    {"[{\"name\":\"0123456789012345678901234567890123456789012345678901234567890123x\"}]", "tool 0: its name",
     PERIDOT_ERROR_ARGUMENT},
    {"[{\"name\":\"a\"},{\"name\":\"b\"},{\"function\":{\"name\":\"a\"}}]", "tool a is there twice (tools 0 and 2)",
     PERIDOT_ERROR_ARGUMENT},
    {"[{\"name\":\"a\",\"description\":[]}]", "tool a: its description is not a text", PERIDOT_ERROR_FORMAT},
    {"[{\"name\":\"a\",\"parameters\":[]}]", "tool a: its parameters are not a JSON Schema", PERIDOT_ERROR_FORMAT},
    {"[{\"name\":\"a\",\"parameters\":false}]", "tool a: #: no value is valid", PERIDOT_ERROR_ARGUMENT},
    {"[{\"name\":\"a\",\"parameters\":{\"type\":\"string\"}}]", "tool a: #: no value is valid", PERIDOT_ERROR_ARGUMENT},
    {"[{\"name\":\"b\"},{\"name\":\"a\",\"parameters\":{\"properties\":{\"p\":{\"not\":{\"type\":\"null\"}}}}}]",
     "tool a: keyword not at #/properties/p", PERIDOT_ERROR_UNSUPPORTED},
};

static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < PD_COUNT(refused); i++) {
        struct pd_calls c = {.format = pd_call_format_find("hermes")};
        struct pd_rules r;
        yyjson_doc *doc = read_tools(&c, refused[i].tools);
        EXPECT_FAILURE(pd_calls_compile(&r, &c), refused[i].status, refused[i].sentence);
        pd_rules_free(&r);
        yyjson_doc_free(doc);
    }
    struct pd_calls c = {.format = pd_call_format_find("hermes"), .name = "pong"};
    yyjson_doc *doc = read_tools(&c, weather_tools);
    EXPECT_FAILURE(pd_calls_check(&c), PERIDOT_ERROR_ARGUMENT, "there is no tool pong, which must be called");
    yyjson_doc_free(doc);
}

/* ---- formats ---- */

static void test_formats(void **state)
{
    (void)state;
    static const struct {
        const char *jinja, *format;
    } templates[] = {
        {"{{- '<tool_call>\\n{\"name\": \"' }}{{ c.name }}{{ '\", \"arguments\": ' }}", "hermes"},
        {"{\\\"name\\\": <function-name>, \\\"arguments\\\": <args-json-object>}\\n</tool_call> <tool_call>", "hermes"},
        {"<tool_call>\\n<function=example_function_name> {{ tool_call.arguments }}", NULL},
        {"{{ bos_token }}{% for message in messages %}", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < PD_COUNT(templates); i++) {
        const struct pd_call_format *f = pd_call_format_of_template(templates[i].jinja, strlen(templates[i].jinja));
        assert_true((f != NULL) == (templates[i].format != NULL));
        if (f) assert_string_equal(pd_call_format_name(f), templates[i].format);
    }
    for (size_t i = 0; pd_call_format_name_at(i); i++)
        assert_string_equal(pd_call_format_name(pd_call_format_find(pd_call_format_name_at(i))),
                            pd_call_format_name_at(i));
    assert_null(pd_call_format_find("other"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_replies), cmocka_unit_test(test_names),
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_formats)};
    return cmocka_run_group_tests_name("calls", tests, NULL, NULL);
}

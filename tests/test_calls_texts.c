/* Texts for the model: past calls as each format writes them, results, the tools; and failures of those who are told
 * what a reply says. */
#include "calls_fixture.h"

#include "base/base.h"

#define JSON "{\"city\": \"K\xc3\xb6ln \\\"\\n\", \"days\": 2}"
#define SAID_JSON "{{get_weather " JSON "}}{{ping {}}}"
#define SAID "{{get_weather {\"city\":\"K\xc3\xb6ln \\\"\\n\",\"days\":2}}}{{ping {}}}"
#define TAGGED(name, arguments) \
    "<tool_call>\n{\"name\": \"" name "\", \"arguments\": " arguments "}\n</tool_call>"
#define ARGUED(name, arguments) "{\"name\": \"" name "\", \"arguments\": " arguments "}"
#define NAMED(name, arguments) "{\"name\": \"" name "\", \"parameters\": " arguments "}"
#define FENCED(name, arguments) \
    TOOL_TOKEN("call\xe2\x96\x81" "begin") "function" TOOL_TOKEN("sep") name "\n```json\n" arguments "\n```" \
    TOOL_TOKEN("call\xe2\x96\x81" "end")
#define DELIMITED(Q) "call:get_weather{city:" Q "K\xc3\xb6ln \"\n" Q ",days:2}"

/* A call with arguments, and one without, as their text and as the parser reads it. */
static const struct {
    const char *format, *text, *said;
} written[] = {
    {"hermes", TAGGED("get_weather", JSON) "\n" TAGGED("ping", "{}"), SAID_JSON},
    {"generic", TAGGED("get_weather", JSON) "\n" TAGGED("ping", "{}"), SAID_JSON},
    {"gemma4", "<|tool_call>" DELIMITED("<|\"|>") "<tool_call|><|tool_call>call:ping{}<tool_call|>", SAID},
    {"functiongemma", "<start_function_call>" DELIMITED("<escape>") "<end_function_call>"
                      "<start_function_call>call:ping{}<end_function_call>", SAID},
    {"llama3", NAMED("get_weather", JSON) "; " NAMED("ping", "{}"), SAID_JSON},
    {"mistral", "[TOOL_CALLS]get_weather[ARGS]" JSON "[TOOL_CALLS]ping[ARGS]{}", SAID_JSON},
    {"mistral-v3", "[TOOL_CALLS] [" ARGUED("get_weather", JSON) ", " ARGUED("ping", "{}") "]", SAID_JSON},
    {"phi4", "<|tool_call|>[" ARGUED("get_weather", JSON) ", " ARGUED("ping", "{}") "]<|/tool_call|>", SAID_JSON},
    {"olmo", "<function_calls>get_weather(city=\"K\xc3\xb6ln \\\"\\n\", days=2)\nping()</function_calls>",
     "{{get_weather {\"city\":\"K\xc3\xb6ln \\\"\\n\", \"days\":2}}}{{ping {}}}"},
    {"granite", "<|tool_call|>[" ARGUED("get_weather", JSON) ", " ARGUED("ping", "{}") "]", SAID_JSON},
    {"deepseek", TOOL_TOKEN("calls\xe2\x96\x81" "begin") FENCED("get_weather", JSON) "\n" FENCED("ping", "{}")
                 TOOL_TOKEN("calls\xe2\x96\x81" "end"), SAID_JSON},
    {"functionary", "<function=get_weather>" JSON "</function><function=ping>{}</function>", SAID_JSON},
    {"atem", ATEM("get_weather", ATEM_TAG("city", "K\xc3\xb6ln \"\n") ATEM_TAG("days", "2")) ATEM_NEXT ATEM("ping", ""),
     SAID},
    {"harmony", HARMONY("get_weather", JSON) HARMONY_NEXT HARMONY("ping", "{}"), SAID_JSON},
    {"qwen3-coder", "<tool_call>\n<function=get_weather>\n<parameter=city>\nK\xc3\xb6ln \"\n\n</parameter>\n"
                    "<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>\n"
                    "<tool_call>\n<function=ping>\n</function>\n</tool_call>", SAID},
    {"gemma3", "```json\n" NAMED("get_weather", JSON) "\n```\n```json\n" NAMED("ping", "{}") "\n```", SAID_JSON},
};

static yyjson_doc *read_json(const char *text)
{
    yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
    assert_non_null(doc);
    return doc;
}

static void expect_written(const struct pd_calls *c, const struct pd_call *calls, size_t n, size_t row)
{
    struct pd_buffer text = {0};
    struct pd_rules r;
    struct transcript t;
    char expected[600];
    put_marks(expected, written[row].text, strlen(written[row].text), c->marks);
    EXPECT_OK(pd_calls_write(&text, c, calls, n));
    EXPECT_OK(pd_buffer_end(&text));
    assert_string_equal(text.data, expected);
    EXPECT_OK(pd_calls_compile(&r, c));
    assert_true(accepts(&r, text.data, text.size));
    parse_all_ways(&t, c, text.data, text.size);
    assert_string_equal(t.said.data, written[row].said);
    free(t.said.data);
    pd_rules_free(&r);
    free(text.data);
}

static void test_written(void **state)
{
    (void)state;
    yyjson_doc *arguments = read_json(JSON), *tools = read_json(weather_tools);
    const struct pd_call calls[] = {{"get_weather", yyjson_doc_get_root(arguments)}, {"ping", NULL}};
    struct pd_calls c = {.tools = yyjson_doc_get_root(tools), .parallel = true};
    for (size_t i = 0; i < PD_COUNT(written); i++)
        for (int with = 0; with < 2; with++) {
            c.marks = with ? marks_of(written[i].format) : 0;
            c.format = pd_call_format_find(written[i].format);
            expect_written(&c, calls, PD_COUNT(calls), i);
        }
    assert_null(pd_call_format_name_at(PD_COUNT(written)));   /* there are no other formats */
    yyjson_doc_free(tools);
    yyjson_doc_free(arguments);
}

/* In the order of Gemma 4's template, at every depth; and no deeper than the grammar has them. */
static void test_values(void **state)
{
    (void)state;
    yyjson_doc *doc = read_json("{\"b\":[{\"y\":null,\"X\":-1.5}],\"a\":true,\"B\":{},\"ab\":[]}");
    struct pd_calls c = {.format = pd_call_format_find("gemma4")};
    struct pd_call call = {"f", yyjson_doc_get_root(doc)};
    struct pd_buffer text = {0};
    EXPECT_OK(pd_calls_write(&text, &c, &call, 1));
    EXPECT_OK(pd_buffer_end(&text));
    assert_string_equal(text.data, "<|tool_call>call:f{a:true,ab:[],B:{},b:[{X:-1.5,y:null}]}<tool_call|>");
    yyjson_doc_free(doc);
    char deep[2 * (PD_MAX_CALLS + 1) + 1] = "";
    memset(deep, '[', PD_MAX_CALLS + 1);
    memset(deep + PD_MAX_CALLS + 1, ']', PD_MAX_CALLS + 1);
    doc = read_json(deep);
    call.arguments = yyjson_doc_get_root(doc);
    EXPECT_FAILURE(pd_calls_write(&text, &c, &call, 1), PERIDOT_ERROR_UNSUPPORTED, "nest deeper than 64");
    yyjson_doc_free(doc);
    free(text.data);
}

static void test_described(void **state)
{
    (void)state;
    yyjson_doc *tools = read_json(weather_tools);
    struct pd_calls c = {.format = pd_call_format_find("llama3"), .tools = yyjson_doc_get_root(tools)};
    struct pd_buffer text = {0};
    EXPECT_OK(pd_calls_describe(&text, &c));
    EXPECT_OK(pd_buffer_end(&text));
    assert_non_null(strstr(text.data, "\n{\"name\": \"get_weather\", \"description\": \"Of a \\\"city\\\"\", "
                                      "\"parameters\": {\"type\":\"object\",\"properties\":{\"city\":"));
    assert_non_null(strstr(text.data, "\n{\"name\": \"ping\"}\n"));
    assert_non_null(strstr(text.data, "\n" NAMED("function_name", "{\"argument\": \"value\"}") "\n"));
    free(text.data);
    yyjson_doc_free(tools);
}

static void test_results(void **state)
{
    (void)state;
    static const char *const results[][2] = {
        {"hermes", "<tool_response>\n\1\2\n</tool_response>"}, {"llama3", "\1\2"},
        {"mistral", "[TOOL_RESULTS]\1\2[/TOOL_RESULTS]"}, {"granite", "\1\2"},
        {"mistral-v3", "[TOOL_RESULTS] {\"content\": \1\2}[/TOOL_RESULTS]"},
        {"phi4", "<|tool_response|>\1\2<|/tool_response|>"},
        {"gemma3", "```tool_output\n\1\2\n```"},
        {"gemma4", "<|tool_response>response:ping{value:<|\"|>\1\2<|\"|>}<tool_response|>"},
        {"functiongemma",
         "<start_function_response>response:ping{value:<escape>\1\2<escape>}<end_function_response>"}};
    for (size_t i = 0; i < PD_COUNT(results); i++) {
        struct pd_buffer text = {0};
        struct pd_calls c = {.format = pd_call_format_find(results[i][0])};
        EXPECT_OK(pd_calls_write_result(&text, &c, "ping", "\1\2", 2));
        EXPECT_OK(pd_buffer_end(&text));
        assert_string_equal(text.data, results[i][1]);
        free(text.data);
    }
}

/* Characters that come whole go out whole, however long a text is. */
static peridot_status expect_characters(void *user, const char *bytes, size_t size)
{
    uint32_t code;
    size_t length;
    for (size_t i = 0; i < size; i += length)
        assert_int_equal(pd_utf8_next(&code, &length, bytes + i, size - i), PD_UTF8_CHARACTER);
    *(size_t *)user += size;
    return PERIDOT_OK;
}

static peridot_status ignore_begin(void *user, const char *name, size_t size)
{
    (void)user, (void)name, (void)size;
    return PERIDOT_OK;
}

static peridot_status ignore_end(void *user)
{
    (void)user;
    return PERIDOT_OK;
}

static void test_characters(void **state)
{
    (void)state;
    static const char *const characters[] = {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    static const char begin[] = "<|tool_call>call:f{s:<|\"|>", end[] = "<|\"|>}<tool_call|>";
    for (size_t k = 0; k < PD_COUNT(characters); k++)
        for (size_t before = 0; before < 4; before++) {
            struct pd_buffer text = {0};
            size_t said = 0;
            struct pd_call_parser p = {.format = pd_call_format_find("gemma4")};
            const struct pd_call_sink sink = {&said, expect_characters, ignore_begin, expect_characters, ignore_end};
            for (size_t i = 0; i < before; i++) EXPECT_OK(pd_buffer_add(&text, "x", 1));
            for (size_t i = 0; i < 200; i++) EXPECT_OK(pd_buffer_add(&text, characters[k], strlen(characters[k])));
            size_t size = text.size;
            EXPECT_OK(pd_buffer_add(&text, begin, strlen(begin)));
            for (size_t i = 0; i < 200; i++) EXPECT_OK(pd_buffer_add(&text, characters[k], strlen(characters[k])));
            EXPECT_OK(pd_buffer_add(&text, end, strlen(end)));
            EXPECT_OK(pd_call_parser_next(&p, &sink, text.data, text.size, true));
            assert_int_equal(said, size + strlen("{\"s\":\"\"}") + 200 * strlen(characters[k]));
            free(text.data);
        }
}

/* A sink that fails is not called again, and what it fails with is given back. */
static void test_failing_sink(void **state)
{
    (void)state;
    static const char reply[] = "Let me see. " TAGGED("ping", "{\"a\": 1}");
    for (size_t cut = 1; cut < sizeof reply; cut++) {
        struct pd_call_parser p = {.format = pd_call_format_find("hermes")};
        struct transcript t = {.fails = true};
        const struct pd_call_sink sink = sink_of(&t);
        EXPECT_FAILURE(pd_call_parser_next(&p, &sink, reply, cut, true), PERIDOT_ERROR_ARGUMENT, "the sink fails");
        assert_true(t.said.size == 0 && t.n_said == 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_written), cmocka_unit_test(test_values),
                                       cmocka_unit_test(test_described), cmocka_unit_test(test_results),
                                       cmocka_unit_test(test_characters), cmocka_unit_test(test_failing_sink)};
    return cmocka_run_group_tests_name("calls_texts", tests, NULL, NULL);
}

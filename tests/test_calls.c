/* Tool calls: of each format, replies with what the parser makes of them, and whether the grammar allows them, where
 * control tokens are marks and where they are text; and lists of tools that are refused. */
#include "calls_replies.h"

#define HERMES(name, arguments) "<tool_call>\n{\"name\": \"" name "\", \"arguments\": " arguments "}\n</tool_call>"

static const struct reply hermes[] = {
    {"", "", TEXT},
    {"It rains.", NULL, TEXT},
    {"a <tool_cal", NULL, TEXT},
    {"<<<tool_cal<tool_calx>", NULL, TEXT},
    {HERMES("ping", "{}"), "{{ping {}}}", CALLS},
    {"I look.\n" HERMES("ping", "{}") "\n", "I look.\n{{ping {}}}", TEXT},
    {"\n\n" HERMES("ping", "{}"), "{{ping {}}}", CALLS},
    {"\n\n\n\n\n" HERMES("ping", "{}"), "{{ping {}}}", TEXT},
    {"\n\nIt rains.", NULL, TEXT},
    {"\n\n<tool_cal", NULL, TEXT},
    {"\n\n", NULL, TEXT},
    {"<tool_<tool_call" HERMES("ping", "{}"), "<tool_<tool_call{{ping {}}}", TEXT},
    {HERMES("get_weather", "{\"city\": \"K\xc3\xb6ln \\\"\\u00fc\\ud83d\\ude00\", \"days\": 2}"),
     "{{get_weather {\"city\": \"K\xc3\xb6ln \\\"\\u00fc\\ud83d\\ude00\", \"days\": 2}}}", CALLS},
    {HERMES("ping", "{\"a\": [1, -2.5e+3, [], {}, null, true, false, {\"b\": \"</tool_call\"}]}"),
     "{{ping {\"a\": [1, -2.5e+3, [], {}, null, true, false, {\"b\": \"</tool_call\"}]}}}", CALLS},
    {"<tool_call>{\"name\":\"ping\",\"arguments\":{}}</tool_call>", "{{ping {}}}", CALLS},
    {"<tool_call>\n  {\n  \"name\": \"ping\",\n  \"arguments\": {}\n}\n</tool_call>", "{{ping {}}}", CALLS},
    {HERMES("ping", "{}") "\n" HERMES("a.b/c:d-1", "{\"x\": null}"), "{{ping {}}}{{a.b/c:d-1 {\"x\": null}}}",
     SEVERAL},
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
    {"<tool_call>{\"name\": \"ping\", \"arguments\": {\"a\": \"\xf0\x9f\xa6\x8a\xe2\x82",
     "{{ping {\"a\": \"\xf0\x9f\xa6\x8a\xef\xbf\xbd", NONE},
    {HERMES("ping", "{\"a\": \"\\ude00\"}"), "{{ping {\"a\": \"\\ude00\"}}\n</tool_call>", NONE},
};

#define SPACES "                                "   /* as many as may follow a newline */

/* DELIMITED(begin, quote, end): replies of the formats with delimiters. */
#define DELIMITED(B, Q, E) \
    {"", "", TEXT}, \
    {"call:ping{}", NULL, TEXT}, \
    {"It " B "call:ping{}" E, "It {{ping {}}}", TEXT}, \
    {B "call:ping{}" E, "{{ping {}}}", CALLS}, \
    {B "call:get_weather{city:" Q "K\xc3\xb6ln \"\\\n\x01{}:," Q ",days:2}" E, \
     "{{get_weather {\"city\":\"K\xc3\xb6ln \\\"\\\\\\n\\u0001{}:,\",\"days\":2}}}", CALLS}, \
    {B "call:get_weather{city:" Q Q "}" E, "{{get_weather {\"city\":\"\"}}}", CALLS}, \
    {B "call:get_weather{city:" Q "<<|<|\"<esc<escape" Q "}" E, \
     "{{get_weather {\"city\":\"<<|<|\\\"<esc<escape\"}}}", CALLS}, \
    {B "call:ping{a b:1,\xc3\xa9_$:{x:[" Q "y" Q ",-1.5e3,null,true,false,[],{}]}}" E, \
     "{{ping {\"a b\":1,\"\xc3\xa9_$\":{\"x\":[\"y\",-1.5e3,null,true,false,[],{}]}}}}", CALLS}, \
    {B "call:a.b/c:d-1{x:null}" E B "call:ping{}" E, "{{a.b/c:d-1 {\"x\":null}}}{{ping {}}}", SEVERAL}, \
    {B "call:ping{}" E "\n" B "call:ping{}" E " ", "{{ping {}}}{{ping {}}}", SEVERAL}, \
    {B "call:ping{}" E "x", "{{ping {}}}x", NONE}, \
    {B "call:ping{}", "{{ping {}}}", NONE}, \
    {B "call:ping{a:" Q "x", "{{ping {\"a\":\"x", NONE}, \
    {B "call:pong{}" E, NULL, NONE}, \
    {B "ping{}" E, NULL, NONE}, \
    {B, NULL, NONE}, \
    {B "call:get_weather{days:2}" E, "{{get_weather {\"days\":2}}}", NONE}, \
    {B "call:get_weather{days:2,city:" Q "x" Q "}" E, "{{get_weather {\"days\":2,\"city\":\"x\"}}}", NONE}, \
    {B "call:get_weather{ city: " Q "x" Q " }" E, "{{get_weather { \"city\": \"x\" }}}", NONE}, \
    {B "call:get_weather{city:\"x\"}" E, "{{get_weather {\"city\":\"x\"}}}", NONE}, \
    {B "call:ping{a,b:1}" E, "{{ping {\"a,b:1}" E, NONE}, \
    {B "call:ping{:1}" E, "{{ping {:1}" E, NONE}, \
    {B "call:ping{a<b:1}" E, "{{ping {\"a<b:1}" E, NONE}, \
    {B "call:ping{a:[1}}" E, "{{ping {\"a\":[1}}" E, NONE}, \
    {B "call:ping{a:" Q "x\xfe" Q "}" E, "{{ping {\"a\":\"x\xfe" Q "}" E, NONE}, \
    {B "call:ping{ a:1}" E, "{{ping { \"a\":1}}}", NONE}

static const struct reply gemma4[] = {DELIMITED("<|tool_call>", "<|\"|>", "<tool_call|>")};
static const struct reply functiongemma[] = {DELIMITED("<start_function_call>", "<escape>", "<end_function_call>")};

/* NAMED(begin, end): of the formats with a JSON object that has name and parameters. */
#define OBJECT(name, parameters) "{\"name\": \"" name "\", \"parameters\": " parameters "}"
#define NAMED(B, E) \
    {B OBJECT("ping", "{}") E, "{{ping {}}}", CALLS}, \
    {B "{\"name\":\"get_weather\",\"parameters\":{\"city\":\"x\"}}" E, "{{get_weather {\"city\":\"x\"}}}", CALLS}, \
    {B "{\n  \"name\": \"ping\",\n  \"parameters\": {\n    \"a\": 1\n  }\n}" E, \
     "{{ping {\n    \"a\": 1\n  }}}", CALLS}, \
    {B "{\"name\": \"ping\", \"parameters\": ", NULL, NONE}, \
    {B OBJECT("ping", "[]") E, NULL, NONE}, \
    {B "{\"name\": \"ping\", \"arguments\": {}}" E, NULL, NONE}, \
    {B OBJECT("get_weather", "{}") E, "{{get_weather {}}}", NONE}

static const struct reply llama3[] = {
    NAMED("", ""),
    NAMED("<|python_tag|>", ""),
    {"", "", TEXT},
    {"It rains.", NULL, TEXT},
    {"{", NULL, TEXT},
    {"{\"name\": \"Bob\"}", NULL, TEXT},
    {OBJECT("pong", "{}"), NULL, TEXT},
    {OBJECT("pingx", "{}"), NULL, TEXT},
    {" " OBJECT("ping", "{}"), NULL, TEXT},
    {"Like " OBJECT("ping", "{}"), NULL, TEXT},
    {"Like <|python_tag|>" OBJECT("ping", "{}"), "Like {{ping {}}}", TEXT},
    {"\n\n<|python_tag|>" OBJECT("ping", "{}"), "{{ping {}}}", CALLS},
    {"<|python_tag|>print(1)", NULL, NONE},
    {"{\"type\": \"function\", \"name\": \"ping\", \"parameters\": {}}", "{{ping {}}}", CALLS},
    {"<|python_tag|>{\"type\": \"function\", \"name\": \"ping\", \"parameters\": {}}", "{{ping {}}}", CALLS},
    {OBJECT("ping", "{}") "; " OBJECT("a.b/c:d-1", "{\"x\": 1}") "\n", "{{ping {}}}{{a.b/c:d-1 {\"x\": 1}}}", SEVERAL},
    {OBJECT("ping", "{}") "\n" OBJECT("ping", "{}"), "{{ping {}}}{{ping {}}}", SEVERAL},
    {OBJECT("ping", "{}") "; ", "{{ping {}}}; ", NONE},
    {"{\n" SPACES "\"name\": \"ping\", \"parameters\": {}}", "{{ping {}}}", CALLS},
    {"{\n" SPACES "\"name\": \"ping\", \"x", NULL, NONE},
    {"{\n" SPACES " \"name\": \"ping\", \"parameters\": {}}", NULL, TEXT},
    {"{\"name\": \"ping\", \"parameters\": {\"a\": [1}}", "{{ping {\"a\": [1}}", NONE},
    {OBJECT("ping", "{}") " and so on", "{{ping {}}}and so on", NONE},
};

static const struct reply gemma3[] = {
    NAMED("", ""),
    NAMED("```json\n", "\n```"),
    {"", "", TEXT},
    {"It rains.", NULL, TEXT},
    {"```json\n{\"name\": \"Bob\", \"age\": 3}\n```\n", NULL, TEXT},
    {"```json\n[1, 2]\n```", NULL, TEXT},
    {"```json\n[", NULL, TEXT},
    {"Like " OBJECT("ping", "{}"), NULL, TEXT},
    {"`````json\n" OBJECT("ping", "{}") "\n```", "``{{ping {}}}", TEXT},
    {"I look.\n```json\n" OBJECT("ping", "{}") "\n```\n", "I look.\n{{ping {}}}", TEXT},
    {"[" OBJECT("ping", "{}") "]", "{{ping {}}}", CALLS},
    {"[\n  " OBJECT("ping", "{}") ",\n  " OBJECT("ping", "{}") "\n]", "{{ping {}}}{{ping {}}}", SEVERAL},
    {"```json\n[" OBJECT("ping", "{}") ", " OBJECT("ping", "{}") "]\n```", "{{ping {}}}{{ping {}}}", SEVERAL},
    {"```json\n" OBJECT("ping", "{}") "\n```\n```json\n" OBJECT("ping", "{}") "\n```", "{{ping {}}}{{ping {}}}",
     SEVERAL},
    {"```json\n" OBJECT("ping", "{}") "\n``` Done.", "{{ping {}}}Done.", NONE},
    {"```json\n" OBJECT("ping", "{}") "\nDone.", "{{ping {}}}}\nDone.", NONE},
};

#define ARGUED(name, arguments) "{\"name\": \"" name "\", \"arguments\": " arguments "}"

/* What the models of Hermes' format write beside its tag. */
static const struct reply hermes_bare[] = {
    {ARGUED("ping", "{}"), "{{ping {}}}", CALLS},
    {"```json\n" ARGUED("get_weather", "{\"city\": \"x\"}") "\n```", "{{get_weather {\"city\": \"x\"}}}", CALLS},
    {"```json\n{\n  \"name\": \"ping\",\n  \"arguments\": {\n    \"a\": 1\n  }\n}\n```\n",
     "{{ping {\n    \"a\": 1\n  }}}", CALLS},
    {"I look.\n```json\n" ARGUED("ping", "{}") "\n```", "I look.\n{{ping {}}}", TEXT},
    {ARGUED("ping", "{}") "\n" ARGUED("a.b/c:d-1", "{\"x\": 1}"), "{{ping {}}}{{a.b/c:d-1 {\"x\": 1}}}", SEVERAL},
    {"```json\n" ARGUED("ping", "{}") "\n```\n" HERMES("ping", "{}"), "{{ping {}}}{{ping {}}}", SEVERAL},
    {"{\"name\": \"Bob\"}", NULL, TEXT},
    {ARGUED("pong", "{}"), NULL, TEXT},
    {"Like " ARGUED("ping", "{}"), NULL, TEXT},
    {"```json\n" ARGUED("pong", "{}") "\n```", NULL, TEXT},
    {"```python\nping()\n```", NULL, TEXT},
    {OBJECT("ping", "{}"), NULL, NONE},
    {ARGUED("ping", "{}") " and so on", "{{ping {}}}and so on", NONE},
};

static const struct reply mistral[] = {
    {"", "", TEXT},
    {"It rains.", NULL, TEXT},
    {"[TOOL_CALL", NULL, TEXT},
    {"[TOOL_CALLS]ping[ARGS]{}", "{{ping {}}}", CALLS},
    {"I look.[TOOL_CALLS]ping[ARGS]{}", "I look.{{ping {}}}", TEXT},
    {"[TOOL_CALLS]get_weather[ARGS]{\"city\": \"K\xc3\xb6ln\", \"days\": 2}",
     "{{get_weather {\"city\": \"K\xc3\xb6ln\", \"days\": 2}}}", CALLS},
    {"[TOOL_CALLS]ping[ARGS]{}[TOOL_CALLS]a.b/c:d-1[ARGS]{\"x\": 1}", "{{ping {}}}{{a.b/c:d-1 {\"x\": 1}}}", SEVERAL},
    {"[TOOL_CALLS]ping[CALL_ID]abcDEF123[ARGS]{}", "{{ping {}}}", CALLS},
    {"[TOOL_CALLS]ping[CALL_ID]000000001[ARGS]{}[TOOL_CALLS]ping[CALL_ID]000000002[ARGS]{}", "{{ping {}}}{{ping {}}}",
     SEVERAL},
    {"[TOOL_CALLS]ping[CALL_ID]a-longer_one[ARGS]{}", "{{ping {}}}", NONE},
    {"[TOOL_CALLS]ping[CALL_ID][ARGS]{}", NULL, NONE},
    {"[TOOL_CALLS]ping[CALL_ID]abcDEF123{}", NULL, NONE},
    {"[TOOL_CALLS]pong[ARGS]{}", NULL, NONE},
    {"[TOOL_CALLS]ping{}", NULL, NONE},
    {"[TOOL_CALLS][ARGS]{}", NULL, NONE},
    {"[TOOL_CALLS]", NULL, NONE},
    {"[TOOL_CALLS]ping[ARGS]{} more", "{{ping {}}}more", NONE},
    {"[TOOL_CALLS]get_weather[ARGS]{\"days\": 2}", "{{get_weather {\"days\": 2}}}", NONE},
};

/* LISTED(begin, end): replies of the formats with a list after a token. */
#define LISTED(B, E) \
    {"", "", TEXT}, \
    {"It rains.", NULL, TEXT}, \
    {"[" ARGUED("ping", "{}") "]", NULL, TEXT}, \
    {B "[" ARGUED("ping", "{}") "]" E, "{{ping {}}}", CALLS}, \
    {B " [\n    " ARGUED("ping", "{}") "\n]" E "\n", "{{ping {}}}", CALLS}, \
    {"I look." B "[" ARGUED("ping", "{}") "]" E, "I look.{{ping {}}}", TEXT}, \
    {B "[" ARGUED("ping", "{}") "," ARGUED("ping", "{}") "]" E, "{{ping {}}}{{ping {}}}", SEVERAL}, \
    {B "[" ARGUED("get_weather", "{\"city\": \"x\"}") ", " ARGUED("ping", "{}") "]" E, \
     "{{get_weather {\"city\": \"x\"}}}{{ping {}}}", SEVERAL}, \
    {B "[]" E, NULL, NONE}, \
    {B "[" ARGUED("pong", "{}") "]" E, NULL, NONE}, \
    {B " [", NULL, NONE}

static const struct reply olmo[] = {
    {"", "", TEXT},
    {"It rains.", NULL, TEXT},
    {"ping()", NULL, TEXT},
    {"<function_calls>ping()</function_calls>", "{{ping {}}}", CALLS},
    {"I look.<function_calls>\nping( )\n</function_calls>\n", "I look.{{ping { }}}", TEXT},
    {"<function_calls>get_weather(city=\"a)=,}\", days= 2)</function_calls>",
     "{{get_weather {\"city\":\"a)=,}\", \"days\": 2}}}", CALLS},
    {"<function_calls>get_weather(city=\"x\" )</function_calls>", "{{get_weather {\"city\":\"x\" }}}", CALLS},
    {"<function_calls>ping(a={\"b\": [1, {}]}, c=true)</function_calls>",
     "{{ping {\"a\":{\"b\": [1, {}]}, \"c\":true}}}", CALLS},
    {"<function_calls>ping()\na.b/c:d-1(x=1)</function_calls>", "{{ping {}}}{{a.b/c:d-1 {\"x\":1}}}", SEVERAL},
    /* near misses */
    {"<function_calls>pong()</function_calls>", NULL, NONE},
    {"<function_calls>ping{}</function_calls>", NULL, NONE},
    {"<function_calls>ping(a=1}</function_calls>", "{{ping {\"a\":1}</function_calls>", NONE},
    {"<function_calls>ping(\"a\"=1)</function_calls>", "{{ping {\"a\"=1)</function_calls>", NONE},
    {"<function_calls>ping(a=b)</function_calls>", "{{ping {\"a\":b)</function_calls>", NONE},
    {"<function_calls>ping(a=[1)</function_calls>", "{{ping {\"a\":[1)</function_calls>", NONE},
    {"<function_calls>", NULL, NONE},
};

#define WITH_ID(id) "{\"name\": \"ping\", \"arguments\": {}, \"id\": \"" id "\"}"
static const struct reply mistral_v3[] = {
    LISTED("[TOOL_CALLS]", ""),
    {"[TOOL_CALLS][" WITH_ID("abcDEF123") "]", "{{ping {}}}", CALLS},
    {"[TOOL_CALLS] [{\"name\":\"ping\",\"arguments\":{},\"id\":\"abcDEF123\"}, " ARGUED("ping", "{}") ", "
     WITH_ID("000000001") "]", "{{ping {}}}{{ping {}}}{{ping {}}}", SEVERAL},
    {"[TOOL_CALLS][" WITH_ID("call_1") "]", "{{ping {}}}", NONE},
    {"[TOOL_CALLS][" WITH_ID("") "]", "{{ping {}}}, \"id\": \"\"}]", NONE},
    {"[TOOL_CALLS][{\"name\": \"ping\", \"arguments\": {}, \"ix", "{{ping {}}}, \"ix", NONE},
    {"[TOOL_CALLS][{\"name\": \"ping\", \"arguments\": {}, \"id\": \"abc", "{{ping {}}}", NONE},
};
static const struct reply phi4[] = {LISTED("<|tool_call|>", "<|/tool_call|>")};
static const struct reply granite[] = {
    LISTED("<|tool_call|>", ""),
    {"<tool_call>[" ARGUED("ping", "{}") "]", "{{ping {}}}", CALLS},
    {"<tool_call>[", NULL, NONE},
};

#define CODER(name, tags) "<tool_call>\n<function=" name ">\n" tags "</function>\n</tool_call>"
#define CODER_TAG(name, value) "<parameter=" name ">\n" value "\n</parameter>\n"
static const struct reply qwen3_coder[] = {
    {"", "", TEXT},
    {"It rains.", NULL, TEXT},
    {"<function=ping>\n</function>", NULL, TEXT},
    {CODER("ping", ""), "{{ping {}}}", CALLS},
    {"I look.\n\n" CODER("ping", ""), "I look.\n\n{{ping {}}}", TEXT},
    {CODER("get_weather", CODER_TAG("city", "K\xc3\xb6ln \"\n\n") CODER_TAG("days", "2")),
     "{{get_weather {\"city\":\"K\xc3\xb6ln \\\"\\n\\n\",\"days\":2}}}", CALLS},
    {CODER("get_weather", CODER_TAG("city", "</parameter>\n</para\n</paramete")),
     "{{get_weather {\"city\":\"</parameter>\\n</para\\n</paramete\"}}}", CALLS},
    {CODER("get_weather", CODER_TAG("city", "")), "{{get_weather {\"city\":\"\"}}}", CALLS},
    {CODER("ping", "") "\n" CODER("ping", ""), "{{ping {}}}{{ping {}}}", SEVERAL},
    /* near misses */
    {CODER("pong", ""), NULL, NONE},
    {"<tool_call>\n<function=ping>\n<parameter=a>\n1\n</function>", "{{ping {\"a\":\"1\\n</function>", NONE},
    {CODER("get_weather", CODER_TAG("days", "True")), "{{get_weather {\"days\":True\n</parameter>\n</function>\n"
     "</tool_call>", NONE},
    {"<tool_call>\n<function=", NULL, NONE},
};

#define TABLE(format, replies) {format, replies, PD_COUNT(replies)}
static const struct {
    const char *format;
    const struct reply *replies;
    size_t n;
} tables[] = {TABLE("hermes", hermes), TABLE("hermes", hermes_bare), TABLE("generic", hermes), TABLE("gemma4", gemma4),
              TABLE("functiongemma", functiongemma), TABLE("llama3", llama3), TABLE("gemma3", gemma3),
              TABLE("mistral", mistral), TABLE("mistral-v3", mistral_v3), TABLE("phi4", phi4),
              TABLE("granite", granite), TABLE("olmo", olmo), TABLE("functionary", functionary),
              TABLE("deepseek", deepseek), TABLE("atem", atem), TABLE("harmony", harmony),
              TABLE("qwen3-coder", qwen3_coder)};

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
        fail_msg("%s\nof %s is parsed as\n%s\nrather than\n%s", reply->text, pd_call_format_name(c->format),
                 t.said.data, expected);
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

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && memcmp(text + n - n_end, end, n_end) == 0;
}

static void test_replies(void **state)
{
    (void)state;
    struct pd_calls c = {0};
    yyjson_doc *doc = read_tools(&c, weather_tools);
    for (size_t i = 0; i < PD_COUNT(tables); i++)
        for (size_t k = 0; k < tables[i].n; k++)
            for (int with = 0; with < 2; with++) {
                char bytes[1000];
                c.marks = with ? marks_of(tables[i].format) : 0;
                const struct reply *reply = &tables[i].replies[k];
                if (c.marks && ends_with(reply->text, "</tool")) continue;   /* a mark is there or not */
                size_t size = put_marks(bytes, reply->text, strlen(reply->text), c.marks);
                c.format = pd_call_format_find(tables[i].format);
                expect_parsed(reply, &c, bytes, size);
                expect_allowed(reply, &c, bytes, size);
            }
    yyjson_doc_free(doc);
}

#define LONGEST "0123456789012345678901234567890123456789012345678901234567890123"

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
    static const char listed[] = OBJECT("a.b/c:d-1", "{\"x\": 1}");
    c.choice = PD_CALL_AUTO;
    c.format = pd_call_format_find("gemma3");
    EXPECT_OK(pd_calls_compile(&r, &c));
    assert_true(accepts(&r, listed, sizeof listed - 1));   /* it is text */
    pd_rules_free(&r);
    parse_all_ways(&t, &c, listed, sizeof listed - 1);
    assert_string_equal(t.said.data, listed);
    free(t.said.data);
    c = (struct pd_calls){.format = pd_call_format_find("hermes")};
    static const char unknown[] = HERMES("pong", "{}"), too_long[] = HERMES(LONGEST "x", "{}");
    parse_all_ways(&t, &c, unknown, sizeof unknown - 1);
    assert_string_equal(t.said.data, "{{pong {}}}");
    free(t.said.data);
    parse_all_ways(&t, &c, too_long, sizeof too_long - 1);
    assert_string_equal(t.said.data, too_long);
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
    {"[{\"name\":\"" LONGEST "x\"}]", "tool 0: its name",
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

/* Arguments are objects, whatever else the schema has. */
static void test_objects(void **state)
{
    (void)state;
    static const char *const schemas[] = {
        "true", "{}", "{\"type\":\"object\",\"nullable\":true}", "{\"type\":[\"object\",\"null\",\"array\"]}",
        "{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"object\"}]}", "{\"enum\":[1,{},null,[]]}",
        "{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"type\":[\"object\",\"null\"]}}}"};
    static const char *const others[] = {HERMES("f", "null"), HERMES("f", "[]"), HERMES("f", "1"), HERMES("f", "\"\"")};
    static const char good[] = HERMES("f", "{}");
    for (size_t i = 0; i < PD_COUNT(schemas); i++) {
        struct pd_calls c = {.format = pd_call_format_find("hermes")};
        struct pd_rules r;
        char list[200];
        snprintf(list, sizeof list, "[{\"name\":\"f\",\"parameters\":%s}]", schemas[i]);
        yyjson_doc *doc = read_tools(&c, list);
        EXPECT_OK(pd_calls_compile(&r, &c));
        assert_true(accepts(&r, good, sizeof good - 1));
        for (size_t k = 0; k < PD_COUNT(others); k++) assert_false(accepts(&r, others[k], strlen(others[k])));
        pd_rules_free(&r);
        yyjson_doc_free(doc);
    }
}

/* What the dialect with delimiters cannot have. */
static void test_dialect(void **state)
{
    (void)state;
    static const char *const lists[][2] = {
        {"{\" b\":{}}", "tool a: #: calls cannot have a property  b"},
        {"{\"b \":{}}", "tool a: #: calls cannot have a property b "},
        {"{\"\":{}}", "tool a: #: calls cannot have a property "},
        {"{\"b<c\":{}}", "tool a: #: calls cannot have a property b<c"},
        {"{\"b\":{\"const\":{\":\":1}}}", "tool a: #/properties/b: calls cannot have a property :"},
        {"{\"b\":{\"enum\":[\"x<escape>\"]}}",
         "tool a: #/properties/b: calls cannot have a constant with <escape> in it"}};
    struct pd_rules r;
    for (size_t i = 0; i < PD_COUNT(lists); i++)
        for (int json = 0; json < 2; json++) {
            struct pd_calls c = {.format = pd_call_format_find(json ? "hermes" : "functiongemma")};
            char list[200];
            snprintf(list, sizeof list, "[{\"name\":\"a\",\"parameters\":{\"properties\":%s}}]", lists[i][0]);
            yyjson_doc *doc = read_tools(&c, list);
            if (json) EXPECT_OK(pd_calls_compile(&r, &c));
            else EXPECT_FAILURE(pd_calls_compile(&r, &c), PERIDOT_ERROR_UNSUPPORTED, lists[i][1]);
            pd_rules_free(&r);
            yyjson_doc_free(doc);
        }
}

/* Members come in the order of their names, as the templates sort them. */
static void test_order(void **state)
{
    (void)state;
    static const char sorted[] = "<|tool_call>call:f{A:1,ab:1,b:1}<tool_call|>",
                      given[] = "<|tool_call>call:f{b:1,A:1,ab:1}<tool_call|>";
    struct pd_calls c = {.format = pd_call_format_find("gemma4")};
    struct pd_rules r;
    yyjson_doc *doc = read_tools(&c, "[{\"name\":\"f\",\"parameters\":{\"required\":[\"b\",\"A\",\"ab\"],"
                                     "\"additionalProperties\":{\"const\":1}}}]");
    EXPECT_OK(pd_calls_compile(&r, &c));
    assert_true(accepts(&r, sorted, sizeof sorted - 1));
    assert_false(accepts(&r, given, sizeof given - 1));
    pd_rules_free(&r);
    yyjson_doc_free(doc);
}

/* Any budget of work is enough, or said to be too small. */
static void test_budgets(void **state)
{
    (void)state;
    static const char *const names[] = {"gemma3", "gemma4"};
    struct pd_calls c = {.parallel = true};
    yyjson_doc *doc = read_tools(&c, weather_tools);
    for (size_t i = 0; i < PD_COUNT(names); i++) {
        peridot_status status = PERIDOT_ERROR_UNSUPPORTED;
        uint64_t work = 1;
        c.format = pd_call_format_find(names[i]);
        for (; status == PERIDOT_ERROR_UNSUPPORTED; work += 1 + work / 16) {
            struct pd_rules r;
            status = pd_calls_compile_within(&r, work, &c);
            if (status != PERIDOT_OK) assert_non_null(strstr(pd_error(), "too large"));
            pd_rules_free(&r);
        }
        EXPECT_OK(status);
        assert_in_range(work, 100000, 5000000);
    }
    yyjson_doc_free(doc);
}

/* As deep as arguments nest, and no deeper. */
static void test_depth(void **state)
{
    (void)state;
    for (size_t i = 0; pd_call_format_name_at(i); i++) {
        struct pd_calls c = {.format = pd_call_format_find(pd_call_format_name_at(i)), .choice = PD_CALL_REQUIRED};
        static const char begin[] = "{\"a\":", deep_tools[] =
            "[{\"name\":\"ping\",\"parameters\":{\"properties\":{\"a\":{\"type\":\"object\"}}}}]";
        bool keywords = c.format->keywords, tags = c.format->tags;
        yyjson_doc *doc = read_tools(&c, tags ? deep_tools : weather_tools);
        struct pd_rules r;
        struct pd_walk w;
        struct pd_buffer text = {0};
        int depth = 0;
        EXPECT_OK(pd_calls_compile(&r, &c));
        EXPECT_OK(pd_calls_write(&text, &c, &(struct pd_call){"ping", NULL}, 1));
        EXPECT_OK(pd_buffer_end(&text));
        if (tags) text.size = (size_t)(strstr(text.data, c.format->tags->end) - text.data);
        else while (text.data[--text.size] != (keywords ? '(' : '{'));
        pd_walk_begin(&w, &r);
        assert_true(pd_walk_take(&w, &r, text.data, text.size));
        bool json = !pd_call_delimiter(c.format, 0);
        for (;; depth++) {
            char tag[64];
            if (tags) snprintf(tag, sizeof tag, "%sa%s", c.format->tags->name, c.format->tags->value);
            const char *first = tags ? tag : keywords ? "(a=" : NULL;
            const char *next = first && depth == 0 ? first : json ? begin : "{a:";
            if (!pd_walk_take(&w, &r, next, strlen(next))) break;
            EXPECT_OK(pd_buffer_add(&text, next, strlen(next)));
        }
        assert_in_range(depth, 55, PD_MAX_CALLS);
        struct transcript t;
        parse(&t, &c, text.data, text.size, 0);   /* what the grammar allows is not too deep for the parser */
        assert_int_equal(strlen(t.said.data), strlen("{{ping ") + 5 * (size_t)depth);
        free(t.said.data);
        free(text.data);
        pd_rules_free(&r);
        yyjson_doc_free(doc);
    }
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
        {"'<tool_call>\\n<function=' + tool_call.name + '>\\n' '<parameter=' + args_name + '>\\n'", "qwen3-coder"},
        {"{{- '<|tool_call>call:' + function['name'] + '{' -}} {{ '<tool_call>' }}", "gemma4"},
        {"{{- '<start_function_call>call:' + function['name'] -}}", "functiongemma"},
        {"{{- '{\"name\": \"' + tool_call.name + '\", ' }}{{- '\"parameters\": ' }} role == \"ipython\"", "llama3"},
        {"{{- '[TOOL_CALLS]' + tool['function']['name'] + '[ARGS]' + arguments }}", "mistral"},
        {"{{- '[TOOL_CALLS] [' }}", "mistral-v3"},
        {"'<|tool|>' + message['tools'] + '<|/tool|>'", "phi4"},
        {"respond only with <|tool_call|> followed by a JSON list of tools used.", "granite"},
        {"{{- '<function_calls>' -}}{%- for tool_call in message['tool_calls'] %}", "olmo"},
        {"{{ '<function=' + name + '>' + arguments | tojson + '</function>' }}{{ '<|python_tag|>' }}", "functionary"},
        {CALL_BEGIN "' + name + '\\n' + '```json' + '\\n' + arguments", "deepseek"},
        {"'<|message|>' + '<atem:function_calls>\\n<atem:invoke name=\"' + name", "atem"},
        {"'functions.' + tool_call.name + '<|channel|>commentary ' }}{{- '<|call|>' }}", "harmony"},
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
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_budgets),
                                       cmocka_unit_test(test_depth), cmocka_unit_test(test_objects),
                                       cmocka_unit_test(test_dialect),
                                       cmocka_unit_test(test_order), cmocka_unit_test(test_formats)};
    return cmocka_run_group_tests_name("calls", tests, NULL, NULL);
}

/* Replies with calls for test_calls.c: how they are given, and those of the formats that have no like. */
#ifndef CALLS_REPLIES_H
#define CALLS_REPLIES_H

#include "calls_fixture.h"

/* Modes in which a reply is allowed. */
enum { TEXT = 1, ONE = 2, SEVERAL = 4, CALLS = ONE | SEVERAL, NONE = 0 };

struct reply {
    const char *text, *parsed;     /* parsed NULL: all of it is text */
    unsigned allowed;
};

static const struct reply functionary[] = {
    {"", "", TEXT},
    {"It rains.", NULL, TEXT},
    {"<function", NULL, TEXT},
    {"<function=ping>{}</function>", "{{ping {}}}", CALLS},
    {"I look.<function=get_weather>{\"city\": \"</function>\"}</function>\n",
     "I look.{{get_weather {\"city\": \"</function>\"}}}", TEXT},
    {"<function=ping>{}</function><function=a.b/c:d-1>{\"x\": 1}</function>",
     "{{ping {}}}{{a.b/c:d-1 {\"x\": 1}}}", SEVERAL},
    {"<function=ping>{}</function> more", "{{ping {}}}more", NONE},
    {"<function=ping>{}", "{{ping {}}}", NONE},
    {"<function=pong>{}</function>", NULL, NONE},
    {"<function=ping>[]</function>", NULL, NONE},
};

#define CALLS_BEGIN TOOL_TOKEN("calls\xe2\x96\x81" "begin")
#define CALLS_END TOOL_TOKEN("calls\xe2\x96\x81" "end")
#define CALL_BEGIN TOOL_TOKEN("call\xe2\x96\x81" "begin") "function" TOOL_TOKEN("sep")
#define CALL_END TOOL_TOKEN("call\xe2\x96\x81" "end")
#define FENCED(name, arguments) CALL_BEGIN name "\n```json\n" arguments "\n```" CALL_END

static const struct reply deepseek[] = {
    {"", "", TEXT},
    {"```json\n{}\n```", NULL, TEXT},
    {CALLS_BEGIN FENCED("ping", "{}") CALLS_END, "{{ping {}}}", CALLS},
    {"I look.\n" CALLS_BEGIN FENCED("ping", "{}") CALLS_END "\n", "I look.\n{{ping {}}}", TEXT},
    {CALLS_BEGIN CALL_BEGIN "get_weather\n```json\n{\"city\": \"```\"}```" CALL_END CALLS_END,
     "{{get_weather {\"city\": \"```\"}}}", CALLS},
    {CALLS_BEGIN FENCED("ping", "{}") "\n" FENCED("a.b/c:d-1", "{\"x\": 1}") CALLS_END,
     "{{ping {}}}{{a.b/c:d-1 {\"x\": 1}}}", SEVERAL},
    {CALLS_BEGIN FENCED("pong", "{}") CALLS_END, NULL, NONE},
    {CALLS_BEGIN CALL_BEGIN "ping{}" CALL_END CALLS_END, NULL, NONE},
    {CALLS_BEGIN CALLS_END, NULL, NONE},
};

#define FINAL "<|channel|>final<|message|>"

static const struct reply harmony[] = {
    {FINAL, "", TEXT},
    {FINAL "It rains.", "It rains.", TEXT},
    {FINAL "It rains. to=functions.ping", "It rains. to=functions.ping", TEXT},
    {"<|start|>assistant" FINAL "It rains.", "It rains.", TEXT},
    {HARMONY("ping", "{}"), "{{ping {}}}", CALLS},
    {"<|start|>assistant" HARMONY("ping", "{}"), "{{ping {}}}", CALLS},
    {HARMONY("ping", "{}") "<|end|>", "{{ping {}}}", CALLS},
    {HARMONY_TO("ping", "{}"), "{{ping {}}}", CALLS},
    {"<|start|>assistant" HARMONY_TO("ping", "{}"), "{{ping {}}}", CALLS},
    {" to=functions.ping<|channel|>commentary <|constrain|>json<|message|>{}", "{{ping {}}}", CALLS},
    {"<|channel|>commentary to=functions.ping json<|message|>{}", "{{ping {}}}", CALLS},
    {"<|channel|>commentary<|message|>I look.\n" HARMONY_NEXT HARMONY_TO("ping", "{}"), "I look.\n{{ping {}}}", TEXT},
    {HARMONY_TO("a.b/c:d-1", "{\"x\": 1}") HARMONY_NEXT HARMONY("ping", "{}"), "{{a.b/c:d-1 {\"x\": 1}}}{{ping {}}}",
     SEVERAL},
    {HARMONY("get_weather", "{\"city\": \"<end>\"}"), "{{get_weather {\"city\": \"<end>\"}}}", CALLS},
    {"<|channel|>commentary<|message|>I look.\n" HARMONY_NEXT HARMONY("ping", "{}"), "I look.\n{{ping {}}}", TEXT},
    {HARMONY("a.b/c:d-1", "{\"x\": 1}") HARMONY_NEXT HARMONY("ping", "{}"), "{{a.b/c:d-1 {\"x\": 1}}}{{ping {}}}",
     SEVERAL},
    /* near misses */
    {"", "", NONE},
    {"It rains.", NULL, NONE},
    {HARMONY("pong", "{}"), NULL, NONE},
    {"<|channel|>commentary to=ping<|message|>", NULL, NONE},
    {HARMONY_TO("pong", "{}"), NULL, NONE},
    {" to=functions.ping<|constrain|>json<|message|>{}", NULL, NONE},
    {" to=functions.ping<|channel|>commentary <|constrain|><|message|>{}", NULL, NONE},
    {HARMONY("ping", "{}") HARMONY_TO("ping", "{}"),
     "{{ping {}}}to=functions.ping<|channel|>commentary json<|message|>{}", NONE},
    {HARMONY("ping", "{}") "x", "{{ping {}}}x", NONE},
};

#define USER " to=user<|message|>"
#define TEXT_OF_ATEM(text) {USER text, text, TEXT}

static const struct reply atem[] = {
    TEXT_OF_ATEM(""),
    TEXT_OF_ATEM("It rains."),
    TEXT_OF_ATEM("Like <atem:function_calls>\n<atem:invoke name=\"ping\">\n</atem:invoke> to=ping"),
    TEXT_OF_ATEM(" to=ping"),
    {"<|start|>assistant" USER "It rains.", "It rains.", TEXT},
    {ATEM("ping", ""), "{{ping {}}}", CALLS},
    {"<|start|>assistant" ATEM("ping", ""), "{{ping {}}}", CALLS},
    {ATEM("ping", "") "<|eom|>", "{{ping {}}}", CALLS},
    {USER "I look.\n" ATEM_NEXT ATEM("ping", ""), "I look.\n{{ping {}}}", TEXT},
    {ATEM("get_weather", ATEM_TAG("city", " K\xc3\xb6ln \"\\\n\x01<</atem:</atem:parameter/ ") ATEM_TAG("days", "2")),
     "{{get_weather {\"city\":\" K\xc3\xb6ln \\\"\\\\\\n\\u0001<</atem:</atem:parameter/ \",\"days\":2}}}", CALLS},
    {ATEM("get_weather", ATEM_TAG("city", "")), "{{get_weather {\"city\":\"\"}}}", CALLS},
    {ATEM("ping", ATEM_TAG("a b", "1") ATEM_TAG("\xc3\xa9_$", "x")),
     "{{ping {\"a b\":\"1\",\"\xc3\xa9_$\":\"x\"}}}", CALLS},
    {ATEM("a.b/c:d-1", ATEM_TAG("x", "null")) ATEM_NEXT ATEM("ping", ""), "{{a.b/c:d-1 {\"x\":null}}}{{ping {}}}",
     SEVERAL},
    /* near misses */
    {"", "", NONE},
    {"It rains.", NULL, NONE},
    {ATEM("pong", ""), NULL, NONE},
    {" to=ping<|message|>", NULL, NONE},
    {" to=ping<|message|><atem:function_calls>\n<atem:invoke name=\"pinga\">\n</atem:invoke>", NULL, NONE},
    {ATEM("ping", "") "x", "{{ping {}}}x", NONE},
    {ATEM("get_weather", ATEM_TAG("days", "2")), "{{get_weather {\"days\":2}}}", NONE},
    {ATEM("get_weather", ATEM_TAG("city", "x") ATEM_TAG("days", "10")), "{{get_weather {\"city\":\"x\",\"days\":10}}}",
     NONE},
    {ATEM("get_weather", ATEM_TAG("days", "2x")),
     "{{get_weather {\"days\":2x</atem:parameter>\n</atem:invoke>\n</atem:function_calls>", NONE},
    {ATEM("a.b/c:d-1", ATEM_TAG("x", "-")),
     "{{a.b/c:d-1 {\"x\":-</atem:parameter>\n</atem:invoke>\n</atem:function_calls>", NONE},
    {" to=ping<|message|><atem:function_calls>\n<atem:invoke name=\"ping\">\n<atem:parameter name=\"a",
     "{{ping {\"a", NONE},
    {ATEM("ping", "<atem:x"), "{{ping {x</atem:invoke>\n</atem:function_calls>", NONE},
};

#endif

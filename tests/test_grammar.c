/* Grammars: of each schema, documents that its automaton accepts and documents that it does not; what is refused, with
 * the sentence; the masks of tokens beside a walk of each token alone. */
#include "format_fixture.h"

#include "grammar/grammar.h"
#include "grammar/schema.h"

static bool accepts(const struct pd_rules *r, const char *text)
{
    struct pd_walk w;
    pd_walk_begin(&w, r);
    return pd_walk_take(&w, r, text, strlen(text)) && pd_walk_is_complete(&w, r);
}

static void expect_accepted(const struct pd_rules *r, const char *schema, const char *text, bool accepted)
{
    if (accepts(r, text) != accepted) fail_msg("%s\nshould %s\n%s", schema, accepted ? "accept" : "reject", text);
}

struct lists {
    const char *schema;
    const char *good[16], *bad[16];
};

#define ESCAPED_PAIR "\"\\ud83d\\ude00\""

static const struct lists lists[] = {
    {"true",
     {"1", "null", "true", "{}", "[]", " {\"a\": [1, {\"b\": null}]}", "\"a\\u00e9\\n\"", "-0.5e+12", "[]\n",
      ESCAPED_PAIR, "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"", "[\n  1,\n  2\n]", "{\"a\":1,\"a\":2}", "\"\\/\""},
     {"", "01", "1.", ".5", "+1", "tru", "truex", "[1,]", "{\"a\"}", "{a:1}", "\"a", "\"\n\"", "\"\\x\"", "\"\\ud83d\"",
      "\"\\ude00\"", "[1 2]"}},
    {"{}", {"{\"a\":\"b\"}"}, {"\"\xff\"", "\"\xc3\"", "\"\xed\xa0\x80\"", "\"\xc0\x80\"", "\"\xf4\x90\x80\x80\"",
                               "1e999", "\"\\ud83d\\ud83d\"", "[1]\n\n", "  1",
                              "[1,  2]", "\"\\ud83dx\"", "\"\\ud83d\\u0041\"", "nul", "1 2", "{\"a\":1}}"}},
    {"{\"type\":\"object\"}", {"{}", "{\"a\":[{}]}", "{\n \"x\": 1\n}"},
     {"[]", "1", "null", "\"a\"", "{,}", "{\"a\":1,}"}},
    {"{\"type\":[\"string\",\"null\"]}", {"\"\"", "null"}, {"1", "nulll", "[]"}},
    {"{\"type\":\"boolean\"}", {"true", "false"}, {"null", "True", "1"}},
    {"{\"enum\":[\"a\",\"ab\",1,null,{\"k\":[1,2]}]}",
     {"\"a\"", "\"ab\"", "1", "null", "{\"k\":[1,2]}", "{ \"k\": [ 1, 2 ] }"},
     {"\"abc\"", "\"\"", "12", "{}", "{\"k\":[1]}"}},
    {"{\"const\":\"a\\\"\\n\\u00e9\"}", {"\"a\\\"\\n\xc3\xa9\""}, {"\"a\"", "\"a\\\"\\n\\u00e9\""}},
    {"{\"type\":\"string\",\"enum\":[\"x\",null]}", {"\"x\""}, {"null"}},
    {"{\"type\":\"integer\",\"minimum\":-5,\"maximum\":120}",
     {"0", "-5", "-1", "120", "99", "119", "7"}, {"-6", "121", "1000", "-0", "1.0", "05", "-10", "1e2"}},
    {"{\"type\":\"integer\",\"exclusiveMinimum\":0,\"exclusiveMaximum\":10}", {"1", "9"}, {"0", "10", "-1", "11"}},
    {"{\"type\":\"integer\",\"minimum\":1.5,\"maximum\":99.5}", {"2", "99", "50"}, {"1", "100", "0"}},
    {"{\"type\":\"integer\",\"minimum\":1000}", {"1000", "99999", "123456789012345678"},
     {"999", "-1000", "1234567890123456789"}},
    {"{\"type\":\"integer\",\"maximum\":-12}", {"-12", "-13", "-100"}, {"-11", "0", "12", "-9", "-1"}},
    {"{\"type\":\"integer\",\"minimum\":0,\"maximum\":9223372036854775807}", {"0", "922337203685477580"}, {"-1"}},
    {"{\"type\":\"number\",\"minimum\":0,\"maximum\":1}",
     {"0", "1", "0.5", "1.0", "0.999", "0.0"}, {"1.01", "-0.1", "2", "1e0", "10", "1.00001"}},
    {"{\"type\":\"number\",\"exclusiveMinimum\":0.25,\"exclusiveMaximum\":12.5}",
     {"0.26", "0.2500001", "12.49", "12", "1", "12.4999"}, {"0.25", "0.250", "12.5", "12.50", "13", "0.2", "0", "-1"}},
    {"{\"type\":\"number\",\"maximum\":-0.5}", {"-0.5", "-1", "-0.51", "-20.25"},
     {"-0.4", "0", "0.6", "-0", "-0.49999"}},
    {"{\"type\":\"number\",\"multipleOf\":1,\"minimum\":3}", {"3", "10"}, {"3.5", "2"}},
    {"{\"type\":\"number\"}", {"1", "-2.5e-10", "0", "1E5", "123456789012345"},
     {"1e100", "-", "1e", "1e+", "00", "1234567890123456"}},
    {"{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}",
     {"\"ab\"", "\"a\xc3\xa9\\n\"", "\"\\ud83d\\ude00x\"", "\"\xf0\x9f\x98\x80\xf0\x9f\x98\x80\""},
     {"\"a\"", "\"abcd\"", "\"\"", "\"\xf0\x9f\x98\x80\""}},
    {"{\"type\":\"string\",\"pattern\":\"^[a-z]{2,3}-\\\\d+$\"}", {"\"ab-1\"", "\"abc-0099\""},
     {"\"a-1\"", "\"abcd-1\"", "\"ab-\"", "\"AB-1\""}},
    {"{\"type\":\"string\",\"pattern\":\"b+c\"}", {"\"bc\"", "\"xxbbcyy\"", "\"bbbc\"", "\"\xc3\xa9" "bc\""},
     {"\"b\"", "\"cb\"", "\"\"", "\"BC\""}},
    {"{\"pattern\":\"^(foo|ba[rz])?$\",\"type\":\"string\"}", {"\"\"", "\"foo\"", "\"baz\""},
     {"\"fo\"", "\"foobar\"", "\"ba\""}},
    {"{\"type\":\"string\",\"pattern\":\"^[^a]$\"}", {"\"b\"", "\"\\n\"", "\"\\\"\"", "\"\xc3\xa9\"", "\"\\\\\""},
     {"\"a\"", "\"\"", "\"bb\""}},
    {"{\"type\":\"string\",\"pattern\":\"^\\\\w+(\\\\.\\\\w+)*$\",\"maxLength\":5}",
     {"\"a\"", "\"a.b.c\"", "\"abcde\""}, {"\"abcdef\"", "\".a\"", "\"a.\""}},
    {"{\"type\":\"string\",\"pattern\":\"(a^b|c)\"}", {"\"c\"", "\"xcx\""}, {"\"b\"", "\"ab\"", "\"bb\""}},
    {"{\"type\":\"string\",\"pattern\":\"(^a|b$)\"}", {"\"a\"", "\"axx\"", "\"xxb\"", "\"b\""},
     {"\"xa\"", "\"bx\"", "\"\""}},
    {"{\"type\":\"string\",\"pattern\":\"^.*?\\\\u00e9\\\\x41\\\\/[\\\\]\\\\-x]$\"}",
     {"\"\xc3\xa9" "A/]\"", "\"zz\xc3\xa9" "A/-\""}, {"\"\xc3\xa9" "A/y\"", "\"A/]\""}},
    {"{\"type\":\"string\",\"pattern\":\"^[\\\\u00e9-\\\\u4e2d]+$\"}", {"\"\xc3\xa9\"", "\"\xe4\xb8\xad\xc4\x80\""},
     {"\"\xc3\xa8\"", "\"\xe4\xb8\xae\"", "\"a\""}},
    {"{\"type\":\"string\",\"format\":\"date\"}",
     {"\"2024-02-29\"", "\"2000-02-29\"", "\"1999-12-31\"", "\"0001-01-01\""},
     {"\"2023-02-29\"", "\"1900-02-29\"", "\"2024-13-01\"", "\"2024-04-31\"", "\"0000-01-01\"", "\"2024-1-1\"",
      "\"2024-00-10\""}},
    {"{\"type\":\"string\",\"format\":\"date-time\"}",
     {"\"2024-02-29T23:59:59Z\"", "\"2024-05-05T01:02:03.456+05:30\""},
     {"\"2024-02-30T00:00:00Z\"", "\"2024-02-01 00:00:00Z\"", "\"2024-02-01T24:00:00Z\"", "\"2024-02-01T00:00:00\""}},
    {"{\"type\":\"string\",\"format\":\"time\"}", {"\"00:00:00Z\"", "\"23:59:59.9-01:00\""},
     {"\"24:00:00Z\"", "\"1:00:00Z\"", "\"00:00:00\""}},
    {"{\"type\":\"string\",\"format\":\"duration\"}",
     {"\"P3D\"", "\"PT5M\"", "\"P1Y2M3DT4H5M6S\"", "\"P4W\"", "\"P1Y\""},
     {"\"P\"", "\"PT\"", "\"P1Y3D\"", "\"P1W2D\"", "\"3D\"", "\"P1DT\""}},
    {"{\"type\":\"string\",\"format\":\"email\"}", {"\"a.b@example.com\""},
     {"\"a@\"", "\"@b.c\"", "\"a b@c.d\"", "\"a..b@c.d\""}},
    {"{\"type\":\"string\",\"format\":\"hostname\"}", {"\"a\"", "\"www.example-1.org\""},
     {"\"\"", "\"-a\"", "\"a-\"", "\"a..b\"", "\"a_b\""}},
    {"{\"type\":\"string\",\"format\":\"ipv4\"}", {"\"0.0.0.0\"", "\"255.249.100.99\""},
     {"\"256.1.1.1\"", "\"1.1.1\"", "\"01.1.1.1\"", "\"1.1.1.1.1\""}},
    {"{\"type\":\"string\",\"format\":\"ipv6\"}", {"\"::\"", "\"::1\"", "\"1:2:3:4:5:6:7:8\"", "\"fe80::1:2\"",
                                                   "\"::ffff:1.2.3.4\"", "\"1::\""},
     {"\"1:2:3:4:5:6:7\"", "\"1::2::3\"", "\"12345::\"", "\":::\"", "\"1:2:3:4:5:6:7:8:9\"", "\"g::\""}},
    {"{\"type\":\"string\",\"format\":\"uuid\"}", {"\"123e4567-e89b-12d3-A456-426614174000\""},
     {"\"123e4567e89b12d3a456426614174000\"", "\"123e4567-e89b-12d3-a456-42661417400g\""}},
    {"{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}", {"[]", "[1]", "[ 1, 2,\n3 ]"},
     {"[\"a\"]", "[1.5]", "1", "[,]"}},
    {"{\"type\":\"array\",\"items\":{\"const\":1},\"minItems\":2,\"maxItems\":3}", {"[1,1]", "[1,1,1]"},
     {"[]", "[1]", "[1,1,1,1]"}},
    {"{\"type\":\"array\",\"maxItems\":0}", {"[]", "[ ]"}, {"[1]"}},
    {"{\"type\":\"array\",\"prefixItems\":[{\"const\":1},{\"const\":\"b\"}],\"items\":{\"type\":\"null\"},"
     "\"minItems\":1}",
     {"[1]", "[1,\"b\"]", "[1,\"b\",null,null]"}, {"[]", "[\"b\"]", "[1,null]", "[1,\"b\",1]"}},
    {"{\"type\":\"array\",\"prefixItems\":[{\"const\":1}],\"items\":false}", {"[]", "[1]"}, {"[1,1]", "[2]"}},
    {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"string\"},"
     "\"c\":{\"type\":\"null\"}},"
     "\"required\":[\"b\"],\"additionalProperties\":false}",
     {"{\"b\":\"\"}", "{\"a\":1,\"b\":\"x\"}", "{\"a\": 1, \"b\": \"x\", \"c\": null}", "{\"b\":\"\",\"c\":null}"},
     {"{}", "{\"a\":1}", "{\"b\":\"x\",\"a\":1}", "{\"b\":\"x\",\"d\":1}", "{\"b\":1}", "{\"a\":1,}",
      "{\"a\":1 \"b\":\"\"}", "{\"b\":\"\",\"b\":\"\"}"}},
    {"{\"properties\":{\"ab\":{\"type\":\"integer\"},\"a\\u00e9\":{\"const\":1}},"
     "\"additionalProperties\":{\"type\":\"boolean\"}}",
     {"{}", "{\"ab\":5}", "{\"ac\":true}", "{\"a\":true}", "{\"abc\":false}", "{\"a\xc3\xa9\":1,\"a\xc3\xa8\":true}",
      "{\"\":true}",
      "{\"ab\":1,\"x\":true,\"y\":false}"},
     {"{\"ab\":true}", "{\"ac\":5}", "{\"a\xc3\xa9\":true}", "{\"x\":true,\"ab\":1}", "{\"\\u0061b\":true}", "[]",
      "1"}},
    {"{\"type\":\"object\",\"properties\":{\"a\":{}}}", {"{}", "{\"a\":[1]}"}, {"{\"b\":1}"}},
    {"{\"type\":\"object\",\"required\":[\"x\"]}", {"{\"x\":1}", "{\"x\":1,\"y\":2}"}, {"{}", "{\"y\":2}"}},
    {"{\"type\":\"object\",\"properties\":{\"a\":false,\"b\":true}}", {"{}", "{\"b\":1}"}, {"{\"a\":1}"}},
    {"{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"object\",\"properties\":{\"k\":{\"const\":\"x\"},"
     "\"v\":{\"type\":\"integer\"}},\"required\":[\"k\",\"v\"]},"
     "{\"type\":\"object\",\"properties\":{\"k\":{\"const\":\"y\"},\"v\":{\"type\":\"string\"}},\"required\":[\"k\","
     "\"v\"]}]}",
     {"5", "{\"k\":\"x\",\"v\":1}", "{\"k\":\"y\",\"v\":\"1\"}"},
     {"{\"k\":\"x\",\"v\":\"1\"}", "{\"k\":\"y\",\"v\":1}", "{\"k\":\"z\"}", "null"}},
    {"{\"oneOf\":[{\"$ref\":\"#/$defs/cat\"},{\"$ref\":\"#/$defs/dog\"}],\"discriminator\":{\"propertyName\":\"t\"},"
     "\"$defs\":{"
     "\"cat\":{\"type\":\"object\",\"properties\":{\"t\":{\"const\":\"cat\"},\"n\":{\"type\":\"integer\"}},"
     "\"required\":[\"t\"]},"
     "\"dog\":{\"type\":\"object\",\"properties\":{\"t\":{\"enum\":[\"dog\",\"wolf\"]}},\"required\":[\"t\"]}}}",
     {"{\"t\":\"cat\"}", "{\"t\":\"wolf\"}", "{\"t\":\"cat\",\"n\":1}"},
     {"{\"t\":\"cow\"}", "{\"t\":\"dog\",\"n\":1}", "{}"}},
    {"{\"allOf\":[{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}},\"required\":[\"a\"]},"
     "{\"properties\":{\"b\":{\"type\":\"string\"},\"a\":{\"minimum\":10}},\"required\":[\"b\"]}]}",
     {"{\"a\":10,\"b\":\"\"}"}, {"{\"a\":9,\"b\":\"\"}", "{\"a\":10}", "{\"b\":\"\",\"a\":10}"}},
    {"{\"$ref\":\"#/definitions/node\",\"definitions\":{\"node\":{\"type\":\"object\","
     "\"properties\":{\"v\":{\"type\":\"integer\"},"
     "\"next\":{\"anyOf\":[{\"$ref\":\"#/definitions/node\"},{\"type\":\"null\"}]}},\"required\":[\"v\",\"next\"]}}}",
     {"{\"v\":1,\"next\":null}", "{\"v\":1,\"next\":{\"v\":2,\"next\":null}}"},
     {"{\"v\":1}", "{\"v\":1,\"next\":{}}", "null"}},
    {"{\"type\":\"array\",\"items\":{\"$ref\":\"#\"},\"maxItems\":2}", {"[]", "[[],[[]]]"}, {"[1]", "[[],[],[]]"}},
    {"{\"type\":\"object\",\"properties\":{\"a/b\":{\"type\":\"integer\"},\"c\":{\"$ref\":\"#/properties/a~1b\"},"
     "\"d~\":{\"$ref\":\"#/properties/a%2Fb\"}},"
     "\"required\":[\"c\"]}", {"{\"c\":1}", "{\"a/b\":1,\"c\":2}"}, {"{\"c\":\"x\"}"}},
    {"{\"minLength\":1}", {"\"a\""}, {"\"\"", "1"}},
    {"{\"type\":[\"integer\",\"string\"],\"minLength\":1,\"minimum\":3}", {"3", "\"a\""}, {"2", "\"\"", "3.5"}},
};

static void test_lists(void **state)
{
    (void)state;
    for (size_t i = 0; i < PD_COUNT(lists); i++) {
        struct pd_rules r;
        if (pd_schema_compile(&r, lists[i].schema, strlen(lists[i].schema)) != PERIDOT_OK)
            fail_msg("%s\n%s", lists[i].schema, pd_error());
        for (size_t k = 0; k < PD_COUNT(lists[i].good) && lists[i].good[k]; k++)
            expect_accepted(&r, lists[i].schema, lists[i].good[k], true);
        for (size_t k = 0; k < PD_COUNT(lists[i].bad) && lists[i].bad[k]; k++)
            expect_accepted(&r, lists[i].schema, lists[i].bad[k], false);
        pd_rules_free(&r);
    }
}

/* ---- what is refused ---- */

static const struct {
    const char *schema, *sentence;
    peridot_status status;
} refused[] = {
    {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"uniqueItems\":true}}}",
     "keyword uniqueItems at #/properties/a is not supported", PERIDOT_ERROR_UNSUPPORTED},
    {"{\"not\":{}}", "keyword not at #", PERIDOT_ERROR_UNSUPPORTED},
    {"{\"if\":{}}", "keyword if at #", PERIDOT_ERROR_UNSUPPORTED},
    {"{\"type\":\"object\",\"patternProperties\":{}}", "patternProperties", PERIDOT_ERROR_UNSUPPORTED},
    {"{\"anyOf\":[{\"type\":\"null\"},{\"contains\":1}]}", "contains at #/anyOf/1", PERIDOT_ERROR_UNSUPPORTED},
    {"{\"nullable\":true}", "nullable", PERIDOT_ERROR_UNSUPPORTED},
    {"{\"made-up\":1}", "keyword made-up", PERIDOT_ERROR_UNSUPPORTED},
    {"{\"type\":\"string\",\"format\":\"uri\"}", "format uri at #", PERIDOT_ERROR_UNSUPPORTED},
    {"{\"type\":\"number\",\"multipleOf\":0.01}", "multipleOf", PERIDOT_ERROR_UNSUPPORTED},
    {"{\"type\":\"string\",\"pattern\":\"a)\"}", "pattern at #: a ) closes no group", PERIDOT_ERROR_UNSUPPORTED},
    {"{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"number\"}]}",
     "oneOf at #: a value may satisfy alternatives 0 and 1", PERIDOT_ERROR_UNSUPPORTED},
    {"{\"oneOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}]}", "oneOf at #", PERIDOT_ERROR_UNSUPPORTED},
    {"{\"$ref\":\"http://example.com/x\"}", "only # and #/...", PERIDOT_ERROR_UNSUPPORTED},
    {"{\"$ref\":\"#/$defs/x\"}", "which is not in the schema", PERIDOT_ERROR_FORMAT},
    {"{\"$ref\":\"#\"}", "refers to itself", PERIDOT_ERROR_FORMAT},
    {"{\"anyOf\":[{\"$ref\":\"#\"},{\"type\":\"null\"}]}", "refers to itself", PERIDOT_ERROR_FORMAT},
    {"{\"type\":\"text\"}", "names no type", PERIDOT_ERROR_FORMAT},
    {"{\"type\":\"string\",\"minLength\":-1}", "minLength at # is not a count", PERIDOT_ERROR_FORMAT},
    {"{\"type\":\"string\",\"minLength\":\"1\"}", "not a count", PERIDOT_ERROR_FORMAT},
    {"{\"type\":\"integer\",\"exclusiveMinimum\":true}", "exclusiveMinimum at # is not a number", PERIDOT_ERROR_FORMAT},
    {"{\"enum\":[]}", "leave none", PERIDOT_ERROR_ARGUMENT},
    {"{\"enum\":[1],\"type\":\"string\"}", "leave none", PERIDOT_ERROR_ARGUMENT},
    {"{\"enum\":[\"a\"],\"minLength\":2}", "keyword minLength at # is not supported beside enum and const",
     PERIDOT_ERROR_UNSUPPORTED},
    {"{\"type\":\"array\",\"minItems\":3,\"maxItems\":2}", "minItems 3 is more than maxItems 2",
     PERIDOT_ERROR_ARGUMENT},
    {"{\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"string\",\"minLength\":3,\"maxLength\":2}}}",
     "#/properties/x: no value is valid: minLength 3", PERIDOT_ERROR_ARGUMENT},
    {"{\"type\":\"integer\",\"minimum\":3,\"maximum\":2}", "limits leave no number", PERIDOT_ERROR_ARGUMENT},
    {"{\"type\":\"integer\",\"minimum\":0.2,\"maximum\":0.8}", "no value is valid", PERIDOT_ERROR_ARGUMENT},
    {"{\"type\":\"object\",\"required\":[\"a\"],\"additionalProperties\":false}",
     "property a is required, and forbidden", PERIDOT_ERROR_ARGUMENT},
    {"{\"type\":\"object\",\"properties\":{\"a\":false},\"required\":[\"a\"]}",
     "property a is required, and forbidden at #/properties/a", PERIDOT_ERROR_ARGUMENT},
    {"{\"allOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]}", "exclude each other", PERIDOT_ERROR_ARGUMENT},
    {"{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#\"}},\"required\":[\"a\"]}", "never ends",
     PERIDOT_ERROR_ARGUMENT},
    {"{\"type\":\"string\",\"pattern\":\"$a\"}", "no value is valid", PERIDOT_ERROR_ARGUMENT},
    {"false", "no value is valid", PERIDOT_ERROR_ARGUMENT},
    {"[]", "a schema is an object, true or false, and this is array", PERIDOT_ERROR_FORMAT},
    {"{\"type\":\"object\"", "not JSON", PERIDOT_ERROR_FORMAT},
    {"", "not JSON: it is empty", PERIDOT_ERROR_FORMAT},
    {"{\"items\":[{}],\"type\":\"array\"}", "prefixItems", PERIDOT_ERROR_UNSUPPORTED},
    {"{\"type\":\"string\",\"type\":\"integer\"}", "keyword type at # is there twice", PERIDOT_ERROR_FORMAT},
    {"{\"type\":\"object\",\"properties\":{\"a\":{\"$id\":\"x\"}}}", "keyword $id at #/properties/a",
     PERIDOT_ERROR_UNSUPPORTED},
    {"{\"type\":\"object\",\"properties\":[]}", "properties at # cannot be array", PERIDOT_ERROR_UNSUPPORTED},
    {"{\"type\":\"object\",\"properties\":{\"a\":5}}", "#/properties/a: a schema is an object", PERIDOT_ERROR_FORMAT},
    {"{\"type\":\"string\",\"maxLength\":900000}", "too large", PERIDOT_ERROR_UNSUPPORTED},
};

static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < PD_COUNT(refused); i++) {
        struct pd_rules r;
        peridot_status status = pd_schema_compile(&r, refused[i].schema, strlen(refused[i].schema));
        if (status != refused[i].status || !strstr(pd_error(), refused[i].sentence))
            fail_msg("%s\n%d %s", refused[i].schema, status, status == PERIDOT_OK ? "accepted" : pd_error());
        pd_rules_free(&r);
    }
}

/* ---- damaged schemas ---- */

/* Every truncated prefix, and bytes changed at random: refused or compiled, and walks stay within bounds. */
static void test_damaged(void **state)
{
    (void)state;
    static const char whole[] =
        "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/x\"},\"b\":{\"anyOf\":[{\"type\":\"string\","
        "\"pattern\":\"^[a-c]{1,3}(x|y)?$\","
        "\"maxLength\":4},{\"type\":[\"number\",\"null\"],\"minimum\":-1.5}]},"
        "\"c\":{\"oneOf\":[{\"const\":1},{\"enum\":[\"q\",true]}]}},"
        "\"required\":[\"a\"],\"additionalProperties\":{\"format\":\"date\"},\"$defs\":{\"x\":{\"type\":\"array\","
        "\"prefixItems\":[{}],\"items\":false}}}";
    uint64_t seed = 1;
    for (size_t i = 0; i < sizeof whole + 3000; i++) {
        struct guard g;
        char text[sizeof whole];
        size_t size = i < sizeof whole ? i : sizeof whole - 1;
        struct pd_rules r;
        memcpy(text, whole, sizeof whole);
        for (size_t k = 0; i >= sizeof whole && k < 1 + i % 3; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            text[(seed >> 33) % size] = whole[(seed >> 20) % size];
        }
        guard_open(&g);
        memcpy(g.base + GUARD_SIZE - size, text, size);
        if (pd_schema_compile(&r, (const char *)g.base + GUARD_SIZE - size, size) == PERIDOT_OK) {
            accepts(&r, "{\"a\":[null],\"b\":\"abx\",\"c\":1,\"d\":\"2024-01-01\"}");
            accepts(&r, "[[[[[[1]]]]]]");
        }
        pd_rules_free(&r);
        munmap(g.base, GUARD_SIZE + g.page);
    }
}

/* ---- tokens ---- */

/* Bytes, some texts, and two stop tokens. */
static void make_spellings(struct pd_spellings *s)
{
    static const char *const texts[] = {
        "{\"", "\":", "\": ", "\", \"", "\"}", "}}", "]}", "],", "true", "fal", "se", "null", "ull", "name",
        "\"name\"", "\\u", "\\ud8", "\\n", "\xc3\xa9", "\xe2\x82", "\x82\xac", "\xf0\x9f", "\x98\x80x", "12", "123",
        ".5", "e+", "0.", "-1", "   ", "\n  ", ",\n", "abc", "ab\"", "a\"}", "{}", "[]", "[[", "]]", "\"\"", "\":\"",
        "20", "-0", "0000000000000000000000000000000000000000000000000000000000000000"};
    uint32_t id = 3;
    *s = (struct pd_spellings){0};
    EXPECT_OK(pd_spellings_add_stop(s, 1));
    for (unsigned b = 0; b < 256; b++) EXPECT_OK(pd_spellings_add(s, id++, &(char){(char)b}, 1));
    for (size_t i = 0; i < PD_COUNT(texts); i++) EXPECT_OK(pd_spellings_add(s, id++, texts[i], strlen(texts[i])));
    EXPECT_OK(pd_spellings_add(s, id++, "{\"", 2));   /* another of the same bytes */
    EXPECT_OK(pd_spellings_add_stop(s, id++));
    EXPECT_OK(pd_spellings_finish(s, id));
}

/* A mask in pieces of a few steps. */
static void make_mask(const struct pd_mask **out, struct pd_mask **made, const peridot_grammar *g,
                      const struct pd_walk *w)
{
    struct pd_mask_job *job = NULL;
    uint64_t steps = 0;
    uint32_t n_pieces = 0;
    EXPECT_OK(pd_grammar_mask_some(out, made, &job, g, w, &steps));
    for (; !*out; n_pieces++) {
        assert_non_null(job);
        steps = 50;
        EXPECT_OK(pd_grammar_mask_some(out, made, &job, g, w, &steps));
    }
    assert_null(job);
    assert_true(n_pieces != 1);    /* kept, or longer than that */
}

/* Masks, and answers for some tokens, beside each token followed by itself, along texts of random tokens. */
static void test_masks(void **state)
{
    (void)state;
    struct pd_spellings s;
    uint64_t seed = 5;
    uint32_t n_stopped = 0;
    make_spellings(&s);
    for (size_t i = 0; i < PD_COUNT(lists); i++) {
        peridot_grammar *g;
        struct pd_walk w;
        EXPECT_OK(pd_grammar_create(&g, &s, lists[i].schema, strlen(lists[i].schema)));
        pd_walk_begin(&w, &g->rules);
        for (int step = 0; step < 120; step++) {
            const struct pd_mask *mask;
            struct pd_mask *made;
            uint32_t ids[400], n = 0, n_allowed = 0;
            bool allowed[400];
            for (uint32_t id = 0; id < s.n_pieces; id++) ids[id] = id;
            if (step % 2) make_mask(&mask, &made, g, &w);
            else EXPECT_OK(pd_grammar_mask(&mask, &made, g, &w));
            pd_grammar_allows(allowed, g, &w, ids, s.n_pieces);
            for (uint32_t id = 0; id < s.n_pieces; id++) {
                struct pd_walk next = w;
                bool stop = id == 1 || id == s.n_pieces - 1;
                bool can = stop ? pd_walk_is_complete(&w, &g->rules) : pd_grammar_take(&next, g, (int32_t)id);
                assert_int_equal(pd_mask_has(mask, id), can);
                assert_int_equal(allowed[id], can);
                if (can) ids[n++] = id;
                n_allowed += can;
            }
            assert_int_equal(mask->n_allowed, n_allowed);
            assert_true(n_allowed > 0);   /* a text never gets stuck */
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            uint32_t next = ids[(seed >> 33) % n];
            free(made);
            if (next == 1 || next == s.n_pieces - 1) {
                n_stopped++;
                pd_walk_begin(&w, &g->rules);
            } else {
                assert_true(pd_grammar_take(&w, g, (int32_t)next));
            }
        }
        pd_grammar_free(g);
    }
    assert_true(n_stopped > 100);
    pd_spellings_free(&s);
}

/* All texts of two letters, under patterns of so many states that a mask forgets them on the way, and in so many calls
 * at once as there may be. */
static void test_long_masks(void **state)
{
    (void)state;
    static const char *const schemas[] = {
        "{\"type\":\"string\",\"pattern\":\"^(a|b)*a(a|b){11}$\"}",
        "{\"type\":\"string\",\"pattern\":\"^(\\u00e9|a|b)*a(\\u00e9|a|b){10}b(a|b)*$\"}", "true"};
    static const char *const begun[] = {"\"", "\"ab\xc3\xa9" "a", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["};
    struct pd_spellings s = {0};
    uint32_t id = 1;
    EXPECT_OK(pd_spellings_add_stop(&s, 0));
    for (unsigned b = 0; b < 256; b++) EXPECT_OK(pd_spellings_add(&s, id++, &(char){(char)b}, 1));
    for (size_t size = 2; size <= 13; size++)
        for (size_t number = 0; number >> size == 0; number++) {
            char text[16];
            for (size_t i = 0; i < size; i++) text[i] = "ab"[number >> i & 1];
            if (number % 3 == 0) text[size - 1] = '"';
            EXPECT_OK(pd_spellings_add(&s, id++, text, size));
        }
    EXPECT_OK(pd_spellings_finish(&s, id));
    for (size_t i = 0; i < PD_COUNT(schemas); i++) {
        peridot_grammar *g;
        struct pd_walk w;
        const struct pd_mask *mask;
        struct pd_mask *made;
        EXPECT_OK(pd_grammar_create(&g, &s, schemas[i], strlen(schemas[i])));
        pd_walk_begin(&w, &g->rules);
        assert_true(pd_walk_take(&w, &g->rules, begun[i], strlen(begun[i])));
        if (i % 2) EXPECT_OK(pd_grammar_mask(&mask, &made, g, &w));
        else make_mask(&mask, &made, g, &w);
        for (uint32_t k = 1; k < id; k++) {
            struct pd_walk next = w;
            assert_int_equal(pd_mask_has(mask, k), pd_grammar_take(&next, g, (int32_t)k));
        }
        free(made);
        pd_grammar_free(g);
    }
    pd_spellings_free(&s);
}

static void test_vocabularies(void **state)
{
    (void)state;
    struct pd_spellings s = {0};
    for (unsigned b = 0; b < 256; b++)
        if (b != '{') EXPECT_OK(pd_spellings_add(&s, b, &(char){(char)b}, 1));
    EXPECT_OK(pd_spellings_add(&s, 256, "{\"", 2));
    EXPECT_FAILURE(pd_spellings_finish(&s, 257), PERIDOT_ERROR_UNSUPPORTED, "no token for byte 0x7b by itself");
    EXPECT_OK(pd_spellings_add(&s, '{', "{", 1));
    EXPECT_FAILURE(pd_spellings_finish(&s, 257), PERIDOT_ERROR_UNSUPPORTED, "no stop token");
    pd_spellings_free(&s);
}

/* As deep as values can nest, and no deeper: there the text is led back. */
static void test_depth(void **state)
{
    (void)state;
    struct pd_rules r;
    struct pd_walk w;
    int depth = 0;
    EXPECT_OK(pd_schema_compile(&r, "true", 4));
    pd_walk_begin(&w, &r);
    while (pd_walk_take(&w, &r, "[", 1)) depth++;
    assert_in_range(depth, 60, PD_MAX_CALLS);
    for (int i = 0; i < depth; i++) assert_true(pd_walk_take(&w, &r, "]", 1));
    assert_true(pd_walk_is_complete(&w, &r));
    pd_rules_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists), cmocka_unit_test(test_refused), cmocka_unit_test(test_masks),
        cmocka_unit_test(test_long_masks), cmocka_unit_test(test_vocabularies), cmocka_unit_test(test_depth),
        cmocka_unit_test(test_damaged)};
    return cmocka_run_group_tests_name("grammar", tests, NULL, NULL);
}

/* Grammars: of each schema, documents that its automaton accepts and documents that it does not; what is refused, with
 * the sentence; the masks of tokens beside a walk of each token alone. */
#include "format_fixture.h"

#include "grammar/grammar.h"
#include "grammar_cases.h"

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
     "uniqueItems at #/properties/a is supported only where each item is of enum", PERIDOT_ERROR_UNSUPPORTED},
    {"{\"not\":{}}", "no value is valid", PERIDOT_ERROR_ARGUMENT},
    {"{\"not\":{\"type\":\"null\"}}", "keyword not at #", PERIDOT_ERROR_UNSUPPORTED},
    {"{\"if\":{},\"then\":{}}", "keyword if at #", PERIDOT_ERROR_UNSUPPORTED},
    {"{\"type\":\"object\",\"patternProperties\":{\"(?<=a)b\":{}}}", "patternProperties at #: ",
     PERIDOT_ERROR_UNSUPPORTED},
    {"{\"anyOf\":[{\"if\":{},\"then\":{}},{\"contains\":1}]}", "contains at #/anyOf/1", PERIDOT_ERROR_UNSUPPORTED},
    {"{\"oneOf\":[{\"type\":\"null\"},{\"contains\":1}]}", "contains at #/oneOf/1", PERIDOT_ERROR_UNSUPPORTED},
    {"{\"oneOf\":[{\"anyOf\":[{\"contains\":1},{\"type\":\"null\"}]},{\"type\":\"array\"}]}",
     "contains at #/oneOf/0/anyOf/0", PERIDOT_ERROR_UNSUPPORTED},
    {"{\"type\":\"object\",\"required\":[\"a\"],\"properties\":{\"a\":{\"anyOf\":[{\"type\":\"array\",\"items\":"
     "{\"contains\":{}}},{\"type\":\"array\",\"items\":{\"if\":{},\"else\":{}}}]}}}",
      "keyword if at #/properties/a/anyOf/1/items",
     PERIDOT_ERROR_UNSUPPORTED},
    {"{\"type\":\"object\",\"minProperties\":2}", "minProperties at # is supported up to", PERIDOT_ERROR_UNSUPPORTED},
    {"{\"type\":\"object\",\"propertyNames\":{\"maxLength\":2},\"required\":[\"abc\"]}",
     "property abc is required, and forbidden at propertyNames", PERIDOT_ERROR_ARGUMENT},
    {"{\"allOf\":[{\"properties\":{\"a\":{}},\"unevaluatedProperties\":false}],\"properties\":{\"b\":{}}}",
     "unevaluatedProperties at #/allOf/0 is not supported in what is combined", PERIDOT_ERROR_UNSUPPORTED},
    {"{\"made-up\":1}", "keyword made-up", PERIDOT_ERROR_UNSUPPORTED},
    {"{\"type\":\"number\",\"multipleOf\":0}", "multipleOf at # is not a number above 0", PERIDOT_ERROR_FORMAT},
    {"{\"type\":\"number\",\"multipleOf\":12345}", "multipleOf at # is too large", PERIDOT_ERROR_UNSUPPORTED},
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
        guard_close(&g);
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
        EXPECT_OK(pd_grammar_create(&g, &s, lists[i].schema, strlen(lists[i].schema), PD_MAX_WORK));
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

/* Tokens of up to a thousand bytes, which end within a pattern, within a string, and after it. */
static uint32_t add_long(struct pd_spellings *s, uint32_t id)
{
    static const size_t sizes[] = {64, 65, 66, 128, 129, 1000};
    static const char *const parts[] = {"a", "ab", "[", "bba\xc3\xa9"};
    for (size_t i = 0; i < PD_COUNT(sizes); i++)
        for (size_t k = 0; k < 2 * PD_COUNT(parts); k++) {
            const char *part = parts[k / 2];
            char text[1000];
            for (size_t at = 0; at < sizes[i]; at++) text[at] = part[at % strlen(part)];
            if (k % 2) text[sizes[i] - 1] = '"';
            EXPECT_OK(pd_spellings_add(s, id++, text, sizes[i]));
        }
    return id;
}

/* All texts of two letters, under patterns of so many states that a mask forgets them on the way, and in so many calls
 * at once as there may be. */
static void test_long_masks(void **state)
{
    (void)state;
    static const char *const schemas[] = {
        "{\"type\":\"string\",\"pattern\":\"^(a|b)*a(a|b){11}$\"}",
        "{\"type\":\"string\",\"pattern\":\"^(\\u00e9|a|b)*a(\\u00e9|a|b){10}b(a|b)*$\"}", "true", "true"};
    static const char *const begun[] = {"\"", "\"ab\xc3\xa9" "a", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "\""};
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
    uint32_t first_long = id, n_allowed = 0;
    id = add_long(&s, id);
    EXPECT_OK(pd_spellings_finish(&s, id));
    for (size_t i = 0; i < PD_COUNT(schemas); i++) {
        peridot_grammar *g;
        struct pd_walk w;
        const struct pd_mask *mask;
        struct pd_mask *made;
        EXPECT_OK(pd_grammar_create(&g, &s, schemas[i], strlen(schemas[i]), PD_MAX_WORK));
        pd_walk_begin(&w, &g->rules);
        assert_true(pd_walk_take(&w, &g->rules, begun[i], strlen(begun[i])));
        if (i % 2) EXPECT_OK(pd_grammar_mask(&mask, &made, g, &w));
        else make_mask(&mask, &made, g, &w);
        for (uint32_t k = 1; k < id; k++) {
            struct pd_walk next = w;
            bool allowed, can = pd_grammar_take(&next, g, (int32_t)k);
            assert_int_equal(pd_mask_has(mask, k), can);
            if (k < first_long) continue;
            pd_grammar_allows(&allowed, g, &w, &k, 1);
            assert_int_equal(allowed, can);
            n_allowed += can;
        }
        free(made);
        pd_grammar_free(g);
    }
    assert_true(n_allowed >= 20);
    pd_spellings_free(&s);
}

static void test_vocabularies(void **state)
{
    (void)state;
    struct pd_spellings s = {0};
    for (unsigned b = 0; b < 256; b++)
        if (b != '{') EXPECT_OK(pd_spellings_add(&s, b, &(char){(char)b}, 1));
    EXPECT_OK(pd_spellings_add(&s, 256, "{\"", 2));
    EXPECT_FAILURE(pd_spellings_finish(&s, 257), PERIDOT_ERROR_UNSUPPORTED, "no stop token");
    pd_spellings_free(&s);
}

/* What the vocabulary has no bytes for is left out, but for what whole tokens write, and no text gets stuck. */
static void test_lacking(void **state)
{
    (void)state;
    static const char lacking[] = "{\xf1\xf2\xa9\xd1";   /* of objects, planes, U+00E9 and Cyrillic */
    static const struct {
        const char *schema, *good, *bad;
    } cases[] = {
        {"{\"type\":\"string\"}", "\"e\xc3\xa8\xf0\x9f\xa6\x8a\xf3\xa0\x80\x81\xd1\x84\"", NULL},
        {"{\"enum\":[\"a\xc3\xa9\",\"b\"]}", "\"b\"", "\"a"},
        {"{\"enum\":[\"a\xf1\x80\x80\x80\",\"\xf3\xa0\x80\x81\"]}", "\"\xf3\xa0\x80\x81\"", "\"a"},
        {"{\"type\":\"array\",\"items\":{\"type\":\"object\"}}", "[]", NULL}};
    struct pd_spellings s = {0};
    peridot_grammar *g;
    EXPECT_OK(pd_spellings_add_stop(&s, 0));
    for (unsigned b = 1; b < 256; b++)
        if (!strchr(lacking, (char)b)) EXPECT_OK(pd_spellings_add(&s, b, &(char){(char)b}, 1));
    EXPECT_OK(pd_spellings_add(&s, 256, "\xd1\x84\"", 3));
    EXPECT_OK(pd_spellings_finish(&s, 257));
    EXPECT_FAILURE(pd_grammar_create(&g, &s, "{\"type\":\"object\"}", 17, PD_MAX_WORK), PERIDOT_ERROR_UNSUPPORTED,
                   "the vocabulary cannot write any such text: it has no token for byte 0x7b by itself");
    for (size_t i = 0; i < PD_COUNT(cases); i++) {
        struct pd_walk w;
        EXPECT_OK(pd_grammar_create(&g, &s, cases[i].schema, strlen(cases[i].schema), PD_MAX_WORK));
        pd_walk_begin(&w, &g->rules);
        if (cases[i].bad) assert_false(pd_walk_take(&w, &g->rules, cases[i].bad, strlen(cases[i].bad)));
        for (const char *at = cases[i].good; *at; at++) {
            const struct pd_mask *mask;
            struct pd_mask *made;
            EXPECT_OK(pd_grammar_mask(&mask, &made, g, &w));
            assert_true(mask->n_allowed > 0);
            free(made);
            assert_true(pd_walk_take(&w, &g->rules, at, 1));
        }
        assert_true(pd_walk_is_complete(&w, &g->rules));
        pd_grammar_free(g);
    }
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

/* A schema that needs more work than its part is refused, and one that does not is not. */
static void test_effort(void **state)
{
    static const char hard[] = "{\"type\": \"string\", \"pattern\": \"^(a|b)*a(a|b){9}$\"}";
    static const char easy[] = "{\"type\": \"string\"}";
    (void)state;
    struct pd_spellings s;
    peridot_grammar *g;
    make_spellings(&s);
    EXPECT_OK(pd_grammar_create(&g, &s, easy, strlen(easy), pd_work_of_effort(1)));
    pd_grammar_free(g);
    EXPECT_FAILURE(pd_grammar_create(&g, &s, hard, strlen(hard), pd_work_of_effort(1)), PERIDOT_ERROR_UNSUPPORTED,
                   "the schema is too large");
    EXPECT_OK(pd_grammar_create(&g, &s, hard, strlen(hard), pd_work_of_effort(0)));
    pd_grammar_free(g);
    pd_spellings_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists), cmocka_unit_test(test_refused), cmocka_unit_test(test_masks),
        cmocka_unit_test(test_long_masks), cmocka_unit_test(test_vocabularies), cmocka_unit_test(test_lacking),
        cmocka_unit_test(test_depth), cmocka_unit_test(test_effort), cmocka_unit_test(test_damaged)};
    return cmocka_run_group_tests_name("grammar", tests, NULL, NULL);
}

/* Schemas that are made to take long, one for each keyword and rule, of all sizes up to the limit: each compiles or is
 * refused within a budget of work, and in the time that so much work may take. PERIDOT_TEST_MANY=1: within the whole
 * budget, more sizes, and a table of the slowest of each. --write FOLDER: the worst of each, for
 * test_command_serve.sh. */
#include "format_fixture.h"

#include "grammar/grammar.h"

#include <time.h>

enum { MAX_SCHEMA = 1 << 20, MAX_PARTS = 12 };

/* A schema in parts. Those that begin with * are written n times: ` is the number of the time, ~ the next one, @ the
 * number from the last time on, ' the number in four digits. */
struct hostile {
    const char *name;
    const char *parts[MAX_PARTS];
};

#define ANY_OBJECT "{\"type\":\"object\",\"properties\":{\"k\":{\"const\":"
#define REFS "{\"$ref\":\"#/$defs/z\"},{\"$ref\":\"#/$defs/z\"},{\"$ref\":\"#/$defs/z\"},{\"$ref\":\"#/$defs/z\"},"
#define ZEROS "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,"
#define NAMES "\"q\",\"q\",\"q\",\"q\",\"q\",\"q\",\"q\",\"q\",\"q\",\"q\",\"q\",\"q\",\"q\",\"q\",\"q\",\"q\","
#define STRING(pattern) {"{\"type\":\"string\",\"pattern\":\"", pattern, "\"}"}
#define SHORT_STRING(pattern) {"{\"type\":\"string\",\"minLength\":3,\"maxLength\":700,\"pattern\":\"", pattern, "\"}"}
#define BOTH(pattern) {"pattern " pattern, STRING(pattern)}, {"with length " pattern, SHORT_STRING(pattern)}
#define TEXT_64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define TEXT_512 TEXT_64 TEXT_64 TEXT_64 TEXT_64 TEXT_64 TEXT_64 TEXT_64 TEXT_64

static const struct hostile schemas[] = {
    {"enum strings", {"{\"enum\":[", "*\"v`\",", "1]}"}},
    {"enum numbers", {"{\"enum\":[", "*`.5,", "1]}"}},
    {"enum alike", {"{\"enum\":[", "*[{\"a\":1}],", "1]}"}},
    {"enum one letter", {"{\"enum\":[", "*\"\\u'\",", "1]}"}},
    {"enum long strings", {"{\"enum\":[", "*\"" TEXT_512 "`\",", "1]}"}},
    {"enum deep lists", {"{\"enum\":[", "*[[[[[[[[[[[[`]]]]]]]]]]]],", "1]}"}},
    {"enum twice", {"{\"allOf\":[{\"enum\":[", "*[`,1],", "1]},{\"enum\":[", "*[`,1.0],", "1]}]}"}},
    {"enum reversed", {"{\"allOf\":[{\"enum\":[", "*\"`\",", "1]},{\"enum\":[", "*\"@\",", "1]}]}"}},
    {"enum of 30", {"{\"$defs\":{\"e\":{\"enum\":[", "*{\"a\":`},", "1]}},\"allOf\":[", "*{\"$ref\":\"#/$defs/e\"},",
                    "{}]}"}},
    {"const object", {"{\"const\":{", "*\"k`\":`,", "\"z\":1}}"}},
    {"const objects", {"{\"allOf\":[{\"const\":{", "*\"k`\":0,", "\"z\":1}},{\"const\":{", "*\"k@\":0,",
                       "\"z\":1}}]}"}},
    {"const names alike", {"{\"allOf\":[{\"const\":{", "*\"k\":0,", "\"z\":1}},{\"enum\":[{", "*\"k\":0,",
                           "\"z\":1}]}]}"}},
    {"oneOf enums of lists", {"{\"oneOf\":[{\"enum\":[", "*[[`]],", "[1]]},{\"enum\":[", "*[[`,1]],", "[2]]}]}"}},
    {"oneOf enums", {"{\"oneOf\":[{\"enum\":[", "*\"a`\",", "1]},{\"enum\":[", "*\"b`\",", "2]}]}"}},
    {"oneOf consts", {"{\"oneOf\":[", "*{\"const\":`},", "{\"const\":-1}]}"}},
    {"oneOf keys", {"{\"oneOf\":[", "*" ANY_OBJECT "\"v`\"}},\"required\":[\"k\"]},", "{\"type\":\"null\"}]}"}},
    {"oneOf many keys", {"{\"$defs\":{\"o\":{\"type\":\"object\",\"required\":[", "*\"p`\",", "\"q\"],\"properties\":{",
                         "*\"p`\":{\"type\":\"null\"},", "\"q\":{}}}},\"oneOf\":[{\"$ref\":\"#/$defs/o\"},",
                         "{\"$ref\":\"#/$defs/o\"}]}"}},
    {"oneOf many alternatives", {"{\"$defs\":{\"o\":{\"required\":[\"q\"],\"properties\":{\"q\":{\"oneOf\":[",
                                 "*{\"const\":`},", "{\"const\":\"x\"}]}}}},\"oneOf\":[", "*{\"$ref\":\"#/$defs/o\"},",
                                 "{\"type\":\"null\"}]}"}},
    {"oneOf false", {"{\"oneOf\":[", "*false,", "true]}"}},
    {"oneOf in oneOf", {"*{\"oneOf\":[{\"type\":\"null\"},", "{\"const\":1}", "*]}"}},
    {"oneOf in properties", {"*{\"oneOf\":[{\"const\":1},{\"required\":[\"a\"],\"properties\":{\"a\":", "{}", "*}}]}"}},
    {"anyOf", {"{\"anyOf\":[", "*{\"const\":`},", "{\"const\":-1}]}"}},
    {"anyOf of objects", {"{\"anyOf\":[",
                          "*{\"type\":\"object\",\"properties\":{\"a\":{},\"b`\":{},\"c\":{}}},", "{}]}"}},
    {"anyOf of patterns", {"{\"anyOf\":[", "*{\"type\":\"string\",\"pattern\":\"a`.{30}b.*\"},", "{\"const\":-1}]}"}},
    {"anyOf in anyOf", {"*{\"anyOf\":[{\"type\":\"null\"},", "true", "*]}"}},
    {"allOf", {"{\"allOf\":[", "*{\"minimum\":`},", "{}]}"}},
    {"allOf of anyOf", {"{\"allOf\":[", "*{\"anyOf\":[{\"minimum\":1},{\"maximum\":5}]},", "{}]}"}},
    {"allOf of fractions", {"{\"type\":\"array\",\"prefixItems\":[", "*{\"allOf\":[{\"minimum\":0.3`7},{\"maximum\":"
                            "9.1234567},{\"exclusiveMinimum\":0.1},{\"exclusiveMaximum\":11.000001}]},", "{}]}"}},
    {"allOf doubled", {"{\"$ref\":\"#/$defs/d0\",\"$defs\":{", "*\"d`\":{\"allOf\":[{\"$ref\":\"#/$defs/d~\"},"
                       "{\"$ref\":\"#/$defs/d~\"}]},", "\"d`\":{}}}"}},
    {"anyOf doubled", {"{\"$ref\":\"#/$defs/d0\",\"$defs\":{", "*\"d`\":{\"anyOf\":[{\"$ref\":\"#/$defs/d~\"},"
                       "{\"$ref\":\"#/$defs/d~\"}]},", "\"d`\":{}}}"}},
    {"oneOf doubled", {"{\"$ref\":\"#/$defs/d0\",\"$defs\":{", "*\"d`\":{\"oneOf\":[{\"type\":\"null\"},{\"required\":"
                       "[\"a\"],\"properties\":{\"a\":{\"$ref\":\"#/$defs/d~\"}}},{\"properties\":{\"a\":{\"$ref\":"
                       "\"#/$defs/d~\"}},\"required\":[\"a\"]}]},", "\"d`\":false}}"}},
    {"properties", {"{\"properties\":{", "*\"p`\":{\"type\":\"null\"},", "\"q\":{}},\"additionalProperties\":{}}"}},
    {"properties in unions", {"{\"anyOf\":[", "*{\"properties\":{\"a`\":{},\"b\":{},\"c`\":{}}},", "{}]}"}},
    {"properties of letters", {"{\"properties\":{", "*\"\\u'\":{},", "\"q\":{}},\"additionalProperties\":{}}"}},
    {"properties of long names", {"{\"properties\":{", "*\"" TEXT_512 "`\":{},", "\"q\":{}},\"additionalProperties\":"
                                  "{}}"}},
    {"properties required", {"{\"properties\":{", "*\"p`\":{},", "\"q\":{}},\"required\":[", "*\"p@\",", "\"q\"]}"}},
    {"properties of 30", {"{\"$defs\":{\"e\":{\"properties\":{", "*\"p`\":{},", "\"q\":{}}}},\"allOf\":[{\"$ref\":"
                          "\"#/$defs/e\"},{\"properties\":{", "*\"p`\":{\"const\":1},", "\"z\":{}}}]}"}},
    {"properties in properties", {"*{\"properties\":{\"" TEXT_64 "\":", "{}", "*}}"}},
    {"required", {"{\"required\":[", "*\"p`\",", "\"q\"]}"}},
    {"required alike", {"{\"properties\":{", "*\"p`\":{},", "\"q\":{}},\"required\":[", "*" NAMES NAMES NAMES,
                        "\"q\"]}"}},
    {"objects in many rules", {"{\"properties\":{", "*\"p`\":{\"properties\":{\"a\":{\"type\":\"string\"}}},",
                               "\"q\":{}}}"}},
    {"prefixItems", {"{\"prefixItems\":[", "*{},", "{}]}"}},
    {"prefixItems of consts", {"{\"prefixItems\":[", "*{\"const\":`},", "{}]}"}},
    {"minItems", {"{\"minItems\":190000,\"items\":{\"type\":\"array\",\"maxItems\":1`}}"}},
    {"items in items", {"*{\"type\":\"array\",\"minItems\":1,\"items\":", "{}", "*}"}},
    {"lengths", {"{\"prefixItems\":[", "*{\"maxLength\":1`},", "{\"minLength\":190000}]}"}},
    {"$ref to the last", {"{\"$defs\":{", "*\"d`\":{},", "\"z\":{}},\"prefixItems\":[", "*{\"$ref\":\"#/$defs/z\"},",
                          "{}]}"}},
    {"$ref to the last of many", {"{\"$defs\":{", "*\"a`\":0,\"b`\":0,\"c`\":0,\"d`\":0,\"e`\":0,\"f`\":0,\"g`\":0,",
                                  "\"y\":{\"anyOf\":[" REFS REFS REFS REFS REFS REFS "{}]},\"z\":{}},\"properties\":{",
                                  "*\"p`\":{\"$ref\":\"#/$defs/y\"},", "\"z\":{}}}"}},
    {"$ref to the last item", {"{\"$defs\":{\"x\":[", "*" ZEROS ZEROS "{},", "{}],\"y\":{\"anyOf\":[",
                               "*{\"$ref\":\"#/$defs/x/`00\"},", "{}]}},\"properties\":{",
                               "*\"p`\":{\"$ref\":\"#/$defs/y\"},", "\"z\":{}}}"}},
    {"$ref to items", {"{\"$defs\":{\"x\":[", "*{},", "{}]},\"prefixItems\":[", "*{\"$ref\":\"#/$defs/x/`\"},",
                       "{}]}"}},
    {"$ref chain", {"{\"$ref\":\"#/$defs/d0\",\"$defs\":{", "*\"d`\":{\"$ref\":\"#/$defs/d~\"},", "\"d`\":{}}}"}},
    {"$ref to all", {"{\"$defs\":{", "*\"d`\":{\"anyOf\":[{\"$ref\":\"#\"},{\"type\":\"null\"}]},", "\"z\":{}},"
                     "\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/d0\"}}"}},
    {"long paths", {"{\"$defs\":{\"" TEXT_512 "\":{\"" TEXT_512 "\":{\"" TEXT_512 "\":{\"anyOf\":[", "*true,",
                    "{}]}}}},"
                    "\"prefixItems\":[", "*{\"$ref\":\"#/$defs/" TEXT_512 "/" TEXT_512 "/" TEXT_512 "\"},", "{}]}"}},
    {"type list", {"{\"type\":[", "*\"null\",", "\"string\"]}"}},
    {"annotations", {"{\"anyOf\":[{", "*\"x-`\":0,", "\"type\":\"null\"},{}]}"}},
    {"annotations below the limit", {"{\"oneOf\":[", "*{\"x-1\":`,\"x-2\":0,\"x-3\":0,\"x-4\":0,\"x-5\":0,\"x-6\":0,"
                                     "\"const\":`},", "{\"type\":\"null\"}]}"}},
    {"choices", STRING("*(a`|b)*(c|d`){2,9}")},
    BOTH("*a`|"),
    BOTH("*a?"),
    BOTH("*(a?|b*)*"),
    BOTH("*[a-c`x-z\\\\w\\\\s]?"),
    BOTH("*[^\\\\u'x]*"),
    BOTH("*.*a`"),
    BOTH("*.{1`}"),
    BOTH("*\\\\u'+"),
    BOTH("*(^a`|b$)*"),
    BOTH("*(^|"),
    BOTH("((?<" TEXT_512 ">){1000}){1000}"),
    BOTH("(([a-ceghik-z]{0}){1000}){1000}"),
    BOTH("(a{1000}){1000}"),
    BOTH("((a{100}){100}){100}"),
    BOTH("^(a|b)*a(a|b){24}$"),
    BOTH("(.*a){40}.{900}"),
    BOTH("(a?){900}a{900}"),
    BOTH("((((((((((((a*)*)*)*)*)*)*)*)*)*)*)*)*"),
    BOTH("(x+x+)+y"),
    BOTH("[^a]{1000}"),
    BOTH("(((a?){30}){30}){30}"),
    BOTH("((^a?){30}($|b?){30}){30}"),
    BOTH("^(?!(a|b)*a(a|b){24}$)"),
    BOTH("*^(?!(a`)*)|"),
    {"look-ahead", {"{\"type\":\"string\",\"pattern\":\"^", "*(?=.*a`)", "\"}"}},
    {"look-ahead, negative", {"{\"type\":\"string\",\"pattern\":\"^", "*(?!.*a`.{9}b)", "\"}"}},
    {"look-ahead, negative classes", {"{\"type\":\"string\",\"pattern\":\"^", "*(?!.*[^\\u'a-c].a$)", "\"}"}},
    {"look-ahead, negative choice", {"{\"type\":\"string\",\"pattern\":\"^(?!.*(", "*a`.?b|", "c)x)\"}"}},
    {"look-ahead in look-ahead", {"{\"type\":\"string\",\"pattern\":\"^", "*(?!(?!.*a)", "b", "*)", "\"}"}},
    {"patterns", {"{\"allOf\":[", "*{\"type\":\"string\",\"pattern\":\"^(a|b|c)*x(a|b){1`}$\"},", "{}]}"}},
    {"patterns that exclude", {"{\"allOf\":[", "*{\"type\":\"string\",\"pattern\":\"a`\"},", "{}]}"}},
    {"formats", {"{\"prefixItems\":[", "*{\"allOf\":[{\"format\":\"ipv6\"},{\"format\":\"email\"},{\"maxLength\":`}]},",
                 "{}]}"}},
    {"brackets", {"*["}},
    {"constant text", {"{\"const\":\"", "*\\u'", "\"}"}},
    {"patternProperties", {"{\"patternProperties\":{", "*\"^p`\":{},", "\"q\":{}}}"}},
    {"patternProperties that overlap", {"{\"patternProperties\":{\"a.*b\":{},\"b.*c\":{},\"c.*d\":{},\"d.*e\":{}},"
     "\"required\":[",
                                        "*\"p`\",", "\"ab\"]}"}},
    {"patternProperties with heavy patterns", {"{\"patternProperties\":{\"(a|b)*a(a|b){20}\":{},\"^(.*a){9}.{", "300",
     "}\":{}}}"}},
    {"propertyNames of an enum", {"{\"propertyNames\":{\"enum\":[", "*\"p`\",", "\"q\"]},\"minProperties\":3}"}},
    {"propertyNames of enums", {"{\"allOf\":[{\"propertyNames\":{\"enum\":[", "*\"p`\",",
                                "\"q\"]}},{\"propertyNames\":{\"enum\":[", "*\"p`\",", "\"q\"]}}]}"}},
    {"propertyNames beside names", {"{\"propertyNames\":{\"pattern\":\"^p(0|1)*(2|3){9}\"},\"properties\":{",
     "*\"p`\":{},",
                                    "\"q\":{}}}"}},
    {"minProperties", {"{\"minProperties\":40,\"properties\":{", "*\"p`\":{},", "\"q\":{}}}"}},
    {"maxProperties", {"{\"maxProperties\":1000,\"properties\":{", "*\"p`\":{},",
     "\"q\":{}},\"additionalProperties\":{}}"}},
    {"maxProperties of any", {"{\"maxProperties\":1000000,\"x-\":[", "*0,", "0]}"}},
    {"dependentRequired", {"{\"dependentRequired\":{\"a\":[", "*\"p`\",", "\"q\"],\"b\":[", "*\"p`\",",
                           "\"q\"],\"c\":[\"a\"],\"d\":[\"c\"],\"e\":[\"d\"]}}"}},
    {"uniqueItems", {"{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"enum\":[", "*`,", "\"\"]}}"}},
    {"uniqueItems counted", {"{\"type\":\"array\",\"uniqueItems\":true,\"minItems\":90,\"items\":{\"enum\":[", "*`,",
     "\"\"]}}"}},
    {"uniqueItems limited", {"{\"type\":\"array\",\"uniqueItems\":true,\"maxItems\":900,\"items\":{\"enum\":[", "*`,",
     "\"\"]}}"}},
    {"uniqueItems in places", {"{\"type\":\"array\",\"uniqueItems\":true,\"prefixItems\":[",
     "*{\"enum\":[1,2,3,4,5,6,7]},",
                               "{}]}"}},
    {"multipleOf", {"{\"anyOf\":[", "*{\"type\":\"number\",\"multipleOf\":7.`},",
     "{\"type\":\"number\",\"multipleOf\":0.9973}]}"}},
    {"multipleOf within limits", {"{\"anyOf\":[", "*{\"type\":\"integer\",\"multipleOf\":9973,\"maximum\":9`},",
                                  "{\"type\":\"null\"}]}"}},
    {"formats", {"{\"anyOf\":[", "*{\"type\":\"string\",\"format\":\"uri-reference\",\"maxLength\":4`},",
     "{\"type\":\"null\"}]}"}},
    {"anyOf left out", {"*{\"type\":\"array\",\"items\":{\"anyOf\":[{\"type\":\"array\",\"items\":{\"contains\":1}},",
                        "{\"contains\":2}", "*]}}"}},
    {"rules that fail", {"{\"properties\":{",
     "*\"p`\":{\"anyOf\":[{\"type\":\"array\",\"items\":{\"x-\":`,\"contains\":1}},"
                         "{\"type\":\"null\"}]},", "\"q\":{}}}"}},
    {"unevaluatedProperties", {"{\"unevaluatedProperties\":{\"type\":\"null\"},\"required\":[", "*\"p`\",", "\"q\"]}"}},
};

static void add_part(char *text, size_t *size, const char *part, int i, int n)
{
    for (; *part && *size < MAX_SCHEMA + 1000; part++) {
        if (*part == '`') *size += (size_t)sprintf(text + *size, "%d", i);
        else if (*part == '~') *size += (size_t)sprintf(text + *size, "%d", i + 1);
        else if (*part == '@') *size += (size_t)sprintf(text + *size, "%d", n - i - 1);
        else if (*part == '\'') *size += (size_t)sprintf(text + *size, "%04d", i % 10000);
        else text[(*size)++] = *part;
    }
}

/* Its size; more than MAX_SCHEMA: it is too large. */
static size_t make_schema(char *text, const struct hostile *h, int n)
{
    size_t size = 0;
    for (size_t k = 0; k < MAX_PARTS && h->parts[k]; k++) {
        const char *part = h->parts[k];
        if (*part == '*')
            for (int i = 0; i < n && size <= MAX_SCHEMA; i++) add_part(text, &size, part + 1, i, n);
        else add_part(text, &size, part, n, n);
    }
    return size;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct result {
    double seconds;
    uint64_t work;
    size_t n_states;
    char said[100];
};

/* A step of work is 1 to 3 ns on a machine of 2024. */
#if defined(__SANITIZE_ADDRESS__)
#define SLOWER 6
#else
#define SLOWER 1
#endif

static void compile(struct result *worst, const char *name, const char *schema, size_t size, uint64_t max_work)
{
    struct pd_rules r;
    double begun = now();
    peridot_status status = pd_schema_compile_within(&r, max_work, schema, size);
    struct result result = {now() - begun, r.work.done, r.n_states, "compiled"};
    if (status != PERIDOT_OK) snprintf(result.said, sizeof result.said, "%s", pd_error());
    if (status == PERIDOT_OK) assert_in_range(r.work.done, 1, max_work);
    if (result.seconds > SLOWER * (0.05 + 1e-8 * (double)result.work))
        fail_msg("%s, %zu bytes: %.3f s for %.1f million steps: %s", name, size, result.seconds,
                 1e-6 * (double)result.work, result.said);
    if (result.seconds > worst->seconds) *worst = result;
    pd_rules_free(&r);
}

static void test_work(void **state)
{
    (void)state;
    char *schema = malloc(2 * MAX_SCHEMA);
    bool many = getenv("PERIDOT_TEST_MANY") != NULL;
    assert_non_null(schema);
    for (size_t i = 0; i < PD_COUNT(schemas); i++) {
        struct result worst = {0};
        size_t size, last = 0;
        for (int n = 2; (size = make_schema(schema, &schemas[i], n)) <= MAX_SCHEMA && size > last;
             n = many ? n + n / 2 + 1 : 4 * n) {
            last = size;
            compile(&worst, schemas[i].name, schema, size, many ? PD_MAX_WORK : 10000000);
        }
        if (many)
            print_message("%-50.50s %6.3f s %6.1f M %7zu: %.70s\n", schemas[i].name, worst.seconds,
                          1e-6 * (double)worst.work, worst.n_states, worst.said);
    }
    free(schema);
}

/* ---- the worst of each, for the test of the server ---- */

/* The number of times at which a schema takes the most work. */
static int find_worst(char *schema, const struct hostile *h)
{
    int worst = 2;
    uint64_t most = 0;
    size_t size, last = 0;
    for (int n = 2; (size = make_schema(schema, h, n)) <= MAX_SCHEMA && size > last && most < PD_MAX_WORK; n *= 4) {
        struct pd_rules r;
        last = size;
        pd_schema_compile_within(&r, PD_MAX_WORK, schema, size);
        if (r.work.done > most) worst = n;
        most = pd_max(most, r.work.done);
        pd_rules_free(&r);
    }
    return worst;
}

/* test_grammar_work --worst: those numbers, for `worst`. */
static int print_worst(char *schema)
{
    for (size_t i = 0; i < PD_COUNT(schemas); i++) printf("%d,\n", find_worst(schema, &schemas[i]));
    return 0;
}

static const int worst[] = {
    8192, 8192, 8192, 32768, 128, 2048, 8192, 8192, 8, 8192, 8192, 8192, 2048, 8192, 128, 128, 8192, 128, 131072, 32,
    2, 128, 128, 2, 32, 8, 8, 8192, 8, 32, 2048, 512, 128, 512, 128, 512, 512, 32, 2048, 512, 512, 32768, 32768, 2,
    128, 32768, 8192, 512, 512, 32768, 8, 8192, 128, 2, 128, 128, 32, 2048, 8, 32768, 32, 8192, 8, 2048, 8, 128, 8,
    128, 8, 32, 2, 32768, 32, 2048, 8192, 131072, 131072, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
    2, 2, 2, 2, 2, 2, 32768, 32768, 32768, 32768, 32768, 512, 32768, 8, 8, 512, 2, 32768, 8, 512, 2, 32768, 32768,
    512, 128, 8, 2, 512, 2048, 8192, 8192, 8, 128, 128, 128, 32, 512, 2048
};
_Static_assert(PD_COUNT(worst) == PD_COUNT(schemas), "a number for each schema");

/* test_grammar_work --write FOLDER: the schemas with those numbers, in files 1, 2 .. of it. */
static int write_worst(char *schema, const char *to)
{
    for (size_t i = 0; i < PD_COUNT(schemas); i++) {
        char path[1024];
        size_t size = make_schema(schema, &schemas[i], worst[i]);
        snprintf(path, sizeof path, "%s/%zu", to, i + 1);
        FILE *f = fopen(path, "wb");
        if (!f || fwrite(schema, 1, size, f) != size || fclose(f) != 0) return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_work)};
    char *schema = malloc(2 * MAX_SCHEMA);
    int status = schema && argc == 2 && strcmp(argv[1], "--worst") == 0 ? print_worst(schema)
        : schema && argc == 3 && strcmp(argv[1], "--write") == 0        ? write_worst(schema, argv[2])
        : cmocka_run_group_tests_name("grammar_work", tests, NULL, NULL);
    free(schema);
    return status;
}

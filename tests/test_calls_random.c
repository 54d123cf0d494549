/* Replies at random under the grammars of tool calls: of every format, with control tokens and without, in every mode,
 * with many schemas. Each parses, by a parser of the test's own and by the library's, to the same calls; and what they
 * are called with is valid. Masks of tokens say what following each token says. */
#include "calls_fixture.h"

#include "grammar/calls/calls.h"
#include "grammar/grammar.h"
#include "schema_validator.h"

enum { MAX_REPLY = 700, MAX_CALLS = 200, N_MODES = 1, N_REPLIES = 4 };

/* ---- a reply, token by token ---- */

static const char *const tokens[] = {
    "\"", "}", "]", "0", "1", ":", ",", "a", "e", "<|\"|>", "<escape>", "<tool_call|>", "<end_function_call>",
    "</tool_call>", "```", "\n", "<|tool_call>", "<start_function_call>", "<tool_call>", "<|python_tag|>",
    "[TOOL_CALLS]", "<function=", "</function>", "[ARGS]", "[CALL_ID]", ", \"id\": \"", "<|tool_call|>",
    "<|/tool_call|>", "<function_calls>", "</function_calls>", "(", ")",
    "=", "```json\n", "{\"name\": \"", "[", "call:", "; ", "\"}", "}}", "{\"type\": \"function\", \"name\": \"",
    "true", "t", "<atem:parameter name=\"", "\">", "</atem:parameter>", "</atem:invoke>", "<atem:",
    "<parameter=", ">\n", "\n</parameter>", "\n</",
    " to=user<|message|>", "<|message|>", "<|eom|>", "<|start|>assistant to="};

static uint32_t draw(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33);
}

static size_t draw_token(char *out, struct pd_walk *w, const struct pd_rules *r, unsigned marks, uint64_t *seed)
{
    uint32_t first = draw(seed);
    for (size_t i = 0; i < PD_COUNT(tokens) && first % 2; i++) {
        const char *token = tokens[(first / 2 + i) % PD_COUNT(tokens)];
        size_t n = put_marks(out, token, strlen(token), marks);
        if (pd_walk_take(w, r, out, n)) return n;
    }
    for (uint32_t i = 0; i < 256; i++) {
        out[0] = (char)(first / 2 + i);
        if (out[0] && pd_walk_take(w, r, out, 1)) return 1;   /* replies are terminated */
    }
    return 0;
}

/* Its size, 0: it came to no end. */
static size_t draw_reply(char *out, const struct pd_rules *r, unsigned marks, uint64_t *seed)
{
    struct pd_walk w;
    size_t n = 0, size = 1;
    pd_walk_begin(&w, r);
    while (n + 64 < MAX_REPLY && size && !(pd_walk_is_complete(&w, r) && draw(seed) % 8 == 0))
        n += size = draw_token(out + n, &w, r, marks, seed);
    assert_true(size || pd_walk_is_complete(&w, r));
    out[n] = 0;
    return pd_walk_is_complete(&w, r) ? n : 0;
}

/* ---- what the library's parser makes of it ---- */

struct found {
    struct pd_buffer text;
    struct {
        char name[PD_MAX_CALL_NAME + 1];
        struct pd_buffer arguments;
        bool ended;
    } calls[MAX_CALLS];
    size_t n;
};

static peridot_status find_text(void *user, const char *bytes, size_t size)
{
    struct found *f = user;
    assert_int_equal(f->n, 0);   /* no text comes after calls */
    return pd_buffer_add(&f->text, bytes, size);
}

static peridot_status find_begin(void *user, const char *name, size_t size)
{
    struct found *f = user;
    assert_true(f->n < MAX_CALLS);
    memcpy(f->calls[f->n].name, name, size);
    f->calls[f->n++].name[size] = 0;
    return PERIDOT_OK;
}

static peridot_status find_arguments(void *user, const char *json, size_t size)
{
    struct found *f = user;
    return pd_buffer_add(&f->calls[f->n - 1].arguments, json, size);
}

static peridot_status find_end(void *user)
{
    struct found *f = user;
    f->calls[f->n - 1].ended = true;
    return PERIDOT_OK;
}

static void find_calls(struct found *f, const struct pd_calls *c, const char *bytes, size_t size)
{
    struct pd_call_parser p = {.format = c->format, .marks = c->marks, .tools = c->tools,
                               .name = c->name};
    const struct pd_call_sink sink = {f, find_text, find_begin, find_arguments, find_end};
    memset(f, 0, sizeof *f);
    EXPECT_OK(pd_call_parser_next(&p, &sink, bytes, size, true));
}

static void free_found(struct found *f)
{
    free(f->text.data);
    for (size_t i = 0; i < f->n; i++) free(f->calls[i].arguments.data);
}

/* ---- a parser of the test's own, for replies that are complete ---- */

static bool take(const char **at, const char *text)
{
    size_t n = strlen(text);
    bool is = n && strncmp(*at, text, n) == 0;
    if (is) *at += n;
    return is;
}

static void add(struct pd_buffer *out, const char *text, size_t size)
{
    EXPECT_OK(pd_buffer_add(out, text, size));
}

static void add_quoted(struct pd_buffer *out, const char *text, size_t size)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    char *json = yyjson_mut_val_write(yyjson_mut_strn(doc, text, size), 0, &size);
    assert_non_null(json);
    add(out, json, size);
    free(json);
    yyjson_mut_doc_free(doc);
}

/* A value of the formats with delimiters as JSON. */
static void convert(struct pd_buffer *out, const char **at, const char *delimiter)
{
    if (take(at, delimiter)) {
        const char *end = strstr(*at, delimiter);
        assert_non_null(end);
        add_quoted(out, *at, (size_t)(end - *at));
        *at = end + strlen(delimiter);
    } else if (**at == '{' || **at == '[') {
        bool object = *(*at)++ == '{';
        add(out, object ? "{" : "[", 1);
        for (bool first = true; !take(at, object ? "}" : "]"); first = false) {
            if (!first) assert_true(take(at, ","));
            if (!first) add(out, ",", 1);
            size_t n = object ? strcspn(*at, ":") : 0;
            if (object) add_quoted(out, *at, n);
            if (object) add(out, ":", 1);
            *at += n + object;
            convert(out, at, delimiter);
        }
        add(out, object ? "}" : "]", 1);
    } else {
        size_t n = strcspn(*at, ",}]");
        assert_true(n > 0);
        add(out, *at, n);
        *at += n;
    }
}

static void expect_same(const char *a, const char *b, size_t size)
{
    yyjson_doc *x = yyjson_read(a, strlen(a), 0), *y = yyjson_read(b, size, 0);
    if (!x || !y) fail_msg("not JSON: %s\nor %.*s", a, (int)size, b);
    char *left = yyjson_write(x, 0, NULL), *right = yyjson_write(y, 0, NULL);
    assert_string_equal(left, right);
    free(left);
    free(right);
    yyjson_doc_free(x);
    yyjson_doc_free(y);
}

/* Call i begins there: {"name": ..., ...: arguments}. */
static void expect_json_call(const struct found *f, size_t i, const char **at)
{
    yyjson_doc *doc = yyjson_read_opts((char *)(uintptr_t)*at, strlen(*at), YYJSON_READ_STOP_WHEN_DONE, NULL, NULL);
    if (!doc) fail_msg("no JSON: %s", *at);
    yyjson_val *root = yyjson_doc_get_root(doc), *arguments = yyjson_obj_get(root, "arguments");
    if (!arguments) arguments = yyjson_obj_get(root, "parameters");
    assert_string_equal(yyjson_get_str(yyjson_obj_get(root, "name")), f->calls[i].name);
    char *json = yyjson_val_write(arguments, 0, NULL);
    expect_same(json, f->calls[i].arguments.data, f->calls[i].arguments.size);
    *at += yyjson_doc_get_read_size(doc);
    free(json);
    yyjson_doc_free(doc);
}

/* call:NAME{...} */
static void expect_delimited_call(const struct found *f, size_t i, const char **at, const char *delimiter)
{
    struct pd_buffer json = {0};
    assert_true(take(at, "call:") && take(at, f->calls[i].name));
    convert(&json, at, delimiter);
    EXPECT_OK(pd_buffer_end(&json));
    expect_same(json.data, f->calls[i].arguments.data, f->calls[i].arguments.size);
    free(json.data);
}

/* Of the JSON that begins there. */
static void take_json(struct pd_buffer *out, const char **at)
{
    yyjson_doc *doc = yyjson_read_opts((char *)(uintptr_t)*at, strlen(*at), YYJSON_READ_STOP_WHEN_DONE, NULL, NULL);
    if (!doc) fail_msg("no JSON: %s", *at);
    add(out, *at, yyjson_doc_get_read_size(doc));
    *at += yyjson_doc_get_read_size(doc);
    yyjson_doc_free(doc);
}

static void expect_arguments(const struct found *f, size_t i, struct pd_buffer *json)
{
    EXPECT_OK(pd_buffer_end(json));
    expect_same(json->data, f->calls[i].arguments.data, f->calls[i].arguments.size);
    free(json->data);
}

static void skip_texts(const char **at, const char *const *texts, size_t n)
{
    for (size_t k = 0; k < n;) k = take(at, texts[k]) ? 0 : k + 1;
}

/* NAME[ARGS]{...} or the like; marks are in their order. */
static void expect_named_call(const struct found *f, size_t i, const char **at)
{
    struct pd_buffer json = {0};
    static const char *const middles[] = {"[ARGS]", "\xf7", ">", " ", "\n", "```json", "<|constrain|>", "\xf9", "json",
        "<|message|>"};
    assert_true(take(at, f->calls[i].name));
    bool channel = take(at, "<|channel|>commentary") || take(at, "\xf8" "commentary");
    if (!channel && (take(at, "[CALL_ID]") || take(at, "\xf8"))) *at += PD_CALL_ID_SIZE;
    skip_texts(at, middles, PD_COUNT(middles));
    take_json(&json, at);
    expect_arguments(f, i, &json);
}

/* NAME(name=value, ...) */
static void expect_keywords_call(const struct found *f, size_t i, const char **at)
{
    struct pd_buffer json = {0};
    assert_true(take(at, f->calls[i].name) && take(at, "("));
    add(&json, "{", 1);
    for (bool first = true; !take(at, ")"); first = false) {
        *at += strspn(*at, " \n");
        if (take(at, ")")) break;
        if (!first) assert_true(take(at, ","));
        if (!first) add(&json, ",", 1);
        *at += strspn(*at, " \n");
        size_t n = strcspn(*at, "=");
        add_quoted(&json, *at, n);
        add(&json, ":", 1);
        *at += n + 1;
        take_json(&json, at);
    }
    add(&json, "}", 1);
    expect_arguments(f, i, &json);
}

/* NAME ... (in atem to=NAME ... name="NAME">), then tags. */
static void expect_tagged_call(const struct found *f, size_t i, const char **at, const struct pd_tags *tags)
{
    static const char *const middles[] = {"<|message|>", "\xf7", "<atem:function_calls>", " ", "\n"};
    struct pd_buffer json = {0};
    yyjson_doc *doc = yyjson_read(f->calls[i].arguments.data, f->calls[i].arguments.size, 0);
    yyjson_obj_iter members = yyjson_obj_iter_with(yyjson_doc_get_root(doc));
    bool atem = take(at, "to=");
    assert_true(take(at, f->calls[i].name));
    if (atem) {
        skip_texts(at, middles, PD_COUNT(middles));
        assert_true(take(at, "<atem:invoke name=\"") && take(at, f->calls[i].name) && take(at, "\">"));
    } else {
        assert_true(take(at, ">"));
    }
    add(&json, "{", 1);
    for (bool first = true; *at += strspn(*at, " \n"), !take(at, tags->end); first = false) {
        yyjson_val *value = yyjson_obj_iter_get_val(yyjson_obj_iter_next(&members));
        assert_true(value && take(at, tags->name));
        size_t n = strcspn(*at, (char[]){*tags->value, 0});
        if (!first) add(&json, ",", 1);
        add_quoted(&json, *at, n);
        add(&json, ":", 1);
        *at += n;
        assert_true(take(at, tags->value));
        if (!yyjson_is_str(value)) take_json(&json, at);   /* where `after` may be in a string */
        const char *end = strstr(*at, tags->after);
        assert_non_null(end);
        if (yyjson_is_str(value)) add_quoted(&json, *at, (size_t)(end - *at));
        else add(&json, *at, (size_t)(end - *at));
        *at = end + strlen(tags->after);
    }
    add(&json, "}", 1);
    yyjson_doc_free(doc);
    expect_arguments(f, i, &json);
}

/* Of text. */
static void skip_header(const char **at)
{
    const char *begin = *at;
    if (!take(at, "<|start|>assistant")) take(at, "\xf6" "assistant");
    static const char *const ends[] = {" to=user<|message|>", " to=user\xf7", "<|channel|>final<|message|>",
        "\xf8" "final\xf7", "<|channel|>commentary<|message|>", "\xf8" "commentary\xf7"};
    for (size_t i = 0; i < PD_COUNT(ends); i++)
        if (take(at, ends[i])) return;
    *at = begin;
}

static void expect_calls(const struct found *f, const struct pd_calls *c, const char *reply)
{
    static const char *const wrappers[] = {
        " ", "\n", "```json", "```", "[TOOL_CALLS]", "[", "]", ",", ";", "<tool_call>", "</tool_call>", "<|tool_call>",
        "<tool_call|>", "<start_function_call>", "<end_function_call>", "<|python_tag|>", "<|tool_call|>",
        "<|/tool_call|>", "<function_calls>", "</function_calls>", "<function=", "</function>", "function",
        TOOL_TOKEN("calls\xe2\x96\x81" "begin"), TOOL_TOKEN("calls\xe2\x96\x81" "end"),
        TOOL_TOKEN("call\xe2\x96\x81" "begin"), TOOL_TOKEN("call\xe2\x96\x81" "end"), TOOL_TOKEN("sep"), "\xf6",
        "\xf7", "\xf8", "\xf9", "\xfa", "<|eom|>", "<|start|>", "assistant", "</atem:function_calls>",
        "<|channel|>", "commentary", "to=functions.", "<|end|>"};
    const char *at = reply, *delimiter = pd_call_delimiter(c->format, c->marks);
    if (c->format->headers[0]) skip_header(&at);
    assert_memory_equal(at, f->text.size ? f->text.data : "", f->text.size);
    at += f->text.size;
    for (size_t i = 0; i < f->n; i++) {
        skip_texts(&at, wrappers, PD_COUNT(wrappers));
        if (delimiter) expect_delimited_call(f, i, &at, delimiter);
        else if (c->format->tags) expect_tagged_call(f, i, &at, c->format->tags);
        else if (c->format->keywords) expect_keywords_call(f, i, &at);
        else if (!strchr(c->format->before, '{')) expect_named_call(f, i, &at);
        else expect_json_call(f, i, &at);
        assert_true(f->calls[i].ended);
    }
    if (f->n) skip_texts(&at, wrappers, PD_COUNT(wrappers));
    if (!f->n && c->format->ends) take(&at, c->format->ends);   /* of the last message */
    if (*at) fail_msg("%s\nof %s goes on after its %zu calls: %s", reply, pd_call_format_name(c->format), f->n, at);
}

/* ---- all of it ---- */

struct counts {
    unsigned replies, texts, calls, refused;
};

static void expect_valid(const struct found *f, yyjson_val *schema)
{
    for (size_t i = 0; i < f->n; i++) {
        struct validator v = {.root = schema};
        if (strcmp(f->calls[i].name, "tool") != 0) continue;
        yyjson_doc *doc = yyjson_read(f->calls[i].arguments.data, f->calls[i].arguments.size, 0);
        if (!is_valid(&v, schema, yyjson_doc_get_root(doc)))
            fail_msg("%.*s\nis not valid (%s)", (int)f->calls[i].arguments.size, f->calls[i].arguments.data, v.why);
        yyjson_doc_free(doc);
    }
}

static void check_reply(struct counts *n, const struct pd_calls *c, yyjson_val *schema, const char *reply, size_t size)
{
    static struct found f;
    struct transcript t;
    find_calls(&f, c, reply, size);
    expect_calls(&f, c, reply);
    expect_valid(&f, schema);
    if (n->replies % 64 == 0) {
        parse_all_ways(&t, c, reply, size);
        free(t.said.data);
    }
    assert_true(f.n <= 1 || c->parallel);
    assert_true(f.text.size == 0 || c->choice == PD_CALL_AUTO);
    assert_true(f.n > 0 || c->choice == PD_CALL_AUTO);
    for (size_t i = 0; c->name && i < f.n; i++) assert_string_equal(f.calls[i].name, c->name);
    n->replies++;
    n->texts += f.n == 0;
    n->calls += (unsigned)f.n;
    free_found(&f);
}

/* In some modes: bit 0: required, 1: parallel, 2: one tool. */
static void check_format(struct counts *n, struct pd_calls *c, yyjson_val *schema, uint64_t *seed)
{
    static char reply[MAX_REPLY];
    for (int k = 0; k < N_MODES; k++) {
        struct pd_rules r;
        unsigned mode = draw(seed) % 8;
        c->choice = mode & 1 ? PD_CALL_REQUIRED : PD_CALL_AUTO;
        c->parallel = mode & 2;
        c->name = mode & 4 ? "tool" : NULL;
        peridot_status status = pd_calls_compile(&r, c);
        n->refused += status == PERIDOT_ERROR_UNSUPPORTED;
        if (status != PERIDOT_ERROR_UNSUPPORTED) EXPECT_OK(status);
        else if (getenv("PERIDOT_TEST_REFUSALS")) print_message("%s\n", pd_error());
        for (int i = 0; i < N_REPLIES && status == PERIDOT_OK; i++) {
            size_t size = draw_reply(reply, &r, c->marks, seed);
            if (size) check_reply(n, c, schema, reply, size);
        }
        pd_rules_free(&r);
    }
}

/* The schema as it is where it has objects, else as that of a property. */
static void check_schema(struct counts *n, yyjson_val *schema, uint64_t *seed)
{
    size_t size;
    char *source = yyjson_val_write(schema, 0, &size);
    bool whole = yyjson_equals_str(yyjson_obj_get(schema, "type"), "object");
    size_t capacity = size + 200;
    char *list = malloc(capacity);
    assert_non_null(list);
    if (!whole && strstr(source, "$ref")) snprintf(source, size, "true");   /* its places would be others */
    snprintf(list, capacity, whole ? "[{\"name\":\"tool\",\"parameters\":%s},{\"name\":\"tools\"}]"
                                   : "[{\"name\":\"tool\",\"parameters\":{\"type\":\"object\",\"required\":[\"v\"],"
                                     "\"properties\":{\"v\":%s}}},{\"name\":\"tools\"}]", source);
    yyjson_doc *doc = yyjson_read(list, strlen(list), 0);
    assert_non_null(doc);
    for (size_t i = 0; pd_call_format_name_at(i); i++)
        for (int with = 0; with < 2; with++) {
            const char *name = pd_call_format_name_at(i);
            struct pd_calls c = {.format = pd_call_format_find(name), .marks = with ? marks_of(name) : 0};
            c.tools = yyjson_doc_get_root(doc);
            check_format(n, &c, yyjson_obj_get(yyjson_arr_get_first(c.tools), "parameters"), seed);
        }
    yyjson_doc_free(doc);
    free(list);
    free(source);
}

static void expect_counts(const struct counts *n)
{
    print_message("%u replies, %u of them without calls; %u calls; %u grammars refused\n", n->replies, n->texts,
                  n->calls, n->refused);
    assert_true(n->calls > n->replies / 2 && n->texts > n->replies / 100);
}

static void test_schemas(void **state)
{
    (void)state;
    struct counts counts = {0};
    uint64_t seed = 3;
    size_t i, n;
    yyjson_val *schema;
    yyjson_doc *schemas = yyjson_read_file(PERIDOT_GOLDEN "/schemas.json", 0, NULL, NULL);
    assert_non_null(schemas);
    yyjson_arr_foreach(yyjson_doc_get_root(schemas), i, n, schema) check_schema(&counts, schema, &seed);
    yyjson_doc_free(schemas);
    expect_counts(&counts);
}

static void test_tool_schemas(void **state)
{
    (void)state;
    struct counts counts = {0};
    uint64_t seed = 4;
    char *line = NULL;
    size_t capacity = 0;
    FILE *file = fopen(PERIDOT_GOLDEN "/tool-schemas.jsonl", "r");
    assert_non_null(file);
    while (getline(&line, &capacity, file) > 0) {
        yyjson_doc *doc = yyjson_read(line, strlen(line), 0);
        assert_non_null(doc);
        check_schema(&counts, yyjson_obj_get(yyjson_doc_get_root(doc), "schema"), &seed);
        yyjson_doc_free(doc);
    }
    free(line);
    fclose(file);
    expect_counts(&counts);
}

/* ---- tokens ---- */

static void make_spellings(struct pd_spellings *s)
{
    uint32_t id = 1;
    *s = (struct pd_spellings){0};
    EXPECT_OK(pd_spellings_add_stop(s, 0));
    for (unsigned b = 0; b < 256; b++) EXPECT_OK(pd_spellings_add(s, id++, &(char){(char)b}, 1));
    for (size_t i = 0; i < PD_COUNT(tokens); i++) EXPECT_OK(pd_spellings_add(s, id++, tokens[i], strlen(tokens[i])));
    EXPECT_OK(pd_spellings_finish(s, id));
}

static void check_masks(const peridot_grammar *g, uint64_t *seed)
{
    struct pd_walk w;
    pd_walk_begin(&w, &g->rules);
    for (int step = 0; step < 150; step++) {
        const struct pd_mask *mask;
        struct pd_mask *made;
        uint32_t ids[400], n = 0;
        EXPECT_OK(pd_grammar_mask(&mask, &made, g, &w));
        for (uint32_t id = 1; id < g->spellings->n_pieces; id++) {
            struct pd_walk next = w;
            bool can = pd_grammar_take(&next, g, (int32_t)id);
            assert_int_equal(pd_mask_has(mask, id), can);
            if (can) ids[n++] = id;
        }
        assert_int_equal(pd_mask_has(mask, 0), pd_walk_is_complete(&w, &g->rules));
        free(made);
        if (n) assert_true(pd_grammar_take(&w, g, (int32_t)ids[draw(seed) % n]));
        else pd_walk_begin(&w, &g->rules);
    }
}

static void test_masks(void **state)
{
    (void)state;
    struct pd_spellings s;
    uint64_t seed = 5;
    yyjson_doc *doc = yyjson_read(weather_tools, strlen(weather_tools), 0);
    make_spellings(&s);
    for (size_t i = 0; pd_call_format_name_at(i); i++)
        for (unsigned mode = 0; mode < 4; mode++) {
            const char *name = pd_call_format_name_at(i);
            struct pd_calls c = {.format = pd_call_format_find(name), .parallel = true,
                                 .marks = mode & 1 ? marks_of(name) : 0, .tools = yyjson_doc_get_root(doc),
                                 .choice = mode & 2 ? PD_CALL_REQUIRED : PD_CALL_AUTO};
            struct pd_rules r;
            peridot_grammar *g;
            EXPECT_OK(pd_calls_compile(&r, &c));
            EXPECT_OK(pd_grammar_create_of(&g, &s, &r));
            check_masks(g, &seed);
            pd_grammar_free(g);
        }
    pd_spellings_free(&s);
    yyjson_doc_free(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_schemas), cmocka_unit_test(test_tool_schemas),
                                       cmocka_unit_test(test_masks)};
    return cmocka_run_group_tests_name("calls_random", tests, NULL, NULL);
}

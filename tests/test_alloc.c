/* Allocations that fail in vocabularies, templates, files, grammars, models and sessions: see alloc_fixture.h. */
#include "bpe_fixture.h"   /* sets what it needs of POSIX */
#include "alloc_fixture.h"

#include "api/api.h"
#include "peridot_tools.h"
#include "base/base.h"
#include "text/template/template.h"

#define DIRECTORY PERIDOT_GOLDEN "/gemma2-base"
#define GGUF PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf"
#define GEMMA4 PERIDOT_GOLDEN "/gemma4-small"      /* layers of two kinds, and inputs of layers */
#define LLAMA PERIDOT_GOLDEN "/llama"
#define STORIES PERIDOT_MODELS "/stories.gguf"

static const peridot_adapter_file adapters[] = {{.path = PERIDOT_GOLDEN "/lora/llama/first", .scale = 1},
    {.path = PERIDOT_GOLDEN "/lora/llama/second.gguf", .scale = 1}};

/* What calls are made on. */
static peridot_vocab *vocab;
static peridot_model *model;
static peridot_session *session;
static peridot_sequence *sequence;
static const int32_t prompt[] = {2, 5, 7, 11, 13};

/* ---- vocabularies ---- */

static peridot_status open_and_close(const char *path)
{
    peridot_vocab *v;
    peridot_status status = peridot_vocab_open(&v, path);
    peridot_vocab_close(v);
    return status;
}

static peridot_status open_model_file(void) { return open_and_close(DIRECTORY "/tokenizer.model"); }
static peridot_status open_directory(void) { return open_and_close(DIRECTORY); }
static peridot_status open_gguf(void) { return open_and_close(STORIES); }
static peridot_status open_chars(void) { return open_and_close(in_folder("chars.json")); }
static peridot_status open_bytes(void) { return open_and_close(in_folder("bytes.json")); }

static void write_json(const char *name, const struct json_parts *parts)
{
    struct pd_buffer b = json_make(parts);
    write_file(in_folder(name), b.data, b.size);
    free(b.data);
}

static peridot_status encode(void)
{
    int32_t *ids;
    size_t n;
    peridot_status status = peridot_encode(&ids, &n, vocab, "Once <s>upon\n", 13, BOS | SPECIAL);
    peridot_free(ids);
    return status;
}

static peridot_status decode(void)
{
    char *text;
    size_t size;
    peridot_status status = peridot_decode(&text, &size, vocab, prompt, PD_COUNT(prompt));
    peridot_free(text);
    return status;
}

static const peridot_message messages[] = {{"system", "a"}, {"user", " b "}, {"assistant", "c"}, {"user", "d"}};

static peridot_status encode_messages(void)
{
    int32_t *ids;
    size_t n;
    peridot_status status = peridot_encode_messages(&ids, &n, vocab, messages, PD_COUNT(messages), "plain");
    peridot_free(ids);
    return status;
}

static peridot_status encode_turns(void)
{
    int32_t *ids;
    size_t n;
    peridot_chat chat = {.size = sizeof chat, .template_name = "plain", .ids = prompt, .n_ids = PD_COUNT(prompt),
                         .messages = messages + 1, .n_messages = 1};
    peridot_status status = peridot_encode_turns(&ids, &n, vocab, &chat);
    peridot_free(ids);
    return status;
}

static peridot_status encode_infill(void)
{
    int32_t *ids;
    size_t n;
    const peridot_infill infill = {.size = sizeof infill, .prefix = "hello", .prefix_size = 5, .suffix = "the",
                                   .suffix_size = 3};
    peridot_status status = peridot_encode_infill(&ids, &n, vocab, &infill);
    peridot_free(ids);
    return status;
}

static peridot_status encode_images(void)
{
    static const char json[] = "[{\"role\": \"user\", \"content\": [{\"type\": \"image\"}, "
                               "{\"type\": \"text\", \"text\": \"hello\"}, {\"type\": \"image\"}]}]";
    static int32_t image_ids[] = {INT32_MIN, -2};
    static struct peridot_image image = {.n_parts = 1, .n_rows = PD_COUNT(image_ids), .ids = image_ids};
    peridot_image *const images[] = {&image, &image};
    const peridot_chat chat = {.size = sizeof chat, .template_name = "gemma", .json = json,
        .json_size = sizeof json - 1, .images = images, .n_images = PD_COUNT(images)};
    int32_t *ids;
    size_t n;
    peridot_status status = peridot_encode_turns(&ids, &n, vocab, &chat);
    peridot_free(ids);
    return status;
}

static void test_vocabularies(void **state)
{
    (void)state;
    static const struct call calls[] = {
        {.name = "vocab_open, tokenizer.model", .run = open_model_file},
        {.name = "vocab_open, directory", .run = open_directory},
        {.name = "vocab_open, GGUF", .run = open_gguf}, {.name = "vocab_open, merges of characters", .run = open_chars},
        {.name = "vocab_open, merges of bytes", .run = open_bytes}, {.name = "encode", .run = encode},
        {.name = "decode", .run = decode}, {.name = "encode_messages", .run = encode_messages},
        {.name = "encode_turns", .run = encode_turns},
    };
    write_json("chars.json", &char_parts);
    write_json("bytes.json", &byte_parts);
    vocab = open_vocab(STORIES);
    check_calls(calls, PD_COUNT(calls));
    peridot_vocab_close(vocab);
    static const char *const marks[] = {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<start_of_image>",
        "<end_of_image>"};
    struct tiny t;
    tiny_make(&t);
    for (size_t i = 0; i < PD_COUNT(marks); i++) tiny_add(&t, marks[i], 0, 3);
    vocab = open_tiny(&t);
    check_call(&(struct call){.name = "encode_infill", .run = encode_infill});
    check_call(&(struct call){.name = "encode_turns, images", .run = encode_images});
    peridot_vocab_close(vocab);
}

/* The vocabularies whose merges are ours. */
static void test_merges(void **state)
{
    (void)state;
    static const char *const names[] = {"chars.json", "bytes.json"};
    for (size_t i = 0; i < PD_COUNT(names); i++) {
        vocab = open_vocab(in_folder(names[i]));
        check_call(&(struct call){.name = "encode by merges", .run = encode});
        peridot_vocab_close(vocab);
    }
}

/* ---- templates ---- */

static const char jinja[] =
    "{%- macro m(a, b=[1, 'x']) %}{{ a ~ b }}{% endmacro %}{% set ns = namespace(t='') %}"
    "{% for x in messages if x.role != 'z' %}{% set ns.t = ns.t ~ x.role ~ '\\u00e9' %}{{ m(x.content | trim) }}"
    "{% endfor %}"
    "{% set big | upper %}{{ messages | tojson(indent=2) }}{% endset %}{{ ns.t * 5000 }}{{ big }}{{ ['\\u00a0'] }}"
    "{{ messages | map(attribute='role') | unique | sort | list }}{{ {'b': 1, 'a': 2} | dictsort }}";

static peridot_status render_template(void)
{
    static const char json[] = "{\"messages\": [{\"role\": \"user\", \"content\": \" a \"}, {\"role\": \"b\"}]}";
    struct pd_template *t;
    struct pd_template_output out = {0};
    yyjson_doc *doc;
    PD_TRY(pd_json_read(&doc, (const uint8_t *)json, sizeof json - 1));
    const struct pd_template_input in = {.variables = yyjson_doc_get_root(doc)};
    peridot_status status = pd_template_parse(&t, jinja, sizeof jinja - 1);
    if (status == PERIDOT_OK) status = pd_template_render(&out, t, &in);
    pd_template_free(t);
    pd_template_output_free(&out);
    yyjson_doc_free(doc);
    return status;
}

static void test_templates(void **state)
{
    (void)state;
    check_call(&(struct call){.name = "template", .run = render_template});
}

/* ---- files ---- */

static peridot_status show(const char *path)
{
    peridot_file *file;
    char *text;
    peridot_status status = peridot_file_open(&file, path);
    if (status != PERIDOT_OK) return status;
    for (size_t i = 0; i < peridot_file_n_metadata(file) && status == PERIDOT_OK; i++) {
        status = peridot_file_metadata_text(&text, file, i);
        peridot_free(text);
    }
    peridot_file_close(file);
    return status;
}

static peridot_status show_gguf(void) { return show(GGUF); }
static peridot_status show_directory(void) { return show(DIRECTORY); }
static peridot_status show_shards(void) { return show(PERIDOT_GOLDEN "/gemma2-bf16-shards"); }

static peridot_status convert(const char *source, const char *type, size_t n_adapters)
{
    peridot_status status = peridot_convert(in_folder("out.gguf"), source, &(peridot_convert_params){
        .type = type, .adapters = adapters, .n_adapters = n_adapters}, NULL);
    remove(in_folder("out.gguf"));
    return status;
}

static peridot_status convert_directory(void) { return convert(DIRECTORY, "q8_0", 0); }
static peridot_status convert_gemma4(void) { return convert(GEMMA4, "q8_0", 0); }
static peridot_status convert_gguf(void) { return convert(GGUF, "f16", 0); }
static peridot_status convert_adapted(void) { return convert(LLAMA, "q8_0", PD_COUNT(adapters)); }

static bool stop_progress(void *user, uint64_t done, uint64_t total)
{
    (void)user, (void)done, (void)total;
    return false;
}

/* After the header: what failed before is told when that is written. */
static bool stop_weights(void *user, uint64_t done, uint64_t total)
{
    (void)user, (void)total;
    return done == 0;
}

static peridot_status make(void)
{
    peridot_make_params params = {.shape = "gemma3-270m", .type = "q4_0", .progress = stop_weights};
    return peridot_make(in_folder("made.gguf"), &params);
}

static void test_files(void **state)
{
    (void)state;
    static const struct call calls[] = {
        {.name = "file_open, GGUF", .run = show_gguf}, {.name = "file_open, directory", .run = show_directory},
        {.name = "file_open, shards", .run = show_shards}, {.name = "convert, directory", .run = convert_directory},
        {.name = "convert, GGUF", .run = convert_gguf}, {.name = "convert, Gemma 4", .run = convert_gemma4},
        {.name = "convert, adapters", .run = convert_adapted},
        {.name = "make", .run = make, .good = PERIDOT_CANCELLED},
    };
    check_calls(calls, PD_COUNT(calls));
}

/* ---- grammars ---- */

/* A rule of each kind. */
static const char schema[] =
    "{\"type\": \"object\", \"required\": [\"a\", \"b\"], \"additionalProperties\": {\"type\": \"null\"}, "
    "\"properties\": {"
    "\"a\": {\"type\": \"string\", \"pattern\": \"^[a-c]{2,5}(x|yz)*$\"}, \"b\": {\"$ref\": \"#/$defs/list\"},"
    "\"c\": {\"type\": \"integer\", \"minimum\": -3, \"maximum\": 120}, \"d\": "
    "{\"type\": \"string\", \"format\": \"date\"},"
    "\"e\": {\"anyOf\": [{\"const\": 7}, {\"enum\": [\"u\", \"v\"]}, {\"type\": \"boolean\"}]},"
    "\"f\": {\"type\": \"string\", \"minLength\": 2, \"maxLength\": 9}},"
    "\"$defs\": {\"list\": {\"type\": \"array\", \"prefixItems\": [{\"type\": \"number\"}],"
    "\"items\": {\"allOf\": [{\"type\": \"string\"}, {\"maxLength\": 3}]}, \"minItems\": 1, \"maxItems\": 3}}}";

static peridot_status compile_json(void)
{
    peridot_grammar *grammar;
    peridot_status status = peridot_grammar_json(&grammar, vocab);
    peridot_grammar_free(grammar);
    return status;
}

static peridot_status compile_schema(void)
{
    peridot_grammar *grammar;
    peridot_status status = peridot_grammar_json_schema(&grammar, vocab, schema, sizeof schema - 1);
    peridot_grammar_free(grammar);
    return status;
}

/* JSON, and strings between texts. */
static yyjson_val *tools;
static struct pd_calls tool_calls(const char *format)
{
    return (struct pd_calls){.format = pd_call_format_find(format), .tools = tools, .parallel = true};
}

static peridot_status compile_calls(const char *format)
{
    const struct pd_calls c = tool_calls(format);
    peridot_grammar *grammar;
    peridot_status status = pd_api_grammar_calls(&grammar, vocab, &c);
    peridot_grammar_free(grammar);
    return status;
}

static peridot_status compile_gemma3(void) { return compile_calls("gemma3"); }
static peridot_status compile_gemma4(void) { return compile_calls("gemma4"); }

static peridot_status write_calls(void)
{
    const struct pd_calls c = tool_calls("gemma4");
    const struct pd_call call = {"f", yyjson_arr_get_first(tools)};
    struct pd_buffer text = {0};
    peridot_status status = pd_calls_describe(&text, &c);
    if (status == PERIDOT_OK) status = pd_calls_write(&text, &c, &call, 1);
    if (status == PERIDOT_OK) status = pd_calls_write_result(&text, &c, "f", "x", 1);
    free(text.data);
    return status;
}

static void test_grammars(void **state)
{
    (void)state;
    static const struct call calls[] = {
        {.name = "grammar_json", .run = compile_json}, {.name = "grammar_json_schema", .run = compile_schema},
        {.name = "grammar of calls, JSON", .run = compile_gemma3},
        {.name = "grammar of calls, a dialect", .run = compile_gemma4}, {.name = "texts of calls", .run = write_calls}};
    char list[sizeof schema + 100];
    int size = snprintf(list, sizeof list, "[{\"name\": \"f\", \"parameters\": %s}, {\"name\": \"g\"}]", schema);
    yyjson_doc *doc = yyjson_read(list, (size_t)size, 0);
    assert_non_null(doc);
    tools = yyjson_doc_get_root(doc);
    assert_int_equal(peridot_vocab_open(&vocab, STORIES), PERIDOT_OK);
    check_calls(calls, PD_COUNT(calls));
    peridot_vocab_close(vocab);
    yyjson_doc_free(doc);
}

/* ---- models ---- */

static peridot_status list_devices(void)
{
    const peridot_device_info **devices;
    size_t n;
    peridot_status status = peridot_devices(&devices, &n);
    peridot_free(devices);
    return status;
}

static peridot_status open_path(const char *path, size_t n_adapters)
{
    peridot_model *m;
    peridot_status status = peridot_model_open(&m, path, &(peridot_model_params){.size = sizeof(peridot_model_params),
        .cache_dir = in_folder("cache"), .adapters = adapters, .n_adapters = n_adapters});
    peridot_model_close(m);
    return status;
}

static peridot_status open_model(void) { return open_path(DIRECTORY, 0); }
static peridot_status open_gemma4(void) { return open_path(GEMMA4, 0); }
static peridot_status open_adapted(void) { return open_path(LLAMA, PD_COUNT(adapters)); }

static peridot_status tune(void)
{
    return peridot_tune(model, &(peridot_tune_params){.cache_dir = in_folder("cache"), .progress = stop_progress});
}

static bool stop_pipelines(void *user, const peridot_pipeline *pipeline)
{
    (void)user, (void)pipeline;
    return false;
}

static peridot_status compile(void) { return peridot_pipelines(NULL, NULL, stop_pipelines, NULL); }

static bool stop_checks(void *user, const peridot_kernel_check *check)
{
    (void)user, (void)check;
    return false;
}

static peridot_status selftest(void)
{
    peridot_selftest_result result;
    return peridot_selftest(&result,
                            &(peridot_selftest_params){.cache_dir = in_folder("cache"), .checked = stop_checks});
}

static void test_models(void **state)
{
    (void)state;
    /* What is remembered of kernels is done without when it cannot be read. */
    static const struct call calls[] = {
        {.name = "devices", .run = list_devices}, {.name = "model_open", .run = open_model, .degrades = true},
        {.name = "model_open, Gemma 4", .run = open_gemma4, .degrades = true},
        {.name = "model_open, adapters", .run = open_adapted, .degrades = true},
        {.name = "selftest", .run = selftest, .good = PERIDOT_CANCELLED, .degrades = true},
        {.name = "tune", .run = tune, .good = PERIDOT_CANCELLED},
    };
    check_calls(calls, PD_COUNT(calls));
    /* it compiles all that it reports first */
    if (getenv("PERIDOT_TEST_ALL")) check_call(&(struct call){.name = "pipelines", .run = compile, .n_tried = 5});
}

/* ---- sessions ---- */

static const peridot_session_params small = {.ctx = 128, .chunk = 16, .n_sequences = 3};

static peridot_status create_session(void)
{
    peridot_session *s;
    peridot_status status = peridot_session_create(&s, model, &small);
    peridot_session_free(s);
    return status;
}

static peridot_status create_sequence(void)
{
    peridot_sequence *q;
    peridot_status status = peridot_sequence_create(&q, session);
    peridot_sequence_free(q);
    return status;
}

static peridot_status fork_sequence(void)
{
    peridot_sequence *q;
    peridot_status status = peridot_sequence_fork(&q, sequence, PD_COUNT(prompt));
    peridot_sequence_free(q);
    return status;
}

static peridot_status save(void) { return peridot_sequence_save(sequence, in_folder("saved")); }

static peridot_status load(void)
{
    peridot_sequence *q;
    peridot_status status = peridot_sequence_load(&q, session, in_folder("saved"));
    peridot_sequence_free(q);
    return status;
}

static bool take_row(void *user, peridot_sequence *q, uint32_t pos, const float *row, size_t n)
{
    (void)user, (void)q, (void)pos, (void)row, (void)n;
    return true;
}

/* In a sequence of its own, whose tokens and pages are all new; 40 tokens are three chunks. */
static peridot_status evaluate(void)
{
    int32_t tokens[40];
    const float *logits;
    int32_t token;
    peridot_sequence *q;
    for (size_t i = 0; i < PD_COUNT(tokens); i++) tokens[i] = (int32_t)i + 2;
    peridot_status status = peridot_sequence_create(&q, session);
    if (status != PERIDOT_OK) return status;
    status = peridot_sequence_eval(q, tokens, PD_COUNT(tokens), &(peridot_eval_params){.logits = take_row});
    if (status == PERIDOT_OK) status = peridot_logits(&logits, q);
    /* all of the vocabulary */
    peridot_sampling sampling = {.temperature = 1, .seed = 1};
    if (status == PERIDOT_OK) status = peridot_set_sampling(q, &sampling);
    if (status == PERIDOT_OK) status = peridot_sample(&token, q);
    peridot_sequence_free(q);
    return status;
}

static bool take_text(void *user, int32_t token, const char *text, size_t size)
{
    (void)user, (void)token, (void)text, (void)size;
    return true;
}

static const char *const stops[] = {"never said", "nor this"};

static peridot_status generate(void)
{
    peridot_sampling sampling = {.temperature = 1, .top_k = 20, .seed = 1, .stop = stops, .n_stop = PD_COUNT(stops)};
    peridot_sequence *q;
    peridot_status status = peridot_sequence_create(&q, session);
    if (status != PERIDOT_OK) return status;
    status = peridot_set_sampling(q, &sampling);
    peridot_request_params params = {.prompt = prompt, .n_prompt = PD_COUNT(prompt), .n_max = 12, .text = take_text};
    if (status == PERIDOT_OK) status = peridot_generate(q, &params, NULL);
    peridot_sequence_free(q);
    return status;
}

static const peridot_grammar *grammar;

static peridot_status generate_json(void)
{
    peridot_sampling sampling = {.temperature = 1, .top_k = 20, .seed = 1, .grammar = grammar};
    peridot_sequence *q;
    peridot_status status = peridot_sequence_create(&q, session);
    if (status != PERIDOT_OK) return status;
    status = peridot_set_sampling(q, &sampling);
    peridot_request_params params = {.prompt = prompt, .n_prompt = PD_COUNT(prompt), .n_max = 40, .text = take_text};
    if (status == PERIDOT_OK) status = peridot_generate(q, &params, NULL);
    peridot_sequence_free(q);
    return status;
}

static peridot_status run_requests(peridot_request *const *requests, size_t n)
{
    peridot_status status = PERIDOT_OK, own;
    size_t n_running = n;
    while (status == PERIDOT_OK && n_running) status = peridot_session_run(session, &n_running);
    for (size_t i = 0; i < n && status == PERIDOT_OK; i++)
        if (peridot_request_done(requests[i], &own, NULL)) status = own;
    return status;
}

static peridot_status serve(void)
{
    enum { N = 2 };
    peridot_request_params params = {.prompt = prompt, .n_prompt = PD_COUNT(prompt), .n_max = 6, .text = take_text};
    peridot_sequence *q[N] = {NULL};
    peridot_request *requests[N] = {NULL};
    peridot_status status = PERIDOT_OK;
    for (size_t i = 0; i < N && status == PERIDOT_OK; i++) {
        status = peridot_sequence_create(&q[i], session);
        if (status == PERIDOT_OK) status = peridot_request_create(&requests[i], q[i], &params);
    }
    if (status == PERIDOT_OK) status = run_requests(requests, N);
    for (size_t i = 0; i < N; i++) {
        peridot_request_free(requests[i]);
        peridot_sequence_free(q[i]);
    }
    return status;
}

static peridot_status submit(void)
{
    enum { N = 3 };
    const peridot_sampling sampling = {.temperature = 1, .top_k = 20, .seed = 1, .stop = stops,
        .n_stop = PD_COUNT(stops)};
    peridot_request_params params = {.prompt = prompt, .n_prompt = PD_COUNT(prompt), .n_max = 6, .text = take_text,
        .sampling = &sampling};
    peridot_request *requests[N] = {NULL};
    peridot_status status = PERIDOT_OK;
    for (size_t i = 0; i < N && status == PERIDOT_OK; i++) {
        params.prompt_hidden = i == 2 ? take_row : NULL;
        status = peridot_request_submit(&requests[i], session, &params);
    }
    if (status == PERIDOT_OK) status = run_requests(requests, N);
    for (size_t i = 0; i < N; i++) peridot_request_free(requests[i]);
    return status;
}

static peridot_status profile(void)
{
    peridot_kernel_time *times;
    size_t n;
    peridot_status status = peridot_profile(&times, &n, &sequence, 1, 1);
    peridot_free(times);
    return status;
}

static void test_sessions(void **state)
{
    (void)state;
    /* A place to go back to is only kept where there is memory for it. */
    static const struct call calls[] = {
        {.name = "session_create", .run = create_session}, {.name = "sequence_create", .run = create_sequence},
        {.name = "sequence_fork", .run = fork_sequence}, {.name = "sequence_save", .run = save},
        {.name = "sequence_load", .run = load}, {.name = "eval, logits, sample", .run = evaluate, .degrades = true},
        {.name = "generate", .run = generate, .degrades = true},
        {.name = "generate JSON", .run = generate_json, .degrades = true},
        {.name = "session_run", .run = serve, .degrades = true},
        {.name = "submit", .run = submit, .degrades = true}, {.name = "profile", .run = profile},
    };
    peridot_grammar *of_schema;
    assert_int_equal(peridot_grammar_json_schema(&of_schema, peridot_model_vocab(model), schema, sizeof schema - 1),
                     PERIDOT_OK);
    grammar = of_schema;
    assert_int_equal(peridot_session_create(&session, model, &small), PERIDOT_OK);
    assert_int_equal(peridot_sequence_create(&sequence, session), PERIDOT_OK);
    assert_int_equal(peridot_sequence_eval(sequence, prompt, PD_COUNT(prompt), NULL), PERIDOT_OK);
    check_calls(calls, PD_COUNT(calls));
    peridot_session_free(session);
    peridot_grammar_free(of_schema);
}

/* ---- all ---- */

static int open_shared(void **state)
{
    return make_folder(state) == 0 && peridot_model_open(&model, STORIES, NULL) == PERIDOT_OK ? 0 : -1;
}

static int close_shared(void **state)
{
    char command[128];
    (void)state;
    peridot_model_close(model);
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vocabularies), cmocka_unit_test(test_merges), cmocka_unit_test(test_templates),
        cmocka_unit_test(test_files), cmocka_unit_test(test_grammars), cmocka_unit_test(test_models),
        cmocka_unit_test(test_sessions),
    };
    return cmocka_run_group_tests(tests, open_shared, close_shared);
}

/* LoRA adapters against Hugging Face transformers with PEFT: every model of tests/golden/lora (tools/golden/lora.py),
 * with adapters from PEFT directories and from GGUF files, one and two at once, as one chunk, in chunks of 7 and as
 * decode steps. And which sequences take which: together they have the bits that each has alone, and only those with
 * the same adapters share prefixes. Errors are relative to a row's L2 norm. */
#define _XOPEN_SOURCE 700   /* mkdtemp */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "folder_fixture.h"
#include "golden_files.h"
#include "peridot_tools.h"
#include "relative_error.h"
#include "sequence_fixture.h"

enum { N = 40 };

static const struct base {
    const char *name, *folder;
} bases[] = {{"llama", "llama"}, {"gemma3", "gemma3"}, {"granite", "dense/granite"}, {"phi3", "dense/phi3"},
    {"gemma4", "gemma4-small"},
    {"phi3-partial", "dense/phi3-partial"},   /* a part of each head is rotated: its rows lie otherwise on the device */
    {"smollm3", "dense/smollm3"},             /* layers without rotation, whose rows GGUF orders all the same */
    {"gpt-oss", "dense/gpt-oss"},             /* attention with biases and sinks, beside experts */
    {"muse-glimmer", "dense/muse-glimmer"},   /* attention's gate beside q, k and v */
    {"qwen35", "dense/qwen35"}};              /* recurrences; attention's gate in q */

/* What the golden files are of. */
static const struct taken {
    const char *golden;
    float first, second;
} golden[] = {{"first.f32", 1, 0}, {"second.f32", 0, 1}, {"both.f32", 0.75f, -0.5f}};

static const struct { uint32_t chunk, n_first; } ways[] = {{N, N}, {7, N}, {16, 1}};

struct rows {
    float *at;              /* [N][width] */
    size_t width;
};

static void expect(peridot_status status)
{
    if (status != PERIDOT_OK) fail_msg("%s", peridot_last_error());
}

static void expect_sentence(peridot_status status, peridot_status wanted, const char *part)
{
    if (status != wanted) fail_msg("%s: %s", peridot_status_name(status), peridot_last_error());
    if (!strstr(peridot_last_error(), part)) fail_msg("\"%s\" is not in: %s", part, peridot_last_error());
}

static bool keep(void *user, peridot_sequence *sequence, uint32_t pos, const float *row, size_t n)
{
    struct rows *rows = user;
    (void)sequence;
    assert_int_equal(n, rows->width);
    memcpy(rows->at + pos * n, row, n * sizeof *row);
    return true;
}

static const char *adapter_path(const char *base, const char *name)
{
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], PERIDOT_GOLDEN "/lora/%s/%s", base, name);
    return path;
}

/* form: "" for the directories, ".gguf" for the files. */
static peridot_model *open_with(const struct base *base, const char *model, const char *form, float first, float second)
{
    char path[512], names[2][32];
    peridot_model *out;
    snprintf(path, sizeof path, PERIDOT_GOLDEN "/%s%s", base->folder, model);
    snprintf(names[0], sizeof names[0], "first%s", form);
    snprintf(names[1], sizeof names[1], "second%s", form);
    const peridot_adapter_file adapters[] = {{.path = adapter_path(base->name, names[0]), .scale = first},
        {.path = adapter_path(base->name, names[1]), .scale = second}};
    expect(peridot_model_open(&out, path, &(peridot_model_params){
        .size = sizeof(peridot_model_params), .adapters = adapters, .n_adapters = 2}));
    return out;
}

static void read_ids(int32_t ids[N], const struct base *base)
{
    char golden_folder[64];
    snprintf(golden_folder, sizeof golden_folder, "lora/%s", base->name);
    assert_int_equal(read_golden_ids(ids, N, golden_folder, "tokens.txt"), N);
}

static struct rows new_rows(const peridot_model *model)
{
    struct rows rows = {.width = peridot_model_get_info(model)->n_outputs};
    rows.at = calloc(N * rows.width, sizeof *rows.at);
    assert_non_null(rows.at);
    return rows;
}

static void evaluate(struct rows *rows, peridot_sequence *s, const int32_t *ids, uint32_t n_first)
{
    const peridot_eval_params params = {.logits = keep, .user = rows};
    expect(peridot_sequence_eval(s, ids, n_first, &params));
    for (uint32_t i = n_first; i < N; i++) expect(peridot_sequence_eval(s, ids + i, 1, &params));
}

/* ---- golden ---- */

static void check_model(const struct base *base, const char *model_name, const char *form, const struct taken *t)
{
    int32_t ids[N];
    char golden_folder[64];
    size_t size;
    read_ids(ids, base);
    snprintf(golden_folder, sizeof golden_folder, "lora/%s", base->name);
    float *want = read_golden(golden_folder, t->golden, &size);
    peridot_model *model = open_with(base, model_name, form, t->first, t->second);
    struct rows rows = new_rows(model);
    assert_int_equal(size, N * rows.width * sizeof *want);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        peridot_sequence *s;
        double most = 0;
        expect(open_sequence(&s, model, &(peridot_session_params){
            .ctx = N, .chunk = ways[w].chunk, .kv_type = PERIDOT_KV_F32}));
        evaluate(&rows, s, ids, ways[w].n_first);
        for (size_t i = 0; i < N; i++) {
            double error = relative_error(rows.at + i * rows.width, want + i * rows.width, rows.width);
            if (!(error <= most)) most = error;   /* NaN is not */
        }
        print_message("  %s%s, adapters%s, %s, chunks of %u: %.1e\n", base->name, model_name, form, t->golden,
                      ways[w].n_first == 1 ? 1 : ways[w].chunk, most);
        if (!(most <= 1e-4)) fail_msg("too far");
        close_sequence(s);
    }
    free(rows.at);
    free(want);
    peridot_model_close(model);
}

static void test_golden(void **state)
{
    for (size_t t = 0; t < sizeof golden / sizeof *golden; t++) check_model(*state, "", "", &golden[t]);
    check_model(*state, "/model.gguf", ".gguf", &golden[2]);
    check_model(*state, "/model.gguf", "", &golden[2]);
}

/* ---- merged ---- */

static void run_merged(struct rows *rows, const char *path, const int32_t *ids)
{
    peridot_model *model;
    peridot_sequence *s;
    expect(peridot_model_open(&model, path, NULL));
    expect(open_sequence(&s, model, &(peridot_session_params){.ctx = N, .kv_type = PERIDOT_KV_F32}));
    evaluate(rows, s, ids, N);
    close_sequence(s);
    peridot_model_close(model);
}

/* A file that adapters were merged into has the logits of the model with them. */
static void check_merged(const struct base *base, const char *model_name, const char *form)
{
    int32_t ids[N];
    char path[512], names[2][32];
    peridot_model *model = open_with(base, model_name, form, 0.75f, -0.5f);
    peridot_sequence *s;
    struct rows want = new_rows(model), got = new_rows(model);
    read_ids(ids, base);
    expect(open_sequence(&s, model, &(peridot_session_params){.ctx = N, .kv_type = PERIDOT_KV_F32}));
    evaluate(&want, s, ids, N);
    close_sequence(s);
    peridot_model_close(model);
    snprintf(path, sizeof path, PERIDOT_GOLDEN "/%s%s", base->folder, model_name);
    snprintf(names[0], sizeof names[0], "first%s", form);
    snprintf(names[1], sizeof names[1], "second%s", form);
    const peridot_adapter_file adapters[] = {{.path = adapter_path(base->name, names[0]), .scale = 0.75f},
        {.path = adapter_path(base->name, names[1]), .scale = -0.5f}};
    expect(peridot_convert(in_folder("merged.gguf"), path, &(peridot_convert_params){
        .type = "f32", .adapters = adapters, .n_adapters = 2}, NULL));
    run_merged(&got, in_folder("merged.gguf"), ids);
    remove(in_folder("merged.gguf"));
    double error = relative_error(got.at, want.at, N * want.width);
    print_message("  %s%s, adapters%s, merged: %.1e\n", base->name, model_name, form, error);
    if (!(error <= 1e-6)) fail_msg("too far");
    free(want.at);
    free(got.at);
}

static void test_merged(void **state)
{
    check_merged(*state, "", "");
    check_merged(*state, "/model.gguf", ".gguf");
}

/* ---- sequences of their own choice ---- */

static const peridot_adapter first[] = {{"first", 1}}, second[] = {{"second", 1}},
                             both[] = {{"first", 0.75f}, {"second", -0.5f}};
static const struct choice {
    const peridot_adapter *adapters;
    size_t n;
} choices[] = {{first, 1}, {second, 1}, {NULL, 0}, {both, 2}};
enum { N_CHOICES = sizeof choices / sizeof *choices };

static peridot_sequence *choose(peridot_session *session, const struct choice *c)
{
    peridot_sequence *s;
    expect(peridot_sequence_create(&s, session));
    expect(peridot_sequence_set_adapters(s, c->adapters, c->n));
    return s;
}

static peridot_session *new_session(peridot_model *model)
{
    peridot_session *session;
    expect(peridot_session_create(&session, model, &(peridot_session_params){
        .ctx = 4 * N, .n_sequences = 8, .n_positions = 16 * N * 8}));
    return session;
}

/* As a prompt of n_first tokens and steps. */
static void alone(struct rows *rows, peridot_model *model, const struct choice *c, const int32_t *ids, uint32_t n_first)
{
    peridot_session *session = new_session(model);
    evaluate(rows, choose(session, c), ids, n_first);
    peridot_session_free(session);
}

static const float *logits_of(peridot_sequence *s)
{
    const float *logits;
    expect(peridot_logits(&logits, s));
    return logits;
}

struct many {
    struct rows rows[N_CHOICES];
    peridot_sequence *sequences[N_CHOICES];
};

static bool keep_one(void *user, peridot_sequence *sequence, uint32_t pos, const float *row, size_t n)
{
    struct many *m = user;
    int i = 0;
    while (m->sequences[i] != sequence) i++;
    return keep(&m->rows[i], sequence, pos, row, n);
}

static void evaluate_all(struct many *m, peridot_session *session, const int32_t *ids, uint32_t n)
{
    peridot_prompt prompts[N_CHOICES];
    for (int i = 0; i < N_CHOICES; i++) prompts[i] = (peridot_prompt){m->sequences[i], ids, n};
    expect(peridot_eval(session, prompts, N_CHOICES, &(peridot_eval_params){.logits = keep_one, .user = m}));
}

/* Of prompts alone, whose last rows have logits; the others need not go through layers that only read keys. */
static void check_prompts(peridot_model *model, const int32_t *ids)
{
    peridot_session *session = new_session(model), *other;
    peridot_sequence *sequences[N_CHOICES], *s;
    peridot_prompt prompts[N_CHOICES];
    for (int i = 0; i < N_CHOICES; i++)
        prompts[i] = (peridot_prompt){sequences[i] = choose(session, &choices[i]), ids, 20 + (size_t)i};
    expect(peridot_eval(session, prompts, N_CHOICES, NULL));
    for (int i = 0; i < N_CHOICES; i++) {
        other = new_session(model);
        s = choose(other, &choices[i]);
        expect(peridot_sequence_eval(s, ids, 20 + (size_t)i, NULL));
        size_t size = peridot_model_get_info(model)->n_outputs * sizeof(float);
        float *want = malloc(size);
        assert_non_null(want);
        memcpy(want, logits_of(s), size);
        assert_memory_equal(want, logits_of(sequences[i]), size);
        free(want);
        peridot_session_free(other);
    }
    peridot_session_free(session);
}

/* Sequences of one pass have the bits that each has alone; one without adapters those of a model without any. */
static void test_together(void **state)
{
    const struct base *base = *state;
    int32_t ids[N];
    char path[512];
    peridot_model *plain, *model = open_with(base, "", "", 1, 0);
    struct many m;
    struct rows want = new_rows(model);
    read_ids(ids, base);
    peridot_session *session = new_session(model);
    for (int i = 0; i < N_CHOICES; i++) {
        m.rows[i] = new_rows(model);
        m.sequences[i] = choose(session, &choices[i]);
    }
    evaluate_all(&m, session, ids, 20);
    for (int i = 20; i < N; i++) evaluate_all(&m, session, ids + i, 1);
    for (int i = 0; i < N_CHOICES; i++) {
        alone(&want, model, &choices[i], ids, 20);
        assert_memory_equal(want.at, m.rows[i].at, N * want.width * sizeof(float));
    }
    check_prompts(model, ids);
    snprintf(path, sizeof path, PERIDOT_GOLDEN "/%s", base->folder);
    expect(peridot_model_open(&plain, path, NULL));
    alone(&want, plain, &choices[2], ids, 20);
    assert_memory_equal(want.at, m.rows[2].at, N * want.width * sizeof(float));
    assert_memory_not_equal(want.at, m.rows[0].at, N * want.width * sizeof(float));
    for (int i = 0; i < N_CHOICES; i++) free(m.rows[i].at);
    free(want.at);
    peridot_session_free(session);
    peridot_model_close(model);
    peridot_model_close(plain);
}

/* ---- requests ---- */

struct text {
    int32_t ids[16];
    size_t n;
};

static bool take(void *user, int32_t token, const char *text, size_t size)
{
    struct text *t = user;
    (void)text, (void)size;
    if (token >= 0 && t->n < 16) t->ids[t->n++] = token;
    return true;
}

static peridot_request *submit(peridot_session *session, const struct choice *c, const int32_t *ids, struct text *text)
{
    static const peridot_adapter none;
    peridot_request *r;
    *text = (struct text){.n = 0};
    expect(peridot_request_submit(&r, session, &(peridot_request_params){
        .size = sizeof(peridot_request_params), .prompt = ids, .n_prompt = 32, .n_max = 12, .text = take, .user = text,
        .adapters = c->n ? c->adapters : &none, .n_adapters = c->n}));
    return r;
}

static uint32_t finish(peridot_session *session, peridot_request *r)
{
    peridot_stats stats = {.size = sizeof stats};
    size_t n;
    do expect(peridot_session_run(session, &n));
    while (!peridot_request_done(r, NULL, &stats));
    peridot_request_free(r);
    return stats.n_cached;
}

/* A prompt goes on from the prefix that a request with the same adapters left, and from no other's. */
static void test_requests(void **state)
{
    const struct base *base = *state;
    int32_t ids[N];
    peridot_model *model = open_with(base, "", "", 1, 0);
    peridot_session *session = new_session(model);
    struct text want[N_CHOICES], got;
    peridot_request *at_once[N_CHOICES];
    read_ids(ids, base);
    for (int i = 0; i < N_CHOICES; i++) at_once[i] = submit(session, &choices[i], ids, &want[i]);
    for (int i = 0; i < N_CHOICES; i++) assert_int_equal(finish(session, at_once[i]), 0);
    for (int i = 0; i < N_CHOICES; i++) {
        assert_int_equal(finish(session, submit(session, &choices[i], ids, &got)), 31);
        assert_int_equal(got.n, want[i].n);
        assert_memory_equal(got.ids, want[i].ids, got.n * sizeof *got.ids);
    }
    const struct choice half = {&(peridot_adapter){"first", 0.5f}, 1};
    assert_int_equal(finish(session, submit(session, &half, ids, &got)), 0);
    peridot_request *r;
    const peridot_adapter unknown = {"third", 1}, bad = {"first", NAN};
    expect_sentence(peridot_request_submit(&r, session, &(peridot_request_params){
        .size = sizeof(peridot_request_params), .prompt = ids, .n_prompt = 8, .n_max = 1, .adapters = &unknown,
        .n_adapters = 1}), PERIDOT_ERROR_ARGUMENT, "no adapter third; it has: first, second");
    expect_sentence(peridot_request_submit(&r, session, &(peridot_request_params){
        .size = sizeof(peridot_request_params), .prompt = ids, .n_prompt = 8, .n_max = 1, .adapters = &bad,
        .n_adapters = 1}), PERIDOT_ERROR_ARGUMENT, "is not a finite number");
    peridot_session_free(session);
    peridot_model_close(model);
}

/* ---- copies of sequences ---- */

static void test_copies(void **state)
{
    const struct base *base = *state;
    int32_t ids[N];
    char path[512];
    peridot_model *plain, *model = open_with(base, "", "", 1, 0);
    peridot_session *session = new_session(model), *other;
    peridot_sequence *s = choose(session, &choices[3]), *fork, *loaded;
    read_ids(ids, base);
    struct rows rows = new_rows(model);
    size_t size = rows.width * sizeof(float);
    expect(peridot_sequence_eval(s, ids, 30, NULL));
    expect_sentence(peridot_sequence_set_adapters(s, first, 1), PERIDOT_ERROR_ARGUMENT, "30 tokens already");
    expect(peridot_sequence_set_adapters(s, both, 2));
    expect(peridot_sequence_fork(&fork, s, 30));
    expect(peridot_sequence_save(s, in_folder("saved")));
    expect(peridot_sequence_load(&loaded, session, in_folder("saved")));
    expect(peridot_sequence_eval(s, ids + 30, 1, NULL));
    memcpy(rows.at, logits_of(s), size);
    expect(peridot_sequence_eval(fork, ids + 30, 1, NULL));
    assert_memory_equal(logits_of(fork), rows.at, size);
    expect(peridot_sequence_eval(loaded, ids + 30, 1, NULL));
    assert_memory_equal(logits_of(loaded), rows.at, size);

    snprintf(path, sizeof path, PERIDOT_GOLDEN "/%s", base->folder);
    expect(peridot_model_open(&plain, path, NULL));
    other = new_session(plain);
    expect_sentence(peridot_sequence_load(&loaded, other, in_folder("saved")), PERIDOT_ERROR_ARGUMENT,
                    "saved with an adapter that the model was not opened with");
    remove(in_folder("saved"));
    free(rows.at);
    peridot_session_free(session);
    peridot_session_free(other);
    peridot_model_close(model);
    peridot_model_close(plain);
}

static void test_names(void **state)
{
    const struct base *base = *state;
    peridot_model *model = open_with(base, "", ".gguf", 0.5f, 0);
    float scale;
    assert_string_equal(peridot_model_adapter(model, 0, &scale), "first");
    assert_true(scale == 0.5f);
    assert_string_equal(peridot_model_adapter(model, 1, NULL), "second");
    assert_null(peridot_model_adapter(model, 2, &scale));
    peridot_model_close(model);
}

static int remove_folder(void **state)
{
    (void)state;
    return remove(folder);
}

int main(void)
{
    enum { N_BASES = sizeof bases / sizeof *bases };
    struct CMUnitTest tests[N_BASES + 14];
    for (size_t i = 0; i < N_BASES; i++)
        tests[i] = (struct CMUnitTest){
            .name = bases[i].name, .test_func = test_golden, .initial_state = (void *)&bases[i]};
    const struct CMUnitTest others[] = {
        {.name = "merged, llama", .test_func = test_merged, .initial_state = (void *)&bases[0]},
        {.name = "merged, gemma3", .test_func = test_merged, .initial_state = (void *)&bases[1]},
        {.name = "merged, phi3", .test_func = test_merged, .initial_state = (void *)&bases[3]},
        {.name = "together, llama", .test_func = test_together, .initial_state = (void *)&bases[0]},
        {.name = "merged, gemma4", .test_func = test_merged, .initial_state = (void *)&bases[4]},
        {.name = "merged, phi3-partial", .test_func = test_merged, .initial_state = (void *)&bases[5]},
        {.name = "merged, smollm3", .test_func = test_merged, .initial_state = (void *)&bases[6]},
        {.name = "merged, qwen35", .test_func = test_merged, .initial_state = (void *)&bases[9]},
        {.name = "together, gemma4", .test_func = test_together, .initial_state = (void *)&bases[4]},
        {.name = "together, gemma3", .test_func = test_together, .initial_state = (void *)&bases[1]},
        {.name = "requests, llama", .test_func = test_requests, .initial_state = (void *)&bases[0]},
        {.name = "requests, gemma4", .test_func = test_requests, .initial_state = (void *)&bases[4]},
        {.name = "copies", .test_func = test_copies, .initial_state = (void *)&bases[1]},
        {.name = "names", .test_func = test_names, .initial_state = (void *)&bases[0]}};
    memcpy(tests + N_BASES, others, sizeof others);
    return cmocka_run_group_tests_name("lora", tests, make_folder, remove_folder);
}

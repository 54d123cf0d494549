/* Embedding models against Hugging Face transformers: tests/golden/embedding-gemma and -gemma2 (tools/golden/
 * embedding.py), from their Hugging Face directories and their GGUF files, with each type of the cache; all texts, of
 * unlike lengths, in one pass, and each by itself. Every other kernel of attention and matrices that the device has is
 * forced by itself in one of these ways, with PERIDOT_TEST_ALL in all. Hidden states are compared row by row, and the
 * vectors of texts after pooling, dense layers and norm. Tolerances are those of test_golden.c. */
#include "peridot_tools.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "relative_error.h"
#include "rounding.h"

enum { MAX_TEXTS = 8, MAX_TOKENS = 160, D_MODEL = 64, SIZE = 48 };

static const char *const files[] = {"embedding-gemma", "embedding-gemma/model.gguf", "embedding-gemma2",
                                    "embedding-gemma2/model.gguf"};

/* What transformers computed. */
struct golden {
    int32_t tokens[MAX_TOKENS];
    size_t n_texts, begin[MAX_TEXTS + 1];    /* text i has tokens begin[i] .. begin[i + 1] - 1 */
    float hidden[MAX_TOKENS][D_MODEL], vectors[MAX_TEXTS][SIZE];
};

static void check_status(peridot_status status)
{
    if (status != PERIDOT_OK) fail_msg("%s", peridot_last_error());
}

static size_t read_file(void *out, size_t size, const char *folder, const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, PERIDOT_GOLDEN "/%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s: cannot be opened", path);
    size_t n = fread(out, 1, size, f);
    fclose(f);
    return n;
}

static void read_golden(struct golden *g, const char *file)
{
    char folder[64], text[2048], *at = text;
    snprintf(folder, sizeof folder, "%.*s", (int)strcspn(file, "/"), file);
    *g = (struct golden){0};
    text[read_file(text, sizeof text - 1, folder, "texts.txt")] = 0;
    for (size_t n = 0; *at && g->n_texts < MAX_TEXTS; at++) {
        g->tokens[n++] = (int32_t)strtol(at, &at, 10);
        if (*at == '\n') g->begin[++g->n_texts] = n;
    }
    size_t n = g->begin[g->n_texts];
    assert_int_equal(read_file(g->hidden, sizeof g->hidden, folder, "hidden.f32"), n * sizeof *g->hidden);
    assert_int_equal(read_file(g->vectors, sizeof g->vectors, folder, "vectors.f32"), g->n_texts * sizeof *g->vectors);
}

static peridot_model *open_model(const char *file, const char *kernel)
{
    char path[1024];
    peridot_model *model;
    snprintf(path, sizeof path, PERIDOT_GOLDEN "/%s", file);
    check_status(peridot_model_open(&model, path,
                                    &(peridot_model_params){.kernels = &kernel, .n_kernels = kernel != NULL}));
    return model;
}

/* ---- evaluating ---- */

struct run {
    const struct golden *g;
    peridot_sequence *sequences[MAX_TEXTS];
    double sums[MAX_TEXTS][D_MODEL];
    double worst;                            /* of rows */
    size_t n_rows;
};

static bool on_hidden(void *user, peridot_sequence *sequence, uint32_t pos, const float *row, size_t n)
{
    struct run *r = user;
    size_t i = 0;
    while (r->sequences[i] != sequence) i++;
    assert_int_equal(n, D_MODEL);
    r->worst = fmax(r->worst, relative_error(row, r->g->hidden[r->g->begin[i] + pos], n));
    for (size_t k = 0; k < n; k++) r->sums[i][k] += (double)row[k] / (double)(r->g->begin[i + 1] - r->g->begin[i]);
    r->n_rows++;
    return true;
}

static void evaluate(struct run *r, const struct golden *g, peridot_model *model, peridot_kv_type type, bool together)
{
    peridot_session *session;
    peridot_prompt prompts[MAX_TEXTS];
    const peridot_eval_params params = {.hidden = on_hidden, .user = r};
    *r = (struct run){.g = g};
    check_status(peridot_session_create(&session, model, &(peridot_session_params){
        .ctx = MAX_TOKENS, .n_sequences = MAX_TEXTS, .kv_type = type, .chunk = 8}));
    assert_int_equal(peridot_session_chunk(session), MAX_TOKENS);
    for (size_t i = 0; i < g->n_texts; i++) {
        check_status(peridot_sequence_create(&r->sequences[i], session));
        prompts[i] = (peridot_prompt){r->sequences[i], g->tokens + g->begin[i], g->begin[i + 1] - g->begin[i]};
    }
    if (together) check_status(peridot_eval(session, prompts, g->n_texts, &params));
    for (size_t i = 0; i < g->n_texts && !together; i++) check_status(peridot_eval(session, &prompts[i], 1, &params));
    assert_int_equal(r->n_rows, g->begin[g->n_texts]);
    peridot_session_free(session);
}

/* The worst of the vectors, and of their first columns. */
static double compare_vectors(const struct run *r, const peridot_model *model, uint32_t n)
{
    double worst = 0;
    for (size_t i = 0; i < r->g->n_texts; i++) {
        float got[SIZE], want[SIZE];
        double norm = 0;
        for (uint32_t k = 0; k < n; k++) norm += (double)r->g->vectors[i][k] * (double)r->g->vectors[i][k];
        for (uint32_t k = 0; k < n; k++) want[k] = (float)((double)r->g->vectors[i][k] / sqrt(norm));
        check_status(peridot_embedding(got, model, r->sums[i], n == SIZE ? 0 : n, true));
        worst = fmax(worst, relative_error(got, want, n));
    }
    return worst;
}

/* In one of the ways, or (ALL_WAYS) in all. */
enum { N_WAYS = 6, ALL_WAYS = N_WAYS };

static void check_kernel(const char *file, const char *kernel, size_t way)
{
    static const struct { const char *name; peridot_kv_type type; double most; } caches[] = {
        {"fp32", PERIDOT_KV_F32, 1e-3}, {"fp16", PERIDOT_KV_F16, 1e-3}, {"q8_0", PERIDOT_KV_Q8_0, 3e-2}};
    struct golden g;
    struct run r;
    read_golden(&g, file);
    peridot_model *model = open_model(file, kernel);
    for (size_t i = way % N_WAYS; i < (way == ALL_WAYS ? N_WAYS : way + 1); i++) {
        bool together = i % 2 == 0;
        double most = fmax(caches[i / 2].most, rounds_to_fp16(kernel) ? 1e-2 : 0);
        evaluate(&r, &g, model, caches[i / 2].type, together);
        double vectors = compare_vectors(&r, model, SIZE), some = compare_vectors(&r, model, 16);
        print_message("  %s, %s cache, %s: hidden %.1e, vectors %.1e, of 16 columns %.1e\n", kernel ? kernel : "own",
                      caches[i / 2].name, together ? "together" : "one by one", r.worst, vectors, some);
        assert_true(r.worst < most && vectors < most && some < most);   /* false for a NaN */
    }
    peridot_model_close(model);
}

static void test_golden(void **state)
{
    const char *file = *state;
    peridot_variant v;
    peridot_model *model = open_model(file, NULL);
    peridot_device_info device = *peridot_model_get_info(model)->device;
    peridot_model_close(model);
    check_kernel(file, NULL, ALL_WAYS);
    for (size_t i = 0; peridot_device_variant(&v, &device, i); i++) {
        char kernel[64];
        snprintf(kernel, sizeof kernel, "%s=%s", v.operation, v.name);
        if (v.available && !v.chosen) check_kernel(file, kernel, getenv("PERIDOT_TEST_ALL") ? ALL_WAYS : i % N_WAYS);
    }
}

/* ---- what such a model is, and is not ---- */

static void test_info(void **state)
{
    const char *file = *state, *prefix;
    peridot_model *model = open_model(file, NULL);
    const peridot_model_info *info = peridot_model_get_info(model);
    assert_true(info->whole_texts && info->head == PERIDOT_HEAD_NONE && info->pool == PERIDOT_POOL_MEAN);
    assert_int_equal(info->embedding_size, SIZE);
    check_status(peridot_model_find_task(&prefix, model, "document"));
    assert_string_equal(prefix, "title: none | text: ");
    check_status(peridot_model_find_task(&prefix, model, "Clustering"));   /* the file's own, or the published one */
    assert_string_equal(prefix, strstr(file, "gguf") ? "task: clustering | query: " : "x");
    assert_int_equal(peridot_model_find_task(&prefix, model, "poetry"), PERIDOT_ERROR_ARGUMENT);
    assert_non_null(strstr(peridot_last_error(), "query, document"));
    peridot_model_close(model);
}

static void test_refusals(void **state)
{
    const int32_t ids[] = {2, 5, 7, 1};
    const float *logits;
    double pooled[D_MODEL] = {1};
    float vector[SIZE + 1];
    peridot_session *session;
    peridot_sequence *q;
    peridot_request *request;
    peridot_model *model = open_model(*state, NULL);
    check_status(peridot_session_create(&session, model, &(peridot_session_params){.ctx = 3, .n_sequences = 2}));
    check_status(peridot_sequence_create(&q, session));
    assert_int_equal(peridot_sequence_eval(q, ids, 4, NULL), PERIDOT_ERROR_ARGUMENT);   /* longer than the context */
    assert_non_null(strstr(peridot_last_error(), "as a whole"));
    check_status(peridot_sequence_eval(q, ids, 2, NULL));
    assert_int_equal(peridot_sequence_eval(q, ids + 2, 1, NULL), PERIDOT_ERROR_ARGUMENT);   /* a text that goes on */
    assert_non_null(strstr(peridot_last_error(), "as a whole"));
    assert_int_equal(peridot_logits(&logits, q), PERIDOT_ERROR_UNSUPPORTED);
    assert_non_null(strstr(peridot_last_error(), "an embedding model"));
    peridot_request_params params = {.size = sizeof params, .prompt = ids, .n_prompt = 2, .n_max = 1};
    assert_int_equal(peridot_request_submit(&request, session, &params), PERIDOT_ERROR_UNSUPPORTED);
    assert_int_equal(peridot_embedding(vector, model, pooled, SIZE + 1, true), PERIDOT_ERROR_ARGUMENT);
    peridot_session_free(session);
    peridot_model_close(model);
}

static bool on_last(void *user, peridot_sequence *sequence, uint32_t pos, const float *row, size_t n)
{
    (void)sequence, (void)pos;
    memcpy(user, row, n * sizeof *row);
    return true;
}

/* Requests of one text, and one that begins like it and asks for no rows: nothing of one is another's. */
static void test_requests(void **state)
{
    struct golden g;
    size_t n_running = 1, longest = 0;
    peridot_request *requests[3];
    peridot_session *session;
    float last[3][D_MODEL];
    peridot_model *model = open_model(*state, NULL);
    read_golden(&g, *state);
    for (size_t i = 0; i < g.n_texts; i++)
        if (g.begin[i + 1] - g.begin[i] > g.begin[longest + 1] - g.begin[longest]) longest = i;
    size_t begin = g.begin[longest], n = g.begin[longest + 1] - begin;
    check_status(peridot_session_create(&session, model, &(peridot_session_params){.ctx = MAX_TOKENS,
        .n_sequences = 4, .kv_type = PERIDOT_KV_F32}));
    for (size_t i = 0; i < 3; i++) {
        peridot_request_params params = {.size = sizeof params, .prompt = g.tokens + begin,
            .n_prompt = n - (i == 0 ? 9 : 0), .n_shared = 20, .prompt_hidden = i == 2 ? on_last : NULL,
            .prompt_last = true, .user = last[i]};
        check_status(peridot_request_submit(&requests[i], session, &params));
        while (n_running) check_status(peridot_session_run(session, &n_running));
        n_running = 1;
    }
    for (size_t i = 0; i < 3; i++) {
        peridot_status status;
        peridot_stats stats = {.size = sizeof stats};
        assert_true(peridot_request_done(requests[i], &status, &stats));
        check_status(status);
        assert_int_equal(stats.n_cached, 0);
        peridot_request_free(requests[i]);
    }
    assert_true(relative_error(last[2], g.hidden[begin + n - 1], D_MODEL) < 1e-3);
    peridot_session_free(session);
    peridot_model_close(model);
}

int main(void)
{
    struct CMUnitTest tests[4 * sizeof files / sizeof *files] = {{0}};
    static void (*const functions[4])(void **) = {test_golden, test_info, test_refusals, test_requests};
    static const char *const names[4] = {"golden", "info", "refusals", "requests"};
    static char labels[4 * sizeof files / sizeof *files][64];
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        snprintf(labels[i], sizeof labels[i], "%s %s", names[i % 4], files[i / 4]);
        tests[i] = (struct CMUnitTest){.name = labels[i], .test_func = functions[i % 4],
            .initial_state = (void *)files[i / 4]};
    }
    return cmocka_run_group_tests_name("embedding", tests, NULL, NULL);
}

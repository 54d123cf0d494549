/* The forward pass against Hugging Face transformers: every model of tests/golden (README.md there), in each of its
 * file forms, with an fp32 and with the default fp16 KV cache, evaluated in four ways: as decode steps, in chunks of 7,
 * all at once, and as a prompt followed by decode steps. Logits and final-norm hidden states are compared at every
 * position.
 *
 * Tolerances are relative L2 errors of a row. With an fp32 cache, activations and sums, float32 arithmetic costs 1e-6;
 * GPUs may compute exp, sin and tanh less exactly, so the contract is 1e-3. An fp16 cache alone costs up to 5e-4 (7e-4
 * where the driver rounds to zero), so it fits the same contract, as do activations in 16 bits (dot: up to 5e-5).
 * Cooperative matrices of fp16 are allowed 1e-2 (FP16_TOLERANCE): the worst row of all models is at 3.5e-3, nine of ten ways
 * stay below 1e-3.
 *
 * Every kernel variant that the device has, forced one by one, takes each of the four ways, with the caches in turn.
 *
 * With a word as its argument the program runs only the cases whose name contains it; with "1/3", every third from the first. */
#include "peridot_tools.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FP16_TOLERANCE 1e-2f
#define N_MAX 128           /* tokens of a golden model at most */
#define PROMPT 37           /* of the fourth way: not a multiple of a window or a chunk */

struct golden {
    const char *folder;
    const char *file;       /* "" for the Hugging Face directory */
    const char *family;
    float tolerance;
    peridot_head head;
};

static const struct golden goldens[] = {
    {"gemma1", "", "gemma", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"gemma1", "/model.gguf", "gemma", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"gemma1-lm-head", "", "gemma", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"gemma2", "", "gemma2", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"gemma2-bf16-shards", "", "gemma2", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"gemma2-f16", "", "gemma2", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"gemma2-q8_0", "/model.gguf", "gemma2", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"gemma2-q4_0", "/model.gguf", "gemma2", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"gemma3", "", "gemma3", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"gemma3", "/model.gguf", "gemma3", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"gemma3-new", "", "gemma3", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"gemma3-wrapped", "", "gemma3", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"gemma3-mixed", "/model.gguf", "gemma3", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"gemma3-padding", "/model.gguf", "gemma3", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"llama", "", "llama", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"llama", "/model.gguf", "llama", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"llama3", "", "llama", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"llama3", "/model.gguf", "llama", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"llama3-new", "", "llama", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"llama-linear", "", "llama", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"llama-linear", "/model.gguf", "llama", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"llama-quants", "/model.gguf", "llama", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"gemma2-base", "", "gemma2", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"gemma2-sequence", "", "gemma2", 1e-3f, PERIDOT_HEAD_SEQUENCE},
    {"gemma2-token", "", "gemma2", 1e-3f, PERIDOT_HEAD_TOKEN},
    {"llama-base", "", "llama", 1e-3f, PERIDOT_HEAD_NONE},
    {"llama-sequence", "", "llama", 1e-3f, PERIDOT_HEAD_SEQUENCE},
};
#define N_GOLDENS (sizeof goldens / sizeof *goldens)

/* What transformers computed, and how far we are from it. */
struct rows {
    float *want;            /* [n, width] */
    size_t width;
    uint32_t n_seen;        /* rows so far: they must come in order */
    uint32_t worst_pos;
    double worst;           /* infinite for a NaN */
};

struct comparison {
    struct rows logits, hidden;   /* logits.width 0: the model has no head */
    float last[1024];       /* the last row of logits */
};

static void *read_file(const char *folder, const char *name, size_t *size)
{
    char path[1024];
    snprintf(path, sizeof path, PERIDOT_GOLDEN "/%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("%s: cannot be opened", path);
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    char *data = malloc(*size + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, *size, f), *size);
    data[*size] = 0;
    fclose(f);
    return data;
}

static size_t read_tokens(int32_t tokens[N_MAX], const char *folder)
{
    size_t size, n = 0;
    char *text = read_file(folder, "tokens.txt", &size);
    for (char *at = text; n < N_MAX && *at; n++) {
        tokens[n] = (int32_t)strtol(at, &at, 10);
        at += *at == ',' || *at == '\n';
    }
    free(text);
    return n;
}

static void compare_row(struct rows *rows, uint32_t pos, const float *row, size_t n)
{
    assert_int_equal(pos, rows->n_seen);
    assert_int_equal(n, rows->width);
    const float *want = rows->want + (size_t)pos * n;
    double error = 0, norm = 0;
    for (size_t i = 0; i < n; i++) {
        error += ((double)row[i] - want[i]) * ((double)row[i] - want[i]);
        norm += (double)want[i] * want[i];
    }
    error = sqrt(error / norm);
    if (isnan(error))
        error = INFINITY;
    if (error > rows->worst) {
        rows->worst = error;
        rows->worst_pos = pos;
    }
    rows->n_seen++;
}

static bool on_logits(void *user, uint32_t pos, const float *row, size_t n)
{
    struct comparison *c = user;
    compare_row(&c->logits, pos, row, n);
    memcpy(c->last, row, n * sizeof *row);
    return true;
}

static bool on_hidden(void *user, uint32_t pos, const float *row, size_t n)
{
    compare_row(&((struct comparison *)user)->hidden, pos, row, n);
    return true;
}

static void check_status(peridot_status status)
{
    if (status != PERIDOT_OK)
        fail_msg("%s", peridot_last_error());
}

static void eval(peridot_session *s, const int32_t *tokens, size_t n, struct comparison *c)
{
    peridot_eval_params params = {.logits = c->logits.width ? on_logits : NULL, .hidden = on_hidden, .user = c};
    check_status(peridot_eval(s, tokens, n, &params));
}

struct way {
    const char *name;
    uint32_t chunk;         /* of the session */
    uint32_t n_first;       /* tokens of the first call; the others come one by one */
};

static const struct way ways[] = {
    {"all at once", N_MAX, N_MAX},
    {"prompt, then steps", 16, PROMPT},
    {"decode steps", 64, 1},
    {"chunks of 7", 7, N_MAX},
};

static uint32_t least(uint32_t a, size_t b)
{
    return a < b ? a : (uint32_t)b;
}

/* Prints the worst rows; false when one is too far. */
static bool run_way(peridot_model *model, const struct golden *g, const struct way *way, peridot_kv_type kv,
                    const int32_t *tokens, size_t n, struct comparison *c)
{
    c->logits.n_seen = c->hidden.n_seen = 0;
    c->logits.worst = c->hidden.worst = 0;
    peridot_session *s;
    check_status(peridot_session_create(&s, model, &(peridot_session_params){
        .ctx = (uint32_t)n, .chunk = least(way->chunk, n), .kv_type = kv}));
    size_t first = least(way->n_first, n);
    eval(s, tokens, first, c);
    for (size_t i = first; i < n; i++)
        eval(s, tokens + i, 1, c);
    assert_int_equal(c->logits.n_seen, c->logits.width ? n : 0);
    assert_int_equal(c->hidden.n_seen, n);
    assert_int_equal(peridot_session_pos(s), n);
    if (c->logits.width) {
        const float *last;
        check_status(peridot_logits(&last, s));
        assert_memory_equal(last, c->last, c->logits.width * sizeof *last);
    }
    peridot_session_free(s);

    bool good = c->logits.worst <= g->tolerance && c->hidden.worst <= g->tolerance;
    print_message("  %s cache, %-18s logits %.1e (row %u), hidden %.1e (row %u)%s\n",
                  kv == PERIDOT_KV_F32 ? "fp32" : "fp16", way->name, c->logits.worst, c->logits.worst_pos,
                  c->hidden.worst, c->hidden.worst_pos, good ? "" : "  TOO FAR");
    return good;
}

static void read_rows(struct rows *rows, const char *folder, const char *name, size_t n)
{
    size_t size;
    rows->want = read_file(folder, name, &size);
    rows->width = size / sizeof(float) / n;
    assert_true(rows->width >= 1 && rows->width <= sizeof ((struct comparison *)0)->last / sizeof(float));
}

static void check_info(const peridot_model *model, const struct golden *g, const struct comparison *c)
{
    const peridot_model_info *info = peridot_model_get_info(model);
    assert_string_equal(info->family, g->family);
    assert_int_equal(info->head, g->head);
    assert_int_equal(info->n_outputs, c->logits.width);
    assert_int_equal(info->d_model, c->hidden.width);
    if (g->head == PERIDOT_HEAD_LANGUAGE)
        assert_int_equal(info->vocab_size, c->logits.width);
    if (*g->file)
        assert_non_null(peridot_model_vocab(model));
}

/* Opens the model, with a kernel forced or NULL. */
static peridot_model *open_model(const struct golden *g, const char *kernel, const struct comparison *c)
{
    char path[1024];
    peridot_model *model;
    snprintf(path, sizeof path, PERIDOT_GOLDEN "/%s%s", g->folder, g->file);
    check_status(peridot_model_open(&model, path, &(peridot_model_params){.kernels = &kernel, .n_kernels = kernel != NULL}));
    check_info(model, g, c);
    return model;
}

/* Every kernel that the device has and does not take by itself. */
static int run_variants(const struct golden *g, const peridot_device_info *device, const int32_t *tokens, size_t n, struct comparison *c)
{
    peridot_variant v;
    int n_bad = 0;
    for (size_t i = 0; peridot_device_variant(&v, device, i); i++) {
        char kernel[64];
        if (!v.available || v.chosen)
            continue;
        snprintf(kernel, sizeof kernel, "%s=%s", v.operation, v.name);
        struct golden variant = *g;
        variant.tolerance = strcmp(v.name, "coop") == 0 ? FP16_TOLERANCE : g->tolerance;
        print_message("  %s\n", kernel);
        peridot_model *model = open_model(g, kernel, c);
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
            n_bad += !run_way(model, &variant, &ways[w], w % 2 ? PERIDOT_KV_F16 : PERIDOT_KV_F32, tokens, n, c);
        peridot_model_close(model);
    }
    return n_bad;
}

static void test_golden(void **state)
{
    const struct golden *g = *state;
    int32_t tokens[N_MAX];
    size_t n = read_tokens(tokens, g->folder);
    struct comparison c = {0};
    if (g->head != PERIDOT_HEAD_NONE)
        read_rows(&c.logits, g->folder, "logits.f32", n);
    read_rows(&c.hidden, g->folder, "hidden.f32", n);

    peridot_model *model = open_model(g, NULL, &c);
    peridot_device_info device = *peridot_model_get_info(model)->device;
    int n_bad = 0;
    for (int kv = 0; kv < 2; kv++)
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
            n_bad += !run_way(model, g, &ways[i], kv ? PERIDOT_KV_F16 : PERIDOT_KV_F32, tokens, n, &c);
    peridot_model_close(model);
    n_bad += run_variants(g, &device, tokens, n, &c);
    free(c.logits.want);
    free(c.hidden.want);
    if (n_bad)
        fail_msg("%d ways are too far", n_bad);
}

int main(int argc, char **argv)
{
    struct CMUnitTest tests[N_GOLDENS] = {0};   /* those without a name are none */
    char names[N_GOLDENS][64];
    size_t part = 1, n_parts = 1;
    bool in_parts = argc > 1 && sscanf(argv[1], "%zu/%zu", &part, &n_parts) == 2;
    if (part < 1 || part > n_parts) return 2;
    for (size_t i = part - 1; i < N_GOLDENS; i += n_parts) {
        snprintf(names[i], sizeof names[i], "%s%s", goldens[i].folder, goldens[i].file);
        tests[i] = (struct CMUnitTest){
            .name = names[i], .test_func = test_golden, .initial_state = (void *)&goldens[i]};
    }
    if (argc > 1 && !in_parts) {
        static char pattern[80];
        snprintf(pattern, sizeof pattern, "*%s*", argv[1]);
        cmocka_set_test_filter(pattern);
    }
    return cmocka_run_group_tests_name("golden", tests, NULL, NULL);
}

/* The forward pass against Hugging Face transformers: every model of tests/golden (README.md there), in each of its
 * file forms, with every kernel variant that the device has forced one by one, with an fp32, the default fp16 and a
 * q8_0 KV cache, evaluated in four ways: as decode steps, in chunks of 7, all at once, and as a prompt followed by
 * decode steps. Logits and final-norm hidden states are compared at every position.
 *
 * Every model is run with the device's own kernels, and the models of `forced` with each other variant by itself. Of
 * caches and ways each model has every cache, each in another way, and so has every variant. With PERIDOT_TEST_ALL in
 * the environment it is the full product; with PERIDOT_TEST_FEW, for devices that compile slowly, the models of
 * `forced` alone, with the device's own kernels.
 *
 * Tolerances are relative L2 errors of a row. With an fp32 cache, activations and sums, float32 arithmetic costs 1e-6;
 * GPUs may compute exp, sin and tanh less exactly, so the contract is 1e-3. An fp16 cache alone costs up to 5e-4 (7e-4
 * where the driver rounds to zero), so it fits the same contract, as do activations in 16 bits (dot: up to 5e-5; in 8
 * bits, for weights of at most five, up to 8e-3).
 * Cooperative matrices of fp16 are allowed 1e-2 (FP16_TOLERANCE): the worst row of all models is at 3.5e-3, nine of ten
 * ways stay below 1e-3. So are other variants that round to fp16 (half: up to 4e-3), and dot, in whose place half
 * multiplies plain numbers. A q8_0 cache moves numbers by 5e-3 of the root mean square of their block (a 127th of the
 * largest of 32, which is some 2.4 times as much, over the square root of 12), and an fp16 cache by 2e-4: 27 times as
 * much, and so up to 1.4e-2 of a row. Logits are allowed 2e-2 (Q8_TOLERANCE). Hidden states are compared with those
 * that transformers computes with such a cache: most rows are within 1e-6, and one number that is rounded the other way
 * costs up to 8e-4. They are allowed 2e-3 (Q8_HIDDEN_TOLERANCE), which scales that are 2 % off exceed.
 *
 * With a word as its argument the program runs only the models whose name contains it; with "1/3", every third from the
 * first. */
#include "peridot_tools.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "golden_files.h"
#include "rounding.h"
#include "sequence_fixture.h"

#define FP16_TOLERANCE 1e-2f
#define Q8_TOLERANCE 2e-2f
#define Q8_HIDDEN_TOLERANCE 2e-3f
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
    {"vaultgemma", "", "vaultgemma", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"gemma3", "", "gemma3", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"gemma3", "/model.gguf", "gemma3", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"gemma3-new", "", "gemma3", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"gemma3-wrapped", "", "gemma3", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"gemma3-mixed", "/model.gguf", "gemma3", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"gemma3-padding", "/model.gguf", "gemma3", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"gemma4", "", "gemma4", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"gemma4", "/model.gguf", "gemma4", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"gemma4-old", "", "gemma4", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"gemma4-moe", "", "gemma4", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"gemma4-moe", "/model.gguf", "gemma4", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"gemma4-small", "", "gemma4", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"gemma4-small", "/model.gguf", "gemma4", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"llama", "", "llama", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"llama", "/model.gguf", "llama", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"llama3", "", "llama", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"llama3", "/model.gguf", "llama", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"llama3-new", "", "llama", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"llama-linear", "", "llama", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"llama-linear", "/model.gguf", "llama", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"llama-quants", "/model.gguf", "llama", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"llama-codebooks", "/model.gguf", "llama", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"gemma2-base", "", "gemma2", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"gemma2-sequence", "", "gemma2", 1e-3f, PERIDOT_HEAD_SEQUENCE},
    {"gemma2-token", "", "gemma2", 1e-3f, PERIDOT_HEAD_TOKEN},
    {"llama-base", "", "llama", 1e-3f, PERIDOT_HEAD_NONE},
    {"llama-sequence", "", "llama", 1e-3f, PERIDOT_HEAD_SEQUENCE},
    {"llama-yarn", "", "llama", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"llama-yarn", "/model.gguf", "llama", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"llama-yarn-mscale", "", "llama", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"llama-yarn-mscale", "/model.gguf", "llama", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"llama-longrope", "", "llama", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"llama-longrope", "/model.gguf", "llama", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"llama-longrope-short", "", "llama", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"llama-longrope-short", "/model.gguf", "llama", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"llama-dynamic", "", "llama", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"qwen2", "", "qwen2", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"qwen2", "/model.gguf", "qwen2", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"qwen2-window", "", "qwen2", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"qwen3", "", "qwen3", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"qwen3", "/model.gguf", "qwen3", 1e-3f, PERIDOT_HEAD_LANGUAGE},
    {"qwen3-untied", "", "qwen3", 1e-3f, PERIDOT_HEAD_LANGUAGE},
};
#define N_GOLDENS (sizeof goldens / sizeof *goldens)

static const struct kv {
    const char *name;
    peridot_kv_type type;
    const char *hidden;     /* the file of hidden states to compare with */
    float logits_tolerance, hidden_tolerance;   /* where they are larger than the model's */
} kv_types[] = {
    {"fp32", PERIDOT_KV_F32, "hidden.f32", 0, 0},
    {"fp16", PERIDOT_KV_F16, "hidden.f32", 0, 0},
    {"q8_0", PERIDOT_KV_Q8_0, "hidden-q8_0.f32", Q8_TOLERANCE, Q8_HIDDEN_TOLERANCE},
};
enum { N_KV_TYPES = sizeof kv_types / sizeof *kv_types };

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
    float *hidden_of[N_KV_TYPES];   /* what hidden is compared with, for each type of the cache */
    float last[1024];       /* the last row of logits */
};

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

static bool on_logits(void *user, peridot_sequence *sequence, uint32_t pos, const float *row, size_t n)
{
    (void)sequence;
    struct comparison *c = user;
    compare_row(&c->logits, pos, row, n);
    memcpy(c->last, row, n * sizeof *row);
    return true;
}

static bool on_hidden(void *user, peridot_sequence *sequence, uint32_t pos, const float *row, size_t n)
{
    (void)sequence;
    compare_row(&((struct comparison *)user)->hidden, pos, row, n);
    return true;
}

static void check_status(peridot_status status)
{
    if (status != PERIDOT_OK)
        fail_msg("%s", peridot_last_error());
}

static void eval(peridot_sequence *s, const int32_t *tokens, size_t n, struct comparison *c)
{
    peridot_eval_params params = {.logits = c->logits.width ? on_logits : NULL, .hidden = on_hidden, .user = c};
    check_status(peridot_sequence_eval(s, tokens, n, &params));
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
enum { N_WAYS = sizeof ways / sizeof *ways };

static uint32_t least(uint32_t a, size_t b)
{
    return a < b ? a : (uint32_t)b;
}

/* Prints the worst rows; false when one is too far. */
static bool run_way(peridot_model *model, float tolerance, const struct way *way, const struct kv *kv,
                    const int32_t *tokens, size_t n, struct comparison *c)
{
    c->logits.n_seen = c->hidden.n_seen = 0;
    c->logits.worst = c->hidden.worst = 0;
    peridot_sequence *s;
    check_status(open_sequence(&s, model, &(peridot_session_params){
        .ctx = (uint32_t)n, .chunk = least(way->chunk, n), .kv_type = kv->type}));
    size_t first = least(way->n_first, n);
    eval(s, tokens, first, c);
    for (size_t i = first; i < n; i++)
        eval(s, tokens + i, 1, c);
    assert_int_equal(c->logits.n_seen, c->logits.width ? n : 0);
    assert_int_equal(c->hidden.n_seen, n);
    assert_int_equal(peridot_sequence_pos(s), n);
    if (c->logits.width) {
        const float *last;
        check_status(peridot_logits(&last, s));
        assert_memory_equal(last, c->last, c->logits.width * sizeof *last);
    }
    close_sequence(s);

    bool rounds = tolerance >= FP16_TOLERANCE;   /* and then the cache's numbers are rounded elsewhere, too */
    bool good = c->logits.worst <= fmaxf(tolerance, kv->logits_tolerance)
        && c->hidden.worst <= fmaxf(tolerance, rounds ? kv->logits_tolerance : kv->hidden_tolerance);
    print_message("  %s cache, %-18s logits %.1e (row %u), hidden %.1e (row %u)%s\n",
                  kv->name, way->name, c->logits.worst, c->logits.worst_pos,
                  c->hidden.worst, c->hidden.worst_pos, good ? "" : "  TOO FAR");
    return good;
}

static void read_rows(struct rows *rows, const char *folder, const char *name, size_t n)
{
    size_t size;
    rows->want = read_golden(folder, name, &size);
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
    check_status(peridot_model_open(&model, path,
                                    &(peridot_model_params){.kernels = &kernel, .n_kernels = kernel != NULL}));
    check_info(model, g, c);
    return model;
}

/* ---- which cases are run ---- */

enum { MAX_KERNELS = 64 };

/* Models that variants of operations are forced on: softcaps, windows and fp32; layers that read others' keys, and
 * inputs of their own; the usual types of weights. test_experts.c and test_embedding.c have theirs; test_kernels.c has
 * every type. */
static const struct {
    const char *model, *operations;
} forced[] = {{"gemma2", "matmul matvec attention"}, {"gemma4-small", "attention"},
              {"llama-quants/model.gguf", "matmul matvec"}};

static char kernels[MAX_KERNELS][64];   /* to force; the first is "": what the device takes by itself */
static size_t n_kernels = 1;
static bool all, few;

static int find_kernels(void **state)
{
    (void)state;
    peridot_model *model;
    peridot_variant v;
    all = getenv("PERIDOT_TEST_ALL");
    few = getenv("PERIDOT_TEST_FEW");
    check_status(peridot_model_open(&model, PERIDOT_GOLDEN "/gemma1", NULL));
    peridot_device_info device = *peridot_model_get_info(model)->device;
    peridot_model_close(model);
    for (size_t i = 0; peridot_device_variant(&v, &device, i); i++) {
        if (!v.available || v.chosen) continue;
        assert_true(n_kernels < MAX_KERNELS);
        snprintf(kernels[n_kernels++], sizeof *kernels, "%s=%s", v.operation, v.name);
    }
    return 0;
}

/* Its place in `forced`, or the number of models there. */
static size_t place_of(const struct golden *g)
{
    char name[64];
    size_t i = 0;
    snprintf(name, sizeof name, "%s%s", g->folder, g->file);
    while (i < sizeof forced / sizeof *forced && strcmp(forced[i].model, name) != 0) i++;
    return i;
}

static bool is_run(const struct golden *g, size_t kernel, size_t kv, size_t way)
{
    size_t model = (size_t)(g - goldens), place = place_of(g);
    bool is_forced = place < sizeof forced / sizeof *forced;
    if (all) return true;
    if (few) return is_forced && kernel == 0 && kv == place % N_KV_TYPES && way == place % N_WAYS;
    if (kernel == 0) return way == (model + kv) % N_WAYS;
    if (!is_forced) return false;
    char operation[64];
    snprintf(operation, sizeof operation, "%.*s", (int)strcspn(kernels[kernel], "="), kernels[kernel]);
    return strstr(forced[place].operations, operation) && kv == (kernel + place) % N_KV_TYPES
        && way == (kernel + place) % N_WAYS;
}

/* ---- running them ---- */

/* The model's cases with one kernel; how many are too far. The model is opened for the first. */
static int run_kernel(const struct golden *g, size_t kernel, const int32_t *tokens, size_t n, struct comparison *c)
{
    const char *name = kernels[kernel];
    float tolerance = rounds_to_fp16(name) ? FP16_TOLERANCE : g->tolerance;
    int n_bad = 0;
    peridot_model *model = NULL;
    for (size_t i = 0; i < N_KV_TYPES * N_WAYS; i++) {
        size_t kv = i / N_WAYS, way = i % N_WAYS;
        if (!is_run(g, kernel, kv, way)) continue;
        if (!model) {
            print_message("  %s\n", *name ? name : "the device's own kernels");
            model = open_model(g, *name ? name : NULL, c);
        }
        c->hidden.want = c->hidden_of[kv];
        n_bad += !run_way(model, tolerance, &ways[way], &kv_types[kv], tokens, n, c);
    }
    peridot_model_close(model);
    return n_bad;
}

static void test_golden(void **state)
{
    const struct golden *g = *state;
    int32_t tokens[N_MAX];
    size_t n = read_golden_ids(tokens, N_MAX, g->folder, "tokens.txt");
    struct comparison c = {0};
    if (g->head != PERIDOT_HEAD_NONE)
        read_rows(&c.logits, g->folder, "logits.f32", n);
    for (size_t kv = 0; kv < N_KV_TYPES; kv++) {
        read_rows(&c.hidden, g->folder, kv_types[kv].hidden, n);
        c.hidden_of[kv] = c.hidden.want;
    }
    int n_bad = 0;
    for (size_t kernel = 0; kernel < n_kernels; kernel++) n_bad += run_kernel(g, kernel, tokens, n, &c);
    free(c.logits.want);
    for (size_t kv = 0; kv < N_KV_TYPES; kv++) free(c.hidden_of[kv]);
    if (n_bad)
        fail_msg("%d cases are too far", n_bad);
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
    return cmocka_run_group_tests_name("golden", tests, find_kernels, NULL);
}

/* The forward pass against Hugging Face transformers: every model of tests/golden (README.md there), in each of its
 * file forms, with every kernel variant that the device has forced one by one, with an fp32, the default fp16 and a
 * q8_0 KV cache, evaluated in four ways: as decode steps, in chunks of 7, all at once, and as a prompt followed by
 * decode steps. Logits and final-norm hidden states are compared at every position.
 *
 * The cases run are a pairwise covering array: every two values of different factors (model, kernel, cache, way) meet
 * in at least one case. With PERIDOT_TEST_ALL in the environment it is the full product.
 *
 * Tolerances are relative L2 errors of a row. With an fp32 cache, activations and sums, float32 arithmetic costs 1e-6;
 * GPUs may compute exp, sin and tanh less exactly, so the contract is 1e-3. An fp16 cache alone costs up to 5e-4 (7e-4
 * where the driver rounds to zero), so it fits the same contract, as do activations in 16 bits (dot: up to 5e-5).
 * Cooperative matrices of fp16 are allowed 1e-2 (FP16_TOLERANCE): the worst row of all models is at 3.5e-3, nine of ten
 * ways stay below 1e-3. So are other variants that round to fp16 (half: up to 4e-3) or to 8 bits (dot8), and dot,
 * in whose place half multiplies plain numbers. A q8_0 cache
 * moves numbers by 5e-3 of the root mean square of their block (a 127th of the largest of 32, which is some 2.4 times
 * as much, over the square root of 12), and an fp16 cache by 2e-4: 27 times as much, and so up to 1.4e-2 of a row.
 * Logits are allowed 2e-2 (Q8_TOLERANCE). Hidden states are compared with those that transformers computes with such a
 * cache: most rows are within 1e-6, and one number that is rounded the other way costs up to 8e-4. They are allowed
 * 2e-3 (Q8_HIDDEN_TOLERANCE), which scales that are 2 % off exceed.
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

enum { MODEL, KERNEL, KV_TYPE, WAY, N_FACTORS, MAX_VALUES = 64 };   /* values of a factor at most */

static char kernels[MAX_VALUES][64];   /* to force; the first is "": what the device takes by itself */
static size_t n_values[N_FACTORS] = {N_GOLDENS, 1, N_KV_TYPES, N_WAYS};
static bool met[N_FACTORS][MAX_VALUES][N_FACTORS][MAX_VALUES];
static bool is_run[N_GOLDENS][MAX_VALUES][N_KV_TYPES][N_WAYS];
_Static_assert(N_GOLDENS <= MAX_VALUES, "more models than values");

/* Pairs of values that only this case would make meet: of them all, and of the model's. */
static size_t n_new_pairs(const size_t value[N_FACTORS], size_t *n_of_model)
{
    size_t n = 0;
    *n_of_model = 0;
    for (int a = 0; a < N_FACTORS; a++)
        for (int b = a + 1; b < N_FACTORS; b++) {
            n += !met[a][value[a]][b][value[b]];
            *n_of_model += a == MODEL && !met[a][value[a]][b][value[b]];
        }
    return n;
}

static void add_case(const size_t value[N_FACTORS])
{
    is_run[value[MODEL]][value[KERNEL]][value[KV_TYPE]][value[WAY]] = true;
    for (int a = 0; a < N_FACTORS; a++)
        for (int b = a + 1; b < N_FACTORS; b++) met[a][value[a]][b][value[b]] = true;
}

/* Adds the case of the model that brings the most pairs together, until none of the model's (of_all: none at all) is
 * left. Which of equals is taken differs from model to model and from kernel to kernel. */
static void cover_model(size_t model, bool of_all)
{
    for (;;) {
        size_t most = 0, best[N_FACTORS] = {0};
        for (size_t i = 0; i < n_values[KERNEL] * N_KV_TYPES * N_WAYS; i++) {
            size_t kernel = i / (N_KV_TYPES * N_WAYS), other = i + model + kernel;
            size_t value[N_FACTORS] = {model, kernel, other / N_WAYS % N_KV_TYPES, other % N_WAYS};
            size_t n_of_model, n = n_new_pairs(value, &n_of_model);
            if (n <= most || (!of_all && n_of_model == 0)) continue;
            most = n;
            memcpy(best, value, sizeof best);
        }
        if (most == 0) return;
        add_case(best);
    }
}

static void find_kernels(void)
{
    peridot_model *model;
    peridot_variant v;
    check_status(peridot_model_open(&model, PERIDOT_GOLDEN "/gemma1", NULL));
    peridot_device_info device = *peridot_model_get_info(model)->device;
    peridot_model_close(model);
    for (size_t i = 0; peridot_device_variant(&v, &device, i); i++) {
        if (!v.available || v.chosen) continue;
        assert_true(n_values[KERNEL] < MAX_VALUES);
        snprintf(kernels[n_values[KERNEL]++], sizeof *kernels, "%s=%s", v.operation, v.name);
    }
}

/* The same cases for a model whichever models this process runs. */
static int choose_cases(void **state)
{
    (void)state;
    find_kernels();
    if (getenv("PERIDOT_TEST_ALL")) memset(is_run, true, sizeof is_run);
    else {
        for (size_t i = 0; i < N_GOLDENS; i++) cover_model(i, false);
        cover_model(N_GOLDENS - 1, true);
    }
    return 0;
}

static bool meets(int a, size_t value_a, int b, size_t value_b)
{
    size_t v[N_FACTORS];
    for (v[MODEL] = 0; v[MODEL] < n_values[MODEL]; v[MODEL]++)
        for (v[KERNEL] = 0; v[KERNEL] < n_values[KERNEL]; v[KERNEL]++)
            for (v[KV_TYPE] = 0; v[KV_TYPE] < n_values[KV_TYPE]; v[KV_TYPE]++)
                for (v[WAY] = 0; v[WAY] < n_values[WAY]; v[WAY]++)
                    if (is_run[v[MODEL]][v[KERNEL]][v[KV_TYPE]][v[WAY]] && v[a] == value_a && v[b] == value_b)
                        return true;
    return false;
}

static void test_every_pair(void **state)
{
    (void)state;
    for (int a = 0; a < N_FACTORS; a++)
        for (int b = a + 1; b < N_FACTORS; b++)
            for (size_t i = 0; i < n_values[a]; i++)
                for (size_t j = 0; j < n_values[b]; j++)
                    if (!meets(a, i, b, j))
                        fail_msg("no case has value %zu of factor %d and value %zu of factor %d", i, a, j, b);
}

/* ---- running them ---- */

/* The model's cases with one kernel; how many are too far. */
static int run_kernel(const struct golden *g, size_t kernel, const int32_t *tokens, size_t n, struct comparison *c)
{
    bool (*run)[N_WAYS] = is_run[g - goldens][kernel];
    const char *name = kernels[kernel];
    float tolerance = rounds_to_fp16(name) ? FP16_TOLERANCE : g->tolerance;
    int n_bad = 0;
    print_message("  %s\n", *name ? name : "the device's own kernels");
    peridot_model *model = open_model(g, *name ? name : NULL, c);
    for (size_t kv = 0; kv < N_KV_TYPES; kv++) {
        c->hidden.want = c->hidden_of[kv];
        for (size_t way = 0; way < N_WAYS; way++)
            if (run[kv][way]) n_bad += !run_way(model, tolerance, &ways[way], &kv_types[kv], tokens, n, c);
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
    for (size_t kernel = 0; kernel < n_values[KERNEL]; kernel++) n_bad += run_kernel(g, kernel, tokens, n, &c);
    free(c.logits.want);
    for (size_t kv = 0; kv < N_KV_TYPES; kv++) free(c.hidden_of[kv]);
    if (n_bad)
        fail_msg("%d cases are too far", n_bad);
}

int main(int argc, char **argv)
{
    struct CMUnitTest tests[N_GOLDENS + 1] = {0};   /* those without a name are none */
    char names[N_GOLDENS][64];
    size_t part = 1, n_parts = 1;
    bool in_parts = argc > 1 && sscanf(argv[1], "%zu/%zu", &part, &n_parts) == 2;
    if (part < 1 || part > n_parts) return 2;
    for (size_t i = part - 1; i < N_GOLDENS; i += n_parts) {
        snprintf(names[i], sizeof names[i], "%s%s", goldens[i].folder, goldens[i].file);
        tests[i] = (struct CMUnitTest){
            .name = names[i], .test_func = test_golden, .initial_state = (void *)&goldens[i]};
    }
    if (part == 1) tests[N_GOLDENS] = (struct CMUnitTest)cmocka_unit_test(test_every_pair);
    if (argc > 1 && !in_parts) {
        static char pattern[80];
        snprintf(pattern, sizeof pattern, "*%s*", argv[1]);
        cmocka_set_test_filter(pattern);
    }
    return cmocka_run_group_tests_name("golden", tests, choose_cases, NULL);
}

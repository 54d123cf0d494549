/* The dense families, and those with experts in place of their gated units, against Hugging Face transformers: every
 * model of tests/golden/dense (tools/golden/dense.py), from its directory, from the GGUF file where there is one, and
 * from the GGUF that peridot_convert makes of the directory, whose logits are the directory's bit for bit. Each as one
 * chunk, in chunks of 7 and as decode steps. Errors are relative to a row's L2 norm: float32 arithmetic costs 1e-6, an
 * fp16 cache up to 5e-4, a q8_0 one 1e-2. test_golden.c has the families that run with every kernel. */
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

/* Of a text longer than the few, these alone are read but as one chunk with an fp32 cache: others round, and where many
 * tokens choose experts, some choices are close. */
enum { N_MAX = 320, N_FEW = 96, NO_WORDS = -1 };

static const struct dense {
    const char *folder, *family;
    int has_gguf;            /* NO_WORDS: GGUF has none for it, and it is not converted */
} models[] = {
    {"granite", "granite", true},
    {"granite-biases", "granite", true},
    {"granite4", "granite", false},
    {"gpt-oss", "gpt-oss", true},
    {"gpt-oss-mxfp4", "gpt-oss", true},
    {"granite4-h", "granitehybrid", true},
    {"granite4-h-moe", "granitehybrid", true},
    {"granitemoe", "granitemoe", true},
    {"lfm2", "lfm2", true},
    {"lfm2-new", "lfm2", false},
    {"lfm2-moe", "lfm2moe", true},
    {"llama-biases", "llama", true},
    {"mixtral", "llama", true},
    {"mistral", "llama", true},
    {"ministral", "llama", false},
    {"ministral3", "mistral3", true},
    {"muse-glimmer", "muse-glimmer", true},
    {"olmo2", "olmo2", true},
    {"olmo3", "olmo2", true},
    {"olmoe", "olmoe", true},
    {"phi3", "phi3", true},
    {"phi3-longrope", "phi3", true},
    {"phi3-partial", "phi3", true},
    {"qwen3-moe", "qwen3moe", true},
    {"qwen3-moe-raw", "qwen3moe", NO_WORDS},
    {"qwen3-moe-sparse", "qwen3moe", false},
    {"qwen3-next", "qwen3next", true},
    {"qwen3-next-old", "qwen3next", true},
    {"qwen35", "qwen35", true},
    {"qwen35-seeing", "qwen35", false},   /* tools/golden/assemble.py */
    {"qwen35-untied", "qwen35", false},
    {"qwen35-moe", "qwen35moe", true},
    {"qwen35-moe-merged", "qwen35moe", false},
    {"smollm3", "smollm3", true},
};

static const struct { const char *name; peridot_kv_type type; double tolerance; } caches[] = {
    {"fp32", PERIDOT_KV_F32, 1e-4}, {"fp16", PERIDOT_KV_F16, 1e-3}, {"q8_0", PERIDOT_KV_Q8_0, 2e-2}};
static const struct { uint32_t chunk, n_first; } ways[] = {{0, N_MAX}, {7, N_MAX}, {16, 1}};   /* chunk 0: one */

struct rows {
    float *want, *got;      /* [n][width] */
    size_t width, n_seen;
};

static void expect(peridot_status status)
{
    if (status != PERIDOT_OK) fail_msg("%s", peridot_last_error());
}

static bool keep(void *user, peridot_sequence *sequence, uint32_t pos, const float *row, size_t n)
{
    struct rows *rows = user;
    (void)sequence;
    assert_int_equal(pos, rows->n_seen++);
    assert_int_equal(n, rows->width);
    memcpy(rows->got + pos * n, row, n * sizeof *row);
    return true;
}

static bool keep_logits(void *user, peridot_sequence *s, uint32_t pos, const float *row, size_t n)
{
    return keep(user, s, pos, row, n);
}

static bool keep_hidden(void *user, peridot_sequence *s, uint32_t pos, const float *row, size_t n)
{
    return keep((struct rows *)user + 1, s, pos, row, n);
}

static void read_rows(struct rows *rows, const char *golden, const char *name, size_t n)
{
    size_t size;
    *rows = (struct rows){.want = read_golden(golden, name, &size)};
    rows->width = size / sizeof(float) / n;
    rows->got = malloc(size);
    assert_non_null(rows->got);
}

static double worst(const struct rows *rows, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n * rows->width; i += rows->width) {
        double error = relative_error(rows->got + i, rows->want + i, rows->width);
        if (!(error <= most)) most = error;   /* NaN is not */
    }
    return most;
}

static void run(peridot_model *model, peridot_kv_type kv, uint32_t chunk, uint32_t n_first, const int32_t *ids,
                size_t n, struct rows rows[2])
{
    peridot_sequence *s;
    uint32_t ctx = n > N_FEW ? N_MAX : n > 64 ? N_FEW : 64;
    const peridot_eval_params params = {.logits = keep_logits, .hidden = keep_hidden, .user = rows};
    rows[0].n_seen = rows[1].n_seen = 0;
    const peridot_session_params session = {.ctx = ctx, .chunk = chunk ? chunk : ctx, .kv_type = kv};
    expect(open_sequence(&s, model, &session));
    if (n_first > n) n_first = (uint32_t)n;
    expect(peridot_sequence_eval(s, ids, n_first, &params));
    for (size_t i = n_first; i < n; i++) expect(peridot_sequence_eval(s, ids + i, 1, &params));
    assert_int_equal(rows[0].n_seen, n);
    assert_int_equal(rows[1].n_seen, n);
    close_sequence(s);
}

/* `same`: what the logits are to be bit for bit, or NULL; else a copy of them, by one chunk with an fp32 cache. */
static float *check_file(const struct dense *d, const char *path, const int32_t *ids, size_t n, struct rows rows[2],
                         const float *same)
{
    peridot_model *model;
    size_t size = n * rows[0].width * sizeof(float);
    float *copy = malloc(size);
    assert_non_null(copy);
    expect(peridot_model_open(&model, path, NULL));
    assert_string_equal(peridot_model_get_info(model)->family, d->family);
    bool has_blocks = peridot_model_get_info(model)->head_dim % 32 == 0;   /* else there can be no q8_0 cache */
    for (size_t c = 0; c < sizeof caches / sizeof *caches - !has_blocks; c++)
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
            size_t here = c + w > 0 && n > N_FEW ? N_FEW : n;
            run(model, caches[c].type, ways[w].chunk, ways[w].n_first, ids, here, rows);
            double logits = worst(&rows[0], here), hidden = worst(&rows[1], here);
            print_message("  %s, %s cache, %zu tokens in chunks of %u: logits %.1e, hidden %.1e\n",
                          strrchr(path, '/') + 1, caches[c].name, here, ways[w].n_first == 1 ? 1 : ways[w].chunk,
                          logits, hidden);
            if (!(logits <= caches[c].tolerance && hidden <= caches[c].tolerance)) fail_msg("too far");
            if (c + w == 0) memcpy(copy, rows[0].got, size);
        }
    if (same) assert_memory_equal(copy, same, size);
    peridot_model_close(model);
    return copy;
}

static void test_dense(void **state)
{
    const struct dense *d = *state;
    char golden[128], path[1024];
    int32_t ids[N_MAX];
    struct rows rows[2];
    snprintf(golden, sizeof golden, "dense/%s", d->folder);
    size_t n = read_golden_ids(ids, N_MAX, golden, "tokens.txt");
    read_rows(&rows[0], golden, "logits.f32", n);
    read_rows(&rows[1], golden, "hidden.f32", n);

    snprintf(path, sizeof path, PERIDOT_GOLDEN "/%s", golden);
    float *logits = check_file(d, path, ids, n, rows, NULL);
    peridot_status status = peridot_convert(in_folder("x.gguf"), path, &(peridot_convert_params){.type = "bf16"}, NULL);
    if (d->has_gguf == NO_WORDS) assert_int_equal(status, PERIDOT_ERROR_UNSUPPORTED);
    else {
        expect(status);
        free(check_file(d, in_folder("x.gguf"), ids, n, rows, logits));
    }
    remove(in_folder("x.gguf"));
    if (d->has_gguf == true) {
        snprintf(path, sizeof path, PERIDOT_GOLDEN "/%s/model.gguf", golden);
        free(check_file(d, path, ids, n, rows, logits));
    }
    free(logits);
    for (int i = 0; i < 2; i++) {
        free(rows[i].want);
        free(rows[i].got);
    }
}

static int remove_folder(void **state)
{
    (void)state;
    return remove(folder);
}

int main(int argc, char **argv)
{
    enum { N = sizeof models / sizeof *models };
    struct CMUnitTest tests[N];
    for (size_t i = 0; i < N; i++)
        tests[i] = (struct CMUnitTest){
            .name = models[i].folder, .test_func = test_dense, .initial_state = (void *)&models[i]};
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("dense", tests, make_folder, remove_folder);
}

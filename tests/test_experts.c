/* Models with experts, of quantised weights: every kernel variant gives the same logits, up to rounding; and so, bit by
 * bit, do GGUF files whose experts have their gates in a tensor of its own, as llama.cpp's converter once wrote them,
 * or are tensors one by one, as it wrote Mixtral's at first. Experts in NVFP4 have scales there. And what is observed
 * of the inputs of matrices for peridot_imatrix_write, experts' and others'. */
#include "format_fixture.h"
#include "sequence_fixture.h"

#include "format/format.h"
#include "golden_files.h"
#include "offline/offline.h"
#include "peridot_tools.h"
#include "relative_error.h"
#include "rounding.h"

enum { N_TOKENS = 40, VOCAB = 1024, MAX_ITEMS = 128 };

/* ---- the other form ---- */

struct item {
    char name[64];
    const struct pd_tensor *source;
    uint32_t half;   /* of the rows of each expert: 1 or 2; 0: all of the tensor */
    bool is_scale;   /* the numbers that these halves are multiplied by */
};

/* Half of each expert, and where it is NVFP4 its scales. */
static size_t add_half(struct item *items, const struct pd_tensor *t, uint32_t half)
{
    int layer_size = (int)(strstr(t->name, "ffn_gate_up_exps") - t->name);
    for (int is_scale = 0; is_scale < 1 + (t->dtype == PD_NVFP4); is_scale++) {
        items[is_scale] = (struct item){.source = t, .half = half, .is_scale = is_scale};
        snprintf(items[is_scale].name, sizeof items->name, "%.*sffn_%s_exps.%s", layer_size, t->name,
                 half == 1 ? "gate" : "up", is_scale ? "scale" : "weight");
    }
    return 1 + (t->dtype == PD_NVFP4);
}

static size_t list_items(struct item items[MAX_ITEMS], const struct pd_checkpoint *c, const struct pd_checkpoint *ups)
{
    size_t n = 0;
    for (size_t i = 0; i < pd_checkpoint_n_tensors(c); i++) {
        const struct pd_tensor *t = pd_checkpoint_tensor(c, i);
        assert_true(n + 4 <= MAX_ITEMS);
        if (!strstr(t->name, "ffn_gate_up_exps")) {
            items[n] = (struct item){.source = t};
            snprintf(items[n++].name, sizeof items->name, "%s", t->name);
            continue;
        }
        n += add_half(items + n, t, 1);
        n += add_half(items + n, pd_checkpoint_find(ups, t->name), 2);
    }
    return n;
}

static void write_item(struct pd_gguf_writer *w, const struct item *item)
{
    const struct pd_tensor *t = item->source;
    uint64_t size = t->size / t->shape[0] / 2;
    for (uint64_t expert = 0; item->is_scale && expert < t->shape[0]; expert++) {
        float scale = (float)item->half / 4 + (float)expert / 8;
        EXPECT_OK(pd_gguf_writer_write(w, &scale, sizeof scale));
    }
    if (item->is_scale) return;
    if (!item->half) EXPECT_OK(pd_gguf_writer_write(w, t->data, t->size));
    for (uint64_t expert = 0; item->half && expert < t->shape[0]; expert++)
        EXPECT_OK(pd_gguf_writer_write(w, t->data + (2 * expert + item->half - 1) * size, size));
}

/* y.gguf: x.gguf with two tensors for ffn_gate_up_exps, the second one from the file `ups`. */
static void split_experts(const char *ups)
{
    static struct item items[MAX_ITEMS];
    struct pd_checkpoint *c, *other;
    struct pd_gguf_writer *w;
    EXPECT_OK(pd_checkpoint_open(&c, in_folder("x.gguf"), true));
    EXPECT_OK(pd_checkpoint_open(&other, in_folder(ups), true));
    EXPECT_OK(pd_gguf_writer_open(&w, in_folder("y.gguf")));
    for (size_t i = 0; i < pd_checkpoint_n_meta(c); i++) pd_gguf_writer_add_meta(w, pd_checkpoint_meta(c, i));
    size_t n = list_items(items, c, other);
    assert_true(n > pd_checkpoint_n_tensors(c));
    for (size_t i = 0; i < n; i++) {
        const struct pd_tensor *t = items[i].source;
        const uint64_t halves[] = {t->shape[0], t->shape[1] / 2, t->shape[2]};
        if (items[i].is_scale) pd_gguf_writer_add_tensor(w, items[i].name, PD_F32, 1, t->shape);
        else pd_gguf_writer_add_tensor(w, items[i].name, t->dtype, t->n_dims, items[i].half ? halves : t->shape);
    }
    EXPECT_OK(pd_gguf_writer_begin(w));
    for (size_t i = 0; i < n; i++) write_item(w, &items[i]);
    EXPECT_OK(pd_gguf_writer_commit(w));
    pd_checkpoint_close(c);
    pd_checkpoint_close(other);
}

/* ---- tests ---- */

static void make(const char *name, const char *type)
{
    EXPECT_OK(
        peridot_make(in_folder(name), &(peridot_make_params){.shape = "tiny-gemma4-moe", .type = type, .seed = 5}));
}

static bool keep_row(void *user, peridot_sequence *sequence, uint32_t pos, const float *row, size_t n)
{
    (void)sequence;
    assert_int_equal(n, VOCAB);
    memcpy((float *)user + (size_t)pos * VOCAB, row, n * sizeof *row);
    return true;
}

/* Of a prompt and the steps after it, with a kernel forced or NULL. */
static void evaluate(float *logits, const char *name, const char *kernel)
{
    peridot_model *model;
    const peridot_model_params forced = {.kernels = &kernel, .n_kernels = kernel != NULL};
    peridot_sequence *s;
    int32_t tokens[N_TOKENS];
    const peridot_eval_params params = {.logits = keep_row, .user = logits};
    for (int i = 0; i < N_TOKENS; i++) tokens[i] = (i * 37 + 11) % VOCAB;
    EXPECT_OK(peridot_model_open(&model, in_folder(name), &forced));
    EXPECT_OK(open_sequence(&s, model, &(peridot_session_params){.ctx = N_TOKENS, .kv_type = PERIDOT_KV_F32}));
    EXPECT_OK(peridot_sequence_eval(s, tokens, N_TOKENS / 2, &params));
    for (size_t i = N_TOKENS / 2; i < N_TOKENS; i++) EXPECT_OK(peridot_sequence_eval(s, tokens + i, 1, &params));
    close_sequence(s);
    peridot_model_close(model);
}

static void test_variants(void **state)
{
    (void)state;
    static float want[N_TOKENS * VOCAB], got[N_TOKENS * VOCAB];
    char kernel[64];
    peridot_variant v;
    peridot_model *model;
    make("x.gguf", "q4_k");
    EXPECT_OK(peridot_model_open(&model, in_folder("x.gguf"), NULL));
    const peridot_device_info device = *peridot_model_get_info(model)->device;
    peridot_model_close(model);
    evaluate(want, "x.gguf", NULL);
    for (size_t i = 0; peridot_device_variant(&v, &device, i); i++) {
        if (!v.available || v.chosen) continue;
        if (strcmp(v.operation, "attention") == 0 && !getenv("PERIDOT_TEST_ALL")) continue;
        snprintf(kernel, sizeof kernel, "%s=%s", v.operation, v.name);
        evaluate(got, "x.gguf", kernel);
        bool rounds = rounds_to_fp16(kernel);
        /* activations of 8 bits: 3.1e-2 at most here, 2.7e-2 of all logits of SmolLM2 */
        double most = strcmp(kernel, "matmul=dot") == 0 ? 4e-2 : rounds ? 1e-2 : 1e-3;
        int n_off = 0;   /* of two experts that are nearly as good it may take the other: at most in two rows */
        for (size_t row = 0; row < N_TOKENS; row++) {
            double error = relative_error(got + row * VOCAB, want + row * VOCAB, VOCAB);
            if (error < most) continue;
            if (!rounds || !(error < 1) || ++n_off > 2) fail_msg("%s, row %zu: %g", kernel, row, error);
        }
    }
}

static void test_split(void **state)
{
    (void)state;
    static const char *const types[] = {"bf16", "q4_k", "f32", "q4_0"};   /* the latter with PERIDOT_TEST_ALL */
    static float want[N_TOKENS * VOCAB], got[N_TOKENS * VOCAB];
    for (size_t i = 0; i < (getenv("PERIDOT_TEST_ALL") ? PD_COUNT(types) : 2); i++) {
        make("x.gguf", types[i]);
        split_experts("x.gguf");
        memset(got, 0, sizeof got);
        evaluate(want, "x.gguf", NULL);
        evaluate(got, "y.gguf", NULL);
        assert_memory_equal(want, got, sizeof got);
    }
}

/* The same model in f32, whose experts have been multiplied, gives the same logits. */
static void test_scales(void **state)
{
    (void)state;
    static float want[N_TOKENS * VOCAB], got[N_TOKENS * VOCAB];
    make("x.gguf", "nvfp4");
    split_experts("x.gguf");
    const peridot_convert_params params = {.type = "f32"};
    EXPECT_OK(peridot_convert(in_folder("z.gguf"), in_folder("y.gguf"), &params, NULL));
    evaluate(want, "z.gguf", NULL);
    evaluate(got, "y.gguf", NULL);
    for (size_t row = 0; row < N_TOKENS; row++) {
        double error = relative_error(got + row * VOCAB, want + row * VOCAB, VOCAB);
        if (!(error < 1e-3)) fail_msg("row %zu: %g", row, error);
    }
}

static void test_two_types(void **state)
{
    (void)state;
    peridot_model *model;
    make("x.gguf", "q4_0");
    make("z.gguf", "q8_0");
    split_experts("z.gguf");
    assert_int_equal(peridot_model_open(&model, in_folder("y.gguf"), NULL), PERIDOT_ERROR_UNSUPPORTED);
    const char *error = peridot_last_error();
    if (!strstr(error, "blk.0.ffn_gate_exps.weight has type q4_0, but blk.0.ffn_up_exps.weight has q8_0"))
        fail_msg("%s", error);
}

/* z.gguf: x.gguf with a tensor for each expert, without one of them if that is asked for. */
static void part_experts(bool incomplete)
{
    struct pd_checkpoint *c;
    struct pd_gguf_writer *w;
    char name[96];
    EXPECT_OK(pd_checkpoint_open(&c, in_folder("x.gguf"), true));
    EXPECT_OK(pd_gguf_writer_open(&w, in_folder("z.gguf")));
    for (size_t i = 0; i < pd_checkpoint_n_meta(c); i++) pd_gguf_writer_add_meta(w, pd_checkpoint_meta(c, i));
    for (int write = 0; write < 2; write++) {
        for (size_t i = 0; i < pd_checkpoint_n_tensors(c); i++) {
            const struct pd_tensor *t = pd_checkpoint_tensor(c, i);
            const char *end = strstr(t->name, "_exps.weight");
            uint64_t n = end ? t->shape[0] : 1, size = t->size / n;
            for (uint64_t e = incomplete && end && strstr(t->name, "blk.1.ffn_up") ? 1 : 0; e < n; e++) {
                snprintf(name, sizeof name, "%.*s.%u.weight", end ? (int)(end - t->name) : 0, t->name, (unsigned)e);
                if (write) EXPECT_OK(pd_gguf_writer_write(w, t->data + e * size, size));
                else if (end) pd_gguf_writer_add_tensor(w, name, t->dtype, 2, t->shape + 1);
                else pd_gguf_writer_add_tensor(w, t->name, t->dtype, t->n_dims, t->shape);
            }
        }
        if (!write) EXPECT_OK(pd_gguf_writer_begin(w));
    }
    EXPECT_OK(pd_gguf_writer_commit(w));
    pd_checkpoint_close(c);
}

/* As they are, and converted: with other types of blocks, and without a change. */
static void test_one_by_one(void **state)
{
    (void)state;
    static float want[N_TOKENS * VOCAB], got[N_TOKENS * VOCAB];
    const peridot_convert_params params = {.type = "q8_0"};
    peridot_model *model;
    EXPECT_OK(peridot_make(in_folder("x.gguf"), &(peridot_make_params){.shape = "tiny-qwen3-moe", .type = "q8_0"}));
    part_experts(false);
    evaluate(want, "x.gguf", NULL);
    evaluate(got, "z.gguf", NULL);
    assert_memory_equal(want, got, sizeof got);
    EXPECT_OK(peridot_convert(in_folder("y.gguf"), in_folder("z.gguf"), &params, NULL));
    memset(got, 0, sizeof got);
    evaluate(got, "y.gguf", NULL);
    assert_memory_equal(want, got, sizeof got);
    part_experts(true);
    assert_int_equal(peridot_model_open(&model, in_folder("z.gguf"), NULL), PERIDOT_ERROR_FORMAT);
    const char *error = peridot_last_error();
    if (!strstr(error, "blk.1.ffn_up.1.weight is there, but not that of expert 0")) fail_msg("%s", error);
}

static void test_idle(void **state)
{
    (void)state;
    peridot_model *model;
    EXPECT_OK(peridot_make(in_folder("x.gguf"), &(peridot_make_params){.shape = "tiny-qwen3-moe", .type = "q4_0"}));
    EXPECT_OK(peridot_model_open(&model, in_folder("x.gguf"), NULL));
    /* 2 layers, 6 of 8 experts in each */
    assert_int_equal(peridot_model_get_info(model)->n_idle_params, 2 * 6 * 3 * 256 * 256);
    peridot_model_close(model);
}

/* ---- importance ---- */

enum { N_OBSERVED = 6 };   /* of tools/golden/importance.py */

/* i.gguf: what a model's matrices multiply in a prompt and the steps after it. */
static void observe(const char *path, const int32_t *ids, const char *kernel)
{
    peridot_model *model;
    peridot_sequence *s;
    const peridot_model_params forced = {.kernels = &kernel, .n_kernels = kernel != NULL};
    const peridot_imatrix_text text = {.n_windows = 1, .ctx = N_OBSERVED};
    EXPECT_OK(peridot_model_open(&model, path, &forced));
    EXPECT_OK(peridot_imatrix_begin(model));
    EXPECT_OK(open_sequence(&s, model, &(peridot_session_params){.ctx = 64, .kv_type = PERIDOT_KV_F32}));
    EXPECT_OK(peridot_sequence_eval(s, ids, N_OBSERVED - 2, NULL));
    for (size_t i = N_OBSERVED - 2; i < N_OBSERVED; i++) EXPECT_OK(peridot_sequence_eval(s, ids + i, 1, NULL));
    EXPECT_OK(peridot_imatrix_write(model, in_folder("i.gguf"), &text));
    close_sequence(s);
    peridot_model_close(model);
}

static float number_of(const struct pd_tensor *t, uint64_t i)
{
    float x;
    memcpy(&x, t->data + i * sizeof x, sizeof x);
    return x;
}

static float largest_of(const struct pd_tensor *t)
{
    float most = 0;
    for (uint64_t i = 0; i < t->size / sizeof most; i++) most = fmaxf(most, number_of(t, i));
    return most;
}

static void expect_same_sums(const struct pd_checkpoint *want, const struct pd_checkpoint *got)
{
    assert_int_equal(pd_checkpoint_n_tensors(got), pd_checkpoint_n_tensors(want));
    for (size_t i = 0; i < pd_checkpoint_n_tensors(want); i++) {
        const struct pd_tensor *w = pd_checkpoint_tensor(want, i), *g = pd_checkpoint_find(got, w->name);
        if (!g) fail_msg("%s is not there", w->name);
        assert_int_equal(g->n_dims, w->n_dims);
        assert_memory_equal(g->shape, w->shape, w->n_dims * sizeof *w->shape);
        float least = 1e-6f * largest_of(w);
        for (uint64_t k = 0; k < w->size / sizeof(float); k++)
            if (!(fabsf(number_of(g, k) - number_of(w, k)) <= 1e-4f * number_of(w, k) + least))
                fail_msg("%s[%u]: %g, not %g", w->name, (unsigned)k, (double)number_of(g, k), (double)number_of(w, k));
    }
}

/* Sums and counts of each matrix and each expert are those of what transformers multiplies. */
static void test_importance(void **state)
{
    (void)state;
    static const char *const goldens[] = {"dense/qwen3-moe", "gemma4-moe"}, *const kernels[] = {NULL, "matmul=tile"};
    char path[1024];
    int32_t ids[N_OBSERVED];
    for (size_t i = 0; i < PD_COUNT(goldens); i++) {
        struct pd_checkpoint *want, *got;
        assert_int_equal(read_golden_ids(ids, N_OBSERVED, goldens[i], "tokens.txt"), N_OBSERVED);
        snprintf(path, sizeof path, PERIDOT_GOLDEN "/%s/importance.gguf", goldens[i]);
        EXPECT_OK(pd_checkpoint_open(&want, path, true));
        for (size_t k = 0; k < PD_COUNT(kernels); k++) {
            observe((snprintf(path, sizeof path, PERIDOT_GOLDEN "/%s", goldens[i]), path), ids, kernels[k]);
            EXPECT_OK(pd_checkpoint_open(&got, in_folder("i.gguf"), true));
            expect_same_sums(want, got);
            pd_checkpoint_close(got);
        }
        pd_checkpoint_close(want);
    }
}

/* Of recurrences, of tensors that have the rows of several roles, and of layers that read the keys of others, each
 * matrix is named once and has seen all rows. */
static void test_observed_rows(void **state)
{
    (void)state;
    static const char *const goldens[] = {"dense/granite4-h-moe", "dense/qwen3-next", "gemma4-small"};
    char path[1024];
    int32_t ids[N_OBSERVED];
    for (size_t i = 0; i < PD_COUNT(goldens); i++) {
        struct pd_checkpoint *c;
        read_golden_ids(ids, N_OBSERVED, goldens[i], "tokens.txt");
        observe((snprintf(path, sizeof path, PERIDOT_GOLDEN "/%s", goldens[i]), path), ids, NULL);
        EXPECT_OK(pd_checkpoint_open(&c, in_folder("i.gguf"), true));
        for (size_t k = 0; k < pd_checkpoint_n_tensors(c); k++) {
            const struct pd_tensor *t = pd_checkpoint_tensor(c, k);
            float sum = 0;
            if (!strstr(t->name, ".counts")) continue;
            for (uint64_t e = 0; e < t->shape[0]; e++) sum += number_of(t, e);
            if (sum != (float)N_OBSERVED * (t->shape[0] > 1 ? 3 : 1)) fail_msg("%s: %g", t->name, (double)sum);
        }
        pd_checkpoint_close(c);
    }
}

/* Weights of an expert are rounded by its own sums, and by none where no token took it. */
static void test_convert_by_importance(void **state)
{
    (void)state;
    static const char *const types[] = {"q4_k", "iq2_s"};
    static const int32_t ids[N_OBSERVED] = {1, 20, 20, 20, 300, 20};
    static float x[256 * 256], means[256];
    static uint8_t want[256 * 256];
    const char *name = "blk.0.ffn_down_exps.weight";
    struct pd_checkpoint *model, *sums, *c;
    EXPECT_OK(peridot_make(in_folder("x.gguf"), &(peridot_make_params){.shape = "tiny-qwen3-moe", .type = "f32"}));
    observe(in_folder("x.gguf"), ids, NULL);
    EXPECT_OK(pd_checkpoint_open(&model, in_folder("x.gguf"), true));
    EXPECT_OK(pd_checkpoint_open(&sums, in_folder("i.gguf"), true));
    const struct pd_tensor *source = pd_checkpoint_find(model, name),
        *in_sum2 = pd_checkpoint_find(sums, "blk.0.ffn_down_exps.weight.in_sum2"),
        *counts = pd_checkpoint_find(sums, "blk.0.ffn_down_exps.weight.counts");
    for (size_t i = 0; i < PD_COUNT(types); i++) {
        const peridot_convert_params params = {.type = types[i], .imatrix = in_folder("i.gguf")};
        peridot_convert_stats stats;
        int n_unseen = 0;
        EXPECT_OK(peridot_convert(in_folder("y.gguf"), in_folder("x.gguf"), &params, &stats));
        EXPECT_OK(pd_checkpoint_open(&c, in_folder("y.gguf"), true));
        const struct pd_tensor *t = pd_checkpoint_find(c, name);
        uint64_t size = t->size / 8, row_size = size / 256;
        for (uint64_t e = 0; e < 8; e++) {
            memcpy(x, source->data + e * sizeof x, sizeof x);
            double count = (double)number_of(counts, e), total = 0;
            for (uint64_t k = 0; k < 256; k++)
                total += (double)(means[k] = (float)((double)number_of(in_sum2, e * 256 + k) / count));
            for (uint64_t k = 0; k < 256; k++) means[k] = fmaxf(means[k], (float)(1e-4 * total / 256));
            for (uint64_t r = 0; count > 0 && r < 256; r++)
                pd_quantize_by(t->dtype, want + r * row_size, x + 256 * r, means, 256);
            if (!(count > 0)) pd_quantize(t->dtype, want, x, 256 * 256);
            n_unseen += !(count > 0);
            if (memcmp(want, t->data + e * size, size))
                fail_msg("%s: expert %u, seen %g times", types[i], (unsigned)e, count);
        }
        assert_true(n_unseen > 0 && n_unseen < 8);
        assert_true(stats.n_unseen >= 3 * (unsigned)n_unseen && stats.n_unseen < 3 * 2 * 8);
        pd_checkpoint_close(c);
    }
    pd_checkpoint_close(sums);
    pd_checkpoint_close(model);
}

static int remove_folder(void **state)
{
    (void)state;
    static const char *const names[] = {"x.gguf", "y.gguf", "z.gguf", "i.gguf"};
    for (size_t i = 0; i < PD_COUNT(names); i++) remove(in_folder(names[i]));
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_variants), cmocka_unit_test(test_split),
        cmocka_unit_test(test_scales), cmocka_unit_test(test_two_types), cmocka_unit_test(test_one_by_one),
        cmocka_unit_test(test_idle), cmocka_unit_test(test_importance), cmocka_unit_test(test_observed_rows),
        cmocka_unit_test(test_convert_by_importance)};
    return cmocka_run_group_tests_name("experts", tests, make_folder, remove_folder);
}

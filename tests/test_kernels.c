/* Every kernel against the CPU reference, by the self-test in the library; and that the self-test notices what a broken
 * kernel would do. Most of the time is the driver's compiler's, so many cases are run of one type for each shader, and
 * of its other types those that share a pipeline; with PERIDOT_TEST_ALL, all of all. With PERIDOT_TEST_FEW, for devices
 * that compile slowly: the few cases that the command runs, and of products and attention those that share a pipeline.
 * With an argument, only kernels whose names begin so. */
#include "damage.h"
#include "gpu/gpu_.h"
#include "ops/ops.h"
#include "selftest/selftest.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct pd_gpu *gpu;
static const char *only;
static bool all, few;

static int open_gpu(void **state)
{
    (void)state;
    all = getenv("PERIDOT_TEST_ALL");
    few = getenv("PERIDOT_TEST_FEW");
    peridot_status status = pd_gpu_open(&gpu, NULL, NULL);
    if (status != PERIDOT_OK) print_error("%s\n", pd_error());
    return status == PERIDOT_OK ? 0 : -1;
}

static int close_gpu(void **state)
{
    (void)state;
    pd_gpu_close(gpu);
    return 0;
}

/* ---- right ---- */

/* The type whose cases are all run. Those with super blocks have the most to go wrong; what groups of rows are is a
 * matter of matvec_rows. */
static bool is_whole(enum pd_kernel_id id)
{
    static const uint32_t types[PD_N_KERNEL_KINDS] = {
        [PD_KERNELS_matvec] = PD_Q4_K, [PD_KERNELS_matvec_rows] = PD_Q8_0, [PD_KERNELS_matvec_dot] = PD_Q6_K,
        [PD_KERNELS_matmul] = PD_Q5_0, [PD_KERNELS_matmul_half] = PD_Q4_0, [PD_KERNELS_matmul_coop] = PD_Q4_K,
        [PD_KERNELS_matmul_dot] = PD_Q3_K};
    enum pd_kernel_kind kind = pd_kernel_kind_of(id);
    return kind == PD_KERNELS_embed || pd_kernel_type_of(id) == types[kind];
}

/* Attention has the types of caches, fp16 first, and many shapes of heads; all others have no types. */
static uint32_t max_pipelines(enum pd_kernel_id id)
{
    bool is_attention = strncmp(pd_kernel_name(id), "attention_", 10) == 0 && id != PD_KERNEL_attention_reduce;
    bool is_matmul = strncmp(pd_kernel_name(id), "matmul_", 7) == 0;
    bool is_product = strncmp(pd_kernel_name(id), "mat", 3) == 0;
    if (few) return is_product || is_attention ? 1 : 0;
    if (all) return 0;
    if (is_whole(id)) return is_attention ? 6 : is_matmul ? 10 : 0;
    return 1;
}

struct found {
    uint32_t n_checks, n_wrong;
};

static bool check_right(void *user, const peridot_kernel_check *check)
{
    struct found *f = user;
    f->n_checks++;
    if (!check->passed) print_error("%s: %s\n", check->kernel, check->failure);
    if (!check->lacks && check->n_cases == 0) print_error("%s: no case\n", check->kernel);
    f->n_wrong += !check->passed || (!check->lacks && check->n_cases == 0);
    return true;
}

static void test_right(void **state)
{
    (void)state;
    struct found found = {0};
    const struct pd_selftest test = {.only = only, .thorough = !few, .max_pipelines = max_pipelines, .seed = 7,
        .checked = check_right, .user = &found};
    bool wrong[PD_N_KERNELS] = {false};
    if (pd_selftest_run(wrong, gpu, &test) != PERIDOT_OK) fail_msg("%s", pd_error());
    for (int id = 0; id < PD_N_KERNELS; id++) assert_false(wrong[id]);
    assert_int_equal(found.n_wrong, 0);
    if (!only) assert_int_equal(found.n_checks, PD_N_KERNELS);
}

/* ---- wrong ---- */

/* Where subgroups are larger than what a column of a recurrence is shared out to, shared memory has its sums, and a
 * workgroup many columns: no device here has such, and none is needed. */
static void test_recurrences_of_gpus(void **state)
{
    (void)state;
    const peridot_device_info own = gpu->info;
    bool wrong[PD_N_KERNELS] = {false};
    struct found found = {0};
    if (only && strncmp("delta", only, strlen(only)) != 0) skip();
    const struct pd_selftest test = {.only = "delta", .thorough = true, .max_pipelines = max_pipelines, .seed = 7,
        .checked = check_right, .user = &found};
    gpu->info.type = PERIDOT_DEVICE_DISCRETE;
    gpu->info.subgroup_size = 32;
    gpu->info.subgroup_size_control = false;
    peridot_status status = pd_selftest_run(wrong, gpu, &test);
    gpu->info = own;
    if (status != PERIDOT_OK) fail_msg("%s", pd_error());
    assert_int_equal(found.n_checks, 2);
    assert_int_equal(found.n_wrong, 0);
}

static bool check_wrong(void *user, const peridot_kernel_check *check)
{
    const char **part = user;
    bool noticed = !check->passed && strstr(check->failure, *part);
    if (!noticed) print_error("%s: \"%s\" has no \"%s\"\n", check->kernel, check->failure, *part);
    if (!noticed) *part = NULL;
    return noticed;
}

/* Of products and attention, which take long to compile. */
static uint32_t one_pipeline(enum pd_kernel_id id)
{
    const char *name = pd_kernel_name(id);
    return strncmp(name, "mat", 3) == 0 || strncmp(name, "attention_", 10) == 0;
}

static void check_damage(void (*damage)(struct pd_trial *t, void *user), const char *const *kernels, size_t n,
                         const char *part)
{
    for (size_t i = 0; i < n; i++) {
        const char *said = part;
        const struct pd_selftest test = {.only = kernels[i], .max_pipelines = one_pipeline, .n_workers = 1, .seed = 7,
            .checked = check_wrong, .user = &said, .after_run = damage};
        bool wrong[PD_N_KERNELS] = {false};
        uint32_t n_wrong = 0, n_named = 0;   /* rope_q8_0 is also how rope_q8_0_q4_1 begins */
        if (pd_selftest_run(wrong, gpu, &test) != PERIDOT_OK) fail_msg("%s: %s", kernels[i], pd_error());
        for (int id = 0; id < PD_N_KERNELS; id++) {
            n_wrong += wrong[id];
            n_named += strncmp(pd_kernel_name((enum pd_kernel_id)id), kernels[i], strlen(kernels[i])) == 0;
        }
        assert_non_null(said);
        assert_int_equal(n_wrong, n_named);
    }
}

static void test_damage(void **state)
{
    (void)state;
    if (few || only) skip();
    static const char *const kernels[] = {
        "embed_q4_k", "matvec_q8_0", "matvec_dot_q4_1", "matmul_f16", "matmul_half_q8_0", "matmul_dot_q4_k",
        "matmul_reduce", "pack_f16", "pack_half", "pack_q8", "pack_q16", "rmsnorm", "rope_f16",
        "rope_f32", "rope_q8_0", "rope_q5_1", "rope_q4_1", "attention_f32", "attention_half_f16",
        "attention_reduce", "glu", "lora", "layernorm", "pool", "clamp", "topk", "sample", "measure"};
    check_damage(damage_numbers, kernels, PD_COUNT(kernels), "is ");
    check_damage(damage_nothing, kernels, PD_COUNT(kernels), "is ");
    check_damage(damage_guard, kernels, PD_COUNT(kernels), "was written, and should not be");
    /* topk and attention also write scratch, which nobody compares */
    static const char *const single[] = {"embed_f32", "matvec_q6_k", "matmul_q8_0", "matmul_dot_q5_1",
        "pack_f16", "pack_q8", "pack_q16", "rmsnorm", "rope_f32", "attention_reduce", "glu",
        "layernorm", "pool", "clamp", "lora", "sample", "measure"};
    check_damage(damage_one, single, PD_COUNT(single), "is ");
}

/* ---- tolerances ---- */

/* The other GELU, which Gemma does not use. */
static double gelu_erf(double x) { return 0.5 * x * (1 + erf(x / sqrt(2))); }

/* The tolerance of glu tells the two apart. */
static void test_gelus_differ(void **state)
{
    (void)state;
    enum { N = 1000 };
    float x[2 * N], y[N];
    struct pd_random random;
    uint32_t n_apart = 0;
    pd_random_seed(&random, 7, 0);
    for (int i = 0; i < 2 * N; i++) x[i] = pd_random_uniform(&random) * 6;
    pd_reference_glu(y, x, N, 1, PD_GELU);
    for (int i = 0; i < N; i++) {
        double gate = (double)x[i], up = (double)x[N + i];
        n_apart += fabs(gelu_erf(gate) * up - (double)y[i]) > 20e-6 * fabs(gate * up);
    }
    assert_true(n_apart > N / 8);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right), cmocka_unit_test(test_recurrences_of_gpus),
        cmocka_unit_test(test_damage), cmocka_unit_test(test_gelus_differ),
    };
    if (argc > 1) only = argv[1];
    return cmocka_run_group_tests_name("kernels", tests, open_gpu, close_gpu);
}

/* Every kernel against the CPU reference, by the self-test in the library with all its cases; and that the self-test
 * notices what a broken kernel would do. With PERIDOT_TEST_FEW, for devices that compile slowly: the few cases that the
 * command runs. With an argument only the tests that match it are run: test_attention*. */
#include "damage.h"
#include "selftest/selftest.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct pd_gpu *gpu;
static bool tried[PD_N_KERNELS], few;

static int open_gpu(void **state)
{
    (void)state;
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

static bool check_right(void *user, const peridot_kernel_check *check)
{
    (void)user;
    if (!check->passed) fail_msg("%s: %s", check->kernel, check->failure);
    for (int id = 0; id < PD_N_KERNELS; id++) {
        if (strcmp(pd_kernel_name((enum pd_kernel_id)id), check->kernel) != 0) continue;
        uint32_t least = few ? 0 : pd_selftest_is_like_another((enum pd_kernel_id)id) ? 6 : 9;
        if (!check->lacks && check->n_cases < least) fail_msg("%s: only %u cases", check->kernel, check->n_cases);
        tried[id] = true;
    }
    return true;
}

static void check_kernels(const char *only)
{
    const struct pd_selftest test = {.only = only, .thorough = !few, .seed = 7, .checked = check_right};
    bool wrong[PD_N_KERNELS] = {false};
    if (pd_selftest_run(wrong, gpu, &test) != PERIDOT_OK) fail_msg("%s: %s", only, pd_error());
    for (int id = 0; id < PD_N_KERNELS; id++) assert_false(wrong[id]);
}

static void test_embed(void **state) { (void)state; check_kernels("embed"); }
static void test_matvec(void **state) { (void)state; check_kernels("matvec"); }
static void test_matmul(void **state) { (void)state; check_kernels("matmul"); }
static void test_pack(void **state) { (void)state; check_kernels("pack"); }
static void test_rmsnorm(void **state) { (void)state; check_kernels("rmsnorm"); }
static void test_rope(void **state) { (void)state; check_kernels("rope"); }
static void test_lora(void **state) { (void)state; check_kernels("lora"); }
static void test_route(void **state) { (void)state; check_kernels("route"); }
static void test_combine(void **state) { (void)state; check_kernels("combine"); }
static void test_attention(void **state) { (void)state; check_kernels("attention"); }
static void test_attention_reduce(void **state) { (void)state; check_kernels("attention_reduce"); }
static void test_glu(void **state) { (void)state; check_kernels("glu"); }
static void test_layernorm(void **state) { (void)state; check_kernels("layernorm"); }
static void test_pool(void **state) { (void)state; check_kernels("pool"); }
static void test_clamp(void **state) { (void)state; check_kernels("clamp"); }
static void test_squares(void **state) { (void)state; check_kernels("squares"); }
static void test_topk(void **state) { (void)state; check_kernels("topk"); }
static void test_sample(void **state) { (void)state; check_kernels("sample"); }
static void test_measure(void **state) { (void)state; check_kernels("measure"); }
static void test_rate(void **state) { (void)state; check_kernels("rate"); }

static void test_coverage(void **state)
{
    (void)state;
    for (int id = 0; id < PD_N_KERNELS; id++)
        if (!tried[id]) fail_msg("kernel %s has no test: add it here", pd_kernel_name((enum pd_kernel_id)id));
}

/* ---- wrong ---- */

static bool check_wrong(void *user, const peridot_kernel_check *check)
{
    const char *part = user;
    if (check->passed) fail_msg("%s: passed, broken as it is", check->kernel);
    if (!strstr(check->failure, part)) fail_msg("%s: \"%s\" has no \"%s\"", check->kernel, check->failure, part);
    return true;
}

static void check_damage(void (*damage)(struct pd_trial *t, void *user), const char *const *kernels, size_t n,
                         const char *part)
{
    for (size_t i = 0; i < n; i++) {
        struct pd_selftest test = {.only = kernels[i], .seed = 7, .checked = check_wrong, .user = NULL,
            .after_run = damage};
        bool wrong[PD_N_KERNELS] = {false};
        uint32_t n_wrong = 0;
        test.user = (void *)(uintptr_t)part;
        if (pd_selftest_run(wrong, gpu, &test) != PERIDOT_OK) fail_msg("%s: %s", kernels[i], pd_error());
        for (int id = 0; id < PD_N_KERNELS; id++) n_wrong += wrong[id];
        assert_int_equal(n_wrong, 1);
    }
}

static void test_damage(void **state)
{
    (void)state;
    if (few) skip();
    static const char *const kernels[] = {
        "embed_q4_k", "matvec_q8_0", "matvec_dot_q4_1", "matmul_f16", "matmul_half_q8_0", "matmul_dot_q4_k",
        "matmul_dot8_q4_0", "matmul_reduce", "pack_f16", "pack_half", "pack_q16", "pack_q8", "rmsnorm", "rope_f16",
        "rope_f32", "rope_q8_0", "attention_f32", "attention_half_f16", "attention_reduce", "glu", "lora", "layernorm",
        "pool", "clamp", "topk", "sample", "measure"};
    check_damage(damage_numbers, kernels, PD_COUNT(kernels), "is ");
    check_damage(damage_nothing, kernels, PD_COUNT(kernels), "is ");
    check_damage(damage_guard, kernels, PD_COUNT(kernels), "was written, and should not be");
    /* topk and attention also write scratch, which nobody compares */
    static const char *const single[] = {"embed_f32", "matvec_q6_k", "matmul_q8_0", "matmul_dot_q5_1",
        "matmul_dot8_q6_k", "pack_f16", "pack_q16", "pack_q8", "rmsnorm", "rope_f32", "attention_reduce", "glu",
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
        cmocka_unit_test(test_embed), cmocka_unit_test(test_matvec), cmocka_unit_test(test_matmul),
        cmocka_unit_test(test_lora), cmocka_unit_test(test_route), cmocka_unit_test(test_combine),
        cmocka_unit_test(test_pack),
        cmocka_unit_test(test_rmsnorm),
        cmocka_unit_test(test_rope), cmocka_unit_test(test_attention), cmocka_unit_test(test_attention_reduce),
        cmocka_unit_test(test_glu),
        cmocka_unit_test(test_layernorm), cmocka_unit_test(test_pool), cmocka_unit_test(test_clamp),
        cmocka_unit_test(test_squares),
        cmocka_unit_test(test_topk), cmocka_unit_test(test_sample), cmocka_unit_test(test_measure),
        cmocka_unit_test(test_rate),
        cmocka_unit_test(test_coverage),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_gelus_differ),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("kernels", tests, open_gpu, close_gpu);
}

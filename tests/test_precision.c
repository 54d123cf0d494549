/* What precision makes of the variants of kernels that a device takes, and whether the table of tests/reports has a
 * measurement of each variant that is a default, and a good one. */
#include "format_fixture.h"
#include "format/format.h"
#include "ops/ops.h"
#include "peridot_tools.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Nats, on a trained model, of what devices take by default; and where activations have 8 bits, as weights are coarse:
 * the best of those cost 15 times as much themselves (tests/reports/quality.txt). */
#define KL_MOST 1e-4
#define COARSE_KL_MOST 1e-3

/* One with every feature that peridot_device_info has, and large limits. */
static peridot_device_info able_device(peridot_device_type type)
{
    peridot_device_info device;
    memset(&device, 1, sizeof device);
    device.type = type;
    device.name[0] = 0;
    device.subgroup_size = device.min_subgroup_size = device.max_subgroup_size = device.matrix_subgroup_size = 32;
    device.matrix_m = device.matrix_n = device.matrix_k = 16;
    return device;
}

static peridot_variant variant_at(const peridot_device_info *device, enum pd_variant v)
{
    peridot_variant out;
    assert_true(pd_variants_at(&out, device, v));
    return out;
}

static bool is_attention(const peridot_variant *v) { return strcmp(v->operation, "attention") == 0; }

static void name_of(char out[64], const peridot_variant *v) { snprintf(out, 64, "%s=%s", v->operation, v->name); }

/* Whatever a device can do or cannot. */
static void test_exact(void **state)
{
    (void)state;
    static const peridot_device_type types[] = {PERIDOT_DEVICE_DISCRETE, PERIDOT_DEVICE_INTEGRATED,
                                                PERIDOT_DEVICE_CPU};
    for (size_t i = 0; i < PD_COUNT(types) * 2; i++) {
        const peridot_device_info able = able_device(types[i / 2]), bare = {.type = types[i / 2]};
        const peridot_device_info *device = i % 2 ? &able : &bare;
        struct pd_variants variants;
        EXPECT_OK(pd_variants_choose(&variants, device, PERIDOT_PRECISION_EXACT, NULL, 0));
        assert_true(variants.exact);
        for (int o = 0; o < PD_N_VARIED; o++) assert_true(variant_at(device, variants.of[o]).exact);
        pd_variants_make_batch_invariant(&variants);
        for (int o = 0; o < PD_N_VARIED; o++) assert_true(variant_at(device, variants.of[o]).exact);
    }
}

/* On a GPU that has them, what rounds is taken by default. */
static void test_default(void **state)
{
    (void)state;
    const peridot_device_info device = able_device(PERIDOT_DEVICE_DISCRETE);
    struct pd_variants variants, defaults = pd_variants_default(&device);
    EXPECT_OK(pd_variants_choose(&variants, &device, PERIDOT_PRECISION_DEFAULT, NULL, 0));
    assert_memory_equal(variants.of, defaults.of, sizeof defaults.of);
    assert_false(variants.exact);
    assert_false(variant_at(&device, variants.of[PD_VARIED_MATMUL]).exact);
    assert_false(variant_at(&device, variants.of[PD_VARIED_MATVEC]).exact);
    EXPECT_FAILURE(pd_variants_choose(&variants, &device, (peridot_precision)2, NULL, 0), PERIDOT_ERROR_ARGUMENT,
                   "precision 2");
}

static void test_forced(void **state)
{
    (void)state;
    const peridot_device_info device = able_device(PERIDOT_DEVICE_DISCRETE);
    for (int i = 0; i < PD_N_VARIANTS; i++) {
        const peridot_variant v = variant_at(&device, (enum pd_variant)i);
        struct pd_variants variants;
        char name[64];
        const char *list = name;
        name_of(name, &v);
        if (!v.available) continue;   /* this build cannot compile it */
        EXPECT_OK(pd_variants_choose(&variants, &device, PERIDOT_PRECISION_DEFAULT, &list, 1));
        if (v.exact) EXPECT_OK(pd_variants_choose(&variants, &device, PERIDOT_PRECISION_EXACT, &list, 1));
        else
            EXPECT_FAILURE(pd_variants_choose(&variants, &device, PERIDOT_PRECISION_EXACT, &list, 1),
                           PERIDOT_ERROR_ARGUMENT, name, "contradicts precision exact");
    }
}

/* ---- the table ---- */

static struct row {
    char variant[64], model[64], type[16];
    double mean_kl;
} rows[4096];
static size_t n_rows;

static int read_rows(void **state)
{
    (void)state;
    char line[512];
    FILE *file = fopen(PERIDOT_MODELS "/../tests/reports/precision.txt", "r");
    while (file && n_rows < PD_COUNT(rows) && fgets(line, sizeof line, file)) {
        struct row *r = &rows[n_rows];
        n_rows += sscanf(line, "%63s %63s %15s %*s %*s %lf", r->variant, r->model, r->type, &r->mean_kl) == 4;
    }
    if (file) fclose(file);
    return n_rows ? 0 : -1;
}

static void check_row(const char *variant, const char *model, const char *type)
{
    for (size_t i = 0; i < n_rows; i++)
        if (strcmp(rows[i].variant, variant) == 0 && strcmp(rows[i].model, model) == 0
            && strcmp(rows[i].type, type) == 0)
            return;
    fail_msg("%s is a default without a measurement on %s, %s: run tools/precision.py %s", variant, model, type,
             variant);
}

static void check_trained(const char *variant)
{
    for (size_t i = 0; i < n_rows; i++) {
        const struct row *r = &rows[i];
        bool trained = strcmp(r->model, "demo") == 0 || strcmp(r->model, "stories260K") == 0;
        bool coarse = strcmp(variant, "matmul=dot") == 0 && strchr("45", r->type[1]);
        if (strcmp(r->variant, variant) == 0 && trained && !(r->mean_kl <= (coarse ? COARSE_KL_MOST : KL_MOST)))
            fail_msg("%s is a default, and its KL on %s, %s, is %g", variant, r->model, r->type, r->mean_kl);
    }
}

/* There must be rows of the demo in all types that it is measured in and that a variant has a kernel for, and of a
 * trained model of another family. */
static void test_measured(void **state)
{
    (void)state;
    static const char *const caches[PD_N_KV_TYPES] = {[PERIDOT_KV_F16] = "f16", [PERIDOT_KV_F32] = "f32",
                                                      [PERIDOT_KV_Q8_0] = "q8_0",
        [PERIDOT_KV_Q8_0_Q4_1] = "q8_0/q4_1", [PERIDOT_KV_Q5_1] = "q5_1", [PERIDOT_KV_Q4_1] = "q4_1"};
    static const enum pd_dtype types[] = {PD_F32, PD_F16, PD_BF16, PD_Q8_0, PD_Q4_0, PD_Q4_1, PD_Q5_0, PD_Q5_1, PD_Q4_K,
                                          PD_Q5_K, PD_Q6_K};   /* TRAINED in tools/precision.py */
    const peridot_device_info device = able_device(PERIDOT_DEVICE_DISCRETE);
    for (int i = 0; i < PD_N_VARIANTS; i++) {
        const peridot_variant v = variant_at(&device, (enum pd_variant)i);
        bool attention = is_attention(&v);
        char name[64];
        name_of(name, &v);
        for (int type = 0; attention && type < PD_N_KV_TYPES; type++) check_row(name, "demo", caches[type]);
        for (size_t t = 0; !attention && t < PD_COUNT(types); t++)
            if (pd_variant_kernel((enum pd_variant)i, types[t]) != PD_N_KERNELS)
                check_row(name, "demo", pd_dtypes[types[t]].name);
        check_row(name, "stories260K", "q8_0");
        check_trained(name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_default),
        cmocka_unit_test(test_forced),
        cmocka_unit_test_setup(test_measured, read_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

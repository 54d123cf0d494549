/* What precision makes of the variants of kernels that a device takes. */
#include "format_fixture.h"
#include "ops/ops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_default),
        cmocka_unit_test(test_forced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

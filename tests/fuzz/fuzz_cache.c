/* Files of the cache folder that say something of kernels: what a self-test found, and tunings. */
#include "harness.h"

#include "ops/ops.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const peridot_device_info device = {.cache_key = "0123456789abcdef", .type = PERIDOT_DEVICE_INTEGRATED,
        .subgroup_size = 32, .min_subgroup_size = 16, .max_subgroup_size = 32, .max_workgroup_invocations = 1024};
    bool wrong[PD_N_KERNELS];
    struct pd_tunings tunings;
    fuzz_file("wrong-0123456789abcdef.txt", data, size);
    pd_verdict_read(wrong, &device, fuzz_folder());
    fuzz_file("tune-0123456789abcdef.txt", data, size);
    pd_tunings_read(&tunings, &device, fuzz_folder());
    for (int id = 0; id < PD_N_KERNELS; id++)
        for (int use = 0; use < PD_N_USES; use++) {
            struct pd_tuning t = tunings.of[id][use];
            FUZZ_CHECK(!t.rows || pd_tuning_fits(t, (enum pd_kernel_id)id, (enum pd_use)use));
            FUZZ_CHECK(t.rows <= 8 && t.workgroup <= 256 && t.subgroup <= 64 && t.width <= 2);
        }
    return 0;
}

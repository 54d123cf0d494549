/* The devices of peridot.h, and what peridot_tools.h says of their kernels. */
#include "ops/variants.h"
#include "selftest/selftest.h"

peridot_status peridot_devices(peridot_device_info **out, size_t *n) { return pd_gpu_list(out, n); }

bool peridot_device_variant(peridot_variant *out, const peridot_device_info *device, size_t i) { return pd_variants_at(out, device, i); }

peridot_verdict peridot_device_verdict(const peridot_device_info *device, const char *cache_dir)
{
    peridot_verdict verdict;
    bool wrong[PD_N_KERNELS];
    pd_verdict_read(wrong, device, cache_dir);
    pd_verdict_text(&verdict, wrong);
    return verdict;
}

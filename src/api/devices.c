/* The devices of peridot.h, and what peridot_tools.h says of their kernels. */
#include "base/num.h"
#include "ops/variants.h"
#include "selftest/selftest.h"

#include <stdlib.h>
#include <string.h>

/* One block: pointers, the last of them NULL, then what they point to. */
peridot_status peridot_devices(const peridot_device_info ***out, size_t *n)
{
    peridot_device_info *list;
    *out = NULL;
    PD_TRY(pd_gpu_list(&list, n));
    size_t offset = (size_t)pd_align((*n + 1) * sizeof **out, _Alignof(peridot_device_info)),
        size = offset + *n * sizeof *list;
    char *block = calloc(1, size);
    for (size_t i = 0; block && i < *n; i++) {
        void *copy = block + offset + i * sizeof *list;
        ((const peridot_device_info **)block)[i] = memcpy(copy, &list[i], sizeof *list);
    }
    free(list);
    *out = (const peridot_device_info **)block;
    return block ? PERIDOT_OK : pd_fail_alloc(size, "list of devices");
}

peridot_status peridot_device_find(peridot_device_info **out, const char *device)
{
    peridot_device_info *list;
    uint32_t index;
    char reason[256];
    size_t n;
    *out = NULL;
    PD_TRY(pd_gpu_list(&list, &n));
    peridot_status status = pd_gpu_choose(&index, reason, list, (uint32_t)n, device);
    if (status == PERIDOT_OK) *out = memmove(list, &list[index], sizeof *list);
    else free(list);
    return status;
}

bool peridot_device_variant(peridot_variant *out, const peridot_device_info *device, size_t i)
{
    return pd_variants_at(out, device, i);
}

peridot_verdict peridot_device_verdict(const peridot_device_info *device, const char *cache_dir)
{
    peridot_verdict verdict;
    bool wrong[PD_N_KERNELS];
    pd_verdict_read(wrong, device, cache_dir);
    pd_verdict_text(&verdict, wrong);
    return verdict;
}

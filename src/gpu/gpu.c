/* Opening and closing a device with all that belongs to it: what is compiled, cached and remembered of it. */
#include "gpu/vk.h"

#include <stdlib.h>

static peridot_status open_gpu(struct pd_gpu **out, const char *selector, const char *cache_dir, bool statistics)
{
    *out = NULL;
    struct pd_gpu *gpu = calloc(1, sizeof *gpu);
    if (!gpu) return pd_fail_alloc(sizeof *gpu, "device");
    gpu->statistics = statistics;
    gpu->frozen = PD_N_KERNELS;
    peridot_status status = pd_device_open(gpu, selector);
    if (status == PERIDOT_OK && !statistics) {
        pd_verdict_read(gpu->wrong, &gpu->info, cache_dir);
        status = pd_pipeline_cache_open(gpu, cache_dir);
    }
    if (status != PERIDOT_OK) {
        pd_gpu_close(gpu);
        return status;
    }
    *out = gpu;
    return PERIDOT_OK;
}

peridot_status pd_gpu_open(struct pd_gpu **out, const char *selector, const char *cache_dir)
{
    return open_gpu(out, selector, cache_dir, false);
}

peridot_status pd_gpu_open_compiler(struct pd_gpu **out, const char *selector)
{
    return open_gpu(out, selector, NULL, true);
}

void pd_gpu_close(struct pd_gpu *gpu)
{
    if (!gpu) return;
    if (gpu->device) {
        /* nothing was submitted without a timeline, and what hangs may never be idle */
        if (gpu->timeline && !gpu->hangs) gpu->vk.vkDeviceWaitIdle(gpu->device);
        pd_staging_free(gpu);
        pd_pipeline_cache_close(gpu);
        pd_kernels_free(gpu);
    }
    pd_device_close(gpu);
    free(gpu);
}

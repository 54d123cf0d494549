/* Opening and closing a device with all that belongs to it: what is compiled, cached and remembered of it. The verdict
 * of the last self-test is read at every opening: a kernel that a driver gets wrong is not used again by itself until
 * either changes. */
#include "base/base.h"
#include "gpu/gpu.h"
#include "gpu/gpu_.h"
#include "kernels_spirv.h"

#include <stdlib.h>
#include <string.h>

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

/* ---- source ---- */

/* The kernels of shaders/kernels.def as they were compiled into the library: SPIR-V, and what it needs of a device. */

const struct pd_kernel_source pd_kernel_sources[PD_N_KERNELS] = {
#define PD_KERNEL(name, source, defines, push, needs) \
    {#name, pd_spirv_##name, sizeof pd_spirv_##name, sizeof(struct push), PD_NEEDS_##needs},
#include "kernels.def"
};

/* 128 bytes of push constants is what every device has. */
#define PD_KERNEL(name, source, defines, push, needs) \
    _Static_assert(sizeof(struct push) <= 128, #name ": too many push constants");
#include "kernels.def"

const char *pd_kernel_name(enum pd_kernel_id id) { return pd_kernel_sources[id].name; }

const char *pd_kernel_lacks(const peridot_device_info *device, enum pd_kernel_id id)
{
    const struct pd_kernel_source *s = &pd_kernel_sources[id];
    if (s->code_size == sizeof(uint32_t))   /* see kernels.cmake */
        return "a glslang that can compile it, when peridot was built";
    if (s->needs == PD_NEEDS_wide
        && !(device->int64_arithmetic && device->byte_storage && device->subgroup_ballot
             && device->subgroup_size_control && device->subgroup_size <= 32))
        return "64-bit integers, bytes in buffers, or subgroups of a known size of at most 32 with ballots";
    if (s->needs == PD_NEEDS_half && !device->fp16_arithmetic) return "fp16 arithmetic";
    if (s->needs == PD_NEEDS_dot && !device->integer_dot) return "integer dot products";
    if (s->needs == PD_NEEDS_coop && !device->cooperative_matrix) return "cooperative matrices of fp16 with fp32 sums";
    return NULL;
}

uint64_t pd_kernel_hash(enum pd_kernel_id id)
{
    return pd_hash(0, pd_kernel_sources[id].code, pd_kernel_sources[id].code_size);
}

/* ---- verdict ---- */

/* What the last self-test on a device and driver found: the kernels that give wrong answers there. The worst that a
 * forged line can do is that a slower kernel is taken. */

static const struct pd_notes notes = {"wrong", "peridot: kernels that a self-test found wrong"};

static bool take_note(void *user, const struct pd_note *note)
{
    bool *wrong = user;
    wrong[note->id] = true;
    return !note->text[0];
}

void pd_verdict_read(bool wrong[PD_N_KERNELS], const peridot_device_info *device, const char *directory)
{
    memset(wrong, 0, sizeof *wrong * PD_N_KERNELS);
    if (!pd_notes_read(&notes, device, directory, take_note, wrong)) memset(wrong, 0, sizeof *wrong * PD_N_KERNELS);
}

peridot_status pd_verdict_set(struct pd_gpu *gpu, const char *directory, const bool wrong[PD_N_KERNELS])
{
    struct pd_note list[PD_N_KERNELS];
    size_t n = 0;
    memcpy(gpu->wrong, wrong, sizeof gpu->wrong);
    for (int id = 0; id < PD_N_KERNELS; id++)
        if (wrong[id]) list[n++] = (struct pd_note){.id = (enum pd_kernel_id)id};
    if (!directory) return PERIDOT_OK;
    return n ? pd_notes_write(&notes, &gpu->info, directory, list, n) : pd_notes_remove(&notes, &gpu->info, directory);
}

bool pd_kernel_is_wrong(const struct pd_gpu *gpu, enum pd_kernel_id id) { return gpu->wrong[id]; }

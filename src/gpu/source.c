/* The kernels of shaders/kernels.def as they were compiled into the library: SPIR-V, and what it needs of a device. */
#include "gpu/vk.h"

#include "base/num.h"
#include "kernels_spirv.h"

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

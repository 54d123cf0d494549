#include "ops/kernels.h"

#include "ops/layout.h"

/* Ids plus 1, so that 0 is none. */
static const uint16_t ids[PD_N_KERNEL_KINDS][PD_N_DTYPES] = {
#define PD_KERNEL(name, source, defines, push, needs) [PD_KERNELS_##name][0] = 1 + PD_KERNEL_##name,
#define PD_TYPED(name, source, types, defines, push, needs) types(PD_OF_TYPE, name)
#define PD_OF_TYPE(type, enumerator, name) [PD_KERNELS_##name][enumerator] = 1 + PD_KERNEL_##name##_##type,
#include "kernels.def"
};

static const struct place {
    uint16_t kind, type;
} places[PD_N_KERNELS] = {
#define PD_KERNEL(name, source, defines, push, needs) [PD_KERNEL_##name] = {PD_KERNELS_##name, 0},
#define PD_TYPED(name, source, types, defines, push, needs) types(PD_OF_TYPE, name)
#define PD_OF_TYPE(type, enumerator, name) [PD_KERNEL_##name##_##type] = {PD_KERNELS_##name, enumerator},
#include "kernels.def"
};

/* But for TQ1_0 and TQ2_0: see pd_device_dtype. */
#define COUNT(type, enumerator, name) +1
_Static_assert(PD_WEIGHTS(COUNT, ) + 2 == PD_N_DTYPES, "kernels.def does not list every weight type");

enum pd_kernel_id pd_kernel_of(enum pd_kernel_kind kind, uint32_t type)
{
    uint32_t id = ids[kind][pd_device_dtype((enum pd_dtype)type)];   /* types of caches are their own */
    return id ? (enum pd_kernel_id)(id - 1) : PD_N_KERNELS;
}

enum pd_kernel_kind pd_kernel_kind_of(enum pd_kernel_id id) { return (enum pd_kernel_kind)places[id].kind; }
uint32_t pd_kernel_type_of(enum pd_kernel_id id) { return places[id].type; }

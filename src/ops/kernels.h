/* The rows of kernels.def: kinds of kernels, and which of its kernels a kind has for a type of weights or of the
 * cache. */
#ifndef PD_OPS_KERNELS_H
#define PD_OPS_KERNELS_H

#include "gpu/gpu.h"

enum pd_kernel_kind {
#define PD_KERNEL(name, source, defines, push, needs) PD_KERNELS_##name,
#define PD_TYPED(name, source, types, defines, push, needs) PD_KERNELS_##name,
#include "kernels.def"
    PD_N_KERNEL_KINDS
};

/* type: an enum pd_dtype or a peridot_kv_type, whichever the row lists; 0 for a row without types. PD_N_KERNELS: the
 * kind has no kernel for it. */
enum pd_kernel_id pd_kernel_of(enum pd_kernel_kind kind, uint32_t type);
/* And back. */
enum pd_kernel_kind pd_kernel_kind_of(enum pd_kernel_id id);
uint32_t pd_kernel_type_of(enum pd_kernel_id id);

#endif

/* Operations that more than one kernel can do. The table in variants.c is the one list of an operation's variants:
 * their kernels, and which of them a device takes by default. */
#ifndef PD_OPS_VARIANTS_H
#define PD_OPS_VARIANTS_H

#include "gpu/gpu.h"
#include "ops/layout.h"
#include "ops/tuning.h"

enum pd_varied { PD_VARIED_MATMUL, PD_VARIED_MATVEC, PD_VARIED_ATTENTION, PD_N_VARIED };

/* Rows of the table. */
enum pd_variant {
    PD_VARIANT_MATMUL_COOP, PD_VARIANT_MATMUL_DOT, PD_VARIANT_MATMUL_HALF, PD_VARIANT_MATMUL_TILE,
    PD_VARIANT_MATMUL_MATVEC,
    PD_VARIANT_MATVEC_ROWS, PD_VARIANT_MATVEC_DOT, PD_VARIANT_MATVEC_COLUMNS,
    PD_VARIANT_ATTENTION_ROWS, PD_VARIANT_ATTENTION_HALF, PD_VARIANT_ATTENTION_TILE, PD_VARIANT_ATTENTION_COLUMNS,
    PD_N_VARIANTS
};

/* What a model takes for each operation. forced: the user named it, and it is taken for few tokens as well. */
struct pd_variants {
    enum pd_variant of[PD_N_VARIED];
    bool forced[PD_N_VARIED];
    bool exact;                         /* only exact ones: see peridot_precision */
    bool batch_invariant;               /* see pd_variants_make_batch_invariant */
    const struct pd_tunings *tunings;   /* of matvec; NULL: none was measured */
};

/* The defaults of the device. */
struct pd_variants pd_variants_default(const peridot_device_info *device);
/* The device's best of that precision, but for what `list` names: n texts such as "matmul=tile". */
peridot_status pd_variants_choose(struct pd_variants *out, const peridot_device_info *device,
                                  peridot_precision precision, const char *const *list, size_t n);
/* Takes what gives a row of a decode step the same bits whatever other rows there are, unless the user named another:
 * matvec=dot is for one row only, and tuned sizes of subgroups change the order of sums. */
void pd_variants_make_batch_invariant(struct pd_variants *variants);
/* Takes v as if the user had named it. */
void pd_variants_force(struct pd_variants *variants, enum pd_variant v);
/* How rows of n weights lie on a device: as suits the kernels that it takes by default. All others read them, too. */
struct pd_row_layout pd_row_layout_of(const peridot_device_info *device, enum pd_dtype dtype, uint32_t n);
/* Its kernel for a type (an enum pd_dtype of weights or a peridot_kv_type of the cache); PD_N_KERNELS: it has none. */
enum pd_kernel_id pd_variant_kernel(enum pd_variant v, uint32_t type);
/* v where it has a kernel for the type, else the first of its fallbacks that has. */
enum pd_variant pd_variant_for_type(enum pd_variant v, uint32_t type);
/* The kernel that packs activations as its kernels read them; PD_N_KERNELS: they read them as they are. */
enum pd_kernel_id pd_variant_pack(enum pd_variant v);
/* The first of v and its fallbacks that has a kernel for the type which no self-test has disabled; v if there is
 * none. An exact variant falls back to exact ones alone. */
enum pd_variant pd_variant_working(const struct pd_gpu *gpu, enum pd_variant v, uint32_t type);
/* Whether another kernel is taken where this one is wrong. */
bool pd_kernel_has_fallback(enum pd_kernel_id id);
/* "matmul=tile, matvec=columns" */
void pd_variants_text(char *out, size_t size, const struct pd_variants *variants);
/* Whether the device and this build can run it. */
bool pd_variant_available(const peridot_device_info *device, enum pd_variant v);
/* See peridot_device_variant. */
bool pd_variants_at(peridot_variant *out, const peridot_device_info *device, size_t i);

#endif

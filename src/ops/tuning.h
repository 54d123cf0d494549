/* Tunings of the matvec kernels in a decode step. Defaults are a short table by kind of device; a search (probe/tune.c)
 * measures better ones, which the cache folder keeps for each device and driver. Results differ by rounding only. */
#ifndef PD_OPS_TUNING_H
#define PD_OPS_TUNING_H

#include "format/dtype.h"
#include "gpu/gpu.h"

/* How a decode step uses a matrix: the product alone; with the norm before it; with the norm and the gated unit. */
enum pd_use { PD_USE_PLAIN, PD_USE_NORMED, PD_USE_GATED, PD_N_USES };

struct pd_tuning {
    /* of the matrix that a subgroup (matvec) or a lane (matvec_rows) multiplies at a time; 0: not measured */
    uint32_t rows;
    uint32_t workgroup;   /* invocations */
    uint32_t subgroup;    /* its size; 0: the driver chooses */
    uint32_t width;       /* units of a row (weights.glsl) that a lane of matvec loads at a time */
};

struct pd_tunings {
    struct pd_tuning of[PD_N_KERNELS][PD_N_USES];   /* all zeros for kernels that are not tuned */
};

/* Whether it is of matvec, matvec_rows or matvec_dot. */
bool pd_is_tuned(enum pd_kernel_id id);
/* From the table: for matrices of many rows. */
struct pd_tuning pd_tuning_default(const peridot_device_info *device, enum pd_kernel_id id, enum pd_use use);
/* The search's range: tuning i of it, false past the last. pd_tuning_fits: whether a kernel can have it in a use. */
#define PD_MAX_TUNINGS 104   /* that there can be */
bool pd_tuning_at(struct pd_tuning *out, const peridot_device_info *device, uint32_t i);
bool pd_tuning_fits(struct pd_tuning tuning, enum pd_kernel_id id, enum pd_use use);
/* For a matrix of n_rows rows: what was measured, else the default, with fewer rows at a time where a GPU would have
 * too few subgroups. tunings may be NULL. */
struct pd_tuning pd_tuning_get(const struct pd_tunings *tunings, const peridot_device_info *device,
                               enum pd_kernel_id id, enum pd_use use, uint32_t n_rows);
/* One tuning for all kernels and uses that it fits. */
struct pd_tunings pd_tunings_of(struct pd_tuning tuning);
const char *pd_use_name(enum pd_use use);

/* Reads what cache_dir (NULL: nothing) holds for the device; tunings of kernels that have changed since are skipped. */
void pd_tunings_read(struct pd_tunings *out, const peridot_device_info *device, const char *cache_dir);
/* Writes all that was measured. */
peridot_status pd_tunings_write(const struct pd_tunings *tunings, const peridot_device_info *device,
                                const char *cache_dir);

#endif

/* Every pipeline that models take on a device (peridot_pipelines). */
#ifndef PD_PROBE_PIPELINES_H
#define PD_PROBE_PIPELINES_H

#include "gpu/gpu.h"

/* Compiles them; pd_kernel_next lists them. */
peridot_status pd_pipelines_compile(struct pd_gpu *gpu);
/* Reports what the gpu has compiled, in the order of kernels.def, then the kernels that it has not, until the call
 * says false. */
peridot_status pd_pipelines_report(struct pd_gpu *gpu, peridot_pipeline_call call, void *user);

#endif

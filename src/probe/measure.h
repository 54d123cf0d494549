/* What the device does at best (peridot_measure), and where the time of a pass goes (peridot_session_profile). */
#ifndef PD_PROBE_MEASURE_H
#define PD_PROBE_MEASURE_H

#include "engine/session.h"

peridot_status pd_measure(peridot_rates *out, struct pd_gpu *gpu);
/* Compiles the kernels of pd_measure. */
peridot_status pd_measure_compile(struct pd_gpu *gpu);
peridot_status pd_session_profile(peridot_kernel_time **out, size_t *n, struct pd_session *s,
                                  struct pd_sequence *const *sequences, uint32_t n_sequences, uint32_t n_tokens);

#endif

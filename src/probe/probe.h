/* What a device can do, measured: its bandwidth and rates, the best layouts and variants, and the pipelines that models
 * would take. */
#ifndef PD_PROBE_PROBE_H
#define PD_PROBE_PROBE_H

#include "engine/rounds/rounds.h"
#include "gpu/gpu.h"

/* ---- pipelines ---- */

/* Every pipeline that models take on a device (peridot_pipelines). */

/* Compiles them; pd_kernel_next lists them. */
peridot_status pd_pipelines_compile(struct pd_gpu *gpu);
/* Reports what the gpu has compiled, in the order of kernels.def, then the kernels that it has not, until the call
 * says false. */
peridot_status pd_pipelines_report(struct pd_gpu *gpu, peridot_pipeline_call call, void *user);

/* ---- measure ---- */

peridot_status pd_measure(peridot_rates *out, struct pd_gpu *gpu);
peridot_status pd_measure_reads(peridot_reads *out, struct pd_gpu *gpu);
/* Compiles the kernels of pd_measure. */
peridot_status pd_measure_compile(struct pd_gpu *gpu);
peridot_status pd_session_profile(peridot_kernel_time **out, size_t *n, struct pd_session *s,
                                  struct pd_sequence *const *sequences, uint32_t n_sequences, uint32_t n_tokens);

/* ---- tune ---- */

/* The search for the fastest tunings of matvec on a device: see peridot_tune. */

/* Sets m->tunings, and writes them to p->cache_dir. Sessions that exist keep the tunings that they have. */
peridot_status pd_tune(struct pd_model *m, const peridot_tune_params *p);
/* Whether a search is worth its time: the device can time kernels, is no CPU (for which the default table was
 * measured), and no tuning is known for some weight type of the model. */
bool pd_tune_is_due(const struct pd_model *m);
/* What the model takes: "matvec_rows_q8_0 normed 2x64, ...", "as by default" where that was measured to be best, ""
 * where nothing was. */
void pd_tunings_text(char *out, size_t size, const struct pd_model *m);

#endif

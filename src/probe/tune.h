/* The search for the fastest tunings of matvec on a device: see peridot_tune. */
#ifndef PD_PROBE_TUNE_H
#define PD_PROBE_TUNE_H

#include "engine/session.h"

/* Sets m->tunings, and writes them to p->cache_dir. Sessions that exist keep the tunings that they have. */
peridot_status pd_tune(struct pd_model *m, const peridot_tune_params *p);
/* Whether a search is worth its time: the device can time kernels, is no CPU (for which the default table was
 * measured), and no tuning is known for some weight type of the model. */
bool pd_tune_is_due(const struct pd_model *m);
/* What the model takes: "matvec_rows_q8_0 normed 2x64, ...", "as by default" where that was measured to be best, ""
 * where nothing was. */
void pd_tunings_text(char *out, size_t size, const struct pd_model *m);

#endif

/* The search for what suits matvec on a device: see peridot_tune. */
#ifndef PD_PROBE_TUNE_H
#define PD_PROBE_TUNE_H

#include "engine/session.h"

/* Sets m->tunings, and remembers them in p->cache_dir. Sessions that exist keep what they have. */
peridot_status pd_tune(struct pd_model *m, const peridot_tune_params *p);
/* The table of layouts was not made on such a device, which can time kernels, and nothing is remembered of a type that the
 * model has. */
bool pd_tune_is_due(const struct pd_model *m);
/* What the model takes: "matvec_rows_q8_0 normed 2x64, ...", "as by default" where that was measured to be best, "" where
 * nothing was. */
void pd_tunings_text(char *out, size_t size, const struct pd_model *m);

#endif

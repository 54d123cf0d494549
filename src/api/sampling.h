/* Sampling chains of peridot.h. */
#ifndef PD_API_SAMPLING_H
#define PD_API_SAMPLING_H

#include "api/handles.h"

/* A program's as this library has it; NULL: greedy. Fails where the grammar is for another vocabulary than the
 * model's. */
peridot_status pd_sampling_read(peridot_sampling *out, const peridot_sampling *sampling, const peridot_model *model);

#endif

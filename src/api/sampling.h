/* Sampling chains of peridot.h. */
#ifndef PD_API_SAMPLING_H
#define PD_API_SAMPLING_H

#include "api/handles.h"

/* A program's as this library has it; NULL: greedy. Tokens that the model suppresses have biases of -INFINITY: the
 * biases are then in *bias, to be freed once they were used, which else is NULL. The grammar is that of the tools,
 * where there are any. Fails where it is for another vocabulary than the model's. */
peridot_status pd_sampling_read(peridot_sampling *out, peridot_bias **bias, const peridot_sampling *sampling,
                                const peridot_tools *tools, peridot_model *model);
/* Gives a sequence the chain. */
peridot_status pd_sampling_set(peridot_sequence *sequence, const peridot_sampling *sampling,
                               const peridot_tools *tools);

#endif

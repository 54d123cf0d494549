/* A sequence in a file: its tokens, its keys and values, and the state of its sampler. It goes on in another process,
 * or after its session is gone, as if it had never stopped; with another model, or another type of cache, it is
 * refused. */
#ifndef PD_ENGINE_SAVED_H
#define PD_ENGINE_SAVED_H

#include "engine/model.h"
#include "engine/sequence.h"

/* Replaces the file only when all is written. */
peridot_status pd_sequence_save(const struct pd_sequence *q, const struct pd_model *model, const char *path);
peridot_status pd_sequence_load(struct pd_sequence **out, struct pd_sequence_set *set, const struct pd_model *model,
                                const char *path);

#endif

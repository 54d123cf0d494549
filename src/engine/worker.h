/* The ranks other than 0: each has a session like rank 0's, of its own layers, whose passes rank 0 describes. It knows
 * no sequences: rows of a pass say where they stand, and tables of pages come with them. */
#ifndef PD_ENGINE_WORKER_H
#define PD_ENGINE_WORKER_H

#include "engine/session.h"

/* Compares this rank's version, file and division of layers with those of the other ranks, and adds up their sizes: all
 * ranks call it when their layers are loaded. */
peridot_status pd_ranks_open(struct pd_model *model);
/* Rank 0: ends the others' pd_worker_run. */
void pd_ranks_close(struct pd_model *model);
/* Evaluates for rank 0 until that closes its model. */
peridot_status pd_worker_run(struct pd_model *model);

#endif

/* The ranks that a command runs on: one (one_rank.c), or several under mpirun (mpi/), which is what peridot-mpi is.
 * Rank 0 runs the command, reads and prints; the others do what it asks of them. */
#ifndef PERIDOT_COMMAND_RANKS_H
#define PERIDOT_COMMAND_RANKS_H

#include "open.h"

/* Runs the command on rank 0, and gives the exit status of the process. */
int cmd_ranks_run(int argc, char **argv, int (*command)(int argc, char **argv));
/* Divides the layers of a model that is about to be opened: *link and *device are this rank's, the link NULL where one
 * rank holds all. *device is what `args` says at first. */
peridot_status cmd_ranks_divide(const peridot_link **link, const char **device, const struct cmd_model_args *args);
/* The model is open. */
void cmd_ranks_opened(const peridot_model *model);

#endif

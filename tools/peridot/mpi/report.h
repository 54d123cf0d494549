/* What `bench` says of the ranks: devices, layers, memory, how busy each was, and the links, which this measures. */
#ifndef PERIDOT_MPI_REPORT_H
#define PERIDOT_MPI_REPORT_H

#include "../ranks.h"
#include "transport.h"

/* Rank 0: all ranks' into out[n_ranks], and a table on standard error. */
peridot_status mpi_report(struct cmd_rank *out, struct cmd_rank *own, const struct mpi_place *place);
/* The others. */
peridot_status mpi_report_work(struct cmd_rank *own, const struct mpi_place *place);

#endif

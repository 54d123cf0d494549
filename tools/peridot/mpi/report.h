/* What `bench` says of the ranks, on standard error: devices, layers, memory, how busy each was, and the links. */
#ifndef PERIDOT_MPI_REPORT_H
#define PERIDOT_MPI_REPORT_H

#include "transport.h"

/* Of a rank; sent to rank 0 as it is. */
struct mpi_report {
    char host[64], device[256];
    uint32_t first_layer, n_layers;
    uint64_t memory;           /* bytes on the device at most */
    double busy;
    struct mpi_speed link;     /* to the next rank; the last one has none */
};

/* Rank 0, and the others. */
peridot_status mpi_report(struct mpi_report *own, const struct mpi_place *place);
peridot_status mpi_report_work(struct mpi_report *own, const struct mpi_place *place);

#endif

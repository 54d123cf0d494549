/* Which layers each rank holds: by what its device has free, and how fast it reads. */
#ifndef PERIDOT_MPI_DIVIDE_H
#define PERIDOT_MPI_DIVIDE_H

#include "../ranks.h"

/* A rank's device; sent from rank to rank as it is. */
struct mpi_device {
    char host[64], name[256], uuid[37];
    uint64_t free;             /* bytes; what several ranks share is divided among them */
    double read;               /* bytes/s, measured; 0: not */
    peridot_status status;
    char error[512];           /* why it cannot be used */
};

/* Bytes of the file's tensors. */
struct mpi_sizes {
    uint32_t n_layers, last_division;   /* see peridot_model_info */
    uint64_t *layers;          /* [n_layers], allocated */
    uint64_t embedding, output;   /* output: what the last rank has beside its layers */
    uint64_t sum;              /* of all tensors: the embedding may be the output, too */
};
peridot_status mpi_sizes_read(struct mpi_sizes *out, const char *path);

/* The first rank whose device cannot hold the whole model; n_ranks: all can. */
uint32_t mpi_first_too_small(const struct mpi_sizes *sizes, const struct mpi_device *devices, uint32_t n_ranks);

/* Of the division into n_ranks of which the slowest rank's time for a token is least, and all fit: how many layers each
 * has. */
peridot_status mpi_divide(uint32_t *n_layers, const struct mpi_sizes *sizes, const struct mpi_device *devices,
                          uint32_t n_ranks);
/* "0-15,16-25" */
peridot_status mpi_divide_as(uint32_t *n_layers, const char *text, uint32_t n_ranks, uint32_t n);
/* One table for people, on stderr. */
void mpi_print_division(const uint32_t *n_layers, const struct mpi_sizes *sizes, const struct mpi_device *devices,
                        uint32_t n_ranks);

#endif

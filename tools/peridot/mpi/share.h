/* A command that every rank runs by itself: for its part of the lines of the input (--split data), or for its devices.
 * Rank 0 prints what they all wrote, in the order of the ranks, which is that of the lines. */
#ifndef PERIDOT_MPI_SHARE_H
#define PERIDOT_MPI_SHARE_H

#include "transport.h"

struct mpi_text {
    const char *at;
    size_t size;
};

struct mpi_job {
    uint32_t request;          /* before what the other ranks are sent */
    int argc;
    char **argv;
    int (*command)(int argc, char **argv);
};

/* Whether the command is one of those; `data`: --split data was given. */
bool mpi_is_shared(int argc, char **argv, bool data);
/* Rank 0: its exit status is the first failure's. */
int mpi_share_run(const struct mpi_job *job, int n_ranks);
/* The others, with what follows the request. */
peridot_status mpi_share_work(const char *data, size_t size, int (*command)(int argc, char **argv));

#endif

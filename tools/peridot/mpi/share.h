/* A command that every rank runs by itself: for its part of the lines of the input (--split data), or for its devices.
 * Rank 0 prints what they all wrote, in the order of the ranks, which is that of the lines. */
#ifndef PERIDOT_MPI_SHARE_H
#define PERIDOT_MPI_SHARE_H

#include "transport.h"

/* Whether the command is one of those; `data`: --split data was given. */
bool mpi_is_shared(int argc, char **argv, bool data);
/* Rank 0: its exit status is the first failure's. `prefix` goes before what the others are sent. */
int mpi_share_run(int argc, char **argv, const void *prefix, size_t prefix_size, const struct mpi_place *place,
                  int (*command)(int argc, char **argv));
/* The others, with what follows the prefix. */
peridot_status mpi_share_work(const char *data, size_t size, int (*command)(int argc, char **argv));

#endif

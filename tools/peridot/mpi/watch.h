/* A process of its own watches over each rank: where that is killed, it says so, and mpirun ends all ranks, with status
 * 1. It also hands on what the rank writes: mpirun puts what it has of a line of standard output before what comes on
 * standard error (PRRTE 3.0.8), so that the latter must wait for a line's end. */
#ifndef PERIDOT_MPI_WATCH_H
#define PERIDOT_MPI_WATCH_H

#include <signal.h>
#include <stdbool.h>

/* Seconds that the other ranks have for what they have to say once one has failed. */
#define MPI_LAST_WORDS_SECONDS 2.0

/* Comes to the rank when mpirun ends it, before the signal that does. */
#define MPI_WATCH_SIGNAL SIGRTMIN

/* True in the rank; false, when that has ended, in the process that watched it, whose exit status is *status. */
bool mpi_watch_begin(int *status);

#endif

/* Bytes between ranks, by MPI. A wait ends when a rank has not been heard of for some seconds: each tells the next
 * one in the ring every second that it is there. A process of its own watches over each rank, so that one that is
 * killed ends all with a sentence. */
#ifndef PERIDOT_MPI_TRANSPORT_H
#define PERIDOT_MPI_TRANSPORT_H

#include "../util.h"

struct mpi_place {
    int rank, n_ranks;
    int local_rank;            /* among those of its host */
    char host[64];
};

/* Where this process is one of several ranks; the others are begun too. False: it is the only one, or what watches over
 * a rank that has ended, with *status. */
bool mpi_begin(struct mpi_place *out, int *status);
/* Gives the exit status of the process: where `status` is a failure all ranks end. */
int mpi_end(int status);

/* Blocks of bytes between rank 0 and another, for what is not the library's. *out is to be freed, NUL-terminated. */
peridot_status mpi_send(int to, const void *data, size_t size);
peridot_status mpi_receive(char **out, size_t *size, int from);

/* Whether a block comes from that rank within the time. */
bool mpi_is_there(int from, double seconds);

/* Measures the link between two ranks, which both call it: seconds one way, and bytes/s. */
struct mpi_speed {
    double latency, bandwidth;
};
peridot_status mpi_ping(struct mpi_speed *out, int other, bool begins);
/* The share of the time since the first message of the library in which this rank did not wait for another; begins
 * anew. */
double mpi_busy(void);

/* What the library needs: see peridot_link. */
peridot_status mpi_link_send(void *user, const void *data, size_t size);
peridot_status mpi_link_receive(void *user, void *data, size_t size);

#endif

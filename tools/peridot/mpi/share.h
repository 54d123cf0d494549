/* A command that every rank runs by itself: for its part of the input (--split data), or for its devices. Rank 0 prints
 * what they all wrote, in the order of the ranks, which is that of the lines. */
#ifndef PERIDOT_MPI_SHARE_H
#define PERIDOT_MPI_SHARE_H

#include "transport.h"

struct mpi_text {
    const char *at;
    size_t size;
};

struct mpi_job {
    uint32_t request;          /* before what the other ranks are sent */
    bool reads_lines;          /* of standard input, which are divided */
    int argc;
    char **argv;
    int (*command)(int argc, char **argv);
};

/* Rank 0: its exit status is the first failure's, after which nothing is written. */
int mpi_share_run(const struct mpi_job *job, int n_ranks);
/* The same, within the command: what the other ranks wrote, which is then not printed. */
peridot_status mpi_share_collect(char **out, size_t *size, int n_ranks);
/* The others, with what follows the request; *n_lines: of the input of the ranks before. */
peridot_status mpi_share_work(const char *data, size_t size, size_t *n_lines, int (*command)(int argc, char **argv));

#endif

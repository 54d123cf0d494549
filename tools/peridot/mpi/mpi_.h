/* Ranks over MPI. */
#ifndef PERIDOT_COMMAND_MPI_MPI_PRIVATE_H
#define PERIDOT_COMMAND_MPI_MPI_PRIVATE_H

#include "../base/base.h"
#include "../cli/cli.h"

#include <signal.h>
#include <stdbool.h>

/* ---- watch ---- */

/* Seconds that the other ranks have for what they have to say once one has failed. */
#define MPI_LAST_WORDS_SECONDS 2.0

/* Comes to the rank when mpirun ends it, before the signal that does. */
#define MPI_WATCH_SIGNAL SIGRTMIN

/* True in the rank; false, when that has ended, in the process that watched it, whose exit status is *status. */
bool mpi_watch_begin(int *status);

/* ---- transport ---- */

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

/* ---- report ---- */

/* What `bench` says of the ranks: devices, layers, memory, how busy each was, and the links, which this measures. */

/* Rank 0: all ranks' into out[n_ranks], and a table on standard error. */
peridot_status mpi_report(struct cmd_rank *out, struct cmd_rank *own, const struct mpi_place *place);
/* The others. */
peridot_status mpi_report_work(struct cmd_rank *own, const struct mpi_place *place);

/* ---- share ---- */

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

/* ---- divide ---- */

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

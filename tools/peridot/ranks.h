/* The ranks that a command runs on: one (one_rank.c), or several under mpirun (mpi/), which is what peridot-mpi is.
 * Rank 0 runs the command, reads and prints; the others do what it asks of them. */
#ifndef PERIDOT_COMMAND_RANKS_H
#define PERIDOT_COMMAND_RANKS_H

#include "open.h"

/* Runs the command on rank 0, and gives the exit status of the process. */
int cmd_ranks_run(int argc, char **argv, int (*command)(int argc, char **argv));
uint32_t cmd_ranks_count(void);
/* Divides the layers of a model that is about to be opened: *link and *device are this rank's, the link NULL where one
 * rank holds all. *device is what `args` says at first. */
peridot_status cmd_ranks_divide(const peridot_link **link, const char **device, const struct cmd_model_args *args);
/* The model is open. */
void cmd_ranks_opened(const peridot_model *model);

enum { CMD_RANKS_MAX = 256 };

/* What a rank had of a model, and its link to the next rank; the last one's is all 0. */
struct cmd_rank {
    char host[64], device[256];
    uint32_t first_layer, n_layers;
    uint64_t memory;           /* bytes on the device at most */
    double busy;               /* the share of the time in which it did not wait for another rank */
    double bandwidth, latency;   /* bytes/s; seconds one way */
};
/* Once the model is closed: out[CMD_RANKS_MAX], and a table of them on standard error. *n is 0 where one rank had all
 * layers. */
peridot_status cmd_ranks_report(struct cmd_rank *out, size_t *n);

/* A command that each rank runs by itself, for its part of the input (--split data). What ranks other than 0 write on
 * standard output goes to rank 0, which writes it after its own, in the order of the parts. */
struct cmd_part {
    uint32_t i, n;             /* part i of n; 0 of 1 where one rank does it all */
    size_t n_lines;            /* of standard input, in the parts before it */
};
struct cmd_part cmd_ranks_part(void);
/* Rank 0's bytes, on all ranks: NUL-terminated and allocated on those other than 0. */
peridot_status cmd_ranks_broadcast(char **data, size_t *size);
/* Rank 0 takes what the others wrote on standard output, and does not write it. *data is to be freed; NULL: nothing. */
peridot_status cmd_ranks_collect(char **data, size_t *size);

#endif

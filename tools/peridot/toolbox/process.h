/* A program that runs beside this one, with its three standard streams: those of tools, and servers that speak on them.
 * It is never started by a shell, leads a process group of its own, and is ended with that and all else that it
 * started. process.c is for POSIX, process_windows.c for Windows. */
#ifndef PERIDOT_COMMAND_TOOLBOX_PROCESS_H
#define PERIDOT_COMMAND_TOOLBOX_PROCESS_H

#include "bytes.h"

struct process_params {
    const char *const *command;   /* the program, sought in PATH, and its arguments; NULL at the end */
    const char *const *env;       /* "NAME=VALUE", beside what is inherited; NULL at the end, or NULL */
    const char *cwd;              /* NULL: this one's */
    size_t max_output;            /* what it writes beyond that, and nobody has taken out, is dropped */
};

enum { PROCESS_ERRORS = 4096 };

/* {0}: none. */
struct process {
    struct toolbox_bytes output;  /* of standard output */
    size_t n_dropped;
    char errors[PROCESS_ERRORS];  /* [n_errors]: how standard error ended */
    size_t n_errors;
    size_t n_read;                /* bytes of both, as they came */
    bool output_has_ended, has_ended;   /* standard output is closed; standard error as well */

    struct toolbox_bytes input;   /* of standard input, yet to be read by it */

    /* private */
    int pid, in, out, err;        /* pid 0: none; streams -1: closed */
    void *program, *job, *streams[3];   /* the same on Windows: handles, NULL: closed */
    char mark[48];                /* in the environment of all that it starts */
    unsigned long long begun;     /* when it began, as the system counts that */
    struct process *next;         /* of those that run */
    bool ends_input;
    size_t max_output;
};

/* PERIDOT_ERROR_IO where the program cannot be started. */
peridot_status process_start(struct process *p, const struct process_params *params);
/* Has `size` bytes written to its standard input, as far as it reads them. */
peridot_status process_write(struct process *p, const void *data, size_t size);
/* Closes its standard input when all is written. */
void process_end_input(struct process *p);
/* Writes and reads what can be, and waits for that for at most `seconds`, or until a signal comes. */
peridot_status process_step(struct process *p, double seconds);
/* It runs no longer. */
bool process_has_exited(const struct process *p);
/* Once it has exited: ends all that it started, which may have left its group. What that wrote can still be read. */
void process_end_rest(struct process *p);
/* Closes the streams, waits for at most `seconds` until it exits, and then ends it and its group, first with a signal
 * that it may handle, and all else that it started. `how` (may be NULL) is "" for success, else "ended with status 3"
 * or the like. What it wrote stays: the output is freed by the caller. */
void process_close(struct process *p, double seconds, char how[64]);

/* For process.c and process_windows.c: adds to the output what there is room for, and to `errors`, which lose what came
 * first. */
peridot_status process_keep_output(struct process *p, const char *data, size_t size);
peridot_status process_keep_errors(struct process *p, const char *data, size_t size);

#endif

/* A process of its own watches over each rank: where that is killed, it says so, and mpirun ends all ranks, with status
 * 1. It also hands on what the rank writes: mpirun puts what it has of a line of standard output before what comes on
 * standard error (PRRTE 3.0.8), so that the latter must wait for a line's end. */
#define _GNU_SOURCE
#include "mpi_.h"
#include "../base/base.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define DRAIN_SECONDS 0.05   /* that mpirun has for standard output before standard error is written */

static volatile pid_t watched;
static volatile sig_atomic_t n_signals;

/* ---- what the rank writes ---- */

/* 0, or an errno. */
static int write_all(int fd, const char *data, size_t size)
{
    while (size) {
        ssize_t n = write(fd, data, size);
        if (n < 0 && errno == EAGAIN) poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        else if (n < 0 && errno != EINTR) return errno;
        if (n <= 0) continue;
        data += n;
        size -= (size_t)n;
    }
    return 0;
}

/* False at the end. */
static bool watch_read_some(int *fd, char *data, size_t *size, size_t capacity)
{
    ssize_t n = read(*fd, data, capacity);
    *size = n > 0 ? (size_t)n : 0;
    if (n > 0 || (n < 0 && errno == EINTR)) return true;
    close(*fd);
    *fd = -1;
    return false;
}

/* Why standard output could not be written: an errno, or 0. The rank's is then closed, so that it learns of it where it
 * goes on writing. Standard error that cannot be written is lost. */
static int hand_on(int out, int err)
{
    struct pd_buffer held = {0};   /* of standard error, until it may be written */
    char data[65536];
    size_t size;
    int failed = 0;
    bool in_line = false;
    double written = 0;
    while (out >= 0 || err >= 0) {
        struct pollfd fds[2] = {{.fd = out, .events = POLLIN}, {.fd = err, .events = POLLIN}};
        if (poll(fds, 2, -1) < 0) continue;
        if (fds[0].revents && watch_read_some(&out, data, &size, sizeof data) && size) {
            failed = write_all(STDOUT_FILENO, data, size);
            in_line = data[size - 1] != '\n';
            written = pd_now();
            if (failed) {
                close(out);
                out = -1;
            }
        } else if (fds[1].revents && watch_read_some(&err, data, &size, sizeof data)) {
            pd_buffer_add(&held, data, size);
        }
        if (!held.size || (in_line && out >= 0)) continue;
        double wait = written + DRAIN_SECONDS - pd_now();
        if (wait > 0) cmd_sleep(wait);
        write_all(STDERR_FILENO, held.data, held.size);
        held.size = 0;
    }
    pd_buffer_free(&held);
    return failed;
}

/* ---- watching ---- */

/* mpirun ends the ranks: what is in flight is told so first. */
static void pass_on(int number)
{
    n_signals++;
    kill(watched, MPI_WATCH_SIGNAL);
    kill(watched, number);
    kill(watched, SIGCONT);   /* where it was stopped */
}

static int watch(int out, int err)
{
    const char *rank = getenv("PMIX_RANK") ? getenv("PMIX_RANK") : getenv("PMI_RANK");
    char host[64] = "";
    int status = 0;
    signal(SIGTERM, pass_on);
    signal(SIGINT, pass_on);
    signal(SIGHUP, pass_on);
    signal(SIGPIPE, SIG_IGN);
    int failed = hand_on(out, err);
    while (waitpid(watched, &status, 0) < 0) continue;
    gethostname(host, sizeof host - 1);
    if (failed && failed != EPIPE)
        fprintf(stderr, "peridot-mpi: rank %s on %s: standard output: %s\n", rank ? rank : "?", host, strerror(failed));
    if (failed) return WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : 1;
    if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
    if (n_signals) return 1;
    fprintf(stderr, "peridot-mpi: rank %s on %s was killed by signal %d (%s)\n", rank ? rank : "?", host,
            WTERMSIG(status), strsignal(WTERMSIG(status)));
    return 1;
}

bool mpi_watch_begin(int *status)
{
    int out[2], err[2];
    *status = 1;
    if (pipe(out) != 0 || pipe(err) != 0 || (watched = fork()) < 0) {
        fprintf(stderr, "peridot-mpi: no process can be made: %s\n", strerror(errno));
        return false;
    }
    if (watched) {
        close(out[1]);
        close(err[1]);
        *status = watch(out[0], err[0]);
        return false;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    for (int i = 0; i < 2; i++) close(out[i]), close(err[i]);
    return true;
}

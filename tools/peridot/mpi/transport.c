/* Bytes between ranks, by MPI. A wait ends when a rank has not been heard of for some seconds: each tells the next
 * one in the ring every second that it is there. A process of its own watches over each rank, so that one that is
 * killed ends all with a sentence. */
#define _GNU_SOURCE
#include "mpi_.h"
#include "../base/base.h"

#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define BEAT_SECONDS 1.0
#define SILENCE_SECONDS 6.0    /* after which a rank counts as lost */
#ifndef MPI_PIECE_SIZE
#define MPI_PIECE_SIZE (1u << 30)   /* bytes of a message at most: MPI counts them in int */
#endif

enum { TAG_LINK = 1, TAG_BLOCK, TAG_BEAT };

/* A copy that is on its way: what the last rank sends must not wait. */
struct copy {
    struct copy *next;
    MPI_Request request;
    char data[];
};

static struct {
    struct mpi_place place;
    pthread_mutex_t lock;      /* of MPI: one call at a time */
    pthread_t beat;
    atomic_bool ending, told_to_end;   /* also a signal's handler sets it: see watch.c */
    struct copy *copies;
    double first, last, waited;   /* when the library's messages came, and the seconds that it waited for them */
} mpi = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- waits ---- */

static void end_waits(int number)
{
    (void)number;
    mpi.told_to_end = true;
}

static peridot_status fail_mpi(int result, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int size = 0;
    MPI_Error_string(result, text, &size);
    return pd_fail(PERIDOT_ERROR_LINK, "rank %d on %s: %s: %s", mpi.place.rank, mpi.place.host, what, text);
}

/* Short at first, as the next row of a decode step comes soon; a server may have nothing to do for hours. */
static void pause_between(unsigned n)
{
    if (n < 200) sched_yield();
    else cmd_sleep(n < 1000 ? 2e-5 : 1e-3);
}

static peridot_status wait_for(MPI_Request *request, const char *what)
{
    int done = 0;
    for (unsigned n = 0; !done; n++) {
        if (mpi.told_to_end) return pd_fail(PERIDOT_ERROR_LINK, "another rank has ended");
        pthread_mutex_lock(&mpi.lock);
        int result = MPI_Test(request, &done, MPI_STATUS_IGNORE);
        pthread_mutex_unlock(&mpi.lock);
        if (result != MPI_SUCCESS) return fail_mpi(result, what);
        if (!done) pause_between(n);
    }
    return PERIDOT_OK;
}

/* Both sides know the size, and so the pieces. */
static peridot_status transfer(bool sends, int other, int tag, char *data, size_t size)
{
    const char *what = sends ? "sending" : "receiving";
    for (size_t at = 0, n; at < size; at += n) {
        MPI_Request request;
        n = pd_min(size - at, MPI_PIECE_SIZE);
        pthread_mutex_lock(&mpi.lock);
        int result = sends ? MPI_Isend(data + at, (int)n, MPI_BYTE, other, tag, MPI_COMM_WORLD, &request)
                           : MPI_Irecv(data + at, (int)n, MPI_BYTE, other, tag, MPI_COMM_WORLD, &request);
        pthread_mutex_unlock(&mpi.lock);
        if (result != MPI_SUCCESS) return fail_mpi(result, what);
        PD_TRY(wait_for(&request, what));
    }
    return PERIDOT_OK;
}

static peridot_status send_to(int to, int tag, const void *data, size_t size)
{
    return transfer(true, to, tag, (char *)data, size);
}

static peridot_status receive_from(int from, int tag, void *data, size_t size)
{
    return transfer(false, from, tag, data, size);
}

/* ---- who is there ---- */

static void end_all(const char *why)
{
    fprintf(stderr, "peridot-mpi: %s\n", why);
    _exit(1);   /* mpirun ends the others */
}

/* What is in flight is told so first. */
static void end_lost(int rank)
{
    double end = pd_now() + MPI_LAST_WORDS_SECONDS;
    fprintf(stderr, "peridot-mpi: rank %d on %s has not heard from rank %d for %.0f s\n", mpi.place.rank,
            mpi.place.host, rank, SILENCE_SECONDS);
    mpi.told_to_end = true;
    while (!mpi.ending && pd_now() < end) cmd_sleep(0.1);
    if (!mpi.ending) _exit(1);
}

static void *beat(void *user)
{
    int n = mpi.place.n_ranks, to = (mpi.place.rank + 1) % n, from = (mpi.place.rank + n - 1) % n;
    double sent = 0, heard = pd_now();
    MPI_Request request = MPI_REQUEST_NULL;
    char one = 1, other;
    (void)user;
    while (!mpi.ending) {
        int there = 0, done = 1;
        pthread_mutex_lock(&mpi.lock);
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (done && pd_now() - sent > BEAT_SECONDS) {
            MPI_Isend(&one, 1, MPI_BYTE, to, TAG_BEAT, MPI_COMM_WORLD, &request);
            sent = pd_now();
        }
        MPI_Iprobe(from, TAG_BEAT, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
        if (there) MPI_Recv(&other, 1, MPI_BYTE, from, TAG_BEAT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        pthread_mutex_unlock(&mpi.lock);
        if (there) heard = pd_now();
        if (pd_now() - heard > SILENCE_SECONDS) end_lost(from);
        cmd_sleep(0.1);
    }
    pthread_mutex_lock(&mpi.lock);
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    pthread_mutex_unlock(&mpi.lock);
    return NULL;
}

/* ---- beginning and ending ---- */

/* How many ranks mpirun began; NULL: there is no mpirun. */
static const char *n_begun(void)
{
    return getenv("OMPI_COMM_WORLD_SIZE") ? getenv("OMPI_COMM_WORLD_SIZE") : getenv("PMI_SIZE");
}

bool mpi_begin(struct mpi_place *out, int *status)
{
    MPI_Comm local;
    int provided;
    *status = -1;
    if (!n_begun() || !mpi_watch_begin(status)) return false;
    *status = -1;
    if (strcmp(n_begun(), "1") == 0) return false;
    signal(MPI_WATCH_SIGNAL, end_waits);
    prctl(PR_SET_TIMERSLACK, 1000);   /* ns: waits are short */
    int result = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
    if (result != MPI_SUCCESS || provided < MPI_THREAD_SERIALIZED)
        end_all("this MPI cannot be used by threads");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &mpi.place.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mpi.place.n_ranks);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local);
    MPI_Comm_rank(local, &mpi.place.local_rank);
    MPI_Comm_free(&local);
    gethostname(mpi.place.host, sizeof mpi.place.host - 1);
    if (pthread_create(&mpi.beat, NULL, beat, NULL) != 0) end_all("no thread can be made");
    *out = mpi.place;
    return true;
}

int mpi_end(int status)
{
    mpi.ending = true;
    pthread_join(mpi.beat, NULL);
    if (status != 0) {
        fflush(NULL);
        if (mpi.place.rank != 0) cmd_sleep(MPI_LAST_WORDS_SECONDS);   /* rank 0 has something to say */
        _exit(status);
    }
    alarm(10);   /* a rank that does not come is no reason to wait */
    MPI_Finalize();
    return status;
}

/* ---- blocks ---- */

peridot_status mpi_send(int to, const void *data, size_t size)
{
    uint64_t n = size;
    PD_TRY(send_to(to, TAG_BLOCK, &n, sizeof n));
    return size ? send_to(to, TAG_BLOCK, data, size) : PERIDOT_OK;
}

peridot_status mpi_receive(char **out, size_t *size, int from)
{
    uint64_t n;
    PD_TRY(receive_from(from, TAG_BLOCK, &n, sizeof n));
    *size = (size_t)n;
    *out = n < SIZE_MAX ? calloc(*size + 1, 1) : NULL;
    if (!*out) return pd_fail_alloc(*size, "a message");
    return n ? receive_from(from, TAG_BLOCK, *out, *size) : PERIDOT_OK;
}

bool mpi_is_there(int from, double seconds)
{
    int there = 0;
    for (double end = pd_now() + seconds; !there && !mpi.told_to_end && pd_now() < end;) {
        pthread_mutex_lock(&mpi.lock);
        MPI_Iprobe(from, TAG_BLOCK, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
        pthread_mutex_unlock(&mpi.lock);
        if (!there) cmd_sleep(1e-3);
    }
    return there;
}

/* ---- measuring ---- */

static peridot_status exchange(int other, void *data, size_t size, bool begins)
{
    char back = 0;
    if (begins) PD_TRY(send_to(other, TAG_BLOCK, data, size));
    else PD_TRY(receive_from(other, TAG_BLOCK, data, size));
    return begins ? receive_from(other, TAG_BLOCK, &back, 1) : send_to(other, TAG_BLOCK, &back, 1);
}

peridot_status mpi_ping(struct mpi_speed *out, int other, bool begins)
{
    enum { N_SMALL = 200, N_LARGE = 8, LARGE = 4 << 20 };
    char *data = calloc(LARGE, 1);
    double begun = pd_now();
    peridot_status status = data ? PERIDOT_OK : pd_fail_alloc(LARGE, "a message");
    for (int i = 0; i < N_SMALL && status == PERIDOT_OK; i++) status = exchange(other, data, 1, begins);
    out->latency = (pd_now() - begun) / (2 * N_SMALL);
    begun = pd_now();
    for (int i = 0; i < N_LARGE && status == PERIDOT_OK; i++) status = exchange(other, data, LARGE, begins);
    out->bandwidth = (double)N_LARGE * LARGE / (pd_now() - begun);
    free(data);
    return status;
}

double mpi_busy(void)
{
    double busy = mpi.last > mpi.first ? 1 - mpi.waited / (mpi.last - mpi.first) : 0;
    mpi.first = mpi.last = mpi.waited = 0;
    return busy;
}

/* ---- the library's ---- */

static peridot_status waited(peridot_status status, double begun)
{
    mpi.last = pd_now();
    if (mpi.first == 0) mpi.first = mpi.last;   /* before that nothing was to be done */
    else mpi.waited += mpi.last - begun;
    return status;
}

static void free_copies(void)
{
    for (struct copy **at = &mpi.copies; *at;) {
        struct copy *copy = *at;
        int done = 0;
        pthread_mutex_lock(&mpi.lock);
        MPI_Test(&copy->request, &done, MPI_STATUS_IGNORE);
        pthread_mutex_unlock(&mpi.lock);
        if (!done) {
            at = &copy->next;
            continue;
        }
        *at = copy->next;
        free(copy);
    }
}

static peridot_status send_copy(const void *data, size_t size)
{
    struct copy *copy = malloc(sizeof *copy + size);
    if (!copy) return pd_fail_alloc(size, "a message");
    memcpy(copy->data, data, size);
    free_copies();
    pthread_mutex_lock(&mpi.lock);
    int result = MPI_Isend(copy->data, (int)size, MPI_BYTE, 0, TAG_LINK, MPI_COMM_WORLD, &copy->request);
    pthread_mutex_unlock(&mpi.lock);
    if (result != MPI_SUCCESS) {
        free(copy);
        return fail_mpi(result, "sending");
    }
    copy->next = mpi.copies;
    mpi.copies = copy;
    return PERIDOT_OK;
}

static peridot_status send_copies(const char *data, size_t size)
{
    for (size_t at = 0; at < size; at += MPI_PIECE_SIZE)
        PD_TRY(send_copy(data + at, pd_min(size - at, MPI_PIECE_SIZE)));
    return PERIDOT_OK;
}

peridot_status mpi_link_send(void *user, const void *data, size_t size)
{
    double begun = pd_now();
    (void)user;
    if (mpi.place.rank + 1 == mpi.place.n_ranks) return send_copies(data, size);
    return waited(send_to(mpi.place.rank + 1, TAG_LINK, data, size), begun);
}

peridot_status mpi_link_receive(void *user, void *data, size_t size)
{
    int from = (mpi.place.rank + mpi.place.n_ranks - 1) % mpi.place.n_ranks;
    double begun = pd_now();
    (void)user;
    return waited(receive_from(from, TAG_LINK, data, size), begun);
}

/* Answers that go on when their connection ends, and can be read again: a page that was left in the middle of a reply
 * finds it when it comes back, and a second one sees the same reply grow. A request asks for that by a header,
 * X-Stream-Id, with an id of its own making, so that it knows it whatever happens; GET and DELETE /v1/streams/ID read
 * and stop the answer. Whoever has another API key finds none of them. There are at most so many, of so many bytes:
 * those that have ended give way to new ones, the oldest first. One that ended, or that nobody reads, is let go of
 * after a while; the latter is stopped then. All functions can be called by any thread; the lock of an answer is taken
 * before the one here, never after it. */
#include "job.h"
#include "job_.h"
#include "../../base/base.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

enum { STREAMS_MAX = 64, STREAM_BYTES = 16 << 20, ALL_BYTES = 64 << 20 };
#define KEPT_SECONDS 600

struct serve_stream_reader {
    struct serve_stream_reader *next;
    struct serve_streams *streams;
    struct serve_stream *stream;
    struct MHD_Connection *connection;
    size_t at;
    bool suspended;
};

struct serve_stream {
    struct serve_stream *next;
    bool listed;
    unsigned n_refs;           /* of the list, of its job and of its readers */
    char id[SERVE_STREAM_ID_MAX + 1];
    const char *type;          /* Content-Type */
    uint32_t key;
    struct serve_job *job;     /* NULL: it has ended */
    struct pd_buffer text;
    bool done, too_long;
    bool attended;             /* the connection that asked is there */
    double since_s;            /* when it ended, or was left */
    struct serve_stream_reader *readers;
};

/* ---- under the lock ---- */

static void release_stream(struct serve_streams *all, struct serve_stream *stream)
{
    if (--stream->n_refs) return;
    all->size -= stream->text.size;
    pd_buffer_free(&stream->text);
    free(stream);
}

static void unlist(struct serve_streams *all, struct serve_stream *stream)
{
    struct serve_stream **at = &all->first;
    if (!stream->listed) return;
    while (*at != stream) at = &(*at)->next;
    *at = stream->next;
    stream->listed = false;
    all->n--;
    release_stream(all, stream);
}

/* The oldest that has ended, but for `but`; NULL: none has. */
static struct serve_stream *oldest_ended(const struct serve_streams *all, const struct serve_stream *but)
{
    struct serve_stream *oldest = NULL;
    for (struct serve_stream *stream = all->first; stream; stream = stream->next)
        if (stream->done && stream != but) oldest = stream;
    return oldest;
}

static struct serve_stream *find_stream(const struct serve_streams *all, const char *id, uint32_t key)
{
    struct serve_stream *stream = all->first;
    while (stream && (stream->key != key || strcmp(stream->id, id) != 0)) stream = stream->next;
    return stream;
}

static void wake_readers(struct serve_stream *stream)
{
    for (struct serve_stream_reader *reader = stream->readers; reader; reader = reader->next) {
        if (!reader->suspended) continue;
        reader->suspended = false;
        MHD_resume_connection(reader->connection);
    }
}

/* What is too long to be kept goes on for the connection that asked for it, but for nobody else. */
static void give_up_keeping(struct serve_streams *all, struct serve_stream *stream)
{
    all->size -= stream->text.size;
    pd_buffer_free(&stream->text);
    stream->too_long = true;
    if (!stream->attended && stream->job) stream->job->closed = true;
    unlist(all, stream);
}

static void add_text(struct serve_streams *all, struct serve_stream *stream, const char *text, size_t size)
{
    if (stream->too_long || !size) return;
    struct serve_stream *oldest;
    while (all->size + size > ALL_BYTES && (oldest = oldest_ended(all, stream)) != NULL) unlist(all, oldest);
    bool fits = stream->text.size + size <= STREAM_BYTES && all->size + size <= ALL_BYTES;
    if (fits && pd_buffer_add(&stream->text, text, size) == PERIDOT_OK) all->size += size;
    else give_up_keeping(all, stream);
}

/* ---- jobs ---- */

static bool is_id(const char *id)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    size_t n = strlen(id);
    return n >= SERVE_STREAM_ID_MIN && n <= SERVE_STREAM_ID_MAX && strspn(id, letters) == n;
}

bool serve_streams_keep(struct serve_error *error, struct serve_job *job, const char *id)
{
    struct serve_streams *all = &job->server->streams;
    if (!is_id(id))
        return serve_refuse(error, 400, "invalid_value", "X-Stream-Id", "X-Stream-Id must have %d to %d characters of "
                            "A-Z, a-z, 0-9, - and _", SERVE_STREAM_ID_MIN, SERVE_STREAM_ID_MAX);
    struct serve_stream *stream = calloc(1, sizeof *stream), *oldest;
    if (!stream) return serve_refuse(error, 500, NULL, NULL, "out of memory");
    *stream = (struct serve_stream){.key = job->client.key, .job = job, .type = job->api->stream_type};
    stream->attended = true;
    memcpy(stream->id, id, strlen(id));
    pthread_mutex_lock(&all->lock);
    bool taken = find_stream(all, id, stream->key);
    while (!taken && all->n >= STREAMS_MAX && (oldest = oldest_ended(all, NULL)) != NULL) unlist(all, oldest);
    bool keeps = !taken && all->n < STREAMS_MAX;
    if (keeps) {
        stream->next = all->first;
        all->first = job->stream = stream;
        stream->listed = true;
        stream->n_refs = 2;
        all->n++;
    }
    pthread_mutex_unlock(&all->lock);
    if (!keeps) free(stream);
    return !taken || serve_refuse(error, 409, "invalid_value", "X-Stream-Id", "there is a stream %s already", id);
}

void serve_streams_write(struct serve_job *job, const char *text, size_t size, bool end)
{
    struct serve_streams *all = &job->server->streams;
    struct serve_stream *stream = job->stream;
    if (!stream) return;
    pthread_mutex_lock(&all->lock);
    add_text(all, stream, text, size);
    if (end) {
        stream->done = true;
        stream->job = NULL;
        stream->since_s = pd_now();
    }
    wake_readers(stream);
    pthread_mutex_unlock(&all->lock);
}

void serve_streams_leave(struct serve_job *job)
{
    struct serve_streams *all = &job->server->streams;
    pthread_mutex_lock(&all->lock);
    job->stream->attended = false;
    job->stream->since_s = pd_now();
    if (job->stream->too_long) job->closed = true;
    pthread_mutex_unlock(&all->lock);
}

void serve_streams_drop(struct serve_job *job)
{
    struct serve_streams *all = &job->server->streams;
    if (!job->stream) return;
    pthread_mutex_lock(&all->lock);
    job->stream->job = NULL;
    job->stream->done = true;
    wake_readers(job->stream);
    release_stream(all, job->stream);
    pthread_mutex_unlock(&all->lock);
}

/* ---- all of them ---- */

void serve_streams_tend(struct serve_streams *all)
{
    const double now = pd_now();
    pthread_mutex_lock(&all->lock);
    for (struct serve_stream *stream = all->first, *next; stream; stream = next) {
        next = stream->next;
        bool is_read = stream->attended || stream->readers;
        if (now - stream->since_s < KEPT_SECONDS || (is_read && !stream->done)) continue;
        if (stream->job) stream->job->closed = true;
        unlist(all, stream);
    }
    pthread_mutex_unlock(&all->lock);
}

void serve_streams_free(struct serve_streams *all)
{
    while (all->first) unlist(all, all->first);
}

bool serve_streams_stop(struct serve_streams *all, const char *id, uint32_t key)
{
    pthread_mutex_lock(&all->lock);
    struct serve_stream *stream = find_stream(all, id, key);
    if (stream && stream->job) stream->job->stopped = true;
    pthread_mutex_unlock(&all->lock);
    return stream;
}

/* ---- readers ---- */

struct serve_stream_reader *serve_stream_open(struct serve_streams *all, const char *id, uint32_t key,
                                              struct MHD_Connection *connection)
{
    struct serve_stream_reader *reader = calloc(1, sizeof *reader);
    if (!reader) return NULL;
    pthread_mutex_lock(&all->lock);
    struct serve_stream *stream = find_stream(all, id, key);
    if (stream) {
        *reader = (struct serve_stream_reader){.next = stream->readers, .streams = all, .stream = stream,
                                               .connection = connection};
        stream->readers = reader;
        stream->n_refs++;
    }
    pthread_mutex_unlock(&all->lock);
    if (!stream) free(reader);
    return stream ? reader : NULL;
}

void serve_stream_close(struct serve_stream_reader *reader)
{
    struct serve_streams *all = reader->streams;
    pthread_mutex_lock(&all->lock);
    struct serve_stream_reader **at = &reader->stream->readers;
    while (*at != reader) at = &(*at)->next;
    *at = reader->next;
    if (!reader->stream->done) reader->stream->since_s = pd_now();
    release_stream(all, reader->stream);
    pthread_mutex_unlock(&all->lock);
    free(reader);
}

const char *serve_stream_type(const struct serve_stream_reader *reader) { return reader->stream->type; }

ptrdiff_t serve_stream_read(struct serve_stream_reader *reader, char *to, size_t size)
{
    struct serve_streams *all = reader->streams;
    const struct serve_stream *stream = reader->stream;
    pthread_mutex_lock(&all->lock);
    ptrdiff_t n = (ptrdiff_t)pd_min(size, stream->text.size - pd_min(reader->at, stream->text.size));
    if (stream->too_long) n = -2;
    else if (n) {
        memcpy(to, stream->text.data + reader->at, (size_t)n);
        reader->at += (size_t)n;
    } else if (stream->done) n = -1;
    else {
        reader->suspended = true;
        MHD_suspend_connection(reader->connection);
    }
    pthread_mutex_unlock(&all->lock);
    return n;
}

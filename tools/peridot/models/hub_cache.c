/* Hugging Face's cache of one model, in the layout that its own tools read and write:
 *   models--OWNER--NAME/blobs/HASH              bytes, named by what they are; HASH.incomplete while they come
 *   models--OWNER--NAME/snapshots/COMMIT/PATH   relative links to blobs
 *   models--OWNER--NAME/refs/REVISION           the commit
 *   .locks/models--OWNER--NAME/HASH.lock        held (flock) by who fetches a blob */
#define _POSIX_C_SOURCE 200809L
#include "models.h"
#include "../base/base.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static peridot_status fail_path(const char *path)
{
    return pd_fail(PERIDOT_ERROR_IO, "%s: %s", cmd_shown(path), strerror(errno));
}

/* "FOLDER/" and a name in a format. */
static peridot_status path_of(char out[CMD_PATH_SIZE], const char *folder, const char *format, const char *name)
{
    char below[CMD_PATH_SIZE];
    snprintf(below, sizeof below, format, name);
    int size = snprintf(out, CMD_PATH_SIZE, "%s/%s", folder, below);
    return size > 0 && size < CMD_PATH_SIZE ? PERIDOT_OK
                                            : pd_fail(PERIDOT_ERROR_IO, "%s: the path is too long", cmd_shown(folder));
}

/* Makes the folders that a path names up to its last slash. */
static peridot_status make_folders(const char *path)
{
    char folder[CMD_PATH_SIZE];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (!cache_make_folder(folder)) return fail_path(folder);
        *slash = '/';
    }
    return PERIDOT_OK;
}

peridot_status hub_cache_open(struct hub_cache *out, const struct hub *hub)
{
    static const char *const folders[] = {"blobs/", "refs/", "snapshots/"};
    char root[CMD_PATH_SIZE], path[CMD_PATH_SIZE], name[256];
    const char *slash = strchr(hub->repo, '/');
    if (!cmd_hub_cache(root)) return pd_fail(PERIDOT_ERROR_IO, "neither HF_HOME nor HOME says where the cache is");
    snprintf(name, sizeof name, "%.*s--%s", (int)(slash - hub->repo), hub->repo, slash + 1);
    PD_TRY(path_of(out->folder, root, "models--%s", name));
    PD_TRY(path_of(out->locks, root, ".locks/models--%s", name));
    PD_TRY(path_of(out->snapshot, out->folder, "snapshots/%s", hub->commit));
    for (size_t i = 0; i < PD_COUNT(folders); i++) {
        PD_TRY(path_of(path, out->folder, "%s", folders[i]));
        PD_TRY(make_folders(path));
    }
    PD_TRY(path_of(path, out->snapshot, "%s", ""));
    PD_TRY(make_folders(path));
    PD_TRY(path_of(path, out->locks, "%s", ""));
    return make_folders(path);
}

static bool has_blob(const char *path, const struct hub_file *file)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == file->size;
}

uint64_t hub_cache_missing(const struct hub_cache *cache, const struct hub_file *file)
{
    char path[CMD_PATH_SIZE];
    struct stat st;
    if (path_of(path, cache->folder, "blobs/%s", file->hash) == PERIDOT_OK && has_blob(path, file)) return 0;
    if (path_of(path, cache->folder, "blobs/%s.incomplete", file->hash) != PERIDOT_OK || stat(path, &st) != 0)
        return file->size;
    return file->size - pd_min((uint64_t)st.st_size, file->size);
}

peridot_status hub_cache_check_room(const struct hub_cache *cache, uint64_t size)
{
    uint64_t left;
    if (!cache_space(&left, cache->folder)) return fail_path(cache->folder);
    if (size <= left) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_IO, "%s: the disk has %s free, but %s are to be fetched (set HF_HUB_CACHE to use "
                   "another one)", cmd_shown(cache->folder), cmd_size_text(left), cmd_size_text(size));
}

/* ---- one at a time ---- */

/* Waits for the lock; *out is to be closed. */
static peridot_status lock(int *out, const char *path, const char *name)
{
    for (bool told = false;; told = true) {
        enum cache_lock state = cache_lock(out, path);
        if (state == CACHE_HELD) return PERIDOT_OK;
        if (state == CACHE_FAILED) return fail_path(path);
        if (!told) fprintf(stderr, "%s: another program is fetching it: waiting\n", cmd_shown(name));
        if (cmd_interrupted()) return pd_fail(PERIDOT_CANCELLED, "interrupted");
        cmd_sleep(0.2);
    }
}

/* ---- bytes ---- */

/* A blob on its way. */
struct blob {
    const struct hub_file *file;
    struct hub_progress *progress;
    int fd;
    uint64_t size;             /* there so far */
    bool restarted;            /* the present transfer began with the first byte again */
    struct cmd_hash *hash;   /* of them */
};

/* Large files go by their SHA-256, others by git's SHA-1, which begins with a header. */
static peridot_status begin_hash(struct blob *b)
{
    char header[32];
    cmd_hash_end(b->hash, NULL);
    b->hash = cmd_hash_begin(b->file->is_large);
    if (!b->hash) return pd_fail_alloc(0, "a hash");
    int n = snprintf(header, sizeof header, "blob %llu", (unsigned long long)b->file->size);
    if (!b->file->is_large) cmd_hash_add(b->hash, header, (size_t)n + 1);
    return PERIDOT_OK;
}

static peridot_status restart(struct blob *b)
{
    b->size = 0;
    b->restarted = true;
    if (ftruncate(b->fd, 0) != 0 || lseek(b->fd, 0, SEEK_SET) != 0) return fail_path(b->file->path);
    return begin_hash(b);
}

static peridot_status take_bytes(void *user, const void *data, size_t size, bool from_begin)
{
    struct blob *b = user;
    if (from_begin) PD_TRY(restart(b));
    if (size > b->file->size - b->size)
        return pd_fail(PERIDOT_ERROR_IO, "%s: the hub sent more than the %llu bytes that it lists",
                       cmd_shown(b->file->path), (unsigned long long)b->file->size);
    for (size_t n = 0; n < size;) {
        ssize_t written = write(b->fd, (const char *)data + n, size - n);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return fail_path(b->file->path);
        n += (size_t)written;
    }
    cmd_hash_add(b->hash, data, size);
    b->size += size;
    if (cmd_progress_step(&b->progress->line, b->progress->before + b->size, b->progress->total)) return PERIDOT_OK;
    return pd_fail(PERIDOT_CANCELLED, "interrupted");
}

/* Hashes the bytes that an earlier run left, and goes on behind them. */
static peridot_status resume(struct blob *b)
{
    static char piece[1 << 16];
    ssize_t n;
    PD_TRY(begin_hash(b));
    while ((n = read(b->fd, piece, sizeof piece)) > 0 && (uint64_t)n <= b->file->size - b->size) {
        cmd_hash_add(b->hash, piece, (size_t)n);
        b->size += (size_t)n;
        if (cmd_interrupted()) return pd_fail(PERIDOT_CANCELLED, "interrupted");
    }
    if (n < 0) return fail_path(b->file->path);
    return n == 0 ? PERIDOT_OK : restart(b);
}

/* Reconnects after a cut, as long as each connection brings more than there ever was. One that begins with the first
 * byte again, as the hub knows no ranges, brings nothing unless it brings all. */
static peridot_status download(struct blob *b, struct hub *hub)
{
    enum { ENOUGH = 1 << 14 };   /* bytes; of less than that no file comes to an end */
    uint64_t most = b->size;
    for (int tries = 0; b->size < b->file->size;) {
        b->restarted = false;
        peridot_status status = hub_fetch(hub, b->file, b->size, take_bytes, b);
        if (status != PERIDOT_OK && !hub->may_retry) return status;
        if (b->size == b->file->size) break;
        tries = !b->restarted && b->size >= most + ENOUGH ? 1 : tries + 1;
        most = pd_max(most, b->size);
        if (status == PERIDOT_OK)
            status = pd_fail(PERIDOT_ERROR_IO, "%s: the hub sent %llu of its %llu bytes", cmd_shown(b->file->path),
                             (unsigned long long)b->size, (unsigned long long)b->file->size);
        PD_TRY(hub_wait(tries, status));
    }
    return PERIDOT_OK;
}

static bool is_right(struct blob *b)
{
    unsigned char digest[32];
    char text[65];
    size_t n = b->file->is_large ? 32 : 20;
    cmd_hash_end(b->hash, digest);
    b->hash = NULL;
    for (size_t i = 0; i < n; i++) snprintf(text + 2 * i, 3, "%02x", digest[i]);
    return strcmp(text, b->file->hash) == 0;
}

/* Where bytes that an earlier run left are wrong, all are fetched again. */
static peridot_status complete(struct blob *b, struct hub *hub)
{
    PD_TRY(resume(b));
    bool resumed = b->size > 0;
    PD_TRY(download(b, hub));
    if (is_right(b)) return PERIDOT_OK;
    PD_TRY(restart(b));
    if (resumed) {
        PD_TRY(download(b, hub));
        if (is_right(b)) return PERIDOT_OK;
        PD_TRY(restart(b));
    }
    return pd_fail(PERIDOT_ERROR_IO, "%s: the bytes received do not match the hub's %s %s",
                   cmd_shown(b->file->path), b->file->is_large ? "SHA-256" : "SHA-1", b->file->hash);
}

static peridot_status fetch_blob(struct hub *hub, const struct hub_file *file, const char *path, const char *incomplete,
                                 struct hub_progress *progress)
{
    struct blob b = {.file = file, .progress = progress};
    b.fd = cache_open(incomplete);
    if (b.fd < 0) return fail_path(incomplete);
    peridot_status status = complete(&b, hub);
    if (status == PERIDOT_OK && !cache_sync(b.fd)) status = fail_path(path);
    cmd_hash_end(b.hash, NULL);
    close(b.fd);
    if (status == PERIDOT_OK && !cache_move(incomplete, path)) status = fail_path(path);
    if (status != PERIDOT_OK && b.size == 0) unlink(incomplete);
    return status;
}

/* A link to "../../blobs/HASH", with as many steps up as the file's path has folders. */
static peridot_status link_file(const struct hub_cache *cache, const struct hub_file *file, const char *blob)
{
    char path[CMD_PATH_SIZE], target[CMD_PATH_SIZE] = "../../";
    PD_TRY(path_of(path, cache->snapshot, "%s", file->path));
    for (const char *slash = file->path; (slash = strchr(slash, '/')) != NULL; slash++)
        if (strlen(target) + 100 < sizeof target) strcat(target, "../");
    strcat(target, "blobs/");
    strcat(target, file->hash);
    PD_TRY(make_folders(path));
    return cache_link(path, target, blob) ? PERIDOT_OK : fail_path(path);
}

peridot_status hub_cache_fetch(const struct hub_cache *cache, struct hub *hub, const struct hub_file *file,
                               struct hub_progress *progress)
{
    char path[CMD_PATH_SIZE], incomplete[CMD_PATH_SIZE], lock_path[CMD_PATH_SIZE];
    int held;
    PD_TRY(path_of(path, cache->folder, "blobs/%s", file->hash));
    PD_TRY(path_of(incomplete, cache->folder, "blobs/%s.incomplete", file->hash));
    PD_TRY(path_of(lock_path, cache->locks, "%s.lock", file->hash));
    if (has_blob(path, file)) return link_file(cache, file, path);
    PD_TRY(lock(&held, lock_path, file->path));
    peridot_status status = has_blob(path, file) ? PERIDOT_OK : fetch_blob(hub, file, path, incomplete, progress);
    close(held);
    return status == PERIDOT_OK ? link_file(cache, file, path) : status;
}

peridot_status hub_cache_set_revision(const struct hub_cache *cache, const struct hub *hub)
{
    char path[CMD_PATH_SIZE];
    struct pd_writer out;
    if (strcmp(hub->revision, hub->commit) == 0) return PERIDOT_OK;
    PD_TRY(path_of(path, cache->folder, "refs/%s", hub->revision));
    PD_TRY(make_folders(path));
    PD_TRY(pd_writer_open(&out, path));
    peridot_status status = pd_writer_write(&out, hub->commit, strlen(hub->commit));
    if (status == PERIDOT_OK) return pd_writer_commit(&out);
    pd_writer_abort(&out);
    return status;
}
